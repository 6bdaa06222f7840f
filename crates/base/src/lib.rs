//! The foundation of Plimsoll: units, errors, and files that are read with the place of every error.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod error;
pub mod named;
pub mod pinned;
pub mod rows;
pub mod units;
