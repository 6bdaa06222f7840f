//! The worked examples of policies (numbers E1 to E22 of `reference/rounds.md`).

use super::finish_time::{Finish, finish_time};
use super::*;
use crate::lp::Need;
use crate::mechanism::WHOLE;
use crate::table::PairRate;
use crate::table::Rate;

/// Returns jobs of weight 1 and scale 1, one per row of rates.
fn jobs(count: usize) -> Vec<ActiveJob> {
    let job = |id: u32| ActiveJob {
        id,
        kind: id,
        scale: 1,
        weight: 1,
        entity: 0,
        arrival: Time(0),
        remaining: 1_000_000,
        done: 0,
        deadline: None,
    };
    (0..count as u32).map(job).collect()
}

fn rates(rows: &[&[f64]]) -> Rates {
    Rates::from_rows(rows).expect("valid rates")
}

fn view<'a>(jobs: &'a [ActiveJob], rates: &'a Rates, capacity: &'a [u32]) -> View<'a> {
    View { now: Time(0), jobs, rates, capacity }
}

#[track_caller]
fn near(values: &[f64], expected: &[f64]) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{values:?} instead of {expected:?}");
    }
}

const E1: [&[f64]; 3] = [&[4.0, 2.0], &[6.0, 1.0], &[1.0, 1.0]];

#[test]
fn e1_max_min_aware() {
    let (jobs, rates) = (jobs(3), rates(&E1));
    let view = view(&jobs, &rates, &[1, 1]);
    near(&proportional_rates(&view), &[3.0, 3.5, 1.0]);
    let solved = max_min(&view, true, false).expect("a solution");
    assert!((solved.level - 9.0 / 11.0).abs() < 1e-9);
    near(&solved.alone, &[23.0 / 44.0, 2.0 / 11.0, 21.0 / 44.0, 0.0, 0.0, 9.0 / 11.0]);
}

#[test]
fn e2_max_min_agnostic() {
    let (jobs, rates) = (jobs(3), rates(&E1));
    let solved = max_min(&view(&jobs, &rates, &[1, 1]), false, false).expect("a solution");
    assert!((solved.level - 2.0 / 3.0).abs() < 1e-9);
    near(&solved.alone, &[1.0 / 3.0; 6]);
}

#[test]
fn e3_three_types() {
    let (jobs, rates) = (jobs(3), rates(&[&[40.0, 20.0, 10.0], &[12.0, 10.0, 4.0], &[100.0, 30.0, 5.0]]));
    let view = view(&jobs, &rates, &[1, 1, 1]);
    let solved = max_min(&view, true, false).expect("a solution");
    assert!((solved.level - 996.0 / 889.0).abs() < 1e-9);
    near(&solved.alone, &[0.521935, 0.048369, 0.429696, 0.0, 0.951631, 0.048369, 0.478065, 0.0, 0.521935]);
    assert!((max_min(&view, false, false).expect("a solution").level - 1.0).abs() < 1e-9);
}

#[test]
fn e4_weights() {
    let mut three = jobs(3);
    (three[1].weight, three[2].weight) = (2, 5);
    let one_type = rates(&[&[1.0], &[1.0], &[1.0]]);
    let solved = max_min(&view(&three, &one_type, &[1]), true, false).expect("a solution");
    assert!((solved.level - 0.125).abs() < 1e-9);
    near(&solved.alone, &[0.125, 0.25, 0.625]);
    let mut two = jobs(2);
    two[1].weight = 3;
    let solved = max_min(&view(&two, &rates(&[&[2.0, 1.0], &[2.0, 1.0]]), &[1, 1]), true, false).expect("a solution");
    assert!((solved.level - 4.0 / 9.0).abs() < 1e-9);
    near(&solved.alone[2..], &[1.0, 0.0]);
    assert!((2.0 / 3.0 - 1e-9..=1.0 + 1e-9).contains(&solved.alone[1]));
}

#[test]
fn e5_scale() {
    let mut four = jobs(4);
    (four[0].scale, four[1].scale) = (4, 2);
    let one_type = rates(&[&[1.0], &[1.0], &[1.0], &[1.0]]);
    let solved = max_min(&view(&four, &one_type, &[4]), true, false).expect("a solution");
    assert!((solved.level - 1.0).abs() < 1e-9);
    near(&solved.alone, &[0.25, 0.5, 1.0, 1.0]);
    let mut two = jobs(2);
    two[0].scale = 2;
    let solved = max_min(&view(&two, &rates(&[&[8.0, 2.0], &[2.0, 1.0]]), &[2, 2]), true, false).expect("a solution");
    assert!((solved.level - 4.0 / 3.0).abs() < 1e-9);
    near(&solved.alone[2..], &[1.0, 0.0]);
    assert!(8.0 * solved.alone[0] + 2.0 * solved.alone[1] > 10.0 / 3.0 - 1e-8);
}

