//! Quota groups: a user's tasks start only while its group, and every group above it, stays within its runtime quota.
//!
//! In each resource independently, the capacity is divided among the groups by water-filling, with the ratios as the widths of the buckets.
//! A group's runtime quota is its amount at the water level. It is between its minimum and its request, which is the allocation plus the
//! pending demand of its users, cut to its maximum. The group furthest below its quota is served first: the lowest used / runtime quota,
//! for the resource with the largest quotient. Inside a group priority decides, then FIFO or FAIR. When a group that lent a part of its
//! minimum requests it again, other groups may be above their quotas. `reclaim` is the rule for these groups.
//!
//! Labels may have their own trees: the current capacity of the machines with a label is divided among the groups that request this label,
//! by water-filling. The default tree divides the machines without any of these labels.
//!
//! Source: the first article on FuxiMaster (quota groups; it mentions a quota per label, "NodeLabel", only in a title); Koordinator's
//! elastic quotas for the tree and admission; YARN's node labels for a tree per label.

mod checks;
mod file;
mod gate;
mod labels;
mod members;
mod overdue;
mod roster;
mod sharing;
#[cfg(test)]
mod tests;
mod tree;

pub use file::{Amount, GroupEntry, GroupOrder, LabelTree, QuotaFile, Reclaim, Variant};

use std::path::Path;

use super::{
    Ask, Capabilities, GroupLevel, GroupNode, GroupTree, Groups, Needs, Owners, Parsed, Policy, PolicyRow, Preemption,
    PreemptsFor, Queue, Rank, RankOrder, Reclaims, RunningView, Setup, Stale, Unreturned, Verdict, WaitList, enough,
};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Time, UserId};
use plimsoll_sim::books::{Books, Partition};

use sharing::Sharing;

impl QuotaFile {
    /// Reads a quota file. Errors: [`Error::Io`], and [`Error::Placed`] with the line and the values that would be
    /// accepted.
    pub fn read(path: &Path) -> Result<QuotaFile> {
        file::read(path)
    }

    /// Reads the text of a quota file; `path` is for messages. Errors: as [`QuotaFile::read`].
    pub fn parse(path: &Path, text: &str) -> Result<QuotaFile> {
        file::parse(path, text)
    }

    /// Returns the mapping from users to groups, by index in the file.
    pub(crate) fn owners(&self) -> Owners {
        let groups = self.groups.iter().enumerate();
        let users = groups.flat_map(|(at, group)| group.users.iter().map(move |user| (at, &**user)));
        Owners::new(users, self.groups.iter().position(|group| group.default))
    }

    /// Returns the error for a user that belongs to no group. Errors: always.
    pub(crate) fn stranger<T>(&self, name: &str) -> Result<T> {
        let expected = format!("a user of a group in {}, or a group with default = true", self.path.display());
        Err(Error::plan("user", format!("'{name}'"), expected))
    }

    /// Returns the groups of every tree: the default tree, then those of the labels.
    fn trees(&self) -> impl Iterator<Item = &[GroupEntry]> {
        std::iter::once(&*self.groups).chain(self.labels.iter().map(|tree| &*tree.groups))
    }
}

/// `quota:FILE`
pub static ROW: PolicyRow = PolicyRow {
    name: "quota",
    spelling: "quota:FILE",
    rank: RankOrder::Lowest("used / runtime quota"),
    meaning: "Groups of users, each within a quota found by water-filling over min, max, ratio and request.",
    source: "the first article on FuxiMaster (quota groups); Koordinator",
    example: "quota:experiments/quota/two-groups.toml",
    // Instances have users and no file of groups, so every user is a group.
    checked: "quota",
    variants: &[],
    keys: &[],
    read: |given| match given.filter(|path| !path.is_empty()) {
        Some(path) => Ok(Parsed::grouped(path, path, |groups, setup| Ok(Box::new(Quota::new(groups, setup)?)))),
        None => Err("a quota file, such as quota:groups.toml".to_owned()),
    },
};

/// Serves the group furthest below its runtime quota, and no group beyond its quota.
///
/// Cost of a round: O(log groups) per changed user and tree of the user, plus O(waiting users of the groups that are neither refused nor
/// satisfied); refused groups cost nothing until a change could admit them.
#[derive(Debug)]
pub struct Quota {
    file: QuotaFile,
    about: GroupTree,
    /// The trees, by partition.
    trees: Vec<Sharing>,
    /// The amounts that groups could not return in the current round.
    unreturned: Vec<Unreturned>,
    /// A buffer that is reused in every round.
    concerned: Vec<UserId>,
}

impl Quota {
    /// Creates the policy. Errors, with the line: the file names a resource or a label that the run does not have.
    pub fn new(file: &QuotaFile, setup: &Setup) -> Result<Quota> {
        file.check_labels(setup.labels)?;
        let tree = |(at, groups): (usize, &[GroupEntry])| Sharing::new(Partition(at as u8), file, groups, setup);
        let trees = file.trees().enumerate().map(tree).collect::<Result<Vec<_>>>()?;
        let about = group_tree(file, &trees);
        Ok(Quota { file: file.clone(), about, trees, unreturned: Vec::new(), concerned: Vec::new() })
    }

