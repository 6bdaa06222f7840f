//! Feasibility: no capacity is exceeded, and no user gets a negative amount.
//!
//! Slots violate it: a task takes one slot whatever it needs, so a machine may be filled beyond its capacity (Ghodsi et al., NSDI 2011,
//! section 7.3). The other properties are defined for feasible allocations only.

use super::view::{Gap, InstanceView, Measured, one, widest};

/// Returns the excess of the fullest resource, as a part of its capacity, or an excess of 1 if a user has a negative or non-finite number
/// of tasks. Never `None`.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    // NaN is not finite: a user-defined mechanism may return it.
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
