//! Distributions in the notation of plans: `20`, `"5m"`, `{ distribution = "lognormal", median = 120, sigma = 1.2 }`.
//!
//! A bare number (or, for a time, text such as `"5m"`) is a constant. `min` and `max` truncate a distribution: a draw outside these limits
//! is repeated. Floats are used only in this module: results are rounded once, times to the nearest microsecond, and demands up.

use std::fmt;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::Distribution as _;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};

use super::random::Weighted;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, TIME_MAX_US, US_PER_S, span};

/// A distribution of non-negative numbers; times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(DistributionFamily);

/// The families; `lower` and `upper` are inclusive limits of truncation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
enum DistributionFamily {
    Constant { value: f64 },
    Uniform { min: f64, max: f64 },
    Normal { mean: f64, sd: f64, min: Option<f64>, max: Option<f64> },
    Lognormal { median: f64, sigma: f64, min: Option<f64>, max: Option<f64> },
    Exponential { mean: f64, min: Option<f64>, max: Option<f64> },
    Pareto { scale: f64, alpha: f64, max: Option<f64> },
    Choice { values: Vec<f64>, weights: Option<Vec<f64>> },
    Zipf { n: u32, exponent: f64 },
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(DistributionVisitor).map(Distribution)
    }
}

/// Accepts a number, a time or a table. An untagged enum would not identify the wrong part in its errors.
struct DistributionVisitor;

