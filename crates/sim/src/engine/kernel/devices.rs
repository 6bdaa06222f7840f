//! The assignment of devices to running tasks.

use std::collections::HashMap;

use super::Kernel;
use super::jobs::SetSlot;
use super::running::Running;
use crate::cluster::{DevicePart, Hardware};

/// The devices of each running task, by set and number; where devices have identities, every task is an entry of its own.
pub(in crate::engine) type Devices = HashMap<(SetSlot, u32), Vec<DevicePart>>;

impl Kernel<'_> {
    /// Assigns devices to tasks with allocated amounts on a machine.
    pub(in crate::engine) fn assign(&mut self, tasks: &Running) {
        let Some(devices) = &mut self.site.devices else { return };
        let held = self.site.machines.assign(tasks.machine, self.work.sets.needs(tasks.set).1);
        if !held.is_empty() {
            devices.insert((tasks.set, tasks.first), held);
        }
    }

    /// Releases the devices of tasks.
    pub(in crate::engine) fn release(&mut self, tasks: &Running) {
        let held = self.take_devices(tasks);
        self.site.machines.release(tasks.machine, &held);
    }

    /// Removes and returns the devices of tasks without releasing them on the machine.
    pub(in crate::engine) fn take_devices(&mut self, tasks: &Running) -> Vec<DevicePart> {
        let devices = self.site.devices.as_mut();
        devices.and_then(|devices| devices.remove(&(tasks.set, tasks.first))).unwrap_or_default()
    }

    /// Checks the assigned devices. Panics: if more of a device is assigned than exists, or a task has other amounts than it needs (a
    /// programmer error); for audited runs.
    pub(in crate::engine) fn audit_devices(&self) {
        if self.site.devices.is_none() {
            return;
        }
        let made_of = self.site.machines.hardware().map(Hardware::dims).unwrap_or_default();
        let mut sums: HashMap<_, u32> = HashMap::new();
        for running in self.running.iter() {
            let all = held_by(&self.site.devices, running);
            for &dim in &made_of {
                let milli: u64 =
                    all.iter().filter(|held| usize::from(held.dim) == dim).map(|held| u64::from(held.milli)).sum();
                assert_eq!(milli, self.work.sets.needs(running.set).1[dim], "devices of a task at {:?}", self.now);
            }
            for held in all {
                *sums.entry((running.machine, held.dim, held.device)).or_default() += u32::from(held.milli);
            }
        }
        assert!(sums.values().all(|milli| *milli <= 1000), "a device twice at {:?}", self.now);
    }
}

/// Returns the devices of a task.
pub(in crate::engine) fn held_by<'a>(devices: &'a Option<Devices>, tasks: &Running) -> &'a [DevicePart] {
    devices.as_ref().and_then(|devices| devices.get(&(tasks.set, tasks.first))).map_or(&[], Vec::as_slice)
}
