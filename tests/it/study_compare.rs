//! `plimsoll compare` through the binary.

use std::path::Path;

use crate::replay::{plimsoll, run, said};
use crate::study_run::{SWEEP, Scratch};

fn compare(a: &Path, b: &Path, args: &[&str]) -> String {
    let output = run(plimsoll(&["compare"]).arg(a).arg(b).args(args));
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_changed_is_told_with_significance() {
    let plan = SWEEP.replace("seeds = 3", "seeds = 6");
    let place = Scratch::new(&plan);
    place.run("a", &[]);
    place.run("b", &["--set", "cluster.placement=pooled"]);
    place.run("c", &["--set", "seeds=8", "--set", "workload.arrival.mean=[2.0, 4.0]"]);
    let path = |name: &str| place.path(name);
    let same = compare(&path("a"), &path("a"), &[]);
    assert!(same.contains("nothing changed") && same.contains("36 runs"), "{same}");
    let found = compare(&path("a"), &path("b"), &["--all", "--metric", "completion_mean_s"]);
    assert!(found.contains("- cluster.placement = \"first-fit\"") && found.contains("+ cluster.placement"), "{found}");
    assert_eq!(found.lines().filter(|line| line.starts_with("mean-")).count(), 6, "{found}");
    // Only the selected metric is counted: once in each of three cells under each of two policies.
    assert!(found.contains("\n6 metrics of 36 runs compared, 6 changed"), "{found}");
    let selected = compare(&path("a"), &path("b"), &["--format", "json", "--metric", "completion_mean_s"]);
    let selected: serde_json::Value = serde_json::from_str(&selected).expect("JSON");
    assert_eq!((&selected["compared"], &selected["runs"]), (&6.into(), &36.into()), "{selected}");
    let json: serde_json::Value =
        serde_json::from_str(&compare(&path("a"), &path("b"), &["--format", "json"])).expect("JSON");
    let changes = json["changes"].as_array().expect("a list");
    let clear = |change: &&serde_json::Value| change["p_holm"].as_f64().is_some_and(|p| p < 0.05);
    let told = changes.iter().filter(clear).count();
    assert!(told > 0 && told < changes.len(), "{told} of {} changes are significant", changes.len());
    for change in changes {
        let number = |name: &str| change[name].as_f64().expect("a number");
        assert!((number("after") - number("before") - number("change")).abs() < 1e-6, "{change}");
        assert!(number("p_holm") >= number("p") && number("seeds") <= 6.0, "{change}");
    }
    // Only the runs that both folders have are compared: one cell with six of eight seeds.
    let found = compare(&path("a"), &path("c"), &[]);
    assert!(found.contains("24 runs only in the first (mean-3.0, drf, seed 1, ..)"), "{found}");
    assert!(
        found.contains("20 runs only in the second") && found.contains("12 runs compared: nothing changed"),
        "{found}"
    );
}

#[test]
fn folders_that_cannot_be_compared_are_refused() {
    let place = Scratch::new(&SWEEP.replace("seeds = 3", "seeds = 1"));
    place.run("a", &[]);
    place.run("b", &["--set", "workload.arrival.mean=9.0"]);
    let refused = |a: &str, b: &str, args: &[&str], says: &str| {
        let output = run(plimsoll(&["compare"]).arg(place.path(a)).arg(place.path(b)).args(args));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(says), "{}", said(&output));
    };
    let output = run(plimsoll(&["plot"]).arg(place.path("a")));
    let drawn = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && drawn.lines().all(|file| Path::new(file).is_file()), "{}", said(&output));
    place.write("t.csv", "job,user,submit_s,duration_s,cpu\na,u,0,100,1\n");
    let mut replay = plimsoll(&["replay", "--machines", "1x4c", "--policy", "drf"]);
    let output = run(replay.arg(place.path("t.csv")).arg("-o").arg(place.path("a")));
    assert!(
        output.status.code() == Some(2) && said(&output).contains("has results of a plan with a sweep"),
        "{}",
        said(&output)
    );
    refused("a", "nowhere", &[], "not a results folder");
    refused("a", "b", &[], "no run in common");
    refused("a", "a", &["--metric", "used_cp"], "did you mean 'used_cpu'?");
}

/// In a closed loop each user submits its next job when its previous job has ended.
const LOOP: &str = r#"
name = "loop"
policies = ["drf", "fifo"]
seeds = 4
[cluster]
machines = "2x8c16g"
[workload]
generator = "closed-loop"
until = "20m"
[[workload.class]]
name = "small"
users = 3
tasks = { distribution = "uniform", min = 2, max = 8 }
duration = { distribution = "lognormal", median = 30, sigma = 0.5 }
demand = { cpu = 1, memory_gib = 2 }
[[workload.class]]
name = "large"
tasks = { distribution = "uniform", min = 10, max = 30 }
duration = { distribution = "lognormal", median = 60, sigma = 0.5 }
demand = { cpu = 2, memory_gib = 1 }
"#;

#[test]
fn closed_loops_are_not_paired() {
    let place = Scratch::new(LOOP);
    place.run("out", &[]);
    let csv = std::fs::read_to_string(place.path("out/statistics/differences.csv")).expect("it was written");
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.contains(",unpaired,")), "{csv}");
    let page = std::fs::read_to_string(place.path("out/report.html")).expect("it was written");
    assert!(page.contains("another mix of jobs") && !page.contains("paired by seed"), "{page:.3000}");
    place.run("other", &["--set", "cluster.machines=2x9c16g"]);
    let found = compare(&place.path("out"), &place.path("other"), &["--all"]);
    assert!(found.contains("Welch"), "{found}");
    let open = LOOP
        .replace("closed-loop", "synthetic")
        .replace("until = \"20m\"", "jobs = 40\narrival = { distribution = \"exponential\", mean = 9 }");
    let place = Scratch::new(&open);
    place.run("out", &[]);
    let csv = std::fs::read_to_string(place.path("out/statistics/differences.csv")).expect("it was written");
    assert!(csv.lines().skip(1).all(|row| row.contains(",paired,")), "{csv}");
}

#[test]
fn one_policy_is_compared_from_cell_to_cell() {
    let place = Scratch::new(&SWEEP.replace("policies = [\"drf\", \"fifo\"]", "policies = [\"drf\"]"));
    place.run("out", &[]);
    let page = std::fs::read_to_string(place.path("out/report.html")).expect("it was written");
    assert!(page.contains("Mean completion time under drf, against arrival mean 2 s: "), "{page:.3000}");
    // With one seed there is no test, no mark, and no claim.
    place.run("one", &["--set", "seeds=1"]);
    let page = std::fs::read_to_string(place.path("one/report.html")).expect("it was written");
    assert!(
        page.contains("not tested")
            && !page.contains("significantly higher in")
            && !page.contains("class=\"number best")
    );
}
