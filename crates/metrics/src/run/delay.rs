//! Waiting and completion times of jobs, over all jobs and by job size.
//!
//! [`Delays`] records each finished job once and keeps histograms, so memory does not grow with the number of jobs. [`SizeBins`] has the
//! mean completion time by number of tasks, as in the DRF paper's Figure 14.

use super::slowdown::Slowdowns;
use super::{Metrics, float, seconds};
use crate::histogram::LogHistogram;
use plimsoll_base::column::Topic;
use plimsoll_base::units::{Span, Time};

/// A completed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedJob {
    /// The time of submission.
    pub submit: Time,
    /// The time at which the first task was launched.
    pub start: Time,
    /// The time at which the last task finished.
    pub finish: Time,
    /// The number of tasks.
    pub tasks: u64,
    /// The critical path: the completion time on an unlimited cluster.
    pub ideal: Span,
}

impl FinishedJob {
    /// Returns the completion time, finish − submit.
    pub fn completion(&self) -> Span {
        self.finish.since(self.submit)
    }

    /// Returns the wait, launch of the first task − submit.
    pub fn wait(&self) -> Span {
        self.start.since(self.submit)
    }
}

/// The delays of finished jobs, each as a histogram. Sums do not depend on the order of the jobs.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Delays {
    /// Completion times, in microseconds.
    pub completion: LogHistogram,
    /// Waits, in microseconds.
    pub wait: LogHistogram,
    /// The slowdowns. A job with an ideal time of 0 has none.
    pub slowdown: Slowdowns,
}

impl Delays {
    /// Records a finished job.
    pub fn record(&mut self, job: &FinishedJob) {
        self.completion.record(job.completion().0);
        self.wait.record(job.wait().0);
        self.slowdown.record(job.completion(), job.ideal);
    }
}

/// A summary of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of values.
    pub count: u64,
    /// The mean, from the exact sum.
    pub mean: f64,
    /// The median. Like every quantile of this struct, it is computed by nearest rank. It is exact for up to [`LogHistogram::EXACT`]
    /// values; for more values its relative error is at most [`LogHistogram::RELATIVE_ERROR`].
    pub p50: f64,
    /// The 90 % quantile.
    pub p90: f64,
    /// The 99 % quantile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl Summary {
    /// Summarises a histogram where `scale` counted units are one unit of the summary: 1,000,000 converts microseconds to seconds. Returns
    /// `None` if the histogram is empty.
    pub fn from_histogram(values: &LogHistogram, scale: u64) -> Option<Summary> {
        let scale = scale as f64;
        let quantiles = values.quantiles();
        let quantile = |q| quantiles.at(q).map(|value| value as f64 / scale);
        Some(Summary {
            count: values.count(),
            mean: values.mean()? / scale,
            p50: quantile(0.5)?,
            p90: quantile(0.9)?,
            p99: quantile(0.99)?,
            max: values.max()? as f64 / scale,
        })
    }
}

/// The maximum number of tasks of a job in each bin of the DRF paper's Figure 14; the seventh bin is unbounded.
pub const FIG_14_BOUNDS: [u64; 6] = [500, 1000, 1500, 2000, 2500, 3000];

/// The labels of Figure 14's bins. The paper prints "2501-3000" under both the fifth and the sixth bin; the fifth must be 2001-2500.
/// Source: Ghodsi et al., NSDI 2011, §7.3, Figure 14.
pub const FIG_14_LABELS: [&str; 7] =
    ["1-500", "501-1000", "1001-1500", "1501-2000", "2001-2500", "2501-3000", "3001 and more"];

/// Completion times by the number of tasks of a job, in the bins of Figure 14.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SizeBins {
    bins: [Bin; FIG_14_LABELS.len()],
}

/// The jobs of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Bin {
    /// The number of jobs.
    pub count: u64,
    /// The exact sum of the completion times, in microseconds.
    pub completion_us: u128,
}

impl Bin {
    /// Returns the mean completion time, in microseconds, or `None` without jobs.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.completion_us as f64 / self.count as f64)
    }
}

impl SizeBins {
    /// Records a finished job.
    pub fn record(&mut self, job: &FinishedJob) {
        // Most jobs are small, so the bounds are compared in order.
        let at = FIG_14_BOUNDS.iter().take_while(|&&bound| bound < job.tasks).count();
        let bin = &mut self.bins[at];
        bin.count += 1;
        bin.completion_us += u128::from(job.completion().0);
    }

