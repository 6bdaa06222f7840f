//! Declared policies: the list of this crate, the form of declarations, and the parser of names.
//!
//! A [`Catalogue`] has the declarations that a program can name. It parses `NAME[@VARIANT][:PARAMETER]`, and [`PolicySpec`] displays it in
//! the same form. Depending on the policy, it is built from its parameters alone, from the groups of a quota file, or from the queues of a
//! file of queues. A policy that has only a static allocation cannot be built for a run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::queue_file::{QueueFile, QueueKey};
use super::{Policy, QuotaFile};
use plimsoll_base::error::{Error, Result, alternatives, nearest};
use plimsoll_base::units::{Dim, Resources};
use plimsoll_fair::{Filling, FillingRoom, Mechanism, Norm, OnBlocked, ServingKey, Slots, Ties, WholeTasks};
use plimsoll_sim::books::Weights;
use plimsoll_sim::policy::job_order::JobOrder;

/// The policies of this crate, in the order of listings.
pub static ROWS: &[&PolicyRow] = &[
    &super::fifo::ROW,
    &super::line::ROW,
    &super::slot::ROW,
    &super::maxmin::ROW,
    &super::only::ROW,
    &super::asset::ROW,
    &super::drf::ROW,
    &super::pnorm::ROW,
    &super::longterm::ROW,
    &super::afs::ROW,
    &super::fair_tree::ROW,
    &super::multifactor::ROW,
    &super::time_based::ROW,
    &super::karma::ROW,
    &super::ceei::ROW,
    &super::bmf::ROW,
    &super::across::DRFH,
    &super::tsf::ROW,
    &super::across::CMMF,
    &super::psdsf::ROW,
    &super::tetris::ROW,
    &super::quota::ROW,
    &super::hdrf::ROW,
    &super::expr::ROW,
];

/// The catalogue without production schedulers.
pub static WITHOUT_SCHEDULERS: Catalogue = Catalogue::new(&[ROWS]);

/// The data that a policy receives before a run starts.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The resource dimensions.
    pub dims: &'a [Dim],
    /// The capacity of the whole cluster.
    pub capacity: Resources,
    /// The number of machines.
    pub machines: u64,
    /// The weights of users.
    pub weights: &'a Weights,
    /// The labels that machines carry at some time of the run, in alphabetical order; `None` in a pool.
    pub labels: Option<&'a [&'a str]>,
}

/// How a policy orders users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankOrder {
    /// The lowest value of this quantity is served first.
    Lowest(&'static str),
    /// These words state the order and its direction.
    Stated(&'static str),
}

impl RankOrder {
    /// Returns the quantity, if its lowest value is served first.
    pub fn lowest(self) -> Option<&'static str> {
        match self {
            RankOrder::Lowest(quantity) => Some(quantity),
            RankOrder::Stated(_) => None,
        }
    }
}

impl fmt::Display for RankOrder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RankOrder::Lowest(quantity) => write!(f, "lowest {quantity} first"),
            RankOrder::Stated(order) => f.write_str(order),
        }
    }
}

/// The declaration of a policy.
pub struct PolicyRow {
    /// The name without parameters.
    pub name: &'static str,
    /// The notation of the name with its parameters.
    pub spelling: &'static str,
    /// How the policy orders users.
    pub rank: RankOrder,
    /// The description, one sentence.
    pub meaning: &'static str,
    /// The source of the definition.
    pub source: &'static str,
    /// An example of the name, for tests and lists; a path in it is relative to the repository.
    pub example: &'static str,
    /// The name that `check` examines on instances of a few users.
    pub checked: &'static str,
    /// Published faults of the policy: the name behind the `@`, and a description. A variant reproduces its fault exactly.
    pub variants: &'static [(&'static str, &'static str)],
    /// The keys of a file of queues that the policy reads.
    pub keys: &'static [QueueKey],
    /// Parses the text behind the colon of the name. Errors: the expected form.
    pub read: fn(Option<&str>) -> std::result::Result<Parsed, String>,
}

