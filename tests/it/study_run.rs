//! Studies through the binary: sweeps, resuming, shards, and refused input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll::experiment::{Destination, SharedSupply, Study, simulate};
use plimsoll::output::schema::{Table, partition};
use plimsoll::policy::{BUILT_IN, Registry};

use crate::determinism::differences;
use crate::frame::Frame;
use crate::replay::{files, plimsoll, run, said};

/// A sweep of 3 cells, 2 policies and 3 seeds: 18 very short runs.
pub const SWEEP: &str = r#"
name = "sweep"
question = "Does load matter?"
policies = ["drf", "fifo"]
seeds = 3
tables = ["runs", "users", "jobs", "bins", "fairness", "demands"]

[cluster]
machines = "4x4c8g"
placement = "first-fit"

[workload]
generator = "synthetic"
jobs = 60
arrival = { distribution = "exponential", mean = 2.0 }

[[workload.class]]
name = "wide"
users = 3
tasks = { distribution = "uniform", min = 1, max = 20 }
duration = { distribution = "uniform", min = 4, max = 12 }
demand = { cpu = 1, memory_gib = 1 }

[[workload.class]]
name = "deep"
users = 2
duration = { distribution = "uniform", min = 10, max = 30 }
demand = { cpu = 1, memory_gib = 4 }

[sweep]
"workload.arrival.mean" = [2.0, 3.0, 5.0]
"#;

/// Returns whether a file may differ between identical runs.
fn is_provenance(path: &str) -> bool {
    path.starts_with("run") && path.ends_with(".json")
}

/// Returns the files of a results folder by relative path, without the files that may differ.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let below = |path: &Path| path.strip_prefix(folder).expect("files were listed there").display().to_string();
    let read = |path: &Path| std::fs::read(path).expect("results are readable");
    files(folder).iter().map(|path| (below(path), read(path))).filter(|(path, _)| !is_provenance(path)).collect()
}

/// A folder with a plan in it.
pub struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    pub fn new(plan: &str) -> Scratch {
        let place = Scratch { dir: tempfile::tempdir().expect("a temporary folder") };
        place.write("plan.toml", plan);
        place
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a temporary file is writable");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates the folder in memory if the system has a memory file system with a free gibibyte. This is for thousands of files that need
    /// not outlive a test.
    pub fn in_memory(plan: &str) -> Scratch {
        const MEMORY: &str = "/dev/shm";
        let free = std::process::Command::new("df").args(["-Pk", MEMORY]).output().ok().and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()
        });
        let memory = free.filter(|&kibibytes| kibibytes >= 1 << 20).and_then(|_| tempfile::tempdir_in(MEMORY).ok());
        let place = Scratch { dir: memory.unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder")) };
        place.write("plan.toml", plan);
        place
    }

    /// Returns a command that runs the plan into a folder.
    pub fn command(&self, out: &str, args: &[&str]) -> std::process::Command {
        let mut command = plimsoll(&["run"]);
        command.arg(self.path("plan.toml")).arg("-o").arg(self.path(out)).args(args);
        command
    }

    /// Runs the plan, which must succeed, and returns stderr.
    pub fn run(&self, out: &str, args: &[&str]) -> String {
        let output = run(&mut self.command(out, args));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        said(&output)
    }

    /// Runs the plan, which must be refused with exit code 2, and returns stderr.
    pub fn refused(&self, out: &str, args: &[&str]) -> String {
        let output = run(&mut self.command(out, args));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        said(&output)
    }
}

