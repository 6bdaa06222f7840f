//! A plan: the workload, cluster, policies and seeds of an experiment, in TOML.
//!
//! [`PlanFile`] has the keys as written; [`Plan::check`] validates them and returns a [`Plan`]. Unknown keys are errors with a suggestion,
//! and every value is checked before the first run. Includes, sweeps and figures are resolved by [`super::study`] before a plan is
//! checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::machines::{ClusterFile, ClusterPlan, cluster_plan};
use super::own::{MetricFile, own_metrics};
use super::seeds::{Precision, Seeds};
use super::workload::{WorkloadFile, WorkloadPlan};
use super::{OwnMetric, SharedSupply, Simulation};
use plimsoll_base::error::{Error, Result, each};
use plimsoll_base::pinned::Pinned;
use plimsoll_base::settings::{SettingOrigin, horizon, positive_span};
use plimsoll_base::tree::Node;
use plimsoll_base::units::{Dim, Rounding, Span, Time, decimal};
use plimsoll_control::settings::{ControlFile, ControlPlan};
use plimsoll_metrics::Window;
use plimsoll_policies::{NamedPolicy, PlanGroups, QueueFile, QuotaFile, Registry};
use plimsoll_results::folder::check_name;
use plimsoll_results::schema::Table;
use plimsoll_sim::cluster::{ClusterSpec, Placement};
use plimsoll_sim::engine::Options;
use plimsoll_sim::workload::Service;
use plimsoll_store::table::Constant;

/// A plan as written in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The name of the experiment, which is also the folder under `results/`.
    pub name: String,
    /// The question that the experiment answers, for the report.
    pub question: Option<String>,
    /// The policies to compare.
    pub policies: Vec<String>,
    /// The policy that the others are compared with; absent: the first policy.
    pub baseline: Option<String>,
    /// The number of seeds of a generated workload.
    #[serde(default)]
    pub seeds: Seeds,
    /// The first seed.
    #[serde(default = "one")]
    pub seed: u64,
    /// The horizon (`2h`), at which a run ends even if work is left.
    pub until: Option<String>,
    /// The step of the sampling grid (`60s`).
    pub sample: Option<String>,
    /// The part of a run that is measured; absent: the whole run.
    #[serde(default)]
    pub measure: MeasureFile,
    /// The tables to write; absent: all except `tasks`, `usage` and `decisions`.
    pub tables: Option<Vec<String>>,
    /// A CSV of weights.
    pub weights: Option<PathBuf>,
    /// Quota groups by name, for policies `quota:@NAME`: the keys of a quota file.
    #[serde(default, deserialize_with = "apart")]
    pub quota: Vec<(String, QuotaFile)>,
    /// Queues by name, for policies such as `kueue:@NAME`: the keys of a file of queues.
    #[serde(default, deserialize_with = "apart")]
    pub queues: Vec<(String, QueueFile)>,
    /// Own metrics by name.
    #[serde(default)]
    pub metric: BTreeMap<String, MetricFile>,
    /// The cluster that the workload runs on.
    pub cluster: ClusterFile,
    /// Online services in addition to the workload.
    #[serde(default)]
    pub service: Vec<ServiceFile>,
    /// The control plane between scheduler and machines; absent: none.
    pub control: Option<ControlFile>,
    /// A generator with its parameters, or `trace = "file"`.
    #[serde(deserialize_with = "apart")]
    pub workload: Option<WorkloadFile>,
}

/// Ignores the value and returns the default, because [`PlanFile::read`] reads the value separately.
fn apart<'de, D: Deserializer<'de>, T: Default>(deserializer: D) -> std::result::Result<T, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|IgnoredAny| T::default())
}

fn one() -> u64 {
    1
}

/// The measured part of a run, as written in the plan.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureFile {
    /// The end of the warm-up (`30m`); the start of the run if absent.
    pub from: Option<String>,
    /// The end of the measurement (`4h`); absent: the end of the run.
    pub to: Option<String>,
}

/// An online service as written in the plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceFile {
    /// The name of the service's job.
    pub name: String,
    /// The user that owns the service; a user with the service's name if absent.
    pub user: Option<String>,
    /// The number of tasks.
    pub tasks: u32,
    /// The demand of each task: `{ cpu = 4, memory_gib = 8 }`.
    pub demand: toml::Table,
    /// The priority, from 0 (most urgent) to 9.
    #[serde(default)]
    pub priority: u8,
}

