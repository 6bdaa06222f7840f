//! Users as the leaves of a tree of groups, each with a share among its siblings.
//!
//! Only the names, parents, ratios and users of a quota file are used here; minimums and maximums apply to `quota` only.

use super::{Owners, QuotaFile};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::UserId;
use plimsoll_sim::books::Weights;

/// The tree of groups. Group 0 is the whole cluster; the groups of the file follow in the order of the file.
#[derive(Clone, Debug)]
pub struct Branches {
    groups: Vec<Branch>,
    /// By user: its group, and its share in millionths, which is its weight.
    users: Vec<(u32, u64)>,
    weights: Weights,
    members: Option<(QuotaFile, Owners)>,
}

/// A group of the tree.
#[derive(Clone, Debug, Default)]
pub struct Branch {
    /// The parent group; the cluster is its own parent.
    pub parent: u32,
    /// The share among its siblings, in millionths.
    pub share: u64,
    /// The child groups.
    pub groups: Vec<u32>,
    /// The users of the group that have appeared so far.
    pub users: Vec<UserId>,
}

impl Branches {
    /// Creates a tree with all users directly under the cluster.
    pub fn flat(weights: &Weights) -> Branches {
        Branches { groups: vec![Branch::default()], users: Vec::new(), weights: weights.clone(), members: None }
    }

    /// Creates the tree of a file. Errors: a group has one ratio per resource, which `policy` does not support.
    pub fn from_file(policy: &str, file: &QuotaFile, weights: &Weights) -> Result<Branches> {
        let place = |at: Option<usize>| at.map_or(0, |at| at as u32 + 1);
        let mut branches = Branches::flat(weights);
        for (at, entry) in file.groups.iter().enumerate() {
            if !entry.ratios.is_empty() {
                let given = format!("{}: group '{}' with a ratio per resource", file.path.display(), entry.name);
                return Err(Error::policy(policy, given, "one ratio per group"));
            }
            let parent = place(entry.parent);
            branches.groups.push(Branch { parent, share: entry.ratio, ..Branch::default() });
            debug_assert_eq!(at + 2, branches.groups.len());
        }
        for group in 1..branches.groups.len() {
            let parent = branches.groups[group].parent as usize;
            branches.groups[parent].groups.push(group as u32);
        }
        branches.members = Some((file.clone(), file.owners()));
        Ok(branches)
    }

    /// Adds a user; user ids are dense. Errors: the user belongs to no group, or has one weight per resource.
    pub fn open(&mut self, name: &str) -> Result<()> {
        let group = match &self.members {
            None => 0,
            Some((file, owners)) => match owners.group_of(name) {
                Some(group) => group as u32 + 1,
                None => return file.stranger(name),
            },
        };
        let weight = self.weights.uniform(self.weights.class_of(name) as usize);
        let share = weight.ok_or_else(|| {
            Error::plan(
                "weights",
                format!("a weight per resource for '{name}'"),
                "one weight per user under this policy",
            )
        })?;
        self.groups[group as usize].users.push(UserId(self.users.len() as u32));
        self.users.push((group, share));
        Ok(())
    }

    /// Returns all groups.
    pub fn groups(&self) -> &[Branch] {
        &self.groups
    }

    /// Returns the group and the share of each user.
    pub fn users(&self) -> &[(u32, u64)] {
        &self.users
    }

    /// Returns the groups from the bottom up: every group after its child groups.
    pub fn upwards(&self) -> Vec<u32> {
        let mut order = vec![0];
        let mut at = 0;
        while let Some(group) = order.get(at).copied() {
            order.extend(&self.groups[group as usize].groups);
            at += 1;
        }
        order.reverse();
        order
    }
}
