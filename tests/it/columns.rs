//! Text printed for people fits 80 columns without broken words: every help text, and the output of every verb.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use crate::replay::{files, run, said};

const WIDTH: usize = 80;

/// Runs the program in a folder, with or without a given line width.
fn program(dir: &Path, args: &[&str], columns: Option<usize>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(args).current_dir(dir).env("NO_COLOR", "1").env_remove("COLUMNS");
    command.envs(columns.map(|columns| ("COLUMNS", columns.to_string())));
    run(&mut command)
}

/// Returns the lines longer than the width, except single unbreakable words and commands to be copied.
fn too_long(text: &str) -> Vec<&str> {
    let is_command = |line: &str| line.trim_start().starts_with("replay: plimsoll ");
    let long = |line: &&str| line.chars().count() > WIDTH && line.trim().contains(' ') && !is_command(line);
    text.lines().filter(long).collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

/// Returns all verbs, including nested ones, as words of a command line.
fn verbs(command: &clap::Command, path: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![path.to_vec()];
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        all.extend(verbs(verb, &[path, &[verb.get_name().to_owned()]].concat()));
    }
    all
}

#[test]
fn every_help_text_fits() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut wrong = Vec::new();
    let verbs = verbs(&plimsoll::cli::command(), &[]);
    assert!(verbs.len() > 18, "{verbs:?}");
    for verb in verbs {
        for help in ["--help", "-h"] {
            let args: Vec<&str> = verb.iter().map(String::as_str).chain([help]).collect();
            let output = program(dir.path(), &args, Some(1000));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("Usage"), "{args:?}: {text}");
            let long = text.lines().filter(|line| line.chars().count() > WIDTH);
            wrong.extend(long.map(|line| format!("{}: {line}", args.join(" "))));
            // Examples are printed as written: a command that the program breaks into lines cannot be copied.
            let examples = text.lines().skip_while(|line| *line != "Examples:").skip(1).filter(|line| !line.is_empty());
            let cut = examples.filter(|line| !line.starts_with("  ") && !line.starts_with("An instance"));
            wrong.extend(
                cut.filter(|line| !line.contains("--help") && !line.starts_with("or, with")).map(str::to_owned),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A plan with three resources, and long names of policies and users. It is small enough to be run often.
const PLAN: &str = r#"
name = "small"
policies = ["fifo", "maxmin:memory", "slot:2", "pnorm:2"]
seeds = 3
tables = ["runs", "users", "jobs", "groups", "bins", "quantiles"]
[cluster]
machines = "3x8c32g2gpu"
[workload]
generator = "synthetic"
jobs = 60
arrival = { distribution = "exponential", mean = 20 }
[[workload.class]]
name = "a-class-of-users-of-the-first-department"
users = 3
tasks = { distribution = "uniform", min = 1, max = 700 }
duration = { distribution = "lognormal", median = 1, sigma = 0.6 }
demand = { cpu = 1, memory_gib = 4 }
[[workload.class]]
name = "another-class-of-the-second-department"
users = 2
tasks = { distribution = "uniform", min = 1, max = 5 }
duration = { distribution = "lognormal", median = 20, sigma = 0.6 }
demand = { cpu = 3, memory_gib = 1, gpu = 1 }
"#;

/// Every verb, executed in a folder with the data of the repository and a trace. Output for programs (JSON, CSV, scripts) is omitted.
const COMMANDS: &[&str] = &[
    "run small.toml",
    "run swept.toml",
    "run swept.toml --dry-run",
    "run traces/check.toml",
    "run traces/solve.toml",
    "compare results/small results/other --all",
    "plot results/small --only completion",
    "report results/small",
    "bundle results/small",
    "replay trace.csv --machines 3x8c32g2gpu --policy fifo --policy maxmin:memory -o r --tasks",
    "trace stats facebook --machines 400x16c32g --set hours=0.1 --set load=0.5",
    "trace stats trace.csv --machines 3x8c32g2gpu --figure f",
    "trace head trace.csv",
    "trace validate trace.csv --machines 3x8c32g2gpu",
    "trace import trace.csv -o trace.parquet",
    "solve traces/instances/drf-example.toml",
    "solve traces/instances/theorem-1.toml --policy drf --whole-tasks",
    "solve traces/instances/quota-tree.toml",
    "solve traces/instances/quota-koordinator.toml --rounding largest-remainder",
    "check --effort quick",
    "check --policy slot:2 --policy asset --effort quick --whole-tasks --domain zeros --write found",
    "failover",
    "failover --matrix",
    "failover fm-failover+am-timeout --without mock-request",
    "failover --chaos 40 --without wait-window",
    "policies",
    "schema",
];

fn yard() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a temporary folder");
        std::fs::write(path, text).expect("a temporary folder is writable");
    };
    write("small.toml", PLAN);
    write("other.toml", &PLAN.replace("mean = 20 }", "mean = 15 }").replace("\"small\"", "\"other\""));
    let axes =
        "[sweep]\n\"workload.arrival.mean\" = [30, 20, 10]\n\"cluster.placement\" = [\"first-fit\", \"worst-fit\"]\n";
    write("swept.toml", &(PLAN.replace("\"small\"", "\"swept\"") + axes));
    write("traces/check.toml", "name = \"check\"\n[check]\npolicies = [\"drf\", \"asset\"]\neffort = \"quick\"\n");
    write("traces/solve.toml", "name = \"solve\"\n[solve]\ninstances = [\"instances/theorem-1.toml\"]\n");
    let mut trace = "submit_s,user,job,tasks,cpu,memory_gib,gpu,duration_s\n".to_owned();
    for at in 0..20 {
        let (submit, user, tasks) = (5 * at, at % 3, 1 + at);
        trace += &format!("{submit},a-user-of-some-length-{user},a-job-with-a-long-name-{at},{tasks},1,4,1,30\n");
    }
    write("trace.csv", &trace);
    let instances = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/instances");
    for file in files(&instances) {
        let text = std::fs::read_to_string(&file).expect("an instance of the repository");
        write(&format!("traces/instances/{}", file.file_name().expect("a file").to_string_lossy()), &text);
    }
    dir
}

