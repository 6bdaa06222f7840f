//! The number types of the solvers: exact fractions and floats.
//!
//! [`Exact`] stores a fraction in machine words while they suffice, and as big integers otherwise. Equal numbers have one form, so results
//! do not depend on the order of the operations. Operations on a long and a short fraction avoid the general greatest common divisor, and a
//! sum of long fractions is reduced once. [`Number`] lets a solver be written once for [`Exact`] and `f64`.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Div, Mul, Sub};

use num_bigint::BigInt;
use num_rational::{BigRational, Ratio};
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul, CheckedSub, FromPrimitive, Signed, ToPrimitive, Zero};

/// An exact fraction, stored in machine words if they suffice, else as big integers.
#[derive(Clone, Debug)]
pub struct Exact(Form);

#[derive(Clone, Debug)]
enum Form {
    Small(Ratio<i64>),
    /// Only numbers that [`Form::Small`] cannot represent, so that equal numbers have one form.
    Big(Box<BigRational>),
}

impl Exact {
    /// Zero.
    pub const ZERO: Exact = Exact(Form::Small(Ratio::new_raw(0, 1)));
    /// One.
    pub const ONE: Exact = Exact(Form::Small(Ratio::new_raw(1, 1)));

    /// Returns the fraction `numerator / denominator`. Panics: the denominator is 0 (a programmer error).
    pub fn ratio(numerator: i64, denominator: i64) -> Exact {
        if numerator == i64::MIN || denominator == i64::MIN {
            return Exact::from_big(BigRational::new(numerator.into(), denominator.into()));
        }
        Exact(Form::Small(Ratio::new(numerator, denominator)))
    }

    /// Returns the shortest decimal number that reads back as this float, so that 0.1 is a tenth.
    ///
    /// Returns `None` if the float is not finite.
    pub fn decimal(value: f64) -> Option<Exact> {
        if !value.is_finite() {
            return None;
        }
        // For example `1.25e-3`.
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
        let power = exponent.parse::<i64>().ok()? - fraction.len() as i64;
        let scale = BigInt::from(10).pow(u32::try_from(power.unsigned_abs()).ok()?);
        Some(Exact::from_big(if power < 0 {
            BigRational::new(digits, scale)
        } else {
            BigRational::from_integer(digits * scale)
        }))
    }

    /// Returns the exact value of a float, or `None` if it is not finite.
    pub fn of_float(value: f64) -> Option<Exact> {
        BigRational::from_f64(value).map(Exact::from_big)
    }

    fn from_big(value: BigRational) -> Exact {
        // `i64::MIN` is excluded because the checked operations of a ratio negate.
        let small = |part: &BigInt| part.to_i64().filter(|part| *part != i64::MIN);
        match (small(value.numer()), small(value.denom())) {
            (Some(numerator), Some(denominator)) => Exact(Form::Small(Ratio::new_raw(numerator, denominator))),
            _ => Exact(Form::Big(Box::new(value))),
        }
    }

    fn big(&self) -> BigRational {
        match &self.0 {
            Form::Small(ratio) => BigRational::new_raw((*ratio.numer()).into(), (*ratio.denom()).into()),
            Form::Big(ratio) => (**ratio).clone(),
        }
    }

    /// Returns the nearest float.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            // Both parts are exact floats, so only one rounding occurs.
            Form::Small(ratio) if ratio.numer().abs() < 1 << 53 && *ratio.denom() < 1 << 53 => {
                *ratio.numer() as f64 / *ratio.denom() as f64
            }
            _ => self.big().to_f64().unwrap_or(f64::NAN),
        }
    }

    /// Returns whether the number is an integer.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Form::Small(ratio) => ratio.is_integer(),
            Form::Big(ratio) => ratio.is_integer(),
        }
    }

    /// Returns the largest integer that is not above the number.
    pub fn floor(&self) -> Exact {
        match &self.0 {
            Form::Small(ratio) => Exact::ratio(ratio.numer().div_euclid(*ratio.denom()), 1),
            Form::Big(ratio) => Exact::from_big(ratio.floor()),
        }
    }

    /// Returns the numerator and the denominator, if both fit 64 bits.
    pub fn parts(&self) -> Option<(i64, i64)> {
        match &self.0 {
            Form::Small(ratio) => Some((*ratio.numer(), *ratio.denom())),
            Form::Big(_) => None,
        }
    }

    /// Returns whether the number is above 0.
    pub fn is_positive(&self) -> bool {
        match &self.0 {
            Form::Small(ratio) => ratio.is_positive(),
            Form::Big(ratio) => ratio.is_positive(),
        }
    }

    /// Returns whether the number is below 0.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Form::Small(ratio) => ratio.is_negative(),
            Form::Big(ratio) => ratio.is_negative(),
        }
    }
}

