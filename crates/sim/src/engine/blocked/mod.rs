//! Why waiting tasks do not start: the reason of each waiting set of a watched job, at the end of an instant.
//!
//! The state is constant between two instants, so the reason at the end of an instant holds until the next one. Reasons are computed on
//! request ([`Engine::blocked`]); a run without requests has no cost. The state does not change, and the policy receives no call that could
//! change it.

mod reasons;

pub use reasons::{BlockReason, MissingRoom, REASONS, RankedBefore, ReasonRow};

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use super::kernel::{Kernel, LineKey, QueueId, QueueState, ScopeId, SetSlot, StoppedTasks, WatchedJob, WatchedJobs};
use super::round::OnBlocked;
use crate::cluster::Cluster;
use crate::policy::{GroupTree, Lens, Reason, Verdict};
use plimsoll_base::units::{JobId, MAX_DIMS, MachineId, Resources, Time, UserId};

/// Waiting tasks of one row of a watched job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedTasks {
    /// The job.
    pub job: JobId,
    /// The row in the trace.
    pub row: u64,
    /// Number of waiting tasks.
    pub tasks: u32,
    /// Number of earlier stops.
    pub attempt: u32,
    /// The instant at which they began to wait: the earliest possible start, or their last stop.
    pub since: Time,
    /// The machines that they may use; see [`Engine::holders`].
    pub machines: MachineScope,
    /// The reason.
    pub reason: BlockReason,
}

/// A set of machines that tasks may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineScope(ScopeId);

