//! Leximin on different machines: maximises the least level of all users, then the next, and so on. DRFH, TSF and CMMF differ in the
//! definition of the level.
//!
//! A linear program raises the level of all users that still rise. If a user's level, or its number of tasks, has a price, every optimum of
//! the program has the same level, so the user is fixed; some user always has a price. The next program raises the others among the
//! remaining optima. A user may be unable to rise although it has no price at the computed corner. It gets a price in a later program, in
//! which the level does not rise, so that no program per user is needed.

use super::UserMachines;
use super::simplex::Polytope;
use crate::{Allocation, Exact, Instance, Mechanism, Norm, Number, User};
use plimsoll_base::error::Result;

/// The quantity that, divided by the user's weight, is the level of a user. It is computed from the user's tasks on all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The dominant share of all machines together: DRFH (Wang, Li and Liang, INFOCOM 2014). Weights may differ by resource.
    Dominant,
    /// The share of the tasks that the user could run alone if it might run on any machine: TSF (Wang, Li, Liang and Li, SC 2016).
    Tasks,
    /// The share of this resource: CMMF (Ghodsi et al., Choosy, EuroSys 2013). Users that do not need it are served first, by dominant
    /// share, as in [`Filling`](crate::Filling).
    Resource(usize),
}

/// Lexicographic max-min fairness of a quantity on machines, exact.
///
/// On one machine `Dominant` is DRF. Cost: a few steps per user. Each step visits all pairs of a user and a machine, and updates a square
/// matrix with one row per user and per resource of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Across {
    /// The quantity that is raised.
    pub quantity: Quantity,
}

impl Mechanism for Across {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let site = UserMachines::new(instance)?;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (i, user) in instance.users().iter().enumerate() {
            let level = self.level(instance, user)?;
            if site.places(i).next().is_none() {
                continue;
            }
            match level.is_zero() {
                true => first.push((i, &Exact::ONE / &norm(Norm::Largest, instance, user))),
                false => second.push((i, &Exact::ONE / &level)),
            }
        }
        Ok(site.allocation(raised(&site, &[first, second])))
    }

    fn places(&self) -> bool {
        true
    }
}

impl Across {
    /// Returns the level of a user that runs one task.
    fn level(&self, instance: &Instance, user: &User) -> Result<Exact> {
        Ok(match self.quantity {
            Quantity::Dominant => norm(Norm::Largest, instance, user),
            Quantity::Resource(r) => norm(Norm::Single(r), instance, user),
            Quantity::Tasks => {
                let weight = user.scalar_weight("for shares of tasks, which are no resource")?;
                let fit = |room: &Vec<Exact>| super::wants(user).fit(|r| room[r].clone());
                let alone: Option<Vec<Exact>> = instance.rooms().iter().map(fit).collect();
                let alone: Exact = alone.unwrap_or_default().iter().sum();
                if alone.is_zero() { Exact::ZERO } else { &Exact::ONE / &(&alone * weight) }
            }
        })
    }
}

fn norm(norm: Norm, instance: &Instance, user: &User) -> Exact {
    norm.exact(instance, user).expect("all norms but powers are exact")
}

/// Computes the tasks of each user on each machine if the users of each stage, in order, rise at their rates (tasks per unit of level).
fn raised(site: &UserMachines, stages: &[Vec<(usize, Exact)>]) -> Vec<Vec<Exact>> {
    let (users, dims) = (site.instance.users(), site.instance.resources().len());
    let mut bounds: Vec<Exact> = site.room.iter().flatten().cloned().collect();
    // The rows that bind a user's level: the tasks that it runs, and its number of tasks.
    let mut binding = vec![Vec::new(); users.len()];
    for &(i, _) in stages.iter().flatten() {
        for bound in [Some(&Exact::ZERO), users[i].tasks.as_ref()].into_iter().flatten() {
            binding[i].push(bounds.len());
            bounds.push(bound.clone());
        }
    }
    let mut polytope = Polytope::new(bounds);
    let mut pairs = Vec::new();
    for &(i, _) in stages.iter().flatten() {
        for m in site.places(i) {
            let takes = site.needs(i).map(|r| (m * dims + r, users[i].demand[r].clone()));
            let runs = [(binding[i][0], Exact::ratio(-1, 1))];
            pairs.push((i, m, polytope.add(takes.chain(runs).collect())));
        }
    }
    let mut tasks = vec![Exact::ZERO; users.len()];
    for stage in stages {
        let mut rising: Vec<&(usize, Exact)> = stage.iter().collect();
        while !rising.is_empty() {
            let bound = rising.iter().flat_map(|(i, rate)| binding[*i].iter().map(|&row| (row, rate.clone())));
            let level = polytope.add(bound.collect());
            polytope.raise(&vec![(level, Exact::ONE)]);
            let gain = polytope.value(level);
            rising.iter().for_each(|(i, rate)| tasks[*i] = &tasks[*i] + &(&gain * rate));
            rising.retain(|(i, _)| binding[*i].iter().all(|&row| !polytope.is_shut(row)));
        }
    }
    let mut spread = vec![vec![Exact::ZERO; site.room.len()]; users.len()];
    for (i, m, column) in pairs {
        // A corner may exceed the number of tasks of a user; the excess is not used.
        let runs = polytope.value(column).min(tasks[i].clone());
        tasks[i] = &tasks[i] - &runs;
        spread[i][m] = runs;
    }
    spread
}
