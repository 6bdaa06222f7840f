//! Launches: tasks get their machines, and begin at once or on an order of the control plane.
//!
//! A launch updates the books, the machines and the order inside users during the round. The launched tasks begin after the round; only
//! then are their run times computed and their ends scheduled.

use std::num::NonZeroU32;

use super::agenda::Ticket;
use super::change_log::QueueChange;
use super::Kernel;
use super::jobs::SetSlot;
use super::pace;
use super::queues::QueueId;
use crate::engine::extensions::remote::{CoreEvent, OfRow};
use super::running::Running;
use crate::policy::Ask;
use crate::record::Launch;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The last instant that a table can hold, in microseconds.
const END_OF_TIME: u64 = i64::MAX as u64;

impl Kernel<'_> {
    /// Starts the tasks that this round has launched. Errors: [`Kernel::within_time`]'s.
    pub(in crate::engine) fn start_launched(&mut self) -> Result<()> {
        let mut launches = std::mem::take(&mut self.round.launches);
        for launch in launches.drain(..) {
            self.work.sets[launch.set].launch = u32::MAX;
            if self.outside.control.is_some() {
                self.notes.push_event(CoreEvent::Launched(launch));
            } else {
                self.begin_tasks(launch, false)?;
            }
        }
        self.round.launches = launches;
        Ok(())
    }

    /// Begins launched tasks and schedules their end. `again` means that they have begun before, and are not recorded as launched a second
    /// time. Errors: [`Kernel::within_time`]'s.
    pub(in crate::engine) fn begin_tasks(&mut self, mut launch: Running, again: bool) -> Result<Ticket> {
        let reach = self.reach(launch.set, launch.machine);
        let set = &self.work.sets[launch.set];
        let span = pace::on(&self.site.cluster, self.options.distance, set.duration, launch.machine, reach);
        let span = match &self.running.draws {
            Some(draws) if span != Span::ENDLESS => {
                let attempt = draws.attempt(set.row, launch.first, set.attempt, span);
                launch.fails = attempt.fails;
                attempt.span
            }
            _ => span,
        };
        let span = Span(span.0.saturating_add(self.delay_of(&launch).0));
        let end = Time(self.now.0.saturating_add(span.0));
        self.within_time(launch.set, end)?;
        let (user, gang, wait, count) = (set.user, set.gang, self.now.since(set.since), launch.count.get());
        let job = &mut self.work.jobs[launch.job];
        job.start = job.start.min(self.now);
        let (demand, _) = self.work.sets.needs(launch.set);
        if !again {
            self.outside.recorder.launched(&Launch { user, count, gang, reach, wait, demand });
        }
        let ticket = self.running.start(&self.work.sets, launch, end);
        self.notes.started(ticket, &launch, demand, end);
        Ok(ticket)
    }

    /// Makes tasks that have begun with others an entry of their own. Errors: [`Kernel::within_time`]'s.
    pub(in crate::engine) fn go_on(&mut self, tasks: Running) -> Result<Ticket> {
        let reach = self.reach(tasks.set, tasks.machine);
        let duration = self.work.sets[tasks.set].duration;
        let span = pace::on(&self.site.cluster, self.options.distance, duration, tasks.machine, reach);
        let end = Time(tasks.start.0.saturating_add(span.0));
        self.within_time(tasks.set, end)?;
        Ok(self.running.start(&self.work.sets, tasks, end))
    }

    /// Checks that the tables can hold an end; tasks that run until the end of the run have none. Errors: [`Error::Mismatch`].
    pub(in crate::engine) fn within_time(&self, set: SetSlot, end: Time) -> Result<()> {
        if end.0 <= END_OF_TIME || self.work.sets[set].duration == Span::ENDLESS {
            return Ok(());
        }
        let problem = format!(
            "{}: a task of it would end {} s after the origin, and tables hold 292,000 years",
            self.outside.source.locate(self.work.sets[set].row),
            end.seconds()
        );
        Err(Error::Mismatch { problem })
    }

    /// Launches the next task of the queue's head on a machine, or all of a gang as planned.
    pub(in crate::engine) fn launch(&mut self, queue: QueueId, machine: MachineId) {
        let slot = self.work.waiting_head(queue);
        if !self.work.sets[slot].gang {
            return self.launch_set(slot, &[(machine, 1)]);
        }
        let plan = std::mem::take(&mut self.plan);
        self.launch_set(slot, &plan);
        self.plan = plan;
    }

    /// Launches the next tasks of a waiting set, a number on each machine.
    pub(in crate::engine) fn launch_set(&mut self, slot: SetSlot, parts: &[(MachineId, u32)]) {
        let (queue, user) = (self.work.sets[slot].queue, self.work.sets[slot].user);
        let tasks = parts.iter().map(|(_, count)| count).sum();
        let (demand, footprint) = self.work.sets.needs(slot);
        (0..tasks).for_each(|_| self.books.launch(user, demand, footprint));
        if let Some(books) = self.books.apart(self.work.sets[slot].partition) {
            (0..tasks).for_each(|_| books.launch(user, demand, footprint));
        }
        let ask = Ask { footprint, demand, tasks };
        self.outside.policy.launched(&self.work.view(slot), &ask, &self.books);
        self.round.launched = true;
        self.ties.record_launch(user);
        if self.work.queues.has_siblings(queue) {
            self.work.queues.queues_of(user).for_each(|sibling| self.round.rerank(sibling));
        }
        self.notes.changed.mark(user);
        self.outcome.launched += u64::from(tasks);
        let set = &mut self.work.sets[slot];
        set.waiting -= tasks;
        let job = set.job;
        if let Some(ordered) = &mut self.work.ordered {
            ordered.launched(slot, job, tasks, self.now);
        }
        let alone = self.site.devices.is_some() || self.running.draws.is_some();
        for &(machine, count) in parts {
            // Tasks of one set that start together on one machine also end together, so they are one entry. Tasks with devices or with
            // faults are an entry each.
            let (entries, each) = if alone { (count, 1) } else { (1, count) };
            for _ in 0..entries {
                // With devices, tasks are allocated one by one: the devices of a task may depend on the rest of its machine.
                (0..each).for_each(|_| self.site.machines.allocate(machine, self.work.sets.needs(slot).1));
                let set = &mut self.work.sets[slot];
                let first = set.number;
                set.number += each;
                match self.round.launches.get_mut(set.launch as usize).filter(|_| !alone) {
                    Some(last) if last.machine == machine => last.count = last.count.saturating_add(each),
                    _ => {
                        set.launch = self.round.launches.len() as u32;
                        let count = NonZeroU32::new(each).unwrap_or(NonZeroU32::MIN);
                        let running =
                            Running { set: slot, job: set.job, machine, first, count, start: self.now, fails: false };
                        self.round.launches.push(running);
                        self.assign(&running);
                    }
                }
            }
        }
        parts.iter().for_each(|(machine, _)| self.site.scopes.less(*machine, &self.site.machines));
        if self.work.sets[slot].waiting > 0 {
            self.work.renumber(slot);
        } else {
            self.work.remove(slot);
            self.push_queue_change(QueueChange::Left(slot));
            self.note_head(user);
        }
    }

    /// Returns tasks with the present data of their set.
    pub(in crate::engine) fn of_row(&self, tasks: &Running) -> OfRow {
        let set = &self.work.sets[tasks.set];
        OfRow { tasks: *tasks, row: set.row, gang: self.falls_together(tasks.set), endless: self.is_endless(tasks.set) }
    }

    /// Returns whether the tasks of a set lose their units together, as a gang does unless its tasks are marked stable.
    pub(in crate::engine) fn falls_together(&self, set: SetSlot) -> bool {
        let set = &self.work.sets[set];
        set.gang && !set.stable
    }

    /// Returns whether the tasks of a set run until the end of the run.
    pub(in crate::engine) fn is_endless(&self, set: SetSlot) -> bool {
        self.work.sets[set].duration == Span::ENDLESS
    }
}
