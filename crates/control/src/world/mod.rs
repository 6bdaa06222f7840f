//! A cluster under faults: the roles' step functions in an event loop with clocks and a network, between a scheduler and its machines.
//!
//! The loop owns the state that is hidden from the roles: time, heartbeats and time-outs, dead processes, partitions, and message delays.
//! All of it follows from the [`Script`] and its seed. Messages in flight to a dying process are lost, as with a connection; messages from
//! it still arrive. Every step is checked (see [`watch`]).
//!
//! It is a [`Control`](plimsoll_sim::backend::Control) of the engine, which is the scheduler of FuxiMaster: submitted rows become roles of
//! the applications of their jobs, grants of the engine are inputs of FuxiMaster, and the results (`places`) are reported to the engine.
//! While FuxiMaster is dead or in its window, no round is run.

mod avoid;
mod check;
mod clock;
mod follow;
mod inbox;
pub mod log;
mod net;
mod places;
pub mod plan;
mod seam;
mod steps;
mod strike;
pub mod watch;
pub mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::app::{self, AppMaster};
use crate::master::{self, Master, Phase};
use crate::message::{Endpoint, Message, Output, Position, Units};
use crate::rules::Rules;
use crate::setup::{AppId, RoleId, Setup};
use crate::tubo::{self, Tubo};
use inbox::Inbox;
use log::Log;
use net::{Letter, Net};
use places::Places;
use plan::{Fault, Script};
use plimsoll_base::units::{JobId, MachineId, Resources, Span, Time};
use plimsoll_sim::backend::{Carried, ControlOrder};
use plimsoll_sim::engine::Agenda;
use plimsoll_sim::workload::synthetic::random::stream;
use rand_chacha::ChaCha8Rng;
use strike::FaultKind;
use watch::Watch;

/// An event to come.
#[derive(Clone, Debug)]
enum Event {
    Deliver(Letter),
    /// A client submits an application to FuxiMaster.
    Submit(AppId),
    TuboBeat(MachineId),
    AppBeat(AppId, u32),
    /// Does this Tubo still send heartbeats to the FuxiMaster of this epoch?
    CheckTubo(MachineId, u32),
    /// Does this application master still send heartbeats to the FuxiMaster of this epoch?
    CheckApp(AppId, u32),
    WindowEnds(u32),
    MasterStarts,
    AppStarts(AppId, u32),
    TuboStarts(MachineId),
    Strike(usize),
    /// One of the processes of a kind fails.
    Fails(FaultKind),
    AppFails(AppId, u32, Fault),
    CutEnds(usize),
    /// FuxiMaster has gone through the messages on its desk.
    Decided(u32),
    /// The application master loses patience with a machine.
    Patience(AppId, MachineId),
    /// A worker on a machine fails, unless others have started or stopped there since this was drawn.
    WorkerFails(MachineId, u32),
    /// No worker of an application has failed on a machine for long.
    AppForgives(AppId, MachineId),
    /// A machine has not been blamed for long.
    Forgive(MachineId),
}

/// Order of what happens at one instant: what ends, then what begins, then messages, then clocks.
const ENDS: u8 = 0;
const STRIKES: u8 = 1;
const MESSAGES: u8 = 2;
const CLOCKS: u8 = 3;

/// The masters of one application.
#[derive(Clone, Debug, Default)]
struct Masters {
    /// The live ones, oldest first; more than one only while FuxiMaster wrongly considers one lost.
    alive: Vec<AppMaster>,
    /// The last one that died.
    dead: Option<AppMaster>,
    /// The epoch of the newest.
    epoch: u32,
    /// The least epoch that FuxiMaster has ordered.
    least: u32,
    /// The machine that the newest runs on, or is to start on.
    home: Option<MachineId>,
    starting: bool,
    /// That start was ordered by FuxiMaster; else the last one is to be restarted where it was.
    ordered: bool,
    /// How often a start was scheduled: only the last one counts.
    starts: u32,
    /// How often a failure was drawn.
    failures: u32,
    /// When one of its workers last failed on a machine.
    failed: BTreeMap<MachineId, Time>,
    /// Units wanted before there was any master.
    first: Vec<(RoleId, u32)>,
    /// All its tasks are over.
    over: bool,
    /// A heartbeat is scheduled; its silence is being looked at.
    beating: bool,
    checked: bool,
    /// When the first was started.
    since: Option<Time>,
}

