//! Bottleneck max-min fairness: everybody has a bottleneck, a used-up resource of which nobody has more.
//!
//! An allocation is bottleneck max fair (BMF) when every user runs all its tasks or has a resource that is used up and
//! of which its weighted share `u_ir / w_ir` is the largest. With a level for every resource (infinite where it holds
//! nobody back), `x_i = min(tasks_i, min_r w_ir level_r / d_ir)`; no resource is overfull, and those with a finite
//! level are used up. It is Pareto efficient, and a user holds at least `w_i / sum w` of its bottleneck.
//!
//! One always exists ([`path`] says why). With one weight a user it is unique for one and for two resources, outside
//! of ties: a user that is held back at one resource has no higher a level at the other, so the Jacobian of the usages
//! in the logarithms of the levels has no negative minor. For three resources it need not be: `<1/1.9, .9/2.8, 0>`,
//! `<.9/1.9, 1/2.8, .9/1.9>`, `<0, .9/2.8, 1/1.9>` with capacities 1 have three. The one that is returned then is the
//! end of the path on which everybody's limit on its dominant share rises from 0, or, of instances too large for that
//! and of solves that start from an earlier one, one that Newton's method found.
//!
//! Source: Bonald and Roberts, Multi-resource fairness: objectives, algorithms and performance, SIGMETRICS 2015.

mod newton;
mod path;
mod shape;
#[cfg(test)]
mod tests;

use self::shape::{Position, Shape, TASKS};
use super::{Allocation, Certificate, Exact, Instance, Limit, Mechanism, Number, Problem, TOLERANCE, Tasks, linear};
use crate::error::{Error, Result};

/// Up to how many demands (users times resources) the path is followed before anything else is tried.
const PATH: usize = 4000;
/// Up to how many demands the answer is sought in fractions.
const EXACT: usize = 4000;
/// How near to the best, relatively, a float counts as a bottleneck, when fractions are sought: ever less strictly.
const NEAR: [f64; 3] = [1e-11, 1e-8, 1e-5];

/// Bottleneck max-min fairness, in fractions up to 4000 demands (users times resources).
///
/// Weights may differ by resource. Where a fraction is not found, and for larger instances, tasks are floats with a
/// certificate. Errors: [`Error::NotConverged`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bmf;

impl Mechanism for Bmf {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let shape = Shape::of_instance(instance);
        let mut at = Position::default();
        let found = cold(&shape, &mut at)?;
        if instance.users().len() * instance.resources().len() <= EXACT {
            for near in NEAR {
                if let Some(tasks) = exact(instance, &shape, &bottlenecks(&shape, &at, near))
                    && let Some(limits) = bmf_limits(instance, &tasks)
                {
                    return Ok(Allocation { tasks: Tasks::Exact(tasks), limits, prices: None, certificate: None });
                }
            }
        }
        Ok(Allocation {
            tasks: Tasks::Float(shape.tasks(&at.units)),
            limits: float_limits(instance, &shape, &at),
            prices: None,
            certificate: Some(Certificate { residual: found.residual, gap: 0.0 }),
        })
    }
}

/// A solution in floats.
#[derive(Clone, Debug, PartialEq)]
pub struct BmfSolution {
    /// How many tasks each user runs.
    pub tasks: Vec<f64>,
    /// By how much the definition is missed, relative to capacities, tasks and levels: at most [`TOLERANCE`].
    pub certificate: Certificate,
    /// Steps of the search, and pieces of the path if it was followed.
    pub steps: usize,
}

/// Solves in floats, from where the last solution was: for what changes little and often.
///
/// Cost: O(users · resources) a step, a few steps a change.
#[derive(Clone, Debug, Default)]
pub struct BmfSolver {
    levels: Vec<f64>,
    at: Position,
}

impl BmfSolver {
    /// A bottleneck max fair allocation. Errors: [`Error::NotConverged`]; the next solve then starts anew.
    pub fn solve(&mut self, problem: &Problem) -> Result<BmfSolution> {
        let shape = Shape::of(problem);
        let mut levels = std::mem::take(&mut self.levels);
        let warm = match levels.len() == shape.dims {
            true => newton::search(&shape, &mut levels, &mut self.at),
            false => None,
        };
        let warm = warm.map(|steps| (steps, shape.residual(&self.at.units))).filter(|(_, off)| *off <= TOLERANCE);
        let found = match warm {
            Some((steps, residual)) => Found { levels, residual, steps },
            None => cold(&shape, &mut self.at)?,
        };
        self.levels = found.levels;
        let certificate = Certificate { residual: found.residual, gap: 0.0 };
        Ok(BmfSolution { tasks: shape.tasks(&self.at.units), certificate, steps: found.steps })
    }
}

struct Found {
    levels: Vec<f64>,
    residual: f64,
    steps: usize,
}

/// Solves from nothing: small shapes by the path and then Newton's method, large ones the other way round.
fn cold(shape: &Shape, at: &mut Position) -> Result<Found> {
    let mut steps = 0;
    let mut least = f64::INFINITY;
    let large = shape.users * shape.dims > PATH;
    for by_path in [!large, large] {
        let begin = if by_path { path::follow(shape) } else { Some((newton::start(shape), 0)) };
        let Some((mut levels, pieces)) = begin else { continue };
        let searched = newton::search(shape, &mut levels, at);
        steps += pieces + searched.unwrap_or(0);
        let residual = shape.residual(&at.units);
        least = least.min(residual);
        if residual <= TOLERANCE {
            return Ok(Found { levels, residual, steps });
        }
    }
    let problem = format!("somebody lacks {least:e} of its tasks or of the largest share of a used-up resource");
    Err(Error::NotConverged { solver: "bmf".to_owned(), problem })
}

