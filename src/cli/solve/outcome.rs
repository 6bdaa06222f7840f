//! Describes an allocation for each user and resource, in numbers that are exact if the solver is exact.

use crate::fair::{Allocation, Exact, Instance, Limit, Tasks, User};

/// An amount to be shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// An exact number.
    Exact(Exact),
    /// A number within the solver's certified tolerance.
    Float(f64),
}

impl Amount {
    /// Returns the nearest float.
    pub fn float(&self) -> f64 {
        match self {
            Amount::Exact(value) => value.to_f64(),
            Amount::Float(value) => *value,
        }
    }

    /// Returns the amount as a fraction, if it is exact.
    pub fn exact(&self) -> Option<&Exact> {
        match self {
            Amount::Exact(value) => Some(value),
            Amount::Float(_) => None,
        }
    }

    fn times(&self, factor: &Exact) -> Amount {
        match self {
            Amount::Exact(value) => Amount::Exact(value * factor),
            Amount::Float(value) => Amount::Float(value * factor.to_f64()),
        }
    }

    fn plus(self, other: &Amount) -> Amount {
        match (&self, other) {
            (Amount::Exact(a), Amount::Exact(b)) => Amount::Exact(a + b),
            _ => Amount::Float(self.float() + other.float()),
        }
    }
}

/// The allocation of one user.
#[derive(Clone, Debug)]
pub struct Holding {
    /// Number of running tasks.
    pub tasks: Amount,
    /// The allocated amount of each resource.
    pub allocation: Vec<Amount>,
    /// The allocation as a share of the capacity; `None` for a capacity of 0.
    pub shares: Vec<Option<Amount>>,
    /// The resource of which a task needs the largest share (of equal shares, the first); `None` if a task needs no resource.
    pub dominant: Option<usize>,
    /// The user's share of its dominant resource.
    pub dominant_share: Amount,
    /// The largest ratio of a share to its weight.
    pub level: Amount,
    /// Number of the user's tasks on each `[[machine]]` of the instance; empty under policies without placement.
    pub on: Vec<Amount>,
    /// The limit that prevented a larger allocation.
    pub limit: Limit,
}

/// The outcome of a policy on an instance.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The policy's name.
    pub policy: String,
    /// The allocation of each user.
    pub users: Vec<Holding>,
    /// The allocated amount of each resource, over all users.
    pub used: Vec<Amount>,
    /// The used amounts as shares of the capacity; `None` for a capacity of 0.
    pub utilisation: Vec<Option<Amount>>,
    /// The allocation as returned by the mechanism.
    pub allocation: Allocation,
}

impl Outcome {
    /// Computes the outcome from an allocation.
    pub fn new(policy: &str, instance: &Instance, allocation: Allocation) -> Outcome {
        let tasks: Vec<Amount> = match &allocation.tasks {
            Tasks::Exact(tasks) => tasks.iter().cloned().map(Amount::Exact).collect(),
            // Adding 0 removes the sign of a zero.
            Tasks::Float(tasks) => tasks.iter().map(|tasks| Amount::Float(tasks + 0.0)).collect(),
        };
        let parts = instance.users().iter().zip(tasks).zip(&allocation.limits);
        let mut users: Vec<Holding> =
            parts.map(|((user, tasks), limit)| Holding::new(instance, user, tasks, *limit)).collect();
        for (user, on) in users.iter_mut().zip(allocation.spread.iter().flatten()) {
            user.on = on.iter().cloned().map(Amount::Exact).collect();
        }
        let dims = instance.resources().len();
        let sum = |part: &dyn Fn(&Holding) -> Option<Amount>| {
            let mut parts = users.iter().filter_map(part);
            let first = parts.next();
            first.map(|first| parts.fold(first, |sum, part| sum.plus(&part)))
        };
        let used = (0..dims).filter_map(|r| sum(&|user| Some(user.allocation[r].clone()))).collect();
        let utilisation = (0..dims).map(|r| sum(&|user| user.shares[r].clone())).collect();
        Outcome { policy: policy.to_owned(), users, used, utilisation, allocation }
    }
}

impl Holding {
    fn new(instance: &Instance, user: &User, tasks: Amount, limit: Limit) -> Holding {
        let capacity = instance.capacity();
        let need = |r: usize| Some(&user.demand[r] / &capacity[r]).filter(Exact::is_positive);
        let counted = || (0..capacity.len()).filter(|&r| capacity[r].is_positive());
        let needed = counted().filter_map(|r| Some((r, need(r)?)));
        // Of equal shares, the first one is kept.
        let dominant = needed.reduce(|most, one| if one.1 > most.1 { one } else { most });
        let weighted = counted().filter_map(|r| Some(&need(r)? / &user.weight[r])).max();
        let share = |r: usize| capacity[r].is_positive().then(|| tasks.times(&(&user.demand[r] / &capacity[r])));
        Holding {
            allocation: user.demand.iter().map(|demand| tasks.times(demand)).collect(),
            shares: (0..capacity.len()).map(share).collect(),
            dominant: dominant.as_ref().map(|(r, _)| *r),
            dominant_share: tasks.times(dominant.as_ref().map_or(&Exact::ZERO, |(_, share)| share)),
            level: tasks.times(&weighted.unwrap_or(Exact::ZERO)),
            tasks,
            on: Vec::new(),
            limit,
        }
    }
}
