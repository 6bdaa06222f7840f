//! Volcano: the deserved amounts of queues, the order of queues and jobs, and the actions allocate, preempt and reclaim.
//!
//! Sources: volcano-sh/volcano (August 2026), `plugins/{proportion,capacity,drf}/*_test.go`, `actions/{preempt,reclaim}/*_test.go`,
//! `docs/design/{capacity-scheduling,hdrf}.md`. These tests do not mark pods as non-preemptible. Instead a job keeps its minimum number
//! of tasks.

use crate::{Answer, decide};
use std::fmt::Write as _;

const RECLAIM: &str = "actions = [\"allocate\", \"reclaim\"]";
const PREEMPT: &str = "actions = [\"allocate\", \"preempt\"]";

/// Returns a state of queues with their keys and of workloads, the oldest first. A workload is `NAME:QUEUE:CPU:GIB:GPU:TASKS:PRIORITY`,
/// optionally with `/JOB` and then `@MACHINE` after the name. `capacity` has the amounts of the cluster, or `[[machine]]` tables.
pub fn state(capacity: &str, policy: &str, queues: &[(&str, &str)], running: &str, waiting: &str) -> String {
    let pool = if capacity.starts_with('[') { "" } else { "[capacity]\n" };
    let mut text = format!("{pool}{capacity}\n[policy]\n{policy}\n");
    for (name, keys) in queues {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\n{keys}\n");
    }
    for (kind, items) in [("running", running), ("waiting", waiting)] {
        for item in items.split_whitespace() {
            let [name, queue, cpu, memory, gpu, tasks, priority] = item.split(':').collect::<Vec<_>>()[..] else {
                panic!("{item}")
            };
            let (name, machine) = name
                .split_once('@')
                .map_or((name, String::new()), |(name, machine)| (name, format!("machine = \"{machine}\"\n")));
            let (name, job) =
                name.split_once('/').map_or((name, String::new()), |(name, job)| (name, format!("user = \"{job}\"\n")));
            let demand = [("cpu", cpu), ("memory_gib", memory), ("gpu", gpu)];
            let demand: Vec<String> =
                demand.iter().filter(|(_, n)| *n != "0").map(|(key, n)| format!("{key} = {n}")).collect();
            let _ = write!(
                text,
                "[[{kind}]]\nname = \"{name}\"\n{machine}{job}group = \"{queue}\"\ndemand = {{ {} }}\n\
                 tasks = {tasks}\npriority = {priority}\n",
                demand.join(", ")
            );
        }
    }
    text
}

pub fn owned(list: &[(&str, u32)]) -> Vec<(String, u32)> {
    list.iter().map(|(name, tasks)| ((*name).to_owned(), *tasks)).collect()
}

fn deserved(answer: &Answer, queues: &[&str], resource: &str) -> Vec<f64> {
    queues.iter().map(|queue| answer.share(queue, &format!("deserved {resource}"))).collect()
}

/// Returns the number of tasks that a workload starts in one round.
pub fn started(answer: &Answer, name: &str) -> u32 {
    answer.launched.iter().filter(|(known, _)| known == name).map(|(_, tasks)| tasks).sum()
}

/// `proportion.go`, with manually computed values: deserved amounts are divided by weight. A queue deserves at most its request and its
/// capability, and at least its guarantee.
#[test]
fn proportion_divides_by_weight() {
    let of = |keys: [&str; 2], requests: [u32; 2]| {
        let waiting = format!("a:a:1:0:0:{}:0 b:b:1:0:0:{}:0", requests[0], requests[1]);
        let answer =
            decide("volcano-proportion", &state("cpu = 12", "", &[("a", keys[0]), ("b", keys[1])], "", &waiting));
        deserved(&answer, &["a", "b"], "cpu")
    };
    assert_eq!(of(["", ""], [12, 12]), [6.0, 6.0]);
    assert_eq!(of(["weight = 1", "weight = 3"], [12, 12]), [3.0, 9.0]);
    assert_eq!(of(["weight = 1", "weight = 3"], [12, 5]), [7.0, 5.0], "a receives the rest that b does not request");
    assert_eq!(of(["", "capability = { cpu = 2 }"], [12, 12]), [10.0, 2.0]);
    assert_eq!(of(["guarantee = { cpu = 8 }", ""], [12, 12]), [8.0, 4.0]);
    assert_eq!(
        of(["guarantee = { cpu = 8 }", "weight = 11"], [12, 12]),
        [8.0, 4.0],
        "a guarantee above the part by weight"
    );
    assert_eq!(of(["guarantee = { cpu = 8 }", ""], [1, 12]), [8.0, 4.0], "a guarantee above the request");
}

