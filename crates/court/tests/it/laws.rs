//! Laws of KAI and Volcano on random states with keys of their queues: limits hold, every task either runs or waits, orders are
//! antisymmetric, and names do not matter.

use std::fmt::Write as _;

use plimsoll_court::{Bench, Round, Situation, State, Verdict, judge};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::state;

/// Variants that stop a queue only once it exceeds its limit, and do not check the limit for a single task.
const UNLIMITED: &[&str] = &["volcano-proportion@1083"];

type Keys = fn(&mut ChaCha8Rng) -> String;

fn amounts(rng: &mut ChaCha8Rng, key: &str, least: u32, most: u32) -> String {
    if rng.random_bool(0.5) {
        return String::new();
    }
    format!("{key} = {{ cpu = {}, memory_gib = {} }}\n", rng.random_range(least..=most), rng.random_range(least..=most))
}

fn kai(rng: &mut ChaCha8Rng) -> String {
    let (deserved, limit) = (amounts(rng, "deserved", 0, 4), amounts(rng, "limit", 0, 8));
    let (weight, priority, stays) = (rng.random_range(0..3), rng.random_range(0..2), rng.random_bool(0.2));
    format!("{deserved}{limit}weight = {weight}\npriority = {priority}\npreemptible = {}\n", !stays)
}

fn volcano(rng: &mut ChaCha8Rng) -> String {
    let amounts = format!(
        "{}{}{}",
        amounts(rng, "deserved", 0, 4),
        amounts(rng, "guarantee", 0, 2),
        amounts(rng, "capability", 2, 8)
    );
    let order = ["best-effort-fifo", "strict-fifo"][usize::from(rng.random_bool(0.1))];
    format!(
        "{amounts}weight = {}\nmin_available = {}\norder = \"{order}\"\n",
        rng.random_range(1..4),
        rng.random_range(1..3)
    )
}

fn actions(rng: &mut ChaCha8Rng) -> String {
    let all = [
        "[\"allocate\"]",
        "[\"allocate\", \"reclaim\"]",
        "[\"allocate\", \"preempt\", \"reclaim\"]",
        "[\"reclaim\", \"allocate\"]",
        "[\"allocate\", \"preempt\"]",
    ];
    format!("[policy]\nactions = {}\n", all[rng.random_range(0..all.len())])
}

/// Draws a small state: two to four queues, and one to seven workloads of up to three tasks. If it is a tree, the queues after the second
/// are below the first.
fn draw(rng: &mut ChaCha8Rng, keys: Keys, policy: &str, tree: bool) -> String {
    let (cpu, memory) = (rng.random_range(3..10u32), rng.random_range(3..10u32));
    let two = rng.random_bool(0.5);
    let mut text = format!("names = true\n[capacity]\ncpu = {cpu}\nmemory_gib = {memory}\n{policy}");
    let queues = rng.random_range(2..5);
    let tree = tree && queues > 2 && rng.random_bool(0.5);
    for queue in 0..queues {
        let parent = if tree && queue > 1 { "parent = \"q0\"\n" } else { "" };
        let _ = write!(text, "[[group]]\nname = \"q{queue}\"\n{parent}{}", keys(rng));
    }
    let (mut free, mut free_memory) = (cpu, memory);
    for at in 0..rng.random_range(1..8) {
        let (need, more) = (rng.random_range(1..=3), if two { rng.random_range(1..=3) } else { 1 });
        let tasks = rng.random_range(1..4);
        let gang = rng.random_bool(0.3) && need * tasks <= cpu && more * tasks <= memory;
        let runs = need * tasks <= free && more * tasks <= free_memory && rng.random_bool(0.7);
        if runs {
            (free, free_memory) = (free - need * tasks, free_memory - more * tasks);
        }
        let _ = write!(
            text,
            "[[{}]]\nname = \"w{at}\"\ngroup = \"q{}\"\ndemand = {{ cpu = {need}, memory_gib = {more} }}\npriority = {}\ntasks = {tasks}\n{}",
            if runs { "running" } else { "waiting" },
            rng.random_range(usize::from(tree)..queues),
            rng.random_range(0..3),
            if gang { "gang = true\n" } else { "" }
        );
    }
    text
}

