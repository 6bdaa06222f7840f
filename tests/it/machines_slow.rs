//! The slow twin of placement: labels, places, gangs, priorities and machine events, written from the documentation alone.
//!
//! Only the state of each task and machine is stored. Every other quantity (free amounts, allocations, the next task of each queue) is
//! computed again at every step from all tasks. The parts without machines are shared with `slow.rs`.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use plimsoll::engine::Attempt;
use plimsoll::units::Span;

use crate::machines_asks::Request;
use crate::machines_devices::{Part, written};
use crate::machines_faults::Faults;
use crate::machines_hoard::{Hoard, Sleeper};
use crate::machines_world::{Ask, Change, Location, World};
use crate::slow::{ONE, OnBlocked, Policy, Row, Ties, need, offers, share};
use crate::slow_rate::rate;

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
    pub machine: usize,
    pub start: u64,
    /// The round that started the task.
    pub round: u64,
    /// The remaining work, in millionths of a microsecond at full speed.
    left: u128,
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
}

pub struct Simulation<'a> {
    pub rows: &'a [Row],
    pub asks: &'a [Ask],
    pub world: &'a World,
    /// The id of each user: its position in the order of first appearance.
    id: Vec<usize>,
    /// The time at which each row joined its user's queue, and 0 if it joined on arrival or 1 if `after` had delayed it.
    pub released: Vec<Option<(u64, u8)>>,
    /// In the order of rows and numbers.
    pub tasks: Vec<Task>,
    /// The row of each set.
    pub sets: Vec<usize>,
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
    rounds: u64,
    /// The last processed instant; `None` before the first.
    pub clock: Option<u64>,
    /// The row and the task number of each failure. `finished` has the row and the run time of each completed task.
    pub failures: Vec<(usize, u64)>,
    pub finished: Vec<(usize, u64)>,
    /// The time of each voluntary preemption.
    pub stops: Vec<u64>,
    outcomes: Vec<Outcome>,
    launches: usize,
    /// The number of each user's latest launch.
    latest: HashMap<usize, usize>,
}

/// Replays `rows`. Returns the outcome of every attempt, in no particular order. Errors: the row of a gang that has no room.
pub fn simulate(rows: &[Row], asks: &[Ask], world: &World) -> Result<Vec<Outcome>, usize> {
    let mut simulation = Simulation::new(rows, asks, world);
    while let Some(now) = simulation.next_instant() {
        simulation.instant(now)?;
    }
    Ok(simulation.report())
}

/// Returns, after each instant, the free amounts on stranded machines, by resource; `None` if no task waits. `blind` ignores labels and
/// places. Errors: the row of a gang that has no room.
pub fn stranded(rows: &[Row], asks: &[Ask], world: &World, blind: bool) -> Result<Vec<(u64, Option<Vec<u64>>)>, usize> {
    let mut simulation = Simulation::new(rows, asks, world);
    let mut states = Vec::new();
    while let Some(now) = simulation.next_instant() {
        simulation.instant(now)?;
        states.push((now, simulation.stranded(blind)));
    }
    Ok(states)
}

