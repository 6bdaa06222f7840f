//! `plimsoll check`: Table 2 of the DRF paper, self-contained counterexamples, and faulty mechanisms that are detected.

use std::sync::Arc;

use plimsoll::error::Result;
use plimsoll::fair::{Allocation, Bmf, Ceei, Exact, Filling, Instance, Limit, Mechanism, Norm, Tasks};
use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll::properties::{
    Candidate, Change, Counterexample, Domain, Draft, DraftUser, Effort, Finding, Property, Reading, Requirement,
    SearchSpace, survey,
};

use crate::replay::{plimsoll, run, said};

/// An effort that finds every counterexample of the paper and is quick enough for a test.
const EFFORT: Effort = Effort { grid: 1_500, random: 150, climbs: 48, steps: 200 };

pub fn search(domain: Domain) -> SearchSpace {
    SearchSpace { domain, effort: EFFORT, seed: 1 }
}

pub fn check(candidate: &Candidate, promises: &[Requirement], domain: Domain) -> Vec<Finding> {
    survey(candidate, promises, &search(domain), &|_| Ok(())).expect("no caller ends the search")
}

fn divisible(property: Property) -> Requirement {
    Requirement { property, reading: Reading::Divisible }
}

pub fn only(candidate: &Candidate, requirement: Requirement, domain: Domain) -> Finding {
    check(candidate, &[requirement], domain).remove(0)
}

fn drf() -> Candidate {
    Candidate::own("drf", Filling { norm: Norm::Largest })
}

fn asset() -> Candidate {
    Candidate::own("asset", Filling { norm: Norm::Sum })
}

fn ceei() -> Candidate {
    Candidate::own("ceei", Ceei)
}

/// Ghodsi et al., NSDI 2011, Table 2. The columns are asset fairness, CEEI and DRF.
const TABLE_2: [(Property, [bool; 3]); 8] = [
    (Property::SharingIncentive, [false, true, true]),
    (Property::StrategyProofness, [true, false, true]),
    (Property::EnvyFreeness, [true, true, true]),
    (Property::ParetoEfficiency, [true, true, true]),
    (Property::SingleResource, [true, true, true]),
    (Property::Bottleneck, [false, true, true]),
    (Property::Population, [true, false, true]),
    (Property::Resource, [false, false, false]),
];

#[test]
fn table_2_of_the_paper_comes_out_in_full() {
    for (column, candidate) in [asset(), ceei(), drf()].iter().enumerate() {
        let promises: Vec<Requirement> = TABLE_2.iter().map(|(property, _)| divisible(*property)).collect();
        let findings = check(candidate, &promises, Domain::Positive);
        for ((property, expected), finding) in TABLE_2.iter().zip(&findings) {
            let what = format!("{} of {}", property.name(), candidate.name());
            assert_eq!(finding.holds(), expected[column], "{what}: {:?}", finding.counterexample);
            assert_eq!(finding.unsolved, 0, "{what}: {:?}", finding.unsolved_why);
            let tried = finding.instances > 300;
            assert!(tried || !expected[column], "{what} was tried on {} instances only", finding.instances);
            if let Some(found) = &finding.counterexample {
                stands_on_its_own(candidate, found);
                is_minimal(candidate, found);
            }
        }
    }
}

/// Solves the counterexample again and checks it in floats, by a second implementation of the definitions.
fn stands_on_its_own(candidate: &Candidate, found: &Counterexample) {
    let instance = found.draft.instance(candidate.resources()).expect("counterexamples are instances");
    assert_eq!(instance, found.instance);
    let before = candidate.allocate(&instance).expect("it is solved").tasks.floats();
    let after = found.change.as_ref().map(|change| {
        let changed = change.apply(&instance).expect("the change is possible");
        candidate.allocate(&changed).expect("it is solved").tasks.floats()
    });
    let loss = loss(&found.draft, found.requirement.property, &before, found.change.as_ref(), after.as_deref());
    assert!(loss > 1e-7, "{}: {:?} loses {loss}", candidate.name(), found.lines());
}

