//! JSON records as rows: nested objects become columns such as `request.cpus`, arrays of plain values become texts with `;` between them.

use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use serde_json::{Map, Value};

use super::{JsonRecords, LogRow, OpenFile, Rows};
use crate::mapping::TableSpec;

/// The records that determine the columns.
const FIRST: usize = 1000;

/// A source of records: the bytes and the line of each.
type NextRecord = Box<dyn FnMut(&mut Vec<u8>) -> Result<Option<u64>>>;

/// Opens an array of records.
pub fn open_array(path: &Path, bytes: impl BufRead + 'static, table: &TableSpec, known: &[String]) -> Result<OpenFile> {
    let mut records = JsonRecords::new(path, bytes, &table.records)?;
    open(path, Box::new(move |into| records.read(into)), table, known)
}

/// Opens lines of records.
pub fn open_lines(
    path: &Path,
    mut bytes: impl BufRead + 'static,
    table: &TableSpec,
    known: &[String],
) -> Result<OpenFile> {
    let (mut line, name) = (0, path.to_owned());
    let next = move |into: &mut Vec<u8>| loop {
        into.clear();
        if bytes.read_until(b'\n', into).map_err(|source| Error::io(&name, source))? == 0 {
            return Ok(None);
        }
        line += 1;
        let trimmed = into.strip_prefix(b"\xef\xbb\xbf").unwrap_or(into).trim_ascii();
        if !trimmed.is_empty() {
            *into = trimmed.to_vec();
            return Ok(Some(line));
        }
    };
    open(path, Box::new(next), table, known)
}

fn open(path: &Path, mut next: NextRecord, table: &TableSpec, known: &[String]) -> Result<OpenFile> {
    let mut columns = ColumnSet::default();
    table.columns.iter().chain(known).for_each(|name| columns.add(name));
    let (mut first, mut bytes) = (Vec::new(), Vec::new());
    while first.len() < FIRST
        && let Some(line) = next(&mut bytes)?
    {
        let record = parse(path, line, &bytes);
        if let Ok(record) = &record {
            for (name, _) in record {
                columns.add(name);
            }
        }
        first.push((line, record));
    }
    let names = columns.names.clone();
    let late = BTreeSet::new();
    let rows = JsonRows { path: path.to_owned(), columns, first: first.into_iter(), next, bytes, late };
    Ok(OpenFile { columns: names, rows: Box::new(rows), is_named: true, detected: Vec::new() })
}

fn parse(path: &Path, line: u64, bytes: &[u8]) -> Result<Vec<(String, String)>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(flatten(&map)),
        Ok(_) => Err(Error::trace(path, line, "", "is a JSON value that is no object; expected a record {...}")),
        Err(error) => Err(Error::trace(path, line, "", format!("is not valid JSON ({error})"))),
    }
}

/// Returns the fields of a record: the path of each value and its text; a value of `null` has an empty text.
pub fn flatten(map: &Map<String, Value>) -> Vec<(String, String)> {
    fn add(prefix: &str, map: &Map<String, Value>, fields: &mut Vec<(String, String)>) {
        for (key, value) in map {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                Value::Object(below) => add(&name, below, fields),
                value => fields.push((name, scalar(value))),
            }
        }
    }
    let mut fields = Vec::new();
    add("", map, &mut fields);
    fields
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().map(scalar).collect::<Vec<_>>().join(";")
        }
        other => other.to_string(),
    }
}

/// Names of columns with their positions.
#[derive(Default)]
struct ColumnSet {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl ColumnSet {
    fn add(&mut self, name: &str) {
        if !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
        }
    }
}

struct JsonRows {
    path: PathBuf,
    columns: ColumnSet,
    first: std::vec::IntoIter<(u64, Result<Vec<(String, String)>>)>,
    next: NextRecord,
    bytes: Vec<u8>,
    late: BTreeSet<String>,
}

impl Rows for JsonRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        let (line, record) = match self.first.next() {
            Some(first) => first,
            None => match (self.next)(&mut self.bytes)? {
                None => return Ok(false),
                Some(line) => (line, parse(&self.path, line, &self.bytes)),
            },
        };
        row.line = line;
        row.fields.clear();
        let record = record?;
        // Most records have the columns in the same order.
        let mut texts = vec![""; self.columns.names.len()];
        for (at, (name, text)) in record.iter().enumerate() {
            let place = match self.columns.names.get(at) {
                Some(column) if column == name => Some(at),
                _ => self.columns.places.get(name).copied(),
            };
            match place {
                Some(place) => texts[place] = text,
                None if !text.is_empty() && self.late.len() < 100 => {
                    self.late.insert(name.clone());
                }
                None => {}
            }
        }
        texts.iter().for_each(|text| row.fields.push_field(text.as_bytes()));
        Ok(true)
    }

    fn late_columns(&self) -> Vec<String> {
        self.late.iter().cloned().collect()
    }
}

/// Finds the path to the first array of objects in a document, from its beginning. It is empty for an array that is the document.
pub fn find_records(head: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('[') {
        return Vec::new();
    }
    // The keys of the objects that are open before the first array of objects.
    let (mut path, mut key, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => {
                let end = end_of_text(rest);
                let word = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or_default();
                if rest.trim_start().starts_with(':') {
                    key = word.to_owned();
                }
            }
            '{' => path.push(std::mem::take(&mut key)),
            '}' => {
                path.pop();
            }
            '[' if rest.trim_start().starts_with('{') => {
                path.push(key);
                return path.into_iter().skip(1).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

/// Returns the position of the quote that ends a text.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}
