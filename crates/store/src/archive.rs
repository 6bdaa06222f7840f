//! Zip archives with the same bytes for the same files: sorted, without times and owners.
//!
//! Archives from other sources are read within bounds: their entries must be plain files with distinct names, and at most a given number of
//! bytes is unpacked. This module unpacks nothing into files: it reads entries, computes their digests, or returns them as text.

mod catalogue;
mod header;
mod names;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::bufread::DeflateDecoder;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use catalogue::ArchiveEntry;
use header::Method;
pub use names::problem;

use super::file::write_with;
use plimsoll_base::error::{Error, Result};

/// The content of an entry of an archive.
#[derive(Clone, Debug)]
pub enum Content {
    /// A file that had this BLAKE3 digest, and must still have it when it is packed.
    File(PathBuf, String),
    /// The bytes themselves.
    Bytes(Vec<u8>),
}

/// The size of an entry in bytes, and its digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 digest in hexadecimal, for verification with common tools.
    pub sha256: String,
    /// The BLAKE3 digest in hexadecimal, as used in records.
    pub blake3: String,
    /// The checksum of zip files.
    crc32: u32,
}

/// Copies at most `most` bytes, in pieces; returns size and digests. Errors: created by `fail` from the error of the reader (`true`) or of
/// the writer.
fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    most: u64,
    fail: impl Fn(std::io::Error, bool) -> Error,
) -> Result<Sum> {
    let (mut sha256, mut blake3, mut crc32) = (Sha256::new(), blake3::Hasher::new(), crc32fast::Hasher::new());
    let (mut size, mut buffer) = (0, vec![0; 1 << 16]);
    let mut from = from.take(most);
    loop {
        let many = from.read(&mut buffer).map_err(|error| fail(error, true))?;
        if many == 0 {
            break;
        }
        sha256.update(&buffer[..many]);
        blake3.update(&buffer[..many]);
        crc32.update(&buffer[..many]);
        to.write_all(&buffer[..many]).map_err(|error| fail(error, false))?;
        size += many as u64;
    }
    let hex = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('?'));
    let sha256 = sha256.finalize().iter().copied().flat_map(hex).collect();
    Ok(Sum { size, sha256, blake3: blake3.finalize().to_hex().to_string(), crc32: crc32.finalize() })
}

impl Content {
    /// Computes size and digests. Errors: the file cannot be read, or has changed.
    pub fn sum(&self) -> Result<Sum> {
        let (mut from, path, _) = self.open()?;
        let sum = copy(&mut from, &mut std::io::sink(), u64::MAX, |error, _| Error::io(path, error))?;
        match self {
            Content::File(path, digest) if sum.blake3 != *digest => {
                let problem = "it was changed while it was being packed: wait until nothing writes there any more";
                Err(Error::trace(path, 0, "", problem))
            }
            _ => Ok(sum),
        }
    }

    /// Opens a reader; returns it with the path for messages and the size.
    fn open(&self) -> Result<(Box<dyn Read + '_>, &Path, u64)> {
        match self {
            Content::Bytes(bytes) => Ok((Box::new(&bytes[..]), Path::new(""), bytes.len() as u64)),
            Content::File(path, _) => {
                let file = File::open(path).map_err(|source| Error::io(path, source))?;
                let size = file.metadata().map_err(|source| Error::io(path, source))?.len();
                Ok((Box::new(file), path, size))
            }
        }
    }
}

/// Extensions of files that are already compressed.
const PACKED: [&str; 6] = ["parquet", "png", "pdf", "gz", "zst", "zip"];

