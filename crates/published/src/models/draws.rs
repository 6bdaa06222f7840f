//! Predictions with intervals: repetitions of a run with random factors.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use plimsoll_base::error::{Error, Result};

/// Repetitions with random factors, each uniform between two numbers. They give an interval of the completion time of each job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictionDraws {
    /// The number of repetitions.
    pub count: u32,
    /// The seed.
    pub seed: u64,
    /// The factor on the time of an iteration, in place of `pace`, one per draw.
    pub pace: [f64; 2],
    /// The factor on the cost of a start, in place of `cost`, one per draw.
    pub cost: [f64; 2],
    /// The factor on the time of an iteration, one per draw and job.
    pub job: [f64; 2],
    /// The part of the draws that the interval covers.
    pub level: f64,
    /// The factors on the lower and the upper end of the interval, for errors that no draw has; absent: 1.
    #[serde(default = "none")]
    pub residual: [f64; 2],
}

fn none() -> [f64; 2] {
    [1.0, 1.0]
}

/// The factors of a draw.
#[derive(Clone, Debug)]
pub struct Factors {
    /// On the time of an iteration.
    pub pace: f64,
    /// On the cost of a start.
    pub cost: f64,
    /// On the time of an iteration of each job.
    pub jobs: Vec<f64>,
}

impl PredictionDraws {
    /// Checks the draws. Errors: a wrong value, with the file.
    pub fn check(&self, path: &Path) -> Result<()> {
        let ranges = [self.pace, self.cost, self.job, self.residual];
        let positive = ranges.iter().all(|[low, high]| *low > 0.0 && low <= high && high.is_finite());
        if self.count == 0 || !positive || self.level.is_nan() || self.level <= 0.0 || self.level >= 1.0 {
            let problem =
                "expected a count above 0, pairs of positive numbers in ascending order, and a level in (0, 1)";
            return Err(Error::trace(path, 0, "draws", problem));
        }
        Ok(())
    }

    /// Returns the interval of the completion time of each named job in seconds. `run` returns the completion times under the factors of a
    /// draw; a job that completes in no draw has no interval. Errors: those of `run`.
    pub fn intervals(
        &self,
        names: &[String],
        run: impl Fn(&Factors) -> Result<Vec<Option<f64>>>,
    ) -> Result<Vec<(String, f64, f64)>> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
        let mut uniform = |[low, high]: [f64; 2]| if low < high { rng.random_range(low..high) } else { low };
        for _ in 0..self.count {
            let (pace, cost) = (uniform(self.pace), uniform(self.cost));
            let factors = Factors { pace, cost, jobs: names.iter().map(|_| uniform(self.job)).collect() };
            run(&factors)?.into_iter().zip(&mut times).for_each(|(time, times)| times.extend(time));
        }
        let tail = (1.0 - self.level) / 2.0;
        let interval = |(name, mut times): (&String, Vec<f64>)| {
            times.sort_by(f64::total_cmp);
            let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
            (name.clone(), at(tail) * self.residual[0], at(1.0 - tail) * self.residual[1])
        };
        Ok(names.iter().zip(times).filter(|(_, times)| !times.is_empty()).map(interval).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws() -> PredictionDraws {
        PredictionDraws {
            count: 41,
            seed: 1,
            pace: [1.0, 1.0],
            cost: [1.0, 1.0],
            job: [1.0, 2.0],
            level: 0.95,
            residual: [0.5, 2.0],
        }
    }

    #[test]
    fn intervals_are_quantiles_of_the_draws_with_the_residual() {
        let names = ["a".to_owned(), "b".to_owned()];
        let found = draws().intervals(&names, |factors| Ok(vec![Some(factors.jobs[0]), None])).expect("intervals");
        let [(name, low, high)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(name, "a");
        // 2.5 % of 40 steps: the second smallest and the second largest of 41 draws from U(1, 2).
        assert!((0.5..0.6).contains(low) && (3.8..4.0).contains(high), "{low} {high}");
    }

    #[test]
    fn wrong_draws_are_errors() {
        let said = |draws: PredictionDraws| draws.check(Path::new("p.toml")).expect_err("wrong").to_string();
        assert!(draws().check(Path::new("p.toml")).is_ok());
        assert!(said(PredictionDraws { level: 1.0, ..draws() }).contains("p.toml"));
        assert!(said(PredictionDraws { job: [2.0, 1.0], ..draws() }).contains("ascending"));
        assert!(said(PredictionDraws { count: 0, ..draws() }).contains("count"));
    }
}