/// Returns the violation of a property, in tasks of the most affected user. The users have unlimited tasks and equal weights.
fn loss(draft: &Draft, property: Property, before: &[f64], change: Option<&Change>, after: Option<&[f64]>) -> f64 {
    let needs = |user: usize| -> Vec<f64> { draft.users[user].demand.iter().map(|&amount| amount as f64).collect() };
    let runs = |user: usize, bundle: Vec<f64>| {
        let parts = bundle.iter().zip(needs(user)).filter(|(_, need)| *need > 0.0).map(|(amount, need)| amount / need);
        parts.fold(f64::INFINITY, f64::min)
    };
    let users = draft.users.len();
    let capacity: Vec<f64> = draft.capacity.iter().map(|&amount| amount as f64).collect();
    let most = |losses: &mut dyn Iterator<Item = f64>| losses.fold(f64::NEG_INFINITY, f64::max);
    match (property, change) {
        (Property::SharingIncentive, None) => {
            let part: Vec<f64> = capacity.iter().map(|amount| amount / users as f64).collect();
            most(&mut (0..users).map(|user| runs(user, part.clone()) - before[user]))
        }
        (Property::EnvyFreeness, None) => {
            let holds = |other: usize| needs(other).iter().map(|need| need * before[other]).collect();
            most(&mut (0..users * users).map(|at| runs(at / users, holds(at % users)) - before[at / users]))
        }
        (Property::Bottleneck, None) => {
            // Each user has an equal amount of the resource that is dominant for every user.
            let share = |user: usize, r: usize| needs(user)[r] / capacity[r];
            let all = |r: usize| (0..users).all(|u| (0..capacity.len()).all(|s| share(u, r) >= share(u, s) - 1e-12));
            let r = (0..capacity.len()).find(|&r| all(r)).expect("there is a bottleneck");
            most(&mut (0..users).map(|user| (before[user] - capacity[r] / users as f64 / needs(user)[r]).abs()))
        }
        (Property::StrategyProofness, Some(Change::Claim { user, demand, .. })) => {
            let given = after.expect("a lie has a world")[*user];
            runs(*user, demand.iter().map(|&amount| amount as f64 * given).collect()) - before[*user]
        }
        (Property::Population, Some(Change::Leave { user: gone })) => {
            let after = after.expect("a leave has a world");
            let stays = (0..users).filter(|user| user != gone).enumerate();
            most(&mut stays.map(|(then, user)| before[user] - after[then]))
        }
        (Property::Resource, Some(Change::Grow { resource, capacity })) => {
            assert!(*capacity > draft.capacity[*resource]);
            let after = after.expect("a growth has a world");
            most(&mut (0..users).map(|user| before[user] - after[user]))
        }
        other => panic!("no counterexample was expected for {other:?}"),
    }
}

/// Asserts that the counterexample is minimal: with the same change, no user and no resource can be dropped and no number lowered.
fn is_minimal(candidate: &Candidate, found: &Counterexample) {
    let still_fails = |draft: &Draft, change: Option<&Change>| {
        let solve = |instance: &Instance| candidate.allocate(instance).ok().map(|given| given.tasks.floats());
        let Ok(instance) = draft.instance(candidate.resources()) else { return false };
        let Some(before) = solve(&instance) else { return false };
        let after = match change.map(|change| change.apply(&instance)) {
            Some(Ok(changed)) => solve(&changed),
            Some(Err(_)) => return false,
            None => None,
        };
        let honest = matches!(change, Some(Change::Claim { user, demand, .. }) if *demand == draft.users[*user].demand);
        !honest && loss(draft, found.requirement.property, &before, change, after.as_deref()) > 1e-5
    };
    let bottleneck = |draft: &Draft| {
        let most = |r: usize| {
            let beats =
                |user: &DraftUser, s: usize| user.demand[r] * draft.capacity[s] >= user.demand[s] * draft.capacity[r];
            draft.users.iter().all(|user| (0..draft.dims()).all(|s| beats(user, s)))
        };
        draft.dims() > 1 && (0..draft.dims()).any(most)
    };
    let applies = |draft: &Draft| found.requirement.property != Property::Bottleneck || bottleneck(draft);
    let draft = &found.draft;
    for r in 0..draft.dims() {
        if draft.capacity[r] > 1 {
            let mut less = draft.clone();
            less.capacity[r] -= 1;
            assert!(!applies(&less) || !still_fails(&less, found.change.as_ref()), "capacity {r}: {:?}", found.lines());
        }
    }
    for user in 0..draft.users.len() {
        for r in 0..draft.dims() {
            if draft.users[user].demand[r] > 1 {
                let mut less = draft.clone();
                less.users[user].demand[r] -= 1;
                assert!(!applies(&less) || !still_fails(&less, found.change.as_ref()), "demand: {:?}", found.lines());
            }
        }
        let involved = match &found.change {
            Some(Change::Claim { user: other, .. } | Change::Leave { user: other }) => *other >= user,
            _ => false,
        };
        if draft.users.len() > 2 && !involved {
            let mut fewer = draft.clone();
            fewer.users.remove(user);
            assert!(
                !applies(&fewer) || !still_fails(&fewer, found.change.as_ref()),
                "user {user}: {:?}",
                found.lines()
            );
        }
    }
}

