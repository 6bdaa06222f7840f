//! Competitive equilibrium from equal incomes: each user could sell its part of the cluster and buy the bundle of resources that it
//! prefers.
//!
//! With tasks of fixed proportions this is the allocation with the greatest product of users' tasks (Nash welfare). It is neither
//! strategy-proof nor population-monotone (theorems 4, 5). Source: Ghodsi et al., NSDI 2011, §5.2; Varian 1974.

use std::sync::Arc;

use super::{Parsed, PolicyRow, RankOrder, Resolve, Setup, StaticEquivalent, Target, TargetSolver};
use plimsoll_base::checkpoint::Visitor;
use plimsoll_base::error::Result;
use plimsoll_fair::{Ceei, Market, Problem};

impl TargetSolver for Market {
    fn has_checkpoints(&self) -> bool {
        true
    }

    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        visitor.value(self)
    }

    /// Starts from the prices of the last solution.
    fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()> {
        Market::solve(self, problem)?;
        targets.extend_from_slice(self.tasks());
        Ok(())
    }
}

/// `ceei[:RESOLVE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "ceei",
    spelling: "ceei[:RESOLVE]",
    rank: RankOrder::Lowest("running / target"),
    meaning: "Targets of the greatest product of users' tasks; RESOLVE: change, every:SPAN, tolerance:X.",
    source: "Ghodsi et al., NSDI 2011, 5.2",
    example: "ceei",
    checked: "ceei",
    variants: &[],
    keys: &[],
    read: |given| {
        let (resolve, parameter) = Resolve::behind_colon(given)?;
        let parsed = Parsed::new(parameter, move |setup| Ok(Box::new(ceei(setup, resolve)?)));
        Ok(parsed.like(|_| Ok(StaticEquivalent::Target(Arc::new(Ceei)))))
    },
};

/// Serves the user with the lowest running / target under CEEI. Errors: those of [`Target::new`].
pub fn ceei(setup: &Setup, resolve: Resolve) -> Result<Target<Market>> {
    Target::new("ceei", setup, Market::new(), resolve)
}
