//! The placement rules and their exact scores.
//!
//! Scores are integers and ties go to the lower index. In the sums, `r` runs over the resources. `f_r` is the free amount of the machine
//! before the task starts, `c_r` the capacity of the cluster, `m_r` the capacity of the machine, and `d_r` the demand of the task.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::climb::Climb;
use super::grid::{Grid, Objective};
use super::index::Index;
use super::kss::KssRule;
use super::machines::Guide;
use plimsoll_base::error::{Error, Result, either};
use plimsoll_base::units::{MAX_DIMS, Resources};

/// The declaration of a rule for the rest of the program.
pub struct PlacementRow {
    /// The name on the command line and in plans.
    pub name: &'static str,
    /// The description of the chosen machine.
    pub chosen: &'static str,
    /// The publication; empty if there is none.
    pub source: &'static str,
    /// Creates the data of the search, given the free amounts and the capacities of all machines.
    pub(super) guide: fn(&Index, &[Resources]) -> Guide,
}

/// The source of the rules of the simulator of FGD.
const KSS: &str = "the simulator of Weng et al., USENIX ATC 2023; see below";

/// Generates [`Placement`] from the list of rules: variant, name, chosen machine, source, search.
macro_rules! rules {
    ($($rule:ident $name:literal: $chosen:literal, $source:expr, $guide:expr;)*) => {
        /// The rule that selects the machine of a task among those with room.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Placement {
            $(#[doc = concat!("`", $name, "`: ", $chosen, ".")] $rule,)*
        }

        impl Placement {
            /// All rules with their names.
            pub const ALL: [(&'static str, Placement); [$($name),*].len()] = [$(($name, Placement::$rule)),*];

            /// Returns the declaration of the rule.
            pub fn row(self) -> &'static PlacementRow {
                match self {
                    $(Placement::$rule => &PlacementRow { name: $name, chosen: $chosen, source: $source, guide: $guide },)*
                }
            }
        }
    };
}

rules! {
    Pooled "pooled": "no machines: the cluster is one pool", "", |_, _| Guide::First;
    FirstFit "first-fit": "the lowest index", "", |_, _| Guide::First;
    BestFit "best-fit": "the lowest sum over r of f_r / c_r: the machine that is left with the least", "",
        |index, all| Guide::Grid(Grid::new(Objective::Room(Prices::from_capacities(index, all)), index));
    WorstFit "worst-fit": "the highest sum over r of f_r / c_r: the machine that is left with the most", "",
        |index, all| Guide::Grid(Grid::new(Objective::Fullness(Prices::from_capacities(index, all)), index));
    Spread "spread": "the fewest running tasks, whatever their size", "Docker Swarm's strategy of that name",
        |index, all| Guide::Grid(Grid::new(Objective::Tasks(vec![0; all.len()]), index));
    DotProduct "dot-product": "the highest sum over r of d_r f_r / m_r²",
        "Tetris: Grandl et al., SIGCOMM 2014, 3.2 (alignment)", |index, all| Guide::Climb(Climb::new(index, all));
    Random "random": "each with the same chance", "", |_, _| Guide::Draw(ChaCha8Rng::seed_from_u64(0));
    Fgd "fgd": "the lowest growth of fragments, see below", "Weng et al., USENIX ATC 2023, 4", |_, _| Guide::Descend;
    KssRandom "kss-random": "each with the same chance; a part of a device from each that has enough with the same chance",
        KSS, |_, _| Guide::kss(KssRule::Random);
    KssDotProduct "kss-dot-product": "the lowest product of demand and room, in whole per cents", KSS,
        |_, _| Guide::kss(KssRule::DotProduct);
    KssGpuClustering "kss-gpu-clustering": "tasks with the same number of devices first, in whole per cents", KSS,
        |_, _| Guide::kss(KssRule::Clustering);
    KssGpuPacking "kss-gpu-packing": "devices in use first, then machines in use, in whole per cents", KSS,
        |_, _| Guide::kss(KssRule::Packing);
    KssBestFit "kss-best-fit": "the least cores and devices left, in whole per cents", KSS,
        |_, _| Guide::kss(KssRule::BestFit);
    KssFgd "kss-fgd": "the lowest growth of fragments, in whole per cents", KSS, |_, _| Guide::kss(KssRule::Fgd);
    KssBestFitExact "kss-best-fit-exact": "`kss-best-fit` without rounding", KSS, |_, _| Guide::kss_exact(KssRule::BestFit);
    KssFgdExact "kss-fgd-exact": "`kss-fgd` without rounding", KSS, |_, _| Guide::kss_exact(KssRule::Fgd);
}

impl Default for Placement {
    /// Returns first-fit, so that a cluster of machines is simulated as machines unless the user selects `pooled`.
    fn default() -> Placement {
        Placement::FirstFit
    }
}

impl Placement {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the names of all rules as text.
    pub fn names() -> String {
        either(Placement::ALL.map(|(name, _)| name))
    }
}

impl std::str::FromStr for Placement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Placement> {
        let found = Placement::ALL.iter().find(|(name, _)| *name == text).map(|(_, placement)| *placement);
        found.ok_or_else(|| Error::plan("placement", format!("'{text}'"), Placement::names()))
    }
}

/// Weights that make the sum of `f_r / c_r` an integer: `L / c_r` with `L` the least common multiple of the cluster's amounts, so that sums
/// of shares compare exactly.
///
/// If `L` exceeds 2^100, the weight is `2^100 / c_r` rounded down. The score is then an approximation; the test whether a task fits
/// remains exact. The capacity of the cluster is its capacity at the start; later joins and leaves do not change it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Prices([u128; MAX_DIMS]);

impl Prices {
    /// Computes the weights for a cluster with these machines.
    fn from_capacities(index: &Index, capacities: &[Resources]) -> Prices {
        Prices::new(capacities.iter().sum::<Resources>().slice(index.dims()))
    }

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
        self.sum(index.amounts(machine))
    }

    /// Returns the weighted sum of these amounts.
    pub fn sum(&self, amounts: &[u64]) -> u128 {
        amounts.iter().enumerate().map(|(d, free)| self.part(d, *free)).sum()
    }
}

/// Returns `2^120 / m_r^2` rounded down: with these weights the sum of `d_r f_r / m_r^2` is an integer below 2^123.
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
            message.ends_with("dot-product, random, fgd, kss-random, kss-dot-product, kss-gpu-clustering, kss-gpu-packing, kss-best-fit, kss-fgd, kss-best-fit-exact or kss-fgd-exact")
        );
    }
}
