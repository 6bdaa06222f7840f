//! The table of tasks.

use plimsoll_base::column::{Column, ColumnValue, TableRow};
use plimsoll_base::names::Listed;
use plimsoll_base::units::Time;

/// An attempt of a task, or a task that never started.
pub struct Task<'a> {
    /// The name of the job.
    pub job: &'a str,
    /// The number within the job, from 0.
    pub number: u64,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The user that submitted it.
    pub user: Listed<'a>,
    /// The machine of the attempt.
    pub machine: Option<u32>,
    /// The devices of the attempt.
    pub devices: Option<&'a str>,
    /// The earliest possible start of the attempt.
    pub release: Option<Time>,
    /// The time of the launch.
    pub start: Option<Time>,
    /// The time when it ended or was stopped.
    pub finish: Option<Time>,
    /// The outcome of the attempt.
    pub outcome: &'static str,
}

impl TableRow for Task<'static> {
    type Of<'a> = Task<'a>;

    const TABLE: &'static str = "tasks";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<Task<'static>>>;
        vec![
            C::text("job", "name of the job", |task| Some(task.job)),
            C::int("task", "number within the job, from 0, in row order", |task| Some(task.number)).distinct(),
            C::int("attempt", "number of the attempt, from 0", |task| Some(task.attempt.into())),
            C::listed("user", "the user that submitted it", |task| task.user),
            C::int("machine", "index of its machine; null when pooled or never started", |task| {
                task.machine.map(u64::from)
            }),
            C::text(
                "devices",
                "its devices, such as gpu:0;gpu:1, or gpu:2=0.46 for a part of one; null where devices have no ids",
                |task| task.devices,
            ),
            C::micros(
                "release_us",
                "when the attempt could have started at the earliest; for a further attempt, when the one before was stopped; null if it could never start: too large, or after a stage that did not end",
                |task| Some(task.release?.0),
            ),
            C::micros(
                "start_us",
                "when it was launched, under a control plane when its worker started; null if it was never launched",
                |task| Some(task.start?.0),
            ),
            C::micros("finish_us", "when it ended or was stopped; null if neither has happened", |task| {
                Some(task.finish?.0)
            }),
            C::text(
                "outcome",
                "finished, running (at the horizon), reclaimed, preempted, machine-failed, failed, or revoked or moved by the control plane (stopped, it restarts), superseded (its other instance ended first), lost (with its machine), given-up (it failed too often), too large, deadlocked, starved or waiting (at the horizon)",
                |task| Some(task.outcome),
            ),
        ]
    }
}
