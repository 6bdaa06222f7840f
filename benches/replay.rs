//! Complete replays under DRF: 400 machines of 64 cores and 256 GiB at 90 % of their capacity, with steady arrivals (flat) or waves
//! (burst), and 100 or 100,000 users. Measures the engine alone, and everything: CSV input, metrics, and the tables `runs`, `users` and
//! `jobs`. Baseline: a simple simulator, on fewer tasks.

#[path = "common/drf_run.rs"]
mod drf_run;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use plimsoll::books::Weights;
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, Options};
use plimsoll::experiment::{SharedSupply, Supply};
use plimsoll::policy::{BUILT_IN, Setup};
use plimsoll::record::Recorder;
use plimsoll::workload::synthetic::{Generated, Generator};
use plimsoll::workload::{Input, Source, TaskSet, Workload};

const TASKS: usize = 1_000_000;
const MACHINES: usize = 400;
const MACHINE: [u64; 2] = [64_000, 262_144];

/// Generates 28.6 tasks per second. The mean task takes 298 s, 2.7 cores and 10.8 GiB, which is a load of 0.9 on 25,600 cores and 102,400
/// GiB.
fn workload(users: u32, burst: bool) -> Workload {
    let wave = if burst { "burst = { amplitude = 0.6, period = \"30m\" }" } else { "" };
    let plan = format!(
        r#"
generator = "synthetic"
jobs = {TASKS}
arrival = {{ distribution = "exponential", mean = 0.034922 }}
{wave}
[[class]]
name = "user"
users = {users}
zipf = 0.6
duration = {{ distribution = "lognormal", median = 180.75, sigma = 1.0 }}
[class.demand]
cpu = {{ distribution = "choice", values = [1, 2, 4], weights = [0.2, 0.35, 0.45] }}
memory_gib = {{ distribution = "uniform", min = 1.6, max = 20 }}
"#
    );
    let generator: Generator = toml::from_str(&plan).expect("a plan");
    match generator.generate(1).expect("a workload") {
        Generated::Workload(workload) => workload,
        Generated::Loop(_) => unreachable!("the generator is not closed-loop"),
    }
}

fn spec() -> ClusterSpec {
    ClusterSpec::parse("machines", &format!("{MACHINES}x64c256g")).expect("machines")
}

fn options(placement: Placement) -> Options {
    Options { placement, ..Options::default() }
}

struct Silent;

impl Recorder for Silent {}

/// Runs the engine with its input in memory and without a recorder.
fn engine_alone(workload: &Workload, policy: &str, placement: Placement) -> u64 {
    let mut source = workload.source();
    let cluster = Cluster::new(&spec(), source.dims()).expect("a cluster");
    let weights = Weights::default();
    let setup = Setup {
        dims: &cluster.dims,
        capacity: cluster.total(),
        machines: MACHINES as u64,
        weights: &weights,
        labels: None,
    };
    let mut policy = BUILT_IN.parse(policy).expect("a policy").build(&setup).expect("a policy");
    let outcome = engine::run(&mut source, &mut *policy, cluster, weights.clone(), &options(placement), &mut Silent);
    outcome.expect("a run").launched
}

/// Returns the workload as a canonical CSV trace.
fn csv(workload: &Workload) -> Input {
    let mut text = "job,user,submit_us,duration_us,cpu,memory_mib\n".to_owned();
    for set in &workload.sets {
        let (job, user) = (workload.job_name(set.job), workload.users.name(set.user.0));
        let (cores, milli) = (set.demand.0[0] / 1000, set.demand.0[0] % 1000);
        writeln!(text, "{job},{user},{},{},{cores}.{milli:03},{}", set.submit.0, set.duration.0, set.demand.0[1])
            .expect("a string grows");
    }
    Input::Bytes(PathBuf::from("bench.csv"), text.into_bytes().into())
}

/// Runs everything from CSV text to tables.
fn experiment(supply: &SharedSupply, placement: Placement, folder: &Path) -> u64 {
    drf_run::execute(supply, "bench", &spec(), &options(placement), folder).outcome.launched
}

/// The simple simulator: a heap of ends, a scan over users for the smallest dominant share, and a scan over machines.
struct Obvious {
    free: Vec<[u64; 2]>,
    total: [f64; 2],
    held: Vec<[u64; 2]>,
    lines: Vec<VecDeque<usize>>,
    /// Time, task and machine.
    finishes: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

impl Obvious {
    fn replay(tasks: &[TaskSet], users: usize, placement: Placement) -> u64 {
        let whole = MACHINE.map(|amount| amount * MACHINES as u64);
        let mut obvious = Obvious {
            free: if placement == Placement::Pooled { vec![whole] } else { vec![MACHINE; MACHINES] },
            total: whole.map(|amount| amount as f64),
            held: vec![[0; 2]; users],
            lines: vec![VecDeque::new(); users],
            finishes: BinaryHeap::new(),
        };
        let (mut next, mut launched) = (0, 0);
        loop {
            let arrival = tasks.get(next).map(|task| task.submit.0);
            let finish = obvious.finishes.peek().map(|Reverse((at, ..))| *at);
            let Some(now) = arrival.into_iter().chain(finish).min() else { return launched };
            obvious.end(tasks, now);
            while let Some(task) = tasks.get(next).filter(|task| task.submit.0 == now) {
                obvious.lines[task.user.index()].push_back(next);
                next += 1;
            }
            launched += obvious.serve(tasks, now);
        }
    }

