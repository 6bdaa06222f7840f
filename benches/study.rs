//! Measures the CPU time of the layer around runs. Other processes affect CPU time little.
//!
//! - Per run: `plimsoll run` with one run (process, progress, tables, receipt) against the same run in memory (workload, engine, and the
//!   metrics and series of the same tables, not written), alternating, each in its own process.
//! - Per study: `plimsoll run` without missing runs (statistics, figures, report).
//! - The wall time with one and two threads, against the same runs in memory in one and two processes, which is the speedup that the
//!   machine allows.
//!
//! `cargo bench --bench study` takes a quarter of an hour; `-- --seeds 100` measures more runs.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use plimsoll::experiment::study::{Shard, listed};
use plimsoll::experiment::{Destination, SharedSupply, Study, simulate};
use plimsoll::policy::{BUILT_IN, Registry};

const SEEDS: u64 = 10;
const ROUNDS: usize = 5;

/// Plans with runs of about a second on a current machine. The `jobs` table has one row per job, so a run with more tasks per job writes
/// less.
const PLANS: [(&str, &str); 2] = [
    (
        "the Facebook workload",
        r#"
policies = ["drf"]
tables = ["runs", "users", "jobs", "fairness", "bins", "quantiles", "demands"]
[cluster]
machines = "400x16c32g"
placement = "pooled"
[workload]
generator = "facebook"
hours = 4
load = 0.85
users = "job"
"#,
    ),
    (
        "240,000 jobs of six tasks",
        r#"
policies = ["drf"]
[cluster]
machines = "40x16c32g"
placement = "first-fit"
[workload]
generator = "synthetic"
jobs = 240000
arrival = { distribution = "exponential", mean = 0.25 }
[[workload.class]]
name = "wide"
users = 30
tasks = { distribution = "uniform", min = 1, max = 20 }
duration = { distribution = "uniform", min = 4, max = 12 }
demand = { cpu = 1, memory_gib = 1 }
[[workload.class]]
name = "deep"
users = 20
duration = { distribution = "uniform", min = 10, max = 30 }
demand = { cpu = 1, memory_gib = 4 }
"#,
    ),
];

/// Returns the CPU seconds of the ended children of this process, in steps of 0.01 s on Linux; zero on other systems.
fn spent() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The state before these fields is a letter; cutime and cstime are fields 16 and 17 of the line.
    let fields =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().filter_map(|field| field.parse::<f64>().ok());
    fields.skip(12).take(2).sum::<f64>() / 100.0
}

/// Runs the seeds from `from` (inclusive) to `to` (exclusive) in memory.
fn run_in_memory(path: &Path, from: u64, to: u64) {
    let study = Study::read(path, &[], &Registry::new(BUILT_IN)).expect("a plan");
    let plan = &study.cells[0];
    for &seed in plan.seeds.iter().filter(|seed| (from..to).contains(seed)) {
        let supply = SharedSupply::from(plan.workload.supply(seed).expect("a workload"));
        let to = Destination {
            folder: None,
            policy: plan.policies[0].name.clone(),
            run: 0,
            seed: Some(seed),
            axes: Vec::new(),
            tables: plan.tables.clone(),
            metadata: Vec::new(),
            saved: None,
        };
        let simulation = plan.simulation(&supply, "bench");
        simulate(&simulation, &plan.policies[0], &to, &mut |_, _| Ok(())).expect("a run");
    }
}

fn in_memory(path: &Path, from: u64, to: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.arg("--memory").arg(path).args([from, to].map(|seed| seed.to_string()));
    command
}

/// Returns the command `plimsoll run`, executed by this same program, so that the memory layout of the code makes no difference.
fn program(path: &Path, out: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.arg("run").args(args).arg("-o").arg(out).arg(path);
    command
}

