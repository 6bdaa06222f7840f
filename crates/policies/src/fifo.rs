//! First in, first out: one queue for all users.

use super::{Capabilities, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_sim::books::Books;

/// `fifo`
pub static ROW: PolicyRow = PolicyRow {
    name: "fifo",
    spelling: "fifo",
    rank: RankOrder::Lowest("release instant, row"),
    meaning: "One queue for all users, in order of arrival.",
    source: "folklore",
    example: "fifo",
    checked: "fifo",
    variants: &[],
    keys: &[],
    read: |given| Parsed::plain("fifo", given, |_| Ok(Box::new(Fifo))),
};

/// Serves by arrival: release instant, then arrivals before rows that a stage released, then row. Weights have no effect.
///
/// Cost: O(1) per rank.
pub struct Fifo;

impl Policy for Fifo {
    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }
}

impl Capabilities for Fifo {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Fifo {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let Fifo = self;
        Ok(())
    }
}
