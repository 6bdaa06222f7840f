//! Jobs that are submitted when another job has ended: feedback within a trace.
//!
//! A job with a [`Preceding`] job is submitted at its own submit time, or when the preceding job has ended and the think time has passed,
//! whichever is later. [`Following`] holds back the rows of such jobs; memory grows with the jobs of the source.

use std::collections::{BTreeMap, HashMap};

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, JobId, Span, Time, UserId};
use plimsoll_base::visit_values;

use super::names::{JobName, Names};
use super::{Source, TaskSet, Texts, read_again};

/// The job that must have ended before a job is submitted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Preceding {
    /// The name of the job, which has an earlier row.
    pub job: JobName,
    /// The time from the end of the preceding job to the submission.
    pub think: Span,
}

impl Preceding {
    /// Returns the error for rows of one job with different preceding jobs.
    pub(super) fn differs(place: &str) -> Error {
        let problem = "the preceding job or the think time differs from the job's earlier rows";
        Error::Mismatch { problem: format!("{place}, column 'after_job': {problem}") }
    }
}

/// A row that waits for its submission.
#[derive(serde::Serialize, serde::Deserialize)]
struct WaitingRow {
    set: TaskSet,
    name: JobName,
    /// The id of its job in the source.
    job: JobId,
}

/// A source with rows that wait until the preceding jobs have ended. Rows keep their numbers and users their ids; jobs are numbered in
/// order of submission. Memory grows with the jobs of the source.
pub struct Following<'a> {
    source: Box<dyn Source + 'a>,
    /// Number of rows taken from the source.
    read: u64,
    /// Rows with a known time of submission, by the time of their job and by their numbers.
    ready: BTreeMap<(Time, u64), WaitingRow>,
    /// Rows of each job that waits, by the name of the preceding job.
    held: HashMap<JobName, Vec<Vec<WaitingRow>>>,
    /// The end times of jobs.
    ended: HashMap<JobName, Time>,
    /// The new ids of jobs that have begun, by their ids in the source.
    numbers: HashMap<JobId, JobId>,
    /// The names of these jobs and their ids in the source, by their new ids.
    begun: HashMap<JobId, (JobName, JobId)>,
    jobs: u32,
    last: JobName,
}

impl<'a> Following<'a> {
    /// Creates a source that holds back rows of `source` until their preceding jobs have ended.
    pub fn new(source: Box<dyn Source + 'a>) -> Following<'a> {
        Following {
            source,
            read: 0,
            ready: BTreeMap::new(),
            held: HashMap::new(),
            ended: HashMap::new(),
            numbers: HashMap::new(),
            begun: HashMap::new(),
            jobs: 0,
            last: JobName::Text("".into()),
        }
    }

    /// Reads ahead until the next row to submit is known.
    fn advance(&mut self) -> Result<()> {
        while let Some(next) = self.source.peek()?.map(|set| set.submit) {
            if self.ready.first_key_value().is_some_and(|((release, _), _)| *release < next) {
                break;
            }
            self.read_instant(next)?;
        }
        let (numbers, new) = (&self.numbers, JobId(self.jobs));
        if let Some(mut first) = self.ready.first_entry() {
            let row = first.get_mut();
            row.set.job = numbers.get(&row.job).copied().unwrap_or(new);
        }
        Ok(())
    }

    /// Reads the jobs of the source at an instant. Errors: those of the source, and [`Error::Mismatch`] for rows of a job with different
    /// preceding jobs.
    fn read_instant(&mut self, now: Time) -> Result<()> {
        let mut jobs: BTreeMap<JobId, Vec<WaitingRow>> = BTreeMap::new();
        let mut last = None;
        while let Some(next) = self.source.peek()? {
            if next.submit > now && last != Some(next.job) {
                break;
            }
            let Some(set) = self.source.next_set()? else { break };
            self.read += 1;
            last = Some(set.job);
            let rows = jobs.entry(set.job).or_default();
            if rows.first().is_some_and(|first| first.set.preceding != set.preceding) {
                return Err(Preceding::differs(&self.source.locate(set.row)));
            }
            rows.push(WaitingRow { name: self.source.job_name(), job: set.job, set });
        }
        for rows in jobs.into_values() {
            match rows.first().and_then(|row| row.set.preceding.clone()) {
                None => self.release(rows, Time::ZERO),
                Some(preceding) => match self.ended.get(&preceding.job) {
                    Some(&end) => self.release(rows, end + preceding.think),
                    None => self.held.entry(preceding.job).or_default().push(rows),
                },
            }
        }
        Ok(())
    }

    /// Submits the rows of a job at their submit times. If the first row would be before `from`, all rows are delayed equally.
    fn release(&mut self, rows: Vec<WaitingRow>, from: Time) {
        let Some(first) = rows.first().map(|row| row.set.submit) else { return };
        let release = first.max(from);
        for mut row in rows {
            row.set.submit = row.set.submit + release.since(first);
            self.ready.insert((release, row.set.row), row);
        }
    }
}

impl Source for Following<'_> {
    fn dims(&self) -> &[Dim] {
        self.source.dims()
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        self.advance()?;
        Ok(self.ready.first_key_value().map(|(_, row)| &row.set))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        self.advance()?;
        let Some((_, WaitingRow { set, name, job })) = self.ready.pop_first() else { return Ok(None) };
        if self.numbers.insert(job, set.job).is_none() {
            self.jobs += 1;
            self.begun.insert(set.job, (name.clone(), job));
        }
        self.last = name;
        Ok(Some(set))
    }

    fn job_name(&self) -> JobName {
        self.last.clone()
    }

    fn users(&self) -> &Names {
        self.source.users()
    }

    fn texts(&self) -> Texts<'_> {
        self.source.texts()
    }

    fn job_finished(&mut self, job: JobId, _user: UserId, now: Time) {
        let Some((name, number)) = self.begun.remove(&job) else { return };
        self.numbers.remove(&number);
        for rows in self.held.remove(&name).unwrap_or_default() {
            let think = rows.first().and_then(|row| row.set.preceding.as_ref()).map_or(Span::ZERO, |it| it.think);
            self.release(rows, now + think);
        }
        self.ended.insert(name, now);
    }

    fn held_jobs(&self) -> u64 {
        self.held.values().map(|jobs| jobs.len() as u64).sum()
    }

    fn reacts(&self) -> bool {
        true
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        // The rows of the source below are read again.
        if self.source.reacts() { None } else { Some(self) }
    }

    fn locate(&self, row: u64) -> String {
        self.source.locate(row)
    }
}

impl Checkpoint for Following<'_> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Following { source, read, ready, held, ended, numbers, begun, jobs, last } = self;
        visit_values!(visitor; read, ready, held, ended, numbers, begun, jobs, last);
        if visitor.is_restoring() { read_again(&mut **source, *read, &mut |_| Ok(())) } else { Ok(()) }
    }
}
