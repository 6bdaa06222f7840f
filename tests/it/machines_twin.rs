//! Compares the engine with the slow twin of placement: the machine, start, finish and outcome of every attempt, on hundreds of random
//! cases with labels, places, gangs, priorities, slowdown, and machines that fail, leave, join and are relabelled.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use crate::machines_cases::Draw;
use crate::machines_preemption::Displacing;
use crate::machines_slow::Outcome;
use crate::machines_world::{Change, Location, Whom};
use crate::property::search;
use crate::replay::{outcomes, run, said, tasks_table};
use crate::slow::{Placement, Policy};
use crate::workloads::{RESOURCES, job_name, policy_name};

const CASES: u32 = 400;

/// A difference between the engine and the slow twin.
struct Problem {
    /// The engine fails although the twin accepts the case, or accepts a case that the twin refuses. Otherwise the outcomes differ.
    refused: bool,
    text: String,
}

impl Problem {
    fn refused(text: String) -> Problem {
        Problem { refused: true, text }
    }
}

#[test]
fn the_engine_places_tasks_as_the_slow_twin_does() {
    compare(Draw::new);
}

#[test]
fn urgent_tasks_ask_for_room_as_in_the_slow_twin() {
    compare(Draw::urgent);
}

#[test]
fn gangs_hoard_as_in_the_slow_twin() {
    compare(Draw::hoarding);
}

#[test]
fn groups_with_quotas_ask_as_in_the_slow_twin() {
    compare(Draw::grouped);
}

#[test]
fn tasks_get_the_devices_of_the_slow_twin() {
    compare(Draw::devices);
}

#[test]
fn tasks_fail_straggle_and_are_backed_up_as_in_the_slow_twin() {
    compare(Draw::faulty);
}

#[test]
fn tasks_are_displaced_as_in_the_slow_twin() {
    compare(Draw::preemption_limits);
}

/// Compares the engine with the slow twin on drawn cases. Fails with the smallest case that differs.
fn compare(draw: fn(u64) -> Draw) {
    // A smaller case must differ in the same way.
    let refused = Cell::new(None);
    let law = |draw: &Draw| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        match difference(draw, dir.path()) {
            Err(problem) if refused.get().is_none_or(|refused| refused == problem.refused) => {
                refused.set(Some(problem.refused));
                Err(problem.text)
            }
            _ => Ok(()),
        }
    };
    let Err(broken) = search(file!(), CASES, draw, Draw::smaller, law) else { return };
    let small = broken.case;
    // The folder outlives the test, so that the printed command can be run.
    let kept = tempfile::tempdir().expect("a temporary folder").keep();
    let _ = difference(&small, &kept);
    panic!(
        "a case differs\n{}\n{}\n{}\n{}\n{:?} {:?}\n{}\nto repeat: {:?}",
        small.trace(),
        small.machines(),
        small.machine_events().unwrap_or_default(),
        small.quota.as_deref().unwrap_or_default(),
        small.case.policies,
        small.case.weights_csv(),
        broken.problem,
        command(&small, &kept),
    );
}

/// Returns the command that runs a case; its files must exist.
pub fn command(draw: &Draw, dir: &Path) -> Command {
    let machines = dir.join("machines.csv").display().to_string();
    let mut case = draw.case.clone();
    if draw.quota.is_some() {
        case.policies.clear();
    }
    let mut command = crate::twin::command(&case, dir, &machines);
    if draw.quota.is_some() {
        command.current_dir(dir).args(["--policy", QUOTA]);
    }
    command.arg("--audit").args(["--on-failure", if draw.lose { "lose" } else { "requeue" }]);
    command.args(["--fall-back", &draw.fall_back.map_or("never".to_owned(), |span| format!("{span}us"))]);
    if let Some((span, whom)) = draw.preempt {
        let from = match whom {
            Whom::Any | Whom::Share => "any",
            Whom::SameUser => "same-user",
            Whom::SameGroup => "same-group",
            Whom::AboveQuota => "above-quota",
        };
        command.args(["--preempt", &format!("{span}us"), "--preempt-from", from]);
        command.args(["--preempt-for", if whom == Whom::Share { "share" } else { "urgent" }]);
    }
    let Displacing { min_run, limit, checkpoint, delay } = draw.preemption_limits;
    for (option, span) in [("--min-run", min_run), ("--checkpoint", checkpoint), ("--restart-delay", delay)] {
        command.args([option, &format!("{span}us")]);
    }
    command.arg("--stop-limit");
    command.arg(limit.map_or("none".to_owned(), |(most, within)| format!("{most}/{within}us")));
    if let Some(span) = draw.hoard {
        command.args(["--hoard", &format!("{span}us")]);
    }
    for &resource in &draw.devices {
        command.args(["--devices", RESOURCES[resource]]);
    }
    if let Some(faults) = &draw.faults {
        command.args(["--faults", faults]);
    }
    if !draw.events.is_empty() {
        command.arg("--machine-events").arg(dir.join("events.csv"));
    }
    command
}

