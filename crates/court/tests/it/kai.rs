//! The KAI scheduler: shares, the order of queues, reclaim and preemption.
//!
//! Sources: kai-scheduler/KAI-Scheduler (August 2026), `resource_division_test.go`, `reclaimable_test.go` and
//! `actions/{reclaim,integration_tests/reclaim}/*_test.go`. The tests of the source divide GPUs. `reclaimable_test.go` states only fair
//! shares and allocations; the states in this file are constructed to result in the same fair shares and allocations.

mod allocate;
mod division;
mod reclaim;
mod table;
mod unlimited;

use crate::decide;
use std::fmt::Write as _;

/// Returns a state. A queue is `NAME:PARENT:DESERVED:WEIGHT:PRIORITY`, and a workload is `NAME:QUEUE:GPUS:TASKS:PRIORITY`, the oldest
/// first. `more` is further TOML.
fn state(gpus: &str, queues: &str, running: &str, waiting: &str, more: &str) -> String {
    let mut text = format!("[capacity]\ngpu = {gpus}\n{more}\n");
    for queue in queues.split_whitespace() {
        let [name, parent, deserved, weight, priority] = queue.split(':').collect::<Vec<_>>()[..] else {
            panic!("{queue}")
        };
        let _ = write!(
            text,
            "[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\ndeserved = {{ gpu = {deserved} }}\nweight = {weight}\npriority = {priority}\n"
        );
    }
    for (kind, items) in [("running", running), ("waiting", waiting)] {
        for item in items.split_whitespace() {
            let [name, queue, gpus, tasks, priority] = item.split(':').collect::<Vec<_>>()[..] else {
                panic!("{item}")
            };
            let _ = write!(
                text,
                "[[{kind}]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ gpu = {gpus} }}\ntasks = {tasks}\npriority = {priority}\n"
            );
        }
    }
    text
}

/// Returns the fair GPU share of each queue. A queue is given with the number of GPUs that it requests.
fn shares(gpus: &str, queues: &[(&str, u32)], more: &str) -> Vec<f64> {
    let names: Vec<String> = queues.iter().map(|(queue, _)| (*queue).to_owned()).collect();
    let waiting: Vec<String> = queues
        .iter()
        .filter(|(_, request)| *request > 0)
        .map(|(queue, request)| {
            let name = queue.split(':').next().unwrap_or_default();
            format!("w{name}:{name}:1:{request}:0")
        })
        .collect();
    let answer = decide("kai", &state(gpus, &names.join(" "), "", &waiting.join(" "), more));
    queues.iter().map(|(queue, _)| answer.share(queue.split(':').next().unwrap_or_default(), "fair gpu")).collect()
}

/// The vectors of `resource_division_test.go`. Most queues deserve 2 GPUs, have a weight of 2 and request 6 GPUs.
#[test]
fn the_vectors_of_division() {
    let two = [("a:root:2:2:0", 6), ("b:root:2:2:0", 6)];
    assert_eq!(shares("15", &two, ""), [6.0, 6.0]);
    assert_eq!(shares("12", &two, ""), [6.0, 6.0]);
    assert_eq!(shares("11", &two, ""), [6.0, 5.0], "the older queue receives the remainder");
    assert_eq!(shares("8", &[("a:root:2:1:0", 6), ("b:root:2:3:0", 6)], ""), [3.0, 5.0]);
    assert_eq!(shares("4", &[("a:root:2:2:1", 6), ("b:root:2:2:2", 6)], ""), [2.0, 2.0]);
    let three = [("a:root:2:2:2", 5), ("b:root:2:2:2", 5), ("c:root:1:2:1", 0)];
    assert_eq!(shares("5", &three, ""), [3.0, 2.0, 0.0]);
    assert_eq!(shares("1", &[("a:root:3:0:0", 2)], ""), [2.0], "deserved amounts may exceed the total");
    assert_eq!(shares("7", &[("a:root:3:0:0", 5)], ""), [3.0], "a queue without a weight receives no part of the rest");
    assert_eq!(shares("2", &[("a:root:1.5:0:0", 6)], ""), [1.5]);
    // Derived: the parts of a priority are rounded down, and the next priority receives the remainder.
    let floors = [("a:root:0:1:2", 8), ("b:root:0:2:2", 8), ("c:root:0:1:1", 8)];
    assert_eq!(shares("8", &floors, ""), [2.0, 5.0, 1.0]);
    // Issue 143.
    assert_eq!(shares("5", &[("a:root:1:1:2", 1), ("b:root:1:2:1", 3), ("c:root:0:1:1", 2)], ""), [1.0, 3.0, 1.0]);
}

