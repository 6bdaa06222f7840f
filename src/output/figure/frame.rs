//! Everything around the data: panels, axes, mesh, headings and the legend.

use super::canvas::{Canvas, GREY, Group, INK, LIGHT, Pen, Run, Side};
use super::legend::{Entry, Legend};
use super::names::{Labels, SMALL, TEXT, TICK, category_height, category_lines, wrapped};
use super::scale::{Ends, Label, POWER_SIZE, Scale};
use super::{Category, Chart, Place};
use crate::output::font;

/// The width of axes and mesh lines.
const HAIR: f64 = 0.75;

/// The outer margin.
const MARGIN: f64 = 2.0;

/// The least height of a panel; a chart grows rather than fall below it.
const PANEL_MIN: f64 = 36.0;

/// The least part of the height that the panels share; a chart with much around it grows.
const PANELS_PART: f64 = 0.45;

/// The most of the width that names along the vertical axis take.
const NAMES_PART: f64 = 0.42;

/// What runs along the horizontal axis.
pub(super) enum Horizontal<'a> {
    /// Numbers, over this extent if there are any.
    Values(Option<(f64, f64)>, Ends),
    /// Categories.
    Categories(&'a [Category]),
}

/// What runs along the vertical axis.
pub(super) enum Vertical<'a> {
    /// Numbers, over this extent if there are any.
    Values(Option<(f64, f64)>, Ends),
    /// Names, the first one on top; the scale is over their places from the bottom, 0 to their number.
    Names(&'a [String]),
}

/// What a frame needs to know of the data.
pub(super) struct Outline<'a> {
    /// The chart.
    pub chart: &'a Chart,
    /// The heading of each panel.
    pub titles: Vec<&'a str>,
    /// The horizontal axis.
    pub x: Horizontal<'a>,
    /// The vertical axis.
    pub y: Vertical<'a>,
    /// The legend.
    pub legend: Vec<Vec<Entry>>,
    /// What is said under the chart.
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
    /// The x of a place from 0 to 1.
    pub fn x(&self, at: f64) -> f64 {
        self.left + at * self.width()
    }

    /// The y of a place from 0 to 1.
    pub fn y(&self, at: f64) -> f64 {
        self.bottom - at * (self.bottom - self.top)
    }

    /// Its width.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// Its upper left and lower right corners.
    pub fn corners(&self) -> ((f64, f64), (f64, f64)) {
        ((self.left, self.top), (self.right, self.bottom))
    }
}

/// A sheet with its axes drawn, ready for data.
pub(super) struct Frame {
    /// The sheet.
    pub canvas: Canvas,
    /// The panels, in reading order.
    pub panels: Vec<Panel>,
    /// The horizontal scale; over 0 to 1 for categories or without data.
    pub x: Scale,
    /// The vertical scale.
    pub y: Scale,
}

impl Frame {
    /// Writes `no data` into a panel.
    pub fn no_data(&mut self, panel: Panel) {
        self.canvas.layer(Group::class("text"), |pen| {
            let anchor = (panel.x(0.5), panel.y(0.5) + 0.36 * TEXT);
            pen.text("no data", TEXT, GREY, anchor, Side::Middle, Run::Level);
        });
    }
}

/// How the panels and what surrounds them share the sheet.
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
    /// The height of what stands below the lowest panel.
    below: f64,
}

