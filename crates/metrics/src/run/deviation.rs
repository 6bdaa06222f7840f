//! How far dominant shares are from those that users would have if tasks were divisible.
//!
//! The fluid reference is weighted DRF over the active users: each has the mean demand of its running and waiting tasks
//! and no more tasks than those, and a user's fluid share is the dominant share of the bundle that it would hold. And
//! theorem 7: whole tasks cost no pair of users with work left more than one maximal task of difference, where machines
//! are each larger than that and are filled one after another; engines that place otherwise may break it, and policies
//! that aim at something else will.
//! Source: Ghodsi et al., NSDI 2011, §4.2 and theorem 7 (indivisible tasks), §4.3 (weights).

use super::{At, Metrics, mean};
use crate::snapshot::TOLERANCE;
use plimsoll_base::column::Unit;
use plimsoll_base::error::Result;
use plimsoll_base::units::MAX_DIMS;
use plimsoll_fair::{Levels, Problem};

/// The demand of an active user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// The mean demand of its tasks, as fractions of the cluster's capacity.
    pub demand: [f64; MAX_DIMS],
    /// Its weight per resource (above 0).
    pub weight: [f64; MAX_DIMS],
    /// How many tasks it runs and waits for.
    pub tasks: f64,
}

/// Computes each user's dominant share (unweighted) under weighted DRF with divisible tasks.
///
/// A user that needs nothing has 0. `levels` brings its memory only. Errors:
/// [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
pub fn fluid_shares(levels: &mut Levels, users: &[Wish], dims: usize) -> Result<Vec<f64>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let largest =
        |wish: &Wish, weight: &[f64; MAX_DIMS]| (0..dims).map(|d| wish.demand[d] / weight[d]).fold(0.0, f64::max);
    // A weight a resource makes other rates, and no other problem.
    let rate = |wish: &Wish| match largest(wish, &wish.weight) {
        0.0 => 0.0,
        step => 1.0 / step,
    };
    let demand = (0..dims).flat_map(|d| users.iter().map(move |wish| wish.demand[d])).collect();
    let tasks = users.iter().map(|wish| wish.tasks).collect();
    let rates: Vec<f64> = users.iter().map(rate).collect();
    levels.fill(&Problem::new(dims, demand, vec![1.0; users.len()], tasks), &rates)?;
    Ok(users.iter().zip(levels.tasks()).map(|(wish, tasks)| tasks * largest(wish, &[1.0; MAX_DIMS])).collect())
}

/// Distances of dominant shares from their fluid counterparts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// The largest.
    pub max: f64,
    /// The mean over the users.
    pub mean: f64,
}

impl Deviation {
    /// Compares shares with their fluid counterparts; `None` without users.
    pub fn of(shares: &[f64], fluid: &[f64]) -> Option<Deviation> {
        let distances = || shares.iter().zip(fluid).map(|(share, fluid)| (share - fluid).abs());
        let max = distances().reduce(f64::max)?;
        Some(Deviation { max, mean: distances().sum::<f64>() / shares.len() as f64 })
    }
}

/// Whether two of the backlogged users' weighted dominant shares differ by more than the largest of their tasks.
///
/// `tasks` are the weighted dominant shares of the largest task of each; `None` for fewer than two users.
pub fn theorem7_broken(shares: &[f64], tasks: &[f64]) -> Option<bool> {
    let gap = super::fairness::gap(shares).filter(|_| shares.len() > 1)?;
    let task = tasks.iter().copied().fold(0.0, f64::max);
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
            |at| theorem7_broken(&at.backlogged, &at.tasks).map(|broken| f64::from(u8::from(broken))),
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
            |point| point.sample.tasks.iter().copied().reduce(f64::max),
        ),
        At::int(
            "theorem7_broken",
            "1 if weighted dominant shares of two backlogged users differ by more than task_max; null for fewer than two",
            |point| theorem7_broken(&point.sample.backlogged, &point.sample.tasks).map(u64::from),
        )
        .lower(),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(demand: [f64; 2], weight: f64, tasks: f64) -> Wish {
        let mut wish = Wish { demand: [0.0; MAX_DIMS], weight: [weight; MAX_DIMS], tasks };
        wish.demand[..2].copy_from_slice(&demand);
        wish
    }

    fn fluid(users: &[Wish]) -> Vec<f64> {
        fluid_shares(&mut Levels::new(), users, 2).expect("a filling ends")
    }

    fn near(found: &[f64], wanted: &[f64]) {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} is not {wanted:?}");
    }

    /// Ghodsi et al., §4.1: shares of 2/3 each; with weight 2, A fills the memory first.
    #[test]
    fn fluid_shares_are_those_of_drf() {
        let (a, b) = ([1.0 / 9.0, 4.0 / 18.0], [3.0 / 9.0, 1.0 / 18.0]);
        near(&fluid(&[wish(a, 1.0, 100.0), wish(b, 1.0, 100.0)]), &[2.0 / 3.0, 2.0 / 3.0]);
        // A's CPU share is half its memory share 2s, B's is s: 2s/2 + s = 1, and memory 2s + s/6 = 13/12 is too much.
        near(&fluid(&[wish(a, 2.0, 100.0), wish(b, 1.0, 100.0)]), &[12.0 / 13.0, 6.0 / 13.0]);
        // B has one task: A takes what memory is left, 17/18.
        near(&fluid(&[wish(a, 1.0, 100.0), wish(b, 1.0, 1.0)]), &[17.0 / 18.0, 1.0 / 3.0]);
        near(&fluid(&[wish([0.0; 2], 1.0, 5.0), wish(b, 1.0, 1.0)]), &[0.0, 1.0 / 3.0]);
        assert!(fluid(&[]).is_empty());
    }

    #[test]
    fn deviations_are_distances() {
        let deviation = Deviation::of(&[0.5, 0.2, 0.0], &[0.6, 0.2, 0.3]).expect("users");
        near(&[deviation.max, deviation.mean], &[0.3, 0.4 / 3.0]);
        assert_eq!(Deviation::of(&[], &[]), None);
    }

    #[test]
    fn theorem_7_allows_one_task_of_difference() {
        assert_eq!(theorem7_broken(&[2.0 / 9.0, 3.0 / 9.0], &[2.0 / 9.0, 3.0 / 9.0]), Some(false));
        assert_eq!(theorem7_broken(&[0.1, 0.3, 0.2], &[0.1, 0.2, 0.1]), Some(false), "exactly one task");
        assert_eq!(theorem7_broken(&[0.1, 0.301, 0.2], &[0.1, 0.2, 0.1]), Some(true));
        assert_eq!((theorem7_broken(&[0.5], &[0.1]), theorem7_broken(&[], &[])), (None, None));
    }
}
