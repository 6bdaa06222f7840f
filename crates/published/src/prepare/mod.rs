//! Preparation: makes the inputs of a plan from the data folder of the user.
//!
//! A rule reads the files of one paper and writes a trace, machines and further files beside a copy of the plan, so that `plimsoll run`
//! executes the plan in that folder as well. Files are opened through [`DataFolder`], which checks their declared sizes and digests.

mod accelerators;
mod fgd;
mod gavel_jobs;
mod jobs;
mod pai;
mod sheet;
mod swf;
mod tables;
mod vtc;

use std::path::{Path, PathBuf};

use super::digest::{blake3_of, git_blob_of};
use super::page::field as quoted;
use super::parameters::Parameters;
use super::target::{PublishedTarget, TargetInput};
use plimsoll_base::error::{Error, Result, either};
pub use sheet::{TextSheet, write};
pub use tables::INSTANCES;

/// A rule of preparation: reads the data and writes files to the folder.
type PreparationRule = fn(&DataFolder, &Parameters, &Path) -> Result<()>;

/// All rules by name.
const RULES: [(&str, PreparationRule); 13] = [
    ("", |_, _, _| Ok(())),
    ("arrival-lists", fgd::prepare),
    ("pai", pai::prepare),
    ("rlscheduler", swf::prepare),
    ("elasticflow", jobs::elasticflow),
    ("muri", jobs::muri),
    ("vtc", vtc::prepare),
    ("gavel", accelerators::gavel),
    ("gavel-table", accelerators::table),
    ("gavel-entities", accelerators::entities),
    ("shockwave", accelerators::shockwave),
    ("hydra", tables::hydra),
    ("spot-2026", tables::spot),
];

/// The data folder of the user with the declared files of a target.
pub struct DataFolder<'a> {
    /// The folder; absent if the user gave none and there is no default.
    pub folder: Option<&'a Path>,
    /// The declared files.
    pub inputs: &'a [TargetInput],
}

/// Returns an error for an input that is missing or differs from the declared one. Rows that need it are not run.
fn unusable(problem: String) -> Error {
    Error::Mismatch { problem }
}

impl DataFolder<'_> {
    /// Returns the path of a file. Errors: [`Error::Mismatch`] if it is missing, or differs from the declared file.
    pub fn path(&self, relative: &str) -> Result<PathBuf> {
        let declared = self.inputs.iter().find(|input| input.path == relative);
        let source = declared.map_or("", |input| input.source.as_str());
        let from = if source.is_empty() { String::new() } else { format!(" (from {source})") };
        let missing = || unusable(format!("the input {relative} is not in the data folder{from}"));
        let path = self.folder.ok_or_else(missing)?.join(relative);
        if !path.is_file() {
            return Err(missing());
        }
        if let Some(input) = declared {
            let size = std::fs::metadata(&path).map_err(|error| Error::io(&path, error))?.len();
            let other = |what: String| unusable(format!("the input {relative} is another file: {what}{from}"));
            if let Some(expected) = input.size.filter(|expected| *expected != size) {
                return Err(other(format!("{size} bytes instead of {expected}")));
            }
            for (name, expected, digest) in [
                ("BLAKE3", &input.blake3, blake3_of as fn(&Path) -> Result<String>),
                ("git blob", &input.git_blob, git_blob_of),
            ] {
                if let Some(expected) = expected {
                    let found = digest(&path)?;
                    if found != *expected {
                        return Err(other(format!("{name} {found} instead of {expected}")));
                    }
                }
            }
        }
        Ok(path)
    }

    /// Reads a table. Errors: as [`DataFolder::path`], and those of the file.
    pub fn sheet(&self, relative: &str) -> Result<TextSheet> {
        TextSheet::read(&self.path(relative)?)
    }
}

/// Returns the declared inputs of targets as CSV: their source, the declared size and digest, and the BLAKE3 digest of the file, or the
/// reason why it is not used. Errors: a file cannot be read.
pub fn inputs_csv(targets: &[PublishedTarget], data: Option<&Path>) -> Result<String> {
    let mut text = "target,path,source,declared_size,declared_digest,blake3,state\n".to_owned();
    for target in targets {
        let folder = DataFolder { folder: data, inputs: &target.inputs };
        for input in &target.inputs {
            let declared = match (&input.blake3, &input.git_blob) {
                (Some(digest), _) => format!("blake3 {digest}"),
                (None, Some(id)) => format!("git blob {id}"),
                (None, None) => String::new(),
            };
            let (digest, state) = match folder.path(&input.path) {
                Ok(path) => (blake3_of(&path)?, "used".to_owned()),
                Err(Error::Mismatch { problem }) => (String::new(), problem),
                Err(error) => return Err(error),
            };
            let size = input.size.map_or(String::new(), |size| size.to_string());
            let fields = [&target.name, &input.path, &input.source, &size, &declared, &digest, &state];
            text += &fields.map(|field| quoted(field)).join(",");
            text.push('\n');
        }
    }
    Ok(text)
}

/// Makes the inputs of a plan in a folder. Errors: an unknown rule, and those of the rule.
pub fn prepare(rule: &str, data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    match RULES.iter().find(|(name, _)| *name == rule) {
        Some((_, prepare)) => prepare(data, parameters, into),
        None => Err(Error::plan("prepare", format!("'{rule}'"), either(RULES.iter().skip(1).map(|(name, _)| *name)))),
    }
}
