//! The tables of an experiment: their paths and columns. Schema, writer, documentation and figures are derived from these declarations.

use std::path::{Path, PathBuf};

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::column::{Cell, Column, ColumnValue, Computed, Described, Kind, TableRow};
use plimsoll_base::error::Result;
use plimsoll_base::named;
use plimsoll_base::units::Dim;
use plimsoll_metrics::{GridPoint, User, runs_columns};
use plimsoll_store::file::Pending;
pub use plimsoll_store::sealed::VERSION;
use plimsoll_store::table::{Field, GrowingColumn as TableColumn, TableWriter};

mod accelerators;
mod decisions;
mod distributions;
mod failover;
mod groups;
mod over_time;
mod own;
mod tasks;

pub use accelerators::{AcceleratorJob, AcceleratorRun, AcceleratorRunKey, AcceleratorType};
pub use decisions::Decided;
pub use distributions::{BinRow, DemandKind, Quantile};
pub use failover::{Fated, Recovered};
pub use groups::{GroupRow, LevelOf};
pub use over_time::{ShareRow, Used};
pub use own::{DIRECTIONS, OWN_COLUMNS, OWN_UNITS, OwnColumn};
pub use plimsoll_metrics::JobRow;
pub use tasks::Task;

named! {
    /// The tables of an experiment, with the meaning of a row.
    Table {
        Runs "runs": "one row per run: its summary",
        Users "users": "one row per user and run: jobs, shares and delays of each",
        Jobs "jobs": "one row per job and run, in order of completion; unfinished jobs last",
        Tasks "tasks": "one row per task and run, in order of completion (on request)",
        Usage "usage": "the log of changes of each user's running and waiting tasks: piecewise constant, so integrals are exact (on request)",
        Fairness "fairness": "fairness and utilisation over time, on the sampling grid; a grid point without changes since the last has no row",
        Shares "shares": "dominant share of every active user over time, on the sampling grid",
        Groups "groups": "one row per group of users, resource and run: guarantees met and missed (policies with groups only); amounts in the display unit",
        Levels "levels": "quotas over time, on the sampling grid (policies with groups only), in the display unit; a row holds until the next of its group and resource",
        Bins "bins": "completion time by job size, one row per bin and run",
        Quantiles "quantiles": "quantiles of completion time, wait and slowdown of jobs, one row each",
        Demands "demands": "submitted tasks by demand; tasks with demands in the same eighth of a power of two are one kind (first seed of each policy)",
        Decisions "decisions": "every attempt of every round, in order: launched, blocked (recorded once) or not admitted; and the sets that were not tried (on request)",
    }
}

impl Table {
    /// Returns all tables.
    pub fn all() -> impl Iterator<Item = Table> + Clone {
        Table::ALL.iter().map(|(_, table, _)| *table)
    }

    /// Returns the table with rows of this type. Panics: only if no table has the name that the type declares (programmer error).
    pub fn for_row<R: TableRow>() -> Table {
        Table::all().find(|table| table.name() == R::TABLE).expect("every kind of row has its table")
    }

    /// Returns the file of one run: `TABLE/policy=P/run=N/TABLE.parquet` in the results folder.
    pub fn path(self, folder: &Path, policy: &str, run: u64) -> PathBuf {
        let (name, policy) = (self.name(), format!("policy={}", partition(policy)));
        folder.join(name).join(policy).join(format!("run={run}")).join(format!("{name}.parquet"))
    }

    /// Returns the table's columns for a run with these resources; in the file, `policy`, `run` and `seed` precede them.
    pub fn columns(self, dims: &[Dim]) -> Vec<Described> {
        match self {
            Table::Runs => runs_columns(dims),
            Table::Users => described::<User<'static>>(dims),
            Table::Jobs => described::<JobRow<'static>>(dims),
            Table::Tasks => described::<Task<'static>>(dims),
            Table::Usage => described::<Used<'static>>(dims),
            Table::Fairness => described::<GridPoint<'static>>(dims),
            Table::Shares => described::<ShareRow<'static>>(dims),
            Table::Groups => described::<GroupRow<'static>>(dims),
            Table::Levels => described::<LevelOf<'static>>(dims),
            Table::Bins => described::<BinRow<'static>>(dims),
            Table::Quantiles => described::<Quantile>(dims),
            Table::Demands => described::<DemandKind<'static>>(dims),
            Table::Decisions => described::<Decided<'static>>(dims),
        }
    }

    /// Returns a column of the table that is not per resource. Panics: only if no column has that name (programmer error).
    pub fn column(self, name: &str) -> Described {
        let found = self.columns(&[]).into_iter().find(|column| column.name == name);
        found.expect("a column of this table")
    }

