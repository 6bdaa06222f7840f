//! The rules by which a task finds its machine, and their exact scores.
//!
//! Scores are integers and ties go to the lower index. In the sums `r` runs over resources, `f_r` is the amount that is
//! free on the machine before the task comes, `c_r` the cluster's capacity, `m_r` the machine's, `d_r` the task's
//! demand.

use super::index::Index;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MAX_DIMS, Resources};

/// How a task finds its machine among those that it fits on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// There are no machines: one pool of everything.
    #[default]
    Pooled,
    /// The machine of lowest index.
    FirstFit,
    /// The machine that it leaves with the least: the smallest sum of `f_r / c_r`.
    BestFit,
    /// The machine that it leaves with the most: the largest sum of `f_r / c_r`.
    WorstFit,
    /// The machine with the fewest tasks running, whatever their size.
    Spread,
    /// The machine with free amounts nearest to the direction of the demand: the largest sum of `d_r f_r / m_r^2`.
    ///
    /// Source: Grandl et al., Multi-resource packing for cluster schedulers, SIGCOMM 2014, section 3.2 (alignment,
    /// demand and room both normalised to the machine).
    DotProduct,
    /// Any machine, each with the same chance.
    Random,
    /// The machine on which the least becomes useless to the workload's tasks: fragmentation gradient descent.
    ///
    /// Source: Weng et al., Beware of fragmentation, USENIX ATC 2023, section 4. Without devices it is first-fit.
    Fgd,
}

impl Placement {
    /// All of them with their names.
    pub const ALL: [(&'static str, Placement); 8] = [
        ("pooled", Placement::Pooled),
        ("first-fit", Placement::FirstFit),
        ("best-fit", Placement::BestFit),
        ("worst-fit", Placement::WorstFit),
        ("spread", Placement::Spread),
        ("dot-product", Placement::DotProduct),
        ("random", Placement::Random),
        ("fgd", Placement::Fgd),
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Placement::ALL.iter().find(|(_, placement)| *placement == self).map_or("", |(name, _)| name)
    }
}

impl std::str::FromStr for Placement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Placement> {
        let known = || Placement::ALL.map(|(name, _)| name);
        Placement::ALL.iter().find(|(name, _)| *name == text).map(|(_, placement)| *placement).ok_or_else(|| {
            let [rest @ .., last] = &known()[..] else { unreachable!("there are rules") };
            Error::plan("placement", format!("'{text}'"), format!("{} or {last}", rest.join(", ")))
        })
    }
}

/// Weights that make the sum of `f_r / c_r` an integer: `L / c_r` with `L` the least common multiple of the cluster's
/// amounts, so that sums of shares compare exactly.
///
/// Where `L` passes 2^100, `2^100 / c_r` rounded down stands for it: a documented approximation of the score, not of
/// whether a task fits. The cluster's capacity is that at the start, whatever joins or leaves.
#[derive(Clone, Debug)]
pub(super) struct Prices([u128; MAX_DIMS]);

impl Prices {
    pub fn new(total: &[u64]) -> Prices {
        const LIMIT: u128 = 1 << 100;
        let gcd = |mut a: u128, mut b: u128| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let multiple = total.iter().filter(|&&c| c > 0).try_fold(1u128, |multiple, &c| {
            let c = u128::from(c);
            (multiple / gcd(multiple, c)).checked_mul(c).filter(|multiple| *multiple < LIMIT)
        });
        let mut prices = [0; MAX_DIMS];
        for (price, &c) in prices.iter_mut().zip(total) {
            *price = if c == 0 { 0 } else { multiple.unwrap_or(LIMIT) / u128::from(c) };
        }
        Prices(prices)
    }

    pub fn part(&self, dim: usize, amount: u64) -> u128 {
        u128::from(amount) * self.0[dim]
    }

    pub fn score(&self, index: &Index, machine: usize) -> u128 {
        index.amounts(machine).iter().enumerate().map(|(d, free)| self.part(d, *free)).sum()
    }
}

/// `2^120 / m_r^2` rounded down: with them the sum of `d_r f_r / m_r^2` is an integer, below 2^123.
pub(super) fn alignment(capacity: &Resources) -> [u128; MAX_DIMS] {
    capacity.0.map(|amount| if amount == 0 { 0 } else { (1 << 120) / (u128::from(amount) * u128::from(amount)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_are_told_apart() {
        for (name, placement) in Placement::ALL {
            assert_eq!((name.parse::<Placement>().expect("a name"), placement.name()), (placement, name));
        }
        let message = "tetris".parse::<Placement>().expect_err("no such rule").to_string();
        assert!(
            message.ends_with("expected pooled, first-fit, best-fit, worst-fit, spread, dot-product, random or fgd")
        );
    }
}
