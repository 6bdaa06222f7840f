//! The preemption rules of the run: which running tasks may be stopped for a waiting task that fits nowhere.
//!
//! *Urgent*: tasks of lower priority, of the users that the rule permits ([`PreemptFrom`]).
//!
//! *Order*: tasks behind the waiting task in the job order of the run, as in shortest remaining time or least attained service with
//! preemption. Under a policy of one line (`line/srpt`) the victims are tasks of all users. Under all other policies the order applies
//! inside users (`drf/srpt`), and the victims are tasks of the same user.
//!
//! *Share*: tasks of users with larger shares. A user gets room only if its share, with the task, is at most the share of each giving user
//! without the tasks that it gives. This is the first of Kueue's strategies for fair sharing ("LessThanOrEqualToFinalShare"), here with
//! the policy's own ranks. Afterwards the giver is not behind the receiver, so the giver cannot take the room back until another change
//! occurs.
//!
//! The rules are in `docs/cluster.md`: "Priorities and giving back", "Room for what is first in the order" and "Room for fair shares".

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::books::{Books, Partition};
use crate::engine::kernel::Kernel;
use crate::policy::{
    Ask, Groups, Pending, Policy, Preemption, Queue, Rank, Room, RunningTasks, RunningView, Shares, Victims,
};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;
use plimsoll_base::units::{MachineId, Resources, UserId};

named! {
    /// The users with tasks that may be asked.
    PreemptFrom {
        Any "any": "Anybody's",
        SameUser "same-user": "The asker's own",
        SameGroup "same-group": "Those of the asker's quota group",
        AboveQuota "above-quota":
            "Tasks of users in a quota group, or below one, with an allocation above its runtime quota",
    }
}

/// The rule that stops tasks of lower priority, the least urgent first, until some machine has room.
pub struct Urgent {
    from: PreemptFrom,
    /// The last requesting user and the version of the running tasks, and whether each user may be asked, by id and partition. Users
    /// beyond the end of the list may be asked.
    eligible: (Option<(u64, UserId)>, Vec<bool>),
}

impl Urgent {
    pub fn new(from: PreemptFrom) -> Urgent {
        Urgent { from, eligible: (None, Vec::new()) }
    }
}

