//! What a workload runs on.

pub mod file;
mod machines;
mod spec;

pub use machines::{Machines, Placement};
pub use spec::{Cluster, ClusterSpec, MachineGroup};
