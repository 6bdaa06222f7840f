//! The constants of a run that an expression may name, and exact fractions of them.

use ethnum::I256;

use super::lex::CharPosition;
use super::names::{Name, ValueUnit, Var};
use super::parse::Index;
use crate::Setup;
use plimsoll_base::error::nearest;
use plimsoll_base::units::{Dim, MAX_DIMS};

/// The reason why an expression is not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The expression cannot be computed exactly.
    Inexact,
    /// The expression is invalid in this run: the expected form.
    Wrong(String),
}

/// Checks that |x| < 2^252. Errors: [`Stop::Inexact`].
pub fn within(value: Option<I256>) -> Result<I256, Stop> {
    value.filter(|value| value.unsigned_abs().leading_zeros() >= 4).ok_or(Stop::Inexact)
}

/// An exact fraction in lowest terms; the denominator is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    pub numerator: I256,
    pub denominator: I256,
}

pub fn gcd(a: I256, b: I256) -> I256 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != I256::ZERO {
        (a, b) = (b, a % b);
    }
    a
}

impl Fraction {
    pub const ONE: Fraction = Fraction { numerator: I256::ONE, denominator: I256::ONE };

    /// Creates a fraction in lowest terms; the denominator must not be 0.
    pub fn new(numerator: I256, denominator: I256) -> Fraction {
        let common = gcd(numerator, denominator) * denominator.signum();
        Fraction { numerator: numerator / common, denominator: denominator / common }
    }

    pub fn times(self, other: Fraction) -> Result<Fraction, Stop> {
        let (a, b) =
            (Fraction::new(self.numerator, other.denominator), Fraction::new(other.numerator, self.denominator));
        Ok(Fraction {
            numerator: within(a.numerator.checked_mul(b.numerator))?,
            denominator: within(a.denominator.checked_mul(b.denominator))?,
        })
    }

    pub fn plus(self, other: Fraction) -> Result<Fraction, Stop> {
        let part = |a: I256, b: I256| within(a.checked_mul(b));
        let sum = part(self.numerator, other.denominator)?.checked_add(part(other.numerator, self.denominator)?);
        Ok(Fraction::new(within(sum)?, part(self.denominator, other.denominator)?))
    }

    pub fn less(self, other: Fraction) -> Result<bool, Stop> {
        let part = |a: I256, b: I256| within(a.checked_mul(b));
        Ok(part(self.numerator, other.denominator)? < part(other.numerator, self.denominator)?)
    }

    pub fn negated(self) -> Fraction {
        Fraction { numerator: -self.numerator, ..self }
    }

    /// Returns the reciprocal; `None` for zero.
    pub fn inverse(self) -> Option<Fraction> {
        (self.numerator != 0).then(|| Fraction::new(self.denominator, self.numerator))
    }

    pub fn floor(self) -> Fraction {
        Fraction { numerator: self.numerator.div_euclid(self.denominator), denominator: I256::ONE }
    }
}

/// A named value of an expression.
pub enum Leaf {
    /// A constant, by class of weights.
    Constant(Vec<Fraction>),
    /// A variable: the resource, the number per unit, and its maximum in units of the books.
    Var(Var, u8, u64, u128),
}

/// The constants of a run, and the size limit of an expression.
pub struct Environment<'a> {
    setup: Option<&'a Setup<'a>>,
    /// The number of parts of the expression so far.
    parts: usize,
}

/// The largest number of parts of an expression after substitution of all resources.
const MOST: usize = 2000;

impl<'a> Environment<'a> {
    /// Creates the environment of a run; without a run, only variables may be named.
    pub fn new(setup: Option<&'a Setup<'a>>) -> Environment<'a> {
        Environment { setup, parts: 0 }
    }

    /// Creates an environment of the same run for another expression.
    pub fn anew(&self) -> Environment<'a> {
        Environment::new(self.setup)
    }

    /// Returns the number of classes of weights.
    pub fn classes(&self) -> usize {
        self.setup.map_or(1, |setup| setup.weights.classes())
    }

    /// Returns the resources with a capacity above 0.
    pub fn resources(&self) -> impl Iterator<Item = usize> + use<> {
        let there = |setup: &Setup| (0..setup.dims.len()).filter(|d| setup.capacity.0[*d] > 0).collect::<Vec<_>>();
        self.setup.map(there).unwrap_or_default().into_iter()
    }

    /// Counts one more part. Errors: there are too many.
    pub fn count(&mut self) -> Result<(), Stop> {
        self.parts += 1;
        match self.parts > MOST {
            true => Err(Stop::Wrong(format!("an expression of at most {MOST} parts, each resource counted"))),
            false => Ok(()),
        }
    }

    /// Returns a value by name; `each` is the current resource. Errors: an unknown resource, or a weight that differs by resource.
    pub fn leaf(&self, name: &Name, index: &Index, place: CharPosition, each: Option<usize>) -> Result<Leaf, Stop> {
        let d = match index {
            Index::One => None,
            Index::Each => each,
            Index::Named(resource) => Some(self.resource(name, resource, place)?),
        };
        let dims: &[Dim] = self.setup.map_or(&[], |setup| setup.dims);
        let scale = name.measure.scale(d.map(|d| &dims[d]));
        if name.measure == ValueUnit::Key {
            return Ok(Leaf::Var(name.var, 0, scale, u128::MAX));
        }
        let constant = |value: u64| Fraction::new(I256::from(value), I256::from(scale));
        let bound = u128::MAX >> (128 - name.bits);
        let Some(setup) = self.setup else { return Ok(Leaf::Var(name.var, 0, scale, bound)) };
        let classes = setup.weights.classes();
        Ok(match (name.var, d) {
            (Var::Capacity, Some(d)) => Leaf::Constant(vec![constant(setup.capacity.0[d]); classes]),
            (Var::Machines, _) => Leaf::Constant(vec![constant(setup.machines); classes]),
            (Var::Weight, Some(d)) => {
                Leaf::Constant((0..classes).map(|class| constant(setup.weights.each(class)[d])).collect())
            }
            (Var::Weight, None) => {
                let whole = (0..classes).map(|class| setup.weights.uniform(class).map(constant));
                let problem =
                    format!("weight[r] instead of 'weight' at character {}: weights differ by resource", place.0);
                Leaf::Constant(whole.collect::<Option<_>>().ok_or(Stop::Wrong(problem))?)
            }
            (Var::Held | Var::TotalHeld | Var::Demand, Some(d)) => {
                Leaf::Var(name.var, d as u8, scale, setup.capacity.0[d].into())
            }
            (var, d) => Leaf::Var(var, d.unwrap_or(0) as u8, scale, bound),
        })
    }

    fn resource(&self, name: &Name, resource: &str, place: CharPosition) -> Result<usize, Stop> {
        let dims: &[Dim] = self.setup.map_or(&[], |setup| setup.dims);
        dims.iter().position(|dim| dim.name == resource).ok_or_else(|| {
            let known = || dims.iter().map(|dim| dim.name.as_str());
            let hint = nearest(resource, known()).map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
            let (name, at, known) = (name.name, place.0, known().collect::<Vec<_>>().join(", "));
            let problem = format!(
                "a resource of the workload or the cluster in '{name}[{resource}]' at character {at}{hint}: {known}"
            );
            Stop::Wrong(problem)
        })
    }
}

const _: () = assert!(MAX_DIMS <= u8::MAX as usize);