    /// Returns the bins, in order of size.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        seconds("completion_mean_s", "mean completion time of finished jobs", |run| Some(run.completion?.mean))
            .lower()
            .words("Mean completion time")
            .key_headline(Topic::Delay, "completion s", 0),
        seconds(
            "completion_p50_s",
            "median completion time; like all quantiles exact for up to 65,536 jobs, else within 1/2048",
            |run| Some(run.completion?.p50),
        )
        .lower()
        .words("Median completion time")
        .headline(Topic::Delay, "p50"),
        seconds("completion_p90_s", "90 % quantile of completion time", |run| Some(run.completion?.p90))
            .lower()
            .words("90 % quantile of completion time"),
        seconds("completion_p99_s", "99 % quantile of completion time", |run| Some(run.completion?.p99))
            .lower()
            .words("99 % quantile of completion time")
            .key_headline(Topic::Delay, "p99", 5),
        seconds(
            "wait_mean_s",
            "mean wait of finished jobs: from their submission to the launch of their first task; how long all tasks wait is in task_wait_mean_s",
            |run| Some(run.wait?.mean),
        )
        .lower()
        .words("Mean wait")
        .headline(Topic::Delay, "wait s"),
        seconds("wait_p50_s", "median wait", |run| Some(run.wait?.p50)).lower(),
        seconds("wait_p90_s", "90 % quantile of wait", |run| Some(run.wait?.p90)).lower(),
        seconds("wait_p99_s", "99 % quantile of wait", |run| Some(run.wait?.p99)).lower(),
    ],
    fairness: &[],
};

pub(super) static SLOWDOWN: Metrics = Metrics {
    runs: &[
        float("slowdown_mean", "mean of completion time over ideal completion time", |run| Some(run.slowdown?.mean))
            .lower()
            .words("Mean slowdown")
            .key_headline(Topic::Delay, "slowdown", 3),
        float("slowdown_p50", "median slowdown", |run| Some(run.slowdown?.p50)).lower(),
        float("slowdown_p90", "90 % quantile of slowdown", |run| Some(run.slowdown?.p90)).lower(),
        float("slowdown_p99", "99 % quantile of slowdown", |run| Some(run.slowdown?.p99)).lower(),
    ],
    fairness: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: u64, start_s: u64, finish_s: u64, ideal_s: u64) -> FinishedJob {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let (submit, start, finish) = (at(submit_s), at(start_s), at(finish_s));
        FinishedJob { submit, start, finish, tasks: 1, ideal: Span::from_secs(ideal_s) }
    }

    fn sized(tasks: u64, completion_s: u64) -> FinishedJob {
        FinishedJob { tasks, ..job(0, 0, completion_s, 1) }
    }

    #[test]
    fn delays_of_one_job_by_hand() {
        let long = job(10, 30, 110, 40);
        assert_eq!((long.completion(), long.wait()), (Span::from_secs(100), Span::from_secs(20)));
    }

    #[test]
    fn delays_of_many_jobs() {
        let mut delays = Delays::default();
        assert_eq!(Summary::from_histogram(&delays.completion, 1_000_000), None);
        (1..=100).for_each(|n| delays.record(&job(0, n - 1, 2 * n, n)));
        delays.record(&job(0, 0, 0, 0));
        let completion = Summary::from_histogram(&delays.completion, 1_000_000).unwrap();
        assert_eq!((completion.count, completion.max), (101, 200.0));
        assert!((completion.mean - 10_100.0 / 101.0).abs() < 1e-9);
        // The sorted values are 0, 2, 4, ..., 200. The nearest ranks are 51, 91 and 100.
        assert_eq!([completion.p50, completion.p90, completion.p99], [100.0, 180.0, 198.0]);
        let slowdown = delays.slowdown.summary().unwrap();
        assert_eq!((slowdown.count, slowdown.mean, slowdown.max), (100, 2.0, 2.0));
        assert_eq!(delays.wait.sum(), 4950 * 1_000_000);
    }

    #[test]
    fn figure_14_bins_end_where_the_paper_says() {
        let means = |bins: &SizeBins| -> Vec<Option<f64>> { bins.bins().iter().map(Bin::mean).collect() };
        let mut bins = SizeBins::default();
        assert_eq!(means(&bins), [None; 7]);
        for bound in FIG_14_BOUNDS {
            bins.record(&sized(bound, 10));
            bins.record(&sized(bound + 1, 20));
        }
        bins.record(&sized(1, 40));
        bins.record(&sized(u64::MAX, 50));
        assert_eq!(bins.bins().iter().map(|bin| bin.count).collect::<Vec<_>>(), [2; 7]);
        let seconds = [25.0, 15.0, 15.0, 15.0, 15.0, 15.0, 35.0].map(|mean| Some(mean * 1e6));
        assert_eq!(means(&bins), seconds);
    }
}
