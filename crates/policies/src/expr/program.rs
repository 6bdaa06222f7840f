//! A compiled expression that is ready to be evaluated, in one kind of numbers.

use ethnum::{I256, U256};

use super::functions::Function;
use super::names::{ENCODED, Var};
use crate::Rank;

/// The values that an expression reads, in units of the books. For a value per resource, `d` is the index of the dimension.
pub trait View {
    fn read(&self, var: Var, d: usize) -> u128;
}

/// A kind of numbers. Operations on values that a compiler accepts do not overflow.
pub trait Number: Copy + Ord {
    const ONE: Self;
    const ZERO: Self;
    /// Converts a value of the books, given in units of which `scale` make one unit of the expression, or a key if `scale` is
    /// [`ENCODED`].
    fn read(value: u128, scale: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    /// The largest whole number that is not greater.
    fn floor(self) -> Self;
    /// Returns a function of the value. Only numbers in fixed point have functions.
    fn apply(self, function: Function) -> Self;
    /// Returns the rank of a value; `low` is the least value.
    fn rank(self, low: Self) -> Rank;
    /// Returns the rank in 128 bits.
    fn key(self, low: Self) -> u128;
}

/// Exact multiples of the unit that the compiler found. A quotient is computed only if just its whole part is used.
impl Number for i128 {
    const ONE: i128 = 1;
    const ZERO: i128 = 0;

    fn read(value: u128, _scale: u64) -> i128 {
        value as i128
    }

    fn plus(self, other: i128) -> i128 {
        self + other
    }

    fn times(self, other: i128) -> i128 {
        self * other
    }

    fn over(self, other: i128) -> i128 {
        self.div_euclid(other)
    }

    fn floor(self) -> i128 {
        self
    }

    fn apply(self, function: Function) -> i128 {
        unreachable!("{function:?} of an exact number")
    }

    fn rank(self, low: i128) -> Rank {
        Rank::new(self.wrapping_sub(low) as u128)
    }

    fn key(self, low: i128) -> u128 {
        self.wrapping_sub(low) as u128
    }
}

/// Exact multiples of the unit, in 256 bits.
impl Number for I256 {
    const ONE: I256 = I256::ONE;
    const ZERO: I256 = I256::ZERO;

    fn read(value: u128, _scale: u64) -> I256 {
        I256::from(value)
    }

    fn plus(self, other: I256) -> I256 {
        self + other
    }

    fn times(self, other: I256) -> I256 {
        self * other
    }

    fn over(self, other: I256) -> I256 {
        self.div_euclid(other)
    }

    fn floor(self) -> I256 {
        self
    }

    fn apply(self, function: Function) -> I256 {
        unreachable!("{function:?} of an exact number")
    }

    fn rank(self, low: I256) -> Rank {
        let (high, low) = (self - low).as_u256().into_words();
        Rank::wide(high, low)
    }

    fn key(self, low: I256) -> u128 {
        (self - low).as_u128()
    }
}

/// Fixed point: a multiple of 2^-64, saturated at 2^124. Products and quotients are rounded down. A quotient by zero is the largest number
/// for a positive dividend, the least number for a negative one, and zero for zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(I256);

/// Binary places of a [`Fixed`].
pub const PLACES: u32 = 64;

/// The bits of a [`Fixed`] before the binary point.
const BITS: u32 = 124;

/// The bits of a [`Fixed`] in a key after the first bit that is set.
const KEY_BITS: u32 = 119;

/// The key of zero.
const KEY_ZERO: u128 = 1 << 127;

impl Fixed {
    const MOST: I256 = I256::from_words(1 << (BITS + PLACES - 128), 0);

    fn cut(value: I256) -> Fixed {
        Fixed(value.clamp(-Fixed::MOST, Fixed::MOST))
    }

    /// Returns the nearest double.
    pub fn number(self) -> f64 {
        self.0.as_f64() / 2f64.powi(PLACES as i32)
    }

    /// Returns the value that [`Number::key`] encodes.
    pub fn from_key(key: u128) -> Fixed {
        let code = key.abs_diff(KEY_ZERO);
        let Some(behind) = ((code >> KEY_BITS) as u32).checked_sub(1) else { return Fixed::ZERO };
        let first = U256::from(code & ((1 << KEY_BITS) - 1) | 1 << KEY_BITS);
        let magnitude = if behind > KEY_BITS { first << (behind - KEY_BITS) } else { first >> (KEY_BITS - behind) };
        Fixed::cut(if key < KEY_ZERO { -magnitude.as_i256() } else { magnitude.as_i256() })
    }

