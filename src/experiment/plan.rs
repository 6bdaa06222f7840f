//! A plan: what to run, in TOML.
//!
//! Unknown keys are errors with a suggestion; every value is checked before anything runs.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cluster::{ClusterSpec, MachineEvents, MachineGroup, Placement, events, file};
use crate::engine::{Options, Preempt, PreemptFrom, Slowdown};
use crate::error::{Error, Result, nearest};
use crate::output::schema::Table;
use crate::policy::{NamedPolicy, QuotaFile, Registry};
use crate::units::{Dim, Round, Span, Time, decimal, span};
use crate::workload::formats::{Format, FormatOptions, Tenants};
use crate::workload::synthetic::Generator;

/// A plan as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The experiment's name: the folder under `results/`.
    pub name: String,
    /// The question it answers, for the report.
    pub question: Option<String>,
    /// The policies to compare.
    pub policies: Vec<String>,
    /// The policy that others are compared with; the first one if absent.
    pub baseline: Option<String>,
    /// How many seeds a generator is run with.
    #[serde(default = "one")]
    pub seeds: u64,
    /// The first seed.
    #[serde(default = "one")]
    pub seed: u64,
    /// When to end though work is left (`2h`).
    pub until: Option<String>,
    /// The step of the sampling grid (`60s`).
    pub sample: Option<String>,
    /// Which tables to write; all but `tasks`, `usage` and `decisions` if absent.
    pub tables: Option<Vec<String>>,
    /// A CSV of weights.
    pub weights: Option<PathBuf>,
    /// Quota groups by name, for policies `quota:@NAME`: the keys of a quota file.
    #[serde(default)]
    pub quota: toml::Table,
    /// What the workload runs on.
    pub cluster: ClusterFile,
    /// A generator with its parameters, or `trace = "file"`.
    pub workload: toml::Table,
}

fn one() -> u64 {
    1
}

/// The cluster as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// `400x16c32g`, or a CSV of machines.
    pub machines: Option<String>,
    /// Groups with resources of any name: `{ count = 400, cpu = 16, memory_gib = 32, disk_gib = 1000 }`.
    #[serde(default)]
    pub group: Vec<toml::Table>,
    /// `pooled`, `first-fit`, `best-fit` or `worst-fit`.
    pub placement: Option<String>,
    /// `skip` or `stop`.
    pub on_blocked: Option<String>,
    /// `lowest-id`, `highest-id` or `fewest-running`.
    pub ties: Option<String>,
    /// How machines slow down when their memory is over-committed: `1:1,1.25:4`, loads and slowdowns.
    pub slowdown: Option<String>,
    /// A CSV of what happens to machines: which fail, leave or join, and when.
    pub events: Option<PathBuf>,
    /// What becomes of the tasks on a machine that fails: `requeue` or `lose`.
    pub on_failure: Option<String>,
    /// Resources that are made of identified devices, such as `gpu`.
    #[serde(default)]
    pub devices: Vec<String>,
    /// How long those may go on whom more urgent tasks ask for their room, and who may be asked; nobody is if absent.
    pub preempt: Option<String>,
    /// `any`, `same-user`, `same-group` or `above-quota`.
    pub preempt_from: Option<String>,
    /// After how long a task that waits for its location may start a level up: a span, or `never`.
    pub fall_back: Option<String>,
    /// Add the books up again after every round.
    #[serde(default)]
    pub audit: bool,
}

/// A trace as it is written in `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceFile {
    trace: PathBuf,
    format: Option<String>,
    tenants: Option<String>,
    thin: Option<f64>,
    options: Option<FormatOptions>,
}

/// What arrives.
#[derive(Clone, Debug)]
pub enum WorkloadPlan {
    /// A generator, run with every seed.
    Generator(Generator),
    /// A trace, the same for every seed.
    Trace {
        /// The file, or `-`.
        path: PathBuf,
        /// Its format; canonical or recognised if absent.
        format: Option<Format>,
        /// How it is imported.
        options: FormatOptions,
        /// The share of jobs that is kept, chosen by seed; all if absent.
        thin: Option<f64>,
    },
}

/// A plan, checked.
#[derive(Clone)]
pub struct Plan {
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The policies to compare, in order.
    pub policies: Vec<NamedPolicy>,
    /// Which of them the others are compared with.
    pub baseline: usize,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How the engine goes about it.
    pub options: Options,
    /// The step of the sampling grid.
    pub sample: Span,
    /// Which tables to write.
    pub tables: Vec<Table>,
    /// A CSV of weights.
    pub weights: Option<PathBuf>,
    /// What the workload runs on.
    pub cluster: ClusterSpec,
    /// What arrives.
    pub workload: WorkloadPlan,
    /// The plan as text: what every file of the results carries.
    pub text: String,
    /// The command that runs it again.
    pub command: String,
}

