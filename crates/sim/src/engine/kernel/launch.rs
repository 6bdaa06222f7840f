//! Launches: tasks get their machines, and begin at once or on an order of the control plane.
//!
//! A launch updates the books, the machines and the job order during the round. The launched tasks begin after the round; only then are
//! their run times computed and their ends scheduled.

use std::num::NonZeroU32;

use super::Kernel;
use super::agenda::Ticket;
use super::changes::{Change, ChangeKinds, TasksOfRow};
use super::ids::SetSlot;
use super::pace;
use super::running::Running;
use super::sets::SetDetails;
use crate::policy::Ask;
use crate::record::Launch;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The last instant that a table can hold, in microseconds.
const END_OF_TIME: u64 = i64::MAX as u64;

impl Kernel<'_> {
    /// Starts the tasks that this round has launched. Errors: [`Kernel::within_time`]'s.
    pub fn start_launched(&mut self) -> Result<()> {
        let mut launches = std::mem::take(&mut self.launches);
        for launch in launches.drain(..) {
            self.work.sets[launch.set].launch = u32::MAX;
            if self.settings.delegates {
                self.changes.push(Change::Launched(launch));
            } else {
                self.begin_tasks(launch, false)?;
            }
        }
        self.launches = launches;
        Ok(())
    }

    /// Begins launched tasks and schedules their end. `again` means that the tasks have begun before, so that they are not recorded as
    /// launched a second time. Errors: [`Kernel::within_time`]'s.
    pub fn begin_tasks(&mut self, mut launch: Running, again: bool) -> Result<Ticket> {
        let reach = self.reach(launch.set, launch.machine);
        let (set, details) = (&self.work.sets[launch.set], self.work.sets.details(launch.set));
        let span = pace::on(&self.site.cluster, self.settings.distance, set.duration, launch.machine, reach);
        let span = match &self.running.attempts {
            Some(attempts) if span != Span::ENDLESS => {
                let attempt = attempts.attempt(set.row, launch.first, details.attempt, span);
                launch.fails = attempt.fails;
                attempt.span
            }
            _ => span,
        };
        let span = Span(span.0.saturating_add(self.delay_of(&launch).0));
        let end = Time(self.now.0.saturating_add(span.0));
        self.within_time(launch.set, end)?;
        let (user, gang, wait, count) = (set.user, set.is_gang(), self.now.since(details.since), launch.count.get());
        let job = &mut self.work.jobs[launch.job];
        job.start = job.start.min(self.now);
        let (demand, _) = self.work.sets.needs(launch.set);
        if !again {
            self.context.recorder.launched(&Launch { user, count, gang, reach, wait, demand });
        }
        let ticket = self.running.start(&self.work.sets, launch, end);
        if self.changes.wants(ChangeKinds::STARTED) {
            let size = self.changes.size(demand);
            self.changes.push(Change::Started { ticket, tasks: launch, size, end });
        }
        Ok(ticket)
    }

    /// Divides a running entry: all tasks after the first `count` become a new entry. Returns their ticket and the tasks. Panics: unless
    /// the entry runs and has more than `count` tasks (a programmer error). Errors: [`Kernel::within_time`]'s.
    pub fn split(&mut self, ticket: Ticket, count: u32) -> Result<(Ticket, Running)> {
        let running = self.running.get_mut(ticket).expect("what runs has a ticket");
        let (first, tasks) = running.split(running.count.get().saturating_sub(count));
        *running = first.expect("a batch is split in two that are not empty");
        let reach = self.reach(tasks.set, tasks.machine);
        let duration = self.work.sets[tasks.set].duration;
        let span = pace::on(&self.site.cluster, self.settings.distance, duration, tasks.machine, reach);
        let end = Time(tasks.start.0.saturating_add(span.0));
        self.within_time(tasks.set, end)?;
        Ok((self.running.start(&self.work.sets, tasks, end), tasks))
    }

    /// Moves the end of running tasks to another instant. Returns their new ticket; `None` if the tasks no longer run. Errors:
    /// [`Kernel::within_time`]'s.
    pub fn reschedule(&mut self, ticket: Ticket, end: Time) -> Result<Option<Ticket>> {
        let Some(tasks) = self.running.cancel(&self.work.sets, ticket) else { return Ok(None) };
        self.within_time(tasks.set, end)?;
        Ok(Some(self.running.start(&self.work.sets, tasks, end)))
    }

    /// Checks that the tables can hold an end; tasks that run until the end of the run have none. Errors: [`Error::Mismatch`].
    fn within_time(&self, set: SetSlot, end: Time) -> Result<()> {
        if end.0 <= END_OF_TIME || self.work.sets[set].duration == Span::ENDLESS {
            return Ok(());
        }
        let problem = format!(
            "{}: a task of it would end {} s after the origin, and tables hold 292,000 years",
            self.context.source.locate(self.work.sets[set].row),
            end.seconds()
        );
        Err(Error::Mismatch { problem })
    }

    /// Returns the sets launched in this round with tasks that do not run yet, with the number of tasks of each entry.
    pub fn launched_now(&self) -> impl Iterator<Item = (SetSlot, u32)> {
        self.launches.iter().map(|tasks| (tasks.set, tasks.count.get()))
    }

    /// Launches the next tasks of a waiting set, with the given number on each machine. The machines must have room. The tasks begin when
    /// [`Kernel::start_launched`] is called. The caller updates the state of the queue.
    pub fn launch(&mut self, slot: SetSlot, parts: &[(MachineId, u32)]) {
        let (queue, user) = (self.work.sets[slot].queue, self.work.sets[slot].user);
        let tasks = parts.iter().map(|(_, count)| count).sum();
        let (demand, footprint) = self.work.sets.needs(slot);
        (0..tasks).for_each(|_| self.books.launch(user, demand, footprint));
        if let Some(books) = self.books.apart(self.work.sets[slot].partition) {
            (0..tasks).for_each(|_| books.launch(user, demand, footprint));
        }
        let ask = Ask { footprint, demand, tasks };
        self.context.policy.launched(&self.work.view(slot), &ask, &self.books);
        self.launched = true;
        self.ties.record_launch(user);
        if self.work.queues.has_siblings(queue) {
            self.work.queues.queues_of(user).for_each(|sibling| self.line_states.rerank(sibling));
        }
        self.changes.users.mark(user);
        self.outcome.launched += u64::from(tasks);
        let set = &mut self.work.sets[slot];
        set.waiting -= tasks;
        if let Some(ordered) = &mut self.work.ordered {
            ordered.launched(&self.work.sets, slot, tasks, self.now);
        }
        let alone = self.site.devices.is_some() || self.running.attempts.is_some();
        for &(machine, count) in parts {
            // Tasks of one set that start together on one machine also end together, so they are one entry. With devices or faults, each
            // task is an entry of its own.
            let (entries, each) = if alone { (count, 1) } else { (1, count) };
            for _ in 0..entries {
                // With devices, tasks are allocated one by one, because the choice of a task's devices depends on the free devices.
                (0..each).for_each(|_| self.site.machines.allocate(machine, self.work.sets.needs(slot).1));
                let set = &mut self.work.sets[slot];
                let first = set.number;
                set.number += each;
                match self.launches.get_mut(set.launch as usize).filter(|_| !alone) {
                    Some(last) if last.machine == machine => last.count = last.count.saturating_add(each),
                    _ => {
                        set.launch = self.launches.len() as u32;
                        let count = NonZeroU32::new(each).unwrap_or(NonZeroU32::MIN);
                        let running =
                            Running { set: slot, job: set.job, machine, first, count, start: self.now, fails: false };
                        self.launches.push(running);
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
            self.push_queue_change(Change::Left(slot));
            self.note_head(user);
        }
    }

    /// Returns tasks with the present data of their set.
    pub fn with_row(&self, tasks: &Running) -> TasksOfRow {
        let (set, gang, endless) = (tasks.set, self.stops_together(tasks.set), self.is_endless(tasks.set));
        TasksOfRow { tasks: *tasks, row: self.work.sets[set].row, gang, endless }
    }

    /// Returns whether the tasks of a set lose their units together, which is the case for a gang unless its tasks are marked stable.
    pub fn stops_together(&self, set: SetSlot) -> bool {
        let set = &self.work.sets[set];
        set.is_gang() && !set.is_stable()
    }

    /// Returns the details of a set.
    pub fn details(&self, slot: SetSlot) -> SetDetails {
        self.work.sets.details(slot)
    }

    /// Returns whether the tasks of a set run until the end of the run.
    pub fn is_endless(&self, set: SetSlot) -> bool {
        self.work.sets[set].duration == Span::ENDLESS
    }
}
