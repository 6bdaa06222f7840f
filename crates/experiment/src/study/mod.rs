//! A study: a plan with its sweep, which consists of cells. Each cell is a plan without a sweep.
//!
//! [`Study::read`] merges the included plans, applies the changes of the command line, separates the sweep, the figures and the batch
//! options, and validates the plan of every cell in parallel. It does not read the rows of a trace. Errors have the file, line and column
//! of the value. Errors that occur later, when a cell is run, get this location by [`Study::located`].

mod batch;
pub mod folder;
pub mod identity;
mod plain;
mod shard;
mod source;
mod sweep;
mod swept;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::observe::StudyRun;
use super::plan::{Plan, PlanFile};
use super::workload::WorkloadPlan;
pub use batch::SlurmOptions;
use identity::Digests;
pub use identity::digest;
pub use plain::Plain;
pub(crate) use plain::fixed_figures;
use plimsoll_base::document::Document;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::settings::SettingOrigin;
use plimsoll_base::tree::{Node, Place, steps};
use plimsoll_figures::requests::{self, Requests, Scope};
use plimsoll_policies::Registry;
use plimsoll_results::folder::of_cell;
use plimsoll_results::receipt::{Receipt, ReceiptState};
use plimsoll_results::schema::Table;
use plimsoll_results::shell;
use plimsoll_store::table::Constant;
pub use shard::Shard;
pub(crate) use source::Sources;
use sweep::SWEEP;
pub(crate) use sweep::SweepCell;
pub(crate) use swept::SweptPlan;

/// A validated plan with all cells of its sweep.
#[derive(Clone)]
pub struct Study {
    /// The name of the experiment, which is also the folder under `results/`.
    pub name: String,
    /// The text of the resolved plan, with the sweep as written. It is the identity of the study.
    pub text: String,
    /// The columns of the axes, in the order of the sweep; empty without a sweep.
    pub columns: Vec<String>,
    /// The resources and options of a batch job; they do not affect the simulation.
    pub batch: SlurmOptions,
    /// The requested figures; they do not affect the simulation.
    pub figures: Requests,
    /// The plans of the cells, in the order of the sweep; without a sweep, a single plan with an empty cell name.
    pub cells: Vec<Plan>,
    /// The files that the study reads.
    pub(crate) files: Arc<Digests>,
    /// The `key=value` changes that were applied to the plan.
    pub set: Vec<String>,
    /// The plan without its sweep, and the changes of each cell, for messages.
    origin: Option<(Node, Vec<SweepCell>)>,
}

impl Study {
    /// Reads and validates a plan with its includes and all cells of its sweep; `set` has `key=value` changes that are applied first.
    ///
    /// Paths in the plan are relative to its folder. Errors: [`Error::Placed`] with line and column, the key, and the accepted values.
    pub fn read(path: &Path, set: &[String], registry: &Registry) -> Result<Study> {
        Study::from_text(Document::File(path.to_owned()).read()?, set, registry)
    }

    /// Reads and validates a plan from its text. Paths in it are relative to the folder of the text's name. Errors: as [`Study::read`].
    pub fn from_text(text: Place, set: &[String], registry: &Registry) -> Result<Study> {
        let path = text.file().to_owned();
        let mut swept = SweptPlan::read(text, set, "workload.load=0.7")?;
        let batch = SlurmOptions::extract(&mut swept.tree)?;
        let mut figures = requests::split(&mut swept.tree);
        let plans = swept.each(|tree, cell, name| {
            let plan = read(tree, cell, &path, registry)?;
            Ok(Plan { axes: swept.axes_of(cell), cell: name.to_owned(), ..plan })
        })?;
        let text = swept.text()?;
        let columns = plans[0].axes.iter().map(|(name, _)| name.clone()).collect();
        let figures = Requests::extract(&mut figures, &scope(&plans))?;
        let (name, set) = (plans[0].name.clone(), set.to_vec());
        let files = Arc::new(Digests::of_plans(&plans));
        let origin = Some((swept.tree, swept.cells));
        Ok(Study { name, text, columns, batch, figures, cells: plans, files, set, origin })
    }

