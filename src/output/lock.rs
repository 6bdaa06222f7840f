//! One process at a time in a results folder: advisory locks, which the system takes back from whoever dies.
//!
//! Whoever makes all runs, or finishes the folder (statistics, figures, report), has it alone; shards share it, and each of
//! them has the run alone that it makes. A file system without locks is used without.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::folder::RECEIPTS;
use crate::error::{Error, Result};

/// The name of the file that is locked for a folder.
pub const FILE: &str = ".plimsoll-lock";

/// A lock, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    /// `None` where the file system has no locks.
    _file: Option<File>,
    path: PathBuf,
    /// Whether nobody else can have it: then its file goes with it.
    alone: bool,
    /// A folder that was made for it.
    made: Option<PathBuf>,
}

impl Lock {
    /// A results folder for one process alone; it is made if need be. Errors: [`Error::Output`], and what to do, if another
    /// one has it.
    pub fn alone(folder: &Path) -> Result<Lock> {
        take(folder, FILE.as_ref(), true).map_err(|busy| busy.in_folder(folder))
    }

    /// A results folder, shared with other shards. Errors: as [`Lock::alone`].
    pub fn shared(folder: &Path) -> Result<Lock> {
        take(folder, FILE.as_ref(), false).map_err(|busy| busy.in_folder(folder))
    }

    /// A run of a shard. Errors: another shard is making it.
    pub fn run(folder: &Path, id: &str) -> Result<Lock> {
        let name = format!("{RECEIPTS}/.plimsoll-{id}.lock");
        take(folder, name.as_ref(), true).map_err(|busy| match busy {
            Busy::Other => {
                let why = format!("another process is making run {id}: two shards overlap, such as 0/2 and 0/4");
                Error::output(folder, why)
            }
            Busy::Failed(error) => error,
        })
    }
}

/// Whether a name is that of a file that was locked, which a process that was killed leaves.
pub fn is_lock(name: &str) -> bool {
    if name == FILE {
        return true;
    }
    let id = name.strip_prefix(".plimsoll-").and_then(|rest| rest.strip_suffix(".lock")).unwrap_or_default();
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Why a lock is not to be had.
enum Busy {
    Other,
    Failed(Error),
}

impl Busy {
    fn in_folder(self, folder: &Path) -> Error {
        match self {
            Busy::Failed(error) => error,
            Busy::Other => {
                let why = "another process is writing there; wait until it has ended, or choose another folder with -o";
                Error::output(folder, why)
            }
        }
    }
}

fn take(folder: &Path, name: &Path, alone: bool) -> std::result::Result<Lock, Busy> {
    let path = folder.join(name);
    let made = (!folder.exists()).then(|| folder.to_owned());
    let fail = |error: std::io::Error| Busy::Failed(Error::output(&path, error));
    loop {
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(fail)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        let locked = if alone { file.try_lock() } else { file.try_lock_shared() };
        let file = match locked {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock) => return Err(Busy::Other),
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => None,
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        };
        // Whoever had it before may have taken the file away between the two steps.
        if file.as_ref().is_none_or(|file| is_the_same(file, &path)) {
            return Ok(Lock { _file: file, path, alone, made });
        }
    }
}

/// Whether an open file still stands under its name.
fn is_the_same(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let of = |metadata: std::io::Result<std::fs::Metadata>| metadata.ok().map(|one| (one.dev(), one.ino()));
        of(path.metadata()).is_some_and(|named| Some(named) == of(file.metadata()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // What cannot be taken away is in nobody's way.
        if self.alone {
            let _ = std::fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.made {
            // It stays if something stands in it.
            let _ = std::fs::remove_dir(folder.join(RECEIPTS));
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_alone_or_several_share_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("out");
        let said = |lock: Result<Lock>| lock.expect_err("another one has it").to_string();
        {
            let _one = Lock::alone(&folder).expect("nobody else");
            assert!(said(Lock::alone(&folder)).contains("another process is writing there"));
            assert!(said(Lock::shared(&folder)).contains("wait until it has ended"));
        }
        assert!(!folder.exists(), "nothing is left of a folder that was made for the lock");
        {
            let _one = Lock::shared(&folder).expect("nobody else");
            let _two = Lock::shared(&folder).expect("shards share");
            assert!(Lock::alone(&folder).is_err());
            let _run = Lock::run(&folder, "0123456789abcdef").expect("nobody else");
            assert!(said(Lock::run(&folder, "0123456789abcdef")).contains("two shards overlap"));
            Lock::run(&folder, "fedcba9876543210").expect("another run");
        }
        Lock::alone(&folder).expect("nobody any more");
    }

    #[test]
    fn of_many_at_once_one_is_in() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        if let Ok(_lock) = Lock::alone(dir.path()) {
                            assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                            inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        }
                    }
                });
            }
        });
    }
}
