//! The state as an image.
//!
//! The image follows the observation of DeepRM (Mao, Alizadeh, Menache and Kandula, HotNets 2016). Time runs downwards, with one time step
//! per row. For each resource there is a picture of the expected use of the cluster from now on. Beside this picture there is one for each
//! of the first jobs in the queue. Its width is the request of the job, and its height the requested time. To the right are the backlog
//! behind these jobs and the time since the last arrival. The paper gives each job a colour, and jobs request whole slots. In this module
//! the cells of a row are filled from the left, and the last cell in part, so that all amounts and machines can be drawn.

use crate::AgentView;
use plimsoll_base::units::{MAX_DIMS, Span};

/// The sizes of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// The number of jobs that are shown one by one.
    pub window: usize,
    /// The time per row.
    pub step: Span,
    /// The number of rows.
    pub horizon: usize,
    /// The number of cells for each resource.
    pub slots: usize,
}

impl Image {
    /// The sizes in the paper: ten jobs, 20 time steps, ten slots per resource.
    pub const PAPER: Image = Image { window: 10, step: Span::from_secs(60), horizon: 20, slots: 10 };
    /// The number of jobs that the cells of the backlog represent in the paper.
    const BACKLOG: usize = 60;
    /// The number of steps without an arrival after which the last column is full.
    const QUIET: u64 = 10;

    /// Returns the number of columns of the backlog.
    fn backlog(&self) -> usize {
        Self::BACKLOG.div_ceil(self.horizon)
    }

    /// Returns the number of columns for a number of resources.
    pub fn columns(&self, dims: usize) -> usize {
        dims * self.slots * (1 + self.window) + self.backlog() + 1
    }

    /// Returns the height of a span in rows, at most the horizon.
    fn rows(&self, span: Span) -> usize {
        usize::try_from(span.0.div_ceil(self.step.0)).unwrap_or(usize::MAX).min(self.horizon)
    }

    /// Draws the image. Panics: if `into` has another size (a programmer error).
    pub fn write(&self, view: &AgentView, into: &mut [f32]) {
        let columns = self.columns(view.dims);
        assert_eq!(into.len(), self.horizon * columns, "a cell for each place");
        into.fill(0.0);
        let used = self.used(view);
        for d in 0..view.dims {
            let left = d * self.slots * (1 + self.window);
            for (row, used) in into.chunks_exact_mut(columns).zip(&used) {
                let share = if view.capacity.0[d] == 0 { 0.0 } else { used[d] as f64 / view.capacity.0[d] as f64 };
                fill(&mut row[left..left + self.slots], share as f32);
            }
            for (place, shown) in (1..).zip(view.window) {
                let left = left + place * self.slots;
                for row in into.chunks_exact_mut(columns).take(self.rows(shown.requested)) {
                    fill(&mut row[left..left + self.slots], shown.request[d]);
                }
            }
        }
        let (left, wide) = (columns - 1 - self.backlog(), self.backlog());
        let quiet = view.now.since(view.arrival).0 as f64 / (self.step.0 as f64 * Self::QUIET as f64);
        for (number, row) in into.chunks_exact_mut(columns).enumerate() {
            let jobs = view.beyond.saturating_sub(number * wide).min(wide);
            row[left..left + jobs].fill(1.0);
            row[columns - 1] = quiet.min(1.0) as f32;
        }
    }

    /// Returns the expected use in each row. A task that runs longer than expected is only in the first row.
    fn used(&self, view: &AgentView) -> Vec<[u128; MAX_DIMS]> {
        let mut used = vec![[0u128; MAX_DIMS]; self.horizon];
        for batch in view.running {
            let left = Span(batch.end.0.saturating_sub(view.now.0).max(1));
            let last = &mut used[self.rows(left) - 1];
            for (sum, demand) in last.iter_mut().zip(batch.demand.0) {
                *sum += u128::from(demand) * u128::from(batch.count);
            }
        }
        // At this point, each row contains only the tasks that end in it. Tasks of later rows also run in all earlier rows.
        for row in (1..self.horizon).rev() {
            let later = used[row];
            used[row - 1].iter_mut().zip(later).for_each(|(sum, later)| *sum += later);
        }
        used
    }
}

/// Fills empty cells from the left up to a share of them (at most 1); the last cell may be filled in part.
fn fill(cells: &mut [f32], share: f32) {
    let full = share.min(1.0) * cells.len() as f32;
    let whole = full as usize;
    cells[..whole].fill(1.0);
    if let Some(last) = cells.get_mut(whole) {
        *last = full - whole as f32;
    }
}
