//! The KAI scheduler: shares, the order of queues, reclaim and preemption.
//!
//! Sources: kai-scheduler/KAI-Scheduler (August 2026), `resource_division_test.go`, `reclaimable_test.go` and
//! `actions/{reclaim,integration_tests/reclaim}/*_test.go`. In these tests GPUs are divided; the reclaimable tests state only fair shares
//! and allocations, and the states here are constructed to imply these.

mod allocate;
mod division;
mod reclaim;
mod table;
mod unlimited;

use crate::decide;
use std::fmt::Write as _;

/// A state in short. Queues: `NAME:PARENT:DESERVED:WEIGHT:PRIORITY`; workloads: `NAME:QUEUE:GPUS:TASKS:PRIORITY`, the oldest first.
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

/// The fair shares of queues with these requests.
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

/// `resource_division_test.go`: deserved 2, weight 2, request 6 unless said.
#[test]
fn the_vectors_of_division() {
    let two = [("a:root:2:2:0", 6), ("b:root:2:2:0", 6)];
    assert_eq!(shares("15", &two, ""), [6.0, 6.0]);
    assert_eq!(shares("12", &two, ""), [6.0, 6.0]);
    assert_eq!(shares("11", &two, ""), [6.0, 5.0], "the older queue first");
    assert_eq!(shares("8", &[("a:root:2:1:0", 6), ("b:root:2:3:0", 6)], ""), [3.0, 5.0]);
    assert_eq!(shares("4", &[("a:root:2:2:1", 6), ("b:root:2:2:2", 6)], ""), [2.0, 2.0]);
    let three = [("a:root:2:2:2", 5), ("b:root:2:2:2", 5), ("c:root:1:2:1", 0)];
    assert_eq!(shares("5", &three, ""), [3.0, 2.0, 0.0]);
    assert_eq!(shares("1", &[("a:root:3:0:0", 2)], ""), [2.0], "deserved amounts may exceed the total");
    assert_eq!(shares("7", &[("a:root:3:0:0", 5)], ""), [3.0], "without a weight no queue gets a part of the rest");
    assert_eq!(shares("2", &[("a:root:1.5:0:0", 6)], ""), [1.5]);
    // Derived: the next priority receives the rest after floors first.
    let floors = [("a:root:0:1:2", 8), ("b:root:0:2:2", 8), ("c:root:0:1:1", 8)];
    assert_eq!(shares("8", &floors, ""), [2.0, 5.0, 1.0]);
    // Issue 143.
    assert_eq!(shares("5", &[("a:root:1:1:2", 1), ("b:root:1:2:1", 3), ("c:root:0:1:1", 2)], ""), [1.0, 3.0, 1.0]);
}

/// Cores are divided to the thousandth, GPUs whole: deserved 5 cores each, requests 7, 2 and 2 of 10.
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

/// The design document of time-based fair share: 16 GPUs, equal weights, past usage 0.3 and 0, k = 1: parts 0.7 and 1, 6.588 and 9.412
/// before rounding; in whole GPUs 6 and 9, and the queue with the larger fraction receives the last one.
#[test]
fn past_usage_counts() {
    let queues = state("16", "a:root:0:1:0 b:root:0:1:0", "", "wa:a:1:16:0 wb:b:1:16:0", "[policy]\nk = 1");
    let used = queues.replacen("priority = 0\n", "priority = 0\nusage = 0.3\n", 1);
    let of = |text: &str| ["a", "b"].map(|name| decide("kai", text).share(name, "fair gpu"));
    assert_eq!(of(&used), [7.0, 9.0]);
    assert_eq!(of(&used.replace("usage = 0.3", "usage = { gpu = 4.8 }")), [7.0, 9.0], "the same as an amount");
    assert_eq!(of(&used.replace("k = 1", "k = 0")), [8.0, 8.0], "the past does not count");
    // Story 1: jobs that need the whole cluster. By plain shares the older queue always runs, with its usage the other one.
    let whole = state("16", "a:root:0:1:0 b:root:0:1:0", "", "wa:a:16:1:0 wb:b:16:1:0", "");
    assert_eq!(decide("kai", &whole).launched(), ["wa"]);
    let used = whole.replacen("priority = 0\n", "priority = 0\nusage = 1\n", 1);
    assert_eq!(decide("kai", &used).launched(), ["wb"]);
}

