//! YARN's capacity scheduler: preemption in the vectors of its source.
//!
//! Source: apache/hadoop, the tests under `resourcemanager/monitor/capacity` (trunk). In the source one round preempts a whole excess,
//! and queues may have priorities.

use crate::decide;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns amounts in TOML, from `M:C:G` (memory, cores and devices), `M:C` or `M`.
fn amounts(text: &str) -> String {
    let all = ["memory_mib", "cpu", "gpu"].iter().zip(text.split(':'));
    let all: Vec<String> = all.map(|(name, amount)| format!("{name} = {amount}")).collect();
    format!("{{ {} }}", all.join(", "))
}

/// Returns the number of stopped containers by queue. A line describes a queue: its name, with a dot for each level of depth, its
/// guarantee and its maximum. A line of a leaf also has the running and the waiting containers, as `N*SIZE`, or `N` of one unit;
/// different containers are joined by `+`. Keys of the queue follow after a bar. Only memory counts, unless the amounts have more
/// resources.
fn stopped(whole: &str, policy: &str, lines: &str) -> BTreeMap<String, u32> {
    let by = if whole.contains(':') { "dominant" } else { "memory" };
    let ends = if policy.contains("natural_termination") { "" } else { "natural_termination = 1" };
    let mut text = format!("capacity = {}\n[policy]\nresources = \"{by}\"\nper_round = 1\n", amounts(whole));
    let _ = write!(text, "{ends}\nordering = \"priority-utilization\"\n{policy}\n");
    let mut above: Vec<&str> = Vec::new();
    let mut workloads = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (row, keys) = line.split_once('|').unwrap_or((line, ""));
        let words: Vec<&str> = row.split_whitespace().collect();
        let name = words[0].trim_start_matches('.');
        above.truncate(words[0].len() - name.len());
        let _ = write!(text, "[[group]]\nname = \"{name}\"\n{}\n", keys.replace(',', "\n"));
        let _ = write!(text, "guarantee = {}\ncapability = {}\n", amounts(words[1]), amounts(words[2]));
        above.last().inspect(|parent| text += &format!("parent = \"{parent}\"\n"));
        above.push(name);
        for (kind, all) in ["running", "waiting"].into_iter().zip(&words[3..]) {
            for (at, some) in all.split('+').filter(|some| *some != "0").enumerate() {
                let (tasks, size) = some.split_once('*').unwrap_or((some, "1"));
                let _ = write!(
                    workloads,
                    "[[{kind}]]\nname = \"{name}/{kind}{at}\"\ngroup = \"{name}\"\ndemand = {}\ntasks = {tasks}\n",
                    amounts(size)
                );
            }
        }
    }
    let mut all = BTreeMap::new();
    for (name, count) in decide("yarn-capacity", &(text + &workloads)).evicted {
        *all.entry(name.split('/').next().unwrap_or_default().to_owned()).or_default() += count;
    }
    all
}

