//! A fast reader for the rows of comma-separated files.
//!
//! Rows without quotes are found by this module and split at their commas. From the first row with a quote on, the `csv` crate reads all
//! rows. A line ends with a line feed; a carriage return before it is part of the end. Blank lines are skipped. Every row has the number of
//! its line.

use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::{Error, Result};
use crate::rows::{Lines, Records, Separator};

/// The number of bytes per read.
const CHUNK: usize = 1 << 18;

/// The rows of a file, one at a time.
pub struct Fields {
    path: PathBuf,
    rest: Rest,
}

type Input = Box<dyn Read + Send>;

enum Rest {
    Plain(Plain),
    Quoted(Box<Quoted>),
}

/// A row and its position.
#[derive(Clone, Copy, Debug)]
pub struct Split<'a> {
    /// The line number, from 1.
    pub line: u64,
    bytes: &'a [u8],
    /// The end of each field in `bytes`; `None` if commas separate the fields.
    ends: Option<&'a [usize]>,
}

impl<'a> Split<'a> {
    /// Returns the fields in order, at least one.
    #[inline]
    pub fn iter(&self) -> SplitFields<'a> {
        SplitFields { rest: Some(self.bytes), ends: self.ends, at: 0 }
    }
}

/// The remaining fields of a row.
#[derive(Clone, Debug)]
pub struct SplitFields<'a> {
    /// The bytes of the remaining fields; `None` after the last.
    rest: Option<&'a [u8]>,
    ends: Option<&'a [usize]>,
    at: usize,
}

impl SplitFields<'_> {
    /// Returns whether exactly `fields` fields have been returned and none remain.
    #[inline]
    pub fn ended_after(&self, fields: usize) -> bool {
        self.at == fields && self.rest.is_none()
    }
}

impl<'a> Iterator for SplitFields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (field, later) = match self.ends {
            None => match rest.iter().position(|&byte| byte == b',') {
                Some(comma) => (&rest[..comma], Some(&rest[comma + 1..])),
                None => (rest, None),
            },
            Some(ends) => {
                let length = ends[self.at] - self.at.checked_sub(1).map_or(0, |before| ends[before]);
                (&rest[..length], (self.at + 1 < ends.len()).then(|| &rest[length..]))
            }
        };
        self.rest = later;
        self.at += 1;
        Some(field)
    }
}

impl Fields {
    /// Creates a reader of the rows of an open `input`. Error messages name it `path`.
    pub fn new(input: Input, path: &Path) -> Fields {
        // `Lines` appends a line feed to the input, so that every row ends with one.
        let (lines, ended) = Lines::new(input);
        let plain =
            Plain { input: Box::new(lines), ended, buffer: vec![0; CHUNK], from: 0, next: 0, to: 0, end: 0, line: 0 };
        Fields { path: path.to_owned(), rest: Rest::Plain(plain) }
    }

    /// Returns the next row that is not blank, or `None` at the end. Errors: [`Error::Io`], and [`Error::Trace`] for a quote that is not
    /// closed.
    pub fn read(&mut self) -> Result<Option<Split<'_>>> {
        if let Rest::Plain(plain) = &mut self.rest {
            match plain.find(&self.path)? {
                Found::End => return Ok(None),
                Found::Row => {}
                Found::Quote => {
                    let quoted = plain.hand_over();
                    self.rest = Rest::Quoted(Box::new(quoted));
                }
            }
        }
        match &mut self.rest {
            Rest::Plain(plain) => Ok(Some(plain.row())),
            Rest::Quoted(quoted) => quoted.read(&self.path),
        }
    }
}

enum Found {
    Row,
    /// A row with a quote.
    Quote,
    End,
}

struct Plain {
    input: Input,
    ended: Arc<AtomicBool>,
    buffer: Vec<u8>,
    /// `from..to` are the unprocessed bytes of the buffer, from the beginning of the row on; `next` is the beginning of the next line.
    from: usize,
    next: usize,
    to: usize,
    /// The end of the row, without its line end.
    end: usize,
    /// The line number of the row.
    line: u64,
}

impl Plain {
    /// Advances to the next row. Errors: [`Error::Io`].
    fn find(&mut self, path: &Path) -> Result<Found> {
        self.pass_line();
        let mut at = self.from;
        loop {
            let Some(stop) = memchr::memchr2(b'\n', b'"', &self.buffer[at..self.to]) else {
                let scanned = self.to - self.from;
                if !self.refill(path)? {
                    return Ok(Found::End);
                }
                at = scanned;
                continue;
            };
            let stop = at + stop;
            if self.buffer[stop] == b'"' {
                return Ok(Found::Quote);
            }
            self.next = stop + 1;
            let line = &self.buffer[self.from..stop];
            let length = line.strip_suffix(b"\r").map_or(line.len(), <[u8]>::len);
            if length > 0 {
                self.end = self.from + length;
                return Ok(Found::Row);
            }
            self.pass_line();
            at = self.from;
        }
    }

    /// Advances to the next line.
    fn pass_line(&mut self) {
        self.from = self.next;
        self.line += 1;
    }

    /// Reads more bytes of the current row; returns `false` at the end of the file. Errors: [`Error::Io`].
    #[cold]
    fn refill(&mut self, path: &Path) -> Result<bool> {
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.to == self.buffer.len() {
            self.buffer.resize(2 * self.to, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.to..]) {
                Ok(read) => {
                    self.to += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(path, error)),
            }
        }
    }

    fn row(&self) -> Split<'_> {
        Split { line: self.line, bytes: &self.buffer[self.from..self.end], ends: None }
    }

    /// Passes the current row and all later bytes to `csv`. A blank line precedes them, because `csv` would remove a byte-order mark at the
    /// beginning.
    fn hand_over(&mut self) -> Quoted {
        let input = std::mem::replace(&mut self.input, Box::new(std::io::empty()));
        let rest = Cursor::new([b"\n", &self.buffer[self.from..self.to]].concat()).chain(input);
        let records = Records::new(Box::new(rest), self.ended.clone(), Separator::Comma, self.line - 1);
        Quoted { records, ends: Vec::new() }
    }
}

