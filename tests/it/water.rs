//! Tests of the water level: all methods agree with each other and with the definition.

use std::collections::BTreeMap;

use plimsoll::fair::Exact;
use plimsoll::fair::water::{Group, GroupId, LIMIT, Level, ReducedGroup, Semantics, UnusedMin, Water, by_selection};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::water_anew::{by_rounds, by_sort};

const BOTH: [Semantics; 2] = [Semantics::MinPlusShare, Semantics::MaxMinLevel];

/// Returns a pool of these groups, in order.
fn water(semantics: Semantics, total: u64, groups: &[Group]) -> Water {
    let mut water = Water::new(semantics);
    water.set_total(total);
    for (at, group) in groups.iter().enumerate() {
        assert_eq!(water.join(group).expect("within limits").index(), at);
    }
    water
}

/// Returns the runtime quotas as fractions. Checks that every method computes the same level.
fn runtimes(semantics: Semantics, total: u64, groups: &[Group]) -> Vec<Exact> {
    let mut water = water(semantics, total, groups);
    let level = water.level();
    let standings: Vec<ReducedGroup> = groups.iter().map(ReducedGroup::from_group).collect();
    agree(semantics, total, &standings, level);
    assert_eq!(level.exact(), defined(semantics, total, &standings));
    (0..groups.len()).map(|at| water.runtime_exact(GroupId(at as u32))).collect()
}

/// Checks that the methods without stored state compute this level.
fn agree(semantics: Semantics, total: u64, standings: &[ReducedGroup], level: Level) {
    let of = |level: Level| level.exact();
    assert_eq!(of(by_sort(semantics, standings, total).expect("within limits")), of(level), "sort {standings:?}");
    assert_eq!(of(by_selection(semantics, standings, total).expect("within limits")), of(level), "selection");
    let rounds = by_rounds(semantics, standings, total).expect("within limits");
    assert_eq!(of(rounds.level), of(level), "rounds: {semantics:?} {total} {standings:?}");
    assert!(rounds.rounds <= standings.len(), "{} rounds for {} groups", rounds.rounds, standings.len());
}

/// Computes the level by definition: the lowest level that hands out the total or the entire requested amount.
///
/// A bend is a level at which the formula of a group changes. Between two neighbouring bends the amount handed out is linear.
fn defined(semantics: Semantics, total: u64, standings: &[ReducedGroup]) -> Exact {
    let exact = |value: u64| Exact::from(value);
    let handed = |level: &Exact| {
        standings.iter().fold(Exact::ZERO, |sum, standing| {
            let (base, reach) = (exact(standing.base()), exact(standing.reach()));
            let poured = level * &exact(standing.ratio());
            let runtime = match semantics {
                Semantics::MinPlusShare => reach.min(&base + &poured),
                Semantics::MaxMinLevel => reach.min(base.max(poured)),
            };
            &sum + &runtime
        })
    };
    let reach: u64 = standings.iter().map(ReducedGroup::reach).sum();
    let target = exact(total.min(reach));
    let mut bends = vec![Exact::ZERO];
    for standing in standings.iter().filter(|standing| standing.ratio() > 0) {
        let ratio = exact(standing.ratio());
        let (base, reach) = (exact(standing.base()), exact(standing.reach()));
        match semantics {
            Semantics::MinPlusShare => bends.push(&(&reach - &base) / &ratio),
            Semantics::MaxMinLevel => bends.extend([&base / &ratio, &reach / &ratio]),
        }
    }
    bends.sort();
    let above = bends.iter().position(|bend| handed(bend) >= target).expect("the last bend serves all");
    if above == 0 {
        return Exact::ZERO;
    }
    let (low, high) = (&bends[above - 1], &bends[above]);
    let (less, more) = (handed(low), handed(high));
    low + &(&(&(&target - &less) * &(high - low)) / &(&more - &less))
}

/// Checks the invariants of the runtime quotas at a level: their sum and the bounds of each quota.
fn laws(semantics: Semantics, total: u64, standings: &[ReducedGroup], level: Level) {
    let (mut sum, mut whole) = (Exact::ZERO, 0);
    let (mut bases, mut reaches) = (0, 0);
    for standing in standings {
        let runtime = standing.runtime_exact(semantics, level);
        assert!(Exact::from(standing.base()) <= runtime && runtime <= Exact::from(standing.reach()));
        assert_eq!(Exact::from(standing.runtime(semantics, level)), runtime.floor());
        sum = &sum + &runtime;
        whole += standing.runtime(semantics, level);
        bases += standing.base();
        reaches += standing.reach();
    }
    assert_eq!(sum, Exact::from(total.clamp(bases, reaches)), "{semantics:?} {total} {standings:?}");
    let handed = total.clamp(bases, reaches);
    assert!(
        whole <= handed && handed - whole < standings.len().max(1) as u64,
        "rounding down costs less than one unit per group"
    );
}

