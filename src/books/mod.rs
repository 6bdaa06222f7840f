//! Who holds, uses and waits for what: the one account of the state.
//!
//! The engine writes it, policies and metrics read it, nobody mirrors it. What a user *holds* (its footprint: what the
//! policy's lens reserves for its running tasks) and what it *uses* (its tasks' true demands) are two numbers; they
//! differ under slots.

mod weights;

pub use weights::{WEIGHT_ONE, Weights};

use crate::units::{MAX_DIMS, Resources, Time, UserId};

/// The state of one run. Amounts are in base units, one per dimension of the run.
#[derive(Clone, Debug)]
pub struct Books {
    dims: usize,
    capacity: Resources,
    offered: Resources,
    same: bool,
    held: Vec<u64>,
    used: Vec<u64>,
    head: Vec<u64>,
    running: Vec<u64>,
    waiting: Vec<u64>,
    weight_class: Vec<u32>,
    weights: Weights,
    total_held: Resources,
    total_used: Resources,
    total_running: u64,
    total_waiting: u64,
    backlogged: u32,
    active: u32,
}

impl Books {
    /// Empty books for a cluster of `capacity`, of which the policy's lens offers `offered` (the same for most).
    pub fn new(dims: usize, capacity: Resources, offered: Resources, weights: Weights) -> Books {
        Books {
            dims,
            capacity,
            offered,
            same: capacity == offered,
            held: Vec::new(),
            used: Vec::new(),
            head: Vec::new(),
            running: Vec::new(),
            waiting: Vec::new(),
            weight_class: Vec::new(),
            weights,
            total_held: Resources::ZERO,
            total_used: Resources::ZERO,
            total_running: 0,
            total_waiting: 0,
            backlogged: 0,
            active: 0,
        }
    }

    /// Opens an account for the next user id.
    pub fn open(&mut self, name: &str) {
        self.held.extend(std::iter::repeat_n(0, self.dims));
        if !self.same {
            self.used.extend(std::iter::repeat_n(0, self.dims));
        }
        self.head.extend(std::iter::repeat_n(0, self.dims));
        self.running.push(0);
        self.waiting.push(0);
        self.weight_class.push(self.weights.class_of(name));
    }

    /// How many users have an account.
    pub fn users(&self) -> usize {
        self.running.len()
    }

    /// How many resource dimensions there are.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The whole cluster.
    pub fn capacity(&self) -> &Resources {
        &self.capacity
    }

    /// The whole cluster as the policy's lens offers it.
    pub fn offered(&self) -> &Resources {
        &self.offered
    }

    /// The footprint of a user's running tasks.
    pub fn held(&self, user: UserId) -> &[u64] {
        let at = user.index() * self.dims;
        &self.held[at..at + self.dims]
    }

    /// What a user's running tasks truly use.
    pub fn used(&self, user: UserId) -> &[u64] {
        if self.same {
            return self.held(user);
        }
        let at = user.index() * self.dims;
        &self.used[at..at + self.dims]
    }

    /// The demand of the task that a user would launch next; meaningful while [`Books::waiting`] is not 0.
    pub fn head(&self, user: UserId) -> &[u64] {
        let at = user.index() * self.dims;
        &self.head[at..at + self.dims]
    }

    /// How many tasks a user runs.
    pub fn running(&self, user: UserId) -> u64 {
        self.running[user.index()]
    }

    /// How many tasks a user waits to launch.
    pub fn waiting(&self, user: UserId) -> u64 {
        self.waiting[user.index()]
    }

    /// All weights; [`Books::weight_class`] says which are a user's.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Which class of [`Books::weights`] a user belongs to.
    pub fn weight_class(&self, user: UserId) -> usize {
        self.weight_class[user.index()] as usize
    }

    /// The footprint of all running tasks.
    pub fn total_held(&self) -> &Resources {
        &self.total_held
    }

    /// What all running tasks truly use.
    pub fn total_used(&self) -> &Resources {
        if self.same { &self.total_held } else { &self.total_used }
    }

    /// How many tasks run.
    pub fn total_running(&self) -> u64 {
        self.total_running
    }

    /// How many tasks wait in line.
    pub fn total_waiting(&self) -> u64 {
        self.total_waiting
    }

    /// How many users wait for something.
    pub fn backlogged(&self) -> u32 {
        self.backlogged
    }

    /// How many users run or wait for something.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Books `tasks` more in a user's line.
    pub fn queue(&mut self, user: UserId, tasks: u32) {
        let u = user.index();
        self.active += u32::from(self.waiting[u] == 0 && self.running[u] == 0);
        self.backlogged += u32::from(self.waiting[u] == 0);
        self.waiting[u] += u64::from(tasks);
        self.total_waiting += u64::from(tasks);
    }

    /// Notes the demand of the task a user would launch next.
    pub fn set_head(&mut self, user: UserId, demand: &[u64]) {
        let at = user.index() * self.dims;
        self.head[at..at + self.dims].copy_from_slice(demand);
    }

    /// Books the launch of one waiting task.
    pub fn launch(&mut self, user: UserId, demand: &[u64], footprint: &[u64]) {
        let u = user.index();
        self.waiting[u] -= 1;
        self.backlogged -= u32::from(self.waiting[u] == 0);
        self.running[u] += 1;
        self.total_waiting -= 1;
        self.total_running += 1;
        let at = u * self.dims;
        for d in 0..self.dims {
            self.held[at + d] += footprint[d];
            self.total_held.0[d] += footprint[d];
        }
        if !self.same {
            for d in 0..self.dims {
                self.used[at + d] += demand[d];
                self.total_used.0[d] += demand[d];
            }
        }
    }

    /// Books the end of `count` running tasks.
    pub fn finish(&mut self, user: UserId, demand: &[u64], footprint: &[u64], count: u32) {
        let u = user.index();
        let count = u64::from(count);
        self.running[u] -= count;
        self.total_running -= count;
        self.active -= u32::from(self.waiting[u] == 0 && self.running[u] == 0);
        let at = u * self.dims;
        for d in 0..self.dims {
            self.held[at + d] -= footprint[d] * count;
            self.total_held.0[d] -= footprint[d] * count;
        }
        if !self.same {
            for d in 0..self.dims {
                self.used[at + d] -= demand[d] * count;
                self.total_used.0[d] -= demand[d] * count;
            }
        }
    }

    /// Adds everything up again and compares: what all users hold is the total, and no more than is offered.
    /// Panics: when the books are wrong (a programmer error); for tests and audited runs.
    pub fn audit(&self, now: Time) {
        let mut held = [0u64; MAX_DIMS];
        for user in 0..self.users() {
            let user = UserId(user as u32);
            for (sum, amount) in held.iter_mut().zip(self.held(user)) {
                *sum += amount;
            }
        }
        assert_eq!(held, self.total_held.0, "what users hold adds up to the total at {now:?}");
        assert!(self.total_held.fits(&self.offered), "no more is held than offered at {now:?}");
        assert_eq!(self.running.iter().sum::<u64>(), self.total_running, "running tasks add up at {now:?}");
        assert_eq!(self.waiting.iter().sum::<u64>(), self.total_waiting, "waiting tasks add up at {now:?}");
    }
}
