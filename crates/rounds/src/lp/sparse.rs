//! Programs with sparse columns and few rows: normal equations as a dense matrix over the rows.

use super::dense::Dense;
use super::interior::{Form, Normal};

/// A matrix by columns, with a slack per row.
#[derive(Default)]
pub(super) struct Sparse {
    /// The entries of each column: row and coefficient.
    pub columns: Vec<Vec<(u32, f64)>>,
    /// The coefficient of each row's slack: 1 or -1.
    pub sign: Vec<f64>,
    /// The number of rows of time and capacity: the first rows.
    pub limits: usize,
    /// Whether the last column is the level.
    pub level: bool,
}

impl Form for Sparse {
    fn rows(&self) -> usize {
        self.sign.len()
    }

    fn variables(&self) -> usize {
        self.columns.len() + self.sign.len()
    }

    fn times(&self, x: &[f64], out: &mut [f64]) {
        let (columns, slack) = x.split_at(self.columns.len());
        out.iter_mut().zip(&self.sign).zip(slack).for_each(|((out, sign), slack)| *out = sign * slack);
        for (column, x) in self.columns.iter().zip(columns) {
            column.iter().for_each(|&(row, value)| out[row as usize] += value * x);
        }
    }

    fn transposed(&self, y: &[f64], out: &mut [f64]) {
        let (columns, slack) = out.split_at_mut(self.columns.len());
        for (column, out) in self.columns.iter().zip(columns) {
            *out = column.iter().map(|&(row, value)| value * y[row as usize]).sum();
        }
        slack.iter_mut().zip(&self.sign).zip(y).for_each(|((out, sign), y)| *out = sign * y);
    }

    fn columns(&self) -> usize {
        self.columns.len() - usize::from(self.level)
    }

    fn level(&self) -> Option<usize> {
        self.level.then(|| self.columns.len() - 1)
    }

    fn slack(&self, row: usize) -> (usize, f64) {
        (self.columns.len() + row, self.sign[row])
    }

    fn fullest(&self, column: usize, load: &[f64]) -> f64 {
        let rows = self.columns[column].iter().map(|entry| entry.0 as usize);
        rows.filter(|&row| row < self.limits).map(|row| load[row]).fold(0.0, f64::max)
    }
}

impl Normal<Sparse> for Dense {
    fn factor(&mut self, form: &Sparse, d: &[f64]) {
        let rows = form.rows();
        let lower = self.clear(rows);
        for (column, d) in form.columns.iter().zip(d) {
            for (at, &(row, value)) in column.iter().enumerate() {
                for &(other, factor) in &column[..=at] {
                    lower[row.max(other) as usize * rows + row.min(other) as usize] += d * value * factor;
                }
            }
        }
        for (row, d) in d[form.columns.len()..].iter().enumerate() {
            lower[row * rows + row] += d;
        }
        self.decompose();
    }

    fn solve(&self, _: &Sparse, r: &mut [f64]) {
        self.substitute(r);
    }
}
