//! The workload of a plan: its keys, their validation, and its supply for a seed.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Supply;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::settings::{SettingOrigin, positive_span};
use plimsoll_base::tree::Node;
use plimsoll_base::units::Span;
use plimsoll_metrics::Design;
use plimsoll_sim::cluster::ClusterSpec;
use plimsoll_sim::workload::formats::{Format, FormatOptions, Tenants};
use plimsoll_sim::workload::synthetic::Generator;
use plimsoll_sim::workload::{Estimates, Input, TargetLoad};

/// A trace as written in `[workload]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file, or `-`.
    pub trace: PathBuf,
    /// The name of its format.
    pub format: Option<String>,
    /// The rule that assigns users.
    pub tenants: Option<String>,
    /// The share of jobs that is kept.
    pub thin: Option<f64>,
    /// The period of resampling, such as `7d`.
    pub resample: Option<String>,
    /// The model of users' estimates of durations: `as-given`, `exact`, `uniform:3` or `lognormal:0.5`.
    pub estimates: Option<String>,
    /// The options of the import.
    pub options: Option<FormatOptions>,
    /// Resources of a canonical trace in addition to the usual resources and those of the machines.
    #[serde(default)]
    pub resources: Vec<String>,
}

/// A workload as written in `[workload]`.
#[derive(Clone, Debug)]
pub enum WorkloadFile {
    /// A generator with its parameters, and the model of users' estimates of durations.
    Generator(Generator, Option<String>),
    /// A trace.
    Trace(TraceFile),
    /// Another workload with its times scaled to an offered load.
    AtLoad(Box<WorkloadFile>, f64),
}

impl WorkloadFile {
    /// Reads the table. Errors: [`Error::Placed`]; [`Error::Plan`] for an unknown generator.
    pub fn read(table: &Node) -> Result<WorkloadFile> {
        // The generator `facebook` has a parameter of this name.
        let has_load = table.get("generator").and_then(|entry| entry.node.text()).is_some_and(Generator::has_load);
        if !has_load && table.get("load").is_some() {
            let mut others = table.clone();
            let load = others.take_entry("load").map(|entry| entry.node.read()).transpose()?.unwrap_or_default();
            return Ok(WorkloadFile::AtLoad(Box::new(WorkloadFile::read(&others)?), load));
        }
        if table.get("trace").is_some() {
            return table.read().map(WorkloadFile::Trace);
        }
        let names = Generator::NAMES.join(", ");
        match table.get("generator").map(|entry| entry.node.text()) {
            Some(Some(name)) if Generator::NAMES.contains(&name) => {
                // The key `estimates` belongs to the workload, not to a generator.
                let mut parameters = table.clone();
                let estimates = parameters.take_entry("estimates").map(|entry| entry.node.read()).transpose()?;
                Ok(WorkloadFile::Generator(parameters.read()?, estimates))
            }
            Some(Some(name)) => Err(Error::plan("workload.generator", format!("'{name}'"), format!("one of {names}"))),
            given => {
                let (key, given) = match given {
                    Some(_) => ("workload.generator", "a value that is not a name"),
                    None => ("workload", "a table without 'generator' or 'trace'"),
                };
                Err(Error::plan(key, given, format!("generator = one of {names}; or trace = \"file\"")))
            }
        }
    }

    /// Validates the workload for a cluster; paths in it are relative to `folder`.
    pub(super) fn plan(self, folder: &Path, cluster: &ClusterSpec, origin: SettingOrigin) -> Result<WorkloadPlan> {
        let resources = cluster.resources();
        let file = match self {
            WorkloadFile::AtLoad(workload, load) => {
                let workload = workload.plan(folder, cluster, origin)?;
                if !(0.001..=100.0).contains(&load) {
                    let expected = "an offered load from 0.001 to 100, where 1 is the capacity of the cluster";
                    return Err(Error::plan(origin.key("workload.load"), load, expected));
                }
                if workload.submissions_depend_on_policy() {
                    let expected = "no load for a closed loop, since its users submit when their jobs have ended";
                    return Err(Error::plan(origin.key("workload.load"), load, expected));
                }
                let target = TargetLoad { millionths: (load * 1e6).round() as u64, capacity: cluster.capacity() };
                return Ok(WorkloadPlan::AtLoad(Box::new(workload), target));
            }
            WorkloadFile::Generator(generator, text) => {
                return Ok(WorkloadPlan::Generator(generator, estimates(text.as_deref(), origin)?));
            }
            WorkloadFile::Trace(file) => file,
        };
        let estimates = estimates(file.estimates.as_deref(), origin)?;
        let mut options = file.options.unwrap_or_default();
        options.resources = file.resources.into_iter().chain(resources).collect();
        if let Some(rule) = &file.tenants {
            options.tenants = Some(Tenants::parse(&origin.key("workload.tenants"), rule)?);
        }
        let format = file.format.as_deref().map(|name| Format::parse(&origin.key("workload.format"), name));
        if let Some(share) = file.thin.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            let expected = "the share of jobs to keep, above 0 and at most 1";
            return Err(Error::plan(origin.key("workload.thin"), share, expected));
        }
        let resample = file.resample.as_deref().map(|text| positive_span(&origin.key("workload.resample"), text));
        let resample = resample.transpose()?;
        if let (Some(share), Some(_)) = (file.thin, resample) {
            let expected = "no `thin` together with `resample`, which keeps the load";
            return Err(Error::plan(origin.key("workload.thin"), share, expected));
        }
        let path = if file.trace == Path::new("-") { file.trace } else { folder.join(file.trace) };
        Ok(WorkloadPlan::Trace { path, format: format.transpose()?, options, thin: file.thin, resample, estimates })
    }
}

