//! Running tasks that are stopped before their end, and start anew.

use std::num::NonZeroU32;

use super::agenda::Ticket;
use super::victims::Victim;
use super::{Engine, Running};
use crate::error::Result;
use crate::policy::TakeBack;
use crate::record::{Fate, Recorder};
use crate::units::{MAX_DIMS, Resources};

impl<R: Recorder> Engine<'_, R> {
    /// Notes that tasks run which may be stopped.
    pub(super) fn remember(&mut self, tasks: &Running, ticket: Ticket) {
        if let Some(victims) = &mut self.victims {
            let set = &self.sets[tasks.set];
            victims.add(set.user, Victim::new(set, tasks), ticket);
        }
    }

    /// Tasks run no longer.
    pub(super) fn forget(&mut self, tasks: &Running) {
        if let Some(victims) = &mut self.victims {
            let set = &self.sets[tasks.set];
            victims.remove(set.user, &Victim::new(set, tasks));
        }
    }

    /// Takes back what the policy asks for; whether anything was.
    pub(super) fn take_back(&mut self) -> Result<bool> {
        if self.victims.is_none() {
            return Ok(false);
        }
        let mut any = false;
        for wanted in self.policy.take_back(self.now, &self.books) {
            for (ticket, tasks) in self.choose(&wanted) {
                self.stop(ticket, tasks, Fate::Reclaimed)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Whom to stop, and how many tasks of each entry.
    fn choose(&mut self, wanted: &TakeBack) -> Vec<(Ticket, NonZeroU32)> {
        let Some(victims) = &self.victims else { return Vec::new() };
        let mut short = wanted.amount;
        let mut chosen: Vec<(Ticket, u32, u32)> = Vec::new();
        for (_, ticket) in victims.of(&wanted.users) {
            let Some(tasks) = self.agenda.get_mut(ticket).copied() else { continue };
            let footprint = self.sets.needs(tasks.set).1;
            // As many as it takes for what is short in each resource that they hold.
            let needed = footprint.iter().zip(short.0).filter(|(each, short)| **each > 0 && *short > 0);
            let count = needed.map(|(each, short)| short.div_ceil(*each)).max().unwrap_or(0);
            let count = count.min(u64::from(tasks.count.get())) as u32;
            if count > 0 {
                short.0.iter_mut().zip(footprint).for_each(|(short, each)| {
                    *short = short.saturating_sub(each * u64::from(count));
                });
                chosen.push((ticket, tasks.set, count));
            }
            if short == Resources::ZERO {
                break;
            }
        }
        // Those who came last in that order may have made others needless: who would be stopped last is spared first.
        let mut surplus = [0u64; MAX_DIMS];
        for (_, set, count) in &chosen {
            for (surplus, each) in surplus.iter_mut().zip(self.sets.needs(*set).1) {
                *surplus += each * u64::from(*count);
            }
        }
        for (surplus, (wanted, short)) in surplus.iter_mut().zip(wanted.amount.0.iter().zip(short.0)) {
            *surplus = surplus.saturating_sub(wanted - short);
        }
        for (_, set, count) in chosen.iter_mut().rev() {
            let footprint = self.sets.needs(*set).1;
            let held = footprint.iter().zip(surplus).filter(|(each, _)| **each > 0);
            let spared = held.map(|(each, surplus)| surplus / each).min().unwrap_or(0).min(u64::from(*count));
            surplus.iter_mut().zip(footprint).for_each(|(surplus, each)| *surplus -= each * spared);
            *count -= spared as u32;
        }
        chosen.into_iter().filter_map(|(ticket, _, count)| Some((ticket, NonZeroU32::new(count)?))).collect()
    }

    /// Stops the last `count` tasks of an entry, which wait again in their place in line.
    pub(super) fn stop(&mut self, ticket: Ticket, count: NonZeroU32, fate: Fate) -> Result<()> {
        let Some(running) = self.agenda.get_mut(ticket) else { return Ok(()) };
        let mut tasks = *running;
        match NonZeroU32::new(tasks.count.get().saturating_sub(count.get())) {
            Some(left) => {
                running.count = left;
                tasks.first += left.get();
                tasks.count = count;
            }
            None => {
                self.agenda.cancel(ticket);
                self.forget(&tasks);
            }
        }
        self.free(&tasks);
        self.report(&tasks, Some(self.now), fate)?;
        let again = self.sets.again(tasks.set, tasks.first, tasks.count.get(), self.now);
        self.jobs.row_split(self.sets[again].job, self.sets[again].stage);
        self.leave_set(tasks.set);
        self.enqueue(again);
        Ok(())
    }
}
