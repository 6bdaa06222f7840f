//! The event loop. One run uses one thread and is reproducible bit for bit.
//!
//! At every instant, tasks at their end times end, rows arrive, rows released by an ended stage join the queues behind the arrivals, and
//! one round of launches follows. A task of zero duration ends in a further pass of the same instant, after that instant's round. Arrivals
//! are streamed and never enter the agenda, so memory grows with the active tasks only.
//!
//! The engine consists of a core (tasks, machines, queues and rounds) and of extensions, each in its own file, which the engine calls at
//! fixed points in a fixed order. Rules for ranking users are in the policies, and message exchange with workers is in a control; neither
//! is part of the engine.

mod agenda;
mod arrive;
mod asks;
mod backfill;
mod backups;
mod by_machine;
mod change_log;
mod core;
mod devices;
mod end;
mod extension;
mod faults;
mod gang;
mod gather;
mod hoard;
mod interval;
mod job_order;
mod jobs;
mod launch;
mod line;
mod livelock;
mod locality;
mod machine_events;
mod offers;
mod options;
mod order;
mod pace;
mod partitions;
mod preemption_limits;
mod queues;
mod remote;
mod request;
mod round;
mod run_context;
mod running;
mod scopes;
mod sets;
mod share;
mod site;
mod slowdown;
mod start;
mod stop;
mod ties;
mod untried;
mod urgent;
mod victims;
mod view;
mod waits;

pub use agenda::{Agenda, EventKey, Ticket};
pub use faults::{Attempt, Draws, Faults};
pub use line::{Line, LineKey};
pub use offers::Offers;
pub use options::{OnBlocked, OnFailure, Options, Outcome, Preempt, PreemptFor, Ties};
pub use pace::Distance;
pub use preemption_limits::{PreemptionLimits, StopLimit};
pub use queues::QueueId;
pub use run_context::RunContext;
pub use slowdown::Slowdown;
pub use start::NextSet;
pub use urgent::PreemptFrom;

use std::sync::Arc;

use crate::books::{Books, Weights};
use crate::cluster::{Cluster, Placement};
use crate::policy::{Explain, Policy, PreemptsFor};
use crate::record::Recorder;
use crate::workload::Source;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Time, UserId};

use self::core::Core;
use extension::Extensions;
use partitions::Partitions;

/// Runs a workload under a policy until no event is left, the horizon is reached or the control stops it.
///
/// Errors: the source's, the policy's, the recorder's, and [`Error::Mismatch`] for rows that are invalid on this cluster.
pub fn run(
    source: &mut dyn Source,
    policy: &mut dyn Policy,
    cluster: impl Into<Arc<Cluster>>,
    weights: Weights,
    options: &Options,
    recorder: &mut dyn Recorder,
) -> Result<Outcome> {
    run_with(RunContext::lent(source, policy, recorder), cluster, weights, options)
}

/// Runs like [`run`], with a complete run context, which may include a control. Errors: as [`run`], and the control's.
pub fn run_with(
    context: RunContext<'_>,
    cluster: impl Into<Arc<Cluster>>,
    weights: Weights,
    options: &Options,
) -> Result<Outcome> {
    let mut engine = Engine::new(context, cluster, weights, options)?;
    while engine.step()?.is_some() {}
    engine.finish()
}

