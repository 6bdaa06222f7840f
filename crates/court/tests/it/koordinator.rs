//! Koordinator: runtime quotas, admission and revocation.
//!
//! Sources: koordinator-sh/koordinator, `runtime_quota_calculator_test.go`, `scale_minquota_when_over_root_res_test.go`,
//! `quota_overuse_revoke_test.go`, `preempt_test.go`, `plugin_test.go`, issues 2393 and 2263. States marked as derived are not from the
//! source: they follow from Koordinator's rules.

use crate::decide;
use std::fmt::Write as _;

/// Returns a state of groups with keys and requests. A request of n is a workload of n tasks with one GPU each.
fn text(gpu: u32, groups: &[(&str, &str, u32)]) -> String {
    let mut text = format!("[capacity]\ngpu = {gpu}\n");
    for (name, keys, _) in groups {
        let _ = write!(text, "[[group]]\nname = \"{name}\"\n{keys}\n");
    }
    for (name, _, request) in groups.iter().filter(|(.., request)| *request > 0) {
        let _ = write!(
            text,
            "[[waiting]]\nname = \"w-{name}\"\ngroup = \"{name}\"\ndemand = {{ gpu = 1 }}\ntasks = {request}\n"
        );
    }
    text
}

fn runtimes(policy: &str, text: &str, names: &[&str]) -> Vec<f64> {
    let answer = decide(policy, text);
    names.iter().map(|name| answer.share(name, "runtime of gpu")).collect()
}

fn keys(min: u32, max: u32, weight: u32) -> String {
    format!("min = {{ gpu = {min} }}\nmax = {{ gpu = {max} }}\nshared_weight = {{ gpu = {weight} }}")
}

/// `TestRuntimeQuotaCalculator_Iteration4AdjustQuota` and `TestRuntimeQuotaCalculator_UpdateOneGroupRuntimeQuota`.
#[test]
fn the_vectors_of_runtime_quotas() {
    let of = |total: u32, groups: &[(u32, u32, u32, u32)]| {
        let names = ["a", "b", "c", "d"];
        let keys: Vec<String> = groups.iter().map(|(min, max, weight, _)| keys(*min, *max, *weight)).collect();
        let groups: Vec<(&str, &str, u32)> =
            groups.iter().zip(&keys).zip(names).map(|((group, keys), name)| (name, keys.as_str(), group.3)).collect();
        runtimes("koordinator", &text(total, &groups), &names[..groups.len()])
    };
    let example = [(10, 100, 40, 5), (15, 100, 60, 20), (20, 100, 50, 40), (15, 100, 80, 70)];
    assert_eq!(of(100, &example), [5.0, 20.0, 35.0, 40.0]);
    assert_eq!(of(100, &[(60, 80, 1, 0), (50, 100, 1, 90)]), [0.0, 90.0]);
    assert_eq!(of(100, &[(50, 100, 1, 90)]), [90.0], "`TestRuntimeQuotaCalculator_DeleteOneGroup`");
    assert_eq!(of(100, &[(60, 80, 1, 30), (50, 100, 1, 90)]), [30.0, 70.0]);
    assert_eq!(
        of(100, &[(60, 80, 1, 60), (50, 100, 1, 90)]),
        [60.0, 50.0],
        "minimums are granted, although they exceed the total"
    );
    assert_eq!(of(120, &[(50, 80, 1, 100), (50, 100, 1, 150)]), [60.0, 60.0]);
}

/// `TestScaleMinQuotaWhenOverRootResInfo_GetScaledMinQuota`: three groups have minimums of 50, and the total is 100. The minimum of one
/// group is exempt from scaling.
#[test]
fn minimums_are_scaled() {
    let min = |more: &str| format!("min = {{ gpu = 50 }}\n{more}");
    let (kept, cut) = (min("scale_min = false"), min(""));
    let groups = [("a", kept.as_str(), 60), ("b", cut.as_str(), 60), ("c", cut.as_str(), 60)];
    let scaled = format!("{}[policy]\nscale_min = true\n", text(100, &groups));
    for policy in ["koordinator", "koordinator@2393"] {
        assert_eq!(runtimes(policy, &scaled, &["a", "b", "c"]), [50.0, 25.0, 25.0]);
    }
    assert_eq!(runtimes("koordinator", &text(100, &groups), &["a", "b", "c"]), [50.0, 50.0, 50.0]);
}

