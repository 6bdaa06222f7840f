//! Indices of the evenness of dominant shares.
//!
//! Each function takes the weighted dominant shares s_i / w_i of the backlogged users, in any order; the shares must be finite and not
//! negative. Users without waiting tasks are excluded, because a small share of such a user is not unfair. [`jain`], [`gini`] and
//! [`ratio`] do not change when all shares are scaled; [`gap`] is in units of the share. [`JainSum`] maintains the Jain index of a
//! changing set of users in constant time per change.

use super::{At, Metrics, float, mean};
use plimsoll_base::column::Unit;

/// Computes the Jain index (Σy)² / (n Σy²).
///
/// If some users have equal shares and the others have none, the index is the fraction of users with a share. Range: 1/n (one user has
/// everything) to 1 (all equal). Returns `None` without users, and if all shares are 0 (0/0). Cost: O(n). Source: Jain, Chiu and Hawe, DEC
/// TR-301, 1984.
pub fn jain(shares: &[f64]) -> Option<f64> {
    // Shares are scaled so that the largest is 1 and no square overflows or underflows.
    let largest = positive_max(shares)?;
    let (sum, squares) =
        shares.iter().map(|y| y / largest).fold((0.0, 0.0), |(sum, squares), y| (sum + y, squares + y * y));
    Some((sum * sum / (shares.len() as f64 * squares)).min(1.0))
}

/// Computes the Gini coefficient Σ_i Σ_k |y_i − y_k| / (2 n² ȳ).
///
/// With the shares in ascending order it is Σ_i (2i − n − 1) y_i / (n Σy), with i from 1. Range: 0 (all equal) to 1 − 1/n. Returns `None`
/// without users, and if all shares are 0 (0/0). Cost: O(n log n). Source: Gini 1912; the sorted form: Sen, On Economic Inequality, 1973.
pub fn gini(shares: &[f64]) -> Option<f64> {
    let largest = positive_max(shares)?;
    let mut sorted: Vec<f64> = shares.iter().map(|y| y / largest).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let ranked: f64 = sorted.iter().enumerate().map(|(i, y)| (2.0 * i as f64 + 1.0 - n) * y).sum();
    Some((ranked / (n * sorted.iter().sum::<f64>())).max(0.0))
}

/// Computes the dominant-share gap max y − min y.
///
/// Range: 0 (all equal) upwards, in units of the share. Returns `None` without users. Cost: O(n).
pub fn gap(shares: &[f64]) -> Option<f64> {
    let (min, max) = extremes(shares)?;
    Some(max - min)
}

/// Computes min y / max y.
///
/// Range: 0 (some user has nothing) to 1 (all equal). Returns `None` without users, and if all shares are 0 (0/0). Cost: O(n).
pub fn ratio(shares: &[f64]) -> Option<f64> {
    let (min, max) = extremes(shares)?;
    (max > 0.0).then(|| min / max)
}

fn extremes(shares: &[f64]) -> Option<(f64, f64)> {
    debug_assert!(shares.iter().all(|y| y.is_finite() && *y >= 0.0), "shares are finite and not negative");
    let first = *shares.first()?;
    Some(shares.iter().fold((first, first), |(min, max), &y| (min.min(y), max.max(y))))
}

fn positive_max(shares: &[f64]) -> Option<f64> {
    extremes(shares).map(|(_, max)| max).filter(|&max| max > 0.0)
}

/// The integer share of the whole cluster at weight 1.
pub const WHOLE: u64 = 1 << 32;

/// The largest integer share, which is 65,536 clusters (with a small weight, a share may exceed 1). The squares of fewer than 2^32 such
/// shares still fit 128 bits.
pub const SHARE_MAX: u64 = 1 << 48;

/// Converts a weighted dominant share (1 = the whole cluster at weight 1) to an integer share.
///
/// Rounds to the nearest multiple of 2^-32, so the error is at most 2^-33 of a cluster. Shares above [`SHARE_MAX`] become [`SHARE_MAX`].
pub fn fixed_share(share: f64) -> u64 {
    nearest(share * WHOLE as f64).min(SHARE_MAX)
}

