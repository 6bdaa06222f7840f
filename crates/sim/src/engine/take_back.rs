//! Running tasks that are stopped before their end, and start anew.

use std::num::NonZeroU32;

use super::agenda::Ticket;
use super::jobs::SetSlot;
use super::victims::Victims;
use super::{Engine, Running};
use crate::policy::TakeBack;
use crate::record::{Fate, Unreturned};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources};

/// Tasks that may be stopped: the last of one entry, or a whole gang.
pub(super) struct Choice {
    pub tickets: Vec<Ticket>,
    set: SetSlot,
    /// How many tasks are stopped.
    pub count: u32,
    /// They go together.
    pub whole: bool,
}

impl Engine<'_> {
    /// Notes that tasks run.
    pub(super) fn remember(&mut self, tasks: &Running, ticket: Ticket) {
        if let Some(victims) = &mut self.victims {
            victims.add(&self.sets[tasks.set], tasks, ticket);
        }
    }

    /// Tasks run no longer.
    pub(super) fn forget(&mut self, tasks: &Running) {
        if let Some(victims) = &mut self.victims {
            victims.remove(&self.sets[tasks.set], tasks);
        }
    }

    /// Takes back what the policy asks for, and notes of which groups nothing can be; whether anything was.
    pub(super) fn take_back(&mut self) -> Result<bool> {
        if self.victims.is_none() {
            return Ok(false);
        }
        self.unreturned.clear();
        let mut gave: Vec<usize> = Vec::new();
        for wanted in self.policy.take_back(self.now, &self.books) {
            if wanted.below.iter().any(|group| gave.contains(group)) {
                continue;
            }
            let chosen = self.choose(&wanted);
            if chosen.is_empty() {
                self.unreturned.push(Unreturned { group: wanted.group, amount: wanted.amount });
                continue;
            }
            gave.push(wanted.group);
            for choice in chosen {
                self.stop(&choice.tickets, choice.count, Fate::Reclaimed)?;
            }
        }
        Ok(!gave.is_empty())
    }

    /// The tasks to stop. None if all that hold anything of what is wanted may not be stopped.
    fn choose(&self, wanted: &TakeBack) -> Vec<Choice> {
        let Some(victims) = &self.victims else { return Vec::new() };
        let mut short = wanted.amount;
        let mut chosen: Vec<Choice> = Vec::new();
        for ticket in victims.of(&wanted.users) {
            let Some(tasks) = self.agenda.get(ticket).copied() else { continue };
            if self.sets[tasks.set].partition != wanted.partition {
                continue;
            }
            let footprint = self.sets.needs(tasks.set).1;
            // As many as it takes for what is short in each resource that they hold.
            let needed = footprint.iter().zip(short.0).filter(|(each, short)| **each > 0 && *short > 0);
            let needed = needed.map(|(each, short)| short.div_ceil(*each)).max().unwrap_or(0);
            if needed == 0 || (self.sets[tasks.set].gang && chosen.iter().any(|choice| choice.set == tasks.set)) {
                continue;
            }
            let mut choice = self.all_of(victims, ticket, &tasks);
            if !choice.whole {
                choice.count = needed.min(u64::from(choice.count)) as u32;
            }
            short.0.iter_mut().zip(footprint).for_each(|(short, each)| {
                *short = short.saturating_sub(each * u64::from(choice.count));
            });
            chosen.push(choice);
            if short == Resources::ZERO {
                break;
            }
        }
        self.spare(&mut chosen, &wanted.amount, &short);
        chosen.retain(|choice| choice.count > 0);
        chosen
    }

    /// All tasks of an entry, and of the gang that they belong to.
    pub(super) fn all_of(&self, victims: &Victims, ticket: Ticket, tasks: &Running) -> Choice {
        let whole = self.sets[tasks.set].gang;
        let tickets = if whole { victims.gang(tasks.set) } else { vec![ticket] };
        let parts = tickets.iter().filter_map(|ticket| self.agenda.get(*ticket));
        let count = parts.map(|part| part.count.get()).sum();
        Choice { tickets, set: tasks.set, count, whole }
    }

    /// Takes out the tasks that the others have made needless: those that would be stopped last are spared first.
    fn spare(&self, chosen: &mut [Choice], wanted: &Resources, short: &Resources) {
        let mut surplus = [0u64; MAX_DIMS];
        for choice in chosen.iter() {
            for (surplus, each) in surplus.iter_mut().zip(self.sets.needs(choice.set).1) {
                *surplus += each * u64::from(choice.count);
            }
        }
        for (surplus, (wanted, short)) in surplus.iter_mut().zip(wanted.0.iter().zip(short.0)) {
            *surplus = surplus.saturating_sub(wanted - short);
        }
        for choice in chosen.iter_mut().rev() {
            let footprint = self.sets.needs(choice.set).1;
            let held = footprint.iter().zip(surplus).filter(|(each, _)| **each > 0);
            let spared = held.map(|(each, surplus)| surplus / each).min().unwrap_or(0).min(u64::from(choice.count));
            let spared = if choice.whole && spared < u64::from(choice.count) { 0 } else { spared };
            surplus.iter_mut().zip(footprint).for_each(|(surplus, each)| *surplus -= each * spared);
            choice.count -= spared as u32;
        }
    }

    /// Stops the last `count` tasks of entries of one set, which wait again in their place in line.
    pub(super) fn stop(&mut self, tickets: &[Ticket], count: u32, fate: Fate) -> Result<()> {
        let mut left = count;
        let mut stopped: Vec<Running> = Vec::new();
        for &ticket in tickets.iter().rev() {
            let Some(count) = NonZeroU32::new(left) else { break };
            let Some(running) = self.agenda.get_mut(ticket) else { continue };
            let mut tasks = *running;
            if let Some(rest) = NonZeroU32::new(tasks.count.get().saturating_sub(count.get())) {
                running.count = rest;
                tasks.first += rest.get();
                tasks.count = count;
            } else {
                self.agenda.cancel(ticket);
                self.forget(&tasks);
            }
            left -= tasks.count.get();
            self.free(&tasks);
            self.report(&tasks, Some(self.now), fate)?;
            self.release(&tasks);
            stopped.push(tasks);
        }
        stopped.reverse();
        // One set for each run of numbers: what is left of a gang may have lost some to their end.
        for run in stopped.chunk_by(|a, b| a.first + a.count.get() == b.first) {
            let tasks = run.iter().map(|tasks| tasks.count.get()).sum();
            let again = self.sets.again(run[0].set, run[0].first, tasks, self.now);
            self.jobs.row_split(self.sets[again].job, self.sets[again].stage);
            self.enqueue(again);
        }
        stopped.first().into_iter().for_each(|tasks| self.leave_set(tasks.set));
        Ok(())
    }
}
