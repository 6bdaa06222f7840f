//! Fair shares of one resource among siblings: weight times one level, at least the minimum and at most the maximum.
//!
//! The level is the lowest at which the shares, rounded down to whole units, together reach the total. The sum may exceed the total,
//! because several siblings may gain a unit at the same level. Minimums are granted even if they exceed the total.
//!
//! Source: Apache Hadoop, `ComputeFairShares.java`, which finds the level by 25 bisections of a float; here the level is exact.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::cycle::Ratio;

/// The claim of a sibling.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub min: u64,
    pub max: u64,
    pub weight: u64,
    /// Whether it has applications.
    pub active: bool,
}

impl Claim {
    /// Returns the share if it does not depend on the level.
    fn fixed(&self) -> Option<u64> {
        match self {
            Claim { max: 0, .. } | Claim { active: false, .. } => Some(0),
            Claim { weight: 0, min, .. } => Some(*min),
            _ => None,
        }
    }
}

/// Computes the shares of a total, in whole units except for minimums and maximums. Cost: O(siblings * rounds), at most one round for each
/// sibling that is limited by its minimum or maximum.
pub fn shares(total: u64, unit: u64, claims: &[Claim]) -> Vec<u64> {
    let mut shares: Vec<u64> = claims.iter().map(|claim| claim.fixed().unwrap_or(0)).collect();
    let taken = shares.iter().fold(0u64, |sum, share| sum.saturating_add(*share));
    let open: Vec<usize> = (0..claims.len()).filter(|at| claims[*at].fixed().is_none()).collect();
    let most = open.iter().fold(0u64, |sum, at| sum.saturating_add(claims[*at].max));
    let left = total.saturating_sub(taken).min(most);
    // No share exceeds the total unless its minimum does, so products fit the type.
    let most = |at: usize| claims[at].max.min(claims[at].min.max(left));
    let least = |at: usize| claims[at].min.min(most(at));
    let mut moving = open.clone();
    let mut rest = i128::from(left);
    loop {
        let weights: i128 = moving.iter().map(|at| i128::from(claims[*at].weight)).sum();
        let held = |at: usize| {
            let part = i128::from(claims[at].weight) * rest;
            part.clamp(i128::from(least(at)) * weights, i128::from(most(at)) * weights) - part
        };
        let excess: i128 = moving.iter().map(|at| held(*at)).sum();
        let (kept, moves): (Vec<usize>, Vec<usize>) = moving.iter().partition(|at| match excess {
            0 => false,
            1.. => held(**at) > 0,
            _ => held(**at) < 0,
        });
        if kept.is_empty() {
            for at in moving {
                let part = (i128::from(claims[at].weight) * rest).max(0) as u128 / (weights.max(1) as u128);
                let whole = u64::try_from(part).unwrap_or(u64::MAX) / unit * unit;
                shares[at] = whole.clamp(least(at), most(at));
            }
            break;
        }
        for at in kept {
            shares[at] = if excess > 0 { least(at) } else { most(at) };
            rest -= i128::from(shares[at]);
        }
        moving = moves;
    }
    raise(left, unit, claims, &open, &most, &mut shares);
    shares
}

