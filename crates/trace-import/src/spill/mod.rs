//! Sorts more records than fit into memory: sorted runs in temporary files, which are merged while they are read.
//!
//! A [`Sorter`] collects records until its part of the memory is full, and then writes them to a file as a sorted run. Records that fit into
//! memory are only sorted there. The order, and therefore everything that is computed from it, does not depend on the bound.
//!
//! The files have no names, so that the system removes them when they are closed, also after an error or a signal. The merge is written
//! here because the existing crates limit the number of records instead of their bytes, serialise every record with serde, and leave named
//! files behind a killed process.

mod codec;
mod sorted;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plimsoll_base::error::{Error, Result};

pub use codec::{Decoder, Encoder, damaged};
pub use sorted::{Cursor, Sorted, read_at};

use sorted::SortedRecords;

/// The bound of an import's memory.
#[derive(Clone, Debug)]
pub struct Spill {
    /// The bytes that sorters and joined tables may use together.
    pub memory: u64,
    /// The folder for temporary files.
    pub folder: PathBuf,
}

impl Default for Spill {
    /// Everything stays in memory.
    fn default() -> Spill {
        Spill { memory: u64::MAX, folder: std::env::temp_dir() }
    }
}

impl Spill {
    /// Returns a sorter. At most two sorters are in use at one time, one that is filled and one that is read.
    pub fn sorter(&self) -> Sorter {
        let budget = usize::try_from(self.memory / 8 * 3).unwrap_or(usize::MAX);
        Sorter { folder: self.folder.clone(), budget, records: RecordBuffer::default(), runs: Vec::new() }
    }

    /// Returns the bytes for each of the joined tables.
    pub fn joined(&self, tables: usize) -> u64 {
        self.memory / 4 / tables.max(1) as u64
    }

    /// Creates a temporary file without a name. Errors: [`Error::Io`] at the folder.
    pub fn file(folder: &Path) -> Result<File> {
        tempfile::tempfile_in(folder).map_err(|error| Error::io(folder, error))
    }
}

/// RecordBuffer in memory.
#[derive(Default)]
struct RecordBuffer {
    /// The records, one after the other: lengths of key and value, key, value.
    bytes: Vec<u8>,
    /// The records in the order of pushes, then sorted.
    entries: Vec<RecordEntry>,
}

/// The beginning of a record's key, and the record's position.
#[derive(Clone, Copy)]
struct RecordEntry {
    prefix: (u64, u64),
    at: usize,
}

impl RecordBuffer {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let mut padded = [0; 16];
        let length = key.len().min(16);
        padded[..length].copy_from_slice(&key[..length]);
        let prefix = u128::from_be_bytes(padded);
        self.entries.push(RecordEntry { prefix: ((prefix >> 64) as u64, prefix as u64), at: self.bytes.len() });
        codec::put_integer(&mut self.bytes, key.len() as u64);
        codec::put_integer(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        // A key that is a prefix of another one has the same padded prefix; the keys decide.
        self.entries.sort_unstable_by(|a, b| {
            a.prefix.cmp(&b.prefix).then_with(|| sorted::key_at(bytes, a.at).cmp(sorted::key_at(bytes, b.at)))
        });
    }
}

/// A sorted run in a file.
#[derive(Clone)]
struct SortedRun {
    file: Arc<Mutex<File>>,
    length: u64,
    /// The number of merges that made it.
    level: u32,
}

/// The most runs that are merged at one time; each has a file and a buffer.
const FAN_IN: usize = 64;

/// The bytes that are written at one time.
const WRITTEN: usize = 1 << 18;

/// Sorts records by the bytes of their keys, which are distinct.
pub struct Sorter {
    folder: PathBuf,
    budget: usize,
    records: RecordBuffer,
    runs: Vec<SortedRun>,
}

impl Sorter {
    /// Adds a record. Errors: [`Error::Io`] at the folder.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let records = &self.records;
        let used = records.bytes.len() + (records.entries.len() + 1) * size_of::<RecordEntry>();
        if used + key.len() + value.len() > self.budget && !records.entries.is_empty() {
            self.spill()?;
        }
        self.records.push(key, value);
        Ok(())
    }

    /// Writes the records in memory as a run.
    fn spill(&mut self) -> Result<()> {
        self.records.sort();
        let RecordBuffer { bytes, entries } = &mut self.records;
        let mut out = RunWriter::new(&self.folder)?;
        for entry in entries.iter() {
            out.put(sorted::record_at(bytes, entry.at))?;
        }
        self.runs.push(out.finish(0)?);
        bytes.clear();
        entries.clear();
        // Merges runs of one level as soon as there are many, so that every record is merged a logarithmic number of times.
        while let Some(level) = self.runs.last().map(|run| run.level)
            && self.runs.iter().rev().take_while(|run| run.level == level).count() >= FAN_IN
        {
            self.merge_last(FAN_IN)?;
        }
        Ok(())
    }

    fn merge_last(&mut self, count: usize) -> Result<()> {
        let merged = self.runs.split_off(self.runs.len() - count);
        let level = merged.iter().map(|run| run.level).max().unwrap_or_default() + 1;
        let sorted = Sorted::new(SortedRecords::Runs(merged, self.folder.clone()), self.budget);
        let (mut cursor, mut out) = (sorted.cursor()?, RunWriter::new(&self.folder)?);
        while cursor.advance()? {
            out.put(cursor.record())?;
        }
        self.runs.push(out.finish(level)?);
        Ok(())
    }

    /// Returns the sorted records. Errors: [`Error::Io`] at the folder.
    pub fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.records.sort();
            return Ok(Sorted::new(SortedRecords::Memory(self.records), self.budget));
        }
        self.spill()?;
        self.records = RecordBuffer::default();
        while self.runs.len() > FAN_IN {
            // The last runs are the shortest.
            self.merge_last((self.runs.len() - FAN_IN + 1).clamp(2, FAN_IN))?;
        }
        Ok(Sorted::new(SortedRecords::Runs(self.runs, self.folder), self.budget))
    }
}

/// Writes a run.
struct RunWriter<'a> {
    folder: &'a Path,
    out: BufWriter<File>,
    length: u64,
}

impl RunWriter<'_> {
    fn new(folder: &Path) -> Result<RunWriter<'_>> {
        Ok(RunWriter { folder, out: BufWriter::with_capacity(WRITTEN, Spill::file(folder)?), length: 0 })
    }

    fn put(&mut self, record: &[u8]) -> Result<()> {
        self.length += record.len() as u64;
        self.out.write_all(record).map_err(|error| Error::io(self.folder, error))
    }

    fn finish(self, level: u32) -> Result<SortedRun> {
        let file = self.out.into_inner().map_err(|error| Error::io(self.folder, error.into_error()))?;
        Ok(SortedRun { file: Arc::new(Mutex::new(file)), length: self.length, level })
    }
}

#[cfg(test)]
mod tests;
