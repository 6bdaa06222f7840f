//! A lighter load: a random part of the jobs of another source, selected by a seed.
//!
//! Thinning changes neither sizes nor durations nor submit times of the kept jobs; stretching time would change all times.

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Time, UserId};

use super::names::{JobName, Names};
use super::{Source, TaskSet, Texts};

/// A source that keeps each job of another source with a given probability. The choice depends on the seed and the jobs' names alone. A job
/// that waits for a dropped job is submitted at its own submit time.
pub struct Thinned<'a> {
    source: Box<dyn Source + 'a>,
    /// Jobs with a hash of at most this value are kept.
    below: u64,
    seed: u64,
    ahead: Option<(TaskSet, JobName)>,
    taken: JobName,
    /// The source's id of the latest job, and whether it is kept.
    last: Option<(JobId, bool)>,
    users: Names,
    /// The latest instant, and the ids of the kept jobs of this instant: in the source, and in this source.
    instant: (Time, Vec<(JobId, JobId)>),
    jobs: u32,
}

impl<'a> Thinned<'a> {
    /// Keeps the share `keep` (0 to 1) of the jobs of `source`.
    pub fn new(source: Box<dyn Source + 'a>, keep: f64, seed: u64) -> Result<Thinned<'a>> {
        let below = if keep >= 1.0 { u64::MAX } else { (keep * u64::MAX as f64) as u64 };
        let mut thinned = Thinned {
            source,
            below,
            seed,
            ahead: None,
            taken: JobName::Text("".into()),
            last: None,
            users: Names::default(),
            instant: (Time::ZERO, Vec::new()),
            jobs: 0,
        };
        thinned.advance()?;
        Ok(thinned)
    }

    fn keeps(&self, name: &JobName) -> bool {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"plimsoll thin\0").update(&self.seed.to_le_bytes());
        hasher.update(self.source.job_names().text(name).as_bytes());
        let hash = hasher.finalize();
        let first = hash.as_bytes().first_chunk::<8>().expect("a digest has 32 bytes");
        u64::from_le_bytes(*first) <= self.below
    }

    fn advance(&mut self) -> Result<()> {
        while let Some(mut set) = self.source.next_set()? {
            let name = self.source.job_name();
            let keep = match self.last {
                Some((job, keep)) if job == set.job => keep,
                _ => self.keeps(&name),
            };
            self.last = Some((set.job, keep));
            if !keep {
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
            if set.preceding.as_ref().is_some_and(|preceding| !self.keeps(&preceding.job)) {
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

impl Source for Thinned<'_> {
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
