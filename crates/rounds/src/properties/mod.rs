//! Fairness properties of fractions of time: feasibility, sharing incentive, envy-freeness and Pareto efficiency.
//!
//! All compare *rates*: the iterations per second of a job under the true throughputs, also for policies that ignore types.
//!
//! | property | holds if |
//! |---|---|
//! | feasibility | no job has more than all of its time, no type more than its accelerators |
//! | sharing incentive | each job is at least as fast as with its part of the cluster, `W_j w_i / (s_i sum w)` of its time on type `j`, cut to a sum of 1 (Gavel's isolated allocation) |
//! | envy-freeness | no job would be faster with the accelerator time of another job, per weight |
//! | Pareto efficiency | no fractions without space sharing make a job faster and none slower; a linear program searches them |
//!
//! A property without a counterexample is not proven; it held in all instances that were tried. Limits: policies with space sharing are not
//! checked; a job's rate counts, not its completion time.

mod search;

use std::collections::BTreeMap;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Time;

use crate::mechanism::{Targets, WHOLE};
use crate::policies::{ActiveJob, PolicyOptions, PolicyRow, RunFacts, View, improvement};
use crate::table::{Rates, TrainingJob};

pub use search::{ShareDomain, ShareExample, ShareFinding, ShareSearch, StaticInstance, StaticJob, search};

/// A property of fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareProperty {
    /// Time and capacity suffice.
    Feasibility,
    /// No job is slower than with its part of the cluster.
    SharingIncentive,
    /// No job prefers the accelerator time of another one.
    EnvyFreeness,
    /// No job can be faster without another one being slower.
    ParetoEfficiency,
}

impl ShareProperty {
    /// All properties, with their names and titles.
    pub const ALL: [(&'static str, ShareProperty, &'static str); 4] = [
        ("feasibility", ShareProperty::Feasibility, "Feasibility"),
        ("sharing-incentive", ShareProperty::SharingIncentive, "Sharing incentive"),
        ("envy-freeness", ShareProperty::EnvyFreeness, "Envy-freeness"),
        ("pareto-efficiency", ShareProperty::ParetoEfficiency, "Pareto efficiency"),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        ShareProperty::ALL[self as usize].0
    }

    /// Returns its title.
    pub fn title(self) -> &'static str {
        ShareProperty::ALL[self as usize].2
    }
}

/// A violation of a property.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareViolation {
    /// The property.
    pub property: ShareProperty,
    /// The jobs or the type that it concerns, as a sentence.
    pub sentence: String,
    /// The size of the violation, relative to what the property requires.
    pub amount: f64,
}

/// Returns the jobs of a list as if all were active at time 0 without progress.
pub fn static_jobs(jobs: &[TrainingJob], rates: &Rates) -> Vec<ActiveJob> {
    let one = |job: &TrainingJob| ActiveJob {
        id: job.id,
        kind: rates.kind(&job.job_type, job.scale).unwrap_or_default(),
        scale: job.scale,
        weight: job.weight,
        entity: job.entity,
        arrival: Time(0),
        remaining: job.iterations,
        done: 0,
        deadline: job.slo.map(|slo| Time((u128::from(slo.reference.0) * u128::from(slo.factor_milli) / 1000) as u64)),
    };
    jobs.iter().map(one).collect()
}

/// Computes the fractions of a policy without history. `facts` is passed to policies that plan.
///
/// Errors: those of the policy.
pub fn static_targets(
    view: &View<'_>,
    row: &PolicyRow,
    options: &PolicyOptions,
    facts: Option<&RunFacts<'_>>,
) -> Result<Targets> {
    let mut policy = (row.create)(options);
    if let Some(facts) = facts {
        policy.prepare(facts);
    }
    policy.targets(view)
}

/// Returns the fraction of a target.
pub fn fraction(target: u32) -> f64 {
    f64::from(target) / f64::from(WHOLE)
}