/// Queues stay within their deserved amounts even if the rest of the cluster is idle. With the guard they use the rest.
#[test]
fn proportion_keeps_queues_within_what_they_deserve() {
    let text = state("cpu = 7", "", &[("a", ""), ("b", "")], "", "a:a:2:0:0:3:0 b:b:2:0:0:3:0");
    let plain = decide("volcano-proportion", &text);
    assert_eq!((started(&plain, "a"), started(&plain, "b")), (1, 1), "a second task would exceed the deserved 3.5");
    let guarded = decide("volcano-proportion@guarded", &text);
    assert_eq!(started(&guarded, "a") + started(&guarded, "b"), 3);
}

/// `capacity_test.go`, cases 0 and 1: a queue stays within its capability.
#[test]
fn capability_limits() {
    let of = |most: &str| {
        let keys = format!("capability = {{ cpu = {most}, memory_gib = {most} }}");
        let text = state("cpu = 4\nmemory_gib = 8", RECLAIM, &[("q", &keys)], "p1:q:1:1:0:1:0", "p2:q:1:1:0:1:0");
        decide("volcano-capacity", &text).launched
    };
    assert_eq!(of("2"), owned(&[("p2", 1)]));
    assert!(of("1.5").is_empty());
}

/// The same file, cases 2, 3, 5 and 6: a queue reclaims if, with its task, it stays within its deserved amount of at least one resource.
#[test]
fn capacity_reclaims_up_to_what_is_deserved() {
    let evicted = |capacity: &str, queues: &[(&str, &str)], running: &str, waiting: &str| {
        let answer = decide("volcano-capacity", &state(capacity, RECLAIM, queues, running, waiting));
        assert_eq!(answer.launched.len(), answer.evicted.len(), "each victim makes room for a start");
        answer.evicted
    };
    let two = "deserved = { cpu = 2, memory_gib = 4 }";
    let small = "cpu = 4\nmemory_gib = 8";
    assert_eq!(
        evicted(small, &[("q3", two), ("q4", two)], "pg5:q3:2:4:0:2:0", "p7:q4:2:4:0:1:0"),
        owned(&[("pg5", 1)])
    );
    let gpus = "deserved = { cpu = 2, memory_gib = 4, gpu = 10 }";
    let case_3 = evicted(
        "cpu = 4\nmemory_gib = 8\ngpu = 20",
        &[("q5", gpus), ("q6", gpus)],
        "pg7:q5:0:0:10:2:0 pg8:q6:2:4:0:2:0",
        "p12:q6:0:0:10:1:0",
    );
    assert_eq!(case_3, owned(&[("pg7", 1)]), "resources that the task does not request do not count");
    let node = "cpu = 2\nmemory_gib = 4";
    let of = |deserved: &str| format!("deserved = {{ {deserved} }}\ncapability = {{ cpu = 4, memory_gib = 4 }}");
    let none = "deserved = { cpu = 0, memory_gib = 0 }\ncapability = { cpu = 2, memory_gib = 2 }";
    let q10 = of("cpu = 2, memory_gib = 2");
    let case_5 =
        evicted(node, &[("q10", &q10), ("q11", none)], "p16:q10:1:3:0:1:0 p18:q11:1:1:0:1:0", "p17:q10:1:1:0:1:0");
    assert_eq!(case_5, owned(&[("p18", 1)]), "within its deserved cores, above its deserved memory");
    let q12 = of("cpu = 1, memory_gib = 2");
    let case_6 =
        evicted(node, &[("q12", &q12), ("q13", none)], "p19:q12:1:1:0:1:0 p21:q13:1:1:0:1:0", "p20:q12:1:2:0:1:0");
    assert!(case_6.is_empty(), "above its deserved amounts of both");
}

