//! A source with changed rows: one at a time, in the same order.

use super::names::{JobName, Names};
use super::{Source, TaskSet, Texts};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Time, UserId};

/// A change of the rows of a source. It must keep the order of submissions, and must not change jobs and users.
pub trait Alteration: Send {
    /// Changes a row. In a closed loop, the row may be replaced by an earlier one before it is taken.
    fn alter(&mut self, set: &mut TaskSet);

    /// Records that a row was taken.
    fn taken(&mut self, _set: &TaskSet) {}
}

/// A source with changed rows.
pub struct Altered<'a, A> {
    source: Box<dyn Source + 'a>,
    pub(super) alteration: A,
    /// The next row, if it was peeked.
    ahead: Option<TaskSet>,
}

impl<'a, A: Alteration> Altered<'a, A> {
    /// Changes the rows of a source.
    pub fn with(source: Box<dyn Source + 'a>, alteration: A) -> Altered<'a, A> {
        Altered { source, alteration, ahead: None }
    }
}

impl<A: Alteration> Source for Altered<'_, A> {
    fn dims(&self) -> &[Dim] {
        self.source.dims()
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        if self.ahead.is_none() {
            let Some(mut set) = self.source.peek()?.cloned() else { return Ok(None) };
            self.alteration.alter(&mut set);
            self.ahead = Some(set);
        }
        Ok(self.ahead.as_ref())
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        self.peek()?;
        let Some(set) = self.ahead.take() else { return Ok(None) };
        self.source.next_set()?;
        self.alteration.taken(&set);
        Ok(Some(set))
    }

    fn job_name(&self) -> JobName {
        self.source.job_name()
    }

    fn has_preceding(&self) -> bool {
        self.source.has_preceding()
    }

    fn held_jobs(&self) -> u64 {
        self.source.held_jobs()
    }

    fn users(&self) -> &Names {
        self.source.users()
    }

    fn texts(&self) -> Texts<'_> {
        self.source.texts()
    }

    fn job_finished(&mut self, job: JobId, user: UserId, now: Time) {
        // In a closed loop the next row may have changed.
        self.ahead = None;
        self.source.job_finished(job, user, now);
    }

    fn reacts(&self) -> bool {
        self.source.reacts()
    }

    fn locate(&self, row: u64) -> String {
        self.source.locate(row)
    }
}
