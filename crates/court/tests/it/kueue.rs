//! Kueue: shares, admission and preemption.
//!
//! Sources: kubernetes-sigs/kueue, `pkg/scheduler/preemption/preemption_fair_test.go`, `pkg/cache/scheduler/fair_sharing_test.go` and
//! `test/integration/singlecluster/scheduler/fairsharing/fair_sharing_test.go` (August 2026). In the source all running workloads were
//! admitted at the same instant, and the first listed workload of a queue is its first candidate. In these tests the first listed
//! workload is the youngest, which has the same effect.

use crate::decide;
use std::fmt::Write as _;

/// Queues a, b and c with a nominal quota of 3 CPUs each, and a queue without a quota.
const BASE: &str = "[capacity]\ncpu = 9\n\
    [[group]]\nname = \"a\"\nnominal = { cpu = 3 }\nwithin = \"lower-priority\"\nreclaim = \"any\"\n\
    [[group]]\nname = \"b\"\nnominal = { cpu = 3 }\nwithin = \"lower-priority\"\nreclaim = \"any\"\n\
    [[group]]\nname = \"c\"\nnominal = { cpu = 3 }\nwithin = \"lower-priority\"\nreclaim = \"any\"\n\
    [[group]]\nname = \"preemptible\"\n";

/// Builds a state from the running workloads and the incoming one, each given as `NAME:QUEUE:CPU:PRIORITY`.
fn state(base: &str, running: &str, incoming: &str) -> String {
    let mut text = base.to_owned();
    let mut add = |kind: &str, item: &str, age: usize| {
        let [name, queue, cpu, priority] = item.split(':').collect::<Vec<_>>()[..] else { panic!("{item}") };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ cpu = {cpu} }}\npriority = {priority}\nage_s = {age}\n"
        );
    };
    for (at, item) in running.split_whitespace().enumerate() {
        add("running", item, 100 + at);
    }
    add("waiting", incoming, 1);
    text
}

/// Returns `count` running workloads of a queue with 1 CPU each, as a list for [`state`].
fn units(queue: &str, count: u32) -> String {
    (1..=count).map(|at| format!("{queue}{at}:{queue}:1:0 ")).collect()
}

fn evicted(base: &str, running: &str, incoming: &str) -> Vec<String> {
    ["kueue", "kueue@guarded"]
        .map(|policy| {
            let answer = decide(policy, &state(base, running, incoming));
            answer.evicted().into_iter().map(str::to_owned).collect::<Vec<_>>()
        })
        .into_iter()
        .reduce(|one, other| {
            assert_eq!(one, other, "the guard has other victims: {running} {incoming}");
            one
        })
        .unwrap_or_default()
}

fn count_of(queue: &str, evicted: &[String]) -> usize {
    evicted.iter().filter(|name| name.starts_with(queue)).count()
}

#[test]
fn the_vectors_of_preemption() {
    let all = |a, b, c| [units("a", a), units("b", b), units("c", c)].concat();
    // The incoming workload is within its nominal quota: the queue that borrows the most loses a workload.
    let gone = evicted(BASE, &all(3, 5, 1), "w:c:1:0");
    assert_eq!((gone.len(), count_of("b", &gone)), (1, 1));
    // The incoming workload borrows: the queue that borrows the most loses a workload.
    let gone = evicted(BASE, &all(3, 5, 1), "w:a:1:0");
    assert_eq!((gone.len(), count_of("b", &gone)), (1, 1));
    assert!(evicted(BASE, &all(3, 3, 3), "w:c:1:0").is_empty());
    // The queue loses its own workloads of lower priority instead of borrowing more.
    let low = "l1:a:1:-1 l2:a:1:-1 a3:a:1:0 a4:a:1:0 ";
    let mut gone = evicted(BASE, &(low.to_owned() + &units("b", 5)), "w:a:2:0");
    gone.sort();
    assert_eq!(gone, ["l1", "l2"]);
    assert_eq!(evicted(BASE, "b1:b:9:0", "w:a:2:0"), ["b1"]);
    assert!(evicted(BASE, "b1:b:2:0 b2:b:2:0 b3:b:3:0", "w:a:6:0").is_empty());
    // Rule S2-a is tried before rule S2-b.
    assert_eq!(evicted(BASE, "b1:b:2:0 b2:b:1:0 b3:b:2:0 c1:c:1:0", "w:a:3.5:0"), ["b2"]);
    assert!(evicted(BASE, "a1:a:3.5:0 b1:b:2.5:0 c1:c:2.5:0", "w:b:2:0").is_empty(), "b would exceed the share of a");
    let three = "p1:preemptible:1:-3 p2:preemptible:1:-3 p3:preemptible:1:-3";
    assert!(evicted(BASE, &(all(3, 3, 0) + three), "w:a:2:0").is_empty());
    let only = BASE.replace(
        "[[group]]\nname = \"a\"",
        "[policy]\npreemption_strategies = [\"less-than-or-equal-to-final-share\"]\n[[group]]\nname = \"a\"",
    );
    let running = "a1:a:3:0 b1:b:5:-1 b2:b:1:1";
    assert_eq!(evicted(&only, running, "w:a:1:0"), ["b2"]);
}