    /// Converts a fraction of numbers below 2^252, rounded down.
    pub fn from_ratio(numerator: I256, denominator: I256) -> Fixed {
        let whole = numerator.div_euclid(denominator).clamp(-(I256::ONE << BITS), I256::ONE << BITS);
        let (mut value, mut rest) = (whole, numerator.rem_euclid(denominator));
        for _ in 0..PLACES {
            rest <<= 1;
            let more = rest >= denominator;
            value = (value << 1) + I256::from(more);
            rest -= if more { denominator } else { I256::ZERO };
        }
        Fixed::cut(value)
    }
}

impl Number for Fixed {
    const ONE: Fixed = Fixed(I256::from_words(0, 1 << PLACES));
    const ZERO: Fixed = Fixed(I256::ZERO);

    fn read(value: u128, scale: u64) -> Fixed {
        if scale == ENCODED {
            return Fixed::from_key(value);
        }
        Fixed::cut(((U256::from(value) << PLACES) / U256::from(scale)).as_i256())
    }

    fn plus(self, other: Fixed) -> Fixed {
        Fixed::cut(self.0 + other.0)
    }

    fn times(self, other: Fixed) -> Fixed {
        let bits = |value: I256| 256 - value.unsigned_abs().leading_zeros();
        if bits(self.0) + bits(other.0) < 254 {
            return Fixed::cut((self.0 * other.0) >> PLACES);
        }
        // The product is 2^252 or more before the places are cut off, that is 2^124 or more.
        if (self.0 < 0) == (other.0 < 0) { Fixed(Fixed::MOST) } else { Fixed(-Fixed::MOST) }
    }

    fn over(self, other: Fixed) -> Fixed {
        match (self.0.signum().as_i128(), other.0) {
            (sign, I256::ZERO) => Fixed(Fixed::MOST * I256::from(sign)),
            // Euclid's quotient is rounded up where the divisor is negative.
            (_, divisor) if divisor < 0 => Fixed::cut((-self.0 << PLACES).div_euclid(-divisor)),
            (_, divisor) => Fixed::cut((self.0 << PLACES).div_euclid(divisor)),
        }
    }

    fn floor(self) -> Fixed {
        Fixed((self.0 >> PLACES) << PLACES)
    }

    fn apply(self, function: Function) -> Fixed {
        let undefined = if function == Function::Sqrt { I256::ZERO } else { -Fixed::MOST };
        Fixed(function.value(self.0, PLACES).unwrap_or(undefined))
    }

    fn rank(self, _low: Fixed) -> Rank {
        self.0.rank(-Fixed::MOST)
    }

    /// Encodes the sign, the number of bits and the first 120 bits, so that keys are ordered like values.
    fn key(self, _low: Fixed) -> u128 {
        let magnitude = self.0.unsigned_abs();
        let bits = 256 - magnitude.leading_zeros();
        let Some(behind) = bits.checked_sub(1) else { return KEY_ZERO };
        let rest = magnitude - (U256::ONE << behind);
        let rest = if behind > KEY_BITS { rest >> (behind - KEY_BITS) } else { rest << (KEY_BITS - behind) };
        let code = u128::from(bits) << KEY_BITS | rest.as_u128();
        if self.0 < 0 { KEY_ZERO - code } else { KEY_ZERO + code }
    }
}

/// A node of a program that evaluates to a number. Factors are by class of weights.
#[derive(Clone, Debug)]
pub enum ProgramNode<N> {
    One,
    Var(Var, u8, u64),
    Scale(Box<ProgramNode<N>>, Box<[N]>),
    Sum(Vec<ProgramNode<N>>),
    Max(Vec<ProgramNode<N>>),
    Min(Vec<ProgramNode<N>>),
    Product(Box<ProgramNode<N>>, Box<ProgramNode<N>>),
    Quotient(Box<ProgramNode<N>>, Box<ProgramNode<N>>),
    Power(Box<ProgramNode<N>>, u32),
    Whole(Box<ProgramNode<N>>),
    Function(Function, Box<ProgramNode<N>>),
    If(Box<Check<N>>, Box<ProgramNode<N>>, Box<ProgramNode<N>>),
}

/// A condition of a program.
#[derive(Clone, Debug)]
pub enum Check<N> {
    Less(ProgramNode<N>, ProgramNode<N>),
    Equal(ProgramNode<N>, ProgramNode<N>),
    Both(Box<Check<N>>, Box<Check<N>>),
    Not(Box<Check<N>>),
}

impl<N: Number> ProgramNode<N> {
    /// Returns the value for a user with this class of weights.
    pub fn value(&self, view: &impl View, class: usize) -> N {
        match self {
            ProgramNode::One => N::ONE,
            ProgramNode::Var(var, d, scale) => N::read(view.read(*var, usize::from(*d)), *scale),
            ProgramNode::Scale(of, factors) => of.value(view, class).times(factors[class]),
            ProgramNode::Sum(of) => of.iter().map(|one| one.value(view, class)).fold(N::ZERO, N::plus),
            ProgramNode::Max(of) => of.iter().map(|one| one.value(view, class)).max().unwrap_or(N::ZERO),
            ProgramNode::Min(of) => of.iter().map(|one| one.value(view, class)).min().unwrap_or(N::ZERO),
            ProgramNode::Product(a, b) => a.value(view, class).times(b.value(view, class)),
            ProgramNode::Quotient(a, b) => a.value(view, class).over(b.value(view, class)),
            ProgramNode::Power(of, power) => {
                let value = of.value(view, class);
                (1..*power).fold(value, |product, _| product.times(value))
            }
            ProgramNode::Whole(of) => of.value(view, class).floor(),
            ProgramNode::Function(function, of) => of.value(view, class).apply(*function),
            ProgramNode::If(check, yes, no) => {
                if check.is_true(view, class) {
                    yes.value(view, class)
                } else {
                    no.value(view, class)
                }
            }
        }
    }

