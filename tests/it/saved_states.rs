//! A run that stops at any instant and continues from its saved state ends as a run that did not stop: the same summary, and the same bytes
//! of all tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use plimsoll::engine::Engine;
use plimsoll::error::{Error, Result};
use plimsoll::experiment::{Destination, Plan, SharedSupply, Simulated, Study};
use plimsoll::output::schema::Table;
use plimsoll::policy::{BUILT_IN, NamedPolicy, Registry};
use plimsoll::units::Time;
use plimsoll::workload::synthetic::random::stream;
use plimsoll_runs::{NoObserver, Observer, SaveEvery, SavedStates, Supplies, simulate_observed};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::determinism::{differences, results};
use crate::reference_random::random_plan;
use crate::replay::said;
use crate::study_run::Scratch;
use crate::workloads::{chance, pick};

/// Ends a run after a number of instants, without any end of the engine, as a killed process does.
struct Killer(u64);

impl Observer for Killer {
    fn instant(&mut self, _engine: &mut Engine, _now: Time) -> Result<ControlFlow<()>> {
        self.0 = self.0.checked_sub(1).ok_or(Error::Interrupted)?;
        Ok(ControlFlow::Continue(()))
    }
}

/// Counts the instants of a run.
struct Counter(u64);

impl Observer for Counter {
    fn instant(&mut self, _engine: &mut Engine, _now: Time) -> Result<ControlFlow<()>> {
        self.0 += 1;
        Ok(ControlFlow::Continue(()))
    }
}

/// The summary of a run and the digests of its tables.
type Values = (serde_json::Value, Vec<(PathBuf, String)>);

fn values(simulated: &Simulated, folder: &Path) -> Values {
    let mut tables: Vec<(PathBuf, String)> = Vec::new();
    for table in &simulated.tables {
        let written = table.written();
        let path = written.path.strip_prefix(folder).expect("a table is in the folder");
        tables.push((path.to_owned(), written.digest.clone()));
    }
    (serde_json::to_value(&simulated.summary).expect("a summary is JSON"), tables)
}

/// One run of a plan.
struct Case<'a> {
    plan: &'a Plan,
    policy: &'a NamedPolicy,
    supply: &'a SharedSupply,
    folder: PathBuf,
}

impl Case<'_> {
    fn simulate(
        &self,
        out: &str,
        saved: Option<SaveEvery>,
        observer: &mut dyn Observer,
    ) -> Result<(Simulated, Values)> {
        let folder = self.folder.join(out);
        let to = Destination {
            folder: Some(folder.clone()),
            policy: self.policy.name.clone(),
            run: 0,
            seed: self.plan.workload.is_seeded().then(|| self.plan.seeds[0]),
            axes: Vec::new(),
            tables: Table::all().collect(),
            metadata: Vec::new(),
            saved: saved.map(|every| SavedStates {
                results: folder.clone(),
                folder: folder.join("saved").join("0123456789abcdef"),
                id: "this test".to_owned(),
                every,
            }),
        };
        let simulation = self.plan.simulation(self.supply, "workload");
        let simulated = simulate_observed(&simulation, self.policy, &to, &mut |_, _| Ok(()), observer)?;
        let values = values(&simulated, &folder);
        Ok((simulated, values))
    }

    /// Compares the run that stops at each of these instants with the run that does not. Returns the number of stops.
    fn compare(&self, pick: impl Fn(u64) -> Vec<u64>, about: &str) -> Result<usize> {
        let mut instants = Counter(0);
        let (whole, expected) = self.simulate("whole", None, &mut instants)?;
        if !whole.savable {
            panic!("{about}, {}: no saved states", self.policy.name);
        }
        let stops = pick(instants.0);
        for &stop in &stops {
            let place = format!("{about}, {}, after {stop} of {} instants", self.policy.name, instants.0);
            let out = format!("stop-{stop}");
            match self.simulate(&out, Some(SaveEvery::Instants(stop)), &mut Killer(stop)) {
                Err(Error::Interrupted) => {}
                Err(error) => panic!("{place}: {error}"),
                Ok(_) => panic!("{place}: the run did not stop"),
            }
            self.finish(&out, stop, &expected, &place);
        }
        // A process that is killed again and again.
        let (step, place) = (instants.0 / 5 + 1, format!("{about}, {}, in steps", self.policy.name));
        let mut kills = 0;
        while kills < 4 && self.simulate("steps", Some(SaveEvery::Instants(step)), &mut Killer(step)).is_err() {
            kills += 1;
        }
        if kills > 0 {
            self.finish("steps", step, &expected, &place);
        }
        Ok(stops.len())
    }

    /// Continues a run that was stopped, and compares its end.
    fn finish(&self, out: &str, every: u64, expected: &Values, place: &str) {
        let again = self.simulate(out, Some(SaveEvery::Instants(every)), &mut NoObserver);
        let (again, found) = again.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(again.rejected, None, "{place}");
        assert!(again.continued.is_some(), "{place}: it did not continue");
        assert_eq!(found.0, expected.0, "{place}");
        assert_eq!(found.1, expected.1, "{place}");
        std::fs::remove_dir_all(self.folder.join(out)).expect("the folder of the test");
    }
}

