//! Decisions of policies on a given state, and scenarios played to a verdict.
//!
//! A [`State`] is a cluster with its queues, and workloads that run, wait or are still to come. [`Bench::play`] has a policy decide
//! one round of it, [`judge`] plays rounds until they settle or come back, and [`search`] looks through all small states for one
//! that comes back with an eviction in between.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod answer;
mod machines;
mod round;
mod search;
mod situation;
mod state;
mod verdict;

pub use answer::{answer, hearing, reason};
pub use round::{Bench, Evicted, Round, Waits, Why};
pub use search::{Class, Found, search};
pub use situation::{Run, Situation, Wait};
pub use state::{Expectation, ROUNDS, State, Workload, open, parse};
pub use verdict::{Hearing, Played, Verdict, judge};
