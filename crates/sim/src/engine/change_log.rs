//! Changes since the last reading: changed users for the policy and the recorder, and the rest for extensions, each kept only if one of
//! them reads it.

use super::agenda::Ticket;
use super::backups::Instance;
use super::jobs::SetSlot;
use super::remote::CoreEvent;
use super::running::Running;
use plimsoll_base::units::{MachineId, Time, UserId};

/// A set joined a queue or has left it.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueueChange {
    /// It waits in its queue from now on.
    Joined(SetSlot),
    /// No task of the set waits any more.
    Left(SetSlot),
}

/// Tasks began or stopped to use a machine.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoadChange {
    /// Tasks started that would end at `end` at full speed, each with this demand for the watched resource.
    Started { ticket: Ticket, machine: MachineId, count: u32, size: u64, end: Time },
    /// This amount of the watched resource is released.
    Ended { machine: MachineId, amount: u64 },
}

/// The notes of a run.
#[derive(Default)]
pub(super) struct ChangeLog {
    pub changed: Changed,
    /// Machines that have more room or will do for others, and not because of a gang; for hoarding gangs.
    pub freed: Option<Vec<MachineId>>,
    /// For sets that fall back.
    pub standing: Option<Vec<QueueChange>>,
    /// For machines that slow down: the watched resource, and the changes.
    pub load: Option<(usize, Vec<LoadChange>)>,
    /// For backup instances.
    pub instances: Option<Vec<Instance>>,
    /// For a control that carries decisions out.
    pub remote: Option<Vec<CoreEvent>>,
}

impl ChangeLog {
    /// A machine has more room or will do for others, and not because of a gang.
    pub fn freed(&mut self, machine: MachineId) {
        if let Some(freed) = &mut self.freed {
            freed.push(machine);
        }
    }

    /// A set has joined a queue or left it.
    pub fn standing(&mut self, standing: QueueChange) {
        if let Some(list) = &mut self.standing {
            list.push(standing);
        }
    }

    /// Records a fact for the control.
    pub fn push_event(&mut self, told: CoreEvent) {
        if let Some(list) = &mut self.remote {
            list.push(told);
        }
    }

    /// Tasks of this demand started.
    pub fn started(&mut self, ticket: Ticket, tasks: &Running, demand: &[u64], end: Time) {
        if let Some((dim, list)) = &mut self.load {
            let (machine, count) = (tasks.machine, tasks.count.get());
            list.push(LoadChange::Started { ticket, machine, count, size: demand[*dim], end });
        }
        if let Some(list) = &mut self.instances {
            list.push(Instance::Began(*tasks));
        }
    }

    /// Tasks of a set were stopped and wait again as another.
    pub fn again(&mut self, from: SetSlot, slot: SetSlot) {
        if let Some(list) = &mut self.instances {
            list.push(Instance::Again { from, slot });
        }
    }

    /// Tasks of this demand no longer run.
    pub fn ended(&mut self, machine: MachineId, count: u32, demand: &[u64]) {
        if let Some((dim, list)) = &mut self.load {
            list.push(LoadChange::Ended { machine, amount: demand[*dim] * u64::from(count) });
        }
    }
}

/// Users that hold or wait for something else than before, each once.
#[derive(Default)]
pub(super) struct Changed {
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
    /// One more user.
    pub fn open(&mut self) {
        self.marks.push(Marks::default());
    }

    /// A user holds or waits for something else.
    pub fn mark(&mut self, user: UserId) {
        let marks = &mut self.marks[user.index()];
        if !std::mem::replace(&mut marks.round, true) {
            self.since_round.push(user);
        }
        // Apart from the above: what a round changes is news to the next round, but old by the next instant.
        if !std::mem::replace(&mut marks.instant, true) {
            self.since_instant.push(user);
        }
    }

    /// The policy has read them.
    pub fn round_over(&mut self) {
        for user in self.since_round.drain(..) {
            self.marks[user.index()].round = false;
        }
    }

    /// The recorder has read them.
    pub fn instant_over(&mut self) {
        for user in self.since_instant.drain(..) {
            self.marks[user.index()].instant = false;
        }
    }
}
