//! Facts that the engine reports to recorders.
//!
//! Facts only, in the order of their occurrence; metrics and tables are derived from them alone.

use crate::books::{Books, Partition};
use crate::cluster::{DevicePart, Machines, Shortage};
use crate::policy::{Cause, Groups, Rank, Reason};
use crate::workload::{JobName, JobNames, TaskSet};
use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MachineId, Span, Time, UserId};

/// The state of a run between two instants.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The amounts that each user holds, uses and waits for.
    pub books: &'a Books,
    /// The amounts that each machine has free, through the policy's lens; `None` when pooled.
    pub machines: Option<&'a Machines>,
    /// The head of each queue, and where it may start.
    pub waiting: &'a dyn Waiting,
    /// The groups of users that the policy keeps, if it does.
    pub groups: Option<&'a dyn Groups>,
}

/// The next task of each queue, and the machines that it may start on. A user has a queue for each combination of labels and
/// place that its waiting tasks ask for.
pub trait Waiting {
    /// Calls `hear` for each queue of a user with waiting tasks: with its scope (queues of one scope may use the same machines), and the
    /// need of its next task, through the policy's lens.
    fn heads<'a>(&'a self, user: UserId, hear: &mut dyn FnMut(u32, &'a [u64]));

    /// Whether tasks of a scope may start on a machine with the labels that it carries now.
    fn may_use(&self, scope: u32, machine: MachineId) -> bool;
}

impl std::fmt::Debug for dyn Waiting + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

/// A job's name, rendered when it is needed.
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

/// A job that has ended, or that the end of the run cut short.
#[derive(Clone, Debug)]
pub struct JobRecord<'a> {
    /// Dense id in order of first appearance.
    pub job: JobId,
    /// Its name in the trace.
    pub name: Named<'a>,
    /// The user that submitted it.
    pub user: UserId,
    /// How many tasks it has.
    pub tasks: u64,
    /// When its first row was submitted.
    pub submit: Time,
    /// When its first task was launched; `None` if none was.
    pub start: Option<Time>,
    /// When its last task ended; `None` if some task has not.
    pub finish: Option<Time>,
    /// Task-microseconds of work: the sum of tasks times duration. `None` from 2^63 on.
    pub work: Option<u64>,
    /// Its completion time on an empty, boundless cluster: the longest chain of stages.
    pub ideal: Span,
}

/// The fate of running tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// They ended.
    Finished,
    /// They were running when the run was cut.
    Running,
    /// The policy took their resources back; they wait again, and their work is lost.
    Reclaimed,
    /// A more urgent task had asked for their room, and they had not ended in time; they wait again, and their work is lost.
    Preempted,
    /// Their machine failed; they wait again, and their work is lost.
    MachineFailed,
    /// They were lost with their machine; their job continues without them.
    Lost,
    /// They failed; they wait again, or go on in their other instance, and the work of this one is lost.
    Failed,
    /// They failed, or one of their gang did, once more than the limit of retries; their job continues without them.
    GivenUp,
    /// The other instance of them has ended first; the work of this one is lost.
    Superseded,
    /// The control that carries decisions out lost sight of them, or forgot them; they wait again, and their work is lost.
    Revoked,
    /// Their own master gave their unit up for another; they wait again, and their work is lost.
    Moved,
}

impl Fate {
    /// Whether they were stopped before their end.
    pub fn is_stopped(self) -> bool {
        !matches!(self, Fate::Finished | Fate::Running)
    }

    /// Whether they were stopped by something else than a failure of their own or of their gang, and wait again.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Fate::Reclaimed | Fate::Preempted | Fate::MachineFailed | Fate::Revoked | Fate::Moved)
    }

    /// Whether they wait again; or go on in their other instance, if they failed.
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
    /// The partition that they are booked under besides their user.
    pub partition: Partition,
    /// Number of the first within its job, in row order, from 0; the others follow on.
    pub first: u64,
    /// How many.
    pub count: u32,
    /// How often they were stopped before, or another instance of them was begun.
    pub attempt: u32,
    /// Whether they are the second of two instances.
    pub backup: bool,
    /// Where they run; `None` when pooled.
    pub machine: Option<MachineId>,
    /// The devices that each holds, where devices have identities: then there is one task.
    pub devices: &'a [DevicePart],
    /// When their row was submitted.
    pub submit: Time,
    /// From when on they waited: when they could have started at the earliest, or were stopped.
    pub release: Time,
    /// When they were launched.
    pub start: Time,
    /// When they ended or were stopped; `None` while they run.
    pub finish: Option<Time>,
    /// Their fate.
    pub fate: Fate,
    /// The duration of each without interruption: with checkpoints the rest of it, without the time to resume.
    pub duration: Span,
    /// The part of their time that counts for nothing, and the part that later attempts are spared.
    pub salvage: Salvage,
    /// The true need of each.
    pub demand: &'a [u64],
}

impl TaskRecord<'_> {
    /// The lost part of the running time of each of them: the time to resume, and after its last checkpoint if it was stopped.
    pub fn lost(&self, ran: Span) -> Span {
        let Salvage { delay, kept, forfeited, .. } = self.salvage;
        if !self.fate.is_stopped() {
            return delay;
        }
        Span((ran.0 - kept.0).saturating_add(forfeited.0))
    }
}

/// How the time of a running task counts, with checkpoints and a delay after every stop; all zero without these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salvage {
    /// How long it took at first to resume.
    pub delay: Span,
    /// How long it ran from then to its last checkpoint, if it was stopped and waits again.
    pub kept: Span,
    /// How long its next attempt is shorter for that, at full speed.
    pub saved: Span,
    /// How long earlier attempts ran up to their last checkpoints, if there is none to come.
    pub forfeited: Span,
}

