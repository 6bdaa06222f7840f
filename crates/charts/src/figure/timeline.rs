//! Timelines of a cluster: machines by time, or the stacked allocation of a pool, coloured by user; marks of events and curves of users
//! below. All panels share the axis of time and the colours of users.
//!
//! The number of shapes is bounded by the caller, which aggregates the tasks of crowded timelines into cells.

use plotters::style::RGBColor;

use super::Axis;
use super::canvas::{Anchor, Canvas, GREY, INK, LIGHT, LayerGroup, Pen, TextDirection};
use super::legend::{Legend, LegendEntry, Sample};
use super::names::{SMALL, TEXT, TICK, lines};
use super::scale::{RangeEnds, Scale, drawable};
use super::style::{SeriesStyle, fills};
use super::thin::thin;
use crate::font;

/// The outer margin, and the space between panels.
const MARGIN: f64 = 4.0;
const GAP: f64 = 7.0;

/// The width of axes.
const HAIR: f64 = 0.75;

/// The height of a row of machines, and the least and largest height of the panel.
const ROW: f64 = 6.0;
const ROWS: (f64, f64) = (60.0, 280.0);

/// The least height of the rows of a machine that lines separate from others.
const RULED: f64 = 6.0;

/// The heights of the panel of a pool, of a strip of marks, and of the panel of curves.
const STACK: f64 = 150.0;
const STRIP: f64 = 8.0;
const CURVES: f64 = 70.0;

/// The dashes of curves, in turn.
const DASHES: [&[f64]; 3] = [&[], &[4.0, 4.0], &[1.5, 3.0]];

/// Cells per point of width: finer cells are not visible in print.
const COLUMNS_PER_POINT: f64 = 2.0;

/// The least width of a cell, so that a task of zero duration is visible.
const CELL_LEAST: f64 = 0.3;

/// The colour of users that have no colour of their own.
const OTHERS: RGBColor = RGBColor(190, 190, 190);

/// The colour of failures.
const FAILURE: RGBColor = RGBColor(190, 30, 45);

/// Returns the number of columns of cells for a sheet of this width.
pub fn timeline_columns(width: f64) -> usize {
    (width * COLUMNS_PER_POINT).max(1.0) as usize
}

/// A rectangle: a task, or all tasks of some rows in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimelineCell {
    /// The first row.
    pub top: f64,
    /// The end of the last row.
    pub bottom: f64,
    /// The start, in seconds.
    pub from: f64,
    /// The end, in seconds.
    pub until: f64,
    /// The index of the user.
    pub user: usize,
    /// The fraction of the rows and the interval that is in use, which is the strength of the colour.
    pub strength: f64,
    /// Whether the task was stopped at the end of the rectangle.
    pub stopped: bool,
}

/// The main panel.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineBody {
    /// Rows of cells.
    Rows {
        /// The label of the vertical axis.
        label: String,
        /// The names of rows: the first row, the end of the last row, the text.
        names: Vec<(f64, f64, String)>,
        /// The number of rows.
        rows: f64,
        /// The cells.
        cells: Vec<TimelineCell>,
    },
    /// Stacked amounts.
    Stack {
        /// The vertical axis.
        axis: Axis,
        /// The ends of intervals in seconds: one more than intervals.
        ends: Vec<f64>,
        /// The amount in each interval, by user.
        layers: Vec<Vec<f64>>,
    },
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineEvent {
    /// A job arrives.
    Arrival,
    /// A task fails or is lost.
    Failure,
    /// A task is preempted.
    Preemption,
}

/// A strip of marks.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineMarks {
    /// The label beside the strip.
    pub label: String,
    /// The kind of event.
    pub event: TimelineEvent,
    /// The times, in seconds.
    pub times: Vec<f64>,
}

/// The panel of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineCurves {
    /// The vertical axis.
    pub axis: Axis,
    /// The points of each user's curve: a value applies until the next point.
    pub curves: Vec<Vec<(f64, f64)>>,
}

