//! Armada: shares, the order of costs, and evicted and rescheduled tasks.
//!
//! Sources: armadaproject/armada, `TestCalculateFairShares` in `context/scheduling_test.go`, pull requests 5053 and 5071. States marked
//! as derived are not from the source: they follow from Armada's rules.

use crate::decide;
use std::fmt::Write as _;

/// Returns a state of queues with keys, and of workloads given as `KIND NAME QUEUE CPU TASKS PRIORITY`.
pub fn text(cpu: u32, queues: &[(&str, &str)], workloads: &str) -> String {
    let mut text = format!("[capacity]\ncpu = {cpu}\n");
    for (name, keys) in queues {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\n{keys}\n");
    }
    for line in workloads.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [kind, name, queue, cpu, tasks, priority] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ cpu = {cpu} }}\ntasks = {tasks}\npriority = {priority}\n"
        );
    }
    text
}

/// The vectors of `TestCalculateFairShares`, with a cluster of 100 cores.
#[test]
fn the_vectors_of_shares() {
    /// A queue's keys, its demand in cores, and its expected demand-capped and uncapped shares.
    type Row = (&'static str, u32, f64, f64);
    let third = 1.0 / 3.0;
    let cases: [&[Row]; 7] = [
        &[("weight = 1", 1000, 1.0, 1.0)],
        &[("weight = 1", 1, 0.01, 1.0)],
        &[("weight = 1", 0, 0.0, 1.0), ("weight = 1", 0, 0.0, 1.0)],
        &[("weight = 1", 1, 0.01, 0.99), ("weight = 1", 1, 0.01, 0.99)],
        &[("weight = 1", 1000, 0.25, 0.25), ("weight = 3", 1000, 0.75, 0.75)],
        &[("weight = 1", 1, 0.01, 0.25), ("weight = 3", 1000, 0.99, 0.99)],
        &[("", 1, 0.01, third + 0.0475), ("", 40, 0.4, 0.495), ("", 1000, 0.59, 0.59)],
    ];
    for rows in cases {
        let names = ["a", "b", "c"];
        let queues: Vec<(&str, &str)> = rows.iter().zip(names).map(|((keys, ..), name)| (name, *keys)).collect();
        let waiting: String = rows
            .iter()
            .zip(names)
            .filter(|((_, cpu, ..), _)| *cpu > 0)
            .map(|((_, cpu, ..), name)| format!("waiting w{name} {name} 1 {cpu} 0\n"))
            .collect();
        let answer = decide("armada", &text(100, &queues, &waiting));
        for ((_, _, capped, uncapped), name) in rows.iter().zip(names) {
            assert!((answer.share(name, "demand-capped share") - capped).abs() < 1e-9, "{name} of {rows:?}");
            assert!((answer.share(name, "uncapped share") - uncapped).abs() < 1e-9, "{name} of {rows:?}");
        }
    }
}

/// Derived: the next job is that of the queue with the lowest cost over weight, including the job.
#[test]
fn the_order_of_costs() {
    let answer =
        decide("armada", &text(6, &[("a", ""), ("b", "weight = 2")], "waiting wa a 1 9 0\nwaiting wb b 1 9 0"));
    let started =
        |name: &str| answer.launched.iter().filter(|(known, _)| known == name).map(|(_, tasks)| tasks).sum::<u32>();
    assert_eq!((started("wa"), started("wb")), (2, 4));
    // The larger job costs more, so both small jobs of the other queue start before it, and it no longer fits.
    let answer = decide("armada", &text(4, &[("a", ""), ("b", "")], "waiting wa a 3 1 0\nwaiting wb b 1 2 0"));
    assert_eq!(answer.launched(), ["wb"]);
}

/// Derived: a task that is reclaimed and runs again in the same cycle does not count as evicted. A queue at its share keeps all its
/// tasks.
#[test]
fn only_what_does_not_run_again_is_evicted() {
    let queues = [("a", ""), ("b", "")];
    let answer = decide("armada", &text(4, &queues, "running ra a 1 4 0\nwaiting wb b 1 4 0"));
    assert_eq!((&answer.evicted, &answer.launched), (&vec![("ra".to_owned(), 2)], &vec![("wb".to_owned(), 2)]));
    let even = "running ra a 1 2 0\nrunning rb b 1 2 0\nwaiting wb b 1 4 0";
    let answer = decide("armada", &text(4, &queues, even));
    assert!(answer.evicted.is_empty() && answer.launched.is_empty());
    // With a protected fraction of 1.5, queue a may use 1.5 times its share of two cores. It keeps its three tasks, although b has only
    // one task.
    let text = format!(
        "{}[policy]\nprotected_fraction = 1.5\n",
        text(4, &queues, "running ra a 1 3 0\nrunning rb b 1 1 0\nwaiting wb b 1 4 0")
    );
    assert!(decide("armada", &text).evicted.is_empty());
    assert_eq!(decide("armada", &text.replace("1.5", "1.4")).evicted, [("ra".to_owned(), 1)]);
}

/// Derived: more urgent jobs evict less urgent ones even from queues at or below their share, the youngest first.
#[test]
fn the_urgent_displace() {
    let queues = [("a", ""), ("b", "")];
    let text = text(4, &queues, "running ra1 a 1 1 0\nrunning ra2 a 1 1 0\nrunning rb b 1 2 0\nwaiting wb b 1 1 5");
    let answer = decide("armada", &text);
    assert_eq!((answer.evicted(), answer.launched()), (vec!["rb"], vec!["wb"]));
    assert!(decide("armada", &text.replace("priority = 5", "priority = 0")).evicted.is_empty());
}

/// Pull request 5053: each of three queues runs three jobs, and a queue of three times their weight takes two cores. The last job of each
/// of the three queues would run again last, so two queues lose one job each. With the fault one queue loses two jobs.
#[test]
fn the_order_of_pull_request_5053() {
    let queues = [("A", ""), ("B", ""), ("C", ""), ("D", "weight = 3")];
    let mut workloads = String::new();
    for at in 1..=3 {
        ["A", "B", "C"].iter().for_each(|queue| {
            let _ = writeln!(workloads, "running {}{at} {queue} 1 1 0", queue.to_lowercase());
        });
    }
    workloads += "waiting d D 2 1 0";
    let text = text(9, &queues, &workloads);
    let evicted = |policy: &str| {
        let mut evicted: Vec<String> = decide(policy, &text).evicted.into_iter().map(|(name, _)| name).collect();
        evicted.sort();
        evicted
    };
    assert_eq!(evicted("armada"), ["b3", "c3"]);
    assert_eq!(evicted("armada@5053"), ["c2", "c3"]);
}

/// Pull request 5071, on two machines: w0 takes the room of r7, and w1 takes the room of r0. Since r0 cannot run again, r7 is next in the
/// order, before r2. With the fault r7 runs again, and r2 finds no room.
#[test]
fn the_innocent_of_pull_request_5071() {
    let state = include_str!("../../../../experiments/court/armada-5071.toml");
    let evicted = |policy: &str| {
        let mut evicted: Vec<String> = decide(policy, state).evicted.into_iter().map(|(name, _)| name).collect();
        evicted.sort();
        evicted
    };
    assert_eq!(evicted("armada"), ["r0", "r7"]);
    assert_eq!(evicted("armada@5071"), ["r0", "r2"]);
}
