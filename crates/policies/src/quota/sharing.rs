//! One tree of groups and its users: for the cluster, or for the machines with a label.
//!
//! [`Sharing`] combines the tree of quotas, the users of its leaves, the leaves that wait for quota, and the groups with excess to reclaim.
//! A user's allocation and pending demand are those in the books of the tree's partition.

use super::file::{GroupEntry, GroupOrder, QuotaFile, Reclaim};
use super::gate::Gates;
use super::members::{List, MemberState, Members};
use super::overdue::{Overdue, OverdueGroup};
use super::tree::{self, Tree};
use crate::{Ask, GroupLevel, GroupLimits, Queue, Rank, Reason, Setup, Verdict};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_sim::books::{Books, Partition, WEIGHT_ONE};

/// The quotas of a tree's groups, and the users that wait for quota.
///
/// Cost of a round: O(log groups) per changed user, plus O(waiting users of the groups that are neither refused nor satisfied); refused
/// groups cost nothing until a change could admit them.
#[derive(Debug)]
pub(super) struct Sharing {
    partition: Partition,
    inside: GroupOrder,
    tree: Tree,
    gates: Gates,
    /// The groups above their quota; `None` if the excess is never reclaimed.
    overdue: Option<Overdue>,
    leaves: Vec<Leaf>,
    users: Members,
    /// The leaves with waiting users that are not refused.
    open: Vec<u32>,
    /// The leaves to visit again in the next round even without a reported change.
    again: Vec<u32>,
    /// The leaves with users that have changed since the last round; empty between rounds.
    changed: Vec<u32>,
    seen: VisitedGroups,
}

/// The amounts that a group must return: the least urgent running tasks of its users are stopped until these amounts are free.
pub(super) struct TakeBack {
    /// The group, by its index in [`GroupTree`](crate::GroupTree).
    pub group: usize,
    /// Its descendants that precede it in the list. If one of them returns anything, this group is skipped.
    pub below: Vec<usize>,
    /// The users of the group.
    pub users: Vec<UserId>,
    /// The partition of the tasks.
    pub partition: Partition,
    /// The amounts that must be free, per resource.
    pub amount: Resources,
}

/// The state of a leaf group; unused for groups with children.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[repr(align(64))]
struct Leaf {
    /// The rank: used over runtime quota.
    key: u128,
    /// The waiting users that are not refused.
    open: List,
    /// The refused users.
    refused: List,
    /// The position among the open leaves, from 1; 0 if the leaf is not open.
    place: u32,
    /// While the leaf waits: the resource that is short, and the smallest request that does not fit.
    short: (u32, u64),
    /// Whether a user of the leaf may be queued with an outdated key.
    moved: bool,
}

const LEAF: Leaf = Leaf { key: 0, open: List::EMPTY, refused: List::EMPTY, place: 0, short: (0, 0), moved: false };

/// The groups that were visited in this round.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct VisitedGroups {
    round: u32,
    at: Vec<u32>,
}

impl VisitedGroups {
    /// Marks a group as visited; returns whether this is its first visit in this round.
    fn first(&mut self, group: u32) -> bool {
        std::mem::replace(&mut self.at[group as usize], self.round) != self.round
    }
}

/// The binary places of used / runtime quota, and the bits of the key.
const PLACES: u32 = 64;
const KEY_BITS: u32 = 92;

impl Sharing {
    /// Creates the tree of these groups of a file. Errors, with the line: the file names a resource that the run does not have.
    pub fn new(partition: Partition, file: &QuotaFile, groups: &[GroupEntry], setup: &Setup) -> Result<Sharing> {
        let tree = Tree::new(file, groups, setup)?;
        let groups = groups.len();
        Ok(Sharing {
            partition,
            inside: file.inside,
            gates: Gates::new(groups, tree.sets(), tree.dims),
            overdue: match file.reclaim {
                Reclaim::KillAfter(span) => Some(Overdue::new(&tree, span)),
                Reclaim::Never | Reclaim::Wait => None,
            },
            tree,
            leaves: vec![LEAF; groups],
            users: Members::new(setup.dims.len()),
            open: Vec::new(),
            again: Vec::new(),
            changed: Vec::new(),
            seen: VisitedGroups { round: 0, at: vec![0; groups] },
        })
    }

    /// Adds a user of this group.
    pub fn open(&mut self, leaf: u32) {
        self.users.open(leaf);
    }