/// Theorem 14 (population monotonicity) requires strictly positive demands, whatever the policy.
#[test]
fn with_zero_demands_population_monotonicity_fails_for_drf_and_not_for_drf_alone() {
    for candidate in [drf(), asset(), ceei()] {
        let finding = only(&candidate, divisible(Property::Population), Domain::Zeros);
        let found = finding.counterexample.unwrap_or_else(|| panic!("{} fails", candidate.name()));
        assert!(found.draft.users.iter().any(|user| user.demand.contains(&0)) || candidate.name() == "ceei");
        stands_on_its_own(&candidate, &found);
        assert!(found.draft.users.len() == 3, "the counterexample needs three users: {:?}", found.lines());
    }
}

/// DRF keeps its properties with finite tasks and weights. With a weight for each resource it loses the sharing incentive,
/// because the weights of one resource need not add up to those of another.
#[test]
fn finite_tasks_and_weights_cost_drf_nothing_but_weights_for_each_resource_do() {
    for domain in [Domain::Finite, Domain::Weighted, Domain::WeightedPerResource] {
        for finding in check(&drf(), &Requirement::divisible(), domain) {
            let expected = match finding.requirement.property {
                Property::Resource => false,
                Property::SharingIncentive => domain != Domain::WeightedPerResource,
                _ => true,
            };
            assert_eq!(
                finding.holds(),
                expected,
                "{}, {}: {:?}",
                finding.requirement.title(),
                domain.name(),
                finding.counterexample
            );
        }
    }
}

#[test]
fn counterexamples_stay_in_their_domain() {
    for &(_, domain, _) in Domain::ALL {
        for finding in check(&Candidate::own("bmf", Bmf), &Requirement::divisible(), domain) {
            let Some(found) = finding.counterexample else { continue };
            for user in found.instance.users() {
                let lines = found.lines();
                assert!(domain == Domain::Zeros || user.demand.iter().all(Exact::is_positive), "{lines:?}");
                assert!(domain == Domain::Finite || user.tasks.is_none(), "{lines:?}");
                assert!(domain == Domain::WeightedPerResource || user.one_weight().is_some(), "{lines:?}");
                let equal = user.one_weight() == Some(&Exact::ONE);
                assert!(equal || matches!(domain, Domain::Weighted | Domain::WeightedPerResource), "{lines:?}");
            }
        }
    }
}

/// A mechanism that computes the tasks by a function.
struct Rule(fn(&Instance) -> Vec<Exact>);

impl Mechanism for Rule {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let tasks = self.0(instance);
        let limits = vec![Limit::WholeTask; tasks.len()];
        Ok(Allocation::new(Tasks::Exact(tasks), limits))
    }
}

/// Returns the number of tasks that a user can run on a part of the cluster.
fn with_part(instance: &Instance, user: usize, part: &Exact) -> Exact {
    let user = &instance.users()[user];
    let each = instance.capacity().iter().zip(&user.demand).filter(|(_, demand)| demand.is_positive());
    let most = each.map(|(capacity, demand)| &(capacity * part) / demand).min().unwrap_or(Exact::ZERO);
    user.tasks.as_ref().map_or(most.clone(), |tasks| most.min(tasks.clone()))
}

fn equal_parts(instance: &Instance, of: &Exact) -> Vec<Exact> {
    let users = instance.users().len();
    let part = of / &Exact::from(users as u64);
    (0..users).map(|user| with_part(instance, user, &part)).collect()
}

