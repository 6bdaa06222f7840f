//! The result of a mechanism: the number of tasks that each user runs, and its certificate.

use super::{Exact, Instance, Number};
use plimsoll_base::error::Result;

/// A rule that computes an allocation of an instance. Solvers, property checks and a user's own rules share this interface.
pub trait Mechanism: Send + Sync {
    /// Computes the allocation. Errors: an instance that the mechanism is not defined for, or
    /// [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    fn allocate(&self, instance: &Instance) -> Result<Allocation>;

    /// Returns whether the mechanism assigns tasks to machines and respects the machines that each user may use.
    fn places(&self) -> bool {
        false
    }
}

/// The number of tasks that each user runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Tasks {
    /// Exact fractions, without rounding.
    Exact(Vec<Exact>),
    /// Floats, to the solver's certified tolerance.
    Float(Vec<f64>),
}

impl Tasks {
    /// Returns the numbers of tasks as the nearest floats.
    pub fn floats(&self) -> Vec<f64> {
        match self {
            Tasks::Exact(tasks) => tasks.iter().map(Exact::to_f64).collect(),
            Tasks::Float(tasks) => tasks.clone(),
        }
    }

    /// Returns the numbers of tasks as fractions, if they are exact.
    pub fn exact(&self) -> Option<&[Exact]> {
        match self {
            Tasks::Exact(tasks) => Some(tasks),
            Tasks::Float(_) => None,
        }
    }
}

/// The constraint that kept a user from running more tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The user runs all its tasks.
    Demand,
    /// This resource is used up.
    Resource(usize),
    /// All slots are in use.
    Slots,
    /// On each machine where the user may run, a resource that it needs is used up; not the same resource on all machines.
    Machines,
    /// The mechanism assigns whole tasks, and the next one does not fit.
    WholeTask,
}

/// The distance of a converged solution from the optimum, computed from the solution alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Certificate {
    /// The largest violation of an optimality condition, relative to its scale.
    pub residual: f64,
    /// Upper bound minus value of the objective, per unit of weight; 0 if there is no objective.
    pub gap: f64,
}

/// A static allocation. Entries follow the users of the instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The number of tasks that each user runs.
    pub tasks: Tasks,
    /// The constraint that kept each user from running more tasks.
    pub limits: Vec<Limit>,
    /// Tasks of each user on each entry of machines, `users x machines`, for mechanisms that assign tasks to machines.
    pub spread: Option<Vec<Vec<Exact>>>,
    /// The price of a unit of each resource, for mechanisms that have prices.
    pub prices: Option<Vec<f64>>,
    /// The certificate, for solutions that are converged rather than exact.
    pub certificate: Option<Certificate>,
}

impl Allocation {
    /// Creates an allocation with the given tasks and limits, without prices or placement.
    pub fn new(tasks: Tasks, limits: Vec<Limit>) -> Allocation {
        Allocation { tasks, limits, spread: None, prices: None, certificate: None }
    }

    /// Returns each user's amount of each resource, `users x resources`: tasks times demand.
    pub fn bundles<N: Number>(instance: &Instance, tasks: &[N]) -> Vec<Vec<N>> {
        let bundle = |(user, tasks): (&super::User, &N)| {
            user.demand.iter().map(|demand| N::from_exact(demand).times(tasks)).collect()
        };
        instance.users().iter().zip(tasks).map(bundle).collect()
    }
}
