//! A summary of a workload: counts, marginal distributions and load. Also has the published values, for comparison.
//!
//! The summary takes one pass over a source. Its memory grows with the numbers of jobs (8 bytes each), users and distinct buckets, not
//! with rows. Quantiles are weighted by tasks and come from buckets 1.6 % wide; a quantile is the mean of its bucket, so that of a
//! constant is exact. Floats are used for reports only.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Source;
pub use super::quantiles::Quantiles;
use super::quantiles::{Histogram, weighted_quantiles};
use super::synthetic::published::{self, Cdf, Demand, SizeRange};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Span, Time};

/// A workload in numbers. Resources are in the unit for display (cores, GiB), times in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Number of rows (task sets).
    pub rows: u64,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of users with at least one job.
    pub users: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// The time of the first submission.
    pub first_submit_s: f64,
    /// The time of the last submission.
    pub last_submit_s: f64,
    /// The mean time from one job's first submission to the next job's, if there are at least two jobs.
    pub mean_gap_s: Option<f64>,
    /// Work of each resource: amount x seconds, summed over tasks. The offered load is the work divided by the capacity and by the time
    /// over which jobs are submitted.
    pub work: Vec<Work>,
    /// Demands and durations of all tasks, then of each stage.
    pub marginals: Vec<Marginal>,
    /// Jobs by tasks, in the bins of the DRF paper's Figure 14.
    pub sizes_drf: Vec<SizeBin>,
    /// Jobs by tasks, in the bins of the delay-scheduling paper (which counts maps).
    pub sizes_delay: Vec<SizeBin>,
    /// The users with most task time, at most ten.
    pub top_users: Vec<UserShare>,
}

/// Work of one resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// The resource.
    pub resource: String,
    /// Its unit (`cores`, `GiB`, ...).
    pub unit: &'static str,
    /// Amount x seconds.
    pub amount_seconds: f64,
}

/// Distributions over the tasks of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marginal {
    /// `all`, or a stage's name.
    pub kind: String,
    /// Number of tasks (`None` for published values).
    pub tasks: Option<u64>,
    /// The demand of a task, one entry per resource.
    pub demand: Vec<(String, Quantiles)>,
    /// The duration of a task, in seconds.
    pub duration_s: Option<Quantiles>,
}

/// Jobs of some sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeBin {
    /// The smallest number of tasks.
    pub from: u64,
    /// The largest number of tasks, if there is a limit.
    pub to: Option<u64>,
    /// Number of jobs (`None` for published values with only percentages).
    pub jobs: Option<u64>,
    /// Their share of all jobs.
    pub share: f64,
}

/// The jobs and tasks of one user.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UserShare {
    /// The user's name.
    pub user: String,
    /// Number of its jobs.
    pub jobs: u64,
    /// Number of its tasks.
    pub tasks: u64,
    /// Its share of all task time.
    pub time_share: f64,
    /// Its share of each resource's work, in the order of [`Summary::work`].
    pub work_share: Vec<f64>,
}

/// Distributions of one kind of tasks while they are counted.
#[derive(Clone, Debug, Default)]
struct Counting {
    tasks: u64,
    demand: [Histogram; MAX_DIMS],
    duration: Histogram,
}

/// The jobs and tasks of one user while they are counted.
#[derive(Clone, Debug, Default)]
struct UserCount {
    jobs: u64,
    tasks: u64,
    time: u128,
    work: [u128; MAX_DIMS],
}

/// All counts of one pass.
#[derive(Default)]
struct Counter {
    rows: u64,
    /// Times of the first and the last submission.
    span: Option<(Time, Time)>,
    /// Time of the first submission of the latest job.
    last_job: Time,
    /// Number of tasks of each job.
    job_tasks: Vec<u64>,
    /// Counts by stage; tasks without a stage are under `None`.
    kinds: BTreeMap<Option<u32>, Counting>,
    all: Counting,
    users: Vec<UserCount>,
}