/// The tree, with nominal quotas in parentheses: ROOT (5) contains LEFT (5, weight 2), c (1) and RIGHT (5). LEFT contains a (1, weight 2)
/// and b (1). RIGHT contains d (1) and e (1, weight 0.99).
#[test]
fn the_vector_of_hierarchical_preemption() {
    let mut base = "[capacity]\ncpu = 20\n".to_owned();
    let rules = "within = \"lower-priority\"\nreclaim = \"any\"";
    for (name, parent, nominal, more) in [
        ("ROOT", "root", 5, ""),
        ("LEFT", "ROOT", 5, "weight = 2"),
        ("RIGHT", "ROOT", 5, ""),
        ("a", "LEFT", 1, "weight = 2"),
        ("b", "LEFT", 1, ""),
        ("c", "ROOT", 1, ""),
        ("d", "RIGHT", 1, ""),
        ("e", "RIGHT", 1, "weight = 0.99"),
    ] {
        let _ = write!(
            base,
            "[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\nnominal = {{ cpu = {nominal} }}\n{more}\n{rules}\n"
        );
    }
    let running: String = ["b", "c", "d", "e"]
        .iter()
        .flat_map(|queue| (1..=5).map(move |at| format!("{queue}{at}:{queue}:1:{at} ")))
        .collect();
    let mut gone = evicted(&base, &running, "w:a:5:5");
    gone.sort();
    assert_eq!(gone, ["b1", "b2", "c1", "c2", "e1"]);
}

fn share(usage: (u32, u32), more: &str) -> f64 {
    let text = format!(
        "[capacity]\ncpu = 10\ngpu = 10\n[[group]]\nname = \"own\"\nnominal = {{ cpu = 2, gpu = 5 }}\n\
         [[group]]\nname = \"lender\"\nnominal = {{ cpu = 8, gpu = 5 }}\n\
         [[running]]\nname = \"r\"\ngroup = \"own\"\ndemand = {{ cpu = {}, gpu = {} }}\n\
         [[waiting]]\nname = \"w\"\ngroup = \"lender\"\ndemand = {{ cpu = 1 }}\n{more}",
        usage.0, usage.1
    );
    decide("kueue", &text).share("own", "share")
}