    /// Creates a study of one plan.
    pub fn from_plan(plan: Plan) -> Study {
        let (name, text) = (plan.name.clone(), plan.text.clone());
        let (batch, figures) = (SlurmOptions::default(), Requests::default());
        let (columns, cells, set) = (Vec::new(), vec![plan], Vec::new());
        let files = Arc::new(Digests::of_plans(&cells));
        Study { name, text, columns, batch, figures, cells, files, set, origin: None }
    }

    /// Returns the study of a single run, which writes these tables.
    pub fn single(&self, run: StudyRun, tables: &[Table]) -> Study {
        let plan = &self.cells[run.cell];
        let (seeds, policies) = (vec![plan.seeds[run.run]], vec![plan.policies[run.policy].clone()]);
        let plan = Plan { seeds, policies, precision: None, tables: tables.to_vec(), ..plan.clone() };
        let origin = self.origin.as_ref().map(|(tree, cells)| (tree.clone(), vec![cells[run.cell].clone()]));
        Study { cells: vec![plan], origin, ..self.clone() }
    }

    /// Adds the location of the key in the plan to an error that was found when a cell was run. Such errors may concern a file that the
    /// plan names, a policy, or requirements of the workload that the cluster does not fulfil.
    pub fn located(&self, cell: usize, error: Error) -> Error {
        let Some((tree, cells)) = &self.origin else { return error };
        let (plan, cell) = (&self.cells[cell], &cells[cell]);
        let Ok(tree) = cell.resolve(tree) else { return error };
        let about = |key: &str, problem: String| cell.place(&tree, &steps(key)).wrong("", problem);
        let error = match error {
            Error::Io { ref path, .. } => match plan.key_of(path) {
                Some(key) => error.of_key(key),
                None => error,
            },
            Error::Plan { ref key, .. } if key == "devices" => error.under("cluster.devices"),
            Error::Policy { ref policy, ref value, ref expected } => {
                let head = |name: &str| name.split([':', '/']).next().map(str::to_owned);
                match plan.policies.iter().position(|one| head(&one.name) == head(policy)) {
                    Some(at) => {
                        let name = format!("'{}'", plan.policies[at].name);
                        Error::plan("policies", name, format!("{expected}, not {value}")).item(at)
                    }
                    None => error,
                }
            }
            // This error means that the policy has a fixed list of users.
            Error::Plan { ref key, .. } if key == "user" => about("policies", error.to_string()),
            // The message refers to the cluster, because the workload is considered as given.
            Error::Mismatch { ref problem } => about("cluster", format!("cluster: {problem}")),
            other => other,
        };
        cell.named(cell.located(&tree, error), &plan.cell)
    }

    /// Adds the location of the file's key to an error about an input file of a cell.
    pub(crate) fn located_input(&self, cell: usize, error: Error) -> Error {
        if matches!(error, Error::Mismatch { .. }) { error } else { self.located(cell, error) }
    }

    /// Returns the file of the plan, if it was read from a file.
    pub fn file(&self) -> Option<&Path> {
        self.origin.as_ref().map(|(tree, _)| tree.place.file())
    }

    /// Returns whether the study has a sweep.
    pub fn is_swept(&self) -> bool {
        !self.columns.is_empty()
    }
}

impl Plan {
    /// Returns the resources that slow machines down when over-committed. It is memory if the plan has a `slowdown`, and none otherwise.
    pub fn slowdown_resources(&self) -> Vec<String> {
        let slows = self.options.slowdown.is_some_and(|curve| curve.slows());
        slows.then(|| "memory".to_owned()).into_iter().collect()
    }

    /// Returns the key that names a file.
    fn key_of(&self, path: &Path) -> Option<&'static str> {
        let trace = matches!(self.workload.base(), WorkloadPlan::Trace { path: trace, .. } if trace == path);
        let role = identity::inputs(self).into_iter().find(|(_, input)| *input == path).map(|(role, _)| role);
        // The trace is considered separately, because a trace that does not exist is not listed among the inputs.
        role.or(trace.then_some(identity::Role::Trace)).map(identity::Role::key)
    }

    /// Reads a plan without a sweep. Errors: as [`Study::read`], and if the plan has a sweep.
    pub fn read(path: &Path, set: &[String], registry: &Registry) -> Result<Plan> {
        let mut study = Study::read(path, set, registry)?;
        match study.cells.pop() {
            Some(plan) if plan.cell.is_empty() => Ok(plan),
            _ => Err(Error::plan(SWEEP, "a table", "a plan without a sweep here")),
        }
    }
}