    /// Returns the runtime quota of a group (by index in [`GroupTree`]) for every resource as of the last round, rounded down, and the
    /// group's allocation. For a group without waiting users, the round may be an earlier one.
    pub fn standing(&self, group: usize) -> (Vec<u64>, Vec<u64>) {
        let groups = self.file.groups.len();
        self.trees[group / groups].standing(group % groups)
    }

    /// Returns the index of a user's group in the file.
    pub fn group_of(&self, user: UserId) -> usize {
        self.trees[0].group_of(user)
    }
}

/// Returns the description of the groups for recorders.
fn group_tree(file: &QuotaFile, trees: &[Sharing]) -> GroupTree {
    let mut groups = Vec::new();
    for (partition, (entries, tree)) in file.trees().zip(trees).enumerate() {
        let first = groups.len();
        groups.extend(entries.iter().enumerate().map(|(at, entry)| GroupNode {
            name: entry.name.clone(),
            label: partition.checked_sub(1).map(|label| file.labels[label].name.clone()),
            stated: entry.stated,
            parent: entry.parent.map(|parent| first + parent),
            limits: tree.limits(at),
        }));
    }
    GroupTree::new(file.variant.name(), groups, trees.len(), file.owners())
}

impl Groups for Quota {
    fn tree(&self) -> &GroupTree {
        &self.about
    }

    fn levels(&self) -> Result<Vec<GroupLevel>> {
        let mut all = Vec::new();
        for tree in &self.trees {
            all.extend(tree.levels()?);
        }
        Ok(all)
    }

    fn unreturned(&self) -> &[Unreturned] {
        &self.unreturned
    }
}

impl Policy for Quota {
    fn needs(&self) -> Needs {
        let reclaims = self.trees.iter().any(Sharing::takes_back);
        Needs {
            labels: self.file.labels.iter().map(|tree| tree.name.clone()).collect(),
            waiting_demand: true,
            moves_others: true,
            preempts_for: if reclaims { PreemptsFor::Reclaims } else { PreemptsFor::Never },
            ..Needs::default()
        }
    }

    fn open(&mut self, user: UserId, name: &str) -> Result<()> {
        let Some(leaf) = self.about.group_of(name) else {
            return self.file.stranger(name);
        };
        debug_assert_eq!(user.index(), self.trees[0].users(), "users appear in order");
        self.trees.iter_mut().for_each(|tree| tree.open(leaf as u32));
        Ok(())
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        let mut stale = Vec::new();
        if let [tree] = &mut *self.trees {
            stale = tree.prepare(now, books, changed)?;
        } else {
            for (at, tree) in self.trees.iter_mut().enumerate() {
                let books = books.partition(Partition(at as u8));
                tree.follow(books);
                self.concerned.clear();
                self.concerned.extend(changed.iter().filter(|user| tree.concerns(**user, books)));
                stale.extend(tree.prepare(now, books, &self.concerned)?);
            }
        }
        Ok(if stale.is_empty() { Stale::None } else { Stale::Some(stale) })
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.trees[queue.partition.index()].rank(queue, books.partition(queue.partition))
    }

    fn admit(&self, queue: &Queue, ask: &Ask, _books: &Books) -> Verdict {
        self.trees[queue.partition.index()].admit(queue, ask)
    }

    fn launched(&mut self, queue: &Queue, ask: &Ask, books: &Books) {
        self.trees[queue.partition.index()].launched(queue, ask, books.partition(queue.partition));
    }

    fn settled(&mut self, now: Time, _changed: &[UserId], _books: &Books) -> Option<Time> {
        self.trees.iter().filter_map(|tree| tree.next(now)).min()
    }
}

impl Capabilities for Quota {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn preemption(&mut self) -> Option<&mut dyn Preemption> {
        Some(self)
    }

    fn wait_list(&mut self) -> Option<&mut dyn WaitList> {
        Some(self)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }
}

impl WaitList for Quota {
    fn postpone(&mut self, queue: &Queue, ask: &Ask) {
        self.trees[queue.partition.index()].postpone(queue, ask);
    }
}

impl Preemption for Quota {
    /// Reclaims the excess of groups. A group that could not return its excess is tried again in every round. If a group has returned
    /// anything, its ancestors are skipped until the next round.
    fn reclaim(&mut self, now: Time, running: &dyn RunningView, _books: &Books) -> Result<Reclaims> {
        self.unreturned.clear();
        let (mut victims, mut gave) = (Vec::new(), Vec::new());
        for due in self.trees.iter_mut().flat_map(|tree| tree.take_back(now)) {
            if due.below.iter().any(|group| gave.contains(group)) {
                continue;
            }
            match enough(running, &due.users, due.partition, &due.amount) {
                Some(chosen) => {
                    gave.push(due.group);
                    victims.push(chosen);
                }
                None => self.unreturned.push(Unreturned { group: due.group, amount: due.amount }),
            }
        }
        Ok(Reclaims { victims, ..Reclaims::default() })
    }
}

impl Checkpoint for Quota {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        // The buffer is empty between rounds.
        let Quota { file: _, about: _, trees, unreturned, concerned: _ } = self;
        visitor.value(unreturned)?;
        visitor.all(trees.iter_mut())
    }
}
