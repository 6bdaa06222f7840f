//! Metrics that a plan defines: their values, their statistics, their figures, and the messages for mistakes.

use std::path::Path;

use plimsoll::output::schema::partition;

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

const PLAN: &str = "name = \"own\"\npolicies = [\"fifo\", \"drf\"]\nseeds = 3\ntables = [\"runs\", \"jobs\"]\nmeasure = { from = \"60s\" }\n\
    [cluster]\nmachines = \"12x4c8g\"\n[workload]\ngenerator = \"facebook\"\nhours = 0.1\n";

const METRICS: &str = "[metric.late]\nexpr = \"mean(wait_s > 5)\"\nunit = \"fraction\"\nbetter = \"lower\"\n\
    [metric.late_users]\nexpr = \"mean(wait_s > 5)\"\nby = \"user\"\n\
    [metric.longest_wide]\nexpr = \"max(if tasks > 3 then completion_s else missing)\"\nunit = \"s\"\n\
    [metric.waited]\nexpr = \"sum(wait_s)\"\n\
    [[figure]]\nname = \"late\"\nkind = \"bars\"\nx = \"policy\"\ny = \"late\"\n";

/// Writes a plan and runs it. Returns the message if it fails.
fn replayed(dir: &Path, plan: &str) -> Result<(), String> {
    std::fs::write(dir.join("plan.toml"), plan).expect("writable");
    let done = run(plimsoll(&["run", "plan.toml", "-o", "out", "--quiet"]).current_dir(dir));
    if done.status.success() { Ok(()) } else { Err(said(&done)) }
}

fn table(dir: &Path, name: &str, policy: &str, run: usize) -> Frame {
    Frame::open(&dir.join(format!("out/{name}/policy={}/run={run}/{name}.parquet", partition(policy))))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn they_are_columns_statistics_and_figures() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    replayed(dir.path(), &format!("{PLAN}{METRICS}")).expect("a run");
    for (policy, run) in ["fifo", "drf"].into_iter().flat_map(|policy| (0..3).map(move |run| (policy, run))) {
        let jobs = table(dir.path(), "jobs", policy, run);
        let times = ["submit_us", "start_us", "finish_us", "tasks"].map(|name| jobs.numbers(name));
        // Finished jobs in the window: user, wait, completion time and tasks.
        let ended: Vec<(String, f64, f64, f64)> = (jobs.texts("user").iter().enumerate())
            .filter_map(|(at, user)| {
                let [submit, start, finish, tasks] = [0, 1, 2, 3].map(|column: usize| times[column][at]);
                let (submit, start, finish) = (submit?, start?, finish?);
                (submit >= 60e6).then(|| {
                    (
                        user.clone().expect("a user"),
                        (start - submit) / 1e6,
                        (finish - submit) / 1e6,
                        tasks.expect("tasks"),
                    )
                })
            })
            .collect();
        let late = |of: &dyn Fn(&str) -> bool| -> Vec<f64> {
            ended.iter().filter(|(user, ..)| of(user)).map(|(_, wait, ..)| f64::from(*wait > 5.0)).collect()
        };
        let mut users: Vec<&str> = ended.iter().map(|(user, ..)| user.as_str()).collect();
        users.sort_unstable();
        users.dedup();
        let by_user: Vec<f64> = users.iter().map(|user| mean(&late(&|other| other == *user))).collect();
        let wide = ended.iter().filter(|(.., tasks)| *tasks > 3.0).map(|(_, _, completion, _)| *completion);
        let waited: f64 = ended.iter().map(|(_, wait, ..)| wait).sum();
        let runs = table(dir.path(), "runs", policy, run);
        for (name, wanted) in [
            ("late", Some(mean(&late(&|_| true)))),
            ("late_users", Some(mean(&by_user))),
            ("longest_wide", wide.reduce(f64::max)),
            ("waited", Some(waited)),
        ] {
            let found = runs.numbers(name)[0];
            let near = found.zip(wanted).map_or(found == wanted, |(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0));
            assert!(near, "{policy}, {name}: {found:?} instead of {wanted:?}");
        }
    }
    let text =
        |file: &str| std::fs::read_to_string(dir.path().join("out").join(file)).unwrap_or_else(|_| panic!("{file}"));
    for file in ["statistics/estimates.csv", "statistics/differences.csv"] {
        let text = text(file);
        assert!(text.contains(",late,") && text.contains(",longest_wide,"), "{file}: {text}");
    }
    assert!(text("figures/late.svg").contains("Late"));
    let drawn = run(plimsoll(&["plot", "out"]).current_dir(dir.path()));
    assert!(drawn.status.success(), "{}", said(&drawn));
}

#[test]
fn mistakes_are_located() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (metric, wanted) in [
        ("[metric.late]\nexpr = \"mean(waits > 5)\"\n", "there is no column 'waits'"),
        ("[metric.late]\nexpr = \"meen(wait_s)\"\n", "did you mean 'mean'"),
        ("[metric.late]\nexpr = \"wait_s\"\n", "an aggregate such as mean(wait_s > 60)"),
        ("[metric.late]\nexpr = \"mean(wait_s)\"\nby = \"job\"\n", "'user', or no 'by'"),
        ("[metric.late]\nexpr = \"mean(wait_s)\"\nbetter = \"less\"\n", "one of lower, higher, neither"),
        ("[metric.late]\nexpr = \"mean(wait_s)\"\nunit = \"h\"\n", "one of 1, s, fraction"),
        ("[metric.wait_mean_s]\nexpr = \"mean(wait_s)\"\n", "a name that no column of the table 'runs' has"),
        ("[metric.late]\nexp = \"mean(wait_s)\"\n", "exp"),
        ("[metric.late]\nexpr = \"mean(user)\"\n", "metric.late"),
    ] {
        let error = replayed(dir.path(), &format!("{PLAN}{metric}")).expect_err(metric);
        assert!(error.contains(wanted), "{metric}: {error}");
    }
    let precise = PLAN.replace("seeds = 3", "seeds = \"until 50 % half-width of waited, at least 2, at most 3\"");
    replayed(dir.path(), &format!("{precise}[metric.waited]\nexpr = \"sum(wait_s)\"\n")).expect("a known metric");
}