struct Quoted {
    records: Records,
    ends: Vec<usize>,
}

impl Quoted {
    fn read(&mut self, path: &Path) -> Result<Option<Split<'_>>> {
        while let Some(line) = self.records.read(path)? {
            let record = &self.records.record;
            // A record with only a carriage return is a blank line.
            if record.len() > 1 || record.as_slice() != b"\r" {
                self.ends.clear();
                self.ends.extend((0..record.len()).map(|field| record.range(field).map_or(0, |range| range.end)));
                if let Some(end) = self.ends.last_mut()
                    && record.as_slice().ends_with(b"\r")
                {
                    *end -= 1;
                }
                return Ok(Some(Split { line, bytes: self.records.record.as_slice(), ends: Some(&self.ends) }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a few bytes at a time, so that rows and line ends are cut at any position.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.1.min(buffer.len()).min(self.0.len());
            let (now, later) = self.0.split_at(bytes);
            buffer[..bytes].copy_from_slice(now);
            self.0 = later;
            Ok(bytes)
        }
    }

    type Row = (u64, Vec<String>);

    fn rows(text: &'static str, drop: usize) -> std::result::Result<Vec<Row>, String> {
        let mut fields = Fields::new(Box::new(Drops(text.as_bytes(), drop)), Path::new("t.csv"));
        let mut rows = Vec::new();
        while let Some(row) = fields.read().map_err(|error| error.to_string())? {
            let mut fields = row.iter();
            let count = fields.by_ref().count();
            assert!(fields.ended_after(count) && !row.iter().ended_after(0));
            rows.push((row.line, row.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()));
        }
        Ok(rows)
    }

    #[test]
    fn rows_have_their_fields_and_lines_whatever_ends_them_and_however_they_come() {
        let row = |line, fields: &[&str]| (line, fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>());
        let cases = [
            ("", vec![]),
            ("\n\n\r\n", vec![]),
            ("a", vec![row(1, &["a"])]),
            ("a,b\nc,d", vec![row(1, &["a", "b"]), row(2, &["c", "d"])]),
            ("a,b\r\nc,d\r\n", vec![row(1, &["a", "b"]), row(2, &["c", "d"])]),
            ("\n\na, b!\n\n,\n", vec![row(3, &["a", " b!"]), row(5, &["", ""])]),
            ("a,,b,\n#\n", vec![row(1, &["a", "", "b", ""]), row(2, &["#"])]),
            ("a,b\nc,\"d,\"\"\ne\"\nf,g\n", vec![row(1, &["a", "b"]), row(2, &["c", "d,\"\ne"]), row(4, &["f", "g"])]),
            ("a\r\nb,c\rd,e\n", vec![row(1, &["a"]), row(2, &["b", "c\rd", "e"])]),
            ("a,\r\n", vec![row(1, &["a", ""])]),
            (
                "a\r\n\r\n\"b\r\n\",c\r\n\r\n\nd,\"e\"\r\nf",
                vec![row(1, &["a"]), row(3, &["b\r\n", "c"]), row(7, &["d", "e"]), row(8, &["f"])],
            ),
            (
                "a\n\u{feff}b,\"c\"\n\u{feff}d\n",
                vec![row(1, &["a"]), row(2, &["\u{feff}b", "c"]), row(3, &["\u{feff}d"])],
            ),
            ("\"\",b\n\"\"\n", vec![row(1, &["", "b"]), row(2, &[""])]),
        ];
        for (text, want) in cases {
            for drop in [1, 2, 3, 5, 1000] {
                assert_eq!(rows(text, drop).expect(text), want, "{text:?} by {drop}");
            }
        }
    }

    #[test]
    fn rows_without_quotes_are_split_as_by_csv() {
        let mut state = 1u64;
        for _ in 0..3000 {
            let mut next = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % below
            };
            let parts = ["a", "17", ",", ",", "\n", "\r\n", " ", "é", "\u{feff}", "!", "-", "\0"];
            let text: String = (0..next(60)).map(|_| parts[next(parts.len())]).collect();
            // A quoted field in the first row passes all rows to `csv`.
            let quoted: &'static str = format!("\"b\"\n{text}").leak();
            let plain: &'static str = format!("b\n{text}").leak();
            let drop = 1 + next(20);
            assert_eq!(rows(plain, drop), rows(quoted, drop), "{text:?} by {drop}");
        }
    }

    #[test]
    fn a_quote_that_is_not_closed_is_named_with_its_line() {
        for (text, line) in [("a,b\nc,\"d\ne,f\n", 2), ("a\n\n\"b\n\",\"c\r\n\nd", 4)] {
            let error = rows(text, 1000).expect_err("an open quote");
            assert!(error.contains(&format!("t.csv, line {line}")) && error.contains("quote"), "{error}");
        }
    }

    #[test]
    fn a_row_may_be_longer_than_what_is_read_at_once() {
        let long = "x".repeat(3 * CHUNK);
        let text = format!("a,{long},b\nc\n").leak();
        let read = rows(text, usize::MAX).expect("readable");
        assert_eq!((read[0].1[1].len(), &read[1].1[0][..]), (long.len(), "c"));
    }
}
