//! The interface between the engine and a rule that preempts running tasks. The rule selects the victims and states the reason.
//!
//! A rule proposes victims. The engine checks the proposal, gives notice, and stops the tasks. As the proposal requires, it reserves their
//! room or leaves the room open. Tasks marked stable are never preempted, and are hidden from rules; a gang is only stopped as a whole.

use std::ops::ControlFlow;

use super::{Ask, Groups, Queue, Rank, Stale};
use crate::books::{Books, Partition};
use crate::cluster::PlannedRoom;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Time, UserId};

/// A gang with running tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gang {
    /// The number of the gang, which all its tasks share.
    pub number: u32,
    /// Number of its running tasks.
    pub tasks: u32,
}

/// Equal running tasks that may be preempted: they started together on one machine.
#[derive(Clone, Copy, Debug)]
pub struct RunningTasks<'a> {
    /// The key that identifies these tasks in a proposal.
    pub key: u64,
    /// The user that they belong to.
    pub user: UserId,
    /// The partition that they are booked under.
    pub partition: Partition,
    /// Their priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// Their key in the job order ([`JobOrder`](super::JobOrder)); a higher key is later. It is 0 unless the rule uses it.
    pub order: u128,
    /// Their machine.
    pub machine: MachineId,
    /// Their row in the trace.
    pub row: u64,
    /// The earliest instant at which they could have started, and their position among the tasks of that instant.
    pub since: (Time, u64),
    /// The instant of their start.
    pub start: Time,
    /// Number of tasks that have not been given notice.
    pub count: u32,
    /// The amount that each task reserves, through the policy's lens.
    pub footprint: &'a [u64],
    /// Their gang, if they belong to one. A gang can only be stopped as a whole.
    pub gang: Option<Gang>,
}

/// The task set that a user would start next.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The user's queue, as it is ranked.
    pub queue: Queue,
    /// The amount that each task reserves, through the policy's lens.
    pub footprint: Resources,
    /// Number of its waiting tasks.
    pub tasks: u32,
    /// Whether its tasks may only start together.
    pub gang: bool,
}

/// The running tasks that a rule may choose from, in the order of stopping: the least urgent first, then the latest start, then the last in
/// the trace.
pub trait RunningView {
    /// Calls `visit` for each group of running tasks, until it returns a break.
    fn all(&self, visit: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>);

    /// Calls `visit` for each group of running tasks of these users, until it returns a break.
    fn of_users(&self, users: &[UserId], visit: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>);

    /// Returns the task set that a user would start next, if it has waiting tasks.
    fn next(&self, user: UserId) -> Option<Head>;

    /// Returns the free amounts of a machine, through the policy's lens.
    fn free(&self, machine: MachineId) -> Resources;

    /// Returns the machine that the run's placement rule chooses for a task that reserves these amounts if the machines in `planned`,
    /// sorted by machine, have the free amounts in `planned` ([`Machines::find_planned`](crate::cluster::Machines::find_planned)). The
    /// search includes all machines, even machines that the task may not use.
    fn find(&self, need: &Resources, planned: &[PlannedRoom]) -> Option<MachineId>;

    /// Returns whether the placement rule chooses the first machine with room.
    fn is_first_fit(&self) -> bool;

    /// Returns the user's name.
    fn name(&self, user: UserId) -> &str;

    /// Returns the groups of users of the policy, if it has groups and the rule is not its own.
    fn groups(&self) -> Option<&dyn Groups>;

    /// Returns the policy's shares, if its ranks are shares and the rule is not its own.
    fn shares(&self) -> Option<&dyn Shares>;

    /// Returns the amounts that a user is about to gain and to lose by the preemptions that have been requested.
    fn pending(&self, user: UserId) -> Pending;

    /// Returns a number that changes whenever tasks may have been started or stopped. Results that a rule has cached are valid as long as
    /// the number stays the same.
    fn version(&self) -> u64;
}

/// The amounts that a user is about to gain and to lose, through the policy's lens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pending {
    /// The amounts of tasks that the user will start.
    pub gains: Resources,
    /// The amounts of its running tasks that will be stopped; for a gang, of all its tasks.
    pub losses: Resources,
}

/// A policy that ranks users by a share, which is a function of the user's allocation alone.
pub trait Shares {
    /// Returns the rank of a user if its allocation consisted of these amounts, through the policy's lens. The rank must not fall if an
    /// amount grows.
    fn rank_with(&self, user: UserId, held: &[u64], books: &Books) -> Rank;
}

/// The use of the room of the victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Room {
    /// The room is reserved for the task that the victims are stopped for.
    Kept,
    /// The room is available to the task with the lowest rank.
    Open,
}

