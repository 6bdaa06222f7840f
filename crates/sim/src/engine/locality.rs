//! Tasks that would run best at some machine, rack or room, and fall back to a level up after a while.
//!
//! The levels and the falling back follow Fuxi's locality tree (Zhang et al., VLDB 2014, section 3.1) and delay
//! scheduling (Zaharia et al., EuroSys 2010); the delay, the same at each level, is ours.

use std::collections::{BTreeSet, HashMap};

use super::Engine;
use super::jobs::SetSlot;
use crate::cluster::Location;
use crate::record::Reach;
use plimsoll_base::units::{MachineId, Time};

/// When waiting sets fall back.
#[derive(Debug, Default)]
pub struct Falling {
    due: BTreeSet<(Time, SetSlot)>,
    of: HashMap<SetSlot, Time>,
}

impl Falling {
    /// When the next one falls back.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    /// A set will fall back at this instant.
    fn add(&mut self, at: Time, slot: SetSlot) {
        self.due.insert((at, slot));
        self.of.insert(slot, at);
    }

    /// A set waits no longer.
    pub fn remove(&mut self, slot: SetSlot) {
        if !self.of.is_empty()
            && let Some(at) = self.of.remove(&slot)
        {
            self.due.remove(&(at, slot));
        }
    }

    fn pop(&mut self, now: Time) -> Option<SetSlot> {
        let first = self.due.first().filter(|(at, _)| *at <= now).copied()?;
        self.remove(first.1);
        Some(first.1)
    }
}

impl Engine<'_> {
    /// A set stands in a queue from now on: when it falls back, if it ever does.
    pub(super) fn expect_fall(&mut self, slot: SetSlot) {
        let scope = self.queues.scope(self.sets[slot].queue);
        let narrow = self.scopes.get(scope).location != Location::Cluster;
        if let Some(delay) = self.options.fall_back.filter(|_| narrow) {
            self.falling.add(self.now + delay, slot);
        }
    }

    /// Sets that have waited long enough stand a level up, in the same place in line.
    pub(super) fn fall_back(&mut self) {
        let dims = self.books.dims();
        while let Some(slot) = self.falling.pop(self.now) {
            let (user, old) = (self.sets[slot].user, self.sets[slot].queue);
            let Some(scope) = self.scopes.up(self.queues.scope(old), dims) else { continue };
            let queue = self.queues.id(user, scope);
            self.round.open(self.queues.len());
            let was_first = self.queues.head(old) == Some(slot);
            self.queues.remove(&mut self.sets, slot);
            match self.queues.head(old) {
                None => self.emptied(old),
                Some(_) if was_first => self.head_changed(old),
                Some(_) => {}
            }
            self.sets[slot].queue = queue;
            self.stand_in(slot);
            self.expect_fall(slot);
        }
    }

    /// How near to where its tasks would run best a set's task starts; nothing if they run equally well everywhere.
    pub(super) fn reach(&self, slot: SetSlot, machine: MachineId) -> Option<Reach> {
        let home = self.scopes.get(self.sets[slot].home).location;
        self.scopes.reach(home, machine)
    }
}
