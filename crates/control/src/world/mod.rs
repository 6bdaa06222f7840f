//! A cluster under faults: an event loop that connects the step functions of the processes with clocks, a network and the engine.
//!
//! The loop owns the state that is hidden from the processes: time, heartbeats and time-outs, dead processes, partitions, and message
//! delays. All of it follows from the [`Script`] and its seed. Messages in flight to a dying process are lost, as with a connection;
//! messages from it still arrive. Every step is checked (see [`watch`]).
//!
//! The world is a [`Control`](plimsoll_sim::backend::Control) of the engine, which is the scheduler of FuxiMaster. Submitted rows become
//! roles, and their jobs applications. Grants of the engine are inputs of FuxiMaster, and the results (`places`) are reported to the
//! engine. While FuxiMaster is dead, busy or in its window, no scheduling round runs.

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

/// A future event.
#[derive(Clone, Debug)]
enum Event {
    Deliver(Letter),
    /// A client submits an application to FuxiMaster.
    Submit(AppId),
    TuboBeat(MachineId),
    AppBeat(AppId, u32),
    /// Checks whether a Tubo still sends heartbeats to the FuxiMaster of this epoch.
    CheckTubo(MachineId, u32),
    /// Checks whether an application master still sends heartbeats to the FuxiMaster of this epoch.
    CheckApp(AppId, u32),
    WindowEnds(u32),
    MasterStarts,
    AppStarts(AppId, u32),
    TuboStarts(MachineId),
    Strike(usize),
    /// A process of a kind fails.
    Fails(FaultKind),
    AppFails(AppId, u32, Fault),
    CutEnds(usize),
    /// The FuxiMaster of this epoch has processed a batch of messages.
    Decided(u32),
    /// The patience of an application master with an unreachable machine ends.
    Patience(AppId, MachineId),
    /// A worker on a machine fails, unless workers have started or stopped there since this failure was drawn.
    WorkerFails(MachineId, u32),
    /// Clears the failures of an application's workers on a machine, if none has failed there for the hold time.
    AppForgives(AppId, MachineId),
    /// Clears the reports against a machine, if there was none for the hold time.
    Forgive(MachineId),
}

/// Classes of events at one instant, in order: ends of faults and starts of processes, then faults, then messages, then clocks.
const ENDS: u8 = 0;
const STRIKES: u8 = 1;
const MESSAGES: u8 = 2;
const CLOCKS: u8 = 3;

/// The masters of one application.
#[derive(Clone, Debug, Default)]
struct Masters {
    /// The live masters, oldest first. There is more than one only while FuxiMaster wrongly considers one lost.
    alive: Vec<AppMaster>,
    /// The last master that died.
    dead: Option<AppMaster>,
    /// The epoch of the newest master.
    epoch: u32,
    /// The least epoch of a new master, as last requested by FuxiMaster.
    least: u32,
    /// The machine of the newest master, or the one chosen for the next.
    home: Option<MachineId>,
    starting: bool,
    /// Whether FuxiMaster has ordered the start; otherwise the last master is restarted on its machine.
    ordered: bool,
    /// The number of scheduled starts; only the last one takes effect.
    starts: u32,
    /// The number of failures drawn.
    failures: u32,
    /// By machine, when a worker of the application last failed there.
    failed: BTreeMap<MachineId, Time>,
    /// Requested units by role, from the time before the first master started.
    first: Vec<(RoleId, u32)>,
    /// Whether all tasks of the application are complete.
    over: bool,
    /// Whether a heartbeat is scheduled, and (`checked`) whether a check of the time-out is scheduled.
    beating: bool,
    checked: bool,
    /// When the first master was started.
    since: Option<Time>,
}

/// The state of a machine and of the process of its Tubo.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    up: bool,
    /// Incremented at each start; messages to an earlier life are lost.
    life: u32,
    /// The numbers of active faults: partitions from FuxiMaster, partitions from all peers, and outages.
    cut: u16,
    dark: u16,
    down: u16,
    beating: bool,
    checked: bool,
    /// Whether the scheduler may use the machine.
    open: bool,
    /// The number of workers on the machine when the next failure of one was last drawn, and the number of draws.
    workers: u64,
    drawn: u32,
    /// When the machine was last reported by an application.
    blamed: Time,
}

/// The engine's view of a role.
#[derive(Clone, Copy, Debug)]
struct RoleState {
    row: u64,
    /// The resources of one unit.
    unit: Resources,
    /// The number of its incomplete tasks.
    left: u32,
    /// Whether the engine has its request, so that its waiting tasks are in the queue.
    listed: bool,
}

