//! The results folder of a study: whose it is, and what in it is left over.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::receipt::FOLDER as RECEIPTS;
use super::{Study, shown};
use crate::error::{Error, Result};
use crate::experiment::plan::Plan;
use crate::output::folder::{Contents, FILE as CONTENTS, STUDY, check_schema, unread};
use crate::output::made::Made;
use crate::output::provenance::{COMMIT, VERSION};
use crate::output::schema::{self, Table};
use crate::output::table::{TEMPORARY, write_whole};

/// The contents of [`STUDY`]; the same for every way to run the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The version of the tables' schemas.
    pub schema: u32,
    /// The program's version.
    #[serde(default)]
    pub version: String,
    /// Its commit, if that is known.
    #[serde(default)]
    pub commit: Option<String>,
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The columns of the axes.
    pub columns: Vec<String>,
    /// The cells: their names, and a value a column as text.
    pub cells: Vec<(String, Vec<String>)>,
    /// The plan.
    pub plan: String,
}

impl Described {
    /// The description of a study.
    pub fn of(study: &Study) -> Described {
        let cell = |plan: &Plan| (plan.cell.clone(), plan.axes.iter().map(|(_, value)| shown(value)).collect());
        Described {
            schema: schema::VERSION,
            version: VERSION.to_owned(),
            commit: COMMIT.map(str::to_owned),
            name: study.name.clone(),
            question: study.cells.first().and_then(|plan| plan.question.clone()),
            columns: study.columns.clone(),
            cells: study.cells.iter().map(cell).collect(),
            plan: study.text.clone(),
        }
    }

    /// Reads it; `None` where there is none, as in the folder of a plan without a sweep. Errors: it cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Described>> {
        let path = folder.join(STUDY);
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(unread(folder, path, source)),
            Ok(text) => {
                check_schema(&path, &text)?;
                let read = serde_json::from_str(&text).map(Some);
                read.map_err(|error| Error::trace(&path, error.line() as u64, "", error.to_string()))
            }
        }
    }

    /// Writes it, unless it is there already.
    pub fn write(&self, folder: &Path) -> Result<()> {
        if matches!(Described::read(folder), Ok(Some(there)) if there == *self) {
            return Ok(());
        }
        let path = folder.join(STUDY);
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::output(&path, error))?;
        write_whole(&path, (text + "\n").as_bytes())
    }
}

/// The folder of a cell's results: the study's own without a sweep.
pub fn of_cell(folder: &Path, cell: &str) -> PathBuf {
    if cell.is_empty() { folder.to_owned() } else { folder.join(format!("cell={}", schema::partition(cell))) }
}

/// Checks that a folder has no results of another plan. Errors: [`Error::Mismatch`] with what differs.
pub fn check(study: &Study, folder: &Path) -> Result<()> {
    match plan_there(folder)?.or(Made::read(folder).about.map(|about| about.plan)) {
        Some(there) if there != study.text => {
            let advice = "Go on with the plan as it was, choose another folder with -o, or throw those results away with \
                          --restart.";
            Err(another(folder, &there, &study.text, advice))
        }
        _ => Ok(()),
    }
}

/// The same for a plan without runs, which is made anew whatever it was. Errors: there are runs in the folder.
pub fn check_without_runs(folder: &Path, plan: &str) -> Result<()> {
    match plan_there(folder)? {
        Some(there) => Err(another(folder, &there, plan, "Choose another folder with -o.")),
        None => Ok(()),
    }
}

/// The plan whose runs a folder has. Errors: of a version that this program does not read.
fn plan_there(folder: &Path) -> Result<Option<String>> {
    if let Some(described) = Described::read(folder)? {
        return Ok(Some(described.plan));
    }
    let path = folder.join(CONTENTS);
    // What cannot be read is nobody's: it will be written anew.
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    check_schema(&path, &text)?;
    Ok(serde_json::from_str::<Contents>(&text).ok().map(|contents| contents.plan))
}

fn another(folder: &Path, there: &str, plan: &str, advice: &str) -> Error {
    let differs = difference(there, plan);
    Error::Mismatch { problem: format!("{} has results of another plan:\n{differs}\n{advice}", folder.display()) }
}