#[test]
fn the_vectors_of_shares() {
    assert_eq!(share((3, 7), ""), 200.0);
    assert_eq!(share((3, 3), ""), 100.0);
    assert_eq!(share((5, 6), ""), 300.0, "1 CPU and 2 GPUs, and 4 of each for a workload");
    let text = |policy: &str| {
        let text = "[capacity]\ngpu = 1500\n[[group]]\nname = \"own\"\nnominal = { gpu = 500 }\n\
            [[group]]\nname = \"lender\"\nnominal = { gpu = 1000 }\nreclaim = \"any\"\n\
            [[running]]\nname = \"r1\"\ngroup = \"own\"\ndemand = { gpu = 1 }\ntasks = 501\n\
            [[running]]\nname = \"r2\"\ngroup = \"lender\"\ndemand = { gpu = 999 }\n\
            [[waiting]]\nname = \"w\"\ngroup = \"lender\"\ndemand = { gpu = 1 }\n";
        decide(policy, text)
    };
    let exact = text("kueue");
    assert!((exact.share("own", "share") - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(exact.evicted, [("r1".to_owned(), 1)]);
    assert!(text("kueue@6577").evicted.is_empty(), "0.67 thousandths are rounded to 0");
}

/// Issue 7101: queue p1 runs 4 workloads with 2 of the 9 CPUs each. A workload of queue p2 with 5 CPUs preempts two of them; one with 6
/// CPUs preempts none.
#[test]
fn the_vectors_of_issue_7101() {
    let base = "[capacity]\ncpu = 9\n[[group]]\nname = \"p1\"\nreclaim = \"any\"\n[[group]]\nname = \"p2\"\nreclaim = \"any\"\n";
    let running: String = (1..=4).map(|at| format!("r{at}:p1:2:0 ")).collect();
    let answer = decide("kueue", &state(base, &running, "w:p2:5:0"));
    assert_eq!(answer.evicted.len(), 2);
    let rules: Vec<&str> =
        answer.round.evicted.iter().filter_map(|one| one.cause.as_ref()).map(|(_, rule)| *rule).collect();
    assert!(rules[0].contains("S2-a") && rules[1].contains("S2-b"), "{rules:?}");
    let after = "r1:p1:2:0 r2:p1:2:0 w:p2:5:0";
    let shares = decide("kueue", &state(base, after, "v:p1:2:0"));
    assert!((shares.share("p1", "share") - 4000.0 / 9.0).abs() < 1e-9);
    assert!((shares.share("p2", "share") - 5000.0 / 9.0).abs() < 1e-9);
    assert!(decide("kueue", &state(base, &running, "w:p2:6:0")).evicted.is_empty());
}

/// Issue 14543: the search takes x of the preemptor's own queue and then v of another queue, and at the end restores x. Without the
/// preemption of x, v is not a valid victim. The guard rejects this result.
#[test]
fn the_first_round_of_issue_14543() {
    let base = "[capacity]\ncpu = 6\n[[group]]\nname = \"a\"\nwithin = \"lower-priority\"\nreclaim = \"any\"\n[[group]]\nname = \"b\"\nreclaim = \"any\"\n";
    let text = state(base, "x:a:2:0 v:b:4:0", "w:a:3:1");
    assert_eq!(decide("kueue", &text).evicted(), ["v"]);
    let guarded = decide("kueue@guarded", &text);
    assert!(guarded.evicted.is_empty() && guarded.launched.is_empty());
}

/// The head of a queue that stays within its quota is admitted first, then the head of the queue with the lowest share.
#[test]
fn admission_is_a_tournament() {
    let two = |more: &str| {
        format!(
            "[capacity]\ncpu = 8\n[[group]]\nname = \"a\"\nnominal = {{ cpu = 2 }}\n[[group]]\nname = \"b\"\nnominal = {{ cpu = 2 }}\n\
             [[running]]\nname = \"r\"\ngroup = \"a\"\ndemand = {{ cpu = 5 }}\n{more}"
        )
    };
    let wait = |name: &str, group: &str, cpu: u32, priority: u32| {
        format!(
            "[[waiting]]\nname = \"{name}\"\ngroup = \"{group}\"\ndemand = {{ cpu = {cpu} }}\npriority = {priority}\n"
        )
    };
    let answer = decide("kueue", &two(&(wait("w1", "a", 1, 9) + &wait("w2", "b", 2, 0))));
    assert_eq!(answer.launched(), ["w2", "w1"]);
    let answer = decide("kueue", &two(&(wait("w1", "a", 2, 0) + &wait("w2", "b", 3, 0))));
    assert_eq!(answer.launched(), ["w2"], "b would be 1 CPU above its quota, a 5 CPUs");
}

/// A cycle starts the workload that it selected, not the stopped workload of the same user, which now precedes the selected one.
#[test]
fn a_victim_does_not_take_its_user_s_turn() {
    let base = "[capacity]\ncpu = 10\n[[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\nnominal = { cpu = 4 }\nreclaim = \"any\"\n";
    let more = |kind: &str, name: &str, group: &str, cpu: u32, user: &str| {
        format!("[[{kind}]]\nname = \"{name}\"\ngroup = \"{group}\"\n{user}demand = {{ cpu = {cpu} }}\n")
    };
    let text = [
        base.to_owned(),
        more("running", "x", "a", 3, ""),
        more("running", "v", "a", 6, "user = \"u\"\n"),
        more("waiting", "w1", "a", 1, "user = \"u\"\n"),
        more("waiting", "w", "b", 4, ""),
    ]
    .concat();
    let answer = decide("kueue", &text);
    assert_eq!(answer.evicted(), ["v"]);
    assert!(answer.launched().iter().all(|name| *name != "v"), "{:?}", answer.launched);
    let (state, registry) = (crate::state(&text), plimsoll_policies::Registry::new(plimsoll_schedulers::BUILT_IN));
    let bench = plimsoll_court::Bench::new(&state, "kueue", &registry).expect("a policy");
    // Later workloads of the victim's user wait behind the victim.
    assert_ne!(plimsoll_court::judge(&bench, 50).expect("rounds").verdict.name(), "livelock");
}
