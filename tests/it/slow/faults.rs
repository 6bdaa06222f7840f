//! Faults of tasks: failed attempts, stragglers and backup instances.
//!
//! The engine's random generator (`Draws`) decides whether an attempt fails or straggles. This module computes the consequences.

use std::cmp::Reverse;

use plimsoll::engine::Draws;

use super::rate::ONE;
use super::simulation::{Simulation, State, Task};

/// The parameters of failures, stragglers and backups.
#[derive(Clone, Debug)]
pub struct Faults {
    pub draws: Draws,
    pub retries: u64,
    /// When a task gets a backup, in millionths: the share of the row's tasks that must have ended, and the multiple of the mean run time
    /// of the completed tasks that the task must have run.
    pub backup: Option<(u64, u64)>,
}

impl Simulation<'_> {
    /// Ends the tasks that finish now. If two instances of a task end at the same instant, the one that started first counts.
    pub fn finish(&mut self, now: u64) {
        let run = |task: usize| self.tasks[task].run().expect("it runs");
        let mut due: Vec<usize> =
            (0..self.tasks.len()).filter(|&task| self.tasks[task].run().is_some_and(|run| run.finish == now)).collect();
        due.sort_by_key(|&task| run(task).start);
        for task in due {
            match self.tasks[task].run() {
                None => {}
                Some(run) if run.fails => self.fails(task, now),
                Some(run) => {
                    self.end(task, now, "finished");
                    self.tasks[task].state = State::Ended;
                    self.finished.push((self.tasks[task].row, now - run.start));
                    match self.other(task) {
                        Some(other) if self.tasks[other].run().is_some() => self.drop_running(other, now, "superseded"),
                        Some(other) => self.tasks[other].state = State::Ended,
                        None => {}
                    }
                }
            }
        }
        self.make_backups(now);
    }

    /// Returns the other instance of a task, if there is one.
    fn other(&self, task: usize) -> Option<usize> {
        let same = |other: &Task| (other.row, other.number) == (self.tasks[task].row, self.tasks[task].number);
        let alive = |other: &Task| matches!(other.state, State::Waiting(_) | State::Running(_));
        (0..self.tasks.len()).find(|&other| other != task && same(&self.tasks[other]) && alive(&self.tasks[other]))
    }

    fn drop_running(&mut self, task: usize, now: u64, fate: &str) {
        self.end(task, now, fate);
        self.tasks[task].state = State::Ended;
    }

    fn fails(&mut self, task: usize, now: u64) {
        match self.other(task) {
            Some(other) if self.tasks[other].run().is_some() => return self.drop_running(task, now, "failed"),
            Some(waiting) => self.tasks[waiting].state = State::Ended,
            None => {}
        }
        let Task { row, number, set, .. } = self.tasks[task];
        self.failures.push((row, number));
        let failures = self.failures.iter().filter(|failed| **failed == (row, number)).count() as u64;
        if failures <= self.world.faults.as_ref().map_or(0, |faults| faults.retries) {
            return self.stop(&[task], now, "failed");
        }
        let gang = |other: &usize| *other == task || (self.gang(row) && self.tasks[*other].set == set);
        let all = (0..self.tasks.len()).filter(gang).filter(|&other| self.tasks[other].run().is_some());
        for task in all.collect::<Vec<usize>>() {
            self.drop_running(task, now, "given-up");
        }
    }

    /// Returns the number of a task's next attempt.
    fn next_attempt(&self, task: usize) -> u64 {
        let same = |other: &&Task| (other.row, other.number) == (self.tasks[task].row, self.tasks[task].number);
        self.tasks.iter().filter(same).map(|other| other.attempt + 1).max().unwrap_or(0)
    }

    /// Handles a stopped task that waits again. If the other instance of the task runs, the stopped one ends. If the other instance waits,
    /// it is withdrawn.
    pub fn waits_again(&mut self, task: usize) {
        self.tasks[task].attempt = self.next_attempt(task);
        match self.other(task) {
            Some(other) if self.tasks[other].run().is_some() => self.tasks[task].state = State::Ended,
            Some(waiting) => self.tasks[waiting].state = State::Ended,
            None => {}
        }
    }

    /// Returns when a running task gets a backup, given the tasks that have ended so far.
    fn backup_at(&self, task: usize) -> Option<u64> {
        let (share, longer) = self.world.faults.as_ref()?.backup?;
        let Task { row, .. } = self.tasks[task];
        let run = self.tasks[task].run()?;
        if self.gang(row) || self.rows[row].stable || self.other(task).is_some() {
            return None;
        }
        let tasks = self.rows[row].tasks;
        let ran: Vec<u128> =
            self.finished.iter().filter(|(of, _)| *of == row).map(|(_, ran)| u128::from(*ran)).collect();
        if ran.is_empty() || u128::from(self.ended(row)) * ONE < u128::from(tasks) * u128::from(share) {
            return None;
        }
        let longer = (ran.iter().sum::<u128>() * u128::from(longer)).div_ceil(ran.len() as u128 * ONE);
        Some(run.start + (longer as u64).max(1).max(self.rows[row].estimate.unwrap_or(0)))
    }

    pub fn next_backup(&self) -> Option<u64> {
        (0..self.tasks.len()).filter_map(|task| self.backup_at(task)).min()
    }

    fn make_backups(&mut self, now: u64) {
        let mut due: Vec<usize> =
            (0..self.tasks.len()).filter(|&task| self.backup_at(task).is_some_and(|at| at <= now)).collect();
        due.sort_by_key(|&task| Reverse(task));
        for task in due {
            let Task { row, number, place, .. } = self.tasks[task];
            self.sets.push(row);
            self.tasks.push(Task {
                row,
                set: self.sets.len() - 1,
                number,
                attempt: self.next_attempt(task),
                saved: 0,
                place,
                state: State::Waiting(now),
                devices: Vec::new(),
            });
        }
        self.create_queues();
    }
}
