//! The parts of a run beyond the core. Each extension has its own state and file.
//!
//! The engine calls the extensions at fixed points in a fixed order, so that a run with several extensions is reproducible. Between the
//! calls the core records changes in its change log, only for the extensions that read them. A run without extensions skips the calls.

pub(in crate::engine) mod backups;
pub(in crate::engine) mod faults;
pub(in crate::engine) mod gather;
pub(in crate::engine) mod hoard;
pub(in crate::engine) mod locality;
pub(in crate::engine) mod machine_events;
pub(in crate::engine) mod order;
pub(in crate::engine) mod remote;
pub(in crate::engine) mod request;
pub(in crate::engine) mod requests;
pub(in crate::engine) mod share;
pub(in crate::engine) mod slowdown;
pub(in crate::engine) mod urgent;

use self::requests::Asks;
use crate::engine::kernel::Kernel;
use self::faults::FaultsSoFar;
use self::hoard::Hoards;
use self::locality::Falling;
use self::machine_events::EventsSoFar;
use self::remote::Remote;
use self::slowdown::Hosts;
use crate::cluster::{Cluster, Placement};
use crate::policy::{Needs, PreemptsFor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

/// The points at which the engine calls an extension. By default every method does nothing.
///
/// Changes between the calls are in the core's [`ChangeLog`](crate::engine::kernel::change_log::ChangeLog), in order.
pub(in crate::engine) trait Extension {
    /// Returns the next instant at which the extension must act without any other event.
    fn next(&self) -> Option<Time> {
        None
    }

    /// Ends the tasks at their end times that the core leaves to an extension, as it does with faults.
    fn due(&mut self, _core: &mut Kernel) -> Result<()> {
        Ok(())
    }

    /// Reacts to a machine without new starts from now on.
    fn withdrawn(&mut self, _core: &mut Kernel, _machine: MachineId) {}

    /// Stops tasks at their deadlines, after the policy has prepared a round. Returns whether any were stopped, so that the policy is
    /// called again.
    fn stop(&mut self, _core: &mut Kernel) -> Result<bool> {
        Ok(false)
    }

    /// Prepares a round: the queues are about to be served in rank order.
    fn before_round(&mut self, _core: &mut Kernel) -> Result<()> {
        Ok(())
    }

    /// Completes a round after the start of its launched tasks. Returns whether another round must follow at once.
    fn after_round(&mut self, _core: &mut Kernel) -> Result<bool> {
        Ok(false)
    }
}

/// The extensions of a run.
pub(in crate::engine) struct Extensions {
    /// Whether there is any extension besides falling back, which has no effect where all tasks may start on every machine.
    any: bool,
    pub(in crate::engine) events: Option<EventsSoFar>,
    faults: Option<FaultsSoFar>,
    falling: Option<Falling>,
    pub hoards: Option<Hoards>,
    slowdown: Option<Hosts>,
    asks: Option<Asks>,
    /// The batches of a control that executes the decisions.
    pub remote: Option<Remote>,
}

impl Extensions {
    /// Creates the extensions that options and policy require; the core records changes for them.
    pub fn new(core: &Kernel, needs: &Needs) -> Extensions {
        let (options, cluster) = (&core.options, &*core.site.cluster);
        let placed = options.placement != Placement::Pooled;
        let asked = options.preempt.is_some() || needs.preempts_for == PreemptsFor::ForOthers;
        let mut extensions = Extensions {
            any: false,
            events: (placed && !cluster.events.events.is_empty()).then(EventsSoFar::default),
            faults: options.faults.map(FaultsSoFar::new),
            falling: options.fall_back.filter(|_| placed).map(Falling::new),
            hoards: options.hoard.filter(|_| placed).map(Hoards::new),
            slowdown: options.slowdown.filter(|_| placed).and_then(|curve| Hosts::new(curve, cluster)),
            asks: asked.then(|| Asks::new(options.preempt, needs.one_line)),
            remote: core.outside.control.is_some().then(Remote::default),
        };
        let Extensions { any: _, falling: _, remote: _, events, faults, hoards, slowdown, asks } = &extensions;
        extensions.any =
            events.is_some() || faults.is_some() || hoards.is_some() || slowdown.is_some() || asks.is_some();
        extensions
    }

    /// Returns all extensions except machine events and the control, in the order of their calls.
    fn each(&mut self) -> impl Iterator<Item = &mut dyn Extension> {
        let Extensions { any: _, events: _, remote: _, faults, falling, hoards, slowdown, asks } = self;
        let list: [Option<&mut dyn Extension>; 5] = [
            faults.as_mut().map(|it| it as &mut dyn Extension),
            falling.as_mut().map(|it| it as &mut dyn Extension),
            hoards.as_mut().map(|it| it as &mut dyn Extension),
            slowdown.as_mut().map(|it| it as &mut dyn Extension),
            asks.as_mut().map(|it| it as &mut dyn Extension),
        ];
        list.into_iter().flatten()
    }

    /// Returns whether tasks may have reserved room: a round is run for them even without waiting tasks.
    pub fn holds_room(&self) -> bool {
        self.asks.is_some() || self.hoards.is_some()
    }

    /// Returns whether no extension can have any effect, as in most runs.
    fn idle(&self, core: &Kernel) -> bool {
        !self.any && core.work.queues.are_whole()
    }

    /// Returns the next instant at which an extension must act, apart from machine events.
    pub fn next(&mut self, core: &Kernel) -> Option<Time> {
        if self.idle(core) {
            return None;
        }
        self.each().filter_map(|extension| extension.next()).min()
    }

    /// Returns whether a backup must start at this instant: a task's other instance was stopped.
    pub fn is_due(&self, core: &Kernel) -> bool {
        self.faults.as_ref().and_then(Extension::next).is_some_and(|at| at <= core.now)
    }

    /// Returns the instant of the next machine event.
    pub fn next_event(&self, cluster: &Cluster) -> Option<Time> {
        self.events.as_ref()?.next(cluster)
    }

    /// Calls [`Extension::due`] of each extension.
    pub fn due(&mut self, core: &mut Kernel) -> Result<()> {
        if self.idle(core) {
            return Ok(());
        }
        self.each().try_for_each(|extension| extension.due(core))
    }

    /// Calls [`Extension::withdrawn`] of each extension.
    pub fn withdrawn(&mut self, core: &mut Kernel, machine: MachineId) {
        self.each().for_each(|extension| extension.withdrawn(core, machine));
    }

    /// Reports the changes to a control, and executes its orders. Errors: the control's, and those of an end that tables cannot hold.
    pub fn carry(&mut self, core: &mut Kernel) -> Result<()> {
        let Some(mut remote) = self.remote.take() else { return Ok(()) };
        let carried = remote.carry(core, &mut |core, machine| self.withdrawn(core, machine));
        self.remote = Some(remote);
        carried
    }

    /// Moves sets that have waited long enough a level up.
    pub fn fall_back(&mut self, core: &mut Kernel) {
        if let Some(falling) = self.falling.as_mut().filter(|_| !core.work.queues.are_whole()) {
            falling.fall_back(core);
        }
    }

    /// Slows down the tasks on over-committed machines that run before the first round. Errors: an end that tables cannot hold.
    pub fn begun(&mut self, core: &mut Kernel) -> Result<()> {
        self.slowdown.as_mut().map_or(Ok(false), |slowdown| slowdown.after_round(core)).map(drop)
    }

    /// Calls [`Extension::stop`] of each extension; returns whether any task was stopped.
    pub fn stop(&mut self, core: &mut Kernel) -> Result<bool> {
        if self.idle(core) {
            return Ok(false);
        }
        self.each().try_fold(false, |any, extension| Ok(extension.stop(core)? || any))
    }

    /// Calls [`Extension::before_round`] of each extension.
    pub fn before_round(&mut self, core: &mut Kernel) -> Result<()> {
        if self.idle(core) {
            return Ok(());
        }
        self.each().try_for_each(|extension| extension.before_round(core))
    }

    /// Calls [`Extension::after_round`] of each extension; returns whether another round must follow at once.
    pub fn after_round(&mut self, core: &mut Kernel) -> Result<bool> {
        if self.idle(core) {
            return Ok(false);
        }
        self.each().try_fold(false, |any, extension| Ok(extension.after_round(core)? || any))
    }
}
