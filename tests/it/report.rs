//! Figures and the report are redrawn from the tables alone, with the same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::replay::{files, plimsoll, run, said};

/// Two seeds of a few jobs under three policies.
const PLAN: &str = r#"
name = "tiny"
question = "Is 1 < 2 & 3 > 2?"
policies = ["slot:2", "drf", "fifo"]
baseline = "slot:2"
seeds = 2
[cluster]
machines = "4x4c8g"
[workload]
generator = "facebook"
hours = 0.02
"#;

/// Runs [`PLAN`] into a folder below `dir`.
pub fn results(dir: &Path, name: &str, threads: &str) -> PathBuf {
    let (plan, folder) = (dir.join("tiny.toml"), dir.join(name));
    std::fs::write(&plan, PLAN).expect("a writable folder");
    let output = run(plimsoll(&["run", "-j", threads, "-o"]).arg(&folder).arg(&plan));
    assert!(output.status.success(), "{}", said(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "Reduction of mean completion time against slot:2",
        "by job size",
        "Mean completion time against slot:2:",
        "under drf",
    ] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
    assert!(said(&output).contains("report.html"), "{}", said(&output));
    folder
}

/// Returns the bytes of all files below a folder except `run.json`, by path.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| {
        let name = path.strip_prefix(folder).expect("files of the folder").to_owned();
        (name, std::fs::read(&path).expect("a readable file"))
    };
    files(folder).into_iter().map(read).filter(|(name, _)| name != Path::new("run.json")).collect()
}

fn assert_equal(a: &BTreeMap<PathBuf, Vec<u8>>, b: &BTreeMap<PathBuf, Vec<u8>>) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in a {
        assert!(b[name] == *bytes, "{} differs", name.display());
    }
}

#[test]
fn figures_and_report_redraw_to_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = results(dir.path(), "one", "1");
    let before = bytes(&folder);
    for name in ["reduction", "completion", "utilisation", "fairness", "demands"] {
        for kind in ["svg", "png"] {
            assert!(before.contains_key(Path::new(&format!("figures/{name}.{kind}"))), "{name}.{kind}");
        }
    }
    assert_equal(&before, &bytes(&results(dir.path(), "two", "2")));
    for name in ["figures", "report.html"] {
        let path = folder.join(name);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.expect("it was there");
    }
    let one = run(plimsoll(&["plot", "--only", "reduction"]).arg(&folder));
    assert!(one.status.success(), "{}", said(&one));
    assert_eq!(files(&folder.join("figures")).len(), 4);
    let all = run(plimsoll(&["plot"]).arg(&folder));
    assert!(String::from_utf8_lossy(&all.stdout).lines().all(|file| Path::new(file).is_file()), "{}", said(&all));
    let report = run(plimsoll(&["report"]).arg(&folder));
    assert!(report.status.success(), "{}", said(&report));
    assert_equal(&before, &bytes(&folder));
}

#[test]
fn folders_that_hold_no_results_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let fails = |args: &[&str], folder: &Path, says: &[&str]| {
        let output = run(plimsoll(args).arg(folder));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        says.iter().for_each(|part| assert!(said(&output).contains(part), "{part} in {}", said(&output)));
    };
    fails(&["plot"], dir.path(), &["not a results folder", "experiment.json", "plimsoll run"]);
    fails(&["report"], &dir.path().join("absent"), &["absent", "not a results folder"]);
    let folder = results(dir.path(), "one", "2");
    fails(&["plot", "--only", "reductoin"], &folder, &["reductoin", "did you mean 'reduction'"]);
    let damaged = folder.join("bins/policy=drf/run=1/bins.parquet");
    let whole = std::fs::read(&damaged).expect("the table is there");
    std::fs::write(&damaged, &whole[..whole.len() / 2]).expect("a writable folder");
    fails(&["plot"], &folder, &["bins.parquet", "not as it was written"]);
    // A table must exist if a record lists it.
    std::fs::remove_dir_all(folder.join("bins")).expect("the table is there");
    fails(&["report"], &folder, &["bins.parquet", "this table is not there; run the plan again"]);
}

