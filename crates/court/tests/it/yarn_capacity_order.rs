//! YARN's capacity scheduler: the order of queues, and user limits, in the vectors of its source.
//!
//! Source: apache/hadoop, `TestPriorityUtilizationQueueOrderingPolicy`, `TestParentQueue` and `TestLeafQueue` under
//! `resourcemanager/scheduler/capacity`. In the source only memory counts, which is YARN's default.

use crate::decide;
use std::fmt::Write as _;

/// Returns the names of the queues, ordered by the starts of one container each. A queue is its guarantee in percent, its usage in percent
/// of the guarantee, and its priority.
fn order(by_priority: bool, queues: &[(u32, u32, u32)]) -> String {
    let ordering = if by_priority { "priority-utilization" } else { "utilization" };
    let mut text = "[capacity]\nmemory_mib = 1000\n[policy]\npreemption = false\nresources = \"memory\"\n".to_owned();
    let _ = writeln!(text, "ordering = \"{ordering}\"");
    for (name, (percent, used, priority)) in ('a'..).zip(queues) {
        let _ = writeln!(text, "[[group]]\nname = \"{name}\"\npercent = {percent}\npriority = {priority}");
        let _ = writeln!(text, "[[waiting]]\nname = \"{name}\"\ngroup = \"{name}\"\ndemand = {{ memory_mib = 1 }}");
        if percent * used > 0 {
            let _ = writeln!(
                text,
                "[[running]]\nname = \"r{name}\"\ngroup = \"{name}\"\ndemand = {{ memory_mib = {} }}",
                percent * used / 10
            );
        }
    }
    decide("yarn-capacity", &text).launched().concat()
}

/// `TestPriorityUtilizationQueueOrderingPolicy`: all cases except those with partitions that only some queues may use. The source gives
/// queues without a guarantee a usage, which is impossible; in this test they use nothing.
#[test]
fn queues_by_use_and_priority() {
    // testUtilizationOrdering; in its case 5 no queue has any guarantee in the partition.
    assert_eq!(order(false, &[(20, 10, 0)]), "a");
    assert_eq!(order(false, &[(20, 10, 0), (30, 0, 0)]), "ba");
    assert_eq!(order(false, &[(20, 10, 0), (30, 0, 0), (40, 20, 0)]), "bac");
    assert_eq!(order(false, &[(20, 10, 2), (30, 0, 1), (40, 20, 0)]), "bac");
    assert_eq!(order(false, &[(0, 0, 2), (0, 0, 1), (0, 0, 0)]), "abc");
    // testPriorityUtilizationOrdering, cases 1 to 14.
    let five = [(20, 120, 1), (10, 100, 2), (10, 20, 0), (30, 110, 0), (30, 20, 3)];
    let cases: &[(&[(u32, u32, u32)], &str)] = &[
        (&[(20, 10, 1)], "a"),
        (&[(20, 20, 1), (30, 10, 1)], "ba"),
        (&[(20, 110, 1), (30, 120, 1)], "ab"),
        (&[(20, 10, 1), (30, 120, 1)], "ab"),
        (&[(20, 110, 1), (30, 120, 2)], "ba"),
        (&[(20, 10, 1), (30, 20, 2)], "ba"),
        (&[(20, 10, 1), (30, 120, 2)], "ab"),
        (&[(20, 10, 2), (30, 120, 1)], "ab"),
        (&[(20, 10, 1), (30, 100, 2)], "ab"),
        (&[(20, 10, 2), (30, 100, 1)], "ab"),
        (&[(20, 10, 1), (30, 100, 1)], "ab"),
        (&[(20, 100, 1), (30, 100, 2)], "ba"),
        (&five, "ecbad"),
        (&five.map(|(_, _, priority)| (0, 0, priority)), "ebacd"),
    ];
    for (at, (queues, expected)) in cases.iter().enumerate() {
        assert_eq!(order(true, queues), *expected, "case {}", at + 1);
    }
    // Cases 17 to 19: queues without a guarantee are last.
    assert_eq!(order(true, &[(0, 0, 1), (30, 120, 1)]), "ba");
    assert_eq!(order(true, &[(30, 10, 1), (0, 0, 1)]), "ab");
    assert_eq!(order(true, &[(0, 0, 1), (0, 0, 2), (10, 20, 0), (30, 110, 0), (30, 20, 3)]), "ecdba");
}