/// Runs a plan under all of its policies. Returns the number of stops, or the error of the plan.
fn check(files: &[(&str, String)], set: &[String], pick: &dyn Fn(u64) -> Vec<u64>, about: &str) -> Result<usize> {
    let place = Scratch::in_memory("");
    files.iter().for_each(|(name, text)| place.write(name, text));
    let study = Study::read(&place.path("plan.toml"), set, &Registry::new(BUILT_IN))?;
    let mut stops = 0;
    for plan in &study.cells {
        let supply = SharedSupply::from(plan.workload.supply(plan.seeds[0])?);
        for policy in &plan.policies {
            let case = Case { plan, policy, supply: &supply, folder: place.path("out") };
            stops += case.compare(pick, about)?;
        }
    }
    Ok(stops)
}

/// Returns up to `most` of the instants from 1 to `last`: all, or the first ones and some of the others.
fn some_of(last: u64, most: u64) -> Vec<u64> {
    // The run stops at the instant behind the saved one.
    let last = last.saturating_sub(1);
    if last <= most {
        return (1..=last).collect();
    }
    (0..most).map(|at| 1 + at * (last - 1) / (most - 1)).collect()
}

/// Returns changes of a plan that add extensions of the engine.
fn extensions(rng: &mut ChaCha8Rng) -> Vec<String> {
    let mut set = Vec::new();
    let mut add = |rng: &mut ChaCha8Rng, percent: u32, key: &str, values: &[&str]| {
        if chance(rng, percent) {
            set.push(format!("cluster.{key}={:?}", pick(rng, values)));
        }
    };
    add(rng, 50, "faults", &["fail=0.1", "fail=0.1,straggle=0.2x3", "fail=0.05,straggle=0.2x4,backup=0.5x1.5"]);
    add(rng, 50, "preempt", &["0s", "5s", "30s"]);
    add(rng, 40, "hoard", &["10s", "60s"]);
    add(rng, 40, "fall_back", &["10s", "never"]);
    add(rng, 30, "min_run", &["5s"]);
    add(rng, 30, "stop_limit", &["2/20s"]);
    add(rng, 30, "restart_delay", &["2s"]);
    add(rng, 40, "on_blocked", &["easy", "conservative"]);
    set
}

#[test]
fn random_plans_continue_from_a_saved_state() {
    let (mut stops, mut refused) = (0, 0);
    for number in 0..12 {
        let files = random_plan(number);
        match check(&files, &[], &|last| some_of(last, 5), &format!("plan {number}")) {
            Ok(more) => stops += more,
            Err(_) => refused += 1,
        }
    }
    assert!(stops > 100 && refused < 3, "{stops} stops, {refused} plans do not run");
}

