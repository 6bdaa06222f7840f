//! A round: jobs that were taken back and jobs that wait, in the order of costs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::Reason;
use super::super::cycle::{QueueAt, Ratio, Runs, Session, Waiting};
use super::{Armada, Fault};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, UserId};

const FAIRLY: &str = "its queue is above its share, and a job of a lower cost starts in its room";
const URGENTLY: &str = "a more urgent job starts in its room";
const NO_ROOM: Reason = Reason::Rule("there is no room, and no job that costs less gives way");

/// The state of a job that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// Its turn has not come.
    Back,
    /// It runs again.
    Again,
    /// Another job starts in its room.
    Given(UserId),
    /// It found no room when its turn came.
    Lost,
}

/// A job that was taken back.
#[derive(Clone, Copy, Debug)]
struct Job {
    runs: Runs,
    is: Is,
}

impl Job {
    fn amount(&self) -> Resources {
        self.runs.unit()
    }
}

/// By priority, then by cost over weight, then by name.
type Place = (u8, (Ratio, usize));

/// A queue in the round.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The amounts that it uses, without what was taken back and does not run again.
    usage: Resources,
    /// Its jobs that were taken back, by place, in the order of their turns.
    back: Vec<usize>,
    /// The next of them.
    turn: usize,
    /// Its users that wait, in the order of their turns, and the next of them.
    waiting: Vec<UserId>,
    next: usize,
}

pub struct Round<'a, 'b, 'c> {
    armada: &'a Armada,
    session: &'c mut Session<'b>,
    capacity: Resources,
    jobs: Vec<Job>,
    /// Places of jobs in the order in which they would run again.
    order: Vec<usize>,
    queues: BTreeMap<QueueAt, Queue>,
    /// Queues with anything left, by place, and the place of each.
    line: BTreeSet<(Place, QueueAt)>,
    places: BTreeMap<QueueAt, Place>,
    /// By machine, its room without what was taken back, and with what runs again or starts.
    left: BTreeMap<MachineId, [i128; MAX_DIMS]>,
    /// The amounts of jobs whose turn has not come, and that nobody was given the room of.
    pending: BTreeMap<MachineId, [i128; MAX_DIMS]>,
    /// The last job that started on a machine.
    last: BTreeMap<MachineId, UserId>,
    /// Jobs that were displaced as less urgent: of each entry how many.
    displaced: HashMap<u64, u32>,
}

fn add(amounts: &mut [i128; MAX_DIMS], more: &Resources, sign: i128) {
    amounts.iter_mut().zip(more.0).for_each(|(amount, more)| *amount += sign * i128::from(more));
}

fn fits(need: &Resources, room: &[i128; MAX_DIMS]) -> bool {
    need.0.iter().zip(room).all(|(need, room)| i128::from(*need) <= (*room).max(0))
}

fn sum(one: &Resources, other: &Resources) -> Resources {
    Resources(std::array::from_fn(|d| one.0[d] + other.0[d]))
}

fn less(one: &Resources, other: &Resources) -> Resources {
    Resources(std::array::from_fn(|d| one.0[d].saturating_sub(other.0[d])))
}

impl<'a, 'b, 'c> Round<'a, 'b, 'c> {
    /// With all that these queues run taken back.
    pub fn new(armada: &'a Armada, session: &'c mut Session<'b>, above: &[QueueAt]) -> Round<'a, 'b, 'c> {
        let capacity = *session.books.offered();
        let mut queues: BTreeMap<QueueAt, Queue> = BTreeMap::new();
        for queue in session.waiting_queues() {
            let waiting = session.waiting(queue).map(|next| next.user).collect();
            queues.insert(queue, Queue { usage: session.usage[queue], waiting, ..Queue::default() });
        }
        let mut jobs: Vec<Job> = Vec::new();
        for queue in above {
            let of = queues.entry(*queue).or_insert_with(|| Queue { usage: session.usage[*queue], ..Queue::default() });
            for runs in session.running(*queue).iter().flat_map(|runs| runs.units()) {
                of.back.push(jobs.len());
                of.usage = less(&of.usage, &runs.unit());
                jobs.push(Job { runs, is: Is::Back });
            }
            of.back.sort_by_key(|at| (jobs[*at].runs.priority, jobs[*at].runs.since, jobs[*at].runs.row));
        }
        let (left, pending, last, displaced, order, line, places) = Default::default();
        let mut round =
            Round { armada, session, capacity, jobs, order, queues, line, places, left, pending, last, displaced };
        for at in 0..round.jobs.len() {
            let (machine, amount) = (round.jobs[at].runs.machine, round.jobs[at].runs.unit_here());
            add(round.left_on(machine), &amount, 1);
            add(round.pending.entry(machine).or_default(), &amount, 1);
        }
        round.order = round.order_again();
        let all: Vec<QueueAt> = round.queues.keys().copied().collect();
        all.into_iter().for_each(|at| round.place(at));
        round
    }

    fn left_on(&mut self, machine: MachineId) -> &mut [i128; MAX_DIMS] {
        let free = self.session.free_on(machine).0;
        self.left.entry(machine).or_insert_with(|| free.map(i128::from))
    }

    /// The order in which jobs would run again if nothing waited.
    fn order_again(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.jobs.len());
        let mut queues: BTreeMap<QueueAt, (Resources, &[usize])> =
            self.queues.iter().map(|(at, queue)| (*at, (queue.usage, &queue.back[..]))).collect();
        let place = |at: QueueAt, usage: &Resources, back: &[usize]| {
            let job = &self.jobs[*back.first()?];
            Some(((job.runs.priority, self.armada.place(at, &sum(usage, &job.amount()), &self.capacity)), at))
        };
        let mut line: BTreeSet<(Place, QueueAt)> =
            queues.iter().filter_map(|(at, (usage, back))| place(*at, usage, back)).collect();
        while let Some((_, at)) = line.pop_first() {
            let Some((usage, [first, rest @ ..])) = queues.get(&at).copied() else { continue };
            order.push(*first);
            let static_costs = self.armada.fault == Fault::StaticCosts;
            let usage = if static_costs { usage } else { sum(&usage, &self.jobs[*first].amount()) };
            queues.insert(at, (usage, rest));
            line.extend(place(at, &usage, rest));
        }
        order
    }

