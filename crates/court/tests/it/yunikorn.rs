//! YuniKorn: the order of queues and applications, and preemption for guarantees.
//!
//! Sources: apache/yunikorn-core, `sorters_test.go`, `queue_test.go`, `resources_test.go` (as unit tests of the policy), pull requests
//! 64, 759 (YUNIKORN-2270) and 1157 (YUNIKORN-3449). States marked as derived are not from the source: they follow from YuniKorn's rules.

use crate::decide;
use std::fmt::Write as _;

/// Returns a state of queues with keys, and of workloads given as `KIND NAME QUEUE CPU TASKS PRIORITY`.
fn text(cpu: u32, queues: &[(&str, &str)], workloads: &str) -> String {
    let mut text = format!("[capacity]\ncpu = {cpu}\n");
    for (name, keys) in queues {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\n{keys}\n");
    }
    for line in workloads.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [kind, name, queue, cpu, tasks, priority] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"{name}\"\ngroup = \"{queue}\"\ndemand = {{ cpu = {cpu} }}\ntasks = {tasks}\npriority = {priority}\n"
        );
    }
    text
}

/// `TestSortQueuesWithGuarantees`: the guarantees are 500, 300, 200 and 200, and the usage is 300, 200, 100 and 100. The last queue is
/// the most urgent.
#[test]
fn queues_with_guarantees() {
    let queues = [
        ("q0", "guaranteed = { cpu = 500 }"),
        ("q1", "guaranteed = { cpu = 300 }"),
        ("q2", "guaranteed = { cpu = 200 }"),
        ("q3", "guaranteed = { cpu = 200 }"),
    ];
    let workloads = "running r0 q0 300 1 1\nrunning r1 q1 200 1 1\nrunning r2 q2 100 1 1\nrunning r3 q3 100 1 1\n\
        waiting w0 q0 1 1 1\nwaiting w1 q1 1 1 1\nwaiting w2 q2 1 1 1\nwaiting w3 q3 1 1 3";
    let text = text(1000, &queues, workloads);
    assert_eq!(decide("yunikorn-fair", &text).launched(), ["w3", "w2", "w0", "w1"]);
    // Ratios before priorities: of queues with equal ratios the more urgent is first.
    let unsorted = format!("{text}[policy]\npriority = false\n");
    assert_eq!(decide("yunikorn-fair", &unsorted).launched(), ["w3", "w2", "w0", "w1"]);
    let urgent = unsorted.replace(
        "name = \"w1\"\ngroup = \"q1\"\ndemand = { cpu = 1 }\ntasks = 1\npriority = 1",
        "name = \"w1\"\ngroup = \"q1\"\ndemand = { cpu = 1 }\ntasks = 1\npriority = 9",
    );
    assert_ne!(urgent, unsorted);
    assert_eq!(decide("yunikorn-fair", &urgent).launched(), ["w3", "w2", "w0", "w1"]);
    assert_eq!(decide("yunikorn-fair", &urgent.replace("priority = false", "priority = true")).launched()[0], "w1");
}

/// Checks the order of the starts of one task per queue: `fair` with ratios before priorities, `urgent` with priorities before ratios.
fn sorted(guaranteed: [u32; 4], used: [u32; 4], priorities: [u32; 4], fair: [&str; 4], urgent: [&str; 4]) {
    let mut state = "[capacity]\nmemory = 1000\nvcore = 1000\n".to_owned();
    for at in 0..4 {
        let (most, used, priority) = (guaranteed[at], used[at], priorities[at]);
        let most =
            if most > 0 { format!("guaranteed = {{ memory = {most}, vcore = {most} }}\n") } else { String::new() };
        let _ = write!(
            state,
            "[[group]]\nname = \"q{at}\"\n{most}[[running]]\nname = \"r{at}\"\ngroup = \"q{at}\"\n\
            demand = {{ memory = {used}, vcore = {used} }}\n\
            [[waiting]]\nname = \"w{at}\"\ngroup = \"q{at}\"\ndemand = {{ memory = 1, vcore = 1 }}\npriority = {priority}\n"
        );
    }
    assert_eq!(decide("yunikorn-fair", &format!("{state}[policy]\npriority = false\n")).launched(), fair);
    assert_eq!(decide("yunikorn-fair", &state).launched(), urgent);
}

