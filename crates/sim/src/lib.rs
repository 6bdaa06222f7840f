//! The simulator of Plimsoll: the workload, the cluster, the books, the engine, and the interface that a policy implements.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod backend;
pub mod books;
pub mod cluster;
pub mod engine;
pub mod policy;
pub mod record;
pub mod workload;
