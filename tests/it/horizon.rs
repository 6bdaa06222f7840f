//! Runs that end at a horizon. Speeds compare the work that the reference has served at the horizon, and waiting tasks are counted by
//! their state.

use crate::replay::{plimsoll, run, said};
use crate::speeds::Replayed;

/// Replays a trace under DRF on one core, and returns the summary of the run and the printed text.
fn replayed(rows: &str, options: &[&str]) -> (serde_json::Value, String) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("trace.csv"), rows).expect("a temporary file is writable");
    let fixed = ["replay", "trace.csv", "--machines", "1x1c1g", "--placement", "first-fit", "--format", "json"];
    let done = run(plimsoll(&[&fixed, options].concat()).current_dir(dir.path()));
    assert!(done.status.success(), "{}", said(&done));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a summary");
    (json[0].clone(), said(&done))
}

const STARVE: &str = "job,user,submit_s,duration_s,tasks,cpu\na,A,0,10,100,1\nb,B,0,10,100,1\nc,C,0,10,100,1\n";
const STOPPED: &str = "job,user,submit_s,duration_s,tasks,cpu,priority\nlow,a,0,30,1,1,9\nhigh,b,10,100,1,1,0\n";

/// One of three users gets the whole cluster until the horizon: Jain's index is a third, wherever the horizon is.
#[test]
fn users_that_get_nothing_by_the_horizon_have_speed_0() {
    for until in ["100s", "300s", "900s"] {
        let options = ["--policy", "drf", "--ties", "lowest-id", "--until", until];
        let (run, said) = replayed(STARVE, &options);
        let number = |name: &str| run[name].as_f64().unwrap_or_else(|| panic!("{name}: {run}"));
        assert!((number("speed_jain") - 1.0 / 3.0).abs() < 1e-9, "{until}: {}", number("speed_jain"));
        assert_eq!(number("speed_min"), 0.0);
        // Until the horizon the reference serves A with a third of the core. In the run A has the whole core, so it receives the same work
        // in a third of that time.
        assert!((number("speed_gap") - 3.0).abs() < 1e-9, "{}", number("speed_gap"));
        assert!(said.contains("of the submitted work is not served at the horizon"), "{said}");
    }
}

/// A horizon after the end changes no value and causes no warning.
#[test]
fn a_horizon_after_all_work_changes_nothing() {
    let (ended, _) = replayed(STARVE, &["--policy", "drf"]);
    let (cut, said) = replayed(STARVE, &["--policy", "drf", "--until", "2h"]);
    for name in ["speed_jain", "speed_gap", "speed_min", "completion_mean_s"] {
        assert_eq!(ended[name], cut[name], "{name}");
    }
    assert!(ended["work_unserved"].is_null());
    assert_eq!(cut["work_unserved"], 0.0);
    assert!(!said.contains("horizon"), "{said}");
}

/// A task that ran from 0 s to 10 s, was stopped by a more urgent one and waits at the horizon counts as started.
#[test]
fn tasks_that_were_stopped_and_wait_are_not_among_those_that_never_started() {
    let (run, said) = replayed(STOPPED, &["--policy", "drf", "--preempt", "0s", "--until", "50s"]);
    assert_eq!(
        ["tasks_never_started", "tasks_stopped_waiting", "tasks_stopped"].map(|name| run[name].as_u64()),
        [Some(0), Some(1), Some(1)]
    );
    assert!(!said.contains("never started") && said.contains("1 task that was launched and stopped"), "{said}");
    // Both kinds of waiting tasks in one run: a third job waits from its submission on.
    let more = format!("{STOPPED}last,b,11,5,2,1,0\n");
    let (run, said) = replayed(&more, &["--policy", "drf", "--preempt", "0s", "--until", "50s"]);
    assert_eq!([&run["tasks_never_started"], &run["tasks_stopped_waiting"]].map(|n| n.as_u64()), [Some(2), Some(1)]);
    assert!(said.contains("2 tasks never started"), "{said}");
}

/// If the machine of a task fails after four seconds, and the task finds no other machine, the task counts as started.
#[test]
fn tasks_whose_machine_failed_and_never_came_back_have_started() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = "job,user,submit_s,duration_s,tasks,cpu\na,ann,0,100,1,1\n";
    for (name, text) in [("trace.csv", trace), ("events.csv", "at_s,machine,event\n4,0,fail\n")] {
        std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
    }
    let done = run(plimsoll(&[
        "replay",
        "trace.csv",
        "--machines",
        "1x1c1g",
        "--placement",
        "first-fit",
        "--policy",
        "fifo",
        "--format",
        "json",
        "--machine-events",
        "events.csv",
    ])
    .current_dir(dir.path()));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a summary");
    let counts = ["tasks_never_started", "tasks_stopped_waiting", "tasks_stopped"].map(|name| json[0][name].as_u64());
    assert_eq!(counts, [Some(0), Some(1), Some(1)], "{}", said(&done));
}

/// Failed attempts that are repeated count as failures of tasks, not as stops.
#[test]
fn failures_of_tasks_are_not_stops() {
    let (run, _) = replayed(
        "job,user,submit_s,duration_s,tasks,cpu\na,A,0,10,50,1\n",
        &["--policy", "drf", "--faults", "fail=0.5,retries=50"],
    );
    let number = |name: &str| run[name].as_u64().unwrap_or_else(|| panic!("{name}: {run}"));
    assert!(number("tasks_failed") > 0);
    assert_eq!(number("tasks_stopped"), 0);
}

/// The first point of the sampling grid is the start of the measured window.
#[test]
fn the_sampling_grid_starts_with_the_window() {
    let rows = "a,ann,0,100,10,1,0\nb,bob,0,100,10,1,0\n";
    let plan = "tables = [\"runs\", \"fairness\"]\nmeasure = { from = \"15s\", to = \"60s\" }";
    let times = |plan: &str| -> Vec<f64> {
        Replayed::new(rows, plan)
            .column("fairness", "drf", "time_us")
            .into_iter()
            .flatten()
            .map(|us| us / 1e6)
            .collect()
    };
    assert_eq!(times(plan).first(), Some(&15.0));
    assert_eq!(times("tables = [\"runs\", \"fairness\"]").first(), Some(&0.0));
}

/// Two jobs of 3 s that arrive together end after 3 s and 6 s. If the second job arrives at 2 s, it ends 4 s after its arrival: a
/// slowdown of 4/3.
#[test]
fn slowdowns_are_exact() {
    let run = Replayed::new("a,ann,0,3,1,10,0\nb,bob,0,3,1,10,0\n", "");
    let number = |name: &str| run.one("fifo", name);
    assert_eq!([number("slowdown_mean"), number("slowdown_p50"), number("slowdown_p99")], [1.5, 1.0, 2.0]);
    let thirds = Replayed::new("a,ann,0,3,1,10,0\nb,bob,2,3,1,10,0\n", "");
    assert_eq!(thirds.one("fifo", "slowdown_p99"), 4.0 / 3.0);
    assert_eq!(thirds.column("users", "fifo", "slowdown_mean")[1], Some(4.0 / 3.0));
}