#[test]
fn a_sweep_is_the_same_with_threads_and_in_shards() {
    let place = Scratch::new(SWEEP);
    place.run("one", &["-j", "1"]);
    let whole = contents(&place.path("one"));
    let tables = |name: &str| whole.keys().filter(|path| path.contains(&format!("/{name}/"))).count();
    assert_eq!((tables("runs"), tables("jobs"), tables("done"), tables("demands")), (18, 18, 18, 6));
    place.run("two", &["-j", "2"]);
    assert_eq!(differences(&whole, &contents(&place.path("two"))), [""; 0], "two threads");
    let message = place.refused("shards", &["--gather"]);
    assert!(message.contains("18 runs are missing"), "{message}");
    // The shards run in any order: one of them twice, and one as the task of a job array.
    place.run("shards", &["--shard", "2/3"]);
    let mut array = place.command("shards", &["--shard", "auto"]);
    array.env("SLURM_ARRAY_TASK_ID", "0").env("SLURM_ARRAY_TASK_MIN", "0").env("SLURM_ARRAY_TASK_COUNT", "3");
    let output = run(&mut array);
    assert!(output.status.success() && said(&output).contains("shard 0/3"), "{}", said(&output));
    place.run("shards", &["--shard", "2/3"]);
    let message = place.refused("shards", &["--gather"]);
    assert!(message.contains("6 runs are missing or broken"), "{message}");
    place.run("shards", &["--shard", "1/3", "-j", "2"]);
    place.run("shards", &["--gather"]);
    assert_eq!(differences(&whole, &contents(&place.path("shards"))), [""; 0], "three shards");
}

