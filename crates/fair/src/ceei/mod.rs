//! Competitive equilibrium from equal incomes (CEEI): the allocation of greatest Nash welfare.
//!
//! Users of weight `w_i` maximise the product of `x_i^w_i`. For Leontief users (fixed demands per task) this is the bundle that they would
//! buy with incomes `w_i` at prices that clear the market. Sources: Ghodsi et al., NSDI 2011, 5.2;
//! Eisenberg and Gale, 1959; Varian, 1974.

mod kernel;
mod market;
mod rational;
#[cfg(test)]
mod tests;

pub use market::Market;

use super::{Allocation, Exact, Instance, Limit, Mechanism, Problem, Tasks};
use plimsoll_base::error::Result;

/// CEEI of an instance with finite demand: a user that runs all its tasks keeps the rest of its income.
///
/// A solution in fractions (as in all of the DRF paper's examples) is recognised and verified without rounding. Other solutions are
/// certified to [`TOLERANCE`](super::TOLERANCE). Each user has a single weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ceei;

impl Mechanism for Ceei {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let problem = Problem::from_instance(instance)?;
        let mut market = Market::new();
        market.solve(&problem)?;
        let limits = limits(instance, &problem, &market);
        Ok(match rational::recognise(instance, &problem, &market) {
            Some((tasks, prices)) => {
                let prices = Some(prices.iter().map(Exact::to_f64).collect());
                Allocation { prices, ..Allocation::new(Tasks::Exact(tasks), limits) }
            }
            None => {
                // Converts the price of a whole resource to the price of a unit.
                let unit =
                    |(price, capacity): (&f64, &Exact)| if *price > 0.0 { price / capacity.to_f64() } else { 0.0 };
                let prices = Some(market.prices().iter().zip(instance.capacity()).map(unit).collect());
                let tasks = Tasks::Float(market.tasks().to_vec());
                Allocation { prices, certificate: Some(market.certificate()), ..Allocation::new(tasks, limits) }
            }
        })
    }
}

/// Returns the constraint of each user: among the priced resources that it needs, the one with its largest spending.
fn limits(instance: &Instance, problem: &Problem, market: &Market) -> Vec<Limit> {
    let limit = |(i, user)| {
        if let Some(r) = instance.lacking(user) {
            return Limit::Resource(r);
        }
        let paid = |(r, (need, price)): (usize, (f64, &f64))| (r, need * price);
        let most = problem.row(i).zip(market.prices()).enumerate().map(paid).fold(
            (None, 0.0),
            |most: (Option<usize>, f64), (r, paid)| if paid > most.1 { (Some(r), paid) } else { most },
        );
        match most.0 {
            Some(r) if market.tasks()[i] < problem.tasks()[i] => Limit::Resource(r),
            _ => Limit::Demand,
        }
    };
    instance.users().iter().enumerate().map(limit).collect()
}
