//! The invariants, said once more and otherwise than in `crates/control/src/world`: of states where a state shows them, and of
//! single steps where only a step does. Also what was seen happen: the ways to recover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll::control::app::AppMaster;
use plimsoll::control::master::{Contact, Master, Phase};
use plimsoll::control::message::{Message, Node, Note, Output, Source, Why};
use plimsoll::control::setup::{RoleId, Setup};
use plimsoll::control::tubo::Tubo;
use plimsoll::units::MachineId;

use super::numbers::HOME;
use super::state::{Ledger, State};

/// The ways to recover, all of which must be taken somewhere.
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

/// What was seen in one step, or in all of them.
#[derive(Debug, Default)]
pub struct Seen {
    /// Invariants that do not hold, with what happened.
    pub violations: BTreeMap<&'static str, String>,
    /// Ways to recover that were taken.
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

    /// After a step of FuxiMaster: I4, I5, I7, I10.
    pub fn after_master(&mut self, setup: &Setup, state: &State, before: &Master, outputs: &[Output]) {
        let Some(master) = &state.chief.master else { return };
        let silent = before.phase == Phase::Recovering && master.phase == Phase::Recovering;
        let normal = before.phase == Phase::Normal;
        for output in outputs {
            match output {
                Output::Note(Note::Granted(units)) => {
                    let (site, account) = (&master.sites[units.machine.index()], master.accounts[units.role.index()]);
                    let heard = site.contact == Contact::Here && master.phase == Phase::Normal;
                    self.check("I4", heard, || format!("{units:?} granted on a machine that is not heard"));
                    let asked = account.granted <= account.request;
                    self.check("I5", asked, || format!("{units:?} granted beyond the request: {account:?}"));
                    let group = setup.role(units.role).group.map(usize::from);
                    let within = group.is_none_or(|group| master.groups[group] <= setup.groups[group]);
                    self.check("I9", within, || format!("{units:?} granted beyond the most of its group"));
                }
                Output::Note(note) => self.recovers(setup, state, note, normal),
                Output::Send(_, Message::Caps { .. } | Message::Hints { .. }) => {
                    self.check("I10", !silent, || "FuxiMaster gives orders while it recovers".to_owned());
                }
                Output::Send(..) => {}
                Output::StartApp(.., machine) => {
                    let is_heard = |other: MachineId| master.sites[other.index()].contact == Contact::Here;
                    let good = |other: MachineId| other != HOME && is_heard(other);
                    let best = good(*machine) || !setup.machine_ids().any(good);
                    self.check("I12", best, || {
                        format!("a master is to start on machine {machine}, the last was on {HOME}")
                    });
                    self.mark_if(normal, "an application master is replaced");
                }
            }
        }
        let empty = master.sites.iter().all(|site| site.alloc.is_empty());
        self.check("I10", master.phase == Phase::Normal || empty, || "it allocates while it recovers".to_owned());
        for (was, is) in before.tenants.iter().zip(&master.tenants) {
            self.check("I7", was.epoch <= is.epoch, || "an older application master was accepted".to_owned());
        }
        for (role, account) in master.accounts.iter().enumerate() {
            let app = setup.roles[role].app;
            let more = account.granted > account.request && master.tenants[app.index()].contact == Contact::Here;
            self.mark_if(more, "surplus is left to its application master");
        }
    }

