//! State of a cycle during its decisions: job counts, the order of jobs and queues, and eligible victims.
//!
//! Source: Volcano, `framework/session_plugins.go`, `plugins/{priority,gang,drf}` (state of August 2026).

use std::cmp::Ordering;
use std::collections::HashMap;

use ethnum::U256;

use super::super::cycle::{QueueAt, Runs, Waiting, change_amounts, compare_parts};
use super::Volcano;
use super::hierarchy::Hierarchy;
use super::queues::{Levels, Plugin, Session, Tree};
use plimsoll_base::units::{Resources, UserId};
use plimsoll_sim::books::Books;

/// The rank of a job in its queue: by priority, then jobs below their minimum number of tasks are first, then the smaller dominant share,
/// then the oldest.
#[derive(Clone, Copy, Debug)]
pub struct JobRank {
    priority: u8,
    ready: bool,
    share: (u64, u64),
    since: (u64, u64),
}

impl JobRank {
    /// Compares two jobs; the lesser is served first.
    pub fn compare(&self, other: &JobRank) -> Ordering {
        let plain = |place: &JobRank| (place.priority, place.ready);
        let by_share = || compare_parts(self.share, other.share);
        plain(self).cmp(&plain(other)).then_with(by_share).then(self.since.cmp(&other.since))
    }
}

/// The allocations at some point of a cycle.
#[derive(Clone)]
pub struct CycleAllocations {
    pub usage: Vec<Resources>,
    pub held: Vec<Resources>,
    pub free: Resources,
    /// By user, the number of tasks started minus the number stopped in this cycle.
    pub tasks: HashMap<UserId, i64>,
}

/// The context of a cycle, which does not change with its decisions.
pub struct VolcanoCycle<'c> {
    pub volcano: &'c Volcano,
    pub levels: &'c Levels,
    pub tree: &'c Tree,
    pub books: &'c Books,
}

/// The tasks that jobs may lose under the gang plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpareTasks {
    /// The tasks beyond the minimum of a job.
    Beyond,
    /// In addition, the last task of a job with a minimum of one task.
    Single,
    /// In addition, all tasks of a gang.
    Whole,
}

/// The tasks of a job that start together, and may request victims.
#[derive(Clone, Copy)]
pub struct Requester {
    pub next: Waiting,
    /// The number of tasks that start together.
    pub tasks: u32,
}

impl Requester {
    /// Returns the amounts of all these tasks.
    pub fn need(&self) -> Resources {
        self.next.each.times(self.tasks)
    }
}

