//! Box plots: distributions side by side, drawn from their quantiles.
//!
//! Distributions of at most `POINTS` values are drawn as points, since their quantiles say little. Charts with too many series are
//! transposed (`many`).

use plotters::style::{Color, WHITE};

use super::bars::whisker;
use super::canvas::{INK, LayerGroup};
use super::frame::{Frame, Horizontal, Outline, Panel, Vertical, frame};
use super::legend::{Sample, entries, marker};
use super::many::Named;
use super::scale::{RangeEnds, extent, shown};
use super::style::{SeriesStyle, looks};
use super::{Category, Chart, many};

/// Fraction of a category's width that its boxes take.
const FILLED: f64 = 0.74;

/// The widest box, in points.
const WIDEST: f64 = 18.0;

/// Maximum number of values that are drawn as points, since quantiles of so few say little.
const POINTS: usize = 5;

/// The distribution of some values: quantiles by linear interpolation between the ordered values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// The 5, 25, 50, 75 and 95 % quantiles.
    pub quantiles: [f64; 5],
    /// The mean.
    pub mean: f64,
    /// Number of values.
    pub n: u64,
    /// The values, if they are few.
    pub values: Vec<f64>,
}

impl Spread {
    /// Creates the distribution of the finite values; `None` if there are none. Cost: O(n log n).
    pub fn from_values(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let quantile = |q: f64| {
            let place = q * last as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Some(Spread {
            quantiles: [0.05, 0.25, 0.5, 0.75, 0.95].map(quantile),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            n: sorted.len() as u64,
            values: if sorted.len() <= POINTS { sorted } else { Vec::new() },
        })
    }
}

/// One box in each category.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxSeries {
    /// Its name in the legend.
    pub label: String,
    /// The key that selects its colour; if empty, the category does.
    pub key: String,
    /// One distribution per category; `None` draws no box.
    pub spreads: Vec<Option<Spread>>,
}

/// One of several charts of boxes with the same axes and categories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxPanel {
    /// Its heading.
    pub title: String,
    /// Its boxes.
    pub series: Vec<BoxSeries>,
}

/// Draws charts of boxes. A box extends from the 25 to the 75 % quantile with a line at the median; its whiskers extend from 5 to 95 %, and
/// a marker shows the mean if the box is wide enough. Distributions of five values or fewer are drawn as points.
pub fn boxes(chart: &Chart, categories: &[Category], panels: &[BoxPanel]) -> String {
    let listed = |panel: &'_ BoxPanel| -> Vec<Named<Spread>> {
        panel.series.iter().map(|one| (one.label.clone(), one.spreads.clone())).collect()
    };
    let all: Vec<(&str, Vec<Named<Spread>>)> =
        panels.iter().map(|panel| (panel.title.as_str(), listed(panel))).collect();
    let Some(turned) = many::groups(chart, categories, &all) else { return draw_all(chart, categories, panels) };
    let panel = |(title, spreads): Named<Spread>| BoxPanel {
        title,
        series: vec![BoxSeries { spreads, ..BoxSeries::default() }],
    };
    let panels: Vec<BoxPanel> = turned.panels.into_iter().map(panel).collect();
    draw_all(&turned.chart, &turned.categories, &panels)
}

