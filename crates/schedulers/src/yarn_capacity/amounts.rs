//! Amounts that may be below 0, and their comparison by YARN's resource calculators.
//!
//! Source: Apache Hadoop, `DominantResourceCalculator`, `DefaultResourceCalculator` and `Resources`.

use std::cmp::Ordering;

use ethnum::U256;

use super::super::cycle::Ratio;
use plimsoll_base::units::{MAX_DIMS, Resources};

/// One amount per resource, which may be negative.
pub type SignedAmounts = Resources<i128>;

/// Zero in every resource.
pub const NONE: SignedAmounts = SignedAmounts::uniform(0);

/// The largest amount; the product of two such amounts fits the type.
const MOST: i128 = 1 << 62;

/// Converts amounts, to at most [`MOST`] each.
pub fn signed(amounts: &Resources) -> SignedAmounts {
    amounts.map(|amount| i128::from(amount).min(MOST))
}

/// Adds amounts; each sum is at most [`MOST`].
pub fn capped_sum(one: SignedAmounts, other: SignedAmounts) -> SignedAmounts {
    (one + other).min(SignedAmounts::uniform(MOST))
}

/// Returns a part of each amount, rounded towards 0.
pub fn part(amounts: SignedAmounts, num: u128, den: u128) -> SignedAmounts {
    amounts.map(|amount| {
        let product = U256::from(amount.unsigned_abs()) * U256::from(num) / U256::from(den.max(1));
        let part = i128::try_from(product).unwrap_or(MOST);
        if amount < 0 { -part } else { part }
    })
}

/// The rules for comparing amounts.
#[derive(Clone, Copy, Debug)]
pub struct Calculator {
    /// The only resource that counts, if any.
    pub only: Option<usize>,
    /// The total of each resource; amounts are compared as parts of it.
    pub whole: SignedAmounts,
    pub dims: usize,
    /// The unit of each resource: whole cores and devices.
    pub units: Resources,
}

impl Calculator {
    fn dims(&self) -> impl Iterator<Item = usize> + use<> {
        let (only, dims) = (self.only, self.dims);
        (0..dims).filter(move |d| only.is_none_or(|only| only == *d))
    }

    /// Returns the resources with a positive divisor, and the divisor: the total, or 1 if only one resource counts.
    fn parted(&self) -> impl Iterator<Item = (usize, i128)> + use<'_> {
        let whole = |d: usize| (d, if self.only.is_some() { 1 } else { self.whole[d] });
        self.dims().map(whole).filter(|(_, whole)| *whole > 0)
    }

    /// Compares amounts by their largest parts, then by the next largest parts. If every total is zero, an amount is greater if it is
    /// greater in some resource and less in none.
    pub fn compare(&self, one: &SignedAmounts, other: &SignedAmounts) -> Ordering {
        let parts = |amounts: &SignedAmounts| {
            let mut parts: [(i128, i128); MAX_DIMS] = [(0, 1); MAX_DIMS];
            let mut count = 0;
            for (d, whole) in self.parted() {
                parts[count] = (amounts[d], whole);
                count += 1;
            }
            parts[..count].sort_by(|(a, b), (c, d)| (c * b).cmp(&(a * d)));
            (parts, count)
        };
        let ((mine, count), (theirs, _)) = (parts(one), parts(other));
        if count == 0 {
            let some = |order: Ordering| self.dims().any(|d| one[d].cmp(&other[d]) == order);
            return some(Ordering::Greater).cmp(&some(Ordering::Less));
        }
        let each = mine[..count].iter().zip(&theirs[..count]).map(|((a, b), (c, d))| (a * d).cmp(&(c * b)));
        each.fold(Ordering::Equal, Ordering::then)
    }

    pub fn is_more(&self, one: &SignedAmounts, other: &SignedAmounts) -> bool {
        self.compare(one, other).is_gt()
    }

    /// Returns the lesser of two amounts as a whole, not per resource.
    pub fn min(&self, one: &SignedAmounts, other: &SignedAmounts) -> SignedAmounts {
        if self.compare(one, other).is_le() { *one } else { *other }
    }

    /// Returns the greater of two amounts as a whole.
    pub fn max(&self, one: &SignedAmounts, other: &SignedAmounts) -> SignedAmounts {
        if self.compare(one, other).is_ge() { *one } else { *other }
    }

    /// Returns the largest part as a numerator (the amount) and a denominator (the total).
    fn value(&self, amounts: &SignedAmounts) -> (u128, u128) {
        let parts = self.parted().map(|(d, whole)| (amounts[d].max(0) as u128, whole as u128));
        parts.max_by(|(a, b), (c, d)| (a * d).cmp(&(c * b))).unwrap_or((0, 1))
    }

    /// Returns the largest part of `amounts` applied to the total of every resource, rounded up to whole units. Returns `amounts` if only
    /// one resource counts.
    pub fn alike(&self, amounts: &SignedAmounts) -> SignedAmounts {
        let (num, den) = self.value(amounts);
        if self.only.is_some() { *amounts } else { self.part_up(&self.whole, num, den) }
    }

    /// Returns the ratio of the largest parts; zero over zero is 0.
    pub fn ratio(&self, one: &SignedAmounts, other: &SignedAmounts) -> Ratio {
        let (((a, b), (c, d)), none) = ((self.value(one), self.value(other)), Ratio::ZERO);
        if a == 0 { none } else { Ratio::new(a * d, b * c) }
    }

    /// Returns the ratio of the largest parts as a numerator and a denominator.
    pub fn fraction(&self, one: &SignedAmounts, other: &SignedAmounts) -> (u128, u128) {
        let ((a, b), (c, d)) = (self.value(one), self.value(other));
        (a * d, b * c)
    }

    /// Returns a part of each amount, rounded down to whole units.
    pub fn part_down(&self, amounts: &SignedAmounts, num: u128, den: u128) -> SignedAmounts {
        part(*amounts, num, den).zip_with(self.units, |part, unit| part - part % i128::from(unit))
    }

    /// Returns a part of each amount, rounded up to whole units.
    pub fn part_up(&self, amounts: &SignedAmounts, num: u128, den: u128) -> SignedAmounts {
        self.units(amounts, num, den, |units| units - 1)
    }

    /// Returns a part of each amount, rounded up to whole units. If only one resource counts, rounds to the nearest unit, and half a unit
    /// up.
    pub fn part(&self, amounts: &SignedAmounts, num: u128, den: u128) -> SignedAmounts {
        self.units(amounts, num, den, |units| if self.only.is_some() { units / 2 } else { units - 1 })
    }

    fn units(&self, amounts: &SignedAmounts, num: u128, den: u128, more: impl Fn(i128) -> i128) -> SignedAmounts {
        let (num, den) = (num as i128, (den as i128).max(1));
        amounts.zip_with(self.units, |amount, unit| {
            let unit = i128::from(unit);
            (amount.max(0) * num + more(den * unit)) / (den * unit) * unit
        })
    }

    /// Returns whether the amounts fit into the room.
    pub fn fits(&self, need: &SignedAmounts, room: &SignedAmounts) -> bool {
        self.dims().all(|d| need[d] <= room[d])
    }
}
