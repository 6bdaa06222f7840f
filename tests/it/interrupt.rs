//! Interrupts, terminations and kills: a run that is stopped leaves no files that appear complete.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::frame::Frame;
use crate::replay::{files, plimsoll};

/// A plan of many runs of some seconds each, hours in total: a long trace on a cluster that is almost fully loaded. No test waits for the
/// end of the plan.
const PLAN: &str = r#"
name = "long"
policies = ["drf", "asset", "maxmin:cpu", "fifo"]
seeds = 2000
tables = ["runs", "users", "jobs", "tasks", "usage", "fairness", "shares"]

[cluster]
machines = "400x64c256g"
placement = "first-fit"

[workload]
generator = "synthetic"
jobs = 400_000
arrival = { distribution = "exponential", mean = 0.04 }

[[workload.class]]
name = "user"
users = 100
zipf = 0.6
duration = { distribution = "lognormal", median = 200, sigma = 0.8 }
demand = { cpu = { distribution = "choice", values = [1, 2, 4] }, memory_gib = { distribution = "uniform", min = 2, max = 20 } }
"#;

/// The time limit for every wait, which is sufficient for the busiest machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A process that is killed if the test ends first.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process has already ended if the test succeeded.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(dir: &Path, jobs: &str) -> Running {
        let plan = dir.join("plan.toml");
        std::fs::write(&plan, PLAN).expect("a temporary file is writable");
        let mut command = plimsoll(&["run"]);
        command.arg(plan).arg("-o").arg(dir.join("out")).args(["-j", jobs]);
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(name).arg(self.0.id().to_string()).status().expect("kill is a command");
        assert!(sent.success(), "the process is there");
    }

    /// Waits until the process ends after a signal.
    fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "it still runs {PATIENCE:?} after the signal");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until `ready` returns true, while the run continues.
    fn wait_for(&mut self, what: &str, ready: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !ready() {
            assert!(self.0.try_wait().expect("a child can be waited for").is_none(), "it ended before {what}");
            assert!(Instant::now() < deadline, "no {what} in {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".plimsoll-"))
}

/// Waits until a run writes its tables: a temporary file has grown past its first row group.
fn wait_until_writing(running: &mut Running, out: &Path) {
    let grown = |path: &PathBuf| is_temporary(path) && std::fs::metadata(path).is_ok_and(|data| data.len() > 100_000);
    running.wait_for("tables being written", || files(out).iter().any(grown));
}

/// Returns the tables below a folder that have their final names.
fn tables(out: &Path) -> Vec<PathBuf> {
    files(out).into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect()
}

fn assert_readable(path: &Path) {
    Frame::open(path);
}

/// Checks that only complete runs are left after a signal that can be caught.
fn assert_whole(out: &Path) {
    let left = files(out);
    assert!(left.iter().all(|path| !is_temporary(path)), "{left:?}");
    let left = tables(out);
    left.iter().for_each(|path| assert_readable(path));
    // A run that has left a table has left all of its seven tables.
    assert_eq!(left.len(), ended(out) * 7, "{left:?}");
}

/// Returns the number of runs that have ended.
fn ended(out: &Path) -> usize {
    tables(out).iter().filter(|path| path.ends_with("runs.parquet")).count()
}

#[test]
fn an_interrupt_leaves_nothing_half_written() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let mut running = Running::start(dir.path(), "1");
    wait_until_writing(&mut running, &out);
    running.signal("-INT");
    assert_eq!(running.end().code(), Some(130));
    assert_whole(&out);
}

#[test]
fn a_termination_keeps_the_runs_that_had_ended() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let mut running = Running::start(dir.path(), "1");
    running.wait_for("a run that has ended", || ended(&out) > 0);
    wait_until_writing(&mut running, &out);
    running.signal("-TERM");
    assert_eq!(running.end().code(), Some(130));
    assert_whole(&out);
    assert!(ended(&out) > 0, "the ended runs are kept");
}

#[test]
fn a_kill_leaves_no_table_that_cannot_be_read() {
    // Every partial file may have been completed between the check and the signal. Then the attempt is repeated.
    let was_writing = (0..20).any(|_| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("out");
        let mut running = Running::start(dir.path(), "2");
        wait_until_writing(&mut running, &out);
        running.signal("-KILL");
        assert_eq!(running.end().code(), None);
        tables(&out).iter().for_each(|path| assert_readable(path));
        assert!(!out.join("run.json").exists(), "the experiment is not over");
        files(&out).iter().any(|path| is_temporary(path))
    });
    assert!(was_writing, "no kill came while a table was being written");
}
