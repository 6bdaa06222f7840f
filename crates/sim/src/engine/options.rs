//! Engine options, and the counts at the end of a run.

use super::{Distance, Faults, PreemptFrom, PreemptionLimits, Slowdown};
use crate::cluster::Placement;
use crate::policy::Inside;
use plimsoll_base::named;
use plimsoll_base::units::{Span, Time};

named! {
    /// The rule for when the next task in line does not fit.
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
    /// Whether tasks start ahead of others by the known ends of running tasks.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How a task finds its machine.
    pub placement: Placement,
    /// The rule for when the next task in line does not fit.
    pub on_blocked: OnBlocked,
    /// The order among users of equal rank.
    pub ties: Ties,
    /// The order of each user's own task sets; the usual one if absent.
    pub inside: Option<&'static dyn Inside>,
    /// How machines slow down when more memory is used than they have; not for a pooled cluster.
    pub slowdown: Option<Slowdown>,
    /// How much longer tasks take away from where they would run best; not for a pooled cluster.
    pub distance: Option<Distance>,
    /// How tasks fail, straggle and are backed up; `None`: no faults.
    pub faults: Option<Faults>,
    /// The fate of the tasks on a machine that fails.
    pub on_failure: OnFailure,
    /// Seed of what a random placement draws, and of the faults of tasks.
    pub seed: u64,
    /// After how long a task that waits for its place may start a level up: rack, room, cluster; never if absent.
    pub fall_back: Option<Span>,
    /// For how long gangs hold room that is not enough yet; they hold none if absent.
    pub hoard: Option<Span>,
    /// How tasks obtain the room of others; `None`: no preemption.
    pub preempt: Option<Preempt>,
    /// Limits and costs of stopping tasks.
    pub displacing: PreemptionLimits,
    /// When to end though work is left.
    pub until: Option<Time>,
    /// Add the books up again after every round.
    pub audit: bool,
}

named! {
    /// The tasks that may ask for the room of others.
    PreemptFor {
        Urgent "urgent": "More urgent tasks",
        Order "order": "Tasks that come before them in the order behind the policy's slash",
        Share "share": "Tasks of users that are behind by the policy's shares, while they stay behind the users of the victims",
    }
}

/// How tasks come by the room of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// How long tasks that are asked may go on; zero stops them at once.
    pub within: Span,
    /// The tasks that ask.
    pub whom: PreemptFor,
    /// The users that may be asked, by urgent tasks.
    pub from: PreemptFrom,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// When it ended: the last event, or the horizon.
    pub end: Time,
    /// Rows taken from the source.
    pub rows: u64,
    /// Tasks launched.
    pub launched: u64,
    /// Instants at which something happened.
    pub instants: u64,
    /// The most tasks that ran at once.
    pub peak_running: u64,
    /// How often a task asked others for their room.
    pub asks: u64,
    /// Withdrawn asks.
    pub asks_withdrawn: u64,
    /// How often a gang released its reservations.
    pub hoards_given_up: u64,
    /// Tasks that were asked and stopped, for they had not ended in time.
    pub forced: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Backup instances made.
    pub backups: u64,
    /// Backups that ended before the first instance.
    pub backups_won: u64,
}
