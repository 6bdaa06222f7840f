//! Tests of CEEI on the paper's examples and on random problems, with the optimality conditions checked independently of the solver.

use super::*;
use crate::User;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn solved(dims: usize, rows: &[&[f64]], weight: &[f64], tasks: &[f64]) -> Market {
    let demand = (0..dims).flat_map(|r| rows.iter().map(move |row| row[r])).collect();
    let problem = Problem::new(dims, demand, weight.to_vec(), tasks.to_vec());
    let mut market = Market::new();
    market.solve(&problem).expect("prices exist");
    market
}

const ENDLESS: f64 = f64::INFINITY;

#[test]
fn the_papers_examples_come_out() {
    let near = |found: &[f64], expected: &[f64]| {
        let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-13 * b.abs());
        assert!(close, "{found:?} {expected:?}");
    };
    let market = solved(2, &[&[1.0 / 9.0, 4.0 / 18.0], &[3.0 / 9.0, 1.0 / 18.0]], &[1.0; 2], &[ENDLESS; 2]);
    near(market.tasks(), &[45.0 / 11.0, 18.0 / 11.0]);
    near(market.prices(), &[1.8, 0.2]);
    let market = solved(2, &[&[0.16, 0.01], &[0.01, 0.02]], &[1.0; 2], &[ENDLESS; 2]);
    near(market.tasks(), &[100.0 / 31.0, 1500.0 / 31.0]);
    let market = solved(2, &[&[1.0 / 30.0, 0.1], &[1.0 / 30.0, 1.0 / 30.0]], &[1.0; 2], &[ENDLESS; 2]);
    near(market.tasks(), &[5.0, 15.0]);
    assert_eq!(market.prices()[0], 0.0);
    assert_eq!(market.tasks().len(), 2);
}

/// Returns a random problem. Some problems have demands of zero, very small demands (for prices near zero), finite numbers of tasks, or
/// equal demands.
fn random(rng: &mut ChaCha8Rng, users: usize, dims: usize) -> Problem {
    let zeros = rng.random_range(0..3) as f64 * 0.3;
    let finite = rng.random_range(0..3) as f64 * 0.5;
    let same = rng.random_bool(0.1);
    let small = rng.random_bool(0.2);
    let mut demand = vec![0.0; users * dims];
    for i in 0..users {
        for r in 0..dims {
            if !rng.random_bool(zeros) {
                let scale = if small { 10f64.powf(rng.random_range(-6.0..0.0)) } else { 1.0 };
                demand[r * users + i] = if same { 0.1 } else { rng.random_range(0.001..1.0) * scale };
            }
        }
        if (0..dims).all(|r| demand[r * users + i] == 0.0) {
            demand[rng.random_range(0..dims) * users + i] = 0.5;
        }
    }
    let weight = (0..users).map(|_| if rng.random_bool(0.5) { 1.0 } else { rng.random_range(0.1..10.0) }).collect();
    let tasks = (0..users)
        .map(|_| if rng.random_bool(finite) { 10f64.powf(rng.random_range(-3.0..1.0)) } else { ENDLESS })
        .collect();
    Problem::new(dims, demand, weight, tasks)
}

#[test]
fn every_solution_passes_its_certificate() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut market = Market::new();
    let mut most = 0;
    for case in 0..20_000 {
        let (users, dims) = (rng.random_range(1..=50), rng.random_range(1..=6));
        let problem = random(&mut rng, users, dims);
        if case % 2 == 0 {
            market.forget();
        }
        market.solve(&problem).unwrap_or_else(|error| panic!("case {case}: {error}: {problem:?}"));
        most = most.max(market.steps());
        check(&problem, &market);
    }
    assert!(most < 20, "{most} steps were needed");
}

/// Checks the optimality conditions independently: the prices clear the market, and each user buys the bundle that it can afford.
fn check(problem: &Problem, market: &Market) {
    let (prices, tasks) = (market.prices(), market.tasks());
    for (r, price) in prices.iter().enumerate() {
        let used: f64 = problem.column(r).iter().zip(tasks).map(|(need, tasks)| need * tasks).sum();
        assert!(used <= 1.0 + 1e-9, "resource {r} is overfull: {used}");
        assert!(*price >= 0.0 && (*price == 0.0 || (1.0 - used).abs() <= 1e-9), "resource {r}: {price} {used}");
    }
    for (i, tasks) in tasks.iter().enumerate() {
        let pay: f64 = problem.row(i).zip(prices).map(|(need, price)| need * price).sum();
        let (weight, most) = (problem.weight()[i], problem.tasks()[i]);
        let wanted = if pay > 0.0 { (weight / pay).min(most) } else { most };
        assert!((tasks - wanted).abs() <= 1e-9 * wanted, "user {i} buys {tasks}, not {wanted}");
    }
}

/// Ghodsi et al., NSDI 2011, 5.2, figures 5, 6 and 7; theorem 6.
#[test]
fn the_papers_fractions_are_recognised() {
    let allocate = |capacity: [u64; 2], demands: &[[u64; 2]]| {
        let numbers = |values: &[u64]| values.iter().map(|&value| Exact::from(value)).collect::<Vec<_>>();
        let users = demands.iter().enumerate().map(|(i, d)| User::new(format!("{i}"), numbers(d))).collect();
        let instance = Instance::new(vec!["cpu".into(), "memory".into()], numbers(&capacity), users);
        Ceei.allocate(&instance.expect("a good instance")).expect("prices exist")
    };
    let exact = |capacity, demands: &[[u64; 2]]| -> Vec<String> {
        allocate(capacity, demands).tasks.exact().expect("fractions").iter().map(ToString::to_string).collect()
    };
    assert_eq!(exact([9, 18], &[[1, 4], [3, 1]]), ["45/11", "18/11"]);
    assert_eq!(allocate([9, 18], &[[1, 4], [3, 1]]).prices, Some(vec![0.2, 1.0 / 90.0]));
    assert_eq!(exact([30, 30], &[[1, 3], [1, 1]]), ["5", "15"]);
    assert_eq!(exact([100, 100], &[[16, 1], [1, 2]]), ["100/31", "1500/31"]);
    assert_eq!(exact([100, 100], &[[16, 8], [1, 2]]), ["25/6", "100/3"]);
    assert_eq!(exact([100, 100], &[[4, 1], [1, 16]]), ["500/21", "100/21"]);
    assert_eq!(exact([100, 100], &[[2, 1], [1, 2]]), ["100/3", "100/3"]);
    assert_eq!(exact([100, 400], &[[2, 1], [1, 2]]), ["25", "50"]);
    let seven = allocate([100, 100], &[[4, 1], [1, 16], [16, 1]]);
    let rounded: Vec<String> = seven.tasks.floats().iter().map(|x| format!("{x:.3}")).collect();
    assert_eq!(rounded, ["11.283", "5.351", "3.095"]);
    assert!(seven.certificate.expect("not a fraction").gap <= 1e-12);
}
