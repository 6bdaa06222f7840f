//! The slow twin: a simulator that is simple enough to verify by reading it, written from the specification alone.
//!
//! It has no index, cache or sorted list: every step examines all rows, users and machines again. It supports the policies of [`Policy`],
//! on a pool or on machines. It uses no part of the library that it checks.

#[path = "slow/ahead.rs"]
mod ahead;
#[path = "slow/amounts.rs"]
mod amounts;
#[path = "slow/literature.rs"]
mod literature;
#[path = "slow/seats.rs"]
mod seats;

use std::cmp::Ordering;

use crate::slow_inside::{Inside, Job, Key, key};
use crate::slow_memory::Memory;
use crate::slow_rate::{Curve, rate};
pub use crate::slow_ratio::Ratio;
use crate::slow_zoo::{Accounts, Zoo};
pub use amounts::{need, offers, share, times};
pub use seats::{Candidate, seats};

/// One row of a trace. Jobs, users and stages are arbitrary numeric identifiers.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub job: usize,
    pub user: usize,
    pub submit: u64,
    pub duration: u64,
    pub tasks: u64,
    pub demand: Vec<u64>,
    pub stage: Option<usize>,
    pub after: Vec<usize>,
    pub priority: u8,
    /// All tasks start together or none does.
    pub gang: bool,
    /// The duration of each task as estimated by the user.
    pub estimate: Option<u64>,
    pub deadline: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fifo,
    Line,
    Slot(u64),
    MaxMin(usize),
    Asset,
    Drf,
    LongTerm(Memory),
    Afs(Memory),
    Zoo(Zoo),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Pooled,
    FirstFit,
    BestFit,
    WorstFit,
    Spread,
    DotProduct,
    /// By fragments of devices; the same as first-fit without devices.
    Fgd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBlocked {
    Skip,
    Stop,
    Easy,
    Conservative,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    LeastRecentlyServed,
    LowestId,
    HighestId,
    FewestRunning,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub machines: Vec<Vec<u64>>,
    pub policy: Policy,
    /// Weights by user (as numbered in the rows) and resource. Users beyond the end of the list have weight 1.
    pub weights: Vec<Vec<Ratio>>,
    pub placement: Placement,
    pub on_blocked: OnBlocked,
    pub ties: Ties,
    pub slowdown: Option<Curve>,
    pub inside: Inside,
    /// The speed of each machine, in millionths of full speed. If empty, all machines have full speed.
    pub speeds: Vec<u64>,
}

/// The outcome of one task. `task` is the number of the task within its job, in row order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    pub job: usize,
    pub task: u64,
    pub machine: Option<usize>,
    pub start: Option<u64>,
    pub finish: Option<u64>,
}

/// The progress of a row.
#[derive(Clone, Default)]
struct Progress {
    arrived: bool,
    too_large: bool,
    /// When the row joined its user's queue: the instant, and 0 if it joined on arrival or 1 if `after` had delayed it.
    released: Option<(u64, u8)>,
    launched: u64,
    ended: u64,
}

struct Running {
    finish: u64,
    /// The remaining work, in millionths of a microsecond at full speed.
    left: u128,
    /// The index of the task's outcome.
    outcome: usize,
    row: usize,
    place: usize,
}

struct Simulation<'a> {
    rows: &'a [Row],
    config: &'a Config,
    /// The id of each user: its position in the order of first appearance.
    id: Vec<usize>,
    /// The total capacity of all places.
    capacity: Vec<u64>,
    /// The free amounts of each place.
    free: Vec<Vec<u64>>,
    progress: Vec<Progress>,
    running: Vec<Running>,
    outcomes: Vec<Outcome>,
    clock: u64,
    accounts: Accounts,
    /// The users (as numbered in the rows) that Tetris serves first in this round.
    eligible: Vec<usize>,
}

/// Replays `rows`. Returns the tasks in the order of their launches, then the tasks that never start.
pub fn simulate(rows: &[Row], config: &Config) -> Vec<Outcome> {
    let mut order: Vec<usize> = Vec::new();
    for row in rows {
        if !order.contains(&row.user) {
            order.push(row.user);
        }
    }
    let users = rows.iter().map(|row| row.user + 1).max().unwrap_or(0);
    let id = (0..users).map(|user| order.iter().position(|&u| u == user).unwrap_or(usize::MAX)).collect();
    let offers = offers(config);
    let capacity: Vec<u64> = (0..offers[0].len()).map(|r| offers.iter().map(|offer| offer[r]).sum()).collect();
    let free = if config.placement == Placement::Pooled { vec![capacity.clone()] } else { offers };
    let progress = vec![Progress::default(); rows.len()];
    let (running, outcomes, accounts, eligible) = (Vec::new(), Vec::new(), Accounts::default(), Vec::new());
    let mut simulation =
        Simulation { rows, config, id, capacity, free, progress, running, outcomes, clock: 0, accounts, eligible };
    while let Some(now) = simulation.next_instant() {
        simulation.instant(now);
    }
    simulation.report_unstarted();
    simulation.outcomes
}

