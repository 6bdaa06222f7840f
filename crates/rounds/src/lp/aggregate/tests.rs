//! Comparisons with the program of single jobs.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::{Column, ColumnMember, JobClass, Program, solve};
use super::*;

/// Returns a random program of up to 5 kinds and 18 jobs on up to 3 types. `shape` selects degenerate instances.
fn random_program(random: &mut ChaCha8Rng, shape: usize) -> KindProgram {
    let types = if shape == 3 { 1 } else { random.random_range(1..=3usize) };
    let kinds = if shape == 4 { 1 } else { random.random_range(1..=5usize) };
    let capacity = (0..types).map(|_| f64::from(random.random_range(1..=6u32))).collect();
    let mut program = KindProgram { capacity, level: true, ..KindProgram::default() };
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for kind in 0..kinds as u32 {
        let base = 10f64.powf(random.random_range(-1.0..2.0));
        let mut own: Vec<f64> = (0..types).map(|_| base * random.random_range(0.05..1.0)).collect();
        if shape == 2 && types > 1 {
            own[random.random_range(0..types)] = 0.0;
        }
        let jobs = if shape == 4 { 1 } else { random.random_range(1..=18 / kinds) };
        let equal = base * random.random_range(0.1..3.0);
        // Equal jobs, jobs of very different size, or jobs of similar size.
        let slope = |random: &mut ChaCha8Rng| match shape {
            1 => equal,
            5 => base * 10f64.powf(random.random_range(-3.0..1.0)),
            _ => base * random.random_range(0.1..3.0),
        };
        program.kinds.push((0..jobs).map(|_| Need { base: 0.0, slope: slope(random) }).collect());
        for (j, &rate) in own.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            program.columns.push(KindColumn { worker_type: j as u32, width: 1.0, first: (kind, rate), second: None });
        }
        rates.push(own);
        for other in 0..=kind {
            for j in 0..types {
                let (a, b) = (rates[kind as usize][j], rates[other as usize][j]);
                if a == 0.0 || b == 0.0 || random.random_range(0..4u32) == 0 {
                    continue;
                }
                let first = (kind, a * random.random_range(0.3..1.0));
                let second = if other == kind { first } else { (other, b * random.random_range(0.3..1.0)) };
                program.columns.push(KindColumn { worker_type: j as u32, width: 1.0, first, second: Some(second) });
            }
        }
    }
    program
}

/// Returns the program with a class per job.
fn single_jobs(program: &KindProgram) -> Program {
    let mut first_of = Vec::new();
    let mut single = Program { capacity: program.capacity.clone(), level: program.level, ..Program::default() };
    for jobs in &program.kinds {
        first_of.push(single.classes.len() as u32);
        single.classes.extend(jobs.iter().map(|&need| JobClass { count: 1.0, need: Some(need) }));
    }
    for column in &program.columns {
        let jobs =
            |kind: u32| first_of[kind as usize]..first_of[kind as usize] + program.kinds[kind as usize].len() as u32;
        let member = |class: u32, rate: f64| ColumnMember { class, times: 1.0, rate };
        let mut add = |first: ColumnMember, second: Option<ColumnMember>| {
            let (worker_type, width) = (column.worker_type, column.width);
            single.columns.push(Column { worker_type, copies: 1.0, width, value: 0.0, first, second });
        };
        for a in jobs(column.first.0) {
            let Some((kind, rate)) = column.second else {
                add(member(a, column.first.1), None);
                continue;
            };
            for b in jobs(kind).filter(|&b| !column.is_inside() || b < a) {
                add(member(a, column.first.1), Some(member(b, rate)));
            }
        }
    }
    single
}

