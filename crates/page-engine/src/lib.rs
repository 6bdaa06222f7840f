//! Simulations inside the report: a run of one seed, as a function from text to text that needs no files, threads or clock.
//!
//! A [`PageRequest`] has all inputs of a run except its rows, which are a canonical trace. [`PageEngine::run`] applies the reader's
//! [`PageChanges`] and returns the tables of the run as CSV. `page` compiles this crate to WebAssembly. The tables are equal on all
//! platforms: times, amounts and ranks are integers, and the metrics use only the operations that IEEE 754 defines exactly. Policies that
//! use other functions are refused ([`PageRequest::check_policy`]).

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod engine;
mod recorder;
mod request;
mod tables;

pub use engine::{PageEngine, PageProgress};
pub use request::{LOADS, PageChanges, PageRequest};
pub use tables::PageTables;
