//! A plan with accelerators and all cells of its sweep, and the identity of its runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::inputs::AcceleratorInputs;
use super::plan::{AcceleratorFile, AcceleratorSetup, check};
use crate::study::identity::{digest, run_id};
use crate::study::{Shard, Sources, SweepCell, SweptPlan, canonical, fixed_figures};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Node, Place};
use plimsoll_charts::paper::Paper;
use plimsoll_results::accelerators::AcceleratorSummary;
use plimsoll_results::folder::{check_name, of_cell};
use plimsoll_results::manifest::Experiment;
use plimsoll_results::provenance::{COMMIT, Provenance, VERSION};
use plimsoll_results::receipt::{self, ReceiptState};
use plimsoll_results::schema::{self, AcceleratorRunKey};
use plimsoll_store::table::Constant;

/// A validated plan with all cells of its sweep.
pub struct AcceleratorStudy {
    /// The name of the experiment, which is also the folder under `results/`.
    pub name: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The resolved plan as text, with the sweep as written. It is the identity of the study.
    pub text: String,
    /// The paper size of figures.
    pub paper: Paper,
    /// The plan's file.
    pub file: PathBuf,
    /// The `key=value` changes that were applied to the plan.
    pub set: Vec<String>,
    /// The columns of each axis, in the order of the sweep; an axis of keys that change together has several.
    pub axes: Vec<Vec<String>>,
    /// The cells; without a sweep, a single one with an empty name.
    pub cells: Vec<AcceleratorCell>,
    /// The files that the plan reads, by their names in the plan, with their digests.
    pub inputs: BTreeMap<String, String>,
    /// The plan without its sweep, and the changes of each cell, for messages.
    swept: SweptPlan,
}

/// One point of the sweep.
pub struct AcceleratorCell {
    /// The name; empty without a sweep.
    pub name: String,
    /// The column and the value of each key that is swept.
    pub axes: Vec<(String, Constant)>,
    /// The checked table `[accelerators]`.
    pub setup: AcceleratorSetup,
    /// The plan of the cell as text, without its tables about figures.
    pub text: String,
    /// The digest of the parts of the plan that its runs depend on.
    digest: String,
}

/// A run: the indices of its cell, its policy and its list of jobs, and its rate in thousandths of a job per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AcceleratorRunIndex {
    /// The cell.
    pub cell: usize,
    /// The policy.
    pub policy: usize,
    /// The index of the rate among those of the cell.
    pub rate_at: usize,
    /// The rate; `None` if the lists state arrivals.
    pub rate: Option<u64>,
    /// The list of jobs.
    pub run: usize,
}

/// A run of a study, for a list of them.
pub struct ListedAcceleratorRun {
    /// The run.
    pub index: AcceleratorRunIndex,
    /// The id, which is also the name of the receipt.
    pub id: String,
    /// Whether the results exist and are complete.
    pub there: bool,
}

impl AcceleratorStudy {
    /// Reads and validates a plan with its includes and all cells of its sweep, and its files. The changes `set` (`key=value`) are applied
    /// first. Paths are relative to the plan's folder.
    ///
    /// Errors: [`Error::Placed`] with line and column, and the errors of the files with their lines.
    pub fn read(text: &Place, set: &[String]) -> Result<AcceleratorStudy> {
        let file = text.file().to_owned();
        let mut swept = SweptPlan::read(text.clone(), set, "accelerators.rates=[2.8]")?;
        let figures = fixed_figures(&mut swept.tree)?;
        let inputs = AcceleratorInputs::new(file.parent().unwrap_or(Path::new("")));
        let cells = swept.each(|tree, cell, name| {
            let (about, read) = AcceleratorCell::read(tree, cell, &inputs)?;
            Ok((about, AcceleratorCell { name: name.to_owned(), axes: swept.axes_of(cell), ..read }))
        })?;
        let (name, question) = cells[0].0.clone();
        let appendix = figures.appendix();
        Ok(AcceleratorStudy {
            name,
            question,
            text: swept.text()? + &appendix,
            paper: figures.paper,
            file,
            set: set.to_vec(),
            axes: swept.columns(),
            cells: cells.into_iter().map(|(_, cell)| cell).collect(),
            inputs: inputs.into_digests()?,
            swept,
        })
    }

