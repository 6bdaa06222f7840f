//! The part of the free devices that a workload cannot use, and placement that increases it the least.
//!
//! For a task that cannot run on a machine, all free thousandths of the machine are *fragments*. For a task that can run on it, the
//! fragments are the free thousandths of devices that have less free than the task needs of one device. A task that needs no device cannot
//! use any, so all free thousandths are fragments for it. Over a mix of tasks the fragments are added up, weighted by the number of tasks
//! of each demand. Gradient descent places a task on the machine where this sum grows least.
//!
//! Source: Weng et al., Beware of fragmentation, USENIX ATC 2023, sections 3 and 4; checked against values of its simulator's tests
//! (hkust-adsl/kubernetes-scheduler-simulator, pkg/utils/frag_test.go at 29a1e4c, Apache-2.0). Departures: every resource determines
//! whether a task can run, memory too; sums are integers; ties go to the lower index.

use std::collections::HashMap;

use super::devices::{DevicePart, Hardware, WHOLE, has_room};
use super::index::Index;
use super::scope::Scope;
use plimsoll_base::units::{MAX_DIMS, Resources};

/// The demands of tasks, and the number of tasks of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mix {
    tasks: Vec<(Resources, u64)>,
}

impl Mix {
    /// Keeps the `most` most frequent demands of a workload, given the number of tasks of each demand; ties go to the earlier demand.
    pub fn new(tasks: impl IntoIterator<Item = (Resources, u64)>, most: usize) -> Mix {
        let mut numbers: HashMap<Resources, usize> = HashMap::new();
        let mut mix: Vec<(Resources, u64)> = Vec::new();
        for (demand, count) in tasks {
            let at = *numbers.entry(demand).or_insert(mix.len());
            match mix.get_mut(at) {
                Some((_, sum)) => *sum += count,
                None => mix.push((demand, count)),
            }
        }
        mix.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        mix.truncate(most);
        Mix { tasks: mix }
    }

    fn weight(&self) -> u128 {
        self.tasks.iter().map(|(_, count)| u128::from(*count)).sum()
    }

    /// Returns the fragments on a machine with these free amounts and devices, summed over the mix's tasks.
    fn fragments(&self, amounts: &[u64], dim: usize, devices: &[u16]) -> i128 {
        let total: i128 = devices.iter().map(|free| i128::from(*free)).sum();
        let of_task = |demand: &Resources| {
            let need = demand.0[dim];
            let fits = amounts.iter().zip(demand.0).all(|(free, need)| need <= *free) && has_room(devices, need);
            if need == 0 || !fits {
                return total;
            }
            let short = devices.iter().filter(|free| u64::from(**free) < need.min(WHOLE));
            short.map(|free| i128::from(*free)).sum()
        };
        self.tasks.iter().map(|(demand, count)| i128::from(*count) * of_task(demand)).sum()
    }
}

/// The unusable part of the free amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragmentation {
    /// Free thousandths of devices that are fragments, summed over the tasks of the mix.
    pub fragments: u128,
    /// Free thousandths of devices.
    pub free: u64,
    /// Number of tasks in the mix.
    pub tasks: u128,
}

impl Fragmentation {
    /// Returns the share of the free thousandths that a task of the mix cannot use, on average; 0 if none are free.
    pub fn share(&self) -> f64 {
        let all = self.free as f64 * self.tasks as f64;
        if all > 0.0 { self.fragments as f64 / all } else { 0.0 }
    }
}

/// By the demand of a task, the growth of the fragments on each machine if the task is placed on it; cached until the machine changes.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Gradients(HashMap<Resources, Vec<Option<i128>>>);

/// The maximum number of cached demands.
const REMEMBERED: usize = 1024;

impl Gradients {
    pub fn changed(&mut self, machine: usize) {
        for known in self.0.values_mut() {
            if let Some(gradient) = known.get_mut(machine) {
                *gradient = None;
            }
        }
    }
}

