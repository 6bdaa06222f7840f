//! Boxes: distributions over names, of all runs together.

use plimsoll_charts::figure::{BoxPanel, BoxSeries, Category, Data, Spread, boxes, exactly};
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, category, key, names_axis, x_name};
use crate::requests::check::FigureRequest;
use crate::requests::draw::Picture;
use crate::requests::rows::{FigureRow, NameOrder, RowMark};

pub(super) static ROW: KindRow = KindRow {
    name: "box",
    about: "distributions side by side",
    table: Table::Runs,
    x: X::Names,
    takes: &["series", "facet", "scale"],
    draw: Draw::Rows(|request, rows| boxed(request, &rows.rows)),
    mixes: |_| true,
    ..KindRow::PLAIN
};

/// Draws distributions over names, of all runs together.
fn boxed(request: &FigureRequest, rows: &[FigureRow]) -> Picture {
    let (mut facets, mut series, mut places) = (NameOrder::new(), NameOrder::new(), NameOrder::new());
    let mut groups: std::collections::HashMap<(usize, usize, usize), Vec<f64>> = std::collections::HashMap::new();
    for row in rows {
        let place = row.at.first().map_or(RowMark::Text(String::new()), RowMark::from_datum);
        let key = (facets.place(&row.facet), series.place(&row.series), places.place(&place));
        groups.entry(key).or_default().push(row.y);
    }
    let n = |place: usize| groups.iter().filter(|(key, _)| key.2 == place).map(|(_, values)| values.len()).max();
    let what = request.counts().or(Some("runs")).filter(|_| request.counts().is_some() || groups.len() <= 12);
    let categories: Vec<Category> = places
        .all
        .iter()
        .enumerate()
        .map(|(at, place)| category(place.datum().words(), n(at).unwrap_or(0) as u64, what))
        .collect();
    let panel = |(facet, title): (usize, &String)| BoxPanel {
        title: title.clone(),
        series: series
            .all
            .iter()
            .enumerate()
            .map(|(one, name)| BoxSeries {
                label: name.label.clone(),
                key: key(request, name),
                spreads: (0..places.all.len())
                    .map(|place| groups.get(&(facet, one, place)).and_then(|values| Spread::from_values(values)))
                    .collect(),
            })
            .collect(),
    };
    let panels: Vec<BoxPanel> = facets.all.iter().enumerate().map(panel).collect();
    let names = ["q05", "q25", "median", "q75", "q95", "mean", "n"];
    let mut data = Data::new(["panel", x_name(request), "series"].into_iter().chain(names));
    for panel in &panels {
        for one in &panel.series {
            for (category, spread) in categories.iter().zip(&one.spreads) {
                let Some(spread) = spread else { continue };
                let mut row = vec![panel.title.clone(), category.label.clone(), one.label.clone()];
                row.extend(spread.quantiles.iter().chain([&spread.mean]).map(|value| exactly(*value)));
                row.push(spread.n.to_string());
                data.rows.push(row);
            }
        }
    }
    let chart = request.chart(panels.len(), names_axis(request), request.y_axis());
    let caption = format!(
        "{}{}: quartiles with the median, whiskers from the 5 % to the 95 % quantile, and the mean as a marker, all runs \
         together; up to five values are drawn as points",
        request.subject(),
        request.by()
    );
    Picture { svg: boxes(&chart, &categories, &panels), data, caption }
}