/// Returns the leaf that is served first. A queue is its name, its parent, its percentage, its usage in GiB, and whether it requests
/// another GiB.
fn first(gib: u32, queues: &[(&str, &str, f64, u32, bool)]) -> String {
    let mut text = format!("[capacity]\nmemory_gib = {gib}\n[policy]\nresources = \"memory\"\n");
    for (name, parent, percent, used, wants) in queues {
        let _ = writeln!(text, "[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\npercent = {percent}");
        for (kind, tasks) in [("running", *used), ("waiting", u32::from(*wants))] {
            if tasks > 0 {
                let _ = writeln!(
                    text,
                    "[[{kind}]]\nname = \"{kind} {name}\"\ngroup = \"{name}\"\ndemand = {{ memory_gib = 1 }}\ntasks = {tasks}"
                );
            }
        }
    }
    decide("yarn-capacity", &text).launched().first().map_or(String::new(), |name| name.replace("waiting ", ""))
}

/// `TestParentQueue`.
#[test]
fn queues_level_by_level() {
    // testSingleLevelQueues: of 20 GiB, a is guaranteed 6 and b 14.
    for (a, b, expected) in [(0, 1, "a"), (2, 2, "b"), (3, 4, "b"), (3, 8, "a")] {
        assert_eq!(first(20, &[("a", "root", 30.0, a, true), ("b", "root", 70.0, b, true)]), expected, "{a} {b}");
    }
    // testMultiLevelQueues, with 30 GiB: the next of the leaves a1 and a2 below a, b1, b2 and b3 below b, and c1111 below c.
    let tree = |uses: [u32; 6], wants: [bool; 6]| {
        let leaf = |at: usize, name, parent, percent: f64| (name, parent, percent, uses[at], wants[at]);
        first(
            30,
            &[
                ("a", "root", 10.0, 0, false),
                ("b", "root", 50.0, 0, false),
                ("c", "root", 19.5, 0, false),
                ("d", "root", 20.5, 0, false),
                leaf(0, "a1", "a", 50.0),
                leaf(1, "a2", "a", 50.0),
                leaf(2, "b1", "b", 10.0),
                leaf(3, "b2", "b", 20.0),
                leaf(4, "b3", "b", 70.0),
                ("c1", "c", 100.0, 0, false),
                ("c11", "c1", 100.0, 0, false),
                ("c111", "c11", 100.0, 0, false),
                leaf(5, "c1111", "c111", 100.0),
            ],
        )
    };
    assert_eq!(tree([0, 0, 0, 4, 0, 1], [true, false, false, false, true, true]), "a1");
    assert_eq!(tree([1, 0, 0, 4, 0, 1], [false, false, false, false, true, true]), "c1111");
    assert_eq!(tree([1, 0, 0, 4, 2, 3], [true, true, true, false, true, true]), "a2");
    assert_eq!(tree([1, 2, 0, 4, 2, 3], [false, false, true, false, true, true]), "b1");
    // testOffSwitchSchedulingMultiLevelQueues: of 20 GiB, b2 is guaranteed 2 and b3 7.
    for (two, three, expected) in [(0, 1, "b2"), (1, 2, "b3")] {
        let b = ("b", "root", 50.0, 0, false);
        assert_eq!(first(20, &[b, ("b2", "b", 20.0, two, true), ("b3", "b", 70.0, three, true)]), expected);
    }
}

