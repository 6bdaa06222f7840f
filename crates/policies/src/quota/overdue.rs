//! Groups above their runtime quota, and since when: `reclaim = "kill-after:SPAN"` reclaims the excess.
//!
//! The base of a group is the part of its quota that does not depend on the water level. A group with an allocation above its base is over
//! its quota while the water level of its siblings is below the level that would give it the allocated amount. These levels are stored in
//! order, so that a round visits only the groups that are over their quotas.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::tree::{TOP, Tree};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Span, Time};
use plimsoll_base::visit_values;
use plimsoll_fair::water::Level;

/// The level that a group needs for its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
enum Needed {
    At(Level),
    /// No level is sufficient.
    None,
}

/// A group that has been over its quota for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OverdueGroup {
    /// The index in the tree.
    pub group: u32,
    /// Its descendants that have been over their quotas for too long as well.
    pub below: Vec<u32>,
    /// The excess over the quota, in base units.
    pub excess: Resources,
}

/// The groups that are over their quota.
#[derive(Clone, Debug)]
pub(super) struct Overdue {
    after: Span,
    dims: usize,
    /// The levels needed by groups with an allocation above their base, by set of siblings and resource.
    needed: Vec<BTreeSet<(Needed, u32)>>,
    /// The sets and resources with entries in `needed`.
    watched: BTreeSet<usize>,
    /// The entry of each group and resource in `needed`.
    entries: Vec<Option<Needed>>,
    /// The leaves that have changed since the last check.
    changed: BTreeSet<u32>,
    /// The groups that are over their quotas, and the instant since which each has been over without a break.
    since: BTreeMap<u32, Time>,
}

impl Overdue {
    pub fn new(tree: &Tree, after: Span) -> Overdue {
        Overdue {
            after,
            dims: tree.dims,
            needed: vec![BTreeSet::new(); tree.sets() * tree.dims],
            watched: BTreeSet::new(),
            entries: vec![None; tree.nodes.len() * tree.dims],
            changed: BTreeSet::new(),
            since: BTreeMap::new(),
        }
    }

    /// Updates the levels that a group needs, after a change of its allocation or request.
    fn update(&mut self, tree: &Tree, group: u32) {
        for d in 0..self.dims {
            let needed = tree.needs_water(group, d).map(|level| level.map_or(Needed::None, Needed::At));
            let before = std::mem::replace(&mut self.entries[group as usize * self.dims + d], needed);
            if needed == before {
                continue;
            }
            let at = tree.set_of(group) as usize * self.dims + d;
            if let Some(before) = before {
                self.needed[at].remove(&(before, group));
            }
            if let Some(needed) = needed {
                self.needed[at].insert((needed, group));
                self.watched.insert(at);
            } else if self.needed[at].is_empty() {
                self.watched.remove(&at);
            }
        }
    }

    /// Finds the groups that are over their quota at `now`, given the leaves that have changed.
    pub fn find_overdue(&mut self, tree: &mut Tree, changed: &[u32], now: Time) {
        self.changed.extend(changed);
        if tree.is_easy() {
            self.since.clear();
            return;
        }
        for leaf in std::mem::take(&mut self.changed) {
            let mut at = leaf;
            while at != TOP {
                self.update(tree, at);
                at = tree.nodes[at as usize].parent;
            }
        }
        let mut over = BTreeMap::new();
        for &at in &self.watched {
            // If the total is enough for all groups, no group is over its quota.
            let Some(level) = tree.level((at / self.dims) as u32, at % self.dims) else { continue };
            let level = Needed::At(level);
            // The groups are visited from the highest needed level down. Groups that need at most the current level are within their
            // quotas.
            for &(needed, group) in self.needed[at].iter().rev() {
                if needed <= level {
                    break;
                }
                over.insert(group, self.since.get(&group).copied().unwrap_or(now));
            }
        }
        self.since = over;
    }

    /// Returns the next instant after `now` at which a group has been over for too long. Groups that have already been over for longer are
    /// ignored: they may be unable to return their excess.
    pub fn next(&self, now: Time) -> Option<Time> {
        self.since.values().map(|since| *since + self.after).filter(|at| *at > now).min()
    }

    /// Returns the groups that have been over for too long; groups with overdue descendants come after all groups without.
    pub fn due(&self, tree: &mut Tree, now: Time) -> Vec<OverdueGroup> {
        let due = self.since.iter().filter(|(_, since)| **since + self.after <= now).map(|(group, _)| *group);
        let mut below: BTreeMap<u32, Vec<u32>> = due.map(|group| (group, Vec::new())).collect();
        for group in below.keys().copied().collect::<Vec<u32>>() {
            for above in tree.path(group).skip(1) {
                below.entry(above).and_modify(|below| below.push(group));
            }
        }
        let mut due: Vec<(u32, Vec<u32>)> = below.into_iter().collect();
        // Amounts reclaimed from a group are reclaimed from its ancestors too.
        due.sort_by_cached_key(|(group, below)| match below.is_empty() {
            true => (false, Reverse(0)),
            false => (true, Reverse(tree.path(*group).count())),
        });
        due.into_iter()
            .map(|(group, below)| {
                tree.read(group);
                OverdueGroup { group, below, excess: tree.excess(group) }
            })
            .collect()
    }
}

impl Checkpoint for Overdue {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Overdue { after: _, dims: _, needed, watched, entries, changed, since } = self;
        visit_values!(visitor; needed, watched, entries, changed, since);
        Ok(())
    }
}
