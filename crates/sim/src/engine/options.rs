//! Engine options, and the counts at the end of a run.

use super::{Distance, Faults, PreemptFrom, PreemptionLimits, Slowdown};
use crate::cluster::Placement;
use crate::policy::JobOrder;
use plimsoll_base::named;
use plimsoll_base::units::{Span, Time};
use std::sync::Arc;

named! {
    /// The rule of a round for a next task in rank order that does not fit.
    OnBlocked {
        Skip "skip": "The next user in rank order is tried",
        Stop "stop": "The round ends, as in the DRF paper's Algorithm 1",
        /// See `backfill`.
        Easy "easy": "The first in line gets a reservation, and others may start if they do not delay it",
        /// See `backfill`.
        Conservative "conservative": "All in line get reservations, and others may start if they delay none before them",
    }
}

impl OnBlocked {
    /// Returns whether tasks start ahead of others by the expected ends of running tasks.
    pub fn backfills(self) -> bool {
        matches!(self, OnBlocked::Easy | OnBlocked::Conservative)
    }
}

impl From<named::OnBlocked> for OnBlocked {
    fn from(rule: named::OnBlocked) -> OnBlocked {
        match rule {
            named::OnBlocked::Skip => OnBlocked::Skip,
            named::OnBlocked::Stop => OnBlocked::Stop,
        }
    }
}

named! {
    /// The order among users of equal rank.
    Ties {
        LeastRecentlyServed "least-recently-served": "The user with the earliest latest launch, users without any first; then the lower id",
        LowestId "lowest-id": "The user that appears first in the trace",
        HighestId "highest-id": "The user that appears last: gives the order of the DRF paper's Table 1",
        FewestRunning "fewest-running": "The user with the fewest running tasks, then the lower id",
    }
}

named! {
    /// The fate of the tasks on a machine that fails.
    OnFailure {
        Requeue "requeue": "They wait again at their place in the queue, and restart",
        Lose "lose": "They are lost; their job continues without them",
    }
}

/// Engine options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The placement rule.
    pub placement: Placement,
    /// The rule of a round for a next task in rank order that does not fit.
    pub on_blocked: OnBlocked,
    /// The order among users of equal rank.
    pub ties: Ties,
    /// The order of each user's own task sets; the usual one if absent.
    pub job_order: Option<Arc<dyn JobOrder>>,
    /// The slowdown of machines with over-committed memory; not for a pooled cluster.
    pub slowdown: Option<Slowdown>,
    /// The factors for tasks away from the machines where they would run best; not for a pooled cluster.
    pub distance: Option<Distance>,
    /// How tasks fail, straggle and are backed up; no faults if absent.
    pub faults: Option<Faults>,
    /// The fate of the tasks on a machine that fails.
    pub on_failure: OnFailure,
    /// The seed of random placement and of the faults of tasks.
    pub seed: u64,
    /// The delay after which a task that waits for its location may start a level up: rack, room, cluster; never if absent.
    pub fall_back: Option<Span>,
    /// The time for which gangs keep reservations that are not enough yet; they make none if absent.
    pub hoard: Option<Span>,
    /// How tasks obtain the room of running tasks; no preemption if absent.
    pub preempt: Option<Preempt>,
    /// Limits and costs of preemption.
    pub preemption_limits: PreemptionLimits,
    /// The horizon: the instant at which the run ends although work is left.
    pub until: Option<Time>,
    /// Whether all sums are recomputed and checked after every round.
    pub audit: bool,
}

named! {
    /// The tasks that may request the room of others.
    PreemptFor {
        Urgent "urgent": "More urgent tasks",
        Order "order": "Tasks that come before them in the order behind the policy's slash",
        Share "share": "Tasks of users that are behind by the policy's shares, while they stay behind the users of the victims",
    }
}

/// The preemption rule of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// The time that asked tasks may continue to run; zero stops them at once.
    pub within: Span,
    /// The tasks that make requests.
    pub whom: PreemptFor,
    /// The users with tasks that urgent tasks may ask.
    pub from: PreemptFrom,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// The end of the run: the last event, or the horizon.
    pub end: Time,
    /// Rows taken from the source.
    pub rows: u64,
    /// Tasks launched.
    pub launched: u64,
    /// Instants with events.
    pub instants: u64,
    /// The maximum number of tasks that ran at once.
    pub peak_running: u64,
    /// Requests of waiting tasks for the room of others.
    pub asks: u64,
    /// Withdrawn requests.
    pub asks_withdrawn: u64,
    /// The number of times that a gang released its reservations because its patience ended.
    pub hoards_given_up: u64,
    /// Tasks that were asked, had not ended at the deadline, and were stopped.
    pub forced: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Backup instances created.
    pub backups: u64,
    /// Backups that ended before the first instance.
    pub backups_won: u64,
}
