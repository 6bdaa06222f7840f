//! Fairness in one resource by a scheduler that knows of no other: the rest of a demand is not reserved, and machines may
//! be given more of it than they have.
//!
//! Source: CPU-fair in Ghodsi et al., NSDI 2011, §7.2, which "leads to memory thrashing"; how a machine slows down then is
//! the run's `slowdown`.

use super::maxmin::single;
use super::{Policy, Prices, Queue, Rank, Setup};
use plimsoll_base::error::Result;
use plimsoll_base::units::Resources;
use plimsoll_sim::books::Books;

/// Serves the user with the lowest `u_R / (c_R w_R)` for one resource R, the only one that is reserved.
///
/// Cost: O(resources) per rank.
pub struct Only {
    resource: usize,
    prices: Prices,
}

impl Only {
    /// Errors: [`plimsoll_base::error::Error::Plan`] if there is no such resource.
    pub fn new(setup: &Setup, resource: &str) -> Result<Only> {
        let (resource, prices) = single("only", setup, resource)?;
        Ok(Only { resource, prices })
    }
}

impl Policy for Only {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.prices.rank(books.held(queue.user), books.weight_class(queue.user))
    }

    fn lens(&self, machine: Resources, demand: Resources) -> (Resources, Resources) {
        let only = |amounts: Resources| {
            let mut seen = Resources::ZERO;
            seen.0[self.resource] = amounts.0[self.resource];
            seen
        };
        (only(machine), only(demand))
    }
}
