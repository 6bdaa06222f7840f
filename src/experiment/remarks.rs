//! Remarks on a workload for the summary of a run.

use crate::record::Stuck;
use crate::units::Resources;

/// Facts about a workload that are not metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks {
    /// The number of rows that request a label or a location.
    pub labels: u64,
    /// The number of tasks that are larger than every machine of a pooled cluster.
    pub oversized: u64,
    /// The demand of the first oversized task.
    pub first_oversized: Resources,
    /// The number of jobs with more work than a table can represent.
    pub endless: u64,
    /// Examples of task sets that never started, a few for each reason.
    pub stuck: Vec<StuckExample>,
    /// Examples of task sets that were stopped and waited again at the end, a few for each reason.
    pub stopped: Vec<StuckExample>,
}

/// A task set that waited at the end of the run, as an example in a message.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StuckExample {
    /// The reason for waiting.
    pub why: Stuck,
    /// The job's name.
    pub job: String,
    /// The user's name.
    pub user: String,
    /// The number of tasks.
    pub tasks: u64,
    /// The demand of each task, in base units.
    pub demand: Vec<u64>,
}
