//! Themis as built by Muri: finish-time fairness with fractions of time, and jobs in the order of fraction over time received.
//!
//! At each decision every job i in the system has a share s = min(1, ceil(GPUs of the cluster / jobs) / its GPUs). Its isolated work is the
//! sum over past decisions of (iterations completed since / share at that decision), plus its remaining iterations / share. The fractions x
//! in [0, 1], with the sum of x times GPUs at most the GPUs of the cluster, minimise the largest
//! (time since submission + remaining seconds / x) / isolated work. The numerator is in seconds and the denominator in iterations, as in the
//! published program. Jobs are ordered by x over the time received (rounds: over the number of starts), jobs that never ran first; ties by
//! the time owed less the time received, then by x, largest first. The time owed grows by x per second.
//!
//! Only the largest ratio fixes x; the published program takes what its solver returns. [`FreeChoice`] makes the choice a parameter.
//! Source: Zhao et al., Muri, SIGCOMM 2022, simulator and testbed.

use serde::Deserialize;

use super::SharedJob;

/// The factor on the fraction of a job that never ran.
const NEVER_RAN: f64 = 1e9;

/// The choice among fractions with the same largest ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeChoice {
    /// All jobs have the largest ratio: no fraction is larger than that needs.
    #[default]
    Equal,
    /// The fractions of `equal` grow by a common factor, up to 1 each, until no GPU is left.
    Fill,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Default)]
struct ThemisJob {
    /// The share, the remaining seconds and the fraction at the last decision.
    share: f64,
    left: f64,
    fraction: f64,
    /// The isolated work of the past, in iterations.
    past: f64,
    /// The time owed in seconds.
    owed: f64,
}

/// A job at a decision, as far as fairness needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThemisClaim {
    pub gpus: f64,
    /// Seconds since submission.
    pub waited: f64,
    /// Remaining work in seconds.
    pub left: f64,
    /// Isolated work in iterations.
    pub isolated: f64,
}

impl ThemisClaim {
    /// Returns the ratio under a fraction.
    pub fn ratio(&self, fraction: f64) -> f64 {
        (self.waited + self.left / fraction) / self.isolated
    }

    /// Returns the fraction that has a ratio.
    fn fraction(&self, ratio: f64) -> f64 {
        self.left / (ratio * self.isolated - self.waited)
    }
}

/// Returns the share of a job of `gpus` GPUs beside others: `jobs` jobs in all.
pub(super) fn share(capacity: f64, jobs: usize, gpus: f64) -> f64 {
    ((capacity / jobs as f64).ceil() / gpus).min(1.0)
}

/// Returns the fractions with the least largest ratio.
pub(super) fn fractions(capacity: f64, claims: &[ThemisClaim], choice: FreeChoice) -> Vec<f64> {
    let used =
        |fraction: &dyn Fn(&ThemisClaim) -> f64| claims.iter().map(|claim| claim.gpus * fraction(claim)).sum::<f64>();
    // No ratio is below that of a job that always runs.
    let mut low = claims.iter().map(|claim| claim.ratio(1.0)).fold(0.0, f64::max);
    if used(&|claim| claim.fraction(low)) > capacity {
        let mut high = low;
        while used(&|claim| claim.fraction(high)) > capacity {
            high *= 2.0;
        }
        low = bisected(low, high, |ratio| used(&|claim| claim.fraction(ratio)) > capacity);
    }
    let mut factor = 1.0;
    if choice == FreeChoice::Fill {
        let grown = |factor: f64| move |claim: &ThemisClaim| (factor * claim.fraction(low)).min(1.0);
        let mut high = 1.0;
        while used(&grown(high)) < capacity && claims.iter().any(|claim| high * claim.fraction(low) < 1.0) {
            high *= 2.0;
        }
        factor = if high > 1.0 { bisected(1.0, high, |factor| used(&grown(factor)) < capacity) } else { 1.0 };
    }
    claims.iter().map(|claim| (factor * claim.fraction(low)).min(1.0)).collect()
}

/// Returns the least number above those for which a monotonous condition holds, to the precision of doubles.
fn bisected(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if holds(middle) { low = middle } else { high = middle }
    }
}

/// The state of Themis.
#[derive(Clone, Debug)]
pub struct Themis {
    capacity: f64,
    choice: FreeChoice,
    jobs: Vec<ThemisJob>,
    last: f64,
}

