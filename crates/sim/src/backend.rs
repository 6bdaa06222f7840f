//! The interface between the scheduler and a backend that executes its decisions.
//!
//! Without one, a launch starts its tasks at once, and the scheduler knows every event when it occurs. A [`Control`] is in between: the
//! engine reports submissions, decisions and ends ([`Fact`]), and the control reports when requests are known, workers start, and units are
//! free again ([`Order`]). A user's allocation is then the granted and not revoked units.

use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MachineId, Resources, Span, Time};

use crate::record::Fate;

/// Tasks of one row that were granted together on one machine: the row, and the number of their first within the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Batch {
    /// Position of the row in the trace.
    pub row: u64,
    /// Number of the first task within the job; the others follow on.
    pub first: u32,
}

/// A fact that the engine reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The tasks of a row are wanted from now on. They wait in no line before [`Order::List`].
    Submitted {
        /// Position of the row in the trace.
        row: u64,
        /// Its job.
        job: JobId,
        /// How many tasks.
        tasks: u32,
        /// The amounts that each reserves.
        unit: Resources,
        /// They are never stopped by choice.
        stable: bool,
    },
    /// The scheduler has granted room.
    Granted {
        /// To these tasks.
        batch: Batch,
        /// How many.
        count: u32,
        /// Where.
        machine: MachineId,
    },
    /// The scheduler has taken room back by choice; the last tasks of the batch wait again.
    Taken {
        /// From these tasks.
        batch: Batch,
        /// How many.
        count: u32,
        /// Where.
        machine: MachineId,
    },
    /// Workers have done their tasks.
    Done {
        /// These.
        batch: Batch,
        /// Where.
        machine: MachineId,
    },
    /// All tasks of a job are over.
    JobOver {
        /// Which.
        job: JobId,
    },
    /// The answer to [`Order::Home`].
    Home {
        /// The application.
        app: u32,
        /// Where its master is to start.
        machine: MachineId,
    },
}

/// Something that the engine is to do. Panics: an order about tasks that are not in the state that it supposes (a programmer
/// error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOrder {
    /// The request of a row is known: its waiting tasks enter the queue.
    List(u64),
    /// It is known no longer.
    Unlist(u64),
    /// Tasks of a row run on a machine in units that no round has granted: as many as wait, up to a limit. The room of the other units is
    /// reserved without a task.
    Adopt {
        /// The row.
        row: u64,
        /// Where.
        machine: MachineId,
        /// How many units.
        count: u32,
        /// The amounts that each reserves.
        unit: Resources,
    },
    /// Units without tasks are released.
    Vacate {
        /// The row that they were for.
        row: u64,
        /// Where.
        machine: MachineId,
        /// How many.
        count: u32,
    },
    /// Granted tasks begin.
    Start(Batch),
    /// The workers of tasks that have begun are gone; they are to begin again by the same unit.
    Halt(Batch),
    /// Completed tasks are over: their job continues.
    Over(Batch),
    /// The units of tasks that are over are free.
    Free(Batch),
    /// The last tasks of a batch lose their units, and wait again.
    Stop {
        /// The batch.
        batch: Batch,
        /// How many of its tasks.
        count: u32,
        /// Why.
        fate: Fate,
    },
    /// A batch is two from now on.
    Split {
        /// The batch.
        batch: Batch,
        /// How many of its tasks are the first of the two.
        count: u32,
    },
    /// Nothing new starts on a machine.
    Away(MachineId),
    /// It does again.
    Back(MachineId),
    /// No more tasks of a row start on a machine, or they do again. Not on a pooled cluster.
    Bar {
        /// The row.
        row: u64,
        /// The machine.
        machine: MachineId,
        /// None start.
        barred: bool,
    },
    /// A machine is to be chosen for the master of an application: by the placement rule, as for a task that takes no room, but
    /// another than the one where it was if there is any.
    Home {
        /// The application.
        app: u32,
        /// Where its last master was.
        last: Option<MachineId>,
    },
}

/// Carries the decisions of a scheduler out.
pub trait Control: Send {
    /// Receives the capacity of each machine, as the policy sees it, before the run begins.
    fn open(&mut self, machines: &[Resources]);

    /// When it next has to act without any other event.
    fn next(&mut self) -> Option<Time>;

    /// Receives the facts, in order.
    fn receive(&mut self, now: Time, facts: &[Fact]);

    /// Does everything that is due, and says what the engine is to do, in order. Asked again until it has nothing to say.
    /// Errors end the run.
    fn act(&mut self, now: Time, orders: &mut Vec<ControlOrder>) -> Result<()>;

    /// Whether a scheduling round may be held now.
    fn decides(&self) -> bool;

    /// Whether the run continues to its horizon although no work is left.
    fn persists(&self) -> bool {
        false
    }

    /// Whether the run is to end here.
    fn stops(&self) -> bool {
        false
    }
}

/// The cost of carrying the decisions of a run out, and of failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    /// Faults that struck.
    pub faults: u64,
    /// Workers that failed alone.
    pub failed: u64,
    /// How often a machine began to be shunned because workers had failed there.
    pub shunned: u64,
    /// Messages sent, heartbeats that change nothing included.
    pub messages: u64,
    /// Requests that the scheduler's master went through, heartbeats not among them.
    pub requests: u64,
    /// Units that it granted.
    pub granted: u64,
    /// How long it was at work on requests.
    pub busy: Span,
    /// For how long there was no master that decides.
    pub down: Span,
    /// The time from a request's arrival to its answer: the mean, the 99th percentile and the longest, in microseconds; `None` for a master
    /// without a service time or without requests.
    pub response_us: Option<[u64; 3]>,
    /// The most messages that waited for the scheduler's master at once.
    pub peak_requests: u64,
    /// Of online services and of offline work.
    pub online: Work,
    /// See [`Carried::online`].
    pub offline: Work,
    /// Workers of online services that were stopped without the consent of their master, and not by their machine.
    pub harmed: u64,
    /// Invariants of the protocol that did not hold.
    pub violations: u64,
}

/// The work of workers, in worker-microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The work that was wanted.
    pub wanted: u64,
    /// The unserved part of it.
    pub unserved: u64,
    /// The work beyond that: of a worker out of sight beside its replacement.
    pub doubled: u64,
    /// The work on tasks that were not finished, because their worker stopped.
    pub discarded: u64,
    /// Workers that stopped at work.
    pub stopped: u64,
}
