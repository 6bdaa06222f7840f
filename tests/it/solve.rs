//! `plimsoll solve` through the binary: the DRF paper's worked examples, invalid instances, figures, and the pages that show its output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::replay::{plimsoll, run, said};

/// The number of tasks of each user under a policy, as fractions, for an instance in `traces/instances`.
struct Row {
    instance: &'static str,
    policy: &'static str,
    tasks: &'static [&'static str],
}

const fn row(instance: &'static str, policy: &'static str, tasks: &'static [&'static str]) -> Row {
    Row { instance, policy, tasks }
}

/// Ghodsi et al., NSDI 2011: sections 4.1, 5.1 and 5.2, theorems 1 to 6, and the appendix.
const EXACT: [Row; 24] = [
    row("drf-example", "drf", &["3", "2"]),
    row("drf-example", "asset", &["63/25", "54/25"]),
    row("theorem-1", "asset", &["6", "12"]),
    row("theorem-1", "drf", &["5", "15"]),
    row("theorem-2", "asset", &["3", "3"]),
    row("theorem-3", "asset", &["11", "33"]),
    row("theorem-3-doubled", "asset", &["21/2", "35"]),
    row("theorem-5", "drf", &["400/33", "100/33", "100/33"]),
    row("theorem-6", "drf", &["100/3", "100/3"]),
    row("theorem-6-fourfold", "drf", &["25", "50"]),
    row("appendix", "drf", &["90", "10", "10", "10", "10", "10", "10", "10", "10", "10"]),
    row("appendix-lie", "drf", &["9", "9", "9", "9", "9", "9", "9", "9", "9", "9"]),
    // One resource at a time; computed manually.
    row("drf-example", "maxmin:cpu", &["54/13", "18/13"]),
    row("drf-example", "maxmin:memory", &["9/13", "36/13"]),
    // Equal dominant shares, computed manually: 16 x = 2 y and 16 x + y = 100.
    row("theorem-4", "drf", &["25/6", "100/3"]),
    row("theorem-4-lie", "drf", &["25/6", "100/3"]),
    row("theorem-5-without-3", "drf", &["20", "5"]),
    row("drf-example", "ceei", &["45/11", "18/11"]),
    row("theorem-1", "ceei", &["5", "15"]),
    row("theorem-4", "ceei", &["100/31", "1500/31"]),
    row("theorem-4-lie", "ceei", &["25/6", "100/3"]),
    row("theorem-5-without-3", "ceei", &["500/21", "100/21"]),
    row("theorem-6", "ceei", &["100/3", "100/3"]),
    row("theorem-6-fourfold", "ceei", &["25", "50"]),
];

/// The first allocation of Figure 7 is irrational. The prices are the root of a single equation, which was solved with 30 digits.
const FIGURE_7: Row = row("theorem-5", "ceei", &["11.2833176273254646", "5.35137328812586049", "3.09470976266076757"]);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn instance(name: &str) -> PathBuf {
    root().join("traces/instances").join(format!("{name}.toml"))
}

/// Returns the JSON that `plimsoll solve` prints. The command must succeed.
pub fn solved(path: &Path, args: &[&str]) -> Value {
    let output = run(plimsoll(&["solve"]).arg(path).args(args).args(["--format", "json"]));
    assert!(output.status.success(), "{} {args:?}: {}", path.display(), said(&output));
    serde_json::from_slice(&output.stdout).expect("the result is JSON")
}

fn fraction(text: &str) -> f64 {
    let number = |text: &str| text.parse::<f64>().expect("a number");
    text.split_once('/').map_or_else(|| number(text), |(above, below)| number(above) / number(below))
}

pub fn users(result: &Value) -> &[Value] {
    result["users"].as_array().expect("a list of users")
}

