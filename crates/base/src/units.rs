//! Time, identifiers, units of resources, and the exact reading of decimal numbers. [`Resources`] are in their own module.
//!
//! All decisions of a simulation are made with these integer types, so a run is exact and repeats bit for bit; floats appear only in
//! reports. Readers convert text once, by decimal arithmetic ([`decimal`]): times round to the nearest microsecond, demands round up,
//! capacities down.

use std::fmt;
use std::ops::{Add, Sub};

pub use crate::resources::{MAX_DIMS, Resources};

/// An instant of simulated time, in microseconds since the trace's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Time(pub u64);

/// A length of simulated time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Span(pub u64);

/// Microseconds in a second.
pub const US_PER_S: u64 = 1_000_000;

/// The latest instant and the longest span that readers accept: 10^12 seconds, about 31,700 years. It is the largest number that
/// [`decimal`] returns. Sums of several such numbers do not overflow.
pub const TIME_MAX_US: u64 = DECIMAL_MAX;

impl Time {
    /// The instant at which a trace's clock starts.
    pub const ZERO: Time = Time(0);
    /// An instant later than all events.
    pub const NEVER: Time = Time(u64::MAX);

    /// Returns the span since an `earlier` instant. Panics if `earlier` is later (programmer error).
    pub fn since(self, earlier: Time) -> Span {
        debug_assert!(self >= earlier, "time runs forward");
        Span(self.0 - earlier.0)
    }

    /// Returns the seconds, for reports.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / US_PER_S as f64
    }
}

impl Span {
    /// A span of zero.
    pub const ZERO: Span = Span(0);

    /// A span longer than any run: the duration of tasks without an end.
    pub const ENDLESS: Span = Span(u64::MAX);

    /// Returns a span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(seconds * US_PER_S)
    }

    /// Returns the seconds, for reports.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / US_PER_S as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the identifier as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A user, dense in order of first appearance in the trace.
    UserId
);
id!(
    /// A job, dense in order of first appearance in the trace.
    JobId
);
id!(
    /// A machine, in the order of the cluster's description.
    MachineId
);

/// The unit of a resource, and its spelling in columns and plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Unit {
    /// Thousandths of one: milli-cores, milli-GPUs, thousandths of a named extra. Spelt `cpu`, `gpu`, `licence`, ...
    Milli,
    /// Mebibytes. Spelt `memory_mib` or `memory_gib`, `disk_gib`, ...
    Mebibyte,
    /// Millionths of the largest machine, for traces that are published normalised. Spelt `memory_norm`, ...
    Normalised,
}

impl Unit {
    /// Returns the number of base units in one unit for users: 1000 in a core, 1024 in a GiB, 1,000,000 in the largest machine.
    pub fn scale(self) -> u64 {
        match self {
            Unit::Milli => 1000,
            Unit::Mebibyte => 1024,
            Unit::Normalised => 1_000_000,
        }
    }

    /// Returns the unit in words, for axes and messages.
    pub fn label(self, resource: &str) -> &'static str {
        match (self, resource) {
            (Unit::Milli, "cpu") => "cores",
            (Unit::Milli, "gpu") => "GPUs",
            (Unit::Milli, _) => "units",
            (Unit::Mebibyte, _) => "GiB",
            (Unit::Normalised, _) => "of the largest machine",
        }
    }
}

/// One resource dimension: a name without its unit, and the unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Dim {
    /// `cpu`, `memory`, `gpu`, `disk`, ...
    pub name: String,
    /// The unit of its amounts.
    pub unit: Unit,
}

impl Dim {
    /// Reads a column or key such as `cpu`, `memory_gib` or `memory_norm`. Returns the dimension, and the number of base units in one
    /// written unit.
    pub fn parse(column: &str) -> (Dim, u64) {
        for (suffix, unit, scale) in
            [("_gib", Unit::Mebibyte, 1024), ("_mib", Unit::Mebibyte, 1), ("_norm", Unit::Normalised, 1_000_000)]
        {
            if let Some(name) = column.strip_suffix(suffix).filter(|name| !name.is_empty()) {
                return (Dim { name: name.to_owned(), unit }, scale);
            }
        }
        (Dim { name: column.to_owned(), unit: Unit::Milli }, 1000)
    }

    /// Returns the name of the column that contains this dimension in base units, in tables and canonical traces.
    pub fn column(&self) -> String {
        match self.unit {
            Unit::Milli => self.name.clone(),
            Unit::Mebibyte => format!("{}_mib", self.name),
            Unit::Normalised => format!("{}_norm", self.name),
        }
    }

    /// Returns an amount in the unit for users (cores, GiB).
    pub fn amount(&self, base: u64) -> f64 {
        base as f64 / self.unit.scale() as f64
    }

    /// Returns an amount with its unit, for reports.
    pub fn display(&self, base: u64) -> String {
        let (amount, unit) = (trim_float(self.amount(base)), self.unit.label(&self.name));
        let unit = if amount == "1" && unit == "cores" { "core" } else { unit };
        format!("{amount} {unit}")
    }
}