/// Derived: in a tree a group adds its request, cut to its maximum, to the request of its parent, and totals are divided from the top
/// down. In this test three groups below two parents request all 90 GPUs each.
#[test]
fn a_tree_is_not_flat() {
    let groups = [
        ("p1", "shared_weight = { gpu = 1 }", 0),
        ("p2", "shared_weight = { gpu = 1 }", 0),
        ("a", "parent = \"p1\"\nshared_weight = { gpu = 1 }", 90),
        ("b", "parent = \"p1\"\nshared_weight = { gpu = 1 }", 90),
        ("c", "parent = \"p2\"\nshared_weight = { gpu = 1 }\nmax = { gpu = 30 }", 90),
    ];
    let text = text(90, &groups);
    assert_eq!(runtimes("koordinator", &text, &["p1", "p2", "a", "b", "c"]), [60.0, 30.0, 30.0, 30.0, 30.0]);
    let answer = decide("koordinator", &text);
    assert_eq!(answer.launched, [("w-a".to_owned(), 30), ("w-b".to_owned(), 30), ("w-c".to_owned(), 30)]);
}

/// Derived: an unused minimum that is not lent remains reserved for its group.
#[test]
fn an_unused_minimum_is_lent_or_kept() {
    let (lends, keeps) = ("min = { gpu = 6 }", "min = { gpu = 6 }\nlend = false");
    let started = |keys: &str| decide("koordinator", &text(10, &[("a", keys, 0), ("b", "", 20)])).launched[0].1;
    assert_eq!((started(lends), started(keeps)), (10, 4));
}

/// Derived: if the lender requests its minimum again, pods of the other group are revoked, the least urgent and youngest first. Pods that
/// still fit are spared. The room of the revoked pods is available in the next cycle.
#[test]
fn what_was_lent_is_revoked() {
    let base = "[capacity]\ncpu = 10\n[[group]]\nname = \"a\"\nmin = { cpu = 6 }\n[[group]]\nname = \"b\"\n";
    let run = |name: &str, cpu: u32, priority: u32| {
        format!("[[running]]\nname = \"{name}\"\ngroup = \"b\"\ndemand = {{ cpu = {cpu} }}\npriority = {priority}\n")
    };
    let wait = "[[waiting]]\nname = \"w\"\ngroup = \"a\"\ndemand = { cpu = 1 }\ntasks = 6\n";
    let text = base.to_owned() + &run("b1", 3, 1) + &run("b2", 1, 0) + &run("b3", 6, 0) + wait;
    let answer = decide("koordinator", &text);
    // 4 CPUs are left for group b, and without b3 it uses 4.
    assert_eq!((answer.evicted(), answer.launched().len()), (vec!["b3"], 0));
    let text = base.to_owned() + &run("b1", 4, 1) + &run("b2", 5, 0) + &run("b3", 1, 0) + wait;
    assert_eq!(decide("koordinator", &text).evicted(), ["b2", "b3"]);
    let off = format!("{text}[policy]\nrevoke = false\n");
    assert!(decide("koordinator", &off).evicted.is_empty());
}