/// Each broken mechanism is reported for the properties that it violates, with a minimal counterexample, and not for the others.
#[test]
fn broken_mechanisms_are_caught() {
    let dictator = Candidate::own(
        "dictator",
        Rule(|instance| {
            let mut tasks = vec![Exact::ZERO; instance.users().len()];
            tasks[0] = with_part(instance, 0, &Exact::ONE);
            tasks
        }),
    );
    let wasteful = Candidate::own("wasteful", Rule(|instance| equal_parts(instance, &Exact::ratio(1, 2))));
    let equal = Candidate::own("equal", Rule(|instance| equal_parts(instance, &Exact::ONE)));
    let greedy = Candidate::own("greedy", Rule(|instance| equal_parts(instance, &Exact::from(2))));
    let envious = Candidate::own(
        "envious",
        Rule(|instance| {
            let mut tasks = equal_parts(instance, &Exact::ratio(1, 2));
            tasks[0] = &tasks[0] * &Exact::from(2);
            tasks
        }),
    );
    let fails = |candidate: &Candidate, property: Property| -> Option<Counterexample> {
        only(candidate, divisible(property), Domain::Positive).counterexample
    };
    let size = |found: Option<Counterexample>| found.map(|found| found.draft.size());
    for property in [Property::SharingIncentive, Property::EnvyFreeness, Property::SingleResource, Property::Population]
    {
        let expected = (property != Property::Population).then_some((2, 1, 5));
        assert_eq!(size(fails(&dictator, property)), expected, "{}", property.name());
    }
    assert!(fails(&dictator, Property::StrategyProofness).is_none());
    assert_eq!(size(fails(&wasteful, Property::ParetoEfficiency)), Some((1, 1, 3)));
    assert_eq!(size(fails(&wasteful, Property::SharingIncentive)), Some((1, 1, 3)));
    assert!(fails(&wasteful, Property::EnvyFreeness).is_none());
    assert!(
        fails(&equal, Property::SharingIncentive).is_none() && fails(&equal, Property::StrategyProofness).is_none()
    );
    assert_eq!(fails(&equal, Property::ParetoEfficiency).map(|found| found.draft.dims()), Some(2));
    assert_eq!(size(fails(&greedy, Property::Feasibility)), Some((1, 1, 3)));
    assert!(fails(&greedy, Property::ParetoEfficiency).is_none(), "overuse is reported only once, as infeasible");
    assert_eq!(size(fails(&envious, Property::EnvyFreeness)), Some((2, 1, 5)));
}

/// Invalid allocations are reported: amounts that are not numbers, and missing users.
#[test]
fn nonsense_is_told() {
    struct Nonsense(f64, usize);
    impl Mechanism for Nonsense {
        fn allocate(&self, instance: &Instance) -> Result<Allocation> {
            let tasks = Tasks::Float(vec![self.0; instance.users().len() + self.1]);
            Ok(Allocation::new(tasks, Vec::new()))
        }
    }
    for senseless in [f64::NAN, f64::INFINITY, -1.0] {
        let candidate = Candidate::own("senseless", Nonsense(senseless, 0));
        let findings = check(&candidate, &Requirement::divisible(), Domain::Positive);
        let found = findings[0].counterexample.as_ref().expect("the allocation is impossible");
        assert!(found.verdict().starts_with("A is given"), "{}", found.verdict());
        assert!(findings[1..].iter().all(|finding| finding.cases == 0), "no other property is checked");
    }
    let crowd = only(&Candidate::own("crowd", Nonsense(0.0, 1)), divisible(Property::EnvyFreeness), Domain::Positive);
    assert!(!crowd.holds() && crowd.unsolved > 0 && crowd.cases == 0);
    let why = crowd.unsolved_why.expect("a reason");
    assert!(why.contains("to 2 users of 1 (capacity: cpu 1; A: cpu 1)"), "{why}");
}

/// A mechanism that rewards a user for a larger claim of the first resource is reported. The search finds the lie and simplifies its
/// numbers.
#[test]
fn a_mechanism_that_rewards_a_lie_is_caught() {
    let bribed = Candidate::own(
        "bribed",
        Rule(|instance| {
            let claim = |user: usize| &instance.users()[user].demand[0];
            let all = (0..instance.users().len()).fold(Exact::ZERO, |sum, user| &sum + claim(user));
            (0..instance.users().len()).map(|user| with_part(instance, user, &(claim(user) / &all))).collect()
        }),
    );
    let finding = only(&bribed, divisible(Property::StrategyProofness), Domain::Positive);
    let found = finding.counterexample.expect("larger claims pay");
    stands_on_its_own(&bribed, &found);
    assert!(matches!(found.change, Some(Change::Claim { .. })));
    assert_eq!((found.draft.users.len(), found.draft.largest()), (2, 1), "{:?}", found.lines());
}

/// A violation within the numerical error of a solver is not reported; a larger one is.
#[test]
fn noise_is_not_a_counterexample() {
    struct Noisy(f64);
    impl Mechanism for Noisy {
        fn allocate(&self, instance: &Instance) -> Result<Allocation> {
            let mut allocation = Filling { norm: Norm::Largest }.allocate(instance)?;
            let noise = |(at, tasks): (usize, f64)| tasks * (1.0 + if at % 2 == 0 { self.0 } else { -self.0 });
            allocation.tasks = Tasks::Float(allocation.tasks.floats().into_iter().enumerate().map(noise).collect());
            Ok(allocation)
        }
    }
    let holds = |noise: f64| {
        let findings = check(&Candidate::own("noisy", Noisy(noise)), &Requirement::divisible(), Domain::Positive);
        findings.iter().filter(|finding| finding.holds()).count()
    };
    assert_eq!(holds(1e-8), 8, "all properties except resource monotonicity");
    assert!(holds(1e-3) < 4);
}

