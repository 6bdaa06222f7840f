//! FuxiMaster: the record of all allocations, rebuilt from reports after a failure.
//!
//! It stores nothing on disk. During the window (`Phase::Recovering`) a new FuxiMaster only receives reports. When the window ends, it
//! rebuilds its tables from caps, requests and hints, and only then sends answers. The tables contain the allocations on each machine, and
//! the requested and granted units of each role. The scheduler decides on grants; grants are inputs, like the messages of other processes.
//!
//! Source: "Fuxi: stable resources for online services" (xingbao, third article on the Fuxi scheduler), and the rules that it omits; see
//! `docs/failover.md`.

mod blacklist;
mod grant;
mod recover;
mod report;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use super::counts::Counts;
use super::message::{Bar, Endpoint, Message, Note, Output, Position, Sender, Units, Why};
use super::rules::Rule;
use super::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::{MachineId, Resources};
use turn::PendingStep;

/// The phase of a FuxiMaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// FuxiMaster only receives reports.
    Recovering,
    /// FuxiMaster grants units and answers messages.
    Normal,
}

/// Whether FuxiMaster receives messages from a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contact {
    /// This FuxiMaster has never received a message from the peer.
    #[default]
    Unknown,
    /// FuxiMaster receives messages from the peer.
    Here,
    /// The time-out has passed without a message.
    Away,
}

/// FuxiMaster's record of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MachineAccount {
    /// The state of its Tubo.
    pub contact: Contact,
    /// The units allocated on it.
    pub alloc: Counts,
    used: Resources,
    /// The number of the last message to its Tubo.
    pub sent: u32,
    /// The caps last sent to its Tubo, or reported by it before any were sent.
    told: Counts,
    /// By role, the number of the last message that reduced the cap, until the Tubo has acknowledged it.
    pub shrunk: BTreeMap<RoleId, u32>,
    /// The caps that its Tubo reported, until the window ends.
    caps: Option<Counts>,
    /// Units in hints that the machine has no room for.
    claims: Counts,
    /// Applications that have reported the machine, completed ones included.
    blamed: BTreeSet<AppId>,
    /// Whether the machine is blacklisted: enough applications have reported it, and FuxiMaster grants no units on it.
    pub blacklisted: bool,
}

impl MachineAccount {
    /// Returns whether the cap of this role was reduced and the Tubo has not acknowledged it.
    ///
    /// Until then the role may not be granted more units on this machine. The plan for a new unit could arrive under the old cap and start
    /// a worker, which the reduced cap, still in flight, would then stop.
    pub fn is_shrinking(&self, role: RoleId) -> bool {
        self.shrunk.contains_key(&role)
    }

    /// Returns whether the Tubo has acknowledged all reduced caps.
    pub fn is_settled(&self) -> bool {
        self.shrunk.is_empty()
    }

    /// Records that the current caps, all or those of some roles, are sent to the Tubo. Returns the number of the message.
    fn send_caps(&mut self, roles: Option<&[(RoleId, i32)]>) -> u32 {
        self.sent += 1;
        let full = roles.is_none();
        let all = || self.told.iter().map(|(role, _)| role).collect();
        let roles: Vec<RoleId> = roles.map_or_else(all, |roles| roles.iter().map(|(role, _)| *role).collect());
        let smaller = roles.iter().filter(|role| self.alloc.get(**role) < self.told.get(**role));
        self.shrunk.extend(smaller.map(|role| (*role, self.sent)));
        if full {
            self.told.clone_from(&self.alloc);
        } else {
            roles.into_iter().for_each(|role| self.told.set(role, self.alloc.get(role)));
        }
        self.sent
    }

    /// Records that the Tubo has applied all messages up to this one.
    fn acknowledged(&mut self, number: u32) {
        self.shrunk.retain(|_, message| *message > number);
    }
}

