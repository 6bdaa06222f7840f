//! Generator `synthetic`: classes of users, and a distribution for each quantity.
//!
//! Jobs arrive as one stream. The class of a job is drawn by weight, and its user among the users of the class by Zipf's law. Classes with
//! different demands form a mix of users that need different resources. Arrivals, classes and users, sizes, demands and durations have
//! separate random streams.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use super::demands::{ReadyDemand, dims, new_user, user_names};
use super::distributions::{Distribution, Length, Sampler, to_span};
use super::random::{Weighted, stream};
use crate::workload::{TaskSet, Workload};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Span, TIME_MAX_US, Time, UserId};

/// Parameters of the generator `synthetic`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// Number of jobs. Required without `hours`; with both, generation ends at the limit that is reached first.
    pub jobs: Option<u64>,
    /// The time over which jobs arrive, in hours.
    pub hours: Option<f64>,
    /// Seconds between one job and the next, over all classes.
    pub arrival: Distribution,
    /// Waves in the arrival rate; they require exponential gaps.
    pub burst: Option<Burst>,
    /// The classes (`[[workload.class]]`), at least one.
    #[serde(rename = "class")]
    pub classes: Vec<Class>,
}

/// A wave of the arrival rate. The rate is multiplied by `1 + amplitude sin(2 pi t / period)`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// The amplitude, from 0 to 1.
    pub amplitude: f64,
    /// The length of a wave.
    pub period: Length,
}

/// A class: users with jobs of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The users are named after the class, with a number (without one if there is only one user).
    pub name: String,
    /// The weight. The class gets this part of the sum of all weights as its share of the jobs. Default 1.
    #[serde(default = "one")]
    pub weight: f64,
    /// Number of users. Default 1.
    #[serde(default = "one_user")]
    pub users: u32,
    /// The inequality of the users: the user of rank k submits jobs in proportion to 1 / k^zipf. Default 0: all users submit equally
    /// often.
    #[serde(default)]
    pub zipf: f64,
    /// The priority, from 0 (most urgent) to 9. Default 0.
    #[serde(default)]
    pub priority: u8,
    /// Whether the tasks of a job, or of a stage, start together. Default false.
    #[serde(default)]
    pub gang: bool,
    /// Whether the tasks are exempt from preemption. Default false.
    #[serde(default)]
    pub stable: bool,
    /// A label expression for the machines. Default: any machine.
    pub label: Option<String>,
    /// Tasks of a job. Default 1.
    pub tasks: Option<Distribution>,
    /// Seconds per task, drawn once per job. Required unless there are stages.
    pub duration: Option<Distribution>,
    /// The demand of a task, by resource (`cpu`, `memory_gib`, `gpu`, ...), drawn once per job. Required unless there are stages.
    #[serde(default)]
    pub demand: BTreeMap<String, Distribution>,
    /// Stages (`[[workload.class.stage]]`), each after the previous one; they replace `tasks`, `duration` and `demand`.
    #[serde(default, rename = "stage")]
    pub stages: Vec<Stage>,
}

/// One stage of every job of a class.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name, unique in the class.
    pub name: String,
    /// Tasks. Default 1.
    pub tasks: Option<Distribution>,
    /// Seconds per task, drawn once per job.
    pub duration: Distribution,
    /// The demand of a task, by resource.
    pub demand: BTreeMap<String, Distribution>,
}

fn one() -> f64 {
    1.0
}

fn one_user() -> u32 {
    1
}

/// The largest number of jobs; a larger number is treated as a mistake (with gaps of 0, generation would never end).
const MOST_JOBS: u64 = 100_000_000;

