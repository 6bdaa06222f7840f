//! The canonical trace as CSV: one row per set of equal tasks, streamed.
//!
//! Columns: `job`, `user`, `submit_s`, `duration_s` (or `_ms`, `_us`), one per resource (`cpu`, `memory_gib`, `gpu`, `disk_gib`, ...), and
//! optionally, with the default in parentheses, `tasks` (1), `stage`, `after` with stages separated by `;`, `priority` (0), `gang` (false),
//! `after_job`, `think_s` (0), `label`, `location`, `stable` (false), `estimate_s` and `deadline_s`. These times may also end in `_ms` or
//! `_us`. Times are rounded to the nearest microsecond, demands up. A byte-order mark and CRLF are accepted.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::assemble::{Assembler, shorten};
use super::columns::{Columns, TraceColumn};
use super::names::{JobName, Names};
use super::{Preceding, Source, TaskSet, Texts};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::fields::Fields;
use plimsoll_base::pinned::Pinned;
use plimsoll_base::rows::trimmed;
use plimsoll_base::units::{Dim, NumberProblem, Resources, Rounding, Span, Time, decimal, digits};

/// The source of a trace's bytes.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, read again by every run, and checked to be unchanged.
    File(Pinned),
    /// Bytes already read, such as standard input.
    Bytes(PathBuf, Arc<[u8]>),
}

impl Input {
    /// Opens a path, or standard input for `-`. An input that can be read only once (standard input, a pipe) is read to its end here.
    pub fn open(path: &Path) -> Result<Input> {
        let (name, mut once): (PathBuf, Box<dyn Read + Send>) = if path == Path::new("-") {
            ("standard input".into(), Box::new(std::io::stdin()))
        } else {
            let metadata = std::fs::metadata(path).map_err(|source| Error::io(path, source))?;
            if metadata.is_file() || metadata.is_dir() {
                return Ok(Input::File(Pinned::new(path)?));
            }
            if is_device(&metadata) {
                let problem = "is a device, which never ends; expected a trace file, a pipe or - for standard input";
                return Err(Error::io(path, std::io::Error::new(std::io::ErrorKind::InvalidInput, problem)));
            }
            (path.to_owned(), Box::new(File::open(path).map_err(|source| Error::io(path, source))?))
        };
        let mut bytes = Vec::new();
        once.read_to_end(&mut bytes).map_err(|source| Error::io(&name, source))?;
        Ok(Input::Bytes(name, bytes.into()))
    }

    /// Returns the name for messages.
    pub fn path(&self) -> &Path {
        match self {
            Input::File(file) => file.path(),
            Input::Bytes(path, _) => path,
        }
    }

    /// Checks that a file is unchanged since it was opened. Errors: [`Error::Io`].
    pub fn check(&self) -> Result<()> {
        if let Input::File(file) = self { file.check() } else { Ok(()) }
    }

