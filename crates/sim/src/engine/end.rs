//! Ends: of tasks, their sets and jobs, and of the run itself.

use super::core::Core;
use super::held;
use super::jobs::SetSlot;
use super::running::Running;
use crate::record::{Fate, Stuck, StuckRecord, TaskRecord};
use plimsoll_base::error::Result;
use plimsoll_base::units::Time;

impl Core<'_> {
    /// Has what the next end needs fetched into the cache while the processor goes on. With many tasks at once all of it has
    /// left the cache since they began.
    pub(super) fn fetch_ahead(&self) {
        if let Some(next) = self.running.fetch_ahead() {
            self.work.sets.fetch(next.set);
            self.work.jobs.fetch(next.job);
        }
    }

    pub(super) fn finish_due(&mut self) -> Result<()> {
        while self.running.next_time() == Some(self.now) {
            let Some(running) = self.running.pop(&self.work.sets) else { break };
            self.fetch_ahead();
            self.finish(running, Fate::Finished)?;
        }
        Ok(())
    }

    /// Tasks have ended for good.
    pub(super) fn finish(&mut self, finish: Running, fate: Fate) -> Result<()> {
        if let Some(ordered) = &mut self.work.ordered {
            ordered.over(&finish, true, self.now);
        }
        self.free(&finish);
        self.report(&finish, Some(self.now), fate)?;
        self.release(&finish);
        let job = finish.job;
        self.work.jobs[job].left -= u64::from(finish.count.get());
        self.leave_set(finish.set);
        if self.work.jobs[job].ended() {
            let (id, user) = (self.work.jobs[job].id, self.work.jobs[job].user);
            self.outside.recorder.job(&self.work.jobs.record(job, self.outside.source.job_names(), Some(self.now)))?;
            self.work.jobs.free(job);
            self.outside.source.job_finished(id, user, self.now);
        }
        Ok(())
    }

    /// Books that tasks run no longer.
    pub(super) fn free(&mut self, tasks: &Running) {
        let count = tasks.count.get();
        let set = &mut self.work.sets[tasks.set];
        set.left -= count;
        let (user, partition) = (set.user, set.partition);
        let (demand, footprint) = self.work.sets.needs(tasks.set);
        self.books.finish(user, demand, footprint, count);
        if let Some(books) = self.books.apart(partition) {
            books.finish(user, demand, footprint, count);
        }
        self.site.machines.give(tasks.machine, footprint, count);
        self.notes.ended(tasks.machine, count, demand);
        self.notes.freed(tasks.machine);
        self.round.freed(tasks.machine);
        self.work.queues.of(user).for_each(|queue| self.round.rerank(queue));
        self.notes.changed.mark(user);
    }

    /// Forgets a set none of whose tasks is left, and releases what waited for it.
    pub(super) fn leave_set(&mut self, slot: SetSlot) {
        let set = &self.work.sets[slot];
        if set.left == 0 {
            self.work.jobs.row_ended(set.job, set.stage, &mut self.intake.released);
            self.work.sets.free(slot);
        }
    }

    /// Tells of tasks that ran until `finish`, or still run.
    pub(super) fn report(&mut self, tasks: &Running, finish: Option<Time>, fate: Fate) -> Result<()> {
        let set = &self.work.sets[tasks.set];
        self.outside.recorder.tasks(&TaskRecord {
            name: self.work.jobs.name(set.job, self.outside.source.job_names()),
            user: set.user,
            partition: set.partition,
            first: u64::from(tasks.first),
            count: tasks.count.get(),
            attempt: set.attempt,
            machine: (!self.site.pooled).then_some(tasks.machine),
            devices: held::of(&self.site.devices, tasks),
            submit: set.submit,
            release: set.since,
            start: tasks.start,
            finish,
            fate,
            duration: set.duration,
            demand: self.work.sets.needs(tasks.set).0,
        })
    }

    /// Reports what is left, at the horizon (`cut`) or because nothing is to come: running tasks, waiting and held rows, unfinished jobs.
    pub(super) fn close(&mut self, cut: bool) -> Result<()> {
        while let Some(running) = self.running.pop(&self.work.sets) {
            self.report(&running, None, Fate::Running)?;
        }
        for slot in self.work.sets.by_row() {
            let set = &self.work.sets[slot];
            if set.waiting == 0 {
                continue;
            }
            let why = match (cut, set.held) {
                (true, _) => Stuck::Cut,
                (false, true) => Stuck::Deadlocked,
                (false, false) => Stuck::Starved,
            };
            self.outside.recorder.stuck(&StuckRecord {
                name: self.work.jobs.name(set.job, self.outside.source.job_names()),
                user: set.user,
                row: set.row,
                tasks: u64::from(set.waiting),
                first: u64::from(set.number),
                attempt: set.attempt,
                submit: set.submit,
                release: (!set.held && set.release <= self.now).then_some(set.since),
                duration: set.duration,
                demand: self.work.sets.needs(slot).0,
                why,
            })?;
        }
        for slot in self.work.jobs.by_id() {
            self.outside.recorder.job(&self.work.jobs.record(slot, self.outside.source.job_names(), None))?;
        }
        Ok(())
    }
}
