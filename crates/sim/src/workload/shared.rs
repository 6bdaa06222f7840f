//! Rows that several runs share: read once from a source, stored compactly, and replayed by each run.
//!
//! [`SharedRows::read`] stores the rows of a source until the source ends or fails, the horizon is passed, or no memory is left.
//! [`Replayed`] yields the stored rows. If a run needs more rows than are stored, or the location of a row, it opens the original source
//! again. Rows, ids, names and errors are therefore the same as those of the original source.

use std::collections::HashMap;

use super::following::Preceding;
use super::names::{JobName, JobNames, Names};
use super::{Source, TaskSet, Texts};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Span, Time, UserId};

/// Rows per chunk. Memory is reserved by chunk.
const CHUNK: usize = 1 << 12;

/// The values that differ in nearly every row.
#[derive(Clone, Copy, Debug)]
struct Row {
    row: u64,
    submit: Time,
    duration: Span,
    job: JobId,
    user: UserId,
    tasks: u32,
    /// The index of its [`Shape`].
    shape: u32,
}

/// The values that many rows have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shape {
    stage: Option<u32>,
    after: Vec<u32>,
    priority: u8,
    gang: bool,
    label: Option<u32>,
    location: Option<u32>,
    stable: bool,
}

/// Successive rows. A column of optional values ends at the last value that is present.
#[derive(Debug)]
struct Chunk {
    rows: Vec<Row>,
    /// The demands of each row, in the order of the dimensions.
    demands: Vec<u64>,
    estimates: Vec<Option<Span>>,
    deadlines: Vec<Option<Time>>,
    preceding: Vec<Option<Box<Preceding>>>,
}

impl Chunk {
    fn new(dims: usize) -> Chunk {
        Chunk {
            rows: Vec::with_capacity(CHUNK),
            demands: Vec::with_capacity(CHUNK * dims),
            estimates: Vec::new(),
            deadlines: Vec::new(),
            preceding: Vec::new(),
        }
    }

    /// Returns the number of bytes of a chunk without optional values.
    fn bytes(dims: usize) -> usize {
        CHUNK * (size_of::<Row>() + dims * size_of::<u64>())
    }

    /// Returns the number of bytes of the optional values.
    fn optional_bytes(&self) -> usize {
        let Chunk { estimates, deadlines, preceding, .. } = self;
        let names = preceding.iter().flatten().map(|preceding| size_of::<Preceding>() + text_bytes(&preceding.job));
        size_of_val(&**estimates) + size_of_val(&**deadlines) + size_of_val(&**preceding) + names.sum::<usize>()
    }
}

/// Returns the number of bytes that a name occupies outside of [`JobName`].
fn text_bytes(name: &JobName) -> usize {
    if let JobName::Text(text) = name { text.len() } else { 0 }
}

/// Stores a value at position `at` of a column of optional values.
fn put<T: Clone>(column: &mut Vec<Option<T>>, at: usize, value: Option<T>) {
    if value.is_some() {
        column.resize(at, None);
        column.push(value);
    }
}

/// Returns the value at position `at` of a column of optional values.
fn value<T: Clone>(column: &[Option<T>], at: usize) -> Option<T> {
    column.get(at).cloned().flatten()
}

/// The first rows of a source, or all of them.
#[derive(Debug)]
pub struct SharedRows {
    dims: Vec<Dim>,
    chunks: Vec<Chunk>,
    shapes: Vec<Shape>,
    /// Names of jobs, indexed by [`JobId`].
    jobs: Vec<JobName>,
    users: Names,
    job_names: JobNames,
    stages: Names,
    labels: Names,
    locations: Names,
    has_preceding: bool,
    /// The number of rows, and the number of their tasks.
    rows: usize,
    tasks: u64,
    is_complete: bool,
}