    /// Everybody has a turn; then it is told who starts and who does not run again.
    pub fn run(mut self) {
        while let Some((queue, next)) = self.first() {
            match next {
                Next::Back(at) => self.run_again(queue, at),
                Next::Waits(next) => self.start(queue, &next),
            }
            self.place(queue);
        }
        for Job { runs, is } in &self.jobs {
            let by = match is {
                Is::Back | Is::Again => continue,
                Is::Given(user) => Some(*user),
                Is::Lost => self.last.get(&runs.machine).copied(),
            };
            self.session.evict(runs, runs.count, by, FAIRLY);
        }
    }

    /// A queue's next job: of the most urgent ones first those that were taken back, then those that wait.
    fn next(&self, queue: &Queue) -> Option<(u8, Resources, Next)> {
        let next = queue.waiting.get(queue.next).and_then(|user| self.session.next(*user));
        let back = queue.back.get(queue.turn).map(|at| (*at, &self.jobs[*at]));
        match (back, next) {
            (Some((at, job)), next) if next.is_none_or(|next| job.runs.priority <= next.priority) => {
                Some((job.runs.priority, job.amount(), Next::Back(at)))
            }
            (_, next) => next.map(|next| (next.priority, next.need(), Next::Waits(next))),
        }
    }

    /// Queues that have changed are placed anew.
    fn place(&mut self, at: QueueAt) {
        if let Some(place) = self.places.remove(&at) {
            self.line.remove(&(place, at));
        }
        let Some(queue) = self.queues.get(&at) else { return };
        if let Some((priority, amount, _)) = self.next(queue) {
            let place = (priority, self.armada.place(at, &sum(&queue.usage, &amount), &self.capacity));
            self.places.insert(at, place);
            self.line.insert((place, at));
        }
    }

    fn first(&self) -> Option<(QueueAt, Next)> {
        let (_, at) = self.line.first()?;
        let (.., next) = self.next(self.queues.get(at)?)?;
        Some((*at, next))
    }

