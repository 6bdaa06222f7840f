//! Exact fractions: shares are compared without rounding.

use std::cmp::Ordering;

/// An exact fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    pub num: u128,
    pub den: u128,
}

impl Ratio {
    pub const ZERO: Ratio = Ratio { num: 0, den: 1 };
    pub const ONE: Ratio = Ratio { num: 1, den: 1 };

    pub fn new(num: u128, den: u128) -> Ratio {
        assert!(den > 0, "a fraction has a denominator");
        let (mut a, mut b) = (num, den);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Ratio { num: num / a, den: den / a }
    }

    pub fn plus(self, other: Ratio) -> Ratio {
        let product = |a: u128, b: u128| a.checked_mul(b).expect("sums of small fractions fit");
        let num = product(self.num, other.den).checked_add(product(other.num, self.den)).expect("as above");
        Ratio::new(num, product(self.den, other.den))
    }
}

impl Ord for Ratio {
    /// Compares by continued fractions: exact, without overflow.
    fn cmp(&self, other: &Ratio) -> Ordering {
        let (mut a, mut b, mut c, mut d) = (self.num, self.den, other.num, other.den);
        loop {
            let wholes = (a / b).cmp(&(c / d));
            let (rest, other_rest) = (a % b, c % d);
            if wholes != Ordering::Equal || rest == 0 || other_rest == 0 {
                return wholes.then(rest.min(1).cmp(&other_rest.min(1)));
            }
            // rest/b < other_rest/d exactly when d/other_rest < b/rest.
            (a, b, c, d) = (d, other_rest, b, rest);
        }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