/// Rounds to the nearest integer, with halves rounded up, as `f64::round` does for positive numbers. Needs no call of the C library.
/// Negative numbers and NaN become 0; large numbers saturate.
pub(crate) fn nearest(number: f64) -> u64 {
    let below = number as u64;
    below.saturating_add(u64::from(number - below as f64 >= 0.5))
}

/// The Jain index of a changing set of users, exact in integer shares, O(1) per change.
///
/// Sums are integers, so the order of changes does not matter. A share below 2^-33 of the cluster counts as 0. Units: [`fixed_share`], each
/// at most [`SHARE_MAX`]. A caller removes only values that it added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JainSum {
    users: u64,
    sum: u128,
    squares: u128,
}

impl JainSum {
    /// Adds a user with this share.
    pub fn add(&mut self, share: u64) {
        debug_assert!(share <= SHARE_MAX, "an integer share is at most SHARE_MAX");
        self.users += 1;
        self.sum += u128::from(share);
        self.squares += u128::from(share) * u128::from(share);
    }

    /// Removes a user with this share.
    pub fn remove(&mut self, share: u64) {
        debug_assert!(self.users > 0 && self.sum >= u128::from(share), "a removed share was added before");
        self.users -= 1;
        self.sum -= u128::from(share);
        self.squares -= u128::from(share) * u128::from(share);
    }

    /// Returns the number of users.
    pub fn users(&self) -> u64 {
        self.users
    }

    /// Returns the current Jain index; `None` as in [`jain`].
    pub fn jain(&self) -> Option<f64> {
        let sum = self.sum as f64;
        (self.squares > 0).then(|| (sum * sum / (self.users as f64 * self.squares as f64)).min(1.0))
    }
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        float(
            "jain_backlogged",
            "Jain index of weighted dominant shares of the users backlogged under this policy, exactly time-weighted over the time with any",
            |run| (run.totals.jain_time > 0).then(|| run.totals.jain_us / run.totals.jain_time as f64),
        )
        .unit(Unit::Index)
        .higher()
        .words(JAIN),
        mean("gini_backlogged", "Gini coefficient of the same, mean over the grid", |at| at.gini)
            .unit(Unit::Index)
            .lower(),
        mean(
            "share_gap_backlogged",
            "largest minus smallest weighted dominant share of the users backlogged under this policy, mean over the grid",
            |at| at.gap,
        )
        .unit(Unit::Share)
        .lower()
        .words(GAP),
        mean("share_ratio_backlogged", "smallest over largest of the same, mean over the grid", |at| at.ratio)
        .unit(Unit::Index)
        .higher(),
    ],
    fairness: &[
        At::float(
            "jain_backlogged",
            "Jain index of weighted dominant shares of the users backlogged under this policy",
            |point| jain(&point.sample.backlogged),
        )
        .unit(Unit::Index)
        .higher()
        .words(JAIN),
        At::float("gini_backlogged", "Gini coefficient of the same", |point| point.sample.gini)
            .unit(Unit::Index)
            .lower(),
        At::share("share_gap_backlogged", "largest minus smallest of the same", |point| point.sample.gap)
            .lower()
            .words(GAP),
        At::float("share_ratio_backlogged", "smallest over largest of the same", |point| point.sample.ratio)
        .unit(Unit::Index)
        .higher(),
    ],
};

