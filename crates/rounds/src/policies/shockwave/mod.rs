//! Shockwave (NSDI 2023): Nash social welfare over a window of future rounds, with estimates of finish times as fairness rows.
//!
//! The policy does not compute fractions. It plans the jobs of the next rounds with [`WindowProgram`] and plans again at an arrival, at a completion,
//! and regularly. Job `i` has `e_i` of `E_i` epochs done, `r_i` seconds left by estimate ([`EpochProfile::remaining_seconds`]), and `tau_i`, the
//! finish time under an equal share of the accelerators, averaged over time since the arrival. First the program is solved with a fairness row
//! per job: it must be able to finish by `rho_max tau_i`. If no plan satisfies all rows, they are replaced by weights: jobs that are late by
//! `h_i = (now + r_i / share) / tau_i > rho_max` have the weight `h_i^lambda`, or `h_i^100` if they need less than a round.
//! Accelerators that a round of the plan leaves idle are given to the jobs with the longest remaining time.
//!
//! The published program is solved by a commercial solver within 15 s and a gap of 10^-3; here by the method of `window.rs`. Its distance to
//! an upper bound is recorded. Rounds are ordered by urgency in both cases, while the published order is arbitrary in the first case.

mod packing;
mod window;

use std::collections::BTreeMap;

use plimsoll_base::error::{Error, Result};

use super::fractions::check_rates;
use super::{ActiveJob, Policy, PolicyOptions, PolicyRow, RoundChoice, RunFacts, View};
use crate::mechanism::{Targets, WHOLE};
use crate::table::EpochProfile;

pub use window::{WindowJob, WindowPlan, WindowProgram, progress_logarithm};

/// Shockwave.
pub(super) const SHOCKWAVE: PolicyRow = PolicyRow {
    name: "shockwave",
    title: "Nash welfare over a window of rounds, one worker type",
    source: "Shockwave, NSDI 2023",
    packing: false,
    listed_order: true,
    skip_zero: false,
    create: |options: &PolicyOptions| Box::new(Shockwave::new(options.shockwave)),
};

/// The exponent of the weight of jobs that are late and need less than a round.
const LAST_ROUND: u32 = 100;
/// The share of the average in the estimate of a finish time; the rest is the last value.
const AVERAGE: f64 = 0.9;

/// Parameters of the policy. The defaults are the authors' for 32 accelerators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShockwaveOptions {
    /// The rounds of a window `F`.
    pub rounds: u32,
    /// The rounds after which a plan is replaced.
    pub replan: u32,
    /// The weight `k` of the largest remaining time.
    pub makespan_weight: f64,
    /// The exponent `lambda` of the weights of jobs that are late.
    pub lateness_power: u32,
    /// The largest accepted ratio of finish times `rho_max`.
    pub rho: f64,
}

impl Default for ShockwaveOptions {
    fn default() -> ShockwaveOptions {
        ShockwaveOptions { rounds: 20, replan: 8, makespan_weight: 1e-3, lateness_power: 12, rho: 1.0 }
    }
}

/// The policy with its plan.
struct Shockwave {
    options: ShockwaveOptions,
    round_s: f64,
    profiles: BTreeMap<u32, EpochProfile>,
    /// The estimates of the finish time of each job, as (round, seconds), one per change of the jobs.
    history: BTreeMap<u32, Vec<(u64, f64)>>,
    /// The ids of the jobs at the last round.
    known: Vec<u32>,
    /// The ids of the planned jobs of each round.
    plan: Vec<Vec<u32>>,
    /// The round of the first entry of `plan`.
    planned_at: u64,
    /// The rounds since the last regular plan or completion.
    since: u32,
}

/// Returns `base^power` by repeated multiplication, so that the bits do not depend on a library.
fn power(base: f64, power: u32) -> f64 {
    (0..power).fold(1.0, |product, _| product * base)
}

