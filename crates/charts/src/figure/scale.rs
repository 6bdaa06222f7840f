//! Maps values to positions along an axis, and selects ticks.
//!
//! Tick steps are 1, 2, 2.5 or 5 times a power of ten, or steps of the clock for seconds, minutes and hours. The number of ticks is
//! reduced until the labels fit. Values that are not finite, or not positive on a logarithmic axis, have no position.

use super::{Axis, Measure};
use crate::font;

/// A label at a tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    /// The text, or the base of a power.
    pub text: String,
    /// A raised exponent, if any.
    pub power: Option<String>,
}

impl Label {
    fn plain(text: String) -> Label {
        Label { text, power: None }
    }

    /// Returns its width at a font size.
    pub fn width(&self, size: f64) -> f64 {
        let power = self.power.as_deref().map_or(0.0, |power| font::width(power, size * POWER_SIZE));
        self.text.split('\n').map(|line| font::width(line, size)).fold(0.0, f64::max) + power
    }
}

/// The size of an exponent, relative to its base.
pub(super) const POWER_SIZE: f64 = 0.75;

/// The values that an axis shows, and their positions.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    /// Positions of the labelled ticks, with their labels.
    pub ticks: Vec<(f64, Label)>,
    /// Positions of the ticks between them.
    pub minor: Vec<f64>,
    /// The axis label with the unit.
    pub label: String,
}

/// The ends of an automatic range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeEnds {
    /// At the first and last value.
    Exact,
    /// At the ticks around them.
    Ticks,
}

