//! The minimums, maximums and quotas of groups for observers. The computation stores no result, so that observation does not change a run.

use super::{TOP, Tree};
use crate::{GroupLevel, GroupLimits};
use plimsoll_base::error::Result;
use plimsoll_fair::water::{Group, ReducedGroup, by_selection};

impl Tree {
    /// Returns a group's minimum, maximum and ratio of every resource.
    pub fn limits(&self, group: usize) -> Vec<GroupLimits> {
        let group = |d| self.group(group, d);
        (0..self.dims).map(group).map(|Group { min, max, ratio, .. }| GroupLimits { min, max, ratio }).collect()
    }

    /// Computes the quota of every group for every resource, group by group, with each level computed from scratch. Errors: amounts too
    /// large to add.
    pub fn levels_from_scratch(&self) -> Result<Vec<GroupLevel>> {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.sets.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            members[node.set as usize].push(at);
        }
        // Sets further up come first, because the quota of a group is the total of the groups under it.
        let above = |set: &u32| if self.sets[*set as usize].parent == TOP { 0 } else { self.depth(*set) };
        let mut order: Vec<u32> = (0..self.sets.len() as u32).collect();
        order.sort_by_cached_key(above);
        let mut looked = vec![GroupLevel::default(); self.nodes.len() * self.dims];
        for set in order {
            let (parent, members) = (self.sets[set as usize].parent, &members[set as usize]);
            for d in 0..self.dims {
                let total =
                    if parent == TOP { self.capacity[d] } else { looked[parent as usize * self.dims + d].runtime };
                let semantics = self.waters[set as usize * self.dims + d].semantics();
                let standing = |&at: &usize| ReducedGroup::from_group(&self.group(at, d));
                let standings: Vec<ReducedGroup> = members.iter().map(standing).collect();
                let level = by_selection(semantics, &standings, total)?;
                for (&at, standing) in members.iter().zip(&standings) {
                    let runtime = standing.runtime(semantics, level);
                    let (base, reach) = (standing.base(), standing.reach());
                    let level = level.to_f64();
                    looked[at * self.dims + d] = GroupLevel { total, base, reach, runtime, level };
                }
            }
        }
        Ok(looked)
    }

    /// Returns the current state of a group in resource `d`, whether or not it was applied to its siblings.
    fn group(&self, group: usize, d: usize) -> Group {
        let node = &self.nodes[group];
        let (request, held) = self.request_and_floor(&self.accounts[group * self.dims + d], d);
        Group { request, held, ..*self.waters[node.set as usize * self.dims + d].group(node.member) }
    }

    /// Returns the number of ancestors of a set of siblings.
    fn depth(&self, set: u32) -> usize {
        self.path(self.sets[set as usize].parent).count()
    }
}
