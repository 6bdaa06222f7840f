//! The keys of a plan about machines and about the placement of tasks.
//!
//! [`cluster_plan`] reads the table `cluster` of a plan, or the same settings from the command line, and returns the machines and the
//! engine options. Settings that require individual machines are refused for a pooled cluster, and combinations that the engine does not
//! support are refused with the key and the accepted values.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::settings::{SettingOrigin, horizon, positive_span};
use crate::cluster::{ClusterSpec, MachineGroup, Placement, Speed, events, file};
use crate::engine::{OnBlocked, OnFailure, Options, Preempt, PreemptFor, PreemptFrom, PreemptionLimits, Ties};
use crate::error::{Error, Result, nearest};
use crate::units::{Dim, Rounding, Span, decimal, span};

/// Reads the value of `machines`. A value that is not text is an error; the message has an example.
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

/// The cluster as written in the plan.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// The machines: `400x16c32g`, or a CSV of machines.
    #[serde(default, deserialize_with = "machines_text")]
    pub machines: Option<String>,
    /// Groups of machines with resources of any name: `{ count = 400, cpu = 16, memory_gib = 32, disk_gib = 1000 }`.
    #[serde(default)]
    pub group: Vec<toml::Table>,
    /// The name of a placement rule.
    pub placement: Option<String>,
    /// The rule for tasks that do not fit: `skip`, `stop`, `easy` or `conservative`.
    pub on_blocked: Option<String>,
    /// The order among users of equal rank; see [`Ties`].
    pub ties: Option<String>,
    /// The slowdown of machines with over-committed memory, as loads and slowdowns: `1:1,1.25:4`.
    pub slowdown: Option<String>,
    /// Factors of the run time in the same rack as the preferred machine, in the same room, and in other rooms: `1.1,1.3,2`.
    pub distance: Option<String>,
    /// The failures, stragglers and backups of tasks: `fail=0.02,retries=3,straggle=0.05x4,backup=0.9x3`. Each part may be omitted.
    pub faults: Option<String>,
    /// A CSV of machine events: machines that fail, leave or join, and the times of these events.
    pub events: Option<PathBuf>,
    /// The fate of the tasks on a machine that fails: `requeue` or `lose`.
    pub on_failure: Option<String>,
    /// The span for which a gang may hold free room while it waits for the rest of the room that it needs; absent: gangs hold no room.
    pub hoard: Option<String>,
    /// Resources that consist of identified devices, such as `gpu`.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The span of notice before a task is preempted; absent: no tasks are preempted.
    pub preempt: Option<String>,
    /// The tasks that may preempt others: `urgent`, `order` or `share`.
    pub preempt_for: Option<String>,
    /// The tasks that may be preempted: `any`, `same-user`, `same-group` or `above-quota`.
    pub preempt_from: Option<String>,
    /// The time that a task must have run before it may be preempted.
    pub min_run: Option<String>,
    /// The maximum number of preemptions within a span, such as `10/60s`; `none` for no limit.
    pub stop_limit: Option<String>,
    /// The running time between two checkpoints; a stopped task resumes from its last checkpoint.
    pub checkpoint: Option<String>,
    /// The time that a stopped task takes to resume.
    pub restart_delay: Option<String>,
    /// The time that a task waits for room at its location before it may start in the next larger location (rack, room, cluster): a span,
    /// or `never`.
    pub fall_back: Option<String>,
    /// Whether to recompute and compare the books after every round.
    #[serde(default)]
    pub audit: bool,
}

/// Parses a name, or returns the default if it is absent.
fn named<T: Default>(name: &Option<String>, parse: impl FnOnce(&str) -> Result<T>) -> Result<T> {
    name.as_deref().map_or_else(|| Ok(T::default()), parse)
}

/// The machines of a plan and the engine options.
pub struct ClusterPlan {
    /// The machines.
    pub cluster: ClusterSpec,
    /// Engine options.
    pub options: Options,
    /// The file of the machines, if there is one.
    pub machines: Option<PathBuf>,
    /// The file of the machine events, if there are any.
    pub events: Option<PathBuf>,
}

/// Reads the settings of a cluster; files are in `folder` unless their paths are absolute. Errors: [`Error::Plan`] with the key, and
/// errors of the files.
pub fn cluster_plan(
    file: &ClusterFile,
    until: Option<&str>,
    folder: &Path,
    origin: SettingOrigin,
) -> Result<ClusterPlan> {
    let options = options(file, until, origin)?;
    let mut cluster = machines(file, folder, origin).map_err(|error| origin.of_file("cluster.machines", error))?;
    let events = file.events.as_ref().map(|path| folder.join(path));
    if let Some(path) = &events {
        only_placed(&origin.key("cluster.events"), options.placement)?;
        cluster.events = events::read(path, &cluster).map_err(|error| origin.of_file("cluster.events", error))?;
    }
    if !file.devices.is_empty() {
        only_placed(&origin.key("cluster.devices"), options.placement)?;
    }
    cluster.devices.clone_from(&file.devices);
    let machines = file.machines.as_deref().and_then(|text| machines_file(text, folder));
    Ok(ClusterPlan { cluster, options, machines, events })
}

/// Parses an optional setting that requires machines with task placement.
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

/// Parses an optional setting.
fn parsed<T: std::str::FromStr<Err = Error>>(key: &str, text: &Option<String>) -> Result<Option<T>> {
    text.as_ref().map(|text| text.parse().map_err(|error: Error| error.under(key))).transpose()
}

/// Parses the span for which gangs may hold room.
fn hoard(key: &str, text: Option<&str>, placement: Placement) -> Result<Option<Span>> {
    let Some(text) = text else { return Ok(None) };
    only_placed(key, placement)?;
    positive_span(key, text).map(Some)
}

