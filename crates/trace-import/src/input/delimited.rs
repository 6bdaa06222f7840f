//! TextLines of fields between separators.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputRows, Separator};

use super::{LogRow, OpenFile, Rows, delimiter_name};
use crate::mapping::{Delimiter, TableSpec};

/// The lines that are examined to detect a delimiter.
const LINES: usize = 50;

/// Detects the delimiter of the lines of a text: the one that splits the first line and most others into the same number of fields.
pub fn detect_delimiter(head: &[u8], comment: Option<u8>) -> Delimiter {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let lines = lines.filter(|line| !line.is_empty() && line.first().copied() != comment.or(Some(b'\n')));
    let lines: Vec<&[u8]> = lines.take(LINES).collect();
    let score = |separator: u8| {
        let fields = |line: &[u8]| {
            let mut quoted = false;
            let outside = line.iter().filter(|&&byte| {
                quoted ^= byte == b'"' && separator != b'\t';
                byte == separator && !quoted
            });
            outside.count()
        };
        let first = lines.first().map_or(0, |line| fields(line));
        let same = lines.iter().filter(|line| fields(line) == first).count();
        if first == 0 { (0, 0) } else { (same, first) }
    };
    // A comma between digits is a decimal comma if another delimiter splits all lines alike.
    let is_decimal = |line: &[u8]| {
        let digit = |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_digit);
        (0..line.len()).filter(|&at| line[at] == b',').all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1)))
    };
    let others = [b';', b'|', b'\t'];
    let has_decimals = lines.iter().all(|line| is_decimal(line))
        && others.iter().any(|&other| score(other).0 == lines.len() && score(other).1 > 0);
    let accepted = [b','].into_iter().filter(|_| !has_decimals).chain(others).collect::<Vec<u8>>();
    let best = accepted.into_iter().rev().max_by_key(|&separator| score(separator));
    match best.filter(|&best| score(best).0 > 0) {
        Some(best) => Delimiter::Byte(best),
        None if lines.first().is_some_and(|line| line.trim_ascii().contains(&b' ')) => Delimiter::Blanks,
        None => Delimiter::Byte(b','),
    }
}

/// Opens a text. The first row is the header unless the mapping names the columns.
pub fn open(path: &Path, bytes: Box<dyn Read + Send>, table: &TableSpec, head: &[u8]) -> Result<OpenFile> {
    let delimiter = table.delimiter.unwrap_or_else(|| detect_delimiter(head, table.comment));
    let mut detected = Vec::new();
    if table.delimiter.is_none() {
        detected.push(format!("fields separated by {}", delimiter_name(delimiter)));
    }
    let mut quoted = None;
    let lines = match delimiter {
        Delimiter::Byte(byte) => {
            quoted = Some(byte).filter(|byte| table.quotes.unwrap_or(matches!(byte, b',' | b';')));
            let quoted = quoted.is_some();
            let separator = Separator::Other { byte, quoted, comment: table.comment };
            TextLines::Separated(InputRows::new(bytes, path, separator))
        }
        Delimiter::Blanks => {
            TextLines::Blanks { reader: BufReader::new(bytes), text: Vec::new(), line: 0, comment: table.comment }
        }
    };
    let joint = match delimiter {
        Delimiter::Byte(byte) => byte,
        Delimiter::Blanks => b' ',
    };
    let mut rows = DelimitedRows {
        path: path.to_owned(),
        lines,
        fields: 0,
        quoted,
        overflow: table.overflow.then_some(joint),
        first: None,
    };
    let mut columns = table.columns.clone();
    if columns.is_empty() {
        let mut header = LogRow::default();
        if !rows.lines.read(path, &mut header)? {
            return Ok(OpenFile::empty());
        }
        columns = match table.header {
            Some(false) => (1..=header.fields.len()).map(|at| format!("${at}")).collect(),
            _ => header.fields.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        };
        rows.first = Some(header).filter(|_| table.header == Some(false));
    }
    rows.fields = columns.len();
    Ok(OpenFile { columns, rows: Box::new(rows), is_named: false, detected })
}

/// The lines of a text, split into fields.
enum TextLines {
    /// One character between fields.
    Separated(InputRows),
    /// Blanks between fields.
    Blanks { reader: BufReader<Box<dyn Read + Send>>, text: Vec<u8>, line: u64, comment: Option<u8> },
}

