//! The footer about policies that over-commit, on the terminal and in reports.

use std::path::Path;

use crate::replay::{plimsoll, run, said};

/// Under `slot:4` four tasks run at once on a machine of 2 cores and 4 GiB. They use 4 cores and 8 GiB until the end.
const TRACE: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,A,0,10,4,1,2\nb,B,0,10,4,1,2\n";

const SMALL: &str = "machines = \"1x2c4g\"\n";

const USED: &str = "slot:4 used more CPU than the cluster has 100 % of the time, up to 200 %, and more memory 100 % of the time, up to 200 %.";

/// Runs a plan, and returns the printed text and the report, both with single spaces.
fn outputs(folder: &Path, policies: &str, cluster: &str, rest: &str) -> (String, String) {
    let plan = format!(
        "name = \"over\"\npolicies = {policies}\n[cluster]\nplacement = \"first-fit\"\n{cluster}\n[workload]\n\
         trace = \"trace.csv\"\n{rest}"
    );
    std::fs::write(folder.join("trace.csv"), TRACE).expect("a temporary file is writable");
    std::fs::write(folder.join("plan.toml"), plan).expect("a temporary file is writable");
    let done = run(plimsoll(&["run", "plan.toml", "-o", "out"]).current_dir(folder));
    assert!(done.status.success(), "{}", said(&done));
    let report = std::fs::read_to_string(folder.join("out/report.html")).expect("a report");
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    (spaced(&String::from_utf8_lossy(&done.stdout)), spaced(&report))
}

/// Returns the printed text and the report of a plan on the small machine.
fn both(policies: &str, cluster: &str, rest: &str) -> [String; 2] {
    on(&format!("{SMALL}{cluster}"), policies, rest)
}

fn on(cluster: &str, policies: &str, rest: &str) -> [String; 2] {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (printed, report) = outputs(dir.path(), policies, cluster, rest);
    [printed, report]
}

#[test]
fn slots_that_over_commit_have_a_footer() {
    for text in both("[\"drf\", \"slot:4\"]", "", "") {
        assert!(text.contains(USED), "{text}");
        assert!(
            text.contains(
                "Slowdown by over-committed CPU and memory is not modelled: jobs may end earlier under slot:4"
            )
        );
        assert!(!text.contains("drf used more"), "{text}");
    }
}

#[test]
fn policies_within_the_cluster_have_no_footer() {
    for text in both("[\"drf\", \"fifo\", \"slot:2\"]", "", "") {
        assert!(!text.contains("than the cluster has") && !text.contains("not modelled"), "{text}");
    }
}

/// With cores for all tasks, memory alone is over-committed: its slowdown is modelled.
#[test]
fn a_plan_that_models_all_slowdown_does_not_say_that_it_is_not_modelled() {
    for text in on("machines = \"1x8c4g\"\nslowdown = \"1:1,2:3\"", "[\"drf\", \"slot:4\"]", "") {
        assert!(
            text.contains("slot:4 used more memory than the cluster has 100 % of the time, up to 200 %."),
            "{text}"
        );
        assert!(!text.contains("not modelled"), "{text}");
    }
}

/// `slowdown` applies to memory only: slowdown by CPU is still not modelled. A curve of ones models no slowdown.
#[test]
fn slowdown_models_memory_and_no_other_resource() {
    for text in both("[\"drf\", \"slot:4\"]", "slowdown = \"1:1,2:3\"", "") {
        assert!(text.contains("than the cluster has 100 % of the time, up to 200 %, and more memory"), "{text}");
        assert!(text.contains("Slowdown by over-committed CPU is not modelled: jobs may end earlier"), "{text}");
    }
    for text in both("[\"drf\", \"slot:4\"]", "slowdown = \"1:1,2:1\"", "") {
        assert!(text.contains("Slowdown by over-committed CPU and memory is not modelled"), "{text}");
    }
}

/// The overview of a sweep and the printed table have one footer for all cells.
#[test]
fn a_sweep_has_the_footer_once() {
    let sweep =
        "[sweep.variant.plain]\n\"sample\" = \"1s\"\n[sweep.variant.slow]\n\"cluster.slowdown\" = \"1:1,2:3\"\n";
    for text in both("[\"drf\", \"slot:4\"]", "", sweep) {
        assert_eq!(text.matches("slot:4 used more CPU than the cluster has").count(), 1, "{text}");
        assert!(text.contains("(mean and largest of 2 runs)"), "{text}");
        let says = "Slowdown by over-committed CPU is not modelled, and slowdown by over-committed memory is not modelled in all cells";
        assert!(text.contains(says), "{text}");
    }
}
