//! The invariants, formulated independently of `crates/control/src/world`: on states if a state suffices, otherwise on single
//! steps. Also records the observed recovery paths.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll::control::app::AppMaster;
use plimsoll::control::master::{Contact, Master, Phase};
use plimsoll::control::message::{Endpoint, Message, Note, Output, RecoverySource, Why};
use plimsoll::control::setup::{RoleId, Setup};
use plimsoll::control::tubo::Tubo;

use super::state::{Ledger, State};
use super::step::Model;

/// The recovery paths. The exploration must take each of them at least once.
pub const PATHS: [&str; 20] = [
    "FuxiMaster fails over",
    "an application master is replaced",
    "an old application master is refused",
    "a gap in the hints is noticed",
    "rebuilt from a cap",
    "rebuilt from a cap on disk",
    "request invented",
    "request invented for a cap on disk",
    "request invented for a late Tubo",
    "rebuilt from a hint",
    "rebuilt from a hint on disk",
    "rebuilt from the hint of a late application master",
    "an invented request becomes real",
    "stable units stay on a machine out of sight",
    "surplus is left to its application master",
    "units are given back",
    "offline units leave a machine out of sight",
    "offline units of an absent master end",
    "offline units above the request end",
    "units of a late Tubo end",
];

/// This sequence: a new plan and an old cap start a worker, an older order stops the worker, and the worker starts again. I1 is not
/// violated, since the worker is not established yet. FuxiMaster waits for the acknowledgement of a loss in order to prevent this path.
pub const CROSSES: &str = "a start crosses an older order";

/// Observations of one step, or of all steps.
#[derive(Debug, Default)]
pub struct Seen {
    /// Violated invariants, with a description.
    pub violations: BTreeMap<&'static str, String>,
    /// Recovery paths that were taken.
    pub paths: BTreeSet<&'static str>,
}