/// The machine's side of the world.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    up: bool,
    /// Incremented at each start: messages to an earlier life are lost.
    life: u32,
    /// Active faults: partitions from FuxiMaster, partitions from all peers, and outages.
    cut: u16,
    dark: u16,
    down: u16,
    beating: bool,
    checked: bool,
    /// The scheduler may use it.
    open: bool,
    /// Workers there, and how often the next failure of one was drawn.
    workers: u64,
    drawn: u32,
    /// When it was last blamed.
    blamed: Time,
}

/// A role on the engine's side.
#[derive(Clone, Copy, Debug)]
struct RoleState {
    row: u64,
    /// The resources of one unit.
    unit: Resources,
    /// Its tasks that are not over.
    left: u32,
    /// The engine knows that they are wanted.
    listed: bool,
}

/// A cluster under a script.
pub struct World {
    setup: Setup,
    script: Script,
    agenda: Agenda<Event>,
    now: Time,
    net: Net,
    master: Option<Master>,
    epoch: u32,
    tubos: Vec<Tubo>,
    hosts: Vec<Host>,
    apps: BTreeMap<AppId, Masters>,
    /// Application masters without a connection to FuxiMaster: application, epoch, and the fault.
    cuts: Vec<(AppId, u32, usize)>,
    heard_tubo: Vec<Time>,
    heard_app: HashMap<AppId, Time>,
    jobs: HashMap<JobId, AppId>,
    roles: HashMap<u64, RoleId>,
    lines: HashMap<RoleId, RoleState>,
    places: Places,
    /// The machines that the engine keeps the tasks of a role from.
    barred: BTreeMap<RoleId, BTreeSet<MachineId>>,
    /// Grants that wait until the Tubo acknowledges earlier revocations.
    postponed: Vec<Units<u32>>,
    desk: Inbox,
    /// The dice of each kind of process that fails.
    dice: [ChaCha8Rng; 4],
    /// A machine on which recovery has restored more units than fit.
    overfull: Option<MachineId>,
    /// Violations end the run.
    strict: bool,
    /// The run ends after this span without any event.
    settles: Option<Span>,
    /// When the engine last exchanged a message, and when a task of an offline row last started or ended.
    moved: Time,
    worked: Time,
    names: Vec<String>,
    /// The ledger.
    pub watch: Watch,
    /// The log.
    pub log: Log,
}

impl World {
    /// A cluster before the first event, under these rules; the engine reports the machines. `names` are those of the rows in reports.
    pub fn new(rules: Rules, script: Script, names: Vec<String>) -> World {
        let mut setup = Setup::new(Vec::new());
        setup.rules = rules;
        setup.order_by_hints = script.order_by_hints;
        let dice = FaultKind::ALL.map(|kind| stream(script.seed, &format!("control/failures {kind:?}")));
        let (net, desk, watch) = (Net::new(&script), Inbox::new(&script), Watch::new(&script));
        World {
            setup,
            script,
            agenda: Agenda::default(),
            now: Time::ZERO,
            net,
            master: None,
            epoch: 1,
            tubos: Vec::new(),
            hosts: Vec::new(),
            apps: BTreeMap::new(),
            cuts: Vec::new(),
            heard_tubo: Vec::new(),
            heard_app: HashMap::new(),
            jobs: HashMap::new(),
            roles: HashMap::new(),
            lines: HashMap::new(),
            places: Places::default(),
            barred: BTreeMap::new(),
            postponed: Vec::new(),
            desk,
            dice,
            overfull: None,
            strict: false,
            settles: None,
            moved: Time::ZERO,
            worked: Time::ZERO,
            names,
            watch,
            log: Log::new(false),
        }
    }

    /// The same, which writes every message down.
    pub fn recorded(self) -> World {
        World { log: Log::new(true), ..self }
    }

