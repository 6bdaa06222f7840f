//! Task sets in another order than the usual one: the order of their keys, and what keys are made of.

use std::collections::BTreeSet;

use super::jobs::{ActiveSet, JobSlot, SetSlot, Sets};
use super::queues::{QueueId, place, turn};
use super::running::Running;
use crate::policy::Inside;
use crate::policy::inside::{JobView, SetView, SizeSource, WHOLE};
use crate::workload::TaskSet;
use plimsoll_base::units::{JobId, Resources, Span, Time};

/// A set in its queue: key, then the usual order.
type SetKey = (QueueId, u128, (u128, u32), SetSlot);

/// The facts of a set that an order may know besides what the engine keeps of every set.
#[derive(Clone, Copy, Debug, Default)]
struct SetFacts {
    key: u128,
    /// The number of its next task.
    number: u32,
    estimate: Option<Span>,
    deadline: Option<Time>,
    /// The part of its job's size that each task is.
    each: u64,
    /// How much a microsecond of each task counts as service.
    breadth: u64,
}

/// The facts of a job that an order may know.
#[derive(Clone, Debug, Default)]
struct JobFacts {
    id: JobId,
    waiting: u64,
    running: u64,
    /// The service of a microsecond of all of them.
    breadth: u128,
    size: u128,
    /// The size of its tasks that have not ended.
    open: u128,
    /// The service of tasks that run no longer.
    attained: u128,
    /// The sum of the instants at which its running tasks started, and the same by breadth.
    starts: u128,
    broad_starts: u128,
    /// Its sets in line.
    in_line: Vec<SetSlot>,
}

impl JobFacts {
    fn view(&self, now: Time) -> JobView {
        let elapsed = u128::from(now.0) * u128::from(self.running) - self.starts;
        JobView {
            waiting: self.waiting,
            running: self.running,
            size: self.size,
            left: self.open.saturating_sub(elapsed),
            attained: self.attained + u128::from(now.0) * self.breadth - self.broad_starts,
        }
    }
}

/// The sets of all queues in order.
pub(super) struct Ordered {
    order: &'static dyn Inside,
    capacity: Resources,
    line: BTreeSet<SetKey>,
    sets: Vec<SetFacts>,
    jobs: Vec<JobFacts>,
    /// Jobs with tasks that started, ended or were stopped since keys were last computed.
    touched: BTreeSet<JobSlot>,
}

impl Ordered {
    pub fn new(order: &'static dyn Inside, capacity: Resources) -> Ordered {
        Ordered { order, capacity, line: BTreeSet::new(), sets: Vec::new(), jobs: Vec::new(), touched: BTreeSet::new() }
    }

    /// Whether a row lacks the estimate that the order requires.
    pub fn lacks_estimate(&self, row: &TaskSet) -> bool {
        self.order.goes_by() == SizeSource::Estimate && row.estimate.is_none()
    }

