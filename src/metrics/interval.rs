//! How sure a mean over a few runs is: confidence intervals by Student's t distribution.
//!
//! Runs with different seeds are independent, so the interval mean ± t s / √n covers the true mean with the stated
//! probability as far as the values are normal. The t quantile comes from the closed form of the distribution for
//! whole degrees of freedom, so there is no table and no approximation to trust.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

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
/// 0..1. Source: Student, Biometrika 6, 1908.
pub fn mean_interval(values: &[f64], level: f64) -> Option<Interval> {
    debug_assert!(values.iter().all(|value| value.is_finite()), "values are finite");
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = t_quantile(level, n as u64 - 1).map(|t| t * (squares / (n - 1) as f64 / n as f64).sqrt());
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
    Reduction { interval: mean_interval(&paired, level), left_out: base.len() - paired.len() }
}

/// Gives the t with P(|T| ≤ t) = `level` for Student's T of `df` degrees of freedom.
///
/// Bisects the angle θ = arctan(t / √df), in which the distribution is a finite sum; relative accuracy 1e-9 for
/// levels to 0.9999. `None` for `df` 0 or a level outside 0..1 (both ends excluded). Cost: O(df).
pub fn t_quantile(level: f64, df: u64) -> Option<f64> {
    if df == 0 || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return Some(middle.tan() * (df as f64).sqrt());
        }
        if central_probability(middle, df) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Gives P(|T| ≤ t) for Student's T of `df` degrees of freedom (at least 1) and t ≥ 0. Cost: O(df).
pub fn t_probability(t: f64, df: u64) -> f64 {
    central_probability((t / (df as f64).sqrt()).atan(), df)
}

/// P(|T| ≤ t) for t = √df tan θ.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 (odd df) and 26.7.4 (even df).
fn central_probability(theta: f64, df: u64) -> f64 {
    let (sin, cos) = theta.sin_cos();
    let odd = df % 2;
    // The terms are cos^k θ with coefficients (2·4···)/(3·5···) for odd df and (1·3···)/(2·4···) for even df.
    let (mut term, mut sum) = if odd == 1 { (cos, 0.0) } else { (1.0, 0.0) };
    for k in 0..df / 2 {
        sum += term;
        let next = (2 * k + 1 + odd) as f64;
        term *= cos * cos * next / (next + 1.0);
    }
    if odd == 1 { FRAC_2_PI * (theta + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_equal_the_published_tables() {
        // Two-sided 90, 95 and 99 %.
        let table = [
            (1, 6.313751515, 12.706204736, 63.656741162),
            (2, 2.919985580, 4.302652730, 9.924843201),
            (3, 2.353363435, 3.182446305, 5.840909310),
            (4, 2.131846786, 2.776445105, 4.604094871),
            (5, 2.015048373, 2.570581836, 4.032142984),
            (9, 1.833112933, 2.262157163, 3.249835542),
            (10, 1.812461123, 2.228138852, 3.169272673),
            (19, 1.729132812, 2.093024054, 2.860934606),
            (29, 1.699127027, 2.045229642, 2.756385904),
            (30, 1.697260887, 2.042272456, 2.749995654),
            (100, 1.660234326, 1.983971519, 2.625890521),
            (1000, 1.646378818, 1.962339081, 2.580754698),
        ];
        for (df, at_90, at_95, at_99) in table {
            for (level, exact) in [(0.90, at_90), (0.95, at_95), (0.99, at_99)] {
                let given = t_quantile(level, df).unwrap();
                assert!((given - exact).abs() < 2e-9 * exact, "{level} of {df}: {given}, not {exact}");
            }
        }
    }

    #[test]
    fn probabilities_turn_quantiles_back() {
        for df in [1, 2, 3, 7, 30, 500] {
            for level in [0.1, 0.5, 0.95, 0.999] {
                let t = t_quantile(level, df).unwrap();
                assert!((t_probability(t, df) - level).abs() < 1e-12, "{level} of {df}");
            }
        }
        assert_eq!(t_probability(0.0, 4), 0.0);
    }

    #[test]
    fn t_quantiles_equal_their_closed_forms_and_the_normal_limit() {
        for level in [1e-6, 0.1, 0.5, 0.8, 0.95, 0.999, 0.9999] {
            let one = (FRAC_PI_2 * level).tan();
            let two = level * (2.0 / (1.0 - level * level)).sqrt();
            for (df, exact) in [(1, one), (2, two)] {
                let given = t_quantile(level, df).unwrap();
                assert!((given / exact - 1.0).abs() < 1e-10, "{level} of {df}: {given}, not {exact}");
            }
        }
        // z + (z³ + z) / 4 df, the first terms of the expansion around the normal distribution.
        let z: f64 = 1.959_963_984_540_054;
        assert!((t_quantile(0.95, 100_001).unwrap() - z - (z.powi(3) + z) / 400_004.0).abs() < 1e-8);
        for (level, df) in [(0.95, 0), (0.0, 5), (1.0, 5), (-0.5, 5), (f64::NAN, 5)] {
            assert_eq!(t_quantile(level, df), None);
        }
    }

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