/// A cluster that runs under a script.
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
    /// Partitions between application masters and FuxiMaster: application, epoch, and number of the fault.
    cuts: Vec<(AppId, u32, usize)>,
    heard_tubo: Vec<Time>,
    heard_app: HashMap<AppId, Time>,
    jobs: HashMap<JobId, AppId>,
    roles: HashMap<u64, RoleId>,
    lines: HashMap<RoleId, RoleState>,
    places: Places,
    /// By role, the machines that the engine excludes for its tasks.
    barred: BTreeMap<RoleId, BTreeSet<MachineId>>,
    /// Grants that wait until the Tubo acknowledges earlier revocations, or until FuxiMaster has received the request.
    postponed: Vec<Units<u32>>,
    inbox: Inbox,
    /// The random streams of the kinds of processes that fail.
    dice: [ChaCha8Rng; 4],
    /// A machine with more units after a recovery than fit.
    overfull: Option<MachineId>,
    /// Whether a violation ends the run.
    strict: bool,
    /// The run ends after this span without an event.
    settles: Option<Span>,
    /// When the world last exchanged facts or orders with the engine, and when a task of an offline row was last submitted, started or
    /// completed.
    moved: Time,
    worked: Time,
    names: Vec<String>,
    /// The ledger of the run.
    pub watch: Watch,
    /// The log of the run.
    pub log: Log,
}

impl World {
    /// Creates a cluster under these rules before its first event; the engine reports the machines later. `names` are the names of the rows
    /// in reports.
    pub fn new(rules: Rules, script: Script, names: Vec<String>) -> World {
        let mut setup = Setup::new(Vec::new());
        setup.rules = rules;
        setup.order_by_hints = script.order_by_hints;
        let dice = FaultKind::ALL.map(|kind| stream(script.seed, &format!("control/failures {kind:?}")));
        let (net, inbox, watch) = (Net::new(&script), Inbox::new(&script), Watch::new(&script));
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
            inbox,
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

    /// Enables the log of all messages.
    pub fn recorded(self) -> World {
        World { log: Log::new(true), ..self }
    }

    /// Makes the run continue when the work is complete, until all processes must agree: long after the last fault and the last start or
    /// end of a task. Messages are lost and duplicated only until the last fault is over.
    pub fn to_the_end(self) -> World {
        let settles = self.script.settles();
        let calm = self.script.calm();
        World { settles: Some(settles), net: self.net.until(calm), ..self }
    }

    /// Returns the instant at which the run ends unless another event occurs.
    fn rest(&self) -> Option<Time> {
        self.settles.map(|span| self.script.calm().max(self.moved) + span)
    }

    /// Makes the first violation end the run.
    pub fn strict(self) -> World {
        World { strict: true, ..self }
    }

    /// Returns the number of messages sent so far, lost ones included, and how many of them were heartbeats without effect, which are only
    /// counted.
    pub fn messages(&self) -> (u64, u64) {
        let idle = self.idle_beats();
        (self.net.sent + idle, idle)
    }

    /// Ends the run and checks that all processes agree, unless a violation has ended it.
    pub fn finish(&mut self, end: Time) {
        if self.strict && !self.watch.violations.is_empty() {
            return;
        }
        self.now = end;
        self.check_agreement();
        self.close_accounts();
    }

    /// Returns the costs of the control plane up to the end of the run, and closes the accounts.
    pub fn carried(&mut self, end: Time) -> Carried {
        self.now = end;
        self.watch.work.close(end);
        let down = self.watch.down.0.map_or(0, |since| end.since(since).0) + self.watch.down.1.0;
        self.inbox.rest(end);
        let load = &mut self.inbox.load;
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
            blacklisted: self.watch.blacklisted,
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

    /// Returns the description of the cluster.
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
                    // A master that is only partitioned may fail again.
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

    /// Returns the newest master of an application, if it is alive.
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

    /// Executes the outputs of a step.
    fn act(&mut self, from: Endpoint, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(to, message) => self.post(from, to, message),
                Output::StartApp(app, least) => {
                    let Some(masters) = self.apps.get_mut(&app) else { continue };
                    masters.least = masters.least.max(least);
                    // A start that FuxiMaster has already ordered suffices; a scheduled restart does not.
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

    /// Records the machine that the scheduler has chosen for a master, and schedules the start there.
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
                    // Only messages of the current master keep an application from timing out.
                    Endpoint::App(app, epoch) if self.is_accepted(app, epoch) => {
                        self.heard_app.insert(app, self.now);
                    }
                    Endpoint::App(..) | Endpoint::Master => {}
                }
                self.put_in_inbox(letter);
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

    /// Returns the position of a Tubo that has received all messages from FuxiMaster, for checks.
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
