//! Compares the values in the tables of `experiments/` with a recorded reference, so that an accidental change of a value fails.
//!
//! `experiments/reference.txt` has a section per plan, with a line per table (its row count) and a line per column (digests of
//! its values, and their mean). After an intended change, rewrite the file and state the reason in the commit message:
//!
//! ```sh
//! PLIMSOLL_UPDATE_REFERENCE=1 cargo test --release --test it reference -- --include-ignored
//! ```
//!
//! The section `whole NAME` is an unchanged plan, `quick NAME` is the plan shortened by [`QUICK`], and `random N` is a plan of
//! `reference_random`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll::error::Result;
use plimsoll::experiment::{Mode, Progress, ROW_MEMORY, Request, RunSummary, Study, Supply, execute, findings};
use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll::units::Time;

use crate::docs::root;
use crate::reference_digest::{Lines, Tables};
use crate::reference_random::random_plan;
use crate::replay::{plimsoll, run, said};

/// The reference, below the repository.
const FILE: &str = "experiments/reference.txt";

/// If this variable is set, the test rewrites the reference.
const UPDATE: &str = "PLIMSOLL_UPDATE_REFERENCE";

/// The environment variable with the name of the only plan to run.
const ONLY: &str = "PLIMSOLL_REFERENCE_PLAN";

/// The command that rewrites the reference.
const COMMAND: &str = "PLIMSOLL_UPDATE_REFERENCE=1 cargo test --release --test it reference -- --include-ignored";

/// Plans that take more than about two seconds, and the changes that shorten them for the quick test. All other plans run unchanged.
const QUICK: &[(&str, &[&str])] = &[
    ("complementary", &["seeds=2", "workload.hours=0.5"]),
    ("displacing", &["seeds=1"]),
    ("estimates", &["seeds=1", "workload.hours=0.3", "measure.from=5m"]),
    ("facebook", &["seeds=2", "workload.hours=0.1"]),
    ("failures", &["seeds=1", "workload.hours=0.1"]),
    ("field", &["seeds=1", "until=15m", "measure.from=5m", "measure.to=15m"]),
    ("figures", &["seeds=2"]),
    ("gangs", &["seeds=2", "workload.jobs=300"]),
    ("load-sweep", &["seeds=2", "workload.hours=0.3", "measure.from=5m"]),
    ("preemption", &["seeds=2", "workload.jobs=300"]),
    ("production", &["seeds=1", "until=10m", "workload.hours=0.2"]),
    ("quota-labels", &["seeds=2", "workload.hours=3"]),
    ("quota-vs-drf", &["seeds=2", "workload.hours=0.5"]),
    ("scheduling-load", &["until=2s"]),
    ("paper/drf-fig1-2", &["seeds=2", "workload.hours=0.1"]),
    ("paper/drf-fig9-12", &["seeds=2"]),
    ("paper/drf-fig9-12-assumptions", &["seeds=1"]),
    ("paper/drf-fig13", &["seeds=2", "workload.hours=0.1"]),
    ("paper/drf-fig13-14", &["seeds=2", "workload.hours=0.1"]),
    ("paper/drf-fig14-sensitivity", &["seeds=1", "workload.hours=0.05", "workload.overlay=8"]),
    ("paper/drf-table2", &["check.effort=quick"]),
    ("paper/fuxi-failover", &["failover.recovery.scenarios=[\"fm-failover\"]"]),
];

/// Files that are not plans runnable from a clone: two tables of benchmarks, and plans that need external files.
const OTHERS: &[&str] = &["quota-levels", "scale", "openb", "field-traces"];

/// The number of random plans.
const RANDOM: u64 = 40;

/// Ignores all progress events.
pub struct Silence;

impl Progress for Silence {
    fn planned(&self, _: usize, _: usize) {}
    fn started(&self, _: usize, _: Option<u64>) {}
    fn tick(&self, _: usize, _: Time, _: u64) -> Result<()> {
        Ok(())
    }
    fn opened(&self, _: &Supply) {}
    fn finished(&self, _: usize, _: &RunSummary) {}
}

