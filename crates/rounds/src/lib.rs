//! Heterogeneous accelerators: throughput tables, policies that solve for fractions of time, and the rounds that realise them.
//!
//! The speed of a job depends on its type and on the type of the accelerators. A policy ([`policies`]) computes the fraction of time that
//! each job receives on each worker type, usually by a linear program ([`lp`]). A round-based mechanism ([`mechanism`]) turns the fractions
//! into schedules: a pure step from the state and the active jobs to the placements of one round. [`simulate`] replays a list of jobs with
//! both. [`properties`] checks fractions, and searches counterexamples to fairness properties. Sources: Gavel (Narayanan et al., OSDI 2020) and Shockwave (Zheng et al., NSDI 2023).
//!
//! Progress is exact. The clock is in microseconds, iterations are in millionths, and rates are in iterations per 10^12 s; a micro-task's
//! length is rounded once, to the microsecond, and its iterations are not rounded. Only the solver uses floats; its fractions are rounded
//! to 10^-9 before they decide anything.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod lp;
pub mod mechanism;
pub mod policies;
pub mod properties;
pub mod random;
pub mod simulate;
pub mod table;
