//! Injects an error into each system call of a small study that writes files. The study must either fail without a partial file
//! under a final name and resume to the same bytes, or succeed with complete results.

use std::process::{Command, Output};

use crate::determinism::differences;
use crate::replay::{run, said};
use crate::study_disk::is_as_it_will_be;
use crate::study_run::{Scratch, contents};
use crate::{Missing, Outcome};

const PLAN: &str = r#"
name = "small"
policies = ["drf", "fifo"]
tables = ["runs", "users"]
[cluster]
machines = "4x4c8g"
[workload]
generator = "synthetic"
jobs = 20
arrival = { distribution = "exponential", mean = 2.0 }
[[workload.class]]
name = "wide"
users = 3
tasks = { distribution = "uniform", min = 1, max = 20 }
duration = { distribution = "uniform", min = 4, max = 12 }
demand = { cpu = 1, memory_gib = 1 }
[[figure]]
kind = "bars"
x = "policy"
y = "completion_mean_s"
"#;

/// The calls, grouped by effect. The number of failing calls grows with the output of a study.
const CALLS: [&str; 9] = [
    "write,pwrite64,writev",
    "fsync,fdatasync",
    "rename,renameat,renameat2",
    "mkdir,mkdirat",
    "openat",
    "flock",
    "unlink,unlinkat",
    "read,pread64",
    "getdents64",
];

/// An upper bound for the number of calls in a group.
const MOST: usize = 2000;

pub fn every_call_may_fail() -> Outcome {
    let there = Command::new("strace").args(["-f", "-e", "trace=none", "true"]).output();
    match there {
        Ok(output) if output.status.success() => {}
        Ok(output) => return Err(Missing(format!("strace cannot trace: {}", said(&output).trim()))),
        Err(error) => return Err(Missing(format!("strace: {error}"))),
    }
    let place = Scratch::new(PLAN);
    place.run("whole", &["-j", "1"]);
    let expected = contents(&place.path("whole"));
    for calls in CALLS {
        let mut failed = 0;
        for nth in 1.. {
            assert!(nth < MOST, "{calls}: still failing");
            let (output, was_injected) = inject(&place, calls, nth);
            let (message, when) = (said(&output), format!("{calls}, number {nth}"));
            assert!(!message.contains("panicked"), "{when}: {message}");
            if output.status.success() {
                let mut found = contents(&place.path("out"));
                // A lock file without an owner blocks no other run.
                found.remove(".plimsoll-lock");
                assert_eq!(differences(&expected, &found), [""; 0], "{when}");
            } else {
                // The process must not end by a signal or with the exit code of a panic. The program loader has its own messages and codes.
                assert!(matches!(output.status.code(), Some(1 | 2 | 127)), "{when}: {:?} {message}", output.status);
                // The failing call may be the one that prints the message.
                assert!(!message.trim().is_empty() || calls.starts_with("write"), "{when}: no message");
                for (path, bytes) in
                    contents(&place.path("out")).iter().filter(|(path, _)| !path.contains(".plimsoll-"))
                {
                    let folder = place.path("out");
                    assert!(
                        is_as_it_will_be(&folder, path, bytes, &expected),
                        "{when}: {path} does not have its final contents"
                    );
                }
                failed += 1;
            }
            place.run("out", &["-j", "1"]);
            assert_eq!(differences(&expected, &contents(&place.path("out"))), [""; 0], "{when}: resumed");
            if !was_injected {
                break;
            }
        }
        assert!(failed > 0 || calls.starts_with("unlink"), "{calls}: no failure was noticed");
    }
    Ok(())
}

/// Runs the plan into a new folder while the n-th of these calls in each thread fails. Returns whether any call failed.
fn inject(place: &Scratch, calls: &str, nth: usize) -> (Output, bool) {
    let (out, log) = (place.path("out"), place.path("calls.txt"));
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error=EIO:when={nth}")]);
    command.arg("-o").arg(&log).arg(env!("CARGO_BIN_EXE_plimsoll")).args(["run", "-j", "1"]);
    let output = run(command.arg(place.path("plan.toml")).arg("-o").arg(&out).env("NO_COLOR", "1"));
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    (output, log.contains("(INJECTED)"))
}