#[test]
fn every_axis_is_a_typed_column_and_differences_have_intervals() {
    let place = Scratch::new(SWEEP);
    place.run("out", &[]);
    let runs = Frame::open(&place.path("out/cell=mean-3.0/runs/policy=drf/run=1/runs.parquet"));
    assert_eq!(runs.real("workload_arrival_mean")[0], Some(3.0));
    assert_eq!(runs.names("cell", "")[0], "mean-3.0");
    let estimates = Frame::open(&place.path("out/statistics/estimates.parquet"));
    let found = Frame::open(&place.path("out/statistics/differences.parquet"));
    assert_eq!(estimates.real("workload_arrival_mean")[0], Some(2.0));
    // One row per cell, policy and metric; the baseline is not compared with itself.
    let metric =
        |frame: &Frame, name: &str| frame.texts("metric").iter().filter(|m| m.as_deref() == Some(name)).count();
    assert_eq!((metric(&estimates, "completion_mean_s"), metric(&found, "completion_mean_s")), (6, 3));
    for column in [
        "difference",
        "low",
        "high",
        "bootstrap_low",
        "p",
        "p_holm",
        "effect_size",
        "margin",
        "p_equivalent_holm",
        "seeds",
    ] {
        assert!(found.get(column).is_some(), "{column}");
    }
    let csv = std::fs::read_to_string(place.path("out/statistics/differences.csv")).expect("it was written");
    assert!(csv.starts_with("cell,workload_arrival_mean,policy,baseline,metric,design,seeds,"), "{csv:.80}");
    assert_eq!(csv.lines().count(), found.height() + 1);
    let page = std::fs::read_to_string(place.path("out/report.html")).expect("it was written");
    assert!(page.contains("Does load matter?") && page.contains("href=\"./cell%3Dmean-5.0/report.html\""));
    // The page has, in this order, the answer in words, its table, the figures, and all other results.
    let marks = [
        "Mean completion time under fifo, against drf: ",
        "Mean completion time, in seconds: difference from drf",
        "<figure",
        "id=\"results\"",
    ];
    let places: Vec<usize> =
        marks.iter().map(|mark| page.find(mark).unwrap_or_else(|| panic!("{mark} is missing"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    // Each cell has one comparison, so there is no correction for multiple comparisons.
    assert!(
        page.contains("in t tests paired by seed. Of cells without any true difference, about one"),
        "policies in cells"
    );
    assert!(!page.contains("class=\"notes\"") || !page.contains("A report of its own: "), "links are no warnings");
    assert!(place.path("out/cell=mean-5.0/report.html").exists());
    // The report that is drawn again from the tables alone is the same.
    let before = contents(&place.path("out"));
    let output = run(plimsoll(&["report"]).arg(place.path("out")));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(differences(&before, &contents(&place.path("out"))), [""; 0]);
}

#[test]
fn what_is_missing_or_broken_is_run_again_and_nothing_else() {
    let place = Scratch::new(SWEEP);
    let message = place.run("out", &["-j", "1"]);
    assert!(!message.contains("complete already"), "{message}");
    let whole = contents(&place.path("out"));
    assert!(place.run("out", &[]).contains("18 runs were complete already, 0 were made"));
    // Five runs are damaged: a table is cut short, a table has a flipped bit, a table is removed, a receipt is cut short, and a receipt is
    // removed. A temporary file is left over, too.
    let at = |path: &str| place.path("out").join(path);
    let jobs = at("cell=mean-2.0/jobs/policy=drf/run=0/jobs.parquet");
    let bytes = std::fs::read(&jobs).expect("a table");
    std::fs::write(&jobs, &bytes[..bytes.len() / 2]).expect("writable");
    let users = at("cell=mean-2.0/users/policy=fifo/run=2/users.parquet");
    let mut bytes = std::fs::read(&users).expect("a table");
    bytes[40] ^= 1;
    std::fs::write(&users, &bytes).expect("writable");
    std::fs::remove_file(at("cell=mean-5.0/runs/policy=fifo/run=1/runs.parquet")).expect("it is there");
    let receipts: Vec<PathBuf> = files(&at("cell=mean-3.0/done"));
    std::fs::write(&receipts[0], "{").expect("writable");
    std::fs::remove_file(&receipts[1]).expect("it is there");
    std::fs::write(at("cell=mean-3.0/jobs/policy=drf/run=0/.plimsoll-left01"), "half").expect("writable");
    let message = place.run("out", &["-j", "2"]);
    assert!(message.contains("13 runs were complete already, 5 were made"), "{message}");
    assert!(message.contains("is not as it was written") && message.contains("it was run again"), "{message}");
    assert_eq!(differences(&whole, &contents(&place.path("out"))), [""; 0]);
}

#[test]
fn a_changed_plan_is_refused_with_what_differs() {
    let place = Scratch::new(SWEEP);
    place.run("out", &["--set", "seeds=1"]);
    let whole = contents(&place.path("out"));
    let message = place.refused("out", &["--set", "seeds=2", "--set", "workload.jobs=50"]);
    for part in ["results of another plan", "- seeds = 1", "+ seeds = 2", "- workload.jobs = 60", "--restart"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let message = place.refused("out", &["--set", "seeds=1", "--set", "workload.arrival.mean=7.0", "--dry-run"]);
    assert!(message.contains("sweep") && message.contains("7.0"), "{message}");
    assert_eq!(differences(&whole, &contents(&place.path("out"))), [""; 0], "the results are unchanged");
    // `--restart` discards the old cells, so that their files are not read as results.
    place.run("out", &["--restart", "--set", "seeds=1", "--set", "workload.arrival.mean=[2.0]"]);
    place.run("fresh", &["--set", "seeds=1", "--set", "workload.arrival.mean=[2.0]"]);
    let tables = |out: &str| -> BTreeMap<String, Vec<u8>> {
        contents(&place.path(out))
            .into_iter()
            .filter(|(path, _)| path.ends_with(".parquet") || path.contains("done/"))
            .collect()
    };
    assert_eq!(differences(&tables("fresh"), &tables("out")), [""; 0]);
}

#[test]
fn a_dry_run_lists_and_runs_nothing() {
    let place = Scratch::new(SWEEP);
    let output = run(&mut place.command("out", &["--dry-run", "-j", "2"]));
    let (listed, message) = (String::from_utf8_lossy(&output.stdout).into_owned(), said(&output));
    assert!(output.status.success(), "{message}");
    assert_eq!(listed.lines().filter(|line| line.ends_with("to run")).count(), 18, "{listed}");
    assert!(message.contains("18 runs, 18 to run: about") && message.contains("on 2 threads, "), "{message}");
    let alone = said(&run(&mut place.command("out", &["--dry-run", "-j", "1"])));
    assert!(alone.contains("on 1 thread, "), "{alone}");
    assert!(!place.path("out").exists(), "nothing is written");
    place.run("out", &["--shard", "0/3"]);
    let output = run(&mut place.command("out", &["--dry-run", "--format", "json"]));
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let restarted = said(&run(&mut place.command("out", &["--dry-run", "--restart"])));
    assert!(restarted.contains("18 runs, 18 to run: about"), "{restarted}");
    let there = listed.as_array().expect("a list").iter().filter(|run| run["there"] == true).count();
    assert_eq!(there, 6, "a shard of three has run");
}

/// A sweep of two cells under a policy with groups. The tests insert an error into the second cell.
const VARIANTS: &str = r#"
name = "variants"
policies = ["drf", "quota:@g"]
tables = ["runs", "groups", "levels", "users"]

[workload]
generator = "synthetic"
jobs = 20
arrival = 5

[[workload.class]]
name = "u"
users = 3
duration = 30
demand = { cpu = 1, memory_gib = 2 }

[cluster]
machines = "2x4c8g"
placement = "first-fit"

[[quota.g.group]]
name = "one"
users = ["u1", "u2", "u3"]
min = { cpu = 2 }

[sweep.variant.small]
"cluster.machines" = "1x4c8g"

[sweep.variant.large]
"cluster.machines" = "4x4c8g"
"#;

#[test]
fn an_axis_named_like_a_column_stands_beside_it() {
    let place = Scratch::new(VARIANTS);
    place.run("out", &[]);
    let columns = |cell: &str, table: Table, policy: &str| {
        let read = Frame::open(&table.path(&place.path("out").join(cell), policy, 0));
        read.columns().map(str::to_owned).collect::<Vec<String>>()
    };
    let groups = columns("cell=small", Table::Groups, "quota:@g");
    assert!(["sweep_variant", "variant"].iter().all(|name| groups.contains(&(*name).to_owned())), "{groups:?}");
    let runs = columns("cell=large", Table::Runs, "drf");
    assert!(runs.contains(&"variant".to_owned()) && !runs.contains(&"sweep_variant".to_owned()), "{runs:?}");
    let twice =
        VARIANTS.replace("[sweep.variant.small]", "[sweep]\nquota.a.b = [1]\nquota.a_b = [2]\n[sweep.variant.x]");
    let refused = Scratch::new(&twice).refused("out", &[]);
    assert!(refused.contains("would both be the column 'quota_a_b'"), "{refused}");
}

/// Errors that appear only when the workload is built are reported with their location, too.
#[test]
fn what_is_wrong_by_design_is_found_before_the_first_run() {
    let large = "\"cluster.machines\" = \"4x4c8g\"";
    for (wrong, said) in [
        ("\"cluster.machines\" = \"4x4c\"", "the cluster has no memory; add it to the machines (in the cell large)"),
        ("\"cluster.machines\" = \"4x4c1norm\"", "give the machines in the workload's unit (in the cell large)"),
        ("\"cluster.machines\" = \"4000000000x4c8g\"", "4000000000 machines are too many"),
        ("\"cluster.devices\" = [\"gpu\"]", "cluster.devices: 'gpu' is not accepted"),
        ("\"workload.class[0].users\" = 4", "'u4' is not accepted; expected a user of a group"),
        ("\"workload.class[0].label\" = \"ssd\"", "'ssd' is no label of any machine"),
        ("\"workload.class[0].zipf\" = -1", "workload.class[0].zipf: -1 is not accepted"),
        ("\"quota.g.group[0].min\" = { gpu = 1 }", "gpu"),
        ("\"weights\" = \"none.csv\"", "a file that can be read"),
        ("\"workload\" = [{ generator = \"facebook\", hours = 0.1, load = 50, users = 3 }]", "workload.load: 50"),
        ("\"workload\" = [{ trace = \"bad.csv\" }]", "bad.csv, line 1, column 'submit_s': is missing"),
    ] {
        let plan = match wrong.ends_with("]") && wrong.starts_with("\"workload\"") {
            true => format!("{}[sweep]\n{wrong}\n", VARIANTS.split("[sweep.variant.small]").next().expect("the plan")),
            false => VARIANTS.replace(large, wrong),
        };
        let place = Scratch::new(&plan);
        place.write("bad.csv", "job,user,duration_s,cpu\n");
        for args in [&["--dry-run"][..], &[]] {
            let refused = place.refused("out", args);
            assert!(refused.contains(said), "{wrong} {args:?}: {refused}");
            assert!(!place.path("out").exists(), "{wrong}: no folder is created");
        }
    }
}

#[test]
fn what_set_changes_is_said_of_set() {
    let place = Scratch::new(SWEEP);
    for (change, said) in [
        ("policies=drf", "invalid type: string \"drf\", expected a sequence"),
        ("policies=[\"dfr\"]", "(did you mean 'drf'?)"),
        ("cluster.placment=x", "Did you mean 'placement'?"),
        ("cluster.machines=2x8q", "'q' is no unit"),
        ("seeds=0", "seeds: 0 is not accepted"),
        ("workload.jbos=4", "Did you mean 'jobs'?"),
        ("workload.jobs=x", "invalid type: string \"x\""),
        ("workload.arrival.mean=-1", "workload.arrival.mean: -1 is not accepted"),
        ("slurm.shards=0", "slurm.shards: 0 is not accepted; expected at least 1"),
        ("figures.preset=x", "figures.preset: 'x' is not accepted"),
        ("measure.from=9", "invalid type: integer `9`"),
        ("cluster.devices=[\"gpu\"]", "cluster.devices: 'gpu' is not accepted"),
    ] {
        let refused = place.refused("out", &["--set", change]);
        assert!(refused.starts_with(&format!("error: --set {change}: ")) && refused.contains(said), "{refused}");
    }
    let refused = Scratch::new(&SWEEP.replace("jobs = 60", "jbos = 60")).refused("out", &[]);
    assert!(refused.contains("14 | jbos = 60") && refused.contains("Did you mean 'jobs'?"), "{refused}");
    let refused = place.refused("out", &["--set", "seeds=2", "--set", "workload.class[0].users=-1"]);
    assert!(refused.starts_with("error: --set workload.class[0].users=-1: "), "{refused}");
}

#[test]
fn a_run_in_which_no_task_starts_fails_with_its_tables() {
    let place = Scratch::new(SWEEP);
    let tight = ["--set", "cluster.machines=1x0.5c1g", "--set", "seeds=1"];
    let output = run(&mut place.command("out", &tight));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let message = said(&output);
    assert!(message.contains("error: no task ever started under arrival mean 2 s, drf, seed 1 ("), "{message}");
    assert!(message.contains("too large for any machine") && message.contains("and 3 runs more"), "{message}");
    assert!(Table::Runs.path(&place.path("out/cell=mean-2.0"), "drf", 0).exists(), "the tables are written");
    assert!(place.path("out/report.html").exists(), "the report is drawn");
    let again = run(&mut place.command("out", &tight));
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
}

#[test]
fn results_go_to_a_folder() {
    let place = Scratch::new(SWEEP);
    place.write("office.csv", "1\n");
    for args in [&["--dry-run"][..], &[]] {
        for (out, is) in [("office.csv", "this is a file"), ("office.csv/below", "office.csv' is a file")] {
            let refused = place.refused(out, args);
            assert!(refused.contains("--output: '") && refused.contains(is), "{refused}");
        }
    }
    for verb in ["report", "plot", "bundle"] {
        let output = run(plimsoll(&[verb]).arg(place.path("office.csv")));
        assert!(said(&output).contains("office.csv: is a file; expected a folder that"), "{}", said(&output));
    }
}

#[test]
fn a_value_that_a_generator_refuses_is_shown_in_the_sweep() {
    let place = Scratch::new(&SWEEP.replace("[2.0, 3.0, 5.0]", "[2.0, -3.0]"));
    let message = place.refused("out", &["-j", "1"]);
    assert!(message.contains("line 31, column 33") && message.contains("in the cell mean--3.0"), "{message}");
}

/// Seeds are added until the interval of every policy's mean is narrow enough. The number of seeds does not depend on the number of
/// threads.
#[test]
fn seeds_are_added_until_the_interval_is_narrow() {
    let until = "seeds = \"until 12 % half-width, at least 3, at most 40\"";
    let plan = SWEEP.replace("seeds = 3", until).replace("[2.0, 3.0, 5.0]", "[2.0, 5.0]");
    let place = Scratch::new(&plan);
    place.run("one", &["-j", "1"]);
    place.run("two", &["-j", "2"]);
    let whole = contents(&place.path("one"));
    assert_eq!(differences(&whole, &contents(&place.path("two"))), [""; 0]);
    let estimates = Frame::open(&place.path("one/statistics/estimates.parquet"));
    let (metric, seeds) = (estimates.names("metric", ""), estimates.integers("seeds"));
    let (mean, high) = (estimates.real("mean"), estimates.real("high"));
    let rows: Vec<usize> = (0..estimates.height()).filter(|&at| metric[at] == "completion_mean_s").collect();
    assert_eq!(rows.len(), 4);
    for at in rows {
        let (seeds, mean) = (seeds[at].expect("a value"), mean[at].expect("a value"));
        let half = (high[at].expect("a value") - mean) / mean;
        assert!((3..=40).contains(&seeds) && (half <= 0.12 || seeds == 40), "{seeds} seeds, half-width {half}");
    }
    // With a variable number of seeds, a shard consists of whole cells.
    for shard in ["0/2", "1/2"] {
        place.run("shards", &["--shard", shard]);
    }
    place.run("shards", &["--gather"]);
    assert_eq!(differences(&whole, &contents(&place.path("shards"))), [""; 0]);
}

/// With a window, fewer jobs count in the delays, and the run completes the same jobs.
#[test]
fn a_window_is_measured() {
    let plan = SWEEP.split("[sweep]").next().expect("a plan").to_owned();
    let place = Scratch::new(&plan);
    place.run("all", &["--set", "seeds=1"]);
    place.run("part", &["--set", "seeds=1", "--set", "measure.from=40s", "--set", "measure.to=80s"]);
    let jobs = |out: &str| -> (i64, i64) {
        let runs = Frame::open(&place.path(out).join("runs/policy=drf/run=0/runs.parquet"));
        let bins = Frame::open(&place.path(out).join("bins/policy=drf/run=0/bins.parquet"));
        let binned = bins.integers("jobs").iter().flatten().sum();
        (runs.integers("jobs_finished")[0].expect("a value"), binned)
    };
    let ((all, in_bins), (same, measured)) = (jobs("all"), jobs("part"));
    assert_eq!((all, in_bins), (same, all));
    assert!(measured > 0 && measured < all, "{measured} of {all}");
}

/// A run without result files has the same summary, with all tables selected and with no table selected.
#[test]
fn a_run_without_files_sums_up_the_same() {
    let place = Scratch::new(SWEEP);
    let study = Study::read(&place.path("plan.toml"), &[], &Registry::new(BUILT_IN)).expect("a plan");
    let plan = &study.cells[0];
    let supply = SharedSupply::from(plan.workload.supply(3).expect("a workload"));
    for policy in &plan.policies {
        let sum = |folder: Option<PathBuf>, tables: &[Table]| {
            let to = Destination {
                folder,
                policy: policy.name.clone(),
                run: 0,
                seed: Some(3),
                axes: Vec::new(),
                tables: tables.to_vec(),
                metadata: Vec::new(),
                saved: None,
            };
            let summary = simulate(&plan.simulation(&supply, "w"), policy, &to, &mut |_, _| Ok(()));
            serde_json::to_value(summary.expect("a run").summary).expect("a summary is JSON")
        };
        let all: Vec<Table> = Table::all().collect();
        let written = sum(Some(place.path("out")), &all);
        assert!(place.path(&format!("out/decisions/policy={}", partition(&policy.name))).exists());
        assert!(written["values"].as_array().is_some_and(|values| values.len() > 40), "{written}");
        assert_eq!(sum(None, &all), written, "{}", policy.name);
        assert_eq!(sum(None, &[]), written, "{}", policy.name);
    }
}
