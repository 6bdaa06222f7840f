//! Metrics that a program defines by a function over the finished jobs of a run.

use std::fmt;
use std::sync::Arc;

use super::registry::Code;
use plimsoll_base::error::Result;

/// The columns of a job: its user, then numbers.
pub const JOB_COLUMNS: [&str; 8] =
    ["user", "tasks", "submit_s", "wait_s", "completion_s", "ideal_s", "slowdown", "work_s"];

/// The finished jobs of a run that were submitted in the measured window, as columns, in the order of completion.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct JobColumns {
    /// The names of users, by number.
    pub users: Vec<String>,
    /// The number of each job's user.
    pub user: Vec<u32>,
    /// The other columns, in the order of [`JOB_COLUMNS`]; NaN for a missing value.
    pub numbers: [Vec<f64>; JOB_COLUMNS.len() - 1],
}

/// The computation of a metric.
type Compute = dyn Fn(&JobColumns) -> Result<Option<f64>> + Send + Sync;

/// A metric of a program, which plans name: `[metric.NAME] function = "NAME"`.
#[derive(Clone)]
pub struct MetricFunction {
    /// The name in plans.
    pub name: String,
    /// The source text, for the provenance of results and the identity of runs.
    pub code: Code,
    compute: Arc<Compute>,
}

impl MetricFunction {
    /// Creates a metric from a function, which returns `None` if the metric has no value.
    pub fn new(
        name: impl Into<String>,
        code: Code,
        compute: impl Fn(&JobColumns) -> Result<Option<f64>> + Send + Sync + 'static,
    ) -> MetricFunction {
        MetricFunction { name: name.into(), code, compute: Arc::new(compute) }
    }

    /// Computes the metric. Errors: those of the function.
    pub fn compute(&self, jobs: &JobColumns) -> Result<Option<f64>> {
        (self.compute)(jobs)
    }
}

impl fmt::Debug for MetricFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricFunction").field("name", &self.name).field("code", &self.code).finish_non_exhaustive()
    }
}
