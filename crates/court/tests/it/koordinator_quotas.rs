//! Koordinator's runtime quotas in trees of groups, vector by vector.
//!
//! Source: koordinator-sh/koordinator (August 2026), `core/group_quota_manager_test.go`, `core/runtime_quota_calculator_test.go` and
//! `plugin_test.go`. In the source the shared weight of a group is its maximum. Unless a test states otherwise, minimums are not scaled.

use crate::{Answer, decide};
use std::fmt::Write as _;

/// An amount of CPUs, and of memory in GiB.
type Amount = (u32, u32);

/// A group: its name, parent, maximum, minimum, and request. A `!` after the name marks a group that does not lend.
type Group<'a> = (&'a str, &'a str, Amount, Amount, Amount);

/// A group with a maximum of 0 that requests one CPU. Every state contains it, because without a request there is no decision.
const ASKS: Group = ("asks", "root", (0, 0), (0, 0), (1, 0));

/// Returns a state of groups. Requests are workloads of pods with one CPU or one GiB, so that any part of a request can start.
fn state(total: Amount, groups: &[Group]) -> String {
    let mut text = format!("[capacity]\ncpu = {}\nmemory_gib = {}\n", total.0, total.1);
    let groups: Vec<Group> = groups.iter().copied().chain([ASKS]).collect();
    for (name, parent, max, min, _) in &groups {
        let lend = !name.ends_with('!');
        let name = name.trim_end_matches('!');
        let amounts = |(cpu, memory): &Amount| format!("{{ cpu = {cpu}, memory_gib = {memory} }}");
        let (max, min) = (amounts(max), amounts(min));
        let _ = write!(
            text,
            "[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\nmax = {max}\nmin = {min}\nlend = {lend}\n"
        );
    }
    for (name, .., request) in &groups {
        let name = name.trim_end_matches('!');
        for (key, amount) in [("cpu", request.0), ("memory_gib", request.1)].into_iter().filter(|(_, n)| *n > 0) {
            let _ = write!(
                text,
                "[[waiting]]\nname = \"{key}-{name}\"\ngroup = \"{name}\"\ndemand = {{ {key} = 1 }}\ntasks = {amount}\n"
            );
        }
    }
    text
}

fn quota(answer: &Answer, group: &str) -> (f64, f64) {
    (answer.share(group, "runtime of cpu"), answer.share(group, "runtime of memory"))
}

/// Returns the runtime quotas of the named groups.
fn quotas<const N: usize>(total: Amount, groups: &[Group], names: [&str; N]) -> [Amount; N] {
    let answer = decide("koordinator", &state(total, groups));
    names.map(|name| quota(&answer, name)).map(|(cpu, memory)| (cpu as u32, memory as u32))
}

/// `UpdateQuotaInternalAndRequest`, `UpdateQuotaDeltaRequest`, `UpdateQuotaRequest`.
#[test]
fn what_is_left_goes_by_maximum() {
    let (most, total) = ((96, 160), (96, 160));
    let one =
        |max: Amount, min: Amount, request: Amount| quotas(total, &[("test1", "root", max, min, request)], ["test1"]);
    assert_eq!(one(most, (50, 80), (120, 290)), [(96, 160)], "limited by its maximum");
    assert_eq!(one((64, 100), (60, 90), (120, 290)), [(64, 100)], "limited by a smaller maximum");
    assert_eq!(one(most, (50, 80), (60, 100)), [(60, 100)], "limited by its request");
    let groups = [("test1", "root", most, (50, 80), (120, 200)), ("test2", "root", most, (40, 80), (150, 210))];
    assert_eq!(quotas(total, &groups, ["test1", "test2"]), [(53, 80), (43, 80)]);
}

/// `NotAllowLentResource` and `_2` to `_4`: a group that does not lend receives at least its minimum, and adds at least its minimum to
/// the request of its parent.
#[test]
fn minimums_that_are_not_lent() {
    let two = [("test1", "root", (96, 0), (60, 0), (120, 0)), ("test2!", "root", (96, 0), (40, 0), (0, 0))];
    assert_eq!(quotas((100, 0), &two, ["test1", "test2"]), [(60, 0), (40, 0)]);
    let of = |root: &str, second: &str, request: u32| {
        let most = (96, 0);
        let groups = [
            (root, "root", most, (60, 0), (0, 0)),
            ("child1!", "top", most, (20, 0), (request, 0)),
            (second, "top", most, (20, 0), (0, 0)),
        ];
        quotas((100, 0), &groups, ["top", "child1", "child2"]).map(|(cpu, _)| cpu)
    };
    for (root, second, expected) in [
        ("top!", "child2!", [[60, 20, 20], [60, 40, 20], [80, 60, 20]]),
        ("top", "child2", [[20, 20, 0], [40, 40, 0], [60, 60, 0]]),
        ("top", "child2!", [[40, 20, 20], [60, 40, 20], [80, 60, 20]]),
    ] {
        assert_eq!([0, 40, 60].map(|request| of(root, second, request)), expected, "{root} {second}");
    }
}

