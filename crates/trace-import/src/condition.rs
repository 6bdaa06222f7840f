//! Conditions on the rows of a table, and numbers of rows, in the language of mappings.

use plimsoll_base::column::Cell;
use plimsoll_base::error::{Error, Result, did_you_mean};

use crate::clock::Clock;
use crate::expr::{ExpressionTree, NameValues, evaluate, parse};
use crate::number::Fraction;
use crate::value::{Value, Valued};

/// A condition such as `user == 'ann' and wait_s > 60`.
#[derive(Clone, Debug)]
pub struct Condition {
    tree: ExpressionTree<usize>,
    columns: Vec<usize>,
}

/// The cells of a row, by the index of their column.
struct ConditionRow<'f, 'a>(&'f dyn Fn(usize) -> Cell<'a>);

impl<'a> NameValues<'a, usize> for ConditionRow<'_, 'a> {
    fn value(&self, column: &usize) -> Valued<Value<'a>> {
        Ok(match (self.0)(*column) {
            Cell::Null => Value::Missing,
            Cell::Int(value) => Value::Number(value.into()),
            Cell::Large(value) => Fraction::reduced(value.into(), 1).map_or(Value::Missing, Value::Number),
            Cell::Float(value) => Fraction::from_double(value).map_or(Value::Missing, Value::Number),
            Cell::Text(text) => Value::text(text),
        })
    }
}

impl Condition {
    /// Parses a condition on these columns. Errors: [`Error::Plan`] under the name `key`, with the position of the mistake and, for an
    /// unknown column, the nearest one.
    pub fn parse(key: &str, text: &str, columns: &[String]) -> Result<Condition> {
        let wrong = |(place, problem): (usize, String)| {
            Error::plan(key, format!("'{text}'"), format!("a condition on columns; at character {place}: {problem}"))
        };
        let mut used = Vec::new();
        let tree = parse(text).map_err(wrong)?.bind(&mut |written| {
            let Some(at) = columns.iter().position(|column| *column == written.name) else {
                let hint = did_you_mean(&written.name, columns.iter().map(String::as_str));
                return Err(wrong((written.place, format!("there is no column '{}'{hint}", written.name))));
            };
            used.push(at);
            Ok(at)
        })?;
        Ok(Condition { tree, columns: used })
    }

    /// Returns the indices of the columns in the condition.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Returns whether the condition holds for a row; it does not hold if a value that it needs is absent. Errors: a value has the wrong
    /// type.
    pub fn holds<'a>(&'a self, cell: &dyn Fn(usize) -> Cell<'a>) -> std::result::Result<bool, String> {
        Ok(evaluate(&self.tree, &ConditionRow(cell), &Clock::default())?.truth()? == Some(true))
    }

    /// Returns the value for a row as a number; `None` if a value that it needs is absent. The number of a condition is 1 if it is true,
    /// otherwise 0. Errors: a value has the wrong type.
    pub fn number<'a>(&'a self, cell: &dyn Fn(usize) -> Cell<'a>) -> std::result::Result<Option<f64>, String> {
        Ok(match evaluate(&self.tree, &ConditionRow(cell), &Clock::default())? {
            Value::Truth(truth) => Some(f64::from(truth)),
            value => value.number(&Clock::default())?.map(Fraction::double),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_select_rows_and_name_their_mistakes() {
        let columns = ["user", "wait_s", "seed"].map(str::to_owned);
        let holds = |text: &str, row: [Cell<'static>; 3]| {
            Condition::parse("--where", text, &columns).expect(text).holds(&|at| row[at])
        };
        let row = [Cell::Text("ann"), Cell::Float(61.5), Cell::Int(3)];
        assert_eq!(holds("user == 'ann' and wait_s > 60", row), Ok(true));
        assert_eq!(holds("wait_s - seed < 58", row), Ok(false));
        assert_eq!(holds("wait_s > 60", [Cell::Null, Cell::Null, Cell::Int(1)]), Ok(false));
        assert!(holds("wait_s + 1", row).is_err());
        let number = |text: &str| Condition::parse("--where", text, &columns).expect(text).number(&|at| row[at]);
        assert_eq!([number("wait_s / 3"), number("wait_s > 60")], [Ok(Some(20.5)), Ok(Some(1.0))]);
        assert!(number("user").is_err());
        let error = Condition::parse("--where", "wait > 1", &columns).expect_err("no such column").to_string();
        assert!(error.contains("at character 1: there is no column 'wait'") && error.contains("wait_s"), "{error}");
        let error = Condition::parse("--where", "seed >", &columns).expect_err("incomplete").to_string();
        assert!(error.contains("at character 7"), "{error}");
    }
}
