//! Shares as integers, so that two of them compare exactly.
//!
//! A share is `u_r / (c_r w_r)`, summed or maximised over resources. With `L` the least common multiple of all denominators, `price = L /
//! (c_r w_r)` converts every user's share to one integer scale: [`Prices::rank`] is then a product per resource. `L` fits 124 bits for a
//! few resources, and 252 bits for many. If `L` exceeds 252 bits, a share is a binary fraction with enough places to distinguish any two
//! different shares: fractions with denominators below `2^b` differ by at least `2^-2b`. All three forms order users alike; a test
//! compares them.

use ethnum::U256;

use super::{Rank, Setup, Shares};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MAX_DIMS, UserId};
use plimsoll_sim::books::Books;

/// The norm that combines the shares of a user in several resources into one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareNorm {
    /// The largest share: the dominant share.
    Largest,
    /// The sum of the shares: the asset share.
    Sum,
}

/// The prices of a run's resources, for every class of weights.
#[derive(Clone, Debug)]
pub struct Prices {
    shape: ShareNorm,
    dims: usize,
    scale: Scale,
}

#[derive(Clone, Debug)]
enum Scale {
    /// Prices for `L` below 2^124.
    Narrow(Vec<[u128; MAX_DIMS]>),
    /// Prices for `L` below 2^252.
    Wide(Vec<[U256; MAX_DIMS]>),
    /// Binary fractions with this number of places.
    Places(u32, Vec<Fraction>),
}

/// `sum or max of u_r * multiplier_r / denominator_r`; a denominator of 0 marks a resource that does not count.
#[derive(Clone, Copy, Debug)]
struct Fraction {
    multiplier: [u128; MAX_DIMS],
    denominator: [u128; MAX_DIMS],
}

/// The largest number of bits of `L` for [`Scale::Narrow`] and for [`Scale::Wide`].
#[derive(Clone, Copy, Debug)]
struct Limits {
    narrow: u32,
    wide: u32,
}

const LIMITS: Limits = Limits { narrow: 124, wide: 252 };

impl Prices {
    /// Computes prices over the resources of the cluster that `counts` selects.
    ///
    /// Users' allocations must stay within `setup.capacity`. Errors: [`Error::CapacityTooFine`] when sums of shares over many resources and
    /// many weights need more than 256 bits; maxima never do.
    pub fn new(policy: &str, shape: ShareNorm, setup: &Setup, counts: impl Fn(usize) -> bool) -> Result<Prices> {
        Prices::within(policy, shape, setup, counts, LIMITS)
    }

    fn within(
        policy: &str,
        shape: ShareNorm,
        setup: &Setup,
        counts: impl Fn(usize) -> bool,
        limits: Limits,
    ) -> Result<Prices> {
        let dims = setup.dims.len();
        let denominators = denominators(setup, counts);
        let all = denominators.iter().flatten().filter(|&&denominator| denominator > 0);
        let multiple = all.clone().try_fold(U256::ONE, |multiple, &d| lcm(multiple, U256::from(d)));
        let bits = |value: U256| 256 - value.leading_zeros();
        let scale = match multiple.filter(|multiple| bits(*multiple) <= limits.wide) {
            Some(multiple) => {
                let price = |&d: &u128| if d == 0 { U256::ZERO } else { multiple / U256::from(d) };
                let wide: Vec<[U256; MAX_DIMS]> =
                    denominators.iter().map(|row| std::array::from_fn(|d| price(&row[d]))).collect();
                if bits(multiple) <= limits.narrow {
                    Scale::Narrow(wide.iter().map(|row| std::array::from_fn(|d| row[d].as_u128())).collect())
                } else {
                    Scale::Wide(wide)
                }
            }
            None => fractions(policy, shape, &denominators)?,
        };
        Ok(Prices { shape, dims: dims.max(1), scale })
    }

    /// Returns the rank of a user with these allocated amounts and this class of weights.
    pub fn rank(&self, held: &[u64], class: usize) -> Rank {
        match &self.scale {
            Scale::Narrow(prices) => {
                let priced = held.iter().zip(&prices[class]).map(|(&held, &price)| u128::from(held) * price);
                Rank::new(match self.shape {
                    ShareNorm::Largest => priced.max().unwrap_or(0),
                    ShareNorm::Sum => priced.sum(),
                })
            }
            Scale::Wide(prices) => {
                let priced = held.iter().zip(&prices[class]).map(|(&held, &price)| U256::from(held) * price);
                let value = match self.shape {
                    ShareNorm::Largest => priced.max().unwrap_or(U256::ZERO),
                    ShareNorm::Sum => priced.fold(U256::ZERO, |sum, part| sum + part),
                };
                Rank::wide(*value.high(), *value.low())
            }
            Scale::Places(places, fractions) => {
                let fraction = &fractions[class];
                let part = |d: usize| u128::from(held[d]) * fraction.multiplier[d];
                let counted = |d: &usize| fraction.denominator[*d] > 0;
                let value = match self.shape {
                    ShareNorm::Largest => (0..self.dims)
                        .filter(counted)
                        .map(|d| binary_fraction(part(d), fraction.denominator[d], *places))
                        .max()
                        .unwrap_or(U256::ZERO),
                    ShareNorm::Sum => {
                        let denominator = fraction.denominator.iter().copied().max().unwrap_or(0);
                        let numerator = (0..self.dims).filter(counted).map(part).sum();
                        binary_fraction(numerator, denominator.max(1), *places)
                    }
                };
                Rank::wide(*value.high(), *value.low())
            }
        }
    }
}

