//! The fresh queues of a round, in rank order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::engine::kernel::line::LineKey;
use crate::engine::kernel::queues::QueueId;

/// Fresh queues with their position.
#[derive(Default)]
pub(in crate::engine) struct UntriedQueues {
    /// Queues of the beginning of a round, the first one last: sorting them costs less than a heap, and most are popped once.
    sorted: Vec<(LineKey, QueueId)>,
    /// Queues that joined or moved during the round.
    moved: BinaryHeap<Reverse<(LineKey, QueueId)>>,
}

impl UntriedQueues {
    /// Adds a queue at the beginning of the round.
    pub fn join(&mut self, at: (LineKey, QueueId)) {
        self.sorted.push(at);
    }

    /// Sorts the initial queues of the round.
    pub fn sort(&mut self) {
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Returns the first queue in rank order.
    pub fn peek(&self) -> Option<(LineKey, QueueId)> {
        let moved = self.moved.peek().map(|Reverse(next)| next);
        self.sorted.last().into_iter().chain(moved).min().copied()
    }

    /// Removes the queue that [`UntriedQueues::peek`] has returned.
    pub fn pop(&mut self, next: &(LineKey, QueueId)) {
        if self.sorted.last() == Some(next) {
            self.sorted.pop();
        } else {
            self.moved.pop();
        }
    }

    /// Adds a queue during the round, possibly again.
    pub fn push(&mut self, place: LineKey, queue: QueueId) {
        self.moved.push(Reverse((place, queue)));
    }
}
