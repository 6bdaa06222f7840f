//! The groups that a policy divides users into, for recorders: each group's minimum and maximum, and its current quota.

use std::collections::HashMap;
use std::sync::Arc;

use crate::books::Partition;
use plimsoll_base::error::Result;
use plimsoll_base::units::Resources;

/// A policy that divides users into groups. Reading the groups changes nothing.
pub trait Groups: std::fmt::Debug {
    /// The groups.
    fn tree(&self) -> &GroupTree;

    /// Every group's quota, resource by resource, if a round were held now. Cost: O(groups), however many users wait.
    /// Errors: amounts too large to add.
    fn levels(&self) -> Result<Vec<GroupLevel>>;

    /// The amounts that should have been reclaimed since the last round, but are used by tasks that may not be stopped by choice.
    fn unreturned(&self) -> &[Unreturned] {
        &[]
    }
}

/// The amount that a group uses above its runtime quota and that cannot be reclaimed: only tasks that may not be stopped by choice use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreturned {
    /// The group, by its place in [`GroupTree`].
    pub group: usize,
    /// How much of each resource, through the policy's lens.
    pub amount: Resources,
}

/// The groups of a policy, in its order, as they were described before the run.
#[derive(Clone, Debug)]
pub struct GroupTree {
    /// How minimum and ratio go together, by the name of the variant.
    pub variant: &'static str,
    /// The groups, once for each partition: those of the default tree, then in the same order again for each label.
    pub groups: Vec<GroupNode>,
    /// How many partitions there are.
    pub partitions: usize,
    owners: Arc<Owners>,
}

impl GroupTree {
    /// Groups for a number of partitions, and the group of each user.
    pub fn new(variant: &'static str, groups: Vec<GroupNode>, partitions: usize, owners: Owners) -> GroupTree {
        GroupTree { variant, groups, partitions, owners: Arc::new(owners) }
    }

    /// The group of a user, by its place in the default tree; `None` for a user of no group.
    pub fn group_of(&self, user: &str) -> Option<usize> {
        self.owners.group_of(user)
    }

    /// The index in a partition of a group of the default tree.
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
    /// Whether the tree says anything of it; else it may use nothing there.
    pub stated: bool,
    /// The group above it, by place; `None` right under the cluster.
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
    /// How wide its bucket is, in millionths.
    pub ratio: u64,
}

/// A group's quota of one resource, in base units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupLevel {
    /// The amount shared with its siblings: its tree's capacity, or the runtime quota of the group above.
    pub total: u64,
    /// Its quota whatever the others request.
    pub base: u64,
    /// Its quota when there is enough for all.
    pub reach: u64,
    /// Its quota now, rounded down.
    pub runtime: u64,
    /// How high the water stands among it and its siblings, in base units per millionth of ratio.
    pub level: f64,
}

/// The group of a user: by name, by the beginning of the name (the longest), or the default group.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    names: HashMap<String, u32>,
    /// Beginnings of names, the longest first.
    beginnings: Vec<(String, u32)>,
    default: Option<u32>,
}

impl Owners {
    /// Users of each group, as names or as beginnings of names with a `*` behind, and the group of all others.
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

    /// The group of a user; `None` for a user of no group.
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