/// FuxiMaster's record of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant {
    /// The state of its master.
    pub contact: Contact,
    /// The epoch of its master; 0 before any has reported.
    pub epoch: u32,
    /// The smallest epoch that is accepted: masters with smaller epochs are superseded.
    pub least: u32,
    /// The number of the last applied increment or report of its master.
    pub heard: u32,
    /// The number of the last message to its master.
    pub sent: u32,
    /// The reported hints, until the window ends.
    hints: Vec<Units<u32>>,
    /// Its allocated units, by machine and role.
    pub held: BTreeMap<(MachineId, RoleId), u32>,
    /// Machines that it bars.
    pub bars: BTreeSet<Bar>,
}

impl Tenant {
    /// Returns whether a master of this epoch is not superseded.
    pub fn accepts(&self, epoch: u32) -> bool {
        epoch >= self.epoch.max(self.least)
    }
}

/// FuxiMaster's record of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleAccount {
    /// Requested units, granted ones included.
    pub request: u32,
    /// The part of the request that is a mock request, which is valid for any machine of the cluster.
    pub mocked: u32,
    /// Allocated units.
    pub granted: u32,
}

/// A FuxiMaster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Master {
    /// Its epoch; a later FuxiMaster has a larger one.
    pub epoch: u32,
    /// Its phase.
    pub phase: Phase,
    /// Machines, by number.
    pub sites: Vec<MachineAccount>,
    /// Applications.
    pub tenants: BTreeMap<AppId, Tenant>,
    /// Roles.
    pub accounts: BTreeMap<RoleId, RoleAccount>,
}

/// An input of a FuxiMaster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MasterInput {
    /// A message arrives.
    Message(Message),
    /// The recovery window ends.
    WindowEnds,
    /// A Tubo's time-out has passed.
    TuboTimeout(MachineId),
    /// An application master's time-out has passed.
    AppTimeout(AppId),
    /// An application was submitted.
    Submit(AppId),
    /// An application is complete.
    AppOver(AppId),
    /// The scheduler has granted units.
    Grant(Vec<Units<u32>>),
    /// The scheduler preempts units.
    Revoke(Vec<Units<u32>>),
    /// The reports against a machine are cleared.
    Forgive(MachineId),
}

impl Master {
    /// Creates the first FuxiMaster of a new cluster; all machines are present.
    pub fn first(setup: &Setup) -> Master {
        let (mut master, _) = Master::start(setup, 1, &[]);
        master.phase = Phase::Normal;
        master.sites.iter_mut().for_each(|site| site.contact = Contact::Here);
        master
    }

    /// Creates a FuxiMaster with empty tables, which requests reports from all peers. [`MasterInput::WindowEnds`] ends the window.
    ///
    /// `newest` contains the epoch of each application's newest master. It is persistent state, since only FuxiMaster starts masters.
    pub fn start(setup: &Setup, epoch: u32, newest: &[(AppId, u32)]) -> (Master, Vec<Output>) {
        let site = MachineAccount {
            contact: Contact::Unknown,
            alloc: Counts::default(),
            used: Resources::ZERO,
            sent: 0,
            told: Counts::default(),
            shrunk: BTreeMap::new(),
            caps: None,
            claims: Counts::default(),
            blamed: BTreeSet::new(),
            blacklisted: false,
        };
        let tenants: BTreeMap<AppId, Tenant> =
            newest.iter().map(|&(app, least)| (app, Tenant { least, ..Tenant::default() })).collect();
        let roles = tenants.keys().flat_map(|app| setup.roles_of(*app));
        let accounts = roles.map(|role| (role, RoleAccount::default())).collect();
        let ask = |node| Output::Send(node, Message::Ask { epoch });
        let tubos = setup.machine_ids().map(|machine| ask(Endpoint::Tubo(machine)));
        let asks = tubos.chain(tenants.keys().map(|app| ask(Endpoint::App(*app, 0)))).collect();
        let sites = vec![site; setup.machines.len()];
        (Master { epoch, phase: Phase::Recovering, sites, tenants, accounts }, asks)
    }

