//! The walk from the root to the next queue.
//!
//! At each node the walk visits the first child in the order of the policy, compared with its next workload. A walk over victims visits the
//! last child, compared without its potential victims.
//!
//! Source: the KAI scheduler, `actions/utils/job_order_by_queue.go` (state of August 2026).

use super::super::cycle::{QueueAt, ROOT};
use super::quotas::{Shares, Side};
use plimsoll_base::units::Resources;

/// An item of a queue: a workload or a victim.
pub trait Item {
    /// Returns the amounts that the item needs or that are allocated to it.
    fn amount(&self) -> Resources;
}

/// The items of all queues, and the path to the next item.
///
/// Cost: O(siblings * depth) comparisons for each item that is removed or inserted.
pub struct Walk<'a, T> {
    shares: Shares<'a>,
    /// By leaf, its items in reverse order: the next one is the last of the list.
    lines: Vec<Vec<T>>,
    /// By node, the child to visit; `None` if no item is below it.
    to: Vec<Option<QueueAt>>,
    /// By leaf, the amounts of the removed items if the items are victims.
    taken: Option<Vec<Resources>>,
}

impl<'a, T: Item> Walk<'a, T> {
    /// Creates a walk over these items, given in their order.
    pub fn new(shares: Shares<'a>, usage: &[Resources], lines: Vec<(QueueAt, Vec<T>)>, victims: bool) -> Walk<'a, T> {
        let count = shares.tree.nodes.len();
        let mut walk = Walk {
            shares,
            lines: (0..count).map(|_| Vec::new()).collect(),
            to: vec![None; count],
            taken: victims.then(|| vec![Resources::ZERO; count]),
        };
        for (leaf, mut line) in lines {
            line.reverse();
            walk.lines[leaf] = line;
        }
        walk.settle_all(usage);
        walk
    }

    /// Returns the next queue.
    pub fn leaf(&self) -> Option<QueueAt> {
        let mut at = ROOT;
        while !self.shares.tree.is_leaf(at) {
            at = self.to[at]?;
        }
        (!self.lines[at].is_empty()).then_some(at)
    }

    /// Removes and returns the next item of a queue.
    pub fn pop(&mut self, leaf: QueueAt) -> Option<T> {
        let item = self.lines[leaf].pop()?;
        if let Some(taken) = &mut self.taken {
            taken[leaf] += item.amount();
        }
        Some(item)
    }

    /// Inserts an item into a queue, behind all items for which `before` returns `true`.
    pub fn insert_at(&mut self, leaf: QueueAt, item: T, before: impl Fn(&T) -> bool) {
        let line = &mut self.lines[leaf];
        let at = line.iter().position(before).unwrap_or(line.len());
        line.insert(at, item);
    }

    /// Recomputes the paths through the ancestors of a queue.
    pub fn settle(&mut self, leaf: QueueAt, usage: &[Resources]) {
        let path: Vec<QueueAt> = self.shares.tree.path(leaf).skip(1).collect();
        path.into_iter().for_each(|at| self.to[at] = self.first(at, usage));
    }

    /// Recomputes all paths.
    pub fn settle_all(&mut self, usage: &[Resources]) {
        for at in self.shares.tree.upwards() {
            if !self.shares.tree.is_leaf(at) {
                self.to[at] = self.first(at, usage);
            }
        }
    }

    fn first(&self, at: QueueAt, usage: &[Resources]) -> Option<QueueAt> {
        let mut best: Option<Side> = None;
        for child in &self.shares.tree.nodes[at].children {
            let Some(side) = self.side(*child) else { continue };
            let before = best.is_none_or(|best| {
                let order = self.shares.compare(usage, &side, &best);
                if self.taken.is_some() { order.is_gt() } else { order.is_lt() }
            });
            if before {
                best = Some(side);
            }
        }
        best.map(|side| side.at)
    }

    /// Returns a queue for a comparison, with the next item of the first leaf below it (or its own next item).
    fn side(&self, at: QueueAt) -> Option<Side> {
        let mut leaf = at;
        while !self.shares.tree.is_leaf(leaf) {
            leaf = self.to[leaf]?;
        }
        let amount = self.lines[leaf].last()?.amount();
        Some(match &self.taken {
            None => Side { at, with: amount, without: Resources::ZERO },
            Some(taken) => Side { at, with: Resources::ZERO, without: taken[leaf] + amount },
        })
    }
}
