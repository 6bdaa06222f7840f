//! Vectors with one value per resource dimension, and their arithmetic.
//!
//! Every operation is element-wise. `+`, `-` and sums of `u64` end the run on overflow (`overflow-checks`); the saturating and checked
//! forms have the names of the methods of `u64`.

use std::array;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Index, IndexMut, Sub, SubAssign};

/// The most resource dimensions a run can have.
pub const MAX_DIMS: usize = 8;

/// A value per resource. By default an amount in the base unit of its dimension (milli-cores, MiB, milli-GPUs, thousandths, millionths of the
/// largest machine); `Resources<i128>` for differences, `Resources<Option<u64>>` for limits. Amounts past the run's dimensions are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Resources<T = u64>(pub [T; MAX_DIMS]);

impl Resources {
    /// Zero in every dimension.
    pub const ZERO: Resources = Resources([0; MAX_DIMS]);

    /// Returns whether every amount is 0.
    #[inline]
    pub fn is_zero(&self) -> bool {
        *self == Resources::ZERO
    }

    /// Returns whether both vectors have an amount above 0 of the same resource.
    #[inline]
    pub fn overlaps(&self, other: &Resources) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| *one > 0 && *other > 0)
    }

    /// Multiplies each amount by `count`.
    #[inline]
    pub fn times(&self, count: u32) -> Resources {
        Resources(self.0.map(|amount| amount * u64::from(count)))
    }

    /// Adds; a sum above `u64::MAX` becomes `u64::MAX`.
    #[inline]
    pub fn saturating_add(self, other: Resources) -> Resources {
        self.zip_with(other, u64::saturating_add)
    }

    /// Subtracts; a difference below 0 becomes 0.
    #[inline]
    pub fn saturating_sub(self, other: Resources) -> Resources {
        self.zip_with(other, u64::saturating_sub)
    }

    /// Adds. Returns `None` if a sum exceeds `u64::MAX`.
    #[inline]
    pub fn checked_add(self, other: Resources) -> Option<Resources> {
        let sum = self.zip_with(other, u64::wrapping_add);
        self.fits(&sum).then_some(sum)
    }

    /// Subtracts. Returns `None` if a difference is below 0.
    #[inline]
    pub fn checked_sub(self, other: Resources) -> Option<Resources> {
        other.fits(&self).then(|| self.zip_with(other, u64::wrapping_sub))
    }
}

impl Resources<Option<u64>> {
    /// No limit in any dimension.
    pub const NONE: Resources<Option<u64>> = Resources([None; MAX_DIMS]);

    /// Returns the amounts, 0 where there is none.
    pub fn or_zero(self) -> Resources {
        self.map(Option::unwrap_or_default)
    }

    /// Returns the first resource with `usage + need` above the limit, and the excess in base units. Resources that `need` does not request
    /// are ignored. Ends the run if the sum overflows.
    pub fn exceeded(&self, usage: &Resources, need: &Resources) -> Option<(usize, u64)> {
        (0..MAX_DIMS).filter(|d| need[*d] > 0).find_map(|d| {
            let sum = || usage[d] + need[d];
            self[d].and_then(|limit| sum().checked_sub(limit)).filter(|excess| *excess > 0).map(|excess| (d, excess))
        })
    }
}

impl<T: Copy> Resources<T> {
    /// Creates a vector with the same value in every dimension.
    #[inline]
    pub const fn uniform(value: T) -> Resources<T> {
        Resources([value; MAX_DIMS])
    }

    /// Returns the values of the first `dims` dimensions.
    #[inline]
    pub fn slice(&self, dims: usize) -> &[T] {
        &self.0[..dims]
    }

    /// Returns the values in the order of the dimensions.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator + '_ {
        self.0.iter().copied()
    }

    /// Converts each value.
    #[inline]
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Resources<U> {
        Resources(self.0.map(convert))
    }

    /// Combines the values of each dimension.
    #[inline]
    pub fn zip_with<U: Copy, V>(self, other: Resources<U>, mut combine: impl FnMut(T, U) -> V) -> Resources<V> {
        Resources(array::from_fn(|d| combine(self.0[d], other.0[d])))
    }
}

