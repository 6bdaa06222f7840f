//! Task sets in a job order other than the default: the keys of the order, and the data of sets and jobs that keys depend on.
//!
//! [`Ordered`] keeps all queued sets in one sorted structure, by queue and key. Keys of a job's sets are recomputed before each round if
//! tasks of the job started, ended or were stopped, and before every round if keys change with time while tasks of the job run, or while
//! tasks wait. The service and remaining work of jobs are sums over tasks and start times, so that a view of a job costs O(1) at any
//! instant.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ids::{JobSlot, QueueId, SetSlot};
use super::queues::{place, turn};
use super::running::Running;
use super::sets::{ActiveSet, Sets};
use crate::policy::JobOrder;
use crate::policy::job_order::{JobView, SetView, SizeSource, WHOLE};
use crate::workload::TaskSet;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MAX_DIMS, Resources, Span, Time};
use plimsoll_base::visit_values;

/// The sort key of a set in its queue: the key of the job order, then the default order.
type SetKey = (QueueId, u128, (u128, u32), SetSlot);

/// The data of a set that a job order may use, besides those of [`ActiveSet`].
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct SetFacts {
    key: u128,
    /// The number of the next task.
    number: u32,
    estimate: Option<Span>,
    deadline: Option<Time>,
    /// The contribution of each task to the size of its job.
    each: u64,
    /// The service that each task receives per microsecond.
    breadth: u64,
    /// The number of tasks of the row.
    tasks: u32,
}

/// The data of a job that a job order may use.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct JobFacts {
    id: JobId,
    waiting: u64,
    running: u64,
    /// The service per microsecond of all running tasks.
    breadth: u128,
    size: u128,
    /// The size of the tasks that have not ended.
    open: u128,
    /// The service of tasks that no longer run.
    attained: u128,
    /// The sum of the start instants of running tasks, and the same sum weighted by breadth.
    starts: u128,
    broad_starts: u128,
    /// The queued sets of the job.
    in_line: Vec<SetSlot>,
}

impl JobFacts {
    fn view(&self, now: Time, service: Option<[u128; MAX_DIMS]>) -> JobView {
        let elapsed = u128::from(now.0) * u128::from(self.running) - self.starts;
        JobView {
            service,
            waiting: self.waiting,
            running: self.running,
            size: self.size,
            left: self.open.saturating_sub(elapsed),
            attained: self.attained + u128::from(now.0) * self.breadth - self.broad_starts,
        }
    }
}

/// The attained service of a job by resource, as sums like those of [`JobFacts`].
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct ServiceFacts {
    attained: [u128; MAX_DIMS],
    /// The demand of all running tasks.
    rate: [u128; MAX_DIMS],
    starts: [u128; MAX_DIMS],
}

impl ServiceFacts {
    /// Returns the service at an instant.
    fn total(&self, now: Time) -> [u128; MAX_DIMS] {
        std::array::from_fn(|d| self.attained[d] + u128::from(now.0) * self.rate[d] - self.starts[d])
    }

    fn launched(&mut self, demand: &[u64], tasks: u32, now: Time) {
        for (d, demand) in demand.iter().enumerate() {
            let rate = u128::from(*demand) * u128::from(tasks);
            self.rate[d] += rate;
            self.starts[d] += rate * u128::from(now.0);
        }
    }

    fn over(&mut self, demand: &[u64], tasks: &Running, now: Time) {
        for (d, demand) in demand.iter().enumerate() {
            let rate = u128::from(*demand) * u128::from(tasks.count.get());
            self.rate[d] -= rate;
            self.starts[d] -= rate * u128::from(tasks.start.0);
            self.attained[d] += rate * u128::from(now.since(tasks.start).0);
        }
    }
}

/// The queued sets of all queues, in order.
pub struct Ordered {
    order: Arc<dyn JobOrder>,
    capacity: Resources,
    line: BTreeSet<SetKey>,
    sets: Vec<SetFacts>,
    jobs: Vec<JobFacts>,
    /// The service of jobs by resource; empty unless the order uses it.
    service: Vec<ServiceFacts>,
    /// Jobs with tasks that started, ended or were stopped since keys were last computed.
    touched: BTreeSet<JobSlot>,
}