/// The same file, case 4: the queue of the highest priority starts first.
#[test]
fn queues_go_by_priority() {
    let of = |priority: u32| format!("priority = {priority}\ncapability = {{ cpu = 2, memory_gib = 4 }}");
    let (q7, q8, q9) = (of(5), of(1), of(10));
    let queues = [("q7", q7.as_str()), ("q8", &q8), ("q9", &q9)];
    let text = state("cpu = 4\nmemory_gib = 8", "", &queues, "p13:q7:2:4:0:1:0", "p14:q8:2:4:0:1:0 p15:q9:2:4:0:1:0");
    assert_eq!(decide("volcano-capacity", &text).launched, owned(&[("p15", 1)]));
}

/// The same file, with hierarchy, cases 3 and 12: a sibling loses tasks before other queues do. A queue reclaims its deserved amount from
/// a sibling that deserves nothing.
#[test]
fn capacity_reclaims_in_the_tree() {
    let of = |parent: &str, n: u32| format!("parent = \"{parent}\"\ndeserved = {{ cpu = {n}, memory_gib = {n} }}");
    let (q3, q4, leaf) = (of("root", 4), of("root", 2), of("q3", 2));
    let queues = [("q3", q3.as_str()), ("q4", &q4), ("q31", &leaf), ("q32", &leaf)];
    let text =
        state("cpu = 8\nmemory_gib = 8", RECLAIM, &queues, "pg4:q4:4:4:0:1:0 pg5:q31:2:2:0:2:0", "p8:q32:2:2:0:1:0");
    let answer = decide("volcano-capacity", &text);
    assert_eq!((answer.evicted, answer.launched), (owned(&[("pg5", 1)]), owned(&[("p8", 1)])));
    let queues = [
        ("q1", "deserved = { gpu = 2 }"),
        ("q11", "parent = \"q1\"\ndeserved = { gpu = 2 }"),
        ("q12", "parent = \"q1\""),
    ];
    let text = state("cpu = 16\nmemory_gib = 16\ngpu = 5", RECLAIM, &queues, "p17:q12:1:1:2:2:0", "p16:q11:1:1:2:1:0");
    let answer = decide("volcano-capacity", &text);
    assert_eq!((answer.evicted, answer.launched), (owned(&[("p17", 1)]), owned(&[("p16", 1)])));
}

/// `docs/design/capacity-scheduling.md`, stories 3 and 4, as implemented in the source. While q2 is idle, q1 uses the 90 of 100 cards
/// that are not guaranteed to q2 (in the figure of the document, q1 uses all 100). Then the job of q2, with a minimum of 80 tasks,
/// reclaims up to the 80 cards that q2 deserves.
#[test]
fn the_vector_of_lending() {
    let q1 = "guarantee = { gpu = 10 }\ndeserved = { gpu = 20 }";
    let q2 = "guarantee = { gpu = 10 }\ndeserved = { gpu = 80 }\nmin_available = 80";
    let of = |running: &str, waiting: &str| {
        decide("volcano-capacity", &state("gpu = 100", RECLAIM, &[("q1", q1), ("q2", q2)], running, waiting))
    };
    assert_eq!(started(&of("", "a:q1:0:0:1:100:0"), "a"), 90);
    // b uses the 10 idle cards and the cards of 70 victims.
    let answer = of("a:q1:0:0:1:90:0", "b:q2:0:0:1:100:0");
    assert_eq!((started(&answer, "b"), answer.evicted), (80, owned(&[("a", 70)])));
}

/// `reclaim_test.go`, "Two Queue with one Queue overusing resource, should reclaim": one of three running tasks is stopped.
#[test]
fn proportion_reclaims() {
    let text =
        state("cpu = 3\nmemory_gib = 3", RECLAIM, &[("q1", ""), ("q2", "")], "pg1:q1:1:1:0:3:0", "pg2:q2:1:1:0:1:0");
    let answer = decide("volcano-proportion", &text);
    assert_eq!((answer.evicted, answer.launched), (owned(&[("pg1", 1)]), owned(&[("pg2", 1)])));
    // A queue that is not reclaimable keeps all tasks. Without the action reclaim, every queue does.
    let fixed = text.replacen("name = \"q1\"\n", "name = \"q1\"\nreclaimable = false\n", 1);
    assert!(decide("volcano-proportion", &fixed).evicted.is_empty());
    assert!(decide("volcano-proportion", &text.replace(RECLAIM, "")).evicted.is_empty());
    // The gang plugin selects the tasks of a job beyond its minimum.
    let least = text.replacen("name = \"q1\"\n", "name = \"q1\"\nmin_available = 2\n", 1);
    assert_eq!(decide("volcano-proportion", &least).evicted, owned(&[("pg1", 1)]));
}

