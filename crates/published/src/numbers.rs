//! The rows of `numbers.csv`: one published number each.

use std::path::Path;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use serde::Deserialize;

use super::parameters::Parameters;
use plimsoll_base::error::{Error, Result, either};
use plimsoll_base::rows::open;

/// The origin of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberKind {
    /// Printed in a paper or stored by its authors.
    Published,
    /// Computed by an independent program that follows the same protocol.
    Own,
    /// Follows from other numbers of an independent program.
    Derived,
}

impl NumberKind {
    /// All kinds with their names.
    pub const ALL: [(&'static str, NumberKind); 3] =
        [("published", NumberKind::Published), ("own", NumberKind::Own), ("derived", NumberKind::Derived)];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        NumberKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// The expected value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// A number.
    Value(BigRational),
    /// At least this number.
    AtLeast(BigRational),
    /// At most this number.
    AtMost(BigRational),
    /// More than this number.
    Above(BigRational),
    /// Less than this number.
    Below(BigRational),
}

/// The accepted distance from the expected value.
#[derive(Clone, Debug, PartialEq)]
pub enum Tolerance {
    /// None: exact fractions are equal, and doubles to 10^-9 of the value.
    Exact,
    /// In the unit of the value.
    Absolute(f64),
    /// As a fraction of the value.
    Relative(f64),
}

impl Tolerance {
    /// Parses `exact`, `0.01` or `0.1 %`. Errors: the expected form.
    pub fn parse(text: &str) -> std::result::Result<Tolerance, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| *value >= 0.0);
        let wrong = || format!("tolerance '{text}': expected exact, a number such as 0.01, or a part such as 0.1 %");
        match (text, text.strip_suffix('%')) {
            ("exact", _) => Ok(Tolerance::Exact),
            (_, Some(part)) => number(part).map(|part| Tolerance::Relative(part / 100.0)).ok_or_else(wrong),
            _ => number(text).map(Tolerance::Absolute).ok_or_else(wrong),
        }
    }

    /// Returns whether a value is within the tolerance of an expected value.
    pub fn accepts(&self, value: f64, expected: f64) -> bool {
        let distance = match self {
            Tolerance::Exact => 1e-9 * expected.abs().max(1e-300),
            Tolerance::Absolute(distance) => *distance,
            Tolerance::Relative(part) => part * expected.abs(),
        };
        // Values with few decimals have rounding errors of their own.
        (value - expected).abs() <= distance + 1e-9 * expected.abs().max(distance)
    }
}

/// A row of `numbers.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberRow {
    /// The unique name within the target: letters, digits and `_`.
    pub id: String,
    /// The name of the plan; empty if the reading is an expression on other numbers.
    pub plan: String,
    /// The parameters as written.
    pub with: String,
    /// The parameters.
    pub parameters: Parameters,
    /// The reading of the outcome, or an expression on the ids of other rows.
    pub reading: String,
    /// The value as written.
    pub value: String,
    /// The expected value.
    pub expected: Expected,
    /// The unit.
    pub unit: String,
    /// The tolerance as written.
    pub tolerance_text: String,
    /// The tolerance.
    pub tolerance: Tolerance,
    /// The origin.
    pub kind: NumberKind,
    /// The place in the paper or its files.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNumber {
    id: String,
    plan: String,
    with: String,
    reading: String,
    value: String,
    unit: String,
    tolerance: String,
    kind: String,
    source: String,
}

/// Parses a whole number, a decimal or a fraction. Errors: the expected form.
pub fn fraction(text: &str) -> std::result::Result<BigRational, String> {
    let wrong = || format!("'{text}': expected a number such as 3, 2.5, 30/11 or 1.4e3");
    let integer = |text: &str| text.trim().parse::<BigInt>().map_err(|_| wrong());
    if let Some((numerator, denominator)) = text.split_once('/') {
        let denominator = integer(denominator)?;
        if denominator == BigInt::ZERO {
            return Err(wrong());
        }
        return Ok(BigRational::new(integer(numerator)?, denominator));
    }
    let (mantissa, exponent) = text.trim().split_once(['e', 'E']).unwrap_or((text.trim(), "0"));
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 300).ok_or_else(wrong)?;
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = integer(&format!("{whole}{decimals}"))?;
    let power = exponent - decimals.len() as i32;
    let ten = BigRational::from_integer(BigInt::from(10));
    Ok(BigRational::from_integer(digits) * num_traits::Pow::pow(ten, power))
}

