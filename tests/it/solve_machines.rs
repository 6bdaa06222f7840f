//! `plimsoll solve` on different machines: the papers' examples, invalid machines, and policies that require one pool.

use crate::replay::{plimsoll, run};
use crate::solve::{Wrong, all_refused, instance, refusal, solved, users};

/// The example of DRFH is from Wang, Li and Liang, INFOCOM 2014. The other allocations are computed by hand from the definitions.
const EXACT: [(&str, &str, &[&str]); 6] = [
    ("drfh-example", "drfh", &["10", "10"]),
    ("drfh-example", "psdsf", &["10", "10"]),
    ("drfh-example", "tsf", &["10", "10"]),
    ("constrained-slots", "tsf", &["3/2", "3/2", "1"]),
    ("constrained-slots", "cmmf:slot", &["3/2", "3/2", "1"]),
    ("constrained-slots", "drfh", &["3/2", "3/2", "1"]),
];

#[test]
fn the_papers_examples_come_out_as_fractions() {
    for (name, policy, tasks) in EXACT {
        let result = solved(&instance(name), &["--policy", policy]);
        let exact: Vec<&str> = users(&result).iter().map(|user| user["tasks_exact"].as_str().expect("exact")).collect();
        assert_eq!(exact, tasks, "{name} under {policy}");
    }
}

/// Checks the machines of each user's tasks, and policies that cannot distinguish machines.
#[test]
fn machines_that_differ_are_told_apart() {
    let slots = solved(&instance("constrained-slots"), &["--policy", "tsf"]);
    let third = &users(&slots)[2];
    assert_eq!(third["machines"], serde_json::json!({ "special": 1, "plain": 0 }));
    assert_eq!(third["machines_exact"]["special"], "1");
    assert_eq!(third["stopped_by"], "resource:slot");
    let plain: f64 = users(&slots)[..2].iter().map(|user| user["machines"]["plain"].as_f64().expect("a number")).sum();
    assert_eq!(plain, 3.0);
    let both = solved(&instance("drfh-example"), &["--policy", "drfh"]);
    assert_eq!(users(&both)[0]["stopped_by"], "machines");
    assert_eq!(users(&both)[0]["dominant_share_exact"], "5/7");
    // The default is all suitable policies. Policies that would run tasks on forbidden machines are excluded.
    let names = |name: &str| -> Vec<String> {
        let all = solved(&instance(name), &[]);
        let all = all.as_array().expect("a list of policies");
        all.iter().map(|one| one["policy"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names("constrained-slots"), ["drfh", "tsf", "psdsf"]);
    assert_eq!(names("drfh-example"), ["asset", "drf", "ceei", "bmf", "drfh", "tsf", "psdsf"]);
    assert_eq!(names("drf-example"), ["asset", "drf", "ceei", "bmf"]);
    let refused = |name: &str, args: &[&str], words: &[&str]| {
        let output = run(plimsoll(&["solve"]).arg(instance(name)).args(args));
        assert_eq!(refusal(&output, words), Ok(()), "{args:?}");
    };
    refused("constrained-slots", &["--policy", "drf"], &["one pool", "user 'C' may run on some of them only", "drfh"]);
    for (name, policy) in [("constrained-slots", "drfh"), ("drfh-example", "drfh"), ("drfh-example", "psdsf")] {
        refused(name, &["--policy", policy, "--whole-tasks"], &[&format!("'{policy}' with --whole-tasks"), "one pool"]);
    }
    let run_of =
        |policy: &str| run(&mut plimsoll(&["replay", "no-such-trace.csv", "--machines", "2x4c8g", "--policy", policy]));
    for (policy, instead) in [("drfh", "drf"), ("cmmf:cpu", "maxmin:cpu")] {
        assert_eq!(refusal(&run_of(policy), &[&format!("'{policy}'"), "a policy for a run", instead]), Ok(()));
    }
}

const WRONG: [Wrong; 11] = [
    (
        "machines that do not add up",
        "machine = [{ count = 2, capacity = { cpu = 4 } }]\n[capacity]\ncpu = 9\n\
      [[user]]\ndemand = { cpu = 1 }\n",
        &["line 1, column 1: machine, sum of cpu: 8 is not the amount in [capacity]; expected 9"],
    ),
    ("no machines", "machine = []\n", &["line 1", "machine: the list is empty"]),
    ("a number of machines", "machine = 4\n[capacity]\ncpu = 9\n", &["line 1", "machine: 4 is no list of machines"]),
    ("the former key", "[[machines]]\n", &["line 1", "'machines' is no key (did you mean 'machine'?)"]),
    (
        "a fractional number of machines",
        "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n[[machine]]\ncount = 1.5\n",
        &["line 6", "machine 'machine 1', count: 1.5 is no number of machines"],
    ),
    (
        "machines without capacity",
        "machine = [{ count = 2 }]\n",
        &["line 1", "machine 'machine 1', capacity: is missing"],
    ),
    (
        "a resource that the cluster lacks",
        "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n[[machine]]\n\
      capacity = { cpu = 9, gpu = 1 }\n",
        &["line 6", "machine 'machine 1', capacity: 'gpu' is no resource"],
    ),
    (
        "a machine's name twice",
        "[[machine]]\nname = \"m\"\ncapacity = { cpu = 1 }\n[[machine]]\nname = \"m\"\ncapacity = { cpu = 1 }\n",
        &["line 5, column 8: machine 'm': machine 2 has the name of an earlier one"],
    ),
    (
        "an unknown machine",
        "[[machine]]\nname = \"m1\"\ncapacity = { cpu = 1 }\n[[user]]\ndemand = { cpu = 1 }\non = [\"m2\"]\n",
        &["line 6, column 7: user 'user 1', on: 'm2' is no machine; did you mean 'm1'? expected one of m1"],
    ),
    (
        "an empty list of allowed machines",
        "[[machine]]\ncapacity = { cpu = 1 }\n[[user]]\ndemand = { cpu = 1 }\non = []\n",
        &["line 5, column 6: user 'user 1', on: the list is empty"],
    ),
    (
        "an allowed machine of a pool",
        "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\non = [\"m1\"]\n",
        &["line 5", "user 'user 1', on: there are no machines"],
    ),
];

#[test]
fn every_wrong_machine_is_refused_with_its_place() {
    all_refused("", &WRONG);
}
