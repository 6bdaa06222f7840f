//! The findings of `plimsoll check` for quotas if every user is a group: all properties hold except Pareto efficiency and, with weights per
//! resource, bottleneck fairness.

use plimsoll::fair::{Exact, Instance, User};
use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll::properties::{Candidate, Domain, Property, Requirement};

use crate::check::check;
use crate::replay::{plimsoll, run, said};

fn quota() -> Candidate {
    Candidate::divisible(&Registry::new(BUILT_IN), "quota").expect("it has a static allocation")
}

/// Computes the tasks of each user independently, from the definition and in floats. Each resource is poured in steps over the users with
/// unmet demand, and the scarcest quota of a user limits its tasks.
fn tasks(instance: &Instance) -> Vec<f64> {
    let users = instance.users();
    let mut runs: Vec<f64> =
        users.iter().map(|user| user.tasks.as_ref().map_or(f64::INFINITY, Exact::to_f64)).collect();
    for r in 0..instance.resources().len() {
        let needs = |user: &User| user.demand[r].to_f64();
        let asks = |user: &User| match (&user.tasks, needs(user)) {
            (_, 0.0) => 0.0,
            (None, _) => f64::INFINITY,
            (Some(tasks), need) => tasks.to_f64() * need,
        };
        let mut quota = vec![0.0; users.len()];
        let mut left = instance.capacity()[r].to_f64();
        let mut thirsty: Vec<usize> = (0..users.len()).filter(|&i| asks(&users[i]) > 0.0).collect();
        while left > 1e-12 && !thirsty.is_empty() {
            let all: f64 = thirsty.iter().map(|&i| users[i].weight[r].to_f64()).sum();
            let room = |i: usize, quota: &[f64]| (asks(&users[i]) - quota[i]) / users[i].weight[r].to_f64();
            let step = thirsty.iter().map(|&i| room(i, &quota)).fold(left / all, f64::min);
            for &i in &thirsty {
                quota[i] += step * users[i].weight[r].to_f64();
            }
            left -= step * all;
            thirsty.retain(|&i| room(i, &quota) > 1e-12);
        }
        for (i, user) in users.iter().enumerate().filter(|(_, user)| needs(user) > 0.0) {
            runs[i] = runs[i].min(quota[i] / needs(user));
        }
    }
    runs
}

/// Returns the largest number of additional tasks that any single user could run on the unallocated amounts.
fn wasted(instance: &Instance) -> f64 {
    let (users, runs) = (instance.users(), tasks(instance));
    let left: Vec<f64> = (0..instance.resources().len())
        .map(|r| {
            let held: f64 = users.iter().zip(&runs).map(|(user, runs)| user.demand[r].to_f64() * runs).sum();
            instance.capacity()[r].to_f64() - held
        })
        .collect();
    let more = |(user, runs): (&User, &f64)| {
        let ends = user.tasks.as_ref().map_or(f64::INFINITY, |tasks| tasks.to_f64() - runs);
        let needed = (0..left.len()).filter(|&r| user.demand[r].is_positive());
        needed.map(|r| left[r] / user.demand[r].to_f64()).fold(ends, f64::min)
    };
    users.iter().zip(&runs).map(more).fold(0.0, f64::max)
}

/// Returns the smaller instances of the same domain: with one capacity or demand reduced by one, or with one user removed.
fn lesser(instance: &Instance) -> Vec<Instance> {
    let one = Exact::ONE;
    let mut all = Vec::new();
    let (names, users) = (instance.resources().to_vec(), instance.users());
    for r in 0..names.len() {
        let mut capacity = instance.capacity().to_vec();
        capacity[r] = &capacity[r] - &one;
        all.push(Instance::new(names.clone(), capacity, users.to_vec()));
        for i in 0..users.len() {
            let mut users = users.to_vec();
            users[i].demand[r] = &users[i].demand[r] - &one;
            all.push(instance.with_users(users));
        }
    }
    for i in 0..users.len() {
        let mut users = users.to_vec();
        users.remove(i);
        all.push(instance.with_users(users));
    }
    let positive = |user: &User| user.demand.iter().all(Exact::is_positive);
    let same_domain = |instance: &Instance| {
        instance.capacity().iter().all(Exact::is_positive) && instance.users().iter().all(positive)
    };
    all.into_iter().flatten().filter(same_domain).collect()
}

