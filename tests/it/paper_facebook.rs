//! Compares Figures 1, 2, 13 and 14 of the DRF paper (Ghodsi et al., NSDI 2011, sections 2 and 7.3) with our synthesis of its workload. The
//! paper's values and ours must be within the same bounds, and a policy without slots must gain as much as DRF. Figure 3 must show the
//! allocation of section 4.1.
//!
//! docs/reproduction.md has all numbers, with their intervals.

use std::collections::HashMap;
use std::path::Path;

use crate::paper::{numbers, table_of};
use crate::paper_machines::experiment;
use crate::replay::{plimsoll, run, said};

/// Asserts that the paper's value and ours are both from `low` to `high`.
fn both_within(what: &str, paper: f64, ours: f64, (low, high): (f64, f64)) {
    for (whose, value) in [("the paper's", paper), ("ours", ours)] {
        assert!((low..=high).contains(&value), "{what}: {whose} is {value}, not from {low} to {high}");
    }
}

/// Reads the rows of a CSV file, with values by the name of their column.
fn rows(path: &Path) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    reader.deserialize().map(|row| row.expect("a row of text")).collect()
}

fn value(row: &HashMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// Figure 1: the mean demands of map and reduce tasks over three seeds; memory in GiB.
#[test]
fn figure_1_asks_for_what_the_papers_tasks_do() {
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper/drf-fig1-2.toml");
    let mut sums: HashMap<(String, String), (f64, f64)> = HashMap::new();
    for seed in ["1", "2", "3"] {
        let stats = ["trace", "stats", "--set", "hours=2", "--format", "json", "--seed", seed, "--plan"];
        let output = run(plimsoll(&stats).arg(&plan));
        assert!(output.status.success(), "{}", said(&output));
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for kind in stats["summary"]["marginals"].as_array().expect("kinds of tasks") {
            let tasks = kind["tasks"].as_f64().expect("a number of tasks");
            for demand in kind["demand"].as_array().expect("demands") {
                let key =
                    (kind["kind"].as_str().expect("a kind").to_owned(), demand[0].as_str().expect("a name").to_owned());
                let sum = sums.entry(key).or_default();
                sum.0 += tasks * demand[1]["mean"].as_f64().expect("a mean");
                sum.1 += tasks;
            }
        }
    }
    let of = |kind: &str, resource: &str| sums[&(kind.to_owned(), resource.to_owned())];
    let mean = |kind: &str, resource: &str| of(kind, resource).0 / of(kind, resource).1;
    both_within("cores of a map", 0.83, mean("map", "cpu"), (0.7, 1.0));
    both_within("memory of a map", 0.60, mean("map", "memory"), (0.45, 0.75));
    both_within("cores of a reduce", 0.46, mean("reduce", "cpu"), (0.35, 0.6));
    both_within("memory of a reduce", 0.84, mean("reduce", "memory"), (0.65, 1.0));
    both_within("maps among tasks", 0.70, of("map", "cpu").1 / of("all", "cpu").1, (0.6, 0.8));
}

/// Figure 2: nearly every task fits into the memory of a slot, most tasks need less than half of that memory, and about half of the tasks
/// need more CPU than a slot has.
#[test]
fn figure_2_wastes_memory_and_lacks_cpu() {
    let dir = experiment("drf-fig1-2", &["workload.hours=6"]);
    // The figure shows CPU and memory. The column is named after memory, which the figure lists first.
    let rows = rows(&dir.path().join("figures/demand-of-slot.csv"));
    let below = |series: &str, ratio: f64| {
        let points = rows
            .iter()
            .filter(|row| row["series"].eq_ignore_ascii_case(series) && value(row, "demand_memory") <= ratio);
        points.map(|row| value(row, "fraction")).fold(0.0, f64::max)
    };
    both_within("tasks within a slot's memory", 0.999, below("memory", 1.0), (0.98, 1.0));
    both_within("tasks within half of a slot's memory", 0.949, below("memory", 0.5), (0.8, 1.0));
    both_within("tasks within a slot's CPU", 0.445, below("cpu", 1.0), (0.35, 0.65));
}

/// Figure 13: the mean utilisation from 100 s to 2790 s under DRF and under slots, and their ratio.
#[test]
fn figure_13_uses_more_of_the_cluster_without_slots() {
    let dir = experiment("drf-fig13", &["seeds=4"]);
    let used = |policy: &str, column: &str| {
        let runs: Vec<f64> =
            (0..4).flat_map(|run| numbers(&table_of(dir.path(), "runs", policy, run), column)).collect();
        runs.iter().sum::<f64>() / 4.0
    };
    let of = |policy: &str| [used(policy, "used_cpu"), used(policy, "used_memory")];
    let (drf, slots) = (of("drf"), of("slot:12"));
    both_within("CPU under DRF", 0.753, drf[0], (0.6, 0.9));
    both_within("memory under DRF", 0.284, drf[1], (0.2, 0.45));
    both_within("CPU under slots", 0.634, slots[0], (0.4, 0.7));
    both_within("memory under slots", 0.236, slots[1], (0.15, 0.35));
    both_within("CPU under DRF over slots", 0.753 / 0.634, drf[0] / slots[0], (1.1, 1.7));
    both_within("memory under DRF over slots", 0.284 / 0.236, drf[1] / slots[1], (1.1, 1.7));
}

/// The reductions in Figure 14, by bin of the job size.
const REDUCTIONS: [f64; 7] = [-0.03, 0.35, 0.51, 0.48, 0.55, 0.66, 0.53];

/// Returns how much the mean completion time of each bin is reduced from that under slots.
fn reductions(dir: &Path, policy: &str) -> Vec<f64> {
    let rows = rows(&dir.join("figures/reduction.csv"));
    let bins = rows.iter().filter(|row| row["policy"] == policy && row["tasks"] != "all");
    bins.map(|row| value(row, "reduction")).collect()
}

/// Figure 14: jobs of up to 500 tasks gain nearly nothing, and larger jobs gain at least a quarter of their completion time. CPU max-min,
/// which considers one resource only, gains as much as DRF.
#[test]
fn figure_14_is_the_removal_of_slots() {
    let dir = experiment("drf-fig13-14", &["seeds=4", "policies=[\"slot:12\", \"maxmin:cpu\", \"drf\"]"]);
    let (drf, cpu) = (reductions(dir.path(), "drf"), reductions(dir.path(), "maxmin:cpu"));
    assert_eq!((drf.len(), cpu.len()), (7, 7));
    both_within("jobs of up to 500 tasks", REDUCTIONS[0], drf[0], (-0.05, 0.05));
    for (bin, (paper, ours)) in REDUCTIONS.iter().zip(&drf).enumerate().skip(1) {
        both_within(&format!("bin {bin}"), *paper, *ours, (0.25, 0.85));
    }
    let means = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    both_within("larger jobs", means(&REDUCTIONS[1..]), means(&drf[1..]), (0.4, 0.75));
    for (bin, (drf, cpu)) in drf.iter().zip(&cpu).enumerate() {
        assert!((drf - cpu).abs() < 0.02, "bin {bin}: DRF {drf}, CPU max-min {cpu}");
    }
    // In every run the mean over all jobs differs by less than 1 % between DRF and CPU max-min, and is smaller than under slots.
    for run in 0..4 {
        let mean = |policy: &str| numbers(&table_of(dir.path(), "runs", policy, run), "completion_mean_s")[0];
        let (slots, cpu, drf) = (mean("slot:12"), mean("maxmin:cpu"), mean("drf"));
        assert!((drf / cpu - 1.0).abs() < 0.01 && drf < slots, "run {run}: {slots} {cpu} {drf}");
    }
}

/// The result of Figure 14 depends on the number of users. If twenty users share the cluster, small jobs wait behind the large jobs of
/// their own user under slots and gain most without slots, which is the opposite of the paper.
#[test]
fn with_twenty_users_small_jobs_gain_most() {
    let changes = ["seeds=3", "policies=[\"slot:12\", \"drf\"]", "workload.users=20"];
    let dir = experiment("drf-fig13-14", &changes);
    let drf = reductions(dir.path(), "drf");
    assert!(drf[1..].iter().all(|large| *large < drf[0]) && drf[0] > 0.3, "{drf:?}");
}

/// Figure 3: the plotted data are the allocation of section 4.1.
#[test]
fn figure_3_is_the_allocation_of_section_4_1() {
    let dir = experiment("drf-fig3", &[]);
    let rows = rows(&dir.path().join("figures/drf-example.csv"));
    // User A has 3 of 9 CPU and 12 of 18 GB; user B has 6 CPU and 2 GB.
    let wanted =
        [("A", "cpu", 3.0 / 9.0), ("A", "memory", 12.0 / 18.0), ("B", "cpu", 6.0 / 9.0), ("B", "memory", 2.0 / 18.0)];
    assert_eq!(rows.len(), wanted.len(), "{rows:?}");
    for (user, resource, share) in wanted {
        let row = rows.iter().find(|row| row["user"] == user && row["resource"] == resource);
        let found = value(row.unwrap_or_else(|| panic!("{user}, {resource}: {rows:?}")), "share");
        assert!((found - share).abs() < 1e-9, "{user}, {resource}: {found}");
    }
}
