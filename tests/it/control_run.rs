//! Runs under the control plane: without faults and delays they equal runs without a control plane, and failures have their known costs.

use std::path::{Path, PathBuf};

use crate::frame::Frame;
use crate::reference_digest::{Lines, Tables};
use crate::reference_random::random_plan;
use crate::replay::{plimsoll, run, said};

/// Every action is instantaneous, and there are no heartbeats.
const NOTHING: &str = "\n[control]\nheartbeat = \"0s\"\ntubo_timeout = \"0s\"\napp_timeout = \"0s\"\nwindow = \"0s\"\napp_start = \"0s\"\n\
                       delay = [\"0s\", \"0s\"]\n";

/// Runs a plan into a folder; returns its tables without the columns of the control plane.
fn tables(plan: &Path, out: &Path, set: &[&str]) -> Lines {
    let mut command = plimsoll(&["run"]);
    command.arg(plan).arg("-o").arg(out).args(["-j", "2"]);
    for set in set {
        command.args(["--set", set]);
    }
    let output = run(&mut command);
    assert!(output.status.success(), "{}: {}", plan.display(), said(&output));
    let mut lines = Tables::read(out).lines;
    // The statistics are omitted: they have rows about the omitted columns, and are computed from tables that are compared.
    let own = ["runs.control_", "runs.online_", "runs.offline_", "differences", "estimates"];
    lines.retain(|name, _| !own.iter().any(|own| name.starts_with(own)));
    assert!(lines.len() > 20, "{lines:?}");
    lines
}

/// Compares runs of random plans with and without a control plane. The plans have policies, quotas, labels, gangs, stages, urgent tasks
/// that request room, devices and placement rules in all combinations that a control plane allows.
#[test]
fn without_faults_and_delays_a_run_under_the_control_plane_is_the_run_without_one() {
    let plans: u64 = std::env::var("PLIMSOLL_CONTROL_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    for number in 0..plans {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut plain = String::new();
        for (name, text) in random_plan(number) {
            let apart = ["slowdown", "events", "on_failure"];
            let lines = text.lines().filter(|line| !apart.iter().any(|key| line.starts_with(key)));
            let text = if name == "plan.toml" { lines.map(|line| format!("{line}\n")).collect() } else { text };
            if name == "plan.toml" {
                plain.clone_from(&text);
            }
            std::fs::write(dir.path().join(name), text).expect("a writable folder");
        }
        let under = dir.path().join("under.toml");
        std::fs::write(&under, plain + NOTHING).expect("a writable folder");
        let without = tables(&dir.path().join("plan.toml"), &dir.path().join("without"), &[]);
        let with = tables(&under, &dir.path().join("with"), &[]);
        let differ: Vec<(&String, &String, Option<&String>)> =
            without.iter().map(|(name, line)| (name, line, with.get(name))).filter(|it| it.2 != Some(it.1)).collect();
        assert!(differ.is_empty() && without.len() == with.len(), "plan {number}: {differ:#?}");
    }
}

/// The same comparison for shortened plans of the repository: the Facebook workload on a pooled cluster, and quota groups on machines.
#[test]
fn shipped_plans_are_the_same_under_the_control_plane() {
    let short = ["seeds=1", "workload.hours=0.3"];
    for name in ["facebook", "quota-vs-drf"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("experiments/{name}.toml"));
        let under = dir.path().join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&plan).expect("a shipped plan");
        let quota = plan.with_file_name("quota/");
        let text = text.replace("\"quota:quota/", &format!("\"quota:{}", quota.display()));
        std::fs::write(&under, text.clone() + NOTHING).expect("a writable folder");
        let plan = dir.path().join("plan").join(format!("{name}.toml"));
        std::fs::create_dir_all(dir.path().join("plan")).expect("a writable folder");
        std::fs::write(&plan, text).expect("a writable folder");
        let without = tables(&plan, &dir.path().join("without"), &short);
        let with = tables(&under, &dir.path().join("with"), &short);
        let differ: Vec<_> = without.iter().filter(|(name, line)| with.get(*name) != Some(*line)).collect();
        assert!(differ.is_empty() && without.len() == with.len(), "{name}: {differ:#?}");
    }
}

