//! Parameters with names: `name:FIRST:SECOND:key=value:key=value`.

use super::decay::Memory;
use plimsoll_base::units::Span;

/// The parts of a parameter: the parts without a key, in order, and the parts with a key.
pub struct Keys<'a> {
    plain: std::vec::IntoIter<&'a str>,
    keyed: Vec<(&'a str, &'a str)>,
}

impl<'a> Keys<'a> {
    /// Parses a parameter. Errors: an unknown or repeated key.
    pub fn new(given: Option<&'a str>, known: &[&str]) -> Result<Keys<'a>, String> {
        let parts = given.unwrap_or_default().split(':');
        let (mut plain, mut keyed) = (Vec::new(), Vec::<(&str, &str)>::new());
        for part in parts {
            match part.split_once('=') {
                None => plain.push(part),
                Some((key, _)) if keyed.iter().any(|(other, _)| *other == key) => {
                    return Err(format!("'{key}' once"));
                }
                Some((key, value)) if known.contains(&key) => keyed.push((key, value)),
                Some((key, _)) => return Err(format!("one of {} instead of '{key}'", known.join(", "))),
            }
        }
        Ok(Keys { plain: plain.into_iter(), keyed })
    }

    /// Returns the next part without a key.
    pub fn next(&mut self) -> Option<&'a str> {
        self.plain.next().filter(|part| !part.is_empty())
    }

    /// Reads `HALF_LIFE[:PERIOD]`. Errors: the expected form.
    pub fn memory(&mut self, usual_period: Span) -> Result<Memory, String> {
        let text = [self.next().unwrap_or_default(), self.next().unwrap_or_default()].join(":");
        Memory::parse(text.trim_end_matches(':'), usual_period)
    }

    /// Returns the value of a key, converted by `read`. Errors: the expected form.
    pub fn read<T>(&self, key: &str, expected: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let Some((_, value)) = self.keyed.iter().find(|(known, _)| *known == key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| format!("{key}={expected}"))
    }

    /// Checks that no part without a key is left. Errors: there is one.
    pub fn end(mut self) -> Result<(), String> {
        match self.plain.next() {
            None => Ok(()),
            Some(part) => Err(format!("no part '{part}'")),
        }
    }
}

/// Reads a number of at least 0, in steps of 1 / `scale`, rounded down.
pub fn decimal(text: &str, scale: u64) -> Option<u64> {
    plimsoll_base::units::decimal(text.as_bytes(), scale, plimsoll_base::units::Rounding::Down).ok()
}
