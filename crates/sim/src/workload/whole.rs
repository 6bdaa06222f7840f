//! A workload in memory, as importers and generators create it, and the quality of its import.
//!
//! [`Workload::finish`] sorts and renumbers the rows so that the workload equals the workload that is read back from its written trace;
//! [`InMemory`] replays it. [`Quality`] counts every row that an import dropped or repaired, by reason.

use std::collections::BTreeMap;

use super::names::{JobName, JobNames, Names};
use super::{Source, TaskSet, Texts};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, JobId, UserId};

/// The changes that an importer or a generator made to its input, for `trace validate` and for provenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// The format's name (`swim`, `alibaba-2017`, ...) or the generator's name.
    pub format: String,
    /// Number of rows read, without the header and comments.
    pub rows_in: u64,
    /// Number of dropped rows, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// The first dropped row for each reason: its line and, if a value is wrong, the problem.
    pub first_dropped: BTreeMap<String, (u64, String)>,
    /// Number of rows kept after a repair, by reason.
    pub repaired: BTreeMap<String, u64>,
    /// Named assumptions and their values, in the order of the documentation.
    pub assumptions: Vec<(String, String)>,
    /// Other information for the user.
    pub warnings: Vec<String>,
}

impl Quality {
    /// The prefix of reasons for dropped rows with impossible values.
    const UNUSABLE: &str = "unusable ";

    /// Counts a dropped row, and stores its line if it is the first for this reason.
    pub fn drop_row(&mut self, reason: &str, line: u64) {
        self.drop_with(reason.to_owned(), line, String::new());
    }

    fn drop_with(&mut self, reason: String, line: u64, problem: String) {
        self.first_dropped.entry(reason.clone()).or_insert((line, problem));
        *self.dropped.entry(reason).or_default() += 1;
    }

    /// Counts a row that was read, and drops it if it has an impossible value; with `strict`, returns the error instead.
    pub fn count_row(&mut self, read: Result<()>, strict: bool) -> Result<()> {
        self.rows_in += 1;
        match read {
            Err(Error::Trace { line, column, problem, .. }) if !strict => {
                let what = if column.is_empty() { "row" } else { &column };
                self.drop_with(format!("{}{what}", Self::UNUSABLE), line, problem);
                Ok(())
            }
            read => read,
        }
    }

    /// Returns the number of rows that were dropped because of impossible values. Also returns the column, line and problem of the first
    /// of these rows.
    pub fn unusable(&self) -> (u64, Option<(&str, u64, &str)>) {
        let rows = self.dropped.iter().filter(|(reason, _)| reason.starts_with(Self::UNUSABLE)).map(|(_, rows)| rows);
        let first = self
            .first_dropped
            .iter()
            .filter_map(|(reason, at)| Some((reason.strip_prefix(Self::UNUSABLE)?, at.0, at.1.as_str())));
        (rows.sum(), first.min_by_key(|(_, line, _)| *line))
    }

    /// Counts a row that was kept after a repair.
    pub fn repair_row(&mut self, reason: &str) {
        *self.repaired.entry(reason.to_owned()).or_default() += 1;
    }
}

/// Task sets with their names, in order of submission after [`Workload::finish`].
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The resource dimensions of every demand.
    pub dims: Vec<Dim>,
    /// The task sets.
    pub sets: Vec<TaskSet>,
    /// Names of jobs, indexed by [`JobId`].
    pub jobs: Vec<JobName>,
    /// The prefixes of the names of jobs.
    pub job_names: JobNames,
    /// Names of users.
    pub users: Names,
    /// Names of stages.
    pub stages: Names,
    /// Names of labels.
    pub labels: Names,
    /// Names of locations.
    pub locations: Names,
    /// The report on its import, or the assumptions of its generator.
    pub quality: Quality,
}

impl Workload {
    /// Adds a job and returns its id; the caller ensures that names are unique.
    pub fn job(&mut self, name: &str) -> JobId {
        self.jobs.push(self.job_names.split(name));
        JobId(u32::try_from(self.jobs.len() - 1).expect("fewer than 2^32 jobs"))
    }

    /// Returns the name of a job. Panics: if there is no such job.
    pub fn job_name(&self, job: JobId) -> String {
        self.job_names.text(&self.jobs[job.index()])
    }

    /// Sorts the sets by submit time with a stable sort, so that rows of a job with equal submit times stay in order. Numbers the rows,
    /// and renumbers jobs and users in order of first appearance, as a reader of the written trace does.
    pub fn finish(mut self) -> Workload {
        self.sets.sort_by_key(|set| set.submit);
        let mut old_jobs: Vec<Option<JobName>> = self.jobs.into_iter().map(Some).collect();
        let (mut jobs, mut users) = (Vec::new(), Names::default());
        let mut new_job: Vec<Option<JobId>> = vec![None; old_jobs.len()];
        let mut new_user: Vec<Option<UserId>> = vec![None; self.users.len()];
        for (row, set) in self.sets.iter_mut().enumerate() {
            set.row = row as u64;
            set.job = *new_job[set.job.index()].get_or_insert_with(|| {
                jobs.extend(old_jobs[set.job.index()].take());
                JobId(jobs.len() as u32 - 1)
            });
            let old = set.user;
            set.user = *new_user[old.index()].get_or_insert_with(|| UserId(users.intern(self.users.name(old.0))));
        }
        self.jobs = jobs;
        self.users = users;
        self
    }

    /// Returns a source that replays the workload.
    pub fn source(&self) -> InMemory<'_> {
        InMemory { workload: self, next: 0 }
    }
}

/// Replays a [`Workload`].
#[derive(Clone, Debug)]
pub struct InMemory<'a> {
    workload: &'a Workload,
    next: usize,
}

impl Source for InMemory<'_> {
    fn dims(&self) -> &[Dim] {
        &self.workload.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        Ok(self.workload.sets.get(self.next))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        let set = self.workload.sets.get(self.next);
        self.next += usize::from(set.is_some());
        Ok(set.cloned())
    }

    fn job_name(&self) -> JobName {
        let taken = self.next.checked_sub(1).expect("a row was taken");
        self.workload.jobs[self.workload.sets[taken].job.index()].clone()
    }

    fn has_preceding(&self) -> bool {
        self.workload.sets.iter().any(|set| set.preceding.is_some())
    }

    fn users(&self) -> &Names {
        &self.workload.users
    }

    fn texts(&self) -> Texts<'_> {
        let Workload { job_names, stages, labels, locations, .. } = self.workload;
        Texts { job_names, stages, labels, locations }
    }
}
