//! `plimsoll solve` on quota groups: unusual instances, invalid files, options, the JSON, the figure and the page.

use std::path::Path;

use plimsoll::fair::Exact;
use plimsoll::fair::quota::{GroupInstance, Quota, QuotaGroup, QuotaWarning};
use serde_json::Value;

use crate::quota::{exact, solved};

fn json(total: i64, groups: &[(&str, [i64; 3])]) -> Value {
    let group = |(name, [min, request, ratio]): &(&str, [i64; 3])| serde_json::json!({ "name": name, "ratio": ratio, "min": { "cpu": min }, "request": { "cpu": request } });
    serde_json::json!({ "capacity": { "cpu": total }, "group": groups.iter().map(group).collect::<Vec<_>>() })
}

fn runtimes(result: &Value) -> Vec<&str> {
    let groups = result["groups"].as_array().expect("a list of groups");
    groups.iter().map(|group| group["runtime_exact"]["cpu"].as_str().expect("exact")).collect()
}

/// With a total of 100, the required amounts sum to 90 and fit. (To scale the minimum of the idle group b too would give 54, 10 and 36.)
/// With a total of 60 the required amounts do not fit, and the three rules give different quotas.
#[test]
fn minimums_beyond_the_total() {
    let groups = [("a", [80, 80, 1]), ("b", [80, 10, 1]), ("c", [0, 100, 9])];
    for rule in ["keep", "scale", "level"] {
        assert_eq!(runtimes(&solved(&json(100, &groups), &["--overcommit", rule])), ["80", "10", "10"], "{rule}");
    }
    let at = |rule: &str| solved(&json(60, &groups), &["--overcommit", rule]);
    assert_eq!(runtimes(&at("keep")), ["80", "10", "0"]);
    assert_eq!(runtimes(&at("scale")), ["160/3", "20/3", "0"]);
    assert_eq!(runtimes(&at("level")), ["50", "10", "0"]);
    assert_eq!(at("level")["overcommitted"], serde_json::json!([{ "parent": "root", "resource": "cpu" }]));
    assert_eq!(runtimes(&solved(&json(0, &groups), &[])), ["80", "10", "0"]);
    assert_eq!(runtimes(&solved(&json(0, &groups), &["--overcommit", "scale"])), ["0", "0", "0"]);
}

/// Remainders are assigned in every round. If they were assigned once at the end, the quotas would be 11, 14 and 8.
#[test]
fn the_largest_remainder_is_taken_in_every_round() {
    let instance = json(33, &[("a", [2, 20, 5]), ("b", [0, 14, 9]), ("c", [4, 19, 2])]);
    for method in ["sort", "iterative", "tree"] {
        let rounded = solved(&instance, &["--rounding", "largest-remainder", "--method", method]);
        assert_eq!(runtimes(&rounded), ["12", "14", "7"], "{method}");
    }
    assert_eq!(runtimes(&solved(&instance, &[])), ["79/7", "14", "54/7"]);
}

/// The tree is not flattened: the ratio of a group applies among its siblings only.
#[test]
fn a_tree_is_not_flat() {
    let leaf =
        |name: &str, parent: &str| serde_json::json!({ "name": name, "parent": parent, "request": { "cpu": 90 } });
    let flat = ["a", "b", "c"].map(|name| leaf(name, "root"));
    let flat = serde_json::json!({ "capacity": { "cpu": 90 }, "group": flat });
    assert_eq!(runtimes(&solved(&flat, &[])), ["30", "30", "30"]);
    let tree = serde_json::json!({ "capacity": { "cpu": 90 }, "group": [
        { "name": "ab" }, leaf("a", "ab"), leaf("b", "ab"), leaf("c", "root")] });
    assert_eq!(runtimes(&solved(&tree, &[])), ["45", "45/2", "45/2", "45"]);
}

