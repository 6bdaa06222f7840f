//! Confidence intervals of a mean over a few runs, by Student's t distribution.
//!
//! Runs with different seeds are independent, so the interval mean ± t s / √n covers the true mean with the stated probability if the
//! values are normally distributed.

use super::spread::Sample;
use super::student::t_quantile;

/// Returns the values that are not missing.
pub(crate) fn there(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().copied().flatten().collect()
}

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end; `None` for a single value, which contains no information on the spread.
    pub low: Option<f64>,
    /// The upper end; `None` for a single value.
    pub high: Option<f64>,
    /// The number of values.
    pub n: usize,
}

impl Interval {
    /// Returns the distance from the mean to the farther end, or `None` without ends.
    pub fn half(&self) -> Option<f64> {
        Some((self.high? - self.mean).max(self.mean - self.low?))
    }
}

/// Computes the mean of `values` and its two-sided confidence interval at `level` (for example 0.95).
///
/// The interval is mean ± t s / √n with the sample's standard deviation s (divisor n − 1) and t of n − 1 degrees of freedom. Units: those
/// of the values, which must be finite. Returns `None` without values. The interval has no ends for one value, or for a level outside
/// 0..1. Values that are equal up to rounding have an interval of one point. Source: Student, Biometrika 6, 1908.
pub fn mean_interval(values: &[f64], level: f64) -> Option<Interval> {
    debug_assert!(values.iter().all(|value| value.is_finite()), "values are finite");
    sample_interval(&Sample::from_values(values), level)
}

/// Computes the mean and the interval from the moments of a sample.
pub(crate) fn sample_interval(sample: &Sample, level: f64) -> Option<Interval> {
    let &Sample { mean, n, .. } = sample;
    let half = (n > 0).then(|| t_quantile(level, n as f64 - 1.0).map(|t| t * sample.of_mean().sqrt()))?;
    Some(Interval { mean, low: half.map(|half| mean - half), high: half.map(|half| mean + half), n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_by_hand() {
        // The mean is 3, s² = 2.5, s / √5 = √0.5, and t with 4 degrees of freedom is 2.776445105.
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        let half = 2.776445105 * 0.5f64.sqrt();
        assert_eq!((interval.mean, interval.n), (3.0, 5));
        assert!((interval.low.unwrap() - (3.0 - half)).abs() < 1e-8);
        assert!((interval.high.unwrap() - (3.0 + half)).abs() < 1e-8);
        // Without spread, both ends of the interval are the mean.
        let certain = mean_interval(&[4.0, 4.0, 4.0], 0.95).unwrap();
        assert_eq!((certain.low, certain.high), (Some(4.0), Some(4.0)));
    }

    #[test]
    fn one_value_has_a_mean_without_ends_and_none_has_nothing() {
        assert_eq!(mean_interval(&[], 0.95), None);
        assert_eq!(mean_interval(&[2.5], 0.95), Some(Interval { mean: 2.5, low: None, high: None, n: 1 }));
        let no_level = mean_interval(&[1.0, 2.0], 1.0).unwrap();
        assert_eq!((no_level.mean, no_level.low, no_level.high), (1.5, None, None));
    }

    #[test]
    fn intervals_cover_the_true_mean_as_often_as_they_say() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, StandardNormal};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(6);
        let covered = (0..20_000)
            .filter(|_| {
                let sample: [f64; 5] = std::array::from_fn(|_| StandardNormal.sample(&mut rng));
                let interval = mean_interval(&sample, 0.9).unwrap();
                interval.low.unwrap() <= 0.0 && 0.0 <= interval.high.unwrap()
            })
            .count();
        // 18,000 of 20,000 intervals are expected to cover the mean, with a standard deviation of 42.
        assert!(covered.abs_diff(18_000) < 170, "{covered} of 20000");
    }
}
