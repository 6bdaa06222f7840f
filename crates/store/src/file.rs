//! Files that appear under their names only when complete, with the digests of the intended bytes.
//!
//! A file is written under a temporary name in the same folder and synced; then it is renamed, and the folder is synced. Digests are of the
//! bytes that the caller passed, not of bytes read back, so a lost write shows as a file that differs from its record.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::{NamedTempFile, TempPath};

use plimsoll_base::error::{Error, Result};

/// The prefix of the names of incomplete files.
const TEMPORARY: &str = ".plimsoll-";

/// Returns whether a name is that of an incomplete file, as left by a killed process.
pub fn is_temporary(name: &str) -> bool {
    let rest = name.strip_prefix(TEMPORARY).unwrap_or_default();
    rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A file that exists under its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrittenFile {
    /// Its name.
    pub path: PathBuf,
    /// The BLAKE3 digest of the written bytes, in hexadecimal.
    pub digest: String,
}

/// A file that is complete and on disk under a temporary name; it is removed unless it is placed.
#[derive(Debug)]
pub struct Pending {
    temporary: TempPath,
    written: WrittenFile,
}

impl Pending {
    /// Returns the name and the digest that the file will have when it is placed.
    pub fn written(&self) -> &WrittenFile {
        &self.written
    }

    /// Renames the file to its name; replaces an existing file of this name. Errors: [`Error::Output`].
    pub fn place(self) -> Result<WrittenFile> {
        let fail = |error: std::io::Error| Error::output(&self.written.path, error);
        self.temporary.persist(&self.written.path).map_err(|error| fail(error.error))?;
        sync_folder(folder_of(&self.written.path)).map_err(fail)?;
        Ok(self.written)
    }
}

/// Computes the digest of bytes.
pub fn digest_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// The digest of the bytes that are written to a file.
#[derive(Clone, Default)]
pub(crate) struct Digest(Arc<Mutex<blake3::Hasher>>);

impl Digest {
    pub fn update(&self, bytes: &[u8]) {
        // No code panics while it holds the lock.
        if let Ok(mut hasher) = self.0.lock() {
            hasher.update(bytes);
        }
    }

    /// Returns the digest in hexadecimal.
    pub fn hex(&self) -> String {
        self.0.lock().map(|hasher| hasher.finalize().to_hex().to_string()).unwrap_or_default()
    }
}

/// A file that computes the digest of the bytes written to it, from start to end.
pub(crate) struct Digesting {
    file: File,
    digest: Digest,
}

impl Digesting {
    pub fn new(file: File, digest: Digest) -> Digesting {
        Digesting { file, digest }
    }

    /// Returns the digest of the bytes so far, in hexadecimal.
    pub fn digest(&self) -> String {
        self.digest.hex()
    }

    /// Syncs the file's data to the disk.
    pub fn sync(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }
}

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Starts a file for `path`, and creates its folder if needed. Errors: [`Error::Output`].
pub(crate) fn begin(path: &Path) -> Result<NamedTempFile> {
    let fail = |error: std::io::Error| Error::output(path, error);
    let folder = folder_of(path);
    make_folder(folder).map_err(fail)?;
    tempfile::Builder::new().prefix(TEMPORARY).rand_bytes(6).tempfile_in(folder).map_err(fail)
}

/// Moves an incomplete file to `path`, where it remains if the process ends, and creates the folder if needed. Errors: [`Error::Output`].
pub(crate) fn keep(temporary: &mut NamedTempFile, path: &Path) -> Result<()> {
    let fail = |error: std::io::Error| Error::output(path, error);
    if temporary.path() == path {
        return Ok(());
    }
    make_folder(folder_of(path)).map_err(fail)?;
    let file = temporary.as_file().try_clone().map_err(fail)?;
    std::fs::rename(temporary.path(), path).map_err(fail)?;
    // There is no file of the old name to remove.
    temporary.disable_cleanup(true);
    *temporary = kept(file, path).map_err(fail)?;
    Ok(())
}

/// Opens an incomplete file that was kept at `path`. Errors: [`Error::Output`].
pub(crate) fn reopen(path: &Path) -> Result<NamedTempFile> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path);
    file.and_then(|file| kept(file, path)).map_err(|error| Error::output(path, error))
}

