//! `plimsoll why`: the intervals add up to the waits, and planted causes are named with the right amounts.

use std::path::Path;
use std::process::Command;

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};
use crate::twin::{command, write};
use crate::workloads::Case;
use serde_json::Value;

/// Runs a command that prints JSON.
fn json(command: &mut Command) -> Value {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the command that explains jobs of a replayed trace: the options of the replay without its output.
fn why(replay: &Command, policy: &str, jobs: &[String]) -> Command {
    let mut args: Vec<String> = replay.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let mut kept = vec!["why".to_owned()];
    args.remove(0);
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-o" | "--policy" | "-j" => drop(args.next()),
            "--tasks" | "--decisions" | "--series" | "--quiet" | "-q" => {}
            _ => kept.push(arg),
        }
    }
    let mut command = plimsoll(&kept);
    command.args(jobs).args(["--policy", policy, "--format", "json"]);
    if let Some(folder) = replay.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// Returns the sum of the lengths of intervals; they are adjacent and begin and end at these instants.
fn sum(intervals: &Value, from: i64, to: i64) -> i64 {
    let mut at = from;
    for interval in intervals.as_array().expect("a list") {
        let (begin, end) =
            (interval["from_us"].as_i64().expect("an instant"), interval["to_us"].as_i64().expect("an instant"));
        assert_eq!(begin, at, "{intervals}");
        assert!(end > begin, "{intervals}");
        at = end;
    }
    assert!(at == to || (from == to && at == from), "{intervals} end at {at}, not at {to}");
    at - from
}

/// In random runs with labels, locations, gangs, stages, priorities, preemption, reserved room and machine events, the intervals of every
/// job add up to the wait in the table `jobs`.
#[test]
fn intervals_add_up_to_the_wait_of_every_job() {
    let draws: [fn(u64) -> Case; 4] = [Case::placed, Case::urgent, Case::hoarding, Case::preemption_limits];
    let (mut jobs, mut waited) = (0, 0);
    let mut reasons = std::collections::BTreeSet::new();
    for seed in 0.. {
        if jobs >= 1000 {
            break;
        }
        let draw = draws[seed as usize % draws.len()](seed);
        let dir = tempfile::tempdir().expect("a temporary folder");
        write(&draw, dir.path());
        let mut replay = command(&draw, dir.path());
        let output = run(&mut replay);
        // A gang without room on the empty cluster is refused; a run without any start ends with 1.
        if !output.status.success() {
            continue;
        }
        let policy = first_policy(&dir.path().join("out"));
        let table =
            Frame::open(&dir.path().join(format!("out/jobs/policy={}/run=0/jobs.parquet", folder_name(&policy))));
        let names = table.names("job", "");
        let (submit, start) = (table.integers("submit_us"), table.integers("start_us"));
        let explained = json(&mut why(&replay, &policy, &names));
        for ((name, submit), start) in names.iter().zip(submit).zip(start) {
            let job = explained["jobs"].as_array().expect("a list").iter().find(|job| job["job"] == **name);
            let job = job.unwrap_or_else(|| panic!("seed {seed}: {name} is not explained"));
            let submit = submit.expect("every job was submitted");
            assert_eq!(
                (job["submit_us"].as_i64(), job["start_us"].as_i64()),
                (Some(submit), *start),
                "seed {seed}: {name}"
            );
            let end = start.unwrap_or_else(|| submit + job["wait_us"].as_i64().expect("a wait"));
            assert_eq!(sum(&job["before_start"], submit, end), job["wait_us"].as_i64().expect("a wait"), "seed {seed}");
            jobs += 1;
            waited += u32::from(end > submit);
            let after = job["after_start"].as_array().expect("a list");
            for interval in job["before_start"].as_array().expect("a list").iter().chain(after) {
                reasons.insert(interval["reason"].as_str().expect("a name").to_owned());
            }
        }
    }
    assert!(waited > 200, "only {waited} of {jobs} jobs waited");
    for reason in ["behind-own", "behind-others", "resources", "fragmented", "stage", "label-or-place"] {
        assert!(reasons.contains(reason), "no wait has the reason {reason}: {reasons:?}");
    }
}

fn first_policy(results: &Path) -> String {
    let text = std::fs::read_to_string(results.join("experiment.json")).expect("a description");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    json["policies"][0].as_str().expect("a name").to_owned()
}

