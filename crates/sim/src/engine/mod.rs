//! The event loop. One run uses one thread and is reproducible bit for bit.
//!
//! At every instant, tasks that have reached their end times end, rows arrive, and rows released by an ended stage join the queues behind
//! the arrivals. A round of launches follows. A task of zero duration ends in a further pass of the same instant, after that instant's
//! round. Arrivals are streamed and never enter the agenda, so memory grows with the active tasks only.
//!
//! The engine has three layers. The *kernel* owns the state of a run and changes it by verbs. The *round* decides which tasks are
//! launched. *Extensions* add behaviour at fixed points of the loop, such as faults and preemption requests. The round and the extensions
//! read the kernel and call its verbs. The kernel calls neither, except for the trait `Attempts`, which returns the duration of an attempt. The
//! rules that rank users are in the policies, and the messages to workers are in a control; neither is part of the engine.

mod blocked;
mod check;
mod extensions;
mod kernel;
mod options;
mod outcome;
mod round;
pub mod settings;

pub use blocked::{BlockReason, BlockedTasks, MachineScope, MissingRoom, REASONS, RankedBefore, ReasonRow};
pub use check::{check, check_control};
pub use extensions::{Draws, Faults, OnFailure, Preempt, PreemptFor, PreemptFrom, Slowdown};
pub use kernel::agenda::{Agenda, EventKey, Ticket};
pub use kernel::budget::{PreemptionLimits, StopLimit};
pub use kernel::line::{Line, LineKey, Offers};
pub use kernel::pace::Distance;
pub use kernel::{Attempt, Attempts, QueueId, RunContext, StoppedTasks, Ties, WatchedJob, WatchedJobs};
pub use options::Options;
pub use outcome::Outcome;
pub use round::{NextSet, OnBlocked};

use std::sync::Arc;

use crate::books::{Books, Weights};
use crate::cluster::{Cluster, Placement};
use crate::policy::{Explain, Needs, Policy, PreemptsFor};
use crate::record::Recorder;
use crate::workload::Source;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Time, UserId};
use plimsoll_base::visit_values;

use extensions::Extensions;
use kernel::{ChangeKinds, Kernel, Settings, Victims};
use round::Rounds;

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

/// As [`run`], with a run context that may include a control. Errors: as [`run`], and the control's.
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

/// A run that a caller steps from instant to instant; [`run`] performs all steps.
pub struct Engine<'a> {
    kernel: Kernel<'a>,
    round: Rounds,
    extensions: Extensions<'a>,
    options: Options,
    /// The number of instants so far.
    instants: u64,
    /// The next instant at which the policy requires a round even without an event.
    wake: Option<Time>,
    /// Whether that round can differ from the last one only by its ranks ([`Needs::wakes_for_ranks`]).
    wakes_for_ranks: bool,
    /// Whether the horizon ended the run while events were left.
    cut: bool,
}

/// The number of instants between two heartbeats.
const HEARTBEAT: u64 = 4096;

