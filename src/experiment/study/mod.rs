//! A study: a plan with everything that it sweeps over, as cells that are plans without a sweep.

mod batch;
pub mod folder;
pub mod identity;
mod place;
mod plain;
pub(super) mod receipt;
mod shard;
mod source;
mod sweep;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Deserialize;

use super::changes::parse_change;
use super::plan::{Plan, PlanFile, WorkloadPlan};
use crate::error::{Error, Result};
use crate::output::requests::{self, Requests, Scope};
use crate::output::shell;
use crate::output::table::Constant;
use crate::policy::{QuotaFile, Registry};
pub use batch::Batch;
use identity::Digests;
pub use identity::digest;
pub use place::put_at;
use place::{Step, steps};
pub use plain::Plain;
pub use shard::Shard;
use source::Culprit;
pub use source::{Sources, hinted};
use sweep::{Cell, SWEEP, Sweep, column, constant};

/// A plan, checked, with all cells of its sweep.
#[derive(Clone)]
pub struct Study {
    /// The experiment's name: the folder under `results/`.
    pub name: String,
    /// The plan as text, put together but not swept: what tells one study from another.
    pub text: String,
    /// The columns of the axes, in the order of the sweep; none without a sweep.
    pub columns: Vec<String>,
    /// The resources and options of a job on a cluster of computers; no part of what is simulated.
    pub batch: Batch,
    /// The figures that are asked for; no part of what is simulated.
    pub figures: Requests,
    /// The plans, in the order of the sweep; one without a name if there is no sweep.
    pub cells: Vec<Plan>,
    /// The files that it reads.
    pub(in crate::experiment) files: Arc<Digests>,
    /// The changes that were made to it.
    pub set: Vec<String>,
    /// Where it was read, and what each cell changes: for messages.
    origin: Option<(Sources, Vec<Cell>)>,
}

/// So many cells are read at a time.
const TOGETHER: usize = 256;

/// More characters than this are no good name of a folder.
const NAME: usize = 100;

impl Study {
    /// Reads a plan and checks it, with all that it includes and all cells of its sweep; `set` are `key=value` changes
    /// made to it first.
    ///
    /// Paths in it are relative to its folder. Errors: [`Error::PlanSyntax`] with line and column, the key, and what
    /// would be accepted.
    pub fn read(path: &Path, set: &[String], registry: &Registry) -> Result<Study> {
        let (mut sources, mut table) = Sources::read(path)?;
        let swept = match table.remove(SWEEP) {
            None => toml::Table::new(),
            Some(toml::Value::Table(swept)) => swept,
            Some(_) => return Err(sources.at_value(&steps(SWEEP), "sweep: expected a table [sweep]")),
        };
        let mut sweep = Sweep::read(swept.clone(), &sources)?;
        let mut swept = swept;
        for change in set {
            let (key, value) = parse_change(change, "workload.load=0.7")?;
            sources.changed(change, &key, &value);
            match sweep.replace(&key, &value)? {
                false => put_at(&mut table, &key, value, "--set")?,
                true => {
                    place::take(&mut swept, &steps(&key));
                    let list = if value.is_array() { value } else { toml::Value::Array(vec![value]) };
                    swept.insert(key, list);
                }
            }
        }
        let batch = Batch::read(table.remove(batch::BATCH), &sources)?;
        let mut said = toml::Table::new();
        for key in requests::KEYS {
            said.extend(table.remove(key).map(|value| (key.to_owned(), value)));
        }
        let reader = Reader { sources: &sources, changed: !set.is_empty(), registry };
        let cells = sweep.cells();
        if cells.is_empty() {
            return Err(sources.at_key(&steps(SWEEP), "sweep: everything is excluded"));
        }
        let names = names(&cells);
        let kinds = sweep.kinds();
        let plan = |(cell, name): (&Cell, &String)| {
            let mut resolved = table.clone();
            for (key, value, at) in &cell.changes {
                put_at(&mut resolved, key, value.clone(), "sweep")
                    .map_err(|error| sources.at_key(at, &error.to_string()))?;
            }
            let plan = reader.plan(resolved, cell, name)?;
            let axes = cell.values.iter().map(|(name, value)| (column(name), constant(kinds[name], value)));
            Ok(Plan { axes: axes.collect(), cell: name.clone(), ..plan })
        };
        let mut plans: Vec<Plan> = Vec::with_capacity(cells.len());
        for (cells, names) in cells.chunks(TOGETHER).zip(names.chunks(TOGETHER)) {
            // Of some cells at a time, so that an error of the first one is told at once, and always the same one.
            let read: Vec<Result<Plan>> = cells.par_iter().zip(names).map(plan).collect();
            for plan in read {
                plans.push(plan?);
            }
        }
        let text = match &plans[..] {
            [only] if only.cell.is_empty() => only.text.clone(),
            _ => {
                table.insert(SWEEP.to_owned(), toml::Value::Table(swept));
                canonical(&table, path)?
            }
        };
        let columns = plans[0].axes.iter().map(|(name, _)| name.clone()).collect();
        let figures = Requests::take(&mut said, &scope(&plans)).map_err(|error| sources.located(error))?;
        let (name, set) = (plans[0].name.clone(), set.to_vec());
        let files = Arc::new(Digests::of_plans(&plans));
        Ok(Study { name, text, columns, batch, figures, cells: plans, files, set, origin: Some((sources, cells)) })
    }

