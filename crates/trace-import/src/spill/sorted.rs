//! Reads sorted records from memory, or from runs that are merged.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_base::error::{Error, Result};

use super::codec::{damaged, take_integer};
use super::{RecordBuffer, SortedRun};

/// The positions of a record, its key and its value in some bytes.
#[derive(Clone, Copy, Debug, Default)]
struct RecordSpan {
    start: usize,
    key: usize,
    value: usize,
    end: usize,
}

/// Finds the record at a position; `None` if the bytes end before it does.
fn span_at(bytes: &[u8], start: usize) -> Option<RecordSpan> {
    let mut rest = bytes.get(start..)?;
    let (key, value) = (take_integer(&mut rest)?, take_integer(&mut rest)?);
    let at = bytes.len() - rest.len();
    let middle = at.checked_add(usize::try_from(key).ok()?)?;
    let end = middle.checked_add(usize::try_from(value).ok()?)?;
    Some(RecordSpan { start, key: at, value: middle, end })
}

/// Returns the key of a record in memory.
pub(super) fn key_at(bytes: &[u8], at: usize) -> &[u8] {
    span_at(bytes, at).map_or(&[], |span| &bytes[span.key..span.value])
}

/// Returns a record in memory.
pub(super) fn record_at(bytes: &[u8], at: usize) -> &[u8] {
    span_at(bytes, at).map_or(&[], |span| &bytes[span.start..span.end])
}

/// The place of sorted records.
pub(super) enum SortedRecords {
    /// In memory.
    Memory(RecordBuffer),
    /// In runs, with their folder.
    Runs(Vec<SortedRun>, PathBuf),
}

/// Sorted records, which may be read several times.
#[derive(Clone)]
pub struct Sorted {
    records: Arc<SortedRecords>,
    budget: usize,
}

/// The smallest and the largest number of bytes that are read at one time from a run.
const BLOCK: (usize, usize) = (1 << 14, 1 << 20);

impl Sorted {
    pub(super) fn new(records: SortedRecords, budget: usize) -> Sorted {
        Sorted { records: Arc::new(records), budget }
    }

    /// Returns whether some records are in files.
    #[cfg(test)]
    pub fn is_spilled(&self) -> bool {
        matches!(*self.records, SortedRecords::Runs(..))
    }

    /// Starts reading at the first record. Errors: [`Error::Io`] at the folder.
    pub fn cursor(&self) -> Result<Cursor> {
        let mut merge = RunMerge::default();
        if let SortedRecords::Runs(runs, folder) = &*self.records {
            let block = (self.budget / (4 * runs.len().max(1))).clamp(BLOCK.0, BLOCK.1);
            for run in runs {
                let mut reader = RunReader::new(run, block);
                if reader.advance(folder)? {
                    merge.readers.push(reader);
                }
            }
            merge.heap = (0..merge.readers.len()).collect();
            for at in (0..merge.heap.len() / 2).rev() {
                merge.sift_down(at);
            }
        }
        Ok(Cursor { records: self.records.clone(), next: 0, span: RecordSpan::default(), merge })
    }
}

/// A position in sorted records.
pub struct Cursor {
    records: Arc<SortedRecords>,
    /// The number of records that were read.
    next: usize,
    /// The current record, if the records are in memory.
    span: RecordSpan,
    merge: RunMerge,
}

impl Cursor {
    /// Moves to the next record; returns whether there is one. Errors: [`Error::Io`] at the folder.
    pub fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        match &*self.records {
            SortedRecords::Memory(RecordBuffer { bytes, entries }) => {
                let Some(entry) = entries.get(self.next - 1) else { return Ok(false) };
                self.span = span_at(bytes, entry.at).ok_or_else(damaged)?;
                Ok(true)
            }
            SortedRecords::Runs(_, folder) => self.merge.advance(self.next == 1, folder),
        }
    }

    /// Returns the bytes of the current record and its position in them.
    fn current(&self) -> (&[u8], RecordSpan) {
        match &*self.records {
            SortedRecords::Memory(records) => (&records.bytes, self.span),
            SortedRecords::Runs(..) => {
                let reader = &self.merge.readers[self.merge.heap[0]];
                (&reader.block, reader.span)
            }
        }
    }

    /// Returns the current record with its lengths. Panics: without a current record.
    pub(super) fn record(&self) -> &[u8] {
        let (bytes, span) = self.current();
        &bytes[span.start..span.end]
    }

    /// Returns the key of the current record. Panics: without a current record.
    pub fn key(&self) -> &[u8] {
        let (bytes, span) = self.current();
        &bytes[span.key..span.value]
    }

    /// Returns the value of the current record. Panics: without a current record.
    pub fn value(&self) -> &[u8] {
        let (bytes, span) = self.current();
        &bytes[span.value..span.end]
    }
}

/// Several runs that are read as one: a heap of their current records.
#[derive(Default)]
struct RunMerge {
    readers: Vec<RunReader>,
    heap: Vec<usize>,
}

impl RunMerge {
    fn advance(&mut self, is_first: bool, folder: &Path) -> Result<bool> {
        let Some(&top) = self.heap.first() else { return Ok(false) };
        if is_first {
            return Ok(true);
        }
        if !self.readers[top].advance(folder)? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(!self.heap.is_empty())
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                let is_less = |child: usize| self.readers[child].key() < self.readers[self.heap[least]].key();
                if self.heap.get(child).is_some_and(|&child| is_less(child)) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

/// A position in a run.
struct RunReader {
    file: Arc<Mutex<File>>,
    /// The position in the file behind the block, and the end of the run.
    read: u64,
    length: u64,
    size: usize,
    block: Vec<u8>,
    span: RecordSpan,
}

impl RunReader {
    fn new(run: &SortedRun, size: usize) -> RunReader {
        let (file, length) = (run.file.clone(), run.length);
        RunReader { file, read: 0, length, size, block: Vec::new(), span: RecordSpan::default() }
    }

    fn key(&self) -> &[u8] {
        &self.block[self.span.key..self.span.value]
    }

    fn advance(&mut self, folder: &Path) -> Result<bool> {
        let mut start = self.span.end;
        loop {
            if let Some(span) = span_at(&self.block, start).filter(|span| span.end <= self.block.len()) {
                self.span = span;
                return Ok(true);
            }
            if self.read == self.length {
                return if start == self.block.len() { Ok(false) } else { Err(damaged()) };
            }
            self.block.drain(..start);
            start = 0;
            let more = (self.length - self.read).min(self.size as u64);
            let known = self.block.len();
            self.block.resize(known + more as usize, 0);
            read_at(&self.file, self.read, &mut self.block[known..]).map_err(|error| Error::io(folder, error))?;
            self.read += more;
        }
    }
}

/// Reads bytes at a position of a file that several readers use. Errors: those of the file.
pub fn read_at(file: &Mutex<File>, at: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}
