//! First in, first out: one line for everybody.

use super::{Policy, Queue, Rank};
use plimsoll_sim::books::Books;

/// Serves by arrival: release instant, then arrivals before rows that a stage released, then row. Weights play no part.
///
/// Cost: O(1) per rank.
pub struct Fifo;

impl Policy for Fifo {
    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }
}
