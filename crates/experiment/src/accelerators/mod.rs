//! Experiments with accelerators: plans with a table `[accelerators]`. The speed of a job depends on the type of accelerator, and jobs are
//! scheduled in rounds. The simulator is the crate `plimsoll_rounds`.
//!
//! - `keys`, `plan`: the keys of the table and their validation, for one cell.
//! - `study`: the plan with includes and a sweep, the identity of runs; `inputs`: its files, each read once.
//! - `execute`: executes the missing runs and stores each run when it ends.
//! - `tables`, `figures`: the tables of all runs, and the figures.

mod execute;
mod figures;
mod inputs;
mod keys;
mod plan;
mod study;
mod tables;

pub use execute::{AcceleratorDone, AcceleratorRequest, RunCounts, StoredRun, execute};
pub use figures::{AxisValues, figures};
pub use keys::{AcceleratorKey, KEYS};
pub use plan::{AcceleratorSetup, policy_row};
pub use study::{AcceleratorCell, AcceleratorRunIndex, AcceleratorStudy, ListedAcceleratorRun};
pub use tables::write_tables;
