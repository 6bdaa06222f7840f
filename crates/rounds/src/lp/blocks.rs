//! Normal equations of a program without pairs: one 2x2 block per class, bordered by the types and the level.
//!
//! With `v_c = (g_c, 1)` for column `c` of a class and diagonal `D`, the block is `B = sum_c D_c v_c v_c' + diag(D_surplus, D_time)`. The
//! determinant of `B` and the Schur complement of the border are written as sums of products (formula of Cauchy and Binet) instead of
//! differences, because `D` ranges over 20 orders of magnitude near the optimum.

use super::interior::{Form as _, Normal, Scaled};

/// The relative change of the diagonal of each block.
const SHIFT: f64 = 1e-9;

/// The factored equations. The vectors of a class have `types + 1` entries: the types and the level.
#[derive(Default)]
pub(super) struct Blocks {
    /// The inverse of each block: (requirement, requirement), (requirement, time), (time, time).
    inverse: Vec<[f64; 3]>,
    /// `B^-1 E` of each class: two rows of `types + 1` entries.
    border: Vec<[f64; 2]>,
    /// The columns of the border in each class (`E`): requirement and time entries.
    edge: Vec<[f64; 2]>,
    /// The factored Schur complement, row by row, with the order of its pivots.
    schur: Vec<f64>,
    pivots: Vec<usize>,
}

impl Normal<Scaled> for Blocks {
    fn factor(&mut self, scaled: &Scaled, d: &[f64]) {
        let (m, k, n) = (scaled.columns.len(), scaled.classes, scaled.types);
        let size = n + usize::from(!scaled.level.is_empty());
        self.inverse.clear();
        self.border.clear();
        self.border.resize(k * size, [0.0; 2]);
        self.edge.clear();
        self.edge.resize(k * size, [0.0; 2]);
        self.schur.clear();
        self.schur.resize(size * size, 0.0);
        for j in 0..n {
            self.schur[j * size + j] = d[m + 2 * k + j];
        }
        if size > n {
            self.schur[n * size + n] = -1.0 / d[m + scaled.rows()];
        }
        let mut from = 0;
        for class in 0..k {
            let mut to = from;
            while to < m && scaled.columns[to].first as usize == class {
                to += 1;
            }
            let columns = &scaled.columns[from..to];
            let d_of = &d[from..to];
            // A class that is limited by its own time has a singular block, which only the level completes. The small change of the diagonal
            // keeps the elimination accurate; the conjugate gradients remove its influence.
            let gains: f64 = columns.iter().zip(d_of).map(|(v, d)| d * v.gain[0] * v.gain[0]).sum();
            let times: f64 = d_of.iter().sum();
            let (surplus, time) = (d[m + class] + SHIFT * gains, d[m + k + class] + SHIFT * times);
            let (mut gg, mut g, mut one, mut det) = (surplus, 0.0, time, surplus * time);
            for (a, (v, &da)) in columns.iter().zip(d_of).enumerate() {
                gg += da * v.gain[0] * v.gain[0];
                g += da * v.gain[0];
                one += da;
                det += surplus * da + time * da * v.gain[0] * v.gain[0];
                for (w, &db) in columns[..a].iter().zip(d_of) {
                    let apart = v.gain[0] - w.gain[0];
                    det += da * db * apart * apart;
                }
            }
            self.inverse.push([one / det, -g / det, gg / det]);
            let slope = scaled.level.get(class).copied().unwrap_or(0.0);
            let base = class * size;
            if size > n {
                self.edge[base + n] = [slope, 0.0];
                self.border[base + n] = [slope * one / det, -slope * g / det];
                self.schur[n * size + n] -= slope * slope * one / det;
            }
            for (a, (v, &da)) in columns.iter().zip(d_of).enumerate() {
                let (ga, ja, ua) = (v.gain[0], v.worker_type as usize, v.used);
                // The product of adj(B) and v_a without cancellation.
                let mut adjoint = [time * ga, surplus];
                for (c, (w, &dc)) in columns.iter().zip(d_of).enumerate() {
                    if c != a {
                        let apart = ga - w.gain[0];
                        adjoint[0] += dc * apart;
                        adjoint[1] -= dc * apart * w.gain[0];
                    }
                }
                let border = &mut self.border[base + ja];
                *border = [border[0] + da * ua * adjoint[0] / det, border[1] + da * ua * adjoint[1] / det];
                let edge = &mut self.edge[base + ja];
                *edge = [edge[0] + da * ua * ga, edge[1] + da * ua];
                if size > n {
                    let crossed = slope * da * ua * adjoint[0] / det;
                    self.schur[ja * size + n] -= crossed;
                    self.schur[n * size + ja] -= crossed;
                }
                // The determinant of B without column a gives the diagonal.
                let mut without = surplus * time;
                for (b, (w, &db)) in columns.iter().zip(d_of).enumerate() {
                    if b == a {
                        continue;
                    }
                    without += surplus * db + time * db * w.gain[0] * w.gain[0];
                    for (c, (u, &dc)) in columns[..b].iter().zip(d_of).enumerate() {
                        if c != a {
                            let apart = w.gain[0] - u.gain[0];
                            without += db * dc * apart * apart;
                        }
                    }
                    let mut mixed = surplus + time * ga * w.gain[0];
                    for (c, (u, &dc)) in columns.iter().zip(d_of).enumerate() {
                        if c != a && c != b {
                            mixed += dc * (ga - u.gain[0]) * (w.gain[0] - u.gain[0]);
                        }
                    }
                    self.schur[ja * size + w.worker_type as usize] -= ua * w.used * da * db * mixed / det;
                }
                self.schur[ja * size + ja] += ua * ua * da * without / det;
            }
            from = to;
        }
        self.decompose(size);
    }

