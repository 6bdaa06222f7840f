//! Ends: of tasks, their sets and jobs, and of the run itself.

use super::jobs::SetSlot;
use super::{Engine, Running, held};
use crate::cluster::Placement;
use crate::record::{Fate, Stuck, StuckRecord, TaskRecord};
use plimsoll_base::error::Result;
use plimsoll_base::units::Time;

impl Engine<'_> {
    /// Has what the next end needs fetched into the cache while the processor goes on. With many tasks at once all of it has
    /// left the cache since they began.
    pub(super) fn fetch_ahead(&self) {
        if let Some(next) = self.agenda.fetch_ahead() {
            self.sets.fetch(next.set);
            self.jobs.fetch(next.job);
        }
    }

    pub(super) fn finish_due(&mut self) -> Result<()> {
        while self.agenda.next_time() == Some(self.now) {
            let Some((_, running)) = self.agenda.pop() else { break };
            self.fetch_ahead();
            self.forget(&running);
            self.finish(running, Fate::Finished)?;
        }
        Ok(())
    }

    /// Tasks have ended for good.
    pub(super) fn finish(&mut self, finish: Running, fate: Fate) -> Result<()> {
        self.free(&finish);
        self.report(&finish, Some(self.now), fate)?;
        self.release(&finish);
        let job = finish.job;
        self.jobs[job].left -= u64::from(finish.count.get());
        self.leave_set(finish.set);
        if self.jobs[job].ended() {
            let (id, user) = (self.jobs[job].id, self.jobs[job].user);
            self.recorder.job(&self.jobs.record(job, self.source.job_names(), Some(self.now)))?;
            self.jobs.free(job);
            self.source.job_finished(id, user, self.now);
        }
        Ok(())
    }

    /// Books that tasks run no longer.
    pub(super) fn free(&mut self, tasks: &Running) {
        let count = tasks.count.get();
        let set = &mut self.sets[tasks.set];
        set.left -= count;
        let (user, partition) = (set.user, set.partition);
        let (demand, footprint) = self.sets.needs(tasks.set);
        self.books.finish(user, demand, footprint, count);
        if let Some(books) = self.books.apart(partition) {
            books.finish(user, demand, footprint, count);
        }
        self.machines.give(tasks.machine, footprint, count);
        if let Some(hosts) = &mut self.hosts {
            hosts.ended(tasks, demand, self.now);
        }
        self.round.freed(tasks.machine);
        self.wake_gangs(tasks.machine);
        self.queues.of(user).for_each(|queue| self.round.rerank(queue));
        self.changed.mark(user);
    }

    /// Forgets a set none of whose tasks is left, and releases what waited for it.
    pub(super) fn leave_set(&mut self, slot: SetSlot) {
        let set = &self.sets[slot];
        if set.left == 0 {
            self.jobs.row_ended(set.job, set.stage, &mut self.released);
            self.sets.free(slot);
        }
    }

    /// Tells of tasks that ran until `finish`, or still run.
    pub(super) fn report(&mut self, tasks: &Running, finish: Option<Time>, fate: Fate) -> Result<()> {
        let set = &self.sets[tasks.set];
        self.recorder.tasks(&TaskRecord {
            name: self.jobs.name(set.job, self.source.job_names()),
            user: set.user,
            partition: set.partition,
            first: u64::from(tasks.first),
            count: tasks.count.get(),
            attempt: set.attempt,
            machine: (self.options.placement != Placement::Pooled).then_some(tasks.machine),
            devices: held::of(&self.devices, tasks),
            submit: set.submit,
            release: set.since,
            start: tasks.start,
            finish,
            fate,
            duration: set.duration,
            demand: self.sets.needs(tasks.set).0,
        })
    }

    /// Reports what is left: running tasks, waiting and held rows, unfinished jobs.
    pub(super) fn close(&mut self) -> Result<()> {
        while let Some((_, running)) = self.agenda.pop() {
            self.report(&running, None, Fate::Running)?;
        }
        for slot in self.sets.by_row() {
            let set = &self.sets[slot];
            if set.waiting == 0 {
                continue;
            }
            let why = match (self.cut, set.held) {
                (true, _) => Stuck::Cut,
                (false, true) => Stuck::Deadlocked,
                (false, false) => Stuck::Starved,
            };
            self.recorder.stuck(&StuckRecord {
                name: self.jobs.name(set.job, self.source.job_names()),
                user: set.user,
                row: set.row,
                tasks: u64::from(set.waiting),
                first: u64::from(set.number),
                attempt: set.attempt,
                submit: set.submit,
                release: (!set.held && set.release <= self.now).then_some(set.since),
                duration: set.duration,
                demand: self.sets.needs(slot).0,
                why,
            })?;
        }
        for slot in self.jobs.by_id() {
            self.recorder.job(&self.jobs.record(slot, self.source.job_names(), None))?;
        }
        Ok(())
    }
}