/// Raises the level until the total is reached; claims that gain a unit at the same level gain it together.
fn raise(total: u64, unit: u64, claims: &[Claim], open: &[usize], most: &dyn Fn(usize) -> u64, shares: &mut [u64]) {
    let mut sum = open.iter().fold(0u64, |sum, at| sum.saturating_add(shares[*at]));
    let next = |at: usize, share: u64| {
        let up = (share / unit + 1) * unit;
        (share < most(at)).then(|| Reverse((Ratio::new(up, claims[at].weight), at)))
    };
    let mut heap: BinaryHeap<_> = open.iter().filter_map(|at| next(*at, shares[*at])).collect();
    while sum < total {
        let Some(Reverse((level, _))) = heap.peek().copied() else { break };
        while let Some(Reverse((_, at))) = heap.peek().copied().filter(|Reverse((other, _))| *other == level) {
            heap.pop();
            let share = ((shares[at] / unit + 1) * unit).min(most(at));
            sum = sum.saturating_add(share - shares[at]);
            shares[at] = share;
            heap.extend(next(at, share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    fn claim(min: u64, max: u64, weight: f64) -> Claim {
        Claim { min, max, weight: (weight * 1e6) as u64, active: true }
    }

    fn divided(total: u64, claims: &[(u64, u64, f64)]) -> Vec<u64> {
        let claims: Vec<Claim> = claims.iter().map(|(min, max, weight)| claim(*min, *max, *weight)).collect();
        shares(total, 1, &claims)
    }

    /// The cases of `TestComputeFairShares.java`, test by test; the source checks only that the last case ends; this test also checks its
    /// shares.
    #[test]
    fn the_source_s_own_cases() {
        let plain = (0, ALL, 1.0);
        assert_eq!(divided(40, &[plain; 4]), [10; 4]);
        assert_eq!(divided(40, &[(0, 100, 1.0), (0, 50, 1.0), (0, 11, 1.0), (0, 3, 1.0)]), [13, 13, 11, 3]);
        assert_eq!(divided(40, &[(20, ALL, 1.0), (18, ALL, 1.0), plain, (2, ALL, 1.0)]), [20, 18, 0, 2]);
        assert_eq!(divided(45, &[(0, ALL, 2.0), plain, plain, (0, ALL, 0.5)]), [20, 10, 10, 5]);
        assert_eq!(divided(45, &[(0, 10, 2.0), (0, 11, 1.0), (0, 30, 1.0), (0, 20, 0.5)]), [10, 11, 16, 8]);
        let mins = [(20, ALL, 2.0), (0, ALL, 1.0), (5, ALL, 1.0), (15, ALL, 0.5)];
        assert_eq!(divided(45, &mins), [20, 5, 5, 15]);
        let million = 1_000_000u64;
        assert_eq!(divided(40 * million, &[plain; 4]), [10 * million; 4]);
        assert!(divided(40, &[]).is_empty());
        // testCPU: whole cores.
        let cores = mins.map(|(min, max, weight)| claim(1000 * min, max, weight));
        assert_eq!(shares(45_000, 1000, &cores), [20_000, 5_000, 5_000, 15_000]);
        let most = i32::MAX as u64;
        assert_eq!(divided(most, &[(most, ALL, 1.0); 2]), [most; 2]);
    }

    /// Cases that the source does not test, derived from the definition.
    #[test]
    fn the_level_rises_in_units() {
        let plain = (0, ALL, 1.0);
        assert_eq!(divided(60, &[plain, (0, 50, 1.0), (0, 11, 1.0), (0, 3, 1.0)]), [23, 23, 11, 3]);
        assert_eq!(divided(41, &[(20, ALL, 1.0), (18, ALL, 1.0), plain, (2, ALL, 1.0)]), [20, 18, 1, 2]);
        assert_eq!(divided(0, &[plain; 2]), [0, 0]);
        // The total is one unit for two claims. Each claim receives a unit, because the level rises until the total is reached.
        assert_eq!(divided(1, &[plain; 2]), [1, 1]);
        assert_eq!(shares(1000, 1000, &[claim(0, ALL, 1.0), claim(0, ALL, 1.0)]), [1000, 1000]);
    }

    #[test]
    fn the_fixed_come_first() {
        let idle = Claim { active: false, ..claim(5, ALL, 1.0) };
        assert_eq!(shares(10, 1, &[idle, claim(0, ALL, 1.0), claim(4, ALL, 0.0), claim(9, 0, 1.0)]), [0, 6, 4, 0]);
        // Minimums that exceed the total are given.
        assert_eq!(divided(10, &[(8, ALL, 1.0), (7, ALL, 1.0), (0, ALL, 1.0)]), [8, 7, 0]);
    }

    /// Compares the shares with the definition, by trying all levels.
    #[test]
    fn the_level_is_the_least() {
        for case in 0..3_000u64 {
            let draw = |at: u64, below: u64| (case * 2_654_435_761 + at * 40_503 + (case >> 3) * at * 97) / 7 % below;
            let total = draw(1, 40);
            let claims: Vec<Claim> = (0..2 + draw(2, 3))
                .map(|at| Claim {
                    min: if draw(10 + at, 3) == 0 { draw(20 + at, 12) } else { 0 },
                    max: if draw(30 + at, 3) == 0 { 1 + draw(40 + at, 15) } else { ALL },
                    weight: (1 + draw(50 + at, 4)) * 500_000,
                    active: true,
                })
                .collect();
            let at_level = |halves: u64| -> Vec<u64> {
                let share =
                    |claim: &Claim| (claim.weight / 500_000 * halves / 12).clamp(claim.min.min(claim.max), claim.max);
                claims.iter().map(share).collect()
            };
            // The levels are tried in steps small enough to include every level at which a share changes.
            let expected = (0..20_000).map(at_level).find(|shares| {
                let sum: u64 = shares.iter().sum();
                sum >= total || shares.iter().zip(&claims).all(|(share, claim)| *share == claim.max)
            });
            assert_eq!(Some(shares(total, 1, &claims)), expected, "{total} {claims:?}");
        }
    }
}