impl Engine<'_> {
    /// Watches jobs that are submitted from now on, so that [`Engine::blocked`] reports them.
    pub fn watch(&mut self, jobs: WatchedJobs) {
        self.kernel.watch(jobs);
    }

    /// Returns the watched jobs that were submitted and have not ended, by id.
    pub fn watched(&self) -> Vec<WatchedJob> {
        self.kernel.watched_jobs()
    }

    /// Removes and returns the watched jobs that have ended since the last call.
    pub fn take_watched_ends(&mut self) -> Vec<WatchedJob> {
        self.kernel.take_watched_ends()
    }

    /// Removes and returns the stops of watched jobs since the last call.
    pub fn take_watched_stops(&mut self) -> Vec<StoppedTasks> {
        self.kernel.take_watched_stops()
    }

    /// Returns the waiting tasks of the watched jobs with their reasons, by row. For use between two steps.
    pub fn blocked(&mut self) -> Vec<BlockedTasks> {
        let slots = self.kernel.watched_sets();
        let too_large = self.kernel.watched_too_large().iter().map(|&(job, row, tasks)| BlockedTasks {
            job,
            row,
            tasks,
            attempt: 0,
            since: self.kernel.now(),
            machines: MachineScope(ScopeId::WHOLE),
            reason: BlockReason::TooLarge,
        });
        let mut blocked: Vec<BlockedTasks> = too_large.collect();
        blocked.extend(slots.into_iter().map(|slot| self.blocked_tasks(slot)));
        blocked.sort_by_key(|tasks| tasks.row);
        blocked
    }

    /// Returns the scope of all machines.
    pub fn all_machines(&self) -> MachineScope {
        MachineScope(ScopeId::WHOLE)
    }

    /// Returns the amounts that the running tasks of each user reserve on the present machines of a scope, through the policy's lens.
    pub fn holders(&self, machines: MachineScope) -> BTreeMap<UserId, Resources> {
        let (kernel, MachineScope(scope)) = (&self.kernel, machines);
        let mut holders: BTreeMap<UserId, Resources> = BTreeMap::new();
        let books = kernel.books();
        if scope == ScopeId::WHOLE && present(kernel, scope).count() == kernel.machines().len() {
            let users = (0..books.users() as u32).map(UserId).filter(|user| books.running(*user) > 0);
            return users.map(|user| (user, Resources::from_slice(books.allocated(user)))).collect();
        }
        let there = |machine| kernel.machines().is_present(machine) && kernel.scopes().contains(scope, machine);
        for tasks in kernel.all_running().filter(|tasks| there(tasks.machine)) {
            *holders.entry(kernel.set(tasks.set).user).or_default() +=
                kernel.footprint(tasks.set).times(tasks.count.get());
        }
        holders
    }

    /// Returns the tasks that have started at the present instant on machines of a scope: for each user their number, and the amounts that
    /// they reserve, through the policy's lens.
    pub fn started_now(&self, machines: MachineScope) -> BTreeMap<UserId, (u64, Resources)> {
        let (kernel, MachineScope(scope)) = (&self.kernel, machines);
        let mut started: BTreeMap<UserId, (u64, Resources)> = BTreeMap::new();
        let now = |machine, start| start == kernel.now() && kernel.scopes().contains(scope, machine);
        for tasks in kernel.all_running().filter(|tasks| now(tasks.machine, tasks.start)) {
            let (count, amounts) = started.entry(kernel.set(tasks.set).user).or_default();
            *count += u64::from(tasks.count.get());
            *amounts += kernel.footprint(tasks.set).times(tasks.count.get());
        }
        started
    }

    /// Returns the capacity of the present machines of a scope, through the policy's lens.
    pub fn capacity_of(&self, machines: MachineScope) -> Resources {
        present(&self.kernel, machines.0).map(|machine| *self.kernel.machines().capacity(machine)).sum()
    }

    /// Returns the description of the cluster.
    pub fn cluster(&self) -> &Cluster {
        self.kernel.cluster()
    }

    /// Returns the name of a user. Panics: for an id that the run has not assigned (a programmer error).
    pub fn user_name(&self, user: UserId) -> &str {
        self.kernel.user_name(user)
    }

    /// Returns the groups of users, if the policy has groups.
    pub fn groups(&self) -> Option<&GroupTree> {
        self.kernel.policy().groups().map(|groups| groups.tree())
    }

    /// Returns whether the policy plans the machines of launches, in an order of its own.
    pub fn plans_machines(&self) -> bool {
        self.kernel.policy().needs().nominates
    }

    fn blocked_tasks(&self, slot: SetSlot) -> BlockedTasks {
        let (set, details) = (self.kernel.set(slot), self.kernel.details(slot));
        BlockedTasks {
            job: self.kernel.job_id(slot),
            row: set.row,
            tasks: set.waiting,
            attempt: details.attempt,
            since: details.since,
            machines: MachineScope(self.kernel.queues().scope(set.queue)),
            reason: self.reason(slot),
        }
    }

    /// Returns the first reason that applies to a waiting set, in the order of [`REASONS`].
    fn reason(&self, slot: SetSlot) -> BlockReason {
        let kernel = &self.kernel;
        let set = kernel.set(slot);
        if set.release > kernel.now() {
            return BlockReason::Submission;
        }
        if set.awaits_stage() {
            return BlockReason::Stage;
        }
        let Some(head) = kernel.head(set.queue).filter(|_| set.is_listed()) else { return BlockReason::Unknown };
        if let Some((asked, machine, missing)) = self.extensions.asked_for(kernel, slot) {
            return BlockReason::Victims { asked, machine, missing };
        }
        let missing = missing_room(kernel, slot, self.extensions.gathered(slot, kernel));
        match refusal(kernel, slot) {
            // A policy that plans machines has a rank only for planned launches.
            Some(Reason::NoRoom(_)) if missing.is_some() => return lack_of_room(kernel, slot, missing),
            Some(reason) => return BlockReason::Rule(reason),
            None if missing.is_none() && !self.decides() => return BlockReason::Busy,
            None => {}
        }
        if head != slot && !self.options.on_blocked.backfills() {
            return BlockReason::Own { job: kernel.job_name_of(head), missing };
        }
        self.ranked_before(slot, missing).unwrap_or_else(|| lack_of_room(kernel, slot, missing))
    }

    /// Returns the reason that other sets come first, if any do that may use the same machines and that the policy admits.
    fn ranked_before(&self, slot: SetSlot, missing: Option<MissingRoom>) -> Option<BlockReason> {
        let kernel = &self.kernel;
        if kernel.policy().needs().by_machine {
            return None;
        }
        let (key, user) = (kernel.line_key_of(slot), kernel.set(slot).user);
        let backfills = self.options.on_blocked.backfills();
        let mut overlaps = BTreeMap::new();
        let mut before: Vec<(LineKey, SetSlot)> = Vec::new();
        for queue in (0..kernel.queues().len() as u32).map(QueueId) {
            let Some(head) = kernel.head(queue) else { continue };
            let sets = if backfills { kernel.in_order(queue) } else { vec![head] };
            if kernel.queue_state(queue) == QueueState::Postponed {
                continue;
            }
            let scope = kernel.queues().scope(queue);
            let own = kernel.queues().scope(kernel.set(slot).queue);
            let anywhere = self.options.on_blocked == OnBlocked::Stop;
            if !anywhere && !*overlaps.entry(scope).or_insert_with(|| overlap(kernel, own, scope)) {
                continue;
            }
            before.extend(
                sets.into_iter().filter(|other| *other != slot).map(|other| (kernel.line_key_of(other), other)),
            );
        }
        before.retain(|(other, slot)| *other < key && refusal(kernel, *slot).is_none());
        let (first_key, first) = before.iter().min().copied()?;
        if kernel.set(first).user == user {
            return Some(BlockReason::Own { job: kernel.job_name_of(first), missing });
        }
        before.retain(|(_, slot)| kernel.set(*slot).user != user);
        let users: BTreeSet<UserId> = before.iter().map(|(_, slot)| kernel.set(*slot).user).collect();
        Some(BlockReason::Rank(RankedBefore {
            users: users.len() as u32,
            tasks: before.iter().map(|(_, slot)| u64::from(kernel.set(*slot).waiting)).sum(),
            first: kernel.set(first).user,
            job: kernel.job_name_of(first),
            first_rank: first_key.rank,
            rank: key.rank,
            missing,
            first_missing: missing_room(kernel, first, self.extensions.gathered(first, kernel)),
        }))
    }
}

