//! `plimsoll check` with whole tasks: policies of the simulation, and their properties up to one task.

use plimsoll::books::Books;
use plimsoll::fair::OnBlocked;
use plimsoll::fair::{self, Exact, Mechanism, Norm, ServingKey, Tasks, WholeTasks};
use plimsoll::policy::{BUILT_IN, Capabilities, NamedPolicy, Policy, Queue, Rank, Registry, Setup};
use plimsoll::properties::{Candidate, Domain, Draft, DraftUser, Finding, Property, Reading, Requirement};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::check::{check, only};
use crate::replay::{plimsoll, run, said};

fn simulated(name: &str, on_blocked: OnBlocked) -> Candidate {
    let policy = Registry::new(BUILT_IN).policy(name).expect("a built-in policy");
    Candidate::integral(policy, on_blocked).expect("a policy for any cluster")
}

/// With whole tasks and a round that ends at the first blocked user, the properties of divisible tasks fail, but hold up to one task.
#[test]
fn whole_tasks_keep_promises_up_to_one_task() {
    let stop = check(&simulated("drf", OnBlocked::Stop), &Requirement::integral(), Domain::Positive);
    let holds = |findings: &[Finding], property: Property, reading: Reading| {
        let requirement = Requirement { property, reading };
        let finding = findings.iter().find(|finding| finding.requirement == requirement).expect("it was checked");
        assert!(finding.cases > 100 || finding.counterexample.is_some(), "{}", requirement.title());
        finding.holds()
    };
    for property in [Property::SharingIncentive, Property::EnvyFreeness] {
        assert!(!holds(&stop, property, Reading::Whole), "{}", property.name());
        assert!(holds(&stop, property, Reading::UpToOneTask), "{}", property.name());
    }
    for property in [Property::Levels, Property::SingleResource, Property::Bottleneck] {
        assert!(holds(&stop, property, Reading::UpToOneTask), "{}", property.name());
    }
    assert!(
        !holds(&stop, Property::EnvyFreeness, Reading::UpToOneOwnTask),
        "users are ordered by the share before the task"
    );
    assert!(!holds(&stop, Property::ParetoEfficiency, Reading::Whole), "a blocked user blocks the others");
    let skip = check(&simulated("drf", OnBlocked::Skip), &Requirement::integral(), Domain::Positive);
    assert!(holds(&skip, Property::ParetoEfficiency, Reading::Whole));
    assert!(holds(&skip, Property::EnvyFreeness, Reading::UpToOneTask));
    assert!(
        !holds(&skip, Property::Levels, Reading::UpToOneTask),
        "small tasks use room that is too small for a large one"
    );
    let slots = only(
        &simulated("slot:1", OnBlocked::Skip),
        Requirement { property: Property::Feasibility, reading: Reading::Whole },
        Domain::Positive,
    );
    assert!(!slots.holds(), "slots overfill machines");
}

/// Parkes, Procaccia and Shah, EC 2012, section 5 (SequentialMinMax): users are ordered by the share that they would have with one more
/// task. Whole tasks then have Pareto efficiency, the unrelaxed sharing incentive, and envy-freeness up to one task of the user's own.
#[test]
fn sequential_min_max_keeps_what_its_paper_promises() {
    let (on_blocked, ties) = (OnBlocked::Skip, fair::Ties::default());
    let after = WholeTasks { order: ServingKey::After(Norm::Largest), on_blocked, ties, onto: fair::FillingRoom::Pool };
    let (exact, relaxed) = (Reading::Whole, Reading::UpToOneTask);
    let candidate = Candidate::own("min-max", after);
    for (property, reading, expected) in [
        (Property::Feasibility, exact, true),
        (Property::SharingIncentive, exact, true),
        (Property::EnvyFreeness, exact, false),
        (Property::EnvyFreeness, relaxed, false),
        (Property::EnvyFreeness, Reading::UpToOneOwnTask, true),
        (Property::ParetoEfficiency, exact, true),
        (Property::StrategyProofness, exact, false),
    ] {
        let finding = only(&candidate, Requirement { property, reading }, Domain::Positive);
        assert_eq!(finding.holds(), expected, "{}: {:?}", finding.requirement.title(), finding.counterexample);
    }
}