/// Cores are divided in thousandths, GPUs only as a whole. In this test three queues deserve 5 cores each and request 7, 2 and 2 of 10.
#[test]
fn the_vector_of_cores() {
    let mut text = "[capacity]\ncpu = 10\n".to_owned();
    for (name, request) in [("a", 7), ("b", 2), ("c", 2)] {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\ndeserved = {{ cpu = 5 }}\n");
        let _ = write!(text, "[[waiting]]\ngroup = \"{name}\"\ndemand = {{ cpu = 1 }}\ntasks = {request}\n");
    }
    let answer = decide("kai", &text);
    let shares: Vec<f64> = ["a", "b", "c"].iter().map(|name| answer.share(name, "fair cpu")).collect();
    assert_eq!(shares, [6.0, 2.0, 2.0]);
}

/// The design document of time-based fair share: 16 GPUs, equal weights, past usage of 0.3 and 0, and k = 1. The factors of the weights
/// are 0.7 and 1, and the shares before rounding are 6.588 and 9.412. In whole GPUs they are 6 and 9, and the queue with the larger
/// fraction receives the last GPU.
#[test]
fn past_usage_counts() {
    let queues = state("16", "a:root:0:1:0 b:root:0:1:0", "", "wa:a:1:16:0 wb:b:1:16:0", "[policy]\nk = 1");
    let used = queues.replacen("priority = 0\n", "priority = 0\nusage = 0.3\n", 1);
    let of = |text: &str| ["a", "b"].map(|name| decide("kai", text).share(name, "fair gpu"));
    assert_eq!(of(&used), [7.0, 9.0]);
    assert_eq!(of(&used.replace("usage = 0.3", "usage = { gpu = 4.8 }")), [7.0, 9.0], "the same usage as an amount");
    assert_eq!(of(&used.replace("k = 1", "k = 0")), [8.0, 8.0], "past usage does not count");
    // Story 1: jobs that need the whole cluster. Without past usage the job of the older queue starts. If that queue has past usage, the
    // job of the other queue starts.
    let whole = state("16", "a:root:0:1:0 b:root:0:1:0", "", "wa:a:16:1:0 wb:b:16:1:0", "");
    assert_eq!(decide("kai", &whole).launched(), ["wa"]);
    let used = whole.replacen("priority = 0\n", "priority = 0\nusage = 1\n", 1);
    assert_eq!(decide("kai", &used).launched(), ["wb"]);
}

fn evicted(text: &str) -> Vec<String> {
    decide("kai", text).evicted().into_iter().map(str::to_owned).collect()
}

