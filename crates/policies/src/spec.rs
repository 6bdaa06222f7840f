//! Every built-in policy with its spelling, parameters and source.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use super::Policy;
use super::asset::Asset;
use super::bmf::bmf;
use super::ceei::ceei;
use super::drf::Drf;
use super::fifo::Fifo;
use super::maxmin::MaxMin;
use super::only::Only;
use super::pnorm::PNorm;
use super::quota::{Quota, QuotaFile};
use super::resolve::{Parameter, Resolve};
use super::slot::Slot;
use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::units::{Dim, Resources};
use plimsoll_fair::{Bmf, Ceei, Filling, Mechanism, Norm, OnBlocked, Onto, Order, Slots, Ties, WholeTasks};
use plimsoll_sim::books::Weights;

/// The input of a policy before a run starts.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The resource dimensions.
    pub dims: &'a [Dim],
    /// The whole cluster.
    pub capacity: Resources,
    /// How many machines it has.
    pub machines: u64,
    /// The users' weights.
    pub weights: &'a Weights,
}

/// A built-in policy and its parameters; prints and reads as on the command line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PolicySpec {
    /// `fifo`
    Fifo,
    /// `slot:K`, K slots a machine
    Slot(u32),
    /// `maxmin:RESOURCE`
    MaxMin(String),
    /// `only:RESOURCE`
    Only(String),
    /// `asset`
    Asset,
    /// `drf`
    Drf,
    /// `pnorm:P`, P at least 1, or `inf`
    PNorm(Parameter),
    /// `ceei`, `ceei:every:SPAN` or `ceei:tolerance:X`
    Ceei(Resolve),
    /// `bmf`, `bmf:every:SPAN` or `bmf:tolerance:X`
    Bmf(Resolve),
    /// `quota:FILE`
    Quota(String),
}

/// A quota file that ships with the program's sources.
const EXAMPLE: &str = "experiments/quota/two-groups.toml";

/// How a policy is described to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// How it is written, with its parameters.
    pub spelling: &'static str,
    /// The quantity compared: the lowest is served first.
    pub rank: &'static str,
    /// A description in one sentence.
    pub meaning: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

impl PolicySpec {
    /// One example of each policy. Paths in them are relative to the repository.
    pub fn all() -> Vec<PolicySpec> {
        vec![
            PolicySpec::Fifo,
            PolicySpec::Slot(12),
            PolicySpec::MaxMin("cpu".to_owned()),
            PolicySpec::Only("cpu".to_owned()),
            PolicySpec::Asset,
            PolicySpec::Drf,
            PolicySpec::PNorm(Parameter::TWO),
            PolicySpec::Ceei(Resolve::Change),
            PolicySpec::Bmf(Resolve::Change),
            PolicySpec::Quota(EXAMPLE.to_owned()),
        ]
    }

    /// The description of the policy.
    pub fn about(&self) -> About {
        let about = |spelling, rank, meaning, source| About { spelling, rank, meaning, source };
        match self {
            PolicySpec::Fifo => {
                about("fifo", "release instant, row", "One queue for all users, in order of arrival.", "folklore")
            }
            PolicySpec::Slot(_) => about(
                "slot:K",
                "slots / w",
                "K slots per machine; a task takes one, whatever its demand.",
                "Ghodsi et al., NSDI 2011, 7.2-7.3 (Hadoop's fair scheduler)",
            ),
            PolicySpec::MaxMin(_) => about(
                "maxmin:RESOURCE",
                "u_R / (c_R w_R)",
                "Max-min fairness in one resource; the whole demand is reserved.",
                "Ghodsi et al., NSDI 2011, 7.2 (CPU-fair)",
            ),
            PolicySpec::Only(_) => about(
                "only:RESOURCE",
                "u_R / (c_R w_R)",
                "The same, and nothing else is reserved: other resources may be over-committed.",
                "Ghodsi et al., NSDI 2011, 7.2 (CPU-fair, with thrashing)",
            ),
            PolicySpec::Asset => {
                about("asset", "sum_r u_r / (c_r w_r)", "Equal sums of shares.", "Ghodsi et al., NSDI 2011, 5.1")
            }
            PolicySpec::Drf => about(
                "drf",
                "max_r u_r / (c_r w_r)",
                "Equal dominant shares; weights may be set per resource.",
                "Ghodsi et al., NSDI 2011, 4.1 and 4.3",
            ),
            PolicySpec::PNorm(_) => about(
                "pnorm:P",
                "(sum_r (u_r / (c_r w_r))^P)^(1/P)",
                "Between asset fairness (P = 1) and DRF (P = inf).",
                "Joe-Wong et al., INFOCOM 2012, for families between",
            ),
            PolicySpec::Ceei(_) => about(
                "ceei[:RESOLVE]",
                "running / target",
                "Targets of the greatest product of users' tasks; RESOLVE: change, every:SPAN, tolerance:X.",
                "Ghodsi et al., NSDI 2011, 5.2",
            ),
            PolicySpec::Bmf(_) => about(
                "bmf[:RESOLVE]",
                "running / target",
                "Targets that give each user the largest share of a used-up resource; RESOLVE as for ceei.",
                "Bonald and Roberts, SIGMETRICS 2015",
            ),
            PolicySpec::Quota(_) => about(
                "quota:FILE",
                "used / runtime quota",
                "Groups of users, each within a quota found by water-filling over min, max, ratio and request.",
                "the first article on FuxiMaster (quota groups); Koordinator",
            ),
        }
    }