    /// Returns the number of users.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Returns the group of a user.
    pub fn group_of(&self, user: UserId) -> usize {
        self.users.member(user).leaf as usize
    }

    /// Returns a group's minimum and maximum of every resource.
    pub fn limits(&self, group: usize) -> Vec<GroupLimits> {
        self.tree.limits(group)
    }

    /// Returns every group's quota, computed from scratch. Errors: amounts too large to add.
    pub fn levels(&self) -> Result<Vec<GroupLevel>> {
        self.tree.levels_from_scratch()
    }

    /// Returns the runtime quota of a group as of the last round, and the group's allocation.
    pub fn standing(&self, group: usize) -> (Vec<u64>, Vec<u64>) {
        (self.tree.runtime(group as u32).collect(), self.tree.allocated(group as u32).collect())
    }

    /// Sets the total to the capacity in the books, which changes with the machines.
    pub fn follow(&mut self, books: &Books) {
        self.tree.set_total(books.capacity());
    }

    /// Returns whether a user has an allocation or a request in this tree, now or at its last update.
    pub fn concerns(&mut self, user: UserId, books: &Books) -> bool {
        books.waiting(user) > 0
            || books.running(user) > 0
            || self.users.member(user).stand != MemberState::Idle
            || self.users.seen(user).iter().any(|seen| *seen != (0, 0))
    }

    /// Updates the allocation and the demand of a user.
    fn update_user(&mut self, user: UserId, books: &Books) {
        let leaf = self.users.member(user).leaf;
        let seen = self.users.seen(user);
        let held = books.allocated(user);
        if seen.iter().zip(held).any(|((before, _), now)| before != now) {
            self.tree.set_allocation(leaf, seen.iter().zip(held).map(|((before, _), &now)| (now, *before)));
        }
        for (d, (before, held)) in seen.iter_mut().zip(held).enumerate() {
            // An amount that exceeds 64 bits also exceeds the capacity.
            let wanted = u64::try_from(books.wanted(user, d)).unwrap_or(u64::MAX);
            self.tree.request(leaf, d, wanted, before.1);
            *before = (*held, wanted);
        }
        // Its next task may differ from the refused one.
        self.set_stand(user, if books.waiting(user) > 0 { MemberState::Open } else { MemberState::Idle });
    }

    /// Moves a user between the lists of its group.
    fn set_stand(&mut self, user: UserId, stand: MemberState) {
        let (leaf, before) = (self.users.member(user).leaf, self.users.member(user).stand);
        if stand == before {
            return;
        }
        let group = &mut self.leaves[leaf as usize];
        self.users.set_stand(user, stand, self.seen.round, &mut group.open, &mut group.refused);
        self.set_open(leaf);
    }

    /// Adds a leaf to the list of open leaves, or removes it.
    fn set_open(&mut self, leaf: u32) {
        let group = &mut self.leaves[leaf as usize];
        match (group.open.is_empty(), group.place) {
            (false, 0) => {
                self.open.push(leaf);
                group.place = self.open.len() as u32;
            }
            (true, place @ 1..) => {
                group.place = 0;
                self.open.swap_remove(place as usize - 1);
                if let Some(&last) = self.open.get(place as usize - 1) {
                    self.leaves[last as usize].place = place;
                }
            }
            _ => {}
        }
    }

    /// Updates a leaf's quotas and its key.
    fn refresh(&mut self, leaf: u32) {
        self.tree.read(leaf);
        self.set_key(leaf);
    }

    fn set_key(&mut self, leaf: u32) {
        let key = self.key(leaf);
        let group = &mut self.leaves[leaf as usize];
        group.moved |= std::mem::replace(&mut group.key, key) != key;
    }

    /// Computes the largest used over runtime quota of all resources, in steps of 2^-64.
    fn key(&self, leaf: u32) -> u128 {
        const MOST: u128 = (1 << KEY_BITS) - 1;
        let (mut used, mut quota) = (0, 1);
        for (held, runtime) in self.tree.allocated(leaf).zip(self.tree.runtime(leaf)) {
            if held > 0 && runtime == 0 {
                return MOST;
            }
            // A resource without an allocation does not count, even if its quota is 0: the left product is 0.
            if u128::from(held) * u128::from(quota) > u128::from(used) * u128::from(runtime) {
                (used, quota) = (held, runtime);
            }
        }
        let (whole, rest) = (used / quota, used % quota);
        let places = (u128::from(rest) << PLACES) / u128::from(quota);
        (u128::from(whole) << PLACES | places).min(MOST)
    }