impl Shockwave {
    fn new(options: ShockwaveOptions) -> Shockwave {
        Shockwave {
            options,
            round_s: 120.0,
            profiles: BTreeMap::new(),
            history: BTreeMap::new(),
            known: Vec::new(),
            plan: Vec::new(),
            planned_at: 0,
            since: 0,
        }
    }

    /// Returns the epochs of a job, complete and all, with the mean seconds of an epoch and the remaining seconds.
    fn epochs(&mut self, view: &View<'_>, job: &ActiveJob) -> (WindowJob, f64) {
        let round_s = self.round_s;
        let profile = self.profiles.entry(job.id).or_insert_with(|| {
            let rate = view.rates.alone(job.kind)[0].per_s;
            EpochProfile::uniform(job.kind, job.done + job.remaining, rate, round_s)
        });
        let done = profile.completed(job.kind, job.done);
        let window = WindowJob {
            scale: job.scale,
            epochs: profile.count() as f64,
            done: done as f64,
            epoch_s: profile.mean_seconds(done),
            remaining_s: profile.remaining_seconds(done),
            weight: 1.0,
        };
        (window, profile.seconds(done))
    }

    /// Computes the plan from the round `round` on. Returns it with the indices of the jobs in the view.
    fn solve(&mut self, view: &View<'_>, round: u64, changed: bool) -> Result<WindowPlan> {
        check_rates(view)?;
        let accelerators = view.capacity[0];
        let share = (f64::from(accelerators) / view.jobs.len() as f64).min(1.0);
        let mut jobs = Vec::with_capacity(view.jobs.len());
        let mut due = Vec::with_capacity(view.jobs.len());
        for job in view.jobs {
            let (window, spent) = self.epochs(view, job);
            let history = self.history.entry(job.id).or_default();
            if changed || history.is_empty() {
                history.push((round, job.arrival.seconds() + (spent + window.remaining_s) / share));
            }
            due.push(average(history, round));
            jobs.push(window);
        }
        let now = round as f64 * self.round_s;
        let (rounds, round_s) = (self.options.rounds, self.round_s);
        let window = |jobs: &[WindowJob], needed: &[u32]| {
            let makespan_weight = self.options.makespan_weight;
            WindowProgram { jobs, accelerators, rounds, round_s, makespan_weight }.solve(needed)
        };
        let end = now + f64::from(rounds) * round_s;
        let needed = |(job, due): (&WindowJob, &f64)| {
            let accepted = |&n: &u32| end + job.left_s(n, round_s) / share <= self.options.rho * due;
            (0..=rounds).find(accepted)
        };
        let needed: Option<Vec<u32>> = jobs.iter().zip(&due).map(needed).collect();
        if let Some(plan) = needed.and_then(|needed| window(&jobs, &needed)) {
            return Ok(plan);
        }
        for (job, due) in jobs.iter_mut().zip(&due) {
            let late = (now + job.remaining_s / share) / due;
            if late > self.options.rho {
                let exponent = if job.remaining_s < round_s { LAST_ROUND } else { self.options.lateness_power };
                job.weight = power(late, exponent).min(1e100);
            }
        }
        window(&jobs, &vec![0; jobs.len()]).ok_or_else(|| Error::NotConverged {
            solver: "window program of shockwave".to_owned(),
            problem: "no plan without required rounds".to_owned(),
        })
    }

    /// Stores a plan by ids, with idle accelerators given to the jobs with the longest remaining time.
    fn store(&mut self, view: &View<'_>, plan: &WindowPlan, round: u64) {
        let remaining: Vec<f64> = view.jobs.iter().map(|job| self.epochs(view, job).0.remaining_s).collect();
        let mut longest: Vec<usize> = (0..view.jobs.len()).collect();
        longest.sort_by(|&a, &b| remaining[b].total_cmp(&remaining[a]).then(a.cmp(&b)));
        let of_round = |planned: &Vec<usize>| {
            let mut jobs = planned.clone();
            let mut idle = view.capacity[0] - jobs.iter().map(|&at| view.jobs[at].scale).sum::<u32>();
            for &at in &longest {
                if view.jobs[at].scale <= idle && planned.binary_search(&at).is_err() {
                    idle -= view.jobs[at].scale;
                    jobs.push(at);
                }
            }
            jobs.sort_unstable();
            jobs.into_iter().map(|at| view.jobs[at].id).collect()
        };
        self.plan = plan.rounds.iter().map(of_round).collect();
        self.planned_at = round;
    }
}

