//! The measures of jobs equal an independent computation from the tables `jobs` and `tasks` on random runs: bounded slowdown, finish-time
//! fairness, deadlines, waits by class, and over-commitment.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use plimsoll::output::schema::partition;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

/// The cores and the memory of the cluster.
const CAPACITY: [f64; 2] = [10.0, 20.0];

/// A row of the trace; times in seconds.
struct Row {
    job: usize,
    submit: u64,
    duration: u64,
    tasks: u64,
    demand: [u64; 2],
    deadline: Option<u64>,
}

/// A job of the tables; times in seconds.
struct Job {
    name: usize,
    submit: f64,
    start: Option<f64>,
    finish: Option<f64>,
    tasks: f64,
    ideal: f64,
}

fn rows(rng: &mut ChaCha8Rng) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut submit = 0;
    for job in 0..rng.random_range(5..40) {
        submit += rng.random_range(0..60);
        for _ in 0..rng.random_range(1..3) {
            let duration = if rng.random_bool(0.1) { rng.random_range(3500..3700) } else { rng.random_range(1..120) };
            let deadline = rng.random_bool(0.6).then(|| submit + rng.random_range(0..300));
            let demand = [rng.random_range(1..4), rng.random_range(0..5)];
            rows.push(Row { job, submit, duration, tasks: rng.random_range(1..14), demand, deadline });
        }
    }
    rows
}

fn trace(rows: &[Row]) -> String {
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,deadline_s\n".to_owned();
    for Row { job, submit, duration, tasks, demand: [cpu, memory], deadline } in rows {
        let deadline = deadline.map(|deadline| deadline.to_string()).unwrap_or_default();
        writeln!(text, "j{job},u{},{submit},{duration},{tasks},{cpu},{memory},{deadline}", job % 3).unwrap();
    }
    text
}

