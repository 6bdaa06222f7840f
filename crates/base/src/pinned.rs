//! A file that is read several times and must have the same content each time.
//!
//! The inputs of a study may be edited or replaced while it runs. Each opening compares the file with the version that was opened first, by
//! inode, size and times. All reads and the recorded digest therefore refer to the same bytes. A check after the run finds changes that
//! occurred during a read.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};
use crate::rows;

/// The resolution of file times: a change within this time after another change may leave the time of the file as it was. Only removable
/// media are known to have coarser times.
const GRAIN: Duration = Duration::from_millis(20);

/// The number of attempts for a file that changes all the time: together they take one second.
const ROUNDS: usize = 50;

/// The attributes that identify a version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    /// Device, inode number, and the time of the last change of content or metadata.
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl Stamp {
    fn from_metadata(metadata: &Metadata) -> Stamp {
        Stamp {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
            },
        }
    }

    /// Returns how long a change could still go unnoticed because of the clock's resolution. `None`: every change is visible, or the
    /// time of the last change is unknown or in the future.
    fn rest(&self) -> Option<Duration> {
        let age = self.changed()?.elapsed().ok()?;
        GRAIN.checked_sub(age).filter(|rest| !rest.is_zero())
    }

    /// Returns when the file last changed, if the time is known.
    fn changed(&self) -> Option<SystemTime> {
        #[cfg(unix)]
        {
            let (.., seconds, nanos) = self.inode;
            let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
            Some(SystemTime::UNIX_EPOCH + since)
        }
        #[cfg(not(unix))]
        self.modified
    }
}

/// A file in the version that was first opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    path: PathBuf,
    stamp: Stamp,
}

impl Pinned {
    /// Records the version of a regular file. Errors: [`Error::Io`] as in [`rows::open`], and if another process is writing to the file.
    pub fn new(path: &Path) -> Result<Pinned> {
        Pinned::after(path, Stamp::rest)
    }

    /// Records the version of a file once its last change is old enough.
    fn after(path: &Path, rest: impl Fn(&Stamp) -> Option<Duration>) -> Result<Pinned> {
        for _ in 0..ROUNDS {
            let file = rows::open(path)?;
            let stamp = Stamp::from_metadata(&file.metadata().map_err(|source| Error::io(path, source))?);
            let Some(rest) = rest(&stamp) else { return Ok(Pinned { path: path.to_owned(), stamp }) };
            std::thread::sleep(rest);
        }
        let problem = "is being written to; start again when it is complete, or use a copy of it";
        Err(Error::io(path, io::Error::other(problem)))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file again. Errors: [`Error::Io`], also if the file has changed.
    pub fn open(&self) -> Result<File> {
        let file = rows::open(&self.path)?;
        self.compare(file.metadata())?;
        Ok(file)
    }

    /// Checks that the file has not changed. Errors: [`Error::Io`] if it has.
    pub fn check(&self) -> Result<()> {
        self.compare(std::fs::metadata(&self.path))
    }

    fn compare(&self, now: io::Result<Metadata>) -> Result<()> {
        let now = now.map_err(|source| Error::io(&self.path, source))?;
        if Stamp::from_metadata(&now) == self.stamp {
            return Ok(());
        }
        let problem = "was changed or replaced while it was being used; its results are discarded: start again";
        Err(Error::io(&self.path, io::Error::other(problem)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn said(result: Result<impl Sized>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_changed_or_swapped_is_noticed_even_if_it_is_back() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let inside = dir.path().join("in");
        std::fs::create_dir(&inside).expect("a folder");
        let path = inside.join("a.csv");
        std::fs::write(&path, "one").expect("writable");
        let pinned = Pinned::new(&path).expect("a file");
        let mut text = String::new();
        pinned.open().expect("as it was").read_to_string(&mut text).expect("readable");
        assert_eq!((text.as_str(), said(pinned.check())), ("one", String::new()));
        // The folder is replaced for a moment, so that the path refers to another file.
        let other = dir.path().join("other");
        std::fs::create_dir(&other).expect("a folder");
        std::fs::write(other.join("a.csv"), "two").expect("writable");
        std::fs::rename(&inside, dir.path().join("aside")).expect("a folder");
        std::fs::rename(&other, &inside).expect("a folder");
        assert!(said(pinned.open()).contains("a.csv: was changed or replaced"));
        std::fs::rename(&inside, &other).expect("a folder");
        std::fs::rename(dir.path().join("aside"), &inside).expect("a folder");
        assert_eq!(said(pinned.check()), "", "nothing was opened meanwhile");
        // The file is changed in place, and immediately changed back.
        for text in ["two", "one"] {
            std::fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .expect("writable");
        }
        assert!(said(pinned.check()).contains("was changed") && said(pinned.open()).contains("was changed"));
        std::fs::remove_file(&path).expect("it is there");
        assert!(said(pinned.check()).contains("a.csv"));
    }

    #[test]
    fn a_file_that_never_rests_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.csv");
        std::fs::write(&path, "x").expect("a writable folder");
        let message = said(Pinned::after(&path, |_| Some(Duration::from_micros(1))));
        assert!(message.contains("a.csv: is being written to"), "{message}");
        Pinned::new(&path).expect("it rests by now");
    }
}
