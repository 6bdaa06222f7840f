//! Small text files, read as a whole or as rows of a delimited file. Each row has its position for messages.
//!
//! Public trace formats and machines files are read by this module. Fields are trimmed; a byte-order mark, CRLF line ends and blank lines
//! are accepted. A problem is an [`Error::Trace`] with file, line, column, value and the accepted values. Numbers are read by [`decimal`],
//! without floats.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csv::ByteRecord;

use crate::error::{Error, Result};
use crate::units::{NumberProblem, Rounding, decimal};

/// The maximum size in bytes of a text that is read as a whole.
const TEXT_MOST: u64 = 64 << 20;

/// Opens a regular file. Devices are refused since they never end, and pipes since they cannot be read again for the digest.
///
/// Errors: [`Error::Io`], also for a folder.
pub fn open(path: &Path) -> Result<File> {
    let failed = |source| Error::io(path, source);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "is a folder; expected a file")));
    }
    if !metadata.is_file() {
        let problem = "is no regular file but a device or a pipe; expected a file that ends and can be read again";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, problem)));
    }
    File::open(path).map_err(failed)
}

/// Reads a whole text file, such as a plan, without its byte-order mark. Errors: those of [`open`], or a text that is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    text_of(path, open(path)?)
}

/// Reads a whole text file, or standard input for `-`. Returns the name for messages, and the text. Errors: as [`read_text`].
pub fn read_input(path: &Path) -> Result<(PathBuf, String)> {
    if path.as_os_str() != "-" {
        return Ok((path.to_owned(), read_text(path)?));
    }
    let name = PathBuf::from("standard input");
    let text = text_of(&name, io::stdin().lock())?;
    Ok((name, text))
}

