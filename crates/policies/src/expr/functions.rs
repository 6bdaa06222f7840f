//! Logarithms and square roots of fixed-point numbers, in integer arithmetic.
//!
//! A logarithm is computed digit by digit: if the mantissa squared is 2 or more, the next binary digit is 1, and the square is halved. A
//! mantissa has 127 fractional bits, and its error halves in weight with every digit. The binary logarithm is therefore less than 2^-99
//! below the exact value. The other logarithms are multiples of it. The result is rounded to the nearest multiple of 2^-64, so that its
//! error is at most 2^-65 + 2^-98, and logarithms that are multiples of 2^-64 are exact. A square root is rounded down to 2^-64.

use ethnum::{I256, U256};

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The natural logarithm.
    Log,
    /// The binary logarithm.
    Log2,
    /// The decimal logarithm.
    Log10,
    /// The square root.
    Sqrt,
}

impl Function {
    /// All functions with their names in an expression.
    pub const ALL: [(&'static str, Function); 4] =
        [("log", Function::Log), ("log2", Function::Log2), ("log10", Function::Log10), ("sqrt", Function::Sqrt)];

    /// Returns the function of a value, both in units of 2^-`places`; `None` if it is not defined. The value is below 2^192, and `places`
    /// is 64 or less.
    pub fn value(self, value: I256, places: u32) -> Option<I256> {
        if self == Function::Sqrt {
            return (value >= 0).then(|| root(value.as_u256() << places).as_i256());
        }
        let log = (value > 0).then(|| binary_logarithm(value.as_u256(), places))?;
        Some(match self {
            Function::Log => round(log * I256::from(LN_2), DIGITS + 128 - places),
            Function::Log10 => round(log * I256::from(LOG10_2), DIGITS + 128 - places),
            _ => round(log, DIGITS - places),
        })
    }
}

/// The fractional digits of a binary logarithm before it is rounded.
const DIGITS: u32 = 100;

/// The logarithms of 2 in units of 2^-128, rounded down.
const LN_2: u128 = 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af;
const LOG10_2: u128 = 0x4d10_4d42_7de7_fbcc_47c4_acd6_05be_48bc;

/// Divides by 2^`bits` and rounds to the nearest integer.
fn round(value: I256, bits: u32) -> I256 {
    (value + (I256::ONE << (bits - 1))) >> bits
}

/// Returns the binary logarithm of a positive number in units of 2^-`places`, rounded down to a multiple of 2^-[`DIGITS`].
fn binary_logarithm(value: U256, places: u32) -> I256 {
    let bits = 256 - value.leading_zeros();
    let mut mantissa: u128 = if bits > 128 { value >> (bits - 128) } else { value << (128 - bits) }.as_u128();
    let mut digits: u128 = 0;
    for _ in 0..DIGITS {
        let square = U256::from(mantissa) * U256::from(mantissa);
        let two = square.leading_zeros() == 0;
        mantissa = if two { square >> 128u32 } else { square >> 127u32 }.as_u128();
        digits = digits << 1 | u128::from(two);
    }
    (I256::from(i64::from(bits) - 1 - i64::from(places)) << DIGITS) + I256::from(digits)
}

/// Returns the square root of a number below 2^255, rounded down.
fn root(value: U256) -> U256 {
    if value == 0 {
        return value;
    }
    // Newton's method decreases from a start above the root until it is reached.
    let mut root = U256::ONE << (256 - value.leading_zeros()).div_ceil(2);
    loop {
        let next = (root + value / root) >> 1u32;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The binary places of the slow reference.
    const PLACES: u32 = 400;

    /// Returns the natural logarithm of a positive number in units of 2^-400: the exponent times log 2, and the mantissa by the series of
    /// the inverse hyperbolic tangent.
    fn slow_log(value: &BigInt, places: u32) -> BigInt {
        let one = BigInt::from(1) << PLACES;
        let series = |numerator: &BigInt, denominator: &BigInt| {
            let z: BigInt = (numerator << PLACES) / denominator;
            let square: BigInt = (&z * &z) >> PLACES;
            let (mut power, mut sum, mut k) = (z, BigInt::ZERO, 1);
            while power != BigInt::ZERO {
                sum += &power / k;
                power = (&power * &square) >> PLACES;
                k += 2;
            }
            sum * 2
        };
        let exponent = value.bits() as i64 - 1;
        let mantissa: BigInt = (value << PLACES) >> exponent;
        let log_2 = series(&BigInt::from(1), &BigInt::from(3));
        log_2 * (exponent - i64::from(places)) + series(&(&mantissa - &one), &(&mantissa + &one))
    }

    fn big(value: I256) -> BigInt {
        value.to_string().parse().expect("a number")
    }

    fn numbers() -> impl Iterator<Item = I256> {
        let mut rng = ChaCha8Rng::seed_from_u64(45);
        let mut random = move |bits: u32| I256::from_words(rng.random_range(0..1 << 61), rng.random()) >> (189 - bits);
        let small = (1..200).map(I256::from);
        let ends = (0..188).flat_map(|bits| [-1, 0, 1].map(|by| (I256::ONE << bits) + I256::from(by)));
        small.chain(ends).chain((1..189).flat_map(move |bits| [random(bits), random(bits)])).filter(|value| *value > 0)
    }

    #[test]
    fn logarithms_are_within_the_bound_of_a_slow_series() {
        let log_10 = slow_log(&BigInt::from(10), 0);
        let log_2 = slow_log(&BigInt::from(2), 0);
        // 2^-65 + 2^-98, in units of 2^-400.
        let bound = (BigInt::from(1) << (PLACES - 65)) + (BigInt::from(1) << (PLACES - 98));
        for value in numbers() {
            let natural = slow_log(&big(value), 64);
            for (function, wanted) in [
                (Function::Log, natural.clone()),
                (Function::Log2, (&natural << PLACES) / &log_2),
                (Function::Log10, (&natural << PLACES) / &log_10),
            ] {
                let result = big(function.value(value, 64).expect("a positive number"));
                let error: BigInt = (result << (PLACES - 64)) - wanted;
                assert!(error.magnitude() <= bound.magnitude(), "{function:?} of {value}: {error}");
            }
        }
    }

    #[test]
    fn logarithms_of_powers_are_exact() {
        let whole = |value: u128| I256::from(value) << 64u32;
        for power in 0..38u32 {
            assert_eq!(Function::Log10.value(whole(10u128.pow(power)), 64), Some(whole(power.into())));
            assert_eq!(Function::Log2.value(whole(1 << power), 64), Some(whole(power.into())));
        }
        assert_eq!(Function::Log.value(whole(1), 64), Some(I256::ZERO));
        assert_eq!(Function::Log.value(I256::ZERO, 64), None);
        assert_eq!(Function::Log2.value(I256::MINUS_ONE, 64), None);
    }

    #[test]
    fn square_roots_are_rounded_down() {
        for value in numbers().chain([I256::ZERO]) {
            let root = Function::Sqrt.value(value, 64).expect("no negative number");
            let square = value << 64u32;
            assert!(root * root <= square && (root + I256::ONE) * (root + I256::ONE) > square, "{value}");
        }
        assert_eq!(Function::Sqrt.value(I256::MINUS_ONE, 64), None);
    }
}
