//! Finish-time fairness (Themis, NSDI 2020, as modelled by Gavel): minimises the largest `rho`.
//!
//! `rho_i = (t_i + N_i / r_i) / D_i` with age `t_i`, iterations left `N_i`, rate `r_i = sum_j T_ij x_ij` and `D_i = A_i + N_i / T_i`. `T_i` is
//! the rate under the isolated allocation of the current jobs. `A_i` accumulates (decrease of the iterations left since the last call) /
//! (`T_i` of that call); a change of the batch size changes the iterations left as well. Weights are ignored, as in the published program.
//!
//! For a bound `z` on `rho` a job needs the rate `N_i / (z D_i - t_i)`, which is convex in `z`. Newton's method on `z`: each step solves the
//! linear program with the requirement replaced by its tangent, and the sequence increases to the optimum.

use std::collections::HashMap;

use plimsoll_base::error::Result;

use super::fractions::{Fractions, Model, check_rates, isolated};
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::lp::{ACCEPTED, Need};
use crate::mechanism::Targets;

/// Finish-time fairness with the rates of the first listed type (V100) for all types.
pub(super) const AGNOSTIC: PolicyRow = PolicyRow {
    name: "finish_time_fairness",
    title: "Finish-time fairness",
    source: "Gavel, OSDI 2020, 4.2; Themis, NSDI 2020",
    packing: false,
    listed_order: false,
    skip_zero: false,
    create: |_: &PolicyOptions| Box::new(FinishTime { aware: false, ..FinishTime::default() }),
};
/// Finish-time fairness.
pub(super) const AWARE: PolicyRow = PolicyRow {
    name: "finish_time_fairness_perf",
    title: "Finish-time fairness, aware of types",
    listed_order: true,
    create: |_: &PolicyOptions| Box::new(FinishTime { aware: true, ..FinishTime::default() }),
    ..AGNOSTIC
};

/// The most steps of Newton's method.
const STEPS: u32 = 40;
/// The relative change of `rho` at which Newton's method ends.
const ACCURACY: f64 = 1e-9;
/// The distance of the program's origin from a feasible `rho`, relative to it.
const MARGIN: f64 = 0.05;

/// The record of a job: time under isolation, and iterations left (in millionths) and isolated rate at the last call.
#[derive(Clone, Copy, Default)]
struct Record {
    isolated_s: f64,
    left: u64,
    rate: f64,
}

/// The policy. Its state is the time that each job would have needed alone so far.
#[derive(Default)]
pub(super) struct FinishTime {
    aware: bool,
    records: HashMap<u32, Record>,
}

impl Policy for FinishTime {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let aware = self.aware;
        let rate = |job: usize, j: usize| view.rate(job, if aware { j } else { 0 });
        let m = view.jobs.len();
        let mut records = HashMap::with_capacity(m);
        let mut jobs = Vec::with_capacity(m);
        for (at, job) in view.jobs.iter().enumerate() {
            let x = isolated(view.capacity, m, job.scale);
            let isolated_rate: f64 = x.iter().enumerate().map(|(j, x)| x * rate(at, j)).sum();
            let mut record = self.records.get(&job.id).copied().unwrap_or_default();
            if record.rate > 0.0 {
                record.isolated_s += (record.left as f64 - job.remaining as f64) / 1e6 / record.rate;
            }
            (record.left, record.rate) = (job.remaining, isolated_rate);
            records.insert(job.id, record);
            jobs.push(Finish {
                age: view.now.since(job.arrival).seconds(),
                left: job.iterations(),
                norm: record.isolated_s + job.iterations() / isolated_rate,
                isolated_rate,
            });
        }
        self.records = records;
        Ok(finish_time(view, &jobs, &rate)?.targets())
    }
}

/// One job of the problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finish {
    /// Age in seconds.
    pub age: f64,
    /// Iterations left.
    pub left: f64,
    /// The denominator `D_i` in seconds.
    pub norm: f64,
    /// The rate under the isolated allocation.
    pub isolated_rate: f64,
}

/// Solves the problem; the level of the result is the largest `rho`.
pub(super) fn finish_time(view: &View<'_>, jobs: &[Finish], rate: &dyn Fn(usize, usize) -> f64) -> Result<Fractions> {
    let m = jobs.len();
    if m == 0 {
        return Ok(Fractions::zero(0, view.capacity.len()));
    }
    // The isolated allocation is feasible. No rho is below age / norm plus the time at the largest rate.
    let ratio = |job: &Finish, rate: f64| (job.age + job.left / rate) / job.norm;
    let mut z = jobs.iter().map(|job| ratio(job, job.isolated_rate)).fold(0.0, f64::max);
    let fastest = |at: usize| (0..view.capacity.len()).map(|j| rate(at, j)).fold(0.0, f64::max);
    let least = (0..m).map(|at| ratio(&jobs[at], fastest(at))).fold(0.0, f64::max);
    z = z.max(least * (1.0 + 1e-9));
    let unlike = |job: usize| job as u64;
    let n = view.capacity.len();
    // The optimum is at most `upper`: the largest rho of a feasible point.
    let mut upper = z;
    let mut fractions = Fractions::default();
    for _ in 0..STEPS {
        // The level of the program is `high - z`, so that it is maximised and not negative.
        let high = upper + MARGIN * upper;
        let need = |job: &Finish| {
            let room = z * job.norm - job.age;
            let (rate, steep) = (job.left / room, job.left * job.norm / (room * room));
            Need { base: rate - steep * (high - z), slope: steep }
        };
        let needs = jobs.iter().map(|job| Some(need(job))).collect();
        let model = Model { needs, rate, value: None, level: true, packing: false, label: &unlike, accepted: ACCEPTED };
        fractions = model.solve(view)?;
        let own = |at: usize| (0..n).map(|j| rate(at, j) * fractions.alone[at * n + j].max(0.0)).sum::<f64>();
        let reached = (0..m).map(|at| ratio(&jobs[at], own(at))).fold(0.0, f64::max);
        upper = upper.min(reached);
        let next = (high - fractions.level).max(least);
        let change = (next - z).abs() / z;
        z = next;
        if change < ACCURACY || upper - z < ACCURACY * z {
            break;
        }
    }
    fractions.level = z;
    Ok(fractions)
}