impl Ordered {
    pub fn new(order: Arc<dyn JobOrder>, capacity: Resources) -> Ordered {
        Ordered {
            order,
            capacity,
            line: BTreeSet::new(),
            sets: Vec::new(),
            jobs: Vec::new(),
            service: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Returns whether a row lacks the estimate that the order requires.
    pub fn lacks_estimate(&self, row: &TaskSet) -> bool {
        self.order.size_source() == SizeSource::Estimate && row.estimate.is_none()
    }

    /// Returns the name of the order, for a message.
    pub fn name(&self) -> &str {
        self.order.name()
    }

    /// Adds a job without sets.
    pub fn open_job(&mut self, job: JobSlot, id: JobId) {
        let at = job.index();
        if self.jobs.len() <= at {
            self.jobs.resize_with(at + 1, JobFacts::default);
        }
        self.jobs[at] = JobFacts { id, ..JobFacts::default() };
        if self.order.by_resource() {
            self.service.resize_with(self.jobs.len(), ServiceFacts::default);
            self.service[at] = ServiceFacts::default();
        }
    }

    /// Returns the data of a job that the order may use.
    fn view(&self, job: JobSlot, now: Time) -> JobView {
        self.jobs[job.index()].view(now, self.service.get(job.index()).map(|service| service.total(now)))
    }

    /// Adds the row of a job that is stored as this set.
    pub fn add(&mut self, slot: SetSlot, job: JobSlot, row: &TaskSet) {
        let each = match self.order.size_source() {
            SizeSource::Nothing => 0,
            SizeSource::Estimate => row.estimate.unwrap_or_default().0,
            SizeSource::Truth => row.duration.0,
        };
        let breadth = if self.order.by_demand() { self.breadth(&row.demand) } else { 1 };
        let (estimate, deadline) = (row.estimate, row.deadline);
        self.insert(slot, SetFacts { key: 0, number: 0, estimate, deadline, each, breadth, tasks: row.tasks });
        let (job, size) = (&mut self.jobs[job.index()], u128::from(each) * u128::from(row.tasks));
        (job.size, job.open) = (job.size + size, job.open + size);
    }

    /// Returns the largest share of the cluster, over all resources, that a task demands, in steps of [`WHOLE`], rounded up.
    fn breadth(&self, demand: &Resources) -> u64 {
        let parts = demand.0.iter().zip(self.capacity.0).filter(|(_, capacity)| *capacity > 0);
        let part = |(demand, capacity): (&u64, u64)| {
            (u128::from(*demand) * u128::from(WHOLE)).div_ceil(u128::from(capacity)) as u64
        };
        parts.map(part).max().unwrap_or(0).max(1)
    }

    /// Copies the data of a set to the set of its stopped tasks.
    pub fn again(&mut self, from: SetSlot, slot: SetSlot) {
        self.insert(slot, self.sets[from.index()]);
    }

    /// Reduces the remaining work by the saved work of each task of a set that waits again.
    pub fn record_saved(&mut self, slot: SetSlot, set: &ActiveSet, saved: Span) {
        let facts = &mut self.sets[slot.index()];
        let less = saved.0.min(facts.each);
        facts.each -= less;
        self.jobs[set.job.index()].open -= u128::from(less) * u128::from(set.waiting);
    }

    /// Adds a second instance of a running task, which waits as the set `slot`.
    pub fn second(&mut self, of: SetSlot, slot: SetSlot, job: JobSlot) {
        self.again(of, slot);
        self.jobs[job.index()].open += u128::from(self.sets[slot.index()].each);
    }

    /// Removes the work of an instance of a task that has left its queue permanently; the other instance remains.
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

    /// Returns the key of a set at this instant.
    pub fn key(&self, slot: SetSlot, sets: &Sets, now: Time) -> u128 {
        let set = &sets[slot];
        let facts = &self.sets[slot.index()];
        let view = SetView {
            user: set.user,
            job_id: self.jobs[set.job.index()].id,
            submit: sets.details(slot).submit,
            release: set.release,
            place: place(set),
            waiting: set.waiting,
            tasks: facts.tasks,
            demand: sets.needs(slot).0,
            priority: set.priority,
            deadline: facts.deadline,
            estimate: facts.estimate,
            job: self.view(set.job, now),
        };
        self.order.key(&view, now)
    }

    fn sort_key(&self, slot: SetSlot, set: &ActiveSet) -> SetKey {
        let SetFacts { key, number, .. } = self.sets[slot.index()];
        (set.queue, key, (turn(set).0, number), slot)
    }

    /// Inserts a set in its queue.
    pub fn push(&mut self, sets: &Sets, slot: SetSlot, now: Time) {
        let set = &sets[slot];
        let job = &mut self.jobs[set.job.index()];
        job.waiting += u64::from(set.waiting);
        job.in_line.push(slot);
        // The key may have changed with time while no set of the job was queued.
        self.touched.insert(set.job);
        let key = self.key(slot, sets, now);
        let facts = &mut self.sets[slot.index()];
        (facts.key, facts.number) = (key, set.number);
        self.line.insert(self.sort_key(slot, set));
    }

    /// Removes a set from its queue.
    pub fn remove(&mut self, sets: &Sets, slot: SetSlot) {
        let set = &sets[slot];
        let job = &mut self.jobs[set.job.index()];
        job.waiting -= u64::from(set.waiting);
        job.in_line.retain(|other| *other != slot);
        self.line.remove(&self.sort_key(slot, set));
    }

    /// Returns the set that a queue launches next.
    pub fn head(&self, queue: QueueId) -> Option<SetSlot> {
        self.sets_of(queue).next()
    }

    /// Returns the sets of a queue, in order.
    pub fn in_order(&self, queue: QueueId) -> Vec<SetSlot> {
        self.sets_of(queue).collect()
    }

    fn sets_of(&self, queue: QueueId) -> impl Iterator<Item = SetSlot> {
        let least = (queue, 0, (0, 0), SetSlot::FIRST);
        self.line.range(least..).take_while(move |(of, ..)| *of == queue).map(|(.., slot)| *slot)
    }

    /// Returns the instant at which a running job's key next changes without a start or end of its tasks. Returns `None` if the key never
    /// changes, or changes continuously.
    pub fn changes(&self, job: JobSlot, now: Time) -> Option<Time> {
        self.order.changes(&self.view(job, now), self.jobs[job.index()].breadth, now)
    }

    /// Returns the key of a queued set.
    pub fn key_of(&self, slot: SetSlot) -> u128 {
        self.sets[slot.index()].key
    }

    /// Records a launch of tasks of a queued set.
    pub fn launched(&mut self, sets: &Sets, slot: SetSlot, tasks: u32, now: Time) {
        let job = sets[slot].job;
        if let Some(service) = self.service.get_mut(job.index()) {
            service.launched(sets.needs(slot).0, tasks, now);
        }
        let breadth = u128::from(self.sets[slot.index()].breadth) * u128::from(tasks);
        let facts = &mut self.jobs[job.index()];
        facts.breadth += breadth;
        facts.broad_starts += u128::from(now.0) * breadth;
        facts.waiting -= u64::from(tasks);
        facts.running += u64::from(tasks);
        facts.starts += u128::from(now.0) * u128::from(tasks);
        self.touched.insert(job);
    }

    /// Updates the sort key of a queued set after its next task has changed. The number of the next task is part of the sort key.
    pub fn renumber(&mut self, sets: &Sets, slot: SetSlot) {
        self.line.remove(&self.sort_key(slot, &sets[slot]));
        self.sets[slot.index()].number = sets[slot].number;
        self.line.insert(self.sort_key(slot, &sets[slot]));
    }

    /// Records that tasks no longer run. If they have `ended`, the remaining work of their job is reduced.
    pub fn over(&mut self, sets: &Sets, tasks: &Running, ended: bool, now: Time) {
        if let Some(service) = self.service.get_mut(tasks.job.index()) {
            service.over(sets.needs(tasks.set).0, tasks, now);
        }
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

    /// Recomputes the keys that may have changed, before each round. Returns the queues of sets with a changed key.
    pub fn rekey(&mut self, sets: &Sets, now: Time) -> Vec<QueueId> {
        let mut moved = Vec::new();
        let jobs = std::mem::take(&mut self.touched);
        for &job in &jobs {
            for at in 0..self.jobs[job.index()].in_line.len() {
                let slot = self.jobs[job.index()].in_line[at];
                let key = self.key(slot, sets, now);
                if key != self.sets[slot.index()].key {
                    self.line.remove(&self.sort_key(slot, &sets[slot]));
                    self.sets[slot.index()].key = key;
                    self.line.insert(self.sort_key(slot, &sets[slot]));
                    moved.push(sets[slot].queue);
                }
            }
        }
        if self.order.drifts() {
            self.touched = jobs.into_iter().filter(|job| !self.jobs[job.index()].in_line.is_empty()).collect();
        } else if self.order.moves() {
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

impl Checkpoint for Ordered {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Ordered { order: _, capacity: _, line, sets, jobs, service, touched } = self;
        visit_values!(visitor; line, sets, jobs, service, touched);
        Ok(())
    }
}
