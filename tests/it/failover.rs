//! The seventeen scenarios of the Fuxi control plane, the purpose of each rule, and random faults.
//!
//! This file is the only source of the expectations: the scenarios and their results in the article on stable resources ("when
//! FuxiMaster, application masters and Tubos fail"), completed by an exhaustive search in a smaller model.

use plimsoll::control::chaos::Chaos;
use plimsoll::control::rules::{Rule, Rules};
use plimsoll::control::scenario::{ProcessState, Scenario};
use plimsoll::control::trial::{Trial, matrix};
use plimsoll::control::world::plan::{Network, Timing};
use plimsoll::control::world::watch::{Fate, Origin, Watch};

fn trial(name: &str) -> Trial {
    let scenario = Scenario::parse(name).expect("a scenario");
    Trial::new(scenario, Rules::ALL, Network::ORDERED, Timing::default())
}

fn rebuilt(watch: &Watch) -> Vec<(&'static str, u32)> {
    watch.rebuilt.iter().map(|(origin, count)| (origin.name(), *count)).collect()
}

/// Returns the numbers of kept, replaced and lost workers for each of the roles sql, web, search and index; web and search are online.
/// The second of all roles is omitted, because it ends before the first fault.
fn fates(watch: &Watch) -> Vec<(u32, u32, u32)> {
    let roles = watch.fates.iter().enumerate().filter(|(role, _)| *role != 1).map(|(_, fate)| fate);
    roles.map(|fate: &Fate| (fate.kept(), fate.replaced(), fate.lost())).collect()
}

#[test]
fn all_seventeen_hold_on_links_that_keep_order_and_on_links_that_do_not() {
    for network in [Network::ORDERED, Network::LOSSY] {
        for scenario in Scenario::all() {
            let trial = Trial::new(scenario, Rules::ALL, network, Timing::default());
            let found: Vec<String> =
                trial.violations().map(|(at, v)| format!("{at}: {} {}", v.invariant, v.what)).collect();
            assert!(found.is_empty(), "{}: {found:?}", scenario.name());
            for (_, outcome) in &trial.outcomes {
                let online = [outcome.watch.fates[2], outcome.watch.fates[3]];
                assert!(online.iter().all(|fate| fate.lost() == 0), "{}", scenario.name());
            }
        }
    }
}

/// No online worker is affected. The affected workers are offline workers on the unreachable machine, or workers of offline application
/// masters that were absent.
#[test]
fn offline_roles_see_what_the_article_says() {
    for scenario in Scenario::all() {
        let plain = Trial::new(scenario, Rules::ALL, Network::ORDERED, Timing::default());
        let gone = scenario.master && scenario.app == ProcessState::Timeout;
        let (sql, index) = match (gone, scenario.tubo) {
            (true, _) => ((0, 4, 0), (0, 2, 0)),
            (false, ProcessState::Timeout) => ((4, 0, 0), (1, 1, 0)),
            (false, _) => ((4, 0, 0), (2, 0, 0)),
        };
        assert_eq!(fates(plain.plain()), [sql, (3, 0, 0), (2, 0, 0), index], "{}", scenario.name());
    }
}

#[test]
fn the_tables_are_rebuilt_from_the_source_that_the_article_names() {
    for (name, sources) in [
        ("fm-failover", vec![Origin::Cap]),
        ("am-failover", vec![]),
        ("tubo-timeout", vec![]),
        ("fm-failover+am-failover", vec![Origin::Cap]),
        ("fm-failover+am-timeout", vec![Origin::Mock]),
        ("fm-failover+tubo-failover", vec![Origin::Cap, Origin::CapCheckpoint]),
        ("fm-failover+tubo-timeout", vec![Origin::Cap, Origin::Hint]),
        ("fm-failover+am-failover+tubo-failover", vec![Origin::Cap, Origin::CapCheckpoint]),
        ("fm-failover+am-failover+tubo-timeout", vec![Origin::Cap, Origin::HintCheckpoint]),
        ("fm-failover+am-timeout+tubo-failover", vec![Origin::CapCheckpoint, Origin::Mock]),
        ("fm-failover+am-timeout+tubo-timeout", vec![Origin::Mock, Origin::HintCheckpoint]),
    ] {
        let trial = trial(name);
        let found: Vec<Origin> = trial.plain().rebuilt.keys().copied().collect();
        assert_eq!(found, sources, "{name}: {:?}", rebuilt(trial.plain()));
    }
    // In another order of events of scenario 17, the Tubo reports before the application master, and its report is accepted.
    let last = trial("fm-failover+am-timeout+tubo-timeout");
    assert!(last.outcomes.iter().any(|(_, outcome)| rebuilt(&outcome.watch) == [("mock", 5)]));
}

