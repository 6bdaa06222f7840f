//! Everything around the data: panels, axes, mesh, headings and the legend.
//!
//! `frame` lays out a chart of any kind from an `Outline` and draws all of it except the data. Text never leaves the sheet: names are
//! rotated or broken into lines, and a chart grows in height if the text leaves too little room for its panels.

use super::canvas::{Anchor, Canvas, GREY, INK, LIGHT, LayerGroup, Pen, TextDirection};
use super::legend::{Legend, LegendEntry};
use super::names::{Labels, SMALL, TEXT, TICK, category_height, category_lines, lines, widest};
use super::scale::{Label, POWER_SIZE, RangeEnds, Scale};
use super::{Category, Chart};
use crate::font;

/// The width of axes and mesh lines.
const HAIR: f64 = 0.75;

/// The outer margin.
const MARGIN: f64 = 2.0;

/// The least height of a panel; the chart grows if a panel would be lower.
const PANEL_MIN: f64 = 36.0;

/// The least fraction of the height for panels; a chart with much text grows.
const PANELS_PART: f64 = 0.45;

/// The largest fraction of the width for names along the vertical axis.
const NAMES_PART: f64 = 0.42;

/// The distance of two lines of a heading or a label.
const LINE: f64 = TEXT + 1.0;

/// The values along the horizontal axis.
pub(super) enum Horizontal<'a> {
    /// Numbers, over this extent if there is one.
    Values(Option<(f64, f64)>, RangeEnds),
    /// Categories.
    Categories(&'a [Category]),
}

/// The values along the vertical axis.
pub(super) enum Vertical<'a> {
    /// Numbers, over this extent if there is one.
    Values(Option<(f64, f64)>, RangeEnds),
    /// Names, the first one on top. The scale runs from 0 at the bottom to the number of names at the top.
    Names(&'a [String]),
}

/// The properties of the data that a frame depends on.
pub(super) struct Outline<'a> {
    /// The chart.
    pub chart: &'a Chart,
    /// The heading of each panel; if there is none, there is one panel without data.
    pub titles: Vec<&'a str>,
    /// The horizontal axis.
    pub x: Horizontal<'a>,
    /// The vertical axis.
    pub y: Vertical<'a>,
    /// The groups of entries of the legend.
    pub legend: Vec<Vec<LegendEntry>>,
    /// The note under the chart, if any.
    pub note: Option<String>,
}

/// The rectangle of one panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Panel {
    /// Returns the x coordinate of a position from 0 to 1.
    pub fn x(&self, at: f64) -> f64 {
        self.left + at * self.width()
    }

    /// Returns the y coordinate of a position from 0 to 1.
    pub fn y(&self, at: f64) -> f64 {
        self.bottom - at * (self.bottom - self.top)
    }

    /// Returns the width.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// Returns the upper left and the lower right corner.
    pub fn corners(&self) -> ((f64, f64), (f64, f64)) {
        ((self.left, self.top), (self.right, self.bottom))
    }
}

/// A sheet with drawn axes, ready for data.
pub(super) struct Frame {
    /// The sheet.
    pub canvas: Canvas,
    /// The panels, in reading order.
    pub panels: Vec<Panel>,
    /// The horizontal scale; it has no ticks for categories or without data.
    pub x: Scale,
    /// The vertical scale.
    pub y: Scale,
}

impl Frame {
    /// Writes `no data` into a panel.
    pub fn no_data(&mut self, panel: Panel) {
        self.canvas.layer(LayerGroup::class("text"), |pen| {
            let anchor = (panel.x(0.5), panel.y(0.5) + 0.36 * TEXT);
            pen.text("no data", TEXT, GREY, anchor, Anchor::Middle, TextDirection::Level);
        });
    }
}

/// The division of the sheet between the panels and the text around them.
struct Layout {
    columns: usize,
    height: f64,
    top: f64,
    left: f64,
    right: f64,
    panel: (f64, f64),
    gap: (f64, f64),
    /// The height of the tick or category labels below a panel.
    ticks: f64,
    labels: Labels,
    /// The vertical axis label, in lines.
    y_name: Vec<String>,
    /// The height of the area below the lowest panel.
    below: f64,
    /// Whether the legend is above the panels; below several rows of panels it would be far from the first row.
    legend_above: bool,
    /// The height of the headings of panels.
    headings: f64,
}

