//! mdBook builds the documentation as a book.

use std::path::Path;
use std::process::Command;

use crate::docs::root;
use crate::replay::said;
use crate::{Missing, Outcome};

pub fn is_built() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    // An mdBook that is installed as a wheel is in the folder of the Python interpreter.
    let beside = std::env::var_os("PLIMSOLL_PYTHON").map(|python| Path::new(&python).with_file_name("mdbook"));
    let mdbook = beside.filter(|path| path.is_file()).unwrap_or_else(|| "mdbook".into());
    let output = Command::new(mdbook).arg("build").arg(root().join("docs")).arg("-d").arg(dir.path()).output();
    let output = output
        .map_err(|_| Missing("no mdbook: pip install -r docs/requirements.txt, or cargo install mdbook".to_owned()))?;
    let said = said(&output);
    assert!(output.status.success() && !said.contains("ERROR") && !said.contains("WARN"), "{said}");
    let page = std::fs::read_to_string(dir.path().join("tutorial.html")).expect("a page");
    assert!(page.contains("howto/publish.html") && page.contains("policies.html"));
    Ok(())
}
