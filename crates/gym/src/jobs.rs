//! The jobs of an episode, cut out of a workload.

use std::sync::Arc;

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Time, UserId};
use plimsoll_sim::workload::{JobName, JobNames, Names, Source, TaskSet, Texts, Workload};

/// Reads a source to its end. Errors: the source's.
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

/// A workload, and where the rows of its jobs stand.
pub struct JobPool {
    workload: Workload,
    /// The first row of each job, and the last of all jobs up to it.
    spans: Vec<(usize, usize)>,
}

impl JobPool {
    /// Of a whole workload, in order of submission with jobs numbered as they appear.
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

    /// How many jobs there are.
    pub fn jobs(&self) -> usize {
        self.spans.len()
    }

    /// The resources of demands.
    pub fn dims(&self) -> &[Dim] {
        &self.workload.dims
    }
}

/// Consecutive jobs of a workload, the first one submitted at 0; each is a user of its own.
pub struct Episode {
    pool: Arc<JobPool>,
    /// The rows, numbered from 0, as are the jobs, which are users as well.
    pub sets: Vec<TaskSet>,
    /// Which rows of the workload they are.
    rows: Vec<u64>,
    /// The first of the jobs in the workload.
    first: usize,
    /// The user that submits each job.
    pub users: Vec<UserId>,
}

impl Episode {
    /// The `count` jobs from `first` on. Panics: unless the pool has them, and `count` is at least one (a programmer error).
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

    /// How many jobs there are.
    pub fn jobs(&self) -> usize {
        self.users.len()
    }

    /// The name of a job in its workload.
    pub fn name(&self, job: usize) -> String {
        self.pool.workload.job_name(JobId((self.first + job) as u32))
    }

    /// The name of the user that submits a job.
    pub fn user(&self, job: usize) -> &str {
        self.pool.workload.users.name(self.users[job].0)
    }
}

/// The rows of an episode, as the engine takes them.
pub(crate) struct EpisodeRows {
    episode: Arc<Episode>,
    names: Names,
    next: usize,
}

impl EpisodeRows {
    /// From the first.
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