fn exacts(values: &[(i64, i64)]) -> Vec<Exact> {
    values.iter().map(|&(numerator, denominator)| Exact::ratio(numerator, denominator)).collect()
}

fn wholes(values: &[i64]) -> Vec<Exact> {
    values.iter().map(|&value| Exact::ratio(value, 1)).collect()
}

const NO_MAX: u64 = u64::MAX;

#[test]
fn the_semantics_differ_where_a_minimum_is_no_multiple_of_the_ratio() {
    let groups = [Group::new(30, 10, NO_MAX, 1), Group::new(30, 0, NO_MAX, 1)];
    assert_eq!(runtimes(Semantics::MinPlusShare, 50, &groups), wholes(&[30, 20]));
    assert_eq!(runtimes(Semantics::MaxMinLevel, 50, &groups), wholes(&[25, 25]));
    // If the minimums are in proportion to the ratios, both semantics give the same quotas.
    let groups = [Group::new(30, 10, NO_MAX, 1), Group::new(40, 20, NO_MAX, 2), Group::new(3, 10, NO_MAX, 1)];
    assert_eq!(runtimes(Semantics::MinPlusShare, 50, &groups), runtimes(Semantics::MaxMinLevel, 50, &groups));
}

#[test]
fn the_articles_buckets() {
    for semantics in BOTH {
        // The first group requests less than its quarter; the others share the rest by ratio.
        let groups = [Group::new(10, 0, NO_MAX, 1), Group::new(90, 0, NO_MAX, 1), Group::new(90, 0, NO_MAX, 2)];
        assert_eq!(runtimes(semantics, 100, &groups), wholes(&[10, 30, 60]));
        // The text of the article, taken literally, would assign 213 of 100 in this case.
        let groups = [5, 90, 90].map(|request| Group::new(request, 0, NO_MAX, 1));
        assert_eq!(runtimes(semantics, 100, &groups), exacts(&[(5, 1), (95, 2), (95, 2)]));
        // The level is at the top of a bucket, equal buckets end at the level, or no bucket is full. A method with strict comparisons fails
        // in these cases.
        let groups = [10, 20, 20, 50].map(|request| Group::new(request, 0, NO_MAX, 1));
        assert_eq!(runtimes(semantics, 70, &groups), wholes(&[10, 20, 20, 20]));
        assert_eq!(runtimes(semantics, 30, &groups), exacts(&[(15, 2); 4]));
        // The total is enough for all groups.
        assert_eq!(runtimes(semantics, 1000, &groups), wholes(&[10, 20, 20, 50]));
    }
}

#[test]
fn limits_and_corners() {
    for semantics in BOTH {
        let of = |total, groups: &[Group]| runtimes(semantics, total, groups);
        // The request is cut to the maximum; a minimum above the maximum counts up to the maximum.
        assert_eq!(of(100, &[Group::new(90, 0, 20, 1), Group::new(90, 0, NO_MAX, 1)]), wholes(&[20, 80]));
        assert_eq!(of(10, &[Group::new(90, 50, 20, 1), Group::new(90, 0, NO_MAX, 1)]), wholes(&[20, 0]));
        // The bases exceed the total: every group keeps its base.
        assert_eq!(of(100, &[Group::new(80, 80, NO_MAX, 1), Group::new(80, 80, NO_MAX, 9)]), wholes(&[80, 80]));
        // The minimums exceed the total, but the requests within the minimums do not.
        let groups = [Group::new(80, 80, NO_MAX, 1), Group::new(10, 80, NO_MAX, 1), Group::new(100, 0, NO_MAX, 9)];
        assert_eq!(of(100, &groups), wholes(&[80, 10, 10]));
        // No capacity, no groups, and ratios of 0: the rest stays unassigned.
        assert_eq!(of(0, &[Group::new(5, 0, NO_MAX, 1)]), wholes(&[0]));
        assert_eq!(of(9, &[]), wholes(&[]));
        assert_eq!(of(9, &[Group::new(5, 2, NO_MAX, 0), Group::new(5, 0, NO_MAX, 0)]), wholes(&[2, 0]));
        assert_eq!(of(9, &[Group::new(5, 2, NO_MAX, 0), Group::new(50, 0, NO_MAX, 7)]), wholes(&[2, 7]));
        // An unused minimum is lent in the first case, and kept in the second and third.
        let (lent, hungry) = (Group::new(2, 10, NO_MAX, 1), Group::new(90, 0, NO_MAX, 1));
        assert_eq!(of(30, &[lent, hungry]), wholes(&[2, 28]));
        assert_eq!(of(30, &[Group { unused_min: UnusedMin::Kept, ..lent }, hungry]), wholes(&[10, 20]));
        assert_eq!(of(30, &[Group { unused_min: UnusedMin::Kept, max: 6, ..lent }, hungry]), wholes(&[6, 24]));
        // A group keeps its allocation, even above its request.
        assert_eq!(of(30, &[Group { held: 25, ..lent }, hungry]), wholes(&[25, 5]));
    }
}

