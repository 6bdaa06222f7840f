//! Checks of the invariants: after every step on the state that the step changed, and the agreement of all processes at the end.
//!
//! The invariants are listed in [`super::watch`], where violations are stored.

use std::collections::BTreeMap;

use super::World;
use crate::app::AppMaster;
use crate::master::{Contact, Master, Phase};
use crate::message::{Message, Note, Output, Units, Why};
use crate::setup::{AppId, RoleId};
use plimsoll_base::units::{MachineId, Resources};

/// The caps of a machine with more roles than this are added up only periodically.
const MANY: usize = 64;

/// Returns the amounts of all resources in base units, without trailing zeros.
fn amounts(resources: &Resources) -> String {
    let last = resources.0.iter().rposition(|amount| *amount > 0).map_or(1, |last| last + 1);
    let amounts: Vec<String> = resources.0[..last].iter().map(u64::to_string).collect();
    amounts.join(" / ")
}

impl World {
    fn violated(&mut self, invariant: &'static str, machine: Option<MachineId>, role: Option<RoleId>, what: String) {
        self.log.violated(self.now, invariant, &what);
        self.watch.violated(invariant, self.now, machine, role, what);
    }

    /// Checks a step of FuxiMaster.
    pub(super) fn after_master(&mut self, outputs: &[Output]) {
        let now = self.now;
        for output in outputs {
            let Output::Note(note) = output else { continue };
            self.watch.master_noted(now, &self.setup, note);
            match *note {
                Note::Granted(units) => self.check_grant(units),
                Note::Rebuilt(units, _) => self.check_room(units.machine),
                Note::Dropped(units, why) => {
                    let recovering = self.master.as_ref().is_some_and(|master| master.phase == Phase::Recovering);
                    if recovering {
                        let what = format!("{} revoked during recovery ({})", self.name(units), why.name());
                        self.violated("I10", Some(units.machine), Some(units.role), what);
                    }
                    // The units of a machine that was away run twice, or the request has shrunk in the meantime.
                    self.watch.excused_machines[units.machine.index()] |=
                        matches!(why, Why::AboveRequest | Why::Displaced);
                    self.check_choice(units, why);
                }
                Note::MachineAway(machine) => self.watch.excused_machines[machine.index()] = true,
                Note::Accepted(app, epoch) => {
                    let known = self.watch.accepted.insert(app, epoch).unwrap_or_default();
                    if epoch < known {
                        let what = format!("application {}: master {epoch} accepted after master {known}", app.0);
                        let role = self.setup.roles_of(app).next();
                        self.violated("I7", None, role, what);
                    }
                }
                Note::Recovered => self.check_recovered(),
                Note::Released(_) | Note::Converted(..) | Note::Started(_) | Note::Stopped(_) | Note::Finished(_) => {}
                Note::MachineBack(_) | Note::AppAway(_) | Note::Requested(..) => {}
                Note::Failed(_) | Note::Barred(_) | Note::Blamed(_) | Note::Blacklisted(_) | Note::Forgiven(_) => {}
            }
        }
    }

    fn name<T: std::fmt::Display>(&self, units: Units<T>) -> String {
        format!("{} x {} on machine {}", units.count, self.setup.name(units.role), units.machine)
    }

    /// Checks that no stable unit is preempted.
    fn check_choice(&mut self, units: Units<u32>, why: Why) {
        if why == Why::Displaced && self.setup.find(units.role).is_some_and(|role| role.stable) {
            let what = format!("{} preempted for others", self.name(units));
            self.violated("I1", Some(units.machine), Some(units.role), what);
        }
    }

    /// Checks the machine that is chosen for a new master of an application.
    pub(super) fn check_home(&mut self, app: AppId, machine: MachineId) {
        let failed = self.apps.get(&app).and_then(|masters| masters.home);
        let good = |other: MachineId| Some(other) != failed && self.is_open(other);
        if !good(machine) && self.setup.machine_ids().any(good) {
            let last = failed.map_or("nowhere".to_owned(), |failed| format!("on {failed}"));
            let what = format!("application {}: a master is to start on machine {machine}, the last was {last}", app.0);
            let role = self.setup.roles_of(app).next();
            self.violated("I12", Some(machine), role, what);
        }
    }

