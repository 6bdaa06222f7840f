//! One round of Armada: schedules reclaimed and waiting jobs in the order of costs.
//!
//! All jobs of the queues above their shares are reclaimed first. Each step takes the next job of the queue with the lowest rank. A
//! reclaimed job may run again on its own machine only. A waiting job starts in idle room, else in the room of the reclaimed jobs that
//! would be rescheduled last, else in the room of less urgent jobs. The tasks of a gang are placed one by one; if one of them finds no
//! machine, the placement of the gang is undone. At the end of the round, reclaimed jobs that lost their room are evicted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::super::cycle::{Placements, QueueAt, Ratio, Rooms, Runs, Waiting, place_task};
use super::{Armada, Fault, Session};
use plimsoll_base::units::{MachineId, Resources, UserId};
use plimsoll_policies::Reason;

const FAIRLY: &str = "its queue is above its share, and a job of a lower cost starts in its room";
const URGENTLY: &str = "a more urgent job starts in its room";
const NO_ROOM: Reason = Reason::NoRoom("there is no room, and no other job may be evicted for it");

/// The state of a reclaimed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvictedState {
    /// The job is not rescheduled yet.
    Back,
    /// The job runs again.
    Again,
    /// Another user's job starts in the room of the job.
    Given(UserId),
    /// The job found no room when it was rescheduled.
    Lost,
}

/// A reclaimed job.
#[derive(Clone, Copy, Debug)]
struct EvictedJob {
    runs: Runs,
    is: EvictedState,
}

impl EvictedJob {
    fn amount(&self) -> Resources {
        self.runs.unit()
    }
}

/// The rank of a queue with its next job: by priority, then by cost over weight, then by name.
type JobRank = (u8, (Ratio, usize));

/// The state of a queue in the round.
#[derive(Clone, Debug, Default)]
struct RoundQueue {
    /// The allocation without the reclaimed jobs that do not run again.
    usage: Resources,
    /// Indices of its reclaimed jobs, in the order of rescheduling.
    back: Vec<usize>,
    /// The position of the next job in `back`.
    turn: usize,
    /// Its users with waiting jobs, in the order of the queue.
    waiting: Vec<UserId>,
    /// The position of the next user in `waiting`.
    next: usize,
}

/// A round in progress.
pub struct Round<'a, 'b, 'c> {
    armada: &'a Armada,
    session: &'c mut Session<'b>,
    capacity: Resources,
    jobs: Vec<EvictedJob>,
    /// Indices of the reclaimed jobs, in the order of their rescheduling.
    order: Vec<usize>,
    queues: BTreeMap<QueueAt, RoundQueue>,
    /// The queues with jobs left, by rank.
    line: BTreeSet<(JobRank, QueueAt)>,
    /// The rank of each queue in `line`.
    places: BTreeMap<QueueAt, JobRank>,
    /// The free room without any reclaimed job, minus the room of the jobs that were rescheduled or started so far.
    left: Rooms<'b>,
    /// The free room in which reclaimed jobs count as running until another job receives their room or they fail to run again.
    idle: Rooms<'b>,
    /// The user of the last job that started on each machine.
    last: BTreeMap<MachineId, UserId>,
    /// The number of units that more urgent jobs displaced, by the key of running tasks.
    displaced: HashMap<u64, u32>,
}

