//! Quota groups: a user's tasks start only while its group, and every group above it, stays within its runtime quota.
//!
//! In each resource by itself the cluster is poured over the groups as water over buckets whose floor is the ratio: a
//! group's runtime quota is what the level gives it, between its minimum and what it requests (all that its users hold
//! and wait for, cut to its maximum). The group furthest below its quota is served first: the lowest used / runtime
//! quota, of the resource in which that is largest; inside a group priority decides, then FIFO or FAIR.
//! Not modelled: tasks are not killed when a lender's request returns.
//!
//! Source: the first article on FuxiMaster (quota groups); Koordinator's elastic quotas for the tree and admission.

mod file;
mod gate;
#[cfg(test)]
mod tests;
mod tree;

pub use file::{Amount, GroupEntry, Inside, QuotaFile, Reclaim, Variant};

use std::path::Path;

use super::{Ask, GroupAbout, GroupLevel, GroupTree, Groups, Owners, Policy, Queue, Rank, Setup, Stale, Verdict};
use crate::books::{Books, WEIGHT_ONE};
use crate::error::{Error, Result};
use crate::units::{MAX_DIMS, Time, UserId};

use gate::Gates;
use tree::Tree;

impl QuotaFile {
    /// Reads a quota file. Errors: [`Error::Io`], and [`Error::PlanSyntax`] with the line and what would be accepted.
    pub fn read(path: &Path) -> Result<QuotaFile> {
        file::read(path)
    }

    /// Reads the text of a quota file; `path` is for messages. Errors: as [`QuotaFile::read`].
    pub fn parse(path: &Path, text: &str) -> Result<QuotaFile> {
        file::parse(path, text)
    }
}

/// Serves the group furthest below its runtime quota, and nobody beyond it.
///
/// Cost of a round: O(log groups) per changed user, plus O(waiting users of the groups that are neither refused nor
/// satisfied); refused groups cost nothing until something changes that could admit them.
#[derive(Debug)]
pub struct Quota {
    inside: Inside,
    path: std::path::PathBuf,
    about: GroupTree,
    tree: Tree,
    gates: Gates,
    leaves: Vec<Leaf>,
    users: Vec<Member>,
    /// Leaves with users that wait and are not refused.
    open: Vec<u32>,
    /// Leaves to look at again in the next round, though nobody says that anything has changed.
    again: Vec<u32>,
    seen: Seen,
}

/// What a group knows of its users; unused for groups above others.
#[derive(Clone, Debug, Default)]
struct Leaf {
    /// Its place in line: used over runtime quota.
    key: u128,
    /// Somebody of it may stand in line under an earlier key.
    moved: bool,
    /// Users that wait and are not refused.
    open: Vec<UserId>,
    /// Place among the open leaves, from 1; 0 if it is none.
    place: u32,
    /// Users that were refused, and what they ask.
    refused: Vec<(UserId, [u64; MAX_DIMS])>,
    /// While the leaf waits: the resource that is short, and for how little.
    short: (usize, u64),
}

/// A user as the policy last saw it.
#[derive(Clone, Copy, Debug)]
struct Member {
    leaf: u32,
    stand: Stand,
    /// Place among the open or the refused users of its group.
    place: u32,
    /// What it holds and wants, by resource.
    at: [(u64, u128); MAX_DIMS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Idle,
    Open,
    Refused,
}

/// Groups that were met in this round, each once.
#[derive(Clone, Debug)]
struct Seen {
    round: u32,
    at: Vec<u32>,
}

impl Seen {
    /// Whether it is met for the first time in this round.
    fn first(&mut self, group: u32) -> bool {
        std::mem::replace(&mut self.at[group as usize], self.round) != self.round
    }
}

/// Binary places of used / runtime quota, and all bits kept of it.
const PLACES: u32 = 64;
const KEY_BITS: u32 = 92;

impl Quota {
    /// Errors: a resource of the file that the run does not have, with its line.
    pub fn new(file: &QuotaFile, setup: &Setup) -> Result<Quota> {
        let tree = Tree::new(file, setup)?;
        let groups = file.groups.len();
        Ok(Quota {
            inside: file.inside,
            path: file.path.clone(),
            about: about(file, &tree),
            gates: Gates::new(groups, tree.sets(), tree.dims),
            tree,
            leaves: vec![Leaf::default(); groups],
            users: Vec::new(),
            open: Vec::new(),
            again: Vec::new(),
            seen: Seen { round: 0, at: vec![0; groups] },
        })
    }