/// A resource without capacity has quotas of 0, a max below the min limits the min, and the mins of children may exceed the min of their
/// parent. Each of these cases has a result and a warning.
#[test]
fn what_is_odd_is_answered_and_said() {
    let group = |name: &str| QuotaGroup::new(name, vec![exact(5), exact(2)]);
    let parent = QuotaGroup { min: vec![exact(3), Exact::ZERO], max: vec![Some(exact(2)), None], ..group("p") };
    let child = QuotaGroup { parent: Some(0), min: vec![exact(4), Exact::ONE], lend: false, ..group("c") };
    let names = vec!["cpu".to_owned(), "gpu".to_owned()];
    let instance = GroupInstance::new(names, vec![Some(exact(9)), None], vec![parent, child]).expect("good");
    let said: Vec<String> = instance.concerns().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "there is no gpu in [capacity]: its runtime quota is 0 for every group",
            "group 'p': its max of cpu is below its min; the min is cut to the max",
            "group 'p': the mins of its children add up to 4 cpu, its own min is 3",
            "group 'p': the mins of its children add up to 1 gpu, its own min is 0",
        ]
    );
    assert!(matches!(instance.concerns()[0], QuotaWarning::Lacking { .. }));
    let allocation = Quota::default().allocate(&instance).expect("solved");
    assert_eq!(allocation.groups[0].runtime, [exact(2), Exact::ZERO]);
    assert_eq!(allocation.groups[1].runtime, [exact(4), Exact::ZERO], "the child keeps 4, although the parent has 2");
    assert_eq!(allocation.overcommitted, [(Some(0), 0)]);
}

/// Usage is a floor of a group's base, and the floor of a parent is the sum of the floors of its groups. The numbers are the guarantees in
/// Koordinator's TestGroupQuotaManager_OnPodUpdateUsedForGuarantee: 10, 15 and 25 for group 2, and 20, 20 and 30 for its parent.
#[test]
fn what_is_used_is_kept_up_the_tree() {
    for (used, due) in [(5, ["20", "10", "5"]), (15, ["20", "15", "5"]), (25, ["30", "25", "5"])] {
        let result = solved(
            &serde_json::json!({ "capacity": { "cpu": 50 }, "group": [
                { "name": "1", "min": { "cpu": 20 }, "max": { "cpu": 40 } },
                { "name": "2", "parent": "1", "min": { "cpu": 10 }, "max": { "cpu": 40 }, "used": { "cpu": used },
                  "request": { "cpu": 40 } },
                { "name": "3", "parent": "1", "min": { "cpu": 5 }, "max": { "cpu": 40 }, "request": { "cpu": 40 } }] }),
            &[],
        );
        let bases = result["groups"].as_array().expect("a list").iter().map(|group| group["base_exact"]["cpu"].clone());
        assert_eq!(bases.collect::<Vec<_>>(), due);
    }
    // Usage counts as requested, and is limited to the max.
    let held = serde_json::json!({ "capacity": { "cpu": 10 }, "group": [
        { "name": "a", "used": { "cpu": 8 }, "max": { "cpu": 6 }, "ratio": 1 },
        { "name": "b", "request": { "cpu": 9 }, "ratio": 1 }] });
    assert_eq!(runtimes(&solved(&held, &[])), ["6", "4"]);
}