/// Returns the rate of each job in iterations per second.
pub fn job_rates(view: &View<'_>, targets: &Targets) -> Vec<f64> {
    let n = view.capacity.len();
    let alone = |at: usize| (0..n).map(|j| view.rate(at, j) * fraction(targets.alone[at * n + j])).sum::<f64>();
    let mut rates: Vec<f64> = (0..view.jobs.len()).map(alone).collect();
    for second in 0..view.jobs.len() {
        for first in 0..second {
            let at = Targets::pair_index(first, second) * n;
            let Some(row) = targets.pairs.get(at..at + n) else { continue };
            for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x > 0) {
                if let Some(pair) = view.rates.pair(view.jobs[first].kind, view.jobs[second].kind, j) {
                    rates[first] += pair.first.per_s * fraction(x);
                    rates[second] += pair.second.per_s * fraction(x);
                }
            }
        }
    }
    rates
}

/// Returns the rate of each job with its part of the cluster, by weight.
pub fn entitled_rates(view: &View<'_>) -> Vec<f64> {
    let weights: f64 = view.jobs.iter().map(|job| f64::from(job.weight)).sum();
    let rate = |(at, job): (usize, &ActiveJob)| {
        let part = f64::from(job.weight) / weights / f64::from(job.scale);
        let x: Vec<f64> = view.capacity.iter().map(|&count| f64::from(count) * part).collect();
        at_most_whole(&x).iter().enumerate().map(|(j, x)| x * view.rate(at, j)).sum()
    };
    view.jobs.iter().enumerate().map(rate).collect()
}

/// Divides fractions by their sum if it exceeds 1.
fn at_most_whole(x: &[f64]) -> Vec<f64> {
    let sum = x.iter().sum::<f64>().max(1.0);
    x.iter().map(|x| x / sum).collect()
}

/// Returns the largest violation of a property by the fractions of single jobs, or `None` if it holds within the relative `tolerance`.
///
/// Errors: fractions of pairs; a solver that does not converge.
pub fn violation(
    view: &View<'_>,
    targets: &Targets,
    property: ShareProperty,
    tolerance: f64,
) -> Result<Option<ShareViolation>> {
    if targets.pairs.iter().any(|&x| x > 0) {
        let problem = "properties of shares are defined for policies without space sharing".to_owned();
        return Err(Error::Mismatch { problem });
    }
    let rates = job_rates(view, targets);
    let found = match property {
        ShareProperty::Feasibility => infeasible(view, targets),
        ShareProperty::SharingIncentive => slower_than_alone(view, &rates),
        ShareProperty::EnvyFreeness => envy(view, targets, &rates),
        ShareProperty::ParetoEfficiency => {
            let better = improvement(view, &rates)?;
            let gain = |at: usize| (better[at] - rates[at]) / fastest(view, at);
            (0..rates.len()).max_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(b.cmp(&a))).map(|at| {
                let id = view.jobs[at].id;
                let (from, to) = (rates[at], better[at]);
                (
                    gain(at),
                    format!("job {id} could run at {to:.4} instead of {from:.4} iterations/s, and no job slower"),
                )
            })
        }
    };
    let found = found.filter(|(amount, _)| *amount > tolerance);
    Ok(found.map(|(amount, sentence)| ShareViolation { property, sentence, amount }))
}

/// Returns the envy of each job: the largest relative gain of its rate from the accelerator time of another job, at least 0. With pairs the
/// time of single entries counts only.
///
/// Jobs of one kind, scale and weight have the same best time of another job, so the cost is the number of such groups times the number of
/// distinct rows of fractions.
pub fn envies(view: &View<'_>, targets: &Targets) -> Vec<f64> {
    let n = view.capacity.len();
    let rates = job_rates(view, targets);
    // Accelerator time per weight of each job: scale, weight and fractions decide it.
    let mut offers: Vec<(u32, u32, &[u32])> = view
        .jobs
        .iter()
        .zip(targets.alone.chunks_exact(n.max(1)))
        .map(|(job, row)| (job.scale, job.weight, row))
        .filter(|(.., row)| row.iter().any(|&x| x > 0))
        .collect();
    offers.sort_unstable();
    offers.dedup();
    let mut best: BTreeMap<(u32, u32, u32), f64> = BTreeMap::new();
    let envy = |(at, own): (usize, &ActiveJob)| {
        let most = best.entry((own.kind, own.scale, own.weight)).or_insert_with(|| {
            let rate = |offer: &(u32, u32, &[u32])| rate_with(view, at, *offer);
            offers.iter().map(rate).fold(0.0, f64::max)
        });
        if *most > 0.0 { (1.0 - rates[at] / *most).max(0.0) } else { 0.0 }
    };
    view.jobs.iter().enumerate().map(envy).collect()
}

