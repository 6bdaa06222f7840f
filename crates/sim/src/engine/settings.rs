//! The settings of the machines and of the engine, each declared once.
//!
//! [`SETTINGS`] has a row for each key of the table `cluster` of a plan, except the machines themselves. Derived from the rows: the reader
//! of plans, the options of `plimsoll replay` with their help and their defaults, the canonical form of a replay, the refusals for pooled
//! clusters, learned schedulers and the control plane, and a table of the documentation. To add a setting, add a row, and a field of
//! [`Options`] for the part of the engine that uses it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use super::{OnBlocked, OnFailure, Options, Preempt, PreemptFor, PreemptFrom, Ties};
use crate::cluster::{Cluster, Placement};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::settings::{SettingOrigin, any_span, option, positive_span};
use plimsoll_base::units::Span;

/// The form of the value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// A text; the name of its syntax in help.
    Text(&'static str),
    /// The path of a file.
    File,
    /// A list of names; the name of one of them in help.
    List(&'static str),
    /// On or off.
    Switch,
}

/// A setting.
pub struct ClusterSetting {
    /// The key in the table `cluster` of a plan.
    pub key: &'static str,
    /// The form of the value.
    pub kind: SettingKind,
    /// The value that applies without one.
    pub default: fn() -> Option<&'static str>,
    /// A value other than the default, as an example.
    pub example: &'static str,
    /// The description in help and in the documentation, without a full stop at the end.
    pub help: fn() -> String,
    /// The setting without which this one is refused.
    pub requires: Option<&'static str>,
    /// Whether it requires machines that tasks are placed on; otherwise pooled clusters support it.
    pub placed: bool,
    /// Whether it affects results. If not, it is no part of the canonical form of a replay.
    pub decides: bool,
    /// Whether the command that repeats a replay contains it even with its default.
    pub explicit: bool,
    /// Whether an environment for learned schedulers refuses it, because the agent alone starts tasks and no task is preempted.
    pub agent: bool,
    /// The reason why the control plane refuses it.
    pub control: Option<&'static str>,
    /// Whether a run has a value that is refused: another one than the default.
    pub is_set: fn(&Options, &Cluster) -> bool,
    /// Whether the control plane supports the value anyway, if it supports some values.
    pub control_supports: Option<fn(&Options) -> bool>,
    /// Reads the value into the options.
    read: fn(&mut Options, &Given) -> Result<()>,
}

/// A setting that affects results, is off by default, and is supported everywhere.
const PLAIN: ClusterSetting = ClusterSetting {
    key: "",
    kind: SettingKind::Text("SPAN"),
    default: || None,
    example: "30s",
    help: String::new,
    requires: None,
    placed: false,
    decides: true,
    explicit: false,
    agent: false,
    control: None,
    is_set: |_, _| false,
    control_supports: None,
    read: |_, _| Ok(()),
};

/// All settings. They are read in this order.
pub static SETTINGS: &[ClusterSetting] = &[
    ClusterSetting {
        key: "placement",
        kind: SettingKind::Text("RULE"),
        default: || Some(Placement::default().name()),
        example: Placement::ALL[0].0,
        help: || {
            format!("How a task finds its machine: {}; pooled treats the cluster as one machine", Placement::names())
        },
        explicit: true,
        read: |options, given| given.parse().map(|placement| options.placement = placement),
        ..PLAIN
    },
    ClusterSetting {
        key: "on_blocked",
        kind: SettingKind::Text("RULE"),
        default: || Some(OnBlocked::default().name()),
        example: "stop",
        help: || {
            "The rule when the next task in line does not fit: skip (try the next user), stop, backfill by estimates (easy \
             or conservative), or a final choice (hold or hold-backfill; docs/policies.md)"
                .to_owned()
        },
        agent: true,
        control: Some("tasks overtake others (on_blocked), by the expected ends of running tasks"),
        is_set: |options, _| options.on_blocked != OnBlocked::default(),
        control_supports: Some(|options| !options.on_blocked.backfills()),
        read: |options, given| {
            options.on_blocked = OnBlocked::parse(&given.key, given.text)?;
            given.check_backfilling(options)
        },
        ..PLAIN
    },
    ClusterSetting {
        key: "ties",
        kind: SettingKind::Text("RULE"),
        default: || Some(Ties::default().name()),
        example: "lowest-id",
        help: || format!("The order among users of equal rank: {} (docs/policies.md)", Ties::names()),
        agent: true,
        is_set: |options, _| options.ties != Ties::default(),
        read: |options, given| Ties::parse(&given.key, given.text).map(|ties| options.ties = ties),
        ..PLAIN
    },
    ClusterSetting {
        key: "slowdown",
        kind: SettingKind::Text("CURVE"),
        example: "1:1,1.25:4",
        help: || {
            "How machines slow down when their tasks use more memory than the machine has: points load:slowdown, such as \
             1:1,1.25:4; with \" by size\" after the points, large tasks slow down most"
                .to_owned()
        },
        placed: true,
        agent: true,
        control: Some("machines slow down (slowdown)"),
        is_set: |options, _| options.slowdown.is_some(),
        read: |options, given| given.parse().map(|curve| options.slowdown = Some(curve)),
        ..PLAIN
    },
    ClusterSetting {
        key: "distance",
        kind: SettingKind::Text("FACTORS"),
        example: "1.1,1.3,2",
        help: || {
            "Factors of the run time in the same rack as the preferred machine, in the same room, and in other rooms, such \
             as 1.1,1.3,2"
                .to_owned()
        },
        placed: true,
        read: |options, given| given.parse().map(|factors| options.distance = Some(factors)),
        ..PLAIN
    },
    ClusterSetting {
        key: "faults",
        kind: SettingKind::Text("PARTS"),
        example: "fail=0.02",
        help: || {
            "How tasks fail, straggle and are backed up: any of fail=0.02,retries=3,straggle=0.05x4,backup=0.9x3 \
             (docs/cluster.md)"
                .to_owned()
        },
        agent: true,
        control: Some("tasks fail of themselves (faults)"),
        is_set: |options, _| options.faults.is_some(),
        read: |options, given| given.parse().map(|faults| options.faults = Some(faults)),
        ..PLAIN
    },
    ClusterSetting {
        key: "events",
        kind: SettingKind::File,
        example: "events.csv",
        help: || {
            "A CSV of machine events: at_s,machine,event with fail, leave, join or relabel (docs/cluster.md)".to_owned()
        },
        placed: true,
        control: Some("machines fail, leave and join by a file of events; the control plane has failures of its own"),
        is_set: |_, cluster| !cluster.events.events.is_empty() || !cluster.events.absent.is_empty(),
        ..PLAIN
    },
    ClusterSetting {
        key: "on_failure",
        kind: SettingKind::Text("RULE"),
        default: || Some(OnFailure::default().name()),
        example: "lose",
        help: || "The tasks on a machine that fails: requeue (they start again) or lose".to_owned(),
        read: |options, given| OnFailure::parse(&given.key, given.text).map(|rule| options.on_failure = rule),
        ..PLAIN
    },
    ClusterSetting {
        key: "fall_back",
        // The delay in the evaluation of delay scheduling (Zaharia et al., EuroSys 2010).
        default: || Some("5s"),
        example: "never",
        help: || {
            "After how long a task that waits for its location may start a level up (rack, room, cluster): a span, or never"
                .to_owned()
        },
        read: |options, given| {
            options.fall_back = match given.text {
                "never" => None,
                text => Some(positive_span(&given.key, text).map_err(|error| error.or("never"))?),
            };
            Ok(())
        },
        ..PLAIN
    },
    ClusterSetting {
        key: "devices",
        kind: SettingKind::List("RESOURCE"),
        example: "gpu",
        help: || {
            "A resource that consists of identified devices, such as gpu (docs/cluster.md); may be given several times"
                .to_owned()
        },
        placed: true,
        ..PLAIN
    },
    ClusterSetting {
        key: "mix",
        kind: SettingKind::File,
        example: "mix.csv",
        help: || {
            "A trace with tasks that define fragments, in place of the workload; its other columns do not matter \
             (docs/cluster.md)"
                .to_owned()
        },
        requires: Some("devices"),
        placed: true,
        ..PLAIN
    },
    ClusterSetting {
        key: "hoard",
        help: || {
            "Let a gang reserve room for a part of its tasks, for this span at most; by default it reserves nothing until \
             all fit"
                .to_owned()
        },
        placed: true,
        agent: true,
        is_set: |options, _| options.hoard.is_some(),
        read: |options, given| positive_span(&given.key, given.text).map(|span| options.hoard = Some(span)),
        ..PLAIN
    },
    ClusterSetting {
        key: "preempt",
        help: || "Let waiting tasks preempt running ones, this span after the request (0s: at once)".to_owned(),
        agent: true,
        is_set: |options, _| options.preempt.is_some(),
        read: |options, given| {
            let (whom, from) = (PreemptFor::default(), PreemptFrom::default());
            options.preempt = Some(Preempt { within: any_span(&given.key, given.text)?, whom, from });
            Ok(())
        },
        ..PLAIN
    },
    ClusterSetting {
        key: "preempt_for",
        kind: SettingKind::Text("TASKS"),
        example: "share",
        help: || {
            "The tasks that may preempt: urgent (tasks of higher priority), share (tasks of users with smaller shares) or \
             order (the first tasks by the order after the slash in the policy's name)"
                .to_owned()
        },
        requires: Some("preempt"),
        read: |options, given| {
            let whom = PreemptFor::parse(&given.key, given.text)?;
            options.preempt.iter_mut().for_each(|preempt| preempt.whom = whom);
            Ok(())
        },
        ..PLAIN
    },
    ClusterSetting {
        key: "preempt_from",
        kind: SettingKind::Text("TASKS"),
        example: "same-user",
        help: || "The tasks that urgent tasks may preempt: any, same-user, same-group or above-quota".to_owned(),
        requires: Some("preempt"),
        read: |options, given| {
            let from = PreemptFrom::parse(&given.key, given.text)?;
            let Some(preempt) = &mut options.preempt else { return Ok(()) };
            preempt.from = from;
            let decides = match preempt.whom {
                _ if from == PreemptFrom::Any => return Ok(()),
                PreemptFor::Urgent => return Ok(()),
                PreemptFor::Share => "shares decide",
                PreemptFor::Order => "the order decides",
            };
            let rule = given.origin.key("cluster.preempt_for");
            given.refuse(format!("'any', or 'urgent' in {rule}: {decides} the victims of a task"))
        },
        ..PLAIN
    },
    ClusterSetting {
        key: "min_run",
        help: || "Do not preempt a task that has run for less than this span".to_owned(),
        agent: true,
        is_set: |options, _| options.preemption_limits.min_run > Span::ZERO,
        read: |options, given| given.span().map(|span| options.preemption_limits.min_run = span),
        ..PLAIN
    },
    ClusterSetting {
        key: "stop_limit",
        kind: SettingKind::Text("LIMIT"),
        example: "10/60s",
        help: || "Limit of preemptions within a span, such as 10/60s".to_owned(),
        agent: true,
        is_set: |options, _| options.preemption_limits.limit.is_some(),
        read: |options, given| {
            if given.text != "none" {
                options.preemption_limits.limit = Some(given.parse().map_err(|error| error.or("none"))?);
            }
            Ok(())
        },
        ..PLAIN
    },
    ClusterSetting {
        key: "checkpoint",
        help: || "Let stopped tasks resume from a checkpoint at the last multiple of this span".to_owned(),
        agent: true,
        control: Some("tasks resume from checkpoints (checkpoint)"),
        is_set: |options, _| options.preemption_limits.checkpoint > Span::ZERO,
        read: |options, given| given.span().map(|span| options.preemption_limits.checkpoint = span),
        ..PLAIN
    },
    ClusterSetting {
        key: "restart_delay",
        help: || "Additional time that a stopped task takes to resume".to_owned(),
        agent: true,
        control: Some("stopped tasks take time to resume (restart_delay)"),
        is_set: |options, _| options.preemption_limits.restart_delay > Span::ZERO,
        read: |options, given| given.span().map(|span| options.preemption_limits.restart_delay = span),
        ..PLAIN
    },
    ClusterSetting {
        key: "audit",
        kind: SettingKind::Switch,
        example: "true",
        help: || "Verify the accounting after every round".to_owned(),
        decides: false,
        read: |options, _| {
            options.audit = true;
            Ok(())
        },
        ..PLAIN
    },
];

/// The names of the options, in the order of the settings.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| SETTINGS.iter().map(|setting| option(&format!("cluster.{}", setting.key))).collect());

impl ClusterSetting {
    /// Returns the setting with a key.
    pub fn find(key: &str) -> Option<&'static ClusterSetting> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Returns the name of the option of `plimsoll replay`, without hyphens before it.
    pub fn option(&self) -> &'static str {
        let at = SETTINGS.iter().position(|setting| setting.key == self.key);
        at.map_or("", |at| NAMES[at].as_str())
    }
}

