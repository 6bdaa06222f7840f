//! Volcano: cases of upstream's table-driven tests, one by one.
//!
//! Source: volcano-sh/volcano (August 2026), `actions/{allocate,preempt,reclaim}/*_test.go` and
//! `plugins/{proportion,capacity}/*_test.go`. If a test of the source uses both 1G and 1Gi, 1G is 1 GiB in this file and 1Gi is 1.0737
//! GiB. Non-preemptible pods of the source are the minimum of their job in this file, or are omitted together with their room.

use crate::decide;
use crate::volcano::{owned, started, state};

const RECLAIM: &str = "actions = [\"reclaim\"]";
const PREEMPT: &str = "actions = [\"preempt\"]\ngang_preemptable = true";

/// The stopped tasks and the launched tasks, by workload.
type Outcome = (Vec<(String, u32)>, Vec<(String, u32)>);

fn outcome(policy: &str, text: &str) -> Outcome {
    let answer = decide(policy, text);
    (answer.evicted, answer.launched)
}

fn expected(evicted: &[(&str, u32)], launched: &[(&str, u32)]) -> Outcome {
    (owned(evicted), owned(launched))
}

/// `reclaim_test.go`: the queue that is served last loses tasks first. The order of service is by priority, then by position.
#[test]
fn proportion_sorts_whom_to_reclaim_from() {
    let of = |priorities: [u32; 3], jobs: [u32; 2]| {
        let queues = priorities.map(|priority| format!("priority = {priority}"));
        let queues = [("q1", queues[0].as_str()), ("q2", &queues[1]), ("q3", &queues[2])];
        let running = format!("pg1:q1:1:1:0:2:{} pg2:q2:1:1:0:2:{}", jobs[0], jobs[1]);
        let text = state("cpu = 4\nmemory_gib = 4.295", RECLAIM, &queues, &running, "pg3:q3:1:1:0:1:9");
        outcome("volcano-proportion", &text)
    };
    assert_eq!(of([0, 0, 0], [5, 1]), expected(&[("pg2", 1)], &[("pg3", 1)]), "sort reclaimees");
    assert_eq!(of([5, 10, 1], [5, 5]), expected(&[("pg1", 1)], &[("pg3", 1)]), "different queue priority");
}

/// The same file: idle room on a machine counts, and no task is stopped on a machine where the reclaiming task does not fit even then.
#[test]
fn reclaim_counts_what_is_idle() {
    let queues = [("q1", "priority = 1"), ("q2", "priority = 2"), ("q3", "weight = 3")];
    let running = "pg1:q1:1:1:0:1:5 pg2:q2:1:1:0:1:5";
    let text = state("cpu = 10\nmemory_gib = 2.147", RECLAIM, &queues, running, "pg3:q3:2:1:0:1:5");
    let answer = outcome("volcano-proportion", &text);
    assert_eq!(answer, expected(&[("pg1", 1)], &[("pg3", 1)]), "Node available resources should be included");
    let machines =
        "[[machine]]\nname = \"n1\"\ncpu = 1\nmemory_gib = 1\n[[machine]]\nname = \"n2\"\ncpu = 3\nmemory_gib = 3";
    let running = "v1/victim@n1:q1:1:1:0:1:0 v2/victim@n2:q1:2:2:0:1:0";
    let text = state(machines, RECLAIM, &[("q1", ""), ("q2", "")], running, "w:q2:2:2:0:1:1");
    let answer = outcome("volcano-proportion", &text);
    assert_eq!(
        answer,
        expected(&[("v2", 1)], &[("w", 1)]),
        "only evict victims from the node where reclaim actually succeeds"
    );
    let queues = [("q1", "weight = 1"), ("q2", "weight = 9")];
    let text = state("cpu = 10\nmemory_gib = 10", RECLAIM, &queues, "v:q1:2:2:0:1:0", "w:q2:3:3:0:1:0");
    assert_eq!(outcome("volcano-proportion", &text), expected(&[], &[("w", 1)]), "the task fits without victims");
    let queues = [("q1", ""), ("q2", "min_available = 2")];
    let text = state("cpu = 1\nmemory_gib = 1", RECLAIM, &queues, "pg1:q1:1:1:0:1:0", "pg2:q2:1:1:0:2:1");
    assert_eq!(outcome("volcano-proportion", &text), expected(&[], &[]), "discard partial reclaim");
}

