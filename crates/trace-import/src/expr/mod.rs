//! Expressions over the columns of a row: numbers, texts and missing values.
//!
//! [`parse`] builds a tree of names, which is bound to positions when the columns of the files are known. [`evaluate`] computes the value of
//! a row. An operand without a value gives a result without a value.

mod functions;
mod lex;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use functions::{bytes, quantity};
pub use parse::{ExpressionTree, Operator, WrittenName, parse};

use crate::clock::Clock;
use crate::value::{Value, Valued};

/// Returns the spellings and the meanings of all functions, for the documentation.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    functions::FUNCTIONS.iter().map(|function| (function.usage, function.about))
}

/// The values of names in a row.
pub trait NameValues<'a, N> {
    /// Returns the value of a name. Errors: it cannot be read.
    fn value(&self, name: &N) -> Valued<Value<'a>>;
}

/// Computes the value of an expression. Errors: the problem with a value.
pub fn evaluate<'a, N>(
    tree: &'a ExpressionTree<N>,
    names: &impl NameValues<'a, N>,
    clock: &Clock,
) -> Valued<Value<'a>> {
    let of = |tree: &'a ExpressionTree<N>| evaluate(tree, names, clock);
    Ok(match tree {
        ExpressionTree::Name(name) => names.value(name)?,
        ExpressionTree::Number(number) => Value::Number(*number),
        ExpressionTree::Text(text) => Value::text(text.as_str()),
        ExpressionTree::Truth(truth) => Value::Truth(*truth),
        ExpressionTree::Missing => Value::Missing,
        ExpressionTree::Negated(a) => {
            of(a)?.number(clock)?.map_or(Value::Missing, |number| Value::Number(number.negated()))
        }
        ExpressionTree::Not(a) => of(a)?.truth()?.map_or(Value::Missing, |truth| Value::Truth(!truth)),
        ExpressionTree::If(parts) => match of(&parts[0])?.truth()? {
            None => Value::Missing,
            Some(true) => of(&parts[1])?,
            Some(false) => of(&parts[2])?,
        },
        ExpressionTree::Binary(operator, a, b) => binary(*operator, of(a)?, || of(b), clock)?,
        ExpressionTree::Call(function, arguments) => {
            let values = arguments.iter().map(of).collect::<Valued<Vec<_>>>()?;
            if !function.of_missing && values.iter().any(Value::is_missing) {
                return Ok(Value::Missing);
            }
            (function.compute)(&values, clock)?
        }
    })
}

fn binary<'a>(
    operator: Operator,
    a: Value<'a>,
    b: impl FnOnce() -> Valued<Value<'a>>,
    clock: &Clock,
) -> Valued<Value<'a>> {
    let truth = |truth: Option<bool>| truth.map_or(Value::Missing, Value::Truth);
    let decided = match operator {
        Operator::And => Some(false),
        Operator::Or => Some(true),
        _ => None,
    };
    if let Some(decided) = decided {
        let a = a.truth()?;
        if a == Some(decided) {
            return Ok(Value::Truth(decided));
        }
        let b = b()?.truth()?;
        return Ok(if b == Some(decided) { Value::Truth(decided) } else { truth(a.and(b)) });
    }
    let b = b()?;
    if a.is_missing() || b.is_missing() {
        return Ok(Value::Missing);
    }
    let order = || a.compare(&b, clock);
    Ok(match operator {
        Operator::Equal => Value::Truth(order() == Some(Ordering::Equal)),
        Operator::Unequal => Value::Truth(order() != Some(Ordering::Equal)),
        Operator::Less => truth(order().map(Ordering::is_lt)),
        Operator::AtMost => truth(order().map(Ordering::is_le)),
        Operator::Greater => truth(order().map(Ordering::is_gt)),
        Operator::AtLeast => truth(order().map(Ordering::is_ge)),
        _ => {
            let (Some(a), Some(b)) = (a.number(clock)?, b.number(clock)?) else { return Ok(Value::Missing) };
            let result = match operator {
                Operator::Plus => a.plus(b),
                Operator::Minus => a.minus(b),
                Operator::Times => a.times(b),
                _ if b == crate::number::Fraction::ZERO => return Err(format!("{a} is divided by 0")),
                _ => a.over(b),
            };
            Value::Number(result.ok_or("is too large")?)
        }
    })
}