/// The text around the panels, in lines.
#[derive(Clone, Debug, Default, PartialEq)]
struct Texts {
    /// The chart's heading.
    title: Vec<String>,
    /// The headings of panels.
    titles: Vec<Vec<String>>,
    /// The label of the horizontal axis.
    x: Vec<String>,
    /// The note.
    note: Vec<String>,
}

impl Texts {
    /// Breaks the texts for a sheet and panels of these widths; `x` is the label of the horizontal axis.
    fn for_width(outline: &Outline, width: f64, panel: f64, x: &str) -> Texts {
        let room = width - 2.0 * MARGIN;
        let broken = |text: Option<&str>, size: f64| text.map_or(Vec::new(), |text| lines(text, size, room));
        Texts {
            title: broken(outline.chart.title.as_deref(), TEXT),
            titles: outline.titles.iter().map(|title| lines(title, TEXT, panel)).collect(),
            x: lines(x, TEXT, (width - 2.0 * MARGIN).min(0.9 * width)),
            note: broken(outline.note.as_deref(), SMALL),
        }
    }

    /// Returns the height of all lines of the panels' headings except the first.
    fn more_titles(&self) -> f64 {
        LINE * self.titles.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1) as f64
    }
}

/// Lays out a chart and draws all of it except the data.
pub(super) fn frame(mut outline: Outline) -> Frame {
    if outline.titles.is_empty() {
        outline.titles.push("");
    }
    let chart = outline.chart;
    let width = chart.size_pt.0.clamp(60.0, 10_000.0);
    let legend = Legend::rows(&outline.legend, width - 4.0 * MARGIN);
    let mut wording = Texts::for_width(&outline, width, width, &chart.x.label);
    let mut layout = self::layout(&outline, width, legend.height, &wording);
    let mut y = vertical(&outline, &layout);
    let mut x = horizontal(&outline, width);
    // The width of panels depends on the vertical axis, which depends on their height, which depends on the lines of their headings.
    for _ in 0..3 {
        let widest = y.ticks.iter().map(|(_, label)| label.width(SMALL)).fold(0.0, f64::max);
        layout.y_name = lines(&y.label, TEXT, layout.height - layout.below);
        let name = layout.y_name.len() as f64 * LINE + if y.label.is_empty() { 0.0 } else { 3.0 };
        layout.left = MARGIN + name + widest + TICK + 2.5;
        let inner = width - layout.left - layout.right - (layout.columns - 1) as f64 * layout.gap.0;
        layout.panel.0 = (inner / layout.columns as f64).max(PANEL_MIN / 2.0);
        x = horizontal(&outline, layout.panel.0);
        let before = std::mem::replace(&mut wording, Texts::for_width(&outline, width, layout.panel.0, &x.label));
        if before == wording {
            break;
        }
        let left = (layout.left, layout.panel.0, std::mem::take(&mut layout.y_name));
        layout = self::layout(&outline, width, legend.height, &wording);
        (layout.left, layout.panel.0, layout.y_name) = left;
        y = vertical(&outline, &layout);
    }

    let panels = panels(&layout, outline.titles.len());
    let name = chart.title.clone().unwrap_or_else(|| format!("{} against {}", y.label, x.label));
    let mut canvas = Canvas::new(width, layout.height, &name);
    let edge = Edge { layout: &layout, panels: &panels, wording: &wording };
    edge.mesh(&mut canvas, &x, &y);
    edge.axes(&mut canvas, &x, &y);
    canvas.layer(LayerGroup::class("text"), |pen| {
        edge.tick_labels(pen, &x, &y);
        if let Horizontal::Categories(categories) = outline.x {
            edge.category_labels(pen, categories);
        }
        edge.headings(pen, width);
        for (nth, line) in wording.note.iter().rev().enumerate() {
            let anchor = (width - MARGIN, layout.height - MARGIN - 1.0 - nth as f64 * (SMALL + 1.0));
            pen.text(line, SMALL, GREY, anchor, Anchor::End, TextDirection::Level);
        }
    });
    // The legend is centred below the panels.
    let centre = (layout.left + width - layout.right) / 2.0;
    let most = width - MARGIN - legend.width;
    let left = (centre - legend.width / 2.0).min(most).max(MARGIN);
    let corner = match layout.legend_above {
        true => (left, layout.top - layout.headings - legend.height - 2.0),
        false => (left, layout.height - MARGIN - note_height(&wording) - legend.height),
    };
    legend.draw(&mut canvas, corner);
    Frame { canvas, panels, x, y }
}