/// With 80 columns no line is longer than 80 characters and no word is broken: every word also occurs in the output without line breaks.
#[test]
fn the_output_of_every_verb_fits() {
    let dir = yard();
    let other = program(dir.path(), &["run", "other.toml"], None);
    assert!(other.status.success(), "{}", said(&other));
    let mut wrong = Vec::new();
    for line in COMMANDS {
        let args: Vec<&str> = line.split(' ').collect();
        let narrow = program(dir.path(), &args, None);
        let at_80 = program(dir.path(), &args, Some(WIDTH));
        let long = program(dir.path(), &args, Some(100_000));
        assert!(narrow.status.success(), "{line}: {}", said(&narrow));
        let [text, long] = [&narrow, &long].map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        assert!(!text.trim().is_empty() || line.starts_with("trace import"), "{line} prints nothing");
        assert_eq!(narrow.stdout, at_80.stdout, "{line}: the default width is 80 columns");
        // Messages are broken into lines only on a terminal: a log has one line per message.
        for line_too_long in too_long(&text) {
            wrong.push(format!("{line}: too long: {line_too_long}"));
        }
        let known = words(&long);
        let broken: Vec<&str> = words(&text).into_iter().filter(|word| !known.contains(word)).collect();
        if !broken.is_empty() {
            wrong.push(format!("{line}: broken words: {broken:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_sweep_has_a_row_a_cell_and_policy_and_wide_has_all_columns() {
    let dir = yard();
    let narrow = program(dir.path(), &["run", "swept.toml", "-q"], None);
    let text = String::from_utf8_lossy(&narrow.stdout).into_owned();
    let rows = |text: &str, policy: &str| text.lines().filter(|line| line.contains(policy)).count();
    // Each policy has one row per cell, six in the table of means and six in the table of differences.
    assert_eq!([rows(&text, " maxmin:memory"), rows(&text, " slot:2")], [12, 12], "{text}");
    let wide = program(dir.path(), &["run", "swept.toml", "-q", "--wide"], None);
    let wide = String::from_utf8_lossy(&wide.stdout).into_owned();
    let columns = |text: &str| text.lines().find(|line| line.contains("policy")).expect("a heading").to_owned();
    for name in ["envy", "wait s", "used GPU"] {
        assert!(columns(&wide).contains(name) && !columns(&text).contains(name), "{name}: {wide}");
    }
    assert!(wide.lines().any(|line| line.chars().count() > WIDTH));
}

/// Colours are for terminals: output to a pipe has none.
#[test]
fn a_pipe_has_no_colour() {
    let dir = yard();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["check", "--effort", "quick", "--policy", "asset"]).current_dir(dir.path()).env_remove("NO_COLOR");
    let output = run(&mut command);
    assert!(output.status.success() && !output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
}
