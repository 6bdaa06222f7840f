//! Gangs that reserve room as they find it, until it is enough or their patience ends: an alternative way to start together.
//!
//! It serves as a comparison with gangs that wait without reservations (`gang`): reserved room is idle, and two gangs that each reserve
//! half of the cluster wait for each other until the first one gives up. The rules are in `docs/cluster.md`, "Gangs".

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::kernel::{Kernel, amounts};
use super::Extension;
use crate::engine::kernel::jobs::SetSlot;
use crate::engine::kernel::queues::QueueId;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Span, Time};

/// The reservations of a gang.
#[derive(Debug)]
struct Hoard {
    /// The gang; its slot may contain another row by now.
    set: SetSlot,
    row: u64,
    /// The need of each task.
    one: Resources,
    /// Machines, and the number of tasks with reserved room on each.
    parts: Vec<(MachineId, u32)>,
    gives_up: Time,
}

/// A gang that has given up.
#[derive(Debug)]
struct Sleeper {
    /// Its queue at that time; it wakes when it falls back to another one.
    queue: QueueId,
    row: u64,
    /// Whether it gave up just before the current round.
    rests: bool,
}

/// All reservations, and the gangs that have given up.
#[derive(Debug)]
pub(in crate::engine) struct Hoards {
    patience: Span,
    of: BTreeMap<QueueId, Hoard>,
    due: BTreeSet<(Time, QueueId)>,
    /// Gangs that make no reservations until a machine is freed by something other than a gang. Otherwise two gangs that can never start
    /// would wake each other without end by the room they release.
    asleep: BTreeMap<SetSlot, Sleeper>,
    /// Machines where a task ended, or that joined or were relabelled, between the last round and this one.
    freed: Vec<MachineId>,
}

impl Hoards {
    pub fn new(patience: Span) -> Hoards {
        let (of, due, asleep, freed) = Default::default();
        Hoards { patience, of, due, asleep, freed }
    }

    /// Returns the machine of a gang's first task if there is room for all of its tasks; until then reserves the room that there is.
    pub fn reserve(&mut self, core: &mut Kernel, slot: SetSlot) -> Option<MachineId> {
        let found = if self.sleeps(core, slot) {
            core.room_for_all(slot)
        } else {
            self.asleep.remove(&slot);
            self.gather(core, slot)
        };
        if found.is_some() {
            self.asleep.remove(&slot);
        }
        found
    }

    /// Returns whether a gang has given up, and no machine with room for one of its tasks was freed since.
    fn sleeps(&self, core: &Kernel, slot: SetSlot) -> bool {
        let set = &core.work.sets[slot];
        let Some(sleeper) = self.asleep.get(&slot) else { return false };
        let (scope, need) = (core.work.queues.scope(set.queue), core.work.sets.needs(slot).1);
        let wakes =
            |machine: &MachineId| core.site.scopes.contains(scope, *machine) && core.site.machines.fits(*machine, need);
        let same = sleeper.queue == set.queue && sleeper.row == set.row;
        same && (sleeper.rests || !self.freed.iter().any(wakes))
    }

    fn gather(&mut self, core: &mut Kernel, slot: SetSlot) -> Option<MachineId> {
        let set = &core.work.sets[slot];
        let (queue, waiting, row) = (set.queue, set.waiting, set.row);
        let scope = core.work.queues.scope(queue);
        let one = amounts(core.work.sets.needs(slot).1);
        let gives_up = core.now + self.patience;
        let known = self.of.contains_key(&queue);
        let hoard = self.of.entry(queue).or_insert(Hoard { set: slot, row, one, parts: Vec::new(), gives_up });
        let mut left = waiting - hoard.parts.iter().map(|(_, count)| count).sum::<u32>();
        while left > 0
            && let Some(machine) = core.site.find(scope, core.work.sets.needs(slot).1)
        {
            core.site.machines.reserve(machine, &one);
            left -= 1;
            match hoard.parts.last_mut() {
                Some((last, count)) if *last == machine => *count += 1,
                _ => hoard.parts.push((machine, 1)),
            }
        }
        if left > 0 {
            if hoard.parts.is_empty() {
                self.of.remove(&queue);
            } else if !known {
                self.due.insert((gives_up, queue));
            }
            return None;
        }
        let hoard = self.of.remove(&queue)?;
        self.due.remove(&(hoard.gives_up, queue));
        for &(machine, count) in &hoard.parts {
            core.site.machines.give_reserved(machine, &times(&one, count));
        }
        core.plan = hoard.parts;
        core.plan.first().map(|(machine, _)| *machine)
    }

    /// Releases all reservations of a gang.
    fn scatter(&mut self, core: &mut Kernel, queue: QueueId) {
        let Some(hoard) = self.of.remove(&queue) else { return };
        self.due.remove(&(hoard.gives_up, queue));
        for (machine, count) in hoard.parts {
            core.site.machines.give_reserved(machine, &times(&hoard.one, count));
            core.round.freed(machine);
        }
    }
}

impl Extension for Hoards {
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    fn withdrawn(&mut self, core: &mut Kernel, machine: MachineId) {
        let there = |hoard: &Hoard| hoard.parts.iter().any(|(part, _)| *part == machine);
        let queues = self.of.iter().filter(|(_, hoard)| there(hoard)).map(|(queue, _)| *queue);
        queues.collect::<Vec<QueueId>>().into_iter().for_each(|queue| self.scatter(core, queue));
    }

    /// Releases reservations that are too old, or of a gang that is no longer the next of its queue or may no longer use a machine. A gang
    /// that has given up makes no reservations until it wakes.
    fn before_round(&mut self, core: &mut Kernel) -> Result<()> {
        self.freed.clear();
        self.freed.append(core.notes.freed.get_or_insert_default());
        self.asleep.values_mut().for_each(|sleeper| sleeper.rests = false);
        let its = |queue: QueueId, hoard: &Hoard| {
            let scope = core.work.queues.scope(queue);
            core.work.queues.head(queue) == Some(hoard.set)
                && core.work.sets[hoard.set].row == hoard.row
                && hoard.parts.iter().all(|(machine, _)| core.site.scopes.contains(scope, *machine))
        };
        let orphaned = self.of.iter().filter(|(queue, hoard)| !its(**queue, hoard));
        let orphaned: Vec<QueueId> = orphaned.map(|(queue, _)| *queue).collect();
        orphaned.into_iter().for_each(|queue| self.scatter(core, queue));
        while let Some((_, queue)) = self.due.first().filter(|(at, _)| *at <= core.now).copied() {
            if let Some(&Hoard { set, row, .. }) = self.of.get(&queue) {
                self.asleep.insert(set, Sleeper { queue, row, rests: true });
            }
            self.scatter(core, queue);
            core.outcome.hoards_given_up += 1;
        }
        Ok(())
    }
}

/// Returns the need of a number of tasks.
fn times(one: &Resources, count: u32) -> Resources {
    let mut amount = *one;
    amount.0.iter_mut().for_each(|amount| *amount *= u64::from(count));
    amount
}
