//! Stacked bars: the division of each whole into parts, in panels side by side.
//!
//! The part in percent is printed in every segment with room for it. The sheet is as wide as its bars need, at most a page, and has as
//! many rows of panels as necessary.

use plotters::style::{RGBColor, WHITE};

use super::canvas::{Anchor, INK, LayerGroup, Pen, TextDirection};
use super::frame::{Frame, Horizontal, Outline, Panel, Vertical, frame};
use super::legend::{Legend, LegendEntry, Sample};
use super::names::{SMALL, category_height};
use super::scale::{RangeEnds, drawable};
use super::style::{SeriesStyle, fills};
use super::{Axis, Category, Chart};
use crate::font;

/// The width for one bar in a panel, in points: with few bars and with many.
const ROOM: (f64, f64) = (42.0, 30.0);

/// The fraction of its room that a bar fills, and the width of the widest bar.
const FILLED: f64 = 0.8;
const WIDEST: f64 = 32.0;

/// The height of a panel.
const HEIGHT: f64 = 128.0;

/// The colour of the remainder of a whole.
const REST: RGBColor = RGBColor(242, 242, 242);

/// One panel of stacked bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    /// Its heading.
    pub title: String,
    /// For each layer, from the bottom up, its part of the whole in every category (0 to 1; more if the whole is exceeded). `None` draws
    /// nothing.
    pub layers: Vec<Vec<Option<f64>>>,
}

/// Draws stacked bars of parts of a whole: one panel per heading, one bar per category, one colour per layer, and the part in percent in
/// every segment with room for it. The sheet has the given width, or as much as it needs, at most a page.
pub fn stacked(
    label: &str,
    categories: &[Category],
    layers: &[String],
    panels: &[Stacks],
    width: Option<f64>,
) -> String {
    let looks = fills(layers.len());
    let entry =
        |(text, look): (&String, &SeriesStyle)| LegendEntry { text: text.clone(), sample: Sample::Bar(look.clone()) };
    let legend: Vec<LegendEntry> = layers.iter().zip(&looks).map(entry).collect();
    let chart = sheet(label, categories, &legend, panels, width);
    let highest = panels.iter().map(|panel| highest(panel, categories.len())).fold(1.0, f64::max);
    // A total slightly above the whole is a rounding error.
    let y = if highest < 1.0 + 1e-6 { chart.y.clone().range(0.0, 1.0) } else { chart.y.clone() };
    let chart = Chart { y, ..chart };
    let mut frame = frame(Outline {
        chart: &chart,
        titles: panels.iter().map(|panel| panel.title.as_str()).collect(),
        x: Horizontal::Categories(categories),
        y: Vertical::Values(Some((0.0, highest)), RangeEnds::Ticks),
        legend: vec![legend],
        note: None,
    });
    for (place, panel) in frame.panels.clone().into_iter().zip(panels) {
        bars(&mut frame, place, categories.len(), layers, &looks, panel);
    }
    let whole = frame.y.at(1.0);
    let corners: Vec<_> = frame.panels.iter().map(|panel| (panel.corners(), panel.y(0.0), panel.y(whole))).collect();
    frame.canvas.layer(LayerGroup::class("axis"), |pen| {
        for (((left, _), (right, _)), zero, whole) in corners {
            pen.path(&[(left, zero), (right, zero)], &INK, 0.75);
            if highest > 1.0 + 1e-6 {
                pen.path(&[(left, whole), (right, whole)], &INK, 0.75);
            }
        }
    });
    frame.canvas.finish()
}

/// Returns a sheet with room for the legend and all bars, in as many rows of panels as necessary.
fn sheet(label: &str, categories: &[Category], legend: &[LegendEntry], panels: &[Stacks], given: Option<f64>) -> Chart {
    const AXIS: f64 = 50.0;
    const GAP: f64 = 13.0;
    const HEADINGS: f64 = 16.0;
    let most = given.unwrap_or(Chart::PAGE.0);
    let room = if categories.len() <= 3 { ROOM.0 } else { ROOM.1 };
    let titles = panels.iter().map(|panel| font::width(&panel.title, SMALL + 1.0)).fold(0.0, f64::max);
    let panel = (room * categories.len() as f64).max(titles.min(120.0)).max(60.0);
    let count = panels.len().max(1);
    let columns = (((most - AXIS + GAP) / (panel + GAP)) as usize).clamp(1, count);
    // The fewest columns for that number of rows, so that the last row is not nearly empty.
    let rows = count.div_ceil(columns);
    let columns = count.div_ceil(rows);
    // A narrow chart grows instead of breaking the names of its legend.
    let widest = legend.iter().map(|entry| 28.0 + font::width(&entry.text, SMALL + 0.5)).fold(0.0, f64::max);
    let needed = (AXIS + columns as f64 * (panel + GAP)).max(widest).min(most);
    let width = given.unwrap_or(needed);
    let names = category_height(categories, (width - AXIS) / columns as f64).0;
    let below = Legend::rows(&[legend.to_vec()], width).height;
    let height = rows as f64 * (HEIGHT + HEADINGS) + names + below;
    let mut chart = Chart::new(Axis::default(), Axis::fraction(label));
    (chart.size_pt, chart.columns) = ((width, height), Some(columns));
    chart
}

/// Returns the height of the highest bar.
fn highest(panel: &Stacks, bars: usize) -> f64 {
    let height = |bar: usize| parts(panel, bar).map(|(_, part)| part).sum::<f64>();
    (0..bars).map(height).fold(0.0, f64::max)
}

