//! Work: the tasks of a row as an amount that a cluster serves, in cluster-seconds (the dominant share of a task times its duration).

use crate::window::Window;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_sim::workload::TaskSet;

/// One row of a workload: equal tasks of a user.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Work {
    /// The user that submits the row.
    pub user: UserId,
    /// The time of submission.
    pub submit: Time,
    /// The duration of each task at full speed.
    pub duration: Span,
    /// The number of tasks.
    pub tasks: u64,
    /// The demand of each task, in base units.
    pub demand: Resources,
    /// Whether the row was submitted in the measured window, so that its delay counts.
    pub measured: bool,
}

impl Work {
    /// Returns the work of a row. Returns `None` for a service, which never ends.
    pub fn from_row(row: &TaskSet, window: &Window) -> Option<Work> {
        let TaskSet { user, submit, duration, demand, .. } = *row;
        let measured = window.contains(submit);
        (duration < Span::ENDLESS).then(|| Work {
            user,
            submit,
            duration,
            tasks: u64::from(row.tasks),
            demand,
            measured,
        })
    }
}

/// The work of a user and its delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ServedWork {
    /// The submitted work, in cluster-seconds.
    pub work: f64,
    /// The sum of the ages of the work when it was served, in cluster-seconds times seconds.
    pub delay: f64,
}

impl ServedWork {
    /// Returns the mean age of the work when it was served, in seconds, or `None` without work.
    pub fn mean_delay(&self) -> Option<f64> {
        (self.work > 0.0).then(|| self.delay / self.work)
    }
}

/// The sizes of tasks on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct TaskSizes {
    /// The number of resources.
    dims: usize,
    /// 1 / capacity of each resource; 0 for a capacity of 0.
    pub(crate) inverse: [f64; MAX_DIMS],
}

impl TaskSizes {
    /// Creates the sizes on a cluster of this capacity, for a number of resources.
    pub fn new(dims: usize, capacity: &Resources) -> TaskSizes {
        let inverse = |d: usize| if d < dims && capacity.0[d] > 0 { 1.0 / capacity.0[d] as f64 } else { 0.0 };
        TaskSizes { dims, inverse: std::array::from_fn(inverse) }
    }

    /// Returns the dominant share of one task. Panics: if `demand` has fewer resources.
    #[inline]
    pub fn size(&self, demand: &[u64]) -> f64 {
        largest_share(&demand[..self.dims], &self.inverse)
    }
}

/// Returns the largest of the amounts, each times its factor (1 / capacity, and 1 / weight for a weighted share).
pub(crate) fn largest_share(amounts: &[u64], factors: &[f64; MAX_DIMS]) -> f64 {
    let shares = amounts.iter().zip(factors).map(|(&amount, factor)| amount as f64 * factor);
    // There is no NaN, so a comparison suffices; it compiles to one instruction, unlike `f64::max`.
    shares.fold(0.0, |largest, share| if share > largest { share } else { largest })
}

/// Multiplies amounts exactly. The product of `b` and `c` usually fits 64 bits, which is faster than 128 bits.
pub(crate) fn product(a: u64, b: u64, c: u64) -> u128 {
    match b.checked_mul(c) {
        Some(factor) => u128::from(a) * u128::from(factor),
        None => u128::from(a) * (u128::from(b) * u128::from(c)),
    }
}

/// A count and a checksum of recorded rows. Equal workloads have equal checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RowChecksum {
    rows: u64,
    sum: u64,
}

impl RowChecksum {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row.
    pub fn add(&mut self, work: &Work) {
        self.rows += 1;
        let row = work.submit.0 ^ work.duration.0.rotate_left(20) ^ work.tasks.rotate_left(40);
        let facts = row ^ u64::from(work.user.0).rotate_left(52) ^ u64::from(work.measured);
        let demand = work.demand.iter().fold(0u64, |sum, amount| sum.rotate_left(23).wrapping_add(amount));
        // The factor is odd and near 2^64 / π, so each bit of a row changes all higher bits.
        self.sum = (self.sum ^ facts ^ demand.rotate_left(11)).wrapping_mul(0x517c_c1b7_2722_0a95).rotate_left(29);
    }
}
