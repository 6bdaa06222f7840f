//! Distributions: of all runs together, or with bands the mean of the runs' distributions.

use std::collections::BTreeSet;

use plimsoll_charts::figure::{Axis, Data, Panel, Series, cdf_panels, ecdf};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, STEPS, X, beside};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, list, lower, split};
use crate::requests::rows::{FigureRow, FigureRows};
use plimsoll_metrics::numbers::{capital, thousands};

/// Maximum number of points of a distribution; more are thinned by rank.
const POINTS: usize = 1000;

pub(super) static ROW: KindRow = KindRow {
    name: "cdf",
    about: "distributions",
    table: Table::Jobs,
    x: X::None,
    takes: &["series", "facet", "scale", "bands"],
    draw: Draw::Rows(cdf),
    mixes: |request| !request.bands.unwrap_or(false),
    shows: Some("completion_s"),
    ..KindRow::PLAIN
};

/// Draws distributions: of all runs together, or with bands the mean of the runs' distributions.
fn cdf(request: &FigureRequest, all: &FigureRows) -> Picture {
    let rows = &all.rows;
    let (facets, names, groups) = split(rows);
    let bands = request.bands.unwrap_or(false);
    let values = |rows: &[&FigureRow]| rows.iter().map(|row| row.y).collect::<Vec<f64>>();
    let many = |rows: &[&FigureRow]| rows.iter().map(|row| row.weight.max(1)).sum::<u64>();
    let axis = grid(rows, request.log[0]);
    let one_panel = facets.len() == 1;
    let (mut panels, mut averaged) = (Vec::new(), BTreeSet::new());
    for (title, panel) in facets.iter().zip(&groups) {
        let mut curves = Vec::new();
        for (name, rows) in names.iter().zip(panel).filter(|(_, rows)| !rows.is_empty()) {
            // With several panels, a curve has one count per panel; these counts are only in the data.
            let label = match one_panel {
                true => format!("{} (n = {})", name.label, thousands(many(rows))).trim_start().to_owned(),
                false => name.label.clone(),
            };
            let one = Series { label, key: name.key.clone(), ..Series::default() };
            let runs: Vec<&[&FigureRow]> = rows.chunk_by(|a, b| a.run == b.run).collect();
            curves.push(if bands && runs.len() > 1 {
                let numbers: Vec<usize> = runs.iter().map(|run| run[0].run).collect();
                all.add_averaged(&numbers, &mut averaged);
                let runs: Vec<Vec<f64>> = runs.iter().map(|run| sorted(values(run))).collect();
                let (mut one, mut band) = (one, Vec::new());
                for &x in &axis {
                    let below = |run: &Vec<f64>| run.partition_point(|value| *value <= x) as f64 / run.len() as f64;
                    let below = numbers.iter().copied().zip(runs.iter().map(below));
                    let Some(interval) = all.mean(below) else { continue };
                    one.points.push((x, interval.mean));
                    one.n.push(interval.n as u64);
                    if let (Some(low), Some(high)) = (interval.low, interval.high) {
                        band.push((x, low.max(0.0), high.min(1.0)));
                    }
                }
                Series { band: (!band.is_empty()).then_some(band), ..one }
            } else {
                let whole = weighted(rows);
                let every = whole.len().div_ceil(POINTS).max(1);
                let last = whole.last().copied();
                let mut points: Vec<(f64, f64)> = whole.into_iter().step_by(every).collect();
                points.extend(last.filter(|last| points.last() != Some(last)));
                Series { n: vec![many(rows); points.len()], points, ..one }
            });
        }
        panels.push(Panel { title: title.clone(), series: curves });
    }
    let y = Axis::fraction(capital(request.counts().unwrap_or("rows")));
    let chart = beside(all, request.chart(panels.len(), request.y[0].axis(), y));
    let within = match &all.named(&averaged)[..] {
        [] => String::new(),
        names => format!(", each seed the mean over {}", list(names)),
    };
    let how = match bands {
        true => format!("the mean of the runs' distributions{within}, with 95 % confidence intervals"),
        false => "all runs together".to_owned(),
    };
    let caption = format!("Distribution of {}: {how}", lower(&request.subject()));
    let mut data = Data::of_panels(["panel", "series", &request.y[0].name, "fraction"], &panels);
    if one_panel {
        // The count has its own column in the data.
        let plain = |label: &str| label.rsplit_once("(n = ").map_or(label, |(name, _)| name).trim_end().to_owned();
        data.rows.iter_mut().for_each(|row| row[1] = plain(&row[1]));
    }
    Picture { svg: cdf_panels(&chart, &panels), data, caption }
}

/// Returns the distribution of rows, weighted by their numbers of jobs or tasks: points `(value, fraction at or below it)`.
fn weighted(rows: &[&FigureRow]) -> Vec<(f64, f64)> {
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

/// Returns evenly spaced places over the range of all values; on a logarithmic axis, with equal ratios.
fn grid(rows: &[FigureRow], log: bool) -> Vec<f64> {
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
