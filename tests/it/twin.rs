//! Compares the engine with the slow twin: the machine, start and finish of every task must be equal, on hundreds of random workloads.

use std::path::Path;

use crate::property::search;
use crate::replay::{plimsoll, read_tasks, run, said};
use crate::slow::{OnBlocked, Outcome, Placement, Policy, Ties, simulate};
use crate::slow_inside::Inside;
use crate::slow_keys::Written;
use crate::slow_memory::Memory;
use crate::slow_zoo::{Credits, Factors, Zoo};
use crate::workloads::{Case, Weighting, job_name};

const CASES: u32 = 110;

/// Compares the engine with the slow twin on drawn cases. Fails with the smallest case that differs.
fn compare(draw: fn(u64) -> Case) {
    let difference = |case: &Case| difference(case, tempfile::tempdir().expect("a temporary folder").path());
    if let Err(broken) = search(file!(), CASES, draw, smaller, difference) {
        let small = broken.case;
        // The folder outlives the test, so that the printed command can be run.
        let kept = tempfile::tempdir().expect("a temporary folder").keep();
        let _ = self::difference(&small, &kept);
        panic!(
            "a case differs; shrunk to {} rows\n{}\nweights: {:?}\n{}\nto repeat: {:?}",
            small.rows.len(),
            small.csv(),
            small.weights_csv(),
            broken.problem,
            command(&small, &kept, &small.spec()),
        );
    }
}

#[test]
fn pooled() {
    compare(|seed| {
        let mut case = Case::draw(seed, Weighting::None, &[Placement::Pooled]);
        case.policies.push(Policy::Line);
        case
    });
}

#[test]
fn first_fit_and_gradient_descent() {
    // Without devices `Fgd` is the same rule as first-fit.
    const RULES: &[Placement] = &[Placement::FirstFit, Placement::FirstFit, Placement::FirstFit, Placement::Fgd];
    compare(|seed| Case::draw(seed, Weighting::None, RULES));
}

#[test]
fn best_fit_and_worst_fit() {
    compare(|seed| Case::draw(seed, Weighting::None, &[Placement::BestFit, Placement::WorstFit]));
}

#[test]
fn spread_and_dot_product() {
    compare(|seed| Case::draw(seed, Weighting::None, &[Placement::Spread, Placement::DotProduct]));
}

#[test]
fn weighted_by_user() {
    compare(|seed| Case::draw(seed, Weighting::Scalar, &[Placement::Pooled, Placement::FirstFit]));
}

#[test]
fn weighted_by_user_and_resource() {
    const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit, Placement::BestFit];
    compare(|seed| Case::draw(seed, Weighting::Vector, RULES));
}

#[test]
fn orders_inside_users() {
    const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit];
    compare(|seed| Case::draw(seed, Weighting::None, RULES).ordered(seed));
}

