//! The interface between the engine and a rule that stops running tasks by choice: the victims, and the reason.
//!
//! A rule proposes and the engine decides: it checks a proposal, gives notice, stops the tasks, and reserves their room or leaves it
//! available, as the proposal requires. Tasks marked stable are never preempted, and are hidden from rules; a gang is stopped as a whole or
//! not at all.

use std::ops::ControlFlow;

use super::{Ask, Groups, Queue, Rank, Stale};
use crate::books::{Books, Partition};
use crate::cluster::PlannedRoom;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, Time, UserId};

/// A gang that has running tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gang {
    /// Tasks of one gang have the same number.
    pub number: u32,
    /// How many of it run.
    pub tasks: u32,
}

/// Equal running tasks that may be stopped by choice: they started together on one machine.
#[derive(Clone, Copy, Debug)]
pub struct RunningTasks<'a> {
    /// The key of these tasks in a proposal.
    pub key: u64,
    /// The user that they belong to.
    pub user: UserId,
    /// The partition that they are booked under besides their user.
    pub partition: Partition,
    /// Their priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// The key of the order inside users ([`Inside`](super::Inside)): the higher, the further behind; 0 unless the rule uses it.
    pub order: u128,
    /// Where they run.
    pub machine: MachineId,
    /// Their row in the trace.
    pub row: u64,
    /// When they could have started at the earliest, and their place among those of that instant.
    pub since: (Time, u64),
    /// When they started.
    pub start: Time,
    /// The number of tasks that are not asked yet.
    pub count: u32,
    /// The amount that each reserves, through the policy's lens.
    pub footprint: &'a [u64],
    /// The gang that they belong to, if they do: with any of them the whole gang is stopped.
    pub gang: Option<Gang>,
}

/// The task set that a user would start next.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The user's line, as it is ranked.
    pub queue: Queue,
    /// The amount that each task reserves, through the policy's lens.
    pub footprint: Resources,
    /// How many tasks of it wait.
    pub tasks: u32,
    /// Whether all of them start together or none.
    pub gang: bool,
}

/// The running tasks that a rule may choose from, in the order of stopping: the least urgent first, then the latest start, then the last in
/// the trace.
pub trait RunningView {
    /// Calls `hear` for each, until it breaks.
    fn all(&self, hear: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>);

    /// The same of these users' alone.
    fn of_users(&self, users: &[UserId], hear: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>);

    /// The task set that a user would start next, if it waits for anything.
    fn next(&self, user: UserId) -> Option<Head>;

    /// The amounts that a machine has free, through the policy's lens.
    fn free(&self, machine: MachineId) -> Resources;

    /// Returns the machine that the run's placement rule chooses for a task that reserves these amounts if the machines in
    /// `planned`, sorted by machine, have those amounts free ([`Machines::find_planned`](crate::cluster::Machines::find_planned)).
    /// All machines count, wherever the task may run.
    fn find(&self, need: &Resources, planned: &[PlannedRoom]) -> Option<MachineId>;

    /// Returns whether the placement rule chooses the first machine with room.
    fn is_first_fit(&self) -> bool;

    /// The user's name.
    fn name(&self, user: UserId) -> &str;

    /// The groups of users that the policy keeps, if it does and the rule is not its own.
    fn groups(&self) -> Option<&dyn Groups>;

    /// The policy's shares, if its ranks are such and the rule is not its own.
    fn shares(&self) -> Option<&dyn Shares>;

    /// The amounts that a user has asked for and not got yet, and those of its running tasks that were asked for.
    fn pending(&self, user: UserId) -> Pending;

    /// A number that changes whenever tasks may have been started or stopped while tasks are proposed for others: what a rule has
    /// worked out holds as long.
    fn version(&self) -> u64;
}

/// The amounts that are to change hands, through the policy's lens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Of the tasks that a user will start.
    pub gains: Resources,
    /// Of its running tasks that will be stopped; of a gang all of them.
    pub losses: Resources,
}

/// A policy whose rank of a user is a share: a function of the user's allocation alone.
pub trait Shares {
    /// The rank of a user if it held these amounts, through the policy's lens. More of anything ranks no earlier.
    fn rank_with(&self, user: UserId, held: &[u64], books: &Books) -> Rank;
}

/// The use of the room of stopped tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It is kept for the task that they are stopped for.
    Kept,
    /// Whichever task is first in line may have it.
    Open,
}

/// A proposal: tasks to stop, by key, and how many of each; the last are spared first if not all are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victims {
    /// The tasks.
    pub tasks: Vec<(u64, u32)>,
    /// The use of their room.
    pub room: Room,
    /// The beneficiary and the rule, if the policy states them: for the log of decisions.
    pub cause: Option<Cause>,
}

/// The beneficiary of a preemption, and the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The user that is to have their room.
    pub user: UserId,
    /// The rule, in the policy's own words.
    pub rule: &'static str,
}

