//! Tests of allocations on different machines: examples of the literature, invariants, and agreement with the mechanisms on one machine.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::{Filling, Machines, Mechanism, Norm, User};

fn numbers(values: &[i64]) -> Vec<Exact> {
    values.iter().map(|&value| Exact::ratio(value, 1)).collect()
}

/// Returns the values in tenths, the unit of the papers' demands.
fn tenths(values: &[i64]) -> Vec<Exact> {
    values.iter().map(|&value| Exact::ratio(value, 10)).collect()
}

fn machine(at: usize, count: u64, capacity: Vec<Exact>) -> Machines {
    Machines { name: format!("m{}", at + 1), count, capacity }
}

fn instance(machines: &[&[i64]], users: Vec<User>) -> Instance {
    let names = (0..machines[0].len()).map(|r| format!("r{r}")).collect();
    let machines = machines.iter().enumerate().map(|(at, capacity)| machine(at, 1, numbers(capacity))).collect();
    Instance::on_machines(names, machines, users).expect("a good instance")
}

fn user(at: usize, demand: Vec<Exact>, on: Option<Vec<usize>>) -> User {
    User { on, ..User::new(format!("user {at}"), demand) }
}

fn tasks(mechanism: &dyn Mechanism, instance: &Instance) -> Vec<Exact> {
    mechanism.allocate(instance).expect("an allocation").tasks.exact().expect("fractions").to_vec()
}

const DRFH: Across = Across { quantity: Quantity::Dominant };
const TSF: Across = Across { quantity: Quantity::Tasks };
const CMMF: Across = Across { quantity: Quantity::Resource(0) };

/// The example of Wang, Li and Liang, INFOCOM 2014 (arXiv 1308.0083), figures 1 to 3: global dominant shares of 5/7; with DRF on each
/// server separately, six tasks each. Virtual dominant shares, derived manually: the first server fits (10, 2) tasks, the second (2, 10).
#[test]
fn two_servers_for_two_kinds_of_tasks() {
    let users = vec![user(0, tenths(&[2, 10]), None), user(1, tenths(&[10, 2]), None)];
    let example = instance(&[&[2, 12], &[12, 2]], users.clone());
    for mechanism in [&DRFH as &dyn Mechanism, &PsDsf] {
        let found = mechanism.allocate(&example).expect("an allocation");
        assert_eq!(found.tasks, Tasks::Exact(numbers(&[10, 10])));
        assert_eq!(found.spread, Some(vec![numbers(&[10, 0]), numbers(&[0, 10])]));
        assert_eq!(found.limits, [Limit::Machines, Limit::Machines]);
    }
    let share = &(&Exact::ratio(10, 1) * &users[0].demand[1]) / &example.capacity()[1];
    assert_eq!(share, Exact::ratio(5, 7));
    let drf = Filling { norm: Norm::Largest };
    let alone: Vec<Vec<Exact>> =
        [[2, 12], [12, 2]].iter().map(|machine| tasks(&drf, &instance(&[machine], users.clone()))).collect();
    assert_eq!((0..2).map(|i| &alone[0][i] + &alone[1][i]).collect::<Vec<_>>(), numbers(&[6, 6]));
}

/// Tasks that may run on some machines only; derived manually after Wang et al., SC 2016, and Ghodsi et al. (Choosy), EuroSys 2013.
#[test]
fn constraints_count_where_they_bind() {
    let one = || numbers(&[1]);
    let three = vec![user(0, one(), None), user(1, one(), None), user(2, one(), Some(vec![0]))];
    let slots = instance(&[&[1], &[1], &[1], &[1]], three);
    let two = vec![user(0, one(), None), user(1, one(), Some(vec![0]))];
    let cpus = instance(&[&[6], &[6]], two);
    for mechanism in [&TSF as &dyn Mechanism, &CMMF, &DRFH] {
        assert_eq!(tasks(mechanism, &slots), [Exact::ratio(3, 2), Exact::ratio(3, 2), Exact::ONE]);
        let found = mechanism.allocate(&cpus).expect("an allocation");
        assert_eq!(found.tasks, Tasks::Exact(numbers(&[6, 6])));
        assert_eq!(found.spread, Some(vec![numbers(&[0, 6]), numbers(&[6, 0])]));
    }
}

