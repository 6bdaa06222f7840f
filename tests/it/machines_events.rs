//! What happens to machines in the slow twin of placement, and the tasks that are stopped by it.

use crate::machines_slow::{Simulation, State};
use crate::machines_world::Change;

impl Simulation<'_> {
    /// Machines fail, leave, join and carry other labels.
    pub fn happen(&mut self, now: u64) {
        for event in self.world.events.iter().filter(|event| event.at == now) {
            match &event.change {
                Change::Relabel(labels) => {
                    self.labels[event.machine] = labels.clone();
                    self.freed.push(event.machine);
                }
                Change::Join => {
                    self.there[event.machine] = true;
                    self.freed.push(event.machine);
                }
                Change::Leave | Change::Fail => {
                    self.there[event.machine] = false;
                    self.withdraw_from(event.machine);
                    self.scatter_from(event.machine);
                    if event.change == Change::Fail {
                        self.fail(now, event.machine);
                    }
                }
            }
        }
    }

    fn fail(&mut self, now: u64, machine: usize) {
        let here = |task: &usize| self.tasks[*task].run().is_some_and(|run| run.machine == machine);
        for task in (0..self.tasks.len()).filter(here).collect::<Vec<_>>() {
            if self.world.lose {
                self.end(task, now, "lost");
                self.tasks[task].state = State::Ended;
            } else if let Some(batch) = self.batch(task) {
                let batch = self.members(batch);
                self.stop(&batch, now, "machine-failed");
            }
        }
    }

    /// Stops tasks of one set, and with one of a gang all of it that still runs: they wait again where they started from.
    pub fn stop(&mut self, tasks: &[usize], now: u64, fate: &str) {
        let Some(&first) = tasks.first() else { return };
        let row = self.tasks[first].row;
        let mut before = None;
        for task in 0..self.tasks.len() {
            let with_it = tasks.contains(&task) || (self.gang(row) && self.tasks[task].row == row);
            if !with_it || self.tasks[task].run().is_none() {
                continue;
            }
            self.end(task, now, fate);
            if before.is_none_or(|before| before + 1 != task) {
                self.sets.push(row);
            }
            before = Some(task);
            self.tasks[task].set = self.sets.len() - 1;
            self.tasks[task].attempt += 1;
            self.tasks[task].state = State::Waiting(now);
        }
    }
}
