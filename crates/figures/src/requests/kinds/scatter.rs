//! Scatter plots: pairs of values, one point per row.

use plimsoll_charts::figure::{Chart, Panel, Series, points};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, data, x_axis};
use crate::requests::check::FigureRequest;
use crate::requests::draw::{Picture, split};
use crate::requests::field::Datum;
use crate::requests::rows::FigureRow;

pub(super) static ROW: KindRow = KindRow {
    name: "scatter",
    about: "pairs of values",
    table: Table::Runs,
    x: X::Numbers,
    takes: &["series", "facet", "scale"],
    draw: Draw::Rows(|request, rows| scatter(request, &rows.rows)),
    ..KindRow::PLAIN
};

/// Draws pairs of values, one point per row.
fn scatter(request: &FigureRequest, rows: &[FigureRow]) -> Picture {
    let (facets, names, groups) = split(rows);
    let point = |row: &&FigureRow| if let Some(Datum::Number(x)) = row.at.first() { Some((*x, row.y)) } else { None };
    let panel = |(title, panel): (&String, &Vec<Vec<&FigureRow>>)| Panel {
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
    let chart = Chart { size_pt, ..chart };
    let what = request.counts().map_or("row", |what| what.trim_end_matches('s'));
    let caption = format!("{}{}: one point per {what}", request.subject(), request.by());
    Picture { svg: points(&chart, &panels), data: data(request, &panels), caption }
}
