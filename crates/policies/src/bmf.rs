//! Bottleneck max-min fairness: each user has a used-up resource of which no other user has a larger share.
//!
//! Source: Bonald and Roberts, SIGMETRICS 2015.

use super::{Resolve, Setup, Target, TargetSolver};
use plimsoll_base::error::Result;
use plimsoll_fair::{BmfSolver, Problem};

impl TargetSolver for BmfSolver {
    /// Starts from the levels of the last solution.
    fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()> {
        targets.extend(BmfSolver::solve(self, problem)?.tasks);
        Ok(())
    }
}

/// Serves the user with the lowest running / target under BMF. Errors: those of [`Target::new`].
pub fn bmf(setup: &Setup, resolve: Resolve) -> Result<Target<BmfSolver>> {
    Target::new("bmf", setup, BmfSolver::default(), resolve)
}
