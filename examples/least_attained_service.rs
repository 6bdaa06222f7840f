//! A policy with state: `cargo run --release --example least_attained_service -- policies`.
//!
//! Least attained service: the user with the smallest integral of its allocation over time is served first. Shares of resources are summed
//! as in asset fairness.

use plimsoll::books::Books;
use plimsoll::error::Result;
use plimsoll::policy::{BUILT_IN, Capabilities, NamedPolicy, Needs, Policy, Queue, Rank, Registry, Setup, Stale};
use plimsoll::units::{Resources, Time, UserId};

/// Serves the user with the lowest sum of resource-seconds over capacity, in units of 2^-32 microseconds.
struct LeastAttainedService {
    capacity: Resources,
}

impl Policy for LeastAttainedService {
    fn needs(&self) -> Needs {
        Needs { integrals: true, ..Needs::default() }
    }

    /// The ranks of users with running tasks increase continuously, so all ranks are stale.
    fn prepare(&mut self, _now: Time, _books: &Books, _changed: &[UserId]) -> Result<Stale> {
        Ok(Stale::All)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let share = |d: usize| (books.service(queue.user, d) << 32) / u128::from(self.capacity.0[d].max(1));
        Rank::new((0..books.dims()).map(share).sum())
    }
}

impl Capabilities for LeastAttainedService {}

fn main() -> std::process::ExitCode {
    let make =
        |setup: &Setup| -> Result<Box<dyn Policy>> { Ok(Box::new(LeastAttainedService { capacity: setup.capacity })) };
    plimsoll::cli::main(&Registry::new(BUILT_IN).with(NamedPolicy::new("las", make)))
}