    /// Reads a plan without a sweep; returns its cell. Errors: as [`AcceleratorStudy::read`], and if the plan has a sweep.
    pub fn read_alone(text: &Place, set: &[String]) -> Result<AcceleratorCell> {
        let mut study = AcceleratorStudy::read(text, set)?;
        match study.cells.pop() {
            Some(cell) if cell.name.is_empty() => Ok(cell),
            _ => Err(Error::plan("sweep", "a table", "a plan without a sweep here")),
        }
    }

    /// Returns whether a text is a plan with a table `[accelerators]`, which may be in a plan that it includes.
    pub fn is_plan(text: &Place) -> bool {
        Sources::have_table(text, "accelerators")
    }

    /// Returns all runs by cell, policy, rate and list of jobs.
    pub fn runs(&self) -> Vec<AcceleratorRunIndex> {
        let mut runs = Vec::new();
        for (at, cell) in self.cells.iter().enumerate() {
            for policy in 0..cell.setup.policies.len() {
                for (rate_at, rate) in cell.setup.each_rate().into_iter().enumerate() {
                    let lists = 0..cell.setup.runs();
                    runs.extend(lists.map(|run| AcceleratorRunIndex { cell: at, policy, rate_at, rate, run }));
                }
            }
        }
        runs
    }

    /// Returns the runs of a shard, or all.
    pub fn runs_of(&self, shard: Option<Shard>) -> Vec<AcceleratorRunIndex> {
        let mut runs = self.runs();
        if let Some(shard) = shard {
            let ids: Vec<String> = runs.iter().map(|&run| self.id(run)).collect();
            let mut own = shard.own(&ids.iter().map(String::as_str).collect::<Vec<_>>()).into_iter();
            runs.retain(|_| own.next().unwrap_or(false));
        }
        runs
    }

    /// Returns the identity of a run within its cell.
    pub fn key(&self, index: AcceleratorRunIndex) -> AcceleratorRunKey {
        let policy = self.cells[index.cell].setup.policies[index.policy].name.to_owned();
        let jobs_per_hour = index.rate.map(|rate| rate as f64 / 1000.0);
        AcceleratorRunKey { policy, jobs_per_hour, run: index.run as u64 }
    }

    /// Returns the id of a run: 16 hexadecimal digits of the digest of version, commit, schema, resolved cell, contents of the throughput
    /// table and of the list of jobs, policy, rate and number of the list.
    pub fn id(&self, index: AcceleratorRunIndex) -> String {
        let cell = &self.cells[index.cell];
        let (table, lists) = &cell.setup.inputs;
        let rate = index.rate.map(|rate| rate.to_string()).unwrap_or_default();
        run_id(&[
            "plimsoll accelerators 1".to_owned(),
            VERSION.to_owned(),
            COMMIT.unwrap_or_default().to_owned(),
            schema::VERSION.to_string(),
            cell.digest.clone(),
            table.digest.clone(),
            lists[index.run].digest.clone(),
            cell.setup.policies[index.policy].name.to_owned(),
            rate,
            index.run.to_string(),
        ])
    }

    /// Returns a run of a folder if it is complete.
    pub fn find(&self, folder: &Path, index: AcceleratorRunIndex) -> ReceiptState<AcceleratorSummary> {
        match receipt::find::<AcceleratorSummary>(&self.place(folder, index.cell), &self.id(index)) {
            ReceiptState::Whole(receipt) if !receipt.is_of_accelerators(&self.key(index)) => {
                ReceiptState::Broken("its receipt belongs to another run".to_owned())
            }
            found => found,
        }
    }

