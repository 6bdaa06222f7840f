//! The difference of two means over seeds: its confidence interval, whether it is statistically significant, and whether the means are
//! equivalent within a margin.
//!
//! In the paired design, runs with the same seed have the same workload, so the differences per seed do not contain the influence that the
//! seed has on both treatments (common random numbers). If the workload depends on the policy, as in a closed loop, no two runs have the
//! same workload, and means are compared by Welch's test.
//!
//! A difference that is not significant is no evidence of equality, because there may be too few seeds. Equality within a margin is claimed
//! by two one-sided tests (TOST), which reject that the difference is as large as the margin or larger.

use rand::RngExt;

use super::interval::{Interval, sample_interval};
use super::spread::{Sample, largest, mean};
use super::student::{t_above, t_quantile, t_tail};
use plimsoll_sim::workload::synthetic::random::stream;

/// The margin of equivalence, as a part of the mean of the base: 5 %.
pub const MARGIN: f64 = 0.05;

/// The relation between the runs of two treatments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Design {
    /// Runs with the same seed have the same workload, and are compared in pairs.
    #[default]
    Paired,
    /// Every run has its own workload, and only means are compared.
    Unpaired,
}

impl Design {
    /// Returns the name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Design::Paired => "paired",
            Design::Unpaired => "unpaired",
        }
    }

    /// Returns the test in words.
    pub fn test(self) -> &'static str {
        match self {
            Design::Paired => "t tests paired by seed",
            Design::Unpaired => "Welch's unpaired t tests",
        }
    }
}

/// The results of the tests of one difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The mean difference with its t interval. `n` is the number of seeds or, in an unpaired design, the smaller of the two numbers of
    /// runs.
    pub difference: Interval,
    /// The p-value of the two-sided t test: the probability of a mean difference at least this far from 0 if there were no difference.
    /// `None` for one seed.
    pub p: Option<f64>,
    /// The margin of equivalence, in the unit of the values; `None` if the mean of the base is 0.
    pub margin: Option<f64>,
    /// The larger p-value of two one-sided t tests, of the hypotheses that the difference is at least the margin and at most its negative.
    /// `None` for one seed or without a margin.
    pub p_equivalent: Option<f64>,
}

/// Tests differences per seed, with the interval at `level`. Returns `None` if there are none.
///
/// `magnitude` is the largest absolute value of the subtracted numbers. Differences that are equal up to the rounding error of this
/// magnitude have no t statistic. Then p is the smallest possible value of the sign-flip permutation test of n values, 2^(1 − n)
/// (one-sided, half of it), because two seeds that agree by chance prove nothing. Units: those of the values, which are finite. Sources:
/// Student, Biometrika 6, 1908; Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987 (two one-sided tests).
pub fn paired(differences: &[f64], magnitude: f64, margin: Option<f64>, level: f64) -> Option<Test> {
    let sample = Sample::computed(differences, magnitude);
    let n = differences.len() as f64;
    let least = 2.0 * 0.5f64.powf(n);
    Some(test(sample_interval(&sample, level)?, sample.of_mean(), n - 1.0, least, margin))
}