impl Synthetic {
    /// Generates the workload of a seed. Errors: [`Error::Plan`] at `workload.<parameter>`.
    pub fn generate(&self, seed: u64) -> Result<Workload> {
        let mut workload = Workload::default();
        let table = ClassTable::new(self, &mut workload)?;
        let mut clock = Clock::new(self, seed)?;
        let mut draws = Draws::new(seed);
        let end = self.hours.map_or(Time::NEVER, |hours| Time::ZERO + to_span(hours * 3600.0));
        let jobs = self.jobs.unwrap_or(MOST_JOBS + 1);
        for number in 1..=jobs {
            let submit = clock.next();
            if submit >= end {
                break;
            }
            if number > MOST_JOBS || submit > Time(TIME_MAX_US) {
                let expected = "gaps that give at most 100,000,000 jobs, within 31,700 years";
                return Err(Error::plan("workload.arrival", "this distribution", expected));
            }
            table.submit(&mut workload, &mut draws, number, submit);
        }
        workload.quality.format = "synthetic".into();
        workload.quality.rows_in = workload.sets.len() as u64;
        Ok(workload.finish())
    }

    /// Returns the workload without its jobs. Errors: [`Error::Plan`] at `workload.<parameter>`.
    pub(super) fn outline(&self, seed: u64) -> Result<Workload> {
        let mut workload = Workload::default();
        ClassTable::new(self, &mut workload)?;
        Clock::new(self, seed)?;
        Ok(workload)
    }

    /// Returns the parameters of a workload for speed measurements: jobs with one task and two resources, for 400 machines of 64 cores and
    /// 256 GiB. At a `load` of 0.9 on both resources about 8,700 tasks run at once.
    ///
    /// Durations are lognormal (mean 298 s, sigma 1). Users follow Zipf's law with exponent 0.6. Demands of CPU and memory are
    /// independent. With `burst` the rate swings by 60 % every 30 minutes, so that queues form.
    pub fn bench(tasks: u64, users: u32, load: f64, burst: bool) -> Synthetic {
        // The mean demand is 2.64 cores and 10.56 GiB. At a load of 0.9, 23,040 of 25,600 cores and 92,160 of 102,400 GiB are used by
        // 8,727 tasks.
        let weights = [0.32, 0.36, 0.24, 0.08];
        let demand = BTreeMap::from([
            ("cpu".to_owned(), Distribution::choice(&[1.0, 2.0, 4.0, 8.0], &weights)),
            ("memory_gib".to_owned(), Distribution::choice(&[4.0, 8.0, 16.0, 32.0], &weights)),
        ]);
        let (median, sigma) = (181.0f64, 1.0f64);
        let mean = median * (sigma * sigma / 2.0).exp();
        let class = Class {
            name: "user".into(),
            weight: 1.0,
            users,
            zipf: 0.6,
            priority: 0,
            gang: false,
            stable: false,
            label: None,
            tasks: None,
            duration: Some(Distribution::lognormal(median, sigma)),
            demand,
            stages: Vec::new(),
        };
        let half_hour = Length(Span::from_secs(1800));
        Synthetic {
            jobs: Some(tasks),
            hours: None,
            arrival: Distribution::exponential(mean * 2.64 / (load * 25_600.0)),
            burst: burst.then_some(Burst { amplitude: 0.6, period: half_hour }),
            classes: vec![class],
        }
    }
}

/// Generates the workload of [`Synthetic::bench`]. Errors: [`Error::Plan`] for a load or users out of range.
pub fn bench_workload(tasks: u64, users: u32, load: f64, burst: bool, seed: u64) -> Result<Workload> {
    Synthetic::bench(tasks, users, load, burst).generate(seed)
}

/// The arrival times of jobs.
struct Clock {
    now: Time,
    gap: Sampler,
    gaps: ChaCha8Rng,
    accepted: ChaCha8Rng,
    /// The amplitude and the period of the wave.
    burst: Option<(f64, u64)>,
}

