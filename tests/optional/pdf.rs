//! The PDF of a figure contains text that a PDF reader can extract.

use std::process::Command;

use crate::report::results;
use crate::{Missing, Outcome};

pub fn its_text_is_text() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let pdf = results(dir.path(), "one", "2").join("figures/completion.pdf");
    let output = Command::new("pdftotext").arg(&pdf).arg("-").output();
    let output = output.map_err(|_| Missing("no pdftotext (Debian's package poppler-utils)".to_owned()))?;
    let read = String::from_utf8_lossy(&output.stdout).into_owned();
    ["Completion time", "drf", "fifo"].iter().for_each(|part| assert!(read.contains(part), "{part}: {read}"));
    Ok(())
}
