//! The description of a results folder: `experiment.json`, written before the first run and the same for every execution of a plan.
//!
//! The description names the policies in the order of the plan and the seeds of the runs. Therefore readers need not list folders, and can
//! recognise tables of an earlier plan in the same folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_metrics::Design;
use plimsoll_store::lock::Lock;
use plimsoll_store::portable::{self, leads_elsewhere};
use plimsoll_store::sealed::{self, Found};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::files::{CELL, EXPERIMENT, RECEIPTS, STUDY};
use crate::receipt::{Receipt, RunKey};
use crate::schema;

/// The description of the experiment in a results folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The version of the tables' schemas.
    pub schema: u32,
    /// The program's version.
    #[serde(default)]
    pub version: String,
    /// The program's commit, if known.
    #[serde(default)]
    pub commit: Option<String>,
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The policies, in order.
    pub policies: Vec<String>,
    /// The reference policy of comparisons.
    pub baseline: String,
    /// The seed of each run of a policy; null for a trace.
    pub seeds: Vec<Option<u64>>,
    /// Whether submissions depend on the policy, as in a closed loop. Runs of one seed are then not paired.
    #[serde(default)]
    pub submissions_depend_on_policy: bool,
    /// The resources that slow machines down when over-committed; `None` in folders of versions that did not record them.
    #[serde(default)]
    pub slowdown_resources: Option<Vec<String>>,
    /// The command that reproduces the results.
    pub command: String,
    /// The plan, as in the metadata of every table.
    pub plan: String,
    /// BLAKE3 digests of the input files, by the key that names each; null for standard input or a pipe. `None` in results of a program
    /// that did not record them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inputs: Option<BTreeMap<String, Option<String>>>,
}

impl Contents {
    /// Returns whether the runs of two policies are paired by seed when they are compared.
    pub fn design(&self) -> Design {
        if self.submissions_depend_on_policy { Design::Unpaired } else { Design::Paired }
    }

    /// Writes the file.
    pub fn write(&self, folder: &Path) -> Result<()> {
        sealed::write(&folder.join(EXPERIMENT), self).map(drop)
    }

    /// Reads the file. Errors: [`Error::Trace`] if the folder is no results folder or the file is damaged; [`Error::Io`].
    pub fn read(folder: &Path) -> Result<Contents> {
        let path = folder.join(EXPERIMENT);
        if let Some(contents) = sealed::find::<Contents>(&path)?.intact()? {
            return Ok(contents);
        }
        let problem = match folder.join(STUDY).exists() {
            true => "the results of a sweep: each cell has a folder of its own in it, cell=NAME".to_owned(),
            false => format!(
                "not a results folder: it has no {EXPERIMENT}; `plimsoll run PLAN.toml -o {0}` or `plimsoll replay \
                 TRACE .. -o {0}` makes one",
                folder.display()
            ),
        };
        Err(Error::trace(folder, 0, "", problem))
    }
}

/// The tables that the receipts of a folder list, as paths below it, each with its possible digests.
pub type ListedTables = BTreeMap<String, Vec<String>>;

/// Reads the receipts of a folder. Returns the tables of complete runs, and the names of damaged receipts. Errors: the folder of receipts,
/// or a receipt, cannot be read.
pub fn listed(folder: &Path) -> Result<(ListedTables, Vec<String>)> {
    let (mut listed, mut broken) = (ListedTables::new(), Vec::new());
    for name in receipts(folder)? {
        match sealed::read::<Receipt<IgnoredAny>>(&folder.join(RECEIPTS).join(&name)) {
            Ok(Some(receipt)) => {
                for (table, digest) in receipt.tables.into_iter().filter(|(table, _)| !leads_elsewhere(table)) {
                    listed.entry(table).or_default().push(digest);
                }
            }
            Ok(None) => {}
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(_) => broken.push(format!("{RECEIPTS}/{name}")),
        }
    }
    Ok((listed, broken))
}