fn draw_all(chart: &Chart, categories: &[Category], panels: &[BoxPanel]) -> String {
    let all: Vec<&BoxSeries> = panels.iter().flat_map(|panel| &panel.series).collect();
    let keys: Vec<&str> = all.iter().map(|one| one.key.as_str()).collect();
    let looks = looks(&keys);
    let names: Vec<&str> = categories.iter().map(|category| category.label.as_str()).collect();
    let by_category = super::style::looks(&names);
    let spreads = || all.iter().flat_map(|one| one.spreads.iter().flatten());
    let ends = spreads()
        .flat_map(|one| [one.quantiles[0], one.quantiles[4], one.mean].into_iter().chain(one.values.iter().copied()));
    let labels = all.iter().zip(&looks).map(|(one, look)| (one.label.as_str(), Sample::Bar(look.clone())));
    let heights = extent(&chart.y, ends);
    let hidden = spreads().filter(|one| !shown(&chart.y, one.quantiles[2])).count();
    let mut frame = frame(Outline {
        chart,
        titles: panels.iter().map(|panel| panel.title.as_str()).collect(),
        x: Horizontal::Categories(categories),
        y: Vertical::Values(heights, RangeEnds::Ticks),
        legend: vec![entries(labels)],
        note: super::hidden_note(hidden),
    });
    let mut nth = 0;
    for (at, place) in frame.panels.clone().into_iter().enumerate() {
        let series = panels.get(at).map_or(&[][..], |panel| &panel.series);
        let looks = &looks[nth..nth + series.len()];
        nth += series.len();
        let any =
            series.iter().flat_map(|one| one.spreads.iter().flatten()).any(|one| shown(&chart.y, one.quantiles[2]));
        if !any {
            frame.no_data(place);
            continue;
        }
        let room = place.width() / categories.len().max(1) as f64;
        let width = (room * FILLED / series.len() as f64).min(WIDEST);
        for (nth, (one, look)) in series.iter().zip(looks).enumerate() {
            let shift = (nth as f64 - series.len() as f64 / 2.0 + 0.5) * width;
            for (category, spread) in one.spreads.iter().take(categories.len()).enumerate() {
                let Some(spread) = spread.as_ref().filter(|one| shown(&chart.y, one.quantiles[2])) else { continue };
                let x = place.x(0.0) + (category as f64 + 0.5) * room + shift;
                let look = if one.key.is_empty() { &by_category[category] } else { look };
                draw(&mut frame, place, one, look, (x, width * 0.8), spread);
            }
        }
    }
    frame.canvas.finish()
}

/// Draws one box.
fn draw(frame: &mut Frame, panel: Panel, one: &BoxSeries, look: &SeriesStyle, (x, width): (f64, f64), spread: &Spread) {
    let group = LayerGroup { key: Some(&one.key), tip: Some(&one.label), ..LayerGroup::class("series") };
    // Values that a logarithmic axis cannot show are drawn at its low end.
    let y = |value: f64| panel.y(frame.y.at(value).clamp(0.0, 1.0));
    if !spread.values.is_empty() {
        let points: Vec<f64> = spread.values.iter().map(|&value| y(value)).collect();
        frame.canvas.layer(group, |pen| points.iter().for_each(|&at| marker(pen, (x, at), look)));
        return;
    }
    let [low, first, median, third, high] = spread.quantiles.map(y);
    let mean = y(spread.mean);
    let half = width / 2.0;
    frame.canvas.layer(group, |pen| {
        whisker(pen, x, (low, high), half * 0.5, &look.color, 0.9);
        pen.rectangle((x - half, third), (x + half, first), &WHITE);
        pen.rectangle((x - half, third), (x + half, first), &look.color.mix(0.3));
        let corners = [(x - half, first), (x - half, third), (x + half, third), (x + half, first), (x - half, first)];
        pen.path(&corners, &look.color, 0.9);
        pen.path(&[(x - half, median), (x + half, median)], &INK, 1.25);
        if half > 2.5 {
            marker(pen, (x, mean), look);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_values() {
        let values: Vec<f64> = (0..=100).map(f64::from).chain([f64::NAN]).collect();
        let spread = Spread::from_values(&values).expect("values");
        assert_eq!((spread.quantiles, spread.mean, spread.n), ([5.0, 25.0, 50.0, 75.0, 95.0], 50.0, 101));
        assert_eq!(
            Spread::from_values(&[1.0, 2.0]).map(|spread| (spread.quantiles[2], spread.values.len())),
            Some((1.5, 2))
        );
        assert_eq!(Spread::from_values(&[f64::NAN]), None);
    }
}
