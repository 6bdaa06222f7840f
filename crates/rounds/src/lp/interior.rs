//! The primal-dual interior-point method (Mehrotra 1992, predictor and corrector), with a weighted central path.
//!
//! Standard form: minimise `c x` subject to `A x = b`, `x >= 0`. Rows: the requirement of each class, its time, each type's capacity.
//! Variables: the columns, one slack per row, the level. The central path has `x_i s_i = mu w_i`, where `w_i` is the number of copies.
//!
//! Every program starts cold: a start from an iterate of the previous program, after one of 1,000 (10,000) distinct jobs was replaced, was
//! 1.4 (1.1) times as fast at a stored gap of 0.1 and slower at gaps of 0.001 (measured at commit c1df0de7).

use plimsoll_base::error::{Error, Result};

use super::blocks::Blocks;
use super::dense::Dense;
use super::{Program, Solution};

/// The relative duality gap at which the method ends.
pub(super) const GAP: f64 = 1e-11;
/// The relative error that [`solve`] accepts when rounding prevents further progress.
pub const ACCEPTED: f64 = 1e-8;
/// The maximum number of steps after the gap is reached.
const CENTERINGS: u32 = 10;
/// The maximum number of steps of the conjugate gradients per system.
const STEPS: u32 = 25;
/// The maximum number of iterations.
const ITERATIONS: u32 = 80;

/// One variable: its entries in at most five rows.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    /// The class of the first member, or the row of a slack.
    pub first: u32,
    /// The class of the second member; `NONE` without one.
    pub second: u32,
    /// Coefficients of the first member: requirement row, time row.
    pub gain: [f64; 2],
    /// Coefficients of the time rows.
    pub time: [f64; 2],
    /// The worker type.
    pub worker_type: u32,
    /// The coefficient of the capacity row.
    pub used: f64,
}

pub(super) const NONE: u32 = u32::MAX;

/// The scaled program.
pub(super) struct Scaled {
    pub classes: usize,
    pub types: usize,
    pub columns: Vec<Variable>,
    /// The coefficient of each class's slack in its requirement row: -1, or 1 for a class without requirement.
    pub sign: Vec<f64>,
    /// The coefficient of the level in each requirement row (not positive), empty without a level.
    pub level: Vec<f64>,
}

/// The matrix `A` of a program in standard form.
pub(super) trait Form {
    /// Returns the number of rows.
    fn rows(&self) -> usize;
    /// Returns the number of variables.
    fn variables(&self) -> usize;
    /// Computes `out = A x`.
    fn times(&self, x: &[f64], out: &mut [f64]);
    /// Computes `out = A' y`.
    fn transposed(&self, y: &[f64], out: &mut [f64]);
    /// Returns the number of columns: the first variables.
    fn columns(&self) -> usize;
    /// Returns the index of the level, if the program has one.
    fn level(&self) -> Option<usize>;
    /// Returns the index and the coefficient of a row's slack.
    fn slack(&self, row: usize) -> (usize, f64);
    /// Returns the largest of `load` over the rows of time and capacity of a column.
    fn fullest(&self, column: usize, load: &[f64]) -> f64;
}

impl Form for Scaled {
    fn rows(&self) -> usize {
        2 * self.classes + self.types
    }

    fn variables(&self) -> usize {
        self.columns.len() + self.rows() + usize::from(!self.level.is_empty())
    }

    fn times(&self, x: &[f64], out: &mut [f64]) {
        let (m, k) = (self.columns.len(), self.classes);
        let slack = &x[m..m + self.rows()];
        for row in 0..k {
            out[row] = self.sign[row] * slack[row];
            out[k + row] = slack[k + row];
        }
        out[2 * k..].copy_from_slice(&slack[2 * k..]);
        if let Some(&z) = x.get(m + self.rows()) {
            self.level.iter().zip(out.iter_mut()).for_each(|(b, out)| *out += b * z);
        }
        for (v, &x) in self.columns.iter().zip(x) {
            out[v.first as usize] += v.gain[0] * x;
            out[k + v.first as usize] += v.time[0] * x;
            if v.second != NONE {
                out[v.second as usize] += v.gain[1] * x;
                out[k + v.second as usize] += v.time[1] * x;
            }
            out[2 * k + v.worker_type as usize] += v.used * x;
        }
    }