    /// Returns a new reader from the start.
    pub fn reader(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Input::File(file) => Box::new(file.open()?),
            Input::Bytes(_, bytes) => Box::new(Cursor::new(bytes.clone())),
        })
    }

    /// Returns the first bytes, for recognising a format.
    pub fn head(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut head = Vec::with_capacity(bytes);
        self.reader()?.take(bytes as u64).read_to_end(&mut head).map_err(|source| Error::io(self.path(), source))?;
        Ok(head)
    }

    /// Returns a digest of all bytes (BLAKE3, in hexadecimal).
    pub fn digest(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(self.reader()?).map_err(|source| Error::io(self.path(), source))?;
        self.check()?;
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// Returns whether a file is a device, such as a disk, a terminal or `/dev/zero`.
fn is_device(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// A canonical CSV trace as a [`Source`], read one row at a time.
pub struct CsvTrace {
    path: PathBuf,
    fields: Fields,
    columns: Columns,
    rows: Assembler,
    next_row: u64,
    /// The next row at `at`, and the memory for the row after it: a row is expensive to move.
    sets: [TaskSet; 2],
    at: usize,
    ended: bool,
    ahead: JobName,
    taken: JobName,
    /// `(row, number of preceding lines that are no rows)`, for each row where that number changes.
    lines: Vec<(u64, u64)>,
}

impl CsvTrace {
    /// Opens a trace with the usual resources, and reads its header.
    pub fn new(input: &Input) -> Result<CsvTrace> {
        CsvTrace::declaring(input, &[])
    }

    /// Opens a trace that may have these `resources` in addition to the usual ones, and reads its header.
    pub fn declaring(input: &Input, resources: &[String]) -> Result<CsvTrace> {
        super::unknown::require_canonical(input)?;
        let path = input.path().to_owned();
        let mut fields = Fields::new(without_mark(&path, input.reader()?)?, &path);
        let header =
            fields.read()?.filter(|header| header.iter().count() > 1 || header.iter().any(|name| !name.is_empty()));
        let Some(header) = header else {
            return Err(Error::trace(&path, 0, "", "the file is empty; expected a trace with a header"));
        };
        let names: Vec<String> = header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let columns = Columns::find(&path, names.iter().map(String::as_str), resources)?;
        let unnamed = || JobName::Text("".into());
        let mut trace = CsvTrace {
            path,
            fields,
            columns,
            rows: Assembler::default(),
            next_row: 0,
            sets: Default::default(),
            at: 0,
            ended: false,
            ahead: unnamed(),
            taken: unnamed(),
            lines: vec![(0, 2)],
        };
        trace.advance()?;
        if trace.ended {
            return Err(Error::trace(&trace.path, 1, "", "the trace has a header but no rows"));
        }
        Ok(trace)
    }

    fn line(&self, row: u64) -> u64 {
        let at = self.lines.partition_point(|(first, _)| *first <= row);
        row + self.lines[at.saturating_sub(1)].1
    }

    /// Reads the row after the next one, which becomes the next one.
    fn advance(&mut self) -> Result<()> {
        let Some(fields) = self.fields.read()? else {
            self.ended = true;
            return Ok(());
        };
        let line = fields.line;
        if self.lines.last().is_none_or(|(_, before)| self.next_row + before != line) {
            self.lines.push((self.next_row, line - self.next_row));
        }
        let free = 1 - self.at;
        let mut row = fields.iter();
        let mut parser = RowParser { columns: &self.columns, rows: &mut self.rows };
        self.ahead = match parser.parse(self.next_row, row.by_ref(), &mut self.sets[free]) {
            Ok(job) if row.ended_after(self.columns.kinds.len()) => job,
            parsed => return Err(self.columns.row_error(&self.path, line, fields.iter().count(), parsed.err())),
        };
        self.at = free;
        self.next_row += 1;
        Ok(())
    }
}

/// The content of a field: a text, which may be known to be a number.
pub trait TraceField<'f>: Copy {
    /// Returns it as text, which is empty if there is no value. Errors: it has no text form.
    fn text(self) -> std::result::Result<&'f [u8], String>;

    /// Returns whether there is no value. Errors: it has no text form.
    fn is_empty(self) -> std::result::Result<bool, String> {
        self.text().map(<[u8]>::is_empty)
    }

    /// Returns its value if that is known to be an integer from 0.
    fn integer(self) -> Option<u64> {
        None
    }

    /// Returns its value times `scale` if that is known to be an integer from 0 to 10^18.
    fn times(self, _scale: u64) -> Option<u64> {
        None
    }
}

impl<'f> TraceField<'f> for &'f [u8] {
    fn text(self) -> std::result::Result<&'f [u8], String> {
        Ok(self)
    }

    fn integer(self) -> Option<u64> {
        digits(self)
    }
}

/// Converts the fields of a row, in the order of its columns, into a task set.
pub struct RowParser<'a> {
    /// The content of each field.
    pub columns: &'a Columns,
    /// Ids, and checks of the order of rows and the adjacency of jobs.
    pub rows: &'a mut Assembler,
}