/// Invalid groups: the mistake, the text after a first line with the capacity of cpu and memory, and the message.
const WRONG: [(&str, &str, &str); 17] = [
    (
        "users and groups",
        "[[group]]\n[[user]]\n",
        "line 2, column 3: groups: cannot be combined with [[user]]; expected only users, or",
    ),
    ("an empty list", "group = []\n", "line 2, column 1: group: the list is empty; expected at least one [[group]]"),
    ("a table instead of a list", "[group]\nname = \"a\"\n", "line 2, column 2: group: a table is no list of groups"),
    ("machines", "machines = 3\n[[group]]\n", "line 2, column 1: 'machines' is no key; expected capacity, group"),
    (
        "an unknown key",
        "[[group]]\nname = \"a\"\nmni = {}\n",
        "line 4, column 1: group 'a': 'mni' is no key (did you mean 'min'?); expected name",
    ),
    (
        "a name twice",
        "[[group]]\nname = \"a\"\n[[group]]\nname = \"a\"\n",
        "line 5, column 8: group 'a': group 2 has the name",
    ),
    ("the name of the root", "[[group]]\nname = \"root\"\n", "line 3, column 8: group 'root': is the name of the root"),
    (
        "an unknown parent",
        "[[group]]\nname = \"a\"\nparent = \"b\"\n",
        "line 4, column 10: group 'a', parent: 'b' is no group",
    ),
    (
        "a group as its own parent",
        "[[group]]\nname = \"a\"\nparent = \"a\"\n",
        "line 4, column 10: group 'a', parent: is the group itself",
    ),
    (
        "a cycle",
        "[[group]]\nname = \"a\"\nparent = \"b\"\n[[group]]\nname = \"b\"\nparent = \"a\"\n",
        "line 4, column 10: group 'a', parent: is a cycle: 'a' is under 'b' is under 'a'",
    ),
    ("negative", "[[group]]\nmin = { cpu = -1 }\n", "line 3, column 15: group 'group 1', min, cpu: -1 is negative"),
    ("a negative ratio", "[[group]]\nratio = -0.5\n", "line 3, column 9: group 'group 1', ratio: -0.5 is negative"),
    (
        "nan",
        "[[group]]\nrequest = { cpu = nan }\n",
        "line 3, column 19: group 'group 1', request, cpu: nan is not a number",
    ),
    ("infinite", "[[group]]\nmax = { cpu = inf }\n", "line 3, column 15: group 'group 1', max, cpu: inf is too large"),
    ("text", "[[group]]\nused = { cpu = \"x\" }\n", "group 'group 1', used, cpu: 'x' is not a number"),
    ("a number for a vector", "[[group]]\nmin = 3\n", "line 3, column 7: group 'group 1', min: 3 is no table"),
    (
        "not a truth value",
        "[[group]]\nlend = \"no\"\n",
        "line 3, column 8: group 'group 1', lend: 'no' is no truth value",
    ),
];

#[test]
fn every_wrong_quota_is_refused_with_its_place() {
    for (what, text, says) in WRONG {
        let output = crate::solve::piped(&format!("capacity = {{ cpu = 9, memory = 18 }}\n{text}"), &[]);
        assert_eq!(crate::solve::refusal(&output, &["standard input: ", says]), Ok(()), "{what}");
    }
    let output = crate::solve::piped("[[group]]\nname = \"a\"\n", &[]);
    assert_eq!(crate::solve::refusal(&output, &["capacity: is missing; expected [capacity]"]), Ok(()));
}

#[test]
fn options_know_whom_they_are_for() {
    let groups = "[capacity]\ncpu = 9\n[[group]]\nrequest = { cpu = 1.5 }\n";
    let users = "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n";
    let wrong: [(&str, &[&str], &str); 7] = [
        (groups, &["--policy", "drf"], "--policy: 'drf' is not accepted; expected quota, once"),
        (groups, &["--policy", "quota", "--policy", "quota"], "'quota' twice"),
        (groups, &["--whole-tasks"], "--whole-tasks is for an instance of [[user]]s"),
        (groups, &["--rounding", "monotone"], "--rounding, group 'group 1', request, cpu: 3/2 is not accepted"),
        (
            groups,
            &["--rounding", "largest-remainder", "--variant", "max-min-level"],
            "--rounding, rounding of max-min-level: largest-remainder is not accepted; expected min-plus-share",
        ),
        (
            users,
            &["--policy", "quota:q.toml"],
            "policy 'quota:q.toml' is for an instance of [[group]]s, and this one has [[user]]s",
        ),
        (users, &["--method", "sort"], "--method is for an instance of [[group]]s"),
    ];
    for (text, args, says) in wrong {
        assert_eq!(crate::solve::refusal(&crate::solve::piped(text, args), &[says]), Ok(()), "{args:?}");
    }
}