    fn run_again(&mut self, queue: QueueAt, at: usize) {
        let Job { runs, is } = self.jobs[at];
        // Of a gang on several machines only the room on one of them is known.
        let (amount, here, machine) = (runs.unit(), runs.unit_here(), runs.machine);
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.turn += 1;
        }
        let given = matches!(is, Is::Given(_));
        if given && self.armada.fault != Fault::RunsAgain {
            return;
        }
        let runs_again = fits(&here, self.left_on(machine));
        if !given {
            add(self.pending.entry(machine).or_default(), &here, -1);
        }
        if runs_again {
            add(self.left_on(machine), &here, -1);
            if given {
                self.session.free = less(&self.session.free, &amount);
            }
            self.jobs[at].is = Is::Again;
            if let Some(queue) = self.queues.get_mut(&queue) {
                queue.usage = sum(&queue.usage, &amount);
            }
        } else if !given {
            self.jobs[at].is = Is::Lost;
            self.session.free = sum(&self.session.free, &amount);
        }
    }

    /// A job that waits starts where there is room, or in that of others.
    fn start(&mut self, queue: QueueAt, next: &Waiting) {
        let need = next.need();
        // Whatever is left of the room of a job that gave way is free as well.
        let machine = match self.free_machine(&need) {
            Some(machine) => Some(Some(machine)),
            None if self.session.has_room(next) => Some(None),
            None => self.in_room_taken_back(next).or_else(|| self.in_room_of_less_urgent(next)).map(Some),
        };
        let Some(of) = self.queues.get_mut(&queue) else { return };
        let Some(machine) = machine else {
            of.next += 1;
            return self.session.wait(next.user, NO_ROOM);
        };
        of.usage = sum(&of.usage, &need);
        self.session.launch(next, 1);
        if self.session.next(next.user).is_none() {
            of.next += 1;
        }
        if let Some(machine) = machine {
            add(self.left_on(machine), &need, -1);
            self.last.insert(machine, next.user);
        }
    }

    /// The first of the known machines on which so much is free.
    fn free_machine(&self, need: &Resources) -> Option<MachineId> {
        let free = |(machine, left): (&MachineId, &[i128; MAX_DIMS])| {
            let pending = self.pending.get(machine).copied().unwrap_or_default();
            let room: [i128; MAX_DIMS] = std::array::from_fn(|d| left[d] - pending[d]);
            fits(need, &room).then_some(*machine)
        };
        self.left.iter().find_map(free).filter(|_| self.session.fits(need))
    }

    /// The room of jobs that would run again last.
    fn in_room_taken_back(&mut self, next: &Waiting) -> Option<MachineId> {
        let need = next.need();
        while self.order.last().is_some_and(|at| self.jobs[*at].is != Is::Back) {
            self.order.pop();
        }
        let mut rooms: BTreeMap<MachineId, [i128; MAX_DIMS]> = BTreeMap::new();
        let mut taken = 0;
        let found = self.order.iter().rev().find_map(|at| {
            taken += 1;
            let job = &self.jobs[*at];
            if job.is != Is::Back {
                return None;
            }
            let machine = job.runs.machine;
            let room = rooms.entry(machine).or_insert_with(|| {
                let left = self.left.get(&machine).copied().unwrap_or_default();
                let pending = self.pending.get(&machine).copied().unwrap_or_default();
                std::array::from_fn(|d| left[d] - pending[d])
            });
            add(room, &job.runs.unit_here(), 1);
            fits(&need, room).then_some(machine)
        })?;
        for at in self.order.iter().rev().take(taken) {
            let job = &mut self.jobs[*at];
            if job.is == Is::Back && job.runs.machine == found {
                job.is = Is::Given(next.user);
                add(self.pending.entry(found).or_default(), &job.runs.unit_here(), -1);
                self.session.free = sum(&self.session.free, &job.runs.unit());
            }
        }
        // Where room was free besides, what is given up is in the account of that machine.
        Some(found)
    }

    /// The room of less urgent jobs, the least urgent and youngest first.
    fn in_room_of_less_urgent(&mut self, next: &Waiting) -> Option<MachineId> {
        let leaves = (0..self.session.tree.nodes.len()).filter(|at| self.session.tree.is_leaf(*at));
        let less_urgent = |at: &QueueAt| self.session.least_urgent(*at).is_some_and(|least| least > next.priority);
        let leaves: Vec<QueueAt> = leaves.filter(less_urgent).collect();
        if leaves.is_empty() {
            return None;
        }
        let back: Vec<u64> = self.jobs.iter().map(|job| job.runs.key).collect();
        // Whatever was taken back and runs again is at least as urgent: it had its turn before.
        let mut candidates: Vec<Runs> = Vec::new();
        for runs in leaves.iter().flat_map(|at| self.session.running(*at)) {
            let gone = self.displaced.get(&runs.key).copied().unwrap_or(0);
            if runs.priority > next.priority && !back.contains(&runs.key) {
                let units = if runs.gang { 1 } else { runs.count };
                candidates.extend(runs.units().take(units.saturating_sub(gone) as usize));
            }
        }
        candidates.sort_by_key(Runs::turn);
        let need = next.need();
        let mut rooms: BTreeMap<MachineId, ([i128; MAX_DIMS], Vec<usize>)> = BTreeMap::new();
        let mut found = None;
        for (at, runs) in candidates.iter().enumerate() {
            let left = *self.left_on(runs.machine);
            let pending = self.pending.get(&runs.machine).copied().unwrap_or_default();
            let (room, taken) = rooms
                .entry(runs.machine)
                .or_insert_with(|| (std::array::from_fn(|d| left[d] - pending[d]), Vec::new()));
            add(room, &runs.unit_here(), 1);
            taken.push(at);
            if fits(&need, room) {
                found = Some(runs.machine);
                break;
            }
        }
        let machine = found?;
        for at in rooms.remove(&machine)?.1 {
            let runs = candidates[at];
            add(self.left_on(machine), &runs.unit_here(), 1);
            if let Some(queue) = self.queues.get_mut(&runs.queue) {
                queue.usage = less(&queue.usage, &runs.unit());
            }
            self.place(runs.queue);
            *self.displaced.entry(runs.key).or_default() += 1;
            self.session.evict(&runs, runs.count, Some(next.user), URGENTLY);
        }
        Some(machine)
    }
}

/// A job whose turn it is.
enum Next {
    Back(usize),
    Waits(Waiting),
}
