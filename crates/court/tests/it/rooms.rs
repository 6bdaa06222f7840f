//! The room of victims is used within the cycle: gangs and single tasks use the same room, on idle machines and on the machines of
//! victims. No victim is stopped without need.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_base::units::Resources;
use plimsoll_court::{Bench, RunningWorkload, Situation, State};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::laws_machines::draw;
use crate::{decide, state};

type Counts = BTreeMap<String, u32>;

/// Returns the launched and the stopped tasks, by workload.
fn decision(policy: &str, text: &str) -> (Counts, Counts) {
    let answer = decide(policy, text);
    let mut counts = (Counts::new(), Counts::new());
    answer.launched.into_iter().for_each(|(name, tasks)| *counts.0.entry(name).or_default() += tasks);
    answer.evicted.into_iter().for_each(|(name, tasks)| *counts.1.entry(name).or_default() += tasks);
    counts
}

fn one(name: &str, tasks: u32) -> Counts {
    Counts::from([(name.to_owned(), tasks)])
}

const VOLCANO_GANGS: &str = include_str!("field/volcano-gang-from-gang.toml");
const KAI_GANG: &str = include_str!("field/kai-gang-idle-and-victim.toml");
const ONE_POOL: &str = include_str!("field/needless-victims.toml");
const TWO_MACHINES: &str = include_str!("field/needless-2machines.toml");

/// Volcano issue 4808: a gang takes the room of another gang, by the action reclaim and by the action preempt.
#[test]
fn a_gang_takes_the_room_of_a_gang() {
    let expected = (one("high", 4), one("low", 4));
    assert_eq!(decision("volcano-capacity", VOLCANO_GANGS), expected);
    let preempt = VOLCANO_GANGS
        .replace("\"reclaim\"", "\"preempt\"")
        .replace("group = \"q2\"", "group = \"q1\"")
        .replace("name = \"high\"", "name = \"high\"\npriority = 9");
    for policy in ["volcano-capacity", "volcano-proportion", "volcano-drf"] {
        let preempt = if policy == "volcano-capacity" {
            preempt.clone()
        } else {
            preempt.replace("deserved = { cpu = 4 }", "").replace("deserved = { cpu = 0 }", "")
        };
        assert_eq!(decision(policy, &preempt), expected, "{policy}");
    }
}

/// The case "Reclaim based on releasing and idle resources" of KAI's tests, and the same state under other policies.
#[test]
fn a_gang_uses_an_idle_machine_and_that_of_a_victim() {
    let expected = (one("pair", 2), one("low", 1));
    assert_eq!(decision("kai", KAI_GANG), expected);
    let volcano =
        format!("policy = {{ actions = [\"allocate\", \"reclaim\"] }}\n{KAI_GANG}").replace("weight = 0\n", "");
    assert_eq!(decision("volcano-capacity", &volcano), expected);
    let guaranteed = KAI_GANG.replace("weight = 0\n", "").replace("deserved", "guaranteed");
    let guaranteed = guaranteed.replace("guaranteed = { gpu = 0 }\n", "");
    assert_eq!(decision("yunikorn-fair@guarded", &guaranteed), expected);
    // YUNIKORN-3449: the 0.7 GPUs of the victim are less than the request, and the 0.3 free GPUs on its machine do not count.
    assert_eq!(decision("yunikorn-fair", &guaranteed), (Counts::new(), Counts::new()));
    assert_eq!(decision("yunikorn-fair", &guaranteed.replace("gpu = 0.7", "gpu = 1")), expected);
}

/// Plays rounds. Returns the number of stopped tasks, and the number of running tasks of requesters (workloads with names that begin with
/// `w`).
fn play(policy: &str, text: &str, rounds: u32) -> (u32, u32) {
    let (state, registry) = (state(text), Registry::new(BUILT_IN));
    let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{policy}: {error}\n{text}"));
    let mut situation = Situation::first(&state);
    let mut stopped = 0;
    for _ in 0..rounds {
        let round = bench.play(&mut situation).unwrap_or_else(|error| panic!("{policy}: {error}\n{text}"));
        stopped += round.evicted.iter().map(|evicted| evicted.tasks).sum::<u32>();
        situation.pass(&state);
    }
    let requesters = situation.running.iter().filter(|run| state.workloads[run.workload].name.starts_with('w'));
    (stopped, requesters.map(|run| run.tasks()).sum())
}

/// The room of one victim of four cores is enough for four tasks of one core, and for two workloads of one core.
#[test]
fn one_victim_makes_room_for_several_requests() {
    for policy in ["kai", "koordinator", "armada"] {
        assert_eq!(play(policy, ONE_POOL, 3), (1, 4), "{policy}");
        assert_eq!(play(policy, TWO_MACHINES, 3), (1, 2), "{policy}");
    }
    let actions = "policy = { actions = [\"allocate\", \"preempt\"] }\n";
    for policy in ["volcano-drf", "volcano-proportion"] {
        assert_eq!(play(policy, &format!("{actions}{ONE_POOL}"), 3), (1, 4), "{policy}");
        assert_eq!(play(policy, &format!("{actions}{TWO_MACHINES}"), 3), (1, 2), "{policy}");
    }
}

