//! The tables that do not belong to one run: statistics of a study, and results of plans without runs.

use crate::column::{Described, TableRow};
use crate::experiment::{Difference, Estimate};
use crate::output::schema::{AcceleratorJob, AcceleratorRun, AcceleratorType, Fated, Recovered, described};

/// A table that does not belong to one run.
pub struct WholeTable {
    /// The name.
    pub name: &'static str,
    /// The meaning of a row.
    pub meaning: &'static str,
    /// The columns.
    pub columns: fn() -> Vec<Described>,
}

fn table<R: TableRow>(meaning: &'static str) -> WholeTable {
    WholeTable { name: R::TABLE, meaning, columns: || described::<R>(&[]) }
}

/// Returns all of these tables.
pub fn whole_tables() -> [WholeTable; 7] {
    [
        table::<Estimate>("means over seeds with their 95 % confidence intervals"),
        table::<Difference>("differences from the baseline, with their intervals and p-values"),
        table::<Fated>("one row per failure scenario and seed: what became of the tasks (failover plans)"),
        table::<Recovered>("one row per failure and seed: how long the recovery took (failover plans)"),
        table::<AcceleratorRun>("one row per list of jobs and policy: its summary (plans with accelerators)"),
        table::<AcceleratorType>("one row per worker type of such a run (plans with accelerators)"),
        table::<AcceleratorJob>("one row per job of such a run (plans with accelerators)"),
    ]
}