    /// The runtime quota of a group (by place in the file) in every resource as the last round saw it, rounded down,
    /// and what the group holds. A group in which nobody waits may have been seen by an earlier round.
    pub fn standing(&self, group: usize) -> (Vec<u64>, Vec<u64>) {
        let accounts = &self.tree.nodes[group].at[..self.tree.dims];
        accounts.iter().map(|account| (account.runtime, account.held)).unzip()
    }

    /// The group of a user, by place in the file.
    pub fn group_of(&self, user: UserId) -> usize {
        self.users[user.index()].leaf as usize
    }

    /// Takes note of what a user holds and wants now.
    fn note(&mut self, user: UserId, books: &Books) {
        let member = &mut self.users[user.index()];
        let (leaf, dims) = (member.leaf, self.tree.dims);
        let (mut more, mut less) = ([0; MAX_DIMS], [0; MAX_DIMS]);
        for (d, &held) in books.held(user).iter().enumerate() {
            more[d] = held.saturating_sub(member.at[d].0);
            less[d] = member.at[d].0.saturating_sub(held);
            member.at[d].0 = held;
        }
        for d in 0..dims {
            let wanted = books.wanted(user, d);
            self.tree.request(leaf, d, wanted, std::mem::replace(&mut member.at[d].1, wanted));
        }
        for (amounts, more) in [(more, true), (less, false)] {
            if amounts != [0; MAX_DIMS] {
                self.tree.hold(leaf, &amounts[..dims], more);
            }
        }
        // Its next task may be another one than was refused.
        self.set_stand(user, if books.waiting(user) > 0 { Stand::Open } else { Stand::Idle });
    }

    /// Moves a user between the lists of its group.
    fn set_stand(&mut self, user: UserId, stand: Stand) {
        let Member { leaf, stand: before, place, .. } = self.users[user.index()];
        if stand == before {
            return;
        }
        let group = &mut self.leaves[leaf as usize];
        let moved = match before {
            Stand::Idle => None,
            Stand::Open => {
                group.open.swap_remove(place as usize);
                group.open.get(place as usize).copied()
            }
            Stand::Refused => {
                group.refused.swap_remove(place as usize);
                group.refused.get(place as usize).map(|(user, _)| *user)
            }
        };
        if let Some(moved) = moved {
            self.users[moved.index()].place = place;
        }
        let place = match stand {
            Stand::Idle => 0,
            Stand::Open => {
                group.open.push(user);
                group.open.len() - 1
            }
            Stand::Refused => {
                group.refused.push((user, [0; MAX_DIMS]));
                group.refused.len() - 1
            }
        };
        let member = &mut self.users[user.index()];
        (member.stand, member.place) = (stand, place as u32);
        self.set_open(leaf);
    }

    /// Keeps the list of open leaves.
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

    /// Reads a leaf's quotas and its key anew.
    fn look(&mut self, leaf: u32) {
        let mut at = leaf;
        while at != tree::TOP {
            self.tree.read(at);
            at = self.tree.nodes[at as usize].parent;
        }
        self.set_key(leaf);
    }

    fn set_key(&mut self, leaf: u32) {
        let key = self.key(leaf);
        let group = &mut self.leaves[leaf as usize];
        group.moved |= std::mem::replace(&mut group.key, key) != key;
    }

