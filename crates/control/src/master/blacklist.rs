//! The blacklist: application masters bar machines with failing workers, and FuxiMaster blacklists a machine for a while when several
//! applications report it.
//!
//! The lower levels of Fuxi's blacklist (Zhang et al., VLDB 2014) are in the application master, which counts failures by role; single
//! instances are not identified in the protocol. Health scores are not modelled. A machine that sends no heartbeats is marked as away.

use std::collections::BTreeSet;

use super::{Master, PendingStep};
use crate::message::{Bar, Note};
use crate::setup::AppId;
use plimsoll_base::units::MachineId;

impl Master {
    /// Replaces the bars of an application. This also works during the recovery window (`Phase::Recovering`). A machine that is newly
    /// barred for all roles is reported.
    pub(super) fn bar(&mut self, turn: &mut PendingStep, app: AppId, bars: Vec<Bar>) {
        let Some(tenant) = self.tenants.get_mut(&app) else { return };
        let bars: BTreeSet<Bar> = bars.into_iter().collect();
        if tenant.bars == bars {
            return;
        }
        let before = std::mem::replace(&mut tenant.bars, bars);
        turn.push_note(Note::Barred(app));
        let blames: Vec<MachineId> =
            tenant.bars.difference(&before).filter(|bar| bar.role.is_none()).map(|bar| bar.machine).collect();
        for machine in blames {
            self.blame(turn, app, machine);
        }
    }

    fn blame(&mut self, turn: &mut PendingStep, app: AppId, machine: MachineId) {
        let Some(limits) = turn.setup.blacklist else { return };
        let blacklisted = self.sites.iter().filter(|site| site.blacklisted).count();
        let site = &mut self.sites[machine.index()];
        if site.blamed.insert(app) {
            turn.push_note(Note::Blamed(machine));
        }
        if !site.blacklisted && site.blamed.len() >= limits.cluster as usize && blacklisted < limits.most as usize {
            site.blacklisted = true;
            turn.push_note(Note::Blacklisted(machine));
        }
    }

    /// Clears the reports against a machine: grants are possible again if it sends heartbeats.
    pub(super) fn forgive(&mut self, turn: &mut PendingStep, machine: MachineId) {
        let site = &mut self.sites[machine.index()];
        site.blamed.clear();
        site.blacklisted = false;
        turn.push_note(Note::Forgiven(machine));
    }
}
