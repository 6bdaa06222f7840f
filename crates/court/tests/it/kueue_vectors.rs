//! Kueue: the vectors of its own tests of fair sharing, by file and case.
//!
//! Source: kubernetes-sigs/kueue (August 2026). In tests of preemption all are admitted at one instant, and of a queue the first listed is
//! its first candidate: here it is the youngest. Of workloads that wait the first listed is the oldest. A flavour of a resource, where there
//! are two, is a resource of its own (`cpu/gpu`): that is the same as long as no share adds flavours up.

use crate::decide;
use std::fmt::Write as _;

/// Amounts of cpu, and of gpu if there are any: `3` or `3/2`.
fn amounts(text: &str) -> String {
    match text.split_once('/') {
        Some((cpu, gpu)) => format!("{{ cpu = {cpu}, gpu = {gpu} }}"),
        None => format!("{{ cpu = {text} }}"),
    }
}

/// A group: `NAME[<PARENT] [q=QUOTA] [limit=..] [lend=..] [w=WEIGHT]`, and any of `any`, `reclaim-lower` (reclaim), `lower` (within), `strict`.
fn group(text: &str) -> String {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let (name, parent) = name.split_once('<').unwrap_or((name, "root"));
    let mut group = format!("[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\n");
    for word in words {
        let line = match word.split_once('=').unwrap_or((word, "")) {
            ("q", quota) => format!("nominal = {}", amounts(quota)),
            ("limit", limit) => format!("limit = {}", amounts(limit)),
            ("lend", limit) => format!("lend_limit = {}", amounts(limit)),
            ("w", weight) => format!("weight = {weight}"),
            ("any", _) => "reclaim = \"any\"".to_owned(),
            ("reclaim-lower", _) => "reclaim = \"lower-priority\"".to_owned(),
            ("lower", _) => "within = \"lower-priority\"".to_owned(),
            ("strict", _) => "order = \"strict-fifo\"".to_owned(),
            _ => panic!("{text}: {word}"),
        };
        let _ = writeln!(group, "{line}");
    }
    group
}

/// A workload, or `COUNT` of them: `NAME[*COUNT]:QUEUE:AMOUNTS[:PRIORITY]`.
fn workloads(kind: &str, text: &str, mut age: impl FnMut() -> usize) -> String {
    let mut out = String::new();
    for item in text.split_whitespace() {
        let parts: Vec<&str> = item.split(':').collect();
        let (name, count) = parts[0].split_once('*').unwrap_or((parts[0], "0"));
        let count: usize = count.parse().unwrap_or_else(|_| panic!("{item}"));
        for at in 1..=count.max(1) {
            let name = if count == 0 { name.to_owned() } else { format!("{name}{at}") };
            let (demand, priority) = (amounts(parts[2]), parts.get(3).unwrap_or(&"0"));
            let _ = writeln!(
                out,
                "[[{kind}]]\nname = \"{name}\"\ngroup = \"{}\"\ndemand = {demand}\npriority = {priority}\nage_s = {}",
                parts[1],
                age()
            );
        }
    }
    out
}

/// A state: the capacity, groups with `;` between them, those that run and those that wait.
fn text(capacity: &str, groups: &str, running: &str, waiting: &str) -> String {
    let (mut young, mut old) = (100, 90);
    let groups: String = groups.split(';').filter(|line| !line.trim().is_empty()).map(group).collect();
    let running = workloads("running", running, || {
        young += 1;
        young
    });
    let waiting = workloads("waiting", waiting, || {
        old -= 1;
        old
    });
    let capacity = amounts(capacity);
    let capacity = capacity.trim_matches(['{', '}']).replace(',', "\n");
    format!("[capacity]\n{capacity}\n{groups}{running}{waiting}")
}

fn sorted(names: Vec<&str>) -> String {
    let mut names = names;
    names.sort_unstable();
    names.join(" ")
}

/// Case, capacity, groups, those that run, those that wait; those that are stopped, and those that start.
type Vector<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

