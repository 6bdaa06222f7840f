//! Groups that hold more than their runtime quota, and since when: what `reclaim = "kill-after:SPAN"` takes back.
//!
//! A group that holds more than its base is over its quota while the water of its siblings stands below the level that
//! would give it what it holds. Those levels are kept in order, so that a round meets only the groups that are over.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{TOP, Tree};
use crate::fluid::water::Level;
use crate::units::{MAX_DIMS, Resources, Span, Time};

/// The level that a group needs for what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needed {
    At(Level),
    /// No level gives it as much.
    None,
}

/// Who is over its quota.
#[derive(Clone, Debug)]
pub(super) struct Overdue {
    after: Span,
    dims: usize,
    /// What groups need that hold more than their base, by set of siblings and resource.
    needed: Vec<BTreeSet<(Needed, u32)>>,
    /// Sets and resources with any.
    watched: BTreeSet<usize>,
    /// By group and resource, its entry of `needed`.
    entries: Vec<Option<Needed>>,
    /// Leaves that have changed since anybody was last looked at.
    changed: BTreeSet<u32>,
    /// Groups that are over, and since when without a break.
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

    /// A group holds or asks for something else than before.
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

    /// Finds who is over its quota at `now`, given the leaves that have changed.
    pub fn look(&mut self, tree: &mut Tree, changed: &[u32], now: Time) {
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
            // Where there is enough for all nobody is over.
            let Some(level) = tree.level((at / self.dims) as u32, at % self.dims) else { continue };
            let level = Needed::At(level);
            // The highest need first: those behind the level have what they hold.
            for &(needed, group) in self.needed[at].iter().rev() {
                if needed <= level {
                    break;
                }
                over.insert(group, self.since.get(&group).copied().unwrap_or(now));
            }
        }
        self.since = over;
    }

    /// When the next of them has been over for too long.
    pub fn next(&self) -> Option<Time> {
        self.since.values().min().map(|since| *since + self.after)
    }

    /// Groups that have been over for too long, none above another of them, and by how much.
    pub fn due(&self, tree: &mut Tree, now: Time) -> Vec<(u32, Resources)> {
        let mut due: BTreeSet<u32> =
            self.since.iter().filter(|(_, since)| **since + self.after <= now).map(|(group, _)| *group).collect();
        // What is taken back from a group below is taken back from those above too.
        for &group in self.since.keys() {
            if due.contains(&group) {
                tree.path(group).skip(1).for_each(|above| {
                    due.remove(&above);
                });
            }
        }
        due.into_iter()
            .map(|group| {
                tree.read(group);
                let mut excess = [0; MAX_DIMS];
                excess.iter_mut().zip(tree.excess(group)).for_each(|(excess, more)| *excess = more);
                (group, Resources(excess))
            })
            .collect()
    }
}