fn note_height(wording: &Texts) -> f64 {
    if wording.note.is_empty() { 0.0 } else { 3.0 + wording.note.len() as f64 * (SMALL + 1.0) - 1.0 }
}

/// Computes everything that does not depend on the vertical scale. `legend` is the height of the legend.
fn layout(outline: &Outline, width: f64, legend: f64, wording: &Texts) -> Layout {
    let chart = outline.chart;
    let count = outline.titles.len();
    let roughly = width - 44.0;
    let columns = chart.columns.unwrap_or((roughly / 105.0) as usize).clamp(1, count);
    // The fewest columns for that number of rows, so that the last row is not nearly empty.
    let rows = count.div_ceil(columns);
    let columns = if chart.columns.is_some() { columns } else { count.div_ceil(rows) };
    let (ticks, labels) = match outline.x {
        Horizontal::Values(..) => (TICK + SMALL + 2.0, Labels::Level),
        Horizontal::Categories(categories) => category_height(categories, roughly / columns as f64),
    };
    let heading = if wording.title.is_empty() { 0.0 } else { wording.title.len() as f64 * LINE + 4.0 };
    let titled = outline.titles.iter().any(|title| !title.is_empty());
    let titled = if titled { SMALL + 5.0 + wording.more_titles() } else { 0.0 };
    let legend = if legend > 0.0 { legend + 3.0 } else { 0.0 };
    let legend_above = rows > 1 && legend > 0.0;
    let headings = titled.max(3.0);
    let top = MARGIN + heading + headings + if legend_above { legend } else { 0.0 };
    let name = if chart.x.label.is_empty() && !chart.x.measure.is_time() { 1.0 } else { TEXT + 4.0 };
    let name = name + LINE * wording.x.len().saturating_sub(1) as f64;
    let bottom = MARGIN + ticks + name + note_height(wording) + if legend_above { 0.0 } else { legend };
    let gap = (13.0, headings + 6.0);
    let inner = chart.size_pt.1.min(10_000.0) - top - bottom - (rows - 1) as f64 * gap.1;
    let least = match outline.y {
        Vertical::Values(..) => PANEL_MIN,
        Vertical::Names(names) => {
            let tallest = names.iter().map(|name| row_height(&named(name, width))).fold(0.0, f64::max);
            (tallest * names.len() as f64).max(PANEL_MIN)
        }
    };
    let panel = (inner.max(PANELS_PART * chart.size_pt.1.min(10_000.0)) / rows as f64).max(least);
    let height = top + bottom + rows as f64 * panel + (rows - 1) as f64 * gap.1;
    Layout {
        columns,
        height,
        top,
        left: 0.0,
        right: MARGIN + 8.0,
        panel: (0.0, panel),
        gap,
        ticks,
        labels,
        y_name: Vec::new(),
        below: bottom,
        legend_above,
        headings,
    }
}

/// Breaks a name beside its row into lines.
fn named(name: &str, width: f64) -> Vec<String> {
    lines(name, SMALL, width * NAMES_PART)
}

/// Returns the height of a row with this name.
fn row_height(name: &[String]) -> f64 {
    name.len() as f64 * (SMALL + 1.0) + 3.0
}

fn vertical(outline: &Outline, layout: &Layout) -> Scale {
    let (extent, ends) = match outline.y {
        Vertical::Values(extent, ends) => (extent, ends),
        Vertical::Names(names) => {
            let width = outline.chart.size_pt.0;
            let fitted: Vec<String> = names.iter().map(|name| named(name, width).join("\n")).collect();
            return Scale::names(&fitted, &outline.chart.y.label);
        }
    };
    let target = (layout.panel.1 / 18.0) as usize;
    let mut scale = Scale::new(&outline.chart.y, extent.unwrap_or((0.1, 1.0)), ends, target.clamp(2, 7), |_| true);
    if extent.is_none() {
        scale.ticks.clear();
        scale.minor.clear();
    }
    scale
}

