//! The same plan gives the same bytes, whatever the number of threads and however often it is run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::replay::{files, plimsoll, run, said};

/// The file that may differ from run to run.
const PROVENANCE: &str = "run.json";

const GENERATED: &str = r#"
name = "generated"
policies = ["slot:12", "maxmin:cpu", "drf"]
baseline = "slot:12"
seeds = 3
tables = ["runs", "users", "jobs", "tasks", "bins", "quantiles", "usage", "fairness", "shares", "demands"]

[cluster]
machines = "20x16c32g"
placement = "first-fit"

[workload]
generator = "facebook"
hours = 0.05
load = 0.5
cluster_cores = 320
max_tasks = 400
"#;

const THINNED: &str = r#"
name = "thinned"
policies = ["fifo", "asset", "drf", "ceei", "pnorm:3"]
seeds = 4

[cluster]
machines = "2x4c8g"
on_blocked = "stop"

[workload]
trace = "trace.csv"
thin = 0.6
"#;

/// Returns a trace of 400 jobs that follow a simple rule.
fn trace() -> String {
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    for job in 0..400u64 {
        let (user, submit, duration) = (job * job % 7, job / 3 * 2, 1 + job * 13 % 29);
        let (tasks, cpu, memory) = (1 + job % 3, 1 + job % 2, 1 + job * 5 % 4);
        text.push_str(&format!("job{job},user-{user},{submit},{duration},{tasks},{cpu},{memory}\n"));
    }
    text
}

/// Runs a plan into a folder and returns its files, by path below it.
pub fn results(plan: &Path, folder: &Path, args: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let output = run(plimsoll(&["run"]).arg(plan).arg("-o").arg(folder).args(args));
    assert!(output.status.success(), "{}", said(&output));
    let below = |path: &Path| path.strip_prefix(folder).expect("files were listed there").display().to_string();
    let read = |path: &Path| std::fs::read(path).expect("results are readable");
    files(folder).iter().map(|path| (below(path), read(path))).filter(|(path, _)| path != PROVENANCE).collect()
}

/// Returns the paths of the files that differ; a path occurs twice if both sides have the file.
pub fn differences(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    a.keys().chain(b.keys()).filter(|path| a.get(*path) != b.get(*path)).cloned().collect()
}

fn same_bytes(text: &str, name: &str, runs: usize) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, text).expect("a temporary file is writable");
    std::fs::write(dir.path().join("trace.csv"), trace()).expect("a temporary file is writable");
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let first = results(&plan, &one, &["-j", "1"]);
    let tables = first.keys().filter(|path| path.starts_with("jobs/") && path.ends_with(".parquet")).count();
    assert_eq!(tables, runs, "{name}: a jobs table for every run: {:?}", first.keys());
    assert_eq!(differences(&first, &results(&plan, &two, &["-j", "2"])), [""; 0], "{name}: -j 1 and -j 2");
    assert_eq!(
        differences(&first, &results(&plan, &one, &["-j", "2"])),
        [""; 0],
        "{name}: a second run into the same folder"
    );
}

#[test]
fn a_generated_workload_is_the_same_with_one_thread_and_two() {
    same_bytes(GENERATED, "generated", 9);
}

#[test]
fn a_thinned_trace_is_the_same_with_one_thread_and_two() {
    same_bytes(THINNED, "thinned", 20);
}

/// A key set on the command line gives the same results as the plan with that change; another seed gives other results.
#[test]
fn a_set_key_is_a_key_of_the_plan() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a temporary file is writable");
        path
    };
    let plan = write("plan.toml", GENERATED);
    let edited =
        write("edited.toml", &GENERATED.replace("load = 0.5", "load = 0.25").replace("seeds = 3", "seeds = 1"));
    let out = |name: &str| dir.path().join(name);
    let set = ["--set", "seeds=1", "--set", "workload.load=0.25"];
    let changed = results(&plan, &out("set"), &[&set[..], &["-j", "2"]].concat());
    assert_eq!(differences(&changed, &results(&edited, &out("edited"), &["-j", "1"])), [""; 0]);
    let other = results(&plan, &out("other"), &[&set[..], &["--set", "seed=10"]].concat());
    assert!(!differences(&changed, &other).is_empty(), "another seed gives the same bytes");
}