/// A share of tasks is relative to the tasks that a user could run without its constraint. Derivation: of machines with 4 and 12 the first
/// user could run 16 tasks and the second, with tasks twice as large, 8; both may run on the first machine only.
#[test]
fn shares_of_tasks_forget_constraints() {
    let users = vec![user(0, numbers(&[1]), Some(vec![0])), user(1, numbers(&[2]), Some(vec![0]))];
    assert_eq!(tasks(&TSF, &instance(&[&[4], &[12]], users)), numbers(&[2, 1]));
    // PS-DSF counts only the machines that a user may use.
    let users = vec![user(0, numbers(&[1]), None), user(1, numbers(&[1]), Some(vec![0]))];
    assert_eq!(tasks(&PsDsf, &instance(&[&[4], &[4]], users)), numbers(&[4, 4]));
}

#[test]
fn nobody_runs_where_it_cannot() {
    let mut users = vec![user(0, numbers(&[1, 1]), Some(vec![0])), user(1, numbers(&[1, 0]), None)];
    users.push(User { tasks: Some(Exact::from(5)), ..user(2, numbers(&[0, 0]), Some(vec![1])) });
    users.push(User { tasks: Some(Exact::ZERO), ..user(3, numbers(&[1, 1]), None) });
    let example = instance(&[&[4, 0], &[4, 8]], users);
    for mechanism in [&DRFH as &dyn Mechanism, &TSF, &CMMF, &PsDsf] {
        let found = mechanism.allocate(&example).expect("an allocation");
        assert_eq!(found.tasks, Tasks::Exact(numbers(&[0, 8, 5, 0])));
        assert_eq!(found.limits, [Limit::Resource(0), Limit::Resource(0), Limit::Demand, Limit::Demand]);
        assert_eq!(found.spread.expect("machines")[2], numbers(&[0, 5]));
    }
}

#[test]
fn too_large_an_instance_is_an_error() {
    let users = (0..25).map(|at| user(at, numbers(&[1]), None)).collect();
    let each: Vec<Vec<i64>> = (1..=30).map(|size| vec![size]).collect();
    let each: Vec<&[i64]> = each.iter().map(Vec::as_slice).collect();
    let message = DRFH.allocate(&instance(&each, users)).expect_err("too large").to_string();
    assert!(message.contains("750 pairs of a user and a machine") && message.contains("at most 500"), "{message}");
}

/// Returns a random instance on up to `most` machines with a single weight per user.
fn draw(rng: &mut ChaCha8Rng, most: usize, users: usize) -> Instance {
    let dims = rng.random_range(1..=3);
    let machines = rng.random_range(1..=most);
    let entry = |at: usize, rng: &mut ChaCha8Rng| {
        let capacity = (0..dims).map(|_| Exact::ratio(rng.random_range(0..=12), 1)).collect();
        machine(at, rng.random_range(1..=2), capacity)
    };
    let entries: Vec<Machines> = (0..machines).map(|at| entry(at, rng)).collect();
    let user = |at: usize, rng: &mut ChaCha8Rng| {
        let mut demand: Vec<Exact> = (0..dims).map(|_| Exact::ratio(rng.random_range(0..=4), 1)).collect();
        let needed = rng.random_range(0..dims);
        demand[needed] = Exact::ratio(rng.random_range(1..=4), 1);
        let on: Vec<usize> = (0..machines).filter(|_| rng.random_bool(0.6)).collect();
        User {
            weight: vec![Exact::ratio(rng.random_range(1..=3), 1); dims],
            tasks: rng.random_bool(0.3).then(|| Exact::ratio(rng.random_range(0..=20), 2)),
            on: (!on.is_empty() && rng.random_bool(0.5)).then_some(on),
            ..User::new(format!("user {at}"), demand)
        }
    };
    let users = (0..rng.random_range(1..=users)).map(|at| user(at, rng)).collect();
    Instance::on_machines((0..dims).map(|r| format!("r{r}")).collect(), entries, users).expect("a good instance")
}