    fn solve(&self, scaled: &Scaled, r: &mut [f64]) {
        let (k, n) = (scaled.classes, scaled.types);
        let size = n + usize::from(!scaled.level.is_empty());
        let mut side = [0.0; 16];
        let side = &mut side[..size];
        side[..n].copy_from_slice(&r[2 * k..]);
        for class in 0..k {
            let (a, b) = (r[class], r[k + class]);
            for (side, border) in side.iter_mut().zip(&self.border[class * size..]) {
                *side -= border[0] * a + border[1] * b;
            }
        }
        self.substitute(side);
        for class in 0..k {
            let (mut a, mut b) = (r[class], r[k + class]);
            for (side, edge) in side.iter().zip(&self.edge[class * size..]) {
                a -= edge[0] * side;
                b -= edge[1] * side;
            }
            let [p, q, s] = self.inverse[class];
            r[class] = p * a + q * b;
            r[k + class] = q * a + s * b;
        }
        r[2 * k..].copy_from_slice(&side[..n]);
    }
}

impl Blocks {
    /// Factors the Schur complement by Gaussian elimination with row exchanges.
    fn decompose(&mut self, size: usize) {
        self.pivots.clear();
        for step in 0..size {
            let pivot = (step..size)
                .max_by(|a, b| self.schur[a * size + step].abs().total_cmp(&self.schur[b * size + step].abs()))
                .unwrap_or(step);
            self.pivots.push(pivot);
            for column in 0..size {
                self.schur.swap(step * size + column, pivot * size + column);
            }
            for row in step + 1..size {
                let factor = self.schur[row * size + step] / self.schur[step * size + step];
                self.schur[row * size + step] = factor;
                for column in step + 1..size {
                    self.schur[row * size + column] -= factor * self.schur[step * size + column];
                }
            }
        }
    }

    fn substitute(&self, side: &mut [f64]) {
        let size = side.len();
        for step in 0..size {
            side.swap(step, self.pivots[step]);
        }
        for row in 1..size {
            for column in 0..row {
                side[row] -= self.schur[row * size + column] * side[column];
            }
        }
        for row in (0..size).rev() {
            for column in row + 1..size {
                side[row] -= self.schur[row * size + column] * side[column];
            }
            side[row] /= self.schur[row * size + row];
        }
    }
}
