//! The results folder of `plimsoll published`: verdicts as tables, the page, the input files with their digests, and the targets.
//!
//! The files are listed in the manifest, so that `plimsoll bundle` packs them. The prepared inputs in the folder `inputs` are not listed,
//! because the licence of a paper's files may not allow to pass them on.

use std::path::Path;
use std::time::Instant;

use plimsoll_published::{Evaluated, PublishedTarget, claims_csv, csv, inputs_csv, page, predictions_csv};

use super::super::Context;
use super::super::run::provenance;
use crate::error::{Error, Result};
use crate::output::file::write_whole;
use crate::output::files::{PUBLISHED_TARGETS, RUN};
use crate::output::folder::check_output;
use crate::output::lock::Lock;
use crate::output::manifest::{Experiment, Manifest};
use crate::output::ownership::{check_owner, check_without_runs};
use crate::output::sealed;
use crate::output::shell;

/// The name of the results, and of their bundle.
const NAME: &str = "published";

/// A folder that is locked for results.
pub(super) struct PublishedFolder<'a> {
    folder: &'a Path,
    _lock: Lock,
}

impl<'a> PublishedFolder<'a> {
    /// Locks a folder. Errors: another process writes to it, or it contains other results or files with the names of results.
    pub(super) fn lock(folder: &'a Path) -> Result<PublishedFolder<'a>> {
        check_output("--output", folder)?;
        let lock = Lock::alone(folder)?;
        check_owner(folder)?;
        check_without_runs(folder, "")?;
        Ok(PublishedFolder { folder, _lock: lock })
    }

    /// Writes all files. `names` are the targets that were selected on the command line. Errors: a file cannot be read or written.
    pub(super) fn write(
        &self,
        (targets, evaluated): (&[PublishedTarget], &[Evaluated]),
        (data, names): (Option<&Path>, &[String]),
        (context, threads, started): (&Context, usize, Instant),
    ) -> Result<()> {
        let more = serde_json::json!({});
        sealed::write(&self.folder.join(RUN), &provenance(context, threads, started, more))?;
        let texts = [
            ("published.csv", csv(targets, evaluated)),
            ("claims.csv", claims_csv(targets, evaluated)),
            ("predictions.csv", predictions_csv(targets, evaluated)),
            ("inputs.csv", inputs_csv(targets, data)?),
            ("published.md", page(targets, evaluated)),
        ];
        let mut written = Vec::new();
        for (name, text) in texts {
            written.push(write_whole(&self.folder.join(name), text.as_bytes())?);
        }
        for target in targets {
            let into = self.folder.join(PUBLISHED_TARGETS).join(&target.name);
            std::fs::create_dir_all(&into).map_err(|error| Error::output(&into, error))?;
            let entries = std::fs::read_dir(&target.folder).map_err(|error| Error::io(&target.folder, error))?;
            for entry in entries {
                let path = entry.map_err(|error| Error::io(&target.folder, error))?.path();
                if let Some(name) = path.file_name().filter(|_| path.is_file()) {
                    let bytes = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
                    written.push(write_whole(&into.join(name), &bytes)?);
                }
            }
        }
        let words = ["plimsoll", "published"].into_iter().chain(names.iter().map(String::as_str));
        let about = Experiment {
            name: NAME.to_owned(),
            question: Some("Which numbers of other groups are within their tolerance?".to_owned()),
            command: Some(shell::line(words)),
            ..Experiment::default()
        };
        Manifest::renew(self.folder, Some(about), &[""], &written)
    }
}
