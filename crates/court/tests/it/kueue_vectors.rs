//! Kueue: the vectors of its own tests of fair sharing, by file and case.
//!
//! Source: kubernetes-sigs/kueue (August 2026). In the source's tests of preemption all running workloads were admitted at the same
//! instant, and the first listed workload of a queue is its first candidate. In this file the first listed running workload is the
//! youngest, which has the same effect. The first listed waiting workload is the oldest.
//!
//! If the source has two flavours of a resource, this file has two resources (`cpu/gpu`). This is equivalent unless a share adds up
//! flavours. Some tests of the source admit more than the cohort has. In this file such a cohort is a part of a larger cluster, from
//! which it may not borrow (`ROOT limit=0 lend=0`).

use crate::{decide, state};
use plimsoll_court::{Bench, Situation};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns amounts in TOML, from `3` (cpu), `3/2` (cpu and gpu) or `3/2/1` (cpu, gpu and fpga).
fn amounts(text: &str) -> String {
    let amounts = ["cpu", "gpu", "fpga"].iter().zip(text.split('/')).map(|(name, amount)| format!("{name} = {amount}"));
    format!("{{ {} }}", amounts.collect::<Vec<_>>().join(", "))
}

/// Returns a group in TOML, from `NAME[<PARENT] [q=QUOTA] [limit=..] [lend=..] [w=WEIGHT]` and any of the words `any` and `reclaim-lower`
/// (values of `reclaim`), `lower` (a value of `within`) and `strict` (a value of `order`).
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

/// Returns workloads in TOML, from `NAME[*COUNT]:QUEUE:AMOUNTS[:PRIORITY[:ROUNDS]]`. `COUNT` is the number of such workloads, and
/// `ROUNDS` the number of rounds after which they end.
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
            if let Some(rounds) = parts.get(4) {
                let _ = writeln!(out, "ends_after = {rounds}");
            }
        }
    }
    out
}