/// `reclaimable_test.go`, "Single department": p1 and p2 have one parent. p1 requests 1 GPU, and a victim in p2 has 1 GPU.
#[test]
fn the_vectors_of_one_department() {
    let queues = "default:root:5:1:0 p1:default:3:1:0 p2:default:2:1:0";
    // p1 deserves 3 GPUs and has 2; p2 deserves 2 and has 3. The queue below its deserved amount takes from the queue above.
    assert_eq!(evicted(&state("5", queues, "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", "")), ["r2"]);
    // p1 and p2 have 2 GPUs each, and a third queue has the last one. p2 is exactly at its fair share, so it has no victim.
    let full = "default:root:4:1:0 p1:default:3:1:0 p2:default:2:1:0 else:root:1:1:0";
    assert!(evicted(&state("5", full, "r1:p1:1:2:0 r2:p2:1:2:0 r3:else:1:1:0", "w:p1:1:1:0", "")).is_empty());
    // p1 has 2 of 3 GPUs and p2 has 1: both are below their deserved amounts.
    assert!(evicted(&state("3", queues, "r1:p1:1:2:0 r2:p2:1:1:0", "w:p1:1:1:0", "")).is_empty());
    // p2 deserves 2 GPUs, has a fair share of 3 and runs 4. It loses one to p1, which deserves one more.
    let answer = decide(
        "kai",
        &state(
            "6",
            "default:root:6:1:0 p1:default:3:0:0 p2:default:2:1:0 p3:default:1:0:0",
            "r1:p1:1:2:0 r2:p2:1:4:0",
            "w:p1:1:1:0",
            "",
        ),
    );
    assert_eq!((answer.share("p2", "fair gpu"), answer.evicted.len()), (3.0, 1));
    let answer = decide("kai", &state("5", "p1:root:3:0:0 p2:root:2:1:0", "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", ""));
    assert_eq!(answer.evicted(), ["r2"]);
    // p1 already has its fair share.
    let queues = "default:root:6:1:0 p1:default:3:0:0 p2:default:2:1:0";
    assert!(evicted(&state("6", queues, "r1:p1:1:3:0 r2:p2:1:3:0", "w:p1:1:1:0", "")).is_empty());
}

/// The same file: non-preemptible workloads must stay within the deserved amounts of their queue and its parent.
#[test]
fn the_vectors_of_workloads_that_stay() {
    let text = |deserved: &str, parent: &str, fixed: bool| {
        let queues = format!("default:root:{parent}:1:0 p1:default:{deserved}:1:0 p2:default:2:1:0");
        let text = state("5", &queues, "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", "");
        let (before, after) = text.split_once("name = \"p1\"").expect("a queue p1");
        if fixed { format!("{before}name = \"p1\"\npreemptible = false{after}") } else { text }
    };
    assert_eq!(evicted(&text("3", "5", true)), ["r2"], "p1 would have 3 of 3 deserved GPUs");
    assert!(evicted(&text("2", "5", true)).is_empty(), "p1 would have 3 GPUs and deserves 2");
    assert!(evicted(&text("3", "2", true)).is_empty(), "the parent would have 3 GPUs and deserves 2");
    assert_eq!(
        evicted(&text("2", "5", false)),
        ["r2"],
        "a preemptible p1 may exceed its deserved amount up to its fair share of 3"
    );
}

/// The same file, "Multiple departments" and "Multiple hierarchy levels": the queues directly below the common ancestor are compared.
#[test]
fn the_vectors_of_departments() {
    let queues = "d1:root:3:1:0 p1:d1:3:1:0 d2:root:2:1:0 p2:d2:2:1:0";
    assert_eq!(evicted(&state("5", queues, "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", "")), ["r2"]);
    assert!(
        evicted(&state("4", queues, "r1:p1:1:2:0 r2:p2:1:2:0", "w:p1:1:1:0", "")).is_empty(),
        "p2 would fall below its share"
    );
    // The only victim has 2 GPUs. The right side deserves 1 and loses both; the left side has none and deserves 1.
    let levels = "lt:root:1:1:0 oq:lt:0:1:0 lm:lt:1:1:0 ll:lm:1:1:0 rt:root:1:1:0 rm:rt:1:1:0 rl:rm:1:1:0";
    assert_eq!(evicted(&state("2", levels, "r:rl:2:1:0", "w:ll:1:1:0", "")), ["r"]);
    // `lt` has 1 GPU and deserves 1, and `oq` below it exceeds its quota of 0. `rt` has 2 GPUs and deserves 1. With a victim from `rt`
    // the left side would exceed its deserved amount as much as `rt` does now. Therefore the victim is the workload of `oq`.
    let queues = levels.replace("root:1:1", "root:1:0");
    let answer = decide("kai", &state("3", &queues, "r:rl:2:1:0 o:oq:1:1:0", "w:ll:1:1:0", ""));
    assert_eq!(answer.evicted(), ["o"]);
}

