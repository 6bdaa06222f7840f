//! A plan: what to run, in TOML.
//!
//! Unknown keys are errors with a suggestion; every value is checked before anything runs.

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use super::changes::{apply, explain};
use super::machines::{ClusterFile, Stands, Supplied, supplied};
use super::seeds::{Precision, Seeds};
use super::window::Window;
use crate::cluster::ClusterSpec;
use crate::engine::Options;
use crate::error::{Error, Result, nearest};
use crate::output::portable;
use crate::output::schema::Table;
use crate::output::table::Constant;
use crate::pinned::Pinned;
use crate::policy::{NamedPolicy, QuotaFile, Registry, inside};
use crate::units::{Dim, Span, Time, span};
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
    #[serde(default)]
    pub seeds: Seeds,
    /// The first seed.
    #[serde(default = "one")]
    pub seed: u64,
    /// When to end though work is left (`2h`).
    pub until: Option<String>,
    /// The step of the sampling grid (`60s`).
    pub sample: Option<String>,
    /// Which part of a run is measured; all of it if absent.
    #[serde(default)]
    pub measure: MeasureFile,
    /// Which tables to write; all but `tasks`, `usage` and `decisions` if absent.
    pub tables: Option<Vec<String>>,
    /// A CSV of weights.
    pub weights: Option<PathBuf>,
    /// Quota groups by name, for policies `quota:@NAME`: the keys of a quota file.
    #[serde(default)]
    pub quota: toml::Table,
    /// The cluster that the workload runs on.
    pub cluster: ClusterFile,
    /// A generator with its parameters, or `trace = "file"`.
    pub workload: toml::Table,
}

fn one() -> u64 {
    1
}

/// The part of a run that is measured, as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureFile {
    /// Where the warm-up ends (`30m`); at the start if absent.
    pub from: Option<String>,
    /// Where the measuring ends (`4h`); never if absent.
    pub to: Option<String>,
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
    /// Resources of a canonical trace beside the usual ones and those of the machines.
    #[serde(default)]
    resources: Vec<String>,
}

/// The workload that arrives.
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
    /// The seeds; the first of them where `precision` decides how many.
    pub seeds: Vec<u64>,
    /// When there are enough seeds, if their number is not fixed.
    pub precision: Option<Precision>,
    /// How the engine goes about it.
    pub options: Options,
    /// The step of the sampling grid.
    pub sample: Span,
    /// Which part of a run is measured.
    pub window: Window,
    /// Which tables to write.
    pub tables: Vec<Table>,
    /// A CSV of weights.
    pub weights: Option<Pinned>,
    /// The file that the machines were read from.
    pub machines: Option<PathBuf>,
    /// The file that the machines' events were read from.
    pub machine_events: Option<PathBuf>,
    /// The cluster that the workload runs on.
    pub cluster: ClusterSpec,
    /// The workload that arrives.
    pub workload: WorkloadPlan,
    /// The plan as text: what every file of the results carries.
    pub text: String,
    /// A digest of what the results of its runs depend on, in hexadecimal.
    pub digest: String,
    /// The command that runs it again.
    pub command: String,
    /// The name of the cell of a sweep; empty without one.
    pub cell: String,
    /// Columns and values of the axes of a sweep.
    pub axes: Vec<(String, Constant)>,
}

/// The step of the sampling grid where a plan names none.
pub const SAMPLE: Span = Span::from_secs(60);

