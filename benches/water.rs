//! Time per update of the water level: one group's request changes, the level is found, that group's quota is read.
//!
//! The tree of [`Water`] against finding the level anew by rounds, by selection and by sorting, at 3 to 1,000,000
//! groups and 1 to 8 resources (as many pools, changed together). A line is one size: nanoseconds per update, the
//! median of the batches with the lowest and the highest, and the rounds that the first method took.
//!
//! `cargo bench --bench water` for all, `cargo bench --bench water -- 1000` for one number of groups.

use std::hint::black_box;
use std::time::{Duration, Instant};

use plimsoll::fluid::water::{Group, GroupId, Level, Semantics, Standing, Water, by_rounds, by_selection, by_sort};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIZES: [usize; 9] = [3, 10, 30, 100, 300, 1_000, 10_000, 100_000, 1_000_000];
/// Changes that are drawn before the clock starts.
const BATCH: usize = 4096;
/// Time for one method at one size.
const BUDGET: Duration = Duration::from_millis(1500);

/// Requests up to so many base units: 1000 cores, in thousandths.
const REQUEST: u64 = 1_000_000;

fn group(rng: &mut ChaCha8Rng) -> Group {
    let min = rng.random_range(0..REQUEST / 10);
    Group::new(rng.random_range(0..REQUEST), min, u64::MAX, rng.random_range(1..=100))
}

/// A change in every resource: whose, and the new requests.
struct Change {
    at: usize,
    requests: Vec<u64>,
}

fn changes(rng: &mut ChaCha8Rng, size: usize, dims: usize) -> Vec<Change> {
    let request = |rng: &mut ChaCha8Rng| (0..dims).map(|_| rng.random_range(0..REQUEST)).collect();
    (0..BATCH).map(|_| Change { at: rng.random_range(0..size), requests: request(rng) }).collect()
}

/// The groups by resource, and each resource's total: two thirds of what is requested.
fn input(rng: &mut ChaCha8Rng, size: usize, dims: usize) -> (Vec<Vec<Group>>, u64) {
    let groups = (0..dims).map(|_| (0..size).map(|_| group(rng)).collect()).collect();
    (groups, size as u64 * REQUEST / 3)
}

/// Nanoseconds per update: the median over batches, the lowest and the highest.
fn measure(rng: &mut ChaCha8Rng, size: usize, dims: usize, mut update: impl FnMut(&Change)) -> [f64; 3] {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (start.elapsed() < BUDGET && times.len() < 400) {
        let changes = changes(rng, size, dims);
        // As many updates as take a few milliseconds, and one at least.
        let (mut done, clock) = (0, Instant::now());
        for change in &changes {
            update(change);
            done += 1;
            if done % 16 == 1 && clock.elapsed() > Duration::from_millis(20) {
                break;
            }
        }
        times.push(clock.elapsed().as_nanos() as f64 / f64::from(done));
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[0], times[times.len() - 1]]
}

fn tree(semantics: Semantics, size: usize, dims: usize) -> [f64; 3] {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (groups, total) = input(&mut rng, size, dims);
    let mut waters: Vec<Water> = groups.iter().map(|groups| pool(semantics, groups, total)).collect();
    drop(groups);
    measure(&mut rng, size, dims, |change| {
        let id = GroupId(change.at as u32);
        for (water, &request) in waters.iter_mut().zip(&change.requests) {
            water.set_request(id, request).expect("within limits");
            black_box(water.runtime(id));
        }
    })
}

fn pool(semantics: Semantics, groups: &[Group], total: u64) -> Water {
    let mut water = Water::new(semantics);
    water.set_total(total);
    for group in groups {
        water.join(group).expect("within limits");
    }
    water
}

fn anew(
    semantics: Semantics,
    size: usize,
    dims: usize,
    mut method: impl FnMut(Semantics, &[Standing], u64) -> Level,
) -> [f64; 3] {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut groups, total) = input(&mut rng, size, dims);
    let mut pools: Vec<Vec<Standing>> = groups.iter().map(|groups| groups.iter().map(Standing::of).collect()).collect();
    measure(&mut rng, size, dims, |change| {
        for ((standings, groups), &request) in pools.iter_mut().zip(&mut groups).zip(&change.requests) {
            groups[change.at].request = request;
            standings[change.at] = Standing::of(&groups[change.at]);
            let level = method(semantics, standings, total);
            black_box(standings[change.at].runtime(semantics, level));
        }
    })
}

fn line(semantics: Semantics, size: usize, dims: usize, only_tree: bool) {
    let shown = |[median, low, high]: [f64; 3]| format!("{median:>12.0} [{low:.0}-{high:.0}]");
    print!("{semantics:?} {size:>8} groups x {dims}: tree {:<28}", shown(tree(semantics, size, dims)));
    if only_tree {
        println!();
        return;
    }
    let (mut rounds, mut most, mut calls) = (0, 0, 0);
    let by_rounds = anew(semantics, size, dims, |semantics, standings, total| {
        let found = by_rounds(semantics, standings, total).expect("within limits");
        (rounds, most, calls) = (rounds + found.rounds, most.max(found.rounds), calls + 1);
        found.level
    });
    let selection = anew(semantics, size, dims, |s, standings, t| by_selection(s, standings, t).expect("in limits"));
    let sort = anew(semantics, size, dims, |s, standings, t| by_sort(s, standings, t).expect("within limits"));
    let mean = rounds as f64 / f64::from(calls);
    println!(
        "rounds {:<32} ({mean:.1} rounds, at most {most})  selection {:<32} sort {}",
        shown(by_rounds),
        shown(selection),
        shown(sort)
    );
}

/// The total jumps, so that no level is near the one before.
fn jumps(semantics: Semantics, size: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (groups, total) = input(&mut rng, size, 1);
    let mut water = pool(semantics, &groups[0], total);
    let times = measure(&mut rng, size, 1, |change| {
        water.set_total((change.requests[0] as f64 / REQUEST as f64 * 1.5 * total as f64) as u64);
        black_box(water.runtime(GroupId(change.at as u32)));
    });
    println!("{semantics:?} {size:>8} groups, the total jumps: {:.0} [{:.0}-{:.0}]", times[0], times[1], times[2]);
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let only_tree = wanted.iter().any(|word| word == "tree");
    let sizes: Vec<usize> = wanted.iter().filter_map(|word| word.parse().ok()).collect();
    for size in SIZES.into_iter().filter(|size| sizes.is_empty() || sizes.contains(size)) {
        line(Semantics::MinPlusShare, size, 1, only_tree);
        line(Semantics::MaxMinLevel, size, 1, only_tree);
        jumps(Semantics::MinPlusShare, size);
    }
    if sizes.is_empty() {
        for size in [100, 10_000] {
            for dims in [2, 4, 8] {
                line(Semantics::MinPlusShare, size, dims, only_tree);
            }
        }
    }
}
