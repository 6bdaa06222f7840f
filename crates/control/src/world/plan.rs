//! The script of a cluster: demands, faults, the network and the clocks.

use std::str::FromStr;

use crate::setup::{AppId, RoleId};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The fate of messages on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The shortest and the longest time a message takes, evenly distributed.
    pub delay: (Span, Span),
    /// Whether messages between two peers arrive in the order in which they were sent.
    pub ordered: bool,
    /// Messages lost, in a million.
    pub lost: u32,
    /// Messages that arrive twice, in a million.
    pub doubled: u32,
}

impl Network {
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
    /// The window is the article's; the others are chosen well below it, so that whoever is alive reports within it.
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
    /// An application master dies for good: FuxiMaster has to notice and start another one.
    AppLost(AppId),
    /// FuxiMaster and an application master do not hear each other for a while; both live on.
    AppCut(AppId, Span),
    /// A Tubo dies and is restarted after a while; its workers run on.
    TuboCrash(MachineId, Span),
    /// FuxiMaster and a machine do not hear each other for a while.
    TuboCut(MachineId, Span),
    /// Nobody and a machine hear each other for a while.
    TuboDark(MachineId, Span),
}

impl Fault {
    /// The machine that it strikes, if it strikes one.
    pub fn machine(self) -> Option<MachineId> {
        match self {
            Fault::TuboCrash(machine, _) | Fault::TuboCut(machine, _) | Fault::TuboDark(machine, _) => Some(machine),
            _ => None,
        }
    }

    /// How long it lasts, as far as that is known beforehand.
    pub fn lasts(self) -> Span {
        match self {
            Fault::MasterCrash(span)
            | Fault::AppCrash(_, span)
            | Fault::AppCut(_, span)
            | Fault::TuboCrash(_, span)
            | Fault::TuboCut(_, span)
            | Fault::TuboDark(_, span) => span,
            Fault::AppLost(_) => Span::ZERO,
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

/// From some instant on an application wants so many units of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    /// When.
    pub at: Time,
    /// Of which role.
    pub role: RoleId,
    /// How many in all.
    pub count: u32,
}

/// Everything that is done to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Demands, in order of time.
    pub demands: Vec<Demand>,
    /// Faults, in order of time.
    pub strikes: Vec<Strike>,
    /// The network, until the last fault is over; then it is [`Network::ORDERED`].
    pub network: Network,
    /// The clocks.
    pub timing: Timing,
    /// How long a service waits for a machine out of sight before it moves its units elsewhere; `None`: for ever.
    pub patience: Option<Span>,
    /// Seed of the delays and losses.
    pub seed: u64,
}

impl Script {
    /// When nothing more goes wrong or is wanted.
    pub fn calm(&self) -> Time {
        let strikes = self.strikes.iter().map(|strike| strike.at + strike.fault.lasts());
        let demands = self.demands.iter().map(|demand| demand.at);
        strikes.chain(demands).max().unwrap_or(Time::ZERO)
    }

    /// When all must agree again: the silence that reveals a loss, the start of whatever is missing and a window, with
    /// some heartbeats to spare.
    pub fn end(&self) -> Time {
        let Timing { beat, tubo_timeout, app_timeout, window, app_start } = self.timing;
        let patience = self.patience.unwrap_or(Span::ZERO);
        let spans = [tubo_timeout, app_timeout, app_timeout, window, app_start, patience, self.network.delay.1];
        spans.into_iter().fold(self.calm(), |time, span| time + span) + Span(10 * beat.0)
    }
}
