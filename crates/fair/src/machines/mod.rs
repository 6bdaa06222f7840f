//! Allocations of users on different machines, where tasks may be restricted to some of them.
//!
//! A user's tasks may be spread over the machines in any way. The equal machines of one entry of the instance are treated as one machine
//! with their total capacity, which is equivalent to filling them equally.

mod leximin;
mod psdsf;
mod simplex;
mod turns;

pub use leximin::{Across, Quantity};
pub use psdsf::PsDsf;

use super::{Allocation, Exact, Instance, Limit, Number, Tasks, Wants};
use plimsoll_base::error::{Error, Result};

/// The limit on pairs of a user and an entry of machines that it may run on. Above it, fractions become long and take minutes.
const MOST_PAIRS: usize = 500;

/// An instance with the number of tasks that each user could run alone on each machine.
struct UserMachines<'a> {
    instance: &'a Instance,
    /// The total capacity of each entry of machines; a pool is one entry.
    room: Vec<Vec<Exact>>,
    /// The number of tasks that a user could run alone on each entry: 0 if it may not run there, `None` if it needs no resource.
    alone: Vec<Option<Vec<Exact>>>,
}

impl<'a> UserMachines<'a> {
    /// Computes the derived data. Errors: an instance that is too large for fractions.
    fn new(instance: &'a Instance) -> Result<UserMachines<'a>> {
        let room = instance.rooms();
        let mut pairs = 0;
        let mut alone = |(at, user): (usize, &super::User)| {
            let each = room.iter().enumerate().map(|(m, room)| {
                let fit = wants(user).fit(|r| room[r].clone())?;
                pairs += usize::from(instance.may_run(at, m));
                Some(if instance.may_run(at, m) { fit } else { Exact::ZERO })
            });
            each.collect()
        };
        let alone = instance.users().iter().enumerate().map(&mut alone).collect();
        if pairs > MOST_PAIRS {
            let expected = format!("at most {MOST_PAIRS}; write equal machines as one [[machine]] with a count");
            return Err(Error::plan("instance", format!("{pairs} pairs of a user and a machine"), expected));
        }
        Ok(UserMachines { instance, room, alone })
    }

    /// Returns the machines that can run tasks of a user; none if it has no tasks.
    fn places(&self, user: usize) -> impl Iterator<Item = usize> + '_ {
        let wants = self.instance.users()[user].tasks.as_ref().is_none_or(Exact::is_positive);
        let alone = self.alone[user].as_deref().filter(|_| wants).unwrap_or_default();
        (0..alone.len()).filter(|&m| alone[m].is_positive())
    }

    /// Returns the resources that a user needs.
    fn needs(&self, user: usize) -> impl Iterator<Item = usize> + '_ {
        let demand = &self.instance.users()[user].demand;
        (0..demand.len()).filter(|&r| demand[r].is_positive())
    }

    /// Builds the allocation from the tasks of each user on each machine. Users without demand run all their tasks.
    fn allocation(&self, mut spread: Vec<Vec<Exact>>) -> Allocation {
        let users = self.instance.users();
        for (i, user) in users.iter().enumerate().filter(|(i, _)| self.alone[*i].is_none()) {
            let first = (0..self.room.len()).find(|&m| self.instance.may_run(i, m));
            let all = user.tasks.clone().unwrap_or(Exact::ZERO);
            first.into_iter().for_each(|m| spread[i][m] = all.clone());
        }
        let tasks: Vec<Exact> = spread.iter().map(|on| on.iter().sum()).collect();
        let limits = (0..users.len()).map(|i| self.limit(i, &tasks, &spread)).collect();
        let spread = (!self.instance.machines().is_empty()).then_some(spread);
        Allocation { spread, ..Allocation::new(Tasks::Exact(tasks), limits) }
    }

    /// Returns the limit of a user: its demand, a resource that is used up on all machines that it may use, or [`Limit::Machines`] if the
    /// used-up resource differs by machine.
    fn limit(&self, user: usize, tasks: &[Exact], spread: &[Vec<Exact>]) -> Limit {
        if self.instance.users()[user].tasks.as_ref() == Some(&tasks[user]) {
            return Limit::Demand;
        }
        let mine = || (0..self.room.len()).filter(|&m| self.instance.may_run(user, m));
        let everywhere = |r: &usize| mine().all(|m| self.left(m, *r, spread).is_zero());
        self.needs(user).find(everywhere).map_or(Limit::Machines, Limit::Resource)
    }

    /// Returns the unused amount of a resource on a machine.
    fn left(&self, machine: usize, r: usize, spread: &[Vec<Exact>]) -> Exact {
        let used = |(user, on): (&super::User, &Vec<Exact>)| &user.demand[r] * &on[machine];
        let used: Vec<Exact> = self.instance.users().iter().zip(spread).map(used).collect();
        &self.room[machine][r] - &used.iter().sum()
    }
}

fn wants(user: &super::User) -> Wants<'_, Exact> {
    Wants { demand: &user.demand, weight: &user.weight, tasks: user.tasks.as_ref() }
}

#[cfg(test)]
mod tests;
