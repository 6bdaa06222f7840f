//! `plimsoll timeline`: traces have exactly the tasks of the table in both formats and follow Perfetto's rules; figures are bounded; wrong
//! requests are refused with the accepted values.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use plimsoll::error::Error;
use plimsoll::output::paper::Paper;
use plimsoll::output::timeline::check::{TraceContent, TraceSlice, json, protobuf};
use plimsoll::output::timeline::{RunChoice, TimelineRequest, write};

use crate::frame::Frame;
use crate::replay::{files, plimsoll, run, said};

/// Returns a plan on few machines with this placement; `number` varies its workload, `more` are lines of its cluster.
fn plan(number: u64, placement: &str, more: &str) -> String {
    format!(
        r#"
name = "timed"
policies = ["drf", "asset"]
seeds = 1
until = "40m"
tables = ["runs", "users", "jobs", "tasks", "usage", "fairness", "shares"]
[cluster]
machines = "{machines}x4c16g"
placement = "{placement}"
{more}
[workload]
generator = "synthetic"
jobs = 40
arrival = {{ distribution = "exponential", mean = {mean} }}
[[workload.class]]
name = "user"
users = 6
tasks = {{ distribution = "uniform", min = 1, max = 12 }}
duration = {{ distribution = "lognormal", median = 90, sigma = 0.7 }}
demand = {{ cpu = 1, memory_gib = {{ distribution = "choice", values = [1, 2, 5] }} }}
"#,
        machines = 2 + number % 4,
        mean = 25 + 3 * number,
    )
}

/// Runs a plan, and returns the results folder.
fn results(dir: &Path, plan: &str) -> PathBuf {
    let (file, out) = (dir.join("plan.toml"), dir.join("out"));
    std::fs::write(&file, plan).expect("writable");
    let made = run(plimsoll(&["run", "--quiet"]).arg(&file).arg("-o").arg(&out));
    assert!(made.status.success(), "{plan}: {}", said(&made));
    out
}

/// Writes a timeline, and returns its bytes and the messages of the command.
fn timeline(results: &Path, name: &str, args: &[&str]) -> (Vec<u8>, String) {
    let file = results.parent().expect("a folder").join(name);
    let output = run(plimsoll(&["timeline"]).arg(results).arg("-o").arg(&file).args(args));
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    (std::fs::read(&file).expect("a written file"), said(&output))
}

