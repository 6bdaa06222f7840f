//! The durations that users estimate, derived from the true durations by a model of their error.
//!
//! Most traces have no estimates. Studies of the value of estimates, and of the robustness of policies to their errors, need errors of a
//! known size. Each task set draws once, from its own random stream, which is numbered by the user and by the user's number of sets so
//! far. So estimates depend neither on the policy nor, in a closed loop, on the submissions of other users.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::altered::{Alteration, Altered};
use super::synthetic::random::{numbered, stream};
use super::{Source, TaskSet};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Rounding, Span, UserId, decimal};

/// One, in millionths.
const ONE: u64 = 1_000_000;

/// The largest factor.
const FACTOR_MOST: u64 = 1000 * ONE;

/// The largest sigma.
const SIGMA_MOST: u64 = 5 * ONE;

/// The longest estimate: tables cannot store more microseconds.
const LONGEST: u64 = i64::MAX as u64;

/// The model of the users' estimates. As text: `as-given`, `exact`, `uniform:3`, `lognormal:0.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimates {
    /// The estimates of the workload, if it has any.
    #[default]
    AsGiven,
    /// The true duration.
    Exact,
    /// The true duration times a uniformly distributed number from 1 to a factor, in millionths: no estimate is too low. This is the
    /// f-model of Mu'alem and Feitelson (IEEE TPDS 2001) with f equal to the factor minus 1. The estimate is computed in integers, and
    /// rounded down to the microsecond.
    Uniform(u64),
    /// The true duration times e to the power of a normally distributed number with mean 0 and this standard deviation, in millionths: half
    /// of all estimates are too low, and the median error is 0. Rounded to the nearest microsecond.
    Lognormal(u64),
}

impl Estimates {
    /// Returns whether estimates differ from seed to seed; a factor of 1 or a sigma of 0 keeps the true durations.
    pub fn are_drawn(self) -> bool {
        match self {
            Estimates::AsGiven | Estimates::Exact => false,
            Estimates::Uniform(factor) => factor > ONE,
            Estimates::Lognormal(sigma) => sigma > 0,
        }
    }

    /// Returns the estimate of a task setfrom its own draws. It is at least a microsecond if the duration is not 0.
    fn estimate(self, set: &TaskSet, draws: impl FnOnce() -> ChaCha8Rng) -> Option<Span> {
        let duration = set.duration.0;
        let estimate = match self {
            Estimates::AsGiven => return set.estimate,
            Estimates::Exact => return Some(set.duration),
            Estimates::Uniform(factor) => {
                let more =
                    u128::from(duration.min(LONGEST)) * u128::from(factor - ONE) * u128::from(draws().random::<u32>());
                let more = (more >> 32) / u128::from(ONE);
                u64::try_from(more).unwrap_or(LONGEST).saturating_add(duration)
            }
            Estimates::Lognormal(sigma) => {
                let normal: f64 = draws().sample(StandardNormal);
                // A cast of a float that is too large saturates.
                (duration as f64 * (normal * sigma as f64 / ONE as f64).exp()).round() as u64
            }
        };
        Some(Span(estimate.clamp(duration.min(1), LONGEST)))
    }
}

impl std::fmt::Display for Estimates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |value: u64| value as f64 / ONE as f64;
        match self {
            Estimates::AsGiven => f.write_str("as-given"),
            Estimates::Exact => f.write_str("exact"),
            Estimates::Uniform(factor) => write!(f, "uniform:{}", number(*factor)),
            Estimates::Lognormal(sigma) => write!(f, "lognormal:{}", number(*sigma)),
        }
    }
}

impl std::str::FromStr for Estimates {
    type Err = Error;

    fn from_str(text: &str) -> Result<Estimates> {
        let wrong = |expected: &str| Error::plan("estimates", format!("'{text}'"), expected);
        let number = |text: &str, range: std::ops::RangeInclusive<u64>, expected| {
            decimal(text.as_bytes(), ONE, Rounding::Nearest)
                .ok()
                .filter(|value| range.contains(value))
                .ok_or_else(|| wrong(expected))
        };
        match text.split_once(':') {
            None if text == "as-given" => Ok(Estimates::AsGiven),
            None if text == "exact" => Ok(Estimates::Exact),
            Some(("uniform", factor)) => {
                number(factor, ONE..=FACTOR_MOST, "uniform:F with a factor F from 1 to 1000").map(Estimates::Uniform)
            }
            Some(("lognormal", sigma)) => {
                number(sigma, 0..=SIGMA_MOST, "lognormal:S with a standard deviation S from 0 to 5")
                    .map(Estimates::Lognormal)
            }
            _ => Err(wrong("as-given, exact, uniform:F or lognormal:S")),
        }
    }
}

/// The draws of estimates for the rows of a source.
pub struct EstimateDraws {
    model: Estimates,
    draws: ChaCha8Rng,
    /// Number of task sets taken, by user.
    taken: Vec<u32>,
}

