//! Wrong input, given to the binary: exit code 2, and a message with the location, the problem, and the accepted input.

use std::path::Path;
use std::process::Command;

use crate::replay::{files, plimsoll, run, said};

/// One wrong input: the name and the bytes of the trace, further arguments, and parts that the message must contain.
struct Wrong {
    what: &'static str,
    file: &'static str,
    trace: Vec<u8>,
    args: &'static [&'static str],
    says: &'static [&'static str],
}

const HEADER: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n";
const GOOD: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,u,0,10,2,1,1\nb,v,1,10,1,1,1\n";

/// Returns a wrong trace `t.csv`: wrong rows under the usual header.
fn rows(what: &'static str, rows: &str, says: &'static [&'static str]) -> Wrong {
    trace(what, &format!("{HEADER}{rows}"), says)
}

fn trace(what: &'static str, trace: &str, says: &'static [&'static str]) -> Wrong {
    Wrong { what, file: "t.csv", trace: trace.as_bytes().to_vec(), args: &[], says }
}

/// Returns wrong arguments with a valid trace.
fn args(what: &'static str, args: &'static [&'static str], says: &'static [&'static str]) -> Wrong {
    Wrong { args, ..trace(what, GOOD, says) }
}

fn table() -> Vec<Wrong> {
    let staged = "job,user,submit_s,duration_s,cpu,stage,after,priority\n";
    let gpu = "job,user,submit_s,duration_s,cpu,gpu\na,u,0,10,1,1\n";
    vec![
        trace("empty file", "", &["t.csv", "empty"]),
        trace("blank file", "\n\n", &["t.csv"]),
        trace("header only", HEADER, &["t.csv"]),
        trace("missing column", "job,user,submit_s,tasks,cpu\na,u,0,1,1\n", &["t.csv", "duration_s"]),
        trace("missing submit", "job,user,duration_s,cpu\na,u,0,1\n", &["t.csv", "submit_s"]),
        trace("no resource", "job,user,submit_s,duration_s\na,u,0,1\n", &["t.csv", "cpu"]),
        trace("a column twice", "job,user,submit_s,duration_s,cpu,cpu\na,u,0,1,1,1\n", &["t.csv", "cpu"]),
        trace(
            "a misspelt column",
            "job,user,submit_s,duration_s,cpu,priorty\na,u,0,1,1,1\n",
            &["t.csv", "line 1", "priorty", "did you mean 'priority'", "--resource priorty"],
        ),
        trace(
            "memory without unit",
            "job,user,submit_s,duration_s,memory\na,u,0,1,1\n",
            &["has no unit", "memory_gib"],
        ),
        trace(
            "memory in a unit of another tool",
            "job,user,submit_s,duration_s,cpu,memory_gb\na,u,0,1,1,1\n",
            &["memory_gb", "did you mean 'memory_gib'"],
        ),
        trace(
            "another name of a required column",
            "job_id,user,submit_s,duration_s,cpu\na,u,0,1,1\n",
            &["column 'job': is missing", "rename job_id to job"],
        ),
        trace("JSON", "{\"jobs\": [1]}\n", &["t.csv: is in no known format", "JSON"]),
        trace(
            "no header",
            "M1,2,j_10,x,100,160,0.5\n",
            &["no known format", "7 fields", "no header", "plimsoll trace guess"],
        ),
        trace("log", "M1,2,j_10,1,Terminated,100,160,100,0.5\n", &["format alibaba-2018", "plimsoll trace import"]),
        trace("semicolons", "job;user;submit_s\na;u;1\n", &["separated by semicolons", "has commas"]),
        trace(
            "a column of another tool",
            "job,user,submit_s,duration_s,cpu,exit_code\na,u,0,1,1,0\n",
            &["t.csv", "line 1", "exit_code", "not a trace column", "resources = [\"exit_code\"]"],
        ),
        trace(
            "two units of one time",
            "job,user,submit_s,submit_ms,duration_s,cpu\na,u,0,0,1,1\n",
            &["t.csv", "submit_"],
        ),
        rows("not a number", "a,u,0,ten,1,1,1\n", &["t.csv", "line 2", "duration_s", "ten", "not a number"]),
        rows("nan", "a,u,0,10,1,NaN,1\n", &["t.csv", "line 2", "cpu", "NaN", "not finite"]),
        rows("infinite", "a,u,0,inf,1,1,1\n", &["t.csv", "line 2", "duration_s", "inf", "not finite"]),
        rows("negative", "a,u,0,10,1,1,1\nb,u,0,10,1,1,-2\n", &["t.csv", "line 3", "memory_gib", "-2", "negative"]),
        rows("negative time", "a,u,-1,10,1,1,1\n", &["t.csv", "line 2", "submit_s", "-1", "negative"]),
        rows("overflow", "a,u,0,1e300,1,1,1\n", &["t.csv", "line 2", "duration_s", "1e300", "too large"]),
        rows("overflow of a demand", "a,u,0,1,1,1e300,1\n", &["t.csv", "line 2", "cpu", "1e300", "too large"]),
        rows(
            "a time past the clock",
            "a,u,99999999999999999999,1,1,1,1\n",
            &["t.csv", "line 2", "submit_s", "too large"],
        ),
        rows("empty field", "a,u,,10,1,1,1\n", &["t.csv", "line 2", "submit_s"]),
        rows("tasks 0", "a,u,0,10,0,1,1\n", &["t.csv", "line 2", "tasks", "0"]),
        rows("tasks in part", "a,u,0,10,1.5,1,1\n", &["t.csv", "line 2", "tasks", "1.5"]),
        rows("too many tasks", "a,u,0,10,99999999999,1,1\n", &["t.csv", "line 2", "tasks", "99999999999"]),
        rows("short row", "a,u,0,10,1,1,1\nb,u,0,10\n", &["t.csv", "line 3"]),
        rows(
            "an open quote",
            "a,u,0,10,1,1,1\nb,\"u,0,10,1,1,1\nc,u,0,10,1,1,1\n",
            &["t.csv", "line 3", "a quote opened on this line is not closed"],
        ),
        rows("an open quote on the last line", "a,u,0,10,1,1,\"1", &["t.csv", "line 2", "not closed"]),
        rows("a user of blanks", "a, ,0,10,1,1,1\n", &["t.csv", "line 2", "user", "is empty"]),
        rows(
            "a name that moves the cursor",
            "a\u{1b}[2J,u,0,1,1,1,1\nb,u,1,1,1,1,1\na\u{1b}[2J,u,5,1,1,1,1\n",
            &["job 'a\\u{1b}[2J'"],
        ),
        rows("a long row", "a,u,0,10,1,1,1,9,9\n", &["t.csv", "line 2"]),
        rows("disorder", "a,u,0,1,1,1,1\nb,u,9,1,1,1,1\nc,u,4,1,1,1,1\n", &["t.csv", "line 4", "submit_s"]),
        rows("a job that comes again", "a,u,0,1,1,1,1\nb,u,1,1,1,1,1\na,u,5,1,1,1,1\n", &["t.csv", "line 4", "job"]),
        rows("a NUL in a number", "a,u,0,1,1,1,1\nb,u,0,\u{0},1,1,1\n", &["t.csv", "line 3", "duration_s"]),
        Wrong {
            trace: [HEADER.as_bytes(), b"a,u,0,1,1,1,1\nb,J\xfcrgen,0,1,1,1,1\n"].concat(),
            ..trace("Latin-1", "", &["t.csv", "line 3", "user", "UTF-8"])
        },
        rows(
            "too many tasks of a job",
            "a,u,0,1,2147483647,1,1\na,u,0,1,1,1,1\n",
            &["t.csv", "line 3", "tasks", "more than 2,147,483,647"],
        ),
        trace("priority 12", &format!("{staged}a,u,0,1,1,,,12\n"), &["t.csv", "line 2", "priority", "12"]),
        trace(
            "after nothing",
            &format!("{staged}a,u,0,1,1,map,,0\na,u,0,1,1,,mop,0\n"),
            &["t.csv", "line 3", "after", "mop"],
        ),
        trace("a resource that the cluster lacks", gpu, &["gpu"]),
        Wrong {
            file: "t.parquet",
            ..trace("truncated Parquet", &format!("PAR1{}", "\u{1}".repeat(96)), &["t.parquet"])
        },
        trace("10 MB in one line", &"x".repeat(10 << 20), &["t.csv"]),
        rows("10 MB in one field", &format!("a,u,0,{},1,1,1\n", "7".repeat(10 << 20)), &["t.csv", "line 2"]),
        args("unknown policy", &["--policy", "drff"], &["drff", "did you mean 'drf'", "fifo", "plimsoll policies"]),
        args("slots without number", &["--policy", "slot"], &["slot"]),
        args("no slots", &["--policy", "slot:0"], &["slot:0"]),
        args("max-min of nothing", &["--policy", "maxmin:disk"], &["disk", "cpu"]),
        args("machines of nothing", &["--machines", "16c32g"], &["--machines", "16c32g", "400x16c32g"]),
        args("machines of unknowns", &["--machines", "4x16q"], &["--machines", "4x16q"]),
        args("no machines", &["--machines", "0x16c32g"], &["--machines", "0x16c32g"]),
        args("a horizon that is no time", &["--until", "soon"], &["--until", "soon"]),
        args("unknown placement", &["--placement", "last-fit"], &["--placement", "last-fit", "first-fit"]),
        args("unknown reaction", &["--on-blocked", "wait"], &["--on-blocked", "wait", "skip", "stop"]),
        args(
            "unknown ties",
            &["--ties", "random"],
            &["--ties", "random", "least-recently-served", "lowest-id", "highest-id", "fewest-running"],
        ),
    ]
}

const MACHINES: &[&str] = &["--machines", "2x4c8g"];
const POLICY: &[&str] = &["--policy", "drf"];

/// Returns the usual arguments, except arguments that the case sets itself.
fn arguments(own: &'static [&'static str]) -> Vec<&'static str> {
    let usual = [MACHINES, POLICY].into_iter().filter(|usual| !own.contains(&usual[0])).flatten();
    usual.chain(own).copied().collect()
}

/// Runs one replay and checks the conditions for all wrong input. Returns the first violation as an error.
pub fn refused(what: &str, dir: &Path, trace: &Path, args: &[&str], says: &[&str]) -> Result<(), String> {
    judged(what, dir, plimsoll(&["replay"]).arg(trace).args(args), says)
}

/// Applies the same checks to any command that has an output.
fn judged(what: &str, dir: &Path, command: &mut Command, says: &[&str]) -> Result<(), String> {
    let out = dir.join("out");
    let output = run(command.arg("-o").arg(&out));
    let message = said(&output);
    let shown: String = message.trim_end().chars().take(500).collect();
    let left: Vec<_> =
        files(&out).into_iter().filter(|path| path.extension().is_some_and(|e| e == "parquet")).collect();
    let wrong = if output.status.code() != Some(2) {
        format!("{} instead of exit code 2", output.status)
    } else if let Some(missing) = says.iter().find(|part| !message.contains(*part)) {
        format!("{missing:?} is not in the message")
    } else if message.len() > 2000 {
        format!("a message of {} bytes echoes its input", message.len())
    } else if !output.stdout.is_empty() {
        "results on stdout although the input was wrong".to_owned()
    } else if !left.is_empty() {
        format!("tables left behind: {left:?}")
    } else {
        return Ok(());
    };
    Err(format!("{what}: {wrong}; the message: {shown}"))
}

/// Fails with all problems at once, so that one run shows everything that must be fixed.
pub fn all(results: Vec<Result<(), String>>) {
    let tried = results.len();
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of {tried} inputs:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_wrong_input_is_refused_with_its_place_and_value() {
    let attempt = |wrong: Wrong| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let trace = dir.path().join(wrong.file);
        std::fs::write(&trace, &wrong.trace).expect("a temporary file is writable");
        refused(wrong.what, dir.path(), &trace, &arguments(wrong.args), wrong.says)
    };
    all(table().into_iter().map(attempt).collect());
}

/// A plan. Messages number its lines from 1.
const PLAN: &str = "name = \"p\"\npolicies = [\"drf\", \"fifo\"]\nseeds = 2\n[cluster]\nmachines = \"4x4c8g\"\n\
                    placement = \"first-fit\"\n[workload]\ngenerator = \"facebook\"\nhours = 0.01\n";
const CHECK: &str = "name = \"p\"\n[check]\npolicies = [\"drf\", \"asset\"]\neffort = \"quick\"\n";
const SOLVE: &str = "name = \"p\"\n[solve]\ninstances = [\"i.toml\"]\npolicies = [\"drf\"]\n";
const FAILOVER: &str = "name = \"p\"\n[failover]\nscenarios = [\"1\"]\n";
const INSTANCE: &str = "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n";

/// A plan, the text to replace in it, the replacement, and the parts that the message must contain. An empty text to replace means that
/// the replacement is appended.
type WrongPlan = (&'static str, &'static str, &'static str, &'static [&'static str]);

const PLANS: [WrongPlan; 44] = [
    (PLAN, "\"drf\"", "\"dfr\"", &["line 2, column 13", "policies: 'dfr'", "did you mean 'drf'", "plimsoll policies"]),
    (PLAN, "\"fifo\"", "\"fiffo\"", &["line 2, column 20", "did you mean 'fifo'"]),
    (PLAN, "\"drf\"", "\"slot\"", &["line 2, column 13", "slot:12"]),
    (PLAN, "\"drf\"", "\"maxmin:disk\"", &["line 2, column 13", "cpu, memory, not 'disk'"]),
    (PLAN, "\"drf\"", "\"quota:gone.toml\"", &["line 2, column", "gone.toml", "can be read"]),
    (PLAN, "\"drf\"", "\"quota:@a\"", &["line 2, column 13", "[quota.a]"]),
    (PLAN, "\"drf\"", "\"fifo\"", &["line 2, column", "each policy once"]),
    (PLAN, "\"drf\"", "3", &["line 2, column 13", "expected a string"]),
    (PLAN, "name = \"p\"", "", &["line 2, column 1", "missing field `name`"]),
    (PLAN, "facebook", "facebok", &["line 8, column 13", "did you mean 'facebook'"]),
    (PLAN, "\"facebook\"", "3", &["line 8, column 13", "workload.generator", "closed-loop"]),
    (PLAN, "hours", "hurs", &["line 9, column 1", "Did you mean 'hours'"]),
    (PLAN, "0.01", "-1", &["line 9, column 9", "above 0"]),
    (PLAN, "seeds = 2", "seeds = 2\nbaseline = \"dfr\"", &["line 4, column 12", "did you mean 'drf'"]),
    (PLAN, "seeds = 2", "seeds = 2\ntables = [\"runs\", \"jobbs\"]", &["line 4, column 19", "did you mean 'jobs'"]),
    (
        PLAN,
        "seeds = 2",
        "seeds = \"until 2 % half-width of speed_jian, at most 9\"",
        &["line 3, column 9", "did you mean 'speed_jain'"],
    ),
    (PLAN, "seeds = 2", "seeds = 2\nweights = \"gone.csv\"", &["line 4, column 11", "weights", "can be read"]),
    (PLAN, "seeds = 2", "seeds = 2\nmeasure = { form = \"2h\" }", &["line 4, column 13", "Did you mean 'from'"]),
    (PLAN, "4x4c8g", "4x4q", &["line 5, column 12", "400x16c32g"]),
    (PLAN, "4x4c8g", "gone.csv", &["line 5, column 12", "cluster.machines", "can be read"]),
    (PLAN, "machines", "machnes", &["line 5, column 1", "Did you mean 'machines'"]),
    (
        PLAN,
        "machines = \"4x4c8g\"",
        "group = [{ count = 4, cpu = 4 }]",
        &["line 4, column", "the cluster has no memory"],
    ),
    (PLAN, "first-fit", "first_fit", &["line 6, column 13", "did you mean 'first-fit'"]),
    (PLAN, "[workload]", "on_blocked = \"skp\"\n[workload]", &["line 7, column 14", "did you mean 'skip'"]),
    (PLAN, "[workload]", "ties = \"lowest\"\n[workload]", &["line 7, column 8", "did you mean 'lowest-id'"]),
    (PLAN, "[workload]", "events = \"gone.csv\"\n[workload]", &["line 7, column 10", "can be read"]),
    (PLAN, "[workload]", "devices = [\"gpuu\"]\n[workload]", &["line 7, column 12", "cluster.devices"]),
    (PLAN, "[workload]", "fall_back = \"nver\"\n[workload]", &["line 7, column 13", "or never"]),
    (PLAN, "generator = \"facebook\"\nhours = 0.01", "trace = \"gone.csv\"", &["line ", "column ", "seeds"]),
    (PLAN, "", "[sweep]\n\"cluster.placement\" = [\"best_fit\"]\n", &["line 11, column", "did you mean 'best-fit'"]),
    (
        PLAN,
        "",
        "[[figure]]\nkind = \"bars\"\nx = \"laod\"\ny = \"speed_jain\"\n",
        &["line 12, column 5", "figure[0].x"],
    ),
    (PLAN, "", "[figures]\npreset = \"ieeee\"\n", &["line 11, column 10", "did you mean 'ieee'"]),
    (CHECK, "asset", "aset", &["line 3, column 20", "did you mean 'asset'"]),
    (CHECK, "quick", "quik", &["line 4, column 10", "did you mean 'quick'"]),
    (CHECK, "", "porperties = []\n", &["line 5, column 1", "Did you mean 'properties'"]),
    (CHECK, "", "properties = [\"envy\"]\n", &["line 5, column 15", "envy-freeness"]),
    (CHECK, "", "[figures]\npreset = \"acn\"\n", &["line 6, column 10", "did you mean 'acm'"]),
    (CHECK, "", "[[figure]]\nkind = \"bars\"\n", &["line 5, column 3", "[figures]"]),
    (SOLVE, "\"drf\"", "\"dfr\"", &["line 4, column 13", "did you mean 'drf'"]),
    (SOLVE, "i.toml", "gone.toml", &["line 3, column 14", "can be read"]),
    (SOLVE, "policies", "polices", &["line 4, column 1", "Did you mean 'policies'"]),
    (FAILOVER, "\"1\"", "\"fm-failovr\"", &["line 3, column 14", "did you mean 'fm-failover'"]),
    (FAILOVER, "", "without = [\"clam\"]\n", &["line 4, column 12", "did you mean 'clamp'"]),
    (FAILOVER, "", "heartbeet = \"1s\"\n", &["line 4, column 1", "Did you mean 'heartbeat'"]),
];

#[test]
fn every_wrong_plan_is_refused_with_its_line_and_what_was_meant() {
    let attempt = |(plan, from, to, says): WrongPlan| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (file, instance) = (dir.path().join("p.toml"), dir.path().join("i.toml"));
        let text = if from.is_empty() { format!("{plan}{to}") } else { plan.replacen(from, to, 1) };
        std::fs::write(&file, text).expect("a temporary file is writable");
        std::fs::write(&instance, INSTANCE).expect("a temporary file is writable");
        judged(to, dir.path(), plimsoll(&["run", "-q"]).arg(&file), says)
    };
    all(PLANS.into_iter().map(attempt).collect());
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().join("folder.csv");
    std::fs::create_dir(&folder).expect("a temporary folder");
    let args = arguments(&[]);
    let missing = dir.path().join("missing.csv");
    let inside = folder.join("none.csv");
    all(vec![
        refused("a directory", dir.path(), &folder, &args, &["folder.csv", "is a folder; expected a file"]),
        refused("a missing file", dir.path(), &missing, &args, &["missing.csv"]),
        refused("a missing file in a folder", dir.path(), &inside, &args, &["none.csv"]),
    ]);
}

#[test]
fn wrong_weights_are_refused() {
    let table: [(&str, &str, &[&str]); 8] = [
        ("zero", "user,weight\nu,0\n", &["w.csv", "line 2", "weight", "0"]),
        ("negative", "user,weight\nu,1\nv,-1\n", &["w.csv", "line 3", "weight", "-1"]),
        ("not a number", "user,weight\nu,heavy\n", &["w.csv", "line 2", "weight", "heavy"]),
        ("unknown resource", "user,cpu,disk_gib\nu,1,1\n", &["w.csv", "disk_gib", "cpu"]),
        ("no user column", "name,weight\nu,1\n", &["w.csv", "user"]),
        ("a user twice", "user,weight\nu,1\nu,2\n", &["w.csv", "line 3", "user"]),
        ("ragged", "user,weight\nu\n", &["w.csv", "line 2"]),
        ("empty", "", &["w.csv"]),
    ];
    let attempt = |(what, weights, says): (&str, &str, &[&str])| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (trace, file) = (dir.path().join("t.csv"), dir.path().join("w.csv"));
        std::fs::write(&trace, GOOD).expect("a temporary file is writable");
        std::fs::write(&file, weights).expect("a temporary file is writable");
        let file = file.to_str().expect("temporary paths are text");
        let args: Vec<&str> = arguments(&[]).into_iter().chain(["--weights", file]).collect();
        refused(what, dir.path(), &trace, &args, says)
    };
    all(table.into_iter().map(attempt).collect());
}

#[test]
fn a_task_that_fits_no_machine_is_reported_and_holds_up_nobody() {
    let trace = format!("{HEADER}big,u,0,10,3,5,1\nsmall,u,0,10,1,1,1\n");
    for on_blocked in ["skip", "stop"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("t.csv");
        std::fs::write(&file, &trace).expect("a temporary file is writable");
        let args = arguments(&["--placement", "first-fit"]);
        let mut command = plimsoll(&["replay"]);
        command.arg(&file).args(args).args(["--on-blocked", on_blocked, "--tasks", "-o"]).arg(dir.path().join("out"));
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let everything = format!("{}{}", said(&output), String::from_utf8_lossy(&output.stdout));
        assert!(everything.contains("never started") && everything.contains("too large"), "{everything}");
        let tasks = crate::replay::read_tasks(&dir.path().join("out"), "drf").expect("the tasks table");
        let mut started: Vec<(&str, Option<u64>)> = tasks.iter().map(|(job, o)| (job.as_str(), o.start)).collect();
        started.sort();
        assert_eq!(started, [("big", None), ("big", None), ("big", None), ("small", Some(0))]);
    }
}

#[test]
fn names_that_differ_in_blanks_are_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = format!("{HEADER}a,ann,0,10,1,1,1\nb,ann ,0,10,1,1,1\nb ,\" ann\",0,10,1,1,1\n");
    let (csv, parquet) = (dir.path().join("t.csv"), dir.path().join("t.parquet"));
    std::fs::write(&csv, &trace).expect("a temporary file is writable");
    let output = run(plimsoll(&["trace", "import"]).arg(&csv).arg("-o").arg(&parquet));
    assert!(said(&output).contains("3 rows, 2 jobs of 1 user"), "{}", said(&output));
    let weights = dir.path().join("w.csv");
    std::fs::write(&weights, "user,weight\n ann ,2\n").expect("a temporary file is writable");
    let quota = dir.path().join("q.toml");
    std::fs::write(&quota, "[[group]]\nname = \"g\"\nusers = [\"ann \"]\n").expect("a temporary file is writable");
    let policy = format!("quota:{}", quota.display());
    let args = ["--machines", "2x4c8g", "--policy", "drf", "--policy", &policy, "--weights"];
    let output = run(plimsoll(&["replay"]).arg(&parquet).args(args).arg(&weights));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// If standard error is a full disk, the message is lost, but the exit code is the same.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_said_changes_no_exit_code() {
    for (args, code) in [(&["replay", "gone.csv", "--machines", "4x4c", "--policy", "drf"][..], 2), (&["policies"], 0)]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let status = plimsoll(args).stderr(full).stdout(std::process::Stdio::null()).status().expect("it starts");
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

#[test]
#[cfg(unix)]
fn devices_are_refused_wherever_a_small_file_is_read() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = dir.path().join("t.csv");
    std::fs::write(&trace, GOOD).expect("a temporary file is writable");
    let zero = Path::new("/dev/zero");
    let given = |own: &'static [&'static str]| refused(own[0], dir.path(), &trace, &arguments(own), &["a device"]);
    all(vec![
        given(&["--weights", "/dev/zero"]),
        given(&["--policy", "quota:/dev/zero"]),
        given(&["--machine-events", "/dev/zero", "--placement", "first-fit"]),
        refused("a trace", dir.path(), zero, &arguments(&[]), &["a device"]),
    ]);
}

#[test]
fn a_trace_comes_from_standard_input_too() {
    use std::io::Write;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command = plimsoll(&["replay", "-"]);
    command.args(arguments(&[])).arg("-o").arg(dir.path().join("out"));
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("a pipe");
    // The program may exit before it reads its input. Then its message, which is checked below, is more useful than a broken pipe.
    let _ = input.write_all(b"job,user,submit_s,duration_s,cpu\na,u,0,1,1\nb,u,0,x,1\n");
    drop(input);
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for part in ["line 3", "duration_s"] {
        assert!(said(&output).contains(part), "{}", said(&output));
    }
}
