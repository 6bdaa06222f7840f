//! The parts of a run beyond the kernel. Each extension has its own state and file.
//!
//! The engine calls the extensions at fixed points in a fixed order, so that a run with several extensions is reproducible. Between the
//! calls the kernel records changes in its change log, only for the extensions that read them. A run without extensions skips the calls.

mod backups;
mod extension;
mod faults;
mod hoard;
mod locality;
mod machine_events;
mod remote;
mod request;
mod requests;
mod slowdown;
mod victim_rules;

pub use faults::{Draws, Faults};
pub use machine_events::OnFailure;
pub use requests::{Preempt, PreemptFor};
pub use slowdown::Slowdown;
pub use victim_rules::PreemptFrom;

use extension::Extension;
use faults::FaultsSoFar;
use hoard::Hoards;
use locality::Falling;
use machine_events::EventsSoFar;
use remote::Remote;
use requests::Requests;
use slowdown::Hosts;

use super::kernel::checkpoint::no_checkpoints;
use super::kernel::{ChangeKinds, GangPlan, Kernel, Party, Reader, SetSlot};
use super::options::Options;
use super::outcome::Outcome;
use super::round::GangPlacement;
use crate::backend::Control;
use crate::cluster::{Cluster, Placement};
use crate::policy::{Needs, PreemptsFor};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Time};

/// The extensions of a run.
pub struct Extensions<'a> {
    /// Whether there is any extension besides the control.
    any: bool,
    events: Option<EventsSoFar>,
    faults: Option<FaultsSoFar>,
    falling: Option<Falling>,
    hoards: Option<Hoards>,
    slowdown: Option<Hosts>,
    requests: Option<Requests>,
    /// The batches of a control that executes the decisions.
    pub remote: Option<Remote<'a>>,
}

impl<'a> Extensions<'a> {
    /// Creates the extensions that options, policy and control require. Returns them, and the kinds of changes that each reader of the
    /// change log subscribes to.
    pub fn new(
        options: &Options,
        needs: &Needs,
        cluster: &Cluster,
        control: Option<Party<'a, dyn Control + 'a>>,
    ) -> (Extensions<'a>, Vec<ChangeKinds>) {
        let placed = options.placement != Placement::Pooled;
        let asked = options.preempt.is_some() || needs.preempts_for == PreemptsFor::ForOthers;
        let mut kinds = Vec::new();
        let mut reader = |read: ChangeKinds| {
            kinds.push(read);
            Reader(kinds.len() - 1)
        };
        let faults = options.faults.map(|faults| FaultsSoFar::new(faults, &mut reader));
        let falling =
            options.fall_back.filter(|_| placed).map(|delay| Falling::new(reader(ChangeKinds::QUEUES), delay));
        let hoards = options.hoard.filter(|_| placed).map(|patience| Hoards::new(reader(ChangeKinds::FREED), patience));
        let slowdown = options.slowdown.filter(|_| placed);
        let slowdown =
            slowdown.and_then(|curve| Hosts::new(reader(ChangeKinds::STARTED | ChangeKinds::ENDED), curve, cluster));
        let remote = control.map(|control| Remote::new(control, reader(ChangeKinds::BACKEND | ChangeKinds::AGAIN)));
        let events = (placed && !cluster.events.events.is_empty()).then(|| EventsSoFar::new(options.on_failure));
        let requests = asked.then(|| Requests::new(options.preempt, needs.one_line, options.on_blocked));
        let mut extensions =
            Extensions { any: events.is_some(), events, faults, falling, hoards, slowdown, requests, remote };
        let any = extensions.each().next().is_some();
        extensions.any |= any;
        (extensions, kinds)
    }

    /// Adds the counts of all extensions to the outcome of the run.
    pub fn count(&mut self, outcome: &mut Outcome) {
        self.each().for_each(|extension| extension.count(outcome));
    }

    /// Returns all extensions except machine events and the control, in the order of their calls.
    fn each(&mut self) -> impl Iterator<Item = &mut dyn Extension> {
        let Extensions { any: _, events: _, remote: _, faults, falling, hoards, slowdown, requests } = self;
        let list: [Option<&mut dyn Extension>; 5] = [
            faults.as_mut().map(|it| it as &mut dyn Extension),
            falling.as_mut().map(|it| it as &mut dyn Extension),
            hoards.as_mut().map(|it| it as &mut dyn Extension),
            slowdown.as_mut().map(|it| it as &mut dyn Extension),
            requests.as_mut().map(|it| it as &mut dyn Extension),
        ];
        list.into_iter().flatten()
    }

    /// Returns the open requests of a set: the number of asked tasks, their machine, and the amounts that are missing there. `None` if no
    /// task is asked. A set may have requests on several machines; the first one is returned.
    pub fn asked_for(&self, kernel: &Kernel, slot: SetSlot) -> Option<(u64, MachineId, Resources)> {
        self.requests.as_ref()?.asked_for(kernel, slot)
    }

