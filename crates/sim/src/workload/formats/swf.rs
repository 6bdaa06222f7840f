//! The Standard Workload Format of the Parallel Workloads Archive: one row per job of a parallel machine.
//!
//! A file has header comments that begin with `;`, then rows of 18 fields separated by blanks. -1 means unknown. A job of P processors
//! becomes one task that demands P cores ([`SwfParallel::OneTask`]) or a gang of P tasks of one core. Rows with status 2 to 4 (parts of a
//! job that was swapped out) repeat a part of the job's first row, and are dropped. A failed or cancelled job (status 0 or 5) is kept if
//! it ran. Header counts are not trusted. Files that deviate from the standard (more fields, epoch times, memory in bytes) are read with a
//! warning.
//!
//! A job with a preceding job (field 17) is submitted when that job has ended and the think time (field 18) has passed.
//!
//! Not modelled: queues and partitions (fields 15 and 16). Source: Feitelson, Tsafrir and Krakov, JPDC 2014; the archive's definition of
//! the format, version 2.2.

use std::io::{BufRead, BufReader};

use csv::ByteRecord;

mod links;
mod machine;

use super::detect::are_numbers;
use super::{FirstNames, FormatRow, Tenants, dim};
use crate::workload::{Input, TaskSet, Workload};
use links::Link;
use machine::{Machine, Size};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputColumn, InputRow};
use plimsoll_base::units::{Resources, Rounding, Span, Time, US_PER_S, Unit, UserId};

pub(super) static ROW: FormatRow = FormatRow {
    about: "Standard Workload Format: jobs of a parallel machine",
    layout: "18 fields, ';' comments",
    source: "Parallel Workloads Archive; Feitelson, Tsafrir and Krakov, JPDC 2014",
    example: "1 0 5 14 8 -1 9 64 -1 -1 1 7 1 -1 -1 -1 -1 -1\n2 1 -1 0 4 -1 -1 -1 -1 9 0 1 1 1 1 1 1 1\n",
    columns: &[Tenants::Column],
    recognises: |head| {
        let is_row = |words: &[&[u8]]| words.len() >= 18 && are_numbers(&words[..16]);
        // A line of column names may precede the rows.
        let names = |words: &[&[u8]]| words.len() >= 18 && !words.iter().any(|word| are_numbers(&[word]));
        let (first, second) = (head.words(), head.words_of_second());
        head.begins(b';') || is_row(&first) || (names(&first) && is_row(&second))
    },
    read: |input, options, tenants| read(input, &options.swf, options.strict, tenants),
};

/// The conversion of a job of P processors into tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwfParallel {
    /// One task that demands P cores; it needs a machine of that size, or a pooled cluster.
    #[default]
    OneTask,
    /// P tasks of one core that start together.
    Gang,
}

/// The condition for memory to be a dimension of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwfMemory {
    /// Memory is a dimension if every kept row has it (requested or, if unknown, used).
    #[default]
    Complete,
    /// Memory is a dimension if some row has it. The other rows demand no memory, and are counted.
    Partial,
    /// Memory is never a dimension.
    Ignore,
}

/// The scope of the memory fields (7 and 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwfMemoryOf {
    /// One processor, as the standard defines.
    #[default]
    Processor,
    /// The whole job.
    Job,
}

/// The field that gives the processors of a job; the other field is used for rows where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwfProcessors {
    /// The requested processors (field 8).
    #[default]
    Requested,
    /// The allocated processors (field 5).
    Allocated,
}

/// Whether jobs wait for their preceding jobs (fields 17 and 18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwfDependencies {
    /// A job is submitted when its preceding job has ended and the think time has passed, but not before its submit time.
    #[default]
    Follow,
    /// Every job is submitted at its submit time.
    Ignore,
}

/// The unit of the memory fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwfMemoryUnit {
    /// Kilobytes as in the standard, unless some row would then request more than 256 GiB per processor (then bytes).
    #[default]
    Auto,
    /// 1024 bytes.
    Kib,
    /// Bytes.
    Byte,
}

