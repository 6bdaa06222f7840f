//! YuniKorn: the vectors of preemption.
//!
//! Source: apache/yunikorn-core, `preemption_test.go`, `queue_test.go` and `pkg/scheduler/tests`, with their tests of 2026, and the
//! examples of YuniKorn's user guide. If a mock of the source selects one of several equal machines, that machine is the first in this
//! file. If the source calls the preemptor although the request would fit, the machine is full in this file.

use crate::{Answer, decide, state};
use plimsoll_court::{Bench, Verdict, judge};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use std::fmt::Write as _;

/// Returns a state from lines: `m NAME AMOUNTS` (machine), `q NAME PARENT GUARANTEED MAX`, `r NAME QUEUE MACHINE AMOUNTS AGE [PRIORITY]`
/// (running) and `w NAME QUEUE AMOUNTS` (waiting). Amounts are such as `first=5,pods=1`, and `-` is an absent value.
fn text(lines: &[&str]) -> String {
    let amounts = |text: &str| if text == "-" { String::new() } else { text.replace('=', " = ").replace(',', ", ") };
    let mut out = String::new();
    for line in lines.iter().flat_map(|lines| lines.lines()).filter(|line| !line.trim().is_empty()) {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let _ = match parts[..] {
            ["m", name, of] => {
                write!(out, "[[machine]]\nname = \"{name}\"\n{}\n", amounts(of).replace(", ", "\n"))
            }
            ["q", name, parent, guaranteed, max] => {
                let key = |key: &str, of: &str| {
                    if of == "-" { String::new() } else { format!("{key} = {{ {} }}\n", amounts(of)) }
                };
                let parent = if parent == "-" { String::new() } else { format!("parent = \"{parent}\"\n") };
                let (guaranteed, max) = (key("guaranteed", guaranteed), key("max", max));
                write!(out, "[[group]]\nname = \"{name}\"\n{parent}{guaranteed}{max}")
            }
            ["r", name, queue, machine, of, age, ref priority @ ..] => write!(
                out,
                "[[running]]\nname = \"{name}\"\ngroup = \"{queue}\"\nmachine = \"{machine}\"\n\
                demand = {{ {} }}\nage_s = {age}\npriority = {}\n",
                amounts(of),
                priority.first().unwrap_or(&"0")
            ),
            ["w", name, queue, of] => {
                write!(out, "[[waiting]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ {} }}\n", amounts(of))
            }
            _ => panic!("{line}"),
        };
    }
    out
}

fn play(lines: &[&str]) -> Answer {
    decide("yunikorn-fair", &text(lines))
}

/// Asserts that the request starts in the room of these victims, or not if there are none, and that the later rounds are no livelock.
fn preempts(lines: &[&str], victims: &[&str]) {
    let answer = play(lines);
    let mut evicted = answer.evicted();
    evicted.sort_unstable();
    assert_eq!(evicted, victims, "{}", text(lines));
    assert_eq!(answer.launched().len(), usize::from(!victims.is_empty()), "{}", text(lines));
    for policy in ["yunikorn-fair", "yunikorn-fair@guarded"] {
        let (state, registry) = (state(&text(lines)), Registry::new(BUILT_IN));
        let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{error}"));
        let assessment = judge(&bench, 30).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(assessment.verdict, Verdict::Livelock, "{policy}: {}", text(lines));
    }
}

const CHILDREN: &str =
    "q parent - first=10 first=20\nq child1 parent first=5 first=10\nq child2 parent first=5 first=10";
/// Two full machines with 5 units each; `alloc2` is the younger allocation.
const TWO: &str = "m node2 first=5,pods=1\nm node1 first=5,pods=1\n\
    r alloc1 child1 node1 first=5,pods=1 60\nr alloc2 child1 node2 first=5,pods=1 0";