impl Shares for Prices {
    fn rank_with(&self, user: UserId, held: &[u64], books: &Books) -> Rank {
        self.rank(held, books.weight_class(user))
    }
}

/// Prices for amounts beyond the capacity, such as amounts times time: exact if the least common multiple of all denominators fits 124
/// bits, else rounded to 2^-120.
#[derive(Clone, Debug)]
pub struct UsagePrices {
    shape: ShareNorm,
    narrow: Option<Vec<[u128; MAX_DIMS]>>,
    denominators: Vec<[u128; MAX_DIMS]>,
}

impl UsagePrices {
    /// Computes prices over all resources that the cluster has.
    pub fn new(shape: ShareNorm, setup: &Setup) -> UsagePrices {
        let denominators = denominators(setup, |_| true);
        let all = denominators.iter().flatten().filter(|&&denominator| denominator > 0);
        let multiple = all.clone().try_fold(U256::ONE, |multiple, &d| lcm(multiple, U256::from(d)));
        let multiple = multiple.filter(|multiple| multiple.leading_zeros() >= 256 - LIMITS.narrow);
        let narrow = multiple.map(|multiple| {
            let price = |d: u128| if d == 0 { 0 } else { (multiple / U256::from(d)).as_u128() };
            denominators.iter().map(|row| row.map(price)).collect()
        });
        UsagePrices { shape, narrow, denominators }
    }

    /// Returns the rank of a user with these amounts, below 2^125 each, and this class of weights.
    pub fn rank(&self, amounts: impl Iterator<Item = u128>, class: usize) -> Rank {
        let part = |(d, amount): (usize, u128)| match (&self.narrow, self.denominators[class][d]) {
            (Some(prices), _) => U256::from(amount) * U256::from(prices[class][d]),
            (None, 0) => U256::ZERO,
            (None, denominator) => binary_fraction(amount, denominator, 120),
        };
        let parts = amounts.enumerate().map(part);
        let value = match self.shape {
            ShareNorm::Largest => parts.max().unwrap_or(U256::ZERO),
            ShareNorm::Sum => parts.fold(U256::ZERO, |sum, part| sum + part),
        };
        Rank::wide(*value.high(), *value.low())
    }
}

/// Returns `c_r w_r` for every class of weights; 0 if a resource does not count or has capacity 0.
fn denominators(setup: &Setup, counts: impl Fn(usize) -> bool) -> Vec<[u128; MAX_DIMS]> {
    let dims = setup.dims.len();
    let of_class = |class: usize| {
        std::array::from_fn(|d| {
            let counted = d < dims.max(1) && counts(d) && setup.capacity.0[d] > 0;
            let weight = setup.weights.each(class)[d];
            if counted { u128::from(setup.capacity.0[d]) * u128::from(weight) } else { 0 }
        })
    };
    (0..setup.weights.classes()).map(of_class).collect()
}

/// Builds the form that needs no common multiple over all users.
fn fractions(policy: &str, shape: ShareNorm, denominators: &[[u128; MAX_DIMS]]) -> Result<Scale> {
    let too_fine = |problem: &str| Error::CapacityTooFine { policy: policy.to_owned(), problem: problem.to_owned() };
    let mut fractions = Vec::with_capacity(denominators.len());
    let mut bits = 1;
    for row in denominators {
        let counted = row.iter().filter(|&&d| d > 0);
        let fraction = match shape {
            ShareNorm::Largest => {
                bits = counted.map(|d| 128 - d.leading_zeros()).fold(bits, u32::max);
                Fraction { multiplier: [1; MAX_DIMS], denominator: *row }
            }
            ShareNorm::Sum => {
                let common = counted
                    .clone()
                    .try_fold(U256::ONE, |multiple, &d| lcm(multiple, U256::from(d)))
                    .filter(|common| *common < U256::ONE << 125)
                    .ok_or_else(|| {
                        too_fine("the least common multiple of capacity x weight exceeds 2^125; use rounder numbers")
                    })?
                    .as_u128();
                bits = bits.max(128 - common.leading_zeros());
                Fraction {
                    multiplier: row.map(|d| common.checked_div(d).unwrap_or(0)),
                    denominator: row.map(|d| if d == 0 { 0 } else { common }),
                }
            }
        };
        fractions.push(fraction);
    }
    if bits > 125 {
        return Err(too_fine("capacity x weight exceeds 2^125; use a larger unit or rounder weights"));
    }
    Ok(Scale::Places(2 * bits, fractions))
}

