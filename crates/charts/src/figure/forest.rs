//! Forest plots: one row per comparison, with a marker at its mean and a line for its interval, and a reference line.

use super::canvas::{GREY, LayerGroup};
use super::frame::{Horizontal, Outline, Vertical, frame};
use super::legend::{Sample, entries, hollow, marker};
use super::many::{beyond_note, near};
use super::scale::{RangeEnds, drawable, extent, shown};
use super::style::looks;
use super::{Axis, Chart, Interval};

/// The height of a row.
pub const ROW: f64 = 11.0;

/// One comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForestRow {
    /// Its name in the legend; a row without a name is not listed there.
    pub label: String,
    /// The key that selects its colour.
    pub key: String,
    /// The mean and its interval.
    pub interval: Interval,
    /// Whether the difference is not statistically significant; its marker is then hollow.
    pub open: bool,
}

/// One of several charts with the same rows and axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForestPanel {
    /// Its heading.
    pub title: String,
    /// The rows, one per name.
    pub rows: Vec<Option<ForestRow>>,
    /// The value of the reference line across the rows; no line if it is not a number.
    pub line: f64,
}

/// Draws charts of comparisons, side by side. `names` are left of their rows, the first one on top.
pub fn forest(chart: &Chart, names: &[String], panels: &[ForestPanel]) -> String {
    draw(chart, names, panels, &[], None)
}

/// Draws charts of values that are compared with one another. The axis shows all means, and of the intervals only the part near the means;
/// a note states how many are cut. Styles are assigned in the order of `keys`, independent of the order of the rows.
pub fn ranks(chart: &Chart, names: &[String], panels: &[ForestPanel], keys: &[&str]) -> String {
    let rows = || panels.iter().flat_map(|panel| panel.rows.iter().flatten()).map(|row| row.interval);
    let means: Vec<f64> = rows().map(|one| one.mean).chain(panels.iter().map(|panel| panel.line)).collect();
    let ends: Vec<(f64, f64)> = rows().map(|one| (one.low, one.high)).collect();
    match near(&chart.x, &means, &ends) {
        None => draw(chart, names, panels, keys, None),
        Some((range, beyond)) => {
            let chart = Chart { x: Axis { range: Some(range), ..chart.x.clone() }, ..chart.clone() };
            draw(&chart, names, panels, keys, beyond_note(beyond))
        }
    }
}

fn draw(chart: &Chart, names: &[String], panels: &[ForestPanel], first: &[&str], note: Option<String>) -> String {
    let all: Vec<&ForestRow> = panels.iter().flat_map(|panel| panel.rows.iter().flatten()).collect();
    let keys: Vec<&str> = all.iter().map(|row| row.key.as_str()).collect();
    let looks = looks(&[first, &keys].concat()).split_off(first.len());
    let good = |row: &&&ForestRow| shown(&chart.x, row.interval.mean);
    let lines =
        panels.iter().filter(|panel| panel.rows.iter().flatten().any(|row| good(&&row))).map(|panel| panel.line);
    let ends = all.iter().filter(good).flat_map(|row| [row.interval.mean, row.interval.low, row.interval.high]);
    let ends = ends.chain(lines);
    let labels = all.iter().zip(&looks).map(|(row, look)| (row.label.as_str(), Sample::Point(look.clone())));
    let mut frame = frame(Outline {
        chart,
        titles: panels.iter().map(|panel| panel.title.as_str()).collect(),
        x: Horizontal::Values(extent(&chart.x, ends), RangeEnds::Ticks),
        y: Vertical::Names(names),
        legend: vec![entries(labels)],
        note,
    });
    let mut nth = 0;
    for (at, place) in frame.panels.clone().into_iter().enumerate() {
        let rows = panels.get(at).map_or(&[][..], |panel| &panel.rows);
        if !rows.iter().flatten().any(|row| good(&&row)) {
            frame.no_data(place);
        }
        let x = |value: f64| place.x(frame.x.at(value));
        if let Some(line) = panels.get(at).map(|panel| panel.line).filter(|line| line.is_finite()) {
            let line = [(x(line), place.y(0.0)), (x(line), place.y(1.0))];
            frame.canvas.layer(LayerGroup::class("axis"), |pen| pen.path(&line, &GREY, 0.75));
        }
        let ((left, _), (right, _)) = place.corners();
        for (row_at, row) in rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let look = &looks[nth];
            nth += 1;
            if !shown(&chart.x, row.interval.mean) {
                continue;
            }
            let y = place.y(frame.y.at(names.len() as f64 - row_at as f64 - 0.5));
            let (low, high) = (row.interval.low, row.interval.high);
            let ends = (drawable(low) && drawable(high)).then(|| (x(low), x(high)));
            let spot = (x(row.interval.mean), y);
            let group = LayerGroup { key: Some(&row.key), tip: Some(&row.label), ..LayerGroup::class("series") };
            frame.canvas.layer(group, |pen| {
                if let Some((low, high)) = ends {
                    pen.path(&[(low.clamp(left, right), y), (high.clamp(left, right), y)], &look.color, 1.0);
                    // An interval that extends beyond the axis has no mark at that end.
                    for end in [low, high].into_iter().filter(|end| (left - 0.1..=right + 0.1).contains(end)) {
                        pen.path(&[(end, y - 1.8), (end, y + 1.8)], &look.color, 0.9);
                    }
                }
                if row.open { hollow(pen, spot, look) } else { marker(pen, spot, look) }
            });
        }
    }
    frame.canvas.finish()
}
