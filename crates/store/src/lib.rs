//! Files of Plimsoll: tables in Parquet, records with digests of themselves, archives, and the folder that they stand in. The only
//! crate that knows the inner crates of polars.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod archive;
pub mod arrow;
mod encode;
pub mod file;
pub mod frame;
pub mod lock;
pub mod parquet;
pub mod portable;
pub mod sealed;
pub mod table;
pub mod trace;
