//! The Fuxi control plane: FuxiMaster, application masters and Tubos, which keep online services alive while any of them fails.
//!
//! Each process is a state with a pure transition function, `step(state, input) -> (state, outputs)`, without clock or network:
//! [`master::Master`], [`app::AppMaster`] and [`tubo::Tubo`]. States are plain values that can be compared and hashed, so the same
//! functions run in the event loop of [`world`] and in a model checker.
//!
//! [`world::World`] connects them with the engine. It implements [`plimsoll_sim::backend::Control`], so a run under the control plane is
//! scheduled by the same policies, quotas and placement rules as any other run.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod app;
pub mod chaos;
pub mod counts;
pub mod master;
pub mod message;
pub mod rules;
pub mod scenario;
pub mod settings;
pub mod setup;
pub mod stage;
pub mod study;
pub mod trial;
pub mod tubo;
pub mod world;