    /// A study of one plan.
    pub fn of(plan: Plan) -> Study {
        let (name, text) = (plan.name.clone(), plan.text.clone());
        let (batch, figures) = (Batch::default(), Requests::default());
        let (columns, cells, set) = (Vec::new(), vec![plan], Vec::new());
        let files = Arc::new(Digests::of_plans(&cells));
        Study { name, text, columns, batch, figures, cells, files, set, origin: None }
    }

    /// Gives an error about a key, found when a cell was run, the place of that key in the plan; also one about a file that
    /// the plan names, or about what the workload asks of the cluster.
    pub fn located(&self, cell: usize, error: Error) -> Error {
        let Some((sources, cells)) = &self.origin else { return error };
        let plan = &self.cells[cell];
        let error = match error {
            Error::Io { ref path, .. } => match plan.key_of(path) {
                Some(key) => error.of_key(key),
                None => error,
            },
            Error::Plan { ref key, .. } if key == "devices" => error.under("cluster.devices"),
            Error::Plan { ref key, .. } if key.starts_with("policy ") => {
                let policy = key.trim_start_matches("policy ").to_owned();
                let of = |one: &&crate::policy::NamedPolicy| one.name.split(':').next() == Some(&policy);
                let found = plan.policies.iter().find(of).map(|one| one.name.clone());
                match (found, error) {
                    (Some(name), Error::Plan { value, expected, .. }) => {
                        Error::plan("policies", format!("'{name}'"), format!("{expected}, not {value}"))
                    }
                    (_, error) => error,
                }
            }
            // A policy that knows all its users.
            Error::Plan { ref key, .. } if key == "user" => {
                return sources.at_value(&steps("policies"), &in_cell(error.to_string(), &plan.cell));
            }
            // The workload is as it is: it is the cluster that does not go with it.
            Error::Mismatch { ref problem } => {
                let (path, message) = (steps("cluster"), in_cell(format!("cluster: {problem}"), &plan.cell));
                return sources.at_value(origin(&cells[cell], &path).unwrap_or(&path), &message);
            }
            other => other,
        };
        placed(sources, error, &cells[cell], &plan.cell)
    }

    /// The file that it was read from, if it was.
    pub fn file(&self) -> Option<&Path> {
        self.origin.as_ref().map(|(sources, _)| sources.main().0)
    }

    /// Whether it has a sweep.
    pub fn is_swept(&self) -> bool {
        !self.columns.is_empty()
    }
}

impl Plan {
    /// The key that names a file.
    fn key_of(&self, path: &Path) -> Option<&'static str> {
        let trace = matches!(&self.workload, WorkloadPlan::Trace { path: trace, .. } if trace == path);
        let role = identity::inputs(self).into_iter().find(|(_, input)| *input == path).map(|(role, _)| role);
        // A trace that is not there is no input yet.
        role.or(trace.then_some(identity::Role::Trace)).map(identity::Role::key)
    }

    /// Reads a plan without a sweep. Errors: as [`Study::read`], and for a sweep.
    pub fn read(path: &Path, set: &[String], registry: &Registry) -> Result<Plan> {
        let mut study = Study::read(path, set, registry)?;
        match study.cells.pop() {
            Some(plan) if plan.cell.is_empty() => Ok(plan),
            _ => Err(Error::plan(SWEEP, "a table", "a plan without a sweep here")),
        }
    }
}

/// The axes, policies, resources and tables that the results of these cells will have.
fn scope(plans: &[Plan]) -> Scope {
    let first = &plans[0];
    let mut scope = Scope { tables: first.tables.clone(), ..Scope::default() };
    scope.policies = first.policies.iter().map(|policy| policy.name.clone()).collect();
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

fn canonical(table: &toml::Table, path: &Path) -> Result<String> {
    toml::to_string(table).map_err(|error| Error::plan("plan", path.display(), error.to_string()))
}

/// The context that all cells are read with.
struct Reader<'a> {
    sources: &'a Sources,
    changed: bool,
    registry: &'a Registry,
}