/// Returns the estimate of a finish time: 0.9 times the mean of the history, weighted by rounds, plus 0.1 times its last value.
fn average(history: &[(u64, f64)], round: u64) -> f64 {
    let ends = history.iter().skip(1).map(|(round, _)| *round).chain([round]);
    let (mut sum, mut rounds) = (0.0, 0.0);
    for ((from, value), to) in history.iter().zip(ends) {
        let length = to.saturating_sub(*from) as f64;
        (sum, rounds) = (sum + length * value, rounds + length);
    }
    let last = history.last().map_or(0.0, |(_, value)| *value);
    let mean = if rounds > 0.0 { sum / rounds } else { last };
    AVERAGE * mean + (1.0 - AVERAGE) * last
}

impl Policy for Shockwave {
    fn prepare(&mut self, run: &RunFacts<'_>) {
        self.round_s = run.round.seconds();
        let profile = |job: &crate::table::TrainingJob| (job.id, EpochProfile::new(job, run.rates, 0, self.round_s));
        self.profiles = run.jobs.iter().map(profile).collect();
    }

    /// Returns, for each job, the share of the rounds of a window that it uses.
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        let mut targets = Targets::zero(view.jobs.len(), view.capacity.len());
        if view.jobs.is_empty() {
            return Ok(targets);
        }
        one_type(view)?;
        let plan = self.solve(view, 0, true)?;
        for (x, count) in targets.alone.iter_mut().zip(&plan.counts) {
            *x = (u64::from(WHOLE) * u64::from(*count) / u64::from(self.options.rounds)) as u32;
        }
        Ok(targets)
    }

    fn plans(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &View<'_>, round: u64) -> Result<RoundChoice> {
        one_type(view)?;
        // Rounds without active jobs count as well.
        let round = round.max((view.now.seconds() / self.round_s) as u64);
        let ids: Vec<u32> = view.jobs.iter().map(|job| job.id).collect();
        let completed = self.known.iter().any(|id| ids.binary_search(id).is_err());
        let changed = ids != self.known;
        self.since = if completed { 0 } else { self.since + 1 };
        let regular = self.since >= self.options.replan;
        let outdated = (round.saturating_sub(self.planned_at)) as usize >= self.plan.len();
        let planned = changed || regular || outdated;
        if planned {
            self.since = if regular { 0 } else { self.since };
            self.history.retain(|id, _| ids.binary_search(id).is_ok());
            self.profiles.retain(|id, _| *id > ids[ids.len() - 1] || ids.binary_search(id).is_ok());
            self.known = ids;
            let plan = self.solve(view, round, changed)?;
            self.store(view, &plan, round);
            return Ok(RoundChoice { jobs: on_first(&self.plan[0]), planned, gap: Some((plan.value, plan.bound)) });
        }
        let jobs = on_first(&self.plan[(round - self.planned_at) as usize]);
        Ok(RoundChoice { jobs, planned, gap: None })
    }
}

/// Returns the jobs with the only worker type.
fn on_first(ids: &[u32]) -> Vec<(u32, usize)> {
    ids.iter().map(|&id| (id, 0)).collect()
}

fn one_type(view: &View<'_>) -> Result<()> {
    if view.capacity.len() == 1 {
        return Ok(());
    }
    let problem = format!("shockwave plans for one worker type; the cluster has {}", view.capacity.len());
    Err(Error::Mismatch { problem })
}

#[cfg(test)]
mod tests;