/// Writes an archive under a temporary name and renames it when it is complete. All entries are in one folder. Their names use `/` on every
/// system and must be accepted by every file system. `sums` are the expected sizes and digests of the files.
///
/// Errors: a name that some file system refuses, two names that some file system treats as one, a file that has changed since its digest
/// was computed.
pub fn write(
    path: &Path,
    folder: &str,
    entries: &BTreeMap<String, Content>,
    sums: &BTreeMap<String, Sum>,
) -> Result<()> {
    let names: Vec<String> = entries.keys().map(|name| format!("{folder}/{name}")).collect();
    names::check(&names).map_err(|(name, problem)| Error::output(path, format!("{name}: {problem}")))?;
    let wrong = |error: zip::result::ZipError| Error::output(path, error);
    write_with(path, |out| {
        let mut writer = ZipWriter::new(out);
        for ((name, content), full) in entries.iter().zip(&names) {
            let packed = PACKED.iter().any(|ending| name.rsplit('.').next() == Some(ending));
            let method = if packed { CompressionMethod::Stored } else { CompressionMethod::Deflated };
            let (mut from, of, size) = content.open()?;
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .last_modified_time(zip::DateTime::default())
                .unix_permissions(0o644)
                .large_file(size >= u32::MAX.into());
            writer.start_file(full.as_str(), options).map_err(wrong)?;
            let sum = copy(&mut from, &mut writer, u64::MAX, |error, reading| match reading {
                true => Error::io(of, error),
                false => Error::output(path, error),
            })?;
            if sums.get(name).is_some_and(|known| *known != sum) {
                return Err(Error::output(path, format!("{name} was changed while it was packed")));
            }
        }
        writer.finish().map_err(wrong)?;
        Ok(())
    })
}

/// Maximum size, in bytes, of the catalogue of an archive and of a file that is read as text.
pub const CATALOGUE_MOST: u64 = 128 << 20;

/// An open archive.
pub struct Archive {
    path: PathBuf,
    file: BufReader<File>,
    /// The entries by name.
    entries: BTreeMap<String, ArchiveEntry>,
}

impl Archive {
    /// Opens an archive and checks its catalogue: all programs must unpack it to the same plain files, in the target folder. Unpacks
    /// nothing.
    ///
    /// Errors: [`Error::Io`]; [`Error::Trace`] with the entry if it leads out of the folder, is not a plain file, is duplicated, or is not
    /// in the catalogue, and if the archive is incomplete.
    pub fn open(path: &Path) -> Result<Archive> {
        let mut file = BufReader::new(File::open(path).map_err(|source| Error::io(path, source))?);
        let entries = catalogue::read(&mut file).map_err(|(name, problem)| match name.is_empty() {
            true => broken(path, "", problem),
            false => wrong(path, &name, &problem),
        })?;
        let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        names::check(&names).map_err(|(name, problem)| wrong(path, &name, problem))?;
        let entries = names.into_iter().zip(entries).collect();
        Ok(Archive { path: path.to_owned(), file, entries })
    }

    /// Returns the names of its files, sorted.
    pub fn names(&self) -> Vec<String> {
        self.entries.keys().filter(|name| !name.ends_with('/')).cloned().collect()
    }

    /// Returns the text of a file in the archive. Errors: the file is missing, is not text, or is longer than [`CATALOGUE_MOST`].
    pub fn text(&mut self, name: &str) -> Result<String> {
        let mut bytes = Vec::new();
        match self.unpack(name, CATALOGUE_MOST, &mut bytes)?.size > CATALOGUE_MOST {
            true => Err(wrong(&self.path, name, "it is longer than 128 MiB")),
            false => String::from_utf8(bytes).map_err(|error| wrong(&self.path, name, &error.to_string())),
        }
    }

    /// Returns size and digests of a file in the archive, of which at most one byte more than `most` is read. Errors: the file is missing
    /// or damaged.
    pub fn sum(&mut self, name: &str, most: u64) -> Result<Sum> {
        self.unpack(name, most, &mut std::io::sink())
    }

    /// Unpacks a file, at most one byte more than `most`. Errors: the file is missing, or differs from its catalogue entry.
    fn unpack(&mut self, name: &str, most: u64, to: &mut dyn Write) -> Result<Sum> {
        let Archive { path, file, entries } = self;
        let entry = entries.get(name).ok_or_else(|| broken(path, name, "it is not there"))?;
        file.seek(SeekFrom::Start(entry.start)).map_err(|source| Error::io(&*path, source))?;
        let mut packed = file.take(entry.packed);
        let most = most.min(entry.size).saturating_add(1);
        let fail = |error: std::io::Error, _| broken(path, name, error);
        let (sum, read) = match entry.method {
            Method::Stored => {
                let sum = copy(&mut packed, to, most, fail)?;
                (sum, entry.packed - packed.limit())
            }
            Method::Deflated => {
                let mut unpacked = DeflateDecoder::new(packed.by_ref() as &mut dyn BufRead);
                let sum = copy(&mut unpacked, to, most, fail)?;
                (sum, unpacked.total_in())
            }
        };
        // Truncated data are detected by the recorded size, or by the caller's limit.
        let is_whole = (sum.size, sum.crc32, read) == (entry.size, entry.crc32, entry.packed);
        match is_whole || (sum.size == most && most <= entry.size) {
            true => Ok(sum),
            false => Err(wrong(path, name, "its content differs from the catalogue of the archive")),
        }
    }
}