/// Lays a chart out and draws all of it but the data.
pub(super) fn frame(outline: Outline) -> Frame {
    let chart = outline.chart;
    let width = chart.size_pt.0.clamp(60.0, 10_000.0);
    let (legend, below, beside) = legend(&outline, width);
    let note = if outline.note.is_some() { SMALL + 3.0 } else { 0.0 };
    let mut layout = layout(&outline, width, below + note, beside);
    let y = vertical(&outline, &layout);
    let widest = y.ticks.iter().map(|(_, label)| label.width(SMALL)).fold(0.0, f64::max);
    layout.y_name = wrapped(&y.label, layout.height - layout.below);
    let name = layout.y_name.len() as f64 * (TEXT + 1.0) + if y.label.is_empty() { 0.0 } else { 3.0 };
    layout.left = MARGIN + name + widest + TICK + 2.5;
    let inner = width - layout.left - layout.right - (layout.columns - 1) as f64 * layout.gap.0;
    layout.panel.0 = (inner / layout.columns as f64).max(PANEL_MIN / 2.0);
    let x = horizontal(&outline, layout.panel.0);

    let panels = panels(&layout, outline.titles.len());
    let name = chart.title.clone().unwrap_or_else(|| format!("{} against {}", y.label, x.label));
    let mut canvas = Canvas::new(width, layout.height, &name);
    let edge = Edge { layout: &layout, panels: &panels };
    edge.mesh(&mut canvas, &x, &y);
    edge.axes(&mut canvas, &x, &y);
    canvas.layer(Group::class("text"), |pen| {
        edge.tick_labels(pen, &x, &y);
        if let Horizontal::Categories(categories) = outline.x {
            edge.category_labels(pen, categories);
        }
        edge.headings(pen, &outline, &x);
        if let Some(note) = &outline.note {
            let anchor = (width - MARGIN, layout.height - MARGIN - 1.0);
            pen.text(&font::fit(note, SMALL, width - 2.0 * MARGIN), SMALL, GREY, anchor, Side::End, Run::Level);
        }
    });
    let corner = match chart.legend {
        Place::Right => (width - beside + 6.0, layout.top),
        Place::Below => {
            let centre = (layout.left + width - layout.right) / 2.0;
            let left = (centre - legend.width / 2.0).min(width - MARGIN - legend.width).max(MARGIN);
            (left, layout.height - MARGIN - note - legend.height)
        }
    };
    legend.draw(&mut canvas, corner);
    Frame { canvas, panels, x, y }
}

/// The legend, and how much of the height and of the width it takes.
fn legend(outline: &Outline, width: f64) -> (Legend, f64, f64) {
    if outline.legend.iter().all(Vec::is_empty) {
        return (Legend::rows(&[], width), 0.0, 0.0);
    }
    match outline.chart.legend {
        Place::Below => {
            let legend = Legend::rows(&outline.legend, width - 4.0 * MARGIN);
            let height = legend.height + 3.0;
            (legend, height, 0.0)
        }
        Place::Right => {
            let legend = Legend::column(&outline.legend, 0.4 * width);
            let beside = legend.width + 8.0;
            (legend, 0.0, beside)
        }
    }
}

/// Everything that does not depend on the vertical scale.
fn layout(outline: &Outline, width: f64, below: f64, beside: f64) -> Layout {
    let chart = outline.chart;
    let count = outline.titles.len().max(1);
    let roughly = width - beside - 44.0;
    let columns = chart.columns.unwrap_or((roughly / 105.0) as usize).clamp(1, count);
    // The fewest columns for that number of rows: no row is left nearly empty.
    let rows = count.div_ceil(columns);
    let columns = if chart.columns.is_some() { columns } else { count.div_ceil(rows) };
    let (ticks, labels) = match outline.x {
        Horizontal::Values(..) => (TICK + SMALL + 2.0, Labels::Level),
        Horizontal::Categories(categories) => category_height(categories, roughly / columns as f64),
    };
    let heading = if chart.title.is_some() { TEXT + 5.0 } else { 0.0 };
    let titled = if outline.titles.iter().any(|title| !title.is_empty()) { SMALL + 5.0 } else { 0.0 };
    let top = MARGIN + heading + titled.max(3.0);
    let name = if chart.x.label.is_empty() && chart.x.measure != super::Measure::Seconds { 1.0 } else { TEXT + 4.0 };
    let bottom = MARGIN + ticks + name + below;
    let gap = (13.0, titled.max(3.0) + 6.0);
    let inner = chart.size_pt.1.min(10_000.0) - top - bottom - (rows - 1) as f64 * gap.1;
    let panel = (inner.max(PANELS_PART * chart.size_pt.1.min(10_000.0)) / rows as f64).max(PANEL_MIN);
    let height = top + bottom + rows as f64 * panel + (rows - 1) as f64 * gap.1;
    let right = if beside > 0.0 { beside } else { MARGIN + 8.0 };
    let y_name = Vec::new();
    Layout { columns, height, top, left: 0.0, right, panel: (0.0, panel), gap, ticks, labels, y_name, below: bottom }
}

