//! The points at which the engine calls an extension.

use crate::engine::kernel::Kernel;
use crate::engine::outcome::Outcome;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

/// The points at which the engine calls an extension. By default every method does nothing.
///
/// | hook | when | how often at an instant |
/// |---|---|---|
/// | `due` | before arrivals | in each pass: a task of zero duration causes a further pass |
/// | `withdrawn` | when a machine event or a control withdraws a machine | once per machine |
/// | `stop` | after the policy's `prepare` | in each round, and again while tasks were stopped |
/// | `before_round` | before the queues are served | in each round with waiting tasks, or if [`Extensions::holds_room`] |
/// | `after_round` | after the launched tasks have begun | after each round, also if no task waited |
///
/// While a control does not decide, there are no rounds. Changes between the calls are in the change log ([`Kernel::next_change`]), in
/// order. Further calls of single extensions are in [`Extensions`]: falling back, backups that are due, gangs, and the first slowdown.
///
/// [`Extensions`]: super::Extensions
/// [`Extensions::holds_room`]: super::Extensions::holds_room
pub trait Extension {
    /// Returns the next instant at which the extension must act without any other event. At that instant all hooks are called as usual.
    fn next(&self) -> Option<Time> {
        None
    }

    /// Ends the tasks at their end times that the kernel leaves to an extension, as it does with faults.
    fn due(&mut self, _kernel: &mut Kernel) -> Result<()> {
        Ok(())
    }

    /// Reacts to a machine without new starts from now on.
    fn withdrawn(&mut self, _kernel: &mut Kernel, _machine: MachineId) {}

    /// Stops tasks at their deadlines, after the policy has prepared a round. Returns whether any were stopped, so that the policy is
    /// called again.
    fn stop(&mut self, _kernel: &mut Kernel) -> Result<bool> {
        Ok(false)
    }

    /// Prepares a round: the queues are about to be served in rank order.
    fn before_round(&mut self, _kernel: &mut Kernel) -> Result<()> {
        Ok(())
    }

    /// Completes a round after the start of its launched tasks. Returns whether another round must follow at once.
    fn after_round(&mut self, _kernel: &mut Kernel) -> Result<bool> {
        Ok(false)
    }

    /// Adds the counts of the extension to the outcome of the run.
    fn count(&self, _outcome: &mut Outcome) {}
}
