//! Measures the time per update of the water level: one group's request changes, the level is computed, and the group's quota is read.
//!
//! Compares the tree of [`Water`] with recomputing the level by rounds, by selection and by sorting, for 3 to 1,000,000 groups and 1 to 8
//! resources (one pool per resource, all changed together). Each output line is for one size. It has the nanoseconds per update of each
//! method (the median of the batches, with the lowest and the highest), the ratio to the time of the tree, and the number of rounds of the
//! method by rounds.
//!
//! `cargo bench --bench water` measures all sizes, and `cargo bench --bench water -- 1000` one number of groups. With
//! `cargo bench --bench water -- --table experiments/quota-levels.toml` the measurements of that file are written as a table and figures.

#[path = "../tests/it/water_anew.rs"]
mod anew;
#[path = "water/levels.rs"]
mod levels;
#[path = "common/results.rs"]
mod results;

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anew::{by_rounds, by_sort};
use plimsoll::fair::water::{Group, GroupId, Level, ReducedGroup, Semantics, Water, by_selection};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIZES: [usize; 9] = [3, 10, 30, 100, 300, 1_000, 10_000, 100_000, 1_000_000];
/// The number of changes that are drawn before the clock starts; few, so that most batches end before the core is preempted.
const BATCH: usize = 256;
/// The time for one method at one size.
const BUDGET: Duration = Duration::from_millis(1500);

/// The upper bound of requests in base units: 1000 cores, in thousandths.
const REQUEST: u64 = 1_000_000;

fn group(rng: &mut ChaCha8Rng) -> Group {
    let min = rng.random_range(0..REQUEST / 10);
    Group::new(rng.random_range(0..REQUEST), min, u64::MAX, rng.random_range(1..=100))
}

/// A change in every resource: the index of the group, and its new requests.
struct Change {
    at: usize,
    requests: Vec<u64>,
}

fn changes(rng: &mut ChaCha8Rng, size: usize, dims: usize) -> Vec<Change> {
    let request = |rng: &mut ChaCha8Rng| (0..dims).map(|_| rng.random_range(0..REQUEST)).collect();
    (0..BATCH).map(|_| Change { at: rng.random_range(0..size), requests: request(rng) }).collect()
}

/// Returns the groups by resource, and the total of each resource: two thirds of the mean sum of the requests.
fn input(rng: &mut ChaCha8Rng, size: usize, dims: usize) -> (Vec<Vec<Group>>, u64) {
    let groups = (0..dims).map(|_| (0..size).map(|_| group(rng)).collect()).collect();
    (groups, size as u64 * REQUEST / 3)
}

/// The time per update in nanoseconds, over batches.
#[derive(Clone, Copy)]
struct Time {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} [{:.0}-{:.0}]", self.median, self.lowest, self.highest)
    }
}

/// The parameters of one measurement: groups for each of several resources, which all change together.
#[derive(Clone, Copy)]
struct Spot {
    semantics: Semantics,
    groups: usize,
    resources: usize,
    seed: u64,
    /// The time for one method.
    budget: Duration,
}

impl Spot {
    fn new(semantics: Semantics, groups: usize, resources: usize) -> Spot {
        Spot { semantics, groups, resources, seed: 1, budget: BUDGET }
    }

    fn input(&self) -> (ChaCha8Rng, Vec<Vec<Group>>, u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let (groups, total) = input(&mut rng, self.groups, self.resources);
        (rng, groups, total)
    }

    fn measure(&self, rng: &mut ChaCha8Rng, mut update: impl FnMut(&Change)) -> Time {
        let start = Instant::now();
        let mut times = Vec::new();
        while times.len() < 5 || (start.elapsed() < self.budget && times.len() < 4000) {
            let changes = changes(rng, self.groups, self.resources);
            // A batch takes about a millisecond and has at least one update.
            let (mut done, clock) = (0, Instant::now());
            for change in &changes {
                update(change);
                done += 1;
                if done % 4 == 1 && clock.elapsed() > Duration::from_millis(1) {
                    break;
                }
            }
            times.push(clock.elapsed().as_nanos() as f64 / f64::from(done));
        }
        times.remove(0);
        times.sort_by(f64::total_cmp);
        Time { median: times[times.len() / 2], lowest: times[0], highest: times[times.len() - 1] }
    }

