//! The state of a run at one instant: the input of the metrics on the sampling grid.

use super::deviation::{Deviation, theorem7_broken};
use super::envy::{Envy, envy};
use super::fairness::{gap, gini, ratio};
use super::incentive::{Incentive, PartComparison, standings};
use super::stranded::stranded_now;
use crate::fluid::{Fluid, dominant};
use crate::snapshot::Snapshots;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, UserId};
use plimsoll_sim::record::State;

/// The values of the users with running or waiting tasks, in the order of the input, and values that several metrics need.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// The dominant share of each user, unweighted.
    pub shares: Vec<f64>,
    /// The dominant share of each user with divisible tasks.
    pub fluid: Vec<f64>,
    /// The comparison of each user with its part of the cluster.
    pub standings: Vec<Option<PartComparison>>,
    /// The weighted dominant shares of the backlogged users.
    pub backlogged: Vec<f64>,
    /// The Gini coefficient of `backlogged`.
    pub gini: Option<f64>,
    /// The largest minus the smallest of `backlogged`.
    pub gap: Option<f64>,
    /// The smallest over the largest of `backlogged`.
    pub ratio: Option<f64>,
    /// The largest waiting task, as a weighted dominant share.
    pub task: Option<f64>,
    /// Whether two of the `backlogged` shares differ by more than `task`.
    pub theorem7_broken: Option<bool>,
    /// The sharing incentive over all users.
    pub incentive: Option<Incentive>,
    /// The envy among all users.
    pub envy: Option<Envy>,
    /// The distances of the shares from the shares with divisible tasks.
    pub deviation: Option<Deviation>,
    /// The stranded capacity; `None` if the cluster is one pool, if the policy view is not plain (such as slots), or without waiting tasks.
    pub stranded: Option<[f64; MAX_DIMS]>,
}

impl Sample {
    /// Evaluates the state over the users with running or waiting tasks: `active` has their ids, and `users` their snapshots in the same
    /// order.
    ///
    /// Errors: [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    pub fn evaluate(&mut self, state: &State, active: &[UserId], users: &Snapshots, fluid: &mut Fluid) -> Result<()> {
        let ones = [1.0; MAX_DIMS];
        self.shares.clear();
        self.shares.extend(users.iter().map(|user| dominant(user.bundle, &ones)));
        users.pour(fluid);
        self.fluid.clear();
        let tasks = fluid.solve()?.iter();
        self.fluid.extend(users.iter().zip(tasks).map(|(user, tasks)| tasks * dominant(user.demand, &ones)));
        self.deviation = Deviation::from_shares(&self.shares, &self.fluid);
        self.standings.clear();
        self.standings.extend(standings(users.iter()));
        self.incentive = Incentive::from_standings(&self.standings);
        self.envy = envy(users.iter());
        self.backlogged.clear();
        let waiting = || users.iter().zip(users.largest()).filter(|(user, _)| user.backlogged);
        self.backlogged.extend(waiting().map(|(user, _)| dominant(user.bundle, user.weight)));
        self.task = waiting().map(|(_, task)| task).reduce(f64::max);
        (self.gini, self.gap, self.ratio) = (gini(&self.backlogged), gap(&self.backlogged), ratio(&self.backlogged));
        self.theorem7_broken = theorem7_broken(self.gap, self.backlogged.len(), self.task);
        let machines = state.machines.filter(|_| !self.backlogged.is_empty() && state.books.lens_is_plain());
        self.stranded = machines.map(|machines| stranded_now(machines, state, active));
        Ok(())
    }
}
