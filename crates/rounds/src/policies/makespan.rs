//! Minimum makespan (Gavel, section 4.2; Shockwave calls it OSSP).
//!
//! The optimum `T` satisfies `sum_j T_ij x_ij >= N_i / T`: a max-min program in `1 / T`. The published program bisects `T` in [100, 10^6] s
//! until the bounds differ by 5 % and returns a feasible point of the last feasible `T`. [`makespan`] returns the `T` of the same bisection,
//! decided with the exact optimum, and the center of the feasible points (with pairs of very many distinct jobs: a feasible point). With a
//! gap of 0 it returns the optimum.

use plimsoll_base::error::Result;

use super::fractions::{Fractions, Model, check_rates};
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::lp::{ACCEPTED, Need};
use crate::mechanism::Targets;

/// Makespan with the rates of the first listed type (V100) for all types.
pub(super) const AGNOSTIC: PolicyRow = PolicyRow {
    name: "min_total_duration",
    title: "Minimum makespan",
    source: "Gavel, OSDI 2020, 4.2",
    packing: false,
    listed_order: false,
    skip_zero: false,
    create: |options: &PolicyOptions| Box::new(Makespan { aware: false, packing: false, gap: options.makespan_gap }),
};
/// Makespan.
pub(super) const AWARE: PolicyRow = PolicyRow {
    name: "min_total_duration_perf",
    title: "Minimum makespan, aware of types",
    listed_order: true,
    create: |options: &PolicyOptions| Box::new(Makespan { aware: true, packing: false, gap: options.makespan_gap }),
    ..AGNOSTIC
};
/// Makespan with pairs.
pub(super) const PACKED: PolicyRow = PolicyRow {
    name: "min_total_duration_packed",
    title: "Minimum makespan, aware of types, with space sharing",
    packing: true,
    listed_order: true,
    create: |options: &PolicyOptions| Box::new(Makespan { aware: true, packing: true, gap: options.makespan_gap }),
    ..AGNOSTIC
};

struct Makespan {
    aware: bool,
    packing: bool,
    gap: f64,
}

impl Policy for Makespan {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let rate = |job: usize, j: usize| view.rate(job, if self.aware { j } else { 0 });
        Ok(makespan(view, &rate, self.packing, self.gap)?.targets())
    }
}

/// Solves the problem for a relative `gap` of the bisection; the level of the result is `T` in seconds.
///
/// Errors: a solver that does not converge.
pub fn makespan(view: &View<'_>, rate: &dyn Fn(usize, usize) -> f64, packing: bool, gap: f64) -> Result<Fractions> {
    let m = view.jobs.len();
    if m == 0 {
        return Ok(Fractions::zero(0, view.capacity.len()));
    }
    let left: Vec<f64> = view.jobs.iter().map(super::ActiveJob::iterations).collect();
    let label = |job: usize| u64::from(view.jobs[job].kind);
    let needs = left.iter().map(|&left| Some(Need { base: 0.0, slope: left })).collect();
    let mut optimum =
        Model { needs, rate, value: None, level: true, packing, label: &label, accepted: ACCEPTED }.solve(view)?;
    let best = 1.0 / optimum.level;
    if gap <= 0.0 {
        optimum.level = best;
        return Ok(optimum);
    }
    let end = bisected(best, gap);
    let needs = left.iter().map(|&left| Some(Need { base: left / end, slope: 0.0 })).collect();
    // Without an objective the solver returns the center of the feasible points.
    let mut center =
        Model { needs, rate, value: None, level: false, packing, label: &label, accepted: ACCEPTED }.solve(view)?;
    center.level = end;
    Ok(center)
}

/// Returns the last feasible `T` of the bisection in [100, 10^6] s, for the exact optimum `best`.
fn bisected(best: f64, gap: f64) -> f64 {
    let (mut low, mut high) = (100.0, 1e6);
    while high < best {
        (low, high) = (high, high * 10.0);
    }
    let mut last = high;
    while high > low * (1.0 + gap) {
        let middle = (low + high) / 2.0;
        if best <= middle {
            (high, last) = (middle, middle);
        } else {
            low = middle;
        }
    }
    last
}
