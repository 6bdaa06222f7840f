//! The rows of a joined table by key: in memory, or sorted in a temporary file with an index of its blocks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use csv::ByteRecord;
use plimsoll_base::error::{Error, Result};

use crate::bind::file_name;
use crate::input::LogRow;
use crate::spill::{Decoder, Encoder, Sorter, Spill, damaged, read_at};
use crate::tables::{Examples, InterruptWatch};

/// The bytes of a row in memory besides its fields.
const ROW: u64 = 200;

/// The bytes of a block of rows in a file.
const BLOCK: usize = 1 << 12;

/// The rows of a joined table by key. Of several rows with one key the first is used.
pub enum JoinedRows {
    /// In memory.
    Memory(HashMap<String, ByteRecord>),
    /// In a temporary file.
    File(SortedRows),
}

impl Default for JoinedRows {
    fn default() -> JoinedRows {
        JoinedRows::Memory(HashMap::new())
    }
}

impl JoinedRows {
    /// Finds the row of a key. Errors: [`Error::Io`] at the folder of temporary files.
    pub fn get(&self, key: &str) -> Result<Option<Cow<'_, ByteRecord>>> {
        match self {
            JoinedRows::Memory(rows) => Ok(rows.get(key).map(Cow::Borrowed)),
            JoinedRows::File(rows) => Ok(rows.get(key)?.map(Cow::Owned)),
        }
    }
}

/// Collects the rows of a joined table.
pub struct JoinedBuilder {
    rows: HashMap<String, ByteRecord>,
    used: u64,
    most: u64,
    spill: Spill,
    /// All rows in the order of keys and then of the table; `None` while the rows fit into memory.
    sorter: Option<Sorter>,
    number: u64,
    repeated: Examples,
    key: Encoder,
    value: Encoder,
}

impl JoinedBuilder {
    /// Creates an empty table that may use `most` bytes of memory.
    pub fn new(most: u64, spill: &Spill) -> JoinedBuilder {
        JoinedBuilder {
            rows: HashMap::new(),
            used: 0,
            most,
            spill: spill.clone(),
            sorter: None,
            number: 0,
            repeated: Examples::default(),
            key: Encoder::default(),
            value: Encoder::default(),
        }
    }

    /// Adds a row of the file with the name `file`. Errors: a temporary file cannot be written.
    pub fn push(&mut self, name: String, row: &LogRow, paths: &[PathBuf]) -> Result<()> {
        self.number += 1;
        if let Some(sorter) = &mut self.sorter {
            self.key.clear().key_text(name.as_bytes()).key_sequence(self.number);
            encode(&name, row.line, row.file, &row.fields, self.value.clear());
            return sorter.push(&self.key.bytes, &self.value.bytes);
        }
        if self.rows.contains_key(&name) {
            if let Some(path) = paths.get(row.file) {
                self.repeated.count(row.line, path);
            }
            return Ok(());
        }
        self.used += name.len() as u64 + row.fields.as_slice().len() as u64 + ROW;
        self.rows.insert(name, row.fields.clone());
        if self.used > self.most {
            let mut sorter = self.spill.sorter();
            // These are the first rows of their keys, so that their order does not matter.
            for (name, fields) in self.rows.drain() {
                self.key.clear().key_text(name.as_bytes()).key_sequence(0);
                encode(&name, 0, 0, &fields, self.value.clear());
                sorter.push(&self.key.bytes, &self.value.bytes)?;
            }
            self.rows = HashMap::new();
            self.sorter = Some(sorter);
        }
        Ok(())
    }

