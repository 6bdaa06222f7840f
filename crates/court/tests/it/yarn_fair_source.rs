//! YARN's fair scheduler: shares, order and preemption in the vectors of its source.
//!
//! Source: apache/hadoop, `TestFairScheduler`, `TestFairSchedulerFairShare`, `TestFairSchedulerPreemption` and `TestFSAppStarvation`
//! under `resourcemanager/scheduler/fair`. Preemption has no time-outs, neither in the source nor in this file.

use crate::{Answer, decide};
use std::fmt::Write as _;

/// Returns the decisions on a state of lines. A line of a queue is `queue NAME PARENT KEYS`, with `;` between keys. A line of a workload
/// is `running` or `waiting`, a name (`APPLICATION/NAME` if several workloads are one application), a queue, `MEMORY:CORES`, the number
/// of tasks, and optionally a machine.
fn decided(top: &str, lines: &str) -> Answer {
    let mut text = format!("{top}\n");
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["queue", name, parent, keys @ ..] = &words[..] {
            let keys = keys.join(" ").replace(';', "\n");
            let _ = write!(text, "[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\n{keys}\n");
        } else {
            let (memory, cores) = words[3].split_once(':').expect("MEMORY:CORES");
            let _ = write!(text, "[[{}]]\nname = \"{}\"\ngroup = \"{}\"\n", words[0], words[1], words[2]);
            let _ = write!(text, "demand = {{ memory_mib = {memory}, cpu = {cores} }}\ntasks = {}\n", words[4]);
            words[1].split_once('/').inspect(|(user, _)| text += &format!("user = \"{user}\"\n"));
            words.get(5).inspect(|machine| text += &format!("machine = \"{machine}\"\n"));
        }
    }
    decide("yarn-fair", &text)
}

fn pool(memory: u32, cores: u32) -> String {
    format!("[capacity]\nmemory_mib = {memory}\ncpu = {cores}")
}

/// Returns the fair shares of memory in MiB.
fn memory<const N: usize>(answer: &Answer, queues: [&str; N]) -> [f64; N] {
    queues.map(|queue| answer.share(queue, "fair share of memory") * 1024.0)
}

/// `TestFairScheduler`: fair shares.
#[test]
fn shares() {
    let asks = |a: u32, b: u32| format!("waiting a queueA {a}:1 1\nwaiting b queueB {b}:1 1");
    let two = |top: (u32, u32), keys: &str, asks: &str| {
        let queues =
            keys.split('|').zip(["queueA", "queueB"]).map(|(keys, name)| format!("queue {name} root {keys}\n"));
        let lines = queues.collect::<String>() + asks;
        memory(&decided(&pool(top.0, top.1), &lines), ["queueA", "queueB"])
    };
    // testFairShareWithHighMaxResources: each of two queues has a maximum of 2^30 MiB.
    let high = "max = { memory_mib = 1073741824, cpu = 1000 }; weight = ";
    assert_eq!(two((8192, 8), &format!("{high}0.25|{high}0.75"), &asks(1024, 6144)), [2048.0, 6144.0]);
    // testFairShareWithLowMaxResources.
    let low = "max = { memory_mib = 1024, cpu = 1 }; weight = 0.75|max = { memory_mib = 3072, cpu = 3 }; weight = 0.25";
    let many = "waiting a queueA 1024:1 2\nwaiting b queueB 1024:1 4";
    assert_eq!(two((8192, 8), low, many), [1024.0, 3072.0]);
    // testFairShareWithZeroWeight, ..NoneZeroMinRes, testFairShareWithNoneZeroWeightNoneZeroMinRes.
    assert_eq!(two((8192, 8), "weight = 0|weight = 0", &asks(2048, 6144)), [0.0, 0.0]);
    let least = "min = { memory_mib = 1, cpu = 1 }; weight = 0";
    assert_eq!(two((8192, 8), &format!("{least}|{least}"), &asks(2048, 6144)), [1.0, 1.0]);
    let some = "min = { memory_mib = 1024, cpu = 1 }; weight = 0.5";
    assert_eq!(two((8192, 8), &format!("{some}|{some}"), &asks(4096, 4096)), [4096.0, 4096.0]);
    // testSimpleFairShareCalculation: each queue has a third of 10,240 MiB, rounded up.
    let three = "queue queue1 root\nqueue queue2 root\nqueue default root\n\
        waiting a queue1 10240:1 1\nwaiting b queue2 10240:1 1\nwaiting c default 10240:1 1";
    assert_eq!(memory(&decided(&pool(10240, 1), three), ["queue1", "queue2", "default"]), [3414.0; 3]);
    // testSimpleHierarchicalFairShareCalculation. In the source each application requests more than the cluster has, in this test all of
    // it.
    let tree = "queue parent root\nqueue queue2 parent\nqueue queue3 parent\nqueue default root\n\
        waiting a queue2 240:1 1\nwaiting b queue3 240:1 1\nwaiting c default 240:1 1";
    assert_eq!(memory(&decided(&pool(240, 1), tree), ["default", "queue2", "queue3"]), [120.0, 60.0, 60.0]);
}

