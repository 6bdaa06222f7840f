//! Quotas of users: every user is a group of its own and runs the number of tasks that fits into its runtime quotas.

use super::pour::{Bucket, Method, pour};
use crate::{Allocation, Exact, Instance, Limit, Mechanism, Number, Tasks};
use plimsoll_base::error::Result;

/// The allocation of the policy `quota` in a static state, in fractions. Each user is a group directly under the root; its weights are its
/// ratios, and it has neither min nor max.
///
/// A group requests its tasks' demand of each resource; unlimited tasks request the whole capacity of each resource that they need. Each
/// resource is poured independently, and a user runs `min_r quota_r / demand_r` tasks. The part of its other quotas that it cannot use is
/// requested and given, and therefore stays idle. Users that need a resource of capacity 0 request and get nothing. Without a min the
/// variants are equal. Cost: O(resources · users log users).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerUser;

impl Mechanism for PerUser {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let users = instance.users();
        let quotas: Vec<Vec<Exact>> = instance
            .capacity()
            .iter()
            .enumerate()
            .map(|(r, capacity)| {
                let bucket = |user: &crate::User| {
                    let asks = match (instance.lacking(user), &user.tasks) {
                        (Some(_), _) => Exact::ZERO,
                        (None, Some(tasks)) => tasks * &user.demand[r],
                        (None, None) if user.demand[r].is_zero() => Exact::ZERO,
                        (None, None) => capacity.clone(),
                    };
                    Bucket { low: Exact::ZERO, high: asks, ratio: user.weight[r].clone() }
                };
                pour(Method::Sort, capacity, &users.iter().map(bucket).collect::<Vec<_>>()).content
            })
            .collect();
        let (mut tasks, mut limits) = (Vec::with_capacity(users.len()), Vec::with_capacity(users.len()));
        for (i, user) in users.iter().enumerate() {
            let needed = (0..quotas.len()).filter(|&r| user.demand[r].is_positive());
            let least = needed.map(|r| (&quotas[r][i] / &user.demand[r], r)).min();
            let (runs, limit) = match (least, &user.tasks) {
                (Some((runs, r)), all) if all.as_ref() != Some(&runs) => (runs, Limit::Resource(r)),
                (Some((runs, _)), _) => (runs, Limit::Demand),
                (None, all) => (all.clone().unwrap_or(Exact::ZERO), Limit::Demand),
            };
            tasks.push(runs);
            limits.push(limit);
        }
        Ok(Allocation::new(Tasks::Exact(tasks), limits))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GroupInstance, Quota, QuotaGroup};
    use super::*;
    use crate::User;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn numbers(values: &[u64]) -> Vec<Exact> {
        values.iter().copied().map(Exact::from).collect()
    }

    fn instance(capacity: &[u64], users: Vec<User>) -> Instance {
        Instance::new(vec!["cpu".into(), "memory".into()], numbers(capacity), users).expect("a good instance")
    }

    /// The example of the DRF paper: each user gets one half of each resource and can use only one of them fully.
    #[test]
    fn complements_strand_capacity() {
        let users = vec![User::new("A", numbers(&[1, 4])), User::new("B", numbers(&[3, 1]))];
        let allocation = PerUser.allocate(&instance(&[9, 18], users)).expect("solved");
        assert_eq!(allocation.tasks, Tasks::Exact(vec![Exact::ratio(9, 4), Exact::ratio(3, 2)]));
        assert_eq!(allocation.limits, [Limit::Resource(1), Limit::Resource(0)]);
    }

    #[test]
    fn who_needs_less_or_nothing_lends() {
        let few = User { tasks: Some(Exact::from(1)), ..User::new("few", numbers(&[1, 1])) };
        let cpu = User::new("cpu", numbers(&[1, 0]));
        let nothing = User { tasks: Some(Exact::from(7)), ..User::new("nothing", numbers(&[0, 0])) };
        let both = User { weight: numbers(&[2, 1]), ..User::new("both", numbers(&[1, 1])) };
        let allocation = PerUser.allocate(&instance(&[10, 10], vec![few, cpu, nothing, both])).expect("solved");
        assert_eq!(allocation.tasks, Tasks::Exact(numbers(&[1, 3, 7, 6])));
        let (demand, cpu) = (Limit::Demand, Limit::Resource(0));
        assert_eq!(allocation.limits, [demand, cpu, demand, cpu]);
        let lacking = instance(&[0, 10], vec![User::new("a", numbers(&[1, 1])), User::new("b", numbers(&[0, 2]))]);
        let allocation = PerUser.allocate(&lacking).expect("solved");
        assert_eq!(allocation.tasks, Tasks::Exact(numbers(&[0, 5])));
        assert_eq!(allocation.limits, [Limit::Resource(0), Limit::Resource(1)]);
    }

    /// Compares with groups read from a file: the quotas of [`Quota`], and the tasks that fit, found by increasing each resource.
    #[test]
    fn users_are_groups_of_their_own() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for _ in 0..1000 {
            let capacity = [rng.random_range(1..40), rng.random_range(1..40)];
            let users: Vec<User> = (0..rng.random_range(1..7))
                .map(|i| {
                    let demand = numbers(&[rng.random_range(0..4), rng.random_range(1..4)]);
                    let weight = numbers(&[rng.random_range(1..4), rng.random_range(1..4)]);
                    let tasks = rng.random_bool(0.5).then(|| Exact::ratio(rng.random_range(0..30), 2));
                    User { weight, tasks, ..User::new(format!("user {i}"), demand) }
                })
                .collect();
            let asks = |user: &User, r: usize| match &user.tasks {
                Some(tasks) => tasks * &user.demand[r],
                None if user.demand[r].is_zero() => Exact::ZERO,
                None => Exact::from(capacity[r]),
            };
            let group = |user: &User| QuotaGroup {
                ratio: user.weight.clone(),
                ..QuotaGroup::new(user.name.clone(), vec![asks(user, 0), asks(user, 1)])
            };
            let names = vec!["cpu".to_owned(), "memory".to_owned()];
            let totals = numbers(&capacity).into_iter().map(Some).collect();
            let groups = GroupInstance::new(names, totals, users.iter().map(group).collect()).expect("good");
            let quotas = Quota::default().allocate(&groups).expect("solved").groups;
            let allocation = PerUser.allocate(&instance(&capacity, users.clone())).expect("solved");
            for ((user, quota), runs) in users.iter().zip(&quotas).zip(allocation.tasks.exact().expect("fractions")) {
                let held: Vec<Exact> = user.demand.iter().map(|demand| demand * runs).collect();
                assert!(held.iter().zip(&quota.runtime).all(|(held, quota)| held <= quota), "{user:?} {quota:?}");
                let full = held.iter().zip(&quota.runtime).any(|(held, quota)| held.is_positive() && held == quota);
                assert!(full || user.tasks.as_ref() == Some(runs) || runs.is_zero(), "{user:?} could run more");
            }
        }
    }
}