    /// Returns the rows, and the number of rows with the key of an earlier row. Errors: a temporary file cannot be used, or those of
    /// `watch`.
    pub fn finish(self, paths: &[PathBuf], watch: &mut InterruptWatch<'_>) -> Result<(JoinedRows, Examples)> {
        let JoinedBuilder { rows, spill, sorter, mut repeated, .. } = self;
        let Some(sorter) = sorter else { return Ok((JoinedRows::Memory(rows), repeated)) };
        let sorted = sorter.finish()?;
        let mut cursor = sorted.cursor()?;
        let mut file = SortedFile::new(&spill)?;
        let (mut group, mut first): (Vec<u8>, Option<(u64, u64, usize)>) = (Vec::new(), None);
        let mut later = 0;
        while cursor.advance()? {
            watch.check()?;
            let (key, number) = Decoder::split_sequence(cursor.key())?;
            if key == group {
                let mut row = Decoder::new(cursor.value());
                let (_, line, at) = (row.text()?, row.integer()?, row.integer()? as usize);
                later += 1;
                first = Some(first.map_or((number, line, at), |first| first.min((number, line, at))));
                continue;
            }
            group = key.to_owned();
            file.push(cursor.value())?;
        }
        if repeated.rows == 0
            && let Some((_, line, at)) = first
            && let Some(path) = paths.get(at)
        {
            repeated.first = format!("line {line} of {}", file_name(path));
        }
        repeated.rows += later;
        Ok((JoinedRows::File(file.finish()?), repeated))
    }
}

fn encode(name: &str, line: u64, file: usize, fields: &ByteRecord, into: &mut Encoder) {
    into.text(Some(name)).integer(line).integer(file as u64).integer(fields.len() as u64);
    fields.iter().for_each(|field| _ = into.slice(field));
}

/// Writes sorted rows in blocks.
struct SortedFile {
    folder: PathBuf,
    out: BufWriter<File>,
    blocks: Vec<(String, u64)>,
    block: Encoder,
    length: u64,
}

impl SortedFile {
    fn new(spill: &Spill) -> Result<SortedFile> {
        let out = BufWriter::with_capacity(1 << 18, Spill::file(&spill.folder)?);
        Ok(SortedFile { folder: spill.folder.clone(), out, blocks: Vec::new(), block: Encoder::default(), length: 0 })
    }

    fn push(&mut self, row: &[u8]) -> Result<()> {
        if self.block.bytes.is_empty() {
            let key = Decoder::new(row).text()?.ok_or_else(damaged)?;
            self.blocks.push((key.to_owned(), self.length));
        }
        self.block.slice(row);
        if self.block.bytes.len() >= BLOCK { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.out.write_all(&self.block.bytes).map_err(|error| Error::io(&self.folder, error))?;
        self.length += self.block.bytes.len() as u64;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<SortedRows> {
        self.write()?;
        let SortedFile { folder, out, blocks, length, .. } = self;
        let file = out.into_inner().map_err(|error| Error::io(&folder, error.into_error()))?;
        Ok(SortedRows { folder, file: Mutex::new(file), blocks, length, current: Mutex::new((usize::MAX, Vec::new())) })
    }
}

/// Rows in a temporary file, in the order of their keys.
pub struct SortedRows {
    folder: PathBuf,
    file: Mutex<File>,
    /// The first key and the position of each block.
    blocks: Vec<(String, u64)>,
    length: u64,
    /// The block that was read last.
    current: Mutex<(usize, Vec<u8>)>,
}

impl SortedRows {
    fn get(&self, key: &str) -> Result<Option<ByteRecord>> {
        let behind = self.blocks.partition_point(|(first, _)| first.as_str() <= key);
        let Some(at) = behind.checked_sub(1) else { return Ok(None) };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != at {
            let start = self.blocks[at].1;
            let end = self.blocks.get(behind).map_or(self.length, |(_, start)| *start);
            current.0 = usize::MAX;
            current.1.resize((end - start) as usize, 0);
            read_at(&self.file, start, &mut current.1).map_err(|error| Error::io(&self.folder, error))?;
            current.0 = at;
        }
        let mut rows = Decoder::new(&current.1);
        while !rows.is_empty() {
            let mut row = Decoder::new(rows.slice()?);
            if row.text()? == Some(key) {
                let (_, _, fields) = (row.integer()?, row.integer()?, row.integer()?);
                let mut record = ByteRecord::new();
                for _ in 0..fields {
                    record.push_field(row.slice()?);
                }
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}
