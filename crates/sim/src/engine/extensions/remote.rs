//! Decisions that a control executes: the granted units, and the progress of each batch of tasks.
//!
//! The messages of a [`Control`](crate::backend::Control) pass between a launch and the start of its tasks, and between their end and the
//! release of their room. [`Remote::carry`] exchanges facts and orders with the control until it has no more orders. The allocation of
//! users in the books is the granted and not revoked units, whether tasks run in them or not.

mod sort;

use std::collections::{HashMap, HashSet};

use crate::engine::kernel::agenda::Ticket;
use crate::engine::kernel::{Kernel, amounts};
use crate::engine::kernel::finish::ReservedRoom;
use crate::engine::kernel::jobs::SetSlot;
use crate::engine::kernel::running::Running;
use crate::backend::{Batch, ControlOrder, Fact};
use crate::cluster::DevicePart;
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MachineId, Resources, Time};

/// A change of the core since the last report to the control.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum CoreEvent {
    /// A set is submitted; its request is not known to the scheduler yet.
    Submitted(SetSlot),
    /// Stopped tasks of a set wait again as this set.
    Again(SetSlot),
    Launched(Running),
    /// Tasks were preempted.
    Stopped(OfRow),
    Ended(Running),
    JobOver(JobId),
    Home(u32, MachineId),
}

/// Tasks with the data of their set, which may no longer exist at the time of the report.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct OfRow {
    pub tasks: Running,
    pub row: u64,
    pub gang: bool,
    pub endless: bool,
}

/// The progress of a batch.
#[derive(Debug)]
enum Progress {
    /// It has room and has not begun, or its workers are gone and it must begin again.
    Granted { tasks: Running, again: bool, number: u64 },
    /// Its tasks run.
    Running(Ticket),
    /// Its workers have completed their tasks.
    Done { tasks: Running, at: Time, number: u64 },
    /// Its tasks are over, and the units are not free yet.
    Over(ReservedRoom, Vec<DevicePart>, u64),
}

/// All batches in progress.
#[derive(Debug, Default)]
pub(in crate::engine) struct Remote {
    /// The live sets of each row, and possibly some that are gone.
    rows: HashMap<u64, Vec<SetSlot>>,
    batches: HashMap<Batch, Progress>,
    /// Per machine and row, units without a task: their number, and the amounts of each.
    spare: HashMap<(MachineId, u64), (u32, Resources)>,
    /// The number of grants and completions so far; it orders batches.
    numbers: u64,
    /// The number of sets with a request that the scheduler does not know yet.
    unlisted: usize,
    /// The number of running batches without an end.
    endless: usize,
    /// Batches that were stopped with the rest of their gang, unknown to the control until the next report.
    gone: HashSet<Batch>,
    orders: Vec<ControlOrder>,
    facts: Vec<Fact>,
}

fn batch(core: &Kernel, tasks: &Running) -> Batch {
    Batch { row: core.work.sets[tasks.set].row, first: tasks.first }
}

impl Remote {
    /// Returns whether any request or batch is in progress; batches without an end count only if the run has a horizon.
    pub fn is_busy(&self, horizon: bool) -> bool {
        self.unlisted > 0 || self.batches.len() > if horizon { 0 } else { self.endless }
    }

    /// Reports changes and executes the control's orders, until it has none. Errors: the control's, the recorder's,
    /// [`Kernel::within_time`]'s.
    pub fn carry(&mut self, core: &mut Kernel, withdrawn: &mut dyn FnMut(&mut Kernel, MachineId)) -> Result<()> {
        loop {
            let event = core.notes.remote.replace(Vec::new()).unwrap_or_default();
            let mut facts = std::mem::take(&mut self.facts);
            facts.clear();
            self.gone.clear();
            for event in event {
                self.apply_event(core, event, &mut facts)?;
            }
            let now = core.now;
            let Some(control) = &mut core.outside.control else { return Ok(()) };
            if !facts.is_empty() {
                control.receive(now, &facts);
            }
            self.facts = facts;
            let mut orders = std::mem::take(&mut self.orders);
            control.act(now, &mut orders)?;
            if orders.is_empty() {
                self.orders = orders;
                return Ok(());
            }
            self.in_order(&mut orders);
            for order in orders.drain(..) {
                self.follow(core, order, withdrawn)?;
            }
            self.orders = orders;
        }
    }

