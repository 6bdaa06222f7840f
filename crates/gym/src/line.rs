//! The jobs that wait, in order of arrival, and the tasks that run, as an agent sees them.

use std::collections::BTreeMap;

use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_sim::engine::{Engine, NextSet};
use plimsoll_sim::workload::TaskSet;

use crate::episode_log::{Ended, shares};

/// A job in the window: the task set that it would start next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The job.
    pub job: u32,
    /// Whether there is room now for one of the tasks, or for all of a gang.
    pub fits: bool,
    /// When it could have started at the earliest.
    pub release: Time,
    /// How long each task runs as its user estimates it, or the true duration without an estimate.
    pub requested: Span,
    /// The parts of the cluster that all waiting tasks of the set ask for together, each at most 1.
    pub request: [f32; MAX_DIMS],
}

/// Equal tasks that started together and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningBatch {
    /// Their job.
    pub job: u32,
    /// Number of the first of them within the job, and how many there were.
    pub tasks: (u32, u32),
    /// How many of them still run.
    pub count: u32,
    /// When they started.
    pub start: Time,
    /// The need of each.
    pub demand: Resources,
    /// When they end if their user has estimated well.
    pub end: Time,
}

/// Everything that an agent sees.
#[derive(Clone, Copy, Debug)]
pub struct AgentView<'a> {
    /// The present instant.
    pub now: Time,
    /// When the last job arrived.
    pub arrival: Time,
    /// The first jobs in line.
    pub window: &'a [Shown],
    /// How many jobs wait behind them.
    pub beyond: usize,
    /// The tasks that run.
    pub running: &'a [RunningBatch],
    /// The whole cluster.
    pub capacity: Resources,
    /// How many resources there are.
    pub dims: usize,
}

/// How long a task of a row runs as its user sees it.
pub(crate) fn requested(set: &TaskSet) -> Span {
    set.estimate.unwrap_or(set.duration)
}

/// A job that waits.
#[derive(Clone, Copy)]
struct Waits {
    key: (Time, u64),
    next: NextSet,
    shown: Shown,
    /// As of which change of the room in the cluster they say whether it fits.
    as_of: RoomChanges,
}

/// How often the room in the cluster has grown and shrunk.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct RoomChanges {
    grown: u64,
    shrunk: u64,
}

/// The jobs that wait, and the tasks that run.
pub(crate) struct JobLine {
    /// How many of the first in line are shown.
    most: usize,
    capacity: Resources,
    dims: usize,
    order: BTreeMap<(Time, u64), u32>,
    waits: Vec<Option<Waits>>,
    room: RoomChanges,
    pub running: Vec<RunningBatch>,
    /// The first in line.
    pub window: Vec<Shown>,
}

impl JobLine {
    /// A line of `jobs` jobs on a cluster, none of them waiting; the first `most` are shown.
    pub fn new(jobs: usize, most: usize, capacity: Resources, dims: usize) -> JobLine {
        let (order, running, window) = (BTreeMap::new(), Vec::new(), Vec::new());
        JobLine { most, capacity, dims, order, waits: vec![None; jobs], room: RoomChanges::default(), running, window }
    }

    /// How many jobs wait behind the window.
    pub fn beyond(&self) -> usize {
        self.order.len() - self.window.len()
    }

    /// The first job in the window that fits.
    pub fn first_that_fits(&self) -> Option<&Shown> {
        self.window.iter().find(|shown| shown.fits)
    }

    /// The task set that a job would start next, if it waits.
    pub fn next(&self, job: u32) -> Option<NextSet> {
        self.waits[job as usize].map(|waits| waits.next)
    }

    /// Updates the next task set of a job, and returns it if the job waits.
    pub fn refresh(&mut self, job: u32, engine: &mut Engine, sets: &[TaskSet]) -> Option<NextSet> {
        let next = engine.next(UserId(job));
        let ground = (&self.capacity, self.dims);
        let waits = next.map(|next| Waits {
            key: (next.release, next.place),
            next,
            shown: shown(job, &next, &sets[next.row as usize], ground),
            as_of: self.room,
        });
        let before = std::mem::replace(&mut self.waits[job as usize], waits);
        let (old, new) = (before.map(|waits| waits.key), waits.map(|waits| waits.key));
        if old != new {
            old.map(|key| self.order.remove(&key));
            new.map(|key| self.order.insert(key, job));
        }
        next
    }

    /// There may be more room than before.
    pub fn grown(&mut self) {
        self.room.grown += 1;
    }

    /// Tasks were started, so that there is less room.
    pub fn started(&mut self, batch: RunningBatch) {
        self.room.shrunk += 1;
        self.running.push(batch);
    }

    /// Tasks do not run any more.
    pub fn ended(&mut self, ended: &Ended) {
        let of = |batch: &RunningBatch| {
            let (first, count) = batch.tasks;
            (batch.job, batch.start) == (ended.job, ended.start) && (first..first + count).contains(&ended.number)
        };
        if let Some(at) = self.running.iter().position(of) {
            self.running[at].count -= ended.count;
            if self.running[at].count == 0 {
                self.running.swap_remove(at);
            }
        }
    }

    /// Brings the window up to date.
    pub fn open(&mut self, engine: &mut Engine, sets: &[TaskSet]) {
        self.window.clear();
        let now = self.room;
        for &job in self.order.values().take(self.most) {
            let Some(waits) = &mut self.waits[job as usize] else { continue };
            // Where room has only shrunk, what did not fit still does not.
            let stale = waits.as_of.grown != now.grown || (waits.shown.fits && waits.as_of.shrunk != now.shrunk);
            if stale && let Some(next) = engine.next(UserId(job)) {
                if (next.row, next.tasks) != (waits.next.row, waits.next.tasks) {
                    // Another of its sets is the first now for which there is room; it keeps its place.
                    waits.shown = shown(job, &next, &sets[next.row as usize], (&self.capacity, self.dims));
                }
                waits.next = next;
                waits.shown.fits = next.fits;
                waits.as_of = now;
            }
            self.window.push(waits.shown);
        }
    }
}

/// A job that waits for this, as an agent sees it.
fn shown(job: u32, next: &NextSet, set: &TaskSet, (capacity, dims): (&Resources, usize)) -> Shown {
    let all = |d: usize| set.demand.0[d] as f64 * f64::from(next.tasks);
    let request = shares(all, capacity, dims);
    Shown { job, fits: next.fits, release: next.release, requested: requested(set), request }
}
