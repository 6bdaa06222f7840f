//! The tables of experiments with the control plane.

use plimsoll_base::column::{Column, ColumnValue, TableRow};
use plimsoll_control::rules::Rule;
use plimsoll_control::study::{FateRow, RecoveryRow};

/// The fate of the workers of a class in a scenario.
pub struct Fated<'a> {
    /// The outcome of the scenario.
    pub row: &'a FateRow,
    /// The name of the scenario.
    pub name: String,
    /// The violated invariants.
    pub violated: String,
}

impl TableRow for Fated<'static> {
    type Of<'a> = Fated<'a>;

    const TABLE: &'static str = "scenarios";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<Fated<'static>>>;
        vec![
            C::int("scenario", "number of the scenario", |of| Some(of.row.scenario.number() as u64)),
            C::text("name", "its name", |of| Some(&of.name)),
            C::text("without", "the disabled rule; null if every rule is active", |of| of.row.without.map(Rule::name)),
            C::text("class", "online or offline", |of| Some(if of.row.online { "online" } else { "offline" })),
            C::int("workers", "workers of that class", |of| Some(of.row.fate.before.into())),
            C::int("kept", "workers that kept running", |of| Some(of.row.fate.kept().into())).higher(),
            C::int("replaced", "workers that were replaced", |of| Some(of.row.fate.replaced().into())).lower(),
            C::int("lost", "workers that were not replaced", |of| Some(of.row.fate.lost().into())).lower(),
            C::text("violated", "the invariants that were violated in any timing", |of| Some(&of.violated)),
        ]
    }
}

/// The time to recover in a scenario with one setting of the clocks.
pub struct Recovered<'a> {
    /// The outcome of the scenario.
    pub row: &'a RecoveryRow,
    /// The name of the scenario.
    pub name: String,
    /// The violated invariants.
    pub violated: String,
}

impl TableRow for Recovered<'static> {
    type Of<'a> = Recovered<'a>;

    const TABLE: &'static str = "recovery";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<Recovered<'static>>>;
        vec![
            C::int("scenario", "number of the scenario", |of| Some(of.row.scenario.number() as u64)),
            C::text("name", "its name", |of| Some(&of.name)),
            C::micros("heartbeat_us", "time between two heartbeats", |of| Some(of.row.beat.0)),
            C::micros("window_us", "length of the recovery window", |of| Some(of.row.window.0)),
            C::seconds("mean_recovery_s", "from the first fault to the last change that it caused: the mean", |of| {
                Some(of.row.mean_s)
            })
            .lower(),
            C::seconds("longest_recovery_s", "the longest of these times", |of| Some(of.row.longest_s)).lower(),
            C::int("offline_workers", "offline workers", |of| Some(of.row.offline.before.into())),
            C::int("offline_kept", "of these, workers that kept running", |of| Some(of.row.offline.kept().into()))
                .higher(),
            C::text("violated", "the invariants that were violated", |of| Some(&of.violated)),
        ]
    }
}