impl Seen {
    pub fn check(&mut self, invariant: &'static str, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violations.entry(invariant).or_insert_with(what);
        }
    }

    pub fn mark_if(&mut self, seen: bool, path: &'static str) {
        if seen {
            self.paths.insert(path);
        }
    }

    /// Checks a step of FuxiMaster: I4, I5, I7, I9, I10.
    pub fn after_master(&mut self, model: &Model, state: &State, before: &Master, outputs: &[Output]) {
        let (Some(master), setup) = (&state.chief.master, &model.setup) else { return };
        let silent = before.phase == Phase::Recovering && master.phase == Phase::Recovering;
        let normal = before.phase == Phase::Normal;
        for output in outputs {
            match output {
                Output::Note(Note::Granted(units)) => {
                    let (site, account) = (&master.sites[units.machine.index()], master.accounts[&units.role]);
                    let heard = site.contact == Contact::Here && master.phase == Phase::Normal;
                    self.check("I4", heard, || format!("{units:?} granted on a machine without contact"));
                    let asked = account.granted <= account.request;
                    self.check("I5", asked, || format!("{units:?} granted beyond the request: {account:?}"));
                    let within = model.allocated(master) <= model.quota;
                    self.check("I9", within, || format!("{units:?} granted beyond the quota"));
                }
                Output::Note(note) => self.recovers(setup, state, note, normal),
                Output::Send(_, Message::Caps { .. } | Message::Hints { .. }) => {
                    self.check("I10", !silent, || "FuxiMaster gives orders while it recovers".to_owned());
                }
                Output::Send(..) => {}
                Output::StartApp(..) => self.mark_if(normal, "an application master is replaced"),
            }
        }
        let empty = master.sites.iter().all(|site| site.alloc.is_empty());
        self.check("I10", master.phase == Phase::Normal || empty, || "units allocated in recovery".to_owned());
        for (was, is) in before.tenants.values().zip(master.tenants.values()) {
            self.check("I7", was.epoch <= is.epoch, || "an older application master was accepted".to_owned());
        }
        for (&role, account) in &master.accounts {
            let here = master.tenants[&setup.role(role).app].contact == Contact::Here;
            let more = account.granted > account.request && here;
            self.mark_if(more, "surplus is left to its application master");
        }
    }

    fn recovers(&mut self, setup: &Setup, state: &State, note: &Note, normal: bool) {
        match *note {
            Note::Rebuilt(units, source) => {
                let host = state.host(units.machine);
                let again = state.app(setup.role(units.role).app).newest.as_ref().is_some_and(|own| own.restarted);
                self.paths.insert(match (source, normal) {
                    (RecoverySource::Cap, false) if host.disk => "rebuilt from a cap on disk",
                    (RecoverySource::Cap, false) => "rebuilt from a cap",
                    (RecoverySource::Cap, true) => "a late cap confirms a claim",
                    (RecoverySource::Mock, false) if host.disk => "request invented for a cap on disk",
                    (RecoverySource::Mock, false) => "request invented",
                    (RecoverySource::Mock, true) => "request invented for a late Tubo",
                    (RecoverySource::Hint, false) if again => "rebuilt from a hint on disk",
                    (RecoverySource::Hint, false) => "rebuilt from a hint",
                    (RecoverySource::Hint, true) => "rebuilt from the hint of a late application master",
                });
            }
            Note::Dropped(_, why) => {
                self.paths.insert(match why {
                    Why::Displaced => "units make room for others",
                    Why::MachineTimeout => "offline units leave a machine out of sight",
                    Why::Late => "units of a late Tubo end",
                    Why::AppAbsent => "offline units of an absent master end",
                    Why::AboveRequest => "offline units above the request end",
                    Why::NoRoom => "a hint finds no room",
                });
            }
            Note::Converted(..) => {
                self.paths.insert("an invented request becomes real");
            }
            Note::Released(_) => {
                self.paths.insert("units are given back");
            }
            Note::MachineAway(machine) => {
                let master = state.chief.master.as_ref();
                let kept = master.is_some_and(|master| !master.sites[machine.index()].alloc.is_empty());
                self.mark_if(kept, "stable units stay on a machine out of sight");
            }
            Note::Granted(_)
            | Note::Recovered
            | Note::MachineBack(_)
            | Note::AppAway(_)
            | Note::Requested(..)
            | Note::Accepted(..)
            | Note::Started(_)
            | Note::Stopped(_)
            | Note::Finished(_) => {}
            // In this model no worker fails individually.
            Note::Failed(_) | Note::Barred(_) | Note::Blamed(_) | Note::Blacklisted(_) | Note::Forgiven(_) => {}
        }
    }

    /// Checks a step of a Tubo: I1, I7.
    ///
    /// A worker is established once no message from FuxiMaster to the Tubo is in flight. An established worker must not stop unless its
    /// application master returns the unit or removes the worker from its plan. A worker that has just started may be stopped by an older
    /// order: caps and plans take different paths, so a plan that belongs to a new cap may arrive while an old cap is in force.
    pub fn after_tubo(&mut self, setup: &Setup, state: &mut State, before: &Tubo, planned: bool) {
        let machine = before.machine;
        let running = state.host(machine).tubo.running.clone();
        let established = state.line(Endpoint::Master, Endpoint::Tubo(machine)).is_empty();
        for role in setup.role_ids().into_iter().filter(|role| setup.role(*role).stable) {
            let (needed, wanted) =
                (state.ledger.need[machine.index()].get(role), state.ledger.wanted[machine.index()].get(role));
            let (ran, runs) = (before.running.get(role), running.get(role));
            self.check("I1", planned || runs >= needed, || {
                format!("{role:?} on {machine}: {needed} needed, {runs} run")
            });
            self.mark_if(!planned && runs < ran && runs >= needed && ran.min(wanted) > runs, CROSSES);
            let need = if established { runs.min(wanted.max(needed)) } else { runs.min(needed) };
            if need != needed {
                Arc::make_mut(&mut state.ledger).need[machine.index()].set(role, need);
            }
        }
        for plan in &state.host(machine).tubo.plans {
            let was = before.plans.iter().find(|was| was.role == plan.role).map_or(0, |was| was.at.epoch);
            self.check("I7", was <= plan.at.epoch, || format!("{plan:?} replaced one of master {was}"));
        }
    }

    /// Updates the ledger after a step of an application master: workers of returned units may stop.
    pub fn after_app(
        &mut self,
        setup: &Setup,
        ledger: &mut Arc<Ledger>,
        before: &AppMaster,
        master: &AppMaster,
        outputs: &[Output],
    ) {
        if master.epoch < ledger.planner[master.app.index()] {
            return;
        }
        if master.epoch > ledger.planner[master.app.index()] {
            Arc::make_mut(ledger).planner[master.app.index()] = master.epoch;
        }
        for output in outputs {
            match output {
                Output::Send(_, Message::AppChange { returned, .. }) => {
                    for units in returned {
                        let need = ledger.need[units.machine.index()].get(units.role);
                        let left = master.hint(units.machine, units.role);
                        if need > left {
                            Arc::make_mut(ledger).need[units.machine.index()].set(units.role, left);
                        }
                    }
                }
                Output::Send(Endpoint::Tubo(machine), Message::Plan { role, count, .. })
                    if setup.role(*role).stable && ledger.wanted[machine.index()].get(*role) != *count =>
                {
                    Arc::make_mut(ledger).wanted[machine.index()].set(*role, *count);
                }
                Output::Send(Endpoint::Master, Message::AppBeat { .. }) => {
                    self.mark_if(!before.restarted, "a gap in the hints is noticed");
                }
                _ => {}
            }
        }
    }

    /// Checks the invariants of every state: I2, I3, I9.
    pub fn state(&mut self, setup: &Setup, state: &State) {
        let roles = setup.role_ids();
        for machine in setup.machine_ids() {
            let tubo = &state.host(machine).tubo;
            let capacity = &setup.machines[machine.index()];
            let fit = [&tubo.caps, &tubo.running].iter().all(|units| setup.size_of(units).fits(capacity));
            self.check("I2", fit, || format!("machine {machine}: {:?} of {capacity:?}", tubo.caps));
            for &role in &roles {
                let (runs, may) = (tubo.running.get(role), tubo.caps.get(role).min(tubo.plan(role)));
                let fits = tubo.blind || runs == may;
                self.check("I3", fits, || format!("machine {machine}: {runs} of role {role:?} run, {may} are allowed"));
            }
        }
        let Some(master) = &state.chief.master else { return };
        let mut granted: BTreeMap<RoleId, u32> = roles.iter().map(|role| (*role, 0)).collect();
        for machine in setup.machine_ids() {
            let alloc = &master.sites[machine.index()].alloc;
            let (used, capacity) = (setup.size_of(alloc), &setup.machines[machine.index()]);
            self.check("I2", used.fits(capacity), || format!("machine {machine}: {alloc:?} of {capacity:?}"));
            self.check("I9", used == master.used(machine), || format!("machine {machine}: sum is wrong"));
            for (role, count) in alloc.iter() {
                *granted.entry(role).or_default() += count;
                let tenant = &master.tenants[&setup.role(role).app];
                let held = tenant.held.get(&(machine, role)) == Some(&count);
                self.check("I9", held, || format!("{role:?} on {machine}: {count} allocated, {:?}", tenant.held));
            }
        }
        let held: usize = master.tenants.values().map(|tenant| tenant.held.len()).sum();
        let pairs: usize = master.sites.iter().map(|site| site.alloc.iter().count()).sum();
        self.check("I9", held == pairs, || "an application holds unallocated units".to_owned());
        let sums = master.accounts.iter().map(|(role, account)| (*role, account.granted)).eq(granted);
        self.check("I9", sums, || "sums of roles are wrong".to_owned());
    }

    /// Checks that a cluster at rest is consistent: I8.
    pub fn rest(&mut self, model: &Model, state: &State) {
        let (setup, roles) = (&model.setup, model.setup.role_ids());
        let master = state.chief.master.as_ref().expect("a cluster at rest has a FuxiMaster");
        for machine in setup.machine_ids() {
            let (tubo, site) = (&state.host(machine).tubo, &master.sites[machine.index()]);
            self.check("I8", site.contact == Contact::Here, || format!("machine {machine} is not in contact"));
            for &role in &roles {
                let app = setup.role(role).app;
                let hint = state.app(app).newest.as_ref().map_or(0, |own| own.hint(machine, role));
                let all = [site.alloc.get(role), tubo.caps.get(role), tubo.running.get(role), hint];
                let agree = all.iter().all(|&one| one == all[0]);
                self.check("I8", agree, || format!("{role:?} on {machine}: allocated, cap, running, hint {all:?}"));
            }
        }
        let quota = model.allocated(master) < model.quota;
        for (&role, account) in &master.accounts {
            let spec = setup.role(role);
            let wanted = state.app(spec.app).newest.as_ref().map_or(0, |own| own.want.get(role));
            let room = setup.machine_ids().any(|machine| spec.unit.fits(&master.free(setup, machine)));
            let starving = account.granted < account.request && room && quota;
            let fair = account.request == wanted && account.granted <= wanted && !starving;
            self.check("I8", fair, || format!("{role:?}: wanted {wanted}, {account:?}, starving: {starving}"));
        }
    }
}
