//! Corrections of p-values for multiple tests.

use std::collections::BTreeMap;

use super::difference::Test;

/// Corrects p-values for their number: the probability of any false alarm among all tests is then at most that of a single test. Missing
/// values stay missing and do not count.
///
/// The k-th smallest of m p-values is multiplied by m − k + 1, raised to the corrected value before it if that is larger, and limited to 1.
/// Source: Holm, Scandinavian Journal of Statistics 6, 1979.
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

/// The p-values of a test after the correction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Corrected {
    /// The p-value of the hypothesis that there is no difference.
    pub p: Option<f64>,
    /// The p-value of the hypothesis that the difference is at least the margin.
    pub p_equivalent: Option<f64>,
}

/// Corrects both p-values of each test within its family: the tests of a difference together, and the tests of equivalence together.
pub fn corrected<'a>(tests: impl IntoIterator<Item = (&'a str, Test)>) -> Vec<Corrected> {
    let tests: Vec<(&str, Test)> = tests.into_iter().collect();
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    tests.iter().enumerate().for_each(|(at, (family, _))| members.entry(family).or_default().push(at));
    let mut found = vec![Corrected::default(); tests.len()];
    for places in members.values() {
        let of = |p: fn(&Test) -> Option<f64>| holm(&places.iter().map(|&at| p(&tests[at].1)).collect::<Vec<_>>());
        for ((&at, p), p_equivalent) in places.iter().zip(of(|test| test.p)).zip(of(|test| test.p_equivalent)) {
            found[at] = Corrected { p, p_equivalent };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::difference::paired;
    use plimsoll_sim::workload::synthetic::random::stream;

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
        let test = |p: f64| Test {
            p: Some(p),
            p_equivalent: Some(1.0 - p),
            ..paired(&[1.0], 1.0, None, 0.95).expect("a mean")
        };
        let apart = corrected([("a", test(0.02)), ("b", test(0.02)), ("a", test(0.9))]);
        assert_eq!(apart.iter().map(|one| one.p).collect::<Vec<_>>(), [Some(0.04), Some(0.02), Some(0.9)]);
        assert!((apart[2].p_equivalent.expect("there") - 0.2).abs() < 1e-12);
    }

    /// The reference implementation determines the rejected hypotheses by the definition: it rejects the hypothesis with the smallest
    /// remaining p-value while this p-value, times the number of remaining hypotheses, is within the level. A corrected p-value is the
    /// lowest level at which the hypothesis is rejected.
    #[test]
    fn corrected_values_reject_as_stepping_down_does() {
        let mut rng = stream(7, "holm twin");
        for case in 0..200 {
            let p: Vec<f64> = (0..1 + case % 9)
                .map(|_| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    (-z.abs() * 2.0).exp()
                })
                .collect();
            let corrected = holm(&p.iter().map(|&p| Some(p)).collect::<Vec<_>>());
            for level in [0.01, 0.05, 0.2, 0.5] {
                let mut left: Vec<usize> = (0..p.len()).collect();
                while let Some(&least) = left.iter().min_by(|&&a, &&b| p[a].total_cmp(&p[b])) {
                    if p[least] * left.len() as f64 > level {
                        break;
                    }
                    left.retain(|&at| at != least);
                }
                let kept: Vec<usize> = (0..p.len()).filter(|&at| corrected[at].is_some_and(|p| p > level)).collect();
                assert_eq!(kept, left, "{p:?} at {level}");
            }
        }
    }

    /// For sets of 20 comparisons of equal treatments, the corrected tests have a significant result in about 5 % of the sets, and the
    /// uncorrected tests in most of them.
    #[test]
    fn corrected_tests_of_equals_seldom_cry_wolf() {
        let mut rng = stream(3, "holm");
        let mut draw = || -> [f64; 8] { std::array::from_fn(|_| StandardNormal.sample(&mut rng)) };
        let (mut plain, mut corrected) = (0, 0);
        for _ in 0..200 {
            let p: Vec<Option<f64>> =
                (0..20).map(|_| paired(&draw(), 1.0, None, 0.95).and_then(|test| test.p)).collect();
            plain += usize::from(p.iter().flatten().any(|p| *p < 0.05));
            corrected += usize::from(holm(&p).iter().flatten().any(|p| *p < 0.05));
        }
        assert!((100..=150).contains(&plain), "{plain} of 200, 128 expected");
        assert!((2..=20).contains(&corrected), "{corrected} of 200, 10 expected");
    }
}
