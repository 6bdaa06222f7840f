//! The tables of distributions: completion times by size, quantiles of delays, and demands.

use plimsoll_base::column::{Column, ColumnValue, TableRow, Unit};
use plimsoll_base::units::Dim;

/// The jobs of a range of sizes.
pub struct BinRow<'a> {
    /// The sizes of the jobs in tasks.
    pub label: &'a str,
    /// The position of the bin.
    pub position: u64,
    /// The number of finished jobs.
    pub jobs: u64,
    /// Their mean completion time.
    pub completion_s: Option<f64>,
}

impl TableRow for BinRow<'static> {
    type Of<'a> = BinRow<'a>;

    const TABLE: &'static str = "bins";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<BinRow<'static>>>;
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

/// A quantile of a delay.
pub struct Quantile {
    /// The delay.
    pub metric: &'static str,
    /// The quantile, from 0 to 1.
    pub q: f64,
    /// The value of the quantile.
    pub value: f64,
}

impl TableRow for Quantile {
    type Of<'a> = Quantile;

    const TABLE: &'static str = "quantiles";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<Quantile>>;
        vec![
            C::text("metric", "completion_s, wait_s or slowdown, of finished jobs", |row| Some(row.metric)),
            C::float("q", "the quantile, from 0 to 1", |row| Some(row.q)),
            C::float("value", "the value of the quantile: exact for up to 65,536 jobs, else within 1/2048", |row| {
                Some(row.value)
            }),
        ]
    }
}

/// The tasks of one kind of demand.
pub struct DemandKind<'a> {
    /// The stage of the rows.
    pub stage: Option<&'a str>,
    /// The mean demand of a task per resource, in base units.
    pub mean: Vec<f64>,
    /// The resource dimensions.
    pub dims: &'a [Dim],
    /// The number of tasks.
    pub tasks: u64,
}

impl TableRow for DemandKind<'static> {
    type Of<'a> = DemandKind<'a>;

    const TABLE: &'static str = "demands";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<DemandKind<'static>>>;
        vec![
            C::text("stage", "stage of the rows; null if they have none", |row| row.stage),
            C::floats("demand_<r>", "mean <r> of a task of this kind, in the display unit", |row, d| {
                Some(row.mean[d] / row.dims[d].unit.scale() as f64)
            })
            .unit(Unit::Amount)
            .words("<r>"),
            C::int("tasks", "number of tasks", |row| Some(row.tasks)),
        ]
    }
}