fn evicted(text: &str) -> Vec<String> {
    decide("kai", text).evicted().into_iter().map(str::to_owned).collect()
}

/// `reclaimable_test.go`, "Single department": p1 and p2 under one queue; p1 asks 1, victims of 1 in p2.
#[test]
fn the_vectors_of_one_department() {
    let queues = "default:root:5:1:0 p1:default:3:1:0 p2:default:2:1:0";
    // Deserved 3 and 2, held 2 and 3: the one below takes from the one above.
    assert_eq!(evicted(&state("5", queues, "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", "")), ["r2"]);
    // Allocations are 2 and 2, and the rest in another queue: exactly at its fair share, there is no victim.
    let full = "default:root:4:1:0 p1:default:3:1:0 p2:default:2:1:0 else:root:1:1:0";
    assert!(evicted(&state("5", full, "r1:p1:1:2:0 r2:p2:1:2:0 r3:else:1:1:0", "w:p1:1:1:0", "")).is_empty());
    // Held 2 and 1 of 3: both below.
    assert!(evicted(&state("3", queues, "r1:p1:1:2:0 r2:p2:1:1:0", "w:p1:1:1:0", "")).is_empty());
    // p2 is above its deserved amount, within a fair share of 3: p1 deserves another.
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
    // p1 is at its fair share.
    let queues = "default:root:6:1:0 p1:default:3:0:0 p2:default:2:1:0";
    assert!(evicted(&state("6", queues, "r1:p1:1:3:0 r2:p2:1:3:0", "w:p1:1:1:0", "")).is_empty());
}

/// The same file, non-preemptible workloads: these stay within the deserved amounts of the queue and its parent.
#[test]
fn the_vectors_of_workloads_that_stay() {
    let text = |deserved: &str, parent: &str, fixed: bool| {
        let queues = format!("default:root:{parent}:1:0 p1:default:{deserved}:1:0 p2:default:2:1:0");
        let text = state("5", &queues, "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", "");
        let (before, after) = text.split_once("name = \"p1\"").expect("a queue p1");
        if fixed { format!("{before}name = \"p1\"\npreemptible = false{after}") } else { text }
    };
    assert_eq!(evicted(&text("3", "5", true)), ["r2"], "3 of 3");
    assert!(evicted(&text("2", "5", true)).is_empty(), "3 of 2");
    assert!(evicted(&text("3", "2", true)).is_empty(), "3 of 2 for the parent");
    assert_eq!(evicted(&text("2", "5", false)), ["r2"], "above its deserved amount, below its fair share of 3");
}

/// The same file, "Multiple departments" and "Multiple hierarchy levels": the queues right under the common ancestor are compared.
#[test]
fn the_vectors_of_departments() {
    let queues = "d1:root:3:1:0 p1:d1:3:1:0 d2:root:2:1:0 p2:d2:2:1:0";
    assert_eq!(evicted(&state("5", queues, "r1:p1:1:2:0 r2:p2:1:3:0", "w:p1:1:1:0", "")), ["r2"]);
    assert!(
        evicted(&state("4", queues, "r1:p1:1:2:0 r2:p2:1:2:0", "w:p1:1:1:0", "")).is_empty(),
        "it would go below its share"
    );
    // Both leaves of the left side at their shares would bring it above its own.
    let levels = "lt:root:1:1:0 oq:lt:0:1:0 lm:lt:1:1:0 ll:lm:1:1:0 rt:root:1:1:0 rm:rt:1:1:0 rl:rm:1:1:0";
    assert_eq!(evicted(&state("2", levels, "r:rl:2:1:0", "w:ll:1:1:0", "")), ["r"]);
    // Left top has 1 of 1, and a queue below it is over quota. The right queue has 2 of 1, and 2 of 1 on the left would not be less; so the
    // victim is the queue over quota on the left.
    let queues = levels.replace("root:1:1", "root:1:0");
    let answer = decide("kai", &state("3", &queues, "r:rl:2:1:0 o:oq:1:1:0", "w:ll:1:1:0", ""));
    assert_eq!(answer.evicted(), ["o"]);
}

