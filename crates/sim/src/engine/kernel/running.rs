//! Running tasks: their end times, and their order of preemption.

use std::num::NonZeroU32;

use super::agenda::{Agenda, Ticket};
use crate::engine::extensions::faults::Draws;
use super::jobs::{JobSlot, SetSlot, Sets};
use super::victims::Victims;
use plimsoll_base::units::{MachineId, Time};

/// Equal tasks that started together on one machine, and end together unless they are stopped.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Running {
    pub set: SetSlot,
    pub job: JobSlot,
    pub machine: MachineId,
    pub first: u32,
    pub count: NonZeroU32,
    pub start: Time,
    /// Whether they fail at the end of their time; see `faults`.
    pub fails: bool,
}

impl Running {
    /// Splits off the last `count` tasks. Returns the first tasks, if any are left, and the last ones.
    pub fn split(self, count: u32) -> (Option<Running>, Running) {
        match NonZeroU32::new(self.count.get().saturating_sub(count)) {
            None => (None, self),
            Some(rest) => {
                let last = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
                let last = Running { first: self.first + rest.get(), count: last, ..self };
                (Some(Running { count: rest, ..self }), last)
            }
        }
    }
}

/// All running tasks.
pub(in crate::engine) struct Execution {
    agenda: Agenda<Running>,
    /// Indexes in the order of stopping, if any tasks may be stopped.
    pub victims: Option<Victims>,
    /// The faults of each attempt, if there are any: every task is then an entry of its own.
    pub draws: Option<Draws>,
    /// Entries at their end times, if there are faults.
    pub due: Vec<Running>,
}

impl Execution {
    pub fn new(victims: Option<Victims>, draws: Option<Draws>) -> Execution {
        Execution { agenda: Agenda::default(), victims, draws, due: Vec::new() }
    }

    /// Adds tasks that have started and end at `end`.
    pub fn start(&mut self, sets: &Sets, tasks: Running, end: Time) -> Ticket {
        let ticket = self.agenda.schedule(end, 0, tasks);
        if let Some(victims) = &mut self.victims {
            victims.add(&sets[tasks.set], &tasks, ticket);
        }
        ticket
    }

    /// Removes and returns the tasks that end next.
    pub fn pop(&mut self, sets: &Sets) -> Option<Running> {
        let (_, tasks) = self.agenda.pop()?;
        self.forget(sets, &tasks);
        Some(tasks)
    }

    /// Removes and returns tasks before their end; `None` if they do not run any more.
    pub fn cancel(&mut self, sets: &Sets, ticket: Ticket) -> Option<Running> {
        let tasks = self.agenda.cancel(ticket)?;
        self.forget(sets, &tasks);
        Some(tasks)
    }

    fn forget(&mut self, sets: &Sets, tasks: &Running) {
        if let Some(victims) = &mut self.victims {
            victims.remove(&sets[tasks.set], tasks);
        }
    }

    /// Returns the tasks of a ticket, if they still run.
    pub fn get(&self, ticket: Ticket) -> Option<&Running> {
        self.agenda.get(ticket)
    }

    /// Returns the tasks of a ticket for modification, if they still run.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Running> {
        self.agenda.get_mut(ticket)
    }

    /// Returns the instant at which the next tasks end.
    pub fn next_time(&mut self) -> Option<Time> {
        self.agenda.next_time()
    }

    /// Prefetches tasks that end soon, and returns the tasks that end next, for [`Sets::fetch`].
    pub fn fetch_ahead(&self) -> Option<&Running> {
        self.agenda.fetch_ahead()
    }

    /// Returns all running tasks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Running> {
        self.agenda.iter()
    }
}
