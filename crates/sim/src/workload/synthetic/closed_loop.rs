//! Generator `closed-loop`: users that submit their next job a think time after the previous one has finished.
//!
//! The number of jobs that a user completes is then a result of the run, as in the DRF paper's section 7.2. A user's nth job depends on
//! the seed, the user and n alone, and not on its submit time, so different policies serve the same jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use priority_queue::PriorityQueue;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use super::demands::{MOST_USERS, ReadyDemand, dims, new_user, user_names};
use super::distributions::{Distribution, Length, Sampler, to_span};
use super::random::{numbered, parts, stream};
use crate::workload::{JobName, JobNames, Names, Source, TaskSet, Texts, Workload};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, JobId, Time, UserId};
use plimsoll_base::visit_values;

/// Parameters of the generator `closed-loop`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// No job is submitted at this instant or later. Required without `jobs_per_user`.
    pub until: Option<Length>,
    /// The largest number of jobs per user.
    pub jobs_per_user: Option<u32>,
    /// The classes (`[[workload.class]]`), at least one.
    #[serde(rename = "class")]
    pub classes: Vec<LoopClass>,
}

/// A class: users that run jobs of one kind, one after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopClass {
    /// The users are named after the class, with a number (without one if there is only one user).
    pub name: String,
    /// Number of users. Default 1.
    #[serde(default = "one_user")]
    pub users: u32,
    /// Tasks of a job. Default 1.
    pub tasks: Option<Distribution>,
    /// The demand of a task, by resource (`cpu`, `memory_gib`, ...), drawn once per job.
    pub demand: BTreeMap<String, Distribution>,
    /// Seconds per task, drawn once per job.
    pub duration: Distribution,
    /// A factor on the duration, drawn for each task set. Default: no factor; all tasks of a job have the same duration.
    pub noise: Option<Distribution>,
    /// The number of task sets into which a job is divided for its noise. Default 8.
    #[serde(default = "eight")]
    pub noise_sets: u32,
    /// Seconds from the end of a job to the next one. Default 0.
    pub think: Option<Distribution>,
    /// The delay between the first submissions of two successive users of the class; the first user submits at 0. Default 0.
    #[serde(default = "none")]
    pub stagger: Length,
    /// The priority, from 0 (most urgent) to 9. Default 0.
    #[serde(default)]
    pub priority: u8,
}

fn one_user() -> u32 {
    1
}

fn eight() -> u32 {
    8
}

fn none() -> Length {
    Length(plimsoll_base::units::Span::ZERO)
}

/// A class, checked and ready to draw from.
#[derive(Clone, Debug)]
struct Ready {
    tasks: Sampler,
    demand: ReadyDemand,
    duration: Sampler,
    noise: Option<Sampler>,
    noise_sets: u32,
    think: Sampler,
    priority: u8,
}

/// The progress of one user in its loop.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Looper {
    class: usize,
    /// Number of jobs submitted so far, including the one in the queue.
    jobs: u32,
}

/// The source of a closed loop.
///
/// [`Source::peek`] may return `None` while jobs run, and a job later. User ids follow the order of declaration. Of users that submit at
/// one instant, the user with the lower id is first.
#[derive(Clone, Debug)]
pub struct LoopSource {
    until: Time,
    most_jobs: u32,
    dims: Vec<Dim>,
    classes: Vec<Ready>,
    loopers: Vec<Looper>,
    users: Names,
    names: JobNames,
    /// The names of stages, labels and locations; they are empty, because rows have none.
    none: Names,
    /// The users that submit next, by time. A user is in the queue at most once, because its next job exists only when the previous one
    /// has ended.
    queue: PriorityQueue<UserId, Reverse<(Time, u32)>>,
    /// Rows of the next job, generated for the head of the queue on demand.
    rows: VecDeque<TaskSet>,
    /// Whether some of these rows were taken; if so, the remaining rows follow before any other job.
    started: bool,
    jobs: u32,
    next_row: u64,
    last: JobName,
    sizes: ChaCha8Rng,
    demands: ChaCha8Rng,
    durations: ChaCha8Rng,
    thinks: ChaCha8Rng,
}

impl ClosedLoop {
    /// Creates the source of a seed. Errors: [`Error::Plan`] at `workload.<parameter>`.
    pub fn source(&self, seed: u64) -> Result<LoopSource> {
        if self.until.is_none() && self.jobs_per_user.is_none() {
            return Err(Error::plan("workload", "a loop without until and jobs_per_user", "one of them"));
        }
        if self.classes.is_empty() {
            return Err(Error::plan("workload.class", "none", "at least one class"));
        }
        let of = |purpose: &str| stream(seed, &format!("closed-loop/{purpose}"));
        let mut source = LoopSource {
            until: self.until.map_or(Time::NEVER, |until| Time::ZERO + until.0),
            most_jobs: self.jobs_per_user.unwrap_or(u32::MAX),
            dims: dims(self.classes.iter().map(|class| &class.demand))?,
            classes: Vec::new(),
            loopers: Vec::new(),
            users: Names::default(),
            names: JobNames::default(),
            none: Names::default(),
            queue: PriorityQueue::new(),
            rows: VecDeque::new(),
            started: false,
            jobs: 0,
            next_row: 0,
            last: JobName::Text("".into()),
            sizes: of("sizes"),
            demands: of("demands"),
            durations: of("durations"),
            thinks: of("think times"),
        };
        for (index, class) in self.classes.iter().enumerate() {
            source.add_class(&format!("workload.class[{index}]"), class)?;
        }
        Ok(source)
    }
}

impl LoopSource {
    /// Returns the resources and users, without jobs.
    pub(super) fn outline(self) -> Workload {
        Workload { dims: self.dims, users: self.users, ..Workload::default() }
    }

