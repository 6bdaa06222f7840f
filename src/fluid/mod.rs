//! What would be fair: static allocations of divisible tasks, and their whole-task counterparts.
//!
//! Pure functions of an [`Instance`] (or, for the fast solvers, of a [`Problem`]): no clock, no engine. A [`Mechanism`]
//! turns an instance into an [`Allocation`]; what is a fraction comes out as one ([`Exact`]), the rest with a
//! certificate.

mod allocation;
mod ceei;
mod exact;
mod filling;
mod instance;
mod linear;
mod norm;
mod problem;

pub use allocation::{Allocation, Certificate, Limit, Mechanism, Tasks};
pub use ceei::{Ceei, Market};
pub use exact::{Exact, Number};
pub use filling::{Filled, Filling, fill};
pub use instance::{Instance, Machines, User};
pub use norm::Norm;
pub use problem::Problem;

/// By how much, relatively, a converged solution may miss its optimality conditions; more is
/// [`Error::NotConverged`](crate::error::Error::NotConverged).
pub const TOLERANCE: f64 = 1e-9;
