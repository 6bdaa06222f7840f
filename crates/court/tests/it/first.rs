//! Decisions of a policy without queues (`drf`), and the quantities that policies with queues report.

use crate::decide;

#[test]
fn drf_serves_the_user_behind() {
    let text = "[capacity]\ncpu = 9\nmemory_gib = 18\n\
        [[running]]\nname = \"a1\"\nuser = \"A\"\ndemand = { cpu = 1, memory_gib = 4 }\n\
        [[running]]\nname = \"b1\"\nuser = \"B\"\ndemand = { cpu = 3, memory_gib = 1 }\n\
        [[waiting]]\nname = \"b2\"\nuser = \"B\"\ndemand = { cpu = 3, memory_gib = 1 }\ntasks = 9\n\
        [[waiting]]\nname = \"a2\"\nuser = \"A\"\ndemand = { cpu = 1, memory_gib = 4 }\ntasks = 9\n";
    let answer = decide("drf", text);
    assert_eq!(answer.launched, [("a2".to_owned(), 2), ("b2".to_owned(), 1)]);
    assert!(answer.evicted.is_empty());
}

/// The quantities of a policy's order are also reported for a queue with only running workloads, and for a queue without workloads.
#[test]
fn shares_of_those_that_run() {
    let state = "[capacity]\ncpu = 10\n[[group]]\nname = \"a\"\n{a}[[group]]\nname = \"b\"\n{b}\
        [[running]]\nname = \"r\"\ngroup = \"a\"\ndemand = { cpu = 4 }\n";
    let with = |a: &str, b: &str| state.replace("{a}", a).replace("{b}", b);
    let (own, other) = ("nominal = { cpu = 2 }\n", "nominal = { cpu = 8 }\n");
    assert_eq!(decide("kueue", &with(own, other)).share("a", "share"), 200.0);
    assert_eq!(decide("yunikorn-fair", &with("guaranteed = { cpu = 8 }\n", "")).share("a", "ratio"), 0.5);
    let cost = decide("armada", &with("", "")).share("a", "cost");
    assert!((cost - 0.4).abs() < 1e-9, "{cost}");
    assert_eq!(decide("kai", &with("", "")).share("a", "fair cpu"), 4.0);
    assert_eq!(decide("yarn-fair", &with("", "")).share("a", "dominant share"), 0.4);
    for policy in ["volcano-drf", "volcano-proportion", "volcano-capacity", "yarn-capacity", "koordinator"] {
        let standings = decide(policy, &with("", "")).round.standings;
        let named: Vec<_> = standings.iter().map(|standing| standing.name.as_str()).collect();
        assert_eq!(named, ["root", "a", "b"], "{policy}");
    }
}
