//! Gangs that reserve free room piece by piece, until all of their tasks have room or their patience ends.
//!
//! This extension is compared with gangs that wait without reservations (`kernel/room.rs`). Reserved room is idle, and two gangs that each
//! reserve half of the cluster wait for each other until the first one gives up. The rules are in `docs/cluster.md`, "Gangs".

use std::collections::{BTreeMap, BTreeSet};

use super::extension::Extension;
use crate::engine::kernel::{Change, GangPlan, Kernel, QueueId, Reader, SetSlot};
use crate::engine::outcome::Outcome;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Span, Time};
use plimsoll_base::visit_values;

/// The reservations of a gang.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
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
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Sleeper {
    /// Its queue when it gave up; the gang wakes when it falls back to another queue.
    queue: QueueId,
    row: u64,
    /// Whether it gave up just before the current round.
    rests: bool,
}

/// All reservations, and the gangs that have given up.
#[derive(Debug)]
pub struct Hoards {
    reader: Reader,
    patience: Span,
    of: BTreeMap<QueueId, Hoard>,
    due: BTreeSet<(Time, QueueId)>,
    /// Gangs that make no reservations until a machine is freed for another reason than a gang that gives up. Otherwise two gangs that can
    /// never start would wake each other without end, by the room that they release.
    asleep: BTreeMap<SetSlot, Sleeper>,
    /// Machines where a task ended, or that joined or were relabelled, between the last round and this one.
    freed: Vec<MachineId>,
    /// The number of times that a gang gave up.
    given_up: u64,
}

impl Hoards {
    pub fn new(reader: Reader, patience: Span) -> Hoards {
        let (of, due, asleep, freed) = Default::default();
        Hoards { reader, patience, of, due, asleep, freed, given_up: 0 }
    }

    /// Returns the machine of a gang's first task if there is room for all of its tasks; until then reserves the free room.
    pub fn reserve(&mut self, kernel: &mut Kernel, slot: SetSlot, plan: &mut GangPlan) -> Option<MachineId> {
        let found = if self.sleeps(kernel, slot) {
            kernel.room_for_all(slot, plan)
        } else {
            self.asleep.remove(&slot);
            self.gather(kernel, slot, plan)
        };
        if found.is_some() {
            self.asleep.remove(&slot);
        }
        found
    }

    /// Returns the number of tasks of a gang that have reserved room.
    pub fn gathered(&self, slot: SetSlot, kernel: &Kernel) -> u32 {
        let set = kernel.set(slot);
        let hoard = self.of.get(&set.queue).filter(|hoard| hoard.set == slot && hoard.row == set.row);
        hoard.map_or(0, |hoard| hoard.parts.iter().map(|(_, count)| count).sum())
    }

    /// Returns whether a gang has given up, and no machine with room for one of its tasks was freed since.
    fn sleeps(&self, kernel: &Kernel, slot: SetSlot) -> bool {
        let set = kernel.set(slot);
        let Some(sleeper) = self.asleep.get(&slot) else { return false };
        let (scope, need) = (kernel.queues().scope(set.queue), kernel.needs(slot).1);
        let wakes =
            |machine: &MachineId| kernel.scopes().contains(scope, *machine) && kernel.machines().fits(*machine, need);
        let same = sleeper.queue == set.queue && sleeper.row == set.row;
        same && (sleeper.rests || !self.freed.iter().any(wakes))
    }

    fn gather(&mut self, kernel: &mut Kernel, slot: SetSlot, plan: &mut GangPlan) -> Option<MachineId> {
        let set = kernel.set(slot);
        let (queue, waiting, row) = (set.queue, set.waiting, set.row);
        let one = kernel.footprint(slot);
        let gives_up = kernel.now() + self.patience;
        let known = self.of.contains_key(&queue);
        let hoard = self.of.entry(queue).or_insert(Hoard { set: slot, row, one, parts: Vec::new(), gives_up });
        let mut left = waiting - hoard.parts.iter().map(|(_, count)| count).sum::<u32>();
        while left > 0
            && let Some(machine) = kernel.find_machine(slot)
        {
            kernel.reserve(machine, &one);
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
            kernel.use_reservation(machine, &one.times(count));
        }
        *plan = hoard.parts;
        plan.first().map(|(machine, _)| *machine)
    }

    /// Releases all reservations of a gang.
    fn scatter(&mut self, kernel: &mut Kernel, queue: QueueId) {
        let Some(hoard) = self.of.remove(&queue) else { return };
        self.due.remove(&(hoard.gives_up, queue));
        for (machine, count) in hoard.parts {
            kernel.release_reservation(machine, &hoard.one.times(count));
        }
    }
}

impl Extension for Hoards {
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    fn withdrawn(&mut self, kernel: &mut Kernel, machine: MachineId) {
        let there = |hoard: &Hoard| hoard.parts.iter().any(|(part, _)| *part == machine);
        let queues = self.of.iter().filter(|(_, hoard)| there(hoard)).map(|(queue, _)| *queue);
        queues.collect::<Vec<QueueId>>().into_iter().for_each(|queue| self.scatter(kernel, queue));
    }

    /// Releases the reservations of gangs that have run out of patience, are no longer the next of their queue, or that may no longer use
    /// a machine. A gang that has given up makes no reservations until it wakes.
    fn before_round(&mut self, kernel: &mut Kernel) -> Result<()> {
        self.freed.clear();
        while let Some(change) = kernel.next_change(self.reader) {
            self.freed.extend(if let Change::Freed(machine) = change { Some(machine) } else { None });
        }
        self.asleep.values_mut().for_each(|sleeper| sleeper.rests = false);
        let its = |queue: QueueId, hoard: &Hoard| {
            let scope = kernel.queues().scope(queue);
            kernel.head(queue) == Some(hoard.set)
                && kernel.set(hoard.set).row == hoard.row
                && hoard.parts.iter().all(|(machine, _)| kernel.scopes().contains(scope, *machine))
        };
        let orphaned = self.of.iter().filter(|(queue, hoard)| !its(**queue, hoard));
        let orphaned: Vec<QueueId> = orphaned.map(|(queue, _)| *queue).collect();
        orphaned.into_iter().for_each(|queue| self.scatter(kernel, queue));
        while let Some((_, queue)) = self.due.first().filter(|(at, _)| *at <= kernel.now()).copied() {
            if let Some(&Hoard { set, row, .. }) = self.of.get(&queue) {
                self.asleep.insert(set, Sleeper { queue, row, rests: true });
            }
            self.scatter(kernel, queue);
            self.given_up += 1;
        }
        Ok(())
    }

    fn count(&self, outcome: &mut Outcome) {
        outcome.hoards_given_up = self.given_up;
    }
}

impl Checkpoint for Hoards {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Hoards { reader: _, patience: _, of, due, asleep, freed, given_up } = self;
        visit_values!(visitor; of, due, asleep, freed, given_up);
        Ok(())
    }
}