/// The static counterpart of a policy. It defines the order of whole tasks and the allocation of divisible tasks.
pub enum StaticEquivalent {
    /// Shares by this norm are equalised.
    Norm(Norm),
    /// Numbers of slots are equalised.
    Slots(Slots),
    /// Tasks follow the targets of this mechanism.
    Target(Arc<dyn Mechanism>),
}

/// Builds a policy for a run.
type Build = dyn Fn(&Setup) -> Result<Box<dyn Policy>> + Send + Sync;

/// Builds a policy from a file of groups.
type BuildGrouped = dyn Fn(&QuotaFile, &Setup) -> Result<Box<dyn Policy>> + Send + Sync;

/// Builds a policy from a file of queues, in this variant.
type BuildQueued = dyn Fn(&QueueFile, Option<&'static str>, &Setup) -> Result<Box<dyn Policy>> + Send + Sync;

/// Returns the static counterpart for instances with these resources, if there is one.
type Find = dyn Fn(&[String]) -> Result<Option<StaticEquivalent>> + Send + Sync;

/// A built-in policy with its parameters.
pub struct Parsed {
    parameter: Option<String>,
    maker: Maker,
    counterpart: Box<Find>,
    job_order: Option<Arc<dyn JobOrder>>,
}

enum Maker {
    Plain(Box<Build>),
    /// The policy is built from the groups in this file.
    Grouped(PathBuf, Box<BuildGrouped>),
    /// The policy is built from the queues in this file; without a file every user is a queue.
    Queued(Option<PathBuf>, Box<BuildQueued>),
    /// The policy is only a static allocation; the text names alternatives for runs.
    None(String),
}

impl Parsed {
    /// Creates a policy with this parameter and this builder for runs.
    pub fn new(
        parameter: Option<String>,
        build: impl Fn(&Setup) -> Result<Box<dyn Policy>> + Send + Sync + 'static,
    ) -> Parsed {
        Parsed { parameter, maker: Maker::Plain(Box::new(build)), counterpart: Box::new(|_| Ok(None)), job_order: None }
    }

    /// Creates a policy that is built from the groups in a file; `@NAME` is the table `[quota.NAME]` of a plan.
    pub fn grouped(
        parameter: &str,
        path: &str,
        build: impl Fn(&QuotaFile, &Setup) -> Result<Box<dyn Policy>> + Send + Sync + 'static,
    ) -> Parsed {
        let maker = Maker::Grouped(path.into(), Box::new(build));
        Parsed { parameter: Some(parameter.to_owned()), maker, counterpart: Box::new(|_| Ok(None)), job_order: None }
    }

    /// Creates a policy that is built from the queues in a file, if one is given, in one of its variants; `@NAME` is the table
    /// `[queues.NAME]` of a plan. Errors: the file name is empty.
    pub fn queued(
        given: Option<&str>,
        build: impl Fn(&QueueFile, Option<&'static str>, &Setup) -> Result<Box<dyn Policy>> + Send + Sync + 'static,
    ) -> std::result::Result<Parsed, String> {
        if given == Some("") {
            return Err("a file of queues after the colon, or no colon".to_owned());
        }
        let maker = Maker::Queued(given.map(PathBuf::from), Box::new(build));
        Ok(Parsed { parameter: given.map(str::to_owned), maker, counterpart: Box::new(|_| Ok(None)), job_order: None })
    }

    /// Creates a static allocation that no run can use; `instead` names the alternatives for runs.
    pub fn only_static(
        parameter: Option<String>,
        instead: impl Into<String>,
        counterpart: impl Fn(&[String]) -> Result<StaticEquivalent> + Send + Sync + 'static,
    ) -> Parsed {
        let maker = Maker::None(instead.into());
        Parsed { parameter, maker, counterpart: Box::new(|_| Ok(None)), job_order: None }.like(counterpart)
    }

    /// Creates a policy without parameters. Errors: a parameter is given.
    pub fn plain(
        name: &str,
        given: Option<&str>,
        build: fn(&Setup) -> Result<Box<dyn Policy>>,
    ) -> std::result::Result<Parsed, String> {
        match given {
            None => Ok(Parsed::new(None, build)),
            Some(_) => Err(Parsed::no_parameter(name)),
        }
    }

    /// Returns the expected spelling of a policy without parameters.
    pub(super) fn no_parameter(name: &str) -> String {
        format!("just '{name}', which has no parameter")
    }

    /// Returns the policy with a job order that is a part of it.
    pub fn ordered(self, job_order: Option<Arc<dyn JobOrder>>) -> Parsed {
        Parsed { job_order, ..self }
    }

    /// Returns the policy with a static counterpart.
    pub fn like(self, counterpart: impl Fn(&[String]) -> Result<StaticEquivalent> + Send + Sync + 'static) -> Parsed {
        Parsed { counterpart: Box::new(move |resources| counterpart(resources).map(Some)), ..self }
    }
}

/// The policies that a program can name: lists of declarations, in the order of listings. Names are unique.
#[derive(Clone, Copy)]
pub struct Catalogue {
    lists: &'static [&'static [&'static PolicyRow]],
}

impl Catalogue {
    /// Creates a catalogue from these lists.
    pub const fn new(lists: &'static [&'static [&'static PolicyRow]]) -> Catalogue {
        Catalogue { lists }
    }

    /// Returns the declarations.
    pub fn rows(self) -> impl Iterator<Item = &'static PolicyRow> {
        self.lists.iter().flat_map(|rows| rows.iter().copied())
    }

    /// Returns the names of all policies, without parameters.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.rows().map(|row| row.name)
    }

    /// Returns one example of each policy. Paths in them are relative to the repository.
    pub fn examples(self) -> Vec<PolicySpec> {
        self.rows().map(|row| self.parse(row.example).expect("examples are well written")).collect()
    }

    /// Returns all keys of a file of queues that any policy reads.
    pub fn queue_keys(self) -> Vec<QueueKey> {
        self.rows().flat_map(|row| row.keys).copied().collect()
    }

    /// Parses the name of a policy with its variant and parameters. Errors: [`Error::UnknownPolicy`], and [`Error::Plan`] with the
    /// accepted parameters or variants.
    pub fn parse(self, text: &str) -> Result<PolicySpec> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let (name, variant) = match name.split_once('@') {
            Some((name, variant)) => (name, Some(variant)),
            None => (name, None),
        };
        let Some(row) = self.rows().find(|row| row.name == name) else {
            return Err(Error::UnknownPolicy {
                name: text.to_owned(),
                suggestion: nearest(name, self.names()).unwrap_or_default().to_owned(),
                known: alternatives(name, self.rows().map(|row| row.spelling), "plimsoll policies"),
            });
        };
        let parsed = (row.read)(parameter).map_err(|expected| Error::plan("policy", format!("'{text}'"), expected))?;
        let known = |variant: &str| row.variants.iter().map(|(name, _)| *name).find(|known| *known == variant);
        let variant = match variant {
            None => None,
            Some(variant) => Some(known(variant).ok_or_else(|| {
                let names = row.variants.iter().map(|(variant, _)| format!("{name}@{variant}"));
                let names = std::iter::once(format!("just '{name}'")).chain(names).collect::<Vec<_>>().join(", ");
                Error::plan("policy", format!("'{text}'"), names)
            })?),
        };
        Ok(PolicySpec { catalogue: self, row, variant, parsed: Arc::new(parsed) })
    }
}

/// A declared policy with its parameters; it is displayed as on the command line, and parsed by [`Catalogue::parse`].
#[derive(Clone)]
pub struct PolicySpec {
    /// Its policies declare the keys that a file of queues may have.
    catalogue: Catalogue,
    row: &'static PolicyRow,
    variant: Option<&'static str>,
    parsed: Arc<Parsed>,
}

impl PolicySpec {
    /// Returns the declaration of the policy.
    pub fn row(&self) -> &'static PolicyRow {
        self.row
    }

    /// Returns the file of groups or queues that the policy is built from, if there is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.parsed.maker {
            Maker::Plain(_) | Maker::None(_) | Maker::Queued(None, _) => None,
            Maker::Grouped(path, _) | Maker::Queued(Some(path), _) => Some(path),
        }
    }

    /// Returns whether the policy decides over a tree of queues.
    pub fn is_queued(&self) -> bool {
        matches!(self.parsed.maker, Maker::Queued(..))
    }

    /// Returns the order inside users that is a part of the policy, if there is one.
    pub fn job_order(&self) -> Option<&Arc<dyn JobOrder>> {
        self.parsed.job_order.as_ref()
    }

    /// Returns the policy's allocation of divisible tasks, for instances with these resources. Errors: an unknown resource, and policies
    /// without a static counterpart.
    pub fn mechanism(&self, resources: &[String]) -> Result<Arc<dyn Mechanism>> {
        Ok(match self.counterpart(resources)? {
            StaticEquivalent::Norm(norm) => Arc::new(Filling { norm }),
            StaticEquivalent::Slots(slots) => Arc::new(slots),
            StaticEquivalent::Target(mechanism) => mechanism,
        })
    }

    /// Returns the policy's allocation of whole tasks, served one by one in the policy's order from one pool. Errors: as
    /// [`PolicySpec::mechanism`].
    pub fn whole_mechanism(&self, resources: &[String], on_blocked: OnBlocked, ties: Ties) -> Result<WholeTasks> {
        let order = match self.counterpart(resources)? {
            StaticEquivalent::Norm(norm) => ServingKey::Before(norm),
            StaticEquivalent::Slots(slots) => ServingKey::Slots(slots),
            StaticEquivalent::Target(mechanism) => ServingKey::Target(mechanism),
        };
        Ok(WholeTasks { order, on_blocked, ties, onto: FillingRoom::Pool })
    }

    fn counterpart(&self, resources: &[String]) -> Result<StaticEquivalent> {
        (self.parsed.counterpart)(resources)?.ok_or_else(|| {
            let expected = match self.file() {
                Some(_) => {
                    "a policy that has a static allocation; 'quota' without a file has one, with a group for each user"
                }
                None => "a policy that has a static allocation, such as drf",
            };
            Error::plan("policy", format!("'{self}'"), expected)
        })
    }

    /// Checks that a run can use the policy; purely static ones are for `solve` and `check`. Errors: [`Error::Plan`] with the alternatives.
    pub fn runs(&self) -> Result<()> {
        match &self.parsed.maker {
            Maker::None(instead) => self.no_run(instead),
            Maker::Plain(_) | Maker::Grouped(..) | Maker::Queued(..) => Ok(()),
        }
    }

    fn no_run<T>(&self, instead: &str) -> Result<T> {
        let expected = format!("a policy for a run instead of this static allocation: {instead}");
        Err(Error::plan("policy", format!("'{self}'"), expected))
    }

    /// Builds the policy for a run and reads its file. Errors: those of [`PolicySpec::runs`], an unknown resource, unusable weights,
    /// [`Error::CapacityTooFine`], and those of the file.
    pub fn build(&self, setup: &Setup) -> Result<Box<dyn Policy>> {
        match &self.parsed.maker {
            Maker::Plain(build) => build(setup),
            Maker::Grouped(path, build) => build(&QuotaFile::read(path)?, setup),
            Maker::Queued(Some(path), _) => self.build_queued(&self.read_queues(path)?, setup),
            Maker::Queued(None, _) => self.build_queued(&QueueFile::default(), setup),
            Maker::None(instead) => self.no_run(instead),
        }
    }

    /// Reads a file of queues, which may have the keys of all policies of the catalogue. Errors: as [`QueueFile::read`].
    pub(super) fn read_queues(&self, path: &Path) -> Result<QueueFile> {
        QueueFile::read(path, &self.catalogue.queue_keys())
    }

    /// Builds the policy for a run, with these groups if it uses groups. Errors: as [`PolicySpec::build`].
    pub(super) fn build_of(&self, groups: &QuotaFile, setup: &Setup) -> Result<Box<dyn Policy>> {
        match &self.parsed.maker {
            Maker::Grouped(_, build) => build(groups, setup),
            Maker::Plain(_) | Maker::None(_) | Maker::Queued(..) => self.build(setup),
        }
    }

    /// Builds the policy for a run, with these queues if it uses queues. Errors: as [`PolicySpec::build`].
    pub fn build_queued(&self, queues: &QueueFile, setup: &Setup) -> Result<Box<dyn Policy>> {
        match &self.parsed.maker {
            Maker::Queued(_, build) => build(queues, self.variant, setup),
            Maker::Plain(_) | Maker::None(_) | Maker::Grouped(..) => self.build(setup),
        }
    }
}

