//! What a workload runs on.

mod machines;
mod spec;
pub mod machines;
pub mod spec;

pub use machines::{Machines, Placement};
pub use spec::{Cluster, ClusterSpec, MachineGroup};
