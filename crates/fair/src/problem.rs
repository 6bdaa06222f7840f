//! The input of the fast solvers: an instance in floats, with one column per resource for fast passes.

use super::{Instance, Number};
use plimsoll_base::error::Result;

/// The users' demands per task, weights and numbers of tasks, in floats.
///
/// Capacities are 1: a demand is the share of the whole that one task needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    users: usize,
    dims: usize,
    /// Stored by column: `demand[r * users + i]`.
    demand: Vec<f64>,
    weight: Vec<f64>,
    tasks: Vec<f64>,
}

impl Problem {
    /// Creates a problem from columns: `demand[r * users + i]` is the demand of a task of user `i` for resource `r`, as a share of its
    /// capacity (finite, at least 0); `weight[i]` is above 0; `tasks[i]` may be infinite. Panics: the lengths do not match (a programmer
    /// error).
    pub fn new(dims: usize, demand: Vec<f64>, weight: Vec<f64>, tasks: Vec<f64>) -> Problem {
        let users = weight.len();
        assert!(demand.len() == users * dims && tasks.len() == users, "one column of {users} a resource");
        Problem { users, dims, demand, weight, tasks }
    }

    /// Converts an instance to floats. Demands of resources of capacity 0 are dropped; their users have 0 tasks. Errors:
    /// [`Error::Plan`](plimsoll_base::error::Error::Plan) if a user has weights by resource.
    pub fn from_instance(instance: &Instance) -> Result<Problem> {
        let (users, dims) = (instance.users().len(), instance.resources().len());
        let mut problem = Problem { users, dims, demand: vec![0.0; users * dims], ..Problem::default() };
        for (i, user) in instance.users().iter().enumerate() {
            for (r, capacity) in instance.capacity().iter().enumerate().filter(|(_, capacity)| !capacity.is_zero()) {
                problem.demand[r * users + i] = (&user.demand[r] / capacity).to_f64();
            }
            problem.weight.push(user.scalar_weight("for this policy")?.to_f64());
            let tasks = user.tasks.as_ref().map_or(f64::INFINITY, |tasks| tasks.to_f64());
            problem.tasks.push(if instance.lacking(user).is_some() { 0.0 } else { tasks });
        }
        Ok(problem)
    }

    /// Returns the number of users.
    pub fn users(&self) -> usize {
        self.users
    }

    /// Returns the number of resources.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the demand of a task of each user for resource `r`, as a share of its capacity.
    pub fn column(&self, r: usize) -> &[f64] {
        &self.demand[r * self.users..][..self.users]
    }

    /// Returns the columns of all resources.
    pub fn columns(&self) -> Vec<&[f64]> {
        (0..self.dims).map(|r| self.column(r)).collect()
    }

    /// Returns the users' weights.
    pub fn weight(&self) -> &[f64] {
        &self.weight
    }

    /// Returns the number of tasks of each user.
    pub fn tasks(&self) -> &[f64] {
        &self.tasks
    }

    /// Returns the demand of a task of user `i`, resource by resource.
    pub fn row(&self, i: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        (0..self.dims).map(move |r| self.demand[r * self.users + i])
    }
}
