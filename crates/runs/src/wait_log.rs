//! Why jobs wait: the intervals of the waits of watched jobs, each with one reason.
//!
//! A [`WaitLog`] asks the engine after every instant for the reasons of the watched jobs. The reason of a job is that of its first waiting
//! row that may start; consecutive instants with the same reason are one interval. The intervals before the first start of a job add up
//! to its wait, to the microsecond.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::wait_text::WaitReport;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Resources, Span, Time, UserId};
use plimsoll_sim::engine::{
    BlockReason, BlockedTasks, Engine, MachineScope, MissingRoom, StoppedTasks, WatchedJob, WatchedJobs,
};
use plimsoll_sim::policy::{Reason, Status};

/// Receives the engine of a run after every instant.
pub trait Observer {
    /// Prepares the engine before the first instant.
    fn begin(&mut self, _engine: &mut Engine) {}

    /// Reads the state after an instant. Returns whether the run continues; the observer may need no further instant. Errors: they end the
    /// run.
    fn instant(&mut self, _engine: &mut Engine, _now: Time) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

/// An observer that reads nothing.
pub struct NoObserver;

impl Observer for NoObserver {}

/// The wait of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobWait {
    /// The name of the job.
    pub job: String,
    /// The name of its user.
    pub user: String,
    /// The instant at which its first row was submitted.
    pub submit: Time,
    /// The start of its first task; `None` if it never started.
    pub start: Option<Time>,
    /// The intervals from the submission to the first start, or to the end of the run. They are adjacent.
    pub before: Vec<WaitInterval>,
    /// The intervals with further waiting tasks after the first start.
    pub after: Vec<WaitInterval>,
    /// The stops of its tasks.
    pub stops: Vec<StoppedTasks>,
}

impl JobWait {
    fn new(job: &WatchedJob, engine: &Engine) -> JobWait {
        JobWait {
            job: job.name.clone(),
            user: engine.user_name(job.user).to_owned(),
            submit: job.submit,
            start: job.start,
            before: Vec::new(),
            after: Vec::new(),
            stops: Vec::new(),
        }
    }

    /// Returns the wait until the first start, or until the end of the run.
    pub fn wait(&self) -> Span {
        Span(self.before.iter().map(|interval| interval.length().0).sum())
    }
}

/// An interval with one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitInterval {
    /// The beginning.
    pub from: Time,
    /// The end.
    pub to: Time,
    /// The reason at the beginning. The amounts may change within the interval; the integrals below cover all of it.
    pub reason: BlockReason,
    /// Number of waiting tasks of the row at the beginning.
    pub tasks: u32,
    /// Number of earlier stops of the tasks.
    pub attempt: u32,
    /// The integral of the missing amount over time, in base units times microseconds.
    pub short: u128,
    /// The integral of the free amount of the missing resource over time.
    pub free: u128,
    /// The integral of the capacity of the missing resource over time.
    pub capacity: u128,
    /// Per user, the integral of its allocation of the missing resource over time, on the machines that the tasks may use.
    pub holders: BTreeMap<String, u128>,
    /// Per user or job that comes first, the time for which it was the first.
    pub behind: BTreeMap<String, Span>,
    /// Per user, the number of tasks that started meanwhile on machines that the tasks may use. Empty if the policy does not plan the
    /// machines of launches: then the rank order explains the wait.
    pub started: BTreeMap<String, u64>,
    /// The amount of the missing resource that these tasks reserve together.
    pub started_amount: u128,
    /// The limit of the group with the used-up quota, of the missing resource; `None` for other reasons and if the policy states none.
    pub limit: Option<u64>,
}

impl WaitInterval {
    /// Returns its length.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }

    /// Returns the mean of an integral over the interval, rounded to the nearest integer.
    pub fn mean(&self, integral: u128) -> u128 {
        rounded_mean(integral, self.length())
    }

    /// Returns the users with allocations of the missing resource, the largest mean first, with their mean allocations.
    pub fn holder_means(&self) -> Vec<(&str, u128)> {
        let mut means: Vec<(&str, u128)> =
            self.holders.iter().map(|(user, integral)| (user.as_str(), self.mean(*integral))).collect();
        means.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        means
    }