/// `actions/reclaim/reclaim_test.go` and the integration tests.
#[test]
fn the_vectors_of_the_actions() {
    // "Reclaim jobs according to queue fair share": the victims are the job of lower priority in each of the two queues.
    let queues = "d1:root:1:1:0 q0:d1:1:1:0 q1:d1:1:1:0 rq:d1:2:0:0";
    let running = "a0:q0:1:1:50 a1:q0:1:1:50 a2:q0:1:1:49 b0:q1:1:1:50 b1:q1:1:1:50 b2:q1:1:1:49";
    let gang = state("6", queues, running, "", "")
        + "[[waiting]]\nname = \"w\"\ngroup = \"rq\"\ndemand = { gpu = 1 }\ntasks = 2\ngang = true\npriority = 50\n";
    let mut gone = evicted(&gang);
    gone.sort();
    assert_eq!(gone, ["a2", "b2"]);
    assert_eq!(decide("kai", &gang).launched, [("w".to_owned(), 2)]);
    // "under deserved, the other over deserved but under fair share".
    let running: String = (0..6).map(|at| format!("r{at}:q0:2:1:0 ")).collect();
    let machines =
        state("0", "q0:root:2:1:0 q1:root:2:1:0", &running, "p6:q0:2:1:0 p7:q0:2:1:0 p8:q0:2:1:0 w:q1:2:1:0", "");
    let mut machines = machines.replacen("[capacity]\ngpu = 0\n", "machines = \"6x1c3gpu\"\n", 1);
    for at in 0..6 {
        machines =
            machines.replace(&format!("name = \"r{at}\""), &format!("name = \"r{at}\"\nmachine = \"m{}\"", at + 1));
    }
    let answer = decide("kai", &machines);
    assert_eq!(answer.evicted(), ["r5"], "the youngest");
    assert!(answer.launched().contains(&"w"));
    // "queue0 is under fair share, queue1 is over fair share".
    let queues = "q0:root:1:3:0 q1:root:2:1:0";
    let running = "q00:q0:1:1:0 q01:q0:0.5:1:0 q10:q1:2:1:0 q11:q1:0.5:1:0";
    let answer = decide("kai", &state("4", queues, running, "q02:q0:0.5:1:0", ""));
    assert_eq!((answer.evicted(), answer.launched()), (vec!["q11"], vec!["q02"]));
    // "1 train job running for queue0, 1 pending for queue1": the last victim may bring its queue below its share.
    let answer = decide("kai", &state("2", "q0:root:1:1:0 q1:root:1:1:0", "r:q0:2:1:0", "w:q1:1:1:0", ""));
    assert_eq!((answer.evicted(), answer.launched()), (vec!["r"], vec!["w"]));
    // "used by the demo": of the possible victims r1 and r2 the younger one is taken, r2, which is also smaller.
    let queues = "q0:root:2:2:0 q1:root:2:2:0";
    assert_eq!(evicted(&state("4", queues, "r0:q0:1:1:0 r1:q1:2:1:0 r2:q1:1:1:0", "w:q0:1:1:0", "")), ["r2"]);
    // "deserved of queue1 is 1": the allocations of 3 and 1 GPUs do not change.
    assert!(
        evicted(&state("4", "q0:root:2:2:0 q1:root:1:1:0", "r0:q0:1:1:0 r1:q0:2:1:0 r2:q1:1:1:0", "w:q1:1:1:0", ""))
            .is_empty()
    );
}

/// Issue 2065, case 1: of 12 GPUs each queue deserves 8. If a switch is on (by default it is off), the queue of higher priority reclaims
/// GPUs that the other queue deserves.
#[test]
fn a_switch_lets_queues_of_higher_priority_take() {
    let text = |more: &str| state("12", "a:root:8:1:90 b:root:8:1:80", "b1:b:8:1:0", "a1:a:8:1:0", more);
    assert!(evicted(&text("")).is_empty());
    assert_eq!(evicted(&text("[policy]\nqueue_priority_in_quota_reclaim = true")), ["b1"]);
}

