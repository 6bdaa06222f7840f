//! The names of the files in a results folder, and of the folders in it.

use plimsoll_base::column::TableRow;
pub use plimsoll_store::lock::RECEIPTS;

use crate::schema::{AcceleratorJob, AcceleratorRun, AcceleratorType, Fated, Recovered, Table};

/// The description of the results of a plan without a sweep, or of a cell.
pub const EXPERIMENT: &str = "experiment.json";

/// The description of a sweep's results, which is beside the folders of its cells.
pub const STUDY: &str = "study.json";

/// The manifest of the generated files.
pub const MADE: &str = "made.json";

/// The facts that may differ between two executions of a plan.
pub const RUN: &str = "run.json";

/// The requests for figures.
pub const REQUESTS: &str = "figures.toml";

/// The folder of the saved states of runs that have not ended, with a folder for each run.
pub const SAVED: &str = "saved";

/// The name of the file with the saved state of a run, beside its incomplete tables.
pub const STATE: &str = "state";

/// The folder of figures.
pub const FIGURES: &str = "figures";

/// The report.
pub const REPORT: &str = "report.html";

/// The folder of the tables of statistics.
pub const STATISTICS: &str = "statistics";

/// The table of estimates, below the folder of the results.
pub const ESTIMATES: &str = "statistics/estimates.parquet";

/// The table of differences, below a results folder.
pub const DIFFERENCES: &str = "statistics/differences.parquet";

/// The names of the tables of a plan with a table `[failover]`.
pub const FAILOVER: [&str; 2] = [Fated::TABLE, Recovered::TABLE];

/// The names of the tables of a plan with a table `[accelerators]`.
pub const ACCELERATORS: [&str; 3] = [AcceleratorRun::TABLE, AcceleratorType::TABLE, AcceleratorJob::TABLE];

/// The folder of the jobs of each run of such a plan.
pub const ACCELERATOR_JOBS: &str = AcceleratorJob::TABLE;

/// The folder of counterexamples of a plan.
pub const COUNTEREXAMPLES: &str = "counterexamples";

/// The folder of the targets of published results.
pub const PUBLISHED_TARGETS: &str = "targets";

/// The description of a bundle.
pub const RO_CRATE: &str = "ro-crate-metadata.json";

/// The prefix of the folder of a cell.
pub const CELL: &str = "cell=";

/// Returns whether a name in the results folder itself is the name of a record.
pub fn is_record(name: &str) -> bool {
    [EXPERIMENT, STUDY, MADE, RUN].contains(&name) || (name.starts_with("run-") && name.ends_with(".json"))
}

/// Returns whether results use this name in their folder.
pub fn is_of_results(name: &str) -> bool {
    let tables = || Table::all().map(|table| table.name());
    let others = [RECEIPTS, SAVED, FIGURES, STATISTICS, REPORT, REQUESTS, COUNTEREXAMPLES, ACCELERATOR_JOBS];
    is_record(name)
        || name.starts_with(CELL)
        || tables().chain(others).any(|own| own == name)
        || name.strip_suffix(".parquet").is_some_and(|table| FAILOVER.contains(&table) || ACCELERATORS.contains(&table))
}
