//! Fairness in one resource by a scheduler that reserves only this resource. The rest of a demand is not reserved, so machines may be
//! over-committed in other resources.
//!
//! Source: CPU-fair in Ghodsi et al., NSDI 2011, §7.2, which "leads to memory thrashing". The run's `slowdown` defines how an
//! over-committed machine slows down.

use super::maxmin::{named, single};
use super::{Lens, Needs, Parsed, Policy, PolicyRow, Prices, Queue, Rank, Setup, Shares};
use plimsoll_base::error::Result;
use plimsoll_sim::books::Books;

/// `only:RESOURCE`
pub static ROW: PolicyRow = PolicyRow {
    name: "only",
    spelling: "only:RESOURCE",
    rank: "u_R / (c_R w_R)",
    meaning: "Max-min fairness in one resource, which is the only reserved one: others may be over-committed.",
    source: "Ghodsi et al., NSDI 2011, 7.2 (CPU-fair, with thrashing)",
    example: "only:cpu",
    checked: "only:cpu",
    variants: &[],
    keys: &[],
    read: |given| {
        let resource = named("only", given)?;
        Ok(Parsed::new(Some(resource.clone()), move |setup| Ok(Box::new(Only::new(setup, &resource)?))))
    },
};

/// Serves the user with the lowest `u_R / (c_R w_R)` for one resource R, the only one that is reserved.
///
/// Cost: O(resources) per rank.
pub struct Only {
    resource: usize,
    prices: Prices,
}

impl Only {
    /// Creates the policy. Errors: [`plimsoll_base::error::Error::Policy`] for an unknown resource.
    pub fn new(setup: &Setup, resource: &str) -> Result<Only> {
        let (resource, prices) = single("only", setup, resource)?;
        Ok(Only { resource, prices })
    }
}

impl Policy for Only {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.prices.rank_with(queue.user, books.allocated(queue.user), books)
    }

    fn shares(&self) -> Option<&dyn Shares> {
        Some(&self.prices)
    }

    fn needs(&self) -> Needs {
        Needs { lens: Lens::Only(self.resource), ..Needs::default() }
    }
}
