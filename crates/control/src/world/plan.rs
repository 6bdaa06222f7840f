//! The script of a cluster: demands, faults, the network and the clocks.

use std::str::FromStr;

use crate::setup::{AppId, Blacklist};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The fate of messages on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The shortest and the longest time a message takes, evenly distributed.
    pub delay: (Span, Span),
    /// Whether messages between two peers arrive in the order of sending.
    pub ordered: bool,
    /// Messages lost, in a million.
    pub lost: u32,
    /// Messages that arrive twice, in a million.
    pub doubled: u32,
}

impl Network {
    /// Messages take no time.
    pub const INSTANT: Network = Network { delay: (Span::ZERO, Span::ZERO), ordered: true, lost: 0, doubled: 0 };
    /// Messages take 1 to 5 ms and arrive once, in order.
    pub const ORDERED: Network = Network { delay: (Span(1_000), Span(5_000)), ordered: true, lost: 0, doubled: 0 };
    /// Messages take 1 ms to 2 s in any order, one in a hundred is lost and one in fifty arrives twice.
    pub const LOSSY: Network =
        Network { delay: (Span(1_000), Span(2_000_000)), ordered: false, lost: 10_000, doubled: 20_000 };
}

impl FromStr for Network {
    type Err = Error;

    fn from_str(name: &str) -> Result<Network> {
        match name {
            "ordered" => Ok(Network::ORDERED),
            "lossy" => Ok(Network::LOSSY),
            _ => Err(Error::plan("--links", format!("'{name}'"), "ordered or lossy")),
        }
    }
}

/// The clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two heartbeats.
    pub beat: Span,
    /// Silence after which FuxiMaster gives a Tubo up.
    pub tubo_timeout: Span,
    /// Silence after which FuxiMaster gives an application master up.
    pub app_timeout: Span,
    /// How long a new FuxiMaster only listens: the article's 60 s.
    pub window: Span,
    /// How long it takes to start an application master on another machine.
    pub app_start: Span,
}

impl Default for Timing {
    /// The window is the article's; the others are well below it, so that each live peer reports within it.
    fn default() -> Timing {
        Timing {
            beat: Span::from_secs(1),
            tubo_timeout: Span::from_secs(15),
            app_timeout: Span::from_secs(30),
            window: Span::from_secs(60),
            app_start: Span::from_secs(10),
        }
    }
}

impl Timing {
    /// No heartbeats, and no delays.
    pub const NONE: Timing = Timing {
        beat: Span::ZERO,
        tubo_timeout: Span::ZERO,
        app_timeout: Span::ZERO,
        window: Span::ZERO,
        app_start: Span::ZERO,
    };

    /// The same with another span between heartbeats; the time-outs grow in proportion.
    pub fn with_beat(self, beat: Span) -> Timing {
        let scaled = |span: Span| Span(span.0 * beat.0 / self.beat.0.max(1));
        let (tubo_timeout, app_timeout) = (scaled(self.tubo_timeout), scaled(self.app_timeout));
        Timing { beat, tubo_timeout, app_timeout, ..self }
    }
}

/// Something that goes wrong, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// FuxiMaster dies; another one starts after a while.
    MasterCrash(Span),
    /// An application master dies and is restarted after a while.
    AppCrash(AppId, Span),
    /// An application master is lost permanently: FuxiMaster has to notice and start another one.
    AppLost(AppId),
    /// A partition between FuxiMaster and an application master for a while; both stay alive.
    AppCut(AppId, Span),
    /// A Tubo dies and is restarted after a while; its workers run on.
    TuboCrash(MachineId, Span),
    /// A partition between FuxiMaster and a machine for a while.
    TuboCut(MachineId, Span),
    /// A partition between a machine and all peers for a while.
    TuboDark(MachineId, Span),
    /// A machine is down for a while: its Tubo and its workers die.
    MachineDown(MachineId, Span),
    /// One of the workers on a machine fails.
    WorkerFailure(MachineId),
}

impl Fault {
    /// The machine that it strikes, if it strikes one.
    pub fn machine(self) -> Option<MachineId> {
        match self {
            Fault::TuboCrash(machine, _)
            | Fault::TuboCut(machine, _)
            | Fault::TuboDark(machine, _)
            | Fault::MachineDown(machine, _)
            | Fault::WorkerFailure(machine) => Some(machine),
            _ => None,
        }
    }

    /// Its duration, if it is known in advance.
    pub fn lasts(self) -> Span {
        match self {
            Fault::MasterCrash(span)
            | Fault::AppCrash(_, span)
            | Fault::AppCut(_, span)
            | Fault::TuboCrash(_, span)
            | Fault::TuboCut(_, span)
            | Fault::TuboDark(_, span)
            | Fault::MachineDown(_, span) => span,
            Fault::AppLost(_) | Fault::WorkerFailure(_) => Span::ZERO,
        }
    }
}

