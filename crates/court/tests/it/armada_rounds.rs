//! Armada: test vectors of scheduling rounds. Each round is a state that contains the workloads that earlier rounds have started.
//!
//! Source: armadaproject/armada, `preempting_queue_scheduler_test.go`, `queue_scheduler_test.go` and `fairness_test.go`. In the source,
//! nodes have 32 cores and 256 GiB, and a job needs 1 core and 4 GiB, or a whole node. In these tests a queue's weight is 1 divided by
//! its priority factor, and priority classes are priorities. A non-preemptible class is the highest priority of its test.

use crate::{Answer, decide, state};
use plimsoll_court::{Bench, Situation};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use std::fmt::Write as _;

/// Returns a state from lines: `m NAME CPU MEMORY`, `q NAME WEIGHT`, `r NAME QUEUE MACHINE CPU MEMORY TASKS PRIORITY` and `w NAME QUEUE
/// CPU MEMORY TASKS PRIORITY [gang]`. If no line declares a queue, the queues of all workloads are declared with a weight of 1.
fn text(lines: &str) -> String {
    let mut out = String::new();
    let mut queues: Vec<&str> = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let _ = match parts[..] {
            ["m", name, cpu, memory] => {
                write!(out, "[[machine]]\nname = \"{name}\"\ncpu = {cpu}\nmemory_gib = {memory}\n")
            }
            ["q", name, weight] => {
                queues.push(name);
                write!(out, "[[group]]\nname = \"{name}\"\nweight = {weight}\n")
            }
            ["r", name, queue, machine, cpu, memory, tasks, priority] => write!(
                out,
                "[[running]]\nname = \"{name}\"\ngroup = \"{queue}\"\nmachine = \"{machine}\"\n\
                demand = {{ cpu = {cpu}, memory_gib = {memory} }}\ntasks = {tasks}\npriority = {priority}\n"
            ),
            ["w", name, queue, cpu, memory, tasks, priority, ref gang @ ..] => write!(
                out,
                "[[waiting]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ cpu = {cpu}, memory_gib = {memory} }}\n\
                tasks = {tasks}\npriority = {priority}\n{}",
                if gang.is_empty() { "" } else { "gang = true\n" }
            ),
            _ => panic!("{line}"),
        };
        if let (["r" | "w", _, queue, ..], true) = (&parts[..], !lines.contains("q "))
            && !queues.contains(queue)
        {
            queues.push(queue);
            let _ = write!(out, "[[group]]\nname = \"{queue}\"\n");
        }
    }
    out
}

/// Returns the number of tasks of each workload, in the order of names.
fn counts(tasks: &[(String, u32)]) -> Vec<(&str, u32)> {
    let mut counts: std::collections::BTreeMap<&str, u32> = Default::default();
    tasks.iter().for_each(|(name, tasks)| *counts.entry(name).or_default() += tasks);
    counts.into_iter().collect()
}

fn check(what: &str, answer: &Answer, launched: &[(&str, u32)], evicted: &[(&str, u32)]) {
    assert_eq!((counts(&answer.launched), counts(&answer.evicted)), (launched.to_vec(), evicted.to_vec()), "{what}");
}

/// Checks the decisions of a round. The evicted tasks then wait again, and the next round must make no decision.
fn round(what: &str, lines: &str, launched: &[(&str, u32)], evicted: &[(&str, u32)]) {
    check(what, &decide("armada", &text(lines)), launched, evicted);
    let (state, registry) = (state(&text(lines)), Registry::new(BUILT_IN));
    let bench = Bench::new(&state, "armada", &registry).unwrap_or_else(|error| panic!("{error}"));
    let mut situation = Situation::first(&state);
    let mut play = || bench.play(&mut situation).unwrap_or_else(|error| panic!("{what}: {error}"));
    play();
    let next = play();
    assert!(next.launched.is_empty() && next.evicted.is_empty(), "{what}, the next round: {next:?}");
}

const ONE: &str = "m m1 32 256\n";
const TWO: &str = "m m1 32 256\nm m2 32 256\n";
const THREE: &str = "m m1 32 256\nm m2 32 256\nm m3 32 256\n";

