//! The state of a run, the passage of time, and the arrival of rows.

use std::collections::{BTreeSet, HashMap};

use super::devices::{Part, written};
use super::hoard::{Hoard, Sleeper};
use super::karma::Accounts;
use super::rate::{ONE, rate};
use super::requests::Request;
use super::world::{sum, times};
use super::{Change, Expression, Location, Placement, Policy, Row, World, Zoo};

/// The outcome of one attempt at a task. `task` is the number of the task within its job, in row order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    pub job: usize,
    pub task: u64,
    pub attempt: u64,
    pub machine: Option<usize>,
    pub start: Option<u64>,
    pub finish: Option<u64>,
    /// The devices of the attempt, in the notation of the `tasks` table.
    pub devices: String,
    pub fate: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not waiting: not arrived yet, or behind a running stage.
    Outside,
    TooLarge,
    /// Waiting at its present place since this time.
    Waiting(u64),
    Running(Run),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The machine; the pool is machine 0.
    pub machine: usize,
    pub start: u64,
    /// The round that started the task, and the number of the launch.
    pub round: u64,
    pub launch: usize,
    /// The remaining work, in millionths of a microsecond at full speed.
    pub left: u128,
    pub finish: u64,
    /// The attempt fails at `finish`.
    pub fails: bool,
}

pub struct Task {
    pub row: usize,
    /// The set of waiting tasks that the task belongs to: its row, or the tasks that were stopped together with it.
    pub set: usize,
    pub number: u64,
    pub attempt: u64,
    /// The work that earlier attempts have saved, in microseconds.
    pub saved: u64,
    pub place: Location,
    pub state: State,
    /// Its devices while it runs.
    pub devices: Vec<Part>,
}

impl Task {
    pub fn run(&self) -> Option<Run> {
        if let State::Running(run) = self.state { Some(run) } else { None }
    }

    pub fn waits(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }
}

/// An attempt that has ended.
pub struct Past {
    pub row: usize,
    pub start: u64,
    pub end: u64,
    launch: usize,
    outcome: Outcome,
}

pub struct Simulation<'a> {
    pub rows: &'a [Row],
    pub world: &'a World,
    /// The amounts that each place offers, and their sum.
    pub offers: Vec<Vec<u64>>,
    pub capacity: Vec<u64>,
    /// The id of each user: its position in the order of first appearance.
    pub id: Vec<usize>,
    /// The time at which each row joined its user's queue, and 0 if it joined on arrival or 1 if `after` had delayed it.
    pub released: Vec<Option<(u64, u8)>>,
    /// In the order of rows and numbers.
    pub tasks: Vec<Task>,
    /// The row of each set.
    pub sets: Vec<usize>,
    /// The queues in the order of their creation: user, label and place.
    pub queues: Vec<(usize, Option<Expression>, Location)>,
    pub there: Vec<bool>,
    pub labels: Vec<BTreeSet<usize>>,
    /// In the order of their creation.
    pub requests: Vec<Request>,
    pub hoards: Vec<Hoard>,
    /// Gangs that released their room.
    pub asleep: Vec<Sleeper>,
    /// Machines with tasks that ended since the last round, and machines that joined or were relabelled since then.
    pub freed: Vec<usize>,
    /// The quota of each group in this round.
    pub runtime: Vec<Vec<u64>>,
    /// The accounts of Karma.
    pub accounts: Accounts,
    /// The users (as numbered in the rows) that Tetris serves first in this round.
    pub eligible: Vec<usize>,
    pub rounds: u64,
    /// The number of rounds since the last launch.
    pub idle: u64,
    /// The last processed instant; `None` before the first.
    pub clock: Option<u64>,
    /// The attempts that have ended.
    pub past: Vec<Past>,
    /// The row and the task number of each failure. `finished` has the row and the run time of each completed task.
    pub failures: Vec<(usize, u64)>,
    pub finished: Vec<(usize, u64)>,
    /// The time of each voluntary preemption.
    pub stops: Vec<u64>,
    pub launches: usize,
    /// The number of each user's latest launch.
    pub latest: HashMap<usize, usize>,
}

