//! Named random streams: one for each purpose, so that a change in one never shifts another.
//!
//! A stream is ChaCha with 8 rounds; its key is derived by BLAKE3 from the seed and the name of the purpose. Streams are portable,
//! reproducible, and independent for all practical purposes. [`numbered`] divides a stream into substreams, such as one per job, so that
//! the draws of a job do not depend on the number of draws of earlier jobs.
//!
//! The random bits are the same on every platform. Distributions use `ln` and `exp`, and the last bit of their results may differ between
//! platforms; rounding to whole microseconds and milli-cores hides nearly all of these differences.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Part of the key's derivation. Another text would change every generated workload.
const CONTEXT: &str = "plimsoll 2026 named random stream 1";

/// Returns the random stream of one purpose (`arrivals`, `demands`, ...) under one seed.
pub fn stream(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut material = seed.to_le_bytes().to_vec();
    material.extend_from_slice(purpose.as_bytes());
    ChaCha8Rng::from_seed(blake3::derive_key(CONTEXT, &material))
}

/// Returns the substream of item `number` of a stream from which nothing was drawn.
pub fn numbered(base: &ChaCha8Rng, number: u64) -> ChaCha8Rng {
    let mut rng = base.clone();
    // Stream 0 is the base stream itself.
    rng.set_stream(number.wrapping_add(1));
    rng
}

/// Draws indices in proportion to weights.
#[derive(Clone, Debug)]
pub struct Weighted {
    cumulative: Vec<f64>,
}

impl Weighted {
    /// Creates a sampler, or returns `None` if a weight is not finite or below 0, or if no weight is above 0.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Option<Weighted> {
        let mut sum = 0.0;
        let mut cumulative = Vec::new();
        for weight in weights {
            if !(weight.is_finite() && weight >= 0.0) {
                return None;
            }
            sum += weight;
            cumulative.push(sum);
        }
        (sum > 0.0 && sum.is_finite()).then_some(Weighted { cumulative })
    }

    /// Creates a sampler with the weights `1, 2^-s, 3^-s, ...` of `count` ranks: Zipf's law, `s` = 0 for equal weights.
    pub fn zipf(count: u32, exponent: f64) -> Option<Weighted> {
        Weighted::new((1..=count).map(|rank| f64::from(rank).powf(-exponent)))
    }

    /// Draws an index.
    pub fn sample(&self, rng: &mut ChaCha8Rng) -> usize {
        let total = self.cumulative.last().expect("there is a weight above 0");
        let at = rng.random::<f64>() * total;
        // An entry of weight 0 has the same sum as the entry before it, and is skipped. If rounding makes the draw equal to the total,
        // `min` selects the last entry with a weight above 0.
        let index = self.cumulative.partition_point(|&sum| sum <= at);
        index.min(self.cumulative.partition_point(|sum| sum < total))
    }
}

/// Divides `tasks` into at most `sets` parts that differ by at most one.
pub(super) fn parts(tasks: u32, sets: u32) -> impl Iterator<Item = u32> {
    let count = sets.min(tasks).max(1);
    (0..count).map(move |part| tasks / count + u32::from(part < tasks % count)).filter(|&tasks| tasks > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_are_known_and_differ_by_seed_purpose_and_number() {
        let first = |mut rng: ChaCha8Rng| rng.next_u64();
        let base = stream(42, "arrivals");
        assert_eq!(first(base.clone()), KNOWN);
        let others = [stream(43, "arrivals"), stream(42, "demands"), numbered(&base, 0), numbered(&base, 1)];
        let mut drawn: Vec<u64> = others.into_iter().map(first).collect();
        drawn.push(KNOWN);
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 5);
        assert_eq!(first(numbered(&base, 7)), first(numbered(&stream(42, "arrivals"), 7)));
    }

    /// The first number of the stream `arrivals` with seed 42.
    const KNOWN: u64 = 17_636_445_914_210_839_064;

    #[test]
    fn weights_are_followed_and_bad_ones_refused() {
        let weighted = Weighted::new([0.0, 3.0, 0.0, 1.0, 0.0]).expect("valid weights");
        let mut rng = stream(1, "test");
        let mut count = [0u32; 5];
        for _ in 0..40_000 {
            count[weighted.sample(&mut rng)] += 1;
        }
        assert_eq!((count[0], count[2], count[4]), (0, 0, 0));
        assert!((f64::from(count[1]) / f64::from(count[3]) - 3.0).abs() < 0.1, "{count:?}");
        for bad in [vec![], vec![0.0], vec![1.0, -1.0], vec![f64::NAN], vec![f64::INFINITY]] {
            assert!(Weighted::new(bad).is_none());
        }
    }
}