impl Themis {
    /// Creates the state for a number of jobs on a cluster of `gpus` GPUs.
    pub fn new(gpus: u32, jobs: usize, choice: FreeChoice) -> Themis {
        Themis { capacity: f64::from(gpus), choice, jobs: vec![ThemisJob::default(); jobs], last: 0.0 }
    }

    /// Returns the jobs of the system in order. With `per_start`, fractions are divided by the number of starts, not by the running time.
    pub fn order(
        &mut self,
        jobs: &[SharedJob],
        system: impl Iterator<Item = usize>,
        now: f64,
        per_start: bool,
    ) -> Vec<usize> {
        let mut order: Vec<usize> = system.collect();
        let claims: Vec<ThemisClaim> = order
            .iter()
            .map(|&at| {
                let (job, progress) = (&jobs[at], &mut self.jobs[at]);
                let gpus = f64::from(job.gpus);
                if progress.share > 0.0 {
                    progress.past += (progress.left - job.left) / job.iteration_s / progress.share;
                }
                progress.owed += progress.fraction * (now - self.last);
                progress.left = job.left;
                progress.share = share(self.capacity, order.len(), gpus);
                let isolated = progress.past + job.left / job.iteration_s / progress.share;
                ThemisClaim { gpus, waited: now - job.submit, left: job.left, isolated }
            })
            .collect();
        self.last = now;
        for (at, fraction) in order.iter().zip(fractions(self.capacity, &claims, self.choice)) {
            self.jobs[*at].fraction = fraction;
        }
        let key = |at: usize| {
            let (job, progress) = (&jobs[at], &self.jobs[at]);
            let received = if per_start { job.starts as f64 } else { job.ran };
            let rank = if received > 0.0 { progress.fraction / received } else { progress.fraction * NEVER_RAN };
            [rank, progress.owed - job.ran, progress.fraction]
        };
        order.sort_by(|&a, &b| {
            let pairs = key(b).into_iter().zip(key(a));
            pairs.map(|(b, a)| b.total_cmp(&a)).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example 7.7 of the protocol: three jobs of 8, 1 and 32 GPUs on 64.
    #[test]
    fn shares_and_ratios_are_those_of_the_example() {
        assert_eq!([8.0, 1.0, 32.0].map(|gpus| share(64.0, 3, gpus)), [1.0, 1.0, 0.6875]);
        let claim = ThemisClaim { gpus: 32.0, waited: 100.0, left: 500.0, isolated: 1000.0 / 0.6875 };
        assert!((claim.ratio(0.8) - 0.498_438).abs() < 5e-7, "{}", claim.ratio(0.8));
    }

    /// The largest ratio of fractions on a grid is never below that of the fractions found, which fit.
    #[test]
    fn no_other_fractions_are_fairer() {
        let claim = |gpus, waited, left, isolated| ThemisClaim { gpus, waited, left, isolated };
        for claims in [
            [claim(4.0, 100.0, 500.0, 900.0), claim(8.0, 0.0, 900.0, 1000.0), claim(2.0, 1000.0, 10.0, 400.0)],
            [claim(8.0, 0.0, 90.0, 90.0), claim(8.0, 10.0, 90.0, 70.0), claim(8.0, 20.0, 90.0, 50.0)],
            [claim(1.0, 0.0, 90.0, 90.0), claim(2.0, 10.0, 50.0, 70.0), claim(4.0, 20.0, 10.0, 50.0)],
        ] {
            let largest = |x: &[f64]| claims.iter().zip(x).map(|(claim, &x)| claim.ratio(x)).fold(0.0, f64::max);
            let used = |x: &[f64]| claims.iter().zip(x).map(|(claim, x)| claim.gpus * x).sum::<f64>();
            let [equal, fill] = [FreeChoice::Equal, FreeChoice::Fill].map(|choice| fractions(8.0, &claims, choice));
            assert!((largest(&equal) - largest(&fill)).abs() < 1e-9 && used(&equal).max(used(&fill)) <= 8.0 + 1e-9);
            let mut least = f64::INFINITY;
            for a in 1..=60 {
                for b in 1..=60 {
                    for c in 1..=60 {
                        let x = [a, b, c].map(|part| f64::from(part) / 60.0);
                        if used(&x) <= 8.0 {
                            least = least.min(largest(&x));
                        }
                    }
                }
            }
            assert!(largest(&equal) <= least + 1e-9 && largest(&equal) > 0.9 * least, "{} {least}", largest(&equal));
        }
    }
}
