//! Curves: straight or in steps, with bands, alone or in small multiples; and distributions.
//!
//! A value that is not finite breaks a curve. Long curves are thinned without a visible difference (`thin`), and charts with too many
//! curves are transposed (`many`). Points that a logarithmic axis cannot show are counted in a note; the curve of a distribution instead
//! starts at the fraction of values that the axis cannot show.

use plotters::style::{Color, RGBColor};

use super::bars::whisker;
use super::canvas::LayerGroup;
use super::frame::{Frame, Horizontal, Outline, Panel as Spot, Vertical, frame};
use super::legend::{LegendEntry, Marked, Sample, hollow, marker};
use super::scale::{RangeEnds, drawable, extent, shown};
use super::style::{SeriesStyle, looks};
use super::thin::thin;
use super::{Axis, Chart, Measure, alike, many};

/// The width of a curve.
const STROKE: f64 = 1.25;

/// The colour of a faint curve, which others are compared with.
const FAINT: RGBColor = RGBColor(150, 150, 150);

/// The width of faint curves, and of curves with more than [`DENSE`] points.
const FINE: f64 = 0.9;

/// Curves with more points than this are drawn with a finer line.
const DENSE: usize = 400;

/// Curves with at most this many points get markers.
pub const MARKED: usize = 16;

/// The connection of consecutive points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// A straight line.
    #[default]
    Straight,
    /// Steps: a value applies until the next point.
    Steps,
}

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// The key that selects its colour, dashes and marker: a policy's name, a resource, a user.
    pub key: String,
    /// The points in ascending order of x. A value that is not finite breaks the curve.
    pub points: Vec<(f64, f64)>,
    /// `(x, low, high)` of the intervals around the curve, if it has some: error bars if the points have markers, otherwise a band.
    pub band: Option<Vec<(f64, f64, f64)>>,
    /// The number of values behind each point; empty if it does not apply.
    pub n: Vec<u64>,
    /// Indices of points that few values contribute to; their markers are hollow.
    pub few: Vec<usize>,
    /// Whether the curve is thin and grey behind the others, which are compared with it.
    pub faint: bool,
}

impl Series {
    /// Creates a curve with its key as its label.
    pub fn new(key: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        let key = key.into();
        Series { label: key.clone(), key, points, ..Series::default() }
    }
}

/// One of several charts with the same axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// Its curves.
    pub series: Vec<Series>,
}

/// Returns the empirical distribution of some values, as points `(value, fraction at or below it)`.
///
/// Values that are not numbers are ignored. Cost: O(values · log values).
pub fn ecdf(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let last_of_equals = |at: &usize| sorted.get(at + 1) != Some(&sorted[*at]);
    (0..sorted.len()).filter(last_of_equals).map(|at| (sorted[at], (at + 1) as f64 / count)).collect()
}

/// Draws a chart of curves.
pub fn lines(chart: &Chart, join: Join, series: &[Series]) -> String {
    let panel = Panel { title: String::new(), series: series.to_vec() };
    let legend = series.len() > 1 || series.iter().any(|one| !one.label.is_empty());
    draw(chart, &[panel], join, legend)
}

/// Draws a chart of curves in several panels that share axes and legend, such as one panel per policy or per resource.
pub fn small_multiples(chart: &Chart, join: Join, panels: &[Panel]) -> String {
    // A curve with its panel's heading as its label needs no legend.
    let repeats = |panel: &Panel| panel.series.len() <= 1 && panel.series.iter().all(|one| one.label == panel.title);
    draw(chart, panels, join, !panels.iter().all(repeats))
}

/// Draws a chart of distributions: points `(value, fraction at or below it)`, as returned by [`ecdf`].
///
/// The vertical axis shows 0 to 100 % unless the chart has a range. On a logarithmic axis, the curve starts with the fraction of values
/// that the axis cannot show.
pub fn cdf(chart: &Chart, series: &[Series]) -> String {
    cdf_panels(chart, &[Panel { title: String::new(), series: series.to_vec() }])
}

