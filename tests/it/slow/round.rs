//! Scheduling rounds: the order of the queues, and the launches of their tasks.

use std::cmp::Ordering;

use plimsoll::engine::Attempt;
use plimsoll::units::Span;

use super::order::Key;
use super::queues::Position;
use super::rate::ONE;
use super::simulation::{Run, Simulation, State, Task};
use super::users::View;
use super::{Faults, Inside, OnBlocked, Policy, Ratio, Ties, groups, literature};

/// The rank of a queue; the lowest is served first. All queues of a run have ranks of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Release and row.
    Arrival(Option<(u64, u8)>, usize),
    /// Value in the order inside users, priority, release and row.
    Line(Key, u8, Option<(u64, u8)>, usize),
    Share(Ratio),
    Group(groups::Key),
    Literature(Vec<u128>),
}

/// The order among the queues of one user that have the same rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// The position of the next task.
    Task(Position),
    /// The value in another order inside users, and the age of the queue.
    Queue(Key, usize),
}

impl Simulation<'_> {
    /// Runs a scheduling round. Each step launches one task, or one gang, of the first queue in the scheduling order that can start it. The
    /// round ends when no queue can start a task.
    pub fn round(&mut self, now: u64) {
        self.rounds += 1;
        self.idle += 1;
        self.begin_quantum(now);
        self.choose_eligible();
        if self.world.on_blocked.backfills() {
            return self.backfill(now);
        }
        while let Some(launches) = self.choose(now) {
            launches.into_iter().for_each(|(task, machine)| self.launch(now, task, machine));
        }
    }

    pub fn launch(&mut self, now: u64, task: usize, machine: usize) {
        let Task { row, number, attempt, saved, .. } = self.tasks[task];
        let whole = Attempt { span: Span(self.rows[row].duration - saved), fails: false };
        let drawn = |faults: &Faults| faults.draws.draw(row as u64, number as u32, attempt as u32, whole.span);
        let Attempt { span, fails } = self.world.faults.as_ref().map_or(whole, drawn);
        let work = u128::from(span.0) * ONE;
        let left = (work.div_ceil(self.speed(machine)) + u128::from(self.delay(attempt))) * ONE;
        self.launches += 1;
        self.idle = 0;
        self.latest.insert(self.rows[row].user, self.launches);
        let (round, launch) = (self.rounds, self.launches);
        let need = &self.rows[self.tasks[task].row].demand;
        self.tasks[task].devices = self.parts(machine, need, &self.free(machine), &[]);
        self.tasks[task].state = State::Running(Run { machine, start: now, round, launch, left, finish: now, fails });
    }

    /// Returns the speed of a machine, in millionths of full speed.
    pub fn speed(&self, machine: usize) -> u128 {
        self.world.speeds.get(machine).map_or(ONE, |speed| u128::from(*speed))
    }

    /// Returns the tasks that start next, each with its machine.
    fn choose(&mut self, now: u64) -> Option<Vec<(usize, usize)>> {
        if self.world.policy.by_machine() && self.world.quota.is_none() {
            return self.best_pair();
        }
        self.tried().into_iter().find_map(|head| self.launches(now, head))
    }

    /// Returns the next tasks of the queues that are tried if the first ones are blocked, in the scheduling order.
    pub fn tried(&self) -> Vec<usize> {
        let mut line = self.line(&[]);
        line.retain(|&head| self.admitted(head, self.together(head).len()));
        if self.world.on_blocked == OnBlocked::Stop {
            line.truncate(1);
        }
        line
    }

    /// Returns the next task of every queue in the scheduling order, without the tasks of some sets.
    pub fn line(&self, without: &[usize]) -> Vec<usize> {
        let heads = self.heads_without(without);
        let view = self.view(&heads);
        let ranked = heads.into_iter().map(|(position, head)| {
            let rank = self.rank(&view, &position, head);
            (rank, self.turn(position, head), head)
        });
        let mut line: Vec<(Rank, Turn, usize)> = ranked.collect();
        line.sort_by(|(a, turn, head), (b, other_turn, other)| {
            let [user, other] = [*head, *other].map(|task| self.rows[self.tasks[task].row].user);
            a.cmp(b).then_with(|| self.compare_users(user, other)).then_with(|| turn.cmp(other_turn))
        });
        line.into_iter().map(|(.., head)| head).collect()
    }

    fn rank(&self, view: &View, position: &Position, head: usize) -> Rank {
        let Task { row, .. } = self.tasks[head];
        let (key, priority, released, ..) = position.clone();
        if let Some(key) = self.key_in_group(head) {
            return Rank::Group(key);
        }
        match self.world.policy {
            Policy::Fifo => Rank::Arrival(released, row),
            // Another order ignores priorities.
            Policy::Line => {
                Rank::Line(key, if self.world.inside == Inside::Usual { priority } else { 0 }, released, row)
            }
            Policy::Zoo(zoo) if self.world.policy.by_machine() => unreachable!("{zoo:?} ranks pairs"),
            Policy::Zoo(zoo) => {
                let (view, user) = self.with_head(view, head);
                Rank::Literature(literature::place(zoo, &view, user))
            }
            _ => Rank::Share(self.share(self.rows[row].user)),
        }
    }

    /// Returns the order of a queue among those of its user.
    pub fn turn(&self, position: Position, head: usize) -> Turn {
        if self.world.inside == Inside::Usual { Turn::Task(position) } else { Turn::Queue(position.0, self.age(head)) }
    }

    /// Compares two users of equal rank by the rule of the run. The lesser one is served first.
    pub fn compare_users(&self, a: usize, b: usize) -> Ordering {
        let lower = self.id[a].cmp(&self.id[b]);
        match self.world.ties {
            Ties::LeastRecentlyServed => self.latest.get(&a).cmp(&self.latest.get(&b)).then(lower),
            Ties::LowestId => lower,
            Ties::HighestId => lower.reverse(),
            Ties::FewestRunning => self.running(a).cmp(&self.running(b)).then(lower),
        }
    }
}
