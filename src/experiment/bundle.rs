//! The published part of a results folder: files checked against the receipts of the runs, the plan, and its inputs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};

use super::study::Study;
use super::study::folder::{Described, of_cell};
use super::study::identity;
use super::study::receipt::{Found, Receipt};
use crate::error::{Error, Result};
use crate::output::archive::{Content, Sum};
use crate::output::file::is_temporary;
use crate::output::folder::{Contents, FILE as CONTENTS, RECEIPTS};
use crate::output::made::{About, Made};
use crate::output::requests::FILE as FIGURES;
use crate::output::schema::Table;
use crate::policy::Registry;
use crate::workload::Input;

/// A results folder, ready to be packed.
#[derive(Clone, Debug, Default)]
pub struct Parcel {
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The plan, put together, and where it stands in the bundle.
    pub plan: String,
    /// The plan's text about figures, where `plan` is without it.
    pub figures: String,
    /// Its place in the bundle.
    pub plan_at: String,
    /// Whether it is one of runs, which `plimsoll compare` can compare.
    pub has_runs: bool,
    /// The files of the results: names below the folder, and where they are.
    pub files: BTreeMap<String, PathBuf>,
    /// Files that the plan reads and that are packed: places in the bundle, and where they are.
    pub inputs: BTreeMap<String, PathBuf>,
    /// Files that the plan reads and that are not packed: as the plan names them, and what they were.
    pub elsewhere: BTreeMap<String, Sum>,
    /// Runs that are there whole.
    pub runs: usize,
    /// The parts that are missing or broken.
    pub missing: Vec<String>,
    /// The facts that differ between two ways to run the plan (`run.json`).
    pub made: serde_json::Value,
    /// Further facts that a reader should know.
    pub notes: Vec<String>,
}

/// The folder of a bundle in which the plan stands, with what it reads.
const STUDY: &str = "study";

/// Looks through a results folder. Input files up to `largest` bytes are packed.
///
/// Errors: no results folder, or a file that cannot be read. What is missing is no error here.
pub fn collect(folder: &Path, largest: u64, registry: &Registry) -> Result<Parcel> {
    let described = Described::read(folder)?;
    let mut parcel = Parcel::default();
    if described.is_none()
        && !folder.join(CONTENTS).exists()
        && let Some((about, made)) = Made::alone(folder)?
    {
        return without_runs(folder, largest, about, &made);
    }
    parcel.has_runs = true;
    let cells: Vec<String> = match &described {
        Some(described) => {
            parcel.name.clone_from(&described.name);
            parcel.question.clone_from(&described.question);
            parcel.plan.clone_from(&described.plan);
            described.cells.iter().map(|(name, _)| name.clone()).collect()
        }
        None => {
            let contents = Contents::read(folder)?;
            (parcel.name, parcel.question, parcel.plan) = (contents.name, contents.question, contents.plan);
            vec![String::new()]
        }
    };
    let mut kept = HashSet::new();
    for cell in &cells {
        parcel.cell(folder, cell, &mut kept)?;
    }
    if !folder.join(super::ESTIMATES).is_file() {
        parcel.missing.push("the statistics".to_owned());
    }
    parcel.walk(folder, folder, &kept)?;
    parcel.figures = std::fs::read_to_string(folder.join(FIGURES)).unwrap_or_default();
    parcel.read_made(folder);
    parcel.read_inputs(largest, registry)?;
    Ok(parcel)
}

/// The results of a plan without runs: all files must be as they were written.
fn without_runs(folder: &Path, largest: u64, about: About, made: &Made) -> Result<Parcel> {
    let mut parcel = Parcel {
        name: about.name,
        question: about.question,
        plan: about.plan,
        missing: made.broken(folder),
        ..Parcel::default()
    };
    parcel.walk(folder, folder, &HashSet::new())?;
    parcel.read_made(folder);
    let base = parcel.plan_file().map(|path| path.parent().unwrap_or(Path::new("")).to_owned());
    let mut inputs = BTreeSet::new();
    for (name, digest) in &about.inputs {
        let path = base.as_ref().map(|base| base.join(name)).filter(|path| path.is_file());
        match path.map(|path| Ok::<_, Error>((Input::open(&path)?.digest()?, path))).transpose()? {
            Some((found, path)) if found == *digest => drop(inputs.insert(path)),
            Some(_) => parcel.notes.push(format!("{name} has changed since, and is not here (BLAKE3 {digest}).")),
            None => parcel.notes.push(format!("{name} was not found, and is not here (BLAKE3 {digest}).")),
        }
    }
    parcel.pack(&base.unwrap_or_default(), inputs.iter().map(PathBuf::as_path).collect(), largest)?;
    Ok(parcel)
}