#[test]
fn the_papers_examples_come_out_as_fractions() {
    for Row { instance: name, policy, tasks } in EXACT {
        let result = solved(&instance(name), &["--policy", policy]);
        assert_eq!(result["policy"], policy);
        let exact: Vec<&str> = users(&result).iter().map(|user| user["tasks_exact"].as_str().expect("exact")).collect();
        assert_eq!(exact, tasks, "{name} under {policy}");
        for (user, text) in users(&result).iter().zip(tasks) {
            assert_eq!(user["tasks"].as_f64(), Some(fraction(text)), "{name} under {policy}");
            assert_eq!(user["tasks"].is_u64(), !text.contains('/'), "integers are printed as integers");
        }
    }
}

#[test]
fn what_is_no_fraction_comes_out_to_the_last_digits_with_its_certificate() {
    let Row { instance: name, policy, tasks } = FIGURE_7;
    let result = solved(&instance(name), &["--policy", policy]);
    assert_eq!(users(&result).len(), tasks.len());
    for (user, text) in users(&result).iter().zip(tasks) {
        let (found, expected) = (user["tasks"].as_f64().expect("a number"), fraction(text));
        assert!((found - expected).abs() <= 1e-14 * expected, "{name}: {found}, expected {expected}");
        assert!(user["tasks_exact"].is_null());
    }
    assert!(result["certificate"]["gap"].as_f64().is_some_and(|gap| gap <= 1e-12), "{result}");
}

/// The reference is the dual of max x y subject to x + 3y <= 9 and 4x + y <= 18, solved manually.
#[test]
fn ceei_tells_its_prices() {
    let prices = solved(&instance("drf-example"), &["--policy", "ceei"])["prices"].clone();
    assert_eq!(prices, serde_json::json!({ "cpu": 0.2, "memory": 1.0 / 90.0 }));
}

#[test]
fn a_result_has_every_key_of_the_contract() {
    let result = solved(&instance("drf-example"), &["--policy", "drf"]);
    let keys: Vec<&String> = result.as_object().expect("one policy, one object").keys().collect();
    assert_eq!(keys, ["policy", "users", "utilisation", "utilisation_exact"]);
    let expected = serde_json::json!({
        "name": "A",
        "tasks": 3,
        "tasks_exact": "3",
        "allocation": { "cpu": 3, "memory": 12 },
        "allocation_exact": { "cpu": "3", "memory": "12" },
        "shares": { "cpu": 1.0 / 3.0, "memory": 2.0 / 3.0 },
        "shares_exact": { "cpu": "1/3", "memory": "2/3" },
        "dominant_share": 2.0 / 3.0,
        "dominant_share_exact": "2/3",
        "dominant_resource": "memory",
        "stopped_by": "resource:cpu",
    });
    assert_eq!(users(&result)[0], expected);
    assert_eq!(result["utilisation"], serde_json::json!({ "cpu": 1, "memory": 14.0 / 18.0 }));
    assert_eq!(users(&result)[1]["dominant_resource"], "cpu");
    let several = solved(&instance("drf-example"), &["--policy", "asset", "--policy", "drf"]);
    let policies: Vec<&Value> = several.as_array().expect("a list").iter().map(|one| &one["policy"]).collect();
    assert_eq!(policies, ["asset", "drf"]);
    assert_eq!(several[1], result);
    let all = solved(&instance("drf-example"), &[]);
    let all: Vec<&str> = all.as_array().expect("a list").iter().filter_map(|one| one["policy"].as_str()).collect();
    assert!(all.contains(&"drf") && all.contains(&"asset") && all.iter().all(|name| !name.contains(':')), "{all:?}");
}

/// Writes an instance to a file in a temporary folder.
fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("a temporary file is writable");
    (dir, path)
}