fn horizontal(outline: &Outline, width: f64) -> Scale {
    let target = ((width / 26.0) as usize).clamp(2, 10);
    let fits = |ticks: &[(f64, Label)]| {
        ticks.windows(2).all(|pair| {
            let between = (pair[1].0 - pair[0].0) * width;
            between >= (pair[0].1.width(SMALL) + pair[1].1.width(SMALL)) / 2.0 + 5.0
        })
    };
    match outline.x {
        Horizontal::Values(Some(extent), ends) => Scale::new(&outline.chart.x, extent, ends, target, fits),
        _ => {
            let mut scale = Scale::new(&outline.chart.x, (0.1, 1.0), RangeEnds::Exact, 2, |_| true);
            scale.ticks.clear();
            scale.minor.clear();
            scale.label.clone_from(&outline.chart.x.label);
            scale
        }
    }
}

fn panels(layout: &Layout, count: usize) -> Vec<Panel> {
    (0..count)
        .map(|at| {
            let (column, row) = ((at % layout.columns) as f64, (at / layout.columns) as f64);
            let left = layout.left + column * (layout.panel.0 + layout.gap.0);
            let top = layout.top + row * (layout.panel.1 + layout.gap.1);
            Panel { left, top, right: left + layout.panel.0, bottom: top + layout.panel.1 }
        })
        .collect()
}

/// Draws the edges of panels: axes, ticks and headings.
struct Edge<'a> {
    layout: &'a Layout,
    panels: &'a [Panel],
    wording: &'a Texts,
}

