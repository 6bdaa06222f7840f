//! The records of a results folder that list its files, with the digest of each.
//!
//! Receipts list tables, and manifests (`made.json`) list statistics, figures and pages. Descriptions of the folder carry their own
//! digests. A file is packed only if it matches the digest of its record, or is an undamaged description.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files::{CELL, EXPERIMENT, MADE, REQUESTS, STUDY};
use crate::folder::{Contents, add_sources, digest_of_sources};
use crate::manifest::{FileState, Manifest};
use crate::shell::quoted;
use plimsoll_base::error::{Error, Result};
use plimsoll_metrics::numbers::count;
use plimsoll_store::file::digest_of;
use plimsoll_store::sealed;

/// The state of a file according to the records of its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordedState {
    /// A record lists the file, and the file has the recorded BLAKE3 digest, which is the value.
    AsRecorded(String),
    /// A record lists the file, but the file has another digest, is missing, or is outdated.
    Broken,
    /// No record lists the file. It was made by the user, by an earlier plan, or by a run with a damaged receipt.
    Unlisted,
}

/// The files that the records of a results folder list, and the records themselves, by name below the folder. Each has its digest, or
/// `None` if the file differs from its record.
pub(super) struct Records {
    files: BTreeMap<String, Option<String>>,
    /// The tables of complete runs that the figures of a folder may show, by folder.
    tables: BTreeMap<PathBuf, BTreeMap<String, String>>,
}

impl Records {
    /// Reads the descriptions among the files `listed`.
    pub fn read(listed: &BTreeMap<String, PathBuf>) -> Records {
        let descriptions = listed.iter().filter(|(name, _)| is_description(&own(name)));
        // Damaged records are skipped here; the code that needs them reports the damage.
        let digest = |(name, path): (&String, &PathBuf)| {
            let text = sealed::text(path).ok().flatten()?;
            Some((name.clone(), Some(digest_of(text.as_bytes()))))
        };
        Records { files: descriptions.filter_map(digest).collect(), tables: BTreeMap::new() }
    }

    /// Adds the file `name` of the cell's folder `place` below `folder`. `digest` is `None` if the file does not match its record.
    pub fn add(&mut self, folder: &Path, place: &Path, name: &str, digest: Option<String>) {
        let below = place.strip_prefix(folder).unwrap_or(place);
        let below = below.iter().map(|part| format!("{}/", part.to_string_lossy())).collect::<String>();
        self.files.insert(format!("{below}{name}"), digest);
    }

    /// Adds the tables of a complete run of the cell at `place` to the tables that its figures may show.
    pub fn add_run(&mut self, folder: &Path, (place, contents): (&Path, &Contents), receipt: (&str, &str)) {
        add_sources(self.tables.entry(place.to_owned()).or_default(), contents, "", receipt);
        if place != folder {
            let prefix = place.strip_prefix(folder).unwrap_or(place).to_string_lossy();
            add_sources(self.tables.entry(folder.to_owned()).or_default(), contents, &prefix, receipt);
        }
    }

    /// Adds the files that the manifest of `place` lists. Returns the missing and the changed files and, as a message, the files that were
    /// made from other tables than the existing ones.
    pub fn add_made(&mut self, folder: &Path, place: &Path) -> Result<(Vec<String>, Option<String>)> {
        let mut missing = Vec::new();
        let mut made = Manifest::read(place)?.unwrap_or_default();
        let tables = self.tables.get(place).map(digest_of_sources);
        let mut outdated = Vec::new();
        for (name, state) in made.states(place) {
            let is_outdated = tables.is_some() && name != REQUESTS && made.sources.get(&name) != tables.as_ref();
            let digest = made.files.remove(&name).filter(|_| state == FileState::AsMade && !is_outdated);
            if state == FileState::AsMade && is_outdated {
                outdated.push(name.clone());
            }
            self.add(folder, place, &name, digest);
            match state {
                FileState::AsMade => {}
                FileState::Changed => missing.push(format!("{name} is not as it was written")),
                FileState::Gone => missing.push(name),
            }
        }
        let outdated = outdated.first().map(|first| {
            format!(
                "{} not made from the existing tables ({first}{}): repeat the command of these results, which keeps \
                 complete runs, and then `plimsoll report {}`",
                count(outdated.len() as u64, "file"),
                if outdated.len() > 1 { ", .." } else { "" },
                quoted(&folder.to_string_lossy())
            )
        });
        Ok((missing, outdated))
    }

    /// Returns whether a record lists a file, whatever its current state.
    pub fn list(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Returns whether a file matches its record. Every file that is packed from a results folder is checked by this function.
    ///
    /// Tables are listed in the receipts of their runs; statistics, figures and pages are listed in `made.json`. Descriptions carry their
    /// own digests. Errors: a description is damaged, or was written after the records were read.
    pub fn standing(&self, name: &str, path: &Path) -> Result<RecordedState> {
        if let Some(found) = self.files.get(name) {
            return Ok(found.clone().map_or(RecordedState::Broken, RecordedState::AsRecorded));
        }
        if !is_description(&own(name)) {
            return Ok(RecordedState::Unlisted);
        }
        sealed::text(path)?;
        let problem = format!("{} was written just now: wait until no process writes there", path.display());
        Err(Error::Mismatch { problem })
    }
}

/// Splits a name into its parts below the folder of its cell.
fn own(name: &str) -> Vec<&str> {
    name.split('/').skip_while(|part| part.starts_with(CELL)).collect()
}

/// Returns whether a file is a record that no other record lists.
fn is_description(own: &[&str]) -> bool {
    match own {
        [MADE | EXPERIMENT | STUDY] => true,
        [name] => name.starts_with("run") && name.ends_with(".json"),
        _ => false,
    }
}
