//! Locks a results folder for one process at a time, by advisory locks, which the system releases when a process dies.
//!
//! A process that executes all runs, or finishes the folder (statistics, figures, report), locks it exclusively. Shards share the folder
//! lock, and each locks the run that it executes. On a file system without locks, none are used.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use super::file::make_folder;
use plimsoll_base::error::{Error, Result};

/// The folder of the receipts of runs, below the results folder of a cell, or of a plan without a sweep.
pub const RECEIPTS: &str = "done";

/// The name of the lock file of a folder.
pub const FILE: &str = ".plimsoll-lock";

/// A lock that is released when dropped.
#[derive(Debug)]
pub struct Lock {
    /// `None` if the file system has no locks.
    file: Option<File>,
    path: PathBuf,
    /// The folders that were created for the lock file, innermost first.
    made: Vec<PathBuf>,
}

impl Lock {
    /// Locks a results folder exclusively; creates it if necessary. Errors: [`Error::Output`] with advice, if another process has locked
    /// it.
    pub fn alone(folder: &Path) -> Result<Lock> {
        acquire(folder, FILE.as_ref(), true).map_err(|busy| busy.in_folder(folder))
    }

    /// Locks a results folder, shared with other shards. Errors: as [`Lock::alone`].
    pub fn shared(folder: &Path) -> Result<Lock> {
        acquire(folder, FILE.as_ref(), false).map_err(|busy| busy.in_folder(folder))
    }

    /// Locks a run of a shard. Errors: another shard is executing it.
    pub fn run(folder: &Path, id: &str) -> Result<Lock> {
        let name = format!("{RECEIPTS}/.plimsoll-{id}.lock");
        acquire(folder, name.as_ref(), true).map_err(|busy| match busy {
            Busy::Other => {
                let why = format!("another process is executing run {id}: two shards overlap, such as 0/2 and 0/4");
                Error::output(folder, why)
            }
            Busy::Failed(error) => error,
        })
    }
}

/// Returns whether a name is that of a lock file, as left by a killed process.
pub fn is_lock(name: &str) -> bool {
    if name == FILE {
        return true;
    }
    let id = name.strip_prefix(".plimsoll-").and_then(|rest| rest.strip_suffix(".lock")).unwrap_or_default();
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The reason that a lock is not available.
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

fn acquire(folder: &Path, name: &Path, alone: bool) -> std::result::Result<Lock, Busy> {
    let path = folder.join(name);
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let made = folder.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    let fail = |error: IoError| Busy::Failed(Error::output(&path, error));
    loop {
        make_folder(path.parent().unwrap_or(folder)).map_err(fail)?;
        if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            return Err(fail(IoError::new(
                ErrorKind::AlreadyExists,
                "is not a file that Plimsoll has written; remove it",
            )));
        }
        // Some network file systems grant a shared lock only with read access.
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).open(&path).map_err(fail)?;
        let locked = if alone { file.try_lock() } else { file.try_lock_shared() };
        let file = match locked {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock) => return Err(Busy::Other),
            Err(TryLockError::Error(error)) if is_without_locks(&error) => None,
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        };
        // The previous owner may have removed the file after it was opened and before it was locked.
        if file.as_ref().is_none_or(|file| is_the_same(file, &path)) {
            return Ok(Lock { file, path, made });
        }
    }
}

/// Returns whether the error means that the file system has no locks.
fn is_without_locks(error: &IoError) -> bool {
    // "No locks available" of Linux, for which `ErrorKind` has no variant.
    const ENOLCK: i32 = 37;
    error.kind() == ErrorKind::Unsupported || (cfg!(target_os = "linux") && error.raw_os_error() == Some(ENOLCK))
}

/// Returns whether an open file is still the one at `path`.
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
        // The last owner removes the file; if it cannot be removed, it does no harm.
        if self.file.as_ref().is_none_or(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(&self.path);
        }
        if let Some(folder) = self.made.first() {
            let _ = std::fs::remove_dir(folder.join(RECEIPTS));
        }
        // A folder that is not empty remains.
        self.made.iter().take_while(|folder| std::fs::remove_dir(folder).is_ok()).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_alone_or_several_share_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("made/for/out");
        let said = |lock: Result<Lock>| lock.expect_err("another one has it").to_string();
        {
            let _one = Lock::alone(&folder).expect("nobody else");
            assert!(said(Lock::alone(&folder)).contains("another process is writing there"));
            assert!(said(Lock::shared(&folder)).contains("wait until it has ended"));
        }
        assert!(!dir.path().join("made").exists(), "folders that were created for the lock are removed");
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

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_lock_leads_nowhere() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (folder, outside) = (dir.path().join("in"), dir.path().join("outside"));
        std::fs::create_dir(&folder).expect("a folder");
        std::os::unix::fs::symlink(&outside, folder.join(FILE)).expect("a link");
        assert!(Lock::alone(&folder).expect_err("a link").to_string().contains("not a file that Plimsoll has written"));
        assert!(!outside.exists());
    }
}
