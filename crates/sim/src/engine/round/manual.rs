//! Starts tasks that a caller selects between two steps, whatever the policy decides. Learned schedulers use this.

use super::Serving;
use crate::engine::kernel::{SetSlot, place};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time, UserId};

/// The task set that a user would start next, in its present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSet {
    /// The row's position in the trace.
    pub row: u64,
    /// The earliest instant at which it could have started.
    pub release: Time,
    /// The position among all sets released at the instant `release`: arrivals before rows that a stage released, then by row.
    pub place: u64,
    /// The number of the next task within the job.
    pub number: u32,
    /// The number of waiting tasks.
    pub tasks: u32,
    /// The completion time of the job on an empty, boundless cluster.
    pub ideal: Span,
    /// Whether there is room now for the next task, or for all of a gang.
    pub fits: bool,
}

impl Serving<'_, '_> {
    /// Returns the first set that has room, among the heads of a user's queues, and its machine. If no head has room, returns the first
    /// head.
    fn first_with_room(&mut self, user: UserId) -> Option<(SetSlot, Option<MachineId>)> {
        let first = self.kernel.first(user)?;
        let room = self.room(first);
        if room.is_some() || self.kernel.queues().are_whole() {
            return Some((first, room));
        }
        let queues = self.kernel.queues().queues_of(user);
        let mut heads: Vec<SetSlot> = queues.filter_map(|queue| self.kernel.head(queue)).collect();
        heads.sort_unstable_by_key(|head| self.kernel.turn(*head));
        for head in heads {
            if let Some(machine) = self.room(head) {
                return Some((head, Some(machine)));
            }
        }
        Some((first, None))
    }

    /// Returns the set for [`Engine::next`](crate::engine::Engine::next).
    pub fn next_of(mut self, user: UserId) -> Option<NextSet> {
        let (slot, room) = self.first_with_room(user)?;
        let set = self.kernel.set(slot);
        Some(NextSet {
            row: set.row,
            release: set.release,
            place: place(set),
            number: set.number,
            tasks: set.waiting,
            ideal: self.kernel.ideal(slot),
            fits: room.is_some(),
        })
    }

    /// Starts tasks for [`Engine::start`](crate::engine::Engine::start).
    pub fn start_next(mut self, user: UserId) -> Result<u32> {
        if self.kernel.delegates() {
            let problem =
                "tasks are started from outside, and a control plane carries decisions out; leave one of them out";
            return Err(Error::Mismatch { problem: problem.to_owned() });
        }
        let Some((slot, mut room)) = self.first_with_room(user) else { return Ok(0) };
        let (queue, waiting) = (self.kernel.set(slot).queue, self.kernel.set(slot).waiting);
        let mut left = waiting;
        while let Some(machine) = room {
            self.launch(queue, machine);
            left = self.kernel.set(slot).waiting;
            room = if left > 0 { self.room(slot) } else { None };
        }
        if self.kernel.head(queue) != Some(slot) {
            self.kernel.queue_served(queue);
        }
        self.kernel.start_launched()?;
        self.kernel.count_running();
        Ok(waiting - left)
    }
}

#[cfg(test)]
mod tests;
