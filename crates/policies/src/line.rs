//! One queue for the jobs of all users, in the job order of the run: `line/srpt`, `line/las`.
//!
//! The orders and their sources are in [`job_order`](super::job_order).

use super::{Capabilities, Needs, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_sim::books::Books;

/// `line`
pub static ROW: PolicyRow = PolicyRow {
    name: "line",
    spelling: "line",
    rank: RankOrder::Lowest(
        "value of the order after the slash, then release instant, row; alone: priority, release instant, row",
    ),
    meaning: "One queue for all users, in the order after the slash.",
    source: "that of the order",
    example: "line",
    checked: "line",
    variants: &[],
    keys: &[],
    read: |given| Parsed::plain("line", given, |_| Ok(Box::new(OneQueue))),
};

/// Serves the first task set in the order of the run, of any user. Weights have no effect; equal values are served by arrival.
///
/// Cost: O(1) per rank.
struct OneQueue;

impl Policy for OneQueue {
    fn needs(&self) -> Needs {
        Needs { one_line: true, ..Needs::default() }
    }

    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        rank(queue)
    }
}

/// Returns the rank by the value of the order, then by arrival.
pub fn rank(queue: &Queue) -> Rank {
    let value = queue.key.unwrap_or(queue.priority.into());
    Rank::wide(value, u128::from(queue.release.0) << 64 | u128::from(queue.place))
}

impl Capabilities for OneQueue {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for OneQueue {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let OneQueue = self;
        Ok(())
    }
}