/// What holds each user of the shape back: of several within `near`, its tasks, else the lowest resource.
fn bottlenecks(shape: &Shape, at: &Position, near: f64) -> Vec<usize> {
    let full = |r: usize| at.usage[r] >= 1.0 - near;
    let level = |i: usize, r: usize| at.units[i] / shape.per_level(r)[i];
    let highest: Vec<f64> =
        (0..shape.dims).map(|r| (0..shape.users).map(|i| level(i, r)).fold(0.0, f64::max)).collect();
    let holds = |i: usize, r: usize| {
        !shape.covered[r] && full(r) && level(i, r) > 0.0 && level(i, r) >= highest[r] * (1.0 - near)
    };
    let of = |i: usize| match at.units[i] >= shape.cap[i] * (1.0 - near) {
        true => TASKS,
        false => (0..shape.dims).find(|&r| holds(i, r)).unwrap_or(at.source[i]),
    };
    (0..shape.users).map(of).collect()
}

/// The tasks in fractions if these are the bottlenecks; `None` if that determines no levels.
fn exact(instance: &Instance, shape: &Shape, source: &[usize]) -> Option<Vec<Exact>> {
    let users = instance.users();
    let mut active: Vec<usize> = source.iter().copied().filter(|s| *s != TASKS).collect();
    active.sort_unstable();
    active.dedup();
    let width = active.len() + 1;
    let mut rows = vec![Exact::ZERO; active.len() * width];
    for (row, &r) in rows.chunks_exact_mut(width).zip(&active) {
        row[width - 1] = instance.capacity()[r].clone();
    }
    for (user, &s) in shape.names().map(|i| &users[i]).zip(source) {
        // Tasks at level 1 of the source, or all of them.
        let (column, tasks) = match active.binary_search(&s) {
            Ok(column) => (column, &user.weight[s] / &user.demand[s]),
            Err(_) => (width - 1, user.tasks.clone()?),
        };
        for (row, &r) in rows.chunks_exact_mut(width).zip(&active).filter(|(_, r)| !user.demand[**r].is_zero()) {
            let usage = &tasks * &user.demand[r];
            row[column] = if column < width - 1 { &row[column] + &usage } else { &row[column] - &usage };
        }
    }
    let levels = linear::solve(&mut rows, active.len())?;
    let all = |user: &super::User| match instance.lacking(user) {
        Some(_) => Some(Exact::ZERO),
        None => user.tasks.clone(),
    };
    let mut tasks: Vec<Option<Exact>> = users.iter().map(all).collect();
    for (i, &s) in shape.names().zip(source) {
        if let Ok(column) = active.binary_search(&s) {
            tasks[i] = Some(&(&users[i].weight[s] / &users[i].demand[s]) * &levels[column]);
        }
    }
    tasks.into_iter().collect()
}

/// Checks the definition: what keeps each user from more (of several bottlenecks the lowest), if the allocation is
/// feasible and bottleneck max fair; otherwise `None`.
pub fn bmf_limits(instance: &Instance, tasks: &[Exact]) -> Option<Vec<Limit>> {
    let (users, capacity) = (instance.users(), instance.capacity());
    let mut bottleneck = vec![None; users.len()];
    for (r, capacity) in capacity.iter().enumerate() {
        let held = || (0..users.len()).filter(|&i| users[i].demand[r].is_positive());
        let usage = held().fold(Exact::ZERO, |sum, i| &sum + &(&tasks[i] * &users[i].demand[r]));
        if usage > *capacity {
            return None;
        }
        if usage < *capacity {
            continue;
        }
        let shares: Vec<(usize, Exact)> =
            held().map(|i| (i, &(&tasks[i] * &users[i].demand[r]) / &users[i].weight[r])).collect();
        let largest = shares.iter().map(|(_, share)| share).max().cloned();
        for (i, _) in shares.iter().filter(|(_, share)| Some(share) == largest.as_ref()) {
            bottleneck[*i].get_or_insert(Limit::Resource(r));
        }
    }
    let limit = |(i, user): (usize, &super::User)| match &user.tasks {
        _ if tasks[i].is_negative() => None,
        Some(all) if tasks[i] > *all => None,
        Some(all) if tasks[i] == *all => Some(Limit::Demand),
        _ => bottleneck[i],
    };
    users.iter().enumerate().map(limit).collect()
}

fn float_limits(instance: &Instance, shape: &Shape, at: &Position) -> Vec<Limit> {
    let apart = |user: &super::User| match (instance.lacking(user), &user.tasks) {
        (Some(r), tasks) if tasks.as_ref().is_none_or(|tasks| !tasks.is_zero()) => Limit::Resource(r),
        _ => Limit::Demand,
    };
    let mut limits: Vec<Limit> = instance.users().iter().map(apart).collect();
    for (i, source) in shape.names().zip(bottlenecks(shape, at, TOLERANCE)) {
        limits[i] = if source == TASKS { Limit::Demand } else { Limit::Resource(source) };
    }
    limits
}