/// `TestPreemptingQueueScheduler`: the cases of balancing.
#[test]
fn balancing() {
    let queues = "q A 1\nq B 1\nq C 1\n";
    let base = format!("{ONE}{queues}");
    round("three queues, 1", &format!("{base}w a A 1 4 32 0"), &[("a", 32)], &[]);
    round("three queues, 2", &format!("{base}r a A m1 1 4 32 0\nw b B 1 4 32 0"), &[("b", 16)], &[("a", 16)]);
    let two = "r a A m1 1 4 16 0\nr b B m1 1 4 16 0\n";
    round("three queues, 3", &format!("{base}{two}w c C 1 4 10 0"), &[("c", 10)], &[("a", 5), ("b", 5)]);
    let three = "r a A m1 1 4 11 0\nr b B m1 1 4 11 0\nr c C m1 1 4 10 0\n";
    round("three queues, 4", &format!("{base}{three}w a4 A 1 4 1 0\nw b4 B 1 4 1 0\nw c4 C 1 4 1 0"), &[], &[]);
    for more in ["", "q C 1\nq D 0.01\n"] {
        let base = format!("{ONE}q A 0.5\nq B 1\n{more}");
        round("weighted, 2", &format!("{base}r a A m1 1 4 32 0\nw b B 1 4 32 0"), &[("b", 21)], &[("a", 21)]);
        let rest = "r a A m1 1 4 11 0\nr b B m1 1 4 21 0\nw a3 A 1 4 1 0\nw b3 B 1 4 1 0";
        round("weighted, 3", &format!("{base}{rest}"), &[], &[]);
    }
    for (one, other) in [("A", "B"), ("B", "A")] {
        let lines = format!("{ONE}r one {one} m1 1 4 32 0\nw whole {other} 32 256 1 0");
        round("avoid preemption when not improving fairness", &lines, &[], &[]);
        let lines = format!("{TWO}r one {one} m1 1 4 32 0\nw other {other} 1 4 32 0");
        round("reschedule onto same node", &lines, &[("other", 32)], &[]);
    }
    let lines = format!("{TWO}r a1 A m1 1 4 32 0\nr a2 A m2 1 4 32 0\nw b B 32 256 1 0");
    round("preemption when improving fairness", &lines, &[("b", 1)], &[("a2", 32)]);
    let lines =
        format!("{TWO}r a1 A m1 1 4 16 0\nr b1 B m1 1 4 16 0\nr a2 A m2 1 4 16 0\nr b2 B m2 1 4 16 0\nw c C 1 4 32 0");
    let answer = decide("armada", &text(&lines));
    let of = |queue: &str| -> u32 {
        answer.evicted.iter().filter(|(name, _)| name.starts_with(queue)).map(|(_, tasks)| tasks).sum()
    };
    assert_eq!(counts(&answer.launched), [("c", 21)], "SchedulingKey incorrect re-use");
    assert_eq!((of("a"), of("b")), (10, 11), "SchedulingKey incorrect re-use");
}

/// `TestPreemptingQueueScheduler`: the cases of urgency.
#[test]
fn urgency() {
    round("stability, 1", &format!("{ONE}w a A 1 4 33 2"), &[("a", 32)], &[]);
    round("stability, 2", &format!("{ONE}r a A m1 1 4 32 2\nw b B 1 4 1 3"), &[("b", 1)], &[("a", 1)]);
    round("stability, 3", &format!("{ONE}r a A m1 1 4 31 2\nr b B m1 1 4 1 3\nw a3 A 1 4 1 2"), &[], &[]);
    let whole = |name: &str, queue: &str, machine: &str, priority: u32| {
        format!("r {name} {queue} {machine} 32 256 1 {priority}\n")
    };
    let lines = format!("{TWO}{}w a2 A 32 256 1 1", whole("a1", "A", "m1", 0));
    round("avoid urgency-based preemption when possible", &lines, &[("a2", 1)], &[]);
    let lines = format!("{TWO}{}{}w a3 A 32 256 1 2", whole("a1", "A", "m1", 1), whole("a2", "A", "m2", 0));
    round("preempt in order of priority", &lines, &[("a3", 1)], &[("a2", 1)]);
    let running = [whole("a", "A", "m1", 1), whole("b", "B", "m2", 0), whole("c", "C", "m3", 2)].concat();
    round("cross-queue", &format!("{THREE}{running}w d D 32 256 1 3"), &[("d", 1)], &[("b", 1)]);
    for queue in ["A", "B"] {
        let lines = format!("{ONE}{}w new {queue} 32 256 1 1", whole("a", "A", "m1", 0));
        round("two classes", &lines, &[("new", 1)], &[("a", 1)]);
    }
    round("not scheduled", &format!("{ONE}w a A 32 256 1 0\nw a1 A 32 256 1 1"), &[("a1", 1)], &[]);
    let lines = format!("{ONE}r a A m1 1 4 16 0\nr b B m1 1 4 16 1\nw c C 1 4 17 2");
    round("through multiple levels", &lines, &[("c", 17)], &[("a", 16), ("b", 1)]);
    let lines = format!("{ONE}r a0 A m1 1 4 10 0\nr a1 A m1 1 4 10 1\nr a2 A m1 1 4 10 2\nw a3 A 1 4 24 3");
    round("four classes", &lines, &[("a3", 24)], &[("a0", 10), ("a1", 10), ("a2", 2)]);
    round("queued jobs", &format!("{ONE}w a A 1 4 32 0\nw b B 1 4 32 1"), &[("b", 32)], &[]);
    round("some scheduled", &format!("{ONE}w a A 1 4 32 0\nw b B 1 4 31 1"), &[("a", 1), ("b", 31)], &[]);
    let lines = format!("{ONE}r a A m1 1 4 16 1\nw a2 A 1 4 16 0\nw b B 1 4 32 1");
    round("multiple rounds", &lines, &[("b", 16)], &[]);
    let lines = format!("{ONE}w a A 1 4 32 0 gang\nw b B 1 4 32 1 gang");
    round("gangs", &lines, &[("b", 32)], &[]);
    // A gang is preempted as a whole.
    let lines = "m m1 64 512\nr a A m1 1 4 16 0\nr b B m1 1 4 16 0\nr c C m1 1 4 32 0\nw a3 A 1 4 17 1";
    let gang = text(lines).replace("name = \"c\"\n", "name = \"c\"\ngang = true\n");
    check("gang preemption", &decide("armada", &gang), &[("a3", 17)], &[("c", 32)]);
}

