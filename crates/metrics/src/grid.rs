//! The sampling grid: the instants at which metrics that cost more than O(1) per change are evaluated.

use crate::run::GridMeans;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time};

/// The sampling grid and the means over it.
pub struct SampleGrid {
    /// The step of the grid.
    pub step: Span,
    next: Time,
    /// The means over the visited points.
    pub means: GridMeans,
}

impl SampleGrid {
    /// Creates a grid with its first point at `from`, for a number of resources.
    pub fn new(step: Span, from: Time, dims: usize) -> SampleGrid {
        SampleGrid { step: Span(step.0.max(1)), next: from, means: GridMeans::new(dims) }
    }

    /// Returns the first unvisited grid point before `to` and the number of grid points up to `to`, and marks them as visited.
    pub fn points(&mut self, to: Time) -> Option<(Time, u64)> {
        if self.next >= to {
            return None;
        }
        let (first, points) = (self.next, (to.0 - self.next.0).div_ceil(self.step.0));
        self.next = Time(first.0 + points * self.step.0);
        Some((first, points))
    }
}

impl Checkpoint for SampleGrid {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let SampleGrid { step: _, next, means } = self;
        visitor.value(next)?;
        means.visit(visitor)
    }
}
