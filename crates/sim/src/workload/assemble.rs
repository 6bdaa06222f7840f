//! Shared by all readers of a canonical trace: dense ids, the order of rows, and jobs with adjacent rows.
//!
//! The [`Assembler`] gives users and jobs dense ids in order of first appearance. It rejects rows that are not sorted by submit time, jobs
//! with rows that are neither adjacent nor of one instant, and preceding jobs without an earlier row. It stores one bit or one small key
//! per finished job, so that long traces can be streamed.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::Texts;
use super::names::{JobName, JobNames, Names, number_behind, split};
use plimsoll_base::units::{JobId, Time, UserId};

/// Assigns ids to jobs and users and checks a row's position in the trace.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    /// Users seen so far.
    pub users: Names,
    /// Prefixes of job names.
    pub job_names: JobNames,
    /// Stages seen so far.
    pub stages: Names,
    /// Labels seen so far.
    pub labels: Names,
    /// Locations seen so far.
    pub locations: Names,
    numbered_users: NumberedUsers,
    last_job: Option<(JobName, JobId)>,
    last_submit: Time,
    jobs: u32,
    /// Jobs that appeared at this instant: further rows of them may follow among those of others.
    instant: Instant,
    seen: SeenJobs,
}

impl Assembler {
    /// Returns the names in its rows.
    pub fn texts(&self) -> Texts<'_> {
        let Assembler { job_names, stages, labels, locations, .. } = self;
        Texts { job_names, stages, labels, locations }
    }

    /// Returns the id of a user. Errors: the reason why the name is not valid.
    #[inline]
    pub fn user(&mut self, name: &[u8]) -> Result<UserId, String> {
        match self.numbered_users.id(name) {
            Some(id) => Ok(UserId(id)),
            None => self.other_user(name),
        }
    }

    /// Returns the id of a user that is new, not numbered, or of another prefix than the user before.
    fn other_user(&mut self, name: &[u8]) -> Result<UserId, String> {
        let split = split(name).filter(|(_, number)| *number < NumberedUsers::DENSE);
        let place = split.and_then(|(prefix, number)| self.numbered_users.place(prefix, number));
        match place {
            Some(id) if *id != UNKNOWN => Ok(UserId(*id)),
            place => {
                let id = self.users.intern(text(name)?);
                if let Some(place) = place {
                    *place = id;
                }
                Ok(UserId(id))
            }
        }
    }

    /// Checks that rows are in order of submission. Errors: a description of the problem.
    #[inline]
    pub fn submitted(&mut self, submit: Time) -> Result<(), String> {
        if submit < self.last_submit {
            return Err(format!(
                "{} s is before the row above ({} s); sort the rows by submit time",
                submit.seconds(),
                self.last_submit.seconds()
            ));
        }
        if submit > self.last_submit {
            self.last_submit = submit;
            self.instant.clear();
        }
        Ok(())
    }

    /// Returns the id and the name of a job; call [`Assembler::submitted`] first. Errors: the reason why the job is not valid here.
    #[inline]
    pub fn job(&mut self, name: &[u8]) -> Result<(JobId, JobName), String> {
        if let Some((prefix, number)) = self.job_names.numbered(name)
            && self.jobs < u32::MAX
            && self.seen.insert_bit(prefix, number) == Some(true)
        {
            let (id, job) = (JobId(self.jobs), JobName::Numbered { prefix, number });
            self.jobs += 1;
            self.instant.list.push((job.clone(), id));
            self.last_job = Some((job.clone(), id));
            return Ok((id, job));
        }
        self.other_job(name)
    }

    /// Returns the id and the name of a job that has an earlier row or no bit in [`SeenJobs`].
    fn other_job(&mut self, name: &[u8]) -> Result<(JobId, JobName), String> {
        let parsed = if name.is_empty() { None } else { self.job_names.parse(name) };
        let Some(job) = parsed else { return Err(text(name).err().unwrap_or_default()) };
        if let Some((last, id)) = &self.last_job
            && *last == job
        {
            return Ok((*id, job));
        }
        let id = if self.seen.insert(&job) {
            self.jobs = self.jobs.checked_add(1).ok_or("is one job more than the 4,294,967,295 that fit")?;
            let id = JobId(self.jobs - 1);
            self.instant.list.push((job.clone(), id));
            id
        } else if let Some(id) = self.instant.get(&job) {
            id
        } else {
            return Err(format!(
                "job '{}' appeared before; rows of a job must be consecutive or have the same submit time",
                shorten(name)
            ));
        };
        self.last_job = Some((job.clone(), id));
        Ok((id, job))
    }

    /// Returns the job that precedes the job `own`, by its name. Errors: the reason why it is not valid.
    pub fn preceding(&mut self, name: &[u8], own: &JobName) -> Result<JobName, String> {
        let Some(job) = self.job_names.parse(name) else { return Err(text(name).err().unwrap_or_default()) };
        if job == *own {
            return Err(format!("'{}' is the job itself; expected a job of an earlier row", shorten(name)));
        }
        if !self.seen.contains(&job) {
            return Err(format!("no earlier row has a job '{}'; expected a job of an earlier row", shorten(name)));
        }
        Ok(job)
    }
}

/// The jobs of one instant, searched only for a row of a job that has an earlier row.
#[derive(Clone, Debug, Default)]
struct Instant {
    list: Vec<(JobName, JobId)>,
    /// Jobs that a search has moved out of `list`.
    map: HashMap<JobName, JobId>,
}

impl Instant {
    fn clear(&mut self) {
        self.list.clear();
        self.map.clear();
    }

    fn get(&mut self, job: &JobName) -> Option<JobId> {
        self.map.extend(self.list.drain(..));
        self.map.get(job).copied()
    }
}

