//! Exact fractions for bottleneck max fairness: computes the allocation from each user's bottleneck and verifies it.

use std::cmp::Ordering;

use super::shape::{Shape, TASKS};
use crate::{Allocation, Exact, Instance, Limit, Number, Tasks, User, linear};

/// Computes the allocation for given bottlenecks: `source` is a resource per user, or [`TASKS`]. Returns `None` if there is no such
/// allocation, or if it is not bottleneck max fair.
///
/// With the sources given, the levels solve linear equations. Shares are then compared with levels rather than with each other, and sums
/// are computed in halves. Both keep the fractions short.
pub(super) fn allocate(instance: &Instance, shape: &Shape, source: &[usize]) -> Option<Allocation> {
    let mut levels = Levels::from_source(instance, shape, source)?;
    let mut tasks: Vec<Exact> = instance.users().iter().map(|user| alone(instance, user)).collect();
    let mut limits: Vec<Limit> = instance.users().iter().map(|user| apart(instance, user)).collect();
    for (i, &s) in shape.names().zip(source) {
        let user = &instance.users()[i];
        (tasks[i], limits[i]) = levels.place(user, s)?;
    }
    if levels.tight {
        // A resource that is used up by chance may also be a bottleneck, with a lower index.
        limits = limits_of(instance, &tasks)?;
    }
    Some(Allocation::new(Tasks::Exact(tasks), limits))
}

/// Returns the tasks of a user that does not compete.
fn alone(instance: &Instance, user: &User) -> Exact {
    match instance.lacking(user) {
        Some(_) => Exact::ZERO,
        None => user.tasks.clone().unwrap_or(Exact::ZERO),
    }
}

/// Returns the limit of a user that does not compete.
pub(super) fn apart(instance: &Instance, user: &User) -> Limit {
    match instance.lacking(user) {
        Some(r) if user.tasks.as_ref().is_none_or(|tasks| !tasks.is_zero()) => Limit::Resource(r),
        _ => Limit::Demand,
    }
}

struct Levels {
    /// The resources that limit a user; `level` has their levels, exactly.
    active: Vec<usize>,
    level: Vec<Exact>,
    /// `ratio[r][s]`: the quotient of two levels and its nearest float.
    ratio: Vec<Vec<(Exact, f64)>>,
    /// Whether another resource is used up as well.
    tight: bool,
}

impl Levels {
    fn from_source(instance: &Instance, shape: &Shape, source: &[usize]) -> Option<Levels> {
        let mut active: Vec<usize> = source.iter().copied().filter(|s| *s != TASKS).collect();
        active.sort_unstable();
        active.dedup();
        let size = active.len();
        // Per resource: the usage per level of each active resource, and the usage of users that run all their tasks.
        let mut usage = Vec::new();
        for r in 0..shape.dims {
            let mut terms: Vec<Vec<Exact>> = vec![Vec::new(); size + 1];
            for (user, s) in shape.names().map(|i| &instance.users()[i]).zip(source) {
                if !user.demand[r].is_zero() {
                    let (column, tasks) = match active.binary_search(s) {
                        Ok(column) => (column, &user.weight[*s] / &user.demand[*s]),
                        Err(_) => (size, user.tasks.clone()?),
                    };
                    terms[column].push(&tasks * &user.demand[r]);
                }
            }
            usage.push(terms.into_iter().map(sum).collect::<Vec<Exact>>());
        }
        let row = |&r: &usize| {
            let right = &instance.capacity()[r] - &usage[r][size];
            usage[r][..size].iter().cloned().chain([right])
        };
        let mut rows: Vec<Exact> = active.iter().flat_map(row).collect();
        let level = linear::solve(&mut rows, size)?;
        if !level.iter().all(Exact::is_positive) {
            return None;
        }
        let mut tight = false;
        for r in (0..shape.dims).filter(|r| active.binary_search(r).is_err()) {
            let by_level = usage[r].iter().zip(&level).map(|(usage, level)| usage * level);
            let used = sum(by_level.chain([usage[r][size].clone()]).collect());
            match used.cmp(&instance.capacity()[r]) {
                Ordering::Less => {}
                Ordering::Equal => tight |= !used.is_zero(),
                Ordering::Greater => return None,
            }
        }
        let over = |a: &Exact, b: &Exact| {
            let ratio = a / b;
            let float = ratio.to_f64();
            (ratio, float)
        };
        let ratio = level.iter().map(|a| level.iter().chain([&Exact::ONE]).map(|b| over(a, b)).collect()).collect();
        Some(Levels { active, level, ratio, tight })
    }