    fn apply_event(&mut self, core: &mut Kernel, event: CoreEvent, facts: &mut Vec<Fact>) -> Result<()> {
        match event {
            CoreEvent::Submitted(slot) => {
                let set = &mut core.work.sets[slot];
                set.listed = false;
                self.unlisted += 1;
                let (row, tasks, stable) = (set.row, set.waiting, set.stable);
                let job = core.work.jobs[core.work.sets[slot].job].id;
                self.rows.entry(row).or_default().push(slot);
                let unit = amounts(core.work.sets.needs(slot).1);
                facts.push(Fact::Submitted { row, job, tasks, unit, stable });
            }
            CoreEvent::Again(slot) => self.again(core, slot),
            CoreEvent::Launched(tasks) => {
                let batch = batch(core, &tasks);
                self.numbers += 1;
                self.batches.insert(batch, Progress::Granted { tasks, again: false, number: self.numbers });
                facts.push(Fact::Granted { batch, count: tasks.count.get(), machine: tasks.machine });
            }
            CoreEvent::Stopped(OfRow { tasks, row, gang, endless }) => {
                // The first tasks of the batch continue.
                let (batch, count) = (Batch { row, first: tasks.first }, tasks.count.get());
                if let Some(Progress::Running(_)) = self.batches.remove(&batch) {
                    self.endless -= usize::from(endless);
                }
                facts.push(Fact::Taken { batch, count, machine: tasks.machine });
                // Some tasks of a gang may not have begun.
                let others = if gang { self.all_of(core, tasks.set) } else { Vec::new() };
                if !others.is_empty() {
                    others.iter().for_each(|tasks| core.notes.push_event(CoreEvent::Stopped(core.of_row(tasks))));
                    core.restart(others, Fate::Revoked)?;
                }
            }
            CoreEvent::Ended(tasks) => {
                let batch = batch(core, &tasks);
                self.numbers += 1;
                self.batches.insert(batch, Progress::Done { tasks, at: core.now, number: self.numbers });
                facts.push(Fact::Done { batch, machine: tasks.machine });
            }
            CoreEvent::JobOver(job) => facts.push(Fact::JobOver { job }),
            CoreEvent::Home(app, machine) => facts.push(Fact::Home { app, machine }),
        }
        Ok(())
    }

