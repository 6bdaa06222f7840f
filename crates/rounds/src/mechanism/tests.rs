//! Worked examples of rounds and placement, and the comparison with a slow reference implementation.

use super::*;
use crate::random::PythonRandom;
use crate::table::{PairRate, Rate, Rates};

/// E13 of the reference: types V and P, one accelerator each, fractions of E1.
#[test]
fn e13_rounds() {
    let rates = Rates::from_rows(&[&[4.0, 2.0], &[6.0, 1.0], &[1.0, 1.0]]).expect("rates");
    let mut mechanism = Mechanism::new(2, &Options::default(), false);
    (0..3).for_each(|id| mechanism.add(id, id, 1));
    let x = [23.0 / 44.0, 2.0 / 11.0, 21.0 / 44.0, 0.0, 0.0, 9.0 / 11.0];
    let alone = x.iter().map(|&x| Targets::rounded(x)).collect();
    mechanism.reset(Time(0), &Targets { types: 2, alone, pairs: Vec::new() });
    let expected = [
        ([1.5682, 1.4318, 0.5455, 2.4545], [0, 2]),
        ([0.8712, 2.3864, 0.9091, 1.3636], [1, 2]),
        ([1.2197, 1.1136, 1.2727, 1.1455], [0, 2]),
        ([0.9409, 1.4318, 1.6364, 1.0519], [1, 0]),
        ([1.1500, 1.0500, 0.6667, 1.2857], [0, 2]),
        ([0.9708, 1.2409, 0.7879, 1.1818], [1, 2]),
    ];
    let cluster = Cluster::single(&["V", "P"], &[1, 1]);
    let mut placement = Placement::default();
    let mut leases = Vec::new();
    let mut counts = [[0; 3]; 2];
    for round in 0..8 {
        if let Some((priorities, _)) = expected.get(round) {
            for (entry, expected) in [(0, 0), (1, 0), (0, 1), (2, 1)].into_iter().zip(priorities) {
                let priority = mechanism.priority([entry.0, NONE], entry.1).expect("an active job");
                assert!((priority - expected).abs() < 5e-5, "round {round}: {priority} instead of {expected}");
            }
        }
        let selected = mechanism.select(&rates, &[0, 1], &[1, 1], SelectionRules::default());
        let runs: Vec<u32> = selected.iter().map(|selected| selected.members[0]).collect();
        if let Some((_, expected)) = expected.get(round) {
            assert_eq!(runs, expected, "round {round}");
        }
        let placed = placement.place(&cluster, &selected);
        leases.extend(placed.iter().filter(|placed| placed.kept).map(|placed| (round + 1, placed.selected.members[0])));
        for selected in selected {
            mechanism.charge(selected.entry, selected.worker_type, Span(360_000_000));
            counts[selected.worker_type][selected.members[0] as usize] += 1;
        }
    }
    assert_eq!(counts, [[4, 4, 0], [1, 0, 7]]);
    leases.retain(|(round, _)| *round <= 6);
    assert_eq!(leases, [(2, 2), (3, 2), (6, 2)]);
}

fn selection(id: u32, scale: u32) -> SelectedEntry {
    SelectedEntry { entry: id, members: [id, NONE], scale, worker_type: 0, has_target: true }
}

/// E15 of the reference: two servers of four accelerators.
#[test]
fn e15_placement() {
    let cluster = Cluster { worker_types: vec!["v100".to_owned()], servers: vec![vec![4, 4]] };
    // Jobs: A 0, B 1, C 2, D 3.
    let next = [selection(0, 4), selection(1, 2), selection(2, 1), selection(3, 1)];
    let place = |last: &[(u32, &[u32])]| {
        let last = last.iter().map(|(id, accelerators)| ([*id, NONE], 0, accelerators.to_vec())).collect();
        let placed = Placement { last }.place(&cluster, &next);
        let mut found = vec![(Vec::new(), false); 4];
        for placed in placed {
            found[placed.selected.members[0] as usize] = (placed.accelerators, placed.kept);
        }
        found
    };
    let moved = |accelerators: &[u32]| (accelerators.to_vec(), false);
    let found = place(&[(2, &[0]), (3, &[4])]);
    assert_eq!(found, [moved(&[0, 1, 2, 3]), moved(&[4, 5]), moved(&[6]), moved(&[7])]);
    let found = place(&[(0, &[4, 5, 6, 7]), (2, &[0]), (3, &[1])]);
    assert_eq!(found, [(vec![4, 5, 6, 7], true), moved(&[0, 1]), moved(&[2]), moved(&[3])]);
}

