//! One line for the jobs of everybody, in the order that the run has inside users: `line/srpt`, `line/las`.
//!
//! The orders and their sources stand in [`inside`](super::inside).

use super::{Needs, Parsed, Policy, PolicyRow, Queue, Rank};
use plimsoll_sim::books::Books;

/// `line`
pub static ROW: PolicyRow = PolicyRow {
    name: "line",
    spelling: "line",
    rank: "the value of the order behind the slash, then release instant, row; alone: priority, release instant, row",
    meaning: "One queue for all users, in the order that stands behind the slash.",
    source: "that of the order",
    example: "line",
    checked: "line",
    variants: &[],
    keys: &[],
    read: |given| Parsed::plain("line", given, |_| Ok(Box::new(Line))),
};

/// Serves the task set that comes first in the order of the run, whoever it belongs to. Weights play no part; equal values go by
/// arrival.
///
/// Cost: O(1) per rank.
struct Line;

impl Policy for Line {
    fn needs(&self) -> Needs {
        Needs { one_line: true, ..Needs::default() }
    }

    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        let value = queue.key.unwrap_or(queue.priority.into());
        Rank::wide(value, u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }
}