#[test]
fn warnings_do_not_stop_the_answer() {
    let text = "[capacity]\ncpu = 4\n[[group]]\nname = \"a\"\nmin = { cpu = 9 }\nmax = { cpu = 6 }\nrequest = { cpu = 7, gpu = 1 }\n";
    let output = crate::solve::piped(text, &["--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    assert_eq!(result["groups"][0]["runtime"], serde_json::json!({ "cpu": 6, "gpu": 0 }));
    assert_eq!(result["capacity"], serde_json::json!({ "cpu": 4, "gpu": null }));
    let said = crate::replay::said(&output);
    for part in
        ["there is no gpu", "max of cpu is below its min", "the mins of the groups need 6 cpu, and the total is 4"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn the_json_says_what_was_worked_out_and_how() {
    let instance = json(10, &[("b", [0, 9, 2]), ("a", [1, 9, 1])]);
    let result = solved(&instance, &["--method", "iterative"]);
    let keys: Vec<&String> = result.as_object().expect("an object").keys().collect();
    let rules = ["policy", "variant", "rounding", "method", "overcommit", "groups"];
    assert_eq!(keys[..6], rules);
    assert_eq!((&result["policy"], &result["method"]), (&"quota".into(), &"iterative".into()));
    assert_eq!(result["rounds"], serde_json::json!({ "cpu": 1 }));
    assert_eq!(result["granted_exact"], serde_json::json!({ "cpu": "10" }));
    let group = &result["groups"][0];
    assert_eq!((&group["name"], &group["parent"], &group["max"]["cpu"]), (&"b".into(), &"root".into(), &Value::Null));
    assert_eq!((&group["runtime"]["cpu"], &group["level_exact"]["cpu"]), (&6.into(), &"3".into()));
    assert!(solved(&instance, &["--policy", "quota"])["rounds"].is_null(), "a method without rounds reports no rounds");
    let enough = solved(&json(99, &[("a", [0, 9, 1])]), &["--method", "iterative"]);
    assert_eq!(
        enough["rounds"],
        serde_json::json!({ "cpu": 0 }),
        "the total is enough for all groups, so no amount is divided by ratio"
    );
}

#[test]
fn the_figure_shows_buckets() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("buckets.svg");
    let instance = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/instances/quota-tree.toml");
    let draw = |path: &Path| {
        let output = crate::replay::run(crate::replay::plimsoll(&["solve"]).arg(&instance).arg("--figure").arg(path));
        assert!(output.status.success(), "{}", crate::replay::said(&output));
        std::fs::read(path).expect("the figure is written")
    };
    let svg = String::from_utf8(draw(&path)).expect("an SVG is text");
    for text in
        ["cpu: 1000", "cpu under ads: 735", "memory: 4000", "735 of 750", "research", "145 of 600", "not granted"]
    {
        assert!(svg.contains(text), "{text} is missing");
    }
    assert!(resvg::tiny_skia::Pixmap::decode_png(&draw(&dir.path().join("buckets.png"))).is_ok());
}

#[test]
fn the_page_shows_what_the_program_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/quota.md")).expect("the page is there");
    let commands = crate::solve::blocks(&page, "console");
    assert!(commands.len() >= 4, "{} commands", commands.len());
    for block in commands {
        let (command, shown) = block.split_once('\n').expect("a command and its output");
        let words: Vec<&str> = command.trim_start_matches("$ plimsoll ").split_whitespace().collect();
        let output = crate::replay::run(crate::replay::plimsoll(&words).current_dir(root));
        assert!(output.status.success(), "{command}: {}", crate::replay::said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown, "{command}");
    }
    for text in crate::solve::blocks(&page, "toml") {
        let output = crate::solve::piped(&text, &[]);
        assert!(output.status.success(), "{text}: {}", crate::replay::said(&output));
    }
}
