//! Workloads: task sets of users' jobs, in order of submission.
//!
//! A [`Source`] yields one [`TaskSet`] at a time, so that memory grows with the active tasks. The engine notifies it of finished jobs, so
//! that the users of a closed loop can submit their next jobs. [`Workload`] is a small or generated workload in memory: importers and
//! generators build one, and it can be replayed or written as a canonical trace.

mod altered;
mod assemble;
mod changed;
mod columns;
pub mod curves;
mod estimates;
mod following;
pub mod formats;
pub mod inspect;
mod names;
pub mod profile;
mod quantiles;
mod resample;
mod scaled;
mod selected;
mod services;
mod shared;
pub mod summary;
pub mod synthetic;
mod trace;
mod unknown;
mod whole;
pub mod write;

pub use altered::{Alteration, Altered};
pub use assemble::{Assembler, shorten};
pub use changed::{ChangedRows, Shake};
pub use columns::{Columns, TraceColumn};
pub use estimates::{Estimated, Estimates};
pub use following::{Following, Preceding};
pub use names::{JobName, JobNames, Names};
pub use plimsoll_base::names::NameList;
pub use resample::resample;
pub use scaled::{Scaled, TargetLoad};
pub use selected::Selected;
pub use services::{Service, WithServices};
pub use shared::{Replayed, SharedRows};
pub use trace::{CsvTrace, Input, RowParser, TraceField, describe};
pub use unknown::{describe_encoding, guess_command, require_canonical};
pub use whole::{InMemory, Quality, Workload};

use plimsoll_base::checkpoint::Checkpoint;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, JobId, Resources, Span, Time, UserId};

/// One row of a trace: equal tasks of one stage of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TaskSet {
    /// Position in the trace, from 0; the last tie-breaker in every order.
    pub row: u64,
    /// The job that the tasks belong to.
    pub job: JobId,
    /// The user that submits it.
    pub user: UserId,
    /// The instant at which the row is submitted.
    pub submit: Time,
    /// The duration of each task.
    pub duration: Span,
    /// Number of equal tasks (at least 1).
    pub tasks: u32,
    /// The demand of each task, in the order of the source's dimensions.
    pub demand: Resources,
    /// The stage of this row, an index into [`Source::stage_name`].
    pub stage: Option<u32>,
    /// Stages of the same job that must have ended with all their rows before this row is released.
    pub after: Vec<u32>,
    /// The priority, from 0 (most urgent) to 9.
    pub priority: u8,
    /// Whether the tasks may only start together.
    pub gang: bool,
    /// A label expression that the machine must satisfy, an index into [`Source::label_name`].
    pub label: Option<u32>,
    /// The machine, rack or room where the tasks would run best, an index into [`Source::location_name`].
    pub location: Option<u32>,
    /// Whether the tasks are exempt from preemption, both to reclaim quota and for other tasks.
    pub stable: bool,
    /// The user's estimate of each task's duration; job orders, backups and backfilling use it.
    pub estimate: Option<Span>,
    /// The deadline of the tasks; only job orders and metrics use it.
    pub deadline: Option<Time>,
    /// The job that must have ended before this row's job is submitted. It is the same in every row of a job.
    pub preceding: Option<Box<Preceding>>,
}

/// The names in the rows of a source, by index.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// Names of jobs.
    pub job_names: &'a JobNames,
    /// Names of stages.
    pub stages: &'a Names,
    /// Label expressions.
    pub labels: &'a Names,
    /// Names of locations.
    pub locations: &'a Names,
}

/// A stream of task sets, sorted by submit time, with dense ids in order of first appearance.
///
/// A job's rows are adjacent or share a submit time; a reader reports any other order as an error.
pub trait Source: Send {
    /// Returns the resource dimensions, in the order of every [`TaskSet::demand`].
    fn dims(&self) -> &[Dim];

    /// Returns the next task set without taking it, or `None` at the end. In a closed loop, `None` means that there is no task set at
    /// present.
    fn peek(&mut self) -> Result<Option<&TaskSet>>;

    /// Takes the task set that [`Source::peek`] returns. Returns `None` exactly if `peek` returns `None`.
    fn next_set(&mut self) -> Result<Option<TaskSet>>;

    /// Returns the name of the job of the task set taken last.
    fn job_name(&self) -> JobName;

    /// Returns the names of all users seen so far, indexed by [`UserId`].
    fn users(&self) -> &Names;

    /// Returns all other names seen so far.
    fn texts(&self) -> Texts<'_>;

    /// Returns the names of jobs; see [`JobNames::render`].
    fn job_names(&self) -> &JobNames {
        self.texts().job_names
    }

    /// Returns the name of a stage.
    fn stage_name(&self, stage: u32) -> &str {
        self.texts().stages.name(stage)
    }

    /// Returns a label expression.
    fn label_name(&self, label: u32) -> &str {
        self.texts().labels.name(label)
    }

    /// Returns the name of a location.
    fn location_name(&self, location: u32) -> &str {
        self.texts().locations.name(location)
    }

    /// Records the end of a job. In a closed loop, the user then submits its next job.
    fn job_finished(&mut self, _job: JobId, _user: UserId, _now: Time) {}

    /// Returns whether the ends of jobs may change the rows that follow.
    fn reacts(&self) -> bool {
        false
    }

    /// Returns the state of a source that [reacts](Source::reacts). A run that continues from a checkpoint reads the rows of any other
    /// source again, so these have no state.
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        None
    }

    /// Returns whether rows may have a [`TaskSet::preceding`] job. A run then reads the source through [`Following`].
    fn has_preceding(&self) -> bool {
        false
    }

    /// Returns the number of jobs that wait for the end of another job before they are submitted.
    fn held_jobs(&self) -> u64 {
        0
    }

    /// Returns the location of a row, for a message (`trace.csv, line 12`, or `row 11 of the generated workload`).
    fn locate(&self, row: u64) -> String {
        format!("row {row}")
    }
}

/// Takes the first rows of a source again, without use, when a run continues from a checkpoint. `heartbeat` receives the submit time of a
/// row from time to time. Errors: the source's and those of `heartbeat`, and [`Error::Mismatch`] if the source has fewer rows.
pub fn read_again(source: &mut dyn Source, rows: u64, heartbeat: &mut dyn FnMut(Time) -> Result<()>) -> Result<()> {
    for taken in 0..rows {
        let Some(row) = source.next_set()? else {
            let problem = format!("the workload has {taken} rows, fewer than the {rows} of the checkpoint");
            return Err(Error::Mismatch { problem });
        };
        if taken.is_multiple_of(1 << 16) {
            heartbeat(row.submit)?;
        }
    }
    Ok(())
}
