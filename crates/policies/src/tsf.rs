//! Task share fairness: each user's running tasks are divided by the number of tasks that it could run alone on all machines; the user
//! with the least quotient is next.
//!
//! This number of tasks includes machines where a user may not run, so that false constraints are never profitable. On identical machines,
//! and in a pool, this is `drf`.
//!
//! Source: Wang, Li, Liang and Li, "Multi-resource fair sharing for datacenter jobs with placement constraints", SC 2016.
//!
//! Departures from the source: a user's tasks may differ, and all running tasks count as if they had the demand of its next task; the
//! number of tasks that a user could run alone includes fractions of tasks, rounded down to 2^-20 of a task per machine.

use std::sync::Arc;

use super::price::binary_fraction;
use super::{Capabilities, Needs, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder, Setup, StaticEquivalent};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::UserId;
use plimsoll_fair::{Across, Quantity};
use plimsoll_sim::books::{Books, Weights};

/// `tsf`
pub static ROW: PolicyRow = PolicyRow {
    name: "tsf",
    spelling: "tsf",
    rank: RankOrder::Lowest("tasks / (tasks alone on all machines, also those where it may not run) / w"),
    meaning: "Task share fairness: equal parts of the tasks that users could run alone.",
    source: "Wang, Li, Liang and Li, SC 2016",
    example: "tsf",
    checked: "tsf",
    variants: &[],
    keys: &[],
    read: |given| {
        let parsed = Parsed::plain("tsf", given, |setup| Ok(Box::new(Tsf::new(setup))))?;
        Ok(parsed.like(|_| Ok(StaticEquivalent::Target(Arc::new(Across { quantity: Quantity::Tasks })))))
    },
};

/// Steps per task, for counting the tasks that a machine has room for.
const STEPS: u128 = 1 << 20;

/// Serves the user with the least task share, in steps of 2^-100.
///
/// Cost: O(kinds of machines * resources) per rank.
struct Tsf {
    weights: Weights,
    /// The weight of each user, in millionths.
    of: Vec<u64>,
}

impl Tsf {
    fn new(setup: &Setup) -> Tsf {
        Tsf { weights: setup.weights.clone(), of: Vec::new() }
    }
}

/// Counts the tasks with this demand that fit on all machines together, in steps; a task without demand has no limit.
fn alone(demand: &[u64], books: &Books) -> u128 {
    let on = |capacity: &[u64]| {
        let limits = demand.iter().zip(capacity).filter(|(demand, _)| **demand > 0);
        limits.map(|(demand, capacity)| u128::from(*capacity) * STEPS / u128::from(*demand)).min()
    };
    let kinds = books.machines().iter().map(|(capacity, count)| (on(&capacity.0), u128::from(*count)));
    kinds.map(|(tasks, count)| tasks.map_or(u128::MAX, |tasks| tasks * count)).fold(0, u128::saturating_add)
}

impl Policy for Tsf {
    fn needs(&self) -> Needs {
        Needs { machines: true, ..Needs::default() }
    }

    fn open(&mut self, _user: UserId, name: &str) -> Result<()> {
        let weight = self.weights.uniform(self.weights.class_of(name) as usize);
        self.of.push(weight.ok_or_else(|| {
            Error::plan(
                "weights",
                format!("a weight per resource for '{name}'"),
                "one weight per user under this policy",
            )
        })?);
        Ok(())
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let weight = u128::from(self.of[queue.user.index()]);
        // Tasks that fit on no machine are never queued, so the number is at least one step. No user could run 2^64 tasks.
        let alone = alone(books.head(queue.user), books).clamp(1, STEPS << 64);
        let share = binary_fraction(u128::from(books.running(queue.user)) * STEPS, alone * weight, 100);
        Rank::wide(*share.high(), *share.low())
    }
}

impl Capabilities for Tsf {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Tsf {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let Tsf { weights: _, of: _ } = self;
        Ok(())
    }
}