/// Draws charts of distributions that share axes and legend.
pub fn cdf_panels(chart: &Chart, panels: &[Panel]) -> String {
    let mut chart = chart.clone();
    chart.y = Axis { measure: Measure::Fraction, range: chart.y.range.or(Some((0.0, 1.0))), ..chart.y };
    let views = |series: &[&Series]| extent(&chart.x, series.iter().flat_map(|one| one.points.iter().map(|p| p.0)));
    let all: Vec<&Series> = panels.iter().flat_map(|panel| &panel.series).collect();
    let range = chart.x.range.or(views(&all));
    let complete = |one: &Series| complete_cdf(one, range, chart.x.log);
    let panel = |panel: &Panel| Panel { series: panel.series.iter().map(complete).collect(), ..panel.clone() };
    let panels: Vec<Panel> = panels.iter().map(panel).collect();
    small_multiples(&chart, Join::Steps, &panels)
}

/// Adds the vertical rise at the first value, and extends the curve to the right end of the axis.
fn complete_cdf(series: &Series, range: Option<(f64, f64)>, log: bool) -> Series {
    let Some((low, high)) = range else { return series.clone() };
    let mut points: Vec<(f64, f64)> =
        series.points.iter().copied().filter(|(x, y)| drawable(*x) && drawable(*y)).collect();
    let hidden = if log { points.iter().take_while(|(x, _)| *x <= 0.0).count() } else { 0 };
    match (hidden.checked_sub(1), points.first()) {
        // Values that a logarithm cannot show are all at the left edge.
        (Some(last), _) => {
            let start = (low, points[last].1);
            points.splice(..hidden, [start]);
        }
        (None, Some(&(x, _))) => points.insert(0, (x, 0.0)),
        (None, None) => {}
    }
    if let Some(&(x, y)) = points.last()
        && x < high
    {
        points.push((high, y));
    }
    Series { points, ..series.clone() }
}

fn draw(chart: &Chart, panels: &[Panel], join: Join, legend: bool) -> String {
    match many::curves(chart, panels) {
        None => views(chart, panels, panels, join, if legend { Legend::All } else { Legend::None }),
        Some((chart, turned)) => views(&chart, &turned, panels, join, Legend::Others),
    }
}

/// The curves that the legend lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Legend {
    None,
    All,
    /// Series with a label other than the heading of their panel.
    Others,
}

