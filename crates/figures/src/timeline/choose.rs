//! The selection of one run of a results folder, with its table of tasks.

use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result, alternatives, did_you_mean};
use plimsoll_base::units::{Dim, Time, resource_name};
use plimsoll_metrics::numbers::capital;
use plimsoll_results::folder::{StudyRecord, check_links, of_cell};
use plimsoll_results::read::Results;
use plimsoll_results::schema::{Table, partition};

/// The options that select a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunChoice<'a> {
    /// The policy; necessary if there are several.
    pub policy: Option<&'a str>,
    /// The cell of a sweep; necessary if there are several.
    pub cell: Option<&'a str>,
    /// The seed; by default the first one.
    pub seed: Option<u64>,
}

/// A run of a results folder.
struct FoundRun {
    results: Results,
    /// The index of the policy, and the number of the run.
    key: (usize, usize),
    /// The name of the cell; empty without a sweep.
    cell: String,
    notes: Vec<String>,
}

/// A complete run without a table of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWithoutTasks {
    /// The policy.
    pub policy: String,
    /// The name of the cell; empty without a sweep.
    pub cell: String,
    /// The number of the run among those of the policy.
    pub run: usize,
}

/// A run with its table of tasks.
pub(super) struct ChosenRun {
    /// The results.
    pub results: Results,
    /// The index of the policy, and the number of the run.
    pub key: (usize, usize),
    /// The table of tasks.
    pub tasks: PathBuf,
    /// The end of the run.
    pub end: Time,
    /// The largest delay of a row of the table of tasks; 0 until it is measured.
    pub delay: u64,
    /// Messages about default choices.
    pub notes: Vec<String>,
}

/// A resource of the run.
pub(super) struct Resource {
    /// Its column in the table of usage.
    pub column: String,
    /// Its dimension.
    pub dim: Dim,
    /// Whether an option names it.
    pub is_chosen: bool,
}

impl Resource {
    /// Returns the label of an axis of amounts.
    pub fn label(&self) -> String {
        format!("{} in use ({})", capital(&resource_name(&self.dim.name)), self.unit())
    }

    /// Returns the unit of amounts.
    pub fn unit(&self) -> &'static str {
        self.dim.unit.label(&self.dim.name)
    }
}

/// The policy and the number of a run, from the name of its folder `TABLE/policy=P/run=K`.
struct RunFolder {
    partition: String,
    run: usize,
}

/// Separates the folder of a run into the results folder and the run; the path itself if it is no folder of a run.
fn separate(path: &Path) -> (&Path, Option<RunFolder>) {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let found = || {
        let run = name(path).strip_prefix("run=")?.parse().ok()?;
        let policy = path.parent()?;
        let partition = name(policy).strip_prefix("policy=")?.to_owned();
        let table = policy.parent()?;
        Table::all().find(|known| known.name() == name(table))?;
        let folder = table.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Some((folder, RunFolder { partition, run }))
    };
    found().map_or((path, None), |(folder, run)| (folder, Some(run)))
}

