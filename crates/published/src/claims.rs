//! Claims: comparisons of two sides that a paper bases on one run or a few, repeated over seeds or resampled inputs.
//!
//! A row of `claims.csv` names two sides of a plan and a reading. Each seed gives a pair of values, with the same inputs on both sides. The
//! verdict depends on the 95 % confidence interval of the mean difference in the direction of the claim.

use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::open;
use plimsoll_metrics::{Interval, mean_interval};
use serde::Deserialize;

use super::parameters::Parameters;

/// One side of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimSide {
    /// Runs with these parameters, one per seed.
    Runs(Parameters),
    /// Values of another program, one per pair.
    Values(Vec<f64>),
}

/// A row of `claims.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimRow {
    /// The unique name within the target.
    pub id: String,
    /// The name of the plan; empty if both sides are values.
    pub plan: String,
    /// The first side.
    pub first: ClaimSide,
    /// The second side.
    pub second: ClaimSide,
    /// The reading of the outcome.
    pub reading: String,
    /// Whether the first side has the lower value according to the claim.
    pub first_is_lower: bool,
    /// The claim in a sentence.
    pub claim: String,
    /// The published values.
    pub published: String,
    /// The unit of the difference.
    pub unit: String,
    /// The input that varies over the pairs: lists of jobs, resampled jobs, orders of arrival.
    pub over: String,
    /// The place in the paper or its files.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClaim {
    id: String,
    plan: String,
    with: String,
    first: String,
    order: String,
    second: String,
    reading: String,
    claim: String,
    published: String,
    unit: String,
    over: String,
    source: String,
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The interval of the mean difference has the sign of the claim.
    Holds,
    /// The interval includes 0.
    Open,
    /// The interval has the other sign.
    Reversed,
    /// Not run, with the cause.
    NotRun(String),
}

impl ClaimVerdict {
    /// Returns the verdict in words.
    pub fn name(&self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Open => "open",
            ClaimVerdict::Reversed => "reversed",
            ClaimVerdict::NotRun(_) => "not run",
        }
    }
}

/// A judged claim.
#[derive(Clone, Debug)]
pub struct JudgedClaim {
    /// The row.
    pub row: ClaimRow,
    /// The means of the first and of the second side.
    pub means: Option<[f64; 2]>,
    /// The mean difference in the direction of the claim (positive if it holds), with its 95 % confidence interval.
    pub difference: Option<Interval>,
    /// The number of pairs with the order of the claim.
    pub held: usize,
    /// The verdict.
    pub verdict: ClaimVerdict,
}

