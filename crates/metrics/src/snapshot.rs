//! Bundles and demands of users at one instant: the input of envy and sharing incentive.
//!
//! A bundle is valued by the number of tasks, fractions included, that a user could run with it. This is computed by [`Wants`], as in the
//! property checks, with the mean demand of the user's tasks, and limited to their number.

use crate::fluid::{Fluid, rate};
use plimsoll_base::units::{MAX_DIMS, UserId};
use plimsoll_fair::Wants;
use plimsoll_sim::books::Books;

/// Two values are considered different if their relative difference exceeds this value.
///
/// Values result from a few float operations (each with an error of at most 2^-53), and reports must not call such differences unfair.
pub const TOLERANCE: f64 = 1e-9;

/// One user at one instant, over the run's resources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserSnapshot<'a> {
    /// The bundle: the used amount of each resource, as a fraction of the cluster's capacity.
    pub bundle: &'a [f64],
    /// The mean demand of the user's tasks, as fractions of the cluster's capacity; 0 for resources that it does not need.
    pub demand: &'a [f64],
    /// The weight per resource (above 0).
    pub weight: &'a [f64],
    /// The number of running and waiting tasks.
    pub tasks: f64,
    /// Whether the user has waiting tasks. Only backlogged users can envy others or be below their part.
    pub backlogged: bool,
}

impl<'a> UserSnapshot<'a> {
    /// Returns the demand, the weights and the number of tasks of the user.
    pub fn wants(&self) -> Wants<'_, f64> {
        Wants { demand: self.demand, weight: self.weight, tasks: Some(&self.tasks) }
    }

    /// Returns the number of tasks that the user's own bundle runs; `None` for a user without demand, which is never evaluated.
    pub fn own(&self) -> Option<f64> {
        let wants = self.wants();
        wants.needed().next()?;
        wants.runs(|r| self.bundle[r])
    }
}

/// The users in columns, updated when users join, change or leave. Columns are updated in place, because most users are unchanged from one
/// instant to the next.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Snapshots {
    dims: usize,
    /// `dims` weights per class.
    weights: Vec<f64>,
    /// For each user its bundle, then its demand.
    amounts: Vec<f64>,
    others: Vec<Facts>,
}

/// The data of a user other than its bundle and its demand.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Facts {
    tasks: f64,
    /// The tasks per unit of level; see [`rate`].
    rate: f64,
    largest: f64,
    class: u32,
    backlogged: bool,
}

impl Snapshots {
    /// Creates an instance without users, for a number of resources, with these weights by class.
    pub fn new(dims: usize, weights: &[[f64; MAX_DIMS]]) -> Snapshots {
        let weights = weights.iter().flat_map(|weights| weights[..dims].to_vec()).collect();
        Snapshots { dims, weights, ..Snapshots::default() }
    }

    /// Adds a user whose state is stored later by [`Snapshots::set`].
    pub fn push(&mut self) {
        self.amounts.resize(self.amounts.len() + 2 * self.dims, 0.0);
        self.others.push(Facts::default());
    }

    /// Removes the user at an index; the last user takes that index.
    pub fn swap_remove(&mut self, at: usize) {
        self.others.swap_remove(at);
        let (width, last) = (2 * self.dims, 2 * self.dims * self.others.len());
        self.amounts.copy_within(last..last + width, at * width);
        self.amounts.truncate(last);
    }

    /// Stores the state of the user at an index from the books, with its largest task as a weighted dominant share.
    pub fn set(&mut self, at: usize, user: UserId, books: &Books, largest: f64) {
        let capacity = &books.capacity().0;
        let fraction = |amount: f64, d: usize| if capacity[d] == 0 { 0.0 } else { amount / capacity[d] as f64 };
        let (dims, class) = (self.dims, books.weight_class(user));
        let (bundle, demand) = self.amounts[2 * dims * at..][..2 * dims].split_at_mut(dims);
        let tasks = (books.running(user) + books.waiting(user)) as f64;
        for d in 0..dims {
            bundle[d] = fraction(books.used(user)[d] as f64, d);
            // The demand is the mean over all tasks, because the demand of the next task does not represent the other tasks.
            demand[d] = fraction(books.wanted(user, d) as f64 / tasks, d);
        }
        let rate = rate(demand, &self.weights[class * dims..][..dims]);
        self.others[at] = Facts { tasks, rate, largest, class: class as u32, backlogged: books.waiting(user) > 0 };
    }

    /// Returns all users, in order of their index.
    pub fn iter(&self) -> impl Iterator<Item = UserSnapshot<'_>> + Clone {
        self.amounts.chunks_exact(2 * self.dims.max(1)).zip(&self.others).map(|(amounts, facts)| {
            let (bundle, demand) = amounts.split_at(self.dims);
            let weight = &self.weights[facts.class as usize * self.dims..][..self.dims];
            UserSnapshot { bundle, demand, weight, tasks: facts.tasks, backlogged: facts.backlogged }
        })
    }

    /// Returns the largest task of each user, as a weighted dominant share.
    pub fn largest(&self) -> impl Iterator<Item = f64> {
        self.others.iter().map(|facts| facts.largest)
    }

    /// Replaces the users of `fluid` by these users, in order.
    pub fn pour(&self, fluid: &mut Fluid) {
        fluid.clear();
        for (amounts, facts) in self.amounts.chunks_exact(2 * self.dims.max(1)).zip(&self.others) {
            fluid.push(&amounts[self.dims..], facts.tasks, facts.rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tasks_are_those_that_the_scarcest_resource_runs_and_no_more_than_there_are() {
        let own = |bundle: &[f64], demand: &[f64], tasks: f64| {
            UserSnapshot { bundle, demand, weight: &[1.0; 3][..demand.len()], tasks, backlogged: true }.own()
        };
        assert_eq!(own(&[0.5, 0.25, 0.0], &[0.0, 0.0, 0.0], 9.0), None);
        assert_eq!(own(&[0.5, 0.25, 0.0], &[0.25, 0.0, 0.0], 9.0), Some(2.0));
        assert_eq!(own(&[0.5, 0.25, 0.0], &[0.25, 0.25, 0.0], 9.0), Some(1.0));
        assert_eq!(own(&[0.5, 0.25, 0.0], &[0.25, 0.25, 0.001], 9.0), Some(0.0));
        assert_eq!(own(&[0.5, 0.25], &[0.25, 0.25], 9.0), Some(1.0));
        assert_eq!(own(&[0.5, 5.0], &[0.25, 0.25], 9.0), Some(2.0));
        assert_eq!(own(&[0.5, 5.0], &[0.25, 0.25], 1.5), Some(1.5));
    }
}