/// A timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineChart {
    /// The subject, for screen readers.
    pub name: String,
    /// The width in points.
    pub width: f64,
    /// The start and the end, in seconds.
    pub window: (f64, f64),
    /// The users with a colour of their own.
    pub users: Vec<String>,
    /// The name of the users without a colour, which have the index after the last user; `None` if there are none.
    pub others: Option<String>,
    /// The main panel.
    pub body: TimelineBody,
    /// The strips of marks.
    pub marks: Vec<TimelineMarks>,
    /// The curves below; `None` for none.
    pub curves: Option<TimelineCurves>,
    /// The note under the chart, if any.
    pub note: Option<String>,
}

/// Draws a timeline as an SVG.
pub fn timeline(chart: &TimelineChart) -> String {
    let width = chart.width.clamp(60.0, 10_000.0);
    let mut looks = fills(chart.users.len());
    looks.push(SeriesStyle::plain(OTHERS));
    let body = match &chart.body {
        TimelineBody::Rows { rows, .. } => (rows * ROW).clamp(ROWS.0, ROWS.1),
        TimelineBody::Stack { .. } => STACK,
    };
    let strips = chart.marks.len() as f64 * STRIP + if chart.marks.is_empty() { 0.0 } else { GAP };
    let curves = if chart.curves.is_some() { CURVES + GAP } else { 0.0 };
    let scales = Scales::new(chart, body);
    let left = scales.left(chart);
    let right = width - MARGIN - 6.0;
    let top = MARGIN + 3.0;
    let bottom = top + body + strips + curves;
    let note = chart.note.as_ref().map_or(Vec::new(), |note| lines(note, SMALL, width - 2.0 * MARGIN));
    let entries = chart.users.iter().chain(&chart.others).zip(&looks);
    let entry =
        |(text, look): (&String, &SeriesStyle)| LegendEntry { text: text.clone(), sample: Sample::Bar(look.clone()) };
    let legend = Legend::rows(&[entries.map(entry).collect()], width - 2.0 * MARGIN);
    let below = bottom + TICK + SMALL + TEXT + 6.0;
    let height = below + legend.height + note.len() as f64 * (SMALL + 1.0) + MARGIN + 2.0;
    let mut canvas = Canvas::new(width, height, &chart.name);
    let sheet = Sheet { left, right, window: chart.window, looks: &looks };
    let x = sheet.time_scale(chart);
    sheet.mesh(&mut canvas, &x, (top, bottom));
    match &chart.body {
        TimelineBody::Rows { label, names, rows, cells } => {
            sheet.cells(&mut canvas, (top, body / rows.max(1.0)), cells);
            sheet.rules(&mut canvas, (top, body / rows.max(1.0)), names);
            canvas.layer(LayerGroup::class("text"), |pen| {
                sheet.row_names(pen, (top, body / rows.max(1.0)), names);
                sheet.label(pen, label, (top, top + body));
            });
        }
        TimelineBody::Stack { ends, layers, .. } => {
            let scale = scales.body.as_ref().expect("a stack has a scale");
            sheet.stack(&mut canvas, (top, top + body), scale, (ends, layers));
            sheet.amounts(&mut canvas, scale, (top, top + body));
        }
    }
    sheet.axis(&mut canvas, (top, top + body));
    let mut at = top + body + if chart.marks.is_empty() { 0.0 } else { GAP };
    for strip in &chart.marks {
        sheet.marks(&mut canvas, at, strip);
        at += STRIP;
    }
    if let (Some(curves), Some(scale)) = (&chart.curves, &scales.curves) {
        let place = (at + GAP, at + GAP + CURVES);
        sheet.amounts(&mut canvas, scale, place);
        sheet.curves(&mut canvas, scale, place, &curves.curves);
        sheet.axis(&mut canvas, place);
    }
    canvas.layer(LayerGroup::class("text"), |pen| {
        for (place, label) in &x.ticks {
            let at = left + place * (right - left);
            pen.text(&label.text, SMALL, INK, (at, bottom + TICK + 1.0 + SMALL), Anchor::Middle, TextDirection::Level);
        }
        let middle = ((left + right) / 2.0, bottom + TICK + SMALL + TEXT + 2.0);
        pen.text(&x.label, TEXT, INK, middle, Anchor::Middle, TextDirection::Level);
        for (nth, line) in note.iter().rev().enumerate() {
            let place = (width - MARGIN, height - MARGIN - nth as f64 * (SMALL + 1.0));
            pen.text(line, SMALL, GREY, place, Anchor::End, TextDirection::Level);
        }
    });
    legend.draw(&mut canvas, (((left + right - legend.width) / 2.0).max(MARGIN), below));
    canvas.finish()
}