impl From<u64> for Exact {
    fn from(value: u64) -> Exact {
        match i64::try_from(value) {
            Ok(value) => Exact(Form::Small(Ratio::from_integer(value))),
            Err(_) => Exact::from_big(BigRational::from_integer(value.into())),
        }
    }
}

impl fmt::Display for Exact {
    /// Writes `45/11`, or `3` for an integer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Small(ratio) => ratio.fmt(f),
            Form::Big(ratio) => ratio.fmt(f),
        }
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Exact {}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> Ordering {
        match (&self.0, &other.0) {
            (Form::Small(a), Form::Small(b)) => {
                let cross = |x: &Ratio<i64>, y: &Ratio<i64>| i128::from(*x.numer()) * i128::from(*y.denom());
                cross(a, b).cmp(&cross(b, a))
            }
            (Form::Big(a), Form::Small(b)) => (a.numer() * *b.denom()).cmp(&(a.denom() * *b.numer())),
            (Form::Small(a), Form::Big(b)) => (b.denom() * *a.numer()).cmp(&(b.numer() * *a.denom())),
            (Form::Big(a), Form::Big(b)) => (a.numer() * b.denom()).cmp(&(b.numer() * a.denom())),
        }
    }
}

/// Returns the greatest common divisor of a number and a positive word. This takes one long division; the general method takes as many
/// steps as the number has bits.
fn divisor(number: &BigInt, word: i64) -> i64 {
    let (mut a, mut b) = (word, (number % word).to_i64().unwrap_or_default().abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Adds a short fraction to a fraction of any length, both in lowest terms. The common factor of the result is a divisor of the short
/// denominator (Knuth, The Art of Computer Programming 2, section 4.5.1).
fn plus_short(long: &BigRational, short: &Ratio<i64>) -> BigRational {
    let (numerator, denominator) = (*short.numer(), *short.denom());
    let common = divisor(long.denom(), denominator);
    let rest = long.denom() / common;
    let sum = long.numer() * (denominator / common) + &rest * numerator;
    let twice = divisor(&sum, common);
    BigRational::new_raw(sum / twice, rest * (denominator / twice))
}

fn times_short(long: &BigRational, numerator: i64, denominator: i64) -> BigRational {
    if numerator == 0 {
        return BigRational::zero();
    }
    let (above, below) = (divisor(long.numer(), denominator), divisor(long.denom(), numerator.abs()));
    BigRational::new_raw(long.numer() / above * (numerator / below), long.denom() / below * (denominator / above))
}

/// Operations on a long and a short fraction, in either order.
trait Mixed: Sized {
    fn add_short(&self, short: &Ratio<i64>) -> Self;
    fn add_to_short(&self, short: &Ratio<i64>) -> Self;
    fn sub_short(&self, short: &Ratio<i64>) -> Self;
    fn sub_to_short(&self, short: &Ratio<i64>) -> Self;
    fn mul_short(&self, short: &Ratio<i64>) -> Self;
    fn mul_to_short(&self, short: &Ratio<i64>) -> Self;
    fn div_short(&self, short: &Ratio<i64>) -> Self;
    fn div_to_short(&self, short: &Ratio<i64>) -> Self;
}

impl Mixed for BigRational {
    fn add_short(&self, short: &Ratio<i64>) -> Self {
        plus_short(self, short)
    }
    fn add_to_short(&self, short: &Ratio<i64>) -> Self {
        plus_short(self, short)
    }
    fn sub_short(&self, short: &Ratio<i64>) -> Self {
        plus_short(self, &-short)
    }
    fn sub_to_short(&self, short: &Ratio<i64>) -> Self {
        -plus_short(self, &-short)
    }
    fn mul_short(&self, short: &Ratio<i64>) -> Self {
        times_short(self, *short.numer(), *short.denom())
    }
    fn mul_to_short(&self, short: &Ratio<i64>) -> Self {
        times_short(self, *short.numer(), *short.denom())
    }
    fn div_short(&self, short: &Ratio<i64>) -> Self {
        assert!(!short.is_zero(), "division by zero");
        times_short(self, *short.denom() * short.numer().signum(), short.numer().abs())
    }
    fn div_to_short(&self, short: &Ratio<i64>) -> Self {
        times_short(&self.recip(), *short.numer(), *short.denom())
    }
}

macro_rules! operation {
    ($trait:ident, $method:ident, $checked:ident, $short:ident, $to_short:ident) => {
        impl $trait for &Exact {
            type Output = Exact;
            fn $method(self, other: &Exact) -> Exact {
                if let (Form::Small(a), Form::Small(b)) = (&self.0, &other.0)
                    && let Some(result) = a.$checked(b)
                    && *result.numer() != i64::MIN
                {
                    return Exact(Form::Small(result));
                }
                Exact::from_big(match (&self.0, &other.0) {
                    (Form::Big(a), Form::Small(b)) => a.$short(b),
                    (Form::Small(a), Form::Big(b)) => b.$to_short(a),
                    _ => self.big().$method(other.big()),
                })
            }
        }

        impl $trait for Exact {
            type Output = Exact;
            fn $method(self, other: Exact) -> Exact {
                (&self).$method(&other)
            }
        }
    };
}

operation!(Add, add, checked_add, add_short, add_to_short);
operation!(Sub, sub, checked_sub, sub_short, sub_to_short);
operation!(Mul, mul, checked_mul, mul_short, mul_to_short);
operation!(Div, div, checked_div, div_short, div_to_short);

/// Adds long fractions on a common denominator and reduces to lowest terms once at the end.
impl<'a> Sum<&'a Exact> for Exact {
    fn sum<I: Iterator<Item = &'a Exact>>(values: I) -> Exact {
        let mut short = Exact::ZERO;
        let mut long: Option<(BigInt, BigInt)> = None;
        for value in values {
            let Some((numerator, denominator)) = &mut long else {
                short = &short + value;
                if let Form::Big(sum) = &short.0 {
                    long = Some((sum.numer().clone(), sum.denom().clone()));
                }
                continue;
            };
            let value = value.big();
            if (&*denominator % value.denom()).is_zero() {
                *numerator += value.numer() * (&*denominator / value.denom());
            } else {
                // Both denominators without their common factor.
                let rest = BigRational::new(denominator.clone(), value.denom().clone());
                *numerator = &*numerator * rest.denom() + value.numer() * rest.numer();
                *denominator *= rest.denom();
            }
        }
        long.map_or(short, |(numerator, denominator)| Exact::from_big(BigRational::new(numerator, denominator)))
    }
}

/// A number type of the solvers: [`Exact`] if the answer is a fraction, `f64` if it is not.
///
/// Division by zero is a programmer error.
pub trait Number: Clone + fmt::Debug + PartialOrd {
    /// Returns zero.
    fn zero() -> Self;
    /// Converts from an exact number; a float rounds once.
    fn from_exact(value: &Exact) -> Self;
    /// Returns the nearest float.
    fn float(&self) -> f64;
    /// Returns the sum.
    fn plus(&self, other: &Self) -> Self;
    /// Returns the difference.
    fn minus(&self, other: &Self) -> Self;
    /// Returns the product.
    fn times(&self, other: &Self) -> Self;
    /// Returns the quotient.
    fn over(&self, other: &Self) -> Self;
    /// Compares `self + a * b` with `total`. Returns `None` if a number is NaN.
    fn with_product(&self, a: &Self, b: &Self, total: &Self) -> Option<Ordering> {
        self.plus(&a.times(b)).partial_cmp(total)
    }
    /// Returns whether the number is 0.
    fn is_zero(&self) -> bool;
    /// Returns the largest relative difference of two numbers that are considered equal.
    fn slack() -> Self;
}

impl Number for Exact {
    fn zero() -> Exact {
        Exact::ZERO
    }
    fn from_exact(value: &Exact) -> Exact {
        value.clone()
    }
    fn float(&self) -> f64 {
        self.to_f64()
    }
    fn plus(&self, other: &Exact) -> Exact {
        self + other
    }
    fn minus(&self, other: &Exact) -> Exact {
        self - other
    }
    fn times(&self, other: &Exact) -> Exact {
        self * other
    }
    fn over(&self, other: &Exact) -> Exact {
        self / other
    }
    fn with_product(&self, a: &Exact, b: &Exact, total: &Exact) -> Option<Ordering> {
        let [own, a, b, total] = [self, a, b, total].map(Exact::big);
        // Not reduced to lowest terms, because the reduction dominates the cost of long fractions.
        let below = a.denom() * b.denom();
        let sum = own.numer() * &below + a.numer() * b.numer() * own.denom();
        Some((sum * total.denom()).cmp(&(total.numer() * own.denom() * below)))
    }
    fn is_zero(&self) -> bool {
        match &self.0 {
            Form::Small(ratio) => ratio.is_zero(),
            Form::Big(_) => false,
        }
    }
    fn slack() -> Exact {
        Exact::ZERO
    }
}

impl Number for f64 {
    fn zero() -> f64 {
        0.0
    }
    fn from_exact(value: &Exact) -> f64 {
        value.to_f64()
    }
    fn float(&self) -> f64 {
        *self
    }
    fn plus(&self, other: &f64) -> f64 {
        self + other
    }
    fn minus(&self, other: &f64) -> f64 {
        self - other
    }
    fn times(&self, other: &f64) -> f64 {
        self * other
    }
    fn over(&self, other: &f64) -> f64 {
        self / other
    }
    fn is_zero(&self) -> bool {
        *self == 0.0
    }
    fn slack() -> f64 {
        1e-12
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn small_and_big_forms_agree() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut grown = 0;
        for _ in 0..20_000 {
            let mut draw = || {
                let limit = [9, 1 << 20, i64::MAX][rng.random_range(0..3)];
                Exact::ratio(rng.random_range(-limit..=limit), rng.random_range(1..=limit))
            };
            let (a, b) = (draw(), draw());
            assert_eq!((&a + &b).big(), a.big() + b.big());
            assert_eq!((&a - &b).big(), a.big() - b.big());
            assert_eq!((&a * &b).big(), a.big() * b.big());
            if !b.is_zero() {
                assert_eq!((&a / &b).big(), a.big() / b.big());
                assert_eq!(&(&a / &b) * &b, a);
            }
            assert_eq!(a.cmp(&b), a.big().cmp(&b.big()));
            assert_eq!(a.floor().big(), a.big().floor());
            // Operations on a long and a short number, and on two long ones.
            let (long, other) = (&(&a * &b) + &a, &(&b * &b) - &a);
            for (x, y) in [(&long, &a), (&b, &long), (&long, &other)] {
                assert_eq!((x + y).big(), x.big() + y.big(), "{x} + {y}");
                assert_eq!((x - y).big(), x.big() - y.big(), "{x} - {y}");
                assert_eq!((x * y).big(), x.big() * y.big(), "{x} * {y}");
                if !y.is_zero() {
                    assert_eq!((x / y).big(), x.big() / y.big(), "{x} / {y}");
                }
                assert_eq!(x.cmp(y), x.big().cmp(&y.big()), "{x} and {y}");
                let total = &(x * y) + &a;
                assert_eq!(a.with_product(x, y, &total), Some(Ordering::Equal));
                assert_eq!(a.with_product(x, y, &(&total + &Exact::ONE)), Some(Ordering::Less));
            }
            grown += usize::from((&a * &b).parts().is_none());
        }
        assert!(grown > 1000, "only {grown} products outgrew the small form");
    }

    #[test]
    fn sums_are_in_lowest_terms() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for limit in [9, 1 << 20, i64::MAX] {
            for _ in 0..200 {
                let mut draw = || Exact::ratio(rng.random_range(-limit..=limit), rng.random_range(1..=limit));
                let values: Vec<Exact> =
                    (0..12).map(|at| if at % 3 == 0 { &draw() * &draw() } else { draw() }).collect();
                let one_by_one = values.iter().fold(Exact::ZERO, |sum, value| &sum + value);
                let sum = values.iter().sum::<Exact>();
                assert_eq!((sum.to_string(), sum.parts()), (one_by_one.to_string(), one_by_one.parts()));
            }
        }
    }

    #[test]
    fn decimals_are_what_was_written() {
        let decimal = |value: f64| Exact::decimal(value).expect("finite").to_string();
        assert_eq!(decimal(0.1), "1/10");
        assert_eq!(decimal(18.0), "18");
        assert_eq!(decimal(1.25e-3), "1/800");
        assert_eq!(decimal(-0.5), "-1/2");
        assert_eq!(decimal(3e20), "300000000000000000000");
        assert!(Exact::decimal(f64::NAN).is_none() && Exact::decimal(f64::INFINITY).is_none());
        assert_eq!(Exact::of_float(0.5), Some(Exact::ratio(1, 2)));
        assert_ne!(Exact::of_float(0.1), Some(Exact::ratio(1, 10)));
    }

    #[test]
    fn floats_come_out_nearest() {
        assert_eq!(Exact::ratio(45, 11).to_f64(), 45.0 / 11.0);
        let third = &Exact::from(u64::MAX) / &Exact::from(3u64);
        assert_eq!(third.to_f64(), 6_148_914_691_236_517_205.0);
    }
}