/// Tests the difference of the means `new` − `base` of independent values, with the interval at `level`. Returns `None` if `base` or `new`
/// is empty.
///
/// Variances need not be equal. If no value varies in either sample, p is the smallest possible value of the permutation test. Source:
/// Welch, Biometrika 34, 1947, with Satterthwaite's degrees of freedom.
pub fn welch(base: &[f64], new: &[f64], margin: Option<f64>, level: f64) -> Option<Test> {
    if base.is_empty() || new.is_empty() {
        return None;
    }
    let magnitude = largest(base).max(largest(new));
    let (first, second) = (Sample::computed(base, magnitude), Sample::computed(new, magnitude));
    let (a, b) = (first.of_mean(), second.of_mean());
    let freedom = |part: f64, values: &[f64]| part * part / (values.len() as f64 - 1.0);
    let df = (a + b).powi(2) / (freedom(a, base) + freedom(b, new));
    // If both samples are constant, their difference may be just a rounding error.
    let mean = match a + b == 0.0 {
        true => Sample::computed(&[second.mean - first.mean; 2], magnitude).mean,
        false => second.mean - first.mean,
    };
    let n = base.len().min(new.len());
    let half = t_quantile(level, df).map(|t| t * (a + b).sqrt()).or((a + b == 0.0).then_some(0.0)).filter(|_| n > 1);
    let difference = Interval { mean, low: half.map(|half| mean - half), high: half.map(|half| mean + half), n };
    // The number of ways to choose the runs of one treatment from all runs. Two of these ways (the observed one and its mirror image) are
    // as extreme as the observation.
    let ways = (1..=new.len()).fold(1.0, |ways, at| ways * (base.len() + at) as f64 / at as f64);
    Some(test(difference, a + b, df, 2.0 / ways, margin))
}

/// Tests a mean difference with variance `spread`; `least` is the two-sided p-value for a variance of 0.
fn test(difference: Interval, spread: f64, df: f64, least: f64, margin: Option<f64>) -> Test {
    let (mean, error) = (difference.mean, spread.sqrt());
    let (p, p_equivalent) = if difference.n < 2 {
        (None, None)
    } else if error > 0.0 {
        let outside = |margin: f64| {
            let (below, above) = ((margin - mean) / error, (mean + margin) / error);
            t_above(below, df).max(t_above(above, df))
        };
        (Some(t_tail(mean / error, df)), margin.map(outside))
    } else {
        let outside = |margin: f64| if mean.abs() < margin { least / 2.0 } else { 1.0 };
        (Some(if mean == 0.0 { 1.0 } else { least.min(1.0) }), margin.map(outside))
    };
    Test { difference, p, margin, p_equivalent }
}

/// The comparison of two treatments over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDifference {
    /// The relation between the runs.
    pub design: Design,
    /// The mean of the base; in a paired design, over the seeds that have both values.
    pub base: f64,
    /// The mean of the new treatment, over the same seeds.
    pub new: f64,
    /// The tests of new minus base; the margin is [`MARGIN`] of the base.
    pub test: Test,
    /// The difference as a part of the mean of the base, with Fieller's interval; `None` if that mean is 0.
    pub relative: Option<Interval>,
    /// The mean difference over a standard deviation, corrected for few seeds (Hedges' g). In a paired design this is the standard
    /// deviation of the differences, in an unpaired design the root of the mean of both variances. `None` for one seed, or if no value
    /// varies.
    pub effect: Option<f64>,
}

impl MeanDifference {
    /// Returns the difference in percent of the base, or `None` if the base is 0.
    pub fn percent(&self) -> Option<f64> {
        self.relative.map(|part| 100.0 * part.mean)
    }
}

/// Compares `new` with `base`, with the interval at `level`. The values at one index belong to one seed.
///
/// A paired design ignores seeds that lack one of the two values, and an unpaired design ignores missing values. Returns `None` if no value
/// remains. Units: those of the values. Panics: only if the slices of a paired design differ in length (a programmer error). Source:
/// Hedges, Journal of Educational Statistics 6, 1981 (correction of the effect size).
pub fn difference(design: Design, base: &[Option<f64>], new: &[Option<f64>], level: f64) -> Option<MeanDifference> {
    let (base, new) = values(design, base, new);
    let margin = (!base.is_empty()).then(|| MARGIN * mean(&base).abs()).filter(|margin| *margin > 0.0);
    let magnitude = largest(&base).max(largest(&new));
    let variance = |values: &[f64]| Sample::computed(values, magnitude).variance;
    let (test, deviation, df) = match design {
        Design::Paired => {
            let differences = differences(&base, &new);
            let df = differences.len() as f64 - 1.0;
            (paired(&differences, magnitude, margin, level)?, variance(&differences).sqrt(), df)
        }
        Design::Unpaired => {
            let both = ((variance(&base) + variance(&new)) / 2.0).sqrt();
            (welch(&base, &new, margin, level)?, both, (base.len() + new.len()) as f64 - 2.0)
        }
    };
    let relative = relative(design, &base, &new, &test.difference);
    // 1 − 3 / (4 df − 1), which is 0 for one degree of freedom.
    let effect = (deviation > 0.0).then(|| test.difference.mean / deviation * (1.0 - 3.0 / (4.0 * df - 1.0)));
    Some(MeanDifference { design, base: mean(&base), new: mean(&new), test, relative, effect })
}