/// A value that is being read.
struct Given<'a> {
    /// The name of the setting in messages.
    key: String,
    text: &'a str,
    all: &'a SettingValues,
    origin: SettingOrigin,
}

impl Given<'_> {
    fn parse<T: FromStr<Err = Error>>(&self) -> Result<T> {
        self.text.parse().map_err(|error: Error| error.under(&self.key))
    }

    fn span(&self) -> Result<Span> {
        any_span(&self.key, self.text)
    }

    fn refuse<T>(&self, expected: impl Into<String>) -> Result<T> {
        Err(Error::plan(self.key.as_str(), format!("'{}'", self.text), expected))
    }

    /// Checks that end times are known and that the cluster is pooled. Backfilling requires both.
    fn check_backfilling(&self, options: &Options) -> Result<()> {
        let Options { on_blocked, placement, .. } = options;
        let wrong = |with: &str, expected: &str| {
            Err(Error::plan(self.key.as_str(), format!("'{}' with {with}", on_blocked.name()), expected))
        };
        match (placement, self.all.text("faults"), self.all.text("preempt")) {
            _ if !on_blocked.backfills() => Ok(()),
            (Placement::Pooled, None, None) => Ok(()),
            (Placement::Pooled, Some(_), _) => wrong("faults", "skip or stop with failures of tasks"),
            (Placement::Pooled, None, Some(_)) => wrong("preempt", "skip or stop with preemption"),
            _ => wrong(
                &format!("placement '{}'", placement.name()),
                "placement pooled, since reservations apply to one pool; or skip or stop",
            ),
        }
    }
}

