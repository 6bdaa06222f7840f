//! Keeps the engine consistent with FuxiMaster: grants and revocations, received requests, usable machines, and postponed grants.

use std::collections::BTreeMap;

use super::{RoleState, World};
use crate::master::{self, Contact};
use crate::message::{Note, Output, Units};
use crate::setup::{AppId, RoleId};
use plimsoll_base::units::{MachineId, Span};
use plimsoll_sim::backend::ControlOrder;
use plimsoll_sim::record::Fate;

impl World {
    /// Applies the outputs of a step of FuxiMaster to the engine.
    pub(super) fn follow(&mut self, outputs: &[Output]) {
        let mut apps: Vec<AppId> = Vec::new();
        let mut changed: Vec<((MachineId, RoleId), Fate)> = Vec::new();
        // The changes within a recovery are applied together at its end.
        let recovered = outputs.contains(&Output::Note(Note::Recovered));
        for output in outputs {
            let Output::Note(note) = output else { continue };
            match *note {
                Note::Dropped(units, _) | Note::Released(units) | Note::Rebuilt(units, _) => {
                    if !recovered {
                        let fate = if matches!(note, Note::Released(_)) { Fate::Moved } else { Fate::Revoked };
                        changed.push(((units.machine, units.role), fate));
                    }
                    apps.extend(self.setup.find(units.role).map(|role| role.app));
                }
                Note::MachineAway(machine) | Note::Forgiven(machine) => self.open(machine),
                Note::Blacklisted(machine) => {
                    self.watch.blacklisted += 1;
                    self.open(machine);
                }
                Note::Blamed(machine) => self.blamed(machine),
                Note::Barred(app) => self.keep_from(app),
                Note::MachineBack(machine) => {
                    self.open(machine);
                    // The Tubo may fall silent after this message.
                    self.watch_tubo(machine);
                }
                Note::AppAway(app) => self.list(app, false),
                Note::Requested(role, count) if count > 0 => self.list_role(role, true),
                Note::Requested(role, _) => apps.extend(self.setup.find(role).map(|role| role.app)),
                Note::Accepted(app, _) => apps.push(app),
                Note::Recovered => self.recovered(),
                _ => {}
            }
        }
        self.settle(&changed);
        self.grant_postponed();
        apps.into_iter().for_each(|app| self.forget_if_over(app));
    }

    /// Makes the engine's allocations at these places equal to those of FuxiMaster plus the postponed grants.
    pub(super) fn settle(&mut self, places: &[((MachineId, RoleId), Fate)]) {
        let Some(master) = &self.master else { return };
        let target = |&((machine, role), fate): &((MachineId, RoleId), Fate)| {
            let later = self.postponed.iter().filter(|units| (units.machine, units.role) == (machine, role));
            let target = master.sites[machine.index()].alloc.get(role) + later.map(|units| units.count).sum::<u32>();
            Some(((machine, role), *self.lines.get(&role)?, target, fate))
        };
        let targets: Vec<_> = places.iter().filter_map(target).collect();
        let mut again: Vec<(RoleId, RoleState)> = Vec::new();
        for &(at, line, target, fate) in &targets {
            if self.places.give_up(at, line, target, fate) {
                again.push((at.1, line));
            }
        }
        again.into_iter().for_each(|(role, line)| self.places.reuse(role, line));
        for (at, line, target, _) in targets {
            self.places.fill(at, line, target);
        }
    }

    /// Updates whether the engine may use a machine.
    pub(super) fn open(&mut self, machine: MachineId) {
        let open = self.is_open(machine);
        let host = &mut self.hosts[machine.index()];
        if std::mem::replace(&mut host.open, open) == open {
            return;
        }
        self.places.order(if open { ControlOrder::Back(machine) } else { ControlOrder::Away(machine) });
        if !open {
            self.postponed.retain(|units| units.machine != machine);
            // Revokes postponed grants on this machine.
            let there = self.places.all().into_iter().filter(|(there, _)| *there == machine);
            let there: Vec<_> = there.map(|at| (at, Fate::Revoked)).collect();
            self.settle(&there);
        }
    }