/// Runs commands concurrently. Returns CPU and wall seconds.
fn cost(commands: Vec<Command>) -> (f64, f64) {
    let (before, started) = (spent(), Instant::now());
    let start =
        |mut command: Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let children: Vec<_> = commands.into_iter().map(start).collect();
    for mut child in children {
        let status = child.wait().expect("the program ends");
        assert!(status.success(), "{status}");
    }
    (spent() - before, started.elapsed().as_secs_f64())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|arg| arg == "run") {
        return plimsoll::cli::main(&Registry::new(BUILT_IN));
    }
    let after = |name: &str| args.iter().position(|arg| arg == name).map(|at| &args[at + 1..]);
    if let Some([path, from, to, ..]) = after("--memory") {
        run_in_memory(Path::new(path), from.parse().expect("a seed"), to.parse().expect("a seed"));
        return ExitCode::SUCCESS;
    }
    let seeds = after("--seeds").and_then(|rest| rest.first()?.parse().ok()).unwrap_or(SEEDS);
    for (name, plan) in PLANS {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("plan.toml");
        let plan = format!("name = \"overhead\"\nseeds = {seeds}\n{plan}");
        std::fs::write(&path, plan).expect("a temporary folder is writable");
        println!("{seeds} runs of {name}");
        let study = Study::read(&path, &[], &Registry::new(BUILT_IN)).expect("a plan");
        overhead(dir.path(), &path, &study);
        scaling(dir.path(), &path, &study.cells[0].seeds);
    }
    ExitCode::SUCCESS
}

fn overhead(dir: &Path, path: &Path, study: &Study) {
    let seeds = study.cells[0].seeds.len() as u64;
    let out = dir.join("out");
    let (mut ratios, mut memories) = (Vec::new(), 0.0);
    for index in 0..seeds {
        let own = listed(study, None, Some(Shard { index, of: seeds })).expect("a list");
        let [run] = &own[..] else { unreachable!("as many shards as runs") };
        let seed = run.seed.expect("a seed");
        let shard = format!("{index}/{seeds}");
        for _ in 0..ROUNDS {
            let memory = cost(vec![in_memory(path, seed, seed + 1)]).0;
            let whole = cost(vec![program(path, &out, &["-j", "1", "--shard", &shard])]).0;
            std::fs::remove_dir_all(&out).expect("a temporary folder can be removed");
            ratios.push((whole / memory).ln());
            memories += memory;
        }
    }
    cost(vec![program(path, &out, &[])]);
    let gather = (0..ROUNDS).map(|_| cost(vec![program(path, &out, &["-j", "1"])]).0).sum::<f64>() / ROUNDS as f64;
    let (pairs, memory) = (ratios.len() as f64, memories / ratios.len() as f64);
    let mean = ratios.iter().sum::<f64>() / pairs;
    let spread = (ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (pairs - 1.0)).sqrt();
    let percent = |ratio: f64| 100.0 * (ratio.exp() - 1.0);
    let [low, high] = [-1.96, 1.96].map(|sigmas| percent(mean + sigmas * spread / pairs.sqrt()));
    println!(
        "a run in memory {memory:.2} CPU s; with its files {:.1} % more (geometric mean of {pairs} pairs; 95 % interval {low:.1} \
         to {high:.1}); statistics, figures and report of all {gather:.2} CPU s",
        percent(mean)
    );
}

fn scaling(dir: &Path, path: &Path, seeds: &[u64]) {
    let out = dir.join("scaling");
    let middle = seeds[seeds.len() / 2];
    let [mut one, mut two, mut single, mut double] = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        one = one.min(cost(vec![program(path, &out, &["--restart", "-j", "1"])]).1);
        two = two.min(cost(vec![program(path, &out, &["--restart", "-j", "2"])]).1);
        single = single.min(cost(vec![in_memory(path, 0, u64::MAX)]).1);
        double = double.min(cost(vec![in_memory(path, 0, middle), in_memory(path, middle, u64::MAX)]).1);
    }
    println!(
        "all runs: -j 1 {one:.1} s, -j 2 {two:.1} s, {:.2} times as fast; in memory, one process {single:.1} s, two {double:.1} s, \
         {:.2} times",
        one / two,
        single / double
    );
}
