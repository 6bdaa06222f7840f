//! Ownership of a results folder: foreign files, damaged files, links to other folders, and the process that holds the lock.

use std::path::Path;
use std::process::{Command, Output};

use plimsoll::output::lock::Lock;

use crate::determinism::differences;
use crate::replay::{files, forge, plimsoll, run, said};
use crate::study_records::small;
use crate::study_run::{SWEEP, Scratch, contents};

fn verb(name: &str, place: &Scratch, folder: &str) -> Output {
    run(plimsoll(&[name]).arg(place.path(folder)))
}

/// Returns the command that executes one of the repository's plans without runs, with results in `folder`.
fn without_runs(plan: &str, place: &Scratch, folder: &str) -> Command {
    let mut command = plimsoll(&["run", "--quiet"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper").join(plan));
    command.arg("-o").arg(place.path(folder));
    command
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).expect("readable");
    bytes[30] ^= 1;
    std::fs::write(path, bytes).expect("writable");
}

#[test]
fn a_damaged_description_is_no_leave_to_throw_runs_away() {
    for (plan, record) in [(small(), "experiment.json"), (SWEEP.to_owned(), "study.json")] {
        let place = Scratch::new(&plan);
        place.run("out", &[]);
        let whole = contents(&place.path("out"));
        flip(&place.path("out").join(record));
        let damaged = contents(&place.path("out"));
        place.write("plan.toml", &plan.replace("jobs = 60", "jobs = 50"));
        let message = place.refused("out", &[]);
        assert!(message.contains("not as it was written") && message.contains("--restart"), "{message}");
        assert!(place.refused("out", &["--dry-run"]).contains("--restart"));
        assert_eq!(differences(&damaged, &contents(&place.path("out"))), [""; 0]);
        // A run of the same plan repairs the record.
        place.write("plan.toml", &plan);
        place.run("out", &[]);
        assert_eq!(differences(&whole, &contents(&place.path("out"))), [""; 0]);
    }
}

#[test]
fn a_shard_without_runs_is_in_nobodys_way() {
    let place = Scratch::new(&small().replace("seeds = 3", "seeds = 1"));
    for shard in 0..8 {
        place.run("out", &["--shard", &format!("{}/8", 7 - shard)]);
    }
    place.run("out", &["--gather"]);
}

#[test]
fn plans_without_runs_take_the_folder_too() {
    let place = Scratch::new(&small());
    let lock = Lock::alone(&place.path("out")).expect("no other process has the lock");
    for plan in ["drf-fig3.toml", "fuxi-failover.toml"] {
        let output = run(&mut without_runs(plan, &place, "out"));
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("another process is writing there"), "{}", said(&output));
    }
    drop(lock);
    for mine in ["recovery.parquet", "counterexamples/mine.toml"] {
        place.write("mine", "mine");
        let folder = place.path(&format!("with-{}", mine.len()));
        let path = folder.join(mine);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, "mine").expect("writable");
        let output = run(&mut without_runs("fuxi-failover.toml", &place, &format!("with-{}", mine.len())));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(mine), "{}", said(&output));
        assert_eq!(std::fs::read(&path).expect("readable"), b"mine");
    }
}

/// If a process is killed between writing the figures and their manifest, the next process continues with its files.
#[test]
fn a_plan_without_runs_goes_on_after_it_was_killed() {
    let place = Scratch::new(&small());
    let make = || run(&mut without_runs("drf-fig3.toml", &place, "out"));
    assert!(make().status.success());
    let whole = contents(&place.path("out"));
    std::fs::remove_file(place.path("out/made.json")).expect("it was written");
    let output = make();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(differences(&whole, &contents(&place.path("out"))), [""; 0]);
}