    /// The same, but continues without work: until all roles must agree, long after the last fault, start and end. Messages are lost and
    /// duplicated until the last fault is over.
    pub fn to_the_end(self) -> World {
        let settles = self.script.settles();
        let calm = self.script.calm();
        World { settles: Some(settles), net: self.net.until(calm), ..self }
    }

    /// When it ends if nothing more happens.
    fn rest(&self) -> Option<Time> {
        self.settles.map(|span| self.script.calm().max(self.moved) + span)
    }

    /// The same, which ends with its first violation.
    pub fn strict(self) -> World {
        World { strict: true, ..self }
    }

    /// Messages sent so far, those included that were lost, and of them the heartbeats that would have changed nothing and were
    /// only counted.
    pub fn messages(&self) -> (u64, u64) {
        let idle = self.idle_beats();
        (self.net.sent + idle, idle)
    }

    /// The run is over: all roles must agree, unless a violation has ended it.
    pub fn finish(&mut self, end: Time) {
        if self.strict && !self.watch.violations.is_empty() {
            return;
        }
        self.now = end;
        self.check_agreement();
        self.close_accounts();
    }

    /// The costs of it all, up to the end of the run. Closes the accounts.
    pub fn carried(&mut self, end: Time) -> Carried {
        self.now = end;
        self.watch.work.close(end);
        let down = self.watch.down.0.map_or(0, |since| end.since(since).0) + self.watch.down.1.0;
        self.desk.rest(end);
        let load = &mut self.desk.load;
        let mut times = std::mem::take(&mut load.response_us);
        times.sort_unstable();
        let sum: u128 = times.iter().map(|us| u128::from(*us)).sum();
        let response_us = sum.checked_div(times.len() as u128).map(|mean| {
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            [mean as u64, at(99), at(100)]
        });
        let (requests, granted, busy, peak_requests) = (load.requests, load.granted, load.busy, load.peak);
        Carried {
            faults: self.watch.faults,
            failed: self.watch.failed,
            shunned: self.watch.shunned,
            messages: self.messages().0,
            requests,
            granted,
            busy,
            down: Span(down),
            response_us,
            peak_requests,
            online: self.watch.work.online,
            offline: self.watch.work.offline,
            harmed: self.watch.harmed,
            violations: self.watch.violations.len() as u64,
        }
    }

