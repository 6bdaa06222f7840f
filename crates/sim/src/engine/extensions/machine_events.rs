//! Machines that fail, leave, join and change their labels during a run.

use crate::engine::OnFailure;
use crate::engine::kernel::Kernel;
use super::Extensions;
use crate::engine::kernel::stop::Choice;
use crate::cluster::{Cluster, MachineChange};
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

/// The number of machine events so far.
#[derive(Debug, Default)]
pub(in crate::engine) struct EventsSoFar(usize);

impl EventsSoFar {
    /// Returns the instant of the next event.
    pub fn next(&self, cluster: &Cluster) -> Option<Time> {
        cluster.events.events.get(self.0).map(|event| event.at)
    }
}

impl Extensions {
    /// Applies the machine events of this instant, and notifies the extensions of machines without new starts. Errors: the recorder's.
    pub fn machine_events(&mut self, core: &mut Kernel) -> Result<()> {
        while self.next_event(&core.site.cluster).is_some_and(|at| at <= core.now)
            && let Some(EventsSoFar(count)) = &mut self.events
        {
            let event = core.site.cluster.events.events[*count].clone();
            *count += 1;
            core.site.count_machine(&mut core.books, event.machine, false);
            match &event.change {
                MachineChange::Fail | MachineChange::Leave => {
                    core.site.machines.remove(event.machine);
                    self.withdrawn(core, event.machine);
                    if event.change == MachineChange::Fail {
                        core.fail(event.machine)?;
                    }
                }
                MachineChange::Join => {
                    core.site.machines.restore(event.machine, &core.site.offers[event.machine.index()]);
                    core.serves_more(event.machine);
                }
                MachineChange::Relabel(labels) => {
                    core.site.scopes.relabel(event.machine, labels);
                    core.serves_more(event.machine);
                }
            }
            core.site.count_machine(&mut core.books, event.machine, true);
        }
        Ok(())
    }
}

impl Kernel<'_> {
    /// Records that a machine has more free room than before or other labels.
    pub(in crate::engine) fn serves_more(&mut self, machine: MachineId) {
        self.round.freed(machine);
        self.notes.freed(machine);
    }

    /// Stops the tasks of a failed machine, and gangs with tasks there on all machines. Errors: the recorder's.
    fn fail(&mut self, machine: MachineId) -> Result<()> {
        let struck = self.running.victims.as_ref().map(|victims| victims.on(machine)).unwrap_or_default();
        for ticket in struck {
            // The entry may be gone already, with the rest of its gang.
            let Some(tasks) = self.running.get(ticket).copied() else { continue };
            match self.options.on_failure {
                OnFailure::Requeue => {
                    let Choice { tickets, count, .. } = self.all_of(ticket, &tasks);
                    self.stop(&tickets, count, Fate::MachineFailed)?;
                }
                OnFailure::Lose => {
                    self.running.cancel(&self.work.sets, ticket);
                    self.finish(tasks, Fate::Lost)?;
                }
            }
        }
        Ok(())
    }
}
