//! The counts of a run, and its length.

use super::{At, MetricValue, Metrics, float, int, micros};
use plimsoll_base::column::{Column, Topic};

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        Column::new("workload", "name of the trace or generator", MetricValue::Text(|run| run.workload)).given(),
        int("machines", "machines of the cluster", |run| Some(run.machines)).given(),
        int("users", "users that appeared", |run| Some(run.users)),
        int("jobs", "jobs that appeared", |run| Some(run.totals.jobs)),
        int("jobs_finished", "jobs of which all tasks ended", |run| Some(run.totals.jobs_finished))
            .headline(Topic::Delay, "jobs"),
        int("tasks", "tasks submitted", |run| Some(run.totals.tasks)),
        int("tasks_finished", "tasks that ended", |run| Some(run.totals.finished)),
        int("tasks_never_started", "tasks that were never launched: too large, deadlocked, starved or cut", |run| {
            Some(run.totals.stuck.values().sum())
        })
        .lower(),
        int(
            "tasks_stopped_waiting",
            "tasks that were launched, were stopped or failed, and still waited to start again when the run ended",
            |run| Some(run.totals.stopped_waiting),
        )
        .lower(),
        int(
            "tasks_stopped",
            "how often running tasks were stopped and had to start again, without their own failures (tasks_failed); a task stopped twice counts twice",
            |run| Some(run.totals.stopped),
        )
        .lower(),
        int(
            "tasks_lost",
            "tasks lost with their machine or given up, so that they never ended; their jobs continued without them",
            |run| Some(run.totals.lost),
        )
        .lower(),
        int("asks", "preemption requests of urgent tasks", |run| Some(run.outcome.asks)),
        int("asks_withdrawn", "preemption requests that were withdrawn", |run| Some(run.outcome.asks_withdrawn)).lower(),
        int("tasks_forced", "tasks that were stopped because they had not ended in time after a preemption request", |run| {
            Some(run.outcome.forced)
        })
        .lower(),
        int("hoards_given_up", "how often a gang released reserved room without starting", |run| {
            Some(run.outcome.hoards_given_up)
        })
        .lower(),
        int("tasks_failed", "attempts of tasks that failed by themselves; tasks of a gang that are stopped with one that fails are not counted", |run| Some(run.outcome.failures))
            .lower(),
        int("backups", "backup instances of running tasks that were made", |run| Some(run.outcome.backups)),
        int("backups_won", "backups that ended while the other instance still ran", |run| {
            Some(run.outcome.backups_won)
        }),
        int("tasks_located", "launched tasks that request a location", |run| Some(run.totals.located)),
        int(
            "tasks_cross_room",
            "of these, tasks launched in another room than the requested one, or outside all rooms",
            |run| Some(run.totals.located_elsewhere),
        )
        .lower(),
        micros("end_us", "when the run ended: the last event or the horizon", |run| Some(run.outcome.end.0)),
        micros("makespan_us", "from the first submission to the last end of a task", |run| Some(run.makespan().0))
            .lower(),
        float("throughput_tasks_per_s", "tasks finished over makespan", |run| {
            let makespan = run.makespan();
            (makespan.0 > 0).then(|| run.totals.finished as f64 / makespan.seconds())
        })
        .higher()
        .words("Tasks finished per second"),
    ],
    fairness: &[
        At::micros("time_us", "grid point", |point| Some(point.at.0)),
        At::int("active_users", "users with running or waiting tasks", |point| Some(point.sample.shares.len() as u64)),
        At::int(
            "backlogged_users",
            "users with waiting tasks",
            |point| Some(point.sample.backlogged.len() as u64),
        ),
        At::int("running", "running tasks", |point| Some(point.books.total_running())),
        At::int("waiting", "waiting tasks", |point| Some(point.books.total_waiting())),
    ],
};

pub(super) static BESIDES: Metrics = Metrics {
    runs: &[
        int("peak_running", "the most tasks that ran at once", |run| Some(run.outcome.peak_running)),
        micros("sample_us", "step of the sampling grid", |run| Some(run.step.0)).given(),
    ],
    fairness: &[],
};
