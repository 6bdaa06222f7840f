//! Slot fairness: machines are cut into equal slots, and the user with the fewest is next.
//!
//! A task takes exactly one slot whatever its demand, so the true use of a machine may stay below its capacity or go
//! above it; both are reported. How machines slow down then is the run's `slowdown`.
//! Source: Hadoop's fair scheduler as in Ghodsi et al., NSDI 2011, §7.2 and §7.3.

use super::{Policy, Prices, Queue, Rank, Setup, Shape};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Resources;
use plimsoll_sim::books::Books;

/// Serves the user with the lowest `slots / w`, where a machine has K slots.
///
/// Cost: O(resources) per rank. Weights must be one number a user.
pub struct Slot {
    per_machine: u32,
    prices: Prices,
}

impl Slot {
    /// Errors: [`Error::Plan`] when weights differ by resource.
    pub fn new(setup: &Setup, per_machine: u32) -> Result<Slot> {
        let weights = setup.weights;
        if (0..weights.classes()).any(|class| weights.whole(class).is_none()) {
            let expected = "one weight per user for slots (a column 'weight'), since a slot is not a resource";
            return Err(Error::plan(format!("policy slot:{per_machine}"), "weights by resource", expected));
        }
        let offered = Resources([u64::from(per_machine) * setup.machines, 0, 0, 0, 0, 0, 0, 0]);
        let setup = Setup { capacity: offered, ..*setup };
        Ok(Slot { per_machine, prices: Prices::new("slot", Shape::Largest, &setup, |dim| dim == 0)? })
    }
}

impl Policy for Slot {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.prices.rank(books.held(queue.user), books.weight_class(queue.user))
    }

    fn lens(&self, _machine: Resources, _demand: Resources) -> (Resources, Resources) {
        let slots = |count: u32| {
            let mut slots = Resources::ZERO;
            slots.0[0] = u64::from(count);
            slots
        };
        (slots(self.per_machine), slots(1))
    }
}
