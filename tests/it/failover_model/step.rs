//! The actions of the failover model and their effects on a cluster.
//!
//! Time is abstract: a timer may fire whenever the order of the timers allows. The time between heartbeats is much longer than a message
//! delay, a time-out is much longer than the time between heartbeats, and the recovery window is much longer than a time-out. Therefore a
//! heartbeat without effect is omitted, only an unreachable node times out, and the window ends when every reachable node has reported.

use std::sync::Arc;

use plimsoll::control::app::{self, AppMaster};
use plimsoll::control::master::{self, Contact, Master, Phase};
use plimsoll::control::message::{Endpoint, Message, Output, Units};
use plimsoll::control::setup::{AppId, RoleId, Setup};
use plimsoll::control::tubo;
use plimsoll::units::MachineId;

use super::state::{Chief, Host, State};
use super::strike::{self, Fault};
use super::watch::Seen;

/// A step of the cluster: an event, a decision or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The message at the head of a line arrives.
    Deliver(Endpoint, Endpoint),
    MasterStarts,
    AppStarts(AppId),
    TuboStarts(MachineId),
    /// A machine becomes reachable again.
    Heal(MachineId),
    /// The link between FuxiMaster and the newest, or the old, master of an application is restored.
    HealApp(AppId, usize),
    /// The application makes its next demand (`Model::wants`).
    Want(AppId),
    AppTimeout(AppId),
    TuboTimeout(MachineId),
    TuboBeat(MachineId),
    AppBeat(AppId, u32),
    WindowEnds,
    /// The scheduler grants a unit of a role on a machine.
    Grant(RoleId, MachineId),
    /// The application gives up its units on an unreachable machine.
    Move(AppId, MachineId),
    /// The faults.
    Fault(Fault),
}

/// The system to explore and the bounds of the exploration.
#[derive(Clone, Debug)]
pub struct Model {
    pub setup: Setup,
    /// The successive demands of each role: one list per application, which has one role.
    pub wants: [Vec<u32>; 2],
    /// The number of demands, per application, that have already been made and fulfilled when the check begins.
    pub early: [u8; 2],
    /// The maximum number of faults.
    pub faults: u8,
    /// The maximum number of times that an application leaves a machine.
    pub moves: u8,
    /// The maximum number of units, of all roles together, that the scheduler may allocate by grants.
    pub quota: u64,
    /// Selects the messages that arrive at once if no other message is in transit on their line.
    pub prompt: fn(&Message) -> bool,
}

impl Model {
    /// Returns the initial state: every node has started for the first time, and only the `early` demands have been made.
    pub fn first(&self) -> State {
        let mut state = State::new(&self.setup);
        let mut seen = Seen::default();
        state = self.apply(&state, Action::MasterStarts, &mut seen);
        for app in self.setup.app_ids() {
            state = self.apply(&state, Action::AppStarts(app), &mut seen);
        }
        let begun = |state: &State, action: &Action| match action {
            Action::Want(app) => state.ledger.wants[app.index()] >= self.early[app.index()],
            _ => false,
        };
        while let Some(action) = self.calm(&state).into_iter().find(|action| !begun(&state, action)) {
            state = self.apply(&state, action, &mut seen);
        }
        state
    }

