//! The log of a run, for traces and sequence diagrams, without heartbeats.

use super::net::Letter;
use super::plan::Fault;
use crate::counts::Counts;
use crate::message::{Bar, Endpoint, Message, Note, Units};
use crate::rules::Rule;
use crate::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::{MachineId, Time};

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When the event occurred, or the message arrived.
    pub at: Time,
    /// The kind of the line.
    pub what: What,
    /// The text of the line.
    pub text: String,
    /// The machine concerned; `None` for all.
    pub machine: Option<MachineId>,
    /// The roles concerned; empty for all.
    pub roles: Vec<RoleId>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A message that arrived, or could not be delivered.
    Message {
        /// The sender.
        from: Endpoint,
        /// The receiver.
        to: Endpoint,
        /// When it was sent.
        sent: Time,
        /// Whether it arrived.
        arrived: bool,
    },
    /// An event in a step of a process.
    Note(Endpoint),
    /// A process started.
    Start(Endpoint),
    /// A fault of a process or a link.
    Fault(Endpoint),
    /// A fault is over, or FuxiMaster has recovered.
    Heal(Endpoint),
    /// An invariant was violated.
    Violation,
}

/// The log of a run: empty unless it is enabled.
#[derive(Clone, Debug, Default)]
pub struct Log {
    keep: bool,
    /// The lines in order.
    pub entries: Vec<LogEntry>,
}

impl Log {
    pub(super) fn new(keep: bool) -> Log {
        Log { keep, entries: Vec::new() }
    }

    fn push(&mut self, at: Time, what: What, text: String, machine: Option<MachineId>, roles: Vec<RoleId>) {
        self.entries.push(LogEntry { at, what, text, machine, roles });
    }

    pub(super) fn delivered(&mut self, now: Time, setup: &Setup, letter: &Letter) {
        if self.keep && !is_beat(&letter.message) {
            let what = What::Message { from: letter.from, to: letter.to, sent: letter.sent, arrived: true };
            self.message(now, what, setup, letter.from, letter.to, &letter.message);
        }
    }

    pub(super) fn unreachable(&mut self, now: Time, setup: &Setup, from: Endpoint, to: Endpoint, message: &Message) {
        // FuxiMaster requests reports from all peers; its requests to absent peers are not logged.
        if self.keep && !is_beat(message) && !matches!(message, Message::Ask { .. }) {
            let what = What::Message { from, to, sent: now, arrived: false };
            self.message(now, what, setup, from, to, message);
        }
    }

    fn message(&mut self, now: Time, what: What, setup: &Setup, from: Endpoint, to: Endpoint, message: &Message) {
        let machine = [from, to].into_iter().find_map(|node| match node {
            Endpoint::Tubo(machine) => Some(machine),
            _ => None,
        });
        let (text, roles) = describe(setup, message);
        self.push(now, what, text, machine, roles);
    }

    pub(super) fn record_note(&mut self, now: Time, setup: &Setup, by: Endpoint, note: &Note) {
        // The message already contains the request.
        if self.keep && !matches!(note, Note::Requested(..)) {
            let (text, machine, role) = describe_note(setup, note);
            let what = if *note == Note::Recovered { What::Heal(by) } else { What::Note(by) };
            self.push(now, what, text, machine, role.into_iter().collect());
        }
    }

    pub(super) fn started(&mut self, now: Time, setup: &Setup, node: Endpoint) {
        if self.keep {
            let listens = node == Endpoint::Master && setup.rules.has(Rule::WaitWindow);
            let text = if listens { "starts, and only receives reports" } else { "starts" };
            self.push(now, What::Start(node), text.to_owned(), machine_of(node), roles_of(setup, node));
        }
    }

    /// Logs the start of an application master on a machine.
    pub(super) fn app_started(&mut self, now: Time, setup: &Setup, node: Endpoint, machine: MachineId) {
        if self.keep {
            let text = format!("starts on machine {machine}");
            self.push(now, What::Start(node), text, None, roles_of(setup, node));
        }
    }

    pub(super) fn fault(&mut self, now: Time, setup: &Setup, fault: Fault) {
        if self.keep {
            let (node, text) = fault.describe();
            self.push(now, What::Fault(node), text, machine_of(node), roles_of(setup, node));
        }
    }

    pub(super) fn healed(&mut self, now: Time, setup: &Setup, fault: Fault) {
        if self.keep {
            let (node, _) = fault.describe();
            self.push(now, What::Heal(node), "is reachable again".to_owned(), machine_of(node), roles_of(setup, node));
        }
    }