/// Returns the names of all plans that run from a clone: their paths below `experiments/` without the ending.
fn plans() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["", "paper/"] {
        for entry in std::fs::read_dir(root().join("experiments").join(folder)).expect("a folder of plans").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.extend(name.strip_suffix(".toml").map(|name| format!("{folder}{name}")));
        }
    }
    found.retain(|name| !OTHERS.contains(&name.as_str()));
    found.sort();
    found
}

/// Returns the tables of a plan. Errors: the reason why the plan does not run.
fn tables(plan: &Path, set: &[&str], threads: usize) -> std::result::Result<Tables, String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = std::fs::read_to_string(plan).map_err(|error| error.to_string())?;
    if ["[failover]", "[check]", "[solve]"].iter().any(|table| text.contains(table)) {
        let mut command = plimsoll(&["run", "-q"]);
        set.iter().for_each(|change| {
            command.args(["--set", change]);
        });
        let output = run(command.arg(plan).arg("-o").arg(dir.path()).args(["-j", &threads.to_string()]));
        if !output.status.success() {
            return Err(said(&output));
        }
    } else {
        // Does the same as `plimsoll run`, except for the figures, which are drawn from the tables.
        let set: Vec<String> = set.iter().map(|&change| change.to_owned()).collect();
        let all = || -> Result<()> {
            let study = Study::read(plan, &set, &Registry::new(BUILT_IN))?;
            let request = Request {
                folder: Some(dir.path()),
                threads,
                mode: Mode::Restart,
                shard: None,
                row_memory: ROW_MEMORY,
                save_every: None,
            };
            let done = execute(&study, &request, &Silence)?;
            findings(&study, &done.cells).write(&study, dir.path())
        };
        all().map_err(|error| error.to_string())?;
    }
    Ok(Tables::read(dir.path()))
}

type Sections = BTreeMap<String, Lines>;

fn read() -> Sections {
    let text = std::fs::read_to_string(root().join(FILE)).unwrap_or_default();
    let (mut sections, mut section) = (Sections::new(), String::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            sections.entry(section.clone()).or_default();
        } else {
            let (key, value) = line.split_once(": ").unwrap_or_else(|| panic!("{FILE}: '{line}'"));
            sections.entry(section.clone()).or_default().insert(key.to_owned(), value.to_owned());
        }
    }
    sections
}

/// Replaces some sections, and removes the sections of deleted plans.
fn update(found: Sections) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let mut sections = read();
    sections.extend(found);
    let expected = expected();
    sections.retain(|name, _| expected.contains(name));
    let mut text = format!(
        "# For every table of the plans in experiments/, the number of rows; for every column, a digest of its values, digests of each\n\
         # eighth of the values, and the mean of its numbers. See ARCHITECTURE.md, \"Tests\". Written by\n#\n#     {COMMAND}\n"
    );
    for (name, lines) in sections {
        text += &format!("\n[{name}]\n");
        lines.iter().for_each(|(key, value)| text += &format!("{key}: {value}\n"));
    }
    std::fs::write(root().join(FILE), text).expect("the reference is writable");
}

/// Returns the names of all sections that the reference must have.
fn expected() -> BTreeSet<String> {
    let whole = plans().into_iter().map(|name| format!("whole {name}"));
    let quick = QUICK.iter().map(|(name, _)| format!("quick {name}"));
    whole.chain(quick).chain((0..RANDOM).map(|number| format!("random {number}"))).collect()
}

