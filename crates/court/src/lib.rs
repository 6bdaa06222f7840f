//! Decisions of policies on a given state, and scenarios played to a verdict.
//!
//! A [`State`] is a cluster with its queues, and workloads that run, wait or arrive later. [`Bench::play`] executes one decision round of a
//! policy, [`judge`] plays rounds until the situation is stable or repeats, and [`search`] examines all small states for one with a given
//! verdict, such as a livelock.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod answer;
mod machines;
mod round;
mod search;
mod situation;
mod state;
mod verdict;

pub use answer::{answer, assessment, reason};
pub use round::{Bench, Evicted, Round, Waits, Why};
pub use search::{Class, FoundState, search};
pub use situation::{RunningWorkload, Situation, Wait};
pub use state::{Expectation, ROUNDS, State, Workload, open, parse};
pub use verdict::{Assessment, Played, Verdict, judge};
