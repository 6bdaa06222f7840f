//! The state of decisions that a control executes: granted units, and the progress of each batch of tasks.
//!
//! The messages of a [`Control`](crate::backend::Control) are exchanged between a launch and the start of its tasks, and between their end
//! and the release of their room. [`Remote::carry`] exchanges facts and orders with the control until the control has no more orders. In
//! the books, the allocation of a user consists of the units that were granted and not revoked, whether or not tasks run in them.

mod sort;

use std::collections::{HashMap, HashSet};

use crate::backend::{Batch, Control, ControlOrder, Fact};
use crate::cluster::DevicePart;
use crate::engine::kernel::{Change, Kernel, Party, Reader, ReservedRoom, Running, SetSlot, TasksOfRow, Ticket};
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Time};

/// A change that the control has not received yet.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Change(Change),
    /// The machine for the master of an application.
    Home(u32, MachineId),
}

/// The progress of a batch.
#[derive(Debug)]
enum Progress {
    /// The batch has room and has not begun, or its workers are gone and it must begin again.
    Granted { tasks: Running, again: bool, number: u64 },
    /// The tasks run.
    Running(Ticket),
    /// The workers have completed the tasks.
    Done { tasks: Running, at: Time, number: u64 },
    /// The tasks are over, but their units are not free yet.
    Over(ReservedRoom, Vec<DevicePart>, u64),
}

/// All batches in progress, and the control that executes them.
pub struct Remote<'a> {
    pub control: Party<'a, dyn Control + 'a>,
    reader: Reader,
    pending: Vec<Pending>,
    /// The sets of each row. The lists may contain sets that no longer exist.
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
    /// Batches that were stopped with the rest of their gang. The control does not know this until the next report.
    gone: HashSet<Batch>,
    orders: Vec<ControlOrder>,
    facts: Vec<Fact>,
}

fn batch(kernel: &Kernel, tasks: &Running) -> Batch {
    Batch { row: kernel.set(tasks.set).row, first: tasks.first }
}

impl<'a> Remote<'a> {
    /// Creates the state without batches.
    pub fn new(control: Party<'a, dyn Control + 'a>, reader: Reader) -> Remote<'a> {
        Remote {
            control,
            reader,
            pending: Vec::new(),
            rows: HashMap::new(),
            batches: HashMap::new(),
            spare: HashMap::new(),
            numbers: 0,
            unlisted: 0,
            endless: 0,
            gone: HashSet::new(),
            orders: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// Returns whether any request or batch is in progress; batches without an end count only if the run has a horizon.
    pub fn is_busy(&self, horizon: bool) -> bool {
        self.unlisted > 0 || self.batches.len() > if horizon { 0 } else { self.endless }
    }

    /// Reports changes and executes the control's orders, until it has none. Errors: the control's, the recorder's,
    /// [`Kernel::within_time`]'s.
    pub fn carry(&mut self, kernel: &mut Kernel, withdrawn: &mut dyn FnMut(&mut Kernel, MachineId)) -> Result<()> {
        loop {
            self.pull(kernel);
            let pending = std::mem::take(&mut self.pending);
            let mut facts = std::mem::take(&mut self.facts);
            facts.clear();
            self.gone.clear();
            for pending in pending {
                match pending {
                    Pending::Change(change) => self.apply_change(kernel, change, &mut facts)?,
                    Pending::Home(app, machine) => facts.push(Fact::Home { app, machine }),
                }
            }
            let now = kernel.now();
            let control = &mut self.control;
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
                self.follow(kernel, order, withdrawn)?;
            }
            self.orders = orders;
        }
    }

