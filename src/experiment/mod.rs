//! From a plan to runs, and from runs to numbers.

mod collect;
mod compare;
mod demands;
mod execute;
pub mod failover;
mod groups;
pub mod plan;
mod sample;
mod single;
mod sinks;
mod summary;
mod supply;

pub use collect::StuckExample;
pub use compare::comparison;
pub use execute::{Progress, execute, metadata};
pub use groups::GroupSummary;
pub use plan::{Plan, WorkloadPlan};
pub use single::{Simulation, simulate};
pub use sinks::Destination;
pub use summary::{RunSummary, Value};
pub use supply::Supply;
