//! The log of an episode: sums for rewards and metrics, and the tasks that have ended since the agent's last decision.
//!
//! The engine writes to it through a [`RecorderHandle`], and the simulation reads it between steps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_metrics::{Totals, fixed_share};
use plimsoll_sim::books::Books;
use plimsoll_sim::policy::{Ask, Capabilities, Policy, Queue, Rank, Reason, Verdict};
use plimsoll_sim::record::{JobRecord, Launch, Recorder, State, Stuck, StuckRecord, TaskRecord};
use plimsoll_sim::workload::TaskSet;

/// A policy that admits no task: the agent starts tasks.
pub(crate) struct AdmitNone;

impl Policy for AdmitNone {
    fn rank(&self, _queue: &Queue, _books: &Books) -> Rank {
        Rank::default()
    }

    fn admit(&self, _queue: &Queue, _ask: &Ask, _books: &Books) -> Verdict {
        Verdict::Wait(Reason::Rule("the agent decides"))
    }
}

impl Capabilities for AdmitNone {}

/// The instants of a job; `None` for events that have not occurred yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimes {
    /// The instant of its submission.
    pub submit: Option<Time>,
    /// The instant at which its first task was launched.
    pub start: Option<Time>,
    /// The instant at which its last task ended.
    pub finish: Option<Time>,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Default)]
struct JobState {
    times: JobTimes,
    /// Whether some of its tasks can never start.
    stuck: bool,
    /// 1 / its ideal completion time in microseconds, while it is in the system; 0 before this time is known.
    rate: f64,
    /// Its allocation and its number of waiting tasks (`waiting`), as they are contained in the sums of its user.
    used: Resources,
    waiting: u64,
}

/// The sums of a user, over its jobs.
#[derive(Clone, Copy, Debug, Default)]
struct OfUser {
    used: Resources,
    waiting: u64,
    share: u64,
}

/// Integrals over time since they were last reset. The unit is job-seconds; the integral for slowdowns has no unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// The number of unfinished jobs.
    pub completion: f64,
    /// The number of unfinished jobs without a started task.
    pub wait: f64,
    /// The sum of 1 / ideal completion time over unfinished jobs.
    pub slowdown: f64,
}

/// Tasks of a job that have ended or were preempted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub job: u32,
    pub number: u32,
    pub start: Time,
    pub count: u32,
}

/// The log of an episode so far.
#[derive(Default)]
pub(crate) struct EpisodeLog {
    /// Jobs with a changed allocation or pending demand since the last decision.
    pub changed: Vec<UserId>,
    /// Tasks that have ended since the last decision.
    pub ended: Vec<Ended>,
    /// The number of submitted rows.
    pub rows: usize,
    /// The instant at which the last job arrived.
    pub arrival: Time,
    pub sums: Sums,
    pub totals: Totals,
    jobs: Vec<JobState>,
    in_system: u64,
    unstarted: u64,
    slowdown: f64,
    owners: Vec<UserId>,
    users: Vec<OfUser>,
    capacity: Resources,
}

impl EpisodeLog {
    /// Creates the log of an episode before its first event; `owners` are the users of the jobs.
    pub fn new(owners: &[UserId], capacity: Resources) -> EpisodeLog {
        let users = owners.iter().map(|user| user.index() + 1).max().unwrap_or(0);
        EpisodeLog {
            jobs: vec![JobState::default(); owners.len()],
            owners: owners.to_vec(),
            users: vec![OfUser::default(); users],
            capacity,
            ..EpisodeLog::default()
        }
    }

    /// Returns the number of users that have submitted jobs.
    pub fn users(&self) -> u64 {
        let appeared = self.jobs.iter().zip(&self.owners).filter(|(job, _)| job.times.submit.is_some());
        let mut users: Vec<UserId> = appeared.map(|(_, user)| *user).collect();
        users.sort_unstable();
        users.dedup();
        users.len() as u64
    }

    /// Returns the times of a job.
    pub fn times(&self, job: usize) -> JobTimes {
        self.jobs[job].times
    }

    /// Stores the ideal completion time of a job in the system, if it is not known yet.
    pub fn ideal(&mut self, job: usize, ideal: Span) {
        let standing = &mut self.jobs[job];
        if standing.rate == 0.0 && ideal > Span::ZERO && !standing.stuck {
            standing.rate = 1.0 / ideal.0 as f64;
            self.slowdown += standing.rate;
        }
    }

