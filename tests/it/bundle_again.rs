//! The content of a bundle runs again, from any folder, by the commands in its README. Inputs are identified by their digests.

use std::path::Path;
use std::process::Command;

use crate::bundle::Scratch;
use crate::determinism::differences;
use crate::replay::{forge, plimsoll, run, said};
use crate::study_run::contents;

/// Names with characters that are special to a shell.
const TRACE: &str = "../data/-it's $(touch pwned) `touch pwned` & more.csv";
const WEIGHTS: &str = "w eights;.csv";
const MACHINES: &str = "#machines $HOME.csv";
const EVENTS: &str = "sub/events!.csv";

/// Returns a folder with inputs of all kinds.
fn place() -> Scratch {
    let place = Scratch(tempfile::tempdir().expect("a temporary folder"));
    let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    for job in 0..30u64 {
        trace += &format!("j{job},u{},{},{},{},1,{}\n", job % 3, job * 4, 20 + job % 7, 1 + job % 5, 1 + job % 2);
    }
    place.write(&format!("work/{TRACE}"), &trace);
    place.write(&format!("work/{WEIGHTS}"), "user,weight\nu0,2\nu1,1\nu2,1\n");
    place.write(&format!("work/{MACHINES}"), "name,cpu,memory_gib\na,8,16\nb,8,16\n");
    place.write(&format!("work/{EVENTS}"), "at_s,machine,event\n30,a,fail\n50,a,join\n");
    place.write("work/groups.toml", "[[group]]\nname = \"all\"\nusers = [\"*\"]\n");
    place
}