    fn recovers(&mut self, setup: &Setup, state: &State, note: &Note, normal: bool) {
        match *note {
            Note::Rebuilt(units, source) => {
                let host = state.host(units.machine);
                let again = state.app(setup.role(units.role).app).newest.as_ref().is_some_and(|own| own.restarted);
                self.paths.insert(match (source, normal) {
                    (Source::Cap, false) if host.disk => "rebuilt from a cap on disk",
                    (Source::Cap, false) => "rebuilt from a cap",
                    (Source::Cap, true) => "a late cap confirms a claim",
                    (Source::Mock, false) if host.disk => "request invented for a cap on disk",
                    (Source::Mock, false) => "request invented",
                    (Source::Mock, true) => "request invented for a late Tubo",
                    (Source::Hint, false) if again => "rebuilt from a hint on disk",
                    (Source::Hint, false) => "rebuilt from a hint",
                    (Source::Hint, true) => "rebuilt from the hint of a late application master",
                });
            }
            Note::Dropped(_, why) => {
                self.paths.insert(match why {
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
            Note::Granted(_) | Note::Recovered | Note::Accepted(..) | Note::Started(_) | Note::Stopped(_) => {}
        }
    }

    /// After a step of a Tubo: I1, I7.
    ///
    /// A worker is established once nothing from FuxiMaster is on its way to the Tubo: then it must not stop unless its
    /// application master gives the unit back, or says so in its plan. One that has just been started may cross an older
    /// order: caps and plans take different ways, so a plan that belongs to a new cap may meet an old one.
    pub fn after_tubo(&mut self, setup: &Setup, state: &mut State, before: &Tubo, planned: bool) {
        let machine = before.machine;
        let running = state.host(machine).tubo.running.clone();
        let established = state.line(Node::Master, Node::Tubo(machine)).is_empty();
        let stable = |at: &usize| setup.roles[*at].stable;
        for role in (0..setup.roles.len()).filter(stable).map(|at| RoleId(at as u16)) {
            let (needed, wanted) =
                (state.ledger.need[machine.index()].get(role), state.ledger.wanted[machine.index()].get(role));
            let (ran, runs) = (before.running.get(role), running.get(role));
            self.check("I1", planned || runs >= needed, || {
                format!("{role:?} on {machine}: {needed} needed, {runs} run")
            });
            self.mark_if(
                !planned && runs < ran && runs >= needed && ran.min(wanted) > runs,
                "a start crosses an older order",
            );
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

    /// After a step of an application master: what it gives back may stop.
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
                Output::Send(Node::Tubo(machine), Message::Plan { role, count, .. })
                    if setup.role(*role).stable && ledger.wanted[machine.index()].get(*role) != *count =>
                {
                    Arc::make_mut(ledger).wanted[machine.index()].set(*role, *count);
                }
                Output::Send(Node::Master, Message::AppBeat { .. }) => {
                    self.mark_if(!before.restarted, "a gap in the hints is noticed");
                }
                _ => {}
            }
        }
    }

    /// What every state must show: I2, I3, I9.
    pub fn state(&mut self, setup: &Setup, state: &State) {
        for machine in setup.machine_ids() {
            let tubo = &state.host(machine).tubo;
            let capacity = u64::from(setup.machines[machine.index()]);
            let most = setup.size_of(&tubo.caps).max(setup.size_of(&tubo.running));
            self.check("I2", most <= capacity, || format!("machine {machine}: {:?} of {capacity}", tubo.caps));
            for role in (0..setup.roles.len()).map(|at| RoleId(at as u16)) {
                let (runs, may) = (tubo.running.get(role), tubo.caps.get(role).min(tubo.plan(role)));
                let fits = tubo.blind || runs == may;
                self.check("I3", fits, || format!("machine {machine}: {runs} of role {role:?} run, {may} may"));
            }
        }
        let Some(master) = &state.chief.master else { return };
        let (mut granted, mut groups) = (vec![0; setup.roles.len()], vec![0; setup.groups.len()]);
        for machine in setup.machine_ids() {
            let alloc = &master.sites[machine.index()].alloc;
            let (used, capacity) = (setup.size_of(alloc), setup.machines[machine.index()]);
            self.check("I2", used <= u64::from(capacity), || format!("machine {machine}: {alloc:?} of {capacity}"));
            self.check("I9", used == u64::from(master.used(machine)), || format!("machine {machine}: sum is wrong"));
            for (role, count) in alloc.iter() {
                granted[role.index()] += count;
                if let Some(group) = setup.role(role).group {
                    groups[usize::from(group)] += u64::from(setup.role(role).size) * u64::from(count);
                }
            }
        }
        let sums = master.accounts.iter().map(|account| account.granted).eq(granted);
        self.check("I9", sums && groups == master.groups, || "sums of roles or groups are wrong".to_owned());
    }

    /// A cluster at rest agrees: I8.
    pub fn rest(&mut self, setup: &Setup, state: &State) {
        let master = state.chief.master.as_ref().expect("somebody would start it");
        for machine in setup.machine_ids() {
            let (tubo, site) = (&state.host(machine).tubo, &master.sites[machine.index()]);
            self.check("I8", site.contact == Contact::Here, || format!("machine {machine} is not back"));
            for role in (0..setup.roles.len()).map(|at| RoleId(at as u16)) {
                let app = setup.role(role).app;
                let hint = state.app(app).newest.as_ref().map_or(0, |own| own.hint(machine, role));
                let all = [site.alloc.get(role), tubo.caps.get(role), tubo.running.get(role), hint];
                let agree = all.iter().all(|&one| one == all[0]);
                self.check("I8", agree, || format!("{role:?} on {machine}: allocated, cap, running, hint {all:?}"));
            }
        }
        let room = setup.machine_ids().map(|machine| master.free(setup, machine)).max().unwrap_or(0);
        for (at, account) in master.accounts.iter().enumerate() {
            let role = RoleId(at as u16);
            let own = state.app(setup.role(role).app).newest.as_ref();
            let wanted = own.map_or(0, |own| own.want.get(role));
            let group = setup.role(role).group.map(usize::from);
            let size = setup.role(role).size;
            let quota = group.is_none_or(|g| master.groups[g] + u64::from(size) <= setup.groups[g]);
            let starving = account.granted < account.request && size <= room && quota;
            let fair = account.request == wanted && account.granted <= wanted && !starving;
            self.check("I8", fair, || format!("{role:?}: wanted {wanted}, {account:?}, room {room}"));
        }
    }
}
