//! The options for whole tasks.

use std::sync::Arc;

use super::super::named;
use crate::error::{Error, Result};
use crate::fair::{FillingRoom, Instance, Mechanism, OnBlocked, ServingKey, Ties};
use crate::policy::Registry;

/// Whole tasks instead of divisible ones.
#[derive(clap::Args, Clone, Debug, Default, serde::Deserialize)]
#[group(skip)]
pub struct Args {
    /// Serve whole tasks one by one in the policy's order; ceei and bmf serve the user furthest below its target
    #[arg(long)]
    whole_tasks: bool,
    /// The rule when the next user's task does not fit [default: skip]
    #[arg(long, value_parser = named(OnBlocked::ALL), value_name = "RULE")]
    on_blocked: Option<OnBlocked>,
    /// Order among equal users [default: least-recently-served]
    #[arg(long, value_parser = named(Ties::ALL), value_name = "RULE")]
    ties: Option<Ties>,
    /// Compare the allocations that users would have with one more task (SequentialMinMax under drf)
    #[arg(long)]
    post: bool,
    /// Fill one machine after the other, as in the DRF paper's theorem 7
    #[arg(long)]
    each_machine: bool,
}

impl Args {
    /// Returns whether whole tasks are requested.
    pub fn given(&self) -> bool {
        self.whole_tasks
    }

    /// Returns the mechanism of this name for the instance. Errors: an unknown policy, or `--post` for a policy without shares.
    pub fn mechanism(&self, registry: &Registry, name: &str, instance: &Instance) -> Result<Arc<dyn Mechanism>> {
        if !self.whole_tasks {
            return registry.mechanism(name, instance.resources());
        }
        if instance.machines().len() > 1 && registry.mechanism(name, instance.resources()).is_ok_and(|of| of.places()) {
            let expected = "a policy that serves one pool: this one allocates on machines, without whole tasks";
            return Err(Error::plan("policy", format!("'{name}' with --whole-tasks"), expected));
        }
        let (on_blocked, ties) = (self.on_blocked.unwrap_or_default(), self.ties.unwrap_or_default());
        let mut whole = registry.whole_mechanism(name, instance.resources(), on_blocked, ties)?;
        if self.post {
            whole.order = match whole.order {
                ServingKey::Before(norm) => ServingKey::After(norm),
                _ => {
                    return Err(Error::plan(
                        "policy",
                        format!("'{name}'"),
                        "with --post, a policy that compares shares",
                    ));
                }
            };
        }
        if self.each_machine {
            whole.onto = FillingRoom::EachMachine;
        }
        Ok(Arc::new(whole))
    }
}
