//! The state of a small cluster: the roles of `crates/control/src`, the messages in flight, and a ledger.

use std::sync::Arc;

use plimsoll::control::app::AppMaster;
use plimsoll::control::counts::Counts;
use plimsoll::control::master::Master;
use plimsoll::control::message::{Endpoint, Message};
use plimsoll::control::setup::{AppId, Setup};
use plimsoll::control::tubo::Tubo;
use plimsoll::units::MachineId;

/// The numbers of machines and applications.
pub const MACHINES: usize = 2;
pub const APPS: usize = 2;

/// The current FuxiMaster, if it is alive, and the epoch of the last one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chief {
    pub master: Option<Master>,
    pub epoch: u32,
}

/// The masters of one application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Masters {
    /// The newest master, if it is alive.
    pub newest: Option<AppMaster>,
    /// An older master that is still alive although another one was started.
    pub old: Option<AppMaster>,
    /// The state that the last dead master left on disk.
    pub dead: Option<AppMaster>,
    /// The epoch of the newest, alive or dead.
    pub epoch: u32,
    /// The least epoch of a new master, as last requested by FuxiMaster.
    pub least: u32,
    /// Whether the links of FuxiMaster to the newest and to the old master are cut.
    pub cut: [bool; 2],
}

impl Masters {
    pub fn with_epoch(&self, epoch: u32) -> Option<&AppMaster> {
        [&self.newest, &self.old].into_iter().flatten().find(|master| master.epoch == epoch)
    }

    pub fn is_cut(&self, epoch: u32) -> bool {
        let side = |one: &Option<AppMaster>| one.as_ref().is_some_and(|master| master.epoch == epoch);
        side(&self.newest) && self.cut[0] || side(&self.old) && self.cut[1]
    }
}

/// A machine with its Tubo.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub tubo: Tubo,
    /// The Tubo is alive.
    pub up: bool,
    /// The link to FuxiMaster is cut.
    pub cut: bool,
    /// All links are cut.
    pub dark: bool,
    /// The caps come from disk, and no full cap message has arrived since.
    pub disk: bool,
}

/// Messages in flight from one node to another, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    pub from: Endpoint,
    pub to: Endpoint,
    pub letters: Vec<Message>,
}

/// Facts that no node of the cluster stores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// Running workers of stable roles that no application master has agreed to stop, by machine.
    pub need: [Counts; MACHINES],
    /// Workers of stable roles that the last plan of their application master contains, by machine.
    pub wanted: [Counts; MACHINES],
    /// The newest master of each application that has acted.
    pub planner: [u32; APPS],
    /// Faults so far.
    pub faults: u8,
    /// The number of request changes of each application.
    pub wants: [u8; APPS],
    /// The number of times that an application has given up its units on an unreachable machine.
    pub moves: u8,
}

/// A state of the whole cluster. Parts that a step does not modify are shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub chief: Arc<Chief>,
    pub apps: [Arc<Masters>; APPS],
    pub hosts: [Arc<Host>; MACHINES],
    /// Messages in flight to FuxiMaster, to each application and to each Tubo.
    pub inboxes: [Arc<Vec<Line>>; 1 + APPS + MACHINES],
    pub ledger: Arc<Ledger>,
}

/// Returns the index of a node's inbox.
pub fn inbox(node: Endpoint) -> usize {
    match node {
        Endpoint::Master => 0,
        Endpoint::App(app, _) => 1 + app.index(),
        Endpoint::Tubo(machine) => 1 + APPS + machine.index(),
    }
}

impl State {
    /// Creates the state before FuxiMaster and the application masters have been started.
    pub fn new(setup: &Setup) -> State {
        let host = |machine| Host { tubo: Tubo::new(machine), up: true, cut: false, dark: false, disk: false };
        let hosts: Vec<Arc<Host>> = setup.machine_ids().map(|machine| Arc::new(host(machine))).collect();
        State {
            chief: Arc::new(Chief { master: None, epoch: 0 }),
            apps: std::array::from_fn(|_| Arc::default()),
            hosts: hosts.try_into().expect("the setup has MACHINES machines"),
            inboxes: std::array::from_fn(|_| Arc::default()),
            ledger: Arc::default(),
        }
    }

