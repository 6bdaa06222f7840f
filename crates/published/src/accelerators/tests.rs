//! Tests of the models of accelerators on small files.

use super::*;

/// A folder with the files of a test.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    files.iter().for_each(|(name, text)| std::fs::write(dir.path().join(name), text).expect("writable"));
    dir
}

fn value(outcome: &RunOutcome, name: &str) -> f64 {
    outcome.values.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value)
}

const TABLE: &str = "job_type,scale_factor,worker_type,consolidated,colocated_with,iterations_per_s\n\
                     a,1,v100,1,,10\na,1,k80,1,,5\nb,1,v100,1,,2\nb,1,k80,1,,4\n";
const JOBS: &str = "job,unit_arrival,job_type,scale_factor,duration_v100_s\n0,0,a,1,3600\n1,0,b,1,7200\n";
const PLAN: &str = "name = \"p\"\nsimulator = \"gavel\"\ntypes = [\"v100\", \"k80\"]\ncounts = [2, 2]\nwindow = [0, 2]\n\
                    jobs_per_hour = 1.0\nagainst = \"isolated\"\n";

#[test]
fn two_jobs_that_do_not_share_run_at_their_own_rates() {
    let dir = folder(&[("throughputs.csv", TABLE), ("jobs.csv", JOBS), ("plan.toml", PLAN)]);
    let run = |policy: &str| run(&dir.path().join("plan.toml"), &[], Some(policy), Some(0), dir.path()).expect("a run");
    // FIFO uses V100 for both: 1 h and 2 h. Aware of types, job b runs twice as fast on a K80: 1 h.
    let plain = run("fifo");
    assert!((value(&plain, "mean_h") - 1.5).abs() < 1e-6 && (value(&plain, "makespan_h") - 2.0).abs() < 1e-6);
    let aware = run("fifo_perf");
    assert!((value(&aware, "mean_h") - 1.0).abs() < 1e-6, "{aware:?}");
    assert_eq!((value(&aware, "alone_h"), value(&aware, "fastest_h")), (1.5, 1.0));
    assert!(value(&aware, "ratio") < value(&plain, "ratio"));
    assert_eq!(plain.jobs.iter().filter_map(|job| job.finish).collect::<Vec<_>>(), [3_600_000_000, 7_200_000_000]);
}

#[test]
fn wrong_plans_are_errors() {
    let dir = folder(&[("throughputs.csv", TABLE), ("jobs.csv", JOBS), ("plan.toml", PLAN)]);
    let said = |set: &str, policy: Option<&str>| {
        let error = run(&dir.path().join("plan.toml"), &[set.to_owned()], policy, Some(0), dir.path());
        error.expect_err(set).to_string()
    };
    assert!(said("counts=[1]", Some("fifo")).contains("same number of entries"));
    assert!(said("window=[1, 3]", Some("fifo")).contains("range of the 2 jobs"));
    assert!(said("together=true", Some("fifo")).contains("excludes together"));
    assert!(said("rows=\"tacc\"", Some("fifo")).contains("COLUMN=TEXT"));
    assert!(said("jobs=2", None).contains("policy=NAME"));
    assert!(said("round=3", Some("fifo")).contains("unknown field"));
}

/// One entity with two jobs on one type. The published program accepts a slack of 10^-5.
#[test]
fn entities_divide_by_weights() {
    let list = "throughputs,job,entity,entity_weight,job_weight,v100\nr,0,0,1,1,10\nr,1,0,1,3,2\n";
    let plan = "name = \"p\"\ntypes = [\"v100\"]\ncounts = [1]\nthroughputs = \"r\"\njobs = 2\n";
    let dir = folder(&[("jobs.csv", list), ("plan.toml", plan)]);
    let run = |policy: &str| entities::run(&dir.path().join("plan.toml"), &[], Some(policy), dir.path());
    let fair = run("fair").expect("levels");
    assert!((value(&fair, "level_0") - 0.25).abs() < 1e-4 && (value(&fair, "level_1") - 0.75).abs() < 1e-4, "{fair:?}");
    assert!((value(&fair, "least") - 1.0).abs() < 1e-4);
    let fifo = run("fifo").expect("levels");
    assert!((value(&fifo, "level_0") - 1.0).abs() < 1e-4 && value(&fifo, "level_1").abs() < 1e-4, "{fifo:?}");
    assert!(run("line").expect_err("unknown").to_string().contains("fair or fifo"));
}

/// Without pairs in the table and with an accelerator per job, each job runs alone: its level is rate / (norm * rate) = 1 / norm.
#[test]
fn parts_have_their_own_optimum() {
    let table = "job_type,scale_factor,worker_type,consolidated,colocated_with,iterations_per_s\na,1,v100,1,,10\n";
    let plan = "name = \"p\"\ntypes = [\"v100\"]\ncounts = [4]\njob_types = [\"a\"]\njobs = 4\nnorm = 0.5\nparts = 2\n";
    let dir = folder(&[("throughputs.csv", table), ("plan.toml", plan)]);
    let run = |set: &[String]| parts::run(&dir.path().join("plan.toml"), set, Some(0), dir.path());
    let halves = run(&[]).expect("levels");
    assert_eq!(halves.values.len(), 2);
    assert!((value(&halves, "level_0") - 2.0).abs() < 1e-6 && (value(&halves, "level_1") - 2.0).abs() < 1e-6);
    assert!(run(&["parts=3".to_owned()]).expect_err("uneven").to_string().contains("parts divides"));
}
