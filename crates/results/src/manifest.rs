//! The manifest `made.json` of the files that Plimsoll has generated in a folder, with their digests; tables of runs are not included.
//!
//! The manifest identifies files that are no longer generated. Such files are removed only if they are unchanged; files that a user has
//! changed or added remain. For results without runs the manifest also identifies the experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows;
use plimsoll_store::file::WrittenFile;
use plimsoll_store::portable;
use plimsoll_store::sealed::{self, Found};
use serde::{Deserialize, Serialize};

use crate::files::{MADE, REQUESTS};
use crate::folder::{link_below, sources};
use crate::provenance::{COMMIT, VERSION};
use crate::schema;

/// The experiment that results without runs belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    /// The experiment's name.
    pub name: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The plan.
    pub plan: String,
    /// The files that the plan reads, by their names in the plan, with their digests.
    pub inputs: BTreeMap<String, String>,
    /// The command that makes the results, if they are not made from a plan.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<String>,
}

/// The contents of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the tables' schemas.
    pub schema: u32,
    /// The program's version.
    pub version: String,
    /// The program's commit, if known.
    pub commit: Option<String>,
    /// The experiment that the results belong to, if there is no `experiment.json`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub about: Option<Experiment>,
    /// The files, below the folder, with their BLAKE3 digests.
    pub files: BTreeMap<String, String>,
    /// For each file that was generated from tables of runs, the digest of these tables ([`sources`]).
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub sources: BTreeMap<String, String>,
}

/// The state of a file that a record lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file has the recorded digest.
    AsMade,
    /// The file has another digest.
    Changed,
    /// The file is missing or cannot be read.
    Gone,
}

impl Manifest {
    /// Reads the manifest; `None` if there is none. Errors: the manifest is damaged, or of a version that this program cannot read.
    pub fn read(folder: &Path) -> Result<Option<Manifest>> {
        sealed::find(&folder.join(MADE))?.intact()
    }

    /// Reads the manifest. Returns an empty manifest if the file is missing, or damaged, since damaged entries are not reliable. Errors:
    /// [`Error::Io`].
    pub fn known(folder: &Path) -> Result<Manifest> {
        match sealed::find(&folder.join(MADE)) {
            Err(error @ Error::Io { .. }) => Err(error),
            Ok(Found::Whole(made)) => Ok(made),
            _ => Ok(Manifest::default()),
        }
    }

    /// Returns the experiment of results without runs, and the manifest; `None` if the folder has no such results. Errors: as
    /// [`Manifest::read`].
    pub fn alone(folder: &Path) -> Result<Option<(Experiment, Manifest)>> {
        Ok(Manifest::read(folder)?.and_then(|made| Some((made.about.clone()?, made))))
    }

    /// Records these files as generated now. Other recorded files that are named in `among`, or are below a folder that it names, are no
    /// longer generated; they are removed if they are unchanged. An empty name means all files.
    ///
    /// Errors: a file cannot be read, written or removed.
    pub fn renew(folder: &Path, about: Option<Experiment>, among: &[&str], written: &[WrittenFile]) -> Result<()> {
        let is_below = |name: &str, among: &str| {
            among.is_empty() || name.strip_prefix(among).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        Manifest::record(folder, about, written, |name| among.iter().any(|among| is_below(name, among)))
    }

    /// Records these files as generated now, in addition to the recorded ones. Errors: as [`Manifest::renew`].
    pub fn add(folder: &Path, written: &[WrittenFile]) -> Result<()> {
        Manifest::record(folder, None, written, |_| false)
    }

    fn record(
        folder: &Path,
        about: Option<Experiment>,
        written: &[WrittenFile],
        is_stale: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let now: BTreeMap<String, String> =
            written.iter().map(|file| (below(folder, &file.path), file.digest.clone())).collect();
        let before = Manifest::known(folder)?;
        let (stale, mut files): (BTreeMap<_, _>, BTreeMap<_, _>) =
            before.files.into_iter().filter(|(name, _)| !now.contains_key(name)).partition(|(name, _)| is_stale(name));
        remove(folder, &stale)?;
        let mut tables = before.sources;
        if let (None, Some(digest)) = (&about, sources(folder)?) {
            tables.extend(now.keys().filter(|name| *name != REQUESTS).map(|name| (name.clone(), digest.clone())));
        }
        files.extend(now);
        tables.retain(|name, _| files.contains_key(name));
        let (commit, sources) = (COMMIT.map(str::to_owned), tables);
        let made = Manifest { schema: schema::VERSION, version: VERSION.to_owned(), commit, about, files, sources };
        sealed::write(&folder.join(MADE), &made).map(drop)
    }

    /// Removes all listed files that are unchanged, and the manifest. Errors: a file cannot be removed.
    pub fn remove(folder: &Path) -> Result<()> {
        if !folder.join(MADE).is_file() {
            return Ok(());
        }
        remove(folder, &Manifest::known(folder)?.files)?;
        std::fs::remove_file(folder.join(MADE)).map_err(|error| Error::output(folder, error))
    }

    /// Checks a file if the manifest lists it; other files pass. Errors: [`Error::Trace`] if the file is changed or missing.
    pub fn check(&self, folder: &Path, name: &str) -> Result<()> {
        match self.files.get(name).map(|made| state(folder, name, made)) {
            None | Some(FileState::AsMade) => Ok(()),
            Some(FileState::Changed | FileState::Gone) => {
                let problem = "is not as it was written; run the plan again to replace it";
                Err(Error::trace(folder.join(name), 0, "", problem))
            }
        }
    }

    /// Returns the state of every listed file.
    pub fn states(&self, folder: &Path) -> BTreeMap<String, FileState> {
        self.files.iter().map(|(name, made)| (name.clone(), state(folder, name, made))).collect()
    }
}

/// Returns the path of a file relative to a folder, in the same notation on every system.
pub fn below(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}

/// Computes the BLAKE3 digest of a file. Errors: it cannot be read.
fn digest(path: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(rows::open(path)?).map_err(|source| Error::io(path, source))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Returns the state of a file below a folder; `made` is its recorded digest.
pub fn state(folder: &Path, name: &str, made: &str) -> FileState {
    // Neither a forged list nor a symbolic link can refer to files outside of the folder.
    if portable::leads_elsewhere(name) || link_below(folder, &folder.join(name)).is_some() {
        return FileState::Gone;
    }
    match digest(&folder.join(name)) {
        Ok(found) if found == made => FileState::AsMade,
        Ok(_) => FileState::Changed,
        Err(_) => FileState::Gone,
    }
}

/// Removes a file, which another shard may have removed before. Errors: the file cannot be removed.
fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::output(path, error)),
        _ => Ok(()),
    }
}

