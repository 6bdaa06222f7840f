//! The tables of jobs and of tasks.

use super::{Table, Written};
use crate::column::{Column, Subject, Value};
use crate::record::JobRecord;
use crate::units::Time;

/// The subject of the table `jobs`.
pub struct Jobs;

/// A job that has ended, or was cut off.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Its name.
    pub name: &'a str,
    /// The name of its user.
    pub user: &'a str,
    /// The engine's word.
    pub record: &'a JobRecord<'a>,
}

impl Subject for Jobs {
    type Row<'a> = Job<'a>;
}

impl Written for Jobs {
    const TABLE: Table = Table::Jobs;

    fn columns() -> Vec<Column<Value<Jobs>>> {
        type C = Column<Value<Jobs>>;
        vec![
            C::text("job", "name", |job| Some(job.name)),
            C::text("user", "the user that submitted it", |job| Some(job.user)),
            C::int("tasks", "how many tasks it has", |job| Some(job.record.tasks)),
            C::micros("submit_us", "when its first row was submitted", |job| Some(job.record.submit.0)),
            C::micros("start_us", "when its first task was launched", |job| Some(job.record.start?.0)),
            C::micros("finish_us", "when its last task ended; null if one has not", |job| Some(job.record.finish?.0)),
            C::micros(
                "work_us",
                "tasks times duration, added up; null from 2^63 us (292,000 years) on, of which there is a warning",
                |job| job.record.work,
            ),
            C::micros("ideal_us", "its completion time on an empty, boundless cluster", |job| Some(job.record.ideal.0)),
        ]
    }
}

/// The subject of the table `tasks`.
pub struct Tasks;

/// An attempt of a task, or a task that never started.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The name of its job.
    pub job: &'a str,
    /// Its number within the job.
    pub number: u64,
    /// How often it was stopped before.
    pub attempt: u32,
    /// The name of its user.
    pub user: &'a str,
    /// Its machine.
    pub machine: Option<u32>,
    /// Its devices.
    pub devices: Option<&'a str>,
    /// From when on it waited.
    pub release: Option<Time>,
    /// When it was launched.
    pub start: Option<Time>,
    /// When it ended or was stopped.
    pub finish: Option<Time>,
    /// Its fate, or why it never started.
    pub outcome: &'static str,
}

impl Subject for Tasks {
    type Row<'a> = Task<'a>;
}

impl Written for Tasks {
    const TABLE: Table = Table::Tasks;

    fn columns() -> Vec<Column<Value<Tasks>>> {
        type C = Column<Value<Tasks>>;
        vec![
            C::text("job", "name of the job", |task| Some(task.job)),
            C::int("task", "number within the job, from 0, in row order", |task| Some(task.number)),
            C::int("attempt", "which try this is, from 0", |task| Some(task.attempt.into())),
            C::text("user", "the user that submitted it", |task| Some(task.user)),
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
                "when it could have started at the earliest, or was stopped before; null if it never could: too large, or after a stage that did not end",
                |task| Some(task.release?.0),
            ),
            C::micros("start_us", "when it was launched; null if it never was", |task| Some(task.start?.0)),
            C::micros("finish_us", "when it ended or was stopped; null if it has not", |task| Some(task.finish?.0)),
            C::text(
                "outcome",
                "finished, running (at the horizon), reclaimed, preempted or machine-failed (stopped, it starts anew), lost (with its machine), too large, deadlocked, starved or waiting (at the horizon)",
                |task| Some(task.outcome),
            ),
        ]
    }
}
