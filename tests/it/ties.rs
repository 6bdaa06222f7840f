//! The order among users of equal rank. With the default order no user starves.

use std::collections::BTreeMap;

use crate::replay::{plimsoll, read_tasks, run, said};

/// The number of tasks that each job started, by the name of the job.
fn started(trace: &str, machines: &str, options: &[&str]) -> BTreeMap<String, usize> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), trace).expect("a writable file");
    let mut command = plimsoll(&["replay", "t.csv", "--machines", machines, "--placement", "first-fit", "--tasks"]);
    let output = run(command.args(["--policy", "drf", "-o", "out"]).args(options).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    let mut started = BTreeMap::new();
    for (job, task) in read_tasks(&dir.path().join("out"), "drf").expect("a table of tasks") {
        *started.entry(job).or_default() += usize::from(task.start.is_some());
    }
    started
}

fn counts(started: &BTreeMap<String, usize>) -> Vec<usize> {
    started.values().copied().collect()
}

/// Three users share one core, as in the tie test of Mesos (`sorter_tests.cpp`, AllocationCountTieBreak). They are served in turn.
#[test]
fn users_of_equal_rank_take_turns() {
    let row = |user: &str| format!("{user},{user},0,1,400,1,0\n");
    let trace = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib\n{}{}{}", row("a"), row("b"), row("c"));
    assert_eq!(counts(&started(&trace, "1x1c1g", &["--until", "300s"])), [101, 100, 100], "the start at 300 s counts");
    for ties in ["lowest-id", "fewest-running"] {
        assert_eq!(counts(&started(&trace, "1x1c1g", &["--until", "300s", "--ties", ties])), [301, 0, 0], "{ties}");
    }
    let highest = ["--until", "300s", "--ties", "highest-id"];
    assert_eq!(counts(&started(&trace, "1x1c1g", &highest)), [0, 0, 301]);
}

/// With more users than tasks that fit, the numbers of tasks differ by at most one.
#[test]
fn more_users_than_tasks_that_fit_share_alike() {
    let rows: String = (0..31).map(|user| format!("j{user:02},u{user},0,20,400,1,0\n")).collect();
    let trace = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib\n{rows}");
    let all = started(&trace, "1x10c1g", &["--until", "1999s"]);
    let counts = counts(&all);
    assert_eq!((counts.len(), counts.iter().sum::<usize>()), (31, 1000));
    assert!(counts.iter().all(|count| (32..=33).contains(count)), "{counts:?}");
}