impl Simulation<'_> {
    fn next_instant(&self) -> Option<u64> {
        let arrivals = (0..self.rows.len()).filter(|&row| !self.progress[row].arrived).map(|row| self.rows[row].submit);
        let next = arrivals.chain(self.running.iter().map(|task| task.finish)).min();
        // While any user waits, the end of a period may change the order of the users.
        let waits = || (0..self.id.len()).any(|user| self.head(user).is_some());
        let period = match self.config.policy {
            Policy::LongTerm(memory) | Policy::Afs(memory) => Some(memory.period),
            Policy::Zoo(zoo) => zoo.period(),
            _ => None,
        };
        // Under Karma a waiting task may never have enough credits, so the simulation ends after 300 rounds without a launch.
        let hopeless = next.is_none() && self.accounts.idle > 300;
        match period.filter(|_| waits() && !hopeless) {
            Some(period) => {
                let end = (self.clock / period + 1) * period;
                Some(next.map_or(end, |next| next.min(end)))
            }
            None => next,
        }
    }

    /// Processes one instant: one pass, and further passes while tasks of zero duration finish.
    fn instant(&mut self, now: u64) {
        self.progress(now);
        self.finish(now);
        self.arrive(now);
        self.release(now);
        self.round(now);
        self.expect(now);
        while self.running.iter().any(|task| task.finish == now) {
            self.finish(now);
            self.release(now);
            self.round(now);
            self.expect(now);
        }
    }

    /// Returns the speed of a task of a row on a machine, in millionths of full speed.
    fn rate(&self, row: usize, place: usize) -> u128 {
        let Some(curve) = self.config.slowdown else { return ONE };
        let here = self.running.iter().filter(|task| task.place == place);
        let used: u128 = here.map(|task| u128::from(self.rows[task.row].demand[1])).sum();
        rate(curve, used, self.config.machines[place][1], self.rows[row].demand[1])
    }

    fn rates(&self) -> Vec<u128> {
        self.running.iter().map(|task| self.rate(task.row, task.place)).collect()
    }

    /// Subtracts the work done since the last instant.
    fn progress(&mut self, now: u64) {
        let span = u128::from(now - std::mem::replace(&mut self.clock, now));
        let rates = self.rates();
        for (task, rate) in self.running.iter_mut().zip(rates) {
            task.left = task.left.saturating_sub(span * rate);
        }
    }

    /// Updates the finish time of each running task for the current rates.
    fn expect(&mut self, now: u64) {
        let rates = self.rates();
        for (task, rate) in self.running.iter_mut().zip(rates) {
            task.finish = now + task.left.div_ceil(rate) as u64;
            self.outcomes[task.outcome].finish = Some(task.finish);
        }
    }

    fn finish(&mut self, now: u64) {
        let (due, running) = std::mem::take(&mut self.running).into_iter().partition(|task| task.finish == now);
        self.running = running;
        let due: Vec<Running> = due;
        for task in due {
            self.progress[task.row].ended += 1;
            for (free, need) in self.free[task.place].iter_mut().zip(need(&self.rows[task.row], self.config)) {
                *free += need;
            }
        }
    }

    fn arrive(&mut self, now: u64) {
        for row in 0..self.rows.len() {
            if self.rows[row].submit == now {
                // A place has the most room while it is empty, so a row that does not fit an empty place never fits.
                self.progress[row].arrived = true;
                self.progress[row].too_large = !self.fits_when_empty(row);
                if self.ready(row) {
                    self.progress[row].released = Some((now, 0));
                }
            }
        }
    }

    fn release(&mut self, now: u64) {
        for row in 0..self.rows.len() {
            if self.progress[row].arrived && self.progress[row].released.is_none() && self.ready(row) {
                self.progress[row].released = Some((now, 1));
            }
        }
    }

    /// Returns whether a row may wait in its queue: it fits the empty places, and every row of the stages that it depends on has ended.
    fn ready(&self, row: usize) -> bool {
        let this = &self.rows[row];
        let before =
            |other: &Row| other.job == this.job && other.stage.is_some_and(|stage| this.after.contains(&stage));
        let ended = |other: usize| self.progress[other].ended == self.rows[other].tasks;
        !self.progress[row].too_large && (0..self.rows.len()).all(|other| !before(&self.rows[other]) || ended(other))
    }

    fn empty_places(&self) -> Vec<Vec<u64>> {
        let mut empty = self.free.clone();
        for task in &self.running {
            for (free, need) in empty[task.place].iter_mut().zip(need(&self.rows[task.row], self.config)) {
                *free += need;
            }
        }
        empty
    }

    /// Runs a scheduling round. Each step launches one task, or one gang, of the first user in the scheduling order that can start it. The
    /// round ends when no user can launch.
    fn round(&mut self, now: u64) {
        self.quanta(now);
        self.choose_eligible();
        if matches!(self.config.on_blocked, OnBlocked::Easy | OnBlocked::Conservative) {
            return self.backfill(now);
        }
        while let Some((row, places)) = self.choose() {
            for place in places {
                self.launch(now, row, place);
            }
        }
    }

    fn choose(&self) -> Option<(usize, Vec<usize>)> {
        let mut line: Vec<usize> = (0..self.id.len()).filter_map(|user| self.head(user)).collect();
        line.retain(|&row| self.admitted(row));
        if let Policy::Zoo(zoo) = self.config.policy
            && zoo.by_machine()
        {
            return self.best_pair(zoo, &line);
        }
        // Computed once, not for every comparison.
        let places = self.zoo_places(&line);
        line.sort_by(|&a, &b| places.get(&a).cmp(&places.get(&b)).then_with(|| self.compare(a, b)));
        let tried = if self.config.on_blocked == OnBlocked::Stop { 1 } else { line.len() };
        line.into_iter().take(tried).find_map(|row| Some((row, self.places(row)?)))
    }

    /// Returns how many tasks of a row start at once.
    fn together(&self, row: usize) -> u64 {
        if self.rows[row].gang { self.rows[row].tasks } else { 1 }
    }

    /// Returns the places of the next task of a row, or of all tasks of a gang. A place is a machine; the pool is place 0.
    fn places(&self, row: usize) -> Option<Vec<usize>> {
        let candidate = |place: usize| Candidate {
            place,
            free: self.free[place].clone(),
            whole: offers(self.config)[place].clone(),
            running: self.running.iter().filter(|task| task.place == place).count(),
        };
        let candidates = (0..self.free.len()).map(candidate).collect();
        let need = need(&self.rows[row], self.config);
        seats(self.config.placement, &need, &self.capacity, candidates, self.together(row))
    }

    /// Returns the row of a user's next task.
    fn head(&self, user: usize) -> Option<usize> {
        self.next(user, &[])
    }

    /// Returns the row of a user's next task, without the rows in `asked`.
    fn next(&self, user: usize, asked: &[usize]) -> Option<usize> {
        let waits = |row: usize| {
            let progress = &self.progress[row];
            progress.released.is_some() && progress.launched < self.rows[row].tasks
        };
        (0..self.rows.len())
            .filter(|&row| self.rows[row].user == user && waits(row) && !asked.contains(&row))
            .min_by_key(|&row| (self.key(row), self.rows[row].priority, self.progress[row].released, row))
    }

    /// Returns the sort key of a row among its user's rows, in the order of the run.
    fn key(&self, row: usize) -> Key {
        if self.config.inside == Inside::Usual {
            return Key::default();
        }
        let its = |other: &usize| self.rows[*other].job == self.rows[row].job;
        let known = (0..self.rows.len()).filter(its).filter(|&other| self.fits_when_empty(other));
        let submit = self.rows[row].submit;
        let (rows, ended, running, served) = Default::default();
        let mut job = Job { rows, ended, running, served, submit, now: self.clock };
        job.rows = known.map(|other| (&self.rows[other], self.progress[other].ended)).collect();
        for outcome in self.outcomes.iter().filter(|outcome| outcome.job == self.rows[row].job) {
            let (Some(start), Some(finish)) = (outcome.start, outcome.finish) else { continue };
            let demand = self.row_of(outcome).demand.clone();
            job.served.push((demand, finish.min(self.clock) - start));
            // A task that started at this instant has `finish <= clock` if its duration is 0, and may still be running.
            if finish <= self.clock && !self.is_running(outcome) {
                job.ended.push(finish - start);
            } else {
                job.running.push(self.clock - start);
            }
        }
        let released = self.progress[row].released.expect("a row that waits was released");
        let whole = (0..self.rows[row].demand.len()).map(|r| self.config.machines.iter().map(|it| it[r]).sum());
        key(self.config.inside, row, &self.rows[row], released, &job, &whole.collect::<Vec<u64>>())
    }

    fn is_running(&self, outcome: &Outcome) -> bool {
        self.running.iter().any(|task| self.outcomes[task.outcome] == *outcome)
    }

    /// Returns whether a row could start if no task were running.
    fn fits_when_empty(&self, row: usize) -> bool {
        let need = need(&self.rows[row], self.config);
        let room: u64 = self.empty_places().iter().map(|place| times(&need, place)).sum();
        room >= self.together(row)
    }

    /// Compares the next tasks of two users. The lesser one is served first.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        if self.config.policy == Policy::Fifo {
            return (self.progress[a].released, a).cmp(&(self.progress[b].released, b));
        }
        if self.config.policy == Policy::Line {
            let urgency = |row: usize| if self.config.inside == Inside::Usual { self.rows[row].priority } else { 0 };
            let place = |row: usize| (self.key(row), urgency(row), self.progress[row].released, row);
            return place(a).cmp(&place(b));
        }
        let (a, b) = (self.rows[a].user, self.rows[b].user);
        let count = |user: usize| self.running.iter().filter(|task| self.rows[task.row].user == user).count();
        let lower = self.id[a].cmp(&self.id[b]);
        let first = match self.config.policy {
            Policy::Zoo(_) => Ordering::Equal,
            _ => self.share(a).cmp(&self.share(b)),
        };
        first.then(match self.config.ties {
            Ties::LeastRecentlyServed => self.latest(a).cmp(&self.latest(b)).then(lower),
            Ties::LowestId => lower,
            Ties::HighestId => lower.reverse(),
            Ties::FewestRunning => count(a).cmp(&count(b)).then(lower),
        })
    }

    /// Returns the index of a user's latest launch, or `None` for a user without launches.
    fn latest(&self, user: usize) -> Option<usize> {
        self.outcomes.iter().rposition(|outcome| outcome.start.is_some() && self.row_of(outcome).user == user)
    }

    /// Returns the allocation of a user, as the policy measures it, divided by the user's weight.
    fn share(&self, user: usize) -> Ratio {
        let held = |r: usize| -> u64 {
            let mine = self.running.iter().filter(|task| self.rows[task.row].user == user);
            mine.map(|task| need(&self.rows[task.row], self.config)[r]).sum()
        };
        let held: Vec<u64> = (0..self.capacity.len()).map(held).collect();
        if let Policy::LongTerm(memory) | Policy::Afs(memory) = self.config.policy {
            let averages = matches!(self.config.policy, Policy::Afs(_));
            let used = |r: usize| {
                let mine = self.holdings(user, r);
                if averages {
                    return memory.average(&mine, self.clock) as u64;
                }
                let forecast = u128::from(held[r]) * u128::from(memory.period);
                (memory.left(memory.past(&mine, self.clock)) + forecast) as u64
            };
            let used: Vec<u64> = (0..self.capacity.len()).map(used).collect();
            let policy = if averages { Policy::Asset } else { Policy::Drf };
            return share(&Config { policy, ..self.config.clone() }, user, &used, &self.capacity);
        }
        share(self.config, user, &held, &self.capacity)
    }

    fn launch(&mut self, now: u64, row: usize, place: usize) {
        for (free, need) in self.free[place].iter_mut().zip(need(&self.rows[row], self.config)) {
            *free -= need;
        }
        let speed = self.config.speeds.get(place).map_or(ONE, |speed| u128::from(*speed));
        let duration = (u128::from(self.rows[row].duration) * ONE).div_ceil(speed);
        let finish = now + duration as u64;
        let left = duration * ONE;
        self.running.push(Running { finish, left, outcome: self.outcomes.len(), row, place });
        self.outcomes.push(Outcome {
            job: self.rows[row].job,
            task: self.first_task(row) + self.progress[row].launched,
            machine: (self.config.placement != Placement::Pooled).then_some(place),
            start: Some(now),
            finish: Some(finish),
        });
        self.progress[row].launched += 1;
        self.accounts.idle = 0;
    }

    fn first_task(&self, row: usize) -> u64 {
        self.rows[..row].iter().filter(|other| other.job == self.rows[row].job).map(|other| other.tasks).sum()
    }

    fn report_unstarted(&mut self) {
        for row in 0..self.rows.len() {
            for task in self.progress[row].launched..self.rows[row].tasks {
                let (job, task) = (self.rows[row].job, self.first_task(row) + task);
                self.outcomes.push(Outcome { job, task, machine: None, start: None, finish: None });
            }
        }
    }
}

/// Full speed, in millionths.
pub const ONE: u128 = 1_000_000;
