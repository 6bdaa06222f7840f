//! Task sets that start all of their tasks together or none.
//!
//! A waiting gang reserves nothing until there is room for all of its tasks at one instant, so that no two gangs can block each other. Its
//! placement is planned machine by machine, as if its tasks were launched one by one, and allocated only when the plan is complete. Gangs
//! that reserve room instead are in `hoard`.

use super::core::Core;
use super::hoard::Hoards;
use super::jobs::SetSlot;
use crate::cluster::{Shortage, WHOLE};
use crate::policy::Lens;
use plimsoll_base::units::{MachineId, Resources};

/// The plan of a gang: machines and the number of tasks on each.
pub(super) type GangPlan = Vec<(MachineId, u32)>;

/// Distinct machine capacities, and the number of machines of each.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    kinds: Vec<(Resources, u64)>,
    /// Resources that consist of devices.
    devices: Vec<usize>,
}

impl Kinds {
    pub fn new(mut sorted: Vec<Resources>, devices: &[usize]) -> Kinds {
        sorted.sort_unstable_by_key(|machine| machine.0);
        let kinds = sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        Kinds { kinds, devices: devices.to_vec() }
    }

    /// Returns the number of tasks of this need, at most `enough`, that fit at once on the empty machines.
    pub fn room(&self, need: &Resources, enough: u64) -> u64 {
        // Most task sets need room for one task, and a comparison is much cheaper than a division.
        let whole = |kind: &Resources| kind.0.iter().zip(need.0).all(|(free, need)| need <= *free);
        if enough == 1 {
            return u64::from(self.kinds.iter().any(|(kind, _)| whole(kind)));
        }
        let mut room = 0u64;
        for (kind, machines) in &self.kinds {
            let parts = self.devices.iter().filter(|d| (1..WHOLE).contains(&need.0[**d]));
            // The remainders of two devices cannot be combined for one task.
            let parts = parts.map(|d| kind.0[*d] / WHOLE * (WHOLE / need.0[*d])).min().unwrap_or(u64::MAX);
            room = room.saturating_add(times(&kind.0, &need.0).min(parts).min(enough).saturating_mul(*machines));
            if room >= enough {
                return enough;
            }
        }
        room
    }
}

/// Returns how many times a need fits into free amounts.
pub(super) fn times(free: &[u64], need: &[u64]) -> u64 {
    free.iter().zip(need).filter(|(_, need)| **need > 0).map(|(free, need)| free / need).min().unwrap_or(u64::MAX)
}

impl Core<'_> {
    /// Returns the machine of the next task of a set, or of a gang's first task, if there is room. The plan of a gang is stored for its
    /// launch.
    pub(super) fn room(&mut self, slot: SetSlot, hoards: &mut Option<Hoards>) -> Option<MachineId> {
        if self.round.nominates
            && let Some(machine) = self.nominated(slot, hoards.is_some())
        {
            return Some(machine);
        }
        let set = &self.work.sets[slot];
        if !set.gang {
            let need = self.work.sets.needs(slot).1;
            return self.site.find(self.work.queues.scope(set.queue), need);
        }
        match hoards {
            Some(hoards) => hoards.reserve(self, slot),
            None => self.room_for_all(slot),
        }
    }

    /// Returns the machine that the policy nominates for the next task of a set, if the machine has room; for a gang the first machine of
    /// the plan, which is stored. Gangs that reserve room or need devices are placed by the placement rule.
    fn nominated(&mut self, slot: SetSlot, hoards: bool) -> Option<MachineId> {
        let set = &self.work.sets[slot];
        let parts = self.outside.policy.planner()?.nominated(&self.work.view(slot));
        let &(first, _) = parts.first()?;
        let scope = self.work.queues.scope(set.queue);
        let need = self.work.sets.needs(slot).1;
        let fits =
            |machine: MachineId| self.site.scopes.contains(scope, machine) && self.site.machines.fits(machine, need);
        if !set.gang {
            return fits(first).then_some(first);
        }
        let tasks = parts.iter().map(|(_, count)| count).sum::<u32>();
        let room = |machine: MachineId| times(&self.site.machines.free(machine).0, need);
        let all = parts.iter().all(|(machine, count)| fits(*machine) && room(*machine) >= u64::from(*count));
        if hoards || self.site.devices.is_some() || tasks != set.waiting || !all {
            return None;
        }
        self.plan.clear();
        self.plan.extend_from_slice(parts);
        Some(first)
    }

    /// Returns the shortage of the next task of a set that found no room; on a pooled cluster, of all tasks of a gang together.
    pub(super) fn shortage(&self, slot: SetSlot) -> Option<Shortage> {
        let set = &self.work.sets[slot];
        let together = if set.gang && self.site.pooled { u64::from(set.waiting) } else { 1 };
        let need: Vec<u64> = self.work.sets.needs(slot).1.iter().map(|need| need.saturating_mul(together)).collect();
        let scope = self.work.queues.scope(set.queue);
        let short = self.site.machines.shortage(&need, |machine| self.site.scopes.contains(scope, machine))?;
        let counts_slots = matches!(self.site.lens, Lens::Slots(_));
        Some(Shortage { resource: short.resource.filter(|_| !counts_slots), ..short })
    }

    /// Returns the machine of a gang's first task if there is room for all tasks of the gang; stores the plan.
    pub(super) fn room_for_all(&mut self, slot: SetSlot) -> Option<MachineId> {
        let set = &self.work.sets[slot];
        let need = self.work.sets.needs(slot).1;
        let scope = self.work.queues.scope(set.queue);
        let mut left = set.waiting;
        self.plan.clear();
        if self.site.pooled {
            let machine = self.site.machines.find(need)?;
            if times(&self.site.machines.free(machine).0, need) < u64::from(left) {
                return None;
            }
            self.plan.push((machine, left));
            return Some(machine);
        }
        let mut planned = Vec::new();
        while left > 0 {
            let Some(machine) = self.site.find(scope, need) else { break };
            self.site.machines.allocate(machine, need);
            if self.site.devices.is_some() {
                planned.push((machine, self.site.machines.assign(machine, need)));
            }
            left -= 1;
            match self.plan.last_mut() {
                Some((last, count)) if *last == machine => *count += 1,
                _ => self.plan.push((machine, 1)),
            }
        }
        for (machine, held) in planned {
            self.site.machines.release(machine, &held);
        }
        for &(machine, count) in &self.plan {
            self.site.machines.give(machine, need, count);
        }
        if left > 0 { None } else { self.plan.first().map(|(machine, _)| *machine) }
    }

    /// Checks that no gang has started in part. Panics: if one has (a programmer error); for audited runs.
    pub(super) fn audit_gangs(&self) {
        for slot in self.work.sets.by_row() {
            let set = &self.work.sets[slot];
            assert!(!set.gang || set.waiting == 0 || set.waiting == set.left, "a gang in part at {:?}", self.now);
        }
    }
}