#[test]
fn extensions_of_the_engine_continue_from_a_saved_state() {
    let (mut stops, mut plans) = (0, 0);
    for number in 100..140 {
        let files = random_plan(number);
        let mut rng = stream(number, "saved states");
        let set = extensions(&mut rng);
        // Some of the drawn settings exclude each other.
        if let Ok(more) = check(&files, &set, &|last| some_of(last, 4), &format!("plan {number} with {set:?}")) {
            stops += more;
            plans += 1;
        }
    }
    assert!(stops > 60 && plans > 10, "{stops} stops in {plans} plans");
}

/// A trace with gangs, priorities, stages and services of one user after the other.
fn trace() -> String {
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority,gang\n".to_owned();
    for job in 0..60u64 {
        let (user, submit, duration) = (job * job % 5, job / 3 * 7, 5 + job * 13 % 41);
        let (tasks, cpu, memory) = (1 + job % 4, 1 + job % 2, 1 + job * 5 % 4);
        let (priority, gang) = (job * 7 % 10, u64::from(job % 6 == 0));
        text.push_str(&format!("job{job},user-{user},{submit},{duration},{tasks},{cpu},{memory},{priority},{gang}\n"));
    }
    text
}

/// Every built-in policy at some instants, and `quota` and `kueue` at every third instant.
#[test]
fn every_policy_continues_from_a_saved_state() {
    let folder = |name: &str| std::fs::read_to_string(name).expect("a file of the repository");
    let quota = folder("experiments/quota/two-groups.toml");
    let mut checked = BTreeMap::new();
    for spec in BUILT_IN.examples().into_iter().filter(|spec| spec.runs().is_ok()) {
        let name = spec.to_string();
        let (name, file) = match name.split_once("experiments/quota/two-groups.toml") {
            Some((before, after)) => (format!("{before}groups.toml{after}"), true),
            None => (name, false),
        };
        let plan = format!(
            "name = \"one\"\npolicies = [{name:?}]\n\n[cluster]\nmachines = \"3x4c8g\"\nplacement = \"first-fit\"\n\n\
             [workload]\ntrace = \"trace.csv\"\n"
        );
        let mut files = vec![("plan.toml", plan), ("trace.csv", trace())];
        if file {
            files.push(("groups.toml", quota.clone()));
        }
        let often = matches!(spec.row().name, "quota" | "kueue");
        let stops = check(&files, &[], &|last| some_of(last, if often { last / 3 } else { 5 }), &name);
        checked.insert(name, stops);
    }
    let refused: Vec<_> = checked.iter().filter(|(_, stops)| stops.is_err()).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(checked.len() > 30, "{:?}", checked.keys());
    assert!(checked.values().flatten().all(|stops| *stops >= 5), "{checked:?}");
}

/// Closed loops, and jobs that follow others, have sources with a state of their own.
#[test]
fn sources_that_react_continue_from_a_saved_state() {
    let plan = |workload: &str| {
        format!(
            "name = \"loop\"\npolicies = [\"drf\", \"fifo\"]\n\n[cluster]\nmachines = \"2x4c8g\"\n\n[workload]\n{workload}"
        )
    };
    let closed = plan(
        "generator = \"closed-loop\"\njobs_per_user = 6\n\n[[workload.class]]\nname = \"a\"\nusers = 3\ntasks = 4\nthink = \
         3\nduration = { distribution = \"choice\", values = [1, 2, 5] }\ndemand = { cpu = 2, memory_gib = 1 }\nnoise = { \
         distribution = \"choice\", values = [0.5, 1, 2] }\nnoise_sets = 3\n",
    );
    let stops = check(&[("plan.toml", closed)], &[], &|last| some_of(last, 20), "closed loop").expect("it runs");
    assert!(stops > 30, "{stops}");
    let mut rows = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,after_job,think_s\n".to_owned();
    for job in 0..30u64 {
        let after = if job % 3 == 0 { ",".to_owned() } else { format!("j{},{}", job - 1, job % 2) };
        rows.push_str(&format!("j{job},u{},{},{},2,1,1,{after}\n", job % 4, job, 3 + job % 7));
    }
    let files = [("plan.toml", plan("trace = \"trace.csv\"\n")), ("trace.csv", rows)];
    let stops = check(&files, &[], &|last| some_of(last, 20), "following").expect("it runs");
    assert!(stops > 30, "{stops}");
}

