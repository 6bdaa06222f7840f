//! The seam between the engine and a policy: which user is served next.
//!
//! The engine keeps the books and asks the policy, before every launch, for the place in line of the users concerned;
//! everything else (placement, gangs, blocking, retries) stays out of a policy.

mod groups;

pub use groups::{GroupAbout, GroupLevel, GroupLimits, GroupTree, Groups, Owners};

use crate::books::{Books, Partition};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Time, UserId};

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

    /// The rank in hexadecimal, for a log: longer is later, and equal ranks read the same.
    pub fn text(&self) -> String {
        if self.high == 0 { format!("{:x}", self.low) } else { format!("{:x}{:032x}", self.high, self.low) }
    }

    /// A rank from two numbers, the first decides.
    pub fn wide(high: u128, low: u128) -> Rank {
        Rank { high, low }
    }
}

/// A user's line of waiting tasks, as far as policies look into it. It is not empty when it is ranked.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The user that waits in it.
    pub user: UserId,
    /// The partition that the task at its head is booked under besides its user; [`Partition::DEFAULT`] unless the
    /// policy keeps labels apart.
    pub partition: Partition,
    /// When the task at its head could have started at the earliest.
    pub release: Time,
    /// Place of that task among all that were released at that instant: arrivals before rows that a stage released,
    /// then by row.
    pub place: u64,
    /// Priority of that task, 0 (most urgent) to 9.
    pub priority: u8,
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

/// A policy's answer to an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may start if it fits.
    Yes,
    /// Not now; it is asked again in the next round.
    No,
    /// Not before [`Policy::prepare`] names the user as stale, or its next task is another one.
    Wait,
}

/// Users with a rank that may have changed besides those that changed since the last round, and users to ask again that
/// were told to wait ([`Verdict::Wait`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// No user's.
    None,
    /// These users'.
    Some(Vec<UserId>),
    /// Every user's.
    All,
}

/// The amounts that a group is to give back: running tasks of its users are stopped, the least urgent first, then those
/// that started last, until enough is free. Tasks marked stable are never stopped; the amounts that only they hold are
/// not given back ([`Unreturned`](crate::record::Unreturned)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeBack {
    /// The group, by its place in [`GroupTree`].
    pub group: usize,
    /// Groups under it that stand before it in the list: if one of them gives anything back, this one is left alone,
    /// and the policy is asked again.
    pub below: Vec<usize>,
    /// The users of the group.
    pub users: Vec<UserId>,
    /// The partition that the tasks are booked under.
    pub partition: Partition,
    /// How much is to be free of each resource, through the policy's lens. Tasks that hold none of a short resource are
    /// left alone, and tasks turn out to be stopped only where it is not enough without them.
    pub amount: Resources,
}

/// An allocation policy. Only [`Policy::rank`] has no default.
///
/// Within a round a rank may change only for the user that was just served, unless [`Policy::moves_others`]; values
/// that depend on all users are recomputed in [`Policy::prepare`].
pub trait Policy {
    /// A user appears for the first time; ids are dense. Errors: it must not.
    fn open(&mut self, _user: UserId, _name: &str) -> Result<()> {
        Ok(())
    }

    /// The labels under which task sets are booked apart ([`Books::partition`]), those first that go before others: a
    /// task set belongs to the first of them that its label expression requires. `known` are the labels that machines
    /// carry at some time, in alphabetical order; `None` if there are no machines. Errors: a label that is not among
    /// them.
    fn partitions(&self, _known: Option<&[&str]>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Recomputes the values that depend on all users (prices, targets, quotas) at the start of a round, given the
    /// users that changed since the last one, and returns the other users with a rank that may have changed.
    ///
    /// Errors end the run: a solver that does not converge.
    fn prepare(&mut self, _now: Time, _books: &Books, _changed: &[UserId]) -> Result<Stale> {
        Ok(Stale::None)
    }

    /// The tasks to be stopped by force now, groups after those under them; asked after every [`Policy::prepare`],
    /// which is called again when tasks have been stopped. Amounts that cannot be taken back are named again in every
    /// round.
    fn take_back(&mut self, _now: Time, _books: &Books) -> Vec<TakeBack> {
        Vec::new()
    }

    /// Whether it ever takes anything back; the engine keeps a list of running tasks then.
    fn takes_back(&self) -> bool {
        false
    }

    /// Place in line of a user's next task, lowest first; equal ranks go by the run's tie rule.
    fn rank(&self, queue: &Queue, books: &Books) -> Rank;

    /// May this head start now? Asked before every launch, whether or not there is room.
    fn admit(&self, _queue: &Queue, _ask: &Ask, _books: &Books) -> Verdict {
        Verdict::Yes
    }

    /// A head was launched; the books know already.
    fn launched(&mut self, _queue: &Queue, _ask: &Ask, _books: &Books) {}

    /// A head was told to wait ([`Verdict::Wait`]).
    fn refused(&mut self, _queue: &Queue, _ask: &Ask, _books: &Books) {}

    /// Whether a launch may move others than the user that was served, within the round and only further behind.
    fn moves_others(&self) -> bool {
        false
    }

    /// A machine's capacity and a demand's part of it: the resources themselves unless a policy counts
    /// otherwise, such as in slots.
    fn lens(&self, machine: Resources, demand: Resources) -> (Resources, Resources) {
        (machine, demand)
    }

    /// Whether it reads [`Books::wanted`].
    fn wants_waiting_demand(&self) -> bool {
        false
    }

    /// The groups of users that it keeps, if it does: for metrics and tables.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// When to hold the next round after `now` though nothing happens.
    fn wake(&self, _now: Time) -> Option<Time> {
        None
    }
}