/// Returns the least and the largest value that the axis can show, if there is one.
pub(super) fn extent(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|&value| shown(axis, value)).fold(None, |extent, value| {
        Some(extent.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}

/// Larger than any real quantity, and far from the limits of floats: larger numbers count as infinite.
const HUGE: f64 = 1e100;

/// Returns whether the axis can show the value.
pub(super) fn shown(axis: &Axis, value: f64) -> bool {
    drawable(value) && (!axis.log || value > 1.0 / HUGE)
}

/// Returns whether a linear axis can show the value.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() < HUGE
}

impl Scale {
    /// Creates a scale over `extent` with about `target` ticks; the number of ticks is reduced until `fits` accepts the labels.
    pub fn new(
        axis: &Axis,
        extent: (f64, f64),
        ends: RangeEnds,
        target: usize,
        fits: impl Fn(&[(f64, Label)]) -> bool,
    ) -> Scale {
        let asked = axis.range.filter(|&(low, high)| shown(axis, low) && shown(axis, high) && low < high);
        let ends = if asked.is_some() { RangeEnds::Exact } else { ends };
        let (low, high) = asked.unwrap_or_else(|| widen(axis, extent, ends));
        if !axis.ticks.is_empty() && !axis.log {
            let scale = linear(axis, low, high, ends, target.max(2)).with_ticks_at(axis, (low, high));
            if fits(&scale.ticks) {
                return scale;
            }
        }
        let mut target = target.max(2);
        loop {
            let scale =
                if axis.log { log_scale(axis, low, high, ends, target) } else { linear(axis, low, high, ends, target) };
            if target == 2 || fits(&scale.ticks) {
                return scale;
            }
            target -= 1;
        }
    }

    /// Replaces the ticks by those of the axis. `extent` has the values that the unit was selected for.
    fn with_ticks_at(mut self, axis: &Axis, extent: (f64, f64)) -> Scale {
        let (_, base) = unit(axis, extent.0, extent.1);
        let percent = if axis.measure == Measure::Fraction { " %" } else { "" };
        let label = |value: f64| {
            let rounded: f64 = format!("{:.5e}", value / base).parse().unwrap_or(value / base);
            Label::plain(format!("{}{percent}", minus(&rounded.to_string())))
        };
        let ticks = axis.ticks.iter().map(|&value| (self.at(value), label(value)));
        self.ticks = ticks.filter(|(at, _)| (-1e-6..=1.0 + 1e-6).contains(at)).collect();
        self
    }

    /// Creates a scale of names, one per unit, the first one on top.
    pub fn names(names: &[String], label: &str) -> Scale {
        let many = names.len().max(1) as f64;
        let tick = |(nth, name): (usize, &String)| (1.0 - (nth as f64 + 0.5) / many, Label::plain(name.clone()));
        let ticks = names.iter().enumerate().map(tick).collect();
        Scale { log: false, low: 0.0, high: many, ticks, minor: Vec::new(), label: label.to_owned() }
    }

    /// Returns the position of a value, 0 at the low end and 1 at the high end. Values that a logarithm cannot show are at the low end.
    pub fn at(&self, value: f64) -> f64 {
        if !self.log {
            return (value - self.low) / (self.high - self.low);
        }
        if value <= 0.0 { 0.0 } else { (value / self.low).ln() / (self.high / self.low).ln() }
    }
}

/// Widens a range so that it is not empty, and starts it at 0 if that costs little.
fn widen(axis: &Axis, (low, high): (f64, f64), ends: RangeEnds) -> (f64, f64) {
    if axis.log {
        return if low < high { (low, high) } else { (low / 3.0, high * 3.0) };
    }
    let (low, high) = match (low, high) {
        (low, high) if low < high => (low, high),
        (0.0, _) => (0.0, 1.0),
        (low, high) => (low - 0.1 * low.abs(), high + 0.1 * high.abs()),
    };
    let from_zero = ends == RangeEnds::Ticks && low > 0.0 && low < 0.6 * high;
    (if from_zero { 0.0 } else { low }, high)
}

/// Returns the unit of an axis: its suffix for the label, and the number of base units in it.
fn unit(axis: &Axis, low: f64, high: f64) -> (&'static str, f64) {
    let largest = low.abs().max(high.abs());
    match axis.measure {
        Measure::Fraction => ("", 0.01),
        Measure::Number => ("", 1.0),
        Measure::PlainSeconds => ("s", 1.0),
        Measure::Seconds if axis.log => ("s", 1.0),
        Measure::Seconds => time_unit(largest),
    }
}

/// Returns the unit of an axis of time up to `largest` seconds: its symbol and its length in seconds.
pub fn time_unit(largest: f64) -> (&'static str, f64) {
    let units = [
        (345_600.0, "d", 86_400.0),
        (10_800.0, "h", 3600.0),
        (300.0, "min", 60.0),
        (1.0, "s", 1.0),
        (1e-3, "ms", 1e-3),
    ];
    let fitting = units.into_iter().find(|&(from, ..)| largest >= from);
    fitting.map_or(("µs", 1e-6), |(_, name, seconds)| (name, seconds))
}

fn labelled(axis: &Axis, unit: &str) -> String {
    match (axis.label.as_str(), unit) {
        (label, "") => label.to_owned(),
        ("", unit) => unit.to_owned(),
        // A label of the user may have the unit.
        (label, unit) if label.ends_with(&format!("({unit})")) => label.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

fn linear(axis: &Axis, low: f64, high: f64, ends: RangeEnds, target: usize) -> Scale {
    let (name, base) = unit(axis, low, high);
    let step = nice_step((high - low) / base / target as f64, name);
    let (mut first, mut last) = ((low / base / step).ceil(), (high / base / step).floor());
    let (mut low, mut high) = (low, high);
    if ends == RangeEnds::Ticks {
        (first, last) = ((low / base / step + 1e-9).floor(), (high / base / step - 1e-9).ceil());
        (low, high) = (first * step * base, last * step * base);
    } else if axis.range.is_none() {
        // If the next tick is only just beyond the last value, the axis is extended to it.
        let next = (last + 1.0) * step * base;
        if next - high <= 0.03 * (high - low) {
            (last, high) = (last + 1.0, next);
        }
    }
    let largest = (first * step).abs().max((last * step).abs());
    let count = ((last - first).max(0.0) as usize).min(1000);
    let values: Vec<f64> = (0..=count).map(|nth| (first + nth as f64) * step).collect();
    let percent = if axis.measure == Measure::Fraction { " %" } else { "" };
    let place = |value: f64| (value * base - low) / (high - low);
    let ticks = values
        .iter()
        .map(|&value| (place(value), Label::plain(format!("{}{percent}", number(value, step, largest)))))
        .filter(|(at, _)| (-1e-6..=1.0 + 1e-6).contains(at))
        .collect();
    Scale { log: false, low, high, ticks, minor: Vec::new(), label: labelled(axis, name) }
}

/// Returns the least step of the series 1, 2, 2.5, 5 (or of the clock, for seconds, minutes and hours) that is at least `rough`.
fn nice_step(rough: f64, unit: &str) -> f64 {
    let clock: &[f64] = match unit {
        "h" => &[1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0],
        "min" | "s" => &[1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0],
        _ => &[],
    };
    let rough = rough.max(f64::MIN_POSITIVE);
    if let Some(&step) = clock.iter().find(|&&step| step >= rough).filter(|_| rough > 0.5) {
        return step;
    }
    let magnitude = 10f64.powi(rough.log10().floor() as i32);
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * magnitude >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * magnitude
}

/// Formats a tick's number with as many decimals as the step needs; from 10,000 on with k, M, G, ...
fn number(value: f64, step: f64, largest: f64) -> String {
    let (suffix, divisor) = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)]
        .into_iter()
        .find(|&(_, divisor)| largest >= divisor && largest >= 1e4)
        .unwrap_or(("", 1.0));
    let (value, step) = (value / divisor, step / divisor);
    if !(1e-6..1e15).contains(&step) {
        return minus(&format!("{value:.1e}"));
    }
    let decimals = (0..9).find(|&places| {
        let scaled = step * 10f64.powi(places);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0)
    });
    let text = format!("{value:.*}", decimals.unwrap_or(9) as usize);
    let zero = text.chars().all(|character| matches!(character, '-' | '0' | '.'));
    if zero { "0".to_owned() } else { minus(&format!("{text}{suffix}")) }
}

