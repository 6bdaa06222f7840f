//! Zip archives with the same bytes for the same files: sorted, without times and owners.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::file::write_with;
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

impl Sum {
    fn of(reader: &mut dyn Read, path: &Path) -> Result<Sum> {
        let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            let many = reader.read(&mut buffer).map_err(|source| Error::io(path, source))?;
            if many == 0 {
                break;
            }
            hasher.update(&buffer[..many]);
            size += many as u64;
        }
        let hex = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('?'));
        Ok(Sum { size, sha256: hasher.finalize().iter().copied().flat_map(hex).collect() })
    }
}

impl Content {
    /// Size and digest. Errors: the file cannot be read.
    pub fn sum(&self) -> Result<Sum> {
        match self {
            Content::Bytes(bytes) => Sum::of(&mut &bytes[..], Path::new("")),
            Content::File(path) => {
                let file = File::open(path).map_err(|source| Error::io(path, source))?;
                Sum::of(&mut BufReader::new(file), path)
            }
        }
    }
}

/// Endings of files that are compressed already.
const PACKED: [&str; 6] = ["parquet", "png", "pdf", "gz", "zst", "zip"];

/// Writes an archive under a temporary name and renames it when it is whole. Names are with `/`, whatever the system.
pub fn write(path: &Path, entries: &BTreeMap<String, Content>) -> Result<()> {
    let wrong = |error: zip::result::ZipError| Error::output(path, error);
    write_with(path, |out| {
        let mut writer = ZipWriter::new(out);
        for (name, content) in entries {
            let packed = PACKED.iter().any(|ending| name.rsplit('.').next() == Some(ending));
            let method = if packed { CompressionMethod::Stored } else { CompressionMethod::Deflated };
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .last_modified_time(zip::DateTime::default())
                .unix_permissions(0o644);
            match content {
                Content::Bytes(bytes) => {
                    writer.start_file(name.as_str(), options).map_err(wrong)?;
                    writer.write_all(bytes).map_err(|error| Error::output(path, error))?;
                }
                Content::File(file) => {
                    let mut from = File::open(file).map_err(|source| Error::io(file, source))?;
                    let size = from.metadata().map_err(|source| Error::io(file, source))?.len();
                    writer.start_file(name.as_str(), options.large_file(size >= 1 << 32)).map_err(wrong)?;
                    std::io::copy(&mut from, &mut writer).map_err(|error| Error::output(path, error))?;
                }
            }
        }
        writer.finish().map_err(wrong)?;
        Ok(())
    })
}

/// An archive that was read: its path and catalogue.
pub struct Archive {
    path: PathBuf,
    zip: ZipArchive<BufReader<File>>,
}

impl Archive {
    /// Opens an archive. Errors: [`Error::Io`]; [`Error::Trace`] where it is no whole archive.
    pub fn open(path: &Path) -> Result<Archive> {
        let file = File::open(path).map_err(|source| Error::io(path, source))?;
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| broken(path, "", error))?;
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

    /// The text of a file in it. Errors: it is not there, or no text.
    pub fn text(&mut self, name: &str) -> Result<String> {
        let mut text = String::new();
        let mut file = self.zip.by_name(name).map_err(|error| broken(&self.path, name, error))?;
        file.read_to_string(&mut text).map_err(|error| broken(&self.path, name, error))?;
        Ok(text)
    }

    /// Size and digest of a file in it. Errors: it is not there, or broken.
    pub fn sum(&mut self, name: &str) -> Result<Sum> {
        let mut file = self.zip.by_name(name).map_err(|error| broken(&self.path, name, error))?;
        Sum::of(&mut file, &self.path).map_err(|error| broken(&self.path, name, error))
    }
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
            ("x/cell=a,b/policy=slot%3A2.parquet".to_owned(), Content::File(file)),
        ]
        .into();
        write(&one, &entries).expect("a writable folder");
        write(&two, &entries).expect("a writable folder");
        let bytes = std::fs::read(&one).expect("it was written");
        assert!(bytes == std::fs::read(&two).expect("it was written") && bytes.len() < 1000, "{} bytes", bytes.len());
        let mut archive = Archive::open(&one).expect("an archive");
        assert_eq!(archive.names().expect("names"), entries.keys().cloned().collect::<Vec<_>>());
        for (name, content) in &entries {
            assert_eq!(archive.sum(name).expect("it is there"), content.sum().expect("readable"));
        }
        // FIPS 180-2, B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(archive.sum("x/cell=a,b/policy=slot%3A2.parquet").expect("it is there").sha256, abc);
        std::fs::write(&two, &bytes[..bytes.len() - 30]).expect("writable");
        assert!(Archive::open(&two).is_err_and(|error| error.to_string().contains("not a whole archive")));
    }
}
