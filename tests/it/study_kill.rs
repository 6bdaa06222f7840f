//! A study that is killed again and again ends with the same bytes as one that was not.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use plimsoll::workload::synthetic::random::stream;
use rand::RngExt;

use crate::determinism::differences;
use crate::replay::files;
use crate::study_run::{Place, SWEEP, contents};

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a run of the plan after a random part of `whole`; whether it was still running.
fn kill(place: &Place, out: &str, args: &[&str], whole: Duration, part: f64) -> bool {
    let mut command = place.command(out, args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().expect("the program starts"));
    std::thread::sleep(whole.mul_f64(part));
    let there = running.0.try_wait().expect("a child can be waited for").is_none();
    // SIGKILL on Unix: nothing is cleaned up.
    running.0.kill().expect("a child can be killed");
    there
}

fn temporary(folder: &Path) -> usize {
    let is = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".plimsoll-"));
    files(folder).iter().filter(|path| is(path)).count()
}

/// Runs the plan without a break, and with so many kills on one thread, on two, and in three shards.
fn compare(plan: &str, kills: u32) {
    let place = Place::in_memory(plan);
    let started = Instant::now();
    place.run("whole", &["-j", "2"]);
    let whole = started.elapsed();
    let expected = contents(&place.path("whole"));
    let mut random = stream(1, "kills");
    for (out, settings) in [
        ("one", vec![vec!["-j", "1"]]),
        ("two", vec![vec!["-j", "2"]]),
        ("shards", vec![vec!["--shard", "0/3"], vec!["--shard", "1/3"], vec!["--shard", "2/3", "-j", "2"]]),
    ] {
        let mut hit = 0;
        for at in 0..kills {
            let args = &settings[at as usize % settings.len()];
            hit += u32::from(kill(&place, out, args, whole, random.random_range(0.0..1.5) / f64::from(kills)));
        }
        assert!(hit * 2 >= kills, "{out}: only {hit} of {kills} kills came before the end");
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

/// The same with longer runs. `cargo test --release --test it -- --ignored study_kill`.
#[test]
#[ignore = "minutes"]
fn a_study_of_500_longer_runs_killed_twenty_times_ends_with_the_same_bytes() {
    compare(&five_hundred(2000), 20);
}
