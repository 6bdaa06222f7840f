//! Figures of Plimsoll's results: the built-in figures of a results folder ([`gallery`]), the figures that a plan requests ([`requests`]),
//! and figures of static allocations and of the control plane.
//!
//! Figures of results are drawn from the tables alone, so a folder can be drawn again without its runs. Every file of a figure states its
//! provenance ([`stamp`]).

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod gallery;
pub mod picture;
pub mod requests;
pub mod sequence;
pub mod shares;
pub mod stamp;
pub mod tables;
pub mod timeline;
