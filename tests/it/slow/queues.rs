//! The queues of waiting tasks. A user has one queue for each combination of label expression and place.

use std::collections::HashMap;

use super::order::{Job, Key, key};
use super::simulation::{Simulation, State, Task};
use super::world::sum;
use super::{Expression, Inside, Location};

/// The position of a task in its queue: the value of its row in the order inside users, priority, release, row and number.
pub type Position = (Key, u8, Option<(u64, u8)>, usize, u64);

impl Simulation<'_> {
    /// Returns the queue of a task: user, label and place.
    fn queue(&self, task: usize) -> (usize, &Option<Expression>, Location) {
        let Task { row, place, .. } = self.tasks[task];
        (self.rows[row].user, &self.rows[row].label, place)
    }

    fn in_queue(&self, task: usize, queue: &(usize, Option<Expression>, Location)) -> bool {
        self.queue(task) == (queue.0, &queue.1, queue.2)
    }

    /// Creates the queues of waiting tasks that have none.
    pub fn create_queues(&mut self) {
        for task in 0..self.tasks.len() {
            if self.tasks[task].waits() && !self.queues.iter().any(|queue| self.in_queue(task, queue)) {
                let (user, label, place) = self.queue(task);
                self.queues.push((user, label.clone(), place));
            }
        }
    }

    /// Returns the position of a task's queue in the order of creation. A user's queue without requirements is its oldest.
    pub fn age(&self, task: usize) -> usize {
        let position = self.queues.iter().position(|queue| self.in_queue(task, queue));
        let (_, label, place) = self.queue(task);
        if label.is_none() && place == Location::Cluster {
            0
        } else {
            1 + position.expect("a waiting task has a queue")
        }
    }

    /// Returns the next task of every queue.
    pub fn heads(&self) -> Vec<usize> {
        self.heads_without(&[]).into_iter().map(|(_, head)| head).collect()
    }

    /// Returns the next task of every queue and its position, without the tasks of some sets.
    pub fn heads_without(&self, sets: &[usize]) -> Vec<(Position, usize)> {
        let mut heads: Vec<(Position, usize)> = Vec::new();
        let mut keys: HashMap<usize, Key> = HashMap::new();
        let waits = |task: &usize| self.tasks[*task].waits() && !sets.contains(&self.tasks[*task].set);
        for task in (0..self.tasks.len()).filter(waits) {
            let Task { row, number, .. } = self.tasks[task];
            let key = keys.entry(row).or_insert_with(|| self.value(row)).clone();
            let position = (key, self.rows[row].priority, self.released[row], row, number);
            match heads.iter_mut().find(|(_, head)| self.queue(*head) == self.queue(task)) {
                Some(head) if position < head.0 => *head = (position, task),
                Some(_) => {}
                None => heads.push((position, task)),
            }
        }
        heads
    }

    /// Returns the value of a row in the order inside users. The lowest is next.
    fn value(&self, row: usize) -> Key {
        if self.world.inside == Inside::Usual {
            return Key::default();
        }
        let this = &self.rows[row];
        let of_job = |other: usize| self.rows[other].job == this.job;
        let known = (0..self.rows.len()).filter(|&other| of_job(other) && !self.too_large(other));
        let (now, open) = (self.now(), |task: &Task| task.state != State::Ended);
        let past = || self.past.iter().filter(|past| of_job(past.row));
        let running = || self.tasks.iter().filter(|task| of_job(task.row)).filter_map(|task| Some((task, task.run()?)));
        let served = past().map(|past| (past.row, past.end - past.start));
        let served = served.chain(running().map(|(task, run)| (task.row, now - run.start)));
        let job = Job {
            rows: known.map(|other| (&self.rows[other], self.ended(other))).collect(),
            ended: past().map(|past| past.end - past.start).collect(),
            running: running().map(|(_, run)| now - run.start).collect(),
            served: served.map(|(row, ran)| (self.rows[row].demand.clone(), ran)).collect(),
            saved: self.tasks.iter().filter(|task| of_job(task.row) && open(task)).map(|it| u128::from(it.saved)).sum(),
            submit: this.submit,
            now,
        };
        let released = self.released[row].expect("a row that waits was released");
        let capacity = sum(self.world.machines.iter().cloned(), this.demand.len());
        key(self.world.inside, row, this, released, &job, &capacity)
    }

    /// Returns the number of tasks of a row that have ended. If a task has two instances, both have ended.
    pub fn ended(&self, row: usize) -> u64 {
        let open = self.tasks.iter().filter(|task| task.row == row && task.state != State::Ended);
        let mut open: Vec<u64> = open.map(|task| task.number).collect();
        open.sort_unstable();
        open.dedup();
        self.rows[row].tasks - open.len() as u64
    }
}