fn vertical(outline: &Outline, layout: &Layout) -> Scale {
    let (extent, ends) = match outline.y {
        Vertical::Values(extent, ends) => (extent, ends),
        Vertical::Names(names) => {
            let most = outline.chart.size_pt.0 * NAMES_PART;
            let fitted: Vec<String> = names.iter().map(|name| font::fit(name, SMALL, most)).collect();
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
            let mut scale = Scale::new(&outline.chart.x, (0.1, 1.0), Ends::Exact, 2, |_| true);
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

/// Draws what stands at the edges of the panels.
struct Edge<'a> {
    layout: &'a Layout,
    panels: &'a [Panel],
}

impl Edge<'_> {
    fn leftmost(&self, at: usize) -> bool {
        at.is_multiple_of(self.layout.columns)
    }

    /// Whether no panel stands below this one.
    fn lowest(&self, at: usize) -> bool {
        at + self.layout.columns >= self.panels.len()
    }

    fn mesh(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        canvas.layer(Group::class("mesh"), |pen| {
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
        canvas.layer(Group::class("axis"), |pen| {
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
                        pen.text(text, SMALL, color, (x, y + SMALL + line), Side::Middle, Run::Level);
                    } else {
                        let first = x + 0.36 * SMALL - (lines.len() - 1) as f64 * (SMALL + 1.5) / 2.0;
                        pen.text(text, SMALL, color, (first + line, y + 1.0), Side::End, Run::Up);
                    }
                }
            }
        }
    }

    fn headings(&self, pen: &mut Pen, outline: &Outline, x: &Scale) {
        let (Some(first), Some(last)) = (self.panels.first(), self.panels.last()) else { return };
        let right = self.panels.iter().map(|panel| panel.right).fold(first.right, f64::max);
        let middle = ((first.left + right) / 2.0, (first.top + last.bottom) / 2.0);
        let below = last.bottom + self.layout.ticks + TEXT + 1.5;
        pen.text(&x.label, TEXT, INK, (middle.0, below), Side::Middle, Run::Level);
        let lowest = last.bottom + self.layout.ticks;
        for (nth, line) in self.layout.y_name.iter().enumerate() {
            // A label longer than the panels moves down rather than off the sheet.
            let half = font::width(line, TEXT) / 2.0;
            let y = middle.1.max(MARGIN + half).min(lowest.max(middle.1));
            pen.text(line, TEXT, INK, (MARGIN + TEXT * 0.8 + nth as f64 * (TEXT + 1.0), y), Side::Middle, Run::Up);
        }
        for (panel, title) in self.panels.iter().zip(&outline.titles).filter(|(_, title)| !title.is_empty()) {
            let title = font::fit(title, TEXT, panel.width());
            pen.text(&title, TEXT, INK, (panel.x(0.5), panel.top - 3.5), Side::Middle, Run::Level);
        }
        if let Some(title) = &outline.chart.title {
            pen.text(title, TEXT, INK, (middle.0, MARGIN + TEXT), Side::Middle, Run::Level);
        }
    }
}

fn tick_label(pen: &mut Pen, label: &Label, (left, baseline): (f64, f64)) {
    pen.text(&label.text, SMALL, INK, (left, baseline), Side::Start, Run::Level);
    if let Some(power) = &label.power {
        let anchor = (left + font::width(&label.text, SMALL), baseline - 0.38 * SMALL);
        pen.text(power, SMALL * POWER_SIZE, INK, anchor, Side::Start, Run::Level);
    }
}