/// The step of the sampling grid where a plan names none.
pub const SAMPLE: Span = Span::from_secs(60);

impl Plan {
    /// Reads a plan and checks it; `set` are `key=value` changes made to it first.
    ///
    /// Paths in it are relative to its folder. Errors: [`Error::PlanSyntax`] with line and column, [`Error::Plan`] with
    /// the key and what would be accepted.
    pub fn read(path: &Path, set: &[String], registry: &Registry) -> Result<Plan> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        let text = text.trim_start_matches('\u{feff}');
        let syntax = |error: toml::de::Error| Error::PlanSyntax { path: path.to_owned(), message: explain(&error) };
        // Parsed from its own text first, so that errors have their line.
        let file: PlanFile = toml::from_str(text).map_err(syntax)?;
        let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
        let file = if set.is_empty() {
            file
        } else {
            set.iter().try_for_each(|change| apply(&mut table, change, "workload.load=0.7"))?;
            table.clone().try_into().map_err(|error: toml::de::Error| {
                Error::plan("--set", format!("'{}'", set.join(" ")), explain(&error))
            })?
        };
        let canonical =
            toml::to_string(&table).map_err(|error| Error::plan("plan", path.display(), error.to_string()))?;
        // Where the plan lay and what was set differ between two ways to run the same plan: run.json has them.
        let command = format!("plimsoll run {}.toml  # the plan of this page, saved under that name", file.name);
        let folder = path.parent().unwrap_or(Path::new(""));
        // With --set, lines are those of the plan that it makes.
        let quotas = match set {
            [] => QuotaFile::in_plan(path, text, folder)?,
            _ => QuotaFile::in_plan(&PathBuf::from(format!("{} with --set", path.display())), &canonical, folder)?,
        };
        let plan = Plan::check(file, folder, registry, &quotas).map_err(|error| in_plan(error, path, text))?;
        Ok(Plan { text: canonical, command, ..plan })
    }

    fn check(file: PlanFile, folder: &Path, registry: &Registry, quotas: &[(String, QuotaFile)]) -> Result<Plan> {
        if file.name.is_empty() || file.name.contains(['/', '\\']) || file.name.starts_with('.') {
            return Err(Error::plan(
                "name",
                format!("'{}'", file.name),
                "a name for the results' folder, without slashes",
            ));
        }
        let policies = policies(&file.policies, |name| planned(name, quotas, registry, folder))?;
        let baseline = match &file.baseline {
            None => 0,
            Some(name) => policies.iter().position(|policy| policy.name == *name).ok_or_else(|| {
                Error::plan("baseline", format!("'{name}'"), format!("one of {}", file.policies.join(", ")))
            })?,
        };
        let workload = workload(file.workload, folder)?;
        let replicated = match &workload {
            WorkloadPlan::Generator(_) => true,
            WorkloadPlan::Trace { thin, .. } => thin.is_some(),
        };
        if !(1..=100_000).contains(&file.seeds) || (file.seeds > 1 && !replicated) {
            return Err(Error::plan(
                "seeds",
                file.seeds,
                "1 to 100000; 1 for a trace that is not thinned, which is always the same",
            ));
        }
        let seeds = (0..file.seeds)
            .map(|n| file.seed.checked_add(n).filter(|&seed| seed <= i64::MAX as u64))
            .collect::<Option<Vec<u64>>>()
            .ok_or_else(|| Error::plan("seed", file.seed, "a seed below 2^63"))?;
        let options = options(&file.cluster, file.until.as_deref())?;
        let mut cluster = machines(&file.cluster, folder)?;
        let happens = file.cluster.events.as_ref().map(|path| folder.join(path));
        cluster.events = machine_events("cluster.events", happens.as_deref(), options.placement, &cluster)?;
        cluster.devices = devices("cluster.devices", &file.cluster.devices, options.placement)?;
        Ok(Plan {
            command: String::new(),
            name: file.name,
            question: file.question,
            policies,
            baseline,
            seeds,
            options,
            sample: file.sample.as_deref().map_or(Ok(SAMPLE), |text| positive_span("sample", text))?,
            tables: file.tables.as_deref().map_or_else(|| Ok(default_tables()), tables)?,
            weights: file.weights.map(|path| folder.join(path)),
            cluster,
            workload,
            text: String::new(),
        })
    }

    /// All runs: which policy, which seed, in the order of the results.
    pub fn runs(&self) -> Vec<(usize, usize)> {
        (0..self.policies.len()).flat_map(|policy| (0..self.seeds.len()).map(move |seed| (policy, seed))).collect()
    }
}

