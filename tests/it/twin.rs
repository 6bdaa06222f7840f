//! Compares the engine with the slow reference implementation: the machine, start, finish and outcome of every attempt must be equal, on
//! hundreds of random workloads. This file runs and compares cases, and has those without labels, places, events and preemption.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use crate::property::search;
use crate::replay::{plimsoll, read_tasks, run, said};
use crate::slow::{Displacing, Inside, OnBlocked, Outcome, Placement, Policy, Ties, Whom, Written, Zoo};
use crate::workloads::{Case, RESOURCES, Weighting, job_name};

const CASES: u32 = 110;

/// A difference between the engine and the reference implementation.
struct Problem {
    /// The engine fails although the reference accepts the case, or accepts a case that the reference refuses. Otherwise the outcomes
    /// differ.
    refused: bool,
    text: String,
}

impl Problem {
    fn refused(text: String) -> Problem {
        Problem { refused: true, text }
    }
}

/// Compares the engine with the reference implementation on drawn cases. Fails with the smallest case that differs.
pub fn compare(cases: u32, draw: fn(u64) -> Case) {
    // A smaller case must differ in the same way.
    let refused = Cell::new(None);
    let law = |case: &Case| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        match difference(case, dir.path()) {
            Err(problem) if refused.get().is_none_or(|refused| refused == problem.refused) => {
                refused.set(Some(problem.refused));
                Err(problem.text)
            }
            _ => Ok(()),
        }
    };
    let Err(broken) = search(file!(), cases, draw, Case::smaller, law) else { return };
    let small = broken.case;
    // The folder outlives the test, so that the printed command can be run.
    let kept = tempfile::tempdir().expect("a temporary folder").keep();
    let _ = difference(&small, &kept);
    panic!(
        "a case differs\n{}\n{}\n{}\n{}\n{:?} {:?}\n{}\nto repeat: {:?}",
        small.csv(),
        small.machines_csv(),
        small.machine_events().unwrap_or_default(),
        small.quota.as_deref().unwrap_or_default(),
        small.policies,
        small.weights_csv(),
        broken.problem,
        command(&small, &kept),
    );
}

#[test]
fn pooled() {
    compare(CASES, |seed| {
        let mut case = Case::draw(seed, Weighting::None, &[Placement::Pooled]);
        case.policies.push(Policy::Line);
        case
    });
}

#[test]
fn first_fit_and_gradient_descent() {
    // Without devices `Fgd` is the same rule as first-fit.
    const RULES: &[Placement] = &[Placement::FirstFit, Placement::FirstFit, Placement::FirstFit, Placement::Fgd];
    compare(CASES, |seed| Case::draw(seed, Weighting::None, RULES));
}

#[test]
fn best_fit_and_worst_fit() {
    compare(CASES, |seed| Case::draw(seed, Weighting::None, &[Placement::BestFit, Placement::WorstFit]));
}

#[test]
fn spread_and_dot_product() {
    compare(CASES, |seed| Case::draw(seed, Weighting::None, &[Placement::Spread, Placement::DotProduct]));
}

#[test]
fn weighted_by_user() {
    compare(CASES, |seed| Case::draw(seed, Weighting::Scalar, &[Placement::Pooled, Placement::FirstFit]));
}

#[test]
fn weighted_by_user_and_resource() {
    const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit, Placement::BestFit];
    compare(CASES, |seed| Case::draw(seed, Weighting::Vector, RULES));
}

#[test]
fn orders_inside_users() {
    const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit];
    compare(CASES, |seed| Case::draw(seed, Weighting::None, RULES).ordered(seed));
}

#[test]
fn orders_that_are_written_as_expressions() {
    const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit, Placement::BestFit];
    compare(CASES, |seed| {
        let mut case = Case::draw(seed, Weighting::None, RULES).ordered(seed);
        // The large numbers of real logs, in half of the cases.
        if seed % 4 < 2 {
            for row in &mut case.rows {
                let times = 700_001;
                (row.submit, row.duration) = (row.submit * times, row.duration * times);
                row.estimate = row.estimate.map(|estimate| estimate * times);
                row.deadline = row.deadline.map(|deadline| deadline * times);
            }
        }
        case.inside = Inside::Written(Written::ALL[seed as usize % Written::ALL.len()]);
        case.policies = vec![Policy::Line, Policy::Drf];
        case
    });
}

