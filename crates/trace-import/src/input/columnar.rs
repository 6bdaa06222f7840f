//! Parquet files as rows; lists of plain values become texts with `;` between them.

use std::path::{Path, PathBuf};

use csv::ByteRecord;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::names::NameList;
use plimsoll_sim::workload::Input;
use plimsoll_store::parquet::{Bytes, LIST, Parquet};

use super::{LogRow, OpenFile, Rows};

/// The number of rows that are read at a time.
const SLICE: usize = 1 << 14;

fn damaged(path: &Path, problem: &str) -> Error {
    Error::trace(path, 0, "", format!("is a damaged Parquet file: {problem}"))
}

/// Opens a Parquet file. Columns of other types than numbers, texts, truth values and lists of these are not read.
pub fn open(input: &Input) -> Result<OpenFile> {
    let path = input.path();
    let bytes = match input {
        Input::File(file) => Bytes::File(file.clone()),
        Input::Bytes(_, bytes) => Bytes::Memory(bytes.clone()),
    };
    let mut file = Parquet::open(path, bytes, damaged)?;
    let (mut columns, mut detected) = (Vec::new(), Vec::new());
    for (name, unreadable) in file.columns() {
        match unreadable {
            Some(kind) if kind != LIST => detected.push(format!("column {name} of type {kind} is not readable")),
            _ => columns.push(name.clone()),
        }
    }
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    file.select(&names)?;
    let rows = ParquetRows { path: path.to_owned(), file, slice: Vec::new(), next: 0, read: 0 };
    Ok(OpenFile { columns, rows: Box::new(rows), detected })
}

struct ParquetRows {
    path: PathBuf,
    file: Parquet,
    slice: Vec<NameList>,
    next: usize,
    read: usize,
}

impl Rows for ParquetRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        if self.next >= self.file.rows() {
            return Ok(false);
        }
        if self.next >= self.read {
            let columns = self.file.read(self.read, SLICE)?;
            let texts = columns.iter().map(|column| {
                let texts = if column.has_lists() { column.joined(";") } else { column.names() };
                texts.map_err(|problem| damaged(&self.path, &problem))
            });
            self.slice = texts.collect::<Result<_>>()?;
            self.read += SLICE;
        }
        let at = self.next % SLICE;
        row.fields = ByteRecord::new();
        for column in &self.slice {
            row.fields.push_field(column.get(at).as_bytes());
        }
        self.next += 1;
        row.line = self.next as u64;
        Ok(true)
    }
}