/// A slow mechanism: lists of entries with floats replaced by fractions, sorted in every round.
#[derive(Default)]
struct Slow {
    entries: Vec<SlowEntry>,
    last_reset: u64,
}

#[derive(Clone)]
struct SlowEntry {
    members: Vec<u32>,
    scale: u32,
    x: Option<Vec<u32>>,
    counter: Vec<u64>,
    deficit: Vec<i128>,
}

const HALF: u64 = 180_000_000;

impl Slow {
    fn add(&mut self, types: usize, members: Vec<u32>, scale: u32) {
        let entry = SlowEntry { members, scale, x: None, counter: vec![HALF; types], deficit: vec![0; types] };
        self.entries.push(entry);
    }

    fn reset(&mut self, now: u64, x: impl Fn(&[u32]) -> Vec<u32>) {
        for entry in &mut self.entries {
            for j in 0..entry.counter.len() {
                let due = entry.x.as_ref().map_or(0, |x| i128::from(x[j])) * i128::from(now - self.last_reset);
                entry.deficit[j] += due - (i128::from(entry.counter[j]) - i128::from(HALF)) * i128::from(WHOLE);
                entry.counter[j] = HALF;
            }
            entry.x = Some(x(&entry.members));
        }
        self.last_reset = now;
    }

    fn select(
        &self,
        order: &[usize],
        free: &[u32],
        skip_zero: bool,
        runs: impl Fn(&[u32], usize) -> bool,
    ) -> Vec<(Vec<u32>, usize)> {
        let mut chosen: Vec<(Vec<u32>, usize)> = Vec::new();
        for &j in order {
            let mut left = free[j];
            let mut list: Vec<&SlowEntry> = self.entries.iter().collect();
            let x = |entry: &SlowEntry| entry.x.as_ref().map_or(0, |x| x[j]);
            list.sort_by(|a, b| {
                let priority =
                    (u128::from(x(b)) * u128::from(a.counter[j])).cmp(&(u128::from(x(a)) * u128::from(b.counter[j])));
                priority.then(b.deficit[j].cmp(&a.deficit[j])).then(x(b).cmp(&x(a)))
            });
            for entry in list {
                let taken = chosen.iter().any(|(members, _)| members.iter().any(|id| entry.members.contains(id)));
                if left >= entry.scale && !taken && runs(&entry.members, j) && !(skip_zero && x(entry) == 0) {
                    left -= entry.scale;
                    chosen.push((entry.members.clone(), j));
                }
            }
        }
        chosen
    }
}