/// A validated plan.
#[derive(Clone)]
pub struct Plan {
    /// The name of the experiment.
    pub name: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The policies to compare, in order.
    pub policies: Vec<NamedPolicy>,
    /// The index of the policy that the others are compared with.
    pub baseline: usize,
    /// The seeds. If `precision` is reached earlier, only the first ones are used.
    pub seeds: Vec<u64>,
    /// The precision that determines the number of seeds, if the number is not fixed.
    pub precision: Option<Precision>,
    /// Engine options.
    pub options: Options,
    /// The control plane between scheduler and machines, if the plan has one.
    pub control: Option<ControlPlan>,
    /// Online services in addition to the workload.
    pub services: Vec<Service>,
    /// The step of the sampling grid.
    pub sample: Span,
    /// The part of a run that is measured.
    pub window: Window,
    /// The tables to write.
    pub tables: Vec<Table>,
    /// Own metrics, by name.
    pub metrics: Vec<OwnMetric>,
    /// A CSV of weights.
    pub weights: Option<Pinned>,
    /// The file of the machines, if they were read from a file.
    pub machines: Option<PathBuf>,
    /// The file of the machine events, if there is one.
    pub machine_events: Option<PathBuf>,
    /// The trace with tasks that define fragments, if it is not the workload.
    pub mix: Option<Pinned>,
    /// The cluster that the workload runs on.
    pub cluster: ClusterSpec,
    /// The workload.
    pub workload: WorkloadPlan,
    /// The plan as text; it is stored in every file of the results.
    pub text: String,
    /// The digest, in hexadecimal, of everything in the plan that affects the results of a run.
    pub digest: String,
    /// The command that runs the plan again.
    pub command: String,
    /// The name of the cell of a sweep; empty without a sweep.
    pub cell: String,
    /// Columns and values of the axes of a sweep.
    pub axes: Vec<(String, Constant)>,
}

/// The default step of the sampling grid.
pub const SAMPLE: Span = Span::from_secs(60);

impl PlanFile {
    /// Reads a plan; files of its quota groups are relative to `folder`. Errors: [`Error::Placed`], [`Error::Plan`].
    pub(super) fn read(tree: &Node, folder: &Path, registry: &Registry) -> Result<PlanFile> {
        let mut file: PlanFile = tree.read()?;
        if let Some(quotas) = tree.get("quota") {
            file.quota = QuotaFile::in_plan(quotas, folder)?;
        }
        if let Some(queues) = tree.get("queues") {
            file.queues = QueueFile::in_plan(queues, &registry.catalogue().queue_keys())?;
        }
        file.workload = tree.get("workload").map(|entry| WorkloadFile::read(&entry.node)).transpose()?;
        Ok(file)
    }
}

impl Plan {
    /// Returns the simulation of this plan with this supply; `workload` is the name of the workload.
    pub fn simulation<'a>(&'a self, supply: &'a SharedSupply, workload: &'a str) -> Simulation<'a> {
        Simulation {
            supply,
            workload,
            cluster: &self.cluster,
            weights: self.weights.as_ref(),
            mix: self.mix.as_ref(),
            options: &self.options,
            control: self.control.as_ref(),
            services: &self.services,
            sample: self.sample,
            window: self.window,
            intervention: None,
            metrics: &self.metrics,
        }
    }

    /// Validates a plan. Paths in it are relative to `folder`; messages name its keys, or the options of the command line, depending on the
    /// origin. Errors: [`Error::Plan`] with the key and the accepted values.
    pub fn check(file: PlanFile, folder: &Path, registry: &Registry, origin: SettingOrigin) -> Result<Plan> {
        check_name(&file.name)?;
        let policies = policies(&file, folder, registry, origin)?;
        let baseline = match &file.baseline {
            None => 0,
            Some(name) => policies.iter().position(|policy| policy.name == *name).ok_or_else(|| {
                Error::plan("baseline", format!("'{name}'"), format!("one of {}", file.policies.join(", ")))
            })?,
        };
        let ClusterPlan { cluster, options, machines, events, mix } =
            cluster_plan(&file.cluster, file.until.as_deref(), folder, origin)?;
        let count: u64 = cluster.groups.iter().map(|group| u64::from(group.count)).sum();
        let pooled = options.placement == Placement::Pooled;
        let control = file.control.as_ref().map(|file| ControlPlan::check(file, count, pooled)).transpose()?;
        let missing = || Error::plan("workload", "nothing", "a generator or a trace");
        let workload = file.workload.ok_or_else(missing)?.plan(folder, &cluster, origin)?;
        let (count, precision) = match file.seeds {
            Seeds::Fixed(count) => (count, None),
            Seeds::Until(precision) => (precision.most, Some(precision)),
        };
        if !(1..=100_000).contains(&count) || (count > 1 && !workload.is_seeded()) {
            return Err(Error::plan(
                "seeds",
                count,
                "1 to 100000; 1 for a trace that is the same under every seed: there is no randomness without `resample`, `thin` below 1 or random `estimates`",
            ));
        }
        let seeds = (0..count)
            .map(|n| file.seed.checked_add(n).filter(|&seed| seed <= i64::MAX as u64))
            .collect::<Option<Vec<u64>>>()
            .ok_or_else(|| Error::plan(origin.key("seed"), file.seed, "a seed below 2^63"))?;
        let dims: Vec<Dim> =
            cluster.groups.iter().flat_map(|group| &group.capacity).map(|(dim, _)| dim.clone()).collect();
        let metrics = own_metrics(&file.metric, &dims, registry)?;
        if let Some(precision) = &precision {
            let columns = Table::Runs.columns(&dims);
            let own = metrics.iter().map(|metric| metric.column.name.as_str());
            precision.known(columns.iter().map(|column| column.name.as_str()).chain(own))?;
        }
        let weights = file.weights.map(|path| Pinned::new(&folder.join(path)));
        let weights = weights.transpose().map_err(|error| origin.of_file("weights", error))?;
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
            control,
            services: services(&file.service)?,
            sample: file.sample.as_deref().map_or(Ok(SAMPLE), |text| positive_span(&origin.key("sample"), text))?,
            window: window(&file.measure)?,
            tables: file.tables.as_deref().map_or_else(|| Ok(default_tables()), tables)?,
            metrics,
            weights,
            machines,
            machine_events: events,
            mix,
            cluster,
            workload,
            text: String::new(),
        })
    }

    /// Returns the columns that identify the cell of the run in every table: the cell's name and the axes. The list is empty without a
    /// sweep.
    pub fn axes(&self) -> Vec<(String, Constant)> {
        let cell = (!self.cell.is_empty()).then(|| ("cell".to_owned(), Constant::Text(self.cell.clone())));
        cell.into_iter().chain(self.axes.iter().cloned()).collect()
    }
}