/// The vertical scales of the panels with amounts.
struct Scales {
    body: Option<Scale>,
    curves: Option<Scale>,
}

impl Scales {
    fn new(chart: &TimelineChart, height: f64) -> Scales {
        let scale = |axis: &Axis, highest: f64, height: f64| {
            let highest = if drawable(highest) && highest > 0.0 { highest } else { 1.0 };
            Scale::new(axis, (0.0, highest), RangeEnds::Ticks, ((height / 18.0) as usize).clamp(2, 7), |_| true)
        };
        let body = match &chart.body {
            TimelineBody::Rows { .. } => None,
            TimelineBody::Stack { axis, ends, layers } => {
                let sum = |at: usize| layers.iter().map(|layer| layer.get(at).copied().unwrap_or(0.0)).sum::<f64>();
                let highest = (0..ends.len().saturating_sub(1)).map(sum).fold(0.0, f64::max);
                Some(scale(axis, highest, height))
            }
        };
        let curves = chart.curves.as_ref().map(|panel| {
            let highest = panel.curves.iter().flatten().map(|point| point.1).filter(|y| drawable(*y));
            scale(&panel.axis, highest.fold(0.0, f64::max), CURVES)
        });
        Scales { body, curves }
    }

    /// Returns the left end of the panels: names and tick labels need the space beside it.
    fn left(&self, chart: &TimelineChart) -> f64 {
        let ticks = [&self.body, &self.curves].into_iter().flatten().flat_map(|scale| &scale.ticks);
        let ticks = ticks.map(|(_, label)| label.width(SMALL)).fold(0.0, f64::max);
        let names = match &chart.body {
            TimelineBody::Rows { names, .. } => {
                names.iter().map(|(.., name)| font::width(name, SMALL)).fold(0.0, f64::max)
            }
            TimelineBody::Stack { .. } => 0.0,
        };
        let beside = ticks.max(names) + TEXT + 4.0;
        let marks = chart.marks.iter().map(|strip| font::width(&strip.label, SMALL)).fold(0.0, f64::max);
        MARGIN + beside.max(marks) + TICK + 2.0
    }
}

/// The horizontal extent of all panels, and the styles of users.
struct Sheet<'a> {
    left: f64,
    right: f64,
    window: (f64, f64),
    looks: &'a [SeriesStyle],
}