/// `actions/reclaim/reclaim_test.go` and the integration tests.
#[test]
fn the_vectors_of_the_actions() {
    // "Reclaim jobs according to queue fair share": one of the lower priority in each of the two queues.
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
    // "1 train job running for queue0, 1 pending for queue1", and the last victim that makes the queue fall below its share.
    let answer = decide("kai", &state("2", "q0:root:1:1:0 q1:root:1:1:0", "r:q0:2:1:0", "w:q1:1:1:0", ""));
    assert_eq!((answer.evicted(), answer.launched()), (vec!["r"], vec!["w"]));
    // "used by the demo": the smaller one is the youngest.
    let queues = "q0:root:2:2:0 q1:root:2:2:0";
    assert_eq!(evicted(&state("4", queues, "r0:q0:1:1:0 r1:q1:2:1:0 r2:q1:1:1:0", "w:q0:1:1:0", "")), ["r2"]);
    // "deserved of queue1 is 1": 3 and 1 stay.
    assert!(
        evicted(&state("4", "q0:root:2:2:0 q1:root:1:1:0", "r0:q0:1:1:0 r1:q0:2:1:0 r2:q1:1:1:0", "w:q1:1:1:0", ""))
            .is_empty()
    );
}

/// Issue 2065, case 1: 12 GPUs, 8 deserved each; by a switch (off) the queue of higher priority takes what the other deserves.
#[test]
fn a_switch_lets_queues_of_higher_priority_take() {
    let text = |more: &str| state("12", "a:root:8:1:90 b:root:8:1:80", "b1:b:8:1:0", "a1:a:8:1:0", more);
    assert!(evicted(&text("")).is_empty());
    assert_eq!(evicted(&text("[policy]\nqueue_priority_in_quota_reclaim = true")), ["b1"]);
}

/// Allocation: starved queues first, then priority, then the smaller part of their limit; limits of ancestors apply.
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

/// Preemption inside a queue: the least urgent, of these the youngest; and a victim that finds its place is spared.
#[test]
fn preemption_takes_the_least_urgent() {
    let text = state("4", "a:root:4:1:0", "r1:a:1:1:1 r2:a:1:1:0 r3:a:1:1:0 r4:a:1:1:2", "w:a:1:1:3", "");
    assert_eq!(evicted(&text), ["r3"]);
    let text = state("4", "a:root:4:1:0", "r1:a:3:1:0 r2:a:1:1:0", "w:a:3:1:3", "");
    assert_eq!(evicted(&text), ["r1"], "the smaller one alone does not help, and finds its place again");
    let text = state("4", "a:root:4:1:0", "r1:a:3:1:0 r2:a:1:1:0", "w:a:3:1:0", "");
    assert!(evicted(&text).is_empty(), "equals do not preempt");
}

/// A job loses its tasks beyond one before another job loses its last one.
#[test]
fn elastic_jobs_shrink_first() {
    let text = state("4", "a:root:2:1:0 b:root:2:1:0", "r1:a:1:3:0 r2:a:1:1:0", "w:b:1:2:0", "");
    let answer = decide("kai", &text);
    assert_eq!(answer.evicted, [("r1".to_owned(), 2)], "though r2 is younger");
}

/// Issue 1934: bob gets what he deserves, 2 of 8 GPUs, or his fair share, 4.
#[test]
fn the_end_of_issue_1934() {
    let queues = "critical:root:1000000:1:0 shared:root:0:1:0 alice:shared:2:1:0 bob:shared:2:1:0";
    let text = state("8", queues, "a:alice:1:8:0", "b:bob:1:8:0", "");
    let held = |policy: &str| {
        let (state, registry) = (crate::state(&text), plimsoll_policies::Registry::default());
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
