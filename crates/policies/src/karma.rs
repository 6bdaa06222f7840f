//! Karma: credits for slices of one resource; users that donated slices earlier may borrow now.
//!
//! The rule and its source are in [`plimsoll_fair::Karma`]. A slice is one unit of the resource: a core, a GiB, a GPU. At the beginning of
//! each quantum, a user's demand is its allocation and pending demand, rounded up to slices. During the quantum, its allocation of the
//! resource is limited to its slices.
//!
//! Departures from the source: a running task continues when its user's slices shrink, and no other task of the user starts until the
//! slices suffice. A user that appears within a quantum waits for the next quantum. Only tasks that fit on a machine start, regardless of
//! the slices.

use super::keys::{Keys, decimal};
use super::maxmin::dimension;
use super::{
    Ask, Capabilities, Needs, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder, Reason, Setup, Stale, Verdict,
};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time, UserId, span};
use plimsoll_base::visit_values;
use plimsoll_fair::{FreeCredits, Karma as Accounts};
use plimsoll_sim::books::Books;

/// `karma:RESOURCE:QUANTUM[:guaranteed=G][:credits=N][:free=public|pool]`
pub static ROW: PolicyRow = PolicyRow {
    name: "karma",
    spelling: "karma:RESOURCE:QUANTUM[:KEY=VALUE]",
    rank: RankOrder::Stated("the most credits first, within the user's allocation for the quantum"),
    meaning: "Each user has a guaranteed part; more is borrowed for credits, which the donors earn.",
    source: "Vuppalapati et al., OSDI 2023",
    example: "karma:cpu:60s",
    checked: "karma:cpu:60s",
    variants: &[],
    keys: &[],
    read: |given| {
        let rule = Rule::read(given)?;
        Ok(Parsed::new(given.map(str::to_owned), move |setup| Ok(Box::new(Karma::new(setup, &rule)?))))
    },
};

/// The parameters of the policy.
#[derive(Clone, Debug)]
struct Rule {
    resource: String,
    quantum: Span,
    /// The guaranteed part of all slices, in millionths; the source's evaluation guarantees half.
    guaranteed: u64,
    /// The initial credits; by default enough that no user runs out.
    credits: u64,
    free: FreeCredits,
}

const ONE: u64 = 1_000_000;

impl Rule {
    fn read(given: Option<&str>) -> std::result::Result<Rule, String> {
        let mut keys = Keys::new(given, &["guaranteed", "credits", "free"])?;
        let resource = keys.next().map(str::to_owned);
        let quantum = keys.next().and_then(|text| span(text).ok()).filter(|quantum| *quantum > Span::ZERO);
        let (Some(resource), Some(quantum)) = (resource, quantum) else {
            return Err("a resource and a quantum above 0, such as karma:cpu:60s".to_owned());
        };
        let part = |text: &str| decimal(text, ONE).filter(|part| *part <= ONE);
        let free = |text: &str| FreeCredits::parse("free", text).ok();
        let rule = Rule {
            resource,
            quantum,
            guaranteed: keys.read("guaranteed", "G, a part from 0 to 1", part)?.unwrap_or(ONE / 2),
            credits: keys.read("credits", "N, a whole number", |text| text.parse().ok())?.unwrap_or(1_000_000_000_000),
            free: keys.read("free", "public or free=pool", free)?.unwrap_or_default(),
        };
        keys.end().map(|()| rule)
    }
}

/// Serves the user with the most credits, and no user beyond its slices of the quantum.
///
/// Cost: O(users + borrowed slices log users) per quantum, O(1) per rank.
struct Karma {
    accounts: Accounts,
    dim: usize,
    /// The base units of a slice.
    slice: u64,
    slices: u64,
    public: u64,
    quantum: Span,
    /// The number of users that have appeared.
    users: usize,
    /// The beginning of the next quantum.
    next: Time,
    /// The slices that each user demanded when last seen, and its slices of this quantum.
    demands: Vec<u64>,
    allocation: Vec<u64>,
    /// The number of consecutive quanta without a running task or a change.
    idle: usize,
}

