//! Runtime quotas of one resource among siblings: each gets the requested part of its minimum, and the rest is divided by shared weight.
//!
//! Source: Koordinator, `runtime_quota_calculator.go` and `scale_minquota_when_over_root_res.go`.

use std::cmp::Reverse;

/// The claim of a sibling group.
#[derive(Clone, Copy, Debug)]
pub struct SiblingClaim {
    /// The allocation plus the pending demand, at most the maximum.
    pub request: u64,
    pub min: u64,
    pub weight: u64,
    /// Whether others may use its unused minimum.
    pub lends: bool,
    /// Its position in the order of names.
    pub named: usize,
}

/// Divides a total into runtime quotas. The quotas exceed the total if the requested minimums exceed it. The rest is divided in rounds by
/// the largest remainder, ties by name. Cost: O(siblings * log siblings) per round.
pub fn runtimes(total: u64, claims: &[SiblingClaim]) -> Vec<u64> {
    let base = |claim: &SiblingClaim| match claim.request > claim.min {
        true => claim.min,
        false if claim.lends => claim.request,
        false => claim.min,
    };
    let mut runtimes: Vec<u64> = claims.iter().map(base).collect();
    let mut left = runtimes.iter().fold(total, |left, runtime| left.saturating_sub(*runtime));
    let mut open: Vec<usize> = (0..claims.len()).filter(|at| claims[*at].request > claims[*at].min).collect();
    while left > 0 && !open.is_empty() {
        let weights: u128 = open.iter().map(|at| u128::from(claims[*at].weight)).sum();
        if weights == 0 {
            break;
        }
        let mut rest = left;
        let mut remainders: Vec<(Reverse<u128>, usize, usize)> = Vec::new();
        let mut more: Vec<u64> = vec![0; claims.len()];
        for at in open.iter().filter(|at| claims[**at].weight > 0) {
            let product = u128::from(claims[*at].weight) * u128::from(left);
            more[*at] = (product / weights) as u64;
            rest -= more[*at];
            remainders.push((Reverse(product % weights), claims[*at].named, *at));
        }
        remainders.sort_unstable();
        for (.., at) in remainders.into_iter().take(usize::try_from(rest).unwrap_or(usize::MAX)) {
            more[at] += 1;
        }
        left = 0;
        open.retain(|at| {
            let runtime = runtimes[*at].saturating_add(more[*at]);
            runtimes[*at] = runtime.min(claims[*at].request);
            left += runtime - runtimes[*at];
            runtimes[*at] < claims[*at].request
        });
    }
    runtimes
}

/// The scaling of minimums that exceed the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// The minimums are not scaled.
    Kept,
    /// The minimums are scaled in integers, rounded down to whole units.
    Exact,
    /// The minimums are scaled in floats, as in the source.
    Floats,
}

/// Scales the minimums of siblings if they exceed the total. Minimums with [`Scaling::Kept`] are kept; the others divide the rest in
/// proportion.
pub fn scaled(total: u64, mins: &[(u64, Scaling)]) -> Vec<u64> {
    let sum = |kept: bool| -> u64 {
        let of = mins.iter().filter(|(_, scaling)| (*scaling == Scaling::Kept) == kept);
        of.fold(0u64, |sum, (min, _)| sum.saturating_add(*min))
    };
    let (kept, cut) = (sum(true), sum(false));
    if kept.saturating_add(cut) <= total {
        return mins.iter().map(|(min, _)| *min).collect();
    }
    let left = total.saturating_sub(kept);
    let part = |(min, scaling): &(u64, Scaling)| match scaling {
        Scaling::Kept => *min,
        _ if cut == 0 => 0,
        Scaling::Exact => (u128::from(left) * u128::from(*min) / u128::from(cut)) as u64,
        Scaling::Floats => (left as f64 * *min as f64 / cut as f64) as u64,
    };
    mins.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(total: u64, claims: &[(u64, u64, u64, bool)]) -> Vec<u64> {
        let claim = |(named, (weight, request, min, lends)): (usize, &(u64, u64, u64, bool))| SiblingClaim {
            request: *request,
            min: *min,
            weight: *weight,
            lends: *lends,
            named,
        };
        runtimes(total, &claims.iter().enumerate().map(claim).collect::<Vec<_>>())
    }

    /// The worked example of the proposal, `TestRuntimeQuotaCalculator_Iteration4AdjustQuota`.
    #[test]
    fn the_source_s_own_example() {
        let claims = [(40, 5, 10, true), (60, 20, 15, true), (50, 40, 20, true), (80, 70, 15, true)];
        assert_eq!(divided(100, &claims), [5, 20, 35, 40]);
        // A group that does not lend keeps its minimum.
        let keeps = [(40, 5, 10, false), (60, 20, 15, true), (50, 40, 20, true), (80, 70, 15, true)];
        assert_eq!(divided(100, &keeps)[0], 10);
        assert_eq!(divided(100, &keeps).iter().sum::<u64>(), 100);
        // `TestRuntimeQuotaCalculator_IterationAdjustQuota`: the last group has no weight.
        let weightless = [(40, 5, 10, true), (60, 20, 15, true), (50, 40, 20, true), (0, 70, 15, true)];
        assert_eq!(divided(100, &weightless), [5, 20, 40, 15]);
    }

    #[test]
    fn nothing_is_lost_by_rounding() {
        assert_eq!(divided(10, &[(1, 9, 0, true), (1, 9, 0, true), (1, 9, 0, true)]), [4, 3, 3]);
        assert_eq!(divided(10, &[(0, 9, 0, true), (1, 3, 0, true)]), [0, 3], "without a weight no part of the rest");
        assert_eq!(divided(10, &[(1, 9, 8, true), (1, 9, 7, true)]), [8, 7], "minimums exceed the total");
    }

    /// `TestScaleMinQuotaWhenOverRootResInfo_GetScaledMinQuota`: three minimums of 50, the first one unscaled.
    #[test]
    fn the_source_s_own_scaling() {
        for scaling in [Scaling::Exact, Scaling::Floats] {
            let mins = [(50, Scaling::Kept), (50, scaling), (50, scaling)];
            assert_eq!(scaled(200, &mins), [50, 50, 50]);
            assert_eq!(scaled(100, &mins), [50, 25, 25]);
            assert_eq!(scaled(50, &mins), [50, 0, 0]);
            assert_eq!(scaled(0, &mins)[1..], [0, 0]);
        }
    }
}
