//! What a workload runs on.

mod axis;
mod climb;
pub mod file;
mod grid;
mod index;
mod machines;
mod rules;
mod scope;
mod spec;
#[cfg(test)]
mod tests;

pub use machines::Machines;
pub use rules::Placement;
pub use scope::{Members, Place, Scope};
pub use spec::{Cluster, ClusterSpec, MachineGroup};