/// If every task fits alone, a round of the engine launches the same tasks as progressive filling with whole tasks.
#[test]
fn a_round_of_the_engine_is_progressive_filling() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..300 {
        let dims = rng.random_range(1..=3);
        let mut amounts = |least: u64, most: u64| (0..dims).map(|_| rng.random_range(least..=most)).collect::<Vec<_>>();
        let draft = Draft { capacity: amounts(9, 60), users: (0..4).map(|_| DraftUser::new(amounts(1, 9))).collect() };
        for name in ["drf", "asset", "maxmin:cpu", "slot:2"] {
            for on_blocked in [OnBlocked::Skip, OnBlocked::Stop] {
                let candidate = simulated(name, on_blocked);
                let instance = draft.instance(candidate.resources()).expect("an instance");
                let spec = BUILT_IN.parse(name).expect("a built-in policy");
                let whole = spec.whole_mechanism(instance.resources(), on_blocked, fair::Ties::default());
                let expected = whole.and_then(|whole| whole.allocate(&instance)).expect("whole tasks").tasks;
                let given = candidate.allocate(&instance).expect("a round").tasks;
                assert_eq!(given, expected, "{name}, {on_blocked:?}: {draft:?}");
            }
        }
    }
}

/// A round of the engine ends like the paper's Table 1, with three tasks of A and two of B.
#[test]
fn a_round_of_the_engine_is_the_papers_table_1() {
    let draft = Draft { capacity: vec![9, 18], users: vec![DraftUser::new(vec![1, 4]), DraftUser::new(vec![3, 1])] };
    let candidate = simulated("drf", OnBlocked::Stop);
    let given = candidate.allocate(&draft.instance(candidate.resources()).expect("an instance")).expect("a round");
    assert_eq!(given.tasks, Tasks::Exact(vec![Exact::from(3), Exact::from(2)]));
}

/// Always serves the first user.
struct Favourite;

impl Policy for Favourite {
    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(queue.user.0))
    }
}

impl Capabilities for Favourite {}

#[test]
fn a_users_own_policy_is_caught() {
    let own = NamedPolicy::new("favourite", |_: &Setup| Ok(Box::new(Favourite) as Box<dyn Policy>));
    let candidate = Candidate::integral(own, OnBlocked::Skip).expect("a policy for any cluster");
    for property in [Property::EnvyFreeness, Property::SharingIncentive] {
        let requirement = Requirement { property, reading: Reading::UpToOneTask };
        let found =
            only(&candidate, requirement, Domain::Positive).counterexample.expect("the favourite is served first");
        assert_eq!((found.draft.users.len(), found.draft.dims()), (2, 1), "{:?}", found.lines());
    }
}

/// A counterexample with whole tasks has the allocation of the engine. The `solve` command that `check` prints for it has the same
/// result.
#[test]
fn replays_of_whole_tasks_lead_to_what_was_found() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command = plimsoll(&["check", "--whole-tasks", "--on-blocked", "stop", "--effort", "quick"]);
    command.args(["--policy", "drf", "--policy", "maxmin:cpu", "--policy", "ceei", "--domain", "zeros"]);
    command.args(["--format", "json", "--write", "found"]);
    let output = run(command.current_dir(&dir));
    assert!(output.status.success(), "{}", said(&output));
    let objects: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut said_to = plimsoll(&["check", "--whole-tasks", "--on-blocked", "stop", "--effort", "quick"]);
    said_to.args(["--policy", "drf", "--policy", "maxmin:cpu", "--policy", "ceei", "--domain", "zeros"]);
    let text = run(said_to.current_dir(&dir).args(["--write", "found"]));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let mut replayed = 0;
    for object in objects.as_array().expect("a list") {
        let found = &object["counterexample"];
        let policy = object["policy"].as_str().expect("a name");
        let worlds =
            [&found["instance"], &found["after"], &found["lie"]].into_iter().filter(|world| world["user"].is_array());
        for (file, world) in found["files"].as_array().into_iter().flatten().zip(worlds) {
            let file = file.as_str().expect("a path");
            if !text.contains(&format!("replay: plimsoll solve {file} ")) {
                continue;
            }
            let mut solve = plimsoll(&["solve", file, "--policy", policy, "--whole-tasks", "--on-blocked", "stop"]);
            let output = run(solve.current_dir(&dir).args(["--format", "json"]));
            let solved: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let column = |users: &serde_json::Value, key: &str| -> Vec<String> {
                users.as_array().expect("users").iter().map(|user| user[key].to_string()).collect()
            };
            assert_eq!(
                column(&solved["users"], "tasks_exact"),
                column(&world["user"], "given_exact"),
                "{policy}: {file}"
            );
            replayed += 1;
        }
    }
    assert!(replayed > 20, "only {replayed} were replayed");
}
