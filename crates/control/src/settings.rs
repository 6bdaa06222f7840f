//! The table `[control]` of a plan: the Fuxi control plane between the scheduler and the machines, and its injected faults.
//!
//! [`ControlPlan::check`] validates the table and converts it to protocol rules and a script of clocks, network and faults. Two
//! combinations are refused: failures or losses without heartbeats, which could not be detected, and faults of single machines in a pooled
//! cluster.

use serde::Deserialize;

use crate::rules::{Rule, Rules};
use crate::setup::{AppId, Blacklist};
use crate::world::World;
use crate::world::plan::{Avoidance, Cost, Failures, Fault, Network, Script, Strike, Timing};
use plimsoll_base::error::{Error, Result, each};
use plimsoll_base::settings::{any_span, horizon, positive_span};
use plimsoll_base::units::{MachineId, Span, Time, span};

/// The control plane as written in the plan. Absent keys have the values of the scenarios.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlFile {
    /// The time between two heartbeats; `0s` disables them.
    pub heartbeat: Option<String>,
    /// The silence after which FuxiMaster considers a machine lost.
    pub tubo_timeout: Option<String>,
    /// The silence after which FuxiMaster considers an application master lost.
    pub app_timeout: Option<String>,
    /// The duration of recovery. A recovering FuxiMaster receives reports and sends no answers.
    pub window: Option<String>,
    /// The time that an application master takes to start.
    pub app_start: Option<String>,
    /// The shortest and the longest delay of a message, such as `["1ms", "5ms"]`.
    pub delay: Option<[String; 2]>,
    /// Whether messages between two peers keep their order.
    pub ordered: Option<bool>,
    /// The share of messages that are lost.
    pub lost: Option<f64>,
    /// The share of messages that arrive twice.
    pub doubled: Option<f64>,
    /// The span for which messages to and from FuxiMaster are batched per peer.
    pub batch: Option<String>,
    /// The time that FuxiMaster takes per request: a span, or `measured`.
    pub decide: Option<String>,
    /// The time that a service waits for an unreachable machine before it moves its units to other machines; unlimited if absent.
    pub patience: Option<String>,
    /// Rules of the protocol that are disabled.
    #[serde(default)]
    pub without: Vec<String>,
    /// Whether offline units in hints take precedence over other offline units if there are more units than requested. This is a departure
    /// from the source.
    #[serde(default)]
    pub order_by_hints: bool,
    /// The exclusion of machines with failing workers; disabled if absent.
    pub blacklist: Option<BlacklistFile>,
    /// The rates of random process failures.
    pub failures: Option<FailuresFile>,
    /// Additional faults at given instants.
    #[serde(default)]
    pub fault: Vec<FaultFile>,
}

/// Failures of each process per hour.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailuresFile {
    /// Failures of FuxiMaster.
    #[serde(default)]
    pub master: f64,
    /// Failures of each application master.
    #[serde(default)]
    pub app: f64,
    /// Failures of each tubo.
    #[serde(default)]
    pub tubo: f64,
    /// Failures of each machine, including its workers.
    #[serde(default)]
    pub machine: f64,
    /// Failures of each worker on a machine that is not faulty.
    #[serde(default)]
    pub worker: f64,
    /// The share of machines that are always faulty.
    #[serde(default)]
    pub faulty: f64,
    /// Failures of each worker on a faulty machine; 60 if absent.
    pub worker_on_faulty: Option<f64>,
    /// The shortest and the longest duration of a failure; durations are distributed log-uniformly.
    pub lasts: Option<[String; 2]>,
}

/// Thresholds for the exclusion of machines with failing workers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlacklistFile {
    /// The number of failed workers of a role on a machine at which the application excludes the machine for the role; 2 if absent.
    pub role: Option<u32>,
    /// The number of excluded roles at which the application excludes the machine for all roles and reports it; 1 if absent.
    pub app: Option<u32>,
    /// The number of reporting applications at which FuxiMaster excludes a machine; 2 if absent.
    pub cluster: Option<u32>,
    /// The maximum share of machines that are excluded; 0.1 if absent.
    pub share: Option<f64>,
    /// The span without failures after which earlier failures are forgotten; 30 minutes if absent.
    pub hold: Option<String>,
}

