//! Sharing incentive: compares each user's bundle with its own part of the cluster.
//!
//! The part of user i is w_ij / Σ_k w_kj of each resource j, where the sum is over all active users k. Sharing benefits the user at an
//! instant if its bundle runs at least as many of its tasks as its part would, where both numbers are at most the number of its tasks.
//! Tasks are counted as in the property check ([`Wants`](plimsoll_fair::Wants)), with divisible tasks. A user that runs 2 tasks therefore
//! counts as below its part if the part would run 2.7 tasks. Only backlogged users are evaluated. Source: Ghodsi et al., NSDI 2011, §3
//! (sharing incentive).

use super::{At, Metrics, mean};
use crate::snapshot::{TOLERANCE, UserSnapshot};
use plimsoll_base::column::{Topic, Unit};
use plimsoll_base::units::MAX_DIMS;

/// The comparison of one backlogged user with its part of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PartComparison {
    /// The tasks that its bundle runs over the tasks that its part would run. It is at least 0, and 1 if both are equal.
    pub ratio: f64,
    /// The dominant share of the tasks that its part would run in addition to those of its bundle, as a part of the cluster. If
    /// the user has one weight for all resources, and more tasks than its part would run, it is max(0, part − dominant share).
    pub shortfall: f64,
}

/// Compares each of `users`, which must be all active users, with its part of the cluster, in the given order.
///
/// The comparison is `None` for a user that is not backlogged or has no demand. Cost: O(n · dims).
pub fn standings<'a>(
    users: impl Iterator<Item = UserSnapshot<'a>> + Clone,
) -> impl Iterator<Item = Option<PartComparison>> {
    let mut all = [0.0; MAX_DIMS];
    for user in users.clone() {
        all.iter_mut().zip(user.weight).for_each(|(sum, weight)| *sum += weight);
    }
    let standing = move |user: &UserSnapshot| {
        let (own, wants) = (user.own()?, user.wants());
        let part = wants.runs(|r| wants.part(r, &1.0, &all[r]))?;
        let task = wants.demand.iter().copied().fold(0.0, f64::max);
        Some(PartComparison { ratio: own / part, shortfall: (part - own).max(0.0) * task })
    };
    users.map(move |user| if user.backlogged { standing(&user) } else { None })
}

/// The sharing incentive over all evaluated users at one instant.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Incentive {
    /// The smallest ratio.
    pub min_ratio: f64,
    /// The number of users with a ratio more than `TOLERANCE` below 1.
    pub below: usize,
    /// The number of evaluated users.
    pub users: usize,
    /// The largest shortfall, as a fraction of the cluster.
    pub max_shortfall: f64,
    /// The sum of all shortfalls, as a fraction of the cluster.
    pub total_shortfall: f64,
}

impl Incentive {
    /// Summarises the comparisons of [`standings`]. Returns `None` if no user was evaluated.
    pub fn from_standings(standings: &[Option<PartComparison>]) -> Option<Incentive> {
        let nobody =
            Incentive { min_ratio: f64::INFINITY, below: 0, users: 0, max_shortfall: 0.0, total_shortfall: 0.0 };
        let all = standings.iter().flatten().fold(nobody, |sums, one| Incentive {
            min_ratio: sums.min_ratio.min(one.ratio),
            below: sums.below + usize::from(one.ratio < 1.0 - TOLERANCE),
            users: sums.users + 1,
            max_shortfall: sums.max_shortfall.max(one.shortfall),
            total_shortfall: sums.total_shortfall + one.shortfall,
        });
        (all.users > 0).then_some(all)
    }
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        mean(
            "incentive_min",
            "number of tasks that a backlogged user's bundle runs over the number that its 1/n of the cluster would, at most all it has: the minimum over users; mean over the grid",
            |at| Some(at.incentive?.min_ratio),
        )
        .higher(),
        mean(
            "incentive_below",
            "share of backlogged users worse off than on their 1/n cluster, mean over the grid",
            |at| Some(at.incentive?.below as f64 / at.backlogged.len() as f64),
        )
        .unit(Unit::Share)
        .lower()
        .words(BELOW)
        .headline(Topic::Sharing, "below 1/n"),
    ],
    fairness: &[
        At::float(
            "incentive_min",
            "number of tasks that a backlogged user's bundle runs over the number that its 1/n of the cluster would: the minimum over users",
            |point| Some(point.sample.incentive?.min_ratio),
        )
        .higher(),
        At::int("incentive_below", "users worse off than on their 1/n cluster", |point| {
            Some(point.sample.incentive?.below as u64)
        })
        .lower()
        .words(BELOW),
    ],
};

