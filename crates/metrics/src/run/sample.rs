//! A run at one instant: what metrics on the sampling grid are computed of.

use super::deviation::{Deviation, Wish, fluid_shares};
use super::envy::{Envy, envy};
use super::incentive::{Incentive, Standing, standings};
use super::stranded::stranded_now;
use crate::snapshot::UserSnapshot;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, UserId};
use plimsoll_fair::Levels;
use plimsoll_sim::books::WEIGHT_ONE;
use plimsoll_sim::record::State;

/// The users that run or wait for something, in the order that was asked for, and what several metrics need.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Bundles and demands.
    pub users: Vec<UserSnapshot>,
    /// The dominant share of each, unweighted.
    pub shares: Vec<f64>,
    /// The same with divisible tasks.
    pub fluid: Vec<f64>,
    /// The weighted dominant shares of those that wait.
    pub backlogged: Vec<f64>,
    /// Their largest tasks, as weighted dominant shares.
    pub tasks: Vec<f64>,
    /// How each fares against its part of the cluster.
    pub standings: Vec<Option<Standing>>,
    /// The sharing incentive over all of them.
    pub incentive: Option<Incentive>,
    /// The envy among them.
    pub envy: Option<Envy>,
    /// The distances of shares from those with divisible tasks.
    pub deviation: Option<Deviation>,
    /// Stranded capacity; `None` when pooled, under slots, or when nothing waits.
    pub stranded: Option<[f64; MAX_DIMS]>,
}

impl Sample {
    /// Evaluates the state, over the users that run or wait for something; `largest` are the weighted dominant shares of
    /// each one's largest task.
    ///
    /// Errors: [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    pub fn take(state: &State, active: &[UserId], largest: &[f64], levels: &mut Levels) -> Result<Sample> {
        let books = state.books;
        let (dims, capacity) = (books.dims(), books.capacity());
        let fraction = |amount: f64, d: usize| if capacity.0[d] == 0 { 0.0 } else { amount / capacity.0[d] as f64 };
        let snapshot = |&user: &UserId| {
            let weights = books.weights().each(books.weight_class(user));
            let tasks = (books.running(user) + books.waiting(user)) as f64;
            let each = |of: &dyn Fn(usize) -> f64| std::array::from_fn(|d| if d < dims { of(d) } else { 0.0 });
            UserSnapshot {
                bundle: each(&|d| fraction(books.used(user)[d] as f64, d)),
                // The mean of all its tasks: the demand of the next one says little of the others.
                demand: each(&|d| fraction(books.wanted(user, d) as f64 / tasks, d)),
                weight: weights.map(|weight| weight as f64 / WEIGHT_ONE as f64),
                tasks,
                backlogged: books.waiting(user) > 0,
            }
        };
        let users: Vec<UserSnapshot> = active.iter().map(snapshot).collect();
        let dominant = |user: &UserSnapshot, weighted: bool| {
            let weight = |d: usize| if weighted { user.weight[d] } else { 1.0 };
            (0..dims).map(|d| user.bundle[d] / weight(d)).fold(0.0, f64::max)
        };
        let waiting = || users.iter().zip(largest).filter(|(user, _)| user.backlogged);
        let backlogged: Vec<f64> = waiting().map(|(user, _)| dominant(user, true)).collect();
        let tasks = waiting().map(|(_, task)| *task).collect();
        let shares: Vec<f64> = users.iter().map(|user| dominant(user, false)).collect();
        let wish = |user: &UserSnapshot| Wish { demand: user.demand, weight: user.weight, tasks: user.tasks };
        let wishes: Vec<Wish> = users.iter().map(wish).collect();
        let fluid = fluid_shares(levels, &wishes, dims)?;
        let standings = standings(&users, dims);
        Ok(Sample {
            envy: envy(&users, dims),
            incentive: Incentive::of(&standings),
            deviation: Deviation::of(&shares, &fluid),
            stranded: state
                .machines
                .filter(|_| !backlogged.is_empty() && books.lens_is_plain())
                .map(|machines| stranded_now(machines, state, active)),
            users,
            shares,
            fluid,
            backlogged,
            tasks,
            standings,
        })
    }
}