/// Returns the reason for which the policy does not admit the next task of a set, or all tasks of a gang; `None` if it admits them.
fn refusal(kernel: &Kernel, slot: SetSlot) -> Option<Reason> {
    let set = kernel.set(slot);
    let together = if set.is_gang() { set.waiting } else { 1 };
    match kernel.policy().admit(&kernel.view(slot), &kernel.ask(slot, together), kernel.books()) {
        Verdict::Yes => None,
        Verdict::No(reason) | Verdict::Wait(reason) => Some(reason),
    }
}

/// Returns the present machines of a scope.
fn present<'k>(kernel: &'k Kernel, scope: ScopeId) -> impl Iterator<Item = MachineId> + 'k {
    let machines = (0..kernel.machines().len() as u32).map(MachineId);
    machines.filter(move |machine| kernel.machines().is_present(*machine) && kernel.scopes().contains(scope, *machine))
}

/// Returns whether two scopes have a machine in common.
fn overlap(kernel: &Kernel, one: ScopeId, other: ScopeId) -> bool {
    one == other
        || [one, other].contains(&ScopeId::WHOLE)
        || present(kernel, one).any(|machine| kernel.scopes().contains(other, machine))
}

/// Returns the reason of a set that comes first in rank order.
fn lack_of_room(kernel: &Kernel, slot: SetSlot, missing: Option<MissingRoom>) -> BlockReason {
    match missing {
        None => BlockReason::Untried,
        Some(missing) if missing.room > 0 => BlockReason::Gang(missing),
        Some(missing) => place(kernel, slot, missing).unwrap_or(match missing.in_total {
            true => BlockReason::Resources(missing),
            false => BlockReason::Fragmented(missing),
        }),
    }
}

/// Returns the room that a set lacks; `None` if its next task, or all tasks of a gang, have room. A gang may have reserved room for
/// `gathered` of its tasks.
fn missing_room(kernel: &Kernel, slot: SetSlot, gathered: u32) -> Option<MissingRoom> {
    let set = kernel.set(slot);
    let (together, need) = (if set.is_gang() { set.waiting } else { 1 }, kernel.needs(slot).1);
    let scope = kernel.queues().scope(set.queue);
    let mut free = [0u128; MAX_DIMS];
    let mut room = u64::from(gathered);
    for machine in present(kernel, scope) {
        room = room.saturating_add(kernel.machines().room(machine, need)).min(u64::from(together));
        free.iter_mut().zip(kernel.machines().free(machine).0).for_each(|(sum, free)| *sum += u128::from(free));
    }
    if room == u64::from(together) {
        return None;
    }
    // What the tasks without reserved room need: all of them if one has room, otherwise the next one.
    let count = if room > 0 { u128::from(together - gathered.min(together)) } else { 1 };
    let needed = || need.iter().enumerate().filter(|(_, need)| **need > 0);
    let short = |d: usize, need: u64| (u128::from(need) * count).saturating_sub(free[d]);
    // The resource with the largest missing part of the need; of equal ones the first.
    let larger = |(a, need_a): &(usize, &u64), (b, need_b): &(usize, &u64)| {
        let (one, other) = (short(*a, **need_a), short(*b, **need_b));
        one.saturating_mul(u128::from(**need_b)).cmp(&other.saturating_mul(u128::from(**need_a))).then(b.cmp(a))
    };
    let (d, one) = needed().max_by(larger)?;
    let in_total = short(d, *one);
    let nearest = if in_total > 0 { None } else { kernel.shortage(slot) };
    let resource = nearest.and_then(|short| short.resource).map_or(d, usize::from);
    let slots = matches!(kernel.policy().needs().lens, Lens::Slots(_));
    Some(MissingRoom {
        resource: (!slots).then_some(resource as u8),
        need: need[resource],
        short: nearest.map_or(u64::try_from(in_total).unwrap_or(u64::MAX), |short| short.amount),
        free: u64::try_from(free[resource]).unwrap_or(u64::MAX),
        together,
        room: room as u32,
        in_total: in_total > 0,
        of_devices: kernel.machines().hardware().is_some_and(|hardware| hardware.dims().contains(&resource)),
    })
}

/// Returns the reason that only machines outside the scope of a set have room, if some have.
fn place(kernel: &Kernel, slot: SetSlot, missing: MissingRoom) -> Option<BlockReason> {
    let scope = kernel.queues().scope(kernel.set(slot).queue);
    if scope == ScopeId::WHOLE {
        return None;
    }
    let need = kernel.needs(slot).1;
    let outside = present(kernel, ScopeId::WHOLE).filter(|machine| !kernel.scopes().contains(scope, *machine));
    let outside = outside.filter(|machine| kernel.machines().room(*machine, need) > 0).count() as u32;
    let label = kernel.scopes().label(scope).map(str::to_owned);
    let inside = present(kernel, scope).count() as u32;
    (outside > 0).then_some(BlockReason::Place { label, inside, outside, missing })
}