    /// Checks a leaf with refused users that may be admitted now, and adds these users to `recalled`.
    fn recall(&mut self, leaf: u32, recalled: &mut Vec<UserId>) {
        self.gates.leave(leaf);
        if self.leaves[leaf as usize].refused.is_empty() {
            return;
        }
        self.refresh(leaf);
        if self.bar(leaf) {
            return;
        }
        let from = recalled.len();
        let fits = |user: &UserId| self.tree.above_quota(leaf, self.users.next_request(*user)).is_none();
        recalled.extend(self.users.list(&self.leaves[leaf as usize].refused).filter(fits));
        for &user in &recalled[from..] {
            self.set_stand(user, MemberState::Open);
        }
        if !self.leaves[leaf as usize].refused.is_empty() && !self.bar(leaf) {
            self.again.push(leaf);
        }
    }

    /// Recalls the users of leaves that need not wait any more.
    fn wake(&mut self, recalled: &mut Vec<UserId>) {
        let mut woken = std::mem::take(&mut self.again);
        if self.gates.any() {
            self.seen.round = self.seen.round.wrapping_add(1);
            for &leaf in &self.changed {
                let mut at = leaf;
                while at != tree::TOP && self.seen.first(at) {
                    self.gates.changed(at, &mut woken);
                    at = self.tree.nodes[at as usize].parent;
                }
            }
            let tree = &mut self.tree;
            self.gates.risen(|set, d| tree.level(set, d), &mut woken);
        }
        // Leaves are sorted in file order, so that the order of their waits has no effect.
        woken.sort_unstable();
        woken.dedup();
        for leaf in woken {
            self.recall(leaf, recalled);
        }
    }

    /// Registers a leaf as waiting for a resource that lacks the amount needed by the smallest request of its refused users. Returns
    /// whether there is such a resource.
    fn bar(&mut self, leaf: u32) -> bool {
        let mut least = Resources::uniform(u64::MAX);
        for user in self.users.list(&self.leaves[leaf as usize].refused) {
            least = least.min(Resources::from_slice(self.users.next_request(user)));
        }
        let Some((group, d, _)) = self.tree.above_quota(leaf, least.slice(self.tree.dims)) else { return false };
        let level = self.tree.level_for(group, d, least[d]);
        self.gates.wait(leaf, group, self.tree.nodes[group as usize].set, d, level);
        self.leaves[leaf as usize].short = (d as u32, least[d]);
        true
    }

    /// Computes the key of a user in a FAIR group: its dominant share over its weight, in steps of 2^-64.
    fn dominant_share(&self, user: UserId, books: &Books) -> u128 {
        let weights = books.weights().each(books.weight_class(user));
        let share = |(d, &held): (usize, &u64)| {
            let capacity = u128::from(books.capacity().0[d]).max(1);
            (u128::from(held) << PLACES) / capacity * u128::from(WEIGHT_ONE) / u128::from(weights[d])
        };
        books.allocated(user).iter().enumerate().map(share).max().unwrap_or(0)
    }
}

impl Sharing {
    /// Updates the state for the allocations and pending demand of these users. Returns the users with a rank that may have changed, or
    /// that may be tried again. Errors: amounts too large to add.
    pub fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Vec<UserId>> {
        self.seen.round = self.seen.round.wrapping_add(1);
        let round = self.seen.round;
        self.tree.look_again();
        let mut stale = Vec::new();
        for &user in changed {
            if self.users.member(user).stand == MemberState::Refused {
                stale.push(user);
            }
            self.update_user(user, books);
            let leaf = self.users.member(user).leaf;
            if changed.len() == 1 || self.seen.first(leaf) {
                self.changed.push(leaf);
            }
        }
        self.tree.update(&self.changed)?;
        if let Some(overdue) = &mut self.overdue {
            overdue.find_overdue(&mut self.tree, &self.changed, now);
        }
        self.wake(&mut stale);
        self.changed.clear();
        for at in 0..self.open.len() {
            let leaf = self.open[at];
            self.refresh(leaf);
            if std::mem::take(&mut self.leaves[leaf as usize].moved) {
                // Users that became active in this round are not queued yet, so they have no outdated rank.
                let there = |user: &UserId| self.users.member(*user).since != round;
                stale.extend(self.users.list(&self.leaves[leaf as usize].open).filter(there));
            }
        }
        Ok(stale)
    }