    pub(super) fn violated(&mut self, now: Time, invariant: &str, what: &str) {
        if self.keep {
            self.push(now, What::Violation, format!("{invariant} violated: {what}"), None, Vec::new());
        }
    }
}

fn is_beat(message: &Message) -> bool {
    matches!(message, Message::TuboBeat { restarted: false, .. } | Message::AppBeat { .. })
}

fn machine_of(node: Endpoint) -> Option<MachineId> {
    match node {
        Endpoint::Tubo(machine) => Some(machine),
        _ => None,
    }
}

fn roles_of(setup: &Setup, node: Endpoint) -> Vec<RoleId> {
    match node {
        Endpoint::App(app, _) => setup.roles_of(app).collect(),
        _ => Vec::new(),
    }
}

impl Fault {
    /// Returns the process that the fault affects, and a description.
    pub fn describe(self) -> (Endpoint, String) {
        let app = |app: AppId| Endpoint::App(app, 0);
        match self {
            Fault::MasterCrash(span) => {
                (Endpoint::Master, format!("dies; another starts after {:.1} s", span.seconds()))
            }
            Fault::AppCrash(id, span) => (app(id), format!("dies; restarts after {:.1} s", span.seconds())),
            Fault::AppLost(id) => (app(id), "dies permanently".to_owned()),
            Fault::AppCut(id, span) => (app(id), format!("is cut from FuxiMaster for {:.1} s", span.seconds())),
            Fault::TuboCrash(machine, span) => {
                (Endpoint::Tubo(machine), format!("dies; restarts after {:.1} s", span.seconds()))
            }
            Fault::TuboCut(machine, span) => {
                (Endpoint::Tubo(machine), format!("is cut from FuxiMaster for {:.1} s", span.seconds()))
            }
            Fault::MachineDown(machine, span) => {
                (Endpoint::Tubo(machine), format!("goes down with its workers for {:.1} s", span.seconds()))
            }
            Fault::WorkerFailure(machine) => (Endpoint::Tubo(machine), "loses a worker".to_owned()),
            Fault::TuboDark(machine, span) => {
                (Endpoint::Tubo(machine), format!("is disconnected for {:.1} s", span.seconds()))
            }
        }
    }
}

impl Endpoint {
    /// Returns the name in reports.
    pub fn name(self) -> String {
        match self {
            Endpoint::Master => "FuxiMaster".to_owned(),
            Endpoint::App(app, 0) => format!("AM {}", app.0),
            Endpoint::App(app, epoch) => format!("AM {}.{epoch}", app.0),
            Endpoint::Tubo(machine) => format!("Tubo {machine}"),
        }
    }
}

