//! A cluster under faults: the roles' step functions in an event loop with clocks and a network.
//!
//! The loop owns what the roles must not know: time, heartbeats and time-outs, who is dead, who hears whom, and how long
//! a message takes. All of it follows from the [`Script`] and its seed. What is in flight to a process that dies is
//! lost, as with a connection; what it sent still arrives. Every step is watched (see [`watch`]).

mod check;
pub mod log;
mod net;
pub mod plan;
mod strike;
pub mod watch;
pub mod work;

use crate::app::{self, AppMaster};
use crate::master::{self, Contact, Master, Phase};
use crate::message::{Message, Node, Output, Position};
use crate::setup::{AppId, Setup};
use crate::trial::Outcome;
use crate::tubo::{self, Tubo};
use log::Log;
use net::{Letter, Net};
use plan::Script;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Span, Time};
use plimsoll_sim::engine::Agenda;
use watch::Watch;

/// An event to come.
#[derive(Clone, Debug)]
enum Event {
    Deliver(Letter),
    TuboBeat(MachineId),
    AppBeat(AppId, u32),
    /// Is the Tubo still heard by the FuxiMaster of this epoch?
    CheckTubo(MachineId, u32),
    /// Is the application master still heard by the FuxiMaster of this epoch?
    CheckApp(AppId, u32),
    WindowEnds(u32),
    MasterStarts,
    AppStarts(AppId),
    TuboStarts(MachineId),
    Strike(usize),
    CutEnds(usize),
    Demand(usize),
    /// The application master loses patience with a machine.
    Patience(AppId, MachineId),
}

/// Says whether to go on.
pub type GoOn<'a> = dyn Fn() -> Result<()> + 'a;

/// Events that are run before anybody is asked whether to go on.
const EVENTS: u32 = 1 << 12;

/// Order of what happens at one instant: what ends, then what begins, then messages, then clocks.
const ENDS: u8 = 0;
const STRIKES: u8 = 1;
const MESSAGES: u8 = 2;
const CLOCKS: u8 = 3;

/// The masters of one application.
#[derive(Clone, Debug, Default)]
struct Masters {
    /// Those that live, oldest first; more than one only while FuxiMaster has wrongly given one up.
    alive: Vec<AppMaster>,
    /// The last one that died.
    dead: Option<AppMaster>,
    /// The epoch of the newest.
    epoch: u32,
    /// The least epoch that FuxiMaster has ordered.
    least: u32,
    /// The machine that the newest runs on, or is to start on.
    home: MachineId,
    starting: bool,
}

impl Masters {
    /// None lives yet; the first ones are spread over the machines.
    fn first(setup: &Setup, app: AppId) -> Masters {
        let home = MachineId(u32::from(app.0) % setup.machines.len().max(1) as u32);
        Masters { home, ..Masters::default() }
    }
}

/// The machine's side of the world.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    up: bool,
    /// Grows with every start: what was sent to an earlier life is lost.
    life: u32,
    /// Faults that cut it from FuxiMaster, and those that cut it from everybody.
    cut: u16,
    dark: u16,
}

/// A cluster under a script.
pub struct World<'a> {
    setup: &'a Setup,
    script: &'a Script,
    agenda: Agenda<Event>,
    now: Time,
    net: Net,
    master: Option<Master>,
    epoch: u32,
    tubos: Vec<Tubo>,
    hosts: Vec<Host>,
    apps: Vec<Masters>,
    /// Application masters that FuxiMaster does not hear: application, epoch, and the strike that cut them.
    cuts: Vec<(AppId, u32, usize)>,
    heard_tubo: Vec<Time>,
    heard_app: Vec<Time>,
    /// The ledger.
    pub watch: Watch,
    /// The log.
    pub log: Log,
}