impl RowParser<'_> {
    /// Reads a row into `set` and returns the job's name. Errors: the column and its problem.
    pub fn parse<'f, F: TraceField<'f>>(
        &mut self,
        row: u64,
        fields: impl Iterator<Item = F>,
        set: &mut TaskSet,
    ) -> std::result::Result<JobName, (usize, String)> {
        (set.row, set.tasks, set.stage, set.priority) = (row, 1, None, 0);
        (set.gang, set.label, set.location, set.stable) = (false, None, None, false);
        (set.estimate, set.deadline) = (None, None);
        set.after.clear();
        let (mut after_job, mut think) = (None, None);
        let (mut job, mut submit) = ((0, &b""[..]), 0);
        for (at, field) in fields.enumerate() {
            let Some(kind) = self.columns.kinds.get(at) else { break };
            let fail = |problem: String| (at, problem);
            match *kind {
                TraceColumn::Job => job = (at, trimmed(field.text().map_err(fail)?)),
                TraceColumn::User => set.user = self.rows.user(trimmed(field.text().map_err(fail)?)).map_err(fail)?,
                TraceColumn::Submit(scale) => {
                    set.submit = Time(time(field, scale).map_err(fail)?);
                    submit = at;
                }
                TraceColumn::Duration(scale) => set.duration = Span(time(field, scale).map_err(fail)?),
                TraceColumn::Resource(dim, scale) => {
                    set.demand.0[dim] = number(field, scale, Rounding::Up, "an amount such as 1.5").map_err(fail)?;
                }
                _ if field.is_empty().map_err(fail)? => {}
                TraceColumn::Tasks => set.tasks = integer_between(field, 1, u32::MAX.into()).map_err(fail)? as u32,
                TraceColumn::Priority => set.priority = integer_between(field, 0, 9).map_err(fail)? as u8,
                TraceColumn::Gang => set.gang = truth(field).map_err(fail)?,
                TraceColumn::Stage => set.stage = Some(self.rows.stages.intern(utf8(field).map_err(fail)?)),
                TraceColumn::Label => set.label = Some(self.rows.labels.intern(utf8(field).map_err(fail)?)),
                TraceColumn::Location => set.location = Some(self.rows.locations.intern(utf8(field).map_err(fail)?)),
                TraceColumn::Estimate(scale) => set.estimate = Some(Span(time(field, scale).map_err(fail)?)),
                TraceColumn::Deadline(scale) => set.deadline = Some(Time(time(field, scale).map_err(fail)?)),
                TraceColumn::AfterJob => after_job = Some((at, trimmed(field.text().map_err(fail)?))),
                TraceColumn::Think(scale) => think = Some((at, Span(time(field, scale).map_err(fail)?))),
                TraceColumn::Stable => set.stable = truth(field).map_err(fail)?,
                TraceColumn::After => {
                    let stages = utf8(field).map_err(fail)?.split(';').map(str::trim).filter(|name| !name.is_empty());
                    set.after = stages.map(|name| self.rows.stages.intern(name)).collect();
                }
            }
        }
        self.rows.submitted(set.submit).map_err(|problem| (submit, problem))?;
        let (id, name) = self.rows.job(job.1).map_err(|problem| (job.0, problem))?;
        set.job = id;
        set.preceding = match (after_job, think) {
            (Some((at, job)), think) => {
                let job = self.rows.preceding(job, &name).map_err(|problem| (at, problem))?;
                Some(Box::new(Preceding { job, think: think.map_or(Span::ZERO, |(_, think)| think) }))
            }
            (None, Some((at, _))) => return Err((at, "is given without a job in 'after_job'".to_owned())),
            (None, None) => None,
        };
        Ok(name)
    }
}

