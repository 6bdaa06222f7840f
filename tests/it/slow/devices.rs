//! Devices with identities: the choice of devices for a task.

use std::cmp::Reverse;

use super::simulation::Simulation;
use crate::workloads::{RESOURCES, thousandths};

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

    /// Returns for how many tasks of a demand an empty machine has devices, if each gets a part of one.
    pub fn on_empty_devices(&self, machine: usize, need: &[u64]) -> u64 {
        let part = |resource: &usize| (1..WHOLE).contains(&need[*resource]);
        let parts = self.world.devices.iter().filter(|resource| part(resource));
        let on_devices =
            parts.map(|&resource| self.world.nodes[machine][resource].len() as u64 * (WHOLE / need[resource]));
        on_devices.min().unwrap_or(u64::MAX)
    }
}

/// Formats devices as in the table: by resource, in the order of their declaration, then by number.
pub fn written(parts: &[Part]) -> String {
    let part = |&(resource, device, amount): &Part| match amount {
        WHOLE => format!("{}:{device}", RESOURCES[resource]),
        _ => format!("{}:{device}={}", RESOURCES[resource], thousandths(amount)),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(";")
}
