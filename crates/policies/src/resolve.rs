//! The rule that determines when a target policy recomputes its targets.

use std::fmt;
use std::str::FromStr;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, span};

/// A numeric parameter of a policy. It is not NaN, and is compared and hashed by its bits.
#[derive(Clone, Copy, Debug)]
pub struct Parameter(f64);

impl Parameter {
    /// Returns the number.
    pub fn value(self) -> f64 {
        self.0
    }

    /// Reads a number that `accepts` allows.
    pub fn read(text: &str, accepts: impl Fn(f64) -> bool) -> Option<Parameter> {
        text.parse::<f64>().ok().filter(|&value| accepts(value)).map(Parameter)
    }
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Parameter) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Parameter {}

impl std::hash::Hash for Parameter {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The rule that determines when targets are recomputed; it is displayed and parsed as on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resolve {
    /// `change`: when the targets may have changed, because the set of active users or a mean demand has changed, or because a user has
    /// fewer tasks than its target, now or when the targets were solved.
    #[default]
    Change,
    /// `every:SPAN`: at most once per span, regardless of the number of changes.
    Every(Span),
    /// `tolerance:X`: when the set of active users has changed since the targets were solved, or when the mean demand or the number of
    /// tasks of an active user has changed by more than this part.
    Tolerance(Parameter),
}

impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resolve::Change => f.write_str("change"),
            Resolve::Every(span) if span.0 % 1_000_000 == 0 => write!(f, "every:{}s", span.0 / 1_000_000),
            Resolve::Every(span) => write!(f, "every:{}us", span.0),
            Resolve::Tolerance(tolerance) => write!(f, "tolerance:{tolerance}"),
        }
    }
}

impl Resolve {
    /// Parses the rule behind the colon of a policy's name; returns it with its spelling, `None` for the default. Errors: the expected
    /// form.
    pub(super) fn behind_colon(given: Option<&str>) -> std::result::Result<(Resolve, Option<String>), String> {
        let expected = |error| match error {
            Error::Plan { expected, .. } => expected,
            other => other.to_string(),
        };
        let resolve = given.map_or(Ok(Resolve::default()), |given| given.parse().map_err(expected))?;
        Ok((resolve, (resolve != Resolve::Change).then(|| resolve.to_string())))
    }
}

impl FromStr for Resolve {
    type Err = Error;

    fn from_str(text: &str) -> Result<Resolve> {
        let wrong = || {
            let expected = "change, every:SPAN such as every:60s, or tolerance:X such as tolerance:0.01";
            Error::plan("resolve", format!("'{text}'"), expected)
        };
        match text.split_once(':') {
            None if text == "change" => Ok(Resolve::Change),
            Some(("every", value)) => match span(value) {
                Ok(span) if span > Span::ZERO => Ok(Resolve::Every(span)),
                _ => Err(wrong()),
            },
            Some(("tolerance", value)) => {
                let tolerance = Parameter::read(value, |x| x.is_finite() && x >= 0.0 && x.is_sign_positive());
                tolerance.map(Resolve::Tolerance).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_reads_back_as_it_prints() {
        for text in ["change", "every:60s", "every:1500us", "tolerance:0", "tolerance:0.01"] {
            assert_eq!(text.parse::<Resolve>().expect("a rule").to_string(), text);
        }
        assert_eq!("every:2m".parse::<Resolve>().expect("a rule"), Resolve::Every(Span::from_secs(120)));
        for bad in
            ["", "never", "every", "every:0s", "every:x", "tolerance", "tolerance:-1", "tolerance:nan", "tolerance:inf"]
        {
            assert!(bad.parse::<Resolve>().unwrap_err().to_string().contains("every:60s"), "{bad}");
        }
    }
}