    /// Returns the excess of each group that has been above its quota for too long. Each group follows its descendants.
    pub fn take_back(&mut self, now: Time) -> Vec<TakeBack> {
        let Some(overdue) = &self.overdue else { return Vec::new() };
        let due = overdue.due(&mut self.tree, now);
        let of = |group: u32| {
            let below = |user: &UserId| self.tree.path(self.users.member(*user).leaf).any(|at| at == group);
            self.users.all().filter(below).collect()
        };
        let partition = self.partition;
        let place = |group: u32| partition.index() * self.leaves.len() + group as usize;
        due.into_iter()
            .map(|OverdueGroup { group, below, excess }| {
                let below = below.into_iter().map(place).collect();
                TakeBack { group: place(group), below, users: of(group), partition, amount: excess }
            })
            .collect()
    }

    /// Returns whether any excess is ever reclaimed.
    pub fn takes_back(&self) -> bool {
        self.overdue.is_some()
    }

    /// Returns the next instant after `now` at which an excess is reclaimed, if nothing changes before.
    pub fn next(&self, now: Time) -> Option<Time> {
        self.overdue.as_ref().and_then(|overdue| overdue.next(now))
    }

    /// See [`Policy::rank`](crate::Policy::rank).
    pub fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let leaf = self.users.member(queue.user).leaf;
        let key = self.leaves[leaf as usize].key << (128 - KEY_BITS);
        let low = match self.inside {
            GroupOrder::Fifo => u128::from(queue.release.0) << 64 | u128::from(queue.place),
            GroupOrder::Fair => self.dominant_share(queue.user, books),
        };
        Rank::wide(key | u128::from(leaf) << 4 | u128::from(queue.priority), low)
    }

    /// See [`Policy::admit`](crate::Policy::admit).
    pub fn admit(&self, queue: &Queue, ask: &Ask) -> Verdict {
        match self.tree.above_quota(self.users.member(queue.user).leaf, total(ask).slice(self.tree.dims)) {
            None => Verdict::Yes,
            Some((group, d, short)) => {
                let group = (self.partition.index() * self.leaves.len()) as u32 + group;
                Verdict::Wait(Reason::Quota { group, resource: d as u8, short })
            }
        }
    }

    /// See [`Policy::launched`](crate::Policy::launched).
    pub fn launched(&mut self, queue: &Queue, ask: &Ask, books: &Books) {
        let leaf = self.users.member(queue.user).leaf;
        let (whole, seen) = (total(ask), self.users.seen(queue.user));
        self.tree.set_allocation(leaf, whole.0.iter().map(|&more| (more, 0)));
        seen.iter_mut().zip(whole.0).for_each(|((held, _), more)| *held += more);
        // Without waiting users, the key is computed at the next visit.
        if books.waiting(queue.user) > 0 || self.leaves[leaf as usize].open.len > 1 {
            self.set_key(leaf);
        }
    }

    /// See [`WaitList::postpone`](crate::WaitList::postpone).
    pub fn postpone(&mut self, queue: &Queue, ask: &Ask) {
        self.set_stand(queue.user, MemberState::Refused);
        let (leaf, whole) = (self.users.member(queue.user).leaf, total(ask));
        self.users.set_ask(queue.user, whole.slice(self.tree.dims));
        let (d, least) = self.leaves[leaf as usize].short;
        // If the quota is too small for a smaller request, it is too small for this request.
        let known = self.gates.waits(leaf) && whole[d as usize] >= least;
        if !known && !self.bar(leaf) {
            self.again.push(leaf);
        }
    }
}

/// Returns the amounts of all tasks of a request.
fn total(ask: &Ask) -> Resources {
    Resources::from_slice(ask.footprint).map(|part| part.saturating_mul(u64::from(ask.tasks)))
}

impl Checkpoint for Sharing {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Sharing { partition: _, inside: _, tree, gates, overdue, leaves, users, open, again, changed, seen } = self;
        visit_values!(visitor; gates, leaves, users, open, again, changed, seen);
        tree.visit(visitor)?;
        visitor.option(overdue.as_mut())
    }
}