#[test]
fn policies_with_memory() {
    compare(CASES, |seed| {
        let mut case = Case::draw(seed, Weighting::Vector, &[Placement::Pooled, Placement::FirstFit]);
        case.policies = case.with_memory(seed);
        case
    });
}

#[test]
fn policies_of_the_literature() {
    compare(CASES, |seed| {
        let mut case = Case::draw(seed, Weighting::Scalar, &[Placement::Pooled, Placement::FirstFit]);
        case.policies = case.literature(seed);
        case
    });
}

#[test]
fn policies_by_machine() {
    compare(CASES, |seed| {
        let mut case =
            Case::draw(seed, Weighting::Vector, &[Placement::FirstFit, Placement::BestFit, Placement::Pooled]);
        case.on_blocked = OnBlocked::Skip;
        case.policies = vec![Policy::Zoo(Zoo::Psdsf), Policy::Zoo(Zoo::Tetris([0, 250, 500, 999][seed as usize % 4]))];
        case
    });
}

#[test]
fn backfilling_first_come_first_served() {
    compare(CASES, |seed| Case::draw(seed, Weighting::None, &[Placement::Pooled]).backfilled(seed));
}

#[test]
fn backfilling_in_the_order_of_other_policies() {
    compare(CASES, |seed| Case::draw(seed, Weighting::Scalar, &[Placement::Pooled]).ordered(seed).backfilled(seed));
}

#[test]
fn machines_of_unlike_speed() {
    const RULES: &[Placement] = &[Placement::FirstFit, Placement::BestFit, Placement::WorstFit];
    compare(CASES, |seed| Case::draw(seed, Weighting::None, RULES).on_unlike_machines(seed).ordered(seed));
}

/// The policy of a case with quota groups; its file is in the folder of the trace.
const QUOTA: &str = "quota:groups.toml";

/// Returns the name of a policy of a case.
fn policy_of(case: &Case, policy: Policy) -> String {
    if case.quota.is_some() { QUOTA.to_owned() } else { case.policy(policy) }
}

/// Returns the command that replays a case; its files must be in `dir`.
pub fn command(case: &Case, dir: &Path) -> Command {
    let placement = match case.placement {
        Placement::Pooled => "pooled",
        Placement::FirstFit => "first-fit",
        Placement::BestFit => "best-fit",
        Placement::WorstFit => "worst-fit",
        Placement::Spread => "spread",
        Placement::DotProduct => "dot-product",
        Placement::Fgd => "fgd",
    };
    let ties = match case.ties {
        Ties::LeastRecentlyServed => "least-recently-served",
        Ties::LowestId => "lowest-id",
        Ties::HighestId => "highest-id",
        Ties::FewestRunning => "fewest-running",
    };
    let on_blocked = match case.on_blocked {
        OnBlocked::Skip => "skip",
        OnBlocked::Stop => "stop",
        OnBlocked::Easy => "easy",
        OnBlocked::Conservative => "conservative",
    };
    let machines = if case.has_machines_file() { dir.join("machines.csv").display().to_string() } else { case.spec() };
    let mut command = plimsoll(&["replay"]);
    command.arg(dir.join("trace.csv")).args(["--machines", &machines, "--placement", placement]);
    command.args(["--on-blocked", on_blocked, "--ties", ties, "--tasks", "-o"]).arg(dir.join("out"));
    if let Some((curve, _)) = case.slowdown {
        command.args(["--slowdown", curve]);
    }
    if case.quota.is_some() {
        command.current_dir(dir).args(["--policy", QUOTA]);
    }
    for &policy in case.policies.iter().filter(|_| case.quota.is_none()) {
        command.args(["--policy", &case.policy(policy)]);
    }
    if case.weights_csv().is_some() {
        command.arg("--weights").arg(dir.join("weights.csv"));
    }
    command.arg("--audit");
    if !case.sites.is_empty() {
        command.args(["--on-failure", if case.lose { "lose" } else { "requeue" }]);
        command.args(["--fall-back", &case.fall_back.map_or("never".to_owned(), |span| format!("{span}us"))]);
    }
    if !case.events.is_empty() {
        command.arg("--machine-events").arg(dir.join("events.csv"));
    }
    if let Some((span, whom)) = case.preempt {
        let from = match whom {
            Whom::Any | Whom::Share => "any",
            Whom::SameUser => "same-user",
            Whom::SameGroup => "same-group",
            Whom::AboveQuota => "above-quota",
        };
        command.args(["--preempt", &format!("{span}us"), "--preempt-from", from]);
        command.args(["--preempt-for", if whom == Whom::Share { "share" } else { "urgent" }]);
    }
    if !case.sites.is_empty() || case.preempt.is_some() {
        let Displacing { min_run, limit, checkpoint, delay } = case.preemption_limits;
        for (option, span) in [("--min-run", min_run), ("--checkpoint", checkpoint), ("--restart-delay", delay)] {
            command.args([option, &format!("{span}us")]);
        }
        let limit = limit.map_or("none".to_owned(), |(most, within)| format!("{most}/{within}us"));
        command.args(["--stop-limit", &limit]);
    }
    if let Some(span) = case.hoard {
        command.args(["--hoard", &format!("{span}us")]);
    }
    for &resource in &case.devices {
        command.args(["--devices", RESOURCES[resource]]);
    }
    if let Some(faults) = &case.faults {
        command.args(["--faults", faults]);
    }
    command
}