fn refused(results: &Path, args: &[&str]) -> String {
    let output = run(plimsoll(&["timeline"]).arg(results).args(args));
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
    said(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}

/// An attempt of a task: job, task, attempt, outcome, start and end in nanoseconds.
type Attempt = (String, String, String, String, u64, u64);

/// Returns the attempts of the table that were launched.
fn launched(results: &Path, policy: &str) -> Vec<Attempt> {
    let path = |table: &str| results.join(format!("{table}/policy={policy}/run=0/{table}.parquet"));
    let end = Frame::open(&path("runs")).integers("end_us")[0].expect("an end");
    let tasks = Frame::open(&path("tasks"));
    let (jobs, outcomes) = (tasks.names("job", ""), tasks.names("outcome", ""));
    let (starts, ends) = (tasks.integers("start_us"), tasks.integers("finish_us"));
    let number = |column: &str, row: usize| tasks.integers(column)[row].expect("a number").to_string();
    let mut all: Vec<Attempt> = (0..tasks.height())
        .filter_map(|row| {
            let start = starts[row]?;
            let (start, finish) = (start as u64 * 1000, ends[row].unwrap_or(end) as u64 * 1000);
            let (job, outcome) = (jobs[row].clone(), outcomes[row].clone());
            Some((job, number("task", row), number("attempt", row), outcome, start, finish))
        })
        .collect();
    all.sort();
    all
}

fn drawn(content: &TraceContent) -> Vec<Attempt> {
    let one = |slice: &TraceSlice| {
        let arg = |key: &str| slice.args[key].clone();
        (arg("job"), arg("task"), arg("attempt"), arg("outcome"), slice.start, slice.end)
    };
    let mut all: Vec<Attempt> = content.slices.iter().map(one).collect();
    all.sort();
    all
}

/// Compares the traces of a run in all formats with its table; returns the content.
fn compare(out: &Path, policy: &str) -> TraceContent {
    let expected = launched(out, policy);
    let choice = ["--policy", policy];
    let packed = protobuf(&timeline(out, "a.pftrace", &choice).0).expect("a valid trace");
    let text = String::from_utf8(timeline(out, "a.json", &choice).0).expect("text");
    let plain = json(&text).expect("a valid trace");
    assert_eq!(drawn(&packed), expected);
    assert_eq!(drawn(&plain), expected);
    assert_eq!(unpacked(&timeline(out, "a.json.gz", &choice).0), text);
    assert_eq!((packed.instants.len(), &packed.counters), (plain.instants.len(), &plain.counters));
    packed
}

#[test]
fn traces_of_random_runs_have_the_tasks_of_the_table() {
    let (mut stops, mut counters) = (0, 0);
    for number in 1..=6 {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (placement, more) = match number % 3 {
            0 => ("pooled", ""),
            1 => ("first-fit", "preempt = \"0s\"\npreempt_for = \"share\"\n"),
            _ => ("worst-fit", "faults = \"fail=0.1,retries=2\"\n"),
        };
        let out = results(dir.path(), &plan(number, placement, more));
        for policy in ["drf", "asset"] {
            let content = compare(&out, policy);
            let depth = if placement == "pooled" { "user" } else { "machine " };
            assert!(content.slices.iter().all(|slice| slice.track[1].starts_with(depth)), "{:?}", content.slices[0]);
            stops += content.instants.len();
            counters += content.counters.len();
        }
    }
    assert!(stops > 0 && counters > 100, "{stops} stops, {counters} values of counters");
}

/// Under a control plane, tasks are recorded when a message arrives, later than they end.
#[test]
fn late_records_are_sorted() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let control = "[control]\n[control.failures]\ntubo = 5\nmachine = 2\nlasts = [\"2s\", \"2m\"]\n";
    let text = plan(2, "worst-fit", "").replace("[workload]", &format!("{control}[workload]"));
    let out = results(dir.path(), &text);
    for policy in ["drf", "asset"] {
        compare(&out, policy);
    }
    assert!(timeline(&out, "a.svg", &["--policy", "drf"]).0.starts_with(b"<svg"));
}

#[test]
fn options_select_a_part() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = results(dir.path(), &plan(3, "first-fit", ""));
    let args = ["--policy", "drf", "--from", "5m", "--until", "10m", "--machines", "0-1", "--users", "user1,user2"];
    let part = protobuf(&timeline(&out, "part.pftrace", &args).0).expect("a valid trace");
    let whole = protobuf(&timeline(&out, "whole.pftrace", &["--policy", "drf"]).0).expect("a valid trace");
    let (from, until) = (300_000_000_000, 600_000_000_000);
    let selected = whole.slices.iter().filter(|slice| {
        let on = ["machine 0", "machine 1"].contains(&slice.track[1].as_str());
        let of = ["user1", "user2"].iter().any(|user| slice.name.ends_with(user));
        on && of && slice.start < until && slice.end > from
    });
    let key = |slice: &TraceSlice| (slice.name.clone(), slice.start, slice.end, slice.args.clone());
    let (mut some, mut all): (Vec<_>, Vec<_>) = (part.slices.iter().map(key).collect(), selected.map(key).collect());
    some.sort();
    all.sort();
    assert!(some == all && !some.is_empty() && some.len() < whole.slices.len(), "{some:?}, {all:?}");
    assert!(part.counters.iter().all(|(_, time, _)| (from..=until).contains(time)), "{:?}", part.counters);
    let folder = out.join("tasks/policy=drf/run=0");
    let alone = protobuf(&timeline(&folder, "alone.pftrace", &[]).0).expect("a valid trace");
    assert_eq!(alone, whole, "the folder of a run selects it");
}