/// Returns the name of a resource for readers: `CPU`, `GPU`, others unchanged.
pub fn resource_name(name: &str) -> String {
    if matches!(name, "cpu" | "gpu") { name.to_ascii_uppercase() } else { name.to_owned() }
}

/// Formats a float with at most three decimals and no trailing zeros.
pub fn trim_float(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The rounding of digits finer than the unit in [`decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, halves up: times.
    Nearest,
    /// Up: demands.
    Up,
    /// Down: capacities.
    Down,
}

/// The reason why a number could not be read; each is displayed as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberProblem {
    /// Not a decimal number.
    NotANumber,
    /// `nan` or `inf`.
    NotFinite,
    /// Below zero.
    Negative,
    /// More base units than the type or the stated limit allows.
    TooLarge,
}

impl fmt::Display for NumberProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumberProblem::NotANumber => "is not a number",
            NumberProblem::NotFinite => "is not finite",
            NumberProblem::Negative => "is negative",
            NumberProblem::TooLarge => "is too large",
        })
    }
}

/// Reads a non-negative decimal number (`12`, `0.25`, `1e-3`) times `scale`. The result is exact and rounded once at the end.
///
/// No float is used, so `0.1` cores are 100 milli-cores and never 101. Surrounding blanks are allowed. Errors: a [`NumberProblem`]; more
/// than 10^18 base units is `TooLarge`.
#[inline]
pub fn decimal(text: &[u8], scale: u64, round: Rounding) -> Result<u64, NumberProblem> {
    // The common case is inlined.
    match digits(text).and_then(|value| value.checked_mul(scale)) {
        Some(product) if product <= DECIMAL_MAX => Ok(product),
        _ => decimal_with_point(text, scale, round),
    }
}

/// Reads digits with a decimal point, and passes other texts to [`decimal_general`].
fn decimal_with_point(text: &[u8], scale: u64, round: Rounding) -> Result<u64, NumberProblem> {
    if text.len() <= MOST_DIGITS
        && let (whole, [b'.', decimals @ ..]) = append_digits(0, text)
        && let (value, []) = append_digits(whole, decimals)
        && text.len() > 1
        // With many decimals the product exceeds 64 bits although the amount does not.
        && let Some(product) = value.checked_mul(scale).filter(|&product| product <= DECIMAL_MAX)
    {
        let divisor = POWERS[decimals.len()];
        let (whole, rest) = (product / divisor, product % divisor);
        let up = match round {
            Rounding::Down => false,
            Rounding::Up => rest > 0,
            Rounding::Nearest => rest >= divisor - divisor / 2,
        };
        return Ok(whole + u64::from(up));
    }
    decimal_general(text.trim_ascii(), scale, round)
}

/// A number of at most this many digits fits 64 bits.
const MOST_DIGITS: usize = 18;

/// The powers of ten up to that of [`MOST_DIGITS`].
const POWERS: [u64; MOST_DIGITS + 1] = {
    let mut powers = [1; MOST_DIGITS + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = 10 * powers[at - 1];
        at += 1;
    }
    powers
};

/// Returns the value of 1 to 18 decimal digits, `None` for any other text.
#[inline]
pub fn digits(text: &[u8]) -> Option<u64> {
    // The difference is large for an empty text.
    if text.len().wrapping_sub(1) >= MOST_DIGITS {
        return None;
    }
    let (value, rest) = append_digits(0, text);
    rest.is_empty().then_some(value)
}

/// Appends the leading digits of `text` to the number `value`; returns the result and the rest of the text. The caller ensures at most
/// [`MOST_DIGITS`] digits in total.
#[inline]
fn append_digits(mut value: u64, text: &[u8]) -> (u64, &[u8]) {
    for (at, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (value, &text[at..]);
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    (value, &[])
}

/// The largest amount that [`decimal`] returns.
pub const DECIMAL_MAX: u64 = 1_000_000_000_000_000_000;

fn decimal_general(text: &[u8], scale: u64, round: Rounding) -> Result<u64, NumberProblem> {
    let (negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let lower = body.to_ascii_lowercase();
    if matches!(lower.as_slice(), b"nan" | b"inf" | b"infinity") {
        return Err(NumberProblem::NotFinite);
    }
    let (mantissa, exponent) = match lower.iter().position(|&byte| byte == b'e') {
        Some(at) => (&lower[..at], integer(&lower[at + 1..])?),
        None => (lower.as_slice(), 0),
    };
    let mut digits: u128 = 0;
    let mut power: i64 = exponent;
    let mut lost = false;
    let (mut seen, mut point) = (false, false);
    for &byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                seen = true;
                if digits < 10u128.pow(27) {
                    digits = digits * 10 + u128::from(byte - b'0');
                    power -= i64::from(point);
                } else {
                    // Beyond 27 digits only the presence of another non-zero digit matters.
                    lost |= byte != b'0';
                    power += i64::from(!point);
                }
            }
            b'.' if !point => point = true,
            _ => return Err(NumberProblem::NotANumber),
        }
    }
    if !seen {
        return Err(NumberProblem::NotANumber);
    }
    if digits == 0 && !lost {
        return Ok(0);
    }
    if negative {
        return Err(NumberProblem::Negative);
    }
    let product = digits.checked_mul(u128::from(scale)).ok_or(NumberProblem::TooLarge)?;
    let (whole, remainder, divisor) = if power >= 0 {
        let factor = u32::try_from(power).ok().and_then(|p| 10u128.checked_pow(p)).ok_or(NumberProblem::TooLarge)?;
        (product.checked_mul(factor).ok_or(NumberProblem::TooLarge)?, 0, 1)
    } else {
        match u32::try_from(-power).ok().and_then(|p| 10u128.checked_pow(p)) {
            Some(divisor) => (product / divisor, product % divisor, divisor),
            // The divisor exceeds the range of a u128: the value is nearly zero, and its remainder is not zero.
            None => (0, 1, u128::MAX),
        }
    };
    let up = match round {
        Rounding::Down => false,
        Rounding::Up => remainder > 0 || lost,
        Rounding::Nearest => remainder >= divisor - divisor / 2 && remainder > 0,
    };
    let value = whole + u128::from(up);
    u64::try_from(value).ok().filter(|&v| v <= DECIMAL_MAX).ok_or(NumberProblem::TooLarge)
}

fn integer(text: &[u8]) -> Result<i64, NumberProblem> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|value| value.abs() < 10_000)
        .ok_or(NumberProblem::NotANumber)
}

/// Reads a span with a unit: `90` or `90s`, `15m`, `2h`, `7d`, `250ms`, `10us`.
pub fn span(text: &str) -> Result<Span, NumberProblem> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let scale = match text[split..].trim() {
        "" | "s" | "sec" => US_PER_S,
        "us" => 1,
        "ms" => 1000,
        "m" | "min" => 60 * US_PER_S,
        "h" => 3600 * US_PER_S,
        "d" => 86_400 * US_PER_S,
        _ => return Err(NumberProblem::NotANumber),
    };
    decimal(&text.as_bytes()[..split], scale, Rounding::Nearest).map(Span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_round_as_told() {
        let up = |text: &str| decimal(text.as_bytes(), 1000, Rounding::Up);
        assert_eq!(up("0.1"), Ok(100));
        assert_eq!(up("0.1001"), Ok(101));
        assert_eq!(up("1e-3"), Ok(1));
        assert_eq!(up("1e-40"), Ok(1));
        assert_eq!(up("2.5E2"), Ok(250_000));
        assert_eq!(up("0.1000000000000000000000000000000001"), Ok(101));
        assert_eq!(decimal(b"0.0015", 1000, Rounding::Nearest), Ok(2));
        assert_eq!(decimal(b"0.0014999", 1000, Rounding::Nearest), Ok(1));
        assert_eq!(decimal(b"0.0019", 1000, Rounding::Down), Ok(1));
        assert_eq!(decimal(b" 7 ", 1, Rounding::Down), Ok(7));
        assert_eq!(decimal(b"-0", 1, Rounding::Down), Ok(0));
    }

    #[test]
    fn the_short_way_agrees_with_the_general_one() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut next = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let size = next(8) as u32;
            let whole = next(10u64.pow(size));
            let mut text = whole.to_string();
            if next(2) == 0 {
                let places = next(11) as usize;
                text.push('.');
                (0..places).for_each(|_| text.push((b'0' + next(10) as u8) as char));
            }
            let scale = [1, 1000, 1024, 1_000_000][next(4) as usize];
            for round in [Rounding::Nearest, Rounding::Up, Rounding::Down] {
                let general = decimal_general(text.as_bytes(), scale, round);
                assert_eq!(decimal(text.as_bytes(), scale, round), general, "{text} x {scale} {round:?}");
            }
        }
    }

    #[test]
    fn bad_numbers_say_why() {
        let read = |text: &str| decimal(text.as_bytes(), 1000, Rounding::Up).unwrap_err();
        assert_eq!(read(""), NumberProblem::NotANumber);
        assert_eq!(read("1,5"), NumberProblem::NotANumber);
        assert_eq!(read("NaN"), NumberProblem::NotFinite);
        assert_eq!(read("-inf"), NumberProblem::NotFinite);
        assert_eq!(read("-3"), NumberProblem::Negative);
        assert_eq!(read("1e30"), NumberProblem::TooLarge);
        assert_eq!(read("99999999999999999999"), NumberProblem::TooLarge);
    }

    #[test]
    fn columns_carry_their_unit() {
        assert_eq!(Dim::parse("memory_gib"), (Dim { name: "memory".into(), unit: Unit::Mebibyte }, 1024));
        assert_eq!(Dim::parse("cpu"), (Dim { name: "cpu".into(), unit: Unit::Milli }, 1000));
        assert_eq!(Dim::parse("memory_norm").0.column(), "memory_norm");
    }

    #[test]
    fn spans_read_as_people_write_them() {
        assert_eq!(span("90"), Ok(Span::from_secs(90)));
        assert_eq!(span("1.5h"), Ok(Span::from_secs(5400)));
        assert_eq!(span("250ms"), Ok(Span(250_000)));
        assert_eq!(span("fast"), Err(NumberProblem::NotANumber));
    }
}