/// Ids of users with names that consist of text and a number (`u17`), found without hashing.
#[derive(Clone, Debug, Default)]
struct NumberedUsers {
    prefixes: Vec<(Box<[u8]>, Vec<u32>)>,
    last: usize,
}

const UNKNOWN: u32 = u32::MAX;

impl NumberedUsers {
    /// Numbers below this are used as an index: at most 16 MiB per prefix.
    const DENSE: u64 = 1 << 22;
    const PREFIXES: usize = 8;

    /// Returns the id of a known user with the same prefix as the one found last.
    #[inline]
    fn id(&self, name: &[u8]) -> Option<u32> {
        let (prefix, ids) = self.prefixes.get(self.last)?;
        let number = number_behind(prefix, name)?;
        ids.get(number as usize).copied().filter(|id| *id != UNKNOWN)
    }

    /// Returns the entry for the id of a user; [`UNKNOWN`] if the user is new. `None` if there are too many prefixes.
    fn place(&mut self, prefix: &[u8], number: u64) -> Option<&mut u32> {
        if self.prefixes.get(self.last).is_none_or(|(last, _)| **last != *prefix) {
            self.last = match self.prefixes.iter().position(|(known, _)| **known == *prefix) {
                Some(at) => at,
                None if self.prefixes.len() < Self::PREFIXES => {
                    self.prefixes.push((prefix.into(), Vec::new()));
                    self.prefixes.len() - 1
                }
                None => return None,
            };
        }
        let (ids, number) = (&mut self.prefixes[self.last].1, number as usize);
        if ids.len() <= number {
            ids.resize((number + 1).next_power_of_two(), UNKNOWN);
        }
        ids.get_mut(number)
    }
}

/// Converts a name to text. Errors: it is empty or not UTF-8.
fn text(name: &[u8]) -> Result<&str, String> {
    if name.is_empty() {
        return Err("is empty; expected a name".to_owned());
    }
    std::str::from_utf8(name).map_err(|_| format!("'{}' is not UTF-8", shorten(name)))
}

/// Shortens a value for a message to at most 40 characters.
pub fn shorten(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(&value[..value.len().min(200)]);
    let short: String = text.chars().take(40).collect();
    if short.len() < value.len() && text.chars().count() >= 40 { format!("{short}...") } else { short }
}

/// The set of all jobs so far: one bit for a numbered job, a hash for any other, so that a long trace needs little memory.
#[derive(Clone, Debug, Default)]
struct SeenJobs {
    bits: Vec<Vec<u64>>,
    sparse: HashSet<(u32, u64), foldhash::fast::RandomState>,
    hashes: HashSet<(u64, u64)>,
    keys: (RandomState, RandomState),
}

/// Numbers below this have a bit each: at most 8 MiB per prefix.
const DENSE: u64 = 1 << 26;

impl SeenJobs {
    fn contains(&self, job: &JobName) -> bool {
        match job {
            JobName::Numbered { prefix, number } if *number < DENSE => {
                let word = self.bits.get(*prefix as usize).and_then(|bits| bits.get((*number / 64) as usize));
                word.is_some_and(|word| word & (1 << (*number % 64)) != 0)
            }
            JobName::Numbered { prefix, number } => self.sparse.contains(&(*prefix, *number)),
            JobName::Text(text) => self.hashes.contains(&(self.keys.0.hash_one(text), self.keys.1.hash_one(text))),
        }
    }

    /// Adds a numbered job; returns whether it is new, or `None` if it has no bit yet.
    #[inline]
    fn insert_bit(&mut self, prefix: u32, number: u64) -> Option<bool> {
        let word = self.bits.get_mut(prefix as usize)?.get_mut((number / 64) as usize)?;
        let bit = 1 << (number % 64);
        let new = *word & bit == 0;
        *word |= bit;
        Some(new)
    }

    /// Adds a job; returns whether it is new. Two different texts are confused only if 128 random bits agree.
    fn insert(&mut self, job: &JobName) -> bool {
        match job {
            JobName::Numbered { prefix, number } if *number < DENSE => {
                if let Some(new) = self.insert_bit(*prefix, *number) {
                    return new;
                }
                let at = *prefix as usize;
                if self.bits.len() <= at {
                    self.bits.resize(at + 1, Vec::new());
                }
                self.bits[at].resize((*number as usize / 64 + 1).next_power_of_two(), 0);
                self.insert_bit(*prefix, *number).unwrap_or(true)
            }
            JobName::Numbered { prefix, number } => self.sparse.insert((*prefix, *number)),
            JobName::Text(text) => self.hashes.insert((self.keys.0.hash_one(text), self.keys.1.hash_one(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_stands_together_or_shares_a_submit_time() {
        let mut rows = Assembler::default();
        let mut row = |submit: u64, job: &str| {
            rows.submitted(Time(submit)).and_then(|()| rows.job(job.as_bytes())).map(|(id, _)| id.0)
        };
        assert_eq!(row(0, "a"), Ok(0));
        assert_eq!(row(0, "b"), Ok(1));
        assert_eq!(row(0, "a"), Ok(0));
        assert_eq!(row(5, "a"), Ok(0));
        assert_eq!(row(5, "c"), Ok(2));
        assert!(row(5, "a").unwrap_err().contains("appeared before"));
        assert_eq!(row(6, "d7"), Ok(3));
        assert_eq!(row(6, "d999999999999"), Ok(4));
        assert_eq!(row(6, "e"), Ok(5));
        assert!(row(6, "b").unwrap_err().contains("appeared before"));
        assert!(row(7, "d7").unwrap_err().contains("appeared before"));
        assert!(row(7, "d999999999999").unwrap_err().contains("appeared before"));
        assert!(row(3, "f").unwrap_err().contains("before the row above"));
    }
}
