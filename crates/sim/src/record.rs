//! Facts that the engine reports to recorders.
//!
//! A [`Recorder`] receives the facts of a run in the order of their occurrence: submissions, launches, decisions, ended tasks and jobs, and
//! between two instants the state ([`State`]). Metrics and tables are derived from these facts alone; a recorder cannot influence a run,
//! except that it may end it with an error.

use crate::books::{Books, Partition};
use crate::cluster::{DevicePart, Machines, Shortage};
use crate::policy::{Cause, Groups, Rank, Reason};
use crate::workload::{JobName, JobNames, TaskSet};
use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MachineId, Span, Time, UserId};

/// The state of a run between two instants.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The allocation, the use and the pending demand of each user.
    pub books: &'a Books,
    /// The amounts that each machine has free, through the policy's lens; `None` when pooled.
    pub machines: Option<&'a Machines>,
    /// The head of each queue and the machines that it may start on.
    pub waiting: &'a dyn Waiting,
    /// The groups of users, if the policy has groups.
    pub groups: Option<&'a dyn Groups>,
}

/// The next task of each queue, and the machines that it may start on. A user has one queue for each combination of label expression and
/// location that its waiting tasks require.
pub trait Waiting {
    /// Calls `visit` for each queue of a user with waiting tasks. The arguments are the scope of the queue (queues with the same scope may
    /// use the same machines) and the need of its next task, through the policy's lens.
    fn heads<'a>(&'a self, user: UserId, visit: &mut dyn FnMut(u32, &'a [u64]));

    /// Returns whether tasks of a scope may start on a machine with its current labels.
    fn may_use(&self, scope: u32, machine: MachineId) -> bool;
}

impl std::fmt::Debug for dyn Waiting + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

/// The name of a job, rendered on demand.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a JobName,
    /// The names that it refers to.
    pub names: &'a JobNames,
}

impl Named<'_> {
    /// Appends the name as in the trace.
    pub fn render(&self, into: &mut String) {
        self.names.render(self.name, into);
    }
}

/// A job that has ended, or that was unfinished at the end of the run.
#[derive(Clone, Debug)]
pub struct JobRecord<'a> {
    /// Dense id in order of first appearance.
    pub job: JobId,
    /// Its name in the trace.
    pub name: Named<'a>,
    /// The user that submitted it.
    pub user: UserId,
    /// Number of tasks.
    pub tasks: u64,
    /// When its first row was submitted.
    pub submit: Time,
    /// When its first task was launched; `None` if no task was.
    pub start: Option<Time>,
    /// When its last task ended; `None` if a task has not ended.
    pub finish: Option<Time>,
    /// Task-microseconds of work: the sum of tasks times duration. `None` from 2^63 on.
    pub work: Option<u64>,
    /// Its completion time on an empty cluster without limits: the longest chain of stages.
    pub ideal: Span,
}

/// The fate of running tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// They ended.
    Finished,
    /// They were running when the run ended at its horizon.
    Running,
    /// The policy reclaimed their resources; they wait again, and their work is lost.
    Reclaimed,
    /// A more urgent task needed their room, and they had not ended by the end of their notice; they wait again, and their work is lost.
    Preempted,
    /// Their machine failed; they wait again, and their work is lost.
    MachineFailed,
    /// They were lost with their machine; their job continues without them.
    Lost,
    /// They failed; they wait again, or continue in their other instance, and the work of this one is lost.
    Failed,
    /// They failed, or a task of their gang did, once more than the limit of retries; their job continues without them.
    GivenUp,
    /// Their other instance has ended first; the work of this one is lost.
    Superseded,
    /// The control lost contact with them or lost their state; they wait again, and their work is lost.
    Revoked,
    /// Their application master gave up their unit for another one; they wait again, and their work is lost.
    Moved,
}

impl Fate {
    /// Returns whether they were stopped before their end.
    pub fn is_stopped(self) -> bool {
        !matches!(self, Fate::Finished | Fate::Running)
    }

