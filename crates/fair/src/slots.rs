//! Slot fairness: machines are cut into equal slots, and slots are shared max-min fairly.
//!
//! Each task uses one slot, independently of its demand. Resources may therefore stay unused, or be overcommitted: the utilisation of the
//! allocation may be above 1, as on the machines of Hadoop. A user that demands a resource of capacity 0 runs no tasks. Source: Hadoop's
//! fair scheduler as described in Ghodsi et al., NSDI 2011, 7.2 and 7.3.

use super::{Allocation, Exact, Instance, Limit, Mechanism, Number, Tasks, User};
use plimsoll_base::error::Result;

/// Weighted max-min fairness in slots, in fractions: `x_i = min(tasks_i, level w_i)`. Cost: O(users log users).
///
/// A capacity without machines counts as one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The number of slots of each machine.
    pub per_machine: u32,
}

impl Slots {
    /// Returns the total number of slots.
    pub(super) fn total(&self, instance: &Instance) -> Exact {
        &Exact::from(u64::from(self.per_machine)) * &Exact::from(instance.machine_count())
    }

    /// Returns the user's single weight. Errors: [`Error::Plan`] if its weights differ by resource.
    pub(super) fn weight(user: &User) -> Result<&Exact> {
        user.scalar_weight("for slots, since a slot is not a resource")
    }
}

impl Mechanism for Slots {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let users = instance.users();
        let mut tasks = vec![Exact::ZERO; users.len()];
        let mut limits = vec![Limit::Demand; users.len()];
        // Users that demand slots: the level at which their demand is met, their index, and their weight.
        let mut wanting = Vec::new();
        let mut weight_left = Exact::ZERO;
        for (i, user) in users.iter().enumerate() {
            let weight = Slots::weight(user)?;
            match (instance.lacking(user), &user.tasks) {
                (_, Some(all)) if all.is_zero() => {}
                (Some(r), _) => limits[i] = Limit::Resource(r),
                (None, all) => {
                    weight_left = &weight_left + weight;
                    wanting.push((all.as_ref().map(|all| all / weight), i, weight));
                }
            }
        }
        // Users in the order of the time at which their demand is met; unlimited demand is last.
        wanting.sort_by(|(a, ..), (b, ..)| a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(b)));
        let mut slots = self.total(instance);
        let mut wanting = wanting.into_iter().peekable();
        while let Some((Some(full), i, weight)) =
            wanting.next_if(|(full, ..)| full.as_ref().is_some_and(|full| full * &weight_left <= slots))
        {
            tasks[i] = &full * weight;
            slots = &slots - &tasks[i];
            weight_left = &weight_left - weight;
        }
        for (_, i, weight) in wanting {
            tasks[i] = &(&slots * weight) / &weight_left;
            limits[i] = Limit::Slots;
        }
        Ok(Allocation::new(Tasks::Exact(tasks), limits))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Machines, fill};
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn draw(rng: &mut ChaCha8Rng) -> Instance {
        let mut numbers = |below: u64| Exact::from(rng.random_range(1..below));
        let each = vec![numbers(30), numbers(30)];
        let count = numbers(9);
        let users = (0..rng.random_range(1..12)).map(|i| {
            let demand = vec![Exact::from(rng.random_range(0..4)), Exact::from(rng.random_range(1..5))];
            let weight = vec![Exact::ratio(rng.random_range(1..5), rng.random_range(1..4)); 2];
            let tasks = rng.random_bool(0.6).then(|| Exact::ratio(rng.random_range(0..40), rng.random_range(1..4)));
            User { weight, tasks, ..User::new(format!("user {i}"), demand) }
        });
        let users = users.collect();
        let machines = Machines { name: "m".to_owned(), count: count.parts().expect("small").0 as u64, capacity: each };
        Instance::on_machines(vec!["cpu".into(), "memory".into()], vec![machines], users).expect("a good instance")
    }

    /// Slots are equivalent to one resource with a demand of 1 per task.
    #[test]
    fn slots_are_filled_like_a_resource() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let (mut scarce, mut plenty) = (0, 0);
        for case in 0..2000 {
            let instance = draw(&mut rng);
            let slots = Slots { per_machine: rng.random_range(1..6) };
            let users = instance.users();
            let caps: Vec<Option<Exact>> = users.iter().map(|user| user.tasks.clone()).collect();
            let stage = users.iter().enumerate().map(|(i, user)| (i, user.weight[0].clone())).collect();
            let total = &Exact::from(u64::from(slots.per_machine)) * &Exact::from(instance.machines()[0].count);
            let twin = fill(&[total], &vec![vec![Exact::ONE]; users.len()], &caps, &[stage]);
            let allocation = slots.allocate(&instance).expect("one weight a user");
            assert_eq!(allocation.tasks.exact().expect("fractions"), twin.tasks, "case {case}");
            for (i, limit) in allocation.limits.iter().enumerate() {
                let content = users[i].tasks.as_ref() == Some(&twin.tasks[i]);
                assert_eq!(*limit, if content { Limit::Demand } else { Limit::Slots }, "case {case}, user {i}");
                *(if content { &mut plenty } else { &mut scarce }) += 1;
            }
        }
        assert!(scarce > 500 && plenty > 500, "{scarce} and {plenty}: both ends should be seen");
    }

    #[test]
    fn a_pool_is_one_machine_and_a_slot_has_one_weight() {
        let numbers = |values: [u64; 2]| values.map(Exact::from).to_vec();
        let user = |name: &str, demand| User::new(name, numbers(demand));
        let names = || vec!["cpu".to_owned(), "memory".to_owned()];
        let users = vec![user("A", [1, 4]), user("B", [3, 1])];
        let pool = Instance::new(names(), numbers([9, 18]), users.clone()).expect("good");
        let allocation = Slots { per_machine: 7 }.allocate(&pool).expect("slots");
        assert_eq!(allocation.tasks.floats(), [3.5, 3.5]);

        let lacking =
            Instance::new(names(), numbers([0, 18]), vec![users[0].clone(), user("C", [0, 1])]).expect("good");
        let allocation = Slots { per_machine: 6 }.allocate(&lacking).expect("slots");
        assert_eq!(allocation.tasks.floats(), [0.0, 6.0]);
        assert_eq!(allocation.limits, [Limit::Resource(0), Limit::Slots]);

        let mut by_resource = users;
        by_resource[1].weight[0] = Exact::ratio(2, 1);
        let uneven = pool.with_users(by_resource).expect("good");
        let message = Slots { per_machine: 2 }.allocate(&uneven).expect_err("two weights").to_string();
        assert!(message.contains("user 'B', weight") && message.contains("one weight per user"), "{message}");
    }
}
