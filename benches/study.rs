//! What the layer around runs costs: `plimsoll run` (files, receipts, statistics, figures, report) beside the same runs in
//! memory (workload, engine and metrics, no files), in CPU time, which other processes disturb little; and the wall time with
//! one thread and two.
//!
//! `cargo bench --bench study`; `-- --jobs 500000 --seeds 20` for longer and more runs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use plimsoll::experiment::{Destination, Simulation, Study, simulate};
use plimsoll::policy::Registry;

/// Runs of about a second on a machine of today.
const JOBS: u64 = 240_000;
const SEEDS: u64 = 4;

fn plan(jobs: u64, seeds: u64) -> String {
    format!(
        r#"
name = "overhead"
policies = ["drf"]
seeds = {seeds}
[cluster]
machines = "40x16c32g"
placement = "first-fit"
[workload]
generator = "synthetic"
jobs = {jobs}
arrival = {{ distribution = "exponential", mean = 0.25 }}
[[workload.class]]
name = "wide"
users = 30
tasks = {{ distribution = "uniform", min = 1, max = 20 }}
duration = {{ distribution = "uniform", min = 4, max = 12 }}
demand = {{ cpu = 1, memory_gib = 1 }}
[[workload.class]]
name = "deep"
users = 20
duration = {{ distribution = "uniform", min = 10, max = 30 }}
demand = {{ cpu = 1, memory_gib = 4 }}
"#
    )
}

/// CPU seconds of this process, and of its children that have ended; hundredths of a second on Linux, zeros elsewhere.
fn spent() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // The state before them is a letter; utime, stime, cutime and cstime are the 14th to 17th fields of all.
    let of = |at: usize| (fields.get(at).unwrap_or(&0.0) + fields.get(at + 1).unwrap_or(&0.0)) / 100.0;
    (of(10), of(12))
}

/// The runs in memory: CPU seconds.
fn in_memory(path: &Path) -> f64 {
    let study = Study::read(path, &[], &Registry::default()).expect("a plan");
    let (before, _) = spent();
    for plan in &study.cells {
        for &seed in &plan.seeds {
            let supply = plan.workload.supply(seed).expect("a workload");
            let simulation = Simulation::of(plan, &supply, "bench");
            let to = Destination {
                folder: None,
                policy: plan.policies[0].name.clone(),
                run: 0,
                seed: Some(seed),
                axes: Vec::new(),
                tables: plan.tables.clone(),
                metadata: Vec::new(),
            };
            simulate(&simulation, &plan.policies[0], &to, &mut |_, _| Ok(())).expect("a run");
        }
    }
    spent().0 - before
}

/// `plimsoll run` with so many threads: CPU and wall seconds.
fn whole(path: &Path, out: &Path, threads: &str) -> (f64, f64) {
    let ((_, before), started) = (spent(), Instant::now());
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["run", "--restart", "-j", threads, "-o"]).arg(out).arg(path);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the program starts");
    assert!(status.success(), "{status}");
    (spent().1 - before, started.elapsed().as_secs_f64())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str, or: u64| {
        let at = args.iter().position(|arg| arg == name).map(|at| at + 1);
        at.and_then(|at| args.get(at)?.parse().ok()).unwrap_or(or)
    };
    let (jobs, seeds) = (option("--jobs", JOBS), option("--seeds", SEEDS));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("plan.toml");
    std::fs::write(&path, plan(jobs, seeds)).expect("a temporary folder is writable");
    println!("{seeds} runs of {jobs} jobs");
    for round in 1..=2 {
        let memory = in_memory(&path);
        let (one_cpu, one) = whole(&path, &dir.path().join("one"), "1");
        let (two_cpu, two) = whole(&path, &dir.path().join("two"), "2");
        let over = |cpu: f64| 100.0 * (cpu / memory - 1.0);
        println!(
            "round {round}: in memory {memory:.2} CPU s, {:.2} a run; plimsoll run -j 1 {one_cpu:.2} CPU s ({:+.1} %), \
             -j 2 {two_cpu:.2} CPU s ({:+.1} %); wall {one:.2} s and {two:.2} s, {:.2} times as fast",
            memory / seeds as f64,
            over(one_cpu),
            over(two_cpu),
            one / two
        );
    }
}
