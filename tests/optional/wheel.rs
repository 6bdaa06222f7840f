//! The installed package for Python: its tests in `python/tests`, and the notebooks.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll::output::provenance::COMMIT;

use crate::docs::{notebooks, root};
use crate::python::{printed, python};
use crate::replay::{run, said};
use crate::{Missing, Outcome};

/// Returns a Python with these packages and with Plimsoll's own package of the tested commit. Errors: the reason why there is none.
fn with_plimsoll(packages: &str, from: &Path) -> Result<PathBuf, Missing> {
    let python = python(&format!("{packages}, plimsoll._plimsoll"), from)?;
    let of = "import plimsoll; print(plimsoll.__commit__ or '')";
    let output = Command::new(&python).args(["-c", of]).current_dir(from).output().expect("it has just run");
    let installed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if installed != COMMIT.unwrap_or_default() {
        return Err(Missing(format!("the installed package is of commit '{installed}'; run pip install . again")));
    }
    Ok(python)
}

pub fn passes_its_tests() -> Outcome {
    // The tests run in a folder without another module of the same name.
    let dir = tempfile::tempdir().expect("a temporary folder");
    let python = with_plimsoll("pytest, polars", dir.path())?;
    let tests = root().join("python/tests");
    let mut command = Command::new(&python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(tests).current_dir(dir.path());
    let output = command.output().expect("it has just run");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stdout), said(&output));
    Ok(())
}

/// Executes every cell, as `jupyter execute` does.
const EXECUTE: &str = "
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=None, startup_timeout=600, resources={'metadata': {'path': sys.argv[2]}}).execute()
print(sum(len(cell.get('outputs', [])) for cell in notebook.cells))
";

pub fn notebooks_run_on_small_plans() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let python = with_plimsoll("polars, altair, matplotlib, nbclient, nbformat, ipykernel", dir.path())?;
    // Small versions of the plans that the notebooks run.
    let experiments = dir.path().join("experiments");
    std::fs::create_dir(&experiments).expect("a folder");
    let small = [
        ("facebook", "seeds = 2\nworkload.hours = 0.3"),
        ("complementary", "seeds = 4\nworkload.hours = 0.2"),
        ("load-sweep", "seeds = 3\nworkload.hours = 0.3\nmeasure.from = \"2m\""),
    ];
    for (name, keys) in small {
        let whole = root().join(format!("experiments/{name}.toml"));
        let plan = format!("include = '{}'\n{keys}\n", whole.display());
        std::fs::write(experiments.join(format!("{name}.toml")), plan).expect("a plan");
    }
    let folder = dir.path().join("notebooks");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::copy(root().join("notebooks/style.py"), folder.join("style.py")).expect("a copy");
    for path in notebooks() {
        let mut command = Command::new(&python);
        command.args(["-c", EXECUTE]).arg(&path).arg(&folder).env("PYTHONDONTWRITEBYTECODE", "1");
        // The kernel's own files go to the temporary folder, not to the user's folders.
        command.env("IPYTHONDIR", dir.path().join("ipython")).env("JUPYTER_RUNTIME_DIR", dir.path().join("jupyter"));
        let outputs: usize = printed(&run(&mut command)).trim().parse().expect("a number");
        assert!(outputs >= 4, "{}: {outputs} outputs", path.display());
    }
    Ok(())
}