/// Returns the name of a policy's folder, as in the tables.
fn folder_name(policy: &str) -> String {
    policy.replace(':', "%3A").replace('/', "%2F")
}

/// A planted cause: the trace, the options, the job, and its expected intervals: reason, length in seconds, and parts of the detail.
struct Planted {
    trace: &'static str,
    options: &'static [&'static str],
    job: &'static str,
    intervals: &'static [(&'static str, i64, &'static [&'static str])],
    /// The users with allocations of the missing resource in the first interval, in base units.
    holders: &'static [(&'static str, i64)],
}

const PLANTED: &[Planted] = &[
    // A user holds the memory: 8 of 10 GiB until 100 s.
    Planted {
        trace: "job,user,submit_s,duration_s,cpu,memory_gib\nbig,holder,0,100,1,8\nsmall,victim,10,5,1,4\n",
        options: &["--machines", "1x4c10g", "--placement", "pooled", "--policy", "drf"],
        job: "small",
        intervals: &[("resources", 90, &["4 GiB", "2 of 10 GiB"])],
        holders: &[("holder", 8192)],
    },
    // Rank: under fifo two earlier tasks of another user are first.
    Planted {
        trace: "job,user,submit_s,duration_s,tasks,cpu\na,first,0,10,3,1\nb,second,1,5,1,1\n",
        options: &["--machines", "1x1c1g", "--placement", "pooled", "--policy", "fifo"],
        job: "b",
        intervals: &[
            ("behind-others", 19, &["2 tasks of 1 other user", "the first in order: first"]),
            ("resources", 10, &["1 core"]),
        ],
        holders: &[("first", 1000)],
    },
    // The user's own earlier job.
    Planted {
        trace: "job,user,submit_s,duration_s,tasks,cpu\na,u,0,10,2,1\nb,u,0,5,1,1\n",
        options: &["--machines", "1x1c1g", "--placement", "pooled", "--policy", "drf"],
        job: "b",
        intervals: &[("behind-own", 10, &["other jobs of its user came first: a"]), ("resources", 10, &["1 core"])],
        holders: &[("u", 1000)],
    },
    // Fragmentation: two cores are free, one on each of two machines.
    Planted {
        trace: "job,user,submit_s,duration_s,tasks,cpu\na,u,0,30,2,3\nb,v,5,5,1,2\n",
        options: &["--machines", "2x4c4g", "--placement", "first-fit", "--policy", "drf"],
        job: "b",
        intervals: &[("fragmented", 25, &["no machine had 2 cores free", "2 cores free"])],
        holders: &[("u", 6000)],
    },
    // A gang: two of three tasks have room.
    Planted {
        trace: "job,user,submit_s,duration_s,tasks,cpu,gang\na,u,0,30,1,1,false\nb,v,5,5,3,1,true\n",
        options: &["--machines", "3x1c1g", "--placement", "first-fit", "--policy", "drf"],
        job: "b",
        intervals: &[("gang", 25, &["2 of the 3 tasks that start together had room"])],
        holders: &[("u", 1000)],
    },
];

fn planted(planted: &Planted, more: &[(&str, &str)]) -> (Value, String) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("trace.csv"), planted.trace).expect("a temporary file is writable");
    for (name, text) in more {
        std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
    }
    let args = |format: &'static str| {
        let mut command = plimsoll(&["why", "trace.csv", planted.job]);
        command.args(planted.options).args(["--format", format]).current_dir(dir.path());
        command
    };
    let output = run(&mut args("table"));
    assert!(output.status.success(), "{}", said(&output));
    (json(&mut args("json"))["jobs"][0].clone(), String::from_utf8(output.stdout).expect("text"))
}

