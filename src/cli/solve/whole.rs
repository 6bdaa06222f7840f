//! The options for whole tasks.

use std::sync::Arc;

use clap::ValueEnum;

use crate::error::{Error, Result};
use crate::fair::{Instance, Mechanism, OnBlocked, Onto, Order, Ties};
use crate::policy::Registry;

/// Whole tasks instead of divisible ones.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Args {
    /// Serve whole tasks one by one in the policy's order; ceei and bmf serve the user furthest below its target
    #[arg(long)]
    whole_tasks: bool,
    /// The rule when the next user's task does not fit [default: skip]
    #[arg(long, value_enum, requires = "whole_tasks", value_name = "RULE")]
    on_blocked: Option<Blocked>,
    /// Order among equal users [default: lowest-id]
    #[arg(long, value_enum, requires = "whole_tasks", value_name = "RULE")]
    ties: Option<Tie>,
    /// Compare what users would hold with one task more (SequentialMinMax under drf)
    #[arg(long, requires = "whole_tasks")]
    post: bool,
    /// Fill one machine after the other, as in the DRF paper's theorem 7
    #[arg(long, requires = "whole_tasks")]
    each_machine: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Blocked {
    /// The next user in order is tried
    Skip,
    /// That is the end, as in the DRF paper's Algorithm 1
    Stop,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Tie {
    /// The user that the instance names first
    LowestId,
    /// The user that the instance names last: gives the order of the DRF paper's Table 1
    HighestId,
}

impl Args {
    /// Whether whole tasks are asked for.
    pub fn given(&self) -> bool {
        self.whole_tasks
    }

    /// The mechanism of this name for the instance. Errors: an unknown policy, or `--post` for one without shares.
    pub fn mechanism(&self, registry: &Registry, name: &str, instance: &Instance) -> Result<Arc<dyn Mechanism>> {
        if !self.whole_tasks {
            return registry.mechanism(name, instance.resources());
        }
        let on_blocked = match self.on_blocked {
            Some(Blocked::Stop) => OnBlocked::Stop,
            Some(Blocked::Skip) | None => OnBlocked::Skip,
        };
        let ties = match self.ties {
            Some(Tie::HighestId) => Ties::HighestId,
            Some(Tie::LowestId) | None => Ties::LowestId,
        };
        let mut whole = registry.whole_mechanism(name, instance.resources(), on_blocked, ties)?;
        if self.post {
            whole.order = match whole.order {
                Order::Before(norm) => Order::After(norm),
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
            whole.onto = Onto::EachMachine;
        }
        Ok(Arc::new(whole))
    }
}