/// Returns the rate of a job with the accelerator time of a job of a scale, a weight and fractions, per weight.
fn rate_with(view: &View<'_>, at: usize, (scale, weight, row): (u32, u32, &[u32])) -> f64 {
    let own = &view.jobs[at];
    let part = f64::from(scale) * f64::from(own.weight) / f64::from(own.scale) / f64::from(weight);
    let sum: f64 = row.iter().map(|&x| part * fraction(x)).sum();
    let rate: f64 = row.iter().enumerate().map(|(j, &x)| part * fraction(x) * view.rate(at, j)).sum();
    rate / sum.max(1.0)
}

fn fastest(view: &View<'_>, at: usize) -> f64 {
    (0..view.capacity.len()).map(|j| view.rate(at, j)).fold(f64::MIN_POSITIVE, f64::max)
}

fn infeasible(view: &View<'_>, targets: &Targets) -> Option<(f64, String)> {
    let n = view.capacity.len();
    let time = |at: usize| targets.alone[at * n..(at + 1) * n].iter().map(|&x| fraction(x)).sum::<f64>();
    let used = |j: usize| {
        let of = |at: usize| f64::from(view.jobs[at].scale) * fraction(targets.alone[at * n + j]);
        (0..view.jobs.len()).map(of).sum::<f64>()
    };
    let jobs = (0..view.jobs.len()).map(|at| {
        let (id, time) = (view.jobs[at].id, time(at));
        (time - 1.0, format!("job {id} has {time:.4} of its time"))
    });
    let types = (0..n).map(|j| {
        let (used, all) = (used(j), f64::from(view.capacity[j]));
        (used / all - 1.0, format!("{used:.4} accelerators of type {j} are in use, of {all}"))
    });
    jobs.chain(types).max_by(|a, b| a.0.total_cmp(&b.0))
}

fn slower_than_alone(view: &View<'_>, rates: &[f64]) -> Option<(f64, String)> {
    let entitled = entitled_rates(view);
    let loss = |at: usize| 1.0 - rates[at] / entitled[at];
    (0..rates.len()).max_by(|&a, &b| loss(a).total_cmp(&loss(b)).then(b.cmp(&a))).map(|at| {
        let (id, own, alone) = (view.jobs[at].id, rates[at], entitled[at]);
        (loss(at), format!("job {id} runs at {own:.4} iterations/s, its part of the cluster gives {alone:.4}"))
    })
}

/// Returns the largest relative gain of a job from the time of another job, and that job.
fn strongest_envy(view: &View<'_>, targets: &Targets, rates: &[f64], at: usize) -> Option<(f64, usize)> {
    let n = view.capacity.len();
    let gain = |other: usize| {
        let job = &view.jobs[other];
        let rate = rate_with(view, at, (job.scale, job.weight, &targets.alone[other * n..(other + 1) * n]));
        // Relative to the larger rate: a job without time has an envy of 1.
        if rate > 0.0 { 1.0 - rates[at] / rate } else { 0.0 }
    };
    let others = (0..view.jobs.len()).filter(|&other| other != at).map(|other| (gain(other), other));
    others.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).filter(|(gain, _)| *gain > 0.0)
}

fn envy(view: &View<'_>, targets: &Targets, rates: &[f64]) -> Option<(f64, String)> {
    let of = |at: usize| strongest_envy(view, targets, rates, at).map(|(gain, other)| (gain, at, other));
    let (gain, at, other) =
        (0..view.jobs.len()).filter_map(of).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    let (own, job) = (view.jobs[at].id, view.jobs[other].id);
    let rate = rates[at] / (1.0 - gain).max(f64::MIN_POSITIVE);
    let would = if gain < 1.0 { format!("{rate:.4}") } else { "more".to_owned() };
    Some((gain, format!("job {own} runs at {:.4} iterations/s, with the time of job {job} at {would}", rates[at])))
}

#[cfg(test)]
mod tests;