/// Reads a whole text file; returns `None` if it does not exist. Errors: those of [`read_text`] for an existing file.
pub fn read_text_if_there(path: &Path) -> Result<Option<String>> {
    match read_text(path) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

/// Reads a whole `input`, which messages call `name`, without its byte-order mark.
///
/// Errors: [`Error::Io`], also for more than 64 MiB; [`Error::Trace`] with the line that is not UTF-8.
fn text_of(name: &Path, input: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    input.take(TEXT_MOST + 1).read_to_end(&mut bytes).map_err(|source| Error::io(name, source))?;
    if bytes.len() as u64 > TEXT_MOST {
        let problem = format!("has more than {} MiB; expected a smaller text file", TEXT_MOST >> 20);
        return Err(Error::io(name, io::Error::new(io::ErrorKind::FileTooLarge, problem)));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + sound.iter().filter(|&&byte| byte == b'\n').count() as u64;
        Error::trace(name, line, "", "is not UTF-8 text")
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// The character between the fields of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// A comma; fields may be quoted.
    Comma,
    /// A tab; quotes are ordinary characters.
    Tab,
    /// Another character.
    Other {
        /// The character.
        byte: u8,
        /// Whether fields may be quoted.
        quoted: bool,
        /// The first character of lines that are comments.
        comment: Option<u8>,
    },
}

impl Separator {
    /// Returns the character, whether fields may be quoted, and the first character of comments.
    fn parts(self) -> (u8, bool, Option<u8>) {
        match self {
            Separator::Comma => (b',', true, None),
            Separator::Tab => (b'\t', false, None),
            Separator::Other { byte, quoted, comment } => (byte, quoted, comment),
        }
    }
}

/// A column: its position in the row, and its name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputColumn<'a> {
    /// Position in the row, from 0.
    pub at: usize,
    /// Its name.
    pub name: &'a str,
}

impl<'a> InputColumn<'a> {
    /// Creates the column at position `at` with the name `name`.
    pub const fn new(at: usize, name: &'a str) -> InputColumn<'a> {
        InputColumn { at, name }
    }
}

/// The number of bytes per read.
const CHUNK: usize = 1 << 16;

/// Reads records with the `csv` crate, which processes quotes, and returns the line number of each record.
pub(crate) struct Records {
    reader: csv::Reader<Box<dyn Read + Send>>,
    /// The last record that was read.
    pub record: ByteRecord,
    /// Whether all bytes have been read.
    ended: Arc<AtomicBool>,
    /// The number of the first line of the input.
    first: u64,
}

impl Records {
    /// Creates a reader of `lines`, the bytes of a [`Lines`]; `first` is the number of the first line.
    pub fn new(lines: Box<dyn Read + Send>, ended: Arc<AtomicBool>, separator: Separator, first: u64) -> Records {
        let (byte, quoted, comment) = separator.parts();
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .comment(comment)
            .flexible(true)
            .terminator(csv::Terminator::Any(b'\n'))
            .delimiter(byte)
            .quoting(quoted)
            .buffer_capacity(CHUNK)
            .from_reader(lines);
        Records { reader, record: ByteRecord::new(), ended, first }
    }

    /// Reads the next record. Returns the number of its first line, or `None` at the end. Errors: [`Error::Io`], and [`Error::Trace`] for a
    /// quote that is not closed.
    pub fn read(&mut self, path: &Path) -> Result<Option<u64>> {
        let more = self.reader.read_byte_record(&mut self.record).map_err(|error| {
            let text = error.to_string();
            match error.into_kind() {
                csv::ErrorKind::Io(source) => Error::io(path, source),
                _ => Error::trace(path, self.first, "", text),
            }
        })?;
        if !more {
            return Ok(None);
        }
        // A record ends with its line feed, except one with an open quote, which ends with the file.
        let open = self.ended.load(Ordering::Relaxed);
        let feeds = |field: &[u8]| field.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let behind = self.reader.position().line() + u64::from(open);
        // The reader's line numbers begin with 1.
        let line = (self.first + behind).saturating_sub(feeds(self.record.as_slice()) + 2);
        if open {
            // The open quote belongs to the last field.
            let before: u64 = self.record.iter().rev().skip(1).map(feeds).sum();
            let problem = "a quote opened on this line is not closed; close it, or double it if it is part of the text";
            return Err(Error::trace(path, line + before, "", problem));
        }
        Ok(Some(line))
    }
}

/// The rows of a file, one at a time.
pub struct InputRows {
    path: PathBuf,
    records: Records,
}

impl InputRows {
    /// Opens a file. Errors: those of [`open`].
    pub fn open(path: &Path, separator: Separator) -> Result<InputRows> {
        Ok(InputRows::new(Box::new(open(path)?), path, separator))
    }

    /// Creates a reader of the rows of an open `input`, which messages call `path`.
    pub fn new(input: Box<dyn Read + Send>, path: &Path, separator: Separator) -> InputRows {
        // Only the line feed ends a line; the trim removes a carriage return.
        let (lines, ended) = Lines::new(input);
        InputRows { path: path.to_owned(), records: Records::new(Box::new(lines), ended, separator, 1) }
    }

    /// Returns the next row that is not blank, or `None` at the end. Errors: [`Error::Io`], and [`Error::Trace`] for a quote that is not
    /// closed.
    pub fn read(&mut self) -> Result<Option<InputRow<'_>>> {
        while let Some(line) = self.records.read(&self.path)? {
            self.records.record.trim();
            if self.records.record.len() > 1 || self.records.record.iter().any(|field| !field.is_empty()) {
                return Ok(Some(InputRow { path: &self.path, line, record: &self.records.record }));
            }
        }
        Ok(None)
    }
}

/// A row and its position.
#[derive(Clone, Copy, Debug)]
pub struct InputRow<'a> {
    /// The file.
    pub path: &'a Path,
    /// The number of its first line, from 1.
    pub line: u64,
    /// The fields.
    pub record: &'a ByteRecord,
}

impl<'a> InputRow<'a> {
    /// Returns the number of fields.
    pub fn fields(&self) -> usize {
        self.record.len()
    }

    /// Returns an error at this row, in `column` (which may be empty).
    pub fn error(&self, column: &str, problem: impl Into<String>) -> Error {
        Error::trace(self.path, self.line, column, problem)
    }

    /// Checks the number of fields. Errors: [`Error::Trace`] with `expected` as the end of the message.
    pub fn expect_fields(&self, accepted: std::ops::RangeInclusive<usize>, expected: &str) -> Result<()> {
        if accepted.contains(&self.fields()) {
            return Ok(());
        }
        Err(self.error("", format!("has {}; expected {expected}", plural(self.fields()))))
    }