fn counts(setup: &Setup, counts: &Counts) -> String {
    listed(counts.iter().map(|(role, count)| format!("{count} {}", setup.name(role))))
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn barred(setup: &Setup, bars: &[Bar]) -> String {
    listed(bars.iter().map(|bar| match bar.role {
        Some(role) => format!("{} for {}", bar.machine, setup.name(role)),
        None => format!("{} for all", bar.machine),
    }))
}

fn placed<T: Copy + std::fmt::Display>(setup: &Setup, units: &Units<T>) -> String {
    format!("{} {} on {}", units.count, setup.name(units.role), units.machine)
}

fn describe(setup: &Setup, message: &Message) -> (String, Vec<RoleId>) {
    let name = |role: &RoleId| setup.name(*role).to_owned();
    match message {
        Message::TuboBeat { restarted, .. } => {
            (if *restarted { "restarted: requests its cap" } else { "alive" }.to_owned(), Vec::new())
        }
        Message::TuboReport { caps, .. } => (format!("report: caps {}", counts(setup, caps)), Vec::new()),
        Message::AppBeat { from, .. } => ("alive".to_owned(), setup.roles_of(from.app).collect()),
        Message::AppReport { from, request, hints, bars, .. } => {
            let hints = listed(hints.iter().map(|units| placed(setup, units)));
            let mut text = format!("report: request {}; hints {hints}", counts(setup, request));
            if !bars.is_empty() {
                text += &format!("; bars {}", barred(setup, bars));
            }
            (text, setup.roles_of(from.app).collect())
        }
        Message::AppChange { request, returned, .. } => {
            let wants = request.iter().map(|(role, change)| format!("want {change:+} {}", name(role)));
            let gives = returned.iter().map(|units| format!("return {}", placed(setup, units)));
            let roles = request.iter().map(|(role, _)| *role).chain(returned.iter().map(|units| units.role)).collect();
            (listed(wants.chain(gives)), roles)
        }
        Message::AppBars { from, bars, .. } => {
            (format!("bars {}", barred(setup, bars)), setup.roles_of(from.app).collect())
        }
        Message::Ask { epoch } => (format!("FuxiMaster {epoch} requests a report"), Vec::new()),
        Message::Caps { full, list, .. } => {
            let sign = |count: i32| if *full { count.to_string() } else { format!("{count:+}") };
            let list = listed(list.iter().map(|(role, count)| format!("{} {}", sign(*count), name(role))));
            (format!("{} {list}", if *full { "full cap:" } else { "cap" }), Vec::new())
        }
        Message::Hints { full, list, away, back, .. } => {
            let sign = |count: i32| if *full { count.to_string() } else { format!("{count:+}") };
            let unit = |u: &Units<i32>| format!("{} {} on {}", sign(u.count), name(&u.role), u.machine);
            let mut parts: Vec<String> = list.iter().map(unit).collect();
            parts.extend(away.iter().map(|machine| format!("{machine} is away")));
            parts.extend(back.iter().map(|machine| format!("{machine} is back")));
            let roles = list.iter().map(|units| units.role).collect();
            (format!("{} {}", if *full { "full hint:" } else { "hint" }, listed(parts.into_iter())), roles)
        }
        Message::Fenced => ("stop: a newer application master has replaced this one".to_owned(), Vec::new()),
        Message::Plan { role, count, .. } => (format!("plan {count} {}", name(role)), vec![*role]),
        Message::NeedPlan { role, .. } => (format!("cap without plan: {}", name(role)), vec![*role]),
        Message::Done { role, count, .. } => (format!("{count} {} done", name(role)), vec![*role]),
        Message::Failed { role, .. } => (format!("1 {} failed", name(role)), vec![*role]),
    }
}

fn describe_note(setup: &Setup, note: &Note) -> (String, Option<MachineId>, Option<RoleId>) {
    let about = |verb: &str, units: &Units<u32>, more: &str| {
        (format!("{verb} {}{more}", placed(setup, units)), Some(units.machine), Some(units.role))
    };
    match note {
        Note::Granted(units) => about("grants", units, ""),
        Note::Released(units) => about("releases", units, ""),
        Note::Rebuilt(units, source) => about("rebuilds", units, &format!(" ({source:?})").to_lowercase()),
        Note::Dropped(units, why) => about("drops", units, &format!(" ({})", why.name())),
        Note::Converted(role, count) => {
            (format!("confirms the mock request of {count} {}", setup.name(*role)), None, Some(*role))
        }
        Note::Recovered => ("has recovered".to_owned(), None, None),
        Note::MachineAway(machine) => (format!("loses contact with machine {machine}"), Some(*machine), None),
        Note::MachineBack(machine) => (format!("regains contact with machine {machine}"), Some(*machine), None),
        Note::AppAway(app) => (format!("receives no heartbeats from AM {}", app.0), None, setup.roles_of(*app).next()),
        Note::Requested(role, count) => {
            (format!("records a request of {count} {}", setup.name(*role)), None, Some(*role))
        }
        Note::Accepted(app, epoch) => (format!("accepts AM {}.{epoch}", app.0), None, setup.roles_of(*app).next()),
        Note::Started(units) => about("starts", units, ""),
        Note::Stopped(units) => about("stops", units, ""),
        Note::Failed(units) => about("records the failure of", units, ""),
        Note::Finished(units) => about("records the completion of", units, ""),
        Note::Barred(app) => {
            (format!("records the machines that AM {} bars", app.0), None, setup.roles_of(*app).next())
        }
        Note::Blamed(machine) => (format!("receives a report against machine {machine}"), Some(*machine), None),
        Note::Blacklisted(machine) => (format!("blacklists machine {machine}"), Some(*machine), None),
        Note::Forgiven(machine) => (format!("removes machine {machine} from the blacklist"), Some(*machine), None),
    }
}

impl crate::message::Why {
    /// Returns the reason in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::MachineTimeout => "machine timed out",
            Self::Late => "machine reported late",
            Self::AppAbsent => "application master absent",
            Self::AboveRequest => "above request",
            Self::NoRoom => "no room",
            Self::Displaced => "preempted for others",
        }
    }
}