#[test]
fn weights_finite_demands_and_zero_capacities() {
    let text = "[capacity]\ncpu = 10\ngpu = 0\n[[user]]\nname = \"few\"\ndemand = { cpu = 1 }\ntasks = 1.5\n\
                [[user]]\nname = \"heavy\"\ndemand = { cpu = 1 }\nweight = 3\n[[user]]\ndemand = { cpu = 1 }\n\
                [[user]]\nname = \"none\"\ndemand = { cpu = 1, gpu = 1 }\n[[user]]\ndemand = {}\ntasks = 7\n";
    let (_dir, path) = written("i.toml", text);
    let result = solved(&path, &["--policy", "drf"]);
    let of = |key: &str| users(&result).iter().map(|user| user[key].clone()).collect::<Vec<Value>>();
    assert_eq!(of("tasks_exact"), ["3/2", "51/8", "17/8", "0", "7"]);
    assert_eq!(of("stopped_by"), ["demand", "resource:cpu", "resource:cpu", "resource:gpu", "demand"]);
    assert_eq!(of("name")[2], "user 3");
    assert_eq!(of("level")[1], of("level")[2], "a weight of 3 is three times the share");
    assert_eq!(users(&result)[0]["shares"], serde_json::json!({ "cpu": 0.15, "gpu": null }));
    assert_eq!((&of("dominant_resource")[4], &of("dominant_share")[4]), (&Value::Null, &0.into()));
    assert_eq!(result["utilisation"], serde_json::json!({ "cpu": 1, "gpu": null }));
    let output = run(plimsoll(&["solve"]).arg(&path).args(["--policy", "drf"]));
    assert!(
        said(&output).contains("warning: user 'none' needs gpu, of which the cluster has none"),
        "{}",
        said(&output)
    );
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["= 51/8", "there is no gpu", "all its tasks run", "cpu is used up", "/ weight", "capacity"] {
        assert!(table.contains(part), "{part} is missing in\n{table}");
    }
}

#[test]
fn extreme_numbers_come_out_finite() {
    let text = "[capacity]\na = 1e100\nb = 1e-100\n[[user]]\ndemand = { a = 1e-100 }\nweight = 1e-100\n\
                [[user]]\ndemand = { b = 1e100 }\nweight = 1e100\n[[user]]\ndemand = { a = 0.1, b = \"1/3\" }\n";
    let (_dir, path) = written("i.toml", text);
    for policy in ["drf", "asset", "maxmin:a"] {
        let shown = solved(&path, &["--policy", policy]).to_string();
        assert!(!shown.contains("null"), "{shown}");
        let output = run(plimsoll(&["solve"]).arg(&path).args(["--policy", policy]));
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !table.contains("NaN") && !table.contains("inf"), "{table}");
    }
}

/// The same instance in TOML and in JSON.
const TOML: &str = "[capacity]\nmemory = 18\ncpu = 9.5\n[[user]]\nname = \"A\"\ndemand = { cpu = 1, memory = 4 }\n\
                    [[user]]\nname = \"B\"\ndemand = { cpu = 3, memory = 0.1 }\nweight = { cpu = 2 }\ntasks = 2\n";
const JSON: &str = r#"{"user": [{"name": "A", "demand": {"memory": 4, "cpu": 1}},
    {"name": "B", "demand": {"cpu": 3, "memory": 1e-1}, "weight": {"cpu": 2}, "tasks": 2.0}],
    "capacity": {"memory": 18, "cpu": 9.5}}"#;

/// Returns the output of `solve` for an instance on standard input.
pub fn piped(text: &str, args: &[&str]) -> std::process::Output {
    let mut command = plimsoll(&["solve", "-"]);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("a pipe");
    // The binary may exit before it reads the input. The broken pipe is ignored, because the binary's message is more specific.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    child.wait_with_output().expect("the binary ends")
}

#[test]
fn both_syntaxes_and_standard_input_give_the_same() {
    for args in [&["--format", "json"][..], &["--policy", "drf"]] {
        let (_dir, toml) = written("i.toml", TOML);
        let (_other, json) = written("i.json", JSON);
        let (_third, unknown) = written("instance", &format!("\u{feff}\n{JSON}"));
        let from = |path: &Path| run(plimsoll(&["solve"]).arg(path).args(args)).stdout;
        let expected = from(&toml);
        assert!(expected.len() > 100);
        assert_eq!(from(&json), expected);
        assert_eq!(from(&unknown), expected);
        assert_eq!(piped(TOML, args).stdout, expected);
        assert_eq!(piped(JSON, args).stdout, expected);
    }
}

