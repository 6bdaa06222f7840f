//! Weighted quantiles of whole numbers in one pass, from buckets 1.6 % wide. Floats are used for reports only.

use std::collections::BTreeMap;

use serde::Serialize;

/// Selected quantiles of a distribution, and its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The 10th percentile.
    pub p10: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The mean.
    pub mean: f64,
}

/// A histogram of weighted values; larger values have wider buckets.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Weight and weighted sum of the values in each bucket.
    buckets: BTreeMap<u32, (u128, u128)>,
}

impl Histogram {
    /// The binary logarithm of the number of buckets between two successive powers of 2.
    const PER_OCTAVE_BITS: u32 = 6;

    pub(super) fn add(&mut self, value: u64, weight: u64) {
        let bits = 63 - value.max(1).leading_zeros();
        let bucket = match bits.checked_sub(Self::PER_OCTAVE_BITS) {
            // Small values have a bucket each.
            None => value as u32,
            Some(shift) => (shift << Self::PER_OCTAVE_BITS) + (value >> shift) as u32,
        };
        let (total, sum) = self.buckets.entry(bucket).or_default();
        *total += u128::from(weight);
        *sum = sum.saturating_add(u128::from(value) * u128::from(weight));
    }

    /// Returns the distribution as points `(value / scale, fraction at or below it)`, one per bucket.
    pub(super) fn cdf(&self, scale: f64) -> Vec<(f64, f64)> {
        let total: u128 = self.buckets.values().map(|(weight, _)| weight).sum();
        let mut below = 0;
        let point = |&(weight, sum): &(u128, u128)| {
            below += weight;
            (sum as f64 / weight as f64 / scale, below as f64 / total as f64)
        };
        self.buckets.values().map(point).collect()
    }

    /// Returns the quantiles, divided by `scale`.
    pub(super) fn quantiles(&self, scale: f64) -> Quantiles {
        let points = self.buckets.values().map(|&(weight, sum)| (sum as f64 / weight as f64 / scale, weight as f64));
        weighted_quantiles(&points.collect::<Vec<_>>())
    }
}

/// Returns the quantiles of values with weights, in ascending order; without values, all quantiles are zero.
pub(super) fn weighted_quantiles(points: &[(f64, f64)]) -> Quantiles {
    let total: f64 = points.iter().map(|(_, weight)| weight).sum();
    let at = |share: f64| {
        let mut below = 0.0;
        let reached = points.iter().find(|(_, weight)| {
            below += weight;
            // The sum of the weights may be inexact because of rounding.
            below >= share * total * (1.0 - 1e-12)
        });
        reached.or(points.last()).map_or(0.0, |(value, _)| *value)
    };
    let mean = if total > 0.0 { points.iter().map(|(value, weight)| value * weight).sum::<f64>() / total } else { 0.0 };
    Quantiles { p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99), mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket_of_the_exact_ones() {
        let mut histogram = Histogram::default();
        for value in 1..=1_000_000u64 {
            histogram.add(value, 1);
        }
        let found = histogram.quantiles(1.0);
        for (value, exact) in [(found.p10, 1e5), (found.p50, 5e5), (found.p90, 9e5), (found.p99, 9.9e5)] {
            assert!((value / exact - 1.0f64).abs() < 0.016, "{value}: {exact}");
        }
        assert!((found.mean - 500_000.5).abs() < 1e-3);
        histogram.add(u64::MAX, 1);
        assert_eq!(histogram.buckets.last_key_value().map(|(_, count)| *count), Some((1, u128::from(u64::MAX))));
    }
}
