//! Water filling over jobs, and hierarchical policies over entities (Gavel, section 4.3).
//!
//! Levels rise together, each in proportion to its weight, until jobs are at their limit (*bottlenecks*); the others continue. Each step is
//! a linear program. The center of its optima decides which active jobs are bottlenecks: a requirement without surplus at the center has no
//! surplus in any optimum. Jobs that end at the limit of their own time, before a type is full, end together (`at_own_limits`).
//! Entities with FIFO inside need few programs (`entity_fifo.rs`); the steps here are the reference implementation of that, and decide if it
//! does not converge.

use plimsoll_base::error::{Error, Result};

use super::entity_fifo::fill_entities;
use super::fractions::{Fractions, Model, check_rates, proportional_rates};
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::lp::Need;
use crate::mechanism::Targets;

/// A job is a bottleneck if its surplus, relative to its rate on the fastest type, is below this value at the center.
const SURPLUS: f64 = 1e-5;

/// The relative reduction of reached levels in later steps. Without it the feasible points would have no interior, which an
/// interior-point method requires. (The published program uses 10^-5 as slack.) The larger amounts follow if the method does not converge.
const RELAXED: [f64; 3] = [1e-5, 1e-4, 1e-3];
/// A job is at the limit of its own time if its level is within this relative distance.
const OWN_LIMIT: f64 = 1e-4;
/// A bottleneck has at most this multiple of the least surplus.
const SPREAD: f64 = 2.0;

/// The end of a step of water filling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bottlenecks {
    /// The active jobs that cannot improve are final.
    #[default]
    Intended,
    /// All active jobs are final after one step: the search of the published program fails and reports that no job improves.
    Published,
}

/// The division inside an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// There are no entities: each job has its weight.
    Flat,
    /// By the weights of the jobs that are not final; the entity's weight is given.
    Fair,
    /// The first job that is not final receives the entity's weight.
    Fifo,
}

/// Water filling without awareness.
pub(super) const AGNOSTIC: PolicyRow = PolicyRow {
    name: "max_min_fairness_water_filling",
    title: "Max-min fairness by water filling",
    source: "Gavel, OSDI 2020, 4.3",
    packing: false,
    listed_order: false,
    skip_zero: false,
    create: |options: &PolicyOptions| {
        Box::new(WaterFilling { aware: false, within: Within::Flat, bottlenecks: options.bottlenecks })
    },
};
/// Water filling.
pub(super) const AWARE: PolicyRow = PolicyRow {
    name: "max_min_fairness_water_filling_perf",
    title: "Max-min fairness by water filling, aware of types",
    listed_order: true,
    create: |options: &PolicyOptions| {
        Box::new(WaterFilling { aware: true, within: Within::Flat, bottlenecks: options.bottlenecks })
    },
    ..AGNOSTIC
};
/// Entities with fair division inside.
pub(super) const ENTITIES_FAIR: PolicyRow = PolicyRow {
    name: "hierarchical_fairness_perf",
    title: "Entities, fairness inside, aware of types",
    listed_order: true,
    create: |options: &PolicyOptions| {
        Box::new(WaterFilling { aware: true, within: Within::Fair, bottlenecks: options.bottlenecks })
    },
    ..AGNOSTIC
};
/// Entities with FIFO inside.
pub(super) const ENTITIES_FIFO: PolicyRow = PolicyRow {
    name: "hierarchical_fifo_perf",
    title: "Entities, first in, first out inside, aware of types",
    listed_order: true,
    create: |options: &PolicyOptions| {
        Box::new(WaterFilling { aware: true, within: Within::Fifo, bottlenecks: options.bottlenecks })
    },
    ..AGNOSTIC
};

struct WaterFilling {
    aware: bool,
    within: Within,
    bottlenecks: Bottlenecks,
}

impl Policy for WaterFilling {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        let weights: Vec<f64> = view.jobs.iter().map(|job| f64::from(job.weight)).collect();
        let filled = water_fill(view, self.aware, self.within, &weights, &|_| 1.0, self.bottlenecks)?;
        Ok(filled.0.targets())
    }
}