/// Returns the application that is served first in a queue with a guarantee of 8.5% of `gib`. An application is its usage in GiB, and the
/// size and the number of its waiting containers.
fn served(gib: u32, keys: &str, apps: &[(u32, u32, u32)]) -> Option<usize> {
    let mut text = format!("[capacity]\nmemory_gib = {gib}\n[policy]\nresources = \"memory\"\npreemption = false\n");
    text += "minimum_allocation = { memory_gib = 1 }\n";
    let _ = writeln!(text, "[[group]]\nname = \"a\"\npercent = 8.5\n{keys}");
    for (at, (used, size, tasks)) in apps.iter().enumerate() {
        for (kind, size, tasks) in [("running", 1, used), ("waiting", *size, tasks)] {
            if *tasks > 0 {
                let _ = write!(text, "[[{kind}]]\nname = \"{kind}-{at}\"\ngroup = \"a\"\nuser = \"app-{at}\"\n");
                let _ = writeln!(text, "demand = {{ memory_gib = {size} }}\ntasks = {tasks}");
            }
        }
    }
    let first = decide("yarn-capacity", &text).launched.into_iter().next()?;
    first.0.strip_prefix("waiting-").and_then(|at| at.parse().ok())
}

/// `TestLeafQueue`, step by step. A user of the source is an application in this test.
#[test]
fn user_limits() {
    let limit = |percent: f64, factor: &str| format!("user_limit_percent = {percent}\n{factor}");
    let factor = |factor: u32| format!("user_limit_factor = {factor}");
    // testUserLimits, testDecimalUserLimits, testDisabledUserLimitFactor: two applications in 16 GiB.
    let two =
        |keys: &str, used: (u32, u32), left: (u32, u32)| served(16, keys, &[(used.0, 3, left.0), (used.1, 1, left.1)]);
    let half = limit(50.0, &factor(2));
    assert_eq!(two(&half, (0, 0), (2, 2)), Some(0));
    assert_eq!(two(&half, (3, 0), (1, 2)), Some(1), "a usage of 3 exceeds half of 3 + 1");
    assert_eq!(two(&half, (3, 1), (1, 1)), Some(0), "a usage of 3 does not exceed half of 4 + 1, rounded up to GiB");
    let decimal = limit(50.1, &factor(2));
    assert_eq!(two(&decimal, (0, 0), (2, 2)), Some(0));
    assert_eq!(two(&decimal, (3, 0), (1, 2)), Some(0));
    assert_eq!(two(&decimal, (6, 0), (0, 2)), Some(1));
    assert_eq!(two(&limit(50.0, &factor(1)), (0, 0), (2, 2)), Some(0));
    assert_eq!(two(&limit(50.0, &factor(1)), (3, 0), (1, 2)), Some(1));
    assert_eq!(two(&limit(50.0, ""), (3, 1), (1, 1)), Some(0));
    // testSingleQueueWithOneUser, in 8 GiB.
    let one = |keys: &str, used: u32| served(8, keys, &[(used, 1, 5)]).is_some();
    let usual = limit(100.0, &factor(1));
    assert_eq!([0, 1, 2].map(|used| one(&usual, used)), [true, true, false]);
    assert_eq!([2, 3].map(|used| one(&limit(100.0, &factor(10)), used)), [true, true]);
    assert!(!one(&limit(100.0, "user_limit_factor = 10\nmax_percent = 50"), 4));
    // testSingleQueueWithMultipleUsers. The first user has two applications in the source, and the second of them has no containers.
    let three = |keys: &str, used: [u32; 3], left: [u32; 3]| {
        served(8, keys, &[(used[0], 1, left[0]), (used[1], 3, left[1]), (used[2], 1, left[2])])
    };
    assert_eq!([0, 1].map(|used| three(&usual, [used, 0, 0], [20 - used, 0, 0])), [Some(0), Some(0)]);
    assert_eq!(three(&limit(25.0, &factor(1)), [2, 0, 0], [18, 0, 0]), None);
    let wide = limit(25.0, &factor(10));
    assert_eq!(three(&wide, [2, 0, 0], [18, 1, 2]), Some(1));
    assert_eq!(three(&wide, [2, 3, 0], [18, 0, 2]), Some(0));
    assert_eq!(three(&format!("{wide}\nmax_percent = 50"), [3, 3, 0], [17, 0, 2]), None);
    assert_eq!(three(&limit(25.0, &factor(1)), [3, 3, 0], [17, 0, 2]), Some(2));
    assert_eq!(three(&limit(25.0, &factor(1)), [3, 3, 1], [17, 0, 1]), Some(2));
}

