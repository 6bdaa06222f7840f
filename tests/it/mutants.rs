//! Mutants: wrong versions of the simulator (`mutants.txt`). The randomised comparisons with slow reference implementations must kill them:
//! at least one comparison must fail.
//!
//! One build of a copy of the sources contains all mutants; the variable `PLIMSOLL_MUTANT` of the environment selects one of them. The
//! command is `cargo test --release --test it mutants -- --ignored --nocapture`; it takes an hour or more. `PLIMSOLL_MUTANTS=3,fit-strict`
//! restricts it to some mutants, `PROPTEST_CASES=40` restricts the last pass, which repeats all comparisons with all their cases, and
//! `PLIMSOLL_MUTANTS_FOLDER` is the folder of the copy and of its build, which later measurements use again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::sources::{copy_sources, root};

const LIST: &str = include_str!("mutants.txt");

/// The comparisons, as parts of the names of tests. Each must match a test.
const COMPARISONS: [&str; 10] = [
    "twin::",
    "twin_machines::",
    "first_in_order::equals_a_slow_scheduler",
    "hold::a_final_choice_is_that_of_the_published_loop",
    "quota_policy::agrees_with_quotas_computed_anew",
    "quota_groups::accumulators_and_levels_agree",
    "expressions::they_do_as",
    "expressions::their_orders",
    "expressions::where_the_first_in_line",
    "water::many_changes_of_many_groups",
];

/// The comparisons that run first for the mutants of files with this part in their names, the first row that applies. They only save time.
const FIRST_COMPARISONS: [(&str, &[&str]); 10] = [
    ("round/backfill", &["twin::backfilling"]),
    ("round/hold", &["hold::"]),
    ("round/by_machine", &["twin::policies_by_machine"]),
    ("job_order", &["twin::orders_inside", "first_in_order::"]),
    ("sim/src/policy", &["quota_policy::"]),
    ("sim/", &["twin_machines::", "first_in_order::", "quota_policy::"]),
    ("policies/src/quota", &["quota_policy::", "quota_twin::", "twin_machines::groups"]),
    ("policies/src/expr", &["expressions::they_do_as", "expressions::their_orders"]),
    ("fair/src/water", &["quota_policy::", "quota_twin::", "water::many"]),
    ("", &["twin::policies", "expressions::they_do_as_the_built_in"]),
];

/// Tests of the modules above that do not run the simulator.
const NO_COMPARISONS: [&str; 2] = ["the_comparison_sees_every_field", "the_draws_reach_the_corners"];

/// The number of cases of each comparison in the passes before the last. Most mutants are detected by the first cases.
const FIRST_CASES: u32 = 12;

/// The function that mutants in the copy call.
const SELECTED: &str = r#"
/// Returns whether the mutant of this number is selected.
pub fn mutant(number: u32) -> bool {
    static SELECTED: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *SELECTED.get_or_init(|| std::env::var("PLIMSOLL_MUTANT").ok()?.parse().ok()) == Some(number)
}
"#;

/// One wrong version of the simulator.
struct Mutant {
    name: &'static str,
    /// The file of the sources, relative to the root.
    file: &'static str,
    /// Text that occurs once in the file: the part before the replaced part, the replaced part, and the part after it.
    text: [&'static str; 3],
    replacement: &'static str,
    /// The reason why no comparison detects the mutant, if it is known.
    survives: Option<&'static str>,
}

/// Reads the list. Panics at an invalid entry.
fn list() -> Vec<Mutant> {
    let entries = LIST.split("\n\n").map(|entry| entry.lines().filter(|line| !line.starts_with('#')).collect());
    let entries = entries.filter(|lines: &Vec<&str>| !lines.is_empty());
    let read = |lines: Vec<&'static str>| {
        let (head, survives) = match lines[..] {
            [head, _, _, _] => (head, None),
            [head, _, _, _, reason] => (head, Some(reason.strip_prefix("survives: ").expect(reason))),
            _ => panic!("an entry has four lines, or five if it is known to survive:\n{}", lines.join("\n")),
        };
        let name = head.split_once(": ").expect(head).0;
        let (before, rest) = lines[2].split_once('«').expect(name);
        let (replaced, after) = rest.split_once('»').expect(name);
        Mutant { name, file: lines[1], text: [before, replaced, after], replacement: lines[3], survives }
    };
    entries.map(read).collect()
}

/// Replaces each run of white space by one blank. Returns the text and the position of each of its bytes in the original text.
fn squeezed(text: &str) -> (String, Vec<usize>) {
    let (mut squeezed, mut positions) = (String::new(), Vec::new());
    for (at, char) in text.char_indices() {
        if !char.is_whitespace() {
            squeezed.push(char);
            positions.extend(at..at + char.len_utf8());
        } else if !squeezed.ends_with(' ') {
            squeezed.push(' ');
            positions.push(at);
        }
    }
    positions.push(text.len());
    (squeezed, positions)
}