/// Checks whether a policy can run on a cluster with these options; [`run`] calls this first. Errors: [`Error::Mismatch`] for options that
/// cannot be combined, and for labels of the policy that no machine carries.
pub fn check(policy: &dyn Policy, cluster: &Cluster, options: &Options) -> Result<()> {
    let needs = &policy.needs();
    let wrong = |problem: &str| Err(Error::Mismatch { problem: problem.to_owned() });
    if options.slowdown.is_some() && cluster.memory().is_none() {
        return wrong("machines slow down by the memory that tasks use, and there is none in the workload");
    }
    let devices = cluster.hardware.is_some() && options.placement != Placement::Pooled;
    let reserves = options.preempt.is_some() || options.hoard.is_some() || needs.preempts_for == PreemptsFor::ForOthers;
    if devices && reserves {
        return wrong("room cannot be reserved (preempt, hoard) where devices have identities");
    }
    if devices && !needs.lens.is_plain() {
        return wrong("a policy of slots knows no devices; compare it without 'devices'");
    }
    if needs.by_machine && options.on_blocked != OnBlocked::Skip {
        return wrong("a policy that ranks users by machine has no first in line; expected on_blocked = 'skip'");
    }
    if needs.by_machine && options.hoard.is_some() {
        return wrong("gangs hold no room (hoard) under a policy that ranks users by machine; leave 'hoard' out");
    }
    if needs.after_launches && options.on_blocked.backfills() {
        return wrong(
            "this policy ranks again after every launch, and backfilling does not; expected on_blocked = 'skip' or 'stop'",
        );
    }
    let share = options.preempt.is_some_and(|preempt| preempt.whom == PreemptFor::Share);
    if share && policy.shares().is_none() {
        return wrong(
            "tasks are stopped for fair shares (preempt_for = 'share'), and this policy's ranks are no shares; expected drf, \
             asset, maxmin, only, pnorm or slot, or preempt_for = 'urgent'",
        );
    }
    if options.preemption_limits.costs() && options.slowdown.is_some() {
        return wrong(
            "what a stopped task has done is not known on machines that slow down; leave out slowdown, or checkpoint and \
             restart_delay",
        );
    }
    if options.preemption_limits.costs() && options.faults.is_some_and(|faults| faults.backup.is_some()) {
        return wrong(
            "a backup instance would begin at no checkpoint; leave out 'backup' in faults, or checkpoint and restart_delay",
        );
    }
    let by_order = options.preempt.is_some_and(|preempt| preempt.whom == PreemptFor::Order);
    if by_order && options.job_order.is_none() {
        return wrong(
            "tasks are stopped for those that come first in the order (preempt_for = 'order'), and the order is the usual one; \
             expected a policy with an order, such as line/srpt or drf/las, or preempt_for = 'urgent'",
        );
    }
    if let (Some(order), Some(_), false) = (&options.job_order, options.preempt, share || by_order) {
        // Otherwise a preempted task could be the next of its user again, before the more urgent task that made the request.
        let problem = "urgent tasks ask for room by priority (preempt), and inside users the order is another";
        return wrong(&format!("{problem} ('{}'); leave one of them out", order.name()));
    }
    if options.faults.is_some_and(|faults| faults.backup.is_some()) && options.on_failure == OnFailure::Lose {
        return wrong(
            "a task with a backup is not lost with one machine; leave out 'backup' in faults or on_failure = 'lose'",
        );
    }
    if options.placement == Placement::Pooled && !cluster.speeds.is_empty() {
        return wrong("a pooled cluster has no individual machines, and these have speeds; expected another placement");
    }
    if options.on_blocked.backfills() {
        backfill::check(needs, options)?;
    }
    Partitions::check(&needs.labels, cluster, options.placement)
}

/// Checks whether a control can execute the decisions of such a run. Errors: [`Error::Mismatch`].
pub fn check_control(cluster: &Cluster, options: &Options) -> Result<()> {
    let why = if options.slowdown.is_some() {
        "machines slow down (slowdown)"
    } else if options.faults.is_some() {
        "tasks fail of themselves (faults)"
    } else if options.preemption_limits.costs() {
        "tasks resume from checkpoints (checkpoint, restart_delay)"
    } else if options.on_blocked.backfills() {
        "tasks overtake others (on_blocked), by the expected ends of running tasks"
    } else if !cluster.events.events.is_empty() || !cluster.events.absent.is_empty() {
        "machines fail, leave and join by a file of events; the control plane has failures of its own"
    } else {
        return Ok(());
    };
    Err(Error::Mismatch {
        problem: format!("a control plane cannot be combined with a run where {why}; remove one of them"),
    })
}

/// A run that a caller steps from instant to instant; [`run`] performs all steps.
pub struct Engine<'a> {
    core: Core<'a>,
    extensions: Extensions,
    /// The next instant at which the policy requires a round even without an event.
    wake: Option<Time>,
    /// Whether the horizon ended the run while events were left.
    cut: bool,
}

/// The number of instants between two heartbeats.
const HEARTBEAT: u64 = 4096;

