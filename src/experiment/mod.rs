//! From a plan to runs, and from runs to numbers.

pub mod bundle;
mod changes;
mod collect;
mod compare;
mod contrast;
mod demands;
mod execute;
pub mod failover;
mod findings;
mod groups;
pub mod machines;
pub mod plan;
mod sample;
mod seeds;
mod single;
mod sinks;
pub mod study;
mod summary;
mod supply;
mod totals;
mod window;

pub use compare::comparison;
pub use contrast::{Change, Contrast, contrast};
pub use execute::{Done, Mode, Progress, Request, execute};
pub use findings::{DIFFERENCES, Difference, ESTIMATES, Estimate, Findings, findings};
pub use groups::GroupSummary;
pub use plan::{Plan, WorkloadPlan};
pub use seeds::{Precision, Seeds};
pub use single::{Simulated, Simulation, simulate};
pub use sinks::Destination;
pub use study::Study;
pub use summary::{RunSummary, Value};
pub use supply::Supply;
pub use totals::StuckExample;
pub use window::Window;
