//! Plans with accelerators: their tables equal direct simulations, results do not depend on the number of threads, and wrong plans and files
//! are refused at their place.

use std::path::{Path, PathBuf};

use plimsoll::rounds::mechanism::{Cluster, Options};
use plimsoll::rounds::policies::{PolicyOptions, policy};
use plimsoll::rounds::simulate::{JobWindow, RoundSetup, simulate};
use plimsoll::rounds::table::{Arrivals, JobOptions, Throughputs, read_jobs};

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

const TABLE: &str = "job_type,worker_type,scale_factor,iterations_per_s
image,v100,1,40
image,k80,1,10
image,v100,2,76
image,k80,2,18
text,v100,1,6
text,k80,1,5
text,v100,2,11
text,k80,2,9
";

const PLAN: &str = r#"
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
fn jobs(shift: u32) -> String {
    let mut text = "job,unit_arrival,job_type,scale_factor,duration_s\n".to_owned();
    for job in 0..24u32 {
        let kind = if (job + shift).is_multiple_of(3) { "text" } else { "image" };
        let scale = 1 + u32::from((job + shift).is_multiple_of(5));
        text += &format!("{job},{}.5,{kind},{scale},{}\n", job, 600 + 170 * ((7 * job + shift) % 11));
    }
    text
}

/// Writes the files of a plan; returns its path.
fn written(dir: &Path, plan: &str) -> PathBuf {
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
        let names =
            ["accelerator_runs.parquet", "accelerator_jobs.parquet", "figures/completion-by-rate.svg", "report.html"];
        names.map(|name| std::fs::read(folder.join(name)).expect("a written file"))
    });
    assert!(bytes[0] == bytes[1], "the same bytes");

    let table = Throughputs::read(&dir.path().join("rates.csv"), None).expect("a table");
    let cluster = Cluster { worker_types: vec!["v100".into(), "k80".into()], servers: vec![vec![1; 2], vec![1; 2]] };
    let frame = Frame::open(&dir.path().join("1/accelerator_runs.parquet"));
    let (names, means) = (frame.names("policy", ""), frame.numbers("completion_mean_s"));
    let (rates, runs) = (frame.numbers("jobs_per_hour"), frame.integers("run"));
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
        assert_eq!(means[row], Some(outcome.summary(&cluster, window).mean_jct_s), "{} {milli} {run}", names[row]);
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
        ("to = 20", "to = 200", &["first.csv", "24 jobs"]),
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