    /// The policy's allocation of divisible tasks, for instances with these resources. Errors: an unknown
    /// resource, and policies without a static counterpart.
    pub fn mechanism(&self, resources: &[String]) -> Result<Arc<dyn Mechanism>> {
        match (self.norm(resources)?, self) {
            (Some(norm), _) => Ok(Arc::new(Filling { norm })),
            (None, PolicySpec::Slot(per_machine)) => Ok(Arc::new(Slots { per_machine: *per_machine })),
            (None, PolicySpec::Ceei(_)) => Ok(Arc::new(Ceei)),
            (None, PolicySpec::Bmf(_)) => Ok(Arc::new(Bmf)),
            _ => Err(self.not_static()),
        }
    }

    /// The same for users with whole tasks, served one by one in the policy's order from one pool. Errors: as
    /// [`PolicySpec::mechanism`].
    pub fn whole_mechanism(&self, resources: &[String], on_blocked: OnBlocked, ties: Ties) -> Result<WholeTasks> {
        let order = match (self.norm(resources)?, self) {
            (Some(norm), _) => Order::Before(norm),
            (None, PolicySpec::Slot(per_machine)) => Order::Slots(Slots { per_machine: *per_machine }),
            (None, PolicySpec::Ceei(_) | PolicySpec::Bmf(_)) => Order::Target(self.mechanism(resources)?),
            _ => return Err(self.not_static()),
        };
        Ok(WholeTasks { order, on_blocked, ties, onto: Onto::Pool })
    }

    /// The norm of shares that the policy equalises, if it equalises one.
    fn norm(&self, resources: &[String]) -> Result<Option<Norm>> {
        Ok(match self {
            PolicySpec::Asset => Some(Norm::Sum),
            PolicySpec::Drf => Some(Norm::Largest),
            PolicySpec::PNorm(p) => Some(Norm::power(p.value())?),
            PolicySpec::MaxMin(resource) => match resources.iter().position(|known| known == resource) {
                Some(r) => Some(Norm::Single(r)),
                None => {
                    let expected = format!("maxmin: and one of {}", resources.join(", "));
                    return Err(Error::plan("policy", format!("'{self}'"), expected));
                }
            },
            PolicySpec::Fifo
            | PolicySpec::Slot(_)
            | PolicySpec::Only(_)
            | PolicySpec::Ceei(_)
            | PolicySpec::Bmf(_)
            | PolicySpec::Quota(_) => None,
        })
    }

    fn not_static(&self) -> Error {
        let expected = match self {
            PolicySpec::Quota(_) => "a policy that has a static allocation; 'quota' alone has: every user a group",
            _ => "a policy that has a static allocation, such as drf",
        };
        Error::plan("policy", format!("'{self}'"), expected)
    }