/// The policy of a draw with quota groups; its file is in the folder of the trace.
const QUOTA: &str = "quota:groups.toml";

/// Writes the files of a case.
pub fn write(draw: &Draw, dir: &Path) {
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    write("trace.csv", draw.trace());
    write("machines.csv", draw.machines());
    if let Some(text) = draw.machine_events() {
        write("events.csv", text);
    }
    if let Some(text) = &draw.quota {
        write("groups.toml", text.clone());
    }
    if let Some(text) = draw.case.weights_csv() {
        write("weights.csv", text);
    }
}

/// Returns the expected exit code of a run: 1 if no task starts under some policy, otherwise 0.
fn code(expected: &[Vec<Outcome>]) -> i32 {
    i32::from(expected.iter().any(|tasks| tasks.iter().all(|task| task.start.is_none())))
}

/// Runs a case under all its policies. Errors: the first difference from the slow twin.
fn difference(draw: &Draw, dir: &Path) -> Result<(), Problem> {
    write(draw, dir);
    let output = run(&mut command(draw, dir));
    let expected: Result<Vec<Vec<Outcome>>, usize> =
        draw.case.policies.iter().map(|&policy| draw.expected(policy)).collect();
    let refused = output.status.code() == Some(2) && said(&output).contains("gang");
    match expected {
        Err(_) if refused => Ok(()),
        Err(row) => {
            Err(Problem::refused(format!("the gang of row {row} has no room: {} {}", output.status, said(&output))))
        }
        Ok(expected) if output.status.code() != Some(code(&expected)) => {
            Err(Problem::refused(format!("{}: {}", output.status, said(&output))))
        }
        Ok(expected) => draw.case.policies.iter().zip(expected).try_for_each(|(&policy, expected)| {
            let name = if draw.quota.is_some() { QUOTA.to_owned() } else { policy_name(policy) };
            let engine = read(&dir.join("out"), &name).map_err(Problem::refused)?;
            first_difference(engine, named(expected))
                .map_err(|text| Problem { refused: false, text: format!("{name}: {text}") })
        }),
    }
}

/// Outcomes with the names of jobs.
pub type Named = Vec<(String, Outcome)>;

fn named(outcomes: Vec<Outcome>) -> Named {
    outcomes.into_iter().map(|outcome| (job_name(outcome.job), outcome)).collect()
}

/// Reads the `tasks` table of one policy. Jobs are identified by name, not by number.
pub fn read(dir: &Path, policy: &str) -> Result<Named, String> {
    let table = tasks_table(dir, policy)?;
    let (attempts, fates) = (table.integers("attempt"), table.texts("outcome"));
    let all = outcomes(&table).into_iter().zip(attempts).zip(fates).zip(table.names("devices", ""));
    let whole = all.map(|((((name, plain), attempt), fate), devices)| {
        let outcome = Outcome {
            job: 0,
            task: plain.task,
            attempt: attempt.and_then(|attempt| u64::try_from(attempt).ok()).expect("attempts count from 0"),
            machine: plain.machine,
            start: plain.start,
            finish: plain.finish,
            devices,
            fate: fate.clone().expect("every task has an outcome"),
        };
        (name, outcome)
    });
    Ok(whole.collect())
}

