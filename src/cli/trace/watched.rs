//! A source that Ctrl-C can stop.

use crate::cli::Stop;
use crate::error::Result;
use crate::units::{Dim, JobId, Time, UserId};
use crate::workload::{JobName, Names, Source, TaskSet, Texts};

/// Number of rows between two checks for Ctrl-C.
const EVERY: u64 = 4096;

/// A wrapper of a source; its rows end with [`crate::error::Error::Interrupted`] after a signal.
pub struct Watched<'a> {
    source: Box<dyn Source + 'a>,
    stop: Stop,
    taken: u64,
}

impl<'a> Watched<'a> {
    pub fn new(source: Box<dyn Source + 'a>, stop: &Stop) -> Watched<'a> {
        Watched { source, stop: stop.clone(), taken: 0 }
    }
}

impl Source for Watched<'_> {
    fn dims(&self) -> &[Dim] {
        self.source.dims()
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        self.source.peek()
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        self.taken += 1;
        if self.taken.is_multiple_of(EVERY) {
            self.stop.check()?;
        }
        self.source.next_set()
    }

    fn job_name(&self) -> JobName {
        self.source.job_name()
    }

    fn has_preceding(&self) -> bool {
        self.source.has_preceding()
    }

    fn users(&self) -> &Names {
        self.source.users()
    }

    fn texts(&self) -> Texts<'_> {
        self.source.texts()
    }

    fn job_finished(&mut self, job: JobId, user: UserId, now: Time) {
        self.source.job_finished(job, user, now);
    }

    fn reacts(&self) -> bool {
        self.source.reacts()
    }

    fn locate(&self, row: u64) -> String {
        self.source.locate(row)
    }
}