/// KAI starts the tasks of a job beyond its minimum in the next cycle, and the reason states this.
#[test]
fn the_reason_of_a_task_with_room_is_the_next_cycle() {
    let waits = decide("kai", ONE_POOL).round.waits;
    assert_eq!(waits.len(), 1);
    assert!(format!("{:?}", waits[0].reason).contains("starts in the next cycle"), "{:?}", waits[0].reason);
}

/// A policy, its own keys, the keys of the requester's queue, and the keys of the victim's queue. Without the last keys both are in one
/// queue, and the requester is more urgent.
type Case = (&'static str, &'static str, &'static str, Option<&'static str>);

const POLICIES: [Case; 12] = [
    ("kai", "", "deserved = { cpu = 4 }\nweight = 0", Some("deserved = { cpu = 0 }\nweight = 0")),
    ("kai", "", "", None),
    (
        "volcano-capacity",
        "actions = [\"allocate\", \"reclaim\"]",
        "deserved = { cpu = 4 }\nmin_available = 2",
        Some("deserved = { cpu = 0 }"),
    ),
    ("volcano-drf", "actions = [\"allocate\", \"preempt\"]", "min_available = 2", None),
    ("volcano-proportion", "actions = [\"allocate\", \"preempt\"]", "min_available = 2", None),
    ("kueue", "", "nominal = { cpu = 4 }\nreclaim = \"any\"", Some("")),
    ("kueue@guarded", "", "nominal = { cpu = 4 }\nreclaim = \"any\"", Some("")),
    ("yarn-fair", "", "min = { cpu = 4 }", Some("weight = 0")),
    (
        "yarn-capacity",
        "max_ignored = 0\nnatural_termination = 1\nper_round = 1",
        "percent = 100",
        Some("percent = 0\nmax_percent = 100"),
    ),
    ("yunikorn-fair", "", "guaranteed = { cpu = 4 }", Some("")),
    ("armada", "", "", None),
    ("koordinator", "", "", None),
];

/// The name of a layout, its machines, and the number of cores of each of the two victims. Each of the two requests has two cores.
const LAYOUTS: [(&str, &str, u32); 4] = [
    ("pool", "capacity = { cpu = 4 }", 2),
    ("one machine", "machines = \"1x4c\"", 2),
    ("an idle machine and one of victims", "machines = \"2x2c\"", 1),
    ("two machines of victims", "machines = \"2x2c\"", 2),
];

/// Returns a state with victims that start in the first rounds, and requests that arrive for the sixth round. `victims` and `requests` are
/// true if the victims or the requests are gangs.
fn text((_, policy, own, other): &Case, machines: &str, cores: u32, victims: bool, requests: bool) -> String {
    let mut text = format!("{machines}\n[policy]\n{policy}\n[[group]]\nname = \"own\"\n{own}\n");
    if let Some(other) = other {
        let _ = write!(text, "[[group]]\nname = \"other\"\n{other}\n");
    }
    let (group, priority) = if other.is_some() { ("other", 0) } else { ("own", 9) };
    let _ = write!(
        text,
        "[[waiting]]\nname = \"v\"\ngroup = \"{group}\"\ndemand = {{ cpu = {cores} }}\ntasks = 2\ngang = {victims}\n\
         [[arrive]]\nat_round = 6\nname = \"w\"\ngroup = \"own\"\ndemand = {{ cpu = 2 }}\ntasks = 2\ngang = {requests}\n\
         priority = {priority}\n"
    );
    text
}