/// `preempt_test.go`, with the plugins gang and priority in one tier.
#[test]
fn preemption_keeps_to_the_queue() {
    let of = |capacity: &str, queues: &[(&str, &str)], running: &str, waiting: &str| {
        outcome("volcano-proportion", &state(capacity, PREEMPT, queues, running, waiting))
    };
    let most = |n: u32| format!("capability = {{ cpu = {n}, memory_gib = {n} }}");
    let running = "a/pg1:q1:1:1:0:1:0 b/pg1:q1:1:1:0:1:0";
    let rollback = of("cpu = 10\nmemory_gib = 10", &[("q1", &most(3))], running, "high:q1:4:4:0:1:1");
    assert_eq!(rollback, expected(&[], &[]), "rollback evictions when preemptor exceeds queue capacity");
    let own =
        of("cpu = 12\nmemory_gib = 12", &[("q1", &most(2))], "a/pg1:q1:1:1:0:1:0 b/pg1:q1:1:1:0:1:1", "w:q1:1:1:0:1:1");
    assert_eq!(own, expected(&[("a", 1)], &[("w", 1)]), "not pod with preemptable=false or higher priority");
    let running = "runner:q1:1:1:0:1:0 low1/pg2:q2:1:1:0:1:0";
    let text = state("cpu = 2\nmemory_gib = 2", PREEMPT, &[("q1", ""), ("q2", &most(4))], running, "high:q2:1:1:0:1:1");
    let text = text.replace("gang_preemptable = true", "");
    let multi = outcome("volcano-proportion", &text);
    assert_eq!(multi, expected(&[("low1", 1)], &[("high", 1)]), "multi-queue");
    let machines =
        "[[machine]]\nname = \"n1\"\ncpu = 3\nmemory_gib = 3\n[[machine]]\nname = \"n2\"\ncpu = 4\nmemory_gib = 4";
    let running = "small@n1:q1:1:1:0:1:0 large@n2:q1:4:4:0:1:0";
    let text = state(machines, PREEMPT, &[("q1", &most(6))], running, "high:q1:3:3:0:1:1");
    let text = text.replace("gang_preemptable = true", "");
    let only = outcome("volcano-proportion", &text);
    assert_eq!(
        only,
        expected(&[("large", 1)], &[("high", 1)]),
        "only commit evictions on the node where preemption succeeds"
    );
}

/// The same file, about #3335: a machine has one slot for pods, whatever other amounts the pods request.
#[test]
fn preemption_of_a_slot() {
    for demand in ["cpu = 3, memory_gib = 3, pods = 1", "pods = 1"] {
        let text = format!(
            "[capacity]\ncpu = 12\nmemory_gib = 12\npods = 1\n[policy]\nactions = [\"preempt\"]\n[[group]]\nname = \"q1\"\n\
             capability = {{ cpu = 6, memory_gib = 6 }}\n[[running]]\nname = \"low\"\ngroup = \"q1\"\ndemand = {{ pods = 1 }}\n\
             [[waiting]]\nname = \"high\"\ngroup = \"q1\"\npriority = 1\ndemand = {{ {demand} }}\n"
        );
        assert_eq!(outcome("volcano-proportion", &text), expected(&[("low", 1)], &[("high", 1)]));
    }
}

/// `allocate_test.go`: both tasks of one job start, or one task of each of two queues. A job that does not fit does not hold up the other
/// queue.
#[test]
fn allocate_goes_by_queues() {
    let of = |memory: &str, waiting: &str| {
        let text = state(&format!("cpu = 2\nmemory_gib = {memory}"), "", &[("c1", ""), ("c2", "")], "", waiting);
        let answer = decide("volcano-proportion", &text);
        [started(&answer, "pg1"), started(&answer, "pg2")]
    };
    assert_eq!(of("4.295", "pg1:c1:1:1:0:2:0"), [2, 0], "one Job with two Pods on one node");
    assert_eq!(of("4", "pg1:c1:1:1:0:2:0 pg2:c2:1:1:0:2:0"), [1, 1], "two Jobs on one node");
    assert_eq!(of("4", "pg1:c1:3:1:0:1:0 pg2:c2:1:1:0:1:0"), [0, 1], "high priority queue should not block others");
}

