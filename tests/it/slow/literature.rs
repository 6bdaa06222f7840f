//! The state of the reference implementation as the policies of the literature use it, and the choices of these policies.

use std::collections::HashMap;

use super::{Config, Outcome, Placement, Policy, Row, Simulation, Ties, need, offers, share, times};
use crate::slow_ratio::Ratio;
use crate::slow_zoo::{User, View, Zoo, pair, place, times as amounts};

impl Simulation<'_> {
    /// Updates the accounts of Karma if the policy is Karma.
    pub(super) fn quanta(&mut self, now: u64) {
        self.accounts.idle += 1;
        let Policy::Zoo(Zoo::Karma(rule)) = self.config.policy else { return };
        let demands: Vec<u64> = self.users().iter().map(|user| user.wanted[0].div_ceil(1000)).collect();
        self.accounts.round(rule, self.capacity[0] / 1000, now, &demands);
    }

    /// Returns the users that have appeared, in the order of their appearance.
    pub(super) fn users(&self) -> Vec<User> {
        let mut numbers: Vec<usize> = Vec::new();
        for row in (0..self.rows.len()).filter(|&row| self.progress[row].arrived) {
            if !numbers.contains(&self.rows[row].user) {
                numbers.push(self.rows[row].user);
            }
        }
        numbers.into_iter().map(|user| self.user(user)).collect()
    }

    pub(super) fn user(&self, number: usize) -> User {
        let mine = (0..self.rows.len()).filter(|&row| self.rows[row].user == number);
        let dims = self.capacity.len();
        let sum = |of: &dyn Fn(usize) -> u64| -> Vec<u64> {
            let rows: Vec<Vec<u64>> = mine.clone().map(|row| amounts(&self.rows[row], of(row))).collect();
            (0..dims).map(|r| rows.iter().map(|row| row[r]).sum()).collect()
        };
        let progress = |row: usize| &self.progress[row];
        let memory = if let Policy::Zoo(zoo) = self.config.policy { zoo.memory() } else { None };
        let past = |r: usize| memory.map_or(0, |memory| memory.past(&self.holdings(number, r), self.clock));
        let head = self.head(number).map(|row| {
            let (released, _) = self.progress[row].released.expect("a row that waits was released");
            (self.rows[row].demand.clone(), released, self.rows[row].priority)
        });
        User {
            number,
            weights: self.config.weights.get(number).cloned().unwrap_or(vec![Ratio::ONE; dims]),
            past: (0..dims).map(past).collect(),
            held: sum(&|row| progress(row).launched - progress(row).ended),
            running: mine.clone().map(|row| progress(row).launched - progress(row).ended).sum(),
            wanted: sum(&|row| progress(row).released.map_or(0, |_| self.rows[row].tasks - progress(row).ended)),
            head,
        }
    }

    pub(super) fn choose_eligible(&mut self) {
        let Policy::Zoo(Zoo::Tetris(knob)) = self.config.policy else { return };
        let drf = Config { policy: Policy::Drf, ..self.config.clone() };
        let waits = self.users().into_iter().enumerate().filter(|(_, user)| user.head.is_some());
        let mut waiting: Vec<(Ratio, usize, usize)> =
            waits.map(|(at, user)| (share(&drf, user.number, &user.held, &self.capacity), at, user.number)).collect();
        waiting.sort();
        let part = (waiting.len() as u64 * (1000 - knob)).div_ceil(1000).max(1);
        self.eligible = waiting.into_iter().take(part as usize).map(|(.., number)| number).collect();
    }

    /// Returns the best pair of a user's next task and a machine with room for it.
    pub(super) fn best_pair(&self, zoo: Zoo, line: &[usize]) -> Option<(usize, Vec<usize>)> {
        let mut pairs = Vec::new();
        for &row in line {
            let need = need(&self.rows[row], self.config);
            let user = self.rows[row].user;
            let count = self.running.iter().filter(|task| self.rows[task.row].user == user).count();
            let tie = match self.config.ties {
                Ties::LeastRecentlyServed => (self.latest(user).map_or(0, |latest| latest + 1), self.id[user]),
                Ties::LowestId => (0, self.id[user]),
                Ties::HighestId => (0, usize::MAX - self.id[user]),
                Ties::FewestRunning => (count, self.id[user]),
            };
            let places: Vec<Vec<usize>> = match self.together(row) > 1 {
                true => self.places(row).into_iter().collect(),
                false => {
                    (0..self.free.len()).filter(|&at| times(&need, &self.free[at]) > 0).map(|at| vec![at]).collect()
                }
            };
            let known = self.user(user);
            for places in places {
                let whole = if self.config.placement == Placement::Pooled {
                    self.capacity.clone()
                } else {
                    offers(self.config)[places[0]].clone()
                };
                let spot = [&whole[..], &self.free[places[0]]];
                let tasks = (&need[..], self.together(row));
                let value = pair(zoo, tasks, &known.held, &known.weights, spot, self.eligible.contains(&user));
                pairs.push((value, tie, places, row));
            }
        }
        pairs.into_iter().min().map(|(.., places, row)| (row, places))
    }

    /// Returns whether the policy permits the next task of a row to start, or all tasks of a gang.
    pub(super) fn admitted(&self, row: usize) -> bool {
        let Policy::Zoo(Zoo::Karma(_)) = self.config.policy else { return true };
        let users = self.users();
        let at = users.iter().position(|user| user.number == self.rows[row].user).expect("it has appeared");
        self.accounts.admits(at, users[at].held[0], self.rows[row].demand[0] * self.together(row))
    }

    /// Returns the ranks of the users of these rows under a policy of the literature, by row.
    pub(super) fn zoo_places(&self, line: &[usize]) -> HashMap<usize, Vec<u128>> {
        let Policy::Zoo(zoo) = self.config.policy else { return HashMap::new() };
        let users = self.users();
        let (capacity, clock, credits) = (&self.capacity, self.clock, &self.accounts.credits);
        let pool = [self.capacity.clone()];
        let pooled = self.config.placement == Placement::Pooled;
        let machines = if pooled { &pool } else { &self.config.machines[..] };
        let view = View { users: &users, capacity, machines, clock, credits };
        let at = |row: usize| users.iter().position(|it| it.number == self.rows[row].user).expect("it has appeared");
        line.iter().map(|&row| (row, place(zoo, &view, at(row)))).collect()
    }

    /// Returns the past and current allocations of a user: amount, start and end.
    pub(super) fn holdings(&self, user: usize, r: usize) -> Vec<(u64, u64, u64)> {
        let mine = self.outcomes.iter().filter_map(|outcome| {
            let (start, finish) = outcome.start.zip(outcome.finish)?;
            let row = self.row_of(outcome);
            (row.user == user).then(|| (need(row, self.config)[r], start, finish.min(self.clock)))
        });
        mine.collect()
    }

    /// Returns the row of a launched task.
    pub(super) fn row_of(&self, outcome: &Outcome) -> &Row {
        let its = |&row: &usize| {
            let first = self.first_task(row);
            self.rows[row].job == outcome.job && (first..first + self.rows[row].tasks).contains(&outcome.task)
        };
        &self.rows[(0..self.rows.len()).find(its).expect("a row of its own")]
    }
}
