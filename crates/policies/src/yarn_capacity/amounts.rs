//! Amounts that may be below 0, and their comparison by YARN's resource calculators.
//!
//! Source: Apache Hadoop, `DominantResourceCalculator`, `DefaultResourceCalculator` and `Resources`.

use std::cmp::Ordering;

use ethnum::U256;

use super::super::cycle::Ratio;
use plimsoll_base::units::{MAX_DIMS, Resources};

/// Amounts of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts(pub [i128; MAX_DIMS]);

/// Nothing.
pub const NONE: Amounts = Amounts([0; MAX_DIMS]);

/// The largest amount: so that the product of two is an integer.
const MOST: i128 = 1 << 62;

impl Amounts {
    pub fn of(amounts: &Resources) -> Amounts {
        Amounts(amounts.0.map(|amount| i128::from(amount).min(MOST)))
    }

    pub fn each(f: impl FnMut(usize) -> i128) -> Amounts {
        Amounts(std::array::from_fn(f))
    }

    pub fn plus(&self, other: &Amounts) -> Amounts {
        Amounts::each(|d| (self.0[d] + other.0[d]).min(MOST))
    }

    pub fn minus(&self, other: &Amounts) -> Amounts {
        Amounts::each(|d| self.0[d] - other.0[d])
    }

    /// The less of each resource.
    pub fn least(&self, other: &Amounts) -> Amounts {
        Amounts::each(|d| self.0[d].min(other.0[d]))
    }

    /// The more of each resource.
    pub fn most(&self, other: &Amounts) -> Amounts {
        Amounts::each(|d| self.0[d].max(other.0[d]))
    }

    /// A part of each, cut towards 0.
    pub fn part(&self, num: u128, den: u128) -> Amounts {
        let part = |amount: i128| {
            let product = U256::from(amount.unsigned_abs()) * U256::from(num) / U256::from(den.max(1));
            let part = i128::try_from(product).unwrap_or(MOST);
            if amount < 0 { -part } else { part }
        };
        Amounts(self.0.map(part))
    }

    /// A part of each, up to whole units.
    pub fn part_up(&self, num: u128, den: u128, units: &[u64; MAX_DIMS]) -> Amounts {
        Amounts::each(|d| {
            let (amount, unit) = (self.0[d], i128::from(units[d]));
            let (num, den) = (num as i128, (den as i128).max(1));
            if amount <= 0 { 0 } else { ((amount * num + den - 1) / den + unit - 1) / unit * unit }
        })
    }

    pub fn fits(&self, room: &Amounts) -> bool {
        self.0.iter().zip(room.0).all(|(need, room)| *need <= room)
    }
}

/// By what amounts are compared.
#[derive(Clone, Copy, Debug)]
pub struct Calculator {
    /// Only this resource counts.
    pub only: Option<usize>,
    /// Parts of these.
    pub whole: Amounts,
    pub dims: usize,
}

impl Calculator {
    fn dims(&self) -> impl Iterator<Item = usize> + use<> {
        let (only, dims) = (self.only, self.dims);
        (0..dims).filter(move |d| only.is_none_or(|only| only == *d))
    }

    /// The largest part first, then the others.
    pub fn compare(&self, one: &Amounts, other: &Amounts) -> Ordering {
        let parts = |amounts: &Amounts| {
            let mut parts: [(i128, i128); MAX_DIMS] = [(0, 1); MAX_DIMS];
            let mut count = 0;
            for d in self.dims().filter(|d| self.whole.0[*d] > 0) {
                parts[count] = (amounts.0[d], self.whole.0[d]);
                count += 1;
            }
            parts[..count].sort_by(|(a, b), (c, d)| (c * b).cmp(&(a * d)));
            (parts, count)
        };
        let ((mine, count), (theirs, _)) = (parts(one), parts(other));
        let each = mine[..count].iter().zip(&theirs[..count]).map(|((a, b), (c, d))| (a * d).cmp(&(c * b)));
        each.fold(Ordering::Equal, Ordering::then)
    }

    pub fn is_more(&self, one: &Amounts, other: &Amounts) -> bool {
        self.compare(one, other).is_gt()
    }

    /// The lesser of two as a whole, not of each resource.
    pub fn min(&self, one: &Amounts, other: &Amounts) -> Amounts {
        if self.compare(one, other).is_le() { *one } else { *other }
    }

    /// The greater of two as a whole.
    pub fn max(&self, one: &Amounts, other: &Amounts) -> Amounts {
        if self.compare(one, other).is_ge() { *one } else { *other }
    }

    /// The largest part: amount and whole.
    fn value(&self, amounts: &Amounts) -> (u128, u128) {
        let parts = self.dims().filter(|d| self.whole.0[*d] > 0);
        let parts = parts.map(|d| (amounts.0[d].max(0) as u128, self.whole.0[d] as u128));
        parts.max_by(|(a, b), (c, d)| (a * d).cmp(&(c * b))).unwrap_or((0, 1))
    }

    /// One largest part over the other; nothing over nothing is 0.
    pub fn ratio(&self, one: &Amounts, other: &Amounts) -> Ratio {
        let (((a, b), (c, d)), none) = ((self.value(one), self.value(other)), Ratio::ZERO);
        if a == 0 { none } else { Ratio::new(a * d, b * c) }
    }

    /// The same as a numerator and a denominator.
    pub fn fraction(&self, one: &Amounts, other: &Amounts) -> (u128, u128) {
        let ((a, b), (c, d)) = (self.value(one), self.value(other));
        (a * d, b * c)
    }
}