impl Clock {
    fn new(spec: &Synthetic, seed: u64) -> Result<Clock> {
        match (spec.jobs, spec.hours) {
            (None, None) => return Err(Error::plan("workload", "a table without jobs and hours", "one of them")),
            (Some(jobs), _) if jobs > MOST_JOBS => {
                return Err(Error::plan("workload.jobs", jobs, format!("at most {MOST_JOBS}")));
            }
            (_, Some(hours)) if !(hours > 0.0 && hours <= 1e6) => {
                return Err(Error::plan("workload.hours", hours, "a number above 0, at most 1000000"));
            }
            _ => {}
        }
        let gap = spec.arrival.sampler("workload.arrival", true)?;
        if let Some(burst) = &spec.burst {
            if !(0.0..=1.0).contains(&burst.amplitude) {
                return Err(Error::plan("workload.burst.amplitude", burst.amplitude, "a number from 0 to 1"));
            }
            if burst.period.0 == Span::ZERO {
                return Err(Error::plan("workload.burst.period", 0, "a time above 0"));
            }
            // Dropping arrivals changes the rate correctly only for a Poisson process.
            if !spec.arrival.is_memoryless() {
                let expected = "an exponential distribution without min and max, because of workload.burst";
                return Err(Error::plan("workload.arrival", "this distribution", expected));
            }
        }
        Ok(Clock {
            now: Time::ZERO,
            gap,
            gaps: stream(seed, "synthetic/arrivals"),
            accepted: stream(seed, "synthetic/arrivals kept"),
            burst: spec.burst.map(|burst| (burst.amplitude, burst.period.0.0)),
        })
    }

    /// Returns the next arrival; with a burst, arrivals are drawn at the peak rate, and some are dropped.
    fn next(&mut self) -> Time {
        loop {
            let Some((amplitude, period)) = self.burst else {
                self.now = self.now + self.gap.span(&mut self.gaps);
                return self.now;
            };
            let peak = 1.0 + amplitude;
            self.now = self.now + to_span(self.gap.sample(&mut self.gaps) / peak);
            let phase = (self.now.0 % period) as f64 / period as f64;
            if self.accepted.random::<f64>() * peak < 1.0 + amplitude * (std::f64::consts::TAU * phase).sin() {
                return self.now;
            }
        }
    }
}

/// One random stream per purpose.
struct Draws {
    users: ChaCha8Rng,
    sizes: ChaCha8Rng,
    demands: ChaCha8Rng,
    durations: ChaCha8Rng,
}

impl Draws {
    fn new(seed: u64) -> Draws {
        let of = |purpose: &str| stream(seed, &format!("synthetic/{purpose}"));
        Draws { users: of("users"), sizes: of("sizes"), demands: of("demands"), durations: of("durations") }
    }
}

/// The classes, checked and ready to draw from.
struct ClassTable {
    class: Weighted,
    classes: Vec<ReadyClass>,
}

struct ReadyClass {
    users: Vec<UserId>,
    user: Weighted,
    priority: u8,
    gang: bool,
    stable: bool,
    label: Option<u32>,
    stages: Vec<ReadyStage>,
}

/// A stage, or a whole job without stages.
struct ReadyStage {
    id: Option<u32>,
    after: Option<u32>,
    tasks: Sampler,
    duration: Sampler,
    demand: ReadyDemand,
}

impl ClassTable {
    fn new(spec: &Synthetic, workload: &mut Workload) -> Result<ClassTable> {
        let weights = Weighted::new(spec.classes.iter().map(|class| class.weight)).ok_or_else(|| {
            let given = format!("{:?}", spec.classes.iter().map(|class| class.weight).collect::<Vec<_>>());
            Error::plan("workload.class", format!("weights {given}"), "at least one class, and a weight above 0")
        })?;
        let tables = spec
            .classes
            .iter()
            .flat_map(|class| class.stages.iter().map(|stage| &stage.demand).chain(std::iter::once(&class.demand)));
        workload.dims = dims(tables)?;
        let classes: Result<Vec<_>> = (0..)
            .zip(&spec.classes)
            .map(|(index, class)| ready_class(&format!("workload.class[{index}]"), class, workload))
            .collect();
        Ok(ClassTable { class: weights, classes: classes? })
    }

