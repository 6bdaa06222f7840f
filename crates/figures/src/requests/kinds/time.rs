//! Curves over time: means with bands, or the steps of a single run.

use std::collections::BTreeSet;

use plimsoll_charts::figure::{Join, Panel, Series, small_multiples};
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{mean, mean_interval};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, STEPS, X, beside, data, x_axis};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, over, split};
use crate::requests::field::Datum;
use crate::requests::rows::{FigureRow, FigureRows};

pub(super) static ROW: KindRow = KindRow {
    name: "time",
    about: "means over time, with bands",
    table: Table::Fairness,
    x: X::Time,
    takes: &["series", "facet", "stat", "scale", "bands"],
    draw: Draw::Rows(time),
    ..KindRow::PLAIN
};

/// Draws means over time, with bands; for one run its own steps.
fn time(request: &FigureRequest, all_rows: &FigureRows) -> Picture {
    let FigureRows { rows, ends, grids, .. } = all_rows;
    let (facets, names, groups) = split(rows);
    let (mut panels, mut averaged) = (Vec::new(), BTreeSet::new());
    let (mut least, mut most) = (usize::MAX, 0);
    for (title, panel) in facets.iter().zip(&groups) {
        let mut all = Vec::new();
        for (name, rows) in names.iter().zip(panel).filter(|(_, rows)| !rows.is_empty()) {
            let groups: Vec<&[&FigureRow]> = rows.chunk_by(|a, b| a.run == b.run).collect();
            let numbers: Vec<usize> = groups.iter().map(|group| group[0].run).collect();
            all_rows.add_averaged(&numbers, &mut averaged);
            let steps = |(group, &run): (&&[&FigureRow], &usize)| {
                (run, Steps::from_rows(request, group, ends[run], grids.get(run).map_or(&[][..], |grid| &grid[..])))
            };
            let runs = all_rows.by_seed(groups.iter().zip(&numbers).map(steps));
            (least, most) = (least.min(runs.len()), most.max(runs.len()));
            let one = Series { label: name.label.clone(), key: name.key.clone(), ..Series::default() };
            let values = runs.iter().flatten().flat_map(|run| run.points.iter().map(|(_, value)| *value));
            let bounds = request.bands.unwrap_or(true).then(|| request.bounds(values));
            all.push(match &runs[..] {
                [only] if only.len() == 1 => alone(&only[0], one),
                _ => together(&runs, one, bounds),
            });
        }
        panels.push(Panel { title: title.clone(), series: all });
    }
    let chart = beside(all_rows, request.chart(panels.len(), x_axis(request), request.y_axis()));
    let join = if most > 1 { Join::Straight } else { Join::Steps };
    let far = if most > 1 { ", while most runs are in progress" } else { "" };
    let caption =
        format!("{} over time{}{far}", request.subject(), over((least, most), &all_rows.named(&averaged), "bands"));
    Picture { svg: small_multiples(&chart, join, &panels), data: data(request, &panels), caption }
}

fn alone(run: &Steps, one: Series) -> Series {
    let mut points = run.points.clone();
    let last = points.last().copied();
    points.extend(last.filter(|(time, _)| *time < run.end).map(|(_, value)| (run.end, value)));
    Series { points, ..one }
}

/// Returns the mean over seeds, each represented by the mean of its runs, for the time in which more than half of the seeds are running.
/// The band covers the time in which all seeds are running and is clipped to `bounds`.
fn together(seeds: &[Vec<Steps>], one: Series, bounds: Option<(f64, f64)>) -> Series {
    let runs = || seeds.iter().flatten();
    let from = runs().filter_map(|run| run.points.first()).map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
    let to = runs().map(|run| run.end).fold(from, f64::max);
    let (mut one, mut band) = (one, Vec::new());
    for step in 0..=STEPS {
        let time = from + (to - from) * step as f64 / STEPS as f64;
        let value = |runs: &Vec<Steps>| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| run.at(time)).collect();
            values.map(|values| mean(&values))
        };
        let values: Vec<f64> = seeds.iter().filter_map(value).collect();
        // The mean of the few seeds with the longest runs is not representative.
        let Some(interval) = mean_interval(&values, LEVEL).filter(|interval| 2 * interval.n > seeds.len()) else {
            continue;
        };
        one.points.push((time, interval.mean));
        one.n.push(interval.n as u64);
        let bounds = bounds.filter(|_| interval.n == seeds.len());
        if let (Some(low), Some(high), Some((least, most))) = (interval.low, interval.high, bounds) {
            band.push((time, low.clamp(least, most), high.clamp(least, most)));
        }
    }
    one.band = (!band.is_empty()).then_some(band);
    one
}

/// The steps of one run: a value from each instant on, until the run ends.
struct Steps {
    points: Vec<(f64, f64)>,
    end: f64,
}

impl Steps {
    /// Returns the value at an instant; `None` before the first one or after the end.
    fn at(&self, time: f64) -> Option<f64> {
        let after = self.points.partition_point(|(from, _)| *from <= time);
        (time <= self.end).then(|| after.checked_sub(1).map(|at| self.points[at].1)).flatten()
    }

    /// Creates steps from rows in the order of time; the rows of one instant are reduced to one value. If there is a grid, it defines the
    /// instants, and those without a row have the value 0.
    fn from_rows(request: &FigureRequest, rows: &[&FigureRow], end: f64, grid: &[f64]) -> Steps {
        let time = |row: &&FigureRow| if let Some(Datum::Number(time)) = row.at.first() { *time } else { 0.0 };
        let groups = rows.chunk_by(|a, b| time(a) == time(b));
        let value = |group: &[&FigureRow]| {
            let values: Vec<f64> = group.iter().map(|row| row.y).collect();
            (time(&group[0]), request.stat.value(&values))
        };
        let mut points: Vec<(f64, f64)> = groups.map(value).collect();
        if !grid.is_empty() {
            let known: Vec<(f64, f64)> = std::mem::take(&mut points);
            let at = |time: f64| known.binary_search_by(|(t, _)| t.total_cmp(&time)).map_or(0.0, |at| known[at].1);
            points = grid.iter().map(|&time| (time, at(time))).collect();
        }
        let last = points.last().map_or(0.0, |(time, _)| *time);
        Steps { points, end: end.max(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_until_the_run_ends() {
        let run = Steps { points: vec![(1.0, 5.0), (3.0, 7.0)], end: 10.0 };
        assert_eq!(
            [0.5, 1.0, 2.9, 3.0, 10.0, 10.1].map(|t| run.at(t)),
            [None, Some(5.0), Some(5.0), Some(7.0), Some(7.0), None]
        );
        let other = Steps { points: vec![(1.0, 7.0)], end: 10.0 };
        let mean = together(&[vec![run], vec![other]], Series::default(), Some((0.0, 6.5)));
        assert_eq!((mean.points[0], mean.points[STEPS]), ((1.0, 6.0), (10.0, 7.0)));
        assert_eq!(mean.n, vec![2; STEPS + 1]);
        let band = mean.band.expect("two runs have an interval");
        assert!(band.iter().all(|(_, low, high)| (0.0..=6.5).contains(low) && *high <= 6.5), "{band:?}");
        assert!(band.iter().any(|(_, low, high)| *low == 0.0 && *high == 6.5), "the interval is far wider");
    }
}