impl PartialEq for PolicySpec {
    fn eq(&self, other: &PolicySpec) -> bool {
        (self.row.name, self.variant, &self.parsed.parameter)
            == (other.row.name, other.variant, &other.parsed.parameter)
    }
}

impl Eq for PolicySpec {}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        self.variant.iter().try_for_each(|variant| write!(f, "@{variant}"))?;
        self.parsed.parameter.iter().try_for_each(|parameter| write!(f, ":{parameter}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_reads_back_as_it_prints() {
        for (policy, row) in WITHOUT_SCHEDULERS.examples().into_iter().zip(ROWS) {
            assert_eq!(policy.to_string(), row.example);
            assert_eq!(row.spelling.split([':', '[']).next(), Some(row.name));
        }
        for text in ["pnorm:1", "pnorm:1.5", "pnorm:inf", "ceei:every:60s", "ceei:tolerance:0.01", "bmf:every:1s"] {
            assert_eq!(WITHOUT_SCHEDULERS.parse(text).expect("a known policy").to_string(), text);
        }
        assert_eq!(WITHOUT_SCHEDULERS.parse("ceei:change").expect("a known policy").to_string(), "ceei");
    }

    #[test]
    fn typos_get_a_suggestion() {
        let message = WITHOUT_SCHEDULERS.parse("drff").unwrap_err().to_string();
        assert!(message.contains("did you mean 'drf'") && message.contains("plimsoll policies)"), "{message}");
        assert!(message.len() < 250, "{message}");
        let message = WITHOUT_SCHEDULERS.parse("DRF").unwrap_err().to_string();
        assert!(message.contains("did you mean 'drf'"), "{message}");
        for bad in [
            "slot",
            "slot:0",
            "slot:x",
            "maxmin",
            "maxmin:",
            "only",
            "drf:2",
            "pnorm",
            "pnorm:0.5",
            "pnorm:nan",
            "ceei:60s",
            "bmf:every:0s",
            "drfh:cpu",
            "cmmf",
            "quota",
            "quota:",
        ] {
            assert!(WITHOUT_SCHEDULERS.parse(bad).unwrap_err().to_string().contains("expected"), "{bad}");
        }
    }

    #[test]
    fn a_policy_has_both_static_counterparts_or_none() {
        let resources = ["cpu".to_owned(), "memory".to_owned()];
        for policy in WITHOUT_SCHEDULERS.examples() {
            let whole = policy.whole_mechanism(&resources, OnBlocked::Skip, Ties::LowestId);
            assert_eq!(policy.mechanism(&resources).is_ok(), whole.is_ok(), "{policy}");
            assert!(whole.is_err() || !["fifo", "only", "quota"].contains(&policy.row().name), "{policy}");
        }
        let unknown = WITHOUT_SCHEDULERS.parse("maxmin:gpu").expect("any resource");
        let message = unknown.whole_mechanism(&resources, OnBlocked::Stop, Ties::HighestId).err().expect("no gpu");
        assert!(message.to_string().contains("one of cpu, memory"), "{message}");
    }
}
