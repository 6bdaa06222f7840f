//! Room: the free amounts of machines, and the choice of machines for tasks.

use super::devices::Part;
use super::placement::{Candidate, prefer};
use super::simulation::{Simulation, Task};
use super::world::{minus, sum};

impl Simulation<'_> {
    /// Returns the tasks that start together with a queue's next task, each with its machine, or `None` if they cannot start now.
    pub fn launches(&mut self, now: u64, head: usize) -> Option<Vec<(usize, usize)>> {
        let tasks = self.together(head);
        let machines = match self.world.hoard {
            Some(patience) if self.gang(self.tasks[head].row) => self.gather(now, head, tasks.len(), patience),
            _ => self.seats_for(head, tasks.len()),
        };
        Some(tasks.into_iter().zip(machines?).collect())
    }

    /// Returns the tasks that must start together with a queue's next task, including that task.
    pub fn together(&self, head: usize) -> Vec<usize> {
        let Task { row, set, .. } = self.tasks[head];
        let together = |&task: &usize| {
            let of_gang = self.gang(row) && self.tasks[task].set == set;
            task == head || (of_gang && self.tasks[task].waits())
        };
        (0..self.tasks.len()).filter(together).collect()
    }

    /// Returns machines for `tasks` tasks like a queue's next one, chosen one by one, if there is room for all of them.
    pub fn seats_for(&self, head: usize, tasks: usize) -> Option<Vec<usize>> {
        let row = &self.rows[self.tasks[head].row];
        let need = self.world.need(row);
        let mut found: Vec<usize> = Vec::new();
        let mut taken: Vec<Vec<Part>> = vec![Vec::new(); self.offers.len()];
        while found.len() < tasks {
            let candidate = |machine: usize| {
                let before = found.iter().filter(|&&other| other == machine).count();
                let mut free = self.unreserved(machine);
                free.iter_mut().zip(need).for_each(|(free, need)| *free -= need * before as u64);
                let (whole, running) = (self.offers[machine].clone(), self.on(machine).count() + before);
                Candidate { place: machine, free, whole, running }
            };
            let fits = |machine: &usize| {
                self.will_do(head, *machine) && self.has_devices(*machine, &row.demand, &taken[*machine])
            };
            let candidates: Vec<Candidate> = (0..self.offers.len()).filter(fits).map(candidate).collect();
            let machine = match self.fragile() {
                Some(resource) => self.steepest(resource, &row.demand, &candidates, &taken)?,
                None => prefer(self.world.placement, need, &self.capacity, &candidates)?,
            };
            let parts = self.parts(machine, &row.demand, &candidate(machine).free, &taken[machine]);
            taken[machine].extend(parts);
            found.push(machine);
        }
        Some(found)
    }

    /// Returns whether the tasks of a row start together. A single task is no gang.
    pub fn gang(&self, row: usize) -> bool {
        self.rows[row].gang && self.rows[row].tasks > 1
    }

    /// Returns whether a waiting task may start on a machine if the machine has room.
    pub fn will_do(&self, task: usize, machine: usize) -> bool {
        let Task { row, place, .. } = self.tasks[task];
        let carries = self.rows[row].label.as_ref().is_none_or(|label| label.holds(&self.labels[machine]));
        self.there[machine] && self.world.is_at(machine, place) && carries
    }

    /// Returns the amounts on a machine that neither tasks nor gangs hold.
    pub fn free(&self, machine: usize) -> Vec<u64> {
        let held = self.on(machine).map(|task| self.world.need(&self.rows[task.row]).to_vec());
        minus(&self.offers[machine], &sum(held.chain(self.hoarded(machine)), self.capacity.len()))
    }
}
