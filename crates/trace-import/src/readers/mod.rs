//! Readers of nested JSON logs: each converts a record to flat rows, which a mapping then reads as usual.
//!
//! A format has a reader if its mapping would need lists within lists.

mod batsim;
mod kubernetes;
mod philly;

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use serde_json::Value;

use crate::input::{JsonRecords, LogRow, OpenFile, Rows};

/// The declaration of a reader.
pub struct RecordReader {
    /// The name in mappings.
    pub name: &'static str,
    /// The columns of its rows.
    pub columns: &'static [&'static str],
    /// The path to the records, or `None` if the document is read as a whole.
    pub records: Option<&'static [&'static str]>,
    /// Converts a record (or the document) to rows with these columns. Errors: the problem.
    pub convert: fn(&Value) -> std::result::Result<Vec<Vec<String>>, String>,
}

/// All readers.
pub static READERS: &[&RecordReader] = &[&batsim::READER, &kubernetes::READER, &philly::READER];

/// Finds a reader by its name.
pub fn find(name: &str) -> Option<&'static RecordReader> {
    READERS.iter().copied().find(|reader| reader.name == name)
}

/// Opens a document with a reader.
pub fn open(path: &Path, mut bytes: impl BufRead + 'static, reader: &'static RecordReader) -> Result<OpenFile> {
    let columns = reader.columns.iter().map(|name| (*name).to_owned()).collect();
    let next: NextRecord = match reader.records {
        Some(keys) => {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let mut records = JsonRecords::new(path, bytes, &keys)?;
            Box::new(move |into| records.read(into))
        }
        None => {
            let (mut done, name) = (false, path.to_owned());
            Box::new(move |into| {
                if std::mem::replace(&mut done, true) {
                    return Ok(None);
                }
                bytes.read_to_end(into).map_err(|source| Error::io(&name, source))?;
                Ok(Some(0))
            })
        }
    };
    let rows = ReaderRows { path: path.to_owned(), reader, next, bytes: Vec::new(), rows: VecDeque::new() };
    Ok(OpenFile { columns, rows: Box::new(rows), is_named: false, detected: Vec::new() })
}

/// A source of records: the bytes and the line of each.
type NextRecord = Box<dyn FnMut(&mut Vec<u8>) -> Result<Option<u64>>>;

struct ReaderRows {
    path: PathBuf,
    reader: &'static RecordReader,
    next: NextRecord,
    bytes: Vec<u8>,
    /// Converted rows with their lines.
    rows: VecDeque<(u64, Vec<String>)>,
}

impl Rows for ReaderRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        loop {
            if let Some((line, fields)) = self.rows.pop_front() {
                row.line = line;
                row.fields.clear();
                fields.iter().for_each(|field| row.fields.push_field(field.as_bytes()));
                return Ok(true);
            }
            self.bytes.clear();
            let Some(line) = (self.next)(&mut self.bytes)? else { return Ok(false) };
            row.line = line;
            let wrong = |problem: String| Error::trace(&self.path, line, "", problem);
            let document = serde_json::from_slice(self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes));
            let document = document.map_err(|error| wrong(format!("is not valid JSON ({error})")))?;
            let rows = (self.reader.convert)(&document).map_err(wrong)?;
            // A document without lines of its records numbers them.
            self.rows.extend(rows.into_iter().enumerate().map(|(at, row)| (line.max(at as u64 + 1), row)));
        }
    }
}

/// Returns a plain value as text; it is empty for other values.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => String::new(),
    }
}

/// Returns the items of an array; there are none in other values.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