    fn follow(
        &mut self,
        core: &mut Kernel,
        order: ControlOrder,
        withdrawn: &mut dyn FnMut(&mut Kernel, MachineId),
    ) -> Result<()> {
        if let ControlOrder::Start(batch)
        | ControlOrder::Halt(batch)
        | ControlOrder::Over(batch)
        | ControlOrder::Split { batch, .. }
        | ControlOrder::Stop { batch, .. } = order
            && self.gone.contains(&batch)
        {
            if let ControlOrder::Split { count, .. } = order {
                self.gone.insert(Batch { first: batch.first + count, ..batch });
            }
            return Ok(());
        }
        match order {
            ControlOrder::List(row) => self.list(core, row, true),
            ControlOrder::Unlist(row) => self.list(core, row, false),
            ControlOrder::Adopt { row, machine, count, unit } => {
                // The units may use room that extensions have reserved; these reservations are withdrawn.
                if !core.site.machines.fits(machine, unit.times(count).slice(core.books.dims())) {
                    withdrawn(core, machine);
                }
                self.adopt(core, (row, machine, count), unit)?;
            }
            ControlOrder::Vacate { row, machine, count } => self.vacate(core, row, machine, count),
            ControlOrder::Start(batch) => self.start(core, batch)?,
            ControlOrder::Halt(batch) => self.halt(core, batch),
            ControlOrder::Over(batch) => self.over(core, batch)?,
            ControlOrder::Free(batch) => match self.batches.remove(&batch) {
                Some(Progress::Over(held, devices, _)) => {
                    core.give_back(&held);
                    core.site.machines.release(held.machine, &devices);
                }
                other => panic!("only an ended batch is freed, and {batch:?} is {other:?}"),
            },
            ControlOrder::Stop { batch, count, fate } => self.stop(core, batch, count, fate)?,
            ControlOrder::Split { batch, count } => self.split(core, batch, count)?,
            ControlOrder::Away(machine) => {
                core.site.count_machine(&mut core.books, machine, false);
                core.site.machines.remove(machine);
                withdrawn(core, machine);
            }
            ControlOrder::Back(machine) => {
                core.site.machines.restore(machine, &core.site.offers[machine.index()]);
                core.serves_more(machine);
                core.site.count_machine(&mut core.books, machine, true);
            }
            ControlOrder::Bar { row, machine, barred } => {
                let slots = self.live(core, row);
                slots.into_iter().for_each(|slot| core.bar(slot, machine, barred));
            }
            ControlOrder::Home { app, last } => {
                let home = core.site.machines.home(last);
                let home = home.or(last).unwrap_or_default();
                core.notes.push_event(CoreEvent::Home(app, home));
            }
        }
        Ok(())
    }

    /// Adds a set of stopped tasks that wait again.
    fn again(&mut self, core: &Kernel, slot: SetSlot) {
        let set = &core.work.sets[slot];
        self.unlisted += usize::from(!set.listed);
        self.rows.entry(set.row).or_default().push(slot);
    }

    /// Returns the live sets of a row.
    fn live(&mut self, core: &mut Kernel, row: u64) -> Vec<SetSlot> {
        // Includes the sets that earlier orders of this report created.
        let event = core.notes.remote.iter_mut().flatten();
        let again = { event }.filter_map(|event| match event {
            CoreEvent::Again(slot) => Some(*slot),
            _ => None,
        });
        let again: Vec<SetSlot> = again.collect();
        again.into_iter().for_each(|slot| self.again(core, slot));
        core.notes.remote.iter_mut().for_each(|event| event.retain(|event| !matches!(event, CoreEvent::Again(_))));
        let Some(slots) = self.rows.get_mut(&row) else { return Vec::new() };
        slots.retain(|slot| core.work.sets.is_of(*slot, row));
        slots.sort_unstable();
        slots.dedup();
        if slots.is_empty() {
            self.rows.remove(&row);
            return Vec::new();
        }
        slots.clone()
    }

    fn list(&mut self, core: &mut Kernel, row: u64, listed: bool) {
        for slot in self.live(core, row) {
            let set = &mut core.work.sets[slot];
            if std::mem::replace(&mut set.listed, listed) == listed || set.waiting == 0 {
                continue;
            }
            if listed {
                self.unlisted -= 1;
                core.enqueue(slot);
            } else {
                self.unlisted += 1;
                core.dequeue(slot);
            }
        }
    }

    /// Assigns existing units to waiting tasks of a row, and reserves room for the units without a task.
    fn adopt(&mut self, core: &mut Kernel, (row, machine, count): (u64, MachineId, u32), unit: Resources) -> Result<()> {
        let mut left = count;
        for slot in self.live(core, row) {
            let set = &mut core.work.sets[slot];
            let take = set.waiting.min(left);
            if take == 0 {
                continue;
            }
            left -= take;
            // Units are independent of gangs: the rest of a gang starts task by task.
            set.gang = false;
            if !core.work.sets[slot].listed {
                core.work.sets[slot].listed = true;
                self.unlisted -= 1;
                core.enqueue(slot);
            }
            let queue = core.work.sets[slot].queue;
            core.launch_set(slot, &[(machine, take)]);
            match core.work.queues.head(queue) {
                Some(_) => core.head_changed(queue),
                None => core.emptied(queue),
            }
            core.start_launched()?;
        }
        if left > 0 {
            let room = unit.times(left);
            core.site.machines.reserve(machine, &room);
            let (held, _) = self.spare.entry((machine, row)).or_insert((0, unit));
            *held += left;
        }
        Ok(())
    }