    pub fn host(&self, machine: MachineId) -> &Host {
        &self.hosts[machine.index()]
    }

    pub fn app(&self, app: AppId) -> &Masters {
        &self.apps[app.index()]
    }

    pub fn host_mut(&mut self, machine: MachineId) -> &mut Host {
        Arc::make_mut(&mut self.hosts[machine.index()])
    }

    pub fn app_mut(&mut self, app: AppId) -> &mut Masters {
        Arc::make_mut(&mut self.apps[app.index()])
    }

    pub fn is_alive(&self, node: Endpoint) -> bool {
        match node {
            Endpoint::Master => self.chief.master.is_some(),
            Endpoint::App(app, epoch) => self.app(app).with_epoch(epoch).is_some(),
            Endpoint::Tubo(machine) => self.host(machine).up,
        }
    }

    /// Returns whether the link between two nodes is cut.
    pub fn is_cut(&self, one: Endpoint, other: Endpoint) -> bool {
        match (one, other) {
            (Endpoint::Tubo(machine), Endpoint::Master) | (Endpoint::Master, Endpoint::Tubo(machine)) => {
                self.host(machine).cut || self.host(machine).dark
            }
            (Endpoint::Tubo(machine), _) | (_, Endpoint::Tubo(machine)) => self.host(machine).dark,
            (Endpoint::App(app, epoch), Endpoint::Master) | (Endpoint::Master, Endpoint::App(app, epoch)) => {
                self.app(app).is_cut(epoch)
            }
            _ => false,
        }
    }

    /// Sends a message; it is lost if the receiver is dead or the link is cut.
    pub fn post(&mut self, from: Endpoint, to: Endpoint, message: Message) {
        if !self.is_alive(to) || self.is_cut(from, to) {
            return;
        }
        let lines = Arc::make_mut(&mut self.inboxes[inbox(to)]);
        match lines.binary_search_by_key(&(from, to), |line| (line.from, line.to)) {
            Ok(at) => lines[at].letters.push(message),
            Err(at) => lines.insert(at, Line { from, to, letters: vec![message] }),
        }
    }

    /// Takes the message at a position of a line. The message stays in the line if it is to arrive twice.
    pub fn receive(&mut self, from: Endpoint, to: Endpoint, place: usize, stays: bool) -> Message {
        let lines = Arc::make_mut(&mut self.inboxes[inbox(to)]);
        let at = lines.binary_search_by_key(&(from, to), |line| (line.from, line.to)).expect("the line is there");
        if stays {
            return lines[at].letters[place].clone();
        }
        let message = lines[at].letters.remove(place);
        if lines[at].letters.is_empty() {
            lines.remove(at);
        }
        message
    }

    /// Drops messages that will have no effect.
    pub fn forget(&mut self, from: Endpoint, to: Endpoint, gone: impl Fn(&Message) -> bool) {
        if self.line(from, to).iter().any(&gone) {
            let lines = Arc::make_mut(&mut self.inboxes[inbox(to)]);
            lines
                .iter_mut()
                .filter(|line| (line.from, line.to) == (from, to))
                .for_each(|line| line.letters.retain(|letter| !gone(letter)));
            lines.retain(|line| !line.letters.is_empty());
        }
    }

    /// Returns the messages in flight from one node to another.
    pub fn line(&self, from: Endpoint, to: Endpoint) -> &[Message] {
        let lines = &self.inboxes[inbox(to)];
        let found = lines.binary_search_by_key(&(from, to), |line| (line.from, line.to));
        found.map_or(&[], |at| lines[at].letters.as_slice())
    }

    /// Returns all lines with messages in flight.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.inboxes.iter().flat_map(|lines| lines.iter())
    }

    /// Drops the messages in flight to a node that dies, or between two nodes with a cut link.
    pub fn lose(&mut self, gone: impl Fn(Endpoint, Endpoint) -> bool) {
        for lines in &mut self.inboxes {
            if lines.iter().any(|line| gone(line.from, line.to)) {
                Arc::make_mut(lines).retain(|line| !gone(line.from, line.to));
            }
        }
    }
}