impl<'a> Engine<'a> {
    /// Creates a run before its first instant. Errors: as [`check`] and, with a control, as [`check_control`].
    pub fn new(
        context: RunContext<'a>,
        cluster: impl Into<Arc<Cluster>>,
        weights: Weights,
        options: &Options,
    ) -> Result<Engine<'a>> {
        let (needs, cluster) = (context.policy().needs(), cluster.into());
        check(context.policy(), &cluster, options)?;
        let (context, control) = context.without_control();
        if control.is_some() {
            check_control(&cluster, options)?;
        }
        let (mut extensions, readers) = Extensions::new(options, &needs, &cluster, control);
        let settings = settings(options, &needs, &cluster, readers, extensions.remote.is_some())?;
        let kernel = Kernel::new(context, &needs, cluster, weights, settings);
        if let Some(remote) = &mut extensions.remote {
            remote.control.open(kernel.offers());
        }
        let round = Rounds::new(&needs, options.on_blocked);
        Ok(Engine {
            kernel,
            round,
            extensions,
            options: options.clone(),
            instants: 0,
            wake: None,
            wakes_for_ranks: needs.wakes_for_ranks && !options.job_order.as_ref().is_some_and(|order| order.drifts()),
            cut: false,
        })
    }

    /// Starts tasks before the first step, so that a run can begin from a given state. Takes the next row of the source, which must be the
    /// only one of its job and submitted at 0, and starts all its tasks with these counts per machine, whatever the policy would decide.
    /// `since` is the earliest instant at which the tasks could have started. It only orders tasks by age, and may be any instant.
    ///
    /// Errors: those of the row, and [`Error::Mismatch`] if there is no such row, or if a machine is not in the scope of the row or has no
    /// room for its tasks.
    pub fn begin(&mut self, parts: &[(MachineId, u32)], since: Time) -> Result<()> {
        self.check_unstarted()?;
        self.kernel.begin(parts, since)?;
        self.extensions.begun(&mut self.kernel)
    }

    /// Enqueues the tasks of the next row before the first step; unlike the tasks of [`Engine::begin`], they wait. Returns `false` if they
    /// can never start because they are larger than any machine. Errors: those of the row, and [`Error::Mismatch`] if there is no such
    /// row.
    pub fn enter(&mut self, since: Time) -> Result<bool> {
        self.check_unstarted()?;
        Ok(self.kernel.enter(since)?.is_some())
    }

    /// Runs a round before the first step, without an event, even if no task waits. The policy then receives the state and may reclaim.
    /// Errors: as [`run`].
    pub fn run_idle_round(&mut self) -> Result<()> {
        self.run_rounds()
    }

    /// Returns the task set that a user would start next, or `None` if the user has no waiting tasks; for use between two steps. The
    /// result is the first set with room among the heads of the user's queues, or the first head if none has room. Panics: for a user
    /// without an account (a programmer error).
    pub fn next(&mut self, user: UserId) -> Option<NextSet> {
        self.round.with(&mut self.kernel, &mut self.extensions).next_of(user)
    }

    /// Starts as many tasks of the user's next set as have room, at the present instant and whatever the policy decides; for use between
    /// two steps. As in a round that serves the user, tasks start one by one, and a gang as a whole. Returns the number of started tasks.
    /// Errors: as [`run`], and [`Error::Mismatch`] under a control.
    pub fn start(&mut self, user: UserId) -> Result<u32> {
        let started = self.round.with(&mut self.kernel, &mut self.extensions).start_next(user)?;
        while self.extensions.after_round(&mut self.kernel)? {
            self.run_round()?;
        }
        if self.options.audit {
            self.kernel.audit();
        }
        Ok(started)
    }

    /// Returns the present instant.
    pub fn now(&self) -> Time {
        self.kernel.now()
    }

    /// Advances to the next instant with an event, and runs its rounds. Returns the instant, or `None` when the run is over. Errors: as
    /// [`run`].
    pub fn step(&mut self) -> Result<Option<Time>> {
        let stops = self.extensions.remote.as_ref().is_some_and(|remote| remote.control.stops());
        let Some(next) = self.next_instant()?.filter(|_| !self.cut && !stops) else { return Ok(None) };
        if let Some(until) = self.options.until.filter(|until| next > *until) {
            self.cut = true;
            self.kernel.advance(until)?;
            return Ok(None);
        }
        self.kernel.advance(next)?;
        self.instant()?;
        self.wake = self.kernel.settle()?;
        self.instants += 1;
        if self.instants.is_multiple_of(HEARTBEAT) {
            self.kernel.heartbeat()?;
        }
        Ok(Some(next))
    }

    /// Returns the books: allocation and pending demand of each user.
    pub fn books(&self) -> &Books {
        self.kernel.books()
    }

    /// Returns the explanation of the policy's decisions, if it has one. Its methods take [`Engine::books`].
    pub fn explain(&self) -> Option<&dyn Explain> {
        self.kernel.policy().explain()
    }

    /// Returns whether the run has checkpoints: all of its parts do, and it has no control.
    pub fn has_checkpoints(&mut self) -> bool {
        self.extensions.remote.is_none() && self.kernel.has_checkpoints()
    }

    /// Ends the run at the present instant and reports unfinished tasks to the recorder. Errors: the recorder's.
    pub fn finish(mut self) -> Result<Outcome> {
        let cut = self.cut || self.next_instant()?.is_some();
        if let Some(remote) = &mut self.extensions.remote {
            remote.close(&mut self.kernel)?;
        }
        self.kernel.close(cut)?;
        let (end, instants) = (self.kernel.now(), self.instants);
        let mut outcome = Outcome { end, instants, ..self.kernel.outcome() };
        self.extensions.count(&mut outcome);
        Ok(outcome)
    }

    fn next_instant(&mut self) -> Result<Option<Time>> {
        let waiting = self.kernel.books().total_waiting() > 0;
        let wake = self.wake.filter(|wake| *wake > self.kernel.now() && waiting && self.decides());
        let sooner = |next: Time, other: Option<Time>| next.min(other.unwrap_or(Time::NEVER));
        let (arrival, end) = (self.kernel.next_arrival()?, self.kernel.next_end());
        let next = [arrival, end].into_iter().fold(Time::NEVER, sooner);
        let next = if self.decides() {
            [self.extensions.next(), self.kernel.budget().next()].into_iter().fold(next, sooner)
        } else {
            next
        };
        // Events of a control count only while other events are left, tasks wait, or messages are on their way.
        let horizon = self.options.until.is_some();
        let remote = self
            .extensions
            .remote
            .as_mut()
            .filter(|remote| next < Time::NEVER || waiting || remote.is_busy(horizon) || remote.control.persists());
        let next = sooner(next, remote.and_then(|remote| remote.control.next()));
        // Machine events count only while other events are left or tasks wait.
        let event = self.extensions.next_event(self.kernel.cluster()).filter(|_| next < Time::NEVER || waiting);
        let next = sooner(next, event);
        // Without any other event the cluster stays free. The last round has tried all queues, or ended at a task that never fits: then other
        // ranks could start a task, but the run ends (docs/memory.md).
        let next = sooner(next, wake.filter(|_| next < Time::NEVER || !self.wakes_for_ranks));
        Ok((next < Time::NEVER).then(|| next.max(self.kernel.now())))
    }

    /// Processes all events of this instant, in passes, until no event is left.
    fn instant(&mut self) -> Result<()> {
        let one_by_one = self.options.on_blocked.is_final();
        loop {
            // One by one, arrivals come before ends.
            if !one_by_one || self.kernel.next_arrival()? != Some(self.kernel.now()) {
                self.kernel.finish_due()?;
            }
            self.extensions.carry(&mut self.kernel)?;
            self.extensions.due(&mut self.kernel)?;
            self.extensions.machine_events(&mut self.kernel)?;
            self.kernel.arrive()?;
            self.extensions.carry(&mut self.kernel)?;
            self.kernel.enqueue_released();
            self.extensions.carry(&mut self.kernel)?;
            self.extensions.fall_back(&mut self.kernel);
            if self.decides() {
                self.run_rounds()?;
            }
            if self.options.audit {
                self.kernel.audit();
            }
            self.kernel.count_running();
            if self.kernel.next_end() == Some(self.kernel.now()) || self.extensions.is_due(&self.kernel) {
                continue;
            }
            if one_by_one && self.kernel.next_arrival()? == Some(self.kernel.now()) {
                continue;
            }
            let remote = self.extensions.remote.as_mut();
            if remote.and_then(|remote| remote.control.next()).is_none_or(|next| next > self.kernel.now()) {
                return Ok(());
            }
        }
    }

    /// Returns whether rounds may run: always without a control, otherwise while the scheduler of the control is up and not busy.
    fn decides(&self) -> bool {
        self.extensions.remote.as_ref().is_none_or(|remote| remote.control.decides())
    }

    /// Runs scheduling rounds until no extension requires another one at this instant.
    fn run_rounds(&mut self) -> Result<()> {
        loop {
            self.run_round()?;
            self.extensions.carry(&mut self.kernel)?;
            if !self.extensions.after_round(&mut self.kernel)? {
                // Under backfilling every waiting set is tried, so no set is recorded as untried.
                if self.options.on_blocked.backfills() {
                    self.kernel.forget_joined();
                    return Ok(());
                }
                return self.kernel.record_untried(self.options.on_blocked == OnBlocked::Stop);
            }
        }
    }

    /// Runs one scheduling round.
    fn run_round(&mut self) -> Result<()> {
        let kernel = &mut self.kernel;
        kernel.begin_round();
        while {
            kernel.prepare()?;
            kernel.reclaim()? || self.extensions.stop(kernel)?
        } {}
        // Shortcut: after most ends no task waits.
        if kernel.books().total_waiting() == 0 && !self.extensions.holds_room() {
            kernel.end_round();
            return Ok(());
        }
        kernel.reorder();
        self.extensions.before_round(kernel)?;
        self.round.with(kernel, &mut self.extensions).serve()
    }

    /// Checks that no step was taken yet. Errors: [`Error::Mismatch`].
    fn check_unstarted(&self) -> Result<()> {
        if self.instants == 0 {
            return Ok(());
        }
        let problem = "tasks that are there from the beginning come before the first step".to_owned();
        Err(Error::Mismatch { problem })
    }
}