impl<'a, 'b, 'c> Round<'a, 'b, 'c> {
    /// Creates a round, and reclaims all jobs of these queues.
    pub fn new(armada: &'a Armada, session: &'c mut Session<'b>, above: &[QueueAt]) -> Round<'a, 'b, 'c> {
        let capacity = *session.books.offered();
        let mut queues: BTreeMap<QueueAt, RoundQueue> = BTreeMap::new();
        for queue in session.waiting_queues() {
            let waiting = session.waiting(queue).map(|next| next.user).collect();
            queues.insert(queue, RoundQueue { usage: session.usage[queue], waiting, ..RoundQueue::default() });
        }
        let mut jobs: Vec<EvictedJob> = Vec::new();
        for queue in above {
            let of = queues
                .entry(*queue)
                .or_insert_with(|| RoundQueue { usage: session.usage[*queue], ..RoundQueue::default() });
            for runs in session.running(*queue).iter().flat_map(|runs| runs.units()) {
                of.back.push(jobs.len());
                of.usage = of.usage.saturating_sub(runs.unit());
                jobs.push(EvictedJob { runs, is: EvictedState::Back });
            }
            of.back.sort_by_key(|at| (jobs[*at].runs.priority, jobs[*at].runs.since, jobs[*at].runs.row));
        }
        let (last, displaced, order, line, places) = Default::default();
        let (mut left, idle) = (session.trial(), session.trial());
        jobs.iter().for_each(|job| left.release(session, &job.runs));
        let mut round =
            Round { armada, session, capacity, jobs, order, queues, line, places, left, idle, last, displaced };
        round.order = round.order_again();
        let all: Vec<QueueAt> = round.queues.keys().copied().collect();
        all.into_iter().for_each(|at| round.place(at));
        round
    }

    /// Returns the order of rescheduling if no waiting job is scheduled.
    fn order_again(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.jobs.len());
        let mut queues: BTreeMap<QueueAt, (Resources, &[usize])> =
            self.queues.iter().map(|(at, queue)| (*at, (queue.usage, &queue.back[..]))).collect();
        let place = |at: QueueAt, usage: &Resources, back: &[usize]| {
            let job = &self.jobs[*back.first()?];
            Some((
                (job.runs.priority, self.armada.place(self.session.tree, at, &(*usage + job.amount()), &self.capacity)),
                at,
            ))
        };
        let mut line: BTreeSet<(JobRank, QueueAt)> =
            queues.iter().filter_map(|(at, (usage, back))| place(*at, usage, back)).collect();
        while let Some((_, at)) = line.pop_first() {
            let Some((usage, [first, rest @ ..])) = queues.get(&at).copied() else { continue };
            order.push(*first);
            let static_costs = self.armada.fault == Fault::StaticCosts;
            let usage = if static_costs { usage } else { usage + self.jobs[*first].amount() };
            queues.insert(at, (usage, rest));
            line.extend(place(at, &usage, rest));
        }
        order
    }

    /// Schedules all jobs, then submits evictions and launches to the session.
    pub fn run(mut self) {
        while let Some((queue, next)) = self.first() {
            match next {
                NextJob::Back(at) => self.run_again(queue, at),
                NextJob::Waits(next) => self.start(queue, &next),
            }
            self.place(queue);
        }
        for EvictedJob { runs, is } in &self.jobs {
            let by = match is {
                EvictedState::Back | EvictedState::Again => continue,
                EvictedState::Given(user) => Some(*user),
                EvictedState::Lost => self.last.get(&runs.machine).copied(),
            };
            self.session.evict(runs, runs.count, by, FAIRLY);
        }
        self.session.seat_launches();
        self.session.spare(|_, _| true);
    }

    /// Returns a queue's next job, with its priority and amounts. Of equally urgent jobs, reclaimed ones precede waiting ones.
    fn next(&self, queue: &RoundQueue) -> Option<(u8, Resources, NextJob)> {
        let next = queue.waiting.get(queue.next).and_then(|user| self.session.next(*user));
        let back = queue.back.get(queue.turn).map(|at| (*at, &self.jobs[*at]));
        match (back, next) {
            (Some((at, job)), next) if next.is_none_or(|next| job.runs.priority <= next.priority) => {
                Some((job.runs.priority, job.amount(), NextJob::Back(at)))
            }
            (_, next) => next.map(|next| (next.priority, next.need(), NextJob::Waits(next))),
        }
    }

    /// Updates the rank of a changed queue.
    fn place(&mut self, at: QueueAt) {
        if let Some(place) = self.places.remove(&at) {
            self.line.remove(&(place, at));
        }
        let Some(queue) = self.queues.get(&at) else { return };
        if let Some((priority, amount, _)) = self.next(queue) {
            let place = (priority, self.armada.place(self.session.tree, at, &(queue.usage + amount), &self.capacity));
            self.places.insert(at, place);
            self.line.insert((place, at));
        }
    }

    fn first(&self) -> Option<(QueueAt, NextJob)> {
        let (_, at) = self.line.first()?;
        let (.., next) = self.next(self.queues.get(at)?)?;
        Some((*at, next))
    }

