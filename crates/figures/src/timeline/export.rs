//! Timelines as traces for Perfetto: one track for each lane of a machine (or of a user on a pool), one slice for each attempt of a task,
//! instants for preemptions and failures, and counters of use for each user.
//!
//! Both formats are written in one pass over the tasks, in order of completion. The slices of a lane never overlap, so the events of each
//! track are in order of time. Memory grows with lanes and users, not with tasks.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufWriter, Result as IoResult, Write};

use flate2::{Compression, GzBuilder};
use plimsoll_base::error::{Error, Result};
use plimsoll_metrics::numbers::{count, thousands};
use plimsoll_results::schema::Table;
use plimsoll_store::file::write_with;

use super::chrome::ChromeWriter;
use super::lanes::Lanes;
use super::perfetto::PerfettoWriter;
use super::picture::{usage_remedy, without_usage};
use super::rows::{Detail, TaskEnd, TaskRow, UserIndex, each_task};
use super::series::each_usage;
use super::{TimelineFormat, TimelineJob};

/// From this number of lanes, and of bytes, viewers in a browser become slow; a message suggests a smaller selection.
const LANES_MANY: u32 = 10_000;
const BYTES_MANY: u64 = 1 << 30;

/// The texts of a trace.
pub(super) struct TraceTexts {
    /// The name of the root of all tracks.
    pub root: String,
    /// The provenance of the file: keys and values.
    pub about: Vec<(String, String)>,
    /// The name of the slices of each user.
    pub users: Vec<String>,
    /// The name of the group of counters, and the unit of their values.
    pub counters: (String, &'static str),
}

/// A format of traces. Groups are machines, or users on a pool.
pub(super) trait TraceFormat {
    /// Writes the head of the file. It is the first call.
    fn begin(&mut self) -> IoResult<()>;
    /// Declares a group with its position among the groups.
    fn group(&mut self, group: u32, name: &str) -> IoResult<()>;
    /// Declares a lane of a group; `id` is its number among all lanes, `lane` among those of the group.
    fn lane(&mut self, group: u32, lane: u32, id: u32) -> IoResult<()>;
    /// Writes an attempt of a task.
    fn task(&mut self, group: u32, lane: u32, task: &TaskRow) -> IoResult<()>;
    /// Writes an instant of a group: a task was stopped.
    fn stop(&mut self, group: u32, task: &TaskRow) -> IoResult<()>;
    /// Writes the use of a user from a time on.
    fn counter(&mut self, user: usize, time: u64, amount: f64) -> IoResult<()>;
    /// Completes the file.
    fn end(&mut self) -> IoResult<()>;
}

/// A writer that counts bytes.
struct Counting<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> IoResult<()> {
        self.inner.flush()
    }
}

/// Writes a trace. Errors: as [`super::write`].
pub(super) fn write(job: &TimelineJob, format: TimelineFormat, notes: &mut Vec<String>) -> Result<()> {
    let path = job.request.output;
    let fail = |error: std::io::Error| Error::output(path, error);
    let texts = texts(job);
    let (bytes, lanes) = write_with(path, |out| {
        let mut out = Counting { inner: BufWriter::with_capacity(1 << 16, out), bytes: 0 };
        let lanes = match format {
            TimelineFormat::JsonGz => {
                // No time in the header: the same results give the same bytes.
                let mut packed = GzBuilder::new().mtime(0).write(&mut out, Compression::fast());
                let lanes = fill(job, &mut ChromeWriter::new(&mut packed, &texts), notes)?;
                packed.finish().map_err(fail)?;
                lanes
            }
            TimelineFormat::Json => fill(job, &mut ChromeWriter::new(&mut out, &texts), notes)?,
            _ => fill(job, &mut PerfettoWriter::new(&mut out, &texts), notes)?,
        };
        out.flush().map_err(fail)?;
        Ok((out.bytes, lanes))
    })?;
    if lanes >= LANES_MANY || bytes >= BYTES_MANY {
        notes.push(format!(
            "{} and {} MB are slow in a browser: select a part (--from, --until, --users, --machines), or open the file with \
             `trace_processor --httpd`",
            count(lanes.into(), "lane"),
            thousands(bytes / 1_000_000)
        ));
    }
    Ok(())
}