/// `ChildRequestAndRequest_All_not_allowLent`: the three groups do not lend. The second group requests 0, 5, 15 and 25.
#[test]
fn requests_go_up_with_minimums() {
    let of = |request: u32| {
        let most = (40, 40);
        let groups = [
            ("1!", "root", most, (20, 20), (0, 0)),
            ("2!", "1", most, (10, 10), (request, request)),
            ("3!", "1", most, (5, 5), (0, 0)),
        ];
        quotas((50, 50), &groups, ["1", "2", "3"]).map(|(cpu, _)| cpu)
    };
    assert_eq!([0, 5, 15, 25].map(of), [[20, 10, 5], [20, 10, 5], [20, 15, 5], [30, 25, 5]]);
}

/// `MultiUpdateQuotaRequest` and `MultiUpdateQuotaRequest2`: in a chain of groups, each group adds its request, cut to its maximum, to
/// the request of its parent. The quota is then divided from the top down.
#[test]
fn a_chain_of_groups() {
    let chain = |top: [Amount; 2], middle: [Amount; 2], leaf: [Amount; 2], request: Amount| {
        let groups = [
            ("test1", "root", top[0], top[1], (0, 0)),
            ("test1-a", "test1", middle[0], middle[1], (0, 0)),
            ("a-123", "test1-a", leaf[0], leaf[1], request),
        ];
        quotas((96, 160), &groups, ["test1", "test1-a", "a-123"])
    };
    let wide = [(96, 160), (50, 80)];
    assert_eq!(chain(wide, wide, wide, (96, 130)), [(96, 130); 3]);
    assert_eq!(chain(wide, wide, [(64, 128), (50, 80)], (96, 130)), [(64, 128); 3]);
    assert_eq!(chain(wide, wide, [(100, 200), (90, 160)], (96, 130)), [(96, 130); 3]);
    let narrow = [[(96, 160), (80, 80)], [(60, 80), (50, 80)], [(30, 60), (20, 40)]];
    for (request, expected) in [((10, 30), (10, 30)), ((25, 45), (25, 45)), ((55, 75), (30, 60))] {
        assert_eq!(chain(narrow[0], narrow[1], narrow[2], request), [expected; 3]);
    }
}

/// `MultiChildMaxGreaterParentMax`, and its variant `_MaxGreaterThanTotalRes`.
#[test]
fn the_maximum_above_is_smaller() {
    let of = |total: Amount, top: [Amount; 2], sub: [Amount; 2], request: Amount| {
        let groups = [("test1", "root", top[0], top[1], (0, 0)), ("sub1", "test1", sub[0], sub[1], request)];
        quotas(total, &groups, ["test1", "sub1"])
    };
    let (top, sub) = ([(600, 4096), (100, 100)], [(500, 2048), (100, 100)]);
    for request in [(500, 4096), (1050, 8192)] {
        assert_eq!(of((300, 8000), top, sub, request), [(300, 2048); 2]);
    }
    let (top, sub) = ([(300, 1024), (176, 756)], [(500, 2048), (100, 512)]);
    for request in [(400, 1500), (800, 3000)] {
        assert_eq!(of((350, 1800), top, sub, request), [(300, 1024); 2]);
    }
}

