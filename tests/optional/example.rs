//! The examples: custom policies in their own binaries, with the full command line.

use std::path::PathBuf;
use std::process::Command;

use crate::replay::{run, said};
use crate::{Missing, Outcome};

/// There are enough tasks that `mine` and `drf` differ: `a` needs both resources, `b` mainly CPU, and `c` mainly memory.
const TINY: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib
a,a,0,10,20,1,2
b,b,0,10,20,2,0.5
c,c,0,10,20,0.5,4
";

/// Returns the path of an example. `cargo test` builds the examples beside the tests; `cargo test --test optional` does not.
fn example(name: &str) -> Result<PathBuf, Missing> {
    let tests = std::env::current_exe().expect("the tests know their path");
    let folder = tests.parent().and_then(|deps| deps.parent()).expect("tests are in target/release/deps");
    let path = folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        return Err(Missing("the example is not built: cargo test without --test builds it".to_owned()));
    }
    Ok(path)
}

/// At 50 s the first user has used 100 core-seconds. Under DRF each user has one core from then on. The policy with memory serves the
/// second user first until it has used as much as the first user, which covers all its tasks. Its short tasks wait less, and so the mean
/// wait of all tasks is shorter.
pub fn remembers_what_users_have_had() -> Outcome {
    let example = example("least_attained_service")?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = "job,user,submit_s,duration_s,tasks,cpu\na,early,0,10,100,1\nb,late,50,5,20,1\n";
    std::fs::write(dir.path().join("trace.csv"), trace).expect("a temporary file is writable");
    let mut command = Command::new(example);
    command.current_dir(&dir).args(["replay", "trace.csv", "--machines", "1x2c", "--policy", "las", "--policy", "drf"]);
    let runs: serde_json::Value =
        serde_json::from_str(&printed(command.args(["--format", "json", "-o", "out"]))).expect("the summary is JSON");
    let runs = runs.as_array().expect("one summary a run").clone();
    let wait = |policy: &str| {
        let run = runs.iter().find(|run| run["policy"] == policy).expect("a run");
        run["task_wait_mean_s"].as_f64().expect("a mean wait")
    };
    assert!(wait("las") < wait("drf"), "{} {}", wait("las"), wait("drf"));
    Ok(())
}

/// Returns the standard output of a command that must succeed.
fn printed(command: &mut Command) -> String {
    let output = run(command.env("NO_COLOR", "1"));
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

pub fn replays_beside_built_in_policies() -> Outcome {
    let example = example("custom_policy")?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("tiny.csv"), TINY).expect("a temporary file is writable");
    let mut command = Command::new(example);
    command.current_dir(&dir).args(["replay", "tiny.csv", "--machines", "1x10c20g", "--policy", "mine"]);
    command.args(["--policy", "drf", "--format", "json"]);
    let runs: serde_json::Value = serde_json::from_str(&printed(&mut command)).expect("the summary is JSON");
    let runs = runs.as_array().expect("one summary a run");
    let of = |policy: &str| {
        runs.iter().find(|run| run["policy"] == policy).unwrap_or_else(|| panic!("no {policy} in {runs:?}"))
    };
    assert_eq!(runs.len(), 2);
    let wait = |policy: &str| of(policy)["task_wait_mean_s"].as_f64().expect("a mean wait");
    assert!(wait("mine") > 0.0 && wait("mine") != wait("drf"), "the policies differ here: {runs:?}");
    Ok(())
}

pub fn is_listed_among_the_policies() -> Outcome {
    let example = example("custom_policy")?;
    let listed = printed(Command::new(example).arg("policies"));
    assert!(listed.lines().any(|line| line.starts_with("mine ")), "{listed}");
    assert!(listed.lines().any(|line| line.starts_with("drf ")), "{listed}");
    Ok(())
}