/// `TestFairSchedulerFairShare`: only queues with applications have a fair share.
#[test]
fn shares_of_active_queues() {
    let queues = "queue parentA root weight = 8\nqueue A1 parentA\nqueue A2 parentA\nqueue A3 parentA\nqueue A4 parentA\n\
        queue parentB root weight = 1\nqueue B1 parentB\nqueue B2 parentB\nqueue default root\n";
    // The source accepts a deviation of less than one percentage point.
    let check = |cores: u32, asks: &str, expected: &[(&str, f64)]| {
        let answer = decided(&pool(16384, cores), &format!("{queues}{asks}"));
        for (queue, percent) in expected {
            let share = |of: &str, whole: f64| answer.share(queue, &format!("fair share of {of}")) / whole * 100.0;
            assert!((share("memory", 16.0) - percent).abs() <= 0.9, "{queue}: {}", share("memory", 16.0));
            if cores == 10 {
                assert!((share("cpu", 10.0) - percent).abs() <= 0.9, "{queue}: {}", share("cpu", 10.0));
            }
        }
    };
    let (one, two) = ("waiting a A1 2048:1 1\n", "waiting b A2 3072:1 1\n");
    // testFairShareOneAppRunning, ..MultipleActiveQueuesUnderSameParent, ..ResetsToZeroWhenAppsComplete.
    check(4, one, &[("A1", 100.0), ("A2", 0.0)]);
    check(
        4,
        &format!("{one}waiting b A2 2048:1 1\nwaiting c A3 2048:1 1"),
        &[("A1", 33.0), ("A2", 33.0), ("A3", 33.0)],
    );
    check(4, &format!("{one}{two}"), &[("A1", 50.0), ("A2", 50.0)]);
    check(4, two, &[("A1", 0.0), ("A2", 100.0)]);
    // testFairShareMultipleActiveQueuesUnderDifferentParent, and testFairShareWithDRFMultipleActiveQueuesUnderDifferentParent.
    let four = format!("{one}{two}waiting c B1 1024:1 1\nwaiting d default 1024:1 1");
    for cores in [4, 10] {
        check(cores, &four, &[("A1", 40.0), ("A2", 40.0), ("B1", 10.0)]);
    }
}

fn launched(memory: u32, cores: u32, lines: &str) -> Vec<(String, u32)> {
    decided(&pool(memory, cores), lines).launched
}

fn named(all: &[(&str, u32)]) -> Vec<(String, u32)> {
    all.iter().map(|(name, tasks)| ((*name).to_owned(), *tasks)).collect()
}

