//! The walk from the root to the next queue: at each node to the first child in the order, by the child's next workload; for victims to the
//! last one, without its potential victims.
//!
//! Source: the KAI scheduler, `actions/utils/job_order_by_queue.go` (state of August 2026).

use super::super::cycle::{QueueAt, ROOT};
use super::quotas::{Shares, Side};
use plimsoll_base::units::Resources;

/// An item in the line of a queue.
pub trait Item {
    /// The amounts that it needs, or holds.
    fn amount(&self) -> Resources;
}

/// Lines of queues, and the way to the next one.
///
/// Cost: O(siblings * depth) comparisons for each that is taken or put.
pub struct Walk<'a, T> {
    shares: Shares<'a>,
    /// By leaf, the items in line: the next is the last of the list.
    lines: Vec<Vec<T>>,
    /// By node, the child to visit; `None` if no item is below it.
    to: Vec<Option<QueueAt>>,
    /// By leaf, the amounts of those taken, when victims are looked for.
    taken: Option<Vec<Resources>>,
}

impl<'a, T: Item> Walk<'a, T> {
    /// Over these lines, the next of each first.
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

    /// The next queue.
    pub fn leaf(&self) -> Option<QueueAt> {
        let mut at = ROOT;
        while !self.shares.tree.is_leaf(at) {
            at = self.to[at]?;
        }
        (!self.lines[at].is_empty()).then_some(at)
    }

    /// The next of a queue leaves its line.
    pub fn pop(&mut self, leaf: QueueAt) -> Option<T> {
        let item = self.lines[leaf].pop()?;
        if let Some(taken) = &mut self.taken {
            let amount = item.amount();
            taken[leaf].0.iter_mut().zip(amount.0).for_each(|(sum, amount)| *sum += amount);
        }
        Some(item)
    }

    /// Inserts an item into the line of a queue, behind all for which `before` holds.
    pub fn insert_at(&mut self, leaf: QueueAt, item: T, before: impl Fn(&T) -> bool) {
        let line = &mut self.lines[leaf];
        let at = line.iter().position(before).unwrap_or(line.len());
        line.insert(at, item);
    }

    /// Recomputes the path if it contains this queue.
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

    /// A queue with its next, or with that of the first under it.
    fn side(&self, at: QueueAt) -> Option<Side> {
        let mut leaf = at;
        while !self.shares.tree.is_leaf(leaf) {
            leaf = self.to[leaf]?;
        }
        let amount = self.lines[leaf].last()?.amount();
        Some(match &self.taken {
            None => Side { at, with: amount, without: Resources::ZERO },
            Some(taken) => {
                let mut without = taken[leaf];
                without.0.iter_mut().zip(amount.0).for_each(|(sum, amount)| *sum += amount);
                Side { at, with: Resources::ZERO, without }
            }
        })
    }
}
