//! Ends of tasks, their sets and jobs.
//!
//! Every end updates the job order, the books and the machines, reports the tasks to the recorder, and removes them from their job. Sets
//! and jobs without remaining tasks are freed, which may release rows that wait for a stage and, in a closed loop, the next job. The end
//! of the run is in `report.rs`.

use super::Kernel;
use super::changes::{Change, ChangeKinds};
use super::ids::{JobSlot, SetSlot};
use super::running::{ReservedRoom, Running};
use crate::cluster::DevicePart;
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Time, UserId};

impl Kernel<'_> {
    /// Prefetches the state of a user that is about to change. With 100,000 users, the state has left the cache since the user's last
    /// change.
    pub fn fetch_user(&self, user: UserId) {
        self.books.fetch(user);
        self.work.queues.fetch(user);
        self.context.recorder.fetch(user);
    }

    /// Ends the tasks at their end times, or those of one entry if events are applied one by one. If attempts may fail, or under a backend,
    /// the tasks are only collected or recorded, and an extension ends them. Errors: the recorder's.
    pub fn finish_due(&mut self) -> Result<()> {
        while self.running.next_time() == Some(self.now) {
            let Some(running) = self.running.pop(&self.work.sets) else { break };
            // Prefetches the data of the next end while the processor works on this end. With many concurrent tasks, the data have left
            // the cache since the start of the tasks.
            let next = self.running.fetch_ahead().map(|next| (next.set, next.job));
            if let Some((set, job)) = next {
                self.work.sets.fetch(set);
                self.work.jobs.fetch(job);
            }
            if self.running.attempts.is_some() {
                self.running.due.push(running);
                continue;
            }
            if self.settings.delegates {
                self.changes.push(Change::Completed(running));
                continue;
            }
            self.finish(running, Fate::Finished)?;
            if let Some((set, _)) = next {
                self.fetch_user(self.work.sets[set].user);
            }
            if self.settings.one_by_one {
                break;
            }
        }
        Ok(())
    }

    /// Removes and returns the tasks at their end times, if attempts may fail.
    pub fn take_due(&mut self) -> Vec<Running> {
        std::mem::take(&mut self.running.due)
    }

    /// Ends tasks that completed at `at`. Their room stays reserved until [`Kernel::release_room`]. Returns their room and devices.
    /// Errors: the recorder's.
    pub fn finish_in_place(&mut self, tasks: &Running, at: Time) -> Result<(ReservedRoom, Vec<DevicePart>)> {
        let room = self.reserved_room(tasks);
        self.work.sets[tasks.set].left -= tasks.count.get();
        if let Some(ordered) = &mut self.work.ordered {
            ordered.over(&self.work.sets, tasks, true, self.now);
        }
        self.report(tasks, Some(at), Fate::Finished)?;
        let devices = self.take_devices(tasks);
        self.leave_job(tasks.job, tasks.set, tasks.count.get())?;
        Ok((room, devices))
    }

    /// Releases the room and the devices of tasks that have ended.
    pub fn release_room(&mut self, room: &ReservedRoom, devices: &[DevicePart]) {
        self.give_back(room);
        self.site.machines.release(room.machine, devices);
    }

    /// Ends running tasks permanently; they must not be in the agenda any more. Errors: the recorder's.
    pub fn finish(&mut self, finish: Running, fate: Fate) -> Result<()> {
        if let Some(ordered) = &mut self.work.ordered {
            ordered.over(&self.work.sets, &finish, true, self.now);
        }
        self.free_room(&finish);
        self.report(&finish, Some(self.now), fate)?;
        self.release(&finish);
        self.leave_job(finish.job, finish.set, finish.count.get())
    }

    /// Removes a waiting set from its queue permanently, without a start: its task continues in another instance. Errors: the recorder's.
    pub fn withdraw(&mut self, slot: SetSlot) -> Result<()> {
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
    pub fn dequeue(&mut self, slot: SetSlot) {
        let set = &self.work.sets[slot];
        let (user, queue, tasks, partition) = (set.user, set.queue, set.waiting, set.partition);
        self.leave_queue(slot, queue);
        let demand = self.work.sets.needs(slot).0;
        self.books.withdraw(user, tasks, demand);
        if let Some(books) = self.books.apart(partition) {
            books.withdraw(user, tasks, demand);
        }
        self.note_head(user);
        self.push_queue_change(Change::Left(slot));
        self.changes.users.mark(user);
    }

    /// Subtracts ended or withdrawn tasks of a set from its job. Errors: the recorder's.
    fn leave_job(&mut self, job: JobSlot, set: SetSlot, tasks: u32) -> Result<()> {
        self.livelock.progress();
        self.work.jobs[job].left -= tasks;
        self.leave_set(set);
        if self.work.jobs[job].ended() {
            let (id, user) = (self.work.jobs[job].id, self.work.jobs[job].user);
            self.context.recorder.job(&self.work.jobs.record(job, self.context.source.job_names(), Some(self.now)))?;
            if self.watches() {
                self.watch_end(job);
            }
            self.work.jobs.free(job);
            self.context.source.job_finished(id, user, self.now);
            self.changes.push(Change::JobOver(id));
        }
        Ok(())
    }

    /// Releases the room of tasks that no longer run, and subtracts them from their set.
    pub(super) fn free_room(&mut self, tasks: &Running) {
        self.work.sets[tasks.set].left -= tasks.count.get();
        let room = self.reserved_room(tasks);
        self.give_back(&room);
    }

    /// Returns the room that tasks reserve.
    fn reserved_room(&self, tasks: &Running) -> ReservedRoom {
        let set = &self.work.sets[tasks.set];
        let (demand, footprint) = self.work.sets.needs(tasks.set);
        let (demand, footprint) = (Resources::from_slice(demand), Resources::from_slice(footprint));
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
    fn give_back(&mut self, room: &ReservedRoom) {
        let ReservedRoom { user, partition, machine, count, .. } = *room;
        let dims = self.books.dims();
        let (demand, footprint) = (room.demand.slice(dims), room.footprint.slice(dims));
        self.books.finish(user, demand, footprint, count);
        if let Some(books) = self.books.apart(partition) {
            books.finish(user, demand, footprint, count);
        }
        self.site.machines.give(machine, footprint, count);
        if self.changes.wants(ChangeKinds::ENDED) {
            let amount = self.changes.size(demand) * u64::from(count);
            self.changes.push(Change::Ended { machine, amount });
        }
        self.serves_more(machine);
        self.work.queues.queues_of(user).for_each(|queue| self.line_states.rerank(queue));
        self.changes.users.mark(user);
    }

    /// Frees a set without remaining tasks, and releases rows that waited for it.
    pub(super) fn leave_set(&mut self, slot: SetSlot) {
        let set = &self.work.sets[slot];
        if set.left == 0 {
            let stage = self.work.sets.details(slot).stage;
            self.work.jobs.row_ended(set.job, stage, &mut self.intake.released);
            self.work.sets.free(slot);
        }
    }
}
