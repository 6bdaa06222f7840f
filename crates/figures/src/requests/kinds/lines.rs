//! Lines: means over numbers, with error bars or bands.

use plimsoll_charts::figure::{Join, MARKED, Panel, Series, small_multiples};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, beside, data, x_axis};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{FEW, Picture, over};
use crate::requests::field::{Datum, Field};
use crate::requests::rows::{FigureRows, Means};

pub(super) static ROW: KindRow = KindRow {
    name: "lines",
    about: "means over numbers, with error bars; with bands if there are more than 16 points",
    table: Table::Runs,
    x: X::Numbers,
    takes: &["series", "facet", "stat", "scale", "bands"],
    draw: Draw::Rows(lines),
    ..KindRow::PLAIN
};

/// Draws means over numbers, with error bars or bands.
fn lines(request: &FigureRequest, rows: &FigureRows) -> Picture {
    let means = Means::new(request, rows);
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
    let mut x = x_axis(request);
    if matches!(request.x, Some(Field::Axis(..))) {
        // The swept values have the ticks.
        let places = panels.iter().flat_map(|panel| &panel.series).flat_map(|one| &one.points).map(|point| point.0);
        x.ticks = places.collect();
        x.ticks.sort_by(f64::total_cmp);
        x.ticks.dedup();
    }
    let chart = beside(rows, request.chart(panels.len(), x, request.y_axis()));
    let few = match (few_any, request.counts()) {
        (true, Some(what)) => format!("; hollow markers represent fewer than {FEW} {what}"),
        _ => String::new(),
    };
    let longest = panels.iter().flat_map(|panel| &panel.series).map(|one| one.points.len()).max().unwrap_or(0);
    let words = match (bands, longest <= MARKED) {
        (true, true) => "error bars",
        (true, false) => "bands",
        (false, _) => "no bands",
    };
    let caption = format!("{}{}{}{few}", request.subject(), request.by(), over(means.seeds(), &means.averaged, words));
    Picture { svg: small_multiples(&chart, Join::Straight, &panels), data: data(request, &panels), caption }
}
