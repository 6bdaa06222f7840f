//! The registry: built-in policies and those of a program by name, and their static counterparts.
//!
//! A name is resolved in this order: a policy of the program with the full name, a policy of the program with the name before the slash, a
//! built-in policy. The part behind the slash is the job order inside users; a policy has at most one. Groups and queues come from a file,
//! which is read immediately, or from a table of the plan (`@NAME`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Policy;
use super::metric::MetricFunction;
use super::queue_file::QueueFile;
use super::quota::QuotaFile;
use super::spec::{Catalogue, PolicySpec, Setup};
use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_fair::quota::PerUser;
use plimsoll_fair::{FillingRoom, Mechanism, OnBlocked, ServingKey, Ties, WholeTasks};
use plimsoll_sim::policy::job_order::{JobOrder, split};

/// The static counterpart of `quota:FILE` for users without a file: every user is a group of its own.
const QUOTA: &str = "quota";

/// The constructor of a policy for a run.
type Maker = dyn Fn(&Setup) -> Result<Box<dyn Policy>> + Send + Sync;

/// The source text of a user-defined policy or metric, for the provenance of results and the identity of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The text, if it is known.
    pub text: String,
    /// The version that its author states; empty if there is none.
    pub version: String,
}

/// A built-in or user-defined policy with its name.
#[derive(Clone)]
pub struct NamedPolicy {
    /// The name in all tables.
    pub name: String,
    /// The files that the policy was made from.
    pub files: Vec<PathBuf>,
    /// The source text of a user-defined policy, if it has one.
    pub code: Option<Code>,
    /// The order of each user's own task sets; the default order if `None`.
    pub job_order: Option<Arc<dyn JobOrder>>,
    maker: Arc<Maker>,
}

impl NamedPolicy {
    /// The prefix of groups and queues in the plan: `@NAME` is the table `[quota.NAME]` or `[queues.NAME]`.
    pub const INLINE: &str = "@";

    /// Creates a user-defined policy.
    pub fn new(
        name: impl Into<String>,
        maker: impl Fn(&Setup) -> Result<Box<dyn Policy>> + Send + Sync + 'static,
    ) -> NamedPolicy {
        NamedPolicy { name: name.into(), files: Vec::new(), code: None, job_order: None, maker: Arc::new(maker) }
    }

    /// Creates a policy without files under this name.
    pub fn from_spec(name: impl Into<String>, spec: PolicySpec) -> NamedPolicy {
        let job_order = spec.job_order().cloned();
        NamedPolicy { job_order, ..NamedPolicy::new(name, move |setup| spec.build(setup)) }
    }

    /// Creates a built-in policy over groups, with these groups.
    pub fn grouped(spec: PolicySpec, groups: QuotaFile) -> NamedPolicy {
        let files = groups.files.clone();
        let policy = NamedPolicy::new(spec.to_string(), move |setup| spec.build_of(&groups, setup));
        NamedPolicy { files, ..policy }
    }

    /// Creates a built-in policy over queues, with these queues.
    pub fn queued(spec: PolicySpec, queues: QueueFile) -> NamedPolicy {
        let files = queues.files.clone();
        let policy = NamedPolicy::new(spec.to_string(), move |setup| spec.build_queued(&queues, setup));
        NamedPolicy { files, ..policy }
    }

    /// Returns the policy with its source text.
    pub fn with_code(self, code: Code) -> NamedPolicy {
        NamedPolicy { code: Some(code), ..self }
    }

    /// Returns the policy with another order inside users, which is appended to its name.
    pub fn with_job_order(self, job_order: Option<Arc<dyn JobOrder>>) -> NamedPolicy {
        let name = job_order.as_ref().map(|order| format!("{}/{}", self.name, order.name()));
        NamedPolicy { name: name.unwrap_or(self.name), job_order: job_order.or(self.job_order), ..self }
    }

    /// Builds the policy for a run. Errors: those of its constructor.
    pub fn build(&self, setup: &Setup) -> Result<Box<dyn Policy>> {
        (self.maker)(setup)
    }
}

