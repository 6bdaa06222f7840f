//! The speed of users relative to ideal fair sharing: the distribution over users, all seeds together.

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{Axis, Data, Join, Panel, Series, lines};
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

use super::fairness::distribution;
use super::{Gallery, by_policy, seeds_of};

/// The ratio of speeds above which the axis is logarithmic.
const WIDE: f64 = 20.0;

/// Draws one curve per policy over the speeds of the `users` table.
pub fn speeds(results: &Results, paper: &Paper) -> Result<Gallery> {
    let parts = results.table(Table::Users, &["speed"], None)?;
    if parts.is_empty() {
        return Ok(Gallery::without_table("speeds", Table::Users));
    }
    let mut series = Vec::new();
    let (mut low, mut high) = (f64::INFINITY, 1.0f64);
    for group in parts.chunk_by(|a, b| a.policy == b.policy) {
        let numbers = group.iter().map(|part| part.numbers("speed")).collect::<Result<Vec<_>>>()?;
        let values: Vec<(f64, f64)> = numbers.into_iter().flatten().flatten().map(|speed| (speed, 1.0)).collect();
        (low, high) = values.iter().fold((low, high), |(low, high), (speed, _)| (low.min(*speed), high.max(*speed)));
        series.push(Series::new(&results.contents.policies[group[0].policy], distribution(values)));
    }
    if low.is_infinite() {
        return Ok(Gallery::without("speeds", "no user submitted any work"));
    }
    let log = low > 0.0 && high / low > WIDE;
    for one in series.iter_mut().filter(|one| !one.points.is_empty()) {
        if log {
            one.points[0].0 = low;
        }
        one.points.push((high, 1.0));
    }
    let x = Axis::number("Speed against fair sharing");
    let x = if log { x.log().range(low, high) } else { x.range(0.0, high) };
    let chart = by_policy(results, x, Axis::fraction("Users").range(0.0, 1.0));
    let caption = format!(
        "Speeds of users{}: how fast each was served, with ideal fair sharing of the same workload as 1. A user at 0.5 \
         waited twice as long. The more upright a curve, the more evenly a policy treats its users.",
        seeds_of(results)
    );
    let svg = lines(&paper.fit(chart, 1), Join::Steps, &series);
    let data =
        Data::of_panels(["panel", "policy", "speed", "fraction_of_users"], &[Panel { title: String::new(), series }]);
    Ok(Gallery::with_figure("speeds", caption, svg, data))
}
