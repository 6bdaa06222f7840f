//! Machines that fail, leave and join during a run.

use super::take_back::Choice;
use super::{Engine, OnFailure};
use crate::cluster::{Change, Placement};
use crate::record::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

impl Engine<'_> {
    /// When the next event of a machine happens.
    pub(super) fn next_event(&self) -> Option<Time> {
        let placed = self.options.placement != Placement::Pooled;
        self.cluster.events.events.get(self.events).filter(|_| placed).map(|event| event.at)
    }

    /// Applies the events of machines at this instant.
    pub(super) fn machine_events(&mut self) -> Result<()> {
        while self.next_event().is_some_and(|at| at <= self.now) {
            let event = &self.cluster.events.events[self.events];
            self.events += 1;
            self.count_machine(event.machine, false);
            match &event.change {
                Change::Fail => self.fail(event.machine)?,
                Change::Leave => {
                    self.machines.remove(event.machine);
                    self.withdraw_from(event.machine);
                    self.scatter_from(event.machine);
                }
                Change::Join => {
                    self.machines.restore(event.machine, &self.offers[event.machine.index()]);
                    self.round.freed(event.machine);
                    self.wake_gangs(event.machine);
                }
                Change::Relabel(labels) => {
                    self.scopes.relabel(event.machine, labels);
                    self.round.freed(event.machine);
                    self.wake_gangs(event.machine);
                }
            }
            self.count_machine(event.machine, true);
        }
        Ok(())
    }

    /// A machine is gone with what runs there, and gangs with tasks there stop everywhere.
    fn fail(&mut self, machine: MachineId) -> Result<()> {
        self.machines.remove(machine);
        self.withdraw_from(machine);
        self.scatter_from(machine);
        let struck = self.victims.as_ref().map(|victims| victims.on(machine)).unwrap_or_default();
        for ticket in struck {
            // It may be gone already, with the rest of its gang.
            let (Some(victims), Some(tasks)) = (&self.victims, self.agenda.get(ticket).copied()) else { continue };
            match self.options.on_failure {
                OnFailure::Requeue => {
                    let Choice { tickets, count, .. } = self.all_of(victims, ticket, &tasks);
                    self.stop(&tickets, count, Fate::MachineFailed)?;
                }
                OnFailure::Lose => {
                    self.agenda.cancel(ticket);
                    self.forget(&tasks);
                    self.finish(tasks, Fate::Lost)?;
                }
            }
        }
        Ok(())
    }
}
