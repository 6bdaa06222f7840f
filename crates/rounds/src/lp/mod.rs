//! Linear programs over fractions of time, and their solver.
//!
//! A [`Program`] has classes of identical jobs and columns. A column is the fraction of time that a job (or a pair of jobs) spends on one
//! worker type. Constraints: the time of a job is at most 1, a worker type is not used beyond its capacity, and a class may require a rate
//! `base + slope * level`. The objective is the level, a linear function of the columns, or nothing.
//!
//! The solver is a primal-dual interior-point method ([`solve`]). It returns the *center* of the optimal solutions: the limit of the central
//! path, which is unique, treats identical jobs alike and is positive wherever some optimum is positive. Gavel's solver (ECOS) also follows
//! the central path. Identical jobs are one class with a count; the barrier of a class is multiplied by its count, so the result equals that
//! of the program with every job separate.
//!
//! Each iteration solves normal equations. Without pairs they fall apart into one 2x2 block per class and a border of one row per type
//! (`blocks.rs`): linear time in the number of jobs. With pairs they are dense in the classes (`dense.rs`).
//! Programs with pairs of many distinct jobs of few kinds have one variable per pair of kinds ([`solve_kinds`], `aggregate/`).

mod aggregate;
mod blocks;
mod certificate;
mod dense;
mod interior;
mod prices;
mod sparse;

pub use aggregate::{KindColumn, KindJob, KindProgram, KindSolution, solve_kinds};
pub use certificate::{DualityGap, certify};
pub use interior::{ACCEPTED, solve, solve_within};
pub(crate) use prices::{PricedRates, largest_packing};

/// A class of identical jobs.
#[derive(Clone, Debug)]
pub struct JobClass {
    /// The number of identical jobs, positive.
    pub count: f64,
    /// The required rate of each job, or `None`.
    pub need: Option<Need>,
}

/// A required rate: `base + slope * level`, both parts not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// The part that does not depend on the level.
    pub base: f64,
    /// The increase of the requirement per unit of the level.
    pub slope: f64,
}

/// The share of a class in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnMember {
    /// The index of the class.
    pub class: u32,
    /// The number of columns of this kind that contain one job of the class. It multiplies time and rate.
    pub times: f64,
    /// The rate of the job in this column.
    pub rate: f64,
}

/// The fraction of time that one job, or each pair of jobs of two classes, spends on a worker type.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The worker type.
    pub worker_type: u32,
    /// The number of identical columns: of jobs in the class, or of pairs.
    pub copies: f64,
    /// The number of accelerators that one copy occupies.
    pub width: f64,
    /// The contribution of one unit of this column, all copies together, to a linear objective.
    pub value: f64,
    /// The job, or the first job of the pair.
    pub first: ColumnMember,
    /// The second job of a pair of different classes.
    pub second: Option<ColumnMember>,
}

/// A linear program. Columns without a second member are sorted by class if no column has one.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Accelerators of each worker type, positive.
    pub capacity: Vec<f64>,
    /// The classes.
    pub classes: Vec<JobClass>,
    /// The columns.
    pub columns: Vec<Column>,
    /// Whether the level is maximised. Otherwise it is 0 and the values of the columns are maximised.
    pub level: bool,
}

/// A solution of a [`Program`].
#[derive(Clone, Debug, Default)]
pub struct Solution {
    /// The level, or 0 for a program without.
    pub level: f64,
    /// The fraction of each column.
    pub x: Vec<f64>,
    /// The surplus of each class over its required rate, relative to the largest rate of its columns.
    pub surplus: Vec<f64>,
    /// The dual value of each class's requirement (per unit of rate, all jobs of the class together).
    pub need_price: Vec<f64>,
    /// The dual value of each worker type's capacity (per accelerator).
    pub type_price: Vec<f64>,
    /// The number of iterations.
    pub iterations: u32,
}

impl Program {
    /// Returns the rate of one job of each class under `x`.
    pub fn rates(&self, x: &[f64]) -> Vec<f64> {
        let mut rates = vec![0.0; self.classes.len()];
        for (column, x) in self.columns.iter().zip(x) {
            for member in std::iter::once(column.first).chain(column.second) {
                rates[member.class as usize] += member.times * member.rate * x;
            }
        }
        rates
    }

    /// Cuts fractions to at least 0, and divides all by the largest excess over a job's time or a type's capacity.
    pub fn make_feasible(&self, x: &mut [f64]) {
        let mut time = vec![0.0; self.classes.len()];
        let mut used = vec![0.0; self.capacity.len()];
        for (column, x) in self.columns.iter().zip(x.iter_mut()) {
            *x = x.max(0.0);
            for member in std::iter::once(column.first).chain(column.second) {
                time[member.class as usize] += member.times * *x;
            }
            used[column.worker_type as usize] += column.copies * column.width * *x;
        }
        divide_by_excess(x, &used, &self.capacity, time);
    }

    /// Returns whether a column has two members of different classes.
    fn has_pairs(&self) -> bool {
        self.columns.iter().any(|column| column.second.is_some())
    }
}

/// Divides `x` by the largest of 1, the used parts of the capacities, and the used parts `time` of jobs' time.
fn divide_by_excess(x: &mut [f64], used: &[f64], capacity: &[f64], time: impl IntoIterator<Item = f64>) {
    let parts = used.iter().zip(capacity).map(|(used, capacity)| used / capacity);
    let over = parts.chain(time).fold(1.0, f64::max);
    x.iter_mut().for_each(|x| *x /= over);
}

#[cfg(test)]
mod tests;
