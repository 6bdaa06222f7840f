//! The interface between the engine and a policy: the user that is served next.
//!
//! The engine keeps the books ([`Books`]). Before every launch it requests the ranks of the affected users from the policy
//! ([`Policy::rank`]). A policy declares in [`Needs`] the data that it reads, and may reject a task ([`Policy::admit`]). Its optional
//! interfaces are [`Capabilities`]: groups of users ([`Groups`]), preemption of running tasks ([`Preemption`]), and others. Everything
//! else (placement, gangs, blocking, retries) is not part of a policy.

mod capabilities;
mod groups;
pub mod job_order;
mod preemption;

pub use capabilities::{Capabilities, Explain, Planner, Status, WaitList};
pub use groups::{GroupLevel, GroupLimits, GroupNode, GroupTree, Groups, Owners, Unreturned};
pub use job_order::JobOrder;
pub use preemption::{
    Cause, Gang, Head, Pending, Preemption, Reclaims, Room, RunningTasks, RunningView, Shares, Victims, enough,
};

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::books::{Books, Partition};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Time, UserId};

/// The rank of a user: the lowest is served first. Its content is opaque. It has 256 bits, so that policies can represent shares exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Rank {
    high: u128,
    low: u128,
}

impl Rank {
    /// Creates a rank from one number.
    pub fn new(low: u128) -> Rank {
        Rank { high: 0, low }
    }

    /// Returns the rank for a log: its words of 64 bits in decimal without leading zeros, such as `5000000:1`. A rank with more words is
    /// higher; equal ranks have equal texts.
    pub fn text(&self) -> String {
        let words = [self.high >> 64, self.high, self.low >> 64, self.low].map(|word| word as u64);
        let first = words.iter().position(|word| *word > 0).unwrap_or(words.len() - 1);
        words[first..].iter().map(u64::to_string).collect::<Vec<_>>().join(":")
    }

    /// Creates a rank from two numbers, of which the first is more significant.
    pub fn wide(high: u128, low: u128) -> Rank {
        Rank { high, low }
    }
}

/// A user's queue of waiting tasks as policies see it. A ranked queue is never empty.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The user with the waiting tasks.
    pub user: UserId,
    /// The partition of the task at its head; [`Partition::DEFAULT`] unless the policy keeps labels apart.
    pub partition: Partition,
    /// The earliest instant at which the task at its head could have started.
    pub release: Time,
    /// Position of the head's set among all sets released at the same instant: arrivals before rows that a stage released, then by row.
    pub place: u64,
    /// Priority of the task at its head, 0 (most urgent) to 9.
    pub priority: u8,
    /// The key of its head in the job order of the run ([`JobOrder::key`]); `None` in the default order.
    pub key: Option<u128>,
}

/// A user's request to start a task.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The amount that each task reserves, through the policy's lens.
    pub footprint: &'a [u64],
    /// The true demand of each task.
    pub demand: &'a [u64],
    /// Number of tasks that start together.
    pub tasks: u32,
}

/// The reason why a task does not start now, as data for the decision log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A group has too little of its quota of a resource left.
    Quota {
        /// The user's group, or one of its ancestors, by its index in [`GroupTree`].
        group: u32,
        /// The index of the resource among the dimensions.
        resource: u8,
        /// The missing amount, in base units.
        short: u64,
    },
    /// A rule of the policy, in its wording.
    Rule(&'static str),
    /// A policy that plans machines found none with room; its wording states why it did not make room either.
    NoRoom(&'static str),
}

/// A reason in a checkpoint.
#[derive(serde::Serialize, serde::Deserialize)]
enum StoredReason {
    Quota(u32, u8, u64),
    Rule(String),
    NoRoom(String),
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let stored = match *self {
            Reason::Quota { group, resource, short } => StoredReason::Quota(group, resource, short),
            Reason::Rule(text) => StoredReason::Rule(text.to_owned()),
            Reason::NoRoom(text) => StoredReason::NoRoom(text.to_owned()),
        };
        stored.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Reason, D::Error> {
        Ok(match StoredReason::deserialize(deserializer)? {
            StoredReason::Quota(group, resource, short) => Reason::Quota { group, resource, short },
            StoredReason::Rule(text) => Reason::Rule(intern_static(text)),
            StoredReason::NoRoom(text) => Reason::NoRoom(intern_static(text)),
        })
    }
}

/// Returns a text of the program that was read from a checkpoint. There are few such texts, and each is stored once.
fn intern_static(text: String) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(text.as_str()) {
        return known;
    }
    let text: &'static str = text.leak();
    known.insert(text);
    text
}

/// A machine that a task might start on; a pooled cluster is one machine.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// Its capacity, through the policy's lens.
    pub capacity: &'a [u64],
    /// The free part of the capacity.
    pub free: &'a [u64],
}

/// A policy's answer to an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The task may start if it fits.
    Yes,
    /// The task may not start now; the policy is called again in the next round.
    No(Reason),
    /// The task may not start before [`Policy::prepare`] returns the user as stale, or before another task becomes its user's next.
    Wait(Reason),
}

/// Users with a rank that may have changed, in addition to users that changed since the last round, and postponed users
/// ([`Verdict::Wait`]) that are to be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// No users.
    None,
    /// These users.
    Some(Vec<UserId>),
    /// All users.
    All,
}

