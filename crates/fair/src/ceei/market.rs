//! Computes prices by projected Newton steps: the dual of Nash welfare has only one unknown per resource.
//!
//! With capacities 1, `max sum_i w_i ln x_i` subject to `sum_i x_i d_ir <= 1` and `x_i <= t_i` (Eisenberg and Gale) has the dual `min over
//! p >= 0 of sum_r p_r + sum_i phi_i(d_i . p)`, where `phi_i'(q) = -x_i(q)` and `x_i(q) = min(t_i, w_i / q)`: the tasks that a user buys at
//! the price `q` per task. The dual is convex and once differentiable; its gradient is the slack `1 - sum_i x_i d_ir`. A step solves the m
//! x m Newton system among the resources that are priced (or overfull). It then follows that direction to the first minimum on the path;
//! prices that reach 0 stay there (Bertsekas, SIAM J. Control and Optimization 20, 1982). Every step descends, and a step costs O(n m^2).
//!
//! The line search matters. Along a path only the payments and their direction are needed, O(n) per trial, so the search may be nearly
//! exact. Damping by a formula takes many times more steps.

use super::super::{Certificate, Problem, TOLERANCE};
use super::kernel::{CHUNK, add_scaled, buy, dot, spent};
use plimsoll_base::error::{Error, Result};

/// The step limit; tens of steps suffice if prices can be found.
const STEPS: usize = 300;

/// A Newton step of this size, relative to the prices, has no further effect.
const DONE: f64 = 1e-15;

/// A step below this size that no longer shrinks is rounding error.
const ROUNDING: f64 = 1e-10;

/// The part of the initial slope that a line search may leave.
const LINE: f64 = 0.1;

/// The maximum number of trials of a line search.
const TRIALS: usize = 40;

/// The number of multiplicative steps at a cold start. Each moves every price towards its solution, at a quarter of the cost of a Newton
/// step.
const RESPONSES: usize = 3;

/// A solver for a sequence of problems: each search starts from the prices of the previous one.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Market {
    prices: Vec<f64>,
    tasks: Vec<f64>,
    certificate: Certificate,
    steps: usize,
    weight: f64,
    /// The share of each resource that is bought at the current prices.
    used: Vec<f64>,
    /// How fast `used` falls with each price.
    matrix: Vec<f64>,
    direction: Vec<f64>,
    system: System,
    /// Each user's price per task, and its change along the direction.
    pay: Vec<f64>,
    pay_step: Vec<f64>,
    /// The falls of a chunk times its columns.
    falling: Vec<f64>,
}

impl Market {
    /// Creates a market without previous prices.
    pub fn new() -> Market {
        Market::default()
    }

    /// Returns the price of the whole of each resource; with unlimited tasks the prices add up to the sum of the weights.
    pub fn prices(&self) -> &[f64] {
        &self.prices
    }

    /// Returns the number of tasks that each user runs.
    pub fn tasks(&self) -> &[f64] {
        &self.tasks
    }

    /// Returns the distance of the solution from the optimum.
    pub fn certificate(&self) -> Certificate {
        self.certificate
    }

    /// Returns the number of Newton steps of the last search.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Discards the previous prices, so that the next search starts cold.
    pub fn forget(&mut self) {
        self.prices.clear();
    }

    /// Computes the allocation, starting from the previous prices if the number of resources is unchanged.
    ///
    /// Errors: [`Error::NotConverged`] if the certificate exceeds [`TOLERANCE`], and [`Error::Plan`] for a user without demand and with
    /// unlimited tasks. Cost: O(users · resources²) per step.
    pub fn solve(&mut self, problem: &Problem) -> Result<()> {
        self.search(problem);
        let worst = self.certificate.residual.max(self.certificate.gap);
        if worst <= TOLERANCE {
            return Ok(());
        }
        // From a bad start, rounding may end a search early. A cold start is better in that case.
        self.forget();
        self.search(problem);
        let Certificate { residual, gap } = self.certificate;
        // This form treats NaN as an error.
        if residual <= TOLERANCE && gap <= TOLERANCE {
            return Ok(());
        }
        let problem = format!("optimality conditions off by {residual:e}, duality gap {gap:e} a unit of weight");
        Err(Error::NotConverged { solver: "ceei".to_owned(), problem })
    }

