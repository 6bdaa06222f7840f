//! The parts of a run beyond the core: each extension has its own state and file, and is called at fixed points in a fixed order.

use super::asks::Asks;
use super::core::Core;
use super::faults::FaultsSoFar;
use super::hoard::Hoards;
use super::locality::Falling;
use super::machine_events::EventsSoFar;
use super::remote::Remote;
use super::slowdown::Hosts;
use crate::cluster::{Cluster, Placement};
use crate::policy::{Needs, PreemptsFor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time};

/// The points at which the engine calls an extension. Every method defaults to nothing.
///
/// Events between the calls are in the core's [`Notes`](super::change_log::Notes), in order.
pub(super) trait Extension {
    /// When it next has to act without any other event.
    fn next(&self) -> Option<Time> {
        None
    }

    /// Tasks at their end times end, unless an extension decides otherwise.
    fn due(&mut self, _core: &mut Core) -> Result<()> {
        Ok(())
    }

    /// A machine takes nothing new from now on.
    fn withdrawn(&mut self, _core: &mut Core, _machine: MachineId) {}

    /// The policy has prepared a round: stops tasks at their deadlines. Returns whether any were stopped, so that the policy is called
    /// again.
    fn stop(&mut self, _core: &mut Core) -> Result<bool> {
        Ok(false)
    }

    /// Queues are about to be served in rank order.
    fn before_round(&mut self, _core: &mut Core) -> Result<()> {
        Ok(())
    }

    /// They have been, and their tasks have started; whether another round is to follow at once.
    fn after_round(&mut self, _core: &mut Core) -> Result<bool> {
        Ok(false)
    }
}

/// The extensions of a run.
pub(super) struct Extensions {
    /// There is another than falling back, which has nothing to do where all tasks may start anywhere.
    any: bool,
    pub(super) events: Option<EventsSoFar>,
    faults: Option<FaultsSoFar>,
    falling: Option<Falling>,
    pub hoards: Option<Hoards>,
    slowdown: Option<Hosts>,
    asks: Option<Asks>,
    /// Decisions that a control carries out.
    pub remote: Option<Remote>,
}

impl Extensions {
    /// The extensions required by options and policy; the core records changes for them.
    pub fn new(core: &Core, needs: &Needs) -> Extensions {
        let (options, cluster) = (&core.options, &*core.site.cluster);
        let placed = options.placement != Placement::Pooled;
        let asked = options.preempt.is_some() || needs.displaces == PreemptsFor::ForOthers;
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

    /// All but the events of machines, in the order of their calls.
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

    /// Whether some tasks have reserved room: a round is run for them even without waiting queues.
    pub fn holds_room(&self) -> bool {
        self.asks.is_some() || self.hoards.is_some()
    }

    /// Whether no extension has anything to do, as in most runs.
    fn idle(&self, core: &Core) -> bool {
        !self.any && core.work.queues.are_whole()
    }

    /// When the next of them has something to do, but for the events of machines.
    pub fn next(&mut self, core: &Core) -> Option<Time> {
        if self.idle(core) {
            return None;
        }
        self.each().filter_map(|extension| extension.next()).min()
    }

    /// Returns whether a backup must start: of a task whose other instance was stopped at this instant.
    pub fn is_due(&self, core: &Core) -> bool {
        self.faults.as_ref().and_then(Extension::next).is_some_and(|at| at <= core.now)
    }

    /// When the next event of a machine happens.
    pub fn next_event(&self, cluster: &Cluster) -> Option<Time> {
        self.events.as_ref()?.next(cluster)
    }

    /// See [`Extension::due`].
    pub fn due(&mut self, core: &mut Core) -> Result<()> {
        if self.idle(core) {
            return Ok(());
        }
        self.each().try_for_each(|extension| extension.due(core))
    }

    /// See [`Extension::withdrawn`].
    pub fn withdrawn(&mut self, core: &mut Core, machine: MachineId) {
        self.each().for_each(|extension| extension.withdrawn(core, machine));
    }

    /// Reports the changes to a control, and carries out its orders. Errors: the control's, and those of an end that tables cannot hold.
    pub fn carry(&mut self, core: &mut Core) -> Result<()> {
        let Some(mut remote) = self.remote.take() else { return Ok(()) };
        let carried = remote.carry(core, &mut |core, machine| self.withdrawn(core, machine));
        self.remote = Some(remote);
        carried
    }

    /// Moves sets that have waited long enough a level up.
    pub fn fall_back(&mut self, core: &mut Core) {
        if let Some(falling) = self.falling.as_mut().filter(|_| !core.work.queues.are_whole()) {
            falling.fall_back(core);
        }
    }

    /// Tasks run before the first round: those on over-committed machines are slowed down from the start. Errors: an end that
    /// tables cannot hold.
    pub fn begun(&mut self, core: &mut Core) -> Result<()> {
        self.slowdown.as_mut().map_or(Ok(false), |slowdown| slowdown.after_round(core)).map(drop)
    }

    /// See [`Extension::stop`]: whether any task was stopped.
    pub fn stop(&mut self, core: &mut Core) -> Result<bool> {
        if self.idle(core) {
            return Ok(false);
        }
        self.each().try_fold(false, |any, extension| Ok(extension.stop(core)? || any))
    }

    /// See [`Extension::before_round`].
    pub fn before_round(&mut self, core: &mut Core) -> Result<()> {
        if self.idle(core) {
            return Ok(());
        }
        self.each().try_for_each(|extension| extension.before_round(core))
    }

    /// See [`Extension::after_round`]: whether another round is to follow at once.
    pub fn after_round(&mut self, core: &mut Core) -> Result<bool> {
        if self.idle(core) {
            return Ok(false);
        }
        self.each().try_fold(false, |any, extension| Ok(extension.after_round(core)? || any))
    }
}
