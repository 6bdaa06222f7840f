//! How sure a mean over a few runs is: confidence intervals by Student's t distribution.
//!
//! Runs with different seeds are independent, so the interval mean ± t s / √n covers the true mean with the stated
//! probability as far as the values are normal.

use super::difference::welch;
use super::spread::{Sample, largest, mean};
use super::student::t_quantile;

/// The values that are not absent.
pub(crate) fn there(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().copied().flatten().collect()
}

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end; `None` for a single value, which says nothing about spread.
    pub low: Option<f64>,
    /// The upper end; `None` likewise.
    pub high: Option<f64>,
    /// How many values.
    pub n: usize,
}

/// Computes the mean of `values` and its two-sided confidence interval at `level` (0.95, say).
///
/// mean ± t s / √n with the sample's standard deviation s (divisor n − 1) and t of n − 1 degrees of freedom.
/// Units: those of the values, which are finite. `None` without values; no ends for one value or a level outside
/// 0..1. Values that are equal up to rounding have an interval of one point. Source: Student, Biometrika 6, 1908.
pub fn mean_interval(values: &[f64], level: f64) -> Option<Interval> {
    debug_assert!(values.iter().all(|value| value.is_finite()), "values are finite");
    sample_interval(&Sample::of(values), level)
}

/// The same of the moments of a sample.
pub(crate) fn sample_interval(sample: &Sample, level: f64) -> Option<Interval> {
    let &Sample { mean, n, .. } = sample;
    let half = (n > 0).then(|| t_quantile(level, n as f64 - 1.0).map(|t| t * sample.of_mean().sqrt()))?;
    Some(Interval { mean, low: half.map(|half| mean - half), high: half.map(|half| mean + half), n })
}

/// A reduction over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// Mean reduction and interval: 0.3 is 30 % less, below 0 is more. `None` when no seed has both values.
    pub interval: Option<Interval>,
    /// How many seeds were left out because one of the two values is absent, or the base is 0.
    pub left_out: usize,
}

/// Computes the reduction 1 − new / base, seed by seed (the values at one index belong to one seed), and its interval.
///
/// Pairing removes what a seed does to both alike. It is the mean of ratios, not the ratio of means.
/// Panics: only if the slices differ in length (programmer error). Source: the DRF paper's Figure 14, with intervals.
pub fn reduction(base: &[Option<f64>], new: &[Option<f64>], level: f64) -> Reduction {
    assert_eq!(base.len(), new.len(), "one base and one new value for each seed");
    let paired: Vec<f64> = base
        .iter()
        .zip(new)
        .filter_map(|(base, new)| Some(((*base)?, (*new)?)))
        .filter(|(base, _)| *base != 0.0)
        .map(|(base, new)| 1.0 - new / base)
        .collect();
    let sample = Sample::computed(&paired, largest(&paired).max(1.0));
    Reduction { interval: sample_interval(&sample, level), left_out: base.len() - paired.len() }
}

/// Computes the reduction 1 − mean(new) / mean(base) of values that do not belong together, and its interval.
///
/// The ratio r of two means varies about as new − r base does, over the base's mean (delta method), with Welch's degrees of
/// freedom. Absent values count as left out. Source: Casella and Berger, Statistical Inference, 2nd ed., 5.5.4.
pub fn reduction_of_means(base: &[Option<f64>], new: &[Option<f64>], level: f64) -> Reduction {
    let (bases, news) = (there(base), there(new));
    let left_out = base.len() - bases.len() + new.len() - news.len();
    let (whole, part) = (mean(&bases), mean(&news) / mean(&bases));
    if !part.is_finite() {
        return Reduction { interval: None, left_out };
    }
    let scaled: Vec<f64> = bases.iter().map(|base| base * part).collect();
    let spread = welch(&news, &scaled, None, level).map(|test| test.difference);
    let interval = spread.map(|spread| {
        let half = spread.high.map(|high| (high - spread.mean) / whole.abs());
        let mean = 1.0 - part;
        Interval { mean, low: half.map(|half| mean - half), high: half.map(|half| mean + half), n: spread.n }
    });
    Reduction { interval, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_by_hand() {
        // Mean 3, s² = 2.5, s / √5 = √0.5, t(4) = 2.776445105.
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        let half = 2.776445105 * 0.5f64.sqrt();
        assert_eq!((interval.mean, interval.n), (3.0, 5));
        assert!((interval.low.unwrap() - (3.0 - half)).abs() < 1e-8);
        assert!((interval.high.unwrap() - (3.0 + half)).abs() < 1e-8);
        // No spread: the interval is the mean.
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
        // 0.9 of 20,000 with a standard deviation of 42.
        assert!(covered.abs_diff(18_000) < 170, "{covered} of 20000");
    }

    #[test]
    fn reductions_pair_seeds_and_count_those_left_out() {
        let base = [Some(100.0), Some(200.0), None, Some(50.0), Some(0.0), None];
        let new = [Some(50.0), Some(140.0), Some(1.0), None, Some(1.0), None];
        let found = reduction(&base, &new, 0.95);
        let interval = found.interval.unwrap();
        assert!((interval.mean - 0.4).abs() < 1e-12);
        // Reductions 0.5 and 0.3: s / √2 = 0.1, t(1) = 12.7062.
        assert!((interval.high.unwrap() - (0.4 + 1.27062047)).abs() < 1e-7);
        assert_eq!((interval.n, found.left_out), (2, 4));
        let slower = reduction(&[Some(100.0)], &[Some(103.0)], 0.95).interval.unwrap();
        assert!((slower.mean + 0.03).abs() < 1e-12 && slower.low.is_none());
        assert_eq!(reduction(&[None], &[Some(1.0)], 0.95), Reduction { interval: None, left_out: 1 });
        assert_eq!(reduction(&[], &[], 0.95), Reduction { interval: None, left_out: 0 });
    }
}