    /// The description of the cluster.
    pub fn setup(&self) -> &Setup {
        &self.setup
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
            Event::Submit(app) => self.master_input(master::MasterInput::Submit(app)),
            Event::TuboBeat(machine) => self.tubo_beats(machine),
            Event::AppBeat(app, epoch) => self.app_beats(app, epoch),
            Event::CheckTubo(machine, epoch) => self.check_tubo(machine, epoch),
            Event::CheckApp(app, epoch) => self.check_app(app, epoch),
            Event::WindowEnds(epoch) if epoch == self.epoch => self.master_input(master::MasterInput::WindowEnds),
            Event::WindowEnds(_) => {}
            Event::MasterStarts => self.start_master(),
            Event::AppStarts(app, start) => {
                if self.apps.get(&app).is_some_and(|masters| masters.starts == start) {
                    self.start_app(app);
                }
            }
            Event::TuboStarts(machine) => self.start_tubo(machine),
            Event::Strike(at) => self.strike(at),
            Event::Fails(kind) => self.fails(kind, false),
            Event::AppFails(app, epoch, fault) => {
                if self.newest(app).is_some_and(|master| master.epoch == epoch) {
                    self.strike_now(fault);
                    // One that is only cut off may fail again.
                    if matches!(fault, Fault::AppCut(..)) {
                        self.app_fails(app, epoch);
                    }
                }
            }
            Event::CutEnds(at) => self.heal(at),
            Event::WorkerFails(machine, drawn) => self.worker_fails(machine, drawn),
            Event::AppForgives(app, machine) => self.app_forgives(app, machine),
            Event::Forgive(machine) => self.forgive(machine),
            Event::Decided(epoch) => self.decided(epoch),
            Event::Patience(app, machine) => {
                if self.newest(app).is_some_and(|master| master.away.contains(&machine)) {
                    self.app_input(app, 0, app::AppInput::Move(machine));
                }
            }
        }
    }

    /// The newest master of an application, if it lives.
    fn newest(&self, app: AppId) -> Option<&AppMaster> {
        let masters = self.apps.get(&app)?;
        masters.alive.last().filter(|master| master.epoch == masters.epoch)
    }

    fn is_normal(&self) -> bool {
        self.master.as_ref().is_some_and(|master| master.phase == Phase::Normal)
    }

    fn master_input(&mut self, input: master::MasterInput) {
        let Some(master) = self.master.take() else { return };
        let (master, outputs) = master.step(&self.setup, input);
        self.master = Some(master);
        self.after_master(&outputs);
        self.follow(&outputs);
        self.act(Endpoint::Master, outputs);
    }

    /// Does what a step asks for.
    fn act(&mut self, from: Endpoint, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(to, message) => self.post(from, to, message),
                Output::StartApp(app, least) => {
                    let Some(masters) = self.apps.get_mut(&app) else { continue };
                    masters.least = masters.least.max(least);
                    // One that is to start already will do; not one that is only to be back some time.
                    let will_do = masters.starting && masters.ordered;
                    if !will_do {
                        (masters.starting, masters.ordered) = (true, true);
                        masters.starts += 1;
                        self.places.order(ControlOrder::Home { app: app.0, last: masters.home });
                    }
                }
                Output::Note(note) => self.log.record_note(self.now, &self.setup, from, &note),
            }
        }
    }

    /// The scheduler has chosen the machine of a master.
    fn housed(&mut self, app: AppId, machine: MachineId) {
        self.check_home(app, machine);
        let Some(masters) = self.apps.get_mut(&app) else { return };
        masters.home = Some(machine);
        let start = masters.starts;
        self.after(self.script.timing.app_start, ENDS, Event::AppStarts(app, start));
    }

    fn deliver(&mut self, letter: Letter) {
        if !self.is_alive(letter.to, letter.life) || self.is_cut(letter.from, letter.to) {
            return;
        }
        self.log.delivered(self.now, &self.setup, &letter);
        match letter.to {
            Endpoint::Master => {
                match letter.from {
                    Endpoint::Tubo(machine) => self.heard_tubo[machine.index()] = self.now,
                    // Only the master of the moment keeps its application alive.
                    Endpoint::App(app, epoch) if self.is_accepted(app, epoch) => {
                        self.heard_app.insert(app, self.now);
                    }
                    Endpoint::App(..) | Endpoint::Master => {}
                }
                self.put_on_desk(letter);
            }
            Endpoint::App(app, epoch) => self.app_input(app, epoch, app::AppInput::Message(letter.message)),
            Endpoint::Tubo(machine) => {
                let before = self.planner(machine, &letter.message);
                self.tubo_input(machine, tubo::TuboInput::Message(letter.message));
                self.check_planner(machine, before);
            }
        }
    }

    fn is_accepted(&self, app: AppId, epoch: u32) -> bool {
        let tenant = self.master.as_ref().and_then(|master| master.tenants.get(&app));
        tenant.is_some_and(|tenant| tenant.accepts(epoch))
    }

    /// How far FuxiMaster has come with a machine: for checks.
    fn position(&self, machine: MachineId) -> Option<Position> {
        self.master.as_ref().map(|master| master.position(machine))
    }

    fn post(&mut self, from: Endpoint, to: Endpoint, message: Message) {
        let to = match to {
            Endpoint::App(app, 0) => Endpoint::App(app, self.newest(app).map_or(0, |master| master.epoch)),
            known => known,
        };
        let life = self.life(to);
        let reachable = self.is_alive(to, life) && !self.is_cut(from, to);
        for node in [from, to] {
            match node {
                Endpoint::Tubo(machine) => self.arm_tubo(machine),
                Endpoint::App(app, _) => self.arm_app(app),
                Endpoint::Master => {}
            }
        }
        if !reachable {
            self.net.sent += 1;
            self.log.unreachable(self.now, &self.setup, from, to, &message);
            return;
        }
        let letter = Letter { from, to, life, sent: self.now, arrived: self.now, message };
        for (at, letter) in self.net.carry(self.now, letter) {
            self.schedule(at, MESSAGES, Event::Deliver(letter));
        }
    }
}
