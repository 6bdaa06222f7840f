//! The number of seeds of a plan: fixed, or determined by a precision.
//!
//! [`Seeds::Until`] is a sequential procedure: seeds are added until the confidence interval of a metric's mean is narrow enough under
//! every policy, within a minimum and a maximum number. The numbers of seeds at which this is checked depend only on the plan, so that
//! equal results lead to the same number of seeds.

use serde::de::{Deserialize, Deserializer, Visitor};

use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::mean_interval;

/// The number of seeds of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Seeds {
    /// A given number of seeds.
    Fixed(u64),
    /// The number of seeds that a precision requires.
    Until(Precision),
}

impl Default for Seeds {
    fn default() -> Seeds {
        Seeds::Fixed(1)
    }
}

/// A stopping rule: the 95 % confidence interval of a metric's mean must be narrow enough under every policy.
///
/// The rule is checked after `least` seeds, and then each time that the number of seeds has grown by a quarter ([`Precision::next`]). It
/// is only checked when all policies have run with these seeds, so that the number of seeds does not depend on the order of the runs. If a
/// procedure stops as soon as an interval is narrow, the coverage of the interval is slightly below its level; with few checks and a
/// `least` of 10 the difference is small. Source: Law, Simulation Modeling and Analysis, 5th ed., section 9.4.1 (sequential procedure),
/// after Chow and Robbins, Annals of Mathematical Statistics 36, 1965.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// The half-width of the interval relative to the mean: 0.02 for 2 %.
    pub half_width: f64,
    /// The metric: a column of the `runs` table.
    pub metric: String,
    /// The minimum number of seeds.
    pub least: u64,
    /// The maximum number of seeds.
    pub most: u64,
}

/// The default metric of a precision.
pub const METRIC: &str = "completion_mean_s";

/// The default number of seeds before the first check.
const LEAST: u64 = 10;

const EXPECTED: &str = "a number, or text such as \"until 2 % half-width, at most 200\" or \"until 5 % half-width of \
                        wait_mean_s, at least 5, at most 100\"";

impl Precision {
    /// Reads `until 2 % half-width [of METRIC][, at least N], at most N`. Errors: [`Error::Plan`] at `seeds`.
    pub fn parse(text: &str) -> Result<Precision> {
        let wrong = |expected: &str| Error::plan("seeds", format!("'{text}'"), expected);
        let spaced = text.replace('%', " % ").replace(',', " , ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut clauses = words.split(|word| *word == ",");
        let (percent, metric) = match clauses.next() {
            Some(["until", percent, "%", "half-width"]) => (*percent, METRIC),
            Some(["until", percent, "%", "half-width", "of", metric]) => (*percent, *metric),
            _ => return Err(wrong(EXPECTED)),
        };
        let percent = percent.parse::<f64>().ok().filter(|percent| *percent > 0.0 && percent.is_finite());
        let half_width = percent.ok_or_else(|| wrong("a half-width above 0 %"))? / 100.0;
        let (mut least, mut most) = (None, None);
        for clause in clauses {
            let (bound, number) = match clause {
                ["at", "least", number] => (&mut least, *number),
                ["at", "most", number] => (&mut most, *number),
                _ => return Err(wrong(EXPECTED)),
            };
            let number = number.parse::<u64>().ok().filter(|&number| number >= 2);
            *bound = Some(number.ok_or_else(|| wrong("numbers of seeds from 2"))?);
        }
        let most = most.ok_or_else(|| wrong("a bound as well, such as \", at most 200\""))?;
        let least = least.unwrap_or(LEAST.min(most));
        if least > most || most > 100_000 {
            return Err(wrong("a lower bound that is not above the upper bound, and at most 100000 seeds"));
        }
        Ok(Precision { half_width, metric: metric.to_owned(), least, most })
    }

    /// Returns whether the confidence interval of the mean of these values is narrow enough. For a mean of 0, all values must be 0. Absent
    /// values are ignored.
    pub fn reached(&self, values: &[Option<f64>]) -> bool {
        let there: Vec<f64> = values.iter().copied().flatten().filter(|value| value.is_finite()).collect();
        let Some(interval) = mean_interval(&there, LEVEL) else { return false };
        interval.high.is_some_and(|high| high - interval.mean <= self.half_width * interval.mean.abs())
    }

    /// Returns the number of seeds at the next check after a check with `seeds` seeds.
    pub fn next(&self, seeds: u64) -> u64 {
        (seeds + seeds.div_ceil(4)).clamp(self.least, self.most)
    }

    /// Checks the metric's name against the columns of the `runs` table. Errors: [`Error::Plan`] with the most similar column.
    pub fn known<'a>(&self, columns: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        if columns.clone().any(|column| column == self.metric) {
            return Ok(());
        }
        let hint = did_you_mean(&self.metric, columns);
        Err(Error::plan("seeds", format!("'{}'", self.metric), format!("a column of the runs table{hint}")))
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Seeds, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Seeds;

            fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
                formatter.write_str(EXPECTED)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> std::result::Result<Seeds, E> {
                let wrong = || E::custom(format!("seeds: {number} is not accepted; expected 1 to 100000"));
                u64::try_from(number).map(Seeds::Fixed).map_err(|_| wrong())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Seeds, E> {
                Precision::parse(text).map(Seeds::Until).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_reads_as_it_is_said() {
        let read = |text: &str| Precision::parse(text);
        let precision =
            |half_width, metric: &str, least, most| Precision { half_width, metric: metric.to_owned(), least, most };
        assert_eq!(read("until 2 % half-width, at most 200").ok(), Some(precision(0.02, METRIC, 10, 200)));
        let long = "until 0.5% half-width of wait_mean_s, at least 5, at most 100";
        assert_eq!(read(long).ok(), Some(precision(0.005, "wait_mean_s", 5, 100)));
        assert_eq!(read("until 1 % half-width, at most 4").ok(), Some(precision(0.01, METRIC, 4, 4)));
        let wrong = [
            ("until 2 half-width", "until 2 % half-width"),
            ("until 0 % half-width, at most 9", "above 0 %"),
            ("until 2 % half-width", "at most 200"),
            ("until 2 % half-width, at most many", "from 2"),
            ("until 2 % half-width, at least 9, at most 3", "a lower bound that is not above the upper bound"),
            ("twenty", "a number"),
        ];
        for (text, says) in wrong {
            let message = read(text).expect_err(text).to_string();
            assert!(message.contains(says) && message.contains("seeds"), "{text}: {message}");
        }
        let message = read("until 2 % half-width of wait, at most 20")
            .and_then(|precision| precision.known(["wait_mean_s", "wait_p50_s"].into_iter()));
        assert!(message.is_err_and(|error| error.to_string().contains("a column of the runs table")));
    }

    #[test]
    fn looks_are_few_and_an_interval_is_narrow_or_not() {
        let precision = Precision { half_width: 0.1, metric: String::new(), least: 10, most: 30 };
        let looks: Vec<u64> = std::iter::successors(Some(0), |&n| (n < 30).then(|| precision.next(n))).collect();
        assert_eq!(looks, [0, 10, 13, 17, 22, 28, 30]);
        let wide = [Some(1.0), Some(2.0), Some(3.0)];
        assert!(!precision.reached(&wide) && !precision.reached(&[Some(1.0)]) && !precision.reached(&[None]));
        assert!(precision.reached(&[Some(10.0), Some(10.1), Some(9.9), None]));
        assert!(precision.reached(&[Some(0.0), Some(0.0)]));
    }
}
