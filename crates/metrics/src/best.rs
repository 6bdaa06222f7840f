//! Awards: the candidates with the best mean, and the candidates that are equivalent to the best.
//!
//! Each pair of candidates is tested, and the p-values are corrected for all pairs of all contests that are shown together. So noise alone
//! rarely leads to an award.

use super::compare::{LEVEL, is_significant};
use super::difference::{Design, Test, difference};
use super::holm::holm;
use super::interval::there;
use super::spread::mean;
use plimsoll_base::column::Better;

/// The values of one metric for all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// The direction that is better.
    pub better: Better,
    /// The values by candidate and seed.
    pub values: Vec<Vec<Option<f64>>>,
}

/// The award of a candidate in a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Award {
    /// The mean is significantly better than every other mean.
    Best,
    /// The mean is the best mean, or it is shown to be equivalent to the best mean and does not differ significantly from it. At least one
    /// other candidate has this award too.
    Equivalent,
    /// The best mean is significantly better, or neither a difference from the best mean nor equivalence with it is shown.
    Unmarked,
}

/// The awards, and the number of comparisons that they are based on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Awards {
    /// The awards by contest and candidate.
    pub awards: Vec<Vec<Award>>,
    /// The number of p-values that were corrected together.
    pub family: usize,
}

/// Computes the awards of contests that are shown together.
///
/// All pairs of candidates in all contests with a direction form one family (Holm), whichever candidate turns out to be best. So choosing
/// the best candidate before the tests needs no further correction. If all candidates are equal, the probability that a winner is named is
/// at most 5 %. Two candidates are equivalent if each is within the margin of the other; the tests of equivalence form a second family.
/// Panics: as [`difference()`].
pub fn awards(design: Design, contests: &[Contest]) -> Awards {
    let mut pairs: Vec<(usize, [usize; 2])> = Vec::new();
    for (at, contest) in contests.iter().enumerate().filter(|(_, contest)| contest.better != Better::Neither) {
        let candidates = contest.values.len();
        pairs.extend((0..candidates).flat_map(|a| (a + 1..candidates).map(move |b| (at, [a, b]))));
    }
    let test = |(at, [a, b]): &(usize, [usize; 2])| -> [Option<f64>; 2] {
        let of = |base: usize, new: usize| {
            let values = &contests[*at].values;
            difference(design, &values[base], &values[new], LEVEL).map(|found| found.test)
        };
        let [one, other] = [of(*a, *b), of(*b, *a)];
        let equivalent = |test: Option<Test>| test?.p_equivalent;
        let both = equivalent(one).zip(equivalent(other));
        [one.and_then(|test| test.p), both.map(|(one, other)| one.max(other))]
    };
    let tests: Vec<[Option<f64>; 2]> = pairs.iter().map(test).collect();
    let [p, p_equivalent] = [0, 1].map(|which| holm(&tests.iter().map(|test| test[which]).collect::<Vec<_>>()));
    let shown = |p: &[Option<f64>], contest: usize, a: usize, b: usize| {
        let pair = [a.min(b), a.max(b)];
        let found = pairs.iter().position(|one| *one == (contest, pair));
        found.is_some_and(|at| is_significant(p[at]))
    };
    let one = |(at, contest): (usize, &Contest)| {
        let mean = |values: &Vec<Option<f64>>| {
            let there: Vec<f64> = there(values).into_iter().filter(|value| value.is_finite()).collect();
            (!there.is_empty()).then(|| mean(&there))
        };
        let means: Vec<Option<f64>> = contest.values.iter().map(mean).collect();
        let Some(top) = top(&means, contest.better) else { return vec![Award::Unmarked; means.len()] };
        let ruled_out = |candidate: usize| candidate != top && shown(&p, at, top, candidate);
        let equals =
            |candidate: usize| candidate != top && !ruled_out(candidate) && shown(&p_equivalent, at, top, candidate);
        let there = means.iter().flatten().count();
        let behind = (0..means.len()).filter(|&candidate| ruled_out(candidate)).count();
        let any = (0..means.len()).any(equals);
        let award = |candidate: usize| match candidate == top {
            true if behind > 0 && behind + 1 == there => Award::Best,
            true if any => Award::Equivalent,
            false if equals(candidate) => Award::Equivalent,
            _ => Award::Unmarked,
        };
        (0..means.len()).map(award).collect()
    };
    let family = p.iter().flatten().count();
    Awards { awards: contests.iter().enumerate().map(one).collect(), family }
}

