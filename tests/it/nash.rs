//! Compares CEEI with an interior-point solver on random problems.

use plimsoll::fair::{Market, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::interior::nash;

/// Draws users with demands of 0.001 to 1 of the cluster. Some demands are zero, some users have finitely many tasks, and some have weights
/// other than 1.
fn random(rng: &mut ChaCha8Rng) -> Problem {
    let (users, dims) = (rng.random_range(1..=50), rng.random_range(1..=6));
    let (zeros, finite) = (rng.random_range(0..3) as f64 * 0.25, rng.random_range(0..3) as f64 * 0.4);
    let mut demand = vec![0.0; users * dims];
    for i in 0..users {
        for r in 0..dims {
            if !rng.random_bool(zeros) {
                demand[r * users + i] = rng.random_range(0.001..1.0);
            }
        }
        if (0..dims).all(|r| demand[r * users + i] == 0.0) {
            demand[rng.random_range(0..dims) * users + i] = 0.5;
        }
    }
    let weight = (0..users).map(|_| if rng.random_bool(0.5) { 1.0 } else { rng.random_range(0.2..5.0) }).collect();
    let tasks = (0..users).map(|_| if rng.random_bool(finite) { rng.random_range(0.005..1.0) } else { f64::INFINITY });
    Problem::new(dims, demand, weight, tasks.collect())
}

/// The certificate of the market proves its solution. The interior-point solver (the witness) must agree within its own, lower accuracy:
/// differences of up to 2e-4 of a user's tasks were observed.
#[test]
fn agrees_with_an_interior_point_solver() {
    let mut rng = ChaCha8Rng::seed_from_u64(2011);
    let (mut gave_up, mut worst) = (0, 0.0f64);
    for case in 0..1000 {
        let problem = random(&mut rng);
        let mut market = Market::new();
        market.solve(&problem).unwrap_or_else(|error| panic!("case {case}: {error}"));
        let Some(witness) = nash(&problem) else {
            gave_up += 1;
            continue;
        };
        for (i, (ours, theirs)) in market.tasks().iter().zip(&witness).enumerate() {
            let off = (ours - theirs).abs() / ours;
            worst = worst.max(off);
            assert!(off <= 1e-3, "case {case}, user {i}: {ours} and {theirs}");
        }
        // The market never has less welfare than the witness, up to 1e-6, since the witness may exceed the capacities by its tolerance.
        let welfare = |tasks: &[f64]| -> f64 { problem.weight().iter().zip(tasks).map(|(w, x)| w * x.ln()).sum() };
        let total: f64 = problem.weight().iter().sum();
        let less = (welfare(&witness) - welfare(market.tasks())) / total;
        assert!(less <= 1e-6, "case {case}: the witness has {less:e} more welfare per unit of weight");
    }
    assert!(gave_up < 20, "the witness gave up {gave_up} times");
    println!("largest difference of a user's tasks: {worst:e}; the witness gave up {gave_up} times");
}