    /// Converts the program to another kind of numbers.
    pub fn map<M>(self, number: &impl Fn(N) -> M) -> ProgramNode<M> {
        let boxed = |node: Box<ProgramNode<N>>| Box::new(node.map(number));
        let all = |of: Vec<ProgramNode<N>>| of.into_iter().map(|one| one.map(number)).collect();
        match self {
            ProgramNode::One => ProgramNode::One,
            ProgramNode::Var(var, d, scale) => ProgramNode::Var(var, d, scale),
            ProgramNode::Scale(of, factors) => ProgramNode::Scale(boxed(of), factors.into_iter().map(number).collect()),
            ProgramNode::Sum(of) => ProgramNode::Sum(all(of)),
            ProgramNode::Max(of) => ProgramNode::Max(all(of)),
            ProgramNode::Min(of) => ProgramNode::Min(all(of)),
            ProgramNode::Product(a, b) => ProgramNode::Product(boxed(a), boxed(b)),
            ProgramNode::Quotient(a, b) => ProgramNode::Quotient(boxed(a), boxed(b)),
            ProgramNode::Power(of, power) => ProgramNode::Power(boxed(of), power),
            ProgramNode::Whole(of) => ProgramNode::Whole(boxed(of)),
            ProgramNode::Function(function, of) => ProgramNode::Function(function, boxed(of)),
            ProgramNode::If(check, yes, no) => ProgramNode::If(Box::new(check.map(number)), boxed(yes), boxed(no)),
        }
    }
}

impl<N: Number> Check<N> {
    /// Returns whether the condition is true for a user with this class of weights.
    pub fn is_true(&self, view: &impl View, class: usize) -> bool {
        match self {
            Check::Less(a, b) => a.value(view, class) < b.value(view, class),
            Check::Equal(a, b) => a.value(view, class) == b.value(view, class),
            Check::Both(a, b) => a.is_true(view, class) && b.is_true(view, class),
            Check::Not(a) => !a.is_true(view, class),
        }
    }

    /// Converts the condition to another kind of numbers.
    pub fn map<M>(self, number: &impl Fn(N) -> M) -> Check<M> {
        match self {
            Check::Less(a, b) => Check::Less(a.map(number), b.map(number)),
            Check::Equal(a, b) => Check::Equal(a.map(number), b.map(number)),
            Check::Both(a, b) => Check::Both(Box::new(a.map(number)), Box::new(b.map(number))),
            Check::Not(a) => Check::Not(Box::new(a.map(number))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn keys_are_ordered_like_values_and_keep_120_bits() {
        let mut rng = ChaCha8Rng::seed_from_u64(46);
        let mut random = |bits: u32| I256::from_words(rng.random_range(0..1 << 60), rng.random()) >> (188 - bits);
        let mut values: Vec<I256> =
            (0..=188).flat_map(|bits| [random(bits), random(bits), I256::ONE << bits]).collect();
        values.extend(values.clone().into_iter().map(|value| value - I256::ONE));
        values.extend(values.clone().into_iter().map(|value| -value));
        values.sort_unstable();
        values.dedup();
        let key = |value: I256| Fixed::cut(value).key(Fixed::ZERO);
        assert!(values.len() > 1000 && values.is_sorted_by_key(|value| key(*value)));
        for value in values {
            let lost = (value.abs() - Fixed::from_key(key(value)).0.abs()).as_u256();
            assert!(lost << 119u32 <= value.unsigned_abs(), "{value}");
            assert!(lost == 0 || value.unsigned_abs().leading_zeros() < 136, "{value}");
        }
    }
}
