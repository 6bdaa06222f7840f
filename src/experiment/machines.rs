//! The keys of a plan about machines, and about how tasks are placed on them.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::settings::{SettingOrigin, horizon, positive_span};
use crate::cluster::{ClusterSpec, MachineGroup, Placement, Speed, events, file};
use crate::engine::{OnBlocked, OnFailure, Options, Preempt, PreemptFor, PreemptFrom, PreemptionLimits, Ties};
use crate::error::{Error, Result, nearest};
use crate::units::{Dim, Rounding, Span, decimal, span};

/// Reads the value of `machines`; anything but text is an error with an example.
fn machines_text<'de, D: serde::Deserializer<'de>>(value: D) -> std::result::Result<Option<String>, D::Error> {
    struct Text;
    impl serde::de::Visitor<'_> for Text {
        type Value = Option<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("text such as \"20x8c32g\", or the path of a CSV of machines")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Option<String>, E> {
            Ok(Some(text.to_owned()))
        }
    }
    value.deserialize_str(Text)
}

/// The cluster as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// `400x16c32g`, or a CSV of machines.
    #[serde(default, deserialize_with = "machines_text")]
    pub machines: Option<String>,
    /// Groups with resources of any name: `{ count = 400, cpu = 16, memory_gib = 32, disk_gib = 1000 }`.
    #[serde(default)]
    pub group: Vec<toml::Table>,
    /// The name of a placement rule.
    pub placement: Option<String>,
    /// `skip`, `stop`, `easy` or `conservative`.
    pub on_blocked: Option<String>,
    /// The order among users of equal rank; see [`Ties`].
    pub ties: Option<String>,
    /// How machines slow down when their memory is over-committed: `1:1,1.25:4`, loads and slowdowns.
    pub slowdown: Option<String>,
    /// Factors of the run time in the same rack as the preferred machine, in the same room, and in other rooms: `1.1,1.3,2`.
    pub distance: Option<String>,
    /// How tasks fail, straggle and are backed up: `fail=0.02,retries=3,straggle=0.05x4,backup=0.9x3`, any of them.
    pub faults: Option<String>,
    /// A CSV of machine events: which fail, leave or join, and when.
    pub events: Option<PathBuf>,
    /// The fate of the tasks on a machine that fails: `requeue` or `lose`.
    pub on_failure: Option<String>,
    /// For how long gangs hold room that is not enough yet; they hold none if absent.
    pub hoard: Option<String>,
    /// Resources that are made of identified devices, such as `gpu`.
    #[serde(default)]
    pub devices: Vec<String>,
    /// For how long tasks may go on after others have asked for their room; none are asked if absent.
    pub preempt: Option<String>,
    /// `urgent` or `share`.
    pub preempt_for: Option<String>,
    /// `any`, `same-user`, `same-group` or `above-quota`.
    pub preempt_from: Option<String>,
    /// How long tasks must have run to be stopped by choice.
    pub min_run: Option<String>,
    /// The most tasks stopped by choice within a span, such as `10/60s`; `none` for any number.
    pub stop_limit: Option<String>,
    /// After every so long of running a stopped task can resume from there.
    pub checkpoint: Option<String>,
    /// How long a task that was stopped takes to resume.
    pub restart_delay: Option<String>,
    /// After how long a task that waits for its location may start a level up: a span, or `never`.
    pub fall_back: Option<String>,
    /// Add the books up again after every round.
    #[serde(default)]
    pub audit: bool,
}

/// The value of a name, or the default.
fn named<T: Default>(name: &Option<String>, parse: impl FnOnce(&str) -> Result<T>) -> Result<T> {
    name.as_deref().map_or_else(|| Ok(T::default()), parse)
}

/// The machines of a plan and the engine options.
pub struct ClusterPlan {
    /// The machines.
    pub cluster: ClusterSpec,
    /// Engine options.
    pub options: Options,
    /// The file that the machines were read from, if they were.
    pub machines: Option<PathBuf>,
    /// The file that their events were read from, if they have any.
    pub events: Option<PathBuf>,
}

/// Reads the settings of a cluster; files are in `folder` unless their paths are absolute. Errors: [`Error::Plan`] with the
/// key, and those of the files.
pub fn supplied(file: &ClusterFile, until: Option<&str>, folder: &Path, stands: SettingOrigin) -> Result<ClusterPlan> {
    let options = options(file, until, stands)?;
    let mut cluster = machines(file, folder, stands).map_err(|error| stands.of_file("cluster.machines", error))?;
    let events = file.events.as_ref().map(|path| folder.join(path));
    if let Some(path) = &events {
        only_placed(&stands.key("cluster.events"), options.placement)?;
        cluster.events = events::read(path, &cluster).map_err(|error| stands.of_file("cluster.events", error))?;
    }
    if !file.devices.is_empty() {
        only_placed(&stands.key("cluster.devices"), options.placement)?;
    }
    cluster.devices.clone_from(&file.devices);
    let machines = file.machines.as_deref().and_then(|text| machines_file(text, folder));
    Ok(ClusterPlan { cluster, options, machines, events })
}

