//! Bars: means over names, with whiskers.

use plimsoll_charts::figure::{BarPanel, BarSeries, Category, Data, Interval, bar_panels};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, category, key, names_axis, x_name, y_name};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, over};
use crate::requests::field::{Datum, Field};
use crate::requests::rows::Means;

pub(super) static ROW: KindRow = KindRow {
    name: "bars",
    about: "means over names, with whiskers",
    table: Table::Runs,
    x: X::Names,
    takes: &["series", "facet", "stat", "scale", "bands"],
    draw: Draw::Rows(|request, rows| bars(request, &Means::new(request, rows))),
    ..KindRow::PLAIN
};

/// Draws means over names, with whiskers.
fn bars(request: &FigureRequest, means: &Means) -> Picture {
    let whiskers = request.bands.unwrap_or(true);
    let order: Vec<usize> = (0..means.places[0].len()).collect();
    let at = |facet: usize, series: usize, place: usize| means.at(facet, series, place, 0);
    let weight = |place: usize| {
        let all = (0..means.facets.len()).flat_map(|facet| (0..means.series.len()).map(move |one| (facet, one)));
        all.filter_map(|(facet, one)| at(facet, one, place)).map(|(_, weight)| *weight).max().unwrap_or(0)
    };
    let label = |place: usize| match (&request.x, &means.places[0][place]) {
        (Some(Field::Metric), Datum::Text(name)) => request.heading(name),
        (_, datum) => datum.words(),
    };
    let categories: Vec<Category> =
        order.iter().map(|&place| category(label(place), weight(place), request.counts())).collect();
    let bar = |facet: usize, one: usize, place: usize| {
        let (interval, _) = at(facet, one, place)?;
        let ends = (interval.low, interval.high);
        let (low, high) = if let (Some(low), Some(high), true) = (ends.0, ends.1, whiskers) {
            (means.clip(low), means.clip(high))
        } else {
            (interval.mean, interval.mean)
        };
        Some(Interval { mean: interval.mean, low, high, n: interval.n as u64 })
    };
    let panel = |(facet, title): (usize, &String)| BarPanel {
        title: title.clone(),
        series: means
            .series
            .iter()
            .enumerate()
            .map(|(one, name)| BarSeries {
                label: name.label.clone(),
                key: key(request, name),
                values: order.iter().map(|&place| bar(facet, one, place)).collect(),
            })
            .collect(),
    };
    let panels: Vec<BarPanel> = means.facets.iter().enumerate().map(panel).collect();
    let chart = request.chart(panels.len(), names_axis(request), request.y_axis());
    let caption = format!(
        "{}{}{}",
        request.subject(),
        request.by(),
        over(means.seeds(), &means.averaged, if whiskers { "whiskers" } else { "no whiskers" })
    );
    let mut data = Data::of_bars(["panel", x_name(request), "series", y_name(request)], &categories, &panels);
    if let Some(what) = request.counts() {
        data.columns.push(what.to_owned());
        let weights: Vec<(String, u64)> = order.iter().map(|&place| (label(place), weight(place))).collect();
        let of = |name: &str| weights.iter().find(|(label, _)| label == name).map_or(0, |(_, weight)| *weight);
        data.rows.iter_mut().for_each(|row| row.push(of(&row[1]).to_string()));
    }
    Picture { svg: bar_panels(&chart, &categories, &panels), data, caption }
}
