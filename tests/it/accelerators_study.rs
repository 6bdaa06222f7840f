//! Plans with accelerators as studies: the axes of a sweep are columns and figures, errors name the key and the cell, and an interrupted
//! command continues to the same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll::control::study::Watcher;
use plimsoll::error::{Error, Result};
use plimsoll::experiment::Mode;
use plimsoll::experiment::accelerators::{AcceleratorRequest, AcceleratorStudy, RunCounts, execute};
use plimsoll::rows::read_text;
use plimsoll::tree::Place;

use crate::accelerators::{PLAN, TABLE, written};
use crate::frame::Frame;
use crate::replay::{files, plimsoll, run, said};

/// A sweep over the length of a round, and over two keys that change together.
const SWEEP: &str = r#"include = "two.toml"
name = "swept"
[accelerators]
rates = [6]
[sweep]
"accelerators.round" = ["1m", "2m"]
[[sweep.zip]]
"accelerators.most_jobs" = [20, 22, 24]
"accelerators.at_least" = ["2m", "4m", "6m"]
[[sweep.exclude]]
"accelerators.round" = "1m"
"accelerators.most_jobs" = 22
"#;

const TABLES: [&str; 3] = ["accelerator_runs", "accelerator_types", "accelerator_jobs"];

/// Writes the plan `swept.toml`, and the plan that it includes; returns its path.
fn swept(dir: &Path, text: &str) -> PathBuf {
    written(dir, PLAN);
    std::fs::write(dir.join("swept.toml"), text).expect("a writable folder");
    dir.join("swept.toml")
}

/// Runs a plan; returns its messages.
fn run_plan(plan: &Path, folder: &Path, more: &[&str]) -> String {
    let made = run(plimsoll(&["run", "-o"]).arg(folder).arg(plan).args(more));
    assert!(made.status.success(), "{more:?}: {}", said(&made));
    said(&made)
}

/// Returns the bytes of all files of results, by name, except the record of the execution.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let name = |path: &PathBuf| path.strip_prefix(folder).expect("a file below the folder").to_owned();
    let is_compared = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        !name.starts_with("run.json") && !name.starts_with("run-") && !name.starts_with(".plimsoll-lock")
    };
    let files = files(folder).into_iter().filter(is_compared);
    files.map(|path| (name(&path), std::fs::read(&path).expect("a written file"))).collect()
}

/// Returns the first name with different bytes.
fn difference(a: &BTreeMap<PathBuf, Vec<u8>>, b: &BTreeMap<PathBuf, Vec<u8>>) -> Option<PathBuf> {
    a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name)).cloned()
}