impl<'a> Engine<'a> {
    /// Creates a run before its first instant. Errors: as [`check`], and with a control as [`check_control`].
    pub fn new(
        context: RunContext<'a>,
        cluster: impl Into<Arc<Cluster>>,
        weights: Weights,
        options: &Options,
    ) -> Result<Engine<'a>> {
        let (needs, cluster) = (context.policy.needs(), cluster.into());
        check(&*context.policy, &cluster, options)?;
        if context.control.is_some() {
            check_control(&cluster, options)?;
        }
        let mut core = Core::new(context, &needs, cluster, weights, options);
        if let Some(control) = &mut core.outside.control {
            control.open(&core.site.offers);
        }
        let extensions = Extensions::new(&core, &needs);
        Ok(Engine { core, extensions, wake: None, cut: false })
    }

    /// Starts tasks before the first step, so that a run can begin from a given state. Takes the next row of the source, which must be the
    /// only one of its job and submitted at 0, and starts all its tasks with these counts per machine, whatever the policy would decide.
    /// `since` is the earliest instant at which they could have started; it orders tasks by age, and may be any instant.
    ///
    /// Errors: those of the row, and [`Error::Mismatch`] if there is no such row, or if a machine is not in its scope or has no room for
    /// its tasks.
    pub fn begin(&mut self, parts: &[(MachineId, u32)], since: Time) -> Result<()> {
        self.core.begin(parts, since)?;
        self.extensions.begun(&mut self.core)
    }

    /// Enqueues the tasks of the next row before the first step; they wait, unlike those of [`Engine::begin`]. Returns false if they can
    /// never start because they are larger than any machine. Errors: those of the row, and [`Error::Mismatch`] if there is no such row.
    pub fn enter(&mut self, since: Time) -> Result<bool> {
        Ok(self.core.enter(since)?.is_some())
    }

    /// Runs a round before the first step although no task waits and no event occurs, so that the policy sees the state and may reclaim.
    /// Errors: as [`run`].
    pub fn run_idle_round(&mut self) -> Result<()> {
        self.serve()
    }

    /// Returns the task set that a user would start next, or `None` if the user has no waiting tasks; for use between two steps. Among the
    /// sets at the heads of the user's queues it is the first that has room, or the first of all if none has. Panics: for a user without an
    /// account (a programmer error).
    pub fn next(&mut self, user: UserId) -> Option<NextSet> {
        self.core.next_of(user, &mut self.extensions.hoards)
    }

    /// Starts as many tasks of the user's next set as have room, at the present instant and whatever the policy decides; for use between
    /// two steps. Tasks start one by one, or all of a gang, as in a round that serves the user. Returns the number of started tasks.
    /// Errors: as [`run`], and [`Error::Mismatch`] under a control.
    pub fn start(&mut self, user: UserId) -> Result<u32> {
        let started = self.core.start_next(user, &mut self.extensions.hoards)?;
        while self.extensions.after_round(&mut self.core)? {
            self.round()?;
        }
        if self.core.options.audit {
            self.core.audit();
        }
        Ok(started)
    }

    /// Returns the present instant.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// Advances to the next instant with an event, and runs its rounds. Returns the instant, or `None` when the run is over. Errors: as
    /// [`run`].
    pub fn step(&mut self) -> Result<Option<Time>> {
        let stops = self.core.outside.control.as_ref().is_some_and(|control| control.stops());
        let Some(next) = self.next_instant()?.filter(|_| !self.cut && !stops) else { return Ok(None) };
        if let Some(until) = self.core.options.until.filter(|until| next > *until) {
            self.cut = true;
            self.core.advance(until)?;
            return Ok(None);
        }
        self.core.advance(next)?;
        self.instant()?;
        self.wake = self.core.settle()?;
        self.core.outcome.instants += 1;
        if self.core.outcome.instants.is_multiple_of(HEARTBEAT) {
            self.core.outside.recorder.heartbeat(next)?;
        }
        Ok(Some(next))
    }

    /// Returns the books: allocation and pending demand of each user.
    pub fn books(&self) -> &Books {
        &self.core.books
    }

    /// Returns the explanation of the policy's decisions, if it has one; the books for it are [`Engine::books`].
    pub fn explain(&self) -> Option<&dyn Explain> {
        self.core.outside.policy.explain()
    }

    /// Ends the run at the present instant and reports unfinished tasks to the recorder. Errors: the recorder's.
    pub fn finish(mut self) -> Result<Outcome> {
        self.core.outcome.end = self.core.now;
        let cut = self.cut || self.next_instant()?.is_some();
        if let Some(mut remote) = self.extensions.remote.take() {
            remote.close(&mut self.core)?;
        }
        self.core.close(cut)?;
        Ok(self.core.outcome)
    }

    fn next_instant(&mut self) -> Result<Option<Time>> {
        let waiting = self.core.books.total_waiting() > 0;
        let wake = self.wake.filter(|wake| *wake > self.core.now && waiting);
        let sooner = |next: Time, other: Option<Time>| next.min(other.unwrap_or(Time::NEVER));
        let (arrival, end) = (self.core.next_arrival()?, self.core.running.next_time());
        let next = [arrival, end].into_iter().fold(Time::NEVER, sooner);
        let next = if self.decides() {
            [wake, self.extensions.next(&self.core), self.core.preemption_budget.next()].into_iter().fold(next, sooner)
        } else {
            next
        };
        // Events of a control matter only while other events are left, tasks wait, or messages are on their way.
        let horizon = self.core.options.until.is_some();
        let busy = waiting || self.extensions.remote.as_ref().is_some_and(|remote| remote.is_busy(horizon));
        let control =
            self.core.outside.control.as_mut().filter(|control| next < Time::NEVER || busy || control.persists());
        let next = sooner(next, control.and_then(|control| control.next()));
        // Machine events matter only while other events are left or tasks wait.
        let event = self.extensions.next_event(&self.core.site.cluster).filter(|_| next < Time::NEVER || waiting);
        let next = sooner(next, event);
        Ok((next < Time::NEVER).then(|| next.max(self.core.now)))
    }

    /// Processes all events of this instant, in passes, until no event is left.
    fn instant(&mut self) -> Result<()> {
        loop {
            self.core.finish_due()?;
            self.extensions.carry(&mut self.core)?;
            self.extensions.due(&mut self.core)?;
            self.extensions.machine_events(&mut self.core)?;
            self.core.arrive()?;
            self.extensions.carry(&mut self.core)?;
            self.core.enqueue_released();
            self.extensions.carry(&mut self.core)?;
            self.extensions.fall_back(&mut self.core);
            if self.decides() {
                self.serve()?;
            }
            if self.core.options.audit {
                self.core.audit();
            }
            let outcome = &mut self.core.outcome;
            outcome.peak_running = outcome.peak_running.max(self.core.books.total_running());
            if self.core.running.next_time() == Some(self.core.now) || self.extensions.is_due(&self.core) {
                continue;
            }
            let control = self.core.outside.control.as_mut();
            if control.and_then(|control| control.next()).is_none_or(|next| next > self.core.now) {
                return Ok(());
            }
        }
    }

    /// Returns whether rounds may run: without a control always, otherwise while its scheduler is up and has time.
    fn decides(&self) -> bool {
        self.core.outside.control.as_ref().is_none_or(|control| control.decides())
    }

    /// Runs scheduling rounds until no extension requires another one at this instant.
    fn serve(&mut self) -> Result<()> {
        loop {
            self.round()?;
            self.extensions.carry(&mut self.core)?;
            if !self.extensions.after_round(&mut self.core)? {
                return self.core.record_untried();
            }
        }
    }

    /// Runs one scheduling round.
    fn round(&mut self) -> Result<()> {
        let core = &mut self.core;
        core.preemption_budget.begin(core.now);
        while {
            core.prepare()?;
            core.reclaim()? || self.extensions.stop(core)?
        } {}
        // Shortcut: after most ends no task waits.
        if core.books.total_waiting() == 0 && !self.extensions.holds_room() {
            core.round.forget_freed();
            return Ok(());
        }
        core.reorder();
        self.extensions.before_round(core)?;
        core.serve(&mut self.extensions.hoards)
    }
}