/// Two machines, with room for one task each, and a control plane with round clocks and instantaneous messages.
const CLOCKS: &str = "name = \"x\"\npolicies = [\"drf\"]\ntables = [\"runs\", \"tasks\"]\n\
    [cluster]\nmachines = \"2x4c16g\"\nplacement = \"first-fit\"\n[workload]\ntrace = \"trace.csv\"\n\
    [control]\nheartbeat = \"1s\"\ntubo_timeout = \"5s\"\napp_timeout = \"8s\"\nwindow = \"10s\"\napp_start = \"2s\"\n\
    delay = [\"0s\", \"0s\"]\n";

/// Returns job, start, end (in seconds) and outcome of each task of a run, in the order of their ends, and the run's row of `runs`.
fn story(trace: &[&str], rest: &str) -> (Vec<(String, f64, f64, String)>, Frame) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let rows = trace
        .iter()
        .fold("job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned(), |all, row| all + row + "\n");
    std::fs::write(dir.path().join("trace.csv"), rows).expect("a writable folder");
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("out"));
    std::fs::write(&plan, CLOCKS.to_owned() + rest).expect("a writable folder");
    let output = run(plimsoll(&["run"]).arg(&plan).arg("-o").arg(&out));
    assert!(output.status.success(), "{}", said(&output));
    let only =
        |folder: PathBuf| std::fs::read_dir(folder).expect("a folder").flatten().next().expect("an entry").path();
    let table = |name: &str| Frame::open(&only(only(only(out.join(name)))));
    let tasks = table("tasks");
    let seconds = |name: &str, row: usize| tasks.integers(name)[row].map_or(f64::NAN, |us| us as f64 / 1e6);
    let (jobs, fates) = (tasks.names("job", ""), tasks.names("outcome", ""));
    let mut story: Vec<_> = (0..tasks.height())
        .map(|row| (jobs[row].clone(), seconds("start_us", row), seconds("finish_us", row), fates[row].clone()))
        .collect();
    story.sort_by(|one, other| one.2.total_cmp(&other.2));
    (story, table("runs"))
}

fn fault(at: &str, what: &str, rest: &str) -> String {
    format!("[[control.fault]]\nat = \"{at}\"\nwhat = \"{what}\"\n{rest}\n")
}

/// FuxiMaster dies at 10 s. It is dead for 5 s, then it recovers for 10 s. Room is free from 22 s on, but a waiting job starts only
/// after the recovery, at 25 s. Running tasks are not affected.
#[test]
fn while_no_master_decides_nothing_new_starts() {
    let trace = ["a,u,0,20,2,4,1", "b,v,5,30,1,4,1", "c,v,12,30,1,4,1"];
    let (story, _) = story(&trace, "");
    let finished = |job: &str, start: f64, end: f64| (job.to_owned(), start, end, "finished".to_owned());
    assert_eq!(story[2..], [finished("b", 22.0, 52.0), finished("c", 22.0, 52.0)]);
    let (story, runs) = self::story(&trace, &fault("10s", "master-crash", "lasts = \"5s\""));
    assert_eq!(story[..2], [finished("a", 2.0, 22.0), finished("a", 2.0, 22.0)]);
    // The application master of `c` starts only after the recovery of FuxiMaster, and takes 2 s to start.
    assert_eq!(story[2..], [finished("b", 25.0, 55.0), finished("c", 27.0, 57.0)]);
    assert_eq!(runs.integers("control_down_us"), [Some(15_000_000)]);
    assert_eq!(runs.integers("control_faults"), [Some(1)]);
    assert_eq!(runs.integers("offline_workers_stopped"), [Some(0)]);
}

/// A machine that is down loses its workers at once. FuxiMaster declares it failed 5 s after its last heartbeat, which was sent in the
/// second before the failure. The task then gets room on another machine; its work until the failure is lost. Its application
/// master failed with the machine and is declared failed 8 s after its last heartbeat; a new one starts the task 2 s later.
#[test]
fn a_machine_that_is_down_costs_its_work_and_the_time_until_it_is_missed() {
    let (story, runs) = story(&["a,u,0,30,1,4,1"], &fault("10s", "machine-down", "machine = 0\nlasts = \"100s\""));
    let [(_, first, lost, fate), (_, again, end, finished)] = &story[..] else { panic!("{story:?}") };
    assert_eq!((*first, fate.as_str(), finished.as_str()), (2.0, "revoked", "finished"));
    assert!((14.0..=15.0).contains(lost) && (19.0..=20.0).contains(again), "missed at {lost} s, again at {again} s");
    assert_eq!(*end, again + 30.0);
    assert_eq!(runs.integers("offline_workers_stopped"), [Some(1)]);
    // The task ran for 8 s before the failure, and this work is wasted.
    let discarded = runs.real("offline_discarded")[0].expect("a share");
    assert!((discarded - 8.0 / (8.0 + 4.0 + 30.0)).abs() < 0.1, "{discarded}");
}

