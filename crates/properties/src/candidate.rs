//! A policy under test, with its mechanism for every number of resources.

use std::sync::Arc;

use super::simulated::Simulated;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Resources};
use plimsoll_fair::{Allocation, Instance, Mechanism, OnBlocked};
use plimsoll_policies::{NamedPolicy, Registry, Setup};
use plimsoll_sim::books::Weights;

/// The maximum number of resources of an instance.
pub(super) const MOST_RESOURCES: usize = 4;

/// Names of resources, in the order of their use in instances.
const NAMES: [&str; MOST_RESOURCES] = ["cpu", "memory", "disk", "gpu"];

/// A policy under test.
#[derive(Clone)]
pub struct Candidate {
    name: String,
    resources: Vec<String>,
    /// The mechanism for each number of resources, from 1.
    mechanisms: Vec<Arc<dyn Mechanism>>,
}

impl Candidate {
    /// Creates a candidate from the static mechanism of a policy. Errors: those of [`Registry::mechanism`].
    pub fn divisible(registry: &Registry, name: &str) -> Result<Candidate> {
        let resources = named(name, |resource| registry.mechanism(name, resource).is_ok());
        let mechanism = |dims: usize| registry.mechanism(name, &resources[..dims]);
        let mechanisms = (1..=MOST_RESOURCES).map(mechanism).collect::<Result<_>>()?;
        Ok(Candidate { name: name.to_owned(), resources, mechanisms })
    }

    /// Creates a candidate from a custom mechanism.
    pub fn own(name: impl Into<String>, mechanism: impl Mechanism + 'static) -> Candidate {
        let mechanism: Arc<dyn Mechanism> = Arc::new(mechanism);
        let resources = NAMES.map(str::to_owned).to_vec();
        Candidate { name: name.into(), resources, mechanisms: vec![mechanism; MOST_RESOURCES] }
    }

    /// Creates a candidate from a policy of the simulation, which allocates whole tasks. Errors: those of the policy's constructor on a
    /// cluster with the resources that it names.
    pub fn integral(policy: NamedPolicy, on_blocked: OnBlocked) -> Result<Candidate> {
        let (name, weights) = (policy.name.clone(), Weights::default());
        let build = |resources: &[String]| {
            let dims: Vec<Dim> = resources.iter().map(|resource| Dim::parse(resource).0).collect();
            let capacity = Resources::from_fn(|d| dims.get(d).map_or(0, |dim| dim.unit.scale()));
            policy.build(&Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None }).map(drop)
        };
        let resources = named(&name, |resource| build(resource).is_ok());
        build(&resources[..1])?;
        let mechanism: Arc<dyn Mechanism> = Arc::new(Simulated::new(policy, on_blocked));
        Ok(Candidate { name, resources, mechanisms: vec![mechanism; MOST_RESOURCES] })
    }

    /// Returns the policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of resources; an instance uses the first few of them.
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// Computes the allocation of an instance. Errors: those of the mechanism, and an allocation of the wrong number of users.
    pub fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let dims = instance.resources().len();
        let mechanism = self
            .mechanisms
            .get(dims - 1)
            .ok_or_else(|| Error::plan("capacity", format!("{dims} resources"), format!("at most {MOST_RESOURCES}")))?;
        let allocation = mechanism.allocate(instance)?;
        let (users, given) = (instance.users().len(), allocation.tasks.floats().len());
        if users != given {
            let problem = format!("it gives tasks to {given} users of {users}");
            return Err(Error::NotConverged { solver: self.name.clone(), problem });
        }
        Ok(allocation)
    }
}

/// Returns names of resources. The first is one that the policy accepts alone: `maxmin:gpu` needs a `gpu` even if there is only one
/// resource.
fn named(policy: &str, accepts: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    if accepts(&names[..1]) {
        return names;
    }
    names.extend(policy.split_once(':').map(|(_, parameter)| parameter.to_owned()));
    if let Some(at) = (0..names.len()).find(|&at| accepts(&names[at..=at])) {
        let first = names.remove(at);
        names.insert(0, first);
    }
    names.truncate(MOST_RESOURCES);
    names
}
