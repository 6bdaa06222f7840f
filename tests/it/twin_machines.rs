//! Compares the engine with the reference implementation on random cases with labels, places, gangs, priorities, slowdown, faults, devices,
//! preemption, and machines that fail, leave, join and are relabelled.

use crate::replay::{plimsoll, read_tasks, run, said};
use crate::slow::{Change, Inside, Location, Outcome, Placement, Policy, Whom};
use crate::twin::compare;
use crate::workloads::Case;

const CASES: u32 = 400;

/// The number of cases of comparisons with a known difference in a later case: in it the engine and the reference place a task on
/// different machines, and which one is right is not known yet. To repeat them, set the number to [`CASES`].
const CASES_WITHOUT_DIFFERENCE: u32 = 80;

#[test]
fn the_engine_places_tasks_as_the_slow_twin_does() {
    compare(CASES, Case::placed);
}

#[test]
fn urgent_tasks_ask_for_room_as_in_the_slow_twin() {
    compare(CASES, Case::urgent);
}

#[test]
fn gangs_hoard_as_in_the_slow_twin() {
    compare(CASES, Case::hoarding);
}

#[test]
fn groups_with_quotas_ask_as_in_the_slow_twin() {
    compare(CASES, Case::grouped);
}

#[test]
fn tasks_get_the_devices_of_the_slow_twin() {
    compare(CASES, Case::devices);
}

#[test]
fn tasks_fail_straggle_and_are_backed_up_as_in_the_slow_twin() {
    compare(CASES, Case::faulty);
}

#[test]
fn tasks_are_displaced_as_in_the_slow_twin() {
    compare(CASES, Case::preemption_limits);
}

#[test]
fn orders_inside_users_on_machines() {
    compare(CASES_WITHOUT_DIFFERENCE, Case::ordered_on_machines);
}

#[test]
fn policies_with_memory_on_machines() {
    compare(CASES, Case::remembered_on_machines);
}

#[test]
fn policies_of_the_literature_on_machines() {
    compare(CASES_WITHOUT_DIFFERENCE, Case::literature_on_machines);
}

#[test]
fn policies_by_machine_on_machines() {
    compare(CASES_WITHOUT_DIFFERENCE, Case::pairs_on_machines);
}

#[test]
fn machines_of_unlike_speed_with_labels_and_events() {
    compare(CASES, Case::speeds_on_machines);
}

#[test]
fn tasks_are_stopped_in_a_pool() {
    compare(CASES, Case::stopped_in_a_pool);
}

/// Two gangs of two tasks wait for two machines, of which one fails. The remaining machine passes from one gang to the other once; then the
/// run must end.
#[test]
fn gangs_that_can_never_start_do_not_wake_each_other_for_ever() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
        dir.path().join(name)
    };
    let header = "job,user,submit_us,duration_us,tasks,cpu,gang\n";
    let rows = "a,ann,0,10,1,1,false\nb,ben,0,10,1,1,false\nc,ann,5,10,2,1,true\nd,ben,5,10,2,1,true\n";
    let mut command = plimsoll(&["replay", "--policy", "drf", "--placement", "first-fit", "--hoard", "1ms", "--tasks"]);
    command.arg(file("trace.csv", &format!("{header}{rows}"))).arg("--machines").arg(file("m.csv", "count,cpu\n2,1\n"));
    command.arg("--machine-events").arg(file("events.csv", "at_us,machine,event\n7,1,fail\n"));
    let output = run(command.arg("-o").arg(dir.path().join("out")));
    assert!(output.status.success(), "{}", said(&output));
    let tasks = read_tasks(&dir.path().join("out"), "drf").expect("a table of tasks");
    let starved = tasks.iter().filter(|(_, outcome)| outcome.fate == "starved").count();
    assert_eq!(starved, 4, "the four tasks of both gangs starve: {tasks:?}");
}

/// Returns the number of cases that satisfy `found` with their outcomes under the first policy.
fn occurs(draws: &[Case], found: impl Fn(&[Outcome]) -> bool) -> usize {
    let outcomes = |case: &Case| case.expected(case.policies[0]).unwrap_or_default();
    draws.iter().filter(|case| found(&outcomes(case))).count()
}

/// Returns the number of cases that have another result if a feature is removed.
fn decides(draws: &[Case], without: impl Fn(&mut Case)) -> usize {
    let changed = |case: &Case| {
        let mut other = case.clone();
        without(&mut other);
        case.expected(case.policies[0]) != other.expected(other.policies[0])
    };
    draws.iter().filter(|case| changed(case)).count()
}

