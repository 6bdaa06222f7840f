//! Bubbles: points with a size, such as demands and their numbers of tasks.
//!
//! A bubble's area grows with the logarithm of its size, as in Figure 1 of the DRF paper (Ghodsi et al., NSDI 2011).

use std::collections::BTreeMap;

use super::canvas::LayerGroup;
use super::frame::{Horizontal, Outline, Vertical, frame};
use super::legend::{LegendEntry, Sample, bubble};
use super::scale::{RangeEnds, drawable, extent, shown};
use super::style::{SeriesStyle, looks};
use super::{Axis, Chart};

/// The radius of the largest bubble, in points, for charts with up to this number of bubbles.
const LARGEST: [(usize, f64); 3] = [(80, 8.0), (800, 6.0), (usize::MAX, 4.5)];

/// Maximum number of bubbles that are drawn without merging.
const MOST: usize = 3_000;

/// The bubbles of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BubbleSeries {
    /// Its name in the legend.
    pub label: String,
    /// The key that selects its colour.
    pub key: String,
    /// `(x, y, size)`; sizes below 1 count as 1.
    pub points: Vec<(f64, f64, f64)>,
}

/// Draws a chart of bubbles with a legend of sizes under the heading `size_label` (such as `tasks`).
///
/// More than 3,000 bubbles are merged: bubbles in one cell of at most 2 points add their sizes.
pub fn bubbles(chart: &Chart, size_label: &str, series: &[BubbleSeries]) -> String {
    let keys: Vec<&str> = series.iter().map(|one| one.key.as_str()).collect();
    let looks = looks(&keys);
    let all = || series.iter().flat_map(|one| &one.points);
    let finite = |point: &&(f64, f64, f64)| drawable(point.0) && drawable(point.1) && drawable(point.2);
    let visible = |point: &&(f64, f64, f64)| finite(point) && shown(&chart.x, point.0) && shown(&chart.y, point.1);
    let hidden = all().filter(finite).count() - all().filter(visible).count();
    let largest = all().filter(visible).map(|point| point.2).fold(1.0, f64::max);
    let count = all().filter(visible).count();
    let most = LARGEST.into_iter().find(|&(up_to, _)| count <= up_to).map_or(4.5, |(_, radius)| radius);
    let radius = |size: f64| radius(size, largest, most);

    let entry = |(one, look): (&BubbleSeries, &SeriesStyle)| LegendEntry {
        text: one.label.clone(),
        sample: Sample::Bubble(look.clone()),
    };
    let names: Vec<LegendEntry> = series.iter().zip(&looks).map(entry).filter(|entry| !entry.text.is_empty()).collect();
    let empty = count == 0;
    let sizes = if empty { Vec::new() } else { size_entries(size_label, largest, radius) };
    let mut frame = frame(Outline {
        chart,
        titles: vec![""],
        x: Horizontal::Values(padded(&chart.x, extent(&chart.x, all().filter(visible).map(|p| p.0))), RangeEnds::Ticks),
        y: Vertical::Values(padded(&chart.y, extent(&chart.y, all().filter(visible).map(|p| p.1))), RangeEnds::Ticks),
        legend: vec![names, sizes],
        note: super::hidden_note(hidden),
    });
    let panel = frame.panels[0];
    if empty {
        frame.no_data(panel);
        return frame.canvas.finish();
    }
    let (from, to) = panel.corners();
    let clip = frame.canvas.clip(from, to);
    for (one, look) in series.iter().zip(&looks) {
        let place =
            |point: &(f64, f64, f64)| (panel.x(frame.x.at(point.0)), panel.y(frame.y.at(point.1)), point.2.max(1.0));
        let mut placed = merged(one.points.iter().filter(visible).map(place).collect());
        // Large bubbles are drawn first, so that they do not hide smaller ones.
        placed.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.total_cmp(&b.0)).then(a.1.total_cmp(&b.1)));
        let group =
            LayerGroup { key: Some(&one.key), tip: Some(&one.label), clip: Some(clip), ..LayerGroup::class("series") };
        frame.canvas.layer(group, |pen| {
            for (x, y, size) in placed {
                bubble(pen, (x, y), radius(size.min(largest)), look);
            }
        });
    }
    frame.canvas.finish()
}

/// Returns the radius of a bubble; its area grows with the logarithm of its size, up to the radius `most`.
fn radius(size: f64, largest: f64, most: f64) -> f64 {
    let share = (1.0 + size.max(1.0)).ln() / (1.0 + largest).ln();
    most * share.sqrt()
}

/// Widens an extent, so that the outermost bubbles are completely visible if the axis has no fixed range.
pub(super) fn padded(axis: &Axis, extent: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let (low, high) = extent?;
    if axis.log {
        let factor = (high / low).powf(0.04).max(1.1);
        return Some((low / factor, high * factor));
    }
    let pad = 0.05 * (high - low);
    Some((if low >= 0.0 { (low - pad).max(0.0) } else { low - pad }, high + pad))
}

/// Returns the legend of sizes: powers of ten, at most four of them.
fn size_entries(label: &str, largest: f64, radius: impl Fn(f64) -> f64) -> Vec<LegendEntry> {
    let top = (largest.log10() + 1e-9).floor().max(0.0) as i32;
    let every = (top / 4 + 1).max(1);
    let mut entries = vec![LegendEntry { text: format!("{label}:"), sample: Sample::Heading }];
    for power in (0..=top).filter(|power| power % every == 0) {
        let size = 10f64.powi(power);
        let text = match power {
            0..=3 => format!("{size:.0}"),
            4..=5 => format!("{:.0}k", size / 1e3),
            6..=8 => format!("{:.0}M", size / 1e6),
            _ => format!("1e{power}"),
        };
        entries.push(LegendEntry { text, sample: Sample::Ring(radius(size)) });
    }
    if label.is_empty() {
        entries.remove(0);
    }
    entries
}

/// Merges more than [`MOST`] bubbles: bubbles in one cell add their sizes. Cells grow until at most [`MOST`] bubbles remain, or cells
/// are 2 points wide.
fn merged(bubbles: Vec<(f64, f64, f64)>) -> Vec<(f64, f64, f64)> {
    let mut bubbles = bubbles;
    for cell in [0.1, 0.5, 1.0, 2.0] {
        if bubbles.len() <= MOST {
            break;
        }
        let mut cells: BTreeMap<(i64, i64), f64> = BTreeMap::new();
        for (x, y, size) in &bubbles {
            *cells.entry(((x / cell).round() as i64, (y / cell).round() as i64)).or_default() += size;
        }
        bubbles = cells.into_iter().map(|((x, y), size)| (x as f64 * cell, y as f64 * cell, size)).collect();
    }
    bubbles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_the_logarithm_of_the_size() {
        let area = |size: f64| radius(size, 999.0, 8.0).powi(2);
        assert!((area(999.0) / area(99.0) - 1.5).abs() < 1e-9);
        assert!((radius(999.0, 999.0, 8.0) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn merging_keeps_the_sum() {
        let many: Vec<(f64, f64, f64)> =
            (0..50_000).map(|at| (f64::from(at % 200), f64::from(at / 250), 1.0)).collect();
        let fewer = merged(many);
        assert!(fewer.len() <= 200 * 200);
        assert_eq!(fewer.iter().map(|bubble| bubble.2).sum::<f64>(), 50_000.0);
    }
}
