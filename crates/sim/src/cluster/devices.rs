//! Devices with identities: GPU 0 to 7 of a machine, its disks, the cores of its NUMA nodes.
//!
//! A resource may consist of devices of a thousand thousandths each. A task that needs a whole number of devices gets that many free ones;
//! a task that needs less than one gets a part of one device. Other amounts are errors. The placement rule selects the machine of a task;
//! this module selects devices on that machine, and never allocates a thousandth twice. Only the title of Fuxi's hardware-id scheduling is
//! public; the semantics are ours.

use super::fragmentation::{Gradients, Mix};
use super::kss::PodMix;
use plimsoll_base::units::{MachineId, Resources};

/// The number of thousandths in a device.
pub const WHOLE: u64 = 1000;

/// A part of a device, or a whole one, that is allocated to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct DevicePart {
    /// The resource, as an index into the run's dimensions.
    pub dim: u8,
    /// The device's number on its machine, from 0.
    pub device: u16,
    /// Number of thousandths of the device.
    pub milli: u16,
}

/// One resource's devices on all machines.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Set {
    pub dim: usize,
    /// The index of each machine's first device, and one more entry at the end.
    start: Vec<usize>,
    /// Free thousandths of each device.
    free: Vec<u16>,
    /// The NUMA node of each device.
    node: Vec<u16>,
}

impl Set {
    pub fn numbers(&self, machine: usize) -> &[u16] {
        &self.free[self.start[machine]..self.start[machine + 1]]
    }
}

/// Returns whether devices with these free amounts have room: for `need` thousandths of one device, or for a whole number of devices.
pub(super) fn has_room(free: &[u16], need: u64) -> bool {
    if need < WHOLE {
        return need == 0 || free.iter().any(|&free| u64::from(free) >= need);
    }
    free.iter().filter(|&&free| u64::from(free) == WHOLE).count() as u64 * WHOLE >= need
}

/// The devices of all machines.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Hardware {
    pub(super) sets: Vec<Set>,
    pub(super) mix: Option<Mix>,
    pub(super) gradients: Gradients,
    /// The kinds of pods of [`super::Placement::KssFgd`].
    pub(super) pods: PodMix,
    /// The resource of cores, for the rules of KSS.
    pub(super) cores: Option<usize>,
}

impl Hardware {
    /// Creates hardware without machines; these resources consist of devices.
    pub fn new(dims: &[usize]) -> Hardware {
        let set = |&dim: &usize| Set { dim, start: vec![0], free: Vec::new(), node: Vec::new() };
        let (gradients, pods) = (Gradients::default(), PodMix::default());
        Hardware { sets: dims.iter().map(set).collect(), mix: None, gradients, pods, cores: None }
    }

    /// Sets the resource that the rules of KSS count as cores.
    pub fn with_cores(self, cores: Option<usize>) -> Hardware {
        Hardware { cores, ..self }
    }

    /// Returns the resource that the rules of KSS count as cores, and the resource that they count as devices.
    pub fn cores_and_devices(&self) -> Option<(Option<usize>, usize)> {
        self.sets.first().map(|set| (self.cores, set.dim))
    }

    /// Sets the kinds of pods that placement by `kss-fgd` counts fragments for.
    pub fn count_pods(&mut self, pods: PodMix) {
        self.pods = pods;
    }

    /// Sets the mix of tasks that defines fragmentation, for measurement and for placement by `fgd`.
    pub fn measure_by(&mut self, mix: Mix) {
        self.mix = Some(mix);
        self.gradients = Gradients::default();
    }