impl<'de> Visitor<'de> for DistributionVisitor {
    type Value = DistributionFamily;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a number, a time such as \"5m\", or a table such as { distribution = \"exponential\", mean = 1.5 }",
        )
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> std::result::Result<DistributionFamily, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<DistributionFamily, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> std::result::Result<DistributionFamily, E> {
        Ok(DistributionFamily::Constant { value })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<DistributionFamily, E> {
        let span = span(text).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
        self.visit_f64(span.seconds())
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> std::result::Result<DistributionFamily, M::Error> {
        DistributionFamily::deserialize(MapAccessDeserializer::new(map))
    }
}

impl From<f64> for Distribution {
    fn from(value: f64) -> Self {
        Distribution(DistributionFamily::Constant { value })
    }
}

/// The number of draws after which a truncated draw is clamped to the nearest limit.
const REDRAWS: u32 = 1000;

/// A checked [`Distribution`], ready to draw from.
#[derive(Clone, Debug)]
pub struct Sampler {
    kind: Prepared,
    min: f64,
    max: f64,
}

#[derive(Clone, Debug)]
enum Prepared {
    Constant(f64),
    Uniform(f64, f64),
    Normal(rand_distr::Normal<f64>),
    Lognormal(rand_distr::LogNormal<f64>),
    Exponential(rand_distr::Exp<f64>),
    Pareto(rand_distr::Pareto<f64>),
    Choice(Vec<f64>, Weighted),
    Zipf(rand_distr::Zipf<f64>),
}

impl Distribution {
    /// Returns a choice among values in proportion to weights.
    pub fn choice(values: &[f64], weights: &[f64]) -> Distribution {
        Distribution(DistributionFamily::Choice { values: values.to_vec(), weights: Some(weights.to_vec()) })
    }

    /// Returns a lognormal distribution by its median and the standard deviation of its logarithm.
    pub fn lognormal(median: f64, sigma: f64) -> Distribution {
        Distribution(DistributionFamily::Lognormal { median, sigma, min: None, max: None })
    }

    /// Returns an exponential distribution by its mean.
    pub fn exponential(mean: f64) -> Distribution {
        Distribution(DistributionFamily::Exponential { mean, min: None, max: None })
    }

    /// Returns whether it is an untruncated exponential distribution, so that arrivals with these gaps form a Poisson process.
    pub fn is_memoryless(&self) -> bool {
        matches!(self.0, DistributionFamily::Exponential { min: None, max: None, .. })
    }

    /// Checks the parameters and returns a sampler.
    ///
    /// Errors: [`Error::Plan`] at `key` or a parameter below it. `positive` rejects a distribution that is always 0.
    pub fn sampler(&self, key: &str, positive: bool) -> Result<Sampler> {
        let above = |name: &str, value: f64| check(key, name, value, value > 0.0, "a number above 0");
        let least = |name: &str, value: f64| check(key, name, value, value >= 0.0, "a number of at least 0");
        // `positive` requires this parameter to be above 0.
        let mean = |name: &str, value: f64| if positive { above(name, value) } else { least(name, value) };
        let (mut min, mut max) = (None, None);
        let kind = match &self.0 {
            DistributionFamily::Constant { value } => {
                mean("", *value)?;
                Prepared::Constant(*value)
            }
            DistributionFamily::Uniform { min, max } => {
                least("min", *min)?;
                mean("max", *max)?;
                check(key, "max", *max, max >= min, "a number of at least min")?;
                Prepared::Uniform(*min, *max)
            }
            DistributionFamily::Normal { mean: centre, sd, min: low, max: high } => {
                mean("mean", *centre)?;
                least("sd", *sd)?;
                (min, max) = (*low, *high);
                Prepared::Normal(valid(rand_distr::Normal::new(*centre, *sd)))
            }
            DistributionFamily::Lognormal { median, sigma, min: low, max: high } => {
                above("median", *median)?;
                least("sigma", *sigma)?;
                (min, max) = (*low, *high);
                Prepared::Lognormal(valid(rand_distr::LogNormal::new(median.ln(), *sigma)))
            }
            DistributionFamily::Exponential { mean, min: low, max: high } => {
                above("mean", *mean)?;
                (min, max) = (*low, *high);
                Prepared::Exponential(valid(rand_distr::Exp::new(mean.recip())))
            }
            DistributionFamily::Pareto { scale, alpha, max: high } => {
                above("scale", *scale)?;
                above("alpha", *alpha)?;
                (min, max) = (Some(*scale), *high);
                Prepared::Pareto(valid(rand_distr::Pareto::new(*scale, *alpha)))
            }
            DistributionFamily::Choice { values, weights } => choice(key, values, weights.as_deref(), positive)?,
            DistributionFamily::Zipf { n, exponent } => {
                above("n", f64::from(*n))?;
                least("exponent", *exponent)?;
                Prepared::Zipf(valid(rand_distr::Zipf::new(f64::from(*n), *exponent)))
            }
        };
        let (min, max) = (min.unwrap_or(0.0), max.unwrap_or(f64::MAX));
        check(key, "min", min, min >= 0.0, "a number of at least 0")?;
        mean("max", max)?;
        check(key, "max", max, max >= min, &format!("a number of at least {min}"))?;
        Ok(Sampler { kind, min, max })
    }
}

/// Unwraps a constructor's result; the parameters were checked before by stricter conditions.
fn valid<T, E: fmt::Debug>(built: std::result::Result<T, E>) -> T {
    built.expect("parameters were checked")
}

fn check(key: &str, name: &str, value: f64, good: bool, expected: &str) -> Result<()> {
    if good && value.is_finite() {
        return Ok(());
    }
    let key = if name.is_empty() { key.to_owned() } else { format!("{key}.{name}") };
    Err(Error::plan(key, value, expected))
}

fn choice(key: &str, values: &[f64], weights: Option<&[f64]>, positive: bool) -> Result<Prepared> {
    for value in values {
        check(key, "values", *value, *value >= 0.0, "numbers of at least 0")?;
    }
    let weights = weights.map_or_else(|| vec![1.0; values.len()], <[f64]>::to_vec);
    if weights.len() != values.len() {
        let given = format!("a list of {}", weights.len());
        return Err(Error::plan(format!("{key}.weights"), given, format!("{} weights, one per value", values.len())));
    }
    let weighted = Weighted::new(weights.iter().copied()).ok_or_else(|| {
        let given = format!("{weights:?}");
        Error::plan(format!("{key}.weights"), given, "numbers of at least 0, one of them above 0")
    })?;
    if positive && !values.iter().zip(&weights).any(|(value, weight)| *value > 0.0 && *weight > 0.0) {
        return Err(Error::plan(format!("{key}.values"), format!("{values:?}"), "a value above 0"));
    }
    Ok(Prepared::Choice(values.to_vec(), weighted))
}

impl Sampler {
    /// Draws a value.
    pub fn sample(&self, rng: &mut ChaCha8Rng) -> f64 {
        for _ in 0..REDRAWS {
            let value = self.draw(rng);
            if (self.min..=self.max).contains(&value) {
                return value;
            }
        }
        self.draw(rng).clamp(self.min, self.max)
    }

    fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        match &self.kind {
            Prepared::Constant(value) => *value,
            Prepared::Uniform(min, max) => min + (max - min) * rng.random::<f64>(),
            Prepared::Normal(normal) => normal.sample(rng),
            Prepared::Lognormal(lognormal) => lognormal.sample(rng),
            Prepared::Exponential(exponential) => exponential.sample(rng),
            Prepared::Pareto(pareto) => pareto.sample(rng),
            Prepared::Choice(values, weighted) => values[weighted.sample(rng)],
            Prepared::Zipf(zipf) => zipf.sample(rng),
        }
    }

    /// Draws a span, from seconds.
    pub fn span(&self, rng: &mut ChaCha8Rng) -> Span {
        to_span(self.sample(rng))
    }

    /// Draws a number of tasks, rounded to a whole number of at least 1.
    pub fn tasks(&self, rng: &mut ChaCha8Rng) -> u32 {
        (self.sample(rng).round() as u32).max(1)
    }

    /// Draws an amount of a resource, with `scale` base units per unit.
    pub fn amount(&self, rng: &mut ChaCha8Rng, scale: u64) -> u64 {
        to_amount(self.sample(rng), scale)
    }
}

/// Converts seconds to a span, rounded to the nearest microsecond and limited to the longest span that readers accept.
pub fn to_span(seconds: f64) -> Span {
    Span(((seconds * US_PER_S as f64).round() as u64).min(TIME_MAX_US))
}

