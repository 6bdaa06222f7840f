//! Divides one resource among queues with deserved amounts, over-quota weights and past usage, as in the KAI scheduler.
//!
//! 1. Each queue gets the requested part of its deserved amount, even if the sum exceeds the total.
//! 2. The rest is divided by priority, the highest first. Within a priority it is divided in rounds, in proportion to `max(0, W + k (W -
//!    U))`. `W` is the queue's part of the weights of all queues with unmet requests, and `U` is its past usage. A queue gets its part
//!    rounded down to whole units, or its remaining request if that is less. Another round follows if a queue took less than its part.
//! 3. The amount lost by rounding is offered to the next priority. At the end it is handed out at most one unit per queue, by priority,
//!    then by the fraction that was cut off, then to the older queue first.
//!
//! Source: NVIDIA/KAI-Scheduler, `resource_division.go` and the design document of its time-based fair share.

/// A queue's claim to a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The amount that the queue gets before all others.
    pub deserved: u64,
    /// The over-quota weight of the queue in the division of the rest.
    pub weight: u64,
    /// The maximum that the queue may get; `None` means unlimited.
    pub limit: Option<u64>,
    /// The sum of the queue's allocation and pending demand.
    pub request: u64,
    /// The priority; higher values are served first.
    pub priority: i64,
    /// The past usage as a part of the whole resource over that time, in steps of 2^-20.
    pub usage: u64,
}

impl Claim {
    fn most(&self) -> u64 {
        self.request.min(self.limit.unwrap_or(u64::MAX))
    }
}

/// The value 1 in steps of past usage.
pub const USAGE_ONE: u64 = 1 << 20;

/// Returns the fair share of each queue, and the remainder. `claims` lists older queues first. `k`, in thousandths, is the influence of
/// past usage.
///
/// Parts are products of 64-bit integers. Weights that are too large for that are all scaled down. Cost: O(rounds · queues), at most one
/// round per queue that requests less than its part.
pub fn divide(total: u64, unit: u64, k: u64, claims: &[Claim]) -> (Vec<u64>, u64) {
    let mut shares: Vec<u64> = claims.iter().map(|claim| claim.deserved.min(claim.most())).collect();
    let mut left = total.saturating_sub(shares.iter().fold(0u64, |sum, share| sum.saturating_add(*share)));
    // The fraction that was cut off, in steps of 2^-32 of a unit.
    let mut cut = vec![0u64; claims.len()];
    let mut priorities: Vec<i64> = claims.iter().map(|claim| claim.priority).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    for priority in &priorities {
        let mut again = left > 0;
        while again {
            let open: Vec<usize> = (0..claims.len())
                .filter(|&at| claims[at].priority == *priority && shares[at] < claims[at].most())
                .collect();
            let parts = parts(k, &open.iter().map(|&at| &claims[at]).collect::<Vec<_>>());
            let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
            again = false;
            if sum == 0 {
                break;
            }
            let amount = left;
            for (&at, part) in open.iter().zip(parts) {
                let (product, open) = (u128::from(amount) * u128::from(part), claims[at].most() - shares[at]);
                let unit = u128::from(unit);
                if u128::from(open) * sum <= product {
                    again |= u128::from(open) * sum < product;
                    (shares[at], left, cut[at]) = (shares[at] + open, left - open, 0);
                } else {
                    let units = product / sum / unit;
                    cut[at] = (((product - units * unit * sum) << 8) / ((sum * unit) >> 24).max(1)) as u64;
                    let whole = (units * unit) as u64;
                    (shares[at], left) = (shares[at] + whole, left - whole);
                }
            }
            again &= left > 0;
        }
    }
    let mut order: Vec<usize> = (0..claims.len()).filter(|&at| cut[at] > 0).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse((claims[at].priority, cut[at])), at));
    for at in order {
        let more = left.min(unit).min(claims[at].most() - shares[at]);
        (shares[at], left) = (shares[at] + more, left - more);
    }
    (shares, left)
}

