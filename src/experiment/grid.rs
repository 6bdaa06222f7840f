//! The sampling grid: the instants at which what costs more than O(1) a change is evaluated.

use crate::metrics::GridMeans;
use crate::units::{Span, Time};

/// The sampling grid and the means over it.
pub(super) struct Grid {
    pub step: Span,
    next: Time,
    pub means: GridMeans,
}

impl Grid {
    pub fn new(step: Span, from: Time, dims: usize) -> Grid {
        Grid { step: Span(step.0.max(1)), next: from, means: GridMeans::new(dims) }
    }

    /// The first grid point from the last one asked for and before `to`, and how many there are.
    pub fn points(&mut self, to: Time) -> Option<(Time, u64)> {
        if self.next >= to {
            return None;
        }
        let (first, points) = (self.next, (to.0 - self.next.0).div_ceil(self.step.0));
        self.next = Time(first.0 + points * self.step.0);
        Some((first, points))
    }
}