    fn apply_change(&mut self, kernel: &mut Kernel, change: Change, facts: &mut Vec<Fact>) -> Result<()> {
        match change {
            Change::Submitted(slot) => {
                kernel.withhold(slot);
                self.unlisted += 1;
                let set = kernel.set(slot);
                let (row, tasks, stable, job) = (set.row, set.waiting, set.is_stable(), kernel.job_id(slot));
                self.rows.entry(row).or_default().push(slot);
                let unit = kernel.footprint(slot);
                facts.push(Fact::Submitted { row, job, tasks, unit, stable });
            }
            Change::Again { slot, .. } => self.again(kernel, slot),
            Change::Launched(tasks) => {
                let batch = batch(kernel, &tasks);
                self.numbers += 1;
                self.batches.insert(batch, Progress::Granted { tasks, again: false, number: self.numbers });
                facts.push(Fact::Granted { batch, count: tasks.count.get(), machine: tasks.machine });
            }
            Change::Stopped(TasksOfRow { tasks, row, gang, endless }) => {
                // The first tasks of the batch continue.
                let (batch, count) = (Batch { row, first: tasks.first }, tasks.count.get());
                if let Some(Progress::Running(_)) = self.batches.remove(&batch) {
                    self.endless -= usize::from(endless);
                }
                facts.push(Fact::Taken { batch, count, machine: tasks.machine });
                // Some tasks of a gang may not have begun.
                let others = if gang { self.all_of(kernel, tasks.set) } else { Vec::new() };
                if !others.is_empty() {
                    self.push_stopped(kernel, &others);
                    kernel.restart(others, Fate::Revoked)?;
                }
            }
            Change::Completed(tasks) => {
                let batch = batch(kernel, &tasks);
                self.numbers += 1;
                self.batches.insert(batch, Progress::Done { tasks, at: kernel.now(), number: self.numbers });
                facts.push(Fact::Done { batch, machine: tasks.machine });
            }
            Change::JobOver(job) => facts.push(Fact::JobOver { job }),
            _ => {}
        }
        Ok(())
    }