/// The tables that are written unless a plan says otherwise.
pub fn default_tables() -> Vec<Table> {
    Table::ALL.into_iter().filter(|table| !matches!(table, Table::Tasks | Table::Usage | Table::Decisions)).collect()
}

/// A policy of a plan, which has quota groups of its own.
fn planned(name: &str, quotas: &[(String, QuotaFile)], registry: &Registry, folder: &Path) -> Result<NamedPolicy> {
    let Some(inline) = name.strip_prefix(NamedPolicy::INLINE) else { return registry.policy_in(name, folder) };
    let quota = quotas.iter().find(|(known, _)| known == inline);
    quota.map(|(_, file)| NamedPolicy::quota(name, file.clone())).ok_or_else(|| {
        let hint = nearest(inline, quotas.iter().map(|(known, _)| known.as_str()));
        let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
        Error::plan("policies", format!("'{name}'"), format!("a table [quota.{inline}] in this plan{hint}"))
    })
}

/// The policies of these names, as `find` knows them. Errors: an unknown name, none, or one twice.
pub fn policies(names: &[String], find: impl Fn(&str) -> Result<NamedPolicy>) -> Result<Vec<NamedPolicy>> {
    let policies = names.iter().map(|name| find(name)).collect::<Result<Vec<NamedPolicy>>>()?;
    if policies.is_empty() {
        return Err(Error::plan("policies", "[]", "at least one policy, such as \"drf\""));
    }
    if let Some(twice) =
        policies.iter().enumerate().find(|(at, policy)| policies[..*at].iter().any(|p| p.name == policy.name))
    {
        return Err(Error::plan("policies", format!("'{}' twice", twice.1.name), "each policy once"));
    }
    Ok(policies)
}

/// A span above 0.
pub fn positive_span(key: &str, text: &str) -> Result<Span> {
    let expected = "a time span above 0 such as 90s, 15m or 2h";
    match span(text) {
        Ok(span) if span > Span::ZERO => Ok(span),
        _ => Err(Error::plan(key, format!("'{text}'"), expected)),
    }
}

/// A horizon.
pub fn horizon(key: &str, text: &str) -> Result<Time> {
    positive_span(key, text).map(|span| Time::ZERO + span)
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

/// How urgent tasks come by room: a span, and who may be asked. Errors: the second without the first.
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
    if text == "never" { Ok(None) } else { positive_span(key, text).map(Some) }
}

/// Errors: the key says something about machines, and tasks are not placed on any.
fn only_placed(key: &str, placement: Placement) -> Result<()> {
    let expected = "machines that tasks are placed on, such as placement first-fit";
    if placement == Placement::Pooled { Err(Error::plan(key, "placement 'pooled'", expected)) } else { Ok(()) }
}

/// What happens to these machines. Errors: no such file, or one that makes no sense for them.
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

fn options(cluster: &ClusterFile, until: Option<&str>) -> Result<Options> {
    let placement = choice("cluster.placement", cluster.placement.as_deref())?;
    Ok(Options {
        // Each run has its own.
        seed: 0,
        placement,
        slowdown: slowdown("cluster.slowdown", cluster.slowdown.as_deref(), placement)?,
        on_blocked: choice("cluster.on_blocked", cluster.on_blocked.as_deref())?,
        ties: choice("cluster.ties", cluster.ties.as_deref())?,
        preempt: preempt(["cluster.preempt", "cluster.preempt_from"], [&cluster.preempt, &cluster.preempt_from])?,
        fall_back: fall_back("cluster.fall_back", cluster.fall_back.as_deref().unwrap_or(FALL_BACK))?,
        on_failure: choice("cluster.on_failure", cluster.on_failure.as_deref())?,
        until: until.map(|text| horizon("until", text)).transpose()?,
        audit: cluster.audit,
    })
}

fn tables(names: &[String]) -> Result<Vec<Table>> {
    let known = || Table::ALL.iter().map(|table| table.name());
    names
        .iter()
        .map(|name| {
            Table::ALL.into_iter().find(|table| table.name() == name).ok_or_else(|| {
                let hint = nearest(name, known()).map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
                Error::plan("tables", format!("'{name}'"), format!("{}{hint}", known().collect::<Vec<_>>().join(", ")))
            })
        })
        .collect()
}

