//! The interface to the engine: rows become roles, jobs become applications, and grants become inputs of FuxiMaster.

use super::strike::FaultKind;
use super::{Event, Host, MESSAGES, Masters, RoleState, STRIKES, World};
use crate::app;
use crate::master::{self, Contact, Master, Phase};
use crate::message::{Position, Units};
use crate::setup::{AppId, Blacklist, Role, RoleId};
use crate::tubo::{self, Tubo};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{JobId, Resources, Span, Time};
use plimsoll_sim::backend::{Control, ControlOrder, Fact};

/// If failures never stop, a run ends after this span without a start or end of an offline task: the waiting tasks would never start.
const STARVED: Span = Span::from_secs(100 * 24 * 3600);

impl World {
    /// Records that a task of a role was submitted, started or completed.
    fn works(&mut self, role: RoleId) {
        if self.setup.find(role).is_some_and(|role| !role.stable) {
            self.worked = self.now;
        }
    }

    /// Adds the role of a submitted row. Its job is an application, which may be new.
    pub(super) fn submitted(&mut self, job: JobId, row: u64, tasks: u32, unit: Resources, stable: bool) {
        let known = self.jobs.get(&job).copied();
        let app = known.unwrap_or_else(|| self.setup.add_app());
        let name = self.names.get(row as usize).cloned().unwrap_or_else(|| format!("row {row}"));
        let role = self.setup.add_role(Role { app, stable, unit, name });
        self.roles.insert(row, role);
        self.lines.insert(role, RoleState { row, unit, left: tasks, listed: false });
        self.watch.role(role);
        self.works(role);
        self.watch.work.wants(self.now, role, stable, i64::from(tasks));
        if known.is_some() {
            return self.app_input(app, 0, app::AppInput::Want(role, tasks));
        }
        self.jobs.insert(job, app);
        let masters = Masters { first: vec![(role, tasks)], ..Masters::default() };
        self.apps.insert(app, masters);
        self.net.sent += 1;
        // The client's message arrives if FuxiMaster is alive; otherwise the next FuxiMaster reads the application at its start.
        let delay = self.net.delay();
        self.schedule(self.now + delay, MESSAGES, Event::Submit(app));
    }

    /// Removes a completed application once FuxiMaster has revoked all of its units.
    pub(super) fn forget_if_over(&mut self, app: AppId) {
        let Some(masters) = self.apps.get(&app).filter(|masters| masters.over) else { return };
        let Some(master) = self.master.as_ref().filter(|master| master.phase == Phase::Normal) else { return };
        let idle = |tenant: &master::Tenant| tenant.held.is_empty() && tenant.contact == Contact::Here;
        let roles: Vec<RoleId> = self.setup.roles_of(app).collect();
        let wants = roles.iter().any(|role| master.accounts.get(role).is_some_and(|account| account.request > 0));
        if wants || !master.tenants.get(&app).is_some_and(idle) || masters.starting {
            return;
        }
        self.master_input(master::MasterInput::AppOver(app));
        let since = self.apps.remove(&app).and_then(|masters| masters.since);
        self.net.lives += since.map_or(0, |since| self.now.since(since).0);
        self.heard_app.remove(&app);
        self.cuts.retain(|(other, ..)| *other != app);
        for role in roles {
            self.barred.remove(&role);
            if let Some(line) = self.lines.remove(&role) {
                self.roles.remove(&line.row);
            }
        }
        self.watch.work.forget(self.now, &self.setup, app);
        self.setup.remove_app(app);
        self.net.forget(app);
        self.watch.forget(app);
    }
}

impl Control for World {
    fn open(&mut self, machines: &[Resources]) {
        self.setup.machines = machines.to_vec();
        self.master = Some(Master::first(&self.setup));
        let at = Position { epoch: 1, number: 0 };
        self.tubos = self.setup.machine_ids().map(|machine| Tubo { at, ..Tubo::new(machine) }).collect();
        self.hosts = vec![Host { up: true, open: true, ..Host::default() }; machines.len()];
        self.heard_tubo = vec![Time::ZERO; machines.len()];
        self.watch.open(machines.len());
        self.setup.blacklist = self.script.avoidance.map(|avoidance| {
            let most = (avoidance.share * machines.len() as f64) as u32;
            Blacklist { most, ..avoidance.limits }
        });
        for at in 0..self.script.strikes.len() {
            self.schedule(self.script.strikes[at].at, STRIKES, Event::Strike(at));
        }
        FaultKind::ALL.into_iter().for_each(|kind| self.fails(kind, true));
    }

    fn next(&mut self) -> Option<Time> {
        let rest = self.rest().filter(|rest| *rest > self.now);
        self.agenda.next_time().into_iter().chain(rest).min()
    }

    fn receive(&mut self, now: Time, facts: &[Fact]) {
        self.now = now;
        self.moved = now;
        let mut taken = Vec::new();
        for fact in facts {
            match *fact {
                Fact::Submitted { row, job, tasks, unit, stable } => self.submitted(job, row, tasks, unit, stable),
                Fact::Granted { batch, count, machine } => {
                    // Revocations come first: their room may be granted again.
                    self.revoke_units(&mut taken);
                    let role = self.roles[&batch.row];
                    self.works(role);
                    if !self.places.granted((machine, role), batch, count) {
                        self.postponed.push(Units { machine, role, count });
                    }
                }
                Fact::Taken { batch, count, machine } => {
                    let role = self.roles[&batch.row];
                    self.places.taken((machine, role), batch, count);
                    taken.push(Units { machine, role, count });
                }
                Fact::Done { batch, machine } => {
                    let role = self.roles[&batch.row];
                    self.works(role);
                    let count = self.places.done((machine, role), batch);
                    self.watch.finished[machine.index()].add(role, count as i32);
                    self.tubo_input(machine, tubo::TuboInput::Done(role, count));
                }
                Fact::JobOver { job } => {
                    let app = self.jobs.remove(&job);
                    if let Some((app, masters)) = app.and_then(|app| Some((app, self.apps.get_mut(&app)?))) {
                        masters.over = true;
                        self.forget_if_over(app);
                    }
                }
                Fact::Home { app, machine } => self.housed(AppId(app), machine),
            }
        }
        self.revoke_units(&mut taken);
        self.grant_postponed();
    }

    fn act(&mut self, now: Time, orders: &mut Vec<ControlOrder>) -> Result<()> {
        self.now = now;
        self.places.adopted(now);
        self.use_spare();
        while self.agenda.next_time().is_some_and(|time| time <= now) {
            let Some((_, event)) = self.agenda.pop() else { break };
            self.happen(event);
            // The engine's answer may have to precede the next event.
            if self.places.wait_for_answer() {
                break;
            }
        }
        if self.strict {
            self.check_books();
        }
        if let Some(machine) = self.overfull.filter(|_| self.settles.is_none() && !self.strict) {
            let problem = format!(
                "FuxiMaster has recovered more units on machine {machine} than fit there, at {} s: a rule of the protocol is \
                 switched off (control.without)",
                now.seconds()
            );
            return Err(Error::Mismatch { problem });
        }
        self.places.orders(orders);
        if !orders.is_empty() {
            self.moved = now;
        }
        Ok(())
    }

    fn decides(&self) -> bool {
        self.is_normal() && self.inbox.is_free(self.now)
    }

    fn persists(&self) -> bool {
        self.settles.is_some()
    }

    fn stops(&self) -> bool {
        self.strict && !self.watch.violations.is_empty()
            || self.rest().is_some_and(|rest| rest <= self.now)
            || self.script.failures.any() && self.now.since(self.worked) > STARVED
    }
}