/// Writes the files of a case.
pub fn write(case: &Case, dir: &Path) {
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    write("trace.csv", case.csv());
    if case.has_machines_file() {
        write("machines.csv", case.machines_csv());
    }
    if let Some(text) = case.machine_events() {
        write("events.csv", text);
    }
    if let Some(text) = &case.quota {
        write("groups.toml", text.clone());
    }
    if let Some(text) = case.weights_csv() {
        write("weights.csv", text);
    }
}

/// Returns the expected exit code of a run: 1 if no task starts under some policy, otherwise 0.
fn code(expected: &[Vec<Outcome>]) -> i32 {
    i32::from(expected.iter().any(|tasks| tasks.iter().all(|task| task.start.is_none())))
}

/// Runs a case under all its policies. Errors: the first difference from the reference implementation.
fn difference(case: &Case, dir: &Path) -> Result<(), Problem> {
    let mut case = case.clone();
    // Karma refuses a cluster with less than one core, the size of a slice.
    if case.machines().iter().map(|machine| machine[0]).sum::<u64>() < 1000 {
        case.policies.retain(|policy| !matches!(policy, Policy::Zoo(Zoo::Karma(_))));
    }
    if case.policies.is_empty() {
        return Ok(());
    }
    write(&case, dir);
    let output = run(&mut command(&case, dir));
    let expected: Result<Vec<Vec<Outcome>>, usize> =
        case.policies.iter().map(|&policy| case.expected(policy)).collect();
    let refused = output.status.code() == Some(2) && said(&output).contains("gang");
    match expected {
        Err(_) if refused => Ok(()),
        Err(row) => {
            Err(Problem::refused(format!("the gang of row {row} has no room: {} {}", output.status, said(&output))))
        }
        Ok(expected) if output.status.code() != Some(code(&expected)) => {
            Err(Problem::refused(format!("{}: {}", output.status, said(&output))))
        }
        Ok(expected) => case.policies.iter().zip(expected).try_for_each(|(&policy, expected)| {
            let name = policy_of(&case, policy);
            let engine = read_tasks(&dir.join("out"), &name).map_err(Problem::refused)?;
            first_difference(engine, named(expected))
                .map_err(|text| Problem { refused: false, text: format!("{name}: {text}") })
        }),
    }
}

/// Outcomes with the names of jobs.
pub type Named = Vec<(String, Outcome)>;