/// `TestPreemptingQueueScheduler`: the cases of the protected fraction, and of dominant resources.
#[test]
fn protected_fractions() {
    let state = |fraction: &str, lines: &str| format!("{}[policy]\nprotected_fraction = {fraction}\n", text(lines));
    let play = |fraction: &str, lines: &str| decide("armada", &state(fraction, lines));
    let lines = format!("{ONE}r a A m1 1 4 10 0\nr b B m1 1 4 22 3\nw c C 1 4 1 0");
    check("1", &play("1.0", &lines), &[], &[]);
    let lines = format!("{ONE}q A 2\nq B 1\nq C 1\nr a A m1 1 4 8 0\nr b B m1 1 4 24 3\nw c C 1 4 1 0");
    check("at limit", &play("0.5", &lines), &[], &[]);
    let lines = format!("{ONE}r a A m1 1 4 9 0\nr b B m1 1 4 23 3\nw c C 1 4 1 0");
    check("above limit", &play("0.5", &lines), &[("c", 1)], &[("a", 1)]);
    let running = "r a A m1 1 4 16 2\nr b B m1 1 4 11 0\nr c C m1 1 4 3 0\nr d D m1 1 4 2 0\n";
    check("reshared", &play("1.0", &format!("{ONE}{running}w d2 D 1 4 1 0")), &[], &[]);
    let queues = "q A 1\nq B 0.5\nq C 1\n";
    let lines = format!("{ONE}{queues}r a A m1 1 4 24 2\nr b B m1 1 4 8 0\nw c C 1 4 1 0");
    check("non equal weights", &play("1.0", &lines), &[], &[]);
    round("dominant", &format!("{ONE}w a A 1 16 32 0\nw b B 1 4 32 0"), &[("a", 10), ("b", 22)], &[]);
}

/// `TestQueueScheduler`.
#[test]
fn queues() {
    round("simple failure", &format!("{ONE}w a A 1 4 33 0"), &[("a", 32)], &[]);
    round("multiple nodes", &format!("{TWO}w a A 1 4 64 0"), &[("a", 64)], &[]);
    round("lower-priority jobs", &format!("{ONE}w a A 1 4 1 0\nw b A 1 4 1 1"), &[("a", 1), ("b", 1)], &[]);
    round("higher-priority jobs", &format!("{ONE}w a A 32 256 1 1\nw b A 1 4 1 0"), &[("a", 1)], &[]);
    let large: String = (0..10).map(|at| format!("w l{at} A 32 256 1 0\n")).collect();
    let lines = format!("{ONE}w a A 1 4 1 0\n{large}w z A 1 4 1 0");
    round("unschedulable jobs do not block", &lines, &[("a", 1), ("z", 1)], &[]);
    round("fairness two queues", &format!("{ONE}w a A 1 4 32 0\nw b B 1 4 32 0"), &[("a", 16), ("b", 16)], &[]);
    let waiting = "w a A 1 4 96 0\nw b B 1 4 96 0\nw c C 1 4 96 0";
    round("fairness three queues", &format!("{ONE}{waiting}"), &[("a", 11), ("b", 11), ("c", 10)], &[]);
    let lines = format!("{THREE}q A 1\nq B 0.5\nw a A 1 4 96 0\nw b B 1 4 96 0");
    round("weighted two queues", &lines, &[("a", 64), ("b", 32)], &[]);
    let lines = format!("{THREE}q A 1\nq B 0.5\nq C 0.1\n{waiting}");
    round("weighted three queues", &lines, &[("a", 60), ("b", 30), ("c", 6)], &[]);
    round("some available capacity", &format!("{ONE}r x X m1 31 4 1 1\nw a A 1 4 2 0"), &[("a", 1)], &[]);
    round("used resources", &format!("{ONE}r x X m1 32 4 1 0\nw a A 32 256 1 1"), &[("a", 1)], &[("x", 1)]);
    round("gang success", &format!("{TWO}w a A 32 256 2 0 gang"), &[("a", 2)], &[]);
    let lines = format!("{THREE}r x X m1 1 4 1 1\nw a A 32 256 3 0 gang");
    round("gang failure", &lines, &[], &[]);
}