/// A source with the estimates of a model instead of its own estimates.
pub type Estimated<'a> = Altered<'a, EstimateDraws>;

impl<'a> Estimated<'a> {
    /// Creates a source with the estimates of a seed.
    pub fn new(source: Box<dyn Source + 'a>, model: Estimates, seed: u64) -> Estimated<'a> {
        Altered::with(source, EstimateDraws { model, draws: stream(seed, "estimates"), taken: Vec::new() })
    }
}

impl EstimateDraws {
    /// Returns the number of the substream of a user's next task set.
    fn substream(&self, user: UserId) -> u64 {
        u64::from(user.0) << 32 | u64::from(self.taken.get(user.index()).copied().unwrap_or(0))
    }
}

impl Alteration for EstimateDraws {
    fn alter(&mut self, set: &mut TaskSet) {
        set.estimate = self.model.estimate(set, || numbered(&self.draws, self.substream(set.user)));
    }

    fn taken(&mut self, set: &TaskSet) {
        if self.taken.len() <= set.user.index() {
            self.taken.resize(set.user.index() + 1, 0);
        }
        let taken = &mut self.taken[set.user.index()];
        *taken = taken.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;
    use plimsoll_base::units::Dim;

    /// Returns the ratios of estimates to true durations of 1000 s.
    fn factors(model: &str, seed: u64) -> Vec<f64> {
        let mut workload = Workload { dims: vec![Dim::parse("cpu").0], ..Workload::default() };
        for number in 0..4000 {
            let (job, user) =
                (workload.job(&number.to_string()), UserId(workload.users.intern(&(number % 7).to_string())));
            workload.sets.push(TaskSet {
                row: number,
                job,
                user,
                duration: Span::from_secs(1000),
                tasks: 1,
                ..TaskSet::default()
            });
        }
        let model = model.parse().expect("a model");
        let mut source = Estimated::new(Box::new(workload.source()), model, seed);
        let mut factors = Vec::new();
        while let Some(set) = source.next_set().expect("rows in memory") {
            factors.extend(set.estimate.map(|estimate| estimate.0 as f64 / set.duration.0 as f64));
        }
        factors
    }

    #[test]
    fn models_have_their_moments() {
        assert!(factors("as-given", 1).is_empty());
        assert!(factors("exact", 1).iter().all(|factor| *factor == 1.0));
        assert!(factors("uniform:1", 1).iter().chain(&factors("lognormal:0", 1)).all(|factor| *factor == 1.0));
        let mut uniform = factors("uniform:3", 1);
        let mean = uniform.iter().sum::<f64>() / 4000.0;
        uniform.sort_by(f64::total_cmp);
        assert!((mean - 2.0).abs() < 0.04 && uniform[0] >= 1.0 && uniform[3999] < 3.0, "{mean}");
        assert!((uniform[1000] - 1.5).abs() < 0.1 && (uniform[3000] - 2.5).abs() < 0.1);
        let mut lognormal = factors("lognormal:0.5", 1);
        lognormal.sort_by(f64::total_cmp);
        // The quartiles of a normal distribution are 0.6745 standard deviations away.
        let quartiles = [0.7137, 1.0, 1.4011];
        for (at, expected) in [1000, 2000, 3000].into_iter().zip(quartiles) {
            assert!((lognormal[at] - expected).abs() < 0.05, "{} {expected}", lognormal[at]);
        }
        assert_eq!(factors("uniform:3", 2), factors("uniform:3", 2));
        assert_ne!(factors("uniform:3", 2), factors("uniform:3", 3));
    }

    #[test]
    fn text_reads_back_and_bad_text_is_refused() {
        for text in ["as-given", "exact", "uniform:1", "uniform:2.5", "lognormal:0.25"] {
            assert_eq!(text.parse::<Estimates>().expect(text).to_string(), text);
        }
        for (text, expected) in [
            ("uniform", "as-given, exact, uniform:F or lognormal:S"),
            ("exactly", "as-given, exact"),
            ("uniform:0.5", "from 1 to 1000"),
            ("uniform:x", "from 1 to 1000"),
            ("lognormal:-1", "from 0 to 5"),
            ("lognormal:6", "from 0 to 5"),
        ] {
            let message = text.parse::<Estimates>().expect_err(text).to_string();
            assert!(message.contains(expected) && message.contains(text), "{message}");
        }
    }

    #[test]
    fn extremes_stay_within_tables() {
        let of = |model: Estimates, duration| {
            let set = TaskSet { duration: Span(duration), ..TaskSet::default() };
            model.estimate(&set, || stream(1, "test")).expect("an estimate").0
        };
        for model in [Estimates::Uniform(FACTOR_MOST), Estimates::Lognormal(SIGMA_MOST)] {
            assert_eq!(of(model, 0), 0);
            assert!(of(model, 1) >= 1 && of(model, LONGEST) <= LONGEST && of(model, u64::MAX) <= LONGEST);
        }
    }
}
