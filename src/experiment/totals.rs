//! Sums and counts over a run, in all and by user.

use std::collections::BTreeMap;

use crate::record::Stuck;
use crate::units::{MAX_DIMS, Span, Time};

/// A user's share, as of its last change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// Weighted, for comparing with others.
    pub share: u64,
    /// As it is, for the user's own account.
    pub plain_share: u64,
    pub since: Time,
    pub share_us: u128,
    pub backlogged_us: u64,
    pub backlogged: bool,
    /// The largest task it has launched since it became active, as a weighted dominant share.
    pub largest: u64,
    /// Its class of weights.
    pub class: u32,
    /// Place among the active users, from 1; 0 if it is none.
    pub active: u32,
}

/// Sums over a user's tasks and jobs, added when they end: a busy user is looked up as seldom as possible.
#[derive(Clone, Debug, Default)]
pub(super) struct UserTotals {
    pub launched: u64,
    /// Of tasks released in the window, how many were launched and how long they waited.
    pub waited: u64,
    pub task_wait_us: u128,
    /// Tasks stopped before their end, and for how long they had run.
    pub stopped: u64,
    pub lost_us: u128,
    pub jobs: u64,
    pub jobs_finished: u64,
    pub tasks: u64,
    /// Of jobs submitted in the window, how many have finished, and their delays.
    pub measured: u64,
    pub slowdowns: u64,
    pub job_wait_us: u128,
    pub completion_us: u128,
    pub slowdown_millionths: u128,
    pub shortfall: f64,
    pub shortfall_points: u64,
    /// Of its measured work the age when it was served, added up: cluster-seconds times seconds.
    pub delay: f64,
    /// Of tasks that are too large for any machine the measured work, in cluster-seconds, whose submission `delay` has and whose
    /// end it lacks.
    pub unserved: f64,
}

/// Sums and counts over the whole run.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub jobs: u64,
    pub jobs_finished: u64,
    pub tasks: u64,
    pub finished: u64,
    pub launched: u64,
    /// Launches of tasks released in the window, and how long those waited.
    pub waited: u64,
    pub task_wait_us: u128,
    /// Tasks stopped before their end, and for how long they had run.
    pub stopped: u64,
    /// Tasks lost with their machine.
    pub lost: u64,
    /// Jobs with more work than can be written.
    pub endless: u64,
    /// Tasks with a location where they would run best, those that started there, and those that started in another room.
    pub located: u64,
    pub located_there: u64,
    pub located_elsewhere: u64,
    pub lost_us: u128,
    /// By how much tasks took longer than they would have at full speed.
    pub slowed_us: u128,
    pub stuck: BTreeMap<Stuck, u64>,
    pub examples: Vec<StuckExample>,
    pub first_submit: Option<Time>,
    /// The longest wait of a task, and of a gang; its tasks and how long they waited.
    pub task_wait_max: Span,
    pub gang_wait_max: Span,
    pub gang_tasks: u64,
    pub gang_wait_us: u128,
    /// Rows that ask for a label or a location.
    pub labels: u64,
    /// The last submission so far, and the use until then.
    pub last_submit: Time,
    pub used_until_last_submit_us: [u128; MAX_DIMS],
    pub last_end: Time,
    pub held_us: [u128; MAX_DIMS],
    pub used_us: [u128; MAX_DIMS],
    pub over_us: [u64; MAX_DIMS],
    pub jain_us: f64,
    pub jain_time: u64,
    /// Whether the policy reserves slots, or something else than is used.
    pub slots: bool,
    /// Until when the state was integrated.
    pub now: Time,
}

/// A task set that never started, for the message at the end.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StuckExample {
    /// Why it never started.
    pub why: Stuck,
    /// The job's name.
    pub job: String,
    /// The user's name.
    pub user: String,
    /// How many tasks.
    pub tasks: u64,
    /// The demand of each, in base units.
    pub demand: Vec<u64>,
}
