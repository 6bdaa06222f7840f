//! The possible faults.

use std::sync::Arc;

use plimsoll::control::app::AppMaster;
use plimsoll::control::message::Endpoint;
use plimsoll::control::setup::{AppId, Setup};
use plimsoll::units::MachineId;

use super::state::{Line, State};
use super::step::Model;
use super::watch::Seen;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    MasterDies,
    AppDies(AppId),
    TuboDies(MachineId),
    /// The link between FuxiMaster and a machine is cut.
    Cut(MachineId),
    /// All links of a machine are cut.
    Dark(MachineId),
    /// The link between FuxiMaster and an application master is cut.
    CutApp(AppId),
    /// The next message of a line is lost.
    Lost(Endpoint, Endpoint),
    /// The next message of a line arrives, and will arrive again.
    Twice(Endpoint, Endpoint),
    /// The second message of a line arrives before the first.
    Overtakes(Endpoint, Endpoint),
}

impl Model {
    /// Returns the faults that are possible now.
    pub fn faults(&self, state: &State) -> Vec<Fault> {
        let mut faults = Vec::new();
        if state.chief.master.is_some() {
            faults.push(Fault::MasterDies);
        }
        for app in self.setup.app_ids().into_iter().filter(|app| state.app(*app).newest.is_some()) {
            faults.push(Fault::AppDies(app));
            if !state.app(app).cut[0] {
                faults.push(Fault::CutApp(app));
            }
        }
        for machine in self.setup.machine_ids() {
            let host = state.host(machine);
            if host.up {
                faults.push(Fault::TuboDies(machine));
            }
            if !host.cut && !host.dark {
                faults.extend([Fault::Cut(machine), Fault::Dark(machine)]);
            }
        }
        for Line { from, to, letters } in state.lines() {
            faults.extend([Fault::Lost(*from, *to), Fault::Twice(*from, *to)]);
            if letters.len() > 1 {
                faults.push(Fault::Overtakes(*from, *to));
            }
        }
        faults
    }

    /// Applies a fault. Messages in flight to a dead node, or between two nodes with a cut link, are lost.
    pub fn strike(&self, next: &mut State, fault: Fault, seen: &mut Seen) {
        match fault {
            Fault::MasterDies => {
                Arc::make_mut(&mut next.chief).master = None;
                next.lose(|_, to| to == Endpoint::Master);
            }
            Fault::AppDies(app) => {
                let masters = next.app_mut(app);
                let dead = masters.newest.take().expect("a live master");
                masters.cut[0] = false;
                masters.dead = Some(left(&self.setup, &dead));
                next.lose(|_, to| to == Endpoint::App(app, dead.epoch));
            }
            Fault::TuboDies(machine) => {
                next.host_mut(machine).up = false;
                next.lose(|_, to| to == Endpoint::Tubo(machine));
            }
            Fault::Cut(machine) => {
                next.host_mut(machine).cut = true;
                let ends = [Endpoint::Tubo(machine), Endpoint::Master];
                next.lose(|from, to| ends.contains(&from) && ends.contains(&to));
            }
            Fault::Dark(machine) => {
                next.host_mut(machine).dark = true;
                next.lose(|from, to| [from, to].contains(&Endpoint::Tubo(machine)));
            }
            Fault::CutApp(app) => {
                let masters = next.app_mut(app);
                masters.cut[0] = true;
                let ends = [Endpoint::App(app, masters.epoch), Endpoint::Master];
                next.lose(|from, to| ends.contains(&from) && ends.contains(&to));
            }
            Fault::Lost(from, to) => {
                next.receive(from, to, 0, false);
            }
            Fault::Twice(from, to) => {
                let message = next.receive(from, to, 0, true);
                self.deliver(next, from, to, message, seen);
            }
            Fault::Overtakes(from, to) => {
                let message = next.receive(from, to, 1, false);
                self.deliver(next, from, to, message, seen);
            }
        }
    }
}

/// Returns the state that an application master leaves on disk, with its epoch.
pub fn left(setup: &Setup, dead: &AppMaster) -> AppMaster {
    dead.restart(setup, dead.epoch).0
}
