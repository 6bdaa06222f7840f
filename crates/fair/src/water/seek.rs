//! Searches a [`PointOrder`] for the position of the level: from the root down, or step by step from the previous position.

use std::cmp::Ordering;

use super::group::{Break, Weight};
use super::level::{Level, compare};
use super::node::{INNER, KeyRow, LEAF, NONE};
use super::order::{NumberSource, PointOrder};

/// A position between two neighbouring points: before point `at` of the leaf, or after its last point.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Gap {
    pub leaf: u32,
    pub at: u32,
    /// The weight of the points before the gap.
    pub below: Weight,
}

/// The neighbourhood of a level, both ends included.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Window {
    low: (u64, u64),
    high: (u64, u64),
}

/// The position of a point relative to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    Below,
    Within,
    Above,
}

impl Window {
    /// Creates a window of an eighth of the level to each side. Levels of many siblings change little from one change to the next.
    pub fn around(level: Level) -> Window {
        let (amount, ratio) = (level.numerator, level.denominator);
        Window { low: (amount - amount / 8, ratio), high: (amount + amount / 8, ratio) }
    }

    #[inline]
    pub fn zone(&self, at: (u64, u64)) -> Zone {
        if compare(at, self.low) == Ordering::Less {
            Zone::Below
        } else if compare(at, self.high) == Ordering::Greater {
            Zone::Above
        } else {
            Zone::Within
        }
    }

    /// Returns the weight of the points below the window, or `None` if a point is within it.
    #[inline]
    pub fn below(&self, points: [Option<Break>; 2]) -> Option<Weight> {
        points.into_iter().flatten().try_fold(Weight::ZERO, |sum, point| match self.zone(point.fraction()) {
            Zone::Below => Some(sum + point.weight()),
            Zone::Within => None,
            Zone::Above => Some(sum),
        })
    }
}

impl PointOrder {
    /// Returns the gap before the first point for which `reached` is true, given the weight before the point. Points for which it is false
    /// come first. O(log n).
    pub fn search(&self, reached: impl Fn((u64, u64), Weight) -> bool, source: &impl NumberSource) -> Gap {
        let mut gap = Gap { leaf: self.root, at: 0, below: Weight::ZERO };
        for _ in 0..self.height {
            let inner = &self.inners[gap.leaf as usize];
            let weights = (0..inner.row.len()).map(|slot| inner.weight(slot));
            let (slot, below) = last_short::<INNER>(&inner.row, weights, gap.below, &reached, source);
            // A child whose first point is not reached may still contain the gap. The next child can contain it only at its start.
            let slot = slot.saturating_sub(1);
            gap = Gap { leaf: inner.child(slot), at: 0, below: below[slot] };
        }
        let row = self.row(gap.leaf);
        let weights = row.ids().iter().map(|&id| source.weight(id));
        let (at, below) = last_short::<LEAF>(row, weights, gap.below, &reached, source);
        Gap { leaf: gap.leaf, at: at as u32, below: below[at] }
    }

    /// Returns the gap before the first point that is reached, found step by step from a gap nearby; `None` if it is more than `steps`
    /// away.
    pub fn walk(
        &self,
        mut gap: Gap,
        reached: impl Fn((u64, u64), Weight) -> bool,
        source: &impl NumberSource,
        steps: usize,
    ) -> Option<Gap> {
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
            if reached(source.fraction(id), gap.below) {
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
            if !reached(source.fraction(id), below) {
                return Some(gap);
            }
            gap.below = below;
            gap.at -= 1;
            left = left.checked_sub(1)?;
        }
    }
}

/// Returns the number of leading points of a row that are not reached, and the weight before each slot.
///
/// The sums are gathered first, so that cache misses overlap.
fn last_short<const N: usize>(
    row: &KeyRow<N>,
    weights: impl Iterator<Item = Weight>,
    start: Weight,
    reached: &impl Fn((u64, u64), Weight) -> bool,
    source: &impl NumberSource,
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
        if reached(source.fraction(row.id(middle)), below[middle]) {
            slots.end = middle;
        } else {
            slots.start = middle + 1;
        }
    }
    (slots.start, below)
}