impl Karma {
    fn new(setup: &Setup, rule: &Rule) -> Result<Karma> {
        let dim = dimension("karma", setup, &rule.resource)?;
        let slice = setup.dims[dim].unit.scale();
        let slices = setup.capacity.0[dim] / slice;
        if slices == 0 {
            let expected =
                format!("machines with at least one whole {} in total, the size of a slice", setup.dims[dim].name);
            return Err(Error::policy("karma", "less than one slice", expected));
        }
        let guaranteed = (u128::from(slices) * u128::from(rule.guaranteed) / u128::from(ONE)) as u64;
        Ok(Karma {
            accounts: Accounts::new(rule.free, rule.credits),
            dim,
            slice,
            slices,
            public: slices - guaranteed,
            quantum: rule.quantum,
            users: 0,
            next: Time::ZERO,
            demands: Vec::new(),
            allocation: Vec::new(),
            idle: 0,
        })
    }

    /// Begins all quanta that begin before `now`, with the demands last seen.
    fn pass(&mut self, now: Time) {
        if self.next >= now {
            return;
        }
        if self.demands.iter().all(|demand| *demand == 0) {
            let quanta = (now.since(self.next).0 - 1) / self.quantum.0 + 1;
            self.accounts.idle(quanta, self.public);
            self.allocation.fill(0);
            self.next = Time(self.next.0 + quanta * self.quantum.0);
        }
        while self.next < now {
            self.begin();
        }
    }

    fn begin(&mut self) {
        self.allocation = self.accounts.quantum(self.slices, self.public, &self.demands);
        self.next = self.next + self.quantum;
    }
}

impl Policy for Karma {
    fn needs(&self) -> Needs {
        Needs { waiting_demand: true, ..Needs::default() }
    }

    fn open(&mut self, user: UserId, _name: &str) -> Result<()> {
        self.users = user.index() + 1;
        Ok(())
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        // Users that appear now do not affect past quanta.
        self.pass(now);
        (self.demands.len()..self.users).for_each(|_| self.accounts.open());
        self.demands.resize(self.users, 0);
        self.allocation.resize(self.users, 0);
        for &user in changed {
            let wanted = books.wanted(user, self.dim).div_ceil(u128::from(self.slice));
            self.demands[user.index()] = u64::try_from(wanted).unwrap_or(u64::MAX);
        }
        if self.next > now {
            return Ok(Stale::Some(changed.to_vec()));
        }
        self.begin();
        Ok(Stale::All)
    }

    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(u64::MAX - self.accounts.credits()[queue.user.index()]))
    }

    fn admit(&self, queue: &Queue, ask: &Ask, books: &Books) -> Verdict {
        let wanted = u128::from(ask.footprint[self.dim]) * u128::from(ask.tasks);
        let held = u128::from(books.allocated(queue.user)[self.dim]);
        let allocated = u128::from(self.allocation[queue.user.index()]) * u128::from(self.slice);
        if wanted == 0 || held + wanted <= allocated {
            Verdict::Yes
        } else {
            Verdict::Wait(Reason::Rule("its slices of this quantum are used"))
        }
    }

    fn settled(&mut self, _now: Time, changed: &[UserId], books: &Books) -> Option<Time> {
        let still = changed.is_empty() && books.total_running() == 0;
        self.idle = if still { self.idle + 1 } else { 0 };
        // Credits may still grow. But by then each user that could use them has been served, so the waiting tasks never start.
        (self.idle <= 16 + 2 * self.demands.len()).then_some(self.next)
    }
}

impl Capabilities for Karma {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Karma {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Karma {
            accounts,
            dim: _,
            slice: _,
            slices: _,
            public: _,
            quantum: _,
            users,
            next,
            demands,
            allocation,
            idle,
        } = self;
        visit_values!(visitor; users, next, demands, allocation, idle);
        accounts.visit(visitor)
    }
}
