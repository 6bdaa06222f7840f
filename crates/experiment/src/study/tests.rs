//! Tests of the resolution of plans, of sweeps, and of errors in plans.

use super::swept::{NAME, names};
use super::*;
use plimsoll_schedulers::BUILT_IN;

const BASE: &str = "name = \"base\"\npolicies = [\"drf\", \"fifo\"]\nseeds = 2\n[cluster]\nmachines = \"2x4c8g\"\n\
                    [workload]\ngenerator = \"facebook\"\nhours = 0.01\nload = 0.5\n";

fn read(files: &[(&str, &str)], set: &[&str]) -> Result<Study> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
    }
    let set: Vec<String> = set.iter().map(|change| (*change).to_owned()).collect();
    Study::read(&dir.path().join(files[0].0), &set, &Registry::new(BUILT_IN))
}

fn cells(study: &Study) -> Vec<&str> {
    study.cells.iter().map(|plan| plan.cell.as_str()).collect()
}

#[test]
fn cells_are_plans_of_their_own() {
    let swept = format!("{BASE}[sweep]\n\"workload.load\" = [0.3, 0.6]\ncluster.machines = [\"2x4c8g\", \"4x4c8g\"]\n");
    let study = read(&[("plan.toml", &swept)], &[]).expect("a sweep");
    let names = [
        "load-0.3,machines-2x4c8g",
        "load-0.3,machines-4x4c8g",
        "load-0.6,machines-2x4c8g",
        "load-0.6,machines-4x4c8g",
    ];
    assert_eq!(cells(&study), names);
    assert_eq!(study.columns, ["workload_load", "cluster_machines"]);
    assert!(study.cells[3].text.contains("load = 0.6") && study.cells[3].text.contains("4x4c8g"));
    assert_eq!(study.cells[0].seeds, [1, 2], "all cells have the same seeds: common random numbers");
    let narrowed = read(&[("plan.toml", &swept)], &["workload.load=0.9", "seeds=3"]).expect("a sweep");
    assert_eq!(cells(&narrowed), ["load-0.9,machines-2x4c8g", "load-0.9,machines-4x4c8g"]);
    assert_eq!(narrowed.cells[0].seeds.len(), 3);
    assert_ne!(narrowed.text, study.text);
    let plain = read(&[("plan.toml", BASE)], &[]).expect("a plan");
    assert_eq!((cells(&plain), plain.is_swept()), (vec![""], false));
    assert_eq!(plain.text, plain.cells[0].text);
}

#[test]
fn a_base_plan_is_included() {
    let over = "include = \"base.toml\"\nname = \"over\"\n[workload]\nload = 0.7\n[sweep.variant.small]\n\
                \"cluster.machines\" = \"1x4c8g\"\n[sweep.variant.large]\ncluster.machines = \"8x4c8g\"\n";
    let study = read(&[("plan.toml", over), ("base.toml", BASE)], &[]).expect("two files");
    assert_eq!((study.name.as_str(), cells(&study)), ("over", vec!["small", "large"]));
    assert!(study.cells[1].text.contains("load = 0.7") && study.cells[1].text.contains("8x4c8g"));
}

#[test]
fn errors_stand_where_the_value_does() {
    let wrong = |text: &str, says: &[&str]| {
        let message = read(&[("plan.toml", text), ("base.toml", BASE)], &[]).err().expect(text).to_string();
        says.iter().for_each(|part| assert!(message.contains(part), "{part}: {message}"));
    };
    let with = |line: &str| format!("{BASE}{line}\n");
    wrong(&with("[sweep]\n\"workload.load\" = [0.5, \"high\"]"), &["line 11, column 25", "in the cell load-high"]);
    wrong(&with("[sweep]\n\"workload.lod\" = [0.5]"), &["line 11, column 19", "`lod`", "in the cell lod-0.5"]);
    wrong(&with("[sweep]\n\"cluster.machines\" = [\"2x4q\"]"), &["line 11", "2x4q"]);
    wrong(&BASE.replace("policies", "polices"), &["line 2, column 1", "Did you mean 'policies'?", "^^^^^^^"]);
    wrong(&BASE.replace("\"drf\"", "\"drff\""), &["drff", "did you mean 'drf'"]);
    wrong(&BASE.replace("seeds = 2", "seeds = \"some\""), &["line 3, column 9", "until 2 % half-width"]);
    let metric = "seeds = \"until 2 % half-width of complition_mean_s, at most 9\"";
    wrong(&BASE.replace("seeds = 2", metric), &["line 3", "did you mean 'completion_mean_s'?"]);
    wrong(&BASE.replace("2x4c8g", "2x4q"), &["line 5, column 12", "2x4q"]);
    wrong(&BASE.replace("hours = 0.01", "hour = 0.01"), &["line 8, column 1", "hour"]);
    wrong(&with("[measure]\nfrom = \"2h\"\nto = \"1h\""), &["line 12, column 6", "after measure.from"]);
    wrong("include = \"base.toml\"\nseeds = -1\n", &["plan.toml: line 2, column 9", "1 to 100000"]);
    let base = BASE.replace("0.5", "\"much\"");
    let message = read(&[("plan.toml", "include = \"b.toml\"\n"), ("b.toml", &base)], &[]).err().expect("wrong");
    assert!(message.to_string().contains("b.toml: line 9"), "{message}");
    let message = read(&[("plan.toml", BASE)], &["workload.load=much"]).err().expect("wrong").to_string();
    assert!(message.contains("much"), "{message}");
}

#[test]
fn names_that_clash_or_are_long_get_a_digest() {
    let long = "x".repeat(200);
    let cell = |value: &str| SweepCell {
        values: vec![("a".to_owned(), toml::Value::String(value.to_owned()))],
        ..SweepCell::default()
    };
    let found = names(&[cell("p q"), cell("p-q"), cell(&long), cell("z")]);
    assert_eq!(found[3], "a-z");
    assert!(found[0].starts_with("a-p-q,") && found[1].starts_with("a-p-q,") && found[0] != found[1], "{found:?}");
    assert!(found[2].len() <= NAME, "{found:?}");
}