impl Mutant {
    /// Returns the position of the replaced part in the sources. Errors: the text does not occur exactly once.
    fn place(&self, source: &str) -> Result<Range<usize>, String> {
        let (source, positions) = squeezed(source);
        let [before, replaced, after] = self.text.map(|part| squeezed(part).0);
        let text = [&*before, &replaced, &after].concat();
        let found: Vec<usize> = source.match_indices(&text).map(|(at, _)| at + before.len()).collect();
        match found[..] {
            [at] => Ok(positions[at]..positions[at + replaced.len()]),
            _ => Err(format!("{}: the text occurs {} times in {}: {text}", self.name, found.len(), self.file)),
        }
    }

    /// Returns code that behaves like the replaced part unless this mutant is selected.
    fn code(&self, number: usize, original: &str) -> String {
        let code = format!("if plimsoll_base::mutant({number}) {{ {} }} else {{ {original} }}", self.replacement);
        if original.ends_with([';', '}']) { code } else { format!("({code})") }
    }
}

/// Returns the sources with all mutants. Errors: entries that do not apply, or overlap with other entries.
fn mutated(list: &[Mutant]) -> Result<BTreeMap<&'static str, String>, Vec<String>> {
    let mut errors = Vec::new();
    let mut places: BTreeMap<&'static str, Vec<(Range<usize>, usize)>> = BTreeMap::new();
    let mut sources: BTreeMap<&'static str, String> = BTreeMap::new();
    for (at, mutant) in list.iter().enumerate() {
        let source = sources
            .entry(mutant.file)
            .or_insert_with(|| std::fs::read_to_string(root().join(mutant.file)).unwrap_or_default());
        match mutant.place(source) {
            Ok(place) => places.entry(mutant.file).or_default().push((place, at)),
            Err(error) => errors.push(error),
        }
    }
    for (file, mut places) in places {
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        for pair in places.windows(2).filter(|pair| pair[1].0.end > pair[0].0.start) {
            errors.push(format!("{} and {} overlap", list[pair[1].1].name, list[pair[0].1].name));
        }
        let source = sources.get_mut(file).expect("a source with mutants");
        for (place, at) in places {
            let code = list[at].code(at + 1, &source[place.clone()]);
            source.replace_range(place, &code);
        }
    }
    if errors.is_empty() { Ok(sources) } else { Err(errors) }
}

/// Every entry applies to the present sources. A change of the sources may require a change of an entry.
#[test]
fn the_list_applies_to_the_sources() {
    let list = list();
    assert!(list.len() >= 100, "{} mutants", list.len());
    let names: std::collections::BTreeSet<&str> = list.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), list.len(), "two mutants have the same name");
    let same = list.iter().filter(|mutant| mutant.text[1] == mutant.replacement).map(|mutant| mutant.name);
    assert_eq!(same.collect::<Vec<_>>(), [""; 0], "the replacement is the replaced part");
    if let Err(errors) = mutated(&list) {
        panic!("{} entries do not apply:\n{}", errors.len(), errors.join("\n"));
    }
}

/// Builds the tests of the copy.
fn build(copy: &Path, target: &Path) -> TestProgram {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline", "--release", "--no-run", "--test", "it", "--message-format=json"]);
    // A lower level for the crates of the workspace: builds take half of the time, and the runs are dominated by the start of programs.
    // Dependencies keep their level, so that they are those of other builds.
    let crates = std::fs::read_dir(copy.join("crates")).expect("the crates").map(|entry| entry.expect("a crate"));
    let crates = crates.map(|entry| format!("plimsoll-{}", entry.file_name().to_string_lossy()));
    for name in crates.chain(["plimsoll".to_owned()]) {
        cargo.arg("--config").arg(format!("profile.release.package.{name}.opt-level=1"));
    }
    cargo.args(["--config", "profile.release.incremental=true"]);
    let done = cargo.current_dir(copy).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit()).output();
    let done = done.expect("cargo runs");
    let messages = String::from_utf8_lossy(&done.stdout).into_owned();
    let json = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let (mut errors, mut program) = (String::new(), None);
    for message in json {
        if message["message"]["level"] == "error" {
            errors += message["message"]["rendered"].as_str().unwrap_or_default();
        }
        if message["target"]["name"] == "it" {
            program = message["executable"].as_str().map(PathBuf::from).or(program);
        }
    }
    assert!(done.status.success(), "the copy with the mutants does not compile:\n{errors}");
    TestProgram { file: program.expect("a program of tests"), folder: copy.to_owned() }
}

/// A program of tests with all mutants, and its working folder.
struct TestProgram {
    file: PathBuf,
    folder: PathBuf,
}

/// The result of the comparisons of one mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Survived,
    /// The test that failed first, or the reason for the end of the process.
    Killed(String),
}