/// Converts an amount to base units (at most 10^15, so that sums do not overflow), rounded up; the last digits of a float are ignored
/// (0.07 cores are 70 milli-cores, not 71).
pub fn to_amount(value: f64, scale: u64) -> u64 {
    let base = (value * scale as f64).min(1e15);
    let near = base.round();
    if (base - near).abs() < 1e-6 { near as u64 } else { base.ceil() as u64 }
}

/// A length of time in a plan: a number of seconds, or text such as `"30m"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length(pub Span);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let expected = "a number of seconds, or a time such as \"30m\"";
        match deserializer.deserialize_any(DistributionVisitor)? {
            DistributionFamily::Constant { value } if (0.0..=TIME_MAX_US as f64 / 1e6).contains(&value) => {
                Ok(Length(to_span(value)))
            }
            DistributionFamily::Constant { value } => {
                Err(de::Error::invalid_value(de::Unexpected::Float(value), &expected))
            }
            _ => Err(de::Error::invalid_type(de::Unexpected::Map, &expected)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::synthetic::random::stream;

    #[derive(Deserialize)]
    struct Holder {
        x: Distribution,
    }

    fn read(text: &str) -> Distribution {
        toml::from_str::<Holder>(&format!("x = {text}")).expect("a valid distribution").x
    }

    fn mean(text: &str) -> f64 {
        let (sampler, mut rng) = (read(text).sampler("x", false).expect("valid"), stream(1, "test"));
        (0..100_000).map(|_| sampler.sample(&mut rng)).sum::<f64>() / 1e5
    }

    #[test]
    fn means_are_the_textbook_ones() {
        for (text, expected) in [
            ("7", 7.0),
            ("\"2m\"", 120.0),
            ("{ distribution = \"constant\", value = 3.5 }", 3.5),
            ("{ distribution = \"uniform\", min = 2, max = 6 }", 4.0),
            ("{ distribution = \"normal\", mean = 10, sd = 2 }", 10.0),
            // The mean of a half-normal distribution is sd sqrt(2 / pi).
            ("{ distribution = \"normal\", mean = 0, sd = 2 }", 1.5958),
            ("{ distribution = \"lognormal\", median = 4, sigma = 0.5 }", 4.5326),
            ("{ distribution = \"exponential\", mean = 1.5 }", 1.5),
            // Truncated at 1, the mean is 1 - 1 / (e - 1).
            ("{ distribution = \"exponential\", mean = 1, max = 1 }", 0.4180),
            ("{ distribution = \"pareto\", scale = 2, alpha = 3 }", 3.0),
            ("{ distribution = \"choice\", values = [1, 5], weights = [3, 1] }", 2.0),
            ("{ distribution = \"zipf\", n = 3, exponent = 1 }", 1.6364),
        ] {
            let mean = mean(text);
            assert!((mean / expected - 1.0).abs() < 0.02, "{text}: {mean}");
        }
    }

    #[test]
    fn bad_parameters_are_located() {
        for (text, expected) in [
            ("-1", "k: -1 is not accepted; expected a number above 0"),
            ("0", "k: 0 is not accepted; expected a number above 0"),
            ("nan", "k: NaN is not accepted; expected a number above 0"),
            (
                "{ distribution = \"uniform\", min = 3, max = 2 }",
                "k.max: 2 is not accepted; expected a number of at least min",
            ),
            ("{ distribution = \"exponential\", mean = 0 }", "k.mean: 0 is not accepted; expected a number above 0"),
            (
                "{ distribution = \"lognormal\", median = 9, sigma = 1, min = 5, max = 4 }",
                "k.max: 4 is not accepted; expected a number of at least 5",
            ),
            (
                "{ distribution = \"choice\", values = [1, 2], weights = [1] }",
                "k.weights: a list of 1 is not accepted; expected 2 weights, one per value",
            ),
            (
                "{ distribution = \"choice\", values = [0, 0] }",
                "k.values: [0.0, 0.0] is not accepted; expected a value above 0",
            ),
            ("{ distribution = \"zipf\", n = 0, exponent = 1 }", "k.n: 0 is not accepted; expected a number above 0"),
        ] {
            assert_eq!(read(text).sampler("k", true).expect_err(text).to_string(), expected);
        }
    }

    #[test]
    fn plans_with_unknown_words_are_refused() {
        let message = |text: &str| toml::from_str::<Holder>(&format!("x = {text}")).err().expect(text).to_string();
        assert!(message("{ distribution = \"gamma\" }").contains("lognormal"));
        assert!(message("{ distribution = \"exponential\", avg = 1 }").contains("`mean`"));
        assert!(message("\"soon\"").contains("a time such as"));
        assert!(message("true").contains("a number"));
    }

    #[test]
    fn amounts_round_up_but_not_because_of_floats() {
        assert_eq!([to_amount(0.07, 1000), to_amount(0.0701, 1000), to_amount(1.5, 1024)], [70, 71, 1536]);
    }
}
