//! Machines that fail, leave, join and change their labels during a run.

use crate::cluster::{Cluster, MachineChange};
use crate::engine::kernel::{Choice, Kernel};
use crate::record::Fate;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::named;
use plimsoll_base::units::{MachineId, Time};

named! {
    /// The fate of the tasks on a machine that fails.
    OnFailure {
        Requeue "requeue": "They wait again at their place in the queue, and restart",
        Lose "lose": "They are lost; their job continues without them",
    }
}

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

    /// Stops the tasks of a failed machine, and on all machines the gangs that have tasks on it. Errors: the recorder's.
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

    /// Applies the machine events of this instant; calls `withdrawn` for machines without new starts. Errors: the recorder's.
    pub fn apply(&mut self, kernel: &mut Kernel, withdrawn: &mut dyn FnMut(&mut Kernel, MachineId)) -> Result<()> {
        while self.next(kernel.cluster()).is_some_and(|at| at <= kernel.now()) {
            let event = kernel.cluster().events.events[self.count].clone();
            self.count += 1;
            match &event.change {
                MachineChange::Fail | MachineChange::Leave => {
                    kernel.remove_machine(event.machine);
                    withdrawn(kernel, event.machine);
                    if event.change == MachineChange::Fail {
                        self.fail(kernel, event.machine)?;
                    }
                }
                MachineChange::Join => kernel.restore_machine(event.machine),
                MachineChange::Relabel(labels) => kernel.relabel(event.machine, labels),
            }
        }
        Ok(())
    }
}

impl Checkpoint for EventsSoFar {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let EventsSoFar { count, on_failure: _ } = self;
        visitor.value(count)
    }
}