/// `TestCheckPreemptionQueueGuarantees`, and `...WithNoGuaranteedResources`: the requesting queue or its parent must have a guarantee.
#[test]
fn guarantees() {
    let full = "m node1 first=10\nr alloc1 child1 node1 first=5 60\nr alloc2 child1 node1 first=5 0";
    preempts(&[full, CHILDREN, "w alloc3 child2 first=5"], &["alloc2"]);
    preempts(&[full, CHILDREN, "w alloc3 child2 first=25"], &[]);
    for (parent, child, expected) in [
        ("-", "-", &[][..]),
        ("first=10", "-", &["alloc2"]),
        ("-", "first=5", &["alloc2"]),
        ("first=10", "first=5", &["alloc2"]),
    ] {
        let queues = format!("q parent - {parent} -\nq child1 parent first=5 -\nq child2 parent {child} -");
        preempts(&[full, &queues, "w alloc3 child2 first=5"], expected);
    }
}

/// `TestTryPreemptionOnNode`, `..._NodeWithCapacityLesserThanAsk`, `Test_PreemptReleasesReservationsOnSuccess`.
#[test]
fn on_a_machine() {
    preempts(&[TWO, CHILDREN, "w alloc3 child2 first=5,pods=1"], &["alloc2"]);
    preempts(
        &[TWO, &CHILDREN.replace("child2 parent first=5", "child2 parent first=6"), "w alloc3 child2 first=6,pods=1"],
        &[],
    );
}

/// `TestTryPreemptionOnNodeWithOGParentAndUGPreemptor`: the common parent exceeds its guarantee, and the requesting queue is below its
/// own.
#[test]
fn below_a_queue_above_its_guarantee() {
    let mut lines = "m node2 first=3,pods=1\nm node1 first=3,pods=1\n".to_owned();
    for at in 1..=6 {
        let _ = writeln!(lines, "r alloc{at} child1 node{} first=1 {}", 2 - (at + 1) % 2, at * 60);
    }
    let queues = "q parent - first=2 first=20\nq child1 parent - -\nq child2 parent first=1 first=10";
    preempts(&[&lines, queues, "w alloc7 child2 first=1"], &["alloc1"]);
}

/// `TestTryPreemptionOnQueue`, `..._OnQueue_VictimsOnDifferentNodes`, `..._OnQueue_VictimsAvailable_LowerPriority`: the machines have
/// room, but the request exceeds a maximum.
#[test]
fn below_a_maximum() {
    let two = TWO
        .replace("first=5,pods=1\nm", "first=10,pods=2\nm")
        .replace("node1 first=5,pods=1\nr", "node1 first=10,pods=2\nr");
    let queues = "q parent - - first=10\nq child1 parent first=5 -\nq child2 parent first=5 -";
    preempts(&[&two, queues, "w alloc3 child2 first=5,pods=1"], &["alloc2"]);

    let queues = "q parent - - first=18\nq child1 parent - -\nq child2 parent first=15 -\nq child3 parent - -";
    let machines = "m node1 first=30\nm node2 first=30";
    let running = "r alloc1 child1 node1 first=5 60\nr alloc2 child1 node2 first=5 1\nr alloc4 child3 node2 first=5 0";
    preempts(&[machines, queues, running, "w alloc3 child2 first=10"], &["alloc2", "alloc4"]);
    let running =
        "r alloc1 child1 node1 first=5 120\nr alloc2 child1 node1 first=5 60\nr alloc4 child3 node2 first=5 0 1000";
    preempts(&[machines, queues, running, "w alloc3 child2 first=10"], &["alloc1", "alloc2"]);
}

