//! Remarks on a workload for the summary of a run.

use plimsoll_base::units::Resources;
use plimsoll_results::summary::StuckExample;

/// Facts about a workload that are not metrics.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
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
