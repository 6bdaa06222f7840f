//! CEEI: market prices from a cold and a warm start, compared with an interior-point solver on the same problems in the same run.
//!
//! A warm market has already solved a problem of the same users, with demands that differ by up to 1 %. Certificates are printed once
//! before timing.

#[path = "../tests/it/interior.rs"]
mod interior;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use plimsoll::fair::{Market, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Returns users with demands of 0.001 to 1 of the cluster, each larger by a factor of up to `1 + away`. If `finite`, every third user has
/// a finite number of tasks.
fn problem(users: usize, dims: usize, finite: bool, away: f64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let demand: Vec<f64> = (0..users * dims).map(|_| rng.random_range(0.001..1.0)).collect();
    let mut moved = ChaCha8Rng::seed_from_u64(2);
    let demand = demand.iter().map(|need| need * (1.0 + away * moved.random_range(0.0..1.0))).collect();
    let tasks = (0..users).map(|i| if finite && i % 3 == 0 { 1.0 / users as f64 } else { f64::INFINITY }).collect();
    Problem::new(dims, demand, vec![1.0; users], tasks)
}

fn ceei(criterion: &mut Criterion) {
    for (users, dims, finite) in
        [(100, 4, false), (100, 4, true), (1000, 2, false), (100_000, 8, false), (100_000, 8, true)]
    {
        let kind = if finite { " finite" } else { "" };
        let mut group = criterion.benchmark_group(format!("ceei/{users}x{dims}{kind}"));
        let (old, new) = (problem(users, dims, finite, 0.0), problem(users, dims, finite, 0.01));
        let mut market = Market::new();
        market.solve(&old).expect("prices exist");
        let cold = (market.steps(), market.certificate().gap);
        market.solve(&new).expect("prices exist");
        let warm = (market.steps(), market.certificate().gap);
        println!("{users}x{dims}{kind}: (steps, gap per user) cold {cold:?}, warm {warm:?}");
        group.bench_function(BenchmarkId::from_parameter("cold"), |bencher| {
            bencher.iter(|| {
                market.forget();
                market.solve(black_box(&new)).expect("prices exist");
            });
        });
        let mut turn = false;
        group.bench_function(BenchmarkId::from_parameter("warm"), |bencher| {
            bencher.iter(|| {
                turn = !turn;
                market.solve(black_box(if turn { &old } else { &new })).expect("prices exist");
            });
        });
        if users <= 1000 {
            group.bench_function(BenchmarkId::from_parameter("interior point"), |bencher| {
                bencher.iter(|| black_box(interior::nash(&new)));
            });
        } else {
            // A run takes seconds, so one measurement is sufficient.
            let start = Instant::now();
            black_box(interior::nash(&new));
            println!("{users}x{dims}{kind}: interior point {:?}, once", start.elapsed());
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = ceei
}
criterion_main!(benches);