/// Between the level at which one group is full and the level at which the next one starts to rise, the amount handed out is constant. If
/// it equals the total, the level is the lowest of these.
#[test]
fn a_flat_stretch_has_its_level_at_its_start() {
    let groups = [Group::new(10, 0, NO_MAX, 1), Group::new(200, 100, NO_MAX, 1)];
    let mut water = water(Semantics::MaxMinLevel, 110, &groups);
    assert_eq!(water.level().exact(), Exact::ratio(10, 1));
    assert_eq!(runtimes(Semantics::MaxMinLevel, 110, &groups), wholes(&[10, 100]));
}

#[test]
fn sums_beyond_the_limit_are_errors_and_change_nothing() {
    let mut water = Water::new(Semantics::MinPlusShare);
    water.set_total(u64::MAX);
    let id = water.join(&Group::new(LIMIT, 0, NO_MAX, LIMIT)).expect("just within");
    let error = water.join(&Group::new(1, 0, NO_MAX, 1)).expect_err("one more").to_string();
    assert_eq!(error, format!("request: 1 is not accepted; expected groups that sum to at most {LIMIT}"));
    let error = water.change(id, &Group::new(5, 0, NO_MAX, u64::MAX)).expect_err("a ratio").to_string();
    assert!(error.starts_with("ratio: 18446744073709551615 is not accepted"), "{error}");
    assert!(water.change(id, &Group::new(u64::MAX, 0, NO_MAX, 1)).is_err());
    let many = [ReducedGroup::from_group(&Group::new(u64::MAX, 0, NO_MAX, 1)); 3];
    for result in [by_sort, by_selection].map(|method| method(Semantics::MinPlusShare, &many, 1)) {
        let error = result.expect_err("three times too much").to_string();
        assert_eq!(error, format!("request: a sum of 55340232221128654845 is not accepted; expected at most {LIMIT}"));
    }
    assert!(by_rounds(Semantics::MaxMinLevel, &many, 1).is_err());
    assert_eq!((water.len(), water.runtime(id), water.level().exact()), (1, LIMIT, Exact::ONE));
    water.change(id, &Group::new(u64::MAX, 0, 7, 1)).expect("cut to the maximum");
    assert_eq!(water.runtime(id), 7);
    let (three, half) = (Group::new(NO_MAX, 0, LIMIT / 3, LIMIT / 2), Group::new(1, 1, 1, LIMIT));
    water.change(id, &three).expect("within");
    let other = water.join(&half).expect("a group without a shared part has no ratio");
    water.set_total(LIMIT / 5);
    assert_eq!((water.runtime(id), water.runtime(other)), (LIMIT / 5 - 1, 1));
}

/// The kind of random groups.
#[derive(Clone, Copy, Debug)]
enum Draw {
    /// Few values: ties, zeros, equal levels.
    Few,
    /// Amounts as in a cluster.
    Many,
    /// Long fractions, some of which agree in their first 56 places.
    Long,
}