    /// Returns the missing resource, or that of the quota that is used up: its index, or `None` for slots.
    pub(crate) fn missing_resource(&self) -> Option<Option<u8>> {
        match &self.reason {
            BlockReason::Rule(Reason::Quota { resource, .. }) => Some(Some(*resource)),
            reason => reason.missing().map(|missing| missing.resource),
        }
    }

    /// Returns whether another interval has the same cause: reason, and group or place. The missing resources may differ.
    pub(crate) fn has_cause_of(&self, other: &WaitInterval) -> bool {
        match (&self.reason, &other.reason) {
            (BlockReason::Rule(one), BlockReason::Rule(other)) => match (one, other) {
                (
                    Reason::Quota { group, resource, .. },
                    Reason::Quota { group: other_group, resource: other_resource, .. },
                ) => (group, resource) == (other_group, other_resource),
                (one, other) => one == other,
            },
            (BlockReason::Place { label, .. }, BlockReason::Place { label: other, .. }) => label == other,
            (BlockReason::Victims { machine, .. }, BlockReason::Victims { machine: other, .. }) => machine == other,
            (one, other) => one.row() == other.row(),
        }
    }

    /// Returns whether the next interval continues this one.
    fn continues(&self, next: &WaitInterval) -> bool {
        let missing = |reason: &BlockReason| reason.missing().map(|missing| missing.resource);
        self.has_cause_of(next)
            && missing(&self.reason) == missing(&next.reason)
            && self.attempt == next.attempt
            && self.to == next.from
    }

    fn extend(&mut self, next: WaitInterval) {
        self.to = next.to;
        self.short += next.short;
        self.free += next.free;
        self.capacity += next.capacity;
        for (user, integral) in next.holders {
            *self.holders.entry(user).or_default() += integral;
        }
        for (name, span) in next.behind {
            let total = self.behind.entry(name).or_default();
            *total = Span(total.0 + span.0);
        }
        for (user, tasks) in next.started {
            *self.started.entry(user).or_default() += tasks;
        }
        self.started_amount += next.started_amount;
    }
}

/// Returns the mean of an integral over a span, rounded to the nearest integer.
pub(crate) fn rounded_mean(integral: u128, over: Span) -> u128 {
    let over = u128::from(over.0.max(1));
    (integral + over / 2) / over
}

/// The state of a watched job since the last instant.
struct Present {
    started: bool,
    /// Its first waiting row; `None` if no task waits.
    blocked: Option<BlockedTasks>,
    short: u64,
    free: u64,
    capacity: u64,
    holders: Vec<(String, u64)>,
    behind: Option<String>,
    /// The tasks that started at the beginning.
    began: Vec<(String, u64)>,
    began_amount: u64,
    limit: Option<u64>,
}

/// Records why watched jobs wait.
pub struct WaitLog {
    jobs: WatchedJobs,
    dims: Vec<Dim>,
    groups: Vec<String>,
    in_rank_order: bool,
    rule: Option<&'static str>,
    open: BTreeMap<JobId, (JobWait, Present)>,
    ended: Vec<JobWait>,
    /// The latest instant.
    latest: Time,
}

impl WaitLog {
    /// Creates a log of these jobs, for a policy with this description.
    pub fn new(jobs: WatchedJobs, rule: Option<&'static str>) -> WaitLog {
        WaitLog {
            jobs,
            dims: Vec::new(),
            groups: Vec::new(),
            in_rank_order: true,
            rule,
            open: BTreeMap::new(),
            ended: Vec::new(),
            latest: Time::ZERO,
        }
    }

    /// Ends the log at the end of the run. Returns the waits by submission, then by name.
    pub fn finish(mut self, end: Time) -> WaitReport {
        self.pass(end);
        let mut waits = self.ended;
        waits.extend(self.open.into_values().map(|(wait, _)| wait));
        waits.sort_by(|a, b| (a.submit, &a.job).cmp(&(b.submit, &b.job)));
        WaitReport { dims: self.dims, groups: self.groups, in_rank_order: self.in_rank_order, rule: self.rule, waits }
    }

