//! Engine options. The types of the settings are defined in the part of the engine that uses them.

use std::sync::Arc;

use super::extensions::{Faults, OnFailure, Preempt, Slowdown};
use super::kernel::Ties;
use super::kernel::budget::PreemptionLimits;
use super::kernel::pace::Distance;
use super::round::OnBlocked;
use crate::cluster::Placement;
use crate::policy::JobOrder;
use plimsoll_base::units::{Span, Time};

/// Engine options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The placement rule.
    pub placement: Placement,
    /// The rule of a round if the next task in rank order does not fit.
    pub on_blocked: OnBlocked,
    /// The order among users of equal rank.
    pub ties: Ties,
    /// The order of each user's own task sets; the default order if absent.
    pub job_order: Option<Arc<dyn JobOrder>>,
    /// The slowdown of machines with over-committed memory; not for a pooled cluster.
    pub slowdown: Option<Slowdown>,
    /// The factors of the run times of tasks that are away from their preferred machines; not for a pooled cluster.
    pub distance: Option<Distance>,
    /// How tasks fail, straggle and are backed up; no faults if absent.
    pub faults: Option<Faults>,
    /// The fate of the tasks on a machine that fails.
    pub on_failure: OnFailure,
    /// The seed of random placement and of the faults of tasks.
    pub seed: u64,
    /// The delay after which a task that waits for its location may start one level up (rack, room, cluster). If absent, tasks wait
    /// without limit.
    pub fall_back: Option<Span>,
    /// The time for which gangs keep incomplete reservations. If absent, gangs make no reservations.
    pub hoard: Option<Span>,
    /// The rule that preempts running tasks for waiting tasks. If absent, the run has no preemption rule.
    pub preempt: Option<Preempt>,
    /// Limits and costs of preemption.
    pub preemption_limits: PreemptionLimits,
    /// The horizon: the instant at which the run ends although work is left.
    pub until: Option<Time>,
    /// Whether all sums are recomputed and checked after every round.
    pub audit: bool,
}
