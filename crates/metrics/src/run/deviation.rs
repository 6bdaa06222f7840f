//! The deviation of dominant shares from the shares with divisible tasks.
//!
//! The fluid reference is weighted DRF over the active users. Each user has the mean demand and the number of its running and waiting
//! tasks. A user's fluid share is the dominant share of its bundle in this reference.
//!
//! The columns also test theorem 7: with whole tasks, the dominant shares of two users with unfinished work differ by at most one maximal
//! task, if each machine is larger than that task and machines are filled one after another. Runs with other placement may violate the
//! theorem, and policies with other goals do violate it. Source: Ghodsi et al., NSDI 2011, §4.2 and theorem 7 (indivisible tasks), §4.3
//! (weights).

use super::{At, Metrics, mean};
use crate::snapshot::TOLERANCE;
use plimsoll_base::column::Unit;

/// The distances of dominant shares from their fluid counterparts.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Deviation {
    /// The largest distance.
    pub max: f64,
    /// The mean distance over the users.
    pub mean: f64,
}

impl Deviation {
    /// Compares shares with their fluid counterparts. Returns `None` without users.
    pub fn from_shares(shares: &[f64], fluid: &[f64]) -> Option<Deviation> {
        let distances = || shares.iter().zip(fluid).map(|(share, fluid)| (share - fluid).abs());
        let max = distances().reduce(f64::max)?;
        Some(Deviation { max, mean: distances().sum::<f64>() / shares.len() as f64 })
    }
}

/// Returns whether the weighted dominant shares of two backlogged users differ by more than the largest of their tasks.
///
/// `gap` is the largest difference among `users` users, and `task` the weighted dominant share of the largest task. The result is `None`
/// for fewer than two users, or if `gap` or `task` is missing.
pub fn theorem7_broken(gap: Option<f64>, users: usize, task: Option<f64>) -> Option<bool> {
    let (gap, task) = gap.zip(task).filter(|_| users > 1)?;
    Some(gap > task * (1.0 + TOLERANCE) + TOLERANCE)
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        mean(
            "deviation_mean",
            "distance of an active user's dominant share from the one under weighted DRF with divisible tasks, mean over users and over the grid while tasks wait",
            |at| Some(at.deviation?.mean),
        )
        .unit(Unit::Share)
        .lower(),
        mean("deviation_max", "the largest of these distances, mean over the grid while tasks wait", |at| {
            Some(at.deviation?.max)
        })
        .unit(Unit::Share)
        .lower(),
        mean(
            "theorem7_broken",
            "share of grid points with two or more backlogged users at which two of their weighted dominant shares differ by more than the largest of their tasks",
            |at| Some(f64::from(u8::from(at.theorem7_broken?))),
        )
        .unit(Unit::Share)
        .lower(),
    ],
    fairness: &[
        At::share(
            "deviation_mean",
            "distance of an active user's dominant share from the one under weighted DRF with divisible tasks: the mean",
            |point| Some(point.sample.deviation?.mean),
        )
        .lower(),
        At::share("deviation_max", "the largest of these distances", |point| Some(point.sample.deviation?.max)).lower(),
        At::share(
            "task_max",
            "largest task of a backlogged user (launched since it became active, or next), as a weighted dominant share",
            |point| point.sample.task,
        ),
        At::int(
            "theorem7_broken",
            "1 if weighted dominant shares of two backlogged users differ by more than task_max; null for fewer than two",
            |point| Some(u64::from(point.sample.theorem7_broken?)),
        )
        .lower(),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f64], wanted: &[f64]) {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} is not {wanted:?}");
    }

    #[test]
    fn deviations_are_distances() {
        let deviation = Deviation::from_shares(&[0.5, 0.2, 0.0], &[0.6, 0.2, 0.3]).expect("users");
        near(&[deviation.max, deviation.mean], &[0.3, 0.4 / 3.0]);
        assert_eq!(Deviation::from_shares(&[], &[]), None);
    }

    #[test]
    fn theorem_7_allows_one_task_of_difference() {
        assert_eq!(theorem7_broken(Some(1.0 / 9.0), 2, Some(3.0 / 9.0)), Some(false));
        assert_eq!(theorem7_broken(Some(0.3 - 0.1), 3, Some(0.2)), Some(false), "exactly one task");
        assert_eq!(theorem7_broken(Some(0.301 - 0.1), 3, Some(0.2)), Some(true));
        assert_eq!((theorem7_broken(Some(0.0), 1, Some(0.1)), theorem7_broken(None, 0, None)), (None, None));
    }
}
