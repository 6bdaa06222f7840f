//! Ends of tasks, their sets and jobs, and the end of the run.
//!
//! Every end updates the order inside users, the books and the machines, reports the tasks to the recorder, and removes them from their
//! job. Sets and jobs without remaining tasks are freed, which may release rows that wait for a stage and, in a closed loop, the next job.
//! The end of the run reports running and waiting tasks and unfinished jobs.

use super::change_log::QueueChange;
use super::{Kernel, amounts};
use super::devices;
use super::jobs::{JobSlot, SetSlot};
use crate::engine::extensions::remote::CoreEvent;
use super::running::Running;
use crate::books::Partition;
use crate::record::{Fate, Salvage, Stuck, StuckRecord, TaskRecord};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Span, Time, UserId};

/// Reserved room, and its owner.
#[derive(Clone, Debug)]
pub(in crate::engine) struct ReservedRoom {
    pub user: UserId,
    pub partition: Partition,
    pub machine: MachineId,
    pub count: u32,
    /// The demand of each task.
    pub demand: Resources,
    pub footprint: Resources,
}

impl Kernel<'_> {
    /// Prefetches the state of a user that is about to change; with 100,000 users it has left the cache since its last change.
    pub(in crate::engine) fn fetch_user(&self, user: UserId) {
        self.books.fetch(user);
        self.work.queues.fetch(user);
        self.outside.recorder.fetch(user);
    }

    pub(in crate::engine) fn finish_due(&mut self) -> Result<()> {
        while self.running.next_time() == Some(self.now) {
            let Some(running) = self.running.pop(&self.work.sets) else { break };
            // Prefetches the data of the next end while the processor works on this one. With many concurrent tasks the data have left the
            // cache since the start.
            let next = self.running.fetch_ahead().map(|next| (next.set, next.job));
            if let Some((set, job)) = next {
                self.work.sets.fetch(set);
                self.work.jobs.fetch(job);
            }
            if self.running.draws.is_some() {
                self.running.due.push(running);
                continue;
            }
            if self.outside.control.is_some() {
                self.notes.push_event(CoreEvent::Ended(running));
                continue;
            }
            self.finish(running, Fate::Finished)?;
            if let Some((set, _)) = next {
                self.fetch_user(self.work.sets[set].user);
            }
        }
        Ok(())
    }

    /// Ends running tasks permanently. Errors: the recorder's.
    pub(in crate::engine) fn finish(&mut self, finish: Running, fate: Fate) -> Result<()> {
        if let Some(ordered) = &mut self.work.ordered {
            ordered.over(&finish, true, self.now);
        }
        self.free(&finish);
        self.report(&finish, Some(self.now), fate)?;
        self.release(&finish);
        self.leave_job(finish.job, finish.set, finish.count.get())
    }

    /// Removes a waiting set from its queue permanently, without a start: its task continues in another instance. Errors: the recorder's.
    pub(in crate::engine) fn withdraw(&mut self, slot: SetSlot) -> Result<()> {
        self.dequeue(slot);
        let set = &mut self.work.sets[slot];
        let (job, tasks) = (set.job, std::mem::take(&mut set.waiting));
        set.left -= tasks;
        if let Some(ordered) = &mut self.work.ordered {
            ordered.withdrawn(slot, job);
        }
        self.leave_job(job, slot, tasks)
    }

    /// Removes a waiting set from its queue and the books.
    pub(in crate::engine) fn dequeue(&mut self, slot: SetSlot) {
        let set = &self.work.sets[slot];
        let (user, queue, tasks, partition) = (set.user, set.queue, set.waiting, set.partition);
        self.leave_queue(slot, queue);
        let demand = self.work.sets.needs(slot).0;
        self.books.withdraw(user, tasks, demand);
        if let Some(books) = self.books.apart(partition) {
            books.withdraw(user, tasks, demand);
        }
        self.note_head(user);
        self.push_queue_change(QueueChange::Left(slot));
        self.notes.changed.mark(user);
    }

    /// Subtracts ended or withdrawn tasks of a set from its job. Errors: the recorder's.
    pub(in crate::engine) fn leave_job(&mut self, job: JobSlot, set: SetSlot, tasks: u32) -> Result<()> {
        self.livelock.progress();
        self.work.jobs[job].left -= u64::from(tasks);
        self.leave_set(set);
        if self.work.jobs[job].ended() {
            let (id, user) = (self.work.jobs[job].id, self.work.jobs[job].user);
            self.outside.recorder.job(&self.work.jobs.record(job, self.outside.source.job_names(), Some(self.now)))?;
            self.work.jobs.free(job);
            self.outside.source.job_finished(id, user, self.now);
            self.notes.push_event(CoreEvent::JobOver(id));
        }
        Ok(())
    }

    /// Releases the room of tasks that no longer run.
    pub(in crate::engine) fn free(&mut self, tasks: &Running) {
        self.work.sets[tasks.set].left -= tasks.count.get();
        let held = self.reserved_room(tasks);
        self.give_back(&held);
    }

    /// Returns the room that tasks reserve.
    pub(in crate::engine) fn reserved_room(&self, tasks: &Running) -> ReservedRoom {
        let set = &self.work.sets[tasks.set];
        let (demand, footprint) = self.work.sets.needs(tasks.set);
        let (demand, footprint) = (amounts(demand), amounts(footprint));
        ReservedRoom {
            user: set.user,
            partition: set.partition,
            machine: tasks.machine,
            count: tasks.count.get(),
            demand,
            footprint,
        }
    }

    /// Releases reserved room in the books and on its machine.
    pub(in crate::engine) fn give_back(&mut self, held: &ReservedRoom) {
        let ReservedRoom { user, partition, machine, count, .. } = *held;
        let dims = self.books.dims();
        let (demand, footprint) = (held.demand.slice(dims), held.footprint.slice(dims));
        self.books.finish(user, demand, footprint, count);
        if let Some(books) = self.books.apart(partition) {
            books.finish(user, demand, footprint, count);
        }
        self.site.machines.give(machine, footprint, count);
        self.notes.ended(machine, count, demand);
        self.notes.freed(machine);
        self.round.freed(machine);
        self.work.queues.queues_of(user).for_each(|queue| self.round.rerank(queue));
        self.notes.changed.mark(user);
    }

    /// Frees a set without remaining tasks, and releases rows that waited for it.
    pub(in crate::engine) fn leave_set(&mut self, slot: SetSlot) {
        let set = &self.work.sets[slot];
        if set.left == 0 {
            self.work.jobs.row_ended(set.job, set.stage, &mut self.intake.released);
            self.work.sets.free(slot);
        }
    }

    /// Reports tasks that ran until `finish`, or still run, and do not start again. Errors: the recorder's.
    pub(in crate::engine) fn report(&mut self, tasks: &Running, finish: Option<Time>, fate: Fate) -> Result<()> {
        let given_up = matches!(fate, Fate::Lost | Fate::GivenUp);
        let salvage = Salvage {
            delay: Span(self.delay_of(tasks).0.min(self.now.since(tasks.start).0)),
            forfeited: if given_up { self.work.sets[tasks.set].kept } else { Span::ZERO },
            ..Salvage::default()
        };
        self.report_with(tasks, finish, fate, salvage)
    }

    /// Reports tasks, and how their run time counts. Errors: the recorder's.
    pub(in crate::engine) fn report_with(
        &mut self,
        tasks: &Running,
        finish: Option<Time>,
        fate: Fate,
        salvage: Salvage,
    ) -> Result<()> {
        let set = &self.work.sets[tasks.set];
        self.outside.recorder.tasks(&TaskRecord {
            name: self.work.jobs.name(set.job, self.outside.source.job_names()),
            user: set.user,
            partition: set.partition,
            first: u64::from(tasks.first),
            count: tasks.count.get(),
            attempt: set.attempt,
            backup: set.backup,
            machine: (!self.site.pooled).then_some(tasks.machine),
            devices: devices::held_by(&self.site.devices, tasks),
            submit: set.submit,
            release: set.since,
            start: tasks.start,
            finish,
            fate,
            duration: set.duration,
            salvage,
            demand: self.work.sets.needs(tasks.set).0,
        })
    }

    /// Reports the rest at the end of the run, which is the horizon (`cut`) or a state without future events: running tasks, waiting and
    /// postponed rows, unfinished jobs. Errors: the recorder's.
    pub(in crate::engine) fn close(&mut self, cut: bool) -> Result<()> {
        while let Some(running) = self.running.pop(&self.work.sets) {
            self.report(&running, None, Fate::Running)?;
        }
        for slot in self.work.sets.by_row() {
            let set = &self.work.sets[slot];
            // A backup is reported by the other instance of its task.
            if set.waiting == 0 || set.backup {
                continue;
            }
            let why = match (cut, set.awaits_stage) {
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
                release: (!set.awaits_stage && set.release <= self.now).then_some(set.since),
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
