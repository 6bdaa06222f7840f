//! Running tasks: their end times, and their order of preemption.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use super::agenda::{Agenda, Ticket};
use super::ids::{JobSlot, SetSlot};
use super::sets::{ActiveSet, Sets};
use crate::books::Partition;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Span, Time, UserId};
use plimsoll_base::visit_values;

/// Equal tasks that started together on one machine, and end together unless they are stopped.
///
/// An entry of the agenda is aligned to 4 bytes, so that it takes 36 bytes and not 40.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[repr(Rust, packed(4))]
pub struct Running {
    pub set: SetSlot,
    pub job: JobSlot,
    pub machine: MachineId,
    pub first: u32,
    pub count: NonZeroU32,
    pub start: Time,
    /// Whether the tasks fail at their end time ([`Attempts`]).
    pub fails: bool,
}

const _: () = assert!(size_of::<Option<Running>>() == 32, "a run has many running tasks");

impl Running {
    /// Splits off the last `count` tasks. Returns the first tasks, if any are left, and the last ones.
    pub fn split(self, count: u32) -> (Option<Running>, Running) {
        match NonZeroU32::new(self.count.get().saturating_sub(count)) {
            None => (None, self),
            Some(rest) => {
                let last = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
                let last = Running { first: self.first + rest.get(), count: last, ..self };
                (Some(Running { count: rest, ..self }), last)
            }
        }
    }
}

/// The course of an attempt to run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The run time, until the attempt ends or fails.
    pub span: Span,
    /// Whether the attempt fails.
    pub fails: bool,
}

/// The course of the attempts of a run: whether each fails, and its run time.
pub trait Attempts: Send {
    /// Returns the course of an attempt that would take `span`, for the task with this row in the trace and this number within its job.
    fn attempt(&self, row: u64, number: u32, attempt: u32, span: Span) -> Attempt;

    /// Returns the run time that an attempt would have if it did not fail.
    fn fault_free_span(&self, row: u64, number: u32, attempt: u32, span: Span) -> Span;
}

/// All running tasks.
pub(super) struct Execution {
    agenda: Agenda<Running>,
    /// Indexes in the order of stopping, if any tasks may be stopped.
    pub victims: Option<Victims>,
    /// The course of each attempt, if tasks fail or straggle: every task is then an entry of its own.
    pub attempts: Option<Box<dyn Attempts>>,
    /// Entries that have reached their end times; only if attempts may fail.
    pub due: Vec<Running>,
}

impl Execution {
    pub fn new(victims: Option<Victims>, attempts: Option<Box<dyn Attempts>>) -> Execution {
        Execution { agenda: Agenda::default(), victims, attempts, due: Vec::new() }
    }

    /// Adds tasks that have started and end at `end`.
    pub fn start(&mut self, sets: &Sets, tasks: Running, end: Time) -> Ticket {
        let ticket = self.agenda.schedule(end, 0, tasks);
        if let Some(victims) = &mut self.victims {
            victims.add(&sets[tasks.set], &tasks, ticket);
        }
        ticket
    }

    /// Removes and returns the tasks that end next.
    pub fn pop(&mut self, sets: &Sets) -> Option<Running> {
        let (_, tasks) = self.agenda.pop()?;
        self.forget(sets, &tasks);
        Some(tasks)
    }

    /// Removes and returns tasks before their end; `None` if they no longer run.
    pub fn cancel(&mut self, sets: &Sets, ticket: Ticket) -> Option<Running> {
        let tasks = self.agenda.cancel(ticket)?;
        self.forget(sets, &tasks);
        Some(tasks)
    }

    fn forget(&mut self, sets: &Sets, tasks: &Running) {
        if let Some(victims) = &mut self.victims {
            victims.remove(&sets[tasks.set], tasks);
        }
    }

    /// Returns the tasks of a ticket, if they still run.
    pub fn get(&self, ticket: Ticket) -> Option<&Running> {
        self.agenda.get(ticket)
    }

    /// Returns the tasks of a ticket for modification, if they still run.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Running> {
        self.agenda.get_mut(ticket)
    }

    /// Returns the instant at which the next tasks end.
    pub fn next_time(&mut self) -> Option<Time> {
        self.agenda.next_time()
    }

    /// Prefetches tasks that end soon, and returns the tasks that end next, for [`Sets::fetch`].
    pub fn fetch_ahead(&self) -> Option<&Running> {
        self.agenda.fetch_ahead()
    }

    /// Returns all running tasks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Running> {
        self.agenda.iter()
    }
}

/// Returns whether tasks may be preempted, to reclaim quota or to make room for another task. Tasks marked stable may not. This rule is
/// valid for all preemptions; a machine that fails stops all of its tasks.
///
/// Source: the third article on FuxiMaster: resources of an online service are never revoked without its consent.
pub fn may_be_stopped(set: &ActiveSet) -> bool {
    !set.is_stable()
}

/// The position of running tasks in the order of stopping. The least urgent task is first, then the latest start, then the last in the
/// trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Victim {
    priority: Reverse<u8>,
    start: Reverse<Time>,
    row: Reverse<u64>,
    first: Reverse<u32>,
}

impl Victim {
    /// Returns the priority: 0 (most urgent) to 9.
    pub fn priority(&self) -> u8 {
        self.priority.0
    }

