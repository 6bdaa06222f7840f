//! A disk that fills up: no partial file has a final name, the message names the problem, and a run after freeing space succeeds.

use std::path::PathBuf;
use std::process::Command;

use crate::determinism::differences;
use crate::replay::{files, plimsoll, run, said};
use crate::study_disk::check;
use crate::study_run::{SWEEP, Scratch, contents};
use crate::{Missing, Outcome};

/// A small file system in memory, unmounted when it is dropped.
struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    /// Mounts the file system. Errors: the reason why it cannot be mounted.
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

pub fn a_full_one_leaves_nothing_half_written() -> Outcome {
    const MEBIBYTES: u64 = 24;
    let small =
        Small::mount(MEBIBYTES).map_err(|why| Missing(format!("no small file system can be mounted: {why}")))?;
    let place = Scratch::new(SWEEP);
    place.run("whole", &[]);
    let expected = contents(&place.path("whole"));
    // The file system allocates whole pages.
    let pages = |bytes: usize| bytes.div_ceil(4096) * 4096;
    let needed: usize = expected.values().map(|bytes| pages(bytes.len())).sum();
    let room = (MEBIBYTES << 20) as usize;
    assert!(needed < room / 2, "the results have {needed} bytes: increase MEBIBYTES");
    let ballast = |free: usize| {
        // Writes a file that uses the remaining space except about `free` bytes.
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
    Ok(())
}
