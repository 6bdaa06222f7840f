//! Reads the tables of a results folder: some columns of one table, run by run in the order of the plan.
//!
//! A table exists if the receipt of a run lists it. It is read only if its digest equals the digest in the receipt.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Dim;
use plimsoll_store::frame::{Frame, open};

use crate::files::EXPERIMENT;
use crate::folder::{Contents, ListedTables, listed};
use crate::manifest::{FileState, below, state};
use crate::provenance::Provenance;
use crate::schema::{OWN_COLUMNS, OwnColumn, Table};

/// Maximum number of runs of all policies together, counted up to the last existing run. Reports have tables over all these runs.
const RUNS_MOST: usize = 1_000_000;

/// An open results folder.
pub struct Results {
    /// The path of the folder.
    pub folder: PathBuf,
    /// The description of the results.
    pub contents: Contents,
    /// The resource dimensions.
    pub dims: Vec<Dim>,
    /// The columns of the table `runs` that the plan defines.
    pub own: Vec<OwnColumn>,
    /// Key-value metadata of the tables.
    pub metadata: Vec<(String, String)>,
    /// `(policy, run)` of the complete runs: those with a row in `runs`.
    pub runs: Vec<(usize, usize)>,
    /// The tables of complete runs.
    listed: ListedTables,
    /// Names of damaged receipts.
    broken: Vec<String>,
    /// The tables with verified digests.
    checked: Mutex<HashSet<PathBuf>>,
}

/// Some columns of one run of one table.
pub struct Part {
    /// Index of the policy in the plan.
    pub policy: usize,
    /// Number of the run.
    pub run: usize,
    frame: Frame,
}

impl Results {
    /// Opens a folder. Errors: [`Error::Trace`] if it has no results, or a table in it is damaged.
    pub fn open(folder: &Path) -> Result<Results> {
        let contents = Contents::read(folder)?;
        let (listed, broken) = listed(folder)?;
        let mut results = Results {
            folder: folder.to_owned(),
            contents,
            dims: Vec::new(),
            own: Vec::new(),
            metadata: Vec::new(),
            runs: Vec::new(),
            listed,
            broken,
            checked: Mutex::default(),
        };
        for (policy, run) in results.listed_runs() {
            let Some(metadata) = results.metadata_of(Table::Runs, policy, run)? else { continue };
            if results.metadata.is_empty() {
                results.metadata = metadata;
            } else if results.metadata != metadata {
                continue;
            }
            results.runs.push((policy, run));
        }
        if results.runs.is_empty() {
            let problem = format!("no run of this plan has ended; run it again: {}", results.contents.command);
            return Err(Error::trace(folder, 0, "", results.broken.first().map_or(problem, |_| results.damage())));
        }
        let runs = results.width().saturating_mul(results.contents.policies.len());
        if runs > RUNS_MOST {
            let problem =
                format!("it requests {runs} runs up to the last existing one; at most {RUNS_MOST} can be read");
            return Err(Error::trace(folder.join(EXPERIMENT), 0, "", problem));
        }
        let resources = results.about("plimsoll.resources").unwrap_or("[]");
        let names: Vec<String> = serde_json::from_str(resources)
            .map_err(|error| Error::trace(folder, 0, "plimsoll.resources", error.to_string()))?;
        results.dims = names.iter().map(|name| Dim::parse(name).0).collect();
        if let Some(columns) = results.about(OWN_COLUMNS) {
            results.own = serde_json::from_str(columns)
                .map_err(|error| Error::trace(folder, 0, OWN_COLUMNS, error.to_string()))?;
        }
        Ok(results)
    }

    /// Returns the runs of the plan that receipts list, in the order of the plan. The runs of the plan are not enumerated, since there may
    /// be too many.
    fn listed_runs(&self) -> BTreeSet<(usize, usize)> {
        let parts = |table: &str| {
            let (policy, run) = table.strip_suffix("/runs.parquet")?.rsplit_once("/run=")?;
            Some((policy.to_owned(), run.parse().ok()?))
        };
        // If several policies have the same name, the first one is used.
        let policies = (0..self.contents.policies.len()).rev();
        let path = |policy: usize| below(&self.folder, &self.path(Table::Runs, policy, 0));
        let places: HashMap<String, usize> =
            policies.filter_map(|policy| Some((parts(&path(policy))?.0, policy))).collect();
        let runs = self.listed.keys().filter_map(|table| parts(table));
        let runs = runs.filter_map(|(policy, run)| Some((*places.get(&policy)?, run)));
        runs.filter(|(_, run)| *run < self.contents.seeds.len()).collect()
    }

    /// Returns the number of runs per policy up to the last existing run. The plan may request more runs.
    pub fn width(&self) -> usize {
        self.runs.iter().map(|(_, run)| run + 1).max().unwrap_or(0)
    }

    /// Returns the provenance of all drawings of the results. `plan` is the plan that the drawings state.
    pub fn provenance(&self, plan: &str) -> Provenance {
        Provenance::of_tables(plan, [&self.contents], [&self.metadata[..]])
    }