/// `UpdateQuotaParentName` and `TestPlugin_OnQuotaUpdate`: a group is below one parent, then below the other. In the last case its
/// sibling there requests nothing.
#[test]
fn a_group_moves() {
    let (most, half) = ((96, 160), (50, 80));
    let of = |parent: &str, sibling: Amount| {
        let groups = [
            ("test1", "root", most, (100, 160), (0, 0)),
            ("test1-a", "test1", most, half, (0, 0)),
            ("a-123", parent, most, half, (60, 100)),
            ("test2", "root", most, (100, 160), (0, 0)),
            ("test2-a", "test2", most, half, sibling),
        ];
        quotas((96, 160), &groups, ["test1", "test1-a", "a-123", "test2", "test2-a"])
    };
    assert_eq!(of("test1-a", (0, 0)), [(60, 100), (60, 100), (60, 100), (0, 0), (0, 0)]);
    assert_eq!(of("test1-a", (20, 40)), [(60, 100), (60, 100), (60, 100), (20, 40), (20, 40)]);
    assert_eq!(of("test2", (20, 40)), [(0, 0), (0, 0), (60, 100), (80, 140), (20, 40)]);
    assert_eq!(of("test2", (0, 0)), [(0, 0), (0, 0), (60, 100), (60, 100), (0, 0)]);
}

/// `RefreshAndGetRuntimeQuota_UpdateQuota`, `UpdateOneGroupMaxQuota_`, `UpdateOneGroupMinQuota_` and `DeleteOneGroup_UpdateQuota`.
#[test]
fn two_groups_with_fifty() {
    let of = |max: [u32; 2], min: [u32; 2], request: [u32; 2]| {
        let group = |at: usize| {
            let twice = |amount: u32| (amount, amount);
            (["1", "2"][at], "root", twice(max[at]), twice(min[at]), twice(request[at]))
        };
        let both = quotas((50, 50), &[group(0), group(1)], ["1", "2"]);
        assert!(both.iter().all(|(cpu, memory)| cpu == memory));
        both.map(|(cpu, _)| cpu)
    };
    for (max, min, request, expected) in [
        ([40, 40], [10, 0], [0, 0], [0, 0]),
        ([40, 40], [10, 0], [5, 5], [5, 5]),
        ([40, 40], [10, 0], [30, 30], [30, 20]),
        ([40, 40], [10, 10], [35, 35], [25, 25]),
        ([30, 30], [10, 10], [35, 35], [25, 25]),
        ([50, 50], [10, 10], [35, 35], [25, 25]),
        ([40, 40], [10, 10], [15, 15], [15, 15]),
        ([40, 40], [15, 15], [15, 15], [15, 15]),
        ([40, 40], [20, 20], [15, 15], [15, 15]),
        ([40, 40], [5, 5], [15, 15], [15, 15]),
        ([40, 40], [40, 5], [115, 115], [40, 10]),
        ([40, 40], [10, 10], [0, 15], [0, 15]),
    ] {
        assert_eq!(of(max, min, request), expected, "{max:?} {min:?} {request:?}");
    }
}

/// The calculator's `UpdateOneGroupMinQuota` and `UpdateOneGroupRequest`: requests within minimums are granted, even if the sum of the
/// requests exceeds the total.
#[test]
fn requests_within_minimums() {
    for min in [(70, 7000), (50, 5000)] {
        let group = [("test1", "root", (100, 10_000), min, (70, 7000))];
        assert_eq!(quotas((100, 10_000), &group, ["test1"]), [(70, 7000)]);
    }
    let names = ["1", "2", "3", "4", "5"];
    let of = |each: u32| [1, 2, 3, 4, 5].map(|i| (i * each, i * each * 100));
    let (max, min, request) = (of(100), of(80), of(10));
    let groups: Vec<Group> = (0..5).map(|at| (names[at], "root", max[at], min[at], request[at])).collect();
    assert_eq!(quotas((50, 5000), &groups, names), request);
}

/// `MultiUpdateQuotaRequest_WithScaledMinQuota1` and `MultiUpdateQuotaRequest_WithScaledMinQuota2`: three groups with minimums of 100 are
/// below a group with a minimum of 300. The total is 200, then 600, then 200 again without a request of the second group.
#[test]
fn minimums_are_scaled_in_a_tree() {
    let of = |total: u32, requests: [u32; 3]| {
        let most = (1000, 1000);
        let twice = |amount: u32| (amount, amount);
        let groups = [
            ("p", "root", most, (300, 300), (0, 0)),
            ("a", "p", most, (100, 100), twice(requests[0])),
            ("b", "p", most, (100, 100), twice(requests[1])),
            ("c", "p", most, (100, 100), twice(requests[2])),
        ];
        let text = state((total, total), &groups) + "[policy]\nscale_min = true\n";
        let answer = decide("koordinator", &text);
        ["p", "a", "b", "c"].map(|name| quota(&answer, name).0)
    };
    assert_eq!(
        of(200, [200, 200, 200]),
        [200.0, 66.667, 66.667, 66.666],
        "the rounding remainder is assigned in the order of names"
    );
    assert_eq!(of(600, [200, 200, 200]), [600.0, 200.0, 200.0, 200.0]);
    assert_eq!(of(200, [200, 0, 200]), [200.0, 100.0, 0.0, 100.0]);
}

