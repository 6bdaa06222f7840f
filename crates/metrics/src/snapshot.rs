//! Bundles and demands of users at one instant: the input of envy and sharing incentive.
//!
//! Users are judged by the number of tasks, fractions included, that a bundle would let them run: by [`Wants`], as the
//! property checks do, with the mean demand of the tasks that a user has and no more than those.

use crate::fluid::{Fluid, rate};
use plimsoll_base::units::{MAX_DIMS, UserId};
use plimsoll_fair::Wants;
use plimsoll_sim::books::Books;

/// By how much, relatively, two values must differ to count as different.
///
/// Values come from a few float operations (each off by at most 2^-53), and reports must not call that unfair.
pub const TOLERANCE: f64 = 1e-9;

/// One user at one instant, over the run's resources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserSnapshot<'a> {
    /// Its bundle: how much it holds of each resource, as a fraction of the cluster's capacity.
    pub bundle: &'a [f64],
    /// The mean demand of its tasks, as fractions of the cluster's capacity; 0 where it needs none.
    pub demand: &'a [f64],
    /// Its weight per resource (above 0).
    pub weight: &'a [f64],
    /// How many tasks it runs and waits for.
    pub tasks: f64,
    /// Whether it has tasks waiting: only such users may complain.
    pub backlogged: bool,
}

impl<'a> UserSnapshot<'a> {
    /// Its demand, weight and number of tasks.
    pub fn wants(&self) -> Wants<'_, f64> {
        Wants { demand: self.demand, weight: self.weight, tasks: Some(&self.tasks) }
    }

    /// How many tasks its own bundle runs; `None` for a user that needs nothing, and so never complains.
    pub fn own(&self) -> Option<f64> {
        let wants = self.wants();
        wants.needed().next()?;
        wants.runs(|r| self.bundle[r])
    }
}

/// Users that join, change and leave, in columns: most of them are unchanged from one instant to the next.
#[derive(Clone, Debug, Default)]
pub struct Snapshots {
    dims: usize,
    /// Of each class `dims` weights.
    weights: Vec<f64>,
    /// Of each user its bundle, then its demand.
    amounts: Vec<f64>,
    others: Vec<Facts>,
}

/// Of a user all but its bundle and its demand.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    tasks: f64,
    /// Tasks a unit of level; see [`rate`].
    rate: f64,
    largest: f64,
    class: u32,
    backlogged: bool,
}

impl Snapshots {
    /// Without users, for a number of resources, with these weights by class.
    pub fn new(dims: usize, weights: &[[f64; MAX_DIMS]]) -> Snapshots {
        let weights = weights.iter().flat_map(|weights| weights[..dims].to_vec()).collect();
        Snapshots { dims, weights, ..Snapshots::default() }
    }

    /// Adds a user, to be filled by [`Snapshots::set`].
    pub fn push(&mut self) {
        self.amounts.resize(self.amounts.len() + 2 * self.dims, 0.0);
        self.others.push(Facts::default());
    }

    /// Forgets the user at a place, which the last one takes.
    pub fn swap_remove(&mut self, at: usize) {
        self.others.swap_remove(at);
        let (width, last) = (2 * self.dims, 2 * self.dims * self.others.len());
        self.amounts.copy_within(last..last + width, at * width);
        self.amounts.truncate(last);
    }

    /// Stores the state of the user at a place from the books, with its largest task as a weighted dominant share.
    pub fn set(&mut self, at: usize, user: UserId, books: &Books, largest: f64) {
        let capacity = &books.capacity().0;
        let fraction = |amount: f64, d: usize| if capacity[d] == 0 { 0.0 } else { amount / capacity[d] as f64 };
        let (dims, class) = (self.dims, books.weight_class(user));
        let (bundle, demand) = self.amounts[2 * dims * at..][..2 * dims].split_at_mut(dims);
        let tasks = (books.running(user) + books.waiting(user)) as f64;
        for d in 0..dims {
            bundle[d] = fraction(books.used(user)[d] as f64, d);
            // The mean of all its tasks: the demand of the next one says little of the others.
            demand[d] = fraction(books.wanted(user, d) as f64 / tasks, d);
        }
        let rate = rate(demand, &self.weights[class * dims..][..dims]);
        self.others[at] = Facts { tasks, rate, largest, class: class as u32, backlogged: books.waiting(user) > 0 };
    }

    /// All users, in order of place.
    pub fn iter(&self) -> impl Iterator<Item = UserSnapshot<'_>> + Clone {
        self.amounts.chunks_exact(2 * self.dims.max(1)).zip(&self.others).map(|(amounts, facts)| {
            let (bundle, demand) = amounts.split_at(self.dims);
            let weight = &self.weights[facts.class as usize * self.dims..][..self.dims];
            UserSnapshot { bundle, demand, weight, tasks: facts.tasks, backlogged: facts.backlogged }
        })
    }

    /// The largest task of each, as a weighted dominant share.
    pub fn largest(&self) -> impl Iterator<Item = f64> {
        self.others.iter().map(|facts| facts.largest)
    }

    /// Puts all of them before `fluid`, in order.
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