/// `TestSortQueues` and `TestNoQueueLimits`.
#[test]
fn sorted_queues() {
    let (most, priorities) = ([500, 300, 200, 200], [1, 1, 1, 3]);
    sorted(most, [300, 200, 100, 100], priorities, ["w3", "w2", "w0", "w1"], ["w3", "w2", "w0", "w1"]);
    sorted(most, [200, 300, 100, 100], priorities, ["w0", "w3", "w2", "w1"], ["w3", "w0", "w2", "w1"]);
    sorted(most, [150, 120, 100, 100], priorities, ["w0", "w1", "w3", "w2"], ["w3", "w0", "w1", "w2"]);
    let (none, priorities) = ([0; 4], [1, 0, 2, 3]);
    sorted(none, [300, 200, 100, 100], priorities, ["w3", "w2", "w1", "w0"], ["w3", "w2", "w0", "w1"]);
    sorted(none, [200, 300, 100, 100], priorities, ["w3", "w2", "w0", "w1"], ["w3", "w2", "w0", "w1"]);
}

/// `TestSortAppsFair`, `TestSortAppsPriorityFair`, `TestSortAppsFifo` and `TestSortAppsPriorityFifo`: applications of one queue, in the
/// order of their submission.
#[test]
fn sorted_applications() {
    let order = |keys: &str, policy: &str, used: [u32; 4], priorities: [u32; 4]| -> Vec<usize> {
        let mut state = format!("[capacity]\nvcore = 5000\n[[group]]\nname = \"q\"\n{keys}\n[policy]\n{policy}\n");
        for at in 0..4 {
            let (used, priority) = (used[at], priorities[at]);
            if used > 0 {
                let _ = write!(
                    state,
                    "[[running]]\nname = \"r{at}\"\nuser = \"app-{at}\"\ngroup = \"q\"\ndemand = {{ vcore = {used} }}\n"
                );
            }
            let _ = write!(
                state,
                "[[waiting]]\nname = \"{at}\"\nuser = \"app-{at}\"\ngroup = \"q\"\ndemand = {{ vcore = 100 }}\npriority = {priority}\n"
            );
        }
        decide("yunikorn-fair", &state).launched().iter().filter_map(|name| name.parse().ok()).collect()
    };
    let (fair, fifo) = ("", "sort = \"fifo\"");
    let (none, first) = ([0; 4], [0, 5, 0, 0]);
    assert_eq!(order(fair, "priority = false", [100, 200, 300, 400], none), [0, 1, 2, 3]);
    assert_eq!(order(fair, "priority = false", [100, 1000, 300, 400], none), [0, 2, 3, 1]);
    assert_eq!(order(fair, "", [100, 200, 300, 400], first), [1, 0, 2, 3]);
    assert_eq!(order(fair, "", [100, 200, 1000, 400], first), [1, 0, 3, 2]);
    assert_eq!(order(fifo, "priority = false", none, none), [0, 1, 2, 3]);
    assert_eq!(order(fifo, "", none, [0, 5, 0, 4]), [1, 3, 0, 2]);
}

