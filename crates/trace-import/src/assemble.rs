//! Builds the task sets of a trace from drafts: origin, rows of one job, stages, preceding jobs.
//!
//! The drafts are sorted by job, repaired job by job, and sorted by submit time. In memory are the drafts of one job.

use jiff::Timestamp;
use plimsoll_base::error::Result;
use plimsoll_base::units::Dim;
use plimsoll_sim::workload::Quality;

use crate::draft::SetDraft;
use crate::job::JobRows;
use crate::number::Fraction;
use crate::preceding::PrecedingJobs;
use crate::report::RowReport;
use crate::spill::{Cursor, Decoder, Encoder, Sorted, Sorter, Spill};
use crate::tables::InterruptWatch;

/// The settings of the last step.
pub struct Assembly {
    /// The resources.
    pub dims: Vec<Dim>,
    /// The origin in microseconds; by default the first submit time.
    pub origin: Option<i64>,
    /// Whether dependencies have the keys of rows instead of stages.
    pub has_keys: bool,
    /// Whether rows that differ only in their number of tasks become one row.
    pub merge: bool,
}

/// The drafts of a log, before they are sorted by job.
pub struct Assembler {
    assembly: Assembly,
    jobs: Sorter,
    first_submit: Option<i64>,
    last_submit: i64,
    /// Drafts that are earlier than the one before.
    disorder: u64,
    has_preceding: bool,
    key: Encoder,
    value: Encoder,
}

/// Drafts in the order of submission.
pub struct AssembledDrafts {
    /// The drafts, in the order of their submission and then of the log.
    pub drafts: Sorted,
    /// The number of drafts.
    pub rows: u64,
    /// The time 0 in microseconds.
    pub origin: i64,
    /// Whether a draft has a preceding job.
    pub has_preceding: bool,
}

impl Assembler {
    /// Creates an empty collection.
    pub fn new(assembly: Assembly, spill: &Spill) -> Assembler {
        Assembler {
            assembly,
            jobs: spill.sorter(),
            first_submit: None,
            last_submit: i64::MIN,
            disorder: 0,
            has_preceding: false,
            key: Encoder::default(),
            value: Encoder::default(),
        }
    }

    /// Adds a draft; the drafts are in the order of the log. A draft before the origin is dropped and counted. Errors: a temporary file
    /// cannot be written.
    pub fn push(&mut self, row: u64, draft: &SetDraft, report: &mut RowReport) -> Result<()> {
        if self.assembly.origin.is_some_and(|origin| draft.submit < origin) {
            report.drop_row("submitted before the origin", draft.line, draft.file as usize);
            return Ok(());
        }
        self.disorder += u64::from(draft.submit < self.last_submit);
        self.last_submit = draft.submit;
        self.first_submit = Some(self.first_submit.map_or(draft.submit, |first| first.min(draft.submit)));
        self.has_preceding |= draft.preceding.is_some();
        self.key.clear().key_text(draft.job.as_bytes()).key_sequence(row);
        draft.encode(self.assembly.dims.len(), self.value.clear());
        self.jobs.push(&self.key.bytes, &self.value.bytes)
    }

    /// Repairs the rows of each job and sorts all by submit time. Every repair is counted. Errors: a temporary file cannot be used, or
    /// those of `watch`.
    pub fn finish(
        self,
        quality: &mut Quality,
        spill: &Spill,
        watch: &mut InterruptWatch<'_>,
    ) -> Result<AssembledDrafts> {
        let Assembler { assembly, jobs, first_submit, disorder, mut key, mut value, .. } = self;
        let origin = assembly.origin.or(first_submit).unwrap_or(0);
        quality.assumptions.push(("time.origin".into(), origin_name(origin, assembly.origin.is_none())));
        if disorder > 0 {
            quality.warnings.push(format!("rows earlier than the one above them: {disorder}; sorted by submit time"));
        }
        let dims = assembly.dims.len();
        let sorted = jobs.finish()?;
        let mut preceding = match self.has_preceding {
            true => Some(PrecedingJobs::new(&sorted, dims, spill, watch)?),
            false => None,
        };
        let (mut drafts, mut rows, mut has_preceding) = (spill.sorter(), 0, false);
        let mut groups = JobGroups::new(&sorted, dims)?;
        while let Some(mut job) = groups.next(watch)? {
            if assembly.has_keys {
                job.replace_keys(quality);
            }
            job.repair(quality);
            if let Some(preceding) = &mut preceding {
                preceding.check(&mut job, quality)?;
            }
            job.drop_early_deadlines(origin, quality);
            if assembly.merge {
                job.merge();
            }
            for (row, draft) in &job.drafts {
                rows += 1;
                has_preceding |= draft.preceding.is_some();
                key.clear().key_number(draft.submit.into()).key_sequence(*row);
                draft.encode(dims, value.clear());
                drafts.push(&key.bytes, &value.bytes)?;
            }
        }
        Ok(AssembledDrafts { drafts: drafts.finish()?, rows, origin, has_preceding })
    }
}

/// The drafts of each job, in the order of the jobs' names.
pub struct JobGroups {
    cursor: Cursor,
    dims: usize,
    has_next: bool,
}

impl JobGroups {
    /// Starts at the first job. Errors: a temporary file cannot be read.
    pub fn new(sorted: &Sorted, dims: usize) -> Result<JobGroups> {
        let mut cursor = sorted.cursor()?;
        let has_next = cursor.advance()?;
        Ok(JobGroups { cursor, dims, has_next })
    }

    /// Reads the rows of the next job, in the order of the log. Errors: a temporary file cannot be read, or those of `watch`.
    pub fn next(&mut self, watch: &mut InterruptWatch<'_>) -> Result<Option<JobRows>> {
        let mut drafts: Vec<(u64, SetDraft)> = Vec::new();
        while self.has_next {
            watch.check()?;
            let (_, row) = Decoder::split_sequence(self.cursor.key())?;
            let draft = SetDraft::decode(self.dims, self.cursor.value())?;
            if drafts.first().is_some_and(|(_, first)| first.job != draft.job) {
                break;
            }
            drafts.push((row, draft));
            self.has_next = self.cursor.advance()?;
        }
        Ok(JobRows::new(drafts))
    }
}

/// Describes the time 0 of the trace: seconds, and the date if they seem to count from 1970.
fn origin_name(origin: i64, is_first: bool) -> String {
    let seconds = Fraction::reduced(origin.into(), 1_000_000).map(|seconds| seconds.to_string()).unwrap_or_default();
    let since_1970 = origin.unsigned_abs() >= 500_000_000_000_000;
    let date = Timestamp::from_microsecond(origin).ok().filter(|_| since_1970).map(|time| format!(" ({time})"));
    let first = if is_first { ", the first imported row" } else { "" };
    format!("{seconds} s{}{first}", date.unwrap_or_default())
}
