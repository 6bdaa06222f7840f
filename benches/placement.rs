//! Measures the placement rules alone, on machines with 90 % of their memory in use. One operation ends a task and places another one.
//! Baseline for each rule: a scan over the machines by the same rule. Machines are of four kinds, 48 to 96 cores with 128 to 512 GiB, mixed
//! as in a cluster that has grown.
//!
//! `PLACEMENT_MACHINES=1000,100000` and `PLACEMENT_RULES=first-fit` select sizes and rules.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::cluster::{MachineSet, Machines, Placement, Scope};
use plimsoll::units::{MAX_DIMS, MachineId, Resources};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Need = [u64; 2];

const KINDS: [Need; 4] = [[64_000, 262_144], [96_000, 393_216], [48_000, 131_072], [64_000, 524_288]];

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
        self.allocate(machine, need);
        Some(machine)
    }

    fn end(&mut self, machine: MachineId, need: &Need) {
        self.give(machine, need, 1);
    }
}

/// Machines of which every third is in a class; all tasks require this class.
struct Labelled(Machines, MachineSet);

impl Pool for Labelled {
    fn place(&mut self, need: &Need) -> Option<MachineId> {
        let machine = self.0.find_within(need, Scope { class: Some(&self.1), area: None })?;
        self.0.allocate(machine, need);
        Some(machine)
    }

    fn end(&mut self, machine: MachineId, need: &Need) {
        self.0.give(machine, need, 1);
    }
}

/// The free amounts of each machine and the number of its tasks.
struct Scan {
    placement: Placement,
    capacity: Vec<Need>,
    free: Vec<Need>,
    running: Vec<u64>,
    total: Need,
    rng: ChaCha8Rng,
}

impl Scan {
    fn new(placement: Placement, capacity: Vec<Need>) -> Scan {
        let total = capacity.iter().fold([0, 0], |sum, machine| [sum[0] + machine[0], sum[1] + machine[1]]);
        let running = vec![0; capacity.len()];
        Scan { placement, free: capacity.clone(), capacity, running, total, rng: ChaCha8Rng::seed_from_u64(2) }
    }

    /// Returns the score of a machine; the machine with the lowest score is selected.
    fn score(&self, machine: usize, need: &Need) -> i128 {
        let (free, capacity) = (self.free[machine].map(i128::from), self.capacity[machine].map(i128::from));
        let share = || free[0] * i128::from(self.total[1]) + free[1] * i128::from(self.total[0]);
        match self.placement {
            Placement::BestFit => share(),
            Placement::WorstFit => -share(),
            Placement::Spread => i128::from(self.running[machine]),
            _ => {
                let part = |d: usize| i128::from(need[d]) * free[d] * ((1 << 120) / (capacity[d] * capacity[d]));
                -part(0) - part(1)
            }
        }
    }
}

impl Pool for Scan {
    fn place(&mut self, need: &Need) -> Option<MachineId> {
        let fits = |free: &Need| need[0] <= free[0] && need[1] <= free[1];
        let machine = match self.placement {
            Placement::FirstFit => self.free.iter().position(fits)?,
            Placement::Random => {
                let fitting: Vec<usize> = (0..self.free.len()).filter(|&m| fits(&self.free[m])).collect();
                *fitting.get(self.rng.random_range(0..fitting.len().max(1)))?
            }
            _ => (0..self.free.len()).filter(|&m| fits(&self.free[m])).min_by_key(|&m| self.score(m, need))?,
        };
        self.free[machine].iter_mut().zip(need).for_each(|(free, need)| *free -= need);
        self.running[machine] += 1;
        Some(MachineId(machine as u32))
    }

    fn end(&mut self, machine: MachineId, need: &Need) {
        self.free[machine.index()].iter_mut().zip(need).for_each(|(free, need)| *free += need);
        self.running[machine.index()] -= 1;
    }
}

