//! YARN's capacity scheduler: order, limits, and preemption towards the ideal assignment.
//!
//! Sources: apache/hadoop, `TestProportionalCapacityPreemptionPolicy` (100 containers with one unit of memory each; one round preempts a
//! whole excess), YARN-6538, YARN-11082. States marked as derived are not from the source: they follow from YARN's rules.

use crate::decide;
use std::fmt::Write as _;

/// Returns a state of queues A, B, C and D, each given as its guarantee and its maximum in percent, and its numbers of running and
/// waiting containers.
fn text(queues: &[(u32, u32, u32, u32)], policy: &str) -> String {
    let mut text = format!(
        "[capacity]\nmemory_mib = 100\n[policy]\nnatural_termination = 1\nper_round = 1\nresources = \"memory\"\n{policy}\n"
    );
    for (name, (percent, most, ..)) in ["A", "B", "C", "D"].iter().zip(queues) {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\npercent = {percent}\nmax_percent = {most}\n");
    }
    for (name, (_, _, used, pending)) in ["A", "B", "C", "D"].iter().zip(queues) {
        for (kind, tasks) in [("running", used), ("waiting", pending)] {
            if *tasks > 0 {
                let _ = write!(
                    text,
                    "[[{kind}]]\nname = \"{kind} {name}\"\ngroup = \"{name}\"\ndemand = {{ memory_mib = 1 }}\ntasks = {tasks}\n"
                );
            }
        }
    }
    text
}

fn evicted(queues: &[(u32, u32, u32, u32)], policy: &str) -> Vec<(String, u32)> {
    decide("yarn-capacity", &text(queues, policy)).evicted
}

/// `TestProportionalCapacityPreemptionPolicy`.
#[test]
fn the_source_s_own_preemptions() {
    // testIgnore: no pending demand.
    assert!(evicted(&[(40, 100, 0, 0), (40, 100, 60, 0), (20, 100, 40, 0)], "").is_empty());
    // testProportionalPreemption.
    let one = [(10, 100, 30, 20), (40, 100, 60, 5), (20, 100, 10, 20), (30, 100, 0, 0)];
    assert_eq!(evicted(&one, ""), [("running A".to_owned(), 10)]);
    // testMaxCap: queue B is at its maximum, so it cannot use containers of A.
    assert!(evicted(&[(40, 100, 55, 10), (40, 45, 45, 10), (20, 100, 0, 0)], "").is_empty());
    // testPreemptCycle.
    let cycle = [(40, 100, 0, 10), (40, 100, 60, 0), (20, 100, 40, 0)];
    assert_eq!(evicted(&cycle, ""), [("running C".to_owned(), 10)]);
}

/// Derived: a queue near its guarantee, or one that is not reclaimable, loses no container.
#[test]
fn the_dead_zone() {
    let near = [(40, 100, 36, 10), (40, 100, 43, 0), (20, 100, 21, 0)];
    assert!(evicted(&near, "").is_empty());
    // 4 units are left. A receives 2, then 1. Its part of the last unit is 0.4, which is rounded to 0, so B receives that unit.
    assert_eq!(evicted(&near, "max_ignored = 0"), [("running B".to_owned(), 2), ("running C".to_owned(), 1)]);
    let off = text(&near, "max_ignored = 0\npreemption = false");
    assert!(decide("yarn-capacity", &off).evicted.is_empty());
    let kept = text(&near, "max_ignored = 0").replace("name = \"B\"\n", "name = \"B\"\nreclaimable = false\n");
    assert_eq!(decide("yarn-capacity", &kept).evicted, [("running C".to_owned(), 1)]);
}

/// Derived: a cycle preempts at most a part of an excess, rounded up to a whole container, and at most a part of the cluster.
#[test]
fn the_pace_of_preemption() {
    let cycle = [(40, 100, 0, 10), (40, 100, 60, 0), (20, 100, 40, 0)];
    let text = text(&cycle, "");
    let with = |key: &str, to: &str| decide("yarn-capacity", &text.replace(key, to)).evicted[0].1;
    assert_eq!(with("natural_termination = 1", "natural_termination = 0.25"), 3);
    assert_eq!(with("per_round = 1", "per_round = 0.04"), 4);
}