    /// Adds the time since the last instant to the intervals.
    fn pass(&mut self, now: Time) {
        let from = std::mem::replace(&mut self.latest, now);
        if now == from {
            return;
        }
        for (wait, present) in self.open.values_mut() {
            let Some(blocked) = &present.blocked else { continue };
            let length = u128::from(now.since(from).0);
            let integral = |amount: u64| u128::from(amount) * length;
            let next = WaitInterval {
                from,
                to: now,
                reason: blocked.reason.clone(),
                tasks: blocked.tasks,
                attempt: blocked.attempt,
                short: integral(present.short),
                free: integral(present.free),
                capacity: integral(present.capacity),
                holders: present.holders.iter().map(|(user, amount)| (user.clone(), integral(*amount))).collect(),
                behind: present.behind.iter().map(|name| (name.clone(), now.since(from))).collect(),
                started: present.began.drain(..).collect(),
                started_amount: std::mem::take(&mut present.began_amount).into(),
                limit: present.limit,
            };
            let intervals = if present.started { &mut wait.after } else { &mut wait.before };
            match intervals.last_mut() {
                Some(last) if last.continues(&next) => last.extend(next),
                _ => intervals.push(next),
            }
        }
    }
}

impl Observer for WaitLog {
    fn begin(&mut self, engine: &mut Engine) {
        engine.watch(self.jobs.clone());
        self.dims = engine.cluster().dims.clone();
        self.in_rank_order = !engine.plans_machines();
        self.groups = engine.groups().iter().flat_map(|tree| &tree.groups).map(|group| group.name.clone()).collect();
    }

