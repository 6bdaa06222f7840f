//! A user's current share, and remarks of a summary on a workload.

use crate::record::Stuck;
use crate::units::{Resources, Time};

/// A user's share, as of its last change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UserStatus {
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
    /// Something of it has changed since the last evaluation on the grid.
    pub stale: bool,
}

/// Facts about a workload that are no metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks {
    /// Rows that ask for a label or a location.
    pub labels: u64,
    /// Tasks that are larger than every machine, where machines are pooled.
    pub oversized: u64,
    /// The demand of the first of them.
    pub first_oversized: Resources,
    /// Jobs with more work than can be written.
    pub endless: u64,
    /// A few task sets that never started, for each reason.
    pub stuck: Vec<StuckExample>,
    /// A few task sets that were stopped and waited again at the end, for each reason.
    pub stopped: Vec<StuckExample>,
}

/// A task set that waited when the run ended, for the message about it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StuckExample {
    /// Why it waited.
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
