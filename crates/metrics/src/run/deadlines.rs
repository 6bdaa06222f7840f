//! Deadlines of jobs: misses and tardiness.
//!
//! The deadline of a job is the latest deadline of its rows. Its tardiness is the time from the deadline to the end of its last task, at
//! least 0. Source: Pinedo, Scheduling: Theory, Algorithms, and Systems (unit penalty and tardiness). A job that is unfinished at the end
//! of the run counts only if its deadline has passed: it has missed it, and its tardiness so far is a lower bound.

use super::totals::mean_s;
use super::{Metrics, float, int, seconds};
use crate::job_table::JobTable;
use crate::window::Window;
use plimsoll_base::column::Unit;
use plimsoll_base::units::{Span, Time};
use plimsoll_sim::record::JobRecord;
use plimsoll_sim::workload::TaskSet;

/// The deadlines of unfinished jobs, and the sums over the other jobs that were submitted in the window.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Deadlines {
    /// The deadlines of jobs in the system; empty in a workload without deadlines.
    open: JobTable<Time>,
    jobs: u64,
    missed: u64,
    tardiness_us: u128,
    tardiness_max: Span,
}

impl Deadlines {
    /// Records the submission of a row.
    pub fn submitted(&mut self, row: &TaskSet) {
        if let Some(deadline) = row.deadline {
            let latest = self.open.get_or_insert_with(row.job, Time::default);
            *latest = deadline.max(*latest);
        }
    }

    /// Records a job that has ended or was cut off at `now`.
    pub fn job(&mut self, job: &JobRecord, window: &Window, now: Time) {
        if self.open.is_empty() {
            return;
        }
        let Some(deadline) = self.open.remove(job.job).filter(|_| window.contains(job.submit)) else { return };
        let end = job.finish.unwrap_or(now);
        let tardiness = Span(end.0.saturating_sub(deadline.0));
        let missed = tardiness > Span::ZERO;
        if missed || job.finish.is_some() {
            self.jobs += 1;
            self.missed += u64::from(missed);
            self.tardiness_us += u128::from(tardiness.0);
            self.tardiness_max = self.tardiness_max.max(tardiness);
        }
    }
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        int(
            "deadline_jobs",
            "jobs with a deadline (the latest of their rows) that finished, or missed it before the end of the run (until); only jobs submitted in the measured window",
            |run| Some(run.totals.deadlines.jobs),
        ),
        float(
            "deadline_missed",
            "share of these jobs that ended after their deadline or had not ended at the end of the run",
            |run| {
                let Deadlines { jobs, missed, .. } = run.totals.deadlines;
                (jobs > 0).then(|| missed as f64 / jobs as f64)
            },
        )
        .unit(Unit::Share)
        .lower()
        .words("Deadlines missed"),
        seconds(
            "tardiness_mean_s",
            "mean time from the deadline of these jobs to their end, 0 if it is earlier; of unfinished jobs to the end of the run",
            |run| mean_s(run.totals.deadlines.tardiness_us, run.totals.deadlines.jobs),
        )
        .lower()
        .words("Mean tardiness"),
        seconds("tardiness_max_s", "the longest of these times", |run| {
            (run.totals.deadlines.jobs > 0).then(|| run.totals.deadlines.tardiness_max.seconds())
        })
        .lower()
        .words("Largest tardiness"),
    ],
    fairness: &[],
};
