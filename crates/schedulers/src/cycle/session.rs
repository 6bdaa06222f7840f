//! One cycle of a scheduler: the state at its beginning, and the decisions so far.
//!
//! [`Session`] applies each decision to its own copy of the allocations and of the free room, so that the scheduler sees the effect of
//! earlier decisions. The engine carries the decisions out after the cycle. [`Session::spare`] revokes evictions that make room for no
//! launch, and launches that would not be carried out. Launches may exceed the free amounts: the engine decides.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::rooms::{Placements, Rooms, Solution};
use super::tree::{QueueAt, QueueTable, Tree, Waiting};
use plimsoll_base::units::{MachineId, Resources, Time, UserId};
use plimsoll_sim::books::Books;
use plimsoll_sim::policy::{Cause, Gang, Reason, RunningView};

const OVERTAKEN: Reason = Reason::Rule("a stopped task of its user precedes it");

/// Equal running tasks of a user that started together; for a gang, all its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// The engine's key of these tasks.
    pub key: u64,
    /// The user.
    pub user: UserId,
    /// The queue of the user.
    pub queue: QueueAt,
    /// Their priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// The instant of their start.
    pub start: Time,
    /// Their row in the trace.
    pub row: u64,
    /// The earliest instant at which they could have started, and their position among the task sets of that instant; the lower position
    /// came first.
    pub since: (Time, u64),
    /// The machine where they run; for a gang on several machines, one of these.
    pub machine: MachineId,
    /// The amounts of one task.
    pub each: Resources,
    /// The number of tasks.
    pub count: u32,
    /// Whether they start and stop together.
    pub gang: bool,
}

impl Runs {
    /// Returns the amounts that are released if they are stopped: those of one task, or of all tasks of a gang.
    pub fn unit(&self) -> Resources {
        if self.gang { self.each.times(self.count) } else { self.each }
    }

    /// Returns their position in the order of eviction: the least urgent first, then the latest start, then the last in the trace.
    pub fn turn(&self) -> (Reverse<u8>, Reverse<Time>, Reverse<u64>) {
        (Reverse(self.priority), Reverse(self.start), Reverse(self.row))
    }

    /// Returns one of the tasks, or all tasks of a gang.
    pub fn one(&self) -> Runs {
        Runs { count: if self.gang { self.count } else { 1 }, ..*self }
    }

    /// Splits them into single tasks, the last first; a gang remains whole.
    pub fn units(self) -> impl Iterator<Item = Runs> {
        std::iter::repeat_n(self.one(), if self.gang { 1 } else { self.count as usize })
    }
}

/// The running tasks of the users of a queue that may be stopped.
#[derive(Clone, Debug, Default)]
struct PreemptibleTasks {
    /// The tasks in the order of eviction.
    all: Vec<Runs>,
    /// The machines of each gang, by key.
    gangs: HashMap<u64, Placements>,
}

/// A decision to stop tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evicted {
    pub runs: Runs,
    /// The number of tasks; for a gang, all.
    pub count: u32,
    pub cause: Option<Cause>,
}

/// The decisions of a cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions {
    /// The users in the order of their launches, the number of tasks of each launch, and the machines with room for them.
    pub launches: Vec<(UserId, u32, Placements)>,
    pub evictions: Vec<Evicted>,
    /// The reason why each user waits.
    pub waits: HashMap<UserId, Reason>,
}

/// The state at the beginning of a cycle, and the decisions so far. Amounts are those of the books, as the policy's lens is plain.
pub struct Session<'a, S> {
    /// The tree of queues.
    pub tree: &'a Tree<S>,
    /// The books of the run.
    pub books: &'a Books,
    /// The allocation of each node, including the launches and excluding the evictions decided so far.
    pub usage: Vec<Resources>,
    /// The allocation of each user, likewise.
    pub held: Vec<Resources>,
    /// The unallocated amounts, likewise.
    pub free: Resources,
    table: &'a QueueTable,
    running: &'a dyn RunningView,
    listed: Vec<OnceCell<PreemptibleTasks>>,
    rooms: Rooms<'a>,
    /// Whether the session launched a task without finding a machine with room for it.
    unseated: bool,
    left: HashMap<UserId, u32>,
    /// The number of stopped tasks of each entry, by key.
    stopped: HashMap<u64, u32>,
    /// The number of stopped tasks of each user.
    lost: HashMap<UserId, u64>,
    pub(super) decided: Decisions,
}

