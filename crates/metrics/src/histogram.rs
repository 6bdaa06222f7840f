//! Quantiles of many values in little memory, independent of the order of the values.
//!
//! Up to [`LogHistogram::EXACT`] values are stored, so that quantiles are exact. More values are counted in a logarithmic histogram over
//! `u64`. Values below 2048 are counted exactly. Above 2048, every octave is divided into 1024 equal buckets, so the relative error of a
//! quantile is at most 1/2048. Count, sum, minimum and maximum are exact. Counters are integers, so the histogram of two merged parts
//! equals the histogram of the whole. Source: the bucket layout of HdrHistogram (G. Tene), with 2^10 buckets per octave.

/// The binary logarithm of the number of buckets in one octave (from one power of two to the next).
const BITS: u32 = 10;
const BUCKETS: usize = 1 << BITS;

/// Values and their quantiles.
///
/// Memory: 8 bytes per value for up to [`LogHistogram::EXACT`] values; for more, 8 KiB for each octave that occurs, at most 440 KiB. An
/// empty histogram allocates nothing.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct LogHistogram {
    /// All values, unordered, while there are at most [`LogHistogram::EXACT`]; empty afterwards.
    values: Vec<u64>,
    /// The counts of more values.
    counts: Option<Counts>,
}

/// Counts of values on a logarithmic scale.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Counts {
    /// Octave 0 has the values below 1024, octave o ≥ 1 the values of 10 + o bits, in buckets of 2^(o−1) values. The last octave in the
    /// list is not empty, so equal contents have equal lists.
    octaves: Vec<Option<Box<Octave>>>,
    count: u64,
    sum: u128,
    /// The minimum and the maximum.
    range: Option<(u64, u64)>,
}

/// The counts of an octave, by bucket.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Octave(#[serde(with = "plimsoll_base::checkpoint::array")] [u64; BUCKETS]);

impl Counts {
    fn from_values(values: &[u64]) -> Counts {
        let mut counts = Counts::default();
        values.iter().for_each(|value| counts.add(*value));
        counts
    }

    fn add(&mut self, value: u64) {
        let (octave, bucket) = position(value);
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new(Octave([0; BUCKETS]))).0[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        let (min, max) = self.range.get_or_insert((value, value));
        (*min, *max) = ((*min).min(value), (*max).max(value));
    }

    /// Returns the buckets that are not empty, in ascending order.
    fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        self.octaves.iter().enumerate().flat_map(|(octave, counts)| {
            let counts = counts.iter().flat_map(|counts| counts.0.iter().enumerate());
            counts.filter(|(_, count)| **count > 0).map(move |(bucket, &count)| {
                let shift = octave.saturating_sub(1);
                let mantissa = if octave == 0 { bucket } else { BUCKETS + bucket };
                let low = (mantissa as u64) << shift;
                HistogramBucket { low, high: low + ((1 << shift) - 1), count }
            })
        })
    }
}

/// The quantiles of values.
#[derive(Clone, Debug)]
pub struct Quantiles<'a> {
    /// All values in ascending order, if they are stored.
    values: Vec<u64>,
    counts: Option<&'a Counts>,
}

/// The range of values of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    /// The smallest value of the bucket.
    pub low: u64,
    /// The largest value of the bucket.
    pub high: u64,
    /// The number of recorded values.
    pub count: u64,
}

impl LogHistogram {
    /// The largest number of values for which quantiles are exact.
    pub const EXACT: u64 = 1 << 16;

