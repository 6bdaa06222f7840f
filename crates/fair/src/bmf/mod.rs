//! Bottleneck max-min fairness: each user has a bottleneck, a used-up resource of which no other user has more.
//!
//! With a level for each resource (infinite where it limits no user), `x_i = min(tasks_i, min_r w_ir level_r / d_ir)`. No resource is
//! overfull, and resources with a finite level are used up. [`path`] explains why such levels always exist and is guaranteed to find them,
//! [`newton`] finds them fast, [`fractions`] makes them exact.
//!
//! Consider the Jacobian of the usages with respect to the logarithms of the levels, with each row divided by its level. With one weight
//! per user, a user's weighted share of a resource is at most the resource's level, so no entry exceeds the diagonal entry of its column.
//! For two resources no minor is negative, and except for ties the solution is unique (Gale and Nikaido, Mathematische Annalen 159, 1965).
//! A minor of three rows may be negative.
//!
//! Source: Bonald and Roberts, Multi-resource fairness: objectives, algorithms and performance, SIGMETRICS 2015.

mod fractions;
mod newton;
mod path;
mod shape;

use self::shape::{Position, Shape, TASKS};
use super::{Allocation, Certificate, Exact, Instance, Limit, Mechanism, Problem, TOLERANCE, Tasks};
use plimsoll_base::error::{Error, Result};

/// The largest number of demands (users times resources) for which the path algorithm runs first.
const PATH: usize = 4000;
/// The largest number of demands for which the answer is computed in fractions.
const EXACT: usize = 1000;
/// The relative distances from the maximum at which a float counts as a bottleneck when fractions are computed, tried in this order.
const NEAR: [f64; 3] = [1e-11, 1e-8, 1e-5];

/// Bottleneck max-min fairness (BMF): every user runs all its tasks or has a bottleneck, a used-up resource of which its weighted share
/// `u_ir / w_ir` is the largest.
///
/// BMF is Pareto efficient. With one weight per user, each user is allocated at least `w_i / sum w` of its bottleneck. Weights may differ
/// by resource.
///
/// Such an allocation always exists. It is unique for one and two resources with one weight per user. For three resources there may be
/// several. For example, the demands `<10, 9, 0>`, `<9, 10, 9>`, `<0, 9, 10>` with capacities `<19, 28, 19>` have three allocations, with
/// `(1, 1, 1)`, `(28/27, 14/15, 28/27)` and `(19/20, 19/18, 19/20)` tasks. The answer is then the end of the path along which the common
/// limit on weighted dominant shares rises from 0 (in this example the last of the three). With more than 4000 demands (users times
/// resources) the answer is the allocation that Newton's method finds.
///
/// Up to 1000 demands, tasks are fractions. For larger instances, or if no fraction is found, they are floats with a certificate. Errors:
/// [`Error::NotConverged`]. Source: Bonald and Roberts, SIGMETRICS 2015.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bmf;

impl Mechanism for Bmf {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let shape = Shape::of_instance(instance);
        let mut at = Position::default();
        let found = cold(&shape, &mut at)?;
        if instance.users().len() * instance.resources().len() <= EXACT {
            for near in NEAR {
                let source = bottlenecks(&shape, &at, near);
                if let Some(allocation) = fractions::allocate(instance, &shape, &source) {
                    return Ok(allocation);
                }
            }
        }
        let (tasks, limits) = (Tasks::Float(shape.tasks(&at.units)), float_limits(instance, &shape, &at));
        let certificate = Some(Certificate { residual: found.residual, gap: 0.0 });
        Ok(Allocation { certificate, ..Allocation::new(tasks, limits) })
    }
}

/// A solution in floats.
#[derive(Clone, Debug, PartialEq)]
pub struct BmfSolution {
    /// The number of tasks that each user runs.
    pub tasks: Vec<f64>,
    /// The violation of the definition, relative to capacities, tasks and levels: at most [`TOLERANCE`].
    pub certificate: Certificate,
    /// The steps of the search, and the pieces of the path if it was followed.
    pub steps: usize,
}

/// A solver in floats that starts from its previous solution, for instances that change often and by little.
///
/// The first solution is the one of [`Bmf`]. If several solutions exist, later ones may depend on earlier ones. Cost: O(users · resources)
/// per step, a few steps per change.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct BmfSolver {
    levels: Vec<f64>,
    shape: Shape,
    at: Position,
}

impl BmfSolver {
    /// Computes a bottleneck max fair allocation. Errors: [`Error::NotConverged`]; the next solve then starts without the previous levels.
    pub fn solve(&mut self, problem: &Problem) -> Result<BmfSolution> {
        let shape = &mut self.shape;
        shape.set(problem);
        let mut levels = std::mem::take(&mut self.levels);
        let warm = match levels.len() == shape.dims {
            true => newton::search(shape, &mut levels, &mut self.at),
            false => None,
        };
        let warm = warm.map(|steps| (steps, shape.residual(&self.at.units))).filter(|(_, off)| *off <= TOLERANCE);
        let found = match warm {
            Some((steps, residual)) => SearchOutcome { levels, residual, steps },
            None => cold(shape, &mut self.at)?,
        };
        self.levels = found.levels;
        let certificate = Certificate { residual: found.residual, gap: 0.0 };
        Ok(BmfSolution { tasks: shape.tasks(&self.at.units), certificate, steps: found.steps })
    }
}

struct SearchOutcome {
    levels: Vec<f64>,
    residual: f64,
    steps: usize,
}

/// Solves without a previous solution. Small shapes try the path algorithm before Newton's start, large ones after it.
fn cold(shape: &Shape, at: &mut Position) -> Result<SearchOutcome> {
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
            return Ok(SearchOutcome { levels, residual, steps });
        }
    }
    let problem = format!("a user lacks {least:e} of its tasks or of the largest share of a used-up resource");
    Err(Error::NotConverged { solver: "bmf".to_owned(), problem })
}

/// Returns the constraint of each user of the shape. Of several constraints within `near`, its tasks come first, then the lowest resource.
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

/// Checks the definition in fractions. Returns the constraint of each user (its demand if it runs all its tasks, else the first of its
/// bottlenecks), or `None` if the tasks are not feasible or not bottleneck max fair.
pub fn bmf_limits(instance: &Instance, tasks: &[Exact]) -> Option<Vec<Limit>> {
    fractions::limits_of(instance, tasks)
}

fn float_limits(instance: &Instance, shape: &Shape, at: &Position) -> Vec<Limit> {
    let apart = |user| fractions::apart(instance, user);
    let mut limits: Vec<Limit> = instance.users().iter().map(apart).collect();
    for (i, source) in shape.names().zip(bottlenecks(shape, at, TOLERANCE)) {
        limits[i] = if source == TASKS { Limit::Demand } else { Limit::Resource(source) };
    }
    limits
}

#[cfg(test)]
mod tests;