/// Computes `floor(2^places * numerator / denominator)`, for a denominator below 2^125 and a result that fits.
pub(super) fn binary_fraction(numerator: u128, denominator: u128, places: u32) -> U256 {
    let whole = numerator / denominator;
    let mut rest = U256::from(numerator % denominator);
    let mut value = U256::from(whole);
    let mut left = places;
    while left > 0 {
        let step = left.min(125);
        let shifted = rest << step;
        value = (value << step) | (shifted / U256::from(denominator));
        rest = shifted % U256::from(denominator);
        left -= step;
    }
    value
}

fn lcm(a: U256, b: U256) -> Option<U256> {
    let (mut x, mut y) = (a, b);
    while y != U256::ZERO {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::units::{Dim, Resources, Unit};
    use plimsoll_sim::books::Weights;
    use rand::RngExt;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn dims(count: usize) -> Vec<Dim> {
        (0..count).map(|d| Dim { name: format!("r{d}"), unit: Unit::Milli }).collect()
    }

    /// Compares two users by the definition: fractions, cross-multiplied and summed over a common denominator.
    fn compare(shape: ShareNorm, capacity: &[u64], a: (&[u64], u64), b: (&[u64], u64)) -> std::cmp::Ordering {
        let wide = |value: u64| U256::from(value);
        let product: U256 = capacity.iter().fold(U256::ONE, |product, &c| product * wide(c));
        let value = |held: &[u64]| -> U256 {
            let parts = held.iter().zip(capacity).map(|(&u, &c)| wide(u) * (product / wide(c)));
            match shape {
                ShareNorm::Largest => parts.max().expect("a resource"),
                ShareNorm::Sum => parts.fold(U256::ZERO, |sum, part| sum + part),
            }
        };
        (value(a.0) * wide(b.1)).cmp(&(value(b.0) * wide(a.1)))
    }

    #[test]
    fn all_three_forms_order_users_as_cross_multiplication_does() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut ties = 0;
        for case in 0..300 {
            let count = rng.random_range(1..=4);
            let dims = dims(count);
            let mut capacity = Resources::ZERO;
            for d in 0..count {
                capacity.0[d] = rng.random_range(1..=if case % 2 == 0 { 12 } else { 1 << 20 });
            }
            let weights: Vec<(String, u64)> =
                (0..3).map(|u| (u.to_string(), rng.random_range(1..=3) * 500_000)).collect();
            let weights = Weights::from_scalars(weights.iter().map(|(name, weight)| (name.as_str(), *weight)));
            let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
            for shape in [ShareNorm::Largest, ShareNorm::Sum] {
                let forms: Vec<Prices> = [LIMITS, Limits { narrow: 0, ..LIMITS }, Limits { narrow: 0, wide: 0 }]
                    .map(|limits| Prices::within("test", shape, &setup, |_| true, limits).expect("few resources"))
                    .into();
                for _ in 0..20 {
                    let mut draw = || -> Vec<u64> { (0..count).map(|d| rng.random_range(0..=capacity.0[d])).collect() };
                    let (a, b) = (draw(), draw());
                    let (i, j) = (rng.random_range(0..weights.classes()), rng.random_range(0..weights.classes()));
                    let wanted =
                        compare(shape, capacity.slice(count), (&a, weights.each(i)[0]), (&b, weights.each(j)[0]));
                    ties += usize::from(wanted.is_eq());
                    for form in &forms {
                        assert_eq!(
                            form.rank(&a, i).cmp(&form.rank(&b, j)),
                            wanted,
                            "{shape:?} {capacity:?} {a:?} {b:?}"
                        );
                    }
                }
            }
        }
        assert!(ties > 100, "only {ties} ties were tried");
    }

    #[test]
    fn eight_awkward_resources_still_compare() {
        let dims = dims(8);
        let mut capacity = Resources::ZERO;
        capacity.0 =
            [999_999_937, 999_999_929, 999_999_893, 999_999_883, 999_999_797, 999_999_761, 999_999_757, 999_999_751];
        let weights = Weights::default();
        let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
        let prices = Prices::new("drf", ShareNorm::Largest, &setup, |_| true).expect("maxima always compare");
        let holds = |d: usize, amount: u64| {
            let mut held = [0u64; 8];
            held[d] = amount;
            prices.rank(&held, 0)
        };
        assert!(holds(0, 500_000_000) < holds(1, 500_000_000));
        assert!(holds(7, 1) > holds(0, 1));
        assert_eq!(holds(3, capacity.0[3]), holds(5, capacity.0[5]));
    }
}
