//! What a workload runs on.

pub mod spec;

pub use spec::{ClusterSpec, MachineGroup};
