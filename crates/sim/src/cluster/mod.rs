//! The machines that a workload runs on: their description, their locations and labels, and the placement of tasks on them.

mod axis;
mod climb;
#[cfg(test)]
mod device_tests;
mod devices;
pub mod events;
mod expression;
pub mod file;
mod fragmentation;
mod grid;
mod index;
mod kss;
mod labels;
mod location;
mod machines;
mod planned;
mod rules;
mod scope;
mod searches;
mod shortage;
mod spec;
#[cfg(test)]
mod tests;

pub use devices::{DevicePart, Hardware, WHOLE};
pub use events::{MachineChange, MachineEvent, MachineEvents};
pub use expression::is_label;
pub use fragmentation::{Fragmentation, Mix};
pub use kss::{PodDemand, PodMix, pod_demand};
pub use labels::{ClassId, LabelIndex, Moved};
pub use location::{Location, Locations, RackId, RoomId};
pub use machines::Machines;
pub use planned::PlannedRoom;
pub use rules::{Placement, PlacementRow};
pub use scope::{Area, MachineSet, Scope};
pub use shortage::Shortage;
pub use spec::{Cluster, ClusterSpec, MachineGroup, Speed};
