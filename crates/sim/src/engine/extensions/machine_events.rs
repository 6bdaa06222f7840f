//! Machines that fail, leave, join and change their labels during a run.

use super::Extensions;
use crate::cluster::{Cluster, MachineChange};
use crate::engine::OnFailure;
use crate::engine::kernel::{Choice, Kernel};
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

/// The number of machine events so far.
#[derive(Debug)]
pub struct EventsSoFar {
    count: usize,
    on_failure: OnFailure,
}

impl EventsSoFar {
    /// Creates the state before the first event.
    pub fn new(on_failure: OnFailure) -> EventsSoFar {
        EventsSoFar { count: 0, on_failure }
    }

    /// Returns the instant of the next event.
    pub fn next(&self, cluster: &Cluster) -> Option<Time> {
        cluster.events.events.get(self.count).map(|event| event.at)
    }

    /// Stops the tasks of a failed machine, and gangs with tasks there on all machines. Errors: the recorder's.
    fn fail(&self, kernel: &mut Kernel, machine: MachineId) -> Result<()> {
        let tickets = kernel.victims().map(|victims| victims.on(machine)).unwrap_or_default();
        for ticket in tickets {
            // The entry may be gone already, with the rest of its gang.
            let Some(tasks) = kernel.running(ticket).copied() else { continue };
            match self.on_failure {
                OnFailure::Requeue => {
                    let Choice { tickets, count, .. } = kernel.all_of(ticket, &tasks);
                    kernel.stop(&tickets, count, Fate::MachineFailed)?;
                }
                OnFailure::Lose => {
                    kernel.cancel(ticket);
                    kernel.finish(tasks, Fate::Lost)?;
                }
            }
        }
        Ok(())
    }
}

impl Extensions<'_> {
    /// Applies the machine events of this instant, and notifies the extensions of machines without new starts. Errors: the recorder's.
    pub fn machine_events(&mut self, kernel: &mut Kernel) -> Result<()> {
        let Some(mut events) = self.events.take() else { return Ok(()) };
        while events.next(kernel.cluster()).is_some_and(|at| at <= kernel.now()) {
            let event = kernel.cluster().events.events[events.count].clone();
            events.count += 1;
            match &event.change {
                MachineChange::Fail | MachineChange::Leave => {
                    kernel.remove_machine(event.machine);
                    self.withdrawn(kernel, event.machine);
                    if event.change == MachineChange::Fail {
                        events.fail(kernel, event.machine)?;
                    }
                }
                MachineChange::Join => kernel.restore_machine(event.machine),
                MachineChange::Relabel(labels) => kernel.relabel(event.machine, labels),
            }
        }
        self.events = Some(events);
        Ok(())
    }
}
