//! Who holds and wants what at one instant: what envy and sharing incentive are computed from.
//!
//! Users are judged by Leontief value: the number of tasks, fractions included, that a bundle would let them run.

use crate::units::MAX_DIMS;

/// By how much, relatively, two values must differ to count as different.
///
/// Values come from a few float operations (each off by at most 2^-53), and reports must not call that unfair.
pub const TOLERANCE: f64 = 1e-9;

/// One user at one instant. Entries past the run's own resources are not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserSnapshot {
    /// What it holds of each resource, as a fraction of the cluster's capacity.
    pub bundle: [f64; MAX_DIMS],
    /// What one of its tasks needs on average, as fractions of the cluster's capacity; 0 where it needs none.
    pub demand: [f64; MAX_DIMS],
    /// Its weight per resource (above 0).
    pub weight: [f64; MAX_DIMS],
    /// Whether it has tasks waiting: only such users may complain.
    pub backlogged: bool,
}

impl UserSnapshot {
    /// The Leontief value v(b) = min_j b_j / d_j over the resources the user needs: how many of its tasks `bundle` runs.
    ///
    /// Units: fractions of capacity → tasks. `None` for a user that needs nothing (its value has no bound).
    pub fn value(&self, bundle: &[f64; MAX_DIMS], dims: usize) -> Option<f64> {
        self.needed(dims).map(|j| bundle[j] / self.demand[j]).reduce(f64::min)
    }

    /// The resources that the user needs.
    pub(super) fn needed(&self, dims: usize) -> impl Iterator<Item = usize> + '_ {
        (0..dims).filter(|&j| self.demand[j] > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_the_tasks_that_the_scarcest_resource_runs() {
        let mut user = UserSnapshot {
            bundle: [0.0; MAX_DIMS],
            demand: [0.0; MAX_DIMS],
            weight: [1.0; MAX_DIMS],
            backlogged: true,
        };
        let bundle = [0.5, 0.25, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(user.value(&bundle, 3), None);
        user.demand[0] = 0.25;
        assert_eq!(user.value(&bundle, 3), Some(2.0));
        user.demand[1] = 0.25;
        assert_eq!(user.value(&bundle, 3), Some(1.0));
        user.demand[2] = 0.001;
        assert_eq!(user.value(&bundle, 3), Some(0.0));
        assert_eq!(user.value(&bundle, 2), Some(1.0));
    }
}