#[test]
fn orders_that_are_written_as_expressions() {
    const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit, Placement::BestFit];
    compare(|seed| {
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
    compare(|seed| {
        let mut case = Case::draw(seed, Weighting::Vector, &[Placement::Pooled, Placement::FirstFit]);
        let ends = case.rows.iter().map(|row| row.submit + row.duration);
        let last = ends.max().unwrap_or(1);
        let half_lives = [None, Some(0), Some(1 + last / 50), Some(1 + last / 7), Some(1 + 3 * last)];
        let memory = |at: u64| Memory { half_life: half_lives[at as usize % 5], period: 1 + last / (1 + at / 5 % 60) };
        case.policies = vec![Policy::LongTerm(memory(seed)), Policy::Afs(memory(1 + seed % 4 + seed / 16 % 100 * 5))];
        case
    });
}

#[test]
fn policies_of_the_literature() {
    compare(|seed| {
        let mut case = Case::draw(seed, Weighting::Scalar, &[Placement::Pooled, Placement::FirstFit]);
        let ends = case.rows.iter().map(|row| row.submit + row.duration);
        let last = ends.max().unwrap_or(1);
        let half_lives = [None, Some(0), Some(1 + last / 50), Some(1 + last / 7), Some(1 + 3 * last)];
        let memory = |at: u64| Memory { half_life: half_lives[at as usize % 5], period: 1 + last / (1 + at / 5 % 60) };
        let factors = Factors {
            age: [0, 1, 1000][seed as usize % 3],
            fairshare: [0, 1, 10_000][seed as usize / 3 % 3],
            priority: [0, 1][seed as usize / 9 % 2],
            max_age: 1 + last / (1 + seed % 4),
        };
        let credits = Credits {
            quantum: 1 + last / (1 + seed % 50),
            guaranteed: [500, 0, 1000, 900, 333][seed as usize / 7 % 5],
            credits: [0, 3, 20, 1000][seed as usize / 2 % 4],
            pool: seed % 2 == 0,
        };
        let zoo = [
            Zoo::FairTree(memory(seed), seed % 2 == 0),
            Zoo::Multifactor(memory(seed + 1), factors),
            Zoo::TimeBased(memory(seed + 2), [0, 1000, 500, 3000][seed as usize % 4]),
            Zoo::Karma(credits),
            Zoo::Hdrf,
            Zoo::Tsf,
        ];
        case.policies = zoo.map(Policy::Zoo).to_vec();
        case
    });
}

#[test]
fn policies_by_machine() {
    compare(|seed| {
        let mut case =
            Case::draw(seed, Weighting::Vector, &[Placement::FirstFit, Placement::BestFit, Placement::Pooled]);
        case.on_blocked = OnBlocked::Skip;
        case.policies = vec![Policy::Zoo(Zoo::Psdsf), Policy::Zoo(Zoo::Tetris([0, 250, 500, 999][seed as usize % 4]))];
        case
    });
}

#[test]
fn backfilling_first_come_first_served() {
    compare(|seed| Case::draw(seed, Weighting::None, &[Placement::Pooled]).backfilled(seed));
}

#[test]
fn backfilling_in_the_order_of_other_policies() {
    compare(|seed| Case::draw(seed, Weighting::Scalar, &[Placement::Pooled]).ordered(seed).backfilled(seed));
}

#[test]
fn machines_of_unlike_speed() {
    const RULES: &[Placement] = &[Placement::FirstFit, Placement::BestFit, Placement::WorstFit];
    compare(|seed| Case::draw(seed, Weighting::None, RULES).on_unlike_machines(seed).ordered(seed));
}

/// Returns the command that replays a case on these machines. The files of the case are in `dir`.
pub fn command(case: &Case, dir: &Path, machines: &str) -> std::process::Command {
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
    let mut command = plimsoll(&["replay"]);
    command.arg(dir.join("trace.csv")).args(["--machines", machines, "--placement", placement]);
    command.args(["--on-blocked", on_blocked, "--ties", ties, "--tasks", "-o"]).arg(dir.join("out"));
    if let Some((curve, _)) = case.slowdown {
        command.args(["--slowdown", curve]);
    }
    for &policy in &case.policies {
        command.args(["--policy", &case.policy(policy)]);
    }
    if case.weights_csv().is_some() {
        command.arg("--weights").arg(dir.join("weights.csv"));
    }
    command
}

/// Runs a case under all its policies. Errors: the first difference from the slow twin.
fn difference(case: &Case, dir: &Path) -> Result<(), String> {
    let mut case = case.clone();
    // Karma refuses a cluster with less than one core, the size of a slice.
    if case.machines().iter().map(|machine| machine[0]).sum::<u64>() < 1000 {
        case.policies.retain(|policy| !matches!(policy, Policy::Zoo(Zoo::Karma(_))));
    }
    let case = &case;
    if case.policies.is_empty() {
        return Ok(());
    }
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    write("trace.csv", case.csv());
    if let Some(text) = case.weights_csv() {
        write("weights.csv", text);
    }
    let mut machines = case.spec();
    if !case.speeds.is_empty() {
        write("machines.csv", case.machines_csv());
        machines = dir.join("machines.csv").display().to_string();
    }
    let output = run(&mut command(case, dir, &machines));
    let all: Vec<Vec<(String, Outcome)>> = case.policies.iter().map(|&policy| expected(case, policy)).collect();
    // A run fails if no task starts under some policy.
    let idle = all.iter().any(|tasks| tasks.iter().all(|(_, task)| task.start.is_none()));
    if output.status.code() != Some(i32::from(idle)) {
        return Err(format!("{}: {}", output.status, said(&output)));
    }
    case.policies.iter().zip(all).try_for_each(|(&policy, expected)| {
        let name = case.policy(policy);
        let engine = read_tasks(&dir.join("out"), &name)?;
        first_difference(&engine, &expected).map_err(|text| format!("{name}: {text}"))
    })
}

fn expected(case: &Case, policy: Policy) -> Vec<(String, Outcome)> {
    simulate(&case.rows, &case.config(policy)).into_iter().map(|outcome| (job_name(outcome.job), outcome)).collect()
}

/// Compares two lists of outcomes regardless of their order. Errors: the earliest task that differs.
fn first_difference(engine: &[(String, Outcome)], slow: &[(String, Outcome)]) -> Result<(), String> {
    type Row<'a> = (u64, &'a str, u64, Option<usize>, Option<u64>, Option<u64>);
    fn sorted(outcomes: &[(String, Outcome)]) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = outcomes
            .iter()
            .map(|(job, o)| (o.start.unwrap_or(u64::MAX), job.as_str(), o.task, o.machine, o.start, o.finish))
            .collect();
        rows.sort();
        rows
    }
    let (engine, slow) = (sorted(engine), sorted(slow));
    match engine.iter().zip(&slow).find(|(engine, slow)| engine != slow) {
        Some((engine, slow)) => Err(format!(
            "the first difference (job, task, machine, start, finish)\n  engine: {:?}\n  slow:   {:?}",
            (engine.1, engine.2, engine.3, engine.4, engine.5),
            (slow.1, slow.2, slow.3, slow.4, slow.5),
        )),
        None if engine.len() != slow.len() => Err(format!("{} tasks, the slow twin has {}", engine.len(), slow.len())),
        None => Ok(()),
    }
}

