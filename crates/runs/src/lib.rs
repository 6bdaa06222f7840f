//! Runs: one simulation of a workload under a policy, its measurement, and its tables.
//!
//! [`Supply`] creates the rows of a workload; runs with the same rows share them ([`SharedSupply`], [`Supplies`]). [`simulate`] runs the
//! engine. A `Collector` observes the run: it passes events to the metrics (`RunLog`), to the tables (`Sinks`) and to the log of the
//! groups (`GroupWatch`). The result is a [`RunSummary`](plimsoll_results::summary::RunSummary) with complete tables under temporary names.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod collect;
mod demands;
mod groups;
mod intervention;
mod memory;
mod mix;
mod own;
mod remarks;
mod saved;
mod shared;
mod simulate;
mod sinks;
mod summary;
mod supply;
mod wait_log;
mod wait_text;

pub use intervention::Intervention;
pub use memory::ROW_MEMORY;
pub use mix::{define_fragments, fragments_of};
pub use own::OwnMetric;
pub use plimsoll_policies::RunEnvironment;
pub use plimsoll_sim::workload::Shake;
pub use saved::{SaveEvery, SavedStates};
pub use shared::{Key, Lease, SharedSupply, Supplies};
pub use simulate::{Simulated, Simulation, simulate, simulate_observed};
pub use sinks::{Destination, columns};
pub use supply::Supply;
pub use wait_log::{JobWait, NoObserver, Observer, StartLog, WaitInterval, WaitLog};
pub use wait_text::WaitReport;