/// An invalid instance: the mistake, the text (TOML, or JSON if it starts with a brace), and the parts of the message.
pub type Wrong = (&'static str, &'static str, &'static [&'static str]);

const CAPACITY: &str = "[capacity]\ncpu = 9\nmemory = 18\n";

/// Invalid users. The text follows [`CAPACITY`], so it starts on line 4.
const WRONG_USERS: [Wrong; 23] = [
    ("no users", "", &["user: is missing", "[[user]]"]),
    ("a misspelt list", "[[users]]\n", &["line 4, column 3: 'users' is no key (did you mean 'user'?)"]),
    ("a table instead of a list", "[user]\nname = \"A\"\n", &["line 4", "user: a table is no list of users"]),
    ("no demand", "[[user]]\nname = \"A\"\n", &["line 4", "user 'A', demand: is missing", "{ cpu = 1, memory = 1 }"]),
    (
        "a misspelt resource",
        "[[user]]\nname = \"B\"\ndemand = { cpu = 1, memroy = 2 }\n",
        &["line 6, column 21: user 'B', demand: 'memroy' is no resource of [capacity]; did you mean 'memory'?"],
    ),
    ("a foreign resource", "[[user]]\ndemand = { tpu9x = 1 }\n", &["'tpu9x' is no resource", "one of cpu, memory"]),
    (
        "negative demand",
        "[[user]]\ndemand = { cpu = -1 }\n",
        &["line 5, column 18: user 'user 1', demand, cpu: -1 is neg"],
    ),
    ("nan", "[[user]]\ndemand = { cpu = nan }\n", &["line 5", "demand, cpu: nan is not a number", "at least 0"]),
    ("infinite", "[[user]]\ndemand = { cpu = inf }\n", &["line 5", "demand, cpu: inf is too large or not finite"]),
    ("minus infinity", "[[user]]\ndemand = { cpu = 1 }\nweight = -inf\n", &["line 6", "weight: -inf"]),
    ("too large", "[[user]]\ndemand = { cpu = 1e101 }\n", &["line 5", "1e-100 to 1e100"]),
    ("an integer past 64 bits", "[[user]]\ndemand = { cpu = 9999999999999999999999 }\n", &["line 5", "too large"]),
    ("text", "[[user]]\ndemand = { cpu = \"4\" }\n", &["line 5", "cpu: '4' is not a number"]),
    ("an invalid fraction", "[[user]]\ndemand = { cpu = \"1/0\" }\n", &["line 5", "cpu: '1/0' is no fraction"]),
    ("a date", "[[user]]\ndemand = { cpu = 2011-03-30 }\n", &["line 5", "a date is not a number"]),
    ("a demand that is no table", "[[user]]\ndemand = [1, 4]\n", &["line 5", "demand: a list is no table"]),
    (
        "a demand of 0 with unlimited tasks",
        "[[user]]\ndemand = { cpu = 0 }\n",
        &["line 5", "demand: is 0 with unlimited tasks", "`tasks`"],
    ),
    ("a weight of 0", "[[user]]\ndemand = { cpu = 1 }\nweight = 0\n", &["line 6", "weight: 0 is no weight", "above 0"]),
    (
        "a weight of an unknown resource",
        "[[user]]\ndemand = { cpu = 1 }\nweight = { gpu = 2 }\n",
        &["line 6, column 12: user 'user 1', weight: 'gpu' is no resource of [capacity]", "cpu, memory"],
    ),
    ("negative tasks", "[[user]]\ndemand = { cpu = 1 }\ntasks = -3\n", &["line 6", "tasks: -3 is negative"]),
    (
        "an unknown key",
        "[[user]]\ndemand = { cpu = 1 }\nweigth = 2\n",
        &["line 6", "'weigth' is no key (did you mean 'weight'?)"],
    ),
    (
        "a name twice",
        "[[user]]\nname = \"A\"\ndemand = { cpu = 1 }\n[[user]]\nname = \"A\"\ndemand = { cpu = 2 }\n",
        &["line 8, column 8: user 'A': user 2 has the name of an earlier one"],
    ),
    ("a name that is no text", "[[user]]\nname = 3\ndemand = { cpu = 1 }\n", &["line 5", "user 1, name: 3 is no name"]),
];

