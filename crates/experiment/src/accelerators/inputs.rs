//! The files of a plan with accelerators. A throughput table is read once, and so is a list of jobs, unless cells interpret it differently.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plimsoll_rounds::table::{Arrivals, JobList, JobOptions, Throughputs};

use crate::study::identity::Digests;
use plimsoll_base::error::{Error, Result};

/// A list of jobs and its interpretation: the list, the throughput table, the reference type, the column of arrivals, whether jobs use one
/// accelerator, and the maximum number of jobs.
type ListKey = (PathBuf, PathBuf, String, &'static str, bool, usize);

/// A file that a plan names.
pub(super) struct InputFile {
    /// Its name in the plan.
    pub name: String,
    /// The BLAKE3 digest of its content.
    pub digest: String,
}

/// The files that were read so far.
#[derive(Default)]
pub(super) struct AcceleratorInputs {
    /// The folder that paths are relative to.
    folder: PathBuf,
    digests: Digests,
    tables: Mutex<HashMap<PathBuf, Arc<Throughputs>>>,
    lists: Mutex<HashMap<ListKey, Arc<JobList>>>,
    /// The digests by the names of the files in the plan.
    named: Mutex<BTreeMap<String, String>>,
}

impl AcceleratorInputs {
    /// Creates an instance without files; paths are relative to `folder`.
    pub fn new(folder: &Path) -> AcceleratorInputs {
        AcceleratorInputs { folder: folder.to_owned(), ..AcceleratorInputs::default() }
    }

    /// Returns the path of a file that the plan names.
    pub fn path(&self, name: &Path) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns a throughput table. Errors: those of the file.
    pub fn table(&self, name: &Path) -> Result<Arc<Throughputs>> {
        let path = self.path(name);
        cached(&self.tables, path.clone(), || {
            // The version that the digest refers to is fixed before the file is read.
            self.digests.input(&path)?;
            Throughputs::read(&path, None)
        })
    }

    /// Returns a list of jobs. Errors: those of the file.
    pub fn list(&self, name: &Path, table: &Throughputs, options: &JobOptions<'_>) -> Result<Arc<JobList>> {
        let path = self.path(name);
        let arrivals = match options.arrivals {
            Arrivals::AtOnce => "none",
            Arrivals::Seconds => "arrival_s",
            Arrivals::PerHour(_) => "unit_arrival",
        };
        let (reference, table_path) = (options.reference.to_owned(), table.path().to_owned());
        let key = (path.clone(), table_path, reference, arrivals, options.single, options.at_most);
        cached(&self.lists, key, || {
            self.digests.input(&path)?;
            JobList::read(&path, table, options)
        })
    }

    /// Computes the digest of a file, and records its name. Errors: it cannot be read.
    pub fn digest(&self, name: &Path) -> Result<InputFile> {
        let digest = self.digests.digest(&self.path(name))?;
        let mut named = self.named.lock().map_err(|_| Error::Interrupted)?;
        let name = name.display().to_string();
        named.insert(name.clone(), digest.clone());
        Ok(InputFile { name, digest })
    }

    /// Returns the names of the files in the plan with their digests. Errors: a file has changed since its digest was computed, so that it
    /// is unknown which version was read.
    pub fn into_digests(self) -> Result<BTreeMap<String, String>> {
        let named = self.named.into_inner().map_err(|_| Error::Interrupted)?;
        named.keys().try_for_each(|name| self.digests.input(&self.folder.join(name))?.check())?;
        Ok(named)
    }
}

/// Returns the value of a key. It is read while the map is locked, so that each value is read once.
fn cached<K: std::hash::Hash + Eq, V>(
    known: &Mutex<HashMap<K, Arc<V>>>,
    key: K,
    read: impl FnOnce() -> Result<V>,
) -> Result<Arc<V>> {
    let mut known = known.lock().map_err(|_| Error::Interrupted)?;
    if let Some(value) = known.get(&key) {
        return Ok(value.clone());
    }
    let value = Arc::new(read()?);
    known.insert(key, value.clone());
    Ok(value)
}