const BELOW: &str = "Users below 1/n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a user with more tasks than any bundle of these tests could run.
    fn user<'a>(bundle: &'a [f64; 2], demand: &'a [f64; 2], weight: &'a [f64; 2]) -> UserSnapshot<'a> {
        UserSnapshot { bundle, demand, weight, tasks: 1e9, backlogged: true }
    }

    fn standings(users: &[UserSnapshot]) -> Vec<Option<PartComparison>> {
        super::standings(users.iter().copied()).collect()
    }

    /// Under first come, first served, one user runs 4 of its 5 tasks, and the other runs 20 of 100. Half of the cluster would run 12
    /// tasks.
    #[test]
    fn a_part_is_worth_no_more_tasks_than_there_are() {
        let few = UserSnapshot { tasks: 5.0, ..user(&[4.0 / 24.0, 0.0], &[1.0 / 24.0, 0.0], &[1.0, 1.0]) };
        let many = UserSnapshot { tasks: 100.0, ..user(&[20.0 / 24.0, 0.0], &[1.0 / 24.0, 0.0], &[1.0, 1.0]) };
        let each = standings(&[few, many]);
        let standing = each[0].unwrap();
        assert!((standing.ratio - 0.8).abs() < 1e-12 && (standing.shortfall - 1.0 / 24.0).abs() < 1e-12);
        assert!((each[1].unwrap().ratio - 20.0 / 12.0).abs() < 1e-12);
    }

    #[test]
    fn the_drf_example_beats_halving_the_cluster() {
        // Ghodsi et al., §4.1: half the cluster runs 2.25 tasks of A and 1.5 of B.
        let a = user(&[3.0 / 9.0, 12.0 / 18.0], &[1.0 / 9.0, 4.0 / 18.0], &[1.0, 1.0]);
        let b = user(&[6.0 / 9.0, 2.0 / 18.0], &[3.0 / 9.0, 1.0 / 18.0], &[1.0, 1.0]);
        let each = standings(&[a, b]);
        assert!((each[0].unwrap().ratio - 3.0 / 2.25).abs() < 1e-12);
        assert!((each[1].unwrap().ratio - 2.0 / 1.5).abs() < 1e-12);
        let all = Incentive::from_standings(&each).unwrap();
        assert_eq!((all.below, all.users, all.max_shortfall, all.total_shortfall), (0, 2, 0.0, 0.0));
    }

    #[test]
    fn a_user_below_its_entitlement_counts_with_its_shortfall() {
        let rich = user(&[0.6, 0.1], &[0.06, 0.01], &[1.0, 1.0]);
        let poor = user(&[0.1, 0.2], &[0.01, 0.02], &[3.0, 3.0]);
        let each = standings(&[rich, poor]);
        // The user is entitled to 0.75 of the cluster, which would run 37.5 of its tasks, limited by the second resource. It runs 10
        // tasks, and its dominant share is 0.2.
        let standing = each[1].unwrap();
        assert!((standing.ratio - 10.0 / 37.5).abs() < 1e-12);
        assert!((standing.shortfall - 0.55).abs() < 1e-12);
        let all = Incentive::from_standings(&each).unwrap();
        assert_eq!((all.below, all.users), (1, 2));
        assert_eq!((all.min_ratio, all.max_shortfall), (standing.ratio, standing.shortfall));
    }

    #[test]
    fn exactly_entitled_users_are_not_below() {
        for n in 1..50 {
            let share = 1.0 / f64::from(n);
            let (bundle, demand) = ([share, share / 3.0], [share / 7.0, share / 21.0]);
            let users = vec![user(&bundle, &demand, &[0.3, 0.3]); n as usize];
            let all = Incentive::from_standings(&standings(&users)).unwrap();
            assert_eq!(all.below, 0, "{n} users");
            assert!((all.min_ratio - 1.0).abs() < TOLERANCE && all.max_shortfall < TOLERANCE);
        }
    }

    #[test]
    fn a_weight_of_a_resource_that_is_not_needed_plays_no_part() {
        let only_first = user(&[0.1, 0.0], &[0.01, 0.0], &[1.0, 0.001]);
        let other = user(&[0.0, 0.9], &[0.0, 0.01], &[1.0, 1.0]);
        let standing = standings(&[only_first, other])[0].unwrap();
        assert!((standing.shortfall - 0.4).abs() < 1e-12);
        assert!((standing.ratio - 0.2).abs() < 1e-12);
    }

    #[test]
    fn who_does_not_wait_or_needs_nothing_is_not_judged_but_entitled() {
        let waiting = user(&[0.5, 0.5], &[0.1, 0.1], &[1.0, 1.0]);
        let content = UserSnapshot { backlogged: false, ..waiting };
        let needless = user(&[0.0, 0.0], &[0.0, 0.0], &[1.0, 1.0]);
        let each = standings(&[waiting, content, needless]);
        assert!((each[0].unwrap().ratio - 1.5).abs() < 1e-12);
        assert_eq!(each[1..], [None, None]);
        assert_eq!(Incentive::from_standings(&each[1..]), None);
        assert_eq!(Incentive::from_standings(&standings(&[])), None);
    }
}
