//! Normal equations of a program with pairs: a dense matrix over all rows, factored by Cholesky's method.

use super::interior::{Form as _, NONE, Normal, Scaled};

/// The lower triangle of the factor, row by row.
#[derive(Default)]
pub(super) struct Dense {
    lower: Vec<f64>,
    rows: usize,
}

impl Normal<Scaled> for Dense {
    fn factor(&mut self, scaled: &Scaled, d: &[f64]) {
        let (m, k, rows) = (scaled.columns.len(), scaled.classes, scaled.rows());
        self.clear(rows);
        for (v, &d) in scaled.columns.iter().zip(d) {
            let (a, b) = (v.first as usize, v.second as usize);
            let mut entries =
                [(a, v.gain[0]), (k + a, v.time[0]), (2 * k + v.worker_type as usize, v.used), (0, 0.0), (0, 0.0)];
            let mut length = 3;
            if v.second != NONE {
                entries[3] = (b, v.gain[1]);
                entries[4] = (k + b, v.time[1]);
                length = 5;
            }
            for p in 0..length {
                let (row, value) = entries[p];
                for &(column, other) in &entries[..=p] {
                    self.lower[row.max(column) * rows + row.min(column)] += d * value * other;
                }
            }
        }
        for row in 0..rows {
            self.lower[row * rows + row] += d[m + row];
        }
        if !scaled.level.is_empty() {
            let d = d[m + rows];
            for row in 0..k {
                for column in 0..=row {
                    self.lower[row * rows + column] += d * scaled.level[row] * scaled.level[column];
                }
            }
        }
        self.decompose();
    }

    fn solve(&self, _: &Scaled, r: &mut [f64]) {
        self.substitute(r);
    }
}

impl Dense {
    /// Starts a matrix of zeros. Returns its lower triangle, row by row.
    pub fn clear(&mut self, rows: usize) -> &mut [f64] {
        self.rows = rows;
        self.lower.clear();
        self.lower.resize(rows * rows, 0.0);
        &mut self.lower
    }

    /// Replaces the matrix by its factor.
    pub fn decompose(&mut self) {
        let rows = self.rows;
        for row in 0..rows {
            let (above, current) = self.lower.split_at_mut(row * rows);
            for column in 0..row {
                let other = &above[column * rows..];
                let sum: f64 = dot(&current[..column], &other[..column]);
                current[column] = (current[column] - sum) / other[column];
            }
            let rest = current[row] - dot(&current[..row], &current[..row]);
            // Rounding can exhaust a pivot; its row then has no influence.
            current[row] = if rest > 1e-30 * current[row].abs() { rest.sqrt() } else { 1e64 };
        }
    }

    /// Replaces `r` by the solution.
    pub fn substitute(&self, r: &mut [f64]) {
        let rows = self.rows;
        for row in 0..rows {
            let line = &self.lower[row * rows..];
            r[row] = (r[row] - dot(&line[..row], &r[..row])) / line[row];
        }
        for row in (0..rows).rev() {
            r[row] /= self.lower[row * rows + row];
            let value = r[row];
            for column in 0..row {
                r[column] -= self.lower[row * rows + column] * value;
            }
        }
    }
}

/// Returns the inner product, in four partial sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 4];
    for (a, b) in a4.zip(b4) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums[0] + sums[1] + sums[2] + sums[3] + rest
}