    fn vacate(&mut self, core: &mut Kernel, row: u64, machine: MachineId, count: u32) {
        let held = self.spare.get_mut(&(machine, row)).filter(|(held, _)| *held >= count);
        let (held, unit) = held.expect("only spare units are returned");
        *held -= count;
        let room = unit.times(count);
        if *held == 0 {
            self.spare.remove(&(machine, row));
        }
        core.site.machines.give_reserved(machine, &room);
        core.round.freed(machine);
    }

    fn start(&mut self, core: &mut Kernel, batch: Batch) -> Result<()> {
        match self.batches.remove(&batch) {
            Some(Progress::Granted { tasks, again, .. }) => {
                let tasks = Running { start: core.now, ..tasks };
                let ticket = core.begin_tasks(tasks, again)?;
                self.endless += usize::from(core.is_endless(tasks.set));
                self.batches.insert(batch, Progress::Running(ticket));
                Ok(())
            }
            other => panic!("only a granted batch starts, and {batch:?} is {other:?}"),
        }
    }

    fn halt(&mut self, core: &mut Kernel, batch: Batch) {
        let tasks = match self.batches.remove(&batch) {
            Some(Progress::Running(ticket)) => {
                let tasks = core.running.cancel(&core.work.sets, ticket).expect("what runs has a ticket");
                self.endless -= usize::from(core.is_endless(tasks.set));
                tasks
            }
            Some(Progress::Done { tasks, .. }) => tasks,
            other => panic!("only a started batch is halted, and {batch:?} is {other:?}"),
        };
        self.numbers += 1;
        self.batches.insert(batch, Progress::Granted { tasks, again: true, number: self.numbers });
    }

    fn over(&mut self, core: &mut Kernel, batch: Batch) -> Result<()> {
        match self.batches.remove(&batch) {
            Some(Progress::Done { tasks, at, number }) => {
                let held = core.reserved_room(&tasks);
                core.work.sets[tasks.set].left -= tasks.count.get();
                if let Some(ordered) = &mut core.work.ordered {
                    ordered.over(&tasks, true, core.now);
                }
                core.report(&tasks, Some(at), Fate::Finished)?;
                let devices = core.take_devices(&tasks);
                self.batches.insert(batch, Progress::Over(held, devices, number));
                core.leave_job(tasks.job, tasks.set, tasks.count.get())
            }
            other => panic!("only a completed batch ends, and {batch:?} is {other:?}"),
        }
    }

    /// Revokes the units of the last tasks of a batch; of a whole gang, unless its tasks are marked stable.
    fn stop(&mut self, core: &mut Kernel, batch: Batch, count: u32, fate: Fate) -> Result<()> {
        let tasks = self.remove_running(core, batch, count);
        let others = if core.falls_together(tasks.set) { self.all_of(core, tasks.set) } else { Vec::new() };
        // The control does not know that these tasks stop together.
        others.iter().for_each(|tasks| core.notes.push_event(CoreEvent::Stopped(core.of_row(tasks))));
        core.restart(std::iter::once(tasks).chain(others).collect(), fate)
    }

    /// Removes all batches of a set and returns their tasks.
    fn all_of(&mut self, core: &mut Kernel, set: SetSlot) -> Vec<Running> {
        let of_gang = |(batch, stage): (&Batch, &Progress)| match stage {
            Progress::Granted { tasks, .. } | Progress::Done { tasks, .. } => (tasks.set == set).then_some(*batch),
            Progress::Running(ticket) => core.running.get(*ticket).filter(|tasks| tasks.set == set).map(|_| *batch),
            Progress::Over(..) => None,
        };
        let mut others: Vec<Batch> = self.batches.iter().filter_map(of_gang).collect();
        others.sort_unstable();
        self.gone.extend(&others);
        others.into_iter().map(|other| self.remove_running(core, other, u32::MAX)).collect()
    }