#[test]
fn figures_show_machines_or_a_pool_with_marks_and_shares() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = results(dir.path(), &plan(1, "first-fit", "preempt = \"0s\"\npreempt_for = \"share\"\n"));
    let text = |args: &[&str]| {
        let (bytes, _) = timeline(&out, "a.svg", &[&["--policy", "drf"], args].concat());
        String::from_utf8(bytes).expect("text")
    };
    let svg = text(&["--legend", "3"]);
    for part in ["Machine", "3 others", "arrivals", "Dominant share", "plimsoll.plan", "Time (min)"] {
        assert!(svg.contains(part), "{part} is missing");
    }
    assert!(text(&["--resource", "memory"]).contains("Memory in use (GiB)"));
    assert_eq!(svg, text(&["--legend", "3"]), "the same request gives the same bytes");
    for (name, magic) in [("a.png", &b"\x89PNG"[..]), ("a.pdf", b"%PDF")] {
        assert!(timeline(&out, name, &["--policy", "asset", "--preset", "acm"]).0.starts_with(magic));
    }
    let pooled = tempfile::tempdir().expect("a temporary folder");
    let out = results(pooled.path(), &plan(1, "pooled", ""));
    let (svg, messages) = timeline(&out, "a.svg", &["--policy", "drf"]);
    assert!(String::from_utf8_lossy(&svg).contains("CPU in use (cores)") && messages.is_empty(), "{messages}");
    assert!(refused(&out, &["-o", "a.svg", "--policy", "drf", "--machines", "0"]).contains("a pooled run has none"));
}

/// 60,000 tasks are drawn as cells, and the note states this.
#[test]
fn crowded_figures_are_aggregated() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = dir.path().join("t.csv");
    let row = |nth: u32| format!("j{nth},u{},{},{},300,1,1\n", nth % 20, nth * 40, 20 + nth % 50);
    let rows: String = (0..200).map(row).collect();
    std::fs::write(&trace, format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib\n{rows}")).expect("writable");
    let out = dir.path().join("out");
    let mut command = plimsoll(&["replay", "--quiet", "--machines", "30x16c64g", "--placement", "first-fit"]);
    let made = run(command.arg(&trace).args(["--policy", "drf", "--tasks", "-o"]).arg(&out));
    assert!(made.status.success(), "{}", said(&made));
    let (svg, messages) = timeline(&out, "a.svg", &[]);
    let svg = String::from_utf8_lossy(&svg);
    let rectangles = svg.matches("<rect ").count();
    assert!(rectangles < 40_100 && svg.contains("60,000 tasks"), "{rectangles} rectangles");
    assert!(svg.contains("aggregated") && messages.contains("no shares of users"), "{messages}");
    let (_, messages) = timeline(&out, "a.pftrace", &[]);
    assert!(messages.contains("no counters of use") && messages.contains("--series"), "{messages}");
    assert!(refused(&out, &["-o", "a.pftrace", "--resource", "cpu"]).contains("no table 'usage'"));
}

