//! The scenarios of the repository have their stated verdicts.

use plimsoll_court::{Bench, judge, open};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use std::path::PathBuf;

/// Returns the paths of all scenarios.
fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments/court");
    let entries = std::fs::read_dir(folder).expect("a folder of scenarios");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    files
}

#[test]
fn every_scenario_comes_out_as_it_says() {
    let registry = Registry::new(BUILT_IN);
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for path in files() {
        let state = open(&path.clone().into()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!state.about.is_empty() && !state.source.is_empty(), "{} has no description or source", path.display());
        assert!(!state.expectations.is_empty(), "{} has no expectation", path.display());
        for expected in &state.expectations {
            let bench = Bench::new(&state, &expected.policy, &registry).unwrap_or_else(|error| panic!("{error}"));
            let assessment =
                judge(&bench, expected.rounds).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            judged += 1;
            if let Some(problem) = expected.differs(&state, &assessment) {
                wrong.push(format!("{} under {}: {problem}", path.display(), expected.policy));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged >= 20, "only {judged} expectations");
}