const JAIN: &str = "Jain index (backlogged users)";
const GAP: &str = "Share gap (backlogged users)";

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn near(a: Option<f64>, b: f64) {
        assert!(a.is_some_and(|a| (a - b).abs() < 1e-12), "{a:?} is not {b}");
    }

    #[test]
    fn hand_computed_values() {
        let shares = [0.1, 0.2, 0.3, 0.4];
        near(jain(&shares), 1.0 / (4.0 * 0.30));
        near(gini(&shares), 0.25);
        near(gap(&shares), 0.3);
        near(ratio(&shares), 0.25);
        // If one user has everything, each index is at the unfair end of its range.
        let unfair = [0.0, 0.0, 0.7, 0.0];
        near(jain(&unfair), 0.25);
        near(gini(&unfair), 0.75);
        near(gap(&unfair), 0.7);
        near(ratio(&unfair), 0.0);
    }

    #[test]
    fn equal_shares_are_fair_at_any_scale() {
        for share in [1e-200, 0.1, 1.0, 3.7, 1e200] {
            for n in [1, 2, 3, 7] {
                let shares = vec![share; n];
                near(jain(&shares), 1.0);
                near(gini(&shares), 0.0);
                assert_eq!(gap(&shares), Some(0.0));
                assert_eq!(ratio(&shares), Some(1.0));
            }
        }
    }

    #[test]
    fn nobody_and_nothing_have_no_index() {
        for shares in [&[][..], &[0.0], &[0.0, 0.0]] {
            assert_eq!((jain(shares), gini(shares), ratio(shares)), (None, None, None));
        }
        assert_eq!(gap(&[]), None);
        assert_eq!(gap(&[0.0, 0.0]), Some(0.0));
    }

    #[test]
    fn gini_equals_its_double_sum() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..300 {
            let n = rng.random_range(1..20);
            let mut shares: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(0..6u32)) / 8.0).collect();
            shares[0] += 0.01;
            let pairs: f64 = shares.iter().flat_map(|a| shares.iter().map(move |b| (a - b).abs())).sum();
            near(gini(&shares), pairs / (2.0 * n as f64 * shares.iter().sum::<f64>()));
        }
    }

    #[test]
    fn the_running_jain_index_equals_the_one_from_scratch() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let (mut running, mut shares) = (JainSum::default(), Vec::<f64>::new());
        for step in 0..5000 {
            let share = if rng.random_range(0..4) == 0 { 0.0 } else { rng.random_range(0.0..2.0) };
            match rng.random_range(0..5) {
                0 | 1 => {
                    running.add(fixed_share(share));
                    shares.push(share);
                }
                2 if !shares.is_empty() => {
                    let gone = shares.swap_remove(rng.random_range(0..shares.len()));
                    running.remove(fixed_share(gone));
                }
                _ if !shares.is_empty() => {
                    let at = rng.random_range(0..shares.len());
                    running.remove(fixed_share(shares[at]));
                    running.add(fixed_share(share));
                    shares[at] = share;
                }
                _ => {}
            }
            assert_eq!(running.users(), shares.len() as u64);
            let rounded: Vec<f64> = shares.iter().map(|&s| fixed_share(s) as f64).collect();
            match jain(&rounded) {
                Some(index) => near(running.jain(), index),
                None => assert_eq!(running.jain(), None, "step {step}"),
            }
            if let (Some(exact), Some(index)) = (jain(&shares), running.jain()) {
                assert!((exact - index).abs() < 1e-6, "step {step}: {exact} {index}");
            }
        }
    }

    #[test]
    fn nearest_integers_are_those_of_round() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let special =
            [0.0, -0.0, -0.7, 0.5, 0.499_999_999_999_999_94, 1.5, 2.5, 1e16, 1e19, 1e300, f64::INFINITY, f64::NAN];
        let half = |rng: &mut ChaCha8Rng| (rng.random::<u64>() >> rng.random_range(12..64)) as f64 + 0.5;
        let any = |rng: &mut ChaCha8Rng| f64::from_bits(rng.random());
        let random: Vec<f64> = (0..100_000).flat_map(|_| [half(&mut rng), any(&mut rng)]).collect();
        for number in special.into_iter().chain(random) {
            assert_eq!(nearest(number), number.round() as u64, "{number}");
        }
    }

    #[test]
    fn integer_shares_round_to_the_nearest_and_stay_in_range() {
        assert_eq!(fixed_share(1.0), WHOLE);
        assert_eq!(fixed_share(0.5), WHOLE / 2);
        assert_eq!(fixed_share(1.4 / WHOLE as f64), 1);
        assert_eq!(fixed_share(1.6 / WHOLE as f64), 2);
        assert_eq!(fixed_share(1e12), SHARE_MAX);
        let mut most = JainSum::default();
        (0..1000).for_each(|_| most.add(SHARE_MAX));
        assert_eq!(most.jain(), Some(1.0));
        (0..1000).for_each(|_| most.remove(SHARE_MAX));
        assert_eq!(most, JainSum::default());
    }
}
