//! Zip archives with the same bytes for the same files: sorted, without times and owners. What is read of others' archives
//! is bounded, and their entries are plain files with names of their own.

mod catalogue;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::read::{ArchiveOffset, Config};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::file::write_with;
use super::portable;
use crate::error::{Error, Result};

/// The content of an entry of an archive.
#[derive(Clone, Debug)]
pub enum Content {
    /// A file.
    File(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// The size of an entry in bytes, and its SHA-256 digest in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The size in bytes.
    pub size: u64,
    /// The digest.
    pub sha256: String,
}

/// Copies at most so many bytes, in pieces; returns size and digest. Errors: made by `fail` of that of the reader (`true`)
/// or of the writer.
fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    most: u64,
    fail: impl Fn(std::io::Error, bool) -> Error,
) -> Result<Sum> {
    let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    let mut from = from.take(most);
    loop {
        let many = from.read(&mut buffer).map_err(|error| fail(error, true))?;
        if many == 0 {
            break;
        }
        hasher.update(&buffer[..many]);
        to.write_all(&buffer[..many]).map_err(|error| fail(error, false))?;
        size += many as u64;
    }
    let hex = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('?'));
    Ok(Sum { size, sha256: hasher.finalize().iter().copied().flat_map(hex).collect() })
}

impl Content {
    /// Size and digest. Errors: the file cannot be read.
    pub fn sum(&self) -> Result<Sum> {
        let (mut from, path, _) = self.open()?;
        copy(&mut from, &mut std::io::sink(), u64::MAX, |error, _| Error::io(path, error))
    }

    /// A reader, the file for messages, and the size.
    fn open(&self) -> Result<(Box<dyn Read + '_>, &Path, u64)> {
        match self {
            Content::Bytes(bytes) => Ok((Box::new(&bytes[..]), Path::new(""), bytes.len() as u64)),
            Content::File(path) => {
                let file = File::open(path).map_err(|source| Error::io(path, source))?;
                let size = file.metadata().map_err(|source| Error::io(path, source))?.len();
                Ok((Box::new(file), path, size))
            }
        }
    }
}

/// Endings of files that are compressed already.
const PACKED: [&str; 6] = ["parquet", "png", "pdf", "gz", "zst", "zip"];

