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

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::changes::{parse_change, put_at};
use super::observe::StudyRun;
use super::plan::{Plan, PlanFile};
use super::workload::WorkloadPlan;
pub use batch::SlurmOptions;
use identity::Digests;
pub use identity::digest;
pub use plain::Plain;
use plimsoll_base::document::Document;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::settings::SettingOrigin;
use plimsoll_base::tree::{Entry, Node, PathStep, Place, Value, path_of, steps};
use plimsoll_figures::requests::{self, Requests, Scope};
use plimsoll_policies::Registry;
use plimsoll_results::folder::of_cell;
use plimsoll_results::receipt::{Receipt, ReceiptState};
use plimsoll_results::schema::Table;
use plimsoll_results::shell;
use plimsoll_store::table::Constant;
pub use shard::Shard;
use source::Sources;
use sweep::{SWEEP, Sweep, SweepCell, column, constant};

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

/// The number of cells that are read at a time.
const TOGETHER: usize = 256;

/// The maximum length of a cell's name, which is also a folder's name.
const NAME: usize = 100;

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
        let (sources, mut tree) = Sources::read(text)?;
        let mut swept = tree.take_entry(SWEEP);
        let mut sweep = swept.as_ref().map_or(Ok(Sweep::default()), |swept| Sweep::read(swept, &sources))?;
        for change in set {
            let (key, value) = parse_change(change, "workload.load=0.7")?;
            match &mut swept {
                Some(swept) if sweep.replace(&key, &value)? => {
                    swept.node.remove(&steps(&key));
                    let place = value.place.clone();
                    let list = if value.list().is_some() { value.value } else { Value::List(vec![value]) };
                    swept.node.insert(Entry { key, place: place.clone(), node: Node { place, value: list } });
                }
                _ => put_at(&mut tree, &key, value)?,
            }
        }
        let batch = SlurmOptions::extract(&mut tree)?;
        let mut figures = requests::split(&mut tree);
        let cells = sweep.cells();
        if let (true, Some(swept)) = (cells.is_empty(), &swept) {
            return Err(swept.place.wrong(SWEEP, "everything is excluded"));
        }
        let names = names(&cells);
        let kinds = sweep.kinds();
        let plan = |(cell, name): (&SweepCell, &String)| {
            let plan = cell.resolve(&tree).and_then(|tree| read(&tree, cell, &path, registry));
            let plan = plan.map_err(|error| cell.named(error, name))?;
            let axes = cell.values.iter().map(|(name, value)| (column(name), constant(kinds[name], value)));
            Ok(Plan { axes: axes.collect(), cell: name.clone(), ..plan })
        };
        let mut plans: Vec<Plan> = Vec::with_capacity(cells.len());
        for (cells, names) in cells.chunks(TOGETHER).zip(names.chunks(TOGETHER)) {
            // Cells are read in chunks, so that an error in the first cell is reported soon. The reported error is always that of the
            // first cell with an error.
            let read: Vec<Result<Plan>> = cells.par_iter().zip(names).map(plan).collect();
            for plan in read {
                plans.push(plan?);
            }
        }
        let text = match (&plans[..], swept) {
            ([only], _) if only.cell.is_empty() => only.text.clone(),
            (_, swept) => {
                let mut whole = tree.plain_table()?;
                if let Some(swept) = swept {
                    whole.insert(swept.key, swept.node.plain()?);
                }
                canonical(&whole)?
            }
        };
        let columns = plans[0].axes.iter().map(|(name, _)| name.clone()).collect();
        let figures = Requests::extract(&mut figures, &scope(&plans))?;
        let (name, set) = (plans[0].name.clone(), set.to_vec());
        let files = Arc::new(Digests::of_plans(&plans));
        Ok(Study { name, text, columns, batch, figures, cells: plans, files, set, origin: Some((tree, cells)) })
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
fn canonical(plan: &toml::Table) -> Result<String> {
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

impl SweepCell {
    /// Applies the changes of this cell to the plan.
    fn resolve(&self, tree: &Node) -> Result<Node> {
        let mut tree = tree.clone();
        for (key, place, node) in &self.changes {
            tree.insert_at(&steps(key), node.clone())
                .map_err(|expected| place.wrong("", Error::plan(SWEEP, format!("'{key}'"), expected)))?;
        }
        Ok(tree)
    }

    /// Returns the location of a path in the plan of this cell; if the cell has a single change at or below this path, the location of the
    /// change.
    fn place(&self, tree: &Node, path: &[PathStep]) -> Place {
        let mut below = self.changes.iter().filter(|(key, ..)| steps(key).starts_with(path));
        match (below.next(), below.next()) {
            (Some((.., node)), None) => node.place.clone(),
            _ => tree.place_of(path),
        }
    }

    /// Adds the location of the error's key to an error.
    fn located(&self, tree: &Node, error: Error) -> Error {
        match path_of(&error) {
            Some(path) => self.place(tree, &path).wrong("", error),
            None => error,
        }
    }

    /// Adds the name of the cell to an error about the changes of the cell.
    fn named(&self, error: Error, name: &str) -> Error {
        match error {
            Error::Placed { place, problem } if self.changes.iter().any(|(.., node)| node.place.covers(&place)) => {
                Error::Placed { place, problem: format!("{problem} (in the cell {name})") }
            }
            other => other,
        }
    }
}

/// Returns the names of cells, which consist of the last words of keys with their values: `load-0.7,machines-100x16c32g`.
fn names(cells: &[SweepCell]) -> Vec<String> {
    let last = |column: &str| match steps(column).pop() {
        Some(PathStep::Key(word)) => word,
        _ => column.to_owned(),
    };
    let columns: Vec<&str> =
        cells.iter().take(1).flat_map(|cell| &cell.values).map(|(name, _)| name.as_str()).collect();
    let short = |name: &str| {
        let alone = columns.iter().filter(|other| last(other) == last(name)).count() == 1;
        if alone { last(name) } else { name.to_owned() }
    };
    let word = |(name, value): &(String, toml::Value)| match value {
        toml::Value::String(text) if name == "variant" => text.clone(),
        toml::Value::String(text) => format!("{}-{text}", short(name)),
        value => format!("{}-{value}", short(name)),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-:,".contains(c) { c } else { '-' };
    let one = |cell: &SweepCell| {
        let words: Vec<String> = cell.values.iter().map(word).collect();
        words.join(",").chars().map(plain).collect::<String>()
    };
    let names: Vec<String> = cells.iter().map(one).collect();
    let mut many: HashMap<&String, usize> = HashMap::new();
    names.iter().for_each(|name| *many.entry(name).or_default() += 1);
    let clear = |name: &String| name.len() <= NAME && many[name] == 1;
    // Names that are too long or not unique end with a part of a digest.
    let named = |(name, cell): (&String, &SweepCell)| {
        if clear(name) {
            return name.clone();
        }
        let all: Vec<String> = cell.values.iter().map(|(column, value)| format!("{column}={value}")).collect();
        let digest = blake3::hash(all.join("\n").as_bytes()).to_hex();
        format!("{},{}", name.chars().take(NAME - 9).collect::<String>(), &digest[..8])
    };
    names.iter().zip(cells).map(named).collect()
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