const WRONG: [Wrong; 14] = [
    ("empty", "", &["capacity: is missing"]),
    ("no resource", "[capacity]\n[[user]]\ndemand = {}\n", &["capacity: has no resource"]),
    ("a capacity that is a number", "capacity = 4\n", &["line 1", "capacity: 4 is no table"]),
    ("negative capacity", "[capacity]\ncpu = -0.5\n", &["line 2, column 7: capacity, cpu: -0.5 is negative"]),
    ("nan capacity", "[capacity]\ncpu = nan\n", &["line 2", "capacity, cpu: nan is not a number"]),
    ("a nameless resource", "[capacity]\n\"\" = 1\n", &["line 2", "'' is no name of a resource"]),
    ("an unknown table", "[capactiy]\ncpu = 1\n", &["line 1", "'capactiy' is no key (did you mean 'capacity'?)"]),
    ("invalid TOML", "[capacity\ncpu = 1\n", &["line 1, column"]),
    ("a key twice", "[capacity]\ncpu = 1\ncpu = 2\n", &["line 3, column 1", "duplicate key"]),
    ("invalid JSON", "{\"capacity\": {\"cpu\": 9,}}", &["line 1 column 24"]),
    ("a JSON key twice", "{\"capacity\": {\"cpu\": 9, \"cpu\": 8}}", &["'cpu' appears twice", "line 1 column"]),
    ("null", "{\"capacity\": {\"cpu\": null}}", &["capacity, cpu: null is not a number"]),
    ("a JSON number past all bounds", "{\"capacity\": {\"cpu\": 1e999}}", &["out of range", "line 1"]),
    (
        "a JSON typo",
        "{\"capacity\": {\"cpu\": 9}, \"user\": [{\"name\": \"B\", \"demand\": {\"cpus\": 1}}]}",
        &["user 'B', demand: 'cpus' is no resource of [capacity]; did you mean 'cpu'?"],
    ),
];

/// Checks the output for invalid input: exit code 2, an empty stdout, and a message of one line, which the invalid line may follow. Errors:
/// the deviation.
pub fn refusal(output: &std::process::Output, says: &[&str]) -> Result<(), String> {
    let message = said(output);
    let missing = says.iter().find(|part| !message.contains(*part));
    let wrong = if output.status.code() != Some(2) {
        format!("{}, expected exit code 2", output.status)
    } else if !output.stdout.is_empty() {
        "results on stdout although the input was wrong".to_owned()
    } else if message.len() > 2000 || ![1, 4].contains(&message.trim_end().lines().count()) {
        "the message is not one short line, with or without the invalid line below it".to_owned()
    } else if let Some(missing) = missing {
        format!("{missing:?} is not in the message")
    } else {
        return Ok(());
    };
    let shown: String = message.chars().take(500).collect();
    Err(format!("{wrong}; the message is: {}", shown.trim_end()))
}

#[test]
fn every_wrong_instance_is_refused_with_its_place() {
    all_refused("", &WRONG);
    all_refused(CAPACITY, &WRONG_USERS);
}