impl<T> Resources<T> {
    /// Creates a vector with the value `value(d)` in each dimension `d`, also in dimensions that the run does not use.
    #[inline]
    pub fn from_fn(value: impl FnMut(usize) -> T) -> Resources<T> {
        Resources(array::from_fn(value))
    }
}

impl<T: Copy + Default> Resources<T> {
    /// Creates a vector with the first values of `values`; the others are 0. Values past [`MAX_DIMS`] are ignored.
    #[inline]
    pub fn from_slice(values: &[T]) -> Resources<T> {
        let mut all = Resources([T::default(); MAX_DIMS]);
        all.0.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        all
    }
}

impl<T: Copy + Ord> Resources<T> {
    /// Returns whether every value is at most that of `room`.
    #[inline]
    pub fn fits(&self, room: &Resources<T>) -> bool {
        self.0.iter().zip(&room.0).all(|(need, free)| need <= free)
    }

    /// Returns the lesser value of each dimension.
    #[inline]
    pub fn min(self, other: Resources<T>) -> Resources<T> {
        self.zip_with(other, T::min)
    }

    /// Returns the greater value of each dimension.
    #[inline]
    pub fn max(self, other: Resources<T>) -> Resources<T> {
        self.zip_with(other, T::max)
    }
}

impl<T> Index<usize> for Resources<T> {
    type Output = T;

    #[inline]
    fn index(&self, dim: usize) -> &T {
        &self.0[dim]
    }
}

impl<T> IndexMut<usize> for Resources<T> {
    #[inline]
    fn index_mut(&mut self, dim: usize) -> &mut T {
        &mut self.0[dim]
    }
}

impl<T: Copy + Add<Output = T>> Add for Resources<T> {
    type Output = Resources<T>;

    #[inline]
    fn add(self, other: Resources<T>) -> Resources<T> {
        self.zip_with(other, |one, other| one + other)
    }
}

impl<T: Copy + Sub<Output = T>> Sub for Resources<T> {
    type Output = Resources<T>;

    #[inline]
    fn sub(self, other: Resources<T>) -> Resources<T> {
        self.zip_with(other, |one, other| one - other)
    }
}

impl<T: Copy + AddAssign> AddAssign for Resources<T> {
    #[inline]
    fn add_assign(&mut self, other: Resources<T>) {
        *self += &other.0[..];
    }
}

impl<T: Copy + SubAssign> SubAssign for Resources<T> {
    #[inline]
    fn sub_assign(&mut self, other: Resources<T>) {
        *self -= &other.0[..];
    }
}

/// Adds the amounts of the first dimensions.
impl<T: Copy + AddAssign> AddAssign<&[T]> for Resources<T> {
    #[inline]
    fn add_assign(&mut self, amounts: &[T]) {
        self.0.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += *amount);
    }
}

/// Subtracts the amounts of the first dimensions.
impl<T: Copy + SubAssign> SubAssign<&[T]> for Resources<T> {
    #[inline]
    fn sub_assign(&mut self, amounts: &[T]) {
        self.0.iter_mut().zip(amounts).for_each(|(rest, amount)| *rest -= *amount);
    }
}

