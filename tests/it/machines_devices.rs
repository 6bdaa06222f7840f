//! Devices with identities in the slow twin of placement: the choice of devices for a task.

use std::cmp::Reverse;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::machines_cases::Draw;
use crate::machines_slow::Simulation;
use crate::slow::{Placement, Policy, Row, times};
use crate::workloads::{RESOURCES, Weighting, chance, pick};

/// A whole device, in thousandths.
pub const WHOLE: u64 = 1000;

/// A part of a device: resource, device number, amount in thousandths.
pub type Part = (usize, usize, u64);

/// A device: its NUMA node, and its free amount.
#[derive(Clone, Debug)]
pub struct Device {
    pub node: usize,
    pub free: u64,
}

/// Chooses the devices of one resource for a task that needs `need` thousandths. Returns `None` if there are not enough.
pub fn choose(devices: &[Device], need: u64) -> Option<Vec<usize>> {
    if need == 0 {
        return Some(Vec::new());
    }
    if need < WHOLE {
        let enough = (0..devices.len()).filter(|&device| devices[device].free >= need);
        return enough.min_by_key(|&device| (devices[device].free, device)).map(|device| vec![device]);
    }
    let wanted = (need / WHOLE) as usize;
    let whole = |device: &usize| devices[*device].free == WHOLE;
    let free_on =
        |node: usize| (0..devices.len()).filter(|device| whole(device) && devices[*device].node == node).count();
    let mut order: Vec<usize> = (0..devices.len()).filter(whole).collect();
    let nodes = order.iter().map(|&device| devices[device].node);
    let enough = nodes.filter(|&node| free_on(node) >= wanted).min_by_key(|&node| (free_on(node), node));
    match enough {
        Some(node) => order.retain(|&device| devices[device].node == node),
        None => order.sort_by_key(|&device| (Reverse(free_on(devices[device].node)), devices[device].node, device)),
    }
    order.truncate(wanted);
    order.sort_unstable();
    (order.len() == wanted).then_some(order)
}

impl Simulation<'_> {
    /// Returns a machine's devices of one resource, reduced by the running tasks and by `taken`.
    pub fn devices(&self, machine: usize, resource: usize, taken: &[Part]) -> Vec<Device> {
        let nodes = self.world.nodes[machine][resource].iter();
        let mut devices: Vec<Device> = nodes.map(|&node| Device { node, free: WHOLE }).collect();
        let held = self.on(machine).flat_map(|task| &task.devices).chain(taken);
        held.filter(|part| part.0 == resource).for_each(|part| devices[part.1].free -= part.2);
        devices
    }

    /// Returns whether a machine has the devices for a demand, in addition to `taken`.
    pub fn has_devices(&self, machine: usize, need: &[u64], taken: &[Part]) -> bool {
        let enough = |&resource: &usize| choose(&self.devices(machine, resource, taken), need[resource]).is_some();
        self.world.devices.iter().all(enough)
    }

    /// Returns the devices for a demand on a machine that has enough of them. `amounts` is the machine's free capacity before the task
    /// starts.
    pub fn parts(&self, machine: usize, need: &[u64], amounts: &[u64], taken: &[Part]) -> Vec<Part> {
        let mut parts = Vec::new();
        for &resource in &self.world.devices {
            let devices = self.devices(machine, resource, taken);
            let descend = self.descend(resource, need, amounts, &devices);
            let chosen = descend.or_else(|| choose(&devices, need[resource])).expect("it has enough");
            parts.extend(chosen.into_iter().map(|device| (resource, device, need[resource].min(WHOLE))));
        }
        parts
    }

    /// Returns how many tasks of a demand fit on an empty machine, including its devices.
    pub fn room_on_empty(&self, machine: usize, need: &[u64], offer: &[u64]) -> u64 {
        let part = |resource: &usize| (1..WHOLE).contains(&need[*resource]);
        let parts = self.world.devices.iter().filter(|resource| part(resource));
        let on_devices =
            parts.map(|&resource| self.world.nodes[machine][resource].len() as u64 * (WHOLE / need[resource]));
        on_devices.min().unwrap_or(u64::MAX).min(times(need, offer))
    }
}