    /// Returns whether they wait again because of something other than a failure of their own or of their gang.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Fate::Reclaimed | Fate::Preempted | Fate::MachineFailed | Fate::Revoked | Fate::Moved)
    }

    /// Returns whether they wait again or, if they failed, may continue in their other instance.
    pub fn starts_anew(self) -> bool {
        matches!(
            self,
            Fate::Reclaimed | Fate::Preempted | Fate::MachineFailed | Fate::Failed | Fate::Revoked | Fate::Moved
        )
    }
}

/// Equal tasks launched together on one machine.
#[derive(Clone, Debug)]
pub struct TaskRecord<'a> {
    /// The job's name in the trace.
    pub name: Named<'a>,
    /// The user that submitted them.
    pub user: UserId,
    /// The partition of their account, besides the user.
    pub partition: Partition,
    /// Number of the first task within its job, in row order, from 0; the others follow on.
    pub first: u64,
    /// Number of tasks.
    pub count: u32,
    /// Number of earlier attempts: stops before, and other instances that were started.
    pub attempt: u32,
    /// Whether they are the second of two instances.
    pub backup: bool,
    /// Their machine; `None` when pooled.
    pub machine: Option<MachineId>,
    /// The devices that each uses; if devices have identities, there is one task.
    pub devices: &'a [DevicePart],
    /// When their row was submitted.
    pub submit: Time,
    /// When they began to wait: the earliest possible start, or the time of their last stop.
    pub release: Time,
    /// When they were launched.
    pub start: Time,
    /// When they ended or were stopped; `None` while they run.
    pub finish: Option<Time>,
    /// Their fate.
    pub fate: Fate,
    /// The duration of each task without interruption; with checkpoints the remaining duration, without the time to resume.
    pub duration: Span,
    /// The part of their running time that does not count, and the part that later attempts need not repeat.
    pub salvage: Salvage,
    /// The true demand of each task.
    pub demand: &'a [u64],
}

impl TaskRecord<'_> {
    /// Returns the lost part of each task's running time: the time to resume and, if it was stopped, the time after its last checkpoint.
    pub fn lost(&self, ran: Span) -> Span {
        let Salvage { delay, kept, forfeited, .. } = self.salvage;
        if !self.fate.is_stopped() {
            return delay;
        }
        Span((ran.0 - kept.0).saturating_add(forfeited.0))
    }
}

/// The accounting of a task's running time with checkpoints and a delay after every stop; all zero without these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salvage {
    /// The time that it took to resume.
    pub delay: Span,
    /// The time from then to its last checkpoint, if it was stopped and waits again.
    pub kept: Span,
    /// The resulting reduction of the next attempt's duration, at full speed.
    pub saved: Span,
    /// The time that earlier attempts ran up to their last checkpoints, if no other attempt follows.
    pub forfeited: Span,
}

/// The distance between the location where a task starts and the location where it would run best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// At that location.
    There,
    /// In the same rack.
    Rack,
    /// In the same room.
    Room,
    /// In another room, or outside all rooms.
    Elsewhere,
}

/// Equal tasks of one user, launched at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The user that they belong to.
    pub user: UserId,
    /// Number of tasks.
    pub count: u32,
    /// Whether they start together with all others of their row.
    pub gang: bool,
    /// The distance from the location where they would run best; `None` if they run equally well everywhere.
    pub reach: Option<Locality>,
    /// The time from their release, or from their last stop, to their launch.
    pub wait: Span,
    /// The true demand of each task.
    pub demand: &'a [u64],
}

/// The outcome of the decision on a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One of its tasks was launched, on this machine (`None` when pooled).
    Launched(Option<MachineId>),
    /// Its next task fits nowhere. Reported once; the user waits until room is freed. [`Machines::shortage`] computes the shortage relative
    /// to the whole need of the task; `None` for a gang with room for one task but not for all.
    Blocked(Option<Shortage>),
    /// The policy did not admit it in this round.
    NotAdmitted(Reason),
    /// The round ended before it was tried. Recorded once, after the rounds in which it joined its queue.
    Waits(Untried),
    /// Running tasks of it were preempted by the policy, for this cause; `task` is that of the set that would start next.
    Displaced(Cause),
}

/// The reason why a waiting task set was not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untried {
    /// Another set of the same user comes first.
    BehindOwn,
    /// The round ended at a task that did not fit.
    RoundEnded,
}