/// Computes the tables of some sections, a few at a time, and compares them with the reference or updates it.
fn hold(sections: &[String], at_once: usize, make: impl Fn(&str) -> std::result::Result<Tables, String> + Sync) {
    let (reference, next) = (read(), AtomicUsize::new(0));
    let updates = std::env::var_os(UPDATE).is_some();
    let only = std::env::var(ONLY).unwrap_or_default();
    let work = || {
        let (mut wrong, mut found) = (Vec::new(), Sections::new());
        while let Some(name) = sections.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !name.ends_with(&only) {
                continue;
            }
            println!("{name}");
            match (make(name), reference.get(name)) {
                (Err(why), _) => wrong.push(format!("{name} does not run: {why}")),
                (Ok(tables), _) if updates => {
                    found.insert(name.clone(), tables.lines);
                }
                (Ok(tables), Some(lines)) => {
                    let differences = tables.differences(lines).into_iter();
                    wrong.extend(differences.map(|difference| format!("{name}: {difference}")));
                }
                (Ok(_), None) => wrong.push(format!("{name}: not in {FILE}")),
            }
        }
        (wrong, found)
    };
    let (wrong, found): (Vec<_>, Vec<_>) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no plan panics")).unzip()
    });
    if updates {
        update(found.into_iter().flatten().collect());
    }
    let mut wrong: Vec<String> = wrong.into_iter().flatten().collect();
    wrong.sort();
    assert!(
        wrong.is_empty(),
        "{} differences from {FILE}:\n{}\nIf intended, run this and state the reason in the commit:\n  {COMMAND}",
        wrong.len(),
        wrong.join("\n"),
    );
}

fn path(name: &str) -> PathBuf {
    root().join("experiments").join(format!("{name}.toml"))
}

/// Runs the quick plans unchanged and the other plans shortened.
#[test]
fn the_tables_of_quick_plans_are_those_of_the_reference() {
    let cut = |name: &String| QUICK.iter().any(|(quick, _)| quick == name);
    let mut sections: Vec<String> = QUICK.iter().map(|(name, _)| format!("quick {name}")).collect();
    sections.extend(plans().into_iter().filter(|name| !cut(name)).map(|name| format!("whole {name}")));
    hold(&sections, 2, |section| {
        let (_, name) = section.split_once(' ').expect("a kind and a name");
        let set = QUICK.iter().find(|(quick, _)| section.starts_with("quick") && *quick == name);
        tables(&path(name), set.map_or(&[], |(_, set)| set), 1)
    });
}

#[test]
#[ignore = "takes many minutes: cargo test --release --test it reference -- --ignored"]
fn the_tables_of_whole_plans_are_those_of_the_reference() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cut: Vec<String> = QUICK.iter().map(|(name, _)| format!("whole {name}")).collect();
    hold(&cut, 1, |section| {
        let (_, name) = section.split_once(' ').expect("a kind and a name");
        tables(&path(name), &[], threads)
    });
}

/// Random plans combine policies, clusters and workloads of all kinds. The experiments have only some of these combinations.
#[test]
fn the_tables_of_random_plans_are_those_of_the_reference() {
    let sections: Vec<String> = (0..RANDOM).map(|number| format!("random {number}")).collect();
    hold(&sections, 2, |section| {
        let number = section.trim_start_matches("random ").parse().expect("a number");
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in random_plan(number) {
            std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
        }
        tables(&dir.path().join("plan.toml"), &[], 1)
    });
}

/// Every plan must have a section, and a removed plan must have none.
#[test]
fn the_reference_has_every_plan_and_no_other() {
    if std::env::var_os(UPDATE).is_some() {
        return;
    }
    let (expected, found): (_, BTreeSet<String>) = (expected(), read().into_keys().collect());
    let missing: Vec<&String> = expected.difference(&found).collect();
    let old: Vec<&String> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && old.is_empty(),
        "{FILE} lacks {missing:?} and has {old:?}; rewrite it with\n  {COMMAND}"
    );
    let gone = QUICK.iter().map(|(name, _)| *name).chain(OTHERS.iter().copied()).filter(|name| !path(name).is_file());
    assert_eq!(gone.collect::<Vec<_>>(), [""; 0], "plans that do not exist");
}
