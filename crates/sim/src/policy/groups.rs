//! The groups into which a policy divides users, for recorders: the minimum, the maximum and the current quota of each group.
//!
//! [`Groups`] is implemented by policies with quotas; [`GroupTree`] describes the groups as configured, with one copy of the tree per
//! partition, and [`GroupLevel`] their quotas at an instant. Metrics, tables and the preemption rules of the run use these types.

use std::collections::HashMap;
use std::sync::Arc;

use crate::books::Partition;
use plimsoll_base::error::Result;
use plimsoll_base::units::Resources;

/// A policy that divides users into groups. Reading the groups changes nothing.
pub trait Groups: std::fmt::Debug {
    /// Returns the groups.
    fn tree(&self) -> &GroupTree;

    /// Returns every group's quota, resource by resource, as if a round ran now. Cost: O(groups), regardless of the number of waiting
    /// users. Errors: amounts too large to add.
    fn levels(&self) -> Result<Vec<GroupLevel>>;

    /// Returns the amounts that were to be reclaimed in the last round, but are used by tasks that are exempt from preemption.
    fn unreturned(&self) -> &[Unreturned] {
        &[]
    }
}

/// The amount that a group uses above its runtime quota and that cannot be reclaimed, because only tasks that are exempt from preemption
/// use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unreturned {
    /// The group, by its index in [`GroupTree`].
    pub group: usize,
    /// The amount of each resource, through the policy's lens.
    pub amount: Resources,
}

/// The groups of a policy, in the policy's order, as configured before the run.
#[derive(Clone, Debug)]
pub struct GroupTree {
    /// The name of the variant, which defines how minimum and ratio are combined.
    pub variant: &'static str,
    /// The groups, once for each partition: the groups of the default tree, then the same groups in the same order for each label.
    pub groups: Vec<GroupNode>,
    /// Number of partitions.
    pub partitions: usize,
    owners: Arc<Owners>,
}

impl GroupTree {
    /// Creates a tree from the groups of all partitions, the number of partitions, and the rule that assigns users to groups.
    pub fn new(variant: &'static str, groups: Vec<GroupNode>, partitions: usize, owners: Owners) -> GroupTree {
        GroupTree { variant, groups, partitions, owners: Arc::new(owners) }
    }

    /// Returns the group of a user, by its index in the default tree; `None` for a user without a group.
    pub fn group_of(&self, user: &str) -> Option<usize> {
        self.owners.group_of(user)
    }

    /// Returns whether a user belongs to a group, or to a group below it. The index may be that of any partition's copy.
    pub fn contains(&self, group: usize, user: &str) -> bool {
        let group = group % (self.groups.len() / self.partitions);
        let above = |group: &usize| self.groups[*group].parent;
        std::iter::successors(self.group_of(user), above).any(|other| other == group)
    }

    /// Returns the index of a partition's copy of a group of the default tree.
    pub fn place_in(&self, group: usize, partition: Partition) -> usize {
        partition.index() * (self.groups.len() / self.partitions) + group
    }
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNode {
    /// Its name.
    pub name: String,
    /// The label that this tree belongs to; `None` in the default tree.
    pub label: Option<String>,
    /// Whether the tree declares the group; if not, the group may not use the tree.
    pub stated: bool,
    /// The index of the parent group; `None` directly under the cluster.
    pub parent: Option<usize>,
    /// Its minimum and maximum of each resource.
    pub limits: Vec<GroupLimits>,
}

/// A group's minimum and maximum of one resource, in base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// The guaranteed amount.
    pub min: u64,
    /// The largest amount it may use; `u64::MAX` for no limit.
    pub max: u64,
    /// The width of its bucket for the water level, in millionths.
    pub ratio: u64,
}

/// A group's quota of one resource, in base units.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GroupLevel {
    /// The amount shared with its siblings: its tree's capacity, or the runtime quota of its parent.
    pub total: u64,
    /// Its quota regardless of the requests of other groups.
    pub base: u64,
    /// Its quota if the total is enough for all siblings.
    pub reach: u64,
    /// Its current quota, rounded down.
    pub runtime: u64,
    /// The water level among the group and its siblings, in base units per millionth of ratio.
    pub level: f64,
}

/// The rule that assigns a group to each user: by name, by the longest matching prefix, or the default group.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    names: HashMap<String, u32>,
    /// Prefixes of names, the longest first.
    beginnings: Vec<(String, u32)>,
    default: Option<u32>,
}

impl Owners {
    /// Creates the rule from the users of each group, as names or as prefixes followed by `*`, and the group of all other users.
    pub fn new<'a>(users: impl IntoIterator<Item = (usize, &'a str)>, default: Option<usize>) -> Owners {
        let mut owners = Owners { default: default.map(|group| group as u32), ..Owners::default() };
        for (group, user) in users {
            match user.strip_suffix('*') {
                Some(beginning) => owners.beginnings.push((beginning.to_owned(), group as u32)),
                None => drop(owners.names.insert(user.to_owned(), group as u32)),
            }
        }
        owners.beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        owners
    }

    /// Returns the group of a user; `None` for a user without a group.
    pub fn group_of(&self, user: &str) -> Option<usize> {
        let begins = || self.beginnings.iter().find(|(beginning, _)| user.starts_with(beginning));
        let owner = self.names.get(user).copied().or_else(|| begins().map(|(_, group)| *group)).or(self.default);
        owner.map(|group| group as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_before_beginnings_and_the_longest_beginning_wins() {
        let users = [(0, "nightly-*"), (1, "nightly-ads-*"), (2, "nightly-ads-7"), (3, "ann")];
        let tree = |default| GroupTree::new("", Vec::new(), 1, Owners::new(users, default));
        let of = |user: &str| tree(Some(4)).group_of(user);
        let asked = ["nightly-1", "nightly-ads-1", "nightly-ads-7", "ann", "anna"].map(of);
        assert_eq!(asked, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(tree(None).group_of("anna"), None);
    }
}
