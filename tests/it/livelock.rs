//! Runs that would have no end: a run ends with an error if its tasks preempt one another without progress, and without one if waiting
//! tasks can never start.

use crate::replay::{files, plimsoll, run, said};

/// Replays a case from practice: under least attained service, jobs lose their work when they are stopped. Returns the exit code and the
/// messages.
fn las(policy: &str, options: &[&str]) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/field/las-preempt.csv");
    let mut command =
        plimsoll(&["replay", trace, "--machines", "2x4c8g", "--policy", policy, "--placement", "best-fit"]);
    command.args(["--preempt", "5s", "--preempt-for", "order", "--restart-delay", "1s", "-o"]);
    let output = run(command.arg(dir.path().join("out")).args(options));
    let left = files(dir.path());
    assert!(output.status.success() || left.is_empty(), "no partial result: {left:?}");
    (output.status.code(), said(&output))
}

#[test]
fn a_livelock_ends_with_an_error_that_names_the_jobs() {
    let (code, message) = las("drf/las", &["--ties", "lowest-id"]);
    assert_eq!(code, Some(1), "{message}");
    for part in
        ["livelock: between ", " tasks were preempted, and none has finished", "'j", "'checkpoint'", "docs/cluster.md"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn what_the_message_advises_ends_the_livelock() {
    for (policy, options) in [
        ("drf/las", &["--ties", "lowest-id", "--checkpoint", "1s"][..]),
        ("drf/las", &["--ties", "lowest-id", "--min-run", "60s"]),
        ("drf/tiresias:10s,60s", &["--ties", "lowest-id"]),
    ] {
        let (code, message) = las(policy, options);
        assert_eq!(code, Some(0), "{policy} {options:?}: {message}");
    }
}

/// The only machine fails and does not return. Policies with memory change their ranks at the end of each period, which starts no task.
#[test]
fn a_task_without_a_machine_starves_under_policies_with_memory() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file is writable");
    write("trace.csv", "job,user,submit_s,duration_s,cpu\na,u,0,10,1\nb,u,5,10,1\nc,v,6,10,1\n");
    write("machines.csv", "name,cpu\nm,1\n");
    write("events.csv", "at_s,machine,event\n7,m,fail\n");
    for policy in ["drf", "longterm:1h", "afs:168h", "fair-tree:7d", "multifactor:7d", "time-based:1h", "karma:cpu:1s"]
    {
        for on_blocked in ["skip", "stop"] {
            let fixed = ["replay", "trace.csv", "--machines", "machines.csv", "--machine-events", "events.csv"];
            let options = ["--placement", "first-fit", "--on-blocked", on_blocked, "--policy", policy];
            let output = run(plimsoll(&[&fixed[..], &options[..]].concat()).current_dir(dir.path()));
            let said = said(&output);
            assert_eq!(output.status.code(), Some(0), "{policy} {on_blocked}: {said}");
            assert!(said.contains("2 tasks never started: starved"), "{policy} {on_blocked}: {said}");
        }
    }
}
