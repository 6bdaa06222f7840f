//! Mean and variance of a sample, and the rule for samples that have no spread.
//!
//! The mean of n equal doubles may differ from these doubles in the last place. So the computed variance of a sample without spread may
//! not be exactly 0. All statistics over runs use [`Sample`], which decides in one place whether a sample has spread.

/// Values count as equal if their range is at most this part of the largest number that they were computed from. It is 8 units in the last
/// place.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Returns the largest absolute value; 0 without values.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| most.max(value.abs()))
}

/// Computes the mean of values; NaN without any. The result is never outside the range of the values, so the mean of equal values is
/// exactly this value.
pub fn mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if mean.is_nan() { mean } else { mean.max(low).min(high) }
}

/// The moments of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The mean; 0 if all values are 0 up to rounding, NaN without values.
    pub mean: f64,
    /// The variance with the divisor n − 1: exactly 0 if the values are equal up to rounding, NaN for fewer than two values.
    pub variance: f64,
    /// The number of values.
    pub n: usize,
}

impl Sample {
    /// Computes the moments of values that were measured, not computed from other numbers.
    pub fn from_values(values: &[f64]) -> Sample {
        Sample::computed(values, largest(values))
    }

    /// Computes the moments of values that were computed from numbers of this magnitude, such as differences, which have the rounding
    /// errors of the subtracted numbers.
    pub fn computed(values: &[f64], magnitude: f64) -> Sample {
        let (mean, n, rounding) = (mean(values), values.len(), ROUNDING * magnitude);
        if n < 2 {
            return Sample { mean, variance: f64::NAN, n };
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if high - low <= rounding {
            let mean = if mean.abs() <= rounding { 0.0 } else { mean };
            return Sample { mean, variance: 0.0, n };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n as f64 - 1.0);
        Sample { mean, variance, n }
    }

    /// Returns the variance of the mean.
    pub fn of_mean(&self) -> f64 {
        self.variance / self.n as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_up_to_rounding_is_equal() {
        let third = 1.0 / 3.0;
        let near = [third, third * (1.0 + f64::EPSILON), third * (1.0 - 2.0 * f64::EPSILON)];
        assert_eq!(Sample::from_values(&near).variance, 0.0);
        assert!(Sample::from_values(&[third, third * (1.0 + 1e-12)]).variance > 0.0);
        assert_eq!((Sample::from_values(&[0.0; 3]).variance, Sample::from_values(&[0.0; 3]).mean), (0.0, 0.0));
        assert!(Sample::from_values(&[0.0, f64::MIN_POSITIVE]).mean > 0.0, "values have their own magnitude");
        assert_eq!(Sample::computed(&[1e-16, -1e-16], 1.0), Sample { mean: 0.0, variance: 0.0, n: 2 });
        assert!(Sample::from_values(&[1.0]).variance.is_nan() && mean(&[]).is_nan());
    }
}