    /// Returns the next state of a FuxiMaster, and its outputs. A pure function of its arguments.
    pub fn step(mut self, setup: &Setup, input: MasterInput) -> (Master, Vec<Output>) {
        let mut turn = PendingStep::new(setup);
        match input {
            MasterInput::Message(message) => self.receive(&mut turn, message),
            MasterInput::WindowEnds if self.phase == Phase::Recovering => self.recover(&mut turn),
            MasterInput::WindowEnds => {}
            MasterInput::TuboTimeout(machine) => self.lose_machine(&mut turn, machine),
            MasterInput::AppTimeout(app) => self.lose_app(&mut turn, app),
            MasterInput::Submit(app) => self.submit(&mut turn, app),
            MasterInput::AppOver(app) => self.forget(&mut turn, app),
            MasterInput::Grant(units) => self.grant(&mut turn, &units),
            MasterInput::Revoke(units) => self.revoke(&mut turn, &units),
            MasterInput::Forgive(machine) => self.forgive(&mut turn, machine),
        }
        let outputs = turn.finish(&mut self);
        (self, outputs)
    }

    fn receive(&mut self, turn: &mut PendingStep, message: Message) {
        match message {
            Message::TuboBeat { machine, at, restarted } => self.tubo_beat(turn, machine, at, restarted),
            Message::TuboReport { machine, epoch, caps } => self.tubo_report(turn, machine, epoch, caps),
            Message::AppBeat { from, at } => self.app_beat(turn, from, at),
            Message::AppReport { from, epoch, request, hints, bars, restarted } => {
                if self.app_report(turn, from, epoch, request, hints, restarted) {
                    self.bar(turn, from.app, bars);
                }
            }
            Message::AppBars { from, epoch, bars } => {
                if self.is_next(turn, from, epoch) {
                    self.bar(turn, from.app, bars);
                }
            }
            Message::AppChange { from, epoch, request, returned } => {
                self.app_change(turn, from, epoch, &request, &returned);
            }
            // These are not sent to a FuxiMaster.
            Message::Ask { .. }
            | Message::Caps { .. }
            | Message::Hints { .. }
            | Message::Fenced
            | Message::Plan { .. }
            | Message::NeedPlan { .. }
            | Message::Done { .. }
            | Message::Failed { .. } => {}
        }
    }

    /// Processes the heartbeat of a Tubo. A Tubo that was away, is behind or has been restarted is sent its full cap.
    fn tubo_beat(&mut self, turn: &mut PendingStep, machine: MachineId, at: Position, restarted: bool) {
        if at.epoch == self.epoch {
            self.sites[machine.index()].acknowledged(at.number);
        }
        let site = &self.sites[machine.index()];
        if self.phase == Phase::Recovering {
            if restarted && !turn.setup.rules.has(Rule::WaitWindow) {
                turn.full_cap(machine);
            }
            if site.caps.is_none() {
                turn.ask(Endpoint::Tubo(machine), self.epoch);
            }
            return;
        }
        match site.contact {
            Contact::Unknown => turn.ask(Endpoint::Tubo(machine), self.epoch),
            Contact::Away => self.welcome(turn, machine),
            Contact::Here if restarted || at != self.position(machine) => turn.full_cap(machine),
            Contact::Here => {}
        }
    }

    /// Returns the position of a Tubo that has received all messages.
    pub fn position(&self, machine: MachineId) -> Position {
        Position { epoch: self.epoch, number: self.sites[machine.index()].sent }
    }

    /// Returns the position of an application master that has received all messages.
    pub fn app_position(&self, app: AppId) -> Position {
        Position { epoch: self.epoch, number: self.tenants.get(&app).map_or(0, |tenant| tenant.sent) }
    }

    /// Marks a machine as present, so that grants there are possible, and sends it its full cap.
    fn welcome(&mut self, turn: &mut PendingStep, machine: MachineId) {
        self.set_contact(turn, machine, Contact::Here);
        turn.full_cap(machine);
        for app in self.stable_apps(turn.setup, machine) {
            turn.machine_back(app, machine);
        }
    }

