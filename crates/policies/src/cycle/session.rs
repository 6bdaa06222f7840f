//! One cycle of a scheduler: the state that it sees, and the decisions that it has taken so far.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;

use super::tree::{Desk, QueueAt, Tree, Waiting};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, Time, UserId};
use plimsoll_sim::books::Books;
use plimsoll_sim::policy::{Cause, Gang, Reason, RunningView};

/// Equal running tasks of a user that started together; of a gang all its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// The engine's name for them.
    pub key: u64,
    /// The user.
    pub user: UserId,
    /// Its queue.
    pub queue: QueueAt,
    /// Their priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// When they started.
    pub start: Time,
    /// Their row in the trace.
    pub row: u64,
    /// When they could have started at the earliest, and their place among those of that instant: the lower came first.
    pub since: (Time, u64),
    /// Where they run; of a gang on several machines one of these.
    pub machine: MachineId,
    /// The amounts of one task.
    pub each: Resources,
    /// How many tasks.
    pub count: u32,
    /// How many of a gang are on this machine.
    pub here: u32,
    /// They start and stop together.
    pub gang: bool,
}

impl Runs {
    /// The amounts that go back if they are stopped: of one task, or of all of a gang.
    pub fn unit(&self) -> Resources {
        if self.gang { self.each.times(self.count) } else { self.each }
    }

    /// The same, but of a gang only the part on this machine.
    pub fn unit_here(&self) -> Resources {
        if self.gang { self.each.times(self.here) } else { self.each }
    }

    /// Their place in the order of stopping: the least urgent first, then those that started last, then the last in the trace.
    pub fn turn(&self) -> (Reverse<u8>, Reverse<Time>, Reverse<u64>) {
        (Reverse(self.priority), Reverse(self.start), Reverse(self.row))
    }

    /// Each task by itself, the last first; a gang as it is.
    pub fn units(self) -> impl Iterator<Item = Runs> {
        let (times, count) = if self.gang { (1, self.count) } else { (self.count, 1) };
        std::iter::repeat_n(Runs { count, ..self }, times as usize)
    }
}

/// A decision to stop tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evicted {
    pub key: u64,
    pub count: u32,
    pub cause: Option<Cause>,
}

/// The decisions of a cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions {
    /// Users in the order in which their next tasks start, and how many of each.
    pub launches: Vec<(UserId, u32)>,
    pub evictions: Vec<Evicted>,
    /// Why a user waits.
    pub waits: HashMap<UserId, Reason>,
}

/// The state at the beginning of a cycle, and what was decided since. Amounts are through the policy's lens, that is plain.
pub struct Session<'a> {
    /// The tree of queues.
    pub tree: &'a Tree,
    /// The account of the run.
    pub books: &'a Books,
    /// By node, the amounts held, with the launches and without the evictions decided so far.
    pub usage: Vec<Resources>,
    /// By user, the same.
    pub held: Vec<Resources>,
    /// The amounts that nobody holds, likewise.
    pub free: Resources,
    desk: &'a Desk,
    running: &'a dyn RunningView,
    listed: Vec<OnceCell<Vec<Runs>>>,
    left: HashMap<UserId, u32>,
    /// By entry, how many of its tasks were stopped.
    stopped: HashMap<u64, u32>,
    /// By user, the same.
    lost: HashMap<UserId, u64>,
    pub(super) decided: Decisions,
}

