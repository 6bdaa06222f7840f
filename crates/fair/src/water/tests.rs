//! Tests of the internal tree: after any insertions and removals, every block has the sums of the points below it.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::group::Weight;
use super::level::compare;
use super::node::NONE;
use super::order::NumberSource;
use super::{Group, GroupId, LIMIT, Level, ReducedGroup, Semantics, Water, by_selection};

/// The content of a block: its points in order, its leaves and its weight.
#[derive(Default)]
struct BlockContent {
    points: Vec<(u64, u32)>,
    leaves: Vec<u32>,
    weight: Weight,
}

fn walk(water: &Water, block: u32, height: usize) -> BlockContent {
    let mut found = BlockContent::default();
    if height == 0 {
        let row = water.order.row(block);
        found.points = (0..row.len()).map(|at| (row.key(at), row.id(at))).collect();
        found.leaves.push(block);
        found.weight = row.ids().iter().fold(Weight::ZERO, |sum, &id| sum + water.members.weight(id));
        return found;
    }
    let inner = &water.order.inners[block as usize];
    for slot in 0..inner.row.len() {
        let below = walk(water, inner.child(slot), height - 1);
        assert_eq!(below.points.first(), Some(&(inner.row.key(slot), inner.row.id(slot))), "a block's first point");
        assert_eq!(below.weight, inner.weight(slot), "the weight of a block");
        found.points.extend(below.points);
        found.leaves.extend(below.leaves);
        found.weight = found.weight + below.weight;
    }
    found
}

/// Checks all blocks. Returns the height of the tree.
fn check(water: &mut Water) -> usize {
    water.settle();
    let order = &water.order;
    let found = walk(water, order.root, order.height);
    let sorted = found.points.is_sorted_by(|a, b| {
        let exact = || compare(water.members.fraction(a.1), water.members.fraction(b.1)).then(a.1.cmp(&b.1));
        a.0.cmp(&b.0).then_with(exact).is_lt()
    });
    assert!(sorted, "points in order");
    let chained = [NONE].iter().chain(&found.leaves).zip(found.leaves.iter().chain(&[NONE]));
    for (&one, &other) in chained {
        assert!(one == NONE || order.leaves[one as usize].next == other, "the chain of leaves");
        assert!(other == NONE || order.leaves[other as usize].previous == one, "the chain of leaves");
    }
    order.height
}

fn group(rng: &mut ChaCha8Rng, bits: u32) -> Group {
    let most = 1 << bits;
    let mut amount = || most - (1 << rng.random_range(0..=bits)) + rng.random_range(0..2);
    let (request, min) = (amount(), amount());
    Group::new(request, min, u64::MAX, most + rng.random_range(0..2))
}

/// Grows and empties trees of many levels: at random, and from one end or the other.
#[test]
fn blocks_say_what_is_below_them() {
    for (seed, bits) in [(0, 3), (1, 24), (2, 46)] {
        for semantics in [Semantics::MinPlusShare, Semantics::MaxMinLevel] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut water = Water::new(semantics);
            let mut highest = 0;
            for wave in 0..12 {
                let mut ids: Vec<GroupId> = Vec::new();
                while ids.len() < 1500 {
                    ids.push(water.join(&group(&mut rng, bits)).expect("within limits"));
                    let other = ids[rng.random_range(0..ids.len())];
                    water.change(other, &group(&mut rng, bits)).expect("within limits");
                    if rng.random_bool(0.5) {
                        water.settle();
                    }
                }
                highest = highest.max(check(&mut water));
                ids.shuffle(&mut rng);
                if wave % 3 > 0 {
                    ids.sort_by_key(|&id| water.group(id).request);
                }
                while let Some(id) = if wave % 3 == 1 { ids.pop() } else { ids.first().copied() } {
                    if wave % 3 != 1 {
                        ids.remove(0);
                    }
                    water.leave(id);
                    if ids.len().is_multiple_of(32) {
                        check(&mut water);
                        let standings: Vec<ReducedGroup> = ids.iter().map(|&id| water.standing(id)).collect();
                        let total = rng.random_range(0..=standings.iter().map(ReducedGroup::reach).sum());
                        water.set_total(total);
                        let level = by_selection(semantics, &standings, total).expect("within limits");
                        assert_eq!(water.level(), level);
                    }
                }
                assert_eq!((check(&mut water), water.is_empty(), water.level()), (0, true, Level::ZERO));
            }
            assert!(highest >= 3, "only {highest} floors");
        }
    }
    assert!(Water::new(Semantics::MinPlusShare).join(&Group::new(LIMIT + 1, 0, u64::MAX, 1)).is_err());
}

/// Several changes between two reads of the level, small and large, near the level and far from it, with and without enough for all groups.
#[test]
fn late_orders_say_what_orders_in_time_say() {
    for (seed, bits) in (0..40).zip([4, 12, 40].into_iter().cycle()) {
        for semantics in [Semantics::MinPlusShare, Semantics::MaxMinLevel] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut water = Water::new(semantics);
            let ids: Vec<GroupId> =
                (0..200).map(|_| water.join(&group(&mut rng, bits)).expect("within limits")).collect();
            let mut near = 0;
            for look in 0..400 {
                for _ in 0..rng.random_range(0..6) {
                    let id = ids[rng.random_range(0..ids.len())];
                    let old = *water.group(id);
                    let request = old.request.saturating_add_signed(rng.random_range(-3..=3)).max(1);
                    let small = Group { request, ..old };
                    let new = if rng.random_bool(0.8) { small } else { group(&mut rng, bits) };
                    water.change(id, &new).expect("within limits");
                }
                let standings: Vec<ReducedGroup> = ids.iter().map(|&id| water.standing(id)).collect();
                let most: u64 = standings.iter().map(ReducedGroup::reach).sum();
                let part = if look % 50 < 40 { 1 + seed % 3 } else { rng.random_range(0..=5) };
                water.set_total(most / 4 * part);
                near += usize::from(!water.members.late.is_empty() && water.window.is_some());
                let level = by_selection(semantics, &standings, most / 4 * part).expect("within limits");
                for (&id, standing) in ids.iter().zip(&standings) {
                    assert_eq!(water.runtime(id), standing.runtime(semantics, level), "seed {seed}, look {look}");
                }
                assert_eq!(water.level(), level, "seed {seed}, look {look}");
            }
            assert!(near > 10, "only {near} searches with a late group");
        }
    }
}
