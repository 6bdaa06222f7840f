//! Generator `facebook`: jobs like those of Facebook's Hadoop cluster of October 2010, from published aggregates.
//!
//! Demands come from the DRF paper's Figure 1, durations from the Mesos paper's Figure 1, job sizes and the arrival rate from counts over
//! FB-2010 (see [`published`]). Everything else is an assumption and a parameter: the users, the variation among the tasks of a job, the
//! division of a job into maps and reduces. The result is synthetic, as its `quality` states.
//!
//! The load is set by thinning. Candidates arrive at the published rate, with several days laid over one another. A random part of the
//! candidates is kept, so that the kept work is `load` times the capacity. Time is never stretched. The properties of a job depend on its
//! number alone, so another load keeps other jobs, but changes no job.

use std::fmt;

use rand::RngExt;
use rand_distr::Distribution;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::distributions::{Length, to_span};
use super::facebook_job::Draws;
use super::published;
use super::random::stream;
use crate::workload::{TaskSet, Workload};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Span, Time, Unit, UserId};

/// Parameters of the generator `facebook`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Facebook {
    /// The time over which jobs arrive, in hours. Default 1, about 300,000 tasks at the default load.
    pub hours: f64,
    /// The CPU work offered over these hours, divided by the work that `cluster_cores` can do in this time. Default 0.85, unless `thin` is
    /// given. This is nearly the capacity of the machines, and more than slots for two thirds of the tasks can serve. The offered load may
    /// deviate by half the work of the last kept job: usually 0.03, and at most 0.12 with the defaults.
    pub load: Option<f64>,
    /// The multiple of the published arrival rate to keep, instead of `load`. No default.
    pub thin: Option<f64>,
    /// The cores that `load` refers to. Default 6400: 400 machines of 16 cores (DRF paper, section 7.3).
    pub cluster_cores: f64,
    /// The number of independent days that are laid over one another before thinning. Default 4: if jobs have at most `max_tasks` tasks,
    /// the jobs of one day load the default cluster to about two thirds.
    pub overlay: u32,
    /// Number of jobs that arrive in 24 hours of one day. Default 24,442 (FB-2010, mean gap 3.54 s).
    pub jobs_per_day: f64,
    /// The variation of the rate: every hour's rate is multiplied by a uniformly distributed number from 1 - `hourly` to 1 + `hourly`.
    /// Default 0.3, an assumption (the public day is made of hours drawn at random and has no daily cycle).
    pub hourly: f64,
    /// The largest number of tasks of a job, where the last bin of sizes ends. Default 6000. FB-2010 has jobs of up to 174,613 maps; they
    /// would make up most of the work, and there would be too few of them to average over.
    pub max_tasks: u32,
    /// The share of jobs without reduces, including jobs of one task. Default 0.34 (FB-2010).
    pub map_only: f64,
    /// The mean share of reduces among the tasks of jobs with reduces. The share is uniformly distributed from 0 to twice this value.
    /// Default 0.39; 30 % of all tasks are then reduces, as in the weights of Figure 1.
    pub reduce_share: f64,
    /// The variation of demands among a job's tasks. Default `"per-job"`: one demand for its maps and one for its reduces. With
    /// `"per-task-set"`, all large users have similar mean demands. The paper does not specify the variation.
    pub demand: DemandRule,
    /// The variation of demands: each is multiplied by a uniformly distributed number from 1 - `jitter` to 1 + `jitter`. Default 0.05,
    /// because the bubbles of the figure represent regions.
    pub jitter: f64,
    /// The longest median duration of a job's tasks. Default 15 minutes, an assumption: without a limit, the published tail (1 % of the
    /// tasks take over 24 minutes) would outlast the simulated hours.
    pub duration_cap: Length,
    /// The standard deviation of the logarithm of a task's duration around the median of its job. Default 0.35, an assumption: the figure
    /// does not separate variation among jobs from variation within one.
    pub noise: f64,
    /// The number of task sets of equal durations into which a stage is divided. Default 8. A job then has at most 16 rows instead of one
    /// per task, and the slowest eighth of a stage takes 1.6 times the median.
    pub noise_sets: u32,
    /// The number of users that submit, or `"job"` for one user per job. Default 20, an assumption (the number is not public).
    pub users: Users,
    /// The inequality of the users: the user of rank k submits jobs in proportion to 1 / k^zipf. Default 1.1, an assumption.
    pub zipf: f64,
}