    /// The largest relative error of a quantile of more than [`LogHistogram::EXACT`] values.
    pub const RELATIVE_ERROR: f64 = 1.0 / (2 * BUCKETS) as f64;

    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        match &mut self.counts {
            None if self.values.len() < Self::EXACT as usize => self.values.push(value),
            Some(counts) => counts.add(value),
            None => self.start_counting(value),
        }
    }

    #[cold]
    fn start_counting(&mut self, value: u64) {
        let mut counts = Counts::from_values(&std::mem::take(&mut self.values));
        counts.add(value);
        self.counts = Some(counts);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(self.values.len() as u64, |counts| counts.count)
    }

    /// Returns the exact sum.
    pub fn sum(&self) -> u128 {
        let sum = || self.values.iter().map(|value| u128::from(*value)).sum();
        self.counts.as_ref().map_or_else(sum, |counts| counts.sum)
    }

    fn range(&self) -> Option<(u64, u64)> {
        match &self.counts {
            Some(counts) => counts.range,
            None => self.values.iter().min().copied().zip(self.values.iter().max().copied()),
        }
    }

    /// Returns the smallest value, exactly, or `None` if there are no values.
    pub fn min(&self) -> Option<u64> {
        self.range().map(|(min, _)| min)
    }

    /// Returns the largest value, exactly, or `None` if there are no values.
    pub fn max(&self) -> Option<u64> {
        self.range().map(|(_, max)| max)
    }

    /// Returns the mean, from the exact sum, or `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum() as f64 / self.count() as f64)
    }

    /// Returns the quantiles. Cost: that of sorting the stored values once.
    pub fn quantiles(&self) -> Quantiles<'_> {
        let mut values = self.values.clone();
        values.sort_unstable();
        Quantiles { values, counts: self.counts.as_ref() }
    }

    /// Returns the buckets that are not empty, in ascending order: the whole distribution, for a figure.
    pub fn buckets(&self) -> Vec<HistogramBucket> {
        match &self.counts {
            Some(counts) => counts.buckets().collect(),
            None => Counts::from_values(&self.values).buckets().collect(),
        }
    }
}

impl PartialEq for LogHistogram {
    /// Returns whether the same values were recorded, in any order.
    fn eq(&self, other: &LogHistogram) -> bool {
        self.counts == other.counts && self.quantiles().values == other.quantiles().values
    }
}

impl Eq for LogHistogram {}

impl Quantiles<'_> {
    /// Returns the q-quantile by nearest rank: the value at position ⌈q n⌉ (at least 1) of the sorted values.
    ///
    /// The result is exact for up to [`LogHistogram::EXACT`] values, for results below 2048, and at the first and the last position.
    /// Otherwise the relative error is at most [`LogHistogram::RELATIVE_ERROR`] (the result is the middle of the bucket). `q` is rounded
    /// to a multiple of 10^-9, so the 0.07-quantile of 100 values is the seventh value. Returns `None` if there are no values, or if `q`
    /// is not in 0..=1.
    pub fn at(&self, q: f64) -> Option<u64> {
        let Some(counts) = self.counts else {
            return self.values.get(rank(q, self.values.len() as u64)? as usize - 1).copied();
        };
        let (min, max) = counts.range?;
        let rank = rank(q, counts.count)?;
        if rank == 1 {
            return Some(min);
        }
        if rank == u128::from(counts.count) {
            return Some(max);
        }
        let mut seen = 0;
        let bucket = counts.buckets().find(|bucket| {
            seen += u128::from(bucket.count);
            seen >= rank
        });
        bucket.map(|bucket| (bucket.low + (bucket.high - bucket.low) / 2).clamp(min, max))
    }
}

/// Returns the position, from 1, of the q-quantile by nearest rank among `count` sorted values; `None` if `q` is not in 0..=1.
pub(crate) fn rank(q: f64, count: u64) -> Option<u128> {
    let billionths = (0.0..=1.0).contains(&q).then(|| (q * 1e9).round() as u128)?;
    Some((billionths * u128::from(count)).div_ceil(1_000_000_000).max(1))
}

