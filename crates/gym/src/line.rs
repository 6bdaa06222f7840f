//! The waiting jobs in order of arrival, and the running tasks, as an agent observes them.
//!
//! Whether a job fits is computed again only when the room in the cluster has changed in a way that can change the answer.

use std::collections::BTreeMap;

use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_sim::engine::{Engine, NextSet};
use plimsoll_sim::workload::TaskSet;

use crate::episode_log::{Ended, shares};

/// A job in the window, with the task set that it would start next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The job.
    pub job: u32,
    /// Whether there is room now for one of the tasks, or for all tasks of a gang.
    pub fits: bool,
    /// The earliest instant at which the task set could have started.
    pub release: Time,
    /// The run time of each task as its user estimates it, or the true duration without an estimate.
    pub requested: Span,
    /// The total request of the waiting tasks of the set as shares of the cluster, each at most 1.
    pub request: [f32; MAX_DIMS],
}

/// Equal running tasks that started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningBatch {
    /// Their job.
    pub job: u32,
    /// The number of the first task within the job, and the number of tasks at the start.
    pub tasks: (u32, u32),
    /// The number of tasks that still run.
    pub count: u32,
    /// The instant of their start.
    pub start: Time,
    /// The demand of each task.
    pub demand: Resources,
    /// The expected end, according to the user's estimate.
    pub end: Time,
}

/// The state that an agent observes.
#[derive(Clone, Copy, Debug)]
pub struct AgentView<'a> {
    /// The current instant.
    pub now: Time,
    /// The instant at which the last job arrived.
    pub arrival: Time,
    /// The first jobs in the queue.
    pub window: &'a [Shown],
    /// The number of jobs that wait behind the window.
    pub beyond: usize,
    /// The running tasks.
    pub running: &'a [RunningBatch],
    /// The capacity of the cluster.
    pub capacity: Resources,
    /// The number of resources.
    pub dims: usize,
}

/// Returns the run time of a row's tasks as its user estimates it.
pub(crate) fn requested(set: &TaskSet) -> Span {
    set.estimate.unwrap_or(set.duration)
}

/// A waiting job.
#[derive(Clone, Copy)]
struct Waits {
    key: (Time, u64),
    next: NextSet,
    shown: Shown,
    /// The state of the room for which `fits` was computed.
    as_of: RoomChanges,
}

/// The numbers of times that the room in the cluster has grown and shrunk.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct RoomChanges {
    grown: u64,
    shrunk: u64,
}

/// The waiting jobs and the running tasks.
pub(crate) struct JobLine {
    /// The size of the window.
    most: usize,
    capacity: Resources,
    dims: usize,
    order: BTreeMap<(Time, u64), u32>,
    waits: Vec<Option<Waits>>,
    room: RoomChanges,
    pub running: Vec<RunningBatch>,
    /// The first jobs in the queue.
    pub window: Vec<Shown>,
}

impl JobLine {
    /// Creates an empty queue for `jobs` jobs on a cluster; the first `most` waiting jobs are shown.
    pub fn new(jobs: usize, most: usize, capacity: Resources, dims: usize) -> JobLine {
        let (order, running, window) = (BTreeMap::new(), Vec::new(), Vec::new());
        JobLine { most, capacity, dims, order, waits: vec![None; jobs], room: RoomChanges::default(), running, window }
    }

    /// Returns the number of jobs that wait behind the window.
    pub fn beyond(&self) -> usize {
        self.order.len() - self.window.len()
    }

    /// Returns the first job in the window that fits.
    pub fn first_that_fits(&self) -> Option<&Shown> {
        self.window.iter().find(|shown| shown.fits)
    }

    /// Returns the task set that a job would start next, if the job waits.
    pub fn next(&self, job: u32) -> Option<NextSet> {
        self.waits[job as usize].map(|waits| waits.next)
    }

    /// Updates the next task set of a job, and returns it if the job waits.
    pub fn refresh(&mut self, job: u32, engine: &mut Engine, sets: &[TaskSet]) -> Option<NextSet> {
        let next = engine.next(UserId(job));
        let environment = (&self.capacity, self.dims);
        let waits = next.map(|next| Waits {
            key: (next.release, next.place),
            next,
            shown: shown(job, &next, &sets[next.row as usize], environment),
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

    /// Records that the room may have grown.
    pub fn grown(&mut self) {
        self.room.grown += 1;
    }

    /// Records that tasks have started, so that the room has shrunk.
    pub fn started(&mut self, batch: RunningBatch) {
        self.room.shrunk += 1;
        self.running.push(batch);
    }

    /// Records that tasks have ended.
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

    /// Updates the window.
    pub fn open(&mut self, engine: &mut Engine, sets: &[TaskSet]) {
        self.window.clear();
        let now = self.room;
        for &job in self.order.values().take(self.most) {
            let Some(waits) = &mut self.waits[job as usize] else { continue };
            // If the room has only shrunk, a job that did not fit before still does not fit.
            let stale = waits.as_of.grown != now.grown || (waits.shown.fits && waits.as_of.shrunk != now.shrunk);
            if stale && let Some(next) = engine.next(UserId(job)) {
                if (next.row, next.tasks) != (waits.next.row, waits.next.tasks) {
                    // Another task set of the job may now be the first that fits. The job keeps its place.
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

/// Returns a waiting job with its next task set, as an agent observes it.
fn shown(job: u32, next: &NextSet, set: &TaskSet, (capacity, dims): (&Resources, usize)) -> Shown {
    let all = |d: usize| set.demand.0[d] as f64 * f64::from(next.tasks);
    let request = shares(all, capacity, dims);
    Shown { job, fits: next.fits, release: next.release, requested: requested(set), request }
}
