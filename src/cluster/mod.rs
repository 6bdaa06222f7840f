//! What a workload runs on.

pub mod machines;
pub mod spec;

pub use spec::{ClusterSpec, MachineGroup};