/// Checks vectors under `kueue`, and returns the cases in which the guard stops others.
fn check<'a>(more: &str, vectors: &[Vector<'a>]) -> Vec<&'a str> {
    let (mut wrong, mut guarded) = (Vec::new(), Vec::new());
    for (case, capacity, groups, running, waiting, evicted, launched) in vectors {
        let text = more.to_owned() + &text(capacity, groups, running, waiting);
        let answer = decide("kueue", &text);
        let came = (sorted(answer.evicted()), sorted(answer.launched()));
        if (came.0.as_str(), came.1.as_str()) != (*evicted, *launched) {
            wrong.push(format!("{case}: {came:?}"));
        }
        if sorted(decide("kueue@guarded", &text).evicted()) != *evicted {
            guarded.push(*case);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    guarded
}

const FINAL: &str = "[policy]\npreemption_strategies = [\"less-than-or-equal-to-final-share\"]\n";
const INITIAL: &str = "[policy]\npreemption_strategies = [\"less-than-initial-share\"]\n";
const BASE: &str = "a q=3 lower any; b q=3 lower any; c q=3 lower any; preemptible";

/// `pkg/scheduler/preemption/preemption_fair_test.go`, `TestFairPreemptions`, flat cohorts.
#[test]
fn fair_preemptions() {
    let weighted = |w: [&str; 2]| format!("a q=3 w={} lower any; b q=3 w={} lower any; c q=3 lower any", w[0], w[1]);
    let (double, zero) = (weighted(["2", "1"]), weighted(["1", "0"]));
    let alone = "a q=1 limit=0 lend=0 lower; other";
    let guarded = check(
        "",
        &[
            (
                "can reclaim from queue using less, if taking the latest workload from user using the most isn't enough",
                "9",
                BASE,
                "a1:a:3 a2:a:1 b1:b:2 b2:b:3",
                "w:c:3",
                "a1",
                "",
            ),
            (
                "preempt one from each CQ borrowing",
                "9",
                BASE,
                "a1:a:0.5 a2:a:0.5 a3:a:3 b1:b:0.5 b2:b:0.5 b3:b:3",
                "w:c:2",
                "a1 b1",
                "",
            ),
            ("can't preempt when it would switch the imbalance", "9", BASE, "a*3:a:1 b*5:b:1", "w:a:2", "", ""),
            (
                "can preempt a combination of same CQ and highest user",
                "9",
                BASE,
                "a1:a:1:-1 a2:a:1 a3:a:1 b*6:b:1",
                "w:a:2",
                "a1 b1",
                "",
            ),
            ("can't preempt huge workload if the incoming is also huge", "9", BASE, "a1:a:2 b1:b:7", "w:a:5", "", ""),
            (
                "preempt from target and others even if over nominal",
                "9",
                BASE,
                "a1:a:2:-1 a2:a:1:-1 b1:b:3 b2:b:3",
                "w:a:4",
                "a1 b1",
                "",
            ),
            (
                "preempt from different cluster queues if the end result has a smaller max share",
                "9",
                BASE,
                "b1:b:2 b2:b:2.5 c1:c:2 c2:c:2.5",
                "w:a:3.5",
                "b1 c1",
                "",
            ),
            (
                "cannot preempt if it would make the candidate CQ go under nominal after preempting one element",
                "9",
                BASE,
                "b1:b:3 b2:b:3 c1:c:3",
                "w:a:4",
                "",
                "",
            ),
            ("CQ with higher weight can preempt more", "9", &double, "a*3:a:1 b*6:b:1", "w:a:2", "b1 b2", ""),
            ("can preempt anything borrowing from CQ with 0 weight", "9", &zero, "a*3:a:1 b*6:b:1", "w:a:3", "b1 b2 b3", ""),
            (
                "can't preempt nominal from CQ with 0 weight",
                "6",
                "a q=3 lower any; b q=3 w=0 lower any",
                "a*3:a:1 b*3:b:1",
                "w:a:1",
                "",
                "",
            ),
            ("can preempt within cluster queue when no cohort", "1", alone, "a1:a:1", "w:a:1:1000", "a1", ""),
            ("cq with zero weight can reclaim nominal quota", "1", "a q=1 w=0 any; b", "b1:b:1", "w:a:1", "b1", ""),
            (
                "nominal first: workload fitting within nominal can preempt despite high aggregate DRS",
                "3/6",
                "a q=3/0 any; b q=0/6",
                "p1:a:1 p2:a:1 c*5:a:0/1 b1:b:1",
                "w:a:1",
                "b1",
                "",
            ),
            (
                "zero weight borrowing preemptor cannot preempt from a borrowing CQ with a non-zero weight",
                "3",
                "ROOT limit=0 lend=0; a<ROOT q=1 w=0 any; b<ROOT q=1",
                "a1:a:1 b*2:b:1",
                "w:a:1",
                "",
                "",
            ),
            (
                "TestFairPreemptionSkipsUnsatisfiableTournament, weight 1",
                "3",
                "ROOT limit=0 lend=0; a<ROOT q=1 any; b<ROOT q=1",
                "a1:a:1 b*2:b:1",
                "w:a:1",
                "",
                "",
            ),
            (
                "zero weight borrowing preemptor can preempt from a borrowing CQ which also has zero weight",
                "4",
                "a q=1 w=0 any; b w=0",
                "b*3:b:1",
                "w:a:2",
                "b1",
                "",
            ),
            (
                "non-zero weight borrowing preemptor preempts from a borrowing CQ",
                "4",
                "a q=1 any; b",
                "b*3:b:1",
                "w:a:2",
                "b1",
                "",
            ),
        ],
    );
    let low_and_high = "a1:a:3 low:b:5 high:b:1:1";
    check(INITIAL, &[("preempt lower priority first, even if big", "9", BASE, low_and_high, "w:a:1", "low", "")]);
}

/// `pkg/scheduler/preemption/preemption_fair_test.go`, `TestFairPreemptions`, trees of cohorts.
#[test]
fn fair_preemptions_in_trees() {
    let deep = "A w=1.01; AA<A; AAA<AA; a<AAA any; B w=0.99; BB<B; BBB<BB; b<BBB; C; CC<C; CCC<CC; CCCC<CCC q=1; c<CCCC";
    let guarded = check(
        "",
        &[
            (
                "can't preempt nominal from Cohort with 0 weight",
                "1",
                "left any; R q=1 w=0; right<R w=0 any",
                "r1:right:1",
                "w:left:1",
                "",
                "",
            ),
            (
                "borrowing cq in non-borrowing cohort is protected",
                "6",
                "a q=5 w=10 lower any; RIGHT q=1 w=0.1; b<RIGHT w=0.1",
                "a*3:a:1:-1 b1:b:1:-1",
                "w:a:5",
                "a1 a2 a3",
                "",
            ),
            (
                "forced to preempt within clusterqueue because borrowing workload too important",
                "8",
                "a q=5 w=10 lower reclaim-lower; RIGHT q=3 w=0.1; b<RIGHT w=0.1",
                "a*3:a:1:-1 b1:b:4:100",
                "w:a:4",
                "a1 a2 a3",
                "",
            ),
            ("deep preemption", "1", deep, "b1:b:1", "w:a:1", "b1", ""),
            (
                "cohort with zero weight can reclaim nominal quota",
                "1",
                "A q=1 w=0; a<A w=0 any; b",
                "b1:b:1",
                "w:a:1",
                "b1",
                "",
            ),
            (
                "candidates skipped by the first strategy are still available to the second strategy",
                // More is admitted than the cohort has: it is one of a larger cluster that it may not borrow from.
                "8",
                "ROOT limit=0 lend=0; A<ROOT q=1 w=0; p<A q=2 any; y<A q=2; x<ROOT q=1",
                "p1:p:2 y1:y:2 y2:y:2 x*2:x:1",
                "w:p:1",
                "x1 y1",
                "",
            ),
        ],
    );
}
