//! Weighted DRF with divisible tasks, for users stored in columns.

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::MAX_DIMS;
use plimsoll_base::visit_values;
use plimsoll_fair::Levels;
use plimsoll_sim::books::{WEIGHT_ONE, Weights};

/// Users that share a cluster, and the number of tasks that each runs. It owns its buffers, so one instance should be reused.
#[derive(Clone, Debug, Default)]
pub struct Fluid {
    levels: Levels,
    /// The mean demand of each user's tasks, as fractions of the cluster's capacity, with one column per resource.
    demand: Vec<Vec<f64>>,
    tasks: Vec<f64>,
    rates: Vec<f64>,
}

impl Fluid {
    /// Creates an instance without users, for this number of resources.
    pub fn new(dims: usize) -> Fluid {
        Fluid { demand: vec![Vec::new(); dims], ..Fluid::default() }
    }

    /// Removes all users.
    pub fn clear(&mut self) {
        self.demand.iter_mut().chain([&mut self.tasks, &mut self.rates]).for_each(Vec::clear);
    }

    /// Adds a user with the mean demand of its tasks (fractions of the capacity), its number of tasks and a [`rate`].
    pub fn push(&mut self, demand: &[f64], tasks: f64, rate: f64) {
        self.demand.iter_mut().zip(demand).for_each(|(column, demand)| column.push(*demand));
        self.tasks.push(tasks);
        self.rates.push(rate);
    }

    /// Adds a user without tasks.
    pub(crate) fn grow(&mut self) {
        self.demand.iter_mut().chain([&mut self.tasks, &mut self.rates]).for_each(|column| column.push(0.0));
    }

    /// Replaces a user, by its place in the order of insertion; arguments as in [`Fluid::push`].
    pub(crate) fn set(&mut self, at: usize, demand: &[f64], tasks: f64, rate: f64) {
        self.demand.iter_mut().zip(demand).for_each(|(column, demand)| column[at] = *demand);
        (self.tasks[at], self.rates[at]) = (tasks, rate);
    }

    /// Removes a user; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, at: usize) {
        for column in self.demand.iter_mut().chain([&mut self.tasks, &mut self.rates]) {
            column.swap_remove(at);
        }
    }

    /// Returns the number of tasks that each user runs under weighted DRF, in the order of insertion.
    ///
    /// Errors: [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    pub fn solve(&mut self) -> Result<&[f64]> {
        if self.tasks.is_empty() {
            return Ok(&[]);
        }
        let columns: Vec<&[f64]> = self.demand.iter().map(Vec::as_slice).collect();
        self.levels.fill(&columns, &self.tasks, &self.rates)?;
        Ok(self.levels.tasks())
    }
}

/// Returns the weights by class, relative to the weight 1.
pub(crate) fn factors(weights: &Weights) -> Vec<[f64; MAX_DIMS]> {
    let class = |class| weights.each(class).map(|weight| weight as f64 / WEIGHT_ONE as f64);
    (0..weights.classes()).map(class).collect()
}

/// Returns the largest quotient of a demand and its weight. With weights of 1 this is the dominant share of a task.
pub fn dominant(demand: &[f64], weight: &[f64]) -> f64 {
    demand.iter().zip(weight).map(|(demand, weight)| demand / weight).fold(0.0, f64::max)
}

/// Returns the number of tasks of a user per unit of level: the number with a weighted dominant share of 1, or 0 if the user has no demand.
///
/// Weights by resource change only the rates, not the problem.
pub fn rate(demand: &[f64], weight: &[f64]) -> f64 {
    match dominant(demand, weight) {
        0.0 => 0.0,
        step => 1.0 / step,
    }
}

impl Checkpoint for Fluid {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        // A solution does not depend on the one before.
        let Fluid { levels: _, demand, tasks, rates } = self;
        visit_values!(visitor; demand, tasks, rates);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the dominant shares of users, each with a demand, one weight and a number of tasks.
    fn shares(users: &[([f64; 2], f64, f64)]) -> Vec<f64> {
        let mut fluid = Fluid::new(2);
        users.iter().for_each(|(demand, weight, tasks)| fluid.push(demand, *tasks, rate(demand, &[*weight; 2])));
        let tasks = fluid.solve().expect("a filling ends");
        users.iter().zip(tasks).map(|((demand, ..), tasks)| tasks * dominant(demand, &[1.0; 2])).collect()
    }

    fn near(found: &[f64], wanted: &[f64]) {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} is not {wanted:?}");
    }

    /// The example of Ghodsi et al., §4.1, where both users have a dominant share of 2/3; further cases have another weight for A, few
    /// tasks of B, or no demand.
    #[test]
    fn fluid_shares_are_those_of_drf() {
        let (a, b) = ([1.0 / 9.0, 4.0 / 18.0], [3.0 / 9.0, 1.0 / 18.0]);
        near(&shares(&[(a, 1.0, 100.0), (b, 1.0, 100.0)]), &[2.0 / 3.0, 2.0 / 3.0]);
        // A has memory share 2s and CPU share s; B has CPU share s and memory share s/6. The memory is used up first: 2s + s/6 = 1, so s =
        // 6/13.
        near(&shares(&[(a, 2.0, 100.0), (b, 1.0, 100.0)]), &[12.0 / 13.0, 6.0 / 13.0]);
        // B has one task, so A takes the remaining memory, 17/18.
        near(&shares(&[(a, 1.0, 100.0), (b, 1.0, 1.0)]), &[17.0 / 18.0, 1.0 / 3.0]);
        near(&shares(&[([0.0; 2], 1.0, 5.0), (b, 1.0, 1.0)]), &[0.0, 1.0 / 3.0]);
        assert!(shares(&[]).is_empty());
    }
}