/// Creates an error about an entry.
fn wrong(path: &Path, name: &str, problem: &str) -> Error {
    Error::trace(path, 0, "", format!("{}: {problem}", name.escape_debug()))
}

fn broken(path: &Path, name: &str, error: impl std::fmt::Display) -> Error {
    Error::trace(path, 0, name, format!("not a whole archive: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::digest_of;

    #[test]
    fn archives_have_the_same_bytes_and_read_back() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (file, one, two) = (dir.path().join("a"), dir.path().join("one.zip"), dir.path().join("two.zip"));
        std::fs::write(&file, "abc").expect("a temporary file is writable");
        let entries: BTreeMap<String, Content> = [
            ("x/b.txt".to_owned(), Content::Bytes(vec![b'z'; 5000])),
            ("x/cell=a,b/policy=slot%3A2.parquet".to_owned(), Content::File(file.clone(), digest_of(b"abc"))),
        ]
        .into();
        let sum = |(name, content): (&String, &Content)| (name.clone(), content.sum().expect("readable"));
        let sums: BTreeMap<String, Sum> = entries.iter().map(sum).collect();
        write(&one, "top", &entries, &sums).expect("a writable folder");
        write(&two, "top", &entries, &sums).expect("a writable folder");
        let bytes = std::fs::read(&one).expect("it was written");
        assert!(bytes == std::fs::read(&two).expect("it was written") && bytes.len() < 1000, "{} bytes", bytes.len());
        let mut archive = Archive::open(&one).expect("an archive");
        let names: Vec<String> = entries.keys().map(|name| format!("top/{name}")).collect();
        assert_eq!(archive.names(), names);
        for (name, sum) in &sums {
            assert_eq!(archive.sum(&format!("top/{name}"), sum.size).expect("it is there"), *sum);
        }
        assert_eq!(archive.sum("top/x/b.txt", 10).expect("it is there").size, 11, "no more is read than must be");
        // FIPS 180-2, B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(archive.sum("top/x/cell=a,b/policy=slot%3A2.parquet", 3).expect("it is there").sha256, abc);
        std::fs::write(&two, &bytes[..bytes.len() - 30]).expect("writable");
        assert!(Archive::open(&two).is_err_and(|error| error.to_string().contains("not a whole archive")));
        // A file that changes after its digest was computed, and names that some file systems treat as one.
        std::fs::write(&file, "abd").expect("a temporary file is writable");
        let message = write(&two, "top", &entries, &sums).expect_err("it has changed").to_string();
        assert!(message.contains("was changed while it was packed"), "{message}");
        let message = entries["x/cell=a,b/policy=slot%3A2.parquet"].sum().expect_err("it has changed").to_string();
        assert!(message.contains("was changed while it was being packed"), "{message}");
        for (name, says) in
            [("X/B.txt", "twice"), ("x", "below a file"), ("a:b", "Windows"), ("../a", "another folder")]
        {
            let mut entries = entries.clone();
            entries.insert(name.to_owned(), Content::Bytes(Vec::new()));
            let message = write(&two, "top", &entries, &sums).expect_err(name).to_string();
            assert!(message.contains(says), "{name}: {message}");
        }
    }

    /// The archive has more entries than the short form of a catalogue can count.
    #[test]
    fn large_archives_read_back() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("large.zip");
        let entry = |at: usize| (format!("{at}.txt"), Content::Bytes(Vec::new()));
        let entries: BTreeMap<String, Content> = (0..65_600).map(entry).collect();
        write(&path, "top", &entries, &BTreeMap::new()).expect("a writable folder");
        let mut archive = Archive::open(&path).expect("an archive");
        assert_eq!(archive.names().len(), 65_600);
        assert_eq!(archive.sum("top/65599.txt", 0).expect("it is there").size, 0);
    }
}
