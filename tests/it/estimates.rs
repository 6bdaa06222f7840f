//! Estimates from a model of their error are the same for all policies, for a thinned trace, and in a closed loop.

use std::collections::BTreeMap;

use plimsoll::experiment::Supply;
use plimsoll::units::Time;
use plimsoll::workload::synthetic::Generator;
use plimsoll::workload::{Estimated, Estimates, Source};

use crate::replay::{plimsoll, read_tasks, run, said};

/// Returns the estimates and the durations of all task sets, by the name of their job.
fn estimates(source: &mut dyn Source) -> BTreeMap<String, Vec<(u64, u64)>> {
    let mut told: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    while let Some(set) = source.next_set().expect("a source in memory") {
        let name = source.job_names().text(&source.job_name()).to_string();
        told.entry(name).or_default().push((set.estimate.expect("an estimate").0, set.duration.0));
    }
    told
}

fn generator(text: &str) -> Generator {
    toml::from_str(text).expect("a generator")
}

#[test]
fn jobs_that_are_kept_keep_their_estimates() {
    let supply = || {
        let made = Supply::generate(&generator("generator = 'facebook'\nhours = 0.1"), 3).expect("a workload");
        made.estimated(Estimates::Uniform(3_000_000), 3)
    };
    let whole = estimates(&mut *supply().source().expect("a source"));
    let thinned = estimates(&mut *supply().thinned(0.4, 3).source().expect("a source"));
    assert!(!thinned.is_empty() && thinned.len() < whole.len());
    assert!(thinned.iter().all(|(job, sets)| whole[job] == *sets));
    let factors = || whole.values().flatten().map(|(estimate, duration)| *estimate as f64 / *duration as f64);
    assert!(factors().all(|factor| (1.0..=3.0).contains(&factor)));
    assert!(factors().any(|factor| factor < 1.5) && factors().any(|factor| factor > 2.5));
}

#[test]
fn users_of_a_closed_loop_estimate_alike_whoever_goes_first() {
    let text = "generator = 'closed-loop'\njobs_per_user = 3\n[[class]]\nname = 'u'\nusers = 2\nduration = 10\ndemand = { cpu = 1 }\n";
    let estimates = |late: usize| {
        let supply = Supply::generate(&generator(text), 1).expect("a workload");
        let mut source = Estimated::new(supply.source().expect("a source"), Estimates::Lognormal(1_000_000), 1);
        let (mut now, mut all) = (0, BTreeMap::<u32, Vec<u64>>::new());
        while let Some(set) = source.next_set().expect("a source in memory") {
            now += 10_000_000;
            all.entry(set.user.0).or_default().push(set.estimate.expect("an estimate").0);
            let more = if set.user.index() == late { 100_000_000 } else { 0 };
            let _ = source.peek();
            source.job_finished(set.job, set.user, Time(now + more));
        }
        all
    };
    let (first, second) = (estimates(0), estimates(1));
    assert_eq!(first, second);
    assert_eq!(first.values().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    assert_ne!(first[&0], first[&1]);
}

#[test]
fn orders_go_by_the_estimates_of_the_model() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let rows = |n: u32| format!("j{n},u{},{},{},1,9\n", n % 3, n / 2, 1 + n * 7 % 23);
    let trace: String = (0..60).map(rows).collect();
    let text = format!("job,user,submit_s,duration_s,cpu,estimate_s\n{trace}");
    std::fs::write(dir.path().join("t.csv"), text).expect("a temporary file is writable");
    let tasks = |args: &[&str], policy: &str| {
        let mut command = plimsoll(&[
            "replay",
            "t.csv",
            "--machines",
            "1x1c",
            "--tasks",
            "-o",
            "out",
            "--restart",
            "--policy",
            policy,
        ]);
        let output = run(command.args(args).current_dir(dir.path()));
        assert!(output.status.success(), "{}", said(&output));
        let record = std::fs::read_to_string(dir.path().join("out/run.json")).expect("a record");
        assert!(args.is_empty() || record.contains(&args.join(" ")), "{record}");
        read_tasks(&dir.path().join("out"), policy).expect("the tasks table")
    };
    let (exact, truth) = (tasks(&["--estimates", "exact"], "line/sjf"), tasks(&[], "line/sjf:true"));
    assert_eq!(exact, truth);
    assert_ne!(tasks(&[], "line/sjf"), truth);
    let drawn = |seed: &str| tasks(&["--estimates", "lognormal:1", "--seed", seed], "line/sjf");
    assert!(drawn("1") != truth && drawn("1") != drawn("2") && drawn("1") == drawn("1"));
}

#[test]
fn a_sweep_has_models_as_an_axis_and_draws_them_for_every_seed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let rows: String = (0..60).map(|n| format!("j{n},u{},{},{},1\n", n % 3, n / 2, 1 + n * 7 % 23)).collect();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a temporary file");
    write("t.csv", &format!("job,user,submit_s,duration_s,cpu\n{rows}"));
    let plan = "name = 'p'\npolicies = ['fifo']\n[cluster]\nmachines = '1x2c'\nplacement = 'pooled'\non_blocked = 'easy'\n[workload]\n\
                trace = 't.csv'\n[sweep]\n'workload.estimates' = ['exact', 'uniform:5']\n";
    write("p.toml", plan);
    let output = run(plimsoll(&["run", "-q", "p.toml", "-o", "out"]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    // A cell with the same trace for all seeds accepts only one seed. In this sweep the cell with 'exact' is such a cell.
    write("q.toml", &format!("seeds = 2\n{plan}"));
    let output = run(plimsoll(&["run", "-q", "q.toml", "-o", "out2"]).current_dir(dir.path()));
    assert!(said(&output).contains("seeds: 2 is not accepted"), "{}", said(&output));
    write("q.toml", &format!("seeds = 2\n{}", plan.replace("'exact', ", "'lognormal:0.5', ")));
    let output = run(plimsoll(&["run", "-q", "q.toml", "-o", "out2"]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
}