/// `UpdateClusterTotalResource` and `RootQuotaRuntime`: the usage of the system and default groups is subtracted from the total.
#[test]
fn system_groups_are_taken_out() {
    let of = |used: Amount| {
        let mut text = state((100, 540), &[("a", "root", (1000, 1000), (0, 0), (1000, 1000))]);
        text += "[[group]]\nname = \"system\"\nsystem = true\n[[group]]\nname = \"default\"\nsystem = true\n";
        for (name, part) in [("system", used.0), ("default", used.1)].into_iter().filter(|(_, part)| *part > 0) {
            let demand = format!("cpu = {part}, memory_gib = {}", 3 * part);
            let _ = write!(text, "[[running]]\nname = \"{name}\"\ngroup = \"{name}\"\ndemand = {{ {demand} }}\n");
        }
        let answer = decide("koordinator", &text);
        [quota(&answer, "root"), quota(&answer, "a")]
    };
    assert_eq!(of((0, 0)), [(100.0, 540.0); 2]);
    assert_eq!(of((10, 0)), [(90.0, 510.0); 2]);
    assert_eq!(of((20, 0)), [(80.0, 480.0); 2]);
    assert_eq!(of((20, 10)), [(70.0, 450.0); 2]);
    assert_eq!(of((20, 20)), [(60.0, 420.0); 2]);
}

/// `QuotaAdd_AutoMakeUpScaleRatio2`: a shared weight of 0 in all resources counts as absent, and the maximum is the weight.
/// `TestQuotaInfo_GetRuntime`: a resource that `max` does not name is not limited. Derived: if the shared weight names only some
/// resources, its value for the others is 0.
#[test]
fn weights_and_limits_go_by_what_is_named() {
    let of = |max: &str, weight: &str| {
        let mut text = "[capacity]\ncpu = 64\nmemory_gib = 64\n".to_owned();
        for (name, keys) in
            [("a", format!("max = {max}\n{weight}")), ("b", "max = { cpu = 32, memory_gib = 32 }".into())]
        {
            let demand = "demand = { cpu = 1, memory_gib = 1 }\ntasks = 64";
            let _ = write!(text, "[[group]]\nname = \"{name}\"\n{keys}\n");
            let _ = write!(text, "[[waiting]]\nname = \"{name}\"\ngroup = \"{name}\"\n{demand}\n");
        }
        decide("koordinator", &text)
    };
    let most = "{ cpu = 96, memory_gib = 96 }";
    for weight in ["", "shared_weight = { cpu = 0, memory_gib = 0 }"] {
        let answer = of(most, weight);
        assert_eq!([quota(&answer, "a"), quota(&answer, "b")], [(48.0, 48.0), (16.0, 16.0)]);
    }
    let answer = of(most, "shared_weight = { cpu = 96 }");
    assert_eq!([quota(&answer, "a"), quota(&answer, "b")], [(48.0, 0.0), (16.0, 32.0)]);
    let answer = of("{ cpu = 96 }", "");
    assert_eq!(answer.launched, [("a".to_owned(), 48), ("b".to_owned(), 16)]);
    assert_eq!(answer.share("a", "runtime of cpu"), 48.0);
}

/// Derived: the groups below a parent share a resource that the parent's maximum does not name.
#[test]
fn what_is_not_limited_is_shared_below() {
    let groups = "[[group]]\nname = \"p\"\nmax = { cpu = 4 }\n[[group]]\nname = \"a\"\nparent = \"p\"\n\
                  [[group]]\nname = \"b\"\nparent = \"p\"\nmax = { cpu = 4, memory_gib = 9 }\n";
    let wait = |group: &str| {
        format!(
            "[[waiting]]\nname = \"{group}\"\ngroup = \"{group}\"\ndemand = {{ cpu = 1, memory_gib = 2 }}\ntasks = 9\n"
        )
    };
    let text = format!("[capacity]\ncpu = 8\nmemory_gib = 18\n{groups}{}{}", wait("a"), wait("b"));
    let answer = decide("koordinator", &text);
    assert_eq!([quota(&answer, "a"), quota(&answer, "b")], [(2.667, 12.0), (1.333, 6.0)]);
}