/// Reads a source to its end and summarises it. In a closed loop the summary covers the first jobs only, because no job finishes while the
/// source is read.
///
/// Errors: those of the source.
pub fn summarise(source: &mut dyn Source) -> Result<Summary> {
    let dims = source.dims().len();
    let mut counter = Counter::default();
    while let Some(set) = source.next_set()? {
        counter.add(&set, dims);
    }
    Ok(counter.summary(source))
}

impl Counter {
    fn add(&mut self, set: &super::TaskSet, dims: usize) {
        self.rows += 1;
        let (first, _) = self.span.unwrap_or((set.submit, set.submit));
        self.span = Some((first, set.submit));
        if self.users.len() <= set.user.index() {
            self.users.resize(set.user.index() + 1, UserCount::default());
        }
        let user = &mut self.users[set.user.index()];
        if self.job_tasks.len() <= set.job.index() {
            self.job_tasks.resize(set.job.index() + 1, 0);
            self.last_job = set.submit;
            user.jobs += 1;
        }
        let tasks = u64::from(set.tasks);
        let time = u128::from(set.duration.0) * u128::from(tasks);
        self.job_tasks[set.job.index()] += tasks;
        user.tasks += tasks;
        user.time = user.time.saturating_add(time);
        for dim in 0..dims {
            user.work[dim] = user.work[dim].saturating_add(time.saturating_mul(u128::from(set.demand.0[dim])));
        }
        for counting in [&mut self.all, self.kinds.entry(set.stage).or_default()] {
            counting.tasks += tasks;
            counting.duration.add(set.duration.0, tasks);
            for dim in 0..dims {
                counting.demand[dim].add(set.demand.0[dim], tasks);
            }
        }
    }

    fn summary(&self, source: &dyn Source) -> Summary {
        let dims = source.dims();
        let (first, last) = self.span.unwrap_or_default();
        let jobs = self.job_tasks.len() as u64;
        let work = dims.iter().enumerate().map(|(index, dim)| {
            let base = self.users.iter().fold(0u128, |sum, user| sum.saturating_add(user.work[index]));
            let amount_seconds = base as f64 / dim.unit.scale() as f64 / 1e6;
            Work { resource: dim.name.clone(), unit: dim.unit.label(&dim.name), amount_seconds }
        });
        let mut marginals = vec![self.all.marginal("all", source)];
        for (stage, counting) in &self.kinds {
            if let Some(stage) = stage {
                marginals.push(counting.marginal(source.stage_name(*stage), source));
            }
        }
        Summary {
            rows: self.rows,
            jobs,
            users: self.users.iter().filter(|user| user.jobs > 0).count() as u64,
            tasks: self.all.tasks,
            first_submit_s: first.seconds(),
            last_submit_s: last.seconds(),
            mean_gap_s: (jobs > 1).then(|| Span(self.last_job.0 - first.0).seconds() / (jobs - 1) as f64),
            work: work.collect(),
            marginals,
            sizes_drf: self.sizes(&published::DRF_BINS),
            sizes_delay: self.sizes(&published::DELAY_BINS),
            top_users: self.top_users(source),
        }
    }

    fn sizes(&self, bins: &[SizeRange]) -> Vec<SizeBin> {
        let total = self.job_tasks.len().max(1) as f64;
        let count =
            |bin: &SizeRange| self.job_tasks.iter().filter(|tasks| (bin.from..=bin.to).contains(*tasks)).count() as u64;
        bins.iter().map(|bin| size_bin(bin, Some(count(bin)), count(bin) as f64 / total)).collect()
    }

