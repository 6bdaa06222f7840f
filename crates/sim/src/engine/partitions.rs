//! Which task sets are booked apart by label, and what the machines of each label have at present.
//!
//! A task set belongs to the first of the policy's labels that its label expression requires ([`crate::cluster`]). What a
//! label has is what the machines have that carry it and are there; what task sets have that require none of the labels
//! is what those machines have that carry none.

use super::Engine;
use crate::books::Partition;
use crate::cluster::{ClassId, Cluster, LabelIndex, Placement};
use crate::policy::Policy;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources};

/// The labels that a policy keeps apart, and what there is of each.
#[derive(Clone, Debug, Default)]
pub struct Partitions {
    labels: Vec<String>,
    /// By class of machines, if it has been asked for.
    of_class: Vec<Option<Partition>>,
    /// By partition.
    totals: Vec<Resources>,
}

impl Partitions {
    /// Those of a policy. Errors: the policy's, for a label that no machine ever carries, or if there are no machines.
    pub fn new(policy: &dyn Policy, cluster: &Cluster, placement: Placement) -> Result<Partitions> {
        let known: Vec<&str> = cluster.labels.known().collect();
        let labels = policy.partitions((placement != Placement::Pooled).then_some(&known))?;
        let totals = vec![Resources::ZERO; if labels.is_empty() { 0 } else { labels.len() + 1 }];
        Ok(Partitions { labels, of_class: Vec::new(), totals })
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.labels.len()
    }

    /// Where a task set belongs that asks for this class of machines.
    pub fn of(&mut self, class: Option<ClassId>, labels: &LabelIndex) -> Partition {
        let Some(class) = class.filter(|_| !self.labels.is_empty()) else { return Partition::DEFAULT };
        let at = class.0 as usize;
        self.of_class.resize(self.of_class.len().max(at + 1), None);
        *self.of_class[at].get_or_insert_with(|| {
            let first = self.labels.iter().position(|label| labels.requires(class, label));
            first.map_or(Partition::DEFAULT, |at| Partition(at as u8 + 1))
        })
    }

    /// The partitions in which a machine counts.
    fn of_machine(&self, machine: MachineId, labels: &LabelIndex) -> Vec<usize> {
        let carries = |label: &String| labels.carriers(label).is_some_and(|carriers| carriers.contains(machine));
        let carried: Vec<usize> =
            (0..self.labels.len()).filter(|&at| carries(&self.labels[at])).map(|at| at + 1).collect();
        if carried.is_empty() { vec![Partition::DEFAULT.index()] } else { carried }
    }
}

impl Engine<'_> {
    /// Counts what each partition has from nothing.
    pub(super) fn count_partitions(&mut self) {
        if self.partitions.labels.is_empty() {
            return;
        }
        self.partitions.totals = self.totals();
        self.tell_totals();
    }

    fn totals(&self) -> Vec<Resources> {
        let mut totals = vec![Resources::ZERO; self.partitions.totals.len()];
        for machine in (0..self.offers.len() as u32).map(MachineId).filter(|machine| self.machines.is_present(*machine))
        {
            for at in self.partitions.of_machine(machine, self.scopes.labels()) {
                let parts = totals[at].0.iter_mut().zip(self.offers[machine.index()].0);
                parts.for_each(|(sum, part)| *sum += part);
            }
        }
        totals
    }

    /// Counts a machine, if it is there, in or out of the partitions in which it is.
    pub(super) fn count_machine(&mut self, machine: MachineId, into: bool) {
        if self.partitions.labels.is_empty() || !self.machines.is_present(machine) {
            return;
        }
        for at in self.partitions.of_machine(machine, self.scopes.labels()) {
            for (sum, part) in self.partitions.totals[at].0.iter_mut().zip(self.offers[machine.index()].0) {
                *sum = if into { *sum + part } else { *sum - part };
            }
        }
        self.tell_totals();
    }

    fn tell_totals(&mut self) {
        for (at, total) in self.partitions.totals.iter().enumerate() {
            if let Some(books) = self.books.apart(Partition(at as u8)) {
                books.set_capacity(*total);
            }
        }
    }

    /// Adds up again what each partition has. Panics: when it is something else (a programmer error); for audited runs.
    pub(super) fn audit_partitions(&self) {
        if !self.partitions.labels.is_empty() {
            assert_eq!(self.totals(), self.partitions.totals, "what labels have adds up at {:?}", self.now);
        }
    }
}
