//! Tasks that prefer a machine, a rack or a room, and fall back to the next level up after a delay.
//!
//! The levels and the fallback are those of Fuxi's locality tree (Zhang et al., VLDB 2014, section 3.1) and of delay scheduling (Zaharia et
//! al., EuroSys 2010); the delay, the same at each level, is ours.

use std::collections::{BTreeSet, HashMap};

use super::extension::Extension;
use crate::cluster::Location;
use crate::engine::kernel::{Change, Kernel, Reader, SetSlot};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time};
use plimsoll_base::visit_values;

/// The instants at which waiting sets fall back.
#[derive(Debug)]
pub struct Falling {
    reader: Reader,
    /// The delay after which a set moves a level up.
    delay: Span,
    due: BTreeSet<(Time, SetSlot)>,
    of: HashMap<SetSlot, Time>,
}

impl Falling {
    /// Creates the state without waiting sets.
    pub fn new(reader: Reader, delay: Span) -> Falling {
        Falling { reader, delay, due: BTreeSet::new(), of: HashMap::new() }
    }

    /// Schedules the fallback of a set that has joined a queue, unless it may start on any machine.
    fn joined(&mut self, kernel: &Kernel, slot: SetSlot) {
        let scope = kernel.scope(slot);
        if kernel.scopes().get(scope).location != Location::Cluster {
            let at = kernel.now() + self.delay;
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

    /// Reads from the change log which sets have joined or left a queue.
    fn apply_changes(&mut self, kernel: &mut Kernel) {
        while let Some(change) = kernel.next_change(self.reader) {
            match change {
                Change::Joined(slot) => self.joined(kernel, slot),
                Change::Left(slot) => self.left(slot),
                _ => {}
            }
        }
    }

    /// Moves sets that have waited long enough a level up, at the same position.
    pub fn fall_back(&mut self, kernel: &mut Kernel) {
        self.apply_changes(kernel);
        while let Some((_, slot)) = self.due.first().filter(|(at, _)| *at <= kernel.now()).copied() {
            self.left(slot);
            if kernel.move_up(slot) {
                self.joined(kernel, slot);
            }
        }
    }
}

impl Extension for Falling {
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    fn after_round(&mut self, kernel: &mut Kernel) -> Result<bool> {
        self.apply_changes(kernel);
        Ok(false)
    }
}

impl Checkpoint for Falling {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Falling { reader: _, delay: _, due, of } = self;
        visit_values!(visitor; due, of);
        Ok(())
    }
}