fn texts(job: &TimelineJob) -> TraceTexts {
    let contents = &job.run.results.contents;
    TraceTexts {
        root: format!("{}: {}", contents.name, job.run.policy()),
        about: job.run.results.provenance(&contents.plan).short(),
        users: slice_names(&job.overview.users.names),
        counters: (job.resource.label(), job.resource.unit()),
    }
}

/// Returns the name of the slices of each user. Perfetto derives the colour of a slice from the letters of its name, so names that differ
/// only in digits get different letters in front.
fn slice_names(users: &[String]) -> Vec<String> {
    let letters = |name: &String| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let distinct: HashSet<String> = users.iter().map(letters).collect();
    if distinct.len() == users.len() && !distinct.contains("") {
        return users.to_vec();
    }
    users.iter().enumerate().map(|(at, name)| format!("{} {name}", ordinal(at))).collect()
}

/// Returns the letters of a number from 0: A to Z, AA, AB, ...
fn ordinal(mut at: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'A' + (at % 26) as u8);
        match at / 26 {
            0 => break,
            more => at = more - 1,
        }
    }
    letters.iter().rev().map(|&letter| letter as char).collect()
}

/// The lanes of a group, with the numbers of its lanes among all lanes.
#[derive(Default)]
struct GroupLanes {
    lanes: Lanes,
    ids: Vec<u32>,
}

/// Writes all events; returns the number of lanes.
fn fill(job: &TimelineJob, out: &mut dyn TraceFormat, notes: &mut Vec<String>) -> Result<u32> {
    let fail = |error: std::io::Error| Error::output(job.request.output, error);
    out.begin().map_err(fail)?;
    let mut groups: BTreeMap<u32, GroupLanes> = BTreeMap::new();
    let mut users = UserIndex::default();
    let mut lanes = 0;
    each_task(job.run, job.filter, &mut users, Detail::Full, job.request.stop, |task| {
        let name = || match task.machine {
            Some(machine) => format!("machine {machine}"),
            None => job.overview.users.names[task.user].clone(),
        };
        add_task(&mut groups, &mut lanes, &name, task, out).map_err(fail)
    })?;
    counters(job, out, notes)?;
    out.end().map_err(fail)?;
    Ok(lanes)
}

/// Writes an attempt in a lane of its group, and declares the group and the lane if they are new. `lanes` is the number of all lanes.
fn add_task(
    groups: &mut BTreeMap<u32, GroupLanes>,
    lanes: &mut u32,
    name: &dyn Fn() -> String,
    task: &TaskRow,
    out: &mut dyn TraceFormat,
) -> IoResult<()> {
    let group = task.machine.unwrap_or(task.user as u32);
    if !groups.contains_key(&group) {
        out.group(group, &name())?;
    }
    let known = groups.entry(group).or_default();
    let lane = known.lanes.place(task.start, task.finish);
    if lane as usize == known.ids.len() {
        known.ids.push(*lanes);
        out.lane(group, lane, *lanes)?;
        *lanes += 1;
    }
    out.task(group, known.ids[lane as usize], task)?;
    match task.end {
        TaskEnd::Failed | TaskEnd::Preempted => out.stop(group, task),
        TaskEnd::Done | TaskEnd::Open => Ok(()),
    }
}

/// Writes the counters of use within the window: the value at its start, and all changes.
fn counters(job: &TimelineJob, out: &mut dyn TraceFormat, notes: &mut Vec<String>) -> Result<()> {
    let Some(path) = job.run.results.file(Table::Usage, job.run.key)? else {
        if job.resource.is_chosen {
            return Err(without_usage(job));
        }
        notes.push(format!("no counters of use: {}", usage_remedy()));
        return Ok(());
    };
    let fail = |error: std::io::Error| Error::output(job.request.output, error);
    let mut before: BTreeMap<usize, f64> = BTreeMap::new();
    let from = job.filter.from;
    each_usage(job, &path, |time, user, amount| {
        if time < from {
            before.insert(user, amount);
            return Ok(());
        }
        for (user, amount) in std::mem::take(&mut before) {
            out.counter(user, from, amount).map_err(fail)?;
        }
        if time > job.filter.until { Ok(()) } else { out.counter(user, time, amount).map_err(fail) }
    })?;
    before.into_iter().try_for_each(|(user, amount)| out.counter(user, from, amount).map_err(fail))
}

#[cfg(test)]
mod tests;