/// On one machine DRFH, TSF and PS-DSF are equal to DRF, and CMMF is equal to max-min fairness of its resource alone.
#[test]
fn on_one_machine_it_is_progressive_filling() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for case in 0..500 {
        let example = draw(&mut rng, 1, 6);
        let drf = tasks(&Filling { norm: Norm::Largest }, &example);
        assert_eq!(tasks(&DRFH, &example), drf, "case {case}");
        assert_eq!(tasks(&TSF, &example), drf, "case {case}");
        assert_eq!(tasks(&PsDsf, &example), drf, "case {case}: {example:?}");
        assert_eq!(tasks(&CMMF, &example), tasks(&Filling { norm: Norm::Single(0) }, &example), "case {case}");
    }
}

/// PS-DSF verifies its answers. This tests that an answer is found and that the check rejects wrong ones.
#[test]
fn per_server_shares_are_found_and_checked() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut changed = 0;
    for case in 0..1000 {
        let example = draw(&mut rng, 4, 6);
        let found = PsDsf.allocate(&example).unwrap_or_else(|error| panic!("case {case}: {error} {example:?}"));
        let spread = found.spread.expect("machines");
        assert!(PsDsf::satisfies_condition(&example, &spread).expect("small"));
        for (i, user) in example.users().iter().enumerate() {
            for m in 0..spread[i].len() {
                // Fewer tasks are rejected unless another constraint stops the user; more tasks are always rejected.
                let mut other = spread.clone();
                other[i][m] = &other[i][m] + &Exact::ratio(1, 1000);
                assert!(
                    !PsDsf::satisfies_condition(&example, &other).expect("small"),
                    "case {case}, {}: more on {m}",
                    user.name
                );
                if spread[i][m].is_positive() {
                    other[i][m] = &spread[i][m] * &Exact::ratio(1, 2);
                    assert!(
                        !PsDsf::satisfies_condition(&example, &other).expect("small"),
                        "case {case}, {}: less on {m}",
                        user.name
                    );
                    changed += 1;
                }
            }
        }
    }
    assert!(changed > 2000, "{changed}");
}

/// An entry of several equal machines is equivalent to entries of one machine each.
#[test]
fn equal_machines_may_be_written_as_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for case in 0..200 {
        let example = draw(&mut rng, 3, 4);
        let each = |group: &Machines| vec![Machines { count: 1, ..group.clone() }; group.count as usize];
        let apart = example.machines().iter().flat_map(each).enumerate();
        let apart: Vec<Machines> = apart.map(|(at, one)| Machines { name: format!("{at}"), ..one }).collect();
        let mut first = vec![0];
        example.machines().iter().for_each(|group| first.push(first[first.len() - 1] + group.count as usize));
        let on = |on: &Vec<usize>| on.iter().flat_map(|&m| first[m]..first[m + 1]).collect();
        let user = |user: &User| User { on: user.on.as_ref().map(on), ..user.clone() };
        let users = example.users().iter().map(user).collect();
        let other = Instance::on_machines(example.resources().to_vec(), apart, users).expect("the same");
        for mechanism in [&DRFH as &dyn Mechanism, &TSF, &CMMF] {
            assert_eq!(tasks(mechanism, &example), tasks(mechanism, &other), "case {case}");
        }
        // If filled equally, equal machines satisfy the condition individually. The converse does not hold: two of them may be full of
        // different resources, and then no resource of both together is used up.
        let found = PsDsf.allocate(&example).expect("an answer").spread.expect("machines");
        let alike = |on: &Vec<Exact>| {
            let part = |(tasks, group): (&Exact, &Machines)| {
                vec![tasks / &Exact::from(group.count); usize::try_from(group.count).expect("a few")]
            };
            on.iter().zip(example.machines()).flat_map(part).collect::<Vec<Exact>>()
        };
        assert!(
            PsDsf::satisfies_condition(&other, &found.iter().map(alike).collect::<Vec<_>>()).expect("small"),
            "case {case}"
        );
    }
}