/// Returns the tables that are written by default.
pub fn default_tables() -> Vec<Table> {
    Table::all().filter(|table| !matches!(table, Table::Tasks | Table::Usage | Table::Decisions)).collect()
}

/// Resolves the policies. Errors: an unknown name, no policy, or a duplicate.
fn policies(file: &PlanFile, folder: &Path, registry: &Registry, origin: SettingOrigin) -> Result<Vec<NamedPolicy>> {
    let groups = PlanGroups { quota: &file.quota, queues: &file.queues };
    let policies = each(&file.policies, |name| match origin {
        SettingOrigin::InPlan => {
            registry.policy_of(name, folder, Some(groups)).map_err(|error| error.of_key("policies"))
        }
        SettingOrigin::OnCommandLine => registry.policy_in(name, folder),
    })?;
    if policies.is_empty() {
        return Err(Error::plan("policies", "[]", "at least one policy, such as \"drf\""));
    }
    for (at, policy) in policies.iter().enumerate() {
        if policies[..at].iter().any(|other| other.name == policy.name) {
            let twice = Error::plan(origin.key("policies"), format!("'{}' twice", policy.name), "each policy once");
            return Err(twice.item(at));
        }
    }
    Ok(policies)
}

/// The maximum number of tasks of a service.
const MOST_OF_A_SERVICE: u32 = 1_000_000;

/// Reads the services. Errors: a service without tasks or demand, with a duplicate name, or with a duplicate resource.
fn services(files: &[ServiceFile]) -> Result<Vec<Service>> {
    let mut services: Vec<Service> = Vec::new();
    for file in files {
        let key = |name: &str| format!("service.{name}");
        if !(1..=MOST_OF_A_SERVICE).contains(&file.tasks) {
            return Err(Error::plan(key("tasks"), file.tasks, format!("1 to {MOST_OF_A_SERVICE}")));
        }
        if file.priority > 9 {
            return Err(Error::plan(key("priority"), file.priority, "0 (most urgent) to 9"));
        }
        if services.iter().any(|known| known.name == file.name) {
            return Err(Error::plan(key("name"), format!("'{}' twice", file.name), "each service once"));
        }
        let mut demand = Vec::new();
        for (name, value) in &file.demand {
            let ((dim, scale), text) = (Dim::parse(name), value.to_string());
            let amount = decimal(text.as_bytes(), scale, Rounding::Up);
            let amount = amount.map_err(|problem| {
                Error::plan(key(&format!("demand.{name}")), &text, format!("an amount; this {problem}"))
            });
            if demand.iter().any(|(known, _)| *known == dim) {
                return Err(Error::plan(key(&format!("demand.{name}")), &text, "each resource once"));
            }
            demand.push((dim, amount?));
        }
        if demand.is_empty() {
            return Err(Error::plan(key("demand"), "{}", "resources such as { cpu = 4, memory_gib = 8 }"));
        }
        let user = file.user.clone().unwrap_or_else(|| file.name.clone());
        services.push(Service { name: file.name.clone(), user, tasks: file.tasks, demand, priority: file.priority });
    }
    Ok(services)
}

/// Reads the measured part of a run. Errors: a value is not a span, or the end is not after the start.
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
    each(names, |name| Table::parse("tables", name))
}
