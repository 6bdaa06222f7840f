//! Compiles expressions to integers: every value is a multiple of one unit, the same for all users, so that ranks compare exactly.
//!
//! A value is a program in integers times a constant fraction, by class of weights. The operands of a sum, a maximum or a comparison are
//! converted to the least common multiple of all denominators of all classes. Intervals prove that nothing overflows.

use ethnum::I256;

use super::environment::{Environment, Fraction, Leaf, Stop, gcd, within};
use super::names::ENCODED;
use super::parse::{Ast, Fold, Test};
use super::program::{Check, ProgramNode};

/// A number during compilation.
#[derive(Clone, Debug)]
struct CompiledNumber {
    node: ProgramNode<I256>,
    factor: Vec<Fraction>,
    /// The least and the greatest value of the node.
    low: I256,
    high: I256,
}

impl CompiledNumber {
    fn constant(factor: Vec<Fraction>) -> CompiledNumber {
        CompiledNumber { node: ProgramNode::One, factor, low: I256::ONE, high: I256::ONE }
    }

    fn is_constant(&self) -> bool {
        matches!(self.node, ProgramNode::One)
    }
}

/// A program with the interval of its values.
pub struct Ranged {
    pub node: ProgramNode<I256>,
    pub low: I256,
    pub high: I256,
}

/// The compiler to integers.
pub struct Exact<'a> {
    environment: Environment<'a>,
    /// The greatest absolute value that may occur.
    pub most: I256,
}

type Result<T> = std::result::Result<T, Stop>;