/// Parses the model of users' estimates of durations. Errors: [`Error::Plan`].
pub fn estimates(text: Option<&str>, origin: SettingOrigin) -> Result<Estimates> {
    let read = |text: &str| text.parse().map_err(|error: Error| error.under(&origin.key("workload.estimates")));
    text.map_or(Ok(Estimates::AsGiven), read)
}

/// A validated workload.
#[derive(Clone, Debug)]
pub enum WorkloadPlan {
    /// A generator, run with every seed, and the model of users' estimates of durations.
    Generator(Generator, Estimates),
    /// A trace, which is the same for every seed unless the selection of jobs or the estimates are random.
    Trace {
        /// The file, or `-`.
        path: PathBuf,
        /// The format; `None`: it is detected.
        format: Option<Format>,
        /// The options of the import.
        options: FormatOptions,
        /// The share of jobs that is kept, selected by seed; `None`: all jobs.
        thin: Option<f64>,
        /// The period of resampling: whole periods of each user's jobs are recombined by seed.
        resample: Option<Span>,
        /// The model of users' estimates of durations.
        estimates: Estimates,
    },
    /// Another workload with its times scaled to an offered load.
    AtLoad(Box<WorkloadPlan>, TargetLoad),
}

impl WorkloadPlan {
    /// Returns the workload at its own load.
    pub fn base(&self) -> &WorkloadPlan {
        match self {
            WorkloadPlan::AtLoad(base, _) => base.base(),
            own => own,
        }
    }

    /// Returns the workload of a seed. Errors: a bad parameter or trace.
    pub fn supply(&self, seed: u64) -> Result<Supply> {
        self.supply_from(seed, &Input::open)
    }

    /// Returns the workload of a seed. A trace is opened by `open`.
    pub(super) fn supply_from(&self, seed: u64, open: &dyn Fn(&Path) -> Result<Input>) -> Result<Supply> {
        match self {
            WorkloadPlan::Generator(generator, estimates) => {
                Ok(Supply::generate(generator, seed)?.estimated(*estimates, seed))
            }
            WorkloadPlan::AtLoad(base, target) => {
                let supply = base.supply_from(seed, open)?;
                let factor = target.factor(&mut *supply.source()?)?;
                Ok(supply.scaled(factor))
            }
            WorkloadPlan::Trace { path, format, options, thin, resample, estimates } => {
                // Estimates precede the selection of jobs, so that selected jobs have the same estimates as in the complete workload.
                let supply = Supply::input(open(path)?, *format, options)?.estimated(*estimates, seed);
                match (thin, resample) {
                    (Some(share), _) => Ok(supply.thinned(*share, seed)),
                    (None, Some(period)) => supply.resampled(*period, seed),
                    (None, None) => Ok(supply),
                }
            }
        }
    }

    /// Returns the name of the generator, or the file name of the trace.
    pub fn name(&self) -> String {
        match self {
            WorkloadPlan::Generator(generator, _) => generator.name().to_owned(),
            WorkloadPlan::Trace { path, .. } => {
                path.file_name().map_or("trace".into(), |name| name.to_string_lossy()).into_owned()
            }
            WorkloadPlan::AtLoad(base, _) => base.name(),
        }
    }

    /// Returns whether submissions depend on the policy, as in a closed loop. If they do, runs with the same seed are not paired.
    pub fn submissions_depend_on_policy(&self) -> bool {
        matches!(self.base(), WorkloadPlan::Generator(generator, _) if generator.submissions_depend_on_policy())
    }

    /// Returns whether the workload depends on the seed. A trace does not, unless its jobs are selected (`thin` below 1) or resampled, or
    /// estimates are random.
    pub fn is_seeded(&self) -> bool {
        match self {
            WorkloadPlan::Generator(..) => true,
            WorkloadPlan::Trace { thin, resample, estimates, .. } => {
                thin.is_some_and(|share| share < 1.0) || resample.is_some() || estimates.are_drawn()
            }
            WorkloadPlan::AtLoad(base, _) => base.is_seeded(),
        }
    }

    /// Returns whether periods of a trace's users are recombined.
    pub fn is_resampled(&self) -> bool {
        matches!(self.base(), WorkloadPlan::Trace { resample: Some(_), .. })
    }

    /// Returns whether only a share of the jobs of a trace is kept.
    pub fn is_thinned(&self) -> bool {
        matches!(self.base(), WorkloadPlan::Trace { thin: Some(share), .. } if *share < 1.0)
    }

    /// Returns how the runs of two policies are compared: paired by seed, or unpaired if submissions depend on the policy.
    pub fn design(&self) -> Design {
        if self.submissions_depend_on_policy() { Design::Unpaired } else { Design::Paired }
    }
}