    fn search(&mut self, problem: &Problem) {
        let dims = problem.dims();
        let weight: f64 = problem.weight().iter().sum();
        self.prepare(problem.users(), dims);
        let floor = weight / dims as f64 * 1e-3;
        if self.prices.len() == dims && self.prices.iter().any(|price| *price > 0.0) {
            let grown = weight / self.weight;
            self.prices.iter_mut().for_each(|price| *price *= grown);
        } else {
            self.prices.clear();
            self.prices.resize(dims, weight / dims as f64);
            for _ in 0..RESPONSES {
                self.demand(problem, false);
                for (price, used) in self.prices.iter_mut().zip(&self.used) {
                    *price *= used.clamp(0.1, 10.0);
                }
            }
        }
        self.weight = weight;
        self.steps = 0;
        let mut last = f64::INFINITY;
        loop {
            // After a small step the next one is its square, so the previous matrix suffices.
            self.demand(problem, last > 1e-9);
            if self.steps == 0 && self.used.iter().any(|used| *used > 1e6) {
                // A user with unlimited tasks pays almost nothing at the old prices.
                self.prices.iter_mut().for_each(|price| *price = price.max(floor));
                self.demand(problem, true);
            }
            let size = self.newton();
            if size <= DONE || (size < ROUNDING && size >= last) || self.steps == STEPS || size.is_nan() {
                break;
            }
            last = size;
            self.steps += 1;
            self.follow(problem);
        }
        self.certify();
    }

    fn prepare(&mut self, users: usize, dims: usize) {
        for of_users in [&mut self.tasks, &mut self.pay, &mut self.pay_step] {
            of_users.resize(users, 0.0);
        }
        for of_dims in [&mut self.used, &mut self.direction] {
            of_dims.resize(dims, 0.0);
        }
        self.matrix.resize(dims * dims, 0.0);
        self.falling.resize(dims * CHUNK, 0.0);
    }

    /// Computes payments, tasks and usage at the current prices; with `curved` also how fast usage falls with prices.
    fn demand(&mut self, problem: &Problem, curved: bool) {
        let dims = problem.dims();
        self.used.fill(0.0);
        if curved {
            self.matrix.fill(0.0);
        }
        let mut fall = [0.0; CHUNK];
        for start in (0..problem.users()).step_by(CHUNK) {
            let end = (start + CHUNK).min(problem.users());
            let len = end - start;
            let pay = &mut self.pay[start..end];
            pay.fill(0.0);
            for (r, price) in self.prices.iter().enumerate().filter(|(_, price)| **price > 0.0) {
                add_scaled(pay, *price, &problem.column(r)[start..end]);
            }
            let tasks = &mut self.tasks[start..end];
            buy(pay, &problem.weight()[start..end], &problem.tasks()[start..end], tasks, &mut fall[..len]);
            for r in 0..dims {
                let column = &problem.column(r)[start..end];
                self.used[r] += dot(column, tasks);
                if curved {
                    let falling = &mut self.falling[r * CHUNK..][..len];
                    for (falling, (fall, need)) in falling.iter_mut().zip(fall.iter().zip(column)) {
                        *falling = fall * need;
                    }
                    for s in 0..=r {
                        self.matrix[r * dims + s] += dot(falling, &problem.column(s)[start..end]);
                    }
                }
            }
        }
    }

    /// Computes the Newton direction among resources that are or should be priced. Returns its size relative to the prices.
    fn newton(&mut self) -> f64 {
        let dims = self.prices.len();
        let mut free: Vec<usize> = (0..dims).filter(|&r| self.prices[r] > 0.0 || self.used[r] > 1.0).collect();
        let largest = self.prices.iter().copied().fold(0.0, f64::max);
        loop {
            self.direction.fill(0.0);
            if free.is_empty() {
                return 0.0;
            }
            // A lower bound for the diagonal where resources have equal prices or no user reacts to a price.
            let floor = 1e-13 / largest.max(self.weight * 1e-12);
            self.system.solve(&free, dims, &self.matrix, floor, &self.used, &mut self.direction);
            let (prices, direction) = (&self.prices, &self.direction);
            let before = free.len();
            free.retain(|&r| prices[r] > 0.0 || direction[r] > 0.0);
            if free.len() == before {
                break;
            }
        }
        self.direction.iter().fold(0.0, |size: f64, step| size.max(step.abs())) / largest.max(self.weight * 1e-12)
    }