/// Machines from text: `400x16c32g`, or a CSV file relative to `folder`.
pub fn machines_from(key: &str, text: &str, folder: &Path) -> Result<ClusterSpec> {
    if text.ends_with(".csv") { file::read(&folder.join(text)) } else { ClusterSpec::parse(key, text) }
}

fn machines(cluster: &ClusterFile, folder: &Path) -> Result<ClusterSpec> {
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

/// What a `[workload]` table means; paths in it are relative to `folder`.
pub fn workload(table: toml::Table, folder: &Path) -> Result<WorkloadPlan> {
    let wrong = |error: toml::de::Error| {
        Error::plan("workload", "this table", format!("a workload's parameters: {}", explain(&error)))
    };
    if table.contains_key("trace") {
        let file: TraceFile = table.try_into().map_err(wrong)?;
        let mut options = file.options.unwrap_or_default();
        if let Some(rule) = &file.tenants {
            options.tenants = Some(Tenants::parse("workload.tenants", rule)?);
        }
        let format = file.format.as_deref().map(|name| Format::parse("workload.format", name)).transpose()?;
        let path = if file.trace == Path::new("-") { file.trace } else { folder.join(file.trace) };
        return Ok(WorkloadPlan::Trace { path, format, options, thin: check_thin("workload.thin", file.thin)? });
    }
    match table.get("generator").and_then(toml::Value::as_str) {
        None => {
            let names = Generator::NAMES.join(", ");
            Err(Error::plan(
                "workload",
                "a table without 'generator' or 'trace'",
                format!("generator = one of {names}; or trace = \"file\""),
            ))
        }
        Some(name) if !Generator::NAMES.contains(&name) => {
            let hint =
                nearest(name, Generator::NAMES).map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
            let names = Generator::NAMES.join(", ");
            Err(Error::plan("workload.generator", format!("'{name}'"), format!("one of {names}{hint}")))
        }
        Some(_) => Ok(WorkloadPlan::Generator(table.try_into().map_err(wrong)?)),
    }
}

/// A share of jobs to keep.
pub fn check_thin(key: &str, thin: Option<f64>) -> Result<Option<f64>> {
    match thin {
        Some(share) if !(share > 0.0 && share <= 1.0) => {
            Err(Error::plan(key, share, "the share of jobs to keep, above 0 and at most 1"))
        }
        share => Ok(share),
    }
}

/// An error about a key, with the file and, if only one line can be meant, the line.
fn in_plan(error: Error, path: &Path, text: &str) -> Error {
    let Error::Plan { key, expected, .. } = &error else { return error };
    // The parser of a table inside the plan knows a misspelt key but not its line.
    let named = expected.split('`').nth(1).filter(|_| expected.contains("unknown field"));
    let last = key.rsplit('.').next().unwrap_or(key);
    let word = named.unwrap_or(last.split('[').next().unwrap_or(last));
    let sets = |line: &str| {
        let found = line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back().is_none_or(|c| c == ' ' || c == '{' || c == ',' || c == '"');
            before && line[at + word.len()..].trim_start_matches('"').trim_start().starts_with('=')
        });
        found && !line.trim_start().starts_with('#')
    };
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| sets(line)).map(|(number, _)| number);
    let message = match (lines.next(), lines.next()) {
        (Some(line), None) => format!("line {line}: {error}"),
        _ => error.to_string(),
    };
    Error::PlanSyntax { path: path.to_owned(), message }
}

/// The parser's message, with a suggestion where a key is misspelt.
pub fn explain(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let mut quoted = text.split('`').skip(1).step_by(2);
    let hint =
        text.contains("unknown field").then(|| quoted.next()).flatten().and_then(|unknown| nearest(unknown, quoted));
    match hint {
        Some(hint) => format!("{}\nDid you mean '{hint}'?", text.trim_end()),
        None => text.trim_end().to_owned(),
    }
}

/// Makes one `key=value` change, such as `example`; the value is read as TOML, or else as text.
pub fn apply(table: &mut toml::Table, change: &str, example: &str) -> Result<()> {
    let wrong = |expected: &str| Error::plan("--set", format!("'{change}'"), expected.to_owned());
    let (path, value) = change.split_once('=').ok_or_else(|| wrong(&format!("key=value, such as {example}")))?;
    let value = match format!("value = {value}").parse::<toml::Table>() {
        Ok(mut parsed) => parsed.remove("value").ok_or_else(|| wrong("one value"))?,
        Err(_) => toml::Value::String(value.to_owned()),
    };
    let (parents, key) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = table;
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        let next = at.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = next.as_table_mut().ok_or_else(|| wrong(&format!("a path of tables, such as {example}")))?;
    }
    at.insert(key.trim().to_owned(), value);
    Ok(())
}