    fn follow(
        &mut self,
        kernel: &mut Kernel,
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
            ControlOrder::List(row) => self.list(kernel, row, true),
            ControlOrder::Unlist(row) => self.list(kernel, row, false),
            ControlOrder::Adopt { row, machine, count, unit } => {
                // The units may use room that extensions have reserved; these reservations are withdrawn.
                if !kernel.machines().fits(machine, unit.times(count).slice(kernel.books().dims())) {
                    withdrawn(kernel, machine);
                }
                self.adopt(kernel, (row, machine, count), unit)?;
            }
            ControlOrder::Vacate { row, machine, count } => self.vacate(kernel, row, machine, count),
            ControlOrder::Start(batch) => self.start(kernel, batch)?,
            ControlOrder::Halt(batch) => self.halt(kernel, batch),
            ControlOrder::Over(batch) => self.over(kernel, batch)?,
            ControlOrder::Free(batch) => match self.batches.remove(&batch) {
                Some(Progress::Over(held, devices, _)) => {
                    kernel.release_room(&held, &devices);
                }
                other => panic!("only an ended batch is freed, and {batch:?} is {other:?}"),
            },
            ControlOrder::Stop { batch, count, fate } => self.stop(kernel, batch, count, fate)?,
            ControlOrder::Split { batch, count } => self.split(kernel, batch, count)?,
            ControlOrder::Away(machine) => {
                kernel.remove_machine(machine);
                withdrawn(kernel, machine);
            }
            ControlOrder::Back(machine) => {
                kernel.restore_machine(machine);
            }
            ControlOrder::Bar { row, machine, barred } => {
                let slots = self.live(kernel, row);
                slots.into_iter().for_each(|slot| kernel.exclude_machine(slot, machine, barred));
            }
            ControlOrder::Home { app, last } => {
                let home = kernel.find_home(last).or(last).unwrap_or_default();
                self.pull(kernel);
                self.pending.push(Pending::Home(app, home));
            }
        }
        Ok(())
    }

    /// Reads the changes of the kernel that the control has not received yet.
    fn pull(&mut self, kernel: &mut Kernel) {
        while let Some(change) = kernel.next_change(self.reader) {
            self.pending.push(Pending::Change(change));
        }
    }

    /// Adds a report that tasks of a gang were stopped, which the control does not know.
    fn push_stopped(&mut self, kernel: &mut Kernel, tasks: &[Running]) {
        self.pull(kernel);
        let stopped = tasks.iter().map(|tasks| Pending::Change(Change::Stopped(kernel.with_row(tasks))));
        self.pending.extend(stopped);
    }

    /// Adds a set of stopped tasks that wait again.
    fn again(&mut self, kernel: &Kernel, slot: SetSlot) {
        let set = kernel.set(slot);
        self.unlisted += usize::from(!set.is_listed());
        self.rows.entry(set.row).or_default().push(slot);
    }

    /// Returns the live sets of a row.
    fn live(&mut self, kernel: &mut Kernel, row: u64) -> Vec<SetSlot> {
        // Reads the change log first, because earlier orders of this report may have created sets.
        self.pull(kernel);
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|pending| match pending {
            Pending::Change(Change::Again { slot, .. }) => {
                self.again(kernel, *slot);
                false
            }
            _ => true,
        });
        self.pending = pending;
        let Some(slots) = self.rows.get_mut(&row) else { return Vec::new() };
        slots.retain(|slot| kernel.is_of_row(*slot, row));
        slots.sort_unstable();
        slots.dedup();
        if slots.is_empty() {
            self.rows.remove(&row);
            return Vec::new();
        }
        slots.clone()
    }

    fn list(&mut self, kernel: &mut Kernel, row: u64, listed: bool) {
        for slot in self.live(kernel, row) {
            if kernel.list(slot, listed) {
                self.unlisted = if listed { self.unlisted - 1 } else { self.unlisted + 1 };
            }
        }
    }

    /// Assigns existing units to waiting tasks of a row, and reserves room for the units without a task.
    fn adopt(
        &mut self,
        kernel: &mut Kernel,
        (row, machine, count): (u64, MachineId, u32),
        unit: Resources,
    ) -> Result<()> {
        let mut left = count;
        for slot in self.live(kernel, row) {
            let take = kernel.set(slot).waiting.min(left);
            if take == 0 {
                continue;
            }
            left -= take;
            // Units are adopted one by one, so the rest of a gang starts task by task.
            kernel.dissolve_gang(slot);
            self.unlisted -= usize::from(kernel.list(slot, true));
            let queue = kernel.set(slot).queue;
            kernel.launch(slot, &[(machine, take)]);
            kernel.queue_served(queue);
            kernel.start_launched()?;
        }
        if left > 0 {
            let room = unit.times(left);
            kernel.reserve(machine, &room);
            let (held, _) = self.spare.entry((machine, row)).or_insert((0, unit));
            *held += left;
        }
        Ok(())
    }

    fn vacate(&mut self, kernel: &mut Kernel, row: u64, machine: MachineId, count: u32) {
        let held = self.spare.get_mut(&(machine, row)).filter(|(held, _)| *held >= count);
        let (held, unit) = held.expect("only spare units are returned");
        *held -= count;
        let room = unit.times(count);
        if *held == 0 {
            self.spare.remove(&(machine, row));
        }
        kernel.release_reservation(machine, &room);
    }

    fn start(&mut self, kernel: &mut Kernel, batch: Batch) -> Result<()> {
        match self.batches.remove(&batch) {
            Some(Progress::Granted { tasks, again, .. }) => {
                let tasks = Running { start: kernel.now(), ..tasks };
                let ticket = kernel.begin_tasks(tasks, again)?;
                self.endless += usize::from(kernel.is_endless(tasks.set));
                self.batches.insert(batch, Progress::Running(ticket));
                Ok(())
            }
            other => panic!("only a granted batch starts, and {batch:?} is {other:?}"),
        }
    }

    fn halt(&mut self, kernel: &mut Kernel, batch: Batch) {
        let tasks = match self.batches.remove(&batch) {
            Some(Progress::Running(ticket)) => {
                let tasks = kernel.cancel(ticket).expect("what runs has a ticket");
                self.endless -= usize::from(kernel.is_endless(tasks.set));
                tasks
            }
            Some(Progress::Done { tasks, .. }) => tasks,
            other => panic!("only a started batch is halted, and {batch:?} is {other:?}"),
        };
        self.numbers += 1;
        self.batches.insert(batch, Progress::Granted { tasks, again: true, number: self.numbers });
    }

    fn over(&mut self, kernel: &mut Kernel, batch: Batch) -> Result<()> {
        match self.batches.remove(&batch) {
            Some(Progress::Done { tasks, at, number }) => {
                let (room, devices) = kernel.finish_in_place(&tasks, at)?;
                self.batches.insert(batch, Progress::Over(room, devices, number));
                Ok(())
            }
            other => panic!("only a completed batch ends, and {batch:?} is {other:?}"),
        }
    }

    /// Revokes the units of the last tasks of a batch. For a gang, revokes the units of all its tasks, unless they are marked stable.
    fn stop(&mut self, kernel: &mut Kernel, batch: Batch, count: u32, fate: Fate) -> Result<()> {
        let tasks = self.remove_running(kernel, batch, count);
        let others = if kernel.stops_together(tasks.set) { self.all_of(kernel, tasks.set) } else { Vec::new() };
        // The control does not know that the other tasks of the gang stop too.
        self.push_stopped(kernel, &others);
        kernel.restart(std::iter::once(tasks).chain(others).collect(), fate)
    }

    /// Removes all batches of a set and returns their tasks.
    fn all_of(&mut self, kernel: &mut Kernel, set: SetSlot) -> Vec<Running> {
        let of_gang = |(batch, stage): (&Batch, &Progress)| match stage {
            Progress::Granted { tasks, .. } | Progress::Done { tasks, .. } => (tasks.set == set).then_some(*batch),
            Progress::Running(ticket) => kernel.running(*ticket).filter(|tasks| tasks.set == set).map(|_| *batch),
            Progress::Over(..) => None,
        };
        let mut others: Vec<Batch> = self.batches.iter().filter_map(of_gang).collect();
        others.sort_unstable();
        self.gone.extend(&others);
        others.into_iter().map(|other| self.remove_running(kernel, other, u32::MAX)).collect()
    }

    fn split(&mut self, kernel: &mut Kernel, batch: Batch, count: u32) -> Result<()> {
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
                let (other, last) = kernel.split(ticket, count)?;
                self.endless += usize::from(kernel.is_endless(last.set));
                (Some(Progress::Running(ticket)), Progress::Running(other), last)
            }
            Some(Progress::Over(held, devices, number)) => {
                let (first, last) = held.split(count);
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
    fn remove_running(&mut self, kernel: &mut Kernel, batch: Batch, count: u32) -> Running {
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
                let (rest, last) = kernel.cancel_last(ticket, count);
                self.endless -= usize::from(!rest && kernel.is_endless(last.set));
                (rest.then_some(Progress::Running(ticket)), last)
            }
            other => panic!("only a batch that has not ended is stopped, and {batch:?} is {other:?}"),
        };
        if let Some(rest) = rest {
            self.batches.insert(batch, rest);
        }
        last
    }

    /// Reports unfinished batches at the end of the run. Errors: the recorder's.
    pub fn close(&mut self, kernel: &mut Kernel) -> Result<()> {
        let mut left: Vec<(Batch, Running)> = self
            .batches
            .drain()
            .filter_map(|(batch, stage)| match stage {
                Progress::Granted { tasks, .. } | Progress::Done { tasks, .. } => Some((batch, tasks)),
                Progress::Running(_) | Progress::Over(..) => None,
            })
            .collect();
        left.sort_unstable_by_key(|(batch, _)| *batch);
        left.into_iter().try_for_each(|(_, tasks)| kernel.report(&tasks, None, Fate::Running))
    }
}