/// A test of the source: its name, the cluster, the policy's keys, the queues, and the expected number of stopped containers by queue.
type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a [(&'a str, u32)]);

fn check(cases: &[Case]) {
    for (test, whole, policy, lines, expected) in cases {
        let expected: BTreeMap<String, u32> =
            expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(stopped(whole, policy, lines), expected, "{test}");
    }
}

const FIXED: &str = "| reclaimable = false";

/// `TestProportionalCapacityPreemptionPolicy`, queues side by side.
#[test]
fn side_by_side() {
    let disabled = "A 55 100 0 10\nB 25 100 54 0 B?\nC 20 100 46 0";
    let satisfied = "A 40 100 55 10\nB 40 100 45 10\nC 20 100 0 0";
    check(&[
        // In the source 103 units of 100 are in use. In this test the cluster has 103 units.
        ("testDeadzone", "103", "", "A 40 100 39 10\nB 40 100 43 0\nC 20 100 21 0", &[]),
        ("testPerQueueDisablePreemption, B disabled", "100", "", &disabled.replace("B?", FIXED), &[("C", 10)]),
        ("testPerQueueDisablePreemption", "100", "", &disabled.replace("B?", ""), &[("B", 4), ("C", 6)]),
        ("testOverCapacityImbalance", "100", "", satisfied, &[]),
        ("testNaturalTermination", "100", "natural_termination = 0.1", satisfied, &[]),
        // In this test no container is reserved, and the cluster has room.
        ("testPreemptionNotHappenForSingleReservedQueue", "100", "", "A 40 100 70 30\nB 40 100 0 0\nC 20 100 0 0", &[]),
        (
            "testPreemptionWithVCoreResource",
            "100:100",
            "",
            "A 50:50 100:100 10*1:10 7*10:3\nB 50:50 100:100 0 10*1:10",
            &[("A", 4)],
        ),
    ]);
}

/// `TestProportionalCapacityPreemptionPolicy`, trees of queues.
#[test]
fn trees() {
    let two = "A 100 200\n.B 50 200 60 0 B?\n.C 50 200 50 0\nD 100 200\n.E 10 200 90 0\n.F 90 200 0 10";
    let broad = "A 350 1000\n.B 150 1000 200 0 B?\n.C 200 1000 200 0\nD 400 1000\n.E 200 1000 250 0 E?\n\
        .F 200 1000 150 50\nG 250 1000\n.H 100 1000 150 0\n.I 150 1000 50 0";
    let inherit = "A 500 1000 A?\n.B 200 1000 0 0\n.C 200 1000 350 0\n.D 100 1000 350 0\nE 500 1000\n.F 200 1000 0 200\n\
        .G 200 1000 200 0\n.H 100 1000 100 0";
    let free = |lines: &str| lines.replace("A?", "").replace("B?", "").replace("E?", "");
    check(&[
        ("testHierarchical", "200", "", &free(two), &[("B", 10)]),
        ("testPerQueueDisablePreemptionHierarchical, B", "200", "", &two.replace("B?", FIXED), &[("E", 10)]),
        ("testPerQueueDisablePreemptionBroadHierarchical", "1000", "", &free(broad), &[("B", 27), ("E", 23)]),
        (
            "testPerQueueDisablePreemptionBroadHierarchical, B",
            "1000",
            "",
            &free(&broad.replace("B?", FIXED)),
            &[("E", 50)],
        ),
        (
            "testPerQueueDisablePreemptionBroadHierarchical, B and E",
            "1000",
            "",
            &broad.replace("B?", FIXED).replace("E?", FIXED),
            &[],
        ),
        ("testPerQueueDisablePreemptionInheritParent", "1000", "", &free(inherit), &[("C", 17), ("D", 183)]),
        ("testPerQueueDisablePreemptionInheritParent, A", "1000", "", &inherit.replace("A?", FIXED), &[]),
        (
            "testPerQueuePreemptionNotAllUntouchable",
            "2000",
            "",
            "A 1000 2000\n.B 800 2000 300 0\n.C 100 2000 800 0 | reclaimable = false\n.D 100 2000 200 0\n\
            E 1000 2000\n.F 500 2000 500 0\n.G 300 2000 0 300\n.H 200 2000 200 0",
            &[("D", 100)],
        ),
        (
            "testPerQueueDisablePreemptionRootDisablesAll",
            "1000",
            "preemption = false",
            "A 500 1000\n.B 250 1000 0 200\n.C 250 1000 20 0\nD 250 1000\n.E 100 1000 240 0\n.F 150 1000 250 0\n\
            G 250 1000\n.H 100 1000 240 0\n.I 150 1000 250 0",
            &[],
        ),
        // E uses 110 units, and its maximum is 109.
        (
            "testPerQueueDisablePreemptionOverAbsMaxCapacity",
            "1000",
            "",
            "A 725 1000\n.B 360 1000 396 0\n.C 365 1000 345 20\nD 275 550 | reclaimable = false\n.E 17 109 110 20\n\
            .F 258 1000 149 0",
            &[],
        ),
        (
            "testZeroGuar",
            "200",
            "",
            "A 100 200\n.B 0 200 60 0\n.C 99 200 20 0\nD 100 200\n.E 10 200 90 0\n.F 90 200 0 10",
            &[],
        ),
        (
            "testZeroGuarOverCap",
            "200",
            "",
            "A 100 200\n.B 0 200 60 30\n.C 100 200 20 10\n.D 0 200 90 10\nE 100 200\n.F 100 200 0 20",
            &[],
        ),
        (
            "testHierarchicalLarge",
            "400",
            "",
            "A 200 400\n.B 60 400 70 0\n.C 140 400 140 0\nD 100 400\n.E 70 400 50 0\n.F 30 400 50 0\nG 100 400\n\
            .H 10 400 90 0\n.I 90 400 0 15",
            &[("B", 9), ("H", 6)],
        ),
        (
            "testHierarchicalLarge3Levels",
            "400",
            "",
            "A 200 400\n.B 60 400 60 0\n.C 140 400\n..D 100 400 100 0\n..E 40 400 50 0\nF 100 400\n.G 70 400 50 0\n\
            .H 30 400 50 0\nI 100 400\n.J 10 400 10 0\n.K 90 400 80 10",
            &[("E", 9)],
        ),
    ]);
}

/// `TestProportionalCapacityPreemptionPolicyInterQueueWithDRF`, and `..PreemptToBalance` with its switch off, which is the default.
#[test]
fn several_resources() {
    check(&[
        (
            "testInterQueuePreemptionWithMultipleResource",
            "100:200",
            "",
            "a 50:100 100:200 20*2:4 10*3:7\nb 50:100 100:200 30*2:4 10*4:5",
            &[("b", 5)],
        ),
        // In the source the usage of queue a is 50:50, and its containers are 2:1 each.
        (
            "testInterQueuePreemptionWithNaturalTerminationFactor",
            "100:50",
            "natural_termination = 0.2",
            "a 50:25 100:50 50*1:1 0\nb 50:25 50:25 0 1*2:1",
            &[("a", 1)],
        ),
        (
            "test3ResourceTypesInterQueuePreemption",
            "30:18:6",
            "",
            "a 10:7:2 10:6:3 3*2:2:1 0\nb 10:6:2 10:6:3 3*2:2:1 0\nc 10:5:2 10:6:2 0 1*1:1:1",
            &[("b", 1)],
        ),
        (
            "testInterQueuePreemptionWithStrictAndRelaxedDRF, relaxed",
            "61440:600",
            "",
            "a 20480:200 61440:600 60*1024:1 0\nb 20480:200 61440:600 0 20*1024:1\nc 20480:200 61440:600",
            &[("a", 20)],
        ),
        (
            "testPreemptionToBalanceDisabled",
            "100",
            "",
            "a 30 100 10 30\nb 30 100 40 30\nc 30 100 50 30\nd 10 100 0 0",
            &[("b", 5), ("c", 15)],
        ),
    ]);
}

/// `TestPreemptionForQueueWithPriorities`.
#[test]
fn queues_with_priorities() {
    let under = "a 30 100 40 50 | priority = 1\nb 30 100 59 50 | priority = 2\nc 40 100 1 25 | priority = ";
    let buckets = "a 10 100 35 50 | priority = 1\nb 15 100 25 50 | priority = 1\nc 20 100 39 50 | priority = 2\n\
        d 25 100 0 0 | priority = 2\ne 30 100 1 99 | priority = 2";
    check(&[
        (
            "testPreemptionForHighestPriorityUnderutilizedQueue",
            "100",
            "",
            &format!("{under}2"),
            &[("a", 10), ("b", 15)],
        ),
        ("testPreemptionForLowestPriorityUnderutilizedQueue", "100", "", &format!("{under}0"), &[("a", 10), ("b", 15)]),
        (
            "testPreemptionWontHappenBetweenSatisfiedQueues",
            "100",
            "",
            "a 30 100 0 0 | priority = 1\nb 30 100 40 50 | priority = 1\nc 40 100 60 25 | priority = 2",
            &[],
        ),
        ("testPreemptionForMultipleQueuesInTheSamePriorityBuckets", "100", "", buckets, &[("a", 23), ("b", 6)]),
        (
            "testPreemptionForPriorityAndDisablePreemption",
            "100",
            "",
            &buckets.replace("35 50 |", "35 50 | reclaimable = false,"),
            &[("b", 9), ("c", 19)],
        ),
        (
            "testPriorityPreemptionForHierarchicalOfQueues",
            "100",
            "",
            "a 29 100 | priority = 1\n.a1 12 100 20 50 | priority = 1\n.a2 17 100 20 50 | priority = 1\n\
            b 31 100 | priority = 1\n.b1 16 100 30 50 | priority = 1\n.b2 15 100 29 50 | priority = 2\n\
            c 40 100 1 30 | priority = 1",
            &[("a1", 6), ("a2", 1), ("b1", 13), ("b2", 10)],
        ),
        // In the source the containers of a1 and b1 add up to more than the usage of these queues. In this test they equal the usage.
        (
            "testPriorityPreemptionWithMandatoryResourceForHierarchicalOfQueues",
            "100:200",
            "",
            "a 50:100 100:200 | priority = 1\n.a1 10:20 100:200 1*3:2+7*1:4 1*30:20 | priority = 1\n\
            .a2 40:80 100:200 10*1:1 1*30:80 | priority = 1\nb 50:100 100:200 | priority = 1\n\
            .b1 20:40 100:200 10*2:4 1*20:70 | priority = 2\n.b2 30:60 100:200 3*20:40 1*20:30 | priority = 1",
            &[("a1", 3), ("b2", 2)],
        ),
        (
            "testPriorityPreemptionWithMultipleResource",
            "100:100:10",
            "",
            "a 50:60:3 100:100:10 | priority = 1\n.a1 20:15:3 100:50:10 10*6:5:1 0 | priority = 1\n\
            .a2 30:45:0 100:50:10 10*2:4:0 2*15:10:2 | priority = 2\nb 50:40:7 100:100:10 10*2:1:0 2*15:5:1 | priority = 1",
            &[("a1", 7)],
        ),
        // The source checks only the containers of a. Neither a nor b may keep a third device, which exceeds the maximum of the queue.
        (
            "test3ResourceTypesInterQueuePreemption",
            "30:18:6",
            "",
            "a 10:6:2 10:6:2 3*2:2:1 0 | priority = 1\nb 10:6:2 10:6:2 3*2:2:1 0 | priority = 1\n\
            c 10:6:2 10:6:2 0 1*1:1:1 | priority = 2",
            &[("a", 1), ("b", 1)],
        ),
    ]);
}
