//! Grouped bars with intervals: one group per category, one bar per series.
//!
//! Bars start at 0 on a linear axis, since their length is the value. A whisker shows the interval if it has a length. Charts with too
//! many series are transposed (`many`).

use plotters::style::{RGBColor, WHITE};

use super::canvas::{INK, LayerGroup, Pen};
use super::frame::{Frame, Horizontal, Outline, Panel, Vertical, frame};
use super::hatch::filled;
use super::legend::{Sample, entries};
use super::many::Named;
use super::scale::{RangeEnds, drawable, extent, shown};
use super::style::{SeriesStyle, looks};
use super::{Axis, Chart, many};

/// Fraction of a category's width that its bars take.
const FILLED: f64 = 0.78;

/// The widest bar, in points.
const WIDEST: f64 = 26.0;

/// One group of bars.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Category {
    /// The text under the group.
    pub label: String,
    /// Further lines under the label, such as the number of jobs.
    pub notes: Vec<String>,
}

impl Category {
    /// Creates a category without notes.
    pub fn new(label: impl Into<String>) -> Category {
        Category { label: label.into(), notes: Vec::new() }
    }
}

/// A mean and its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The height of the bar.
    pub mean: f64,
    /// The lower end of the whisker.
    pub low: f64,
    /// The upper end of the whisker.
    pub high: f64,
    /// Number of values behind the mean; 0 if it does not apply.
    pub n: u64,
}

/// One bar in each category.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// Its name in the legend.
    pub label: String,
    /// The key that selects its colour; if empty, the category does.
    pub key: String,
    /// One value per category; `None` draws no bar.
    pub values: Vec<Option<Interval>>,
}

/// One of several charts of bars with the same axes and categories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarPanel {
    /// Its heading.
    pub title: String,
    /// Its bars.
    pub series: Vec<BarSeries>,
}

/// Draws a chart of grouped bars. The vertical axis is linear and includes 0; values may be negative.
pub fn bars(chart: &Chart, categories: &[Category], series: &[BarSeries]) -> String {
    bar_panels(chart, categories, &[BarPanel { title: String::new(), series: series.to_vec() }])
}

/// Draws charts of grouped bars that share their axes, categories and legend.
pub fn bar_panels(chart: &Chart, categories: &[Category], panels: &[BarPanel]) -> String {
    let listed = |panel: &'_ BarPanel| -> Vec<Named<Interval>> {
        panel.series.iter().map(|one| (one.label.clone(), one.values.clone())).collect()
    };
    let all: Vec<(&str, Vec<Named<Interval>>)> =
        panels.iter().map(|panel| (panel.title.as_str(), listed(panel))).collect();
    let Some(turned) = many::groups(chart, categories, &all) else {
        return draw(chart, categories, panels, None);
    };
    let values = || turned.panels.iter().flat_map(|(_, values)| values.iter().flatten());
    // Bars start at 0.
    let means: Vec<f64> = values().map(|value| value.mean).chain([0.0]).collect();
    let ends: Vec<(f64, f64)> = values().map(|value| (value.low, value.high)).collect();
    let near = many::near(&turned.chart.y, &means, &ends);
    let range = turned.chart.y.range.or(near.map(|(range, _)| range));
    let chart = Chart { y: Axis { range, ..turned.chart.y.clone() }, ..turned.chart };
    let panel = |(title, values): Named<Interval>| BarPanel {
        title,
        series: vec![BarSeries { values, ..BarSeries::default() }],
    };
    let panels: Vec<BarPanel> = turned.panels.into_iter().map(panel).collect();
    draw(&chart, &turned.categories, &panels, near.and_then(|(_, beyond)| many::beyond_note(beyond)))
}

fn draw(chart: &Chart, categories: &[Category], panels: &[BarPanel], note: Option<String>) -> String {
    let mut chart = chart.clone();
    // Bars are lengths, and a logarithmic axis has no 0 to measure them from.
    chart.y = Axis { log: false, ..chart.y };
    let all: Vec<&BarSeries> = panels.iter().flat_map(|panel| &panel.series).collect();
    let keys: Vec<&str> = all.iter().map(|one| one.key.as_str()).collect();
    let looks = looks(&keys);
    let names: Vec<&str> = categories.iter().map(|category| category.label.as_str()).collect();
    let by_category = super::style::looks(&names);
    let drawn = |one: &'_ BarSeries| -> Vec<Interval> {
        let values = one.values.iter().take(categories.len()).flatten();
        values.copied().filter(|value| shown(&chart.y, value.mean)).collect()
    };
    let values: Vec<Interval> = all.iter().flat_map(|one| drawn(one)).collect();
    let ends = values.iter().flat_map(|value| [value.mean, value.low, value.high]);
    let heights = extent(&chart.y, ends).map(|(low, high)| (low.min(0.0), high.max(0.0)));
    let labels = all.iter().zip(&looks).map(|(one, look)| (one.label.as_str(), Sample::Bar(look.clone())));
    let mut frame = frame(Outline {
        chart: &chart,
        titles: panels.iter().map(|panel| panel.title.as_str()).collect(),
        x: Horizontal::Categories(categories),
        y: Vertical::Values(heights, RangeEnds::Ticks),
        legend: vec![entries(labels)],
        note,
    });
    let mut nth = 0;
    for (at, place) in frame.panels.clone().into_iter().enumerate() {
        let series = panels.get(at).map_or(&[][..], |panel| &panel.series);
        let looks = &looks[nth..nth + series.len()];
        nth += series.len();
        if !series.iter().any(|one| !drawn(one).is_empty()) {
            frame.no_data(place);
            continue;
        }
        panel_bars(&mut frame, &chart, &by_category, place, (series, looks));
    }
    frame.canvas.finish()
}

