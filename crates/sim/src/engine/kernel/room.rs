//! The room of machines: search, reservations, plans of gangs, and machines that leave, join and change their labels.
//!
//! A waiting gang reserves nothing until there is room for all of its tasks at one instant, so that no two gangs can block each other. Its
//! placement is planned machine by machine, as if its tasks were launched one by one, and allocated only when the plan is complete. Gangs
//! that reserve room instead are an extension.

use super::Kernel;
use super::changes::Change;
use super::ids::{ScopeId, SetSlot};
use super::running::Running;
use super::scopes::times;
use super::sets::ActiveSet;
use super::site::Site;
use crate::cluster::{DevicePart, Shortage};
use crate::policy::Lens;
use crate::record::Locality;
use plimsoll_base::units::{MachineId, Resources};

/// The plan of a gang: machines and the number of tasks on each.
pub type GangPlan = Vec<(MachineId, u32)>;

impl Kernel<'_> {
    /// Returns a machine of a set's scope with room for one of its tasks, chosen by the placement rule.
    pub fn find_machine(&mut self, slot: SetSlot) -> Option<MachineId> {
        let scope = self.scope(slot);
        self.site.scopes.find(&mut self.site.machines, scope, self.work.sets.needs(slot).1)
    }

    /// Returns the machine that the policy nominates for the next task of a set, if the machine has room; for a gang the first machine of
    /// the plan, which replaces `plan`. Gangs that need devices, and gangs that are not `planned`, are placed by the placement rule.
    pub fn nominated(&self, slot: SetSlot, planned: bool, plan: &mut GangPlan) -> Option<MachineId> {
        let set = &self.work.sets[slot];
        let parts = self.context.policy.planner()?.nominated(&self.work.view(slot));
        let &(first, _) = parts.first()?;
        let scope = self.work.queues.scope(set.queue);
        let need = self.work.sets.needs(slot).1;
        let fits =
            |machine: MachineId| self.site.scopes.contains(scope, machine) && self.site.machines.fits(machine, need);
        if !set.is_gang() {
            return fits(first).then_some(first);
        }
        let tasks = parts.iter().map(|(_, count)| count).sum::<u32>();
        let room = |machine: MachineId| times(&self.site.machines.free(machine).0, need);
        let all = parts.iter().all(|(machine, count)| fits(*machine) && room(*machine) >= u64::from(*count));
        if !planned || self.site.devices.is_some() || tasks != set.waiting || !all {
            return None;
        }
        plan.clear();
        plan.extend_from_slice(parts);
        Some(first)
    }

    /// Returns the shortage of the next task of a set that found no room; on a pooled cluster, of all tasks of a gang together.
    pub fn shortage(&self, slot: SetSlot) -> Option<Shortage> {
        let set = &self.work.sets[slot];
        let together = if set.is_gang() && self.site.pooled { u64::from(set.waiting) } else { 1 };
        let need: Vec<u64> = self.work.sets.needs(slot).1.iter().map(|need| need.saturating_mul(together)).collect();
        let scope = self.work.queues.scope(set.queue);
        let short = self.site.machines.shortage(&need, |machine| self.site.scopes.contains(scope, machine))?;
        let counts_slots = matches!(self.site.lens, Lens::Slots(_));
        Some(Shortage { resource: short.resource.filter(|_| !counts_slots), ..short })
    }

    /// Returns the machine of a gang's first task if there is room for all tasks of the gang; replaces `plan` with its plan.
    pub fn room_for_all(&mut self, slot: SetSlot, plan: &mut GangPlan) -> Option<MachineId> {
        let set = &self.work.sets[slot];
        let need = self.work.sets.needs(slot).1;
        let scope = self.work.queues.scope(set.queue);
        let Site { machines, scopes, devices, pooled, .. } = &mut self.site;
        let mut left = set.waiting;
        plan.clear();
        if *pooled {
            let machine = machines.find(need)?;
            if times(&machines.free(machine).0, need) < u64::from(left) {
                return None;
            }
            plan.push((machine, left));
            return Some(machine);
        }
        let mut planned = Vec::new();
        while left > 0 {
            let Some(machine) = scopes.find(machines, scope, need) else { break };
            machines.allocate(machine, need);
            if devices.is_some() {
                planned.push((machine, machines.assign(machine, need)));
            }
            left -= 1;
            match plan.last_mut() {
                Some((last, count)) if *last == machine => *count += 1,
                _ => plan.push((machine, 1)),
            }
        }
        planned.into_iter().for_each(|(machine, parts)| machines.release(machine, &parts));
        plan.iter().for_each(|&(machine, count)| machines.give(machine, need, count));
        if left > 0 { None } else { plan.first().map(|(machine, _)| *machine) }
    }

    /// Reserves free amounts of a machine.
    pub fn reserve(&mut self, machine: MachineId, amounts: &Resources) {
        self.site.machines.reserve(machine, amounts);
    }

    /// Releases reserved amounts, which waiting tasks may use from now on.
    pub fn release_reservation(&mut self, machine: MachineId, amounts: &Resources) {
        self.site.machines.give_reserved(machine, amounts);
        self.line_states.add_freed(machine);
    }

    /// Releases reserved amounts that the caller uses immediately for a launch.
    pub fn use_reservation(&mut self, machine: MachineId, amounts: &Resources) {
        self.site.machines.give_reserved(machine, amounts);
    }

    /// Removes a machine: no task starts on it until [`Kernel::restore_machine`]. Running tasks continue.
    pub fn remove_machine(&mut self, machine: MachineId) {
        self.site.count_machine(&mut self.books, machine, false);
        self.site.machines.remove(machine);
    }

    /// Adds a machine that was removed or absent.
    pub fn restore_machine(&mut self, machine: MachineId) {
        self.site.machines.restore(machine, &self.site.offers[machine.index()]);
        self.serves_more(machine);
        self.site.count_machine(&mut self.books, machine, true);
    }

    /// Replaces the labels of a machine.
    pub fn relabel(&mut self, machine: MachineId, labels: &[String]) {
        self.site.count_machine(&mut self.books, machine, false);
        self.site.scopes.relabel(machine, labels);
        self.serves_more(machine);
        self.site.count_machine(&mut self.books, machine, true);
    }

    /// Records that a machine has more free room than before or other labels.
    pub(super) fn serves_more(&mut self, machine: MachineId) {
        self.line_states.add_freed(machine);
        self.changes.push(Change::Freed(machine));
    }

    /// Returns a machine for an application master. The placement rule selects it, as for a task that takes no room. It differs from the
    /// last machine if there is another machine.
    pub fn find_home(&mut self, last: Option<MachineId>) -> Option<MachineId> {
        self.site.machines.home(last)
    }

    /// Returns the locality of a task of a set on this machine; `None` if all machines are equally good.
    pub(super) fn reach(&self, slot: SetSlot, machine: MachineId) -> Option<Locality> {
        let home = self.work.sets.details(slot).home.unwrap_or_else(|| self.scope(slot));
        let home = self.site.scopes.get(home).location;
        self.site.scopes.reach(home, machine)
    }

    /// Moves a waiting set to its user's queue for the next wider scope, at the same position. Returns `false` if there is no wider scope.
    pub fn move_up(&mut self, slot: SetSlot) -> bool {
        let Some(scope) = self.site.scopes.up(self.scope(slot), self.books.dims()) else { return false };
        self.move_to_scope(slot, scope);
        true
    }

    /// Moves a waiting set to its user's queue for another scope, at the same position.
    fn move_to_scope(&mut self, slot: SetSlot, scope: ScopeId) {
        self.keep_home(slot);
        let (user, old) = (self.work.sets[slot].user, self.work.sets[slot].queue);
        let queue = self.work.queues.id(user, scope);
        self.line_states.open(self.work.queues.len());
        self.leave_queue(slot, old);
        self.work.sets[slot].queue = queue;
        self.enqueue_in(slot);
        self.context.recorder.head(user);
    }

    /// Stores the scope that the row of a set requires, before the set moves to the queue of another scope.
    fn keep_home(&mut self, slot: SetSlot) {
        let scope = self.scope(slot);
        self.work.sets.details_mut(slot).home.get_or_insert(scope);
    }

    /// Excludes a machine for tasks of a set, or includes it again.
    pub fn exclude_machine(&mut self, slot: SetSlot, machine: MachineId, excluded: bool) {
        let ActiveSet { user, waiting, .. } = self.work.sets[slot];
        let scope = self.site.scopes.bar(self.scope(slot), machine, excluded, self.books.dims());
        if self.work.sets[slot].is_listed() && waiting > 0 {
            return self.move_to_scope(slot, scope);
        }
        self.keep_home(slot);
        self.work.sets[slot].queue = self.work.queues.id(user, scope);
        self.line_states.open(self.work.queues.len());
    }

    /// Assigns devices to tasks with allocated amounts on a machine.
    pub fn assign(&mut self, tasks: &Running) {
        let Some(devices) = &mut self.site.devices else { return };
        let held = self.site.machines.assign(tasks.machine, self.work.sets.needs(tasks.set).1);
        if !held.is_empty() {
            devices.insert((tasks.set, tasks.first), held);
        }
    }

    /// Releases the devices of tasks.
    pub fn release(&mut self, tasks: &Running) {
        let held = self.take_devices(tasks);
        self.site.machines.release(tasks.machine, &held);
    }

    /// Removes and returns the devices of tasks without releasing them on the machine.
    pub fn take_devices(&mut self, tasks: &Running) -> Vec<DevicePart> {
        let devices = self.site.devices.as_mut();
        devices.and_then(|devices| devices.remove(&(tasks.set, tasks.first))).unwrap_or_default()
    }
}