impl SharedRows {
    /// Reads a source from its start. The rows of the source must not depend on the ends of jobs ([`Source::job_finished`]).
    ///
    /// Reading stops at the first row that is submitted after `until`, unless rows may wait for other jobs. It also stops at the first
    /// error of the source; a run that reaches this row receives the error from its own source. `reserve` is called with the number of
    /// bytes of each chunk before rows are written to it; if it returns `false`, the result is `None`. Errors: those of `reserve`.
    pub fn read(
        source: &mut dyn Source,
        until: Time,
        reserve: &mut dyn FnMut(u64) -> Result<bool>,
    ) -> Result<Option<SharedRows>> {
        let until = if source.has_preceding() { Time::NEVER } else { until };
        let mut reader = Reader::new(source.dims().to_vec());
        loop {
            if reader.rows.rows.is_multiple_of(CHUNK) && !reserve(reader.start_chunk(source))? {
                return Ok(None);
            }
            match source.next_set() {
                Ok(Some(set)) => {
                    let submit = set.submit;
                    reader.push(set, source);
                    if submit > until {
                        break;
                    }
                }
                Ok(None) => {
                    reader.rows.is_complete = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let Reader { mut rows, .. } = reader;
        let texts = source.texts();
        rows.has_preceding = source.has_preceding();
        (rows.users, rows.job_names) = (source.users().clone(), texts.job_names.clone());
        (rows.stages, rows.labels) = (texts.stages.clone(), texts.labels.clone());
        rows.locations = texts.locations.clone();
        Ok(Some(rows))
    }

    /// Returns the number of tasks, if all rows are stored.
    pub fn tasks(&self) -> Option<u64> {
        self.is_complete.then_some(self.tasks)
    }

    /// Returns a source that starts from the beginning; `open` opens the original source if it is needed.
    pub fn source<'a>(&'a self, open: impl Fn() -> Result<Box<dyn Source + 'a>> + Send + 'a) -> Replayed<'a> {
        let last = JobId(0);
        Replayed {
            rows: self,
            open: Box::new(open),
            next: 0,
            ahead: TaskSet::default(),
            is_ahead: false,
            last,
            rest: None,
        }
    }

    /// Copies a stored row into `set`. Returns whether there is such a row.
    fn copy(&self, at: usize, set: &mut TaskSet) -> bool {
        let Some(chunk) = self.chunks.get(at / CHUNK) else { return false };
        let (at, dims) = (at % CHUNK, self.dims.len());
        let Some(row) = chunk.rows.get(at) else { return false };
        let shape = &self.shapes[row.shape as usize];
        (set.row, set.job, set.user, set.tasks) = (row.row, row.job, row.user, row.tasks);
        (set.submit, set.duration) = (row.submit, row.duration);
        set.demand.0[..dims].copy_from_slice(&chunk.demands[at * dims..][..dims]);
        (set.stage, set.priority, set.gang) = (shape.stage, shape.priority, shape.gang);
        (set.label, set.location, set.stable) = (shape.label, shape.location, shape.stable);
        set.after.clone_from(&shape.after);
        (set.estimate, set.deadline) = (value(&chunk.estimates, at), value(&chunk.deadlines, at));
        set.preceding = value(&chunk.preceding, at);
        true
    }
}

/// Rows that are being stored.
struct Reader {
    rows: SharedRows,
    /// The index of each shape.
    numbers: HashMap<Shape, u32>,
    /// The index of the latest shape.
    last: u32,
    /// The numbers of jobs, shapes, users and other names for which memory is reserved.
    reserved: [usize; 4],
}

impl Reader {
    fn new(dims: Vec<Dim>) -> Reader {
        let rows = SharedRows {
            dims,
            chunks: Vec::new(),
            shapes: vec![Shape::default()],
            jobs: Vec::new(),
            users: Names::default(),
            job_names: JobNames::default(),
            stages: Names::default(),
            labels: Names::default(),
            locations: Names::default(),
            has_preceding: false,
            rows: 0,
            tasks: 0,
            is_complete: false,
        };
        Reader { rows, numbers: HashMap::from([(Shape::default(), 0)]), last: 0, reserved: [0; 4] }
    }

    /// Starts a chunk. Returns the number of bytes of the chunk plus those of all other values stored since the previous chunk was
    /// started.
    fn start_chunk(&mut self, source: &dyn Source) -> u64 {
        /// The number of bytes of a name in [`Names`]: its end position, and its entry in the hash table including free entries.
        const NAME: usize = 24;
        let (rows, texts) = (&mut self.rows, source.texts());
        let [jobs, shapes, users, others] = self.reserved;
        let known = texts.stages.len() + texts.labels.len() + texts.locations.len();
        self.reserved = [rows.jobs.len(), rows.shapes.len(), source.users().len(), known];
        // A growing list may have as many free places as entries.
        let jobs: usize = rows.jobs[jobs..].iter().map(|job| 2 * size_of::<JobName>() + text_bytes(job)).sum();
        // Each shape is stored in the list and in the map.
        let after = |shape: &Shape| size_of_val(&*shape.after);
        let shapes: usize = rows.shapes[shapes..].iter().map(|shape| 2 * (size_of::<Shape>() + after(shape))).sum();
        let users: usize = source.users().iter().skip(users).map(|name| name.len() + NAME).sum();
        let others = (known - others) * 2 * NAME;
        let optional = rows.chunks.last().map_or(0, Chunk::optional_bytes);
        let dims = rows.dims.len();
        rows.chunks.push(Chunk::new(dims));
        (jobs + shapes + users + others + optional + Chunk::bytes(dims)) as u64
    }