/// Returns smaller cases. Each has only one of the policies, or lacks one job or one task.
pub fn smaller(case: &Case) -> Vec<Case> {
    let policies = case
        .policies
        .iter()
        .filter(|_| case.policies.len() > 1)
        .map(|&policy| Case { policies: vec![policy], ..case.clone() });
    let mut jobs: Vec<usize> = case.rows.iter().map(|row| row.job).collect();
    jobs.dedup();
    let fewer_jobs = jobs.into_iter().map(|job| {
        let rows = case.rows.iter().filter(|row| row.job != job).cloned().collect();
        Case { rows, ..case.clone() }
    });
    let fewer_tasks = (0..case.rows.len()).filter(|&row| case.rows[row].tasks > 1).map(|row| {
        let mut fewer = case.clone();
        fewer.rows[row].tasks -= 1;
        fewer
    });
    policies.chain(fewer_jobs.filter(|case| !case.rows.is_empty())).chain(fewer_tasks).collect()
}

/// The comparison detects a changed start, finish, machine or task number, and a missing task.
#[test]
fn the_comparison_sees_every_field() {
    let case = Case::draw(1, Weighting::None, &[Placement::FirstFit]);
    let right = expected(&case, Policy::Drf);
    assert_eq!(first_difference(&right.iter().rev().cloned().collect::<Vec<_>>(), &right), Ok(()));
    let changes: [fn(&mut Outcome); 4] = [
        |outcome| outcome.start = outcome.start.map(|start| start + 1),
        |outcome| outcome.finish = None,
        |outcome| outcome.machine = outcome.machine.map_or(Some(0), |machine| Some(machine + 1)),
        |outcome| outcome.task += 1,
    ];
    for change in changes {
        let mut wrong = right.clone();
        change(&mut wrong[0].1);
        assert!(first_difference(&wrong, &right).is_err());
    }
    assert!(first_difference(&right[1..], &right).is_err());
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