/// `TestQueueStarvation...` and `TestStarvation...`: a small queue that uses a tenth of its guarantee waits until a large queue uses as
/// large a part. The cluster has room only for the expected tasks.
#[test]
fn turns_by_guarantees() {
    for (large, asks, small, prior, expected, room) in [
        (360_000, 1000, 100, 10, &[("large", 20)][..], 20_000),
        (360_000, 1000, 100, 0, &[("large", 1), ("small", 1)], 1001),
        (1000, 100, 100, 10, &[("large", 2), ("small", 1)], 201),
        (100, 10, 100, 10, &[("large", 2), ("small", 1)], 21),
        (1000, 1000, 100, 10, &[("large", 1), ("small", 1)], 1001),
        (10_000, 1000, 100, 10, &[("large", 2), ("small", 1)], 2001),
    ] {
        let mut state = format!("[capacity]\nmemory = {}\n", room + prior);
        for (name, guaranteed, ask, tasks) in [("large", large, asks, 25), ("small", small, 1, 1)] {
            let _ = write!(
                state,
                "[[group]]\nname = \"{name}\"\nguaranteed = {{ memory = {guaranteed} }}\n\
                [[waiting]]\nname = \"{name}\"\ngroup = \"{name}\"\ndemand = {{ memory = {ask} }}\ntasks = {tasks}\n"
            );
        }
        if prior > 0 {
            let _ =
                writeln!(state, "[[running]]\nname = \"prior\"\ngroup = \"small\"\ndemand = {{ memory = {prior} }}");
        }
        let answer = decide("yunikorn-fair", &state);
        let tasks =
            |name: &str| answer.launched.iter().filter(|(known, _)| known == name).map(|(_, tasks)| tasks).sum();
        let launched: Vec<(&str, u32)> =
            ["large", "small"].map(|name| (name, tasks(name))).into_iter().filter(|(_, tasks)| *tasks > 0).collect();
        assert_eq!(launched, expected, "{state}");
    }
}

/// `TestGoldenDecisionTraceScenarios`, order of applications. There is room for one more allocation. With `fifo` the earlier application
/// receives it, with `fair` the application that uses less.
#[test]
fn traces_of_applications() {
    let state = |sort: &str| {
        let mut state = format!("[capacity]\nmemory = 40\nvcore = 4\n[[group]]\nname = \"leaf\"\nsort = \"{sort}\"\n");
        let demand = "group = \"leaf\"\ndemand = { memory = 10, vcore = 1 }\npriority = 5\n";
        for (kind, name, user, age) in [
            ("running", "e-1", "early", 5),
            ("running", "e-2", "early", 4),
            ("running", "l-1", "late", 3),
            ("waiting", "e-3", "early", 2),
            ("waiting", "l-2", "late", 1),
        ] {
            let _ = write!(state, "[[{kind}]]\nname = \"{name}\"\nuser = \"{user}\"\nage_s = {age}\n{demand}");
        }
        state
    };
    assert_eq!(decide("yunikorn-fair", &state("fifo")).launched(), ["e-3"]);
    assert_eq!(decide("yunikorn-fair", &state("fair")).launched(), ["l-2"]);
}

/// `TestGetFairMaxResource`: the denominator is the nearest maximum of the queue or its ancestors, even if the cluster has less.
#[test]
fn the_nearest_maximum_is_the_denominator() {
    for (parent, tiers, used) in [
        ("", ["max = { vcore = 800 }", "max = { vcore = 1200 }"], [400, 600]),
        ("max = { vcore = 900 }", ["max = { vcore = 800 }", ""], [400, 450]),
        ("max = { gpu = 100 }", ["max = { vcore = 800 }", ""], [400, 500]),
    ] {
        let queues = ["tier0", "tier1"].map(|name| format!("[[group]]\nname = \"{name}\"\nparent = \"parent\"\n"));
        let runs = |at: usize| {
            format!("[[running]]\nname = \"r{at}\"\ngroup = \"tier{at}\"\ndemand = {{ vcore = {} }}\n", used[at])
        };
        let text = format!(
            "[capacity]\nvcore = 1000\ngpu = 0\n[[group]]\nname = \"parent\"\n{parent}\n{}{}\n{}{}\n{}{}\
            [[waiting]]\nname = \"w\"\ngroup = \"tier0\"\ndemand = {{ vcore = 1000 }}\n",
            queues[0],
            tiers[0],
            queues[1],
            tiers[1],
            runs(0),
            runs(1)
        );
        let answer = decide("yunikorn-fair", &text);
        assert_eq!([answer.share("tier0", "ratio"), answer.share("tier1", "ratio")], [0.5, 0.5], "{text}");
    }
}