/// A fault that is injected at an instant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultFile {
    /// The instant.
    pub at: String,
    /// The kind of fault: `master-crash`, `app-crash`, `app-lost`, `app-cut`, `tubo-crash`, `tubo-cut`, `tubo-dark`, `machine-down` or
    /// `worker-failure`.
    pub what: String,
    /// The machine, by number.
    pub machine: Option<u32>,
    /// The application, by the number of its job. Services have the first numbers, from 0; the other jobs follow in order of submission.
    pub app: Option<u32>,
    /// The duration of the fault.
    pub lasts: Option<String>,
}

/// The kinds of faults.
const FAULTS: &str =
    "master-crash, app-crash, app-lost, app-cut, tubo-crash, tubo-cut, tubo-dark, machine-down or worker-failure";

/// The validated control plane of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlPlan {
    rules: Rules,
    script: Script,
}

impl ControlPlan {
    /// Returns the control plane of a run with this seed.
    pub fn world(&self, seed: u64) -> World {
        World::new(self.rules, Script { seed, ..self.script.clone() }, Vec::new())
    }

    /// Returns whether faults affect single machines, so that the control plane requires machines with task placement.
    fn is_placed(&self) -> bool {
        let Failures { tubo, machine, .. } = self.script.failures;
        tubo > 0.0
            || machine > 0.0
            || self.script.failures.workers()
            || self.script.strikes.iter().any(|strike| strike.fault.machine().is_some())
    }

    /// Checks the table for a cluster of `machines` machines, which may be pooled. Errors: [`Error::Plan`] with the key and the accepted
    /// values.
    pub fn check(file: &ControlFile, machines: u64, pooled: bool) -> Result<ControlPlan> {
        let key = |name: &str| format!("control.{name}");
        let usual = Timing::default();
        let clock = |name: &str, text: &Option<String>, or: Span| {
            text.as_deref().map_or(Ok(or), |text| any_span(&key(name), text))
        };
        let timing = Timing {
            beat: clock("heartbeat", &file.heartbeat, usual.beat)?,
            tubo_timeout: clock("tubo_timeout", &file.tubo_timeout, usual.tubo_timeout)?,
            app_timeout: clock("app_timeout", &file.app_timeout, usual.app_timeout)?,
            window: clock("window", &file.window, usual.window)?,
            app_start: clock("app_start", &file.app_start, usual.app_start)?,
        };
        let delay = match &file.delay {
            None => Network::ORDERED.delay,
            Some(both) => range(&key("delay"), both, Span::ZERO)?,
        };
        let network = Network {
            delay,
            ordered: file.ordered.unwrap_or(true),
            lost: share(&key("lost"), file.lost)?,
            doubled: share(&key("doubled"), file.doubled)?,
        };
        let rules = each(&file.without, |name| Rule::parse("control.without", name))?;
        let script = Script {
            strikes: each(&file.fault, |fault| strike(fault, machines))?,
            failures: file.failures.as_ref().map_or(Ok(Failures::NONE), failures)?,
            network,
            timing,
            patience: file.patience.as_deref().map(|text| positive_span(&key("patience"), text)).transpose()?,
            decide: file.decide.as_deref().map_or(Ok(Cost::Constant(Span::ZERO)), decide)?,
            batch: clock("batch", &file.batch, Span::ZERO)?,
            order_by_hints: file.order_by_hints,
            avoidance: file.blacklist.as_ref().map(blacklist).transpose()?,
            seed: 0,
        };
        let plan = ControlPlan { rules: rules.into_iter().fold(Rules::ALL, Rules::without), script };
        let Script { strikes, failures, network, .. } = &plan.script;
        if timing.beat == Span::ZERO && (!strikes.is_empty() || failures.any() || network.lost + network.doubled > 0) {
            let expected = "a span above 0: without heartbeats failures and losses are not detected";
            return Err(Error::plan(key("heartbeat"), "0s", expected));
        }
        if pooled && plan.is_placed() {
            let expected = "machines that tasks are placed on, such as placement = \"first-fit\": one of them fails";
            return Err(Error::plan("cluster.placement", "'pooled'", expected));
        }
        Ok(plan)
    }
}

/// Parses two spans, where the first must be at least `least`, and the second not shorter than the first.
fn range(key: &str, [from, to]: &[String; 2], least: Span) -> Result<(Span, Span)> {
    let (low, high) = (any_span(key, from)?, any_span(key, to)?);
    if low < least || high < low {
        let expected = "two time spans, the second no shorter than the first, such as [\"1ms\", \"5ms\"]";
        return Err(Error::plan(key, format!("[\"{from}\", \"{to}\"]"), expected));
    }
    Ok((low, high))
}

