//! Policies that rank users by decayed usage. They differ in the rule that ranks a user; the account of usage and its periods are shared.

use super::decay::{Adds, Memory, Usage};
use super::{Ask, Capabilities, Needs, Policy, Queue, Rank, Setup, Stale};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Time, UserId};
use plimsoll_sim::books::Books;

/// The events after which [`UsageRule::renew`] is called, besides the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// No other events.
    Period,
    /// The appearance of a user.
    User,
    /// Every change of an allocation or of pending demand.
    Change,
}

/// A rule that ranks users by their decayed usage. Only [`UsageRule::rank`] has no default.
pub trait UsageRule: Checkpoint + Send {
    /// The events after which the rule recomputes its values.
    const RENEWAL: Renewal = Renewal::Period;

    /// Returns its requirements, as [`Policy::needs`].
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Adds a user, as [`Policy::open`].
    fn open(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Recomputes the values that depend on all users; returns whether any rank may have changed.
    fn renew(&mut self, _usage: &Usage, _books: &Books) -> bool {
        true
    }

    /// Returns the rank of a user's next task, as [`Policy::rank`].
    fn rank(&self, queue: &Queue, usage: &Usage, books: &Books) -> Rank;
}

/// Serves the user with the lowest rank by a rule over decayed usage.
///
/// Cost: that of the rule per rank; O(users with remaining usage) and all ranks at the end of a period.
pub struct ByUsage<R> {
    rule: R,
    /// The usage of all users.
    pub(super) usage: Usage,
    /// Whether the values of the rule are outdated.
    stale: bool,
}

impl<R: UsageRule> ByUsage<R> {
    /// Creates the policy of a rule.
    pub fn new(rule: R, adds: Adds, memory: Memory, setup: &Setup) -> ByUsage<R> {
        ByUsage { rule, usage: Usage::new(adds, memory, setup.dims.len()), stale: false }
    }
}

impl<R: UsageRule> Policy for ByUsage<R> {
    fn needs(&self) -> Needs {
        Needs { wakes_for_ranks: true, ..self.rule.needs() }
    }

    fn open(&mut self, _user: UserId, name: &str) -> Result<()> {
        self.usage.open();
        self.stale |= R::RENEWAL == Renewal::User;
        self.rule.open(name)
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        self.stale |= self.usage.pass(now) || R::RENEWAL == Renewal::Change && !changed.is_empty();
        let moved = std::mem::take(&mut self.stale) && self.rule.renew(&self.usage, books);
        Ok(if moved { Stale::All } else { Stale::None })
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.rule.rank(queue, &self.usage, books)
    }

    fn launched(&mut self, queue: &Queue, ask: &Ask, _books: &Books) {
        self.usage.charge(queue.user, ask.footprint, ask.tasks);
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Option<Time> {
        self.stale |= self.usage.pass(now);
        self.usage.set_allocations(now, changed, books);
        Some(self.usage.end())
    }
}

impl<R: UsageRule> Capabilities for ByUsage<R> {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl<R: UsageRule> Checkpoint for ByUsage<R> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let ByUsage { rule, usage, stale } = self;
        visitor.value(stale)?;
        usage.visit(visitor)?;
        rule.visit(visitor)
    }
}