impl<'a> Session<'a> {
    pub(super) fn new(tree: &'a Tree, desk: &'a Desk, running: &'a dyn RunningView, books: &'a Books) -> Session<'a> {
        let mut free = *books.offered();
        free.0.iter_mut().zip(books.total_held().0).for_each(|(free, held)| *free -= held);
        Session {
            tree,
            books,
            usage: desk.usage.clone(),
            held: desk.held.clone(),
            free,
            desk,
            running,
            listed: vec![OnceCell::new(); tree.nodes.len()],
            left: HashMap::new(),
            stopped: HashMap::new(),
            lost: HashMap::new(),
            decided: Decisions::default(),
        }
    }

    /// Leaves in which somebody waits that was not launched in this cycle, in the order of the tree.
    pub fn waiting_queues(&self) -> Vec<QueueAt> {
        self.desk.busy.iter().copied().filter(|at| self.waiting(*at).next().is_some()).collect()
    }

    /// The next workload of each user of a queue that waits, the most urgent first, then the oldest, without the tasks launched in
    /// this cycle.
    pub fn waiting(&self, queue: QueueAt) -> impl Iterator<Item = Waiting> + '_ {
        self.desk.lines[queue].values().filter_map(|user| self.next(*user))
    }

    /// The next workload of a user, without the tasks launched in this cycle.
    pub fn next(&self, user: UserId) -> Option<Waiting> {
        let next = self.desk.waiting[user.index()]?;
        match self.left.get(&user) {
            None => Some(next),
            Some(0) => None,
            Some(left) => Some(Waiting { tasks: *left, ..next }),
        }
    }

    /// The running tasks of the users of a queue that may be stopped, in the order of stopping, as it was at the beginning of the cycle.
    pub fn running(&self, queue: QueueAt) -> &[Runs] {
        self.listed[queue].get_or_init(|| {
            let mut all: Vec<Runs> = Vec::new();
            let mut gangs: Vec<u32> = Vec::new();
            self.running.of(&self.tree.nodes[queue].users, &mut |tasks| {
                if let Some(Gang { number, .. }) = tasks.gang {
                    if gangs.contains(&number) {
                        return ControlFlow::Continue(());
                    }
                    gangs.push(number);
                }
                let mut each = Resources::ZERO;
                each.0.iter_mut().zip(tasks.footprint).for_each(|(each, amount)| *each = *amount);
                all.push(Runs {
                    key: tasks.key,
                    user: tasks.user,
                    queue,
                    priority: tasks.priority,
                    start: tasks.start,
                    row: tasks.row,
                    since: tasks.since,
                    machine: tasks.machine,
                    each,
                    count: tasks.gang.map_or(tasks.count, |gang| gang.tasks),
                    here: tasks.count,
                    gang: tasks.gang.is_some(),
                });
                ControlFlow::Continue(())
            });
            all
        })
    }

    /// The least urgent priority at which anything of a queue runs that may be stopped, without going through all.
    pub fn least_urgent(&self, queue: QueueAt) -> Option<u8> {
        let mut least = None;
        self.running.of(&self.tree.nodes[queue].users, &mut |tasks| {
            least = Some(tasks.priority);
            ControlFlow::Break(())
        });
        least
    }

    /// The amounts that a machine has free at the beginning of the cycle.
    pub fn free_on(&self, machine: MachineId) -> Resources {
        self.running.free(machine)
    }

    /// The same, but no more than is free in all by now: what has started elsewhere in this cycle may stand there, too.
    pub fn room_on(&self, machine: MachineId) -> Resources {
        let free = self.free_on(machine).0;
        Resources(std::array::from_fn(|d| free[d].min(self.free.0[d])))
    }

    /// Whether there is room for a task of a workload, or for a gang, on one of the machines of those that would go.
    pub fn would_fit(&self, next: &Waiting, gone: &[Runs]) -> bool {
        let need = next.need();
        let mut rooms: Vec<(MachineId, Resources)> = Vec::new();
        for runs in gone {
            let at = rooms.iter().position(|(machine, _)| *machine == runs.machine).unwrap_or_else(|| {
                rooms.push((runs.machine, self.room_on(runs.machine)));
                rooms.len() - 1
            });
            rooms[at].1.0.iter_mut().zip(runs.unit().0).for_each(|(room, more)| *room += more);
        }
        rooms.iter().any(|(_, room)| need.fits(room))
    }

    /// Whether so much is free in all, and some machine had room at the beginning of the cycle for one task of it.
    pub fn has_room(&self, next: &Waiting) -> bool {
        self.fits(&next.need()) && self.running.has_room(&next.each)
    }

    /// Whether so much is free.
    pub fn fits(&self, need: &Resources) -> bool {
        need.fits(&self.free)
    }

    /// The next workload of a user starts: so many of its tasks, or all of a gang.
    pub fn launch(&mut self, next: &Waiting, tasks: u32) {
        let tasks = if next.gang { next.tasks } else { tasks.min(next.tasks) };
        self.decided.launches.push((next.user, tasks));
        self.decided.waits.remove(&next.user);
        self.left.insert(next.user, next.tasks - tasks);
        let amount = next.each.times(tasks);
        self.hold(next.queue, next.user, &amount, true);
    }

    /// So many of these tasks are stopped, or all of a gang, for a user, by a rule.
    pub fn evict(&mut self, runs: &Runs, count: u32, by: Option<UserId>, rule: &'static str) {
        let count = if runs.gang { runs.count } else { count.min(runs.count) };
        let cause = by.map(|user| Cause { user, rule });
        self.decided.evictions.push(Evicted { key: runs.key, count, cause });
        *self.stopped.entry(runs.key).or_default() += count;
        *self.lost.entry(runs.user).or_default() += u64::from(count);
        let amount = runs.each.times(count);
        self.hold(runs.queue, runs.user, &amount, false);
    }

    /// A user waits, for this reason.
    pub fn wait(&mut self, user: UserId, reason: Reason) {
        self.decided.waits.insert(user, reason);
    }

    /// How many tasks of an entry were stopped in this cycle.
    pub fn stopped(&self, key: u64) -> u32 {
        self.stopped.get(&key).copied().unwrap_or(0)
    }

    /// How many tasks of a user run that were not stopped in this cycle.
    pub fn left(&self, user: UserId) -> u64 {
        self.books.running(user).saturating_sub(self.lost.get(&user).copied().unwrap_or(0))
    }

    fn hold(&mut self, queue: QueueAt, user: UserId, amount: &Resources, more: bool) {
        let change = |amounts: &mut Resources, more: bool| {
            for d in 0..MAX_DIMS {
                // A launch may go on more than is free: the engine has the last word.
                amounts.0[d] = if more { amounts.0[d] + amount.0[d] } else { amounts.0[d].saturating_sub(amount.0[d]) };
            }
        };
        for at in self.tree.path(queue) {
            change(&mut self.usage[at], more);
        }
        change(&mut self.held[user.index()], more);
        change(&mut self.free, !more);
    }
}