/// Returns whether the removal of a feature changes the devices of tasks only.
fn other_devices(case: &Case, without: impl Fn(&mut Case)) -> bool {
    let mut other = case.clone();
    without(&mut other);
    let [with, without] = [case, &other].map(|case| case.expected(case.policies[0]).unwrap_or_default());
    let blind = |outcomes: &[Outcome]| -> Vec<Outcome> {
        outcomes.iter().map(|outcome| Outcome { devices: String::new(), ..outcome.clone() }).collect()
    };
    with != without && blind(&with) == blind(&without)
}

/// Returns whether two tasks of a gang get parts of devices of one machine under placement by fragments, which depends on the machine's
/// free devices.
fn gang_of_parts(case: &Case) -> bool {
    let outcomes = case.expected(case.policies[0]).unwrap_or_default();
    let gang = |outcome: &Outcome| case.rows.iter().any(|row| row.gang && row.job == outcome.job);
    let parts: Vec<&Outcome> = outcomes.iter().filter(|o| gang(o) && o.devices.contains('=')).collect();
    let together = |a: &Outcome, b: &Outcome| (a.job, a.start, a.machine) == (b.job, b.start, b.machine);
    case.placement == Placement::Fgd && parts.iter().any(|a| parts.iter().any(|b| together(a, b) && a.task != b.task))
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
    let draws: Vec<Case> = (0..150).map(Case::placed).collect();
    let refused = draws.iter().filter(|case| case.expected(case.policies[0]).is_err()).count();
    let all = draws.as_slice();
    often(&[
        ("machine-failed", 20, occurs(all, any("machine-failed"))),
        ("lost", 8, occurs(all, any("lost"))),
        ("starved", 20, occurs(all, any("starved"))),
        ("too large", 10, occurs(all, any("too large"))),
        ("deadlocked", 1, occurs(all, any("deadlocked"))),
        ("a task stopped twice", 2, occurs(all, |all| all.iter().any(|outcome| outcome.attempt > 1))),
        ("a gang too large", 1, refused),
        ("labels", 40, decides(all, |case| case.rows.iter_mut().for_each(|row| row.label = None))),
        ("places", 40, decides(all, |case| case.rows.iter_mut().for_each(|row| row.place = Location::Cluster))),
        ("falling back", 20, decides(all, |case| case.fall_back = None)),
        ("gangs", 20, decides(all, |case| case.rows.iter_mut().for_each(|row| row.gang = false))),
        ("priorities", 30, decides(all, |case| case.rows.iter_mut().for_each(|row| row.priority = 0))),
        ("events", 40, decides(all, |case| case.events.clear())),
        ("relabelling", 10, decides(all, |case| case.events.retain(|e| !matches!(e.change, Change::Relabel(_))))),
        ("lost or requeued", 10, decides(all, |case| case.lose = !case.lose)),
        ("slowdown", 15, decides(all, |case| case.slowdown = None)),
        ("rooms", 15, decides(all, |case| case.sites.iter_mut().for_each(|site| site.room = None))),
    ]);
    let urgent: Vec<Case> = (0..150).map(Case::urgent).collect();
    let all = urgent.as_slice();
    let from = |case: &mut Case, whom: Whom| case.preempt = case.preempt.map(|(span, _)| (span, whom));
    let span = |case: &mut Case, span: u64| case.preempt = case.preempt.map(|(_, whom)| (span, whom));
    often(&[
        ("preempted", 30, occurs(all, any("preempted"))),
        ("requests", 40, decides(all, |case| case.preempt = None)),
        ("a notice", 15, decides(all, |case| span(case, 0))),
        ("a finite notice", 20, decides(all, |case| span(case, 1 << 50))),
        ("eligible victims", 5, decides(all, |case| from(case, Whom::Any))),
        ("victims of other users", 20, decides(all, |case| from(case, Whom::SameUser))),
        ("stable tasks", 2, decides(all, |case| case.rows.iter_mut().for_each(|row| row.stable = false))),
        ("events", 20, decides(all, |case| case.events.clear())),
    ]);
    let preemption_limits: Vec<Case> = (0..150).map(Case::preemption_limits).collect();
    let all = preemption_limits.as_slice();
    let shares = |case: &mut Case| {
        if case.preempt.is_some_and(|(_, whom)| whom == Whom::Share) {
            case.preempt = None;
        }
    };
    often(&[
        ("preempted", 20, occurs(all, any("preempted"))),
        ("stopped twice", 15, occurs(all, |all| all.iter().any(|outcome| outcome.attempt > 1))),
        ("shares", 15, decides(all, shares)),
        ("a notice", 5, decides(all, |case| span(case, 0))),
        ("a minimum run time", 6, decides(all, |case| case.preemption_limits.min_run = 0)),
        ("a preemption limit", 4, decides(all, |case| case.preemption_limits.limit = None)),
        ("checkpoints", 8, decides(all, |case| case.preemption_limits.checkpoint = 0)),
        ("a restart delay", 10, decides(all, |case| case.preemption_limits.delay = 0)),
        ("gangs", 5, decides(all, |case| case.rows.iter_mut().for_each(|row| row.gang = false))),
    ]);
    let hoarding: Vec<Case> = (0..150).map(Case::hoarding).collect();
    let all = hoarding.as_slice();
    often(&[
        ("hoarding", 20, decides(all, |case| case.hoard = None)),
        ("patience", 10, decides(all, |case| case.hoard = Some(1 << 50))),
        ("impatience", 10, decides(all, |case| case.hoard = Some(1))),
        ("requests beside hoards", 5, decides(all, |case| case.preempt = None)),
        ("events", 20, decides(all, |case| case.events.clear())),
    ]);
    let with_devices: Vec<Case> = (0..150).map(Case::devices).collect();
    let all = with_devices.as_slice();
    let got = |sign: &'static str| move |all: &[Outcome]| all.iter().any(|outcome| outcome.devices.contains(sign));
    let flat = |case: &mut Case| {
        if case.placement == Placement::Fgd {
            case.placement = Placement::FirstFit;
        }
    };
    let topology = |case: &mut Case| case.nodes.iter_mut().flatten().flatten().for_each(|node| *node = 0);
    often(&[
        ("a whole device", 60, occurs(all, got("gpu:0"))),
        ("several devices", 40, occurs(all, got(";gpu"))),
        ("a part of a device", 60, occurs(all, got("="))),
        ("cores", 20, occurs(all, got("cpu:"))),
        ("topology", 20, decides(all, topology)),
        ("fragments", 20, decides(all, flat)),
        ("fragments on devices alone", 3, all.iter().filter(|case| other_devices(case, flat)).count()),
        ("gangs of parts", 5, all.iter().filter(|case| gang_of_parts(case)).count()),
        ("machine-failed", 10, occurs(all, any("machine-failed"))),
        ("gangs", 10, decides(all, |case| case.rows.iter_mut().for_each(|row| row.gang = false))),
    ]);
    let faulty: Vec<Case> = (0..150).map(Case::faulty).collect();
    let all = faulty.as_slice();
    let without = |part: &'static str| {
        move |case: &mut Case| {
            let parts =
                case.faults.iter().flat_map(|faults| faults.split(',')).filter(|other| !other.starts_with(part));
            let parts = parts.collect::<Vec<_>>().join(",");
            case.faults = (!parts.is_empty()).then_some(parts);
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
        ("estimates", 1, decides(all, |case| case.rows.iter_mut().for_each(|row| row.estimate = None))),
        ("gangs", 5, decides(all, |case| case.rows.iter_mut().for_each(|row| row.gang = false))),
    ]);
    let grouped: Vec<Case> = (0..150).map(Case::grouped).collect();
    let all = grouped.as_slice();
    often(&[
        ("preempted", 5, occurs(all, any("preempted"))),
        ("groups", 60, decides(all, |case| case.quota = None)),
        ("eligible victims", 10, decides(all, |case| from(case, Whom::Any))),
        ("victims of other users", 10, decides(all, |case| from(case, Whom::SameUser))),
        ("a notice", 5, decides(all, |case| span(case, 0))),
    ]);
}

