//! Ranks: means in order, the best first, one row each, with whiskers.

use plimsoll_base::column::Better;
use plimsoll_charts::figure::{Axis, Data, FOREST_ROW, ForestPanel, ForestRow, Interval, exactly, ranks};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, tall, y_name};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, over};
use crate::requests::kind::Stat;
use crate::requests::rows::{FigureRows, Means};

pub(super) static ROW: KindRow = KindRow {
    name: "ranks",
    about: "means in order, the best first, with whiskers",
    table: Table::Runs,
    x: X::None,
    takes: &["series", "facet", "stat", "scale", "bands"],
    draw: Draw::Rows(ranked),
    ..KindRow::PLAIN
};

/// Returns the sign that makes the least value of a panel the best.
fn sign(request: &FigureRequest, panel: &str) -> f64 {
    let headed = request.y.iter().position(|column| panel.split(", ").any(|word| word == column.heading));
    let at = headed.unwrap_or(0);
    let better = if request.stat == Stat::Count { Better::Neither } else { request.y[at].better };
    let sign = if better == Better::Lower { 1.0 } else { -1.0 };
    // A negative factor reverses the direction of better values.
    if request.scale[at] < 0.0 { -sign } else { sign }
}

/// Returns the positions of series, the best first: by the mean of their ranks in the panels, with ties in their original order. Equal
/// values in a panel have the same rank, and an absent value has none.
fn order(panels: &[Vec<Option<f64>>]) -> Vec<usize> {
    let many = panels.first().map_or(0, Vec::len);
    let rank = |panel: &Vec<Option<f64>>, at: usize| {
        let own = panel[at]?;
        Some(panel.iter().flatten().filter(|value| **value < own).count() as f64)
    };
    let mean = |at: usize| {
        let ranks: Vec<f64> = panels.iter().filter_map(|panel| rank(panel, at)).collect();
        if ranks.is_empty() { f64::INFINITY } else { ranks.iter().sum::<f64>() / ranks.len() as f64 }
    };
    let means: Vec<f64> = (0..many).map(mean).collect();
    let mut order: Vec<usize> = (0..many).collect();
    order.sort_by(|&a, &b| means[a].total_cmp(&means[b]));
    order
}

/// Draws means in order, the best first.
fn ranked(request: &FigureRequest, rows: &FigureRows) -> Picture {
    let means = Means::new(request, rows);
    let whiskers = request.bands.unwrap_or(true);
    let all = 0..means.series.len();
    let at = |facet: usize, one: usize| means.at(facet, one, 0, 0);
    let value = |facet: usize, sign: f64, one: usize| at(facet, one).map(|(interval, _)| sign * interval.mean);
    let values: Vec<Vec<Option<f64>>> = means
        .facets
        .iter()
        .enumerate()
        .map(|(facet, title)| all.clone().map(|one| value(facet, sign(request, title), one)).collect())
        .collect();
    let order = order(&values);
    let names: Vec<String> = order.iter().map(|&one| means.series[one].label.clone()).collect();
    let row = |facet: usize, one: usize| {
        let (interval, _) = at(facet, one)?;
        let end = |end: Option<f64>| end.filter(|_| whiskers).map_or(f64::NAN, |end| means.clip(end));
        let (low, high) = (end(interval.low), end(interval.high));
        let interval = Interval { mean: interval.mean, low, high, n: interval.n as u64 };
        Some(ForestRow { key: means.series[one].key.clone(), interval, ..ForestRow::default() })
    };
    let baseline = means.series.iter().position(|one| one.key == rows.baseline);
    let panel = |(facet, title): (usize, &String)| ForestPanel {
        title: title.clone(),
        rows: order.iter().map(|&one| row(facet, one)).collect(),
        line: baseline.and_then(|one| at(facet, one)).map_or(f64::NAN, |(interval, _)| interval.mean),
    };
    let panels: Vec<ForestPanel> = means.facets.iter().enumerate().map(panel).collect();
    let mut data = Data::new(["panel", "series", y_name(request), "low", "high", "n"]);
    data.columns.extend(request.counts().map(str::to_owned));
    for (facet, panel) in panels.iter().enumerate() {
        for ((name, row), &one) in names.iter().zip(&panel.rows).zip(&order) {
            let Some(row) = row else { continue };
            let numbers = [row.interval.mean, row.interval.low, row.interval.high].map(exactly);
            let mut line: Vec<String> = [panel.title.clone(), name.clone()].into_iter().chain(numbers).collect();
            line.push(row.interval.n.to_string());
            let weight = at(facet, one).map_or(0, |(_, weight)| *weight);
            line.extend(request.counts().map(|_| weight.to_string()));
            data.rows.push(line);
        }
    }
    let chart = request.chart(panels.len(), request.y_axis(), Axis::number(""));
    let down = panels.len().div_ceil(chart.columns.unwrap_or(1).max(1)) as f64;
    let chart = tall(request, chart, down * (FOREST_ROW * names.len() as f64 + 20.0) + 34.0);
    let good = if request.y.iter().all(|column| column.better == Better::Neither) { "largest" } else { "best" };
    let ranks_of = if panels.len() > 1 { " by the mean of the ranks in the panels" } else { "" };
    let line = if baseline.is_some() { format!("; the line is at {}", rows.baseline) } else { String::new() };
    let caption = format!(
        "{}, the {good} first{ranks_of}{}{line}",
        request.subject(),
        over(means.seeds(), &means.averaged, if whiskers { "whiskers" } else { "no whiskers" })
    );
    let keys: Vec<&str> = means.series.iter().map(|one| one.key.as_str()).collect();
    Picture { svg: ranks(&chart, &names, &panels, &keys), data, caption }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_first_and_ties_stay_as_they_come() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(order(&[some(&[3.0, 1.0, 2.0])]), [1, 2, 0]);
        assert_eq!(order(&[some(&[2.0, 1.0, 2.0, 1.0])]), [1, 3, 0, 2]);
        assert_eq!(order(&[some(&[0.0, -0.0, -1.0])]), [2, 0, 1], "there is one zero");
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn several_panels_have_the_order_of_their_mean_ranks() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        // The ranks are 0, 1, 2 and 1, 0, 2, and 0, 1, 2. Values are not used, since one panel has far larger ones.
        let panels = [some(&[1.0, 2.0, 3.0]), some(&[900.0, 100.0, 990.0]), some(&[1.0, 2.0, 3.0])];
        assert_eq!(order(&panels), [0, 1, 2]);
        let absent = vec![None, Some(5.0), Some(4.0)];
        assert_eq!(order(std::slice::from_ref(&absent)), [2, 1, 0], "a series without values is last");
        assert_eq!(order(&[absent, some(&[9.0, 8.0, 7.0])]), [2, 1, 0]);
    }
}
