//! The fresh queues of a round, in rank order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::line::LineKey;
use super::queues::QueueId;

/// Queues with a place in line.
#[derive(Default)]
pub(super) struct UntriedQueues {
    /// Those of the beginning of a round, the first one last: to sort them costs less than a heap, and most are taken once.
    sorted: Vec<(LineKey, QueueId)>,
    /// Queues that joined or moved during the round.
    moved: BinaryHeap<Reverse<(LineKey, QueueId)>>,
}

impl UntriedQueues {
    /// A queue takes part from the beginning.
    pub fn join(&mut self, at: (LineKey, QueueId)) {
        self.sorted.push(at);
    }

    /// Sorts the initial queues of the round.
    pub fn sort(&mut self) {
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// The first in rank order.
    pub fn peek(&self) -> Option<(LineKey, QueueId)> {
        let moved = self.moved.peek().map(|Reverse(next)| next);
        self.sorted.last().into_iter().chain(moved).min().copied()
    }

    /// Takes out what [`Fresh::peek`] has shown.
    pub fn pop(&mut self, next: &(LineKey, QueueId)) {
        if self.sorted.last() == Some(next) {
            self.sorted.pop();
        } else {
            self.moved.pop();
        }
    }

    /// A queue comes, or comes again, in the course of the round.
    pub fn push(&mut self, place: LineKey, queue: QueueId) {
        self.moved.push(Reverse((place, queue)));
    }
}