/// `preempt_test.go`: a job that lacks its minimum takes the room of less urgent jobs of its queue.
#[test]
fn the_vectors_of_preemption() {
    let of = |capacity: &str, keys: &str, running: &str, waiting: &str| {
        let answer = decide("volcano-proportion", &state(capacity, PREEMPT, &[("q1", keys)], running, waiting));
        (answer.evicted, answer.launched)
    };
    let nothing = |answer: (Vec<(String, u32)>, Vec<(String, u32)>)| answer.0.is_empty();
    let idle = of("cpu = 10\nmemory_gib = 10", "min_available = 3", "low:q1:1:1:0:2:0", "high:q1:1:1:0:1:0");
    assert!(nothing(idle), "the job fits without victims");
    // "do not preempt if job is pipelined": job `pg2`, with the tasks b and c, already has its minimum.
    let text =
        state("cpu = 3\nmemory_gib = 3", PREEMPT, &[("q1", "")], "a:q1:1:1:0:2:0 b:q1:1:1:0:1:0", "c:q1:1:1:0:1:1");
    let user = |text: &str| {
        text.replace("name = \"b\"\n", "name = \"b\"\nuser = \"pg2\"\n")
            .replace("name = \"c\"\n", "name = \"c\"\nuser = \"pg2\"\n")
    };
    assert!(decide("volcano-proportion", &user(&text)).evicted.is_empty());
    assert_eq!(
        decide("volcano-proportion", &text).evicted,
        owned(&[("a", 1)]),
        "as a separate job, c lacks its minimum"
    );
    let one = of("cpu = 2\nmemory_gib = 2", "", "low:q1:1:1:0:2:0", "high:q1:1:1:0:2:1");
    assert_eq!(one, (owned(&[("low", 1)]), owned(&[("high", 1)])), "preempt one task of different job");
    let large = of("cpu = 6\nmemory_gib = 6", "", "low:q1:1:1:0:3:0", "high:q1:5:5:0:1:1");
    assert_eq!(large, (owned(&[("low", 2)]), owned(&[("high", 1)])), "preempt enough tasks to fit large task");
    // Issue 3161: the capability limits a queue even if the cluster has room.
    let within = |most: &str| {
        let keys = format!("capability = {{ cpu = {most}, memory_gib = {most} }}");
        of("cpu = 12\nmemory_gib = 12", &keys, "low:q1:3:3:0:1:0", "high:q1:3:3:0:1:1")
    };
    assert_eq!(within("4"), (owned(&[("low", 1)]), owned(&[("high", 1)])));
    assert_eq!(within("6"), (Vec::new(), owned(&[("high", 1)])));
    let equal = of("cpu = 1\nmemory_gib = 1", "", "low:q1:1:1:0:1:0", "high:q1:1:1:0:1:0");
    assert!(nothing(equal), "equally urgent jobs are not preempted");
}

/// `drf.go`, with `drf_preemptable`: a job preempts a task of another job if that job keeps a dominant share at least as large as the
/// preemptor's, within a millionth.
#[test]
fn dominant_shares_say_whom_to_preempt() {
    let of = |drf: bool, running: &str| {
        let policy = format!("{PREEMPT}\ndrf_preemptable = {drf}");
        decide("volcano-proportion", &state("cpu = 4", &policy, &[("q1", "")], running, "b:q1:1:0:0:4:0")).evicted
    };
    assert_eq!(
        of(true, "a:q1:1:0:0:4:0"),
        owned(&[("a", 1)]),
        "a keeps three quarters; with one quarter b has its minimum"
    );
    assert!(of(false, "a:q1:1:0:0:4:0").is_empty());
    assert!(
        of(true, "a1:q1:1:0:0:1:0 a2:q1:1:0:0:1:0 a3:q1:1:0:0:1:0 a4:q1:1:0:0:1:0").is_empty(),
        "without its only task, a job has no share left"
    );
}

