//! The invariants, checked after every step on what the step touched, and agreement at the end.

use super::World;
use crate::master::{Contact, Master, Phase};
use crate::message::{Message, Note, Output, Units, Why};
use crate::setup::{AppId, RoleId};
use plimsoll_base::units::MachineId;

impl World<'_> {
    fn violated(&mut self, invariant: &'static str, machine: Option<MachineId>, role: Option<RoleId>, what: String) {
        self.log.violated(self.now, invariant, &what);
        self.watch.violated(invariant, self.now, machine, role, what);
    }

    /// After a step of FuxiMaster.
    pub(super) fn after_master(&mut self, outputs: &[Output]) {
        let (setup, now) = (self.setup, self.now);
        for output in outputs {
            let Output::Note(note) = output else { continue };
            self.watch.master_noted(now, setup, note);
            match *note {
                Note::Granted(units) => self.check_grant(units),
                Note::Rebuilt(units, _) => self.check_room(units.machine),
                Note::Dropped(units, why) => {
                    let recovering = self.master.as_ref().is_some_and(|master| master.phase == Phase::Recovering);
                    if recovering {
                        let what = format!("{} taken while recovering ({why:?})", self.name(units));
                        self.violated("I10", Some(units.machine), Some(units.role), what);
                    }
                    // Units of a machine that was out of sight run twice, or the request has shrunk meanwhile.
                    self.watch.excused_machines[units.machine.index()] |= why == Why::AboveRequest;
                }
                Note::MachineAway(machine) => self.watch.excused_machines[machine.index()] = true,
                Note::Accepted(app, epoch) => {
                    let known = std::mem::replace(&mut self.watch.accepted[app.index()], epoch);
                    if epoch < known {
                        let what = format!("application {}: master {epoch} accepted after master {known}", app.0);
                        self.violated("I7", None, setup.roles_of(app).next(), what);
                    }
                }
                Note::Recovered => self.check_recovered(),
                Note::Released(_) | Note::Converted(..) | Note::Started(_) | Note::Stopped(_) => {}
            }
        }
    }

    fn name<T: std::fmt::Display>(&self, units: Units<T>) -> String {
        format!("{} x {} on machine {}", units.count, self.setup.names[units.role.index()], units.machine)
    }

    /// A new master of an application is to start on a machine.
    pub(super) fn check_home(&mut self, app: AppId, machine: MachineId) {
        let Some(master) = &self.master else { return };
        let failed = self.apps[app.index()].home;
        let good = |other: MachineId| other != failed && master.sites[other.index()].contact == Contact::Here;
        if !good(machine) && self.setup.machine_ids().any(good) {
            let what =
                format!("application {}: a master is to start on machine {machine}, the last was on {failed}", app.0);
            self.violated("I12", Some(machine), self.setup.roles_of(app).next(), what);
        }
    }

    fn check_room(&mut self, machine: MachineId) {
        let Some(master) = &self.master else { return };
        let used = self.setup.size_of(&master.sites[machine.index()].alloc);
        let capacity = self.setup.machines[machine.index()];
        if used > u64::from(capacity) {
            let what = format!("allocated on machine {machine}: {used} of {capacity}");
            self.violated("I2", Some(machine), None, what);
        }
    }

    fn check_grant(&mut self, units: Units<u32>) {
        let Units { machine, role, .. } = units;
        self.check_room(machine);
        let Some(master) = &self.master else { return };
        let account = master.accounts[role.index()];
        let group = self.setup.role(role).group.map(usize::from);
        let heard = master.sites[machine.index()].contact == Contact::Here && master.phase == Phase::Normal;
        let over = group.is_some_and(|group| master.groups[group] > self.setup.groups[group]);
        if !heard {
            let what = format!("{} granted, but the machine is not heard", self.name(units));
            self.violated("I4", Some(machine), Some(role), what);
        }
        if account.granted > account.request {
            let what = format!("{} granted beyond the request of {}", self.name(units), account.request);
            self.violated("I5", Some(machine), Some(role), what);
        }
        if over {
            let what = format!("{} granted beyond the most of the quota group", self.name(units));
            self.violated("I9", Some(machine), Some(role), what);
        }
    }

    /// FuxiMaster has recovered: its sums are right, and it knows every stable worker that anybody told it of.
    fn check_recovered(&mut self) {
        self.check_sums();
        let Some(master) = &self.master else { return };
        let known = |app: AppId| master.tenants[app.index()].epoch > 0;
        let mut unknown: Vec<Units<u32>> = Vec::new();
        let mut requested = 0;
        for machine in self.setup.machine_ids() {
            let site = &master.sites[machine.index()];
            self.watch.excused_machines[machine.index()] |= site.contact != Contact::Here;
            let tubo = &self.tubos[machine.index()];
            for (role, running) in tubo.running.iter().filter(|(role, _)| self.setup.role(*role).stable) {
                let own = running.saturating_sub(self.watch.consent[machine.index()].get(role));
                let wanted = own.min(self.watch.intent[machine.index()].get(role));
                let there = site.alloc.get(role) + master.claims(machine).get(role);
                if wanted > there && (site.contact == Contact::Here || known(self.setup.role(role).app)) {
                    unknown.push(Units { machine, role, count: wanted - there });
                }
            }
            requested +=
                site.alloc.iter().filter(|(role, _)| known(self.setup.role(*role).app)).map(|(_, n)| n).sum::<u32>();
        }
        for app in self.setup.app_ids() {
            self.watch.excused_apps[app.index()] |= !known(app);
        }
        self.watch.requested = requested;
        for units in unknown {
            let what = format!("{} runs, and FuxiMaster has recovered without it", self.name(units));
            self.violated("I11", Some(units.machine), Some(units.role), what);
        }
    }

    /// The sums that FuxiMaster keeps are those of its tables.
    fn check_sums(&mut self) {
        let Some(master) = &self.master else { return };
        let mut granted = vec![0; self.setup.roles.len()];
        let mut groups = vec![0; self.setup.groups.len()];
        let mut wrong = Vec::new();
        for machine in self.setup.machine_ids() {
            let alloc = &master.sites[machine.index()].alloc;
            for (role, count) in alloc.iter() {
                let spec = self.setup.role(role);
                granted[role.index()] += count;
                if let Some(group) = spec.group {
                    groups[usize::from(group)] += u64::from(count) * u64::from(spec.size);
                }
            }
            if self.setup.size_of(alloc) != u64::from(master.used(machine)) {
                wrong.push(format!("machine {machine}: the sum of what is used is wrong"));
            }
        }
        if groups != master.groups {
            wrong.push(format!("quota groups use {groups:?}, counted as {:?}", master.groups));
        }
        for (role, &sum) in granted.iter().enumerate().filter(|(role, sum)| master.accounts[*role].granted != **sum) {
            wrong.push(format!(
                "{}: {sum} granted, counted as {}",
                self.setup.names[role], master.accounts[role].granted
            ));
        }
        for what in wrong {
            self.violated("I9", None, None, what);
        }
    }

    /// After a step of a Tubo.
    pub(super) fn after_tubo(&mut self, machine: MachineId, outputs: &[Output]) {
        let (setup, now) = (self.setup, self.now);
        for output in outputs {
            let Output::Note(note) = output else { continue };
            self.watch.worker_noted(now, note);
            let tubo = &self.tubos[machine.index()];
            match *note {
                Note::Started(units) => {
                    let (runs, cap) = (tubo.running.get(units.role), tubo.caps.get(units.role));
                    let plan = tubo.plan(units.role);
                    if runs > cap.min(plan) {
                        let what = format!("{} started: {runs} run with cap {cap} and plan {plan}", self.name(units));
                        self.violated("I3", Some(machine), Some(units.role), what);
                    }
                }
                Note::Stopped(units) => self.check_stop(units),
                _ => {}
            }
        }
        self.watch.settle_consent(&self.tubos[machine.index()]);
        let tubo = &self.tubos[machine.index()];
        let (caps, running) = (setup.size_of(&tubo.caps), setup.size_of(&tubo.running));
        let capacity = u64::from(setup.machines[machine.index()]);
        if caps.max(running) > capacity {
            let what = format!("caps on machine {machine}: {caps} of {capacity}, running {running}");
            self.violated("I2", Some(machine), None, what);
        }
    }

    fn check_stop(&mut self, units: Units<u32>) {
        let Units { machine, role, count } = units;
        let intent = self.watch.intent[machine.index()].get(role);
        let runs = self.tubos[machine.index()].running.get(role);
        let spec = self.setup.role(role);
        // Fewer run than are wanted: someone else than the application master stopped them.
        let consent = &mut self.watch.consent[machine.index()];
        let given = consent.get(role).min(count);
        consent.add(role, -(given as i32));
        let harmed = intent.saturating_sub(runs).min(count - given);
        if harmed == 0 {
            return;
        }
        if spec.stable {
            let what = format!("{} stopped without consent", self.name(Units { machine, role, count: harmed }));
            self.violated("I1", Some(machine), Some(role), what);
            self.watch.intent[machine.index()].set(role, runs);
            self.watch.harmed += u64::from(harmed);
        } else if !self.watch.excuses(machine, spec.app) {
            let what = format!("{} stopped without a failure of its machine or its master", self.name(units));
            self.violated("I6", Some(machine), Some(role), what);
        }
    }

    /// The epoch of the plan that a plan on its way would replace.
    pub(super) fn planner(&self, machine: MachineId, message: &Message) -> Option<(RoleId, u32)> {
        let Message::Plan { role, .. } = message else { return None };
        self.tubos[machine.index()].plans.iter().find(|plan| plan.role == *role).map(|plan| (*role, plan.at.epoch))
    }

    /// A Tubo has heard a message: a superseded application master must not plan any more, and a full cap replaces
    /// what it had on disk.
    pub(super) fn check_planner(&mut self, machine: MachineId, before: Option<(RoleId, u32)>) {
        let tubo = &self.tubos[machine.index()];
        if tubo.at.number > 0 && Some(tubo.at) == self.position(machine) {
            self.watch.tubo_informed(self.now, machine);
        }
        if let Some((role, epoch)) = before {
            let now = tubo.plans.iter().find(|plan| plan.role == role).map_or(epoch, |plan| plan.at.epoch);
            if now < epoch {
                let what = format!("machine {machine}: a plan of master {now} replaced one of master {epoch}");
                self.violated("I7", Some(machine), Some(role), what);
            }
        }
    }

    /// Faults have long stopped: everybody agrees, and nobody lacks what could be had.
    pub(super) fn check_agreement(&mut self) {
        self.check_sums();
        let mut found: Vec<(Option<MachineId>, Option<RoleId>, String)> = Vec::new();
        let Some(master) = self.master.as_ref().filter(|master| master.phase == Phase::Normal) else {
            self.violated("I8", None, None, "there is no FuxiMaster that has recovered".to_owned());
            return;
        };
        for app in self.setup.app_ids() {
            if self.newest(app).is_none_or(|own| own.epoch != master.tenants[app.index()].epoch) {
                found.push((None, self.setup.roles_of(app).next(), format!("application {} has no master", app.0)));
            }
        }
        for machine in self.setup.machine_ids() {
            let (site, tubo) = (&master.sites[machine.index()], &self.tubos[machine.index()]);
            if site.contact != Contact::Here || !self.hosts[machine.index()].up {
                found.push((Some(machine), None, format!("machine {machine} is not back")));
                continue;
            }
            for at in 0..self.setup.roles.len() {
                let role = RoleId(at as u16);
                let (alloc, cap, runs) = (site.alloc.get(role), tubo.caps.get(role), tubo.running.get(role));
                let hint = self.newest(self.setup.role(role).app).map_or(alloc, |own| own.hint(machine, role));
                if (alloc, alloc, alloc) != (cap, hint, runs) {
                    let name = &self.setup.names[at];
                    let what = format!(
                        "{name} on machine {machine}: allocated {alloc}, cap {cap}, hint {hint}, running {runs}"
                    );
                    found.push((Some(machine), Some(role), what));
                }
            }
        }
        found.extend(self.unfair(master));
        for (machine, role, what) in found {
            self.violated("I8", machine, role, what);
        }
    }

    /// Roles that have more than they asked for, or less although there is room.
    fn unfair(&self, master: &Master) -> Vec<(Option<MachineId>, Option<RoleId>, String)> {
        let room = self.setup.machine_ids().map(|machine| master.free(self.setup, machine)).max().unwrap_or(0);
        let mut found = Vec::new();
        for (at, account) in master.accounts.iter().enumerate() {
            let (role, spec) = (RoleId(at as u16), &self.setup.roles[at]);
            let wanted = self.newest(spec.app).map_or(account.request, |own| own.want.get(role));
            let quota = spec.group.map(usize::from);
            let admitted = quota.is_none_or(|g| master.groups[g] + u64::from(spec.size) <= self.setup.groups[g]);
            let starving = account.granted < account.request && spec.size <= room && admitted;
            if account.request != wanted || account.granted > account.request || starving {
                let name = &self.setup.names[at];
                let what =
                    format!("{name}: wanted {wanted}, requested {}, granted {}", account.request, account.granted);
                found.push((None, Some(role), what));
            }
        }
        found
    }

    /// The fates of the workers, for the report.
    pub fn close_accounts(&mut self) {
        for (role, count) in self.tubos.iter().flat_map(|tubo| tubo.running.iter()) {
            self.watch.fates[role.index()].after += count;
        }
    }
}