/// Pull request 64: q1 uses 50 of its guarantee of 100, and q2 uses 100 of its guarantee of 300.
#[test]
fn the_queues_of_pull_request_64() {
    let queues = [("q1", "guaranteed = { cpu = 100 }"), ("q2", "guaranteed = { cpu = 300 }")];
    let workloads = "running r1 q1 50 1 0\nrunning r2 q2 100 1 0\nwaiting w1 q1 1 1 0\nwaiting w2 q2 1 1 0";
    let text = text(151, &queues, workloads);
    assert_eq!(decide("yunikorn-fair", &text).launched(), ["w2"]);
    assert_eq!(decide("yunikorn-fair@64", &text).launched(), ["w1"]);
    assert_eq!(decide("yunikorn-fair", &text).share("q1", "ratio"), 0.5);
}

/// Derived: for a queue without a guarantee the denominator is its own maximum, or the nearest ancestor's, or else the cluster.
#[test]
fn maximums_are_denominators() {
    let queues = [("a", "max = { cpu = 20 }"), ("b", ""), ("p", "max = { cpu = 40 }"), ("c", "parent = \"p\"")];
    let workloads = "running r1 a 10 1 0\nrunning r2 b 10 1 0\nrunning r3 c 10 1 0\nwaiting w a 1 1 0";
    let answer = decide("yunikorn-fair", &text(100, &queues, workloads));
    let ratios = ["a", "b", "p", "c"].map(|queue| answer.share(queue, "ratio"));
    assert_eq!(ratios, [0.5, 0.1, 0.25, 0.25]);
}

/// Derived: of otherwise equal queues the one with more pending demand is first; applications are ordered by usage, or by age.
#[test]
fn ties_and_applications() {
    let both = [("a", ""), ("b", "")];
    let workloads = "waiting w1 a 1 1 0\nwaiting w2 b 1 2 0";
    assert_eq!(decide("yunikorn-fair", &text(1, &both, workloads)).launched(), ["w2"]);
    let workloads = "running r1 a 3 1 0\nwaiting w1 a 1 1 0\nwaiting w2 a 1 1 0";
    let mine = text(4, &both, workloads)
        .replace("name = \"r1\"", "name = \"r1\"\nuser = \"app\"")
        .replace("name = \"w1\"", "name = \"w1\"\nuser = \"app\"");
    assert_eq!(decide("yunikorn-fair", &mine).launched(), ["w2"]);
    let fifo = mine.replace("name = \"a\"\n", "name = \"a\"\nsort = \"fifo\"\n");
    assert_eq!(decide("yunikorn-fair", &fifo).launched(), ["w1"]);
}

/// YUNIKORN-2270: b uses all 300 CPUs. a has a guarantee of 100 and receives them.
#[test]
fn the_guarantee_of_issue_2270() {
    let queues = [("a", "guaranteed = { cpu = 100 }\nmax = { cpu = 300 }"), ("b", "max = { cpu = 300 }")];
    let workloads = "running b1 b 1 300 0\nwaiting b2 b 1 300 0\nwaiting a1 a 1 150 0";
    let text = text(300, &queues, workloads);
    let answer = decide("yunikorn-fair", &text);
    assert_eq!((&answer.evicted, &answer.launched), (&vec![("b1".to_owned(), 100)], &vec![("a1".to_owned(), 100)]));
    let open = decide("yunikorn-fair@2270", &text);
    assert!(!open.evicted.is_empty() && open.launched.is_empty(), "{:?}", open.launched);
}