/// Removes the files that are unchanged since they were written, but not their folders; returns their paths. Errors: a file cannot be
/// removed.
pub fn remove_files(folder: &Path, files: &BTreeMap<String, String>) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for (name, made) in files {
        if state(folder, name, made) == FileState::AsMade {
            let path = folder.join(name);
            remove_file(&path)?;
            removed.push(path);
        }
    }
    Ok(removed)
}

/// Removes unchanged files, and folders that become empty. Errors: a file cannot be removed.
pub fn remove(folder: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    for (name, made) in files.iter().filter(|(name, _)| !portable::leads_elsewhere(name)) {
        let path = folder.join(name);
        if state(folder, name, made) == FileState::AsMade {
            remove_file(&path)?;
        }
        if link_below(folder, &path).is_some() {
            continue;
        }
        // Folders with other files remain.
        for above in path.ancestors().skip(1).take_while(|above| *above != folder) {
            if std::fs::remove_dir(above).is_err() {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_store::file::write_whole;

    #[test]
    fn what_is_no_longer_made_goes_unless_it_was_changed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path();
        let write =
            |name: &str, text: &str| write_whole(&folder.join(name), text.as_bytes()).expect("a writable folder");
        let names = ["figures/a.svg", "figures/b.svg", "report.html"];
        Manifest::renew(folder, None, &[""], &names.map(|name| write(name, name))).expect("a writable folder");
        write("figures/own.svg", "mine");
        write("figures/b.svg", "changed");
        let states = Manifest::known(folder).expect("readable").states(folder);
        assert_eq!((states["figures/a.svg"], states["figures/b.svg"]), (FileState::AsMade, FileState::Changed));
        Manifest::add(folder, &[write("figures/c.svg", "c")]).expect("a writable folder");
        Manifest::renew(folder, None, &["figures"], &[write("figures/d.svg", "d")]).expect("a writable folder");
        let there = |name: &str| folder.join(name).is_file();
        assert!(!there("figures/a.svg") && !there("figures/c.svg"), "as they were written");
        assert!(there("figures/b.svg") && there("figures/own.svg") && there("figures/d.svg") && there("report.html"));
        let made = Manifest::known(folder).expect("readable");
        assert_eq!(made.files.keys().map(String::as_str).collect::<Vec<_>>(), ["figures/d.svg", "report.html"]);
        Manifest::remove(folder).expect("a writable folder");
        assert!(!there("figures/d.svg") && !there("report.html") && !there(MADE) && there("figures/own.svg"));
    }

    #[test]
    fn a_list_leads_nowhere_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (folder, outside) = (dir.path().join("in"), dir.path().join("outside"));
        write_whole(&outside, b"x").expect("a writable folder");
        let sum = digest(&outside).expect("readable");
        let files = BTreeMap::from([("../outside".to_owned(), sum)]);
        sealed::write(&folder.join(MADE), &Manifest { schema: schema::VERSION, files, ..Manifest::default() })
            .expect("a writable folder");
        assert_eq!(Manifest::known(&folder).expect("readable").states(&folder)["../outside"], FileState::Gone);
        Manifest::remove(&folder).expect("a writable folder");
        assert!(outside.is_file());
    }
}
