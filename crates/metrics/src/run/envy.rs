//! Envy: users that could run more of their tasks with another user's bundle.
//!
//! The envy of user i is the relative increase of the number of its tasks if, instead of its own bundle, it had the bundle of another user
//! k, with each resource j multiplied by w_ij / w_kj: max(0, v_i(scaled b_k) / v_i(b_i) − 1). v_i is the number of tasks that user i could
//! run with a bundle, at most the number of its tasks. Tasks are counted as in the property check ([`Wants`](plimsoll_fair::Wants)). v
//! never falls when a bundle grows. So the largest envy is always directed at a bundle that is Pareto-maximal per unit of weight (the
//! skyline), and only these bundles are compared. Only backlogged users can envy; any user with an allocation can be envied.
//!
//! The envy of a user that can run no task with its own bundle, but some with another bundle, is unbounded. It is counted in
//! [`Envy::unbounded`] and in [`Envy::count`], but not in [`Envy::max_bounded`]. Source: Ghodsi et al., NSDI 2011, §3 (envy-freeness); the
//! scaling by weights extends it to weighted users.

use std::cmp::Ordering;

use super::{At, Metrics, mean};
use crate::snapshot::{TOLERANCE, UserSnapshot};
use plimsoll_base::column::Topic;
use plimsoll_base::units::MAX_DIMS;

/// The envy at one instant.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Envy {
    /// The largest envy among users with bounded envy, at least 0 (0.5 means half as many tasks again). It is 0 if it is within
    /// `TOLERANCE`. `None` if no backlogged user can run any task with its own bundle.
    pub max_bounded: Option<f64>,
    /// The number of users that envy another user by more than `TOLERANCE`.
    pub count: usize,
    /// The number of these users with unbounded envy: their own bundle runs no task, but another bundle would.
    pub unbounded: usize,
    /// The number of evaluated users: backlogged users with a demand above 0.
    pub users: usize,
}

/// Computes the envy among `users`.
///
/// Returns `None` if no user is backlogged. Cost: O(n · skyline · dims), plus O(s log s) for the s users with a bundle that the largest
/// bundle does not contain.
pub fn envy<'a>(users: impl Iterator<Item = UserSnapshot<'a>> + Clone) -> Option<Envy> {
    let skyline = skyline(users.clone().map(|user| per_weight(&user)));
    let mut result = Envy { max_bounded: None, count: 0, unbounded: 0, users: 0 };
    for user in users.filter(|user| user.backlogged) {
        let Some(own) = user.own() else { continue };
        let wants = user.wants();
        let mut best = own;
        for bundle in &skyline {
            // No user runs more tasks than it has.
            if best >= user.tasks {
                break;
            }
            best = wants.runs(|r| wants.scaled(r, &bundle[r], &1.0)).map_or(best, |runs| best.max(runs));
        }
        result.users += 1;
        if own == 0.0 {
            // If the user's own bundle runs no task, the envy is 0 or unbounded.
            result.unbounded += usize::from(best > 0.0);
            result.count += usize::from(best > 0.0);
            continue;
        }
        let relative = best / own - 1.0;
        result.count += usize::from(relative > TOLERANCE);
        let relative = if relative > TOLERANCE { relative } else { 0.0 };
        result.max_bounded = Some(result.max_bounded.map_or(relative, |max| max.max(relative)));
    }
    (result.users > 0).then_some(result)
}

/// The amount of each resource, padded with zeros.
type Bundle = [f64; MAX_DIMS];

/// Returns a user's bundle per unit of weight, and the sum of its amounts.
fn per_weight(user: &UserSnapshot) -> (f64, Bundle) {
    debug_assert!(user.weight.iter().all(|&w| w > 0.0), "weights are above 0");
    let (mut sum, mut bundle) = (0.0, [0.0; MAX_DIMS]);
    for (part, (held, weight)) in bundle.iter_mut().zip(user.bundle.iter().zip(user.weight)) {
        *part = held / weight;
        sum += *part;
    }
    (sum, bundle)
}

/// Orders bundles by descending sum; of equal sums the lexicographically larger bundle is first.
fn by_sum((a_sum, a): &(f64, Bundle), (b_sum, b): &(f64, Bundle)) -> Ordering {
    let lexicographic = || b.iter().zip(a).map(|(b, a)| b.total_cmp(a)).find(|order| order.is_ne());
    b_sum.total_cmp(a_sum).then_with(|| lexicographic().unwrap_or(Ordering::Equal))
}

/// Returns whether a bundle has at least the amount of another one in every resource.
fn contains(bundle: &Bundle, other: &Bundle) -> bool {
    bundle.iter().zip(other).all(|(held, other)| held >= other)
}

