//! The machines of a run, pooled or individual, as the policy's lens represents them.

use std::sync::Arc;

use crate::engine::Options;
use super::devices::Devices;
use crate::engine::round::gang::Kinds;
use super::partitions::Partitions;
use super::scopes::{Empty, ScopeId, Scopes};
use crate::cluster::{Cluster, Hardware, Machines, Placement};
use crate::policy::{Lens, Needs};
use crate::workload::synthetic::random::stream;
use plimsoll_base::units::{MachineId, Resources};

/// The machines of a run and their state.
pub(in crate::engine) struct Site {
    pub cluster: Arc<Cluster>,
    /// The policy's view of machines and demands.
    pub lens: Lens,
    /// Whether the cluster is one pool.
    pub pooled: bool,
    pub machines: Machines,
    /// The devices that are assigned to each running task, if devices have identities.
    pub devices: Option<Devices>,
    pub scopes: Scopes,
    /// The amounts that each machine offers through the lens.
    pub offers: Vec<Resources>,
    pub partitions: Partitions,
    /// The maximum demand of a task, so that the sum over all running tasks cannot overflow: under slots more tasks may run than the
    /// cluster has room for.
    pub most_a_task: u64,
}

impl Site {
    /// Creates the machines of a cluster, all free.
    pub fn new(needs: &Needs, cluster: Arc<Cluster>, options: &Options) -> Site {
        let pooled = options.placement == Placement::Pooled;
        let seen: Vec<Resources> = cluster.capacities.iter().map(|capacity| needs.lens.machine(*capacity)).collect();
        let offered = sum(&seen);
        let plain = needs.lens.is_plain();
        let offers = if pooled { vec![offered] } else { seen };
        let mut machines = Machines::new(cluster.dims.len(), options.placement, &offers);
        machines.draw_from(stream(options.seed, "placement"));
        let hardware = cluster.hardware.clone().filter(|_| !pooled);
        let made_of = hardware.as_ref().map(Hardware::dims).unwrap_or_default();
        let devices = hardware.is_some().then(Devices::default);
        if let Some(hardware) = hardware {
            machines = machines.with_hardware(hardware);
        }
        let real = (!plain).then(|| {
            let capacities = if pooled { vec![cluster.total()] } else { cluster.capacities.clone() };
            Kinds::new(capacities, &made_of)
        });
        let empty = Empty { seen: Kinds::new(offers.clone(), &made_of), real };
        if !pooled {
            cluster.events.absent.iter().for_each(|machine| machines.remove(*machine));
        }
        let mut site = Site {
            scopes: Scopes::new(Arc::clone(&cluster), made_of, empty),
            cluster,
            lens: needs.lens,
            pooled,
            machines,
            devices,
            offers,
            partitions: Partitions::new(&needs.labels),
            most_a_task: if plain { u64::MAX } else { u64::MAX / offered.0.into_iter().max().unwrap_or(1).max(1) },
        };
        site.count_partitions();
        site
    }

    /// Returns the capacity of the whole cluster through the lens.
    pub fn offered(&self) -> Resources {
        sum(&self.offers)
    }

    /// Returns a machine of a scope with this free amount, chosen by the placement rule.
    pub fn find(&mut self, scope: ScopeId, need: &[u64]) -> Option<MachineId> {
        self.scopes.find(&mut self.machines, scope, need)
    }
}

/// Returns the sum of all amounts.
fn sum(parts: &[Resources]) -> Resources {
    parts.iter().fold(Resources::ZERO, |mut sum, part| {
        for (sum, part) in sum.0.iter_mut().zip(part.0) {
            *sum += part;
        }
        sum
    })
}
