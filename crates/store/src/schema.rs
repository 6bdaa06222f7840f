//! The schemas of all tables: names, types and meanings, in one place for writers, readers and `plimsoll schema`.

use std::path::{Path, PathBuf};

use super::table::{Field, Kind};
use plimsoll_base::units::Dim;

mod columns;

/// The version of all schemas together; it changes when a column is renamed, removed or means something else, or when
/// tables stand elsewhere.
pub const VERSION: u32 = 3;

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
        let mut columns = Vec::new();
        for (name, kind, about) in columns::of(self) {
            match name.split_once("<r>") {
                None => columns.push(Described::new((*name).to_owned(), *kind, (*about).to_owned())),
                Some((before, after)) => columns.extend(dims.iter().map(|dim| {
                    let unit = if *kind == Kind::Int { dim.column() } else { dim.name.clone() };
                    Described::new(format!("{before}{unit}{after}"), *kind, about.replace("<r>", &dim.name))
                })),
            }
        }
        columns
    }

    /// The fields for a writer.
    pub fn fields(self, dims: &[Dim]) -> Vec<Field> {
        self.columns(dims).into_iter().map(|column| column.field).collect()
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

/// The axes of an experiment, which come first in every table.
pub fn axes() -> Vec<Described> {
    [
        ("policy", Kind::Text, "name of the policy"),
        ("run", Kind::Int, "number of the run among those of the policy, from 0"),
        ("seed", Kind::Int, "seed of the workload; null for a trace"),
    ]
    .into_iter()
    .map(|(name, kind, about)| Described::new(name.to_owned(), kind, about.to_owned()))
    .collect()
}

/// The column of an axis of a sweep in a table with these fields: its name, behind `sweep_` in a table that has a column of
/// that name itself, as `groups` has `variant`.
pub fn axis_column(axis: &str, fields: &[Field]) -> String {
    if fields.iter().any(|field| field.name == axis) { format!("sweep_{axis}") } else { axis.to_owned() }
}

/// A column and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Name and type.
    pub field: Field,
    /// The meaning.
    pub about: String,
}

impl Described {
    fn new(name: String, kind: Kind, about: String) -> Described {
        Described { field: Field { name, kind }, about }
    }
}
