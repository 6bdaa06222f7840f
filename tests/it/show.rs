//! `plimsoll show` and the formats of printed tables.

use crate::replay::{plimsoll, run, said};

const PLAN: &str = r#"
name = "shown"
policies = ["fifo", "drf"]
seeds = 2
tables = ["runs", "users", "jobs"]
[cluster]
machines = "2x4c8g"
[workload]
generator = "synthetic"
jobs = 30
arrival = { distribution = "exponential", mean = 5 }
[[workload.class]]
name = "a"
users = 3
duration = { distribution = "uniform", min = 10, max = 60 }
demand = { cpu = 1, memory_gib = 2 }
"#;

#[test]
fn a_table_is_filtered_sorted_and_printed_in_every_format() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, out) = (dir.path().join("shown.toml"), dir.path().join("out"));
    std::fs::write(&plan, PLAN).expect("writable");
    let made = run(plimsoll(&["run", "--quiet"]).arg(&plan).arg("-o").arg(&out));
    assert!(made.status.success(), "{}", said(&made));
    let shown = |args: &[&str]| {
        let output = run(plimsoll(&["show"]).arg(&out).args(args));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let list = shown(&[]);
    assert!(list.contains("jobs") && list.contains("120") && list.contains("differences"), "{list}");
    // 30 jobs under 2 policies with 2 seeds; exact values, absent ones empty.
    let csv = shown(&["jobs", "--format", "csv", "--columns", "policy,run,job,submit_us,start_us"]);
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!((csv.lines().next(), rows.len()), (Some("policy,run,job,submit_us,start_us"), 120));
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let long = rows.iter().filter(|row| row[0] == "drf" && number(row[4]) - number(row[3]) > 1_000_000).count();
    let sorted = shown(&[
        "jobs",
        "--where",
        "policy == 'drf' and start_us - submit_us > 1e6",
        "--sort",
        "start_us:desc",
        "--columns",
        "policy,run,job,submit_us,start_us",
        "--format",
        "csv",
    ]);
    let starts: Vec<u64> =
        sorted.lines().skip(1).map(|line| number(line.split(',').next_back().expect("columns"))).collect();
    assert!(starts.len() == long && starts.is_sorted_by(|a, b| a >= b), "{sorted}");
    let json: serde_json::Value = serde_json::from_str(&shown(&["users", "--format", "json"])).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(12));
    let latex = shown(&["users", "--columns", "user,wait_mean_s", "--head", "2", "--format", "latex"]);
    assert!(latex.contains("\\begin{tabular}{lr}") && latex.contains("wait\\_mean\\_s \\\\"), "{latex}");
    assert!(latex.contains("% and 10 more rows"), "{latex}");
    let markdown = shown(&["users", "--columns", "user,jobs", "--head", "1", "--format", "markdown"]);
    assert!(markdown.starts_with("| user | jobs |\n| --- | ---: |\n"), "{markdown}");
    for (args, says) in [
        (&["user"][..], "did you mean 'users'"),
        (&["tasks"], "tables = [..]"),
        (&["jobs", "--where", "start > 1"], "did you mean 'start_us'"),
        (&["jobs", "--where", "run >"], "at character 6"),
        (&["jobs", "--sort", "starts"], "a column: "),
        (&["--sort", "start_us"], "select rows of a table"),
    ] {
        let output = run(plimsoll(&["show"]).arg(&out).args(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(says), "{args:?}: {}", said(&output));
    }
}