impl<'a> Exact<'a> {
    pub fn new(environment: Environment<'a>) -> Exact<'a> {
        Exact { environment, most: I256::ONE }
    }

    /// Compiles a number in a unit of its own. Errors: it is not exact, or invalid in this run.
    pub fn number(&mut self, ast: &Ast) -> Result<Ranged> {
        let value = self.value(ast, None)?;
        let mut aligned = self.align(vec![value])?.0;
        Ok(aligned.remove(0))
    }

    /// Returns whether a number is a constant 0 for some class of weights.
    pub fn is_nothing(&mut self, ast: &Ast, each: Option<usize>) -> bool {
        let nothing =
            |value: CompiledNumber| value.is_constant() && value.factor.iter().any(|factor| factor.inverse().is_none());
        self.value(ast, each).is_ok_and(nothing)
    }

    /// Compiles a condition. Errors: as [`Exact::number`].
    pub fn check(&mut self, test: &Test) -> Result<Check<I256>> {
        self.test(test, None)
    }

    fn widen(&mut self, values: impl IntoIterator<Item = I256>) {
        self.most = values.into_iter().map(I256::abs).fold(self.most, I256::max);
    }

    fn value(&mut self, ast: &Ast, each: Option<usize>) -> Result<CompiledNumber> {
        self.environment.count()?;
        let classes = self.environment.classes();
        match ast {
            Ast::Number(numerator, denominator) => {
                let value = Fraction::new(I256::from(*numerator), I256::from(*denominator));
                Ok(CompiledNumber::constant(vec![value; classes]))
            }
            Ast::Value(name, index, place) => match self.environment.leaf(name, index, *place, each)? {
                Leaf::Constant(values) => Ok(CompiledNumber::constant(values)),
                Leaf::Var(_, _, ENCODED, _) => Err(Stop::Inexact),
                Leaf::Var(var, d, scale, bound) => {
                    let high = I256::from(bound);
                    self.widen([high]);
                    let unit = Fraction::new(I256::ONE, I256::from(scale));
                    Ok(CompiledNumber {
                        node: ProgramNode::Var(var, d, 1),
                        factor: vec![unit; classes],
                        low: I256::ZERO,
                        high,
                    })
                }
            },
            Ast::Sum(a, b) => {
                let of = vec![self.value(a, each)?, self.value(b, each)?];
                self.fold(Fold::Sum, of)
            }
            Ast::Negated(of) => {
                let value = self.value(of, each)?;
                Ok(CompiledNumber { factor: value.factor.iter().map(|factor| factor.negated()).collect(), ..value })
            }
            Ast::Product(a, b) => {
                let (a, b) = (self.value(a, each)?, self.value(b, each)?);
                self.product(a, b)
            }
            Ast::Quotient(a, b, place) => {
                let (a, b) = (self.value(a, each)?, self.value(b, each)?);
                if !b.is_constant() {
                    return Err(Stop::Inexact);
                }
                let inverse = b.factor.iter().map(|factor| factor.inverse()).collect::<Option<_>>();
                self.product(a, CompiledNumber::constant(inverse.ok_or_else(|| zero(place.0))?))
            }
            Ast::Power(of, power) => {
                let value = self.value(of, each)?;
                let mut product = value.clone();
                for _ in 1..*power {
                    product = self.product(product, value.clone())?;
                }
                let node = if value.is_constant() {
                    ProgramNode::One
                } else {
                    ProgramNode::Power(Box::new(value.node), *power)
                };
                Ok(CompiledNumber { node, ..product })
            }
            Ast::Fold(fold, of) => {
                let of = of.iter().map(|one| self.value(one, each)).collect::<Result<_>>()?;
                self.fold(*fold, of)
            }
            Ast::Over(fold, of) => {
                let of = self.environment.resources().map(|d| self.value(of, Some(d))).collect::<Result<_>>()?;
                self.fold(*fold, of)
            }
            Ast::Floor(of) => {
                let value = self.value(of, each)?;
                self.floor(value)
            }
            Ast::Function(..) => Err(Stop::Inexact),
            Ast::If(test, yes, no) => {
                let check = self.test(test, each)?;
                let of = vec![self.value(yes, each)?, self.value(no, each)?];
                let (mut of, unit) = self.align(of)?;
                let (no, yes) = (of.remove(1), of.remove(0));
                let (low, high) = (yes.low.min(no.low), yes.high.max(no.high));
                let node = ProgramNode::If(Box::new(check), Box::new(yes.node), Box::new(no.node));
                Ok(CompiledNumber { node, factor: vec![unit; classes], low, high })
            }
        }
    }

    fn test(&mut self, test: &Test, each: Option<usize>) -> Result<Check<I256>> {
        self.environment.count()?;
        Ok(match test {
            Test::Less(a, b) | Test::Equal(a, b) => {
                let of = vec![self.value(a, each)?, self.value(b, each)?];
                let mut of = self.align(of)?.0;
                let (b, a) = (of.remove(1).node, of.remove(0).node);
                if matches!(test, Test::Less(..)) { Check::Less(a, b) } else { Check::Equal(a, b) }
            }
            Test::Both(a, b) => Check::Both(Box::new(self.test(a, each)?), Box::new(self.test(b, each)?)),
            Test::Not(of) => Check::Not(Box::new(self.test(of, each)?)),
        })
    }

    fn product(&mut self, a: CompiledNumber, b: CompiledNumber) -> Result<CompiledNumber> {
        let factor: Result<Vec<_>> = a.factor.iter().zip(&b.factor).map(|(a, b)| a.times(*b)).collect();
        let factor = factor?;
        if a.is_constant() || b.is_constant() {
            let of = if a.is_constant() { b } else { a };
            return Ok(CompiledNumber { factor, ..of });
        }
        let ends = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)];
        let (low, high) = hull(ends.into_iter().map(|(a, b)| a.checked_mul(b)))?;
        self.widen([low, high]);
        Ok(CompiledNumber { node: ProgramNode::Product(Box::new(a.node), Box::new(b.node)), factor, low, high })
    }

    fn fold(&mut self, fold: Fold, of: Vec<CompiledNumber>) -> Result<CompiledNumber> {
        let classes = self.environment.classes();
        if of.iter().all(CompiledNumber::is_constant) {
            let of_class = |class: usize| {
                let mut values = of.iter().map(|value| value.factor[class]);
                let nothing = Fraction { numerator: I256::ZERO, ..Fraction::ONE };
                let first = values.next().unwrap_or(nothing);
                values.try_fold(first, |one, other| match fold {
                    Fold::Sum => one.plus(other),
                    Fold::Max => Ok(if one.less(other)? { other } else { one }),
                    Fold::Min => Ok(if other.less(one)? { other } else { one }),
                })
            };
            return Ok(CompiledNumber::constant((0..classes).map(of_class).collect::<Result<_>>()?));
        }
        let (of, unit) = self.align(of)?;
        let (low, high) = match fold {
            Fold::Sum => {
                let sum = |end: fn(&Ranged) -> I256| {
                    within(of.iter().map(end).try_fold(I256::ZERO, |sum, one| sum.checked_add(one)))
                };
                // No partial sum exceeds this value.
                self.widen([sum(|one| one.low.abs().max(one.high.abs()))?]);
                (sum(|one| one.low)?, sum(|one| one.high)?)
            }
            Fold::Max => (end(&of, |one| one.low, I256::max), end(&of, |one| one.high, I256::max)),
            Fold::Min => (end(&of, |one| one.low, I256::min), end(&of, |one| one.high, I256::min)),
        };
        let nodes = of.into_iter().map(|one| one.node).collect();
        let node = match fold {
            Fold::Sum => ProgramNode::Sum(nodes),
            Fold::Max => ProgramNode::Max(nodes),
            Fold::Min => ProgramNode::Min(nodes),
        };
        Ok(CompiledNumber { node, factor: vec![unit; classes], low, high })
    }

    fn floor(&mut self, value: CompiledNumber) -> Result<CompiledNumber> {
        if value.is_constant() {
            return Ok(CompiledNumber::constant(value.factor.iter().map(|factor| factor.floor()).collect()));
        }
        let factors = value.factor.iter();
        let (numerators, denominators): (Vec<_>, Vec<_>) = factors.map(|f| (f.numerator, f.denominator)).unzip();
        let (low, high) =
            hull(numerators.iter().flat_map(|n| [value.low.checked_mul(*n), value.high.checked_mul(*n)]))?;
        self.widen([low, high].into_iter().chain(numerators.iter().copied()).chain(denominators.iter().copied()));
        let node = ProgramNode::Scale(Box::new(value.node), numerators.into());
        let by = ProgramNode::Scale(Box::new(ProgramNode::One), denominators.into());
        let node = ProgramNode::Whole(Box::new(ProgramNode::Quotient(Box::new(node), Box::new(by))));
        // A negative quotient is rounded away from zero.
        let factor = vec![Fraction::ONE; self.environment.classes()];
        Ok(CompiledNumber { node, factor, low: low.min(I256::ZERO) - I256::ONE, high: high.max(I256::ZERO) })
    }

    /// Converts values to one unit, which is also returned.
    fn align(&mut self, of: Vec<CompiledNumber>) -> Result<(Vec<Ranged>, Fraction)> {
        let mut common = I256::ONE;
        for factor in of.iter().flat_map(|value| &value.factor) {
            let other = factor.denominator / gcd(common, factor.denominator);
            common = within(common.checked_mul(other))?;
        }
        let mut aligned = Vec::with_capacity(of.len());
        for value in of {
            let each = |factor: &Fraction| within(factor.numerator.checked_mul(common / factor.denominator));
            let factors: Vec<I256> = value.factor.iter().map(each).collect::<Result<_>>()?;
            let (low, high) =
                hull(factors.iter().flat_map(|f| [value.low.checked_mul(*f), value.high.checked_mul(*f)]))?;
            self.widen([low, high].into_iter().chain(factors.iter().copied()));
            let node = match factors.iter().all(|factor| *factor == 1) {
                true => value.node,
                false => ProgramNode::Scale(Box::new(value.node), factors.into()),
            };
            aligned.push(Ranged { node, low, high });
        }
        Ok((aligned, Fraction { numerator: I256::ONE, denominator: common }))
    }
}

/// Returns the error for a division by a constant 0.
pub fn zero(place: usize) -> Stop {
    Stop::Wrong(format!("a divisor other than 0 at character {place}"))
}

/// Returns the least and the greatest of some numbers. Errors: a number is too large.
fn hull(mut of: impl Iterator<Item = Option<I256>>) -> Result<(I256, I256)> {
    let first = within(of.next().flatten())?;
    of.try_fold((first, first), |(low, high), one| {
        let one = within(one)?;
        Ok((low.min(one), high.max(one)))
    })
}

fn end(of: &[Ranged], end: impl Fn(&Ranged) -> I256, fold: impl Fn(I256, I256) -> I256) -> I256 {
    of.iter().map(end).reduce(fold).unwrap_or(I256::ZERO)
}
