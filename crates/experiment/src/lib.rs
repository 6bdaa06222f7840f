//! Experiments: reads plans, executes their runs, and computes metrics, tables and findings.
//!
//! - `plan`, `workload`, `machines`, `own`, `seeds`, `changes`: the keys of a plan and their validation.
//! - `study`: plans with includes and sweeps, the identity of runs, and the results folder.
//! - `preflight`, `execute`, `observe`: the validation, execution and repetition of runs. A single run is in the crate `plimsoll_runs`.
//! - `attribution`: the wait of a job in counterfactual runs.
//! - `compare`, `findings`, `contrast`: statistics of runs, of policies, and of two results.
//! - `accelerators`, `failover` and `gym`: other kinds of experiments.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod accelerators;
mod attribution;
pub mod changes;
mod compare;
mod contrast;
mod execute;
pub mod failover;
mod findings;
pub mod gym;
pub mod machines;
mod observe;
mod own;
pub mod plan;
mod preflight;
mod seeds;
pub mod study;
pub mod workload;

pub use attribution::{Attribution, Cause, CauseEffect, Robustness, Shakes, attribute, parse_causes};
pub use compare::comparison;
pub use contrast::{Contrast, MetricChange, contrast};
pub use execute::{Done, Mode, Progress, Request, execute};
pub use findings::{Difference, Estimate, Findings, findings};
pub use observe::{RepeatedRun, StudyRun, check_repeated, policy_meaning};
pub use plan::Plan;
pub use plimsoll_metrics::Window;
pub use plimsoll_results::summary::{GroupSummary, RunSummary, StuckExample, SummaryValue};
pub use plimsoll_runs::{Destination, OwnMetric, ROW_MEMORY, SharedSupply, Simulated, Simulation, Supply, simulate};
pub use preflight::check;
pub use seeds::{Precision, Seeds};
pub use study::Study;
pub use workload::WorkloadPlan;