/// Returns outcomes with the names of their jobs.
pub fn named(outcomes: Vec<Outcome>) -> Named {
    outcomes.into_iter().map(|outcome| (job_name(outcome.job), outcome)).collect()
}

/// Compares two lists of outcomes regardless of their order. Errors: the earliest outcomes that differ.
pub fn first_difference(engine: Named, slow: Named) -> Result<(), String> {
    let sorted = |mut outcomes: Named| {
        outcomes.iter_mut().for_each(|(_, outcome)| outcome.job = 0);
        outcomes
            .sort_by_cached_key(|(name, outcome)| (outcome.start.unwrap_or(u64::MAX), name.clone(), outcome.clone()));
        outcomes
    };
    let (engine, slow) = (sorted(engine), sorted(slow));
    let only = |mine: &Named, others: &Named| -> String {
        let alone = mine.iter().filter(|row| !others.contains(row)).take(6);
        alone.map(|(name, outcome)| format!("\n    {name}, {outcome:?}")).collect()
    };
    if engine == slow {
        return Ok(());
    }
    Err(format!("the first outcomes that differ\n  engine:{}\n  slow:{}", only(&engine, &slow), only(&slow, &engine)))
}

/// The comparison detects a change of any field of one attempt, and a missing attempt.
#[test]
fn the_comparison_sees_every_field() {
    let case = Case::draw(1, Weighting::None, &[Placement::FirstFit]);
    let right = named(case.expected(Policy::Drf).expect("no gang is too large"));
    let backwards = right.iter().rev().cloned().collect();
    assert_eq!(first_difference(backwards, right.clone()), Ok(()));
    let changes: [fn(&mut Outcome); 7] = [
        |outcome| outcome.start = outcome.start.map_or(Some(0), |start| Some(start + 1)),
        |outcome| outcome.finish = outcome.finish.map_or(Some(0), |_| None),
        |outcome| outcome.machine = outcome.machine.map_or(Some(0), |machine| Some(machine + 1)),
        |outcome| outcome.task += 1,
        |outcome| outcome.attempt += 1,
        |outcome| outcome.fate.push('!'),
        |outcome| outcome.devices.push('!'),
    ];
    for change in changes {
        let mut wrong = right.clone();
        change(&mut wrong[0].1);
        assert!(first_difference(wrong, right.clone()).is_err());
    }
    assert!(first_difference(right[1..].to_vec(), right).is_err());
}

/// Returns the expected outcomes of a case without gangs that are too large.
fn expected(case: &Case, policy: Policy) -> Named {
    named(case.expected(policy).expect("no gang is too large"))
}

/// The draws cover the intended corner cases: ties, zero durations, blocked heads, sets too large, stages.
#[test]
fn the_draws_reach_the_corners() {
    let cases: Vec<Case> = (0..100).map(|seed| Case::draw(seed, Weighting::None, &[Placement::FirstFit])).collect();
    let share = |reached: fn(&Case) -> bool| cases.iter().filter(|case| reached(case)).count();
    let waits = |case: &Case| {
        let started = expected(case, Policy::Drf);
        started.iter().any(|(_, o)| o.start.is_some_and(|start| case.rows.iter().all(|row| row.submit != start)))
    };
    assert!(share(|case| case.rows.windows(2).any(|pair| pair[0].submit == pair[1].submit)) > 60);
    assert!(share(|case| case.rows.iter().any(|row| row.duration == 0)) > 40);
    assert!(share(|case| case.rows.iter().any(|row| !row.after.is_empty())) > 40);
    assert!(share(|case| case.rows.iter().any(|row| row.gang && row.tasks > 1)) > 15);
    assert!(share(|case| expected(case, Policy::Drf).iter().any(|(_, o)| o.start.is_none())) > 10);
    assert!(share(waits) > 40);
    let differ = |a: Policy, b: Policy| cases.iter().filter(|case| expected(case, a) != expected(case, b)).count();
    assert!(differ(Policy::Drf, Policy::Fifo) > 30);
    assert!(differ(Policy::Drf, Policy::Asset) > 15);
    assert!(differ(Policy::Drf, Policy::MaxMin(0)) > 15);
}