/// A fault and when it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strike {
    /// When.
    pub at: Time,
    /// What.
    pub fault: Fault,
}

/// How often processes fail of themselves: each at a steady rate, independently of all others (Poisson processes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// FuxiMaster, in an hour.
    pub master: f64,
    /// Each application master: it dies and is restarted, is lost permanently, or is partitioned, each with the same chance.
    pub app: f64,
    /// Each Tubo: it dies and is restarted, or is partitioned from FuxiMaster or from all peers.
    pub tubo: f64,
    /// Each machine: it goes down with its workers.
    pub machine: f64,
    /// Each worker on a machine that is sound: it fails alone.
    pub worker: f64,
    /// The share of machines that are faulty all the time.
    pub faulty: f64,
    /// Each worker on one of these, in place of `worker`.
    pub worker_on_faulty: f64,
    /// How long a failure lasts at least and at most, short ones as likely as long ones (log-uniform).
    pub lasts: (Span, Span),
}

impl Failures {
    /// Nothing fails of itself.
    pub const NONE: Failures = Failures {
        master: 0.0,
        app: 0.0,
        tubo: 0.0,
        machine: 0.0,
        worker: 0.0,
        faulty: 0.0,
        worker_on_faulty: 0.0,
        lasts: (Span::from_secs(1), Span::from_secs(1)),
    };

    /// Whether anything fails.
    pub fn any(&self) -> bool {
        [self.master, self.app, self.tubo, self.machine].iter().any(|rate| *rate > 0.0) || self.workers()
    }

    /// Whether workers fail alone.
    pub fn workers(&self) -> bool {
        self.worker > 0.0 || self.faulty > 0.0 && self.worker_on_faulty > 0.0
    }
}

/// When machines with failing workers are excluded, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avoidance {
    /// The thresholds, but for [`Blacklist::most`].
    pub limits: Blacklist,
    /// The share of machines that are shunned at most.
    pub share: f64,
    /// Failures are forgotten when there was none for so long.
    pub hold: Span,
}

/// How long FuxiMaster takes for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Always as long.
    Constant(Span),
    /// One of these measured values, each with the same chance.
    Measured(Vec<Span>),
}

impl Cost {
    /// The times that the engine of this program takes for a request, as they were measured: see `decide.csv` beside this file.
    pub fn measured() -> Cost {
        let rows = include_str!("decide.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
        Cost::Measured(rows.filter_map(|row| row.parse().ok()).map(Span).collect())
    }

    /// Whether it takes no time.
    pub fn is_nothing(&self) -> bool {
        *self == Cost::Constant(Span::ZERO)
    }
}

/// Everything that is done to a cluster but the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Faults, in order of time.
    pub strikes: Vec<Strike>,
    /// Failures besides.
    pub failures: Failures,
    /// The network until the last fault is over; afterwards no message is lost or duplicated.
    pub network: Network,
    /// The clocks.
    pub timing: Timing,
    /// How long a service waits for an unreachable machine before it moves its units to another one; `None`: without end.
    pub patience: Option<Span>,
    /// How long FuxiMaster takes for a request.
    pub decide: Cost,
    /// Messages to and from FuxiMaster are gathered, peer by peer, for so long.
    pub batch: Span,
    /// See [`crate::setup::Setup::order_by_hints`].
    pub order_by_hints: bool,
    /// When machines with failing workers are excluded; `None`: never.
    pub avoidance: Option<Avoidance>,
    /// Seed of the delays and losses.
    pub seed: u64,
}

impl Default for Script {
    /// Nothing goes wrong, and nothing takes time.
    fn default() -> Script {
        Script {
            strikes: Vec::new(),
            failures: Failures::NONE,
            network: Network::INSTANT,
            timing: Timing::NONE,
            patience: None,
            decide: Cost::Constant(Span::ZERO),
            batch: Span::ZERO,
            order_by_hints: false,
            avoidance: None,
            seed: 0,
        }
    }
}

impl Script {
    /// When nothing more goes wrong; never if anything fails at a rate.
    pub fn calm(&self) -> Time {
        if self.failures.any() {
            return Time::NEVER;
        }
        let strikes = self.strikes.iter().map(|strike| strike.at + strike.fault.lasts());
        strikes.max().unwrap_or(Time::ZERO)
    }

    /// After how long without a fault and a start or end of a task all must agree again: the silence that reveals a loss, the
    /// start of whatever is missing and a window, with some heartbeats to spare.
    pub fn settles(&self) -> Span {
        let Timing { beat, tubo_timeout, app_timeout, window, app_start } = self.timing;
        let patience = self.patience.unwrap_or(Span::ZERO);
        let hold = self.avoidance.map_or(Span::ZERO, |avoidance| avoidance.hold);
        let spans = [tubo_timeout, app_timeout, app_timeout, window, app_start, patience, hold, self.network.delay.1];
        Span(spans.into_iter().map(|span| span.0).sum::<u64>() + 10 * beat.0)
    }
}