    /// Updates the sums of a job's user after its allocation or pending demand has changed.
    pub fn update_job(&mut self, job: usize, books: &Books) {
        let (id, dims) = (UserId(job as u32), books.dims());
        let (now, waiting) = (books.used(id), books.waiting(id));
        let standing = &mut self.jobs[job];
        let user = &mut self.users[self.owners[job].index()];
        let before = (user.waiting > 0).then_some(user.share);
        for d in 0..dims {
            user.used.0[d] = user.used.0[d] - standing.used.0[d] + now[d];
            standing.used.0[d] = now[d];
        }
        user.waiting = user.waiting - standing.waiting + waiting;
        standing.waiting = waiting;
        let parts = (0..dims).filter(|d| self.capacity.0[*d] > 0);
        user.share = fixed_share(parts.map(|d| user.used.0[d] as f64 / self.capacity.0[d] as f64).fold(0.0, f64::max));
        self.totals.change_backlogged(before, (user.waiting > 0).then_some(user.share));
    }

    /// Removes a job from the system.
    fn leave(&mut self, job: usize) {
        self.in_system -= 1;
        self.slowdown -= std::mem::take(&mut self.jobs[job].rate);
        if self.in_system == 0 {
            // The sum is reset, so that rounding errors do not accumulate.
            self.slowdown = 0.0;
        }
    }
}

/// The engine's handle to the log.
pub(crate) struct RecorderHandle(Arc<Mutex<EpisodeLog>>);

impl RecorderHandle {
    /// Creates a recorder that writes to this log.
    pub fn new(log: Arc<Mutex<EpisodeLog>>) -> RecorderHandle {
        RecorderHandle(log)
    }

    fn log(&self) -> MutexGuard<'_, EpisodeLog> {
        locked(&self.0)
    }
}

/// Locks the log. No other thread uses the log between steps of the engine.
pub(crate) fn locked(log: &Mutex<EpisodeLog>) -> MutexGuard<'_, EpisodeLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder for RecorderHandle {
    fn submitted(&mut self, row: &TaskSet, _stage: Option<&str>, first_of_job: bool) {
        let mut log = self.log();
        log.rows += 1;
        log.totals.submitted(row, first_of_job);
        if first_of_job {
            log.jobs[row.job.index()].times.submit = Some(row.submit);
            log.arrival = row.submit;
            log.in_system += 1;
            log.unstarted += 1;
        }
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        let mut log = self.log();
        log.totals.interval(from, to, state.books);
        let span = to.since(from);
        let seconds = span.seconds();
        log.sums.completion += log.in_system as f64 * seconds;
        log.sums.wait += log.unstarted as f64 * seconds;
        log.sums.slowdown += log.slowdown * span.0 as f64;
        Ok(())
    }

    fn launched(&mut self, launch: &Launch) {
        let mut log = self.log();
        let now = log.totals.now;
        log.totals.launched(launch);
        let standing = &mut log.jobs[launch.user.index()];
        if standing.times.start.is_none() {
            standing.times.start = Some(now);
            log.unstarted -= u64::from(!log.jobs[launch.user.index()].stuck);
        }
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let mut log = self.log();
        log.totals.tasks(tasks);
        let (job, number) = (tasks.user.0, tasks.first as u32);
        log.ended.push(Ended { job, number, start: tasks.start, count: tasks.count });
        Ok(())
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        let mut log = self.log();
        let at = job.user.index();
        if let Some(ended) = log.totals.job(job) {
            log.jobs[at].times.finish = Some(ended.finish);
            if !log.jobs[at].stuck {
                log.leave(at);
            }
        }
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        let mut log = self.log();
        log.totals.stuck(stuck);
        let at = stuck.user.index();
        if stuck.why == Stuck::TooLarge && !std::mem::replace(&mut log.jobs[at].stuck, true) {
            // The job never ends, whatever the agent does.
            log.unstarted -= u64::from(log.jobs[at].times.start.is_none());
            log.leave(at);
        }
        Ok(())
    }

    fn settled(&mut self, _now: Time, changed: &[UserId], _books: &Books) -> Result<()> {
        self.log().changed.extend_from_slice(changed);
        Ok(())
    }
}

/// Returns amounts as shares of the cluster, each at most 1.
pub(crate) fn shares(amounts: impl Fn(usize) -> f64, capacity: &Resources, dims: usize) -> [f32; MAX_DIMS] {
    std::array::from_fn(|d| match capacity.0[d] {
        _ if d >= dims => 0.0,
        0 => f32::from(u8::from(amounts(d) > 0.0)),
        whole => (amounts(d) / whole as f64).min(1.0) as f32,
    })
}