/// Returns the octave of a value and its bucket in that octave.
fn position(value: u64) -> (usize, usize) {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    let mantissa = value >> octave.saturating_sub(1);
    (octave as usize, mantissa as usize % BUCKETS)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn histogram(values: &[u64]) -> LogHistogram {
        let mut all = LogHistogram::default();
        values.iter().for_each(|&value| all.record(value));
        all
    }

    /// Returns values of every magnitude, with many ties among the small ones.
    fn random_values(rng: &mut ChaCha8Rng, n: usize) -> Vec<u64> {
        (0..n).map(|_| rng.random::<u64>() >> rng.random_range(0..64)).collect()
    }

    #[test]
    fn nothing_counted_has_no_value() {
        let empty = LogHistogram::default();
        assert_eq!((empty.count(), empty.sum(), empty.values.capacity()), (0, 0, 0));
        assert_eq!((empty.min(), empty.max(), empty.mean(), empty.quantiles().at(0.5)), (None, None, None, None));
        assert_eq!(empty.buckets(), []);
    }

    #[test]
    fn one_value_is_every_quantile() {
        for value in [0, 1, 2047, 2048, 2049, 123_456_789, u64::MAX] {
            let one = histogram(&[value]);
            for q in [0.0, 0.3, 1.0] {
                assert_eq!(one.quantiles().at(q), Some(value));
            }
            assert_eq!((one.min(), one.max(), one.sum()), (Some(value), Some(value), u128::from(value)));
        }
    }

    #[test]
    fn every_value_lies_in_its_own_narrow_bucket() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in edges.chain(0..5000).chain([u64::MAX]) {
            let bucket = histogram(&[value]).buckets()[0];
            assert!(bucket.low <= value && value <= bucket.high, "{value}: {bucket:?}");
            assert!(bucket.high - bucket.low <= bucket.low / BUCKETS as u64, "{value}: {bucket:?}");
            assert!(value >= 2048 || bucket.low == bucket.high, "{value}: {bucket:?}");
        }
    }

    #[test]
    fn quantiles_are_within_the_stated_error_of_the_sorted_values() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for n in [1, 2, 3, 10, 1000, LogHistogram::EXACT as usize, LogHistogram::EXACT as usize + 1, 100_000] {
            let mut values = random_values(&mut rng, n);
            let all = histogram(&values);
            values.sort_unstable();
            assert_eq!((all.min(), all.max()), (values.first().copied(), values.last().copied()));
            assert_eq!(all.sum(), values.iter().map(|&v| u128::from(v)).sum::<u128>());
            let quantiles = all.quantiles();
            for permille in 0..=1000usize {
                let exact = values[(permille * n).div_ceil(1000).max(1) - 1];
                let given = quantiles.at(permille as f64 / 1000.0).unwrap();
                let error = exact.abs_diff(given) as f64;
                assert!(error <= exact as f64 * LogHistogram::RELATIVE_ERROR, "{permille} of {n}: {exact} {given}");
                let exactly = exact < 2048 || n as u64 <= LogHistogram::EXACT;
                assert!(!exactly || exact == given, "{permille} of {n}: {exact} {given}");
            }
        }
    }

    #[test]
    fn ranks_are_exact_where_floats_would_slip() {
        // In floats, 0.07 * 100 is 7.000000000000001, which rounds up to 8.
        let hundred = histogram(&(1..=100).collect::<Vec<_>>());
        for percent in 1..=100u64 {
            assert_eq!(hundred.quantiles().at(percent as f64 / 100.0), Some(percent));
        }
        for q in [-0.1, 1.1, f64::NAN] {
            assert_eq!(hundred.quantiles().at(q), None);
        }
    }

    #[test]
    fn order_leaves_no_trace() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for n in [3000, LogHistogram::EXACT as usize + 500] {
            backwards(&random_values(&mut rng, n));
        }
        assert_ne!(histogram(&[5000, 5001]), histogram(&[5000, 5000]));
    }

    fn backwards(values: &[u64]) {
        let whole = histogram(values);
        let reversed: Vec<u64> = values.iter().rev().copied().collect();
        assert_eq!(histogram(&reversed), whole);
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let most = histogram(&[u64::MAX; 1000]);
        assert_eq!(most.sum(), u128::from(u64::MAX) * 1000);
        assert_eq!(most.quantiles().at(0.5), Some(u64::MAX));
    }
}