/// Runs a script in a folder. In the script `plimsoll` is the program of this build.
fn shell(script: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().expect("it is in a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output =
        run(Command::new("sh").args(["-e", "-c", script]).current_dir(folder).env("PATH", path).env("NO_COLOR", "1"));
    assert!(output.status.success(), "{script}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the commands of a README that reproduce the results.
fn commands(readme: &str) -> &str {
    let (_, rest) = readme.split_once("Then, in the folder of this file:\n\n```sh\n").expect("it says how");
    rest.split_once("```").expect("an end").0
}

/// Bundles results from the top folder, unpacks the bundle in another folder, and reproduces the results there.
fn there_and_back(place: &Scratch, results: &str, name: &str) {
    place.ok(&["bundle", results, "-o", "b.zip"]);
    place.ok(&["bundle", "--verify", "b.zip"]);
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    std::fs::rename(place.path("b.zip"), elsewhere.path().join("b.zip")).expect("a temporary folder");
    let elsewhere = Scratch(elsewhere);
    elsewhere.unpack("b.zip", ".");
    let top = elsewhere.path(name);
    let readme = std::fs::read_to_string(top.join("README.md")).expect("a readme");
    assert!(readme.contains("cargo install --path . --locked"), "{readme}");
    let said = shell(commands(&readme), &top);
    assert!(said.contains("nothing changed"), "{said}");
    assert_eq!(differences(&contents(&place.path(results)), &contents(&top.join("again"))), [""; 0]);
    assert!(!crate::replay::files(elsewhere.0.path()).iter().any(|path| path.ends_with("pwned")));
    // The plan also runs from another folder, given by its path.
    let plan = crate::replay::files(&top.join("study")).into_iter().find(|path| path.ends_with(format!("{name}.toml")));
    if let Some(plan) = plan {
        let other = tempfile::tempdir().expect("a temporary folder");
        let output = run(plimsoll(&["run", "-q"]).arg(plan).args(["-o", "again"]).current_dir(other.path()));
        assert!(output.status.success(), "{}", crate::replay::said(&output));
        assert_eq!(differences(&contents(&place.path(results)), &contents(&other.path().join("again"))), [""; 0]);
    }
}

#[cfg(unix)]
#[test]
fn a_plan_with_inputs_of_all_kinds_runs_again() {
    let place = place();
    let plan = format!(
        "name = \"it's $(x) all\"\npolicies = [\"drf\", \"quota:groups.toml\"]\nweights = \"{WEIGHTS}\"\n[cluster]\n\
         machines = \"{MACHINES}\"\nevents = \"{EVENTS}\"\nplacement = \"first-fit\"\n[workload]\ntrace = \"{TRACE}\"\n"
    );
    place.write("work/plan.toml", &plan);
    // The command `run` is executed in one folder, and `bundle` in another.
    let output = run(plimsoll(&["run", "-q", "plan.toml", "-o", "../results/x"]).current_dir(place.path("work")));
    assert!(output.status.success(), "{}", said(&output));
    there_and_back(&place, "results/x", "it's $(x) all");
}

#[cfg(unix)]
#[test]
fn a_replay_runs_again() {
    let place = place();
    let args = [
        "replay",
        TRACE,
        "--machines",
        MACHINES,
        "--machine-events",
        EVENTS,
        "--placement",
        "first-fit",
        "--weights",
        WEIGHTS,
        "--policy",
        "drf",
        "--policy",
        "quota:groups.toml",
        "--thin",
        "0.9",
        "--seed",
        "4",
        "--tasks",
        "--decisions",
        "--series",
        "-o",
        "../results/x",
        "--report",
    ];
    let output = run(plimsoll(&args).arg("-q").current_dir(place.path("work")));
    assert!(output.status.success(), "{}", said(&output));
    assert!(place.path("results/x/decisions").is_dir());
    there_and_back(&place, "results/x", "_-it's $(touch pwned) `touch pwned` & more");
    // Every input has its digest in the tables and in `run.json`.
    let run_json = std::fs::read_to_string(place.path("results/x/run.json")).expect("a record");
    let made: serde_json::Value = serde_json::from_str(&run_json).expect("JSON");
    let tables = std::fs::read(place.path("results/x/runs/policy=drf/run=0/runs.parquet")).expect("a table");
    let tables = String::from_utf8_lossy(&tables).into_owned();
    for (key, name) in [
        ("plimsoll.trace_blake3", TRACE),
        ("plimsoll.weights_blake3", WEIGHTS),
        ("plimsoll.machines_blake3", MACHINES),
        ("plimsoll.machine_events_blake3", EVENTS),
        ("plimsoll.policies_blake3", "groups.toml"),
    ] {
        let digest =
            plimsoll::workload::Input::open(&place.path(&format!("work/{name}"))).and_then(|input| input.digest());
        let digest = digest.expect("readable");
        assert!(tables.contains(key) && tables.contains(&digest), "{key}");
        assert_eq!(made["inputs"][name], digest.as_str(), "{run_json}");
    }
    // Incomplete results of a replay are completed by the same replay.
    let table = place.path("results/x/runs/policy=drf/run=0/runs.parquet");
    let whole = std::fs::read(&table).expect("a table");
    std::fs::remove_file(&table).expect("it is there");
    let message = place.refused(&["bundle", "results/x"]);
    assert!(
        message.contains("`plimsoll replay` and the same arguments") && !message.contains("plimsoll run"),
        "{message}"
    );
    std::fs::write(&table, whole).expect("writable");
    // A bundle is refused if an input has changed since the run.
    place.write(&format!("work/{MACHINES}"), "name,cpu,memory_gib\na,8,16\nb,9,16\n");
    assert!(place.refused(&["bundle", "results/x"]).contains("it has changed since it was read"));
}

/// Bundles are refused if the trace came through a pipe or the recorded command was forged.
#[cfg(unix)]
#[test]
fn what_cannot_run_again_is_refused() {
    let place = place();
    let trace = std::fs::File::open(place.path(&format!("work/{TRACE}"))).expect("it is there");
    let mut command = plimsoll(&["replay", "-q", "-", "--machines", "2x8c16g", "--policy", "drf", "-o", "x"]);
    let output = run(command.stdin(trace).current_dir(place.path("work")));
    assert!(output.status.success(), "{}", said(&output));
    assert!(place.refused(&["bundle", "work/x"]).contains("it could be read only once"));
    forge(&place.path("work/x/experiment.json"), |text| {
        text.replace("plimsoll replay", "plimsoll replay; touch pwned;")
    });
    assert!(place.refused(&["bundle", "work/x", "--incomplete"]).contains("is not a replay"));
}