impl Reader<'_> {
    /// The plan of a cell.
    fn plan(&self, table: toml::Table, cell: &Cell, name: &str) -> Result<Plan> {
        let (path, own) = self.sources.main();
        let text = canonical(&table, path)?;
        let placed = |error: Error| placed(self.sources, error, cell, name);
        let (has_quotas, digest) = (table.contains_key("quota"), identity::digest(&table)?);
        // The table knows no places; an error is found again in the text.
        let file = match PlanFile::deserialize(table) {
            Ok(file) => file,
            Err(_) => toml::from_str(&text).map_err(|error| self.parsed(&text, &error, cell, name))?,
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        // Lines are those of the file while it is the whole plan, else those of the plan that it makes.
        let quotas = if !has_quotas {
            Vec::new()
        } else if self.sources.is_single() && !self.changed && cell.changes.is_empty() {
            QuotaFile::in_plan(path, own, folder)?
        } else {
            let how = if self.changed { "with --set" } else { "put together" };
            QuotaFile::in_plan(Path::new(&format!("{} {how}", path.display())), &text, folder)?
        };
        // Where the plan lay and what was set differ between two ways to run the same plan: run.json has them.
        let command = format!(
            "{}  # the plan of this page, saved under that name",
            shell::line(["plimsoll", "run", &format!("{}.toml", file.name)])
        );
        let plan = Plan::check(file, folder, self.registry, &quotas).map_err(placed)?;
        Ok(Plan { text, digest, command, ..plan })
    }

    /// An error of the parser in the text of a cell, at the place in the files that the key comes from.
    fn parsed(&self, text: &str, error: &toml::de::Error, cell: &Cell, name: &str) -> Error {
        let message = in_cell(hinted(error.message()), name);
        let at = error.span().and_then(|span| place::path_at(text, span.start));
        match at.as_ref().and_then(|(path, _)| origin(cell, path)) {
            Some(origin) => self.sources.at_value(origin, &message),
            None => self.sources.parsed(text, error, message),
        }
    }
}

/// An error about a key, at its place.
fn placed(sources: &Sources, error: Error, cell: &Cell, name: &str) -> Error {
    let Error::Plan { key, expected, .. } = &error else { return error };
    let path = steps(key);
    let origin = match Culprit::of(expected) {
        None => origin(cell, &path),
        Some(culprit) => {
            let is = |(changed, value, _): &&(String, toml::Value, Vec<Step>)| {
                let changed = steps(changed);
                changed.starts_with(&path) && culprit.is(&changed, value)
            };
            cell.changes.iter().find(is).map(|(.., at)| &at[..])
        }
    };
    match origin {
        Some(origin) => sources.at_value(origin, &in_cell(error.to_string(), name)),
        None => sources.located(error),
    }
}

fn in_cell(message: String, name: &str) -> String {
    if name.is_empty() { message } else { format!("{message} (in the cell {name})") }
}

/// Where the value of a path was changed by the sweep, if it was.
fn origin<'a>(cell: &'a Cell, path: &[Step]) -> Option<&'a [Step]> {
    let changes = |changed: &str| {
        let changed = steps(changed);
        changed.starts_with(path) || path.starts_with(&changed)
    };
    let mut found = cell.changes.iter().filter(|(changed, ..)| changes(changed));
    match (found.next(), found.next()) {
        (Some((.., at)), None) => Some(at),
        _ => None,
    }
}

/// The names of cells: the last words of keys with their values, `load-0.7,machines-100x16c32g`.
fn names(cells: &[Cell]) -> Vec<String> {
    let last = |column: &str| match steps(column).pop() {
        Some(Step::Key(word)) => word,
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
    let one = |cell: &Cell| {
        let words: Vec<String> = cell.values.iter().map(word).collect();
        words.join(",").chars().map(plain).collect::<String>()
    };
    let names: Vec<String> = cells.iter().map(one).collect();
    let mut many: HashMap<&String, usize> = HashMap::new();
    names.iter().for_each(|name| *many.entry(name).or_default() += 1);
    let clear = |name: &String| name.len() <= NAME && many[name] == 1;
    // Names that are too long or not alone get a part of a digest.
    let named = |(name, cell): (&String, &Cell)| {
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
pub struct Listed {
    /// Its id: the name of its receipt.
    pub id: String,
    /// Place of its cell.
    pub cell: usize,
    /// Its policy.
    pub policy: String,
    /// The policy's place in the plan.
    pub policy_at: usize,
    /// Its number among those of the policy.
    pub run: usize,
    /// Its seed; `None` for a trace.
    pub seed: Option<u64>,
    /// Whether its results are there and whole.
    pub there: bool,
}

/// All runs that a study can have, of a shard its own; cell by cell. Errors: a file that the plan names cannot be read, or
/// the folder has results of another plan.
pub fn listed(study: &Study, folder: Option<&Path>, shard: Option<Shard>) -> Result<Vec<Listed>> {
    if let Some(folder) = folder {
        folder::check(study, folder)?;
    }
    let mut runs = Vec::new();
    for (cell, plan) in study.cells.iter().enumerate() {
        let place = folder.map(|folder| folder::of_cell(folder, &plan.cell)).filter(|place| place.exists());
        let ids = identity::ids(plan, &study.files).map_err(|error| study.located(cell, error))?;
        for (policy_at, ids) in ids.into_iter().enumerate() {
            for (run, id) in ids.into_iter().enumerate() {
                let policy = &plan.policies[policy_at].name;
                let found = place.as_ref().map(|place| receipt::Receipt::find(place, &id));
                runs.push(Listed {
                    id,
                    cell,
                    policy: policy.clone(),
                    policy_at,
                    run,
                    seed: plan.workload.is_seeded().then_some(plan.seeds[run]),
                    there: matches!(found, Some(receipt::Found::Whole(found)) if found.is_of(policy, run as u64)),
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

/// An axis as text: what a table or a message shows.
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