    /// Returns the bytes of a field; they are empty if the row is too short.
    pub fn bytes(&self, column: InputColumn<'_>) -> &'a [u8] {
        self.record.get(column.at).unwrap_or_default()
    }

    /// Returns whether a field is absent: empty, `nan` or `null`.
    pub fn is_null(&self, column: InputColumn<'_>) -> bool {
        let field = self.bytes(column);
        field.is_empty() || field.eq_ignore_ascii_case(b"nan") || field.eq_ignore_ascii_case(b"null")
    }

    /// Returns a field as text without surrounding blanks; it may be empty.
    pub fn text(&self, column: InputColumn<'_>) -> Result<&'a str> {
        let field = trimmed(self.bytes(column));
        std::str::from_utf8(field)
            .map_err(|_| self.error(column.name, format!("'{}' is not UTF-8 text", shorten(field))))
    }

    /// Returns a field as a name, which is not empty.
    pub fn name(&self, column: InputColumn<'_>) -> Result<&'a str> {
        let name = self.text(column)?;
        if name.is_empty() { Err(self.error(column.name, "is empty; expected a name")) } else { Ok(name) }
    }

    /// Returns a number from 0 on, times `scale`; `expected` describes the accepted values.
    pub fn number(&self, column: InputColumn<'_>, scale: u64, round: Rounding, expected: &str) -> Result<u64> {
        decimal(self.bytes(column), scale, round).map_err(|problem| self.not(column, problem, expected))
    }

    /// Returns a number of either sign, times `scale`, rounded to the nearest.
    pub fn signed(&self, column: InputColumn<'_>, scale: u64, expected: &str) -> Result<i64> {
        signed(self.bytes(column), scale).map_err(|problem| self.not(column, problem, expected))
    }

    /// Returns a whole number from 0 on (`12846.0` is one, `0.5` is not).
    pub fn integer(&self, column: InputColumn<'_>, expected: &str) -> Result<u64> {
        let up = self.number(column, 1, Rounding::Up, expected)?;
        if up == self.number(column, 1, Rounding::Down, expected)? {
            return Ok(up);
        }
        Err(self.wrong(column, "is not a whole number", expected))
    }

    /// Returns an error about the value of a field.
    pub fn wrong(&self, column: InputColumn<'_>, problem: &str, expected: &str) -> Error {
        let field = self.bytes(column);
        let value = if field.is_empty() { String::new() } else { format!("'{}' ", shorten(field)) };
        let problem = if field.is_empty() { "is empty" } else { problem };
        self.error(column.name, format!("{value}{problem}; expected {expected}"))
    }

    fn not(&self, column: InputColumn<'_>, problem: NumberProblem, expected: &str) -> Error {
        self.wrong(column, &problem.to_string(), expected)
    }
}

/// The bytes of a table, with a line feed after the last line even if it has none. A flag is set when all bytes have been read.
///
/// A row ends with its line feed. If a row is returned only after all bytes have been read, it therefore has an open quote.
pub(crate) struct Lines<R> {
    bytes: io::Chain<R, &'static [u8]>,
    ended: Arc<AtomicBool>,
}

impl<R: Read> Lines<R> {
    /// Returns the lines of `input`, and a flag that is set when all have been read.
    pub fn new(input: R) -> (Lines<R>, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        (Lines { bytes: input.chain(&b"\n"[..]), ended: ended.clone() }, ended)
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.ended.store(read == 0 && !buffer.is_empty(), Ordering::Relaxed);
        Ok(read)
    }
}

/// Removes the blanks around a name, so that `ann` and `ann ` are one user. Blanks beyond ASCII are removed, too.
#[inline]
pub fn trimmed(name: &[u8]) -> &[u8] {
    match name {
        [b'!'..=b'~'] | [b'!'..=b'~', .., b'!'..=b'~'] => name,
        _ => trimmed_blanks(name),
    }
}

#[cold]
fn trimmed_blanks(name: &[u8]) -> &[u8] {
    let plain = |byte: Option<&u8>| byte.is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_whitespace());
    if plain(name.first()) && plain(name.last()) {
        return name;
    }
    std::str::from_utf8(name).map_or(name.trim_ascii(), |name| name.trim().as_bytes())
}

/// Reads a number of either sign, times `scale`, rounded to the nearest.
pub fn signed(text: &[u8], scale: u64) -> std::result::Result<i64, NumberProblem> {
    let (sign, digits) = match text {
        [b'-', b'-' | b'+', ..] => return Err(NumberProblem::NotANumber),
        [b'-', rest @ ..] => (-1, rest),
        _ => (1, text),
    };
    let value = decimal(digits, scale, Rounding::Nearest)?;
    i64::try_from(value).map(|value| sign * value).map_err(|_| NumberProblem::TooLarge)
}

fn plural(fields: usize) -> String {
    if fields == 1 { "1 field".to_owned() } else { format!("{fields} fields") }
}

/// Shortens a field for a message: at most 40 characters.
fn shorten(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    if text.chars().count() <= 40 { text.into_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static str) -> Vec<(u64, Vec<String>)> {
        let mut rows = InputRows::new(Box::new(text.as_bytes()), Path::new("t.csv"), Separator::Comma);
        let mut read = Vec::new();
        while let Some(row) = rows.read().expect("readable") {
            let fields = row.record.iter().map(|field| String::from_utf8_lossy(field).into_owned());
            read.push((row.line, fields.collect()));
        }
        read
    }

    #[test]
    fn lines_are_numbered_whatever_ends_them() {
        let want = vec![(1, vec!["a".to_owned(), "b".to_owned()]), (3, vec!["c".into(), "d".into()])];
        for text in
            ["a,b\n\nc,d", "a,b\n\nc,d\n", "\u{feff}a, b\r\n\r\nc,d\r\n", "a,b\n  \n\"c\",d\r\n\n\n", "a,b\r\n\r\nc ,d"]
        {
            assert_eq!(lines(text), want, "{text:?}");
        }
        assert!(lines("").is_empty());
        assert!(lines("\n\r\n").is_empty());
    }

    #[test]
    fn only_texts_that_end_are_read_whole() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::io::Write::write_all(&mut file, "\u{feff}a = 1\n".as_bytes()).expect("writable");
        assert_eq!(read_text(file.path()).expect("a text"), "a = 1\n");
        let refusal = |path: &Path| read_text(path).unwrap_err().to_string();
        file.as_file().set_len(TEXT_MOST + 1).expect("a sparse file");
        assert!(refusal(file.path()).ends_with("has more than 64 MiB; expected a smaller text file"));
        std::fs::write(file.path(), b"a\nb\xff\n").expect("writable");
        assert!(refusal(file.path()).ends_with(", line 2: is not UTF-8 text"));
        assert!(refusal(&std::env::temp_dir()).ends_with("is a folder; expected a file"));
        if cfg!(unix) {
            for device in ["/dev/zero", "/dev/null"] {
                assert!(refusal(Path::new(device)).contains("is no regular file but a device"));
                assert!(InputRows::open(Path::new(device), Separator::Comma).is_err());
            }
        }
    }

    #[test]
    fn an_open_quote_is_found_and_a_closed_one_is_none() {
        assert_eq!(
            lines("a,\"b\nc\n\"\nd,\" e\""),
            [(1, vec!["a".into(), "b\nc".into()]), (4, vec!["d".into(), "e".into()])]
        );
        for (text, line) in [("a,b\nc,\"d\ne,f\n", 2), ("a,b\nc,\"d", 2), ("a,\"b\nc\",\"d\n", 2), ("\"", 1)] {
            let mut rows = InputRows::new(Box::new(text.as_bytes()), Path::new("t.csv"), Separator::Comma);
            let error = loop {
                match rows.read() {
                    Ok(row) => assert!(row.is_some(), "{text:?}"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(
                error.starts_with(&format!("t.csv, line {line}: a quote opened on this line")),
                "{text:?}: {error}"
            );
        }
    }

    #[test]
    fn names_lose_the_blanks_around_them() {
        for (name, want) in
            [("ann ", "ann"), (" ann", "ann"), ("\u{a0}ann\u{2009}", "ann"), ("a b", "a b"), ("é", "é"), (" ", "")]
        {
            assert_eq!(trimmed(name.as_bytes()), want.as_bytes());
        }
        assert_eq!(trimmed(b" \xff "), b"\xff");
    }

    #[test]
    fn wrong_fields_say_where_and_what_would_be_accepted() {
        let mut rows =
            InputRows::new(Box::new("x\n-1,1.5,,--2,12846.0\n".as_bytes()), Path::new("t.csv"), Separator::Comma);
        rows.read().expect("readable");
        let row = rows.read().expect("readable").expect("a second row");
        let at = |at| InputColumn::new(at, "n");
        let message = |result: Result<u64>| result.unwrap_err().to_string();
        assert_eq!(
            message(row.integer(at(0), "a count from 0")),
            "t.csv, line 2, column 'n': '-1' is negative; expected a count from 0"
        );
        assert_eq!(
            message(row.integer(at(1), "a count from 0")),
            "t.csv, line 2, column 'n': '1.5' is not a whole number; expected a count from 0"
        );
        assert_eq!(message(row.integer(at(2), "a count")), "t.csv, line 2, column 'n': is empty; expected a count");
        assert_eq!(row.integer(at(4), "a count").ok(), Some(12846));
        assert_eq!(row.signed(at(0), 10, "a number").ok(), Some(-10));
        assert!(row.signed(at(3), 1, "a number").unwrap_err().to_string().contains("'--2' is not a number"));
        assert!(row.expect_fields(1..=2, "1 or 2").unwrap_err().to_string().ends_with("has 5 fields; expected 1 or 2"));
    }
}
