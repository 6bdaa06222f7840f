//! Compiles expressions that are not exact to fixed point.

use ethnum::I256;

use super::environment::{Environment, Fraction, Leaf, Stop};
use super::exact::{Exact, zero};
use super::parse::{Ast, Fold, Test};
use super::program::{Check, Fixed, ProgramNode};

type Result<T> = std::result::Result<T, Stop>;

/// The compiler to fixed point.
pub struct Rounded<'a>(pub Environment<'a>);

impl Rounded<'_> {
    /// Compiles a number. Errors: the expression is invalid in this run.
    pub fn number(&mut self, ast: &Ast) -> Result<ProgramNode<Fixed>> {
        self.value(ast, None)
    }

    /// Compiles a condition. Errors: as [`Rounded::number`].
    pub fn check(&mut self, test: &Test) -> Result<Check<Fixed>> {
        self.test(test, None)
    }

    fn value(&mut self, ast: &Ast, each: Option<usize>) -> Result<ProgramNode<Fixed>> {
        self.0.count()?;
        let constant = |values: Vec<Fraction>| {
            let values = values.iter().map(|value| Fixed::from_ratio(value.numerator, value.denominator));
            ProgramNode::Scale(Box::new(ProgramNode::One), values.collect())
        };
        Ok(match ast {
            Ast::Number(numerator, denominator) => {
                let value = Fraction::new(I256::from(*numerator), I256::from(*denominator));
                constant(vec![value; self.0.classes()])
            }
            Ast::Value(name, index, place) => match self.0.leaf(name, index, *place, each)? {
                Leaf::Constant(values) => constant(values),
                Leaf::Var(var, d, scale, _) => ProgramNode::Var(var, d, scale),
            },
            Ast::Sum(a, b) => ProgramNode::Sum(vec![self.value(a, each)?, self.value(b, each)?]),
            Ast::Negated(of) => {
                let minus = Fixed::from_ratio(I256::MINUS_ONE, I256::ONE);
                ProgramNode::Scale(Box::new(self.value(of, each)?), vec![minus; self.0.classes()].into())
            }
            Ast::Product(a, b) => ProgramNode::Product(Box::new(self.value(a, each)?), Box::new(self.value(b, each)?)),
            Ast::Quotient(a, b, place) => {
                if Exact::new(self.0.anew()).is_nothing(b, each) {
                    return Err(zero(place.0));
                }
                ProgramNode::Quotient(Box::new(self.value(a, each)?), Box::new(self.value(b, each)?))
            }
            Ast::Power(of, power) => ProgramNode::Power(Box::new(self.value(of, each)?), *power),
            Ast::Fold(fold, of) => {
                let of = of.iter().map(|one| self.value(one, each)).collect::<Result<_>>()?;
                folded(*fold, of)
            }
            Ast::Over(fold, of) => {
                let of = self.0.resources().map(|d| self.value(of, Some(d))).collect::<Result<_>>()?;
                folded(*fold, of)
            }
            Ast::Floor(of) => ProgramNode::Whole(Box::new(self.value(of, each)?)),
            Ast::Function(function, of) => ProgramNode::Function(*function, Box::new(self.value(of, each)?)),
            Ast::If(test, yes, no) => {
                let check = Box::new(self.test(test, each)?);
                ProgramNode::If(check, Box::new(self.value(yes, each)?), Box::new(self.value(no, each)?))
            }
        })
    }

    fn test(&mut self, test: &Test, each: Option<usize>) -> Result<Check<Fixed>> {
        self.0.count()?;
        Ok(match test {
            Test::Less(a, b) => Check::Less(self.value(a, each)?, self.value(b, each)?),
            Test::Equal(a, b) => Check::Equal(self.value(a, each)?, self.value(b, each)?),
            Test::Both(a, b) => Check::Both(Box::new(self.test(a, each)?), Box::new(self.test(b, each)?)),
            Test::Not(of) => Check::Not(Box::new(self.test(of, each)?)),
        })
    }
}

fn folded(fold: Fold, of: Vec<ProgramNode<Fixed>>) -> ProgramNode<Fixed> {
    match fold {
        Fold::Max => ProgramNode::Max(of),
        Fold::Min => ProgramNode::Min(of),
        Fold::Sum => ProgramNode::Sum(of),
    }
}
