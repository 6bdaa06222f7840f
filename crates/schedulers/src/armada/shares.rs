//! Fair shares of queues: by weight, capped by demand, and as if the queue's own demand were unlimited.
//!
//! Source: Armada, `UpdateFairShares` in `internal/scheduler/scheduling/context/scheduling.go` and `TestCalculateFairShares`.
//! The source computes in floats, this module in integer parts of [`WHOLE`], rounded down.

/// The whole cluster, in parts.
pub const WHOLE: u128 = 1 << 60;

/// An upper bound of the rounding error of a sum of parts. Each part is rounded down, so the sum may be too small.
pub const SLACK: u128 = 16;

/// The claim of a queue to the cluster.
#[derive(Clone, Copy, Debug)]
pub struct QueueClaim {
    /// The weight, in millionths.
    pub weight: u64,
    /// The demand, as a part of [`WHOLE`].
    pub demand: u128,
}

/// A queue's shares, as parts of [`WHOLE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueShares {
    /// The share by weight alone.
    pub fair: u128,
    /// The share by weight, at most the demand. It is computed in up to ten rounds, until at most a hundredth of the cluster is left.
    pub capped: u128,
    /// The share if the queue's own demand were unlimited.
    pub uncapped: u128,
}

fn part(weight: u64, of: u128, amount: u128) -> u128 {
    (u128::from(weight) * amount).checked_div(of).unwrap_or(0)
}

/// Computes the shares of all queues. Cost: O(queues).
pub fn shares(claims: &[QueueClaim]) -> Vec<QueueShares> {
    let sum: u128 = claims.iter().map(|claim| u128::from(claim.weight)).sum();
    let mut shares: Vec<QueueShares> = claims
        .iter()
        .map(|claim| QueueShares { fair: part(claim.weight, sum, WHOLE), ..QueueShares::default() })
        .collect();
    let mut open = vec![true; claims.len()];
    // The surplus of each queue in the previous round.
    let mut spare = vec![0u128; claims.len()];
    let mut left = WHOLE;
    for _ in 0..10 {
        if left <= WHOLE / 100 {
            break;
        }
        let weights = |open: &[bool]| -> u128 {
            claims.iter().zip(open).filter(|(_, open)| **open).map(|(claim, _)| u128::from(claim.weight)).sum()
        };
        let sum = weights(&open);
        for (at, claim) in claims.iter().enumerate() {
            let of = if open[at] { sum } else { sum + u128::from(claim.weight) };
            shares[at].uncapped += part(claim.weight, of, left - spare[at].min(left));
            shares[at].capped += if open[at] { part(claim.weight, sum, left) } else { 0 };
        }
        (left, spare) = (0, vec![0; claims.len()]);
        for (at, claim) in claims.iter().enumerate() {
            if open[at] && shares[at].capped > claim.demand {
                spare[at] = shares[at].capped - claim.demand;
                (shares[at].capped, open[at]) = (claim.demand, false);
                left += spare[at];
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the shares of queues in a cluster of 100 cores; each queue is (weight, demand, capped share, uncapped share).
    fn check(queues: &[(u64, u128, f64, f64)]) {
        let claims: Vec<QueueClaim> = queues
            .iter()
            .map(|(weight, demand, ..)| QueueClaim { weight: weight * 1_000_000, demand: demand * WHOLE / 100 })
            .collect();
        for (share, (.., capped, uncapped)) in shares(&claims).iter().zip(queues) {
            let near = |part: u128, expected: f64| (part as f64 / WHOLE as f64 - expected).abs() < 1e-9;
            assert!(near(share.capped, *capped) && near(share.uncapped, *uncapped), "{share:?} {queues:?}");
        }
    }

    /// The cases of `TestCalculateFairShares`.
    #[test]
    fn the_source_s_own_cases() {
        check(&[(1, 1000, 1.0, 1.0)]);
        check(&[(1, 1, 0.01, 1.0)]);
        check(&[(1, 1, 0.01, 0.99), (1, 1, 0.01, 0.99)]);
        check(&[(1, 1000, 0.25, 0.25), (3, 1000, 0.75, 0.75)]);
        check(&[(1, 1, 0.01, 0.25), (3, 1000, 0.99, 0.99)]);
        let third = 1.0 / 3.0;
        check(&[(1, 1, 0.01, third + 0.0475), (1, 40, 0.4, 0.495), (1, 1000, 0.59, 0.59)]);
        check(&[(1, 0, 0.0, 1.0), (1, 0, 0.0, 1.0)]);
    }
}