/// Computes the digest of the tables of all complete runs in a results folder; for a sweep, of the runs of all cells. Two sets with the
/// same digest have the same files with the same bytes. `None` if there are no results of runs. Errors: [`Error::Io`].
pub fn sources(folder: &Path) -> Result<Option<String>> {
    let cells = match undamaged(StudyRecord::read(folder))?.flatten() {
        Some(described) => described.cells.into_iter().map(|(name, _)| name).collect(),
        None => vec![String::new()],
    };
    let mut tables = BTreeMap::new();
    for cell in &cells {
        let place = of_cell(folder, cell);
        let Some(contents) = undamaged(Contents::read(&place))? else { continue };
        let prefix = place.strip_prefix(folder).unwrap_or(Path::new("")).to_string_lossy().into_owned();
        for (name, text) in receipt_texts(&place)? {
            add_sources(&mut tables, &contents, &prefix, (&name, &text));
        }
    }
    Ok((!tables.is_empty()).then(|| digest_of_sources(&tables)))
}

/// Returns the texts of the undamaged receipts of a folder, by file name.
fn receipt_texts(place: &Path) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for name in receipts(place)? {
        if let Some(text) = undamaged(sealed::text(&place.join(RECEIPTS).join(&name)))?.flatten() {
            texts.push((name, text));
        }
    }
    Ok(texts)
}