    fn top_users(&self, source: &dyn Source) -> Vec<UserShare> {
        let mut order: Vec<usize> = (0..self.users.len()).collect();
        order.sort_by_key(|&user| (std::cmp::Reverse(self.users[user].time), user));
        let share = |part: u128, of: &dyn Fn(&UserCount) -> u128| {
            let whole = self.users.iter().fold(0u128, |sum, user| sum.saturating_add(of(user)));
            if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
        };
        order
            .into_iter()
            .take(10)
            .map(|id| {
                let user = &self.users[id];
                UserShare {
                    user: source.users().name(id as u32).to_owned(),
                    jobs: user.jobs,
                    tasks: user.tasks,
                    time_share: share(user.time, &|user| user.time),
                    work_share: (0..source.dims().len())
                        .map(|dim| share(user.work[dim], &|user| user.work[dim]))
                        .collect(),
                }
            })
            .collect()
    }
}

impl Counting {
    fn marginal(&self, kind: &str, source: &dyn Source) -> Marginal {
        let demand = source.dims().iter().zip(&self.demand);
        Marginal {
            kind: kind.to_owned(),
            tasks: Some(self.tasks),
            demand: demand
                .map(|(dim, histogram)| (dim.name.clone(), histogram.quantiles(dim.unit.scale() as f64)))
                .collect(),
            duration_s: Some(self.duration.quantiles(1e6)),
        }
    }
}

fn size_bin(bin: &SizeRange, jobs: Option<u64>, share: f64) -> SizeBin {
    SizeBin { from: bin.from, to: (bin.to < u64::MAX).then_some(bin.to), jobs, share }
}

/// The published values for Facebook's cluster of October 2010, with fields like those of a [`Summary`].
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// The sources of the numbers.
    pub sources: Vec<&'static str>,
    /// The mean time between the submissions of jobs.
    pub mean_gap_s: f64,
    /// Demands of all tasks, of maps and of reduces (`duration_s` for all tasks only).
    pub marginals: Vec<Marginal>,
    /// The duration of jobs, in seconds.
    pub job_duration_s: Quantiles,
    /// Jobs of one day by tasks, in the bins of the DRF paper's Figure 14.
    pub sizes_drf: Vec<SizeBin>,
    /// Jobs by maps, in the bins of the delay-scheduling paper.
    pub sizes_delay: Vec<SizeBin>,
}

/// Returns the published marginals of the generator `facebook`.
pub fn published() -> Published {
    let (map, reduce) = (&published::MAP.points, &published::REDUCE.points);
    let both: Vec<Demand> = map.iter().chain(reduce).copied().collect();
    let shares = |bins: &[SizeRange], counted: bool| {
        let total: f64 = bins.iter().map(|bin| bin.jobs).sum();
        bins.iter().map(|bin| size_bin(bin, counted.then_some(bin.jobs as u64), bin.jobs / total)).collect()
    };
    Published {
        sources: vec![
            "task demands: Ghodsi et al., NSDI 2011, Figure 1, digitised, bubbles by weight",
            "durations: Hindman et al., NSDI 2011, Figure 1, digitised",
            "job sizes and mean gap: one day of FB-2010 (SWIM) at a 64 MB block; delay scheduling: Zaharia et al., EuroSys 2010",
        ],
        mean_gap_s: 86_400.0 / published::JOBS_PER_DAY,
        marginals: vec![
            published_marginal("all", &both, Some(cdf_quantiles(&published::TASK_DURATIONS))),
            published_marginal("map", map, None),
            published_marginal("reduce", reduce, None),
        ],
        job_duration_s: cdf_quantiles(&published::JOB_DURATIONS),
        sizes_drf: shares(&published::DRF_BINS, true),
        sizes_delay: shares(&published::DELAY_BINS, false),
    }
}

fn published_marginal(kind: &str, points: &[Demand], duration_s: Option<Quantiles>) -> Marginal {
    let of = |value: fn(&Demand) -> f64| {
        let mut values: Vec<(f64, f64)> = points.iter().map(|point| (value(point), point.weight)).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        weighted_quantiles(&values)
    };
    let demand = vec![("cpu".to_owned(), of(|point| point.cpu)), ("memory".to_owned(), of(|point| point.memory))];
    Marginal { kind: kind.to_owned(), tasks: None, demand, duration_s }
}