    fn run_again(&mut self, queue: QueueAt, at: usize) {
        let EvictedJob { runs, is } = self.jobs[at];
        let amount = runs.unit();
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.turn += 1;
        }
        let given = matches!(is, EvictedState::Given(_));
        if given && self.armada.fault != Fault::RunsAgain {
            return;
        }
        let runs_again = self.left.restore(self.session, &runs);
        if runs_again {
            if given {
                self.idle.restore(self.session, &runs);
            }
            self.jobs[at].is = EvictedState::Again;
            if let Some(queue) = self.queues.get_mut(&queue) {
                queue.usage += amount;
            }
        } else if !given {
            self.jobs[at].is = EvictedState::Lost;
            self.idle.release(self.session, &runs);
        }
    }

    /// Starts a waiting job in idle room or in the room of other jobs. The tasks of a gang are placed one by one; all start or none.
    fn start(&mut self, queue: QueueAt, next: &Waiting) {
        let before = (next.together() > 1).then(|| (self.jobs.clone(), self.order.clone()));
        let (left, idle) = (self.left.clone(), self.idle.clone());
        let (mut seats, mut displaced) = (Placements::new(), Vec::<Runs>::new());
        for _ in 0..next.together() {
            let idle = self.idle.find(&next.each);
            let found = idle.or_else(|| self.in_room_taken_back(next));
            let Some(machine) = found.or_else(|| self.in_room_of_less_urgent(next, &mut displaced)) else { break };
            self.left.reserve(machine, &next.each, 1);
            self.idle.reserve(machine, &next.each, 1);
            place_task(&mut seats, machine);
        }
        let Some(of) = self.queues.get_mut(&queue) else { return };
        if seats.iter().map(|(_, count)| count).sum::<u32>() < next.together() {
            of.next += 1;
            (self.left, self.idle) = (left, idle);
            if let Some((jobs, order)) = before {
                (self.jobs, self.order) = (jobs, order);
            }
            return self.session.wait(next.user, NO_ROOM);
        }
        of.usage += next.need();
        for (machine, _) in &seats {
            self.last.insert(*machine, next.user);
        }
        self.session.launch_later(next, seats);
        if self.session.next(next.user).is_none() {
            of.next += 1;
        }
        for runs in displaced {
            if let Some(queue) = self.queues.get_mut(&runs.queue) {
                queue.usage = queue.usage.saturating_sub(runs.unit());
            }
            self.place(runs.queue);
            *self.displaced.entry(runs.key).or_default() += 1;
            self.session.evict(&runs, runs.count, Some(next.user), URGENTLY);
        }
    }

    /// Returns a machine with room for a task once the reclaimed jobs that would be rescheduled last have left, and removes those on it.
    fn in_room_taken_back(&mut self, next: &Waiting) -> Option<MachineId> {
        while self.order.last().is_some_and(|at| self.jobs[*at].is != EvictedState::Back) {
            self.order.pop();
        }
        let mut rooms = self.idle.clone();
        let mut taken = 0;
        let found = self.order.iter().rev().find_map(|at| {
            taken += 1;
            let job = &self.jobs[*at];
            if job.is != EvictedState::Back {
                return None;
            }
            rooms.release(self.session, &job.runs);
            let seats = self.session.seats_of(&job.runs);
            seats.into_iter().map(|(machine, _)| machine).find(|machine| next.each.fits(&rooms.on(*machine)))
        })?;
        for at in self.order.iter().rev().take(taken) {
            let job = &mut self.jobs[*at];
            if job.is == EvictedState::Back && self.session.amount_on(&job.runs, found) != Resources::ZERO {
                job.is = EvictedState::Given(next.user);
                self.idle.release(self.session, &job.runs);
            }
        }
        // Room beyond the need of the task remains in `idle`.
        Some(found)
    }

    /// Returns a machine with room for a task once less urgent jobs have left, the least urgent and youngest first. Adds those on it to
    /// `displaced`.
    fn in_room_of_less_urgent(&mut self, next: &Waiting, displaced: &mut Vec<Runs>) -> Option<MachineId> {
        let less_urgent = |at: &QueueAt| self.session.least_urgent(*at).is_some_and(|least| least > next.priority);
        let leaves: Vec<QueueAt> = self.session.tree.leaves().filter(less_urgent).collect();
        if leaves.is_empty() {
            return None;
        }
        let back: HashSet<u64> = self.jobs.iter().map(|job| job.runs.key).collect();
        // Reclaimed jobs that run again are at least as urgent: they were scheduled earlier.
        let mut candidates: Vec<Runs> = Vec::new();
        for runs in leaves.iter().flat_map(|at| self.session.running(*at)) {
            let now = displaced.iter().filter(|known| known.key == runs.key).count() as u32;
            let gone = self.displaced.get(&runs.key).copied().unwrap_or(0) + now;
            if runs.priority > next.priority && !back.contains(&runs.key) {
                let units = if runs.gang { 1 } else { runs.count };
                candidates.extend(runs.units().take(units.saturating_sub(gone) as usize));
            }
        }
        candidates.sort_by_key(Runs::turn);
        let mut rooms = self.idle.clone();
        let mut taken = 0;
        let machine = candidates.iter().find_map(|runs| {
            taken += 1;
            rooms.release(self.session, runs);
            let seats = self.session.seats_of(runs);
            seats.into_iter().map(|(machine, _)| machine).find(|machine| next.each.fits(&rooms.on(*machine)))
        })?;
        for runs in candidates.into_iter().take(taken) {
            if self.session.amount_on(&runs, machine) != Resources::ZERO {
                self.left.release(self.session, &runs);
                self.idle.release(self.session, &runs);
                displaced.push(runs);
            }
        }
        Some(machine)
    }
}

/// A queue's next job.
enum NextJob {
    Back(usize),
    Waits(Waiting),
}