/// A run may continue beside other runs of its workload that share a fluid replay, although it was stopped without them, and the reverse.
#[test]
fn a_run_continues_with_and_without_other_runs() {
    let place = Scratch::in_memory(
        "name = \"one\"\npolicies = [\"drf\"]\nseed = 3\n\n[cluster]\nmachines = \"3x4c8g\"\n\n[workload]\ntrace = \
         \"trace.csv\"\n",
    );
    place.write("trace.csv", &trace());
    let study = Study::read(&place.path("plan.toml"), &[], &Registry::new(BUILT_IN)).expect("a plan");
    let plan = &study.cells[0];
    let supply = || plan.workload.supply(plan.seeds[0]);
    let alone = SharedSupply::from(supply().expect("a trace"));
    let supplies = Supplies::new(1 << 24);
    (0..2).for_each(|_| supplies.announce((0, 0)).expect("no panic"));
    let shared = supplies.get((0, 0), Time::NEVER, supply, &mut || Ok(())).expect("a trace");
    let case = |supply| Case { plan, policy: &plan.policies[0], supply, folder: place.path("out") };
    let (_, expected) = case(&alone).simulate("whole", None, &mut NoObserver).expect("a run");
    for (first, second) in [(&alone, &*shared), (&*shared, &alone), (&*shared, &*shared)] {
        let stopped = case(first).simulate("stopped", Some(SaveEvery::Instants(20)), &mut Killer(20));
        assert!(stopped.is_err());
        case(second).finish("stopped", 20, &expected, "with others");
    }
}

/// A state that cannot be used is named, and the run begins again.
#[test]
fn a_run_without_a_usable_state_begins_again() {
    let place = Scratch::in_memory(
        "name = \"one\"\npolicies = [\"drf\"]\n\n[cluster]\nmachines = \"3x4c8g\"\n\n[workload]\ntrace = \"trace.csv\"\n",
    );
    place.write("trace.csv", &trace());
    let study = Study::read(&place.path("plan.toml"), &[], &Registry::new(BUILT_IN)).expect("a plan");
    let plan = &study.cells[0];
    let supply = SharedSupply::from(plan.workload.supply(1).expect("a trace"));
    let case = Case { plan, policy: &plan.policies[0], supply: &supply, folder: place.path("out") };
    let (_, expected) = case.simulate("whole", None, &mut NoObserver).expect("a run");
    let damages: [(&str, fn(&Path), &str); 3] = [
        ("state", |path| std::fs::write(path, "short").expect("a file"), "damaged"),
        ("jobs.parquet", |path| std::fs::write(path, "").expect("a file"), "shorter"),
        ("tasks.parquet", |path| std::fs::remove_file(path).expect("a file"), "tasks.parquet"),
    ];
    for (name, damage, says) in damages {
        assert!(case.simulate("stopped", Some(SaveEvery::Instants(20)), &mut Killer(20)).is_err());
        damage(&place.path(&format!("out/stopped/saved/0123456789abcdef/{name}")));
        let (again, found) = case.simulate("stopped", Some(SaveEvery::Instants(20)), &mut NoObserver).expect("a run");
        let reason = again.rejected.clone().unwrap_or_default();
        assert!(again.continued.is_none() && reason.contains(says), "{name}: {reason}");
        assert_eq!(found, expected, "{name}");
        drop(again);
        std::fs::remove_dir_all(place.path("out/stopped")).expect("the folder of the test");
    }
}