    /// Used over runtime quota where that is largest, in steps of 2^-64.
    fn key(&self, leaf: u32) -> u128 {
        let node = &self.tree.nodes[leaf as usize];
        let share = |d: usize| match (u128::from(node.at[d].held), u128::from(node.at[d].runtime)) {
            (0, _) => 0,
            (_, 0) => u128::MAX,
            (held, runtime) => (held << PLACES) / runtime,
        };
        (0..self.tree.dims).map(share).max().unwrap_or(0).min((1 << KEY_BITS) - 1)
    }

    /// Looks again at a leaf whose refused users may start, perhaps, and says which of them.
    fn recall(&mut self, leaf: u32, recalled: &mut Vec<UserId>) {
        self.gates.leave(leaf);
        if self.leaves[leaf as usize].refused.is_empty() {
            return;
        }
        self.look(leaf);
        if self.bar(leaf) {
            return;
        }
        let fits = |(_, ask): &&(UserId, [u64; MAX_DIMS])| self.tree.above_quota(leaf, ask).is_none();
        let fitting: Vec<UserId> =
            self.leaves[leaf as usize].refused.iter().filter(fits).map(|(user, _)| *user).collect();
        for &user in &fitting {
            self.set_stand(user, Stand::Open);
        }
        recalled.extend(fitting);
        if !self.leaves[leaf as usize].refused.is_empty() && !self.bar(leaf) {
            self.again.push(leaf);
        }
    }

    /// Sets a leaf to wait for what is short even for the least that its refused users ask; whether anything is.
    fn bar(&mut self, leaf: u32) -> bool {
        let mut least = [u64::MAX; MAX_DIMS];
        for (_, ask) in &self.leaves[leaf as usize].refused {
            least.iter_mut().zip(ask).for_each(|(least, ask)| *least = (*least).min(*ask));
        }
        let Some((group, d)) = self.tree.above_quota(leaf, &least[..self.tree.dims]) else { return false };
        let node = &self.tree.nodes[group as usize];
        let level = self.tree.level_for(group, d, node.at[d].held.saturating_add(least[d]));
        self.gates.wait(leaf, group, node.set, d, level);
        self.leaves[leaf as usize].short = (d, least[d]);
        true
    }

    /// What a FAIR group compares: the user's dominant share over its weight, in steps of 2^-64.
    fn dominant_share(&self, user: UserId, books: &Books) -> u128 {
        let weights = books.weights().each(books.weight_class(user));
        let share = |(d, &held): (usize, &u64)| {
            let capacity = u128::from(books.capacity().0[d]).max(1);
            (u128::from(held) << PLACES) / capacity * u128::from(WEIGHT_ONE) / u128::from(weights[d])
        };
        books.held(user).iter().enumerate().map(share).max().unwrap_or(0)
    }
}

/// Who owns which users, by place in the file.
fn owners(file: &QuotaFile) -> Owners {
    let users =
        file.groups.iter().enumerate().flat_map(|(at, group)| group.users.iter().map(move |user| (at, &**user)));
    Owners::new(users, file.groups.iter().position(|group| group.default))
}

/// The groups of a file, for those who watch.
fn about(file: &QuotaFile, tree: &Tree) -> GroupTree {
    let group = |(at, group): (usize, &GroupEntry)| GroupAbout {
        name: group.name.clone(),
        parent: group.parent,
        limits: tree.limits(at),
    };
    GroupTree::new(file.variant, file.groups.iter().enumerate().map(group).collect(), owners(file))
}

impl Groups for Quota {
    fn tree(&self) -> &GroupTree {
        &self.about
    }

    fn levels(&self) -> Result<Vec<GroupLevel>> {
        self.tree.look()
    }
}

impl Policy for Quota {
    fn open(&mut self, user: UserId, name: &str) -> Result<()> {
        let Some(leaf) = self.about.group_of(name) else {
            let expected = format!("a user of a group in {}, or a group with default = true", self.path.display());
            return Err(Error::plan("user", format!("'{name}'"), expected));
        };
        debug_assert_eq!(user.index(), self.users.len(), "users appear in order");
        self.users.push(Member { leaf: leaf as u32, stand: Stand::Idle, place: 0, at: [(0, 0); MAX_DIMS] });
        Ok(())
    }