    fn end(&mut self, tasks: &[TaskSet], now: u64) {
        while let Some(&Reverse((_, task, machine))) = self.finishes.peek().filter(|Reverse((at, ..))| *at == now) {
            self.finishes.pop();
            for d in 0..2 {
                self.free[machine][d] += tasks[task].demand.0[d];
                self.held[tasks[task].user.index()][d] -= tasks[task].demand.0[d];
            }
        }
    }

    fn serve(&mut self, tasks: &[TaskSet], now: u64) -> u64 {
        let mut launched = 0;
        let mut blocked = vec![false; self.lines.len()];
        loop {
            let share = |held: &[u64; 2]| (held[0] as f64 / self.total[0]).max(held[1] as f64 / self.total[1]);
            let waiting = (0..self.lines.len()).filter(|&user| !blocked[user] && !self.lines[user].is_empty());
            let least = waiting.min_by(|&a, &b| share(&self.held[a]).total_cmp(&share(&self.held[b])));
            let Some(user) = least else { return launched };
            let task = self.lines[user][0];
            let need = &tasks[task].demand.0;
            match self.free.iter().position(|free| need[0] <= free[0] && need[1] <= free[1]) {
                None => blocked[user] = true,
                Some(machine) => {
                    self.lines[user].pop_front();
                    for d in 0..2 {
                        self.free[machine][d] -= need[d];
                        self.held[user][d] += need[d];
                    }
                    self.finishes.push(Reverse((now + tasks[task].duration.0, task, machine)));
                    launched += 1;
                }
            }
        }
    }
}

/// Measures the engine alone, on waves of arrivals, under DRF and in order of arrival, by the number of users. With times in whole seconds,
/// about thirty machines are freed at one instant; with times in microseconds, one machine.
fn waves(criterion: &mut Criterion) {
    for users in [1000, 10_000, 100_000] {
        let mut workload = workload(users, true);
        for times in ["microseconds", "seconds"] {
            for (place, placement) in [("pooled", Placement::Pooled), ("first-fit", Placement::FirstFit)] {
                let mut group = criterion.benchmark_group(format!("waves/{users} users/{times}/{place}"));
                group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(TASKS as u64));
                for policy in ["drf", "fifo"] {
                    group.bench_function(policy, |bencher| {
                        bencher.iter(|| assert_eq!(engine_alone(&workload, policy, placement), TASKS as u64));
                    });
                }
                group.finish();
            }
            for set in &mut workload.sets {
                let second = |micros: u64| micros / 1_000_000 * 1_000_000;
                (set.submit.0, set.duration.0) = (second(set.submit.0), second(set.duration.0).max(1_000_000));
            }
        }
    }
}

fn replay(criterion: &mut Criterion) {
    for (users, prefix) in [(100, 30_000), (100_000, 2_000)] {
        for (arrivals, burst) in [("flat", false), ("burst", true)] {
            let workload = workload(users, burst);
            let supply = SharedSupply::from(Supply::Csv(csv(&workload), Vec::new()));
            let folder = tempfile::tempdir().expect("a temporary folder");
            for (place, placement) in [("pooled", Placement::Pooled), ("first-fit", Placement::FirstFit)] {
                let mut group = criterion.benchmark_group(format!("replay/{users} users/{arrivals}/{place}"));
                group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(TASKS as u64));
                group.bench_function("engine", |bencher| {
                    bencher.iter(|| assert_eq!(engine_alone(&workload, "drf", placement), TASKS as u64));
                });
                group.bench_function("csv to tables", |bencher| {
                    bencher.iter(|| assert_eq!(experiment(&supply, placement, folder.path()), TASKS as u64));
                });
                group.throughput(Throughput::Elements(prefix as u64));
                group.bench_function(format!("obvious simulator, {prefix} tasks"), |bencher| {
                    let tasks = &workload.sets[..prefix];
                    bencher.iter(|| {
                        assert_eq!(black_box(Obvious::replay(tasks, users as usize, placement)), prefix as u64)
                    });
                });
                group.finish();
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1));
    targets = replay, waves
}
criterion_main!(benches);