/// Checks time, capacity and rates of an allocation, with sums over its single jobs and pairs.
fn check(program: &KindProgram, solution: &KindSolution, instance: usize) {
    let mut time: Vec<Vec<f64>> = program.kinds.iter().map(|jobs| vec![0.0; jobs.len()]).collect();
    let (mut rate, mut used) = (time.clone(), vec![0.0; program.capacity.len()]);
    let find = |a: u32, b: Option<u32>, j: u32| {
        let kinds = |column: &&KindColumn| (column.first.0, column.second.map(|second| second.0)) == (a, b);
        program.columns.iter().filter(kinds).find(|column| column.worker_type == j).expect("a column")
    };
    let mut add = |job: KindJob, amount: f64, speed: f64| {
        time[job.0 as usize][job.1 as usize] += amount;
        rate[job.0 as usize][job.1 as usize] += amount * speed;
    };
    for &(job, j, amount) in &solution.alone {
        add(job, amount, find(job.0, None, j).first.1);
        used[j as usize] += amount;
    }
    for &(a, b, j, amount) in &solution.pairs {
        assert!(a != b && amount > 0.0, "{a:?} {b:?} {amount}");
        let column = find(a.0, Some(b.0), j);
        add(a, amount, column.first.1);
        add(b, amount, column.second.expect("a pair").1);
        used[j as usize] += amount;
    }
    assert!(time.iter().flatten().all(|&time| time <= 1.0 + 1e-9), "instance {instance}: {time:?}");
    assert!(used.iter().zip(&program.capacity).all(|(used, all)| *used <= all * (1.0 + 1e-9)), "{used:?}");
    for (rate, reported) in rate.iter().flatten().zip(solution.rates.iter().flatten()) {
        assert!((rate - reported).abs() <= 1e-12 * rate.abs(), "{rate} {reported}");
    }
}

/// 400 random programs, among them equal jobs, zero rates, one type, one job and very different sizes: the level differs from that of the
/// program of single jobs by at most 1e-9 of it, and the certificate encloses it.
#[test]
fn the_level_is_that_of_single_jobs() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut separated = 0;
    for instance in 0..400 {
        let program = random_program(&mut random, instance % 6);
        let own = solve_kinds(&program).unwrap_or_else(|error| panic!("instance {instance}: {error}"));
        check(&program, &own, instance);
        let slow = solve(&single_jobs(&program)).expect("a program with a solution").level;
        assert!(
            own.gap.relative().abs() < 1e-9 && own.gap.above >= slow * (1.0 - 1e-9),
            "instance {instance}: {:?}, expected {slow}",
            own.gap
        );
        let error = (own.gap.below - slow).abs() / slow;
        assert!(error < 1e-9, "instance {instance}: {:?} instead of {slow}, {error:.1e}", own.gap);
        separated += own.separated;
    }
    assert!(separated > 20, "only {separated} jobs were separated from their kind");
}

/// Programs outside the preconditions are refused.
#[test]
fn invalid_programs_are_refused() {
    let valid = KindProgram {
        capacity: vec![2.0],
        kinds: vec![vec![Need { base: 0.0, slope: 1.0 }; 3]],
        columns: vec![
            KindColumn { worker_type: 0, width: 1.0, first: (0, 2.0), second: None },
            KindColumn { worker_type: 0, width: 1.0, first: (0, 1.5), second: Some((0, 1.5)) },
        ],
        level: true,
    };
    assert!((solve_kinds(&valid).expect("a solution").gap.below - 5.0 / 3.0).abs() < 1e-9);
    let refused = |change: &dyn Fn(&mut KindProgram), expected: &str| {
        let mut program = valid.clone();
        change(&mut program);
        let error = solve_kinds(&program).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&|program| program.capacity[0] = 0.0, "worker type 0 has the capacity 0");
    refused(&|program| program.kinds[0].clear(), "kind 0 has no job or no column");
    refused(&|program| program.kinds.push(vec![Need { base: 0.0, slope: 1.0 }]), "kind 1 has no job or no column");
    refused(&|program| program.columns.iter_mut().for_each(|c| c.first.1 = 0.0), "unequal rates");
    refused(
        &|program| {
            program.columns.truncate(1);
            program.columns[0].first.1 = 0.0;
        },
        "kind 0 has no job or no column with a positive rate",
    );
    refused(&|program| program.kinds[0][1].slope = f64::NAN, "negative or not finite");
    refused(&|program| program.kinds[0][1].base = -1.0, "negative or not finite");
    refused(&|program| program.columns[0].worker_type = 1, "column 0 has a kind or worker type");
    refused(&|program| program.columns[0].width = 0.0, "column 0 has a width or rate out of range");
    refused(&|program| program.columns[1].second = Some((0, 1.0)), "a pair inside kind 0 with unequal rates");
    refused(&|program| program.kinds[0].iter_mut().for_each(|need| need.slope = 0.0), "no required rate depends");
}
