//! The legend: it explains the style of each series, outside of the data.
//!
//! Entries form rows no wider than the given room: one line if they fit, else columns of equal width. Equal labels have one entry.

use plotters::style::WHITE;

use super::canvas::{Anchor, Canvas, GREY, INK, LayerGroup, Pen, TextDirection};
use super::hatch::filled;
use super::names::lines;
use super::style::{Marker, SeriesStyle};
use crate::font;

/// The size of the text.
const TEXT: f64 = 7.5;

/// The height of a row.
const ROW: f64 = 10.5;

/// The distance of two lines of an entry.
const LINE: f64 = 8.5;

/// The width of a sample.
const SAMPLE: f64 = 19.0;

/// The gap between a sample and its text.
const GAP: f64 = 3.5;

/// The gap between entries of a row.
const APART: f64 = 11.0;

/// The sample before an entry's text.
#[derive(Clone, Debug)]
pub(super) enum Sample {
    /// A piece of line, with or without its marker.
    Line(SeriesStyle, Marked),
    /// A piece of a bar.
    Bar(SeriesStyle),
    /// A bubble.
    Bubble(SeriesStyle),
    /// A marker alone.
    Point(SeriesStyle),
    /// An empty circle of this radius.
    Ring(f64),
    /// No sample: a heading for the entries that follow.
    Heading,
}

/// Whether a line has markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// At its points.
    Yes,
    /// Nowhere.
    No,
}

/// One entry of the legend.
#[derive(Clone, Debug)]
pub(super) struct LegendEntry {
    /// Its text.
    pub text: String,
    /// The sample before it.
    pub sample: Sample,
}

/// Returns an entry for each distinct label that is not empty, with the first sample of that label.
pub(super) fn entries<'a>(labels: impl Iterator<Item = (&'a str, Sample)>) -> Vec<LegendEntry> {
    let mut entries: Vec<LegendEntry> = Vec::new();
    for (label, sample) in labels {
        if !label.is_empty() && !entries.iter().any(|entry| entry.text == label) {
            entries.push(LegendEntry { text: label.to_owned(), sample });
        }
    }
    entries
}

impl LegendEntry {
    fn sample_width(&self) -> f64 {
        match &self.sample {
            Sample::Heading => 0.0,
            Sample::Ring(radius) => 2.0 * radius + GAP,
            Sample::Bar(_) => 10.0 + GAP,
            Sample::Bubble(_) | Sample::Point(_) => 8.0 + GAP,
            Sample::Line(..) => SAMPLE + GAP,
        }
    }

    fn width(&self) -> f64 {
        self.sample_width() + self.text.split('\n').map(|line| font::width(line, TEXT)).fold(0.0, f64::max)
    }
}

/// The positions of the entries, relative to the upper left corner.
pub(super) struct Legend {
    entries: Vec<(f64, f64, LegendEntry)>,
    /// The total width.
    pub width: f64,
    /// The total height.
    pub height: f64,
}

impl Legend {
    /// Lays out groups of entries, each in rows no wider than `room`: in one line if it fits, else in columns.
    pub fn rows(groups: &[Vec<LegendEntry>], room: f64) -> Legend {
        let mut legend = Legend { entries: Vec::new(), width: 0.0, height: 0.0 };
        for group in groups.iter().filter(|group| !group.is_empty()) {
            let group: Vec<LegendEntry> = group.iter().map(|entry| broken(entry, room)).collect();
            let in_line: f64 = group.iter().map(|entry| entry.width() + APART).sum::<f64>() - APART;
            let widest = group.iter().map(LegendEntry::width).fold(0.0, f64::max);
            let columns = (((room + APART) / (widest + APART)) as usize).clamp(1, group.len());
            // Rows of equal length look better than full rows and a short last one.
            let columns = group.len().div_ceil(group.len().div_ceil(columns));
            let row = group.iter().map(row_height).fold(ROW, f64::max);
            let mut x = 0.0;
            for (nth, entry) in group.into_iter().enumerate() {
                let width = entry.width();
                if in_line > room {
                    x = (nth % columns) as f64 * (widest + APART);
                    legend.height += if nth > 0 && nth % columns == 0 { row } else { 0.0 };
                }
                legend.entries.push((x, legend.height + row / 2.0, entry));
                legend.width = legend.width.max(x + width);
                x += width + APART;
            }
            legend.height += row;
        }
        legend
    }