/// Checks, for each scenario, the set of necessary rules: without any one of these rules, an online worker is stopped.
#[test]
fn each_rule_is_needed_where_it_should_be() {
    use Rule::{CapCheckpoint, HintCheckpoint, HintRecovery, KeepStable, MockRequest, SurplusToAm, WaitWindow};
    let expected: [&[Rule]; 17] = [
        &[],
        &[],
        &[],
        &[KeepStable],
        &[KeepStable],
        &[KeepStable],
        &[KeepStable],
        &[KeepStable],
        &[KeepStable],
        &[],
        &[MockRequest],
        &[CapCheckpoint, WaitWindow, KeepStable, SurplusToAm],
        &[HintRecovery, KeepStable, SurplusToAm],
        &[CapCheckpoint, WaitWindow, KeepStable, SurplusToAm],
        &[HintCheckpoint, HintRecovery, KeepStable, SurplusToAm],
        &[MockRequest, CapCheckpoint, WaitWindow, KeepStable, SurplusToAm],
        &[MockRequest, HintCheckpoint, HintRecovery, KeepStable, SurplusToAm],
    ];
    let rules: Vec<Rule> = Rule::of_matrix().collect();
    let found = matrix(&Scenario::all(), &rules, Network::ORDERED, Timing::default());
    for ((scenario, row), needed) in Scenario::all().into_iter().zip(found).zip(expected) {
        let harmful: Vec<Rule> =
            rules.iter().zip(row).filter(|(_, broken)| broken.contains("I1")).map(|(rule, _)| *rule).collect();
        assert_eq!(harmful, needed, "{}", scenario.name());
    }
}

#[test]
fn a_broken_scenario_shows_how() {
    let scenario = Scenario::parse("fm-failover+am-timeout").expect("a scenario");
    let rules = Rules::ALL.without(Rule::MockRequest);
    let trace = Trial::new(scenario, rules, Network::ORDERED, Timing::default()).shortest_trace().expect("a trace");
    assert_eq!(trace.violation.invariant, "I1");
    let text: Vec<&str> = trace.entries.iter().map(|entry| entry.text.as_str()).collect();
    assert!(text.iter().any(|line| line.contains("application master absent")), "{text:?}");
    assert!(text.last().is_some_and(|line| line.starts_with("I1 violated")), "{text:?}");
}

#[test]
fn random_faults_violate_nothing() {
    // The test has two threads because the runners of the CI have two cores.
    let play = |from: u64| {
        let (mut failed, mut blacklisted) = (0, 0);
        for seed in (from..10_000).step_by(2) {
            let chaos = Chaos::new(seed, 1 + seed as usize % 6, Rules::ALL, None);
            let world = chaos.run(&|| Ok(())).expect("nobody stops it");
            let found = world.watch.violations.first();
            assert!(found.is_none(), "seed {seed}: {found:?}");
            failed += world.watch.failed;
            blacklisted += world.watch.blacklisted;
        }
        assert!(failed > 10_000 && blacklisted > 500, "{failed} workers failed, {blacklisted} machines blacklisted");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(0));
        play(1);
    });
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..20 {
        let once = Chaos::new(seed, 5, Rules::ALL, None);
        let again = Chaos::new(seed, 5, Rules::ALL, None);
        assert_eq!(once, again);
        let play = |chaos: &Chaos| chaos.run(&|| Ok(())).expect("nobody stops it");
        let (first, second) = (play(&once), play(&again));
        assert_eq!(first.messages(), second.messages());
        assert_eq!(first.watch.fates, second.watch.fates);
    }
}

/// For each missing rule random faults find a violation, and the reduced script still has it. Without sequence numbers, for example,
/// increments are applied late or twice.
#[test]
fn random_faults_find_what_a_missing_rule_does_and_are_made_small() {
    for rule in Rule::of_matrix() {
        let rules = Rules::ALL.without(rule);
        let found = (0..2_000).find_map(|seed| {
            let chaos = Chaos::new(seed, 4, rules, None);
            chaos.violation().map(|violation| (chaos, violation))
        });
        let (chaos, violation) = found.unwrap_or_else(|| panic!("{} is not missed", rule.name()));
        let (small, _) = chaos.shrink(&violation, 300);
        let again = small.violation().expect("still violated");
        assert_eq!(again.invariant, violation.invariant, "{}", rule.name());
        assert!(small.stage.script.strikes.len() <= chaos.stage.script.strikes.len());
        assert!(!small.trace(again).entries.is_empty());
    }
}