/// The order of jobs in a queue: the most urgent, then those below their minimum, then the smaller dominant share, then the oldest.
#[test]
fn the_order_of_jobs() {
    let of = |running: &str, waiting: &str| {
        let text = state("cpu = 10\nmemory_gib = 20", "", &[("q", "")], running, waiting);
        let answer = decide("volcano-capacity", &text);
        answer.launched.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(of("", "a:q:6:0:0:1:0 b:q:6:0:0:1:1"), ["b"]);
    assert_eq!(of("", "a:q:6:0:0:1:0 b:q:6:0:0:1:0"), ["a"]);
    // Each next task is from the job with the smaller dominant share. With one to four tasks, a has 0.2, 0.4, 0.6 and 0.8 of the cores.
    // With one and two tasks, b has 0.3 and 0.6 of the memory.
    let text = state("cpu = 10\nmemory_gib = 20", "", &[("q", "")], "", "a:q:2:0:0:5:0 b:q:1:6:0:5:0");
    let answer = decide("volcano-capacity", &text);
    assert_eq!((started(&answer, "a"), started(&answer, "b")), (4, 2));
    // A job that lacks its minimum of two tasks precedes a job that has it.
    let text = state("cpu = 6", "", &[("q", "min_available = 2")], "a:q:1:0:0:2:0", "a2:q:1:0:0:2:0 b:q:2:0:0:2:0");
    let text = text
        .replace("name = \"a\"\n", "name = \"a\"\nuser = \"a\"\n")
        .replace("name = \"a2\"\n", "name = \"a2\"\nuser = \"a\"\n");
    assert_eq!(decide("volcano-capacity", &text).launched, owned(&[("b", 2)]));
}

/// `actions/allocate`: a `strict-fifo` queue starts no job behind a job that does not start.
#[test]
fn a_strict_queue_waits() {
    let of = |order: &str| {
        let keys = format!("order = \"{order}\"");
        let text = state("cpu = 2", "", &[("q1", &keys)], "r:q1:1:0:0:1:0", "p1:q1:2:0:0:1:0 p2:q1:1:0:0:1:0");
        ["volcano-proportion", "volcano-capacity", "volcano-drf"].map(|policy| decide(policy, &text).launched)
    };
    assert_eq!(of("strict-fifo"), [const { Vec::new() }; 3]);
    assert_eq!(of("best-effort-fifo"), [const { "p2" }; 3].map(|name| owned(&[(name, 1)])));
}

/// `docs/design/hdrf.md`, and the allocations that `hdrf_test.go` states but does not check: rescaling, and saturated nodes.
#[test]
fn hierarchical_dominant_shares() {
    let text = state(
        "cpu = 10\nmemory_gib = 10",
        "",
        &[
            ("n1", "weight = 50"),
            ("n2", "weight = 50"),
            ("n21", "parent = \"n2\"\nweight = 50"),
            ("n22", "parent = \"n2\"\nweight = 50"),
        ],
        "",
        "pg1:n1:1:1:0:10:0 pg21:n21:1:0:0:10:0 pg22:n22:0:1:0:10:0",
    );
    let answer = decide("volcano-drf", &text);
    assert_eq!(["pg1", "pg21", "pg22"].map(|name| started(&answer, name)), [5, 5, 5]);
    let text = state(
        "cpu = 30\nmemory_gib = 30",
        "",
        &[
            ("n1", "weight = 25"),
            ("n2", "weight = 25"),
            ("n3", "weight = 25"),
            ("n31", "parent = \"n3\"\nweight = 50"),
            ("n32", "parent = \"n3\"\nweight = 50"),
            ("n4", "weight = 25"),
        ],
        "",
        "pg1:n1:1:0:0:30:0 pg2:n2:1:0:0:30:0 pg31:n31:1:0:0:30:0 pg32:n32:0:1:0:30:0 pg4:n4:0:1:0:30:0",
    );
    let answer = decide("volcano-drf", &text);
    let of = ["pg1", "pg2", "pg31", "pg32", "pg4"].map(|name| started(&answer, name));
    assert_eq!(of, [10, 10, 10, 15, 15]);
}

/// Issue 1168: a job with a minimum of eight tasks, of 0.25 CPUs each, starts beside a running task of 0.25 CPUs.
#[test]
fn a_gang_starts_whole() {
    let text =
        state("cpu = 4", "", &[("q1", ""), ("q2", "min_available = 8")], "a:q1:0.25:0:0:1:0", "b:q2:0.25:0:0:8:0");
    assert_eq!(started(&decide("volcano-proportion", &text), "b"), 8);
    // If the room is less than the minimum needs, no task of the job starts.
    let small = text.replace("cpu = 4", "cpu = 2");
    assert!(decide("volcano-proportion", &small).launched.is_empty());
}
