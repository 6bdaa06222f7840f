//! The level that max-min mechanisms raise: a norm of a user's shares of several resources.

use super::{Exact, Instance, Number, User};
use plimsoll_base::error::{Error, Result};

/// The norm of a user's vector of weighted shares `d_r / (c_r w_r)`.
///
/// The family ranges from asset fairness (`p = 1`, the sum) to DRF (`p` infinite, the largest share); the values of `p` between them also
/// count the lesser resources. Sources: Ghodsi et al., NSDI 2011, 4.1, 4.3 and 5.1; Joe-Wong et al., INFOCOM 2012, for the families
/// between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    /// The largest share: dominant shares.
    Largest,
    /// The sum of the shares: asset shares.
    Sum,
    /// The p-norm, `p` at least 1 and finite.
    Power(f64),
    /// The share of this resource alone.
    Single(usize),
}

impl Norm {
    /// Creates a p-norm: [`Norm::Sum`] for 1, [`Norm::Largest`] for infinity. Errors: [`Error::Plan`] for less than 1 or NaN.
    pub fn power(p: f64) -> Result<Norm> {
        match p {
            1.0 => Ok(Norm::Sum),
            p if p == f64::INFINITY => Ok(Norm::Largest),
            p if p > 1.0 => Ok(Norm::Power(p)),
            _ => Err(Error::plan("pnorm", p, "a number of at least 1, or inf")),
        }
    }

    /// Returns the norm of one task of a user in fractions, or `None` for a [`Norm::Power`]. Resources of capacity 0 do not count.
    pub fn exact(&self, instance: &Instance, user: &User) -> Option<Exact> {
        let capacity = instance.capacity();
        let share = |r: usize| &user.demand[r] / &(&capacity[r] * &user.weight[r]);
        let mut shares = (0..capacity.len()).filter(|&r| !capacity[r].is_zero()).map(|r| (r, share(r)));
        Some(match self {
            Norm::Largest => shares.map(|(_, share)| share).max().unwrap_or(Exact::ZERO),
            Norm::Sum => shares.fold(Exact::ZERO, |sum, (_, share)| &sum + &share),
            Norm::Single(r) => shares.find(|(other, _)| other == r).map_or(Exact::ZERO, |(_, share)| share),
            Norm::Power(_) => return None,
        })
    }

    /// Returns the norm of a vector of weighted shares. Shares are scaled by the largest, so that no power overflows or underflows.
    pub fn float(&self, shares: impl Iterator<Item = f64> + Clone) -> f64 {
        let largest = shares.clone().fold(0.0, f64::max);
        match self {
            Norm::Largest => largest,
            Norm::Sum => shares.sum(),
            Norm::Single(r) => shares.clone().nth(*r).unwrap_or(0.0),
            Norm::Power(_) if largest == 0.0 => 0.0,
            Norm::Power(p) => largest * shares.map(|share| (share / largest).powf(*p)).sum::<f64>().powf(1.0 / p),
        }
    }
}
