//! Heartbeats and time-outs.
//!
//! A heartbeat that would change only FuxiMaster's clock is counted instead of delivered. After a message to or from a peer, the peer sends
//! heartbeats until it agrees with FuxiMaster again. The time-out of a peer is checked only after a fault.

use super::{CLOCKS, Event, World};
use crate::app;
use crate::master::{self, Contact, Phase};
use crate::setup::AppId;
use crate::tubo;
use plimsoll_base::units::{MachineId, Span, Time};

impl World {
    /// Returns the instant of a peer's next heartbeat; heartbeats of different peers are spread evenly.
    fn next_beat(&self, peer: u32) -> Option<Time> {
        let beat = self.script.timing.beat.0;
        let spread = u64::from(peer).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let offset = ((u128::from(beat) * u128::from(spread)) >> 32) as u64;
        let passed = self.now.0.saturating_sub(offset).checked_div(beat)?;
        let next = offset + passed * beat;
        Some(Time(if next > self.now.0 { next } else { next + beat }))
    }

    /// Starts the heartbeats of a Tubo after a message to or from it. They continue until it agrees with FuxiMaster.
    pub(super) fn arm_tubo(&mut self, machine: MachineId) {
        if !self.hosts[machine.index()].beating
            && let Some(at) = self.next_beat(machine.0)
        {
            self.hosts[machine.index()].beating = true;
            self.schedule(at, CLOCKS, Event::TuboBeat(machine));
        }
    }

    /// Starts the heartbeats of the newest master of an application after a message to or from it.
    pub(super) fn arm_app(&mut self, app: AppId) {
        let Some(at) = self.next_beat(app.0) else { return };
        let Some(masters) = self.apps.get_mut(&app).filter(|masters| !masters.beating) else { return };
        masters.beating = true;
        let epoch = masters.epoch;
        self.schedule(at, CLOCKS, Event::AppBeat(app, epoch));
    }

    pub(super) fn tubo_beats(&mut self, machine: MachineId) {
        self.hosts[machine.index()].beating = false;
        if !self.hosts[machine.index()].up || self.is_quiet(machine) {
            return;
        }
        self.net.beats += 1;
        self.tubo_input(machine, tubo::TuboInput::Beat);
        self.arm_tubo(machine);
    }

    /// Returns whether FuxiMaster and a Tubo are connected, agree on the last messages, and expect no others.
    fn is_quiet(&self, machine: MachineId) -> bool {
        let (tubo, host) = (&self.tubos[machine.index()], &self.hosts[machine.index()]);
        let master = self.master.as_ref().filter(|master| master.phase == Phase::Normal);
        host.cut + host.dark == 0
            && master.is_some_and(|master| {
                let site = &master.sites[machine.index()];
                site.contact == Contact::Here && site.is_settled() && master.position(machine) == tubo.at
            })
            && tubo.caps.iter().all(|(role, count)| count <= tubo.plan(role))
            && tubo.done.is_empty()
    }

    pub(super) fn app_beats(&mut self, app: AppId, epoch: u32) {
        let Some(masters) = self.apps.get_mut(&app) else { return };
        masters.beating = false;
        let alive: Vec<u32> = masters.alive.iter().map(|master| master.epoch).collect();
        if epoch < masters.epoch || alive.is_empty() {
            // Another master has started in the meantime, and has its own heartbeats.
            if !alive.is_empty() {
                self.arm_app(app);
            }
            return;
        }
        if alive.len() == 1 && self.is_quiet_app(app) {
            return;
        }
        for epoch in alive {
            self.net.beats += 1;
            self.app_input(app, epoch, app::AppInput::Beat);
        }
        self.arm_app(app);
    }

    /// Returns whether FuxiMaster and an application master are connected, agree on the last messages, and expect no others.
    fn is_quiet_app(&self, app: AppId) -> bool {
        let master = self.master.as_ref().filter(|master| master.phase == Phase::Normal);
        let Some((master, own)) = master.zip(self.newest(app)) else { return false };
        let Some(tenant) = master.tenants.get(&app) else { return false };
        tenant.contact == Contact::Here
            && (tenant.epoch, tenant.heard) == (own.epoch, own.sent)
            && master.app_position(app) == own.at
            && own.returns.is_empty()
            && !self.cuts.iter().any(|&(other, epoch, _)| (other, epoch) == (app, own.epoch))
    }