impl RunChoice<'_> {
    /// Returns the chosen run if it has no table of tasks. Errors: it is no results folder; there is no such run, or several.
    pub fn without_tasks(&self, path: &Path) -> Result<Option<RunWithoutTasks>> {
        let FoundRun { results, key: (policy, run), cell, .. } = self.find(path)?;
        if results.file(Table::Tasks, (policy, run))?.is_some() {
            return Ok(None);
        }
        Ok(Some(RunWithoutTasks { policy: results.contents.policies[policy].clone(), cell, run }))
    }

    /// Opens a run. Errors: it is no results folder; there is no such run, or several; the run has no table of tasks.
    pub(super) fn open(&self, path: &Path) -> Result<ChosenRun> {
        let FoundRun { results, key, notes, .. } = self.find(path)?;
        let Some(tasks) = results.file(Table::Tasks, key)? else {
            let problem = format!("the run has no table '{}', which a timeline is drawn from", Table::Tasks.name());
            return Err(Error::trace(&results.folder, 0, "", problem));
        };
        let end = results.part(Table::Runs, &["end_us"], key)?.map(|part| part.numbers("end_us")).transpose()?;
        let end = end.and_then(|values| values.first().copied().flatten()).unwrap_or(0.0);
        Ok(ChosenRun { results, key, tasks, end: Time(end as u64), delay: 0, notes })
    }

    /// Finds a complete run. Errors: it is no results folder; there is no such run, or several.
    fn find(&self, path: &Path) -> Result<FoundRun> {
        let (folder, of_run) = separate(path);
        let (results, cell) = self.results(folder)?;
        let policies = &results.contents.policies;
        let mut notes = Vec::new();
        let (policy, run) = match &of_run {
            Some(one) => {
                let policy = policies.iter().position(|policy| partition(policy) == one.partition);
                let policy = policy.ok_or_else(|| {
                    let problem = format!("no folder of a run: the policies are {}", list("", policies));
                    Error::trace(path, 0, "", problem)
                })?;
                (policy, one.run)
            }
            None => {
                let policy = self.policy(policies)?;
                (policy, self.run(&results, policy, &mut notes)?)
            }
        };
        let seed = results.contents.seeds.get(run).copied().flatten();
        let described =
            format!("policy {}{}", policies[policy], seed.map(|seed| format!(", seed {seed}")).unwrap_or_default());
        if !results.runs.contains(&(policy, run)) {
            let problem = format!("the run of {described} is not complete; run it: {}", results.contents.command);
            return Err(Error::trace(folder, 0, "", problem));
        }
        Ok(FoundRun { results, key: (policy, run), cell, notes })
    }

    /// Opens the results of a study without a sweep, or of one cell; also returns the name of the cell.
    fn results(&self, folder: &Path) -> Result<(Results, String)> {
        let Some(study) = StudyRecord::read(folder)? else {
            return match self.cell {
                Some(cell) => Err(Error::plan(
                    "--cell",
                    format!("'{cell}'"),
                    format!("no cell: {} is no sweep", folder.display()),
                )),
                None => Ok((Results::open(folder)?, String::new())),
            };
        };
        let names: Vec<String> = study.cells.into_iter().map(|(name, _)| name).collect();
        let cell = match (self.cell, &names[..]) {
            (None, [only]) => only,
            (Some(cell), _) if names.iter().any(|name| name == cell) => cell,
            (Some(cell), _) => return Err(Error::plan("--cell", format!("'{cell}'"), list(cell, &names))),
            (None, _) => {
                return Err(Error::plan("--cell", "none", format!("a cell of the sweep: {}", list("", &names))));
            }
        };
        let place = of_cell(folder, cell);
        check_links(folder, &place)?;
        Ok((Results::open(&place)?, cell.to_owned()))
    }

    fn policy(&self, policies: &[String]) -> Result<usize> {
        match (self.policy, policies) {
            (None, [_]) => Ok(0),
            (None, _) => {
                Err(Error::plan("--policy", "none", format!("a policy of the results: {}", list("", policies))))
            }
            (Some(policy), _) => policies
                .iter()
                .position(|name| name == policy)
                .ok_or_else(|| Error::plan("--policy", format!("'{policy}'"), list(policy, policies))),
        }
    }

    /// Returns the number of the run with the seed, or of the first complete run.
    fn run(&self, results: &Results, policy: usize, notes: &mut Vec<String>) -> Result<usize> {
        let seeds = &results.contents.seeds;
        if let Some(seed) = self.seed {
            let known: Vec<String> = seeds.iter().flatten().map(u64::to_string).collect();
            let expected = match known.is_empty() {
                true => "no seed: the runs are of a trace".to_owned(),
                false => format!("a seed of the results: {}", list("", &known)),
            };
            let found = seeds.iter().position(|one| *one == Some(seed));
            return found.ok_or_else(|| Error::plan("--seed", seed, expected));
        }
        let mut runs = results.runs.iter().filter(|(of, _)| *of == policy).map(|(_, run)| *run);
        let first = runs.next().unwrap_or(0);
        if let (Some(Some(seed)), true) = (seeds.get(first), runs.next().is_some()) {
            notes.push(format!("the timeline is of seed {seed}; --seed selects another run"));
        }
        Ok(first)
    }
}

/// Lists names, the nearest ones to `word` if there are many.
fn list(word: &str, names: &[String]) -> String {
    let names = || names.iter().map(String::as_str);
    alternatives(word, names(), "") + &did_you_mean(word, names())
}

impl ChosenRun {
    /// Returns the name of the policy.
    pub fn policy(&self) -> &str {
        &self.results.contents.policies[self.key.0]
    }

    /// Returns the named resource, or the one with the highest utilisation. Errors: the run has no resource of this name.
    pub fn resource(&self, name: Option<&str>) -> Result<Resource> {
        let dims = &self.results.dims;
        let at = match name {
            Some(name) => dims.iter().position(|dim| dim.name == name || dim.column() == name).ok_or_else(|| {
                let known: Vec<String> = dims.iter().map(|dim| dim.name.clone()).collect();
                Error::plan("--resource", format!("'{name}'"), list(name, &known))
            })?,
            None => self.most_used()?,
        };
        let dim = dims.get(at).cloned().ok_or_else(|| Error::trace(&self.results.folder, 0, "", "no resource"))?;
        Ok(Resource { column: format!("used_{}", dim.column()), dim, is_chosen: name.is_some() })
    }

    fn most_used(&self) -> Result<usize> {
        let columns: Vec<String> = self.results.dims.iter().map(|dim| format!("used_{}", dim.name)).collect();
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let Some(part) = self.results.part(Table::Runs, &names, self.key)? else { return Ok(0) };
        let mut best = (0, f64::NEG_INFINITY);
        for (at, column) in names.iter().enumerate() {
            let used = part.numbers(column)?.first().copied().flatten().unwrap_or(0.0);
            if used > best.1 {
                best = (at, used);
            }
        }
        Ok(best.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_run_is_recognised() {
        let (folder, run) = separate(Path::new("results/x/tasks/policy=slot%3A12/run=3/"));
        let run = run.expect("the folder of a run");
        assert_eq!((folder, run.partition.as_str(), run.run), (Path::new("results/x"), "slot%3A12", 3));
        assert_eq!(separate(Path::new("tasks/policy=drf/run=0")).0, Path::new("."));
        for other in ["results/x", "results/policy=a/run=0", "run=0", "x/tasks/policy=a/run=b", "x/y/policy=a/run=0"] {
            assert!(separate(Path::new(other)).1.is_none(), "{other}");
        }
    }
}
