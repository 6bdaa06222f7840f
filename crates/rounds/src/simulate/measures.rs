//! Measures of a run.

use plimsoll_base::units::{Span, Time};

use super::RoundOutcome;
use crate::mechanism::Cluster;
use crate::table::TrainingJob;

/// A window of job ids: `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobWindow {
    /// The first id.
    pub from: u32,
    /// The id after the last.
    pub to: u32,
}

impl JobWindow {
    /// Returns whether the window contains a job.
    pub fn contains(self, id: u32) -> bool {
        (self.from..self.to).contains(&id)
    }

    /// Returns the number of ids.
    pub fn length(self) -> usize {
        self.to.saturating_sub(self.from) as usize
    }
}

/// Measures of the jobs of a window. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundSummary {
    /// Completed jobs.
    pub completed: usize,
    /// The mean completion time, from arrival to completion.
    pub mean_jct_s: f64,
    /// The sample standard deviation of the completion time over jobs.
    pub sd_jct_s: f64,
    /// The 0.1, 0.25, 0.5, 0.75, 0.9, 0.95 and 0.99 quantiles of the completion time (linear between order statistics).
    pub quantiles_s: [f64; 7],
    /// The end of the run.
    pub makespan_s: f64,
    /// Accelerator time in use divided by accelerators and makespan, per type and over all accelerators.
    pub utilisation: Vec<f64>,
    /// The same over all accelerators.
    pub mean_utilisation: f64,
    /// The same without the time that overhead used. Shockwave's published utilisation is this value.
    pub useful_utilisation: f64,
    /// Progress lost to overhead, summed over jobs.
    pub lost_s: f64,
    /// Preemptions, summed over jobs.
    pub preemptions: u64,
    /// Time in preemption, from the end of a job's round to the start of its next one, summed over jobs.
    pub paused_s: f64,
    /// The largest distance of a plan to its upper bound, relative to the bound; `None` without plans.
    pub plan_gap: Option<f64>,
    /// Lease extensions divided by the jobs of the previous round that were active.
    pub lease_extension: f64,
    /// Whether the number of active jobs grew while jobs arrived: its mean in the last quarter of the computations exceeds that of the second
    /// quarter by more than a quarter and by more than 5 jobs. Means of an unstable system depend on the window.
    pub unstable: bool,
    /// Whether the list of jobs ended before the jobs of the window were complete although later jobs exist: the load was too low at the end.
    pub ran_out: bool,
}

/// The quantiles of a [`RoundSummary`].
const QUANTILES: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// Finish-time fairness of the jobs of a run, as Shockwave defines it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rho {
    /// Completion time / (exclusive running time * max(1, jobs in the list / accelerators)); `None` without completion or exclusive time.
    pub rho: Vec<Option<f64>>,
    /// The largest value.
    pub worst: f64,
    /// The share of jobs above 1.05.
    pub above_1_05: f64,
    /// The share of jobs above 1.1.
    pub above_1_1: f64,
}

impl RoundOutcome {
    /// Returns the completion times of a window in seconds, in order of the ids; incomplete jobs are absent.
    pub fn completion_times(&self, window: JobWindow) -> Vec<f64> {
        let jobs = self.jobs.iter().skip(window.from as usize).take(window.length());
        jobs.filter_map(|job| Some(job.completion?.since(job.arrival).seconds())).collect()
    }

    /// Computes the measures of a window.
    pub fn summary(&self, cluster: &Cluster, window: JobWindow) -> RoundSummary {
        let mut times = self.completion_times(window);
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        times.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let position = share * (count - 1.0);
            let (below, above) = (position.floor() as usize, position.ceil() as usize);
            let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
            at(below) + (at(above) - at(below)) * (position - position.floor())
        };
        let end = self.end.seconds().max(1e-6);
        let capacity = cluster.capacity();
        let busy = |j: usize| Span(self.busy[j]).seconds();
        let all: f64 = capacity.iter().map(|&count| f64::from(count)).sum();
        RoundSummary {
            completed: times.len(),
            mean_jct_s: mean,
            sd_jct_s: (squares / (count - 1.0)).sqrt(),
            quantiles_s: QUANTILES.map(quantile),
            makespan_s: end,
            utilisation: (0..capacity.len()).map(|j| busy(j) / f64::from(capacity[j]) / end).collect(),
            mean_utilisation: (0..capacity.len()).map(busy).sum::<f64>() / all / end,
            useful_utilisation: (0..capacity.len()).map(|j| busy(j) - Span(self.overhead[j]).seconds()).sum::<f64>()
                / all
                / end,
            lost_s: self.jobs.iter().map(|job| job.lost.seconds()).sum(),
            paused_s: self.jobs.iter().map(|job| job.paused.seconds()).sum(),
            plan_gap: self
                .plans
                .iter()
                .map(|(value, bound)| (bound - value).max(0.0) / bound.abs().max(1e-9))
                .reduce(f64::max),
            preemptions: self.jobs.iter().map(|job| u64::from(job.preemptions)).sum(),
            lease_extension: self.leases[0] as f64 / self.leases[1].max(1) as f64,
            unstable: self.is_unstable(),
            ran_out: (window.to as usize) < self.jobs.len() && self.last_arrival() < self.end,
        }
    }

    fn is_unstable(&self) -> bool {
        let mean = |from: usize, to: usize| {
            let span =
                |at: usize| self.queue.get(at + 1).map_or(self.end, |next| next.0).since(self.queue[at].0).seconds();
            let weighted: f64 = (from..to).map(|at| f64::from(self.queue[at].1) * span(at)).sum();
            weighted / (from..to).map(span).sum::<f64>().max(1e-9)
        };
        let arrived = self.queue.partition_point(|(at, _)| *at <= self.last_arrival());
        let quarter = arrived / 4;
        quarter > 10 && {
            let (second, last) = (mean(quarter, 2 * quarter), mean(3 * quarter, arrived));
            last > 1.25 * second && last > second + 5.0
        }
    }

    fn last_arrival(&self) -> Time {
        self.jobs.last().map_or(Time(0), |job| job.arrival)
    }

    /// Returns the effective throughput of each job: iterations per second between arrival and completion (or the end of the run).
    pub fn effective_throughput(&self) -> Vec<f64> {
        let rate = |job: &super::JobOutcome| {
            let end: Time = job.completion.unwrap_or(self.end);
            // A job may arrive after the end of the run.
            job.done as f64 / 1e6 / Span(end.0.saturating_sub(job.arrival.0)).seconds().max(1e-6)
        };
        self.jobs.iter().map(rate).collect()
    }

    /// Computes finish-time fairness for a cluster with this number of accelerators.
    pub fn rho(&self, jobs: &[TrainingJob], accelerators: u32) -> Rho {
        let contention = (jobs.len() as f64 / f64::from(accelerators)).max(1.0);
        let one = |(job, outcome): (&TrainingJob, &super::JobOutcome)| {
            let exclusive = job.exclusive?.seconds();
            Some(outcome.completion?.since(outcome.arrival).seconds() / (exclusive * contention))
        };
        let rho: Vec<Option<f64>> = jobs.iter().zip(&self.jobs).map(one).collect();
        let known: Vec<f64> = rho.iter().filter_map(|rho| *rho).collect();
        let above = |limit: f64| known.iter().filter(|rho| **rho > limit).count() as f64 / known.len().max(1) as f64;
        Rho { worst: known.iter().copied().fold(0.0, f64::max), above_1_05: above(1.05), above_1_1: above(1.1), rho }
    }
}