fn group(rng: &mut ChaCha8Rng, draw: Draw) -> Group {
    let mut amount = || match draw {
        Draw::Few => rng.random_range(0..8),
        Draw::Many => rng.random_range(0..1_000_000),
        Draw::Long => (1 << 47) - (1 << rng.random_range(0..47)) + rng.random_range(0..3),
    };
    let (request, min, max, held) = (amount(), amount(), amount(), amount());
    let ratio = match draw {
        Draw::Few => rng.random_range(0..4),
        Draw::Many => rng.random_range(0..100),
        Draw::Long => (1 << 47) + rng.random_range(0..2),
    };
    let mut one_in = |n| rng.random_range(0..n) == 0;
    let min = if one_in(2) { min } else { 0 };
    let max = if one_in(3) { max } else { NO_MAX };
    let held = if one_in(8) { held } else { 0 };
    let unused_min = if one_in(5) { UnusedMin::Kept } else { UnusedMin::Lent };
    Group { request, min, max, ratio, unused_min, held }
}

/// Draws a total: in one of eight cases enough for all requests, in one at most the bases, otherwise between the bases and the requests.
fn total(rng: &mut ChaCha8Rng, standings: &BTreeMap<GroupId, ReducedGroup>) -> u64 {
    let reach: u64 = standings.values().map(ReducedGroup::reach).sum();
    let base: u64 = standings.values().map(ReducedGroup::base).sum();
    match rng.random_range(0..8) {
        0 => reach + rng.random_range(0..3),
        1 => rng.random_range(0..=base),
        _ => rng.random_range(base..=reach),
    }
}

/// Applies random changes to a pool of about `size` groups and runs `check` on every state.
fn churn(
    seed: u64,
    semantics: Semantics,
    draw: Draw,
    size: usize,
    changes: usize,
    mut check: impl FnMut(usize, u64, &mut Water, &BTreeMap<GroupId, ReducedGroup>),
) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut water = Water::new(semantics);
    let mut standings = BTreeMap::new();
    let (mut pool, mut sum) = (Vec::new(), 0);
    // The pool alternately grows to twice its size and shrinks to nothing, so that blocks split and join at any size.
    let mut growing = true;
    for change in 0..changes {
        growing = if growing { pool.len() < 2 * size } else { pool.is_empty() };
        let (join, leave) = if growing { (40, 20) } else { (20, 40) };
        match rng.random_range(0..100) {
            0..3 => {
                sum = total(&mut rng, &standings);
                water.set_total(sum);
            }
            kind if kind < join || pool.is_empty() => {
                let group = group(&mut rng, draw);
                let id = water.join(&group).expect("within limits");
                assert!(standings.insert(id, ReducedGroup::from_group(&group)).is_none());
                pool.push(id);
            }
            kind if kind < join + leave => {
                let id = pool.swap_remove(rng.random_range(0..pool.len()));
                water.leave(id);
                standings.remove(&id);
            }
            _ => {
                let (id, group) = (pool[rng.random_range(0..pool.len())], group(&mut rng, draw));
                water.change(id, &group).expect("within limits");
                standings.insert(id, ReducedGroup::from_group(&group));
            }
        }
        assert_eq!(water.len(), standings.len());
        check(change, sum, &mut water, &standings);
    }
}

/// Compares all four methods after every change, and the definition after every 32nd change.
#[test]
fn a_million_changes_of_few_groups() {
    for (at, draw) in [Draw::Few, Draw::Many, Draw::Long].into_iter().enumerate() {
        for semantics in BOTH {
            churn(at as u64, semantics, draw, 6, 150_000, |change, total, water, standings| {
                let standings: Vec<ReducedGroup> = standings.values().copied().collect();
                let level = water.level();
                agree(semantics, total, &standings, level);
                if change % 32 == 0 {
                    laws(semantics, total, &standings, level);
                    assert_eq!(level.exact(), defined(semantics, total, &standings));
                }
            });
        }
    }
}

/// Pools of 300 groups have several leaves, and pools of 6,000 have two layers of inner blocks. The pools are filled and emptied. The level
/// is not computed after every change.
#[test]
fn many_changes_of_many_groups() {
    for (at, draw) in [Draw::Few, Draw::Many, Draw::Long].into_iter().enumerate() {
        for semantics in BOTH {
            for (size, changes, each) in [(300, 30_000, 7), (6_000, 60_000, 501)] {
                churn(at as u64, semantics, draw, size, changes, |change, total, water, standings| {
                    if change % 3 == 0 {
                        water.level();
                    }
                    if change % each == 0 {
                        let standings: Vec<ReducedGroup> = standings.values().copied().collect();
                        let level = water.level();
                        let selected = by_selection(semantics, &standings, total).expect("within limits");
                        assert_eq!(level.exact(), selected.exact());
                        if change % (8 * each) == 0 {
                            agree(semantics, total, &standings, level);
                            laws(semantics, total, &standings, level);
                        }
                    }
                });
            }
        }
    }
}

