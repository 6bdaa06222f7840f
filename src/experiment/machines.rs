//! The keys of a plan about machines, and about how tasks are placed on them.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::plan::{horizon, positive_span};
use crate::cluster::{ClusterSpec, MachineEvents, MachineGroup, Placement, events, file};
use crate::engine::{Options, Preempt, PreemptFrom, Slowdown};
use crate::error::{Error, Result, nearest};
use crate::units::{Dim, Round, Span, decimal, span};

/// The cluster as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// `400x16c32g`, or a CSV of machines.
    pub machines: Option<String>,
    /// Groups with resources of any name: `{ count = 400, cpu = 16, memory_gib = 32, disk_gib = 1000 }`.
    #[serde(default)]
    pub group: Vec<toml::Table>,
    /// The name of a placement rule.
    pub placement: Option<String>,
    /// `skip` or `stop`.
    pub on_blocked: Option<String>,
    /// `lowest-id`, `highest-id` or `fewest-running`.
    pub ties: Option<String>,
    /// How machines slow down when their memory is over-committed: `1:1,1.25:4`, loads and slowdowns.
    pub slowdown: Option<String>,
    /// A CSV of machine events: which fail, leave or join, and when.
    pub events: Option<PathBuf>,
    /// The fate of the tasks on a machine that fails: `requeue` or `lose`.
    pub on_failure: Option<String>,
    /// For how long gangs hold room that is not enough yet; they hold none if absent.
    pub hoard: Option<String>,
    /// Resources that are made of identified devices, such as `gpu`.
    #[serde(default)]
    pub devices: Vec<String>,
    /// For how long tasks may go on after more urgent ones have asked for their room; none are asked if absent.
    pub preempt: Option<String>,
    /// `any`, `same-user`, `same-group` or `above-quota`.
    pub preempt_from: Option<String>,
    /// After how long a task that waits for its location may start a level up: a span, or `never`.
    pub fall_back: Option<String>,
    /// Add the books up again after every round.
    #[serde(default)]
    pub audit: bool,
}

/// One of a few names, or the default.
fn choice<T: Default + std::str::FromStr<Err = Error>>(key: &str, name: Option<&str>) -> Result<T> {
    name.map_or(Ok(T::default()), |name| name.parse::<T>().map_err(|error| error.under(key)))
}

/// How machines slow down. Errors: no such curve, or no machines.
pub fn slowdown(key: &str, text: Option<&str>, placement: Placement) -> Result<Option<Slowdown>> {
    let Some(text) = text else { return Ok(None) };
    only_placed(key, placement)?;
    text.parse().map(Some).map_err(|error: Error| error.under(key))
}

/// After how long a task that waits for its location may start a level up, unless a plan says otherwise: the delay of
/// delay scheduling (Zaharia et al., EuroSys 2010) in its evaluation.
pub const FALL_BACK: &str = "5s";

/// Resources made of devices.
pub fn devices(key: &str, names: &[String], placement: Placement) -> Result<Vec<String>> {
    if !names.is_empty() {
        only_placed(key, placement)?;
    }
    Ok(names.to_vec())
}

/// For how long gangs hold room.
pub fn hoard(key: &str, text: &str, placement: Placement) -> Result<Span> {
    only_placed(key, placement)?;
    positive_span(key, text)
}

/// How urgent tasks come by room: a span, and which tasks may be asked. Errors: the second without the first.
pub fn preempt(keys: [&str; 2], texts: [&Option<String>; 2]) -> Result<Option<Preempt>> {
    let from = choice::<PreemptFrom>(keys[1], texts[1].as_deref())?;
    match (texts[0].as_deref(), texts[1]) {
        (None, None) => Ok(None),
        (None, Some(from)) => Err(Error::plan(keys[1], format!("'{from}'"), format!("a span in {} too", keys[0]))),
        (Some(text), _) => {
            let expected = "a time span such as 0s, 30s or 2m";
            let within = span(text).map_err(|_| Error::plan(keys[0], format!("'{text}'"), expected))?;
            Ok(Some(Preempt { within, from }))
        }
    }
}

/// A span, or `never`.
pub fn fall_back(key: &str, text: &str) -> Result<Option<Span>> {
    if text == "never" { Ok(None) } else { positive_span(key, text).map(Some).map_err(|error| error.or("never")) }
}

/// Errors: the key says something about machines, and tasks are not placed on any.
fn only_placed(key: &str, placement: Placement) -> Result<()> {
    let expected = "machines that tasks are placed on, such as placement first-fit";
    if placement == Placement::Pooled { Err(Error::plan(key, "placement 'pooled'", expected)) } else { Ok(()) }
}

/// The events of these machines. Errors: no such file, or one that makes no sense for them.
pub fn machine_events(
    key: &str,
    path: Option<&Path>,
    placement: Placement,
    spec: &ClusterSpec,
) -> Result<MachineEvents> {
    let Some(path) = path else { return Ok(MachineEvents::default()) };
    only_placed(key, placement)?;
    events::read(path, spec)
}

/// How the engine goes about it.
pub(super) fn options(cluster: &ClusterFile, until: Option<&str>) -> Result<Options> {
    let placement = choice("cluster.placement", cluster.placement.as_deref())?;
    Ok(Options {
        // Each run has its own.
        seed: 0,
        placement,
        slowdown: slowdown("cluster.slowdown", cluster.slowdown.as_deref(), placement)?,
        on_blocked: choice("cluster.on_blocked", cluster.on_blocked.as_deref())?,
        ties: choice("cluster.ties", cluster.ties.as_deref())?,
        hoard: cluster.hoard.as_deref().map(|text| hoard("cluster.hoard", text, placement)).transpose()?,
        preempt: preempt(["cluster.preempt", "cluster.preempt_from"], [&cluster.preempt, &cluster.preempt_from])?,
        fall_back: fall_back("cluster.fall_back", cluster.fall_back.as_deref().unwrap_or(FALL_BACK))?,
        on_failure: choice("cluster.on_failure", cluster.on_failure.as_deref())?,
        until: until.map(|text| horizon("until", text)).transpose()?,
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
pub(super) fn machines(cluster: &ClusterFile, folder: &Path) -> Result<ClusterSpec> {
    let mut spec = match &cluster.machines {
        Some(text) => machines_from("cluster.machines", text, folder)?,
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
    let mut count = 1;
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
        if nearest(name, ["count"]).is_some() {
            return Err(Error::plan(format!("{key}.{name}"), &text, "count, or a resource (did you mean 'count'?)"));
        }
        let (dim, scale) = Dim::parse(name);
        let amount = decimal(text.as_bytes(), scale, Round::Down)
            .map_err(|problem| Error::plan(format!("{key}.{name}"), &text, format!("an amount; this {problem}")))?;
        if capacity.iter().any(|(known, _)| known.name == dim.name) {
            return Err(Error::plan(format!("{key}.{name}"), &text, "each resource once"));
        }
        capacity.push((dim, amount));
    }
    if capacity.is_empty() {
        return Err(Error::plan(key, "no resources", "resources such as cpu = 16, memory_gib = 32"));
    }
    Ok(MachineGroup { count, capacity, ..MachineGroup::default() })
}
