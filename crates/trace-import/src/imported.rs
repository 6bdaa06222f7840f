//! An imported log as a source of task sets, read from sorted drafts.

use std::collections::HashMap;

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Span, Time, UserId};
use plimsoll_sim::workload::formats::{TenantRule, Tenants};
use plimsoll_sim::workload::{JobName, JobNames, Names, Preceding, Quality, Source, TaskSet, Texts, Workload};

use crate::assemble::AssembledDrafts;
use crate::draft::SetDraft;
use crate::spill::Cursor;

/// An imported log: task sets in the order of submission, in memory or in temporary files.
pub struct Imported {
    dims: Vec<Dim>,
    tenants: Tenants,
    sets: AssembledDrafts,
    /// The report on the import.
    pub quality: Quality,
}

impl Imported {
    /// Creates the log of sorted drafts.
    pub(crate) fn new(dims: Vec<Dim>, tenants: Tenants, sets: AssembledDrafts, mut quality: Quality) -> Imported {
        quality.assumptions.extend(tenants.assumptions());
        Imported { dims, tenants, sets, quality }
    }

    /// Returns a source of all task sets. Errors: a temporary file cannot be read.
    pub fn source(&self) -> Result<ImportedRows<'_>> {
        let mut rows = ImportedRows {
            imported: self,
            cursor: self.sets.drafts.cursor()?,
            rule: self.tenants.rule(),
            users: Names::default(),
            job_names: JobNames::default(),
            stages: Names::default(),
            labels: Names::default(),
            locations: Names::default(),
            instant: HashMap::new(),
            jobs: 0,
            rows: 0,
            ahead: None,
            taken: JobName::Text("".into()),
        };
        rows.advance(None)?;
        Ok(rows)
    }

    /// Reads all task sets into memory. Errors: a temporary file cannot be read.
    pub fn into_workload(self) -> Result<Workload> {
        let (mut sets, mut jobs) = (Vec::new(), Vec::new());
        let mut rows = self.source()?;
        while let Some(set) = rows.next_set()? {
            if set.job.index() == jobs.len() {
                jobs.push(rows.job_name());
            }
            sets.push(set);
        }
        let ImportedRows { users, job_names, stages, labels, locations, .. } = rows;
        let Imported { dims, quality, .. } = self;
        Ok(Workload { dims, sets, jobs, job_names, users, stages, labels, locations, quality })
    }
}

/// The largest table of the jobs of an instant that is emptied instead of replaced.
const INSTANT: usize = 1 << 10;

/// The task sets of an imported log.
pub struct ImportedRows<'a> {
    imported: &'a Imported,
    cursor: Cursor,
    rule: Option<TenantRule>,
    users: Names,
    job_names: JobNames,
    stages: Names,
    labels: Names,
    locations: Names,
    /// The jobs of the current submit time; all rows of a job have one submit time.
    instant: HashMap<String, (JobId, UserId)>,
    jobs: u32,
    rows: u64,
    ahead: Option<(TaskSet, JobName)>,
    taken: JobName,
}

impl ImportedRows<'_> {
    /// Reads the row after one with the submit time `before`.
    fn advance(&mut self, before: Option<Time>) -> Result<()> {
        if !self.cursor.advance()? {
            return Ok(());
        }
        let draft = SetDraft::decode(self.imported.dims.len(), self.cursor.value())?;
        let origin = self.imported.sets.origin;
        let relative = |time: i64| Time(u64::try_from(i128::from(time) - i128::from(origin)).unwrap_or(0));
        let submit = relative(draft.submit);
        if before != Some(submit) {
            if self.instant.capacity() > INSTANT {
                self.instant = HashMap::new();
            }
            self.instant.clear();
        }
        let name = self.job_names.split(&draft.job);
        let (job, user) = match self.instant.get(&draft.job) {
            Some(known) => *known,
            None => {
                let own = draft.user.as_ref().unwrap_or(&draft.job);
                let user = match &self.rule {
                    None => self.users.intern(own),
                    // Every job is a user of its own, so that the number of the job is that of the user.
                    Some(rule) => self.users.intern(&rule.user(self.jobs, own)),
                };
                let new = (JobId(self.jobs), UserId(user));
                self.jobs += 1;
                self.instant.insert(draft.job, new);
                new
            }
        };
        let preceding = draft.preceding.as_ref();
        let set = TaskSet {
            row: self.rows,
            job,
            user,
            submit,
            stage: draft.stage.as_ref().map(|name| self.stages.intern(name)),
            after: draft.after.iter().map(|name| self.stages.intern(name)).collect(),
            label: draft.label.as_ref().map(|name| self.labels.intern(name)),
            location: draft.location.as_ref().map(|name| self.locations.intern(name)),
            deadline: draft.deadline.map(relative),
            preceding: preceding
                .map(|(job, think)| Box::new(Preceding { job: self.job_names.split(job), think: Span(*think) })),
            ..draft.set
        };
        self.rows += 1;
        self.ahead = Some((set, name));
        Ok(())
    }
}

impl Source for ImportedRows<'_> {
    fn dims(&self) -> &[Dim] {
        &self.imported.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        Ok(self.ahead.as_ref().map(|(set, _)| set))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        let Some((set, name)) = self.ahead.take() else { return Ok(None) };
        self.taken = name;
        self.advance(Some(set.submit))?;
        Ok(Some(set))
    }

    fn job_name(&self) -> JobName {
        self.taken.clone()
    }

    fn has_preceding(&self) -> bool {
        self.imported.sets.has_preceding
    }

    fn users(&self) -> &Names {
        &self.users
    }

    fn texts(&self) -> Texts<'_> {
        let ImportedRows { job_names, stages, labels, locations, .. } = self;
        Texts { job_names, stages, labels, locations }
    }
}