/// Replays `rows`. Returns the attempts in the order of their launches, then the tasks that did not end. Errors: the row of a gang that has
/// no room.
pub fn simulate(rows: &[Row], world: &World) -> Result<Vec<Outcome>, usize> {
    let mut simulation = Simulation::new(rows, world);
    while let Some(now) = simulation.next_instant() {
        simulation.instant(now)?;
    }
    Ok(simulation.report())
}

impl<'a> Simulation<'a> {
    pub fn new(rows: &'a [Row], world: &'a World) -> Simulation<'a> {
        let mut order: Vec<usize> = Vec::new();
        let mut tasks = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            if !order.contains(&row.user) {
                order.push(row.user);
            }
            let before = rows[..at].iter().filter(|other| other.job == row.job);
            let first: u64 = before.map(|other| other.tasks).sum();
            let task = |number| Task {
                row: at,
                set: at,
                number,
                attempt: 0,
                saved: 0,
                place: row.place,
                state: State::Outside,
                devices: Vec::new(),
            };
            tasks.extend((first..first + row.tasks).map(task));
        }
        let users = rows.iter().map(|row| row.user + 1).max().unwrap_or(0);
        // A machine is absent at the start if its first such event is `join`.
        let first = |machine: usize| {
            let mut events = world.events.iter().filter(|event| event.machine == machine);
            events.find(|event| !matches!(event.change, Change::Relabel(_)))
        };
        let offers = world.offers();
        let machines = 0..offers.len();
        Simulation {
            rows,
            world,
            capacity: sum(offers.iter().cloned(), offers[0].len()),
            offers,
            id: (0..users).map(|user| order.iter().position(|&u| u == user).unwrap_or(usize::MAX)).collect(),
            released: vec![None; rows.len()],
            tasks,
            sets: (0..rows.len()).collect(),
            queues: Vec::new(),
            there: machines.clone().map(|at| first(at).is_none_or(|event| event.change != Change::Join)).collect(),
            labels: machines
                .map(|at| world.sites.get(at).map(|site| site.labels.clone()).unwrap_or_default())
                .collect(),
            requests: Vec::new(),
            hoards: Vec::new(),
            asleep: Vec::new(),
            freed: Vec::new(),
            runtime: Vec::new(),
            accounts: Accounts::default(),
            eligible: Vec::new(),
            rounds: 0,
            idle: 0,
            clock: None,
            past: Vec::new(),
            failures: Vec::new(),
            finished: Vec::new(),
            stops: Vec::new(),
            launches: 0,
            latest: HashMap::new(),
        }
    }

    /// Returns the present instant.
    pub fn now(&self) -> u64 {
        self.clock.unwrap_or(0)
    }

    pub fn next_instant(&self) -> Option<u64> {
        let new = |at: u64| self.clock.is_none_or(|clock| at > clock);
        let submits = self.rows.iter().map(|row| row.submit).filter(|&at| new(at));
        let events = self.world.events.iter().map(|event| event.at).filter(|&at| new(at));
        let finishes = self.tasks.iter().filter_map(|task| Some(task.run()?.finish));
        let falls = self.tasks.iter().filter_map(|task| self.falls_back(task));
        let deadlines = self.requests.iter().map(|request| request.deadline).filter(|&at| new(at));
        let patience = self.hoards.iter().map(|hoard| hoard.gives_up);
        let next = submits
            .chain(events)
            .chain(finishes)
            .chain(falls)
            .chain(deadlines)
            .chain(patience)
            .chain(self.next_backup())
            .chain(self.looks_again())
            .min();
        // While any task waits, the end of a period may change the order of the users. Without other events the simulation ends; under
        // Karma, where tasks also wait for credits, after 300 rounds without a launch.
        let waits = self.tasks.iter().any(Task::waits);
        let credits = matches!(self.world.policy, Policy::Zoo(Zoo::Karma(_)));
        let hopeless = next.is_none() && (!credits || self.idle > 300);
        let period = self.world.policy.period().filter(|_| waits && !hopeless);
        period.map(|period| (self.now() / period + 1) * period).into_iter().chain(next).min()
    }

    /// Processes one instant: one pass, and further passes while tasks of zero duration finish or backups are due.
    pub fn instant(&mut self, now: u64) -> Result<(), usize> {
        self.progress(now);
        self.finish(now);
        self.happen(now);
        self.arrive(now)?;
        self.release(now);
        self.fall_back(now);
        self.serve(now);
        self.expect(now);
        let due = |this: &Self| this.next_backup().is_some_and(|at| at <= now);
        while self.tasks.iter().any(|task| task.run().is_some_and(|run| run.finish == now)) || due(self) {
            self.finish(now);
            self.release(now);
            self.serve(now);
            self.expect(now);
        }
        Ok(())
    }

    /// Returns the speed of a task on its machine, in millionths of full speed.
    fn rate(&self, task: &Task) -> u128 {
        let (Some(curve), Some(run)) = (self.world.slowdown, task.run()) else { return ONE };
        let memory = |task: &Task| self.rows[task.row].demand[1];
        let used = self.on(run.machine).map(|task| u128::from(memory(task))).sum();
        rate(curve, used, self.world.machines[run.machine][1], memory(task))
    }

    fn rates(&self) -> Vec<u128> {
        self.tasks.iter().map(|task| self.rate(task)).collect()
    }

    /// Returns the running tasks of a machine.
    pub fn on(&self, machine: usize) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |task| task.run().is_some_and(|run| run.machine == machine))
    }

    /// Advances the work since the last instant.
    fn progress(&mut self, now: u64) {
        let span = u128::from(now - self.clock.unwrap_or(now));
        let rates = self.rates();
        for (task, rate) in self.tasks.iter_mut().zip(rates) {
            if let State::Running(run) = &mut task.state {
                run.left = run.left.saturating_sub(span * rate);
            }
        }
        self.clock = Some(now);
    }

    /// Updates the finish time of each running task for the current rates.
    fn expect(&mut self, now: u64) {
        let rates = self.rates();
        for (task, rate) in self.tasks.iter_mut().zip(rates) {
            if let State::Running(run) = &mut task.state {
                run.finish = now + run.left.div_ceil(rate) as u64;
            }
        }
    }

    /// Records an attempt that ends now.
    pub fn end(&mut self, task: usize, now: u64, fate: &str) {
        let task = &self.tasks[task];
        let run = task.run().expect("it runs");
        self.freed.push(run.machine);
        let outcome = Outcome {
            job: self.rows[task.row].job,
            task: task.number,
            attempt: task.attempt,
            machine: (self.world.placement != Placement::Pooled).then_some(run.machine),
            start: Some(run.start),
            finish: Some(now),
            devices: written(&task.devices),
            fate: fate.to_owned(),
        };
        self.past.push(Past { row: task.row, start: run.start, end: now, launch: run.launch, outcome });
    }

    fn arrive(&mut self, now: u64) -> Result<(), usize> {
        for row in (0..self.rows.len()).filter(|&row| self.rows[row].submit == now) {
            // The demand of a gang in all resources decides whether it is an error, including resources that the policy does not count.
            let together = self.least_together(row);
            let room = || self.room_when_empty(row, &self.rows[row].demand, &self.world.places());
            if together > 1 && room() < together {
                return Err(row);
            }
            if self.too_large(row) {
                let tasks = self.tasks.iter_mut().filter(|task| task.row == row);
                tasks.for_each(|task| task.state = State::TooLarge);
            } else if self.ready(row) {
                self.join_line(row, (now, 0));
            }
        }
        Ok(())
    }

    /// Returns the number of tasks of a row that start together at least.
    fn least_together(&self, row: usize) -> u64 {
        if self.gang(row) { self.rows[row].tasks } else { 1 }
    }

    /// Returns whether a row can never start.
    pub fn too_large(&self, row: usize) -> bool {
        self.room_when_empty(row, self.world.need(&self.rows[row]), &self.offers) < self.least_together(row)
    }

    /// Returns the number of tasks of a row that fit on the empty machines that it may ever use. If any event relabels a machine, the
    /// labels are ignored, because a machine may get any label.
    fn room_when_empty(&self, row: usize, need: &[u64], machines: &[Vec<u64>]) -> u64 {
        let Row { label, place, .. } = &self.rows[row];
        let place = if self.world.fall_back.is_some() { Location::Cluster } else { *place };
        let relabels = self.world.events.iter().any(|event| matches!(event.change, Change::Relabel(_)));
        let carries = |machine: usize| label.as_ref().is_none_or(|label| label.holds(&self.labels[machine]));
        let may_use = |machine: &usize| self.world.is_at(*machine, place) && (relabels || carries(*machine));
        let room = |machine: usize| self.on_empty_devices(machine, need).min(times(need, &machines[machine]));
        (0..machines.len()).filter(may_use).map(room).sum()
    }

    fn release(&mut self, now: u64) {
        for row in 0..self.rows.len() {
            let outside = |task: &Task| task.row == row && task.state == State::Outside;
            if self.rows[row].submit <= now && self.tasks.iter().any(outside) && self.ready(row) {
                self.join_line(row, (now, 1));
            }
        }
    }

    fn join_line(&mut self, row: usize, released: (u64, u8)) {
        self.released[row] = Some(released);
        let tasks = self.tasks.iter_mut().filter(|task| task.row == row);
        tasks.for_each(|task| task.state = State::Waiting(released.0));
        self.create_queues();
    }

    /// Returns whether every task of the stages that a row depends on has ended.
    fn ready(&self, row: usize) -> bool {
        let this = &self.rows[row];
        self.tasks.iter().all(|task| {
            let other = &self.rows[task.row];
            let before = other.job == this.job && other.stage.is_some_and(|stage| this.after.contains(&stage));
            !before || task.state == State::Ended
        })
    }

    /// Returns when a waiting task may start one level up.
    fn falls_back(&self, task: &Task) -> Option<u64> {
        match task.state {
            State::Waiting(since) if task.place != Location::Cluster => Some(since + self.world.fall_back?),
            _ => None,
        }
    }

    fn fall_back(&mut self, now: u64) {
        for task in 0..self.tasks.len() {
            if self.falls_back(&self.tasks[task]) == Some(now) {
                // The running tasks of the set move too: if they are stopped, they wait at the same place.
                let Task { set, place, .. } = self.tasks[task];
                for other in self.tasks.iter_mut().filter(|other| other.set == set) {
                    other.place = self.world.up(place);
                    if let State::Waiting(since) = &mut other.state {
                        *since = now;
                    }
                }
                self.create_queues();
            }
        }
    }

    /// Returns the outcome of every attempt. A task that did not end has an outcome without a machine.
    fn report(mut self) -> Vec<Outcome> {
        self.past.sort_by_key(|past| past.launch);
        let mut outcomes: Vec<Outcome> = self.past.into_iter().map(|past| past.outcome).collect();
        for task in &self.tasks {
            let fate = match task.state {
                State::Ended => continue,
                State::Outside => "deadlocked",
                State::TooLarge => "too large",
                State::Waiting(_) => "starved",
                State::Running(_) => unreachable!("everything that runs ends"),
            };
            let (job, fate) = (self.rows[task.row].job, fate.to_owned());
            let (task, attempt) = (task.number, task.attempt);
            let devices = String::new();
            outcomes.push(Outcome { job, task, attempt, machine: None, start: None, finish: None, devices, fate });
        }
        outcomes
    }
}