    /// Adds the next machine, with all devices free: `nodes` returns the NUMA node of each device of a resource, or an empty slice if all
    /// are in one node.
    ///
    /// Errors, as a message without the place in the input: the capacity is not a whole number of devices, or the number of nodes differs
    /// from the number of devices.
    pub fn push<'a>(&mut self, capacity: &Resources, nodes: impl Fn(usize) -> &'a [u16]) -> Result<(), String> {
        for set in &mut self.sets {
            let amount = capacity.0[set.dim];
            let devices = usize::try_from(amount / WHOLE).ok().filter(|devices| *devices <= usize::from(u16::MAX));
            let Some(devices) = devices.filter(|_| amount.is_multiple_of(WHOLE)) else {
                return Err(format!(
                    "{} is no whole number of devices up to {}",
                    plimsoll_base::units::trim_float(amount as f64 / WHOLE as f64),
                    u16::MAX
                ));
            };
            let nodes = nodes(set.dim);
            if !nodes.is_empty() && nodes.len() != devices {
                return Err(format!("{} NUMA nodes for {devices} devices; expected one per device", nodes.len()));
            }
            set.free.resize(set.free.len() + devices, WHOLE as u16);
            set.node.extend(nodes.iter().copied().chain(std::iter::repeat_n(0, devices - nodes.len())));
            set.start.push(set.free.len());
        }
        Ok(())
    }

    /// Returns the resources that consist of devices.
    pub fn dims(&self) -> Vec<usize> {
        self.sets.iter().map(|set| set.dim).collect()
    }

    /// Returns the number of machines.
    pub fn machines(&self) -> usize {
        self.sets.first().map_or(0, |set| set.start.len() - 1)
    }

    /// Checks that devices can meet a demand. Errors, as a message without the place in the input: a demand of more than one device is not
    /// a whole number of devices.
    pub fn check(&self, need: &[u64]) -> Result<(), String> {
        match self.sets.iter().map(|set| need[set.dim]).find(|need| *need > WHOLE && need % WHOLE != 0) {
            None => Ok(()),
            Some(need) => Err(format!(
                "{} devices are no whole number; expected a whole number, or a part of one",
                plimsoll_base::units::trim_float(need as f64 / WHOLE as f64)
            )),
        }
    }

    pub(super) fn fits(&self, machine: usize, need: &[u64]) -> bool {
        self.sets.iter().all(|set| has_room(set.numbers(machine), need[set.dim]))
    }

    /// Returns the free amount of each device of a resource on a machine.
    pub fn free(&self, dim: usize, machine: MachineId) -> Option<&[u16]> {
        self.sets.iter().find(|set| set.dim == dim).map(|set| set.numbers(machine.index()))
    }

    /// Returns the devices of a set that a demand would get, lowest number first. For a part of a device, `part` selects one of the
    /// devices that have enough free. Whole devices are taken from one NUMA node: of the nodes with enough free devices, the one with the
    /// fewest. If no node has enough, devices are taken node by node, the node with the most free devices first. Ties go to the lower
    /// number.
    pub(super) fn choose(
        &self,
        at: usize,
        machine: usize,
        need: u64,
        part: impl FnOnce(&mut dyn Iterator<Item = usize>) -> Option<usize>,
    ) -> Vec<usize> {
        let set = &self.sets[at];
        let (free, nodes) = (set.numbers(machine), &set.node[set.start[machine]..set.start[machine + 1]]);
        if need == 0 {
            return Vec::new();
        }
        if need < WHOLE {
            let mut enough = (0..free.len()).filter(|&device| u64::from(free[device]) >= need);
            return part(&mut enough).into_iter().collect();
        }
        let wanted = (need / WHOLE) as usize;
        let whole: Vec<usize> = (0..free.len()).filter(|&device| u64::from(free[device]) == WHOLE).collect();
        // Nodes with their free devices.
        let mut groups: std::collections::BTreeMap<u16, Vec<usize>> = std::collections::BTreeMap::new();
        whole.iter().for_each(|&device| groups.entry(nodes[device]).or_default().push(device));
        let one = groups.values().filter(|group| group.len() >= wanted).min_by_key(|group| group.len());
        let mut chosen = match one {
            Some(group) => group[..wanted].to_vec(),
            None => {
                let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
                groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
                groups.into_iter().flatten().take(wanted).collect()
            }
        };
        chosen.sort_unstable();
        chosen
    }

    /// Returns, among these devices, the one with the smallest free amount; ties go to the lower number.
    pub(super) fn fullest(&self, at: usize, machine: usize, among: &mut dyn Iterator<Item = usize>) -> Option<usize> {
        let free = self.sets[at].numbers(machine);
        among.min_by_key(|&device| free[device])
    }

    /// Allocates parts of devices. Panics: if a device has less free than is allocated. The caller has just chosen the devices.
    pub(super) fn allocate(&mut self, machine: usize, parts: &[DevicePart]) {
        self.change(machine, parts, |free, milli| free.checked_sub(milli));
    }

    /// Releases parts of devices. Panics: if a device would have more than a thousand thousandths free.
    pub(super) fn give(&mut self, machine: usize, parts: &[DevicePart]) {
        self.change(machine, parts, |free, milli| free.checked_add(milli).filter(|free| u64::from(*free) <= WHOLE));
    }

    fn change(&mut self, machine: usize, parts: &[DevicePart], by: impl Fn(u16, u16) -> Option<u16>) {
        for part in parts {
            let set =
                self.sets.iter_mut().find(|set| set.dim == usize::from(part.dim)).expect("the resource has devices");
            let free = &mut set.free[set.start[machine] + usize::from(part.device)];
            *free = by(*free, part.milli).expect("a device is held once");
        }
        self.gradients.changed(machine);
    }
}