fn check(case: &Planted, more: &[(&str, &str)]) {
    let (job, printed) = planted(case, more);
    let found = job["before_start"].as_array().expect("a list");
    let short: Vec<(&str, i64)> = found
        .iter()
        .map(|interval| {
            let length =
                interval["to_us"].as_i64().expect("an instant") - interval["from_us"].as_i64().expect("an instant");
            (interval["reason"].as_str().expect("a name"), length / 1_000_000)
        })
        .collect();
    let expected: Vec<(&str, i64)> = case.intervals.iter().map(|(reason, length, _)| (*reason, *length)).collect();
    assert_eq!(short, expected, "{}: {job}", case.job);
    for (interval, (_, _, parts)) in found.iter().zip(case.intervals) {
        let detail = interval["detail"].as_str().expect("text");
        parts.iter().for_each(|part| assert!(detail.contains(part), "'{detail}' lacks '{part}'"));
        assert!(printed.contains(interval["reason"].as_str().expect("a name")), "{printed}");
    }
    if let Some(first) = found.first() {
        let holders: Vec<(String, i64)> = first["holders_mean"]
            .as_object()
            .expect("a table")
            .iter()
            .map(|(user, mean)| (user.clone(), mean.as_i64().expect("an amount")))
            .collect();
        let expected: Vec<(String, i64)> =
            case.holders.iter().map(|(user, mean)| ((*user).to_owned(), *mean)).collect();
        assert_eq!(holders, expected, "{job}");
    }
}

#[test]
fn planted_causes_are_named_with_their_amounts() {
    PLANTED.iter().for_each(|case| check(case, &[]));
}

/// The quota of a group is the cause, although cores are free.
#[test]
fn a_quota_is_named_with_the_group_and_the_missing_amount() {
    let groups = "[[group]]\nname = \"small\"\nusers = [\"v\"]\nmax = { cpu = 2 }\n\n[[group]]\nname = \"other\"\nusers = [\"u\"]\n";
    let case = Planted {
        trace: "job,user,submit_s,duration_s,tasks,cpu\na,v,0,30,1,2\nb,v,5,5,1,1\n",
        options: &["--machines", "1x8c8g", "--placement", "pooled", "--policy", "quota:groups.toml"],
        job: "b",
        intervals: &[("rule", 25, &["the quota of group small", "1 core"])],
        holders: &[("v", 2000)],
    };
    check(&case, &[("groups.toml", groups)]);
}

/// A label is the cause if other machines have room.
#[test]
fn a_label_is_named_if_other_machines_have_room() {
    let case = Planted {
        trace: "job,user,submit_s,duration_s,cpu,label\na,u,0,30,1,fast\nb,v,5,5,1,fast\n",
        options: &["--machines", "machines.csv", "--placement", "first-fit", "--policy", "drf"],
        job: "b",
        intervals: &[("label-or-place", 25, &["outside its label 'fast'", "1 machine had"])],
        holders: &[("u", 1000)],
    };
    check(&case, &[("machines.csv", "cpu,memory_gib,labels\n1,1,fast\n1,1,\n")]);
}

/// Tasks that were stopped by a failed machine wait again, and the stop is reported.
#[test]
fn a_failure_is_reported_as_a_stop() {
    let case = Planted {
        trace: "job,user,submit_s,duration_s,cpu\na,u,0,30,1\n",
        options: &[
            "--machines",
            "1x1c1g",
            "--placement",
            "first-fit",
            "--policy",
            "drf",
            "--machine-events",
            "events.csv",
        ],
        job: "a",
        intervals: &[],
        holders: &[],
    };
    let (job, printed) = planted(&case, &[("events.csv", "at_s,machine,event\n10,0,fail\n25,0,join\n")]);
    assert_eq!(
        job["stops"],
        serde_json::json!([{"at_us": 10_000_000, "tasks": 1, "fate": "machine-failed"}]),
        "{printed}"
    );
    assert_eq!(sum(&job["after_start"], 10_000_000, 25_000_000), 15_000_000);
    assert!(printed.contains("1 stop (machine-failed)"), "{printed}");
}

/// Wrong sources and names are refused with the accepted values.
#[test]
fn wrong_requests_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), "job,user,submit_s,duration_s,cpu\na,u,0,1,1\n").expect("writable");
    let cases: [(&[&str], &str); 6] = [
        (&["t.csv", "a"], "--machines"),
        (&["t.csv", "a", "--machines", "1x1c1g"], "--policy"),
        (&["t.csv", "b", "--machines", "1x1c1g", "--policy", "drf"], "'b'"),
        (&["t.csv", "a", "--machines", "1x1c1g", "--policy", "drf", "--run", "1"], "each policy has one run"),
        (&[".", "a"], "not a results folder"),
        (&["none.toml", "a", "--machines", "1x1c1g"], "--machines: 1x1c1g"),
    ];
    for (args, part) in cases {
        let output = run(plimsoll(&["why"]).args(args).current_dir(dir.path()));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(part), "{args:?}: {}", said(&output));
    }
}

