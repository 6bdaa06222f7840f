//! Fragmentation gradient descent, as docs/cluster.md defines it.
//!
//! No state is cached: for every machine and every suitable device, the fragments before and after a launch are counted again, device by
//! device, for each row of the trace. The rule differs from the other rules only if devices are identified.

use super::devices::{Device, Part, WHOLE, choose};
use super::placement::Candidate;
use super::simulation::Simulation;
use super::world::{minus, times};
use super::{Placement, Row};

/// Returns the fragments of one resource on a machine with these free amounts, summed over all tasks of a workload.
fn fragments(workload: &[Row], resource: usize, amounts: &[u64], devices: &[Device]) -> i128 {
    let of_task = |need: &[u64]| -> i128 {
        let runs = need[resource] > 0 && times(need, amounts) > 0 && choose(devices, need[resource]).is_some();
        let each = need[resource].min(WHOLE);
        let useless = devices.iter().filter(|device| !runs || device.free < each);
        useless.map(|device| i128::from(device.free)).sum()
    };
    workload.iter().map(|row| i128::from(row.tasks) * of_task(&row.demand)).sum()
}

/// Returns the growth of the fragments, and the devices of one resource that a task gets on a machine with these free amounts. A part of a
/// device is taken from the device with the least growth of fragments, ties to the lower number. Whole devices are chosen as under every
/// other rule.
fn descent(
    workload: &[Row],
    resource: usize,
    need: &[u64],
    amounts: &[u64],
    devices: &[Device],
) -> Option<(i128, Vec<usize>)> {
    let ways: Vec<Vec<usize>> = match need[resource] {
        part @ 1..WHOLE => {
            (0..devices.len()).filter(|&device| devices[device].free >= part).map(|device| vec![device]).collect()
        }
        whole => choose(devices, whole).into_iter().collect(),
    };
    let before = fragments(workload, resource, amounts, devices);
    let growth = |way: &Vec<usize>| {
        let mut left = devices.to_vec();
        way.iter().for_each(|&device| left[device].free -= need[resource].min(WHOLE));
        fragments(workload, resource, &minus(amounts, need), &left) - before
    };
    ways.into_iter().map(|way| (growth(&way), way)).min()
}

impl Simulation<'_> {
    /// Returns the resource for which fragments are counted under this rule, if any: the first one declared with devices.
    pub fn fragile(&self) -> Option<usize> {
        let first = self.world.devices.first();
        first.copied().filter(|_| self.world.placement == Placement::Fgd)
    }

    /// Returns the devices that a task gets under this rule. Returns `None` if the rule does not apply to the resource or if the machine
    /// has too few devices.
    pub fn descend(&self, resource: usize, need: &[u64], amounts: &[u64], devices: &[Device]) -> Option<Vec<usize>> {
        self.fragile().filter(|&fragile| fragile == resource)?;
        descent(self.rows, resource, need, amounts, devices).map(|(_, way)| way)
    }

    /// Returns the machine with the least growth of fragments, among the candidates with room and devices for a task; ties go to the lower
    /// index. `taken` has the parts of devices on each machine that are allocated in addition to those of the running tasks.
    pub fn steepest(
        &self,
        resource: usize,
        need: &[u64],
        candidates: &[Candidate],
        taken: &[Vec<Part>],
    ) -> Option<usize> {
        let growth = |candidate: &Candidate| {
            let devices = self.devices(candidate.place, resource, &taken[candidate.place]);
            descent(self.rows, resource, need, &candidate.free, &devices).map(|(growth, _)| growth)
        };
        let fitting = candidates.iter().filter(|candidate| times(need, &candidate.free) > 0);
        let best = fitting.min_by_key(|candidate| (growth(candidate), candidate.place));
        best.map(|candidate| candidate.place)
    }
}

/// The expected numbers are computed by hand from the definition, mostly for one free GPU, one half free GPU, and 8 free cores.
#[test]
fn fragments_are_those_worked_out_by_hand() {
    let row = |tasks, cores: u64, gpu| Row { tasks, demand: vec![cores * 1000, gpu], ..Row::default() };
    // A task of the first row needs a whole GPU and cannot use a half. The task of the second row needs 16 cores, which are not free. Tasks
    // of the third row use no GPU.
    let workload = [row(3, 1, 1000), row(1, 16, 200), row(2, 1, 0)];
    let devices = |free: [u64; 2]| free.map(|free| Device { node: 0, free });
    let count = |cores: u64, free| fragments(&workload, 1, &[cores * 1000, 1500], &devices(free));
    assert_eq!(count(8, [500, 1000]), 3 * 500 + 1500 + 2 * 1500);
    assert_eq!(count(7, [0, 1000]), 1000 + 2 * 1000);
    assert_eq!(count(7, [500, 500]), 3 * 1000 + 1000 + 2 * 1000);
    assert_eq!(count(0, [0, 1000]), 3 * 1000 + 1000 + 2 * 1000);
    let placed = |need: &[u64], free| descent(&workload, 1, need, &[8000, 1500], &devices(free));
    assert_eq!(placed(&[1000, 500], [500, 1000]), Some((-3000, vec![0])));
    assert_eq!(placed(&[8000, 500], [500, 1000]), Some((0, vec![0])));
    assert_eq!(placed(&[1000, 1000], [500, 1000]), Some((-3000, vec![1])));
    assert_eq!(placed(&[8000, 0], [500, 1000]), Some((3000, vec![])));
    assert_eq!(placed(&[1000, 2000], [500, 1000]), None);
    // Of two equal devices, the one with the lower number is chosen.
    assert_eq!(placed(&[1000, 250], [750, 750]), Some((-250 * 6, vec![0])));
}
