//! The machines of a run, pooled or individual, as the policy's lens represents them.

use std::collections::HashMap;
use std::sync::Arc;

use super::ids::SetSlot;
use super::running::Running;
use super::scopes::{Empty, Kinds, Scopes};
use crate::books::{Books, Partition};
use crate::cluster::{ClassId, Cluster, DevicePart, Hardware, LabelIndex, Machines, Placement};
use crate::policy::{Lens, Needs};
use crate::workload::synthetic::random::stream;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Resources, Time};
use plimsoll_base::visit_values;

/// The machines of a run and their state.
pub struct Site {
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
    /// The maximum demand of a task. With this limit the sum over all running tasks cannot overflow, although under slots more tasks may
    /// run than the cluster has room for.
    pub most_a_task: u64,
}

impl Site {
    /// Creates the machines of a cluster, all free.
    pub fn new(needs: &Needs, cluster: Arc<Cluster>, placement: Placement, seed: u64) -> Site {
        let pooled = placement == Placement::Pooled;
        let seen: Vec<Resources> = cluster.capacities.iter().map(|capacity| needs.lens.machine(*capacity)).collect();
        let offered: Resources = seen.iter().sum();
        let plain = needs.lens.is_plain();
        let offers = if pooled { vec![offered] } else { seen };
        let mut machines = Machines::new(cluster.dims.len(), placement, &offers);
        machines.draw_from(stream(seed, "placement"));
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
        self.offers.iter().sum()
    }
}

/// The devices of each running task, by set and number. If devices have identities, every task is an entry of its own.
pub type Devices = HashMap<(SetSlot, u32), Vec<DevicePart>>;

/// Returns the devices of a task.
pub fn devices_of<'a>(devices: &'a Option<Devices>, tasks: &Running) -> &'a [DevicePart] {
    devices.as_ref().and_then(|devices| devices.get(&(tasks.set, tasks.first))).map_or(&[], Vec::as_slice)
}

/// The labels with separate books, and the capacity of each partition.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Partitions {
    labels: Vec<String>,
    /// The partition of each class of machines, computed at the first request.
    of_class: Vec<Option<Partition>>,
    /// The capacity of each partition.
    totals: Vec<Resources>,
}

impl Partitions {
    /// Creates the partitions of a policy with these labels.
    pub fn new(labels: &[String]) -> Partitions {
        let totals = vec![Resources::ZERO; if labels.is_empty() { 0 } else { labels.len() + 1 }];
        Partitions { labels: labels.to_vec(), of_class: Vec::new(), totals }
    }

    /// Checks that every label has machines. Errors: [`Error::Mismatch`] for a label that no machine ever carries.
    pub fn check(labels: &[String], cluster: &Cluster, placement: Placement) -> Result<()> {
        let carried =
            |label: &str| placement != Placement::Pooled && cluster.labels.known().any(|known| known == label);
        match labels.iter().find(|label| !carried(label)) {
            Some(label) => {
                let problem = format!("the policy keeps tasks of the label '{label}' apart, and no machine carries it");
                Err(Error::Mismatch { problem })
            }
            None => Ok(()),
        }
    }

    /// Returns the partition of task sets that require this class of machines.
    pub fn partition(&mut self, class: Option<ClassId>, labels: &LabelIndex) -> Partition {
        let Some(class) = class.filter(|_| !self.labels.is_empty()) else { return Partition::DEFAULT };
        let at = class.0 as usize;
        self.of_class.resize(self.of_class.len().max(at + 1), None);
        *self.of_class[at].get_or_insert_with(|| {
            let first = self.labels.iter().position(|label| labels.requires(class, label));
            first.map_or(Partition::DEFAULT, |at| Partition(at as u8 + 1))
        })
    }

    /// Returns the partitions that include a machine.
    fn of_machine(&self, machine: MachineId, labels: &LabelIndex) -> Vec<usize> {
        let carries = |label: &String| labels.carriers(label).is_some_and(|carriers| carriers.contains(machine));
        let carried: Vec<usize> =
            (0..self.labels.len()).filter(|&at| carries(&self.labels[at])).map(|at| at + 1).collect();
        if carried.is_empty() { vec![Partition::DEFAULT.index()] } else { carried }
    }
}

impl Site {
    /// Recomputes the capacity of each partition; the caller updates the books with [`Site::update_totals`].
    pub fn count_partitions(&mut self) {
        if self.partitions.labels.is_empty() {
            return;
        }
        self.partitions.totals = self.totals();
    }

    fn totals(&self) -> Vec<Resources> {
        let mut totals = vec![Resources::ZERO; self.partitions.totals.len()];
        for machine in (0..self.offers.len() as u32).map(MachineId).filter(|machine| self.machines.is_present(*machine))
        {
            for at in self.partitions.of_machine(machine, self.scopes.labels()) {
                totals[at] += self.offers[machine.index()];
            }
        }
        totals
    }

    /// Adds a present machine to its partitions, or removes it, and updates the books.
    pub fn count_machine(&mut self, books: &mut Books, machine: MachineId, into: bool) {
        if self.partitions.labels.is_empty() || !self.machines.is_present(machine) {
            return;
        }
        for at in self.partitions.of_machine(machine, self.scopes.labels()) {
            let (total, offer) = (&mut self.partitions.totals[at], self.offers[machine.index()]);
            *total = if into { *total + offer } else { *total - offer };
        }
        self.update_totals(books);
    }

    /// Sets the capacities of the partitions in the books.
    pub fn update_totals(&self, books: &mut Books) {
        for (at, total) in self.partitions.totals.iter().enumerate() {
            if let Some(books) = books.apart(Partition(at as u8)) {
                books.set_capacity(*total);
            }
        }
    }

    /// Recomputes the capacity of each partition. Panics: if it differs (a programmer error); for audited runs.
    pub fn audit_partitions(&self, now: Time) {
        if !self.partitions.labels.is_empty() {
            assert_eq!(self.totals(), self.partitions.totals, "the capacities of partitions add up at {now:?}");
        }
    }
}

impl Checkpoint for Site {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Site { cluster: _, lens: _, pooled: _, machines, devices, scopes, offers, partitions, most_a_task: _ } =
            self;
        visit_values!(visitor; machines, devices, offers, partitions);
        scopes.visit(visitor)
    }
}
