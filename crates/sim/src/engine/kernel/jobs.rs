//! Active jobs, in a slab, with their stages.
//!
//! A job is opened with its first row, checked (`complete`) when all of its rows are known, and freed when its last task has ended. A row
//! that depends on stages is postponed until every stage that it names has ended. The ideal completion time of a job, on an empty cluster
//! without limits, is computed when all of its rows are known.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use prefetch_index::prefetch_index;

use super::ids::{JobSlot, NO_STAGE, SetSlot};
use crate::record::{JobRecord, Named};
use crate::workload::{JobName, JobNames, Source, TaskSet};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{JobId, Span, Time, UserId};

/// The maximum number of tasks of a job. Second instances of all of them fit 32 bits as well.
pub const JOB_TASKS_MOST: u32 = i32::MAX as u32;

/// A job with unfinished tasks. Its name is stored separately.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ActiveJob {
    pub id: JobId,
    pub user: UserId,
    pub submit: Time,
    /// The first launch of a task, or [`Time::NEVER`].
    pub start: Time,
    pub tasks: u32,
    pub left: u32,
    /// The duration of its tasks, if it has no details.
    duration: Span,
    details: Option<Box<JobDetails>>,
}

const _: () = assert!(size_of::<ActiveJob>() <= 48, "a run has many active jobs");

/// The data of a job that has stages, or tasks with different durations or submissions.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct JobDetails {
    /// The total duration of its tasks; saturates.
    work: u64,
    ideal: Span,
    stages: Option<Box<Stages>>,
}

/// The stages of a job with stages.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Stages {
    rows: Vec<StageRow>,
    /// Per stage, the number of rows that have not ended.
    left: Vec<(u32, u32)>,
    /// Rows that wait for stages.
    waiting: Vec<(u64, SetSlot, Vec<u32>)>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct StageRow {
    row: u64,
    stage: Option<u32>,
    after: Vec<u32>,
    offset: Span,
    duration: Span,
}

impl ActiveJob {
    /// Returns whether all tasks have ended.
    pub fn ended(&self) -> bool {
        self.left == 0
    }

    /// Returns the total duration of its tasks; saturates.
    fn work(&self) -> u64 {
        self.details.as_ref().map_or_else(|| self.duration.0.saturating_mul(self.tasks.into()), |details| details.work)
    }

    /// Returns its completion time on an empty, boundless cluster.
    pub fn ideal(&self) -> Span {
        self.details.as_ref().map_or(self.duration, |details| details.ideal)
    }

    /// Returns the details, computed from the other fields if the job has none.
    fn details_mut(&mut self) -> &mut JobDetails {
        let (work, ideal) = (self.work(), self.ideal());
        self.details.get_or_insert_with(|| Box::new(JobDetails { work, ideal, stages: None }))
    }

    fn stages_mut(&mut self) -> Option<&mut Stages> {
        self.details.as_mut()?.stages.as_deref_mut()
    }
}

impl Stages {
    fn open(&self, stage: u32) -> bool {
        self.left.iter().any(|(known, left)| *known == stage && *left > 0)
    }

    fn ready(&self, after: &[u32]) -> bool {
        after.iter().all(|stage| !self.open(*stage))
    }

    /// Returns the length of the longest chain of stages from the job's submission. Rows that depend on each other in a cycle count as if
    /// they waited for no stage.
    fn ideal(&self) -> Span {
        let mut ends: Vec<(u32, Span)> = self.left.iter().map(|(stage, _)| (*stage, Span::ZERO)).collect();
        let end_of = |ends: &[(u32, Span)], row: &StageRow| {
            let starts = row.after.iter().filter_map(|stage| ends.iter().find(|(known, _)| known == stage));
            let start = starts.map(|(_, end)| *end).fold(row.offset, Span::max);
            Span(start.0.saturating_add(row.duration.0))
        };
        for _ in 0..=self.left.len() {
            let before = ends.clone();
            for row in &self.rows {
                let end = end_of(&ends, row);
                if let Some(known) = ends.iter_mut().find(|(stage, _)| row.stage == Some(*stage)) {
                    known.1 = known.1.max(end);
                }
            }
            if ends == before {
                break;
            }
        }
        self.rows.iter().map(|row| end_of(&ends, row)).max().unwrap_or_default()
    }
}

