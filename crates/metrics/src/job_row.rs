//! The table of jobs.

use plimsoll_base::column::{Column, ColumnValue, TableRow};
use plimsoll_base::names::Listed;
use plimsoll_base::units::Span;
use plimsoll_sim::record::JobRecord;

/// A job that has ended, or was cut off at the horizon.
pub struct JobRow<'a> {
    /// The name of the job.
    pub name: &'a str,
    /// The user that submitted it.
    pub user: Listed<'a>,
    /// The times and sizes of the job.
    pub record: &'a JobRecord<'a>,
}

impl TableRow for JobRow<'static> {
    type Of<'a> = JobRow<'a>;

    const TABLE: &'static str = "jobs";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<JobRow<'static>>>;
        vec![
            C::text("job", "name", |job| Some(job.name)).distinct(),
            C::listed("user", "the user that submitted it", |job| job.user),
            C::int("tasks", "number of its tasks", |job| Some(job.record.tasks)),
            C::micros("submit_us", "when its first row was submitted", |job| Some(job.record.submit.0)),
            C::micros("start_us", "when its first task was launched", |job| Some(job.record.start?.0)),
            C::micros("finish_us", "when its last task ended; null if a task has not ended", |job| {
                Some(job.record.finish?.0)
            }),
            C::micros(
                "work_us",
                "sum of tasks times duration; null, with a warning, from 2^63 us (292,000 years) on",
                |job| job.record.work,
            ),
            C::micros("ideal_us", "its completion time on an empty, unlimited cluster; null if it never ends", |job| {
                Some(job.record.ideal.0).filter(|ideal| *ideal < Span::ENDLESS.0)
            }),
        ]
    }
}