/// Returns the axes, policies, resources and tables that the results of these cells will have.
fn scope(plans: &[Plan]) -> Scope {
    let first = &plans[0];
    let mut scope = Scope { tables: first.tables.clone(), ..Scope::default() };
    scope.policies = first.policies.iter().map(|policy| policy.name.clone()).collect();
    scope.own = first.metrics.iter().map(|metric| metric.column.clone()).collect();
    scope.axes = first.axes.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
    let mut met = vec![HashSet::new(); scope.axes.len()];
    for plan in plans {
        for ((axis, met), (_, value)) in scope.axes.iter_mut().zip(&mut met).zip(&plan.axes) {
            let value = shown(value);
            if met.insert(value.clone()) {
                axis.1.push(value);
            }
        }
        for (dim, _) in plan.cluster.groups.iter().flat_map(|group| &group.capacity) {
            if !scope.dims.contains(dim) {
                scope.dims.push(dim.clone());
            }
        }
    }
    scope
}

/// Formats a plan in a canonical order of keys.
pub(crate) fn canonical(plan: &toml::Table) -> Result<String> {
    toml::to_string(plan).map_err(|error| Error::plan("plan", "its text", error.to_string()))
}

/// Reads the plan of a cell from the resolved `tree`.
fn read(tree: &Node, cell: &SweepCell, path: &Path, registry: &Registry) -> Result<Plan> {
    let plain = tree.plain_table()?;
    let (text, digest) = (canonical(&plain)?, digest(plain)?);
    let folder = path.parent().unwrap_or(Path::new(""));
    let located = |error| cell.located(tree, error);
    let file = PlanFile::read(tree, folder, registry).map_err(located)?;
    // The command omits the plan's location and the changes on the command line, because they differ between two ways to run the same
    // plan. They are in run.json.
    let command = shell::line(["plimsoll", "run", &format!("{}.toml", file.name)]);
    let plan = Plan::check(file, folder, registry, SettingOrigin::InPlan).map_err(located)?;
    Ok(Plan { text, digest, command, ..plan })
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    /// The id, which is also the name of the receipt.
    pub id: String,
    /// The index of the cell.
    pub cell: usize,
    /// The policy.
    pub policy: String,
    /// The index of the policy in the plan.
    pub policy_at: usize,
    /// The number of the run among those of the policy.
    pub run: usize,
    /// The seed; `None` for a trace.
    pub seed: Option<u64>,
    /// Whether the results exist and are complete.
    pub there: bool,
}

/// Lists all runs that a study can have, or those of a shard, by cell. Errors: a file that the plan names cannot be read, or the folder has
/// results of another plan.
pub fn listed(study: &Study, folder: Option<&Path>, shard: Option<Shard>) -> Result<Vec<ListedRun>> {
    if let Some(folder) = folder {
        folder::check(study, folder)?;
    }
    let mut runs = Vec::new();
    for (cell, plan) in study.cells.iter().enumerate() {
        let place = folder.map(|folder| of_cell(folder, &plan.cell)).filter(|place| place.exists());
        let ids = identity::ids(plan, &study.files).map_err(|error| study.located(cell, error))?;
        for (policy_at, ids) in ids.into_iter().enumerate() {
            for (run, id) in ids.into_iter().enumerate() {
                let policy = &plan.policies[policy_at].name;
                let found = place.as_ref().map(|place| Receipt::find(place, &id));
                runs.push(ListedRun {
                    id,
                    cell,
                    policy: policy.clone(),
                    policy_at,
                    run,
                    seed: plan.workload.is_seeded().then_some(plan.seeds[run]),
                    there: matches!(found, Some(ReceiptState::Whole(found)) if found.is_of(policy, run as u64)),
                });
            }
        }
    }
    if let Some(shard) = shard {
        let own = shard.own(&runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>());
        let mut own = own.into_iter();
        runs.retain(|_| own.next().unwrap_or(false));
    }
    Ok(runs)
}

/// Formats the value of an axis for tables and messages.
pub fn shown(constant: &Constant) -> String {
    match constant {
        Constant::Int(value) => value.to_string(),
        Constant::NoInt => String::new(),
        Constant::Float(value) => value.to_string(),
        Constant::Text(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests;