impl Edge<'_> {
    fn leftmost(&self, at: usize) -> bool {
        at.is_multiple_of(self.layout.columns)
    }

    /// Returns whether this is the lowest panel of its column.
    fn lowest(&self, at: usize) -> bool {
        at + self.layout.columns >= self.panels.len()
    }

    fn mesh(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        canvas.layer(LayerGroup::class("mesh"), |pen| {
            for panel in self.panels {
                for (at, _) in &x.ticks {
                    pen.path(&[(panel.x(*at), panel.y(0.0)), (panel.x(*at), panel.y(1.0))], &LIGHT, HAIR);
                }
                for (at, _) in &y.ticks {
                    pen.path(&[(panel.x(0.0), panel.y(*at)), (panel.x(1.0), panel.y(*at))], &LIGHT, HAIR);
                }
            }
        });
    }

    fn axes(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        canvas.layer(LayerGroup::class("axis"), |pen| {
            for panel in self.panels {
                let corner = (panel.x(0.0), panel.y(0.0));
                pen.path(&[(panel.x(0.0), panel.y(1.0)), corner, (panel.x(1.0), panel.y(0.0))], &INK, HAIR);
                let places = |scale: &Scale| -> Vec<(f64, f64)> {
                    let major = scale.ticks.iter().map(|(at, _)| (*at, TICK));
                    major.chain(scale.minor.iter().map(|&at| (at, TICK * 0.6))).collect()
                };
                for (at, length) in places(x) {
                    pen.path(&[(panel.x(at), corner.1), (panel.x(at), corner.1 + length)], &INK, HAIR);
                }
                for (at, length) in places(y) {
                    pen.path(&[(corner.0 - length, panel.y(at)), (corner.0, panel.y(at))], &INK, HAIR);
                }
            }
        });
    }

    fn tick_labels(&self, pen: &mut Pen, x: &Scale, y: &Scale) {
        for (at, panel) in self.panels.iter().enumerate() {
            if self.leftmost(at) {
                for (place, label) in &y.ticks {
                    let end = (panel.x(0.0) - TICK - 2.0, panel.y(*place) + 0.36 * SMALL);
                    tick_label(pen, label, (end.0 - label.width(SMALL), end.1));
                }
            }
            if self.lowest(at) {
                for (place, label) in &x.ticks {
                    let middle = (panel.x(*place), panel.y(0.0) + TICK + 1.0 + SMALL);
                    tick_label(pen, label, (middle.0 - label.width(SMALL) / 2.0, middle.1));
                }
            }
        }
    }

    fn category_labels(&self, pen: &mut Pen, categories: &[Category]) {
        for (_, panel) in self.panels.iter().enumerate().filter(|(at, _)| self.lowest(*at)) {
            for (nth, category) in categories.iter().enumerate() {
                let x = panel.x((nth as f64 + 0.5) / categories.len() as f64);
                let y = panel.y(0.0) + TICK + 1.0;
                let lines = category_lines(category, self.layout.labels);
                for (line, text) in lines.iter().enumerate() {
                    let color = if line == 0 { INK } else { GREY };
                    let line = line as f64 * (SMALL + 1.5);
                    if self.layout.labels == Labels::Level {
                        pen.text(text, SMALL, color, (x, y + SMALL + line), Anchor::Middle, TextDirection::Level);
                    } else {
                        let first = x + 0.36 * SMALL - (lines.len() - 1) as f64 * (SMALL + 1.5) / 2.0;
                        pen.text(text, SMALL, color, (first + line, y + 1.0), Anchor::End, TextDirection::Up);
                    }
                }
            }
        }
    }

    fn headings(&self, pen: &mut Pen, width: f64) {
        let (Some(first), Some(last)) = (self.panels.first(), self.panels.last()) else { return };
        let right = self.panels.iter().map(|panel| panel.right).fold(first.right, f64::max);
        let middle = ((first.left + right) / 2.0, (first.top + last.bottom) / 2.0);
        // Text that is wider than the panels remains on the sheet.
        let level = |lines: &[String]| {
            let half = widest(lines, TEXT) / 2.0;
            middle.0.min(width - MARGIN - half).max(MARGIN + half)
        };
        let below = last.bottom + self.layout.ticks + TEXT + 1.5;
        for (nth, line) in self.wording.x.iter().enumerate() {
            let place = (level(&self.wording.x), below + nth as f64 * LINE);
            pen.text(line, TEXT, INK, place, Anchor::Middle, TextDirection::Level);
        }
        let lowest = last.bottom + self.layout.ticks;
        for (nth, line) in self.layout.y_name.iter().enumerate() {
            // A label longer than the panels moves down instead of leaving the sheet.
            let half = font::width(line, TEXT) / 2.0;
            let y = middle.1.max(MARGIN + half).min(lowest.max(middle.1));
            pen.text(line, TEXT, INK, (MARGIN + TEXT * 0.8 + nth as f64 * LINE, y), Anchor::Middle, TextDirection::Up);
        }
        for (panel, title) in self.panels.iter().zip(&self.wording.titles) {
            for (up, line) in title.iter().rev().enumerate() {
                let place = (panel.x(0.5), panel.top - 3.5 - up as f64 * LINE);
                pen.text(line, TEXT, INK, place, Anchor::Middle, TextDirection::Level);
            }
        }
        for (nth, line) in self.wording.title.iter().enumerate() {
            let place = (level(&self.wording.title), MARGIN + TEXT + nth as f64 * LINE);
            pen.text(line, TEXT, INK, place, Anchor::Middle, TextDirection::Level);
        }
    }
}

fn tick_label(pen: &mut Pen, label: &Label, (left, baseline): (f64, f64)) {
    let lines: Vec<&str> = label.text.split('\n').collect();
    let first = baseline - (lines.len() - 1) as f64 * (SMALL + 1.0) / 2.0;
    for (nth, line) in lines.iter().enumerate() {
        // The lines of a name are aligned on the longest one; a label with an exponent has only one line.
        let indent = if lines.len() > 1 { label.width(SMALL) - font::width(line, SMALL) } else { 0.0 };
        let place = (left + indent, first + nth as f64 * (SMALL + 1.0));
        pen.text(line, SMALL, INK, place, Anchor::Start, TextDirection::Level);
    }
    if let Some(power) = &label.power {
        let anchor = (left + font::width(&label.text, SMALL), baseline - 0.38 * SMALL);
        pen.text(power, SMALL * POWER_SIZE, INK, anchor, Anchor::Start, TextDirection::Level);
    }
}