impl VolcanoCycle<'_> {
    /// Returns the current allocations.
    pub fn allocations(&self, session: &Session, tasks: &HashMap<UserId, i64>) -> CycleAllocations {
        CycleAllocations {
            usage: session.usage.clone(),
            held: session.held.clone(),
            free: session.free,
            tasks: tasks.clone(),
        }
    }

    /// Returns how many tasks of a job run, including the decisions of this cycle.
    pub fn running(&self, tasks: &HashMap<UserId, i64>, user: UserId) -> i64 {
        self.books.running(user) as i64 + tasks.get(&user).copied().unwrap_or(0)
    }

    /// Returns the minimum number of running tasks of a job in a queue; a gang needs all its tasks.
    pub fn least(&self, queue: QueueAt) -> i64 {
        self.tree[queue].least
    }

    /// Returns the tasks of a job that start together: the tasks that it lacks to its minimum (all of a gang), or else one task.
    pub fn requester(&self, tasks: &HashMap<UserId, i64>, next: Waiting) -> Requester {
        let lacking = self.least(next.queue) - self.running(tasks, next.user);
        let count = if next.gang { next.tasks } else { next.tasks.min(lacking.clamp(1, u32::MAX.into()) as u32) };
        Requester { next, tasks: count }
    }

    /// Returns whether a job has too few tasks to run.
    pub fn is_starving(&self, tasks: &HashMap<UserId, i64>, next: &Waiting) -> bool {
        next.gang || self.running(tasks, next.user) < self.least(next.queue)
    }

    /// Returns the rank of a waiting job.
    pub fn place(&self, now: &CycleAllocations, next: &Waiting) -> JobRank {
        JobRank {
            priority: next.priority,
            ready: !self.is_starving(&now.tasks, next),
            share: self.share(now, next.user),
            since: (next.since.0.0, next.since.1),
        }
    }

    /// Returns the rank of the job of running tasks.
    pub fn place_of(&self, now: &CycleAllocations, runs: &Runs) -> JobRank {
        JobRank {
            priority: runs.priority,
            ready: runs.gang || self.running(&now.tasks, runs.user) >= self.least(runs.queue),
            share: self.share(now, runs.user),
            since: (runs.since.0.0, runs.since.1),
        }
    }

    /// Returns the dominant share of a job.
    fn share(&self, now: &CycleAllocations, user: UserId) -> (u64, u64) {
        self.dominant(&now.held[user.index()])
    }

    fn dominant(&self, amounts: &Resources) -> (u64, u64) {
        let quotas = &self.volcano.quotas;
        let part = |d: usize| match self.volcano.capacity.0[d] {
            0 => (u64::from(amounts.0[d] > 0), 1),
            all => (amounts.0[d], all),
        };
        (0..quotas.dims).map(part).max_by(|one, other| compare_parts(*one, *other)).unwrap_or((0, 1))
    }

    /// Returns the hierarchical shares if the order uses them.
    pub fn hierarchy(&self) -> Option<Hierarchy<'_>> {
        let quotas = &self.volcano.quotas;
        (quotas.plugin == Plugin::Drf).then_some(Hierarchy {
            tree: self.tree,
            books: self.books,
            capacity: self.volcano.capacity,
            dims: quotas.dims,
        })
    }

    /// Returns the order of queues; of equal queues, the older is first.
    pub fn queues<'h>(&'h self, now: &'h CycleAllocations) -> impl Fn(QueueAt, QueueAt) -> Ordering + 'h {
        let hierarchy = self.hierarchy();
        let shares = hierarchy.map(|hierarchy| hierarchy.shares(&now.held, &self.all(now)));
        move |one, other| match (&hierarchy, &shares) {
            (Some(hierarchy), Some(shares)) => {
                hierarchy.compare(shares, one, other).partial_cmp(&0.0).unwrap_or(Ordering::Equal).then(one.cmp(&other))
            }
            _ => self.volcano.quotas.compare(self.tree, self.levels, &now.usage, one, other).then(one.cmp(&other)),
        }
    }

    /// Returns the first of these queues.
    pub fn first_queue(&self, now: &CycleAllocations, queues: impl Iterator<Item = QueueAt>) -> Option<QueueAt> {
        let order = self.queues(now);
        queues.min_by(|one, other| order(*one, *other))
    }

    /// Returns the tasks of other queues that may be preempted for a task, among these running tasks of one machine, in the given order.
    /// The first tier of plugins that finds any such task decides.
    pub fn reclaimable(&self, now: &CycleAllocations, requester: &Requester, units: &[Runs]) -> Vec<Runs> {
        let rules = &self.volcano.rules;
        let own = self.may_lose(now, requester, units);
        if rules.guarded {
            return self.by_gang(now, &own, SpareTasks::Whole);
        }
        if self.volcano.quotas.plugin == Plugin::Drf {
            // The plugin is the only one of its tier.
            return own;
        }
        let first = self.by_gang(now, units, SpareTasks::Beyond);
        if first.is_empty() && !rules.first_tier_alone { own } else { first }
    }

    /// Returns the tasks of the requester's own queue that may be preempted for a task, in the same way.
    pub fn preemptable(&self, now: &CycleAllocations, requester: &Requester, units: &[Runs]) -> Vec<Runs> {
        let rules = &self.volcano.rules;
        let mut first = units.to_vec();
        if !rules.gang_decides {
            first.retain(|runs| runs.priority > requester.next.priority);
        }
        if rules.gang_preemptable {
            first = self.by_gang(now, &first, if rules.gang_decides { SpareTasks::Single } else { SpareTasks::Beyond });
        }
        if first.is_empty() && rules.drf_preemptable {
            return self.by_share(now, requester, units);
        }
        first
    }

    /// Returns the tasks that jobs may lose under the gang plugin.
    fn by_gang(&self, now: &CycleAllocations, units: &[Runs], spares: SpareTasks) -> Vec<Runs> {
        let mut left: HashMap<UserId, i64> = HashMap::new();
        let spare = |runs: &&Runs| {
            if runs.gang {
                return spares == SpareTasks::Whole;
            }
            let left = left.entry(runs.user).or_insert_with(|| self.running(&now.tasks, runs.user));
            let least = self.least(runs.queue);
            let free = *left > least || (spares != SpareTasks::Beyond && least == 1);
            *left -= i64::from(free);
            free
        };
        units.iter().filter(spare).copied().collect()
    }

    /// Returns the tasks that a job may lose by dominant share: without the task, its share must be at least that of the requester with
    /// its task, up to a millionth.
    fn by_share(&self, now: &CycleAllocations, requester: &Requester, units: &[Runs]) -> Vec<Runs> {
        let own = self.dominant(&(now.held[requester.next.user.index()] + requester.next.each));
        let mut left: HashMap<UserId, Resources> = HashMap::new();
        let keeps = |runs: &&Runs| {
            let left = left.entry(runs.user).or_insert(now.held[runs.user.index()]);
            *left = left.saturating_sub(runs.unit());
            let other = self.dominant(left);
            // own <= other + 1/1000000
            let product = |one: u64, other: u64| U256::from(one) * U256::from(other);
            let million = U256::from(1_000_000u64);
            product(own.0, other.1) * million <= product(other.0, own.1) * million + product(own.1, other.1)
        };
        units.iter().filter(keeps).copied().collect()
    }

    /// Returns the tasks that queues may lose by the rule of the plugin.
    fn may_lose(&self, now: &CycleAllocations, requester: &Requester, units: &[Runs]) -> Vec<Runs> {
        if let Some(hierarchy) = self.hierarchy() {
            return self.by_hierarchy(&hierarchy, now, requester, units);
        }
        let mut left: HashMap<QueueAt, Resources> = HashMap::new();
        let loses = |runs: &&Runs| {
            let left = left.entry(runs.queue).or_insert(now.usage[runs.queue]);
            let unit = runs.unit();
            let quotas = &self.volcano.quotas;
            let loses = quotas.may_lose(self.tree, self.levels, runs.queue, left, &unit, &requester.next.each);
            if loses {
                *left = left.saturating_sub(unit);
            }
            loses
        };
        units.iter().filter(loses).copied().collect()
    }

    /// Returns the tasks of queues that sort behind the requester's queue once the requester's task is added and the victim is removed.
    /// Without the guard, each victim is judged alone.
    fn by_hierarchy(
        &self,
        hierarchy: &Hierarchy,
        now: &CycleAllocations,
        requester: &Requester,
        units: &[Runs],
    ) -> Vec<Runs> {
        let (mut held, mut all) = (now.held.clone(), self.all(now));
        let change = |held: &mut [Resources], all: &mut Resources, user: UserId, amount: &Resources, more: bool| {
            change_amounts(&mut held[user.index()], amount, more);
            change_amounts(all, amount, more);
        };
        change(&mut held, &mut all, requester.next.user, &requester.next.each, true);
        let mut victims = Vec::new();
        for runs in units {
            change(&mut held, &mut all, runs.user, &runs.unit(), false);
            let shares = hierarchy.shares(&held, &all);
            let behind = hierarchy.compare(&shares, requester.next.queue, runs.queue) < 0.0;
            if behind {
                victims.push(*runs);
            }
            // Under the guard, preceding victims remain removed when a victim is judged.
            if !(behind && self.volcano.rules.guarded) {
                change(&mut held, &mut all, runs.user, &runs.unit(), true);
            }
        }
        victims
    }

    /// Returns the total allocation.
    pub fn all(&self, now: &CycleAllocations) -> Resources {
        self.volcano.capacity.saturating_sub(now.free)
    }
}