/// Options for reading parallel jobs and their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwfOptions {
    /// The conversion of a job of P processors into tasks.
    pub parallel: SwfParallel,
    /// The condition for memory to be a dimension.
    pub memory: SwfMemory,
    /// The scope of the memory fields.
    pub memory_of: SwfMemoryOf,
    /// The unit of memory.
    pub memory_unit: SwfMemoryUnit,
    /// The number of processors that a job demands.
    pub processors: SwfProcessors,
    /// Whether jobs wait for their preceding jobs.
    pub dependencies: SwfDependencies,
}

const JOB: InputColumn<'_> = InputColumn::new(0, "job_number");
const SUBMIT: InputColumn<'_> = InputColumn::new(1, "submit_time");
const WAIT: InputColumn<'_> = InputColumn::new(2, "wait_time");
const RUN: InputColumn<'_> = InputColumn::new(3, "run_time");
const ALLOCATED: InputColumn<'_> = InputColumn::new(4, "allocated_processors");
const USED_MEMORY: InputColumn<'_> = InputColumn::new(6, "used_memory");
const REQUESTED: InputColumn<'_> = InputColumn::new(7, "requested_processors");
const ESTIMATE: InputColumn<'_> = InputColumn::new(8, "requested_time");
const REQUESTED_MEMORY: InputColumn<'_> = InputColumn::new(9, "requested_memory");
const STATUS: InputColumn<'_> = InputColumn::new(10, "status");
/// The user of rows without one.
const UNKNOWN_USER: &str = "unknown";

const USER: InputColumn<'_> = InputColumn::new(11, "user_id");
const PRECEDING: InputColumn<'_> = InputColumn::new(16, "preceding_job");
const THINK: InputColumn<'_> = InputColumn::new(17, "think_time");

/// Submit times of at least this value (16 years) are taken as seconds since 1970, not since the log's start.
const EPOCH_S: u64 = 500_000_000;

/// The largest plausible memory per processor in KiB (256 GiB); larger values mean that the field is in bytes.
const KIB_MOST: u128 = 1 << 28;

/// The largest memory of a job, in MiB, so that sums stay within 64 bits.
const MIB_MOST: u128 = 1_000_000_000_000_000;

fn read(input: &Input, options: &SwfOptions, strict: bool, tenants: Tenants) -> Result<Workload> {
    let path = input.path();
    let mut input = BufReader::new(input.reader()?);
    let (mut log, mut line, mut text, mut record) = (Log::new(options, tenants), 0, Vec::new(), ByteRecord::new());
    loop {
        text.clear();
        if input.read_until(b'\n', &mut text).map_err(|source| Error::io(path, source))? == 0 {
            break;
        }
        line += 1;
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii();
        if let Some(comment) = text.strip_prefix(b";") {
            log.comment(comment);
        } else if !text.is_empty() {
            record.clear();
            let fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
            fields.for_each(|field| record.push_field(field));
            let read = log.row(&InputRow { path, line, record: &record });
            log.workload.quality.count_row(read, strict)?;
        }
    }
    Ok(log.settle())
}

/// The log read so far. Values that can only be determined once all rows are known are stored in separate lists, by set.
struct Log<'a> {
    options: &'a SwfOptions,
    tenants: Tenants,
    workload: Workload,
    seen: FirstNames,
    header: bool,
    machine: Machine,
    fields_most: usize,
    waits_known: u64,
    /// The size of each set.
    sizes: Vec<Size>,
    /// The job number of each set.
    numbers: Vec<u64>,
    /// The preceding job of each set.
    links: Vec<Link>,
}