/// Writes an archive under a temporary name and renames it when it is whole: all entries in one folder, with names (with
/// `/`, whatever the system) that every file system takes. `sums` are what the files were when they were looked at.
///
/// Errors: a name that some file system refuses, two that some take for one, a file that has changed since.
pub fn write(
    path: &Path,
    folder: &str,
    entries: &BTreeMap<String, Content>,
    sums: &BTreeMap<String, Sum>,
) -> Result<()> {
    let names: Vec<String> = entries.keys().map(|name| format!("{folder}/{name}")).collect();
    check_names(&names).map_err(|(name, problem)| Error::output(path, format!("{name}: {problem}")))?;
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
                .large_file(size >= 1 << 32);
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

/// Checks that names may stand in one archive. Errors: the name, and what is wrong with it.
fn check_names(names: &[String]) -> std::result::Result<(), (String, &'static str)> {
    // Letters in upper and lower case are the same to many file systems.
    let folded: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let mut seen = HashSet::new();
    for name in names {
        let own = name.strip_suffix('/').unwrap_or(name);
        let problem = portable::problem(own).or_else(|| {
            let folded_own = own.to_lowercase();
            let above = folded_own.match_indices('/').any(|(at, _)| folded.contains(&folded_own[..at]));
            let twice = !seen.insert(folded_own.clone());
            match (twice, above) {
                (true, _) => Some("it is there twice"),
                (_, true) => Some("it stands below a file"),
                _ => None,
            }
        });
        if let Some(problem) = problem {
            return Err((name.clone(), problem));
        }
    }
    Ok(())
}

/// The most bytes of the catalogue of an archive, and of its description.
pub const CATALOGUE_MOST: u64 = 128 << 20;

/// An archive that was read: its path and catalogue.
pub struct Archive {
    path: PathBuf,
    zip: ZipArchive<BufReader<File>>,
}

impl Archive {
    /// Opens an archive and checks its catalogue: that everybody who unpacks it gets the same plain files, in the folder
    /// that they name. Nothing is unpacked.
    ///
    /// Errors: [`Error::Io`]; [`Error::Trace`] with the entry, for one that leads elsewhere, is no plain file, is there
    /// twice or is in no catalogue, and for what is no whole archive.
    pub fn open(path: &Path) -> Result<Archive> {
        let mut file = BufReader::new(File::open(path).map_err(|source| Error::io(path, source))?);
        let entries = catalogue::read(&mut file).map_err(|problem| broken(path, "", problem))?;
        for entry in &entries {
            entry.check().map_err(|problem| wrong(path, &entry.name, problem))?;
        }
        let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        check_names(&names).map_err(|(name, problem)| wrong(path, &name, problem))?;
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut zip = ZipArchive::with_config(config, file).map_err(|error| broken(path, "", error))?;
        zip.validate_header_consistency().map_err(|error| broken(path, "", error))?;
        Ok(Archive { path: path.to_owned(), zip })
    }

    /// The names of its files, sorted. Errors: a name that is no text.
    pub fn names(&self) -> Result<Vec<String>> {
        let name = |name: zip::result::ZipResult<std::borrow::Cow<str>>| {
            name.map(|name| name.into_owned()).map_err(|error| broken(&self.path, "", error))
        };
        let mut names = self.zip.file_names().map(name).collect::<Result<Vec<String>>>()?;
        names.retain(|name| !name.ends_with('/'));
        names.sort();
        Ok(names)
    }

    /// The text of a file in it. Errors: it is not there, no text, or longer than [`CATALOGUE_MOST`].
    pub fn text(&mut self, name: &str) -> Result<String> {
        let mut text = String::new();
        let file = self.zip.by_name(name).map_err(|error| broken(&self.path, name, error))?;
        let mut bounded = file.take(CATALOGUE_MOST + 1);
        bounded.read_to_string(&mut text).map_err(|error| broken(&self.path, name, error))?;
        match text.len() as u64 > CATALOGUE_MOST {
            true => Err(wrong(&self.path, name, "it is longer than 128 MiB")),
            false => Ok(text),
        }
    }

    /// Size and digest of a file in it, which is read to at most one byte more than `most`. Errors: it is not there, or
    /// broken.
    pub fn sum(&mut self, name: &str, most: u64) -> Result<Sum> {
        let mut file = self.zip.by_name(name).map_err(|error| broken(&self.path, name, error))?;
        copy(&mut file, &mut std::io::sink(), most.saturating_add(1), |error, _| broken(&self.path, name, error))
    }
}

/// An error about an entry.
fn wrong(path: &Path, name: &str, problem: &str) -> Error {
    Error::trace(path, 0, "", format!("{}: {problem}", name.escape_debug()))
}

fn broken(path: &Path, name: &str, error: impl std::fmt::Display) -> Error {
    Error::trace(path, 0, name, format!("not a whole archive: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_have_the_same_bytes_and_read_back() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (file, one, two) = (dir.path().join("a"), dir.path().join("one.zip"), dir.path().join("two.zip"));
        std::fs::write(&file, "abc").expect("a temporary file is writable");
        let entries: BTreeMap<String, Content> = [
            ("x/b.txt".to_owned(), Content::Bytes(vec![b'z'; 5000])),
            ("x/cell=a,b/policy=slot%3A2.parquet".to_owned(), Content::File(file.clone())),
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
        assert_eq!(archive.names().expect("names"), names);
        for (name, sum) in &sums {
            assert_eq!(archive.sum(&format!("top/{name}"), sum.size).expect("it is there"), *sum);
        }
        assert_eq!(archive.sum("top/x/b.txt", 10).expect("it is there").size, 11, "no more is read than must be");
        // FIPS 180-2, B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(archive.sum("top/x/cell=a,b/policy=slot%3A2.parquet", 3).expect("it is there").sha256, abc);
        std::fs::write(&two, &bytes[..bytes.len() - 30]).expect("writable");
        assert!(Archive::open(&two).is_err_and(|error| error.to_string().contains("not a whole archive")));
        // A file that changes after it was looked at, and names that are one to some file systems.
        std::fs::write(&file, "abd").expect("a temporary file is writable");
        let message = write(&two, "top", &entries, &sums).expect_err("it has changed").to_string();
        assert!(message.contains("was changed while it was packed"), "{message}");
        for (name, says) in
            [("X/B.txt", "twice"), ("x", "below a file"), ("a:b", "Windows"), ("../a", "another folder")]
        {
            let mut entries = entries.clone();
            entries.insert(name.to_owned(), Content::Bytes(Vec::new()));
            let message = write(&two, "top", &entries, &sums).expect_err(name).to_string();
            assert!(message.contains(says), "{name}: {message}");
        }
    }
}