    fn tree(&self) -> Time {
        let (mut rng, groups, total) = self.input();
        let mut waters: Vec<Water> = groups.iter().map(|groups| pool(self.semantics, groups, total)).collect();
        drop(groups);
        self.measure(&mut rng, |change| {
            let id = GroupId(change.at as u32);
            for (water, &request) in waters.iter_mut().zip(&change.requests) {
                water.set_request(id, request).expect("within limits");
                black_box(water.runtime(id));
            }
        })
    }

    fn anew(&self, mut method: impl FnMut(Semantics, &[ReducedGroup], u64) -> Level) -> Time {
        let (mut rng, mut groups, total) = self.input();
        let standings = |groups: &Vec<Group>| groups.iter().map(ReducedGroup::from_group).collect();
        let mut pools: Vec<Vec<ReducedGroup>> = groups.iter().map(standings).collect();
        self.measure(&mut rng, |change| {
            for ((standings, groups), &request) in pools.iter_mut().zip(&mut groups).zip(&change.requests) {
                groups[change.at].request = request;
                standings[change.at] = ReducedGroup::from_group(&groups[change.at]);
                let level = method(self.semantics, standings, total);
                black_box(standings[change.at].runtime(self.semantics, level));
            }
        })
    }

    /// Returns the time, and the mean and the maximum number of rounds.
    fn rounds(&self) -> (Time, f64, usize) {
        let (mut rounds, mut most, mut calls) = (0, 0, 0);
        let time = self.anew(|semantics, standings, total| {
            let found = by_rounds(semantics, standings, total).expect("within limits");
            (rounds, most, calls) = (rounds + found.rounds, most.max(found.rounds), calls + 1);
            found.level
        });
        (time, rounds as f64 / f64::from(calls), most)
    }

    fn selection(&self) -> Time {
        self.anew(|semantics, standings, total| by_selection(semantics, standings, total).expect("within limits"))
    }

    fn sort(&self) -> Time {
        self.anew(|semantics, standings, total| by_sort(semantics, standings, total).expect("within limits"))
    }
}

fn pool(semantics: Semantics, groups: &[Group], total: u64) -> Water {
    let mut water = Water::new(semantics);
    water.set_total(total);
    for group in groups {
        water.join(group).expect("within limits");
    }
    water
}

fn line(semantics: Semantics, size: usize, dims: usize, only_tree: bool) {
    let spot = Spot::new(semantics, size, dims);
    let tree = spot.tree();
    let against = |time: Time| format!("{time} = {:.1} trees", time.median / tree.median);
    print!("{semantics:?} {size} groups x {dims}: tree {tree}");
    if only_tree {
        println!();
        return;
    }
    let (by_rounds, mean, most) = spot.rounds();
    println!(
        "; rounds {} ({mean:.1} rounds, at most {most}); selection {}; sort {}",
        against(by_rounds),
        against(spot.selection()),
        against(spot.sort())
    );
}

/// Measures updates of the total, which jumps so that no level is near the previous one.
fn jumps(semantics: Semantics, size: usize) {
    let spot = Spot::new(semantics, size, 1);
    let (mut rng, groups, total) = spot.input();
    let mut water = pool(semantics, &groups[0], total);
    let time = spot.measure(&mut rng, |change| {
        water.set_total((change.requests[0] as f64 / REQUEST as f64 * 1.5 * total as f64) as u64);
        black_box(water.runtime(GroupId(change.at as u32)));
    });
    println!("{semantics:?} {size} groups, the total jumps: {time}");
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = wanted.iter().position(|word| word == "--table") {
        let path = results::path(&wanted[at + 1..], "experiments/quota-levels.toml");
        if let Err(error) = levels::write(Path::new(path)) {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
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
