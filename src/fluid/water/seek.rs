//! Where the level lies in an [`Order`]: from the root down, or step by step from where it was.

use super::group::{Target, Weight};
use super::node::{INNER, LEAF, NONE, Row};
use super::order::{Order, Source};

/// Between two neighbours: before point `at` of the leaf, or behind its last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub leaf: u32,
    pub at: u32,
    /// What stands before it weighs.
    pub below: Weight,
}

impl Order {
    /// The gap before the first point whose level reaches the target. O(log n).
    pub fn search(&self, target: &Target, source: &impl Source) -> Gap {
        let mut gap = Gap { leaf: self.root, at: 0, below: Weight::ZERO };
        for _ in 0..self.height {
            let inner = &self.inners[gap.leaf as usize];
            let weights = (0..inner.row.len()).map(|slot| inner.weight(slot));
            let (slot, below) = last_short::<INNER>(&inner.row, weights, gap.below, target, source);
            // A child whose first point falls short may still hold the gap; the one after it cannot, but at its start.
            let slot = slot.saturating_sub(1);
            gap = Gap { leaf: inner.child(slot), at: 0, below: below[slot] };
        }
        let row = self.row(gap.leaf);
        let weights = row.ids().iter().map(|&id| source.weight(id));
        let (at, below) = last_short::<LEAF>(row, weights, gap.below, target, source);
        Gap { leaf: gap.leaf, at: at as u32, below: below[at] }
    }

    /// The gap before the first point that reaches the target, found step by step from a gap nearby; `None` when it is
    /// more than `steps` away.
    pub fn walk(&self, mut gap: Gap, target: &Target, source: &impl Source, steps: usize) -> Option<Gap> {
        let start = gap.leaf as usize;
        let mut left = steps;
        let mut row = &self.leaves[start].row;
        loop {
            if gap.at as usize == row.len() {
                let next = self.leaves[gap.leaf as usize].next;
                if next == NONE {
                    break;
                }
                (gap.leaf, gap.at, row) = (next, 0, self.row(next));
            }
            let id = row.id(gap.at as usize);
            if target.reached(source.fraction(id), gap.below) {
                break;
            }
            gap.below = gap.below + source.weight(id);
            gap.at += 1;
            left = left.checked_sub(1)?;
        }
        if left < steps {
            return Some(gap);
        }
        loop {
            if gap.at == 0 {
                let previous = self.leaves[gap.leaf as usize].previous;
                if previous == NONE {
                    return Some(gap);
                }
                row = self.row(previous);
                (gap.leaf, gap.at) = (previous, row.len() as u32);
            }
            let id = row.id(gap.at as usize - 1);
            let below = gap.below - source.weight(id);
            if !target.reached(source.fraction(id), below) {
                return Some(gap);
            }
            gap.below = below;
            gap.at -= 1;
            left = left.checked_sub(1)?;
        }
    }
}

/// How many first points of a row fall short of the target, and what stands before each slot.
///
/// The sums are gathered first: what is not in the cache is then waited for once.
fn last_short<const N: usize>(
    row: &Row<N>,
    weights: impl Iterator<Item = Weight>,
    start: Weight,
    target: &Target,
    source: &impl Source,
) -> (usize, [Weight; N]) {
    let mut below = [start; N];
    let mut sum = start;
    for (slot, weight) in weights.enumerate() {
        below[slot] = sum;
        sum = sum + weight;
        if slot + 1 < N {
            below[slot + 1] = sum;
        }
    }
    let mut slots = 0..row.len();
    while slots.start < slots.end {
        let middle = slots.start.midpoint(slots.end);
        if target.reached(source.fraction(row.id(middle)), below[middle]) {
            slots.end = middle;
        } else {
            slots.start = middle + 1;
        }
    }
    (slots.start, below)
}