/// The answer of [`Preemption::reclaim`]: tasks to stop, and users to look at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaims {
    /// Tasks to stop.
    pub victims: Vec<Victims>,
    /// Users with a rank that may have changed, or waiting users to try again, as in [`Policy::prepare`](super::Policy::prepare): a policy
    /// may decide only here, where it sees the running tasks.
    pub stale: Stale,
}

impl Default for Reclaims {
    fn default() -> Reclaims {
        Reclaims { victims: Vec::new(), stale: Stale::None }
    }
}

/// A rule that stops running tasks by choice. Every method defaults to nothing.
pub trait Preemption {
    /// Proposes tasks to stop for the next task of a queue, which fits nowhere: tasks of *one* machine on which it fits then. `running`
    /// contains the tasks on machines that it may use, except tasks that started at this instant: otherwise two tasks could stop each other
    /// without time advancing.
    ///
    /// Errors end the run: a rule that makes no sense with the policy.
    fn propose(
        &mut self,
        _queue: &Queue,
        _ask: &Ask,
        _running: &dyn RunningView,
        _books: &Books,
    ) -> Result<Option<Victims>> {
        Ok(None)
    }

    /// Returns tasks to stop at once on the policy's own account, with room that is open to all. Called after every
    /// [`Policy::prepare`](super::Policy::prepare), which is called again if tasks were stopped. Errors end the run.
    fn reclaim(&mut self, _now: Time, _running: &dyn RunningView, _books: &Books) -> Result<Reclaims> {
        Ok(Reclaims::default())
    }
}

/// Tasks to stop, as chosen so far.
struct Chosen {
    key: u64,
    gang: Option<Gang>,
    count: u32,
    footprint: [u64; MAX_DIMS],
}

/// Returns the running tasks of these users that have to be stopped, in the order of stopping, until this much is free. Tasks that use none
/// of a short resource are skipped, and tasks that turn out not to be needed are spared, the last first. Empty if no task with any of it
/// may be stopped.
pub fn enough(
    running: &dyn RunningView,
    users: &[UserId],
    partition: Partition,
    amount: &Resources,
) -> Option<Victims> {
    let mut short = *amount;
    let mut chosen: Vec<Chosen> = Vec::new();
    running.of_users(users, &mut |tasks| {
        // As many as are needed for the shortage of each resource that they use.
        let needed = tasks.footprint.iter().zip(short.0).filter(|(each, short)| **each > 0 && *short > 0);
        let needed = needed.map(|(each, short)| short.div_ceil(*each)).max().unwrap_or(0);
        let known = |gang: Gang| chosen.iter().any(|other| other.gang.is_some_and(|other| other.number == gang.number));
        if tasks.partition != partition || needed == 0 || tasks.gang.is_some_and(known) {
            return ControlFlow::Continue(());
        }
        let count = tasks.gang.map_or(needed.min(u64::from(tasks.count)) as u32, |gang| gang.tasks);
        let mut footprint = [0; MAX_DIMS];
        footprint.iter_mut().zip(tasks.footprint).for_each(|(copy, each)| *copy = *each);
        short.0.iter_mut().zip(footprint).for_each(|(short, each)| {
            *short = short.saturating_sub(each * u64::from(count));
        });
        chosen.push(Chosen { key: tasks.key, gang: tasks.gang, count, footprint });
        if short == Resources::ZERO { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    spare(&mut chosen, amount, &short);
    let tasks: Vec<(u64, u32)> =
        chosen.iter().filter(|chosen| chosen.count > 0).map(|chosen| (chosen.key, chosen.count)).collect();
    (!tasks.is_empty()).then_some(Victims { tasks, room: Room::Open, cause: None })
}

/// Removes the tasks that the others have made unnecessary: the ones to be stopped last are spared first.
fn spare(chosen: &mut [Chosen], wanted: &Resources, short: &Resources) {
    let mut surplus = [0u64; MAX_DIMS];
    for one in chosen.iter() {
        for (surplus, each) in surplus.iter_mut().zip(one.footprint) {
            *surplus += each * u64::from(one.count);
        }
    }
    for (surplus, (wanted, short)) in surplus.iter_mut().zip(wanted.0.iter().zip(short.0)) {
        *surplus = surplus.saturating_sub(wanted - short);
    }
    for one in chosen.iter_mut().rev() {
        let held = one.footprint.iter().zip(surplus).filter(|(each, _)| **each > 0);
        let spared = held.map(|(each, surplus)| surplus / each).min().unwrap_or(0).min(u64::from(one.count));
        let spared = if one.gang.is_some() && spared < u64::from(one.count) { 0 } else { spared };
        surplus.iter_mut().zip(one.footprint).for_each(|(surplus, each)| *surplus -= each * spared);
        one.count -= spared as u32;
    }
}
