//! Runs that share the rows of their workload have the same tables and the same errors as runs that read the workload themselves.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll::experiment::{Mode, ROW_MEMORY, Request, Study, execute};
use plimsoll::policy::{BUILT_IN, Registry};

use crate::determinism::differences;
use crate::reference::Silence;
use crate::replay::{files, plimsoll, run, said};

/// The largest memory of rows, and threads: no memory, less than the trace needs, and the default.
const CASES: [(u64, usize); 4] = [(0, 2), (350_000, 2), (ROW_MEMORY, 1), (ROW_MEMORY, 2)];

/// A trace of 6,000 rows with stages, gangs, labels, estimates, and jobs that follow others.
fn trace(rows: u64) -> String {
    let mut text =
        "job,user,submit_s,duration_s,tasks,cpu,memory_gib,stage,after,gang,label,estimate_s,after_job,think_s\n"
            .to_owned();
    for row in 0..rows {
        let second = row % 3 == 2;
        let job = if second { row - 1 } else { row };
        let user = job * job % 23;
        let (stage, after) = if second { ("reduce", "map") } else { ("map", "") };
        let label = if row % 50 == 0 { "ssd" } else { "" };
        let follows = if job % 7 == 0 && job > 20 { format!("job{},3", (job - 20) / 3 * 3) } else { ",".to_owned() };
        text.push_str(&format!(
            "job{job},user-{user},{},{},{},{},{},{stage},{after},{},{label},{},{follows}\n",
            row / 6,
            1 + row * 13 % 29,
            1 + row % 3,
            1 + row % 2,
            1 + row * 5 % 4,
            row % 40 == 3,
            row % 31
        ));
    }
    text
}

const PLAN: &str = r#"
name = "shared"
policies = ["fifo", "drf", "slot:2"]
tables = ["runs", "users", "jobs", "tasks", "bins", "quantiles", "fairness"]

[cluster]
machines = "10x16c32g"
placement = "pooled"

[workload]
trace = "trace.csv"
"#;

/// Executes a plan in each case. Returns the first results, as files or as an error; all others are the same.
fn results(dir: &Path, plan: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let path = dir.join("plan.toml");
    std::fs::write(&path, plan).expect("a temporary file is writable");
    let results = |row_memory, threads| {
        let out = tempfile::tempdir().expect("a temporary folder");
        let study = Study::read(&path, &[], &Registry::new(BUILT_IN)).expect(plan);
        let request = Request {
            folder: Some(out.path()),
            threads,
            mode: Mode::Restart,
            shard: None,
            row_memory,
            save_every: None,
        };
        let done = execute(&study, &request, &Silence).map_err(|error| error.to_string())?;
        let below = |path: &Path| path.strip_prefix(out.path()).expect("files were listed there").display().to_string();
        let read = |path: &Path| std::fs::read(path).expect("results are readable");
        drop(done);
        Ok(files(out.path()).iter().map(|path| (below(path), read(path))).collect::<BTreeMap<_, _>>())
    };
    let first = results(0, 1);
    for (memory, threads) in CASES {
        match (&first, results(memory, threads)) {
            (Ok(first), Ok(other)) => {
                assert_eq!(differences(first, &other), [""; 0], "{memory} bytes, {threads} threads: {plan}");
            }
            (first, other) => assert_eq!(first.as_ref().err(), other.as_ref().err(), "{memory} bytes: {plan}"),
        }
    }
    first
}

/// Counts the tables of tasks.
fn runs(results: &BTreeMap<String, Vec<u8>>) -> usize {
    results.keys().filter(|path| path.contains("tasks") && path.ends_with(".parquet")).count()
}

#[test]
fn tables_are_the_same_whoever_reads_the_rows() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("trace.csv"), trace(6000)).expect("a temporary file is writable");
    // Without jobs that follow others, rows are read only up to the horizon.
    let plain: String = (0..6000).map(|row| format!("{row},u{},{},{},2,3\n", row % 9, row / 9, row % 20)).collect();
    let plain = format!("job,user,submit_s,duration_s,cpu,memory_gib\n{plain}");
    std::fs::write(dir.path().join("plain.csv"), plain).expect("a temporary file is writable");
    let converted = run(plimsoll(&["trace", "import", "trace.csv", "-o", "trace.parquet"]).current_dir(dir.path()));
    assert!(converted.status.success(), "{}", said(&converted));
    let generated = "generator = \"facebook\"\nhours = 0.02\nload = 0.5\ncluster_cores = 160\nmax_tasks = 100";
    let looped = "generator = \"closed-loop\"\njobs_per_user = 20\n[[workload.class]]\nname = \"u\"\nusers = 9\n\
                  demand = { cpu = 4, memory_gib = 8 }\nduration = { distribution = \"exponential\", mean = 9 }";
    let seeds = PLAN.replacen("name =", "seeds = 2\nname =", 1);
    let with = |plan: &str, workload: &str| plan.replace("trace = \"trace.csv\"", workload);
    let swept = "\n[sweep]\nuntil = [\"100s\", \"300s\"]\n\"cluster.machines\" = [\"10x16c32g\", \"5x16c32g\"]\n";
    for (plan, expected) in [
        (PLAN.to_owned(), 3),
        (with(PLAN, "trace = \"trace.parquet\""), 3),
        (with(&seeds, "trace = \"trace.csv\"\nthin = 0.7\nestimates = \"uniform:3\""), 6),
        (with(&seeds, &format!("{generated}\nestimates = \"lognormal:0.5\"")), 6),
        (with(&seeds, generated), 6),
        (with(&seeds, looped), 6),
        (format!("{PLAN}{swept}"), 12),
        (format!("{}{swept}", with(PLAN, "trace = \"plain.csv\"")), 12),
        (PLAN.replace("[cluster]", "[[service]]\nname = \"user-4\"\ntasks = 2\ndemand = { cpu = 1 }\n[cluster]"), 3),
    ] {
        let results = results(dir.path(), &plan).unwrap_or_else(|error| panic!("{error}\n{plan}"));
        assert_eq!(runs(&results), expected, "{plan}: {:?}", results.keys());
    }
}

#[test]
fn errors_are_the_same_whoever_reads_the_rows() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let rows = trace(6000);
    let write = |text: &str| std::fs::write(dir.path().join("trace.csv"), text).expect("a temporary file is writable");
    let one = PLAN.replace(", \"drf\", \"slot:2\"", ", \"drf\"");
    // A row that the reader rejects: an earlier horizon ends the runs before it.
    write(&format!("{rows}late,u,1000,long,1,1,1,,,,,,,\n"));
    let message = results(dir.path(), &one).expect_err("an invalid duration");
    assert!(message.contains("trace.csv, line 6002") && message.contains("'long'"), "{message}");
    let early = format!("until = \"500s\"\n{one}");
    assert_eq!(results(dir.path(), &early).map(|results| runs(&results)), Ok(2));
    // A row that the engine rejects, at its line.
    write(&format!("{rows}late,u,1000,1,1000,1,1,,,true,,,,\n"));
    let message = results(dir.path(), &one).expect_err("a gang that is too large");
    assert!(message.contains("trace.csv, line 6002") && message.contains("'gang'"), "{message}");
}
