//! Experiments: reads plans, executes their runs, and computes metrics, tables and findings.
//!
//! - `plan`, `machines`, `control`, `seeds`, `changes`: the keys of a plan and their validation.
//! - `study`: plans with includes and sweeps, the identity of runs, receipts and the results folder.
//! - `preflight`, `execute`, `single`, `supply`: the validation and execution of runs.
//! - `collect` and its parts (`groups`, `sinks`, `remarks`, `memory`): the observation of one run.
//! - `summary`, `compare`, `findings`, `contrast`: statistics of runs, of policies, and of two results.
//! - `bundle`: the published part of a results folder. `failover` and `gym`: other kinds of experiments.

pub mod bundle;
pub mod changes;
mod collect;
mod compare;
mod contrast;
pub mod control;
mod demands;
mod execute;
pub mod failover;
mod findings;
mod groups;
pub mod gym;
pub mod machines;
mod memory;
pub mod plan;
mod preflight;
mod remarks;
mod seeds;
mod shared;
mod single;
mod sinks;
pub mod study;
mod summary;
mod supply;

pub use crate::metrics::Window;
pub use compare::comparison;
pub use contrast::{Contrast, MetricChange, contrast};
pub use execute::{Done, Mode, Progress, Request, execute};
pub use findings::{Difference, Estimate, Findings, findings};
pub use groups::GroupSummary;
pub use memory::ROW_MEMORY;
pub use plan::{Plan, WorkloadPlan};
pub use preflight::check;
pub use remarks::StuckExample;
pub use seeds::{Precision, Seeds};
pub use shared::SharedSupply;
pub use single::{Simulated, Simulation, simulate};
pub use sinks::Destination;
pub use study::Study;
pub use summary::{RunSummary, SummaryValue};
pub use supply::Supply;