/// Returns the bundles that are not contained in another one, and one bundle of each set of equal bundles. The input has each bundle with
/// its sum.
///
/// In order of descending sum, a bundle follows all bundles that contain it, so each bundle is compared only with the bundles selected
/// before it. Most bundles are contained in the first bundle, and need not be sorted.
fn skyline(bundles: impl Iterator<Item = (f64, Bundle)> + Clone) -> Vec<Bundle> {
    let Some(first) = bundles.clone().min_by(by_sum) else { return Vec::new() };
    let mut others: Vec<(f64, Bundle)> = bundles.filter(|(_, bundle)| !contains(&first.1, bundle)).collect();
    others.sort_unstable_by(by_sum);
    let mut kept = vec![first.1];
    for (_, bundle) in others {
        if !kept.iter().any(|other| contains(other, &bundle)) {
            kept.push(bundle);
        }
    }
    kept
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        mean(
            "envy_max",
            "largest envy of a backlogged user that can run something: how many more of its tasks, relatively, it could run with another's bundle; mean over the grid points with such a user, null without any",
            |at| at.envy?.max_bounded,
        )
        .lower(),
        mean("envy_count", "backlogged users that envy another user, mean over the grid", |at| Some(at.envy?.count as f64))
            .lower()
            .words(COUNT)
            .headline(Topic::Sharing, "envy"),
        mean(
            "envy_unbounded",
            "envious users that could run no task on their allocation, so that their envy is unbounded and not in envy_max; mean over the grid",
            |at| Some(at.envy?.unbounded as f64),
        )
        .lower(),
    ],
    fairness: &[
        At::float("envy_max", "largest envy of a backlogged user that can run something; null without one", |point| {
            point.sample.envy?.max_bounded
        })
        .lower(),
        At::int("envy_count", "backlogged users that envy another user", |point| Some(point.sample.envy?.count as u64))
            .lower()
            .words(COUNT),
        At::int(
            "envy_unbounded",
            "envious users that could run no task on their allocation: not in envy_max",
            |point| Some(point.sample.envy?.unbounded as u64),
        )
        .lower(),
    ],
};

