//! The engine of the page: its row equals that of an ordinary run, and the changes of a reader have their effects.

use std::path::Path;

use plimsoll::experiment::{RepeatedRun, Study, StudyRun, SummaryValue};
use plimsoll::page::{PageInput, unsupported_policy};
use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll_page_engine::{PageChanges, PageEngine};
use plimsoll_runs::NoObserver;

use crate::docs::root;
use crate::reference_random::random_plan;

/// Returns the study of a plan. Panics: the plan is not valid.
pub fn study(plan: &Path, set: &[&str]) -> Study {
    let set: Vec<String> = set.iter().map(|&change| change.to_owned()).collect();
    Study::read(plan, &set, &Registry::new(BUILT_IN)).unwrap_or_else(|error| panic!("{}: {error}", plan.display()))
}

/// Returns the first supported policy of a study at or after `from`, and the input of its first run; `None` if the engine in a page does not
/// support the plan or its policies.
pub fn input(study: &Study, from: usize) -> Option<(usize, PageInput)> {
    let registry = Registry::new(BUILT_IN);
    let policies = &study.cells[0].policies;
    let supported = |at: &usize| unsupported_policy(&policies[*at], &registry).is_none();
    let policy = (0..policies.len()).map(|at| (from + at) % policies.len()).find(supported)?;
    let run = RepeatedRun::new(study, StudyRun { cell: 0, policy, run: 0 }).expect("a workload");
    Some((policy, PageInput::new(&run).ok()?))
}

/// Writes the files of a random plan, and returns its study.
pub fn random_study(number: u64, folder: &Path) -> Study {
    for (name, text) in random_plan(number) {
        std::fs::write(folder.join(name), text).expect("a writable folder");
    }
    study(&folder.join("plan.toml"), &[])
}

/// Compares the row of a policy's first run with that of the ordinary run.
fn compare(name: &str, study: &Study, policy: usize, input: PageInput) {
    let run = RepeatedRun::new(study, StudyRun { cell: 0, policy, run: 0 }).expect("a workload");
    let ordinary = run.observe(run.plan(), None, &mut NoObserver, &mut |_, _| Ok(()));
    let changes = PageChanges { policy: Some(run.plan().policies[policy].name.clone()), ..PageChanges::default() };
    let engine = PageEngine::new(input.request, input.trace).expect("rows");
    let row = match (ordinary, engine.run(&changes, &mut |_, _| Ok(()))) {
        (Ok(ordinary), Ok(tables)) => (ordinary, tables.runs),
        (Err(error), Err(other)) => return assert_eq!(error.to_string(), other.to_string(), "{name}"),
        (ordinary, other) => panic!("{name}: {:?}, {:?}", ordinary.err(), other.err()),
    };
    let (ordinary, text) = row;
    let mut lines = csv::Reader::from_reader(text.as_bytes());
    let columns = lines.headers().expect("a header").clone();
    let fields = lines.records().next().expect("a row").expect("a row");
    assert!(columns.len() > 80 && columns.len() <= ordinary.values.len(), "{name}: {columns:?}");
    for ((column, value), (header, field)) in ordinary.values.iter().zip(columns.iter().zip(&fields)) {
        let value = match value {
            SummaryValue::Int(value) => value.map(|value| value.to_string()).unwrap_or_default(),
            SummaryValue::Float(value) => value.map(|value| value.to_string()).unwrap_or_default(),
            SummaryValue::Text(value) => value.clone(),
        };
        assert_eq!((column.as_str(), value.as_str()), (header, field), "{name}");
    }
}

#[test]
fn rows_equal_those_of_ordinary_runs() {
    for (plan, set) in
        [("facebook", "seeds=1"), ("heavy-users", "seeds=1"), ("gangs", "seeds=1"), ("preemption", "seeds=1")]
    {
        let study = study(&root().join(format!("experiments/{plan}.toml")), &[set]);
        let policies = study.cells[0].policies.len();
        let mut seen = 0;
        for policy in 0..policies {
            let Some((policy, input)) = input(&study, policy) else { continue };
            compare(&format!("{plan}, policy {policy}"), &study, policy, input);
            seen += 1;
        }
        assert_eq!(seen, policies, "{plan}");
    }
}