/// If the machines have room for both requests without the victims, both requests run, whether or not the requests or the victims are
/// gangs.
#[test]
fn gangs_and_tasks_have_the_same_outcome() {
    let mut wrong = String::new();
    for case in &POLICIES {
        for (layout, machines, cores) in LAYOUTS {
            for (victims, requests) in [(false, false), (false, true), (true, false), (true, true)] {
                let outcome = play(case.0, &text(case, machines, cores, victims, requests), 12);
                // Volcano's gang plugin is in the first tier, and if it has victims, it alone decides (session_plugins.go). Of the two
                // victim tasks of one job it offers only the task beyond the job's minimum, which has fewer cores than a request.
                let tier = case.0 == "volcano-capacity" && cores == 1 && !victims;
                if outcome != if tier { (0, 0) } else { (2, 2) } {
                    let _ = writeln!(wrong, "{}, {layout}, gangs {victims} {requests}: {outcome:?}", case.0);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "victims and running requests differ from 2 and 2:\n{wrong}");
}

/// A policy, its own keys, and keys that are drawn for its queues. No key is a maximum.
type Drawn = (&'static str, &'static str, &'static [&'static str]);

/// The policies, without the capacity scheduler: it stops containers because of the amounts of queues and not for a particular request.
const DRAWN: [Drawn; 9] = [
    ("kai", "", &["deserved = { cpu = #, memory_gib = # }", "weight = #"]),
    (
        "volcano-capacity",
        "actions = [\"allocate\", \"preempt\", \"reclaim\"]",
        &["deserved = { cpu = #, memory_gib = # }"],
    ),
    ("volcano-drf", "actions = [\"allocate\", \"preempt\"]", &["weight = #"]),
    ("volcano-proportion", "actions = [\"allocate\", \"preempt\", \"reclaim\"]", &["weight = #"]),
    ("kueue@guarded", "", &["nominal = { cpu = # }", "reclaim = \"any\"", "within = \"lower-priority\""]),
    ("yarn-fair", "", &["min = { cpu = # }", "weight = #.3", "preemption_threshold = 0.#"]),
    ("yunikorn-fair@guarded", "", &["guaranteed = { cpu = # }", "priority = #"]),
    ("armada", "", &["weight = #.3"]),
    ("koordinator", "revoke = false", &["min = { cpu = # }"]),
];

/// Returns the free amount of each machine beside these tasks.
fn free(state: &State, runs: &[RunningWorkload]) -> Vec<Resources> {
    let mut free = state.cluster.capacities.clone();
    for run in runs {
        for (machine, tasks) in &run.parts {
            let used = state.workloads[run.workload].demand.times(*tasks);
            free[*machine as usize].0.iter_mut().zip(used.0).for_each(|(free, used)| *free -= used);
        }
    }
    free
}

/// Returns the name of a task or gang that was stopped in a round although it fits on its machines beside all tasks that run after the
/// round.
fn needless(state: &State, before: &Situation, after: &Situation) -> Option<String> {
    let room = free(state, &after.running);
    let now: Vec<_> = after.running.iter().map(|run| (run.workload, &run.parts)).collect();
    let stopped = before.running.iter().filter(|run| !now.contains(&(run.workload, &run.parts)));
    let mut found = stopped.filter(|run| {
        let workload = &state.workloads[run.workload];
        let left = after.running.iter().filter(|other| other.workload == run.workload);
        // Tasks of a workload are stopped one by one, and may start again on another machine. Only workloads with fewer tasks than before
        // count.
        let fewer = left.map(|run| run.tasks()).sum::<u32>()
            < before.running.iter().filter(|other| other.workload == run.workload).map(|run| run.tasks()).sum();
        let fits = |(machine, tasks): &(u32, u32)| {
            workload.demand.times(if workload.gang { *tasks } else { 1 }).fits(&room[*machine as usize])
        };
        fewer && run.parts.iter().all(fits)
    });
    found.next().map(|run| state.workloads[run.workload].name.clone())
}

/// No victim fits on its machine in addition to all tasks that run after a round.
#[test]
fn no_victim_is_stopped_without_need() {
    let registry = Registry::new(BUILT_IN);
    let mut wrong = String::new();
    for (policy, own, keys) in DRAWN {
        let mut rng = ChaCha8Rng::seed_from_u64(40);
        let (mut rounds, mut bad, mut first) = (0, 0, String::new());
        for _ in 0..1000 {
            let mut text = format!("{}[policy]\n{own}\n", draw(&mut rng, keys, false));
            if policy == "volcano-proportion" || policy == "kueue@guarded" {
                text = text.replace("parent = \"p\"\n", "");
            }
            if policy == "koordinator" {
                // All workloads are in one group, so that its runtime quota is the whole cluster.
                for group in ["x", "y"] {
                    text = text.replace(&format!("group = \"{group}\""), "group = \"q\"");
                }
            }
            let state = state(&text);
            let bench =
                Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{policy}: {error}\n{text}"));
            let mut situation = Situation::first(&state);
            for _ in 0..4 {
                let before = situation.clone();
                let round = bench.play(&mut situation).unwrap_or_else(|error| panic!("{policy}: {error}\n{text}"));
                if !round.evicted.is_empty() {
                    rounds += 1;
                    if let Some(name) = needless(&state, &before, &situation) {
                        bad += 1;
                        if first.is_empty() {
                            first =
                                format!("{name}\nlaunched {:?}\nevicted {:?}\n{text}", round.launched, round.evicted);
                        }
                    }
                }
                situation.pass(&state);
            }
        }
        assert!(rounds > 100, "{policy}: {rounds} rounds with victims");
        if bad > 0 {
            let _ = writeln!(wrong, "{policy}: {bad} of {rounds} rounds with victims: {first}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
