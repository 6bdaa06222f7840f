//! Bundles and demands of users at one instant: the input of envy and sharing incentive.
//!
//! Users are judged by the number of tasks, fractions included, that a bundle would let them run: by [`Wants`], as the
//! property checks do, with the mean demand of the tasks that a user has and no more than those.

use plimsoll_base::units::MAX_DIMS;
use plimsoll_fair::Wants;

/// By how much, relatively, two values must differ to count as different.
///
/// Values come from a few float operations (each off by at most 2^-53), and reports must not call that unfair.
pub const TOLERANCE: f64 = 1e-9;

/// One user at one instant. Entries past the run's own resources are not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserSnapshot {
    /// Its bundle: how much it holds of each resource, as a fraction of the cluster's capacity.
    pub bundle: [f64; MAX_DIMS],
    /// The mean demand of its tasks, as fractions of the cluster's capacity; 0 where it needs none.
    pub demand: [f64; MAX_DIMS],
    /// Its weight per resource (above 0).
    pub weight: [f64; MAX_DIMS],
    /// How many tasks it runs and waits for.
    pub tasks: f64,
    /// Whether it has tasks waiting: only such users may complain.
    pub backlogged: bool,
}

impl UserSnapshot {
    /// Its demand, weight and number of tasks, over the first `dims` resources.
    pub fn wants(&self, dims: usize) -> Wants<'_, f64> {
        Wants { demand: &self.demand[..dims], weight: &self.weight[..dims], tasks: Some(&self.tasks) }
    }

    /// How many tasks its own bundle runs; `None` for a user that needs nothing, and so never complains.
    pub fn own(&self, dims: usize) -> Option<f64> {
        let wants = self.wants(dims);
        wants.needed().next()?;
        wants.runs(|r| self.bundle[r])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tasks_are_those_that_the_scarcest_resource_runs_and_no_more_than_there_are() {
        let mut user = UserSnapshot {
            bundle: [0.5, 0.25, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0],
            demand: [0.0; MAX_DIMS],
            weight: [1.0; MAX_DIMS],
            tasks: 9.0,
            backlogged: true,
        };
        assert_eq!(user.own(3), None);
        user.demand[0] = 0.25;
        assert_eq!(user.own(3), Some(2.0));
        user.demand[1] = 0.25;
        assert_eq!(user.own(3), Some(1.0));
        user.demand[2] = 0.001;
        assert_eq!(user.own(3), Some(0.0));
        assert_eq!(user.own(2), Some(1.0));
        user.bundle[1] = 5.0;
        assert_eq!((user.own(2), UserSnapshot { tasks: 1.5, ..user }.own(2)), (Some(2.0), Some(1.5)));
    }
}
