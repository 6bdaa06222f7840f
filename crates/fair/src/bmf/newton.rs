//! The fast algorithm for bottleneck max fairness: guess each user's bottleneck, solve for the levels, repeat.

use super::shape::{Position, Shape};
use crate::linear;

/// The deviation of a resource's usage from 1 at which the search stops. The residual is certified separately.
const CLOSE: f64 = 1e-13;
/// The deviation from 1 that is accepted as rounding if a further step does not reduce it.
const SETTLED: f64 = 1e-10;
/// The step limit of the search. About a dozen steps are common; a cycle would not end.
const STEPS: usize = 60;
/// The number of steps without progress after which a sweep follows.
const PATIENCE: usize = 4;

/// Moves `levels` to a solution. Returns the number of steps, or `None` if no solution was found.
///
/// Newton's method on a piecewise linear system. For a fixed assignment of users to bottlenecks, linear equations give the levels at which
/// all used-up resources are just used up. A resource that becomes overfull gets the level that fits; a resource that limits no user loses
/// its level. If the method cycles, a sweep moves each level in turn half way (by ratio) to its best response to the others.
pub(super) fn search(shape: &Shape, levels: &mut [f64], at: &mut Position) -> Option<usize> {
    let mut others = Vec::new();
    let mut best = f64::INFINITY;
    let mut stalled = 0;
    for (level, _) in levels.iter_mut().zip(&shape.covered).filter(|(_, covered)| **covered) {
        *level = f64::INFINITY;
    }
    for step in 1..=STEPS {
        shape.place(levels, at);
        let missed = release(levels, at);
        stalled = if missed < best { 0 } else { stalled + 1 };
        if missed <= CLOSE || (missed <= SETTLED && stalled > 0) {
            return Some(step);
        }
        best = best.min(missed);
        let overfull = |r: &usize| at.held[*r] == 0 && at.usage[*r] > 1.0 + CLOSE;
        // The lowest resource first, because the others may fit afterwards.
        if let Some(r) = (0..shape.dims).filter(|&r| !shape.covered[r]).find(overfull) {
            levels[r] = shape.best_level(r, levels, &mut others);
        } else if stalled >= PATIENCE || !solve(shape, levels, at) {
            sweep(shape, levels, &mut others);
            stalled = 0;
        }
    }
    None
}

/// Returns start levels: each resource in turn gets the level that fits the other levels.
pub(super) fn start(shape: &Shape) -> Vec<f64> {
    let mut others = Vec::new();
    let mut levels = vec![f64::INFINITY; shape.dims];
    for _ in 0..2 {
        for r in (0..shape.dims).filter(|&r| !shape.covered[r]) {
            levels[r] = shape.best_level(r, &levels, &mut others);
        }
    }
    levels
}

/// Drops the levels of resources that limit no user. Returns the largest deviation: the distance of the usage from 1 for a resource that
/// limits users, and the excess above 1 for any other resource.
fn release(levels: &mut [f64], at: &Position) -> f64 {
    let mut missed = 0.0f64;
    for (r, level) in levels.iter_mut().enumerate() {
        missed = missed.max(match at.held[r] {
            0 => at.usage[r] - 1.0,
            _ => (at.usage[r] - 1.0).abs(),
        });
        if at.held[r] == 0 {
            *level = f64::INFINITY;
        }
    }
    missed
}

/// Computes the levels at which all limiting resources are used up, for the current assignment. Returns `false` if there are none.
fn solve(shape: &Shape, levels: &mut [f64], at: &Position) -> bool {
    let active: Vec<usize> = (0..shape.dims).filter(|&r| at.held[r] > 0).collect();
    let size = active.len();
    let mut rows = Vec::with_capacity(size * (size + 1));
    for &r in &active {
        let slopes = &at.slopes[r * shape.dims..][..shape.dims];
        rows.extend(active.iter().map(|&s| slopes[s]));
        // Solving for differences lets the last digits converge.
        rows.push(1.0 - at.usage[r]);
    }
    let Some(steps) = linear::solve(&mut rows, size) else { return false };
    if active.iter().zip(&steps).any(|(&r, step)| !(levels[r] + step > 0.0 && step.is_finite())) {
        return false;
    }
    for (&r, step) in active.iter().zip(steps) {
        levels[r] += step;
    }
    true
}

fn sweep(shape: &Shape, levels: &mut [f64], others: &mut Vec<f64>) {
    for r in (0..shape.dims).filter(|&r| !shape.covered[r]) {
        let best = shape.best_level(r, levels, others);
        levels[r] = if best.is_finite() && levels[r].is_finite() { (levels[r] * best).sqrt() } else { best };
    }
}