    fn prepare(&mut self, _now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        self.seen.round = self.seen.round.wrapping_add(1);
        self.tree.look_again();
        let (mut leaves, mut woken, mut stale) = (Vec::new(), std::mem::take(&mut self.again), Vec::new());
        for &user in changed {
            self.note(user, books);
            let leaf = self.users[user.index()].leaf;
            if self.seen.first(leaf) {
                leaves.push(leaf);
            }
            if self.users[user.index()].stand == Stand::Open {
                stale.push(user);
            }
        }
        for &leaf in &leaves {
            self.tree.update(leaf)?;
        }
        self.seen.round = self.seen.round.wrapping_add(1);
        for &leaf in &leaves {
            let mut at = leaf;
            while at != tree::TOP && self.seen.first(at) {
                self.gates.changed(at, &mut woken);
                at = self.tree.nodes[at as usize].parent;
            }
        }
        let tree = &mut self.tree;
        self.gates.risen(|set, d| tree.level(set, d), &mut woken);
        // In the order of the file, so that nothing depends on the order in which they came to wait.
        woken.sort_unstable();
        woken.dedup();
        for leaf in woken {
            self.recall(leaf, &mut stale);
        }
        for at in 0..self.open.len() {
            let leaf = self.open[at];
            self.look(leaf);
            if std::mem::take(&mut self.leaves[leaf as usize].moved) {
                stale.extend_from_slice(&self.leaves[leaf as usize].open);
            }
        }
        Ok(if stale.is_empty() { Stale::None } else { Stale::Some(stale) })
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let leaf = self.users[queue.user.index()].leaf;
        let key = self.leaves[leaf as usize].key << (128 - KEY_BITS);
        let low = match self.inside {
            Inside::Fifo => u128::from(queue.release.0) << 64 | u128::from(queue.place),
            Inside::Fair => self.dominant_share(queue.user, books),
        };
        Rank::wide(key | u128::from(leaf) << 4 | u128::from(queue.priority), low)
    }

    fn admit(&self, queue: &Queue, ask: &Ask, _books: &Books) -> Verdict {
        let mut whole = [0; MAX_DIMS];
        whole
            .iter_mut()
            .zip(ask.footprint)
            .for_each(|(whole, part)| *whole = part.saturating_mul(u64::from(ask.tasks)));
        match self.tree.above_quota(self.users[queue.user.index()].leaf, &whole) {
            None => Verdict::Yes,
            Some(_) => Verdict::Wait,
        }
    }

    fn launched(&mut self, queue: &Queue, ask: &Ask, _books: &Books) {
        let member = &mut self.users[queue.user.index()];
        let leaf = member.leaf;
        let mut whole = [0; MAX_DIMS];
        for (d, footprint) in ask.footprint.iter().enumerate() {
            whole[d] = footprint * u64::from(ask.tasks);
            member.at[d].0 += whole[d];
        }
        self.tree.hold(leaf, &whole[..self.tree.dims], true);
        self.set_key(leaf);
    }

    fn refused(&mut self, queue: &Queue, ask: &Ask, _books: &Books) {
        self.set_stand(queue.user, Stand::Refused);
        let Member { leaf, place, .. } = self.users[queue.user.index()];
        let mut whole = [0; MAX_DIMS];
        whole
            .iter_mut()
            .zip(ask.footprint)
            .for_each(|(whole, part)| *whole = part.saturating_mul(u64::from(ask.tasks)));
        self.leaves[leaf as usize].refused[place as usize].1 = whole;
        let (d, least) = self.leaves[leaf as usize].short;
        // What is too little for less is too little for this.
        let known = self.gates.waits(leaf) && whole[d] >= least;
        if !known && !self.bar(leaf) {
            self.again.push(leaf);
        }
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }

    fn moves_others(&self) -> bool {
        true
    }

    fn wants_waiting_demand(&self) -> bool {
        true
    }
}
