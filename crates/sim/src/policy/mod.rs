//! The seam between the engine and a policy: which user is served next.
//!
//! The engine keeps the books and asks the policy, before every launch, for the place in line of the users concerned;
//! everything else (placement, gangs, blocking, retries) stays out of a policy.

mod groups;
pub mod inside;
mod preemption;

pub use groups::{GroupLevel, GroupLimits, GroupNode, GroupTree, Groups, Owners, Unreturned};
pub use inside::Inside;
pub use preemption::{
    Cause, Gang, Head, Pending, Preemption, Reclaims, Room, RunningTasks, RunningView, Shares, Victims, enough,
};

use crate::books::{Books, Partition};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, Time, UserId};

/// A place in line: lowest is served first. Opaque; 256 bits, so that any share a policy computes is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    high: u128,
    low: u128,
}

impl Rank {
    /// A rank from one number.
    pub fn new(low: u128) -> Rank {
        Rank { high: 0, low }
    }

    /// Returns the rank for a log: its words of 64 bits in decimal, the leading zeros left out, such as `5000000:1`. More words are
    /// later; equal ranks read the same.
    pub fn text(&self) -> String {
        let words = [self.high >> 64, self.high, self.low >> 64, self.low].map(|word| word as u64);
        let first = words.iter().position(|word| *word > 0).unwrap_or(words.len() - 1);
        words[first..].iter().map(u64::to_string).collect::<Vec<_>>().join(":")
    }

    /// A rank from two numbers, the first decides.
    pub fn wide(high: u128, low: u128) -> Rank {
        Rank { high, low }
    }
}

/// A user's queue of waiting tasks as policies see it. It is not empty when it is ranked.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The user that waits in it.
    pub user: UserId,
    /// The partition that the task at its head is booked under besides its user; [`Partition::DEFAULT`] unless the
    /// policy keeps labels apart.
    pub partition: Partition,
    /// When the task at its head could have started at the earliest.
    pub release: Time,
    /// Position of that task among all sets released at that instant: arrivals before rows that a stage released, then by row.
    pub place: u64,
    /// Priority of that task, 0 (most urgent) to 9.
    pub priority: u8,
    /// Its key under the run's order inside users ([`Inside::key`]); none under the usual order.
    pub key: Option<u128>,
}

/// A user's request to start a task.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The amount that each task reserves, through the policy's lens.
    pub footprint: &'a [u64],
    /// The true demand of each task.
    pub demand: &'a [u64],
    /// How many tasks at once.
    pub tasks: u32,
}

/// Why a task does not start now, as data for the decision log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A group, by its place in [`GroupTree`], has too little left of its quota of a resource: the shortage, in base units.
    Quota {
        /// The user's group, or one above it.
        group: u32,
        /// The resource, by its place among the dimensions.
        resource: u8,
        /// The amount that is missing.
        short: u64,
    },
    /// A rule of the policy's own.
    Rule(&'static str),
}

/// A machine that a task might start on; a pool is one.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// Its capacity, through the policy's lens.
    pub capacity: &'a [u64],
    /// The free part of it.
    pub free: &'a [u64],
}

/// A policy's answer to an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may start if it fits.
    Yes,
    /// Not now; it is asked again in the next round.
    No(Reason),
    /// Not before [`Policy::prepare`] names the user as stale, or its next task is another one.
    Wait(Reason),
}

/// Users with a rank that may have changed, besides those that changed since the last round, and waiting users ([`Verdict::Wait`]) to try
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// No user's.
    None,
    /// These users'.
    Some(Vec<UserId>),
    /// Every user's.
    All,
}

/// How a policy counts machines and demands: the reservation for a task may differ from its demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lens {
    /// In the resources themselves.
    #[default]
    Plain,
    /// Machines have this number of slots, and a task takes one whatever its demand. Slots are counted in the first dimension.
    Slots(u32),
    /// In one resource, by its place among the dimensions; the others are not reserved.
    Only(usize),
}

impl Lens {
    /// Whether machines and demands are seen as they are.
    pub fn is_plain(self) -> bool {
        self == Lens::Plain
    }

    /// The amounts that a machine of this capacity offers.
    pub fn machine(self, capacity: Resources) -> Resources {
        self.see(capacity, u64::from)
    }

    /// The amounts that a task of this demand reserves: its footprint.
    pub fn demand(self, demand: Resources) -> Resources {
        self.see(demand, |_| 1)
    }

    fn see(self, amounts: Resources, slots: impl Fn(u32) -> u64) -> Resources {
        let mut seen = Resources::ZERO;
        match self {
            Lens::Plain => return amounts,
            Lens::Slots(per_machine) => seen.0[0] = slots(per_machine),
            Lens::Only(resource) => seen.0[resource] = amounts.0[resource],
        }
        seen
    }
}

/// The quantities of one group or user that a policy uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The group or user.
    pub name: String,
    /// Names and values: for people and tests, while integers decide.
    pub values: Vec<(String, f64)>,
    /// The amounts that it may claim whatever others hold, in base units, of the resources with such a promise.
    pub guaranteed: [Option<u64>; MAX_DIMS],
    /// The most that it may hold, in base units, of the resources with such a limit.
    pub limit: [Option<u64>; MAX_DIMS],
}

