//! A run ends with an error if its tasks preempt one another without progress.

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