impl<'a> World<'a> {
    /// A cluster at its start, with nothing running. `record` writes every message down.
    pub fn new(setup: &'a Setup, script: &'a Script, record: bool) -> World<'a> {
        let mut world = World {
            setup,
            script,
            agenda: Agenda::default(),
            now: Time::ZERO,
            net: Net::new(script),
            master: None,
            epoch: 0,
            tubos: setup.machine_ids().map(Tubo::new).collect(),
            hosts: vec![Host { up: true, ..Host::default() }; setup.machines.len()],
            apps: setup.app_ids().map(|app| Masters::first(setup, app)).collect(),
            cuts: Vec::new(),
            heard_tubo: vec![Time::ZERO; setup.machines.len()],
            heard_app: vec![Time::ZERO; setup.apps()],
            watch: Watch::new(setup, script),
            log: Log::new(record),
        };
        world.schedule(Time::ZERO, ENDS, Event::MasterStarts);
        for app in setup.app_ids() {
            world.schedule(Time::ZERO, ENDS, Event::AppStarts(app));
        }
        for machine in setup.machine_ids() {
            // Heartbeats are spread evenly, as those of machines that were not started at one instant.
            let offset = script.timing.beat.0 * u64::from(machine.0) / setup.machines.len().max(1) as u64;
            world.schedule(Time(offset), CLOCKS, Event::TuboBeat(machine));
        }
        for (at, demand) in script.demands.iter().enumerate() {
            world.schedule(demand.at, STRIKES, Event::Demand(at));
        }
        for (at, strike) in script.strikes.iter().enumerate() {
            world.schedule(strike.at, STRIKES, Event::Strike(at));
        }
        world
    }

    /// Runs to the end of the script, or to the first violation if `stop` says so, then checks agreement.
    pub fn run(&mut self, stop: bool) {
        while self.run_some(stop) {}
    }

    /// Runs some thousand events; whether there is more to do.
    pub fn run_some(&mut self, stop: bool) -> bool {
        let end = self.script.end();
        for _ in 0..EVENTS {
            let due = self.agenda.next_time().is_some_and(|time| time <= end);
            let Some((key, event)) = due.then(|| self.agenda.pop()).flatten() else {
                self.now = end;
                self.check_agreement();
                return false;
            };
            self.now = key.time;
            self.happen(event);
            if stop && !self.watch.violations.is_empty() {
                return false;
            }
        }
        true
    }

    /// The time of the simulation.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Messages sent so far, those included that were lost.
    pub fn messages(&self) -> u64 {
        self.net.sent
    }

    /// The outcome of the run.
    pub fn outcome(self) -> Outcome {
        Outcome { messages: self.net.sent, idle: self.net.idle, watch: self.watch }
    }

    fn schedule(&mut self, at: Time, class: u8, event: Event) {
        let _ = self.agenda.schedule(at, class, event);
    }

    fn after(&mut self, span: Span, class: u8, event: Event) {
        self.schedule(self.now + span, class, event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver(letter) => self.deliver(letter),
            Event::TuboBeat(machine) => self.tubo_beats(machine),
            Event::AppBeat(app, epoch) => self.app_beats(app, epoch),
            Event::CheckTubo(machine, epoch) => self.check_tubo(machine, epoch),
            Event::CheckApp(app, epoch) => self.check_app(app, epoch),
            Event::WindowEnds(epoch) if epoch == self.epoch => self.master_input(master::Input::WindowEnds),
            Event::WindowEnds(_) => {}
            Event::MasterStarts => self.start_master(),
            Event::AppStarts(app) => self.start_app(app),
            Event::TuboStarts(machine) => self.start_tubo(machine),
            Event::Strike(at) => self.strike(at),
            Event::CutEnds(at) => self.heal(at),
            Event::Demand(at) => {
                let demand = self.script.demands[at];
                let app = self.setup.role(demand.role).app;
                if let Some(work) = &mut self.watch.work {
                    work.wants(self.now, demand.role, demand.count);
                }
                self.app_input(app, 0, app::Input::Want(demand.role, demand.count));
            }
            Event::Patience(app, machine) => {
                if self.newest(app).is_some_and(|master| master.away.contains(&machine)) {
                    self.app_input(app, 0, app::Input::Move(machine));
                }
            }
        }
    }

    /// The newest master of an application, if it lives.
    fn newest(&self, app: AppId) -> Option<&AppMaster> {
        let masters = &self.apps[app.index()];
        masters.alive.last().filter(|master| master.epoch == masters.epoch)
    }

    fn master_input(&mut self, input: master::Input) {
        if let Some(master) = self.master.take() {
            let (master, outputs) = master.step(self.setup, input);
            self.master = Some(master);
            self.after_master(&outputs);
            self.act(Node::Master, outputs);
        }
    }

    /// A step of the master of an application: of this epoch, or of the newest for 0.
    fn app_input(&mut self, app: AppId, epoch: u32, input: app::Input) {
        let epoch = if epoch == 0 { self.apps[app.index()].epoch } else { epoch };
        let masters = &mut self.apps[app.index()].alive;
        let found = masters.iter().position(|master| master.epoch == epoch);
        let Some(found) = found else {
            // What the application wants is part of its own state, also while it has no master.
            if let (app::Input::Want(role, count), Some(dead)) = (input, &mut self.apps[app.index()].dead) {
                dead.want.set(role, count);
            }
            return;
        };
        let master = masters.remove(found);
        let away = self.script.patience.map(|patience| (patience, master.away.clone()));
        let (master, outputs) = master.step(self.setup, input);
        if let Some((patience, before)) = away {
            for &machine in master.away.difference(&before) {
                let event = Event::Patience(app, machine);
                let _ = self.agenda.schedule(self.now + patience, CLOCKS, event);
            }
        }
        let node = Node::App(app, master.epoch);
        self.watch.app_stepped(self.setup, &master, &outputs, &self.tubos);
        let masters = &mut self.apps[app.index()];
        if !master.fenced {
            masters.alive.insert(found, master);
        } else if masters.dead.as_ref().is_none_or(|dead| dead.epoch < master.epoch) {
            masters.dead = Some(master);
        }
        self.act(node, outputs);
    }

    fn tubo_input(&mut self, machine: MachineId, input: tubo::Input) {
        let tubo = std::mem::replace(&mut self.tubos[machine.index()], Tubo::new(machine));
        let (tubo, outputs) = tubo.step(self.setup, input);
        self.tubos[machine.index()] = tubo;
        self.after_tubo(machine, &outputs);
        self.act(Node::Tubo(machine), outputs);
    }

    /// Does what a step asks for.
    fn act(&mut self, from: Node, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(to, message) => self.post(from, to, message),
                Output::StartApp(app, least, machine) => {
                    self.check_home(app, machine);
                    let masters = &mut self.apps[app.index()];
                    masters.least = masters.least.max(least);
                    masters.home = machine;
                    if !std::mem::replace(&mut masters.starting, true) {
                        self.after(self.script.timing.app_start, ENDS, Event::AppStarts(app));
                    }
                }
                Output::Note(note) => self.log.note(self.now, self.setup, from, &note),
            }
        }
    }

    fn tubo_beats(&mut self, machine: MachineId) {
        self.after(self.script.timing.beat, CLOCKS, Event::TuboBeat(machine));
        if !self.hosts[machine.index()].up {
            return;
        }
        if self.is_quiet(machine) {
            // A heartbeat that would change nothing but the clock of FuxiMaster need not travel.
            if self.net.arrives() {
                self.heard_tubo[machine.index()] = self.now + self.net.shortest();
            }
        } else {
            self.tubo_input(machine, tubo::Input::Beat);
        }
    }

    /// Whether FuxiMaster and a Tubo hear each other, agree on what was said, and wait for nobody.
    fn is_quiet(&self, machine: MachineId) -> bool {
        let (tubo, host) = (&self.tubos[machine.index()], &self.hosts[machine.index()]);
        let master = self.master.as_ref().filter(|master| master.phase == Phase::Normal);
        host.cut + host.dark == 0
            && master.is_some_and(|master| {
                let site = &master.sites[machine.index()];
                site.contact == Contact::Here && site.is_settled() && master.position(machine) == tubo.at
            })
            && tubo.caps.iter().all(|(role, count)| count <= tubo.plan(role))
    }

    fn app_beats(&mut self, app: AppId, epoch: u32) {
        if self.apps[app.index()].alive.iter().any(|master| master.epoch == epoch) {
            self.after(self.script.timing.beat, CLOCKS, Event::AppBeat(app, epoch));
            self.app_input(app, epoch, app::Input::Beat);
        }
    }

    fn check_tubo(&mut self, machine: MachineId, epoch: u32) {
        if epoch != self.epoch {
            return;
        }
        let due = self.heard_tubo[machine.index()] + self.script.timing.tubo_timeout;
        if due <= self.now {
            self.master_input(master::Input::TuboTimeout(machine));
        }
        let next = if due > self.now { due } else { self.now + self.script.timing.tubo_timeout };
        self.schedule(next, CLOCKS, Event::CheckTubo(machine, epoch));
    }

    fn check_app(&mut self, app: AppId, epoch: u32) {
        if epoch != self.epoch {
            return;
        }
        let due = self.heard_app[app.index()] + self.script.timing.app_timeout;
        if due <= self.now {
            self.master_input(master::Input::AppTimeout(app));
        }
        let next = if due > self.now { due } else { self.now + self.script.timing.app_timeout };
        self.schedule(next, CLOCKS, Event::CheckApp(app, epoch));
    }

    fn deliver(&mut self, letter: Letter) {
        if !self.is_alive(letter.to, letter.life) || self.is_cut(letter.from, letter.to) {
            return;
        }
        self.log.delivered(self.now, self.setup, &letter);
        match letter.to {
            Node::Master => {
                match letter.from {
                    Node::Tubo(machine) => self.heard_tubo[machine.index()] = self.now,
                    // Only the master of the moment keeps its application alive.
                    Node::App(app, epoch) if self.is_accepted(app, epoch) => self.heard_app[app.index()] = self.now,
                    Node::App(..) | Node::Master => {}
                }
                self.master_input(master::Input::Message(letter.message));
            }
            Node::App(app, epoch) => self.app_input(app, epoch, app::Input::Message(letter.message)),
            Node::Tubo(machine) => {
                let before = self.planner(machine, &letter.message);
                self.tubo_input(machine, tubo::Input::Message(letter.message));
                self.check_planner(machine, before);
            }
        }
    }

    fn is_accepted(&self, app: AppId, epoch: u32) -> bool {
        self.master.as_ref().is_some_and(|master| master.tenants[app.index()].accepts(epoch))
    }

    /// How far FuxiMaster has come with a machine: for checks.
    fn position(&self, machine: MachineId) -> Option<Position> {
        self.master.as_ref().map(|master| master.position(machine))
    }

    fn post(&mut self, from: Node, to: Node, message: Message) {
        let to = match to {
            Node::App(app, 0) => Node::App(app, self.newest(app).map_or(0, |master| master.epoch)),
            known => known,
        };
        let life = self.life(to);
        let reachable = self.is_alive(to, life) && !self.is_cut(from, to);
        self.net.sent += 1;
        if !reachable {
            self.log.unreachable(self.now, self.setup, from, to, &message);
            return;
        }
        let letter = Letter { from, to, life, sent: self.now, message };
        for (at, letter) in self.net.carry(self.now, letter) {
            self.schedule(at, MESSAGES, Event::Deliver(letter));
        }
    }
}
