//! Files with a size limit, as on a full disk: no partial file keeps its name, the message describes the problem, and freeing
//! space is sufficient to resume. `tests/optional/disk.rs` tests a real full disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use plimsoll::output::files::MADE;
use plimsoll::output::manifest::{FileState, Manifest};

use crate::determinism::differences;
use crate::replay::{run, said};
use crate::study_run::{SWEEP, Scratch, contents};

/// Checks a run that failed because of the disk: it prints a message, and each file is either absent or complete.
pub fn check(output: &Output, folder: &Path, expected: &BTreeMap<String, Vec<u8>>, says: &str) {
    let message = said(output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot write") && message.contains(says), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    for (path, bytes) in contents(folder) {
        assert!(!path.contains(".plimsoll-"), "{path} is left");
        assert!(
            is_as_it_will_be(folder, &path, &bytes, expected),
            "{path} does not have its final contents: {} bytes",
            bytes.len()
        );
    }
}

/// Returns whether a file has its final contents. The manifest grows during a run: it is valid if it matches the existing files.
pub fn is_as_it_will_be(folder: &Path, path: &str, bytes: &[u8], expected: &BTreeMap<String, Vec<u8>>) -> bool {
    match path.strip_suffix(MADE) {
        Some(place) => {
            let place = folder.join(place);
            let made = Manifest::read(&place).ok().flatten();
            made.is_some_and(|made| made.states(&place).values().all(|state| *state != FileState::Changed))
        }
        None => expected.get(path).is_some_and(|whole| whole == bytes),
    }
}

/// In this test files cannot grow beyond a number of blocks of 512 bytes.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_is_not_kept() {
    let place = Scratch::new(SWEEP);
    place.run("whole", &[]);
    let expected = contents(&place.path("whole"));
    for blocks in [0, 4, 16, 40] {
        // The shell replaces itself with the program, which inherits the ignored signal.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll"), "run", "-j", "2"]);
        let output = run(command.arg(place.path("plan.toml")).arg("-o").arg(place.path("out")).env("NO_COLOR", "1"));
        check(&output, &place.path("out"), &expected, "File too large");
    }
    place.run("out", &[]);
    assert_eq!(differences(&expected, &contents(&place.path("out"))), [""; 0]);
}
