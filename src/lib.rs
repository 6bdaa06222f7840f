//! Plimsoll: a discrete-event simulator for the fair sharing of clusters.
//!
//! A workload (a trace or a generator), a cluster and some allocation policies go in; who got what, how fair it was
//! and how well the machines were used come out, as Parquet tables, figures and a report. Data flows one way:
//! `workload -> engine -> (asks) policy -> record -> metrics -> output`, and imports follow it.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod cluster;
pub mod error;
pub mod output;
pub mod units;
pub mod workload;
