//! Runs the binary and reads its `tasks` tables.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::frame::{Frame, write};
use crate::slow::Outcome;

/// Returns a `plimsoll` command.
pub fn plimsoll<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(args).env("NO_COLOR", "1");
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Changes a record and updates its digest, as a forger would.
pub fn forge(path: &Path, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).expect("a record");
    let mut record: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&change(&text)).expect("JSON");
    record.remove("blake3");
    plimsoll::output::sealed::write(path, &record).expect("a writable file");
}

/// Returns the stderr output of a command.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Reads the `tasks` table of one policy. Returns each outcome with the name of its job, in the order of the rows. The number `job` of an
/// outcome identifies the name.
pub fn read_tasks(dir: &Path, policy: &str) -> Result<Vec<(String, Outcome)>, String> {
    Ok(outcomes(&tasks_table(dir, policy)?))
}

/// Reads the `tasks` table of one policy.
pub fn tasks_table(dir: &Path, policy: &str) -> Result<Frame, String> {
    let path = partition(&dir.join("tasks"), policy)?.join("run=0").join("tasks.parquet");
    Frame::read(&path)
}

/// Returns the folder `policy=NAME`. Its name may contain percent-encoded characters, as in hive partitions.
fn partition(dir: &Path, policy: &str) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let wanted = format!("policy={}", plimsoll::output::schema::partition(policy));
    let found = names.iter().find(|name| **name == wanted);
    found.map(|name| dir.join(name)).ok_or_else(|| format!("{}: no policy={policy} among {names:?}", dir.display()))
}

/// Returns the outcome of each task, with the name of its job.
pub fn outcomes(table: &Frame) -> Vec<(String, Outcome)> {
    let [task, attempt, machine, start, finish] =
        ["task", "attempt", "machine", "start_us", "finish_us"].map(|name| table.integers(name));
    let (devices, fates) = (table.names("devices", ""), table.texts("outcome"));
    let mut ids: HashMap<String, usize> = HashMap::new();
    let mut outcomes = Vec::new();
    for (at, name) in table.texts("job").iter().enumerate() {
        let name = name.clone().expect("every task belongs to a job");
        let next = ids.len();
        let job = *ids.entry(name.clone()).or_insert(next);
        let time = |value: Option<i64>| value.map(|value| u64::try_from(value).expect("times are not negative"));
        outcomes.push((
            name,
            Outcome {
                job,
                task: time(task[at]).expect("every task has a number"),
                attempt: time(attempt[at]).expect("attempts count from 0"),
                machine: machine[at].map(|machine| usize::try_from(machine).expect("machines count from 0")),
                start: time(start[at]),
                finish: time(finish[at]),
                devices: devices[at].clone(),
                fate: fates[at].clone().expect("every task has an outcome"),
            },
        ));
    }
    outcomes
}

/// Returns all files below a folder.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Reads a table of known content, with integers of other widths and an encoded `:` in its path.
#[test]
fn the_tasks_table_reads_as_written() {
    use polars_arrow::array::{Array, PrimitiveArray, Utf8ViewArray};
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().join("tasks/policy=slot%3A2/run=0");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let columns = vec![
        ("job", Utf8ViewArray::from_slice_values(["b", "a", "b"]).to_boxed()),
        ("task", PrimitiveArray::from_slice([0u32, 0, 1]).to_boxed()),
        ("attempt", PrimitiveArray::from_slice([0u32, 2, 0]).to_boxed()),
        ("machine", PrimitiveArray::from([Some(3u32), None, None]).to_boxed()),
        ("start_us", PrimitiveArray::from([Some(0i64), Some(7), None]).to_boxed()),
        ("finish_us", PrimitiveArray::from([Some(9u64), Some(8), None]).to_boxed()),
        ("devices", Utf8ViewArray::from_slice([Some("gpu:0"), None, None]).to_boxed()),
        ("outcome", Utf8ViewArray::from_slice_values(["finished", "failed", "starved"]).to_boxed()),
    ];
    write(&folder.join("tasks.parquet"), columns);
    let outcome = |job, task, attempt, machine, [start, finish]: [Option<u64>; 2], devices: &str, fate: &str| {
        let (devices, fate) = (devices.to_owned(), fate.to_owned());
        Outcome { job, task, attempt, machine, start, finish, devices, fate }
    };
    let expected = vec![
        ("b".to_owned(), outcome(0, 0, 0, Some(3), [Some(0), Some(9)], "gpu:0", "finished")),
        ("a".to_owned(), outcome(1, 0, 2, None, [Some(7), Some(8)], "", "failed")),
        ("b".to_owned(), outcome(0, 1, 0, None, [None, None], "", "starved")),
    ];
    assert_eq!(read_tasks(dir.path(), "slot:2"), Ok(expected));
    assert!(read_tasks(dir.path(), "slot:3").is_err_and(|problem| problem.contains("policy=slot:3")));
}

/// Machines are not pooled unless `pooled` is selected. A pooled run warns of tasks that are larger than every machine.
#[test]
fn a_task_larger_than_every_machine_runs_only_where_they_are_pooled_and_with_a_warning() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let rows = "job,user,submit_s,duration_s,cpu,memory_gib\nlarge,a,0,10,100,1\nsmall,b,0,10,10,1\n";
    std::fs::write(dir.path().join("t.csv"), rows).expect("a temporary file");
    let replay = |more: &[&str]| {
        let args = ["replay", "t.csv", "--machines", "4x64c64g", "--policy", "drf"];
        let output = run(plimsoll(&[&args, more].concat()).current_dir(dir.path()));
        assert!(output.status.success(), "{}", said(&output));
        (String::from_utf8_lossy(&output.stdout).into_owned(), said(&output))
    };
    let (printed, messages) = replay(&[]);
    assert!(printed.starts_with("4 machines (256 cores, 256 GiB), placement first-fit\n"), "{printed}");
    assert!(messages.contains("too large for any machine") && !messages.contains("pooled"), "{messages}");
    let (printed, messages) = replay(&["--placement", "pooled"]);
    assert!(printed.starts_with("4 machines (256 cores, 256 GiB), placement pooled\n"), "{printed}");
    assert!(messages.contains("larger than every machine, such as one with 100 cores, 1 GiB"), "{messages}");
}
