//! Machines that fail, leave, join and change their labels during a run.

use super::OnFailure;
use super::core::Core;
use super::extension::Extensions;
use super::stop::Choice;
use crate::cluster::{Cluster, MachineChange};
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

/// How many of the machines' events have happened.
#[derive(Debug, Default)]
pub(super) struct EventsSoFar(usize);

impl EventsSoFar {
    /// When the next one happens.
    pub fn next(&self, cluster: &Cluster) -> Option<Time> {
        cluster.events.events.get(self.0).map(|event| event.at)
    }
}

impl Extensions {
    /// Applies the events of machines at this instant, and reports machines without new starts to the extensions.
    pub fn machine_events(&mut self, core: &mut Core) -> Result<()> {
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

impl Core<'_> {
    /// A machine has more room than before or will do for others.
    pub(super) fn serves_more(&mut self, machine: MachineId) {
        self.round.freed(machine);
        self.notes.freed(machine);
    }

    /// A machine fails with its tasks, and gangs with tasks there stop on all machines.
    fn fail(&mut self, machine: MachineId) -> Result<()> {
        let struck = self.running.victims.as_ref().map(|victims| victims.on(machine)).unwrap_or_default();
        for ticket in struck {
            // It may be gone already, with the rest of its gang.
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