/// Computes the difference of two means as a part of the mean of the base, with Fieller's interval. A part p is in the interval if the
/// test does not reject that `new` differs from `base` by p times `base`. It therefore contains 0 if the interval of the difference does,
/// and it is narrow if seeds change both means in proportion.
///
/// Returns `None` if the mean of the base is 0. The interval has no ends for one seed. It also has none if the mean of the base does not
/// differ significantly from 0, because it is unbounded then. In an unpaired design, the factor of the standard error is the factor of
/// Welch's test. Source: Fieller, Journal of the Royal Statistical Society B 16, 1954.
fn relative(design: Design, base: &[f64], new: &[f64], difference: &Interval) -> Option<Interval> {
    let (x, y, n) = (mean(base), mean(new), difference.n);
    let sign = x.signum();
    let point = Interval { mean: difference.mean / x.abs(), low: None, high: None, n };
    let Some(half) = difference.half().filter(|_| x != 0.0) else {
        return (x != 0.0).then_some(point);
    };
    let covariance = |a: &[f64], b: &[f64]| -> f64 {
        let (mean_a, mean_b) = (mean(a), mean(b));
        let products = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b));
        products.sum::<f64>() / (a.len() as f64 - 1.0) / a.len() as f64
    };
    let [xx, yy] = [base, new].map(|values| covariance(values, values));
    let xy = if design == Design::Paired { covariance(base, new) } else { 0.0 };
    // The square of the t quantile that the interval of the difference uses.
    let error = yy - 2.0 * xy + xx;
    let t = if half > 0.0 && error > 0.0 { half * half / error } else { 0.0 };
    let (a, b, c) = (x * x - t * xx, x * y - t * xy, y * y - t * yy);
    if a <= 0.0 {
        return Some(point);
    }
    let root = (b * b - a * c).max(0.0).sqrt();
    let part = |ratio: f64| sign * (ratio - 1.0);
    let (one, other) = (part((b - root) / a), part((b + root) / a));
    Some(Interval { low: Some(one.min(other)), high: Some(one.max(other)), ..point })
}

/// Returns new minus base for each seed.
fn differences(base: &[f64], new: &[f64]) -> Vec<f64> {
    base.iter().zip(new).map(|(base, new)| new - base).collect()
}

/// Returns the finite values that a design compares; in a paired design only those of seeds that have both values.
fn values(design: Design, base: &[Option<f64>], new: &[Option<f64>]) -> (Vec<f64>, Vec<f64>) {
    let there = |value: &Option<f64>| value.filter(|value| value.is_finite());
    match design {
        Design::Paired => {
            assert_eq!(base.len(), new.len(), "one base and one new value for each seed");
            base.iter().zip(new).filter_map(|(base, new)| Some((there(base)?, there(new)?))).unzip()
        }
        Design::Unpaired => (base.iter().filter_map(there).collect(), new.iter().filter_map(there).collect()),
    }
}

/// The number of resamples of the bootstrap.
const RESAMPLES: usize = 2000;

