//! Policies: from the active jobs to fractions of time.
//!
//! One file per policy, each with a declared [`PolicyRow`]; [`POLICIES`] lists them under the names of the published results.

mod allox;
mod closed;
mod cost;
mod entity_fifo;
mod fifo;
mod finish_time;
mod fractions;
mod gandiva;
mod makespan;
mod max_min;
pub mod shockwave;
mod users;
mod water_filling;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time};

use crate::mechanism::Targets;
use crate::table::{Rates, TrainingJob};

pub use fractions::{Formulation, Fractions, PairFraction, improvement, isolated_rates, proportional_rates};
pub use makespan::makespan;
pub use max_min::max_min;
pub use water_filling::{Bottlenecks, Within, water_fill};

/// An active job as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct ActiveJob {
    /// Its id.
    pub id: u32,
    /// Its kind in [`Rates`].
    pub kind: u32,
    /// Accelerators used together.
    pub scale: u32,
    /// Its weight.
    pub weight: u32,
    /// Its entity.
    pub entity: u32,
    /// Its arrival.
    pub arrival: Time,
    /// Iterations left, in millionths.
    pub remaining: u64,
    /// Iterations done, in millionths.
    pub done: u64,
    /// Its deadline, or `None`.
    pub deadline: Option<Time>,
}

impl ActiveJob {
    /// Returns the iterations left.
    pub fn iterations(&self) -> f64 {
        self.remaining as f64 / 1e6
    }
}

/// The input of a policy.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Time,
    /// The active jobs in order of their ids.
    pub jobs: &'a [ActiveJob],
    /// The rates.
    pub rates: &'a Rates,
    /// The accelerators of each worker type.
    pub capacity: &'a [u32],
}

impl View<'_> {
    /// Returns the rates of the job at an index alone, in iterations per second.
    pub fn rate(&self, job: usize, worker_type: usize) -> f64 {
        self.rates.alone(self.jobs[job].kind)[worker_type].per_s
    }
}

/// A policy with its state over a run.
pub trait Policy {
    /// Computes the fractions of the active jobs. Errors: [`Error::NotConverged`] of a solver, or an input outside the policy's model.
    fn targets(&mut self, view: &View<'_>) -> Result<Targets>;

    /// Receives facts that a policy may store before the first round.
    fn prepare(&mut self, _run: &RunFacts<'_>) {}

    /// Returns whether the policy chooses the jobs of each round itself. Then the mechanism only places them.
    fn plans(&self) -> bool {
        false
    }

    /// Chooses the jobs of round `round`, for a policy that plans. The jobs of a worker type fit on it together.
    ///
    /// Errors: as [`Policy::targets`].
    fn choose(&mut self, _view: &View<'_>, _round: u64) -> Result<RoundChoice> {
        Ok(RoundChoice::default())
    }

    /// Receives the length of a micro-task that a chosen job completed.
    fn charge(&mut self, _job: &ActiveJob, _worker_type: usize, _length: Span) {}
}

/// The facts of a run that are known before its first round.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    /// All jobs of the list.
    pub jobs: &'a [TrainingJob],
    /// The rates.
    pub rates: &'a Rates,
    /// The length of a round.
    pub round: Span,
}

/// The jobs of a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundChoice {
    /// Their ids, ascending, with their worker types.
    pub jobs: Vec<(u32, usize)>,
    /// Whether a plan was computed for this round.
    pub planned: bool,
    /// The objective of a new plan and its upper bound.
    pub gap: Option<(f64, f64)>,
}

/// Options of policies: choices of the published programs.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyOptions {
    /// The seed of the run.
    pub seed: u64,
    /// The relative gap at which the bisection of the makespan ends (published: 0.05).
    pub makespan_gap: f64,
    /// The search for bottleneck jobs of hierarchical policies.
    pub bottlenecks: Bottlenecks,
    /// The choice of a worker type by FIFO.
    pub fifo_type: FifoType,
    /// AlloX: the share of waiting jobs that take part in the assignment, in thousandths (Gavel 1000, Shockwave 200).
    pub allox_share_milli: u32,
    /// Gandiva: a pair ends when its sum of relative rates falls below this threshold (published: 1).
    pub gandiva_threshold: f64,
    /// The parameters of Shockwave.
    pub shockwave: shockwave::ShockwaveOptions,
    /// The quotas of entities in accelerators, as (entity, accelerators). Empty: all accelerators are divided equally.
    pub quotas: Vec<(u32, u32)>,
}

impl Default for PolicyOptions {
    fn default() -> PolicyOptions {
        PolicyOptions {
            seed: 0,
            makespan_gap: 0.05,
            bottlenecks: Bottlenecks::Intended,
            fifo_type: FifoType::Published,
            allox_share_milli: 1000,
            gandiva_threshold: 1.0,
            shockwave: shockwave::ShockwaveOptions::default(),
            quotas: Vec::new(),
        }
    }
}

/// The choice of a worker type by FIFO without awareness of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FifoType {
    /// As in the published program, which may assign more jobs to a type than it has accelerators.
    #[default]
    Published,
    /// The last type in alphabetical order that has room.
    Last,
    /// A random type that has room (the intention of the published program).
    Random,
}

/// The declaration of a policy.
#[derive(Clone, Copy)]
pub struct PolicyRow {
    /// Its name in the published results.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its source.
    pub source: &'static str,
    /// Whether pairs of jobs may share accelerators.
    pub packing: bool,
    /// Whether the mechanism visits the worker types as listed; otherwise in random order.
    pub listed_order: bool,
    /// Whether entries of priority 0 never run.
    pub skip_zero: bool,
    /// Creates the policy for a run.
    pub create: fn(&PolicyOptions) -> Box<dyn Policy>,
}

/// All policies.
pub const POLICIES: &[&PolicyRow] = &[
    &max_min::AGNOSTIC,
    &max_min::AWARE,
    &max_min::PACKED,
    &fifo::AGNOSTIC,
    &fifo::AWARE,
    &fifo::PACKED,
    &fifo::SJF,
    &finish_time::AGNOSTIC,
    &finish_time::AWARE,
    &makespan::AGNOSTIC,
    &makespan::AWARE,
    &makespan::PACKED,
    &water_filling::AGNOSTIC,
    &water_filling::AWARE,
    &water_filling::ENTITIES_FAIR,
    &water_filling::ENTITIES_FIFO,
    &cost::SUM,
    &cost::COST,
    &cost::COST_SLO,
    &allox::ALLOX,
    &gandiva::GANDIVA,
    &shockwave::SHOCKWAVE,
    &closed::GANDIVA_FAIR,
    &closed::ISOLATED,
    &closed::PROPORTIONAL,
    &users::DRF,
    &users::QUOTA,
    &users::KARMA,
];

/// Returns the row of a policy. Errors: [`Error::Plan`] with the accepted names.
pub fn policy(name: &str) -> Result<&'static PolicyRow> {
    POLICIES.iter().find(|row| row.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = POLICIES.iter().map(|row| row.name).collect();
        Error::plan("policy", name, format!("one of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests;