    /// Adds one job.
    fn submit(&self, workload: &mut Workload, draws: &mut Draws, number: u64, submit: Time) {
        let class = &self.classes[self.class.sample(&mut draws.users)];
        let user = class.users[class.user.sample(&mut draws.users)];
        let job = workload.job(&format!("job{number}"));
        for stage in &class.stages {
            workload.sets.push(TaskSet {
                job,
                user,
                submit,
                duration: stage.duration.span(&mut draws.durations),
                tasks: stage.tasks.tasks(&mut draws.sizes),
                demand: stage.demand.sample(&mut draws.demands),
                stage: stage.id,
                after: stage.after.into_iter().collect(),
                priority: class.priority,
                gang: class.gang,
                stable: class.stable,
                label: class.label,
                ..TaskSet::default()
            });
        }
    }
}

fn ready_class(key: &str, class: &Class, workload: &mut Workload) -> Result<ReadyClass> {
    let names = user_names(key, &class.name, class.users)?;
    let user = Weighted::zipf(class.users, class.zipf).filter(|_| class.zipf >= 0.0);
    let user = user.ok_or_else(|| Error::plan(format!("{key}.zipf"), class.zipf, "a number of at least 0"))?;
    if class.priority > 9 {
        return Err(Error::plan(format!("{key}.priority"), class.priority, "a number from 0 to 9"));
    }
    let mut users = Vec::with_capacity(names.len());
    for name in names {
        users.push(UserId(new_user(key, &name, &mut workload.users)?));
    }
    let stages = if class.stages.is_empty() {
        let duration = class.duration.as_ref().ok_or_else(|| {
            Error::plan(key, "a class without duration and stages", "duration and demand, or [[workload.class.stage]]")
        })?;
        vec![ready_stage(key, class.tasks.as_ref(), duration, &class.demand, (None, None), &workload.dims)?]
    } else {
        if class.tasks.is_some() || class.duration.is_some() || !class.demand.is_empty() {
            let given = "a class with stages and tasks, duration or demand of its own";
            return Err(Error::plan(key, given, "either stages or the others"));
        }
        ready_stages(key, class, workload)?
    };
    let label = class.label.as_deref().map(|label| workload.labels.intern(label));
    Ok(ReadyClass { users, user, priority: class.priority, gang: class.gang, stable: class.stable, label, stages })
}

fn ready_stages(key: &str, class: &Class, workload: &mut Workload) -> Result<Vec<ReadyStage>> {
    let (mut ready, mut met, mut before) = (Vec::new(), BTreeSet::new(), None);
    for (index, stage) in class.stages.iter().enumerate() {
        let key = format!("{key}.stage[{index}]");
        if stage.name.is_empty() || !met.insert(&stage.name) {
            return Err(Error::plan(format!("{key}.name"), format!("'{}'", stage.name), "a unique name"));
        }
        let id = Some(workload.stages.intern(&stage.name));
        let tasks = stage.tasks.as_ref();
        ready.push(ready_stage(&key, tasks, &stage.duration, &stage.demand, (id, before), &workload.dims)?);
        before = id;
    }
    Ok(ready)
}

fn ready_stage(
    key: &str,
    tasks: Option<&Distribution>,
    duration: &Distribution,
    demand: &BTreeMap<String, Distribution>,
    (id, after): (Option<u32>, Option<u32>),
    dims: &[Dim],
) -> Result<ReadyStage> {
    let one = Distribution::from(1.0);
    Ok(ReadyStage {
        id,
        after,
        tasks: tasks.unwrap_or(&one).sampler(&format!("{key}.tasks"), true)?,
        duration: duration.sampler(&format!("{key}.duration"), true)?,
        demand: ReadyDemand::new(&format!("{key}.demand"), demand, dims)?,
    })
}
