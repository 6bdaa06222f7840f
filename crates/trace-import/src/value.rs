//! Values in expressions: a text, a number, a truth value, or no value.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::clock::Clock;
use crate::number::Fraction;

/// A value. A field of a file is a text until a number is needed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Missing,
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Number(Fraction),
    /// `true` or `false`.
    Truth(bool),
}

/// The problem of a value, as the end of a sentence about it.
pub type Valued<T> = Result<T, String>;

/// Shortens a text for a message.
pub fn short(text: &str) -> String {
    plimsoll_sim::workload::shorten(text.as_bytes())
}

impl<'a> Value<'a> {
    /// Creates a text from a string.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::Text(text.into())
    }

    /// Returns whether there is no value.
    pub fn is_missing(&self) -> bool {
        *self == Value::Missing
    }

    /// Converts the value to a number; `None` if it is missing. A text may be a decimal number, or a time, which becomes seconds.
    ///
    /// Errors: the value is neither.
    pub fn number(&self, clock: &Clock) -> Valued<Option<Fraction>> {
        match self {
            Value::Missing => Ok(None),
            Value::Number(number) => Ok(Some(*number)),
            Value::Truth(truth) => Err(format!("'{truth}' is not a number")),
            Value::Text(text) => {
                // A stated format may consist of digits only, such as 202603020800.
                let number = match clock.format {
                    Some(_) => clock.read(text).or_else(|| Fraction::parse(text)),
                    None => Fraction::parse(text).or_else(|| clock.read(text)),
                };
                let form = clock.format.as_deref().unwrap_or("ISO 8601");
                number
                    .map(Some)
                    .ok_or_else(|| format!("'{}' is neither a number nor a time in the form {form}", short(text)))
            }
        }
    }

    /// Converts the value to a text; `None` if it is missing.
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Value::Missing => None,
            Value::Text(text) => Some(text),
            Value::Number(number) => Some(number.to_string().into()),
            Value::Truth(truth) => Some(if truth { "true" } else { "false" }.into()),
        }
    }

    /// Converts the value to a truth value; `None` if it is missing. Errors: it is another value.
    pub fn truth(&self) -> Valued<Option<bool>> {
        match self {
            Value::Missing => Ok(None),
            Value::Truth(truth) => Ok(Some(*truth)),
            Value::Number(number) if number.integer() == Some(0) => Ok(Some(false)),
            Value::Number(number) if number.integer() == Some(1) => Ok(Some(true)),
            Value::Number(number) => Err(format!("'{number}' is not true or false")),
            Value::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => Ok(Some(true)),
                "false" | "0" | "no" => Ok(Some(false)),
                _ => Err(format!("'{}' is not true or false", short(text))),
            },
        }
    }

    /// Compares two values: as numbers if both are numbers, as times if both are times, otherwise as texts. `None` if one is missing or they have no order.
    pub fn compare(&self, other: &Value<'_>, clock: &Clock) -> Option<Ordering> {
        let plain = |value: &Value<'_>| match value {
            Value::Number(number) => Some(*number),
            Value::Text(text) if text.bytes().any(|byte| byte.is_ascii_digit()) => Fraction::parse(text),
            _ => None,
        };
        let time = |value: &Value<'_>| match value {
            Value::Text(text) if text.bytes().any(|byte| byte.is_ascii_digit()) => clock.read(text),
            _ => None,
        };
        match (self, other) {
            (Value::Missing, _) | (_, Value::Missing) => None,
            (Value::Truth(_), _) | (_, Value::Truth(_)) => Some(self.truth().ok()??.cmp(&other.truth().ok()??)),
            (a, b) => match (plain(a), plain(b), a, b) {
                (Some(a), Some(b), ..) => Some(a.cmp(&b)),
                (_, _, Value::Text(one), Value::Text(two)) => match (time(a), time(b)) {
                    (Some(a), Some(b)) => Some(a.cmp(&b)),
                    _ => Some(one.cmp(two)),
                },
                _ => Some(a.number(clock).ok()??.cmp(&b.number(clock).ok()??)),
            },
        }
    }
}