    /// Schedules the check of a Tubo's time-out after a fault: FuxiMaster considers the Tubo lost if no message arrives in time.
    pub(super) fn watch_tubo(&mut self, machine: MachineId) {
        let (quiet, beat) = (!self.hosts[machine.index()].beating, self.script.timing.beat);
        if quiet && let Some(next) = self.next_beat(machine.0) {
            // The last heartbeat that was counted instead of delivered.
            let last = next - beat;
            let heard = &mut self.heard_tubo[machine.index()];
            *heard = last.max(*heard);
        }
        let host = &mut self.hosts[machine.index()];
        if !std::mem::replace(&mut host.checked, true) {
            let due = self.heard_tubo[machine.index()] + self.script.timing.tubo_timeout;
            self.schedule(due.max(self.now), CLOCKS, Event::CheckTubo(machine, self.epoch));
        }
    }

    /// Schedules the check of an application master's time-out after a fault.
    pub(super) fn watch_app(&mut self, app: AppId) {
        let (next, beat) = (self.next_beat(app.0), self.script.timing.beat);
        let Some(masters) = self.apps.get_mut(&app) else { return };
        let (quiet, checked) = (!masters.beating, std::mem::replace(&mut masters.checked, true));
        let heard = self.heard_app.entry(app).or_default();
        if quiet && let Some(next) = next {
            *heard = (*heard).max(next - beat);
        }
        if !checked {
            let due = (*heard + self.script.timing.app_timeout).max(self.now);
            self.schedule(due, CLOCKS, Event::CheckApp(app, self.epoch));
        }
    }

    pub(super) fn check_tubo(&mut self, machine: MachineId, epoch: u32) {
        let host = &mut self.hosts[machine.index()];
        host.checked = false;
        let here = |master: &master::Master| master.sites[machine.index()].contact == Contact::Here;
        // A later FuxiMaster schedules its own checks.
        if epoch != self.epoch || !self.master.as_ref().is_some_and(here) {
            return;
        }
        if host.up && host.cut + host.dark == 0 && self.is_quiet(machine) {
            return;
        }
        self.hosts[machine.index()].checked = true;
        let due = self.heard_tubo[machine.index()] + self.script.timing.tubo_timeout;
        if due <= self.now {
            self.hosts[machine.index()].checked = false;
            return self.master_input(master::MasterInput::TuboTimeout(machine));
        }
        self.schedule(due, CLOCKS, Event::CheckTubo(machine, epoch));
    }

    pub(super) fn check_app(&mut self, app: AppId, epoch: u32) {
        let Some(masters) = self.apps.get_mut(&app) else { return };
        masters.checked = false;
        if epoch != self.epoch || self.master.is_none() || self.is_quiet_app(app) {
            return;
        }
        let heard = self.heard_app.get(&app).copied().unwrap_or_default();
        let due = heard + self.script.timing.app_timeout;
        if due <= self.now {
            self.master_input(master::MasterInput::AppTimeout(app));
        }
        let next = if due > self.now { due } else { self.now + self.script.timing.app_timeout.max(Span(1)) };
        if let Some(masters) = self.apps.get_mut(&app) {
            masters.checked = true;
            self.schedule(next, CLOCKS, Event::CheckApp(app, epoch));
        }
    }

    /// Returns the number of heartbeats without effect: those of all Tubos and application masters so far, minus the delivered ones.
    pub(super) fn idle_beats(&self) -> u64 {
        let beat = self.script.timing.beat.0;
        if beat == 0 {
            return 0;
        }
        let lives: u64 =
            self.apps.values().filter_map(|masters| masters.since).map(|since| self.now.since(since).0).sum();
        let all = self.now.0 / beat * self.hosts.len() as u64 + (lives + self.net.lives) / beat;
        all.saturating_sub(self.net.beats)
    }
}