impl Sheet<'_> {
    fn x(&self, seconds: f64) -> f64 {
        let (from, until) = self.window;
        let part = if until > from { (seconds - from) / (until - from) } else { 0.0 };
        self.left + part.clamp(0.0, 1.0) * (self.right - self.left)
    }

    fn style(&self, user: usize) -> &SeriesStyle {
        &self.looks[user.min(self.looks.len() - 1)]
    }

    fn time_scale(&self, chart: &TimelineChart) -> Scale {
        let (from, until) = chart.window;
        let until = if until > from { until } else { from + 1.0 };
        let room = self.right - self.left;
        let axis = Axis::seconds("Time").range(from, until);
        Scale::new(&axis, (from, until), RangeEnds::Exact, ((room / 26.0) as usize).clamp(2, 10), |ticks| {
            ticks.windows(2).all(|pair| {
                let widths = (pair[0].1.width(SMALL) + pair[1].1.width(SMALL)) / 2.0;
                (pair[1].0 - pair[0].0) * room >= widths + 5.0
            })
        })
    }

    fn mesh(&self, canvas: &mut Canvas, x: &Scale, (top, bottom): (f64, f64)) {
        canvas.layer(LayerGroup::class("mesh"), |pen| {
            for (place, _) in &x.ticks {
                let at = self.left + place * (self.right - self.left);
                pen.path(&[(at, top), (at, bottom)], &LIGHT, HAIR);
            }
        });
        canvas.layer(LayerGroup::class("axis"), |pen| {
            for (place, _) in &x.ticks {
                let at = self.left + place * (self.right - self.left);
                pen.path(&[(at, bottom), (at, bottom + TICK)], &INK, HAIR);
            }
            pen.path(&[(self.left, bottom), (self.right, bottom)], &INK, HAIR);
        });
    }

    fn axis(&self, canvas: &mut Canvas, (top, bottom): (f64, f64)) {
        canvas.layer(LayerGroup::class("axis"), |pen| {
            pen.path(&[(self.left, top), (self.left, bottom), (self.right, bottom)], &INK, HAIR);
        });
    }

    fn cells(&self, canvas: &mut Canvas, (top, row): (f64, f64), cells: &[TimelineCell]) {
        // A gap separates the rows if they are high enough.
        let gap = if row >= 3.0 { 0.3 } else { 0.0 };
        canvas.layer(LayerGroup::class("cells"), |pen| {
            for cell in cells {
                let (from, until) = (self.x(cell.from), self.x(cell.until));
                let until = until.max(from + CELL_LEAST);
                let color = faded(self.style(cell.user).color, cell.strength);
                pen.rectangle((from, top + cell.top * row + gap), (until, top + cell.bottom * row - gap), &color);
            }
        });
        let narrow = |cell: &&TimelineCell| self.x(cell.until) - self.x(cell.from) > 2.0;
        canvas.layer(LayerGroup::class("bounds"), |pen| {
            for cell in cells.iter().filter(|cell| gap > 0.0 && cell.strength >= 1.0).filter(narrow) {
                let end = self.x(cell.until);
                let (high, low) = (top + cell.top * row + gap, top + cell.bottom * row - gap);
                match cell.stopped {
                    true => pen.rectangle((end - 1.0, high), (end, low), &INK),
                    false => pen.rectangle((end - 0.3, high), (end, low), &plotters::style::WHITE),
                }
            }
        });
    }

    /// Separates the machines, if their rows are high enough.
    fn rules(&self, canvas: &mut Canvas, (top, row): (f64, f64), names: &[(f64, f64, String)]) {
        canvas.layer(LayerGroup::class("rules"), |pen| {
            for (from, ..) in names.iter().skip(1).filter(|(from, until, _)| (until - from) * row >= RULED) {
                let y = top + from * row;
                pen.path(&[(self.left, y), (self.right, y)], &INK, 0.5);
            }
        });
    }

    /// Writes the names of rows that have room for them.
    fn row_names(&self, pen: &mut Pen, (top, row): (f64, f64), names: &[(f64, f64, String)]) {
        let mut free = top - SMALL;
        for (from, until, name) in names {
            let middle = top + (from + until) / 2.0 * row;
            if middle - free < SMALL {
                continue;
            }
            free = middle;
            let place = (self.left - TICK - 2.0, middle + 0.36 * SMALL);
            pen.text(name, SMALL, INK, place, Anchor::End, TextDirection::Level);
        }
    }

    fn label(&self, pen: &mut Pen, label: &str, (top, bottom): (f64, f64)) {
        let place = (MARGIN + TEXT * 0.8, (top + bottom) / 2.0);
        pen.text(&font::fit(label, TEXT, bottom - top + 8.0), TEXT, INK, place, Anchor::Middle, TextDirection::Up);
    }

    /// Draws the vertical axis of a panel of amounts.
    fn amounts(&self, canvas: &mut Canvas, scale: &Scale, (top, bottom): (f64, f64)) {
        canvas.layer(LayerGroup::class("axis"), |pen| {
            for (place, _) in &scale.ticks {
                let y = bottom - place * (bottom - top);
                pen.path(&[(self.left - TICK, y), (self.left, y)], &INK, HAIR);
            }
        });
        canvas.layer(LayerGroup::class("text"), |pen| {
            for (place, label) in &scale.ticks {
                let y = bottom - place * (bottom - top) + 0.36 * SMALL;
                pen.text(&label.text, SMALL, INK, (self.left - TICK - 2.0, y), Anchor::End, TextDirection::Level);
            }
            self.label(pen, &scale.label, (top, bottom));
        });
    }

    /// Draws stacked amounts, one polygon for each run of intervals with an amount.
    fn stack(&self, canvas: &mut Canvas, (top, bottom): (f64, f64), scale: &Scale, of: (&[f64], &[Vec<f64>])) {
        let (ends, layers) = of;
        let many = ends.len().saturating_sub(1);
        let y = |amount: f64| bottom - scale.at(amount).clamp(0.0, 1.0) * (bottom - top);
        let mut base = vec![0.0; many];
        for (user, layer) in layers.iter().enumerate() {
            let amount = |at: usize| layer.get(at).copied().filter(|value| drawable(*value)).unwrap_or(0.0).max(0.0);
            canvas.layer(LayerGroup { key: Some(&user.to_string()), ..LayerGroup::class("stack") }, |pen| {
                let mut at = 0;
                while at < many {
                    let end = (at..many).find(|&end| amount(end) <= 0.0).unwrap_or(many);
                    if end == at {
                        at += 1;
                        continue;
                    }
                    let upper = (at..end).flat_map(|bin| {
                        let high = y(base[bin] + amount(bin));
                        [(self.x(ends[bin]), high), (self.x(ends[bin + 1]), high)]
                    });
                    let lower = (at..end)
                        .rev()
                        .flat_map(|bin| [(self.x(ends[bin + 1]), y(base[bin])), (self.x(ends[bin]), y(base[bin]))]);
                    let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
                    pen.polygon(&outline, &self.style(user).color);
                    at = end;
                }
            });
            (0..many).for_each(|at| base[at] += amount(at));
        }
    }

    fn marks(&self, canvas: &mut Canvas, top: f64, strip: &TimelineMarks) {
        let color = match strip.event {
            TimelineEvent::Arrival => GREY,
            TimelineEvent::Failure => FAILURE,
            TimelineEvent::Preemption => INK,
        };
        canvas.layer(LayerGroup { key: Some(&strip.label), ..LayerGroup::class("marks") }, |pen| {
            for &time in &strip.times {
                let at = self.x(time);
                pen.path(&[(at, top + 1.0), (at, top + STRIP - 1.0)], &color, 0.5);
            }
        });
        canvas.layer(LayerGroup::class("text"), |pen| {
            let place = (self.left - TICK - 2.0, top + STRIP / 2.0 + 0.36 * SMALL);
            pen.text(&strip.label, SMALL, INK, place, Anchor::End, TextDirection::Level);
        });
    }

    fn curves(&self, canvas: &mut Canvas, scale: &Scale, (top, bottom): (f64, f64), curves: &[Vec<(f64, f64)>]) {
        // Dashed curves are drawn above solid ones, so that equal curves are visible.
        let mut order: Vec<usize> = (0..curves.len()).collect();
        order.sort_by_key(|user| (user % DASHES.len(), *user));
        for (user, curve) in order.into_iter().map(|user| (user, &curves[user])) {
            let mut points: Vec<(f64, f64)> = Vec::new();
            for &(time, value) in curve.iter().filter(|(_, value)| drawable(*value)) {
                let place = (self.x(time), bottom - scale.at(value).clamp(0.0, 1.0) * (bottom - top));
                points.extend(points.last().map(|last| (place.0, last.1)));
                points.push(place);
            }
            let key = user.to_string();
            let dash = DASHES[user % DASHES.len()];
            let group = LayerGroup { key: Some(&key), dash, ..LayerGroup::class("curve") };
            canvas.layer(group, |pen| pen.path(&thin(points), &self.style(user).color, 1.0));
        }
    }
}

/// Mixes a colour with white in quarters: a quarter of the colour for the least strength.
fn faded(RGBColor(red, green, blue): RGBColor, strength: f64) -> RGBColor {
    let part = (strength.clamp(0.0, 1.0) * 4.0).ceil().max(1.0) / 4.0;
    let mix = |channel: u8| (255.0 - (255.0 - f64::from(channel)) * part).round() as u8;
    RGBColor(mix(red), mix(green), mix(blue))
}

#[cfg(test)]
mod tests;
