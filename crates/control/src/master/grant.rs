//! Changing an allocation, and granting what is wanted while there is room.

use std::cmp::Reverse;

use super::{Contact, Master, Turn};
use crate::message::{Note, Units};
use crate::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::MachineId;

impl Master {
    /// The room that a machine has left.
    pub fn free(&self, setup: &Setup, machine: MachineId) -> u32 {
        setup.machines[machine.index()].saturating_sub(self.sites[machine.index()].used)
    }

    /// The size of the units allocated on a machine.
    pub fn used(&self, machine: MachineId) -> u32 {
        self.sites[machine.index()].used
    }

    /// Changes an allocation, its sums, and what will be said about it.
    pub(super) fn change(&mut self, turn: &mut Turn, units: Units<i32>) {
        if units.count != 0 {
            turn.hint_changed(turn.setup.role(units.role).app, units);
            self.alter(turn, units);
        }
    }

    /// Changes an allocation whose application master knows of it already.
    pub(super) fn alter(&mut self, turn: &mut Turn, units: Units<i32>) {
        let Units { machine, role, count } = units;
        let spec = *turn.setup.role(role);
        self.hide(turn.setup, machine);
        let site = &mut self.sites[machine.index()];
        site.alloc.add(role, count);
        site.used = site.used.saturating_add_signed(count * spec.size as i32);
        self.show(turn.setup, machine);
        let account = &mut self.accounts[role.index()];
        account.granted = account.granted.saturating_add_signed(count);
        if let Some(group) = spec.group {
            let used = &mut self.groups[usize::from(group)];
            *used = used.saturating_add_signed(i64::from(count) * i64::from(spec.size));
        }
        turn.cap_changed(units);
        self.appetite_of(turn.setup, role);
    }

    /// Sets whether a machine is heard, and so whether it may be granted on.
    pub(super) fn set_contact(&mut self, setup: &Setup, machine: MachineId, contact: Contact) {
        self.hide(setup, machine);
        self.sites[machine.index()].contact = contact;
        self.show(setup, machine);
    }

    fn hide(&mut self, setup: &Setup, machine: MachineId) {
        self.room.remove(&(Reverse(self.free(setup, machine)), machine));
    }

    fn show(&mut self, setup: &Setup, machine: MachineId) {
        let free = self.free(setup, machine);
        if free > 0 && self.sites[machine.index()].contact == Contact::Here {
            self.room.insert((Reverse(free), machine));
        }
    }

    /// Notes whether the roles of an application want more.
    pub(super) fn appetite(&mut self, setup: &Setup, app: AppId) {
        for role in setup.roles_of(app) {
            self.appetite_of(setup, role);
        }
    }

    fn appetite_of(&mut self, setup: &Setup, role: RoleId) {
        let account = self.accounts[role.index()];
        let here = self.tenants[setup.role(role).app.index()].contact == Contact::Here;
        if here && account.granted < account.request {
            self.hungry.insert(role);
        } else {
            self.hungry.remove(&role);
        }
    }

    /// Grants what is wanted while there is room, role by role. Ties: the lower role, the machine with most room, the
    /// lower machine. Nothing is granted to an application whose master is away, since no master would start it, nor on a
    /// machine where the role's cap has become smaller and the Tubo has not acknowledged that.
    pub(super) fn grant(&mut self, turn: &mut Turn) {
        let hungry: Vec<RoleId> = self.hungry.iter().copied().collect();
        for role in hungry {
            let spec = *turn.setup.role(role);
            while self.hungry.contains(&role) && self.quota_admits(turn.setup, role) {
                let mut fits = self.room.iter().take_while(|(Reverse(free), _)| *free >= spec.size);
                let open = fits.find(|(_, machine)| !self.sites[machine.index()].is_shrinking(role));
                let Some(&(_, machine)) = open else { break };
                self.change(turn, Units { machine, role, count: 1 });
                turn.note(Note::Granted(Units { machine, role, count: 1 }));
            }
        }
    }

    /// Whether the quota group of a role has room for one more unit.
    fn quota_admits(&self, setup: &Setup, role: RoleId) -> bool {
        let spec = setup.role(role);
        spec.group.map(usize::from).is_none_or(|g| self.groups[g] + u64::from(spec.size) <= setup.groups[g])
    }
}
