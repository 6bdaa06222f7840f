//! A template for a kind of figure: values as points, with one panel per facet and one curve per series of the plan.
//!
//! For means over runs, start from `bars.rs` (names along x) or `lines.rs` (numbers along x): `Means::of` computes the mean for every
//! panel, series and place. The charts for numbers along x are `points` and `small_multiples`; those for names are `bar_panels` and
//! `boxes`.

use plimsoll_charts::figure::{Panel, Series, points};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, data, x_axis};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, split};
use crate::requests::field::Datum;
use crate::requests::rows::FigureRows;

pub(super) static ROW: KindRow = KindRow {
    name: "template",
    about: "values as points",
    table: Table::Runs,
    x: X::Numbers,
    takes: &["series", "facet", "scale"],
    draw: Draw::Rows(template),
    ..KindRow::PLAIN
};

fn template(request: &FigureRequest, rows: &FigureRows) -> Picture {
    let (facets, names, groups) = split(&rows.rows);
    let mut panels: Vec<Panel> = Vec::new();
    for (title, curves) in facets.iter().zip(&groups) {
        let curve = |(name, rows): (&super::Series, &Vec<_>)| {
            let x = |row: &&super::super::rows::FigureRow| match row.at.first() {
                Some(Datum::Number(x)) => Some((*x, row.y)),
                _ => None,
            };
            Series::new(name.label.clone(), rows.iter().filter_map(x).collect())
        };
        panels.push(Panel { title: title.clone(), series: names.iter().zip(curves).map(curve).collect() });
    }
    let chart = request.chart(panels.len(), x_axis(request), request.y_axis());
    let caption = format!("{}{}", request.subject(), request.by());
    Picture { svg: points(&chart, &panels), data: data(request, &panels), caption }
}