fn kept(file: File, path: &Path) -> std::io::Result<NamedTempFile> {
    let mut kept = NamedTempFile::from_parts(file, TempPath::try_from_path(path)?);
    kept.disable_cleanup(true);
    Ok(kept)
}

/// Syncs a file's data to the disk and makes the file readable. Errors: [`Error::Output`].
pub(crate) fn complete(path: &Path, temporary: NamedTempFile, digest: String) -> Result<Pending> {
    temporary.as_file().sync_all().map_err(|error| Error::output(path, error))?;
    set_readable(temporary.as_file());
    Ok(Pending { temporary: temporary.into_temp_path(), written: WrittenFile { path: path.to_owned(), digest } })
}

/// Creates a folder and its missing parents, and syncs each parent.
pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    if above != folder {
        make_folder(above)?;
    }
    match std::fs::create_dir(folder) {
        // Another thread created it at the same time.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(above),
    }
}

/// Syncs the names in a folder to the disk, if the system supports it.
pub fn sync_folder(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // A file system that cannot sync, or a folder that is writable but not readable.
            Err(error) if matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => Ok(()),
            result => result,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

/// Makes a file readable for all users with access to the folder; temporary files are private.
fn set_readable(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A file system without permissions keeps the file as it is; this must not lose the file.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o644));
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// Writes a complete text or picture under a temporary name and renames it. Errors: [`Error::Output`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<WrittenFile> {
    let mut temporary = begin(path)?;
    temporary.write_all(bytes).map_err(|error| Error::output(path, error))?;
    complete(path, temporary, digest_of(bytes))?.place()
}

/// An output that can be written to in any order.
pub trait Sink: Write + Seek {}

impl<T: Write + Seek> Sink for T {}

/// Passes a file with a temporary name to `write` and renames it when all is written. Errors: [`Error::Output`], or those of `write`.
pub fn write_with<T>(path: &Path, write: impl FnOnce(&mut dyn Sink) -> Result<T>) -> Result<T> {
    let mut out = BufWriter::with_capacity(1 << 16, begin(path)?);
    let result = write(&mut out)?;
    let temporary = out.into_inner().map_err(|error| Error::output(path, error.into_error()))?;
    // The file may have been written in any order, so it has no digest.
    complete(path, temporary, String::new())?.place()?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_and_its_digest_when_it_is_whole() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a/b/c.txt");
        let written = write_whole(&path, b"whole").expect("a writable folder");
        assert_eq!((written.path.as_path(), written.digest), (path.as_path(), digest_of(b"whole")));
        let digest = Digest::default();
        let temporary = begin(&path).expect("a writable folder");
        let file = temporary.as_file().try_clone().expect("a handle");
        Digesting::new(file, digest.clone()).write_all(b"other").expect("a writable file");
        let pending = complete(&path, temporary, digest.hex()).expect("a writable folder");
        assert_eq!(std::fs::read(&path).expect("readable"), b"whole");
        assert_eq!(pending.written().digest, digest_of(b"other"));
        pending.place().expect("a writable folder");
        assert_eq!(std::fs::read(&path).expect("readable"), b"other");
        drop(begin(&path).expect("a writable folder"));
        let names: Vec<String> = std::fs::read_dir(dir.path().join("a/b"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["c.txt"]);
    }

    #[test]
    fn names_of_temporary_files_are_known() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let temporary = begin(&dir.path().join("x")).expect("a writable folder");
        let name = temporary.path().file_name().expect("a name").to_string_lossy().into_owned();
        assert!(is_temporary(&name), "{name}");
        for name in [".plimsoll-notes.txt", ".plimsoll-", "plimsoll-abc123", ".plimsoll-ab_12c"] {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
