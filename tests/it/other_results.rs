//! Commands that write results refuse a folder with results of another plan, command or trace, unless `--restart` is given.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use crate::bundle;
use crate::determinism::differences;
use crate::replay::{plimsoll, run, said};
use crate::study_records::small;
use crate::study_run::{Scratch, contents};

const REPLAY: [&str; 6] = ["--machines", "2x4c8g", "--placement", "first-fit", "--policy", "drf"];

/// A folder with two traces and a plan.
fn place() -> Scratch {
    let place = Scratch::new(&small());
    for (name, user) in [("a.csv", "ann"), ("b.csv", "bob")] {
        let row = format!("job,user,submit_s,duration_s,tasks,cpu\n1,{user},0,10,2,1\n");
        place.write(name, &row);
    }
    place
}

fn replay(place: &Scratch, trace: &str, more: &[&str]) -> Output {
    run(plimsoll(&["replay"]).arg(place.path(trace)).args(REPLAY).arg("-o").arg(place.path("out")).args(more))
}

fn ok(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// Asserts that a command is refused with a message that contains all of `says` and `--restart`, and that the folder is unchanged.
fn refused(place: &Scratch, command: impl Fn() -> Output, says: &[&str]) {
    let before = contents(&place.path("out"));
    let output = command();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for part in says.iter().chain(&["--restart"]) {
        let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(differences(&before, &contents(&place.path("out"))), [""; 0], "a refused command changes nothing");
}

fn assert_same(place: &Scratch, fresh: &Path) {
    assert_eq!(differences(&contents(fresh), &contents(&place.path("out"))), [""; 0]);
}

#[test]
fn a_replay_does_not_destroy_an_experiment() {
    let place = place();
    place.run("out", &[]);
    refused(&place, || replay(&place, "a.csv", &[]), &["has results of `plimsoll run"]);
    ok(&replay(&place, "a.csv", &["--restart"]));
    let mut fresh = plimsoll(&["replay"]);
    ok(&run(fresh.arg(place.path("a.csv")).args(REPLAY).arg("-o").arg(place.path("fresh"))));
    // No figure, report or table of the experiment is left.
    assert_same(&place, &place.path("fresh"));
}

#[test]
fn a_run_does_not_destroy_a_replay() {
    let place = place();
    ok(&replay(&place, "a.csv", &["--report"]));
    refused(&place, || run(&mut place.command("out", &[])), &["has results of `plimsoll replay"]);
    place.run("out", &["--restart"]);
    place.run("fresh", &[]);
    assert_same(&place, &place.path("fresh"));
}

#[test]
fn a_replay_of_another_trace_or_under_other_options_is_refused() {
    let place = place();
    ok(&replay(&place, "a.csv", &[]));
    let whole = contents(&place.path("out"));
    refused(&place, || replay(&place, "b.csv", &[]), &["another file for workload.trace"]);
    refused(&place, || replay(&place, "a.csv", &["--policy", "fifo"]), &["another plan", "policies"]);
    place.write("a.csv", "job,user,submit_s,duration_s,tasks,cpu\n1,ann,0,11,2,1\n");
    refused(&place, || replay(&place, "a.csv", &[]), &["another file for workload.trace"]);
    // The same rows under another name are the same trace, so the runs are kept.
    place.write("c.csv", "job,user,submit_s,duration_s,tasks,cpu\n1,ann,0,10,2,1\n");
    let again = replay(&place, "c.csv", &[]);
    ok(&again);
    let changed: BTreeSet<String> = differences(&whole, &contents(&place.path("out"))).into_iter().collect();
    assert_eq!(
        changed,
        BTreeSet::from(["experiment.json".to_owned()]),
        "only the recorded command differs, which names the file"
    );
    ok(&replay(&place, "b.csv", &["--restart"]));
}

#[test]
fn standard_input_cannot_be_recognised() {
    let place = place();
    let piped = |more: &[&str]| {
        let file = std::fs::File::open(place.path("a.csv")).expect("a trace");
        let mut command = plimsoll(&["replay", "-"]);
        run(command.args(REPLAY).arg("-o").arg(place.path("out")).args(more).stdin(file))
    };
    ok(&piped(&[]));
    refused(&place, || piped(&[]), &["standard input and pipes can be read only once"]);
    ok(&piped(&["--restart"]));
}

#[test]
fn a_plan_with_an_edited_input_is_run_again() {
    let place = place();
    let plan = "name = \"x\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"1x4c8g\"\nplacement = \"first-fit\"\n[workload]\n\
                trace = \"a.csv\"\n";
    place.write("plan.toml", plan);
    place.run("out", &[]);
    std::fs::copy(place.path("b.csv"), place.path("a.csv")).expect("a writable folder");
    place.run("out", &[]);
    place.run("fresh", &[]);
    assert_same(&place, &place.path("fresh"));
}

#[test]
fn plans_without_runs_and_plans_with_runs_replace_each_other_on_request_alone() {
    let place = place();
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper");
    let without = |plan: &str, more: &[&str]| {
        run(plimsoll(&["run", "-q"]).arg(experiments.join(plan)).arg("-o").arg(place.path("out")).args(more))
    };
    ok(&without("drf-fig3.toml", &[]));
    ok(&without("drf-fig3.toml", &[]));
    let another = ["has results of another plan"];
    refused(&place, || without("drf-fig4-7.toml", &[]), &another);
    refused(&place, || run(&mut place.command("out", &[])), &another);
    place.run("out", &["--restart"]);
    refused(&place, || without("drf-fig3.toml", &[]), &another);
    ok(&without("drf-fig3.toml", &["--restart"]));
    ok(&run(plimsoll(&["run", "-q"]).arg(experiments.join("drf-fig3.toml")).arg("-o").arg(place.path("fresh"))));
    assert_same(&place, &place.path("fresh"));
}

/// Old results are removed when the first new run is complete. A restart that fails earlier leaves them unchanged.
#[test]
fn a_restart_that_fails_leaves_the_old_results() {
    let place = place();
    place.run("out", &[]);
    std::fs::write(place.path("out/figures/mine.svg"), "mine").expect("a writable folder");
    let before = contents(&place.path("out"));
    place.write("bad.csv", "job,user,submit_s,duration_s,tasks,cpu\n1,ann,0,10,2,1\n2,ann,0,ten,2,1\n");
    let output = replay(&place, "bad.csv", &["--restart"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(differences(&before, &contents(&place.path("out"))), [""; 0]);
    ok(&replay(&place, "a.csv", &["--restart"]));
    assert_eq!(std::fs::read(place.path("out/figures/mine.svg")).expect("no record lists it"), b"mine");
}

/// The tables of the runs were replaced, but the figures, statistics and report are those of the old tables.
#[test]
fn a_bundle_refuses_figures_of_other_tables() {
    let place = bundle::Scratch::new();
    place.ok(&["bundle", "out", "-o", "whole.zip"]);
    place.ok(&["bundle", "--verify", "whole.zip"]);
    place.write("plans/weights.csv", "user,weight\nu0,9\nu1,1\nu2,1\n");
    place.ok(&["run", "plans/small.toml", "-o", "other"]);
    // Copies the old figures, statistics and report, with their record, next to the runs of another input.
    for name in ["made.json", "figures", "statistics", "report.html"] {
        let (from, to) = (place.path("out").join(name), place.path("other").join(name));
        if from.is_file() {
            std::fs::copy(from, to).expect("a writable folder");
            continue;
        }
        for file in std::fs::read_dir(from).expect("a folder") {
            let file = file.expect("an entry");
            std::fs::copy(file.path(), to.join(file.file_name())).expect("a writable folder");
        }
    }
    let message = place.refused(&["bundle", "other", "-o", "mixed.zip"]);
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("not made from the existing tables") && message.contains("plimsoll report"), "{message}");
    // The steps that the message suggests repair the folder.
    place.ok(&["run", "plans/small.toml", "-o", "other"]);
    place.ok(&["report", "other"]);
    place.ok(&["bundle", "other", "-o", "mended.zip"]);
    place.ok(&["bundle", "--verify", "mended.zip"]);
}

#[test]
fn a_bundle_refuses_a_table_that_was_changed() {
    let place = bundle::Scratch::new();
    let table = crate::replay::files(&place.path("out"))
        .into_iter()
        .find(|file| file.ends_with("runs.parquet"))
        .expect("a table");
    let mut bytes = std::fs::read(&table).expect("a table");
    bytes[40] ^= 1;
    std::fs::write(&table, bytes).expect("a writable folder");
    let message = place.refused(&["bundle", "out", "-o", "x.zip"]);
    assert!(message.contains("not as it was written"), "{message}");
    // A bundle of an incomplete folder is consistent: it contains no figure and no report of the changed table.
    place.ok(&["bundle", "out", "--incomplete", "-o", "x.zip"]);
    place.ok(&["bundle", "--verify", "x.zip"]);
    place.unpack("x.zip", "x");
    assert!(!place.path("x").join("out/results/out/report.html").exists());
}
