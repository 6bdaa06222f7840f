//! Measures of a run: fairness, envy, sharing incentive, delay, and the variation of each over time and over seeds.
//!
//! The crate has pure functions on plain slices and small accumulators, for live records and for records that are read from a file. The
//! totals of a run are integers, so they do not depend on the order of their input and merge bit for bit. The reference and the service
//! logs use floats. A measure without a value (no user, no job, 0/0) is `None`, never NaN and never 0.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod best;
pub mod compare;
pub mod difference;
pub mod fair_service;
pub mod fluid;
mod grid;
pub mod groups;
pub mod histogram;
pub mod holm;
mod horizon;
pub mod interval;
mod job_row;
mod job_table;
pub mod numbers;
pub mod reference;
pub mod run;
pub mod run_log;
mod service;
mod snapshot;
mod spread;
pub mod student;
pub mod users;
pub mod verdict;
pub mod window;
pub mod work;

pub use best::{Award, Awards, Contest, awards};
pub use compare::{BinRuns, Compared, Comparison, PolicyRuns};
pub use difference::{Design, MARGIN, MeanDifference, Test, bootstrap, difference};
pub use fair_service::FairService;
pub use fluid::Fluid;
pub use groups::{GroupLog, GroupSums, GroupTimes, Guarantee, Holding};
pub use histogram::{LogHistogram, Quantiles};
pub use holm::{Corrected, corrected, holm};
pub use horizon::JudgedService;
pub use interval::{Interval, mean_interval};
pub use job_row::JobRow;
pub use reference::Reference;
pub use run::delay::{Delays, FIG_14_LABELS, FinishedJob, Summary};
pub use run::deviation::{Deviation, theorem7_broken};
pub use run::envy::{Envy, envy};
pub use run::fairness::{WHOLE, fixed_share, gap, gini, jain, ratio};
pub use run::incentive::{Incentive, PartComparison, standings};
pub use run::slowdown::Slowdowns;
pub use run::stranded::stranded;
pub use run::{GridMeans, GridPoint, Run, Sample, Totals, runs_columns};
pub use run_log::{Measure, RunLog};
pub use snapshot::UserSnapshot;
pub use spread::mean;
pub use users::{User, UserTotals};
pub use verdict::{TestVerdict, Tested};
pub use window::Window;
pub use work::{ServedWork, TaskSizes, Work};