/// Computes the percentile bootstrap interval of the difference of two means. Returns `None` for one seed.
///
/// The bootstrap assumes no distribution, but its intervals are too narrow for few seeds. If a bootstrap interval disagrees with the t
/// interval, inspect the runs. It uses its own random stream, named by `purpose`, so equal values give equal intervals. Source: Efron,
/// Annals of Statistics 7, 1979.
pub fn bootstrap(
    design: Design,
    base: &[Option<f64>],
    new: &[Option<f64>],
    level: f64,
    purpose: &str,
) -> Option<(f64, f64)> {
    let (base, new) = values(design, base, new);
    if base.len().min(new.len()) < 2 {
        return None;
    }
    let differences = differences(&base, &new);
    let magnitude = largest(&base).max(largest(&new));
    let constant = |values: &[f64]| Sample::computed(values, magnitude).variance == 0.0;
    if match design {
        Design::Paired => constant(&differences),
        Design::Unpaired => constant(&base) && constant(&new),
    } {
        // All resamples are equal.
        let mean = match design {
            Design::Paired => Sample::computed(&differences, magnitude).mean,
            Design::Unpaired => Sample::computed(&[mean(&new) - mean(&base); 2], magnitude).mean,
        };
        return Some((mean, mean));
    }
    let mut rng = stream(0, &format!("bootstrap/{purpose}"));
    let mut drawn = |values: &[f64]| {
        let n = values.len() as u64;
        (0..n).map(|_| values[rng.random_range(0..n) as usize]).sum::<f64>() / n as f64
    };
    let mut one = || match design {
        Design::Paired => drawn(&differences),
        Design::Unpaired => -drawn(&base) + drawn(&new),
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| one()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = ((1.0 - level) / 2.0 * RESAMPLES as f64) as usize;
    Some((means[tail.min(RESAMPLES - 1)], means[RESAMPLES - 1 - tail.min(RESAMPLES - 1)]))
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::mean_interval;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|&value| Some(value)).collect()
    }

    /// Gosset's data on soporifics (Student 1908): extra hours of sleep.
    const A: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const B: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn a_pair_by_hand() {
        // t = 4.0621, p = 0.00283, d = 1.2845.
        let found = difference(Design::Paired, &some(&A), &some(&B), 0.95).expect("ten pairs");
        let test = found.test;
        assert!((test.difference.mean - 1.58).abs() < 1e-12);
        assert!((test.difference.low.expect("an end") - 0.700_114).abs() < 1e-5);
        assert!((test.p.expect("ten pairs") - 0.002_833).abs() < 1e-6, "{:?}", test.p);
        assert!((found.effect.expect("they vary") - 1.284_558 * (1.0 - 3.0 / 35.0)).abs() < 1e-5);
        let draw = |purpose| bootstrap(Design::Paired, &some(&A), &some(&B), 0.95, purpose).expect("ten pairs");
        let (low, high) = draw("sleep");
        assert!((0.8..1.2).contains(&low) && (2.0..2.6).contains(&high), "{low} {high}");
        assert_eq!(draw("sleep"), (low, high), "the same draws again");
        assert_ne!(draw("other"), (low, high));
        let (low, high) = bootstrap(Design::Unpaired, &some(&A), &some(&B), 0.95, "sleep").expect("ten of each");
        assert!((-0.3..0.4).contains(&low) && (2.8..3.5).contains(&high), "{low} {high}");
    }

    /// Results of scipy 1.17.1, `ttest_ind(b, a, equal_var=False)`; the second result is for the first six values of `b`.
    #[test]
    fn welch_equals_scipy() {
        let found = welch(&A, &B, None, 0.95).expect("ten of each");
        near(found.p.expect("several"), 0.079_394_140_187_358_3);
        near(found.difference.low.expect("several"), -0.205_483_230_711_711_37);
        near(found.difference.high.expect("several"), 3.365_483_230_711_710_4);
        let found = welch(&A, &B[..6], None, 0.95).expect("ten and six");
        near(found.p.expect("several"), 0.497_553_158_298_755_1);
        near(found.difference.low.expect("several"), -1.312_354_569_945_501_3);
        near(found.difference.high.expect("several"), 2.545_687_903_278_835);
        assert_eq!((found.difference.n, found.p_equivalent), (6, None));
    }

    /// Results of statsmodels 0.15.0, `ttost_paired(b, a, -margin, margin)` and `ttost_ind(.., usevar="unequal")`.
    #[test]
    fn equivalence_equals_statsmodels() {
        let table = [
            (0.5, 0.989_240_756_621_612_7, 0.890_109_961_251_447_7),
            (2.0, 0.154_157_235_669_097_4, 0.313_453_625_975_157_1),
            (3.0, 0.002_655_570_292_658_671, 0.055_978_914_532_244_51),
        ];
        let differences: Vec<f64> = A.iter().zip(B).map(|(a, b)| b - a).collect();
        for (margin, in_pairs, apart) in table {
            near(
                paired(&differences, largest(&differences), Some(margin), 0.95)
                    .and_then(|test| test.p_equivalent)
                    .expect("ten"),
                in_pairs,
            );
            near(welch(&A, &B, Some(margin), 0.95).and_then(|test| test.p_equivalent).expect("ten"), apart);
        }
        let base = some(&[101.2, 98.7, 103.5, 99.9, 100.4, 97.8]);
        let new = some(&[102.0, 99.1, 103.0, 101.2, 100.1, 98.9]);
        for (design, p) in [(Design::Paired, 1.169_053_951_913_317_7e-5), (Design::Unpaired, 8.427_352_273_293_713e-4)]
        {
            let found = difference(design, &base, &new, 0.95).expect("six of each").test;
            near(found.margin.expect("the base is not 0"), 5.012_5);
            near(found.p_equivalent.expect("six of each"), p);
        }
    }

    /// At the ends of a relative interval, the p-value of the test of `new - part * base` equals the significance level. 0 is inside the
    /// interval if the difference is not significant.
    #[test]
    fn relative_intervals_are_those_of_the_test() {
        let mut rng = stream(8, "relative");
        let mut inside = [0, 0];
        for case in 0..400 {
            let mut noise = || -> f64 { StandardNormal.sample(&mut rng) };
            let n = 3 + case % 8;
            let base: Vec<f64> = (0..n).map(|_| 100.0 + 8.0 * noise()).collect();
            let part = 1.0 + 0.1 * noise();
            let new: Vec<f64> = base.iter().map(|base| base * part + 6.0 * noise()).collect();
            for design in [Design::Paired, Design::Unpaired] {
                let found = difference(design, &some(&base), &some(&new), 0.95).expect("several");
                let relative = found.relative.expect("a mean above 0");
                let [Some(low), Some(high)] = [relative.low, relative.high] else { continue };
                assert!(low <= relative.mean && relative.mean <= high);
                let significant = found.test.p.is_some_and(|p| p < 0.05);
                assert_eq!(significant, low > 0.0 || high < 0.0, "{design:?} {relative:?} {:?}", found.test);
                inside[usize::from(significant)] += 1;
                for end in [low, high].into_iter().filter(|_| design == Design::Paired) {
                    let scaled: Vec<f64> = base.iter().map(|base| base * (1.0 + end)).collect();
                    let test = difference(design, &some(&scaled), &some(&new), 0.95).expect("several").test;
                    assert!((test.p.expect("several") - 0.05).abs() < 1e-6, "{end} {test:?}");
                }
            }
        }
        assert!(inside.iter().all(|&count| count > 30), "{inside:?}");
        // The new values are proportional to the base, so the part is known exactly, although both vary by seed.
        let [base, new] = [[100.0, 200.0, 150.0, 120.0, 90.0], [50.0, 100.0, 75.0, 60.0, 45.0]];
        let found = difference(Design::Paired, &some(&base), &some(&new), 0.95).expect("five pairs");
        let relative = found.relative.expect("a mean above 0");
        near(relative.low.expect("an end"), -0.5);
        near(relative.high.expect("an end"), -0.5);
        let negative = difference(Design::Paired, &some(&[-4.0, -5.0, -6.0]), &some(&[-2.0, -2.5, -3.1]), 0.95);
        let relative = negative.expect("three pairs").relative.expect("a mean");
        assert!(
            relative.low.is_some_and(|low| low > 0.4) && relative.high.is_some_and(|high| high < 0.6),
            "{relative:?}"
        );
    }

    #[test]
    fn equivalence_is_a_narrower_interval_inside_of_the_margin() {
        let mut rng = stream(4, "equivalence");
        let mut both = [0, 0];
        for _ in 0..300 {
            let differences: [f64; 6] = std::array::from_fn(|_| StandardNormal.sample(&mut rng));
            for margin in [0.2, 0.8, 1.5] {
                let ninety = mean_interval(&differences, 0.9).expect("six");
                let inside =
                    ninety.low.is_some_and(|low| low > -margin) && ninety.high.is_some_and(|high| high < margin);
                let p = paired(&differences, largest(&differences), Some(margin), 0.95)
                    .and_then(|test| test.p_equivalent)
                    .expect("six");
                assert_eq!(p < 0.05, inside, "{differences:?} within {margin}");
                both[usize::from(inside)] += 1;
            }
        }
        assert!(both.iter().all(|&count| count > 100), "{both:?}");
    }

    /// Treatments that differ by the margin are called equivalent at most as often as the significance level of the tests.
    #[test]
    fn what_differs_by_the_margin_is_seldom_called_equivalent() {
        let mut rng = stream(5, "margin");
        let mut wrong = 0;
        for _ in 0..2000 {
            let differences: [f64; 5] = std::array::from_fn(|_| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                1.0 + 0.2 * noise
            });
            let p = paired(&differences, largest(&differences), Some(1.0), 0.95)
                .and_then(|test| test.p_equivalent)
                .expect("five");
            wrong += usize::from(p < 0.05);
        }
        // 100 wrong claims of 2000 are expected, with a standard deviation of 10.
        assert!((60..=140).contains(&wrong), "{wrong} of 2000");
    }

    #[test]
    fn absent_values_single_seeds_and_no_spread() {
        let of = |base: &[Option<f64>], new: &[Option<f64>]| difference(Design::Paired, base, new, 0.95);
        assert_eq!(of(&[None, Some(1.0)], &[Some(1.0), None]), None);
        let one = of(&[Some(2.0), None], &[Some(5.0), Some(1.0)]).expect("one pair");
        assert_eq!((one.base, one.new, one.test.difference.mean, one.test.difference.low), (2.0, 5.0, 3.0, None));
        assert_eq!((one.test.p, one.effect, one.test.p_equivalent), (None, None, None));
        let same = of(&some(&[1.0, 2.0]), &some(&[1.0, 2.0])).expect("two pairs");
        assert_eq!((same.test.p, same.effect, same.test.p_equivalent), (Some(1.0), None, Some(0.25)));
        // For equal differences the p-value is that of the permutation test, not 0.
        let shifted = of(&some(&[1.0, 2.0]), &some(&[2.0, 3.0])).expect("two pairs");
        assert_eq!((shifted.test.p, shifted.effect, shifted.test.p_equivalent), (Some(0.5), None, Some(1.0)));
        let ten = of(&some(&[1.0; 10]), &some(&[2.0; 10])).expect("ten pairs");
        assert_eq!(ten.test.p, Some(2.0 / 1024.0));
        let zero = of(&some(&[0.0, 0.0]), &some(&[0.0, 0.0])).expect("two pairs");
        assert_eq!((zero.test.margin, zero.test.p_equivalent), (None, None), "5 % of 0 is no margin");
        let apart = difference(Design::Unpaired, &some(&[1.0; 3]), &some(&[2.0; 3]), 0.95).expect("three of each");
        assert_eq!((apart.test.p, apart.test.difference.high), (Some(0.1), Some(1.0)));
        let alone = difference(Design::Unpaired, &[Some(1.0)], &[Some(2.0), Some(4.0)], 0.95).expect("one and two");
        assert_eq!((alone.test.p, alone.test.difference.low, alone.effect), (None, None, None));
        assert_eq!(difference(Design::Unpaired, &[None], &[Some(2.0)], 0.95), None);
    }
}
