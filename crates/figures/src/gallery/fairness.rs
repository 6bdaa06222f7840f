//! The evenness of shares among backlogged users: distributions over time, all seeds together.
//!
//! Distributions are shown instead of curves over time, which would jump whenever a user arrives or leaves, and would be interrupted while
//! no demand is pending.

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{Axis, Chart, Data, Join, Panel, Series, small_multiples};
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

use super::{Gallery, RunEnds, seeds_of};

/// The panels: a heading and a column of the `fairness` table.
const PANELS: [(&str, &str); 2] =
    [("Jain index of backlogged users", "jain_backlogged"), ("Share gap of backlogged users", "share_gap_backlogged")];

/// Draws the Jain index and the share gap while two or more users wait.
pub fn fairness(results: &Results, paper: &Paper) -> Result<Gallery> {
    let Some(panels) = panels(results, PANELS, 1.0)? else {
        return Ok(Gallery::without_table("fairness", Table::Fairness));
    };
    if panels.empty() {
        return Ok(Gallery::without("fairness", "at no time were two users waiting"));
    }
    let caption = format!(
        "Jain index of dominant shares, and largest minus smallest share, among the users that each policy leaves \
         backlogged{}: the share of time in which the index or the gap is at most the value on the x axis. Only time \
         with two or more backlogged users counts. Equal shares have an index of 1 and a gap of 0. The policy determines \
         which users are backlogged, so these measures do not compare policies; the speeds of users do.",
        seeds_of(results)
    );
    let svg = panels.draw(Axis::number("Index or share"), paper);
    Ok(Gallery::with_figure("fairness", caption, svg, panels.data("value")))
}

/// Distributions over the time with two or more waiting users, one panel per column of the `fairness` table.
pub(super) struct Panels {
    panels: Vec<Panel>,
    /// The largest of all values.
    pub largest: f64,
}

/// Reads the distributions, all seeds together; the axis reaches at least `least`. `None` if the table was not written.
pub(super) fn panels(results: &Results, columns: [(&str, &str); 2], least: f64) -> Result<Option<Panels>> {
    let names: Vec<&str> = ["time_us", "backlogged_users"].into_iter().chain(columns.map(|(_, name)| name)).collect();
    let parts = results.table(Table::Fairness, &names, None)?;
    if parts.is_empty() {
        return Ok(None);
    }
    let ends = RunEnds::read(results, None)?;
    let mut drawn = Panels { panels: Vec::new(), largest: least };
    for (title, column) in columns {
        let mut panel = Panel { title: title.to_owned(), series: Vec::new() };
        for group in parts.chunk_by(|a, b| a.policy == b.policy) {
            let values = group.iter().map(|part| spans(part, column, &ends)).collect::<Result<Vec<_>>>()?.concat();
            drawn.largest = values.iter().map(|(value, _)| *value).fold(drawn.largest, f64::max);
            panel.series.push(Series::new(&results.contents.policies[group[0].policy], distribution(values)));
        }
        drawn.panels.push(panel);
    }
    let series = drawn.panels.iter_mut().flat_map(|panel| &mut panel.series);
    for series in series.filter(|series| !series.points.is_empty()) {
        series.points.push((drawn.largest, 1.0));
    }
    Ok(Some(drawn))
}

impl Panels {
    /// Returns whether two users never waited at the same time.
    pub fn empty(&self) -> bool {
        self.panels.iter().all(|panel| panel.series.iter().all(|series| series.points.is_empty()))
    }

    /// Returns the drawn data.
    pub fn data(&self, value: &str) -> Data {
        Data::of_panels(["measure", "policy", value, "fraction_of_time"], &self.panels)
    }

    /// Draws the panels side by side, over values from 0 to the largest.
    pub fn draw(&self, x: Axis, paper: &Paper) -> String {
        let chart = Chart {
            size_pt: (Chart::PAGE.0, 160.0),
            columns: Some(2),
            ..Chart::new(x.range(0.0, self.largest), Axis::fraction("Time").range(0.0, 1.0))
        };
        small_multiples(&paper.fit(chart, self.panels.len()), Join::Steps, &self.panels)
    }
}

/// Returns `(value, seconds)` while two or more users wait: a row applies until the next one, the last one until the run's end.
fn spans(part: &Part, column: &str, ends: &RunEnds) -> Result<Vec<(f64, f64)>> {
    let (times, waiting, values) = (part.numbers("time_us")?, part.numbers("backlogged_users")?, part.numbers(column)?);
    let end = times.last().copied().flatten().map(|last| ends.after(part, last / 1e6) * 1e6);
    let ends = times.iter().skip(1).copied().chain([end]);
    let rows = times.iter().zip(ends).zip(waiting).zip(values);
    let span = |(((from, to), waiting), value): (((&Option<f64>, Option<f64>), Option<f64>), Option<f64>)| {
        waiting.filter(|&waiting| waiting >= 2.0)?;
        Some((value?, (to? - (*from)?) / 1e6))
    };
    Ok(rows.filter_map(span).collect())
}

/// Returns the points `(value, share of time at or below it)`, starting at 0.
pub(super) fn distribution(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole: f64 = spans.iter().map(|(_, seconds)| seconds).sum();
    if whole <= 0.0 {
        return Vec::new();
    }
    let mut points = vec![(0.0, 0.0)];
    let mut sum = 0.0;
    for group in spans.chunk_by(|a, b| a.0 == b.0) {
        sum += group.iter().map(|(_, seconds)| seconds).sum::<f64>();
        points.push((group[0].0, (sum / whole).min(1.0)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_weighs_values_with_time() {
        let points = distribution(vec![(0.5, 30.0), (0.2, 10.0), (0.5, 20.0), (1.0, 40.0)]);
        assert_eq!(points, [(0.0, 0.0), (0.2, 0.1), (0.5, 0.6), (1.0, 1.0)]);
        assert!(distribution(Vec::new()).is_empty());
    }
}
