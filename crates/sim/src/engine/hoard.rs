//! Gangs that hold what room they find until it is enough, or until their patience ends: the other way to start together.
//!
//! It is here to be compared with waiting empty-handed (`gang`): what is held lies idle, and two gangs that hold half of the
//! cluster each wait for each other until the first gives up. The rules are in `docs/cluster.md`, "Gangs".

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use super::jobs::SetSlot;
use super::queues::QueueId;
use plimsoll_base::units::{MachineId, Resources, Span, Time};

/// The room that a gang holds.
#[derive(Debug)]
struct Hoard {
    /// The gang that holds it: a slot may have been given to another row since.
    set: SetSlot,
    row: u64,
    /// The need of each task.
    one: Resources,
    /// Machines, and for how many tasks there is room held.
    parts: Vec<(MachineId, u32)>,
    gives_up: Time,
}

/// A gang that gave up.
#[derive(Debug)]
struct Sleeper {
    /// Where it stood then: a level up it is awake.
    queue: QueueId,
    row: u64,
    /// It gave up just before the round that goes on.
    rests: bool,
}

/// All that is held, and the gangs that have given up.
#[derive(Debug)]
pub(super) struct Hoards {
    patience: Span,
    of: BTreeMap<QueueId, Hoard>,
    due: BTreeSet<(Time, QueueId)>,
    /// Gangs that hold nothing until a machine wakes them that was freed by something else than a gang. If what gangs
    /// give back woke them, two that can never start would wake each other for ever.
    asleep: BTreeMap<SetSlot, Sleeper>,
    /// Machines where something ended, or that joined or were relabelled, since the last round; and before this one.
    news: Vec<MachineId>,
    freed: Vec<MachineId>,
}

impl Hoards {
    pub fn new(patience: Span) -> Hoards {
        let (of, due, asleep, news, freed) = Default::default();
        Hoards { patience, of, due, asleep, news, freed }
    }

    /// When the next one gives up.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }
}