impl<'a> Log<'a> {
    fn new(options: &'a SwfOptions, tenants: Tenants) -> Log<'a> {
        Log {
            options,
            tenants,
            workload: Workload::default(),
            seen: FirstNames::default(),
            header: false,
            machine: Machine::default(),
            fields_most: 0,
            waits_known: 0,
            sizes: Vec::new(),
            numbers: Vec::new(),
            links: Vec::new(),
        }
    }

    fn comment(&mut self, comment: &[u8]) {
        self.header = true;
        self.machine.comment(comment);
    }

    fn row(&mut self, row: &InputRow<'_>) -> Result<()> {
        const SECONDS: &str = "seconds, or -1 if unknown";
        const COUNT: &str = "a whole number, or -1 if unknown";
        if row.fields() < 18 {
            return row.expect_fields(18..=18, "18 separated by blanks");
        }
        self.fields_most = self.fields_most.max(row.fields());
        let number = row.integer(JOB, "a job number")?;
        let submit = known(row, SUBMIT, US_PER_S, Rounding::Nearest, SECONDS)?;
        let run = known(row, RUN, US_PER_S, Rounding::Nearest, SECONDS)?;
        // A value of zero means that there is no estimate.
        let estimate = known(row, ESTIMATE, US_PER_S, Rounding::Nearest, SECONDS)?.filter(|&time| time > 0).map(Span);
        self.waits_known += u64::from(known(row, WAIT, US_PER_S, Rounding::Nearest, SECONDS)?.is_some());
        let (requested, allocated) = (count(row, REQUESTED, COUNT)?, count(row, ALLOCATED, COUNT)?);
        let [requested, allocated] = [requested, allocated].map(|procs| procs.filter(|&procs| procs > 0));
        let procs = match self.options.processors {
            SwfProcessors::Requested => requested.or(allocated),
            SwfProcessors::Allocated => allocated.or(requested),
        };
        let differs = requested.zip(allocated).is_some_and(|(requested, allocated)| requested != allocated);
        let memory = match known(row, REQUESTED_MEMORY, 1024, Rounding::Up, "kilobytes, or -1 if unknown")? {
            Some(memory) if memory > 0 => Some(memory),
            _ => known(row, USED_MEMORY, 1024, Rounding::Up, "kilobytes, or -1 if unknown")?.filter(|&used| used > 0),
        };
        let status = count(row, STATUS, "a status from 0 to 5, or -1 if unknown")?;
        let user = count(row, USER, COUNT)?;
        let reason = match (status, submit, run, procs) {
            (Some(6..), ..) => {
                return Err(row.wrong(STATUS, "is not a status", "0 to 5, or -1 if unknown"));
            }
            (Some(2..=4), ..) => "part of a job that was swapped out (status 2 to 4)",
            (_, None, ..) => "submit time unknown",
            (_, _, None, _) => "run time unknown",
            (_, _, _, None) => "processors unknown",
            (Some(0 | 5), _, Some(0), _) => "failed or cancelled before it ran (status 0 or 5)",
            (_, Some(submit), Some(run), Some(procs)) => {
                let procs = u32::try_from(procs).map_err(|_| {
                    row.error("", format!("{procs} processors are too many; expected at most {}", u32::MAX))
                })?;
                let size = Size { procs, memory, differs };
                if size.memory_of_job(self.options.memory_of) >> 20 > MIB_MOST {
                    let problem = "is too large; expected memory that a machine could have";
                    return Err(row.error(REQUESTED_MEMORY.name, problem));
                }
                self.seen.check(row, JOB, &number.to_string())?;
                let set =
                    TaskSet { submit: Time(submit), duration: Span(run), tasks: 1, estimate, ..TaskSet::default() };
                self.add_row(number, user, set, size);
                self.links.push(Link::read(row));
                return Ok(());
            }
        };
        self.workload.quality.drop_row(reason, row.line);
        Ok(())
    }

    fn add_row(&mut self, number: u64, user: Option<u64>, set: TaskSet, size: Size) {
        let job = self.workload.job(&number.to_string());
        let user = match (self.tenants, user) {
            (Tenants::Column, Some(user)) => user.to_string(),
            (Tenants::Column, None) => UNKNOWN_USER.to_owned(),
            _ => number.to_string(),
        };
        let user = UserId(self.workload.users.intern(&user));
        self.workload.sets.push(TaskSet { job, user, ..set });
        self.sizes.push(size);
        self.numbers.push(number);
    }

    /// Sets the values that depend on the whole log: the clock's origin, the preceding jobs, the memory's unit and the demands.
    fn settle(mut self) -> Workload {
        self.warn();
        self.origin();
        self.link();
        let (options, memory) = (self.options, self.memory());
        let workload = &mut self.workload;
        workload.dims = vec![dim("cpu", Unit::Milli)];
        workload.dims.extend(memory.is_some().then(|| dim("memory", Unit::Mebibyte)));
        for (set, size) in workload.sets.iter_mut().zip(&self.sizes) {
            let (tasks, per_task) = match options.parallel {
                SwfParallel::OneTask => (1, size.procs),
                SwfParallel::Gang => (size.procs, 1),
            };
            (set.tasks, set.gang) = (tasks, tasks > 1);
            let mut demand = Resources::ZERO;
            demand[0] = u64::from(per_task) * 1000;
            if let Some(per_byte) = memory {
                if size.memory.is_none() {
                    workload.quality.repair_row("memory unknown: no demand");
                }
                let bytes = size.memory_of_job(options.memory_of);
                let mib = bytes.div_ceil((per_byte << 20) * u128::from(tasks));
                demand[1] = u64::try_from(mib).expect("rows that demand more than MIB_MOST are refused");
            }
            set.demand = demand;
        }
        let parallel = match options.parallel {
            SwfParallel::OneTask => "one task of P cores",
            SwfParallel::Gang => "a gang of P tasks of one core",
        };
        self.assume("swf.parallel", parallel.to_owned());
        let (kept, estimated) =
            (self.sizes.len(), self.workload.sets.iter().filter(|set| set.estimate.is_some()).count());
        self.assume("swf.estimates", format!("requested time, which {estimated} of {kept} kept rows have"));
        self.processors();
        for (name, value) in self.machine.named() {
            self.assume(&format!("swf.header.{name}"), value.to_string());
        }
        let exceeding = self.machine.exceeded(&self.sizes, options, memory);
        self.workload.quality.warnings.extend(exceeding);
        self.workload
    }

    fn assume(&mut self, name: &str, value: String) {
        self.workload.quality.assumptions.push((name.to_owned(), value));
    }

    /// Records which number of processors is used, and for how many rows the other number differs.
    fn processors(&mut self) {
        let reading = match self.options.processors {
            SwfProcessors::Requested => "requested, else allocated",
            SwfProcessors::Allocated => "allocated, else requested",
        };
        let (kept, differ) = (self.sizes.len(), self.sizes.iter().filter(|size| size.differs).count());
        self.assume("swf.processors", format!("{reading}; the two differ in {differ} of {kept} kept rows"));
    }

    fn warn(&mut self) {
        let warnings = &mut self.workload.quality.warnings;
        if !self.header && self.workload.quality.rows_in > 0 {
            warnings.push("no header comments (';'): the machine's size and the log's start are unknown".to_owned());
        }
        if self.fields_most > 18 {
            let most = self.fields_most;
            warnings.push(format!("rows have up to {most} fields, not 18: the ones past the 18th are not read"));
        }
        if self.waits_known == 0 && !self.workload.sets.is_empty() {
            warnings.push("no row has a wait time: submit times may be start times".to_owned());
        }
        let mut names = (0..self.workload.users.len() as u32).map(|user| self.workload.users.name(user));
        if self.tenants == Tenants::Column && names.next() == Some(UNKNOWN_USER) && names.next().is_none() {
            warnings.push(format!(
                "no row has a user (field 12): all jobs are of one user, '{UNKNOWN_USER}', so that policies by user share nothing; \
                 other users: --tenants (docs/traces.md)"
            ));
        }
    }

    fn origin(&mut self) {
        let first = self.workload.sets.iter().map(|set| set.submit).min().unwrap_or_default();
        if first < Time(EPOCH_S * US_PER_S) {
            return;
        }
        let start = self.machine.unix_start_s.filter(|&start| start >= EPOCH_S);
        let start = start.map(|start| Time(start.saturating_mul(US_PER_S))).filter(|start| *start <= first);
        let origin = start.unwrap_or(first);
        for set in &mut self.workload.sets {
            set.submit = Time(set.submit.since(origin).0);
        }
        let what = if start.is_some() { "UnixStartTime" } else { "the first submit time" };
        let warning = format!("submit times count from 1970, not from the log's start: {what} was subtracted");
        self.workload.quality.warnings.push(warning);
        self.assume("swf.origin_us", origin.0.to_string());
    }

    /// Returns the number of units of the stored memory per byte: 1, or 1024 if the field is in bytes. Returns `None` if memory is not a
    /// dimension of this log.
    fn memory(&mut self) -> Option<u128> {
        let options = self.options;
        let known = self.sizes.iter().filter(|size| size.memory.is_some()).count();
        let parallel = self.sizes.iter().filter(|size| size.memory.is_some() && size.procs > 1).count();
        let reading = match options.memory_of {
            SwfMemoryOf::Processor => "per processor",
            SwfMemoryOf::Job => "of the whole job",
        };
        let (use_it, value) = match options.memory {
            SwfMemory::Ignore => (false, "not read"),
            _ if known == 0 => (false, "not in the log"),
            SwfMemory::Complete if known < self.sizes.len() => (false, "not read: some rows lack it"),
            _ => (true, "requested, else used"),
        };
        self.assume("swf.memory", value.to_owned());
        if known > 0 && !use_it && options.memory == SwfMemory::Complete {
            let warning = format!("{known} of {} kept rows have memory: memory is ignored", self.sizes.len());
            self.workload.quality.warnings.push(warning);
        }
        if !use_it {
            return None;
        }
        let kept = self.sizes.len();
        let matters = format!("{reading}; {parallel} of {kept} kept rows have memory and several processors");
        self.assume("swf.memory_of", matters);
        let per_processor = |size: &Size| size.memory_of_job(options.memory_of) / u128::from(size.procs);
        let most = self.sizes.iter().map(per_processor).max().unwrap_or(0);
        let bytes = match options.memory_unit {
            SwfMemoryUnit::Kib => false,
            SwfMemoryUnit::Byte => true,
            SwfMemoryUnit::Auto if most / 1024 > KIB_MOST => {
                let warning = format!("memory up to {} per processor: read as bytes, not kilobytes", most / 1024);
                self.workload.quality.warnings.push(warning);
                true
            }
            SwfMemoryUnit::Auto => false,
        };
        self.assume("swf.memory_unit", if bytes { "byte" } else { "kib" }.to_owned());
        Some(if bytes { 1024 } else { 1 })
    }
}

/// Reads a number times `scale`, or `None` for -1.
fn known(
    row: &InputRow<'_>,
    column: InputColumn<'_>,
    scale: u64,
    round: Rounding,
    expected: &str,
) -> Result<Option<u64>> {
    match row.bytes(column) {
        b"-1" => Ok(None),
        [b'-', ..] if row.signed(column, 1000, expected)? == -1000 => Ok(None),
        _ => row.number(column, scale, round, expected).map(Some),
    }
}

/// Reads a whole number, or `None` for -1.
fn count(row: &InputRow<'_>, column: InputColumn<'_>, expected: &str) -> Result<Option<u64>> {
    match known(row, column, 1, Rounding::Up, expected)? {
        None => Ok(None),
        Some(_) => row.integer(column, expected).map(Some),
    }
}

#[cfg(test)]
mod tests;
