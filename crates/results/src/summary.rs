//! The summary of a run: one row of the `runs` table, and the facts that the terminal and the report show.

use plimsoll_base::column::Cell;
use plimsoll_base::units::Dim;
use plimsoll_sim::engine::Outcome;
use plimsoll_sim::record::Stuck;
use serde::{Deserialize, Serialize};

/// The summary of a run: the row of the `runs` table, and the terminal's summary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// The policy's name.
    pub policy: String,
    /// The number of the run among those of the policy.
    pub run: u64,
    /// The seed of the workload; `None` for a trace.
    pub seed: Option<u64>,
    /// The resource dimensions.
    pub dims: Vec<Dim>,
    /// Counts of the engine.
    pub outcome: Outcome,
    /// Columns of the `runs` table and their values, in order.
    pub values: Vec<(String, SummaryValue)>,
    /// Completion by job size: bin label, jobs, mean completion time in seconds.
    pub bins: Vec<(String, u64, Option<f64>)>,
    /// The number of tasks that never started, by reason.
    pub stuck: Vec<(Stuck, u64)>,
    /// Examples of task sets that never started, a few for each reason.
    pub examples: Vec<StuckExample>,
    /// Examples of task sets that were stopped and waited again at the end, a few for each reason.
    #[serde(default)]
    pub stopped: Vec<StuckExample>,
    /// Messages about requests of the workload that the engine ignores.
    pub ignored: Vec<String>,
    /// The groups of the policy, if it has any.
    pub groups: Vec<GroupSummary>,
}

/// A value of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SummaryValue {
    /// A count or a time in microseconds.
    Int(Option<u64>),
    /// A measure; `None` if it is undefined.
    Float(Option<f64>),
    /// A name.
    Text(String),
}

impl SummaryValue {
    /// Returns the value as a cell of a table.
    pub fn cell(&self) -> Cell<'_> {
        match self {
            SummaryValue::Int(value) => (*value).into(),
            SummaryValue::Float(value) => (*value).into(),
            SummaryValue::Text(text) => Cell::Text(text),
        }
    }

    /// Returns the value as a number; `None` for text and undefined values.
    pub fn number(&self) -> Option<f64> {
        match self {
            SummaryValue::Int(value) => value.map(|value| value as f64),
            SummaryValue::Float(value) => *value,
            SummaryValue::Text(_) => None,
        }
    }
}

impl RunSummary {
    /// Returns the value of a column as a number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| name == column).and_then(|(_, value)| value.number())
    }
}

/// The terminal's summary of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The name of the group.
    pub name: String,
    /// The number of its ancestors.
    pub depth: usize,
    /// Headings and values; amounts are in display units times hours.
    pub values: Vec<(String, Option<f64>)>,
    /// The allocation above the runtime quota that should have been reclaimed, by resource, in display units times hours.
    pub unreturned: Vec<f64>,
}

/// A task set that waited at the end of the run, as an example in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