impl<'a, S> Session<'a, S> {
    pub(super) fn new(
        tree: &'a Tree<S>,
        table: &'a QueueTable,
        running: &'a dyn RunningView,
        books: &'a Books,
    ) -> Session<'a, S> {
        Session {
            tree,
            books,
            usage: table.usage.clone(),
            held: table.held.clone(),
            free: *books.offered() - *books.total_held(),
            table,
            running,
            listed: vec![OnceCell::new(); tree.nodes.len()],
            rooms: Rooms::new(running),
            unseated: false,
            left: HashMap::new(),
            stopped: HashMap::new(),
            lost: HashMap::new(),
            decided: Decisions::default(),
        }
    }

    /// Returns the leaves with waiting users that were not launched in this cycle, in the order of the tree.
    pub fn waiting_queues(&self) -> Vec<QueueAt> {
        self.table.busy.iter().copied().filter(|at| self.waiting(*at).next().is_some()).collect()
    }

    /// Returns the next workload of each waiting user of a queue, the most urgent first, then the oldest, without the tasks launched in
    /// this cycle.
    pub fn waiting(&self, queue: QueueAt) -> impl Iterator<Item = Waiting> + '_ {
        self.table.lines[queue].values().filter_map(|user| self.next(*user))
    }

    /// Returns the next workloads of all waiting users, queue by queue, as [`Session::waiting`].
    pub fn all_waiting(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.table.busy.iter().flat_map(|queue| self.waiting(*queue))
    }

    /// Records the reason of each user that still waits.
    pub fn explain(&mut self, reason: impl Fn(&Session<S>, &Waiting) -> Reason) {
        let reasons: Vec<_> = self.all_waiting().map(|next| (next.user, reason(self, &next))).collect();
        reasons.into_iter().for_each(|(user, reason)| self.wait(user, reason));
    }

    /// Returns the next workload of a user, without the tasks launched in this cycle.
    pub fn next(&self, user: UserId) -> Option<Waiting> {
        let next = self.table.waiting[user.index()]?;
        match self.left.get(&user) {
            None => Some(next),
            Some(0) => None,
            Some(left) => Some(Waiting { tasks: *left, ..next }),
        }
    }

    /// Returns the running tasks of a queue's users that may be stopped, in the order of eviction at the beginning of the cycle.
    pub fn running(&self, queue: QueueAt) -> &[Runs] {
        &self.listed(queue).all
    }

    fn listed(&self, queue: QueueAt) -> &PreemptibleTasks {
        self.listed[queue].get_or_init(|| {
            let PreemptibleTasks { mut all, mut gangs } = PreemptibleTasks::default();
            let mut known: HashMap<u32, u64> = HashMap::new();
            self.running.of_users(&self.tree.nodes[queue].users, &mut |tasks| {
                if let Some(Gang { number, .. }) = tasks.gang {
                    let first = known.get(&number).copied();
                    let key = *known.entry(number).or_insert(tasks.key);
                    gangs.entry(key).or_default().push((tasks.machine, tasks.count));
                    if first.is_some() {
                        return ControlFlow::Continue(());
                    }
                }
                all.push(Runs {
                    key: tasks.key,
                    user: tasks.user,
                    queue,
                    priority: tasks.priority,
                    start: tasks.start,
                    row: tasks.row,
                    since: tasks.since,
                    machine: tasks.machine,
                    each: Resources::from_slice(tasks.footprint),
                    count: tasks.gang.map_or(tasks.count, |gang| gang.tasks),
                    gang: tasks.gang.is_some(),
                });
                ControlFlow::Continue(())
            });
            PreemptibleTasks { all, gangs }
        })
    }

    /// Returns the machines of one running task, or of all tasks of a gang, and how many run on each.
    pub fn seats_of(&self, unit: &Runs) -> Placements {
        if !unit.gang {
            return vec![(unit.machine, 1)];
        }
        let gangs = &self.listed(unit.queue).gangs;
        gangs.get(&unit.key).cloned().unwrap_or_else(|| vec![(unit.machine, unit.count)])
    }

    /// Returns the amounts of one running task, or of all tasks of a gang, on a machine.
    pub fn amount_on(&self, unit: &Runs, machine: MachineId) -> Resources {
        let seats = self.seats_of(unit);
        unit.each.times(seats.iter().filter(|(at, _)| *at == machine).map(|(_, tasks)| tasks).sum())
    }

    /// Returns the single tasks and the gangs of a queue that were not stopped in this cycle, in the order of eviction.
    pub fn units(&self, queue: QueueAt) -> impl Iterator<Item = Runs> + '_ {
        self.running(queue).iter().flat_map(|runs| runs.units().take(self.units_left(runs) as usize))
    }

    /// Groups running tasks and gangs by their machines; a gang on several machines is listed on each.
    pub fn by_machine(&self, units: impl Iterator<Item = Runs>) -> BTreeMap<MachineId, Vec<Runs>> {
        let mut machines: BTreeMap<MachineId, Vec<Runs>> = BTreeMap::new();
        for unit in units {
            for (machine, _) in self.seats_of(&unit) {
                machines.entry(machine).or_default().push(unit);
            }
        }
        machines
    }

    /// Returns how many tasks of an entry were not stopped in this cycle; a gang counts as one.
    pub fn units_left(&self, runs: &Runs) -> u32 {
        let left = runs.count.saturating_sub(self.stopped(runs.key));
        if runs.gang { left.min(1) } else { left }
    }

    /// Reserves room on machines for tasks that do not start in this cycle.
    pub fn reserve(&mut self, each: &Resources, seats: &Placements) {
        for (machine, tasks) in seats {
            self.rooms.reserve(*machine, each, *tasks);
        }
    }

    /// Returns the least urgent priority of a queue's running tasks that may be stopped, without visiting all of them.
    pub fn least_urgent(&self, queue: QueueAt) -> Option<u8> {
        let mut least = None;
        self.running.of_users(&self.tree.nodes[queue].users, &mut |tasks| {
            least = Some(tasks.priority);
            ControlFlow::Break(())
        });
        least
    }

    /// Returns the free amounts of a machine, including the launches and excluding the evictions decided so far.
    pub fn room_on(&self, machine: MachineId) -> Resources {
        self.rooms.on(machine)
    }

    /// Begins a trial placement on the machines in their current state.
    pub fn trial(&self) -> Rooms<'a> {
        self.rooms.clone()
    }

    /// Returns whether all tasks of a workload that start together have room once these victims have left.
    pub fn would_fit(&self, next: &Waiting, gone: &[Runs]) -> bool {
        let mut trial = self.trial();
        gone.iter().for_each(|unit| trial.release(self, unit));
        trial.place_all(&next.each, next.together(), |_| None).is_some()
    }

    /// Returns whether there is room now for a task of a workload, or for all tasks of a gang. Returns `false` for a user that lost tasks
    /// in this cycle: the stopped tasks are first in its order, so a launch of another task would not be carried out.
    pub fn has_room(&self, next: &Waiting) -> bool {
        !self.has_lost(next.user)
            && self.fits(&next.need())
            && match next.together() {
                1 => self.rooms.find(&next.each).is_some(),
                _ => self.would_fit(next, &[]),
            }
    }

    /// Returns whether a user lost tasks in this cycle.
    pub fn has_lost(&self, user: UserId) -> bool {
        self.lost.get(&user).is_some_and(|tasks| *tasks > 0)
    }

    /// Returns whether these amounts are free.
    pub fn fits(&self, need: &Resources) -> bool {
        need.fits(&self.free)
    }

    /// Launches a number of tasks of a user's next workload, or all of a gang, on the machines that the placement rule selects.
    pub fn launch(&mut self, next: &Waiting, tasks: u32) {
        let tasks = if next.gang { next.tasks } else { tasks.min(next.tasks) };
        let seats = self.rooms.place_up_to(&next.each, tasks);
        self.start(next, tasks, seats);
    }

    /// Launches as many tasks of a user's next workload as have room, up to a limit; of a gang all or none.
    pub fn launch_up_to(&mut self, next: &Waiting, most: u32) {
        let mut rooms = self.trial();
        let seats = match next.gang {
            true => rooms.place_all(&next.each, next.tasks, |_| None),
            false => Some(rooms.place_up_to(&next.each, most.min(next.tasks))),
        };
        if let Some(seats) = seats.filter(|seats| !seats.is_empty()) {
            self.launch_on(next, seats);
        }
    }

    /// Launches tasks of a user's next workload on these machines.
    pub fn launch_on(&mut self, next: &Waiting, seats: Placements) {
        for (machine, count) in &seats {
            self.unseated |= !self.rooms.reserve(*machine, &next.each, *count);
        }
        self.start(next, seats.iter().map(|(_, count)| count).sum(), seats);
    }

    /// Launches tasks like [`Session::launch_on`], but [`Session::seat_launches`] reserves the room, once all victims have left.
    pub fn launch_later(&mut self, next: &Waiting, seats: Placements) {
        self.start(next, seats.iter().map(|(_, count)| count).sum(), seats);
    }

    /// Reserves the room of all launches. No launch may have reserved its room before.
    pub fn seat_launches(&mut self) {
        for (user, _, seats) in &self.decided.launches {
            let each = self.table.waiting[user.index()].map_or(Resources::ZERO, |next| next.each);
            for (machine, count) in seats {
                self.unseated |= !self.rooms.reserve(*machine, &each, *count);
            }
        }
    }

    fn start(&mut self, next: &Waiting, tasks: u32, seats: Placements) {
        self.unseated |= seats.iter().map(|(_, count)| count).sum::<u32>() < tasks;
        self.decided.launches.push((next.user, tasks, seats));
        self.decided.waits.remove(&next.user);
        self.left.insert(next.user, next.tasks - tasks);
        let amount = next.each.times(tasks);
        self.change_allocation(next.queue, next.user, &amount, true);
    }

    /// Stops a number of these tasks, or all of a gang, for the user `by` under a rule.
    pub fn evict(&mut self, runs: &Runs, count: u32, by: Option<UserId>, rule: &'static str) {
        let count = if runs.gang { runs.count } else { count.min(runs.count) };
        let cause = by.map(|user| Cause { user, rule });
        self.decided.evictions.push(Evicted { runs: *runs, count, cause });
        self.change_runs(runs, count, true);
    }

    /// Launches tasks of a user's next workload in the room of victims, which are stopped under a rule.
    pub fn preempt_and_launch(&mut self, next: &Waiting, Solution { victims, seats }: Solution, rule: &'static str) {
        victims.iter().for_each(|unit| self.evict(unit, unit.count, Some(next.user), rule));
        self.launch_on(next, seats);
    }

    /// Records running tasks as stopped, or as running again.
    fn change_runs(&mut self, runs: &Runs, count: u32, stopped: bool) {
        let (of_entry, of_user) = (self.stopped.entry(runs.key).or_default(), self.lost.entry(runs.user).or_default());
        if stopped {
            (*of_entry, *of_user) = (*of_entry + count, *of_user + u64::from(count));
        } else {
            (*of_entry, *of_user) = (*of_entry - count, *of_user - u64::from(count));
        }
        let times = if runs.gang { 1 } else { count };
        for (machine, tasks) in self.seats_of(runs) {
            if stopped {
                self.rooms.give(machine, &runs.each, tasks * times);
            } else {
                self.rooms.reserve(machine, &runs.each, tasks * times);
            }
        }
        let amount = runs.each.times(count);
        self.change_allocation(runs.queue, runs.user, &amount, !stopped);
    }

    /// Revokes the evictions that made no room for a launch (see [`Session::spare_victims`]). Also revokes launches that would not be
    /// carried out, the last one first, each together with its victims.
    ///
    /// A launch is not carried out if a task of the same user that was stopped in this cycle precedes it in the user's order by priority
    /// and age. The room of the launch would stay idle.
    pub fn spare(&mut self, may_stay: impl Fn(&Session<S>, &Runs) -> bool) {
        if self.unseated {
            return;
        }
        self.spare_victims(&may_stay);
        while let Some(at) = self.overtaken() {
            let (user, tasks, seats) = self.decided.launches.remove(at);
            if let Some(next) = self.table.waiting[user.index()] {
                seats.iter().for_each(|(machine, count)| self.rooms.give(*machine, &next.each, *count));
                *self.left.entry(user).or_default() += tasks;
                self.change_allocation(next.queue, user, &next.each.times(tasks), false);
                self.wait(user, OVERTAKEN);
            }
            self.spare_victims(&may_stay);
        }
    }

    /// Returns the last launch that a stopped task precedes in the order of its user.
    fn overtaken(&self) -> Option<usize> {
        let mut first: HashMap<UserId, (u8, Time, u64)> = HashMap::new();
        for Evicted { runs, .. } in &self.decided.evictions {
            let turn = (runs.priority, runs.since.0, runs.since.1);
            first.entry(runs.user).and_modify(|first| *first = turn.min(*first)).or_insert(turn);
        }
        self.decided.launches.iter().rposition(|(user, ..)| {
            let next = self.table.waiting[user.index()];
            next.is_some_and(|next| first.get(user).is_some_and(|first| *first < next.turn()))
        })
    }

    /// Revokes needless evictions. An eviction is needless if the victim and all launches fit together and the victim passes `may_stay`,
    /// which checks limits. The most urgent and oldest victims are tested first.
    pub fn spare_victims(&mut self, may_stay: impl Fn(&Session<S>, &Runs) -> bool) {
        if self.unseated {
            return;
        }
        let mut evictions = std::mem::take(&mut self.decided.evictions);
        let mut order: Vec<usize> = (0..evictions.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse((evictions[*at].runs.turn(), *at)));
        for at in order {
            let Evicted { runs, count, .. } = evictions[at];
            let unit = Runs { count, ..runs }.one();
            while evictions[at].count > 0 && self.trial().restore(self, &unit) && may_stay(self, &unit) {
                evictions[at].count -= unit.count;
                self.change_runs(&unit, unit.count, false);
            }
        }
        evictions.retain(|evicted| evicted.count > 0);
        self.decided.evictions = evictions;
    }

    /// Records the reason why a user waits.
    pub fn wait(&mut self, user: UserId, reason: Reason) {
        self.decided.waits.insert(user, reason);
    }

    /// Returns the number of tasks of an entry that were stopped in this cycle.
    pub fn stopped(&self, key: u64) -> u32 {
        self.stopped.get(&key).copied().unwrap_or(0)
    }

    /// Returns the number of a user's running tasks that were not stopped in this cycle.
    pub fn left(&self, user: UserId) -> u64 {
        self.books.running(user).saturating_sub(self.lost.get(&user).copied().unwrap_or(0))
    }

    fn change_allocation(&mut self, queue: QueueAt, user: UserId, amount: &Resources, more: bool) {
        self.tree.change(&mut self.usage, queue, amount, more);
        change_amounts(&mut self.held[user.index()], amount, more);
        change_amounts(&mut self.free, amount, !more);
    }
}

/// Adds an amount to a sum, or subtracts it, down to 0. The difference may be negative because launches may exceed the free amounts.
pub fn change_amounts(sum: &mut Resources, amount: &Resources, more: bool) {
    *sum = if more { *sum + *amount } else { sum.saturating_sub(*amount) };
}