/// The differences between two plans, a line a key: `-` of the old one, `+` of the new one.
pub fn difference(old: &str, new: &str) -> String {
    let flat = |text: &str| {
        let mut lines = Vec::new();
        let table: toml::Table = text.parse().unwrap_or_default();
        flatten("", &toml::Value::Table(table), &mut lines);
        lines
    };
    let (old, new) = (flat(old), flat(new));
    let mut lines: Vec<(&String, String)> = Vec::new();
    for (key, value) in &old {
        if !new.iter().any(|other| other == &(key.clone(), value.clone())) {
            lines.push((key, format!("  - {key} = {value}")));
        }
    }
    for (key, value) in &new {
        if !old.iter().any(|other| other == &(key.clone(), value.clone())) {
            lines.push((key, format!("  + {key} = {value}")));
        }
    }
    lines.sort_by_key(|(key, _)| *key);
    lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

fn flatten(path: &str, value: &toml::Value, lines: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let key = if key.contains('.') { format!("\"{key}\"") } else { key.clone() };
                flatten(&if path.is_empty() { key } else { format!("{path}.{key}") }, value, lines);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            items.iter().enumerate().for_each(|(at, item)| flatten(&format!("{path}[{at}]"), item, lines));
        }
        value => lines.push((path.to_owned(), value.to_string())),
    }
}

/// Writes what a cell's folder says of itself, unless it says so already.
pub fn describe(plan: &Plan, folder: &Path, seeds: usize) -> Result<()> {
    let contents = contents(plan, seeds);
    if matches!(Contents::read(folder), Ok(there) if there == contents) { Ok(()) } else { contents.write(folder) }
}

fn contents(plan: &Plan, seeds: usize) -> Contents {
    let seeded = plan.workload.is_seeded();
    let cell = if plan.cell.is_empty() { String::new() } else { format!(": {}", plan.cell) };
    Contents {
        schema: schema::VERSION,
        version: VERSION.to_owned(),
        commit: COMMIT.map(str::to_owned),
        name: format!("{}{cell}", plan.name),
        question: plan.question.clone(),
        policies: plan.policies.iter().map(|policy| policy.name.clone()).collect(),
        baseline: plan.policies[plan.baseline].name.clone(),
        seeds: plan.seeds.iter().take(seeds).map(|&seed| seeded.then_some(seed)).collect(),
        submissions_depend_on_policy: plan.workload.submissions_depend_on_policy(),
        command: plan.command.clone(),
        plan: plan.text.clone(),
    }
}

/// Removes what is no part of a study that is complete: temporary files of processes that were killed, and tables and
/// receipts of an earlier plan. `kept` are the files of all runs. Only names that this program gives are touched.
pub fn remove_stale(study: &Study, folder: &Path, kept: &HashSet<PathBuf>) -> Result<()> {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("cell=") && entry.path().is_dir() {
            folders.push(entry.path());
        }
    }
    let ours: HashSet<PathBuf> = study.cells.iter().map(|plan| of_cell(folder, &plan.cell)).collect();
    for place in folders {
        let names = Table::ALL.iter().map(|table| table.name()).chain([RECEIPTS]);
        for name in names {
            sweep_out(&place.join(name), kept)?;
        }
        for drawn in [place.clone(), place.join("statistics"), place.join("figures")] {
            remove_temporary(&drawn)?;
        }
        if !ours.contains(&place) {
            // Of another plan, or beside the cells of this one.
            remove(&place.join(CONTENTS))?;
            if place != folder {
                Made::remove(&place)?;
            }
            let _ = std::fs::remove_dir(&place);
        }
    }
    if Made::read(folder).about.is_some() {
        // Of a plan without runs.
        Made::remove(folder)?;
    }
    if !study.is_swept() { remove(&folder.join(STUDY)) } else { Ok(()) }
}

/// Removes all tables, receipts and temporary files below a folder but those that are kept, and folders left empty.
fn sweep_out(folder: &Path, kept: &HashSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name.starts_with("policy=") || name.starts_with("run=") {
                sweep_out(&path, kept)?;
            }
        } else if !kept.contains(&path)
            && (name.starts_with(TEMPORARY) || name.ends_with(".parquet") || name.ends_with(".json"))
        {
            remove(&path)?;
        }
    }
    // It stays if something else stands in it.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// Removes what processes that were killed left in a folder whose files are no tables of runs.
fn remove_temporary(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) && entry.path().is_file() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::output(path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_key_by_key() {
        let old = "seeds = 2\n[w]\nload = 0.5\n[[w.class]]\na = 1\n[[w.class]]\nb = 1\n";
        let new = "seeds = 2\n[w]\nload = 0.7\nhours = 1\n[[w.class]]\na = 1\n[[w.class]]\nb = 2\n";
        let expected =
            "  - w.class[1].b = 1\n  + w.class[1].b = 2\n  + w.hours = 1\n  - w.load = 0.5\n  + w.load = 0.7";
        assert_eq!(difference(old, new), expected);
        assert_eq!(difference(old, old), "");
    }
}