/// Runs comparisons until the first one fails.
fn compare(program: &TestProgram, tests: &[&str], number: usize, cases: Option<u32>, limit: Duration) -> Verdict {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(&program.file);
    command.current_dir(&program.folder);
    command.args(tests).args(NO_COMPARISONS.iter().flat_map(|name| ["--skip", name])).arg("--test-threads=2");
    command.env("PLIMSOLL_MUTANT", number.to_string()).env("TMPDIR", temporary.path());
    // No reduction: the first failing case ends the test.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    if let Some(cases) = cases {
        command.env("PROPTEST_CASES", cases.to_string());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().expect("the tests start");
    let (sender, receiver) = channel();
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let reader = std::thread::spawn(move || {
        // The receiver is dropped after a failure.
        output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
    });
    let (end, mut passed) = (Instant::now() + limit, false);
    let verdict = loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.ends_with(" FAILED") => {
                let name = line.trim_start_matches("test ").split(' ').next().unwrap_or_default();
                break Verdict::Killed(name.to_owned());
            }
            Ok(line) => passed |= line.starts_with("test result: ok. ") && !line.starts_with("test result: ok. 0 "),
            Err(RecvTimeoutError::Timeout) => break Verdict::Killed("no end".to_owned()),
            Err(RecvTimeoutError::Disconnected) if passed => break Verdict::Survived,
            Err(RecvTimeoutError::Disconnected) => break Verdict::Killed("abort".to_owned()),
        }
    };
    drop(receiver);
    // Also ends the programs that the tests have started.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    child.wait().expect("the tests end");
    reader.join().expect("the reader ends");
    verdict
}

/// Returns the time after which a process is considered not to end, from the time of a process without a mutant.
fn limit(usual: Duration) -> Duration {
    usual * 2 + Duration::from_secs(60)
}

/// Measures how many mutants the comparisons kill.
#[test]
#[ignore = "builds a copy of the sources and runs the comparisons for each mutant: an hour or more"]
fn comparisons_kill_mutants() {
    let list = list();
    let sources = mutated(&list).unwrap_or_else(|errors| panic!("{}", errors.join("\n")));
    let folder = std::env::var_os("PLIMSOLL_MUTANTS_FOLDER").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants"));
    let mut changed = sources;
    let base = std::fs::read_to_string(root().join("crates/base/src/lib.rs")).expect("the sources");
    changed.insert("crates/base/src/lib.rs", base + SELECTED);
    copy_sources(&folder.join("sources"), &changed);
    let program = build(&folder.join("sources"), &folder.join("target"));
    let listed = Command::new(&program.file).arg("--list").output().expect("the tests start");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for name in COMPARISONS.iter().chain(FIRST_COMPARISONS.iter().flat_map(|(_, tests)| *tests)) {
        assert!(listed.contains(name), "no test is called {name}");
    }
    let mut limits = Vec::new();
    for cases in [Some(FIRST_CASES), None] {
        let begin = Instant::now();
        let verdict = compare(&program, &COMPARISONS, 0, cases, Duration::from_secs(7200));
        assert_eq!(verdict, Verdict::Survived, "without a mutant");
        limits.push((cases, limit(begin.elapsed())));
        println!("without a mutant: {:.1} s", begin.elapsed().as_secs_f64());
    }
    let wanted = std::env::var("PLIMSOLL_MUTANTS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_wanted = |(at, mutant): &(usize, &Mutant)| {
        wanted.is_empty() || wanted.iter().any(|name| *name == mutant.name || *name == (at + 1).to_string())
    };
    let mut sums: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut problems = String::new();
    for (at, mutant) in list.iter().enumerate().filter(is_wanted) {
        let begin = Instant::now();
        let first = FIRST_COMPARISONS.iter().find(|(part, _)| mutant.file.contains(part)).map_or(&[][..], |row| row.1);
        let all = limits.iter().map(|(cases, limit)| (&COMPARISONS[..], *cases, *limit));
        let passes = std::iter::once((first, Some(FIRST_CASES), limits[0].1)).chain(all);
        let verdicts = { passes }.map(|(tests, cases, limit)| compare(&program, tests, at + 1, cases, limit));
        let verdict = { verdicts }.find(|verdict| *verdict != Verdict::Survived).unwrap_or(Verdict::Survived);
        let sum = sums.entry(mutant.file.split('/').nth(1).unwrap_or_default()).or_default();
        *sum = [sum[0] + usize::from(verdict != Verdict::Survived), sum[1] + 1];
        let text = match &verdict {
            Verdict::Killed(by) => format!("killed by {by}"),
            Verdict::Survived => "SURVIVED".to_owned(),
        };
        println!("{:4} {:28} {text} ({:.1} s)", at + 1, mutant.name, begin.elapsed().as_secs_f64());
        match (&verdict, mutant.survives) {
            (Verdict::Survived, None) => writeln!(problems, "{} survived", mutant.name).expect("a string"),
            (Verdict::Killed(by), Some(_)) => {
                writeln!(problems, "{} is killed by {by}, and the list calls it a survivor", mutant.name)
                    .expect("a string")
            }
            _ => {}
        }
    }
    for (name, [killed, mutants]) in &sums {
        println!("{name:10} {killed} of {mutants} killed");
    }
    let sum = |at: usize| sums.values().map(|sums| sums[at]).sum::<usize>();
    println!("all        {} of {} killed", sum(0), sum(1));
    assert!(problems.is_empty(), "{problems}");
}