    /// Returns a value of the tables' metadata.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Describes the number of missing runs; `None` if there are none.
    pub fn missing(&self) -> Option<String> {
        let planned = self.contents.policies.len().saturating_mul(self.contents.seeds.len());
        let there = self.runs.len();
        let why = if self.broken.is_empty() { "the others have not ended".to_owned() } else { self.damage() };
        (there < planned).then(|| format!("{there} of {planned} runs are complete; {why}."))
    }

    fn damage(&self) -> String {
        format!("{} is not as it was written; run the plan again", self.broken.join(", "))
    }

    /// Returns whether a table belongs to a complete run. Errors: its digest differs from the run's receipt.
    fn is_there(&self, path: &Path) -> Result<bool> {
        let name = below(&self.folder, path);
        let Some(digests) = self.listed.get(&name) else { return Ok(false) };
        let mut checked = self.checked.lock().map_err(|_| Error::Interrupted)?;
        if !checked.contains(path) {
            let states: Vec<FileState> = digests.iter().map(|digest| state(&self.folder, &name, digest)).collect();
            if !states.contains(&FileState::AsMade) {
                let is = if states.contains(&FileState::Changed) { "as it was written" } else { "there" };
                let problem = format!("this table is not {is}; run the plan again to replace it");
                return Err(Error::trace(path, 0, "", problem));
            }
            checked.insert(path.to_owned());
        }
        Ok(true)
    }

    /// Returns the number of the first run that exists for all policies; 0 if there is none.
    pub fn first_run(&self) -> usize {
        let mut policies: BTreeMap<usize, usize> = BTreeMap::new();
        self.runs.iter().for_each(|(_, run)| *policies.entry(*run).or_default() += 1);
        let whole = |(_, there): &(usize, usize)| *there == self.contents.policies.len();
        policies.into_iter().find(whole).map_or(0, |(run, _)| run)
    }

    /// Returns the metadata of a file, if it exists and belongs to this plan.
    fn metadata_of(&self, table: Table, policy: usize, run: usize) -> Result<Option<Vec<(String, String)>>> {
        let path = self.path(table, policy, run);
        if !self.is_there(&path)? {
            return Ok(None);
        }
        let Some(file) = open(&path)? else { return Ok(None) };
        // The library adds the schema of the table, which differs between tables.
        let metadata: Vec<_> = file.pairs().iter().filter(|(key, _)| key.starts_with("plimsoll.")).cloned().collect();
        let ours = metadata.iter().any(|(key, value)| key == "plimsoll.plan" && *value == self.contents.plan);
        Ok(ours.then_some(metadata))
    }

    fn path(&self, table: Table, policy: usize, run: usize) -> PathBuf {
        table.path(&self.folder, &self.contents.policies[policy], run as u64)
    }

    /// Returns some columns of a table, policy by policy and run by run, of all runs or of one. Empty if the table was not written. A
    /// column that is missing, since the table was written by an older version, has no values.
    ///
    /// Errors: [`Error::Trace`] with the file, if it is damaged.
    pub fn table(&self, table: Table, columns: &[&str], only_run: Option<usize>) -> Result<Vec<Part>> {
        let wanted = self.runs.iter().filter(|(_, run)| only_run.is_none_or(|only| only == *run));
        wanted.filter_map(|&of| self.part(table, columns, of).transpose()).collect()
    }

    /// Returns the files of a table, policy by policy and run by run; none if it was not written. Errors: [`Error::Trace`] with the file,
    /// if it is damaged.
    pub fn files(&self, table: Table) -> Result<Vec<PathBuf>> {
        self.runs.iter().filter_map(|&of| self.file(table, of).transpose()).collect()
    }

    /// Returns the file of a table of one run, given by the index of its policy and its number; `None` if it was not written. Errors: as
    /// [`Results::files`].
    pub fn file(&self, table: Table, (policy, run): (usize, usize)) -> Result<Option<PathBuf>> {
        let known = self.metadata_of(table, policy, run)?.is_some_and(|metadata| metadata == self.metadata);
        Ok(known.then(|| self.path(table, policy, run)))
    }

    /// Returns some columns of a table of one run, given by the index of its policy and its number; `None` if it was not written. Errors:
    /// as [`Results::table`].
    pub fn part(&self, table: Table, columns: &[&str], (policy, run): (usize, usize)) -> Result<Option<Part>> {
        // Files of another trace or version have different metadata.
        if self.metadata_of(table, policy, run)?.is_none_or(|metadata| metadata != self.metadata) {
            return Ok(None);
        }
        let path = self.path(table, policy, run);
        let Some(file) = open(&path)? else { return Ok(None) };
        Ok(Some(Part { policy, run, frame: Frame::read(path, file, Some(columns))? }))
    }
}

impl Part {
    /// Returns a column of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>> {
        self.frame.numbers(name)
    }

    /// Returns a column of names; an absent name is empty.
    pub fn names(&self, name: &str) -> Result<Vec<String>> {
        self.frame.names(name)
    }
}