/// YUNIKORN-3449: 2 CPUs are free and the only victim has 2, but a request of 4 does not start. With the guard it starts. If a second
/// victim is available, both victims are stopped, although one is enough with the guard.
#[test]
fn the_free_room_of_issue_3449() {
    let queues = [("a", "guaranteed = { cpu = 4 }"), ("b", "guaranteed = { cpu = 2 }")];
    let workloads = "running b1 b 2 1 0\nrunning b2 b 2 1 0\nwaiting a1 a 4 1 0";
    let text = text(6, &queues, workloads);
    assert!(decide("yunikorn-fair", &text).evicted.is_empty());
    let guarded = decide("yunikorn-fair@guarded", &text);
    assert_eq!((guarded.evicted(), guarded.launched()), (vec!["b2"], vec!["a1"]));
    let open = text.replace("guaranteed = { cpu = 2 }\n", "");
    let answer = decide("yunikorn-fair", &open);
    assert_eq!((answer.evicted(), answer.launched()), (vec!["b2", "b1"], vec!["a1"]));
    assert_eq!(decide("yunikorn-fair@guarded", &open).evicted(), ["b2"]);
}

/// Derived: a victim is not more urgent than the request, and its queue does not fall below its guarantee. The machine with the fewest
/// victims is selected.
#[test]
fn victims() {
    let queues = [("a", "guaranteed = { cpu = 2 }"), ("b", "guaranteed = { cpu = 3 }")];
    let urgent = "running b1 b 1 4 5\nwaiting a1 a 1 1 0";
    assert!(decide("yunikorn-fair", &text(4, &queues, urgent)).evicted.is_empty());
    let equal = urgent.replace("1 4 5", "1 4 0").replace("a 1 1 0", "a 1 2 0");
    let answer = decide("yunikorn-fair", &text(4, &queues, &equal));
    assert_eq!(answer.evicted, [("b1".to_owned(), 1)], "b has one CPU above its guarantee of 3");
    let mut machines = "[[machine]]\nname = \"m1\"\ncpu = 2\n[[machine]]\nname = \"m2\"\ncpu = 2\n".to_owned();
    machines += "[[group]]\nname = \"a\"\nguaranteed = { cpu = 2 }\n[[group]]\nname = \"b\"\n";
    for (name, machine, cpu) in [("b1", "m1", 1), ("b2", "m1", 1), ("b3", "m2", 2)] {
        let _ = write!(
            machines,
            "[[running]]\nname = \"{name}\"\ngroup = \"b\"\nmachine = \"{machine}\"\ndemand = {{ cpu = {cpu} }}\n"
        );
    }
    machines += "[[waiting]]\nname = \"a1\"\ngroup = \"a\"\ndemand = { cpu = 2 }\n";
    assert_eq!(decide("yunikorn-fair", &machines).evicted(), ["b3"]);
}

/// Derived: the priority offsets of a queue and its ancestors add up without overflow. The reader accepts offsets of 32 bits, as the
/// source does.
#[test]
fn large_offsets() {
    let offset = |sign: &str| format!("priority = {sign}2147483647\n");
    let (more, less) = (offset(""), offset("-"));
    let queues = [
        ("p", more.clone()),
        ("a", format!("parent = \"p\"\nguaranteed = {{ cpu = 2 }}\n{more}")),
        ("q", less.clone()),
        ("b", format!("parent = \"q\"\n{less}")),
    ];
    let queues = queues.each_ref().map(|(name, keys)| (*name, keys.as_str()));
    let text = text(4, &queues, "running r b 1 4 0\nwaiting w a 1 1 3");
    assert_eq!(decide("yunikorn-fair", &text).evicted(), ["r"]);
    let large = text.replace("2147483647", "2147483648");
    let error = plimsoll_court::parse(std::path::Path::new("state.toml"), &large).map(|state| {
        plimsoll_court::Bench::new(
            &state,
            "yunikorn-fair",
            &plimsoll_policies::Registry::new(plimsoll_schedulers::BUILT_IN),
        )
        .map(|_| ())
    });
    let error = error.and_then(|made| made).expect_err("33 bits").to_string();
    assert!(
        error.contains("priority: 2147483648 is not accepted; expected a whole number of at most 32 bits"),
        "{error}"
    );
}
