//! How far shares were from fluid DRF how much of the time, all seeds together.

use super::fairness::{distribution, spans};
use super::{Ends, Gallery, seeds_of};
use crate::error::Result;
use crate::output::figure::{Axis, Chart, Join, Panel, Series, small_multiples};
use crate::output::read::Results;
use crate::output::schema::Table;

/// The panels: a heading and a column of the `fairness` table.
const PANELS: [(&str, &str); 2] = [("Mean over users", "deviation_mean"), ("Largest", "deviation_max")];

/// Distances of dominant shares from divisible DRF while two or more users wait.
pub fn deviation(results: &Results) -> Result<Gallery> {
    let columns = ["time_us", "backlogged_users", "deviation_mean", "deviation_max"];
    let parts = results.table(Table::Fairness, &columns, None)?;
    if parts.is_empty() {
        return Ok(Gallery::without_table("deviation", Table::Fairness));
    }
    let ends = Ends::read(results, None)?;
    let mut panels = Vec::new();
    let mut largest = 0.0f64;
    for (title, column) in PANELS {
        let mut panel = Panel { title: title.to_owned(), series: Vec::new() };
        for group in parts.chunk_by(|a, b| a.policy == b.policy) {
            let values = group.iter().map(|part| spans(part, column, &ends)).collect::<Result<Vec<_>>>()?.concat();
            largest = values.iter().map(|(value, _)| *value).fold(largest, f64::max);
            panel.series.push(Series::new(&results.contents.policies[group[0].policy], distribution(values)));
        }
        panels.push(panel);
    }
    for series in panels.iter_mut().flat_map(|panel| &mut panel.series).filter(|series| !series.points.is_empty()) {
        series.points.push((largest, 1.0));
    }
    if panels.iter().all(|panel| panel.series.iter().all(|series| series.points.is_empty())) || largest == 0.0 {
        return Ok(Gallery::without("deviation", "two users never waited at a time, or all shares were as in DRF"));
    }
    let x = Axis::fraction("Distance (% of the cluster)").range(0.0, largest);
    let chart = Chart {
        size_pt: (Chart::PAGE.0, 160.0),
        columns: Some(2),
        ..Chart::new(x, Axis::fraction("Time (%)").range(0.0, 1.0))
    };
    let caption = format!(
        "Distance of users' dominant shares from those under DRF with divisible tasks{}: the share of time in which the \
         mean over users, or the largest, is at most the value below. Counted is the time in which two or more users \
         wait.",
        seeds_of(results)
    );
    Ok(Gallery::of("deviation", caption, small_multiples(&chart, Join::Steps, &panels)))
}
