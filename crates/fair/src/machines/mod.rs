//! Allocations of users on machines that differ, where tasks run on some of them only.
//!
//! A user's tasks may be spread over the machines in any way. Equal machines of one entry of the instance count as one
//! as large as they are together, which is to fill them alike.

mod leximin;
mod psdsf;
mod simplex;
mod turns;

pub use leximin::{Across, Quantity};
pub use psdsf::PsDsf;

use super::{Allocation, Exact, Instance, Limit, Number, Tasks, Wants};
use plimsoll_base::error::{Error, Result};

/// The most pairs of a user and an entry of machines that it may run on: beyond, fractions grow long and take minutes.
const MOST_PAIRS: usize = 500;

/// An instance as its users see it.
struct UserMachines<'a> {
    instance: &'a Instance,
    /// The capacity of each entry of machines, all its machines together; a pool is one entry.
    room: Vec<Vec<Exact>>,
    /// How many tasks a user could run alone on each: 0 where it may not, `None` if it needs nothing.
    alone: Vec<Option<Vec<Exact>>>,
}

impl<'a> UserMachines<'a> {
    /// Errors: an instance that is too large for fractions.
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

    /// Where a user can run tasks, if it wants any.
    fn places(&self, user: usize) -> impl Iterator<Item = usize> + '_ {
        let wants = self.instance.users()[user].tasks.as_ref().is_none_or(Exact::is_positive);
        let alone = self.alone[user].as_deref().filter(|_| wants).unwrap_or_default();
        (0..alone.len()).filter(|&m| alone[m].is_positive())
    }

    /// The resources that a user needs.
    fn needs(&self, user: usize) -> impl Iterator<Item = usize> + '_ {
        let demand = &self.instance.users()[user].demand;
        (0..demand.len()).filter(|&r| demand[r].is_positive())
    }

    /// Builds the allocation from the tasks of each user on each machine; users that need nothing run all their tasks.
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

    /// Returns the limit of a user: its demand, a resource that is used up on all machines that it may use, or a used-up resource per
    /// machine.
    fn limit(&self, user: usize, tasks: &[Exact], spread: &[Vec<Exact>]) -> Limit {
        if self.instance.users()[user].tasks.as_ref() == Some(&tasks[user]) {
            return Limit::Demand;
        }
        let mine = || (0..self.room.len()).filter(|&m| self.instance.may_run(user, m));
        let everywhere = |r: &usize| mine().all(|m| self.left(m, *r, spread).is_zero());
        self.needs(user).find(everywhere).map_or(Limit::Machines, Limit::Resource)
    }

    /// The unused amount of a resource on a machine.
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
