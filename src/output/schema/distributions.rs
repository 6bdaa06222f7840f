//! The tables of distributions: completion times by size, quantiles of delays, and demands.

use super::{Table, Written};
use crate::column::{Column, Subject, Unit, Value};
use crate::units::Dim;

/// The subject of the table `bins`.
pub struct Bins;

/// The jobs of some sizes.
#[derive(Clone, Debug)]
pub struct Bin<'a> {
    /// The sizes.
    pub label: &'a str,
    /// Its place.
    pub position: u64,
    /// How many jobs.
    pub jobs: u64,
    /// Their mean completion time, in seconds.
    pub completion_s: Option<f64>,
}

impl Subject for Bins {
    type Row<'a> = Bin<'a>;
}

impl Written for Bins {
    const TABLE: Table = Table::Bins;

    fn columns() -> Vec<Column<Value<Bins>>> {
        type C = Column<Value<Bins>>;
        vec![
            C::text("bin", "job sizes in tasks", |bin| Some(bin.label)).words("Job size (tasks)"),
            C::int("position", "order of the bins", |bin| Some(bin.position)),
            C::int("jobs", "finished jobs", |bin| Some(bin.jobs)),
            C::seconds("completion_mean_s", "their mean completion time", |bin| bin.completion_s)
                .lower()
                .words("Mean completion time"),
        ]
    }
}

/// The subject of the table `quantiles`.
pub struct Quantiles;

/// A quantile of a delay.
#[derive(Clone, Debug)]
pub struct Quantile {
    /// The delay.
    pub metric: &'static str,
    /// Which quantile.
    pub q: f64,
    /// Its value.
    pub value: f64,
}

impl Subject for Quantiles {
    type Row<'a> = Quantile;
}

impl Written for Quantiles {
    const TABLE: Table = Table::Quantiles;

    fn columns() -> Vec<Column<Value<Quantiles>>> {
        type C = Column<Value<Quantiles>>;
        vec![
            C::text("metric", "completion_s, wait_s or slowdown, of finished jobs", |row| Some(row.metric)),
            C::float("q", "which quantile", |row| Some(row.q)),
            C::float("value", "its value: exact for up to 65,536 jobs, of more to 1 part in 2048", |row| {
                Some(row.value)
            }),
        ]
    }
}

/// The subject of the table `demands`.
pub struct Demands;

/// Tasks of one kind of demand.
#[derive(Clone, Debug)]
pub struct DemandKind<'a> {
    /// The stage of their rows.
    pub stage: Option<&'a str>,
    /// Their mean demand, in base units.
    pub mean: Vec<f64>,
    /// The resources.
    pub dims: &'a [Dim],
    /// How many they are.
    pub tasks: u64,
}

impl Subject for Demands {
    type Row<'a> = DemandKind<'a>;
}

impl Written for Demands {
    const TABLE: Table = Table::Demands;

    fn columns() -> Vec<Column<Value<Demands>>> {
        type C = Column<Value<Demands>>;
        vec![
            C::text("stage", "stage of the rows; null if they have none", |row| row.stage),
            C::floats("demand_<r>", "mean <r> of a task of this kind, in the unit people write", |row, d| {
                Some(row.mean[d] / row.dims[d].unit.scale() as f64)
            })
            .unit(Unit::Amount)
            .words("<r>"),
            C::int("tasks", "how many tasks", |row| Some(row.tasks)),
        ]
    }
}