    fn add_class(&mut self, key: &str, class: &LoopClass) -> Result<()> {
        let constant = |distribution: &Option<Distribution>, value: f64| {
            distribution.clone().unwrap_or_else(|| Distribution::from(value))
        };
        if class.priority > 9 {
            return Err(Error::plan(format!("{key}.priority"), class.priority, "a number from 0 to 9"));
        }
        if class.noise_sets == 0 {
            return Err(Error::plan(format!("{key}.noise_sets"), 0, "a number of at least 1"));
        }
        // Durations must be positive. With a duration of 0 and no think time, a user would submit endlessly at one instant.
        self.classes.push(Ready {
            tasks: constant(&class.tasks, 1.0).sampler(&format!("{key}.tasks"), true)?,
            demand: ReadyDemand::new(&format!("{key}.demand"), &class.demand, &self.dims)?,
            duration: class.duration.sampler(&format!("{key}.duration"), true)?,
            noise: class.noise.as_ref().map(|noise| noise.sampler(&format!("{key}.noise"), true)).transpose()?,
            noise_sets: if class.noise.is_some() { class.noise_sets } else { 1 },
            think: constant(&class.think, 0.0).sampler(&format!("{key}.think"), false)?,
            priority: class.priority,
        });
        let names = user_names(key, &class.name, class.users)?;
        if (self.users.len() + names.len()) as u64 > MOST_USERS {
            return Err(Error::plan(format!("{key}.users"), class.users, format!("at most {MOST_USERS} users in all")));
        }
        let mut first = Time::ZERO;
        for name in names {
            let user = UserId(new_user(key, &name, &mut self.users)?);
            self.loopers.push(Looper { class: self.classes.len() - 1, jobs: 0 });
            self.schedule(user, first);
            first = first + class.stagger.0;
        }
        Ok(())
    }

    /// Schedules the next job of a user at `at`, unless the user has reached its limit.
    fn schedule(&mut self, user: UserId, at: Time) {
        let looper = &mut self.loopers[user.index()];
        if at < self.until && looper.jobs < self.most_jobs {
            looper.jobs += 1;
            self.queue.push(user, Reverse((at, user.0)));
        }
    }

    /// Returns the number of the substream of a user's nth job.
    fn substream(user: UserId, job: u32) -> u64 {
        u64::from(user.0) << 32 | u64::from(job)
    }

    /// Generates the rows of the head of the queue, unless they have been generated.
    fn prepare(&mut self) {
        let Some((&user, &Reverse((submit, _)))) = self.queue.peek() else { return };
        if self.rows.front().is_some_and(|row| row.user == user) {
            return;
        }
        let looper = &self.loopers[user.index()];
        let (class, number) = (&self.classes[looper.class], Self::substream(user, looper.jobs));
        let tasks = class.tasks.tasks(&mut numbered(&self.sizes, number));
        let demand = class.demand.sample(&mut numbered(&self.demands, number));
        let mut durations = numbered(&self.durations, number);
        let seconds = class.duration.sample(&mut durations);
        self.rows.clear();
        for tasks in parts(tasks, class.noise_sets) {
            let factor = class.noise.as_ref().map_or(1.0, |noise| noise.sample(&mut durations));
            // Every task takes at least a microsecond; otherwise a loop could repeat endlessly at one instant.
            let duration = to_span(seconds * factor).max(plimsoll_base::units::Span(1));
            let job = JobId(self.jobs);
            let priority = class.priority;
            let row = self.next_row + self.rows.len() as u64;
            self.rows.push_back(TaskSet {
                row,
                job,
                user,
                submit,
                duration,
                tasks,
                demand,
                priority,
                ..TaskSet::default()
            });
        }
    }
}

impl Source for LoopSource {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        if !self.started {
            self.prepare();
        }
        Ok(self.rows.front())
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        if !self.started {
            self.prepare();
        }
        let Some(row) = self.rows.pop_front() else { return Ok(None) };
        if !self.started {
            self.queue.pop();
            self.jobs += 1;
            let name = format!("{}-{}", self.users.name(row.user.0), self.loopers[row.user.index()].jobs);
            self.last = self.names.parse(name.as_bytes()).expect("text is UTF-8");
        }
        self.started = !self.rows.is_empty();
        self.next_row += 1;
        Ok(Some(row))
    }

    fn job_name(&self) -> JobName {
        self.last.clone()
    }

    fn users(&self) -> &Names {
        &self.users
    }

    fn texts(&self) -> Texts<'_> {
        let Self { names, none, .. } = self;
        Texts { job_names: names, stages: none, labels: none, locations: none }
    }

    fn job_finished(&mut self, _job: JobId, user: UserId, now: Time) {
        let looper = &self.loopers[user.index()];
        let number = Self::substream(user, looper.jobs);
        let think = self.classes[looper.class].think.span(&mut numbered(&self.thinks, number));
        self.schedule(user, now + think);
    }

    fn reacts(&self) -> bool {
        true
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn locate(&self, row: u64) -> String {
        format!("row {row} of the closed loop")
    }
}

impl Checkpoint for LoopSource {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let LoopSource {
            until: _,
            most_jobs: _,
            dims: _,
            classes: _,
            loopers,
            users: _,
            names,
            none: _,
            queue,
            rows,
            started,
            jobs,
            next_row,
            last,
            // Each job has a substream of its own, so the streams stay at their beginnings.
            sizes: _,
            demands: _,
            durations: _,
            thinks: _,
        } = self;
        visit_values!(visitor; loopers, names, queue, rows, started, jobs, next_row, last);
        Ok(())
    }
}
