//! The summary of a run: one row of the `runs` table, and the facts that the terminal and the report show.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::collect::Collector;
use super::groups::GroupSummary;
use super::remarks::StuckExample;
use crate::books::{WEIGHT_ONE, Weights};
use crate::column::{Cell, Described, Kind};
use crate::engine::Outcome;
use crate::metrics::User;
use crate::output::numbers::{are, count};
use crate::output::schema::Table;
use crate::record::Stuck;
use crate::units::{Dim, Span};
use crate::workload::describe;

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

/// Returns warnings about requests of the workload that the engine ignores, and about `held` jobs that were not submitted.
pub(super) fn ignored(
    collector: &Collector,
    weights: &Weights,
    (pooled, held): (bool, u64),
    dims: &[Dim],
) -> Vec<String> {
    let mut absent: HashSet<&str> = weights.names().collect();
    for name in collector.names.iter() {
        absent.remove(name);
    }
    let mut absent: Vec<&str> = absent.into_iter().collect();
    absent.sort_unstable();
    let foreign_files = absent.first().map(|first| {
        let users = count(absent.len() as u64, "user");
        format!("{users} of the weights file without a job in the workload, such as '{first}'")
    });
    let rows = |rows: u64, what: &str| (rows > 0).then(|| format!("{} {what}", count(rows, "row")));
    let asked = if pooled { collector.remarks.labels } else { 0 };
    let labels = rows(
        asked,
        "with a required label or a location: placement 'pooled' ignores them, any other placement rule applies them",
    );
    let oversized = (collector.remarks.oversized > 0).then(|| {
        let demand = describe(&collector.remarks.first_oversized, dims);
        format!(
            "{} larger than every machine, such as one with {demand}; placement 'pooled' ignores the limits of \
             machines, any other placement rule never starts such tasks",
            are(collector.remarks.oversized, "task")
        )
    });
    let endless = collector.remarks.endless;
    let endless =
        (endless > 0).then(|| format!("{}: 2^63 us of work or more, so that work_us is null", count(endless, "job")));
    let held = (held > 0).then(|| {
        format!(
            "{}: not submitted, since the preceding job (column 'after_job') did not end in the run",
            count(held, "job")
        )
    });
    [labels, oversized, foreign_files, endless, held].into_iter().flatten().collect()
}

/// Returns the cells of the `runs` table with the names of their columns.
pub(super) fn values(cells: &[Cell], dims: &[Dim]) -> Vec<(String, SummaryValue)> {
    let value = |(column, cell): (Described, &Cell)| {
        let value = match (column.value, cell) {
            (Kind::Int, Cell::Int(value)) => SummaryValue::Int(u64::try_from(*value).ok()),
            (Kind::Int, Cell::Large(value)) => SummaryValue::Int(Some(*value)),
            (Kind::Int, _) => SummaryValue::Int(None),
            (Kind::Float, Cell::Float(value)) => SummaryValue::Float(Some(*value)),
            (Kind::Float, _) => SummaryValue::Float(None),
            (Kind::Text, Cell::Text(text)) => SummaryValue::Text((*text).to_owned()),
            (Kind::Text, _) => SummaryValue::Text(String::new()),
        };
        (column.name, value)
    };
    Table::Runs.columns(dims).into_iter().zip(cells).map(value).collect()
}

/// Returns the measures of a user at the end of a run.
pub(super) fn user<'a>(
    collector: &'a Collector,
    user: usize,
    weights: &Weights,
    dims: &'a [Dim],
    measured: Span,
) -> User<'a> {
    let name = collector.names.get(user);
    let log = &collector.log;
    let (share_us, backlogged_us) = log.integrals(user);
    let weight = weights.uniform(weights.class_of(name) as usize);
    User {
        name,
        weight: weight.map(|weight| weight as f64 / WEIGHT_ONE as f64),
        totals: &log.users[user],
        measured_us: measured.0 as f64,
        share_us,
        backlogged_us,
        used_us: log.used_us(user),
        dims,
        judged: log.judged(user),
        has_horizon: log.has_horizon(),
    }
}
