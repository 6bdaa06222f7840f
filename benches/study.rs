//! What the layer around runs costs: `plimsoll run` (files, receipts, statistics, figures, report) beside the same runs in
//! memory (workload, engine and metrics, no files), in CPU time, which other processes disturb little; and the wall time with
//! one thread and two.
//!
//! `cargo bench --bench study`; `-- --seeds 100 --rounds 1` for more runs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use plimsoll::experiment::{Destination, Simulation, Study, simulate};
use plimsoll::policy::Registry;

const SEEDS: u64 = 8;
const ROUNDS: u64 = 5;

/// Runs of about a second on a machine of today. The `jobs` table has a row a job, so what a run writes goes with how many
/// tasks a job has.
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
    let (seeds, rounds) = (option("--seeds", SEEDS), option("--rounds", ROUNDS));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("plan.toml");
    for (name, plan) in PLANS {
        let plan = format!("name = \"overhead\"\nseeds = {seeds}\n{plan}");
        std::fs::write(&path, plan).expect("a temporary folder is writable");
        println!("{seeds} runs of {name}, {rounds} rounds");
        measure(dir.path(), &path, seeds, rounds);
    }
}

fn measure(dir: &Path, path: &Path, seeds: u64, rounds: u64) {
    // One beside the other in every round: what the machine does besides changes slowly, and a median forgives the rest.
    let [mut memories, mut one_overs, mut two_overs, mut scales] = [const { Vec::new() }; 4];
    for round in 1..=rounds {
        let memory = in_memory(path);
        let (one_cpu, one) = whole(path, &dir.join("one"), "1");
        let (two_cpu, two) = whole(path, &dir.join("two"), "2");
        memories.push(memory);
        one_overs.push(100.0 * (one_cpu / memory - 1.0));
        two_overs.push(100.0 * (two_cpu / memory - 1.0));
        scales.push(one / two);
        println!(
            "round {round}: in memory {memory:.2} CPU s, -j 1 {one_cpu:.2}, -j 2 {two_cpu:.2}; wall {one:.2} s and {two:.2} s"
        );
    }
    println!(
        "medians (least to most): a run in memory {:.2} CPU s; plimsoll run -j 1 {}, -j 2 {} more; two threads are {} times as \
         fast as one",
        middle(&mut memories).1 / seeds as f64,
        spread(&mut one_overs, "%"),
        spread(&mut two_overs, "%"),
        spread(&mut scales, "")
    );
}

/// Least, median and most.
fn middle(of: &mut [f64]) -> (f64, f64, f64) {
    of.sort_unstable_by(f64::total_cmp);
    (of[0], of[of.len() / 2], of[of.len() - 1])
}

fn spread(of: &mut [f64], unit: &str) -> String {
    let (least, median, most) = middle(of);
    format!("{median:.1}{unit} ({least:.1} to {most:.1})")
}