/// Replaces the hyphen of negative numbers by a minus sign.
fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

fn log_scale(axis: &Axis, low: f64, high: f64, ends: RangeEnds, target: usize) -> Scale {
    let (low, high) =
        if ends == RangeEnds::Ticks { (round_log(low, f64::floor), round_log(high, f64::ceil)) } else { (low, high) };
    let (name, _) = unit(axis, low, high);
    let place = |value: f64| (value / low).ln() / (high / low).ln();
    let inside = |value: f64| (-1e-9..=1.0 + 1e-9).contains(&place(value));
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades: Vec<i32> = (first..=last).filter(|&power| inside(10f64.powi(power))).collect();
    let mut scale = Scale { log: true, low, high, ticks: Vec::new(), minor: Vec::new(), label: labelled(axis, name) };
    let within = |factors: &[f64]| -> Vec<f64> {
        (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|&value| inside(value))
            .collect()
    };
    if decades.len() >= 3 || (decades.len() == 2 && target < 5) {
        let every = decades.len().div_ceil(target.max(2)).max(1);
        let labelled: Vec<i32> = decades.iter().copied().filter(|power| power.rem_euclid(every as i32) == 0).collect();
        let plain = axis.measure == Measure::Fraction || labelled.iter().all(|power| (-3..=4).contains(power));
        scale.ticks = labelled.iter().map(|&power| (place(10f64.powi(power)), decade(axis, power, plain))).collect();
        scale.minor = if every == 1 && decades.len() <= 9 {
            within(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).into_iter().map(place).collect()
        } else {
            decades.iter().map(|&power| place(10f64.powi(power))).collect()
        };
        return scale;
    }
    let factors: &[f64] = if target > 3 { &[1.0, 2.0, 5.0] } else { &[1.0, 3.0] };
    let values = within(factors);
    if values.len() >= 2 {
        scale.ticks = values.iter().map(|&value| (place(value), Label::plain(short(axis, value)))).collect();
        scale.minor = within(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).into_iter().map(place).collect();
        return scale;
    }
    // Fewer than two of these values are in the range: uses the ticks of a linear axis at logarithmic positions.
    let step = nice_step((high - low) / target as f64, "");
    let mut value = (low / step).ceil() * step;
    while value <= high && scale.ticks.len() < 20 {
        scale.ticks.push((place(value), Label::plain(short(axis, value))));
        value += step;
    }
    scale
}

/// Rounds a value to 1, 2 or 5 times a power of ten; `towards` is `floor` (down) or `ceil` (up).
fn round_log(value: f64, towards: fn(f64) -> f64) -> f64 {
    let up = towards(0.5) > 0.0;
    let magnitude = 10f64.powi(value.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
    let near = 1e-9 * value;
    let found = if up {
        steps.into_iter().find(|&step| step >= value - near)
    } else {
        steps.into_iter().rev().find(|&step| step <= value + near)
    };
    found.unwrap_or(value)
}

fn decade(axis: &Axis, power: i32, plain: bool) -> Label {
    if plain {
        Label::plain(short(axis, 10f64.powi(power)))
    } else {
        Label { text: "10".to_owned(), power: Some(minus(&power.to_string())) }
    }
}

/// Formats a number with few digits and without trailing zeros.
fn short(axis: &Axis, value: f64) -> String {
    let (value, percent) = if axis.measure == Measure::Fraction { (value * 100.0, " %") } else { (value, "") };
    // Three significant digits.
    let places = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.places$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    minus(&format!("{text}{percent}"))
}