const COUNT: &str = "Users that envy";

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns a user with more tasks than any bundle of these tests could run.
    fn user<'a>(bundle: &'a [f64], demand: &'a [f64], weight: &'a [f64]) -> UserSnapshot<'a> {
        UserSnapshot { bundle, demand, weight, tasks: 1e9, backlogged: true }
    }

    fn envy(users: &[UserSnapshot]) -> Option<Envy> {
        super::envy(users.iter().copied())
    }

    /// Returns the number of tasks that a user runs with a bundle, by the literal formula.
    fn value(user: &UserSnapshot, bundle: &[f64]) -> Option<f64> {
        let needed = (0..bundle.len()).filter(|&j| user.demand[j] > 0.0);
        needed.map(|j| bundle[j] / user.demand[j]).reduce(f64::min).map(|value| value.min(user.tasks))
    }

    /// Compares every pair of users by the literal formula.
    fn slow(users: &[UserSnapshot]) -> Option<Envy> {
        let mut result = Envy { max_bounded: None, count: 0, unbounded: 0, users: 0 };
        for i in users.iter().filter(|i| i.backlogged) {
            let Some(own) = value(i, i.bundle) else { continue };
            let (mut most, mut unbounded) = (0.0f64, false);
            for k in users {
                let scaled: Vec<f64> = (0..k.bundle.len()).map(|j| k.bundle[j] * i.weight[j] / k.weight[j]).collect();
                let other = value(i, &scaled).unwrap();
                if own > 0.0 {
                    most = most.max(other / own - 1.0);
                }
                unbounded |= own == 0.0 && other > 0.0;
            }
            result.users += 1;
            result.unbounded += usize::from(unbounded);
            result.count += usize::from(unbounded || most > TOLERANCE);
            if own > 0.0 {
                let most = if most > TOLERANCE { most } else { 0.0 };
                result.max_bounded = Some(result.max_bounded.map_or(most, |max| max.max(most)));
            }
        }
        (result.users > 0).then_some(result)
    }

    #[test]
    fn the_drf_example_is_envy_free_until_a_user_loses_tasks() {
        // Ghodsi et al., §4.1: A runs 3 tasks with demand <1/9, 4/18>, B runs 2 tasks with demand <3/9, 1/18>.
        let a = user(&[3.0 / 9.0, 12.0 / 18.0], &[1.0 / 9.0, 4.0 / 18.0], &[1.0, 1.0]);
        let b = user(&[6.0 / 9.0, 2.0 / 18.0], &[3.0 / 9.0, 1.0 / 18.0], &[1.0, 1.0]);
        let fair = envy(&[a, b]).unwrap();
        assert_eq!(fair, Envy { max_bounded: Some(0.0), count: 0, unbounded: 0, users: 2 });
        // B keeps a quarter of its bundle, which runs half a task. With A's bundle, B could run a whole task.
        let b_short = UserSnapshot { bundle: &[b.bundle[0] / 4.0, b.bundle[1] / 4.0], ..b };
        let unfair = envy(&[a, b_short]).unwrap();
        assert!((unfair.max_bounded.unwrap() - 1.0).abs() < 1e-12, "{unfair:?}");
        assert_eq!((unfair.count, unfair.users), (1, 2));
    }

    #[test]
    fn weights_scale_what_is_envied() {
        let (one, double) = (user(&[0.2], &[0.01], &[1.0]), user(&[0.4], &[0.01], &[2.0]));
        assert_eq!(envy(&[one, double]).unwrap().count, 0);
        // The user with the larger weight envies a user with an equal bundle, because it could run twice as many tasks with the scaled
        // bundle.
        let short = user(&[0.2], &[0.01], &[2.0]);
        let result = envy(&[one, short]).unwrap();
        assert!((result.max_bounded.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(result.count, 1);
    }

    #[test]
    fn empty_hands_make_unbounded_envy_and_no_maximum() {
        let (poor, rich) = (user(&[0.0], &[0.01], &[1.0]), user(&[0.5], &[0.01], &[1.0]));
        let result = envy(&[poor, rich]).unwrap();
        assert_eq!(result, Envy { max_bounded: Some(0.0), count: 1, unbounded: 1, users: 2 });
        // No user has an allocation: there is no envy, and no maximum.
        let nothing = envy(&[poor, poor]).unwrap();
        assert_eq!(nothing, Envy { max_bounded: None, count: 0, unbounded: 0, users: 2 });
    }

    /// Under first come, first served, one user runs 4 of its 5 tasks, and the other runs 20 of 100.
    #[test]
    fn nobody_envies_tasks_that_it_does_not_have() {
        let few = UserSnapshot { tasks: 5.0, ..user(&[4.0 / 24.0], &[1.0 / 24.0], &[1.0]) };
        let many = UserSnapshot { tasks: 100.0, ..user(&[20.0 / 24.0], &[1.0 / 24.0], &[1.0]) };
        let result = envy(&[few, many]).unwrap();
        assert!((result.max_bounded.unwrap() - 0.25).abs() < 1e-12, "{result:?}");
        assert_eq!(result.count, 1);
    }

    #[test]
    fn only_backlogged_users_with_a_demand_complain_and_all_are_envied() {
        let poor = user(&[0.1], &[0.01], &[1.0]);
        let rich = UserSnapshot { backlogged: false, ..user(&[0.5], &[0.01], &[1.0]) };
        let result = envy(&[poor, rich]).unwrap();
        assert_eq!((result.count, result.users), (1, 1));
        assert_eq!(envy(&[rich]), None);
        assert_eq!(envy(&[user(&[0.1], &[0.0], &[1.0])]), None);
        assert_eq!(envy(&[]), None);
    }

    #[test]
    fn the_skyline_is_each_bundle_that_no_other_one_reaches_once() {
        let pad = |[a, b]: [f64; 2]| [a, b, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let bundles = [[0.0, 0.0], [1.0, 5.0], [3.0, 3.0], [3.0, 2.0], [1.0, 5.0], [5.0, 0.0], [0.0, 5.0], [3.0, 3.0]];
        let kept = skyline(bundles.map(|[a, b]| (a + b, pad([a, b]))).into_iter());
        assert_eq!(kept, [[3.0, 3.0], [1.0, 5.0], [5.0, 0.0]].map(pad));
    }

    #[test]
    fn the_skyline_finds_what_all_pairs_find() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut seen = [0usize; 3];
        for case in 0..3000 {
            let dims = rng.random_range(1..=4);
            // The amounts have few distinct values, so that ties, zeros and equal bundles are common.
            let mut amounts = |least: u32, most: u32| {
                (0..dims).map(|_| f64::from(rng.random_range(least..=most))).collect::<Vec<_>>()
            };
            let parts: Vec<[Vec<f64>; 3]> = (0..1 + case % 9)
                .map(|_| {
                    let (bundle, weight) = (amounts(0, 4), amounts(1, 3));
                    [bundle, amounts(0, 3).iter().map(|d| d / 7.0).collect(), weight]
                })
                .collect();
            let each = parts.iter().map(|[bundle, demand, weight]| user(bundle, demand, weight));
            let mut users: Vec<UserSnapshot> = each.collect();
            users.iter_mut().for_each(|user| user.backlogged = rng.random_range(0..4) > 0);
            users.iter_mut().for_each(|user| user.tasks = f64::from(rng.random_range(1..40u32)));
            let (fast, slow) = (envy(&users), slow(&users));
            let (Some(fast), Some(slow)) = (fast, slow) else {
                assert_eq!(fast, slow);
                continue;
            };
            assert_eq!((fast.count, fast.unbounded, fast.users), (slow.count, slow.unbounded, slow.users), "{users:?}");
            match (fast.max_bounded, slow.max_bounded) {
                (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-9 * (1.0 + b), "{a} {b} {users:?}"),
                (a, b) => assert_eq!(a, b, "{users:?}"),
            }
            seen[0] += usize::from(slow.count > 0);
            seen[1] += usize::from(slow.unbounded > 0);
            seen[2] += usize::from(slow.count == 0);
        }
        assert!(seen.iter().all(|&cases| cases > 100), "the instances are one-sided: {seen:?}");
    }
}