    /// Returns the number of tasks of a gang that have reserved room.
    pub fn gathered(&self, slot: SetSlot, kernel: &Kernel) -> u32 {
        self.hoards.as_ref().map_or(0, |hoards| hoards.gathered(slot, kernel))
    }

    /// Returns whether an extension exists that reserves room: a round is run for it even without waiting tasks.
    pub fn holds_room(&self) -> bool {
        self.requests.is_some() || self.hoards.is_some()
    }

    /// Returns the next instant at which an extension must act, apart from machine events.
    pub fn next(&mut self) -> Option<Time> {
        if !self.any {
            return None;
        }
        self.each().filter_map(|extension| extension.next()).min()
    }

    /// Returns whether a backup must start at this instant, because the other instance of a task was stopped.
    pub fn is_due(&self, kernel: &Kernel) -> bool {
        self.faults.as_ref().and_then(Extension::next).is_some_and(|at| at <= kernel.now())
    }

    /// Returns the instant of the next machine event.
    pub fn next_event(&self, cluster: &Cluster) -> Option<Time> {
        self.events.as_ref()?.next(cluster)
    }

    /// Calls [`Extension::due`] of each extension.
    pub fn due(&mut self, kernel: &mut Kernel) -> Result<()> {
        if !self.any {
            return Ok(());
        }
        self.each().try_for_each(|extension| extension.due(kernel))
    }

    /// Calls [`Extension::withdrawn`] of each extension.
    pub fn withdrawn(&mut self, kernel: &mut Kernel, machine: MachineId) {
        self.each().for_each(|extension| extension.withdrawn(kernel, machine));
    }

    /// Reports the changes to a control, and executes its orders. Errors: the control's, and those of an end that tables cannot hold.
    pub fn carry(&mut self, kernel: &mut Kernel) -> Result<()> {
        let Some(mut remote) = self.remote.take() else { return Ok(()) };
        let carried = remote.carry(kernel, &mut |kernel, machine| self.withdrawn(kernel, machine));
        self.remote = Some(remote);
        carried
    }

    /// Applies the machine events of this instant. Errors: the recorder's.
    pub fn machine_events(&mut self, kernel: &mut Kernel) -> Result<()> {
        let Some(mut events) = self.events.take() else { return Ok(()) };
        let applied = events.apply(kernel, &mut |kernel, machine| self.withdrawn(kernel, machine));
        self.events = Some(events);
        applied
    }

    /// Moves sets that have waited long enough a level up.
    pub fn fall_back(&mut self, kernel: &mut Kernel) {
        if let Some(falling) = self.falling.as_mut().filter(|_| !kernel.queues().are_whole()) {
            falling.fall_back(kernel);
        }
    }

    /// Slows down the tasks on over-committed machines that run before the first round. Errors: an end that tables cannot hold.
    pub fn begun(&mut self, kernel: &mut Kernel) -> Result<()> {
        self.slowdown.as_mut().map_or(Ok(false), |slowdown| slowdown.after_round(kernel)).map(drop)
    }

    /// Calls [`Extension::stop`] of each extension; returns whether any task was stopped.
    pub fn stop(&mut self, kernel: &mut Kernel) -> Result<bool> {
        if !self.any {
            return Ok(false);
        }
        self.each().try_fold(false, |any, extension| Ok(extension.stop(kernel)? || any))
    }

    /// Calls [`Extension::before_round`] of each extension.
    pub fn before_round(&mut self, kernel: &mut Kernel) -> Result<()> {
        if !self.any {
            return Ok(());
        }
        self.each().try_for_each(|extension| extension.before_round(kernel))
    }

    /// Calls [`Extension::after_round`] of each extension; returns whether another round must follow at once.
    pub fn after_round(&mut self, kernel: &mut Kernel) -> Result<bool> {
        if !self.any {
            return Ok(false);
        }
        self.each().try_fold(false, |any, extension| Ok(extension.after_round(kernel)? || any))
    }
}

impl GangPlacement for Extensions<'_> {
    fn reserves(&self) -> bool {
        self.hoards.is_some()
    }

    fn place_gang(&mut self, kernel: &mut Kernel, slot: SetSlot, plan: &mut GangPlan) -> Option<MachineId> {
        self.hoards.as_mut()?.reserve(kernel, slot, plan)
    }
}

impl Checkpoint for Extensions<'_> {
    /// Errors: [`Error::Mismatch`](plimsoll_base::error::Error::Mismatch) for a run with a control.
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Extensions { any: _, events, faults, falling, hoards, slowdown, requests, remote } = self;
        if remote.is_some() {
            return Err(no_checkpoints("a run under a control plane"));
        }
        visitor.option(events.as_mut())?;
        visitor.option(faults.as_mut())?;
        visitor.option(falling.as_mut())?;
        visitor.option(hoards.as_mut())?;
        visitor.option(slowdown.as_mut())?;
        visitor.option(requests.as_mut())
    }
}
