//! Expressions in fixed point, where they are not exact.

use ethnum::I256;

use super::exact::{Exact, zero};
use super::ground::{Fraction, Ground, Leaf, Stop};
use super::parse::{Ast, Fold, Test};
use super::program::{Check, Fixed, Node};

type Result<T> = std::result::Result<T, Stop>;

/// Compiles to fixed point.
pub struct Rounded<'a>(pub Ground<'a>);

impl Rounded<'_> {
    /// A number. Errors: it makes no sense.
    pub fn number(&mut self, ast: &Ast) -> Result<Node<Fixed>> {
        self.value(ast, None)
    }

    /// A condition. Errors: as [`Rounded::number`].
    pub fn check(&mut self, test: &Test) -> Result<Check<Fixed>> {
        self.test(test, None)
    }

    fn value(&mut self, ast: &Ast, each: Option<usize>) -> Result<Node<Fixed>> {
        self.0.count()?;
        let constant = |values: Vec<Fraction>| {
            let values = values.iter().map(|value| Fixed::of(value.numerator, value.denominator));
            Node::Scale(Box::new(Node::One), values.collect())
        };
        Ok(match ast {
            Ast::Number(numerator, denominator) => {
                let value = Fraction::new(I256::from(*numerator), I256::from(*denominator));
                constant(vec![value; self.0.classes()])
            }
            Ast::Value(name, index, place) => match self.0.leaf(name, index, *place, each)? {
                Leaf::Constant(values) => constant(values),
                Leaf::Var(var, d, scale, _) => Node::Var(var, d, scale),
            },
            Ast::Sum(a, b) => Node::Sum(vec![self.value(a, each)?, self.value(b, each)?]),
            Ast::Negated(of) => {
                let minus = Fixed::of(I256::MINUS_ONE, I256::ONE);
                Node::Scale(Box::new(self.value(of, each)?), vec![minus; self.0.classes()].into())
            }
            Ast::Product(a, b) => Node::Product(Box::new(self.value(a, each)?), Box::new(self.value(b, each)?)),
            Ast::Quotient(a, b, place) => {
                if Exact::new(self.0.anew()).is_nothing(b, each) {
                    return Err(zero(place.0));
                }
                Node::Quotient(Box::new(self.value(a, each)?), Box::new(self.value(b, each)?))
            }
            Ast::Power(of, power) => Node::Power(Box::new(self.value(of, each)?), *power),
            Ast::Fold(fold, of) => {
                let of = of.iter().map(|one| self.value(one, each)).collect::<Result<_>>()?;
                folded(*fold, of)
            }
            Ast::Over(fold, of) => {
                let of = self.0.resources().map(|d| self.value(of, Some(d))).collect::<Result<_>>()?;
                folded(*fold, of)
            }
            Ast::Floor(of) => Node::Whole(Box::new(self.value(of, each)?)),
            Ast::If(test, yes, no) => {
                let check = Box::new(self.test(test, each)?);
                Node::If(check, Box::new(self.value(yes, each)?), Box::new(self.value(no, each)?))
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

fn folded(fold: Fold, of: Vec<Node<Fixed>>) -> Node<Fixed> {
    match fold {
        Fold::Max => Node::Max(of),
        Fold::Min => Node::Min(of),
        Fold::Sum => Node::Sum(of),
    }
}