    /// Returns every possible action; faults come last.
    pub fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = self.calm(state);
        let apps = self.setup.app_ids().into_iter();
        for (app, machine) in apps.flat_map(|app| self.setup.machine_ids().map(move |m| (app, m))) {
            if state.ledger.moves < self.moves && self.would_move(state, app, machine) {
                actions.push(Action::Move(app, machine));
            }
        }
        if state.ledger.faults < self.faults {
            actions.extend(self.faults(state).into_iter().map(Action::Fault));
        }
        actions
    }

    /// Returns whether an application has stable units on a machine that is out of sight.
    fn would_move(&self, state: &State, app: AppId, machine: MachineId) -> bool {
        let stable = |role: &RoleId| self.setup.role(*role).stable;
        state.app(app).newest.as_ref().is_some_and(|master| {
            let has = self.setup.roles_of(app).filter(stable).any(|role| master.hint(machine, role) > 0);
            master.away.contains(&machine) && has
        })
    }

    /// Returns the actions that are neither faults nor decisions to move, in the order of a cluster without further faults: messages,
    /// starts, then the timers from the fastest to the slowest, then grants.
    pub fn calm(&self, state: &State) -> Vec<Action> {
        let mut actions: Vec<Action> = state.lines().map(|line| Action::Deliver(line.from, line.to)).collect();
        if state.chief.master.is_none() {
            actions.push(Action::MasterStarts);
        }
        for app in self.setup.app_ids() {
            let masters = state.app(app);
            if masters.newest.is_none() || masters.least > masters.epoch {
                actions.push(Action::AppStarts(app));
            }
            let sides = [&masters.newest, &masters.old];
            actions
                .extend((0..2).filter(|&at| masters.cut[at] && sides[at].is_some()).map(|at| Action::HealApp(app, at)));
            let wanted = usize::from(state.ledger.wants[app.index()]);
            if masters.newest.is_some() && wanted < self.wants[app.index()].len() {
                actions.push(Action::Want(app));
            }
        }
        for machine in self.setup.machine_ids() {
            let host = state.host(machine);
            if !host.up {
                actions.push(Action::TuboStarts(machine));
            }
            if host.cut || host.dark {
                actions.push(Action::Heal(machine));
            }
        }
        self.clocks(state, &mut actions);
        actions.extend(self.grants(state));
        actions
    }

    /// Returns the grants that the scheduler may make within the quota. A grant is a unit requested by an application
    /// master in contact, on a machine that is in contact and has room. The machine's tubo must have acknowledged every
    /// reduction of this role's cap. Machines with fewer units come first.
    fn grants(&self, state: &State) -> Vec<Action> {
        let Some(master) = state.chief.master.as_ref().filter(|master| master.phase == Phase::Normal) else {
            return Vec::new();
        };
        let mut grants = Vec::new();
        if self.allocated(master) >= self.quota {
            return grants;
        }
        for (&role, account) in &master.accounts {
            let spec = self.setup.role(role);
            if account.granted >= account.request || master.tenants[&spec.app].contact != Contact::Here {
                continue;
            }
            let may = |machine: &MachineId| {
                let site = &master.sites[machine.index()];
                let fits = spec.unit.fits(&master.free(&self.setup, *machine));
                site.contact == Contact::Here && !site.is_shrinking(role) && fits
            };
            let mut machines: Vec<MachineId> = self.setup.machine_ids().filter(may).collect();
            machines.sort_by_key(|machine| master.sites[machine.index()].alloc.total());
            grants.extend(machines.into_iter().map(|machine| Action::Grant(role, machine)));
        }
        grants
    }

    /// Returns the number of units that FuxiMaster has allocated, including those of invented requests.
    pub fn allocated(&self, master: &Master) -> u64 {
        master.sites.iter().map(|site| site.alloc.total()).sum()
    }

    fn clocks(&self, state: &State, actions: &mut Vec<Action>) {
        let setup = &self.setup;
        for machine in setup.machine_ids().filter(|machine| !self.tubo_says(state, *machine).is_empty()) {
            actions.push(Action::TuboBeat(machine));
        }
        for app in setup.app_ids() {
            let masters = [&state.app(app).newest, &state.app(app).old];
            for master in masters.into_iter().flatten().filter(|master| self.app_says(state, master).is_some()) {
                actions.push(Action::AppBeat(app, master.epoch));
            }
        }
        let Some(master) = &state.chief.master else { return };
        if master.phase == Phase::Recovering {
            if self.all_reported(state, master) {
                actions.push(Action::WindowEnds);
            }
            return;
        }
        for app in setup.app_ids() {
            let (masters, tenant) = (state.app(app), &master.tenants[&app]);
            let heard = |one: &AppMaster| tenant.accepts(one.epoch) && !masters.is_cut(one.epoch);
            let starts = masters.least > masters.epoch;
            if !starts && ![&masters.newest, &masters.old].into_iter().flatten().any(heard) {
                actions.push(Action::AppTimeout(app));
            }
        }
        for machine in setup.machine_ids() {
            let host = state.host(machine);
            let silent = !host.up || host.cut || host.dark;
            if silent && master.sites[machine.index()].contact == Contact::Here {
                actions.push(Action::TuboTimeout(machine));
            }
        }
    }

    /// Returns whether every reachable node has reported to a recovering FuxiMaster.
    fn all_reported(&self, state: &State, master: &Master) -> bool {
        let tubos = self.setup.machine_ids().all(|machine| {
            let host = state.host(machine);
            let silent = !host.up || host.cut || host.dark;
            silent || master.sites[machine.index()].contact == Contact::Here
        });
        tubos
            && self.setup.app_ids().into_iter().all(|app| {
                let masters = state.app(app);
                let known = master.tenants[&app].epoch;
                masters.cut[0] || masters.newest.as_ref().is_none_or(|newest| newest.epoch == known)
            })
    }

    /// Returns the heartbeat messages of a tubo that would change their receivers. A tubo sends them on idle links only.
    fn tubo_says(&self, state: &State, machine: MachineId) -> Vec<(Endpoint, Message)> {
        let (host, tubo) = (state.host(machine), Endpoint::Tubo(machine));
        let waits = host.tubo.caps.iter().any(|(role, count)| count > host.tubo.plan(role));
        let agrees = state.chief.master.as_ref().is_none_or(|master| {
            let here = master.sites[machine.index()].contact == Contact::Here;
            let site = &master.sites[machine.index()];
            let settled =
                master.phase == Phase::Recovering || master.position(machine) == host.tubo.at && site.is_settled();
            here && settled
        });
        if !host.up || agrees && !waits {
            return Vec::new();
        }
        let (_, outputs) = host.tubo.clone().step(&self.setup, tubo::TuboInput::Beat);
        let sends = outputs.into_iter().filter_map(|output| match output {
            Output::Send(to, message) => Some((to, message)),
            _ => None,
        });
        sends.filter(|(to, message)| self.moves(state, tubo, *to, message)).collect()
    }

    fn app_says(&self, state: &State, master: &AppMaster) -> Option<Message> {
        let (node, chief) = (Endpoint::App(master.app, master.epoch), state.chief.master.as_ref()?);
        if state.is_cut(node, Endpoint::Master) || !self.is_quiet(state, node, Endpoint::Master) {
            return None;
        }
        let tenant = &chief.tenants[&master.app];
        let known = tenant.contact == Contact::Here && tenant.epoch == master.epoch && tenant.heard == master.sent;
        if known && (chief.phase == Phase::Recovering || chief.app_position(master.app) == master.at) {
            return None;
        }
        let (_, outputs) = master.clone().step(&self.setup, app::AppInput::Beat);
        let from = Endpoint::App(master.app, master.epoch);
        outputs.into_iter().find_map(|output| match output {
            Output::Send(to, message) if self.moves(state, from, to, &message) => Some(message),
            _ => None,
        })
    }

    /// Returns whether no message is in transit between two nodes.
    fn is_quiet(&self, state: &State, one: Endpoint, other: Endpoint) -> bool {
        state.line(one, other).is_empty() && state.line(other, one).is_empty()
    }

    /// Returns whether a message would change its receiver and no other message is in transit between the two nodes.
    fn moves(&self, state: &State, from: Endpoint, to: Endpoint, message: &Message) -> bool {
        let to = match to {
            Endpoint::App(app, 0) => Endpoint::App(app, state.app(app).epoch),
            known => known,
        };
        if !state.is_alive(to) || state.is_cut(from, to) {
            return false;
        }
        if !self.is_quiet(state, from, to) {
            return false;
        }
        match to {
            Endpoint::Master => state.chief.master.as_ref().is_some_and(|master| {
                let (next, outputs) = master.clone().step(&self.setup, master::MasterInput::Message(message.clone()));
                !outputs.is_empty() || next != *master
            }),
            Endpoint::App(app, epoch) => state.app(app).with_epoch(epoch).is_some_and(|master| {
                let (next, outputs) = master.clone().step(&self.setup, app::AppInput::Message(message.clone()));
                !outputs.is_empty() || next != *master
            }),
            Endpoint::Tubo(_) => true,
        }
    }

    /// Returns the state after an action.
    pub fn apply(&self, state: &State, action: Action, seen: &mut Seen) -> State {
        let mut next = state.clone();
        match action {
            Action::Deliver(from, to) => {
                let message = next.receive(from, to, 0, false);
                self.deliver(&mut next, from, to, message, seen);
            }
            Action::MasterStarts => self.start_master(&mut next, seen),
            Action::AppStarts(app) => self.start_app(&mut next, app, seen),
            Action::TuboStarts(machine) => {
                let host = next.host_mut(machine);
                let (tubo, outputs) = host.tubo.clone().restart(self.setup.rules);
                (host.tubo, host.up, host.disk) = (tubo, true, true);
                self.act(&mut next, Endpoint::Tubo(machine), outputs, seen);
            }
            Action::Heal(machine) => {
                let host = next.host_mut(machine);
                (host.cut, host.dark) = (false, false);
            }
            Action::HealApp(app, side) => next.app_mut(app).cut[side] = false,
            Action::Want(app) => {
                let ledger = Arc::make_mut(&mut next.ledger);
                let at = &mut ledger.wants[app.index()];
                let count = self.wants[app.index()][usize::from(*at)];
                *at += 1;
                let role = self.setup.roles_of(app).next().expect("an application has a role");
                let epoch = next.app(app).epoch;
                self.app_input(&mut next, app, epoch, app::AppInput::Want(role, count), seen);
            }
            Action::AppTimeout(app) => self.master_input(&mut next, master::MasterInput::AppTimeout(app), seen),
            Action::TuboTimeout(machine) => {
                self.master_input(&mut next, master::MasterInput::TuboTimeout(machine), seen)
            }
            Action::TuboBeat(machine) => {
                for (to, message) in self.tubo_says(state, machine) {
                    self.send(&mut next, Endpoint::Tubo(machine), to, message, seen);
                }
            }
            Action::AppBeat(app, epoch) => {
                let master = state.app(app).with_epoch(epoch).expect("only a live master sends heartbeats");
                if let Some(message) = self.app_says(state, master) {
                    self.send(&mut next, Endpoint::App(app, epoch), Endpoint::Master, message, seen);
                }
            }
            Action::WindowEnds => self.master_input(&mut next, master::MasterInput::WindowEnds, seen),
            Action::Grant(role, machine) => {
                let granted = vec![Units { machine, role, count: 1 }];
                self.master_input(&mut next, master::MasterInput::Grant(granted), seen);
            }
            Action::Move(app, machine) => {
                Arc::make_mut(&mut next.ledger).moves += 1;
                let epoch = next.app(app).epoch;
                self.app_input(&mut next, app, epoch, app::AppInput::Move(machine), seen);
            }
            Action::Fault(fault) => {
                Arc::make_mut(&mut next.ledger).faults += 1;
                self.strike(&mut next, fault, seen);
            }
        }
        super::numbers::renumber(&self.setup, &mut next);
        next
    }

    fn start_master(&self, next: &mut State, seen: &mut Seen) {
        let newest: Vec<(AppId, u32)> = self.setup.app_ids().iter().map(|&app| (app, next.app(app).epoch)).collect();
        let chief = Arc::make_mut(&mut next.chief);
        chief.epoch += 1;
        let (master, outputs) = Master::start(&self.setup, chief.epoch, &newest);
        chief.master = Some(master);
        seen.mark_if(true, "FuxiMaster fails over");
        self.act(next, Endpoint::Master, outputs, seen);
    }

    /// Starts a new master of an application from the state that its newest master has on disk.
    fn start_app(&self, next: &mut State, app: AppId, seen: &mut Seen) {
        let masters = next.app_mut(app);
        masters.epoch = masters.least.max(masters.epoch + 1);
        let known = [&masters.newest, &masters.old, &masters.dead].into_iter().flatten();
        let (master, outputs) = match known.max_by_key(|master| master.epoch) {
            Some(last) => last.restart(&self.setup, masters.epoch),
            None => AppMaster::start(app),
        };
        if let Some(newest) = masters.newest.take() {
            // At most one replaced master stays alive. If there is one already, it dies.
            let gone = masters.old.replace(newest).map(|old| Endpoint::App(app, old.epoch));
            masters.cut[1] = masters.cut[0];
            next.lose(|_, to| Some(to) == gone);
        }
        let masters = next.app_mut(app);
        masters.cut[0] = false;
        masters.newest = Some(master);
        self.act(next, Endpoint::App(app, next.app(app).epoch), outputs, seen);
    }

    pub fn deliver(&self, next: &mut State, from: Endpoint, to: Endpoint, message: Message, seen: &mut Seen) {
        match to {
            Endpoint::Master => {
                let old = superseded(next, from);
                let before = old.then(|| next.chief.clone());
                self.master_input(next, master::MasterInput::Message(message), seen);
                if let Some(before) = before {
                    let fenced = before.master == next.chief.master;
                    seen.check("I7", fenced, || "a message of a superseded master was accepted".to_owned());
                    seen.mark_if(fenced, "an old application master is refused");
                }
            }
            Endpoint::App(app, epoch) => self.app_input(next, app, epoch, app::AppInput::Message(message), seen),
            Endpoint::Tubo(machine) => {
                let before = next.hosts[machine.index()].clone();
                let Host { up, cut, dark, disk, .. } = *before;
                let disk = disk && !matches!(message, Message::Caps { full: true, .. });
                let planned = matches!(message, Message::Plan { .. });
                let (tubo, outputs) = before.tubo.clone().step(&self.setup, tubo::TuboInput::Message(message));
                next.hosts[machine.index()] = Arc::new(Host { tubo, up, cut, dark, disk });
                seen.after_tubo(&self.setup, next, &before.tubo, planned);
                self.act(next, Endpoint::Tubo(machine), outputs, seen);
            }
        }
    }

    fn master_input(&self, next: &mut State, input: master::MasterInput, seen: &mut Seen) {
        let before = next.chief.clone();
        let was = before.master.as_ref().expect("only a live FuxiMaster receives input");
        let (master, outputs) = was.clone().step(&self.setup, input);
        next.chief = Arc::new(Chief { master: Some(master), epoch: before.epoch });
        seen.after_master(self, next, was, &outputs);
        self.act(next, Endpoint::Master, outputs, seen);
    }

    fn app_input(&self, next: &mut State, app: AppId, epoch: u32, input: app::AppInput, seen: &mut Seen) {
        let masters = next.app_mut(app);
        let side = if masters.newest.as_ref().is_some_and(|master| master.epoch == epoch) {
            &mut masters.newest
        } else {
            &mut masters.old
        };
        let before = side.take().expect("only a live master receives input");
        let (master, outputs) = before.clone().step(&self.setup, input);
        seen.after_app(&self.setup, &mut next.ledger, &before, &master, &outputs);
        let masters = Arc::make_mut(&mut next.apps[app.index()]);
        if master.fenced {
            if masters.dead.as_ref().is_none_or(|dead| dead.epoch < epoch) {
                masters.dead = Some(strike::left(&self.setup, &master));
            }
            next.lose(|_, to| to == Endpoint::App(app, epoch));
        } else if epoch == masters.epoch {
            masters.newest = Some(master);
        } else {
            masters.old = Some(master);
        }
        self.act(next, Endpoint::App(app, epoch), outputs, seen);
    }

    /// Sends a message. A prompt message arrives at once if no earlier message is in transit on its line.
    fn send(&self, next: &mut State, from: Endpoint, to: Endpoint, message: Message, seen: &mut Seen) {
        let to = match to {
            Endpoint::App(app, 0) => Endpoint::App(app, next.app(app).epoch),
            known => known,
        };
        let prompt = (self.prompt)(&message);
        if let Message::Ask { epoch } = message
            && prompt
        {
            next.forget(from, to, |letter| is_before(letter, epoch));
        }
        if !prompt || !next.line(from, to).is_empty() {
            next.post(from, to, message);
        } else if next.is_alive(to) && !next.is_cut(from, to) {
            self.deliver(next, from, to, message, seen);
        }
    }

    /// Executes the outputs of a step.
    fn act(&self, next: &mut State, from: Endpoint, outputs: Vec<Output>, seen: &mut Seen) {
        for output in outputs {
            match output {
                Output::Send(to, message) => self.send(next, from, to, message, seen),
                Output::StartApp(app, least) => {
                    let masters = next.app_mut(app);
                    masters.least = masters.least.max(least);
                }
                Output::Note(_) => {}
            }
        }
    }
}

/// Returns whether a message is obsolete once a FuxiMaster of `epoch` has made contact.
fn is_before(message: &Message, epoch: u32) -> bool {
    match message {
        Message::Caps { at, .. } | Message::Hints { at, .. } => at.epoch < epoch,
        Message::Ask { epoch: asked } => *asked < epoch,
        _ => false,
    }
}

/// Returns whether the sender is an application master and FuxiMaster accepts only newer masters of its application.
fn superseded(state: &State, from: Endpoint) -> bool {
    match (from, &state.chief.master) {
        (Endpoint::App(app, epoch), Some(master)) => !master.tenants[&app].accepts(epoch),
        _ => false,
    }
}