/// `TestFairScheduler`: dominant resource fairness. Containers start one by one until no next container has room.
#[test]
fn the_order_of_containers() {
    // testBasicDRFAssignment. As in the source, the second container of app2 has no room.
    let one = "queue queue1 root\nwaiting app1 queue1 2048:1 2\nwaiting app2 queue1 1024:2 2";
    assert_eq!(launched(8192, 5, one), named(&[("app1", 2), ("app2", 1)]));
    // testBasicDRFWithQueues.
    let two = "queue queue1 root\nqueue queue2 root\n\
        waiting app1 queue1 3072:1 2\nwaiting app2 queue1 2048:2 2\nwaiting app3 queue2 1024:2 2";
    assert_eq!(launched(8192, 7, two), named(&[("app1", 1), ("app3", 2), ("app2", 1)]));
    // testDRFHierarchicalQueues.
    let tree = "queue queue1 root\nqueue subqueue1 queue1\nqueue subqueue2 queue1\nqueue queue2 root\n\
        waiting app1 subqueue1 3074:1 2\nwaiting app2 subqueue1 1024:3 2\nwaiting app3 subqueue2 2048:2 2\n\
        waiting app4 queue2 1024:2 2";
    assert_eq!(launched(12288, 12, tree), named(&[("app1", 1), ("app4", 2), ("app3", 2), ("app2", 1)]));
    // testChildMaxResources, with the children's maximum stated for each child, and testFairShareWithLowMaxResources.
    let most = "max = { memory_mib = 2048, cpu = 2 }";
    let children = format!(
        "queue queueA root\nqueue queueB queueA {most}\nqueue queueC queueA {most}\n\
        waiting app1 queueB 1024:1 8\nwaiting app2 queueC 1024:1 8"
    );
    let sum = |lines: &str, name: &str| -> u32 {
        launched(8192, 8, lines).iter().filter(|(app, _)| app == name).map(|(_, tasks)| tasks).sum()
    };
    assert_eq!(["app1", "app2"].map(|app| sum(&children, app)), [2, 2]);
    assert_eq!(["app1", "app2"].map(|app| sum(&children.replace("2048, cpu = 2", "3072, cpu = 3"), app)), [3, 3]);
    let low = "queue queueA root max = { memory_mib = 1024, cpu = 1 }; weight = 0.75\n\
        queue queueB root max = { memory_mib = 3072, cpu = 3 }; weight = 0.25\n\
        waiting app1 queueA 1024:1 2\nwaiting app2 queueB 1024:1 4";
    assert_eq!(["app1", "app2"].map(|app| sum(low, app)), [1, 3]);
}

/// Returns the number of stopped containers of the greedy application, and the number of started containers of the starving one.
fn preempted(fair: bool, greedy: &[(&str, u32, &str)], others: &str, starved: &str) -> (u32, u32) {
    let (threshold, min) = if fair { (1, "") } else { (0, "min = { memory_mib = 4096, cpu = 4 }") };
    let mut lines = format!("queue preemptable root preemption_threshold = {threshold}\n");
    let _ = write!(lines, "queue child-1 preemptable {min}\nqueue child-2 preemptable {min}\n");
    let _ = writeln!(lines, "queue preemptable-sibling root preemption_threshold = {threshold}");
    let _ = writeln!(lines, "queue nonpreemptable root preemption_threshold = {threshold}; reclaimable = false");
    let _ = write!(lines, "queue n-child-1 nonpreemptable {min}\nqueue n-child-2 nonpreemptable {min}\n");
    for (queue, tasks, machine) in greedy {
        let _ = writeln!(lines, "running greedy/{machine} {queue} 1024:1 {tasks} {machine}");
    }
    let _ = write!(lines, "{others}\nwaiting starving {starved} 2048:2 4\n");
    let machine = |name: &str| format!("[[machine]]\nname = \"{name}\"\nmemory_mib = 4096\ncpu = 12\n");
    let answer = decided(&(machine("m1") + &machine("m2")), &lines);
    let count = |all: &[(String, u32)], name: &str| {
        all.iter().filter(|(of, _)| of.starts_with(name)).map(|(_, tasks)| tasks).sum::<u32>()
    };
    (count(&answer.evicted, "greedy"), count(&answer.launched, "starving"))
}