/// `TestDominantResourceFairness`, with amounts in thousandths. In the source `baz` does not count; in this test its multiplier is 0.
#[test]
fn costs() {
    let cost = |capacity: [u32; 3], used: &str, policy: &str| {
        let [foo, bar, baz] = capacity;
        let text = format!(
            "[capacity]\nfoo = {foo}\nbar = {bar}\nbaz = {baz}\n[[group]]\nname = \"A\"\n[policy]\n{policy}\n[[running]]\nname = \"r\"\n\
            group = \"A\"\ndemand = {{ {used} }}\n[[waiting]]\nname = \"w\"\ngroup = \"A\"\ndemand = {{ foo = 1 }}\n"
        );
        decide("armada", &text).share("A", "cost")
    };
    let (some, considered) = ([1000, 2000, 3000], "multipliers = { baz = 0 }");
    for (used, policy, expected) in [
        ("foo = 500", considered, 0.5),
        ("bar = 500", considered, 0.25),
        ("foo = 500, bar = 1100", considered, 0.55),
        ("foo = 500, baz = 3000", considered, 0.5),
        ("foo = 500, bar = 1100", "multipliers = { foo = 1, bar = 1, baz = 0 }", 0.55),
        ("foo = 500, bar = 1100", "multipliers = { foo = 4, bar = 1, baz = 0 }", 2.0),
    ] {
        assert!((cost(some, used, policy) - expected).abs() < 1e-5, "{used} {policy}: {}", cost(some, used, policy));
    }
}

/// The cases of `TestCalculateFairShares` that `armada.rs` does not have. A queue has a weight and a demand in cores, of 100 in the
/// cluster. The expected values are its share by weight, its demand-capped share and its uncapped share.
#[test]
fn more_vectors_of_shares() {
    for rows in [
        &[(1, 1, [1.0, 0.01, 1.0])][..],
        &[(1, 1000, [0.5, 0.5, 0.5]), (1, 1000, [0.5, 0.5, 0.5])],
        &[(1, 1, [0.5, 0.01, 0.5]), (1, 1000, [0.5, 0.99, 0.99])],
        &[(1, 1000, [0.25, 0.99, 0.99]), (3, 1, [0.75, 0.01, 0.75])],
    ] {
        let mut text = "[capacity]\ncpu = 100\n".to_owned();
        for (at, (weight, demand, _)) in rows.iter().enumerate() {
            let _ = write!(
                text,
                "[[group]]\nname = \"q{at}\"\nweight = {weight}\n[[waiting]]\nname = \"w{at}\"\ngroup = \"q{at}\"\ndemand = {{ cpu = 1 }}\n\
                tasks = {demand}\n"
            );
        }
        let answer = decide("armada", &text);
        for (at, (.., expected)) in rows.iter().enumerate() {
            for (name, expected) in ["fair share", "demand-capped share", "uncapped share"].iter().zip(expected) {
                let share = answer.share(&format!("q{at}"), name);
                assert!((share - expected).abs() < 1e-9, "{name} of q{at}: {share}\n{text}");
            }
        }
    }
}

/// Derived: a job uses the room of an evicted job together with the room that was free, and later jobs use the rest of both.
#[test]
fn the_rest_of_a_room() {
    let lines = format!("{ONE}q A 1\nq B 1\nq C 1\nr a A m1 20 80 1 0\nr b B m1 4 16 1 0\nw c C 6 24 4 0");
    round("one evicted job makes room for several", &lines, &[("c", 4)], &[("a", 1)]);
    let queues = "q A 1\nq B 1\nq C 2\nq D 0.1\n";
    let lines = format!("{ONE}{queues}r a A m1 20 80 1 0\nr b B m1 6 24 1 0\nw c C 22 88 1 0\nw d D 2 8 2 0");
    round("the room of an evicted job and the free room", &lines, &[("c", 1), ("d", 2)], &[("a", 1)]);
}
