//! A study that is killed repeatedly ends with the same bytes as a study that is not killed.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use plimsoll::workload::synthetic::random::stream;
use rand::RngExt;

use crate::determinism::differences;
use crate::replay::files;
use crate::study_run::{SWEEP, Scratch, contents};

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the number of runs with a receipt.
fn receipts(folder: &Path) -> usize {
    files(folder).iter().filter(|path| path.parent().is_some_and(|parent| parent.ends_with("done"))).count()
}

/// Kills a run of the plan `moment` after it has completed `more` additional runs. Returns false if the process ended before.
fn kill(place: &Scratch, out: &str, args: &[&str], more: usize, moment: Duration) -> bool {
    let folder = place.path(out);
    let enough = receipts(&folder) + more;
    let mut command = place.command(out, args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().expect("the program starts"));
    while receipts(&folder) < enough {
        if running.0.try_wait().expect("a child can be waited for").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(moment);
    // SIGKILL on Unix: the process cleans up no files, and there is no exit code.
    running.0.kill().expect("a child can be killed");
    running.0.wait().expect("a child can be waited for").code().is_none()
}

fn temporary(folder: &Path) -> usize {
    let is = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".plimsoll-"));
    files(folder).iter().filter(|path| is(path)).count()
}

/// Runs the plan without interruption, and with `kills` kills on one thread, on two, and in three shards.
fn compare(plan: &str, kills: usize) {
    let place = Scratch::in_memory(plan);
    place.run("whole", &["-j", "2"]);
    let (expected, all) = (contents(&place.path("whole")), receipts(&place.path("whole")));
    let mut random = stream(1, "kills");
    for (out, settings) in [
        ("one", vec![vec!["-j", "1"]]),
        ("two", vec![vec!["-j", "2"]]),
        ("shards", vec![vec!["--shard", "0/3"], vec!["--shard", "1/3"], vec!["--shard", "2/3", "-j", "2"]]),
    ] {
        let mut hit = 0;
        // Works on machines of any speed: results that are complete before the required number of kills are removed and restarted.
        for at in 0.. {
            if hit == kills {
                break;
            }
            assert!(at < 100 * kills, "{out}: only {hit} of {at} kills came before the end");
            let (more, moment) = (random.random_range(0..=all / kills), random.random_range(0..3000));
            let args = &settings[at % settings.len()];
            hit += usize::from(kill(&place, out, args, more, Duration::from_micros(moment)));
            if receipts(&place.path(out)) == all {
                std::fs::remove_dir_all(place.path(out)).expect("results can be removed");
            }
        }
        for args in &settings {
            place.run(out, args);
        }
        let message = if settings.len() > 1 { place.run(out, &["--gather"]) } else { String::new() };
        assert!(!message.contains("missing"), "{message}");
        let left = temporary(&place.path(out));
        assert_eq!(left, 0, "{out}: temporary files are left");
        assert_eq!(differences(&expected, &contents(&place.path(out))), [""; 0], "{out}");
    }
}

/// A plan of 500 runs: 5 cells, 2 policies, 50 seeds.
pub fn five_hundred(jobs: u64) -> String {
    let plan = SWEEP.replace("seeds = 3", "seeds = 50").replace("[2.0, 3.0, 5.0]", "[2.0, 2.5, 3.0, 4.0, 5.0]");
    let tables = "tables = [\"runs\", \"users\", \"jobs\", \"bins\", \"fairness\", \"demands\"]";
    plan.replace(tables, "tables = [\"runs\", \"jobs\"]").replace("jobs = 60", &format!("jobs = {jobs}"))
}

#[test]
fn a_study_killed_with_many_tables_ends_with_the_same_bytes() {
    compare(&SWEEP.replace("seeds = 3", "seeds = 8"), 4);
}

#[test]
fn a_study_of_500_runs_killed_twenty_times_ends_with_the_same_bytes() {
    compare(&five_hundred(60), 20);
}

/// The same test with longer runs: `cargo test --release --test it -- --ignored study_kill`.
#[test]
#[ignore = "minutes"]
fn a_study_of_500_longer_runs_killed_twenty_times_ends_with_the_same_bytes() {
    compare(&five_hundred(2000), 20);
}
