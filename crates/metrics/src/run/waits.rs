//! The waits of tasks, the places where they started, and the lost work.

use super::totals::mean_s;
use super::{Metrics, float, seconds};
use plimsoll_base::column::Unit;

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        seconds("task_wait_mean_s", "mean wait of launched tasks: release, or being stopped, to launch", |run| {
            mean_s(run.totals.task_wait_us, run.totals.waited)
        })
        .lower()
        .words("Mean wait of tasks"),
        seconds("task_wait_max_s", "the longest of these waits", |run| {
            (run.totals.waited > 0).then(|| run.totals.task_wait_max.seconds())
        })
        .lower()
        .words("Longest wait of a task"),
        seconds("gang_wait_mean_s", "mean wait of launched tasks that start with all others of their row", |run| {
            mean_s(run.totals.gang_wait_us, run.totals.gang_tasks)
        })
        .lower()
        .words("Mean wait of gangs"),
        seconds("gang_wait_max_s", "the longest of these waits", |run| {
            (run.totals.gang_tasks > 0).then(|| run.totals.gang_wait_max.seconds())
        })
        .lower()
        .words("Longest wait of a gang"),
        float("located_hits", "share of the tasks with a location that were launched there", |run| {
            let located = run.totals.located;
            (located > 0).then(|| run.totals.located_there as f64 / located as f64)
        })
        .unit(Unit::Share)
        .higher(),
        seconds(
            "lost_s",
            "wasted run time in seconds, summed over tasks: until they were stopped (from their last checkpoint on), and to resume",
            |run| Some(run.totals.lost_us as f64 / 1e6),
        )
        .lower(),
        seconds(
            "slowed_s",
            "seconds that finished tasks took longer than their duration, added up over tasks",
            |run| Some(run.totals.slowed_us as f64 / 1e6),
        )
        .lower(),
    ],
    fairness: &[],
};