/// `TestFairSchedulerPreemption`: two machines have 4 GiB and 12 cores each, and one application fills their memory with 8 containers.
/// Another application requests 4 containers of twice the size. Its queue has a minimum share of half of the memory, or only fair shares
/// count.
#[test]
fn preemption() {
    for fair in [false, true] {
        let full = |queue: &'static str| [(queue, 4, "m1"), (queue, 4, "m2")];
        // testPreemptionWithinSameLeafQueue.
        let same = if fair { (4, 2) } else { (0, 0) };
        assert_eq!(preempted(fair, &full("child-1"), "", "child-1"), same, "{fair}");
        // testPreemptionBetweenTwoSiblingLeafQueues, ..BetweenNonSiblingQueues, testNoPreemptionFromDisallowedQueue.
        assert_eq!(preempted(fair, &full("child-1"), "", "child-2"), (4, 2), "{fair}");
        assert_eq!(preempted(fair, &full("child-1"), "", "n-child-1"), (4, 2), "{fair}");
        assert_eq!(preempted(fair, &full("n-child-1"), "", "child-1"), (0, 0), "{fair}");
    }
    // Derived: queue b lacks 4 GiB and 8 cores. That memory is enough for 2 containers of 2 GiB and 2 cores.
    let cores = "queue a root weight = 0\nqueue b root preemption_threshold = 0; min = { memory_mib = 4096, cpu = 8 }\n\
        running a a 1024:3 8\nwaiting b b 2048:2 4";
    let answer = decided(&pool(8192, 24), cores);
    assert_eq!((answer.evicted, answer.launched), (named(&[("a", 4)]), named(&[("b", 2)])));
    // testPreemptionBetweenSiblingQueuesWithParentAtFairShare, only by fair shares. The second assertion is its second step.
    assert_eq!(preempted(true, &[("child-1", 4, "m1"), ("child-1", 4, "m2")], "", "preemptable-sibling"), (4, 2));
    let others = "running sibling preemptable-sibling 2048:2 2 m1\nwaiting sibling-waits preemptable-sibling 2048:2 2";
    assert_eq!(preempted(true, &[("child-1", 4, "m2")], others, "child-2"), (2, 1));
}

/// `TestFSAppStarvation`: each of four queues requests a container. One queue is below its minimum share and two are below their fair
/// shares; these three are starved.
#[test]
fn starvation() {
    let lines = "queue default root\nqueue no-preemption root preemption_threshold = 0\n\
        queue minshare root preemption_threshold = 0; min = { memory_mib = 2048, cpu = 2 }\n\
        queue fairshare root preemption_threshold = 1\nqueue fairshare.child fairshare\n\
        queue drf root preemption_threshold = 1\nqueue drf.child drf\n\
        running app/1 default 1024:1 4 m1\nrunning app/2 default 1024:1 4 m2\n\
        waiting none no-preemption 1024:1 1\nwaiting min minshare 1024:1 1\nwaiting fair fairshare.child 1024:1 1\n\
        waiting drf drf.child 1024:1 1";
    let machines = "[[machine]]\nname = \"m1\"\nmemory_mib = 4096\ncpu = 4\n[[machine]]\nname = \"m2\"\nmemory_mib = 4096\ncpu = 4\n";
    let answer = decided(machines, lines);
    let mut started = answer.launched();
    started.sort_unstable();
    assert_eq!(started, ["drf", "fair", "min"]);
    // testPreemptionDisabled.
    let off = decided(&format!("{machines}[policy]\npreemption = false\n"), lines);
    assert!(off.launched.is_empty() && off.evicted.is_empty());
}
