//! Dominant resource fairness by fast filling, compared with its lower bound (one pass over the demands) and with simple methods: users
//! sorted by the level at which they have all tasks, the plain loop, and a linear program.

use std::hint::black_box;
use std::time::Duration;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::fair::{Levels, Problem, fill};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Kinds of users, with the probabilities that a demand is 0 and that the number of tasks is finite.
const KINDS: [(&str, f64, f64); 4] = [
    ("endless", 0.0, 0.0),
    ("half finite", 0.0, 0.5),
    ("zero demands", 0.3, 0.0),
    ("zero demands, half finite", 0.3, 0.5),
];

/// Returns a problem of random users. Users with a finite number of tasks reach it near the level at which the first resource is used up.
fn problem(users: usize, dims: usize, zeros: f64, finite: f64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut amount =
        |_| if rng.random_bool(zeros) { 0.0 } else { rng.random_range(1.0..100.0) / (100.0 * users as f64) };
    let mut demand: Vec<f64> = (0..users * dims).map(&mut amount).collect();
    for i in 0..users {
        if (0..dims).all(|r| demand[r * users + i] == 0.0) {
            demand[i] = 0.5 / users as f64;
        }
    }
    let weight = (0..users).map(|_| rng.random_range(1.0..4.0)).collect();
    let mut tasks = |_| if rng.random_bool(finite) { rng.random_range(0.0..4.0) } else { f64::INFINITY };
    let tasks = (0..users).map(&mut tasks).collect();
    Problem::new(dims, demand, weight, tasks)
}

/// Returns the sum of all demands, which reads every number from memory once.
fn read(problem: &Problem) -> f64 {
    let mut sums = [0.0; 16];
    for r in 0..problem.dims() {
        let (lanes, rest) = problem.column(r).as_chunks::<16>();
        lanes.iter().for_each(|lane| sums.iter_mut().zip(lane).for_each(|(sum, demand)| *sum += demand));
        sums[0] += rest.iter().sum::<f64>();
    }
    sums.iter().sum()
}

/// Fills by a sorted list of users: advances from the stop of one user to the next, and reduces the total speed at each stop.
fn sorted(problem: &Problem) -> Vec<f64> {
    let (users, dims) = (problem.users(), problem.dims());
    let rate: Vec<f64> = (0..users).map(|i| problem.weight()[i] / problem.row(i).fold(0.0, f64::max)).collect();
    let full: Vec<f64> = problem.tasks().iter().zip(&rate).map(|(tasks, rate)| tasks / rate).collect();
    let mut order: Vec<usize> = (0..users).collect();
    order.sort_unstable_by(|&a, &b| full[a].total_cmp(&full[b]));
    let (mut left, mut speed, mut stop) = (vec![1.0; dims], vec![0.0; dims], vec![f64::NAN; users]);
    let change = |speed: &mut [f64], i: usize, by: f64| {
        problem.row(i).zip(speed).for_each(|(demand, speed)| *speed += by * demand);
    };
    (0..users).for_each(|i| change(&mut speed, i, rate[i]));
    let (mut level, mut next) = (0.0, 0);
    while let Some(&first) = order.get(next) {
        if !stop[first].is_nan() {
            next += 1;
            continue;
        }
        let until = |r: usize| if speed[r] > 1e-9 { left[r] / speed[r] } else { f64::INFINITY };
        let used_up = (0..dims).min_by(|&a, &b| until(a).total_cmp(&until(b))).expect("some resource");
        let step = until(used_up).min(full[first] - level);
        left.iter_mut().zip(&speed).for_each(|(left, speed)| *left -= step * speed);
        level += step;
        if full[first] <= level {
            stop[first] = level;
            change(&mut speed, first, -rate[first]);
            continue;
        }
        for (i, _) in problem.column(used_up).iter().enumerate().filter(|(_, demand)| **demand > 0.0) {
            if stop[i].is_nan() {
                stop[i] = level;
                change(&mut speed, i, -rate[i]);
            }
        }
        speed[used_up] = 0.0;
    }
    stop.iter().zip(&rate).map(|(stop, rate)| stop * rate).collect()
}

/// Returns the round-by-round loop, which uses rows of demands.
fn plain(problem: &Problem) -> impl Fn() -> Vec<f64> + use<> {
    let users = problem.users();
    let rows: Vec<Vec<f64>> = (0..users).map(|i| problem.row(i).collect()).collect();
    let stage: Vec<(usize, f64)> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| (i, problem.weight()[i] / row.iter().copied().fold(0.0, f64::max)))
        .collect();
    let caps: Vec<Option<f64>> = problem.tasks().iter().map(|tasks| Some(*tasks).filter(|t| t.is_finite())).collect();
    let capacity = vec![1.0; problem.dims()];
    move || fill(&capacity, &rows, &caps, std::slice::from_ref(&stage)).tasks
}

/// Returns a linear program for the largest common level: the solution for endless users that need every resource.
fn program(problem: &Problem) -> impl Fn() -> f64 + use<> {
    let (users, dims) = (problem.users(), problem.dims());
    let row = |r: usize| problem.column(r).iter().copied().chain([0.0]).collect::<Vec<f64>>();
    let mut rows: Vec<Vec<f64>> = (0..dims).map(row).collect();
    for i in 0..users {
        let mut floor = vec![0.0; users + 1];
        floor[i] = -1.0;
        floor[users] = problem.weight()[i] / problem.row(i).fold(0.0, f64::max);
        rows.push(floor);
    }
    let matrix = CscMatrix::from(&rows);
    let bounds: Vec<f64> = (0..rows.len()).map(|row| if row < dims { 1.0 } else { 0.0 }).collect();
    let mut costs = vec![0.0; users + 1];
    costs[users] = -1.0;
    move || {
        let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
        let nothing = CscMatrix::zeros((users + 1, users + 1));
        let cones = [NonnegativeConeT(matrix.m)];
        let mut solver = DefaultSolver::new(&nothing, &costs, &matrix, &bounds, &cones, settings).expect("a program");
        solver.solve();
        solver.solution.x[users]
    }
}

fn filling(criterion: &mut Criterion) {
    let dims = 8;
    for users in [1_000_000, 10_000] {
        for (name, zeros, finite) in KINDS {
            let problem = problem(users, dims, zeros, finite);
            let mut group = criterion.benchmark_group(format!("filling/{users}x{dims}/{name}"));
            group.throughput(Throughput::Bytes((users * dims * size_of::<f64>()) as u64));
            let mut levels = Levels::new();
            group.bench_function("levels", |bencher| {
                bencher.iter(|| levels.drf(&problem).map(|()| black_box(levels.tasks()[0])).expect("a filling ends"))
            });
            group.bench_function("one reading", |bencher| bencher.iter(|| black_box(read(&problem))));
            group.bench_function("sorted", |bencher| bencher.iter(|| black_box(sorted(&problem))));
            if users == 10_000 {
                let plain = plain(&problem);
                group.bench_function("plain loop", |bencher| bencher.iter(|| black_box(plain())));
            }
            group.finish();
        }
    }
    let problem = problem(200, 4, 0.0, 0.0);
    let mut group = criterion.benchmark_group("filling/200x4/endless");
    let mut levels = Levels::new();
    group.bench_function("levels", |bencher| {
        bencher.iter(|| levels.drf(&problem).map(|()| black_box(levels.tasks()[0])).expect("a filling ends"))
    });
    let program = program(&problem);
    group.bench_function("linear program (clarabel)", |bencher| bencher.iter(|| black_box(program())));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = filling
}
criterion_main!(benches);