/// `dequeue_strategy_test.go`, and the FIFO cases of `allocate_priority_fifo_test.go`. In the source the large jobs are larger than the
/// cluster. In this test such a job would not even wait, so the cluster is larger and its rest is in use.
#[test]
fn strict_and_other_queues() {
    let of = |queues: &[(&str, &str)], waiting: &str| {
        let queues: Vec<(&str, &str)> = queues.iter().copied().chain([("rest", "")]).collect();
        let text = state("cpu = 10\nmemory_gib = 10", "", &queues, "r:rest:8:6:0:1:0", waiting);
        let answer = decide("volcano-capacity", &text);
        answer.launched.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let strict = ("q1", "order = \"strict-fifo\"");
    let two = "p1:q1:10:10:0:1:0 p2:q1:1:1:0:1:0";
    assert!(of(&[strict], two).is_empty());
    assert_eq!(of(&[strict], "p1:q1:1:1:0:1:0 p2:q1:1:1:0:1:0"), ["p1", "p2"]);
    assert_eq!(of(&[("q1", "order = \"best-effort-fifo\"")], two), ["p2"]);
    assert_eq!(of(&[("q1", "")], two), ["p2"]);
    let four = format!("{two} p3:q2:10:10:0:1:0 p4:q2:1:1:0:1:0");
    assert_eq!(of(&[strict, ("q2", "")], &four), ["p4"]);
    assert!(of(&[strict], "a:q1:4:1:0:1:9 b:q1:1:1:0:1:9 c:q1:1:1:0:1:5").is_empty());
}

/// `proportion_test.go`. `TestEnqueueAndAllocable`: a queue at its deserved amount of one resource starts a task that requests only the
/// other resource. `TestAllocate`: the queue of the highest priority starts first. The source switches the limit by deserved amounts off;
/// in this test the cluster has enough room that each queue deserves a job.
#[test]
fn proportion_allocates() {
    let queues = [
        ("q1", "capability = { cpu = 3, memory_gib = 2.147 }"),
        ("q2", "capability = { cpu = 3, memory_gib = 3.221 }"),
    ];
    let of = |waiting: &str| {
        let text = state("cpu = 4\nmemory_gib = 4.295", "", &queues, "pg1:q1:1:2:0:1:0 pg2:q2:2:1:0:1:0", waiting);
        decide("volcano-proportion", &text).launched
    };
    assert_eq!(of("pod3:q1:1:0:0:1:0"), owned(&[("pod3", 1)]));
    assert_eq!(of("pod4:q2:0:1:0:1:0"), owned(&[("pod4", 1)]));
    assert!(of("pod5:q1:1:1:0:1:0").is_empty());
    let of = |priority: u32| format!("priority = {priority}\ncapability = {{ cpu = 2, memory_gib = 4 }}");
    let (q1, q2, q3) = (of(5), of(1), of(10));
    let queues = [("q1", q1.as_str()), ("q2", &q2), ("q3", &q3)];
    let text = state(
        "cpu = 6\nmemory_gib = 12",
        "",
        &queues,
        "p0:q1:2:4:0:1:0 p1:q1:2:4:0:1:0",
        "p2:q2:2:4:0:1:0 p3:q3:2:4:0:1:0",
    );
    assert_eq!(decide("volcano-proportion", &text).launched, owned(&[("p3", 1)]));
}

/// `capacity_test.go`, `TestEnqueueAndAllocatable`: the same for the plugin capacity.
#[test]
fn capacity_allocates_by_resource() {
    let two = "deserved = { cpu = 2, memory_gib = 2 }";
    let (q1, q2) = (
        format!("{two}\ncapability = {{ cpu = 2, memory_gib = 2 }}"),
        format!("{two}\ncapability = {{ cpu = 3, memory_gib = 3 }}"),
    );
    let of = |waiting: &str| {
        let text = state(
            "cpu = 6\nmemory_gib = 6",
            "",
            &[("q1", &q1), ("q2", &q2)],
            "pg1:q1:1:3:0:1:0 pg2:q2:3:1:0:1:0",
            waiting,
        );
        decide("volcano-capacity", &text).launched
    };
    assert_eq!(of("pod3:q1:1:0:0:1:0"), owned(&[("pod3", 1)]));
    assert_eq!(of("pod4:q2:0:1:0:1:0"), owned(&[("pod4", 1)]));
    assert!(of("pod5:q1:1:1:0:1:0").is_empty());
}

/// `capacity_test.go` without hierarchy, cases 7 to 10. A victim uses a resource that the reclaiming task requests, and its queue exceeds
/// its deserved amount of the victim's resources. The reclaiming queue stays within its capability.
#[test]
fn capacity_reclaims_by_relevant_resources() {
    let of = |capacity: &str, queues: &[(&str, &str)], running: &str, waiting: &str| {
        let actions = "actions = [\"allocate\", \"reclaim\"]";
        outcome("volcano-capacity", &state(capacity, actions, queues, running, waiting))
    };
    let full = "deserved = { cpu = 2, memory_gib = 4, gpu = 2 }";
    let case_7 = of(
        "cpu = 4\nmemory_gib = 8\ngpu = 4",
        &[("queue14", full), ("queue15", ""), ("queue16", full)],
        "p22:queue14:2:4:0:1:0 p23:queue15:0:0:1:1:0 p24:queue16:2:1:1:1:0",
        "p25:queue16:2:3:1:1:0",
    );
    assert_eq!(case_7, expected(&[], &[]));
    let node = "cpu = 4\nmemory_gib = 8\ngpu = 1";
    let case_8 = of(
        node,
        &[
            ("queue17", "deserved = { cpu = 2, memory_gib = 2 }"),
            ("queue18", "deserved = { cpu = 2, memory_gib = 4, gpu = 1 }"),
        ],
        "p26:queue17:0:4:0:1:0 p27:queue17:1:0:0:1:0 p28:queue17:0:0:1:1:0 p29:queue18:2:4:0:1:0",
        "p30:queue18:1:0:1:1:0",
    );
    assert_eq!(case_8, expected(&[("p28", 1)], &[("p30", 1)]));
    let queues = [("queue19", "deserved = { gpu = 1 }"), ("queue20", "deserved = { cpu = 2, memory_gib = 2 }")];
    let case_9 = of(node, &queues, "p31:queue19:4:4:1:1:0", "p32:queue20:1:1:0:1:0");
    assert_eq!(case_9, expected(&[], &[]));
    let eight = "deserved = { cpu = 8, memory_gib = 100 }\ncapability = { cpu = 8, memory_gib = 100 }";
    let machine = |name: &str| format!("[[machine]]\nname = \"{name}\"\ncpu = 8\nmemory_gib = 100\n");
    let case_10 = of(
        &(machine("n9") + &machine("n10")),
        &[("queue21", eight), ("queue22", "capability = { cpu = 2, memory_gib = 5 }")],
        "p33@n9:queue21:7:90:0:1:0 p35@n10:queue22:2:5:0:1:0",
        "p34:queue21:2:5:0:1:0",
    );
    assert_eq!(case_10, expected(&[], &[]));
}

/// `Test_updateQueueAttrShare`: a share is the largest ratio of allocation to deserved amount. It is 1 if the queue deserves nothing,
/// whatever its allocation.
#[test]
fn shares_of_deserved_amounts() {
    let of = |deserved: (&str, &str), held: &str| {
        let keys = format!("deserved = {{ cpu = {}, memory_gib = {} }}", deserved.0, deserved.1);
        let running = if held.is_empty() { String::new() } else { format!("r:q:{held}:0:1:0") };
        let text = state("cpu = 8\nmemory_gib = 8", "", &[("q", &keys), ("o", "")], &running, "w:o:8:8:0:1:0");
        decide("volcano-capacity", &text).share("q", "share")
    };
    for held in ["", "1:1", "1:0", "0:1"] {
        assert_eq!(of(("0", "0"), held), 1.0);
    }
    let two = ("2", "2");
    for (deserved, held, share) in [
        (two, "", 0.0),
        (two, "1:1", 0.5),
        (two, "2:2", 1.0),
        (two, "3:2", 1.5),
        (two, "3:3", 1.5),
        (("2", "4"), "1:3", 0.75),
        (("2", "4"), "1.5:2", 0.75),
    ] {
        assert_eq!(of(deserved, held), share, "{deserved:?} {held}");
    }
}

/// `capacity_test.go` with hierarchy, cases 0, 2, 4, 5, 7, 8, 9 and 11.
#[test]
fn capacity_allocates_in_the_tree() {
    let of = |capacity: &str, queues: &[(&str, &str, &str)], running: &str, waiting: &str| {
        let keys: Vec<String> =
            queues.iter().map(|(_, parent, keys)| format!("parent = \"{parent}\"\n{keys}")).collect();
        let queues: Vec<(&str, &str)> =
            queues.iter().zip(&keys).map(|((name, ..), keys)| (*name, keys.as_str())).collect();
        let actions = "actions = [\"reclaim\", \"allocate\"]";
        outcome("volcano-capacity", &state(capacity, actions, &queues, running, waiting))
    };
    let both = |key: &str, n: u32| format!("{key} = {{ cpu = {n}, memory_gib = {n} }}\n");
    let node = "cpu = 8\nmemory_gib = 8";
    let most: Vec<String> = (0..=4).map(|n| both("capability", n)).collect();
    let queues =
        [("q1", "root", most[4].as_str()), ("q2", "root", &most[4]), ("q11", "q1", &most[1]), ("q12", "q1", &most[3])];
    assert_eq!(of(node, &queues, "", "p1:q11:1:1:0:1:0"), expected(&[], &[("p1", 1)]), "case 0");
    let deserved: Vec<String> = (0..=4).map(|n| both("deserved", n) + &most[4]).collect();
    let (q3, q31) = (("q3", "root", deserved[4].as_str()), deserved[2].clone() + "min_available = 2\n");
    let queues = [q3, ("q4", "root", &deserved[2]), ("q31", "q3", &q31), ("q32", "q3", &deserved[2])];
    assert_eq!(of(node, &queues, "", "pg3:q31:2:2:0:2:0"), expected(&[], &[("pg3", 2)]), "case 2");
    let queues = [q3, ("q31", "q3", &deserved[2]), ("q32", "q3", &deserved[2]), ("q33", "q3", &deserved[0])];
    let case_4 = of(node, &queues, "p6:q31:2:2:0:1:0 p9:q32:2:2:0:1:0", "p10:q33:3:3:0:1:0");
    assert_eq!(case_4, expected(&[], &[]));
    let queues = [("q5", "root", "capability = { memory_gib = 4 }"), ("q51", "q5", "capability = { memory_gib = 2 }")];
    assert_eq!(of(node, &queues, "", "p11:q51:1:0:0:1:0"), expected(&[], &[("p11", 1)]), "case 5");
    // In the source case 7 has no jobs. Each child queue is limited to its guarantee, although the guarantees exceed the parent's
    // capability.
    let six = "capability = { cpu = 6, memory_gib = 4 }\n";
    let child = format!("{six}guarantee = {{ cpu = 4, memory_gib = 3 }}");
    let queues = [("q7", "root", six), ("q71", "q7", child.as_str()), ("q72", "q7", &child)];
    assert_eq!(of(node, &queues, "", "a:q71:5:1:0:1:0 b:q72:4:3:0:1:0"), expected(&[], &[("b", 1)]));
    let gpus = "cpu = 8\nmemory_gib = 8\ngpu = 8";
    let of_gpu = |n: u32, gpu: u32| format!("deserved = {{ cpu = {n}, memory_gib = {n}, gpu = {gpu} }}");
    let (q8, q81, q9) = (of_gpu(4, 8), of_gpu(2, 4), of_gpu(2, 8));
    let queues = [("q8", "root", q8.as_str()), ("q81", "q8", &q81), ("q82", "q8", &q81)];
    assert_eq!(of(gpus, &queues, "", "p12:q81:2:2:1:1:0"), expected(&[], &[("p12", 1)]), "case 8");
    let queues = [("q9", "root", q9.as_str()), ("q91", "q9", &q81)];
    assert_eq!(of(gpus, &queues, "", "p13:q91:2:2:1:1:0"), expected(&[], &[("p13", 1)]), "case 9");
    let four = "capability = { cpu = 4, memory_gib = 4, gpu = 4 }";
    let queues = [("q1", "root", ""), ("q11", "q1", four), ("q12", "q1", four)];
    let case_11 = of(gpus, &queues, "", "p14:q11:1:1:4:1:0 p15:q12:1:1:4:1:0");
    assert_eq!(case_11, expected(&[], &[("p14", 1), ("p15", 1)]));
}

/// `docs/design/capacity-scheduling.md`, story 4: q1 uses the 60 cards of its capability, and q2 reclaims all but the 20 that are
/// guaranteed to q1. Derived: the other numbers.
#[test]
fn a_guarantee_is_not_taken_back() {
    let q1 = "guarantee = { gpu = 20 }\ndeserved = { gpu = 20 }\ncapability = { gpu = 60 }";
    let q2 = "deserved = { gpu = 80 }\nmin_available = 80";
    let of = |running: &str, waiting: &str| {
        let actions = "actions = [\"allocate\", \"reclaim\"]";
        decide("volcano-capacity", &state("gpu = 100", actions, &[("q1", q1), ("q2", q2)], running, waiting))
    };
    assert_eq!(started(&of("", "a:q1:0:0:1:100:0"), "a"), 60);
    let answer = of("a:q1:0:0:1:60:0", "b:q2:0:0:1:80:0");
    assert_eq!((started(&answer, "b"), answer.evicted), (80, owned(&[("a", 40)])));
}

/// `test/e2e/schedulingaction/reclaim.go`, cases 1, 6, 8, 9 and 10: queues of weight 1, and machines with 1 CPU each.
#[test]
fn reclaim_end_to_end() {
    let of = |machines: u32, keys: &str, running: &str, waiting: &str| {
        let machines: String = (0..machines).map(|at| format!("[[machine]]\nname = \"n{at}\"\ncpu = 1\n")).collect();
        let queues = ["q1", "q2", "q3", "q4"].map(|queue| (queue, keys));
        let text = state(&machines, "actions = [\"allocate\", \"reclaim\"]", &queues, running, waiting);
        ["volcano-proportion", "volcano-capacity"].map(|policy| outcome(policy, &text))
    };
    let two = "j1@n0:q1:1:0:0:1:0 j2@n1:q2:1:0:0:1:0";
    let three = format!("{two} j3@n2:q3:1:0:0:1:0");
    let starts = expected(&[], &[("j3", 1)]);
    for answer in of(4, "", two, "j3:q3:1:0:0:1:0").iter().chain(&of(3, "reclaimable = false", two, "j3:q3:1:0:0:1:0"))
    {
        assert_eq!(*answer, starts, "1: resource is enough; 9: no queue is reclaimable");
    }
    assert_eq!(of(3, "", &three, "j4:q3:1:0:0:1:0")[0], expected(&[], &[]), "6: the queue is overused");
    assert_eq!(
        of(3, "", two, "j4:q3:4:0:0:1:0")[0],
        expected(&[], &[]),
        "8: the task is larger than the reclaimable room"
    );
    let running = "a1/j1@n0:q1:1:0:0:1:0 a2/j1@n1:q1:1:0:0:1:0 b1/j2@n2:q2:1:0:0:1:0 b2/j2@n3:q2:1:0:0:1:0";
    let (evicted, launched) = &of(4, "", running, "j3:q3:1:0:0:1:9 j4:q4:1:0:0:1:9")[0];
    assert_eq!(*launched, owned(&[("j3", 1), ("j4", 1)]), "10: several queues reclaim");
    let from = |job: &str| evicted.iter().filter(|(name, _)| name.starts_with(job)).count();
    assert_eq!((from("a"), from("b")), (1, 1));
}

/// `test/e2e/schedulingaction/preempt.go` on 8 CPUs, and `guarantee.go`. The switches have their defaults: the plugin gang determines the
/// jobs that lack tasks.
#[test]
fn preemption_and_guarantees_end_to_end() {
    let of = |queues: [&str; 2], running: &str, waiting: &str| {
        let queues = [("q1", queues[0]), ("q2", queues[1])];
        outcome(
            "volcano-proportion",
            &state("cpu = 8", "actions = [\"allocate\", \"preempt\"]", &queues, running, waiting),
        )
    };
    assert_eq!(
        of(["", ""], "low:q1:1:0:0:1:0", "high:q1:1:0:0:1:9"),
        expected(&[], &[("high", 1)]),
        "the cluster has room"
    );
    let half = of(["min_available = 4", ""], "low:q1:1:0:0:8:0", "high:q1:1:0:0:8:9");
    assert_eq!(half, expected(&[("low", 4)], &[("high", 4)]), "only the tasks of a minimum");
    let other = of(["min_available = 4", ""], "a:q1:1:0:0:4:0 b:q2:1:0:0:4:0", "high:q1:1:0:0:8:9");
    assert_eq!(other, expected(&[("a", 4)], &[("high", 4)]), "only in the same queue");
    let short = of(["min_available = 8", ""], "a:q1:1:0:0:1:0 b:q2:1:0:0:4:0", "high:q1:1:0:0:8:9");
    assert_eq!(short, expected(&[], &[]), "all possible victims are not enough");
    let of = |guarantee: u32, cpu: f64| {
        let keys = format!("guarantee = {{ cpu = {guarantee}, memory_gib = {guarantee} }}");
        let job = format!("j:q2:{cpu}:0.5:0:1:0");
        started(
            &decide(
                "volcano-proportion",
                &state("cpu = 2\nmemory_gib = 2", "", &[("q1", &keys), ("q2", "")], "", &job),
            ),
            "j",
        )
    };
    assert_eq!([of(2, 0.5), of(1, 1.5), of(1, 0.5)], [0, 0, 1], "the guarantee of another queue is reserved");
}