    fn check_room(&mut self, machine: MachineId) {
        let Some(master) = &self.master else { return };
        let used = master.used(machine);
        let capacity = self.setup.machines[machine.index()];
        if !used.fits(&capacity) {
            self.overfull = Some(machine);
            let what = format!("allocated on machine {machine}: {} of {}", amounts(&used), amounts(&capacity));
            self.violated("I2", Some(machine), None, what);
        }
    }

    fn check_grant(&mut self, units: Units<u32>) {
        let Units { machine, role, count } = units;
        self.inbox.load.granted += u64::from(count);
        self.check_room(machine);
        let Some(master) = &self.master else { return };
        let account = master.accounts.get(&role).copied().unwrap_or_default();
        let heard = master.sites[machine.index()].contact == Contact::Here && master.phase == Phase::Normal;
        if !heard {
            let what = format!("{} granted, but the machine is unreachable", self.name(units));
            self.violated("I4", Some(machine), Some(role), what);
        }
        if !self.is_open(machine) || self.bars_of(role).contains(&machine) {
            let what = format!("{} granted, but the machine is blacklisted or barred", self.name(units));
            self.violated("I13", Some(machine), Some(role), what);
        }
        if account.granted > account.request {
            let what = format!("{} granted beyond the request of {}", self.name(units), account.request);
            self.violated("I5", Some(machine), Some(role), what);
        }
    }

