//! Separate books by label: the partition of each task set, and the present capacity of each partition.
//!
//! A task set belongs to the first of the policy's labels that its label expression requires ([`crate::cluster`]). The capacity of a label
//! is that of the present machines that carry it. Task sets that require no such label have the capacity of the present machines that carry
//! no such label.

use super::site::Site;
use crate::books::{Books, Partition};
use crate::cluster::{ClassId, Cluster, LabelIndex, Placement};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Resources, Time};

/// The labels with separate books, and the capacity of each partition.
#[derive(Clone, Debug, Default)]
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
    /// Recomputes the capacity of each partition; [`Site::update_totals`] updates the books.
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
                let parts = totals[at].0.iter_mut().zip(self.offers[machine.index()].0);
                parts.for_each(|(sum, part)| *sum += part);
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
            for (sum, part) in self.partitions.totals[at].0.iter_mut().zip(self.offers[machine.index()].0) {
                *sum = if into { *sum + part } else { *sum - part };
            }
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
            assert_eq!(self.totals(), self.partitions.totals, "what labels have adds up at {now:?}");
        }
    }
}
