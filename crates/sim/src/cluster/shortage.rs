//! The resource that is short if a task fits no machine, and the missing amount.
//!
//! A machine's shortfall of a resource is the missing part of the need, over the need: 0 if the machine has enough, 1 if it has none. The
//! nearest machine is the one with the smallest maximum shortfall. Shortfalls are compared exactly, as fractions.

use super::Machines;
use super::devices::WHOLE;
use plimsoll_base::units::MachineId;

/// A resource with too little room for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The index of the resource among the dimensions; `None` if room is counted in slots.
    pub resource: Option<u8>,
    /// The missing amount on the nearest machine, in base units, or in slots.
    pub amount: u64,
}

/// The missing part of a need on a machine: the resource, the missing amount, and the need.
type Shortfall = (usize, u64, u64);

/// Returns whether a shortfall is a larger part of its need than another one. Needs are not 0.
fn larger(a: Shortfall, b: Shortfall) -> bool {
    u128::from(a.1) * u128::from(b.2) > u128::from(b.1) * u128::from(a.2)
}

impl Machines {
    /// Returns the shortage of a task on the nearest machine among the present machines that it `may` use. Returns `None` if there is no
    /// such machine, or if one of them has room for the task.
    ///
    /// The shortage is that machine's largest shortfall. Of a resource with devices, a task that needs a part of a device can get the free
    /// part of the device with the most free; other tasks can get the entirely free devices. Ties go to the lowest machine, then to the
    /// first resource. Cost: O(machines · resources).
    pub fn shortage(&self, need: &[u64], may: impl Fn(MachineId) -> bool) -> Option<Shortage> {
        let there = (0..self.len() as u32).map(MachineId).filter(|machine| self.is_present(*machine) && may(*machine));
        let largest = there.filter_map(|machine| {
            let needed = need.iter().enumerate().filter(|(_, need)| **need > 0);
            let lacks = |(d, &need): (usize, &u64)| (d, need.saturating_sub(self.gets(machine, d, need)), need);
            needed.map(lacks).reduce(|most, one| if larger(one, most) { one } else { most })
        });
        let (d, amount, _) = largest.reduce(|least, one| if larger(least, one) { one } else { least })?;
        (amount > 0).then_some(Shortage { resource: Some(d as u8), amount })
    }

    /// Returns the number of tasks with this need that have room together on a machine. Cost: O(resources + devices).
    pub fn room(&self, machine: MachineId, need: &[u64]) -> u64 {
        let needed = need.iter().enumerate().filter(|(_, need)| **need > 0);
        let room = |(d, &need): (usize, &u64)| {
            let room = self.free(machine).0[d] / need;
            let Some(devices) = self.hardware().and_then(|hardware| hardware.free(d, machine)) else { return room };
            let devices = devices.iter().map(|&milli| u64::from(milli));
            room.min(match need < WHOLE {
                true => devices.map(|milli| milli / need).sum(),
                false => devices.filter(|&milli| milli == WHOLE).sum::<u64>() / need,
            })
        };
        needed.map(room).min().unwrap_or(u64::MAX)
    }

    /// Returns the amount of a resource that a task with this need can get on a machine.
    fn gets(&self, machine: MachineId, d: usize, need: u64) -> u64 {
        let free = self.free(machine).0[d];
        let Some(devices) = self.hardware().and_then(|hardware| hardware.free(d, machine)) else { return free };
        let devices = devices.iter().map(|&milli| u64::from(milli));
        free.min(match need < WHOLE {
            true => devices.max().unwrap_or(0),
            false => devices.filter(|&milli| milli == WHOLE).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Hardware, Placement};
    use plimsoll_base::units::Resources;

    fn resources(a: u64, b: u64) -> Resources {
        Resources([a, b, 0, 0, 0, 0, 0, 0])
    }

    fn machines(free: &[[u64; 2]]) -> Machines {
        let capacities: Vec<Resources> = free.iter().map(|&[a, b]| resources(a, b)).collect();
        Machines::new(2, Placement::FirstFit, &capacities)
    }

    fn short(machines: &Machines, need: &[u64]) -> Option<(u8, u64)> {
        machines.shortage(need, |_| true).map(|short| (short.resource.expect("no slots"), short.amount))
    }

    /// A task needs 4 units of the first and 10 of the second resource. Machine 0 lacks 3/4 of the first need and 0 of the second. Machine
    /// 1 lacks 1/4 and 1/2, machine 2 lacks 1/2 and 0. The smallest of the three largest shortfalls is 1/2, and machine 1 is the lower of
    /// the two machines with it.
    #[test]
    fn the_machine_comes_nearest_whose_largest_shortfall_is_least() {
        let mut all = machines(&[[1, 20], [3, 5], [2, 10]]);
        assert_eq!(short(&all, &[4, 10]), Some((1, 5)));
        // Without machine 1, machine 2 is nearest; if machine 2 is forbidden as well, machine 0 is nearest.
        all.remove(MachineId(1));
        assert_eq!(short(&all, &[4, 10]), Some((0, 2)));
        assert_eq!(all.shortage(&[4, 10], |machine| machine.0 == 0), Some(Shortage { resource: Some(0), amount: 3 }));
        assert_eq!(all.shortage(&[4, 10], |machine| machine.0 == 1), None, "no machine");
        // Each resource alone fits on some machine. Machine 0 lacks 1/4 of the first need, machine 1 lacks 1/5 of the second.
        assert_eq!(short(&machines(&[[3, 10], [4, 8]]), &[4, 10]), Some((1, 2)));
        // If two shortfalls of a machine are equal, the first resource is reported. A resource that is not needed is never short.
        assert_eq!(short(&machines(&[[2, 5]]), &[4, 10]), Some((0, 2)));
        assert_eq!(short(&machines(&[[0, 5]]), &[0, 10]), Some((1, 5)));
        assert_eq!(short(&machines(&[[4, 10], [0, 0]]), &[4, 10]), None, "it fits");
    }

    /// A task uses 0.6 of one of two devices, so 1.4 devices are free, one of them whole. A need of two devices is short by one device; a
    /// need of 0.7 is not short. With 0.6 of the other device in use too, a need of 0.7 is short by 0.3, although 0.8 is free in total.
    #[test]
    fn devices_count_as_they_can_be_had() {
        let mut hardware = Hardware::new(&[1]);
        hardware.push(&resources(9, 2000), |_| &[]).expect("two devices");
        let mut all = machines(&[[9, 2000]]).with_hardware(hardware);
        let take = |all: &mut Machines| {
            all.allocate(MachineId(0), &[1, 600]);
            all.assign(MachineId(0), &[1, 600]);
        };
        take(&mut all);
        assert_eq!((short(&all, &[1, 2000]), short(&all, &[1, 700])), (Some((1, 1000)), None));
        take(&mut all);
        assert_eq!((short(&all, &[1, 700]), short(&all, &[1, 1000])), (Some((1, 300)), Some((1, 1000))));
    }
}