/// `TestTryAllocatePreemptQueue` (`application_test.go`): the source states a headroom; in this test the room below the maximum replaces
/// it. `TestTryAllocatePreemptNode...`: both machines have 4 free units, and a victim of 5 units on either machine is enough. A less
/// urgent request preempts no allocation.
#[test]
fn asks_of_applications() {
    let queues = "q parent - first=10 first=10\nq child1 parent first=5 -\nq child2 parent first=5 -";
    let running =
        "m node1 first=20\nr alloc1 child1 node1 first=5 2\nr alloc2 child1 node1 first=5 1\nw alloc3 child2 first=5";
    preempts(&[queues, running], &["alloc2"]);
    let queues = "q unlimited - - -\nq parent - first=10 first=20\nq child1 parent first=5 -\nq child2 parent first=5 -\n\
        m node1 first=20\nm node2 first=20\nr alloc0-0 unlimited node1 first=11 4\nr alloc0-1 unlimited node2 first=11 3\n\
        r alloc1 child1 node1 first=5 2\nr alloc2 child1 node2 first=5 1\nw alloc3 child2 first=5";
    preempts(&[queues], &["alloc1"]);
    let priority = |priority: i32| format!("{}priority = {priority}\n", text(&[queues]));
    assert!(decide("yunikorn-fair", &priority(-1)).evicted.is_empty());
    assert_eq!(decide("yunikorn-fair", &priority(1000)).evicted(), ["alloc1"]);
}

/// `TestTryPreemption_VictimsAvailable_InsufficientResource`, `..._VictimsOnDifferentNodes_InsufficientResource`,
/// `..._VictimsAvailableOnDifferentNodes`: the useful victims have less than the request.
#[test]
fn victims_that_are_less_than_the_ask() {
    let queues = "q child1 parent - -\nq child2 parent first=5 -\nq parent - - first";
    let running =
        "r alloc1 child1 node1 first=2,pods=1 60\nr alloc2 child1 node2 first=2,pods=1 0\nw alloc3 child2 first=5";
    preempts(&[&format!("{queues}=8\nm node1 first=10,pods=2\nm node2 first=10,pods=2"), running], &[]);
    preempts(&[&format!("{queues}=6\nm node1 first=5,pods=1\nm node2 first=5,pods=1"), running], &[]);
    let running = running.replacen("first=2", "first=4", 1);
    let lines = [format!("{queues}=6\nm node1 first=5,pods=1\nm node2 first=4,pods=1"), running];
    let lines = [lines[0].as_str(), lines[1].as_str()];
    preempts(&lines, &[]);
    // Not from the source: below a maximum, the free room of the machine does not count even with the guard.
    assert!(decide("yunikorn-fair@guarded", &text(&lines)).evicted.is_empty());
}

/// Returns two queues below one parent: the requests are in `child1` below `parent1`, and the victims in `child2` below `parent2`.
fn parents(max: &str, first: &str, child1: &str, child2: &str) -> String {
    format!(
        "q parent - - {max}\nq parent1 parent {first} -\nq parent2 parent - -\nq child1 parent1 {child1} -\nq child2 parent2 {child2} -\n\
        q child3 parent2 - -"
    )
}

/// `TestTryPreemption_AskResTypesDifferent_...`, also `OnNode`: the victims use a second resource as well, and other allocations use only
/// that one.
#[test]
fn victims_of_more_resources() {
    let running =
        "r alloc1 child2 node1 vcores=1,mem=200 60\nr alloc2 child2 node1 vcores=1,mem=200 0\nw alloc3 child1 vcores=1";
    for machine in ["m node1 vcores=3,mem=400", "m node1 vcores=2,mem=400"] {
        preempts(&[machine, &parents("vcores=2", "vcores=1", "-", "-"), running], &["alloc2"]);
    }
    let running = "r alloc5 child2 node1 mem=100 120\nr alloc6 child2 node1 mem=100 120\nr alloc7 child2 node1 mem=100 120\n\
        r alloc1 child2 node1 vcores=1,mem=100 60\nr alloc2 child2 node1 vcores=1,mem=100 0\nr alloc3 child2 node1 vcores=1,mem=100 0\n\
        w alloc4 child1 vcores=2";
    for machine in ["m node1 vcores=5,mem=700", "m node1 vcores=3,mem=600"] {
        preempts(&[machine, &parents("vcores=3", "-", "vcores=2", "vcores=1"), running], &["alloc2", "alloc3"]);
    }
}