/// A plan with runs of a few seconds.
const LONG: &str = r#"
name = "long"
policies = ["drf", "ceei", "quota:@teams"]
seeds = 2
tables = ["runs", "users", "jobs", "tasks", "usage", "fairness", "decisions", "levels"]

[cluster]
machines = "40x16c32g"
placement = "best-fit"
preempt = "60s"
faults = "fail=0.01"

[workload]
generator = "facebook"
hours = 1
load = 0.9
cluster_cores = 640

[quota.teams]
reclaim = "kill-after:60s"

[[quota.teams.group]]
name = "first"
ratio = 2
users = ["user1*", "user2*"]

[[quota.teams.group]]
name = "rest"
default = true
"#;

/// Starts a plan and kills it after some milliseconds. Returns whether it was killed before its end.
fn killed(place: &Scratch, args: &[&str], milliseconds: u64) -> bool {
    let mut command = place.command("killed", args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    std::thread::sleep(Duration::from_millis(milliseconds));
    // SIGKILL on Unix: the process cleans up nothing.
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be waited for").code().is_none()
}

/// Returns the number of saved states in the folder of [`killed`].
fn states(place: &Scratch) -> usize {
    let saved = std::fs::read_dir(place.path("killed/saved")).into_iter().flatten().flatten();
    saved.filter(|run| run.path().join("state").exists()).count()
}

#[test]
fn a_run_that_is_killed_twenty_times_gives_the_same_bytes() {
    let place = Scratch::in_memory(LONG);
    let whole = results(&place.path("plan.toml"), &place.path("whole"), &["--save-every", "none"]);
    let mut random = stream(1, "moments of kills");
    let args = ["--save-every", "5ms", "-j", "2"];
    let mut kills = 0;
    while kills < 20 && killed(&place, &args, random.random_range(20..600)) {
        kills += 1;
    }
    let (plan, folder) = (place.path("plan.toml"), place.path("killed"));
    assert_eq!(differences(&whole, &results(&plan, &folder, &args)), [""; 0], "after {kills} kills");
    assert!(!folder.join("saved").exists(), "no saved state is left");
}

/// The first run of a folder has no record yet. Its saved state alone is no obstacle for the same command, nor for a restart.
#[test]
fn the_first_run_of_a_folder_continues() {
    let place = Scratch::in_memory(&LONG.replace("seeds = 2", "seeds = 1").replace("\"ceei\", ", ""));
    let args = ["--save-every", "1ms", "-j", "1", "--set", "policies=['quota:@teams']"];
    let mut wait = 100;
    while states(&place) == 0 {
        assert!(killed(&place, &args, wait), "the run ends within {wait} ms without a saved state");
        wait += 100;
    }
    assert!(!place.path("killed/experiment.json").exists(), "no run was complete");
    let output = place.command("killed", &args).output().expect("the program runs");
    let said = said(&output);
    assert!(output.status.success() && said.contains(" continued at "), "{said}");
    let whole = results(&place.path("plan.toml"), &place.path("whole"), &args[4..]);
    assert_eq!(differences(&whole, &results(&place.path("plan.toml"), &place.path("killed"), &args)), [""; 0]);
    // A restart, also of another plan, removes what a killed run has left.
    assert!(killed(&place, &["--restart", "--save-every", "1ms", "-j", "1"], wait) || states(&place) == 0);
    place.run("killed", &["--restart", "--set", "policies=['drf']"]);
    assert!(!place.path("killed/saved").exists());
}

#[test]
fn wrong_intervals_are_errors() {
    let place = Scratch::new(LONG);
    for wrong in ["0s", "soon", "2 minutes"] {
        let output = place.command("out", &["--save-every", wrong]).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(said(&output).contains("such as 1s or 10m, or none"), "{}", said(&output));
    }
}