impl Plan {
    /// Checks a plan as it is written. Paths in it are relative to `folder`. Errors: [`Error::Plan`] with the key and what
    /// would be accepted.
    pub(super) fn check(
        file: PlanFile,
        folder: &Path,
        registry: &Registry,
        quotas: &[(String, QuotaFile)],
    ) -> Result<Plan> {
        check_name(&file.name)?;
        let planned = |name: &str| planned(name, quotas, registry, folder).map_err(|error| error.of_key("policies"));
        let policies = policies(&file.policies, planned)?;
        let baseline = match &file.baseline {
            None => 0,
            Some(name) => policies.iter().position(|policy| policy.name == *name).ok_or_else(|| {
                Error::plan("baseline", format!("'{name}'"), format!("one of {}", file.policies.join(", ")))
            })?,
        };
        let mut workload = workload(file.workload, folder)?;
        let replicated = match &workload {
            WorkloadPlan::Generator(_) => true,
            WorkloadPlan::Trace { thin, .. } => thin.is_some(),
        };
        let (count, precision) = match file.seeds {
            Seeds::Fixed(count) => (count, None),
            Seeds::Until(precision) => (precision.most, Some(precision)),
        };
        if !(1..=100_000).contains(&count) || (count > 1 && !replicated) {
            return Err(Error::plan(
                "seeds",
                count,
                "1 to 100000; 1 for a trace that is not thinned, which is always the same",
            ));
        }
        let seeds = (0..count)
            .map(|n| file.seed.checked_add(n).filter(|&seed| seed <= i64::MAX as u64))
            .collect::<Option<Vec<u64>>>()
            .ok_or_else(|| Error::plan("seed", file.seed, "a seed below 2^63"))?;
        let Supplied { cluster, options, machines, events } =
            supplied(&file.cluster, file.until.as_deref(), folder, Stands::InPlan)?;
        if let WorkloadPlan::Trace { options, .. } = &mut workload {
            options.resources.extend(cluster.resources());
        }
        let dims: Vec<Dim> =
            cluster.groups.iter().flat_map(|group| &group.capacity).map(|(dim, _)| dim.clone()).collect();
        if let Some(precision) = &precision {
            let columns = Table::Runs.columns(&dims);
            precision.known(columns.iter().map(|column| column.name.as_str()))?;
        }
        let weights = file.weights.map(|path| Pinned::new(&folder.join(path)).map_err(|error| error.of_key("weights")));
        let weights = weights.transpose()?;
        Ok(Plan {
            digest: String::new(),
            command: String::new(),
            cell: String::new(),
            axes: Vec::new(),
            name: file.name,
            question: file.question,
            policies,
            baseline,
            seeds,
            precision,
            options,
            sample: file.sample.as_deref().map_or(Ok(SAMPLE), |text| positive_span("sample", text))?,
            window: window(&file.measure)?,
            tables: file.tables.as_deref().map_or_else(|| Ok(default_tables()), tables)?,
            weights,
            machines,
            machine_events: events,
            cluster,
            workload,
            text: String::new(),
        })
    }

    /// The place of the run in a sweep, for every table: the cell, and the columns of the axes. Nothing without one.
    pub fn axes(&self) -> Vec<(String, Constant)> {
        let cell = (!self.cell.is_empty()).then(|| ("cell".to_owned(), Constant::Text(self.cell.clone())));
        cell.into_iter().chain(self.axes.iter().cloned()).collect()
    }
}

/// Checks the name of an experiment, which is that of the folder of its results. Errors: [`Error::Plan`].
pub fn check_name(name: &str) -> Result<()> {
    match portable::is_file_name(name) {
        true => Ok(()),
        false => Err(Error::plan("name", format!("'{}'", name.escape_debug()), portable::EXPECTED)),
    }
}

/// The tables that are written unless a plan says otherwise.
pub fn default_tables() -> Vec<Table> {
    Table::all().filter(|table| !matches!(table, Table::Tasks | Table::Usage | Table::Decisions)).collect()
}

/// A policy of a plan, which has quota groups of its own.
fn planned(name: &str, quotas: &[(String, QuotaFile)], registry: &Registry, folder: &Path) -> Result<NamedPolicy> {
    let (policy, inside) = inside::split(name)?;
    let Some(inline) = policy.strip_prefix(NamedPolicy::INLINE) else { return registry.policy_in(name, folder) };
    let quota = quotas.iter().find(|(known, _)| known == inline);
    quota.map(|(_, file)| NamedPolicy::quota(policy, file.clone()).with_inside(inside)).ok_or_else(|| {
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

/// The part of a run that is measured. Errors: not a span, or an end that is not behind the start.
fn window(file: &MeasureFile) -> Result<Window> {
    let all = Window::default();
    let at = |key: &str, text: &Option<String>, or: Time| text.as_deref().map_or(Ok(or), |text| horizon(key, text));
    let window = Window { from: at("measure.from", &file.from, all.from)?, to: at("measure.to", &file.to, all.to)? };
    if window.to <= window.from {
        let expected = "a time after measure.from";
        return Err(Error::plan("measure.to", format!("'{}'", file.to.as_deref().unwrap_or("")), expected));
    }
    Ok(window)
}

fn tables(names: &[String]) -> Result<Vec<Table>> {
    names.iter().map(|name| Table::parse("tables", name)).collect()
}

/// The workload that a `[workload]` table describes; paths in it are relative to `folder`.
pub fn workload(table: toml::Table, folder: &Path) -> Result<WorkloadPlan> {
    let wrong = |error: toml::de::Error| {
        Error::plan("workload", "this table", format!("a workload's parameters: {}", explain(&error)))
    };
    if table.contains_key("trace") {
        let file: TraceFile = table.try_into().map_err(wrong)?;
        let mut options = file.options.unwrap_or_default();
        options.resources = file.resources;
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
            let (key, given) = match table.contains_key("generator") {
                true => ("workload.generator", "what is no name"),
                false => ("workload", "a table without 'generator' or 'trace'"),
            };
            Err(Error::plan(key, given, format!("generator = one of {names}; or trace = \"file\"")))
        }
        Some(name) if !Generator::NAMES.contains(&name) => {
            let names = Generator::NAMES.join(", ");
            Err(Error::plan("workload.generator", format!("'{name}'"), format!("one of {names}")))
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
