//! The stored results of a run of a plan with accelerators: the summary in its receipt, and the table of its jobs.

use std::path::{Path, PathBuf};

use plimsoll_base::column::{Cell, Computed, Kind, TableRow};
use serde::{Deserialize, Serialize};

use crate::manifest::below;
use crate::receipt::Receipt;
use crate::schema::{AcceleratorJob, AcceleratorRun, AcceleratorRunKey, AcceleratorType, partition};
use crate::summary::SummaryValue;

/// The cells of a row, in the order of its columns.
pub type StoredRow = Vec<SummaryValue>;

/// The summary of a run. Rows of jobs are in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceleratorSummary {
    /// The policy.
    pub policy: String,
    /// The number of the list of jobs.
    pub run: u64,
    /// The jobs per hour; `None` if the list states arrivals.
    pub jobs_per_hour: Option<f64>,
    /// The row of [`AcceleratorRun`].
    pub row: StoredRow,
    /// The rows of [`AcceleratorType`], in the order of the worker types.
    pub types: Vec<StoredRow>,
}

impl AcceleratorSummary {
    /// Creates the summary of a run from its rows.
    pub fn new(run: &AcceleratorRun, types: &[AcceleratorType]) -> AcceleratorSummary {
        let AcceleratorRunKey { policy, jobs_per_hour, run: number } = run.of.clone();
        let types = types.iter().map(stored).collect();
        AcceleratorSummary { policy, run: number, jobs_per_hour, row: stored(run), types }
    }

    /// Returns the identity of the run.
    pub fn key(&self) -> AcceleratorRunKey {
        AcceleratorRunKey { policy: self.policy.clone(), jobs_per_hour: self.jobs_per_hour, run: self.run }
    }

    /// Returns the value of a column of [`AcceleratorRun`] as a number.
    pub fn number(&self, column: &str) -> Option<f64> {
        let at = AcceleratorRun::columns().iter().position(|known| known.name == column)?;
        self.row.get(at)?.number()
    }
}

impl Receipt<AcceleratorSummary> {
    /// Returns whether the receipt belongs to this run, has rows of the present columns, and lists only the table of its jobs.
    pub fn is_of_accelerators(&self, key: &AcceleratorRunKey) -> bool {
        let table = below(Path::new(""), &jobs_path(Path::new(""), key));
        let (runs, types) = (AcceleratorRun::columns().len(), AcceleratorType::columns().len());
        self.summary.key() == *key
            && self.summary.row.len() == runs
            && self.summary.types.iter().all(|row| row.len() == types)
            && self.tables.keys().eq([&table])
    }
}

/// Returns the file of the jobs of a run in the folder of its cell.
pub fn jobs_path(folder: &Path, key: &AcceleratorRunKey) -> PathBuf {
    let name = AcceleratorJob::TABLE;
    let mut path = folder.join(name).join(format!("policy={}", partition(&key.policy)));
    if let Some(rate) = key.jobs_per_hour {
        path.push(format!("jobs_per_hour={rate}"));
    }
    path.join(format!("run={}", key.run)).join(format!("{name}.parquet"))
}

fn stored<R: for<'a> TableRow<Of<'a> = R>>(row: &R) -> StoredRow {
    let value = |cell: Cell<'_>, number: bool| match cell {
        Cell::Int(value) => SummaryValue::Int(u64::try_from(value).ok()),
        Cell::Large(value) => SummaryValue::Int(Some(value)),
        // JSON has no infinite numbers; the rows of an interrupted command must equal those of a continued one.
        Cell::Float(value) => SummaryValue::Float(value.is_finite().then_some(value)),
        Cell::Text(text) => SummaryValue::Text(text.to_owned()),
        Cell::Null if number => SummaryValue::Float(None),
        Cell::Null => SummaryValue::Int(None),
    };
    let columns = R::columns();
    columns.iter().map(|column| value(column.value.cell(row, 0), column.value.kind() == Kind::Float)).collect()
}
