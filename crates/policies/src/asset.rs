//! Asset fairness: the user with the least sum of shares is next.
//!
//! Source: Ghodsi et al., NSDI 2011, §5.1. It has neither sharing incentive nor bottleneck fairness (theorems 1, 2).

use super::{Parsed, Policy, PolicyRow, Prices, Queue, Rank, Setup, ShareNorm, Shares, StaticEquivalent};
use plimsoll_base::error::Result;
use plimsoll_fair::Norm;
use plimsoll_sim::books::Books;

/// `asset`
pub static ROW: PolicyRow = PolicyRow {
    name: "asset",
    spelling: "asset",
    rank: "sum_r u_r / (c_r w_r)",
    meaning: "Equal sums of shares.",
    source: "Ghodsi et al., NSDI 2011, 5.1",
    example: "asset",
    checked: "asset",
    variants: &[],
    keys: &[],
    read: |given| {
        let parsed = Parsed::plain("asset", given, |setup| Ok(Box::new(Asset::new(setup)?)))?;
        Ok(parsed.like(|_| Ok(StaticEquivalent::Norm(Norm::Sum))))
    },
};

/// Serves the user with the lowest `sum_r u_r / (c_r w_r)`.
///
/// Cost: O(resources) per rank.
pub struct Asset {
    prices: Prices,
}

impl Asset {
    /// Creates the policy. Errors: [`CapacityTooFine`](plimsoll_base::error::Error::CapacityTooFine).
    pub fn new(setup: &Setup) -> Result<Asset> {
        Ok(Asset { prices: Prices::new("asset", ShareNorm::Sum, setup, |_| true)? })
    }
}

impl Policy for Asset {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.prices.rank_with(queue.user, books.allocated(queue.user), books)
    }

    fn shares(&self) -> Option<&dyn Shares> {
        Some(&self.prices)
    }
}