/// Allocation serves queues below their deserved amount first, then queues of higher priority. No queue exceeds its limit.
#[test]
fn allocation_follows_the_order_of_queues() {
    let queues = "a:root:0:1:9 b:root:1:1:0 c:root:0:1:0";
    let answer = decide("kai", &state("3", queues, "", "wc:c:1:1:0 wa:a:1:1:0 wb:b:1:1:0", ""));
    assert_eq!(answer.launched(), ["wb", "wa", "wc"]);
    let text = state("8", "a:root:2:1:0 b:root:0:1:0", "", "wa:a:1:4:0 wb:b:1:9:0", "");
    let limited = text.replacen("weight", "limit = { gpu = 3 }\nweight", 1);
    let answer = decide("kai", &limited);
    let tasks =
        |name: &str| answer.launched.iter().filter(|(known, _)| known == name).map(|(_, tasks)| tasks).sum::<u32>();
    assert_eq!((tasks("wa"), tasks("wb")), (3, 5));
    assert!(answer.round.waits.iter().any(|waits| matches!(waits.reason, plimsoll_court::Why::Quota(1, 0, 1000))));
}

/// Preemption in a queue stops the least urgent workload, and of equally urgent ones the youngest. A victim that still fits is spared.
#[test]
fn preemption_takes_the_least_urgent() {
    let text = state("4", "a:root:4:1:0", "r1:a:1:1:1 r2:a:1:1:0 r3:a:1:1:0 r4:a:1:1:2", "w:a:1:1:3", "");
    assert_eq!(evicted(&text), ["r3"]);
    let text = state("4", "a:root:4:1:0", "r1:a:3:1:0 r2:a:1:1:0", "w:a:3:1:3", "");
    assert_eq!(evicted(&text), ["r1"], "r2 alone does not make enough room, and it still fits afterwards");
    let text = state("4", "a:root:4:1:0", "r1:a:3:1:0 r2:a:1:1:0", "w:a:3:1:0", "");
    assert!(evicted(&text).is_empty(), "workloads of equal priority do not preempt each other");
}

/// A job loses tasks until it has one left, before another job loses its last task.
#[test]
fn elastic_jobs_shrink_first() {
    let text = state("4", "a:root:2:1:0 b:root:2:1:0", "r1:a:1:3:0 r2:a:1:1:0", "w:b:1:2:0", "");
    let answer = decide("kai", &text);
    assert_eq!(answer.evicted, [("r1".to_owned(), 2)], "although r2 is younger");
}

/// Issue 1934: with the fault `bob` receives the 2 of 8 GPUs that it deserves; without the fault it receives its fair share of 4.
#[test]
fn the_end_of_issue_1934() {
    let queues = "critical:root:1000000:1:0 shared:root:0:1:0 alice:shared:2:1:0 bob:shared:2:1:0";
    let text = state("8", queues, "a:alice:1:8:0", "b:bob:1:8:0", "");
    let held = |policy: &str| {
        let (state, registry) = (crate::state(&text), plimsoll_policies::Registry::new(plimsoll_schedulers::BUILT_IN));
        let bench = plimsoll_court::Bench::new(&state, policy, &registry).expect("a policy");
        let assessment = plimsoll_court::judge(&bench, 20).expect("a verdict");
        assert_eq!(assessment.verdict, plimsoll_court::Verdict::Settled);
        let of = |name: &str| {
            let runs = assessment.last.running.iter().filter(|run| state.workloads[run.workload].name == name);
            runs.map(|run| run.tasks()).sum::<u32>()
        };
        (of("a"), of("b"))
    };
    assert_eq!(held("kai@1934"), (6, 2));
    assert_eq!(held("kai"), (4, 4));
}