/// Compares two lists of outcomes regardless of their order. Errors: the earliest outcomes that differ.
fn first_difference(engine: Named, slow: Named) -> Result<(), String> {
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
    let right = named((0..).find_map(|seed| Draw::new(seed).expected(Policy::Drf).ok()).expect("a case without error"));
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

/// Returns the number of cases that satisfy `found` with their outcomes under the first policy.
fn occurs(draws: &[Draw], found: impl Fn(&[Outcome]) -> bool) -> usize {
    let outcomes = |draw: &Draw| draw.expected(draw.case.policies[0]).unwrap_or_default();
    draws.iter().filter(|draw| found(&outcomes(draw))).count()
}

/// Returns the number of cases that have another result if a feature is removed.
fn decides(draws: &[Draw], without: impl Fn(&mut Draw)) -> usize {
    let changed = |draw: &Draw| {
        let mut other = draw.clone();
        without(&mut other);
        draw.expected(draw.case.policies[0]) != other.expected(draw.case.policies[0])
    };
    draws.iter().filter(|draw| changed(draw)).count()
}

/// Returns whether the removal of a feature changes the devices of tasks only.
fn other_devices(draw: &Draw, without: impl Fn(&mut Draw)) -> bool {
    let mut other = draw.clone();
    without(&mut other);
    let [with, without] = [draw, &other].map(|draw| draw.expected(draw.case.policies[0]).unwrap_or_default());
    let blind = |outcomes: &[Outcome]| -> Vec<Outcome> {
        outcomes.iter().map(|outcome| Outcome { devices: String::new(), ..outcome.clone() }).collect()
    };
    with != without && blind(&with) == blind(&without)
}

/// Returns whether two tasks of a gang get parts of devices of one machine under placement by fragments, which depends on the machine's
/// free devices.
fn gang_of_parts(draw: &Draw) -> bool {
    let outcomes = draw.expected(draw.case.policies[0]).unwrap_or_default();
    let gang = |outcome: &Outcome| draw.case.rows.iter().any(|row| row.gang && row.job == outcome.job);
    let parts: Vec<&Outcome> = outcomes.iter().filter(|o| gang(o) && o.devices.contains('=')).collect();
    let together = |a: &Outcome, b: &Outcome| (a.job, a.start, a.machine) == (b.job, b.start, b.machine);
    draw.case.placement == Placement::Fgd
        && parts.iter().any(|a| parts.iter().any(|b| together(a, b) && a.task != b.task))
}

/// Fails with the list of features that are too rare.
fn often(counts: &[(&str, usize, usize)]) {
    let rare: Vec<_> = counts.iter().filter(|(_, least, found)| found < least).collect();
    assert!(rare.is_empty(), "too rare (what, at least, found): {rare:?}");
}

fn any(fate: &str) -> impl Fn(&[Outcome]) -> bool {
    move |all| all.iter().any(|outcome| outcome.fate == fate)
}

/// Every feature of the cases occurs in enough of them and changes their results.
#[test]
fn the_draws_reach_the_corners() {
    let draws: Vec<Draw> = (0..150).map(Draw::new).collect();
    let refused = draws.iter().filter(|draw| draw.expected(draw.case.policies[0]).is_err()).count();
    let all = draws.as_slice();
    often(&[
        ("machine-failed", 20, occurs(all, any("machine-failed"))),
        ("lost", 8, occurs(all, any("lost"))),
        ("starved", 20, occurs(all, any("starved"))),
        ("too large", 10, occurs(all, any("too large"))),
        ("deadlocked", 1, occurs(all, any("deadlocked"))),
        ("a task stopped twice", 2, occurs(all, |all| all.iter().any(|outcome| outcome.attempt > 1))),
        ("a gang too large", 1, refused),
        ("labels", 40, decides(all, |draw| draw.asks.iter_mut().for_each(|ask| ask.label = None))),
        ("places", 40, decides(all, |draw| draw.asks.iter_mut().for_each(|ask| ask.place = Location::Cluster))),
        ("falling back", 20, decides(all, |draw| draw.fall_back = None)),
        ("gangs", 20, decides(all, |draw| draw.case.rows.iter_mut().for_each(|row| row.gang = false))),
        ("priorities", 30, decides(all, |draw| draw.case.rows.iter_mut().for_each(|row| row.priority = 0))),
        ("events", 40, decides(all, |draw| draw.events.clear())),
        ("relabelling", 10, decides(all, |draw| draw.events.retain(|e| !matches!(e.change, Change::Relabel(_))))),
        ("lost or requeued", 10, decides(all, |draw| draw.lose = !draw.lose)),
        ("slowdown", 15, decides(all, |draw| draw.case.slowdown = None)),
        ("rooms", 15, decides(all, |draw| draw.sites.iter_mut().for_each(|site| site.room = None))),
    ]);
    let urgent: Vec<Draw> = (0..150).map(Draw::urgent).collect();
    let all = urgent.as_slice();
    let from = |draw: &mut Draw, whom: Whom| draw.preempt = draw.preempt.map(|(span, _)| (span, whom));
    let span = |draw: &mut Draw, span: u64| draw.preempt = draw.preempt.map(|(_, whom)| (span, whom));
    often(&[
        ("preempted", 30, occurs(all, any("preempted"))),
        ("requests", 40, decides(all, |draw| draw.preempt = None)),
        ("a notice", 15, decides(all, |draw| span(draw, 0))),
        ("a finite notice", 20, decides(all, |draw| span(draw, 1 << 50))),
        ("eligible victims", 5, decides(all, |draw| from(draw, Whom::Any))),
        ("victims of other users", 20, decides(all, |draw| from(draw, Whom::SameUser))),
        ("stable tasks", 2, decides(all, |draw| draw.asks.iter_mut().for_each(|ask| ask.stable = false))),
        ("events", 20, decides(all, |draw| draw.events.clear())),
    ]);
    let preemption_limits: Vec<Draw> = (0..150).map(Draw::preemption_limits).collect();
    let all = preemption_limits.as_slice();
    let shares = |draw: &mut Draw| {
        if draw.preempt.is_some_and(|(_, whom)| whom == Whom::Share) {
            draw.preempt = None;
        }
    };
    often(&[
        ("preempted", 20, occurs(all, any("preempted"))),
        ("stopped twice", 15, occurs(all, |all| all.iter().any(|outcome| outcome.attempt > 1))),
        ("shares", 15, decides(all, shares)),
        ("a notice", 5, decides(all, |draw| span(draw, 0))),
        ("a minimum run time", 6, decides(all, |draw| draw.preemption_limits.min_run = 0)),
        ("a preemption limit", 4, decides(all, |draw| draw.preemption_limits.limit = None)),
        ("checkpoints", 8, decides(all, |draw| draw.preemption_limits.checkpoint = 0)),
        ("a restart delay", 10, decides(all, |draw| draw.preemption_limits.delay = 0)),
        ("gangs", 5, decides(all, |draw| draw.case.rows.iter_mut().for_each(|row| row.gang = false))),
    ]);
    let hoarding: Vec<Draw> = (0..150).map(Draw::hoarding).collect();
    let all = hoarding.as_slice();
    often(&[
        ("hoarding", 20, decides(all, |draw| draw.hoard = None)),
        ("patience", 10, decides(all, |draw| draw.hoard = Some(1 << 50))),
        ("impatience", 10, decides(all, |draw| draw.hoard = Some(1))),
        ("requests beside hoards", 5, decides(all, |draw| draw.preempt = None)),
        ("events", 20, decides(all, |draw| draw.events.clear())),
    ]);
    let with_devices: Vec<Draw> = (0..150).map(Draw::devices).collect();
    let all = with_devices.as_slice();
    let got = |sign: &'static str| move |all: &[Outcome]| all.iter().any(|outcome| outcome.devices.contains(sign));
    let flat = |draw: &mut Draw| {
        if draw.case.placement == Placement::Fgd {
            draw.case.placement = Placement::FirstFit;
        }
    };
    let topology = |draw: &mut Draw| draw.nodes.iter_mut().flatten().flatten().for_each(|node| *node = 0);
    often(&[
        ("a whole device", 60, occurs(all, got("gpu:0"))),
        ("several devices", 40, occurs(all, got(";gpu"))),
        ("a part of a device", 60, occurs(all, got("="))),
        ("cores", 20, occurs(all, got("cpu:"))),
        ("topology", 20, decides(all, topology)),
        ("fragments", 20, decides(all, flat)),
        ("fragments on devices alone", 3, all.iter().filter(|draw| other_devices(draw, flat)).count()),
        ("gangs of parts", 5, all.iter().filter(|draw| gang_of_parts(draw)).count()),
        ("machine-failed", 10, occurs(all, any("machine-failed"))),
        ("gangs", 10, decides(all, |draw| draw.case.rows.iter_mut().for_each(|row| row.gang = false))),
    ]);
    let faulty: Vec<Draw> = (0..150).map(Draw::faulty).collect();
    let all = faulty.as_slice();
    let without = |part: &'static str| {
        move |draw: &mut Draw| {
            let parts =
                draw.faults.iter().flat_map(|faults| faults.split(',')).filter(|other| !other.starts_with(part));
            let parts = parts.collect::<Vec<_>>().join(",");
            draw.faults = (!parts.is_empty()).then_some(parts);
        }
    };
    often(&[
        ("failed", 40, occurs(all, any("failed"))),
        ("given-up", 20, occurs(all, any("given-up"))),
        ("superseded", 12, occurs(all, any("superseded"))),
        ("machine-failed", 10, occurs(all, any("machine-failed"))),
        ("preempted", 5, occurs(all, any("preempted"))),
        ("failures", 40, decides(all, without("fail"))),
        ("retries", 15, decides(all, without("retries"))),
        ("stragglers", 40, decides(all, without("straggle"))),
        ("backups", 12, decides(all, without("backup"))),
        ("estimates", 1, decides(all, |draw| draw.case.rows.iter_mut().for_each(|row| row.estimate = None))),
        ("gangs", 5, decides(all, |draw| draw.case.rows.iter_mut().for_each(|row| row.gang = false))),
    ]);
    let grouped: Vec<Draw> = (0..150).map(Draw::grouped).collect();
    let all = grouped.as_slice();
    often(&[
        ("preempted", 5, occurs(all, any("preempted"))),
        ("groups", 60, decides(all, |draw| draw.quota = None)),
        ("eligible victims", 10, decides(all, |draw| from(draw, Whom::Any))),
        ("victims of other users", 10, decides(all, |draw| from(draw, Whom::SameUser))),
        ("a notice", 5, decides(all, |draw| span(draw, 0))),
    ]);
}
