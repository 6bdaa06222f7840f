//! Stops of running tasks that start again later. All such stops use this module.
//!
//! Stopped tasks release their room, are reported with the part of their work that they keep, and wait again at their earlier position, as
//! a new set. A gang is stopped as a whole. Preemptions are subject to the limits of `budget`.

use std::num::NonZeroU32;

use super::Kernel;
use super::agenda::Ticket;
use super::budget::{Livelock, MOST, MOST_PER_TASK, NAMED};
use super::changes::Change;
use super::ids::SetSlot;
use super::line::LineKey;
use super::pace;
use super::running::{Choice, Running, may_be_stopped};
use super::sets::SetFlag;
use super::view::{Requester, TaskView};
use crate::policy::{Ask, Preemption, PreemptsFor, Reclaims, Victims};
use crate::record::{Fate, Salvage, Turn};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time};

impl Kernel<'_> {
    /// Stops the tasks that the policy reclaims in this round. Returns whether any were stopped. Errors: the policy's, the recorder's, and
    /// [`Kernel::preemptible`]'s.
    pub fn reclaim(&mut self) -> Result<bool> {
        if self.preempts_for == PreemptsFor::Never {
            return Ok(false);
        }
        let Kernel { context, work, running, site, budget, now, .. } = self;
        let view = TaskView::new(work, running, site, &*context.source, budget, *now);
        let Some(policy) = context.policy.preemption() else { return Ok(false) };
        let Reclaims { victims, stale } = policy.reclaim(self.now, &view, &self.books)?;
        self.recall_stale(stale);
        let mut any = false;
        for Victims { tasks, cause, .. } in &victims {
            for (key, count) in tasks {
                let ticket = Ticket::from_key(*key);
                let tasks = self.preemptible(ticket, *count)?;
                let all = self.all_of(ticket, &tasks);
                let count = if all.whole { all.count } else { *count };
                let now = self.budget.room(count);
                let count = if all.whole && now < count { 0 } else { now };
                if count == 0 {
                    continue;
                }
                any = true;
                self.budget.stop(count);
                if let Some(cause) = cause {
                    self.record_decision(tasks.set, LineKey::default(), Turn::Displaced(*cause), None)?;
                }
                self.stop(&all.tickets, count, Fate::Reclaimed)?;
            }
        }
        Ok(any)
    }

    /// Returns the running tasks that a rule proposes to stop. Errors: [`Error::Mismatch`] for a wrong proposal: fewer tasks run, or they
    /// may not be preempted.
    pub fn preemptible(&self, ticket: Ticket, count: u32) -> Result<Running> {
        let may = |tasks: &&Running| {
            let set = &self.work.sets[tasks.set];
            may_be_stopped(set) && count > 0 && (set.is_gang() || count <= tasks.count.get())
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
    pub fn all_of(&self, ticket: Ticket, tasks: &Running) -> Choice {
        let gang = self.running.victims.as_ref().filter(|_| self.work.sets[tasks.set].is_gang());
        let tickets = gang.map_or_else(|| vec![ticket], |victims| victims.gang(tasks.set));
        let parts = tickets.iter().filter_map(|ticket| self.running.get(*ticket));
        let count = parts.map(|part| part.count.get()).sum();
        Choice { tickets, count, whole: gang.is_some() }
    }

    /// Returns the victims that a preemption rule proposes for the next task of a set, by the policy's own rule if `rule` is absent.
    /// Errors: the rule's.
    pub fn propose(
        &mut self,
        rule: Option<&mut dyn Preemption>,
        slot: SetSlot,
        requester: Requester,
    ) -> Result<Option<Victims>> {
        let Kernel { context, work, running, site, books, budget, now, .. } = self;
        let (demand, footprint) = work.sets.needs(slot);
        let (head, ask) = (work.view(slot), Ask { footprint, demand, tasks: 1 });
        let view = TaskView::new(work, running, site, &*context.source, budget, *now);
        match rule {
            Some(rule) => rule.propose(&head, &ask, &view.for_requester(requester, Some(&*context.policy)), books),
            None => match context.policy.preemption() {
                Some(rule) => rule.propose(&head, &ask, &view.for_requester(requester, None), books),
                None => Ok(None),
            },
        }
    }

    /// Returns the key of a waiting or running set in the job order of the run at this instant; 0 in the default order.
    pub fn order_of(&self, slot: SetSlot) -> u128 {
        self.work.order_of(slot, self.now)
    }

    /// Returns the next instant at which a running task falls back in the job order of the run without any other event.
    pub fn next_order_change(&self) -> Option<Time> {
        let ordered = self.work.ordered.as_ref()?;
        let tasks = self.running.victims.as_ref()?.all().filter_map(|(_, ticket)| self.running.get(*ticket));
        tasks.filter_map(|tasks| ordered.changes(tasks.job, self.now)).min()
    }

    /// Counts voluntary preemptions against the limit. Returns `false`, and counts none, if the limit does not allow all of them now.
    pub fn spend_preemptions(&mut self, count: u32) -> bool {
        if self.budget.room(count) < count {
            return false;
        }
        self.budget.stop(count);
        true
    }

    /// Removes running tasks from the agenda before their end; the caller finishes or restarts them. Returns `None` if they no longer run.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<Running> {
        self.running.cancel(&self.work.sets, ticket)
    }

    /// Removes the last `count` tasks of a running entry from the agenda; the caller finishes or restarts them. Returns whether any tasks
    /// of the entry are left, and the removed tasks. Panics: if the entry does not run (a programmer error).
    pub fn cancel_last(&mut self, ticket: Ticket, count: u32) -> (bool, Running) {
        let running = self.running.get_mut(ticket).expect("what runs has a ticket");
        let (rest, last) = running.split(count);
        match rest {
            Some(rest) => *running = rest,
            None => drop(self.running.cancel(&self.work.sets, ticket)),
        }
        (rest.is_some(), last)
    }

    /// Adds a second instance of a running task, which waits at the position of its row. Returns its set.
    pub fn add_instance(&mut self, of: SetSlot, number: u32, attempt: u32) -> SetSlot {
        let slot = self.work.sets.again(of, number, 1, self.now, &Salvage::default());
        self.work.sets[slot].mark(SetFlag::Backup, true);
        self.set_attempt(slot, attempt);
        let (job, stage) = (self.work.sets[slot].job, self.work.sets.details(slot).stage);
        if let Some(ordered) = &mut self.work.ordered {
            ordered.second(of, slot, job);
        }
        // The instance counts as an additional task until one of the two instances is dropped.
        self.work.jobs[job].left += 1;
        self.work.jobs.row_split(job, stage);
        self.enqueue(slot);
        slot
    }

    /// Makes the second instance of a task its only one.
    pub fn promote(&mut self, slot: SetSlot) {
        self.work.sets[slot].mark(SetFlag::Backup, false);
    }

    /// Sets the number of the attempt of a waiting set.
    pub fn set_attempt(&mut self, slot: SetSlot, attempt: u32) {
        self.work.sets.details_mut(slot).attempt = attempt;
    }

    /// Stops the last `count` tasks of entries of one set, which wait again at their earlier position. Errors: as [`Kernel::restart`].
    pub fn stop(&mut self, tickets: &[Ticket], count: u32, fate: Fate) -> Result<()> {
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
    pub fn restart(&mut self, stopped: Vec<Running>, fate: Fate) -> Result<()> {
        let kept = self.salvage(&stopped);
        let mut stopped: Vec<(Running, Salvage)> = stopped.into_iter().zip(kept).collect();
        for (tasks, keep) in &stopped {
            if let Some(ordered) = &mut self.work.ordered {
                ordered.over(&self.work.sets, tasks, false, self.now);
            }
            self.free_room(tasks);
            self.report_with(tasks, Some(self.now), fate, *keep)?;
            self.release(tasks);
            self.watch_stop(tasks, fate, keep)?;
            if !matches!(fate, Fate::Revoked | Fate::Moved) {
                self.changes.push(Change::Stopped(self.with_row(tasks)));
            }
        }
        stopped.sort_unstable_by_key(|(tasks, _)| tasks.first);
        // Tasks with consecutive numbers become one set; there may be several sets, because some tasks of a gang may have ended. If faults
        // are drawn per task, each task becomes a set. Tasks with different amounts of saved work are in different sets. Tasks of a gang
        // stay together.
        let alone = self.running.attempts.is_some();
        let together = |(a, keep): &(Running, Salvage), (b, other): &(Running, Salvage)| {
            let alike = keep.kept == other.kept && keep.saved == other.saved;
            a.first + a.count.get() == b.first && (self.work.sets[a.set].is_gang() || (!alone && alike))
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
            self.work.jobs.row_split(self.work.sets[again].job, self.work.sets.details(again).stage);
            self.changes.push(Change::Again { from: set, slot: again });
            if self.watches() {
                self.watch_stopped(again, fate);
            }
            if self.work.sets[again].is_listed() {
                self.enqueue(again);
            }
        }
        stopped.first().into_iter().for_each(|(tasks, _)| self.leave_set(tasks.set));
        Ok(())
    }

    /// Returns the time that running tasks need to resume; 0 if they were never stopped.
    pub fn delay_of(&self, tasks: &Running) -> Span {
        if self.work.sets.details(tasks.set).attempt > 0 { self.settings.limits.restart_delay } else { Span::ZERO }
    }

    /// Returns the time that running tasks need for the rest of their work.
    fn remaining_run_time(&self, tasks: &Running) -> Span {
        let (set, details) = (&self.work.sets[tasks.set], self.work.sets.details(tasks.set));
        let reach = self.reach(tasks.set, tasks.machine);
        let span = pace::on(&self.site.cluster, self.settings.distance, set.duration, tasks.machine, reach);
        match &self.running.attempts {
            Some(attempts) => attempts.fault_free_span(set.row, tasks.first, details.attempt, span),
            None => span,
        }
    }

    /// Returns the part of their work that running tasks of one set keep if they are stopped now. All tasks of a gang keep the smallest
    /// part among them.
    pub fn salvage(&self, stopped: &[Running]) -> Vec<Salvage> {
        let interval = self.settings.limits.checkpoint;
        let one = |tasks: &Running| {
            let delay = self.delay_of(tasks);
            let ran = self.now.since(tasks.start);
            let delay = Span(delay.0.min(ran.0));
            let (worked, left) = (ran.0 - delay.0, self.work.sets[tasks.set].duration);
            let kept = Span(worked.checked_div(interval.0).map_or(0, |checkpoints| checkpoints * interval.0));
            let saved = match kept {
                Span::ZERO => Span::ZERO,
                _ if left == Span::ENDLESS => Span::ZERO,
                _ => {
                    let whole = u128::from(self.remaining_run_time(tasks).0.max(kept.0));
                    Span((u128::from(kept.0) * u128::from(left.0) / whole) as u64)
                }
            };
            Salvage { delay, kept, saved, forfeited: Span::ZERO }
        };
        let mut all: Vec<Salvage> = stopped.iter().map(one).collect();
        let gang = stopped.first().is_some_and(|tasks| self.work.sets[tasks.set].is_gang());
        if let Some(least) = all.iter().map(|one| one.saved).min().filter(|_| gang) {
            all.iter_mut().for_each(|one| one.saved = least);
        }
        all
    }

    /// Records that tasks were stopped. Errors: [`Error::Livelock`] if too many were preempted since the last progress.
    pub fn watch_stop(&mut self, tasks: &Running, fate: Fate, keep: &Salvage) -> Result<()> {
        if keep.saved > Span::ZERO {
            self.livelock.progress();
        }
        // Preempting an endless task does not delay its end.
        if !matches!(fate, Fate::Reclaimed | Fate::Preempted) || self.is_endless(tasks.set) {
            return Ok(());
        }
        self.livelock.preempted(tasks.job, tasks.count.get(), self.now);
        let peak = self.outcome.peak_running.max(self.books.total_running());
        if self.livelock.preemptions <= MOST.max(peak.saturating_mul(MOST_PER_TASK)) {
            return Ok(());
        }
        // There is no livelock if a row will still arrive, or if a task that was not stopped since the last progress will end: both may
        // change the state.
        let since = self.livelock.since;
        let lasts = |running: &Running| { running.start } < since && !self.is_endless(running.set);
        if self.running.iter().any(lasts) || self.next_arrival()?.is_some() {
            self.livelock.progress();
            return Ok(());
        }
        let Livelock { preemptions, since, jobs } = &self.livelock;
        let mut names: Vec<String> = jobs.iter().take(NAMED).map(|job| format!("'{}'", self.job_name(*job))).collect();
        names.extend(jobs.len().checked_sub(NAMED + 1).map(|rest| format!("{} more", rest + 1)));
        let problem = format!(
            "livelock: between {} s and {} s {preemptions} tasks were preempted, and none has finished or kept any work; \
             the jobs that preempt one another: {}. Accepted: a 'checkpoint', by which stopped tasks keep work; a 'min_run'; \
             another policy or order (docs/cluster.md, \"Livelocks\")",
            since.seconds(),
            self.now.seconds(),
            names.join(", "),
        );
        Err(Error::Livelock { problem })
    }
}
