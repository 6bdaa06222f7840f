//! Bottleneck max-min fairness: each user has a bottleneck, a used-up resource with no larger share of another user.
//!
//! Source: Bonald and Roberts, SIGMETRICS 2015.

use std::sync::Arc;

use super::{Parsed, PolicyRow, RankOrder, Resolve, Setup, StaticEquivalent, Target, TargetSolver};
use plimsoll_base::checkpoint::Visitor;
use plimsoll_base::error::Result;
use plimsoll_fair::{Bmf, BmfSolver, Problem};

impl TargetSolver for BmfSolver {
    fn has_checkpoints(&self) -> bool {
        true
    }

    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        visitor.value(self)
    }

    /// Starts from the levels of the last solution.
    fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()> {
        targets.extend(BmfSolver::solve(self, problem)?.tasks);
        Ok(())
    }
}

/// `bmf[:RESOLVE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "bmf",
    spelling: "bmf[:RESOLVE]",
    rank: RankOrder::Lowest("running / target"),
    meaning: "Targets that give each user the largest share of a used-up resource; RESOLVE as for ceei.",
    source: "Bonald and Roberts, SIGMETRICS 2015",
    example: "bmf",
    checked: "bmf",
    variants: &[],
    keys: &[],
    read: |given| {
        let (resolve, parameter) = Resolve::behind_colon(given)?;
        let parsed = Parsed::new(parameter, move |setup| Ok(Box::new(bmf(setup, resolve)?)));
        Ok(parsed.like(|_| Ok(StaticEquivalent::Target(Arc::new(Bmf)))))
    },
};

/// Serves the user with the lowest running / target under BMF. Errors: those of [`Target::new`].
pub fn bmf(setup: &Setup, resolve: Resolve) -> Result<Target<BmfSolver>> {
    Target::new("bmf", setup, BmfSolver::default(), resolve)
}