    /// Draws the legend with its upper left corner at `(left, top)`.
    pub fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64)) {
        for (x, y, entry) in &self.entries {
            let (x, y) = (left + x, top + y);
            match &entry.sample {
                Sample::Line(look, marked) => {
                    let group = LayerGroup { dash: look.dash, ..LayerGroup::class("legend") };
                    canvas.layer(group, |pen| pen.path(&[(x, y), (x + SAMPLE, y)], &look.color, 1.25));
                    if *marked == Marked::Yes {
                        canvas.layer(LayerGroup::class("legend"), |pen| marker(pen, (x + SAMPLE / 2.0, y), look));
                    }
                }
                Sample::Bar(look) => canvas.layer(LayerGroup::class("legend"), |pen| {
                    filled(pen, (x, y - 3.2), (x + 10.0, y + 3.2), look.color, look.hatch);
                }),
                Sample::Bubble(look) => canvas.layer(LayerGroup::class("legend"), |pen| {
                    bubble(pen, (x + 4.0, y), 3.6, look);
                }),
                Sample::Point(look) => canvas.layer(LayerGroup::class("legend"), |pen| marker(pen, (x + 4.0, y), look)),
                Sample::Ring(radius) => canvas.layer(LayerGroup::class("legend"), |pen| {
                    pen.ring((x + radius, y), *radius, &GREY, 0.75);
                }),
                Sample::Heading => {}
            }
        }
        canvas.layer(LayerGroup::class("text"), |pen| {
            for (x, y, entry) in &self.entries {
                let first = top + y + 0.36 * TEXT - LINE * entry.text.matches('\n').count() as f64 / 2.0;
                for (nth, line) in entry.text.split('\n').enumerate() {
                    let anchor = (left + x + entry.sample_width(), first + LINE * nth as f64);
                    pen.text(line, TEXT, INK, anchor, Anchor::Start, TextDirection::Level);
                }
            }
        });
    }
}

fn row_height(entry: &LegendEntry) -> f64 {
    let text = ROW + LINE * entry.text.matches('\n').count() as f64;
    match entry.sample {
        Sample::Ring(radius) => (2.0 * radius + 2.0).max(text),
        _ => text,
    }
}

/// Breaks the text of an entry into lines that fit the room.
fn broken(entry: &LegendEntry, room: f64) -> LegendEntry {
    let text = lines(&entry.text, TEXT, (room - entry.sample_width()).max(4.0 * TEXT)).join("\n");
    LegendEntry { text, sample: entry.sample.clone() }
}

/// Draws a marker.
pub(super) fn marker(pen: &mut Pen, (x, y): (f64, f64), look: &SeriesStyle) {
    let at = |points: &[(f64, f64)]| -> Vec<(f64, f64)> { points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect() };
    match look.marker {
        Marker::Disc => pen.disc((x, y), 1.9, &look.color),
        Marker::Square => pen.rectangle((x - 1.7, y - 1.7), (x + 1.7, y + 1.7), &look.color),
        Marker::Up => pen.polygon(&at(&[(0.0, -2.3), (2.2, 1.7), (-2.2, 1.7)]), &look.color),
        Marker::Diamond => pen.polygon(&at(&[(0.0, -2.5), (2.5, 0.0), (0.0, 2.5), (-2.5, 0.0)]), &look.color),
        Marker::Down => pen.polygon(&at(&[(0.0, 2.3), (2.2, -1.7), (-2.2, -1.7)]), &look.color),
    }
}

/// Draws a marker with a hole, for a value of low confidence.
pub(super) fn hollow(pen: &mut Pen, (x, y): (f64, f64), look: &SeriesStyle) {
    marker(pen, (x, y), look);
    pen.disc((x, y), 1.0, &WHITE);
}

/// Draws a translucent bubble with its outline.
pub(super) fn bubble(pen: &mut Pen, centre: (f64, f64), radius: f64, look: &SeriesStyle) {
    use plotters::style::Color;
    pen.disc(centre, radius, &look.color.mix(0.25));
    pen.ring(centre, radius, &look.color.mix(0.7), 0.75);
}
