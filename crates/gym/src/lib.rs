//! Simulations that a learned scheduler steps from decision to decision, for a Gymnasium environment.
//!
//! An episode is a number of jobs of a workload on a cluster. Whenever there is room for one of the first jobs in the queue, the agent
//! chooses a job that starts tasks now, or waits until something changes. [`Simulation`] runs one episode after the other; [`Fleet`] runs
//! many simulations at once on threads. [`Observation`] is the agent's input, as numbers in [`features`] or as an image ([`image`]).
//! [`Reward`] is the agent's reward; the rewards of an episode add up to a metric of the run.
//!
//! The engine runs under a policy that admits no task. Each job is its own user, so the agent chooses a job by choosing a user
//! ([`Engine::start`](plimsoll_sim::engine::Engine::start)).

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod episode_log;
pub mod features;
mod fleet;
pub mod image;
mod jobs;
mod line;
mod reward;
mod simulation;
#[cfg(test)]
mod tests;

pub use episode_log::JobTimes;
pub use features::Features;
pub use fleet::{Fleet, Stepped};
pub use image::Image;
pub use jobs::{Episode, JobPool, all_of};
pub use line::{AgentView, RunningBatch, Shown};
pub use reward::Reward;
pub use simulation::{Observation, Setting, Simulation, Step};
