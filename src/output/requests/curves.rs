//! Curves and points: means over numbers or over time, distributions, pairs.

use super::check::Request;
use super::draw::{FEW, Picture, lower, over, split};
use super::field::{Datum, Field};
use super::rows::{Means, Row};
use crate::metrics::compare::LEVEL;
use crate::metrics::mean_interval;
use crate::output::figure::{self, Axis, Data, Join, Panel, Series, ecdf, small_multiples};
use crate::output::numbers::{capital, count};

/// Places along an axis at which curves of several runs are compared.
const STEPS: usize = 240;

/// More points than this of a distribution are thinned, by rank.
const POINTS: usize = 1000;

fn x_axis(request: &Request) -> Axis {
    request.x.as_ref().map(Field::axis).unwrap_or_default()
}

fn x_name(request: &Request) -> &str {
    request.x.as_ref().map_or("x", Field::name)
}

fn y_name(request: &Request) -> &str {
    if request.y.len() == 1 { &request.y[0].name } else { "value" }
}

fn data(request: &Request, panels: &[Panel]) -> Data {
    Data::of_panels(["panel", "series", x_name(request), y_name(request)], panels)
}

/// Means over numbers, with bands.
pub(super) fn lines(request: &Request, means: &Means) -> Picture {
    let order = means.sorted();
    let bands = request.bands.unwrap_or(true);
    let mut few_any = false;
    let mut panels = Vec::new();
    for (facet, title) in means.facets.iter().enumerate() {
        let mut panel = Panel { title: title.clone(), series: Vec::new() };
        for (nth, name) in means.series.iter().enumerate() {
            let mut one = Series { label: name.label.clone(), key: name.key.clone(), ..Series::default() };
            let mut band = Vec::new();
            for &place in &order {
                let Some((interval, weight)) = means.at(facet, nth, place, 0) else { continue };
                let Datum::Number(x) = means.places[0][place] else { continue };
                if request.counts().is_some() && *weight < FEW {
                    one.few.push(one.points.len());
                    few_any = true;
                }
                one.points.push((x, interval.mean));
                one.n.push(interval.n as u64);
                if let (Some(low), Some(high), true) = (interval.low, interval.high, bands) {
                    band.push((x, means.clip(low), means.clip(high)));
                }
            }
            one.band = (!band.is_empty()).then_some(band);
            if !one.points.is_empty() {
                panel.series.push(one);
            }
        }
        panels.push(panel);
    }
    let chart = request.chart(panels.len(), x_axis(request), request.y_axis());
    let few = match (few_any, request.counts()) {
        (true, Some(what)) => format!("; hollow markers stand for fewer than {FEW} {what}"),
        _ => String::new(),
    };
    let words = if bands { "bands" } else { "no bands" };
    let caption = format!("{}{}{}{few}", request.subject(), request.by(), over(means.runs(), words));
    Picture { svg: small_multiples(&chart, Join::Straight, &panels), data: data(request, &panels), caption }
}

/// The steps of one run: a value from each instant on, until the run ends.
struct Steps {
    points: Vec<(f64, f64)>,
    end: f64,
}

impl Steps {
    /// The value at an instant; none before the first or behind the end.
    fn at(&self, time: f64) -> Option<f64> {
        let after = self.points.partition_point(|(from, _)| *from <= time);
        (time <= self.end).then(|| after.checked_sub(1).map(|at| self.points[at].1)).flatten()
    }

