//! The example: a policy of one's own, from its own binary, with the full command line.

use std::path::PathBuf;
use std::process::Command;

use crate::replay::{run, said};
use crate::{Missing, Outcome};

/// Enough tasks that `mine` and `drf` part: `a` needs both resources, `b` and `c` one each.
const TINY: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib
a,a,0,10,20,1,2
b,b,0,10,20,2,0.5
c,c,0,10,20,0.5,4
";

/// The example, which `cargo test` builds beside the tests; `cargo test --test optional` does not.
fn example(name: &str) -> Result<PathBuf, Missing> {
    let tests = std::env::current_exe().expect("the tests know their path");
    let folder = tests.parent().and_then(|deps| deps.parent()).expect("tests lie in target/release/deps");
    let path = folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        return Err(Missing("it is not built: cargo test without --test builds it".to_owned()));
    }
    Ok(path)
}

/// At 50 s the first user has had 100 core-seconds. Under DRF both users have a core each from then on; with memory the other goes
/// first until it has had as much, which is all it wants: its short tasks wait less, and so do all in the mean.
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

/// What a command that must succeed prints.
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
