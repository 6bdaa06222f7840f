//! Competitive equilibrium from equal incomes: each user could sell its part of the cluster and buy the bundle it likes
//! best.
//!
//! With tasks of fixed proportions this is the allocation of the greatest product of users' tasks (Nash welfare). It is
//! neither strategy-proof nor population-monotone (theorems 4, 5).
//! Source: Ghodsi et al., NSDI 2011, §5.2; Varian 1974.

use super::{Resolve, Setup, Target, TargetSolver};
use plimsoll_base::error::Result;
use plimsoll_fair::{Market, Problem};

impl TargetSolver for Market {
    /// Starts from the prices of the last solution.
    fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()> {
        Market::solve(self, problem)?;
        targets.extend_from_slice(self.tasks());
        Ok(())
    }
}

/// Serves the user with the lowest running / target under CEEI. Errors: those of [`Target::new`].
pub fn ceei(setup: &Setup, resolve: Resolve) -> Result<Target<Market>> {
    Target::new("ceei", setup, Market::new(), resolve)
}