/// `TestTryPreemption_OnNode_AskResTypesSame_...`: the request has a resource that no victim uses.
#[test]
fn asks_of_more_resources() {
    let running = "r alloc5 child2 node1 gpu=100 120\nr alloc6 child2 node1 gpu=100 120\nr alloc7 child2 node1 gpu=100 120\n\
        r alloc1 child2 node1 vcores=1 60\nr alloc2 child2 node1 vcores=1 0\nr alloc3 child2 node1 vcores=1 0\n\
        w alloc4 child1 vcores=2,mem=200\nm node1 vcores=3,gpu=300,mem=200";
    for child2 in ["-", "vcores=1"] {
        preempts(&[&parents("-", "-", "vcores=2", child2), running], &["alloc2", "alloc3"]);
    }
}

/// `TestTryPreemption_OnNode_UGParent_With_...`: a queue below its guarantee has two child queues. Siblings without own guarantees do not
/// preempt each other.
#[test]
fn siblings_within_a_guarantee() {
    let running = "m node1 vcores=2\nr alloc1 child1 node1 vcores=1 120\nr alloc2 child1 node1 vcores=1 60\nw alloc3 child2 vcores=1";
    for (child1, child2, victims) in
        [("-", "vcores=1", &["alloc2"][..]), ("-", "-", &[]), ("vcores=1", "vcores=1", &["alloc2"])]
    {
        let queues = format!(
            "q parent - - vcores=20\nq parent1 parent vcores=10 -\nq parent2 parent - -\nq child1 parent1 {child1} -\n\
            q child2 parent1 {child2} -\nq child3 parent2 - -"
        );
        preempts(&[&queues, running], victims);
    }
}

/// `TestTryPreemption_VictimQueue_With_OG_And_UG_ResTypes`, `..._Under_Diff_Parent_...`, and the same tests of `AskQueue`: a queue
/// exceeds its guarantee of one resource and is below its guarantee of another.
#[test]
fn guarantees_of_two_resources() {
    let victims = "m node1 first=10,second=2\nm node2 first=10,second=2\nr alloc1 child1 node1 first=10 60\n\
        r alloc2 child1 node2 first=10 0\nw alloc3 child2 first=5";
    let asks = "m node1 first=10,second=3,third=10\nm node2 first=10,second=3,third=10\nr alloc1 child1 node1 first=10 60\n\
        r alloc2 child1 node2 first=5 0\nr alloc3 child2 node2 first=5,second=3 0\nw alloc4 child2 first=5,third=10";
    for (running, max, (one, two), evicted) in [
        (victims, "first=20,second=4", ("first=10,second=2", "first=10"), "alloc1"),
        (asks, "first=20,second=6", ("first=10", "first=10,second=2"), "alloc2"),
    ] {
        let below = format!("q parent - - {max}\nq child1 parent {one} -\nq child2 parent {two} -");
        let above = |up: (&str, &str), down: (&str, &str)| {
            format!(
                "q parent - - {max}\nq parent1 parent {} -\nq parent2 parent {} -\nq child1 parent1 {} -\nq child2 parent2 {} -",
                up.0, up.1, down.0, down.1
            )
        };
        for queues in [below, above((one, two), ("-", "-")), above(("-", "-"), (one, two))] {
            preempts(&[&queues, running], &[evicted]);
        }
    }
}

