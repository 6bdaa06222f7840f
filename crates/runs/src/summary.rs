//! The summary of a run from the values of its collector.

use std::collections::HashSet;

use crate::collect::Collector;
use plimsoll_base::column::{Cell, Described, Kind};
use plimsoll_base::units::{Dim, Span};
use plimsoll_metrics::User;
use plimsoll_metrics::numbers::{are, count};
use plimsoll_results::schema::Table;
use plimsoll_results::summary::SummaryValue;
use plimsoll_sim::books::{WEIGHT_ONE, Weights};
use plimsoll_sim::workload::describe;

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