    fn split(&mut self, core: &mut Kernel, batch: Batch, count: u32) -> Result<()> {
        let rest = |tasks: &Running| tasks.count.get().saturating_sub(count);
        let (first, last, part) = match self.batches.remove(&batch) {
            Some(Progress::Granted { tasks, again, number }) => {
                let (first, last) = tasks.split(rest(&tasks));
                let first = first.map(|tasks| Progress::Granted { tasks, again, number });
                (first, Progress::Granted { tasks: last, again, number }, last)
            }
            Some(Progress::Done { tasks, at, number }) => {
                let (first, last) = tasks.split(rest(&tasks));
                (
                    first.map(|tasks| Progress::Done { tasks, at, number }),
                    Progress::Done { tasks: last, at, number },
                    last,
                )
            }
            Some(Progress::Running(ticket)) => {
                let running = core.running.get_mut(ticket).expect("what runs has a ticket");
                let (first, last) = running.split(running.count.get().saturating_sub(count));
                *running = first.expect("a batch is split in two that are not empty");
                self.endless += usize::from(core.is_endless(last.set));
                let other = core.go_on(last)?;
                (Some(Progress::Running(ticket)), Progress::Running(other), last)
            }
            Some(Progress::Over(held, devices, number)) => {
                let (first, last) =
                    (ReservedRoom { count, ..held.clone() }, ReservedRoom { count: held.count - count, ..held });
                let first_of_last = Batch { first: batch.first + count, ..batch };
                self.batches.insert(batch, Progress::Over(first, devices, number));
                self.batches.insert(first_of_last, Progress::Over(last, Vec::new(), number));
                return Ok(());
            }
            None => panic!("only an existing batch is split, not {batch:?}"),
        };
        self.batches.insert(batch, first.expect("a batch is split in two that are not empty"));
        self.batches.insert(Batch { first: part.first, ..batch }, last);
        Ok(())
    }

    /// Removes the last tasks of a batch in progress and returns them.
    fn remove_running(&mut self, core: &mut Kernel, batch: Batch, count: u32) -> Running {
        let stage = self.batches.remove(&batch);
        let (rest, last) = match stage {
            Some(Progress::Granted { tasks, again, number }) => {
                let (rest, last) = tasks.split(count);
                (rest.map(|tasks| Progress::Granted { tasks, again, number }), last)
            }
            Some(Progress::Done { tasks, at, number }) => {
                let (rest, last) = tasks.split(count);
                (rest.map(|tasks| Progress::Done { tasks, at, number }), last)
            }
            Some(Progress::Running(ticket)) => {
                let running = core.running.get_mut(ticket).expect("what runs has a ticket");
                let (rest, last) = running.split(count);
                match rest {
                    Some(rest) => *running = rest,
                    None => {
                        core.running.cancel(&core.work.sets, ticket);
                        self.endless -= usize::from(core.is_endless(last.set));
                    }
                }
                (rest.map(|_| Progress::Running(ticket)), last)
            }
            other => panic!("only a batch that has not ended is stopped, and {batch:?} is {other:?}"),
        };
        if let Some(rest) = rest {
            self.batches.insert(batch, rest);
        }
        last
    }

    /// Reports unfinished batches at the end of the run. Errors: the recorder's.
    pub fn close(&mut self, core: &mut Kernel) -> Result<()> {
        let mut left: Vec<(Batch, Running)> = self
            .batches
            .drain()
            .filter_map(|(batch, stage)| match stage {
                Progress::Granted { tasks, .. } | Progress::Done { tasks, .. } => Some((batch, tasks)),
                Progress::Running(_) | Progress::Over(..) => None,
            })
            .collect();
        left.sort_unstable_by_key(|(batch, _)| *batch);
        left.into_iter().try_for_each(|(_, tasks)| core.report(&tasks, None, Fate::Running))
    }
}
