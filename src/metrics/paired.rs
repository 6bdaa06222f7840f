//! Two treatments of the same seeds: how much one differs from the other, how sure that is, and how much is left of it
//! when many such questions are asked at once.
//!
//! Runs of one seed saw the same workload, so the differences seed by seed are free of what the seeds have in common
//! (common random numbers). Two intervals are given: Student's t, which is the one to quote, and the percentile
//! bootstrap, which assumes no distribution but is too narrow for few seeds; where they disagree, look at the runs.

use rand::RngExt;

use super::interval::{Interval, mean_interval, t_probability};
use crate::workload::synthetic::random::stream;

/// Two treatments compared seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Mean of the base, over the seeds that have both values.
    pub base: f64,
    /// Mean of the new one, likewise.
    pub new: f64,
    /// New minus base, with the t interval of the differences.
    pub difference: Interval,
    /// The same by percentile bootstrap; `None` for one seed.
    pub bootstrap: Option<(f64, f64)>,
    /// The probability of a mean difference as far from 0 or farther, if there were none: two-sided t test. `None` for
    /// one seed; 1 if no seed shows a difference, 0 if all show the same.
    pub p: Option<f64>,
    /// Mean difference over the standard deviation of the differences, corrected for few seeds (Hedges' g of paired
    /// values). `None` for one seed, or where the differences do not vary.
    pub effect: Option<f64>,
}

/// How often the bootstrap draws.
const RESAMPLES: usize = 2000;

/// Computes new − base, seed by seed (the values at one index belong to one seed), with intervals at `level`.
///
/// Seeds that lack one of the two values are left out; `None` if none is left. The bootstrap draws from a random stream
/// of its own, named `purpose`: the same values give the same interval. Units: those of the values. Panics: only if the
/// slices differ in length (programmer error). Sources: Student, Biometrika 6, 1908; Efron, Annals of Statistics 7,
/// 1979 (percentile bootstrap); Hedges, Journal of Educational Statistics 6, 1981 (correction of the effect size).
pub fn paired(base: &[Option<f64>], new: &[Option<f64>], level: f64, purpose: &str) -> Option<Paired> {
    assert_eq!(base.len(), new.len(), "one base and one new value for each seed");
    let both: Vec<(f64, f64)> = base
        .iter()
        .zip(new)
        .filter_map(|(base, new)| Some(((*base)?, (*new)?)))
        .filter(|(base, new)| base.is_finite() && new.is_finite())
        .collect();
    let differences: Vec<f64> = both.iter().map(|(base, new)| new - base).collect();
    let difference = mean_interval(&differences, level)?;
    let n = both.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|value| (value - difference.mean).powi(2)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    let several = differences.len() > 1;
    let varies = several && deviation > 0.0;
    let p = match (several, varies) {
        (false, _) => None,
        (true, true) => {
            let t = difference.mean.abs() / (deviation / n.sqrt());
            Some((1.0 - t_probability(t, differences.len() as u64 - 1)).max(0.0))
        }
        (true, false) => Some(if difference.mean == 0.0 { 1.0 } else { 0.0 }),
    };
    Some(Paired {
        base: mean(|pair| pair.0),
        new: mean(|pair| pair.1),
        difference,
        bootstrap: several.then(|| bootstrap(&differences, level, purpose)),
        p,
        // 1 − 3 / (4 df − 1) with n − 1 degrees of freedom.
        effect: varies.then(|| difference.mean / deviation * (1.0 - 3.0 / (4.0 * (n - 1.0) - 1.0))),
    })
}

/// The percentile bootstrap of the mean.
fn bootstrap(values: &[f64], level: f64, purpose: &str) -> (f64, f64) {
    let mut rng = stream(0, &format!("bootstrap/{purpose}"));
    let n = values.len() as u64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..n).map(|_| values[rng.random_range(0..n) as usize]).sum::<f64>() / n as f64)
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = ((1.0 - level) / 2.0 * RESAMPLES as f64) as usize;
    (means[tail.min(RESAMPLES - 1)], means[RESAMPLES - 1 - tail.min(RESAMPLES - 1)])
}

/// Corrects probabilities of many tests for their number, so that the chance of one false alarm among all stays what a
/// single test would have. Absent values stay absent and do not count.
///
/// The k-th smallest of m becomes its product with m − k + 1, at least the one before it, at most 1. Source: Holm,
/// Scandinavian Journal of Statistics 6, 1979.
pub fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = p.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut corrected = vec![None; p.len()];
    let mut floor = 0.0f64;
    for (rank, (at, value)) in order.iter().enumerate() {
        floor = floor.max(value * (order.len() - rank) as f64).min(1.0);
        corrected[*at] = Some(floor);
    }
    corrected
}

