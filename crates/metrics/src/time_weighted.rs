//! Means over time of values that change in steps.
//!
//! Between two changes a value is constant, so its integral is a sum of value × span, which is exact in integers. A value may be undefined
//! for some time (such as fairness among no users). That time is excluded from the mean; it does not count as 0.

use plimsoll_base::units::Span;

/// Integrates a piecewise constant value over time. The value is undefined until the first [set](TimeWeighted::set).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeWeighted {
    value: Option<u64>,
    integral: u128,
    defined: Span,
    max: Option<u64>,
}

impl TimeWeighted {
    /// Sets the value from now on; `None` makes it undefined.
    pub fn set(&mut self, value: impl Into<Option<u64>>) {
        self.value = value.into();
    }

    /// Integrates the current value over `span`.
    pub fn advance(&mut self, span: Span) {
        if let (Some(value), true) = (self.value, span > Span::ZERO) {
            self.integral += u128::from(value) * u128::from(span.0);
            self.defined.0 += span.0;
            self.max = self.max.max(Some(value));
        }
    }

    /// Returns the exact integral, in units of the value × microseconds.
    pub fn integral(&self) -> u128 {
        self.integral
    }

    /// Returns the time for which the value was defined.
    pub fn defined(&self) -> Span {
        self.defined
    }

    /// Returns the mean over the time for which the value was defined, in units of the value; `None` if that time is 0.
    pub fn mean(&self) -> Option<f64> {
        (self.defined > Span::ZERO).then(|| self.integral as f64 / self.defined.0 as f64)
    }

    /// Returns the largest value that lasted for some time, or `None` without any. A value that is replaced within the same instant does
    /// not count.
    pub fn max(&self) -> Option<u64> {
        self.max
    }
}

/// The fraction of time for which a value is above a threshold, such as saturation P(U > 0.95).
///
/// For integers, "above a fraction f of c" is "above ⌊f c⌋", so an integer threshold is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FractionAbove {
    threshold: u64,
    above: TimeWeighted,
}

impl FractionAbove {
    /// Creates an integral for values strictly above `threshold`, in units of the value.
    pub fn new(threshold: u64) -> FractionAbove {
        FractionAbove { threshold, above: TimeWeighted::default() }
    }

    /// Sets the value from now on; `None` makes it undefined.
    pub fn set(&mut self, value: impl Into<Option<u64>>) {
        self.above.set(value.into().map(|value| u64::from(value > self.threshold)));
    }

    /// Integrates the current value over `span`.
    pub fn advance(&mut self, span: Span) {
        self.above.advance(span);
    }

    /// Returns the fraction of the time for which the value was defined, 0 to 1; `None` if that time is 0.
    pub fn fraction(&self) -> Option<f64> {
        self.above.mean()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn steps_by_hand() {
        let mut value = TimeWeighted::default();
        value.set(4);
        value.advance(Span(10));
        value.set(100);
        value.advance(Span::ZERO);
        value.set(1);
        value.advance(Span(30));
        assert_eq!((value.integral(), value.defined(), value.max()), (70, Span(40), Some(4)));
        assert_eq!(value.mean(), Some(1.75));
    }

    #[test]
    fn undefined_time_counts_for_nothing() {
        let mut value = TimeWeighted::default();
        value.advance(Span(5));
        assert_eq!((value.mean(), value.max(), value.defined()), (None, None, Span::ZERO));
        value.set(0);
        assert_eq!(value.mean(), None);
        value.advance(Span(2));
        assert_eq!((value.mean(), value.max()), (Some(0.0), Some(0)));
        value.set(None);
        value.advance(Span(1000));
        value.set(6);
        value.advance(Span(1));
        assert_eq!(value.mean(), Some(2.0));
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let mut value = TimeWeighted::default();
        value.set(u64::MAX);
        value.advance(Span(u64::MAX));
        assert_eq!(value.integral(), u128::from(u64::MAX).pow(2));
        assert_eq!(value.max(), Some(u64::MAX));
    }

    #[test]
    fn the_fraction_is_of_values_strictly_above() {
        let mut saturation = FractionAbove::new(95);
        assert_eq!(saturation.fraction(), None);
        for (value, span) in [(95, 30), (96, 10), (0, 20), (100, 20)] {
            saturation.set(value);
            saturation.advance(Span(span));
        }
        assert_eq!(saturation.fraction(), Some(0.375));
        saturation.set(None);
        saturation.advance(Span(999));
        assert_eq!(saturation.fraction(), Some(0.375));
    }

    #[test]
    fn integrals_equal_a_walk_by_single_microseconds() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..200 {
            let (mut value, mut above) = (TimeWeighted::default(), FractionAbove::new(4));
            let mut ticks = Vec::new();
            for _ in 0..rng.random_range(0..20) {
                let now = rng.random_bool(0.8).then(|| rng.random_range(0..10u64));
                value.set(now);
                above.set(now);
                let span = rng.random_range(0..6);
                value.advance(Span(span));
                above.advance(Span(span));
                ticks.extend(std::iter::repeat_n(now, span as usize).flatten());
            }
            assert_eq!(value.integral(), u128::from(ticks.iter().sum::<u64>()));
            assert_eq!(value.defined(), Span(ticks.len() as u64));
            assert_eq!(value.max(), ticks.iter().max().copied());
            let high = ticks.iter().filter(|&&tick| tick > 4).count();
            assert_eq!(above.fraction(), (!ticks.is_empty()).then(|| high as f64 / ticks.len() as f64));
        }
    }
}
