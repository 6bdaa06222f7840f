//! A template with two metrics: one of the totals of a run, and one on the sampling grid.
//!
//! A column of integers is declared with `int`. A quantity without an existing total is collected in `totals.rs`, which receives every job
//! and task (`crates/sim/src/record.rs`). A column with `.headline(..)` is also in the summary on the terminal; all columns are in tables
//! and figures.

use super::{Metrics, float, mean};
use plimsoll_base::column::Unit;

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        float("template_done", "share of the submitted tasks that ended", |run| {
            let tasks = run.totals.tasks;
            (tasks > 0).then(|| run.totals.finished as f64 / tasks as f64)
        })
        .unit(Unit::Share)
        .higher()
        .words("Tasks that ended"),
        mean("template_backlogged", "backlogged users, mean over the grid", |at| Some(at.backlogged.len() as f64))
            .lower(),
    ],
    fairness: &[],
};