/// Derived: the next container is from the queue that uses the smallest part of its guarantee, in its dominant resource.
#[test]
fn the_order_of_queues() {
    let text = "[capacity]\nmemory_mib = 100\ncpu = 10\n[[group]]\nname = \"a\"\npercent = 50\n[[group]]\nname = \"b\"\npercent = 50\n\
        [[running]]\nname = \"ra\"\ngroup = \"a\"\ndemand = { memory_mib = 10, cpu = 4 }\n\
        [[running]]\nname = \"rb\"\ngroup = \"b\"\ndemand = { memory_mib = 30, cpu = 1 }\n\
        [[waiting]]\nname = \"wa\"\ngroup = \"a\"\ndemand = { memory_mib = 60, cpu = 1 }\n\
        [[waiting]]\nname = \"wb\"\ngroup = \"b\"\ndemand = { memory_mib = 60, cpu = 1 }\n";
    assert_eq!(decide("yarn-capacity", text).launched(), ["wb"], "b uses 0.3 of the memory, and a 0.4 of the cores");
    let memory = format!("{text}[policy]\nresources = \"memory\"\n");
    assert_eq!(decide("yarn-capacity", &memory).launched(), ["wa"]);
    // With priorities: both queues are below their guarantees, and the queue of the higher priority is first.
    let urgent = format!("{text}[policy]\nordering = \"priority-utilization\"\n")
        .replace("name = \"a\"\n", "name = \"a\"\npriority = 2\n");
    assert_eq!(decide("yarn-capacity", &urgent).launched(), ["wa"]);
    // If that queue is at its guarantee and the other queue is below, the other queue is first.
    let full = urgent.replace("cpu = 4 }", "cpu = 5 }");
    assert_eq!(decide("yarn-capacity", &full).launched(), ["wb"]);
}

/// Derived: guarantees given as amounts, as percentages of the parent's guarantee, and as weights in the rest; maximums and user limits.
#[test]
fn guarantees_and_limits() {
    let base = "[capacity]\ncpu = 100\n[[group]]\nname = \"a\"\nguarantee = { cpu = 20 }\n[[group]]\nname = \"b\"\npercent = 30\n\
        [[group]]\nname = \"c\"\nweight = 3\n[[group]]\nname = \"d\"\n\
        [[group]]\nname = \"b1\"\nparent = \"b\"\npercent = 50\nmax_percent = 10\n[[group]]\nname = \"b2\"\nparent = \"b\"\n";
    let wait = |name: &str, group: &str, tasks: u32, more: &str| {
        format!(
            "[[waiting]]\nname = \"{name}\"\ngroup = \"{group}\"\ndemand = {{ cpu = 1 }}\ntasks = {tasks}\n{more}\n"
        )
    };
    let answer = decide("yarn-capacity", &(base.to_owned() + &wait("w", "b1", 30, "")));
    let guaranteed = |name: &str| {
        let standing = answer.round.standings.iter().find(|standing| standing.name == name);
        standing.and_then(|standing| standing.guaranteed[0]).expect("a guarantee")
    };
    assert_eq!(["a", "b", "c", "d", "b1", "b2"].map(guaranteed), [20_000, 30_000, 37_500, 12_500, 10_000, 15_000]);
    assert_eq!(answer.launched, [("w".to_owned(), 10)], "the maximum is 10 of 100 cores");
    let limited = base.replace("name = \"a\"\n", "name = \"a\"\nuser_limit_factor = 0.5\n") + &wait("w", "a", 30, "");
    // The user limit is half of the guarantee of 20. A container starts while the usage is at most the limit, so 11 start.
    assert_eq!(decide("yarn-capacity", &limited).launched, [("w".to_owned(), 11)]);
}

/// YARN-6538, with other numbers: one queue uses all 168 cores of a cluster with 3 TiB of memory, and the other queue requests ten.
#[test]
fn the_cores_of_issue_6538() {
    let state = include_str!("../../../../experiments/court/yarn-6538.toml");
    assert_eq!(decide("yarn-capacity", state).evicted, [("a1".to_owned(), 2)], "a fifth of the ten requested");
    assert!(decide("yarn-capacity@6538", state).evicted.is_empty());
}
