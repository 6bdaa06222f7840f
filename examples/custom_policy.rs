//! A custom policy with the full command line: `cargo run --release --example custom_policy -- policies`.
//!
//! Euclidean fairness ranks users by the length of the vector of their shares. It lies between asset fairness (the sum of the shares) and
//! DRF (the largest share).

use plimsoll::books::Books;
use plimsoll::policy::{BUILT_IN, Capabilities, NamedPolicy, Policy, Queue, Rank, Registry, Setup};
use plimsoll::units::Resources;

/// Serves the user with the lowest sum of squared shares. Shares are in units of 2^-48, rounded up.
struct Euclidean {
    capacity: Resources,
}

impl Policy for Euclidean {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let share = |held: u64, of: u64| (u128::from(held) << 48).div_ceil(u128::from(of.max(1)));
        let amounts = books.allocated(queue.user).iter().zip(self.capacity.0);
        Rank::new(amounts.map(|(&held, of)| share(held, of).pow(2)).sum())
    }
}

impl Capabilities for Euclidean {}

fn main() -> std::process::ExitCode {
    let make = |setup: &Setup| -> plimsoll::error::Result<Box<dyn Policy>> {
        Ok(Box::new(Euclidean { capacity: setup.capacity }))
    };
    plimsoll::cli::main(&Registry::new(BUILT_IN).with(NamedPolicy::new("mine", make)))
}