/// Fails if one of these instances, each with the text `before` in front of it, is not refused with its message.
pub fn all_refused(before: &str, wrong: &[Wrong]) {
    let mut failed = Vec::new();
    for (what, text, says) in wrong.iter().map(|(what, text, says)| (*what, format!("{before}{text}"), *says)) {
        let (_dir, path) = written(if text.starts_with('{') { "i.json" } else { "i.toml" }, &text);
        let output = run(plimsoll(&["solve"]).arg(&path));
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let all: Vec<&str> = says.iter().copied().chain([name, "error:"]).collect();
        failed.extend(refusal(&output, &all).err().map(|problem| format!("{what}: {problem}")));
    }
    assert!(failed.is_empty(), "{} inputs:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn what_cannot_be_read_is_refused_too() {
    let long = format!("[capacity]\ncpu = \"{}/\"\n", "7".repeat(1 << 20));
    let deep = format!("{{\"capacity\": {}", "[".repeat(1 << 20));
    for (text, says) in [(long.as_str(), "is no fraction"), (deep.as_str(), "recursion"), ("\u{1}", "standard input: ")]
    {
        assert_eq!(refusal(&piped(text, &[]), &[says]), Ok(()));
    }
    let missing = run(&mut plimsoll(&["solve", "no/such.toml"]));
    assert_eq!(refusal(&missing, &["no/such.toml"]), Ok(()));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let latin = dir.path().join("i.toml");
    std::fs::write(&latin, b"[capacity]\n\"J\xfcrgen\" = 1\n").expect("a temporary file is writable");
    assert_eq!(refusal(&run(plimsoll(&["solve"]).arg(&latin)), &["i.toml, line 2: is not UTF-8"]), Ok(()));
    assert_eq!(refusal(&run(plimsoll(&["solve"]).arg(dir.path())), &["is a folder"]), Ok(()));
}

/// Plans without runs have no shards.
#[test]
fn plans_without_runs_have_no_shards() {
    let (_dir, plan) = written("plan.toml", "name = \"s\"\n[solve]\ninstances = [\"i.toml\"]\npolicies = [\"drf\"]\n");
    std::fs::write(plan.with_file_name("i.toml"), "capacity = { cpu = 1 }\n[[user]]\ndemand = { cpu = 1 }\n")
        .expect("writable");
    for option in [&["--gather"][..], &["--shard", "0/2"]] {
        let output = run(plimsoll(&["run"]).arg(&plan).args(option));
        let message = said(&output);
        assert!(output.status.code() == Some(2) && message.contains(option[0]), "{option:?}: {message}");
        assert!(message.contains("plans with runs"), "{option:?}: {message}");
    }
}

#[test]
fn wrong_options_are_refused() {
    let table: [(&[&str], &[&str]); 6] = [
        (&["--policy", "drff"], &["unknown policy 'drff'", "did you mean 'drf'", "plimsoll policies"]),
        (&["--policy", "fifo"], &["--policy", "'fifo'", "static allocation"]),
        (&["--policy", "maxmin:disk"], &["maxmin:disk", "cpu, memory"]),
        (&["--policy", "drf", "--policy", "drf"], &["--policy: 'drf' twice"]),
        (&["--figure", "shares.gif"], &["--figure", "'shares.gif'", ".svg, .png or .pdf"]),
        (&["--figure", "shares"], &["--figure", "'shares'", ".svg, .png or .pdf"]),
    ];
    for (args, says) in table {
        let output = run(plimsoll(&["solve"]).arg(instance("drf-example")).args(args));
        assert_eq!(refusal(&output, says), Ok(()), "{args:?}");
    }
}

#[test]
fn the_figure_is_drawn_whole_in_either_format() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let draw = |name: &str| {
        let path = dir.path().join("new").join(name);
        let mut command = plimsoll(&["solve", "--policy", "asset", "--policy", "drf"]);
        let output = run(command.arg(instance("drf-example")).arg("--figure").arg(&path));
        assert!(output.status.success() && !output.stdout.is_empty(), "{}", said(&output));
        std::fs::read(&path).expect("the figure is written")
    };
    let svg = draw("a.svg");
    assert_eq!(svg, draw("b.SVG"), "two drawings have the same bytes");
    let svg = String::from_utf8(svg).expect("an SVG is text");
    let tree = resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).expect("a well-formed SVG");
    assert!(tree.size().width() > 150.0 && tree.size().height() > 100.0);
    for text in ["asset", "drf", "cpu", "memory", "\nA\n", "\nB\n", "66.7 %", "28 %", "100 %"] {
        assert!(svg.contains(text), "{text} is missing");
    }
    let png = draw("a.png");
    let image = resvg::tiny_skia::Pixmap::decode_png(&png).expect("a PNG");
    assert_eq!(image.width(), (tree.size().width() * 4.0).ceil() as u32);
    let names: Vec<_> = crate::replay::files(dir.path());
    assert_eq!(names.len(), 3, "no temporary file is left: {names:?}");
    let output = run(plimsoll(&["solve", "--figure", "/dev/null/a.svg"]).arg(instance("drf-example")));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