/// A lost application master is declared failed 8 s after its last heartbeat; a new one starts 2 s later. Its workers continue, and their
/// work in the meantime counts.
#[test]
fn a_lost_application_master_costs_no_worker_while_fuximaster_lives() {
    let lost = fault("10s", "app-lost", "app = 0");
    let (story, runs) = story(&["a,u,0,30,1,4,1"], &lost);
    assert_eq!(story, [("a".to_owned(), 2.0, 32.0, "finished".to_owned())]);
    assert_eq!(runs.integers("offline_workers_stopped"), [Some(0)]);
    // The first task ends at 12 s, but its report arrives only after the next application master has started; then the second task
    // may begin.
    let (story, _) = self::story(&["a,u,0,10,1,4,1", "a,u,10.5,10,1,4,1"], &lost);
    let [.., (_, second, ..)] = &story[..] else { panic!("{story:?}") };
    assert!((19.0..=20.0).contains(second), "the second starts at {second} s");
}

/// A Tubo that is back before it is declared failed costs nothing.
#[test]
fn a_restarted_tubo_costs_nothing() {
    let (story, runs) = story(&["a,u,0,30,1,4,1"], &fault("10s", "tubo-crash", "machine = 0\nlasts = \"3s\""));
    assert_eq!(story, [("a".to_owned(), 2.0, 32.0, "finished".to_owned())]);
    assert_eq!(runs.integers("offline_workers_stopped"), [Some(0)]);
}

/// The scenario of `order_by_hints`. Machine 0 is unreachable for so long that its task moves to machine 1. Then FuxiMaster fails, and
/// machine 0 is back before FuxiMaster has recovered. Now there are two copies of the task and one request. In the order of machines the
/// old copy stays, and the task begins again at 35 s. If hints order the copies, the copy in the hints of the application master stays.
#[test]
fn without_hints_an_old_copy_may_displace_the_new_one() {
    let faults =
        fault("10s", "tubo-dark", "machine = 0\nlasts = \"20s\"") + &fault("20s", "master-crash", "lasts = \"5s\"");
    let trace = ["a,u,0,100,1,4,1"];
    let last = |rest: &str| {
        let (story, _) = story(&trace, rest);
        let (.., start, end, _) = story.last().expect("a task");
        (*start, *end)
    };
    assert_eq!(last(&faults), (35.0, 135.0));
    let (start, end) = last(&format!("order_by_hints = true\n{faults}"));
    assert!((14.0..=15.0).contains(&start) && end == start + 100.0, "from {start} to {end} s");
}

/// A worker that fails restarts at once in its unit: its work until then is lost. With a threshold of one failure its application excludes
/// the machine until the failure expires. When two applications exclude a machine, it is excluded for every application.
#[test]
fn a_worker_that_fails_costs_its_work_and_perhaps_its_machine() {
    let machines = |rest: &str, trace: &[&str]| {
        let (story, runs) = story(trace, rest);
        let ends: Vec<f64> = story.iter().filter(|task| task.3 == "finished").map(|task| task.2).collect();
        let count = |name: &str| runs.integers(name)[0].expect("a count");
        (ends, count("control_workers_failed"), count("control_machines_shunned"), count("offline_workers_stopped"))
    };
    let fails = |at: &str| fault(at, "worker-failure", "machine = 0");
    let one = ["a,u,0,30,1,4,1"];
    assert_eq!(machines(&fails("10s"), &one), (vec![40.0], 1, 0, 1));
    // The worker restarts at once on the other machine, so that no worker runs where the second failure is injected.
    let avoids = |hold: &str| format!("[control.blacklist]\nrole = 1\nshare = 0.5\nhold = \"{hold}\"\n");
    assert_eq!(machines(&(avoids("1h") + &fails("10s") + &fails("20s")), &one), (vec![40.0], 1, 0, 1));
    // A second task waits for the only machine that is left to the job, until the failure expires at 25 s.
    let two = ["a,u,0,20,1,4,1", "a,u,0,40,1,4,1"];
    let (ends, ..) = machines(&(avoids("15s") + &fails("10s")), &two);
    assert_eq!(ends, [42.0, 45.0]);
    // `c` gets the room of `a` at 10 s and fails there, too: for `d` the machine is blacklisted until 43 s, 30 s after the last failure.
    let four = ["a,u,0,10,1,4,1", "b,u,0,100,1,4,1", "c,u,8,5,1,4,1", "d,u,20,5,1,4,1"];
    let (ends, failed, blacklisted, _) = machines(&(avoids("30s") + &fails("10s") + &fails("13s")), &four);
    assert_eq!((failed, blacklisted), (2, 1));
    assert_eq!(ends, [53.0, 58.0, 63.0, 102.0]);
}