/// The values of settings, as text. A switch that is on has the value `true`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingValues(BTreeMap<&'static str, Vec<String>>);

impl SettingValues {
    /// Gives a setting these values; an empty list is no value.
    pub fn insert(&mut self, setting: &'static ClusterSetting, values: Vec<String>) {
        if !values.is_empty() {
            self.0.insert(setting.key, values);
        }
    }

    /// Returns all values of a setting.
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a setting, if one is given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }

    /// Returns the engine options with these values, without seed, horizon and job order. Errors: [`Error::Plan`] with the name of the
    /// setting and the accepted values.
    pub fn options(&self, origin: SettingOrigin) -> Result<Options> {
        let mut options = Options::default();
        for setting in SETTINGS {
            let key = origin.key(&format!("cluster.{}", setting.key));
            let given = self.text(setting.key);
            if let Some(text) = given {
                if setting.placed && options.placement == Placement::Pooled {
                    let expected = "machines that tasks are placed on, such as placement first-fit";
                    return Err(Error::plan(key, "placement 'pooled'", expected));
                }
                if let Some(other) = setting.requires.filter(|other| self.text(other).is_none()) {
                    let expected = format!("a value of {} too", origin.key(&format!("cluster.{other}")));
                    return Err(Error::plan(key, format!("'{text}'"), expected));
                }
            }
            if let Some(text) = given.or((setting.default)()) {
                (setting.read)(&mut options, &Given { key, text, all: self, origin })?;
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_options() {
        let read = SettingValues::default().options(SettingOrigin::InPlan).expect("defaults are accepted");
        assert_eq!(read, Options { fall_back: Some(Span::from_secs(5)), ..Options::default() });
        assert!(SETTINGS.iter().all(|setting| !(setting.is_set)(&read, &Cluster::default())));
    }

    #[test]
    fn a_setting_that_is_refused_somewhere_knows_whether_it_is_set() {
        // Events are read from a file into the cluster.
        let refused = SETTINGS.iter().filter(|setting| setting.agent || setting.control.is_some());
        for setting in refused.filter(|setting| setting.kind != SettingKind::File) {
            let mut values = SettingValues::default();
            values.insert(setting, vec![setting.example.to_owned()]);
            let options = values.options(SettingOrigin::InPlan).expect(setting.key);
            assert!((setting.is_set)(&options, &Cluster::default()), "{}", setting.key);
        }
    }

    #[test]
    fn keys_and_options_are_unique_and_requirements_come_first() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            let before = &SETTINGS[..at];
            assert!(before.iter().all(|other| other.key != setting.key && other.option() != setting.option()));
            assert!(setting.requires.is_none_or(|key| before.iter().any(|other| other.key == key)), "{}", setting.key);
            assert!(!(setting.help)().ends_with('.') && !(setting.help)().is_empty(), "{}", setting.key);
        }
    }
}
