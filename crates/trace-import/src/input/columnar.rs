//! Parquet files as rows; lists of plain values become texts with `;` between them, timestamps become texts in ISO 8601.

use std::path::{Path, PathBuf};

use csv::ByteRecord;
use jiff::Timestamp;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::names::NameList;
use plimsoll_sim::workload::Input;
use plimsoll_store::parquet::{Bytes, LIST, Parquet, StoredColumn, TIMESTAMP, Timestamps};

use super::{LogRow, OpenFile, Rows};

/// The number of rows that are read at a time.
const SLICE: usize = 1 << 14;

fn damaged(path: &Path, problem: &str) -> Error {
    Error::trace(path, 0, "", format!("is a damaged Parquet file: {problem}"))
}

/// Opens a Parquet file. Numbers, texts, truth values and their lists are read; columns of other types are not.
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
            Some(kind) if kind != LIST && kind != TIMESTAMP => {
                detected.push(format!("column {name} of type {kind} is not readable"))
            }
            _ => columns.push(name.clone()),
        }
    }
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    file.select(&names)?;
    let rows = ParquetRows { path: path.to_owned(), file, slice: Vec::new(), next: 0, read: 0 };
    Ok(OpenFile { columns, rows: Box::new(rows), is_named: false, detected })
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
            let texts = columns.iter().map(|column| texts(column).map_err(|problem| damaged(&self.path, &problem)));
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

/// Returns the values of a column as texts; an absent value is empty.
fn texts(column: &StoredColumn) -> std::result::Result<NameList, String> {
    if column.has_lists() {
        return column.joined(";");
    }
    let Some(Timestamps { ticks, per_second, is_utc }) = column.timestamps()? else { return column.names() };
    let mut texts = NameList::default();
    for ticks in ticks {
        let time = ticks.and_then(|ticks| {
            let (seconds, rest) = (ticks.div_euclid(per_second), ticks.rem_euclid(per_second));
            let nanoseconds = i32::try_from(rest * (1_000_000_000 / per_second)).ok()?;
            Timestamp::new(seconds, nanoseconds).ok()
        });
        // Without a zone, the ticks count local time.
        let text = time.map(|time| time.to_string()).unwrap_or_default();
        texts.push(if is_utc { &text } else { text.trim_end_matches('Z') });
    }
    Ok(texts)
}
