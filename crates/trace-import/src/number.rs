//! Exact numbers: fractions of 128-bit integers, so that `0.07 * 100` is 7 and an id of 19 digits stays the same.
//!
//! If a result needs more than 128 bits, it is computed with doubles and rounded to 15 significant digits.

use std::cmp::Ordering;
use std::fmt;

use plimsoll_base::units::{DECIMAL_MAX, NumberProblem, Rounding};

/// The most digits of a number in a text that are read exactly.
const DIGITS: usize = 30;

/// A number as a reduced fraction with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: i128,
    denominator: i128,
}

impl From<i64> for Fraction {
    fn from(value: i64) -> Fraction {
        Fraction { numerator: value.into(), denominator: 1 }
    }
}

/// Returns the greatest common divisor, at least 1. Numbers of 64 bits are much faster to divide.
fn divisor(mut a: i128, mut b: i128) -> i128 {
    if let (Ok(mut a), Ok(mut b)) = (u64::try_from(a.unsigned_abs()), u64::try_from(b.unsigned_abs())) {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        return i128::from(a.max(1));
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs().max(1)
}

/// Returns the value of 1 to 9 decimal digits.
fn short_digits(text: &str) -> Option<u64> {
    if text.len() > 9 { None } else { plimsoll_base::units::digits(text.as_bytes()) }
}

impl Fraction {
    /// Zero.
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };

    /// Creates a fraction. Returns `None` if the denominator is 0 or 128 bits do not suffice.
    pub fn reduced(numerator: i128, denominator: i128) -> Option<Fraction> {
        if denominator == 1 {
            return Some(Fraction { numerator, denominator });
        }
        if denominator == 0 || numerator == i128::MIN || denominator == i128::MIN {
            return None;
        }
        let common = divisor(numerator, denominator) * denominator.signum();
        Some(Fraction { numerator: numerator / common, denominator: denominator / common })
    }

    /// Returns the numerator and the positive denominator.
    pub fn parts(self) -> (i128, i128) {
        (self.numerator, self.denominator)
    }

    /// Reads a decimal number such as `12`, `-0.5` or `1e-3`; `None` for other texts.
    pub fn parse(text: &str) -> Option<Fraction> {
        let text = text.trim_ascii();
        if let Some(digits) = plimsoll_base::units::digits(text.as_bytes()) {
            return Some(Fraction { numerator: digits.into(), denominator: 1 });
        }
        // Most other numbers have a few decimals.
        if let Some((whole, decimals)) = text.split_once('.')
            && let (Some(whole), Some(part)) = (short_digits(whole), short_digits(decimals))
        {
            let scale = 10i128.pow(decimals.len() as u32);
            return Fraction::reduced(i128::from(whole) * scale + i128::from(part), scale);
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok().filter(|e| e.abs() < 1000)?),
            None => (text, 0),
        };
        let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (negative, whole) = match whole.as_bytes().first() {
            Some(b'-') => (true, &whole[1..]),
            Some(b'+') => (false, &whole[1..]),
            _ => (false, whole),
        };
        if !(whole.bytes().chain(decimals.bytes())).all(|byte| byte.is_ascii_digit())
            || whole.len() + decimals.len() == 0
        {
            return None;
        }
        let decimals = decimals.trim_end_matches('0');
        let digits = format!("{whole}{decimals}");
        let digits = digits.trim_start_matches('0');
        let power = exponent - i32::try_from(decimals.len()).ok()?;
        if digits.len() > DIGITS {
            return Fraction::from_double(text.parse().ok()?);
        }
        let value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let value = if negative { -value } else { value };
        let scale = 10i128.checked_pow(power.unsigned_abs());
        let exact = scale.and_then(|scale| match power {
            0.. => value.checked_mul(scale).map(|numerator| Fraction { numerator, denominator: 1 }),
            _ => Fraction::reduced(value, scale),
        });
        exact.or_else(|| Fraction::from_double(text.parse().ok()?))
    }

    /// Converts a double, rounded to 15 significant digits; `None` if it is not finite or too large.
    pub fn from_double(value: f64) -> Option<Fraction> {
        if !value.is_finite() || value.abs() > 1e30 {
            return None;
        }
        if value.abs() < 1e-20 {
            return Some(Fraction::ZERO);
        }
        let text = format!("{value:.14e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let digits: i128 = mantissa.replace('.', "").parse().ok()?;
        let power = exponent.parse::<i32>().ok()? - 14;
        let scale = 10i128.checked_pow(power.unsigned_abs())?;
        if power >= 0 { Fraction::reduced(digits.checked_mul(scale)?, 1) } else { Fraction::reduced(digits, scale) }
    }

    /// Returns the nearest double.
    pub fn double(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    fn combine(self, other: Fraction, exact: Option<Fraction>, inexact: fn(f64, f64) -> f64) -> Option<Fraction> {
        exact.or_else(|| Fraction::from_double(inexact(self.double(), other.double())))
    }

    /// Adds; `None` if the result is too large.
    pub fn plus(self, other: Fraction) -> Option<Fraction> {
        let exact = || {
            if self.denominator == other.denominator {
                return Fraction::reduced(self.numerator.checked_add(other.numerator)?, self.denominator);
            }
            let (a, b) =
                (self.numerator.checked_mul(other.denominator)?, other.numerator.checked_mul(self.denominator)?);
            Fraction::reduced(a.checked_add(b)?, self.denominator.checked_mul(other.denominator)?)
        };
        self.combine(other, exact(), |a, b| a + b)
    }

    /// Subtracts; `None` if the result is too large.
    pub fn minus(self, other: Fraction) -> Option<Fraction> {
        self.plus(other.negated())
    }

    /// Returns the number with the opposite sign.
    pub fn negated(self) -> Fraction {
        Fraction { numerator: self.numerator.saturating_neg(), denominator: self.denominator }
    }

    /// Multiplies; `None` if the result is too large.
    pub fn times(self, other: Fraction) -> Option<Fraction> {
        let exact = || {
            let numerator = self.numerator.checked_mul(other.numerator)?;
            Fraction::reduced(numerator, self.denominator.checked_mul(other.denominator)?)
        };
        self.combine(other, exact(), |a, b| a * b)
    }

    /// Divides; `None` if the divisor is 0 or the result is too large.
    pub fn over(self, other: Fraction) -> Option<Fraction> {
        if other.numerator == 0 {
            return None;
        }
        let exact = || {
            let numerator = self.numerator.checked_mul(other.denominator)?;
            Fraction::reduced(numerator, self.denominator.checked_mul(other.numerator)?)
        };
        self.combine(other, exact(), |a, b| a / b)
    }

    /// Returns the integer at or below the number.
    pub fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    /// Returns the nearest integer, halves up.
    pub fn round(self) -> i128 {
        let rest = self.numerator.rem_euclid(self.denominator);
        self.floor() + i128::from(rest >= self.denominator - rest)
    }

    /// Returns the integer at or above the number.
    pub fn ceiling(self) -> i128 {
        self.floor() + i128::from(self.numerator.rem_euclid(self.denominator) != 0)
    }

    /// Returns whether the number is below 0.
    pub fn is_negative(self) -> bool {
        self.numerator < 0
    }

    /// Returns the number if it is an integer.
    pub fn integer(self) -> Option<i128> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// Returns the number times `scale` as a whole number from 0 to 10^18.
    pub fn scaled(self, scale: u64, round: Rounding) -> Result<u64, NumberProblem> {
        if self.is_negative() {
            return Err(NumberProblem::Negative);
        }
        let product =
            self.times(Fraction { numerator: scale.into(), denominator: 1 }).ok_or(NumberProblem::TooLarge)?;
        let whole = match round {
            Rounding::Up => product.ceiling(),
            Rounding::Down => product.floor(),
            Rounding::Nearest => product.round(),
        };
        u64::try_from(whole).ok().filter(|&whole| whole <= DECIMAL_MAX).ok_or(NumberProblem::TooLarge)
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        if self.denominator == other.denominator {
            return self.numerator.cmp(&other.numerator);
        }
        let (a, b) = (self.numerator.checked_mul(other.denominator), other.numerator.checked_mul(self.denominator));
        match (a, b) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.double().total_cmp(&other.double()),
        }
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => self.numerator.fmt(f),
            _ => self.double().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Fraction {
        Fraction::parse(text).expect(text)
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(number("0.07").times(number("100")), Some(number("7")));
        assert_eq!(number("0.1").plus(number("0.2")), Some(number("0.3")));
        assert_eq!(number("9223372036854775807").minus(number("9223372036854775806")), Some(number("1")));
        assert_eq!(number("1e-3").scaled(1000, Rounding::Up), Ok(1));
        assert_eq!(number("-1").scaled(1000, Rounding::Up), Err(NumberProblem::Negative));
        assert_eq!(number("1").over(number("3")).map(Fraction::ceiling), Some(1));
        assert_eq!((number("-1.5").floor(), number("-1.5").ceiling(), number("-1.5").round()), (-2, -1, -1));
        assert_eq!((number("2.5").round(), number("1e2").integer()), (3, Some(100)));
        assert!(number("-0.5") < number("0.25") && number("12846.0").integer() == Some(12846));
        assert_eq!(number("7").over(Fraction::ZERO), None);
        for text in ["", "-", "x", "1.2.3", "0x10", "1e", "nan", "inf", "--1", "1 2", "é"] {
            assert_eq!(Fraction::parse(text), None, "{text}");
        }
    }

    #[test]
    fn results_of_many_digits_are_rounded() {
        let long = number("1.23456789012345678");
        let cube = long.times(long).and_then(|square| square.times(long)).expect("it fits a double");
        assert!((cube.double() - long.double().powi(3)).abs() < 1e-13);
        assert!(Fraction::parse("0.1000000000000000000000000000000000001").is_some());
        assert_eq!(Fraction::parse("1e400"), None);
        assert_eq!(number("1e-400"), Fraction::ZERO);
        assert_eq!(number("12.5").to_string(), "12.5");
    }
}
