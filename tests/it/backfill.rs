//! Backfilling: manually calculated schedules, a property, and refused combinations. `twin.rs` compares backfilling with its slow twin.

use std::path::Path;

use crate::property::search;
use crate::replay::{plimsoll, read_tasks, run, said};
use crate::slow::{OnBlocked, Outcome, Placement, Policy};
use crate::twin::command;
use crate::workloads::{Case, Weighting, job_name};

/// Returns the start second of each job, with all jobs of one user or of one user each, as gangs or as large tasks.
fn starts(rule: &str, users: bool, gangs: bool) -> Vec<(String, u64)> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    // Name, submission, duration, estimate, cores.
    let jobs = [("r", 0, 8, 10, 3), ("h", 1, 10, 10, 2), ("s", 2, 5, 5, 4), ("b", 3, 20, 20, 1), ("d", 4, 6, 6, 1)];
    let mut trace = "job,user,submit_s,duration_s,estimate_s,tasks,cpu,gang\n".to_owned();
    for (name, submit, duration, estimate, cores) in jobs {
        let user = if users { name } else { "ann" };
        let (tasks, each) = if gangs { (cores, 1) } else { (1, cores) };
        trace += &format!("{name},{user},{submit},{duration},{estimate},{tasks},{each},{gangs}\n");
    }
    std::fs::write(dir.path().join("t.csv"), trace).expect("a temporary file is writable");
    let mut command = plimsoll(&[
        "replay",
        "t.csv",
        "--machines",
        "2x2c",
        "--placement",
        "pooled",
        "--policy",
        "fifo",
        "--on-blocked",
        rule,
    ]);
    let output = run(command.args(["--audit", "--tasks", "-o", "out"]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    let tasks = read_tasks(&dir.path().join("out"), "fifo").expect("the tasks table");
    let mut starts: Vec<(String, u64)> =
        tasks.into_iter().map(|(job, task)| (job, task.start.expect("it starts") / 1_000_000)).collect();
    starts.sort_by_key(|(job, start)| (*start, jobs.iter().position(|known| known.0 == job)));
    starts.dedup();
    starts
}

/// Four cores. `r` is expected to end at 10 and ends at 8.
///
/// - `stop`: h waits for two cores and s for four. Each of them holds up all later jobs.
/// - `easy`: at 3, two of the four cores that are free at 10 are reserved for h, so b may run beyond 10. s has no reservation and waits
///   until 23. At 4 no core is left for d. At 8 d starts, because it ends before s can start.
/// - `conservative`: at 3, s has a reservation for 20, the expected end of h, and b would delay s. At 4 d starts, because it delays no
///   job. At 8, all reservations are recomputed and are two seconds earlier.
///
/// ```text
/// stop           0       8         18   23  28 29       43
///                rrrrrrrr hhhhhhhhhh sssss bbbbbbbbbbbbbbbb
///                rrrrrrrr hhhhhhhhhh sssss dddddd
///                rrrrrrrr            sssss
///                                    sssss
///
/// easy           0  3    8     14    18   23   28
///                rrrrrrrr hhhhhhhhhh       sssss
///                rrrrrrrr hhhhhhhhhh       sssss
///                rrrrrrrr dddddd           sssss
///                   bbbbbbbbbbbbbbbbbbbbbb sssss
///
/// conservative   0   4   8 10        18   23                43
///                rrrrrrrr hhhhhhhhhh sssss bbbbbbbbbbbbbbbbbb
///                rrrrrrrr hhhhhhhhhh sssss
///                rrrrrrrr            sssss
///                    dddddd          sssss
/// ```
#[test]
fn three_rules_make_three_schedules() {
    let of = |rule: &str| {
        let starts = [(false, false), (false, true), (true, false), (true, true)].map(|(u, g)| starts(rule, u, g));
        assert!(starts.iter().all(|other| *other == starts[0]), "{rule}: {starts:?}");
        starts[0].iter().map(|(job, start)| format!("{job}{start}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("stop"), "r0 h8 s18 b23 d23");
    assert_eq!(of("easy"), "r0 b3 h8 d8 s23");
    assert_eq!(of("conservative"), "r0 d4 h8 s18 b23");
}

/// At every instant, a task that has exceeded its estimate is expected to end immediately. So `wide`, which needs the room of `long`,
/// keeps its reservation until `long` ends, and `thin` does not start before `wide`.
#[test]
fn who_outlives_an_estimate_is_expected_to_end() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace =
        "job,user,submit_s,duration_s,estimate_s,cpu\nlong,ann,0,100,10,1\nwide,bob,1,5,5,2\nthin,eve,20,1,1,1\n";
    std::fs::write(dir.path().join("t.csv"), trace).expect("a temporary file is writable");
    for rule in ["easy", "conservative"] {
        let mut command = plimsoll(&[
            "replay",
            "t.csv",
            "--machines",
            "1x2c",
            "--placement",
            "pooled",
            "--policy",
            "fifo",
            "--on-blocked",
            rule,
        ]);
        let output = run(command.args(["--tasks", "-o", rule]).current_dir(dir.path()));
        assert!(output.status.success(), "{}", said(&output));
        let tasks = read_tasks(&dir.path().join(rule), "fifo").expect("the tasks table");
        let start = |job: &str| tasks.iter().find(|(name, _)| name == job).and_then(|(_, task)| task.start);
        assert_eq!(["long", "wide", "thin"].map(start), [Some(0), Some(100_000_000), Some(105_000_000)], "{rule}");
    }
}

fn tasks_of(case: &Case, dir: &Path) -> Result<Vec<(String, Outcome)>, String> {
    std::fs::write(dir.join("trace.csv"), case.csv()).expect("a temporary file is writable");
    let output = run(&mut command(case, dir));
    match output.status.code() {
        Some(0) => read_tasks(&dir.join("out"), "fifo"),
        // Exit code 1: no task fits the pool.
        Some(1) => Ok(Vec::new()),
        _ => Err(said(&output)),
    }
}

/// Draws a case with one row per job and exact estimates. All tasks of a job start together.
fn rigid(seed: u64) -> Case {
    let mut case = Case::draw(seed, Weighting::None, &[Placement::Pooled]).backfilled(seed);
    (case.on_blocked, case.policies) = (OnBlocked::Easy, vec![Policy::Fifo]);
    for (job, row) in case.rows.iter_mut().enumerate() {
        (row.job, row.stage, row.after, row.priority) = (job, None, Vec::new(), 0);
        row.tasks = if row.gang { row.tasks } else { 1 };
        row.estimate = Some(row.duration);
    }
    case
}

/// With exact estimates the first task in line starts no later than predicted when it became the first. The prediction is the first time
/// at which it fits beside the tasks that ran at that instant or started before it.
fn keeps_its_promise(case: &Case) -> Result<(), String> {
    // A smaller version of a failing case may start the tasks of a job apart.
    if case.rows.iter().any(|row| row.tasks > 1 && !row.gang) {
        return Ok(());
    }
    let tasks = tasks_of(case, tempfile::tempdir().expect("a temporary folder").path())?;
    let capacity: Vec<u64> = (0..case.dims()).map(|r| case.machines().iter().map(|machine| machine[r]).sum()).collect();
    let start = |row: usize| {
        let found = tasks.iter().find(|(job, _)| *job == job_name(case.rows[row].job));
        found.and_then(|(_, task)| task.start)
    };
    let end = |row: usize| start(row).map(|start| start + case.rows[row].duration.max(1));
    let started: Vec<usize> = (0..case.rows.len()).filter(|row| start(*row).is_some()).collect();
    let mut first_since = 0;
    for (at, &row) in started.iter().enumerate() {
        let earlier = |other: &usize| started[..at].contains(other);
        first_since = first_since.max(case.rows[row].submit);
        let counts = |other: &usize| *other != row && (earlier(other) || start(*other) < Some(first_since));
        let before: Vec<usize> = started.iter().copied().filter(counts).collect();
        let has_room = |instant: u64| {
            (0..capacity.len()).all(|r| {
                let all = |other: usize| case.rows[other].demand[r] * case.rows[other].tasks;
                let used: u64 =
                    before.iter().filter(|other| end(**other) > Some(instant)).map(|other| all(*other)).sum();
                used + all(row) <= capacity[r]
            })
        };
        let ends = before.iter().filter_map(|other| end(*other)).filter(|end| *end > first_since);
        let shadow = ends.chain([first_since]).filter(|instant| has_room(*instant)).min();
        if start(row) > shadow {
            return Err(format!(
                "row {row} starts at {:?}, and was predicted at {shadow:?}\n{}",
                start(row),
                case.csv()
            ));
        }
        first_since = first_since.max(start(row).unwrap_or_default());
    }
    Ok(())
}

#[test]
fn with_right_estimates_the_first_in_line_is_never_delayed() {
    if let Err(broken) = search(file!(), 200, rigid, Case::smaller, keeps_its_promise) {
        panic!("{}\n{:?}", broken.problem, broken.case);
    }
}

/// The draws distinguish the rules, and the property can be violated: `skip` violates it.
#[test]
fn the_draws_reach_what_backfilling_is_about() {
    let cases: Vec<Case> = (0..40).map(rigid).collect();
    let under = |case: &Case, on_blocked| Case { on_blocked, ..case.clone() };
    let starts = |case: &Case, rule| {
        tasks_of(&under(case, rule), tempfile::tempdir().expect("a temporary folder").path()).expect("a run")
    };
    let differ = |one, other| cases.iter().filter(|case| starts(case, one) != starts(case, other)).count();
    assert!(differ(OnBlocked::Stop, OnBlocked::Easy) >= 10);
    assert!(differ(OnBlocked::Conservative, OnBlocked::Easy) >= 5);
    assert!(cases.iter().any(|case| keeps_its_promise(&under(case, OnBlocked::Skip)).is_err()));
}

#[test]
fn quotas_pass_over_those_that_wait_for_them() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a temporary file");
    write(
        "g.toml",
        "[[group]]\nname = 'a'\nmax = { cpu = 1 }\nusers = ['ann']\n[[group]]\nname = 'b'\nusers = ['bob']\n",
    );
    let rows = "a1,ann,0,10,10,1\na2,ann,0,10,10,1\nb1,bob,1,10,10,3\nb2,bob,1,9,9,2\n";
    write("t.csv", &format!("job,user,submit_s,duration_s,estimate_s,cpu\n{rows}"));
    for rule in ["easy", "conservative"] {
        let args = [
            "replay",
            "t.csv",
            "--machines",
            "1x4c",
            "--placement=pooled",
            "--policy",
            "quota:g.toml",
            "--audit",
            "--decisions",
        ];
        let output = run(plimsoll(&args).args(["--on-blocked", rule, "--tasks", "-o", rule]).current_dir(dir.path()));
        assert!(output.status.success(), "{}", said(&output));
        let tasks = read_tasks(&dir.path().join(rule), "quota:g.toml").expect("the tasks table");
        let start = |job: &str| tasks.iter().find(|(name, _)| name == job).and_then(|(_, task)| task.start);
        // `a2` waits for quota until 10 and reserves nothing; `b2` waits for room until 11.
        let expected = [0, 10, 1, 11].map(|seconds| Some(seconds * 1_000_000));
        assert_eq!(["a1", "a2", "b1", "b2"].map(start), expected, "{rule}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a temporary file");
    write("t.csv", "job,user,submit_s,duration_s,estimate_s,cpu\na,u,0,10,10,1\nb,u,1,10,,1\n");
    write("g.toml", "reclaim = 'kill-after:5s'\n[[group]]\nname = 'a'\nmin = { cpu = 1 }\nusers = ['u']\n");
    let plan =
        "name = 'p'\npolicies = ['fifo']\n[cluster]\nmachines = '1x2c'\nplacement = 'pooled'\non_blocked = 'easy'\n";
    let trace = "[workload]\ntrace = 't.csv'\n";
    write("placed.toml", &format!("{}{trace}", plan.replace("pooled", "best-fit")));
    write("control.toml", &format!("{plan}[control]\n{trace}estimates = 'exact'\n"));
    write("model.toml", &format!("{plan}{trace}estimates = 'uniform:0.5'\n"));
    write("kind.toml", &format!("{plan}[workload]\ngenerator = 'facebook'\nestimates = 3\n"));
    let easy = ["replay", "t.csv", "--machines", "1x2c", "--on-blocked", "easy"];
    let replay = |more: &[&'static str]| {
        let pooled = (!more.contains(&"--placement")).then_some("--placement=pooled");
        easy.iter().copied().chain(pooled).chain(more.iter().copied()).collect::<Vec<_>>()
    };
    let table: Vec<(Vec<&str>, &[&str])> = vec![
        (
            easy.iter().copied().chain(["--policy", "fifo"]).collect(),
            &["--on-blocked: 'easy'", "'first-fit'", "pooled"],
        ),
        (replay(&["--policy", "fifo"]), &["t.csv", "line 3", "'estimate_s'", "on_blocked 'easy'", "estimates"]),
        (replay(&["--policy", "fifo", "--placement", "first-fit"]), &["--on-blocked: 'easy'", "'first-fit'", "pooled"]),
        (replay(&["--policy", "fifo", "--faults", "fail=0.1"]), &["--on-blocked: 'easy' with faults", "skip or stop"]),
        (replay(&["--policy", "fifo", "--preempt", "5s"]), &["--on-blocked: 'easy' with preempt", "skip or stop"]),
        (replay(&["--policy", "quota:g.toml", "--estimates", "exact"]), &["on_blocked 'easy'", "stops running tasks"]),
        (replay(&["--policy", "fifo", "--estimates", "uniform:0"]), &["--estimates: 'uniform:0'", "from 1 to 1000"]),
        (replay(&["--policy", "fifo", "--estimates", "exct"]), &["--estimates: 'exct'", "lognormal:S"]),
        (replay(&["--policy", "fifo", "--seed", "3"]), &["--thin", "--estimates"]),
        (vec!["run", "-q", "placed.toml"], &["placed.toml", "line 6, column 14", "placement 'best-fit'", "pooled"]),
        (vec!["run", "-q", "control.toml"], &["control plane", "(on_blocked)"]),
        (vec!["run", "-q", "model.toml"], &["model.toml", "line 9, column 13", "'uniform:0.5'", "from 1 to 1000"]),
        (vec!["run", "-q", "kind.toml"], &["kind.toml", "line 9, column 13", "expected a string"]),
        (vec!["check", "--policy", "drf", "--whole-tasks", "--on-blocked", "easy"], &["'easy'", "skip or stop"]),
    ];
    for (args, says) in table {
        let output = run(plimsoll(&args).current_dir(dir.path()));
        let message = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        let missing: Vec<_> = says.iter().filter(|text| !message.contains(**text)).collect();
        assert!(missing.is_empty(), "{args:?} lacks {missing:?}: {message}");
    }
}