/// A proposal: tasks to stop, by key, with the number of each. If not all are needed, the last tasks in the list are spared first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victims {
    /// The tasks.
    pub tasks: Vec<(u64, u32)>,
    /// The use of their room.
    pub room: Room,
    /// The beneficiary and the rule, if the policy states them; for the decision log.
    pub cause: Option<Cause>,
}

/// The beneficiary of a preemption, and the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The user that receives the room of the stopped tasks.
    pub user: UserId,
    /// The rule, in the policy's wording.
    pub rule: &'static str,
}

/// The result of [`Preemption::reclaim`]: tasks to stop, and users to rank again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaims {
    /// Tasks to stop.
    pub victims: Vec<Victims>,
    /// Users with a rank that may have changed, or postponed users to try again, as in [`Policy::prepare`](super::Policy::prepare). Some
    /// policies decide only in [`Preemption::reclaim`], where the running tasks are available.
    pub stale: Stale,
}

impl Default for Reclaims {
    fn default() -> Reclaims {
        Reclaims { victims: Vec::new(), stale: Stale::None }
    }
}

/// A rule that preempts running tasks. By default, every method does nothing.
pub trait Preemption {
    /// Proposes tasks to stop for the next task of a queue, which fits nowhere. The proposed tasks must run on *one* machine, and the next
    /// task must fit it afterwards. `running` contains the tasks on machines that the next task may use, except tasks that started at this
    /// instant. Otherwise two tasks could preempt each other without time advancing.
    ///
    /// Errors end the run, such as a rule that cannot be combined with the policy.
    fn propose(
        &mut self,
        _queue: &Queue,
        _ask: &Ask,
        _running: &dyn RunningView,
        _books: &Books,
    ) -> Result<Option<Victims>> {
        Ok(None)
    }

    /// Returns tasks to stop immediately in order to reclaim resources; their room is open to all. Called after every
    /// [`Policy::prepare`](super::Policy::prepare), which is called again if tasks were stopped. Errors end the run.
    fn reclaim(&mut self, _now: Time, _running: &dyn RunningView, _books: &Books) -> Result<Reclaims> {
        Ok(Reclaims::default())
    }
}

/// Tasks that have been chosen to be stopped.
struct Chosen {
    key: u64,
    gang: Option<Gang>,
    count: u32,
    footprint: Resources,
}

/// Returns the running tasks of these users to stop, in the order of stopping, so that this amount becomes free. Tasks that use no missing
/// resource are skipped. Tasks that turn out to be unnecessary are spared, the last first. Returns `None` if no task that uses a missing
/// resource may be stopped.
pub fn enough(
    running: &dyn RunningView,
    users: &[UserId],
    partition: Partition,
    amount: &Resources,
) -> Option<Victims> {
    let mut short = *amount;
    let mut chosen: Vec<Chosen> = Vec::new();
    running.of_users(users, &mut |tasks| {
        // The number of tasks that covers the shortage of each resource that they use.
        let needed = tasks.footprint.iter().zip(short.0).filter(|(each, short)| **each > 0 && *short > 0);
        let needed = needed.map(|(each, short)| short.div_ceil(*each)).max().unwrap_or(0);
        let known = |gang: Gang| chosen.iter().any(|other| other.gang.is_some_and(|other| other.number == gang.number));
        if tasks.partition != partition || needed == 0 || tasks.gang.is_some_and(known) {
            return ControlFlow::Continue(());
        }
        let count = tasks.gang.map_or(needed.min(u64::from(tasks.count)) as u32, |gang| gang.tasks);
        let footprint = Resources::from_slice(tasks.footprint);
        short = short.saturating_sub(footprint.times(count));
        chosen.push(Chosen { key: tasks.key, gang: tasks.gang, count, footprint });
        if short.is_zero() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    spare(&mut chosen, amount, &short);
    let tasks: Vec<(u64, u32)> =
        chosen.iter().filter(|chosen| chosen.count > 0).map(|chosen| (chosen.key, chosen.count)).collect();
    (!tasks.is_empty()).then_some(Victims { tasks, room: Room::Open, cause: None })
}

/// Removes tasks that are unnecessary because other chosen tasks free enough; the tasks to be stopped last are removed first.
fn spare(chosen: &mut [Chosen], wanted: &Resources, short: &Resources) {
    let freed: Resources = chosen.iter().map(|one| one.footprint.times(one.count)).sum();
    let mut surplus = freed.saturating_sub(*wanted - *short);
    for one in chosen.iter_mut().rev() {
        let held = one.footprint.iter().zip(surplus.0).filter(|(each, _)| *each > 0);
        let spared = held.map(|(each, surplus)| surplus / each).min().unwrap_or(0).min(u64::from(one.count));
        let spared = if one.gang.is_some() && spared < u64::from(one.count) { 0 } else { spared };
        surplus -= one.footprint.times(spared as u32);
        one.count -= spared as u32;
    }
}
