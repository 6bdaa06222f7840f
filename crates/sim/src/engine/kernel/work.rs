//! Unfinished jobs, their task sets, and the queues of waiting sets.

use super::ids::{QueueId, SetSlot};
use super::job_order::Ordered;
use super::jobs::Jobs;
use super::queues::{Queues, place, turn};
use super::sets::{ActiveSet, Sets};
use crate::policy::Queue;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Time, UserId};
use plimsoll_base::visit_values;

/// Unfinished jobs, their task sets, and the queues of waiting sets.
pub struct Work {
    pub jobs: Jobs,
    pub sets: Sets,
    pub queues: Queues,
    /// The sets in the job order, if it is not the default order.
    pub ordered: Option<Ordered>,
}

impl Work {
    /// Puts a set in its queue.
    pub fn push(&mut self, slot: SetSlot, now: Time) {
        let Some(ordered) = &mut self.ordered else { return self.queues.push(&mut self.sets, slot) };
        ordered.push(&self.sets, slot, now);
        let queue = self.sets[slot].queue;
        self.queues.set_head(queue, ordered.head(queue));
    }

    /// Removes a set from its queue, at any position.
    pub fn remove(&mut self, slot: SetSlot) {
        let Some(ordered) = &mut self.ordered else { return self.queues.remove(&mut self.sets, slot) };
        ordered.remove(&self.sets, slot);
        let queue = self.sets[slot].queue;
        self.queues.set_head(queue, ordered.head(queue));
    }

    /// Updates the sort key of a queued set that has launched some of its tasks.
    pub fn renumber(&mut self, slot: SetSlot) {
        if let Some(ordered) = &mut self.ordered {
            ordered.renumber(&self.sets, slot);
            let queue = self.sets[slot].queue;
            self.queues.set_head(queue, ordered.head(queue));
        }
    }

    /// Reorders sets with keys that may have changed. Returns the affected queues, each with whether it has another head.
    pub fn reorder(&mut self, now: Time) -> Vec<(QueueId, bool)> {
        let Work { sets, queues, ordered: Some(ordered), .. } = self else { return Vec::new() };
        let mut headed = |ordered: &Ordered, queue: QueueId| {
            let head = ordered.head(queue);
            let other = head != queues.head(queue);
            queues.set_head(queue, head);
            (queue, other)
        };
        let moved = ordered.rekey(sets, now);
        moved.into_iter().map(|queue| headed(ordered, queue)).collect()
    }

    /// Returns the policy's view of a user's queue with this head.
    pub fn view(&self, head: SetSlot) -> Queue {
        let set = &self.sets[head];
        let ActiveSet { user, partition, release, priority, .. } = *set;
        let key = self.ordered.as_ref().map(|ordered| ordered.key_of(head));
        Queue { user, partition, release, place: place(set), priority, key }
    }

    /// Returns the position of a head among the heads of its user's queues. If keys are equal, the older queue is first.
    pub fn turn(&self, head: SetSlot) -> (u128, u32) {
        match &self.ordered {
            None => turn(&self.sets[head]),
            Some(ordered) => (ordered.key_of(head), self.sets[head].queue.0),
        }
    }

    /// Returns the set that a user would launch from next, regardless of room.
    pub fn first(&self, user: UserId) -> Option<SetSlot> {
        if self.queues.are_whole() {
            return self.queues.head(self.queues.cluster_queue(user));
        }
        let heads = self.queues.queues_of(user).filter_map(|queue| self.queues.head(queue));
        heads.min_by_key(|head| self.turn(*head))
    }

    /// Returns the waiting sets of a queue, in order.
    pub fn in_order(&self, queue: QueueId) -> Vec<SetSlot> {
        match &self.ordered {
            None => self.queues.in_order(&self.sets, queue),
            Some(ordered) => ordered.in_order(queue),
        }
    }

    /// Returns the key of a waiting or running set in the job order of the run at this instant; 0 in the default order.
    pub fn order_of(&self, slot: SetSlot, now: Time) -> u128 {
        self.ordered.as_ref().map_or(0, |ordered| ordered.key(slot, &self.sets, now))
    }
}

impl Checkpoint for Work {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Work { jobs, sets, queues, ordered } = self;
        visit_values!(visitor; jobs, sets, queues);
        visitor.option(ordered.as_mut())
    }
}