/// The default of `fall_back`: the delay in the evaluation of delay scheduling (Zaharia et al., EuroSys 2010).
pub const FALL_BACK: &str = "5s";

/// Reads the preemption options: the span of notice, which tasks may preempt, and which may be preempted. Errors: one of the other options
/// without the span, and `preempt_from` if shares or the order of tasks already determine the victims.
fn preempt(file: &ClusterFile, origin: SettingOrigin) -> Result<Option<Preempt>> {
    let [key, for_key, from_key] =
        ["cluster.preempt", "cluster.preempt_for", "cluster.preempt_from"].map(|name| origin.key(name));
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

/// Parses a span that may be 0.
fn any_span(key: &str, text: &str) -> Result<Span> {
    span(text).map_err(|_| Error::plan(key, format!("'{text}'"), "a time span such as 0s, 30s or 2m"))
}

/// Reads the limits and costs of preemption.
fn preemption_limits(file: &ClusterFile, origin: SettingOrigin) -> Result<PreemptionLimits> {
    let key = |name: &str| origin.key(&format!("cluster.{name}"));
    let read = |name, text: &Option<String>| text.as_ref().map_or(Ok(Span::ZERO), |text| any_span(&key(name), text));
    let limit = file.stop_limit.clone().filter(|text| text != "none");
    Ok(PreemptionLimits {
        min_run: read("min_run", &file.min_run)?,
        limit: parsed(&key("stop_limit"), &limit).map_err(|error| error.or("none"))?,
        checkpoint: read("checkpoint", &file.checkpoint)?,
        restart_delay: read("restart_delay", &file.restart_delay)?,
    })
}

/// Parses a span, or `never`.
fn fall_back(key: &str, text: &str) -> Result<Option<Span>> {
    if text == "never" { Ok(None) } else { positive_span(key, text).map(Some).map_err(|error| error.or("never")) }
}

/// Checks that the cluster is not pooled, for a setting that requires machines with task placement.
fn only_placed(key: &str, placement: Placement) -> Result<()> {
    let expected = "machines that tasks are placed on, such as placement first-fit";
    if placement == Placement::Pooled { Err(Error::plan(key, "placement 'pooled'", expected)) } else { Ok(()) }
}

/// Checks that end times are known and that the cluster is pooled. Backfilling requires both.
fn goes_with_backfilling(key: &str, rule: OnBlocked, placement: Placement, cluster: &ClusterFile) -> Result<()> {
    let wrong = |with: &str, expected: &str| Err(Error::plan(key, format!("'{}' with {with}", rule.name()), expected));
    match (placement, &cluster.faults, &cluster.preempt) {
        (Placement::Pooled, None, None) => Ok(()),
        (Placement::Pooled, Some(_), _) => wrong("faults", "skip or stop with failures of tasks"),
        (Placement::Pooled, None, Some(_)) => wrong("preempt", "skip or stop with preemption"),
        _ => wrong(
            &format!("placement '{}'", placement.name()),
            "placement pooled, since reservations apply to one pool; or skip or stop",
        ),
    }
}

/// Reads the engine options.
fn options(cluster: &ClusterFile, until: Option<&str>, origin: SettingOrigin) -> Result<Options> {
    let key = |name| origin.key(&format!("cluster.{name}"));
    let placement =
        named(&cluster.placement, |text| text.parse().map_err(|error: Error| error.under(&key("placement"))))?;
    let on_blocked = named(&cluster.on_blocked, |text| OnBlocked::parse(&key("on_blocked"), text))?;
    if on_blocked.backfills() {
        goes_with_backfilling(&key("on_blocked"), on_blocked, placement, cluster)?;
    }
    Ok(Options {
        // `seed` is overwritten for each run, and `job_order` for each policy.
        seed: 0,
        job_order: None,
        placement,
        slowdown: placed(&key("slowdown"), &cluster.slowdown, placement)?,
        distance: placed(&key("distance"), &cluster.distance, placement)?,
        faults: parsed(&key("faults"), &cluster.faults)?,
        on_blocked,
        ties: named(&cluster.ties, |text| Ties::parse(&key("ties"), text))?,
        hoard: hoard(&key("hoard"), cluster.hoard.as_deref(), placement)?,
        preempt: preempt(cluster, origin)?,
        preemption_limits: preemption_limits(cluster, origin)?,
        fall_back: fall_back(&key("fall_back"), cluster.fall_back.as_deref().unwrap_or(FALL_BACK))?,
        on_failure: named(&cluster.on_failure, |text| OnFailure::parse(&key("on_failure"), text))?,
        until: until.map(|text| horizon(&origin.key("until"), text)).transpose()?,
        audit: cluster.audit,
    })
}

/// Returns the file that a setting of machines names; `None` if the text describes the machines itself.
pub fn machines_file(text: &str, folder: &Path) -> Option<PathBuf> {
    text.ends_with(".csv").then(|| folder.join(text))
}

/// Reads machines from text: `400x16c32g`, or a CSV file relative to `folder`.
pub fn machines_from(key: &str, text: &str, folder: &Path) -> Result<ClusterSpec> {
    match machines_file(text, folder) {
        Some(path) => file::read(&path),
        None => ClusterSpec::parse(key, text),
    }
}

/// Reads the machines of a plan.
fn machines(cluster: &ClusterFile, folder: &Path, origin: SettingOrigin) -> Result<ClusterSpec> {
    let mut spec = match &cluster.machines {
        Some(text) => machines_from(&origin.key("cluster.machines"), text, folder)?,
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