/// Converts a share of at most 0.5 to millionths; an absent share is 0.
fn share(key: &str, value: Option<f64>) -> Result<u32> {
    match value {
        None => Ok(0),
        Some(share) if (0.0..=0.5).contains(&share) => Ok((share * 1e6).round() as u32),
        Some(share) => Err(Error::plan(key, share, "a share of the messages, from 0 to 0.5")),
    }
}

fn decide(text: &str) -> Result<Cost> {
    if text == "measured" {
        return Ok(Cost::measured());
    }
    let expected = "a time span such as 0.88ms, or measured";
    span(text).map(Cost::Constant).map_err(|_| Error::plan("control.decide", format!("'{text}'"), expected))
}

fn failures(file: &FailuresFile) -> Result<Failures> {
    let rate = |name: &str, rate: f64| match (0.0..=3600.0).contains(&rate) {
        true => Ok(rate),
        false => Err(Error::plan(format!("control.failures.{name}"), rate, "failures in an hour, from 0 to 3600")),
    };
    let (shortest, longest) = (Span::from_secs(1), Span::from_secs(120));
    let lasts =
        file.lasts.as_ref().map_or(Ok((shortest, longest)), |both| range("control.failures.lasts", both, Span(1)));
    Ok(Failures {
        master: rate("master", file.master)?,
        app: rate("app", file.app)?,
        tubo: rate("tubo", file.tubo)?,
        machine: rate("machine", file.machine)?,
        worker: rate("worker", file.worker)?,
        faulty: match (0.0..=1.0).contains(&file.faulty) {
            true => file.faulty,
            false => {
                return Err(Error::plan(
                    "control.failures.faulty",
                    file.faulty,
                    "a share of the machines, from 0 to 1",
                ));
            }
        },
        worker_on_faulty: rate("worker_on_faulty", file.worker_on_faulty.unwrap_or(60.0))?,
        lasts: lasts?,
    })
}

fn blacklist(file: &BlacklistFile) -> Result<Avoidance> {
    let key = |name: &str| format!("control.blacklist.{name}");
    let count = |name: &str, count: Option<u32>, usual: u32| match count.unwrap_or(usual) {
        0 => Err(Error::plan(key(name), 0, "a whole number from 1")),
        count => Ok(count),
    };
    let limits = Blacklist {
        role: count("role", file.role, 2)?,
        app: count("app", file.app, 1)?,
        cluster: count("cluster", file.cluster, 2)?,
        most: 0,
    };
    let share = file.share.unwrap_or(0.1);
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::plan(key("share"), share, "a share of the machines, from 0 to 1"));
    }
    let hold = file.hold.as_deref().map_or(Ok(Span::from_secs(1800)), |text| positive_span(&key("hold"), text))?;
    Ok(Avoidance { limits, share, hold })
}

fn strike(file: &FaultFile, machines: u64) -> Result<Strike> {
    let key = |name: &str| format!("control.fault.{name}");
    let at = if file.at == "0s" { Time::ZERO } else { horizon(&key("at"), &file.at)? };
    let missing = |name: &str, what: &str| Error::plan(key(name), "nothing", format!("{what} for '{}'", file.what));
    let lasts = || match &file.lasts {
        Some(text) => positive_span(&key("lasts"), text),
        None => Err(missing("lasts", "how long it lasts,")),
    };
    let machine = || match file.machine {
        Some(machine) if u64::from(machine) < machines => Ok(MachineId(machine)),
        Some(machine) => Err(Error::plan(key("machine"), machine, format!("0 to {}", machines.saturating_sub(1)))),
        None => Err(missing("machine", "the number of a machine")),
    };
    let app = || file.app.map(AppId).ok_or_else(|| missing("app", "the number of a job, in order of submission,"));
    let fault = match file.what.as_str() {
        "master-crash" => Fault::MasterCrash(lasts()?),
        "app-crash" => Fault::AppCrash(app()?, lasts()?),
        "app-lost" => Fault::AppLost(app()?),
        "app-cut" => Fault::AppCut(app()?, lasts()?),
        "tubo-crash" => Fault::TuboCrash(machine()?, lasts()?),
        "tubo-cut" => Fault::TuboCut(machine()?, lasts()?),
        "tubo-dark" => Fault::TuboDark(machine()?, lasts()?),
        "machine-down" => Fault::MachineDown(machine()?, lasts()?),
        "worker-failure" => Fault::WorkerFailure(machine()?),
        other => return Err(Error::plan(key("what"), format!("'{other}'"), FAULTS)),
    };
    Ok(Strike { at, fault })
}
