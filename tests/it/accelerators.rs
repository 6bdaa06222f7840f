//! Plans with accelerators: their tables equal direct simulations, results do not depend on the number of threads, and wrong plans and files
//! are refused at their place.

use std::path::{Path, PathBuf};

use plimsoll::rounds::mechanism::{Cluster, Options};
use plimsoll::rounds::policies::{PolicyOptions, policy};
use plimsoll::rounds::simulate::{JobWindow, RoundSetup, simulate};
use plimsoll::rounds::table::{Arrivals, JobOptions, Throughputs, read_jobs};

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

pub const TABLE: &str = "job_type,worker_type,scale_factor,iterations_per_s
image,v100,1,40
image,k80,1,10
image,v100,2,76
image,k80,2,18
text,v100,1,6
text,k80,1,5
text,v100,2,11
text,k80,2,9
";

pub const PLAN: &str = r#"
name = "two"
[accelerators]
policies = ["max_min_fairness_perf", "fifo"]
throughputs = "rates.csv"
jobs = ["first.csv", "second.csv"]
machines = "2xv100,2xk80"
rates = [6, 12]
window = { from = 2, to = 20 }
round = "2m"
at_least = "4m"
"#;

/// Returns a list of 24 jobs.
pub fn jobs(shift: u32) -> String {
    let mut text = "job,unit_arrival,job_type,scale_factor,duration_s\n".to_owned();
    for job in 0..24u32 {
        let kind = if (job + shift).is_multiple_of(3) { "text" } else { "image" };
        let scale = 1 + u32::from((job + shift).is_multiple_of(5));
        text += &format!("{job},{}.5,{kind},{scale},{}\n", job, 600 + 170 * ((7 * job + shift) % 11));
    }
    text
}

/// Writes the files of a plan; returns its path.
pub fn written(dir: &Path, plan: &str) -> PathBuf {
    let files = [
        ("rates.csv", TABLE.to_owned()),
        ("first.csv", jobs(0)),
        ("second.csv", jobs(1)),
        ("two.toml", plan.to_owned()),
    ];
    files.iter().for_each(|(name, text)| std::fs::write(dir.join(name), text).expect("a writable folder"));
    dir.join("two.toml")
}

#[test]
fn tables_equal_direct_simulations_on_any_number_of_threads() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = written(dir.path(), PLAN);
    let bytes = ["1", "2"].map(|threads| {
        let folder = dir.path().join(threads);
        let made = run(plimsoll(&["run", "-q", "-j", threads, "-o"]).arg(&folder).arg(&plan));
        assert!(made.status.success(), "{}", said(&made));
        let names = [
            "accelerator_runs.parquet",
            "accelerator_types.parquet",
            "accelerator_jobs.parquet",
            "figures/completion-by-rate.svg",
            "report.html",
        ];
        names.map(|name| std::fs::read(folder.join(name)).expect("a written file"))
    });
    assert!(bytes[0] == bytes[1], "the same bytes");

    let table = Throughputs::read(&dir.path().join("rates.csv"), None).expect("a table");
    let cluster = Cluster { worker_types: vec!["v100".into(), "k80".into()], servers: vec![vec![1; 2], vec![1; 2]] };
    let frame = Frame::open(&dir.path().join("1/accelerator_runs.parquet"));
    let (names, means) = (frame.names("policy", ""), frame.numbers("completion_mean_s"));
    let (rates, runs) = (frame.numbers("jobs_per_hour"), frame.integers("run"));
    let (paused, envy) = (frame.numbers("paused_s"), frame.numbers("envy_mean"));
    let used = Frame::open(&dir.path().join("1/accelerator_types.parquet")).numbers("utilisation");
    assert_eq!(names.len(), 8, "two policies, two rates, two lists");
    for row in 0..names.len() {
        let run = runs[row].expect("a number");
        let milli = (1000.0 * rates[row].expect("a rate")) as u64;
        let options = JobOptions { arrivals: Arrivals::PerHour(milli), reference: "v100", single: false, at_most: 100 };
        let list = dir.path().join(["first.csv", "second.csv"][run as usize]);
        let jobs = read_jobs(&list, &table, &options).expect("a list");
        let (round, at_least) = (plimsoll::units::Span::from_secs(120), plimsoll::units::Span::from_secs(240));
        let window = JobWindow { from: 2, to: 20 };
        let setup = RoundSetup {
            jobs: &jobs,
            table: &table,
            cluster: &cluster,
            options: Options { round, at_least, seed: run as u64, ..Options::default() },
            policy: PolicyOptions { seed: run as u64, ..PolicyOptions::default() },
            window: Some(window),
            log_rounds: false,
        };
        let outcome = simulate(&setup, policy(&names[row]).expect("a policy")).expect("a run");
        let summary = outcome.summary(&cluster, window);
        assert_eq!(means[row], Some(summary.mean_jct_s), "{} {milli} {run}", names[row]);
        assert_eq!(paused[row], Some(summary.paused_s));
        assert_eq!(envy[row], outcome.envy.map(|envy| envy.mean));
        assert_eq!(used[2 * row..2 * row + 2], [0, 1].map(|j| Some(summary.utilisation[j])));
    }
}

