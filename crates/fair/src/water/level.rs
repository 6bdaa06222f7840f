//! The level as a fraction, and saturations as sortable words.

use std::cmp::Ordering;

use crate::Exact;

/// The water level: an amount per unit of ratio, as a fraction that is not reduced.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Level {
    /// At most [`LIMIT`](super::LIMIT).
    pub(super) numerator: u64,
    /// From 1 to [`LIMIT`](super::LIMIT).
    pub(super) denominator: u64,
}

impl Level {
    /// The level 0, at which every group has exactly its base.
    pub const ZERO: Level = Level { numerator: 0, denominator: 1 };

    /// Returns the level at which a bucket of this ratio contains this amount. Panics: in debug builds, if one of them exceeds
    /// [`LIMIT`](super::LIMIT) or the ratio is 0 (a programmer error).
    #[inline]
    pub fn from_amount(amount: u64, ratio: u64) -> Level {
        debug_assert!(amount <= super::LIMIT && (1..=super::LIMIT).contains(&ratio), "within the limits");
        Level { numerator: amount, denominator: ratio }
    }

    /// Returns the level as a fraction.
    pub fn exact(self) -> Exact {
        // Both parts are at most 2^62.
        Exact::ratio(self.numerator as i64, self.denominator as i64)
    }

    /// Returns the nearest float, for reports.
    pub fn to_f64(self) -> f64 {
        self.exact().to_f64()
    }
}

impl Ord for Level {
    #[inline]
    fn cmp(&self, other: &Level) -> Ordering {
        compare((self.numerator, self.denominator), (other.numerator, other.denominator))
    }
}

impl PartialOrd for Level {
    #[inline]
    fn partial_cmp(&self, other: &Level) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Level) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Level {}

/// Compares two fractions by cross-multiplication.
#[inline]
pub(super) fn compare(a: (u64, u64), b: (u64, u64)) -> Ordering {
    (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
}

/// The number of bits of a key after the leading one.
const PLACES: u32 = 56;

/// Fractions of at most `DISTINCT` bits in numerator and denominator together have equal keys only if they are equal.
///
/// Two unequal fractions `a/b < c/d` differ by at least `1/(b d)`, which is `1/(b c)` of the larger. That is at least one step of a key if
/// `b c` has at most as many bits as a key has places.
pub(super) const DISTINCT: u32 = PLACES;

/// Returns the binary exponent and the first [`PLACES`] places of `amount / ratio`, in one word.
///
/// Truncation never swaps two numbers, so the order of keys is the order of saturations except for ties, which [`compare`] decides. All
/// keys are below `u64::MAX / 2`. Both numbers are from 1 to [`LIMIT`](super::LIMIT).
pub(super) fn key(amount: u64, ratio: u64) -> u64 {
    let (above, below) = (amount.leading_zeros(), ratio.leading_zeros());
    // The quotient of the numbers with their leading ones aligned: between a half and two, times 2^63.
    let quotient = ((u128::from(amount << above) << 63) / u128::from(ratio << below)) as u64;
    let lead = quotient.leading_zeros();
    let exponent = u64::from(64 + below - above - lead);
    exponent << PLACES | quotient << (lead + 1) >> (64 - PLACES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::water::LIMIT;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn draw(rng: &mut ChaCha8Rng) -> (u64, u64) {
        let mut one = || {
            let bits = rng.random_range(0..62);
            let near = 1u64 << bits;
            rng.random_range(near.saturating_sub(2).max(1)..=(near * 2).min(LIMIT))
        };
        (one(), one())
    }

    #[test]
    fn keys_never_swap_two_fractions() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut ties = 0;
        for _ in 0..200_000 {
            let a = draw(&mut rng);
            // A close neighbour: the scaled fraction with the denominator changed by at most 1.
            let scale = rng.random_range(1..=(LIMIT / a.0.max(a.1)).min(1 << 20));
            let b = (a.0 * scale, (a.1 * scale).saturating_add_signed(rng.random_range(-1..=1)).clamp(1, LIMIT));
            let order = compare(a, b);
            let keys = key(a.0, a.1).cmp(&key(b.0, b.1));
            assert!(keys.is_eq() || keys == order, "{a:?} {b:?}");
            let bits = |a: (u64, u64), b: (u64, u64)| (a.0 | b.0).ilog2() + 1 + (a.1 | b.1).ilog2() + 1;
            if keys.is_eq() && order.is_ne() {
                ties += 1;
                assert!(bits(a, b) > DISTINCT, "{a:?} {b:?}");
            }
            let c = draw(&mut rng);
            let keys = key(a.0, a.1).cmp(&key(c.0, c.1));
            assert!(keys.is_eq() || keys == compare(a, c), "{a:?} {c:?}");
            assert!(key(a.0, a.1) < u64::MAX / 2);
        }
        assert!(ties > 100, "only {ties} ties");
        assert!(
            key(1, LIMIT) <= key(1, LIMIT - 1) && key(1, LIMIT - 1) < key(1, LIMIT / 2) && key(LIMIT, 1) < u64::MAX / 2
        );
    }

    #[test]
    fn levels_compare_as_fractions() {
        let level = |numerator, denominator| Level { numerator, denominator };
        assert_eq!(level(2, 4), level(LIMIT / 2, LIMIT));
        assert!(level(1, 3) < level(LIMIT / 3 + 1, LIMIT));
        assert_eq!(level(45, 11).exact(), Exact::ratio(45, 11));
        assert_eq!(Level::ZERO.to_f64(), 0.0);
    }
}
