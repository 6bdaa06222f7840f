//! The machines and weights of a run, which are the same under every policy, and the policy for them.

use crate::{NamedPolicy, Policy, Setup};
use plimsoll_base::error::Result;
use plimsoll_base::pinned::Pinned;
use plimsoll_base::units::Dim;
use plimsoll_sim::books::Weights;
use plimsoll_sim::cluster::{Cluster, ClusterSpec, Placement};

/// The machines and weights of a run, expressed in the resources of its workload. They are the same under every policy.
pub struct RunEnvironment {
    /// The machines.
    pub cluster: Cluster,
    /// The weights of users.
    pub weights: Weights,
}

impl RunEnvironment {
    /// Builds the machines and weights. Errors: machines that do not fit the workload, and those of a file of weights.
    pub fn new(cluster: &ClusterSpec, weights: Option<&Pinned>, dims: &[Dim]) -> Result<RunEnvironment> {
        let cluster = Cluster::new(cluster, dims)?;
        let weights = weights.map_or_else(|| Ok(Weights::default()), |file| Weights::read(file, &cluster.dims))?;
        Ok(RunEnvironment { cluster, weights })
    }

    /// Builds a policy for these machines and weights. Errors: those of the policy.
    pub fn policy(&self, policy: &NamedPolicy, placement: Placement) -> Result<Box<dyn Policy>> {
        let RunEnvironment { cluster, weights } = self;
        let machines = cluster.capacities.len() as u64;
        let labels: Vec<&str> = cluster.labels.known().collect();
        let labels = (placement != Placement::Pooled).then_some(&*labels);
        policy.build(&Setup { dims: &cluster.dims, capacity: cluster.total(), machines, weights, labels })
    }
}