#[test]
fn axes_are_columns_and_figures() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = swept(dir.path(), SWEEP);
    let out = dir.path().join("1");
    run_plan(&plan, &out, &["-q", "-j", "1"]);
    let other = dir.path().join("2");
    run_plan(&plan, &other, &["-q", "-j", "2"]);
    assert_eq!(difference(&bytes(&out), &bytes(&other)), None, "one and two threads");
    // Five cells: the excluded combination is absent.
    let cells = [("1m", 20, "2m"), ("1m", 24, "6m"), ("2m", 20, "2m"), ("2m", 22, "4m"), ("2m", 24, "6m")];
    let axes = ["accelerators_round", "accelerators_most_jobs", "accelerators_at_least"];
    for table in TABLES {
        let frame = Frame::open(&out.join(format!("{table}.parquet")));
        let first: Vec<&str> = frame.columns().take(5).collect();
        assert_eq!(first, ["cell", axes[0], axes[1], axes[2], "policy"], "{table}");
        let rounds = frame.names(axes[0], "");
        let (most, least) = (frame.integers(axes[1]), frame.names(axes[2], ""));
        let mut met: Vec<(&str, i64, &str)> = Vec::new();
        for row in 0..rounds.len() {
            let cell = (rounds[row].as_str(), most[row].expect("a number"), least[row].as_str());
            if met.last() != Some(&cell) {
                met.push(cell);
            }
        }
        assert_eq!(met, cells, "{table}");
    }
    // Each cell equals the plan with its values.
    let frame = Frame::open(&out.join("accelerator_runs.parquet"));
    let (means, rounds, most) = (frame.numbers("completion_mean_s"), frame.names(axes[0], ""), frame.integers(axes[1]));
    for (round, jobs, least) in cells {
        let alone = dir.path().join(format!("{round}-{jobs}"));
        let set = [("round", round.to_owned()), ("most_jobs", jobs.to_string()), ("at_least", least.to_owned())];
        let set: Vec<String> = set.iter().map(|(key, value)| format!("--set=accelerators.{key}={value}")).collect();
        let mut options: Vec<&str> = vec!["-q", "--set=accelerators.rates=[6]"];
        options.extend(set.iter().map(String::as_str));
        run_plan(&dir.path().join("two.toml"), &alone, &options);
        let expected = Frame::open(&alone.join("accelerator_runs.parquet")).numbers("completion_mean_s");
        let is_own = |row: &usize| rounds[*row] == round && most[*row] == Some(jobs);
        let found: Vec<Option<f64>> = (0..means.len()).filter(is_own).map(|row| means[row]).collect();
        assert_eq!((found, expected.len()), (expected, 4), "{round} {jobs}");
    }
    // The figure by the length of a round has a panel for each of the other values, and a point of each policy in each cell.
    let figure = |name: &str| read_text(&out.join("figures").join(name)).expect("a figure");
    let rows = figure("completion-by-round.csv");
    assert!(rows.starts_with("panel,policy,accelerators_round,completion_mean_s,low,high"), "{rows}");
    assert_eq!(rows.lines().count(), 1 + 2 * cells.len(), "{rows}");
    assert!(rows.contains(",60,") && rows.contains(",120,") && rows.contains("low"), "{rows}");
    // Keys that change together are one axis.
    let rows = figure("completion-by-most-jobs.csv");
    assert!(rows.contains("round 1m") && !rows.contains("at_least"), "{rows}");
    assert!(!out.join("figures/completion-by-at-least.svg").exists());
    let report = read_text(&out.join("report.html")).expect("a report");
    assert!(report.contains("most_jobs</th>"), "the summary has the axes");
    // The values of an axis are replaced by those of `--set`.
    let three = dir.path().join("three");
    let text = run_plan(&plan, &three, &["-q", "--format", "json", "--set", "accelerators.round=[\"3m\"]"]);
    let frame = Frame::open(&three.join("accelerator_types.parquet"));
    assert!(frame.names(axes[0], "").iter().all(|round| round == "3m"), "{text}");
    assert_eq!(frame.integers(axes[1]).len(), 3 * 2 * 2 * 2, "three cells, two policies, lists and types");
}

