//! Waits of jobs by class: short or long, narrow or wide.
//!
//! Source of the classes and their bounds: Srinivasan, Kettimuthu, Subramani and Sadayappan, "Characterization of Backfilling Strategies
//! for Parallel Job Scheduling", ICPP workshops 2002.

use super::delay::FinishedJob;
use super::totals::mean_s;
use super::{Metrics, Run, seconds};
use plimsoll_base::units::Span;

/// The longest ideal completion time of a short job.
const SHORT: Span = Span::from_secs(3600);

/// The largest number of tasks of a narrow job.
const NARROW: u64 = 8;

/// The numbers of finished jobs and their waits, by class.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct WaitClasses([(u64, u128); 4]);

const SHORT_NARROW: usize = 0;
const SHORT_WIDE: usize = 1;
const LONG_NARROW: usize = 2;
const LONG_WIDE: usize = 3;

impl WaitClasses {
    /// Records a finished job.
    pub fn record(&mut self, job: &FinishedJob) {
        let class = 2 * usize::from(job.ideal > SHORT) + usize::from(job.tasks > NARROW);
        let (jobs, wait_us) = &mut self.0[class];
        *jobs += 1;
        *wait_us += u128::from(job.wait().0);
    }
}

fn mean(run: &Run, class: usize) -> Option<f64> {
    let (jobs, wait_us) = run.totals.classes.0[class];
    mean_s(wait_us, jobs)
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        seconds(
            "wait_short_narrow_s",
            "mean wait of finished jobs of at most 8 tasks and an ideal completion time of at most an hour; under a horizon (until) of the jobs that finish by then, as for all delays",
            |run| mean(run, SHORT_NARROW),
        )
        .lower()
        .words("Mean wait of short narrow jobs"),
        seconds("wait_short_wide_s", "the same with more than 8 tasks", |run| mean(run, SHORT_WIDE))
            .lower()
            .words("Mean wait of short wide jobs"),
        seconds("wait_long_narrow_s", "the same with at most 8 tasks and more than an hour", |run| mean(run, LONG_NARROW))
            .lower()
            .words("Mean wait of long narrow jobs"),
        seconds("wait_long_wide_s", "the same with more than 8 tasks and more than an hour", |run| mean(run, LONG_WIDE))
            .lower()
            .words("Mean wait of long wide jobs"),
    ],
    fairness: &[],
};
