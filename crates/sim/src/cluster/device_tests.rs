//! Tests of devices: exact cases, invariants under churn, and fragmentation compared with its definition.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{DevicePart, Hardware, Machines, Mix, Placement};
use plimsoll_base::units::{MachineId, Resources};

/// Returns a demand of cores and GPUs, both in thousandths.
fn demand(cpu: u64, gpu: u64) -> Resources {
    Resources([cpu, gpu, 0, 0, 0, 0, 0, 0])
}

/// Creates machines with the NUMA nodes of their GPUs.
fn machines(placement: Placement, all: &[(u64, &[u16])], mix: &[(Resources, u64)]) -> Machines {
    let capacities: Vec<Resources> = all.iter().map(|(cpu, nodes)| demand(*cpu, 1000 * nodes.len() as u64)).collect();
    let mut hardware = Hardware::new(&[1]);
    for (capacity, (_, nodes)) in capacities.iter().zip(all) {
        hardware.push(capacity, |_| nodes).expect("whole devices");
    }
    if !mix.is_empty() {
        hardware.measure_by(Mix::new(mix.iter().copied(), usize::MAX));
    }
    Machines::new(2, placement, &capacities).with_hardware(hardware)
}

/// Places a task by the rule; returns its machine and devices.
fn start(machines: &mut Machines, need: &Resources) -> Option<(MachineId, Vec<DevicePart>)> {
    let machine = machines.find(need.slice(2))?;
    machines.allocate(machine, need.slice(2));
    Some((machine, machines.assign(machine, need.slice(2))))
}

fn devices(held: &[DevicePart]) -> Vec<(u16, u16)> {
    held.iter().map(|held| (held.device, held.milli)).collect()
}

#[test]
fn devices_are_chosen_near_one_another_and_parts_where_it_is_fullest() {
    let mut all = machines(Placement::FirstFit, &[(99_000, &[0, 0, 0, 1, 1, 2])], &[]);
    let mut get = |gpu: u64| start(&mut all, &demand(1, gpu)).map(|(_, held)| devices(&held));
    assert_eq!(get(600), Some(vec![(0, 600)]), "of equal devices, the lowest number");
    assert_eq!(get(300), Some(vec![(0, 300)]), "the fullest device with enough free");
    assert_eq!(get(200), Some(vec![(1, 200)]), "only 100 are left on device 0");
    assert_eq!(get(1000), Some(vec![(2, 1000)]), "nodes 0 and 2 have one free device each: the lower node");
    assert_eq!(get(0), Some(vec![]));
    assert_eq!(get(3000), Some(vec![(3, 1000), (4, 1000), (5, 1000)]), "no node has three: the largest node first");
    assert_eq!(get(1000), None, "1.1 GPUs are free, but no whole device");
    assert_eq!(get(900), None);
    assert_eq!(get(800), Some(vec![(1, 800)]));
}

#[test]
fn a_task_fits_only_where_devices_do() {
    let two: &[u16] = &[0, 0];
    for (_, placement) in Placement::ALL.into_iter().filter(|(_, placement)| *placement != Placement::Pooled) {
        let mut all = machines(placement, &[(9000, two), (9000, two)], &[(demand(1, 500), 1)]);
        // Half of every device is allocated, so that 2 GPUs are free in total, but no whole one.
        for machine in [MachineId(0), MachineId(1)] {
            all.allocate(machine, &[2, 1000]);
            let mut held = all.assign(machine, &[1, 500]);
            held.extend(all.assign(machine, &[1, 600]));
            assert_eq!(devices(&held), [(0, 500), (1, 600)]);
        }
        assert_eq!(all.find(&[1, 1000]), None, "{placement:?}");
        assert!(!all.fits(MachineId(0), &[1, 1000]) && all.fits(MachineId(0), &[1, 500]));
        assert!(all.find(&[1, 500]).is_some() && all.find(&[9000, 0]).is_none(), "{placement:?}");
    }
}

/// Returns the fragments of one machine, as the paper defines them.
fn fragments(cpu: u64, free: &[u16], mix: &[(Resources, u64)]) -> i128 {
    let mut sum = 0;
    for (demand, count) in mix {
        let [need_cpu, need] = [demand.0[0], demand.0[1]];
        let whole = free.iter().filter(|free| **free == 1000).count() as u64;
        let most = free.iter().copied().max().unwrap_or(0);
        let runs =
            need > 0 && need_cpu <= cpu && if need < 1000 { need <= u64::from(most) } else { need / 1000 <= whole };
        for part in free {
            if !runs || u64::from(*part) < need.min(1000) {
                sum += i128::from(*part) * i128::from(*count);
            }
        }
    }
    sum
}