    /// Of rows in the order of time: those of one instant become one value. Where there is a grid, instants of it
    /// without a row have the value 0.
    fn of(request: &Request, rows: &[&Row], end: f64, grid: &[f64]) -> Steps {
        let time = |row: &&Row| if let Some(Datum::Number(time)) = row.at.first() { *time } else { 0.0 };
        let groups = rows.chunk_by(|a, b| time(a) == time(b));
        let value = |group: &[&Row]| {
            let values: Vec<f64> = group.iter().map(|row| row.y).collect();
            (time(&group[0]), request.stat.of(&values))
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

/// Means over time, with bands; of one run its own steps.
pub(super) fn time(request: &Request, rows: &[Row], ends: &[f64], grids: &[Vec<f64>]) -> Picture {
    let (facets, names, groups) = split(rows);
    let mut panels = Vec::new();
    let (mut least, mut most) = (usize::MAX, 0);
    for (title, panel) in facets.iter().zip(&groups) {
        let mut all = Vec::new();
        for (name, rows) in names.iter().zip(panel).filter(|(_, rows)| !rows.is_empty()) {
            let runs: Vec<Steps> = rows
                .chunk_by(|a, b| a.run == b.run)
                .map(|group| {
                    let run = group[0].run;
                    Steps::of(request, group, ends[run], grids.get(run).map_or(&[][..], |grid| &grid[..]))
                })
                .collect();
            (least, most) = (least.min(runs.len()), most.max(runs.len()));
            let one = Series { label: name.label.clone(), key: name.key.clone(), ..Series::default() };
            let values = runs.iter().flat_map(|run| run.points.iter().map(|(_, value)| *value));
            let bounds = request.bands.unwrap_or(true).then(|| request.bounds(values));
            all.push(match &runs[..] {
                [only] => alone(only, one),
                _ => together(&runs, one, bounds),
            });
        }
        panels.push(Panel { title: title.clone(), series: all });
    }
    let chart = request.chart(panels.len(), x_axis(request), request.y_axis());
    let join = if most > 1 { Join::Straight } else { Join::Steps };
    let far = if most > 1 { ", as long as most runs go on" } else { "" };
    let caption = format!("{} over time{}{far}", request.subject(), over((least, most), "bands"));
    Picture { svg: small_multiples(&chart, join, &panels), data: data(request, &panels), caption }
}

fn alone(run: &Steps, one: Series) -> Series {
    let mut points = run.points.clone();
    let last = points.last().copied();
    points.extend(last.filter(|(time, _)| *time < run.end).map(|(_, value)| (run.end, value)));
    Series { points, ..one }
}

/// The mean of several runs as long as most of them go on, and as long as all do a band between these bounds.
fn together(runs: &[Steps], one: Series, bounds: Option<(f64, f64)>) -> Series {
    let from = runs.iter().filter_map(|run| run.points.first()).map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
    let to = runs.iter().map(|run| run.end).fold(from, f64::max);
    let (mut one, mut band) = (one, Vec::new());
    for step in 0..=STEPS {
        let time = from + (to - from) * step as f64 / STEPS as f64;
        let values: Vec<f64> = runs.iter().filter_map(|run| run.at(time)).collect();
        // The mean of the few that take longest is not that of all.
        let Some(interval) = mean_interval(&values, LEVEL).filter(|interval| 2 * interval.n > runs.len()) else {
            continue;
        };
        one.points.push((time, interval.mean));
        one.n.push(interval.n as u64);
        let bounds = bounds.filter(|_| interval.n == runs.len());
        if let (Some(low), Some(high), Some((least, most))) = (interval.low, interval.high, bounds) {
            band.push((time, low.clamp(least, most), high.clamp(least, most)));
        }
    }
    one.band = (!band.is_empty()).then_some(band);
    one
}

/// Distributions: of all runs together, or with bands the mean of those of the runs.
pub(super) fn cdf(request: &Request, rows: &[Row]) -> Picture {
    let (facets, names, groups) = split(rows);
    let bands = request.bands.unwrap_or(false);
    let values = |rows: &[&Row]| rows.iter().map(|row| row.y).collect::<Vec<f64>>();
    let many = |rows: &[&Row]| rows.iter().map(|row| row.weight.max(1)).sum::<u64>();
    let axis = grid(rows, request.log[0]);
    let one_panel = facets.len() == 1;
    let mut panels = Vec::new();
    for (title, panel) in facets.iter().zip(&groups) {
        let mut all = Vec::new();
        for (name, rows) in names.iter().zip(panel).filter(|(_, rows)| !rows.is_empty()) {
            // Of several panels a curve has several numbers, and the data have them.
            let label = match one_panel {
                true => format!("{} (n = {})", name.label, count(many(rows))).trim_start().to_owned(),
                false => name.label.clone(),
            };
            let one = Series { label, key: name.key.clone(), ..Series::default() };
            let runs: Vec<&[&Row]> = rows.chunk_by(|a, b| a.run == b.run).collect();
            all.push(if bands && runs.len() > 1 {
                let runs: Vec<Vec<f64>> = runs.iter().map(|run| sorted(values(run))).collect();
                let (mut one, mut band) = (one, Vec::new());
                for &x in &axis {
                    let below = |run: &Vec<f64>| run.partition_point(|value| *value <= x) as f64 / run.len() as f64;
                    let below: Vec<f64> = runs.iter().map(below).collect();
                    let Some(interval) = mean_interval(&below, LEVEL) else { continue };
                    one.points.push((x, interval.mean));
                    one.n.push(interval.n as u64);
                    if let (Some(low), Some(high)) = (interval.low, interval.high) {
                        band.push((x, low.max(0.0), high.min(1.0)));
                    }
                }
                Series { band: Some(band), ..one }
            } else {
                let all = weighted(rows);
                let every = all.len().div_ceil(POINTS).max(1);
                let last = all.last().copied();
                let mut points: Vec<(f64, f64)> = all.into_iter().step_by(every).collect();
                points.extend(last.filter(|last| points.last() != Some(last)));
                Series { n: vec![many(rows); points.len()], points, ..one }
            });
        }
        panels.push(Panel { title: title.clone(), series: all });
    }
    let y = Axis::fraction(capital(request.counts().unwrap_or("rows")));
    let chart = request.chart(panels.len(), request.y[0].axis(), y);
    let how =
        if bands { "the mean of the runs' distributions, with 95 % confidence intervals" } else { "all runs together" };
    let caption = format!("Distribution of {}: {how}", lower(&request.subject()));
    let mut data = Data::of_panels(["panel", "series", &request.y[0].name, "fraction"], &panels);
    if one_panel {
        // The number has a column of its own.
        let plain = |label: &str| label.rsplit_once("(n = ").map_or(label, |(name, _)| name).trim_end().to_owned();
        data.rows.iter_mut().for_each(|row| row[1] = plain(&row[1]));
    }
    Picture { svg: figure::cdf_panels(&chart, &panels), data, caption }
}

/// The distribution of rows that count as many jobs or tasks as stand behind them: points `(value, part at or below)`.
fn weighted(rows: &[&Row]) -> Vec<(f64, f64)> {
    if rows.iter().all(|row| row.weight <= 1) {
        return ecdf(&rows.iter().map(|row| row.y).collect::<Vec<f64>>());
    }
    let mut sorted: Vec<(f64, u64)> = rows.iter().map(|row| (row.y, row.weight)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut below = 0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for group in sorted.chunk_by(|a, b| a.0 == b.0) {
        below += group.iter().map(|(_, weight)| weight).sum::<u64>();
        points.push((group[0].0, below as f64 / all as f64));
    }
    points
}

/// Places over the range of all values.
fn grid(rows: &[Row], log: bool) -> Vec<f64> {
    let usable = || rows.iter().map(|row| row.y).filter(|y| !log || *y > 0.0);
    let (low, high) = usable().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    let part = |step: usize| step as f64 / STEPS as f64;
    let at = |step: usize| if log { low * (high / low).powf(part(step)) } else { low + (high - low) * part(step) };
    if low <= high { (0..=STEPS).map(at).collect() } else { Vec::new() }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Pairs of values, a point a row.
pub(super) fn scatter(request: &Request, rows: &[Row]) -> Picture {
    let (facets, names, groups) = split(rows);
    let point = |row: &&Row| if let Some(Datum::Number(x)) = row.at.first() { Some((*x, row.y)) } else { None };
    let panel = |(title, panel): (&String, &Vec<Vec<&Row>>)| Panel {
        title: title.clone(),
        series: names
            .iter()
            .zip(panel)
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(name, rows)| Series {
                label: name.label.clone(),
                key: name.key.clone(),
                points: rows.iter().filter_map(point).collect(),
                ..Series::default()
            })
            .collect(),
    };
    let panels: Vec<Panel> = facets.iter().zip(&groups).map(panel).collect();
    let chart = request.chart(panels.len(), x_axis(request), request.y_axis());
    // Points need more height than curves.
    let size_pt =
        (chart.size_pt.0, if panels.len() > 1 { chart.size_pt.1 } else { chart.size_pt.1.max(0.7 * chart.size_pt.0) });
    let size_pt = request.paper.height.map_or(size_pt, |height| (size_pt.0, height));
    let chart = figure::Chart { size_pt, ..chart };
    let what = request.counts().map_or("row", |what| what.trim_end_matches('s'));
    let caption = format!("{}{}: a point a {what}", request.subject(), request.by());
    Picture { svg: figure::points(&chart, &panels), data: data(request, &panels), caption }
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
        let mean = together(&[run, other], Series::default(), Some((0.0, 6.5)));
        assert_eq!((mean.points[0], mean.points[STEPS]), ((1.0, 6.0), (10.0, 7.0)));
        assert_eq!(mean.n, vec![2; STEPS + 1]);
        let band = mean.band.expect("two runs have an interval");
        assert!(band.iter().all(|(_, low, high)| (0.0..=6.5).contains(low) && *high <= 6.5), "{band:?}");
        assert!(band.iter().any(|(_, low, high)| *low == 0.0 && *high == 6.5), "the interval is far wider");
    }
}
