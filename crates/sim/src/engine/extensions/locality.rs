//! Tasks that would run best at some machine, rack or room, and fall back to a level up after a delay.
//!
//! The levels and the fallback are those of Fuxi's locality tree (Zhang et al., VLDB 2014, section 3.1) and of delay scheduling (Zaharia et
//! al., EuroSys 2010); the delay, the same at each level, is ours.

use std::collections::{BTreeSet, HashMap};

use crate::engine::kernel::change_log::QueueChange;
use crate::engine::kernel::Kernel;
use super::Extension;
use crate::engine::kernel::jobs::{ActiveSet, SetSlot};
use crate::engine::kernel::scopes::ScopeId;
use crate::cluster::Location;
use crate::record::Locality;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Span, Time};

/// The instants at which waiting sets fall back.
#[derive(Debug)]
pub(in crate::engine) struct Falling {
    /// The delay after which a set moves a level up.
    delay: Span,
    due: BTreeSet<(Time, SetSlot)>,
    of: HashMap<SetSlot, Time>,
}

impl Falling {
    /// Creates the state without waiting sets.
    pub fn new(delay: Span) -> Falling {
        Falling { delay, due: BTreeSet::new(), of: HashMap::new() }
    }

    /// Schedules the fallback of a set that has joined a queue, unless it may start on any machine.
    fn joined(&mut self, core: &Kernel, slot: SetSlot) {
        let scope = core.work.queues.scope(core.work.sets[slot].queue);
        if core.site.scopes.get(scope).location != Location::Cluster {
            let at = core.now + self.delay;
            self.due.insert((at, slot));
            self.of.insert(slot, at);
        }
    }

    /// Cancels the fallback of a set that no longer waits.
    fn left(&mut self, slot: SetSlot) {
        if let Some(at) = self.of.remove(&slot) {
            self.due.remove(&(at, slot));
        }
    }

    /// Reads which sets have joined or left a queue.
    fn apply_changes(&mut self, core: &mut Kernel) {
        let Some(mut standing) = core.notes.standing.take() else { return };
        for standing in standing.drain(..) {
            match standing {
                QueueChange::Joined(slot) => self.joined(core, slot),
                QueueChange::Left(slot) => self.left(slot),
            }
        }
        core.notes.standing = Some(standing);
    }

    /// Moves sets that have waited long enough a level up, at the same position.
    pub fn fall_back(&mut self, core: &mut Kernel) {
        self.apply_changes(core);
        while let Some((_, slot)) = self.due.first().filter(|(at, _)| *at <= core.now).copied() {
            self.left(slot);
            if core.move_up(slot) {
                self.joined(core, slot);
            }
        }
    }
}

impl Extension for Falling {
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    fn after_round(&mut self, core: &mut Kernel) -> Result<bool> {
        self.apply_changes(core);
        Ok(false)
    }
}

impl Kernel<'_> {
    /// Moves a waiting set to its user's queue for the next wider scope, at the same position. Returns false if there is none.
    fn move_up(&mut self, slot: SetSlot) -> bool {
        let old = self.work.queues.scope(self.work.sets[slot].queue);
        let Some(scope) = self.site.scopes.up(old, self.books.dims()) else { return false };
        self.move_to(slot, scope);
        true
    }

    /// Moves a waiting set to its user's queue for another scope, at the same position.
    pub(in crate::engine) fn move_to(&mut self, slot: SetSlot, scope: ScopeId) {
        let (user, old) = (self.work.sets[slot].user, self.work.sets[slot].queue);
        let queue = self.work.queues.id(user, scope);
        self.round.open(self.work.queues.len());
        self.leave_queue(slot, old);
        self.work.sets[slot].queue = queue;
        self.enqueue_in(slot);
        self.outside.recorder.head(user);
    }

    /// Excludes a machine for tasks of a set, or includes it again.
    pub(in crate::engine) fn bar(&mut self, slot: SetSlot, machine: MachineId, barred: bool) {
        let ActiveSet { user, queue, waiting, listed, .. } = self.work.sets[slot];
        let scope = self.site.scopes.bar(self.work.queues.scope(queue), machine, barred, self.books.dims());
        if listed && waiting > 0 {
            return self.move_to(slot, scope);
        }
        self.work.sets[slot].queue = self.work.queues.id(user, scope);
        self.round.open(self.work.queues.len());
    }

    /// Returns how near to its preferred location a set's task starts; `None` if all machines are equally good.
    pub(in crate::engine) fn reach(&self, slot: SetSlot, machine: MachineId) -> Option<Locality> {
        let home = self.site.scopes.get(self.work.sets[slot].home).location;
        self.site.scopes.reach(home, machine)
    }
}
