//! The orders of jobs that share a cluster in time.

use super::SharedJob;

/// The error of a running time in seconds, from sums of many intervals. Without it, a job could be due at an instant that is no later than
/// the present one.
const ROUNDING: f64 = 1e-6;

/// An order of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least remaining work first.
    Srtf,
    /// The least remaining work times GPUs first.
    Srsf,
    /// SharingQueues by attained service, running jobs first in each queue.
    Tiresias,
    /// Finish-time fairness: the order of [`Themis`](super::themis::Themis).
    Themis,
}

impl Order {
    /// All orders by name.
    pub const ALL: [(&'static str, Order); 4] =
        [("srtf", Order::Srtf), ("srsf", Order::Srsf), ("tiresias", Order::Tiresias), ("themis", Order::Themis)];
}

/// The jobs in the system, in order.
#[derive(Clone, Debug)]
pub struct SharingQueues {
    order: Order,
    limits: Vec<f64>,
    /// The queues of Tiresias; one queue for the other orders.
    queues: Vec<Vec<usize>>,
}

impl SharingQueues {
    /// Creates empty queues: one more than there are limits under Tiresias.
    pub fn new(order: Order, limits: &[f64]) -> SharingQueues {
        let limits = if order == Order::Tiresias { limits.to_vec() } else { Vec::new() };
        SharingQueues { order, queues: vec![Vec::new(); limits.len() + 1], limits }
    }

    /// Adds a job that arrives.
    pub fn push(&mut self, job: usize) {
        self.queues[0].push(job);
    }

    /// Removes the jobs that have ended.
    pub fn remove_ended(&mut self, jobs: &[SharedJob]) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|job| jobs[*job].end.is_none()));
    }

    /// Moves jobs with a service at the limit of their queue to the end of the next one; a job may fall several queues. `service` is
    /// in seconds on the GPUs of the job. Returns whether a job moved.
    pub fn demote(&mut self, jobs: &[SharedJob]) -> bool {
        let mut any = false;
        for (at, limit) in self.limits.iter().enumerate() {
            let reached = |job: &usize| jobs[*job].ran >= *limit / f64::from(jobs[*job].gpus) - ROUNDING;
            let (fallen, kept): (Vec<usize>, Vec<usize>) = self.queues[at].iter().partition(|job| reached(job));
            any |= !fallen.is_empty();
            self.queues[at] = kept;
            self.queues[at + 1].extend(fallen);
        }
        any
    }

    /// As [`SharingQueues::demote`]; a job falls at most one queue, and jobs that fall together enter the next queue by submission. Times are
    /// compared as doubles, as in the published program; a job that could not fall later than `now` falls.
    pub fn demote_once(&mut self, jobs: &[SharedJob], now: f64) {
        // From the last queue on, so that a job that falls is not visited again.
        for (at, limit) in self.limits.iter().enumerate().rev() {
            let reached = |job: &usize| {
                let SharedJob { ran, gpus, running, .. } = jobs[*job];
                let due = (limit / f64::from(gpus)).ceil() - ran + now;
                ran * f64::from(gpus) >= *limit || (running && due <= now)
            };
            let (mut fallen, kept): (Vec<usize>, Vec<usize>) = self.queues[at].iter().partition(|job| reached(job));
            fallen.sort_unstable();
            self.queues[at] = kept;
            self.queues[at + 1].extend(fallen);
        }
    }

    /// As [`SharingQueues::demote`]; jobs that fall together enter the next queue by falling numbers of GPUs.
    pub fn demote_large_first(&mut self, jobs: &[SharedJob]) {
        for (at, limit) in self.limits.iter().enumerate() {
            let reached = |job: &usize| jobs[*job].ran * f64::from(jobs[*job].gpus) >= *limit;
            let (mut fallen, kept): (Vec<usize>, Vec<usize>) = self.queues[at].iter().partition(|job| reached(job));
            fallen.sort_by_key(|job| std::cmp::Reverse(jobs[*job].gpus));
            self.queues[at] = kept;
            self.queues[at + 1].extend(fallen);
        }
    }

    /// Returns the least time to a limit divided by GPUs, in whole seconds, over the running jobs.
    pub fn next_check(&self, jobs: &[SharedJob]) -> Option<f64> {
        let of_queue = |(limit, queue): (&f64, &Vec<usize>)| {
            let running = queue.iter().filter(|job| jobs[**job].running);
            let until = |job: &usize| ((limit - jobs[*job].ran) / f64::from(jobs[*job].gpus)).ceil();
            running.map(until).min_by(f64::total_cmp)
        };
        self.limits.iter().zip(&self.queues).filter_map(of_queue).min_by(f64::total_cmp)
    }

    /// Sorts the jobs by the key of the order; jobs with equal keys keep their order.
    pub fn sort(&mut self, jobs: &[SharedJob]) {
        let key = |job: &usize| match self.order {
            Order::Srsf => jobs[*job].left * f64::from(jobs[*job].gpus),
            _ => jobs[*job].left,
        };
        if [Order::Srtf, Order::Srsf].contains(&self.order) {
            self.queues[0].sort_by(|a, b| key(a).total_cmp(&key(b)));
        }
    }

    /// Replaces the order of the first queue.
    pub fn replace(&mut self, jobs: Vec<usize>) {
        self.queues[0] = jobs;
    }

    /// Moves waiting jobs behind the running ones of their queue under Tiresias.
    pub fn running_first(&mut self, jobs: &[SharedJob]) {
        if self.order == Order::Tiresias {
            self.queues.iter_mut().for_each(|queue| queue.sort_by_key(|job| !jobs[*job].running));
        }
    }

    /// Returns the jobs in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.queues.iter().flatten().copied()
    }

    /// Returns the time at which a running job first reaches the limit of its queue, in whole seconds of its running time.
    pub fn next_demotion(&self, jobs: &[SharedJob], now: f64) -> Option<f64> {
        let of_queue = |(limit, queue): (&f64, &Vec<usize>)| {
            let running = queue.iter().filter(|job| jobs[**job].running);
            let due = |job: &usize| (limit / f64::from(jobs[*job].gpus)).ceil() - jobs[*job].ran + now;
            running.map(due).min_by(f64::total_cmp)
        };
        self.limits.iter().zip(&self.queues).filter_map(of_queue).min_by(f64::total_cmp)
    }
}
