//! A request of a waiting task for room on a machine: the missing amounts, the reservation, and the victims.
//!
//! Free amounts of the machine are reserved until the task has enough room. Victims that have ended or are no longer needed are removed. A
//! victim that belongs to a gang represents the whole gang.

use std::collections::{BTreeSet, HashMap};

use crate::engine::kernel::{Choice, Kernel, QueueId, Running, SetSlot, Ticket, Victim, times};
use crate::policy::{Pending, Room};
use plimsoll_base::units::{MachineId, Resources, Time, UserId};

/// A request of a waiting task for room.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Request {
    pub queue: QueueId,
    pub set: SetSlot,
    /// The set's row, and the start of its wait; the slot may contain another set by now.
    pub waits: (u64, Time),
    pub machine: MachineId,
    /// The amount reserved on the machine.
    pub reserved: Resources,
    /// The running tasks that were asked to make room: entries, and the number of tasks of each.
    pub asked: Vec<(Victim, u32)>,
    /// Whether the room is reserved for the task or open to all.
    pub room: Room,
    pub deadline: Time,
}

impl Request {
    /// Returns the amount that is missing until the task can start.
    pub fn missing(&self, kernel: &Kernel) -> Resources {
        let missing = kernel.footprint(self.set) - self.reserved;
        if self.room == Room::Open {
            // An open request has no reservation, so the free amounts are subtracted.
            return missing.saturating_sub(kernel.machines().free(self.machine));
        }
        missing
    }

    /// Reserves free amounts of the machine up to the missing amounts.
    pub fn top_up(&mut self, kernel: &mut Kernel) {
        if self.room == Room::Open {
            return;
        }
        let more = self.missing(kernel).min(kernel.machines().free(self.machine));
        if !more.is_zero() {
            kernel.reserve(self.machine, &more);
            self.reserved += more;
        }
    }

    /// Returns the running tasks of an asked entry, and their ticket.
    fn tasks<'c>(&self, kernel: &'c Kernel, victim: &Victim) -> Option<(Ticket, &'c Running)> {
        let ticket = kernel.victims()?.find(self.machine, victim)?;
        Some((ticket, kernel.running(ticket)?))
    }

    /// Returns all tasks that are stopped together with the victims.
    pub fn choices(&self, kernel: &Kernel) -> Vec<Choice> {
        let mut choices: Vec<Choice> = Vec::new();
        for (victim, count) in &self.asked {
            let Some((ticket, tasks)) = self.tasks(kernel, victim) else { continue };
            let all = kernel.all_of(ticket, tasks);
            // Several entries may belong to one gang.
            if !choices.iter().any(|choice| choice.tickets.contains(&ticket)) {
                choices.push(if all.whole { all } else { Choice { count: *count, ..all } });
            }
        }
        choices
    }

    /// Removes ended tasks, and then tasks that are no longer needed, from the last to the first. Returns the removed tasks.
    pub fn spare(&mut self, kernel: &Kernel) -> Vec<(Victim, u32)> {
        let before = self.asked.clone();
        let missing = self.missing(kernel);
        let mut surplus = Resources::ZERO;
        let mut asked = std::mem::take(&mut self.asked);
        for (victim, count) in &mut asked {
            let tasks = self.tasks(kernel, victim);
            *count = tasks.map_or(0, |(_, tasks)| tasks.count.get().min(*count));
            if let Some((_, tasks)) = tasks {
                surplus += kernel.footprint(tasks.set).times(*count);
            }
        }
        surplus = surplus.saturating_sub(missing);
        for (victim, count) in asked.iter_mut().rev().filter(|(_, count)| *count > 0) {
            let Some((_, tasks)) = self.tasks(kernel, victim) else { continue };
            let footprint = kernel.footprint(tasks.set);
            let spared = times(&surplus.0, &footprint.0).min(u64::from(*count)) as u32;
            surplus -= footprint.times(spared);
            *count -= spared;
        }
        let spared = before.iter().zip(&asked).map(|((victim, before), (_, now))| (*victim, before - now));
        let spared = spared.filter(|(_, count)| *count > 0).collect();
        asked.retain(|(_, count)| *count > 0);
        self.asked = asked;
        spared
    }
}

/// Returns the changes that requests will make to allocations, by user.
pub fn pending<'r>(kernel: &Kernel, requests: impl Iterator<Item = &'r Request>) -> HashMap<UserId, Pending> {
    let mut pending: HashMap<UserId, Pending> = HashMap::new();
    let mut add = |set: SetSlot, gains: u32, losses: u32| {
        let Pending { gains: gained, losses: lost } = pending.entry(kernel.set(set).user).or_default();
        let footprint = kernel.footprint(set);
        *gained += footprint.times(gains);
        *lost += footprint.times(losses);
    };
    let mut gangs = BTreeSet::new();
    for request in requests {
        add(request.set, 1, 0);
        for choice in request.choices(kernel) {
            let set = choice.tickets.first().and_then(|ticket| kernel.running(*ticket)).map(|tasks| tasks.set);
            if let Some(set) = set.filter(|set| !choice.whole || gangs.insert(*set)) {
                add(set, 0, choice.count);
            }
        }
    }
    pending
}