fn table(dir: &Path, name: &str, policy: &str) -> Frame {
    Frame::open(&dir.join(format!("out/{name}/policy={}/run=0/{name}.parquet", partition(policy))))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// Returns the measures of a run by their definitions, with the names of their columns.
fn slow(
    rows: &[Row],
    jobs: &[Job],
    tasks: &[(f64, f64, [f64; 2])],
    end: f64,
    window: [f64; 2],
) -> Vec<(&'static str, Option<f64>)> {
    let measured: Vec<&Job> = jobs.iter().filter(|job| window[0] <= job.submit && job.submit < window[1]).collect();
    let finished = || measured.iter().filter_map(|job| Some((*job, job.finish?)));
    let bounded: Vec<f64> =
        finished().map(|(job, finish)| f64::max(1.0, (finish - job.submit) / job.ideal.max(10.0))).collect();
    // The number of other jobs that are unfinished, integrated over the time of a job.
    let overlap = |job: &Job, finish: f64| -> f64 {
        let part = |other: &Job| (other.finish.unwrap_or(end).min(finish) - other.submit.max(job.submit)).max(0.0);
        jobs.iter().map(part).sum()
    };
    let work = |job: &Job| -> f64 {
        let mine = rows.iter().filter(|row| row.job == job.name);
        let share = |row: &Row| (0..2).map(|r| row.demand[r] as f64 / CAPACITY[r]).fold(0.0, f64::max);
        mine.map(|row| share(row) * (row.tasks * row.duration) as f64).sum()
    };
    let ratio = |(job, finish): (&Job, f64)| {
        let time = finish - job.submit;
        time / job.ideal.max(overlap(job, finish) / time * work(job))
    };
    let ratios: Vec<f64> = finished().map(ratio).collect();
    let above = |limit: f64| mean(&ratios.iter().map(|ratio| f64::from(*ratio > limit)).collect::<Vec<_>>());
    let late = |job: &&Job| {
        let deadline = rows.iter().filter(|row| row.job == job.name).filter_map(|row| row.deadline).max()? as f64;
        (job.finish.is_some() || deadline < end).then(|| (job.finish.unwrap_or(end) - deadline).max(0.0))
    };
    let late: Vec<f64> = measured.iter().filter_map(late).collect();
    let missed: Vec<f64> = late.iter().map(|late| f64::from(*late > 0.0)).collect();
    let class = |long: bool, wide: bool| {
        let mine = finished().filter(|(job, _)| (job.ideal > 3600.0) == long && (job.tasks > 8.0) == wide);
        mean(&mine.map(|(job, _)| job.start.expect("a finished job") - job.submit).collect::<Vec<_>>())
    };
    let from = window[0].max(jobs.iter().map(|job| job.submit).fold(f64::MAX, f64::min));
    let to = window[1].min(end);
    let mut instants: Vec<f64> = tasks.iter().flat_map(|(start, finish, _)| [*start, *finish]).collect();
    instants.extend([from, to]);
    instants.sort_by(f64::total_cmp);
    let excess = |r: usize| -> f64 {
        let piece = |pair: &[f64]| {
            let here = tasks.iter().filter(|(start, finish, _)| *start <= pair[0] && pair[1] <= *finish);
            let used: f64 = here.map(|(.., demand)| demand[r]).sum();
            let span = (pair[1].min(to) - pair[0].max(from)).max(0.0);
            (used - CAPACITY[r]).max(0.0) * if pair[1] > pair[0] { span } else { 0.0 }
        };
        instants.windows(2).map(piece).sum::<f64>() / CAPACITY[r] / (to - from)
    };
    vec![
        ("bounded_slowdown_mean", mean(&bounded)),
        ("rho_mean", mean(&ratios)),
        ("rho_max", greatest(&ratios)),
        ("rho_above_105", above(1.05)),
        ("rho_above_110", above(1.1)),
        ("deadline_jobs", Some(late.len() as f64)),
        ("deadline_missed", mean(&missed)),
        ("tardiness_mean_s", mean(&late)),
        ("tardiness_max_s", greatest(&late)),
        ("wait_short_narrow_s", class(false, false)),
        ("wait_short_wide_s", class(false, true)),
        ("wait_long_narrow_s", class(true, false)),
        ("wait_long_wide_s", class(true, true)),
        ("excess_cpu", Some(excess(0))),
        ("excess_memory", Some(excess(1))),
    ]
}

const POLICIES: [&str; 4] = ["fifo", "drf", "slot:12", "line/edf"];

#[test]
fn they_equal_their_definitions_on_random_runs() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for case in 0..16 {
        let rows = rows(&mut rng);
        let cut = case % 2 == 1;
        let window = if case % 4 < 2 { [0.0, f64::MAX] } else { [100.0, 400.0] };
        let until = if cut { "until = \"600s\"" } else { "" };
        let measure = if case % 4 < 2 { "" } else { "measure = { from = \"100s\", to = \"400s\" }" };
        let plan = format!(
            "name = \"jobs\"\npolicies = {POLICIES:?}\ntables = [\"runs\", \"jobs\", \"tasks\"]\n{until}\n{measure}\n\
             [cluster]\nmachines = \"1x10c20g\"\nplacement = \"first-fit\"\n[workload]\ntrace = \"trace.csv\"\n"
        );
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [("trace.csv", trace(&rows)), ("plan.toml", plan)] {
            std::fs::write(dir.path().join(name), text).expect("writable");
        }
        let done = run(plimsoll(&["run", "plan.toml", "-o", "out", "--quiet"]).current_dir(dir.path()));
        assert!(done.status.success(), "{}", said(&done));
        for policy in POLICIES {
            let (jobs, tasks) = (table(dir.path(), "jobs", policy), table(dir.path(), "tasks", policy));
            let runs = table(dir.path(), "runs", policy);
            let one = |name: &str| runs.numbers(name)[0];
            let end = one("end_us").expect("an end") / 1e6;
            let seconds = |frame: &Frame, name: &str| -> Vec<Option<f64>> {
                frame.numbers(name).into_iter().map(|value| value.map(|micros| micros / 1e6)).collect()
            };
            let name = |text: Option<String>| -> usize { text.expect("a job")[1..].parse().expect("a number") };
            let [submit, start, finish, ideal] =
                ["submit_us", "start_us", "finish_us", "ideal_us"].map(|name| seconds(&jobs, name));
            let counts = jobs.numbers("tasks");
            let made: Vec<Job> = (jobs.texts("job").iter().enumerate())
                .map(|(at, text)| Job {
                    name: name(text.clone()),
                    submit: submit[at].expect("a submission"),
                    start: start[at],
                    finish: finish[at],
                    tasks: counts[at].expect("tasks"),
                    ideal: ideal[at].expect("an end"),
                })
                .collect();
            let (start, finish) = (seconds(&tasks, "start_us"), seconds(&tasks, "finish_us"));
            let numbers = tasks.numbers("task");
            let demand = |job: usize, number: f64| {
                let mut mine =
                    rows.iter().filter(|row| row.job == job).flat_map(|row| vec![row.demand; row.tasks as usize]);
                mine.nth(number as usize).expect("a task").map(|amount| amount as f64)
            };
            let ran = (tasks.texts("job").iter().enumerate()).filter_map(|(at, text)| {
                let demand = demand(name(text.clone()), numbers[at].expect("a number"));
                Some((start[at]?, finish[at].unwrap_or(end), demand))
            });
            for (column, wanted) in slow(&rows, &made, &ran.collect::<Vec<_>>(), end, window) {
                let found = one(column);
                let equal = match (found, wanted) {
                    (Some(found), Some(wanted)) => (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0),
                    (found, wanted) => found == wanted,
                };
                assert!(equal, "case {case}, {policy}, {column}: {found:?} instead of {wanted:?}");
                *seen.entry(column).or_default() += u32::from(found.is_some_and(|found| found > 0.0));
            }
        }
    }
    assert!(seen.values().all(|times| *times >= 4), "{seen:?}");
}
