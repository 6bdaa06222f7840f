//! First fit alone, on machines of 64 cores and 256 GB that are nine tenths full: one operation ends a task somewhere
//! and places another. Beside it the scan over machines.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::cluster::{Machines, Placement};
use plimsoll::units::{MachineId, Resources};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Need = [u64; 2];

const MACHINE: Need = [64_000, 262_144];

/// The mean demand of memory, the scarce resource; see [`Churn::need`].
const MEAN_MEMORY: u64 = 11 * 1024;

/// Machines that tasks are placed on.
trait Pool {
    fn place(&mut self, need: &Need) -> Option<MachineId>;
    fn end(&mut self, machine: MachineId, need: &Need);
}

impl Pool for Machines {
    fn place(&mut self, need: &Need) -> Option<MachineId> {
        let machine = self.find(need)?;
        self.take(machine, need);
        Some(machine)
    }

    fn end(&mut self, machine: MachineId, need: &Need) {
        self.give(machine, need, 1);
    }
}

/// What each machine has free.
struct Scan(Vec<Resources>);

impl Pool for Scan {
    fn place(&mut self, need: &Need) -> Option<MachineId> {
        let machine = self.0.iter().position(|free| need[0] <= free.0[0] && need[1] <= free.0[1])?;
        self.0[machine].0.iter_mut().zip(need).for_each(|(free, need)| *free -= need);
        Some(MachineId(machine as u32))
    }

    fn end(&mut self, machine: MachineId, need: &Need) {
        self.0[machine.index()].0.iter_mut().zip(need).for_each(|(free, need)| *free += need);
    }
}

struct Churn<P> {
    pool: P,
    running: Vec<(MachineId, Need)>,
    target: usize,
    rng: ChaCha8Rng,
}

impl<P: Pool> Churn<P> {
    /// Fills the machines, and replaces every task once so that they fray.
    fn new(pool: P, machines: u64) -> Churn<P> {
        let target = (machines * MACHINE[1] / MEAN_MEMORY * 9 / 10) as usize;
        let mut churn = Churn { pool, running: Vec::new(), target, rng: ChaCha8Rng::seed_from_u64(1) };
        while churn.running.len() < target && churn.start() {}
        (0..target).for_each(|_| churn.step());
        churn
    }

    /// 1, 2 or 4 cores and 2 to 20 GiB.
    fn need(&mut self) -> Need {
        [1000 << self.rng.random_range(0..3), self.rng.random_range(2 * 1024..=20 * 1024)]
    }

    fn start(&mut self) -> bool {
        let need = self.need();
        let placed = self.pool.place(&need);
        self.running.extend(placed.map(|machine| (machine, need)));
        placed.is_some()
    }

    fn step(&mut self) {
        let (machine, need) = self.running.swap_remove(self.rng.random_range(0..self.running.len()));
        self.pool.end(machine, &need);
        while self.running.len() < self.target && self.start() {}
    }
}

fn first_fit(criterion: &mut Criterion) {
    for count in [400, 20_000] {
        let capacity = Resources([MACHINE[0], MACHINE[1], 0, 0, 0, 0, 0, 0]);
        let capacities = vec![capacity; count as usize];
        let mut group = criterion.benchmark_group(format!("first-fit/{count}"));
        group.throughput(Throughput::Elements(1));
        let mut churn = Churn::new(Machines::new(2, Placement::FirstFit, &capacities), count);
        group.bench_function(BenchmarkId::from_parameter("blocks"), |bencher| bencher.iter(|| churn.step()));
        black_box(&churn.running);
        let mut churn = Churn::new(Scan(capacities.clone()), count);
        group
            .bench_function(BenchmarkId::from_parameter("scan over machines"), |bencher| bencher.iter(|| churn.step()));
        black_box(&churn.running);
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = first_fit
}
criterion_main!(benches);