    fn instant(&mut self, engine: &mut Engine, now: Time) -> Result<ControlFlow<()>> {
        self.pass(now);
        let mut blocked: BTreeMap<JobId, Vec<BlockedTasks>> = BTreeMap::new();
        for tasks in engine.blocked() {
            blocked.entry(tasks.job).or_default().push(tasks);
        }
        let mut facts = InstantFacts::default();
        let watched = engine.watched();
        for job in watched {
            let tasks = blocked.remove(&job.id).unwrap_or_default();
            let has_group = |tasks: &BlockedTasks| matches!(tasks.reason, BlockReason::Rule(Reason::Quota { .. }));
            if self.groups.is_empty() && tasks.iter().any(has_group) {
                // Production schedulers have queues of their own instead of groups.
                let queues = engine.explain().map(|explain| explain.status(engine.books())).unwrap_or_default();
                self.groups = queues.into_iter().map(|queue| queue.name).collect();
            }
            let present = present(engine, tasks, job.start.is_some(), (job.id, now), &mut facts);
            match self.open.get_mut(&job.id) {
                Some((wait, old)) => (wait.start, *old) = (job.start, present),
                None => drop(self.open.insert(job.id, (JobWait::new(&job, engine), present))),
            }
        }
        for stop in engine.take_watched_stops() {
            if let Some((wait, _)) = self.open.get_mut(&stop.job) {
                wait.stops.push(stop);
            }
        }
        // A job may be submitted and end at one instant.
        for job in engine.take_watched_ends() {
            let wait = self.open.remove(&job.id).map_or_else(|| JobWait::new(&job, engine), |(wait, _)| wait);
            self.ended.push(JobWait { start: job.start, ..wait });
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Records the start of one job, and then ends the run.
pub struct StartLog {
    job: String,
    start: Option<Time>,
}

impl StartLog {
    /// Creates a log of the job with this name.
    pub fn new(job: &str) -> StartLog {
        StartLog { job: job.to_owned(), start: None }
    }

    /// Returns the start of the job's first task; `None` if no task started.
    pub fn start(&self) -> Option<Time> {
        self.start
    }
}

impl Observer for StartLog {
    fn begin(&mut self, engine: &mut Engine) {
        engine.watch(WatchedJobs::Named([self.job.clone()].into()));
    }

    fn instant(&mut self, engine: &mut Engine, _now: Time) -> Result<ControlFlow<()>> {
        let ended = engine.take_watched_ends().into_iter();
        self.start = ended.chain(engine.watched()).find_map(|job| job.start);
        Ok(if self.start.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// The allocations of users and the capacity of the machines that some tasks may use.
type Held = (Vec<(UserId, Resources)>, Resources);

/// Facts about an instant that several jobs need.
#[derive(Default)]
struct InstantFacts {
    held: BTreeMap<MachineScope, Held>,
    /// The tasks that start at this instant, by user; see [`Engine::started_now`].
    started: BTreeMap<MachineScope, BTreeMap<UserId, (u64, Resources)>>,
    /// The quantities of the policy's groups.
    status: Option<Vec<Status>>,
}

/// Returns the state of a job with these waiting tasks.
fn present(
    engine: &mut Engine,
    tasks: Vec<BlockedTasks>,
    started: bool,
    (job, now): (JobId, Time),
    facts: &mut InstantFacts,
) -> Present {
    // A row that may start explains the wait; rows that may not start yet matter only if there is no other.
    let first = tasks.into_iter().min_by_key(|tasks| {
        (matches!(tasks.reason, BlockReason::Submission | BlockReason::Stage | BlockReason::TooLarge), tasks.row)
    });
    // Before its first start, a job without waiting tasks was granted machines that the control plane has not prepared.
    let starting = (!started && first.is_none()).then(|| BlockedTasks {
        job,
        row: 0,
        tasks: 0,
        attempt: 0,
        since: now,
        machines: engine.all_machines(),
        reason: BlockReason::Starting,
    });
    let blocked = first.or(starting);
    let mut present = Present {
        started,
        blocked: None,
        short: 0,
        free: 0,
        capacity: 0,
        holders: Vec::new(),
        behind: None,
        began: Vec::new(),
        began_amount: 0,
        limit: None,
    };
    let Some(blocked) = blocked else { return present };
    if engine.plans_machines() {
        let began = facts.started.entry(blocked.machines).or_insert_with(|| engine.started_now(blocked.machines));
        let resource = match blocked.reason {
            BlockReason::Rule(Reason::Quota { resource, .. }) => Some(usize::from(resource)),
            _ => blocked.reason.missing().map(|missing| usize::from(missing.resource.unwrap_or(0))),
        };
        present.began_amount = resource.map_or(0, |d| began.values().map(|(_, amounts)| amounts.0[d]).sum());
        present.began = began.iter().map(|(user, (tasks, _))| (engine.user_name(*user).to_owned(), *tasks)).collect();
    }
    if let Some(MissingRoom { resource, short, free, .. }) = blocked.reason.missing() {
        // Slots are counted in the first dimension.
        let d = usize::from(resource.unwrap_or(0));
        let (holders, capacity) = facts.held.entry(blocked.machines).or_insert_with(|| {
            (engine.holders(blocked.machines).into_iter().collect(), engine.capacity_of(blocked.machines))
        });
        (present.short, present.free, present.capacity) = (short, free, capacity.0[d]);
        let amounts = holders.iter().filter(|(_, amounts)| amounts.0[d] > 0);
        present.holders = amounts.map(|(user, amounts)| (engine.user_name(*user).to_owned(), amounts.0[d])).collect();
    }
    if let BlockReason::Rule(Reason::Quota { short, group, resource }) = blocked.reason {
        present.short = short;
        let holders = engine.holders(engine.all_machines()).into_iter();
        let holders =
            holders.map(|(user, amounts)| (engine.user_name(user).to_owned(), amounts.0[usize::from(resource)]));
        let inside = |user: &str| engine.groups().is_some_and(|tree| tree.contains(group as usize, user));
        present.holders = holders.filter(|(user, amount)| *amount > 0 && inside(user)).collect();
        let status = facts
            .status
            .get_or_insert_with(|| engine.explain().map(|explain| explain.status(engine.books())).unwrap_or_default());
        present.limit = status.get(group as usize).and_then(|status| status.limit.0[usize::from(resource)]);
    }
    present.behind = match &blocked.reason {
        BlockReason::Own { job, .. } => Some(job.clone()),
        BlockReason::Rank(before) => Some(engine.user_name(before.first).to_owned()),
        _ => None,
    };
    present.blocked = Some(blocked);
    present
}
