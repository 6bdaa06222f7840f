//! The report of Plimsoll's results: an HTML page without external resources, for one results folder ([`page`]) or for the cells of a
//! sweep ([`overview`]).
//!
//! The crate also has the parts that the report shares with the terminal: the columns of a summary ([`headline`]), and sentences about
//! over-committed clusters ([`over_commit`]) and unfinished work ([`left_over`]).

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod explore;
mod group_sheet;
pub mod headline;
pub mod html;
pub mod left_over;
mod marks;
pub mod over_commit;
pub mod overview;
pub mod page;