/// A setting of machines that tasks are placed on.
fn placed<T: std::str::FromStr<Err = Error>>(
    key: &str,
    text: &Option<String>,
    placement: Placement,
) -> Result<Option<T>> {
    if text.is_some() {
        only_placed(key, placement)?;
    }
    parsed(key, text)
}

/// A setting that may be absent.
fn parsed<T: std::str::FromStr<Err = Error>>(key: &str, text: &Option<String>) -> Result<Option<T>> {
    text.as_ref().map(|text| text.parse().map_err(|error: Error| error.under(key))).transpose()
}

/// For how long gangs hold room.
fn hoard(key: &str, text: Option<&str>, placement: Placement) -> Result<Option<Span>> {
    let Some(text) = text else { return Ok(None) };
    only_placed(key, placement)?;
    positive_span(key, text).map(Some)
}

/// After how long a task that waits for its location may start a level up, unless a plan says otherwise: the delay of
/// delay scheduling (Zaharia et al., EuroSys 2010) in its evaluation.
pub const FALL_BACK: &str = "5s";

/// Reads the preemption options: an interval, which tasks may preempt, and which may be preempted. Errors: the others without the first,
/// and a selection of victims if shares decide that.
fn preempt(file: &ClusterFile, stands: SettingOrigin) -> Result<Option<Preempt>> {
    let [key, for_key, from_key] =
        ["cluster.preempt", "cluster.preempt_for", "cluster.preempt_from"].map(|name| stands.key(name));
    let whom = named(&file.preempt_for, |text| PreemptFor::parse(&for_key, text))?;
    let from = named(&file.preempt_from, |text| PreemptFrom::parse(&from_key, text))?;
    let Some(text) = &file.preempt else {
        let others = [(&for_key, &file.preempt_for), (&from_key, &file.preempt_from)];
        let other = others.into_iter().find_map(|(key, text)| Some((key, text.as_ref()?)));
        return other.map_or(Ok(None), |(other, text)| {
            Err(Error::plan(other.as_str(), format!("'{text}'"), format!("a span in {key} too")))
        });
    };
    if whom != PreemptFor::Urgent && from != PreemptFrom::Any {
        let decides = if whom == PreemptFor::Share { "shares decide" } else { "the order decides" };
        let expected = format!("'any', or 'urgent' in {for_key}: {decides} the victims of a task");
        return Err(Error::plan(from_key, format!("'{}'", from.name()), expected));
    }
    Ok(Some(Preempt { within: any_span(&key, text)?, whom, from }))
}

/// A span, perhaps 0.
fn any_span(key: &str, text: &str) -> Result<Span> {
    span(text).map_err(|_| Error::plan(key, format!("'{text}'"), "a time span such as 0s, 30s or 2m"))
}

/// Limits and costs of stopping tasks.
fn displacing(file: &ClusterFile, stands: SettingOrigin) -> Result<PreemptionLimits> {
    let key = |name: &str| stands.key(&format!("cluster.{name}"));
    let read = |name, text: &Option<String>| text.as_ref().map_or(Ok(Span::ZERO), |text| any_span(&key(name), text));
    let limit = file.stop_limit.clone().filter(|text| text != "none");
    Ok(PreemptionLimits {
        min_run: read("min_run", &file.min_run)?,
        limit: parsed(&key("stop_limit"), &limit).map_err(|error| error.or("none"))?,
        checkpoint: read("checkpoint", &file.checkpoint)?,
        restart_delay: read("restart_delay", &file.restart_delay)?,
    })
}

/// A span, or `never`.
fn fall_back(key: &str, text: &str) -> Result<Option<Span>> {
    if text == "never" { Ok(None) } else { positive_span(key, text).map(Some).map_err(|error| error.or("never")) }
}

/// Errors: the key says something about machines, and tasks are not placed on any.
fn only_placed(key: &str, placement: Placement) -> Result<()> {
    let expected = "machines that tasks are placed on, such as placement first-fit";
    if placement == Placement::Pooled { Err(Error::plan(key, "placement 'pooled'", expected)) } else { Ok(()) }
}

/// Errors: backfilling without known end times, or with individual machines.
fn goes_with_backfilling(key: &str, rule: OnBlocked, placement: Placement, cluster: &ClusterFile) -> Result<()> {
    let wrong = |with: &str, expected: &str| Err(Error::plan(key, format!("'{}' with {with}", rule.name()), expected));
    match (placement, &cluster.faults, &cluster.preempt) {
        (Placement::Pooled, None, None) => Ok(()),
        (Placement::Pooled, Some(_), _) => wrong("faults", "skip or stop where tasks fail of themselves"),
        (Placement::Pooled, None, Some(_)) => wrong("preempt", "skip or stop where tasks are stopped"),
        _ => wrong(
            &format!("placement '{}'", placement.name()),
            "placement pooled: reservations are of one pool; or skip or stop",
        ),
    }
}

