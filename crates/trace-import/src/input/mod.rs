//! Opens the files of a log: decompression, detection of the form, and rows with positions.
//!
//! Every form becomes rows of text fields, one for each column; an empty field is a missing value. The form and the delimiter are detected
//! from the first 64 KiB unless the mapping states them. Everything detected is reported.

mod columnar;
mod delimited;
mod json;
mod records;

use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use csv::ByteRecord;
use plimsoll_base::error::{Error, Result, either};
use plimsoll_sim::workload::Input;

pub use delimited::detect_delimiter;
pub use json::find_records;
pub use records::JsonRecords;

use crate::mapping::{Delimiter, FileForm, TableSpec};
use crate::readers;

/// The number of bytes that are examined.
pub const EXAMINED: usize = 64 * 1024;

/// A row: its line (or the number of its record) and its fields.
#[derive(Clone, Debug, Default)]
pub struct LogRow {
    /// The line in the file, from 1; the number of the record in Parquet.
    pub line: u64,
    /// The index of the file among those of its table.
    pub file: usize,
    /// The fields in the order of the columns.
    pub fields: ByteRecord,
}

/// A stream of rows.
pub trait Rows {
    /// Reads the next row into `row`; returns whether there was one. Errors: [`Error::Trace`] for a row that cannot be read; the next call
    /// continues behind it.
    fn next(&mut self, row: &mut LogRow) -> Result<bool>;

    /// Returns columns that were found later than the first records, and are not read.
    fn late_columns(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An open file.
pub struct OpenFile {
    /// The columns; there are none in a file without a row and a header.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Box<dyn Rows>,
    /// Whether every row names its columns, so that it may lack some.
    pub is_named: bool,
    /// The detected properties, for the report.
    pub detected: Vec<String>,
}

/// Bytes of a file after decompression, and their beginning.
pub struct Unpacked {
    /// The first 64 KiB, or fewer if the file is smaller.
    pub head: Vec<u8>,
    /// All bytes.
    pub reader: Box<dyn Read + Send>,
    /// The name of the compression.
    pub compression: Option<&'static str>,
}

/// Opens and decompresses a file. Errors: [`Error::Io`], [`Error::Trace`] for UTF-16 text and other compressions.
pub fn unpack(input: &Input) -> Result<Unpacked> {
    let path = input.path();
    let mut reader = input.reader()?;
    let magic = read_head(path, &mut reader, 8)?;
    let packed = Cursor::new(magic.clone()).chain(reader);
    let (compression, reader): (_, Box<dyn Read + Send>) = if magic.starts_with(b"\x1f\x8b") {
        (Some("gzip"), Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(packed))))
    } else if magic.starts_with(b"\x28\xb5\x2f\xfd") {
        let decoder = zstd::stream::read::Decoder::new(packed).map_err(|source| Error::io(path, source))?;
        (Some("zstd"), Box::new(decoder))
    } else if magic.starts_with(b"\xfd7zXZ\0") {
        (Some("xz"), Box::new(lzma_rust2::XzReader::new(BufReader::new(packed), true)))
    } else {
        (None, Box::new(packed))
    };
    let mut reader = reader;
    let head = read_head(path, &mut reader, EXAMINED)?;
    if let Some(problem) = plimsoll_sim::workload::describe_encoding(&head) {
        return Err(Error::trace(path, 0, "", problem));
    }
    Ok(Unpacked { reader: Box::new(Cursor::new(head.clone()).chain(reader)), head, compression })
}

fn read_head(path: &Path, reader: &mut dyn Read, bytes: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(bytes as u64).read_to_end(&mut head).map_err(|source| Error::io(path, source))?;
    Ok(head)
}

/// Returns whether a file is Parquet.
pub fn is_parquet(input: &Input) -> Result<bool> {
    Ok(input.head(4)? == b"PAR1")
}

/// Detects whether text is JSON: `None` for other text.
pub fn json_form(head: &[u8]) -> Option<FileForm> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match text.first()? {
        b'[' => Some(FileForm::Json),
        b'{' => {
            // A complete record on the first line, with another one below, makes JSON lines.
            let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
            let complete = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
            let first = lines.next().is_some_and(|line| {
                // The first record may be longer than the examined part.
                let is_cut = head.len() >= EXAMINED && !head.contains(&b'\n');
                complete(line) || (is_cut && find_records(text).is_empty())
            });
            let more = match lines.next() {
                Some(line) => line.starts_with(b"{"),
                None => find_records(text).is_empty(),
            };
            Some(if first && more { FileForm::JsonLines } else { FileForm::Json })
        }
        _ => None,
    }
}

/// The rows of an empty file.
struct NoRows;

impl Rows for NoRows {
    fn next(&mut self, _: &mut LogRow) -> Result<bool> {
        Ok(false)
    }
}

impl OpenFile {
    /// Creates a file without columns and rows.
    fn empty() -> OpenFile {
        OpenFile { columns: Vec::new(), rows: Box::new(NoRows), is_named: false, detected: Vec::new() }
    }
}

/// Opens a file of a table. A file of JSON also has the columns `known`.
pub fn open(input: &Input, table: &TableSpec, known: &[String]) -> Result<OpenFile> {
    let path = input.path();
    let parquet = is_parquet(input)?;
    if parquet != (table.form == Some(FileForm::Parquet))
        && (parquet || table.form == Some(FileForm::Parquet))
        && table.form.is_some()
    {
        let found =
            if parquet { "is Parquet; the mapping expects text" } else { "is not Parquet, which the mapping expects" };
        return Err(Error::trace(path, 0, "", found));
    }
    if parquet {
        return columnar::open(input);
    }
    let unpacked = unpack(input)?;
    if unpacked.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&unpacked.head).trim_ascii().is_empty()
        && unpacked.head.len() < EXAMINED
    {
        return Ok(OpenFile::empty());
    }
    let mut detected: Vec<String> = unpacked.compression.map(str::to_owned).into_iter().collect();
    let reader = table.reader.as_ref().map(|name| (name, readers::find(name)));
    if let Some((name, None)) = reader {
        let known = either(readers::READERS.iter().map(|reader| reader.name));
        return Err(table.place.wrong("reader", format!("'{name}' is no reader; expected {known}")));
    }
    let form = table.form.or_else(|| json_form(&unpacked.head)).unwrap_or(FileForm::Delimited);
    let bytes = BufReader::with_capacity(EXAMINED, unpacked.reader);
    let mut file = match (reader, form) {
        (Some((_, Some(reader))), _) => readers::open(path, bytes, reader)?,
        (_, FileForm::Json) => {
            let mut table = table.clone();
            if table.records.is_empty() {
                table.records = find_records(&unpacked.head);
                if !table.records.is_empty() {
                    detected.push(format!("records at {}", table.records.join(".")));
                }
            }
            json::open_array(path, bytes, &table, known)?
        }
        (_, FileForm::JsonLines) => json::open_lines(path, bytes, table, known)?,
        _ => delimited::open(path, Box::new(bytes), table, &unpacked.head)?,
    };
    detected.append(&mut file.detected);
    Ok(OpenFile { detected, ..file })
}

/// Describes a delimiter for reports.
pub fn delimiter_name(delimiter: Delimiter) -> String {
    match delimiter {
        Delimiter::Blanks => "blanks".to_owned(),
        Delimiter::Byte(b'\t') => "tabs".to_owned(),
        Delimiter::Byte(byte) => format!("'{}'", char::from(byte)),
    }
}
