//! The tables of an experiment: where each stands, and its columns, of which schema, writer, docs and figures are made.

use std::path::{Path, PathBuf};

use super::file::Pending;
pub use super::sealed::VERSION;
use super::table::{Field, TableWriter};
use crate::column::{Column, Computed, Described, Kind, Subject, Value};
use crate::error::Result;
use crate::metrics::{Points, Users, fairness_columns, runs_columns, users_columns};
use crate::units::Dim;

mod decisions;
mod distributions;
mod groups;
mod jobs;
mod over_time;

pub use decisions::{Decided, Decisions};
pub use distributions::{Bin, Bins, DemandKind, Demands, Quantile, Quantiles};
pub use groups::{Group, Groups, LevelOf, Levels, RATIO_ONE};
pub use jobs::{Job, Jobs, Task, Tasks};
pub use over_time::{Share, Shares, Usage, Used};

/// The tables of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row a run.
    Runs,
    /// One row a user and run.
    Users,
    /// One row a job and run.
    Jobs,
    /// One row a task and run.
    Tasks,
    /// One row a change of a user's running or waiting tasks.
    Usage,
    /// One row a grid point: fairness over time.
    Fairness,
    /// One row an active user and grid point.
    Shares,
    /// One row a group of users and resource: promises kept and broken.
    Groups,
    /// One row a group, resource and grid point at which something of it has changed.
    Levels,
    /// One row a bin of job sizes and run.
    Bins,
    /// One row a quantile of a delay and run.
    Quantiles,
    /// One row a kind of demand and run, of all submitted tasks.
    Demands,
    /// One row a decision: the user in turn, and the outcome.
    Decisions,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 13] = [
        Table::Runs,
        Table::Users,
        Table::Jobs,
        Table::Tasks,
        Table::Usage,
        Table::Fairness,
        Table::Shares,
        Table::Groups,
        Table::Levels,
        Table::Bins,
        Table::Quantiles,
        Table::Demands,
        Table::Decisions,
    ];

    /// Its name: the folder and the file.
    pub fn name(self) -> &'static str {
        match self {
            Table::Runs => "runs",
            Table::Users => "users",
            Table::Jobs => "jobs",
            Table::Tasks => "tasks",
            Table::Usage => "usage",
            Table::Fairness => "fairness",
            Table::Shares => "shares",
            Table::Groups => "groups",
            Table::Levels => "levels",
            Table::Bins => "bins",
            Table::Quantiles => "quantiles",
            Table::Demands => "demands",
            Table::Decisions => "decisions",
        }
    }

    /// The file of one run: `TABLE/policy=P/run=N/TABLE.parquet` in the results' folder.
    pub fn path(self, folder: &Path, policy: &str, run: u64) -> PathBuf {
        let (name, policy) = (self.name(), format!("policy={}", partition(policy)));
        folder.join(name).join(policy).join(format!("run={run}")).join(format!("{name}.parquet"))
    }

    /// The meaning of a row.
    pub fn about(self) -> &'static str {
        match self {
            Table::Runs => "one row a run: the summary of everything",
            Table::Users => "one row a user and run: jobs, shares and delays of each",
            Table::Jobs => "one row a job and run, in order of completion; unfinished jobs last",
            Table::Tasks => "one row a task and run, in order of completion (on request)",
            Table::Usage => {
                "the log of changes of what each user runs and waits for: piecewise constant, so integrals are exact (on request)"
            }
            Table::Fairness => {
                "fairness and utilisation over time, on the sampling grid; a grid point at which nothing has changed since the last is left out"
            }
            Table::Shares => "dominant share of every active user over time, on the sampling grid",
            Table::Groups => {
                "one row a group of users, resource and run: promises kept and broken (policies with groups only); amounts in the unit people write"
            }
            Table::Levels => {
                "quotas over time, on the sampling grid (policies with groups only), in the unit people write; a row holds until the next of its group and resource"
            }
            Table::Bins => "completion time by job size, one row a bin and run",
            Table::Quantiles => "quantiles of completion time, wait and slowdown of jobs, one row each",
            Table::Decisions => {
                "every turn of every round, in order: launched, blocked (told once, when it is found) or not admitted (on request)"
            }
            Table::Demands => {
                "submitted tasks by demand; those with demands in the same eighth of a power of two are one kind (first seed of each policy)"
            }
        }
    }

    /// Its columns for a run with these resources: `policy`, `run` and `seed` come before them.
    pub fn columns(self, dims: &[Dim]) -> Vec<Described> {
        match self {
            Table::Runs => runs_columns(dims),
            Table::Users => described::<Users>(dims),
            Table::Jobs => described::<Jobs>(dims),
            Table::Tasks => described::<Tasks>(dims),
            Table::Usage => described::<Usage>(dims),
            Table::Fairness => described::<Points>(dims),
            Table::Shares => described::<Shares>(dims),
            Table::Groups => described::<Groups>(dims),
            Table::Levels => described::<Levels>(dims),
            Table::Bins => described::<Bins>(dims),
            Table::Quantiles => described::<Quantiles>(dims),
            Table::Demands => described::<Demands>(dims),
            Table::Decisions => described::<Decisions>(dims),
        }
    }

    /// One of its columns, where it is not one a resource. Panics: only if it has none of that name (programmer error).
    pub fn column(self, name: &str) -> Described {
        let found = self.columns(&[]).into_iter().find(|column| column.name == name);
        found.expect("a column of this table")
    }

    /// The fields for a writer.
    pub fn fields(self, dims: &[Dim]) -> Vec<Field> {
        self.columns(dims).into_iter().map(|column| Field { name: column.name, kind: column.kind }).collect()
    }
}