/// Returns the allocation of each queue, with the queues below it.
fn held(state: &State, situation: &Situation) -> Vec<[u64; 2]> {
    let groups = &state.queues.groups;
    let mut held = vec![[0; 2]; groups.len()];
    for run in &situation.running {
        let workload = &state.workloads[run.workload];
        let mut at = groups.iter().position(|group| Some(&group.name) == workload.group.as_ref());
        while let Some(queue) = at {
            (0..2).for_each(|d| held[queue][d] += workload.demand.0[d] * u64::from(run.tasks()));
            at = groups[queue].parent;
        }
    }
    held
}

/// Checks that no start exceeds a limit: an allocation above the limit must not be larger than before the round.
fn check_limits(state: &State, round: &Round, before: &[[u64; 2]], after: &[[u64; 2]]) -> Result<(), String> {
    for standing in &round.standings {
        let Some(at) = state.queues.groups.iter().position(|group| group.name == standing.name) else { continue };
        for d in 0..2 {
            if standing.limit[d].is_some_and(|limit| after[at][d] > limit.max(before[at][d])) {
                return Err(format!(
                    "{} has {:?} allocated, with limits of {:?}",
                    standing.name, after[at], standing.limit
                ));
            }
        }
    }
    Ok(())
}

/// Returns the policies with names that begin with `start`, each followed by its variants.
fn names(start: &str) -> Vec<String> {
    let rows = BUILT_IN.rows().filter(|row| row.name.starts_with(start));
    let of = |row: &'static plimsoll_policies::PolicyRow| {
        let variants = row.variants.iter().map(move |(variant, _)| format!("{}@{variant}", row.name));
        std::iter::once(row.name.to_owned()).chain(variants)
    };
    rows.flat_map(of).collect()
}

fn check(start: &str, keys: Keys, states: u32) {
    let registry = Registry::new(BUILT_IN);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (mut started, mut stopped) = (0u32, 0u32);
    for name in names(start) {
        for _ in 0..states {
            let policy = if start == "volcano" { actions(&mut rng) } else { String::new() };
            let text = draw(&mut rng, keys, &policy, !name.starts_with("volcano-proportion"));
            let state = state(&text);
            let bench = Bench::new(&state, &name, &registry).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let mut situation = Situation::first(&state);
            let tasks = |situation: &Situation| -> u32 {
                let running: u32 = situation.running.iter().map(|run| run.tasks()).sum();
                running + situation.waiting.iter().map(|wait| wait.tasks).sum::<u32>()
            };
            let all = tasks(&situation);
            for _ in 0..5 {
                let before = held(&state, &situation);
                let round = bench.play(&mut situation).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
                started += round.launched.len() as u32;
                stopped += round.evicted.len() as u32;
                assert_eq!(tasks(&situation), all, "{name}: every task runs or waits\n{text}");
                let after = held(&state, &situation);
                let limited = check_limits(&state, &round, &before, &after);
                if !UNLIMITED.contains(&name.as_str()) {
                    limited.unwrap_or_else(|problem| panic!("{name}: {problem}\n{text}"));
                }
                situation.pass(&state);
            }
            let verdict = judge(&bench, 60).unwrap_or_else(|error| panic!("{name}: {error}\n{text}")).verdict;
            let wrong = matches!(verdict, Verdict::DependsOnNames | Verdict::OrderNotAntisymmetric);
            assert!(!wrong, "{name}: {}\n{text}", verdict.name());
        }
    }
    assert!(started > 2 * states && stopped > states, "{started} starts, {stopped} stops");
}

#[test]
fn laws_of_kai() {
    check("kai", kai, 300);
}

#[test]
fn laws_of_volcano() {
    check("volcano", volcano, 200);
}

/// Checks 1,500 random states per policy. In some of them the policies without the guard oscillate, which shows that the states are hard
/// enough.
#[test]
fn the_guards_of_volcano_never_go_round() {
    let registry = Registry::new(BUILT_IN);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut rounds = 0;
    for name in ["volcano-drf", "volcano-proportion", "volcano-capacity"] {
        for _ in 0..1_500 {
            let policy = actions(&mut rng);
            let text = draw(&mut rng, volcano, &policy, name != "volcano-proportion");
            let state = state(&text);
            let verdict = |policy: &str| {
                let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{error}"));
                judge(&bench, 60).unwrap_or_else(|error| panic!("{error}\n{text}")).verdict
            };
            let guarded = verdict(&format!("{name}@guarded"));
            assert!(!matches!(guarded, Verdict::Livelock | Verdict::Undecided), "{name}: {}\n{text}", guarded.name());
            rounds += u32::from(verdict(name) == Verdict::Livelock);
        }
    }
    assert!(rounds >= 2, "the policies without the guard oscillate in {rounds} states");
}
