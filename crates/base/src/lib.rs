//! The foundation of Plimsoll: units, errors, columns of tables, and readers of files that give every error its place.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod column;
pub mod document;
pub mod error;
pub mod escape;
pub mod fields;
pub mod named;
pub mod names;
pub mod pinned;
pub mod resources;
pub mod rows;
pub mod settings;
pub mod tree;
pub mod units;

#[doc(hidden)]
pub use serde;
