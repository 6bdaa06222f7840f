//! Plimsoll: a discrete-event simulator for fair sharing of compute clusters.
//!
//! It replays a workload (a trace or a generator) on a cluster under several allocation policies, and reports each user's allocation,
//! fairness and utilisation as Parquet tables, figures and a report. Data flows one way: `workload -> engine -> record -> metrics ->
//! output`; the engine calls the policy. Imports follow this direction.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod cli;
pub mod output;
pub mod page;
pub mod published;

pub use plimsoll_base::{column, document, error, names, pinned, rows, settings, tree, units};
pub use plimsoll_sim::{backend, books, cluster, engine, record, workload};
pub use {
    plimsoll_control as control, plimsoll_court as court, plimsoll_experiment as experiment, plimsoll_fair as fair,
    plimsoll_gym as gym, plimsoll_metrics as metrics, plimsoll_properties as properties,
    plimsoll_queue_import as queues, plimsoll_rounds as rounds, plimsoll_trace_import as trace_import,
};

/// Allocation policies: their interface, the registry, and the catalogue of the built-in ones.
pub mod policy {
    pub use plimsoll_policies::*;
    pub use plimsoll_schedulers::BUILT_IN;
}
