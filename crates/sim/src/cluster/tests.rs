//! Every placement rule compared with its definition, on random machines that leave and join.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Area, MachineSet, Machines, Placement, Scope};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources};

/// The reference implementation, which tests machines one by one.
struct LinearMachines {
    placement: Placement,
    dims: usize,
    /// The cluster's capacity at the start.
    total: [u64; MAX_DIMS],
    free: Vec<Resources>,
    capacity: Vec<Resources>,
    present: Vec<bool>,
    running: Vec<u64>,
    rng: ChaCha8Rng,
}

impl LinearMachines {
    /// Returns the exact score of a machine, as a fraction with a common denominator; the highest score wins.
    fn score(&self, machine: usize, need: &[u64]) -> i128 {
        let (free, capacity) = (&self.free[machine].0, &self.capacity[machine].0);
        let shares = || -> i128 {
            let all: i128 = self.total[..self.dims].iter().map(|total| i128::from(*total)).product();
            (0..self.dims).map(|d| i128::from(free[d]) * (all / i128::from(self.total[d]))).sum()
        };
        match self.placement {
            Placement::BestFit => -shares(),
            Placement::WorstFit => shares(),
            Placement::Spread => -i128::from(self.running[machine]),
            Placement::DotProduct => {
                let weight = |d: usize| (1i128 << 120) / i128::from(capacity[d]).pow(2);
                (0..self.dims).map(|d| i128::from(need[d]) * i128::from(free[d]) * weight(d)).sum()
            }
            _ => 0,
        }
    }

    fn fits(&self, machine: usize, need: &[u64], scope: Scope<'_>) -> bool {
        let room = need.iter().zip(&self.free[machine].0).all(|(need, free)| need <= free);
        self.present[machine] && room && scope.contains(MachineId(machine as u32))
    }

    fn allocate(&mut self, fast: &mut Machines, machine: usize, need: &[u64]) {
        fast.allocate(MachineId(machine as u32), need);
        self.running[machine] += 1;
        self.free[machine].0.iter_mut().zip(need).for_each(|(free, need)| *free -= need);
    }

    fn find(&mut self, need: &[u64], scope: Scope<'_>) -> Option<MachineId> {
        let all = self.free.len();
        let fitting: Vec<usize> = (0..all).filter(|&machine| self.fits(machine, need, scope)).collect();
        let found = match self.placement {
            Placement::Random => {
                let draws = if scope.at_most(all) > all / 32 { 32 } else { 0 };
                let drawn = (0..draws).map(|_| self.rng.random_range(0..all as u32) as usize);
                let first = drawn.into_iter().find(|machine| fitting.contains(machine));
                first.or_else(|| {
                    (!fitting.is_empty()).then(|| fitting[self.rng.random_range(0..fitting.len() as u32) as usize])
                })
            }
            _ => fitting.into_iter().min_by_key(|&machine| (-self.score(machine, need), machine)),
        };
        found.map(|machine| MachineId(machine as u32))
    }
}

/// Returns the capacity of a machine: one of a few kinds, or a capacity that no other machine has.
fn machine(rng: &mut ChaCha8Rng, dims: usize) -> Resources {
    let mut capacity = Resources::ZERO;
    let kind = rng.random_range(0..4u64);
    for d in 0..dims {
        capacity.0[d] = if kind == 3 { rng.random_range(1..40) } else { 6 * (kind + 1) + d as u64 };
    }
    capacity
}

fn agrees(placement: Placement, seed: u64, machines: usize, dims: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let capacity: Vec<Resources> = (0..machines).map(|_| machine(&mut rng, dims)).collect();
    let total = std::array::from_fn(|d| capacity.iter().map(|capacity| capacity.0[d]).sum());
    let mut plain = LinearMachines {
        placement,
        dims,
        total,
        free: capacity.clone(),
        present: vec![true; machines],
        running: vec![0; machines],
        rng: ChaCha8Rng::seed_from_u64(seed + 1),
        capacity,
    };
    let mut fast = Machines::new(dims, placement, &plain.capacity);
    fast.draw_from(ChaCha8Rng::seed_from_u64(seed + 1));
    let class: MachineSet = (0..machines as u32).filter(|_| rng.random_bool(0.3)).map(MachineId).collect();
    let mut area = Area::default();
    let from = rng.random_range(0..machines / 2);
    (from..from + machines / 20 + 1).for_each(|machine| area.insert(MachineId(machine as u32)));
    let scopes = [
        Scope::default(),
        Scope { class: Some(&class), area: None },
        Scope { class: None, area: Some(&area) },
        Scope { class: Some(&class), area: Some(&area) },
    ];
    let mut placed: Vec<(MachineId, Vec<u64>)> = Vec::new();
    for _ in 0..if machines > 1000 { 8 * machines } else { 0 } {
        let (at, need) = (rng.random_range(0..machines), vec![rng.random_range(0..9); dims]);
        if plain.fits(at, &need, scopes[0]) {
            plain.allocate(&mut fast, at, &need);
            placed.push((MachineId(at as u32), need));
        }
    }
    let (mut found, mut vain) = (0, 0);
    for step in 0..4000 {
        let churn = rng.random_range(0..100);
        if churn < 42 && !placed.is_empty() {
            let (machine, need) = placed.swap_remove(rng.random_range(0..placed.len()));
            fast.give(machine, &need, 1);
            plain.running[machine.index()] -= 1;
            plain.free[machine.index()].0.iter_mut().zip(&need).for_each(|(free, need)| *free += need);
            continue;
        }
        if churn < 45 {
            change(&mut rng, &mut fast, &mut plain);
            continue;
        }
        let need: Vec<u64> = (0..dims).map(|_| rng.random_range(0..9)).collect();
        let scope = if rng.random_bool(0.6) { scopes[0] } else { scopes[rng.random_range(1..4)] };
        let want = plain.find(&need, scope);
        let got = fast.find_within(&need, scope);
        assert_eq!(got, want, "{placement:?} in step {step} for {need:?}");
        let Some(machine) = want else {
            vain += 1;
            continue;
        };
        found += 1;
        plain.allocate(&mut fast, machine.index(), &need);
        placed.push((machine, need));
    }
    assert!(found > 1000 && vain > 10, "{placement:?}: {found} found, {vain} without success");
    for (at, free) in plain.free.iter().enumerate() {
        assert_eq!(fast.free(MachineId(at as u32)), *free);
    }
}

