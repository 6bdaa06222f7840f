//! Removes preceding jobs that have no earlier row.
//!
//! The jobs are sorted by name, so that the names of preceding jobs, sorted as well, are found in one pass.

use plimsoll_base::error::Result;
use plimsoll_sim::workload::Quality;

use crate::assemble::JobGroups;
use crate::job::JobRows;
use crate::spill::{Cursor, Decoder, Encoder, Sorted, Spill, damaged};
use crate::tables::InterruptWatch;

/// The jobs with a preceding job that is not earlier or has no row, in the order of their names.
pub struct PrecedingJobs {
    cursor: Cursor,
    /// The next such job, and whether its preceding job has a row.
    next: Option<(String, bool)>,
}

impl PrecedingJobs {
    /// Compares the places of all jobs with those of their preceding jobs. Errors: a temporary file cannot be used, or those of `watch`.
    pub fn new(sorted: &Sorted, dims: usize, spill: &Spill, watch: &mut InterruptWatch<'_>) -> Result<PrecedingJobs> {
        let (mut key, mut value) = (Encoder::default(), Encoder::default());
        let mut requests = spill.sorter();
        let mut jobs = JobGroups::new(sorted, dims)?;
        let mut number = 0;
        while let Some(job) = jobs.next(watch)? {
            if let Some((before, _)) = job.earliest().and_then(|draft| draft.preceding.as_ref()) {
                number += 1;
                key.clear().key_text(before.as_bytes()).key_sequence(number);
                let (submit, row) = job.place();
                value.clear().text(Some(before)).text(Some(job.name())).signed(submit).integer(row);
                requests.push(&key.bytes, &value.bytes)?;
            }
        }
        let mut refused = spill.sorter();
        let requests = requests.finish()?;
        let mut requests = requests.cursor()?;
        let mut jobs = JobGroups::new(sorted, dims)?;
        let mut known = jobs.next(watch)?;
        while requests.advance()? {
            let mut from = Decoder::new(requests.value());
            let before = from.text()?.unwrap_or_default();
            let own = from.text()?.unwrap_or_default();
            let place = (from.signed()?, from.integer()?);
            while known.as_ref().is_some_and(|job| job.name() < before) {
                known = jobs.next(watch)?;
            }
            let found = known.as_ref().filter(|job| job.name() == before).map(JobRows::place);
            if found.is_none_or(|found| found >= place) {
                key.clear().key_text(own.as_bytes());
                refused
                    .push(&key.bytes, value.clear().text(Some(own)).integer(found.is_some().into()).bytes.as_slice())?;
            }
        }
        let mut preceding = PrecedingJobs { cursor: refused.finish()?.cursor()?, next: None };
        preceding.advance()?;
        Ok(preceding)
    }

    fn advance(&mut self) -> Result<()> {
        self.next = None;
        if self.cursor.advance()? {
            let mut from = Decoder::new(self.cursor.value());
            self.next = Some((from.text()?.ok_or_else(damaged)?.to_owned(), from.integer()? == 1));
        }
        Ok(())
    }

    /// Removes the preceding job of a job if it is not earlier; the jobs come in the order of their names. Errors: a temporary file cannot
    /// be read.
    pub fn check(&mut self, job: &mut JobRows, quality: &mut Quality) -> Result<()> {
        let Some((_, is_known)) = self.next.as_ref().filter(|(name, _)| name == job.name()) else { return Ok(()) };
        let known = if *is_known { "is not earlier" } else { "has no row" };
        for (_, draft) in &mut job.drafts {
            draft.preceding = None;
            quality.repair_row(&format!("the preceding job {known}; the dependency is dropped"));
        }
        self.advance()
    }
}