#[test]
fn churn_gives_no_device_twice_and_descent_is_as_defined() {
    let nodes: [&[u16]; 4] = [&[], &[0, 0], &[0, 0, 1, 1], &[0, 1, 0, 1, 2, 2, 2, 3]];
    let wanted = [0, 200, 460, 500, 1000, 1000, 2000, 4000];
    for (seed, placement) in
        [(1, Placement::FirstFit), (2, Placement::BestFit), (3, Placement::Fgd), (4, Placement::Fgd)]
    {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let all: Vec<(u64, &[u16])> =
            (0..40).map(|_| (1000 * rng.random_range(4..40), nodes[rng.random_range(0..4)])).collect();
        let mut task = || demand(1000 * rng.random_range(1..9), wanted[rng.random_range(0..8)]);
        let mix: Vec<(Resources, u64)> = (0..12).map(|at| (task(), 1 + at % 5)).collect();
        let mut fast = machines(placement, &all, &mix);
        let mut free: Vec<(u64, Vec<u16>)> = all.iter().map(|(cpu, n)| (*cpu, vec![1000; n.len()])).collect();
        let mut running: Vec<(MachineId, Resources, Vec<DevicePart>)> = Vec::new();
        let mut placed = 0;
        for step in 0..3000 {
            if rng.random_bool(0.45) && !running.is_empty() {
                let (machine, need, held) = running.swap_remove(rng.random_range(0..running.len()));
                fast.give(machine, need.slice(2), 1);
                fast.release(machine, &held);
                free[machine.index()].0 += need.0[0];
                held.iter().for_each(|held| free[machine.index()].1[usize::from(held.device)] += held.milli);
                continue;
            }
            let need = mix[rng.random_range(0..mix.len())].0;
            let [cpu, gpu] = [need.0[0], need.0[1]];
            // Returns the growth of a machine's fragments, if it has room.
            let growth = |(free_cpu, devices): &(u64, Vec<u16>)| -> Option<i128> {
                let left = free_cpu.checked_sub(cpu)?;
                let before = fragments(*free_cpu, devices, &mix);
                let after: Vec<i128> = if gpu > 0 && gpu < 1000 {
                    let enough = (0..devices.len()).filter(|d| u64::from(devices[*d]) >= gpu);
                    let less = |d: usize| {
                        let mut devices = devices.clone();
                        devices[d] -= gpu as u16;
                        fragments(left, &devices, &mix)
                    };
                    enough.map(less).collect()
                } else {
                    let mut devices = devices.clone();
                    for _ in 0..gpu / 1000 {
                        *devices.iter_mut().find(|free| **free == 1000)? = 0;
                    }
                    vec![fragments(left, &devices, &mix)]
                };
                Some(after.into_iter().min()? - before)
            };
            let grown: Vec<(i128, usize)> =
                free.iter().enumerate().filter_map(|(m, free)| growth(free).map(|growth| (growth, m))).collect();
            let Some((machine, held)) = start(&mut fast, &need) else {
                assert!(grown.is_empty(), "{placement:?}, step {step}: {need:?} has room on a machine");
                continue;
            };
            placed += 1;
            let before = free[machine.index()].clone();
            assert!(grown.iter().any(|(_, m)| *m == machine.index()), "the machine has room");
            assert_eq!(held.iter().map(|held| u64::from(held.milli)).sum::<u64>(), gpu);
            let state = &mut free[machine.index()];
            state.0 -= cpu;
            for held in &held {
                let device = &mut state.1[usize::from(held.device)];
                *device = device.checked_sub(held.milli).expect("no device is given twice");
            }
            if placement == Placement::Fgd {
                let best = grown.into_iter().min().expect("somewhere");
                let now = fragments(state.0, &state.1, &mix) - fragments(before.0, &before.1, &mix);
                assert_eq!((now, machine.index()), best, "step {step}");
            }
            running.push((machine, need, held));
        }
        assert!(placed > 500, "{placed}");
        let sum: i128 = free.iter().map(|(cpu, devices)| fragments(*cpu, devices, &mix)).sum();
        let event = fast.fragmentation().expect("devices and a mix");
        assert_eq!(event.fragments as i128, sum);
        for (at, (_, devices)) in free.iter().enumerate() {
            assert_eq!(fast.hardware().and_then(|all| all.free(1, MachineId(at as u32))), Some(&devices[..]));
        }
    }
}

/// The mix and the values of the authors' own test. The expected fragments are 887.20 and 554.4 thousandths; the weights of tasks are in
/// hundredths of a percent.
#[test]
fn fragments_are_those_of_the_authors() {
    let mix = [
        (15_700, 1, 2869),
        (11_900, 1, 1893),
        (11_400, 1, 1227),
        (1000, 0, 736),
        (18_710, 1, 485),
        (8200, 1, 379),
        (16_400, 1, 331),
        (9810, 1, 197),
        (15_200, 1, 187),
        (11_200, 1, 181),
        (14_200, 1, 176),
        (12_000, 0, 165),
        (14_900, 1, 139),
        (60_200, 4, 123),
        (64_200, 8, 107),
        (32_200, 4, 101),
        (17_400, 2, 91),
        (30_200, 2, 69),
        (16_000, 1, 64),
        (15_000, 1, 59),
        (64_000, 8, 53),
        (15_000, 0, 53),
        (11_910, 1, 53),
        (120_200, 8, 48),
        (11_300, 1, 37),
        (30_000, 2, 32),
        (9800, 1, 32),
        (8000, 1, 32),
        (2000, 1, 27),
        (1000, 1, 27),
    ];
    let mut tasks: Vec<(Resources, u64)> =
        mix.iter().map(|(cpu, gpus, count)| (demand(*cpu, 1000 * gpus), *count)).collect();
    tasks.push((demand(2000, 80), 27));
    let eight: &[u16] = &[0; 8];
    let mut machine = machines(Placement::FirstFit, &[(64_000, eight)], &tasks);
    assert_eq!(machine.fragmentation().map(|all| (all.fragments, all.free)), Some((8_872_000, 8000)));
    start(&mut machine, &demand(32_000, 4000)).expect("room");
    assert_eq!(machine.fragmentation().map(|all| (all.fragments, all.free)), Some((5_544_000, 4000)));
    let share = machine.fragmentation().expect("a mix").share();
    assert!((share - 5_544_000.0 / 4000.0 / 10_000.0).abs() < 1e-3, "{share}");
}

#[test]
fn demands_between_parts_and_whole_devices_are_refused() {
    let hardware = Hardware::new(&[1]);
    assert!([0, 1, 999, 1000, 3000].iter().all(|gpu| hardware.check(&[1, *gpu]).is_ok()));
    let message = hardware.check(&[1, 1500]).expect_err("one and a half");
    assert_eq!(message, "1.5 devices are no whole number; expected a whole number, or a part of one");
}