#[test]
fn wrong_sweeps_are_refused_at_their_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let refused = |text: &str, verb: &str| {
        let plan = swept(dir.path(), text);
        let mut command = plimsoll(&[verb, "-q"]);
        command.arg(&plan);
        if verb == "run" {
            command.arg("-o").arg(dir.path().join("out"));
        }
        let made = run(&mut command);
        assert!(made.status.code() == Some(2) && !said(&made).contains("panicked"), "{}", said(&made));
        assert!(!dir.path().join("out").exists(), "no file is written: {}", said(&made));
        said(&made)
    };
    let round = r#""accelerators.round" = ["1m", "2m"]"#;
    let axes = SWEEP.split("[[sweep.exclude]]").next().expect("a beginning");
    for (line, parts) in [
        (r#""accelerators.policies" = [["fifo"]]"#, &["line 6", "cannot be swept: policies, seeds, names"][..]),
        (r#"name = ["a", "b"]"#, &["line 6", "cannot be swept"]),
        (r#"question = ["a", "b"]"#, &["line 6", "cannot be swept"]),
        (r#"accelerators = [{ round = "1m" }]"#, &["line 6", "cannot be swept"]),
        (r#""accelerators.round" = ["1m", "0s"]"#, &["line 6, column 31", "above 0", "in the cell round-0s"]),
        (r#""accelerators.rounds" = ["1m"]"#, &["swept.toml", "line 6", "rounds"]),
        (r#""accelerators.jobs" = [["first.csv"], ["no.csv"]]"#, &["line 6", "accelerators.jobs", "no.csv"]),
        (r#""accelerators.throughputs" = ["rates.csv", "none.csv"]"#, &["line 6", "none.csv", "in the cell"]),
        (r#""accelerators.round" = "1m""#, &["line 6", "not a list"]),
        (r#""accelerators.rates" = [[6, 6.0]]"#, &["line 6", "6 twice", "each rate once"]),
        (r#""accelerators.window.to" = [20, 9999]"#, &["line 6", "9999", "the jobs of first.csv", "in the cell"]),
    ] {
        let text = refused(&axes.replace(round, line), "run");
        parts.iter().for_each(|part| assert!(text.contains(part), "{line}: expected {part} in\n{text}"));
    }
    let excluded = SWEEP
        .replace("\"accelerators.round\" = \"1m\"\n\"accelerators.most_jobs\" = 22", "\"accelerators.round\" = \"4m\"");
    let all = excluded.replace(round, r#""accelerators.round" = ["4m"]"#);
    assert!(refused(&all, "run").contains("everything is excluded"));
    assert!(refused(SWEEP, "solve").contains("without a sweep"));
    // A file of a cell has an error at its own line.
    let plan = swept(dir.path(), SWEEP);
    std::fs::write(dir.path().join("rates.csv"), TABLE.replace("text,k80,1,5", "text,k80,1,-5")).expect("writable");
    let failed = run(plimsoll(&["run", "-q", "-o"]).arg(dir.path().join("out")).arg(&plan));
    assert!(said(&failed).contains("rates.csv") && said(&failed).contains("line 7"), "{}", said(&failed));
}

/// Ends an execution after a number of complete runs.
struct Patience {
    runs: usize,
    done: AtomicUsize,
}

impl Watcher for Patience {
    fn go_on(&self) -> Result<()> {
        if self.done.load(Ordering::Relaxed) >= self.runs { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn planned(&self, _parts: usize) {}

    fn done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Executes a plan until some runs are complete, as after Ctrl-C.
fn interrupted(plan: &Path, folder: &Path, runs: usize) {
    let text = Place::whole_text(plan, read_text(plan).expect("a plan"));
    let study = AcceleratorStudy::read(&text, &[]).expect("a plan");
    let counts = RunCounts::default();
    let request = AcceleratorRequest { folder, threads: 1, mode: Mode::Resume, shard: None, counts: &counts };
    let ended = execute(&study, &request, &Patience { runs, done: AtomicUsize::new(0) });
    assert!(matches!(ended, Err(Error::Interrupted)));
    assert_eq!((counts.complete.into_inner(), counts.all.into_inner()), (runs, study.runs().len()));
}

/// Returns the receipts of results.
fn receipts(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.parent().is_some_and(|above| above.ends_with("done"))).collect()
}

#[test]
fn an_interrupted_command_continues_to_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = swept(dir.path(), SWEEP);
    let whole = dir.path().join("whole");
    run_plan(&plan, &whole, &["-q"]);
    let expected = bytes(&whole);
    for (runs, threads) in [(1, "1"), (7, "2"), (19, "1")] {
        let out = dir.path().join(format!("after-{runs}"));
        interrupted(&plan, &out, runs);
        assert_eq!(receipts(&out).len(), runs);
        // No table of all runs exists before the last run is complete.
        assert!(TABLES.iter().all(|table| !out.join(format!("{table}.parquet")).exists()));
        // A killed process leaves a temporary file.
        let left = out.join("cell=round-1m,most_jobs-20,at_least-2m/accelerator_jobs/policy=fifo/.plimsoll-aBc123");
        std::fs::create_dir_all(left.parent().expect("a folder")).expect("writable");
        std::fs::write(&left, "part of a table").expect("writable");
        // Another plan does not continue it.
        let other = run(plimsoll(&["run", "-q", "--set", "accelerators.round=[\"3m\"]", "-o"]).arg(&out).arg(&plan));
        let refused = said(&other);
        assert!(other.status.code() == Some(2) && refused.contains("results of another plan"), "{refused}");
        assert!(refused.contains("accelerators.round"), "{refused}");
        let listed = run(plimsoll(&["run", "--dry-run", "-o"]).arg(&out).arg(&plan));
        assert!(said(&listed).contains(&format!("20 runs, {} to run", 20 - runs)), "{}", said(&listed));
        let text = run_plan(&plan, &out, &["-j", threads]);
        let verb = if runs == 1 { "run was" } else { "runs were" };
        assert!(text.contains(&format!("{runs} {verb} complete already, {} were made", 20 - runs)), "{text}");
        assert_eq!(difference(&expected, &bytes(&out)), None, "after {runs} runs");
    }
    // The size of figures may change at any time.
    let narrow = run_plan(&plan, &whole, &["--set", "figures.preset=acm"]);
    assert!(narrow.contains("20 runs were complete already, 0 were made"), "{narrow}");
    let now = bytes(&whole);
    let [figure, before] = [&now, &expected].map(|files| files.get(Path::new("figures/completion.svg")));
    assert!(figure.is_some() && figure != before);
    // A complete study is not run again; with `--restart` it is.
    let again = run_plan(&plan, &whole, &[]);
    assert!(again.contains("20 runs were complete already, 0 were made"), "{again}");
    let restarted = run_plan(&plan, &whole, &["--restart"]);
    assert!(!restarted.contains("complete already"), "{restarted}");
    assert_eq!(difference(&expected, &bytes(&whole)), None);
    // `--restart` replaces the results of another plan; the cells of the old plan are gone.
    let more = ["-q", "--restart", "--set", "accelerators.round=[\"3m\"]"];
    run_plan(&plan, &whole, &more);
    let fresh = dir.path().join("fresh");
    run_plan(&plan, &fresh, &["-q", "--set", "accelerators.round=[\"3m\"]"]);
    assert_eq!(difference(&bytes(&fresh), &bytes(&whole)), None);
}

#[test]
fn damaged_runs_are_repeated() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = written(dir.path(), PLAN);
    let out = dir.path().join("out");
    run_plan(&plan, &out, &["-q"]);
    let expected = bytes(&out);
    let receipts = receipts(&out);
    assert_eq!(receipts.len(), 8, "two policies, two rates, two lists");
    // A receipt with a changed number, a table with a changed byte, and a missing table.
    let text = read_text(&receipts[3]).expect("a receipt");
    std::fs::write(&receipts[3], text.replacen("\"run\": ", "\"run\": 1", 1)).expect("writable");
    let tables = files(&out.join("accelerator_jobs"));
    let other = |text: &str| tables.iter().find(|path| path.to_string_lossy().contains(text)).expect("a table");
    let damaged: Vec<&PathBuf> = {
        let of_receipt = |path: &&PathBuf| {
            let name = path.strip_prefix(&out).expect("below").to_string_lossy().into_owned();
            !text.contains(&name)
        };
        [other("policy=fifo"), other("policy=max_min_fairness_perf")].into_iter().filter(of_receipt).collect()
    };
    let mut table = std::fs::read(damaged[0]).expect("a table");
    table[40] ^= 1;
    std::fs::write(damaged[0], table).expect("writable");
    if let Some(second) = damaged.get(1) {
        std::fs::remove_file(second).expect("removable");
    }
    let again = run_plan(&plan, &out, &["-j", "2"]);
    let broken = 1 + damaged.len();
    assert_eq!(again.matches("it was run again").count(), broken, "{again}");
    assert!(again.contains("not as it was written"), "{again}");
    assert!(again.contains(&format!("{} runs were complete already, {broken} were made", 8 - broken)), "{again}");
    assert_eq!(difference(&expected, &bytes(&out)), None);
    // An edited list repeats its runs only; the old receipts are removed.
    let list = dir.path().join("second.csv");
    let jobs = read_text(&list).expect("a list").replacen(",600", ",601", 1);
    std::fs::write(&list, jobs).expect("writable");
    let edited = run_plan(&plan, &out, &[]);
    assert!(edited.contains("4 runs were complete already, 4 were made"), "{edited}");
    assert_eq!(self::receipts(&out).len(), 8);
    let fresh = dir.path().join("fresh");
    run_plan(&plan, &fresh, &["-q"]);
    assert_eq!(difference(&bytes(&fresh), &bytes(&out)), None);
    // A folder with runs and a damaged manifest is not given to another plan.
    let manifest = out.join("made.json");
    std::fs::write(&manifest, read_text(&manifest).expect("a manifest").replace("two", "too")).expect("writable");
    let other = run(plimsoll(&["run", "-q", "--set", "accelerators.round=3m", "-o"]).arg(&out).arg(&plan));
    assert!(other.status.code() == Some(2) && said(&other).contains("belongs to this plan"), "{}", said(&other));
    assert!(run_plan(&plan, &out, &[]).contains("8 runs were complete already"));
}

#[test]
fn shards_are_gathered_and_packed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = swept(dir.path(), SWEEP);
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    run_plan(&plan, &whole, &["-q"]);
    run_plan(&plan, &parts, &["-q", "--shard", "0/2"]);
    let early = run(plimsoll(&["run", "-q", "--gather", "-o"]).arg(&parts).arg(&plan));
    assert!(early.status.code() == Some(2) && said(&early).contains("10 runs are missing"), "{}", said(&early));
    assert!(run_plan(&plan, &parts, &["--shard", "1/2"]).contains("run again with --gather"));
    run_plan(&plan, &parts, &["-q", "--gather"]);
    assert_eq!(difference(&bytes(&whole), &bytes(&parts)), None);
    let zip = dir.path().join("swept.zip");
    let packed = run(plimsoll(&["bundle"]).arg(&whole).arg("-o").arg(&zip).current_dir(dir.path()));
    assert!(packed.status.success(), "{}", said(&packed));
    let verified = run(plimsoll(&["bundle", "--verify"]).arg(&zip));
    assert!(verified.status.success(), "{}", said(&verified));
    // The bundle of an interrupted command lists the missing parts.
    let part = dir.path().join("part");
    interrupted(&plan, &part, 3);
    let part = run(plimsoll(&["bundle"]).arg(&part).arg("-o").arg(dir.path().join("part.zip")).current_dir(dir.path()));
    assert!(part.status.code() == Some(2) && said(&part).contains("interrupted"), "{}", said(&part));
}

/// Ctrl-C ends the command soon, with the number of complete runs; only complete files remain.
#[cfg(unix)]
#[test]
fn a_signal_keeps_the_complete_runs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    written(dir.path(), PLAN);
    // The second run has 4000 active jobs and does not end during the test.
    let mut list = "arrival_s,job_type,iterations\n".to_owned();
    (0..4000).for_each(|job| list += &format!("0,{},{}\n", ["image", "text"][job % 2], 1_000_000 + 997 * job));
    std::fs::write(dir.path().join("first.csv"), "arrival_s,job_type,iterations\n0,text,50\n").expect("writable");
    std::fs::write(dir.path().join("second.csv"), list).expect("writable");
    let text = PLAN.lines().filter(|line| !line.starts_with("rates") && !line.starts_with("window"));
    let plan = dir.path().join("long.toml");
    std::fs::write(&plan, text.collect::<Vec<_>>().join("\n")).expect("writable");
    let out = dir.path().join("out");
    let mut command = plimsoll(&["run", "-j", "1", "--set", "accelerators.policies=[\"max_min_fairness_perf\"]", "-o"]);
    let mut child = command.arg(&out).arg(&plan).stderr(Stdio::piped()).spawn().expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(600);
    while !out.exists() || receipts(&out).is_empty() {
        assert!(Instant::now() < deadline && child.try_wait().expect("a child").is_none(), "no run ended before");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").arg("-INT").arg(child.id().to_string()).status().expect("kill is a command");
    assert!(sent.success());
    let ended = child.wait_with_output().expect("a child");
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{text}");
    assert!(text.contains("1 of 2 runs are complete; the same command continues"), "{text}");
    let left = files(&out);
    assert!(
        left.iter().all(|path| !path.to_string_lossy().contains(".plimsoll-") || path.ends_with(".plimsoll-lock")),
        "{left:?}"
    );
    assert_eq!(left.iter().filter(|path| path.extension().is_some_and(|end| end == "parquet")).count(), 1, "{left:?}");
}
