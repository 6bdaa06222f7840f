//! The package for Python, installed: its tests in `python/tests`.

use std::process::Command;

use plimsoll::output::provenance::COMMIT;

use crate::docs::root;
use crate::python::python;
use crate::replay::said;
use crate::{Missing, Outcome};

pub fn passes_its_tests() -> Outcome {
    // In a folder where no other module has its name.
    let dir = tempfile::tempdir().expect("a temporary folder");
    let python = python("pytest, polars, plimsoll._plimsoll", dir.path())?;
    let of = "import plimsoll; print(plimsoll.__commit__ or '')";
    let output = Command::new(&python).args(["-c", of]).current_dir(dir.path()).output().expect("it has just run");
    let installed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if installed != COMMIT.unwrap_or_default() {
        return Err(Missing(format!("the package that is installed is of commit '{installed}'; pip install . again")));
    }
    let tests = root().join("python/tests");
    let mut command = Command::new(&python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(tests).current_dir(dir.path());
    let output = command.output().expect("it has just run");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stdout), said(&output));
    Ok(())
}
