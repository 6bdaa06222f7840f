//! `plimsoll failover` as a program: its output, and the input that it refuses.

use serde_json::Value;

use crate::replay::{plimsoll, run, said};

fn printed(args: &[&str]) -> String {
    let output = run(&mut plimsoll(args));
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).expect("JSON")
}

fn refused(args: &[&str]) -> String {
    let output = run(&mut plimsoll(args));
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    said(&output)
}

#[test]
fn seventeen_scenarios_are_ok() {
    let value = json(&["failover", "--format", "json"]);
    let scenarios = value["scenarios"].as_array().expect("a list");
    assert_eq!(scenarios.len(), 17);
    for scenario in scenarios {
        assert_eq!(scenario["ok"], true, "{scenario}");
        assert_eq!(scenario["violations"], Value::Array(Vec::new()));
        assert_eq!(scenario["online"]["kept"], 5, "{scenario}");
    }
    let table = printed(&["failover"]);
    assert_eq!(table.lines().filter(|line| line.contains("  ok ")).count(), 17, "{table}");
}

#[test]
fn a_rule_that_is_off_shows_its_trace() {
    let shown = printed(&["failover", "fm-failover+am-timeout", "16", "--without", "mock-request"]);
    for part in ["broken", "(application master absent)", "stopped without consent", "I1 violated"] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    let value = json(&["failover", "11", "--without", "mock-request", "--format", "json"]);
    let scenario = &value["scenarios"][0];
    assert_eq!((&scenario["ok"], &scenario["without"][0]), (&Value::Bool(false), &"mock-request".into()));
    assert!(scenario["trace"].as_array().is_some_and(|trace| trace.len() > 3));
    let hint = printed(&["failover", "1", "--without", "sequence-numbers"]);
    assert!(hint.contains("--links lossy"), "{hint}");
}

#[test]
fn the_matrix_has_a_column_a_rule() {
    let value = json(&["failover", "--matrix", "11", "12", "--format", "json"]);
    assert_eq!(value["rules"].as_array().map(Vec::len), Some(8));
    assert_eq!(value["matrix"][0]["broken_by"], serde_json::json!(["mock-request"]));
    assert_eq!(value["matrix"][1]["name"], "fm-failover+tubo-failover");
    assert!(printed(&["failover", "--matrix", "11"]).contains("stops"));
}

#[test]
fn a_violation_comes_with_the_command_that_repeats_it() {
    let args = ["failover", "--chaos", "300", "--seed", "5", "--without", "wait-window", "--format", "json"];
    let value = json(&args);
    let found = &value["violations"][0];
    let command = found["command"].as_str().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--format", "json"]).collect();
    let again = json(&words);
    assert_eq!(again["violations"][0], *found);
    assert_eq!(again["smallest"], value["smallest"]);
    assert_eq!(value, json(&args), "the same seeds give other bytes");
    assert!(printed(&["failover", "--chaos", "20", "--seed", "5"]).contains("0 with a violation"));
    assert!(printed(&args[..7]).contains("Events that lead to the violation"));
}

#[test]
fn a_scenario_is_drawn() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("17.svg");
    let path = file.to_string_lossy();
    printed(&["failover", "17", "--diagram", &path]);
    let svg = std::fs::read_to_string(&file).expect("an SVG");
    assert!(svg.starts_with("<svg") && svg.contains("fm-failover+am-timeout+tubo-timeout"));
}

#[test]
fn wrong_input_is_refused_with_what_would_be_right() {
    for (args, part) in [
        (&["failover", "fm-failove"][..], "did you mean 'fm-failover'"),
        (&["failover", "18"], "1 to 17"),
        (&["failover", "--without", "mock"], "wait-window"),
        (&["failover", "--chaos", "0"], "at least 1"),
        (&["failover", "--chaos", "3", "--machines", "0"], "--machines"),
        (&["failover", "--chaos", "3", "--machines", "9999999"], "1000000"),
        (&["failover", "--chaos", "x"], "invalid value"),
        (&["failover", "--chaos", "-1"], "-1"),
        (&["failover", "--chaos", "2", "--seed", "18446744073709551615"], "--seed"),
        (&["failover", "--seed", "3"], "--chaos"),
        (&["failover", "--machines", "3"], "--chaos"),
        (&["failover", "1", "--chaos", "3"], "cannot be used with"),
        (&["failover", "--matrix", "--without", "clamp"], "cannot be used with"),
        (&["failover", "--links", "wet"], "ordered or lossy"),
        (&["failover", "--diagram", "x.svg"], "exactly one scenario"),
        (&["failover", "1", "--diagram", "x.gif"], "--diagram"),
    ] {
        let message = refused(args);
        assert!(message.contains(part), "{args:?}: {part} is missing in {message}");
    }
}