/// A stored run is repeated from its plan, and refused if its values differ.
#[test]
fn stored_results_are_explained_and_forged_ones_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (trace, out) = (dir.path().join("t.csv"), dir.path().join("out"));
    std::fs::write(&trace, PLANTED[0].trace).expect("a temporary file is writable");
    let mut replay = plimsoll(&["replay", "t.csv", "-q", "-o", "out"]);
    assert!(run(replay.args(PLANTED[0].options).current_dir(dir.path())).status.success());
    let why = || {
        let mut command = plimsoll(&["why", "out", "small", "--format", "json"]);
        command.current_dir(dir.path());
        command
    };
    assert_eq!(json(&mut why())["jobs"][0]["wait_us"], 90_000_000);
    let receipts = std::fs::read_dir(out.join("done")).expect("receipts");
    let receipt = receipts.map(|entry| entry.expect("an entry").path()).next().expect("a receipt");
    crate::replay::forge(&receipt, |text| {
        let (before, after) = text.split_once("\"wait_mean_s\"").expect("the column");
        format!("{before}\"wait_mean_s\"{}", after.replacen("45", "46", 1))
    });
    let output = run(&mut why());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("wait_mean_s"), "{}", said(&output));
}

/// The shares of all causes and the wait without them add up to the wait. Two executions have the same bytes on any number of threads.
#[test]
fn attribution_adds_up() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,gang\n".to_owned();
    for (at, user) in ["a", "b", "c"].iter().cycle().take(24).enumerate() {
        trace +=
            &format!("j{at},{user},{},{},{},1,{},{}\n", 3 * at, 20 + 7 * (at % 5), 1 + at % 4, 1 + at % 3, at % 6 == 5);
    }
    std::fs::write(dir.path().join("t.csv"), trace).expect("a temporary file is writable");
    let explain = |job: &str, threads: &str| {
        let mut command = plimsoll(&["why", "t.csv", job, "--machines", "4x2c4g", "--placement", "first-fit"]);
        let causes =
            ["user=a", "gang", "fragmentation", "machines=+1"].into_iter().flat_map(|cause| ["--without", cause]);
        command.args(["--policy", "fifo", "--shakes", "2", "--format", "json"]).args(causes);
        run(command.env("RAYON_NUM_THREADS", threads).current_dir(dir.path())).stdout
    };
    let mut effects = 0;
    for job in ["j5", "j13", "j20", "j23"] {
        let bytes = explain(job, "1");
        assert_eq!(bytes, explain(job, "2"));
        let json: Value = serde_json::from_slice(&bytes).expect("JSON");
        let attribution = &json["attribution"];
        // All combinations of four causes, and five runs for each of two perturbations.
        assert_eq!(attribution["runs"], 26);
        let seconds = |key: &str| attribution[key].as_f64().expect("a wait") / 1e6;
        let causes = attribution["causes"].as_array().expect("a list");
        let shares: Vec<f64> = causes.iter().map(|cause| cause["share_s"].as_f64().expect("a share")).collect();
        let sum: f64 = shares.iter().sum::<f64>() + seconds("remainder_us");
        assert!((sum - seconds("wait_us")).abs() < 1e-6, "{job}: {sum} {attribution}");
        assert_eq!(attribution["wait_us"], json["jobs"][0]["wait_us"]);
        effects += shares.iter().filter(|share| **share > 0.0).count();
    }
    assert!(effects > 6, "only {effects} causes have an effect");
}

/// Causes that the run does not have are refused.
#[test]
fn causes_that_cannot_be_removed_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), PLANTED[0].trace).expect("a temporary file is writable");
    let cases: [(&[&str], &str); 6] = [
        (&["--without", "load"], "user=NAME, job=NAME, rule, gang, fragmentation or machines=+N"),
        (&["--without", "user=victim"], "another user"),
        (&["--without", "job=small"], "another job"),
        (&["--without", "fragmentation"], "pooled"),
        (&["--without", "rule", "--without", "rule"], "each cause once"),
        (&["--without", "rule", "--shake", "80"], "0 to 50"),
    ];
    for (args, part) in cases {
        let mut command = plimsoll(&["why", "t.csv", "small"]);
        let output = run(command.args(PLANTED[0].options).args(args).current_dir(dir.path()));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(said(&output).replace("\n       ", " ").contains(part), "{args:?}: {}", said(&output));
    }
}