impl Hardware {
    /// Returns the machine with room where fragments grow least, ties go to the lower index. Returns the first machine with room if there
    /// is no mix. Fragments are counted for the first resource with devices.
    pub(super) fn descend(&mut self, index: &Index, need: &[u64], scope: Scope<'_>) -> Option<usize> {
        let mut fitting = index.each(need, scope).filter(|&machine| self.fits(machine, need));
        if self.mix.is_none() || self.sets.is_empty() {
            return fitting.next();
        }
        drop(fitting);
        let mut key = Resources::ZERO;
        key.0[..need.len()].copy_from_slice(need);
        if self.gradients.0.len() >= REMEMBERED && !self.gradients.0.contains_key(&key) {
            self.gradients.0.clear();
        }
        let mut known = self.gradients.0.remove(&key).unwrap_or_default();
        known.resize(index.len(), None);
        let fitting = index.each(need, scope).filter(|&machine| self.fits(machine, need));
        let scored = fitting
            .map(|machine| (*known[machine].get_or_insert_with(|| self.gradient(index, machine, need)), machine));
        let best = scored.min();
        self.gradients.0.insert(key, known);
        best.map(|(_, machine)| machine)
    }

    /// Returns the growth of the fragments on a machine if a task is placed on it.
    fn gradient(&self, index: &Index, machine: usize, need: &[u64]) -> i128 {
        let (Some(mix), Some(set)) = (&self.mix, self.sets.first()) else { return 0 };
        let amounts = index.amounts(machine);
        let before = mix.fragments(amounts, set.dim, set.numbers(machine));
        let mut left = [0; MAX_DIMS];
        left.iter_mut().zip(amounts.iter().zip(need)).for_each(|(left, (free, need))| *left = free - need);
        let left = &left[..amounts.len()];
        let after = match need[set.dim] {
            milli @ 1..WHOLE => {
                let enough =
                    (0..set.numbers(machine).len()).filter(|&device| u64::from(set.numbers(machine)[device]) >= milli);
                enough.map(|device| self.with_part(left, machine, device, milli)).min()
            }
            milli => {
                let mut devices = set.numbers(machine).to_vec();
                self.choose(0, machine, milli, |_| None).into_iter().for_each(|device| devices[device] = 0);
                Some(mix.fragments(left, set.dim, &devices))
            }
        };
        after.map_or(0, |after| after - before)
    }

    /// Returns the fragments on a machine that has these amounts left, after a part of a device of the first resource is allocated.
    fn with_part(&self, left: &[u64], machine: usize, device: usize, milli: u64) -> i128 {
        let mut devices = self.sets[0].numbers(machine).to_vec();
        devices[device] -= milli as u16;
        self.mix.as_ref().map_or(0, |mix| mix.fragments(left, self.sets[0].dim, &devices))
    }

    /// Returns the devices for a task after its amounts were allocated. A part of a device of the first resource comes from `device` if it
    /// is given, or with `descend` from the device where fragments grow least; otherwise from the device with the least free.
    pub(super) fn pick(
        &self,
        index: &Index,
        machine: usize,
        need: &[u64],
        descend: bool,
        device: Option<usize>,
    ) -> Vec<DevicePart> {
        let mut parts = Vec::new();
        for (at, set) in self.sets.iter().enumerate() {
            let milli = need[set.dim];
            let devices = self.choose(at, machine, milli, |among| {
                if let Some(device) = device.filter(|_| at == 0) {
                    return Some(device);
                }
                if descend && at == 0 && self.mix.is_some() {
                    return among.min_by_key(|&device| self.with_part(index.amounts(machine), machine, device, milli));
                }
                self.fullest(at, machine, among)
            });
            let part =
                |device| DevicePart { dim: set.dim as u8, device: device as u16, milli: milli.min(WHOLE) as u16 };
            parts.extend(devices.into_iter().map(part));
        }
        parts
    }

    /// Returns the fragments on all present machines; `None` without a mix or devices.
    pub(super) fn fragmentation(&self, index: &Index) -> Option<Fragmentation> {
        let (mix, set) = (self.mix.as_ref()?, self.sets.first()?);
        let mut sum = Fragmentation { fragments: 0, free: 0, tasks: mix.weight() };
        for machine in (0..index.len()).filter(|&machine| index.is_present(machine)) {
            let devices = set.numbers(machine);
            sum.fragments += mix.fragments(index.amounts(machine), set.dim, devices).unsigned_abs();
            sum.free += devices.iter().map(|free| u64::from(*free)).sum::<u64>();
        }
        Some(sum)
    }
}