impl Expected {
    /// Parses a number, or `>`, `>=`, `<` or `<=` with a number. Errors: the expected form.
    pub fn parse(text: &str) -> std::result::Result<Expected, String> {
        let signs: [(&str, fn(BigRational) -> Expected); 4] =
            [(">=", Expected::AtLeast), ("<=", Expected::AtMost), (">", Expected::Above), ("<", Expected::Below)];
        match signs.iter().find_map(|(sign, make)| Some((text.strip_prefix(sign)?, make))) {
            Some((rest, make)) => fraction(rest.trim()).map(make),
            None => fraction(text).map(Expected::Value),
        }
    }

    /// Returns whether a value is accepted.
    pub fn accepts(&self, value: f64, exact: Option<&BigRational>, tolerance: &Tolerance) -> bool {
        let number = |expected: &BigRational| expected.to_f64().unwrap_or(f64::NAN);
        match (self, exact) {
            (Expected::Value(expected), Some(exact)) if *tolerance == Tolerance::Exact => expected == exact,
            (Expected::Value(expected), _) => tolerance.accepts(value, number(expected)),
            (Expected::AtLeast(limit), _) => value >= number(limit),
            (Expected::AtMost(limit), _) => value <= number(limit),
            (Expected::Above(limit), _) => value > number(limit),
            (Expected::Below(limit), _) => value < number(limit),
        }
    }
}

/// Reads the rows of a file. Errors: [`Error::Trace`] with the line and the column.
pub fn read(path: &Path) -> Result<Vec<NumberRow>> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(open(path)?);
    let mut rows: Vec<NumberRow> = Vec::new();
    let headers = reader.headers().map_err(|error| Error::trace(path, 1, "", error.to_string()))?.clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| Error::trace(path, 0, "", error.to_string()))? {
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |column: &str, problem: String| Error::trace(path, line, column, problem);
        let written: WrittenNumber =
            record.deserialize(Some(&headers)).map_err(|error| wrong("", error.to_string()))?;
        let WrittenNumber { id, plan, with, reading, value, unit, tolerance, kind, source } = written;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !id.starts_with(|c: char| c.is_ascii_lowercase()) || !id.chars().all(plain) {
            return Err(wrong("id", format!("'{id}': expected small letters, digits and '_'")));
        }
        if rows.iter().any(|row| row.id == id) {
            return Err(wrong("id", format!("'{id}' occurs twice; expected each id once")));
        }
        let names = NumberKind::ALL.map(|(name, _)| name);
        let known = NumberKind::ALL.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind);
        rows.push(NumberRow {
            parameters: Parameters::parse(&with).map_err(|problem| wrong("with", problem))?,
            expected: Expected::parse(&value).map_err(|problem| wrong("value", problem))?,
            tolerance: Tolerance::parse(&tolerance).map_err(|problem| wrong("tolerance", problem))?,
            kind: known.ok_or_else(|| wrong("kind", format!("'{kind}': expected {}", either(names))))?,
            tolerance_text: tolerance,
            id,
            plan,
            with,
            reading,
            value,
            unit,
            source,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_limits_are_read_exactly() {
        let expected = |text: &str| Expected::parse(text).expect(text);
        let third = BigRational::new(BigInt::from(1), BigInt::from(3));
        assert!(expected("1/3").accepts(1.0 / 3.0, Some(&third), &Tolerance::Exact));
        assert!(!expected("0.333").accepts(1.0 / 3.0, Some(&third), &Tolerance::Exact));
        assert_eq!(fraction("1.5e2"), fraction("150"));
        assert_eq!(fraction("-0.25"), fraction("-1/4"));
        let cent = Tolerance::parse("0.01").expect("a tolerance");
        assert!(expected("93.08").accepts(93.09, None, &cent) && !expected("93.08").accepts(93.0911, None, &cent));
        let part = Tolerance::parse("0.1 %").expect("a tolerance");
        assert!(expected("1000").accepts(1001.0, None, &part) && !expected("1000").accepts(1001.2, None, &part));
        assert!(expected("> 0").accepts(0.1, None, &part) && !expected("> 0").accepts(0.0, None, &part));
        for wrong in ["", "x", "1/0", "--1"] {
            assert!(Expected::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Tolerance::parse("about 1").is_err() && Tolerance::parse("-1").is_err());
    }
}
