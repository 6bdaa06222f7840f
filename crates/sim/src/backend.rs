//! The interface between the scheduler and a backend that executes its decisions.
//!
//! Without a backend, a launch starts its tasks at once, and the scheduler receives every event when it occurs. With a [`Control`], the
//! engine reports submissions, decisions and completions ([`Fact`]), and the control reports when requests are known, workers start, and
//! units are free again ([`ControlOrder`]). With a control, a user's allocation consists of the units that were granted and not revoked.

use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MachineId, Resources, Span, Time};

use crate::record::Fate;

/// Tasks of one row that were granted together on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Batch {
    /// Position of the row in the trace.
    pub row: u64,
    /// Number of the first task within the job; the others have the following numbers.
    pub first: u32,
}

/// A fact that the engine reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The tasks of a row are submitted. They enter no queue before [`ControlOrder::List`].
    Submitted {
        /// Position of the row in the trace.
        row: u64,
        /// The job of the row.
        job: JobId,
        /// Number of tasks.
        tasks: u32,
        /// The amounts that each task reserves.
        unit: Resources,
        /// Whether the tasks are exempt from preemption.
        stable: bool,
    },
    /// The scheduler has granted room to tasks.
    Granted {
        /// The granted tasks.
        batch: Batch,
        /// Number of tasks.
        count: u32,
        /// The machine that they were granted on.
        machine: MachineId,
    },
    /// The scheduler has preempted tasks; the last tasks of the batch wait again.
    Taken {
        /// The batch that loses tasks.
        batch: Batch,
        /// Number of preempted tasks.
        count: u32,
        /// The machine that they were granted on.
        machine: MachineId,
    },
    /// Workers have completed their tasks.
    Done {
        /// The completed tasks.
        batch: Batch,
        /// The machine of the workers.
        machine: MachineId,
    },
    /// All tasks of a job have ended.
    JobOver {
        /// The job.
        job: JobId,
    },
    /// The answer to [`ControlOrder::Home`].
    Home {
        /// The application.
        app: u32,
        /// The machine for its master.
        machine: MachineId,
    },
}

/// An instruction of the control to the engine.
///
/// The engine panics if the tasks are not in the state that the order requires (a programmer error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOrder {
    /// The request of a row is known: its waiting tasks enter the queue.
    List(u64),
    /// The request of a row is no longer known: its waiting tasks leave the queue.
    Unlist(u64),
    /// Tasks of a row run on a machine in units that no round has granted. The tasks are the waiting tasks of the row, at most `count`.
    /// The room of units without a task is reserved.
    Adopt {
        /// The row.
        row: u64,
        /// The machine of the units.
        machine: MachineId,
        /// Number of units.
        count: u32,
        /// The amounts that each unit reserves.
        unit: Resources,
    },
    /// Units without tasks are released.
    Vacate {
        /// The row that the units were for.
        row: u64,
        /// The machine of the units.
        machine: MachineId,
        /// Number of units.
        count: u32,
    },
    /// Granted tasks start.
    Start(Batch),
    /// The workers of started tasks are gone; the tasks are to start again in the same units.
    Halt(Batch),
    /// Completed tasks have ended: their job continues.
    Over(Batch),
    /// The units of tasks that have ended are free.
    Free(Batch),
    /// The last tasks of a batch lose their units and wait again.
    Stop {
        /// The batch.
        batch: Batch,
        /// Number of its tasks that are stopped.
        count: u32,
        /// The reason.
        fate: Fate,
    },
    /// A batch is divided into two.
    Split {
        /// The batch.
        batch: Batch,
        /// Number of tasks in the first of the two.
        count: u32,
    },
    /// No further task starts on a machine until [`ControlOrder::Back`].
    Away(MachineId),
    /// New tasks may start on a machine again.
    Back(MachineId),
    /// Excludes a machine from the machines that tasks of a row may start on, or includes it again. Not on a pooled cluster.
    Bar {
        /// The row.
        row: u64,
        /// The machine.
        machine: MachineId,
        /// Whether the machine is excluded.
        barred: bool,
    },
    /// Requests a machine for the master of an application. The placement rule selects it, as for a task that takes no room. It differs
    /// from the last machine if there is another machine.
    Home {
        /// The application.
        app: u32,
        /// The machine of its last master.
        last: Option<MachineId>,
    },
}

/// A backend that executes the decisions of a scheduler.
pub trait Control: Send {
    /// Receives the capacity of each machine, as the policy sees it, before the run begins.
    fn open(&mut self, machines: &[Resources]);

    /// Returns the next instant at which the control must act even without an event.
    fn next(&mut self) -> Option<Time>;

    /// Receives the facts since the last call, in order.
    fn receive(&mut self, now: Time, facts: &[Fact]);

    /// Executes everything that is due and appends orders for the engine, in order. The engine calls it again until it appends none. Errors
    /// end the run.
    fn act(&mut self, now: Time, orders: &mut Vec<ControlOrder>) -> Result<()>;

    /// Returns whether a scheduling round may be held now.
    fn decides(&self) -> bool;

    /// Returns whether the run continues to its horizon although no work is left.
    fn persists(&self) -> bool {
        false
    }

    /// Returns whether the run is to end now.
    fn stops(&self) -> bool {
        false
    }
}

/// Counts of a run under a control: failures, messages, requests and work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    /// Number of injected faults.
    pub faults: u64,
    /// Number of workers that failed alone.
    pub failed: u64,
    /// Number of times that a machine was blacklisted because workers had failed on it.
    pub blacklisted: u64,
    /// Number of messages sent, including heartbeats that change nothing.
    pub messages: u64,
    /// Number of requests that the scheduler's master processed, without heartbeats.
    pub requests: u64,
    /// Number of units that the scheduler's master granted.
    pub granted: u64,
    /// The time that the master spent processing requests.
    pub busy: Span,
    /// The time during which no master took decisions.
    pub down: Span,
    /// The time from the arrival of a request to its answer, in microseconds: mean, 99th percentile and maximum; `None` for a master
    /// without a service time or without requests.
    pub response_us: Option<[u64; 3]>,
    /// The maximum number of messages that waited for the scheduler's master at once.
    pub peak_requests: u64,
    /// The work of online services.
    pub online: Work,
    /// The work of offline tasks.
    pub offline: Work,
    /// Number of workers of online services that were stopped without the consent of their master. Workers on failed machines do not
    /// count.
    pub harmed: u64,
    /// Number of violated invariants of the protocol.
    pub violations: u64,
}

/// The work of workers, in worker-microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The work that was requested.
    pub wanted: u64,
    /// The unserved part of the requested work.
    pub unserved: u64,
    /// The work beyond the requested work, done by an unreachable worker while its replacement runs.
    pub doubled: u64,
    /// The work on tasks that were not finished because their worker stopped.
    pub discarded: u64,
    /// Number of workers that stopped while they worked.
    pub stopped: u64,
}
