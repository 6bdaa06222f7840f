//! YARN's fair scheduler: order, fair shares, starvation and preemption.
//!
//! Sources: apache/hadoop, `TestDominantResourceFairnessPolicy`, `TestComputeFairShares` (as unit tests of the policy) and the rules of
//! `TestFairSchedulerPreemption`. States marked as derived are not from the source: they follow from YARN's rules.

use crate::{decide, state};
use plimsoll_court::{Bench, Verdict, judge};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use std::fmt::Write as _;

/// Returns a state of queues with keys, and of workloads given as `KIND NAME QUEUE MEMORY CPU TASKS`.
fn text(cluster: (u32, u32), queues: &[(&str, &str)], workloads: &str) -> String {
    let mut text = format!("[capacity]\nmemory_mib = {}\ncpu = {}\n", cluster.0, cluster.1);
    for (name, keys) in queues {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\n{keys}\n");
    }
    for line in workloads.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [kind, name, queue, memory, cpu, tasks] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ memory_mib = {memory}, cpu = {cpu} }}\ntasks = {tasks}\n"
        );
    }
    text
}

/// The pairs of `TestDominantResourceFairnessPolicy`: two queues compete for the room of one container, and the first of the pair is
/// served. The last two pairs are from `testCompareSchedulablesWithClusterResourceChanges`.
#[test]
fn the_one_that_is_served() {
    let cases = [
        ((8000, 4), ("", 1000, 1), ("", 2000, 1)),
        ((8000, 8), ("", 4000, 3), ("", 2000, 5)),
        ((8000, 8), ("min = { cpu = 6 }", 2000, 5), ("", 4000, 3)),
        ((8000, 100), ("", 2000, 5), ("", 4000, 3)),
        (
            (8000, 100),
            ("min = { memory_mib = 3000, cpu = 6 }", 2000, 5),
            ("min = { memory_mib = 5000, cpu = 4 }", 4000, 3),
        ),
        ((8000, 8), ("weight = 2", 3000, 1), ("", 2000, 1)),
        ((8000, 8), ("weight = 2", 1000, 3), ("", 2000, 1)),
        ((8000, 8), ("weight = 2", 1000, 3), ("", 1000, 2)),
        ((8000, 8), ("weight = 2", 3000, 1), ("", 1000, 2)),
        ((4000, 5), ("", 1000, 2), ("", 2000, 1)),
        ((8000, 6), ("", 2000, 1), ("", 1000, 2)),
    ];
    for (cluster, one, other) in cases {
        // The free room is enough for one of the two containers.
        let room = (cluster.0 - one.1 - other.1, cluster.1 - one.2 - other.2);
        let workloads = format!(
            "running r1 b {} {} 1\nrunning r2 a {} {} 1\nwaiting w2 a {} {} 1\nwaiting w1 b {} {} 1",
            one.1, one.2, other.1, other.2, room.0, room.1, room.0, room.1
        );
        let answer = decide("yarn-fair", &text(cluster, &[("a", other.0), ("b", one.0)], &workloads));
        assert_eq!(answer.launched(), ["w1"], "{one:?} before {other:?}");
    }
}

/// Issue YARN-11482: the fault compares the usage of the first queue, instead of its own, with the second queue's minimum share.
#[test]
fn the_order_of_issue_11482() {
    let queues = [("s1", ""), ("s2", "min = { memory_mib = 5000 }")];
    let workloads = "running r1 s1 2000 1 1\nrunning r2 s2 6000 1 1\nwaiting w1 s1 10 1 1\nwaiting w2 s2 10 1 1";
    let state = state(&text((8000, 8), &queues, workloads));
    let registry = Registry::new(BUILT_IN);
    let verdict = |policy: &str| {
        let bench = Bench::new(&state, policy, &registry).expect("a policy");
        judge(&bench, 10).expect("rounds").verdict
    };
    assert_eq!(verdict("yarn-fair@11482"), Verdict::OrderNotAntisymmetric);
    assert_ne!(verdict("yarn-fair"), Verdict::OrderNotAntisymmetric);
}