    fn push(&mut self, set: TaskSet, source: &dyn Source) {
        let TaskSet { row, job, user, submit, duration, tasks, demand, .. } = set;
        let TaskSet { stage, after, priority, gang, label, location, stable, .. } = set;
        let shape = self.shape(Shape { stage, after, priority, gang, label, location, stable });
        let rows = &mut self.rows;
        if job.index() == rows.jobs.len() {
            rows.jobs.push(source.job_name());
        }
        let at = rows.rows % CHUNK;
        rows.rows += 1;
        rows.tasks += u64::from(tasks);
        let chunk = rows.chunks.last_mut().expect("a chunk was started before its first row");
        chunk.rows.push(Row { row, submit, duration, job, user, tasks, shape });
        chunk.demands.extend_from_slice(&demand.0[..rows.dims.len()]);
        put(&mut chunk.estimates, at, set.estimate);
        put(&mut chunk.deadlines, at, set.deadline);
        put(&mut chunk.preceding, at, set.preceding);
    }

    /// Returns the index of a shape.
    fn shape(&mut self, shape: Shape) -> u32 {
        let shapes = &mut self.rows.shapes;
        if shapes[self.last as usize] != shape {
            // Memory is exhausted before there are 2^32 shapes.
            self.last = *self.numbers.entry(shape).or_insert_with_key(|shape| {
                shapes.push(shape.clone());
                shapes.len() as u32 - 1
            });
        }
        self.last
    }
}

/// Replays [`SharedRows`], and continues with the original source after them.
pub struct Replayed<'a> {
    rows: &'a SharedRows,
    open: Box<dyn Fn() -> Result<Box<dyn Source + 'a>> + Send + 'a>,
    /// The number of stored rows that have been taken.
    next: usize,
    /// The next stored row, if `is_ahead`. Its memory is reused, because a row is expensive to move.
    ahead: TaskSet,
    is_ahead: bool,
    /// The job of the row taken last.
    last: JobId,
    /// The original source, at the first row that is not stored.
    rest: Option<Box<dyn Source + 'a>>,
}

impl<'a> Replayed<'a> {
    /// Copies the next stored row, unless it has been copied. Returns whether there is a next row.
    fn advance(&mut self) -> bool {
        self.is_ahead = self.is_ahead || self.rows.copy(self.next, &mut self.ahead);
        self.is_ahead
    }

    /// Returns the original source if all stored rows have been taken and the source has more rows. Errors: those of the source.
    fn rest(&mut self) -> Result<Option<&mut Box<dyn Source + 'a>>> {
        if self.next == self.rows.rows && !self.rows.is_complete && self.rest.is_none() {
            let mut rest = (self.open)()?;
            for _ in 0..self.next {
                rest.next_set()?;
            }
            self.rest = Some(rest);
        }
        Ok(self.rest.as_mut())
    }
}

impl Source for Replayed<'_> {
    fn dims(&self) -> &[Dim] {
        &self.rows.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        if self.advance() {
            return Ok(Some(&self.ahead));
        }
        self.rest()?.map_or(Ok(None), |rest| rest.peek())
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        if !self.advance() {
            return self.rest()?.map_or(Ok(None), |rest| rest.next_set());
        }
        self.is_ahead = false;
        self.next += 1;
        let set = &mut self.ahead;
        self.last = set.job;
        let (after, preceding) = (std::mem::take(&mut set.after), set.preceding.take());
        Ok(Some(TaskSet { after, preceding, ..*set }))
    }

    fn job_name(&self) -> JobName {
        self.rest.as_ref().map_or_else(|| self.rows.jobs[self.last.index()].clone(), |rest| rest.job_name())
    }

    fn users(&self) -> &Names {
        self.rest.as_ref().map_or(&self.rows.users, |rest| rest.users())
    }

    fn texts(&self) -> Texts<'_> {
        let SharedRows { job_names, stages, labels, locations, .. } = self.rows;
        self.rest.as_ref().map_or(Texts { job_names, stages, labels, locations }, |rest| rest.texts())
    }

    fn has_preceding(&self) -> bool {
        self.rows.has_preceding
    }

    fn locate(&self, row: u64) -> String {
        // Only errors need locations, so the original source is rarely read again.
        let Ok(mut source) = (self.open)() else { return format!("row {row}") };
        while matches!(source.peek(), Ok(Some(set)) if set.row < row) && source.next_set().is_ok() {}
        source.locate(row)
    }
}

#[cfg(test)]
mod tests;