/// A service on an unreachable machine continues, unless the rule that keeps it is switched off.
#[test]
fn a_service_is_harmed_where_a_rule_is_missing() {
    let rest = fault("10s", "tubo-cut", "machine = 0\nlasts = \"30s\"")
        + "[[service]]\nname = \"web\"\ntasks = 1\ndemand = { cpu = 4, memory_gib = 1 }\n";
    let harmed = |rest: &str| {
        let (_, runs) = story(&["a,u,0,60,1,4,1"], rest);
        (runs.integers("online_workers_harmed")[0], runs.integers("online_workers_stopped")[0])
    };
    assert_eq!(harmed(&rest), (Some(0), Some(0)));
    let without = rest.replacen("[[control.fault]]", "without = [\"keep-stable\"]\n[[control.fault]]", 1);
    assert_eq!(harmed(&without), (Some(1), Some(1)));
}

/// With a processing time for each request, FuxiMaster is busy in proportion to the number of requests.
#[test]
fn fuximaster_is_busy_for_its_requests() {
    let trace: Vec<String> = (0..40).map(|job| format!("j{job},u,{job},5,1,1,1")).collect();
    let trace: Vec<&str> = trace.iter().map(String::as_str).collect();
    let work = |rest: &str| {
        let (_, runs) = story(&trace, rest);
        let end = runs.integers("end_us")[0].expect("an end") as f64 / 1e6;
        (runs.integers("control_requests")[0].expect("a count"), runs.real("control_busy")[0].expect("a share") * end)
    };
    let (requests, busy) = work("decide = \"10ms\"\n");
    assert!(requests >= 80 && (busy - 0.01 * requests as f64).abs() < 1e-6, "{requests} requests, busy for {busy} s");
}

/// Wrong settings are refused with a message that contains their place or an accepted value.
#[test]
fn wrong_settings_of_the_control_plane_are_located() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("trace.csv"), "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,u,0,30,1,4,1\n")
        .expect("a writable folder");
    let service = "[[service]]\nname = \"web\"\ntasks = 1\n";
    let wrong = [
        ("without = [\"keep-stabel\"]\n".to_owned(), "keep-stable"),
        ("decide = \"fast\"\n".to_owned(), "measured"),
        ("lost = 0.7\n".to_owned(), "from 0 to 0.5"),
        ("[control.failures]\nmaster = -1\n".to_owned(), "from 0 to 3600"),
        ("[control.failures]\nfaulty = 2\n".to_owned(), "a share of the machines"),
        ("[control.blacklist]\nrole = 0\n".to_owned(), "a whole number from 1"),
        ("[control.blacklist]\nhold = \"0s\"\n".to_owned(), "control.blacklist.hold"),
        ("[control.failures]\nlasts = [\"2m\", \"2s\"]\n".to_owned(), "no shorter"),
        (fault("10s", "meteor", ""), "machine-down"),
        (fault("10s", "machine-down", "machine = 2\nlasts = \"1s\""), "0 to 1"),
        (fault("10s", "machine-down", "machine = 0"), "how long it lasts"),
        ("windoww = \"1s\"\n".to_owned(), "window"),
        (format!("{service}demand = {{ gpu = 1 }}\n"), "gpu"),
        (format!("{service}demand = {{ memory_gib = 1, memory_mib = 1 }}\n"), "each resource once"),
        (format!("{service}demand = {{ cpu = 1 }}\nduration = \"1s\"\n"), "duration"),
    ];
    for (rest, expected) in wrong {
        let plan = dir.path().join("plan.toml");
        std::fs::write(&plan, CLOCKS.to_owned() + &rest).expect("a writable folder");
        let output = run(plimsoll(&["run"]).arg(&plan).arg("-o").arg(dir.path().join("out")));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{rest}: {said}");
        assert!(said.contains(expected) && said.contains("plan.toml"), "{rest}: {said}");
        assert!(!dir.path().join("out/runs").exists(), "{rest}");
    }
}
