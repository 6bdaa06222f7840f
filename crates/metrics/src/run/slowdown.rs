//! Slowdowns of jobs: their exact mean and their quantiles, and bounded slowdowns.

use super::delay::Summary;
use super::fairness::nearest;
use super::{Metrics, float};
use crate::histogram::{LogHistogram, rank};
use plimsoll_base::units::Span;

/// The number of fractional binary digits of a quotient in a sum. A double of at least 1 has no more fractional digits.
const DIGITS: u32 = 52;

/// A sum of slowdowns in units of 2^-52. It does not depend on the order of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SlowdownSum {
    jobs: u64,
    sum: u128,
}

impl SlowdownSum {
    /// Adds the slowdown of a job. A job without work has none.
    pub fn add(&mut self, completion: Span, ideal: Span) {
        if let Some(quotient) = quotient(completion, ideal) {
            self.add_quotient(quotient);
        }
    }

    fn add_quotient(&mut self, quotient: u128) {
        self.jobs += 1;
        self.sum = self.sum.saturating_add(quotient);
    }

    /// Returns the mean, or `None` without jobs.
    pub fn mean(&self) -> Option<f64> {
        let unit = (1u64 << DIGITS) as f64;
        (self.jobs > 0).then(|| self.sum as f64 / unit / self.jobs as f64)
    }
}

/// Returns a slowdown in units of 2^-52; `None` for an ideal time of 0.
fn quotient(completion: Span, ideal: Span) -> Option<u128> {
    if completion == ideal && ideal > Span::ZERO {
        return Some(1 << DIGITS);
    }
    let (part, whole) = (u128::from(completion.0) << DIGITS, u128::from(ideal.0));
    (part + whole / 2).checked_div(whole)
}

/// The ideal completion time below which a slowdown is relative to this time. Source: Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong,
/// "Theory and Practice in Parallel Job Scheduling", JSSPP 1997.
const BOUND: Span = Span::from_secs(10);

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        float(
            "bounded_slowdown_mean",
            "mean of completion time over the ideal completion time or 10 s, whichever is longer, and at least 1; under a horizon (until) of the jobs that finish by then, as for all delays",
            |run| run.totals.delays.slowdown.bounded.mean(),
        )
        .lower()
        .words("Mean bounded slowdown"),
    ],
    fairness: &[],
};

/// The slowdowns of finished jobs: completion time over ideal time.
///
/// Each quotient is rounded once, to a double. For up to [`LogHistogram::EXACT`] jobs, quantiles are exact; for more jobs, they are
/// computed from a histogram of millionths.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Slowdowns {
    sum: SlowdownSum,
    /// The bounded slowdowns: at least 1, and relative to at least [`BOUND`].
    bounded: SlowdownSum,
    max: f64,
    /// The quotients, unordered, while there are at most [`LogHistogram::EXACT`]; empty afterwards.
    values: Vec<f64>,
    /// More quotients, each rounded to a millionth.
    millionths: LogHistogram,
}

impl Slowdowns {
    /// Adds a job. A job without work has no slowdown.
    pub fn record(&mut self, completion: Span, ideal: Span) {
        let exact = quotient(completion, ideal);
        match exact {
            Some(slowdown) if ideal >= BOUND && completion >= ideal => self.bounded.add_quotient(slowdown),
            _ => self.bounded.add(completion.max(ideal).max(BOUND), ideal.max(BOUND)),
        }
        let Some(exact) = exact else { return };
        self.sum.add_quotient(exact);
        let quotient = completion.0 as f64 / ideal.0 as f64;
        self.max = self.max.max(quotient);
        if self.sum.jobs <= LogHistogram::EXACT {
            self.values.push(quotient);
        } else {
            let earlier = std::mem::take(&mut self.values);
            earlier.into_iter().chain([quotient]).for_each(|value| self.millionths.record(nearest(value * 1e6)));
        }
    }

    /// Returns the quantiles at `qs` by nearest rank, each `None` if it is not defined. Cost: that of sorting the stored values once.
    pub fn quantiles(&self, qs: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        let mut values = self.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        let quantiles = self.millionths.quantiles();
        let one = |q: f64| {
            let exact = rank(q, self.sum.jobs).and_then(|rank| values.get(rank as usize - 1).copied());
            exact.or_else(|| quantiles.at(q).map(|value| value as f64 / 1e6))
        };
        qs.into_iter().map(one).collect()
    }

    /// Summarises the slowdowns. Returns `None` without jobs.
    pub fn summary(&self) -> Option<Summary> {
        let mean = self.sum.mean()?;
        let [p50, p90, p99] = self.quantiles([0.5, 0.9, 0.99])[..] else { return None };
        Some(Summary { count: self.sum.jobs, mean, p50: p50?, p90: p90?, p99: p99?, max: self.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slowdowns(jobs: impl IntoIterator<Item = (u64, u64)>) -> Slowdowns {
        let mut all = Slowdowns::default();
        jobs.into_iter().for_each(|(completion, ideal)| all.record(Span(completion), Span(ideal)));
        all
    }

    #[test]
    fn quotients_are_not_rounded_to_millionths() {
        let two = slowdowns([(4_000_000, 3_000_000), (5_000_000, 3_000_000), (7, 0)]).summary().unwrap();
        assert_eq!((two.count, two.mean, two.p50, two.p99, two.max), (2, 1.5, 4.0 / 3.0, 5.0 / 3.0, 5.0 / 3.0));
        let one = slowdowns([(1, 3)]).summary().unwrap();
        assert!((one.mean - 1.0 / 3.0).abs() < 1e-15 && one.p50 == 1.0 / 3.0, "{one:?}");
        assert_eq!(slowdowns([(7, 0)]).summary(), None, "no work at all");
        assert_eq!(slowdowns([]).quantiles([0.5]), [None]);
    }

    #[test]
    fn the_mean_does_not_depend_on_the_order_and_no_sum_overflows() {
        let jobs: Vec<(u64, u64)> = (1..2000).map(|n| (n * n + 7, n)).collect();
        let (ahead, back) = (slowdowns(jobs.iter().copied()), slowdowns(jobs.iter().rev().copied()));
        assert_eq!(ahead.summary(), back.summary());
        let mean = jobs.iter().map(|(completion, ideal)| *completion as f64 / *ideal as f64).sum::<f64>() / 1999.0;
        assert!((ahead.summary().unwrap().mean / mean - 1.0).abs() < 1e-14);
        let endless = slowdowns(std::iter::repeat_n((u64::MAX, 1), 5000)).summary().unwrap();
        assert!(endless.mean > 1e18 && endless.max == u64::MAX as f64);
    }

    #[test]
    fn quantiles_of_many_are_within_the_error_of_the_histogram() {
        let many = LogHistogram::EXACT + 10;
        let all = slowdowns((1..=many).map(|n| (3 * many + n, 3 * many)));
        for (q, found) in [0.1, 0.5, 0.99].into_iter().zip(all.quantiles([0.1, 0.5, 0.99])) {
            let exact = 1.0 + q / 3.0;
            assert!((found.unwrap() / exact - 1.0).abs() < 1.0 / 2048.0, "{q}: {found:?}");
        }
    }
}