impl<'a> Simulation<'a> {
    fn new(rows: &'a [Row], asks: &'a [Ask], world: &'a World) -> Simulation<'a> {
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
                place: asks[at].place,
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
        Simulation {
            rows,
            asks,
            world,
            id: (0..users).map(|user| order.iter().position(|&u| u == user).unwrap_or(usize::MAX)).collect(),
            released: vec![None; rows.len()],
            tasks,
            sets: (0..rows.len()).collect(),
            there: (0..world.sites.len())
                .map(|machine| first(machine).is_none_or(|event| event.change != Change::Join))
                .collect(),
            labels: world.sites.iter().map(|site| site.labels.clone()).collect(),
            requests: Vec::new(),
            hoards: Vec::new(),
            asleep: Vec::new(),
            freed: Vec::new(),
            runtime: Vec::new(),
            rounds: 0,
            clock: None,
            failures: Vec::new(),
            finished: Vec::new(),
            stops: Vec::new(),
            outcomes: Vec::new(),
            launches: 0,
            latest: HashMap::new(),
        }
    }

    fn next_instant(&self) -> Option<u64> {
        let new = |at: u64| self.clock.is_none_or(|clock| at > clock);
        let submits = self.rows.iter().map(|row| row.submit).filter(|&at| new(at));
        let events = self.world.events.iter().map(|event| event.at).filter(|&at| new(at));
        let finishes = self.tasks.iter().filter_map(|task| Some(task.run()?.finish));
        let falls = self.tasks.iter().filter_map(|task| self.falls_back(task));
        let deadlines = self.requests.iter().map(|request| request.deadline).filter(|&at| new(at));
        let patience = self.hoards.iter().map(|hoard| hoard.gives_up);
        let backups = self.next_backup().into_iter();
        submits
            .chain(events)
            .chain(finishes)
            .chain(falls)
            .chain(deadlines)
            .chain(patience)
            .chain(backups)
            .chain(self.looks_again())
            .min()
    }

    /// Processes one instant: one pass, and further passes while tasks of zero duration finish or backups are due.
    fn instant(&mut self, now: u64) -> Result<(), usize> {
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
        let (Some(curve), Some(run)) = (self.world.config.slowdown, task.run()) else { return ONE };
        let memory = |task: &Task| self.rows[task.row].demand[1];
        let used = self.on(run.machine).map(|task| u128::from(memory(task))).sum();
        rate(curve, used, self.world.config.machines[run.machine][1], memory(task))
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
        self.outcomes.push(Outcome {
            job: self.rows[task.row].job,
            task: task.number,
            attempt: task.attempt,
            machine: Some(run.machine),
            start: Some(run.start),
            finish: Some(now),
            devices: written(&task.devices),
            fate: fate.to_owned(),
        });
    }

    fn arrive(&mut self, now: u64) -> Result<(), usize> {
        for row in (0..self.rows.len()).filter(|&row| self.rows[row].submit == now) {
            let this = &self.rows[row];
            let together = if self.gang(row) { this.tasks } else { 1 };
            // The demand of a gang in all resources decides whether it is an error, including resources that the policy does not count.
            if together > 1 && self.room_when_empty(row, &this.demand, &self.world.config.machines) < together {
                return Err(row);
            }
            let need = need(this, &self.world.config);
            if self.room_when_empty(row, &need, &offers(&self.world.config)) < together {
                let tasks = self.tasks.iter_mut().filter(|task| task.row == row);
                tasks.for_each(|task| task.state = State::TooLarge);
            } else if self.ready(row) {
                self.join_line(row, (now, 0));
            }
        }
        Ok(())
    }

    /// Returns the number of tasks of a row that fit on the empty machines that it may ever use. If any event relabels a machine, the
    /// labels are ignored, because a machine may get any label.
    fn room_when_empty(&self, row: usize, need: &[u64], machines: &[Vec<u64>]) -> u64 {
        let Ask { label, place, .. } = &self.asks[row];
        let place = if self.world.fall_back.is_some() { Location::Cluster } else { *place };
        let relabels = self.world.events.iter().any(|event| matches!(event.change, Change::Relabel(_)));
        let carries = |machine: usize| label.as_ref().is_none_or(|label| label.holds(&self.labels[machine]));
        let may_use = |machine: &usize| self.world.is_at(*machine, place) && (relabels || carries(*machine));
        let room = |machine: usize| self.room_on_empty(machine, need, &machines[machine]);
        (0..machines.len()).filter(may_use).map(room).sum()
    }

    fn release(&mut self, now: u64) {
        for row in 0..self.rows.len() {
            let outside = |task: &&Task| task.row == row && task.state == State::Outside;
            if self.rows[row].submit <= now && self.tasks.iter().any(|task| outside(&task)) && self.ready(row) {
                self.join_line(row, (now, 1));
            }
        }
    }

    fn join_line(&mut self, row: usize, released: (u64, u8)) {
        self.released[row] = Some(released);
        let tasks = self.tasks.iter_mut().filter(|task| task.row == row);
        tasks.for_each(|task| task.state = State::Waiting(released.0));
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
            }
        }
    }

    /// Runs a scheduling round. Each step launches one task, or one gang, of the first queue in the scheduling order that can start it. The
    /// round ends when no queue can start a task.
    pub fn round(&mut self, now: u64) {
        self.rounds += 1;
        while let Some(launches) = self.choose(now) {
            launches.into_iter().for_each(|(task, machine)| self.launch(now, task, machine));
        }
    }

    pub fn launch(&mut self, now: u64, task: usize, machine: usize) {
        let Task { row, number, attempt, saved, .. } = self.tasks[task];
        let whole = Attempt { span: Span(self.rows[row].duration - saved), fails: false };
        let drawn = |faults: &Faults| faults.draws.draw(row as u64, number as u32, attempt as u32, whole.span);
        let Attempt { span, fails } = self.world.faults.as_ref().map_or(whole, drawn);
        let left = u128::from(span.0 + self.delay(attempt)) * ONE;
        let round = self.rounds;
        self.launches += 1;
        self.latest.insert(self.rows[row].user, self.launches);
        let need = &self.rows[self.tasks[task].row].demand;
        self.tasks[task].devices = self.parts(machine, need, &self.free(machine), &[]);
        self.tasks[task].state = State::Running(Run { machine, start: now, round, left, finish: now, fails });
    }

    /// Returns the tasks that start next, each with its machine.
    fn choose(&mut self, now: u64) -> Option<Vec<(usize, usize)>> {
        let mut line = self.heads();
        line.sort_by(|&a, &b| self.compare(a, b));
        line.retain(|&head| self.admitted(head, self.together(head).len()));
        let tried = self.tried(line.len());
        line.into_iter().take(tried).find_map(|head| self.launches(now, head))
    }

    /// Returns how many of the queues in line are tried if the first queues are blocked.
    pub fn tried(&self, line: usize) -> usize {
        if self.world.config.on_blocked == OnBlocked::Stop { line.min(1) } else { line }
    }

    /// Returns the next task of every queue. A user has one queue for each combination of labels and place.
    pub fn heads(&self) -> Vec<usize> {
        let waits = |task: &usize| matches!(self.tasks[*task].state, State::Waiting(_));
        let first = |&task: &usize| {
            let mut others = (0..self.tasks.len()).filter(waits);
            others.all(|other| !self.same_queue(task, other) || self.own_order(task) <= self.own_order(other))
        };
        (0..self.tasks.len()).filter(waits).filter(first).collect()
    }

    fn same_queue(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.tasks[a], &self.tasks[b]);
        let labels = |task: &Task| &self.asks[task.row].label;
        self.rows[a.row].user == self.rows[b.row].user && a.place == b.place && labels(a) == labels(b)
    }

    /// Returns the key that orders a user's own tasks: priority, release, row and number.
    fn own_order(&self, task: usize) -> (u8, Option<(u64, u8)>, usize, u64) {
        let Task { row, number, .. } = self.tasks[task];
        (self.rows[row].priority, self.released[row], row, number)
    }

    /// Compares the next tasks of two queues. The lesser one is served first.
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        let [user, other] = [a, b].map(|task| self.rows[self.tasks[task].row].user);
        let own = self.own_order(a).cmp(&self.own_order(b));
        if self.world.quota.is_none() && self.world.config.policy == Policy::Fifo {
            let arrival = |task: usize| (self.released[self.tasks[task].row], self.tasks[task].row);
            return arrival(a).cmp(&arrival(b)).then(own);
        }
        if user == other {
            return own;
        }
        let count = |user: usize| self.held_by(user).count();
        let lower = self.id[user].cmp(&self.id[other]);
        let shares = || self.share(user).cmp(&self.share(other));
        let ranks = self.key(a).zip(self.key(b)).map_or_else(shares, |(a, b)| a.cmp(&b));
        ranks.then(match self.world.config.ties {
            Ties::LeastRecentlyServed => self.latest.get(&user).cmp(&self.latest.get(&other)).then(lower),
            Ties::LowestId => lower,
            Ties::HighestId => lower.reverse(),
            Ties::FewestRunning => count(user).cmp(&count(other)).then(lower),
        })
    }

    /// Returns the allocation of each running task of a user.
    pub fn held_by(&self, user: usize) -> impl Iterator<Item = Vec<u64>> {
        let mine = move |task: &&Task| task.run().is_some() && self.rows[task.row].user == user;
        self.tasks.iter().filter(mine).map(|task| need(&self.rows[task.row], &self.world.config))
    }

    pub fn share(&self, user: usize) -> crate::slow::Ratio {
        let offers = offers(&self.world.config);
        let capacity = sum(offers.iter().cloned(), offers[0].len());
        share(&self.world.config, user, &sum(self.held_by(user), offers[0].len()), &capacity)
    }

    /// Returns the outcome of every attempt. A task that did not end has an outcome without a machine.
    fn report(self) -> Vec<Outcome> {
        let mut outcomes = self.outcomes;
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

pub fn sum(parts: impl Iterator<Item = Vec<u64>>, dims: usize) -> Vec<u64> {
    let mut sum = vec![0; dims];
    parts.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
    sum
}

pub fn minus(whole: &[u64], part: &[u64]) -> Vec<u64> {
    whole.iter().zip(part).map(|(whole, part)| whole - part).collect()
}