/// The requirements of a policy on the engine; the engine maintains no data that no policy requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// How it counts machines and demands.
    pub lens: Lens,
    /// The labels with separate books ([`Books::partition`]), in order of precedence: a task set belongs to the first of them that its
    /// label expression requires.
    pub labels: Vec<String>,
    /// It reads [`Books::wanted`].
    pub waiting_demand: bool,
    /// It reads [`Books::machines`].
    pub machines: bool,
    /// It reads [`Books::service`].
    pub integrals: bool,
    /// A launch may move others than the user that was served, within the round and only further behind.
    pub moves_others: bool,
    /// [`Policy::prepare`] is called after every launch as well, so that ranks may change in any way within a round.
    pub after_launches: bool,
    /// It serves task sets in the order of the run alone, of any user.
    pub one_line: bool,
    /// It ranks users by machine ([`Policy::rank_on`]): of all pairs of a user's next task and a machine with room for it the
    /// first in rank order is served, whatever the placement rule.
    pub by_machine: bool,
    /// Whether it stops running tasks ([`Policy::preemption`]): an index of them is maintained then.
    pub displaces: PreemptsFor,
    /// It plans the machines of launches ([`Policy::nominated`]).
    pub nominates: bool,
}

/// Whether a policy stops running tasks, and for which purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptsFor {
    /// It never does.
    #[default]
    Never,
    /// On its own account, by [`Preemption::reclaim`].
    Reclaims,
    /// That, and for tasks that fit nowhere, by [`Preemption::propose`].
    ForOthers,
}

/// An allocation policy. Only [`Policy::rank`] has no default.
///
/// Within a round a rank may change only for the user that was just served, unless [`Needs::moves_others`] or
/// [`Needs::after_launches`]; values that depend on all users are recomputed in [`Policy::prepare`].
pub trait Policy: Send {
    /// The things it needs; asked before the run, and the same whenever asked.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A user appears for the first time; ids are dense. Errors: it must not.
    fn open(&mut self, _user: UserId, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Recomputes the values that depend on all users (prices, targets, quotas) at the start of a round, given the
    /// users that changed since the last one, and returns the other users with a rank that may have changed. Called again
    /// in the same round when running tasks were stopped, and after launches ([`Needs::after_launches`]).
    ///
    /// Errors end the run: a solver that does not converge.
    fn prepare(&mut self, _now: Time, _books: &Books, _changed: &[UserId]) -> Result<Stale> {
        Ok(Stale::None)
    }

    /// Returns the rank of a user's next task, lowest first; the run's tie rule orders equal ranks.
    fn rank(&self, queue: &Queue, books: &Books) -> Rank;

    /// The place in line of a user's next task on a machine ([`Needs::by_machine`]). Within a round it may only fall back where
    /// others start there.
    fn rank_on(&self, queue: &Queue, _ask: &Ask, _spot: &Spot, books: &Books) -> Rank {
        self.rank(queue, books)
    }

    /// May this head start now? Asked before every launch, whether or not there is room.
    fn admit(&self, _queue: &Queue, _ask: &Ask, _books: &Books) -> Verdict {
        Verdict::Yes
    }

    /// A head was launched; the books know already.
    fn launched(&mut self, _queue: &Queue, _ask: &Ask, _books: &Books) {}

    /// A head has to wait ([`Verdict::Wait`]), for this reason.
    fn refused(&mut self, _queue: &Queue, _ask: &Ask, _reason: Reason, _books: &Books) {}

    /// The instant `now` is over, and what the books say holds until the next one; users in `changed` hold or wait for
    /// something else than before it. Returns when to hold a round though nothing happens, later than `now`: the end of a
    /// quantum, a deadline.
    fn settled(&mut self, _now: Time, _changed: &[UserId], _books: &Books) -> Option<Time> {
        None
    }

    /// Returns the machines planned for the next tasks of a queue, and how many on each, if [`Needs::nominates`]. A machine without
    /// room is ignored, and then the placement rule chooses; a gang uses all of them or none.
    fn nominated(&self, _queue: &Queue) -> &[(MachineId, u32)] {
        &[]
    }

    /// Its half that stops running tasks, if it has one; see [`Needs::displaces`].
    fn preemption(&mut self) -> Option<&mut dyn Preemption> {
        None
    }

    /// Its ranks of what users might hold, if a user's rank is a share: for a rule that stops tasks for fairness.
    fn shares(&self) -> Option<&dyn Shares> {
        None
    }

    /// The groups of users that it keeps, if it does: for metrics and tables.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Returns the quantities of each of its groups that it uses, to explain its decisions. The books are those of its last decision.
    fn standings(&self, _books: &Books) -> Vec<Status> {
        Vec::new()
    }

    /// Whether one user goes before another by the rule as it is written, if it compares users one by one: an order has to say the
    /// opposite the other way round.
    fn compare_users(&self, _one: UserId, _other: UserId, _books: &Books) -> Option<bool> {
        None
    }
}