/// Returns the parts of a bar that can be drawn, with their layers.
fn parts(panel: &Stacks, bar: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
    let part = move |(layer, values): (usize, &Vec<Option<f64>>)| Some((layer, values.get(bar).copied().flatten()?));
    panel.layers.iter().enumerate().filter_map(part).filter(|(_, part)| drawable(*part) && *part > 0.0)
}

/// Draws all bars of one panel.
fn bars(frame: &mut Frame, place: Panel, count: usize, names: &[String], looks: &[SeriesStyle], panel: &Stacks) {
    let room = place.width() / count.max(1) as f64;
    let half = (room * FILLED).min(WIDEST) / 2.0;
    let centre = |bar: usize| place.corners().0.0 + (bar as f64 + 0.5) * room;
    let y = |value: f64| place.y(frame.y.at(value));
    let wholes: Vec<usize> = (0..count)
        .filter(|&bar| panel.layers.iter().any(|values| values.get(bar).is_some_and(Option::is_some)))
        .collect();
    let mut segments: Vec<(usize, usize, f64, f64, f64)> = Vec::new();
    for &bar in &wholes {
        let mut top = 0.0;
        for (layer, part) in parts(panel, bar) {
            segments.push((layer, bar, y(top), y(top + part), part));
            top += part;
        }
    }
    let (zero, one) = (y(0.0), y(1.0));
    frame.canvas.layer(LayerGroup::class("whole"), |pen| {
        for &bar in &wholes {
            pen.rectangle((centre(bar) - half, one), (centre(bar) + half, zero), &REST);
        }
    });
    for (layer, look) in looks.iter().enumerate() {
        let tip = names.get(layer).map(String::as_str);
        let group = LayerGroup { key: tip, tip, ..LayerGroup::class("series") };
        frame.canvas.layer(group, |pen| {
            for (_, bar, bottom, top, _) in segments.iter().filter(|segment| segment.0 == layer) {
                let x = centre(*bar);
                pen.rectangle((x - half, *top), (x + half, *bottom), &look.color);
                if bottom - top > 1.5 && *bottom < zero {
                    // A narrow gap separates adjacent segments of equal colour.
                    pen.path(&[(x - half, *bottom), (x + half, *bottom)], &WHITE, 0.6);
                }
            }
        });
    }
    frame.canvas.layer(LayerGroup::class("text"), |pen| {
        for (layer, bar, bottom, top, part) in &segments {
            part_label(pen, (centre(*bar), half), (*bottom, *top), *part, looks[*layer].color);
        }
    });
}

/// Draws the part in percent, if the segment has room for it.
fn part_label(pen: &mut Pen, (x, half): (f64, f64), (bottom, top): (f64, f64), part: f64, on: RGBColor) {
    // Compares with the widest label, not with this one, so that all labels of a figure are rounded alike.
    let fits = |widest: &str| font::width(widest, SMALL) + 2.0 <= 2.0 * half;
    let fine = format!("{:.1}", 100.0 * part);
    let text = match (fits("88.8 %"), fits("88 %")) {
        (true, _) => format!("{} %", fine.strip_suffix(".0").unwrap_or(&fine)),
        (false, true) => format!("{:.0} %", 100.0 * part),
        (false, false) => return,
    };
    if bottom - top >= SMALL + 1.5 && font::width(&text, SMALL) <= 2.0 * half {
        let anchor = (x, (bottom + top) / 2.0 + 0.36 * SMALL);
        pen.text(&text, SMALL, readable(on), anchor, Anchor::Middle, TextDirection::Level);
    }
}

/// Returns black or white, whichever has more contrast.
fn readable(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let light = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    if light > 140.0 { INK } else { WHITE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster;

    fn layers(count: usize) -> Vec<String> {
        (1..=count).map(|user| format!("user {user}")).collect()
    }

    fn texts(svg: &str) -> Vec<&str> {
        svg.split("<text ")
            .skip(1)
            .filter_map(|text| text.split('>').nth(1)?.split('<').next())
            .map(str::trim)
            .collect()
    }

    #[test]
    fn segments_say_their_part_and_stack_to_the_whole() {
        let categories = [Category::new("cpu"), Category::new("memory")];
        let panel =
            Stacks { title: "drf".into(), layers: vec![vec![Some(1.0 / 3.0), Some(0.5)], vec![Some(0.6), Some(0.01)]] };
        let svg = stacked("Share", &categories, &layers(2), std::slice::from_ref(&panel), None);
        let texts = texts(&svg);
        for text in ["drf", "cpu", "memory", "user 1", "user 2", "33.3 %", "50 %", "60 %", "100 %"] {
            assert!(texts.contains(&text), "{text} is not among {texts:?}");
        }
        assert!(!texts.contains(&"1 %"), "one percent has no room for its label");
        assert!((highest(&panel, 2) - 14.0 / 15.0).abs() < 1e-12);
    }

    #[test]
    fn strange_numbers_never_break_it() {
        let strange = [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1.0), Some(0.0), Some(1e-300), Some(7.5)];
        for value in strange {
            for (users, resources, policies) in [(0, 0, 0), (0, 2, 1), (1, 1, 1), (30, 9, 7)] {
                let panel = Stacks { title: "a <policy>".into(), layers: vec![vec![value; resources]; users] };
                let categories: Vec<Category> = (0..resources).map(|r| Category::new(format!("r{r}"))).collect();
                let width = [None, Some(60.0), Some(241.1)][users % 3];
                let svg = stacked("Share", &categories, &layers(users), &vec![panel; policies], width);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{value:?}");
                assert!(raster::png(&svg, 1.0, Vec::new()).is_ok(), "{value:?} for {users} users");
            }
        }
    }
}
