//! Stops of running tasks that start again later; the engine has no other path for this.
//!
//! Stopped tasks release their room, are reported with the part of their work that they keep, and wait again at their earlier position, as
//! a set of their own. A gang is stopped as a whole. Preemptions are subject to the limits of `preemption_limits`.

use std::num::NonZeroU32;

use super::agenda::Ticket;
use super::Kernel;
use super::line::LineKey;
use crate::engine::extensions::remote::CoreEvent;
use super::running::Running;
use super::victims::may_be_stopped;
use super::view::TaskView;
use crate::policy::{PreemptsFor, Reclaims, Victims};
use crate::record::{Fate, Salvage, Turn};
use plimsoll_base::error::{Error, Result};

/// Tasks that may be stopped: the last tasks of one entry, or a whole gang.
pub(in crate::engine) struct Choice {
    pub tickets: Vec<Ticket>,
    /// The number of tasks to stop.
    pub count: u32,
    /// Whether they are a gang, which is stopped as a whole.
    pub whole: bool,
}

impl Kernel<'_> {
    /// Stops the tasks that the policy reclaims in this round. Returns whether any were stopped. Errors: the policy's, the recorder's, and
    /// [`Kernel::preemptible`]'s.
    pub(in crate::engine) fn reclaim(&mut self) -> Result<bool> {
        if self.round.preempts_for == PreemptsFor::Never {
            return Ok(false);
        }
        let view = TaskView::new(
            &self.work,
            &self.running,
            &self.site,
            &*self.outside.source,
            &self.preemption_budget,
            self.now,
        );
        let policy = self.outside.policy.preemption();
        let Some(policy) = policy else { return Ok(false) };
        let Reclaims { victims, stale } = policy.reclaim(self.now, &view, &self.books)?;
        self.recall(stale);
        let mut any = false;
        for Victims { tasks, cause, .. } in &victims {
            for (key, count) in tasks {
                let ticket = Ticket::from_key(*key);
                let tasks = self.preemptible(ticket, *count)?;
                let all = self.all_of(ticket, &tasks);
                let count = if all.whole { all.count } else { *count };
                let now = self.preemption_budget.room(count);
                let count = if all.whole && now < count { 0 } else { now };
                if count == 0 {
                    continue;
                }
                any = true;
                self.preemption_budget.stop(count);
                if let Some(cause) = cause {
                    self.record_decision(tasks.set, LineKey::default(), Turn::Displaced(*cause), None)?;
                }
                self.stop(&all.tickets, count, Fate::Reclaimed)?;
            }
        }
        Ok(any)
    }

    /// Returns the running tasks that a rule proposes to stop. Errors: [`Error::Mismatch`] if the rule is wrong, because they do not run in
    /// this number or may not be preempted.
    pub(in crate::engine) fn preemptible(&self, ticket: Ticket, count: u32) -> Result<Running> {
        let may = |tasks: &&Running| {
            let set = &self.work.sets[tasks.set];
            may_be_stopped(set) && count > 0 && (set.gang || count <= tasks.count.get())
        };
        match self.running.get(ticket).filter(may) {
            Some(tasks) => Ok(*tasks),
            None => {
                let problem =
                    "the policy wants to stop tasks that do not run or may not be stopped by choice".to_owned();
                Err(Error::Mismatch { problem })
            }
        }
    }

    /// Returns all tasks of an entry, and of the gang that they belong to.
    pub(in crate::engine) fn all_of(&self, ticket: Ticket, tasks: &Running) -> Choice {
        let gang = self.running.victims.as_ref().filter(|_| self.work.sets[tasks.set].gang);
        let tickets = gang.map_or_else(|| vec![ticket], |victims| victims.gang(tasks.set));
        let parts = tickets.iter().filter_map(|ticket| self.running.get(*ticket));
        let count = parts.map(|part| part.count.get()).sum();
        Choice { tickets, count, whole: gang.is_some() }
    }

    /// Stops the last `count` tasks of entries of one set, which wait again at their earlier position. Errors: as [`Kernel::restart`].
    pub(in crate::engine) fn stop(&mut self, tickets: &[Ticket], count: u32, fate: Fate) -> Result<()> {
        let mut left = count;
        let mut stopped: Vec<Running> = Vec::new();
        for &ticket in tickets.iter().rev() {
            let Some(count) = NonZeroU32::new(left) else { break };
            let Some(running) = self.running.get_mut(ticket) else { continue };
            let (rest, tasks) = running.split(count.get());
            match rest {
                Some(rest) => *running = rest,
                None => drop(self.running.cancel(&self.work.sets, ticket)),
            }
            left -= tasks.count.get();
            stopped.push(tasks);
        }
        self.restart(stopped, fate)
    }

    /// Stops tasks of one set that are no longer in the agenda; they wait again at their earlier position. Errors: the recorder's, and
    /// [`Error::Livelock`].
    pub(in crate::engine) fn restart(&mut self, stopped: Vec<Running>, fate: Fate) -> Result<()> {
        let kept = self.salvage(&stopped);
        let mut stopped: Vec<(Running, Salvage)> = stopped.into_iter().zip(kept).collect();
        for (tasks, keep) in &stopped {
            if let Some(ordered) = &mut self.work.ordered {
                ordered.over(tasks, false, self.now);
            }
            self.free(tasks);
            self.report_with(tasks, Some(self.now), fate, *keep)?;
            self.release(tasks);
            self.watch_stop(tasks, fate, keep)?;
            if !matches!(fate, Fate::Revoked | Fate::Moved) {
                self.notes.push_event(CoreEvent::Stopped(self.of_row(tasks)));
            }
        }
        stopped.sort_unstable_by_key(|(tasks, _)| tasks.first);
        // Each run of consecutive numbers becomes one set, since some tasks of a gang may have ended. Where faults are drawn per task, each
        // task is a set of its own, as are tasks with different amounts of saved work. Tasks of a gang stay together.
        let alone = self.running.draws.is_some();
        let together = |(a, keep): &(Running, Salvage), (b, other): &(Running, Salvage)| {
            let alike = keep.kept == other.kept && keep.saved == other.saved;
            a.first + a.count.get() == b.first && (self.work.sets[a.set].gang || (!alone && alike))
        };
        let runs: Vec<&[(Running, Salvage)]> = stopped.chunk_by(together).collect();
        for run in runs {
            let tasks = run.iter().map(|(tasks, _)| tasks.count.get()).sum();
            let (Running { set, first, .. }, keep) = run[0];
            let again = self.work.sets.again(set, first, tasks, self.now, &keep);
            if let Some(ordered) = &mut self.work.ordered {
                ordered.again(set, again);
                ordered.record_saved(again, &self.work.sets[again], keep.saved);
            }
            self.work.jobs.row_split(self.work.sets[again].job, self.work.sets[again].stage);
            self.notes.again(set, again);
            self.notes.push_event(CoreEvent::Again(again));
            if self.work.sets[again].listed {
                self.enqueue(again);
            }
        }
        stopped.first().into_iter().for_each(|(tasks, _)| self.leave_set(tasks.set));
        Ok(())
    }
}