/// `TestTryPreemption_PreemptMoreThanTwoVictimsWithPodsDimension` (YUNIKORN-3137): victims have to cover every resource of the request.
/// The allocation that only fills the machine is more urgent in this test, so that it is no victim.
#[test]
fn more_than_two_victims() {
    let running = "m node1 vcores=5,mem=700,pods=10\nr alloc1 child2 node1 vcores=1,mem=100,pods=1 180\n\
        r alloc2 child2 node1 vcores=1,mem=100,pods=1 120\nr alloc3 child2 node1 vcores=1,mem=100,pods=1 60\n\
        r fill child2 node1 vcores=2,mem=400,pods=7 0 1\nw alloc4 child1 vcores=3,mem=300,pods=1";
    let queues = parents("vcores=5,mem=700,pods=10", "-", "vcores=3,mem=300", "vcores=1,mem=100");
    preempts(&[&queues, running], &["alloc1", "alloc2", "alloc3"]);
}

/// `TestFindEligiblePreemptionVictims`: the cluster is full, and two less urgent allocations together exceed the guarantee of their
/// parent.
#[test]
fn eligible_victims() {
    let running =
        "m node1 mem=200\nr ask2 leaf2 node1 mem=100 1 -1000\nr ask3 leaf2 node1 mem=100 0 -1000\nw ask1 leaf1 mem=100";
    let queues = "q leaf1 parent1 - -\nq leaf2 parent2 - -\nq parent1 - mem=100 mem=200\nq parent2 - mem=100 mem=200";
    preempts(&[running, queues], &["ask3"]);
    let off = |key: &str, queue: &str| {
        let name = format!("name = \"{queue}\"\n");
        text(&[running, queues]).replacen(&name, &format!("{name}{key}\n"), 1)
    };
    assert!(decide("yunikorn-fair", &off("reclaimable = false", "leaf2")).evicted.is_empty());
    assert!(decide("yunikorn-fair", &off("priority = 1001", "parent2")).evicted.is_empty());
    preempts(&[running, &queues.replace("parent2 - mem=100", "parent2 - mem=200")], &[]);
    // Derived: the same offset on the requesting queue's side does not prevent the preemption.
    assert_eq!(decide("yunikorn-fair", &off("priority = 1001", "parent1")).evicted(), ["ask3"]);
    // An ancestor of the requesting queue that is at its maximum is a fence: victims must be below it.
    let full = "m node2 gpu=1\nr here other1 node2 gpu=1 5\nq other1 parent1 - -";
    let fenced = [running, &queues.replace("mem=100 mem=200\nq parent2", "mem=100 gpu=1\nq parent2"), full];
    preempts(&fenced, &[]);
    preempts(&[fenced[0], &fenced[1].replace("gpu=1", "gpu=2"), fenced[2]], &["ask3"]);
}

/// Returns the number of started tasks and the number of stopped tasks.
fn counts(answer: &Answer) -> (u32, u32) {
    let sum = |all: &[(String, u32)]| all.iter().map(|(_, tasks)| tasks).sum();
    (sum(&answer.launched), sum(&answer.evicted))
}

/// `TestGoldenDecisionTraceScenarios`, preemption, and `TestBasicPreemption`: the victim is the younger of two allocations, and a queue
/// that has its guarantee preempts no more.
#[test]
fn traces() {
    let queues = "q plow - mem=0,vcore=0 mem=100000,vcore=100000\nq phigh - mem=1000,vcore=1000 mem=100000,vcore=100000\n\
        m node mem=100,vcore=100\nr low-1 plow node mem=50,vcore=50 2\nr low-2 plow node mem=50,vcore=50 1\nw high-1 phigh mem=50,vcore=50";
    preempts(&[queues], &["low-2"]);
    let mut lines = "q a - mem=100,vcore=100 mem=200,vcore=200\nq b - mem=100,vcore=100 mem=200,vcore=200\n".to_owned();
    for node in ["node-1", "node-2"] {
        let _ = writeln!(lines, "m {node} mem=100,vcore=100");
        (0..10).for_each(|at| {
            let _ = writeln!(lines, "r {node}-{at} a {node} mem=10,vcore=10 {}", 20 - at);
        });
    }
    let state = format!("{}tasks = 100\n", text(&[&lines, "w alloc-2 b mem=10,vcore=10"]));
    assert_eq!(counts(&decide("yunikorn-fair", &state)), (10, 10));
}

