//! Published results of other groups as tests: targets, numbers, verdicts and the page that shows them.
//!
//! A *target* is a folder with a paper's declaration (`target.toml`), plans or instances, and `numbers.csv` with one row per number. A row
//! names a plan with parameters, policy and seeds, a reading of the result, the published value and its tolerance. [`evaluate`] prepares
//! the inputs of each plan from the data folder of the user, runs what the rows require, and judges every row. The verdict is "not run" if
//! an input is missing or differs.
//!
//! Runs are executed by the caller ([`TargetRunner`]); static models of this crate need no runner.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod accelerators;
mod claims;
mod digest;
mod evaluate;
mod job_readings;
mod models;
mod numbers;
mod occupancy;
mod outcome;
mod page;
mod parameters;
mod predictions;
mod prepare;
mod readings;
mod servers;
mod slices;
mod target;
mod unlike;

pub use claims::{ClaimRow, ClaimSide, ClaimVerdict, JudgedClaim};
pub use digest::{blake3_of, git_blob_of};
pub use evaluate::{Evaluated, Judged, NumberVerdict, TargetProgress, TargetRunner, evaluate};
pub use numbers::{Expected, NumberKind, NumberRow, Tolerance};
pub use outcome::{JobOutcome, RunOutcome};
pub use page::{claims_csv, counts, csv, page, rounded};
pub use parameters::Parameters;
pub use predictions::{PredictedJob, predictions_csv};
pub use prepare::inputs_csv;
pub use target::{MissReason, PlanEntry, PublishedTarget, TargetInput, UnstatedParameter, targets};
