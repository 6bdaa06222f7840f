//! The family between asset fairness and DRF: the user with the least p-norm of its shares is next.
//!
//! `pnorm:1` is asset fairness and `pnorm:inf` DRF, both compared exactly. For other p, shares are irrational: they are computed in floats
//! and rounded to 2^-44 of the cluster. Equal allocations at equal weights have equal ranks, and users with shares that differ by less
//! than 2^-44 may tie. Sources: Joe-Wong et al., INFOCOM 2012 (norms of shares as a family); Ghodsi et al., NSDI 2011, §4 and §5.1 (p =
//! inf and p = 1).

use super::{
    ByShare, Parameter, Parsed, Policy, PolicyRow, Rank, RankOrder, Setup, ShareNorm, Shares, StaticEquivalent,
};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, UserId};
use plimsoll_fair::Norm;
use plimsoll_sim::books::Books;

/// `pnorm:P`
pub static ROW: PolicyRow = PolicyRow {
    name: "pnorm",
    spelling: "pnorm:P",
    rank: RankOrder::Lowest("(sum_r (u_r / (c_r w_r))^P)^(1/P)"),
    meaning: "Between asset fairness (P = 1) and DRF (P = inf).",
    source: "Joe-Wong et al., INFOCOM 2012, for families between",
    example: "pnorm:2",
    checked: "pnorm:2",
    variants: &[],
    keys: &[],
    read: |given| {
        let p = given.and_then(|given| Parameter::read(given, |p| p >= 1.0));
        let p = p.ok_or("a P of at least 1, or inf, such as pnorm:2")?;
        let parsed = Parsed::new(Some(p.to_string()), move |setup| by_power(setup, p.value()));
        Ok(parsed.like(move |_| Norm::power(p.value()).map(StaticEquivalent::Norm)))
    },
};

/// The number of rank steps per share of 1. Shares above 2^80 clusters, which only tiny weights cause, all have the same rank.
const STEPS: f64 = (1u64 << 44) as f64;

/// Creates the policy that serves the user with the lowest `(sum_r (u_r / (c_r w_r))^p)^(1/p)`. Errors:
/// [`Error::Plan`](plimsoll_base::error::Error::Plan) for p below 1, and those of [`ByShare::by_norm`] for p = 1 and p = inf.
fn by_power(setup: &Setup, p: f64) -> Result<Box<dyn Policy>> {
    Ok(match Norm::power(p)? {
        Norm::Sum => Box::new(ByShare::by_norm("pnorm", ShareNorm::Sum, setup)?),
        Norm::Largest => Box::new(ByShare::by_norm("pnorm", ShareNorm::Largest, setup)?),
        norm => Box::new(ByShare::new(PowerShares::new(norm, setup))),
    })
}

/// Shares by a norm with an irrational value.
///
/// Cost: O(resources) powers per share.
struct PowerShares {
    norm: Norm,
    /// `1 / (c_r w_r)` by class of weights; 0 for a resource that the cluster does not have.
    inverse: Vec<[f64; MAX_DIMS]>,
}

impl PowerShares {
    fn new(norm: Norm, setup: &Setup) -> PowerShares {
        PowerShares { norm, inverse: setup.weights.inverse(&setup.capacity) }
    }
}

impl Shares for PowerShares {
    fn rank_with(&self, user: UserId, held: &[u64], books: &Books) -> Rank {
        let inverse = &self.inverse[books.weight_class(user)];
        let shares = held.iter().zip(inverse).map(|(&held, inverse)| held as f64 * inverse);
        // The cast saturates.
        Rank::new((self.norm.float(shares) * STEPS).round() as u128)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::Queue;
    use plimsoll_base::units::{Dim, Resources, Time, Unit};
    use plimsoll_sim::books::{Partition, Weights};

    /// Computes the ranks of users with these allocations on a cluster of 9 CPU and 18 GB.
    fn ranks(p: f64, held: &[[u64; 2]]) -> Vec<Rank> {
        let dims: Vec<Dim> = ["cpu", "memory"].map(|name| Dim { name: name.into(), unit: Unit::Milli }).into();
        let capacity = Resources([9000, 18_000, 0, 0, 0, 0, 0, 0]);
        let weights = Weights::default();
        let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
        let policy = by_power(&setup, p).expect("p is at least 1");
        let mut books = Books::new(2, capacity, capacity, true, weights);
        let rank = |(user, held): (u32, &[u64; 2])| {
            books.open("somebody");
            books.queue(UserId(user), 1, held);
            books.launch(UserId(user), held, held);
            policy.rank(
                &Queue {
                    user: UserId(user),
                    partition: Partition::DEFAULT,
                    release: Time::ZERO,
                    place: 0,
                    priority: 0,
                    key: None,
                },
                &books,
            )
        };
        (0..).zip(held).map(rank).collect()
    }

    #[test]
    fn the_ends_are_exact_and_what_lies_between_lies_between() {
        // The shares are 1/3 and 1/3 for the first user, 1/2 and 0 for the second. The first user has the larger sum and the smaller
        // maximum. The norms are equal at p = ln 2 / ln 1.5.
        let held = [[3000, 6000], [4500, 0]];
        let meet = 2f64.ln() / 1.5f64.ln();
        for (p, first) in [(1.0, 1), (1.5, 1), (meet - 1e-6, 1), (meet + 1e-6, 0), (8.0, 0), (f64::INFINITY, 0)] {
            let ranks = ranks(p, &held);
            assert_eq!(usize::from(ranks[1] < ranks[0]), first, "{p}");
        }
        let resolved = ranks(2.0, &[[4500, 0], [0, 9000], [0, 9001]]);
        assert!(resolved[0] == resolved[1] && resolved[1] < resolved[2]);
    }

    #[test]
    fn more_of_anything_ranks_no_earlier() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..2000 {
            let p = [1.01, 1.5, 2.0, 3.0, 17.0, 400.0][rng.random_range(0..6)];
            let less = [rng.random_range(0..9000), rng.random_range(0..18_000)];
            let more = less.map(|held| held + [0, 1, 1000][rng.random_range(0..3)]);
            let ranks = ranks(p, &[less, more]);
            assert!(ranks[0] <= ranks[1], "{p}: {less:?} {more:?}");
        }
    }
}