    /// Its name, for a message.
    pub fn name(&self) -> &'static str {
        self.order.name()
    }

    /// A job appears.
    pub fn open_job(&mut self, job: JobSlot, id: JobId) {
        let at = job.index();
        if self.jobs.len() <= at {
            self.jobs.resize_with(at + 1, JobFacts::default);
        }
        self.jobs[at] = JobFacts { id, ..JobFacts::default() };
    }

    /// A row of a job is kept as this set.
    pub fn add(&mut self, slot: SetSlot, job: JobSlot, row: &TaskSet) {
        let each = match self.order.goes_by() {
            SizeSource::Nothing => 0,
            SizeSource::Estimate => row.estimate.unwrap_or_default().0,
            SizeSource::Truth => row.duration.0,
        };
        let breadth = if self.order.by_demand() { self.breadth(&row.demand) } else { 1 };
        let (estimate, deadline) = (row.estimate, row.deadline);
        self.insert(slot, SetFacts { key: 0, number: 0, estimate, deadline, each, breadth });
        let (job, size) = (&mut self.jobs[job.index()], u128::from(each) * u128::from(row.tasks));
        (job.size, job.open) = (job.size + size, job.open + size);
    }

    /// The largest part of the cluster that a task demands of any resource, in steps of [`WHOLE`], rounded up.
    fn breadth(&self, demand: &Resources) -> u64 {
        let parts = demand.0.iter().zip(self.capacity.0).filter(|(_, capacity)| *capacity > 0);
        let part = |(demand, capacity): (&u64, u64)| {
            (u128::from(*demand) * u128::from(WHOLE)).div_ceil(u128::from(capacity)) as u64
        };
        parts.map(part).max().unwrap_or(0).max(1)
    }

    /// Tasks of a set were stopped and wait again as this one.
    pub fn again(&mut self, from: SetSlot, slot: SetSlot) {
        self.insert(slot, self.sets[from.index()]);
    }

    /// Keeps a part of the work of each task of a set that waits again: its job has less work left.
    pub fn record_saved(&mut self, slot: SetSlot, set: &ActiveSet, saved: Span) {
        let facts = &mut self.sets[slot.index()];
        let less = saved.0.min(facts.each);
        facts.each -= less;
        self.jobs[set.job.index()].open -= u128::from(less) * u128::from(set.waiting);
    }

    /// A running task of a set has a second instance, which waits as this one.
    pub fn second(&mut self, of: SetSlot, slot: SetSlot, job: JobSlot) {
        self.again(of, slot);
        self.jobs[job.index()].open += u128::from(self.sets[slot.index()].each);
    }

    /// One of two instances of a task has left its queue permanently.
    pub fn withdrawn(&mut self, slot: SetSlot, job: JobSlot) {
        self.jobs[job.index()].open -= u128::from(self.sets[slot.index()].each);
    }

    fn insert(&mut self, slot: SetSlot, facts: SetFacts) {
        let at = slot.index();
        if self.sets.len() <= at {
            self.sets.resize_with(at + 1, SetFacts::default);
        }
        self.sets[at] = facts;
    }

    /// The key of a set at this instant.
    pub fn key(&self, slot: SetSlot, set: &ActiveSet, now: Time) -> u128 {
        let (facts, job) = (&self.sets[slot.index()], &self.jobs[set.job.index()]);
        let view = SetView {
            user: set.user,
            job_id: job.id,
            submit: set.submit,
            release: set.release,
            place: place(set),
            waiting: set.waiting,
            priority: set.priority,
            deadline: facts.deadline,
            estimate: facts.estimate,
            job: job.view(now),
        };
        self.order.key(&view, now)
    }

    fn sort_key(&self, slot: SetSlot, set: &ActiveSet) -> SetKey {
        let SetFacts { key, number, .. } = self.sets[slot.index()];
        (set.queue, key, (turn(set).0, number), slot)
    }

    /// A set joins its queue.
    pub fn push(&mut self, sets: &Sets, slot: SetSlot, now: Time) {
        let set = &sets[slot];
        let job = &mut self.jobs[set.job.index()];
        job.waiting += u64::from(set.waiting);
        job.in_line.push(slot);
        // It may have changed with time while no set of its job was in a queue.
        self.touched.insert(set.job);
        let key = self.key(slot, set, now);
        let facts = &mut self.sets[slot.index()];
        (facts.key, facts.number) = (key, set.number);
        self.line.insert(self.sort_key(slot, set));
    }

    /// A set leaves its queue.
    pub fn remove(&mut self, sets: &Sets, slot: SetSlot) {
        let set = &sets[slot];
        let job = &mut self.jobs[set.job.index()];
        job.waiting -= u64::from(set.waiting);
        job.in_line.retain(|other| *other != slot);
        self.line.remove(&self.sort_key(slot, set));
    }

    /// The set that a queue launches next.
    pub fn head(&self, queue: QueueId) -> Option<SetSlot> {
        self.sets_of(queue).next()
    }

    /// The sets of a queue, in order.
    pub fn in_order(&self, queue: QueueId) -> Vec<SetSlot> {
        self.sets_of(queue).collect()
    }

    fn sets_of(&self, queue: QueueId) -> impl Iterator<Item = SetSlot> {
        let least = (queue, 0, (0, 0), SetSlot::FIRST);
        self.line.range(least..).take_while(move |(of, ..)| *of == queue).map(|(.., slot)| *slot)
    }

    /// When a running job's key next changes without a start or end of its tasks; `None` if it never does, or continuously.
    pub fn changes(&self, job: JobSlot, now: Time) -> Option<Time> {
        let facts = &self.jobs[job.index()];
        self.order.changes(&facts.view(now), facts.breadth, now)
    }

    /// The key of a set in line.
    pub fn key_of(&self, slot: SetSlot) -> u128 {
        self.sets[slot.index()].key
    }

    /// Tasks of a set in line are launched.
    pub fn launched(&mut self, slot: SetSlot, job: JobSlot, tasks: u32, now: Time) {
        let breadth = u128::from(self.sets[slot.index()].breadth) * u128::from(tasks);
        let facts = &mut self.jobs[job.index()];
        facts.breadth += breadth;
        facts.broad_starts += u128::from(now.0) * breadth;
        facts.waiting -= u64::from(tasks);
        facts.running += u64::from(tasks);
        facts.starts += u128::from(now.0) * u128::from(tasks);
        self.touched.insert(job);
    }

    /// A set in line has another next task: it keeps its place among others of its row by the number of that.
    pub fn number_anew(&mut self, sets: &Sets, slot: SetSlot) {
        self.line.remove(&self.sort_key(slot, &sets[slot]));
        self.sets[slot.index()].number = sets[slot].number;
        self.line.insert(self.sort_key(slot, &sets[slot]));
    }

    /// Tasks no longer run; if they have ended, their job has less work left.
    pub fn over(&mut self, tasks: &Running, ended: bool, now: Time) {
        let count = u128::from(tasks.count.get());
        let each = if ended { u128::from(self.sets[tasks.set.index()].each) } else { 0 };
        let breadth = u128::from(self.sets[tasks.set.index()].breadth) * count;
        let job = &mut self.jobs[tasks.job.index()];
        job.running -= u64::from(tasks.count.get());
        job.starts -= u128::from(tasks.start.0) * count;
        job.breadth -= breadth;
        job.broad_starts -= u128::from(tasks.start.0) * breadth;
        job.attained += u128::from(now.since(tasks.start).0) * breadth;
        job.open -= each * count;
        self.touched.insert(tasks.job);
    }

    /// Recomputes the keys that may have changed, before each round. Returns the queues of these sets.
    pub fn key_anew(&mut self, sets: &Sets, now: Time) -> Vec<QueueId> {
        let mut moved = Vec::new();
        let jobs = std::mem::take(&mut self.touched);
        for &job in &jobs {
            for at in 0..self.jobs[job.index()].in_line.len() {
                let slot = self.jobs[job.index()].in_line[at];
                let key = self.key(slot, &sets[slot], now);
                if key != self.sets[slot.index()].key {
                    self.line.remove(&self.sort_key(slot, &sets[slot]));
                    self.sets[slot.index()].key = key;
                    self.line.insert(self.sort_key(slot, &sets[slot]));
                    moved.push(sets[slot].queue);
                }
            }
        }
        if self.order.moves() {
            let goes_on = |job: &JobSlot| {
                let job = &self.jobs[job.index()];
                job.running > 0 && !job.in_line.is_empty()
            };
            self.touched = jobs.into_iter().filter(goes_on).collect();
        }
        moved.sort_unstable();
        moved.dedup();
        moved
    }
}
