//! The optional interfaces of a policy.
//!
//! A policy provides an interface by overriding one method of [`Capabilities`]. Most policies provide none: `impl Capabilities for P {}`.

use super::{Ask, Groups, Preemption, Queue, Shares};
use crate::books::Books;
use plimsoll_base::checkpoint::Checkpoint;
use plimsoll_base::units::{MachineId, Resources, UserId};

/// The optional interfaces of a policy. By default a policy provides none.
///
/// ```
/// use plimsoll_sim::books::Books;
/// use plimsoll_sim::policy::{Capabilities, Policy, Queue, Rank, Shares};
/// use plimsoll_base::units::UserId;
///
/// /// Serves the user with the smallest allocation of the first resource.
/// struct FirstResource;
///
/// impl Policy for FirstResource {
///     fn rank(&self, queue: &Queue, books: &Books) -> Rank {
///         self.rank_with(queue.user, books.allocated(queue.user), books)
///     }
/// }
///
/// // The ranks are shares. With this interface a run may preempt tasks for fair shares.
/// impl Capabilities for FirstResource {
///     fn shares(&self) -> Option<&dyn Shares> {
///         Some(self)
///     }
/// }
///
/// impl Shares for FirstResource {
///     fn rank_with(&self, _user: UserId, held: &[u64], _books: &Books) -> Rank {
///         Rank::new(held[0].into())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares no optional interfaces of a policy",
    note = "a policy without any declares `impl Capabilities for {Self} {{}}`"
)]
pub trait Capabilities {
    /// Returns its rule for preemption; see [`Needs::preempts_for`](super::Needs::preempts_for).
    fn preemption(&mut self) -> Option<&mut dyn Preemption> {
        None
    }

    /// Returns its list of waiting requests, if it uses them to decide when a user is tried again
    /// ([`Verdict::Wait`](super::Verdict::Wait)).
    fn wait_list(&mut self) -> Option<&mut dyn WaitList> {
        None
    }

    /// Returns its plan of machines; see [`Needs::nominates`](super::Needs::nominates).
    fn planner(&self) -> Option<&dyn Planner> {
        None
    }

    /// Returns its ranks for hypothetical allocations, if a user's rank is a share. Rules that preempt tasks for fairness use them.
    fn shares(&self) -> Option<&dyn Shares> {
        None
    }

    /// Returns its groups of users, for metrics and tables.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Returns the explanation of its decisions, for decision tests.
    fn explain(&self) -> Option<&dyn Explain> {
        None
    }

    /// Returns its state. Without it a run under the policy has no checkpoints. Before it is restored, all users are opened again
    /// ([`Policy::open`](super::Policy::open)), so the state needs no data that follows from the users alone.
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        None
    }
}

/// The requests that a policy has postponed.
pub trait WaitList {
    /// Adds the request of a head that has to wait ([`Verdict::Wait`](super::Verdict::Wait)).
    fn postpone(&mut self, queue: &Queue, ask: &Ask);
}

/// Assigns machines to the next tasks of a queue in advance.
pub trait Planner {
    /// Returns the machines planned for the next tasks of a queue, and the number of tasks on each. If a planned machine has no room, the
    /// placement rule chooses instead. A gang uses all planned machines or none.
    fn nominated(&self, queue: &Queue) -> &[(MachineId, u32)];
}

/// The quantities and comparisons behind the decisions of a policy. The books must be those of the last decision.
pub trait Explain {
    /// Returns, for each of its groups, the quantities that the policy uses.
    fn status(&self, books: &Books) -> Vec<Status>;

    /// Returns whether one user precedes another by the rule as published, if the rule compares users pairwise. The rule is an order only
    /// if the reverse comparison has the opposite result.
    fn compare_users(&self, _one: UserId, _other: UserId, _books: &Books) -> Option<bool> {
        None
    }
}

/// The quantities of one group or user that a policy uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The group or user.
    pub name: String,
    /// Names and values for display and tests; decisions use integers.
    pub values: Vec<(String, f64)>,
    /// The guaranteed amounts, in base units, regardless of the allocations of others; `None` for resources without a guarantee.
    pub guaranteed: Resources<Option<u64>>,
    /// The maximum allocation, in base units; `None` for resources without a limit.
    pub limit: Resources<Option<u64>>,
}