#[test]
fn wrong_requests_get_the_accepted_values() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = results(dir.path(), &plan(1, "first-fit", ""));
    let svg = dir.path().join("a.svg").display().to_string();
    let with = |args: &[&str]| refused(&out, &[&["-o", &svg], args].concat());
    let drf = |args: &[&str]| with(&[&["--policy", "drf"], args].concat());
    for (message, parts) in [
        (with(&[]), ["--policy", "drf, asset"]),
        (with(&["--policy", "drff"]), ["'drff'", "did you mean 'drf'"]),
        (drf(&["--seed", "9"]), ["--seed: 9", "a seed of the results: 1"]),
        (drf(&["--cell", "x"]), ["--cell", "no sweep"]),
        (drf(&["--users", "user1,userx"]), ["'userx'", "did you mean 'user"]),
        (drf(&["--machines", "3-1"]), ["--machines: '3-1'", "0-9,12"]),
        (drf(&["--machines", "77"]), ["no task runs on machines 77", "tasks.parquet"]),
        (drf(&["--from", "soon"]), ["--from: 'soon'", "15m"]),
        (drf(&["--from", "2m", "--until", "1m"]), ["--until", "after --from"]),
        (drf(&["--from", "9d"]), ["no task runs in the window", "the run ends at"]),
        (drf(&["--resource", "gpu"]), ["--resource: 'gpu'", "cpu, memory"]),
        (refused(&out, &["-o", "a.html"]), ["'a.html'", ".pftrace"]),
        (refused(dir.path(), &["-o", &svg]), ["not a results folder", "plimsoll run"]),
        (refused(&out.join("tasks/policy=asset/run=7"), &["-o", &svg]), ["policy asset", "not complete"]),
    ] {
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?}: {message}");
    }
    let plain = tempfile::tempdir().expect("a temporary folder");
    let text = plan(1, "first-fit", "").replace("\"tasks\", ", "");
    assert!(!Path::new(&svg).exists());
    // A run without a table of tasks is repeated, as the run of a plan; the timeline equals that of a run with the table.
    let without = results(plain.path(), &text);
    let (of_tasks, _) = timeline(&out, "of-tasks.svg", &["--policy", "drf"]);
    for source in [without, plain.path().join("plan.toml")] {
        let (repeated, _) = timeline(&source, "repeated.svg", &["--policy", "drf"]);
        assert!(plain_svg(&repeated) == plain_svg(&of_tasks), "{}", source.display());
    }
    let left: Vec<PathBuf> = files(plain.path())
        .into_iter()
        .filter(|path| path.display().to_string().contains(".plimsoll-timeline"))
        .collect();
    assert!(left.is_empty(), "the temporary folder is removed: {left:?}");
}

/// Returns a figure without its metadata, which has the plan.
fn plain_svg(svg: &[u8]) -> String {
    let text = String::from_utf8_lossy(svg);
    let (before, rest) = text.split_once("<metadata").unwrap_or((&text, ""));
    format!("{before}{}", rest.split_once("</metadata>").map_or(rest, |(_, after)| after))
}

/// A sweep has one folder per cell; the option is needed if there are several.
#[test]
fn a_cell_of_a_sweep_is_selected() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = plan(1, "first-fit", "") + "[sweep]\n\"workload.jobs\" = [5, 10]\n";
    let out = results(dir.path(), &text);
    let message = refused(&out, &["-o", "a.svg", "--policy", "drf"]);
    let cells: BTreeMap<usize, String> = [5, 10].map(|jobs| (jobs, format!("jobs-{jobs}"))).into();
    assert!(message.contains("--cell") && cells.values().all(|cell| message.contains(cell)), "{message}");
    let jobs = |cell: &str| {
        let (bytes, _) = timeline(&out, "a.pftrace", &["--policy", "drf", "--cell", cell]);
        let content = protobuf(&bytes).expect("a valid trace");
        content.slices.iter().map(|slice| slice.args["job"].clone()).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(cells.iter().all(|(many, cell)| jobs(cell) == *many));
}

#[test]
fn an_interrupted_command_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = results(dir.path(), &plan(1, "first-fit", ""));
    let before = files(dir.path()).len();
    for name in ["a.svg", "a.pftrace", "a.json.gz"] {
        for calls in 0.. {
            let left = std::cell::Cell::new(calls);
            let stop = || match left.get() {
                0 => Err(Error::Interrupted),
                many => {
                    left.set(many - 1);
                    Ok(())
                }
            };
            let request = TimelineRequest {
                results: &out,
                choice: RunChoice { policy: Some("drf"), ..RunChoice::default() },
                users: &[],
                machines: None,
                from: None,
                until: None,
                resource: None,
                legend: 8,
                paper: Paper::default(),
                output: &dir.path().join(name),
                stop: &stop,
            };
            match write(&request) {
                Err(Error::Interrupted) => assert_eq!(files(dir.path()).len(), before, "{name} after {calls} chunks"),
                Err(error) => panic!("{name}: {error}"),
                Ok(_) => {
                    assert!(calls > 2, "{name}: {calls} chunks");
                    break;
                }
            }
        }
        std::fs::remove_file(dir.path().join(name)).expect("a written file");
    }
}
