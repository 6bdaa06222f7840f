//! The share of free amounts that the workload cannot use.

use super::{MetricValue, Metrics};
use plimsoll_base::column::{Column, Unit};

pub(super) static METRICS: Metrics = Metrics {
    runs: &[Column::new(
        "fragmentation",
        "share of the free devices that is useless to the workload's tasks, mean over the grid; null without devices",
        MetricValue::Always(|state| Some(state.machines?.fragmentation()?.share())),
    )
    .unit(Unit::Share)
    .lower()],
    fairness: &[],
};
