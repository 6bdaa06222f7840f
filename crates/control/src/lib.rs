//! The Fuxi control plane: FuxiMaster, application masters and Tubos, which keep online services alive while any of
//! them fails.
//!
//! Each role is a state with a pure transition function, `step(state, input) -> (state, outputs)`, that knows neither
//! clock nor network: [`master::Master`], [`app::AppMaster`] and [`tubo::Tubo`]. States are plain values that can be
//! compared, hashed and ordered, so the same functions run in the event loop of [`world`] and in a model checker.
//!
//! [`world::World`] joins them with the engine: it is a [`plimsoll_sim::backend::Control`], so that a run under it is scheduled by
//! the policies, quotas and placement rules of any other run.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod app;
pub mod chaos;
pub mod counts;
pub mod master;
pub mod message;
pub mod rules;
pub mod scenario;
pub mod setup;
pub mod stage;
pub mod study;
pub mod trial;
pub mod tubo;
pub mod world;
