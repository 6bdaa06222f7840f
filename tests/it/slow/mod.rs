//! The slow reference implementation of a run: a simulator that is simple enough to verify by reading it, written from the documentation
//! alone.
//!
//! The state of tasks, machines, requests and reservations is stored, and logs of what happened. Free amounts, allocations, past usage and
//! the next task of each queue are computed again at every step from all tasks. With the library it shares the random draws of faults, the
//! parser of quota files and exact fractions, which other tests check.

mod backfill;
mod by_machine;
mod checks;
mod devices;
mod events;
mod expressions;
mod faults;
mod fragments;
mod groups;
mod hdrf;
mod hoard;
mod karma;
mod literature;
mod memory;
mod order;
mod placement;
mod preemption;
mod queues;
mod rate;
mod ratio;
mod requests;
mod room;
mod round;
mod shares;
mod simulation;
mod stranded;
mod users;
mod world;

pub use devices::WHOLE;
pub use expressions::Written;
pub use faults::Faults;
pub use karma::Credits;
pub use literature::{Factors, Zoo};
pub use memory::Memory;
pub use order::Inside;
pub use preemption::Displacing;
pub use rate::Curve;
pub use ratio::Ratio;
pub use simulation::{Outcome, simulate};
pub use stranded::stranded;
pub use world::{Change, Event, Expression, Location, OnBlocked, Placement, Policy, Row, Site, Ties, Whom, World};