/// Draws panels. `plain` are the panels to search for coincident curves.
fn views(chart: &Chart, views: &[Panel], plain: &[Panel], join: Join, legend: Legend) -> String {
    let all: Vec<&Series> = views.iter().flat_map(|view| &view.series).collect();
    let keys: Vec<&str> = all.iter().map(|series| series.key.as_str()).collect();
    let own = looks(&keys).into_iter().zip(&all);
    let looks: Vec<SeriesStyle> =
        own.map(|(look, one)| if one.faint { SeriesStyle::plain(FAINT) } else { look }).collect();
    let ys = |series: &Series| -> Vec<f64> {
        let band = series.band.iter().flatten().flat_map(|&(_, low, high)| [low, high]);
        series.points.iter().filter(|point| shown(&chart.x, point.0)).map(|point| point.1).chain(band).collect()
    };
    let hidden = all.iter().flat_map(|series| &series.points).filter(|point| hidden(chart, **point)).count();
    let y_extent = extent(&chart.y, all.iter().flat_map(|one| ys(one)));
    let named: Vec<(&str, Vec<&Series>)> =
        plain.iter().map(|panel| (panel.title.as_str(), panel.series.iter().collect())).collect();
    let alike = y_extent.and_then(|extent| alike::coinciding_note(chart, join, &named, extent));
    let notes: Vec<String> = super::hidden_note(hidden).into_iter().chain(alike).collect();
    let places = views.iter().flat_map(|view| view.series.iter().map(move |one| (view, one))).zip(&looks);
    let listed: Vec<(&Series, &SeriesStyle)> = places
        .filter(|((view, one), _)| legend == Legend::All || one.label != view.title)
        .map(|((_, one), look)| (one, look))
        .collect();
    let x_ends = if chart.x.log && join == Join::Straight { RangeEnds::Ticks } else { RangeEnds::Exact };
    let mut frame = frame(Outline {
        chart,
        titles: views.iter().map(|view| view.title.as_str()).collect(),
        x: Horizontal::Values(
            inside_frame(&chart.x, extent(&chart.x, all.iter().flat_map(|one| one.points.iter().map(|p| p.0)))),
            x_ends,
        ),
        y: Vertical::Values(y_extent, RangeEnds::Ticks),
        legend: if legend == Legend::None { Vec::new() } else { vec![entries(&listed, join)] },
        note: (!notes.is_empty()).then(|| notes.join(". ")),
    });
    let panels = frame.panels.clone();
    let mut nth = 0;
    for (at, panel) in panels.into_iter().enumerate() {
        let view = views.get(at);
        let series = view.map_or(&[][..], |view| &view.series[..]);
        let looks = &looks[nth..nth + series.len()];
        nth += series.len();
        let ((left, top), (right, bottom)) = panel.corners();
        // A margin of one stroke, so that a curve along an edge keeps its width.
        let clip = frame.canvas.clip((left - STROKE, top - STROKE), (right + STROKE, bottom + STROKE));
        let curves: Vec<Curve> =
            series.iter().zip(looks).map(|(series, look)| Curve { series, look, join, clip }).collect();
        if !series.iter().any(|one| one.points.iter().any(|p| shown(&chart.x, p.0) && shown(&chart.y, p.1))) {
            frame.no_data(panel);
            continue;
        }
        curves.iter().for_each(|curve| curve.band(&mut frame, chart, panel));
        // Solid lines are drawn first and the most broken ones last, so that coincident curves are all visible. Of lines with the same
        // dashes, the first one is on top.
        let mut order: Vec<&Curve> = curves.iter().rev().collect();
        order.sort_by(|a, b| b.look.ink().total_cmp(&a.look.ink()));
        order.sort_by_key(|curve| !curve.series.faint);
        order.into_iter().for_each(|curve| curve.line(&mut frame, chart, panel));
    }
    frame.canvas.finish()
}

/// Widens the extent of an axis with given ticks, so that the first and the last marker are not on the frame.
fn inside_frame(axis: &Axis, extent: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let widened = |(low, high): (f64, f64)| {
        let margin = 0.04 * (high - low);
        if axis.ticks.is_empty() || axis.log { (low, high) } else { (low - margin, high + margin) }
    };
    extent.map(widened)
}

/// Returns whether a finite point has no place on a logarithmic axis.
fn hidden(chart: &Chart, (x, y): (f64, f64)) -> bool {
    drawable(x) && drawable(y) && !(shown(&chart.x, x) && shown(&chart.y, y))
}

fn marked(series: &Series, join: Join) -> Marked {
    if join == Join::Straight && series.points.len() <= MARKED && !series.faint { Marked::Yes } else { Marked::No }
}

/// Returns one legend entry per key and label.
fn entries(listed: &[(&Series, &SeriesStyle)], join: Join) -> Vec<LegendEntry> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut entries = Vec::new();
    for &(one, look) in listed {
        let name = (one.key.as_str(), one.label.as_str());
        if !seen.contains(&name) {
            seen.push(name);
            let sample = Sample::Line(look.clone(), marked(one, join));
            entries.push(LegendEntry { text: one.label.clone(), sample });
        }
    }
    entries
}

/// A series as drawn in one panel.
struct Curve<'a> {
    series: &'a Series,
    look: &'a SeriesStyle,
    join: Join,
    clip: usize,
}

