//! Published results of other groups: the targets that need no foreign data, and those with small inputs if the data folder exists.

use std::path::{Path, PathBuf};

use crate::replay::{plimsoll, run, said};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the verdicts of targets by id: kind and verdict.
fn verdicts(names: &[&str], data: Option<&Path>) -> Vec<(String, String, String)> {
    let mut command = plimsoll(&["published", "-q", "--format", "csv", "--targets"]);
    command.arg(root().join("experiments/published")).args(names);
    data.into_iter().for_each(|data| {
        command.arg("--data").arg(data);
    });
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    let mut reader = csv::Reader::from_reader(output.stdout.as_slice());
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let rows = reader.records().map(|row| row.expect("a row"));
    rows.map(|row| (row[at("id")].to_owned(), row[at("kind")].to_owned(), row[at("verdict")].to_owned())).collect()
}

fn data() -> Option<PathBuf> {
    let folder = root().join("../shared/data");
    if !folder.join("published").is_dir() {
        eprintln!("skipped: ../shared/data/published is missing");
        return None;
    }
    Some(folder)
}

#[test]
fn targets_without_foreign_data_are_within_their_tolerances() {
    for target in ["karma", "small-examples", "unequal-servers"] {
        let verdicts = verdicts(&[target], None);
        assert!(verdicts.len() > 40, "{target}");
        let wrong: Vec<_> = verdicts.iter().filter(|(.., verdict)| verdict != "within").collect();
        assert!(wrong.is_empty(), "{target}: {wrong:?}");
    }
}

#[test]
fn numbers_without_their_input_are_not_run() {
    for (id, _, verdict) in
        verdicts(&["fgd", "gavel", "hydra", "pai", "pop", "rlscheduler", "shockwave", "spot-2026"], None)
    {
        assert_eq!(verdict, "not run", "{id}");
    }
}

#[test]
fn schedules_of_other_programs_are_reproduced() {
    let Some(data) = data() else { return };
    for target in ["rlscheduler", "pai"] {
        for (id, kind, verdict) in verdicts(&[target], Some(&data)) {
            let expected = if kind == "own" { "within" } else { "not run" };
            assert_eq!(verdict, expected, "{target}: {id}");
        }
    }
}

#[test]
fn one_allocation_in_parts_has_the_published_optima() {
    let Some(data) = data() else { return };
    let verdicts = verdicts(&["pop"], Some(&data));
    assert_eq!(verdicts.len(), 15);
    let wrong: Vec<_> = verdicts.iter().filter(|(.., verdict)| verdict != "within").collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The tables, the page and the copies of the targets have the same bytes on one and on two threads, and `bundle` packs them.
#[test]
fn results_have_the_same_bytes_and_are_packed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let files = ["published.csv", "claims.csv", "inputs.csv", "published.md", "targets/karma/k1.toml"];
    let written: Vec<Vec<Vec<u8>>> = ["1", "2"]
        .iter()
        .map(|threads| {
            let into = dir.path().join(threads);
            let mut command =
                plimsoll(&["published", "-q", "karma", "small-examples", "rlscheduler", "-j", threads, "--targets"]);
            command.arg(root().join("experiments/published")).arg("-o").arg(&into);
            let output = run(&mut command);
            assert!(output.status.success(), "{}", said(&output));
            files.iter().map(|file| std::fs::read(into.join(file)).expect("a file")).collect()
        })
        .collect();
    assert_eq!(written[0], written[1]);
    let zip = dir.path().join("published.zip");
    let mut command = plimsoll(&["bundle", "-q"]);
    command.arg(dir.path().join("1")).arg("-o").arg(&zip);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    let output = run(plimsoll(&["bundle", "--verify"]).arg(&zip));
    assert!(output.status.success(), "{}", said(&output));
    // A second run into the same folder replaces the files.
    let mut command = plimsoll(&["published", "-q", "karma", "--targets"]);
    command.arg(root().join("experiments/published")).arg("-o").arg(dir.path().join("1"));
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!dir.path().join("1/targets/small-examples/numbers.csv").exists());
}

/// Ten sequences do not show that F1 is faster than SJF.
#[test]
fn comparisons_have_verdicts() {
    let mut command = plimsoll(&["published", "-q", "rlscheduler", "--claims", "--format", "json", "--targets"]);
    command.arg(root().join("experiments/published"));
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    let claims: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&claims[0]["verdict"], &claims[0]["pairs"], &claims[0]["held"]),
        (&"open".into(), &10.into(), &6.into())
    );
}
