//! Changes since the last reading: changed users for the policy and the recorder, and other changes for the extensions.
//!
//! Changes for an extension are recorded only if it exists in this run. Each extension empties its list when it reads it.

use super::agenda::Ticket;
use crate::engine::extensions::backups::Instance;
use super::jobs::SetSlot;
use crate::engine::extensions::remote::CoreEvent;
use super::running::Running;
use plimsoll_base::units::{MachineId, Time, UserId};

/// A change of a queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum QueueChange {
    /// The set waits in its queue from now on.
    Joined(SetSlot),
    /// No task of the set waits any more.
    Left(SetSlot),
}

/// A change of the load of a machine.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum LoadChange {
    /// Tasks started that would end at `end` at full speed, each with this demand for the watched resource.
    Started { ticket: Ticket, machine: MachineId, count: u32, size: u64, end: Time },
    /// Tasks ended that used this amount of the watched resource.
    Ended { machine: MachineId, amount: u64 },
}

/// The change log of a run.
#[derive(Default)]
pub(in crate::engine) struct ChangeLog {
    pub changed: Changed,
    /// For gangs that reserve room: machines with more free room or other labels, for a reason other than a gang's reservations.
    pub freed: Option<Vec<MachineId>>,
    /// For sets that fall back.
    pub standing: Option<Vec<QueueChange>>,
    /// The index of the watched resource and the changes, for machines that slow down.
    pub load: Option<(usize, Vec<LoadChange>)>,
    /// For backup instances.
    pub instances: Option<Vec<Instance>>,
    /// For a control that executes the decisions.
    pub remote: Option<Vec<CoreEvent>>,
}

impl ChangeLog {
    /// Records a machine with more free room or other labels, for a reason other than a gang's reservations.
    pub fn freed(&mut self, machine: MachineId) {
        if let Some(freed) = &mut self.freed {
            freed.push(machine);
        }
    }

    /// Records that a set has joined or left a queue.
    pub fn standing(&mut self, standing: QueueChange) {
        if let Some(list) = &mut self.standing {
            list.push(standing);
        }
    }

    /// Records an event for the control.
    pub fn push_event(&mut self, event: CoreEvent) {
        if let Some(list) = &mut self.remote {
            list.push(event);
        }
    }

    /// Records that tasks of this demand have started.
    pub fn started(&mut self, ticket: Ticket, tasks: &Running, demand: &[u64], end: Time) {
        if let Some((dim, list)) = &mut self.load {
            let (machine, count) = (tasks.machine, tasks.count.get());
            list.push(LoadChange::Started { ticket, machine, count, size: demand[*dim], end });
        }
        if let Some(list) = &mut self.instances {
            list.push(Instance::Began(*tasks));
        }
    }

    /// Records that tasks of a set were stopped and wait again as another set.
    pub fn again(&mut self, from: SetSlot, slot: SetSlot) {
        if let Some(list) = &mut self.instances {
            list.push(Instance::Again { from, slot });
        }
    }

    /// Records that tasks of this demand no longer run.
    pub fn ended(&mut self, machine: MachineId, count: u32, demand: &[u64]) {
        if let Some((dim, list)) = &mut self.load {
            list.push(LoadChange::Ended { machine, amount: demand[*dim] * u64::from(count) });
        }
    }
}

/// Users with a changed allocation or pending demand, each once.
#[derive(Default)]
pub(in crate::engine) struct Changed {
    marks: Vec<Marks>,
    pub since_round: Vec<UserId>,
    pub since_instant: Vec<UserId>,
}

/// The lists that contain a user, in one place: with many users each list entry is a cache miss.
#[derive(Clone, Copy, Default)]
struct Marks {
    round: bool,
    instant: bool,
}

impl Changed {
    /// Adds a user.
    pub fn open(&mut self) {
        self.marks.push(Marks::default());
    }

    /// Records that a user's allocation or pending demand has changed.
    pub fn mark(&mut self, user: UserId) {
        let marks = &mut self.marks[user.index()];
        if !std::mem::replace(&mut marks.round, true) {
            self.since_round.push(user);
        }
        // The lists are separate: a change within a round is new to the policy in the next round, but is reported at the end of this
        // instant.
        if !std::mem::replace(&mut marks.instant, true) {
            self.since_instant.push(user);
        }
    }

    /// Empties the list of the round, which the policy has read.
    pub fn round_over(&mut self) {
        for user in self.since_round.drain(..) {
            self.marks[user.index()].round = false;
        }
    }

    /// Empties the list of the instant, which the recorder has read.
    pub fn instant_over(&mut self) {
        for user in self.since_instant.drain(..) {
            self.marks[user.index()].instant = false;
        }
    }
}