/// 300 random histories of arrivals, completions, resets and rounds: both mechanisms select the same entries in the same order.
#[test]
fn the_mechanism_equals_the_slow_reference() {
    let mut random = PythonRandom::new(47);
    let mut compared = 0;
    for history in 0..300 {
        let packing = history % 2 == 0;
        let types = 1 + random.below(3);
        let free: Vec<u32> = (0..types).map(|_| 1 + random.below(4) as u32).collect();
        let kinds = 5;
        let rows: Vec<Vec<f64>> = (0..kinds)
            .map(|_| (0..types).map(|j| if j > 0 && random.below(5) == 0 { 0.0 } else { 1.0 }).collect())
            .collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let mut rates = Rates::from_rows(&rows).expect("rates");
        for a in 0..kinds {
            for b in 0..=a {
                for j in 0..types {
                    if random.below(3) > 0 && rows[a][j] * rows[b][j] > 0.0 {
                        let rate = Rate::new(0.5).expect("a rate");
                        rates.set_pair(a, b, j, PairRate { first: rate, second: rate });
                    }
                }
            }
        }
        let mut mechanism = Mechanism::new(types, &Options::default(), packing);
        let mut slow = Slow::default();
        let mut jobs: Vec<(u32, u32, u32)> = Vec::new();
        let (mut next, mut now) = (0, 0);
        for _ in 0..30 {
            while random.below(3) == 0 {
                let (kind, scale) = (random.below(kinds) as u32, 1 + random.below(2) as u32);
                mechanism.add(next, kind, scale);
                slow.add(types, vec![next], scale);
                for (other, _, _) in jobs.iter().filter(|(_, _, other)| packing && *other == scale) {
                    slow.add(types, vec![*other, next], scale);
                }
                jobs.push((next, kind, scale));
                next += 1;
            }
            if random.below(4) == 0 && !jobs.is_empty() {
                let (id, _, _) = jobs.remove(random.below(jobs.len()));
                mechanism.remove(id);
                slow.entries.retain(|entry| !entry.members.contains(&id));
            }
            if random.below(3) == 0 {
                // Few different fractions, so that ties are frequent.
                let mut draw = |count: usize| -> Vec<u32> {
                    (0..count).map(|_| [0, 0, 100, 300, WHOLE][random.below(5)]).collect()
                };
                let alone = draw(jobs.len() * types);
                let pairs = draw(if packing { jobs.len() * jobs.len().saturating_sub(1) / 2 * types } else { 0 });
                let targets = Targets { types, alone, pairs };
                mechanism.reset(Time(now), &targets);
                let index = |id: u32| jobs.iter().position(|job| job.0 == id).expect("active");
                slow.reset(now, |members| match members {
                    [one] => targets.alone[index(*one) * types..][..types].to_vec(),
                    [a, b, ..] => targets.pairs[Targets::pair_index(index(*a), index(*b)) * types..][..types].to_vec(),
                    [] => Vec::new(),
                });
            }
            let mut order: Vec<usize> = (0..types).collect();
            random.shuffle(&mut order);
            let skip_zero = history % 3 == 0;
            let rules = SelectionRules { skip_zero, one_list: false };
            let selected = mechanism.select(&rates, &order, &free, rules);
            let kind = |id: u32| jobs.iter().find(|job| job.0 == id).expect("active").1;
            let expected = slow.select(&order, &free, skip_zero, |members, j| match members {
                [a, b] => rates.pair(kind(*a), kind(*b), j).is_some(),
                members => rates.alone(kind(members[0]))[j].pico > 0,
            });
            let found: Vec<(Vec<u32>, usize)> = selected
                .iter()
                .map(|s| (s.members.iter().copied().filter(|&id| id != NONE).collect(), s.worker_type))
                .collect();
            assert_eq!(found, expected, "history {history}");
            for selected in selected {
                let length = 300_000_000 + 20_000_000 * random.below(4) as u64;
                mechanism.charge(selected.entry, selected.worker_type, Span(length));
                let members: Vec<u32> = selected.members.into_iter().filter(|&id| id != NONE).collect();
                let entry = slow.entries.iter_mut().find(|entry| entry.members == members).expect("an entry");
                entry.counter[selected.worker_type] += length;
                compared += 1;
            }
            now += 360_000_000;
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// The first reset is immediate, the second as well if the first was at time 0, later ones after the delay.
#[test]
fn resets_are_delayed() {
    let mut mechanism = Mechanism::new(1, &Options::default(), false);
    assert!(!mechanism.needs_reset(Time(0)), "nothing changed");
    mechanism.add(0, 0, 1);
    assert!(mechanism.needs_reset(Time(0)));
    mechanism.reset(Time(0), &Targets::zero(1, 1));
    mechanism.add(1, 0, 1);
    assert!(mechanism.needs_reset(Time(360_000_000)));
    mechanism.reset(Time(360_000_000), &Targets::zero(2, 1));
    mechanism.remove(0);
    assert!(!mechanism.needs_reset(Time(720_000_000)));
    assert_eq!(mechanism.next_reset(), Some(Time(2_280_000_000)));
    assert!(mechanism.needs_reset(Time(2_280_000_000)));
}

/// With one list for all types, the highest priority is selected first wherever it is.
#[test]
fn one_list_orders_all_types() {
    let rates = Rates::from_rows(&[&[1.0, 1.0], &[1.0, 1.0]]).expect("rates");
    let mut mechanism = Mechanism::new(2, &Options::default(), false);
    (0..2).for_each(|id| mechanism.add(id, id, 1));
    let alone = vec![200_000_000, 800_000_000, 300_000_000, 100_000_000];
    mechanism.reset(Time(0), &Targets { types: 2, alone, pairs: Vec::new() });
    let runs = |rules: SelectionRules, mechanism: &mut Mechanism| -> Vec<(u32, usize)> {
        let selected = mechanism.select(&rates, &[0, 1], &[2, 2], rules);
        selected.iter().map(|selected| (selected.members[0], selected.worker_type)).collect()
    };
    assert_eq!(runs(SelectionRules { one_list: true, skip_zero: false }, &mut mechanism), [(0, 1), (1, 0)]);
    assert_eq!(runs(SelectionRules::default(), &mut mechanism), [(1, 0), (0, 0)]);
}