#[test]
fn wrong_plans_and_files_are_refused_at_their_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let refused = |plan: &str| {
        let plan = written(dir.path(), plan);
        let made = run(plimsoll(&["run", "-q", "-o"]).arg(dir.path().join("out")).arg(&plan));
        let text = said(&made);
        assert!(made.status.code() == Some(2) && !text.contains("panicked"), "{text}");
        assert!(!dir.path().join("out").exists(), "no file is written: {text}");
        text
    };
    for (from, to, parts) in [
        ("\"fifo\"", "\"fifoo\"", &["line 4", "fifo"][..]),
        ("rates.csv", "no.csv", &["accelerators.throughputs", "no.csv"]),
        ("2xk80", "2k80", &["line 7", "36xv100,36xp100"]),
        ("2xk80", "2xp100", &["p100"]),
        ("[6, 12]", "[6, -1]", &["line 8", "jobs per hour"]),
        ("to = 20", "to = 2", &["window", "after"]),
        ("to = 20", "to = 200", &["line 9", "at most 24", "first.csv"]),
        ("\"2m\"", "\"0s\"", &["line 10", "above 0"]),
        ("round =", "rounds =", &["line 10", "rounds"]),
        ("at_least = \"4m\"", "round_end = \"late\"", &["longest", "fixed"]),
        ("at_least = \"4m\"", "overhead = \"3m\"", &["overhead", "less than a round"]),
        ("at_least = \"4m\"", "at_once = true", &["at_once", "no rates"]),
    ] {
        assert!(PLAN.contains(from), "{from}");
        let text = refused(&PLAN.replace(from, to));
        for part in parts {
            assert!(text.contains(part), "{to}: expected {part} in\n{text}");
        }
    }
    let plan = written(dir.path(), PLAN);
    for (file, from, to, part) in [
        ("rates.csv", "text,k80,1,5", "text,k80,1,-5", "line 7"),
        ("rates.csv", "text,k80,1,5", "text,v100,1,5", "line"),
        ("first.csv", "3,3.5,text", "3,3.5,sound", "line 5"),
        ("first.csv", "3,3.5,", "3,1.5,", "line 5"),
    ] {
        let path = dir.path().join(file);
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replace(from, to)).expect("writable");
        let made = run(plimsoll(&["run", "-q", "-o"]).arg(dir.path().join("out")).arg(&plan));
        assert!(made.status.code() == Some(2) && said(&made).contains(part), "{to}: {}", said(&made));
        std::fs::write(&path, text).expect("writable");
    }
}

