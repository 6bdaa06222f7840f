//! A fraction of integers, compared without rounding.

use std::cmp::Ordering;

use ethnum::U256;

use plimsoll_base::units::Resources;

/// Compares two fractions of amounts.
pub fn compare_parts((amount, most): (u64, u64), (other, other_most): (u64, u64)) -> Ordering {
    (u128::from(amount) * u128::from(other_most)).cmp(&(u128::from(other) * u128::from(most)))
}

/// Implements the order of types by their methods `compare`; values that compare as equal are equal.
macro_rules! ordered {
    (@ [$($generics:tt)*] $type:ty) => {
        impl $($generics)* Ord for $type {
            fn cmp(&self, other: &$type) -> std::cmp::Ordering {
                self.compare(other)
            }
        }

        impl $($generics)* PartialOrd for $type {
            fn partial_cmp(&self, other: &$type) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $($generics)* PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl $($generics)* Eq for $type {}
    };
    ($($type:ty),*) => { $(ordered!(@ [] $type);)* };
}

pub(crate) use ordered;

ordered!(Ratio);

/// A fraction. With a denominator of 0 it is infinite.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    num: u128,
    den: u128,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio { num: 0, den: 1 };
    /// One.
    pub const WHOLE: Ratio = Ratio { num: 1, den: 1 };
    /// Infinity, which is greater than any other ratio.
    pub const INFINITE: Ratio = Ratio { num: 1, den: 0 };

    /// Creates the ratio of two numbers.
    pub fn new(num: impl Into<u128>, den: impl Into<u128>) -> Ratio {
        Ratio { num: num.into(), den: den.into() }
    }

    /// Returns the ratio of an amount to a capacity; 0 of 0 is 0.
    pub fn from_capacity(amount: u64, capacity: u64) -> Ratio {
        if amount == 0 { Ratio::ZERO } else { Ratio::new(amount, capacity) }
    }

    /// Returns the largest ratio of an amount to its capacity, and the first resource with this ratio in the given order.
    pub fn dominant(
        amounts: &Resources,
        capacity: &Resources,
        order: impl IntoIterator<Item = usize>,
    ) -> (Ratio, usize) {
        let mut most: Option<(Ratio, usize)> = None;
        for d in order {
            let part = Ratio::from_capacity(amounts.0[d], capacity.0[d]);
            if most.is_none_or(|(known, _)| part > known) {
                most = Some((part, d));
            }
        }
        most.unwrap_or((Ratio::ZERO, 0))
    }

    /// Divides the ratio by a number of at least 0, in units of 1 / `one`.
    pub fn over(self, number: u64, one: u64) -> Ratio {
        match self.den {
            0 => self,
            den => Ratio { num: self.num * u128::from(one), den: den * u128::from(number) },
        }
    }

    /// Returns the numerator and the denominator.
    pub fn parts(self) -> (u128, u128) {
        (self.num, self.den)
    }

    /// Returns the ratio as a float, for reports.
    pub fn shown(self) -> f64 {
        if self.den == 0 { f64::INFINITY } else { self.num as f64 / self.den as f64 }
    }

    fn compare(&self, other: &Ratio) -> Ordering {
        match (self.den, other.den) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            _ => self.crossed(*other).cmp(&other.crossed(*self)),
        }
    }

    fn crossed(self, other: Ratio) -> U256 {
        U256::from(self.num) * U256::from(other.den)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_compared_exactly() {
        assert_eq!(Ratio::new(1u64, 3u64), Ratio::new(2u64, 6u64));
        let (near, third) = (Ratio::new(u64::MAX / 3 + 1, u64::MAX), Ratio::new(1u64, 3u64));
        assert!(near > third && third > Ratio::ZERO && Ratio::INFINITE > near);
        assert_eq!(Ratio::new(1u64, 0u64), Ratio::INFINITE);
        assert_eq!(Ratio::from_capacity(0, 0), Ratio::ZERO);
        assert_eq!(Ratio::from_capacity(1, 2).over(500_000, 1_000_000), Ratio::WHOLE);
        assert_eq!(Ratio::from_capacity(1, 2).over(0, 1_000_000), Ratio::INFINITE);
    }
}
