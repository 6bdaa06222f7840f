//! A part of the jobs of another source: a random share, selected by a seed, or all except those of some users or with some names.
//!
//! The selection changes neither sizes nor durations nor submit times of the kept jobs, so it lowers the load.

use std::collections::HashSet;

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Time, UserId};

use super::names::{JobName, Names};
use super::{Source, TaskSet, Texts};

/// The jobs that are kept.
enum Selection {
    /// Jobs with a hash of at most `below`; the hash depends on the seed and the job's name alone.
    Share { below: u64, seed: u64 },
    /// All jobs except these.
    Without {
        users: HashSet<String>,
        jobs: HashSet<String>,
        /// The names of dropped jobs so far, if other jobs may wait for them.
        dropped: HashSet<String>,
    },
}

/// A source that keeps some jobs of another source. A job that waits for a dropped job is submitted at its own submit time.
pub struct Selected<'a> {
    source: Box<dyn Source + 'a>,
    selection: Selection,
    ahead: Option<(TaskSet, JobName)>,
    taken: JobName,
    /// The source's id of the latest job, and whether it is kept.
    last: Option<(JobId, bool)>,
    users: Names,
    /// The latest instant, and the ids of the kept jobs of this instant: in the source, and in this source.
    instant: (Time, Vec<(JobId, JobId)>),
    jobs: u32,
}

impl<'a> Selected<'a> {
    /// Keeps each job of `source` with the probability `keep` (0 to 1).
    pub fn thinned(source: Box<dyn Source + 'a>, keep: f64, seed: u64) -> Result<Selected<'a>> {
        let below = if keep >= 1.0 { u64::MAX } else { (keep * u64::MAX as f64) as u64 };
        Selected::new(source, Selection::Share { below, seed })
    }

    /// Keeps all jobs except those of some users and those with some names.
    pub fn without(
        source: Box<dyn Source + 'a>,
        users: HashSet<String>,
        jobs: HashSet<String>,
    ) -> Result<Selected<'a>> {
        Selected::new(source, Selection::Without { users, jobs, dropped: HashSet::new() })
    }

    fn new(source: Box<dyn Source + 'a>, selection: Selection) -> Result<Selected<'a>> {
        let mut selected = Selected {
            source,
            selection,
            ahead: None,
            taken: JobName::Text("".into()),
            last: None,
            users: Names::default(),
            instant: (Time::ZERO, Vec::new()),
            jobs: 0,
        };
        selected.advance()?;
        Ok(selected)
    }

    /// Returns whether a job is kept; the user is absent for a job that another one waits for.
    fn keeps(&self, name: &JobName, user: Option<UserId>) -> bool {
        let name = self.source.job_names().text(name);
        match &self.selection {
            Selection::Share { below, seed } => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(b"plimsoll thin\0").update(&seed.to_le_bytes()).update(name.as_bytes());
                let hash = hasher.finalize();
                let first = hash.as_bytes().first_chunk::<8>().expect("a digest has 32 bytes");
                u64::from_le_bytes(*first) <= *below
            }
            Selection::Without { users, jobs, dropped } => {
                let of_dropped_user = user.is_some_and(|user| users.contains(self.source.users().name(user.0)));
                !of_dropped_user && !jobs.contains(&name) && !dropped.contains(&name)
            }
        }
    }

    fn advance(&mut self) -> Result<()> {
        while let Some(mut set) = self.source.next_set()? {
            let name = self.source.job_name();
            let keep = match self.last {
                Some((job, keep)) if job == set.job => keep,
                _ => self.keeps(&name, Some(set.user)),
            };
            self.last = Some((set.job, keep));
            if !keep {
                if let Selection::Without { dropped, .. } = &mut self.selection
                    && self.source.has_preceding()
                {
                    dropped.insert(self.source.job_names().text(&name));
                }
                continue;
            }
            if self.instant.0 != set.submit {
                // Of the jobs of the previous instant, only the job of the current row can have further rows.
                self.instant.0 = set.submit;
                self.instant.1.retain(|(old, _)| *old == set.job);
            }
            let known = self.instant.1.iter().find(|(old, _)| *old == set.job).map(|(_, new)| *new);
            let job = known.unwrap_or_else(|| {
                self.jobs += 1;
                let new = JobId(self.jobs - 1);
                self.instant.1.push((set.job, new));
                new
            });
            if set.preceding.as_ref().is_some_and(|preceding| !self.keeps(&preceding.job, None)) {
                set.preceding = None;
            }
            set.user = UserId(self.users.intern(self.source.users().name(set.user.0)));
            set.job = job;
            self.ahead = Some((set, name));
            return Ok(());
        }
        self.ahead = None;
        Ok(())
    }
}

impl Source for Selected<'_> {
    fn dims(&self) -> &[Dim] {
        self.source.dims()
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        Ok(self.ahead.as_ref().map(|(set, _)| set))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        let Some((set, name)) = self.ahead.take() else { return Ok(None) };
        self.taken = name;
        self.advance()?;
        Ok(Some(set))
    }

    fn job_name(&self) -> JobName {
        self.taken.clone()
    }

    fn has_preceding(&self) -> bool {
        self.source.has_preceding()
    }

    fn users(&self) -> &Names {
        &self.users
    }

    fn texts(&self) -> Texts<'_> {
        self.source.texts()
    }

    fn locate(&self, row: u64) -> String {
        self.source.locate(row)
    }
}
