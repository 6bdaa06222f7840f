//! Plimsoll: a discrete-event simulator for the fair sharing of clusters.
//!
//! It replays a workload (a trace or a generator) on a cluster under several allocation policies, and reports each
//! user's allocation, fairness and utilisation as Parquet tables, figures and a report. Data flows one way:
//! `workload -> engine -> (asks) policy -> record -> metrics -> output`, and imports follow it.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod books;
pub mod cli;
pub mod cluster;
pub mod control;
pub mod engine;
pub mod error;
pub mod experiment;
pub mod fluid;
pub mod metrics;
pub mod output;
pub mod pinned;
pub mod policy;
pub mod properties;
pub mod record;
pub mod rows;
pub mod units;
pub mod workload;