#[test]
fn rows_of_random_plans_equal_those_of_ordinary_runs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut seen = 0;
    for number in 0..40 {
        let study = random_study(number, dir.path());
        let Some((policy, input)) = input(&study, 0) else { continue };
        compare(&format!("random plan {number}"), &study, policy, input);
        seen += 1;
    }
    assert!(seen >= 20, "{seen} plans are supported");
}

#[test]
fn changes_have_their_effects_and_wrong_ones_are_refused() {
    let study = study(&root().join("experiments/facebook.toml"), &["workload.hours=0.1", "workload.load=0.6"]);
    let (_, input) = input(&study, 0).expect("a supported plan");
    let engine = PageEngine::new(input.request, input.trace).expect("rows");
    let run = |changes: &PageChanges| engine.run(changes, &mut |_, _| Ok(()));
    let value = |changes: PageChanges, column: &str| -> f64 {
        let tables = run(&changes).expect("a run");
        let mut lines = csv::Reader::from_reader(tables.runs.as_bytes());
        let at = lines.headers().expect("a header").iter().position(|name| name == column).expect(column);
        lines.records().next().expect("a row").expect("a row")[at].parse().expect("a number")
    };
    let none = PageChanges::default();
    assert_eq!(value(none.clone(), "machines"), 400.0);
    let halved = PageChanges { machines: vec![200], ..none.clone() };
    assert_eq!(value(halved.clone(), "machines"), 200.0);
    assert!(value(halved, "wait_mean_s") > value(none.clone(), "wait_mean_s"));
    let submits = |changes: &PageChanges| -> Vec<u64> {
        let jobs = run(changes).expect("a run").jobs;
        let mut lines = csv::Reader::from_reader(jobs.as_bytes());
        let at = lines.headers().expect("a header").iter().position(|name| name == "submit_us").expect("a column");
        let mut submits: Vec<u64> =
            lines.records().map(|row| row.expect("a row")[at].parse().expect("a time")).collect();
        submits.sort_unstable();
        submits
    };
    // Half the load doubles the times between submissions.
    let (before, after) = (submits(&none), submits(&PageChanges { load: Some("0.5".to_owned()), ..none.clone() }));
    assert!(before.len() > 50 && before.len() == after.len());
    let first = before[0];
    assert!(before.iter().zip(&after).all(|(before, after)| *after == first + 2 * (before - first)));
    // A large weight lets a job of many tasks end earlier on few machines.
    let drf = PageChanges { policy: Some("drf".to_owned()), machines: vec![100], ..none.clone() };
    let heavy = PageChanges { weights: vec![("u3".to_owned(), "100".to_owned())], ..drf.clone() };
    let end = |changes: &PageChanges| -> u64 {
        let jobs = run(changes).expect("a run").jobs;
        let row = jobs.lines().find(|row| row.starts_with("job3,u3,")).expect("the job").to_owned();
        row.split(',').nth(5).expect("finish_us").parse().expect("a time")
    };
    assert!(end(&heavy) < end(&drf), "{} {}", end(&heavy), end(&drf));
    let wrong = [
        (PageChanges { policy: Some("drff".to_owned()), ..none.clone() }, "did you mean"),
        (PageChanges { policy: Some("pnorm:2".to_owned()), ..none.clone() }, "without powers"),
        (PageChanges { load: Some("0".to_owned()), ..none.clone() }, "from 0.01 to 100"),
        (PageChanges { load: Some("fast".to_owned()), ..none.clone() }, "from 0.01 to 100"),
        (PageChanges { machines: vec![1, 2], ..none.clone() }, "1 numbers from 1"),
        (PageChanges { machines: vec![0], ..none.clone() }, "1 numbers from 1"),
        (PageChanges { weights: vec![("u1".to_owned(), "-1".to_owned())], ..none }, "a weight above 0"),
    ];
    for (changes, expected) in wrong {
        let message = run(&changes).expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}");
    }
}