#[test]
fn records_and_requests_that_somebody_has_written_stay() {
    let place = Scratch::new(&small());
    place.run("out", &[]);
    std::fs::write(place.path("out/study.json"), "{\"mine\": 1}").expect("writable");
    place.run("out", &[]);
    assert_eq!(std::fs::read(place.path("out/study.json")).expect("it stays"), b"{\"mine\": 1}");
    let place =
        Scratch::new(&format!("{}\n[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"speed_jain\"\n", small()));
    place.run("out", &[]);
    let requests = place.path("out/figures.toml");
    let mine = std::fs::read_to_string(&requests).expect("it was written").replace("speed_jain", "speed_gap");
    std::fs::write(&requests, &mine).expect("writable");
    let said = place.run("out", &[]);
    assert!(said.contains("figures.toml was changed manually"), "{said}");
    assert_eq!(std::fs::read_to_string(&requests).expect("it stays"), mine);
    std::fs::remove_file(&requests).expect("it stays");
    assert!(!place.run("out", &[]).contains("changed manually"));
    assert!(std::fs::read_to_string(&requests).expect("it was written").contains("speed_jain"));
}

#[cfg(unix)]
#[test]
fn links_lead_neither_writers_nor_removers_elsewhere() {
    use std::os::unix::fs::symlink;
    let place = Scratch::new(SWEEP);
    place.run("out", &[]);
    let (out, outside) = (place.path("out"), place.path("outside"));
    // Links replace the folder of figures, the folder of a cell, and folders of the cell's tables.
    for name in ["figures", "cell=mean-2.0", "cell=mean-2.0/runs", "cell=mean-2.0/runs/policy=drf"] {
        std::fs::rename(out.join(name), &outside).expect("it is there");
        symlink(&outside, out.join(name)).expect("a link");
        let before = contents(&outside);
        for (verb, output) in
            [("plot", verb("plot", &place, "out")), ("run", run(&mut place.command("out", &["--restart"])))]
        {
            assert!(!output.status.success(), "{verb} through {name}");
            let said = said(&output);
            assert!(said.contains("link") || said.contains("is not there"), "{verb} through {name}: {said}");
            assert_eq!(differences(&before, &contents(&outside)), [""; 0], "{verb} through {name}");
        }
        std::fs::remove_file(out.join(name)).expect("a link");
        std::fs::rename(&outside, out.join(name)).expect("it is there");
        place.run("out", &[]);
    }
}

#[test]
fn a_receipt_of_another_run_is_none() {
    let place = Scratch::new(&small());
    place.run("out", &[]);
    let whole = contents(&place.path("out"));
    let receipt = files(&place.path("out/done")).remove(0);
    for (from, to) in [("\"policy\": \"drf\"", "\"policy\": \"zzz\""), ("\"policy\": \"fifo\"", "\"policy\": \"zzz\"")]
    {
        forge(&receipt, |text| text.replace(from, to));
    }
    let said = place.run("out", &[]);
    assert!(said.contains("its receipt belongs to another run; it was run again"), "{said}");
    assert_eq!(differences(&whole, &contents(&place.path("out"))), [""; 0]);
    let read = std::fs::read_to_string(&receipt).expect("readable");
    let tables = &read[read.find("\"tables\"").expect("tables")..read.find("\"summary\"").expect("a summary")];
    forge(&receipt, |text| text.replace(tables, "\"tables\": {\"runs/policy=x/run=0/runs.parquet\": \"00\"},\n  "));
    assert!(place.run("out", &[]).contains("is broken"));
    assert_eq!(differences(&whole, &contents(&place.path("out"))), [""; 0]);
}

#[test]
fn a_dry_run_refuses_what_a_run_refuses() {
    let place = Scratch::new(&small());
    std::fs::create_dir_all(place.path("out/users")).expect("writable");
    std::fs::write(place.path("out/users/alice.json"), "mine").expect("writable");
    assert!(place.refused("out", &["--dry-run"]).contains("alice.json"));
    // The trace has another format, and the machines of the second cell lack the CPU that it requires.
    place.write("log.swf", "; MaxProcs: 4\n1 0 5 100 4 -1 -1 4 120 -1 1 3 1 -1 1 -1 -1 -1\n");
    place.write(
        "plan.toml",
        "name = \"log\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"2x4c\"\n[workload]\ntrace = \"log.swf\"\n\
         [sweep]\n\"cluster.machines\" = [\"2x4c\", \"2x4g\"]\n",
    );
    let (dry, wet) = (place.refused("log", &["--dry-run"]), place.refused("log", &[]));
    assert!(dry.contains("cpu") && wet.contains("cpu"), "{dry}\n{wet}");
    assert!(!place.path("log").exists(), "no folder is created");
}