/// Derived: a pod that its quota admits preempts only less urgent pods of its own group.
#[test]
fn the_urgent_displace_within_their_group() {
    let base =
        "[capacity]\ncpu = 4\n[[group]]\nname = \"a\"\nmax = { cpu = 2 }\n[[group]]\nname = \"b\"\nmax = { cpu = 2 }\n";
    let run = |name: &str, group: &str| {
        format!("[[running]]\nname = \"{name}\"\ngroup = \"{group}\"\ndemand = {{ cpu = 1 }}\n")
    };
    let wait = "[[waiting]]\nname = \"w\"\ngroup = \"a\"\ndemand = { cpu = 1 }\npriority = 5\n";
    let all = [run("a1", "a"), run("a2", "a"), run("b1", "b"), run("b2", "b")].concat();
    let answer = decide("koordinator", &(base.to_owned() + &all + wait));
    assert_eq!((answer.evicted(), answer.launched()), (vec!["a2"], vec!["w"]));
    let off = format!("{base}{all}{wait}[policy]\npreempt = false\n");
    assert!(decide("koordinator", &off).evicted.is_empty());
}

/// Issue 2393: two groups have minimums of 8 GPUs, and the cluster has 15. The minimum is 8; with the fault it is scaled to 7.
#[test]
fn the_minimum_of_issue_2393() {
    let state = include_str!("../../../../experiments/court/koordinator-2393.toml");
    let runtime = |policy: &str| decide(policy, state).share("pub", "runtime of gpu");
    assert_eq!((runtime("koordinator"), runtime("koordinator@2393")), (8.0, 7.0));
}

/// Returns running or waiting pods, each given as `NAME:GROUP:CPU:GIB:PRIORITY` or `NAME:GROUP:CPU:GIB:PRIORITY@MACHINE`, the oldest
/// first.
fn pods(kind: &str, pods: &str) -> String {
    let mut text = String::new();
    for pod in pods.split_whitespace() {
        let (pod, machine) = pod.split_once('@').unwrap_or((pod, ""));
        let [name, group, cpu, memory, priority] = pod.split(':').collect::<Vec<_>>()[..] else { panic!("{pod}") };
        let memory = if memory == "0" { String::new() } else { format!(", memory_gib = {memory}") };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"{name}\"\ngroup = \"{group}\"\ndemand = {{ cpu = {cpu}{memory} }}\npriority = {priority}\n"
        );
        if !machine.is_empty() {
            let _ = writeln!(text, "machine = \"{machine}\"");
        }
    }
    text
}