/// A row with more lines has a quote without an end, which would swallow the rows behind it. Shorter rows are not examined.
const LINES_MOST: usize = 200;
const LONG: usize = 1 << 12;

impl TextLines {
    /// Reads the next line that is neither blank nor a comment; returns whether there was one.
    fn read(&mut self, path: &Path, row: &mut LogRow) -> Result<bool> {
        match self {
            TextLines::Separated(rows) => match rows.read().map_err(|error| without_end(path, error))? {
                None => Ok(false),
                Some(read) => {
                    let bytes = read.record.as_slice();
                    if bytes.len() > LONG && bytes.iter().filter(|byte| **byte == b'\n').count() > LINES_MOST {
                        let problem =
                            format!("a row has more than {LINES_MOST} lines; expected the end of a quoted field");
                        let problem = Error::trace(path, read.line, "", problem).to_string();
                        return Err(Error::Mismatch { problem });
                    }
                    row.line = read.line;
                    row.fields.clone_from(read.record);
                    Ok(true)
                }
            },
            TextLines::Blanks { reader, text, line, comment } => loop {
                text.clear();
                if reader.read_until(b'\n', text).map_err(|source| Error::io(path, source))? == 0 {
                    return Ok(false);
                }
                *line += 1;
                let bytes = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
                if bytes.is_empty() || (comment.is_some() && bytes.first() == comment.as_ref()) {
                    continue;
                }
                row.line = *line;
                row.fields.clear();
                let fields = bytes.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
                fields.for_each(|field| row.fields.push_field(field));
                return Ok(true);
            },
        }
    }
}

/// Makes the error of a quote without an end final: the row would have all rows behind it.
fn without_end(path: &Path, error: Error) -> Error {
    match error {
        Error::Trace { line, problem, .. } => {
            let problem = format!("{problem}; or set quotes = false in the mapping");
            Error::Mismatch { problem: Error::trace(path, line, "", problem).to_string() }
        }
        error => error,
    }
}

/// Returns the number of lines of a field that has whole rows in it: the quote at its beginning was not closed in its row.
fn swallowed_lines(record: &ByteRecord, delimiter: u8, fields: usize) -> Option<usize> {
    if fields < 3 || !record.as_slice().contains(&b'\n') {
        return None;
    }
    record.iter().find_map(|field| {
        let lines: Vec<&[u8]> = field.split(|&byte| byte == b'\n').collect();
        let is_row = |line: &&[u8]| line.iter().filter(|&&byte| byte == delimiter).count() + 1 == fields;
        let inner = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
        inner.iter().any(is_row).then_some(lines.len())
    })
}

struct DelimitedRows {
    path: PathBuf,
    lines: TextLines,
    fields: usize,
    /// The delimiter, if fields may be in quotes.
    quoted: Option<u8>,
    /// The delimiter, if further ones belong to the last column.
    overflow: Option<u8>,
    /// The first row of a file without a header, once it is read.
    first: Option<LogRow>,
}

impl Rows for DelimitedRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        if let Some(first) = self.first.take() {
            *row = first;
            return Ok(true);
        }
        if !self.lines.read(&self.path, row)? {
            return Ok(false);
        }
        if let Some(delimiter) = self.quoted
            && let Some(lines) = swallowed_lines(&row.fields, delimiter, self.fields)
        {
            let problem = format!(
                "a field in quotes has {lines} lines, and some have {} fields as a row has; expected the end of the quote, or \
                 quotes = false in the mapping",
                self.fields
            );
            return Err(Error::trace(&self.path, row.line, "", problem));
        }
        let found = row.fields.len();
        if found == self.fields {
            return Ok(true);
        }
        // A delimiter at the end of every line makes one empty field too many.
        if found == self.fields + 1 && row.fields.get(self.fields).is_some_and(<[u8]>::is_empty) {
            row.fields.truncate(self.fields);
            return Ok(true);
        }
        match self.overflow {
            Some(byte) if found > self.fields => {
                let mut joined: ByteRecord = row.fields.iter().take(self.fields - 1).collect();
                let last: Vec<&[u8]> = row.fields.iter().skip(self.fields - 1).collect();
                joined.push_field(&last.join(&[byte][..]));
                row.fields = joined;
                Ok(true)
            }
            _ => {
                let expected = format!("has {found} fields; expected {}, the number of columns", self.fields);
                Err(Error::trace(&self.path, row.line, "", expected))
            }
        }
    }
}