/// `solve` states the fractions of each job at time 0; they equal those of the library, and the properties of this allocation follow.
#[test]
fn solve_states_fractions_and_properties() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(
        dir.path().join("rates.csv"),
        "job_type,worker_type,iterations_per_s\nx,a,4\nx,b,2\ny,a,6\ny,b,1\nz,a,1\nz,b,1\n",
    )
    .expect("writable");
    std::fs::write(dir.path().join("jobs.csv"), "arrival_s,job_type,iterations\n0,x,100\n5,y,100\n9,z,100\n")
        .expect("writable");
    let plan = dir.path().join("plan.toml");
    let text = "name = \"e1\"\n[accelerators]\npolicies = [\"max_min_fairness_perf\", \"shockwave\"]\nthroughputs = \"rates.csv\"\n\
                jobs = [\"jobs.csv\"]\nmachines = \"1xa,1xb\"\n";
    std::fs::write(&plan, text).expect("writable");
    let made = run(plimsoll(&["solve", "--format", "json"]).arg(&plan));
    assert!(made.status.success(), "{}", said(&made));
    // Shockwave has one worker type; the plan's other policies have results.
    assert!(said(&made).contains("no fractions under shockwave"), "{}", said(&made));
    let value: serde_json::Value = serde_json::from_slice(&made.stdout).expect("JSON");
    assert_eq!(value.as_array().map(Vec::len), Some(1));
    // E1 of the reference.
    let expected = [(23.0 / 44.0, 2.0 / 11.0), (21.0 / 44.0, 0.0), (0.0, 9.0 / 11.0)];
    for (job, (a, b)) in value[0]["jobs"].as_array().expect("jobs").iter().zip(expected) {
        let x = |name: &str| job["fractions"][name].as_f64().expect("a number");
        assert!((x("a") - a).abs() < 1e-6 && (x("b") - b).abs() < 1e-6, "{job}");
    }
    for property in ["feasibility", "sharing-incentive", "pareto-efficiency"] {
        assert_eq!(value[0]["properties"][property]["holds"], true, "{value:#}");
    }
    let table = run(plimsoll(&["solve", "--policy", "isolated"]).arg(&plan));
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(text.contains("Sharing incentive: holds") && text.contains("Pareto efficiency: fails"), "{text}");
    for (arguments, part) in [
        (&["--policy", "isolatd"][..], "isolated"),
        (&["--figure", "x.svg"], "--figure is for an instance"),
        (&["--whole-tasks"], "--whole-tasks is for an instance"),
        (&["--policy", "shockwave"], "one worker type"),
    ] {
        let made = run(plimsoll(&["solve"]).args(arguments).arg(&plan));
        assert!(made.status.code() == Some(2) && said(&made).contains(part), "{arguments:?}: {}", said(&made));
    }
}

/// `check --accelerators` finds the counterexample to the sharing incentive of wide jobs, on any number of threads, and writes it as a plan
/// that `solve` reads.
#[test]
fn check_writes_counterexamples_that_solve_reads() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let of = |threads: &str, more: &[&str]| {
        let policies = ["--policy", "max_min_fairness_perf", "--policy", "isolated", "--policy", "drf"];
        let arguments = ["check", "-q", "--accelerators", "--effort", "quick", "-j", threads];
        let made =
            run(plimsoll(&arguments).args(policies).args(more).args(["--domain", "positive", "--domain", "wide"]));
        assert!(made.status.success(), "{}", said(&made));
        made.stdout
    };
    let value: serde_json::Value = serde_json::from_slice(&of("1", &["--format", "json"])).expect("JSON");
    assert_eq!(of("1", &["--format", "json"]), of("2", &["--format", "json"]));
    let fails = |domain: usize, policy: usize, property: usize| {
        let finding = &value[domain]["policies"][policy]["findings"][property];
        assert!(finding["instances"].as_u64().is_some_and(|count| count > 0), "{finding}");
        !finding["counterexample"].is_null()
    };
    // Properties: feasibility, sharing incentive, envy-freeness, Pareto efficiency.
    assert_eq!([0, 1, 2, 3].map(|property| fails(0, 0, property)), [false, false, true, true]);
    assert!(fails(1, 0, 1), "wide jobs");
    assert_eq!([0, 1, 2, 3].map(|property| fails(0, 1, property)), [false, false, false, true]);
    let folder = dir.path().join("found");
    let text = of("2", &["--write", &folder.to_string_lossy()]);
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("max_min_fairness_perf: sharing-incentive fails"), "{text}");
    let plan = folder.join("max_min_fairness_perf-sharing-incentive-wide/plan.toml");
    let made = run(plimsoll(&["solve"]).arg(&plan));
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success() && text.contains("Sharing incentive: fails"), "{text}{}", said(&made));
    for (arguments, part) in [
        (&["--policy", "fifo_packed"][..], "without space sharing"),
        (&["--property", "sharing"], "sharing-incentive"),
        (&["--domain", "finite"], "zeros"),
    ] {
        let made = run(plimsoll(&["check", "-q", "--accelerators"]).args(arguments));
        assert!(made.status.code() == Some(2) && said(&made).contains(part), "{arguments:?}: {}", said(&made));
    }
}
