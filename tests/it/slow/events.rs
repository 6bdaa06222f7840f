//! Machine events, and the tasks that they stop.

use std::cmp::Reverse;

use super::Change;
use super::simulation::{Simulation, State, Task};

impl Simulation<'_> {
    /// Applies the machine events of an instant: machines fail, leave, join or get other labels.
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
        let mut struck: Vec<usize> = (0..self.tasks.len()).filter(here).collect();
        // The order matters only if two instances of one task run on the machine.
        struck.sort_by_key(|&task| Reverse(self.tasks[task].run().map(|run| run.start)));
        for task in struck {
            if self.tasks[task].run().is_none() {
                continue;
            }
            if self.world.lose {
                self.end(task, now, "lost");
                self.tasks[task].state = State::Ended;
            } else if let Some(batch) = self.batch(task) {
                let batch = self.members(batch);
                self.stop(&batch, now, "machine-failed");
            }
        }
    }

    /// Stops tasks of one set; of a gang, all running tasks. The stopped tasks wait again with their saved progress.
    pub fn stop(&mut self, tasks: &[usize], now: u64, fate: &str) {
        let Some(&first) = tasks.first() else { return };
        let Task { row, set, .. } = self.tasks[first];
        let mut before = None;
        for task in 0..self.tasks.len() {
            let with_it = tasks.contains(&task) || (self.gang(row) && self.tasks[task].set == set);
            if !with_it || self.tasks[task].run().is_none() {
                continue;
            }
            self.end(task, now, fate);
            self.keep(task, now);
            // If tasks can fail individually, each stopped task waits as a set of its own.
            let alone = self.world.faults.is_some() && !self.gang(row);
            if alone || before.is_none_or(|before| before + 1 != task) {
                self.sets.push(row);
            }
            before = Some(task);
            self.tasks[task].set = self.sets.len() - 1;
            self.tasks[task].state = State::Waiting(now);
            self.waits_again(task);
        }
        self.create_queues();
    }
}