#[test]
fn tables_of_an_earlier_plan_are_not_mixed_in() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = results(dir.path(), "one", "2");
    let plan = dir.path().join("tiny.toml");
    let output = run(plimsoll(&["run", "--restart", "--set", "seeds=1", "-o"]).arg(&folder).arg(&plan));
    assert!(output.status.success(), "{}", said(&output));
    let mixed = std::fs::read(folder.join("report.html")).expect("a report");
    let output = run(plimsoll(&["run", "--set", "seeds=1", "-o"]).arg(dir.path().join("fresh")).arg(&plan));
    assert!(output.status.success(), "{}", said(&output));
    assert!(mixed == std::fs::read(dir.path().join("fresh/report.html")).expect("a report"));
    // A second replay, of another trace and without series, does not show the series of the first replay.
    let replay = |rows: &str, more: &[&str]| {
        let trace = dir.path().join("t.csv");
        std::fs::write(&trace, format!("job,user,submit_s,duration_s,cpu\n{rows}")).expect("a writable folder");
        let mut command = plimsoll(&["replay", "--report", "--machines", "1x4c", "--policy", "drf", "-o"]);
        let output = run(command.arg(dir.path().join("replayed")).arg(trace).args(more));
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let first = replay("a,u,0,100,1\n", &["--series"]);
    assert!(!first.contains("'utilisation'"), "{first}");
    let second = replay("b,v,0,100,1\n", &["--restart"]);
    assert!(second.contains("no figure 'utilisation'"), "{second}");
}

#[test]
fn the_schema_is_printed() {
    let output = run(&mut plimsoll(&["schema", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tables = json["tables"].as_array().expect("a list of tables");
    assert_eq!((tables.len(), &json["version"]), (20, &serde_json::json!(plimsoll::output::schema::VERSION)));
    let first = &tables[0]["columns"][0];
    assert_eq!((&first["name"], &first["type"]), (&serde_json::json!("policy"), &serde_json::json!("string")));
    let output = run(&mut plimsoll(&["schema", "users"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("dominant_share") && text.contains("used_<r>_s") && !text.contains("makespan_us"), "{text}");
    let output = run(&mut plimsoll(&["schema", "accelerator_jobs"]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("finish_us"));
    let output = run(&mut plimsoll(&["schema", "user"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("did you mean 'users'?"), "{}", said(&output));
}

/// Names of users are data. With any name, figures and the report are well-formed, and CSV files contain no formulas for spreadsheets.
#[test]
fn any_name_makes_figures_that_others_read() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let names = [
        "\u{FFFE}a",
        "\u{FFFF}b",
        "c\u{7F}\u{85}",
        "=HYPERLINK(1)",
        "+cmd|x",
        "-",
        "@d",
        "]]>",
        "</svg>&",
        "\u{1FFFE}",
    ];
    let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    let mut groups = String::new();
    for (at, name) in names.iter().enumerate() {
        trace += &format!("j{at},{name},{at},{},2,1,1\n", 5 + at);
        let name = toml::Value::from(*name);
        groups += &format!("[[group]]\nname = {name}\nusers = [{name}]\n");
    }
    std::fs::write(dir.path().join("trace.csv"), trace).expect("a writable folder");
    std::fs::write(dir.path().join("groups.toml"), groups).expect("a writable folder");
    let args =
        ["replay", "-q", "trace.csv", "--machines", "2x4c8g", "--policy", "drf", "--policy", "quota:groups.toml"];
    let output = run(plimsoll(&args).args(["--series", "--report", "-o", "out"]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    let all = files(&dir.path().join("out"));
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("a text");
    let of = |ending: &str| all.iter().filter(|path| path.extension().is_some_and(|e| e == ending)).collect::<Vec<_>>();
    assert!(of("svg").len() > 5 && of("csv").len() > 5 && of("html").len() == 1);
    for path in of("svg") {
        let svg = text(path);
        if let Err(error) = resvg::usvg::roxmltree::Document::parse(&svg) {
            panic!("{}: {error}", path.display());
        }
    }
    for path in of("html") {
        assert!(!text(path).contains(['\u{FFFE}', '\u{FFFF}', '\u{7F}', '\u{1FFFE}']), "{}", path.display());
    }
    let tables: String = of("csv").into_iter().map(text).collect();
    for name in ["'=HYPERLINK(1)", "'+cmd|x", "'-", "'@d"] {
        assert!(tables.contains(name), "{name}");
    }
    for name in [",=HYPERLINK", "\n=HYPERLINK", ",+cmd", "\n+cmd", ",@d", "\n@d", ",-,"] {
        assert!(!tables.contains(name), "{name}");
    }
    // Traces, which Plimsoll reads again, have unchanged names.
    let output = run(plimsoll(&["trace", "import", "trace.csv", "-o", "again.csv"]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    assert!(text(&dir.path().join("again.csv")).contains(",=HYPERLINK(1),"));
}