/// The same within families: each p-value is corrected for those of the same name only.
///
/// Panics: only if there is not one name for each (programmer error).
pub fn holm_by(families: &[&str], p: &[Option<f64>]) -> Vec<Option<f64>> {
    assert_eq!(families.len(), p.len(), "one family for each p-value");
    let mut members: std::collections::BTreeMap<&str, Vec<usize>> = std::collections::BTreeMap::new();
    families.iter().enumerate().for_each(|(at, family)| members.entry(family).or_default().push(at));
    let mut corrected = vec![None; p.len()];
    for places in members.values() {
        let of: Vec<Option<f64>> = places.iter().map(|&at| p[at]).collect();
        places.iter().zip(holm(&of)).for_each(|(&at, value)| corrected[at] = value);
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|&value| Some(value)).collect()
    }

    #[test]
    fn a_pair_by_hand() {
        // Gosset's data on soporifics (Student 1908): extra hours of sleep; t = 4.0621, p = 0.00283, d = 1.2845.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = paired(&some(&a), &some(&b), 0.95, "sleep").expect("ten pairs");
        assert!((found.difference.mean - 1.58).abs() < 1e-12);
        assert!((found.difference.low.expect("an end") - 0.700_114).abs() < 1e-5);
        assert!((found.p.expect("ten pairs") - 0.002_833).abs() < 1e-6, "{:?}", found.p);
        assert!((found.effect.expect("they vary") - 1.284_558 * (1.0 - 3.0 / 35.0)).abs() < 1e-5);
        let (low, high) = found.bootstrap.expect("ten pairs");
        assert!((0.8..1.2).contains(&low) && (2.0..2.6).contains(&high), "{low} {high}");
        assert_eq!(paired(&some(&a), &some(&b), 0.95, "sleep"), Some(found), "the same draws again");
        let other = paired(&some(&a), &some(&b), 0.95, "other").expect("ten pairs");
        assert_ne!(other.bootstrap, found.bootstrap);
    }

    #[test]
    fn absent_values_single_seeds_and_no_spread() {
        assert_eq!(paired(&[None, Some(1.0)], &[Some(1.0), None], 0.95, ""), None);
        let one = paired(&[Some(2.0), None], &[Some(5.0), Some(1.0)], 0.95, "").expect("one pair");
        assert_eq!((one.base, one.new, one.difference.mean, one.difference.low), (2.0, 5.0, 3.0, None));
        assert_eq!((one.p, one.effect, one.bootstrap), (None, None, None));
        let same = paired(&some(&[1.0, 2.0]), &some(&[1.0, 2.0]), 0.95, "").expect("two pairs");
        assert_eq!((same.p, same.effect, same.bootstrap), (Some(1.0), None, Some((0.0, 0.0))));
        let shifted = paired(&some(&[1.0, 2.0]), &some(&[2.0, 3.0]), 0.95, "").expect("two pairs");
        assert_eq!((shifted.p, shifted.effect), (Some(0.0), None));
    }

    #[test]
    fn holm_by_hand() {
        let given = [Some(0.01), None, Some(0.04), Some(0.03), Some(0.005)];
        let found = holm(&given);
        assert_eq!(found[1], None);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (found, expected) in found.iter().flatten().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
        assert_eq!(holm(&[Some(0.7), Some(0.9)]), [Some(1.0), Some(1.0)]);
        assert!(holm(&[]).is_empty());
        let apart = holm_by(&["a", "b", "a"], &[Some(0.02), Some(0.02), Some(0.9)]);
        assert_eq!(apart, [Some(0.04), Some(0.02), Some(0.9)]);
    }

    /// Among many comparisons of equals, one is told apart in about 5 % of all sets of 20 after the correction, in
    /// most of them without it.
    #[test]
    fn corrected_tests_of_equals_seldom_cry_wolf() {
        use rand_distr::{Distribution, StandardNormal};
        let mut rng = stream(3, "holm");
        let mut draw = || some(&(0..8).map(|_| StandardNormal.sample(&mut rng)).collect::<Vec<f64>>());
        let (mut plain, mut corrected) = (0, 0);
        for _ in 0..200 {
            let p: Vec<Option<f64>> =
                (0..20).map(|_| paired(&draw(), &draw(), 0.95, "").and_then(|pair| pair.p)).collect();
            plain += usize::from(p.iter().flatten().any(|p| *p < 0.05));
            corrected += usize::from(holm(&p).iter().flatten().any(|p| *p < 0.05));
        }
        assert!((100..=150).contains(&plain), "{plain} of 200, 128 expected");
        assert!((2..=20).contains(&corrected), "{corrected} of 200, 10 expected");
    }
}
