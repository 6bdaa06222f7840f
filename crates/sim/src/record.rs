//! The facts of a run that the engine reports to recorders.
//!
//! A [`Recorder`] receives the facts of a run in the order of their occurrence: submissions, launches, decisions, the ends of tasks and
//! jobs, and the state ([`State`]) between two instants. Metrics and tables are derived from these facts alone; a recorder cannot
//! influence a run, except that it may end it with an error.

use crate::books::{Books, Partition};
use crate::cluster::{DevicePart, Machines, Shortage};
use crate::policy::{Cause, Groups, Rank, Reason};
use crate::workload::{JobName, JobNames, TaskSet};
use plimsoll_base::checkpoint::Checkpoint;
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
    /// Appends the name as it is in the trace.
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
    /// The instant at which its first row was submitted.
    pub submit: Time,
    /// The instant at which its first task was launched; `None` if no task was launched.
    pub start: Option<Time>,
    /// The instant at which its last task ended; `None` if a task has not ended.
    pub finish: Option<Time>,
    /// Its work in task-microseconds: the sum of tasks times duration. `None` for 2^63 and more.
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
    /// They failed; they wait again, or continue in their other instance, and the work of the failed instance is lost.
    Failed,
    /// They, or a task of their gang, failed more often than the limit of retries permits; their job continues without them.
    GivenUp,
    /// Their other instance ended first; the work of this instance is lost.
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

    /// Returns whether they wait again for a reason other than a failure of their own or of their gang.
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
    /// The partition that they are booked under.
    pub partition: Partition,
    /// Number of the first task within its job, in row order, from 0; the others have the following numbers.
    pub first: u64,
    /// Number of tasks.
    pub count: u32,
    /// Number of earlier attempts: earlier stops, plus other instances that were started.
    pub attempt: u32,
    /// Whether they are the second of two instances.
    pub backup: bool,
    /// Their machine; `None` when pooled.
    pub machine: Option<MachineId>,
    /// The devices that each task uses. If devices have identities, the record has one task.
    pub devices: &'a [DevicePart],
    /// The instant at which their row was submitted.
    pub submit: Time,
    /// The instant at which they began to wait: the earliest possible start, or their last stop.
    pub release: Time,
    /// The instant of their launch.
    pub start: Time,
    /// The instant at which they ended or were stopped; `None` if they still run.
    pub finish: Option<Time>,
    /// Their fate.
    pub fate: Fate,
    /// The duration of each task without interruption; with checkpoints the remaining duration, without the time to resume.
    pub duration: Span,
    /// The part of their running time that does not count, and the part that later attempts do not repeat.
    pub salvage: Salvage,
    /// The true demand of each task.
    pub demand: &'a [u64],
}

impl TaskRecord<'_> {
    /// Returns the lost part of each task's running time: the time to resume and, if the task was stopped, the time after its last
    /// checkpoint.
    pub fn lost(&self, ran: Span) -> Span {
        let Salvage { delay, kept, forfeited, .. } = self.salvage;
        if !self.fate.is_stopped() {
            return delay;
        }
        Span((ran.0 - kept.0).saturating_add(forfeited.0))
    }
}

/// The accounting of a task's running time with checkpoints and a delay after every stop; all values are zero without checkpoints and
/// delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salvage {
    /// The time that the task took to resume.
    pub delay: Span,
    /// The time from the end of the delay to the last checkpoint, if the task was stopped and waits again.
    pub kept: Span,
    /// The reduction of the next attempt's duration that results from `kept`, at full speed.
    pub saved: Span,
    /// The time that earlier attempts ran up to their last checkpoints, if no further attempt follows.
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
    /// Its next task fits nowhere. This is reported once; the user waits until room is freed. [`Machines::shortage`] computes the shortage
    /// for the whole need of the task; `None` for a gang with room for one task but not for all.
    Blocked(Option<Shortage>),
    /// The policy did not admit its next task in this round.
    NotAdmitted(Reason),
    /// A set of the user was not tried in the rounds of the instant at which it joined its queue. Recorded once, after these rounds.
    Waits(Untried),
    /// The policy preempted running tasks of the user, for this cause. [`Decision::task`] is then the next task of the user.
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
    /// The user: the one with the lowest rank among the users without a decision in this round.
    pub user: UserId,
    /// Its rank before the decision.
    pub rank: Rank,
    /// The job of its next task.
    pub name: Named<'a>,
    /// The number of its next task within the job.
    pub task: u64,
    /// The outcome.
    pub turn: Turn,
    /// The job that the set waits behind, if it was not tried.
    pub behind: Option<Named<'a>>,
}

/// The reason why a task set still waits when the run ends, or can never start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Stuck {
    /// It fits no machine, even an empty one; on a pooled cluster, it does not fit the empty pool.
    TooLarge,
    /// It waits for a stage that never ends.
    Deadlocked,
    /// It waited in a queue when no event was left.
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
    /// Number of the first waiting task within its job.
    pub first: u64,
    /// Number of earlier launches.
    pub attempt: u32,
    /// The instant at which its row was submitted.
    pub submit: Time,
    /// The instant at which its tasks began to wait: the earliest possible start, or their last stop. `None` if they could never start.
    pub release: Option<Time>,
    /// The duration of each task.
    pub duration: Span,
    /// The need of each task.
    pub demand: &'a [u64],
    /// The reason.
    pub why: Stuck,
}

impl StuckRecord<'_> {
    /// Returns whether its tasks were launched before and then stopped or failed.
    pub fn was_launched(&self) -> bool {
        self.attempt > 0
    }
}

/// Receives the events of a run, in order. By default, every method does nothing.
pub trait Recorder: Send {
    /// Records a new user; user ids are consecutive.
    fn user(&mut self, _user: UserId, _name: &str) {}

    /// Records a submitted row. If a job has rows at several instants, its later rows are reported early.
    fn submitted(&mut self, _row: &TaskSet, _stage: Option<&str>, _first_of_job: bool) {}

    /// Integrates the state, which was constant from `from` to `to` (which is later). Called before any change at `to`.
    fn interval(&mut self, _from: Time, _to: Time, _state: &State) -> Result<()> {
        Ok(())
    }

    /// Records a launch of equal tasks.
    fn launched(&mut self, _launch: &Launch) {}

    /// Records a decision on a user; the books are those before the decision.
    fn decided(&mut self, _decision: &Decision, _books: &Books) -> Result<()> {
        Ok(())
    }

    /// Returns whether the engine must call [`Recorder::decided`].
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Returns whether the recorder reads [`Books::wanted`].
    fn wants_waiting_demand(&self) -> bool {
        false
    }

    /// Records tasks that have ended, were stopped, or were running at the end of the run.
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

    /// Records the end of the instant `now`; the users in `changed` have another allocation or pending demand than before this instant.
    fn settled(&mut self, _now: Time, _changed: &[UserId], _books: &Books) -> Result<()> {
        Ok(())
    }

    /// Records that the next task of a user may have changed although its allocation and pending demand have not.
    fn head(&mut self, _user: UserId) {}

    /// Prefetches the state of a user about which a fact follows soon.
    fn fetch(&self, _user: UserId) {}

    /// Returns its state. Without it a run with this recorder has no checkpoints.
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        None
    }

    /// Reports progress, or ends the run with an error such as [`Error::Interrupted`](plimsoll_base::error::Error::Interrupted). Called
    /// every few thousand instants.
    fn heartbeat(&mut self, _now: Time) -> Result<()> {
        Ok(())
    }
}