/// Draws the bars of one panel, and its line at 0. `categories` are the styles of the categories.
fn panel_bars(
    frame: &mut Frame,
    chart: &Chart,
    categories: &[SeriesStyle],
    panel: Panel,
    (series, looks): (&[BarSeries], &[SeriesStyle]),
) {
    let many = categories.len();
    let ((left, top), (right, bottom)) = panel.corners();
    let clip = frame.canvas.clip((left, top - 1.0), (right, bottom + 1.0));
    let room = panel.width() / many as f64;
    let width = (room * FILLED / series.len() as f64).min(WIDEST);
    for (nth, (one, look)) in series.iter().zip(looks).enumerate() {
        let shift = (nth as f64 - series.len() as f64 / 2.0) * width;
        let centre = |category: usize| left + (category as f64 + 0.5) * room + shift + width / 2.0;
        let of = |category: usize| if one.key.is_empty() { &categories[category] } else { look };
        let values: Vec<(f64, Interval, &SeriesStyle)> = one
            .values
            .iter()
            .take(many)
            .enumerate()
            .filter_map(|(category, value)| {
                value.filter(|v| shown(&chart.y, v.mean)).map(|v| (centre(category), v, of(category)))
            })
            .collect();
        let group =
            LayerGroup { key: Some(&one.key), tip: Some(&one.label), clip: Some(clip), ..LayerGroup::class("series") };
        series_bars(frame, group, panel, width, &values);
    }
    let zero = panel.y(frame.y.at(0.0));
    frame.canvas.layer(LayerGroup::class("axis"), |pen| {
        if (top..bottom).contains(&zero) {
            pen.path(&[(left, zero), (right, zero)], &INK, 0.75);
        }
    });
}

/// Draws the bars of one series with their whiskers.
fn series_bars(
    frame: &mut Frame,
    group: LayerGroup,
    panel: Panel,
    width: f64,
    values: &[(f64, Interval, &SeriesStyle)],
) {
    let y = |value: f64| panel.y(frame.y.at(value));
    // Leaves a narrow gap between the bars of a group.
    let half = width / 2.0 - (width * 0.06).min(0.5);
    let zero = y(0.0);
    let tops: Vec<(f64, f64, &SeriesStyle)> =
        values.iter().map(|(centre, value, look)| (*centre, y(value.mean), *look)).collect();
    let whiskers: Vec<(f64, f64, f64)> = values
        .iter()
        .filter(|(_, value, _)| drawable(value.low) && drawable(value.high) && value.low < value.high)
        .map(|(centre, value, _)| (*centre, y(value.low), y(value.high)))
        .collect();
    frame.canvas.layer(group.clone(), |pen| {
        for &(centre, top, look) in &tops {
            filled(pen, (centre - half, top.min(zero)), (centre + half, top.max(zero)), look.color, look.hatch);
        }
    });
    let cap = (half * 0.5).clamp(0.8, 2.2);
    // A white halo keeps a whisker visible on a dark bar.
    for (class, color, stroke) in [("halo", WHITE, 2.0), ("whisker", INK, 0.75)] {
        frame.canvas.layer(LayerGroup { class, key: None, tip: None, ..group.clone() }, |pen| {
            whiskers.iter().for_each(|&(centre, low, high)| whisker(pen, centre, (low, high), cap, &color, stroke));
        });
    }
}

/// Draws a vertical line with marked ends.
pub(super) fn whisker(pen: &mut Pen, x: f64, (low, high): (f64, f64), cap: f64, color: &RGBColor, stroke: f64) {
    pen.path(&[(x, low), (x, high)], color, stroke);
    pen.path(&[(x - cap, low), (x + cap, low)], color, stroke);
    pen.path(&[(x - cap, high), (x + cap, high)], color, stroke);
}