impl Parcel {
    /// Checks the runs of a cell; `kept` gets the files of those that are whole.
    fn cell(&mut self, folder: &Path, cell: &str, kept: &mut HashSet<PathBuf>) -> Result<()> {
        let place = of_cell(folder, cell);
        let of = if cell.is_empty() { String::new() } else { format!("{cell}, ") };
        if !place.is_dir() {
            self.missing.push(format!("{of}all runs"));
            return Ok(());
        }
        let contents = Contents::read(&place)?;
        let mut there = BTreeSet::new();
        let mut receipts: Vec<PathBuf> =
            std::fs::read_dir(place.join(RECEIPTS)).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        receipts.sort();
        for id in receipts.iter().filter_map(|path| path.file_stem()?.to_str()) {
            match Receipt::find(&place, id) {
                Found::Whole(receipt) => {
                    kept.insert(Receipt::path(&place, id));
                    kept.extend(receipt.tables.keys().map(|table| place.join(table)));
                    there.insert((receipt.summary.policy, receipt.summary.run));
                }
                Found::Broken(why) => self.missing.push(format!("{of}{why}")),
                Found::Missing => {}
            }
        }
        for policy in &contents.policies {
            for run in 0..contents.seeds.len() as u64 {
                if there.contains(&(policy.clone(), run)) {
                    self.runs += 1;
                } else {
                    self.missing.push(format!("{of}{policy} run {run}"));
                }
            }
        }
        Ok(())
    }

    /// Adds all files below a folder but temporary ones, the logs of jobs, and tables without a receipt.
    fn walk(&mut self, root: &Path, folder: &Path, kept: &HashSet<PathBuf>) -> Result<()> {
        let entries = std::fs::read_dir(folder).map_err(|source| Error::io(folder, source))?;
        for entry in entries {
            let path = entry.map_err(|source| Error::io(folder, source))?.path();
            let below = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let own: Vec<&str> =
                parts.iter().map(String::as_str).skip_while(|part| part.starts_with("cell=")).collect();
            let last = own.last().copied().unwrap_or_default();
            if last.starts_with('.') || is_temporary(last) || own.first() == Some(&"slurm") {
                continue;
            }
            if path.is_dir() {
                self.walk(root, &path, kept)?;
                continue;
            }
            let of_run = own.first().is_some_and(|first| {
                own.len() > 1 && (*first == RECEIPTS || Table::ALL.iter().any(|table| table.name() == *first))
            });
            if !of_run || kept.contains(&path) {
                self.files.insert(parts.join("/"), path);
            }
        }
        Ok(())
    }

    /// Reads what differs between two ways to run the plan.
    fn read_made(&mut self, folder: &Path) {
        let made = std::fs::read_to_string(folder.join("run.json")).unwrap_or_default();
        self.made = serde_json::from_str(&made).unwrap_or_default();
    }

    /// The plan's file, as `run.json` names it.
    fn plan_file(&self) -> Option<PathBuf> {
        self.made.get("plan").and_then(serde_json::Value::as_str).map(PathBuf::from)
    }

    /// Finds the files that the plan reads, from the plan's file as `run.json` names it.
    fn read_inputs(&mut self, largest: u64, registry: &Registry) -> Result<()> {
        self.plan_at = format!("{STUDY}/{}.toml", self.name);
        let Some(path) = self.plan_file() else {
            self.notes.push("The plan's file is not known, so that files which it reads are not here.".to_owned());
            return Ok(());
        };
        let set = self.made.get("set").and_then(serde_json::Value::as_array).into_iter().flatten();
        let set: Vec<String> = set.filter_map(|change| change.as_str().map(str::to_owned)).collect();
        let study = match Study::read(&path, &set, registry) {
            Ok(study) if study.text == self.plan => study,
            Ok(_) => {
                let note = format!("{} has changed since: files that the plan reads are not here.", path.display());
                self.notes.push(note);
                return Ok(());
            }
            Err(error) => {
                self.notes.push(format!("Files that the plan reads are not here ({error})."));
                return Ok(());
            }
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        self.pack(folder, study.cells.iter().flat_map(identity::inputs).collect(), largest)
    }

    /// Packs what a plan in a folder reads, and finds a place for the plan from which it is found.
    fn pack(&mut self, folder: &Path, inputs: BTreeSet<&Path>, largest: u64) -> Result<()> {
        let below: Vec<&Path> = inputs.iter().filter_map(|input| input.strip_prefix(folder).ok()).collect();
        // So deep that no path of the plan leads out of the bundle.
        let ups = |path: &&Path| path.components().filter(|part| *part == Component::ParentDir).count();
        let deep = "plans/".repeat(below.iter().map(ups).max().unwrap_or(0));
        let plans = format!("{STUDY}/{deep}");
        self.plan_at = format!("{plans}{}.toml", self.name);
        for input in inputs {
            let size = input.metadata().map_err(|source| Error::io(input, source))?.len();
            match input.strip_prefix(folder).ok().filter(|below| below.is_relative()).and_then(|b| place(&plans, b)) {
                Some(at) if size <= largest => {
                    self.inputs.insert(at, input.to_owned());
                }
                _ => {
                    let sum = Content::File(input.to_owned()).sum()?;
                    let named = input.strip_prefix(folder).unwrap_or(input);
                    self.elsewhere.insert(named.display().to_string(), sum);
                }
            }
        }
        Ok(())
    }
}

/// A path of a plan, from the folder of the plan in the bundle; `None` where it leads out of the bundle.
fn place(plans: &str, below: &Path) -> Option<String> {
    let mut parts: Vec<String> = plans.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    for part in below.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?.to_owned()),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_plan_stay_in_the_bundle() {
        let at = |plans: &str, path: &str| place(plans, Path::new(path));
        assert_eq!(at("study/plans/", "../traces/a.csv").as_deref(), Some("study/traces/a.csv"));
        assert_eq!(at("study/", "./quota/a.toml").as_deref(), Some("study/quota/a.toml"));
        assert_eq!(at("study/", "../../a.csv"), None);
        assert_eq!(at("study/", "/a.csv"), None);
    }
}
