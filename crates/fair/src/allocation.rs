//! The answer: how many tasks each user runs, and its certificate.

use super::{Exact, Instance, Number};
use plimsoll_base::error::Result;

/// A rule that makes an allocation of an instance: the interface between solvers, property checks and a user's own
/// rules.
pub trait Mechanism: Send + Sync {
    /// The allocation. Errors: an instance that the mechanism is not defined for, or
    /// [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    fn allocate(&self, instance: &Instance) -> Result<Allocation>;

    /// Returns whether the mechanism assigns tasks to machines, and respects where users may run.
    fn places(&self) -> bool {
        false
    }
}

/// How many tasks each user runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Tasks {
    /// Without rounding.
    Exact(Vec<Exact>),
    /// To the solver's certified tolerance.
    Float(Vec<f64>),
}

impl Tasks {
    /// The nearest floats.
    pub fn floats(&self) -> Vec<f64> {
        match self {
            Tasks::Exact(tasks) => tasks.iter().map(Exact::to_f64).collect(),
            Tasks::Float(tasks) => tasks.clone(),
        }
    }

    /// As fractions, if they are exact.
    pub fn exact(&self) -> Option<&[Exact]> {
        match self {
            Tasks::Exact(tasks) => Some(tasks),
            Tasks::Float(_) => None,
        }
    }
}

/// The constraint that kept a user from more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It runs all the tasks it has.
    Demand,
    /// This resource is used up.
    Resource(usize),
    /// All slots are taken.
    Slots,
    /// On each machine where it may run, something that it needs is used up; not the same on all.
    Machines,
    /// Nothing within the mechanism's view of a whole task: the next one does not fit.
    WholeTask,
}

/// How far a converged solution is from the optimum, as computed from the solution alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certificate {
    /// The largest violation of an optimality condition, relative to its scale.
    pub residual: f64,
    /// Upper bound minus value of the objective, per unit of weight; 0 where there is no objective.
    pub gap: f64,
}

/// A static allocation. Entries follow the users of the instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// How many tasks each user runs.
    pub tasks: Tasks,
    /// The constraint that kept each user from more.
    pub limits: Vec<Limit>,
    /// Tasks of each user on each entry of machines, `users x machines`, for mechanisms that assign tasks to machines.
    pub spread: Option<Vec<Vec<Exact>>>,
    /// The price of a unit of each resource, for mechanisms that have prices.
    pub prices: Option<Vec<f64>>,
    /// For solutions that are converged rather than exact.
    pub certificate: Option<Certificate>,
}

impl Allocation {
    /// An allocation with these tasks and limits, without prices or placement.
    pub fn new(tasks: Tasks, limits: Vec<Limit>) -> Allocation {
        Allocation { tasks, limits, spread: None, prices: None, certificate: None }
    }

    /// Each user's amount of each resource, `users x resources`: tasks times demand.
    pub fn bundles<N: Number>(instance: &Instance, tasks: &[N]) -> Vec<Vec<N>> {
        let bundle = |(user, tasks): (&super::User, &N)| {
            user.demand.iter().map(|demand| N::from_exact(demand).times(tasks)).collect()
        };
        instance.users().iter().zip(tasks).map(bundle).collect()
    }
}