    /// Returns the applications with stable units on a machine.
    fn stable_apps(&self, setup: &Setup, machine: MachineId) -> BTreeSet<AppId> {
        let units = self.sites[machine.index()].alloc.iter();
        units.map(|(role, _)| setup.role(role)).filter(|role| role.stable).map(|role| role.app).collect()
    }

    /// Marks a machine as away: offline units are revoked and granted on other machines, stable ones stay.
    fn lose_machine(&mut self, turn: &mut PendingStep, machine: MachineId) {
        if self.phase == Phase::Recovering || self.sites[machine.index()].contact != Contact::Here {
            return;
        }
        self.set_contact(turn, machine, Contact::Away);
        let units: Vec<(RoleId, u32)> = self.sites[machine.index()].alloc.iter().collect();
        for (role, count) in units {
            if !(turn.setup.role(role).stable && turn.setup.rules.has(Rule::KeepStable)) {
                self.change(turn, Units { machine, role, count: -(count as i32) });
                turn.push_note(Note::Dropped(Units { machine, role, count }, Why::MachineTimeout));
            }
        }
        for app in self.stable_apps(turn.setup, machine) {
            turn.machine_away(app, machine);
        }
    }

    /// Registers a submitted application and starts its first master. A recovering FuxiMaster starts it when the window ends.
    fn submit(&mut self, turn: &mut PendingStep, app: AppId) {
        let tenant = self.tenants.entry(app).or_default();
        // A FuxiMaster that has started in the meantime may have done this already.
        if tenant.least == 0 && self.phase == Phase::Normal {
            self.replace_app(turn, app);
        }
    }

    /// Removes a completed application and revokes its remaining units.
    fn forget(&mut self, turn: &mut PendingStep, app: AppId) {
        let Some(tenant) = self.tenants.get(&app) else { return };
        for (&(machine, role), &count) in &tenant.held.clone() {
            self.alter(turn, Units { machine, role, count: -(count as i32) });
        }
        for role in turn.setup.roles_of(app) {
            self.accounts.remove(&role);
        }
        self.tenants.remove(&app);
    }

    /// Marks an application master as away and starts another one; no unit is revoked.
    fn lose_app(&mut self, turn: &mut PendingStep, app: AppId) {
        let Some(tenant) = self.tenants.get_mut(&app).filter(|_| self.phase == Phase::Normal) else { return };
        if tenant.contact == Contact::Here {
            tenant.contact = Contact::Away;
            turn.push_note(Note::AppAway(app));
        }
        self.replace_app(turn, app);
    }

    /// Orders a new master for an application; the previous one is superseded from now on.
    fn replace_app(&mut self, turn: &mut PendingStep, app: AppId) {
        let Some(tenant) = self.tenants.get_mut(&app) else { return };
        tenant.least = tenant.least.max(tenant.epoch) + 1;
        turn.start_app(app, tenant.least);
    }

    /// Processes the heartbeat of an application master. A master is requested to report if it is unknown, or if messages from it were
    /// lost.
    fn app_beat(&mut self, turn: &mut PendingStep, from: Sender, at: Position) {
        if self.refuses(turn, from) {
            return;
        }
        let tenant = &self.tenants[&from.app];
        let known = tenant.contact == Contact::Here && tenant.epoch == from.epoch;
        if !known || from.number != tenant.heard && turn.setup.rules.has(Rule::SequenceNumbers) {
            turn.ask(Endpoint::App(from.app, from.epoch), self.epoch);
        } else if self.phase == Phase::Normal && at != self.app_position(from.app) {
            turn.full_hint(from.app);
        }
    }

    /// Returns whether a message is from a superseded master, or from the master of a completed application. That master is ordered to
    /// stop.
    fn refuses(&self, turn: &mut PendingStep, from: Sender) -> bool {
        let tenant = self.tenants.get(&from.app);
        let over = tenant.is_none();
        let old =
            over || tenant.is_some_and(|tenant| !tenant.accepts(from.epoch)) && turn.setup.rules.has(Rule::Fencing);
        if old {
            turn.send(Endpoint::App(from.app, from.epoch), Message::Fenced);
        }
        old
    }
}