#[test]
fn quotas_of_users_keep_everything_but_efficiency() {
    let candidate = quota();
    for &(_, domain, _) in Domain::ALL {
        for finding in check(&candidate, &Requirement::divisible(), domain) {
            let property = finding.requirement.property;
            let fails = match property {
                Property::ParetoEfficiency => true,
                // The weights of the bottleneck may sum to less than the weights of another resource, which is then scarcer.
                Property::Bottleneck => domain == Domain::WeightedPerResource,
                _ => false,
            };
            let what = format!("{}, {}", property.name(), domain.name());
            assert_eq!(finding.holds(), !fails, "{what}: {:?}", finding.counterexample);
            assert_eq!(finding.unsolved, 0, "{what}: {:?}", finding.unsolved_why);
            let Some(found) = &finding.counterexample else {
                assert!(finding.instances > 300, "{what} was tried on {} instances only", finding.instances);
                continue;
            };
            let (given, due) =
                (candidate.allocate(&found.instance).expect("solved").tasks.floats(), tasks(&found.instance));
            assert!(given.iter().zip(&due).all(|(given, due)| (given - due).abs() < 1e-9), "{what}: {given:?} {due:?}");
            if property == Property::ParetoEfficiency {
                assert!(wasted(&found.instance) > 1e-6, "{what}: {:?}", found.lines());
                for less in lesser(&found.instance) {
                    assert!(wasted(&less) < 1e-9, "{what}: {less:?} is a smaller counterexample");
                }
            } else {
                unfair_at_the_bottleneck(&found.instance, &given);
            }
        }
    }
}

/// Asserts that all users need one resource most, by share and by weighted share, and that this resource is not fully shared by weight.
fn unfair_at_the_bottleneck(instance: &Instance, given: &[f64]) {
    let part = |user: &User, r: usize| user.demand[r].to_f64() / instance.capacity()[r].to_f64();
    let weighted = |user: &User, r: usize| part(user, r) / user.weight[r].to_f64();
    let dims = 0..instance.resources().len();
    let most = |r: usize| {
        let all = |user: &User| {
            dims.clone().all(|s| part(user, r) >= part(user, s) && weighted(user, r) >= weighted(user, s))
        };
        instance.users().iter().all(all)
    };
    let r = dims.clone().find(|&r| most(r)).expect("a bottleneck");
    let levels: Vec<f64> = instance.users().iter().zip(given).map(|(user, tasks)| weighted(user, r) * tasks).collect();
    let held: f64 = instance.users().iter().zip(given).map(|(user, tasks)| part(user, r) * tasks).sum();
    let apart = levels.iter().any(|level| (level - levels[0]).abs() > 1e-7);
    assert!(apart || held < 1.0 - 1e-7, "{instance:?}: levels {levels:?}, {held} of the bottleneck");
}

#[test]
fn the_command_line_checks_and_solves_quotas_of_users() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command = plimsoll(&["check", "--policy", "quota", "--effort", "quick", "--write", "found"]);
    let output = run(command.current_dir(&dir));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in ["Pareto efficiency         fails", "Sharing incentive         holds"] {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
    // The printed replay command works.
    let replay = text.lines().find_map(|line| line.trim().strip_prefix("replay: plimsoll ")).expect("how to replay");
    let words: Vec<&str> = replay.split_whitespace().chain(["--format", "json"]).collect();
    let output = run(plimsoll(&words).current_dir(&dir));
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["policy"], "quota");

    let file = format!("quota:{}/experiments/quota/two-groups.toml", env!("CARGO_MANIFEST_DIR"));
    let output = run(&mut plimsoll(&["check", "--policy", &file]));
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("'quota' without a file has one, with a group for each user"), "{}", said(&output));
}
