//! Finish-time fairness: the completion time of a job relative to its completion time alone on 1/n of the cluster.
//!
//! Source: Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020 (the ratio rho); Zheng et al., "Shockwave",
//! NSDI 2023 (the mean contention, and the limits 1.05 and 1.1). Here n is the mean number of unfinished jobs, including the job itself,
//! from its submission to its end. The ideal run on 1/n of the cluster takes as long as the larger of two lower bounds: the critical path
//! of the job, and n times its work (the dominant share of each task times its duration, added up). For jobs of one accelerator this is
//! Shockwave's ideal time, the duration times the larger of 1 and n over the number of accelerators.

use super::{Metrics, Run, float};
use crate::job_table::JobTable;
use crate::window::Window;
use crate::work::TaskSizes;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::column::Unit;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time};
use plimsoll_base::visit_values;
use plimsoll_sim::record::JobRecord;
use plimsoll_sim::workload::TaskSet;

/// The ratios of the finished jobs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FinishTimeSummary {
    jobs: u64,
    sum: f64,
    max: f64,
    /// The numbers of jobs above each of [`LIMITS`].
    above: [u64; LIMITS.len()],
}

/// The ratios above which a job counts as treated unfairly.
const LIMITS: [f64; 2] = [1.05, 1.1];

impl FinishTimeSummary {
    /// Adds the ratio of a job.
    fn add(&mut self, ratio: f64) {
        self.jobs += 1;
        self.sum += ratio;
        self.max = self.max.max(ratio);
        for (above, limit) in self.above.iter_mut().zip(LIMITS) {
            *above += u64::from(ratio > limit);
        }
    }

    /// Returns a value per job; `None` without jobs.
    fn per_job(&self, value: f64) -> Option<f64> {
        (self.jobs > 0).then(|| value / self.jobs as f64)
    }
}

/// A job in the system. It takes 20 bytes, because there is one for each unfinished job.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
#[repr(Rust, packed(4))]
struct OpenJob {
    /// The integral of the number of unfinished jobs at its submission, in job-microseconds: the lower 64 bits and the others. It is less
    /// than 2^96, since times have 64 bits and the numbers of jobs 32.
    integral: u64,
    integral_high: u32,
    /// Its work, in microseconds of the whole cluster.
    work: f64,
}

const _: () = assert!(size_of::<OpenJob>() == 20, "a run has many unfinished jobs");

impl OpenJob {
    fn new(integral: u128) -> OpenJob {
        OpenJob { integral: integral as u64, integral_high: (integral >> 64) as u32, work: 0.0 }
    }

    fn integral(self) -> u128 {
        u128::from(self.integral_high) << 64 | u128::from(self.integral)
    }
}

/// The jobs in the system, and the ratios of the others.
pub(crate) struct FinishTimes {
    sizes: TaskSizes,
    open: JobTable<OpenJob>,
    /// The number of unfinished jobs, the instant until which it was integrated, and the integral.
    unfinished: u64,
    since: Time,
    integral: u128,
    pub summary: FinishTimeSummary,
}

impl FinishTimes {
    /// Creates the state before the first event, on a cluster with these sizes of tasks.
    pub fn new(sizes: TaskSizes) -> FinishTimes {
        let (open, summary) = Default::default();
        FinishTimes { sizes, open, unfinished: 0, since: Time::ZERO, integral: 0, summary }
    }

    fn advance(&mut self, now: Time) {
        self.integral += u128::from(now.since(self.since).0) * u128::from(self.unfinished);
        self.since = now;
    }

    /// Records the submission of a row.
    pub fn submitted(&mut self, row: &TaskSet, first_of_job: bool) {
        // Later rows of a job are reported together with its first row, before their submission.
        if first_of_job {
            self.advance(row.submit);
            self.unfinished += 1;
        }
        let integral = self.integral;
        let job = self.open.get_or_insert_with(row.job, || OpenJob::new(integral));
        // A service never ends, so its job has no ratio.
        if row.duration < Span::ENDLESS {
            job.work += self.sizes.size(&row.demand.0) * f64::from(row.tasks) * row.duration.0 as f64;
        }
    }

    /// Records a job that has ended or was cut off.
    pub fn job(&mut self, job: &JobRecord, window: &Window) {
        let (open, Some(finish)) = (self.open.remove(job.job), job.finish) else { return };
        self.advance(finish);
        self.unfinished -= 1;
        let Some(open) = open else { return };
        let (integral, work) = (open.integral(), open.work);
        let completion = finish.since(job.submit).0;
        let n = if completion > 0 { (self.integral - integral) as f64 / completion as f64 } else { 1.0 };
        let ideal = (job.ideal.0 as f64).max(n * work);
        if ideal > 0.0 && window.contains(job.submit) {
            self.summary.add(completion as f64 / ideal);
        }
    }
}

fn above(run: &Run, limit: usize) -> Option<f64> {
    let summary = run.finish_time?;
    summary.per_job(summary.above[limit] as f64)
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        float(
            "rho_mean",
            "mean finish-time fairness (Themis) of finished jobs: completion time over that alone on 1/n of the cluster, where n is the mean number of unfinished jobs while the job was there; under a horizon (until) of the jobs that finish by then",
            |run| run.finish_time?.per_job(run.finish_time?.sum),
        )
        .lower()
        .words("Mean finish-time fairness"),
        float("rho_max", "the largest rho of a job", |run| {
            let summary = run.finish_time?;
            (summary.jobs > 0).then_some(summary.max)
        })
        .lower()
        .words("Worst finish-time fairness"),
        float("rho_above_105", "share of finished jobs with a rho above 1.05", |run| above(run, 0))
            .unit(Unit::Share)
            .lower()
            .words("Jobs with rho above 1.05"),
        float("rho_above_110", "share of finished jobs with a rho above 1.1", |run| above(run, 1))
            .unit(Unit::Share)
            .lower()
            .words("Jobs with rho above 1.1"),
    ],
    fairness: &[],
};

impl Checkpoint for FinishTimes {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let FinishTimes { sizes: _, open, unfinished, since, integral, summary } = self;
        visit_values!(visitor; open, unfinished, since, integral, summary);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrals of long runs with many jobs exceed 64 bits.
    #[test]
    fn an_open_job_keeps_96_bits_of_its_integral() {
        for integral in [0, 7, u128::from(u64::MAX), 1 << 64 | 7, (1 << 96) - 1] {
            assert_eq!(OpenJob::new(integral).integral(), integral);
        }
    }
}