fn pair(first: f64, second: f64) -> PairRate {
    let rate = |value: f64| Rate::new(value).expect("a rate");
    PairRate { first: rate(first), second: rate(second) }
}

/// Returns the fractions of all pairs in the order of [`Targets::pairs`].
fn pairs(solved: &Fractions) -> Vec<f64> {
    solved.targets().pairs.iter().map(|&x| f64::from(x) / f64::from(WHOLE)).collect()
}

#[test]
fn e6_pairs_on_one_accelerator() {
    let (jobs, mut rates) = (jobs(3), rates(&[&[10.0], &[10.0], &[10.0]]));
    rates.set_pair(0, 1, 0, pair(6.0, 6.0));
    rates.set_pair(0, 2, 0, pair(9.0, 3.0));
    rates.set_pair(1, 2, 0, pair(5.0, 5.0));
    let view = view(&jobs, &rates, &[1]);
    let solved = max_min(&view, true, true).expect("a solution");
    assert!((solved.level - 0.375).abs() < 1e-9);
    near(&solved.alone, &[0.0, 0.0, 0.375]);
    // Pairs (0, 1), (0, 2), (1, 2).
    near(&pairs(&solved), &[0.625, 0.0, 0.0]);
    assert!((max_min(&view, true, false).expect("a solution").level - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn e7_pairs_on_two_types() {
    let (jobs, mut rates) = (jobs(2), rates(&[&[10.0, 4.0], &[20.0, 4.0]]));
    rates.set_pair(0, 1, 0, pair(8.0, 16.0));
    rates.set_pair(0, 1, 1, pair(1.0, 2.0));
    let view = view(&jobs, &rates, &[1, 1]);
    let solved = max_min(&view, true, true).expect("a solution");
    assert!((solved.level - 32.0 / 27.0).abs() < 1e-9);
    near(&solved.alone, &[4.0 / 27.0, 0.0, 0.0, 4.0 / 27.0]);
    near(&pairs(&solved), &[23.0 / 27.0, 0.0]);
    let solved = max_min(&view, true, false).expect("a solution");
    assert!((solved.level - 1.0).abs() < 1e-9);
}

#[test]
fn e8_finish_time_fairness() {
    let finish = |age: f64, left: f64, before: f64, isolated_rate: f64| Finish {
        age,
        left,
        norm: before + left / isolated_rate,
        isolated_rate,
    };
    let (two, one_type) = (jobs(2), rates(&[&[1.0], &[2.0]]));
    let one = view(&two, &one_type, &[1]);
    let problem = [finish(300.0, 600.0, 150.0, 0.5), finish(0.0, 2400.0, 0.0, 1.0)];
    let solved = finish_time(&one, &problem, &|job, j| one.rate(job, j)).expect("a solution");
    near(&[solved.level], &[1.062047]);
    near(&solved.alone, &[0.529211, 0.470789]);
    let (three, two_types) = (jobs(3), rates(&E1));
    let view = view(&three, &two_types, &[1, 1]);
    near(&isolated_rates(&view), &[2.0, 7.0 / 3.0, 2.0 / 3.0]);
    let problem = [
        finish(0.0, 3600.0, 0.0, 2.0),
        finish(1000.0, 1200.0, 700.0, 7.0 / 3.0),
        finish(500.0, 800.0, 400.0, 2.0 / 3.0),
    ];
    let solved = finish_time(&view, &problem, &|job, j| view.rate(job, j)).expect("a solution");
    near(&[solved.level], &[1.060696]);
    near(&solved.alone, &[0.305526, 0.331726, 0.694474, 0.0, 0.0, 0.668274]);
}

#[test]
fn e9_makespan() {
    let (mut three, two_types) = (jobs(3), rates(&E1));
    (three[0].remaining, three[1].remaining, three[2].remaining) = (3_600_000_000, 1_200_000_000, 800_000_000);
    let one = view(&three, &two_types, &[1, 1]);
    let solved = makespan(&one, &|job, j| one.rate(job, j), false, 0.0).expect("a solution");
    assert!((solved.level - 1000.0).abs() < 1e-6);
    near(&solved.alone, &[0.8, 0.2, 0.2, 0.0, 0.0, 0.8]);
    let rounded = makespan(&one, &|job, j| one.rate(job, j), false, 0.05).expect("a solution");
    assert!((rounded.level - 1015.4358).abs() < 1e-4);
    let mut two = jobs(2);
    (two[0].scale, two[0].remaining, two[1].remaining) = (2, 8_000_000_000, 1_500_000_000);
    let wide = rates(&[&[8.0, 2.0], &[2.0, 1.0]]);
    let view = view(&two, &wide, &[2, 2]);
    let solved = makespan(&view, &|job, j| view.rate(job, j), false, 0.0).expect("a solution");
    assert!((solved.level - 12_500.0 / 11.0).abs() < 1e-6);
    near(&solved.alone, &[0.84, 0.16, 0.32, 0.68]);
}

#[test]
fn e10_cost_and_deadlines() {
    let (two, own) = (jobs(2), rates(&[&[40.0, 30.0], &[20.0, 8.0]]));
    let view = view(&two, &own, &[1, 1]);
    let price = |j: usize| [2.0, 1.0][j];
    let value = |x: &[f64]| 20.0 * x[0] + 30.0 * x[1] + 10.0 * x[2] + 8.0 * x[3];
    let solve = |needs: [Option<f64>; 2]| cost::largest_value(&view, &price, &needs).expect("a solution").alone;
    let free = solve([None, None]);
    near(&free, &[0.0, 1.0, 1.0, 0.0]);
    near(&[value(&free)], &[40.0]);
    let one = solve([Some(36.0), None]);
    near(&one, &[0.6, 0.4, 0.4, 0.6]);
    near(&[value(&one)], &[32.8]);
    near(&solve([Some(38.0), Some(18.0)]), &free);
}

#[test]
fn e11_closed_forms() {
    let targets = |name: &str, scales: &[u32], capacity: &[u32]| {
        let mut jobs = jobs(scales.len());
        jobs.iter_mut().zip(scales).for_each(|(job, scale)| job.scale = *scale);
        let rows: Vec<&[f64]> = vec![&[1.0, 1.0, 1.0][..capacity.len()]; scales.len()];
        let rates = rates(&rows);
        let row = policy(name).expect("a policy");
        let mut policy = (row.create)(&PolicyOptions::default());
        let targets = policy.targets(&view(&jobs, &rates, capacity)).expect("targets");
        targets.alone.iter().map(|&x| f64::from(x) / f64::from(WHOLE)).collect::<Vec<f64>>()
    };
    near(&targets("isolated", &[1, 4], &[3, 1]), &[0.75, 0.25, 0.375, 0.125]);
    let (whole, third) = ([0.4, 0.4, 0.2], [1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]);
    near(&targets("isolated", &[1, 2, 1], &[2, 2, 1]), &[whole, third, whole].concat());
    near(&targets("gandiva", &[1, 2, 1], &[2, 2, 1]), &[whole, third, whole].concat());
    near(&targets("proportional", &[1, 2, 1], &[2, 2, 1]), &[whole; 3].concat());
}

#[test]
fn e16_water_filling_intended_and_published() {
    let mut three = jobs(3);
    three[2].entity = 1;
    let one_type = rates(&[&[1.0], &[1.0], &[1.0]]);
    let view = view(&three, &one_type, &[2]);
    let weight = |entity: u32| f64::from(entity + 1);
    let levels = |within: Within, bottlenecks: Bottlenecks| {
        water_fill(&view, true, within, &[1.0; 3], &weight, bottlenecks).expect("a solution").1
    };
    let close = |levels: Vec<f64>, expected: [f64; 3]| {
        // Later steps lower reached levels by 10^-5.
        levels.iter().zip(expected).for_each(|(level, expected)| assert!((level - expected).abs() < 2e-5, "{level}"));
    };
    close(levels(Within::Fair, Bottlenecks::Intended), [0.5, 0.5, 1.0]);
    close(levels(Within::Fair, Bottlenecks::Published), [0.25, 0.25, 1.0]);
    close(levels(Within::Fifo, Bottlenecks::Intended), [1.0, 0.0, 1.0]);
    close(levels(Within::Fifo, Bottlenecks::Published), [0.5, 0.5, 1.0]);
}

/// Jobs that reach the limit of their own time together have the levels of a filling that ends at the first limit in each step. Accelerators
/// suffice for some of the jobs, so both kinds of limits occur. Levels differ by up to 0.002: each
/// step of the reference lowers reached levels by 10^-5 and ends jobs with up to twice the least surplus.
#[test]
fn own_limits_together_equal_single_steps() {
    let mut random = crate::random::PythonRandom::new(31);
    let mut together_limits = 0;
    for _ in 0..60 {
        let mut jobs = jobs(2 + random.below(14));
        let own: Vec<Vec<f64>> =
            jobs.iter().map(|_| (0..3).map(|_| 1.0 + (random.below(400) as f64) / 10.0).collect()).collect();
        let rows: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        let rates = rates(&rows);
        jobs.iter_mut()
            .for_each(|job| (job.weight, job.scale) = (1 + random.below(3) as u32, 1 + random.below(2) as u32));
        let capacity = [2 + random.below(6) as u32, 2 + random.below(4) as u32, 2];
        let view = view(&jobs, &rates, &capacity);
        let weights: Vec<f64> = jobs.iter().map(|job| f64::from(job.weight)).collect();
        let fill = |together: bool| {
            water_filling::fill(&view, true, Within::Flat, (&weights, &|_| 1.0), Bottlenecks::Intended, together)
                .expect("levels")
                .1
        };
        let (fast, slow) = (fill(true), fill(false));
        for (at, (fast, slow)) in fast.iter().zip(&slow).enumerate() {
            assert!((fast / slow - 1.0).abs() < 2e-3, "job {at}: {fast} instead of {slow}: {own:?} {capacity:?}");
        }
        let norm = proportional_rates(&view);
        let limit = |at: usize| own[at].iter().copied().fold(0.0, f64::max) / norm[at];
        together_limits += usize::from((0..jobs.len()).filter(|&at| slow[at] > limit(at) * 0.9999).count() > 2);
    }
    assert!(together_limits > 10, "{together_limits}");
}

/// E22: zero rates, no job, one job; a job that can run nowhere is an error.
#[test]
fn e22_degenerate_input() {
    let (two, own) = (jobs(2), rates(&[&[0.0, 2.0], &[4.0, 2.0]]));
    let solved = max_min(&view(&two, &own, &[1, 1]), true, false).expect("a solution");
    assert!((solved.level - 4.0 / 3.0).abs() < 1e-9);
    assert_eq!(solved.alone[0], 0.0);
    assert!((2.0 / 3.0 - 1e-9..=1.0 + 1e-9).contains(&solved.alone[1]));
    near(&solved.alone[2..], &[1.0, 0.0]);
    let nowhere = rates(&[&[0.0, 0.0], &[4.0, 2.0]]);
    let error = max_min(&view(&two, &nowhere, &[1, 1]), true, false).expect_err("job 0 has no rate");
    assert!(error.to_string().starts_with("job 0 of scale 1 can run on no worker type"), "{error}");
    let mut wide = jobs(2);
    wide[0].scale = 4;
    let same = rates(&[&[1.0], &[1.0]]);
    assert!(max_min(&view(&wide, &same, &[2]), true, false).is_err());
    for row in POLICIES {
        let mut policy = (row.create)(&PolicyOptions::default());
        let targets = policy.targets(&view(&[], &own, &[1, 1])).expect(row.name);
        assert!(targets.alone.is_empty(), "{}", row.name);
    }
    let solved = max_min(&view(&jobs(1), &same, &[1]), true, false).expect("a solution");
    near(&solved.alone, &[1.0]);
}

/// Each policy's fractions respect time and capacity, on random jobs.
#[test]
fn fractions_respect_time_and_capacity() {
    let mut random = crate::random::PythonRandom::new(9);
    // Shockwave has one worker type.
    for row in POLICIES.iter().filter(|row| row.name != "shockwave") {
        let mut policy = (row.create)(&PolicyOptions::default());
        for _ in 0..20 {
            let mut jobs = jobs(1 + random.below(12));
            let own: Vec<Vec<f64>> =
                jobs.iter().map(|_| (0..3).map(|_| 0.5 + random.below(40) as f64).collect()).collect();
            let rows: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
            let mut rates = rates(&rows);
            for a in 0..jobs.len() {
                (jobs[a].remaining, jobs[a].weight) = (1_000_000 * (1 + random.below(1000) as u64), 1 + (a % 2) as u32);
                for b in 0..a {
                    (0..3).for_each(|j| rates.set_pair(a, b, j, pair(own[a][j] * 0.7, own[b][j] * 0.6)));
                }
            }
            let capacity = [2, 3, 1];
            let targets = policy.targets(&view(&jobs, &rates, &capacity)).expect(row.name);
            let mut used = [0u64; 3];
            let mut time = vec![0u64; jobs.len()];
            for (at, x) in targets.alone.chunks(3).enumerate() {
                (0..3).for_each(|j| used[j] += u64::from(x[j]));
                time[at] += x.iter().map(|&x| u64::from(x)).sum::<u64>();
            }
            for b in 0..jobs.len() {
                for a in 0..b {
                    let at = Targets::pair_index(a, b) * 3;
                    let Some(x) = targets.pairs.get(at..at + 3) else { continue };
                    (0..3).for_each(|j| used[j] += u64::from(x[j]));
                    let sum = x.iter().map(|&x| u64::from(x)).sum::<u64>();
                    (time[a], time[b]) = (time[a] + sum, time[b] + sum);
                }
            }
            let slack = u64::from(WHOLE) / 1_000_000;
            assert!(time.iter().all(|&time| time <= u64::from(WHOLE) + slack), "{}: {time:?}", row.name);
            // FIFO as published and the proportional form may exceed the capacity of a type.
            if !matches!(row.name, "fifo" | "proportional") {
                let within = |j: usize| used[j] <= u64::from(WHOLE) * u64::from(capacity[j]) + slack;
                assert!((0..3).all(within), "{}: {used:?}", row.name);
            }
        }
    }
}

/// Jobs with distinct work by kind have the makespan of the program of single jobs, and fractions that complete all jobs in time.
#[test]
fn makespans_by_kind_are_those_of_single_jobs() {
    let mut random = crate::random::PythonRandom::new(33);
    for instance in 0..40 {
        let kinds = 1 + random.below(4);
        let own: Vec<Vec<f64>> = (0..kinds).map(|_| (0..3).map(|_| 1.0 + random.below(40) as f64).collect()).collect();
        let rows: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        let mut rates = rates(&rows);
        for a in 0..kinds {
            for b in 0..=a {
                let part = 0.4 + 0.05 * random.below(11) as f64;
                (0..3).for_each(|j| rates.set_pair(a, b, j, pair(own[a][j] * part, own[b][j] * part)));
            }
        }
        let mut jobs = jobs(2 + random.below(28));
        jobs.iter_mut().for_each(|job| {
            (job.kind, job.remaining) = (random.below(kinds) as u32, 1_000_000 * (1 + random.below(100_000) as u64));
        });
        let capacity = [2, 3, 1];
        let view = view(&jobs, &rates, &capacity);
        let rate = |job: usize, j: usize| view.rate(job, j);
        let slow = makespan(&view, &rate, true, 0.0).expect("a solution").level;
        for (level, time) in [(true, slow), (false, slow * 1.05)] {
            let need = |job: &ActiveJob| {
                let work = job.iterations();
                Some(if level { Need { base: 0.0, slope: work } } else { Need { base: work / time, slope: 0.0 } })
            };
            let needs = jobs.iter().map(need).collect();
            let label = |job: usize| u64::from(jobs[job].kind);
            let model = fractions::Model {
                needs,
                rate: &rate,
                value: None,
                level,
                packing: true,
                label: &label,
                accepted: 1e-9,
            };
            let solved = model.solve_by_kind(&view).expect("a certified solution");
            if level {
                assert!((solved.level * slow - 1.0).abs() < 1e-9, "instance {instance}: {} {slow}", solved.level);
            }
            let mut done: Vec<f64> =
                (0..jobs.len()).map(|at| (0..3).map(|j| rate(at, j) * solved.alone[at * 3 + j]).sum()).collect();
            for beside in &solved.pairs {
                let [a, b] = beside.jobs.map(|at| at as usize);
                let of = rates.pair(jobs[a].kind, jobs[b].kind, beside.worker_type as usize).expect("a pair");
                (done[a], done[b]) = (done[a] + of.first.per_s * beside.x, done[b] + of.second.per_s * beside.x);
            }
            for (done, job) in done.iter().zip(&jobs) {
                assert!(done * time >= job.iterations() * (1.0 - 1e-8), "instance {instance}: {done}");
            }
        }
    }
}
