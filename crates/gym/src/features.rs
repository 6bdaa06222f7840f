//! The window of waiting jobs as rows of numbers.
//!
//! The observation follows that of RLScheduler (Zhang, Dai, He, Bao and Xie, SC 2020): the first 128 jobs in the queue, each with its
//! waiting time, the time that it requests, the part of the machine that it requests, and whether it can start now. The paper counts only
//! processors; in this module each resource has its own column.

use crate::AgentView;
use plimsoll_base::units::Span;

/// The sizes of an observation, which has a row for each place of the window; see [`Features::columns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The number of jobs shown.
    pub window: usize,
    /// The time that is scaled to 1; longer times also become 1.
    pub longest: Span,
}

impl Features {
    /// The number of jobs shown in the paper.
    pub const WINDOW: usize = 128;

    /// Returns the number of columns for a number of resources: the time waited, the time requested, the part of each resource that the
    /// waiting tasks of the job's next task set request together, whether one of these tasks fits now, and whether there is a job in this
    /// place.
    pub fn columns(dims: usize) -> usize {
        dims + 4
    }

    /// Writes the rows; rows of places without a job are 0. Panics: if `into` has another size (a programmer error).
    pub fn write(&self, view: &AgentView, into: &mut [f32]) {
        let columns = Self::columns(view.dims);
        assert_eq!(into.len(), self.window * columns, "a row for each place");
        let part = |span: Span| (span.0 as f64 / self.longest.0 as f64).min(1.0) as f32;
        let (filled, empty) = into.split_at_mut(view.window.len() * columns);
        for (row, shown) in filled.chunks_exact_mut(columns).zip(view.window) {
            (row[0], row[1]) = (part(view.now.since(shown.release)), part(shown.requested));
            row[2..2 + view.dims].copy_from_slice(&shown.request[..view.dims]);
            row[2 + view.dims] = f32::from(u8::from(shown.fits));
            row[3 + view.dims] = 1.0;
        }
        empty.fill(0.0);
    }
}