    /// Follows the direction to the first minimum on its path; prices that reach 0 stay there.
    fn follow(&mut self, problem: &Problem) {
        // Each segment but the last sets a price to 0.
        for _ in 0..=problem.dims() {
            let room = |(price, step): (&f64, &f64)| if *step < 0.0 { price / -step } else { f64::INFINITY };
            let end = self.prices.iter().zip(&self.direction).map(room).fold(f64::INFINITY, f64::min);
            let gain: f64 = self.direction.iter().sum();
            self.pay_step.fill(0.0);
            for (r, step) in self.direction.iter().enumerate().filter(|(_, step)| **step != 0.0) {
                add_scaled(&mut self.pay_step, *step, problem.column(r));
            }
            let slope = |at: f64| {
                let (value, fall) = spent(&self.pay, &self.pay_step, at, problem.weight(), problem.tasks());
                (gain - value, fall)
            };
            let largest = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let double = (largest(&self.prices) + self.weight * 1e-12) / largest(&self.direction);
            let at = line_search(slope, double, end);
            for (price, step) in self.prices.iter_mut().zip(&mut self.direction) {
                let reached = at == end && *step < 0.0 && *price / -*step <= end;
                // Before the end of the path a price stays above 0, despite rounding.
                *price = if reached { 0.0 } else { (*price + at * *step).max(f64::EPSILON * *price) };
                if reached {
                    *step = 0.0;
                }
            }
            if at < end || self.direction.iter().all(|step| *step == 0.0) {
                return;
            }
            add_scaled(&mut self.pay, at, &self.pay_step);
        }
    }

    fn certify(&mut self) {
        let off = |(price, used): (&f64, &f64)| if *price > 0.0 { (1.0 - used).abs() } else { (used - 1.0).max(0.0) };
        let each = self.prices.iter().zip(&self.used);
        // A fold with `max` would lose NaN.
        let residual =
            each.clone().map(off).fold(0.0, |worst: f64, off| if off > worst || off.is_nan() { off } else { worst });
        // Scaled down to fit, the tasks lose `weight x ln(overuse)` of welfare.
        let overuse = self.used.iter().copied().fold(1.0, f64::max);
        let gap = each.map(|(price, used)| price * (1.0 - used)).sum::<f64>() / self.weight + overuse.ln();
        self.certificate = Certificate { residual, gap: gap.max(0.0) };
    }
}

/// Returns the point of a path at which the slope is (nearly) 0. `slope(at)` returns the slope, which grows, and how fast it grows.
///
/// `double` is a relevant length of the path: if no user reacts to prices at its start, the slope contains no information on the length.
/// `end` is the end of the path, and is returned if the slope is still below 0 there. The objective at the returned point is never above
/// that of the start.
fn line_search(slope: impl Fn(f64) -> (f64, f64), double: f64, end: f64) -> f64 {
    let (start, growth) = slope(0.0);
    if start >= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut at = (-start / growth).min(64.0 * double).min(end);
    for _ in 0..TRIALS {
        let (value, growth) = slope(at);
        if value.abs() <= LINE * -start || (value < 0.0 && at == end) {
            return at;
        }
        if value < 0.0 {
            low = at;
        } else {
            high = at;
        }
        let newton = at - value / growth;
        at = if high < f64::INFINITY {
            // Keeps a distance from the bounds, because Newton's steps are short near a pole.
            let margin = 0.1 * (high - low);
            if newton.is_nan() { 0.5 * (low + high) } else { newton.clamp(low + margin, high - margin) }
        } else {
            newton.clamp(2.0 * at, 64.0 * at).min(end)
        };
    }
    low
}

/// The Newton system, solved by Cholesky's method.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct System {
    factor: Vec<f64>,
    rhs: Vec<f64>,
}

impl System {
    /// Solves `(A + floor) direction = used - 1` for the rows in `free`; `matrix` holds the lower triangle of `A`.
    fn solve(&mut self, free: &[usize], dims: usize, matrix: &[f64], floor: f64, used: &[f64], direction: &mut [f64]) {
        let n = free.len();
        self.factor.clear();
        self.factor.resize(n * n, 0.0);
        self.rhs.clear();
        self.rhs.extend(free.iter().map(|&r| used[r] - 1.0));
        let l = &mut self.factor;
        for (i, &r) in free.iter().enumerate() {
            for (j, &s) in free.iter().enumerate().take(i + 1) {
                let mut sum = matrix[r.max(s) * dims + r.min(s)];
                if i == j {
                    sum += floor + 1e-13 * sum;
                }
                let least = if i == j { 1e-14 * sum } else { 0.0 };
                for k in 0..j {
                    sum -= l[i * n + k] * l[j * n + k];
                }
                l[i * n + j] = if i == j { sum.max(least).sqrt() } else { sum / l[j * n + j] };
            }
        }
        for i in 0..n {
            for k in 0..i {
                self.rhs[i] -= l[i * n + k] * self.rhs[k];
            }
            self.rhs[i] /= l[i * n + i];
        }
        for i in (0..n).rev() {
            for k in i + 1..n {
                self.rhs[i] -= l[k * n + i] * self.rhs[k];
            }
            self.rhs[i] /= l[i * n + i];
        }
        for (&r, step) in free.iter().zip(&self.rhs) {
            direction[r] = *step;
        }
    }
}