/// The cases of the user guide (`docs/user_guide/preemption.md`): the general case, the case with a non-preemptible class (in this test a
/// non-reclaimable queue), and the case with priorities of queues. The result of the case without guarantees differs from the guide:
/// since YUNIKORN-1951 there is no preemption in it.
#[test]
fn the_user_guide() {
    let pods = |name: &str, queue: &str, count: u32, size: u32| -> String {
        (0..count).map(|at| format!("r {name}{at} {queue} m1 cpu={size} {}\n", count - at)).collect()
    };
    let parent = "m m1 cpu=40\nq normal - - cpu=12\n";
    let running = [pods("a", "queue-1", 10, 1), pods("b", "queue-2", 2, 1)].concat();
    for (queues, expected) in [
        ("q queue-1 normal cpu=5 cpu=10\nq queue-2 normal cpu=5 cpu=10", (3, 3)),
        ("q queue-1 normal - cpu=10\nq queue-2 normal - cpu=10", (0, 0)),
    ] {
        let state = format!("{}tasks = 8\n", text(&[parent, queues, &running, "w c queue-2 cpu=1"]));
        assert_eq!(counts(&decide("yunikorn-fair", &state)), expected, "{state}");
    }
    let queues = "m m1 cpu=40\nq top - - cpu=16\nq queue-1 top cpu=3 cpu=8\nq queue-2 top cpu=3 cpu=8\nq queue-3 top cpu=3 cpu=8";
    let running = [pods("a", "queue-1", 8, 1), pods("b", "queue-2", 8, 1)].concat();
    let state = format!("{}tasks = 8\n", text(&[queues, &running, "w c queue-3 cpu=1"]));
    let state = state.replacen("name = \"queue-2\"\n", "name = \"queue-2\"\nreclaimable = false\n", 1);
    let answer = decide("yunikorn-fair", &state);
    assert_eq!(counts(&answer), (3, 3));
    assert!(answer.evicted().iter().all(|name| name.starts_with('a')));
    let queues =
        "m m1 cpu=40\nq top - - cpu=18\nq high top cpu=6 cpu=10\nq normal top cpu=6 cpu=18\nq low top cpu=6 cpu=10";
    let state = text(&[queues, &pods("n", "normal", 6, 3), "w l low cpu=3\nw h high cpu=3"]);
    let state = state.replacen("name = \"high\"\n", "name = \"high\"\npriority = 100\n", 1).replacen(
        "name = \"low\"\n",
        "name = \"low\"\npriority = -100\n",
        1,
    );
    let state = state.replace("group = \"high\"\n", "group = \"high\"\ntasks = 5\n");
    let answer = decide("yunikorn-fair", &state.replace("group = \"low\"\n", "group = \"low\"\ntasks = 5\n"));
    assert_eq!((counts(&answer), answer.launched()), ((2, 2), vec!["h"]));
}

/// YUNIKORN-3137, as reported: three pods of 100 CPUs are stopped for one pod of 300 CPUs.
#[test]
fn the_report_of_issue_3137() {
    let mut lines = "m m1 cpu=1000,mem=1000,pods=100\nq level1 - cpu=300,mem=300 cpu=600,mem=600\n\
        q child1 level1 cpu=300,mem=300 -\nq child2 level1 cpu=300,mem=300 -\nw big child2 cpu=300,mem=300,pods=1\n"
        .to_owned();
    (0..6).for_each(|at| {
        let _ = writeln!(lines, "r small{at} child1 m1 cpu=100,mem=100,pods=1 {}", 6 - at);
    });
    preempts(&[&lines], &["small3", "small4", "small5"]);
}
