//! Unusual but valid states: workloads that are too large, gangs on several machines, users given by patterns, limits of lending.

use plimsoll_court::{Bench, Situation, judge};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;

use crate::{decide, state};

fn verdict(policy: &str, text: &str) -> &'static str {
    let (state, registry) = (state(text), Registry::new(BUILT_IN));
    let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{error}"));
    judge(&bench, 100).unwrap_or_else(|error| panic!("{error}\n{text}")).verdict.name()
}

/// Returns the running workloads with their numbers of tasks after `rounds` rounds.
fn running(policy: &str, text: &str, rounds: u32) -> Vec<(String, u32)> {
    let (state, registry) = (state(text), Registry::new(BUILT_IN));
    let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{error}"));
    let mut situation = Situation::first(&state);
    for _ in 0..rounds {
        bench.play(&mut situation).unwrap_or_else(|error| panic!("{error}"));
        situation.pass(&state);
    }
    situation.running.iter().map(|run| (state.workloads[run.workload].name.clone(), run.tasks())).collect()
}

#[test]
fn what_is_larger_than_the_cluster_waits_wherever_it_stands() {
    let text = "[capacity]\ncpu = 2\n[[group]]\nname = \"a\"\n[[waiting]]\nname = \"big\"\ngroup = \"a\"\n\
        demand = { cpu = 5 }\nage_s = 5\n[[waiting]]\nname = \"ok\"\ngroup = \"a\"\ndemand = { cpu = 1 }\n";
    for text in [
        text.to_owned(),
        text.replace("age_s = 5\n", "gang = true\n"),
        text.replace("name = \"ok\"", "name = \"ok\"\nage_s = 9"),
    ] {
        let answer = decide("kueue", &text);
        assert_eq!(answer.launched(), ["ok"], "{text}");
        assert_eq!(answer.round.waits.len(), 1);
        assert_eq!(verdict("drf", &text), "settled", "{text}");
    }
}

/// A gang on two machines is stopped only as a whole.
#[test]
fn a_gang_over_machines_stays_together() {
    let text = "machines = \"2x4c\"\n[[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\nnominal = { cpu = 4 }\nreclaim = \"any\"\n\
        [[waiting]]\nname = \"gang\"\ngroup = \"a\"\ngang = true\ntasks = 2\ndemand = { cpu = 4 }\n\
        [[arrive]]\nat_round = 2\nname = \"urgent\"\ngroup = \"b\"\npriority = 1\ndemand = { cpu = 4 }\n";
    let named =
        |list: &[(&str, u32)]| list.iter().map(|(name, tasks)| ((*name).to_owned(), *tasks)).collect::<Vec<_>>();
    assert_eq!(running("kueue", text, 1), named(&[("gang", 2)]));
    assert_eq!(running("kueue", text, 2), named(&[]));
    assert_eq!(running("kueue", text, 3), named(&[("urgent", 1)]));
}

/// Quotas admit the workload `wide`, but no machine has room for it. The workloads behind it and in the other queue start.
#[test]
fn a_head_without_a_machine_holds_up_nobody() {
    let text = "machines = \"2x4c\"\n[[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\n\
        [[running]]\nname = \"r1\"\ngroup = \"b\"\nmachine = \"m1\"\ndemand = { cpu = 2 }\n\
        [[running]]\nname = \"r2\"\ngroup = \"b\"\nmachine = \"m2\"\ndemand = { cpu = 2 }\n\
        [[waiting]]\nname = \"wide\"\ngroup = \"a\"\ndemand = { cpu = 4 }\nage_s = 9\n\
        [[waiting]]\nname = \"s1\"\ngroup = \"a\"\ndemand = { cpu = 1 }\n[[waiting]]\nname = \"s2\"\ngroup = \"b\"\ndemand = { cpu = 1 }\n";
    for policy in ["kueue", "kueue@guarded"] {
        let mut launched: Vec<String> = decide(policy, text).launched().into_iter().map(str::to_owned).collect();
        launched.sort();
        assert_eq!(launched, ["s1", "s2"]);
        assert_eq!(verdict(policy, text), "settled");
    }
}

#[test]
fn what_others_do_not_lend_is_no_idle_room() {
    let text = "[capacity]\ncpu = 6\n[[group]]\nname = \"a\"\nnominal = { cpu = 2 }\n[[group]]\nname = \"b\"\nnominal = { cpu = 4 }\n\
        lend_limit = { cpu = 0 }\n[[running]]\nname = \"r\"\ngroup = \"a\"\ndemand = { cpu = 2 }\n\
        [[waiting]]\nname = \"w\"\ngroup = \"a\"\ndemand = { cpu = 2 }\n";
    assert_eq!(verdict("kueue", text), "settled");
    assert_eq!(
        verdict("kueue", &text.replace("lend_limit = { cpu = 0 }", "")),
        "settled",
        "with lending, a borrows from b"
    );
}

#[test]
fn users_by_pattern_may_have_other_names() {
    let text = "names = true\n[capacity]\ncpu = 4\n[[group]]\nname = \"a\"\nusers = [\"batch-*\"]\n[[group]]\nname = \"b\"\n\
        [[waiting]]\nname = \"w\"\nuser = \"batch-1\"\ndemand = { cpu = 1 }\n";
    assert_eq!(verdict("kueue", text), "settled");
}

/// A victim with `resubmit = false` does not wait again. A victim with a grace period does not start again while it ends.
#[test]
fn who_is_stopped_for_good_is_gone() {
    let text = "[capacity]\ncpu = 4\n[[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\nnominal = { cpu = 4 }\nreclaim = \"any\"\n\
        [[running]]\nname = \"v\"\ngroup = \"a\"\ndemand = { cpu = 4 }\n";
    let w = "[[waiting]]\nname = \"w\"\ngroup = \"b\"\ndemand = { cpu = 2 }\n";
    for (more, rounds) in [("resubmit = false\n", 3), ("grace = 2\n", 5)] {
        let running = running("kueue", &format!("{text}{more}{w}"), rounds);
        assert_eq!(running, [("w".to_owned(), 1)], "{more}");
    }
}

/// The guard of Kueue prevents a livelock also if a user has several workloads.
#[test]
fn a_user_with_several_workloads_makes_no_livelock() {
    let text = "[capacity]\ncpu = 1\ngpu = 6\n[[group]]\nname = \"a\"\nnominal = { cpu = 1 }\n[[group]]\nname = \"b\"\n\
        nominal = { gpu = 3 }\nreclaim = \"any\"\n[[group]]\nname = \"c\"\n\
        [[running]]\nname = \"v\"\ngroup = \"a\"\nuser = \"u\"\npriority = 1\ndemand = { gpu = 6 }\nage_s = 10\n\
        [[waiting]]\nname = \"w1\"\ngroup = \"a\"\nuser = \"u\"\npriority = 1\ndemand = { cpu = 1 }\n\
        [[waiting]]\nname = \"w\"\ngroup = \"b\"\ndemand = { gpu = 3 }\n[[waiting]]\nname = \"y\"\ngroup = \"c\"\ndemand = { cpu = 1 }\n";
    assert_ne!(verdict("kueue@guarded", text), "livelock");
}