/// Fills levels for jobs with `weights` in entities with `entity_weight(entity)`.
///
/// Returns the fractions and the level (normalised throughput) of each job. With rates of 1 (`aware` false) levels are sums of fractions.
/// Errors: a job that can run nowhere, or a solver that does not converge.
pub fn water_fill(
    view: &View<'_>,
    aware: bool,
    within: Within,
    weights: &[f64],
    entity_weight: &dyn Fn(u32) -> f64,
    bottlenecks: Bottlenecks,
) -> Result<(Fractions, Vec<f64>)> {
    if within == Within::Fifo && bottlenecks == Bottlenecks::Intended {
        check_rates(view)?;
        let norm = if aware { proportional_rates(view) } else { vec![1.0; view.jobs.len()] };
        let rate = |job: usize, j: usize| if aware { view.rate(job, j) } else { 1.0 };
        match fill_entities(view, &rate, &norm, entity_weight) {
            // The steps accept larger errors. The formulation of the fractions is then that of the steps.
            Err(Error::NotConverged { .. }) => {}
            filled => return filled,
        }
    }
    fill(view, aware, within, (weights, entity_weight), bottlenecks, true)
}

/// Fills levels as [`water_fill`], by a program per step. Without `together` each step ends at the first job that reaches a limit: the
/// reference implementation, also of [`fill_entities`].
pub(super) fn fill(
    view: &View<'_>,
    aware: bool,
    within: Within,
    (weights, entity_weight): (&[f64], &dyn Fn(u32) -> f64),
    bottlenecks: Bottlenecks,
    together: bool,
) -> Result<(Fractions, Vec<f64>)> {
    check_rates(view)?;
    let m = view.jobs.len();
    let norm = if aware { proportional_rates(view) } else { vec![1.0; m] };
    let rate = |job: usize, j: usize| if aware { view.rate(job, j) } else { 1.0 };
    let mut level = vec![0.0; m];
    let mut last = vec![false; m];
    let mut fractions = Fractions::zero(m, view.capacity.len());
    // Whether the last step ended only jobs at the limit of their own time. The next ones are then found together.
    let mut own_limits = false;
    while last.iter().any(|last| !last) {
        let current = current_weights(view, within, weights, entity_weight, &last);
        let step = |at: usize| current[at] / f64::from(view.jobs[at].scale);
        if std::mem::take(&mut own_limits) {
            let ended = at_own_limits(view, &rate, &norm, &current, (&mut level, &mut last), aware)?;
            if let Some(all) = ended {
                return Ok((all, level));
            }
        }
        // Identical jobs with the same level and weight are one class.
        let key = |at: usize| u64::from(if aware { view.jobs[at].kind } else { 0 });
        let needs = |relaxed: f64| -> Vec<Option<Need>> {
            let need = |at: usize| {
                let base = level[at] * norm[at] * (1.0 - relaxed);
                let slope = if current[at] > 0.0 && !last[at] { step(at) * norm[at] } else { 0.0 };
                // A requirement of 0 is none.
                (base > 0.0 || slope > 0.0).then_some(Need { base, slope })
            };
            (0..m).map(need).collect()
        };
        let solved = |relaxed: f64| {
            let (level, packing) = (true, false);
            let needs = needs(relaxed);
            Model { needs, rate: &rate, value: None, level, packing, label: &key, accepted: RELAXED[0] }.solve(view)
        };
        fractions = solved(RELAXED[0]).or_else(|_| solved(RELAXED[1])).or_else(|_| solved(RELAXED[2]))?;
        let mut found = false;
        own_limits = together && within == Within::Flat && bottlenecks == Bottlenecks::Intended;
        let least = (0..m)
            .filter(|&at| current[at] > 0.0 && !last[at])
            .map(|at| fractions.surplus[at])
            .fold(f64::INFINITY, f64::min);
        for at in 0..m {
            if current[at] > 0.0 && !last[at] {
                level[at] += fractions.level * step(at);
                let limit = SURPLUS.max(least * SPREAD);
                if bottlenecks == Bottlenecks::Published || fractions.surplus[at] <= limit {
                    (last[at], found) = (true, true);
                    own_limits &= level[at] >= fastest(view, &rate, at) / norm[at] * (1.0 - OWN_LIMIT);
                }
            }
        }
        if !found {
            break;
        }
    }
    Ok((fractions, level))
}