/// The subject of a table that is written row by row.
pub trait Written: Subject + Sized + 'static {
    /// The table.
    const TABLE: Table;

    /// Its columns, in order.
    fn columns() -> Vec<Column<Value<Self>>>;
}

fn described<S: Written>(dims: &[Dim]) -> Vec<Described> {
    S::columns().iter().flat_map(|column| column.described(dims)).collect()
}

impl Written for Points {
    const TABLE: Table = Table::Fairness;

    fn columns() -> Vec<Column<Value<Points>>> {
        fairness_columns()
    }
}

impl Written for Users {
    const TABLE: Table = Table::Users;

    fn columns() -> Vec<Column<Value<Users>>> {
        users_columns()
    }
}

/// Writes a table as its columns say.
pub struct Writer<S: Written> {
    table: TableWriter,
    /// How each cell of a row is computed, and of which resource.
    values: Vec<(Value<S>, usize)>,
}

impl<S: Written> Writer<S> {
    /// A writer to a table whose fields are those of its columns with so many resources.
    pub fn new(table: TableWriter, dims: usize) -> Writer<S> {
        let each =
            |column: Column<Value<S>>| (0..if column.value.each() { dims } else { 1 }).map(move |d| (column.value, d));
        Writer { table, values: S::columns().into_iter().flat_map(each).collect() }
    }

    /// Adds a row. Errors: as [`TableWriter::push`].
    pub fn push<'a>(&mut self, row: &'a S::Row<'a>) -> Result<()> {
        self.table.push(self.values.iter().map(|(value, d)| value.cell(row, *d)))
    }

    /// Completes the file; it has no name yet. Errors: as [`TableWriter::complete`].
    pub fn complete(self) -> Result<Pending> {
        self.table.complete()
    }
}

/// A value as a part of the name of a partition folder, which every file system takes: what is neither a letter, a digit
/// nor one of `._-,` is percent-encoded, as hive partitions do: `slot%3A12`. Dots at the end are, too.
pub fn partition(value: &str) -> String {
    let mut text = String::new();
    let inner = value.trim_end_matches('.').len();
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b',' => text.push(byte as char),
            b'.' if at < inner => text.push('.'),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The columns of the axes of an experiment, which come first in every table.
pub fn axes() -> Vec<Described> {
    let axes = [
        Column::new("policy", "name of the policy", Kind::Text),
        Column::new("run", "number of the run among those of the policy, from 0", Kind::Int),
        Column::new("seed", "seed of the workload; null for a trace", Kind::Int),
    ];
    axes.iter().flat_map(|column| column.described(&[])).collect()
}

/// The column of an axis of a sweep in a table with these fields: its name, behind `sweep_` in a table that has a column of
/// that name itself, as `groups` has `variant`.
pub fn axis_column(axis: &str, fields: &[Field]) -> String {
    if fields.iter().any(|field| field.name == axis) { format!("sweep_{axis}") } else { axis.to_owned() }
}
