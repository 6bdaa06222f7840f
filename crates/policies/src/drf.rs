//! Dominant Resource Fairness: the user with the least dominant share is next.
//!
//! Source: Ghodsi et al., NSDI 2011, §4.1 Algorithm 1 and §4.3 (weights).

use super::{Parsed, Policy, PolicyRow, Prices, Queue, Rank, Setup, ShareNorm, Shares, StaticEquivalent};
use plimsoll_base::error::Result;
use plimsoll_fair::Norm;
use plimsoll_sim::books::Books;

/// `drf`
pub static ROW: PolicyRow = PolicyRow {
    name: "drf",
    spelling: "drf",
    rank: "max_r u_r / (c_r w_r)",
    meaning: "Equal dominant shares; weights may be set per resource.",
    source: "Ghodsi et al., NSDI 2011, 4.1 and 4.3",
    example: "drf",
    checked: "drf",
    variants: &[],
    keys: &[],
    read: |given| {
        let parsed = Parsed::plain("drf", given, |setup| Ok(Box::new(Drf::new(setup)?)))?;
        Ok(parsed.like(|_| Ok(StaticEquivalent::Norm(Norm::Largest))))
    },
};

/// Serves the user with the lowest `max_r u_r / (c_r w_r)`.
///
/// Cost: O(resources) per rank. Departure from the source: whether a blocked user stops the round is the engine's
/// option (`on_blocked`), not the policy's.
pub struct Drf {
    prices: Prices,
}

impl Drf {
    /// Creates the policy. Errors: [`CapacityTooFine`](plimsoll_base::error::Error::CapacityTooFine).
    pub fn new(setup: &Setup) -> Result<Drf> {
        Ok(Drf { prices: Prices::new("drf", ShareNorm::Largest, setup, |_| true)? })
    }
}

impl Policy for Drf {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.prices.rank_with(queue.user, books.allocated(queue.user), books)
    }

    fn shares(&self) -> Option<&dyn Shares> {
        Some(&self.prices)
    }
}