    fn transposed(&self, y: &[f64], out: &mut [f64]) {
        let (m, k) = (self.columns.len(), self.classes);
        for (v, out) in self.columns.iter().zip(out.iter_mut()) {
            let (a, b) = (v.first as usize, v.second as usize);
            let mut sum = v.gain[0] * y[a] + v.time[0] * y[k + a] + v.used * y[2 * k + v.worker_type as usize];
            if v.second != NONE {
                sum += v.gain[1] * y[b] + v.time[1] * y[k + b];
            }
            *out = sum;
        }
        for row in 0..self.rows() {
            out[m + row] = if row < k { self.sign[row] * y[row] } else { y[row] };
        }
        if !self.level.is_empty() {
            out[m + self.rows()] = self.level.iter().zip(y).map(|(b, y)| b * y).sum();
        }
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn level(&self) -> Option<usize> {
        (!self.level.is_empty()).then(|| self.columns.len() + self.rows())
    }

    fn slack(&self, row: usize) -> (usize, f64) {
        (self.columns.len() + row, self.sign.get(row).copied().unwrap_or(1.0))
    }

    fn fullest(&self, column: usize, load: &[f64]) -> f64 {
        let (v, k) = (&self.columns[column], self.classes);
        let second = if v.second == NONE { 0.0 } else { load[k + v.second as usize] };
        load[k + v.first as usize].max(second).max(load[2 * k + v.worker_type as usize])
    }
}

/// The normal equations `A D A' dy = r` of one iteration.
pub(super) trait Normal<F> {
    /// Factors the matrix for the diagonal `d` of all variables.
    fn factor(&mut self, form: &F, d: &[f64]);
    /// Replaces `r` by the solution.
    fn solve(&self, form: &F, r: &mut [f64]);
}

/// Solves a program.
///
/// Every class has a column with a positive rate, or no requirement. Requirements without slope must be feasible. Returns the center of the
/// optima. Errors: [`Error::NotConverged`].
pub fn solve(program: &Program) -> Result<Solution> {
    solve_within(program, ACCEPTED)
}

/// Solves a program as [`solve`], and accepts a result with a relative error of `accepted` if rounding prevents a smaller one.
pub fn solve_within(program: &Program, accepted: f64) -> Result<Solution> {
    if program.classes.is_empty() {
        return Ok(Solution { type_price: vec![0.0; program.capacity.len()], ..Solution::default() });
    }
    if program.has_pairs() {
        return run(program, accepted, &mut Dense::default());
    }
    // The elimination by blocks can lose accuracy on degenerate programs, the dense factor is slower and more accurate.
    run(program, accepted, &mut Blocks::default()).or_else(|_| run(program, accepted, &mut Dense::default()))
}

/// The scale factors of a program's rows and of its level.
struct Scales {
    rate: Vec<f64>,
    level: f64,
    value: f64,
}

fn scale(program: &Program) -> (Scaled, Scales, Vec<f64>) {
    let (k, n) = (program.classes.len(), program.capacity.len());
    let mut rate = vec![0.0f64; k];
    for column in &program.columns {
        for member in std::iter::once(column.first).chain(column.second) {
            let at = &mut rate[member.class as usize];
            *at = at.max(member.rate);
        }
    }
    rate.iter_mut().zip(&program.classes).for_each(|(rate, class)| {
        if class.need.is_none() || *rate <= 0.0 {
            *rate = 1.0;
        }
    });
    let slope = |at: usize| program.classes[at].need.map_or(0.0, |need| need.slope) / rate[at];
    let steepest = (0..k).map(slope).fold(0.0, f64::max);
    let level = if steepest > 0.0 { 1.0 / steepest } else { 1.0 };
    let value = program.columns.iter().map(|column| column.value.abs() / column.copies).fold(0.0, f64::max);
    let value = if value > 0.0 { value } else { 1.0 };
    let columns = program.columns.iter().map(|column| {
        let gain = |member: super::ColumnMember| {
            let at = member.class as usize;
            if program.classes[at].need.is_some() { member.times * member.rate / rate[at] } else { 0.0 }
        };
        let second = column.second;
        Variable {
            first: column.first.class,
            second: second.map_or(NONE, |member| member.class),
            gain: [gain(column.first), second.map_or(0.0, gain)],
            time: [column.first.times, second.map_or(0.0, |member| member.times)],
            worker_type: column.worker_type,
            used: column.copies * column.width / program.capacity[column.worker_type as usize],
        }
    });
    let mut bound = vec![0.0; 2 * k + n];
    for (at, class) in program.classes.iter().enumerate() {
        bound[at] = class.need.map_or(1.0, |need| need.base / rate[at]);
    }
    bound[k..].fill(1.0);
    let sign = program.classes.iter().map(|class| if class.need.is_some() { -1.0 } else { 1.0 }).collect();
    let level_column = if program.level { (0..k).map(|at| -slope(at) * level).collect() } else { Vec::new() };
    let scaled = Scaled { classes: k, types: n, columns: columns.collect(), sign, level: level_column };
    (scaled, Scales { rate, level, value }, bound)
}

/// Returns a point that satisfies all rows strictly where the requirements permit that: half of the time and capacity in equal parts, and half
/// of the level that these permit.
pub(super) fn start(form: &impl Form, bound: &[f64]) -> Vec<f64> {
    let (m, rows) = (form.columns(), form.rows());
    let (mut x, mut load) = (vec![0.0; form.variables()], vec![0.0; rows]);
    // Each column has the same fraction, at most half of what its jobs and its type permit.
    x[..m].fill(1.0);
    form.times(&x, &mut load);
    x.iter_mut().take(m).enumerate().for_each(|(column, x)| *x = 0.5 / form.fullest(column, &load));
    let mut used = vec![0.0; rows];
    form.times(&x, &mut used);
    if let Some(level) = form.level() {
        let (mut unit, mut steps) = (vec![0.0; form.variables()], vec![0.0; rows]);
        unit[level] = 1.0;
        form.times(&unit, &mut steps);
        let rooms = (0..rows).filter(|&row| steps[row] < 0.0).map(|row| (used[row] - bound[row]) / -steps[row]);
        x[level] = (0.5 * rooms.fold(f64::INFINITY, f64::min)).clamp(1e-4, 1e6);
        form.times(&x.clone(), &mut used);
    }
    for row in 0..rows {
        let (slack, sign) = form.slack(row);
        x[slack] = (sign * (bound[row] - used[row])).max(0.05);
    }
    x
}

fn run(program: &Program, accepted: f64, normal: &mut impl Normal<Scaled>) -> Result<Solution> {
    let (scaled, scales, bound) = scale(program);
    let (m, k, rows, all) = (scaled.columns.len(), scaled.classes, scaled.rows(), scaled.variables());
    let mut cost = vec![0.0; all];
    let mut weight = vec![1.0; all];
    for (at, column) in program.columns.iter().enumerate() {
        cost[at] = if program.level { 0.0 } else { -column.value / scales.value };
        weight[at] = column.copies;
    }
    for (at, class) in program.classes.iter().enumerate() {
        (weight[m + at], weight[m + k + at]) = (class.count, class.count);
    }
    if program.level {
        cost[m + rows] = -1.0;
    }
    let from = start(&scaled, &bound);
    let Point { error, x, y, iterations } = follow(&scaled, (&cost, &weight, &bound), from, GAP, normal)?;
    if error > accepted {
        return Err(not_converged(&format!("relative error {error:.1e} after {iterations} iterations")));
    }
    let capacity_price = |at: usize| -y[2 * k + at] / program.capacity[at];
    let unscale = if program.level { scales.level } else { scales.value };
    Ok(Solution {
        level: if program.level { x[m + rows] * scales.level } else { 0.0 },
        surplus: (0..k).map(|at| x[m + at]).collect(),
        need_price: (0..k).map(|at| y[at] / scales.rate[at] * unscale).collect(),
        type_price: (0..program.capacity.len()).map(|at| capacity_price(at) * unscale).collect(),
        x: x[..m].to_vec(),
        iterations,
    })
}

/// A point near the central path.
pub(super) struct Point {
    /// The relative gap plus the largest residuals.
    pub error: f64,
    /// The variables.
    pub x: Vec<f64>,
    /// The dual values of the rows.
    pub y: Vec<f64>,
    /// The number of iterations.
    pub iterations: u32,
}

/// Follows the central path from `x` until the relative gap is below `least_gap`, and then approaches the path.
///
/// Errors: [`Error::NotConverged`] if the first point is not finite. The caller decides whether the error of the point is accepted.
pub(super) fn follow<F: Form>(
    form: &F,
    (cost, weight, bound): (&[f64], &[f64], &[f64]),
    mut x: Vec<f64>,
    least_gap: f64,
    normal: &mut impl Normal<F>,
) -> Result<Point> {
    let (rows, all) = (form.rows(), form.variables());
    let total: f64 = weight.iter().sum();
    let mut s: Vec<f64> = x.iter().zip(weight).map(|(x, w)| w / total * 2.0 / x.max(1e-3)).collect();
    s.iter_mut().zip(cost).for_each(|(s, c)| *s += c.max(0.0));
    let mut y = vec![0.0; rows];
    let (mut rp, mut rd, mut rc) = (vec![0.0; rows], vec![0.0; all], vec![0.0; all]);
    let (mut d, mut dy, mut dx, mut ds, mut work) =
        (vec![0.0; all], vec![0.0; rows], vec![0.0; all], vec![0.0; all], vec![0.0; all]);
    let mut scratch: [Vec<f64>; 4] = std::array::from_fn(|_| vec![0.0; rows]);
    let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
    let (mut iterations, mut centered) = (0, 0);
    loop {
        form.times(&x, &mut rp);
        rp.iter_mut().zip(bound).for_each(|(r, b)| *r = b - *r);
        form.transposed(&y, &mut rd);
        for at in 0..all {
            rd[at] = cost[at] - rd[at] - s[at];
        }
        let complement: f64 = x.iter().zip(&s).map(|(x, s)| x * s).sum();
        let mu = complement / total;
        let objective: f64 = cost.iter().zip(&x).map(|(c, x)| c * x).sum();
        // A sum of zeros and NaN is NaN, so that a failed step is noticed.
        let largest = |values: &[f64]| {
            values.iter().fold(0.0f64, |most, value| most.max(value.abs())) + values.iter().sum::<f64>() * 0.0
        };
        let dual = (1.0 + largest(&y)).min(1e3);
        let gap = complement / (1e-3 + objective.abs());
        let error = gap + largest(&rp) + largest(&rd) / dual;
        if !error.is_finite() {
            break;
        }
        if best.as_ref().is_none_or(|(least, ..)| error <= *least || error < 2.0 * least_gap) {
            best = Some((error, x.clone(), y.clone()));
        }
        // The last steps keep the gap; they approach the central path and reduce the residuals.
        let centering = gap < least_gap;
        if (error < 2.0 * least_gap && centered >= 2) || centered == CENTERINGS || iterations == ITERATIONS {
            break;
        }
        centered += u32::from(centering);
        iterations += 1;
        for at in 0..all {
            d[at] = x[at] / s[at];
        }
        normal.factor(form, &d);
        let mut direction = |rc: &[f64], dx: &mut [f64], ds: &mut [f64], dy: &mut [f64]| {
            for at in 0..all {
                work[at] = d[at] * rd[at] - rc[at] / s[at];
            }
            form.times(&work, dy);
            dy.iter_mut().zip(&rp).for_each(|(dy, rp)| *dy += rp);
            refine(form, &d, normal, dy, &mut work, &mut scratch);
            form.transposed(dy, ds);
            for at in 0..all {
                ds[at] = rd[at] - ds[at];
                dx[at] = rc[at] / s[at] - d[at] * ds[at];
            }
        };
        let target = if centering {
            (0..all).for_each(|at| rc[at] = mu * weight[at] - x[at] * s[at]);
            1.0
        } else {
            (0..all).for_each(|at| rc[at] = -x[at] * s[at]);
            direction(&rc, &mut dx, &mut ds, &mut dy);
            let (p, q) = (longest(&x, &dx), longest(&s, &ds));
            let reached: f64 = (0..all).map(|at| (x[at] + p * dx[at]) * (s[at] + q * ds[at])).sum::<f64>() / total;
            let sigma = (reached / mu).powi(3).clamp(1e-6, 1.0);
            (0..all).for_each(|at| rc[at] = sigma * mu * weight[at] - x[at] * s[at] - dx[at] * ds[at]);
            sigma
        };
        direction(&rc, &mut dx, &mut ds, &mut dy);
        let short = if target > 0.5 { 0.9 } else { 1.0 - 0.1f64.min(mu.sqrt()).max(1e-3) };
        let (p, q) = ((short * longest(&x, &dx)).min(1.0), (short * longest(&s, &ds)).min(1.0));
        x.iter_mut().zip(&dx).for_each(|(x, dx)| *x += p * dx);
        s.iter_mut().zip(&ds).for_each(|(s, ds)| *s += q * ds);
        y.iter_mut().zip(&dy).for_each(|(y, dy)| *y += q * dy);
    }
    let (error, x, y) = best.ok_or_else(|| not_converged("the first point is not finite"))?;
    Ok(Point { error, x, y, iterations })
}

/// Solves `A D A' y = r` by conjugate gradients with the factored matrix as preconditioner. `r` is replaced by the solution.
///
/// The factored matrix is exact up to rounding and to a relative change of its diagonal, so few steps suffice.
fn refine<F: Form>(
    form: &F,
    d: &[f64],
    normal: &impl Normal<F>,
    r: &mut [f64],
    work: &mut [f64],
    [y, z, p, q]: &mut [Vec<f64>; 4],
) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = |values: &[f64]| values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let target = size(r) * 1e-12;
    y.fill(0.0);
    z.copy_from_slice(r);
    normal.solve(form, z);
    p.copy_from_slice(z);
    let mut product = dot(r, z);
    for _ in 0..STEPS {
        form.transposed(p, work);
        work.iter_mut().zip(d).for_each(|(w, d)| *w *= d);
        form.times(work, q);
        let curvature = dot(p, q);
        if curvature <= 0.0 || curvature.is_nan() || product == 0.0 {
            break;
        }
        let step = product / curvature;
        y.iter_mut().zip(&*p).for_each(|(y, p)| *y += step * p);
        r.iter_mut().zip(&*q).for_each(|(r, q)| *r -= step * q);
        if size(r) <= target {
            break;
        }
        z.copy_from_slice(r);
        normal.solve(form, z);
        let next = dot(r, z);
        let turn = next / product;
        product = next;
        p.iter_mut().zip(&*z).for_each(|(p, z)| *p = z + turn * *p);
    }
    r.copy_from_slice(y);
}

pub(super) fn not_converged(problem: &str) -> Error {
    Error::NotConverged { solver: "interior-point method of the fractions".to_owned(), problem: problem.to_owned() }
}

/// Returns the largest step in `[0, 1]` that keeps `x + step * dx` not negative.
fn longest(x: &[f64], dx: &[f64]) -> f64 {
    x.iter().zip(dx).fold(1.0, |step: f64, (x, dx)| if *dx < 0.0 { step.min(-x / dx) } else { step })
}