impl Source for CsvTrace {
    fn dims(&self) -> &[Dim] {
        &self.columns.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        Ok((!self.ended).then(|| &self.sets[self.at]))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        if self.ended {
            return Ok(None);
        }
        let taken = self.at;
        std::mem::swap(&mut self.taken, &mut self.ahead);
        self.advance()?;
        let set = &mut self.sets[taken];
        let (after, preceding) = (std::mem::take(&mut set.after), set.preceding.take());
        Ok(Some(TaskSet { after, preceding, ..*set }))
    }

    fn job_name(&self) -> JobName {
        self.taken.clone()
    }

    fn has_preceding(&self) -> bool {
        self.columns.kinds.contains(&TraceColumn::AfterJob)
    }

    fn users(&self) -> &Names {
        &self.rows.users
    }

    fn texts(&self) -> Texts<'_> {
        self.rows.texts()
    }

    fn locate(&self, row: u64) -> String {
        format!("{}, line {}", self.path.display(), self.line(row))
    }
}

/// Returns a time column's value in microseconds.
#[inline]
pub(crate) fn time<'f>(field: impl TraceField<'f>, scale: u64) -> std::result::Result<u64, String> {
    number(field, scale, Rounding::Nearest, "a time from 0 to 10^12 s (31,700 years)")
}

#[inline]
fn number<'f>(
    field: impl TraceField<'f>,
    scale: u64,
    round: Rounding,
    expected: &str,
) -> std::result::Result<u64, String> {
    match field.times(scale) {
        Some(number) => Ok(number),
        None => {
            let field = field.text()?;
            decimal(field, scale, round).map_err(|problem| not_a_number(field, problem, expected))
        }
    }
}

/// Describes a field that is not a number.
#[cold]
fn not_a_number(field: &[u8], problem: NumberProblem, expected: &str) -> String {
    if field.trim_ascii().is_empty() {
        format!("is empty; expected {expected}")
    } else {
        format!("'{}' {problem}; expected {expected}", shorten(field))
    }
}

#[inline]
fn integer_between<'f>(field: impl TraceField<'f>, least: u64, most: u64) -> std::result::Result<u64, String> {
    match field.integer() {
        Some(value) if (least..=most).contains(&value) => Ok(value),
        _ => integer_in_text(field.text()?, least, most),
    }
}

fn integer_in_text(field: &[u8], least: u64, most: u64) -> std::result::Result<u64, String> {
    let text = std::str::from_utf8(field.trim_ascii()).ok();
    text.and_then(|text| text.parse::<u64>().ok())
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| format!("'{}' is not a whole number from {least} to {most}", shorten(field)))
}

fn truth<'f>(field: impl TraceField<'f>) -> std::result::Result<bool, String> {
    let field = field.text()?;
    match field.trim_ascii().to_ascii_lowercase().as_slice() {
        b"true" | b"1" | b"yes" => Ok(true),
        b"false" | b"0" | b"no" => Ok(false),
        _ => Err(format!("'{}' is not true or false", shorten(field))),
    }
}

fn utf8<'f>(field: impl TraceField<'f>) -> std::result::Result<&'f str, String> {
    let field = field.text()?;
    let text = std::str::from_utf8(field).map_err(|_| format!("'{}' is not UTF-8", shorten(field)))?;
    Ok(text.trim())
}

/// Returns the bytes after a byte-order mark, if there is one.
fn without_mark(path: &Path, mut reader: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    let mut head = Vec::with_capacity(3);
    reader.by_ref().take(3).read_to_end(&mut head).map_err(|source| Error::io(path, source))?;
    if head == b"\xef\xbb\xbf" {
        head.clear();
    }
    Ok(Box::new(Cursor::new(head).chain(reader)))
}

/// Returns the demand of a row as text, for a message.
pub fn describe(demand: &Resources, dims: &[Dim]) -> String {
    dims.iter().zip(demand.0).map(|(dim, amount)| dim.display(amount)).collect::<Vec<_>>().join(", ")
}
