//! Feasibility: nothing is given that is not there, and nobody is given less than nothing.
//!
//! Slots break it: a task takes one slot whatever it needs, so a machine may be filled beyond its capacity (Ghodsi et
//! al., NSDI 2011, section 7.3). The other properties are asked only of allocations that can exist.

use super::view::{Gap, Measured, View, one, widest};

/// By which part of its capacity the fullest resource is overfull. Never `None`.
pub(super) fn gap<N: Measured>(view: &View<N>) -> Option<Gap<N>> {
    // NaN is not finite: a mechanism of somebody's own may return it.
    let senseless = |tasks: &N| *tasks < N::zero() || !tasks.float().is_finite();
    if let Some(user) = view.tasks.iter().position(senseless) {
        return Some(Gap {
            margin: one(),
            loser: Some(user),
            other: None,
            worse: N::zero(),
            better: view.tasks[user].clone(),
        });
    }
    let bundles = view.bundles();
    widest((0..view.dims()).map(|r| {
        let used = bundles.iter().fold(N::zero(), |sum, bundle| sum.plus(&bundle[r]));
        let capacity = view.capacity[r].clone();
        let margin = match (capacity.is_zero(), used.is_zero()) {
            (false, _) => used.minus(&capacity).over(&capacity),
            (true, true) => N::zero(),
            (true, false) => one(),
        };
        Gap { margin, loser: None, other: Some(r), worse: capacity, better: used }
    }))
}
