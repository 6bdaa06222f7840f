//! `decide` and `court`, run through the binary: their output, and the input that they reject.

use std::process::Output;

use crate::replay::{plimsoll, said};

/// Runs a command in a folder with a state in `s.toml`, and returns its output.
fn output(text: &str, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("s.toml"), text).expect("a file");
    plimsoll(args).current_dir(dir.path()).output().expect("the program starts")
}

fn printed(text: &str, args: &[&str]) -> String {
    let output = output(text, args);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

const STATE: &str = "[capacity]\ncpu = 6\n[[group]]\nname = \"a\"\nwithin = \"lower-priority\"\nreclaim = \"any\"\n\
    [[group]]\nname = \"b\"\nreclaim = \"any\"\n[[running]]\nname = \"x\"\ngroup = \"a\"\ndemand = { cpu = 2 }\n\
    [[running]]\nname = \"v\"\ngroup = \"b\"\ndemand = { cpu = 4 }\n\
    [[waiting]]\nname = \"w\"\ngroup = \"a\"\ndemand = { cpu = 3 }\npriority = 1\n";

#[test]
fn a_decision_is_told_with_its_reasons() {
    let text = printed(STATE, &["decide", "s.toml", "--policy", "kueue"]);
    assert!(text.contains("stopped") && text.contains("S2-b") && text.contains("share"), "{text}");
    let json = printed(STATE, &["decide", "s.toml", "--policy", "kueue", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(answer["evicted"][0]["name"], "v");
    assert_eq!(answer["evicted"][0]["for"], "w");
    assert_eq!(answer["waiting"][0]["name"], "w");
    assert!(answer["shares"]["b"]["share"].as_f64().is_some_and(|share| (share - 4000.0 / 6.0).abs() < 1e-9));
    let rounds = printed(STATE, &["decide", "s.toml", "--policy", "kueue", "--rounds", "2", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&rounds).expect("JSON");
    assert_eq!(answer["rounds"][1]["launched"][0]["name"], "v");
}

#[test]
fn a_policy_without_queues_takes_groups_as_users() {
    let json = printed(STATE, &["decide", "s.toml", "--policy", "drf", "--format", "json", "-q"]);
    let answer: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(answer["waiting"][0]["short"]["cpu"], 3.0);
    let warned = said(&output(STATE, &["decide", "s.toml", "--policy", "drf"]));
    assert!(warned.contains("drf does not read 'within'"), "{warned}");
}

#[test]
fn the_court_judges_files_and_what_ships() {
    let text = printed(STATE, &["court", "s.toml", "--policy", "kueue", "--policy", "kueue@guarded"]);
    assert!(text.contains("livelock") && text.contains("settled") && text.contains("stops v"), "{text}");
    let all = printed("", &["court"]);
    assert!(all.lines().count() > 20 && !all.contains(" NO"), "{all}");
    let wrong = format!("{STATE}[[expect]]\npolicy = \"kueue\"\nverdict = \"settled\"\n");
    let output = output(&wrong, &["court", "s.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("expected settled, and it is livelock"), "{}", said(&output));
}

/// Issue 14543: two queues without guarantees run workloads of 2 and 4 CPUs, and a workload of 3 CPUs waits. The search finds this state
/// first, with any number of threads.
#[test]
fn the_search_finds_the_smallest_livelock_of_kueue() {
    let search = |threads: &str| {
        let args = ["court", "--search", "--policy", "kueue", "--size", "6", "--format", "json", "-q"];
        let output = plimsoll(&args).env("RAYON_NUM_THREADS", threads).output().expect("the program starts");
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let (one, two) = (search("1"), search("2"));
    assert_eq!(one, two);
    let found: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    let state = found["found"]["state"].as_str().expect("a state");
    let lines: Vec<&str> =
        state.lines().filter(|line| line.starts_with("demand") || line.starts_with("group =")).collect();
    assert_eq!(
        lines,
        [
            "group = \"a\"",
            "demand = { cpu = 2 }",
            "group = \"b\"",
            "demand = { cpu = 4 }",
            "group = \"a\"",
            "demand = { cpu = 3 }"
        ]
    );
    assert!(state.contains("cpu = 6"), "{state}");
    let verdict = printed(state, &["court", "s.toml", "--policy", "kueue"]);
    assert!(verdict.contains("livelock"), "{verdict}");
}

#[test]
fn wrong_states_are_refused_with_their_place() {
    let wrong = |from: &str, to: &str| {
        assert!(STATE.contains(from), "{from}");
        STATE.replacen(from, to, 1)
    };
    for (text, says) in [
        (wrong("cpu = 6", "cpu = -6"), "line 2, column 7: capacity.cpu: -6"),
        (wrong("[[running]]", "[[runing]]"), "did you mean 'running'?"),
        (wrong("demand = { cpu = 2 }", "demand = { gpu = 2 }"), "'gpu' is no resource here"),
        (wrong("demand = { cpu = 2 }", "demand = { cpu = 0 }"), "is 0; expected an amount above 0"),
        (wrong("group = \"a\"", "group = \"A\""), "'A' is no group"),
        (wrong("name = \"v\"", "name = \"x\""), "two workloads are called 'x'"),
        (wrong("within = \"lower-priority\"", "within = \"lower\""), "\"lower-priority\""),
        (wrong("priority = 1", "priority = 1.5"), "expected a whole number"),
        (wrong("reclaim = \"any\"", "parent = \"b\""), "unknown"),
        (
            wrong("demand = { cpu = 4 }", "demand = { cpu = 5 }"),
            "'v' cannot run as the state specifies: no room is left for 1",
        ),
        (wrong("[capacity]\ncpu = 6\n", ""), "expected one of [capacity]"),
        (wrong("name = \"b\"", "name = \"a\""), "two groups are called 'a'"),
        (wrong("priority = 1", "at_round = 2"), "it is for [[arrive]]"),
    ] {
        let output = output(&text, &["decide", "s.toml", "--policy", "kueue"]);
        if says == "unknown" {
            // The queue has both workloads and a queue below it.
            assert!(said(&output).contains("has groups under it"), "{}", said(&output));
        } else {
            assert!(said(&output).contains(says), "{says}: {}", said(&output));
        }
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
    for (args, says) in [
        (&["decide", "s.toml", "--policy", "kueu"][..], "did you mean 'kueue'?"),
        (&["decide", "s.toml", "--policy", "kueue@1"], "kueue@guarded"),
        (&["decide", "s.toml", "--policy", "kueue", "--rounds", "0"], "at least 1 round"),
        (&["court", "kueue-14542"], "kueue-14543"),
        (&["court", "s.toml"], "the scenario has no expected verdict"),
        (&["court", "--search", "--policy", "kueue", "--size", "0"], "1 to 24"),
        (&["court", "--search", "--policy", "kueue", "--verdict", "loop"], "livelock"),
    ] {
        let output = output(STATE, args);
        assert!(said(&output).contains(says), "{says}: {}", said(&output));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
}
