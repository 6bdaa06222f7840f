//! Tests of the generators `synthetic` and `closed-loop`, and of the errors for invalid plans.

use std::collections::BTreeSet;

use super::classes::bench_workload;
use super::*;
use crate::workload::TaskSet;
use crate::workload::summary::{Summary, summarise};
use plimsoll_base::units::{JobId, Span, Time, UserId};

/// Returns a digest of everything that a trace of the workload would contain.
pub(super) fn digest(workload: &Workload) -> String {
    let mut hasher = blake3::Hasher::new();
    for set in &workload.sets {
        let names = (workload.job_name(set.job), workload.users.name(set.user.0));
        // Later fields that no generator sets are not digested.
        let later = ", location: None, stable: false, estimate: None, deadline: None, preceding: None";
        let set = format!("{set:?}").replace(later, "");
        hasher.update(format!("{set} {names:?}\n").as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

pub(super) fn plan(text: &str) -> Generator {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn plan_error(text: &str) -> String {
    match toml::from_str::<Generator>(text) {
        Err(error) => error.to_string(),
        Ok(generator) => generator.generate(1).expect_err(text).to_string(),
    }
}

pub(super) fn workload(text: &str, seed: u64) -> Workload {
    match plan(text).generate(seed).expect("a valid plan") {
        Generated::Workload(workload) => workload,
        Generated::Loop(_) => panic!("a closed loop"),
    }
}

pub(super) fn summary(workload: &Workload) -> Summary {
    summarise(&mut workload.source()).expect("a workload in memory has no errors")
}

/// A plan with CPU-heavy and memory-heavy users.
const MIX: &str = "
generator = 'synthetic'
jobs = 20000
arrival = { distribution = 'exponential', mean = 1.5 }
[[class]]
name = 'cpu-heavy'
weight = 3
users = 4
zipf = 1
tasks = { distribution = 'uniform', min = 1, max = 9 }
duration = { distribution = 'lognormal', median = 120, sigma = 1.2, max = 3600 }
demand = { cpu = 2, memory_gib = 0.5 }
[[class]]
name = 'memory-heavy'
priority = 2
  [[class.stage]]
  name = 'map'
  tasks = 4
  duration = '2m'
  demand = { memory_gib = { distribution = 'choice', values = [4, 8] }, gpu = 0.5 }
  [[class.stage]]
  name = 'reduce'
  duration = 60
  demand = { cpu = 0.1 }
";

#[test]
fn classes_come_out_as_the_plan_says() {
    let workload = workload(MIX, 3);
    assert_eq!(digest(&workload), "f05fdd9fea57bbf7", "the workload of a seed changed: add an entry to the changelog");
    let columns: Vec<String> = workload.dims.iter().map(plimsoll_base::units::Dim::column).collect();
    assert_eq!(columns, ["cpu", "gpu", "memory_mib"]);
    let summary = summary(&workload);
    assert_eq!((summary.jobs, summary.users), (20_000, 5));
    assert!((summary.mean_gap_s.expect("jobs") / 1.5 - 1.0).abs() < 0.03);
    let jobs = |user: &str| summary.top_users.iter().find(|top| top.user == user).expect(user).jobs as f64;
    assert!((jobs("memory-heavy") / 5000.0 - 1.0).abs() < 0.05);
    assert!((jobs("cpu-heavy1") / jobs("cpu-heavy4") - 4.0).abs() < 0.4);
    let reduce = workload.sets.iter().find(|set| set.stage == Some(1)).expect("a reduce");
    assert_eq!((reduce.demand.0[0], &reduce.after, reduce.priority, reduce.tasks), (100, &vec![0], 2, 1));
    assert!(workload.sets.iter().all(|set| set.duration <= Span::from_secs(3600)));
    let mean = workload.sets.iter().filter(|set| set.stage.is_none()).map(|set| f64::from(set.tasks));
    let (sum, count) = mean.fold((0.0, 0.0), |(sum, count), tasks| (sum + tasks, count + 1.0));
    assert!((sum / count - 5.0f64).abs() < 0.1);
}

#[test]
fn classes_draw_each_purpose_from_a_stream_of_its_own() {
    let base = workload(MIX, 3);
    let other = workload(&MIX.replace("sigma = 1.2, max = 3600", "sigma = 0.2"), 3);
    assert_eq!(base.sets.len(), other.sets.len());
    let changed = base.sets.iter().zip(&other.sets).filter(|(a, b)| a.duration != b.duration).count();
    assert!(changed > 10_000);
    assert!(base.sets.iter().zip(&other.sets).all(|(a, b)| TaskSet { duration: b.duration, ..a.clone() } == *b));
}

#[test]
fn bursts_move_arrivals_into_the_upper_half_of_the_wave() {
    let burst = "burst = { amplitude = 0.6, period = '30m' }\n[[class]]\nname = 'cpu-heavy'";
    let workload = workload(&MIX.replacen("[[class]]\nname = 'cpu-heavy'", burst, 1), 3);
    let half = Span::from_secs(900).0;
    let submits: BTreeSet<Time> = workload.sets.iter().map(|set| set.submit).collect();
    let high = submits.iter().filter(|submit| (submit.0 / half).is_multiple_of(2)).count() as f64;
    // The mean of the sine's upper half is 2 / pi.
    let expected = 0.5 * (1.0 + 0.6 * 2.0 / std::f64::consts::PI);
    assert!((high / submits.len() as f64 - expected).abs() < 0.02, "{high} of {}", submits.len());
    assert!((summary(&workload).mean_gap_s.expect("jobs") / 1.5 - 1.0).abs() < 0.05);
}

#[test]
fn the_bench_workload_loads_both_resources_alike() {
    let workload = bench_workload(200_000, 100, 0.9, false, 1).expect("valid");
    let summary = summary(&workload);
    assert_eq!((summary.rows, summary.jobs, summary.tasks, summary.users), (200_000, 200_000, 200_000, 100));
    let seconds = summary.last_submit_s;
    let running = summary.marginals[0].duration_s.expect("tasks").mean * summary.tasks as f64 / seconds;
    let loads = [summary.work[0].amount_seconds / 25_600.0, summary.work[1].amount_seconds / 102_400.0];
    assert!(loads.iter().all(|load| (load / seconds - 0.9).abs() < 0.02), "{loads:?} {seconds}");
    assert!((running / 8727.0 - 1.0).abs() < 0.02, "{running}");
}

#[test]
fn bad_plans_are_located() {
    let mix = |from: &str, to: &str| plan_error(&MIX.replacen(from, to, 1));
    for (message, expected) in [
        (plan_error("generator = 'facebok'"), "closed-loop"),
        (plan_error("generator = 'facebook'\nhour = 3"), "unknown field `hour`"),
        (
            plan_error("generator = 'facebook'\nhours = -1"),
            "workload.hours: -1 is not accepted; expected a number above 0",
        ),
        (
            plan_error("generator = 'facebook'\nload = 0.5\nthin = 0.5"),
            "workload.thin: 0.5 is not accepted; expected either",
        ),
        (plan_error("generator = 'facebook'\nload = 9"), "workload.load: 9 is not accepted; expected at most"),
        (
            plan_error("generator = 'facebook'\nthin = 5"),
            "workload.thin: 5 is not accepted; expected a number above 0, at most",
        ),
        (plan_error("generator = 'facebook'\nload = nan"), "workload.load: NaN"),
        (plan_error("generator = 'facebook'\nhours = 2000\noverlay = 9"), "more than 10,000,000 candidate jobs"),
        (plan_error("generator = 'facebook'\nusers = 0"), "a number of users from 1"),
        (plan_error("generator = 'facebook'\nusers = 'each'"), "\"job\""),
        (plan_error("generator = 'facebook'\ndemand = 'iid'"), "per-task-set"),
        (mix("cpu = 2", "cpu = 0"), "workload.class[0].demand.cpu: 0 is not accepted; expected a number above 0"),
        (mix("cpu = 0.1", "memory_norm = 1"), "workload.class.demand.memory_norm: another unit"),
        (
            mix("memory_gib = 0.5", "memory_gib = 1, memory_mib = 2"),
            "workload.class[0].demand.memory_mib: a second demand",
        ),
        (mix("demand = { cpu = 2, memory_gib = 0.5 }", ""), "workload.class[0].demand: no demand"),
        (mix("'reduce'", "'map'"), "workload.class[1].stage[1].name: 'map'"),
        (mix("'2m'", "'soon'"), "a time such as"),
        (mix("weight = 3", "weight = -3"), "workload.class: weights [-3.0, 1.0]"),
        (mix("priority = 2", "priority = 10"), "workload.class[1].priority: 10"),
        (mix("users = 4", "users = 0"), "workload.class[0].users: 0"),
        (mix("zipf = 1", "zipf = -1"), "workload.class[0].zipf: -1"),
        (mix("name = 'memory-heavy'", "name = 'cpu-heavy2'"), "workload.class[1].name: a second user 'cpu-heavy2'"),
        (mix("jobs = 20000", ""), "without jobs and hours"),
        (mix("mean = 1.5", "mean = 0"), "workload.arrival.mean: 0"),
        (mix("mean = 1.5", "mean = 1e18"), "workload.arrival: this distribution"),
        (mix("tasks = 4", "tasks = 4\ncolour = 1"), "unknown field `colour`"),
        (mix("priority = 2", "duration = 5"), "workload.class[1]: a class with stages and tasks"),
        (plan_error(&LOOP.replace("until = 40", "")), "without until and jobs_per_user"),
        (plan_error(&LOOP.replace("duration = 10", "duration = 0")), "workload.class[0].duration: 0"),
    ] {
        assert!(message.contains(expected), "{message}\nlacks: {expected}");
    }
}

const LOOP: &str = "
generator = 'closed-loop'
until = 40
[[class]]
name = 'a'
tasks = 3
duration = 10
demand = { cpu = 1, memory_gib = 0.5 }
[[class]]
name = 'b'
users = 2
stagger = 5
duration = 15
think = 3
demand = { cpu = 2 }
";

fn loop_source(text: &str, seed: u64) -> LoopSource {
    match plan(text).generate(seed).expect("a valid plan") {
        Generated::Loop(source) => source,
        Generated::Workload(_) => panic!("not a closed loop"),
    }
}

/// Runs a loop on a cluster without waits and returns `(name, submit, row, job)` of each row in order.
fn unhindered(source: &mut dyn Source) -> Vec<(String, u64, u64, u32)> {
    let mut running: Vec<(Time, JobId, UserId)> = Vec::new();
    let mut log = Vec::new();
    loop {
        running.sort_by_key(|&(end, job, _)| (end, job));
        let next = source.peek().expect("no errors").map(|row| row.submit);
        let end = running.first().map(|&(end, ..)| end);
        match (next, end) {
            (Some(submit), end) if end.is_none_or(|end| submit < end) => {
                let row = source.next_set().expect("no errors").expect("as peeked");
                let name = source.job_names().text(&source.job_name());
                log.push((name, row.submit.0 / 1_000_000, row.row, row.job.0));
                let end = row.submit + row.duration;
                match running.iter_mut().find(|(_, job, _)| *job == row.job) {
                    Some(job) => job.0 = job.0.max(end),
                    None => running.push((end, row.job, row.user)),
                }
            }
            (_, Some(_)) => {
                let (end, job, user) = running.remove(0);
                source.job_finished(job, user, end);
            }
            (_, None) => return log,
        }
    }
}

#[test]
fn closed_loop_users_submit_when_their_last_job_has_finished() {
    let mut source = loop_source(LOOP, 1);
    let log = unhindered(&mut source);
    let row = |name: &str, submit, number| (name.to_owned(), submit, u64::from(number), number);
    let expected = [
        row("a-1", 0, 0),
        row("b1-1", 0, 1),
        row("b2-1", 5, 2),
        row("a-2", 10, 3),
        row("b1-2", 18, 4),
        row("a-3", 20, 5),
        row("b2-2", 23, 6),
        row("a-4", 30, 7),
        row("b1-3", 36, 8),
    ];
    assert_eq!(log, expected);
    assert_eq!(source.users().iter().collect::<Vec<_>>(), ["a", "b1", "b2"]);
    let mut limited = loop_source(&LOOP.replace("until = 40", "jobs_per_user = 1"), 1);
    assert_eq!(unhindered(&mut limited).len(), 3);
}

#[test]
fn closed_loops_may_have_nothing_for_now_and_an_earlier_job_later() {
    let mut source = loop_source(LOOP, 1);
    let peeked =
        |source: &mut LoopSource| source.peek().expect("no errors").map(|row| (row.user.0, row.submit.0 / 1_000_000));
    let take = |source: &mut LoopSource| source.next_set().expect("no errors").expect("a row");
    let (a, b1) = (take(&mut source), take(&mut source));
    assert_eq!((a.job, b1.job, b1.user), (JobId(0), JobId(1), UserId(1)));
    assert_eq!(peeked(&mut source), Some((2, 5)));
    // A job that ends before the submit time of the peeked job inserts the next job of its user before it.
    source.job_finished(a.job, a.user, Time(2_000_000));
    assert_eq!(peeked(&mut source), Some((0, 2)));
    let (second, third) = (take(&mut source), take(&mut source));
    assert_eq!((second.job, second.row, third.job, third.row, third.user), (JobId(2), 2, JobId(3), 3, UserId(2)));
    assert_eq!((peeked(&mut source), source.next_set().expect("no errors")), (None, None));
    source.job_finished(b1.job, b1.user, Time(15_000_000));
    assert_eq!(peeked(&mut source), Some((1, 18)));
}

#[test]
fn closed_loop_jobs_depend_on_their_number_and_not_on_when_they_run() {
    let noisy = LOOP.replace(
        "duration = 10",
        "duration = { distribution = 'exponential', mean = 9 }\nnoise = { distribution = 'lognormal', median = 1, sigma = 0.4 }\nnoise_sets = 2",
    );
    let rows = |text: &str, hindered: u64| {
        let mut source = loop_source(text, 4);
        let mut rows: Vec<TaskSet> = Vec::new();
        while rows.len() < 8 {
            match source.next_set().expect("no errors") {
                Some(row) if row.user == UserId(0) => {
                    rows.push(row.clone());
                    if rows.len().is_multiple_of(2) {
                        source.job_finished(row.job, row.user, row.submit + Span(hindered));
                    }
                }
                row => assert!(row.is_some()),
            }
        }
        rows.into_iter().map(|row| (row.tasks, row.duration)).collect::<Vec<_>>()
    };
    let first = rows(&noisy, 1000);
    assert_eq!(first, rows(&noisy, 2_000_000));
    assert_eq!(first.iter().map(|(tasks, _)| *tasks).collect::<Vec<_>>(), [2, 1, 2, 1, 2, 1, 2, 1]);
    assert_eq!(first.iter().map(|(_, duration)| duration).collect::<BTreeSet<_>>().len(), 8);
}