    /// Lists the runs of a shard, or all, with their state in a folder.
    pub fn listed(&self, folder: Option<&Path>, shard: Option<Shard>) -> Vec<ListedAcceleratorRun> {
        let listed = |index: AcceleratorRunIndex| {
            let there = folder.is_some_and(|folder| matches!(self.find(folder, index), ReceiptState::Whole(_)));
            ListedAcceleratorRun { index, id: self.id(index), there }
        };
        self.runs_of(shard).into_iter().map(listed).collect()
    }

    /// Returns the folder of a cell's results.
    pub fn place(&self, folder: &Path, cell: usize) -> PathBuf {
        of_cell(folder, &self.cells[cell].name)
    }

    /// Returns the name of a run for messages.
    pub fn label(&self, index: AcceleratorRunIndex) -> String {
        let (cell, key) = (&self.cells[index.cell].name, self.key(index));
        let cell = if cell.is_empty() { String::new() } else { format!("{cell}, ") };
        let rate = key.jobs_per_hour.map(|rate| format!(" at {rate} jobs/h")).unwrap_or_default();
        format!("{cell}{}{rate} run {}", key.policy, key.run)
    }

    /// Adds the location of the key in the plan to an error that was found when a cell was run.
    pub fn located(&self, cell: usize, error: Error) -> Error {
        let error = match error {
            Error::Plan { .. } => error.under("accelerators"),
            other => other,
        };
        let change = &self.swept.cells[cell];
        let Ok(tree) = change.resolve(&self.swept.tree) else { return error };
        change.named(change.located(&tree, error), &self.cells[cell].name)
    }

    /// Returns the description of the results in the manifest.
    pub fn about(&self) -> Experiment {
        let (name, question, plan) = (self.name.clone(), self.question.clone(), self.text.clone());
        Experiment { name, question, plan, inputs: self.inputs.clone(), command: None }
    }

    /// Returns the provenance of files from all runs.
    pub fn provenance(&self) -> Provenance {
        provenance(&self.text, self.inputs.iter())
    }

    /// Returns the provenance of a file from one run: the plan of its cell, and the files that the run reads.
    pub fn provenance_of(&self, index: AcceleratorRunIndex) -> Provenance {
        let cell = &self.cells[index.cell];
        let (table, lists) = &cell.setup.inputs;
        let inputs: BTreeMap<&String, &String> =
            [table, &lists[index.run]].into_iter().map(|input| (&input.name, &input.digest)).collect();
        provenance(&cell.text, inputs.into_iter())
    }
}

fn provenance<'a>(plan: &str, inputs: impl Iterator<Item = (&'a String, &'a String)>) -> Provenance {
    let inputs: Vec<String> = inputs.map(|(name, digest)| format!("{name} {digest}")).collect();
    Provenance::of_plan(plan).with("inputs_blake3", inputs.join("; "))
}

/// The name and the question of a plan.
type PlanName = (String, Option<String>);

impl AcceleratorCell {
    /// Returns the first columns of every table: the cell's name and the axes. The list is empty without a sweep.
    pub fn columns(&self) -> Vec<(String, Constant)> {
        let cell = (!self.name.is_empty()).then(|| ("cell".to_owned(), Constant::Text(self.name.clone())));
        cell.into_iter().chain(self.axes.iter().cloned()).collect()
    }

    /// Reads the resolved plan of a cell. Errors: as [`AcceleratorStudy::read`].
    fn read(tree: &Node, cell: &SweepCell, inputs: &AcceleratorInputs) -> Result<(PlanName, AcceleratorCell)> {
        let located = |error| cell.located(tree, error);
        let file: AcceleratorFile = tree.read()?;
        check_name(&file.name).map_err(located)?;
        let setup = check(file.accelerators, inputs).map_err(located)?;
        let plain = tree.plain_table()?;
        let text = canonical(&plain)?;
        let mut own = plain;
        if let Some(toml::Value::Table(section)) = own.get_mut("accelerators") {
            // The policy and the rate of a run are separate parts of its id.
            ["policies", "rates"].iter().for_each(|key| drop(section.remove(*key)));
        }
        let (name, axes, digest) = (String::new(), Vec::new(), digest(own)?);
        Ok(((file.name, file.question), AcceleratorCell { name, axes, setup, text, digest }))
    }
}