/// Stretches of neighbouring groups leave, in either direction, and other groups join, so that blocks become empty between full blocks.
#[test]
fn stretches_of_neighbours_leave() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut water = Water::new(Semantics::MinPlusShare);
    let mut pool: Vec<(u64, GroupId)> = Vec::new();
    for _ in 0..300 {
        while pool.len() < 3_000 {
            let request = rng.random_range(1..1 << 40);
            pool.push((request, water.join(&Group::new(request, 0, NO_MAX, 1)).expect("within limits")));
        }
        pool.sort();
        let start = rng.random_range(0..pool.len() - 200);
        let mut gone: Vec<(u64, GroupId)> = pool.drain(start..start + rng.random_range(20..200)).collect();
        if rng.random_range(0..2) == 0 {
            gone.reverse();
        }
        gone.iter().for_each(|&(_, id)| water.leave(id));
        // Levels just below, among and above the removed groups, each after a distant level.
        let near = pool[start..].iter().step_by(16).take(5).map(|&(request, _)| request - 1);
        let levels: Vec<u64> = near.chain([gone[0].0]).flat_map(|level| [1, level, 1 << 39]).collect();
        for level in levels {
            water.set_total(pool.iter().map(|&(request, _)| request.min(level)).sum());
            assert_eq!(water.level().exact(), Exact::from(level));
        }
    }
}

/// Each round serves one group: each request is the next whole number above the level of the round before.
///
/// Every round divides the lent amount by the number of hungry groups, so 64-bit integers have room for 18 groups.
#[test]
fn the_rounds_of_the_articles_worst_case() {
    let rounds = |count: u64, total: u64| {
        let mut requests: Vec<u64> = vec![1];
        while (requests.len() as u64) + 1 < count {
            let hungry = count + 1 - requests.len() as u64;
            let level = (total - requests[..requests.len() - 1].iter().sum::<u64>()) / hungry;
            requests.push(level + 1);
        }
        requests.push(total);
        let groups: Vec<ReducedGroup> =
            requests.iter().map(|&request| ReducedGroup::from_group(&Group::new(request, 0, NO_MAX, 1))).collect();
        let found = by_rounds(Semantics::MinPlusShare, &groups, total).expect("within limits");
        agree(Semantics::MinPlusShare, total, &groups, found.level);
        found.rounds
    };
    assert_eq!(rounds(18, 1 << 60), 18);
    // With 1000 groups the integers have too few digits: the lent amount is used up after fewer rounds, regardless of the number of groups.
    assert!((5..20).contains(&rounds(1000, 1 << 60)));
}

/// A larger total never reduces a quota.
#[test]
fn quotas_only_rise_with_the_total() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for round in 0..400 {
        let semantics = BOTH[round % 2];
        let groups: Vec<Group> = (0..8).map(|_| group(&mut rng, Draw::Few)).collect();
        let mut water = water(semantics, 0, &groups);
        let mut before = vec![(Exact::ZERO, 0); groups.len()];
        for total in 0..70 {
            water.set_total(total);
            for (at, before) in before.iter_mut().enumerate() {
                let id = GroupId(at as u32);
                let now = (water.runtime_exact(id), water.runtime(id));
                assert!(before.0 <= now.0 && before.1 <= now.1);
                *before = now;
            }
        }
    }
    // In this case, rounding by largest remainders would take away the only unit of the second group when the total grows from 16 to 17.
    let groups = [7, 1, 8, 7, 9].map(|ratio| Group::new(17, 0, NO_MAX, ratio));
    let mut water = water(Semantics::MinPlusShare, 16, &groups);
    let floors = |water: &mut Water| (0..5).map(|at| water.runtime(GroupId(at))).collect::<Vec<_>>();
    assert_eq!(floors(&mut water), [3, 0, 4, 3, 4]);
    water.set_total(17);
    assert_eq!(floors(&mut water), [3, 0, 4, 3, 4]);
    assert_eq!(water.runtime_exact(GroupId(1)), Exact::ratio(17, 32));
}
