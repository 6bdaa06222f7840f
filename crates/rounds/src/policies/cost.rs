//! Policies with a linear objective: sum of throughput, throughput per dollar, and the latter with deadlines (Gavel, section 4.2).

use plimsoll_base::error::Result;

use super::fractions::{Fractions, Model, check_rates};
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::lp::{ACCEPTED, Need};
use crate::mechanism::Targets;

/// Dollars per accelerator-hour of V100, P100 and K80: constants of Gavel's repository. Further types cost as the last.
const PRICES: [f64; 3] = [0.74, 0.43, 0.135];

/// The largest sum of throughput.
pub(super) const SUM: PolicyRow = PolicyRow {
    name: "max_sum_throughput_perf",
    title: "Largest sum of throughput",
    source: "Gavel, OSDI 2020, 4.2",
    packing: false,
    listed_order: true,
    skip_zero: false,
    create: |_: &PolicyOptions| Box::new(Sum { priced: false, deadlines: false }),
};
/// The largest throughput per dollar.
pub(super) const COST: PolicyRow = PolicyRow {
    name: "max_sum_throughput_normalized_by_cost_perf",
    title: "Largest throughput per dollar",
    create: |_: &PolicyOptions| Box::new(Sum { priced: true, deadlines: false }),
    ..SUM
};
/// The largest throughput per dollar with deadlines.
pub(super) const COST_SLO: PolicyRow = PolicyRow {
    name: "max_sum_throughput_normalized_by_cost_perf_SLOs",
    title: "Largest throughput per dollar, with deadlines",
    create: |_: &PolicyOptions| Box::new(Sum { priced: true, deadlines: true }),
    ..SUM
};

struct Sum {
    priced: bool,
    deadlines: bool,
}

impl Policy for Sum {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        let price = |j: usize| if self.priced { PRICES[j.min(PRICES.len() - 1)] } else { 1.0 };
        let deadline = |at: usize| {
            let left = view.jobs[at].deadline?.0.checked_sub(view.now.0)? as f64 / 1e6;
            // A deadline that is now cannot be reached, so the requirement is infeasible.
            Some(view.jobs[at].iterations() / left.max(1e-6))
        };
        let needs: Vec<Option<f64>> =
            (0..view.jobs.len()).map(|at| self.deadlines.then(|| deadline(at)).flatten()).collect();
        Ok(largest_value(view, &price, &needs)?.targets())
    }
}

/// Maximises `sum_ij T_ij / price_j * x_ij` with required rates. If these are infeasible, all are dropped, as in the published program.
pub(super) fn largest_value(view: &View<'_>, price: &dyn Fn(usize) -> f64, needs: &[Option<f64>]) -> Result<Fractions> {
    check_rates(view)?;
    let rate = |job: usize, j: usize| view.rate(job, j);
    let value = |job: usize, j: usize| view.rate(job, j) / price(j);
    let label = |job: usize| u64::from(view.jobs[job].kind);
    let with = |base: f64, slope: f64| -> Vec<Option<Need>> {
        needs.iter().map(|need| need.map(|need| Need { base: base * need, slope: slope * need })).collect()
    };
    // The requirements are feasible if they are for a level of at least 1.
    let feasible = needs.iter().all(Option::is_none) || {
        let model = Model {
            needs: with(0.0, 1.0),
            rate: &rate,
            value: None,
            level: true,
            packing: false,
            label: &label,
            accepted: ACCEPTED,
        };
        model.solve(view)?.level >= 1.0 - 1e-9
    };
    let base = 1.0 - 1e-9;
    let needs = if feasible { with(base, 0.0) } else { vec![None; needs.len()] };
    Model { needs, rate: &rate, value: Some(&value), level: false, packing: false, label: &label, accepted: ACCEPTED }
        .solve(view)
}
