//! `plimsoll cluster slurm` with a replacement for `sbatch`. `tests/optional/slurm.rs` uses the real `sbatch`.

use std::path::Path;
use std::process::Command;

use crate::determinism::differences;
use crate::replay::{plimsoll, run, said};
use crate::study_run::{SWEEP, Scratch, contents};

/// Runs the submitted script at once, the tasks of an array one after the other, and appends its arguments to `calls`. If the file `broken`
/// exists, the array task with the index in that file is skipped.
pub const SBATCH: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
for script in "$@"; do :; done
list=$(sed -n 's/^#SBATCH --array=\([0-9,-]*\).*/\1/p' "$script")
if [ -z "$list" ]; then
  sh "$script" > "$here/gather.log" 2>&1
else
  for part in $(echo "$list" | tr ',' ' '); do
    for index in $(seq "${part%-*}" "${part#*-}"); do
      if [ -f "$here/broken" ] && [ "$(cat "$here/broken")" = "$index" ]; then continue; fi
      SLURM_ARRAY_TASK_ID=$index sh "$script" >> "$here/array.log" 2>&1
    done
  done
fi
wc -l < "$here/calls" | tr -d ' '
"#;

/// Returns the command that submits the plan of a place, with results in a folder of that place.
pub fn cluster(place: &Scratch, out: &str, args: &[&str]) -> Command {
    let mut command = plimsoll(&["cluster", "slurm"]);
    command.arg(place.path("plan.toml")).arg("-o").arg(place.path(out)).args(args);
    command
}

/// Returns the files of the results without the scripts and logs of Slurm.
pub fn without_logs(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    contents(folder).into_iter().filter(|(path, _)| !path.starts_with("slurm")).collect()
}

#[cfg(unix)]
#[test]
fn an_array_is_submitted_and_what_is_missing_is_submitted_again() {
    use std::os::unix::fs::PermissionsExt;
    let place = Scratch::new(&format!("{SWEEP}\n[slurm]\nshards = 4\ncpus = 2\ntime = \"00:10:00\"\nat_once = 3\n"));
    place.write("sbatch", SBATCH);
    std::fs::set_permissions(place.path("sbatch"), std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
    let path = format!("{}:{}", place.path("").display(), std::env::var("PATH").unwrap_or_default());
    let dry = run(cluster(&place, "out", &["--dry-run"]).env("PATH", &path));
    let script = String::from_utf8_lossy(&dry.stdout).into_owned();
    for line in ["#SBATCH --array=0-3%3", "#SBATCH --cpus-per-task=2", "#SBATCH --time=00:10:00", "--shard auto/4 -j 2"]
    {
        assert!(script.contains(line), "{line}: {script}");
    }
    assert!(!place.path("out").exists(), "a dry run writes nothing");
    place.write("broken", "2");
    let first = run(cluster(&place, "out", &[]).env("PATH", &path));
    assert!(first.status.success(), "{}", said(&first));
    let log = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_default();
    assert!(log("gather.log").contains("runs are missing or broken"), "{}", log("gather.log"));
    std::fs::remove_file(place.path("broken")).expect("it is there");
    let again = run(cluster(&place, "out", &[]).env("PATH", &path));
    assert!(said(&again).contains("1 of 4 shards"), "{}", said(&again));
    assert!(std::fs::read_to_string(place.path("out/slurm/array.sh")).expect("a script").contains("--array=2%3"));
    assert!(
        log("calls").lines().nth(1).is_some_and(|call| call.contains("--dependency=afterany:1")),
        "{}",
        log("calls")
    );
    // The table [slurm] has no effect on the results.
    place.write("plan.toml", SWEEP);
    place.run("whole", &["-j", "2"]);
    assert_eq!(differences(&contents(&place.path("whole")), &without_logs(&place.path("out"))), [""; 0]);
}

#[test]
fn wrong_tables_and_no_slurm_are_told() {
    let place = Scratch::new(&format!("{SWEEP}\n[slurm]\nshard = 4\n"));
    let message = place.refused("out", &[]);
    assert!(
        message.contains("34 | shard = 4") && message.contains("unknown field `shard`") && message.contains("'shards'"),
        "{message}"
    );
    place.write("plan.toml", SWEEP);
    let output = run(cluster(&place, "out", &[]).env("PATH", place.path("nowhere")));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("sbatch cannot be executed") && said(&output).contains("the scripts are written"));
}