impl Preemption for Urgent {
    fn propose(
        &mut self,
        queue: &Queue,
        ask: &Ask,
        running: &dyn RunningView,
        books: &Books,
    ) -> Result<Option<Victims>> {
        let requester = Some((running.version(), queue.user));
        if self.eligible.0 != requester {
            self.eligible = (requester, eligible(self.from, queue.user, running, books)?);
        }
        let (eligible, partitions) = (&self.eligible.1, books.partitions());
        let mut gathered = Gathered::default();
        let mut found = None;
        running.all(&mut |tasks| {
            if tasks.priority <= queue.priority {
                return ControlFlow::Break(());
            }
            if !eligible.get(tasks.user.index() * partitions + tasks.partition.index()).copied().unwrap_or(true) {
                return ControlFlow::Continue(());
            }
            found = gathered.add(ask, running, (tasks.key, tasks.machine, tasks.count), tasks.footprint);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Ok(found)
    }
}

/// Returns whether each user may be asked, by id and partition; users beyond the end of the list may be asked. Errors: a policy without
/// the required quota groups.
fn eligible(from: PreemptFrom, requester: UserId, running: &dyn RunningView, books: &Books) -> Result<Vec<bool>> {
    let partitions = books.partitions();
    let users = 0..books.users() as u32;
    let all = |may: bool| std::iter::repeat_n(may, partitions);
    if from == PreemptFrom::Any {
        return Ok(Vec::new());
    }
    if from == PreemptFrom::SameUser {
        return Ok(users.flat_map(|user| all(user == requester.0)).collect());
    }
    let Some(groups) = running.groups() else {
        let problem = format!("victims are restricted to '{}', and the policy has no quota groups", from.name());
        return Err(Error::Mismatch { problem });
    };
    let group = |user: u32| groups.tree().group_of(running.name(UserId(user)));
    if from == PreemptFrom::SameGroup {
        let own = group(requester.0);
        return Ok(users.flat_map(|user| all(own.is_some() && group(user) == own)).collect());
    }
    above_quota(groups, running, books)
}

/// Returns for each user, by id and partition, whether its group or one above has an allocation above its runtime quota. Errors: the
/// policy's.
fn above_quota(groups: &dyn Groups, running: &dyn RunningView, books: &Books) -> Result<Vec<bool>> {
    let (tree, levels, dims) = (groups.tree(), groups.levels()?, books.dims());
    let group = |user: u32| tree.group_of(running.name(UserId(user)));
    let mut held = vec![0u64; levels.len()];
    let resources = tree.groups.first().map_or(0, |about| about.limits.len());
    let mut above = vec![false; tree.groups.len()];
    let partitions = books.partitions() as u8;
    let who = (0..books.users() as u32).flat_map(|user| (0..partitions).map(move |at| (user, Partition(at))));
    for (user, partition) in who.clone() {
        let mut next = group(user).map(|group| tree.place_in(group, partition));
        while let Some(at) = next {
            for d in 0..resources.min(dims) {
                held[at * resources + d] += books.partition(partition).allocated(UserId(user))[d];
            }
            next = tree.groups[at].parent;
        }
    }
    for (at, above) in above.iter_mut().enumerate() {
        *above = (0..resources).any(|d| held[at * resources + d] > levels[at * resources + d].runtime);
    }
    let over = |(user, partition): (u32, Partition)| {
        let leaf = group(user).map(|group| tree.place_in(group, partition));
        std::iter::successors(leaf, |at| tree.groups[*at].parent).any(|at| above[at])
    };
    Ok(who.map(over).collect())
}

/// The rule that stops the last tasks in the job order first. Tasks with equal keys are stopped in the usual order of stopping.
#[derive(Default)]
pub struct VictimOrder {
    /// Whether the sets of all users are in one order.
    one_line: bool,
    /// The largest key of running tasks, with the version of the running tasks that it is valid for.
    last: Option<(u64, u128)>,
}

/// Running tasks that are behind the requesting task in the order.
struct LaterTasks {
    order: u128,
    key: u64,
    machine: MachineId,
    count: u32,
    each: Resources,
}

impl VictimOrder {
    pub fn new(one_line: bool) -> VictimOrder {
        VictimOrder { one_line, last: None }
    }

    /// Returns whether any running task is behind a key.
    fn any_behind(&mut self, key: u128, running: &dyn RunningView) -> bool {
        let version = running.version();
        if self.last.is_none_or(|(of, _)| of != version) {
            let mut last = 0;
            running.all(&mut |tasks| {
                last = last.max(tasks.order);
                ControlFlow::Continue(())
            });
            self.last = Some((version, last));
        }
        self.last.is_some_and(|(_, last)| last > key)
    }
}

impl Preemption for VictimOrder {
    fn propose(
        &mut self,
        queue: &Queue,
        ask: &Ask,
        running: &dyn RunningView,
        books: &Books,
    ) -> Result<Option<Victims>> {
        let Some(own) = queue.key.filter(|key| self.any_behind(*key, running)) else { return Ok(None) };
        let mut behind: Vec<LaterTasks> = Vec::new();
        let mut visit = |tasks: &RunningTasks| {
            if tasks.order > own {
                let RunningTasks { order, key, machine, count, footprint, .. } = *tasks;
                behind.push(LaterTasks { order, key, machine, count, each: Resources::from_slice(footprint) });
            }
            ControlFlow::Continue(())
        };
        if self.one_line {
            running.all(&mut visit)
        } else {
            running.of_users(&[queue.user], &mut visit)
        }
        behind.sort_by_key(|tasks| Reverse(tasks.order));
        let mut gathered = Gathered::default();
        Ok(behind.into_iter().find_map(|LaterTasks { key, machine, count, each, .. }| {
            gathered.add(ask, running, (key, machine, count), each.slice(books.dims()))
        }))
    }
}

/// The rule that chooses victims by the shares of users, the user that is furthest ahead first.
#[derive(Default)]
pub struct ShareOrder {
    /// All users with running tasks and their shares, with the version of the running tasks that they are valid for.
    ahead: (Option<u64>, Vec<(Rank, UserId)>),
}

/// The room on one machine: the free amounts plus the amounts of the victims chosen so far.
struct Offer {
    room: Resources,
    asked: Vec<(u64, u32)>,
}

/// The tasks that one user would give on one machine.
#[derive(Default)]
struct GivenRoom {
    amounts: Resources,
    gangs: HashSet<u32>,
}

/// Returns the share and the allocation of a user after these gains and losses.
fn after(shares: &dyn Shares, user: UserId, pending: Pending, books: &Books) -> (Rank, Resources) {
    let allocated = Resources::from_slice(books.allocated(user));
    let then = (allocated + pending.gains).saturating_sub(pending.losses);
    (shares.rank_with(user, then.slice(books.dims()), books), then)
}

/// Returns the position of a user among the requesting ones: its share with all of its requests.
pub fn share_with(policy: &dyn Policy, user: UserId, pending: Pending, books: &Books) -> Rank {
    policy.shares().map_or(Rank::default(), |shares| after(shares, user, pending, books).0)
}

impl ShareOrder {
    /// Returns the users with shares above this share after their pending losses. The largest share is first; among equal shares the user
    /// that appeared last is first.
    fn ahead_of(&mut self, share: Rank, shares: &dyn Shares, running: &dyn RunningView, books: &Books) -> Vec<UserId> {
        let users = || (0..books.users() as u32).map(UserId).filter(|user| books.running(*user) > 0);
        if self.ahead.0 != Some(running.version()) {
            let rank = |user| (after(shares, user, Pending::default(), books).0, user);
            self.ahead = (Some(running.version()), users().map(rank).collect());
            self.ahead.1.sort_unstable_by_key(|at| Reverse(*at));
        }
        let held = self.ahead.1.iter().take_while(|(rank, _)| *rank > share);
        let left = |(rank, user): &(Rank, UserId)| match running.pending(*user).losses {
            Resources::ZERO => (*rank, *user),
            losses => (after(shares, *user, Pending { losses, ..Pending::default() }, books).0, *user),
        };
        let mut ahead: Vec<(Rank, UserId)> = held.map(left).filter(|(rank, _)| *rank > share).collect();
        ahead.sort_unstable_by_key(|at| Reverse(*at));
        ahead.into_iter().map(|(_, user)| user).collect()
    }
}

impl Preemption for ShareOrder {
    fn propose(
        &mut self,
        queue: &Queue,
        ask: &Ask,
        running: &dyn RunningView,
        books: &Books,
    ) -> Result<Option<Victims>> {
        let Some(shares) = running.shares() else { return Ok(None) };
        let (now, mut then) = after(shares, queue.user, running.pending(queue.user), books);
        then += ask.footprint;
        // If the allocation would exceed the capacity, no victims can make room for the task.
        if !then.fits(books.offered()) {
            return Ok(None);
        }
        let footprint = Resources::from_slice(ask.footprint);
        let with = shares.rank_with(queue.user, then.slice(books.dims()), books);
        let mut there: HashMap<MachineId, Offer> = HashMap::new();
        for user in self.ahead_of(now, shares, running, books) {
            let losses = running.pending(user).losses;
            let mut given: HashMap<MachineId, GivenRoom> = HashMap::new();
            let mut found = None;
            running.of_users(&[user], &mut |tasks| {
                let offer = || Offer { room: running.free(tasks.machine), asked: Vec::new() };
                let offer = there.entry(tasks.machine).or_insert_with(offer);
                let given = given.entry(tasks.machine).or_default();
                let fair = |amounts: Resources| {
                    let mut losses = losses;
                    losses += amounts;
                    after(shares, user, Pending { losses, ..Pending::default() }, books).0 >= with
                };
                if give(tasks, offer, given, ask.footprint, fair) && footprint.fits(&offer.room) {
                    found = Some(std::mem::take(&mut offer.asked));
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            if let Some(tasks) = found {
                return Ok(Some(Victims { tasks, room: Room::Kept, cause: None }));
            }
        }
        Ok(None)
    }
}

/// Adds tasks of a user to an offer: as many as are needed and as the share rule permits. Returns whether any were added.
fn give(
    tasks: &RunningTasks,
    offer: &mut Offer,
    given: &mut GivenRoom,
    need: &[u64],
    fair: impl Fn(Resources) -> bool,
) -> bool {
    let most = short(need, &offer.room, tasks.footprint).min(u64::from(tasks.count)) as u32;
    let each = Resources::from_slice(tasks.footprint);
    let with = |count: u32| {
        let mut amounts = given.amounts;
        match tasks.gang {
            Some(gang) if given.gangs.contains(&gang.number) => {}
            Some(gang) => amounts += each.times(gang.tasks),
            None => amounts += each.times(count),
        }
        amounts
    };
    let Some(count) = (1..=most).rev().find(|count| fair(with(*count))) else { return false };
    given.amounts = with(count);
    given.gangs.extend(tasks.gang.map(|gang| gang.number));
    offer.room += each.times(count);
    offer.asked.push((tasks.key, count));
    true
}

/// Returns whether a user stays behind all givers after these gains and losses.
pub fn stays_behind(kernel: &Kernel, user: UserId, gains: Resources, givers: &HashMap<UserId, Pending>) -> bool {
    let Some(shares) = kernel.policy().shares() else { return false };
    let with = after(shares, user, Pending { gains, ..Pending::default() }, kernel.books()).0;
    let without = |(giver, pending): (&UserId, &Pending)| after(shares, *giver, *pending, kernel.books()).0;
    givers.iter().map(without).all(|without| without >= with)
}

/// By machine, the free amounts including those of the victims so far, and the victims by key.
#[derive(Default)]
struct Gathered(HashMap<MachineId, (Resources, Vec<(u64, u32)>)>);

impl Gathered {
    /// Adds equal tasks (key, machine, number, and amounts of each): as many as are needed to cover the shortage on their machine. Returns
    /// the proposal once this machine has enough room.
    fn add(
        &mut self,
        ask: &Ask,
        running: &dyn RunningView,
        (key, machine, count): (u64, MachineId, u32),
        each: &[u64],
    ) -> Option<Victims> {
        let (room, asked) = self.0.entry(machine).or_insert_with(|| (running.free(machine), Vec::new()));
        let count = short(ask.footprint, room, each).min(u64::from(count)) as u32;
        if count == 0 {
            return None;
        }
        *room += Resources::from_slice(each).times(count);
        asked.push((key, count));
        Resources::from_slice(ask.footprint).fits(room).then(|| Victims {
            tasks: std::mem::take(asked),
            room: Room::Kept,
            cause: None,
        })
    }
}

/// Returns how many tasks of these amounts are needed to cover the shortage of each resource that they use.
fn short(need: &[u64], room: &Resources, each: &[u64]) -> u64 {
    let needs = need.iter().zip(room.0).zip(each).filter(|((need, room), each)| *need > room && **each > 0);
    needs.map(|((need, room), each)| (need - room).div_ceil(*each)).max().unwrap_or(0)
}
