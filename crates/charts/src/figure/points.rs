//! Points: one marker per pair of values.

use super::bubbles::padded;
use super::canvas::LayerGroup;
use super::frame::{Horizontal, Outline, Vertical, frame};
use super::legend::{Sample, entries, marker};
use super::many::{self, MANY};
use super::scale::{RangeEnds, drawable, extent, shown};
use super::style::looks;
use super::{Chart, Panel, Series};

/// Maximum number of points; beyond it, only one of several coincident points is drawn.
const MOST: usize = 4_000;

/// Draws charts of points that share axes and legend. Only names and points of the series are used.
pub fn points(chart: &Chart, panels: &[Panel]) -> String {
    match many::curves(&Chart { reference: None, ..chart.clone() }, panels) {
        None => draw(chart, panels),
        Some((chart, turned)) => draw(&chart, &turned),
    }
}

fn draw(chart: &Chart, panels: &[Panel]) -> String {
    let all: Vec<&Series> = panels.iter().flat_map(|panel| &panel.series).collect();
    let keys: Vec<&str> = all.iter().map(|one| one.key.as_str()).collect();
    let looks = looks(&keys);
    let visible = |point: &&(f64, f64)| shown(&chart.x, point.0) && shown(&chart.y, point.1);
    let every = || all.iter().flat_map(|one| &one.points);
    let finite = every().filter(|point| drawable(point.0) && drawable(point.1)).count();
    // Points with their panel's heading as their label need no legend.
    let headed = |panel: &Panel| panel.series.len() == 1 && panel.series[0].label == panel.title;
    let headed = panels.len() > MANY && panels.iter().all(headed);
    let listed = all.iter().zip(&looks).filter(|_| !headed);
    let labels = listed.map(|(one, look)| (one.label.as_str(), Sample::Point(look.clone())));
    let ends = |pick: fn(&(f64, f64)) -> f64, axis| padded(axis, extent(axis, every().filter(visible).map(pick)));
    let mut frame = frame(Outline {
        chart,
        titles: panels.iter().map(|panel| panel.title.as_str()).collect(),
        x: Horizontal::Values(ends(|point| point.0, &chart.x), RangeEnds::Ticks),
        y: Vertical::Values(ends(|point| point.1, &chart.y), RangeEnds::Ticks),
        legend: vec![entries(labels)],
        note: super::hidden_note(finite - every().filter(visible).count()),
    });
    let mut nth = 0;
    for (at, place) in frame.panels.clone().into_iter().enumerate() {
        let series = panels.get(at).map_or(&[][..], |panel| &panel.series);
        if !series.iter().any(|one| one.points.iter().any(|point| visible(&point))) {
            frame.no_data(place);
        }
        let (from, to) = place.corners();
        let clip = frame.canvas.clip((from.0 - 2.5, from.1 - 2.5), (to.0 + 2.5, to.1 + 2.5));
        for one in series {
            let spot = |&(x, y): &(f64, f64)| (place.x(frame.x.at(x)), place.y(frame.y.at(y)));
            let mut spots: Vec<(f64, f64)> = one.points.iter().filter(visible).map(spot).collect();
            if spots.len() > MOST {
                let cell = |spot: &(f64, f64)| ((spot.0 * 2.0) as i64, (spot.1 * 2.0) as i64);
                spots.sort_by_key(cell);
                spots.dedup_by_key(|spot| cell(spot));
            }
            let group = LayerGroup {
                key: Some(&one.key),
                tip: Some(&one.label),
                clip: Some(clip),
                ..LayerGroup::class("series")
            };
            frame.canvas.layer(group, |pen| spots.iter().for_each(|&spot| marker(pen, spot, &looks[nth])));
            nth += 1;
        }
    }
    frame.canvas.finish()
}