/// The rule that converts machines and demands for a policy: the reservation for a task may differ from its demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lens {
    /// The resources themselves.
    #[default]
    Plain,
    /// Machines have this number of slots, and a task takes one regardless of its demand. Slots are counted in the first dimension.
    Slots(u32),
    /// One resource, by its index among the dimensions; the others are not reserved.
    Only(usize),
}

impl Lens {
    /// Returns whether machines and demands are unchanged.
    pub fn is_plain(self) -> bool {
        self == Lens::Plain
    }

    /// Returns the amounts that a machine of this capacity offers.
    pub fn machine(self, capacity: Resources) -> Resources {
        self.see(capacity, u64::from)
    }

    /// Returns the footprint of a task: the amounts that a task with this demand reserves.
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

/// The requirements of a policy on the engine; the engine maintains no data that no policy requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The lens through which it counts machines and demands.
    pub lens: Lens,
    /// The labels with separate books ([`Books::partition`]), in order of precedence: a task set belongs to the first of them that its
    /// label expression requires.
    pub labels: Vec<String>,
    /// Whether it reads [`Books::wanted`].
    pub waiting_demand: bool,
    /// Whether it reads [`Books::machines`].
    pub machines: bool,
    /// Whether it reads [`Books::service`].
    pub integrals: bool,
    /// Whether a launch may change the ranks of users other than the served one within a round; such ranks may only increase.
    pub moves_others: bool,
    /// Whether [`Policy::prepare`] is also called after every launch, so that ranks may change in any way within a round.
    pub after_launches: bool,
    /// Whether it serves task sets of all users in the job order of the run alone.
    pub one_line: bool,
    /// Whether it ranks users by machine ([`Policy::rank_on`]): of all pairs of a user's next task and a machine with room for it, the
    /// first in rank order is served, regardless of the placement rule.
    pub by_machine: bool,
    /// Whether it preempts running tasks ([`Capabilities::preemption`]). The engine then maintains an index of running tasks.
    pub preempts_for: PreemptsFor,
    /// Whether it plans the machines of launches ([`Planner::nominated`]).
    pub nominates: bool,
    /// Whether it admits every task, so that the rounds that [`Policy::settled`] requires only have other ranks. They do
    /// not prolong a run without other events.
    pub wakes_for_ranks: bool,
}

/// Whether a policy preempts running tasks, and for which purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptsFor {
    /// It never does.
    #[default]
    Never,
    /// The policy preempts to reclaim resources, by [`Preemption::reclaim`].
    Reclaims,
    /// The policy preempts to reclaim resources, and also for tasks that fit nowhere, by [`Preemption::propose`].
    ForOthers,
}

/// An allocation policy. Only [`Policy::rank`] has no default. The optional interfaces are methods of [`Capabilities`], so a policy
/// without optional interfaces implements that trait with an empty body.
///
/// ```
/// use plimsoll_sim::books::Books;
/// use plimsoll_sim::policy::{Capabilities, Policy, Queue, Rank};
///
/// /// Serves the user with the fewest running tasks.
/// struct FewestTasks;
///
/// impl Policy for FewestTasks {
///     fn rank(&self, queue: &Queue, books: &Books) -> Rank {
///         Rank::new(books.running(queue.user).into())
///     }
/// }
///
/// impl Capabilities for FewestTasks {}
/// ```
///
/// Within a round a rank may change only for the user that was just served, unless [`Needs::moves_others`] or [`Needs::after_launches`] is
/// set; values that depend on all users are recomputed in [`Policy::prepare`].
pub trait Policy: Capabilities + Send {
    /// Returns its requirements. The engine calls this before the run; the result must always be the same.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Adds a user at its first appearance; ids are dense. Errors: the user is not allowed.
    fn open(&mut self, _user: UserId, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Recomputes the values that depend on all users (prices, targets, quotas) at the start of a round, given the users that changed
    /// since the last round. Returns the other users with a rank that may have changed. It is called again in the same round if running
    /// tasks were stopped, and after launches ([`Needs::after_launches`]).
    ///
    /// Errors end the run, such as a solver that does not converge.
    fn prepare(&mut self, _now: Time, _books: &Books, _changed: &[UserId]) -> Result<Stale> {
        Ok(Stale::None)
    }

    /// Returns the rank of a user's next task. The lowest rank is served first; the run's tie rule orders equal ranks.
    fn rank(&self, queue: &Queue, books: &Books) -> Rank;

    /// Returns the rank of a user's next task on a machine ([`Needs::by_machine`]). Within a round the rank may only rise when other tasks
    /// start on the machine.
    fn rank_on(&self, queue: &Queue, _ask: &Ask, _spot: &Spot, books: &Books) -> Rank {
        self.rank(queue, books)
    }

    /// Returns whether the task at the head of a queue may start now. Called before every launch, whether or not there is room.
    fn admit(&self, _queue: &Queue, _ask: &Ask, _books: &Books) -> Verdict {
        Verdict::Yes
    }

    /// Records the launch of a task. The books already include it.
    fn launched(&mut self, _queue: &Queue, _ask: &Ask, _books: &Books) {}

    /// Records the end of the instant `now`: the books stay unchanged until the next instant. Users in `changed` have another allocation
    /// or pending demand than before this instant. Returns a time after `now` at which a round must run even without an event, such as the
    /// end of a quantum or a deadline.
    fn settled(&mut self, _now: Time, _changed: &[UserId], _books: &Books) -> Option<Time> {
        None
    }
}
