//! The jobs that wait, in order of arrival, and the tasks that run, as an agent sees them.

use std::collections::BTreeMap;

use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_sim::engine::{Engine, Next};
use plimsoll_sim::workload::TaskSet;

use crate::heard::{Ended, shares};

/// A job in the window: the task set that it would start next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The job.
    pub job: u32,
    /// Whether there is room now for one of the tasks, or for all of a gang.
    pub fits: bool,
    /// How long it has waited since it could have started.
    pub waited: Span,
    /// How long each task runs as its user estimates it, or the true duration without an estimate.
    pub requested: Span,
    /// The parts of the cluster that all waiting tasks of the set ask for together, each at most 1.
    pub request: [f32; MAX_DIMS],
}

/// Equal tasks that started together and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
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
pub struct View<'a> {
    /// The present instant.
    pub now: Time,
    /// When the last job arrived.
    pub arrival: Time,
    /// The first jobs in line.
    pub window: &'a [Shown],
    /// How many jobs wait behind them.
    pub beyond: usize,
    /// The tasks that run.
    pub running: &'a [Batch],
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
    next: Next,
    /// As of which change of the room in the cluster `next` says whether it fits.
    as_of: Room,
}

/// How often the room in the cluster has grown and shrunk.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Room {
    grown: u64,
    shrunk: u64,
}

/// The jobs that wait, and the tasks that run.
#[derive(Default)]
pub(crate) struct Line {
    order: BTreeMap<(Time, u64), u32>,
    waits: Vec<Option<Waits>>,
    room: Room,
    pub running: Vec<Batch>,
    /// The first in line, with what they would start next.
    pub window: Vec<(u32, Next)>,
}

impl Line {
    /// Of so many jobs, none of which waits.
    pub fn new(jobs: usize) -> Line {
        Line { waits: vec![None; jobs], ..Line::default() }
    }

    /// How many jobs wait behind the window.
    pub fn beyond(&self) -> usize {
        self.order.len() - self.window.len()
    }

    /// Whether any job in the window fits.
    pub fn any_fits(&self) -> bool {
        self.window.iter().any(|(_, next)| next.fits)
    }

    /// A job may wait for something else than before, or for nothing; returns what it would start next.
    pub fn look(&mut self, job: u32, engine: &mut Engine) -> Option<Next> {
        let next = engine.next(UserId(job));
        let waits = next.map(|next| Waits { key: (next.release, next.place), next, as_of: self.room });
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
    pub fn started(&mut self, batch: Batch) {
        self.room.shrunk += 1;
        self.running.push(batch);
    }

    /// Tasks do not run any more.
    pub fn ended(&mut self, ended: &Ended) {
        let of = |batch: &Batch| {
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

    /// Brings the window up to date: the first `most` jobs in line.
    pub fn open(&mut self, most: usize, engine: &mut Engine) {
        self.window.clear();
        for &job in self.order.values().take(most) {
            let Some(waits) = &mut self.waits[job as usize] else { continue };
            let (old, now) = (waits.as_of, self.room);
            // Where room has only shrunk, what did not fit still does not.
            let stale = old.grown != now.grown || (waits.next.fits && old.shrunk != now.shrunk);
            if stale && let Some(next) = engine.next(UserId(job)) {
                waits.next = next;
            }
            waits.as_of = now;
            self.window.push((job, waits.next));
        }
    }

    /// The window as an agent sees it.
    pub fn show(&self, now: Time, sets: &[TaskSet], (capacity, dims): (&Resources, usize), into: &mut Vec<Shown>) {
        into.clear();
        into.extend(self.window.iter().map(|(job, next)| {
            let set = &sets[next.row as usize];
            let all = |d: usize| u128::from(set.demand.0[d]) * u128::from(next.tasks);
            Shown {
                job: *job,
                fits: next.fits,
                waited: now.since(next.release),
                requested: requested(set),
                request: shares(all, capacity, dims),
            }
        }));
    }
}