/// The variation of demands among the tasks of one job and stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DemandRule {
    /// The same demand for all tasks.
    PerJob,
    /// A demand drawn for each task set.
    PerTaskSet,
}

/// The users that submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Users {
    /// This number of users.
    Count(u32),
    /// Every job is a user of its own.
    Job,
}

impl<'de> Deserialize<'de> for Users {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(UsersReader)
    }
}

struct UsersReader;

impl Visitor<'_> for UsersReader {
    type Value = Users;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of users from 1 to 1000000, or \"job\"")
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> std::result::Result<Users, E> {
        match u32::try_from(count) {
            Ok(count @ 1..=1_000_000) => Ok(Users::Count(count)),
            _ => Err(E::invalid_value(de::Unexpected::Signed(count), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> std::result::Result<Users, E> {
        self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Users, E> {
        if text == "job" { Ok(Users::Job) } else { Err(E::invalid_value(de::Unexpected::Str(text), &self)) }
    }
}

impl Default for Facebook {
    fn default() -> Self {
        Facebook {
            hours: 1.0,
            load: None,
            thin: None,
            cluster_cores: 6400.0,
            overlay: 4,
            jobs_per_day: published::JOBS_PER_DAY,
            hourly: 0.3,
            max_tasks: 6000,
            map_only: published::MAP_ONLY,
            reduce_share: 0.39,
            demand: DemandRule::PerJob,
            jitter: 0.05,
            duration_cap: Length(Span::from_secs(900)),
            noise: 0.35,
            noise_sets: 8,
            users: Users::Count(20),
            zipf: 1.1,
        }
    }
}

/// The load if neither `load` nor `thin` is given.
const LOAD: f64 = 0.85;

/// The largest number of jobs before thinning; a larger number is treated as a mistake, because the jobs would fill the memory.
const MOST_JOBS: f64 = 1e7;

/// One job before thinning. Its task sets are drawn once to measure their work, and again if the job is kept. They are not stored, because
/// most candidates are dropped.
struct JobDraft {
    /// The number that determines its draws.
    number: u64,
    submit: Time,
    /// The random key: the job is kept if the key is below the limit.
    key: u64,
    /// CPU work in milli-core microseconds.
    work: u128,
}

impl Facebook {
    /// Generates the workload of a seed. Errors: [`Error::Plan`] at `workload.<parameter>`.
    pub fn generate(&self, seed: u64) -> Result<Workload> {
        self.check()?;
        let draws = Draws::new(self, seed);
        let mut candidates = self.candidates(&draws, seed);
        let offered = candidates.len();
        let share = self.keep(&mut candidates)?;
        let mut workload = self.collect(&candidates, &draws);
        let kept = workload.jobs.len();
        workload.quality.assumptions = self.assumptions();
        let thin = share * f64::from(self.overlay);
        workload.quality.assumptions.push(("arrival rate over the published one".into(), format!("{thin:.4}")));
        workload.quality.assumptions.push(("jobs kept of candidates".into(), format!("{kept} of {offered}")));
        Ok(workload)
    }

    /// Returns the workload without its jobs. Errors: [`Error::Plan`] at `workload.<parameter>`, including a load that the candidates of
    /// the seed do not reach.
    pub(super) fn outline(&self, seed: u64) -> Result<Workload> {
        self.check()?;
        if self.thin.is_none() {
            self.limit_for_load(&self.candidates(&Draws::new(self, seed), seed))?;
        }
        Ok(self.empty())
    }

    /// Returns all jobs before thinning.
    fn candidates(&self, draws: &Draws, seed: u64) -> Vec<JobDraft> {
        let (arrivals, mut thinning) = (self.arrivals(seed), stream(seed, "facebook/thinning"));
        (0u64..)
            .zip(arrivals)
            .map(|(number, submit)| {
                let work = draws.task_sets(self, number, submit).iter().map(cpu_work).sum();
                JobDraft { number, submit, key: thinning.random(), work }
            })
            .collect()
    }

    fn check(&self) -> Result<()> {
        let check = |name: &str, value: f64, good: bool, expected: &str| {
            if good { Ok(()) } else { Err(Error::plan(format!("workload.{name}"), value, expected)) }
        };
        let positive = |name, value: f64| check(name, value, value > 0.0 && value.is_finite(), "a number above 0");
        let share = |name, value: f64| check(name, value, (0.0..=1.0).contains(&value), "a number from 0 to 1");
        check("hours", self.hours, self.hours > 0.0 && self.hours <= 2000.0, "a number above 0, at most 2000")?;
        if let (Some(_), Some(thin)) = (self.load, self.thin) {
            return Err(Error::plan("workload.thin", thin, "either load or thin, not both"));
        }
        positive("load", self.load.unwrap_or(LOAD))?;
        let most = f64::from(self.overlay);
        if let Some(thin) = self.thin {
            let expected = format!("a number above 0, at most workload.overlay = {most}");
            check("thin", thin, thin > 0.0 && thin <= most, &expected)?;
        }
        positive("cluster_cores", self.cluster_cores)?;
        check("overlay", most, (1.0..=1000.0).contains(&most), "a number from 1 to 1000")?;
        check(
            "jobs_per_day",
            self.jobs_per_day,
            self.jobs_per_day > 0.0 && self.jobs_per_day <= 1e7,
            "a number above 0, at most 10000000",
        )?;
        let jobs = self.hours / 24.0 * self.jobs_per_day * most;
        check("hours", self.hours, jobs <= MOST_JOBS, "fewer hours: these have more than 10,000,000 candidate jobs")?;
        share("hourly", self.hourly)?;
        check("max_tasks", f64::from(self.max_tasks), self.max_tasks > 0, "a number of at least 1")?;
        share("map_only", self.map_only)?;
        check("reduce_share", self.reduce_share, (0.0..=0.5).contains(&self.reduce_share), "a number from 0 to 0.5")?;
        check("jitter", self.jitter, (0.0..1.0).contains(&self.jitter), "a number of at least 0, below 1")?;
        check("noise", self.noise, (0.0..=5.0).contains(&self.noise), "a number from 0 to 5")?;
        check("noise_sets", f64::from(self.noise_sets), self.noise_sets > 0, "a number of at least 1")?;
        check("zipf", self.zipf, (0.0..=20.0).contains(&self.zipf), "a number from 0 to 20")?;
        positive("duration_cap", self.duration_cap.0.seconds())
    }

    /// Returns the Poisson arrivals of all days laid over one another, at a rate that changes from hour to hour.
    fn arrivals(&self, seed: u64) -> Vec<Time> {
        let (mut gaps, mut accepted, mut hours) = (
            stream(seed, "facebook/arrivals"),
            stream(seed, "facebook/arrivals kept"),
            stream(seed, "facebook/hourly rates"),
        );
        let rates: Vec<f64> =
            (0..self.hours.ceil() as usize).map(|_| 1.0 + self.hourly * (2.0 * hours.random::<f64>() - 1.0)).collect();
        let peak = 1.0 + self.hourly;
        let mean = 86_400.0 / (self.jobs_per_day * f64::from(self.overlay) * peak);
        let exponential = rand_distr::Exp::new(mean.recip()).expect("the rate was checked");
        let end = to_span(self.hours * 3600.0);
        let (mut now, mut arrivals) = (Time::ZERO, Vec::new());
        loop {
            now = now + to_span(exponential.sample(&mut gaps));
            if now.since(Time::ZERO) >= end {
                return arrivals;
            }
            let rate = rates[(now.0 / Span::from_secs(3600).0) as usize];
            if accepted.random::<f64>() * peak < rate {
                arrivals.push(now);
            }
        }
    }

    /// Drops candidates at random so that `thin` or `load` is met, and returns the share of keys that is kept.
    fn keep(&self, candidates: &mut Vec<JobDraft>) -> Result<f64> {
        let limit = match self.thin {
            Some(thin) => (thin / f64::from(self.overlay) * 2f64.powi(64)) as u64,
            None => self.limit_for_load(candidates)?,
        };
        candidates.retain(|candidate| candidate.key < limit);
        Ok(limit as f64 / 2f64.powi(64))
    }

    /// Returns the key below which the kept work is closest to the load.
    fn limit_for_load(&self, candidates: &[JobDraft]) -> Result<u64> {
        let load = self.load.unwrap_or(LOAD);
        let capacity = self.cluster_cores * 1000.0 * self.hours * 3600e6;
        let target = (load * capacity) as u128;
        let mut order: Vec<(u64, u128)> = candidates.iter().map(|job| (job.key, job.work)).collect();
        order.sort_unstable();
        let mut kept = 0;
        for (key, work) in &order {
            let over = kept + work;
            if over >= target {
                // The job that crosses the target is kept if the kept work is then closer to the target.
                return Ok(if over - target <= target - kept { key.saturating_add(1) } else { *key });
            }
            kept = over;
        }
        let most = kept as f64 / capacity;
        Err(Error::plan("workload.load", load, format!("at most {most:.2} here, or a larger workload.overlay")))
    }

    /// Returns a workload with resources, stages and users but without jobs.
    fn empty(&self) -> Workload {
        let dim = |name: &str, unit| Dim { name: name.into(), unit };
        let mut workload =
            Workload { dims: vec![dim("cpu", Unit::Milli), dim("memory", Unit::Mebibyte)], ..Workload::default() };
        for stage in ["map", "reduce"] {
            workload.stages.intern(stage);
        }
        if let Users::Count(count) = self.users {
            for rank in 1..=count {
                workload.users.intern(&format!("u{rank}"));
            }
        }
        workload
    }

    fn collect(&self, candidates: &[JobDraft], draws: &Draws) -> Workload {
        let mut workload = self.empty();
        for candidate in candidates {
            let job = workload.job(&format!("job{}", workload.jobs.len() + 1));
            let user = match self.users {
                Users::Count(_) => draws.user(candidate.number),
                Users::Job => UserId(workload.users.intern(&format!("u{}", job.0 + 1))),
            };
            let sets = draws.task_sets(self, candidate.number, candidate.submit);
            workload.sets.extend(sets.into_iter().map(|set| TaskSet { job, user, ..set }));
        }
        workload.quality.format = "facebook".into();
        workload.quality.rows_in = workload.sets.len() as u64;
        workload.finish()
    }

    fn assumptions(&self) -> Vec<(String, String)> {
        let target = match self.thin {
            Some(thin) => ("thin", thin.to_string()),
            None => ("load", self.load.unwrap_or(LOAD).to_string()),
        };
        let demand = if self.demand == DemandRule::PerJob { "per-job" } else { "per-task-set" };
        let users = match self.users {
            Users::Count(count) => count.to_string(),
            Users::Job => "job".to_owned(),
        };
        [
            ("hours", self.hours.to_string()),
            target,
            ("cluster_cores", self.cluster_cores.to_string()),
            ("overlay", self.overlay.to_string()),
            ("jobs_per_day", self.jobs_per_day.to_string()),
            ("hourly", self.hourly.to_string()),
            ("max_tasks", self.max_tasks.to_string()),
            ("map_only", self.map_only.to_string()),
            ("reduce_share", self.reduce_share.to_string()),
            ("demand", demand.to_owned()),
            ("jitter", self.jitter.to_string()),
            ("duration_cap_s", self.duration_cap.0.seconds().to_string()),
            ("noise", self.noise.to_string()),
            ("noise_sets", self.noise_sets.to_string()),
            ("users", users),
            ("zipf", self.zipf.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

/// Returns the CPU work of a task set in milli-core microseconds.
fn cpu_work(set: &TaskSet) -> u128 {
    u128::from(set.demand.0[0]) * u128::from(set.duration.0) * u128::from(set.tasks)
}
