//! Workloads from a seed: each generator is a table in a plan. Every policy gets the same workload, except in a closed loop.
//!
//! The same specification and seed give the same workload, because every purpose draws from its own random stream ([`random`]).

pub mod classes;
pub mod closed_loop;
mod demands;
pub mod distributions;
pub mod facebook;
mod facebook_job;
pub mod published;
pub mod random;

pub use classes::Synthetic;
pub use closed_loop::{ClosedLoop, LoopSource};
pub use facebook::Facebook;

use serde::Deserialize;

use super::{Source, Workload};
use plimsoll_base::error::Result;

/// A generator with its parameters; in a plan, `generator = "facebook"` is in the same table as the parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "generator", rename_all = "kebab-case")]
pub enum Generator {
    /// Jobs like those of Facebook's cluster in October 2010.
    Facebook(Facebook),
    /// Classes of users with a distribution for each quantity.
    Synthetic(Synthetic),
    /// Users that submit their next job when the last one has finished.
    ClosedLoop(ClosedLoop),
}

/// The output of a generator for one seed.
#[derive(Clone, Debug)]
pub enum Generated {
    /// All task sets, known before the run.
    Workload(Workload),
    /// Task sets that depend on the finish times of jobs.
    Loop(LoopSource),
}

impl Generator {
    /// The names of all generators.
    pub const NAMES: [&str; 3] = ["facebook", "synthetic", "closed-loop"];

    /// Returns whether the generator of this name has a parameter `load` of its own.
    pub fn has_load(name: &str) -> bool {
        name == "facebook"
    }

    /// Returns the generator's name.
    pub fn name(&self) -> &'static str {
        match self {
            Generator::Facebook(_) => "facebook",
            Generator::Synthetic(_) => "synthetic",
            Generator::ClosedLoop(_) => "closed-loop",
        }
    }

    /// Returns whether later submissions depend on the ends of earlier jobs, and so on the policy. In a closed loop the number of jobs and
    /// their submit times differ between policies, and runs with the same seed are not paired.
    pub fn submissions_depend_on_policy(&self) -> bool {
        matches!(self, Generator::ClosedLoop(_))
    }

    /// Returns the properties of the workload of a seed before any job is drawn: resources, labels, and the users that may submit (none if
    /// every job has its own user). Errors: as [`Generator::generate`], except for errors that only occur in later draws.
    pub fn outline(&self, seed: u64) -> Result<Workload> {
        match self {
            Generator::Facebook(spec) => spec.outline(seed),
            Generator::Synthetic(spec) => spec.outline(seed),
            Generator::ClosedLoop(spec) => spec.source(seed).map(LoopSource::outline),
        }
    }

    /// Generates the workload of a seed. Errors: [`plimsoll_base::error::Error::Plan`] at `workload.<parameter>`.
    pub fn generate(&self, seed: u64) -> Result<Generated> {
        match self {
            Generator::Facebook(spec) => spec.generate(seed).map(Generated::Workload),
            Generator::Synthetic(spec) => spec.generate(seed).map(Generated::Workload),
            Generator::ClosedLoop(spec) => spec.source(seed).map(Generated::Loop),
        }
    }
}

impl Generated {
    /// Creates a source from the start; each run needs its own.
    pub fn source(&self) -> Box<dyn Source + '_> {
        match self {
            Generated::Workload(workload) => Box::new(workload.source()),
            Generated::Loop(source) => Box::new(source.clone()),
        }
    }
}

#[cfg(test)]
mod facebook_tests;
#[cfg(test)]
mod tests;
