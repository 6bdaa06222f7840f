//! The reserved, used and overcommitted parts of the cluster.

use super::totals::part;
use super::{At, GridPoint, Metrics, float, shares};
use plimsoll_base::column::{Topic, Unit};
use plimsoll_base::units::{Resources, Span};

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        shares(
            "reserved_<r>",
            "share of <r> reserved by running tasks, time-weighted from the first submission to the end of the run, within the measured window; null under slots",
            |run, d| run.share(run.totals.held_us[d], run.capacity.0[d]).filter(|_| !run.totals.slots),
        )
        .words("<r> reserved"),
        shares(
            "used_<r>",
            "share of <r> that running tasks truly use, over the same time; may exceed 1 under slots",
            |run, d| run.share(run.totals.used_us[d], run.capacity.0[d]),
        )
        .higher()
        .words("<r> in use")
        .key_headline(Topic::Sharing, "used <r>", 4),
        shares(
            "arriving_<r>",
            "share of <r> truly used from the first to the last submission of a job, within the measured window: without the time when work runs out",
            |run, d| part(run.totals.used_until_last_submit_us[d], run.arriving, run.capacity.0[d]),
        )
        .higher()
        .words("<r> in use while jobs arrive"),
    ],
    fairness: &[
        At::floats("reserved_<r>", "share of <r> reserved; null under slots", |point, d| {
            of_cluster(point, point.books.total_held(), d).filter(|_| point.books.lens_is_plain())
        })
        .unit(Unit::Share)
        .words("<r> reserved"),
        At::floats("used_<r>", "share of <r> truly used", |point, d| of_cluster(point, point.books.total_used(), d))
            .unit(Unit::Share)
            .higher()
            .words("<r> in use"),
    ],
};

pub(super) static BESIDES: Metrics = Metrics {
    runs: &[
        shares("overcommitted_<r>", "share of that time with usage of <r> above its capacity", |run, d| {
            run.share(run.totals.over_us[d].into(), 1)
        })
        .lower()
        .words("Time with <r> over-committed"),
        shares(
            "excess_<r>",
            "mean usage of <r> above its capacity over that time, relative to the capacity",
            |run, d| run.share(run.totals.excess_us[d], run.capacity.0[d]),
        )
        .lower()
        .words("<r> in use above capacity"),
        shares(
            "peak_used_<r>",
            "largest share of <r> that running tasks truly use at once, within the measured window; over-committed above 1",
            |run, d| {
                let capacity = run.capacity.0[d];
                (run.measured > Span::ZERO && capacity > 0)
                    .then(|| run.totals.peak_used[d] as f64 / capacity as f64)
            },
        )
        .words("Largest use of <r>"),
        float(
            "slots_held",
            "share of slots held, time-weighted (of the only resource reserved under only:R); null under others",
            |run| {
                // A policy view that is not plain offers a single resource: slots, or the only resource that is reserved.
                let offered = run.offered.0.iter().position(|&amount| amount > 0).unwrap_or(0);
                run.share(run.totals.held_us[offered], run.offered.0[offered]).filter(|_| run.totals.slots)
            },
        )
        .unit(Unit::Share),
    ],
    fairness: &[],
};

fn of_cluster(point: &GridPoint, amounts: &Resources, d: usize) -> Option<f64> {
    let capacity = point.books.capacity().0[d];
    (capacity > 0).then(|| amounts.0[d] as f64 / capacity as f64)
}
