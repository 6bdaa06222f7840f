//! Max-min fairness of normalised throughput (Gavel, section 4.1; realised by rounds it is least attained service).
//!
//! Maximises `min_i s_i / (w_i T_i) * sum_j T_ij x_ij`, where `T_i` is the job's rate under the proportional allocation. The agnostic variant
//! sets every rate to 1.

use plimsoll_base::error::Result;

use super::fractions::{Fractions, Model, check_rates, proportional_rates};
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::lp::{ACCEPTED, Need};
use crate::mechanism::Targets;

/// Max-min fairness that ignores types.
pub(super) const AGNOSTIC: PolicyRow = PolicyRow {
    name: "max_min_fairness",
    title: "Max-min fairness (least attained service)",
    source: "Gavel, OSDI 2020, 4.1",
    packing: false,
    listed_order: false,
    skip_zero: false,
    create: |_: &PolicyOptions| Box::new(MaxMin { aware: false, packing: false }),
};
/// Max-min fairness of throughput.
pub(super) const AWARE: PolicyRow = PolicyRow {
    name: "max_min_fairness_perf",
    title: "Max-min fairness, aware of types",
    listed_order: true,
    create: |_: &PolicyOptions| Box::new(MaxMin { aware: true, packing: false }),
    ..AGNOSTIC
};
/// Max-min fairness of throughput with pairs.
pub(super) const PACKED: PolicyRow = PolicyRow {
    name: "max_min_fairness_packed",
    title: "Max-min fairness, aware of types, with space sharing",
    packing: true,
    listed_order: true,
    create: |_: &PolicyOptions| Box::new(MaxMin { aware: true, packing: true }),
    ..AGNOSTIC
};

struct MaxMin {
    aware: bool,
    packing: bool,
}

impl Policy for MaxMin {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        Ok(max_min(view, self.aware, self.packing)?.targets())
    }
}

/// Solves the max-min problem. The level is the objective.
///
/// Errors: a job that can run nowhere, or a solver that does not converge.
pub fn max_min(view: &View<'_>, aware: bool, packing: bool) -> Result<Fractions> {
    check_rates(view)?;
    let norm = if aware { proportional_rates(view) } else { vec![1.0; view.jobs.len()] };
    let slope = |at: usize| f64::from(view.jobs[at].weight) * norm[at] / f64::from(view.jobs[at].scale);
    let needs = (0..view.jobs.len()).map(|at| Some(Need { base: 0.0, slope: slope(at) })).collect();
    let rate = |job: usize, j: usize| if aware { view.rate(job, j) } else { 1.0 };
    let label = |job: usize| if aware { u64::from(view.jobs[job].kind) } else { 0 };
    Model { needs, rate: &rate, value: None, level: true, packing, label: &label, accepted: ACCEPTED }.solve(view)
}
