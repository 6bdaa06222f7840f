//! Changes of allocations: decisions of the scheduler, and their effect on caps and hints.

use super::{Contact, Master, PendingStep};
use crate::message::{Note, Units, Why};
use crate::setup::Setup;
use plimsoll_base::units::{MachineId, Resources};

impl Master {
    /// Returns the free capacity of a machine.
    pub fn free(&self, setup: &Setup, machine: MachineId) -> Resources {
        setup.machines[machine.index()].saturating_sub(self.sites[machine.index()].used)
    }

    /// Returns the resources of the units allocated on a machine.
    pub fn used(&self, machine: MachineId) -> Resources {
        self.sites[machine.index()].used
    }

    /// Changes an allocation and its sums, and records the change for the Tubo and the application master.
    pub(super) fn change(&mut self, turn: &mut PendingStep, units: Units<i32>) {
        if units.count != 0 {
            turn.hint_changed(turn.setup.role(units.role).app, units);
            self.alter(turn, units);
        }
    }

    /// Changes an allocation without notifying the application master, because the application master made the change itself or its
    /// application is complete.
    pub(super) fn alter(&mut self, turn: &mut PendingStep, units: Units<i32>) {
        let Units { machine, role, count } = units;
        let spec = turn.setup.role(role);
        let site = &mut self.sites[machine.index()];
        site.alloc.add(role, count);
        let amount = spec.unit.times(count.unsigned_abs());
        site.used = if count < 0 { site.used.saturating_sub(amount) } else { site.used + amount };
        let account = self.accounts.entry(role).or_default();
        account.granted = account.granted.saturating_add_signed(count);
        if let Some(tenant) = self.tenants.get_mut(&spec.app) {
            let held = tenant.held.entry((machine, role)).or_default();
            *held = held.saturating_add_signed(count);
            if *held == 0 {
                tenant.held.remove(&(machine, role));
            }
        }
        turn.cap_changed(units);
    }

    /// Records whether a machine sends heartbeats, and therefore whether grants on it are possible.
    pub(super) fn set_contact(&mut self, turn: &mut PendingStep, machine: MachineId, contact: Contact) {
        let before = std::mem::replace(&mut self.sites[machine.index()].contact, contact);
        match (before, contact) {
            (Contact::Here, Contact::Here) => {}
            (_, Contact::Here) => turn.push_note(Note::MachineBack(machine)),
            (Contact::Here, _) => turn.push_note(Note::MachineAway(machine)),
            _ => {}
        }
    }

    /// Grants units that the scheduler has chosen at one instant.
    pub(super) fn grant(&mut self, turn: &mut PendingStep, granted: &[Units<u32>]) {
        for &Units { machine, role, count } in granted {
            self.change(turn, Units { machine, role, count: count as i32 });
            turn.push_note(Note::Granted(Units { machine, role, count }));
        }
    }

    /// Revokes units that the scheduler preempts. Units that no longer exist are skipped.
    pub(super) fn revoke(&mut self, turn: &mut PendingStep, taken: &[Units<u32>]) {
        for &Units { machine, role, count } in taken {
            let count = count.min(self.sites[machine.index()].alloc.get(role));
            if count > 0 {
                self.change(turn, Units { machine, role, count: -(count as i32) });
                turn.push_note(Note::Dropped(Units { machine, role, count }, Why::Displaced));
            }
        }
    }
}