/// Returns `max(0, W + k (W - U))` of each claim, multiplied by a common factor.
fn parts(k: u64, claims: &[&Claim]) -> Vec<u64> {
    let weights: i128 = claims.iter().map(|claim| i128::from(claim.weight)).sum();
    let part = |claim: &&Claim| {
        let weight = i128::from(claim.weight) * i128::from(USAGE_ONE);
        (weight * 1000 + i128::from(k) * (weight - i128::from(claim.usage) * weights)).max(0) as u128
    };
    let parts: Vec<u128> = claims.iter().map(part).collect();
    let bits = 128 - parts.iter().copied().max().unwrap_or(0).leading_zeros();
    // Limits the bits so that a part times an amount, and the sum of parts times an amount, fit 128 bits.
    parts.into_iter().map(|part| (part >> bits.saturating_sub(44)) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(deserved: u64, weight: u64, request: u64) -> Claim {
        Claim { deserved, weight, request, ..Claim::default() }
    }

    fn divided(total: u64, claims: &[Claim]) -> (Vec<u64>, u64) {
        divide(total, 1, 0, claims)
    }

    /// Cases of `resource_division_test.go` of the KAI scheduler: deserved 2, weight 2 and request 6 unless stated otherwise.
    #[test]
    fn the_source_s_own_cases() {
        let two = [claim(2, 2, 6), claim(2, 2, 6)];
        assert_eq!(divided(15, &two), (vec![6, 6], 3));
        assert_eq!(divided(12, &two), (vec![6, 6], 0));
        assert_eq!(divided(11, &two), (vec![6, 5], 0), "the older queue first");
        assert_eq!(divided(8, &[claim(2, 1, 6), claim(2, 3, 6)]), (vec![3, 5], 0));
        let of_priorities = [Claim { priority: 1, ..claim(2, 2, 6) }, Claim { priority: 2, ..claim(2, 2, 6) }];
        assert_eq!(divided(4, &of_priorities), (vec![2, 2], 0));
        let three = [
            Claim { priority: 2, ..claim(2, 2, 5) },
            Claim { priority: 2, ..claim(2, 2, 5) },
            Claim { priority: 1, ..claim(1, 2, 0) },
        ];
        assert_eq!(divided(5, &three), (vec![3, 2, 0], 0));
        // Deserved amounts may exceed the total.
        assert_eq!(divided(1, &[claim(3, 0, 2)]), (vec![2], 0));
        assert_eq!(divided(7, &[claim(3, 0, 5)]), (vec![3], 4), "without a weight the rest stays free");
        assert_eq!(divide(2000, 1000, 0, &[claim(1500, 2, 6000)]), (vec![2000], 0));
        assert_eq!(divide(2000, 1000, 0, &[claim(1500, 0, 6000)]).0, [1500]);
        let cpu = [claim(5000, 1, 7000), claim(5000, 1, 2000), claim(5000, 1, 2000)];
        assert_eq!(divided(10_000, &cpu), (vec![6000, 2000, 2000], 0));
    }

    /// The amount lost by rounding down is offered to the next priority first: 8 GPUs, weights 1 and 2 above weight 1.
    #[test]
    fn what_is_cut_off_goes_to_the_next_priority_first() {
        let high = |weight| Claim { priority: 2, ..claim(0, weight, 8) };
        assert_eq!(divided(8, &[high(1), high(2), Claim { priority: 1, ..claim(0, 1, 8) }]), (vec![2, 5, 1], 0));
    }

    /// The example of the source's issue 143: 5 GPUs; A deserves 1 and requests 1, B deserves 1 and requests 3, C requests 2.
    #[test]
    fn the_documented_example() {
        let claims = [Claim { priority: 2, ..claim(1, 1, 1) }, claim(1, 2, 3), claim(0, 1, 2)];
        let (shares, left) = divided(5, &claims);
        assert_eq!((shares.iter().sum::<u64>() + left, shares[0]), (5, 1));
        assert_eq!(shares, [1, 3, 1]);
    }

    /// 16 GPUs, equal weights, past usage 0.3 and 0, k = 1. The queues share in proportion to 0.7 and 1, so they get 6.588 and 9.412 GPUs
    /// before rounding. Derived from the formula of the source's design document.
    #[test]
    fn past_usage_counts() {
        let used = Claim { usage: USAGE_ONE * 3 / 10, ..claim(0, 1, 16_000) };
        let (shares, _) = divide(16_000, 1, 1000, &[used.clone(), claim(0, 1, 16_000)]);
        assert_eq!(shares, [6588, 9412]);
        // In whole GPUs: 6 and 9; the queue with the larger fraction cut off gets the last one.
        let whole = |claim: &Claim| Claim { request: 16, ..claim.clone() };
        assert_eq!(divide(16, 1, 1000, &[whole(&used), whole(&claim(0, 1, 16))]).0, [7, 9]);
        // A queue that has used more than its part may get no share; without other queues the rest stays free.
        let all = Claim { usage: USAGE_ONE, ..claim(0, 1, 16) };
        assert_eq!(divide(16, 1, 1000, &[Claim { usage: 2 * USAGE_ONE, ..all.clone() }]), (vec![0], 16));
        assert_eq!(divide(16, 1, 1000, &[all, claim(0, 1, 16)]).0, [0, 16]);
    }
}