/// Returns the candidate with the best mean; of equal means, the first candidate.
fn top(means: &[Option<f64>], better: Better) -> Option<usize> {
    let sign = match better {
        Better::Lower => -1.0,
        Better::Higher => 1.0,
        Better::Neither => return None,
    };
    let there = (0..means.len()).filter_map(|at| Some((at, sign * means[at]?)));
    there.reduce(|best, one| if one.1 > best.1 { one } else { best }).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use plimsoll_sim::workload::synthetic::random::stream;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|&value| Some(value)).collect()
    }

    #[test]
    fn only_what_tests_carry_is_best() {
        let clear =
            [some(&[1.0, 1.1, 0.9, 1.0, 1.05]), some(&[3.0, 3.2, 2.8, 3.1, 3.0]), some(&[5.0, 5.1, 4.9, 5.0, 5.2])];
        let award = |better, values: &[Vec<Option<f64>>]| {
            awards(Design::Paired, &[Contest { better, values: values.to_vec() }]).awards.remove(0)
        };
        use Award::{Best, Equivalent, Unmarked};
        assert_eq!(award(Better::Lower, &clear), [Best, Unmarked, Unmarked]);
        assert_eq!(award(Better::Higher, &clear), [Unmarked, Unmarked, Best]);
        assert_eq!(award(Better::Neither, &clear), [Unmarked; 3]);
        // The second candidate has a slightly better mean because of noise, which is too large to show equivalence.
        let noisy = [clear[0].clone(), some(&[0.9, 1.1, 1.0, 0.9, 1.1]), clear[2].clone(), vec![None; 5]];
        assert_eq!(award(Better::Lower, &noisy), [Unmarked; 4]);
        let near = [clear[0].clone(), some(&[1.001, 1.099, 0.901, 1.0, 1.049]), clear[2].clone()];
        assert_eq!(award(Better::Lower, &near), [Equivalent, Equivalent, Unmarked]);
        assert_eq!(award(Better::Lower, &near[..2]), [Equivalent; 2]);
        assert_eq!(award(Better::Lower, &[some(&[1.0]), some(&[9.0])]), [Unmarked; 2], "one seed says nothing");
        assert_eq!(award(Better::Lower, &[some(&[1.0; 3]), some(&[1.0; 3])]), [Unmarked; 2], "three seeds say little");
        assert_eq!(award(Better::Lower, &[some(&[1.0; 5]), some(&[1.0; 5])]), [Equivalent; 2]);
        let found = awards(Design::Paired, &vec![Contest { better: Better::Lower, values: clear.to_vec() }; 4]);
        assert_eq!((found.family, found.awards.len()), (12, 4));
    }

    /// Among tables of equal candidates, at most about 5 % have an award.
    #[test]
    fn equals_are_seldom_placed() {
        let mut rng = stream(11, "places");
        let mut draw = || some(&(0..5).map(|_| StandardNormal.sample(&mut rng)).collect::<Vec<f64>>());
        let mut tables = [0, 0];
        for _ in 0..400 {
            let contests: Vec<Contest> =
                (0..4).map(|_| Contest { better: Better::Lower, values: (0..4).map(|_| draw()).collect() }).collect();
            for (count, design) in tables.iter_mut().zip([Design::Paired, Design::Unpaired]) {
                let placed = awards(design, &contests).awards.concat().contains(&Award::Best);
                *count += usize::from(placed);
            }
        }
        // At most 20 of 400 tables are expected, with a standard deviation of 4.4.
        assert!(tables.iter().all(|&count| count <= 33), "{tables:?} of 400");
    }
}