/// How near to where it would run best a task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// Right there.
    There,
    /// In the same rack.
    Rack,
    /// In the same room.
    Room,
    /// In another room, or outside all.
    Elsewhere,
}

/// Equal tasks of one user, launched at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The user that they belong to.
    pub user: UserId,
    /// How many.
    pub count: u32,
    /// Whether they start together with all others of their row.
    pub gang: bool,
    /// How near to where they would run best; nothing if they run equally well everywhere.
    pub reach: Option<Locality>,
    /// From their release, or from when they were stopped, to their launch.
    pub wait: Span,
    /// The true need of each.
    pub demand: &'a [u64],
}

/// The outcome of a user's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A task of it was launched.
    Launched(Option<MachineId>),
    /// Its next task fits nowhere. Reported once; the user waits until room is freed. [`Machines::shortage`] computes the shortage relative
    /// to the whole need of the task; `None` for a gang with room for one task but not for all.
    Blocked(Option<Shortage>),
    /// The policy did not admit it this round.
    NotAdmitted(Reason),
    /// The round ended before it was tried. Recorded once, after the rounds in which it joined its queue.
    Waits(Untried),
    /// Running tasks of it were stopped by the policy, for this cause; `task` is that of the set that would start next.
    Displaced(Cause),
}

/// Why a task set that waits was not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untried {
    /// Another set of its own user comes first.
    BehindOwn,
    /// The round ended at a task that did not fit.
    RoundEnded,
}

/// One decision of a round: the user, and the reason.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    /// When.
    pub now: Time,
    /// The user in turn: the first in line among those not decided yet.
    pub user: UserId,
    /// The policy's rank of it before the turn.
    pub rank: Rank,
    /// The job of its next task.
    pub name: Named<'a>,
    /// The number of that task within the job.
    pub task: u64,
    /// Its outcome.
    pub turn: Turn,
    /// The job that it waits behind, if its turn did not come.
    pub behind: Option<Named<'a>>,
}

/// Why a task set still waits when the run ends, or can never start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Stuck {
    /// It fits no machine (pooled: not the whole pool) even when empty.
    TooLarge,
    /// It waits for a stage that never ends.
    Deadlocked,
    /// It waited in line and nothing was left to happen.
    Starved,
    /// It waited when the run was cut at its horizon.
    Cut,
}

/// A task set of which some tasks wait when the run ends: they never started, or were stopped and have not started again.
#[derive(Clone, Debug)]
pub struct StuckRecord<'a> {
    /// The job's name in the trace.
    pub name: Named<'a>,
    /// The user that submitted it.
    pub user: UserId,
    /// Its row in the trace.
    pub row: u64,
    /// How many of its tasks wait.
    pub tasks: u64,
    /// Number of the first of them within its job.
    pub first: u64,
    /// How often they were launched before.
    pub attempt: u32,
    /// When its row was submitted.
    pub submit: Time,
    /// From when on they waited: when they could have started at the earliest, or were stopped. `None` if they never could.
    pub release: Option<Time>,
    /// How long each of them would run.
    pub duration: Span,
    /// The need of each of them.
    pub demand: &'a [u64],
    /// Why.
    pub why: Stuck,
}

impl StuckRecord<'_> {
    /// Returns whether its tasks were launched before, and were stopped or failed.
    pub fn was_launched(&self) -> bool {
        self.attempt > 0
    }
}

/// Receives the events of a run, in order. Every method defaults to nothing.
pub trait Recorder: Send {
    /// A user appears; ids follow one another.
    fn user(&mut self, _user: UserId, _name: &str) {}

    /// A row was submitted, as the first of its job or not. Rows of an unfinished job come early.
    fn submitted(&mut self, _row: &TaskSet, _stage: Option<&str>, _first_of_job: bool) {}

    /// The state has held from `from` to `to` (later): integrate it. Called before anything changes at `to`.
    fn interval(&mut self, _from: Time, _to: Time, _state: &State) -> Result<()> {
        Ok(())
    }

    /// Equal tasks were launched.
    fn launched(&mut self, _launch: &Launch) {}

    /// A decision on a user; the books are those before it.
    fn decided(&mut self, _decision: &Decision, _books: &Books) -> Result<()> {
        Ok(())
    }

    /// Whether [`Recorder::decided`] is called.
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Whether it reads [`Books::wanted`].
    fn wants_waiting_demand(&self) -> bool {
        false
    }

    /// Tasks have ended, or were stopped, or were running when the run was cut.
    fn tasks(&mut self, _tasks: &TaskRecord) -> Result<()> {
        Ok(())
    }

    /// A job has ended, or was cut.
    fn job(&mut self, _job: &JobRecord) -> Result<()> {
        Ok(())
    }

    /// A task set of which some tasks wait when the run ends.
    fn stuck(&mut self, _stuck: &StuckRecord) -> Result<()> {
        Ok(())
    }

    /// The instant `now` is over; the users in `changed` hold or wait for something else than before it.
    fn settled(&mut self, _now: Time, _changed: &[UserId], _books: &Books) -> Result<()> {
        Ok(())
    }

    /// The task that a user would launch next may be another one though it holds and waits for the same as before.
    fn head(&mut self, _user: UserId) {}

    /// A fact on a user follows soon: time to prefetch its state.
    fn fetch(&self, _user: UserId) {}

    /// Called every few thousand instants: report progress, or end the run with an error such as
    /// [`Error::Interrupted`](plimsoll_base::error::Error::Interrupted).
    fn heartbeat(&mut self, _now: Time) -> Result<()> {
        Ok(())
    }
}
