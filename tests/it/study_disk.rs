//! A disk that fills up: nothing half-written keeps its name, the message says what is wrong, and freed space is all it takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::determinism::differences;
use crate::replay::{files, plimsoll, run, said};
use crate::study_run::{Place, SWEEP, contents};

/// A small file system in memory, unmounted when it is dropped.
struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    /// Why not, where it cannot be mounted.
    fn mount(mebibytes: u64) -> Result<Small, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "plimsoll-test"]).arg(dir.path());
        match command.output() {
            Ok(output) if output.status.success() => Ok(Small { dir }),
            Ok(output) => Err(said(&output).trim().to_owned()),
            Err(error) => Err(format!("mount: {error}")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path()).output();
    }
}

/// What must hold after a run that the disk ended: a message, and under every name either nothing or the whole file.
fn check(output: &Output, folder: &Path, expected: &BTreeMap<String, Vec<u8>>, says: &str) {
    let message = said(output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot write") && message.contains(says), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    for (path, bytes) in contents(folder) {
        assert!(!path.contains(".plimsoll-"), "{path} is left");
        assert!(expected.get(&path) == Some(&bytes), "{path} is not as it will be: {} bytes", bytes.len());
    }
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    const MEBIBYTES: u64 = 24;
    let small = match Small::mount(MEBIBYTES) {
        Ok(small) => small,
        Err(why) => {
            eprintln!("skipped: no small file system can be mounted: {why}");
            return;
        }
    };
    let place = Place::new(SWEEP);
    place.run("whole", &[]);
    let expected = contents(&place.path("whole"));
    // As a file system counts, in pages.
    let pages = |bytes: usize| bytes.div_ceil(4096) * 4096;
    let needed: usize = expected.values().map(|bytes| pages(bytes.len())).sum();
    let room = (MEBIBYTES << 20) as usize;
    assert!(needed < room / 2, "the results have {needed} bytes: mount more");
    let ballast = |free: usize| {
        // What fills up the rest; written anew, so that it really takes room.
        let taken: usize = files(&small.path("out"))
            .iter()
            .filter_map(|path| path.metadata().ok())
            .map(|m| pages(m.len() as usize))
            .sum();
        std::fs::write(small.path("ballast"), vec![1u8; pages(room - taken - free)]).expect("there is room for it");
    };
    let mut ends = 0;
    for (at, threads) in ["1", "2", "2", "1", "2"].into_iter().enumerate() {
        let _ = std::fs::remove_file(small.path("ballast"));
        ballast(needed / 7 * usize::from(at > 0) + 8192);
        let mut command = plimsoll(&["run", "-j", threads]);
        let output = run(command.arg(place.path("plan.toml")).arg("-o").arg(small.path("out")));
        if output.status.success() {
            break;
        }
        check(&output, &small.path("out"), &expected, "No space left on device");
        ends += 1;
    }
    assert!(ends >= 3, "only {ends} runs were ended by the disk");
    std::fs::remove_file(small.path("ballast")).expect("it is there");
    let mut command = plimsoll(&["run"]);
    let output = run(command.arg(place.path("plan.toml")).arg("-o").arg(small.path("out")));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(differences(&expected, &contents(&small.path("out"))), [""; 0]);
}

/// The same without being root: files that may not grow beyond some blocks of 512 bytes.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_is_not_kept() {
    let place = Place::new(SWEEP);
    place.run("whole", &[]);
    let expected = contents(&place.path("whole"));
    for blocks in [0, 4, 16, 40] {
        // Signals that are ignored stay so in the program that the shell becomes.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll"), "run", "-j", "2"]);
        let output = run(command.arg(place.path("plan.toml")).arg("-o").arg(place.path("out")).env("NO_COLOR", "1"));
        check(&output, &place.path("out"), &expected, "File too large");
    }
    place.run("out", &[]);
    assert_eq!(differences(&expected, &contents(&place.path("out"))), [""; 0]);
}