/// Makes a machine leave, return (perhaps larger), or join.
fn change(rng: &mut ChaCha8Rng, fast: &mut Machines, plain: &mut LinearMachines) {
    let at = rng.random_range(0..plain.free.len());
    let machine_id = MachineId(at as u32);
    if rng.random_bool(0.05) {
        let capacity = machine(rng, plain.dims);
        assert_eq!(fast.add(&capacity).index(), plain.free.len());
        plain.free.push(capacity);
        plain.capacity.push(capacity);
        plain.present.push(true);
        plain.running.push(0);
    } else if plain.present[at] {
        fast.remove(machine_id);
        plain.present[at] = false;
        assert!(!fast.fits(machine_id, &vec![0; plain.dims]) && !fast.is_present(machine_id));
    } else {
        let more = u64::from(rng.random_bool(0.3));
        for d in 0..plain.dims {
            plain.capacity[at].0[d] += more;
            plain.free[at].0[d] += more;
        }
        fast.restore(machine_id, &plain.capacity[at]);
        plain.present[at] = true;
    }
}

#[test]
fn every_rule_finds_what_its_definition_says() {
    for (at, (_, placement)) in (0..).zip(Placement::ALL) {
        if placement == Placement::Pooled {
            continue;
        }
        for (machines, dims) in [(150, 2), (7, 2), (130, 3), (90, 1), (200, 5)] {
            agrees(placement, 100 * at + machines as u64, machines, dims);
        }
    }
}

#[test]
fn rules_agree_across_thousands_of_blocks() {
    for placement in [Placement::FirstFit, Placement::BestFit, Placement::WorstFit, Placement::DotProduct] {
        agrees(placement, 7, 9000, 2);
    }
}

#[test]
fn random_placement_is_uniform_over_what_fits() {
    let capacity: Vec<Resources> =
        (0..100).map(|at| Resources([if at < 10 { 9 } else { 1 }, 0, 0, 0, 0, 0, 0, 0])).collect();
    let mut machines = Machines::new(1, Placement::Random, &capacity);
    let mut hits = [0u32; 10];
    for _ in 0..10_000 {
        hits[machines.find(&[5]).expect("ten machines fit").index()] += 1;
    }
    // Each count is binomial(10000, 0.1): 1000 with a standard deviation of 30.
    assert!(hits.iter().all(|hits| (850..1150).contains(hits)), "{hits:?}");
}

/// A single machine is tested directly. Sets of machines with room exist if there are at least two machines.
#[test]
fn a_machine_alone_goes_and_comes_and_gets_company() {
    let amounts = |cpu, memory| Resources([cpu, memory, 0, 0, 0, 0, 0, 0]);
    for (_, placement) in Placement::ALL {
        let mut machines = Machines::new(2, placement, &[amounts(8, 8)]);
        let alone = Some(MachineId(0));
        machines.allocate(MachineId(0), &[5, 1]);
        assert_eq!([[3, 7], [4, 1], [1, 8]].map(|need| machines.find(&need)), [alone, None, None], "{placement:?}");
        machines.remove(MachineId(0));
        assert_eq!(machines.find(&[1, 1]), None, "{placement:?}");
        machines.restore(MachineId(0), &amounts(9, 8));
        machines.give(MachineId(0), &[5, 1], 1);
        machines.allocate(MachineId(0), &[6, 2]);
        assert_eq!([[3, 6], [4, 1]].map(|need| machines.find(&need)), [alone, None], "{placement:?}");
        let second = machines.add(&amounts(4, 4));
        assert_eq!([[4, 1], [1, 6], [4, 5]].map(|need| machines.find(&need)), [Some(second), alone, None]);
        machines.remove(MachineId(0));
        assert_eq!([[4, 4], [1, 6]].map(|need| machines.find(&need)), [Some(second), None], "{placement:?}");
    }
}
