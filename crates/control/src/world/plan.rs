//! The script of a cluster: faults and failure rates, the network, the clocks, and the service time of FuxiMaster.

use std::str::FromStr;

use crate::setup::{AppId, Blacklist};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The behaviour of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The shortest and the longest delay of a message, uniformly distributed.
    pub delay: (Span, Span),
    /// Whether messages between two peers arrive in the order of sending.
    pub ordered: bool,
    /// Lost messages, in a million.
    pub lost: u32,
    /// Messages that arrive twice, in a million.
    pub doubled: u32,
}

impl Network {
    /// Messages take no time.
    pub const INSTANT: Network = Network { delay: (Span::ZERO, Span::ZERO), ordered: true, lost: 0, doubled: 0 };
    /// Messages take 1 to 5 ms and arrive once, in order.
    pub const ORDERED: Network = Network { delay: (Span(1_000), Span(5_000)), ordered: true, lost: 0, doubled: 0 };
    /// Messages take 1 ms to 2 s and arrive in any order. One in a hundred is lost, and one in fifty arrives twice.
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
    /// The time between two heartbeats.
    pub beat: Span,
    /// The silence after which FuxiMaster considers a Tubo lost.
    pub tubo_timeout: Span,
    /// The silence after which FuxiMaster considers an application master lost.
    pub app_timeout: Span,
    /// The time for which a new FuxiMaster only receives reports: 60 s in the article.
    pub window: Span,
    /// The time to start an application master on another machine.
    pub app_start: Span,
}

impl Default for Timing {
    /// Returns the window of the article. The other times are well below the window, so that each live peer reports within the window.
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

    /// Changes the time between heartbeats; the time-outs change in proportion.
    pub fn with_beat(self, beat: Span) -> Timing {
        let scaled = |span: Span| Span(span.0 * beat.0 / self.beat.0.max(1));
        let (tubo_timeout, app_timeout) = (scaled(self.tubo_timeout), scaled(self.app_timeout));
        Timing { beat, tubo_timeout, app_timeout, ..self }
    }
}

/// A fault and its duration.
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
    /// Returns the machine that it affects, if there is one.
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

    /// Returns its duration; zero for a fault without a known end.
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

/// A fault and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strike {
    /// The instant.
    pub at: Time,
    /// The fault.
    pub fault: Fault,
}

/// The failure rates of processes. Each fails independently of all others at a constant rate (Poisson processes). Rates are per hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// The rate of FuxiMaster.
    pub master: f64,
    /// The rate of each application master. Each failure is, with equal chance, a crash with a restart, a permanent loss, or a partition.
    pub app: f64,
    /// The rate of each Tubo. Each failure is, with equal chance, a crash with a restart, a partition from FuxiMaster, or a partition from
    /// all peers.
    pub tubo: f64,
    /// The rate of each machine. A machine that fails goes down with its workers.
    pub machine: f64,
    /// The rate of each worker on a machine that is not faulty. Workers fail one by one.
    pub worker: f64,
    /// The share of permanently faulty machines.
    pub faulty: f64,
    /// The rate of each worker on a faulty machine, in place of `worker`.
    pub worker_on_faulty: f64,
    /// The shortest and the longest duration of a failure (log-uniform).
    pub lasts: (Span, Span),
}

impl Failures {
    /// Rates of zero.
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

    /// Returns whether any failure rate is above zero.
    pub fn any(&self) -> bool {
        [self.master, self.app, self.tubo, self.machine].iter().any(|rate| *rate > 0.0) || self.workers()
    }

    /// Returns whether workers fail alone.
    pub fn workers(&self) -> bool {
        self.worker > 0.0 || self.faulty > 0.0 && self.worker_on_faulty > 0.0
    }
}

/// The blacklist: when machines with failing workers are excluded, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Avoidance {
    /// The thresholds. `most` is ignored: it is computed from `share`.
    pub limits: Blacklist,
    /// The largest share of machines that are blacklisted.
    pub share: f64,
    /// The time after which failures are cleared if there was no further one.
    pub hold: Span,
}

/// The service time of FuxiMaster for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A constant time.
    Constant(Span),
    /// One of these measured times, each with the same chance.
    Measured(Vec<Span>),
}

impl Cost {
    /// Returns the measured times that the engine of this program takes for a request: see `decide.csv` beside this file.
    pub fn measured() -> Cost {
        let rows = include_str!("decide.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
        Cost::Measured(rows.filter_map(|row| row.parse().ok()).map(Span).collect())
    }

    /// Returns whether the service time is zero.
    pub fn is_nothing(&self) -> bool {
        *self == Cost::Constant(Span::ZERO)
    }
}

/// Everything that happens to a cluster except its work.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Faults, in order of time.
    pub strikes: Vec<Strike>,
    /// Failures at a rate, in addition to the strikes.
    pub failures: Failures,
    /// The network. In a run to the end ([`super::World::to_the_end`]), no message is lost or duplicated after the last fault.
    pub network: Network,
    /// The clocks.
    pub timing: Timing,
    /// The time that a service waits for an unreachable machine before it moves its units to another one; `None`: without end.
    pub patience: Option<Span>,
    /// The service time of FuxiMaster for a request.
    pub decide: Cost,
    /// The time for which messages to and from FuxiMaster are batched, peer by peer.
    pub batch: Span,
    /// See [`crate::setup::Setup::order_by_hints`].
    pub order_by_hints: bool,
    /// The blacklist; `None`: machines are never excluded.
    pub avoidance: Option<Avoidance>,
    /// The seed of delays, losses and failures.
    pub seed: u64,
}

impl Default for Script {
    /// Returns a script without faults and delays.
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
    /// Returns the end of the last fault; [`Time::NEVER`] if any process fails at a rate.
    pub fn calm(&self) -> Time {
        if self.failures.any() {
            return Time::NEVER;
        }
        let strikes = self.strikes.iter().map(|strike| strike.at + strike.fault.lasts());
        strikes.max().unwrap_or(Time::ZERO)
    }

    /// Returns the time within which all processes must agree again. It is counted from the last fault and from the last start or end of a
    /// task. It is the sum of the time-outs, a recovery window, the start of an application master, the patience, the hold of the
    /// blacklist, the longest message delay and ten heartbeats.
    pub fn settles(&self) -> Span {
        let Timing { beat, tubo_timeout, app_timeout, window, app_start } = self.timing;
        let patience = self.patience.unwrap_or(Span::ZERO);
        let hold = self.avoidance.map_or(Span::ZERO, |avoidance| avoidance.hold);
        let spans = [tubo_timeout, app_timeout, app_timeout, window, app_start, patience, hold, self.network.delay.1];
        Span(spans.into_iter().map(|span| span.0).sum::<u64>() + 10 * beat.0)
    }
}