/// Builds a state from the capacity, groups separated by `;`, running and waiting workloads.
fn text(capacity: &str, groups: &str, running: &str, waiting: &str) -> String {
    let (mut young, mut old) = (1000, 900);
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

/// Parses vectors: a line `# CASE`, then a line with the capacity, groups, running workloads, waiting workloads and two expectations.
fn records(vectors: &str) -> impl Iterator<Item = (&str, [&str; 6])> {
    vectors.split("\n# ").filter_map(|record| record.trim().split_once('\n')).map(|(case, fields)| {
        let fields: Vec<&str> = fields.split('|').map(str::trim).collect();
        let mut fields: [&str; 6] = fields.try_into().unwrap_or_else(|_| panic!("{case}"));
        fields[1] = if fields[1] == "BASE" { BASE } else { fields[1] };
        (case, fields)
    })
}

/// Checks vectors under `kueue`. Their two expectations are the victims and the launches. Returns the cases with other victims under
/// `kueue@guarded`. `more` is TOML that precedes the state.
fn check<'a>(more: &str, vectors: &'a str) -> Vec<&'a str> {
    let (mut wrong, mut guarded) = (Vec::new(), Vec::new());
    for (case, [capacity, groups, running, waiting, evicted, launched]) in records(vectors) {
        let text = more.to_owned() + &text(capacity, groups, running, waiting);
        let answer = decide("kueue", &text);
        let came = (sorted(answer.evicted()), sorted(answer.launched()));
        if (came.0.as_str(), came.1.as_str()) != (evicted, launched) {
            wrong.push(format!("{case}: {came:?}"));
        }
        if sorted(decide("kueue@guarded", &text).evicted()) != evicted {
            guarded.push(case);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    guarded
}

/// Cases with other victims under `kueue@guarded`: it does not preempt claims within nominal quotas, and other preemptions must raise the
/// lowest shares.
const UNDER_THE_GUARD: &[&str] = &[
    "can reclaim from queue using less, if taking the latest workload from user using the most isn't enough",
    "preempt from target and others even if over nominal",
    "preempt from different cluster queues if the end result has a smaller max share",
    "nominal first: workload fitting within nominal can preempt despite high aggregate DRS",
    "forced to preempt within clusterqueue because borrowing workload too important",
    "deep preemption",
    "candidates skipped by the first strategy are still available to the second strategy",
    "Derived: two heads have the same target, and the second searches again (the source's case precedes its PR 13863)",
    "hierarchical nominal-first prefers non-borrowing leaf CQ",
    "preempt lower priority first, even if big",
];

const FINAL: &str = "[policy]\npreemption_strategies = [\"less-than-or-equal-to-final-share\"]\n";
const INITIAL: &str = "[policy]\npreemption_strategies = [\"less-than-initial-share\"]\n";
const BASE: &str = "a q=3 lower any; b q=3 lower any; c q=3 lower any; preemptible";

/// `pkg/scheduler/preemption/preemption_fair_test.go`, `TestFairPreemptions`: flat cohorts.
const FLAT: &str = "
# can reclaim from queue using less, if taking the latest workload from user using the most isn't enough
9 | BASE | a1:a:3 a2:a:1 b1:b:2 b2:b:3 | w:c:3 | a1 |
# preempt one from each CQ borrowing
9 | BASE | a1:a:0.5 a2:a:0.5 a3:a:3 b1:b:0.5 b2:b:0.5 b3:b:3 | w:c:2 | a1 b1 |
# can't preempt when it would switch the imbalance
9 | BASE | a*3:a:1 b*5:b:1 | w:a:2 |  |
# can preempt a combination of same CQ and highest user
9 | BASE | a1:a:1:-1 a2:a:1 a3:a:1 b*6:b:1 | w:a:2 | a1 b1 |
# can't preempt huge workload if the incoming is also huge
9 | BASE | a1:a:2 b1:b:7 | w:a:5 |  |
# preempt from target and others even if over nominal
9 | BASE | a1:a:2:-1 a2:a:1:-1 b1:b:3 b2:b:3 | w:a:4 | a1 b1 |
# preempt from different cluster queues if the end result has a smaller max share
9 | BASE | b1:b:2 b2:b:2.5 c1:c:2 c2:c:2.5 | w:a:3.5 | b1 c1 |
# cannot preempt if it would make the candidate CQ go under nominal after preempting one element
9 | BASE | b1:b:3 b2:b:3 c1:c:3 | w:a:4 |  |
# CQ with higher weight can preempt more
9 | a q=3 w=2 lower any; b q=3 lower any; c q=3 lower any | a*3:a:1 b*6:b:1 | w:a:2 | b1 b2 |
# can preempt anything borrowing from CQ with 0 weight
9 | a q=3 lower any; b q=3 w=0 lower any; c q=3 lower any | a*3:a:1 b*6:b:1 | w:a:3 | b1 b2 b3 |
# can't preempt nominal from CQ with 0 weight
6 | a q=3 lower any; b q=3 w=0 lower any | a*3:a:1 b*3:b:1 | w:a:1 |  |
# can preempt within cluster queue when no cohort
1 | a q=1 limit=0 lend=0 lower | a1:a:1 | w:a:1:1000 | a1 |
# cq with zero weight can reclaim nominal quota
1 | a q=1 w=0 any; b | b1:b:1 | w:a:1 | b1 |
# nominal first: workload fitting within nominal can preempt despite high aggregate DRS
3/6 | a q=3/0 any; b q=0/6 | p1:a:1 p2:a:1 c*5:a:0/1 b1:b:1 | w:a:1 | b1 |
# zero weight borrowing preemptor cannot preempt from a borrowing CQ with a non-zero weight
3 | ROOT limit=0 lend=0; a<ROOT q=1 w=0 any; b<ROOT q=1 | a1:a:1 b*2:b:1 | w:a:1 |  |
# TestFairPreemptionSkipsUnsatisfiableTournament, weight 1
3 | ROOT limit=0 lend=0; a<ROOT q=1 any; b<ROOT q=1 | a1:a:1 b*2:b:1 | w:a:1 |  |
# zero weight borrowing preemptor can preempt from a borrowing CQ which also has zero weight
4 | a q=1 w=0 any; b w=0 | b*3:b:1 | w:a:2 | b1 |
# non-zero weight borrowing preemptor preempts from a borrowing CQ
4 | a q=1 any; b | b*3:b:1 | w:a:2 | b1 |
";

/// The same test with trees of cohorts.
const TREES: &str = "
# can't preempt nominal from Cohort with 0 weight
1 | left any; R q=1 w=0; right<R w=0 any | r1:right:1 | w:left:1 |  |
# borrowing cq in non-borrowing cohort is protected
6 | a q=5 w=10 lower any; RIGHT q=1 w=0.1; b<RIGHT w=0.1 | a*3:a:1:-1 b1:b:1:-1 | w:a:5 | a1 a2 a3 |
# forced to preempt within clusterqueue because borrowing workload too important
8 | a q=5 w=10 lower reclaim-lower; RIGHT q=3 w=0.1; b<RIGHT w=0.1 | a*3:a:1:-1 b1:b:4:100 | w:a:4 | a1 a2 a3 |
# deep preemption
1 | A w=1.01; AA<A; AAA<AA; a<AAA any; B w=0.99; BB<B; BBB<BB; b<BBB; C; CC<C; CCC<CC; CCCC<CCC q=1; c<CCCC | b1:b:1 | w:a:1 | b1 |
# cohort with zero weight can reclaim nominal quota
1 | A q=1 w=0; a<A w=0 any; b | b1:b:1 | w:a:1 | b1 |
# candidates skipped by the first strategy are still available to the second strategy
8 | ROOT limit=0 lend=0; A<ROOT q=1 w=0; p<A q=2 any; y<A q=2; x<ROOT q=1 | p1:p:2 y1:y:2 y2:y:2 x*2:x:1 | w:p:1 | x1 y1 |
";

/// `pkg/scheduler/preemption/preemption_plan_test.go`, `TestFairSharingPreemptionPlan`. The source checks plans; these vectors check the
/// decisions.
const PLANS: &str = "
# F4, F10, F12: a preemptor within its nominal quota reclaims every candidate
3 | a q=3 lower any; preemptible lower any | p*2:preemptible:1 | w:a:3 | p1 p2 |
# F6: a borrowing preemptor may take one victim from the queue with the highest share, which is not enough
9 | BASE | b*5:b:1 c*4:c:1 | w:a:4 | |
# F7: rule S2-b permits one victim, which is not enough
6 | a q=3 lower any; b q=3 lower any | b1:b:3 b2:b:3 | w:a:4 | |
# F8: a preemptor of weight 0 that borrows
6 | a q=3 w=0 lower any; b q=3 lower any | b*4:b:1 | w:a:4 | |
# F9 without the switch that reconsiders candidates: only victims of its own queue
6 | a q=3 lower any; b lower any; c q=3 lower any | a*3:a:1:-1 b*2:b:1 | w:a:3:5 | a1 a2 |
# Derived: whether the preemptor is within its nominal quota is determined once, before its own queue loses workloads
6/6 | a q=3/0 lower any; b q=0/6; c q=3 | low:a:2:-1 g:a:0/5 b:b:4 | w:a:3 | |
# F11: the lowest priority first, then the workload that was admitted last
3 | a q=3 lower any; b lower any | new:b:1 old:b:1 low:b:1:-5 | w:a:2:5 | low new |
";

/// `pkg/scheduler/preemption/fairsharing/ordering_test.go`, `TestMakeClusterQueueOrdering`: the first victims.
const ORDERING: &str = "
# no cohort: preemptor CQ yielded for in-CQ preemption
4 | preemptor q=4 limit=0 lend=0 lower | w1:preemptor:1 | w:preemptor:4:1 | w1 |
# non-borrowing CQ is pruned even with candidates
9 | preemptor q=4 any; target q=5; third any | t1:target:2 x:third:7 | w:preemptor:4 | x |
# higher DRS CQ returned before lower DRS CQ
8 | preemptor q=4 any; high q=2; low q=2 | h1:high:5 l1:low:3 | w:preemptor:4 | h1 |
# Derived: the first victim lowers the share of its queue, and the next victim is from the other queue
8 | preemptor q=4 any; high q=2; low q=2 | h1:high:3 h2:high:2 l1:low:3 | w:preemptor:4 | h1 l1 |
# hierarchical cohorts: higher-DRS subtree visited first
8 | preemptor q=4 any; left; lcq<left q=2; right; rcq<right q=2 | lc1:lcq:5 rc1:rcq:3 | w:preemptor:4 | lc1 |
";

/// `pkg/scheduler/scheduler_fs_test.go`, `TestScheduleForFairSharing`.
const SCHEDULE: &str = "
# schedule workload with lowest share first
110 | a q=50 limit=50 strict; b q=50 limit=10 lower any strict; s q=10 limit=0 | n:a:50 o:b:55 | old:b:1 new:a:5 | | new
# nominal-first ordering admits workload fitting within nominal despite higher CQ DRS
60/100 | a q=50/50 limit=0/50; b q=10/50 limit=50/0 | heavy:a:0/80 light:b:5 | borrow:b:15 nom:a:45 | | nom
# hierarchical nominal-first prefers non-borrowing subtree
15 | A q=10; a<A; B; b<B q=5; c<B | c0:c:10 | wb:b:5 wa:a:5 | | wa
# hierarchical nominal-first with deeper nesting
15 | A; SUB<A q=10; a<SUB; B; b<B q=5; c<B | c0:c:10 | wb:b:5 wa:a:5 | | wa
# hierarchical nominal-first with mixed CQ and cohort quotas
36 | A q=10; a1<A q=5; a2<A q=3; B q=10; b<B q=5; c<B q=3 | ra:a2:6 rc:c:20 | wb:b:4 wa:a1:7 | | wa
# hierarchical nominal-first per-flavor ignores cross-flavor borrowing
15/10 | A q=10/0; a<A; B q=0/10; b<B q=5/0 | s:a:0/5 o:b:8 | wb:b:4 wa:a:4 | | wa
# hierarchical fair sharing schedule workload which wins tournament
200 | B; d<B; e<B; C; f<C; g<C | d0:d:10 e0:e:20 g0:g:100 | f1:f:1 g1:g:1 e1:e:61 d1:d:70 | | d1
# fair sharing schedule workload with lowest drf after admission
100 | b; c | b0:b:10 | c1:c:75 b1:b:50 | | b1
# two queues with weight 0 schedules workload which borrows less
8 | b w=0 any; c w=0 any | b0:b:4 | b1:b:4:9001 c1:c:4:0 | | c1
# two queues with high weight schedules workload which borrows less
8 | b w=123456789 any; c w=123456789 any | b0:b:4 | b1:b:4:9001 c1:c:4:0 | | c1
# fair sharing schedule singleton cqs and cq without cohort
30 | A q=10 limit=0 lend=0; a<A; B limit=0 lend=0; b<B q=10; c q=10 limit=0 lend=0 | | a1:a:10 b1:b:10 c1:c:10 | | a1 b1 c1
# fair sharing schedule highest priority first
10 | b; c | | b1:b:10:99 c1:c:10:101 | | c1
# fair sharing schedule earliest timestamp first
10 | b; c | | c1:c:10:101 b1:b:10:101 | | c1
# preempt workload from CQ with the highest share
150/100 | a q=50/100 limit=50/0; b q=50 limit=10/100 lower any; g q=50 limit=0 | \
    a*4:a:20 g1:g:10 g2:g:20 g3:g:20 g4:g:20 s:a:0/100 | w:b:30 | a1 g1 |
# multiple preemptions within cq when fair sharing
9 | a q=2 lower; b q=2 lower; c q=2 lower; bank q=3 | a1:a:3 b1:b:3 c1:c:3 | wa:a:3:100 wb:b:3:100 wc:c:3:100 | a1 b1 c1 |
# Derived: two heads have the same target, and the second searches again (the source's case precedes its PR 13863)
9/1/1 | a q=0/1/0 lower any; b q=0/0/1 lower any; c lower any; bank q=9 | a1:a:0/1 b1:b:0/0/1 c1:c:9 | \
    wa:a:3/1:100 wb:b:3/0/1:99 | a1 b1 c1 |
# not enough resources with fair sharing enabled
200 | sales q=50 limit=0 strict; other q=150 | | new:sales:100 | |
# in-CQ preemption for CQ without cohort; repro for nil pointer panic
4 | a q=4 limit=0 lend=0 lower | low:a:4:-1 | high:a:4:100 | low |
";

/// Derived from `pkg/scheduler/scheduler_test.go`, `TestResourcesToReserve`: a head without victims reserves amounts, and the rest shows
/// how much.
const RESERVED: &str = "
# Reserved cut by nominal+borrowing quota: the head reserves 40 of its 50
130 | q limit=100 w=100 reclaim-lower; r | u:q:60 | w:q:50 x:r:31 | |
# Reserved cut by nominal+borrowing quota: 30 are left for the other queue
130 | q limit=100 w=100 reclaim-lower; r | u:q:60 | w:q:50 x:r:30 | | x
# Reserved equal to assignment usage, borrowing limit is nil
130 | q w=100 reclaim-lower; r | u:q:60 v:r:30 | w:q:50 x:r:1 | |
# The head reserves its quota if it cannot always reclaim it
60 | q q=50 reclaim-lower; r q=10 | v:r:20 | w:q:50 x:r:1 | |
# The head reserves nothing if it reclaims its quota: for later heads of the cycle the victim's room is free
60 | q q=50 any; r q=10 | v:r:20:1 | w:q:50 x:r:1 | v | x
# The head reserves nothing if it may not preempt and exceeds its quota
60 | q q=40; r q=20 | v:r:20 | w:q:50 x:r:1 | | x
# The head reserves its cohort's quota, which it reclaims only from lower priorities
60 | C q=40; q<C q=10 w=100; r q=10 | v:r:20 | w:q:50 x:r:1 | |
";

/// `pkg/scheduler/scheduler_recompute_preemption_test.go`, `TestScheduleRecomputePreemptionTargets`.
const OVERLAPS: &str = "
# hierarchical nominal-first prefers non-borrowing leaf CQ
6055 | A; hero<A q=3000 lower any; noisy<A lower any; B; tiny<B q=50 lower any; C; rest<C lower any | n:noisy:3000 t:tiny:60 r:rest:2995 | \
    wt:tiny:10 wh:hero:2990 | n r |
# two workloads reclaim nominal quota
6055 | A; hero<A q=3000 lower any; noisy<A lower any; B; tiny<B q=50 lower any; C; rest<C lower any | r:rest:6055 | \
    wt:tiny:50 wh:hero:2950 wr:rest:4000:10 | r |
# flavor stickiness: no second victim in the flavour for which a workload is nominated
10 | q1 q=5 lower any; q2 q=5 lower any | r:q1:10 | w1:q1:10:11 w2:q2:10:10 | r |
";

/// `test/integration/singlecluster/scheduler/fairsharing/fair_sharing_test.go`: first rounds.
const INTEGRATION: &str = "
# Shouldn't reserve quota because not enough resources
8 | a q=3; b q=1; shared q=4 | | w:a:10 | |
# Queue can reclaim its nominal quota (large quotas and weights)
1200 | a q=600 w=300 lower any; b q=600 w=300 lower any | a*9:a:100 z:a:100 | w:b:500 | a1 a2 a3 |
# Guaranteed workloads cause preemption of a single best effort workload
8 | ba; bb; g q=8 any | be-a:ba:4:2 be-b:bb:4:1 | w:g:4 | be-b |
# kueue#7101, workload of size 5 admits with inadmissible higher priority workload at ClusterQueue head
9 | p1 lower any; p2 lower any | r*4:p1:2 | six:p2:6:999 five:p2:5 | r1 r2 |
# kueue#7101, workload of size 4 admits with inadmissible higher priority workload at ClusterQueue head
9 | p1 lower any; p2 lower any | r*4:p1:2 | six:p2:6:999 four:p2:4 | r1 r2 |
# kueue#7101, workload admits when several higher priority blocking workloads in front
9 | p1 lower any; p2 lower any | r*4:p1:2 | seven:p2:7:999 six:p2:6:999 five:p2:5 | r1 r2 |
# kueue#6929, workload which fits behind ClusterQueue head is able to admit
3 | A q=3; cq1<A lower any; cq2 lower any | x*2:cq2:1 | four:cq1:4:999 three:cq1:3 | x1 x2 |
# kueue#6929, sticky workload becomes inadmissible. next workload admits (after its cohort was made smaller)
2 | A q=2; cq1<A lower any; cq2 lower any | x*2:cq2:1 | three:cq1:3:99 two:cq1:2:9 | x1 x2 |
";

/// Cases with rule S2-b as the only strategy.
const ONLY_INITIAL: &str = "
# preempt lower priority first, even if big
9 | BASE | a1:a:3 low:b:5 high:b:1:1 | w:a:1 | low |
";
/// Cases with rule S2-a as the only strategy.
const ONLY_FINAL: &str = "
# F2: no rule S2-b
6 | a q=3 lower any; b q=3 lower any | b1:b:3 b2:b:3 | w:a:4 | |
";

#[test]
fn decisions() {
    let mut guarded: Vec<&str> = Vec::new();
    for vectors in [FLAT, TREES, PLANS, ORDERING, SCHEDULE, RESERVED, OVERLAPS, INTEGRATION] {
        guarded.extend(check("", vectors));
    }
    guarded.extend(check(INITIAL, ONLY_INITIAL));
    guarded.extend(check(FINAL, ONLY_FINAL));
    assert_eq!(guarded, UNDER_THE_GUARD);
}

/// Shares of `pkg/cache/scheduler/fair_sharing_test.go`, `TestDominantResourceShare`. The source rounds them up; these vectors are exact.
#[test]
fn shares() {
    let large = |weight: u32| format!("cq q=0/500 w={weight}; lender q=0/1000 w=300");
    let (slight, way) = (large(1), large(300));
    let vectors: &[(&str, &str, &str, &str, &str, f64)] = &[
        ("no cohort", "2/5", "cq q=2/5 limit=0/0 lend=0/0; other", "r:cq:1/2", "cq", 0.0),
        ("usage below nominal", "10/10", "cq q=2/5; lender q=8/5", "r:cq:1/2", "cq", 0.0),
        (
            "usage slightly above nominal in a cohort with large quotas",
            "1/1500",
            &slight,
            "r:cq:0/501",
            "cq",
            2.0 / 3.0,
        ),
        (
            "usage way above nominal in a cohort with large quotas and weights",
            "1/1500",
            &way,
            "r:cq:0/800",
            "cq",
            2.0 / 3.0,
        ),
        (
            "A resource with zero lendable",
            "10/66",
            "cq q=2/2 lend=2/0; lender q=8/64 lend=8/0",
            "r:cq:5/5",
            "cq",
            300.0,
        ),
        ("above nominal with integer weight", "1/10", "cq q=0/5 w=2; lender q=0/5", "r:cq:0/7", "cq", 100.0),
        ("above nominal with decimal weight", "1/10", "cq q=0/5 w=0.5; lender q=0/5", "r:cq:0/7", "cq", 400.0),
        ("above nominal with zero weight", "1/15", "cq q=0/5 w=0; lender q=0/10", "r:cq:0/7", "cq", f64::INFINITY),
        ("the lender, which borrows nothing", "10/10", "cq q=2/5; lender q=8/5", "r:cq:3/7", "lender", 0.0),
        ("cohort has resource share", "50", "C w=2; cq<C q=5", "r:cq:10", "cq", 100.0),
        ("cohort has resource share: the cohort's share", "50", "C w=2; cq<C q=5", "r:cq:10", "C", 50.0),
        (
            "resource share defined for resources only available at the root cohort",
            "50",
            "C w=2; cq<C",
            "r:cq:10",
            "cq",
            200.0,
        ),
        ("the same: the cohort's share", "50", "C w=2; cq<C", "r:cq:10", "C", 100.0),
        ("resource share affected by borrowing limit", "50", "C limit=10; cq<C", "r:cq:10", "cq", 1000.0),
        ("the same: the cohort's share", "50", "C limit=10; cq<C", "r:cq:10", "C", 200.0),
        // From `fair_sharing_test.go` of the integration tests, with the amounts of its two flavours added up.
        ("Prefers flavor with remaining guarantees at Cohort level", "20", FLAVOURS, "r*18:p1:1", "p1", 600.0),
        ("the same: the cohort's share", "20", FLAVOURS, "r*18:p1:1", "A", 0.0),
    ];
    for (case, capacity, groups, running, group, share) in vectors {
        let last = groups.rsplit(';').next().and_then(|text| text.split(['<', ' ']).find(|word| !word.is_empty()));
        let waiting = format!("w:{}:1", last.unwrap_or_default());
        let came = decide("kueue", &text(capacity, groups, running, &waiting)).share(group, "share");
        assert!(came == *share || (came - share).abs() < 1e-9, "{case}: {came}");
    }
}

const FLAVOURS: &str = "A limit=20; p1<A q=6 limit=20 lower any; p2<A q=6 limit=20 lower any; p3<A q=6 limit=20 lower any; \
    B limit=20; p4<B q=2 limit=20 lower any";

/// Returns the number of running tasks of each queue, and the shares of the groups in `shares`, after the first round without a change.
fn settled(case: &str, text: &str, shares: &BTreeMap<String, u32>) -> (BTreeMap<String, u32>, BTreeMap<String, u32>) {
    let (state, registry) = (state(text), Registry::new(BUILT_IN));
    let bench = Bench::new(&state, "kueue", &registry).expect("a policy");
    let mut situation = Situation::first(&state);
    for _ in 0..100 {
        let round = bench.play(&mut situation).expect("a round");
        let ends = situation.running.iter().any(|run| run.ends.is_some());
        if round.launched.is_empty() && round.evicted.is_empty() && !ends {
            let share = |name: &String| {
                let standing = round.standings.iter().find(|standing| standing.name == *name);
                (name.clone(), standing.unwrap_or_else(|| panic!("{case}: {name}")).values[0].1 as u32)
            };
            let shares = shares.keys().map(share).collect();
            let mut running = BTreeMap::new();
            for run in &situation.running {
                *running.entry(state.workloads[run.workload].group.clone().unwrap_or_default()).or_default() +=
                    run.tasks();
            }
            return (running, shares);
        }
        situation.pass(&state);
    }
    panic!("{case}: no stable state after 100 rounds");
}

/// Final states of rounds, from the integration tests and story 3 of KEP 1714; an integration test with several steps is several vectors.
/// The expectations are the number of running workloads per queue, and shares, rounded down. A round requires a waiting workload, so some
/// vectors have a workload `x` that never starts.
const ROUNDS: &str = "
# Preemption is disabled, admits workloads respecting fair share
8 | a q=3; b q=1; shared q=4 | | a*10:a:1 | a=8 | a=625 b=0 shared=0
# Preemption is disabled, 4 workloads have ended one by one
8 | a q=3; b q=1; shared q=4 | r*4:a:1 e1:a:1:0:1 e2:a:1:0:2 e3:a:1:0:3 e4:a:1:0:4 | a*2:a:1 b*5:b:1 | a=5 b=3 | a=250 b=250
# Preemption is disabled, 2 more workloads have ended
8 | a q=3; b q=1; shared q=4 | r*3:a:1 s*3:b:1 e1:a:1:0:1 e2:a:1:0:2 | a*1:a:1 b*2:b:1 | a=4 b=4 | a=125 b=375
# Preemption is enabled, admits workloads respecting fair share
9 | BASE | | a*10:a:1 | a=9 | a=666 b=0 c=0
# Preemption is enabled, shared quota is fair-shared
9 | BASE | r*9:a:1 | a*1:a:1 b*5:b:1 | a=5 b=4 | a=222 b=111
# Preemption is enabled, cq-c reclaims one unit
9 | BASE | r*5:a:1 s*4:b:1 | b:b:1 c:c:1 | a=4 b=4 c=1 | a=111 b=111
# hierarchical cohorts, admits workloads respecting fair share
14 | fl; sl<fl; cl<sl q=2; sr<fl; cr<sr q=2; fr; bank<fr q=10 | | l*5:cl:1 r*5:cr:1 x:cl:14 | cl=5 cr=5 | fl=428 sl=214 sr=214 fr=0
# hierarchical cohorts, preempts workloads to enforce fair share
12 | R; C<R; cq<C reclaim-lower; P<R; pq<P reclaim-lower; L<R w=2; lq<L reclaim-lower; E w=0.5; bq<E | b*6:bq:1:-1 p*6:pq:1:-1 | \
    c*6:cq:1:100 q*6:pq:1:100 l*6:lq:1:100 d*6:bq:1:100 | bq=4 cq=2 lq=4 pq=2 | E=666 R=666 C=166 P=166 L=166
# kueue#7101, workload of size 5
9 | p1 lower any; p2 lower any | r*4:p1:2 | w:p2:5 x:p1:9 | p1=2 p2=1 | p1=444 p2=555
# kueue#7101, workload of size 4
9 | p1 lower any; p2 lower any | r*4:p1:2 | w:p2:4 x:p1:9 | p1=2 p2=1 | p1=444 p2=444
# kueue#6929, workload which fits behind ClusterQueue head is able to admit
3 | A q=3; c1<A lower any; c2 lower any | x*2:c2:1 | f:c1:4:999 w:c1:3 | c1=1 | c1=1000 c2=0
# KEP 1714, story 3, in tens of GPUs, and every queue may reclaim
30 | C1; 1A<C1 any; 1B<C1 any; 1C<C1 w=3 any; C2; 2A<C2 any; CS q=30 | | a*30:1A:1 b*30:1B:1 c*30:1C:1 d*30:2A:1 | \
    1A=3 1B=3 1C=9 2A=15 | C1=500 C2=500 1A=100 1B=100 1C=100
";

#[test]
fn rounds() {
    let numbers = |text: &str| -> BTreeMap<String, u32> {
        let pair =
            |item: &str| item.split_once('=').map(|(name, number)| (name.to_owned(), number.parse().unwrap_or(0)));
        text.split_whitespace().filter_map(pair).collect()
    };
    for (case, [capacity, groups, running, waiting, counts, shares]) in records(ROUNDS) {
        let shares = numbers(shares);
        let came = settled(case, &text(capacity, groups, running, waiting), &shares);
        assert_eq!(came, (numbers(counts), shares), "{case}");
    }
}