/// Returns the value of a file, or `None` if the file is missing or damaged. Errors: [`Error::Io`].
fn undamaged<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error @ Error::Io { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Adds the tables of a receipt to the sources of figures, if the run belongs to the plan that `contents` describes. `prefix` is the
/// folder of its cell.
pub fn add_sources(
    tables: &mut BTreeMap<String, String>,
    contents: &Contents,
    prefix: &str,
    (name, text): (&str, &str),
) {
    let Ok(Receipt::<RunKey> { tables: own, summary, .. }) = serde_json::from_str(text) else { return };
    if contents.policies.contains(&summary.policy) && summary.run < contents.seeds.len() as u64 {
        tables.extend(own.into_iter().map(|(table, digest)| (format!("{prefix}/{name}/{table}"), digest)));
    }
}

/// Computes the digest of a set of tables with their digests.
pub fn digest_of_sources(tables: &BTreeMap<String, String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, digest) in tables {
        hasher.update(format!("{name}\n{digest}\n").as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns the names of the receipts in a folder, in order: 16 hexadecimal digits and `.json`. Errors: [`Error::Io`].
pub fn receipts(folder: &Path) -> Result<Vec<String>> {
    let place = folder.join(RECEIPTS);
    let mut names = Vec::new();
    let entries = match std::fs::read_dir(&place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(names),
        entries => entries.map_err(|source| Error::io(&place, source))?,
    };
    for entry in entries {
        let name = entry.map_err(|source| Error::io(&place, source))?.file_name().to_string_lossy().into_owned();
        let id = name.strip_suffix(".json").unwrap_or_default();
        if id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the first symbolic link on the way from a folder to a path below it. The path itself may be the link. Targets are not examined.
pub fn link_below<'a>(folder: &Path, path: &'a Path) -> Option<&'a Path> {
    let below = path.ancestors().take_while(|above| *above != folder);
    below.filter(|above| above.symlink_metadata().is_ok_and(|there| there.is_symlink())).last()
}

/// Checks that no symbolic link is on the way from a results folder to a path below it. Errors: [`Error::Output`] with the link.
pub fn check_links(folder: &Path, path: &Path) -> Result<()> {
    match link_below(folder, path) {
        None => Ok(()),
        Some(link) => Err(Error::output(link, "it is a link; results are plain files and folders")),
    }
}

/// Locks an existing results folder exclusively. Errors: as [`Lock::alone`], and as [`Contents::read`] if there is no folder.
pub fn lock_there(folder: &Path) -> Result<Lock> {
    if !folder.is_dir() {
        Contents::read(folder)?;
    }
    Lock::alone(folder)
}

/// Checks that a results folder exists or can be created. Errors: [`Error::Plan`] under `key` if it, or its nearest existing ancestor, is
/// not a folder.
pub fn check_output(key: &str, folder: &Path) -> Result<()> {
    match folder.ancestors().find(|path| path.exists()) {
        Some(there) if !there.is_dir() => {
            let is = if there == folder { "this is".to_owned() } else { format!("'{}' is", there.display()) };
            let expected = format!("a folder for the results, which is created if it does not exist; {is} a file");
            Err(Error::plan(key, format!("'{}'", folder.display()), expected))
        }
        _ => Ok(()),
    }
}

/// The contents of [`STUDY`]; the same for every execution of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// The version of the tables' schemas.
    pub schema: u32,
    /// The program's version.
    #[serde(default)]
    pub version: String,
    /// The program's commit, if known.
    #[serde(default)]
    pub commit: Option<String>,
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The columns of the axes.
    pub columns: Vec<String>,
    /// The cells: their names, and one value per column, as text.
    pub cells: Vec<(String, Vec<String>)>,
    /// The plan.
    pub plan: String,
}

impl StudyRecord {
    /// Reads the record; `None` if the folder has no record, like the folder of a plan without a sweep. Errors: the record cannot be read,
    /// is damaged, or has a cell with more or fewer values than axes.
    pub fn read(folder: &Path) -> Result<Option<StudyRecord>> {
        match StudyRecord::find(folder)? {
            // The folder has results without a sweep, so a user created this file.
            Found::Damaged(_) if Contents::read(folder).is_ok() => Ok(None),
            found => found.intact(),
        }
    }

    /// Finds the record. Errors: as [`sealed::find`].
    pub fn find(folder: &Path) -> Result<Found<StudyRecord>> {
        let path = folder.join(STUDY);
        let is_odd =
            |described: &StudyRecord| described.cells.iter().any(|(_, values)| values.len() != described.columns.len());
        Ok(match sealed::find(&path)? {
            Found::Whole(described) if is_odd(&described) => {
                let problem = "a value for each of the columns is expected in every cell";
                Found::Damaged(Error::trace(&path, 0, "cells", problem))
            }
            found => found,
        })
    }

    /// Writes the record, unless it exists already.
    pub fn write(&self, folder: &Path) -> Result<()> {
        if matches!(StudyRecord::read(folder), Ok(Some(there)) if there == *self) {
            return Ok(());
        }
        sealed::write(&folder.join(STUDY), self).map(drop)
    }
}

/// Checks the name of an experiment, which is also the name of its results folder. Errors: [`Error::Plan`].
pub fn check_name(name: &str) -> Result<()> {
    match portable::is_file_name(name) {
        true => Ok(()),
        false => Err(Error::plan("name", format!("'{}'", name.escape_debug()), portable::EXPECTED)),
    }
}

/// Returns the folder of a cell's results; without a sweep, the folder of the study.
pub fn of_cell(folder: &Path, cell: &str) -> PathBuf {
    if cell.is_empty() { folder.to_owned() } else { folder.join(format!("{CELL}{}", schema::partition(cell))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn contents_read_back_and_errors_say_what_is_missing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let message = Contents::read(dir.path()).unwrap_err().to_string();
        assert!(message.contains("no experiment.json") && message.contains("plimsoll run"), "{message}");
        let contents = Contents { schema: schema::VERSION, seeds: vec![None, Some(3)], ..Contents::default() };
        contents.write(dir.path()).expect("a writable folder");
        assert_eq!(Contents::read(dir.path()).expect("what was written"), contents);
        for (schema, says) in [(0, "schema 0, with other columns"), (99, "schema 99, written by a newer Plimsoll")] {
            Contents { schema, ..contents.clone() }.write(dir.path()).expect("a writable folder");
            let message = Contents::read(dir.path()).unwrap_err().to_string();
            assert!(message.contains(says) && message.contains("experiment.json"), "{message}");
        }
        std::fs::write(dir.path().join(EXPERIMENT), "{\n  \"schema\": 2,\n").expect("a writable folder");
        let message = Contents::read(dir.path()).unwrap_err().to_string();
        assert!(message.contains("experiment.json") && message.contains("not as it was written"), "{message}");
    }
}