impl Curve<'_> {
    fn group(&self) -> LayerGroup<'_> {
        LayerGroup {
            key: Some(&self.series.key),
            tip: Some(&self.series.label),
            clip: Some(self.clip),
            ..LayerGroup::class("series")
        }
    }

    fn line(&self, frame: &mut Frame, chart: &Chart, panel: Spot) {
        let visible = |point: &&(f64, f64)| shown(&chart.x, point.0) && shown(&chart.y, point.1);
        let place = |&(x, y): &(f64, f64)| (panel.x(frame.x.at(x)), panel.y(frame.y.at(y)));
        let runs: Vec<Vec<(f64, f64)>> = self
            .series
            .points
            .chunk_by(|a, b| visible(&a) && visible(&b))
            .map(|run| thin(run.iter().filter(visible).map(place).collect()))
            .collect();
        let group = LayerGroup { dash: self.look.dash, ..self.group() };
        let fine = self.series.faint || self.series.points.len() > DENSE;
        let width = if fine { FINE } else { STROKE };
        frame.canvas.layer(group, |pen| {
            for run in &runs {
                pen.path(&joined(run, self.join), &self.look.color, width);
            }
        });
        let all = marked(self.series, self.join) == Marked::Yes;
        frame.canvas.layer(LayerGroup { clip: None, ..self.group() }, |pen| {
            // A point without neighbours would be invisible as a line.
            for run in runs.iter().filter(|run| all || run.len() == 1) {
                run.iter().filter(|point| inside(panel, **point)).for_each(|&point| marker(pen, point, self.look));
            }
            // These markers are always drawn, since they show values of low confidence.
            let few = self.series.few.iter().filter_map(|&at| self.series.points.get(at));
            few.filter(visible)
                .map(place)
                .filter(|point| inside(panel, *point))
                .for_each(|at| hollow(pen, at, self.look));
        });
    }

    /// Draws the intervals of single points, where a band would hide other curves.
    fn whiskers(&self, frame: &mut Frame, chart: &Chart, panel: Spot, band: &[(f64, f64, f64)]) {
        let usable = |&&(x, low, high): &&(f64, f64, f64)| shown(&chart.x, x) && drawable(low) && drawable(high);
        let y = |frame: &Frame, value: f64| panel.y(frame.y.at(value));
        let places: Vec<(f64, (f64, f64))> = band
            .iter()
            .filter(usable)
            .map(|&(x, low, high)| (panel.x(frame.x.at(x)), (y(frame, low), y(frame, high))))
            .collect();
        frame.canvas.layer(self.group(), |pen| {
            places.iter().for_each(|&(x, ends)| whisker(pen, x, ends, 2.0, &self.look.color, 0.75));
        });
    }

    fn band(&self, frame: &mut Frame, chart: &Chart, panel: Spot) {
        let Some(band) = &self.series.band else { return };
        if marked(self.series, self.join) == Marked::Yes {
            return self.whiskers(frame, chart, panel, band);
        }
        let usable = |&&(x, low, high): &&(f64, f64, f64)| shown(&chart.x, x) && drawable(low) && drawable(high);
        let edge = |pick: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
            let points = band.iter().filter(usable);
            let places = points.map(|point| (panel.x(frame.x.at(point.0)), panel.y(frame.y.at(pick(point)))));
            joined(&thin(places.collect()), self.join)
        };
        let mut outline = edge(|point| point.2);
        outline.extend(edge(|point| point.1).into_iter().rev());
        let group = LayerGroup { class: "band", ..self.group() };
        frame.canvas.layer(group, |pen| {
            if outline.len() > 2 {
                pen.polygon(&outline, &self.look.color.mix(0.18));
            }
        });
    }
}

fn inside(panel: Spot, (x, y): (f64, f64)) -> bool {
    let ((left, top), (right, bottom)) = panel.corners();
    (left - 0.5..=right + 0.5).contains(&x) && (top - 0.5..=bottom + 0.5).contains(&y)
}

/// Returns the corners of a curve.
fn joined(points: &[(f64, f64)], join: Join) -> Vec<(f64, f64)> {
    if join == Join::Straight {
        return points.to_vec();
    }
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(2 * points.len());
    for &(x, y) in points {
        if let Some(&(last_x, last_y)) = corners.last()
            && last_y != y
            && last_x != x
        {
            corners.push((x, last_y));
        }
        corners.push((x, y));
    }
    corners
}