/// One decision of a round: the user and the outcome.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    /// The time of the decision.
    pub now: Time,
    /// The user with the lowest rank among those not decided yet.
    pub user: UserId,
    /// Its rank before the decision.
    pub rank: Rank,
    /// The job of its next task.
    pub name: Named<'a>,
    /// The number of its next task within the job.
    pub task: u64,
    /// Its outcome.
    pub turn: Turn,
    /// The job that it waits behind, if it was not tried.
    pub behind: Option<Named<'a>>,
}

/// The reason why a task set still waits when the run ends, or can never start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Stuck {
    /// It fits no machine (pooled: not the whole pool) even when empty.
    TooLarge,
    /// It waits for a stage that never ends.
    Deadlocked,
    /// It waited in a queue and no event was left.
    Starved,
    /// It waited when the run was cut at its horizon.
    Cut,
}

/// A task set with tasks that wait when the run ends: they never started, or were stopped and have not started again.
#[derive(Clone, Debug)]
pub struct StuckRecord<'a> {
    /// The job's name in the trace.
    pub name: Named<'a>,
    /// The user that submitted it.
    pub user: UserId,
    /// Its row in the trace.
    pub row: u64,
    /// Number of its waiting tasks.
    pub tasks: u64,
    /// Number of the first of them within its job.
    pub first: u64,
    /// Number of earlier launches.
    pub attempt: u32,
    /// When its row was submitted.
    pub submit: Time,
    /// When they began to wait: the earliest possible start, or the time of their last stop. `None` if they could never start.
    pub release: Option<Time>,
    /// The duration of each task.
    pub duration: Span,
    /// The need of each task.
    pub demand: &'a [u64],
    /// The reason.
    pub why: Stuck,
}

impl StuckRecord<'_> {
    /// Returns whether its tasks were launched before, and were stopped or failed.
    pub fn was_launched(&self) -> bool {
        self.attempt > 0
    }
}

/// Receives the events of a run, in order. By default, every method does nothing.
pub trait Recorder: Send {
    /// Records a new user; user ids are consecutive.
    fn user(&mut self, _user: UserId, _name: &str) {}

    /// Records a submitted row. Rows of an unfinished job are reported early.
    fn submitted(&mut self, _row: &TaskSet, _stage: Option<&str>, _first_of_job: bool) {}

    /// Integrates the state, which was constant from `from` to `to` (later). Called before anything changes at `to`.
    fn interval(&mut self, _from: Time, _to: Time, _state: &State) -> Result<()> {
        Ok(())
    }

    /// Records a launch of equal tasks.
    fn launched(&mut self, _launch: &Launch) {}

    /// Records a decision on a user; the books are those before it.
    fn decided(&mut self, _decision: &Decision, _books: &Books) -> Result<()> {
        Ok(())
    }

    /// Returns whether [`Recorder::decided`] is to be called.
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Returns whether it reads [`Books::wanted`].
    fn wants_waiting_demand(&self) -> bool {
        false
    }

    /// Records tasks that have ended, were stopped, or were running when the run ended.
    fn tasks(&mut self, _tasks: &TaskRecord) -> Result<()> {
        Ok(())
    }

    /// Records a job that has ended, or was unfinished when the run ended.
    fn job(&mut self, _job: &JobRecord) -> Result<()> {
        Ok(())
    }

    /// Records a task set with tasks that wait when the run ends.
    fn stuck(&mut self, _stuck: &StuckRecord) -> Result<()> {
        Ok(())
    }

    /// Records the end of the instant `now`; the users in `changed` have another allocation or pending demand than before it.
    fn settled(&mut self, _now: Time, _changed: &[UserId], _books: &Books) -> Result<()> {
        Ok(())
    }

    /// Records that the next task of a user may have changed although its allocation and pending demand have not.
    fn head(&mut self, _user: UserId) {}

    /// Prefetches the state of a user; a fact on it follows soon.
    fn fetch(&self, _user: UserId) {}

    /// Reports progress, or ends the run with an error such as [`Error::Interrupted`](plimsoll_base::error::Error::Interrupted). Called
    /// every few thousand instants.
    fn heartbeat(&mut self, _now: Time) -> Result<()> {
        Ok(())
    }
}