    /// Makes the policy for a run. Errors: an unknown resource, unusable weights, or
    /// [`Error::CapacityTooFine`].
    pub fn build(&self, setup: &Setup) -> Result<Box<dyn Policy>> {
        Ok(match self {
            PolicySpec::Fifo => Box::new(Fifo),
            PolicySpec::Slot(slots) => Box::new(Slot::new(setup, *slots)?),
            PolicySpec::MaxMin(resource) => Box::new(MaxMin::new(setup, resource)?),
            PolicySpec::Only(resource) => Box::new(Only::new(setup, resource)?),
            PolicySpec::Asset => Box::new(Asset::new(setup)?),
            PolicySpec::Drf => Box::new(Drf::new(setup)?),
            PolicySpec::PNorm(p) => Box::new(PNorm::new(setup, p.value())?),
            PolicySpec::Ceei(resolve) => Box::new(ceei(setup, *resolve)?),
            PolicySpec::Bmf(resolve) => Box::new(bmf(setup, *resolve)?),
            PolicySpec::Quota(path) => Box::new(Quota::new(&QuotaFile::read(Path::new(path))?, setup)?),
        })
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicySpec::Fifo => f.write_str("fifo"),
            PolicySpec::Slot(slots) => write!(f, "slot:{slots}"),
            PolicySpec::MaxMin(resource) => write!(f, "maxmin:{resource}"),
            PolicySpec::Only(resource) => write!(f, "only:{resource}"),
            PolicySpec::Asset => f.write_str("asset"),
            PolicySpec::Drf => f.write_str("drf"),
            PolicySpec::PNorm(p) => write!(f, "pnorm:{p}"),
            PolicySpec::Ceei(Resolve::Change) => f.write_str("ceei"),
            PolicySpec::Ceei(resolve) => write!(f, "ceei:{resolve}"),
            PolicySpec::Bmf(Resolve::Change) => f.write_str("bmf"),
            PolicySpec::Bmf(resolve) => write!(f, "bmf:{resolve}"),
            PolicySpec::Quota(path) => write!(f, "quota:{path}"),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<PolicySpec> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        match (name, parameter) {
            ("fifo", None) => Ok(PolicySpec::Fifo),
            ("asset", None) => Ok(PolicySpec::Asset),
            ("drf", None) => Ok(PolicySpec::Drf),
            ("fifo" | "asset" | "drf", Some(_)) => {
                Err(Error::plan("policy", format!("'{text}'"), format!("just '{name}', which has no parameter")))
            }
            ("slot", given) => match given.unwrap_or_default().parse::<u32>() {
                Ok(slots) if slots > 0 => Ok(PolicySpec::Slot(slots)),
                _ => Err(Error::plan("policy", format!("'{text}'"), "slots per machine, at least 1, such as slot:12")),
            },
            ("maxmin", Some(resource)) if !resource.is_empty() => Ok(PolicySpec::MaxMin(resource.to_owned())),
            ("only", Some(resource)) if !resource.is_empty() => Ok(PolicySpec::Only(resource.to_owned())),
            ("pnorm", given) => match Parameter::read(given.unwrap_or_default(), |p| p >= 1.0) {
                Some(p) => Ok(PolicySpec::PNorm(p)),
                None => Err(Error::plan("policy", format!("'{text}'"), "a P of at least 1, or inf, such as pnorm:2")),
            },
            ("ceei", rule) => resolve(text, rule).map(PolicySpec::Ceei),
            ("bmf", rule) => resolve(text, rule).map(PolicySpec::Bmf),
            ("quota", Some(path)) if !path.is_empty() => Ok(PolicySpec::Quota(path.to_owned())),
            ("quota", _) => Err(Error::plan("policy", format!("'{text}'"), "a quota file, such as quota:groups.toml")),
            ("only", _) => Err(Error::plan("policy", format!("'{text}'"), "a resource, such as only:cpu")),
            ("maxmin", _) => Err(Error::plan("policy", format!("'{text}'"), "a resource, such as maxmin:cpu")),
            _ => {
                let all = PolicySpec::all();
                let spellings: Vec<&str> = all.iter().map(|policy| policy.about().spelling).collect();
                let names = spellings.iter().map(|spelling| spelling.split([':', '[']).next().unwrap_or(spelling));
                Err(Error::UnknownPolicy {
                    name: text.to_owned(),
                    suggestion: nearest(name, names).unwrap_or_default().to_owned(),
                    known: spellings.join(", "),
                })
            }
        }
    }
}

/// When a target policy solves anew, as its name says.
fn resolve(text: &str, rule: Option<&str>) -> Result<Resolve> {
    let named = |error: Error| match error {
        Error::Plan { expected, .. } => Error::plan("policy", format!("'{text}'"), expected),
        other => other,
    };
    rule.map_or(Ok(Resolve::default()), |rule| rule.parse().map_err(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_reads_back_as_it_prints() {
        for policy in PolicySpec::all() {
            assert_eq!(policy.to_string().parse::<PolicySpec>().expect("a known policy"), policy);
        }
        for text in ["pnorm:1", "pnorm:1.5", "pnorm:inf", "ceei:every:60s", "ceei:tolerance:0.01", "bmf:every:1s"] {
            assert_eq!(text.parse::<PolicySpec>().expect("a known policy").to_string(), text);
        }
        assert_eq!("ceei:change".parse::<PolicySpec>().expect("a known policy").to_string(), "ceei");
    }

    #[test]
    fn typos_get_a_suggestion() {
        let message = "drff".parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message.contains("did you mean 'drf'") && message.contains("slot:K"), "{message}");
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
            "quota",
            "quota:",
        ] {
            assert!(bad.parse::<PolicySpec>().unwrap_err().to_string().contains("expected"), "{bad}");
        }
    }

    #[test]
    fn a_policy_has_both_static_counterparts_or_none() {
        let resources = ["cpu".to_owned(), "memory".to_owned()];
        for policy in PolicySpec::all() {
            let whole = policy.whole_mechanism(&resources, OnBlocked::Skip, Ties::LowestId);
            assert_eq!(policy.mechanism(&resources).is_ok(), whole.is_ok(), "{policy}");
            let none = matches!(policy, PolicySpec::Fifo | PolicySpec::Only(_) | PolicySpec::Quota(_));
            assert_eq!(whole.is_err(), none, "{policy}");
        }
        let unknown = PolicySpec::MaxMin("gpu".to_owned());
        let message = unknown.whole_mechanism(&resources, OnBlocked::Stop, Ties::HighestId).err().expect("no gpu");
        assert!(message.to_string().contains("one of cpu, memory"), "{message}");
    }
}
