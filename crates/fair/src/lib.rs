//! Fair static allocations of divisible tasks, and their counterparts in whole tasks.
//!
//! Pure functions of an [`Instance`] (or, for the fast solvers, of a [`Problem`]): no clock, no engine. A [`Mechanism`] maps an instance to
//! an [`Allocation`]. Rational results are exact fractions ([`Exact`]); other results have a certificate. Groups with quotas are a separate
//! problem, solved in [`quota`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod allocation;
mod bmf;
mod ceei;
mod division;
mod exact;
mod filling;
mod instance;
mod karma;
mod leontief;
mod levels;
mod levels_pass;
mod linear;
mod machines;
mod norm;
mod problem;
pub mod quota;
pub mod read;
mod slots;
pub mod water;
mod whole;

pub use allocation::{Allocation, Certificate, Limit, Mechanism, Tasks};
pub use bmf::{Bmf, BmfSolution, BmfSolver, bmf_limits};
pub use ceei::{Ceei, Market};
pub use division::{Claim, USAGE_ONE, divide};
pub use exact::{Exact, Number};
pub use filling::{Filled, Filling, fill};
pub use instance::{Instance, Machines, User};
pub use karma::{FreeCredits, Karma};
pub use leontief::Wants;
pub use levels::Levels;
pub use machines::{Across, PsDsf, Quantity};
pub use norm::Norm;
pub use problem::Problem;
pub use slots::Slots;
pub use whole::{FillingRoom, OnBlocked, ServingKey, Ties, WholeTasks};

/// The relative violation of its optimality conditions that a converged solution may have. A larger violation is
/// [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
pub const TOLERANCE: f64 = 1e-9;
