//! Splits a JSON document into the records of an array without loading the document.
//!
//! Only brackets and texts are recognised here; each record is then parsed on its own. So memory grows with the largest record.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};

/// The largest record in bytes.
const RECORD_MOST: usize = 256 << 20;

/// The records of an array.
pub struct JsonRecords<R> {
    path: PathBuf,
    bytes: std::io::Bytes<R>,
    next: Option<u8>,
    line: u64,
    open: bool,
    ended: bool,
}

impl<R: BufRead> JsonRecords<R> {
    /// Opens the array at a path of keys; an empty path is an array that is the whole document. Errors: the document has no such array.
    pub fn new(path: &Path, reader: R, keys: &[String]) -> Result<JsonRecords<R>> {
        let mut records = JsonRecords {
            path: path.to_owned(),
            bytes: Read::bytes(reader),
            next: None,
            line: 1,
            open: false,
            ended: false,
        };
        records.advance()?;
        if records.next == Some(0xef) {
            (0..3).try_for_each(|_| records.advance())?;
        }
        for key in keys {
            records.enter(key)?;
        }
        records.skip_blanks()?;
        if records.next != Some(b'[') {
            let place =
                if keys.is_empty() { "at its beginning".to_owned() } else { format!("at '{}'", keys.join(".")) };
            return Err(records.wrong(&format!("has no array of records {place}")));
        }
        records.advance()?;
        Ok(records)
    }

    /// Returns an error after which no further record can be read: it is never a dropped row.
    fn wrong(&self, problem: &str) -> Error {
        Error::Mismatch { problem: Error::trace(&self.path, self.line, "", problem).to_string() }
    }

    fn advance(&mut self) -> Result<()> {
        self.line += u64::from(self.next == Some(b'\n'));
        self.next = self.bytes.next().transpose().map_err(|source| Error::io(&self.path, source))?;
        Ok(())
    }

    fn skip_blanks(&mut self) -> Result<()> {
        while self.next.is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.advance()?;
        }
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        self.skip_blanks()?;
        if self.next != Some(byte) {
            return Err(self.wrong(&format!("is not valid JSON: expected '{}'", char::from(byte))));
        }
        self.advance()
    }

    /// Advances to the value of a key of the object that begins here.
    fn enter(&mut self, key: &str) -> Result<()> {
        self.expect(b'{')?;
        loop {
            self.skip_blanks()?;
            if self.next == Some(b'}') || self.next.is_none() {
                return Err(self.wrong(&format!("has no key '{key}'")));
            }
            let mut name = Vec::new();
            self.value(&mut name)?;
            self.expect(b':')?;
            if serde_json::from_slice::<String>(&name).is_ok_and(|name| name == key) {
                return Ok(());
            }
            self.value(&mut Vec::new())?;
            self.skip_blanks()?;
            if self.next == Some(b',') {
                self.advance()?;
            }
        }
    }

    /// Reads one value: a text, an object, an array or a word.
    fn value(&mut self, into: &mut Vec<u8>) -> Result<()> {
        self.skip_blanks()?;
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        loop {
            let Some(byte) = self.next else {
                return if into.is_empty() || depth > 0 || quoted {
                    Err(self.wrong("ends within a record"))
                } else {
                    Ok(())
                };
            };
            if into.len() >= RECORD_MOST {
                return Err(self.wrong("has a record of more than 256 MiB"));
            }
            if quoted {
                quoted = escaped || byte != b'"';
                escaped = byte == b'\\' && !escaped;
                into.push(byte);
                self.advance()?;
                if !quoted && depth == 0 {
                    return Ok(());
                }
                continue;
            }
            match byte {
                b'"' => quoted = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        into.push(byte);
                        return self.advance();
                    }
                }
                b',' | b'}' | b']' | b':' if depth == 0 => return Ok(()),
                _ if depth == 0 && byte.is_ascii_whitespace() => return Ok(()),
                _ => {}
            }
            into.push(byte);
            self.advance()?;
        }
    }

    /// Reads the bytes of the next record; returns its line, or `None` at the end. Errors: the document is not JSON.
    pub fn read(&mut self, into: &mut Vec<u8>) -> Result<Option<u64>> {
        into.clear();
        if self.ended {
            return Ok(None);
        }
        self.skip_blanks()?;
        if self.open && self.next == Some(b',') {
            self.advance()?;
            self.skip_blanks()?;
        } else if self.next == Some(b']') {
            self.ended = true;
            return Ok(None);
        } else if self.open || self.next.is_none() {
            self.ended = true;
            return Err(self.wrong("is not valid JSON: expected ',' or ']' after a record"));
        }
        self.open = true;
        let line = self.line;
        if let Err(error) = self.value(into) {
            self.ended = true;
            return Err(error);
        }
        if into.is_empty() {
            self.ended = true;
            return Err(self.wrong("is not valid JSON: a record is missing"));
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, keys: &[&str]) -> Result<Vec<(u64, String)>> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let mut records = JsonRecords::new(Path::new("FILE"), text.as_bytes(), &keys)?;
        let (mut all, mut bytes) = (Vec::new(), Vec::new());
        while let Some(line) = records.read(&mut bytes)? {
            all.push((line, String::from_utf8_lossy(&bytes).into_owned()));
        }
        Ok(all)
    }

    #[test]
    fn records_are_split_with_their_lines() {
        let found = records("[ {\"a\": \"]}\\\"\"},\n {\"b\": [1, {}]} , 3,\"x\"\n]", &[]).expect("JSON");
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["{\"a\": \"]}\\\"\"}", "{\"b\": [1, {}]}", "3", "\"x\""]);
        assert_eq!(found[1].0, 2);
        let text = "{\"x\": {\"jobs\": 1}, \"n\": 3, \"y\": {\"jobs\": [{}]}}";
        assert_eq!(records(text, &["y", "jobs"]).expect("JSON").len(), 1);
        assert_eq!(records("[]", &[]).expect("JSON").len(), 0);
    }

    #[test]
    fn damaged_documents_are_errors() {
        for text in ["", "{}", "[1 2]", "[1", "[{\"a\": 1", "[,]", "[\"x]", "{\"jobs\": 3}", "nonsense", "[1,]"] {
            assert!(records(text, &[]).is_err(), "{text}");
        }
        let error = records("{\"a\": [1]}", &["jobs"]).unwrap_err().to_string();
        assert!(error.contains("has no key 'jobs'"), "{error}");
    }
}
