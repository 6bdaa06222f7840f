//! The Rust part of the Python package: the command line as a function, tables by Arrow's C interface, and simulations for agents that
//! learn.
//!
//! The other part is `python/plimsoll`. This crate computes no results: a call takes the same path as the command line, from the plan
//! reader to the results folder, and tables are read from that folder.

mod call;
mod gym;
mod metric;
mod policy;
mod table;

use pyo3::prelude::*;

/// The module `plimsoll._plimsoll`.
#[pymodule]
mod _plimsoll {
    #[pymodule_export]
    use super::call::{call, end_calls, main, toml};
    #[pymodule_export]
    use super::gym::Simulations;
    #[pymodule_export]
    use super::policy::{check_policy, is_policy};
    #[pymodule_export]
    use super::table::{Table, moved, tables, write_frame};
    #[pymodule_export]
    use super::version;
}

/// Returns the version, and the commit of the sources if it is known.
#[pyfunction]
fn version() -> (&'static str, Option<&'static str>) {
    use plimsoll::output::provenance::{COMMIT, VERSION};
    (VERSION, COMMIT)
}