    /// Returns the position of running tasks.
    pub fn new(set: &ActiveSet, tasks: &Running) -> Victim {
        Victim {
            priority: Reverse(set.priority),
            start: Reverse(tasks.start),
            row: Reverse(set.row),
            first: Reverse(tasks.first),
        }
    }
}

/// Indexes of running tasks, by user, by machine and by gang.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Victims {
    /// By user, the tasks that may be preempted.
    users: Vec<BTreeMap<Victim, Ticket>>,
    /// By machine, all tasks.
    machines: Vec<BTreeMap<Victim, Ticket>>,
    /// All tasks that may be preempted; absent unless waiting tasks may request room.
    all: Option<BTreeMap<Victim, Ticket>>,
    /// By gang, its running tasks, because a gang is stopped as a whole.
    gangs: HashMap<SetSlot, BTreeMap<Victim, Ticket>>,
}

impl Victims {
    /// Creates indexes that include the index of all tasks that may be preempted.
    pub fn of_all() -> Victims {
        Victims { all: Some(BTreeMap::new()), ..Victims::default() }
    }

    pub fn add(&mut self, set: &ActiveSet, tasks: &Running, ticket: Ticket) {
        let (user, victim) = (set.user, Victim::new(set, tasks));
        if set.is_gang() {
            self.gangs.entry(tasks.set).or_default().insert(victim, ticket);
        }
        list(&mut self.machines, tasks.machine.index()).insert(victim, ticket);
        if !may_be_stopped(set) {
            return;
        }
        list(&mut self.users, user.index()).insert(victim, ticket);
        if let Some(all) = &mut self.all {
            all.insert(victim, ticket);
        }
    }

    pub fn remove(&mut self, set: &ActiveSet, tasks: &Running) {
        let victim = Victim::new(set, tasks);
        self.machines[tasks.machine.index()].remove(&victim);
        if may_be_stopped(set) {
            self.users[set.user.index()].remove(&victim);
            if let Some(all) = &mut self.all {
                all.remove(&victim);
            }
        }
        if let Some(gang) = self.gangs.get_mut(&tasks.set).filter(|_| set.is_gang()) {
            gang.remove(&victim);
            if gang.is_empty() {
                self.gangs.remove(&tasks.set);
            }
        }
    }

    /// Returns all running tasks of a gang, in the order of stopping; empty for other sets.
    pub fn parts(&self, set: SetSlot) -> impl Iterator<Item = Ticket> {
        self.gangs.get(&set).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// Returns all running tasks of a gang, the first tasks first; empty for other sets.
    pub fn gang(&self, set: SetSlot) -> Vec<Ticket> {
        // The tasks of a gang started at one instant, so the last task in the trace is the first in the order of stopping.
        self.gangs.get(&set).into_iter().flat_map(|gang| gang.values().rev()).copied().collect()
    }

    /// Returns all tasks that may be preempted, in the order of stopping; empty if this index is not kept.
    pub fn all(&self) -> impl Iterator<Item = (&Victim, &Ticket)> {
        self.all.iter().flatten()
    }

    /// Returns the lowest priority among running tasks that may be preempted; `None` if the index of all tasks is not kept.
    pub fn least_urgent(&self) -> Option<u8> {
        self.all.as_ref()?.first_key_value().map(|(victim, _)| victim.priority())
    }

    /// Returns the ticket of an entry on a machine, if it still runs.
    pub fn find(&self, machine: MachineId, victim: &Victim) -> Option<Ticket> {
        self.machines.get(machine.index())?.get(victim).copied()
    }

    /// Returns all tasks on a machine, in the order of stopping.
    pub fn on(&self, machine: MachineId) -> Vec<Ticket> {
        self.machines.get(machine.index()).into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// Returns the tasks of these users that may be preempted, in the order of stopping.
    pub fn of_users(&self, users: &[UserId]) -> Vec<(&Victim, &Ticket)> {
        let known = users.iter().filter_map(|user| self.users.get(user.index()));
        let mut all: Vec<(&Victim, &Ticket)> = known.flatten().collect();
        all.sort_unstable_by_key(|(victim, _)| **victim);
        all
    }
}

/// Returns the list at an index; extends the lists if necessary.
fn list(lists: &mut Vec<BTreeMap<Victim, Ticket>>, at: usize) -> &mut BTreeMap<Victim, Ticket> {
    if lists.len() <= at {
        lists.resize_with(at + 1, BTreeMap::new);
    }
    &mut lists[at]
}

/// Tasks that may be stopped: the last tasks of one entry, or a whole gang.
pub struct Choice {
    pub tickets: Vec<Ticket>,
    /// The number of tasks to stop.
    pub count: u32,
    /// Whether the tasks are a gang, which is stopped as a whole.
    pub whole: bool,
}

/// The room of tasks on a machine, and its owner.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ReservedRoom {
    pub(super) user: UserId,
    pub(super) partition: Partition,
    pub(super) machine: MachineId,
    pub(super) count: u32,
    /// The demand of each task.
    pub(super) demand: Resources,
    pub(super) footprint: Resources,
}

impl ReservedRoom {
    /// Divides the room into the room of the first `count` tasks and the room of the others.
    pub fn split(self, count: u32) -> (ReservedRoom, ReservedRoom) {
        (ReservedRoom { count, ..self.clone() }, ReservedRoom { count: self.count - count, ..self })
    }
}

impl Checkpoint for Execution {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Execution { agenda, victims, attempts: _, due } = self;
        visit_values!(visitor; agenda, victims, due);
        Ok(())
    }
}
