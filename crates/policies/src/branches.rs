//! Users as the leaves of a tree of groups, each with a share among its siblings.
//!
//! Of a quota file only names, parents, ratios and users count here: minimums and maximums are for `quota`.

use super::{Owners, QuotaFile};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::UserId;
use plimsoll_sim::books::Weights;

/// The tree. Group 0 is the whole cluster; those of the file follow in its order.
#[derive(Clone, Debug)]
pub struct Branches {
    groups: Vec<Branch>,
    /// The group of each user, and its share in millionths: its weight.
    users: Vec<(u32, u64)>,
    weights: Weights,
    members: Option<(QuotaFile, Owners)>,
}

/// A group.
#[derive(Clone, Debug, Default)]
pub struct Branch {
    /// The group above it; that of the cluster is its own.
    pub parent: u32,
    /// In millionths.
    pub share: u64,
    /// The groups under it.
    pub groups: Vec<u32>,
    /// The users that have appeared in it.
    pub users: Vec<UserId>,
}

impl Branches {
    /// All users right under the cluster.
    pub fn flat(weights: &Weights) -> Branches {
        Branches { groups: vec![Branch::default()], users: Vec::new(), weights: weights.clone(), members: None }
    }

    /// The groups of a file. Errors: a group has a ratio a resource, which `policy` does not know.
    pub fn from_file(policy: &str, file: &QuotaFile, weights: &Weights) -> Result<Branches> {
        let place = |at: Option<usize>| at.map_or(0, |at| at as u32 + 1);
        let mut branches = Branches::flat(weights);
        for (at, entry) in file.groups.iter().enumerate() {
            if !entry.ratios.is_empty() {
                let given = format!("{}: group '{}' with a ratio a resource", file.path.display(), entry.name);
                return Err(Error::policy(policy, given, "one ratio a group"));
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

    /// A user appears; ids are dense. Errors: it belongs to no group, or has a weight a resource.
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
            Error::plan("weights", format!("a weight a resource for '{name}'"), "one weight a user under this policy")
        })?;
        self.groups[group as usize].users.push(UserId(self.users.len() as u32));
        self.users.push((group, share));
        Ok(())
    }

    /// All groups.
    pub fn groups(&self) -> &[Branch] {
        &self.groups
    }

    /// The group of each user, and its share.
    pub fn users(&self) -> &[(u32, u64)] {
        &self.users
    }

    /// The groups from the bottom up: none before one under it.
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