    /// Checks FuxiMaster's tables after a recovery: the sums are right, and there is a record of every stable worker that was reported.
    fn check_recovered(&mut self) {
        self.check_sums();
        let Some(master) = &self.master else { return };
        let known = |app: AppId| master.tenants.get(&app).is_some_and(|tenant| tenant.epoch > 0);
        let mut unknown: Vec<Units<u32>> = Vec::new();
        let mut requested = 0;
        for machine in self.setup.machine_ids() {
            let site = &master.sites[machine.index()];
            self.watch.excused_machines[machine.index()] |= site.contact != Contact::Here;
            let tubo = &self.tubos[machine.index()];
            let stable = |role: RoleId| self.setup.find(role).is_some_and(|role| role.stable);
            for (role, running) in tubo.running.iter().filter(|(role, _)| stable(*role)) {
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
        for app in self.apps.keys().filter(|app| !known(**app)) {
            self.watch.excused_apps.insert(*app, true);
        }
        self.watch.requested = requested;
        // A plan by a hint that is not rebuilt may meet a new cap; its worker is stopped later.
        let unfounded = |own: &AppMaster| {
            let above = |(&(machine, role), &hint): (&(MachineId, RoleId), &u32)| {
                (hint > master.sites[machine.index()].alloc.get(role)).then_some(machine)
            };
            own.hints.iter().filter_map(above).collect::<Vec<MachineId>>()
        };
        let called_off: Vec<MachineId> =
            self.apps.keys().filter_map(|app| self.newest(*app)).flat_map(unfounded).collect();
        for machine in called_off {
            self.watch.excused_machines[machine.index()] = true;
        }
        for units in unknown {
            let what = format!("{} runs, and FuxiMaster has recovered without it", self.name(units));
            self.violated("I11", Some(units.machine), Some(units.role), what);
        }
    }

    /// Checks that FuxiMaster's sums are those of its tables.
    fn check_sums(&mut self) {
        let Some(master) = &self.master else { return };
        let mut granted: BTreeMap<RoleId, u32> = BTreeMap::new();
        let mut wrong = Vec::new();
        for machine in self.setup.machine_ids() {
            let alloc = &master.sites[machine.index()].alloc;
            alloc.iter().for_each(|(role, count)| *granted.entry(role).or_default() += count);
            if self.setup.size_of(alloc) != master.used(machine) {
                wrong.push(format!("machine {machine}: the sum of the usage is wrong"));
            }
        }
        for (role, account) in &master.accounts {
            let sum = granted.get(role).copied().unwrap_or_default();
            if account.granted != sum {
                wrong.push(format!("{}: {sum} granted, counted as {}", self.setup.name(*role), account.granted));
            }
        }
        for what in wrong {
            self.violated("I9", None, None, what);
        }
    }

    /// Checks that the engine's books contain, for each machine and role, the units that FuxiMaster has allocated or will grant, and that
    /// the number of unfinished tasks of each role equals its request.
    pub(super) fn check_books(&mut self) {
        let Some(master) = self.master.as_ref().filter(|master| master.phase == Phase::Normal) else { return };
        let mut allocated: BTreeMap<(MachineId, RoleId), u32> = BTreeMap::new();
        for machine in self.setup.machine_ids() {
            for (role, count) in master.sites[machine.index()].alloc.iter() {
                *allocated.entry((machine, role)).or_default() += count;
            }
        }
        for units in &self.postponed {
            *allocated.entry((units.machine, units.role)).or_default() += units.count;
        }
        let mut lines: Vec<(RoleId, u32)> = self.lines.iter().map(|(role, line)| (*role, line.left)).collect();
        lines.sort_unstable();
        for (role, left) in lines {
            if let Some(wanted) = self.newest(self.setup.role(role).app).map(|own| own.want.get(role))
                && wanted != left
            {
                let what = format!("{}: {left} tasks are unfinished, but {wanted} are wanted", self.setup.name(role));
                return self.violated("I9", None, Some(role), what);
            }
        }
        let held = self.places.all().into_iter().map(|at| (at, 0));
        let places: BTreeMap<(MachineId, RoleId), u32> = held.chain(allocated).collect();
        for ((machine, role), count) in places {
            let held = self.places.total((machine, role));
            if held != count && self.lines.contains_key(&role) {
                let name = self.setup.name(role);
                let what = format!("{name} on machine {machine}: {count} allocated, but {held} in the engine's books");
                return self.violated("I9", Some(machine), Some(role), what);
            }
        }
    }

    /// Checks a step of a Tubo.
    pub(super) fn after_tubo(&mut self, machine: MachineId, outputs: &[Output]) {
        let now = self.now;
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
        // Adding up the caps of thousands of roles in each step would take too long on a pooled cluster.
        if tubo.caps.len() > MANY && !self.net.sent.is_multiple_of(MANY as u64) {
            return;
        }
        let (caps, running) = (self.setup.size_of(&tubo.caps), self.setup.size_of(&tubo.running));
        let capacity = self.setup.machines[machine.index()];
        if !caps.fits(&capacity) || !running.fits(&capacity) {
            let [caps, capacity, running] = [caps, capacity, running].map(|resources| amounts(&resources));
            let what = format!("caps on machine {machine}: {caps} of {capacity}, running {running}");
            self.violated("I2", Some(machine), None, what);
        }
    }

    fn check_stop(&mut self, units: Units<u32>) {
        let Units { machine, role, count } = units;
        let intent = self.watch.intent[machine.index()].get(role);
        let runs = self.tubos[machine.index()].running.get(role);
        let Some(spec) = self.setup.find(role) else { return };
        let (stable, app) = (spec.stable, spec.app);
        // If fewer workers run than are planned, another process than the application master has stopped them.
        let consent = &mut self.watch.consent[machine.index()];
        let given = consent.get(role).min(count);
        consent.add(role, -(given as i32));
        let done = self.watch.finished[machine.index()].get(role).min(count - given);
        self.watch.finished[machine.index()].add(role, -(done as i32));
        self.watch.intent[machine.index()].add(role, -(done as i32));
        let intent = intent.saturating_sub(done);
        let harmed = intent.saturating_sub(runs).min(count - given - done);
        if harmed == 0 {
            return;
        }
        if stable {
            let what = format!("{} stopped without consent", self.name(Units { machine, role, count: harmed }));
            self.violated("I1", Some(machine), Some(role), what);
            self.watch.intent[machine.index()].set(role, runs);
            self.watch.harmed += u64::from(harmed);
        } else if !self.watch.excuses(machine, app) {
            let what = format!("{} stopped without a failure of its machine or its master", self.name(units));
            self.violated("I6", Some(machine), Some(role), what);
        }
    }

    /// Returns the epoch of the plan that a message would replace.
    pub(super) fn planner(&self, machine: MachineId, message: &Message) -> Option<(RoleId, u32)> {
        let Message::Plan { role, .. } = message else { return None };
        self.tubos[machine.index()].plans.iter().find(|plan| plan.role == *role).map(|plan| (*role, plan.at.epoch))
    }

    /// Checks a Tubo after a message: a superseded application master must not plan any more. Also records whether the Tubo has applied all
    /// messages of FuxiMaster.
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

    /// Checks long after the last fault that all processes agree, and that no role exceeds its request.
    pub(super) fn check_agreement(&mut self) {
        self.check_sums();
        let mut found: Vec<(Option<MachineId>, Option<RoleId>, String)> = Vec::new();
        let Some(master) = self.master.as_ref().filter(|master| master.phase == Phase::Normal) else {
            self.violated("I8", None, None, "no FuxiMaster has recovered".to_owned());
            return;
        };
        for app in self.setup.app_ids() {
            let known = master.tenants.get(&app).map(|tenant| tenant.epoch);
            if self.newest(app).map(|own| own.epoch) != known {
                found.push((None, self.setup.roles_of(app).next(), format!("application {} has no master", app.0)));
            }
        }
        let roles = self.setup.role_ids();
        for machine in self.setup.machine_ids() {
            let (site, tubo) = (&master.sites[machine.index()], &self.tubos[machine.index()]);
            if site.contact != Contact::Here || !self.hosts[machine.index()].up {
                found.push((Some(machine), None, format!("machine {machine} has not returned")));
                continue;
            }
            for &role in &roles {
                let (alloc, cap, runs) = (site.alloc.get(role), tubo.caps.get(role), tubo.running.get(role));
                let hint = self.newest(self.setup.role(role).app).map_or(alloc, |own| own.hint(machine, role));
                let (held, workers) = self.places.counts((machine, role));
                if [cap, hint, runs, held, workers].iter().any(|count| *count != alloc) {
                    let what = format!(
                        "{} on machine {machine}: allocated {alloc}, cap {cap}, hint {hint}, running {runs}, \
                         engine's books {held}, workers {workers}",
                        self.setup.name(role)
                    );
                    found.push((Some(machine), Some(role), what));
                }
            }
        }
        found.extend(self.unfair(master, &roles));
        for (machine, role, what) in found {
            self.violated("I8", machine, role, what);
        }
    }

    /// Returns roles that have more units than requested, or for which FuxiMaster does not have the current request.
    fn unfair(&self, master: &Master, roles: &[RoleId]) -> Vec<(Option<MachineId>, Option<RoleId>, String)> {
        let mut found = Vec::new();
        for &role in roles {
            let account = master.accounts.get(&role).copied().unwrap_or_default();
            let app = self.setup.role(role).app;
            let wanted = self.newest(app).map_or(account.request, |own| own.want.get(role));
            if account.request != wanted || account.granted > account.request {
                let name = self.setup.name(role);
                let what =
                    format!("{name}: wanted {wanted}, requested {}, granted {}", account.request, account.granted);
                found.push((None, Some(role), what));
            }
        }
        found
    }

    /// Closes the accounts of workers for the report.
    pub(super) fn close_accounts(&mut self) {
        for (role, count) in self.tubos.iter().flat_map(|tubo| tubo.running.iter()) {
            self.watch.fates[role.index()].after += count;
        }
        self.watch.work.close(self.now);
    }
}