/// Formats devices as in the table: by resource, in the order of their declaration, then by number.
pub fn written(parts: &[Part]) -> String {
    let part = |&(resource, device, amount): &Part| match amount {
        WHOLE => format!("{}:{device}", RESOURCES[resource]),
        _ => format!("{}:{device}={}", RESOURCES[resource], crate::workloads::thousandths(amount)),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(";")
}

impl Draw {
    /// Draws a case on machines with GPUs as identified devices; in 30 % of the cases the cores are devices too.
    pub fn devices(seed: u64) -> Draw {
        let mut draw = Draw::new(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(3);
        draw.add_gpus(&mut rng);
        draw.devices.push(2);
        let percent = pick(&mut rng, &[0, 30, 80]);
        for row in 0..draw.case.rows.len() {
            draw.case.rows[row].gang &= chance(&mut rng, 60);
            draw.case.rows[row].demand[2] = pick(&mut rng, &[0, 200, 333, 460, 500, 500, 1000, 1000, 2000, 3000]);
            if chance(&mut rng, percent) {
                let first = draw.case.rows[0].demand.clone();
                draw.case.rows[row].demand = first;
            }
        }
        if chance(&mut rng, 40) {
            draw.fragment(&mut rng);
        }
        if chance(&mut rng, 30) {
            // Cores are devices too.
            let first = if chance(&mut rng, 50) { 0 } else { draw.devices.len() };
            draw.devices.insert(first, 0);
            let whole = |amount: u64| (amount / WHOLE).max(1) * WHOLE;
            draw.case.groups.iter_mut().for_each(|(_, capacity)| capacity[0] = whole(capacity[0]));
            let rows = draw.case.rows.iter_mut().filter(|row| row.demand[0] > WHOLE);
            rows.for_each(|row| row.demand[0] = whole(row.demand[0]));
        }
        // A policy of slots does not support devices.
        draw.case.policies.retain(|policy| !matches!(policy, Policy::Slot(_)));
        if draw.case.policies.is_empty() {
            draw.case.policies.push(Policy::Drf);
        }
        let apart = chance(&mut rng, 60);
        let node = |rng: &mut ChaCha8Rng| if apart { rng.random_range(0..3) } else { 0 };
        for (_, capacity) in &draw.case.groups {
            let of = |amount: &u64| (0..amount / WHOLE).map(|_| node(&mut rng)).collect();
            draw.nodes.push(capacity.iter().map(of).collect());
        }
        draw.loosen_gangs(&mut rng);
        if chance(&mut rng, 8) {
            // The gang has as many tasks as the total amount of GPUs divided by the demand, at most 30. They may not fit, because one task
            // cannot use the remainders of two devices.
            let amount: u64 = draw.case.groups.iter().map(|(count, capacity)| count * capacity[2]).sum();
            let parts = |row: &&mut Row| (300..WHOLE).contains(&row.demand[2]);
            if let Some(row) = draw.case.rows.iter_mut().find(parts) {
                (row.gang, row.tasks) = (true, (amount / row.demand[2]).min(30));
            }
        }
        draw
    }

    /// Sets placement by fragments. In 60 % of the cases GPUs become the scarce resource; in 30 % only the first group of machines has
    /// GPUs.
    fn fragment(&mut self, rng: &mut ChaCha8Rng) {
        self.case.placement = Placement::Fgd;
        if chance(rng, 60) {
            for row in &mut self.case.rows {
                row.demand[..2].iter_mut().for_each(|amount| *amount /= 8);
                row.demand[2] = pick(rng, &[0, 100, 250, 333, 400, 500, 600, 700, 1000, 2000, 2000, 3000]);
            }
        }
        if chance(rng, 30) {
            self.case.groups[1..].iter_mut().for_each(|(_, capacity)| capacity[2] = 0);
        }
    }

    /// Adds GPUs to the groups of machines: 0 to 6 per machine, and at least one per machine of the first group.
    fn add_gpus(&mut self, rng: &mut ChaCha8Rng) {
        let mut gpus = || pick(rng, &[0, 1000, 2000, 3000, 4000, 6000]);
        for (_, capacity) in &mut self.case.groups {
            capacity.truncate(2);
            capacity.push(gpus());
        }
        let first = &mut self.case.groups[0].1[2];
        *first = (*first).max(WHOLE);
        self.case.rows.iter_mut().for_each(|row| row.demand.resize(3, 0));
        let vector = self.case.weighting == Weighting::Vector;
        self.case.weights.iter_mut().for_each(|user| user.resize(3, if vector { 1 } else { user[0] }));
    }
}