/// The groups and queues in a plan, by name.
#[derive(Clone, Copy, Debug)]
pub struct PlanGroups<'a> {
    /// The tables `[quota.NAME]`.
    pub quota: &'a [(String, QuotaFile)],
    /// The tables `[queues.NAME]`.
    pub queues: &'a [(String, QueueFile)],
}

/// Returns the table of a plan that a policy names, from the tables of one kind. Errors: there is no plan, or no such table.
fn table<T: Clone>(tables: Option<&[(String, T)]>, kind: &str, policy: &str, name: &str) -> Result<T> {
    let wrong = |key: &str, expected: String| Error::plan(key, format!("'{policy}'"), expected);
    let tables = tables.ok_or_else(|| {
        wrong("policy", format!("a file; only the policies of a plan can name a table [{kind}.NAME]"))
    })?;
    tables.iter().find(|(known, _)| known == name).map(|(_, table)| table.clone()).ok_or_else(|| {
        let hint = did_you_mean(name, tables.iter().map(|(known, _)| known.as_str()));
        wrong("policies", format!("a table [{kind}.{name}] in this plan{hint}"))
    })
}

/// The policies and metrics that a program can use: built-in policies, which are in a catalogue, and its own policies and metrics.
#[derive(Clone)]
pub struct Registry {
    catalogue: Catalogue,
    own: Vec<NamedPolicy>,
    own_mechanisms: Vec<(String, Arc<dyn Mechanism>)>,
    own_metrics: Vec<MetricFunction>,
}

impl Registry {
    /// Creates a registry with these built-in policies.
    pub fn new(catalogue: Catalogue) -> Registry {
        Registry { catalogue, own: Vec::new(), own_mechanisms: Vec::new(), own_metrics: Vec::new() }
    }

    /// Returns the built-in policies.
    pub fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// Adds a policy of the program; it takes precedence over a built-in one with the same name.
    pub fn with(mut self, policy: NamedPolicy) -> Registry {
        self.own.push(policy);
        self
    }

    /// Adds a static mechanism of the program; it takes precedence over that of a built-in policy with the same name.
    pub fn with_mechanism(mut self, name: impl Into<String>, mechanism: impl Mechanism + 'static) -> Registry {
        self.own_mechanisms.push((name.into(), Arc::new(mechanism)));
        self
    }

    /// Adds a metric of the program.
    pub fn with_metric(mut self, metric: MetricFunction) -> Registry {
        self.own_metrics.push(metric);
        self
    }

    /// Returns the metric of the program with this name.
    pub fn metric(&self, name: &str) -> Option<&MetricFunction> {
        self.own_metrics.iter().find(|metric| metric.name == name)
    }

    /// Returns the static mechanism with this name, for instances with these resources; for `quota` without a file it is [`PerUser`].
    /// Errors: [`Error::UnknownPolicy`], the errors of [`Catalogue::parse`] about parameters, and policies without a static counterpart.
    pub fn mechanism(&self, name: &str, resources: &[String]) -> Result<Arc<dyn Mechanism>> {
        match self.own_mechanisms.iter().find(|(own, _)| own == name) {
            Some((_, own)) => Ok(own.clone()),
            None if name == QUOTA => Ok(Arc::new(PerUser)),
            None => self.catalogue.parse(plain(name)?)?.mechanism(resources),
        }
    }

    /// Returns the static mechanism for whole tasks; a mechanism of the program serves as the target. Errors: as [`Registry::mechanism`].
    pub fn whole_mechanism(
        &self,
        name: &str,
        resources: &[String],
        on_blocked: OnBlocked,
        ties: Ties,
    ) -> Result<WholeTasks> {
        match self.own_mechanisms.iter().find(|(own, _)| own == name) {
            Some((_, own)) => {
                Ok(WholeTasks { order: ServingKey::Target(own.clone()), on_blocked, ties, onto: FillingRoom::Pool })
            }
            None => self.catalogue.parse(plain(name)?)?.whole_mechanism(resources, on_blocked, ties),
        }
    }