/// All active jobs.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Jobs {
    slab: Vec<ActiveJob>,
    names: Vec<JobName>,
    free: Vec<JobSlot>,
}

impl Jobs {
    /// Opens a job with its first row, which is not counted yet.
    pub fn open(&mut self, row: &TaskSet, name: JobName) -> JobSlot {
        let job = ActiveJob {
            id: row.job,
            user: row.user,
            submit: row.submit,
            start: Time::NEVER,
            tasks: 0,
            left: 0,
            duration: Span::ZERO,
            details: None,
        };
        match self.free.pop() {
            Some(slot) => {
                (self.slab[slot.index()], self.names[slot.index()]) = (job, name);
                slot
            }
            None => {
                self.slab.push(job);
                self.names.push(name);
                JobSlot(u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 active jobs"))
            }
        }
    }

    /// Returns the name of a job.
    pub fn name<'a>(&'a self, slot: JobSlot, names: &'a JobNames) -> Named<'a> {
        Named { name: &self.names[slot.index()], names }
    }

    /// Returns the record of a job as of now.
    pub fn record<'a>(&'a self, slot: JobSlot, names: &'a JobNames, finish: Option<Time>) -> JobRecord<'a> {
        let job = &self[slot];
        JobRecord {
            job: job.id,
            name: self.name(slot, names),
            user: job.user,
            tasks: job.tasks.into(),
            submit: job.submit,
            start: (job.start != Time::NEVER).then_some(job.start),
            finish,
            work: Some(job.work()).filter(|work| i64::try_from(*work).is_ok()),
            ideal: job.ideal(),
        }
    }

    /// Adds a row to a job; returns the number of its first task, or `None` if it has more than [`JOB_TASKS_MOST`] tasks.
    pub fn add_row(&mut self, slot: JobSlot, row: &TaskSet) -> Option<u32> {
        let job = &mut self[slot];
        let (first, tasks) = (job.tasks, job.tasks.checked_add(row.tasks).filter(|tasks| *tasks <= JOB_TASKS_MOST)?);
        let offset = row.submit.since(job.submit);
        let has_stages = row.stage.is_some() || !row.after.is_empty();
        let is_alike = job.duration == row.duration || first == 0 && job.duration == Span::ZERO;
        if job.details.is_none() && !has_stages && offset == Span::ZERO && is_alike {
            job.duration = row.duration;
        } else {
            let details = job.details_mut();
            details.work = details.work.saturating_add(row.duration.0.saturating_mul(row.tasks.into()));
            if !has_stages {
                details.ideal = details.ideal.max(Span(offset.0.saturating_add(row.duration.0)));
            }
        }
        (job.tasks, job.left) = (tasks, job.left + row.tasks);
        if has_stages {
            let stages = job.details_mut().stages.get_or_insert_default();
            if let Some(stage) = row.stage {
                match stages.left.iter_mut().find(|(known, _)| *known == stage) {
                    Some((_, left)) => *left += 1,
                    None => stages.left.push((stage, 1)),
                }
            }
            let after = row.after.clone();
            stages.rows.push(StageRow { row: row.row, stage: row.stage, after, offset, duration: row.duration });
        }
        Some(first)
    }

    /// Checks the stages of a job and computes its ideal completion time, once all of its rows are known. Errors: [`Error::Mismatch`] for
    /// an unknown stage.
    pub fn complete(&mut self, slot: JobSlot, source: &dyn Source) -> Result<()> {
        let job = &mut self.slab[slot.index()];
        let Some(JobDetails { ideal, stages: Some(stages), .. }) = job.details.as_deref_mut() else { return Ok(()) };
        for row in &stages.rows {
            let unknown = row.after.iter().find(|stage| !stages.left.iter().any(|(known, _)| known == *stage));
            if let Some(stage) = unknown {
                let known: Vec<&str> = stages.left.iter().map(|(stage, _)| source.stage_name(*stage)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Error::Mismatch {
                    problem: format!(
                        "{}, column 'after': job '{}' has no stage '{}'; its stages: {known}",
                        source.locate(row.row),
                        source.job_names().text(&self.names[slot.index()]),
                        source.stage_name(*stage)
                    ),
                });
            }
        }
        *ideal = (*ideal).max(stages.ideal());
        stages.rows = Vec::new();
        Ok(())
    }

    /// Postpones a row that depends on unfinished stages; returns whether it did.
    pub fn await_stage(&mut self, slot: JobSlot, row: u64, set: SetSlot, after: Vec<u32>) -> bool {
        let stages = self[slot].details_mut().stages.get_or_insert_default();
        if stages.ready(&after) {
            return false;
        }
        stages.waiting.push((row, set, after));
        true
    }

    /// Counts one more row of a stage, because some tasks of a row will start again as a separate set.
    pub fn row_split(&mut self, slot: JobSlot, stage: u32) {
        let Some(stages) = self[slot].stages_mut() else { return };
        if let Some((_, left)) = stages.left.iter_mut().find(|(known, _)| *known == stage) {
            *left += 1;
        }
    }

    /// Records the end of a row, and releases the rows that wait for no other stage.
    pub fn row_ended(&mut self, slot: JobSlot, stage: u32, released: &mut Vec<(u64, SetSlot)>) {
        if stage == NO_STAGE {
            return;
        }
        let Some(stages) = self[slot].stages_mut() else { return };
        let Some((_, left)) = stages.left.iter_mut().find(|(known, _)| *known == stage) else { return };
        *left -= 1;
        if *left > 0 {
            return;
        }
        let (ready, waiting) =
            std::mem::take(&mut stages.waiting).into_iter().partition(|(_, _, after)| stages.ready(after));
        stages.waiting = waiting;
        let ready: Vec<(u64, SetSlot, Vec<u32>)> = ready;
        released.extend(ready.into_iter().map(|(row, set, _)| (row, set)));
    }

    /// Prefetches a job that is about to end into the cache.
    pub fn fetch(&self, slot: JobSlot) {
        prefetch_index(&self.slab, slot.index());
        prefetch_index(&self.names, slot.index());
    }

    pub fn free(&mut self, slot: JobSlot) {
        self[slot].details = None;
        self.free.push(slot);
    }

    /// Returns all live jobs, by id.
    pub fn by_id(&self) -> Vec<JobSlot> {
        let mut live = vec![true; self.slab.len()];
        self.free.iter().for_each(|&slot| live[slot.index()] = false);
        let mut slots: Vec<JobSlot> =
            (0..self.slab.len() as u32).map(JobSlot).filter(|&slot| live[slot.index()]).collect();
        slots.sort_unstable_by_key(|&slot| self[slot].id);
        slots
    }
}

impl Index<JobSlot> for Jobs {
    type Output = ActiveJob;
    fn index(&self, slot: JobSlot) -> &ActiveJob {
        &self.slab[slot.index()]
    }
}

impl IndexMut<JobSlot> for Jobs {
    fn index_mut(&mut self, slot: JobSlot) -> &mut ActiveJob {
        &mut self.slab[slot.index()]
    }
}

/// The jobs that appear at one instant; their ids are consecutive.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Appeared {
    pub first: JobId,
    pub slots: Vec<JobSlot>,
}

impl Appeared {
    pub fn slot(&self, job: JobId) -> Option<JobSlot> {
        self.slots.get(job.0.checked_sub(self.first.0)? as usize).copied()
    }
}

/// Rows that are not queued yet.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Intake {
    /// Rows of jobs that straddle instants, taken early so that all rows of a job are known.
    pub later: BTreeMap<(Time, u64), SetSlot>,
    /// Rows that an ended stage released in this pass.
    pub released: Vec<(u64, SetSlot)>,
    /// Buffers that are reused at every instant.
    pub appeared: Appeared,
    pub arrived: Vec<(SetSlot, Vec<u32>)>,
}
