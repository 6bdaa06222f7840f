//! Checksummed records in JSON: a changed record is invalid.
//!
//! The last key of the object is `blake3`, the digest of every byte before it. To verify a record with common tools, remove the text from
//! the last comma on and compare the digest of the rest (docs/formats.md).

use std::cmp::Ordering;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::file::{WrittenFile, digest_of, write_whole};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows;

const BEFORE: &str = ",\n  \"blake3\": \"";
const BEHIND: &str = "\"\n}\n";

/// The version of the schemas of all tables together; it changes when a column is renamed, removed or gets another meaning, or when tables
/// move.
pub const VERSION: u32 = 3;

/// Returns a record as text, with its digest.
fn sealed(text: &str) -> String {
    let body = text.strip_suffix("\n}").unwrap_or(text);
    format!("{body}{BEFORE}{}{BEHIND}", digest_of(body.as_bytes()))
}

/// Returns whether a text ends with its digest.
fn is_sealed(text: &str) -> bool {
    let seal = || {
        let (body, digest) = text.strip_suffix(BEHIND)?.rsplit_once(BEFORE)?;
        Some(digest == digest_of(body.as_bytes()))
    };
    seal().unwrap_or(false)
}

/// Writes a record: an object with at least one key. Errors: [`Error::Output`].
pub fn write(path: &Path, record: &impl Serialize) -> Result<WrittenFile> {
    let text = serde_json::to_string_pretty(record).map_err(|error| Error::output(path, error))?;
    write_whole(path, sealed(&text).as_bytes())
}

/// Maximum size of a record in bytes: a study of a million cells.
const MOST: u64 = 256 << 20;

/// Reads the bytes of a record; `None` if there is none. Errors: [`Error::Io`], also for more than [`MOST`] bytes.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match rows::open(path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            let problem = "is a file; expected a folder that `plimsoll run` or `plimsoll replay -o` has written";
            return Err(Error::trace(path.parent().unwrap_or(path), 0, "", problem));
        }
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|source| Error::io(path, source))?;
    if bytes.len() as u64 > MOST {
        return Err(Error::trace(path, 0, "", format!("is no record: it has more than {} MiB", MOST >> 20)));
    }
    Ok(Some(bytes))
}

/// Returns the text of a record; `None` if there is none. Errors: [`Error::Io`]; [`Error::Trace`] if it was changed.
pub fn text(path: &Path) -> Result<Option<String>> {
    bytes(path)?.map(|bytes| verified_text(path, bytes)).transpose()
}

fn verified_text(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).ok().filter(|text| is_sealed(text)).ok_or_else(|| {
        let problem = "this record is not as it was written: the digest at its end does not match; run the plan again";
        Error::trace(path, 0, "", problem)
    })
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::trace(path, error.line() as u64, "", error.to_string()))
}

/// Reads a record; `None` if there is none. Errors: as [`text`]; [`Error::Trace`] for a record of another kind.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    text(path)?.map(|text| parse(path, &text)).transpose()
}

/// A record with the version of the schema of its tables, if it exists.
#[derive(Debug)]
pub enum Found<T> {
    /// The record is unchanged.
    Whole(T),
    /// The record is damaged; the error.
    Damaged(Error),
    /// There is no record.
    Missing,
}

/// Reads a record with the version of the schema of its tables. Errors: [`Error::Io`]; [`Error::Trace`] with advice, if the version is not
/// this program's, since its records may have other keys.
pub fn find<T: DeserializeOwned>(path: &Path) -> Result<Found<T>> {
    let Some(bytes) = bytes(path)? else { return Ok(Found::Missing) };
    check_schema(path, &bytes)?;
    Ok(verified_text(path, bytes).and_then(|text| parse(path, &text)).map_or_else(Found::Damaged, Found::Whole))
}

impl<T> Found<T> {
    /// Returns the record, if there is one. Errors: it is damaged.
    pub fn intact(self) -> Result<Option<T>> {
        match self {
            Found::Whole(record) => Ok(Some(record)),
            Found::Damaged(error) => Err(error),
            Found::Missing => Ok(None),
        }
    }
}

/// Checks the version of the schema in a record, even if its digest is wrong.
fn check_schema(path: &Path, bytes: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Said {
        schema: u32,
    }
    // Damage is reported later, when the whole record is parsed.
    let Ok(Said { schema: said }) = serde_json::from_slice(bytes) else { return Ok(()) };
    let what = match said.cmp(&VERSION) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => {
            "with other columns: run the plan again with --restart, or read them with the version of Plimsoll that wrote them"
        }
        Ordering::Greater => "written by a newer Plimsoll: update this one",
    };
    let (own, version) = (env!("CARGO_PKG_VERSION"), VERSION);
    let problem = format!("tables of schema {said}, {what}; this one, {own}, reads schema {version}");
    Err(Error::trace(path, 0, "schema", problem))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_changed_byte_is_noticed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("record.json");
        assert_eq!(read::<BTreeMap<String, f64>>(&path).expect("no file"), None);
        let record = BTreeMap::from([("a".to_owned(), 1.5), ("ä".to_owned(), -2.0)]);
        write(&path, &record).expect("a writable folder");
        let whole = std::fs::read(&path).expect("readable");
        let parsed: serde_json::Value = serde_json::from_slice(&whole).expect("JSON");
        assert_eq!((parsed["a"].as_f64(), parsed["blake3"].as_str().map(str::len)), (Some(1.5), Some(64)));
        #[derive(serde::Deserialize)]
        struct Of {
            a: f64,
        }
        assert_eq!(read::<Of>(&path).expect("a record").map(|record| record.a), Some(1.5));
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                std::fs::write(&path, &flipped).expect("a writable file");
                let error = read::<serde_json::Value>(&path).expect_err("a flipped bit").to_string();
                assert!(error.contains("not as it was written") && error.contains("record.json"), "{error}");
            }
            std::fs::write(&path, &whole[..at]).expect("a writable file");
            assert!(read::<serde_json::Value>(&path).is_err(), "cut at {at}");
        }
    }
}