/// Derived: fair shares divide the cluster by weight, only among queues with allocation or pending demand.
#[test]
fn shares_of_active_queues() {
    let queues = [("a", "weight = 3"), ("b", ""), ("idle", "weight = 9"), ("capped", "max = { cpu = 1 }")];
    let workloads = "running r1 a 10 1 1\nwaiting w1 b 10 1 1\nwaiting w2 capped 10 1 1";
    let answer = decide("yarn-fair", &text((8000, 17), &queues, workloads));
    // Memory is divided in the ratio 3:1:1. Of the 17 cores the capped queue has one, and the other 16 are divided 3:1.
    assert_eq!(answer.share("a", "fair share of memory"), 4800.0 / 1024.0);
    assert_eq!(answer.share("a", "fair share of cpu"), 12.0);
    assert_eq!(answer.share("b", "fair share of cpu"), 4.0);
    assert_eq!(answer.share("capped", "fair share of cpu"), 1.0);
    assert_eq!(answer.share("idle", "fair share of memory"), 0.0);
}

/// Derived from `TestFairSchedulerPreemption`: one queue fills a cluster, and the fair share of another queue is half of the cluster.
/// With a threshold of 0.5 the other queue takes half of its fair share, a quarter of the cluster.
#[test]
fn a_starved_application_takes_up_to_the_threshold() {
    let full = "running r1 a 1000 1 8\nwaiting w1 b 1000 1 8";
    let answer = decide("yarn-fair", &text((8000, 8), &[("a", ""), ("b", "")], full));
    // The fair share is 4 cores, and the threshold is half of it.
    assert_eq!(answer.evicted, [("r1".to_owned(), 2)]);
    assert_eq!(answer.launched, [("w1".to_owned(), 2)]);
    let eager = [("a", ""), ("b", "preemption_threshold = 1.0")];
    assert_eq!(decide("yarn-fair", &text((8000, 8), &eager, full)).evicted, [("r1".to_owned(), 4)]);
    // A queue that is not reclaimable loses no container, and without preemption no queue does.
    let kept = [("a", "reclaimable = false"), ("b", "")];
    assert!(decide("yarn-fair", &text((8000, 8), &kept, full)).evicted.is_empty());
    let off = format!("{}[policy]\npreemption = false\n", text((8000, 8), &[("a", ""), ("b", "")], full));
    assert!(decide("yarn-fair", &off).evicted.is_empty());
}

/// Derived: all victims of a container are on one machine, the first with sufficient victims.
#[test]
fn containers_of_one_machine() {
    let mut text = "[[machine]]\nname = \"m1\"\ncpu = 3\n[[machine]]\nname = \"m2\"\ncpu = 5\n".to_owned();
    text += "[[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\n";
    for (machine, tasks) in [("m1", 3), ("m2", 5)] {
        let _ = write!(
            text,
            "[[running]]\nname = \"r-{machine}\"\ngroup = \"a\"\nuser = \"app\"\nmachine = \"{machine}\"\n\
            demand = {{ cpu = 1 }}\ntasks = {tasks}\n"
        );
    }
    text += "[[waiting]]\nname = \"w\"\ngroup = \"b\"\ndemand = { cpu = 4 }\n";
    // With a threshold of half of its fair share, b lacks 2 cores, which are less than a container of 4. With the whole share as the
    // threshold, b lacks 4 cores.
    assert!(decide("yarn-fair", &text).evicted.is_empty());
    let eager = text.replace("name = \"b\"\n", "name = \"b\"\npreemption_threshold = 1\n");
    let answer = decide("yarn-fair", &eager);
    assert_eq!(answer.evicted, [("r-m2".to_owned(), 4)]);
    assert_eq!(answer.launched(), ["w"]);
}

/// Derived: a queue below its minimum share takes the shortage from queues above their fair share. But the last application receives only
/// the part of its demand *beyond* that shortage. With the guard it receives the shortage.
#[test]
fn the_rest_of_a_minimum() {
    let queues = [("a", "weight = 7"), ("b", "min = { memory_mib = 3000, cpu = 3 }\npreemption_threshold = 0")];
    let workloads = "running r1 a 1000 1 8\nwaiting w1 b 1000 1 4";
    let evicted = |policy: &str| decide(policy, &text((8000, 8), &queues, workloads)).evicted;
    assert_eq!(evicted("yarn-fair"), [("r1".to_owned(), 1)]);
    assert_eq!(evicted("yarn-fair@guarded"), [("r1".to_owned(), 3)]);
}
