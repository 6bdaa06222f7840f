//! Files of Plimsoll: tables in Parquet, checksummed records, archives, and locks of folders. This is the only crate that depends on the
//! inner crates of polars.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod archive;
pub mod arrow;
mod encode;
pub mod file;
pub mod frame;
mod kinds;
pub mod lock;
pub mod parquet;
pub mod portable;
mod row_groups;
pub mod sealed;
pub mod table;
pub mod trace;