/// The features that the mixed cases combine change their results.
#[test]
fn the_mixed_draws_reach_the_corners() {
    let draws = |draw: fn(u64) -> Case| (0..60).map(draw).collect::<Vec<Case>>();
    let events = |all: &[Case]| decides(all, |case| case.events.clear());
    let label = |all: &[Case]| decides(all, |case| case.rows.iter_mut().for_each(|row| row.label = None));
    let ordered = draws(Case::ordered_on_machines);
    let remembered = draws(Case::remembered_on_machines);
    let literature = draws(Case::literature_on_machines);
    let pairs = draws(Case::pairs_on_machines);
    let speeds = draws(Case::speeds_on_machines);
    let pooled = draws(Case::stopped_in_a_pool);
    often(&[
        ("orders", 5, decides(&ordered, |case| case.inside = Inside::Usual)),
        ("events, ordered", 10, events(&ordered)),
        ("labels, ordered", 10, label(&ordered)),
        ("memory", 5, decides(&remembered, |case| case.policies[0] = Policy::Drf)),
        ("events, with memory", 4, events(&remembered)),
        ("labels, with memory", 4, label(&remembered)),
        ("the literature", 5, decides(&literature, |case| case.policies[0] = Policy::Drf)),
        ("events, of the literature", 4, events(&literature)),
        ("pairs", 10, decides(&pairs, |case| case.policies[0] = Policy::Drf)),
        ("events, by pairs", 10, events(&pairs)),
        ("labels, by pairs", 10, label(&pairs)),
        ("speeds", 20, decides(&speeds, |case| case.speeds.clear())),
        ("preempted in a pool", 3, occurs(&pooled, any("preempted"))),
        ("failed in a pool", 3, occurs(&pooled, any("failed"))),
    ]);
}
