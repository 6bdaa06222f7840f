//! Failures of single workers, and the blacklist that results from them.

use std::collections::BTreeSet;

use super::plan::Fault;
use super::strike::{FaultKind, exponential};
use super::{CLOCKS, Event, STRIKES, World};
use crate::app;
use crate::master::{self, Contact};
use crate::message::Units;
use crate::setup::{AppId, RoleId};
use crate::tubo;
use plimsoll_base::units::MachineId;
use plimsoll_sim::backend::ControlOrder;
use plimsoll_sim::record::Fate;
use plimsoll_sim::workload::synthetic::random::{numbered, stream};
use rand::RngExt;

impl World {
    /// Returns the failures per hour of a worker on a machine. If the share of faulty machines is larger, the machines that are faulty
    /// under a smaller share are faulty, too.
    fn worker_rate(&self, machine: MachineId) -> f64 {
        let failures = &self.script.failures;
        let lot =
            || numbered(&stream(self.script.seed, "control/faulty machines"), u64::from(machine.0)).random::<f64>();
        if failures.faulty > 0.0 && lot() < failures.faulty { failures.worker_on_faulty } else { failures.worker }
    }

    /// Draws the next failure after workers on a machine have started or stopped. (Their lifetimes are exponential, so elapsed time does
    /// not matter.)
    pub(super) fn draw_worker_failure(&mut self, machine: MachineId) {
        if !self.script.failures.workers() {
            return;
        }
        let workers = self.tubos[machine.index()].running.total();
        let host = &mut self.hosts[machine.index()];
        if std::mem::replace(&mut host.workers, workers) == workers {
            return;
        }
        host.drawn += 1;
        let drawn = host.drawn;
        let rate = self.worker_rate(machine) * workers as f64;
        if rate > 0.0 {
            let gap = exponential(&mut self.dice[FaultKind::Worker as usize], rate);
            self.after(gap, STRIKES, Event::WorkerFails(machine, drawn));
        }
    }

    pub(super) fn worker_fails(&mut self, machine: MachineId, drawn: u32) {
        if self.hosts[machine.index()].drawn == drawn {
            // The next failure is drawn even if this one has no effect because the Tubo is down.
            self.hosts[machine.index()].workers = 0;
            self.befalls(Fault::WorkerFailure(machine), usize::MAX);
            self.draw_worker_failure(machine);
        }
    }

    /// Returns whether a worker on a machine could fail and its Tubo would notice.
    pub(super) fn has_workers(&self, machine: MachineId) -> bool {
        self.hosts[machine.index()].up && !self.tubos[machine.index()].running.is_empty()
    }

    /// Makes one of the workers on a machine fail, each with the same chance.
    pub(super) fn fail_one(&mut self, machine: MachineId) {
        let running = &self.tubos[machine.index()].running;
        let mut at = self.dice[FaultKind::Worker as usize].random_range(0..running.total().max(1));
        let hit = running.iter().find(|(_, count)| match at.checked_sub(u64::from(*count)) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
        let Some((role, _)) = hit else { return };
        if let Some((avoidance, role)) = self.script.avoidance.zip(self.setup.find(role))
            && let Some(masters) = self.apps.get_mut(&role.app)
        {
            masters.failed.insert(machine, self.now);
            self.after(avoidance.hold, CLOCKS, Event::AppForgives(role.app, machine));
        }
        self.tubo_input(machine, tubo::TuboInput::Fail(role));
    }

    pub(super) fn app_forgives(&mut self, app: AppId, machine: MachineId) {
        let Some((avoidance, masters)) = self.script.avoidance.zip(self.apps.get_mut(&app)) else { return };
        if masters.failed.get(&machine).is_some_and(|last| *last + avoidance.hold <= self.now) {
            masters.failed.remove(&machine);
            self.app_input(app, 0, app::AppInput::Forgive(machine));
        }
    }

    /// Schedules the end of an application's report against a machine.
    pub(super) fn blamed(&mut self, machine: MachineId) {
        if let Some(avoidance) = self.script.avoidance {
            self.hosts[machine.index()].blamed = self.now;
            self.after(avoidance.hold, CLOCKS, Event::Forgive(machine));
        }
    }

    pub(super) fn forgive(&mut self, machine: MachineId) {
        let hold = self.script.avoidance.map(|avoidance| avoidance.hold).unwrap_or_default();
        if self.hosts[machine.index()].blamed + hold <= self.now {
            self.master_input(master::MasterInput::Forgive(machine));
        }
    }

    /// Returns whether FuxiMaster may grant on a machine: it is present and not blacklisted.
    pub(super) fn is_open(&self, machine: MachineId) -> bool {
        let site = self.master.as_ref().map(|master| &master.sites[machine.index()]);
        site.is_some_and(|site| site.contact == Contact::Here && !site.blacklisted)
    }

    /// Returns the machines that are barred for a role, as far as FuxiMaster has received the bars.
    pub(super) fn bars_of(&self, role: RoleId) -> BTreeSet<MachineId> {
        let tenant = self.setup.find(role).zip(self.master.as_ref());
        let tenant = tenant.and_then(|(spec, master)| master.tenants.get(&spec.app));
        let bars = tenant.map(|tenant| &tenant.bars).into_iter().flatten();
        bars.filter(|bar| bar.role.is_none_or(|other| other == role)).map(|bar| bar.machine).collect()
    }

    /// Makes the engine exclude the machines that an application currently bars for its tasks.
    pub(super) fn keep_from(&mut self, app: AppId) {
        let roles: Vec<RoleId> = self.setup.roles_of(app).collect();
        for role in roles {
            let (Some(row), bars) = (self.lines.get(&role).map(|line| line.row), self.bars_of(role)) else { continue };
            let before = self.barred.remove(&role).unwrap_or_default();
            for &machine in bars.symmetric_difference(&before) {
                self.places.order(ControlOrder::Bar { row, machine, barred: bars.contains(&machine) });
            }
            let barred = |units: &Units<u32>| units.role == role && bars.contains(&units.machine);
            if self.postponed.iter().any(barred) {
                // Postponed grants there are cancelled.
                self.postponed.retain(|units| !barred(units));
                let there: Vec<_> = bars.iter().map(|machine| ((*machine, role), Fate::Revoked)).collect();
                self.settle(&there);
            }
            if !bars.is_empty() {
                self.barred.insert(role, bars);
            }
        }
    }
}
