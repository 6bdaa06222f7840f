//! Heat maps: means over two axes.

use plimsoll_charts::figure::{Axis, Category, Data, HEAT_ROW, HeatPanel, Measure, exactly, heat};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, names_axis, tall, x_name, y_name};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, list};
use crate::requests::field::Datum;
use crate::requests::rows::Means;

pub(super) static ROW: KindRow = KindRow {
    name: "heatmap",
    about: "means over two axes",
    table: Table::Runs,
    x: X::Names,
    takes: &["facet", "stat", "scale"],
    draw: Draw::Rows(|request, rows| map(request, &Means::new(request, rows))),
    pairs: true,
    ..KindRow::PLAIN
};

/// Draws means over two axes.
fn map(request: &FigureRequest, means: &Means) -> Picture {
    let columns: Vec<usize> = means.sorted();
    let mut rows: Vec<usize> = (0..means.places[1].len()).collect();
    if means.places[1].iter().all(|place| matches!(place, Datum::Number(_))) {
        // Numbers increase upwards, as on any axis.
        let value = |at: &usize| if let Datum::Number(value) = means.places[1][*at] { value } else { 0.0 };
        rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
    }
    let second = request.rows.as_ref().expect("a heat map has two fields");
    let scale = request.y_axis();
    let words = |value: f64| match scale.measure {
        Measure::Fraction => format!("{} %", trimmed(100.0 * value)),
        _ => trimmed(value),
    };
    let unit = if scale.measure.is_time() { " (s)" } else { "" };
    let label = request.labels[1].clone();
    let scale = Axis { label: format!("{}{unit}", scale.label), log: request.log[1], ..scale };
    let panel = |(facet, title): (usize, &String)| HeatPanel {
        title: title.clone(),
        rows: rows
            .iter()
            .map(|&row| columns.iter().map(|&x| means.at(facet, 0, x, row).map(|(mean, _)| mean.mean)).collect())
            .collect(),
    };
    let panels: Vec<HeatPanel> = means.facets.iter().enumerate().map(panel).collect();
    let mut data = Data::new(["panel", x_name(request), second.name(), y_name(request), "low", "high", "n"]);
    for (facet, title) in means.facets.iter().enumerate() {
        for &row in rows.iter().rev() {
            for &x in &columns {
                let Some((interval, _)) = means.at(facet, 0, x, row) else { continue };
                let names = [title.clone(), means.places[0][x].words(), means.places[1][row].words()];
                let ends = [interval.low, interval.high]
                    .map(|end| end.map(|end| exactly(means.clip(end))).unwrap_or_default());
                let rest = [exactly(interval.mean)].into_iter().chain(ends).chain([interval.n.to_string()]);
                data.rows.push(names.into_iter().chain(rest).collect());
            }
        }
    }
    let names: Vec<String> = rows.iter().map(|&row| means.places[1][row].words()).collect();
    let categories: Vec<Category> = columns.iter().map(|&x| Category::new(means.places[0][x].words())).collect();
    let axis = second.axis();
    let seconds = if axis.measure.is_time() { " (s)" } else { "" };
    let y = Axis::number(label.unwrap_or_else(|| format!("{}{seconds}", axis.label)));
    let chart = request.chart(panels.len(), names_axis(request), y);
    let many = panels.len().div_ceil(chart.columns.unwrap_or(1).max(1)) as f64;
    let chart = tall(request, chart, many * (HEAT_ROW * names.len() as f64 + 22.0) + 44.0);
    let runs = match (means.seeds().1, &means.averaged[..]) {
        (0 | 1, []) => String::new(),
        (0 | 1, averaged) => format!("; means over {}", list(averaged)),
        (most, []) => format!("; means over {most} runs"),
        (most, averaged) => format!("; means over {most} seeds, each seed the mean over {}", list(averaged)),
    };
    let caption = format!("{}{} and {}{runs}", request.subject(), request.by(), second.name().replace('_', " "));
    Picture { svg: heat(&chart, &categories, &names, &scale, &words, &panels), data, caption }
}

/// Formats a number with three digits.
fn trimmed(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{value:.1e}"),
        large if large >= 99.95 => format!("{value:.0}"),
        large if large >= 9.995 => format!("{value:.1}"),
        0.0 => "0".to_owned(),
        small if small < 0.01 => format!("{value:.0e}"),
        _ => format!("{value:.2}"),
    }
}