#[test]
fn findings_do_not_depend_on_the_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        let effort = Effort { grid: 300, random: 60, climbs: 8, steps: 80 };
        let search = SearchSpace { domain: Domain::Zeros, effort, seed: 9 };
        let findings = pool.install(|| survey(&ceei(), &Requirement::divisible(), &search, &|_| Ok(())));
        let told = |finding: Finding| {
            let lines = finding.counterexample.map(|found| found.lines());
            (finding.requirement, finding.instances, finding.cases, finding.unsolved, lines)
        };
        findings.expect("no caller ends the search").into_iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn mechanisms_and_resources_are_found_by_name() {
    let registry = Registry::new(BUILT_IN).with_mechanism("mine", Filling { norm: Norm::Largest });
    assert_eq!(Candidate::divisible(&registry, "mine").expect("its own mechanism").name(), "mine");
    let gpu = Candidate::divisible(&registry, "maxmin:licences").expect("any resource");
    assert_eq!(gpu.resources()[0], "licences");
    assert!(only(&gpu, divisible(Property::SingleResource), Domain::Positive).holds());
    assert!(Candidate::divisible(&registry, "fifo").is_err());
    for spec in BUILT_IN.examples() {
        assert!(
            spec.mechanism(&["cpu".to_owned()]).is_err() || Candidate::divisible(&registry, &spec.to_string()).is_ok()
        );
    }
    let shared: Arc<dyn Mechanism> = registry.mechanism("mine", &["cpu".to_owned()]).expect("its own mechanism");
    assert!(Arc::strong_count(&shared) >= 2);
}

#[test]
fn the_command_line_prints_writes_and_draws() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command =
        plimsoll(&["check", "--policy", "drf", "--policy", "asset", "--domain", "zeros", "--effort", "quick"]);
    command.current_dir(&dir).args(["--property", "population-monotonicity", "--property", "envy-freeness"]);
    command.args(["--write", "found", "--figure", "grid.svg"]);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "Zero demands allowed (zeros)",
        "Population monotonicity  fails",
        "Envy-freeness            holds",
        "drf: population monotonicity fails (zero demands allowed)",
        "leave: B leaves",
        "replay: plimsoll solve found/drf-population-monotonicity-zeros-before.toml --policy drf",
        "tried: all ",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("the file was written");
    let (before, after) =
        ["before", "after"].map(|which| read(&format!("found/drf-population-monotonicity-zeros-{which}.toml"))).into();
    let users = |text: &str| {
        let table: toml::Table = text.parse().expect("TOML");
        assert!(table["capacity"].as_table().is_some_and(|capacity| capacity.contains_key("cpu")));
        table["user"].as_array().expect("users").len()
    };
    assert_eq!((users(&before), users(&after)), (3, 2));
    assert!(read("grid.svg").contains("Population monotonicity"));
}

#[test]
fn the_command_line_speaks_json_and_says_what_is_wrong() {
    let quick =
        ["check", "--policy", "asset", "--effort", "quick", "--format", "json", "--property", "sharing-incentive"];
    let output = run(&mut plimsoll(&quick));
    assert!(output.status.success(), "{}", said(&output));
    let objects: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let object = &objects[0];
    assert_eq!((object["policy"].as_str(), object["result"].as_str()), (Some("asset"), Some("fails")));
    let found = &object["counterexample"];
    assert_eq!(found["instance"]["user"][0]["given_exact"], "3/7");
    assert_eq!(found["loser"], "A");
    for (args, expected) in [
        (vec!["check", "--policy", "drff"], "did you mean 'drf'"),
        (vec!["check", "--policy", "drf", "--policy", "drf"], "'drf' twice"),
        (vec!["check", "--policy", "fifo"], "a policy that has a static allocation"),
        (vec!["check", "--property", "envy"], "sharing-incentive"),
        (vec!["check", "--domain", "zero"], "positive, zeros"),
        (vec!["check", "--effort", "huge"], "quick, normal, thorough"),
        (vec!["check", "--figure", "grid.gif"], ".svg, .png or .pdf"),
        (vec!["check", "--property", "one-task-bound"], "--whole-tasks"),
        (vec!["check", "--whole-tasks", "--on-blocked", "wait"], "skip or stop"),
    ] {
        let output = run(&mut plimsoll(&args));
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said(&output).contains(expected), "{args:?}: {}", said(&output));
    }
}