struct Churn<P> {
    pool: P,
    running: Vec<(MachineId, Need)>,
    target: usize,
    rng: ChaCha8Rng,
}

impl<P: Pool> Churn<P> {
    /// Starts from the running tasks, and keeps `target` tasks running if they fit.
    fn new(pool: P, target: usize, running: Vec<(MachineId, Need)>) -> Churn<P> {
        Churn { pool, running, target, rng: ChaCha8Rng::seed_from_u64(1) }
    }

    /// Draws a demand: 1, 2 or 4 cores and 2 to 20 GiB.
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

/// Returns the machines, and the running tasks after the rule has filled the machines and replaced up to 100,000 tasks.
fn cluster(count: usize, placement: Placement) -> (Vec<Need>, Machines, Vec<(MachineId, Need)>) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let capacity: Vec<Need> = (0..count).map(|_| KINDS[rng.random_range(0..KINDS.len())]).collect();
    let memory: u64 = capacity.iter().map(|machine| machine[1]).sum();
    let resources = |machine: &Need| {
        let mut capacity = [0; MAX_DIMS];
        capacity[..2].copy_from_slice(machine);
        Resources(capacity)
    };
    let capacities: Vec<Resources> = capacity.iter().map(resources).collect();
    let target = (memory / MEAN_MEMORY * 9 / 10) as usize;
    // Filling by dot-product takes minutes; worst-fit, which also spreads tasks, results in a similar state.
    let filler = if placement == Placement::DotProduct { Placement::WorstFit } else { placement };
    let mut filled = Churn::new(Machines::new(2, filler, &capacities), target, Vec::new());
    while filled.running.len() < filled.target && filled.start() {}
    let mut machines = Machines::new(2, placement, &capacities);
    filled.running.iter().for_each(|(machine, need)| machines.allocate(*machine, need));
    let mut churn = Churn::new(machines, filled.running.len(), filled.running);
    (0..churn.target.min(100_000)).for_each(|_| churn.step());
    (capacity, churn.pool, churn.running)
}

fn chosen(key: &str, default: &str) -> Vec<String> {
    std::env::var(key).unwrap_or_else(|_| default.to_owned()).split(',').map(str::to_owned).collect()
}

fn rules(criterion: &mut Criterion) {
    let rules = chosen("PLACEMENT_RULES", "first-fit,best-fit,worst-fit,spread,dot-product,random");
    for rule in rules {
        let placement: Placement = rule.parse().expect("a placement rule");
        for count in chosen("PLACEMENT_MACHINES", "1000,20000,100000") {
            let count: usize = count.parse().expect("a number of machines");
            let mut group = criterion.benchmark_group(format!("{rule}/{count}"));
            group.throughput(Throughput::Elements(1));
            let (capacity, machines, running) = cluster(count, placement);
            let third: MachineSet = (0..count as u32).step_by(3).map(MachineId).collect();
            let mut scan = Scan::new(placement, capacity);
            for (machine, need) in &running {
                scan.free[machine.index()].iter_mut().zip(need).for_each(|(free, need)| *free -= need);
                scan.running[machine.index()] += 1;
            }
            let mut churn = Churn::new(machines.clone(), running.len(), running.clone());
            group.bench_function(BenchmarkId::from_parameter("index"), |bencher| bencher.iter(|| churn.step()));
            let of_class: Vec<_> = running.iter().copied().filter(|(machine, _)| third.contains(*machine)).collect();
            let mut churn = Churn::new(Labelled(machines, third), of_class.len(), of_class);
            group
                .bench_function(BenchmarkId::from_parameter("index, a third"), |bencher| bencher.iter(|| churn.step()));
            let mut churn = Churn::new(scan, running.len(), running);
            group.bench_function(BenchmarkId::from_parameter("scan"), |bencher| bencher.iter(|| churn.step()));
            black_box(&churn.running);
            group.finish();
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = rules
}
criterion_main!(benches);