impl Engine<'_> {
    /// A machine has more room or will do for others, and not because of a gang: gangs that gave up may begin anew.
    pub(super) fn wake_gangs(&mut self, machine: MachineId) {
        if let Some(hoards) = &mut self.hoards {
            hoards.news.push(machine);
        }
    }

    /// Before a round: gives back what is held for too long, or for a gang that is not the next of its queue any more. Who has
    /// given up holds nothing from now on, until it wakes.
    pub(super) fn give_up_hoards(&mut self) {
        let Some(mut hoards) = self.hoards.take() else { return };
        hoards.freed = std::mem::take(&mut hoards.news);
        hoards.asleep.values_mut().for_each(|sleeper| sleeper.rests = false);
        let its = |queue: QueueId, hoard: &Hoard| {
            let scope = self.queues.scope(queue);
            self.queues.head(queue) == Some(hoard.set)
                && self.sets[hoard.set].row == hoard.row
                && hoard.parts.iter().all(|(machine, _)| self.scopes.holds(scope, *machine))
        };
        let orphaned = hoards.of.iter().filter(|(queue, hoard)| !its(**queue, hoard));
        let orphaned: Vec<QueueId> = orphaned.map(|(queue, _)| *queue).collect();
        orphaned.into_iter().for_each(|queue| self.scatter(&mut hoards, queue));
        while let Some((_, queue)) = hoards.due.first().filter(|(at, _)| *at <= self.now).copied() {
            if let Some(&Hoard { set, row, .. }) = hoards.of.get(&queue) {
                hoards.asleep.insert(set, Sleeper { queue, row, rests: true });
            }
            self.scatter(&mut hoards, queue);
            self.outcome.hoards_given_up += 1;
        }
        self.hoards = Some(hoards);
    }

    /// A machine takes nothing new from now on: what is held there is of no use.
    pub(super) fn scatter_from(&mut self, machine: MachineId) {
        let Some(mut hoards) = self.hoards.take() else { return };
        let there = |hoard: &Hoard| hoard.parts.iter().any(|(part, _)| *part == machine);
        let queues = hoards.of.iter().filter(|(_, hoard)| there(hoard)).map(|(queue, _)| *queue);
        for queue in queues.collect::<Vec<QueueId>>() {
            self.scatter(&mut hoards, queue);
        }
        self.hoards = Some(hoards);
    }

    /// Gives back all that a gang holds.
    fn scatter(&mut self, hoards: &mut Hoards, queue: QueueId) {
        let Some(hoard) = hoards.of.remove(&queue) else { return };
        hoards.due.remove(&(hoard.gives_up, queue));
        for (machine, count) in hoard.parts {
            self.machines.release_held(machine, &times(&hoard.one, count));
            self.round.freed(machine);
        }
    }

    /// Holds what room there is for a gang; the first machine of its plan once it is enough.
    pub(super) fn hoard(&mut self, slot: SetSlot) -> Option<MachineId> {
        let mut hoards = self.hoards.take()?;
        let found = if self.sleeps(&hoards, slot) {
            self.room_for_all(slot)
        } else {
            hoards.asleep.remove(&slot);
            self.gather(&mut hoards, slot)
        };
        if found.is_some() {
            hoards.asleep.remove(&slot);
        }
        self.hoards = Some(hoards);
        found
    }

    /// Whether a gang has given up, and no machine with room for one of its tasks was freed since.
    fn sleeps(&self, hoards: &Hoards, slot: SetSlot) -> bool {
        let set = &self.sets[slot];
        let Some(sleeper) = hoards.asleep.get(&slot) else { return false };
        let (scope, need) = (self.queues.scope(set.queue), self.sets.needs(slot).1);
        let wakes = |machine: &MachineId| self.scopes.holds(scope, *machine) && self.machines.fits(*machine, need);
        let same = sleeper.queue == set.queue && sleeper.row == set.row;
        same && (sleeper.rests || !hoards.freed.iter().any(wakes))
    }

    fn gather(&mut self, hoards: &mut Hoards, slot: SetSlot) -> Option<MachineId> {
        let (queue, waiting) = (self.sets[slot].queue, self.sets[slot].waiting);
        let scope = self.queues.scope(queue);
        let mut one = Resources::ZERO;
        one.0.iter_mut().zip(self.sets.needs(slot).1).for_each(|(one, need)| *one = *need);
        let row = self.sets[slot].row;
        let gives_up = self.now + hoards.patience;
        let known = hoards.of.contains_key(&queue);
        let hoard = hoards.of.entry(queue).or_insert(Hoard { set: slot, row, one, parts: Vec::new(), gives_up });
        let mut left = waiting - hoard.parts.iter().map(|(_, count)| count).sum::<u32>();
        while left > 0
            && let Some(machine) = self.scopes.find(&mut self.machines, scope, self.sets.needs(slot).1)
        {
            self.machines.hold(machine, &one);
            left -= 1;
            match hoard.parts.last_mut() {
                Some((last, count)) if *last == machine => *count += 1,
                _ => hoard.parts.push((machine, 1)),
            }
        }
        if left > 0 {
            if hoard.parts.is_empty() {
                hoards.of.remove(&queue);
            } else if !known {
                hoards.due.insert((gives_up, queue));
            }
            return None;
        }
        let hoard = hoards.of.remove(&queue)?;
        hoards.due.remove(&(hoard.gives_up, queue));
        for &(machine, count) in &hoard.parts {
            self.machines.release_held(machine, &times(&one, count));
        }
        self.round.plan = hoard.parts;
        self.round.plan.first().map(|(machine, _)| *machine)
    }
}

/// The need of so many tasks.
fn times(one: &Resources, count: u32) -> Resources {
    let mut amount = *one;
    amount.0.iter_mut().for_each(|amount| *amount *= u64::from(count));
    amount
}