/// `TestQuotaOverUsedRevokeController_GetToRevokePodList`: four pods in a group with a quota of 50 CPUs and no memory; one of the pods
/// uses memory. In the other cases the quota is 0, with all four pods and without the last one.
#[test]
fn the_vector_of_revocation() {
    let of = |quota: u32, running: &str| {
        let group = format!("[[group]]\nname = \"test1\"\nmax = {{ cpu = {quota}, memory_gib = 0 }}\n");
        let text = "[capacity]\ncpu = 100\nmemory_gib = 1\n".to_owned() + &group + &pods("running", running);
        let text = text + &pods("waiting", "w:test1:100:0:0");
        decide("koordinator", &text).evicted().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = "1:test1:20:0:9 2:test1:10:1:8 3:test1:20:0:7 4:test1:40:0:6";
    assert_eq!(of(50, all), ["2", "4"], "pod 2 uses memory, and pod 4 does not fit beside the others");
    assert_eq!(of(0, all).len(), 4);
    assert_eq!(of(0, "1:test1:20:0:9 2:test1:10:1:8 3:test1:20:0:7").len(), 3);
}

/// `preempt_test.go`, `canPreempt` and `SelectVictimsOnNode`: only less urgent pods of the same group are victims, and a pod that can be
/// spared is not. The cases with several machines or sizes are derived.
#[test]
fn the_vectors_of_preemption() {
    let of = |capacity: &str, most: u32, running: &str, waiting: &str| {
        let groups = ["q1", "q2"].map(|name| format!("[[group]]\nname = \"{name}\"\nmax = {{ cpu = {most} }}\n"));
        let text = capacity.to_owned() + "[policy]\nrevoke = false\n" + &groups.concat();
        let text = text + &pods("running", running) + &pods("waiting", waiting);
        let answer = decide("koordinator", &text);
        let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        (names(answer.evicted()), names(answer.launched()))
    };
    let one = "[capacity]\ncpu = 1\n";
    let w = |priority: u32| format!("w:q1:1:0:{priority}");
    let none = (vec![], vec![]);
    assert_eq!(of(one, 100, "v:q1:1:0:5", &w(5)), none, "a pod of equal priority is no victim");
    assert_eq!(of(one, 100, "v:q1:1:0:9", &w(5)), none, "a more urgent pod is no victim");
    assert_eq!(of(one, 100, "v:q2:1:0:4", &w(5)), none, "a pod of another group is no victim");
    let owned = |evicted: &[&str]| (evicted.iter().map(|name| (*name).to_owned()).collect(), vec!["w".to_owned()]);
    assert_eq!(of(one, 100, "v:q1:1:0:4", &w(5)), owned(&["v"]));
    assert_eq!(
        of("[capacity]\ncpu = 9\n", 100, "v:q1:1:0:4", "w:q1:2:0:5"),
        owned(&[]),
        "the pod fits without victims"
    );
    assert_eq!(
        of("[capacity]\ncpu = 9\n", 2, "v:q1:1:0:4", "w:q1:2:0:5"),
        owned(&["v"]),
        "a victim releases its part of the quota"
    );
    assert_eq!(of("[capacity]\ncpu = 9\n", 1, "v:q1:1:0:4", "w:q1:2:0:5"), none, "the quota is too small");
    // Derived: pods are spared one by one if the new pod fits beside them, the most urgent first and whatever their sizes.
    assert_eq!(of("[capacity]\ncpu = 5\n", 9, "a:q1:1:0:1 b:q1:4:0:2", "w:q1:4:0:5"), owned(&["b"]));
    assert_eq!(of("[capacity]\ncpu = 6\n", 9, "a:q1:1:0:1 b:q1:2:0:2 c:q1:3:0:3", "w:q1:3:0:5"), owned(&["a", "b"]));
    // Derived: machines are compared by their most urgent victim (the less urgent is better), by the number of victims, and by position.
    let two = "machines = \"2x2c4g\"\n";
    assert_eq!(of(two, 9, "a:q1:2:0:2@m1 b:q1:2:0:1@m2", "w:q1:2:0:5"), owned(&["b"]));
    assert_eq!(of(two, 9, "a:q1:1:0:2@m1 b:q1:1:0:2@m1 c:q1:2:0:2@m2", "w:q1:2:0:5"), owned(&["c"]));
    assert_eq!(of(two, 9, "a:q1:2:0:2@m1 b:q1:2:0:2@m2", "w:q1:2:0:5"), owned(&["a"]));
}

/// `TestPlugin_PreFilter`, and `TestPlugin_Prefilter_QuotaNonPreempt` without its labels: a pod starts only within the quota of its
/// group.
#[test]
fn pods_stay_within_quotas() {
    let of = |total: [u32; 2], most: [u32; 2], running: &str, waiting: &str| {
        let capacity =
            format!("[capacity]\ncpu = {}\nmemory_gib = {}\n[policy]\npreempt = false\n", total[0], total[1]);
        let group = format!("[[group]]\nname = \"q\"\nmax = {{ cpu = {}, memory_gib = {} }}\n", most[0], most[1]);
        let text = capacity + &group + &pods("running", running) + &pods("waiting", waiting);
        decide("koordinator", &text).launched().len()
    };
    assert_eq!(of([100, 100], [0, 20], "", "w:q:1:2:0"), 0);
    assert_eq!(of([100, 100], [10, 20], "", "w:q:1:2:0"), 1);
    assert_eq!(of([100, 100], [1, 2], "", "w:q:1:3:0"), 0);
    assert_eq!(of([10, 10], [10, 10], "1:q:2:1:9 2:q:1:1:8 3:q:1:1:7", "4:q:2:2:1"), 1);
    assert_eq!(of([7, 5], [10, 8], "1:q:2:1:9 2:q:2:1:4 3:q:2:2:1", "4:q:2:1:9"), 0);
}
