//! Laws on random states: no task starts without room, every task either runs or waits, and Kueue with its guard never oscillates.

use std::fmt::Write as _;

use plimsoll_court::{Bench, Situation, Verdict, judge};
use plimsoll_policies::{PolicySpec, Registry};
use plimsoll_schedulers::BUILT_IN;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::state;

/// Draws a small state: two or three queues with keys from `keys`, and one to six workloads. In half of the states the workloads need no
/// more than 1 GiB of memory each.
fn draw(rng: &mut ChaCha8Rng, keys: &dyn Fn(&mut ChaCha8Rng) -> String) -> String {
    let (cpu, memory) = (rng.random_range(3..10u32), rng.random_range(3..10u32));
    let two = rng.random_bool(0.5);
    let mut text = format!("[capacity]\ncpu = {cpu}\nmemory_gib = {memory}\n");
    let queues = rng.random_range(2..4);
    for queue in 0..queues {
        let _ = write!(text, "[[group]]\nname = \"q{queue}\"\n{}", keys(rng));
    }
    let (mut free, mut free_memory) = (cpu, memory);
    for at in 0..rng.random_range(1..7) {
        let (need, more) = (rng.random_range(1..=cpu), if two { rng.random_range(1..=memory) } else { 1 });
        let runs = need <= free && more <= free_memory && rng.random_bool(0.7);
        if runs {
            (free, free_memory) = (free - need, free_memory - more);
        }
        let _ = write!(
            text,
            "[[{}]]\nname = \"w{at}\"\ngroup = \"q{}\"\ndemand = {{ cpu = {need}, memory_gib = {more} }}\npriority = {}\n",
            if runs { "running" } else { "waiting" },
            rng.random_range(0..queues),
            rng.random_range(0..3)
        );
    }
    text
}

/// Draws the keys of a queue of Kueue.
fn kueue(rng: &mut ChaCha8Rng) -> String {
    let within = ["never", "lower-priority"][rng.random_range(0..2)];
    let reclaim = ["never", "lower-priority", "any"][rng.random_range(0..3)];
    let nominal = if rng.random_bool(0.5) {
        format!("nominal = {{ cpu = {} }}\n", rng.random_range(0..4))
    } else {
        String::new()
    };
    format!("{nominal}within = \"{within}\"\nreclaim = \"{reclaim}\"\nweight = {}\n", rng.random_range(0..3))
}

fn nothing(_: &mut ChaCha8Rng) -> String {
    String::new()
}

/// Plays six rounds on each of 60 random states under every policy with queues, and under all variants.
#[test]
fn nothing_starts_where_there_is_no_room() {
    let registry = Registry::new(BUILT_IN);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut names = Vec::new();
    for spec in BUILT_IN.examples().into_iter().filter(PolicySpec::is_queued) {
        let row = spec.row();
        names.push(row.name.to_owned());
        names.extend(row.variants.iter().map(|(variant, _)| format!("{}@{variant}", row.name)));
    }
    let mut started = 0;
    for name in &names {
        for _ in 0..60 {
            let text = draw(&mut rng, if name.starts_with("kueue") { &kueue } else { &nothing });
            let state = state(&text);
            let bench = Bench::new(&state, name, &registry).unwrap_or_else(|error| panic!("{error}"));
            let mut situation = Situation::first(&state);
            for _ in 0..6 {
                let round = bench.play(&mut situation).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
                started += round.launched.len();
                let mut held = [0; 2];
                for run in &situation.running {
                    let demand = state.workloads[run.workload].demand.0;
                    (0..2).for_each(|d| held[d] += demand[d] * u64::from(run.tasks()));
                }
                let capacity = state.cluster.total().0;
                assert!((0..2).all(|d| held[d] <= capacity[d]), "{name} allocates {held:?}\n{text}");
                let all = situation.running.iter().map(|run| (run.workload, run.tasks()));
                let all = all.chain(situation.waiting.iter().map(|wait| (wait.workload, wait.tasks)));
                let tasks: u32 = all.map(|(_, tasks)| tasks).sum();
                assert_eq!(tasks as usize, state.workloads.len(), "{name}: every task runs or waits\n{text}");
                situation.pass(&state);
            }
        }
    }
    assert!(started > 10 * names.len(), "{started} starts under {} policies", names.len());
}

/// Checks 3,000 random states with weights, preemption rules and two resources. Without the guard Kueue oscillates in some of them, which
/// shows that the states are hard enough.
#[test]
fn the_guard_of_kueue_never_goes_round() {
    let registry = Registry::new(BUILT_IN);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut rounds = 0;
    for _ in 0..3_000 {
        let text = draw(&mut rng, &kueue);
        let state = state(&text);
        let verdict = |policy: &str| {
            let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{error}"));
            judge(&bench, 60).unwrap_or_else(|error| panic!("{error}\n{text}")).verdict
        };
        let guarded = verdict("kueue@guarded");
        assert!(!matches!(guarded, Verdict::Livelock | Verdict::Undecided), "{}\n{text}", guarded.name());
        rounds += u32::from(verdict("kueue") == Verdict::Livelock);
    }
    assert!(rounds >= 3, "without the guard Kueue oscillates in {rounds} states");
}