/// `TestLeafQueue`, with limits by dominant resources.
#[test]
fn limits_of_several_resources() {
    // testHeadroomCheckWithDRF: the queue uses 90 GiB of at most 99, so another container of 10 GiB does not fit.
    let queue = "percent = 80\nmax_percent = 99\nuser_limit_factor = 10\nuser_limit_percent = 100";
    let text = |memory: u32| {
        format!(
            "[capacity]\nmemory_gib = 100\ncpu = 100\n[policy]\nminimum_allocation = {{ memory_gib = 1, cpu = 1 }}\n\
            [[group]]\nname = \"b\"\n{queue}\n\
            [[running]]\nname = \"r\"\ngroup = \"b\"\nuser = \"app\"\ndemand = {{ memory_gib = 90, cpu = 10 }}\n\
            [[waiting]]\nname = \"w\"\ngroup = \"b\"\nuser = \"app\"\ndemand = {{ memory_gib = {memory}, cpu = 10 }}\n"
        )
    };
    assert!(decide("yarn-capacity", &text(10)).launched.is_empty());
    assert_eq!(decide("yarn-capacity", &text(9)).launched(), ["w"], "derived: a container of 9 GiB fits");
}

/// `TestAbsoluteResourceConfiguration`: queues with guarantees and maximums in GiB and cores, and child queues of two of them.
#[test]
fn guarantees_as_amounts() {
    let queues = [
        ("a", "root", (100, 10), Some((200, 30))),
        ("b", "root", (50, 10), Some((150, 30))),
        ("c", "root", (25, 5), Some((150, 20))),
        ("d", "root", (25, 5), Some((150, 20))),
        ("a1", "a", (50, 5), None),
        ("a2", "a", (50, 5), None),
        ("b1", "b", (40, 10), None),
    ];
    // Returns the guarantee and the maximum of a queue, each in MiB and cores.
    let of = |gib: u32, cores: u32, queue: &str| {
        let mut text = format!("[capacity]\nmemory_gib = {gib}\ncpu = {cores}\n");
        for (name, parent, (memory, cpu), most) in queues {
            let _ = writeln!(text, "[[group]]\nname = \"{name}\"\nparent = \"{parent}\"");
            let _ = writeln!(text, "guarantee = {{ memory_gib = {memory}, cpu = {cpu} }}");
            let most = most.map(|(memory, cpu)| format!("capability = {{ memory_gib = {memory}, cpu = {cpu} }}\n"));
            text += &most.unwrap_or_default();
        }
        text += "[[waiting]]\nname = \"w\"\ngroup = \"c\"\ndemand = { memory_gib = 1, cpu = 1 }\n";
        let answer = decide("yarn-capacity", &text);
        let standing = answer.round.standings.into_iter().find(|standing| standing.name == queue).expect("a queue");
        [standing.guaranteed, standing.limit].map(|all| (all[0].expect("memory"), all[1].expect("cores") / 1000))
    };
    const GIB: u64 = 1024;
    // testEffectiveMinMaxResourceConfigurartionPerQueue, testSimpleValidateAbsoluteResourceConfig.
    assert_eq!(of(250, 40, "a"), [(100 * GIB, 10), (200 * GIB, 30)]);
    assert_eq!(of(250, 40, "b"), [(50 * GIB, 10), (150 * GIB, 30)]);
    assert_eq!(of(250, 40, "c"), [(25 * GIB, 5), (150 * GIB, 20)]);
    assert_eq!(of(250, 40, "a1"), [(50 * GIB, 5), (200 * GIB, 30)]);
    assert_eq!(of(250, 40, "b1"), [(40 * GIB, 10), (150 * GIB, 30)]);
    // testEffectiveResourceAfterReducingClusterResource: half of the cluster is removed.
    assert_eq!(of(125, 20, "a"), [(64_000, 6), (128_000, 20)]);
    assert_eq!(of(125, 20, "b"), [(32_000, 6), (128_000, 20)]);
    assert_eq!(of(125, 20, "c"), [(16_000, 3), (128_000, 20)]);
}