    /// Records that FuxiMaster has the requests of an application, or no longer has them.
    pub(super) fn list(&mut self, app: AppId, listed: bool) {
        let roles: Vec<RoleId> = self.setup.roles_of(app).collect();
        for role in roles {
            let wanted = self.master.as_ref().and_then(|master| master.accounts.get(&role));
            if !listed || wanted.is_some_and(|account| account.request > 0) {
                self.list_role(role, listed);
            }
        }
    }

    pub(super) fn list_role(&mut self, role: RoleId, listed: bool) {
        let Some(line) = self.lines.get_mut(&role) else { return };
        if std::mem::replace(&mut line.listed, listed) != listed {
            let row = line.row;
            if let Some(role) = self.setup.find(role).filter(|_| listed) {
                self.keep_from(role.app);
            }
            self.places.order(if listed { ControlOrder::List(row) } else { ControlOrder::Unlist(row) });
        }
    }

    /// Continues from FuxiMaster's rebuilt tables after a recovery.
    pub(super) fn recovered(&mut self) {
        if let Some(since) = self.watch.down.0.take() {
            self.watch.down.1 = Span(self.watch.down.1.0 + self.now.since(since).0);
        }
        self.postponed.clear();
        let Some(master) = &self.master else { return };
        let known: Vec<(AppId, bool)> =
            master.tenants.iter().map(|(app, tenant)| (*app, tenant.contact == Contact::Here)).collect();
        let mut places = self.places.all();
        for machine in self.setup.machine_ids() {
            let alloc = &master.sites[machine.index()].alloc;
            places.extend(alloc.iter().map(|(role, _)| (machine, role)));
        }
        places.sort_unstable();
        places.dedup();
        places.iter().for_each(|&at| self.places.forget_over(at));
        known.iter().for_each(|(app, _)| self.keep_from(*app));
        known.into_iter().for_each(|(app, here)| self.list(app, here));
        self.setup.machine_ids().for_each(|machine| self.open(machine));
        let places: Vec<_> = places.into_iter().map(|at| (at, Fate::Revoked)).collect();
        self.settle(&places);
    }

    /// Makes the postponed grants that are possible now. The others wait until the Tubo has acknowledged its reduced cap, or until
    /// FuxiMaster has received the current request.
    pub(super) fn grant_postponed(&mut self) {
        let Some(master) = self.master.as_ref().filter(|_| !self.postponed.is_empty() && self.is_normal()) else {
            return;
        };
        let mut more: BTreeMap<RoleId, u32> = BTreeMap::new();
        let mut ready = |units: &mut Units<u32>| {
            let more = more.entry(units.role).or_default();
            let now = !master.sites[units.machine.index()].is_shrinking(units.role)
                && master.wanting(units.role) >= *more + units.count;
            *more += if now { units.count } else { 0 };
            now
        };
        let units: Vec<Units<u32>> = self.postponed.extract_if(.., |units| ready(units)).collect();
        if !units.is_empty() {
            self.master_input(master::MasterInput::Grant(units));
        }
    }

    /// Moves tasks with a postponed grant to spare units of their role.
    pub(super) fn use_spare(&mut self) {
        let mut changed: Vec<((MachineId, RoleId), Fate)> = Vec::new();
        for units in &mut self.postponed {
            let spare = self.places.spare(units.role).min(units.count);
            if spare > 0 {
                units.count -= spare;
                changed.push(((units.machine, units.role), Fate::Revoked));
            }
        }
        if !changed.is_empty() {
            self.postponed.retain(|units| units.count > 0);
            self.settle(&changed);
        }
    }

    /// Revokes units that the scheduler preempts; postponed grants are cancelled first.
    pub(super) fn revoke_units(&mut self, taken: &mut Vec<Units<u32>>) {
        for units in taken.iter_mut() {
            let same = |other: &&mut Units<u32>| (other.machine, other.role) == (units.machine, units.role);
            for later in self.postponed.iter_mut().filter(same) {
                let count = later.count.min(units.count);
                later.count -= count;
                units.count -= count;
            }
        }
        self.postponed.retain(|units| units.count > 0);
        taken.retain(|units| units.count > 0);
        if !taken.is_empty() {
            self.master_input(master::MasterInput::Revoke(std::mem::take(taken)));
        }
    }
}