impl Checkpoint for Engine<'_> {
    /// Visits the state between two steps, with the states of the policy and the recorder, and of the source if it [reacts]. Only a run
    /// before its first step is restored, with the same workload, policy, cluster and options. Errors: [`Error::Mismatch`] for a run with a
    /// control or watched jobs, and for a policy, recorder or source without checkpoints; the errors of the source.
    ///
    /// [reacts]: Source::reacts
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Engine { kernel, round, extensions, options: _, instants, wake, wakes_for_ranks: _, cut } = self;
        visit_values!(visitor; instants, wake, cut);
        kernel.visit(visitor)?;
        round.visit(visitor)?;
        extensions.visit(visitor)
    }
}

/// Returns the options of a run that the kernel uses. Errors: the job order uses an unknown resource.
fn settings(
    options: &Options,
    needs: &Needs,
    cluster: &Cluster,
    readers: Vec<ChangeKinds>,
    delegates: bool,
) -> Result<Settings> {
    let placed = options.placement != Placement::Pooled;
    let eventful = placed && !cluster.events.events.is_empty();
    let victims = match (options.preempt, needs.preempts_for) {
        (Some(_), _) | (_, PreemptsFor::ForOthers) => Some(Victims::of_all()),
        (None, PreemptsFor::Reclaims) => Some(Victims::default()),
        (None, PreemptsFor::Never) => (eventful || options.faults.is_some()).then(Victims::default),
    };
    let order = match &options.job_order {
        Some(order) => order.in_cluster(&cluster.dims, &cluster.total())?.or_else(|| Some(Arc::clone(order))),
        None => None,
    };
    Ok(Settings {
        placement: options.placement,
        ties: options.ties,
        order,
        distance: options.distance,
        limits: options.preemption_limits,
        seed: options.seed,
        widens: options.fall_back.is_some(),
        estimates_for: options.on_blocked.backfills().then(|| options.on_blocked.name()),
        victims,
        attempts: options.faults.map(|faults| Box::new(Draws::new(faults, options.seed)) as Box<dyn Attempts>),
        delegates,
        one_by_one: options.on_blocked.is_final(),
        readers,
        watched: cluster.memory().filter(|_| options.slowdown.is_some() && placed),
    })
}