fn cdf_quantiles(cdf: &Cdf) -> Quantiles {
    let at = |share| cdf.quantile(share);
    Quantiles { p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99), mean: cdf.mean_below(f64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{TaskSet, Workload};
    use plimsoll_base::units::{Dim, Resources, Unit};

    /// Returns three jobs of two users: the first has 1 task of 1 s, the second 98 tasks of 10 s and 1 task of 100 s, and the third 501
    /// tasks of 10 s.
    fn workload() -> Workload {
        let mut workload =
            Workload { dims: vec![Dim { name: "cpu".into(), unit: Unit::Milli }], ..Workload::default() };
        let (a, b) = (workload.users.intern("a"), workload.users.intern("b"));
        let map = workload.stages.intern("map");
        let jobs = [workload.job("x"), workload.job("y"), workload.job("z")];
        let rows = [
            (0, a, 0, 1, 1, 2000, None),
            (1, b, 4, 98, 10, 500, Some(map)),
            (1, b, 4, 1, 100, 500, None),
            (2, a, 10, 501, 10, 1000, None),
        ];
        for (job, user, submit, tasks, seconds, cpu, stage) in rows {
            workload.sets.push(TaskSet {
                job: jobs[job],
                user: plimsoll_base::units::UserId(user),
                submit: Time(submit * 1_000_000),
                duration: Span::from_secs(seconds),
                tasks,
                demand: Resources([cpu, 0, 0, 0, 0, 0, 0, 0]),
                stage,
                ..TaskSet::default()
            });
        }
        workload.finish()
    }

    #[test]
    fn a_small_workload_is_described_exactly() {
        let summary = summarise(&mut workload().source()).expect("no errors");
        assert_eq!((summary.rows, summary.jobs, summary.users, summary.tasks), (4, 3, 2, 601));
        assert_eq!((summary.last_submit_s, summary.mean_gap_s), (10.0, Some(5.0)));
        assert_eq!(summary.work[0].amount_seconds, 2.0 + 490.0 + 50.0 + 5010.0);
        let all = &summary.marginals[0];
        let duration = all.duration_s.expect("tasks");
        assert_eq!((duration.p10, duration.p50, duration.p99), (10.0, 10.0, 10.0));
        assert!((duration.mean - 6091.0 / 601.0).abs() < 1e-9);
        let cpu = all.demand[0].1;
        assert_eq!((cpu.p10, cpu.p50, cpu.p99), (0.5, 1.0, 1.0));
        let map = &summary.marginals[1];
        assert_eq!((map.kind.as_str(), map.tasks, summary.marginals.len()), ("map", Some(98), 2));
        assert_eq!(summary.sizes_drf.iter().map(|bin| bin.jobs).collect::<Vec<_>>()[..2], [Some(2), Some(1)]);
        assert_eq!(summary.sizes_delay[7].jobs, Some(1));
        let top = &summary.top_users[0];
        assert_eq!((top.user.as_str(), top.jobs, top.tasks), ("a", 2, 502));
        assert!((top.time_share - 5011.0 / 6091.0).abs() < 1e-12);
        assert!((top.work_share[0] - 5012.0 / 5552.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_described_too() {
        let summary = summarise(&mut Workload::default().source()).expect("no errors");
        assert_eq!((summary.rows, summary.jobs, summary.mean_gap_s), (0, 0, None));
        assert_eq!(summary.marginals[0].duration_s, Some(Quantiles::default()));
    }

    #[test]
    fn published_marginals_are_those_of_the_papers() {
        let published = published();
        let all = &published.marginals[0];
        assert!((all.demand[0].1.mean - 0.72).abs() < 0.01 && (all.demand[1].1.mean - 0.67).abs() < 0.01);
        assert!((all.duration_s.expect("published").p50 - 23.0).abs() < 1.0);
        assert!((published.job_duration_s.p50 - 84.0).abs() < 1.0);
        assert_eq!(published.sizes_drf[0].jobs, Some(22_078));
        assert!((published.mean_gap_s - 3.54).abs() < 0.01);
    }
}