/// Engine options.
fn options(cluster: &ClusterFile, until: Option<&str>, stands: SettingOrigin) -> Result<Options> {
    let key = |name| stands.key(&format!("cluster.{name}"));
    let placement =
        named(&cluster.placement, |text| text.parse().map_err(|error: Error| error.under(&key("placement"))))?;
    let on_blocked = named(&cluster.on_blocked, |text| OnBlocked::parse(&key("on_blocked"), text))?;
    if on_blocked.backfills() {
        goes_with_backfilling(&key("on_blocked"), on_blocked, placement, cluster)?;
    }
    Ok(Options {
        // Each run has its own seed, each policy its own order.
        seed: 0,
        inside: None,
        placement,
        slowdown: placed(&key("slowdown"), &cluster.slowdown, placement)?,
        distance: placed(&key("distance"), &cluster.distance, placement)?,
        faults: parsed(&key("faults"), &cluster.faults)?,
        on_blocked,
        ties: named(&cluster.ties, |text| Ties::parse(&key("ties"), text))?,
        hoard: hoard(&key("hoard"), cluster.hoard.as_deref(), placement)?,
        preempt: preempt(cluster, stands)?,
        displacing: displacing(cluster, stands)?,
        fall_back: fall_back(&key("fall_back"), cluster.fall_back.as_deref().unwrap_or(FALL_BACK))?,
        on_failure: named(&cluster.on_failure, |text| OnFailure::parse(&key("on_failure"), text))?,
        until: until.map(|text| horizon(&stands.key("until"), text)).transpose()?,
        audit: cluster.audit,
    })
}

/// The file that a text about machines names; `None` where it describes them itself.
pub fn machines_file(text: &str, folder: &Path) -> Option<PathBuf> {
    text.ends_with(".csv").then(|| folder.join(text))
}

/// Machines from text: `400x16c32g`, or a CSV file relative to `folder`.
pub fn machines_from(key: &str, text: &str, folder: &Path) -> Result<ClusterSpec> {
    match machines_file(text, folder) {
        Some(path) => file::read(&path),
        None => ClusterSpec::parse(key, text),
    }
}

/// The machines of a plan.
fn machines(cluster: &ClusterFile, folder: &Path, stands: SettingOrigin) -> Result<ClusterSpec> {
    let mut spec = match &cluster.machines {
        Some(text) => machines_from(&stands.key("cluster.machines"), text, folder)?,
        None => ClusterSpec::default(),
    };
    for (at, group) in cluster.group.iter().enumerate() {
        spec.groups.push(machine_group(&format!("cluster.group[{at}]"), group)?);
    }
    if spec.groups.is_empty() {
        return Err(Error::plan("cluster", "no machines", "machines = \"400x16c32g\", a .csv, or [[cluster.group]]"));
    }
    Ok(spec)
}

fn machine_group(key: &str, group: &toml::Table) -> Result<MachineGroup> {
    let (mut count, mut speed) = (1, Speed::default());
    let mut capacity: Vec<(Dim, u64)> = Vec::new();
    for (name, value) in group {
        let text = value.to_string();
        if name == "count" {
            let expected = "a whole number from 1";
            count = text
                .parse()
                .ok()
                .filter(|&n| n > 0)
                .ok_or_else(|| Error::plan(format!("{key}.count"), &text, expected))?;
            continue;
        }
        if name == "speed" {
            let millionths = decimal(text.as_bytes(), Speed::ONE, Rounding::Nearest).ok();
            speed = millionths
                .and_then(Speed::new)
                .ok_or_else(|| Error::plan(format!("{key}.speed"), &text, Speed::EXPECTED))?;
            continue;
        }
        if let Some(meant) = nearest(name, ["count", "speed"]) {
            let expected = format!("count, speed, or a resource (did you mean '{meant}'?)");
            return Err(Error::plan(format!("{key}.{name}"), &text, expected));
        }
        let (dim, scale) = Dim::parse(name);
        let amount = decimal(text.as_bytes(), scale, Rounding::Down)
            .map_err(|problem| Error::plan(format!("{key}.{name}"), &text, format!("an amount; this {problem}")))?;
        if capacity.iter().any(|(known, _)| known.name == dim.name) {
            return Err(Error::plan(format!("{key}.{name}"), &text, "each resource once"));
        }
        capacity.push((dim, amount));
    }
    if capacity.is_empty() {
        return Err(Error::plan(key, "no resources", "resources such as cpu = 16, memory_gib = 32"));
    }
    Ok(MachineGroup { count, capacity, speed, ..MachineGroup::default() })
}