    /// Returns the fields for a writer.
    pub fn fields(self, dims: &[Dim]) -> Vec<Field> {
        fields_of(self.columns(dims))
    }
}

/// Returns the columns of rows of type `R` for these resources.
pub fn described<R: TableRow>(dims: &[Dim]) -> Vec<Described> {
    R::columns().iter().flat_map(|column| column.described(dims)).collect()
}

/// Returns the fields of rows of type `R` that are not per resource, for a writer.
pub fn fields<R: TableRow>() -> Vec<Field> {
    fields_of(described::<R>(&[]))
}

fn fields_of(columns: Vec<Described>) -> Vec<Field> {
    let field = |column: Described| Field { distinct: column.distinct, ..Field::new(column.name, column.value) };
    columns.into_iter().map(field).collect()
}

/// Writes a table with the columns of its declaration.
pub struct Writer<R: TableRow> {
    table: TableWriter,
    /// The function that computes each cell of a row, and the index of its resource.
    values: Vec<(ColumnValue<R>, usize)>,
}

impl<R: TableRow> Writer<R> {
    /// Creates a writer to a table with the fields of its columns, for `dims` resources.
    pub fn new(table: TableWriter, dims: usize) -> Writer<R> {
        let each = |column: Column<ColumnValue<R>>| {
            (0..if column.value.each() { dims } else { 1 }).map(move |d| (column.value, d))
        };
        Writer { table, values: R::columns().into_iter().flat_map(each).collect() }
    }

    /// Creates a writer of a table that does not belong to a run. Errors: as [`TableWriter::create`].
    pub fn create(path: &Path, metadata: &[(String, String)]) -> Result<Writer<R>> {
        Ok(Writer::new(TableWriter::create(path, &[], fields::<R>(), metadata)?, 0))
    }

    /// Adds a row. Errors: as [`TableWriter::push`].
    pub fn push<'a>(&mut self, row: &'a R::Of<'a>) -> Result<()> {
        let int = |column: &mut TableColumn, value: Option<u64>| match value.map(i64::try_from) {
            Some(Ok(value)) => column.push_int(value),
            Some(Err(_)) => false,
            None => column.push(Cell::Null),
        };
        let values = &self.values;
        self.table.fill(|at, column| {
            let (value, d) = &values[at];
            let held = match value {
                ColumnValue::Int(of) => int(column, of(row)),
                ColumnValue::Ints(of) => int(column, of(row, *d)),
                ColumnValue::Name(of) => column.push_name(of(row)),
                _ => column.push(value.cell(row, *d)),
            };
            if held { Ok(()) } else { Err(value.cell(row, *d)) }
        })
    }

    /// Completes the file, which still has a temporary name. Errors: as [`TableWriter::complete`].
    pub fn complete(self) -> Result<Pending> {
        self.table.complete()
    }
}

impl<R: TableRow> Checkpoint for Writer<R> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Writer { table, values: _ } = self;
        table.visit(visitor)
    }
}

/// Encodes a value as a part of the name of a partition folder that is valid on every file system: characters other than letters, digits
/// and `._-,` are percent-encoded, as hive partitions do (`slot%3A12`), and so are trailing dots. A long value is replaced by its beginning
/// and a digest, since file names are limited to 255 characters.
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
    if text.len() > MOST {
        text.truncate(MOST - DIGEST);
        // The cut before the digest must not split a percent-encoded character.
        let cut = text.len() - text.bytes().rev().take(2).position(|byte| byte == b'%').map_or(0, |at| at + 1);
        text.truncate(cut);
        text.push_str(&blake3::hash(value.as_bytes()).to_hex()[..DIGEST]);
    }
    text
}

/// Maximum length of a value as a part of a name, and the length of the digest in it.
const MOST: usize = 200;
const DIGEST: usize = 16;

/// Returns the columns of the axes of an experiment, which come first in every table.
pub fn axes() -> Vec<Described> {
    let axes = [
        Column::new("policy", "name of the policy", Kind::Text),
        Column::new("run", "number of the run among those of the policy, from 0", Kind::Int),
        Column::new("seed", "seed of the workload; null for a trace", Kind::Int),
    ];
    axes.iter().flat_map(|column| column.described(&[])).collect()
}

/// Returns the column of an axis of a sweep in a table with these fields: its name, with the prefix `sweep_` if the table itself has a
/// column of that name, such as `variant` in `groups`.
pub fn axis_column(axis: &str, fields: &[Field]) -> String {
    if fields.iter().any(|field| field.name == axis) { format!("sweep_{axis}") } else { axis.to_owned() }
}