    /// Checks that a policy with this name and these parameters exists. Does not check whether the policy has a static mechanism for an
    /// instance. Errors: as [`Registry::mechanism`].
    pub fn check_mechanism(&self, name: &str) -> Result<()> {
        match name == QUOTA || self.own_mechanisms.iter().any(|(own, _)| own == name) {
            true => Ok(()),
            false => self.catalogue.parse(plain(name)?).map(drop),
        }
    }

    /// Returns the program's own mechanisms.
    pub fn own_mechanisms(&self) -> &[(String, Arc<dyn Mechanism>)] {
        &self.own_mechanisms
    }

    /// Returns the program's own policies.
    pub fn own(&self) -> &[NamedPolicy] {
        &self.own
    }

    /// Returns the policy with this name. Errors: [`Error::UnknownPolicy`] and those of [`Catalogue::parse`] about parameters.
    pub fn policy(&self, name: &str) -> Result<NamedPolicy> {
        self.policy_in(name, Path::new(""))
    }

    /// Returns the policy with this name. Files in the name are relative to `folder` unless their path is absolute; they are read
    /// immediately. Errors: as [`Registry::policy`], and those of the files.
    pub fn policy_in(&self, name: &str, folder: &Path) -> Result<NamedPolicy> {
        self.policy_of(name, folder, None)
    }

    /// Returns the policy with this name in a plan, which may contain groups. Errors: as [`Registry::policy_in`], and groups or queues
    /// that the plan does not have.
    pub fn policy_of(&self, name: &str, folder: &Path, groups: Option<PlanGroups>) -> Result<NamedPolicy> {
        let own = |name: &str| self.own.iter().find(|own| own.name == name).cloned();
        if let Some(own) = own(name) {
            return Ok(own);
        }
        let (name, job_order) = split(name)?;
        let twice = |own: Option<&Arc<dyn JobOrder>>| match (&job_order, own) {
            (Some(order), Some(_)) => {
                let expected = format!("either 'order' in the expression or /{}, not both", order.name());
                Err(Error::plan("policy", format!("'{name}'"), expected))
            }
            _ => Ok(()),
        };
        let policy = match own(name) {
            Some(own) => {
                twice(own.job_order.as_ref())?;
                own
            }
            None => {
                let spec = self.catalogue.parse(name)?;
                spec.runs()?;
                twice(spec.job_order())?;
                let inline = |path: &Path| path.to_str()?.strip_prefix(NamedPolicy::INLINE).map(str::to_owned);
                match spec.file().map(|path| (inline(path), folder.join(path))) {
                    Some((Some(at), _)) if spec.is_queued() => {
                        let queues = table(groups.map(|groups| groups.queues), "queues", name, &at)?;
                        NamedPolicy::queued(spec, queues)
                    }
                    Some((Some(at), _)) => {
                        let quota = table(groups.map(|groups| groups.quota), "quota", name, &at)?;
                        NamedPolicy::grouped(spec, quota)
                    }
                    Some((None, path)) if spec.is_queued() => {
                        let queues = spec.read_queues(&path)?;
                        NamedPolicy::queued(spec, queues)
                    }
                    Some((None, path)) => NamedPolicy::grouped(spec, QuotaFile::read(&path)?),
                    None => NamedPolicy::from_spec(spec.to_string(), spec),
                }
            }
        };
        Ok(policy.with_job_order(job_order))
    }
}

/// Returns the name of a policy for a static allocation. Errors: [`Error::Plan`] if it has an order inside users.
fn plain(name: &str) -> Result<&str> {
    match split(name)? {
        (_, None) => Ok(name),
        (policy, Some(_)) => {
            let expected = format!("just '{policy}': a static allocation has no order inside users");
            Err(Error::plan("policy", format!("'{name}'"), expected))
        }
    }
}