/// Returns the largest rate of a job.
fn fastest(view: &View<'_>, rate: &dyn Fn(usize, usize) -> f64, at: usize) -> f64 {
    let usable = (0..view.capacity.len()).filter(|&j| view.capacity[j] >= view.jobs[at].scale);
    usable.map(|j| rate(at, j)).fold(0.0, f64::max)
}

/// Ends all jobs that reach the limit of their own time, all time on the fastest type, before a type is full.
///
/// A step of water filling ends at the first such job, so jobs with distinct rates would need a step each. Here the jobs are sorted by the
/// step length at which they reach their limits, and bisection finds the largest number of jobs that can do so together: a program
/// states whether these jobs at their limits and all others at the same step length are feasible. Returns the fractions if all jobs end.
fn at_own_limits(
    view: &View<'_>,
    rate: &dyn Fn(usize, usize) -> f64,
    norm: &[f64],
    current: &[f64],
    (level, last): (&mut [f64], &mut [bool]),
    aware: bool,
) -> Result<Option<Fractions>> {
    let step = |at: usize| current[at] / f64::from(view.jobs[at].scale);
    let limit = |at: usize| fastest(view, rate, at) / norm[at];
    let length = |at: usize| (limit(at) - level[at]).max(0.0) / step(at);
    let mut order: Vec<(f64, usize)> =
        (0..level.len()).filter(|&at| current[at] > 0.0 && !last[at]).map(|at| (length(at), at)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let label = |at: usize| u64::from(if aware { view.jobs[at].kind } else { 0 });
    let reached = |ended: usize| -> Vec<f64> {
        let mut reached = level.to_vec();
        for (rank, &(own, at)) in order.iter().enumerate() {
            let common = order[ended - 1].0;
            reached[at] = if rank < ended { limit(at) } else { level[at] + step(at) * common.min(own) };
        }
        reached
    };
    let feasible = |ended: usize| -> Result<Option<Fractions>> {
        let need = |(level, norm): (f64, &f64)| {
            let slope = level * norm * (1.0 - RELAXED[0]);
            (slope > 0.0).then_some(Need { base: 0.0, slope })
        };
        let needs = reached(ended).into_iter().zip(norm).map(need).collect();
        let (value, accepted) = (None, RELAXED[0] / 10.0);
        let solved = Model { needs, rate, value, level: true, packing: false, label: &label, accepted }.solve(view)?;
        Ok((solved.level >= 1.0).then_some(solved))
    };
    // The first `low` jobs can end, more than `high` cannot.
    let (mut low, mut high, mut found) = (0, order.len(), None);
    let mut middle = high;
    while low < high {
        match feasible(middle)? {
            Some(fractions) => (low, found) = (middle, Some(fractions)),
            None => high = middle - 1,
        }
        middle = low + (high - low).div_ceil(2);
    }
    if low == 0 {
        return Ok(None);
    }
    let reached = reached(low);
    level.copy_from_slice(&reached);
    order[..low].iter().for_each(|&(_, at)| last[at] = true);
    Ok(found.filter(|_| last.iter().all(|last| *last)))
}

/// Returns the weight of each job in the next step; 0 for final jobs.
fn current_weights(
    view: &View<'_>,
    within: Within,
    weights: &[f64],
    entity_weight: &dyn Fn(u32) -> f64,
    last: &[bool],
) -> Vec<f64> {
    let mut current = vec![0.0; last.len()];
    for at in 0..last.len() {
        if last[at] {
            continue;
        }
        let entity = view.jobs[at].entity;
        let others = (0..last.len()).filter(|&other| !last[other] && view.jobs[other].entity == entity);
        current[at] = match within {
            Within::Flat => weights[at],
            Within::Fair => entity_weight(entity) * weights[at] / others.map(|other| weights[other]).sum::<f64>(),
            Within::Fifo if others.min() == Some(at) => entity_weight(entity),
            Within::Fifo => 0.0,
        };
    }
    current
}
