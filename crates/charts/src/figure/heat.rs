//! Heat maps: one cell per pair of values of two axes. Larger values are darker, and the number is printed if it fits.

use plotters::style::{RGBColor, WHITE};

use super::canvas::{Anchor, GREY, INK, LayerGroup, TextDirection};
use super::frame::{Horizontal, Outline, Vertical, frame};
use super::legend::{LegendEntry, Sample};
use super::names::SMALL;
use super::scale::drawable;
use super::style::SeriesStyle;
use super::{Axis, Category, Chart};
use crate::font;

/// The height of a row.
pub const ROW: f64 = 15.0;

/// The colours from the least to the largest value, distinct by lightness alone.
const SHADES: [RGBColor; 5] = [
    RGBColor(239, 243, 248),
    RGBColor(189, 210, 232),
    RGBColor(120, 168, 208),
    RGBColor(44, 118, 175),
    RGBColor(8, 54, 108),
];

/// One of several maps with the same axes and colours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatPanel {
    /// Its heading.
    pub title: String,
    /// The rows, the first one on top; each has one value per column.
    pub rows: Vec<Vec<Option<f64>>>,
}

/// Draws maps of values over columns and rows. All maps share one colour scale, which is logarithmic if `scale` is; `words` formats a
/// value. The legend explains the colours.
pub fn heat(
    chart: &Chart,
    columns: &[Category],
    rows: &[String],
    scale: &Axis,
    words: &dyn Fn(f64) -> String,
    panels: &[HeatPanel],
) -> String {
    let usable = |value: &f64| drawable(*value) && (!scale.log || *value > 0.0);
    let values = || panels.iter().flat_map(|panel| panel.rows.iter().flatten().flatten().copied()).filter(usable);
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let at = |value: f64| match (high > low, scale.log) {
        (false, _) => 0.5,
        (true, true) => (value / low).ln() / (high / low).ln(),
        (true, false) => (value - low) / (high - low),
    };
    let back = |part: f64| if scale.log { low * (high / low).powf(part) } else { low + (high - low) * part };
    let mut legend = Vec::new();
    if values().next().is_some() {
        legend.push(vec![LegendEntry { text: scale.label.clone(), sample: Sample::Heading }]);
        let steps = if high > low { 5 } else { 1 };
        let shades = (0..steps).map(|nth| {
            let part = if steps > 1 { f64::from(nth) / 4.0 } else { 0.5 };
            let value = if high > low { back(part) } else { low };
            LegendEntry { text: words(value), sample: Sample::Bar(SeriesStyle::plain(shade(part))) }
        });
        legend.push(shades.collect());
    }
    let mut frame = frame(Outline {
        chart,
        titles: panels.iter().map(|panel| panel.title.as_str()).collect(),
        x: Horizontal::Categories(columns),
        y: Vertical::Names(rows),
        legend,
        note: None,
    });
    for (nth, place) in frame.panels.clone().into_iter().enumerate() {
        let Some(panel) = panels.get(nth).filter(|panel| panel.rows.iter().flatten().flatten().any(usable)) else {
            frame.no_data(place);
            continue;
        };
        let (wide, tall) = (1.0 / columns.len().max(1) as f64, 1.0 / rows.len().max(1) as f64);
        let cells: Vec<(usize, usize, Option<f64>)> = panel
            .rows
            .iter()
            .enumerate()
            .flat_map(|(row, values)| values.iter().enumerate().map(move |(column, value)| (row, column, *value)))
            .collect();
        frame.canvas.layer(LayerGroup::class("cells"), |pen| {
            for &(row, column, value) in &cells {
                let (left, right) = (place.x(column as f64 * wide), place.x((column + 1) as f64 * wide));
                let (top, bottom) = (place.y(1.0 - row as f64 * tall), place.y(1.0 - (row + 1) as f64 * tall));
                let Some(value) = value.filter(usable) else {
                    // A crossed-out cell has no value.
                    pen.rectangle((left, top), (right, bottom), &WHITE);
                    pen.path(&[(left, top), (right, bottom)], &GREY, 0.75);
                    continue;
                };
                let part = at(value);
                pen.rectangle((left, top), (right, bottom), &shade(part));
                let text = words(value);
                if font::width(&text, SMALL) <= right - left - 2.0 && bottom - top >= SMALL + 1.0 {
                    let ink = if part > 0.55 { WHITE } else { INK };
                    let anchor = ((left + right) / 2.0, (top + bottom) / 2.0 + 0.36 * SMALL);
                    pen.text(&text, SMALL, ink, anchor, Anchor::Middle, TextDirection::Level);
                }
            }
        });
    }
    frame.canvas.finish()
}

/// Returns the colour at a position from 0 to 1.
fn shade(part: f64) -> RGBColor {
    let place = part.clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
    let (from, to) = (SHADES[place.floor() as usize], SHADES[place.ceil() as usize]);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * place.fract()).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_get_darker() {
        let light = |part: f64| {
            let color = shade(part);
            u32::from(color.0) + u32::from(color.1) + u32::from(color.2)
        };
        assert!((0..100).all(|at| light(f64::from(at) / 100.0) > light(f64::from(at + 1) / 100.0)));
    }

    #[test]
    fn what_was_not_measured_is_crossed_out() {
        let chart = Chart::new(Axis::number("load"), Axis::number("machines"));
        let panel = |rows| HeatPanel { title: "drf".into(), rows };
        let names = ["a".to_owned(), "b".to_owned()];
        let columns = [Category::new("1"), Category::new("2")];
        let words = |value: f64| format!("{value:.1}");
        let draw = |rows| heat(&chart, &columns, &names, &Axis::number("wait"), &words, &[panel(rows)]);
        let svg = draw(vec![vec![Some(1.0), None], vec![Some(f64::NAN), Some(2.0)]]);
        assert!(svg.contains("wait") && svg.contains("\n2.0\n") && !svg.contains("NaN"));
        assert!(draw(vec![vec![None; 2]; 2]).contains("no data"));
        assert!(!draw(vec![vec![Some(3.0); 2]; 2]).contains("NaN"));
    }
}