impl<T: Copy + Default + AddAssign> Sum for Resources<T> {
    fn sum<I: Iterator<Item = Resources<T>>>(all: I) -> Resources<T> {
        all.fold(Resources::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

impl<'a, T: Copy + Default + AddAssign + 'a> Sum<&'a Resources<T>> for Resources<T> {
    fn sum<I: Iterator<Item = &'a Resources<T>>>(all: I) -> Resources<T> {
        all.copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    fn amounts(values: &[u64]) -> Resources {
        Resources::from_slice(values)
    }

    #[test]
    fn operators_act_on_each_dimension() {
        let (one, other) = (amounts(&[5, 7, 0]), amounts(&[2, 7, 0, 1]));
        assert_eq!(one + other, amounts(&[7, 14, 0, 1]));
        assert_eq!(one - amounts(&[5, 1]), amounts(&[0, 6]));
        assert_eq!(one.min(other), amounts(&[2, 7]));
        assert_eq!(one.max(other), amounts(&[5, 7, 0, 1]));
        assert_eq!(one.times(3), amounts(&[15, 21]));
        assert_eq!(one.slice(2), [5, 7]);
        assert_eq!((one[1], one.iter().sum::<u64>()), (7, 12));
        assert_eq!([one, other, one].iter().sum::<Resources>(), amounts(&[12, 21, 0, 1]));
        let mut changed = one;
        changed += other;
        changed -= &[1, 2][..];
        assert_eq!(changed, amounts(&[6, 12, 0, 1]));
        changed += &[10][..];
        changed[3] = 0;
        assert_eq!(changed, amounts(&[16, 12]));
        let signed = one.map(i128::from) - other.map(i128::from);
        assert_eq!(signed, Resources::from_slice(&[3, 0, 0, -1]));
        assert_eq!(Resources::uniform(2u64), Resources::from_fn(|_| 2));
    }

    #[test]
    fn amounts_fit_only_if_each_does() {
        assert!(amounts(&[1, 2]).fits(&amounts(&[1, 3])));
        assert!(!amounts(&[1, 2, 1]).fits(&amounts(&[9, 9])));
        assert!(amounts(&[0, 1]).overlaps(&amounts(&[2, 3])) && !amounts(&[1]).overlaps(&amounts(&[0, 3])));
        assert!(Resources::ZERO.is_zero() && !amounts(&[0, 1]).is_zero());
    }

    #[test]
    fn an_overflow_is_never_silent() {
        let (large, one) = (amounts(&[1, u64::MAX]), amounts(&[0, 1]));
        let fails = |compute: fn(Resources, Resources) -> Resources, a: Resources, b: Resources| {
            catch_unwind(|| compute(a, b)).is_err()
        };
        assert!(fails(|a, b| a + b, large, one));
        assert!(fails(|a, b| a - b, one, large));
        assert!(fails(|a, b| [a, b].iter().sum(), large, one));
        assert!(fails(|a, _| a.times(2), large, one));
        for (add, subtract) in [(true, large), (false, one)] {
            let mut sum = if add { one } else { Resources::ZERO };
            assert!(catch_unwind(move || if add { sum += subtract } else { sum -= subtract }).is_err());
            assert!(catch_unwind(move || if add { sum += &subtract.0[..] } else { sum -= &subtract.0[..] }).is_err());
        }
        assert_eq!(large.saturating_add(one), large);
        assert_eq!(one.saturating_sub(large), Resources::ZERO);
        assert_eq!((large.checked_add(one), large.checked_add(amounts(&[1]))), (None, Some(amounts(&[2, u64::MAX]))));
        assert_eq!((one.checked_sub(large), large.checked_sub(one)), (None, Some(amounts(&[1, u64::MAX - 1]))));
    }

    #[test]
    fn the_first_exceeded_limit_is_found() {
        let limit = Resources::from_slice(&[None, Some(10), Some(5)]);
        let exceeded = |usage: &[u64], need: &[u64]| limit.exceeded(&amounts(usage), &amounts(need));
        assert_eq!(exceeded(&[9, 9, 9], &[1, 1, 0]), None);
        assert_eq!(exceeded(&[9, 9, 9], &[1, 3, 1]), Some((1, 2)));
        assert_eq!(exceeded(&[u64::MAX, 0, 9], &[u64::MAX, 1, 1]), Some((2, 5)));
        assert_eq!(Resources::NONE.exceeded(&amounts(&[1]), &amounts(&[1])), None);
        assert_eq!(limit.or_zero(), amounts(&[0, 10, 5]));
    }
}
