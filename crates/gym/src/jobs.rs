//! The jobs of an episode, a consecutive part of a workload.
//!
//! An [`Episode`] renumbers rows, jobs and users from 0, shifts the submissions so that the first is at 0, and gives each job its own
//! user. Names and rows of the original workload remain available for messages and tables.

use std::sync::Arc;

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Time, UserId};
use plimsoll_sim::workload::{JobName, JobNames, Names, Source, TaskSet, Texts, Workload};

/// Reads a source to its end. Errors: those of the source.
pub fn all_of(source: &mut dyn Source) -> Result<Workload> {
    let mut workload = Workload { dims: source.dims().to_vec(), ..Workload::default() };
    while let Some(set) = source.next_set()? {
        if set.job.index() == workload.jobs.len() {
            workload.jobs.push(source.job_name());
        }
        workload.sets.push(set);
    }
    let texts = source.texts();
    workload.job_names = texts.job_names.clone();
    (workload.stages, workload.labels, workload.locations) =
        (texts.stages.clone(), texts.labels.clone(), texts.locations.clone());
    workload.users = source.users().clone();
    Ok(workload)
}

/// A workload, and the positions of the rows of its jobs.
pub struct JobPool {
    workload: Workload,
    /// For each job, its first row, and the last row among this job and all earlier jobs.
    spans: Vec<(usize, usize)>,
}

impl JobPool {
    /// Indexes a whole workload. Its rows are in order of submission, and jobs are numbered in order of appearance.
    pub fn new(workload: Workload) -> JobPool {
        let mut spans: Vec<(usize, usize)> = Vec::with_capacity(workload.jobs.len());
        for (row, set) in workload.sets.iter().enumerate() {
            match spans.get_mut(set.job.index()) {
                Some(span) => span.1 = row,
                None => spans.push((row, row)),
            }
        }
        let mut last = 0;
        for span in &mut spans {
            last = last.max(span.1);
            span.1 = last;
        }
        JobPool { workload, spans }
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        self.spans.len()
    }

    /// Returns the resources of the demands.
    pub fn dims(&self) -> &[Dim] {
        &self.workload.dims
    }
}

/// Consecutive jobs of a workload. The first job is submitted at 0, and each job is its own user.
pub struct Episode {
    pool: Arc<JobPool>,
    /// The rows, numbered from 0. The jobs are also numbered from 0, and a job's number is its user id.
    pub sets: Vec<TaskSet>,
    /// By row, its number in the workload.
    rows: Vec<u64>,
    /// The number of the first job in the workload.
    first: usize,
    /// The user that submits each job.
    pub users: Vec<UserId>,
}

impl Episode {
    /// Creates the episode of `count` jobs from job `first` on. Panics: if the pool has fewer jobs, or if `count` is 0 (a programmer
    /// error).
    pub fn new(pool: Arc<JobPool>, first: usize, count: usize) -> Episode {
        let (from, to) = (pool.spans[first].0, pool.spans[first + count - 1].1);
        let origin = pool.workload.sets[from].submit;
        let (mut sets, mut rows, mut users) = (Vec::new(), Vec::new(), vec![UserId(0); count]);
        for set in &pool.workload.sets[from..=to] {
            let Some(job) = set.job.index().checked_sub(first).filter(|job| *job < count) else { continue };
            users[job] = set.user;
            rows.push(set.row);
            sets.push(TaskSet {
                row: sets.len() as u64,
                job: JobId(job as u32),
                user: UserId(job as u32),
                submit: Time(set.submit.0 - origin.0),
                deadline: set.deadline.map(|deadline| Time(deadline.0.saturating_sub(origin.0))),
                ..set.clone()
            });
        }
        Episode { pool, sets, rows, first, users }
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        self.users.len()
    }

    /// Returns the name of a job in its workload.
    pub fn name(&self, job: usize) -> String {
        self.pool.workload.job_name(JobId((self.first + job) as u32))
    }

    /// Returns the name of the user that submits a job.
    pub fn user(&self, job: usize) -> &str {
        self.pool.workload.users.name(self.users[job].0)
    }
}

/// The rows of an episode as a source for the engine.
pub(crate) struct EpisodeRows {
    episode: Arc<Episode>,
    names: Names,
    next: usize,
}

impl EpisodeRows {
    /// Creates a source that begins with the first row.
    pub fn new(episode: Arc<Episode>) -> EpisodeRows {
        let mut names = Names::default();
        for job in 0..episode.jobs() {
            names.intern(&job.to_string());
        }
        EpisodeRows { episode, names, next: 0 }
    }
}

impl Source for EpisodeRows {
    fn dims(&self) -> &[Dim] {
        &self.episode.pool.workload.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        Ok(self.episode.sets.get(self.next))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        let set = self.episode.sets.get(self.next);
        self.next += usize::from(set.is_some());
        Ok(set.cloned())
    }

    fn job_name(&self) -> JobName {
        let taken = self.next.checked_sub(1).expect("a row was taken");
        let job = self.episode.first + self.episode.sets[taken].job.index();
        self.episode.pool.workload.jobs[job].clone()
    }

    fn users(&self) -> &Names {
        &self.names
    }

    fn texts(&self) -> Texts<'_> {
        let Workload { job_names, stages, labels, locations, .. } = &self.episode.pool.workload;
        Texts { job_names, stages, labels, locations }
    }

    fn job_names(&self) -> &JobNames {
        &self.episode.pool.workload.job_names
    }

    fn locate(&self, row: u64) -> String {
        let at = usize::try_from(row).ok().and_then(|row| self.episode.rows.get(row));
        format!("row {} of the workload", at.map_or(row, |row| *row) + 1)
    }
}