#[test]
fn help_has_examples() {
    let help = String::from_utf8(run(&mut plimsoll(&["solve", "--help"])).stdout).expect("text");
    for part in ["Examples:", "plimsoll solve traces/instances/drf-example.toml", "--figure", "[capacity]", "demand ="]
    {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
}

/// Returns the bodies of a page's fenced blocks of one kind.
pub fn blocks(page: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    page.split(&fence).skip(1).filter_map(|rest| Some(rest.split("```").next()?.to_owned())).collect()
}

#[test]
fn the_pages_show_what_the_program_does() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("the page is there");
    let page = read("docs/solve.md");
    let commands = [blocks(&page, "console"), blocks(&read("README.md"), "console")].concat();
    assert!(commands.len() >= 4, "{} commands", commands.len());
    for block in commands {
        let (command, shown) = block.split_once('\n').expect("a command and its output");
        let words: Vec<&str> = command.trim_start_matches("$ plimsoll ").split_whitespace().collect();
        let output = run(plimsoll(&words).current_dir(root()));
        assert!(output.status.success(), "{command}: {}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown, "{command}");
    }
    let instances: Vec<String> = ["toml", "json"].iter().flat_map(|kind| blocks(&page, kind)).collect();
    assert!(instances.len() >= 3, "{} instances", instances.len());
    for text in instances {
        let output = piped(&text, &["--policy", "drf"]);
        assert!(output.status.success(), "{text}: {}", said(&output));
    }
}

/// The examples are from Ghodsi et al., NSDI 2011, section 4.1 (3 and 2 whole tasks) and section 5.1, and from Parkes, Procaccia and Shah,
/// EC 2012.
#[test]
fn whole_tasks_are_served_in_order() {
    let tasks = |args: &[&str]| -> Vec<u64> {
        let result = solved(&instance("drf-example"), &[&["--whole-tasks"], args].concat());
        users(&result).iter().map(|user| user["tasks"].as_u64().expect("whole")).collect()
    };
    assert_eq!(tasks(&["--policy", "drf"]), [3, 2]);
    assert_eq!(tasks(&["--policy", "drf", "--on-blocked", "stop", "--ties", "highest-id"]), [3, 2]);
    assert_eq!(tasks(&["--policy", "drf", "--post"]), [3, 2]);
    // The targets are 45/11 and 18/11. The order is A, B, A, A (3 tasks, 11/15 of the target), B (2 tasks, 22/18 of the target). Then the
    // CPU is used up.
    assert_eq!(tasks(&["--policy", "ceei"]), [3, 2]);
    let wrong = run(plimsoll(&["solve"]).arg(instance("drf-example")).args(["--policy", "drf", "--post"]));
    assert_eq!(wrong.status.code(), Some(2), "--post needs --whole-tasks");
    let wrong =
        run(plimsoll(&["solve"]).arg(instance("drf-example")).args(["--policy", "ceei", "--whole-tasks", "--post"]));
    assert!(said(&wrong).contains("a policy that compares shares"), "{}", said(&wrong));
}