    /// Returns the tasks and the limit of a user that `source` limits, or `None` if another constraint limits it first.
    fn place(&mut self, user: &User, source: usize) -> Option<(Exact, Limit)> {
        let column = self.active.binary_search(&source).unwrap_or(self.active.len());
        // Tasks per level of the source, or the number of tasks.
        let pace = match self.active.get(column) {
            Some(&s) => &user.weight[s] / &user.demand[s],
            None => user.tasks.clone()?,
        };
        let mut limit = Limit::Demand;
        for (row, &r) in self.active.iter().enumerate().rev().filter(|(_, r)| !user.demand[**r].is_zero()) {
            let share = &(&pace * &user.demand[r]) / &user.weight[r];
            match compare(&share, &self.ratio[row][column]) {
                Ordering::Greater => return None,
                Ordering::Equal if column < self.active.len() => limit = Limit::Resource(r),
                _ => {}
            }
        }
        let Some(level) = self.level.get(column) else { return Some((pace, limit)) };
        let tasks = &pace * level;
        match user.tasks.as_ref().map(|all| tasks.cmp(all)) {
            Some(Ordering::Greater) => None,
            Some(Ordering::Equal) => Some((tasks, Limit::Demand)),
            _ => Some((tasks, limit)),
        }
    }
}

/// Compares exactly. The nearest floats suffice if they differ clearly.
fn compare(a: &Exact, (b, near_b): &(Exact, f64)) -> Ordering {
    let near_a = a.to_f64();
    match near_a.partial_cmp(near_b) {
        Some(order) if (near_a - near_b).abs() > 1e-12 * near_b.abs() => order,
        _ => a.cmp(b),
    }
}

/// Returns the sum, added in halves so that few additions have long operands.
fn sum(mut terms: Vec<Exact>) -> Exact {
    while terms.len() > 1 {
        terms = terms.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0].clone(), |a, b| &a + b)).collect();
    }
    terms.pop().unwrap_or(Exact::ZERO)
}

/// Checks the definition in fractions. Returns the constraint of each user (its demand if it runs all its tasks, else the first of its
/// bottlenecks), or `None` if the tasks are not feasible or not bottleneck max fair.
pub(super) fn limits_of(instance: &Instance, tasks: &[Exact]) -> Option<Vec<Limit>> {
    let users = instance.users();
    let mut bottleneck = vec![None; users.len()];
    for (r, capacity) in instance.capacity().iter().enumerate() {
        let needing: Vec<usize> = (0..users.len()).filter(|&i| users[i].demand[r].is_positive()).collect();
        let held: Vec<Exact> = needing.iter().map(|&i| &tasks[i] * &users[i].demand[r]).collect();
        let shares: Vec<Exact> = needing.iter().zip(&held).map(|(&i, held)| held / &users[i].weight[r]).collect();
        match sum(held).cmp(capacity) {
            Ordering::Less => continue,
            Ordering::Equal => {}
            Ordering::Greater => return None,
        }
        let largest = shares.iter().max();
        for (&i, _) in needing.iter().zip(&shares).filter(|(_, share)| Some(*share) == largest) {
            bottleneck[i].get_or_insert(Limit::Resource(r));
        }
    }
    let limit = |(i, user): (usize, &User)| match &user.tasks {
        _ if tasks[i].is_negative() => None,
        Some(all) if tasks[i] > *all => None,
        Some(all) if tasks[i] == *all => Some(Limit::Demand),
        _ => bottleneck[i],
    };
    users.iter().enumerate().map(limit).collect()
}