impl ClaimRow {
    /// Judges the claim by the values of both sides, or by the cause why there are none.
    pub fn judge(&self, sides: std::result::Result<[Vec<f64>; 2], String>) -> JudgedClaim {
        let not_run = |cause: String| JudgedClaim {
            row: self.clone(),
            means: None,
            difference: None,
            held: 0,
            verdict: ClaimVerdict::NotRun(cause),
        };
        let [first, second] = match sides {
            Ok(sides) => sides,
            Err(cause) => return not_run(cause),
        };
        if first.len() != second.len() {
            return not_run(format!("the sides have {} and {} values", first.len(), second.len()));
        }
        let sign = if self.first_is_lower { 1.0 } else { -1.0 };
        let differences: Vec<f64> = first.iter().zip(&second).map(|(a, b)| sign * (b - a)).collect();
        let Some(difference) = mean_interval(&differences, 0.95) else { return not_run("no pairs".to_owned()) };
        let verdict = match (difference.low, difference.high) {
            (Some(low), _) if low > 0.0 => ClaimVerdict::Holds,
            (_, Some(high)) if high < 0.0 => ClaimVerdict::Reversed,
            _ => ClaimVerdict::Open,
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        JudgedClaim {
            row: self.clone(),
            means: Some([mean(&first), mean(&second)]),
            difference: Some(difference),
            held: differences.iter().filter(|difference| **difference > 0.0).count(),
            verdict,
        }
    }
}

/// Reads the claims of a target; none if there is no file. Errors: [`Error::Trace`] with the line and the column.
pub fn read(path: &Path) -> Result<Vec<ClaimRow>> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(open(path)?);
    let mut rows: Vec<ClaimRow> = Vec::new();
    let headers = reader.headers().map_err(|error| Error::trace(path, 1, "", error.to_string()))?.clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| Error::trace(path, 0, "", error.to_string()))? {
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |column: &str, problem: String| Error::trace(path, line, column, problem);
        let written: WrittenClaim = record.deserialize(Some(&headers)).map_err(|error| wrong("", error.to_string()))?;
        if rows.iter().any(|row| row.id == written.id) {
            return Err(wrong("id", format!("'{}' occurs twice; expected each id once", written.id)));
        }
        let side = |column: &str, text: &str| match text.strip_prefix("values ") {
            Some(values) if written.plan.is_empty() => {
                let number = |text: &str| {
                    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                    number.ok_or_else(|| wrong(column, format!("'{text}': expected numbers separated by blanks")))
                };
                values.split_whitespace().map(number).collect::<Result<Vec<f64>>>().map(ClaimSide::Values)
            }
            Some(_) => Err(wrong("plan", format!("'{}': expected no plan beside values", written.plan))),
            None if written.plan.is_empty() => {
                Err(wrong(column, format!("'{text}': expected 'values' and numbers, since there is no plan")))
            }
            None => Parameters::parse(&format!("{}; {text}", written.with))
                .map(ClaimSide::Runs)
                .map_err(|problem| wrong(column, problem)),
        };
        rows.push(ClaimRow {
            first: side("first", &written.first)?,
            second: side("second", &written.second)?,
            first_is_lower: match written.order.as_str() {
                "<" => true,
                ">" => false,
                other => return Err(wrong("order", format!("'{other}': expected < or >"))),
            },
            id: written.id,
            plan: written.plan,
            reading: written.reading,
            claim: written.claim,
            published: written.published,
            unit: written.unit,
            over: written.over,
            source: written.source,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(order: &str, first: &str, second: &str) -> ClaimRow {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("claims.csv");
        let header = "id,plan,with,first,order,second,reading,claim,published,unit,over,source";
        let text = format!("{header}\nx,,,values {first},{order},values {second},,A is below B,,,sequences,\n");
        std::fs::write(&path, text).expect("writable");
        read(&path).expect("claims").remove(0)
    }

    fn judged(row: &ClaimRow) -> JudgedClaim {
        let values = |side: &ClaimSide| match side {
            ClaimSide::Values(values) => values.clone(),
            ClaimSide::Runs(_) => panic!("no values"),
        };
        row.judge(Ok([values(&row.first), values(&row.second)]))
    }

    /// The ten sequences of Lublin-1 in the reference on RLScheduler: the printed means order F1 before SJF, t = -0.68.
    #[test]
    fn a_difference_within_its_interval_is_open() {
        let f1 = "266.7 159.1 156.8 206.0 376.4 161.3 423.7 217.2 349.4 267.0";
        let sjf = "204.3 251.4 214.3 169.7 297.4 245.3 496.1 229.9 235.7 429.4";
        let one = judged(&row("<", f1, sjf));
        let difference = one.difference.expect("a difference");
        assert!((difference.mean - 19.0).abs() < 0.05, "{difference:?}");
        let (low, high) = (difference.low.expect("an interval"), difference.high.expect("an interval"));
        // 89.09 / sqrt(10) times the quantile 2.262 of Student's distribution with 9 degrees of freedom.
        assert!((high - difference.mean - 63.73).abs() < 0.01 && low < 0.0, "{difference:?}");
        assert_eq!((one.verdict, one.held), (ClaimVerdict::Open, 6));
    }

    #[test]
    fn the_direction_of_a_claim_counts() {
        assert_eq!(judged(&row("<", "1 2 3", "2 3.1 4")).verdict, ClaimVerdict::Holds);
        assert_eq!(judged(&row(">", "1 2 3", "2 3.1 4")).verdict, ClaimVerdict::Reversed);
        assert_eq!(judged(&row("<", "1", "2")).verdict, ClaimVerdict::Open, "a single pair shows nothing");
        assert!(matches!(judged(&row("<", "1 2", "2")).verdict, ClaimVerdict::NotRun(_)));
    }
}
